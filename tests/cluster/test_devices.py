# SPDX-License-Identifier: MPL-2.0
"""corpus.py on a machine with several devices, for which a library stands in: which of them the processes see."""

import subprocess
import sys

import pytest

from conftest import CORPUS, corpus, failures

# A driver of STAND_IN devices; of those that CUDA_VISIBLE_DEVICES names it knows the first ones.
DRIVER = """
#include <stdlib.h>
int cuInit(unsigned flags) { return getenv("STAND_IN_BROKEN") ? 999 : 0; }
int cuDeviceGetCount(int *count) {
    const char *names = getenv("CUDA_VISIBLE_DEVICES");
    int listed = 1;
    *count = atoi(getenv("STAND_IN"));
    for (; names && *names; names++) listed += *names == ',';
    if (names && listed < *count) *count = listed;
    return 0;
}
"""

# Does every clip once as many processes have come as tasks are expected, so that each has one.
PROGRAM = """#!/usr/bin/env python3
import json, os, sys, time

NOTES, TASKS = {notes!r}, {tasks}
if sys.argv[1] == "check":
    print(json.dumps({{"properties": dict(word.split("=") for word in sys.argv[2:]), "version": "0"}}))
    sys.exit()
with open(os.path.join(NOTES, str(os.getpid())), "w") as note:
    note.write(os.environ.get("CUDA_VISIBLE_DEVICES", "as it was"))
for line in sys.stdin:
    job = json.loads(line)
    end = time.monotonic() + 20
    while len(os.listdir(NOTES)) < TASKS and time.monotonic() < end:
        time.sleep(0.01)
    words = job["arguments"]
    os.makedirs(words[1])
    last = {{"schema": 1, "id": job["id"], "event": "done", "frames": 1, "width": 4, "height": 2, "tracks": 9,
            "regions": 20, "adjacency": 40, "short": False, "key": words[words.index("--key") + 1]}}
    with open(os.path.join(words[1], "clip.json"), "w") as marker:
        json.dump(last, marker)
    print(json.dumps(last), flush=True)
"""

TASKS = 4


@pytest.fixture
def seen(tmp_path, monkeypatch):
    """Runs four tasks on a machine with so many devices and returns what the process of each sees."""
    library = tmp_path / "library"
    library.mkdir()
    (library / "cuda.c").write_text(DRIVER)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library / "libcuda.so.1", library / "cuda.c"], check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    source = tmp_path / "source"
    source.mkdir()
    for number in range(2 * TASKS):
        (source / f"{number}.mkv").write_bytes(b"clip")

    def run(count, *words, properties=()):
        monkeypatch.setenv("STAND_IN", str(count))
        place = tmp_path / f"run{len(list(tmp_path.glob('run*')))}"
        notes, program, destination = place / "notes", place / "program", place / "out"
        notes.mkdir(parents=True)
        program.write_text(PROGRAM.format(notes=str(notes), tasks=TASKS))
        program.chmod(0o755)
        corpus("plan", source, destination, *(f"--set={word}" for word in properties), "--program", program)
        corpus("run", destination, "--program", program, "--jobs", TASKS, *words)
        assert failures(destination) == {}
        return sorted(note.read_text() for note in notes.iterdir())

    return run


def test_tasks_are_spread_over_all_devices(seen):
    assert seen(2) == ["0", "0", "1", "1"]
    assert seen(3) == ["0", "0", "1", "2"]
    assert seen(8) == ["0", "1", "2", "3"]


def test_one_device_or_none_is_left_to_the_processes(seen, monkeypatch):
    assert seen(1) == seen(0) == ["as it was"] * TASKS
    monkeypatch.setenv("STAND_IN_BROKEN", "1")
    assert seen(2) == ["as it was"] * TASKS


def test_the_environment_says_which_are_visible(seen, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, GPU-5")
    assert seen(8) == ["3", "3", "GPU-5", "GPU-5"]
    # CUDA leaves out what it does not know.
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0,7")
    assert seen(2) == ["0", "0", "1", "1"]
    for one in ("", "2"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", one)
        assert seen(8) == [one] * TASKS


def test_an_option_says_which(seen, monkeypatch):
    assert seen(8, "--devices", "5,GPU-2") == ["5", "5", "GPU-2", "GPU-2"]
    assert seen(8, "--devices", "6") == ["6"] * TASKS
    assert seen(8, "--devices=") == [""] * TASKS
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert seen(8, "--devices", "1,2") == ["1", "1", "2", "2"]


def test_a_device_of_the_plan_stays(seen, tmp_path):
    assert seen(2, properties=["cuda-device-id=1"]) == ["as it was"] * TASKS
    assert seen(2, properties=["cuda-device-id=-1"]) == ["0", "0", "1", "1"]
    (out,) = tmp_path.glob("run0/out")
    for words, reason in (
        (["--devices", "0"], "cuda-device-id"),
        (["--devices", "0", "--ray", "auto"], "Ray gives"),
        (["--devices", "0,0"], "each once"),
        (["--devices", "0,"], "each once"),
    ):
        command = [sys.executable, CORPUS, "run", out, "--program", tmp_path / "run0/program", *words]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode != 0
        assert reason in done.stderr
