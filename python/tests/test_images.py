# SPDX-License-Identifier: MPL-2.0
"""Many pictures with their tables are those of a Segmenter for each alone, given in order, with all that came before an error."""

import contextlib
import functools
import itertools
import multiprocessing
import pickle
import signal
import sys
import time

import numpy as np
import pytest
import superpixels as sp
from superpixels import _parts
from test_arrays import Other
from test_bits import CLIP

ALGORITHMS = ["slic", "lsc", "quickshift", "snic"]
BATCH = np.stack([frame[30:80, 40:110, :3] for frame in CLIP])


@pytest.fixture
def picture(picture):
    return picture[:56, :75].copy()


@pytest.fixture
def mixed(picture):
    """Of several sizes and types, some of them more than once."""
    gray = picture[..., 1].copy()
    return [picture, gray[:40, :60], 257 * picture[:40].astype(np.uint16), picture[5:50, ::-1], picture / 255.0, gray[:40, 7:67], picture]


@pytest.fixture(params=[None, 1, 20_000])
def part(request, monkeypatch):
    """How much is read together: all of what is here, one picture, or some."""
    if request.param is not None:
        monkeypatch.setattr(_parts, "_ENOUGH", request.param)
    return request.param


@functools.lru_cache(maxsize=None)
def by_segmenter(algorithm, image, mask, start_label, named):
    """Labels, number of regions and tables that a Segmenter gives that has seen nothing else, of arrays as bytes, type and shape.

    Many tests have the same pictures and differ in how they are passed.
    """
    image, mask = (one and np.frombuffer(one[0], one[1]).reshape(one[2]) for one in (image, mask))
    segmenter = sp.Segmenter(algorithm, **dict(named))
    labels = segmenter.segment(image, mask=mask, start_label=start_label)
    names = ("regions", "neighbors", "edge_index", *(("merges",) if dict(named).get("levels") else ()))
    return labels, segmenter.n_regions, {name: getattr(segmenter, name) for name in names}


def as_key(array):
    return None if array is None else (array.tobytes(), array.dtype.str, array.shape)


def compare(found, images, algorithm="slic", masks=None, start_label=0, **named):
    """Each is bit for bit what a Segmenter gives that has seen nothing else."""
    found = list(found)
    assert [one.index for one in found] == list(range(len(images)))
    for one, image, mask in zip(found, images, masks or [None] * len(images)):
        labels, count, tables = by_segmenter(algorithm, as_key(image), as_key(mask), start_label, tuple(named.items()))
        assert type(one.labels) is type(labels) and one.labels.dtype == labels.dtype
        assert np.array_equal(one.labels, labels) and np.array_equal(one.image, image)
        assert one.n_regions == count
        for name, want in tables.items():
            got = getattr(one, name)
            assert got.dtype == want.dtype and got.shape == want.shape and np.array_equal(got, want), name
    return found


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("threads", [0, 1, 3])
def test_same_as_a_segmenter(algorithm, threads, mixed, part):
    for images in (mixed, tuple(mixed)):
        compare(sp.segment_images(images, algorithm, threads=threads), mixed, algorithm)
    compare(sp.segment_images(iter(mixed), algorithm, threads=threads), mixed, algorithm)
    compare(sp.segment_images(BATCH, algorithm, threads=threads), BATCH, algorithm)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_masks(algorithm, mixed, part):
    masks = [np.random.default_rng(i).random(image.shape[:2]) < 0.8 for i, image in enumerate(mixed)]
    for mask in (masks, (mask for mask in masks)):
        compare(sp.segment_images(mixed, algorithm, mask=mask), mixed, algorithm, masks)
    rows = np.random.default_rng(1).random(BATCH.shape[:3]) < 0.7
    for mask in (rows, list(rows), iter(rows)):
        compare(sp.segment_images(BATCH, algorithm, mask=mask, start_label=1), BATCH, algorithm, list(rows), 1)
    compare(sp.segment_images(BATCH, algorithm, mask=rows[0]), BATCH, algorithm, [rows[0]] * len(BATCH))
    same = [mixed[0], mixed[-1]]
    compare(sp.segment_images(same, algorithm, mask=itertools.repeat(masks[0])), same, algorithm, [masks[0]] * 2)


