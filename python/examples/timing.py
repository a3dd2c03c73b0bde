# SPDX-License-Identifier: MPL-2.0
"""Measure, and know what costs what.

A `Segmenter` keeps its memory from frame to frame; tables and new arrays cost extra; more threads help large frames.
Take the median: a mean counts whatever else the machine does.
"""

import statistics
import time

import numpy as np
import superpixels as sp

y, x = np.mgrid[:480, :640]
image = np.stack([x % 256, y % 256, (x + y) % 256], axis=2).astype(np.uint8)
out = np.empty(image.shape[:2], np.uint16)
labels_only = dict(n_segments=300, regions=False, neighbors=False)


def milliseconds(call, rounds=15):
    call()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


one, every = sp.Segmenter(threads=1, **labels_only), sp.Segmenter(**labels_only)
tables = sp.Segmenter(threads=1, n_segments=300)
for name, call in {
    "slic(), one thread": lambda: sp.slic(image, n_segments=300, threads=1),
    "Segmenter, one thread": lambda: one.segment(image),
    "the same into out": lambda: one.segment(image, out=out),
    "with regions and neighbors": lambda: tables.segment(image, out=out),
    "a thread for each core": lambda: every.segment(image, out=out),
}.items():
    print(f"{name:27} {milliseconds(call):6.2f} ms")
