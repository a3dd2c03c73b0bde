# SPDX-License-Identifier: MPL-2.0
"""One run at a time, and nothing left or lost where corpus.py is killed at any instant."""

import hashlib
import json
import os
import random
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace

import pytest

from conftest import CORPUS, corpus, refused, tree, wait_for

KILLS = 50
SEED = 50


@pytest.fixture
def videos(tmp_path):
    """Videos, in folders and behind links."""
    folder, disk = tmp_path / "videos", tmp_path / "disk"
    for number in range(8):
        path = (disk if number == 7 else folder / f"day {number % 2}") / f"{number}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(2000))
    (folder / "disk").symlink_to(disk)
    return folder


def start(*words):
    """corpus.py in the background."""
    return subprocess.Popen(
        [sys.executable, CORPUS, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def check_whole(out, videos):
    """Every folder of a clip that is there is whole, and of its video."""
    count = 0
    for video in [*videos.glob("*/*.mp4")]:
        folder = out / "clips" / video.relative_to(videos)
        if folder.exists():
            assert {path.name for path in folder.iterdir()} == {
                "clip.json",
                "labels.mkv",
                "regions.parquet",
                "adjacency.parquet",
            }
            assert (folder / "labels.mkv").read_text() == hashlib.sha256(video.read_bytes()).hexdigest()
            json.loads((folder / "clip.json").read_text())
            count += 1
    return count


def test_a_run_that_is_killed_at_any_instant_loses_and_leaves_nothing(videos, tmp_path, stand_in):
    draw = random.Random(SEED)
    program, out = stand_in(0.2), tmp_path / "out"
    before, most, killed, ended = tree(tmp_path / "videos"), 0, 0, False
    disk = tree(tmp_path / "disk")
    corpus("plan", videos, out, "--program", program)
    for number in range(10 * KILLS):
        # A plan of other properties now and then, so that outputs are replaced, and so that plans are killed, too; and
        # wherever a run has ended before its signal, so that the next one has work to be killed in.
        if number % 5 == 4:
            process = start("plan", videos, out, "--program", program, "--set", f"superpixel-size={number}")
            time.sleep(draw.uniform(0.0, 0.3))
        else:
            if number % 5 == 2 or ended:
                corpus("plan", videos, out, "--program", program, "--set", f"superpixel-size={number}")
            process = start("run", out, "--program", program, "--jobs", 2)
            time.sleep(draw.uniform(0.0, 1.2))
        process.kill()
        ended = process.wait() == 0
        killed += not ended
        assert tree(tmp_path / "videos") == before
        assert tree(tmp_path / "disk") == disk
        there = check_whole(out, videos)
        # Finished clips stay until there are newer ones.
        assert there >= most
        most = there
        if killed == KILLS:
            break
    assert killed == KILLS
    corpus("run", out, "--program", program)
    assert check_whole(out, videos) == 8
    assert tree(tmp_path / "videos") == before
    assert {path.name for path in out.iterdir()} == {"_manifest.jsonl", "clips", "_reports"}
    assert [path for path in out.rglob("*") if path.name.startswith(".") or "partial" in path.name] == []


def test_a_plan_that_is_killed_can_be_made_again(videos, tmp_path, stand_in):
    program = stand_in()
    draw = random.Random(SEED)
    for number in range(5):
        out = tmp_path / f"out{number}"
        process = start("plan", videos, out, "--program", program)
        time.sleep(draw.uniform(0.1, 0.4))
        process.kill()
        process.wait()
        corpus("plan", videos, out, "--program", program)
        assert [path.name for path in out.iterdir()] == ["_manifest.jsonl"]


def test_the_second_of_two_runs_says_who_holds_the_destination(videos, tmp_path, stand_in):
    gate = tmp_path / "gate"
    slow, program, out = stand_in(gate=gate), stand_in(), tmp_path / "out"
    corpus("plan", videos, out, "--program", program)
    first = start("run", out, "--program", slow, "--jobs", 8)
    pieces = tmp_path / "pieces"
    wait_for(lambda: pieces.exists() and len(pieces.read_text()) == 8)
    scratch = tree(out / "_scratch")
    for words in (["run", out], ["plan", videos, out]):
        said = refused(*words, "--program", program)
        assert f"process {first.pid} on {os.uname().nodename} has held it since 20" in said
        assert "corpus.py run works on" in said
    # Files that the living worker uses are not swept.
    assert set(scratch) <= set(tree(out / "_scratch"))
    gate.touch()
    assert first.wait() == 0
    assert len(pieces.read_text()) == 8
    assert check_whole(out, videos) == 8
    # A killed holder does not make others wait.
    gate.unlink()
    corpus("plan", videos, out, "--program", program, "--set", "superpixel-size=9")
    killed = start("run", out, "--program", slow)
    wait_for(lambda: len(pieces.read_text()) > 8)
    killed.kill()
    killed.wait()
    assert (out / "_lock").exists()
    assert "8 clips done" in corpus("run", out, "--program", program)
    assert not (out / "_lock").exists()


def test_a_run_that_is_asked_to_end_cleans_up(videos, tmp_path, stand_in):
    program, out = stand_in(30.0), tmp_path / "out"
    corpus("plan", videos, out, "--program", program)
    process = start("run", out, "--program", program)
    wait_for(lambda: list((out / "_scratch").rglob(".out.partial-*")))
    process.terminate()
    assert process.wait(60) == 143
    assert {path.name for path in out.iterdir()} == {"_manifest.jsonl", "_reports"}
    assert len(list((out / "_reports").glob("*.json"))) == 1


def test_a_lock_file_of_somebody_else_stays(videos, tmp_path, stand_in):
    program, out = stand_in(), tmp_path / "out"
    corpus("plan", videos, out, "--program", program)
    lock = out / "_lock"
    for make in (
        lambda: lock.write_text("mine"),
        lambda: os.link(videos / "day 0/0.mp4", lock),
        lambda: lock.symlink_to(videos / "day 0/0.mp4"),
        lambda: lock.symlink_to("/none"),
        lambda: os.mkfifo(lock),
    ):
        make()
        before = tree(videos), lock.lstat().st_ino
        assert "was not made by this program" in refused("run", out, "--program", program)
        assert (tree(videos), lock.lstat().st_ino) == before
        lock.unlink()
    lock.mkdir()
    assert "was not made by this program" in refused("run", out, "--program", program)


class Memory:
    """A bucket without a service."""

    root = "bucket/out"

    def __init__(self):
        self.objects, self.system = {}, self

    def __str__(self):
        return "s3://bucket/out"

    def read(self, name):
        return self.objects.get(name)

    def write(self, name, content, is_ours):
        assert not self.objects.get(name) or is_ours(self.objects[name])
        self.objects[name] = content

    def delete_file(self, name):
        del self.objects[name.removeprefix(f"{self.root}/")]


@pytest.fixture
def lock(monkeypatch):
    """The module, with less patience."""
    from superpixel_corpus import lock

    monkeypatch.setattr(lock, "BEAT", 0.05)
    monkeypatch.setattr(lock, "SETTLE", 0.05)
    return lock


@pytest.fixture(params=["bucket", "folder"])
def place(request, tmp_path):
    from superpixel_corpus import storage

    if request.param == "bucket":
        return Memory()
    (tmp_path / "shared").mkdir()
    return storage.place(str(tmp_path / "shared"))


def content_of(place):
    return place.objects.get("_lock") if isinstance(place, Memory) else (place.root / "_lock").read_bytes()


def put(place, holder):
    content = json.dumps(asdict(holder)).encode()
    if isinstance(place, Memory):
        place.objects["_lock"] = content
    else:
        (place.root / "_lock").write_bytes(content)


def other(lock):
    """A holder on another machine."""
    return replace(lock.Lock(Memory(), "20000101-000000-1", "run").mine, machine="elsewhere", host="far", process=7)


def test_machines_that_share_no_locks_watch_for_signs_of_life(lock, place, monkeypatch):
    monkeypatch.setattr(lock, "DEAD", 60.0)
    theirs = other(lock)
    put(place, theirs)
    ended = threading.Event()

    def live():
        beat = 0
        while not ended.wait(0.02):
            beat += 1
            put(place, replace(theirs, beat=beat))

    holder = threading.Thread(target=live)
    holder.start()
    try:
        with pytest.raises(lock.Refused, match="process 7 on far has held it since"):
            lock.Lock(place, "20000101-000000-2", "run").__enter__()
    finally:
        ended.set()
        holder.join()
    # A record that never changes is a dead holder's.
    monkeypatch.setattr(lock, "DEAD", 0.3)
    with lock.Lock(place, "20000101-000000-2", "run") as mine:
        assert json.loads(content_of(place))["run"] == "20000101-000000-2"
        wait_for(lambda: json.loads(content_of(place) or b'{"beat": 0}')["beat"] > 1)
        mine.check()
        # One that wakes up finds another one in its place, and leaves that alone.
        put(place, other(lock))
        wait_for(lambda: mine.was_taken)
        with pytest.raises(lock.Refused, match="taken over"):
            mine.check()
    assert json.loads(content_of(place))["machine"] == "elsewhere"


def test_a_bucket_has_one_holder_and_knows_the_dead_of_its_own_machine(lock):
    bucket = Memory()
    with lock.Lock(bucket, "20000101-000000-1", "run"):
        with pytest.raises(lock.Refused, match=f"process {os.getpid()} on"):
            lock.Lock(bucket, "20000101-000000-2", "plan").__enter__()
    assert bucket.objects == {}
    # A process with the number of a dead one is another one.
    put(bucket, replace(lock.Lock(bucket, "20000101-000000-3", "run").mine, started=1))
    with lock.Lock(bucket, "20000101-000000-4", "run"):
        pass
    # Both were quick: the last one to write has it.
    late = other(lock)
    first = lock.Lock(bucket, "20000101-000000-5", "run")
    write = first.backend.write
    first.backend.write = lambda content: (write(content), put(bucket, late))
    with pytest.raises(lock.Refused, match="far"):
        first.__enter__()
    bucket.objects["_lock"] = b"mine"
    with pytest.raises(lock.Refused, match="remove it"):
        lock.Lock(bucket, "20000101-000000-6", "run").__enter__()
    assert bucket.objects == {"_lock": b"mine"}
