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

import numpy as np

# Frames whose rows are handed on together: some megabytes at usual sizes.
TOGETHER = 64


def decode(path: str) -> Iterator[tuple[int, np.ndarray]]:
    """Times in ns, -1 where there is none, and RGB frames (H, W, 3) of a video file, through PyAV on one thread."""
    import av

    with av.open(path) as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_count = 1
        for frame in container.decode(stream):
            time = -1 if frame.pts is None else round(frame.pts * frame.time_base * 1_000_000_000)
            yield time, frame.to_ndarray(format="rgb24")


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
        """The columns of `regions.parquet` for the frames of one clip, of several frames at a time. Identities start at 1."""
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
            "track_id": regions["track_id"] - np.uint32(first) if moved else regions["track_id"].copy(),
            "area": regions["area"].copy(),
        }
        for field, names in (
            ("centroid", ("cx", "cy")),
            ("mean_rgb", ("mean_r", "mean_g", "mean_b")),
            ("mean_lab", ("lab_l", "lab_a", "lab_b")),
            ("bounds", ("x0", "y0", "x1", "y1")),
        ):
            columns |= {name: regions[field][:, at].copy() for at, name in enumerate(names)}
        still = np.zeros(count, np.float32)
        columns["vx"], columns["vy"] = motion["velocity"].T.copy() if moved else (still, still)
        columns["age"] = motion["age"].copy() if moved else np.zeros(count, np.uint32)
        return columns


def _joined(frames: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([frame[name] for frame in frames]) for name in frames[0]}
