# SPDX-License-Identifier: MPL-2.0
"""Folders as people have them: links, what cannot be read, and names of any bytes that the file system takes."""

import json
import os
import subprocess
import sys

import pytest

from conftest import CORPUS, PROGRAM, corpus, failures, last_report, make_clip
from superpixel_corpus import output, source, storage


def plan(videos, out, program, *words):
    """Plans and returns the paths of all clips, and what was left out."""
    command = [sys.executable, CORPUS, "plan", videos, out, "--program", program, *words]
    done = subprocess.run(command, check=False, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = (out / "_manifest.jsonl").read_text(encoding="ascii").splitlines()
    return [json.loads(line)["path"] for line in lines[1:]], done.stderr.decode()


def test_links_are_followed_once_or_named(tmp_path, stand_in):
    videos, disk = tmp_path / "videos", tmp_path / "disk 2"
    for path in (videos / "a.mp4", videos / "real/b.mp4", disk / "day 2/c.mp4", disk / "day 2/deep/d.mp4"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"clip")
    (videos / "notes.txt").symlink_to("/nowhere/notes.txt")
    (videos / "dead.mp4").symlink_to("/nowhere/dead.mp4")
    (videos / "loop.mp4").symlink_to("loop.mp4")
    (videos / "day").symlink_to(disk / "day 2")
    (videos / "again").symlink_to(disk / "day 2")
    (videos / "aaa").symlink_to(videos / "real")
    (videos / "up").symlink_to(videos)
    (videos / "root").symlink_to("/")
    (disk / "day 2/deep/back").symlink_to(disk / "day 2")
    (videos / "e.mp4").symlink_to(disk / "day 2/c.mp4")
    os.mkfifo(videos / "pipe.mp4")
    os.mkfifo(videos / "pipe.txt")
    paths, said = plan(videos, tmp_path / "out", stand_in())
    assert paths == ["a.mp4", "again/c.mp4", "again/deep/d.mp4", "e.mp4", "real/b.mp4"]
    assert sorted(said.splitlines()) == [
        "left out: again/deep/back: a link to a folder that it is in",
        "left out: dead.mp4: a link that leads nowhere",
        "left out: loop.mp4: it cannot be read: Too many levels of symbolic links",
        "left out: pipe.mp4: it is no regular file",
        "left out: root: a link to a folder that it is in",
        "left out: up: a link to a folder that it is in",
    ]
    assert "5 clips done" in corpus("run", tmp_path / "out", "--program", stand_in())


def test_what_cannot_be_read_is_named(tmp_path, monkeypatch):
    videos = tmp_path / "videos"
    for path in ("a.mp4", "b.mp4", "locked/c.mp4"):
        (videos / path).parent.mkdir(parents=True, exist_ok=True)
        (videos / path).write_bytes(b"clip")
    scandir = os.scandir

    def deny(path):
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    # For root nothing is locked.
    monkeypatch.setattr(source.os, "scandir", deny)
    monkeypatch.setattr(source.os, "access", lambda path, _: not path.endswith("b.mp4"))
    notes = {}
    found = source.find(storage.place(str(videos)), storage.place(str(tmp_path / "out")), {"mp4"}, notes.__setitem__)
    assert [entry.path for entry in found] == ["a.mp4"]
    assert notes == {
        "locked": "the folder cannot be read: Permission denied",
        "b.mp4": "it may not be read by this user",
    }


def test_folders_may_be_deep(tmp_path):
    deep = str(tmp_path)
    for _ in range(1500):
        deep += "/a"
        os.mkdir(deep)
    with open(f"{deep}/x.mp4", "wb") as file:
        file.write(b"clip")
    found = source.find(storage.place(str(tmp_path)), storage.place("/nowhere"), {"mp4"}, lambda *_: None)
    assert [entry.path for entry in found] == ["a/" * 1500 + "x.mp4"]
    # Python's own functions go as deep as there are folders.
    subprocess.run(["rm", "-r", tmp_path / "a"], check=True)


# Latin-1, no UTF-8 at all, control characters and the end of a terminal's line, quotes, markup, right to left, the
# longest of all.
NAMES = [
    b"caf\xe9.mp4",
    b"\xff\xfe\x80.mp4",
    b"a\nb\r\x1b[31m.mp4",
    b"\"'\\$(x) `y`.mp4",
    b"<script>&amp;.mp4",
    "\u202e4pm.mp4".encode(),
    "\u6f22\u5b57 \U0001f3ac.mp4".encode(),
    b"-x --force.mp4",
    b" .mp4",
    b"x" * 251 + b".mp4",
    b"y" * 250 + b"\xe9.mp4",
    b"x.json.mp4",
]
# A folder, too.
NAMES.append(b"d\xe9j\xe0 vu/\xc0.mp4")


@pytest.mark.parametrize("encoding", ["ascii:strict", "utf-8:strict", "latin-1:strict"])
def test_names_of_any_bytes_are_done_and_told(tmp_path, stand_in, monkeypatch, encoding):
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    videos, out, program = os.fsencode(tmp_path / "videos"), tmp_path / "out", stand_in()
    for name in NAMES:
        path = os.path.join(videos, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(name)
    paths, said = plan(os.fsdecode(videos), out, program)
    assert sorted(map(os.fsencode, paths)) == sorted(NAMES)
    assert said == ""
    corpus("run", out, "--program", program)
    for name in NAMES:
        assert os.path.exists(os.path.join(os.fsencode(out), b"clips", name, b"clip.json")), name
    # Every one of them fails: what is said of that is whole.
    corpus("plan", os.fsdecode(videos), out, "--program", program, "--set", "superpixel-size=9")
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nread line; printf 'no \\351 \\033[31m' >&2; exit 9\n")
    broken.chmod(0o755)
    said = corpus("run", out, "--program", broken, "--retries", 0, expect=1)
    assert f"0 clips done, {len(NAMES)} failed" in said
    assert "\x1b" not in said
    assert r"caf\xe9.mp4" in said
    assert set(map(os.fsencode, failures(out))) == set(NAMES)
    report = last_report(out)
    assert report["failed"] == {"crash": len(NAMES)}
    page = (out / "_reports" / f"{report['run']}.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;" in page
    assert "<script>" not in page
    assert f"0 done (0 frames), {len(NAMES)} failed" in corpus("status", out)
    assert f"{len(NAMES)} clips done" in corpus("run", out, "--program", program, "--retry-failed")
    assert failures(out) == {}


def test_a_name_that_is_no_utf8_is_done_by_the_program(tmp_path):
    videos = tmp_path / "videos"
    make_clip(tmp_path / "clip.mkv", frames=5)
    videos.mkdir()
    name = os.path.join(os.fsencode(videos), b"caf\xe9.mkv")
    os.rename(tmp_path / "clip.mkv", name)
    corpus("plan", videos, tmp_path / "out", "--program", PROGRAM)
    assert "1 clips done" in corpus("run", tmp_path / "out", "--program", PROGRAM)
    assert os.listdir(os.fsencode(tmp_path / "out/clips")) == [b"caf\xe9.mkv"]


def test_what_is_shown_is_plain():
    assert output.shown("caf\xe9 \U0001f3ac") == "caf\xe9 \U0001f3ac"
    assert output.shown("caf\udce9\n\x1b\u202e\ud800") == "caf\\xe9\\n\\x1b\\u202e\\ud800"
