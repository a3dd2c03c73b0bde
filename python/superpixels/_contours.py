# SPDX-License-Identifier: MPL-2.0
"""Regions of a label map as polygons, in numpy."""

from __future__ import annotations

import numpy as _np

from ._helpers import _label_map

__all__ = ["contours"]


def contours(labels: _np.ndarray) -> dict[int, list[list[_np.ndarray]]]:
    """The outlines of all regions as polygons with holes.

    Parameters
    ----------
    labels : ndarray of integers, shape (H, W)
        Label map with any values.

    Returns
    -------
    polygons : dict of int to list of list of ndarray
        For each label, lowest first, its polygons: one for each 4-connected part, in the order of their first pixels, row by
        row. A polygon is a list of rings, the outer one first, then its holes. A ring is int32 of shape (K, 2): x and y of the
        corners where it turns, and the first one again at the end.

    Raises
    ------
    TypeError, ValueError
        Labels of another type or shape.

    Notes
    -----
    Points are corners of pixels: pixel (x, y) covers x to x + 1 and y to y + 1, so that the polygons of all labels cover the
    picture exactly, each pixel once. Outer rings go clockwise as seen on a screen, with y downward, and holes the other way;
    so the sum of x[i] y[i + 1] - x[i + 1] y[i] is twice the area of an outer ring, and negative for a hole. Rings touch
    neither themselves nor, but for corners, each other: polygons are valid as OGC's simple features.

    A polygon is what shapely takes as ``Polygon(polygon[0], polygon[1:])``, and with ``tolist()`` for each ring what GeoJSON
    has as coordinates.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> [[ring]] = sp.contours(np.full((2, 3), 7))[7]
    >>> ring.tolist()
    [[0, 0], [3, 0], [3, 2], [0, 2], [0, 0]]
    """
    labels = _label_map(labels)
    height, width = labels.shape
    values = None
    if labels.dtype.itemsize > 2:
        values, labels = _np.unique(labels, return_inverse=True)
    # What is around the picture is no region.
    padded = _np.full((height + 2, width + 2), _np.iinfo(_np.int32).min, _np.int32)
    padded[1:-1, 1:-1] = labels.reshape(height, width)
    sides = [_side(padded, direction) for direction in range(4)]
    starts, following = _linked(padded, sides)
    order, ends = _rings(following.tolist(), range(len(sides[0][0])))
    order, ends = _split(padded, _corners(starts[order], padded.shape[1]), order, ends)
    begins = _np.concatenate([[0], ends[:-1]])
    starts = starts[order]
    points = _corners(starts, padded.shape[1])
    outer = _outer_rings(padded, sides[0][0], starts, points, order, begins, ends)
    owners = padded.ravel()[starts[begins, 0]]
    return _grouped(owners if values is None else values[owners], points, order, begins, ends, outer)


# Directions along an outline, which has its region on the right: 0 goes right along a pixel's upper side, 1 down along its
# right one, 2 left along the lower one, 3 up along the left one.


def _side(padded, direction):
    """Straight stretches of outlines in one direction: their first and their last pixels, in raster order of a picture that
    is turned so that stretches go right along upper sides."""
    turned = _np.rot90(padded, direction)
    own, above = turned[1:-1, 1:-1], turned[:-2, 1:-1]
    edge = own != above
    # One goes on where the next pixel is of the region and has that side, too.
    joined = edge[:, 1:] & edge[:, :-1] & (own[:, 1:] == own[:, :-1])
    first, last = edge.copy(), edge.copy()
    first[:, 1:] &= ~joined
    last[:, :-1] &= ~joined
    # Indices of pixels in the padded picture, seen through the same turn.
    index = _np.rot90(_np.arange(padded.size, dtype=_np.int32).reshape(padded.shape), direction)[1:-1, 1:-1]
    return index[first], index[last]


def _linked(padded, sides):
    """All stretches as (first pixel, direction), and the number of the one that follows each."""
    width = padded.shape[1]
    flat = padded.ravel()
    # To the next pixel in each direction; what is on the left of an outline is one direction back.
    steps = [1, width, -1, -width]
    offsets = _np.cumsum([0] + [len(first) for first, _ in sides])
    numbers = []
    for direction, (first, _) in enumerate(sides):
        number = _np.empty(padded.size, _np.int32)
        number[first] = _np.arange(offsets[direction], offsets[direction + 1], dtype=_np.int32)
        numbers.append(number)
    following = []
    for direction, (_, last) in enumerate(sides):
        ahead = last + steps[direction]
        right = flat[ahead] != flat[last]
        # Where the pixel ahead is of the region, the one to the left of that is, too, or the stretch would go on.
        left = ahead + steps[direction - 1]
        following.append(_np.where(right, numbers[(direction + 1) % 4][last], numbers[direction - 1][left]))
    starts = _np.empty((offsets[-1], 2), _np.int32)
    for direction, (first, _) in enumerate(sides):
        starts[offsets[direction] : offsets[direction + 1], 0] = first
        starts[offsets[direction] : offsets[direction + 1], 1] = direction
    return starts, _np.concatenate(following)


