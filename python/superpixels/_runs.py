# SPDX-License-Identifier: MPL-2.0
"""Masks of regions as run lengths, as COCO has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload
from typing import NamedTuple as _NamedTuple
from typing import TypedDict as _TypedDict

import numpy as _np

from ._helpers import _label_map, _left_out

if TYPE_CHECKING:
    from typing import Any, Literal

    from numpy.typing import NDArray

    from ._native import _Labels

__all__ = ["rle", "rles"]


class _CompressedRuns(_TypedDict):
    """Run lengths as pycocotools has them."""

    size: list[int]
    counts: bytes


class _ListedRuns(_TypedDict):
    """Run lengths as a list."""

    size: list[int]
    counts: list[int]


@overload
def rle(labels: _Labels, label: int, *, compress: Literal[True] = True) -> _CompressedRuns: ...
@overload
def rle(labels: _Labels, label: int, *, compress: Literal[False]) -> _ListedRuns: ...
@overload
def rle(labels: _Labels, label: int, *, compress: bool) -> _CompressedRuns | _ListedRuns: ...
def rle(labels: _Labels, label: int, *, compress: bool = True) -> _CompressedRuns | _ListedRuns:
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

    See Also
    --------
    rles : All regions at once, much faster than one by one.
    to_coco : A whole file of annotations.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> sp.rle(np.array([[0, 1], [0, 1]]), 1, compress=False)
    {'size': [2, 2], 'counts': [2, 2]}
    """
    labels = _label_map(labels)
    inside = (labels == label).ravel(order="F")
    changes = _np.flatnonzero(inside[1:] != inside[:-1]) + 1
    ends = _np.concatenate([[0] if inside[0] else [], changes, [inside.size]]).astype(_np.int64)
    counts = _np.diff(ends, prepend=0)
    size = list(labels.shape)
    if compress:
        return {"size": size, "counts": _compressed(counts, [0])[0]}
    return {"size": size, "counts": counts.tolist()}


@overload
def rles(labels: _Labels, *, compress: Literal[True] = True, outside: int | None = -1) -> dict[int, _CompressedRuns]: ...
@overload
def rles(labels: _Labels, *, compress: Literal[False], outside: int | None = -1) -> dict[int, _ListedRuns]: ...
@overload
def rles(
    labels: _Labels, *, compress: bool, outside: int | None = -1
) -> dict[int, _CompressedRuns] | dict[int, _ListedRuns]: ...
def rles(
    labels: _Labels, *, compress: bool = True, outside: int | None = -1
) -> dict[int, _CompressedRuns] | dict[int, _ListedRuns]:
    """The masks of all regions as run lengths, in one pass over the label map.

    Parameters
    ----------
    labels : ndarray of integers, shape (H, W)
        Label map with any values.
    compress : bool
        Counts as the bytes that pycocotools reads, instead of lists of integers.
    outside : int or None
        A label to leave out: -1 is what is outside of a mask. None leaves out none.

    Returns
    -------
    masks : dict of int to dict
        For each label, lowest first, what `rle` gives.

    Raises
    ------
    TypeError, ValueError
        Labels of another type or shape; an `outside` that is no integer.

    See Also
    --------
    rle : One region.
    to_coco : A whole file of annotations.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> masks = sp.rles(np.array([[4, 4, 9], [4, 9, 9]]), compress=False)
    >>> masks[4]["counts"], masks[9]["counts"]
    ([0, 3, 3], [3, 3])
    """
    labels = _label_map(labels)
    runs = _runs(labels, outside)
    if not runs.labels:
        return {}
    counts, begins = _counts(runs, labels.size)
    height, width = labels.shape
    if compress:
        texts = zip(runs.labels, _compressed(counts, begins))
        return {label: _CompressedRuns(size=[height, width], counts=text) for label, text in texts}
    every, ends = counts.tolist(), [*begins[1:], len(counts)]
    lists = zip(runs.labels, begins, ends)
    return {label: _ListedRuns(size=[height, width], counts=every[begin:end]) for label, begin, end in lists}


