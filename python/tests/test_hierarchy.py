# SPDX-License-Identifier: MPL-2.0
"""Exactly as many regions as asked for, in levels that are nested."""

import numpy as np
import pytest
import superpixels as sp

GRIDS = [sp.slic, sp.lsc, sp.snic]


def is_nested(fine, coarse):
    """Returns True if every region of the fine map lies in one of the coarse map."""
    pairs = np.unique(fine.astype(np.int64) << 16 | coarse)
    return len(pairs) == len(np.unique(fine))


@pytest.mark.parametrize("function", GRIDS)
@pytest.mark.parametrize("count", [1, 2, 7, 60, 333])
def test_exact_numbers(function, count, picture):
    labels = function(picture, n_regions=count)
    assert np.array_equal(np.unique(labels), np.arange(count))
    assert np.array_equal(function(picture, n_regions=np.int32(count), threads=1), labels)


def test_levels_are_nested(picture):
    maps = [sp.slic(picture, n_segments=900, n_regions=count) for count in (290, 100, 31, 6, 1)]
    assert all(is_nested(fine, coarse) for fine, coarse in zip(maps, maps[1:]))
    assert is_nested(sp.slic(picture, n_segments=900), maps[0])


def test_places_weigh(picture):
    def spread(labels):
        y, x = np.indices(labels.shape)
        return sum(x[labels == label].std() + y[labels == label].std() for label in range(20))

    loose, tight = (sp.slic(picture, n_regions=20, regions_compactness=weight) for weight in (0, 50))
    assert spread(tight) < spread(loose)


