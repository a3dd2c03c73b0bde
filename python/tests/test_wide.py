# SPDX-License-Identifier: MPL-2.0
"""Label maps of more than 65,535 superpixels: their types, whatever the call, and what takes them."""

import json
import signal
import time
import warnings

import numpy as np
import pytest
import superpixels as sp

# An odd size, with 75,900 cells of 4 px.
HEIGHT, WIDTH = 1101, 1103


def textured(height, width, most=24):
    y, x = np.mgrid[:height, :width]
    noise = np.random.default_rng(7).integers(0, most, (height, width, 3))
    image = np.stack([x // 3 % 200, (y + x // 7) % 200, (x * y // 900) % 200], axis=2) + noise
    image = image.astype(np.uint8)
    image.flags.writeable = False
    return image


@pytest.fixture(scope="module")
def large():
    return textured(HEIGHT, WIDTH)


# One iteration: types, layouts and memory are the same after each.
FINE = {"superpixel_size": 4, "iterations": 1}


@pytest.fixture(scope="module")
def labels(large):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = sp.slic(large, **FINE)
    found.flags.writeable = False
    return found


def components(labels):
    """Number of pieces of one label, those below 0 left out."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    number = np.arange(labels.size).reshape(labels.shape)
    one, other = [], []
    for a, b in [(np.s_[:, :-1], np.s_[:, 1:]), (np.s_[:-1], np.s_[1:])]:
        same = (labels[a] == labels[b]) & (labels[a] >= 0)
        one.append(number[a][same])
        other.append(number[b][same])
    one, other = np.concatenate(one), np.concatenate(other)
    count, _ = connected_components(coo_matrix((np.ones(len(one), bool), (one, other)), shape=(labels.size,) * 2))
    return count - int((labels < 0).sum())


def is_dense(labels):
    inside = labels[labels >= 0]
    return len(np.unique(inside)) == int(inside.max()) + 1


def test_labels_are_connected_and_dense(large):
    labels = sp.slic(large, superpixel_size=4)
    assert np.array_equal(sp.Segmenter(superpixel_size=4).segment(large), labels)
    assert labels.dtype == np.uint32 and labels.shape == (HEIGHT, WIDTH)
    assert labels.max() > 65_535 and is_dense(labels)
    assert components(labels.astype(np.int64)) == labels.max() + 1
    assert np.bincount(labels.ravel()).min() >= 4


def test_as_many_as_are_asked_for():
    labels = sp.slic(textured(2000, 2000, most=17), n_segments=200_000, iterations=3)
    count = int(labels.max()) + 1
    assert labels.dtype == np.uint32 and abs(count - 200_000) < 20_000, count


def test_masks_and_first_labels(large, labels):
    mask = np.ones((HEIGHT, WIDTH), bool)
    assert np.array_equal(sp.slic(large, **FINE, mask=mask), labels)
    mask[100:300, 500:] = mask[:, :3] = False
    inside = sp.slic(large, **FINE, mask=mask)
    assert inside.dtype == np.int32 and np.array_equal(inside >= 0, mask) and inside.min() == -1
    assert inside.max() > 65_535 and is_dense(inside) and components(inside) == inside.max() + 1
    shifted = sp.slic(large, **FINE, mask=mask, start_label=5)
    assert np.array_equal(shifted, inside + 5)
    one = sp.slic(large, **FINE, start_label=-70_000)
    assert one.dtype == np.int32 and np.array_equal(one + 70_000, labels)
    most = 2**31 - 1 - HEIGHT * WIDTH
    assert sp.slic(large, **FINE, start_label=most).min() == most
    with pytest.raises(ValueError, match=f"start_label must be at most {most}"):
        sp.slic(large, **FINE, start_label=most + 1)
    nothing = sp.slic(large, **FINE, mask=np.zeros_like(mask))
    assert (nothing == -1).all() and nothing.dtype == np.int32


def test_without_connectivity_and_adaptive(large, labels):
    cells = sp.slic(large, **FINE, connectivity=False)
    assert cells.dtype == np.uint32 and is_dense(cells) and 65_535 < cells.max() < 75_900
    adaptive = sp.slic(large, **FINE, slic_zero=True)
    assert adaptive.dtype == np.uint32 and components(adaptive.astype(np.int64)) == adaptive.max() + 1
    assert not np.array_equal(adaptive, labels)


def test_images_of_all_kinds(large, labels):
    def slic(image, **more):
        return sp.slic(image, **FINE, **more)

    for image, more in [
        (257 * large.astype(np.uint16), {}),
        (large.astype(np.int32), {"data_range": (0, 255)}),
        (large[..., ::-1], {"order": "bgr"}),
        (np.dstack([large, large[..., :1]]), {}),
        (np.moveaxis(large, 2, 0), {"channel_axis": 0}),
        (np.dstack([large, large]), {"bands": (0, 1, 2)}),
        (large, {"threads": 1}),
    ]:
        assert np.array_equal(slic(image, **more), labels), more
    gray = large[..., 0]
    wanted = slic(gray)
    assert wanted.dtype == np.uint32 and wanted.max() > 65_535
    for image, more in [
        (gray[..., None], {}),
        (257 * gray.astype(np.uint16), {}),
        (gray / np.float32(255), {}),
        (3.0 * gray - 7, {"data_range": (-7, 758)}),
        (large, {"bands": 0}),
    ]:
        assert np.array_equal(slic(image, **more), wanted), more
    for more in ({"data_range": "image"}, {"data_range": "stretch"}):
        assert slic(257 * gray.astype(np.uint16), **more).dtype == np.uint32
    assert slic(large, bands="pca").dtype == np.uint32


def test_batches_and_lists(large, labels, picture):
    other = np.ascontiguousarray(large[::-1])
    batch = sp.slic(np.stack([large, other]), **FINE)
    assert batch.dtype == np.uint32 and batch.shape == (2, HEIGHT, WIDTH)
    assert np.array_equal(batch[0], labels) and np.array_equal(batch[1], sp.slic(other, **FINE))
    small = sp.slic(picture, **FINE)
    several = sp.slic([picture, large, picture, other], **FINE)
    assert [one.dtype for one in several] == [np.uint16, np.uint32, np.uint16, np.uint32]
    for one, wanted in zip(several, [small, labels, small, batch[1]]):
        assert np.array_equal(one, wanted)
    assert sp.slic(np.empty((0, HEIGHT, WIDTH, 3), np.uint8), **FINE).dtype == np.uint32
    done = []
    sp.slic([picture, large], **FINE, progress=lambda *numbers: done.append(numbers))
    assert done[-1] == (2, 2) and done == sorted(done)


def test_out(large, labels, picture):
    rows = np.full((HEIGHT, WIDTH + 5), 9, np.uint32)
    out = rows[:, :WIDTH]
    assert sp.slic(large, **FINE, out=out) is out
    assert np.array_equal(out, labels) and (rows[:, WIDTH:] == 9).all()
    with pytest.raises(TypeError, match="out must be an array of uint32, got uint16"):
        sp.slic(large, **FINE, out=np.empty((HEIGHT, WIDTH), np.uint16))
    inside = np.empty((HEIGHT, WIDTH), np.int32)
    sp.slic(large, **FINE, mask=np.ones((HEIGHT, WIDTH), bool), out=inside)
    assert np.array_equal(inside, labels)
    # Fewer superpixels may be written in 32 bits, too.
    small = np.empty(picture.shape[:2], np.uint32)
    for call in (sp.slic, sp.lsc, sp.snic, sp.quickshift, sp.Segmenter().segment):
        call(picture, out=small)
        wanted = call(picture)
        assert np.array_equal(small, wanted) and wanted.dtype == np.uint16
    with pytest.raises(TypeError, match="int32"):
        sp.slic(picture, out=small, start_label=1)


def test_segmenters(large, labels, picture):
    segmenter = sp.Segmenter(**FINE)
    found = segmenter.segment(large)
    assert found.dtype == np.uint32 and np.array_equal(found, labels)
    assert segmenter.n_regions == labels.max() + 1
    effective = segmenter.effective_parameters
    assert (effective["superpixel_size"], effective["n_segments"]) == (4, 276 * 275)
    for name in ("regions", "neighbors", "edge_index"):
        with pytest.raises(RuntimeError, match="no table is made of label maps of more than 65535 superpixels"):
            getattr(segmenter, name)
    with pytest.raises(RuntimeError, match="no table"):
        sp.adjacency(segmenter)
    # Other frames and parameters go on as ever.
    assert segmenter.segment(picture).dtype == np.uint16 and len(segmenter.regions) == segmenter.n_regions
    clip = segmenter.segment(np.stack([large, large]))
    assert clip.dtype == np.uint32 and all(np.array_equal(one, labels) for one in clip)
    mask = np.ones((HEIGHT, WIDTH), bool)
    mask[:50] = False
    inside = segmenter.segment(large, mask=mask)
    assert inside.dtype == np.int32 and np.array_equal(inside, sp.slic(large, **FINE, mask=mask))
    segmenter.set(superpixel_size=9)
    assert segmenter.segment(large).dtype == np.uint16 and segmenter.regions["area"].sum() == HEIGHT * WIDTH
    segmenter.set(superpixel_size=4, compactness=20.0)
    assert np.array_equal(segmenter.segment(large), sp.slic(large, **FINE, compactness=20.0))
    segmenter.reset()
    assert np.array_equal(segmenter.segment(large), sp.slic(large, **FINE, compactness=20.0))


@pytest.mark.parametrize(
    "more", [{"temporal": True}, {"merge": 2.0}, {"refine": 1}, {"levels": True}, {"algorithm": "lsc"}], ids=str
)
def test_what_stays_at_16_bits_says_so(large, more):
    (name,) = more
    with pytest.warns(UserWarning, match=f"superpixel_size=4 asks for more .* those of slic have 32 bits without {name}") as told:
        labels = sp.Segmenter(**FINE, **more).segment(large)
    assert labels.dtype == np.uint16 and told[0].filename == __file__


def test_exact_numbers_stay_at_16_bits(large):
    with pytest.warns(UserWarning, match="without n_regions"):
        assert len(np.unique(sp.slic(large, n_segments=90_000, n_regions=50, iterations=1))) == 50


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_signals_end_a_call_between_windows():
    class Enough(Exception):
        pass

    def end(*_):
        raise Enough

    # It takes seconds, in dozens of windows, where no signal comes.
    image = np.broadcast_to(np.arange(3000, dtype=np.uint8)[None, :], (3000, 3000))
    image = np.ascontiguousarray(image)
    before = signal.signal(signal.SIGALRM, end)
    try:
        for call in (sp.slic, sp.Segmenter(n_segments=500_000, iterations=31).segment):
            more = {"n_segments": 500_000, "iterations": 31} if call is sp.slic else {}
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            begin = time.perf_counter()
            with pytest.raises(Enough):
                call(image, **more)
            assert time.perf_counter() - begin < 30
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def maps(labels):
    """The same regions in all types that labels have."""
    outside = labels.astype(np.int32)
    outside[labels == 7] = -1
    return {"uint32": labels, "int32": outside}


@pytest.mark.parametrize("kind", ["uint32", "int32"])
def test_drawings(large, maps, kind):
    labels = maps[kind]
    inside = labels.astype(np.int64) >= 0
    drawn = sp.mean_color(large, labels)
    for channel in range(3):
        sums = np.bincount(labels[inside], weights=large[..., channel][inside].astype(float))
        counts = np.maximum(np.bincount(labels[inside]), 1)
        means = np.floor(sums / counts + 0.5)
        assert np.array_equal(drawn[inside][:, channel], means[labels[inside]])
    assert np.array_equal(drawn[~inside], large[~inside])
    lines = sp.boundaries(large, labels, (1, 2, 3))
    at = np.zeros(labels.shape, bool)
    at[:, :-1] = labels[:, 1:] != labels[:, :-1]
    at[:-1] |= labels[1:] != labels[:-1]
    assert (lines[at] == (1, 2, 3)).all() and np.array_equal(lines[~at], large[~at])
    assert sp.show(large, labels, mean_color=True).pixels.shape == large.shape


@pytest.mark.parametrize("kind", ["uint32", "int32"])
def test_graphs_runs_and_single_regions(maps, kind):
    labels = maps[kind]
    pairs = sp.adjacency(labels)
    count = int(labels.max()) + 1
    assert pairs.shape == (count, count) and (pairs != pairs.T).nnz == 0
    across = labels[:, :-1].astype(np.int64), labels[:, 1:].astype(np.int64)
    differ = (across[0] != across[1]) & (across[0] >= 0) & (across[1] >= 0)
    down = labels[:-1].astype(np.int64), labels[1:].astype(np.int64)
    differ_down = (down[0] != down[1]) & (down[0] >= 0) & (down[1] >= 0)
    assert pairs.sum() == 2 * (differ.sum() + differ_down.sum())
    last = count - 1
    y, x = np.argwhere(labels == last)[0]
    region = sp.region_at(labels, x=int(x), y=int(y))
    assert region.label == last > 65_535 and region.area == (labels == last).sum()
    every = sp.rles(labels)
    assert every[last] == sp.rle(labels, last) and len(every) == count - (kind == "int32")


@pytest.mark.parametrize("kind", ["uint32", "int32"])
def test_outlines_and_exports(maps, kind):
    # A part of the map keeps numbers past 16 bits, and files small.
    part = np.ascontiguousarray(maps[kind][-60:, -80:])
    names = set(np.unique(part).tolist()) - {-1}
    assert max(names) > 65_535
    outlines = sp.contours(part)
    assert set(outlines) == names
    geo = sp.to_geojson(part)
    assert {feature["properties"]["label"] for feature in geo["features"]} == names
    assert len(json.dumps(geo)) > 1000 and "<path" in sp.to_svg(part)
    assert len(sp.to_coco(part, "picture.png")["annotations"]) == len(names)
    assert sp.to_cvat(part, "picture.png").count("<polygon ") >= len(names)
    assert json.dumps(sp.to_label_studio(part, "picture.png")).count("polygonlabels") >= len(names)


def test_contours_of_all(labels):
    outlines = sp.contours(labels)
    assert len(outlines) == labels.max() + 1


def test_what_has_16_bits_refuses(labels, tmp_path):
    with pytest.raises(ValueError, match=r"labels must be 0 to 65535.*np\.save"):
        sp.to_png16(tmp_path / "labels.png", labels)
    _, merges = sp.hierarchy(np.zeros((60, 80), np.uint8), 50)
    with pytest.raises(ValueError, match="labels must be below 65535"):
        sp.cut(labels, merges, 7)
    fine = np.empty((60, 80), np.uint32)
    segmenter = sp.Segmenter(n_segments=50, levels=True)
    segmenter.segment(np.arange(4800, dtype=np.uint16).reshape(60, 80) * 13, out=fine)
    level = sp.cut(fine, segmenter.merges, 7)
    assert level.dtype == np.uint32 and len(np.unique(level)) == 7