def _rings(following, candidates):
    """The members of each cycle of a permutation, and where each ends, from the candidates on that are in none before."""
    order, ends = [], []
    for start in candidates:
        at = following[start]
        if at < 0:
            continue
        # Taken.
        following[start] = -1
        order.append(start)
        while at != start:
            order.append(at)
            following[at], at = -1, following[at]
        ends.append(len(order))
    return _np.array(order), _np.array(ends)


def _split(padded, points, order, ends):
    """Cuts rings in two wherever they touch themselves. Where two pixels of a region meet at a corner alone, its outlines have turned
    right; twice in one ring, that one could as well have turned left. Outlines cross nowhere, so cuts do not depend on each
    other."""
    upper, lower = padded[:-1], padded[1:]
    falling = (upper[:, :-1] == lower[:, 1:]) & (upper[:, :-1] != upper[:, 1:]) & (upper[:, :-1] != lower[:, :-1])
    rising = (upper[:, 1:] == lower[:, :-1]) & (upper[:, 1:] != upper[:, :-1]) & (upper[:, 1:] != lower[:, 1:])
    crossing = _np.flatnonzero((falling | rising)[points[:, 1], points[:, 0]])
    ring = _np.searchsorted(ends, crossing, side="right")
    x, y = points[crossing].astype(_np.int64).T
    place = (ring * padded.shape[0] + y) * padded.shape[1] + x
    by_place = _np.argsort(place, kind="stable")
    twice = _np.flatnonzero(place[by_place][1:] == place[by_place][:-1])
    if len(twice) == 0:
        return order, ends
    one, other = crossing[by_place[twice]], crossing[by_place[twice + 1]]
    begins = _np.concatenate([[0], ends[:-1]])
    cut = _np.zeros(len(ends), bool)
    cut[ring[by_place[twice]]] = True
    of_cut = _np.repeat(cut, ends - begins)
    before = _np.arange(-1, len(order) - 1)
    before[begins] = ends - 1
    before[one], before[other] = before[other], before[one]
    members, new_ends = _rings(before.tolist(), _np.flatnonzero(of_cut).tolist())
    lengths = _np.concatenate([(ends - begins)[~cut], _np.diff(new_ends, prepend=0)])
    # These cycles have been followed backwards.
    return _np.concatenate([order[~of_cut], order[_reversed(members, new_ends)]]), _np.cumsum(lengths)


def _reversed(members, ends):
    begins = _np.concatenate([[0], ends[:-1]])
    return members[_np.repeat(begins + ends - 1, ends - begins) - _np.arange(len(members))]


def _corners(starts, width):
    """Where stretches begin: x and y of the corner of their first pixel that is behind and on the left."""
    y, x = _np.divmod(starts[:, 0] - (width + 1), width)
    direction = starts[:, 1]
    return _np.stack([x + ((direction == 1) | (direction == 2)), y + (direction >= 2)], axis=1).astype(_np.int32)


def _outer_rings(padded, first, starts, points, order, begins, ends):
    """For each ring the number of the outer ring of its polygon, which may be itself. `first` are the first pixels of stretches to
    the right."""
    following = _np.arange(1, len(order) + 1)
    following[ends - 1] = begins
    x, y = points.astype(_np.int64).T
    areas = _np.add.reduceat(x * y[following] - x[following] * y, begins)
    outer = _np.arange(len(begins))
    holes = _np.flatnonzero(areas < 0)
    if len(holes) == 0:
        return outer.tolist()
    # From the uppermost pixel that lies on a hole up to where the region begins is another ring of the same part, which reaches
    # higher.
    above = _np.where(starts[:, 1] == 2, starts[:, 0], padded.size)
    lowest = _np.minimum.reduceat(above, begins)[holes]
    own, over = padded[1:], padded[:-1]
    begin = _np.maximum.accumulate(_np.where(own != over, _np.arange(1, len(padded))[:, None], 0), axis=0)
    rows, columns = _np.divmod(lowest, padded.shape[1])
    top = begin[rows - 1, columns] * padded.shape[1] + columns
    ring_of = _np.empty(len(order), _np.int64)
    ring_of[order] = _np.repeat(_np.arange(len(begins)), ends - begins)
    others = ring_of[_np.searchsorted(first, top, side="right") - 1].tolist()
    outer = outer.tolist()
    for i in _np.argsort(rows, kind="stable").tolist():
        outer[holes[i]] = outer[others[i]]
    return outer


def _grouped(owners, points, order, begins, ends, outer):
    """Rings as polygons, and polygons by label, each in the order of their first stretches to the right."""
    # A ring ends where it begins.
    lengths = ends - begins
    index = _np.arange(len(points) + len(begins)) - _np.repeat(_np.arange(len(begins)), lengths + 1)
    index[_np.cumsum(lengths + 1) - 1] = begins
    closed = points[index]
    cuts = _np.cumsum(lengths + 1).tolist()
    rings = [closed[start:end] for start, end in zip([0, *cuts], cuts)]
    polygons = {label: [] for label in _np.unique(owners).tolist()}
    owners = owners.tolist()
    of_ring, holes = {}, []
    for ring in _np.argsort(_np.minimum.reduceat(order, begins)).tolist():
        if outer[ring] == ring:
            of_ring[ring] = [rings[ring]]
            polygons[owners[ring]].append(of_ring[ring])
        else:
            holes.append(ring)
    for ring in holes:
        of_ring[outer[ring]].append(rings[ring])
    return polygons
