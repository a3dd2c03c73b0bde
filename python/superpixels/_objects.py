# SPDX-License-Identifier: MPL-2.0
"""Objects from boxes, masks, points and scribbles: masks of whole regions, in one picture or followed through a video."""

from __future__ import annotations

import math as _math
import operator as _operator
from typing import TYPE_CHECKING
from typing import NamedTuple as _NamedTuple

import numpy as _np

from . import _native
from ._helpers import _label_map, _whole
from ._images import SegmentedImage as _SegmentedImage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from numpy.typing import NDArray

    from ._native import Segmenter, _Labels, _Mask

    # A detection as the library takes it: id, box, pixels of a mask for each label, labels inside and outside.
    _Said = tuple[int | None, list[int] | None, list[int] | None, list[int], list[int]]

__all__ = ["Detection", "Objects", "TrackedObject", "select"]

# Superpixels of a picture where nobody says how many.
_N_SEGMENTS = 1000
# Boxes may reach so far over the frame.
_FARTHEST = 1 << 24


class Detection(_NamedTuple):
    """What is known of an object in a frame: a box, a mask, points or scribbles, one of these.

    Parameters
    ----------
    box : sequence of four float, optional
        Around the object: x0, y0, x1, y1 in px, the latter two exclusive. It may reach over the edge.
    mask : ndarray of bool or uint8, shape (H, W), optional
        Not 0 where the object is. It gets the regions that the mask covers by more than half.
    points : sequence of (x, y), optional
        Pixels in the object, or out of it where `point_labels` says so.
    point_labels : sequence of int, optional
        1 for a point in the object and 0 for one outside, for each point. Default: all are in it.
    scribbles : ndarray of integers, shape (H, W), optional
        Above 0 in the object, below 0 outside, 0 where nothing is said.
    id : int, optional
        The `TrackedObject` that this is about. Without it a box is about the object that it fits best, if their intersection
        over union is 0.3 or more, and all else begins an object.

    See Also
    --------
    Objects : Takes detections.
    select : The same for one picture.

    Examples
    --------
    >>> import superpixels as sp
    >>> sp.Detection(box=(10, 10, 50, 40)).box
    (10, 10, 50, 40)
    """

    box: Sequence[float] | None = None
    mask: _Mask | None = None
    points: Sequence[Sequence[int]] | None = None
    point_labels: Sequence[int] | None = None
    scribbles: NDArray[Any] | None = None
    id: int | None = None


class TrackedObject(_NamedTuple):
    """An object in a frame, as `Objects` gives it.

    Attributes
    ----------
    id : int
        Its name over time, from 1 on.
    labels : ndarray of uint32, shape (R,)
        Labels of its regions, in order. None while it is hidden.
    area : int
        Number of pixels.
    bounds : tuple of int
        x0, y0, x1, y1 of the box around its regions, the latter two exclusive. All 0 while it is hidden.
    mask : ndarray of bool, shape (H, W)
        True for each of its pixels.

    See Also
    --------
    Objects : Gives objects.
    rle : A mask as run lengths.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> image = np.zeros((60, 80, 3), np.uint8)
    >>> image[20:40, 30:60] = 255
    >>> segmenter = sp.Segmenter(n_segments=50, temporal=True)
    >>> labels = segmenter.segment(image)
    >>> [found] = sp.Objects().update(labels, segmenter, [sp.Detection(box=(25, 15, 65, 45))])
    >>> found.id, bool(found.mask[30, 45]), bool(found.mask[5, 5])
    (1, True, False)
    """

    id: int
    labels: NDArray[_np.uint32]
    area: int
    bounds: tuple[int, int, int, int]
    mask: NDArray[_np.bool_]


