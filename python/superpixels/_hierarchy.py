# SPDX-License-Identifier: MPL-2.0
"""Levels of a segmentation: regions that are merged step by step."""

from __future__ import annotations

import math as _math
import operator as _operator
from typing import TYPE_CHECKING, overload

import numpy as _np

from . import _native
from ._helpers import _label_map, _whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal, TypeVar

    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from ._functions import _Parameters
    from ._native import _Algorithm, _Image, _Mask, _Merges, _Order, _OtherArray

    # A label map as it comes out.
    _MapT = TypeVar("_MapT", NDArray[_np.uint16], NDArray[_np.uint32], NDArray[_np.int32])

__all__ = ["cut", "hierarchy", "linkage"]

# Superpixels of the finest level where nobody says how many.
_N_SEGMENTS = 2000
# The label of no region in 16 bits.
_NO_LABEL = 65535


@overload
def hierarchy(
    image: _Image | _OtherArray,
    n_segments: int | None = None,
    *,
    algorithm: _Algorithm = "slic",
    mask: None = None,
    order: _Order = "rgb",
    data_range: tuple[float, float] | Literal["image", "stretch"] | None = None,
    bands: int | Sequence[int] | Literal["pca"] | None = None,
    channel_axis: int | None = None,
    threads: int = 0,
    **parameters: Unpack[_Parameters],
) -> tuple[NDArray[_np.uint16], _Merges]: ...
@overload
def hierarchy(
    image: _Image | _OtherArray,
    n_segments: int | None = None,
    *,
    algorithm: _Algorithm = "slic",
    mask: _Mask,
    order: _Order = "rgb",
    data_range: tuple[float, float] | Literal["image", "stretch"] | None = None,
    bands: int | Sequence[int] | Literal["pca"] | None = None,
    channel_axis: int | None = None,
    threads: int = 0,
    **parameters: Unpack[_Parameters],
) -> tuple[NDArray[_np.int32], _Merges]: ...
def hierarchy(
    image: _Image | _OtherArray,
    n_segments: int | None = None,
    *,
    algorithm: _Algorithm = "slic",
    mask: _Mask | None = None,
    order: _Order = "rgb",
    data_range: tuple[float, float] | Literal["image", "stretch"] | None = None,
    bands: int | Sequence[int] | Literal["pca"] | None = None,
    channel_axis: int | None = None,
    threads: int = 0,
    **parameters: Unpack[_Parameters],
) -> tuple[NDArray[Any], _Merges]:
    """All levels of a picture at once: a fine label map, and the steps in which its regions are merged down to one.

    Parameters
    ----------
    image : ndarray of numbers
        The picture, of shape (H, W), (H, W, 1), (H, W, 3) or (H, W, 4), as `slic` takes it.
    n_segments : int, optional
        Wanted number of superpixels in the finest level, about. Default: 2000, or as `superpixel_size` says.
    algorithm : {"slic", "lsc", "quickshift", "snic"}
        What the finest level is made by.
    mask : ndarray of bool or uint8, shape (H, W), optional
        Segment only pixels where it is not 0.
    order : {"rgb", "bgr"}
        Order of the channels.
    data_range : tuple of float, {"image", "stretch"}, optional
        What values are black and white, as for `slic`.
    bands : int, sequence of three int, or "pca", optional
        Which bands of an image of shape (H, W, B) count, as for `slic`.
    channel_axis : int, optional
        The axis of channels or bands, as for `slic`.
    threads : int
        Threads, of which at most one a core is made; 0 is one for each core. The result is the same.
    **parameters
        What the algorithm takes, as in `Segmenter`; with `n_regions` the finest level has exactly so many.

    Returns
    -------
    labels : ndarray of uint16 or int32, shape (H, W)
        The finest level, of numpy whatever the image is: labels from 0. With a mask they are int32, and -1 outside of it.
    merges : ndarray of shape (M,)
        One record a step, for `cut`; `Segmenter.merges` has the fields.

    Raises
    ------
    TypeError, ValueError
        As `Segmenter` and its `segment`.

    See Also
    --------
    cut : The label map of a level.
    linkage : The merges for SciPy.
    browse : A slider over the levels.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> image = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    >>> labels, merges = sp.hierarchy(image, 50)
    >>> len(np.unique(sp.cut(labels, merges, 7)))
    7
    """
    if n_segments is None and parameters.get("superpixel_size") is None:
        n_segments = _N_SEGMENTS
    sized: dict[str, Any] = {"n_segments": n_segments} if algorithm != "quickshift" else {}
    segmenter = _native.Segmenter(
        algorithm, device="cpu", order=order, threads=threads, regions=False, neighbors=False, levels=True,
        data_range=data_range, bands=bands, channel_axis=channel_axis, **sized, **parameters,
    )  # fmt: skip
    # Of images of other libraries int32 of the same.
    found: Any = segmenter.segment
    labels = _whole("labels", found(image, mask=mask)).astype(_np.uint16 if mask is None else _np.int32, copy=False)
    if labels.ndim != 2:
        raise ValueError("image must be one picture; call hierarchy for each of a batch")
    merges: Any = segmenter.merges
    return labels, merges


