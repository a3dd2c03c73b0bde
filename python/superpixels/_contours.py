# SPDX-License-Identifier: MPL-2.0
"""Regions of a label map as polygons."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as _np

from . import _native
from ._helpers import _label_map, _left_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._native import _Labels

__all__ = ["contours"]


def contours(labels: _Labels, *, outside: int | None = -1) -> dict[int, list[list[NDArray[_np.int32]]]]:
    """The outlines of all regions as polygons with holes.

    Parameters
    ----------
    labels : ndarray of integers, shape (H, W)
        Label map with any values.
    outside : int or None
        A label to leave out: -1 is what is outside of a mask. None leaves out none.

    Returns
    -------
    polygons : dict of int to list of list of ndarray
        For each label, lowest first, its polygons: one for each 4-connected part, in the order of their first pixels, row by
        row. A polygon is a list of rings, the outer one first, then its holes. A ring is int32 of shape (K, 2): x and y of the
        corners where it turns, and the first one again at the end.

    Raises
    ------
    TypeError, ValueError
        Labels of another type or shape; an `outside` that is no integer.

    See Also
    --------
    to_geojson : Polygons in coordinates of a map.
    rle : A region as run lengths.

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
    values, low = None, 0
    left_out = _left_out(labels, outside)
    if labels.dtype.itemsize > 2:
        low, high = int(labels.min()), int(labels.max())
        if high - low <= _np.iinfo(_np.int32).max:
            labels = labels - labels.dtype.type(low)
        else:
            values, inverse = _np.unique(labels, return_inverse=True)
            labels, low = inverse.reshape(labels.shape), 0
    # The area around the picture is no region.
    bordered = _np.full((labels.shape[0] + 2, labels.shape[1] + 2), _np.iinfo(_np.int32).min, _np.int32)
    bordered[1:-1, 1:-1] = labels
    polygons = _native.contours(bordered)
    if values is not None:
        polygons = {int(values[label]): of_label for label, of_label in polygons.items()}
    elif low != 0:
        polygons = {label + low: of_label for label, of_label in polygons.items()}
    if left_out is not None:
        polygons.pop(left_out, None)
    return polygons
