# SPDX-License-Identifier: MPL-2.0
"""The boundaries of a label map as a planar graph: nodes where three or more regions meet, and the arcs between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as _np

from ._helpers import _left_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._native import _Labels

__all__ = ["arcs"]

# Sides of a corner in the order of their bits; the opposite of side i is i ^ 2.
_RIGHT, _DOWN, _LEFT, _UP = range(4)


def arcs(labels: _Labels, outside: int | None = -1) -> list[NDArray[_np.int32]]:
    """Every boundary once, those along the edge of the picture included.

    Parameters
    ----------
    labels : ndarray of integers, shape (H, W)
        Label map.
    outside : int or None
        A label that is in no region: it counts as what lies around the picture. None for none.

    Returns
    -------
    arcs : list of ndarray of int32, shape (K, 2)
        x and y of the corners where an arc begins, turns and ends. First those between nodes, by the node they begin at, row by
        row; then those that meet no node, whose last point is the first one again.
    """
    sides = _sides(labels, outside)
    places = _np.flatnonzero((sides != 0) & (sides != 1 << _RIGHT | 1 << _LEFT) & (sides != 1 << _UP | 1 << _DOWN))
    y, x = _np.divmod(places, sides.shape[1])
    points = _np.stack([x, y], axis=1).astype(_np.int32)
    of_vertex = sides.ravel()[places]
    walker = _Walker(of_vertex, _links(of_vertex, x))
    return [points[path] for path in walker.paths()]


def _sides(labels: _Labels, outside: int | None) -> NDArray[_np.uint8]:
    """For each corner of pixels, shape (H + 1, W + 1), a bit for each side on which a boundary leaves it."""
    left_out = _left_out(labels, outside)
    inside = _np.ones(labels.shape, bool) if left_out is None else labels != left_out
    height, width = labels.shape
    across, down = _np.zeros((height + 1, width), bool), _np.zeros((height, width + 1), bool)
    across[1:-1], down[:, 1:-1] = labels[1:] != labels[:-1], labels[:, 1:] != labels[:, :-1]
    across[0], across[-1], down[:, 0], down[:, -1] = inside[0], inside[-1], inside[:, 0], inside[:, -1]
    sides = _np.zeros((height + 1, width + 1), _np.uint8)
    sides[:, :-1] |= across * _np.uint8(1 << _RIGHT)
    sides[:, 1:] |= across * _np.uint8(1 << _LEFT)
    sides[:-1] |= down * _np.uint8(1 << _DOWN)
    sides[1:] |= down * _np.uint8(1 << _UP)
    return sides


def _links(of_vertex: NDArray[_np.uint8], x: NDArray[_np.int64]) -> list[list[int]]:
    """For each side, the vertex that a straight line from each vertex ends at; meaningless where there is no line."""
    count = len(of_vertex)
    rowwise = _np.arange(count)
    # Vertices come row by row, so the next one in a row is the next one; and likewise in a column after a stable sort.
    columnwise = _np.argsort(x, kind="stable")
    down, up = _np.empty(count, _np.int64), _np.empty(count, _np.int64)
    down[columnwise], up[columnwise] = _np.roll(columnwise, -1), _np.roll(columnwise, 1)
    return [(rowwise + 1).tolist(), down.tolist(), (rowwise - 1).tolist(), up.tolist()]


class _Walker:
    """Takes every line between two vertices once."""

    def __init__(self, of_vertex: NDArray[_np.uint8], links: list[list[int]]) -> None:
        # Sides of each vertex whose lines are not taken yet.
        self._open: list[int] = of_vertex.tolist()
        self._links = links
        degree = (of_vertex[:, None] >> _np.arange(4, dtype=_np.uint8) & 1).sum(1)
        self._is_node: list[bool] = (degree > 2).tolist()

    def paths(self) -> list[list[int]]:
        """All arcs as lists of vertices."""
        nodes = [vertex for vertex, is_node in enumerate(self._is_node) if is_node]
        paths = []
        for vertex in (*nodes, *range(len(self._open))):
            while self._open[vertex]:
                paths.append(self._path(vertex))
        return paths

    def _path(self, start: int) -> list[int]:
        path = [start]
        while True:
            vertex = path[-1]
            # The lowest bit that is set.
            side = (self._open[vertex] & -self._open[vertex]).bit_length() - 1
            following = self._links[side][vertex]
            self._open[vertex] &= ~(1 << side)
            self._open[following] &= ~(1 << (side ^ 2))
            path.append(following)
            if self._is_node[following] or following == start:
                return path
