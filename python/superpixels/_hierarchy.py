# SPDX-License-Identifier: MPL-2.0
"""Levels of a segmentation: regions that are merged step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as _np

from . import _native
from ._helpers import _label_map

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from ._functions import _Parameters
    from ._native import _Algorithm, _Image, _Mask, _Merges, _Order

__all__ = ["cut", "hierarchy"]


def hierarchy(
    image: _Image,
    n_segments: int = 2000,
    *,
    algorithm: _Algorithm = "slic",
    mask: _Mask | None = None,
    order: _Order = "rgb",
    threads: int = 0,
    **parameters: Unpack[_Parameters],
) -> tuple[NDArray[_np.uint16], _Merges]:
    """All levels of a picture at once: a fine label map, and the steps in which its regions are merged down to one.

    Parameters
    ----------
    image : ndarray of uint8, uint16 or float32
        The picture, of shape (H, W), (H, W, 1), (H, W, 3) or (H, W, 4), as `slic` takes it.
    n_segments : int
        Wanted number of superpixels in the finest level, about.
    algorithm : {"slic", "lsc", "quickshift", "snic"}
        What the finest level is made by.
    mask : ndarray of bool or uint8, shape (H, W), optional
        Segment only pixels where it is not 0.
    order : {"rgb", "bgr"}
        Order of the channels.
    threads : int
        Threads, of which at most one a core is made; 0 is one for each core. The result is the same.
    **parameters
        What the algorithm takes, as in `Segmenter`; with `n_regions` the finest level has exactly so many.

    Returns
    -------
    labels : ndarray of uint16, shape (H, W)
        The finest level.
    merges : ndarray of shape (M,)
        One record a step, for `cut`; `Segmenter.merges` has the fields.

    Raises
    ------
    TypeError, ValueError
        As `Segmenter` and its `segment`.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> image = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    >>> labels, merges = sp.hierarchy(image, 50)
    >>> len(np.unique(sp.cut(labels, merges, 7)))
    7
    """
    segmenter = _native.Segmenter(
        algorithm, device="cpu", order=order, threads=threads, regions=False, neighbors=False, levels=True,
        n_segments=n_segments if algorithm != "quickshift" else None, **parameters,
    )  # fmt: skip
    labels = segmenter.segment(image, mask=mask)
    if labels.ndim != 2:
        raise ValueError("image must be one picture; call hierarchy for each of a batch")
    return labels, segmenter.merges


def cut(
    labels: NDArray[_np.uint16], merges: NDArray[_np.void] | dict[str, NDArray[Any]], n_regions: int
) -> NDArray[_np.uint16]:
    """A coarser level of a label map.

    Parameters
    ----------
    labels : ndarray of uint16, shape (H, W)
        The label map that `merges` came with.
    merges : ndarray of shape (M,), or dict of ndarray
        All its steps: of `hierarchy`, or `Segmenter.merges`. A dict, as of a frame on a device, has to be copied to the host's memory,
        array by array.
    n_regions : int
        Wanted number of regions; where they do not all touch, a few more are left.

    Returns
    -------
    labels : ndarray of uint16, shape (H, W)
        Labels from 0 without gaps, in the order of the lowest label that a region had; 65535 outside of a mask, as before. Without
        `refine` the same as `n_regions` in the call that made the superpixels; with it, regions of the refined map.

    Raises
    ------
    TypeError, ValueError
        Arrays of other types or shapes, or steps of another label map.
    """
    found = _label_map(labels)
    if found.dtype != _np.uint16:
        raise TypeError(f"labels must be uint16, as they come out, got {found.dtype}")
    records = _records(merges) if isinstance(merges, dict) else _np.asarray(merges)
    if records.ndim != 1 or records.dtype.names != _native.MERGE.names or records.dtype.itemsize != _native.MERGE.itemsize:
        raise TypeError("merges must be what hierarchy or Segmenter.merges gives")
    out = _np.array(found, _np.uint16, order="C")
    _native.cut(out, _np.ascontiguousarray(records).view(_np.uint8), n_regions)
    return out


def _records(columns: dict[str, NDArray[Any]]) -> NDArray[_np.void]:
    """Steps by columns as structured array."""
    kinds = _native.MERGE
    names = kinds.names or ()
    if set(columns) != set(names):
        raise TypeError("merges must be what hierarchy or Segmenter.merges gives")
    arrays = {name: _np.asarray(column) for name, column in columns.items()}
    records = _np.empty(len(arrays[names[0]]), kinds)
    for name, array in arrays.items():
        if array.shape != records.shape or array.dtype.itemsize != kinds[name].itemsize:
            raise TypeError("merges must be what hierarchy or Segmenter.merges gives")
        records[name] = array if kinds[name].kind == "f" else array.view(kinds[name])
    return records