def test_parameters_and_ranges(mixed, part):
    for named in (
        {"n_segments": 30, "levels": True},
        {"n_regions": 7, "linear_light": True},
        {"superpixel_size": 9, "refine": 2, "merge": 1.5},
        {"data_range": "image"},
        {"data_range": (0, 200.5), "order": "bgr"},
    ):
        compare(sp.segment_images(mixed, **named), mixed, **named)
    compare(sp.segment_images(mixed, start_label=-3), mixed, start_label=-3)
    floats = [1000 * np.random.default_rng(i).random((30, 40 + i)) - 300 for i in range(5)]
    compare(sp.segment_images(floats, data_range=(-300, 700)), floats, data_range=(-300, 700))
    spectra = [np.random.default_rng(i).integers(0, 3000, (20, 30, 3 + i)) for i in range(5)]
    compare(sp.segment_images(spectra, bands="pca"), spectra, bands="pca")
    compare(sp.segment_images(spectra, bands=(2, 1, 0), data_range=(0, 3000)), spectra, bands=(2, 1, 0), data_range=(0, 3000))


def test_channels_first(part):
    first = [image.transpose(2, 0, 1).copy() for image in BATCH]
    compare(sp.segment_images(first, channel_axis=0), first, channel_axis=0)
    want = [one.labels for one in sp.segment_images(BATCH)]
    for axis, batch in {1: (0, 3, 1, 2), -3: (0, 3, 1, 2), 0: (3, 0, 1, 2), -4: (3, 0, 1, 2), 2: (0, 1, 3, 2), 3: (0, 1, 2, 3)}.items():
        found = list(sp.segment_images(BATCH.transpose(batch), channel_axis=axis))
        assert len(found) == 6 and all(np.array_equal(one.labels, labels) for one, labels in zip(found, want))
        assert found[1].image.shape == tuple(np.delete(BATCH.transpose(batch).shape, batch.index(0)))


def test_only_what_is_asked_for(picture):
    [one] = sp.segment_images([picture], regions=False, neighbors=False)
    for name, flag in {"regions": "regions", "neighbors": "neighbors", "edge_index": "neighbors", "merges": "levels"}.items():
        with pytest.raises(RuntimeError, match=f"pass {flag}=True"):
            getattr(one, name)
    assert one.n_regions == one.labels.max() + 1
    assert repr(one) == f"SegmentedImage(0, 75x56, {one.n_regions} regions)"


@pytest.mark.parametrize("nothing", [[], (), iter(()), np.zeros((0, 20, 30, 3), np.uint8)])
def test_no_images(nothing):
    reports = []
    assert list(sp.segment_images(nothing, progress=lambda *numbers: reports.append(numbers))) == []
    assert reports == [(0, 0)]


def test_arrays_of_their_own(mixed):
    found = list(sp.segment_images(mixed))
    for one in found:
        assert one.labels.base is None and one.labels.flags.owndata and one.labels.flags.c_contiguous
    assert not any(np.shares_memory(one.labels, other.labels) for one, other in itertools.combinations(found, 2))
    again = pickle.loads(pickle.dumps(found[1]))
    assert np.array_equal(again.labels, found[1].labels) and np.array_equal(again.neighbors, found[1].neighbors)


def test_images_are_read_as_they_are_needed(picture, monkeypatch):
    monkeypatch.setattr(_parts, "_ENOUGH", 3 * picture.size)
    count = itertools.count()
    found = sp.segment_images((picture for _ in zip(range(100), count)), threads=2)
    assert next(count) == 0
    next(found)
    assert next(count) <= 5
    found.close()


def test_memory_that_is_used_again(mixed):
    def again(images):
        memory = np.empty_like(images[0])
        for image in images:
            memory[:] = image
            yield memory
            memory[:] = 77

    masks = np.random.default_rng(0).random(BATCH.shape[:3]) < 0.7
    compare(sp.segment_images(again(BATCH), mask=again(masks)), BATCH, masks=list(masks))


