# SPDX-License-Identifier: MPL-2.0
"""Uses of label maps, in numpy: drawings, graphs, masks and files."""

from __future__ import annotations

import operator as _operator
import os as _os
import struct as _struct
import zlib as _zlib
from typing import TYPE_CHECKING, overload
from typing import NamedTuple as _NamedTuple
from typing import TypedDict as _TypedDict

import numpy as _np

from ._native import Segmenter as _Segmenter

if TYPE_CHECKING:
    from typing import Any, Literal

    from numpy.typing import NDArray

    from ._native import _Labels
    from ._sparse import SparseMatrix

__all__ = ["RegionAt", "adjacency", "boundaries", "mean_color", "region_at", "rle", "to_png16"]


def _whole(name: str, array: object) -> NDArray[Any]:
    """An array without a mask: numpy would drop that without a word."""
    if isinstance(array, _np.ma.MaskedArray):
        raise TypeError(f"{name} must not be a masked array; pass {name}.filled(0), or {name}.data for all pixels")
    return _np.asarray(array)


def _label_map(labels: object) -> NDArray[Any]:
    found = _whole("labels", labels)
    if found.ndim != 2 or found.dtype.kind not in "iu":
        raise TypeError(f"labels must be integers of shape (H, W), got {found.dtype} of shape {found.shape}")
    if found.size == 0:
        raise ValueError("labels must not be empty")
    return found


def _image_of(image: object, labels: NDArray[Any]) -> NDArray[_np.uint8]:
    found = _whole("image", image)
    if found.dtype != _np.uint8 or found.ndim not in (2, 3):
        raise TypeError(f"image must be uint8 of shape (H, W) or (H, W, C), got {found.dtype} of shape {found.shape}")
    if found.shape[:2] != labels.shape:
        raise ValueError(f"image is of size {found.shape[:2]}, labels are of {labels.shape}")
    return found


def boundaries(image: NDArray[_np.uint8], labels: _Labels, color: tuple[int, ...] = (255, 255, 0)) -> NDArray[_np.uint8]:
    """Draws the lines between regions.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W) or (H, W, C)
        The picture; it stays as it is.
    labels : ndarray of integers, shape (H, W)
        Label map.
    color : tuple of int
        Code values 0 to 255, as many as the image has channels. A fourth channel stays if there are three; for gray images
        the first one counts.

    Returns
    -------
    drawn : ndarray of uint8
        A copy with lines: a pixel is on a line if its right or lower neighbor has another label.

    Raises
    ------
    TypeError, ValueError
        Arrays of other types or shapes; a color of another length or out of range.
    """
    labels = _label_map(labels)
    drawn = _image_of(image, labels).copy()
    line = _np.zeros(labels.shape, bool)
    line[:, :-1] = labels[:, 1:] != labels[:, :-1]
    line[:-1] |= labels[1:] != labels[:-1]
    values = _np.asarray(color)
    if values.ndim != 1 or values.dtype.kind not in "iu" or values.size == 0 or values.min() < 0 or values.max() > 255:
        raise ValueError(f"color must be integers from 0 to 255, got {color!r}")
    if drawn.ndim == 2:
        drawn[line] = values[0]
        return drawn
    channels = drawn.shape[2]
    if channels == 1:
        values = values[:1]
    if len(values) != channels and (len(values), channels) != (3, 4):
        raise ValueError(f"color must have {channels} values for this image, got {color!r}")
    drawn[line, : len(values)] = values
    return drawn


