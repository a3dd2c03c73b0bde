# SPDX-License-Identifier: MPL-2.0
"""Whatever stands in manifest, markers, failures and locks is read, or refused in words."""

import json
import os
import random
import time
from dataclasses import asdict

import pytest

import conftest
from conftest import corpus, refused
from superpixel_corpus import lock, manifest, records, scratch, storage
from superpixel_corpus.output import Refused

# How long records are made up, in seconds.
SECONDS = float(os.environ.get("SUPERPIXEL_FUZZ_SECONDS", "6"))
SEED = 50

HEADER = {"source": "/videos", "properties": {"superpixel-size": "24"}, "version": "1.0", "split": 2.5, "schema": 1}
CLIP = {"path": "day 1/caf\udce9.mp4", "size": 12, "version": "17", "key": "0" * 32}
MARKER = conftest.MARKER | {"key": "0" * 32, "stated_ns": None}
FAILURE = {
    "path": "a.mp4",
    "key": "0" * 32,
    "kind": "data",
    "tries": 1,
    "error": "x",
    "work": "whole",
    "host": "h",
    "time": "t",
}
PARTS = {"frames": 9, "parts": [{"frames": 3, "from": None, "to": 5}, {"frames": 6, "from": 5, "to": None}]}
HOLDER = asdict(lock.Lock(storage.place("/tmp"), "20000101-000000-1", "run").mine)
READERS = {
    "manifest": (lambda content: records.manifest(content), HEADER),
    "clip": (lambda content: records.clip(content, 2), CLIP),
    "marker": (records.marker, MARKER),
    "failure": (records.failure, FAILURE),
    "parts": (records.parts, PARTS),
    "lock": (records.holder, HOLDER),
    "check": (records.checked, {"properties": {"merge": "2"}, "version": "1.0"}),
}
DEEP = "[" * 100_000 + "]" * 100_000
# Texts of values that no record has, by hand.
ODD = [
    "null",
    "true",
    "-1",
    "1.5",
    "1e999",
    "NaN",
    "Infinity",
    "9" * 5000,
    str(1 << 62),
    '""',
    '"x\\u0000y"',
    '"\\ud800"',
    "[]",
    "{}",
    DEEP,
    '{"a": {"b": []}}',
    '"' + "x" * 70_000 + '"',
    "[null]",
    '"../../x"',
    '"/x"',
    '"a//b"',
    '"."',
]


def text_of(record, changed, value):
    """The record as JSON with the text of a value in the place of a field."""
    fields = [f"{json.dumps(name)}: {value if name == changed else json.dumps(own)}" for name, own in record.items()]
    return ("{" + ", ".join(fields) + "}\n").encode()


@pytest.mark.parametrize("name", READERS)
def test_a_field_of_another_kind_is_refused_in_words(name):
    reader, record = READERS[name]
    whole = text_of(record, None, "")
    reader(whole)
    wrong = [whole[:end] for end in range(len(whole) - 2)] + [
        b"",
        b"\n",
        b"\xff\xfe",
        b"null\n",
        b"7\n",
        DEEP.encode(),
        b"[" * 10_000,
    ]
    for field in record:
        wrong += [text_of(record, field, value) for value in ODD]
        wrong.append(text_of({key: own for key, own in record.items() if key != field}, None, ""))
    count = 0
    for content in wrong:
        try:
            reader(content)
        except Refused as error:
            count += 1
            assert len(str(error)) < 1000
            str(error).encode()
    # Some fields may be left out, or have several kinds of value.
    assert count > len(wrong) * 0.6


def test_a_path_never_leaves_its_place():
    for path in ("", "/x", "..", "../x", "a/../../x", "a/./b", "a//b", "a/", "x\0y"):
        with pytest.raises(records.PlanError):
            records.clip(json.dumps(CLIP | {"path": path}), 2)
    for path in ("x", "..x", "a/...", "a\nb", "caf\udce9", " "):
        assert records.clip(json.dumps(CLIP | {"path": path}), 2).path == path


def mutate(draw, content):
    """Bytes with some of them changed, doubled, cut out or of another record."""
    content = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(content) + 1)
        match draw.randrange(6):
            case 0:
                content[at : at + 1] = bytes([draw.randrange(256)])
            case 1:
                del content[at : at + draw.randint(1, 20)]
            case 2:
                content[at:at] = content[at : at + draw.randint(1, 40)]
            case 3:
                content[at:at] = draw.choice(ODD[:14]).encode()
            case 4:
                content[at:at] = bytes(draw.choices(b'{}[]",:\\0e-\n u', k=draw.randint(1, 6)))
            case 5:
                other = list(READERS.values())[draw.randrange(len(READERS))][1]
                content[at:at] = json.dumps(other).encode()[: draw.randint(1, 60)]
    return bytes(content)