class Objects:
    """Follows objects through a video, on the tables of its frames.

    An object is begun by a `Detection`, in any frame, and followed from there by track ids, colors, positions and motion of its
    regions; later detections correct it. What disappears behind something is found again for some frames. An object that was not seen for a
    while ends, and all end at a cut. ``docs/objects.md`` has the method and figures.

    See Also
    --------
    Detection : What is known of an object in a frame.
    TrackedObject : What is found.
    select : An object of one picture.
    Segmenter : Segments the frames; with ``temporal=True`` regions keep their track ids.
    segment_video : Frames of a file.

    Examples
    --------
    A box in the first frame of a film, followed:

    >>> import itertools
    >>> import superpixels as sp
    >>> objects = sp.Objects()
    >>> for frame in itertools.islice(sp.segment_video("media/bigbuckbunny.mp4", n_segments=500), 3):
    ...     seen = [sp.Detection(box=(230, 250, 535, 565))] if frame.index == 0 else []
    ...     found = objects.update(frame.labels, frame, seen)
    >>> [one.id for one in found]
    [1]
    """

    def __init__(self) -> None:
        self._tracker = _native.ObjectTracker()

    def update(
        self, labels: _Labels, tables: Segmenter[NDArray[Any]] | _SegmentedImage[Any], detections: Iterable[Detection] = ()
    ) -> list[TrackedObject]:
        """The objects of the next frame.

        Parameters
        ----------
        labels : ndarray of integers, shape (H, W)
            The frame's label map, labels from 0, and -1 outside of a mask.
        tables : Segmenter, Frame or SegmentedImage
            Has the frame's `regions` and `neighbors`, and `motion` if it is a video: what has given `labels`. In the host's memory.
        detections : iterable of Detection
            What is known in this frame; the first about an object counts.

        Returns
        -------
        objects : list of TrackedObject
            In the order of their ids. A region is in one of them at most.

        Raises
        ------
        TypeError, ValueError
            Tables of another frame or on a device; a detection that says nothing, or two things; a box outside of the frame; an id of
            no known object. Nothing is changed then.
        RuntimeError
            A `Segmenter` that has segmented nothing, or was made without `regions` or `neighbors`.
        """
        labels = _label_map(labels)
        regions = _table("regions", tables.regions, _native.REGION)
        count = len(regions)
        if labels.max() >= count or labels.min() < -1:
            raise ValueError(
                f"labels must be those of tables, 0 to {count - 1}, and -1 outside of a mask; got {labels.min()} to {labels.max()}"
            )
        found = self._tracker.update(
            (labels.shape[1], labels.shape[0]),
            _bytes(regions),
            _bytes(_motion(tables)),
            _bytes(_table("neighbors", tables.neighbors, _native.NEIGHBOR)),
            [_said(detection, labels, count) for detection in detections],
        )
        objects = []
        for name, own, area, bounds in found:
            # The last one, -1, is outside of the mask.
            inside = _np.zeros(count + 1, _np.bool_)
            inside[own] = True
            x0, y0, x1, y1 = bounds
            objects.append(TrackedObject(name, own, area, (x0, y0, x1, y1), inside[labels]))
        return objects

    def end(self, id: int) -> bool:
        """Ends an object.

        Parameters
        ----------
        id : int
            Its id.

        Returns
        -------
        known : bool
            Whether there was one.
        """
        return self._tracker.end(_operator.index(id))

    def reset(self) -> None:
        """Ends all objects. Ids go on."""
        self._tracker.reset()


def select(
    image: Any,
    *,
    box: Sequence[float] | None = None,
    mask: _Mask | None = None,
    points: Sequence[Sequence[int]] | None = None,
    point_labels: Sequence[int] | None = None,
    scribbles: NDArray[Any] | None = None,
    n_segments: int = _N_SEGMENTS,
) -> NDArray[_np.bool_]:
    """A mask of the object in a box, under points or scribbles: whole superpixels, by an exact minimum cut.

    Parameters
    ----------
    image : ndarray of numbers, or SegmentedImage
        The picture, as `slic` takes one, or one that is segmented already, as `segment_images` or `segment_video` give it.
    box : sequence of four float, optional
        Around the object: x0, y0, x1, y1 in px, the latter two exclusive.
    mask : ndarray of bool or uint8, shape (H, W), optional
        Not 0 where the object is, about: regions that it covers by more than half.
    points : sequence of (x, y), optional
        Pixels in the object, or out of it where `point_labels` says so.
    point_labels : sequence of int, optional
        1 for a point in the object and 0 for one outside, for each point. Default: all are in it.
    scribbles : ndarray of integers, shape (H, W), optional
        Above 0 in the object, below 0 outside, 0 where nothing is said.
    n_segments : int
        Number of superpixels, about, of a picture that is not segmented: more follow finer outlines.

    Returns
    -------
    mask : ndarray of bool, shape (H, W)
        True in the object. Where nothing fits, none is.

    Raises
    ------
    TypeError, ValueError
        As `Objects.update`, and what `slic` raises.

    See Also
    --------
    Objects : The same in a video.
    region_at : One region.

    Notes
    -----
    With points or scribbles and none outside, regions at the picture's edge are taken to be outside.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> image = np.zeros((60, 80, 3), np.uint8)
    >>> image[20:40, 30:60] = 255
    >>> found = sp.select(image, box=(25, 15, 65, 45), n_segments=50)
    >>> bool(found[30, 45]), bool(found[5, 5])
    (True, False)
    """
    detection = Detection(box, mask, points, point_labels, scribbles)
    tables: Any
    if isinstance(image, _SegmentedImage):
        labels, tables = _whole("image.labels", image.labels), image
    else:
        tables = _native.Segmenter("slic", device="cpu", n_segments=n_segments)
        labels = _whole("labels", tables.segment(image))
        if labels.ndim != 2:
            raise ValueError("image must be one picture; call select for each of a batch")
    found = Objects().update(labels, tables, [detection])
    return found[0].mask if found else _np.zeros(labels.shape, _np.bool_)


