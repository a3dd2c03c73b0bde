# SPDX-License-Identifier: MPL-2.0
"""Carry a mask through a video.

Regions that the first frame's mask covers by more than half are the object, and so is every region that splits off from
them later. The mask of every later frame is where those track ids are.
"""

import numpy as np
import superpixels as sp


def frame(number):
    """A spotted ball that moves over a gradient, and its mask."""
    y, x = np.mgrid[:240, :320]
    disk = (x - 100 - 3 * number) ** 2 + (y - 120) ** 2 < 50**2
    image = np.stack([x // 2, y // 2, np.full_like(x, 60)], axis=2)
    spots = 40 * (np.hypot((x - 3 * number) % 23 - 11, y % 19 - 9) < 6)
    ball = np.stack([230 - spots, 180 - spots, 40 + spots], axis=2)
    return np.where(disk[..., None], ball, image).astype(np.uint8), disk


segmenter = sp.Segmenter(n_segments=600, temporal=True, events=True)
for number in range(12):
    image, truth = frame(number)
    labels = segmenter.segment(image)
    tracks = segmenter.regions["track_id"]
    if number == 0:
        covered = np.bincount(labels[truth], minlength=len(tracks)) / segmenter.regions["area"]
        chosen = tracks[covered > 0.5]
    # What splits off from the object is part of it.
    events = segmenter.events
    split = events[events["kind"] == sp.EventKind.SPLIT]
    chosen = np.append(chosen, split["track_id"][np.isin(split["other"], chosen)])
    mask = np.isin(tracks, chosen)[labels]
overlap = (mask & truth).sum() / (mask | truth).sum()
print(f"frame {number}: intersection over union {overlap:.2f}")
