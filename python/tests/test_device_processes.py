# SPDX-License-Identifier: MPL-2.0
"""The driver in this process, in children of it, and where there is none."""

import gc
import multiprocessing
import os
import subprocess
import sys

import numpy as np
import pytest
import superpixels as sp
from driver import Interface


def in_child(array, segmenter, labels, out):
    found = []
    for call in (
        lambda: sp.slic(array),
        lambda: segmenter.segment(array),
        lambda: labels.numpy(),
        lambda: labels.__dlpack__(),
        lambda: sp.Segmenter(device="cuda"),
    ):
        try:
            call()
            found.append("not refused")
        except RuntimeError as error:
            found.append(str(error))
    found.append(sp.slic(np.zeros((20, 30, 3), np.uint8)).max())
    del segmenter, labels
    gc.collect()
    out.put(found)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork(driver, picture):
    segmenter = sp.Segmenter()
    array = Interface(driver, picture)
    labels = segmenter.segment(array)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=in_child, args=(array, segmenter, labels, queue))
    child.start()
    *refused, most = queue.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0 and all("fork" in text for text in refused), refused
    assert most >= 0 and np.array_equal(labels.numpy(), segmenter.segment(array).numpy())


def run(code, **environment):
    """Returns the output of a new interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=os.path.dirname(__file__),
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_driver_is_loaded_when_it_is_needed(driver):
    code = """
import numpy as np, superpixels as sp
sp.Segmenter().segment(np.zeros((20, 30, 3), np.uint8)), sp.slic(np.zeros((20, 30), np.uint8))
loaded = lambda: any("libcuda" in line for line in open("/proc/self/maps"))
print(loaded())
sp.Segmenter(device="cuda")
print(loaded())"""
    assert run(code).split() == ["False", "True"]


def test_without_a_driver():
    code = """
import ctypes, numpy as np, superpixels as sp
try:
    ctypes.CDLL("libcuda.so.1")
    print("driver")
except OSError:
    try:
        sp.Segmenter(device="cuda")
    except RuntimeError as error:
        print(error)
    print(sp.Segmenter().segment(np.zeros((20, 30, 3), np.uint8)).shape)"""
    said = run(code, LD_LIBRARY_PATH="")
    if said.strip() == "driver":
        pytest.skip("a CUDA driver is installed")
    assert "libcuda.so.1" in said and "(20, 30)" in said


@pytest.mark.skipif("SUPERPIXEL_EMULATED" not in os.environ, reason="real devices do not fail on demand")
def test_a_device_that_fails():
    code = """
import gc, numpy as np, superpixels as sp
frame = np.zeros((40, 60, 3), np.uint8)
segmenter = sp.Segmenter(device="cuda")
try:
    for _ in range(20):
        segmenter.segment(frame)
    print("no failure")
except RuntimeError as error:
    print(error)
import os
os.environ["EMULATOR_FAIL_AFTER"] = "0"
del segmenter
gc.collect()
print(sp.Segmenter(device="cuda").segment(frame).max() >= 0)"""
    said = run(code, EMULATOR_FAIL_AFTER="60").splitlines()
    assert "CUDA failed" in said[0] and said[1] == "True", said
