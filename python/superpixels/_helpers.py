# SPDX-License-Identifier: MPL-2.0
"""Uses of label maps, in numpy: graphs, single regions and files."""

from __future__ import annotations

import operator as _operator
import os as _os
from typing import TYPE_CHECKING
from typing import NamedTuple as _NamedTuple

import numpy as _np

from ._native import Segmenter as _Segmenter
from ._png import encode as _encode_png

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from ._native import _Labels
    from ._sparse import SparseMatrix

__all__ = ["RegionAt", "adjacency", "region_at", "to_png16"]


def _whole(name: str, array: object) -> NDArray[Any]:
    """An array without a mask: numpy would drop that without a word."""
    if isinstance(array, _np.ma.MaskedArray):
        raise TypeError(f"{name} must not be a masked array; pass {name}.filled(0), or {name}.data for all pixels")
    # Arrays of other libraries that have no `__array__` are seen by DLPack.
    if hasattr(array, "__dlpack__") and not hasattr(array, "__array__"):
        return _np.from_dlpack(array)
    return _np.asarray(array)


def _label_map(labels: object, *, batch: bool = False) -> NDArray[Any]:
    """A label map, or where a batch is taken one for each picture."""
    whole = _whole("labels", labels)
    if whole.ndim not in ((2, 3) if batch else (2,)) or whole.dtype.kind not in "iu":
        shapes = "(H, W) or (N, H, W)" if batch else "(H, W)"
        raise TypeError(f"labels must be integers of shape {shapes}, got {whole.dtype} of shape {whole.shape}")
    if whole.size == 0 and not (batch and whole.shape[0] == 0 and whole.ndim == 3):
        raise ValueError("labels must not be empty")
    return whole


def _left_out(labels: _Labels, outside: int | None) -> int | None:
    """The label that is in no region; None where no pixel can have it."""
    if outside is None:
        return None
    value, bounds = _operator.index(outside), _np.iinfo(labels.dtype)
    return value if bounds.min <= value <= bounds.max else None


def adjacency(labels: _Labels | _Segmenter) -> SparseMatrix:
    """Which regions touch, as a sparse matrix.

    Parameters
    ----------
    labels : ndarray of integers, shape (H, W), or Segmenter
        Label map with labels from 0, and -1 outside of a mask; or a `Segmenter` after `segment`.

    Returns
    -------
    matrix : scipy.sparse.csr_matrix of int64, shape (N, N)
        Symmetric, with zeros on the diagonal: the length of the boundary that two regions share, in pairs of pixels side by
        side or one above the other. N is the highest label plus 1. What is outside of a mask is left out.

    Raises
    ------
    ImportError
        There is no SciPy.
    ValueError
        A label below -1, or of 2^24 or more: the matrix has a row for each.
    RuntimeError
        A `Segmenter` that has segmented nothing, or was made with ``neighbors=False``.

    See Also
    --------
    Segmenter : Its `edge_index` has the same pairs for graph networks.
    contours : Outlines of regions.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> sp.adjacency(np.array([[0, 0, 1], [2, 2, 1]])).toarray().tolist()
    [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    """
    from scipy.sparse import coo_matrix  # type: ignore[import-untyped,unused-ignore]

    if isinstance(labels, _Segmenter):
        count = labels.n_regions
        pairs = labels.neighbors
        low, high, length = pairs["a"].astype(_np.int64), pairs["b"].astype(_np.int64), pairs["length"].astype(_np.int64)
    else:
        whole = _label_map(labels)
        if whole.min() < -1 or whole.max() >= 1 << 24:
            raise ValueError("labels must be 0 to 2^24 - 1, or -1 outside of a mask; np.unique(labels, return_inverse=True) numbers them anew")
        count = int(whole.max()) + 1
        sides = [(whole[:, :-1], whole[:, 1:]), (whole[:-1], whole[1:])]
        one = _np.concatenate([side.ravel() for side, _ in sides]).astype(_np.int64)
        other = _np.concatenate([side.ravel() for _, side in sides]).astype(_np.int64)
        differ = (one != other) & (one >= 0) & (other >= 0)
        one, other = one[differ], other[differ]
        low, high = _np.minimum(one, other), _np.maximum(one, other)
        length = _np.ones(len(low), _np.int64)
    rows, columns = _np.concatenate([low, high]), _np.concatenate([high, low])
    # Entries of the same place add up.
    matrix: SparseMatrix = coo_matrix((_np.concatenate([length, length]), (rows, columns)), shape=(count, count)).tocsr()
    return matrix


