# SPDX-License-Identifier: MPL-2.0
"""corpus.py on a service that speaks S3: what is done, and what is not replaced."""

import json
import os
import shutil
import urllib.request

import pytest

from conftest import MARKER, PROGRAM, check_output, corpus, failures, make_scenes, refused

pytest.importorskip("moto", reason="moto is not installed in this environment")


@pytest.fixture
def bucket(monkeypatch):
    """A service that speaks S3, on the loopback alone."""
    from moto.server import ThreadedMotoServer
    from pyarrow import fs

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    # The server may hold buckets of an earlier test in memory.
    urllib.request.urlopen(urllib.request.Request(f"http://{host}:{port}/moto-api/reset", method="POST")).close()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    system = fs.S3FileSystem(
        endpoint_override=f"{host}:{port}", scheme="http", allow_bucket_creation=True, region="us-east-1"
    )
    system.create_dir("corpus")
    yield system
    server.stop()


def test_buckets(clips, tmp_path, bucket):
    from pyarrow import fs

    source = tmp_path / "source"
    source.mkdir()
    make_scenes(source / "long.mkv")
    shutil.copy(clips / "camera 0/0.mkv", source)
    shutil.copy(clips / "garbage.mp4", source)
    fs.copy_files(str(source), "corpus/in", destination_filesystem=bucket)
    words = ["--set", "superpixel-size=20", "--split-at-cuts", 1, "--program", PROGRAM]
    assert "3 clips" in corpus("plan", "s3://corpus/in", "s3://corpus/out/here", *words)
    assert "2 clips done, 1 failed" in corpus("run", "s3://corpus/out/here", "--program", PROGRAM, expect=1)
    assert "3 clips: 2 done" in corpus("status", "s3://corpus/out/here")
    copy = tmp_path / "copy"
    fs.copy_files("corpus/out/here", str(copy), source_filesystem=bucket)
    assert failures(copy) == {"garbage.mp4": ("data", 1)}
    for name in ("long.mkv", "0.mkv"):
        check_output(copy / "clips" / name)
    assert json.loads((copy / "clips/long.mkv/clip.json").read_text())["source"] == "s3://corpus/in/long.mkv"
    assert not list((copy / "_parts").rglob("*.*"))
    bucket.delete_dir("corpus/out/here/clips/0.mkv")
    assert "1 clips done, 0 failed, 1 were done before" in corpus(
        "run", "s3://corpus/out/here", "--program", PROGRAM, expect=1
    )
    from superpixel_corpus import scratch, storage

    root = scratch.root(storage.place("s3://corpus/out/here"))
    assert not root.exists() or not os.listdir(root)


def test_objects_that_are_not_ours_stay(tmp_path, bucket, stand_in):
    program = stand_in()
    before = {}

    def put(path, content=b"mine"):
        with bucket.open_output_stream(f"corpus/{path}") as stream:
            stream.write(content)
        before[path] = content

    def get(path):
        with bucket.open_input_stream(f"corpus/{path}") as stream:
            return stream.read()

    for name in ("a.mp4", "b.mp4", "c.mp4", "d.mp4", "d.mp4/e.mp4"):
        put(f"in/{name}")
    for source, destination in (("in", "in"), ("in", "in/out"), ("in", ""), ("in/", "in/"), ("out/clips", "out")):
        assert "is read" in refused("plan", f"s3://corpus/{source}", f"s3://corpus/{destination}", "--program", program)
    put("full/thesis.txt")
    assert "--force" in refused("plan", "s3://corpus/in", "s3://corpus/full", "--program", program)
    put("other/_manifest.jsonl")
    assert "no manifest" in refused("plan", "s3://corpus/in", "s3://corpus/other", "--program", program)
    # A prefix that only begins as another one is apart from it.
    assert "4 clips" in corpus("plan", "s3://corpus/in", "s3://corpus/in2", "--program", program)
    put("in2/clips/a.mp4")
    put("in2/clips/b.mp4/labels.mkv")
    put("in2/clips/c.mp4/clip.json", json.dumps(MARKER).encode())
    put("in2/clips/c.mp4/notes.txt")
    said = corpus("run", "s3://corpus/in2", "--program", program, expect=1)
    assert "1 clips done, 3 failed" in said
    for reason in ("a.mp4 is an object", "b.mp4 has no clip.json", "c.mp4 holds notes.txt"):
        assert reason in said
    for path, content in before.items():
        assert get(path) == content
    assert json.loads(get("in2/clips/d.mp4/clip.json"))["frames"] == 3
    # One that was killed while it published is done again.
    with bucket.open_output_stream("corpus/in2/clips/d.mp4/clip.json") as stream:
        stream.write(b'{"schema": 1, "unfinished": true}')
    assert "1 clips done" in corpus("run", "s3://corpus/in2", "--program", program, expect=1)
    # Another one works on it.
    from superpixel_corpus import lock, storage

    with lock.Lock(storage.place("s3://corpus/in2"), "20000101-000000-1", "run"):
        for words in (["run", "s3://corpus/in2"], ["plan", "s3://corpus/in", "s3://corpus/in2"]):
            assert f"process {os.getpid()} on" in refused(*words, "--program", program)