def cut(
    labels: _MapT,
    merges: NDArray[_np.void] | dict[str, NDArray[Any]],
    n_regions: int | None = None,
    *,
    height: float | None = None,
) -> _MapT:
    """A coarser level of a label map, by its number of regions or by height: exactly one of both is given.

    Parameters
    ----------
    labels : ndarray of uint16, uint32 or int32, shape (H, W)
        The label map that `merges` came with: labels from 0 to at most 65534, and in int32 -1 outside of a mask.
    merges : ndarray of shape (M,), or dict of ndarray
        All its steps: of `hierarchy`, or `Segmenter.merges`. A dict, as of a frame on a device, has to be copied to the host's
        memory, array by array.
    n_regions : int, optional
        Wanted number of regions; where they do not all touch, a few more are left. A label map that has fewer comes back with
        all that it has: `hierarchy` with a higher `n_segments` gives finer ones.
    height : float, optional
        All steps of at most this height are taken, as by SciPy's `fcluster` with `linkage` and ``criterion="distance"``.
        Heights say how unlike two regions are, and are comparable in one picture only; infinity takes all steps.

    Returns
    -------
    labels : ndarray of the same type, shape (H, W)
        Labels from 0 without gaps, in the order of the lowest label that a region had; what is outside of a mask stays.
        Without `refine` the same as `n_regions` in the call that made the superpixels; with it, regions of the refined map.

    Raises
    ------
    TypeError, ValueError
        Arrays of other types or shapes, or steps of another label map; both or none of `n_regions` and `height`, or a height
        that is not a number.

    See Also
    --------
    hierarchy : Gives labels and merges.
    linkage : The merges for SciPy.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> image = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    >>> labels, merges = sp.hierarchy(image, 50)
    >>> level = sp.cut(labels, merges, height=merges["height"][9])
    >>> int(labels.max() - level.max())
    10
    """
    fine = _label_map(labels)
    if fine.dtype not in (_np.uint16, _np.uint32, _np.int32):
        raise TypeError(f"labels must be uint16, uint32 or int32, as they come out, got {fine.dtype}")
    if fine.dtype == _np.uint32 and fine.max() >= _NO_LABEL:
        raise ValueError("labels must be below 65535: merges are listed of at most so many superpixels, as hierarchy makes them")
    if fine.dtype == _np.int32 and (fine.min() < -1 or fine.max() >= _NO_LABEL):
        raise ValueError("labels must start at 0, with -1 outside of a mask; subtract the start_label that they were made with")
    if (n_regions is None) == (height is None):
        raise TypeError("cut takes either n_regions or height")
    steps = _steps(merges)
    # Of what is outside -1 wraps to this label, which no region has.
    out = _np.array(fine, _np.uint16, order="C")
    regions = 0 if n_regions is None else _operator.index(n_regions)
    if regions < 0:
        raise ValueError(f"n_regions must be 0 or more, got {regions}")
    if height is not None:
        if _math.isnan(height):
            raise ValueError("height must be a number, got nan")
        taken = int(_np.count_nonzero(steps["height"].astype(_np.float64) <= height))
        inside = out[out != _NO_LABEL]
        regions = max(int(inside.max()) + 1 - taken, 0) if inside.size else 0
    _native.cut(out, _np.ascontiguousarray(steps).view(_np.uint8), min(regions, _NO_LABEL))
    level = out.astype(fine.dtype, copy=False)
    if fine.dtype == _np.int32:
        level[out == _NO_LABEL] = -1
    coarse: _MapT = level
    return coarse