class RegionAt(_NamedTuple):
    """The region of a pixel, as `region_at` gives it.

    Attributes
    ----------
    label : int
        The label.
    area : int
        Number of pixels.
    bounds : tuple of int
        x0, y0, x1, y1 of the smallest box around the region, the latter two exclusive.
    mask : ndarray of bool, shape (H, W)
        True for each of its pixels.

    See Also
    --------
    region_at : Gives it.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> sp.region_at(np.array([[0, 1], [0, 1]]), x=1, y=0).bounds
    (1, 0, 2, 2)
    """

    label: int
    area: int
    bounds: tuple[int, int, int, int]
    mask: NDArray[_np.bool_]


def region_at(labels: _Labels, x: int, y: int) -> RegionAt:
    """The region that a pixel belongs to: all pixels of its label, whether they hang together or not.

    Parameters
    ----------
    labels : ndarray of integers, shape (H, W)
        Label map with any values.
    x, y : int
        The pixel: its column from the left and its row from the top, from 0.

    Returns
    -------
    region : RegionAt
        Its ``label``, ``area``, ``bounds`` and ``mask``.

    Raises
    ------
    TypeError
        Labels of another type or shape; an `x` or `y` that is no integer.
    ValueError
        Empty labels; a pixel outside of the label map. Negative indices do not count from the end.

    See Also
    --------
    rle : A region as run lengths.
    contours : Outlines of regions.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> region = sp.region_at(np.array([[0, 0, 1], [0, 1, 1]]), x=2, y=0)
    >>> region.label, region.area, region.bounds
    (1, 3, (1, 0, 3, 2))
    """
    labels = _label_map(labels)
    for name, place in (("x", x), ("y", y)):
        if not hasattr(place, "__index__"):
            raise TypeError(f"{name} must be an integer, got {place!r}; of a click on a picture in axes of matplotlib, round({name})")
    x, y = _operator.index(x), _operator.index(y)
    height, width = labels.shape
    if not (0 <= x < width and 0 <= y < height):
        raise ValueError(f"pixel ({x}, {y}) is outside of labels, which are {width} wide and {height} high")
    mask = labels == labels[y, x]
    columns, rows = _np.flatnonzero(mask.any(0)).tolist(), _np.flatnonzero(mask.any(1)).tolist()
    bounds = (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
    return RegionAt(int(labels[y, x]), int(_np.count_nonzero(mask)), bounds, mask)


def to_png16(path: str | _os.PathLike[str], labels: _Labels) -> None:
    """Writes a label map as a 16-bit gray PNG, which keeps labels exactly.

    Parameters
    ----------
    path : str or path
        The file to write.
    labels : ndarray of integers, shape (H, W)
        Label map, labels from 0 to 65535.

    Raises
    ------
    TypeError, ValueError
        Labels of another type or shape, or out of range.
    OSError
        The file cannot be written.

    See Also
    --------
    show : A picture to look at, which `save` writes.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np, superpixels as sp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sp.to_png16(os.path.join(folder, "labels.png"), np.array([[0, 1], [2, 65535]]))
    """
    labels = _label_map(labels)
    if labels.min() < 0 or labels.max() > 65535:
        raise ValueError(
            "labels must be 0 to 65535; with a mask labels with start_label=1 are, which have 0 outside of it, and labels of 32 bits "
            "can be written by np.save or as a TIFF"
        )
    with open(path, "wb") as file:
        file.write(_encode_png(labels.astype(_np.uint16)))
