# SPDX-License-Identifier: MPL-2.0
"""Nothing that corpus.py did not make is lost: source and destination that overlap, things that stand in the way."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from conftest import CORPUS, MARKER, corpus, failures, last_report, refused, tree


@pytest.fixture
def videos(tmp_path):
    """Three videos in two folders."""
    folder = tmp_path / "work/videos"
    (folder / "day 2").mkdir(parents=True)
    for name in ("a.mp4", "b.mkv", "day 2/c.mov"):
        (folder / name).write_bytes(name.encode() * 100)
    return folder


def overlaps(videos):
    """Pairs of source and destination in which one is, holds or leads to the other."""
    work = videos.parent
    link = work.parent / "link"
    link.symlink_to(videos)
    up = work.parent / "up"
    up.symlink_to(work)
    nested = work / "data/clips"
    shutil.copytree(videos, nested)
    failed = work / "more/failed/deep"
    shutil.copytree(videos, failed)
    return [
        (videos, videos),
        (videos, videos / "out"),
        (videos, videos / "day 2"),
        (videos, work),
        (videos, link),
        (link, videos),
        (link, videos / "out"),
        (videos, link / "out"),
        (videos, up),
        (up / "videos", work),
        (videos, f"{videos}/../videos"),
        (videos, f"{videos}/day 2/../out"),
        (f"{work}/data/../videos/.", videos),
        (nested, work / "data"),
        (f"{nested}/", f"{nested}/.."),
        (failed, work / "more"),
    ]


def test_source_and_destination_that_overlap_are_refused(videos, stand_in):
    pairs = overlaps(videos)
    before = tree(videos.parent.parent)
    program = stand_in()
    before |= tree(program)
    for number, (source, destination) in enumerate(pairs):
        force = ["--force"] if number % 2 else []
        said = refused("plan", source, destination, "--program", program, *force)
        assert "is read" in said, (source, destination)
    assert tree(videos.parent.parent) | tree(program) == before


def test_links_of_the_source_to_the_destination_are_refused(videos, tmp_path, stand_in):
    program, out = stand_in(), tmp_path / "results/out"
    corpus("plan", videos, out, "--program", program)
    corpus("run", out, "--program", program)
    for name, target in (("x.mkv", "clips/a.mp4/labels.mkv"), ("x", "clips/a.mp4"), ("x", "."), ("x", "..")):
        (videos / name).symlink_to(out / target)
        before = tree(videos), tree(out)
        assert "is a link" in refused("plan", videos, out, "--program", program)
        assert (tree(videos), tree(out)) == before
        (videos / name).unlink()


def test_a_source_that_has_become_a_link_to_the_destination_is_refused_by_run(videos, tmp_path, stand_in):
    program, out = stand_in(), tmp_path / "out"
    corpus("plan", videos, out, "--program", program)
    (out / "clips").mkdir()
    videos.rename(out / "clips/videos")
    videos.symlink_to(out / "clips/videos")
    before = tree(out)
    assert "is read" in refused("run", out, "--program", program)
    assert tree(out) == before


def test_a_mount_or_another_name_of_the_same_folder_is_found(videos, monkeypatch):
    from superpixel_corpus import output

    # As on a file system that ignores case, or through a mount: another name, the same file.
    other = videos.parent / "VIDEOS"
    real = output.identity
    monkeypatch.setattr(output, "identity", lambda path: real(str(path).replace("VIDEOS", "videos")))
    for inner, outer in ((other, videos), (other / "day 2", videos), (other / "new", videos), (videos, other)):
        assert output.is_within(inner, outer)
    assert not output.is_within(videos.parent, videos)
    assert not output.is_within(videos.parent / "videos 2", videos)


def test_a_folder_that_holds_other_things_is_no_destination(videos, tmp_path, stand_in):
    program, out = stand_in(), tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("years")
    before = tree(out)
    assert "--force" in refused("plan", videos, out, "--program", program)
    assert "no _manifest.jsonl" in refused("run", out, "--program", program)
    assert tree(out) == before
    corpus("plan", videos, out, "--program", program, "--force")
    corpus("run", out, "--program", program)
    # It is ours now.
    corpus("plan", videos, out, "--program", program)
    assert (out / "thesis.txt").read_text() == "years"
    file = tmp_path / "file"
    file.write_text("mine")
    assert "no folder" in refused("plan", videos, file, "--program", program, "--force")
    assert "no folder" in refused("plan", file, tmp_path / "new", "--program", program)
    assert "there is no folder" in refused("plan", tmp_path / "none", tmp_path / "new", "--program", program)
    assert not (tmp_path / "new").exists()
    assert file.read_text() == "mine"


def test_a_manifest_that_is_none_of_ours_stays(videos, tmp_path, stand_in):
    program, out = stand_in(), tmp_path / "out"
    out.mkdir()
    manifest = out / "_manifest.jsonl"
    # A second name of a video: it would be gone with what is written into it.
    os.link(videos / "a.mp4", manifest)
    before = tree(out), tree(videos)
    assert "no manifest" in refused("plan", videos, out, "--program", program)
    assert (tree(out), tree(videos)) == before
    corpus("plan", videos, out, "--program", program, "--force")
    assert tree(videos) == before[1]
    # A link leads out of the destination.
    manifest.unlink()
    manifest.symlink_to(videos / "a.mp4")
    refused("plan", videos, out, "--program", program)
    assert tree(videos) == before[1]


@pytest.mark.parametrize("area", ["clips", "failed", "_parts", "_scratch", "_reports"])
def test_links_in_a_destination_lead_nothing_out_of_it(videos, tmp_path, stand_in, area):
    program, out = stand_in(), tmp_path / "out"
    corpus("plan", videos, out, "--program", program)
    (out / area).symlink_to(videos)
    before = tree(videos), tree(out)
    assert "is a link" in refused("run", out, "--program", program)
    assert "is a link" in refused("plan", videos, out, "--program", program)
    assert (tree(videos), tree(out)) == before


def stand_in_the_way(out, videos):
    """Things of others where the output of `a.mp4` goes, each with words of the refusal."""
    target = out / "clips/a.mp4"

    def folder(**files):
        target.mkdir(parents=True)
        for name, content in files.items():
            (target / name.replace("_", ".")).write_text(content)

    marker = json.dumps(MARKER)
    return {
        "a file": (lambda: (target.parent.mkdir(), shutil.copy(videos / "a.mp4", target)), "is a file"),
        "a link": (lambda: (target.parent.mkdir(), target.symlink_to(videos)), "is a link"),
        "a link that leads nowhere": (lambda: (target.parent.mkdir(), target.symlink_to("/none")), "is a link"),
        "an empty folder": (folder, "has no clip.json"),
        "without a marker": (lambda: folder(labels_mkv="mine"), "has no clip.json"),
        "with a marker of others": (lambda: folder(clip_json='{"frames": "many"}'), "has no clip.json"),
        "with a marker that is cut off": (lambda: folder(clip_json=marker[:-5]), "has no clip.json"),
        "with something beside the marker": (lambda: folder(clip_json=marker, notes_txt="years"), "holds notes.txt"),
        "with a folder": (lambda: (folder(clip_json=marker), (target / "labels.mkv").mkdir()), "holds labels.mkv"),
        "with a linked label map": (
            lambda: (folder(clip_json=marker), (target / "labels.mkv").symlink_to(videos)),
            "holds labels.mkv",
        ),
    }


@pytest.mark.parametrize("case", stand_in_the_way(CORPUS, CORPUS))
def test_what_stands_in_the_way_stays_and_is_named(videos, tmp_path, stand_in, case):
    program, out = stand_in(), tmp_path / "out"
    corpus("plan", videos, out, "--program", program)
    make, reason = stand_in_the_way(out, videos)[case]
    make()
    before = tree(out / "clips/a.mp4"), tree(videos)
    said = corpus("run", out, "--program", program, expect=1)
    assert "2 clips done, 1 failed" in said
    assert reason in said
    assert failures(out) == {"a.mp4": ("refused", 1)}
    assert (tree(out / "clips/a.mp4"), tree(videos)) == before
    assert not (out / "_scratch").exists()
    # Out of the way, the clip is done.
    (out / "clips/a.mp4").rename(tmp_path / "away")
    assert "1 clips done" in corpus("run", out, "--program", program, "--retry-failed")
    assert failures(out) == {}


def test_links_on_the_way_to_an_output_are_not_followed(videos, tmp_path, stand_in):
    program, out, elsewhere = stand_in(), tmp_path / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    corpus("plan", videos, out, "--program", program)
    (out / "clips").mkdir()
    (out / "clips/day 2").symlink_to(elsewhere)
    (out / "failed").mkdir()
    (out / "failed/day 2").symlink_to(elsewhere)
    said = corpus("run", out, "--program", program, expect=1)
    assert "2 clips done, 1 failed" in said
    assert "nothing is written through links" in said
    assert list(elsewhere.iterdir()) == []


def test_records_that_are_not_ours_stay(videos, tmp_path, stand_in):
    program, out = stand_in(), tmp_path / "out"
    corpus("plan", videos, out, "--program", program)
    (out / "clips/a.mp4").mkdir(parents=True)
    (out / "failed").mkdir()
    for name in ("a.mp4.json", "b.mkv.json"):
        (out / "failed" / name).write_text('{"mine": true}')
    said = corpus("run", out, "--program", program, expect=1)
    assert "failed/a.mp4.json is there and was not made by this program" in said
    # The report is there for all that.
    assert last_report(out)["notes"]
    for name in ("a.mp4.json", "b.mkv.json"):
        assert (out / "failed" / name).read_text() == '{"mine": true}'


def test_new_properties_replace_what_is_ours_and_only_that(videos, tmp_path, stand_in):
    program, out = stand_in(), tmp_path / "out"
    corpus("plan", videos, out, "--program", program)
    corpus("run", out, "--program", program)
    (out / "clips/a.mp4/notes.txt").write_text("years")
    keys = {path: json.loads(path.read_text())["key"] for path in out.rglob("clip.json")}
    corpus("plan", videos, out, "--program", program, "--set", "superpixel-size=9")
    assert "2 clips done, 1 failed" in corpus("run", out, "--program", program, expect=1)
    assert (out / "clips/a.mp4/notes.txt").read_text() == "years"
    changed = [path.parent.name for path in sorted(keys) if json.loads(path.read_text())["key"] != keys[path]]
    assert changed == ["b.mkv", "c.mov"]


@pytest.mark.parametrize("at_once", [True, False])
def test_an_output_is_there_until_the_new_one_is(tmp_path, monkeypatch, at_once):
    from superpixel_corpus import scratch, storage

    if not at_once:
        monkeypatch.setattr(storage, "exchange", lambda *_: False)
    place = storage.place(str(tmp_path / "out"))
    run = "20000101-000000-1"

    def make(text):
        folder = scratch.attempt(place, run, "0" * 32)
        (folder / "out").mkdir()
        (folder / "out/clip.json").write_text(json.dumps(MARKER | {"key": text}))
        return folder / "out"

    place.publish(make("old"), "clips/x")
    # Killed between the two renames.
    new = make("new")
    new.with_name("replaces.json").write_text(json.dumps({"path": "clips/x"}))
    (tmp_path / "out/clips/x").rename(new.with_name("old"))
    scratch.sweep(place)
    assert json.loads((tmp_path / "out/clips/x/clip.json").read_text())["key"] == "old"
    assert not (tmp_path / "out/_scratch").exists()
    # The new one cannot come: the old one is back.
    new = make("new")
    shutil.rmtree(new)
    with pytest.raises(OSError):
        place.publish(new, "clips/x")
    assert json.loads((tmp_path / "out/clips/x/clip.json").read_text())["key"] == "old"
    place.publish(make("new"), "clips/x")
    assert json.loads((tmp_path / "out/clips/x/clip.json").read_text())["key"] == "new"


def test_the_sweep_takes_what_runs_have_left_and_nothing_else(videos, tmp_path, stand_in):
    program, out = stand_in(), tmp_path / "out"
    corpus("plan", videos, out, "--program", program)
    base = out / "_scratch"
    left = base / "20000101-000000-77"
    (left / "abcd1234-x/.out.partial-9").mkdir(parents=True)
    (left / "run.json").write_text(json.dumps({"run": left.name}))
    (left / "abcd1234-x/clip.mp4").write_text("a copy")
    (base / "20000101-000000-78").mkdir()
    mine = [base / "mine", base / "20000101-000000-79", base / "20000101-000000-80"]
    for folder in mine:
        folder.mkdir()
        (folder / "thesis.txt").write_text("years")
    (mine[2] / "run.json").write_text('{"run": "another"}')
    (base / "20000101-000000-81").symlink_to(videos)
    parts = out / "_parts" / ("0" * 32)
    (parts / "0").mkdir(parents=True)
    (parts / "0/clip.json").write_text(json.dumps(MARKER))
    (parts / "parts.json").write_text('{"parts": [{}, {}]}')
    kept = out / "_parts" / ("1" * 32)
    kept.mkdir()
    (kept / "thesis.txt").write_text("years")
    corpus("run", out, "--program", program)
    assert sorted(path.name for path in base.iterdir()) == [
        "20000101-000000-79",
        "20000101-000000-80",
        "20000101-000000-81",
        "mine",
    ]
    assert all((folder / "thesis.txt").read_text() == "years" for folder in mine)
    assert [path.relative_to(out / "_parts").as_posix() for path in (out / "_parts").rglob("*.*")] == [
        f"{'1' * 32}/thesis.txt"
    ]
    assert not parts.exists()


def test_a_folder_among_temporary_files_has_to_be_ours(tmp_path, monkeypatch):
    from superpixel_corpus import output, scratch

    class Elsewhere:
        def __str__(self):
            return "s3://bucket/out"

    monkeypatch.setattr(scratch.tempfile, "gettempdir", lambda: str(tmp_path))
    base = scratch.root(Elsewhere()).parent
    (tmp_path / "victim").mkdir()
    base.symlink_to(tmp_path / "victim")
    with pytest.raises(output.Refused):
        scratch.begin(Elsewhere(), "20000101-000000-1")
    base.unlink()
    base.mkdir()
    base.chmod(0o777)
    with pytest.raises(output.Refused):
        scratch.begin(Elsewhere(), "20000101-000000-1")
    assert list((tmp_path / "victim").iterdir()) == []
    base.rmdir()
    scratch.begin(Elsewhere(), "20000101-000000-1")
    assert base.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("clips", [("x.mp4", "x.mp4/b.mp4"), ("x.mp4/b.mp4", "x.mp4"), ("x.mp4", "x.mp4.json/b.mp4")])
def test_clips_in_the_way_of_each_other_are_named(clips, tmp_path):
    from superpixel_corpus import manifest, source, storage

    entries = [storage.Entry(path, 1, "1") for path in clips]
    made = manifest.make(manifest.Header("s3://x/y", {}, "0"), entries)
    notes = []
    kept = source.without_collisions(made, storage.place(str(tmp_path)), lambda *note: notes.append(note))
    assert [clip.path for clip in kept] == [clips[0]]
    assert [note[0] for note in notes] == [clips[1]]
    assert clips[0] in notes[0][1]


def test_names_that_differ_in_case_alone(tmp_path, monkeypatch, stand_in):
    from superpixel_corpus import manifest, scratch, source, storage

    names = ["A.mp4", "Cafe\u0301.mp4", "a.mp4", "a/1.mp4", "caf\xe9.mp4"]
    made = manifest.make(manifest.Header("s3://x/y", {}, "0"), [storage.Entry(path, 1, "1") for path in names])
    place = storage.place(str(tmp_path))
    scratch.begin(place, "20000101-000000-1")
    notes = []
    # This file system tells them apart.
    assert len(source.without_collisions(made, place, lambda *note: notes.append(note))) == len(names)
    monkeypatch.setattr(source, "is_one_name", lambda _, one, two: source.fold(one) == source.fold(two))
    kept = source.without_collisions(made, place, lambda *note: notes.append(note))
    assert [clip.path for clip in kept] == ["A.mp4", "Cafe\u0301.mp4", "a/1.mp4"]
    assert [note[0] for note in notes] == ["a.mp4", "caf\xe9.mp4"]


def test_a_full_or_read_only_place_is_said_in_words(videos, tmp_path, stand_in):
    program = stand_in()
    # Of the kernel, which nobody writes to, whoever runs this.
    for place in ("/proc/superpixels", "/sys/kernel/superpixels"):
        refused("plan", videos, place, "--program", program)
    out = tmp_path / "out"
    corpus("plan", videos, out, "--program", program)
    limited = f"ulimit -f 0; trap '' XFSZ; exec {sys.executable} {CORPUS} run {out} --program {program} --retries 0"
    done = subprocess.run(["bash", "-c", limited], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode > 0
    assert "Traceback" not in done.stderr
    assert not (out / "_scratch").exists()
    assert "3 clips done" in corpus("run", out, "--program", program)
