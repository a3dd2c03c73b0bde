#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Prints hashes of labels and regions, for comparisons of machines: hashes.py FILE WIDTH HEIGHT

FILE has RGBA frames one after another. Every frame is a picture for each algorithm, and all of them are a video for `Segmenter`. Needs
the package in PYTHONPATH, and numpy.
"""

import hashlib
import sys

import numpy as np
import superpixels as sp

ALGORITHMS = {
    "slic": dict(n_segments=400),
    "lsc": dict(superpixel_size=24, ratio=0.2),
    "quickshift": dict(sigma=1.0, tau=5.0),
    "snic": dict(n_segments=300),
}


def line(name, number, segmenter, frame):
    labels = segmenter.segment(frame)
    tables = [segmenter.regions.tobytes(), segmenter.neighbors.tobytes()]
    hashes = [hashlib.sha256(data).hexdigest()[:16] for data in [np.ascontiguousarray(labels, "<u4").tobytes(), *tables]]
    print(name, number, segmenter.n_regions, *hashes)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    width, height = int(sys.argv[2]), int(sys.argv[3])
    frames = np.fromfile(sys.argv[1], np.uint8).reshape(-1, height, width, 4)[..., :3]
    for name, own in ALGORITHMS.items():
        for number, frame in enumerate(frames):
            line(name, number, sp.Segmenter(name, temporal=False, threads=2, **own), np.ascontiguousarray(frame))
    for name in ("slic", "lsc"):
        segmenter = sp.Segmenter(name, temporal=True, threads=2, **ALGORITHMS[name])
        for number, frame in enumerate(frames):
            line(f"{name},temporal", number, segmenter, np.ascontiguousarray(frame))


if __name__ == "__main__":
    main()