def test_made_up_records_end_nothing(tmp_path):
    """A destination whose records are all made up is read as a run, a status and a plan do, until the time is over."""
    draw = random.Random(SEED)
    place = storage.place(str(tmp_path / "out"))
    scratch.begin(place, "20000101-000000-1")
    seeds = [text_of(record, None, "") for _, record in READERS.values()]
    clips = [records.Clip(path, 1, "1", "0" * 32) for path in ("a.mp4", "day 1/b.mp4")]
    whole = json.dumps(HEADER) + "\n" + "".join(json.dumps(asdict(clip)) + "\n" for clip in clips)
    paths = [path for clip in clips for path in (f"{clip.output}/clip.json", clip.failure, f"{clip.parts}/parts.json")]
    for path in [*paths, "_manifest.jsonl"]:
        (tmp_path / "out" / path).parent.mkdir(parents=True, exist_ok=True)
    end, rounds, read, odd = time.monotonic() + SECONDS, 0, 0, 0
    while rounds < 200 or time.monotonic() < end:
        rounds += 1
        (tmp_path / "out/_manifest.jsonl").write_bytes(mutate(draw, whole.encode()))
        for path in paths:
            content = mutate(draw, draw.choice(seeds))
            (tmp_path / "out" / path).write_bytes(content)
            for reader, _ in READERS.values():
                try:
                    reader(content)
                except Refused:
                    continue
        try:
            _, found = manifest.read(place)
            assert all(records.is_path(clip.path) for clip in found)
            read += 1
        except Refused:
            found = clips
        known = manifest.state(place, found)
        odd += len(known.odd)
        assert len(known.done) + len(known.failed) + len(known.left) == len(found)
        for clip in known.left:
            try:
                place.check(clip.output)
            except Refused:
                continue
        try:
            manifest.check_new(place, force=False)
        except Refused:
            continue
    assert read > 0
    assert odd > rounds


def test_what_a_person_changes_in_a_destination_is_named(tmp_path, stand_in):
    program, videos, out = stand_in(), tmp_path / "videos", tmp_path / "out"
    videos.mkdir()
    for name in ("a.mp4", "b.mp4", "c.mp4"):
        (videos / name).write_bytes(b"clip")
    corpus("plan", videos, out, "--program", program)
    whole = (out / "_manifest.jsonl").read_text()
    for content, reason in (
        (whole[:-20], "cut off"),
        (whole.replace('"size": 4', '"size": "4"', 1), "the field size"),
        (whole.replace('"a.mp4"', '"../a.mp4"'), "the field path"),
        (whole.replace('"b.mp4"', '"a.mp4"'), "names a clip twice"),
        (whole.replace('"schema": 1', '"schema": 2'), "schema 2"),
        (whole.replace('"version"', '"color"', 1), "'color'"),
        (DEEP, "no JSON object"),
        ("", "no JSON object"),
    ):
        (out / "_manifest.jsonl").write_text(content)
        for command in ("run", "status"):
            assert reason in refused(command, out)
    (out / "_manifest.jsonl").write_text(whole.replace('"properties": {}', '"properties": {"cuda-device-id": "first"}'))
    assert "is no number" in refused("run", out, "--program", program)
    (out / "_manifest.jsonl").write_text(whole)
    corpus("run", out, "--program", program)
    (out / "clips/a.mp4/clip.json").write_text('{"schema": 1, "frames": ' + "9" * 5000 + "}")
    (out / "clips/b.mp4/clip.json").write_text(DEEP)
    said = corpus("status", out)
    assert "1 done (3 frames), 0 failed, 2 left" in said
    assert "not understood: clips/a.mp4/clip.json" in said
    said = corpus("run", out, "--program", program, expect=1)
    assert "0 clips done, 2 failed, 1 were done before" in said
    assert "not understood: clips/b.mp4/clip.json" in said
    record = out / "failed/a.mp4.json"
    record.write_text(record.read_text().replace('"tries": 1', '"tries": []'))
    assert "not understood: failed/a.mp4.json" in corpus("status", out)


def test_a_program_that_answers_something_else_is_named(tmp_path):
    videos, program = tmp_path / "videos", tmp_path / "program"
    videos.mkdir()
    (videos / "a.mp4").write_bytes(b"clip")
    for answer in ("", "hello", "{}", '{"properties": [], "version": "0"}', DEEP[:1000]):
        program.write_text(f"#!/bin/sh\necho '{answer}'\n")
        program.chmod(0o755)
        assert "is it superpixel-clip?" in refused("plan", videos, tmp_path / "out", "--program", program)
    program.write_text("no program")
    refused("plan", videos, tmp_path / "out", "--program", program)
    assert not (tmp_path / "out").exists()


def test_names_of_buckets_are_checked():
    for name in ("s3://", "s3://bucket//x", "s3://bucket/../x", "s3://bucket/./x", "s3://bucket/\udce9"):
        with pytest.raises(records.PlanError):
            storage.place(name)
