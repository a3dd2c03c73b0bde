# SPDX-License-Identifier: MPL-2.0
"""Label maps with smooth outlines."""

from __future__ import annotations

import operator as _operator
from typing import TYPE_CHECKING

import numpy as _np

from . import _native
from ._helpers import _label_map, _left_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._native import _LabelT

__all__ = ["smooth_labels"]

# What the library has for pixels outside of a mask, and so the most labels beside it.
_OUTSIDE = 65535
# Of Gaussians, in px.
_SCALES = 0.5, 6


def smooth_labels(
    labels: NDArray[_LabelT], smoothness: float = 2.0, *, outside: int | None = -1, threads: int = 0
) -> NDArray[_LabelT]:
    """A label map whose regions have smooth outlines.

    Parameters
    ----------
    labels : ndarray of integers, shape (H, W)
        Label map with any values, at most 65,535 different ones.
    smoothness : float
        Standard deviation [px] of the Gaussian, 0.5 to 6: stairs and hairs that are narrower go.
    outside : int or None
        A label that is in no region: its pixels stay as they are and count for no region. None for none.
    threads : int
        Threads of the CPU, at most one a core; 0 is as many as there are.

    Returns
    -------
    smoothed : ndarray, shape (H, W)
        The labels, of the type of `labels`. A region may fall into parts, and one of a few pixels may go; none is new.

    Raises
    ------
    TypeError, ValueError
        Labels of another type or shape, or too many; a `smoothness` out of range.

    See Also
    --------
    to_svg : A drawing with curves.
    slic : Its `refine` moves boundaries by the colors of pixels.

    Notes
    -----
    A pixel gets the label whose Gaussian weighs most there, which is a step of threshold dynamics (Merriman, Bence and Osher
    1992; Esedoglu and Otto 2015); of equal ones the lower. A region thinner than the Gaussian weighs as much more as a straight strip of its
    mean width needs to keep that. Corners lose about half of `smoothness` px. The video element draws these outlines with
    ``overlay=abstraction``, where it keeps corners of high contrast, too.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> labels = np.zeros((40, 40), int)
    >>> labels[20:] = 1
    >>> labels[19, 10] = 1
    >>> smoothed = sp.smooth_labels(labels)
    >>> smoothed[18:21, 10].tolist()
    [0, 0, 1]
    """
    whole: NDArray[_LabelT] = _label_map(labels)
    smoothness, threads = float(smoothness), _operator.index(threads)
    least, most = _SCALES
    if not least <= smoothness <= most:
        raise ValueError(f"smoothness must be {least} to {most}, got {smoothness:g}")
    if threads < 0:
        raise ValueError(f"threads must be 0 or more, got {threads}")
    left_out = _left_out(whole, outside)
    values, inverse = _np.unique(whole, return_inverse=True)
    if len(values) > _OUTSIDE:
        raise ValueError(f"labels must have at most {_OUTSIDE} different values, got {len(values)}")
    numbers: NDArray[_np.uint16] = inverse.astype(_np.uint16).reshape(whole.shape)
    if left_out is not None:
        numbers[whole == left_out] = _OUTSIDE
    smoothed = _np.empty(whole.shape, _np.uint16)
    _native.smooth_labels(numbers, smoothed, smoothness, threads)
    found: NDArray[_LabelT] = _np.append(values, values[:1])[_np.minimum(smoothed, len(values))]
    if left_out is not None:
        found[smoothed == _OUTSIDE] = left_out
    return found