def test_quickshift(picture):
    most = sp.quickshift(picture).max() + 1
    assert sp.quickshift(picture, n_regions=most // 3).max() + 1 == most // 3
    assert np.array_equal(sp.quickshift(picture, n_regions=most + 1), sp.quickshift(picture))


def test_masks(picture):
    mask = np.zeros(picture.shape[:2], bool)
    mask[10:60, 10:70] = mask[80:110, 100:150] = True
    for count, wanted in [(9, 9), (1, 2)]:
        labels = sp.slic(picture, n_regions=count, mask=mask)
        assert labels[mask].max() + 1 == wanted and (labels[~mask] == -1).all()


def test_segmenter(picture):
    segmenter = sp.Segmenter(n_segments=300, n_regions=40, temporal=True)
    assert segmenter.parameters["n_regions"] == 40
    for shift in range(4):
        segmenter.segment(np.roll(picture, shift, axis=1))
        assert segmenter.n_regions == 40 == len(segmenter.regions)
    segmenter.set(n_regions=25)
    segmenter.segment(picture)
    assert segmenter.n_regions == 25


@pytest.mark.parametrize("algorithm", ["slic", "lsc", "snic", "quickshift"])
def test_functions_and_segmenters_are_equal(algorithm, picture):
    picture = picture[:64, :85]
    mask = np.hypot(*np.indices(picture.shape[:2])) < 60
    grids = [{}, {"superpixel_size": 16}]
    grids += [{"n_segments": count} for count in (0, 1, 50, 100, 101, 130, 400)]
    for grid in grids if algorithm != "quickshift" else [{}]:
        # The functions' own number, where none is given.
        asked = grid or ({"n_segments": 100} if algorithm != "quickshift" else {})
        for more in ({}, {"n_regions": 20}, {"n_regions": 120}, {"merge": 2.0}, {"n_regions": 20, "refine": 1}):
            segmenter = sp.Segmenter(algorithm, **asked, **more)
            for masked in (None, mask):
                labels = getattr(sp, algorithm)(picture, **grid, **more, mask=masked)
                assert np.array_equal(segmenter.segment(picture, mask=masked), labels), (grid, more)


def test_numbers_come_and_go(picture):
    # A parameter that is set stays, even if a number of regions would change its default.
    segmenter = sp.Segmenter(n_segments=50, n_regions=20)
    assert np.array_equal(segmenter.segment(picture), sp.slic(picture, n_segments=50, n_regions=20))
    assert segmenter.parameters["n_segments"] == 50
    for given in ({"n_regions": 0}, {"n_regions": 60}, {"n_segments": 150}, {"n_regions": 0}, {"superpixel_size": 12}, {"n_regions": 5}):
        segmenter.set(**given)
        known = {name: segmenter.parameters[name] for name in ("n_segments", "n_regions", "superpixel_size")}
        assert np.array_equal(segmenter.segment(picture), sp.slic(picture, **known)), given


def is_list_of(labels, merges):
    """Returns True if every step joins two regions that touch, and has the area of both."""
    of, area = np.arange(labels.max() + 1), np.bincount(labels.ravel())
    for a, b, _, both in merges.tolist():
        a, b, now = of[a], of[b], of[labels]
        area[a] += area[b]
        sides = [(now[1:], now[:-1]), (now[:, 1:], now[:, :-1])]
        if area[a] != both or not any((((p == a) & (q == b)) | ((p == b) & (q == a))).any() for p, q in sides):
            return False
        of[of == b] = a
    return True


@pytest.mark.parametrize("refine", [0, 1, 8])
def test_lists_are_of_the_refined_map(refine, picture):
    noise = np.random.default_rng(3).integers(0, 256, (24, 40, 3), np.uint8)
    for seed, image in enumerate([noise, picture[:40, :60]]):
        for more in ({}, {"n_regions": 15}):
            labels, merges = sp.hierarchy(image, refine=refine, superpixel_size=5, compactness=0.5, **more)
            assert len(merges) == labels.max() and is_list_of(labels, merges), (seed, more)


def test_what_is_refused(picture):
    for call in (lambda **given: sp.slic(picture, **given), lambda **given: sp.Segmenter(**given)):
        with pytest.raises(ValueError, match="n_regions must be 0 while merge is above 0"):
            call(n_regions=5, merge=2)
    for bad in ("5", None, 5.5):
        with pytest.raises(TypeError, match="n_regions"):
            sp.slic(picture, n_regions=bad)
    with pytest.raises(ValueError, match="n_segments"):
        sp.slic(picture, n_segments=-1, n_regions=5)


@pytest.mark.parametrize("algorithm", ["slic", "lsc", "quickshift", "snic"])
def test_cuts_are_the_levels(algorithm, picture):
    if algorithm == "quickshift":
        # It takes much longer for each pixel.
        picture = picture[:80, :108]
    labels, merges = sp.hierarchy(picture, 500, algorithm=algorithm)
    count = labels.max() + 1
    assert np.array_equal(labels, getattr(sp, algorithm)(picture, **({} if algorithm == "quickshift" else dict(n_segments=500))))
    assert len(merges) == count - 1 and (np.diff(merges["height"]) >= 0).all()
    assert merges["area"][-1] == labels.size
    for wanted in (1, 2, 30, 140, count, count + 5):
        level = sp.cut(labels, merges, wanted)
        assert level.max() + 1 == min(wanted, count) and is_nested(labels, level)
        if wanted < 150:
            same = dict(n_regions=wanted) | ({} if algorithm == "quickshift" else dict(n_segments=500))
            assert np.array_equal(level, getattr(sp, algorithm)(picture, **same))
    assert np.array_equal(sp.cut(labels, merges, count), labels)


def test_cuts_of_segmenters_and_masks(picture):
    mask = np.hypot(*np.indices(picture.shape[:2])) < 100
    labels, merges = sp.hierarchy(picture, 200, mask=mask, n_regions=50)
    level = sp.cut(labels, merges, 5)
    assert (level[~mask] == -1).all() and np.array_equal(np.unique(level[mask]), np.arange(5))
    segmenter = sp.Segmenter(n_segments=200, levels=True, temporal=True)
    for shift in range(3):
        labels = segmenter.segment(np.roll(picture, shift, axis=0))
        assert sp.cut(labels, segmenter.merges, 9).max() == 8
    with pytest.raises(RuntimeError, match="levels=True"):
        sp.Segmenter().merges
    with pytest.raises(RuntimeError, match="no frame"):
        sp.Segmenter(levels=True).merges


def test_cuts_that_are_refused(picture):
    labels, merges = sp.hierarchy(picture, 100)
    columns = {name: merges[name] for name in merges.dtype.names}
    assert np.array_equal(sp.cut(labels, columns, 5), sp.cut(labels, merges, 5))
    wrong = [{}, {"a": merges["a"]}, columns | {"b": merges["b"][1:]}, columns | {"area": merges["area"].astype(float)}]
    for bad in [(labels.astype(int), merges), (labels, merges["a"]), (labels, None), (labels[0], merges), *((labels, w) for w in wrong)]:
        with pytest.raises(TypeError):
            sp.cut(*bad, 5)
    with pytest.raises(ValueError, match="another label map"):
        sp.cut(labels[:20, :20] % 7, merges, 1)
    for count in ("5", 5.5, None):
        with pytest.raises(TypeError):
            sp.cut(labels, merges, count)
    with pytest.raises(ValueError, match="n_regions must be 0 or more"):
        sp.cut(labels, merges, -1)
    assert np.array_equal(sp.cut(labels, merges, 2**40), labels)
    for start in (-2, -7, 70_000):
        with pytest.raises(ValueError, match="subtract the start_label"):
            sp.cut(labels.astype(np.int32) + start, merges, 5)
    with pytest.raises(ValueError, match="one picture"):
        sp.hierarchy(picture[None], 100)
