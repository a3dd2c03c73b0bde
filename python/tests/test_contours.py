# SPDX-License-Identifier: MPL-2.0
"""Polygons of regions: filled by the even-odd rule of plain scan lines they give the label map back."""

import numpy as np
import pytest
import superpixels as sp


def filled(polygons, shape):
    """How often each pixel is inside: 1 for a pixel of the region, 0 for others."""
    change = np.zeros((shape[0], shape[1] + 1), int)
    for ring in (ring for polygon in polygons for ring in polygon):
        for (x, y0), (x1, y1) in zip(ring[:-1].tolist(), ring[1:].tolist()):
            # The region is on the right: going up it begins there, going down it ends.
            if x == x1:
                change[min(y0, y1) : max(y0, y1), x] += 1 if y1 < y0 else -1
    return change.cumsum(1)[:, :-1]


def check(labels):
    contours = sp.contours(labels, outside=None)
    assert list(contours) == np.unique(labels).tolist() and all(type(label) is int for label in contours)
    for label, polygons in contours.items():
        assert np.array_equal(filled(polygons, labels.shape), labels == label)
        parts = [filled([polygon], labels.shape).astype(bool) for polygon in polygons]
        assert [int(np.flatnonzero(part)[0]) for part in parts] == sorted(int(np.flatnonzero(part)[0]) for part in parts)
        for i, (part, polygon) in enumerate(zip(parts, polygons)):
            assert hangs_together(part)
            # No other part touches this one along a side.
            others = np.logical_or.reduce([other for j, other in enumerate(parts) if j != i] or [np.zeros_like(part)])
            assert not (grown(part) & others).any()
            for j, ring in enumerate(polygon):
                check_ring(ring, is_outer=j == 0)


def check_ring(ring, is_outer):
    assert ring.dtype == np.int32 and ring.ndim == 2 and ring.shape[1] == 2 and len(ring) >= 5
    assert np.array_equal(ring[0], ring[-1])
    assert len(np.unique(ring[1:], axis=0)) == len(ring) - 1
    steps = np.diff(ring, axis=0)
    # Each turns by a right angle: no point lies on a straight line.
    assert ((steps == 0).sum(1) == 1).all()
    turns = np.concatenate([steps, steps[:1]])
    assert (turns[1:] * turns[:-1] == 0).all()
    x, y = ring.astype(int).T
    doubled = (x[:-1] * y[1:] - x[1:] * y[:-1]).sum()
    assert doubled > 0 if is_outer else doubled < 0


def grown(part):
    padded = np.pad(part, 1)
    return padded[:-2, 1:-1] | padded[2:, 1:-1] | padded[1:-1, :-2] | padded[1:-1, 2:]


def hangs_together(part):
    reached = np.zeros_like(part)
    reached.flat[np.flatnonzero(part)[0]] = True
    while True:
        more = reached | (grown(reached) & part)
        if np.array_equal(more, reached):
            return np.array_equal(reached, part)
        reached = more


def test_drawn_values():
    rng = np.random.default_rng(5)
    for _ in range(150):
        height, width, colors = rng.integers(1, 12, 3)
        check(rng.integers(-2, colors, (height, width)))


@pytest.mark.parametrize("size", [1, 2, 3, 8, 9])
def test_nested_rings(size):
    y, x = np.mgrid[: 2 * size, : 2 * size]
    distance = np.maximum(abs(2 * y - 2 * size + 1), abs(2 * x - 2 * size + 1)) // 2
    # One label for every second square: parts in holes of parts.
    for labels in (distance, distance % 2, (distance % 2).astype(bool).astype(np.uint8)):
        check(labels)
    assert len(sp.contours(distance % 2)) == min(size, 2)


def from_lowest(ring):
    """A ring from its uppermost point on, of those the one on the left: where it begins is not promised."""
    points = ring[:-1].tolist()
    first = min(range(len(points)), key=lambda i: points[i][::-1])
    return points[first:] + points[:first]


def test_known_polygons():
    labels = np.array([[5, 5, 5, 5], [5, 7, 5, 7], [5, 5, 7, 7]], np.uint8)
    contours = sp.contours(labels)
    assert {label: [[from_lowest(ring) for ring in polygon] for polygon in contours[label]] for label in contours} == {
        # The first pixel of 7 touches the others at a corner alone, and so does the hole the outer ring.
        5: [
            [
                [[0, 0], [4, 0], [4, 1], [3, 1], [3, 2], [2, 2], [2, 3], [0, 3]],
                [[1, 1], [1, 2], [2, 2], [2, 1]],
            ]
        ],
        7: [
            [[[1, 1], [2, 1], [2, 2], [1, 2]]],
            [[[3, 1], [4, 1], [4, 3], [2, 3], [2, 2], [3, 2]]],
        ],
    }


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, ">u2"])
def test_dtypes(dtype):
    labels = np.array([[0, 0, 1], [0, 9, 1]])
    want = sp.contours(labels)
    got = sp.contours(labels.astype(dtype))
    assert list(got) == list(want)
    assert all(np.array_equal(a[0][0], b[0][0]) for a, b in zip(got.values(), want.values()))
    high = np.array([[np.iinfo(dtype).max, np.iinfo(dtype).min]], dtype)
    assert list(sp.contours(high)) == [int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)]


def test_segmented(picture):
    check(sp.slic(picture, n_segments=60))
    check(sp.slic(picture, n_segments=300, start_label=-7, connectivity=False)[:60, ::2])


def test_region_at(picture):
    labels = sp.slic(picture)
    for y, x in [(0, 0), (121, 162), (60, 80)]:
        region = sp.region_at(labels, x, np.int64(y))
        assert region.label == labels[y, x] and np.array_equal(region.mask, labels == labels[y, x])
        x0, y0, x1, y1 = region.bounds
        assert region.mask[y0:y1, x0:x1].sum() == region.area == region.mask.sum()
        for edge in (region.mask[y0, :], region.mask[y1 - 1, :], region.mask[:, x0], region.mask[:, x1 - 1]):
            assert edge.any()
    for x, y in [(-1, 0), (0, -1), (163, 0), (0, 122)]:
        with pytest.raises(ValueError, match="outside"):
            sp.region_at(labels, x, y)
    for x, y in [(0.5, 0), (0, None), ("a", 0)]:
        with pytest.raises(TypeError, match="^[xy] must be an integer, got "):
            sp.region_at(labels, x, y)