def linkage(
    merges: NDArray[_np.void] | dict[str, NDArray[Any]], n_regions: int | None = None
) -> NDArray[_np.float64]:
    """The steps of a label map as a linkage matrix of `scipy.cluster.hierarchy`, as `fcluster` and `dendrogram` take it.

    Parameters
    ----------
    merges : ndarray of shape (M,), or dict of ndarray
        All steps of a label map: of `hierarchy`, or `Segmenter.merges`. A dict has to be in the host's memory.
    n_regions : int, optional
        Number of regions of the label map, N. Default: M + 1, which is right where all regions hang together. Pass
        ``labels.max() + 1`` where they may not, as with a mask.

    Returns
    -------
    matrix : ndarray of float64, shape (N - 1, 4)
        One row a step, in the same order: two clusters, the lower number first, their height, and how many regions of the
        label map they have together. Clusters 0 to N - 1 are these regions, and cluster N + i is what row i makes.

    Raises
    ------
    TypeError
        Something else than steps, or an `n_regions` that is no integer.
    ValueError
        Steps that are not of one label map of N regions.

    See Also
    --------
    hierarchy : Gives the merges.
    cut : The label map of a level, without SciPy.

    Notes
    -----
    Heights never fall from row to row, as SciPy needs: a height below that of a step before is raised to it, which changes
    nothing in the lists of this package. Equal heights keep their order.

    Where regions do not all touch, no step joins the last few pieces. Rows of infinite height join them here, the piece of the
    lowest label with each other one, as the matrix has to end in one cluster. No finite height cuts above them; `fcluster`
    takes such a matrix, `dendrogram` cannot draw it.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> from scipy.cluster.hierarchy import fcluster
    >>> image = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    >>> labels, merges = sp.hierarchy(image, 50)
    >>> clusters = fcluster(sp.linkage(merges), 7, criterion="maxclust")
    >>> clusters[labels].shape, len(np.unique(clusters))
    ((60, 80), 7)
    """
    steps = _steps(merges)
    number = len(steps) + 1 if n_regions is None else _operator.index(n_regions)
    if number < len(steps) + 1 or max(steps["a"].max(initial=0), steps["b"].max(initial=0)) >= number:
        raise ValueError(f"merges are not those of a label map of {number} regions; n_regions is labels.max() + 1")
    clusters = _Clusters(number)
    heights = _np.maximum.accumulate(steps["height"].astype(_np.float64))
    for a, b, height in zip(steps["a"].tolist(), steps["b"].tolist(), heights.tolist()):
        clusters.join(a, b, height)
    for label in range(number):
        if clusters.root(label) != clusters.root(0):
            clusters.join(0, label, _math.inf)
    return _np.array(clusters.rows, _np.float64).reshape(number - 1, 4)


class _Clusters:
    """Sets of regions that are joined one by one, numbered as SciPy does."""

    def __init__(self, number: int) -> None:
        self.rows: list[tuple[int, int, float, int]] = []
        self._above = list(range(number))
        self._number, self._size = list(range(number)), [1] * number

    def root(self, label: int) -> int:
        """The region that stands for the cluster of a region."""
        above = self._above
        while above[label] != label:
            above[label] = above[above[label]]
            label = above[label]
        return label

    def join(self, a: int, b: int, height: float) -> None:
        one, other = self.root(a), self.root(b)
        if one == other:
            raise ValueError(f"merges are not of one label map: {a} and {b} are joined twice")
        low, high = sorted((self._number[one], self._number[other]))
        size = self._size[one] + self._size[other]
        self._above[other] = one
        self._number[one], self._size[one] = len(self._above) + len(self.rows), size
        self.rows.append((low, high, height, size))


def _steps(merges: Any) -> NDArray[_np.void]:
    """Steps as structured array."""
    steps = _records(merges) if isinstance(merges, dict) else _np.asarray(merges)
    if steps.ndim != 1 or steps.dtype.names != _native.MERGE.names or steps.dtype.itemsize != _native.MERGE.itemsize:
        raise TypeError("merges must be what hierarchy or Segmenter.merges gives")
    return steps


def _records(columns: dict[str, NDArray[Any]]) -> NDArray[_np.void]:
    """Steps by columns as structured array."""
    kinds, names = _native.MERGE, _native.MERGE.names or ()
    if set(columns) != set(names):
        raise TypeError("merges must be what hierarchy or Segmenter.merges gives")
    arrays = {name: _np.asarray(column) for name, column in columns.items()}
    records = _np.empty(len(arrays[names[0]]), kinds)
    for name, array in arrays.items():
        if array.shape != records.shape or array.dtype.itemsize != kinds[name].itemsize:
            raise TypeError("merges must be what hierarchy or Segmenter.merges gives")
        records[name] = array if kinds[name].kind == "f" else array.view(kinds[name])
    return records