def test_images_that_come_slowly_do_not_wait(picture):
    def slow():
        while True:
            time.sleep(0.03)
            yield picture

    begin = time.perf_counter()
    next(sp.segment_images(slow(), n_segments=20))
    assert time.perf_counter() - begin < 5


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    "bad, error, words",
    [
        (np.zeros((20, 30, 7), np.uint8), ValueError, "must be of shape"),
        (np.zeros((20, 30), bool), TypeError, "bool is not taken"),
        (np.full((20, 30), np.nan), ValueError, "nan"),
        (np.zeros((2, 20, 30, 3), np.uint8), ValueError, "arrays of a list"),
        (np.ma.masked_array(np.zeros((20, 30))), TypeError, "masked array"),
        (None, TypeError, "array of numbers"),
        ("picture.png", TypeError, "array of numbers"),
    ],
)
def test_a_wrong_image_is_named(bad, error, words, threads, picture, part):
    images = [np.roll(picture, i, axis=1) for i in range(7)]
    for given in ([*images, bad, *images], iter([*images, bad, *images])):
        found = []
        with pytest.raises(error, match=f"^image 7: .*{words}"):
            for one in sp.segment_images(given, threads=threads):
                found.append(one)
        compare(found, images)


def test_a_wrong_image_of_a_batch_is_named(part):
    batch = BATCH / 255.0
    batch[4, 5, 6, 1] = np.nan
    found = []
    with pytest.raises(ValueError, match="^image 4: .*nan"):
        for one in sp.segment_images(batch):
            found.append(one)
    compare(found, batch[:4])


