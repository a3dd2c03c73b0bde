# SPDX-License-Identifier: MPL-2.0
"""The class: tables, video, parameters that change, threads and processes."""

import gc
import multiprocessing
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import superpixels as sp
from picture import rgba


@pytest.fixture(scope="module")
def clip():
    """A picture that moves by 2 px a frame."""
    large = rgba(192, 160)[..., :3].copy()
    return [large[:120, 2 * i : 2 * i + 160] for i in range(6)]


def test_regions(picture):
    segmenter = sp.Segmenter(superpixel_size=12)
    labels = segmenter.segment(picture)
    regions = segmenter.regions
    count = segmenter.n_regions
    assert len(regions) == count == labels.max() + 1
    assert np.array_equal(regions["track_id"], np.arange(count))
    assert np.array_equal(regions["area"], np.bincount(labels.ravel()))
    y, x = np.mgrid[: labels.shape[0], : labels.shape[1]]
    for label in range(0, count, 7):
        inside = labels == label
        assert regions["centroid"][label] == pytest.approx([x[inside].mean(), y[inside].mean()], abs=1e-3)
        box = [x[inside].min(), y[inside].min(), x[inside].max() + 1, y[inside].max() + 1]
        assert regions["bounds"][label].tolist() == box
        mean = np.floor(picture[inside].astype(float).mean(0) + 0.5)
        assert regions["mean_rgb"][label].tolist() == mean.tolist()
    assert regions["mean_lab"].shape == (count, 3) and (regions["mean_lab"][:, 0] <= 100).all()
    # A copy: it stays.
    kept = regions.copy()
    segmenter.segment(255 - picture)
    assert np.array_equal(regions, kept) and regions.flags.writeable


def test_neighbors(picture):
    segmenter = sp.Segmenter(superpixel_size=12)
    labels = segmenter.segment(picture).astype(int)
    pairs = np.concatenate(
        [np.stack([labels[:, :-1].ravel(), labels[:, 1:].ravel()]), np.stack([labels[:-1].ravel(), labels[1:].ravel()])], 1
    )
    pairs = np.sort(pairs[:, pairs[0] != pairs[1]], 0)
    want, length = np.unique(pairs, axis=1, return_counts=True)
    found = segmenter.neighbors
    assert np.array_equal(np.stack([found["a"], found["b"]]), want)
    assert np.array_equal(found["length"], length)
    edges = segmenter.edge_index
    assert edges.dtype == np.int64 and edges.flags.c_contiguous
    assert np.array_equal(edges, np.concatenate([want, want[::-1]], 1))


def test_one_region_has_no_neighbors():
    segmenter = sp.Segmenter(n_segments=1)
    segmenter.segment(np.zeros((8, 8), np.uint8))
    assert segmenter.n_regions == 1 and segmenter.neighbors.shape == (0,) and segmenter.edge_index.shape == (2, 0)


def test_what_is_not_there(picture):
    segmenter = sp.Segmenter(regions=False, neighbors=False)
    for name in ("n_regions", "regions", "neighbors", "edge_index", "motion"):
        with pytest.raises(RuntimeError, match="segment|=True"):
            getattr(segmenter, name)
    segmenter.segment(picture)
    assert segmenter.n_regions > 0
    for name in ("regions", "neighbors", "edge_index", "motion"):
        with pytest.raises(RuntimeError, match="=True"):
            getattr(segmenter, name)
    with pytest.raises(RuntimeError, match="temporal=True"):
        other = sp.Segmenter()
        other.segment(picture)
        other.motion
    with pytest.raises(AttributeError):
        segmenter.regions = 3