class _Runs(_NamedTuple):
    """Runs of equal labels down the columns, sorted by label and then by place."""

    labels: list[int]
    # Index of each label's first run.
    first: NDArray[_np.int64]
    # In pixels from the upper left corner, column by column.
    starts: NDArray[_np.int64]
    lengths: NDArray[_np.int64]


def _runs(labels: _Labels, outside: int | None) -> _Runs:
    """The runs of all labels but `outside`."""
    flat = labels.ravel(order="F")
    starts = _np.concatenate([[0], _np.flatnonzero(flat[1:] != flat[:-1]) + 1]).astype(_np.int64)
    lengths = _np.diff(starts, append=flat.size)
    values = flat[starts]
    left_out = _left_out(labels, outside)
    if left_out is not None:
        kept = values != left_out
        starts, lengths, values = starts[kept], lengths[kept], values[kept]
    order = _np.argsort(values, kind="stable")
    values = values[order]
    first = _np.flatnonzero(_np.concatenate([[True], values[1:] != values[:-1]]))[: len(values)]
    return _Runs(values[first].tolist(), first, starts[order], lengths[order])


def _counts(runs: _Runs, size: int) -> tuple[NDArray[_np.int64], list[int]]:
    """Lengths of runs outside and inside in turn, one label's behind the other's, and where each label's begin."""
    ends = runs.starts + runs.lengths
    gaps = runs.starts.copy()
    gaps[1:] -= ends[:-1]
    gaps[runs.first] = runs.starts[runs.first]
    number = _np.diff(runs.first, append=len(runs.starts))
    rest = size - ends[runs.first + number - 1]
    lengths = 2 * number + (rest > 0)
    begins = _np.cumsum(lengths) - lengths
    counts = _np.empty(int(lengths.sum()), _np.int64)
    at = _np.repeat(begins - 2 * runs.first, number) + 2 * _np.arange(len(gaps))
    counts[at], counts[at + 1] = gaps, runs.lengths
    counts[(begins + 2 * number)[rest > 0]] = rest[rest > 0]
    return counts, begins.tolist()


def _compressed(counts: NDArray[_np.int64], begins: list[int]) -> list[bytes]:
    """Masks in five bits a byte, from the third count on as differences to the count two before; as in maskApi.c of COCO."""
    place = _np.arange(len(counts)) - _np.repeat(begins, _np.diff(begins, append=len(counts)))
    values = counts.copy()
    values[2:] -= _np.where(place[2:] > 2, counts[:-2], 0)
    # A byte is the last one when its highest bit tells the sign of what remains.
    size, bound = _np.ones(len(counts), _np.int64), 16
    while (longer := (values >= bound) | (values < -bound)).any():
        size += longer
        bound <<= 5
    ends = _np.cumsum(size)
    text = _np.empty(int(ends[-1]), _np.uint8)
    for i in range(int(size.max())):
        has = size > i
        bits = values[has] >> 5 * i & 0x1F
        text[(ends - size)[has] + i] = 48 + (bits | _np.where(size[has] > i + 1, 0x20, 0))
    data, at = text.tobytes(), [*(ends - size)[begins].tolist(), len(text)]
    return [data[begin:end] for begin, end in zip(at[:-1], at[1:])]


def _areas(runs: _Runs) -> list[int]:
    """The number of pixels of each label."""
    return _np.add.reduceat(runs.lengths, runs.first).tolist() if runs.labels else []


def _boxes(runs: _Runs, height: int) -> NDArray[_np.int64]:
    """The smallest box around each label: x, y, width and height."""
    last = runs.starts + runs.lengths - 1
    x0, y0 = _np.divmod(runs.starts, height)
    x1, y1 = _np.divmod(last, height)
    # A run of more than one column reaches from the bottom of the first to the top of the last.
    y0, y1 = _np.where(x1 > x0, 0, y0), _np.where(x1 > x0, height - 1, y1)
    low = [_np.minimum.reduceat(side, runs.first) for side in (x0, y0)]
    high = [_np.maximum.reduceat(side, runs.first) for side in (x1, y1)]
    return _np.stack([*low, high[0] - low[0] + 1, high[1] - low[1] + 1], axis=1)
