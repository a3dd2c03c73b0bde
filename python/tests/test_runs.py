# SPDX-License-Identifier: MPL-2.0
"""Run lengths of all regions are those of each, and what pycocotools makes."""

import time

import numpy as np
import pytest
import superpixels as sp


def check(labels, outside=None):
    for compress in (True, False):
        masks = sp.rles(labels, compress=compress, outside=outside)
        assert list(masks) == [label for label in np.unique(labels).tolist() if label != outside]
        assert all(type(label) is int for label in masks)
        for label, mask in masks.items():
            assert mask == sp.rle(labels, label, compress=compress)


def test_drawn_values():
    rng = np.random.default_rng(8)
    for _ in range(300):
        height, width, colors = rng.integers(1, 14, 3)
        labels = rng.integers(-2, colors, (height, width))
        check(labels)
        check(labels, outside=int(rng.integers(-3, colors + 1)))


def test_segmented(picture):
    labels = sp.slic(picture, n_segments=200)
    check(labels)
    mask = np.hypot(*np.indices(labels.shape)) < 100
    masked = sp.slic(picture, mask=mask)
    assert -1 in sp.rles(masked, outside=None) and -1 not in sp.rles(masked)
    check(masked, outside=-1)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, ">u2", ">i4"])
def test_dtypes(dtype):
    labels = np.array([[0, 0, 1], [0, 9, 1]], dtype)
    check(labels)
    info = np.iinfo(dtype)
    check(np.array([[info.max, info.min]], dtype), outside=int(info.max))
    # No pixel can have these.
    for outside in (int(info.max) + 1, int(info.min) - 1):
        assert list(sp.rles(labels, outside=outside)) == list(sp.contours(labels, outside=outside)) == [0, 1, 9]


@pytest.mark.parametrize("call", [sp.rles, sp.contours])
def test_outside(call):
    labels = np.array([[7, 7, 7], [7, 2, 7], [3, 3, 3]])
    every, without = call(labels), call(labels, outside=7)
    assert list(every) == [2, 3, 7] and list(without) == [2, 3]
    assert str({label: every[label] for label in (2, 3)}) == str(without)
    assert call(labels[:1], outside=7) == {}
    for bad in (1.5, "7", np.zeros(2)):
        with pytest.raises(TypeError):
            call(labels, outside=bad)


def test_long_counts():
    # Counts and differences of up to five bytes.
    labels = np.zeros((5000, 3000), np.uint8)
    labels[17, 5] = labels[4000, 1400] = 1
    labels[:3, 2999] = 1
    check(labels)


def test_pycocotools(picture):
    masks = pytest.importorskip("pycocotools.mask")
    labels = sp.slic(picture)
    for label, mask in sp.rles(labels).items():
        assert mask == masks.encode(np.asfortranarray(labels == label, np.uint8))


def test_time():
    # 1,000 regions at 1920x1080 take 0.03 s; the bound is wide, for machines at work.
    y, x = np.mgrid[:1080, :1920]
    labels = (((y + x % 7) * 25 // 1090) * 40 + (x + y % 5) * 40 // 1930).astype(np.uint16)
    assert len(np.unique(labels)) > 950
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        sp.rles(labels)
        times.append(time.perf_counter() - begin)
    assert min(times) < 1
