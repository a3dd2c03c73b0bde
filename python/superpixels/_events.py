# SPDX-License-Identifier: MPL-2.0
"""Names of the kinds of events."""

from __future__ import annotations

from enum import IntEnum as _IntEnum

__all__ = ["EventKind"]


class EventKind(_IntEnum):
    """Kinds of events: values of the field `kind` of `Segmenter.events`.

    See Also
    --------
    Segmenter : Its `events` have these kinds.
    segment_video : Its frames have `events`, too.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> segmenter = sp.Segmenter(temporal=True, events=True)
    >>> for value in (0, 200):
    ...     labels = segmenter.segment(np.full((60, 80), value, np.uint8))
    >>> events = segmenter.events
    >>> bool((events["kind"] == sp.EventKind.CUT).any())
    True
    """

    BIRTH = 1
    """A region is new: no more than half of it was in one region that goes on."""
    SPLIT = 2
    """A region is new: more than half of it was in the region `other`, which goes on."""
    DEATH = 3
    """A region is gone: no more than half of it is in one region that was there before."""
    MERGE = 4
    """A region is gone: more than half of it is in the region `other`, which was there before."""
    CUT = 5
    """No region of the frame before goes on."""
