# SPDX-License-Identifier: MPL-2.0
"""Frames of video files with their regions, read by PyAV."""

from __future__ import annotations

import math as _math
import os as _os
from typing import TYPE_CHECKING

import numpy as _np

from ._events import EventKind as _EventKind
from ._images import SegmentedImage as _SegmentedImage
from ._native import Segmenter as _Segmenter

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from ._functions import Parameters
    from ._native import _Algorithm, _Events, _Motion

__all__ = ["Frame", "segment_video"]

# Ticks of a container's own times in a second.
_CONTAINER_TICKS = 1_000_000


class Frame(_SegmentedImage["NDArray[_np.uint16]"]):
    """A frame of a video file with its regions, as `segment_video` gives it.

    Attributes
    ----------
    index : int
        Number of the frame, from 0.
    seconds : float
        When it is shown, from the start of the file, which may be earlier than the first frame. NaN where the file has neither
        times nor a frame rate.
    pts : int, optional
        The time that the file has, in its stream's own unit.
    image : ndarray of uint8, shape (H, W, 3)
        The picture: red, green and blue, upright.
    labels : ndarray of uint16, shape (H, W)
        The label map: `regions`, `motion` and `neighbors` are in the order of labels.
    n_regions : int
        Number of regions.
    regions, motion, neighbors, edge_index, merges, events : ndarray
        As those of `Segmenter`.
    is_cut : bool
        No region of the frame before goes on.
    births, deaths : ndarray of uint32
        Track ids that are new since the frame before, and those that are gone.
    merged_into : dict of int to int
        Of the track ids that are gone those that merged: the one that each is part of now.

    See Also
    --------
    segment_video : Gives frames.
    SegmentedImage : The same of pictures by themselves.
    Segmenter : Says what the fields of the tables are.

    Examples
    --------
    >>> import superpixels as sp
    >>> frame = next(sp.segment_video("media/bigbuckbunny.mp4", n_segments=200))
    >>> frame.index, frame.seconds, frame.labels.shape, frame.is_cut
    (0, 0.0, (720, 1280), False)
    """

    def __init__(
        self,
        index: int,
        seconds: float,
        pts: int | None,
        image: NDArray[_np.uint8],
        labels: NDArray[_np.uint16],
        segmenter: _Segmenter[NDArray[Any]],
    ) -> None:
        merges = segmenter.merges if segmenter.parameters.get("levels") else None
        super().__init__(index, image, labels, segmenter.n_regions, segmenter.regions, segmenter.neighbors, merges)
        self.seconds = seconds
        self.pts = pts
        self.image: NDArray[_np.uint8] = image
        self.motion: _Motion = segmenter.motion
        self.events: _Events = segmenter.events
        self.is_cut: bool = segmenter.is_cut

    @property
    def births(self) -> NDArray[_np.uint32]:
        return _ids(self.events, (_EventKind.BIRTH, _EventKind.SPLIT))

    @property
    def deaths(self) -> NDArray[_np.uint32]:
        return _ids(self.events, (_EventKind.DEATH, _EventKind.MERGE))

    @property
    def merged_into(self) -> dict[int, int]:
        merges = self.events[self.events["kind"] == _EventKind.MERGE]
        return dict(zip(merges["track_id"].tolist(), merges["other"].tolist()))

    def __repr__(self) -> str:
        height, width = self.labels.shape
        return f"Frame({self.index}, {self.seconds:.3f} s, {width}x{height}, {self.n_regions} regions)"


def _ids(events: _Events, kinds: tuple[_EventKind, ...]) -> NDArray[_np.uint32]:
    return _np.asarray(events["track_id"][_np.isin(events["kind"], kinds)])


def segment_video(
    path: str | _os.PathLike[str],
    algorithm: _Algorithm = "slic",
    *,
    device: str | None = None,
    threads: int = 0,
    **parameters: Unpack[Parameters],
) -> Generator[Frame, None, None]:
    """Frames of a video file one after another, with regions that keep their track ids. Needs PyAV.

    Parameters
    ----------
    path : str or path
        The file, or whatever else PyAV opens.
    algorithm : {"slic", "lsc", "quickshift", "snic"}
        The algorithm.
    device : {"cpu", "cuda", "cuda:0", ...}, optional
        Where frames are segmented. Default: the CPU.
    threads : int
        Threads that segment, of which at most one a core is made; 0 is one for each core. The result is the same.
    **parameters
        As those of `Segmenter`; `temporal` has to be left on.

    Returns
    -------
    frames : generator of Frame
        Each frame: its picture, labels, tables and time. It has arrays of its own, so a list of frames keeps them all.

    Raises
    ------
    ImportError
        There is no PyAV, or one older than 14.
    OSError
        The file cannot be read.
    TypeError, ValueError
        A file that is no video or has none; a parameter as `Segmenter` refuses it.

    See Also
    --------
    Segmenter : The same for frames from elsewhere, and with other tables.
    segment_images : Pictures that do not follow each other.
    Frame : What is given.

    Notes
    -----
    The file is opened by the call, and closed with the last frame or when the generator is dropped, as at the end of a function
    whose loop was left by ``break``, by an error or by Ctrl-C. `contextlib.closing` closes it at a place of your choice.

    Clips of phones that are stored on their side are turned upright. Frames are converted by PyAV to 8 bits of RGB, so that
    labels differ from those of the element, which reads YCbCr as it is stored. Interlaced fields are not separated.

    Examples
    --------
    >>> import itertools
    >>> import superpixels as sp
    >>> for frame in itertools.islice(sp.segment_video("media/bigbuckbunny.mp4", n_segments=200), 3):
    ...     print(f"{frame.seconds:.2f}", len(frame.regions) > 100)
    0.00 True
    0.04 True
    0.08 True
    """
    try:
        import av  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise ImportError("segment_video needs PyAV: pip install av") from error
    if not hasattr(av.VideoFrame, "rotation"):
        raise ImportError(
            f"segment_video needs PyAV 14 or newer, which knows how clips are turned: pip install -U av (here {av.__version__})"
        )
    if not parameters.get("temporal", True):
        raise ValueError("temporal must be True for segment_video; the functions segment frames by themselves")
    parameters["temporal"] = True
    segmenter = _Segmenter(algorithm, device=device, threads=threads, events=True, **parameters)
    container = av.open(_os.fspath(path))
    if not container.streams.video:
        container.close()
        raise ValueError(f"{_os.fspath(path)} has no video")
    frames = _frames(container, segmenter)
    # From here on the generator closes the file, even one that is dropped before its first frame.
    next(frames)
    return frames


def _frames(container: Any, segmenter: _Segmenter) -> Generator[Any, None, None]:
    """Frames of an open file, which it closes, after a None."""
    with container:
        yield None
        stream = container.streams.video[0]
        # Several cores decode.
        stream.thread_type = "AUTO"
        start = None if container.start_time is None else container.start_time / _CONTAINER_TICKS
        for index, frame in enumerate(container.decode(stream)):
            if frame.time is not None:
                start = frame.time if start is None else start
                seconds = float(frame.time - start)
            else:
                seconds = float(index / stream.average_rate) if stream.average_rate else _math.nan
            image = frame.to_ndarray(format="rgb24")
            if frame.rotation:
                # Both count counterclockwise.
                image = _np.ascontiguousarray(_np.rot90(image, round(frame.rotation / 90)))
            labels = segmenter.segment(image)
            yield Frame(index, seconds, frame.pts, image, labels, segmenter)
