# SPDX-License-Identifier: MPL-2.0
"""corpus.py on this machine: what is done, what fails and how it is called, cuts, buckets."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import (
    CORPUS,
    FRAMES,
    PROGRAM,
    Harmed,
    assert_nothing_left,
    check_output,
    children,
    corpus,
    failures,
    labels,
    last_report,
    make_clip,
    make_scenes,
    wait_for,
)


def test_a_folder_is_done_once(clips, tmp_path):
    destination = tmp_path / "out"
    assert "10 clips" in corpus("plan", clips, destination, "--set", "superpixel-size=20", "--program", PROGRAM)
    said = corpus("run", destination, "--program", PROGRAM, expect=1)
    assert "9 clips done, 1 failed" in said
    assert failures(destination) == {"garbage.mp4": ("data", 1)}
    report = last_report(destination)
    assert (report["done"], report["failed"], report["short"]) == (9, {"data": 1}, 1)
    assert 8 * FRAMES < report["frames"] < 9 * FRAMES
    page = (destination / "_reports" / f"{report['run']}.html").read_text()
    assert "<svg" in page
    assert "garbage.mp4" in page
    for marker in (destination / "clips").rglob("clip.json"):
        check_output(marker.parent)
    assert_nothing_left(destination)
    # Again: nothing to do. Without one output: one clip.
    assert "0 clips done" in corpus("run", destination, "--program", PROGRAM, expect=1)
    shutil.rmtree(destination / "clips/camera 1/3.mkv")
    assert "1 clips done, 0 failed, 8 were done before" in corpus("run", destination, "--program", PROGRAM, expect=1)
    assert "9 done" in corpus("status", destination)
    # Other properties, other results.
    corpus("plan", clips, destination, "--set", "superpixel-size=24", "--program", PROGRAM)
    assert "0 done (0 frames), 0 failed, 10 left" in corpus("status", destination)


def test_failures_have_their_kind(tmp_path):
    source, destination = tmp_path / "source", tmp_path / "out"
    harmed = Harmed(tmp_path, crash="crash", hang="hang", once="once")
    for name in ("crash", "hang", "once", "good"):
        make_clip(source / f"{name}.mkv")
    corpus("plan", source, destination, "--program", harmed)
    corpus("run", destination, "--program", harmed, "--retries", 1, "--timeout", 5, "--jobs", 4, expect=1)
    assert failures(destination) == {"crash.mkv": ("crash", 2), "hang.mkv": ("timeout", 2)}
    assert "SIGABRT" in json.loads((destination / "failed/crash.mkv.json").read_text())["error"]
    report = last_report(destination)
    assert (report["done"], report["retries"]) == (2, {"crash": 2, "timeout": 1})
    assert_nothing_left(destination)
    # Failed clips stay failed until somebody asks for them.
    assert "0 clips done" in corpus("run", destination, "--program", PROGRAM, expect=1)
    assert "2 clips done" in corpus("run", destination, "--program", PROGRAM, "--retry-failed")
    assert failures(destination) == {}


def test_a_crash_blames_its_own_clip_alone(tmp_path):
    source, destination = tmp_path / "source", tmp_path / "out"
    harmed = Harmed(tmp_path, crash="crash", once="once")
    for name in ("a", "b", "c crash", "d", "e once", "f", "g"):
        make_clip(source / f"{name}.mkv")
    corpus("plan", source, destination, "--program", harmed)
    assert "6 clips done, 1 failed" in corpus(
        "run", destination, "--program", harmed, "--jobs", 1, "--retries", 1, expect=1
    )
    assert failures(destination) == {"c crash.mkv": ("crash", 2)}
    assert last_report(destination)["retries"] == {"crash": 2}
    # One for each crash, one that goes on behind it, and a new one for what is tried again.
    assert harmed.starts() <= 5
    for marker in (destination / "clips").rglob("clip.json"):
        check_output(marker.parent)
    assert_nothing_left(destination)
    # Without another try, neighbors of the culprit are as safe.
    again = tmp_path / "again"
    corpus("plan", source, again, "--program", harmed)
    corpus("run", again, "--program", harmed, "--jobs", 1, "--retries", 0, expect=1)
    assert failures(again) == {"c crash.mkv": ("crash", 1)}
    assert harmed.starts() == 2


def test_a_process_does_so_many_clips(tmp_path):
    source = tmp_path / "source"
    harmed = Harmed(tmp_path)
    for number in range(5):
        make_clip(source / f"{number}.mkv", pattern=("ball", "smpte")[number % 2])
    tables = {}
    for number, starts in ((1, 5), (2, 3), (64, 1)):
        destination = tmp_path / f"out{number}"
        corpus("plan", source, destination, "--program", harmed)
        corpus("run", destination, "--program", harmed, "--jobs", 1, "--per-process", number)
        assert harmed.starts() == starts
        first = last_report(destination)["first_frame_seconds"]
        assert set(first) == ({"new_process"} if number == 1 else {"new_process", "same_process"})
        for path in sorted(destination.rglob("*.parquet")):
            assert tables.setdefault(path.relative_to(destination), path.read_bytes()) == path.read_bytes()
    assert len(tables) == 15


def test_an_idle_process_that_ends_is_replaced(tmp_path):
    from superpixel_corpus.program import Slot

    clip = tmp_path / "a.mkv"
    make_clip(clip)
    slot = Slot()
    for number, fresh in enumerate((True, False, True)):
        if number == 2:
            slot.process.kill()
            slot.process.wait()
        ended = slot.run(PROGRAM, [str(clip), str(tmp_path / f"out{number}")], 60.0, 64, anew=False)
        assert (ended.last["event"], ended.error, ended.fresh) == ("done", "", fresh)
    ended = slot.run(PROGRAM, ["check", "superpixel-size=1"], 60.0, 64, anew=True)
    assert ended.last["fault"] == "usage"
    assert "4 to 1024" in ended.error
    assert slot.process is None
    slot.close()


def test_a_broken_backend_is_the_machines(tmp_path):
    source, destination = tmp_path / "source", tmp_path / "out"
    make_clip(source / "a.mkv")
    corpus("plan", source, destination, "--set", "backend=cuda", "--set", "cuda-device-id=77", "--program", PROGRAM)
    corpus("run", destination, "--program", PROGRAM, "--retries", 1, expect=1)
    assert failures(destination) == {"a.mkv": ("machine", 2)}


def test_programs_end_with_the_driver(tmp_path):
    source, destination = tmp_path / "source", tmp_path / "out"
    make_clip(source / "slow.mkv", frames=300)
    words = ["superpixel-size=4", "iterations=100", "temporal=false"]
    corpus("plan", source, destination, *(f"--set={word}" for word in words), "--program", PROGRAM)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    driver = subprocess.Popen([sys.executable, CORPUS, "run", destination, "--program", PROGRAM], **quiet)
    name = Path(PROGRAM).name
    process, _ = wait_for(lambda: [child for child in children(name) if child[1] == driver.pid])[0]
    driver.kill()
    driver.wait()
    # Alone it would take far longer.
    wait_for(lambda: process not in [child for child, _ in children(name)], 2)
    assert not (destination / "clips").exists()
    corpus("plan", source, destination, "--program", PROGRAM)
    corpus("run", destination, "--program", PROGRAM)
    assert_nothing_left(destination)


def test_what_cannot_be_planned_says_why(tmp_path):
    def refused(*words):
        done = subprocess.run([CORPUS, "plan", *map(str, words)], check=False, capture_output=True, text=True)
        assert done.returncode == 1
        return done.stderr

    make_clip(tmp_path / "a.mkv")
    assert "4 to 1024" in refused(tmp_path, tmp_path.parent / "x", "--set", "superpixel-size=1", "--program", PROGRAM)
    assert "is not found" in refused(tmp_path, tmp_path.parent / "x", "--program", "no-such-program")
    assert "no file that ends" in refused(tmp_path, tmp_path.parent / "x", "--suffixes", "mp3", "--program", PROGRAM)
    assert "is inside of" in refused(tmp_path, tmp_path / "x", "--program", PROGRAM)


def test_parts_give_what_the_whole_gives(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    source, destination, cuts = tmp_path / "source", tmp_path / "out", tmp_path / "cuts.json"
    source.mkdir()
    make_scenes(source / "long.mkv")
    make_clip(source / "plain.mkv")
    words = ["--set", "superpixel-size=12", "--split-at-cuts", 1, "--program", PROGRAM]
    corpus("plan", source, destination, *words)
    assert "2 clips done" in corpus("run", destination, "--program", PROGRAM)
    found = subprocess.run(
        [PROGRAM, "cuts", source / "long.mkv", cuts, "--least", "1"], check=True, capture_output=True
    )
    assert len(json.loads(found.stdout.splitlines()[-1])["parts"]) == 3
    whole, joined = tmp_path / "whole", destination / "clips/long.mkv"
    subprocess.run(
        [PROGRAM, source / "long.mkv", whole, "superpixel-size=12", "--cuts", cuts],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    assert (labels(whole) == labels(joined)).all()
    for table in ("regions.parquet", "adjacency.parquet", "events.parquet"):
        assert pq.read_table(whole / table).equals(pq.read_table(joined / table))
    check_output(joined)
    assert last_report(destination)["frames"] == 4 * FRAMES
    assert_nothing_left(destination)