@pytest.mark.parametrize("algorithm", ["slic", "lsc", "quickshift", "snic"])
def test_track_ids_last(algorithm, clip):
    segmenter = sp.Segmenter(algorithm, temporal=True)
    ids = []
    for frame in clip:
        segmenter.segment(frame)
        ids.append(segmenter.regions["track_id"])
        assert len(np.unique(ids[-1])) == segmenter.n_regions and ids[-1].min() > 0
        assert len(segmenter.motion) == segmenter.n_regions
    assert np.array_equal(ids[0], np.arange(1, len(ids[0]) + 1))
    for last, this in zip(ids, ids[1:]):
        assert len(np.intersect1d(last, this)) > 0.7 * len(this)
    assert segmenter.motion["age"].max() == len(clip) - 1
    if algorithm in ("slic", "lsc"):
        assert np.median(segmenter.motion["velocity"], 0) == pytest.approx([-2, 0])
    # A cut, and a reset, begin anew with other ids.
    next_id = segmenter.next_id
    segmenter.reset()
    segmenter.segment(clip[-1])
    assert segmenter.regions["track_id"].min() == next_id
    assert segmenter.motion["age"].max() == 0


def test_without_temporal_frames_are_independent(clip):
    segmenter = sp.Segmenter(superpixel_size=14)
    for frame in clip:
        assert np.array_equal(segmenter.segment(frame), sp.slic(frame, superpixel_size=14))


@pytest.mark.parametrize(
    "algorithm, hot, cold",
    [
        ("slic", dict(compactness=20.0), dict(superpixel_size=20)),
        ("slic", dict(iterations=3, adaptive=True), dict(min_region=0.5)),
        ("slic", dict(temporal_inertia=0.5), dict(color_space="rgb")),
        ("lsc", dict(ratio=0.2), dict(merge=2.0)),
        ("quickshift", dict(sigma=2.0), dict(connectivity=False)),
    ],
)
def test_parameters_change(algorithm, hot, cold, clip):
    segmenter = sp.Segmenter(algorithm, temporal=True)
    segmenter.segment(clip[0])
    before = segmenter.regions["track_id"]
    segmenter.set(**hot)
    assert segmenter.parameters.items() >= hot.items()
    assert np.array_equal(segmenter.regions["track_id"], before)
    segmenter.segment(clip[1])
    after = segmenter.regions["track_id"]
    assert len(np.intersect1d(before, after)) > 0.4 * len(after)
    next_id = segmenter.next_id
    segmenter.set(**cold)
    assert segmenter.next_id == next_id
    segmenter.segment(clip[2])
    assert segmenter.regions["track_id"].min() == next_id
    assert segmenter.parameters.items() >= {**hot, **cold}.items()


def test_changes_give_what_new_segmenters_give(clip):
    segmenter = sp.Segmenter()
    for parameters in (dict(compactness=3.0), dict(superpixel_size=9), dict(merge=2.0), dict(iterations=2), dict(merge=1.5)):
        segmenter.set(**parameters)
        fresh = sp.Segmenter(**segmenter.parameters)
        assert np.array_equal(segmenter.segment(clip[0]), fresh.segment(clip[0]))


def test_a_refused_change_changes_nothing(clip):
    segmenter = sp.Segmenter(temporal=True)
    segmenter.segment(clip[0])
    before = segmenter.parameters
    for bad in (dict(compactness=3.0, iterations=0), dict(iterations=2, sigma=1), dict(min_region=float("nan"))):
        with pytest.raises((TypeError, ValueError)):
            segmenter.set(**bad)
        assert segmenter.parameters == before
    segmenter.segment(clip[1])
    assert segmenter.motion["age"].max() == 1


def test_sizes_change(clip, picture):
    segmenter = sp.Segmenter(temporal=True)
    seen = 0
    for frame in (clip[0], picture, picture[..., 0].copy(), clip[0][:50], clip[0]):
        assert segmenter.segment(frame).shape == frame.shape[:2]
        ids = segmenter.regions["track_id"]
        assert ids.min() > seen
        seen = ids.max()
    # A refused frame leaves the last frame's results.
    with pytest.raises(ValueError):
        segmenter.segment(clip[0][..., :2])
    assert np.array_equal(segmenter.regions["track_id"], ids)


def test_linear_light():
    image = np.zeros((16, 16, 3), np.uint8)
    image[::2] = 255
    codes, light = sp.Segmenter(n_segments=1), sp.Segmenter(n_segments=1, linear_light=True)
    for segmenter in (codes, light):
        segmenter.set(iterations=1, connectivity=False)
        segmenter.segment(image)
    assert codes.regions["mean_rgb"][0, 0] == 128 and light.regions["mean_rgb"][0, 0] == 188