def mean_color(image: NDArray[_np.uint8], labels: _Labels) -> NDArray[_np.uint8]:
    """Paints every region in its mean color.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W) or (H, W, C)
        The picture; it stays as it is.
    labels : ndarray of integers, shape (H, W)
        Label map with any values.

    Returns
    -------
    drawn : ndarray of uint8
        Of the image's shape: the mean code values, rounded half up. A fourth channel stays.

    Raises
    ------
    TypeError, ValueError
        Arrays of other types or shapes.
    """
    labels = _label_map(labels)
    image = _image_of(image, labels)
    flat = _dense(labels)
    counts = _np.bincount(flat)
    # Labels that no pixel has would divide by zero; nobody looks at their means.
    counts = _np.maximum(counts, 1)
    drawn = _np.array(image, order="C")
    planes = drawn.reshape(labels.size, -1)
    for channel in range(min(3, planes.shape[1])):
        # Sums of code values are integers that doubles hold exactly.
        sums = _np.bincount(flat, weights=planes[:, channel]).astype(_np.int64)
        planes[:, channel] = ((2 * sums + counts) // (2 * counts)).astype(_np.uint8)[flat]
    return drawn


def _dense(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels in raster order as small numbers from 0."""
    if labels.dtype == _np.uint16:
        return labels.ravel()
    dense: NDArray[Any] = _np.unique(labels, return_inverse=True)[1].ravel()
    return dense


def adjacency(labels: _Labels | _Segmenter) -> SparseMatrix:
    """Which regions touch, as a sparse matrix.

    Parameters
    ----------
    labels : ndarray of integers, shape (H, W), or Segmenter
        Label map with labels from 0, or a `Segmenter` after `segment`.

    Returns
    -------
    matrix : scipy.sparse.csr_matrix of int64, shape (N, N)
        Symmetric, with zeros on the diagonal: the length of the boundary that two regions share, in pairs of pixels side by
        side or one above the other. N is the highest label plus 1.

    Raises
    ------
    ImportError
        There is no SciPy.
    ValueError
        A label below 0, or of 2^24 or more: the matrix has a row for each.
    RuntimeError
        A `Segmenter` that has segmented nothing, or was made with ``neighbors=False``.
    """
    from scipy.sparse import coo_matrix  # type: ignore[import-untyped,unused-ignore]

    if isinstance(labels, _Segmenter):
        count = labels.n_regions
        pairs = labels.neighbors
        low, high, length = pairs["a"].astype(_np.int64), pairs["b"].astype(_np.int64), pairs["length"].astype(_np.int64)
    else:
        labels = _label_map(labels)
        if labels.min() < 0 or labels.max() >= 1 << 24:
            raise ValueError("labels must be 0 to 2^24 - 1; np.unique(labels, return_inverse=True) numbers them anew")
        count = int(labels.max()) + 1
        sides = [(labels[:, :-1], labels[:, 1:]), (labels[:-1], labels[1:])]
        one = _np.concatenate([side.ravel() for side, _ in sides]).astype(_np.int64)
        other = _np.concatenate([side.ravel() for _, side in sides]).astype(_np.int64)
        differ = one != other
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

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> region = sp.region_at(np.array([[0, 0, 1], [0, 1, 1]]), x=2, y=0)
    >>> region.label, region.area, region.bounds
    (1, 3, (1, 0, 3, 2))
    """
    labels = _label_map(labels)
    x, y = _operator.index(x), _operator.index(y)
    height, width = labels.shape
    if not (0 <= x < width and 0 <= y < height):
        raise ValueError(f"pixel ({x}, {y}) is outside of labels, which are {width} wide and {height} high")
    mask = labels == labels[y, x]
    columns, rows = _np.flatnonzero(mask.any(0)).tolist(), _np.flatnonzero(mask.any(1)).tolist()
    bounds = (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
    return RegionAt(int(labels[y, x]), int(_np.count_nonzero(mask)), bounds, mask)


class _CompressedRuns(_TypedDict):
    """Run lengths as pycocotools has them."""

    size: list[int]
    counts: bytes


class _Runs(_TypedDict):
    """Run lengths as a list."""

    size: list[int]
    counts: list[int]


@overload
def rle(labels: _Labels, label: int, *, compress: Literal[True] = True) -> _CompressedRuns: ...
@overload
def rle(labels: _Labels, label: int, *, compress: Literal[False]) -> _Runs: ...
@overload
def rle(labels: _Labels, label: int, *, compress: bool) -> _CompressedRuns | _Runs: ...
def rle(labels: _Labels, label: int, *, compress: bool = True) -> _CompressedRuns | _Runs:
    """The mask of one region as run lengths, as COCO has them.

    Parameters
    ----------
    labels : ndarray of integers, shape (H, W)
        Label map.
    label : int
        Which label. One that no pixel has gives an empty mask.
    compress : bool
        Counts as the bytes that pycocotools reads, instead of a list of integers.

    Returns
    -------
    mask : dict
        ``{"size": [H, W], "counts": bytes or list of int}``: lengths of runs of pixels outside and inside in turn, column by
        column, outside first.

    Raises
    ------
    TypeError, ValueError
        Labels of another type or shape.
    """
    labels = _label_map(labels)
    inside = (labels == label).ravel(order="F")
    changes = _np.flatnonzero(inside[1:] != inside[:-1]) + 1
    ends = _np.concatenate([[0] if inside[0] else [], changes, [inside.size]]).astype(_np.int64)
    counts = _np.diff(ends, prepend=0).tolist()
    return {"size": list(labels.shape), "counts": _compress(counts) if compress else counts}


def _compress(counts: list[int]) -> bytes:
    """Counts in five bits a byte, from the third on as differences to the count two before; as in maskApi.c of COCO."""
    text = bytearray()
    for i, count in enumerate(counts):
        value = count - counts[i - 2] if i > 2 else count
        while True:
            bits = value & 0x1F
            value >>= 5
            goes_on = value != (-1 if bits & 0x10 else 0)
            text.append(48 + (bits | 0x20 if goes_on else bits))
            if not goes_on:
                break
    return bytes(text)


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
    """
    labels = _label_map(labels)
    if labels.min() < 0 or labels.max() > 65535:
        raise ValueError("labels must be 0 to 65535")
    height, width = labels.shape
    # Each row begins with the number of its filter: none.
    rows = _np.zeros((height, 1 + 2 * width), _np.uint8)
    rows[:, 1:] = labels.astype(">u2").view(_np.uint8).reshape(height, 2 * width)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return _struct.pack(">I", len(data)) + kind + data + _struct.pack(">I", _zlib.crc32(kind + data))

    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        file.write(chunk(b"IHDR", _struct.pack(">IIBBBBB", width, height, 16, 0, 0, 0, 0)))
        file.write(chunk(b"IDAT", _zlib.compress(rows.tobytes(), 6)))
        file.write(chunk(b"IEND", b""))