def test_what_the_iterable_raises_comes_last(picture, part):
    class Broken(Exception):
        pass

    def images():
        yield from [picture] * 4
        raise Broken

    found = sp.segment_images(images())
    assert [next(found).index for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(Broken):
        next(found)
    assert list(found) == []


def test_numbers_of_masks(picture):
    mask = np.ones(picture.shape[:2], bool)
    with pytest.raises(ValueError, match="2 masks for 3 images"):
        sp.segment_images([picture] * 3, mask=[mask] * 2)
    with pytest.raises(ValueError, match="5 masks for 6 images"):
        sp.segment_images(BATCH, mask=np.ones((5, 50, 70), bool))
    for images in ([picture] * 3, np.stack([picture] * 3)):
        found = sp.segment_images(images, mask=iter([mask] * 2))
        assert [next(found).index, next(found).index] == [0, 1]
        with pytest.raises(ValueError, match="^image 2: there is no mask"):
            next(found)
    with pytest.raises(ValueError, match=r"^image 0: mask must be of shape \[56, 75\]"):
        next(sp.segment_images([picture], mask=mask[1:]))
    with pytest.raises(ValueError, match="^image 1: mask"):
        list(sp.segment_images([picture] * 2, mask=[mask, mask[1:]]))
    with pytest.raises(TypeError, match="^image 0: mask must be an array of bool"):
        next(sp.segment_images([picture], mask=[None]))
    for bad in (7, np.ones((1, 1, 56, 75), bool)):
        with pytest.raises(TypeError, match="mask must be an array of shape"):
            sp.segment_images([picture], mask=bad)


def test_refusals_of_the_call(picture):
    for images in (picture, picture[..., 0], np.zeros((1, 1, 4, 4, 3))):
        with pytest.raises(ValueError, match=r"shape \(N, H, W, C\).*pass \[image\]"):
            sp.segment_images(images)
    for error, words, named in [
        (TypeError, "iterable of arrays, got int", {"images": 3}),
        (ValueError, "temporal", {"temporal": True}),
        (TypeError, "slic has no parameter compactnes", {"compactnes": 3}),
        (ValueError, "n_segments", {"n_segments": -3}),
        (ValueError, "threads", {"threads": -1}),
        (ValueError, "algorithm", {"algorithm": "watershed"}),
        (TypeError, "start_label", {"start_label": 0.5}),
        (TypeError, "progress must be", {"progress": 3}),
        (ValueError, "data_range", {"data_range": "all"}),
    ]:
        with pytest.raises(error, match=words):
            sp.segment_images(**{"images": [picture], **named})


def test_words_of_other_packages(picture):
    compare(sp.segment_images([picture], max_num_iter=2), [picture], iterations=2)
    with pytest.raises(TypeError, match="blur the image before"):
        sp.segment_images([picture], sigma=1)


@pytest.mark.parametrize("threads", [0, 1, 3])
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_signals_end_the_work(threads, picture):
    class Enough(Exception):
        pass

    def end(*_):
        rung.append(time.perf_counter())
        raise Enough

    before = signal.signal(signal.SIGALRM, end)
    many = np.broadcast_to(picture, (20_000, *picture.shape))
    try:
        for images in (many, list(many), itertools.repeat(picture)):
            rung, found = [], []
            begin = time.perf_counter()
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            with pytest.raises(Enough):
                for one in sp.segment_images(images, threads=threads):
                    found.append(one)
            # Soon after it came; machines are noisy, and all of them take minutes.
            assert rung and time.perf_counter() - rung[0] < 1.5 and rung[0] - begin < 5
            assert [one.index for one in found] == list(range(len(found)))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_progress(picture, part, monkeypatch):
    for images, total in (([picture] * 30, 30), ((picture for _ in range(30)), 0)):
        reports = []
        assert len(list(sp.segment_images(images, progress=lambda *numbers: reports.append(numbers)))) == 30
        done = [done for done, _ in reports]
        assert done == sorted(done) and reports[-1] == (30, 30) and {of for _, of in reports[:-1]} <= {total}

    class Enough(Exception):
        pass

    def report(done, _):
        raise Enough

    found = []
    with pytest.raises(Enough):
        for one in sp.segment_images(itertools.repeat(picture), progress=report):
            found.append(one)
    compare(found[:3], [picture] * len(found[:3]))
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    for images, text in (([picture] * 3, "\r3 of 3 images\n"), (iter([picture] * 3), "\r3 of 3 images\n")):
        with contextlib.redirect_stderr(__import__("io").StringIO()) as told:
            list(sp.segment_images(images, progress=True))
        assert told.getvalue().endswith(text) and told.getvalue().count("\n") == 1


def test_warnings_are_of_the_callers_line_and_come_once(picture):
    dark = [picture.astype(np.uint16)] * 3
    with pytest.warns(UserWarning, match="data_range") as warned:
        list(sp.segment_images(dark))
    assert len(warned) == 1 and warned[0].filename == __file__
    with pytest.warns(UserWarning, match="labels|superpixel") as warned:
        list(sp.segment_images([np.zeros((1200, 1200), np.uint8)] * 2, superpixel_size=4, iterations=1))
    assert len(warned) == 1 and warned[0].filename == __file__


def test_other_libraries_get_their_own_labels(picture):
    others = [Other(picture), Other(picture[:40])]
    found = list(sp.segment_images(others))
    for one, image in zip(found, others):
        want = sp.slic(image)
        assert isinstance(one.labels, Other) and np.array_equal(one.labels.array, want.array) and one.image is image
        assert isinstance(one.regions, np.ndarray) and isinstance(one.edge_index, np.ndarray)


def test_tensors_in_the_hosts_memory(picture):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    batch = torch.from_numpy(BATCH.copy())
    for images, axis in ((batch, None), (batch.permute(0, 3, 1, 2), 1), ([*batch], None), (iter(batch), None)):
        for one, image in zip(sp.segment_images(images, channel_axis=axis, mask=torch.ones(50, 70, dtype=torch.bool)), BATCH):
            assert one.labels.dtype == torch.int32 and isinstance(one.image, torch.Tensor)
            assert np.array_equal(one.labels.numpy(), sp.slic(image))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_makes_its_own(picture, monkeypatch):
    monkeypatch.setattr(_parts, "_ENOUGH", 1)
    found = sp.segment_images([picture] * 20, threads=2)
    next(found)

    def child(answers):
        try:
            list(found)
        except RuntimeError as error:
            answers.put(str(error))
        answers.put(len(list(sp.segment_images([picture] * 4, threads=2))))

    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    process = context.Process(target=child, args=(answers,))
    process.start()
    assert "after the fork" in answers.get(timeout=60) and answers.get(timeout=60) == 4
    process.join(60)
    assert process.exitcode == 0 and len(list(found)) == 19


def test_labels_stay_at_16_bits():
    image = np.zeros((600, 600, 3), np.uint8)
    with pytest.warns(UserWarning, match="n_segments=80000 .* take slic, whose label maps have 32 bits"):
        (one,) = sp.segment_images([image], n_segments=80_000)
    assert one.labels.dtype == np.uint16 and one.n_regions == len(one.regions) == one.labels.max() + 1
