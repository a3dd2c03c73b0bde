# SPDX-License-Identifier: MPL-2.0
"""Without memory calls raise MemoryError: no panic, no end of the process."""

import subprocess
import sys

import numpy as np
import pytest
import superpixels as sp

resource = pytest.importorskip("resource")

# Each call with less memory than it needs, and with more and more until it works.
CHILD = """
import resource, sys
import numpy as np, superpixels as sp

kind, more = sys.argv[1], int(sys.argv[2])
side = 1500
image = np.zeros((side, side, 3), np.uint8)
image[::7] = 200
floats = np.zeros((side, side), np.float32)
mask = np.ones((side, side), bool)
fine = (np.arange(side * side, dtype=np.int32) // 97).reshape(side, side)

def clip():
    segmenter = sp.Segmenter(temporal=True, levels=True, n_segments=1000, threads=2)
    segmenter.segment(image)
    segmenter.regions, segmenter.merges, segmenter.edge_index

calls = {
    "slic": lambda: sp.slic(image, 1000, threads=2),
    "start_label": lambda: sp.slic(image, 1000, start_label=1, threads=2),
    "mask": lambda: sp.slic(image, 1000, mask=mask, threads=2),
    "floats": lambda: sp.slic(floats, 1000, threads=2),
    "snic": lambda: sp.snic(image, 1000, threads=2),
    "batch": lambda: sp.slic(np.broadcast_to(image, (3, *image.shape)), 1000, threads=2),
    "refine": lambda: sp.slic(image, 1000, refine=2, n_regions=500, threads=2),
    "segmenter": clip,
    "wide": lambda: sp.slic(image, superpixel_size=5, threads=2),
    "wide_segmenter": lambda: sp.Segmenter(superpixel_size=5, threads=2).segment(image, mask=mask),
    "contours": lambda: sp.contours(fine),
}
sp.slic(image[:50, :50], 10, threads=2)
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (more << 20),) * 2)
try:
    calls[kind]()
    print("done")
except MemoryError:
    print("no memory")
"""
KINDS = ["slic", "start_label", "mask", "floats", "snic", "batch", "refine", "segmenter", "wide", "wide_segmenter", "contours"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of memory are Linux's here")
@pytest.mark.parametrize("kind", KINDS)
def test_without_memory(kind):
    found = []
    for more in (1, 3, 7, 12, 20, 33, 50, 80, 130, 210, 400, 800):
        child = subprocess.run(
            [sys.executable, "-c", CHILD, kind, str(more)], capture_output=True, text=True, timeout=120, check=False
        )
        # numpy's and Python's own, and that of threads that cannot be started.
        said = child.stdout.strip() or child.stderr.strip().splitlines()[-1]
        assert child.returncode == 0 or "set fewer threads" in child.stderr, (more, child.returncode, child.stderr[-600:])
        found.append(said)
        if said == "done":
            break
    assert found[-1] == "done" and found[0] != "done", found


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
