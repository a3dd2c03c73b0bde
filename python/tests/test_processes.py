# SPDX-License-Identifier: MPL-2.0
"""Worker processes of every kind of start, threads and the garbage collector: right labels or a clear error, and no hang."""

import gc
import multiprocessing
import threading
import weakref

import numpy as np
import pytest
import superpixels as sp

METHODS = [method for method in ("fork", "forkserver", "spawn") if method in multiprocessing.get_all_start_methods()]
SECONDS = 120
own = None


def make(algorithm):
    """Stands for worker_init_fn: each worker makes its own."""
    global own
    own = sp.Segmenter(algorithm, n_segments=60, threads=2)


def work(image):
    return own.segment(image), sp.slic(image, threads=2)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", METHODS)
def test_pools_of_workers(method, picture):
    images = [np.roll(picture, shift, axis=1).copy() for shift in range(6)]
    # Threads of this process are there before its children are.
    make("slic")
    want = [work(image) for image in images]
    with multiprocessing.get_context(method).Pool(2, make, ("slic",)) as pool:
        found = pool.map_async(work, images, chunksize=1).get(SECONDS)
    for one, other in zip(found, want):
        assert np.array_equal(one[0], other[0]) and np.array_equal(one[1], other[1])


def test_threads_each_with_a_segmenter(picture):
    algorithms = ["slic", "lsc", "snic", "slic"]
    want = [sp.Segmenter(algorithm, n_segments=60).segment(picture) for algorithm in algorithms]
    shared, refused, wrong = sp.Segmenter(n_segments=60), [], []

    def run(algorithm, expected):
        segmenter = sp.Segmenter(algorithm, n_segments=60, threads=2)
        for _ in range(6):
            if not np.array_equal(segmenter.segment(picture), expected) or segmenter.n_regions != expected.max() + 1:
                wrong.append(algorithm)
            try:
                if not np.array_equal(shared.segment(picture), want[0]):
                    wrong.append("shared")
            except RuntimeError as error:
                refused.append(str(error))

    threads = [threading.Thread(target=run, args=pair) for pair in zip(algorithms, want)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert not wrong and all("another thread" in text for text in refused)
    assert np.array_equal(shared.segment(picture), want[0])


class Image(np.ndarray):
    """Takes part in a reference cycle, which ndarray cannot."""


def test_garbage_is_collected(picture):
    image = picture.view(Image)
    image.segmenter = sp.Segmenter()
    image.segmenter.segment(image)
    out = np.empty(image.shape[:2], np.uint16)
    assert image.segmenter.segment(image, out=out) is out
    # A cycle through the image ends nowhere in the Segmenter, which keeps no array.
    gone, kept = weakref.ref(image), weakref.ref(out)
    del image, out
    gc.collect()
    assert gone() is None and kept() is None


def test_collector_runs_while_a_call_does(picture):
    image, done = np.tile(picture, (4, 4, 1)), threading.Event()
    want = sp.slic(image)

    def collect():
        while not done.is_set():
            garbage = [[]]
            garbage[0].append(garbage)
            gc.collect()

    thread = threading.Thread(target=collect)
    thread.start()
    try:
        segmenter = sp.Segmenter(n_segments=100)
        for _ in range(4):
            assert np.array_equal(segmenter.segment(image), want)
            # Its memory is given back while its arrays live on.
            regions, segmenter = segmenter.regions, sp.Segmenter(n_segments=100)
            assert regions["area"].sum() == want.size
    finally:
        done.set()
        thread.join(SECONDS)
    assert not thread.is_alive()