def test_other_threads_run_and_one_segmenter_is_for_one(picture):
    image = np.tile(picture, (6, 6, 1))
    segmenter = sp.Segmenter("snic", threads=1)
    steps, refused, done = [], [], threading.Event()

    def work():
        try:
            segmenter.segment(image)
        finally:
            done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        steps.append(0)
        try:
            segmenter.parameters
        except RuntimeError as error:
            refused.append(str(error))
        time.sleep(0.001)
    thread.join()
    assert len(steps) > 5 and "another thread" in refused[0]
    assert segmenter.parameters


def test_one_out_is_for_one_call(picture):
    image, out = np.tile(picture, (6, 6, 1)), np.empty((6 * 122, 6 * 163), np.uint16)
    threads = [threading.Thread(target=sp.snic, args=(image,), kwargs=dict(out=out, threads=1))]
    threads[0].start()
    refused = 0
    while threads[0].is_alive():
        try:
            sp.slic(image, out=out)
        except RuntimeError as error:
            refused += "out" in str(error)
        time.sleep(0.001)
    assert refused


def test_many_threads(picture):
    want, found = sp.slic(picture), [None] * 8

    def work(i):
        for _ in range(5):
            found[i] = sp.slic(picture, threads=i % 3)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(labels, want) for labels in found)


def in_child(image, inherited, out):
    try:
        inherited.segment(image)
        refused = "not refused"
    except RuntimeError as error:
        refused = str(error)
    labels = sp.slic(image, threads=2)
    own = sp.Segmenter(threads=2).segment(image)
    del inherited
    gc.collect()
    out.put((refused, labels, own))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(method, picture):
    segmenter = sp.Segmenter(threads=2)
    want = segmenter.segment(picture), sp.slic(picture, threads=2)
    context = multiprocessing.get_context(method)
    if method == "spawn":
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(segmenter)
        with context.Pool(1) as pool:
            assert np.array_equal(pool.apply_async(sp.slic, (picture,)).get(60), want[1])
        return
    queue = context.Queue()
    children = [context.Process(target=in_child, args=(picture, segmenter, queue)) for _ in range(3)]
    for child in children:
        child.start()
    for _ in children:
        refused, labels, own = queue.get(timeout=60)
        assert "after the fork" in refused
        assert np.array_equal(own, want[0]) and np.array_equal(labels, want[1])
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    assert np.array_equal(segmenter.segment(picture), want[0])


def test_memory_is_given_back(picture):
    resource = pytest.importorskip("resource")

    def rounds(count):
        for i in range(count):
            segmenter = sp.Segmenter(temporal=True, threads=1 + i % 3)
            for _ in range(2):
                labels = segmenter.segment(picture)
                assert labels.base is None
            segmenter.regions, segmenter.neighbors, segmenter.edge_index
            with pytest.raises(ValueError):
                segmenter.segment(picture[..., :2])
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    # A hundred kilobytes a round, as a single map and its tables take more.
    first = rounds(20)
    assert rounds(100) < first + 10 * 1024


def test_arrays_outlive_their_segmenter(picture):
    segmenter = sp.Segmenter(temporal=True)
    labels, regions, edges = segmenter.segment(picture), segmenter.regions, segmenter.edge_index
    copies = labels.copy(), regions.copy(), edges.copy()
    references = sys.getrefcount(picture)
    del segmenter
    gc.collect()
    assert sys.getrefcount(picture) == references
    for array, copy in zip((labels, regions, edges), copies):
        assert np.array_equal(array, copy)


def test_import_takes_nothing_along():
    code = "import sys, numpy; before = set(sys.modules); import superpixels; print(*sorted(set(sys.modules) - before))"
    found = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    assert not {"scipy", "pandas", "polars", "pyarrow", "matplotlib", "ipywidgets", "torch", "cupy"} & set(found)
    # Of Python's own, what takes long to load and is for few.
    assert not {"asyncio", "decimal", "fractions", "http.client", "multiprocessing", "unittest", "xml.etree.ElementTree"} & set(found)


def test_repr():
    assert repr(sp.Segmenter(n_segments=30)).startswith("Segmenter('slic', n_segments=30, ")
