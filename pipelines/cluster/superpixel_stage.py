# SPDX-License-Identifier: MPL-2.0
"""A stage for those who run Ray Data, NeMo Curator or the like already: one clip in, rows of regions out.

    rows = ray.data.from_items([{"path": path} for path in paths]).map_batches(
        SuperpixelStage, fn_constructor_kwargs={"superpixel_size": 24}, batch_size=1, num_cpus=1, concurrency=8)
    rows.write_parquet("regions")

It uses the Python package `superpixels`, not GStreamer: frames come from PyAV or from a function of yours. docs/corpus.md says when
corpus.py is the better choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction

import numpy as np

# Frames whose rows are handed on together: some megabytes at usual sizes.
TOGETHER = 64


# Fields of the regions and of their motion, with the columns of `regions.parquet` that their components become.
# Layouts, written by tests/texts/records.rs.
REGION = (
    ("track_id", np.uint32, ("track_id",)),
    ("area", np.uint32, ("area",)),
    ("centroid", np.float32, ("cx", "cy")),
    ("mean_rgb", np.uint8, ("mean_r", "mean_g", "mean_b")),
    ("mean_lab", np.float32, ("lab_l", "lab_a", "lab_b")),
    ("bounds", np.uint16, ("x0", "y0", "x1", "y1")),
)
MOTION = (
    ("velocity", np.float32, ("vx", "vy")),
    ("age", np.uint32, ("age",)),
)
# End of the layouts.

# Ticks of the clock of MPEG streams in a second, and after how many it begins again.
CLOCK, WRAP = 90_000, 1 << 33


def decode(path: str) -> Iterator[tuple[int, np.ndarray]]:
    """Times in ns and RGB frames (H, W, 3) of a video file, upright, through PyAV on one thread.

    Times count from the start of the clip, the earliest of its streams; -1 where there is none.
    """
    import av

    with av.open(path) as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_count = 1
        times = Times(stream.time_base, _start(container, stream))
        for frame in container.decode(stream):
            time = times.of(frame.pts, frame.time_base)
            yield time, upright(frame.to_ndarray(format="rgb24"), _matrix(frame))


def _start(container: object, stream: object) -> Fraction | None:
    """When the clip starts, in seconds of its clock. A container says so in microseconds, a stream exactly."""
    if container.start_time is None:
        return None if stream.start_time is None else stream.start_time * stream.time_base
    start = Fraction(container.start_time, 1_000_000)
    if stream.start_time is not None and abs(stream.start_time * stream.time_base - start) <= Fraction(1, 1_000_000):
        return stream.start_time * stream.time_base
    return start


class Times:
    """Times from the start of a clip, over the ends of a clock of 33 bits.

    Without a `start` the first frame is the start.
    """

    def __init__(self, base: Fraction | None, start: Fraction | None) -> None:
        self.start, self.last = start, start
        self.period = Fraction(WRAP, CLOCK) if base == Fraction(1, CLOCK) else None

    def of(self, pts: int | None, base: Fraction | None) -> int:
        """The time in ns of a frame with this stamp; -1 where it has none."""
        if pts is None or base is None:
            return -1
        time = pts * base
        if self.start is None:
            self.start = self.last = time
        if self.period is not None:
            # The nearest one to the frame before, of all that have this stamp.
            time += round((self.last - time) / self.period) * self.period
        self.last = time
        return max(round((time - self.start) * 1_000_000_000), 0)


def _matrix(frame: object) -> tuple[int, int, int, int] | None:
    """The part of a frame's display matrix that turns and mirrors: x' = a x + c y, y' = b x + d y."""
    data = frame.side_data.get("DISPLAYMATRIX")
    if data is None:
        return None
    a, b, _, c, d = np.frombuffer(bytes(data), np.int32)[:5].tolist()
    return a, b, c, d


def upright(image: np.ndarray, matrix: tuple[int, int, int, int] | None) -> np.ndarray:
    """Turns and mirrors an image (H, W, C) as its display matrix says; other than quarter turns leave it as it is."""
    if matrix is None:
        return image
    a, b, c, d = matrix
    if a and d and not b and not c:
        right, down = a, d
    elif b and c and not a and not d:
        image, right, down = image.swapaxes(0, 1), c, b
    else:
        return image
    return np.ascontiguousarray(image[:: 1 if down > 0 else -1, :: 1 if right > 0 else -1])


class SuperpixelStage:
    """Segments clips; an object of it is a worker with memory of its own that it keeps from clip to clip.

    frames : function from a path to pairs of time and frame; by default `decode`.
    settings : parameters of `superpixels.Segmenter`; `temporal` is on, and `threads` is 1, unless they say otherwise.
    """

    def __init__(self, frames: Callable[[str], Iterable[tuple[int, np.ndarray]]] = decode, **settings: object) -> None:
        import superpixels

        self.frames = frames
        self.segmenter = superpixels.Segmenter(**{"temporal": True, "threads": 1, **settings})

    def __call__(self, batch: dict[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
        """For `map_batches`: clips by the column `path` to rows with that column.

        Errors of the decoder and of `Segmenter.segment` go on to the caller: Ray Data then gives up, or leaves a number of blocks out
        that `DataContext.max_errored_blocks` sets.
        """
        for path in batch["path"]:
            for rows in self.rows(self.frames(str(path))):
                yield {"path": np.full(len(rows["frame"]), path, object), **rows}

    def rows(self, frames: Iterable[tuple[int, np.ndarray]]) -> Iterator[dict[str, np.ndarray]]:
        """The columns of `regions.parquet` for the frames of one clip, of several frames at a time.

        Identities start at 1.
        """
        self.segmenter.reset()
        first = self.segmenter.next_id - 1
        waiting = []
        for number, (time, frame) in enumerate(frames):
            self.segmenter.segment(frame)
            waiting.append(self._frame(number, time, first))
            if len(waiting) == TOGETHER:
                yield _joined(waiting)
                waiting = []
        if waiting:
            yield _joined(waiting)

    def _frame(self, number: int, time: int, first: int) -> dict[str, np.ndarray]:
        regions, motion = self.segmenter.regions, self.segmenter.motion
        count = len(regions)
        moved = motion is not None and len(motion) == count
        columns = {
            "frame": np.full(count, number, np.uint32),
            "pts_ns": np.full(count, time, np.int64),
            "label": np.arange(count, dtype=np.uint16),
        }
        columns |= _columns(REGION, regions)
        if moved:
            columns["track_id"] -= np.uint32(first)
            return columns | _columns(MOTION, motion)
        return columns | {name: np.zeros(count, kind) for _, kind, names in MOTION for name in names}


def _columns(fields: tuple, records: np.ndarray) -> dict[str, np.ndarray]:
    """Copies of the components of records, each as a column."""
    rows = {field: np.atleast_2d(records[field].T) for field, _, _ in fields}
    return {name: rows[field][at].copy() for field, _, names in fields for at, name in enumerate(names)}


def _joined(frames: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([frame[name] for frame in frames]) for name in frames[0]}