def _table(name: str, table: Any, dtype: _np.dtype[_np.void]) -> NDArray[_np.void]:
    if not isinstance(table, _np.ndarray) or table.dtype != dtype:
        raise TypeError(f"{name} of tables must be in the host's memory, as a Segmenter of the CPU gives them; segment the frame there")
    return table


def _motion(tables: Any) -> NDArray[_np.void]:
    """The motion of regions; of pictures by themselves none."""
    if isinstance(tables, _native.Segmenter) and not tables.parameters.get("temporal"):
        return _np.empty(0, _native.MOTION)
    return _table("motion", getattr(tables, "motion", _np.empty(0, _native.MOTION)), _native.MOTION)


def _bytes(table: NDArray[_np.void]) -> NDArray[_np.uint8]:
    return _np.ascontiguousarray(table).view(_np.uint8)


def _said(detection: Detection, labels: NDArray[Any], count: int) -> _Said:
    """What the library takes of a detection."""
    if not isinstance(detection, Detection):
        raise TypeError(f"detections must be Detection, as sp.Detection(box=(x0, y0, x1, y1)), got {type(detection).__name__}")
    box, mask, points, point_labels, scribbles, name = detection
    given = [key for key in ("box", "mask", "points", "scribbles") if getattr(detection, key) is not None]
    if len(given) != 1:
        raise ValueError(f"a detection needs one of box, mask, points and scribbles, got {' and '.join(given) or 'none'}")
    if point_labels is not None and points is None:
        raise ValueError("point_labels needs points")
    about = None if name is None else _operator.index(name)
    if about is not None and not 0 < about < 1 << 32:
        raise ValueError(f"id must be that of an object, got {about}")
    if box is not None:
        return about, _box(box), None, [], []
    if mask is not None:
        inside = labels[(_of_frame("mask", mask, labels) != 0) & (labels >= 0)]
        return about, None, _np.bincount(inside, minlength=count).tolist(), [], []
    if points is not None:
        votes = _votes_of_points(points, point_labels, labels, count)
    else:
        signs = _of_frame("scribbles", scribbles, labels)
        votes = _votes(labels[signs > 0], count) - _votes(labels[signs < 0], count)
    if not (votes > 0).any():
        raise ValueError(f"{given[0]} must have something in the object: no region has more of it inside than outside")
    return about, None, None, _np.flatnonzero(votes > 0).tolist(), _np.flatnonzero(votes < 0).tolist()


def _box(box: Sequence[float]) -> list[int]:
    values = [float(value) for value in box]
    if len(values) != 4 or not all(map(_math.isfinite, values)):
        raise ValueError(f"box must be x0, y0, x1, y1, got {tuple(box)}")
    x0, y0, x1, y1 = (max(min(value, _FARTHEST), -_FARTHEST) for value in values)
    return [_math.floor(x0), _math.floor(y0), _math.ceil(x1), _math.ceil(y1)]


def _of_frame(name: str, values: object, labels: NDArray[Any]) -> NDArray[Any]:
    """An array of whole numbers for each pixel."""
    whole = _whole(name, values)
    if whole.shape != labels.shape or whole.dtype.kind not in "biu":
        raise ValueError(f"{name} must be of whole numbers and of shape {labels.shape}, got {whole.dtype} of shape {whole.shape}")
    return whole


def _votes(labels: NDArray[Any], count: int) -> NDArray[_np.int64]:
    """Pixels of each label."""
    return _np.bincount(labels[labels >= 0], minlength=count).astype(_np.int64)


def _votes_of_points(
    points: Sequence[Sequence[int]], point_labels: Sequence[int] | None, labels: NDArray[Any], count: int
) -> NDArray[_np.int64]:
    """For each label its points inside, less those outside."""
    places = [tuple(_operator.index(value) for value in point) for point in points]
    signs = [1] * len(places) if point_labels is None else [_operator.index(value) for value in point_labels]
    if len(signs) != len(places) or not set(signs) <= {0, 1}:
        raise ValueError(f"point_labels must be 1 or 0 for each of {len(places)} points, got {signs}")
    votes = _np.zeros(count, _np.int64)
    height, width = labels.shape
    for place, sign in zip(places, signs):
        if len(place) != 2 or not (0 <= place[0] < width and 0 <= place[1] < height):
            raise ValueError(f"points must be (x, y) in a frame {width} wide and {height} high, got {place}")
        label = labels[place[1], place[0]]
        if label >= 0:
            votes[label] += 1 if sign else -1
    return votes
