# SPDX-License-Identifier: MPL-2.0
"""Without memory calls raise MemoryError: no panic, no end of the process."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import superpixels as sp

resource = pytest.importorskip("resource")

# Calls with too little memory, each in a process of its own: a fork, which has loaded the modules. The parent makes no thread.
CHILD = """
import ctypes, json, os, resource, sys, tempfile
import numpy as np, superpixels as sp

kind, side = sys.argv[1], int(sys.argv[2])
image = np.zeros((side, side, 3), np.uint8)
image[::7] = 200
floats = np.zeros((side, side), np.float32)
mask = np.ones((side, side), bool)
fine = (np.arange(side * side, dtype=np.int32) // 97).reshape(side, side)

def clip():
    segmenter = sp.Segmenter(temporal=True, levels=True, n_segments=1000, iterations=2, threads=2)
    segmenter.segment(image)
    segmenter.regions, segmenter.merges, segmenter.edge_index

calls = {
    "slic": lambda: slic(image, 1000),
    "start_label": lambda: slic(image, 1000, start_label=1),
    "mask": lambda: slic(image, 1000, mask=mask),
    "floats": lambda: slic(floats, 1000),
    "snic": lambda: sp.snic(image, 1000, threads=2),
    "batch": lambda: slic(np.broadcast_to(image, (3, *image.shape)), 1000),
    "refine": lambda: slic(image, 1000, refine=2, n_regions=500),
    "segmenter": clip,
    "wide": lambda: slic(image, superpixel_size=4),
    "wide_segmenter": lambda: sp.Segmenter(superpixel_size=4, iterations=2, threads=2).segment(image, mask=mask),
    "contours": lambda: sp.contours(fine),
}

def slic(image, *n_segments, **more):
    return sp.slic(image, *n_segments, iterations=2, threads=2, **more)

def limited(call, more):
    now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + (more << 20),) * 2)
    call()
    return "done"

def failing(call, others):
    "Without the allocation that follows so many others that grow with the image; what is smaller is of plans and pools of threads."
    memory = ctypes.CDLL(None)
    memory.fail_after(ctypes.c_long(others), ctypes.c_long(8192 if side > 1000 else 4096))
    try:
        call()
    finally:
        failed = memory.has_failed()
    return "went without" if failed else "done"

def attempt(way, call, number):
    "The status of a process, and what it prints and says of errors."
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = os.fork()
        if not process:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            try:
                slic(image[:50, :50], 10)
                try:
                    said = way(call, number)
                except MemoryError:
                    said = "no memory"
                print(said, flush=True)
                os._exit(0)
            except BaseException:
                sys.excepthook(*sys.exc_info())
                sys.stderr.flush()
            os._exit(1)
        _, status = os.waitpid(process, 0)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
        return status, *texts

way = globals()[sys.argv[3]]
for number in map(int, sys.argv[4:]):
    status, out, err = attempt(way, calls[kind], number)
    print(json.dumps([number, status, out, err]), flush=True)
    if out.strip() == "done":
        break
"""
KINDS = ["slic", "start_label", "mask", "floats", "snic", "batch", "refine", "segmenter", "wide", "wide_segmenter", "contours"]


# More than 65,535 superpixels of 4 px.
WIDE_SIDE = 1050


def attempts(kind, side, way, numbers, **environment):
    command = [sys.executable, "-c", CHILD, kind, str(side), way, *map(str, numbers)]
    environment = {**os.environ, **environment}
    parent = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert parent.returncode == 0, parent.stderr
    return map(json.loads, parent.stdout.splitlines())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of memory are Linux's here")
@pytest.mark.parametrize("kind", KINDS)
def test_without_memory(kind):
    # More and more until it works.
    found = []
    for more, status, out, err in attempts(kind, WIDE_SIDE, "limited", (1, 4, 10, 22, 40, 100, 200, 400, 800)):
        # numpy's and Python's own, and that of threads that cannot be started. A thread that has started and gets no memory for its
        # local data is ended by glibc, with the process, before any code of ours.
        said = out.strip() or err.strip().splitlines()[-1]
        by_glibc = "memory for thread-local data" in err or "failed to register TLS destructor: out of memory" in err
        assert status == 0 or "set fewer threads" in err or by_glibc, (more, status, err[-600:])
        found.append(said)
    assert found[-1] == "done" and found[0] != "done", found


@pytest.fixture(scope="module")
def failing_memory(tmp_path_factory):
    """A library to preload, which lets one allocation fail."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler or not sys.platform.startswith("linux"):
        pytest.skip("a C compiler on Linux makes the memory that fails")
    library = tmp_path_factory.mktemp("memory") / "failing.so"
    source = Path(__file__).with_name("failing_memory.c")
    made = subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source], capture_output=True, text=True, check=False)
    if made.returncode:
        # musl has other names.
        pytest.skip(f"no memory that fails: {made.stderr[-300:]}")
    return library


# `contours` asks for all its memory at once before it takes it in parts, which one that fails alone cannot show.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "contours"])
def test_one_allocation_fails(kind, failing_memory):
    # Of the many of an image of this size some, with SUPERPIXEL_EVERY_ALLOCATION all.
    is_wide = kind.startswith("wide")
    numbers = [*range(0, 4000, 1 if os.environ.get("SUPERPIXEL_EVERY_ALLOCATION") else 61 if is_wide else 13)]
    found = set()
    for number, status, out, err in attempts(kind, WIDE_SIDE if is_wide else 400, "failing", numbers, LD_PRELOAD=str(failing_memory)):
        assert status == 0, (number, status, err[-3000:])
        found.add(out.strip())
    # Where there is another way, such as a pool without a thread, no memory is no error.
    assert {"no memory", "done"} <= found <= {"no memory", "went without", "done"}


def test_huge_batches():
    # Label maps of 2^45 bytes.
    many = np.broadcast_to(np.uint8(3), (1 << 40, 2, 8, 1))
    for call in (sp.slic, sp.snic, sp.Segmenter().segment):
        with pytest.raises(MemoryError):
            call(many)


def test_arrays_that_lie():
    class Endless(np.ndarray):
        @property
        def base(self):
            return self

    class Large(np.ndarray):
        nbytes = property(lambda self: 1 << 40)
        __array_interface__ = property(lambda self: {"data": (0, False)})

    plain = np.arange(9 * 11 * 4, dtype=np.uint8).reshape(9, 11, 4)
    for kind in (Endless, Large):
        # Three of four channels, for which it matters what is around.
        for channels in (slice(3), slice(1, None), slice(None, None, -1)):
            assert np.array_equal(sp.slic(plain.view(kind)[..., channels], 4), sp.slic(plain[..., channels], 4))


def test_masked_arrays_are_refused(picture):
    inside = np.ma.masked_array(np.ones(picture.shape[:2], bool), False)
    with pytest.raises(TypeError, match="mask must not be a masked array"):
        sp.slic(picture, mask=inside)
    with pytest.raises(TypeError, match="out must not be a masked array"):
        sp.slic(picture, out=np.ma.zeros(picture.shape[:2], np.uint16))
