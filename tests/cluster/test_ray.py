# SPDX-License-Identifier: MPL-2.0
"""corpus.py on a Ray cluster of two nodes, whose workers and whose driver are killed."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import (
    CORPUS,
    PROGRAM,
    Harmed,
    assert_nothing_left,
    check_output,
    children,
    corpus,
    failures,
    last_report,
    wait_for,
)

pytest.importorskip("ray", reason="Ray is not installed in this environment")

# Nodes on the loopback of a network namespace with nothing else; see tests/run.sh.
os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0")


@pytest.fixture(scope="module")
def cluster():
    """Two nodes with one core each."""
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "include_dashboard": False, "object_store_memory": 80 << 20}
    nodes = Cluster(initialize_head=True, head_node_args=node)
    nodes.add_node(num_cpus=1, node_ip_address="127.0.0.1", object_store_memory=80 << 20)
    yield nodes.address
    nodes.shutdown()


def test_everything_is_done_once_whoever_is_killed(clips, tmp_path, cluster):
    # Slow enough to be caught; crashes for one clip.
    harmed = Harmed(tmp_path, **{"7.mkv": "crash"})
    destination = tmp_path / "out"
    settings = ["--set", "superpixel-size=8", "--set", "iterations=60", "--set", "temporal=false"]
    corpus("plan", clips, destination, *settings, "--program", PROGRAM)
    words = ["run", str(destination), "--ray", cluster, "--program", str(harmed)]
    markers = lambda: {path: path.stat().st_mtime_ns for path in (destination / "clips").rglob("clip.json")}
    name = Path(PROGRAM).name

    log = (tmp_path / "log").open("w+")
    first = subprocess.Popen([sys.executable, CORPUS, *words], stdout=log, stderr=log)
    process, worker = wait_for(lambda: children(name))[0]
    os.kill(worker, signal.SIGKILL)
    wait_for(lambda: process not in [child for child, _ in children(name)], 10)
    wait_for(lambda: len(markers()) >= 2)
    assert first.poll() is None, Path(log.name).read_text()
    first.kill()
    first.wait()
    wait_for(lambda: not children(name), 30)
    before = markers()
    assert len(before) < 9

    said = corpus(*words, expect=1)
    # The worker may have been killed over one of these.
    kinds = {path: kind for path, (kind, _) in failures(destination).items()}
    assert kinds == {"garbage.mp4": "data", "camera 1/7.mkv": "crash"}, said
    after = markers()
    assert len(after) == 8
    assert all(after[path] == when for path, when in before.items()), "a clip was done twice"
    for path in after:
        check_output(path.parent)
    assert_nothing_left(destination)

    shutil.rmtree(destination / "clips/short.mkv")
    assert "1 clips done, 0 failed, 7 were done before" in corpus(*words, expect=1)
    assert [path for path in after if markers()[path] != after[path]] == [destination / "clips/short.mkv/clip.json"]


def test_a_clip_that_kills_its_worker_is_named(clips, tmp_path, cluster):
    source, destination = tmp_path / "source", tmp_path / "out"
    harmed = Harmed(tmp_path, killer="worker")
    source.mkdir()
    (source / "good.mkv").symlink_to(clips / "camera 0/0.mkv")
    (source / "killer.mkv").symlink_to(clips / "camera 0/2.mkv")
    corpus("plan", source, destination, "--program", PROGRAM)
    corpus("run", destination, "--ray", cluster, "--program", harmed, "--retries", 1, expect=1)
    assert failures(destination) == {"killer.mkv": ("lost", 2)}
    report = last_report(destination)
    assert (report["done"], report["retries"]) == (1, {"lost": 1})
    assert json.loads((destination / "clips/good.mkv/clip.json").read_text())["frames"] > 0
    assert_nothing_left(destination)


def test_workers_keep_their_process(clips, tmp_path, cluster):
    source, destination = tmp_path / "source", tmp_path / "out"
    harmed = Harmed(tmp_path)
    source.mkdir()
    for number in range(16):
        (source / f"{number}.mkv").symlink_to(clips / f"camera {number % 2}/{number % 8}.mkv")
    corpus("plan", source, destination, "--program", PROGRAM)
    assert "16 clips done" in corpus("run", destination, "--ray", cluster, "--program", harmed)
    # Ray may begin with a worker too many.
    assert harmed.starts() <= 6
    wait_for(lambda: not children(Path(PROGRAM).name), 30)
