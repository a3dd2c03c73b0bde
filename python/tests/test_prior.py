# SPDX-License-Identifier: MPL-2.0
"""Priors: no region has pixels of two areas, whatever type, size and layout the numbers have."""

from __future__ import annotations

import numpy as np
import pytest
import superpixels as sp


def picture(height=90, width=120, seed=0):
    ys, xs = np.mgrid[:height, :width]
    waves = [127 + 90 * np.sin(xs / (7 + i) + ys / (11 - i)) for i in range(3)]
    noise = np.random.default_rng(seed).integers(-20, 20, (height, width, 3))
    return np.clip(np.stack(waves, axis=-1) + noise, 0, 255).astype(np.uint8)


def areas(height=90, width=120):
    """A disk, a bar that crosses it, and what is around."""
    ys, xs = np.mgrid[:height, :width]
    found = np.where((ys - 45) ** 2 + (xs - 50) ** 2 < 900, 7, 0)
    found[40:52, 15:110] = -1
    return found


def scaled(prior, height, width):
    rows = (2 * np.arange(height) + 1) * prior.shape[0] // (2 * height)
    columns = (2 * np.arange(width) + 1) * prior.shape[1] // (2 * width)
    return prior[rows][:, columns]


def crossings(labels, prior):
    """Regions with pixels of two areas."""
    pairs = np.unique(np.stack([labels.ravel().astype(np.int64), prior.ravel().astype(np.int64)]), axis=1)
    return pairs.shape[1] - len(np.unique(labels))


@pytest.mark.parametrize("algorithm", [sp.slic, sp.lsc, sp.snic, sp.quickshift])
def test_no_region_crosses_a_prior(algorithm):
    image, prior = picture(), areas()
    without = algorithm(image)
    assert crossings(without, prior) > 0
    labels = algorithm(image, prior=prior)
    assert crossings(labels, prior) == 0
    assert labels.dtype == without.dtype
    assert (algorithm(image, prior=np.zeros((1, 1), int)) == without).all()


def test_any_type_size_and_layout_is_taken():
    image, prior = picture(), areas()
    wanted = sp.slic(image, 60, prior=prior)
    for dtype in ["int8", "int16", "int32", "int64"]:
        assert (sp.slic(image, 60, prior=prior.astype(dtype)) == wanted).all()
    for kind in [np.uint8, np.uint16, np.uint32, np.uint64]:
        assert (sp.slic(image, 60, prior=(prior + 1).astype(kind)) == wanted).all()
    assert (sp.slic(image, 60, prior=np.asfortranarray(prior)) == wanted).all()
    assert (sp.slic(image, 60, prior=np.repeat(prior, 2, axis=1)[:, ::2]) == wanted).all()
    for shape in [(9, 12), (30, 17), (200, 333)]:
        small = scaled(prior, *shape)
        labels = sp.slic(image, 60, prior=small)
        assert crossings(labels, scaled(small, 90, 120)) == 0
        assert (labels == sp.slic(image, 60, prior=scaled(small, 90, 120))).all()
    mask = prior == 7
    assert crossings(sp.slic(image, 60, prior=mask), mask) == 0


def test_exact_numbers_merge_areas_last():
    image, prior = picture(), areas()
    count = len(np.unique(sp.slic(image, n_regions=2, prior=prior)))
    assert count == 2
    connected = len(np.unique(sp.slic(image, merge=0, min_region=0, n_regions=1, prior=prior)))
    assert connected == 1
    # The bar cuts the disk in two pieces, and the background stays one.
    for n in [4, 5, 40]:
        labels = sp.slic(image, n_regions=n, prior=prior)
        assert len(np.unique(labels)) == n
        assert crossings(labels, prior) == 0
    whole = sp.slic(image, n_regions=4, prior=prior)
    assert all(len(np.unique(whole[prior == number])) == pieces for number, pieces in [(7, 2), (-1, 1), (0, 1)])


def test_batches_and_masks_have_priors():
    images = np.stack([picture(seed=i) for i in range(3)])
    prior = np.stack([np.roll(areas(), 9 * i, axis=1) for i in range(3)])
    mask = np.ones((90, 120), bool)
    mask[:20] = False
    each = sp.slic(images, 60, prior=prior, mask=mask)
    shared = sp.slic(images, 60, prior=prior[1])
    for i in range(3):
        assert (each[i] == sp.slic(images[i], 60, prior=prior[i], mask=mask)).all()
        assert (each[i] == -1).sum() == 20 * 120
        assert crossings(each[i][20:], prior[i][20:]) == 0
        assert (shared[i] == sp.slic(images[i], 60, prior=prior[1])).all()


def test_frames_have_priors_or_not():
    image, prior = picture(), areas()
    segmenter = sp.Segmenter("slic", n_segments=60, temporal=True)
    clip = [np.roll(image, 2 * i, axis=1) for i in range(6)]
    for i, frame in enumerate(clip):
        own = np.roll(prior, 2 * i, axis=1)
        labels = segmenter.segment(frame, prior=own if i != 3 else None)
        assert i == 3 or crossings(labels, own) == 0
    # A picture that does not move keeps its tracks.
    segmenter.segment(np.stack([image] * 4), prior=prior)
    before = set(segmenter.regions["track_id"])
    segmenter.segment(image, prior=prior)
    assert len(before & set(segmenter.regions["track_id"])) > 0.9 * len(before)
    independent = sp.Segmenter("slic", n_segments=60)
    assert (independent.segment(np.stack(clip), prior=prior)[2] == sp.slic(clip[2], 60, prior=prior)).all()


def test_label_maps_of_32_bits_have_priors():
    image = picture(1200, 1200)
    prior = scaled(areas(), 1200, 1200)
    labels = sp.slic(image, superpixel_size=4, prior=prior)
    assert labels.dtype == np.uint32
    assert crossings(labels, prior) == 0


def test_priors_that_do_not_fit_are_refused():
    image = picture()
    with pytest.raises(TypeError, match="prior must be an array of integers or bool, got float64"):
        sp.slic(image, prior=areas().astype(float))
    with pytest.raises(TypeError, match="got list"):
        sp.slic(image, prior=areas().tolist())
    with pytest.raises(ValueError, match=r"shape \(h, w\), .*got \[2, 90, 120\]"):
        sp.slic(image, prior=np.stack([areas()] * 2))
    with pytest.raises(ValueError, match=r"\(h, w\) or, for a batch, \(N, h, w\).*got \[3, 90, 120\]"):
        sp.slic(np.stack([image] * 2), prior=np.stack([areas()] * 3))
    with pytest.raises(ValueError, match="got \\[0, 120\\]"):
        sp.slic(image, prior=areas()[:0])
    with pytest.raises(ValueError, match="prior has the number 2147483648; they must be of 32 bits"):
        sp.slic(image, prior=areas() + 2**31 - 7)
    with pytest.raises(ValueError, match="connectivity"):
        sp.slic(image, connectivity=False, prior=areas())
    with pytest.raises(TypeError, match="prior must be None where image is a list"):
        sp.slic([image, image], prior=areas())


def test_a_coarse_prior_guides_without_a_cut():
    image, prior = picture(), areas()
    coarse = prior[4::8, 4::8]
    labels = sp.slic(image, superpixel_size=8, prior=coarse, prior_cuts=False)
    assert (labels == sp.slic(image, superpixel_size=8)).all()
    few = sp.slic(image, n_regions=12, prior=coarse, prior_cuts=False)
    assert len(np.unique(few)) == 12
    assert (few != sp.slic(image, n_regions=12)).any()
    segmenter = sp.Segmenter("slic", n_regions=12)
    assert (segmenter.segment(image, prior=coarse, prior_cuts=False) == few).all()
    assert (segmenter.segment(image, prior=coarse) == sp.slic(image, n_regions=12, prior=coarse)).all()
    assert (segmenter.segment(image) == sp.slic(image, n_regions=12)).all()


def test_a_price_lets_merging_cross():
    image, prior = picture(), areas()
    for options in ({"n_regions": 30}, {"merge": 2.0, "merge_passes": 3}):
        crossed = [crossings(sp.slic(image, prior=prior, prior_price=price, **options), prior) for price in (1, 20, 300)]
        assert crossed[0] > crossed[1] >= crossed[2] and crossed[0] > crossed[2] + 3
        assert crossings(sp.slic(image, prior=prior, **options), prior) == 0
    segmenter = sp.Segmenter("slic", n_regions=30, temporal=True)
    segmenter.segment(image, prior=prior)
    before = set(segmenter.regions["track_id"])
    priced = segmenter.segment(image, prior=prior, prior_price=0.5)
    assert len(before & set(segmenter.regions["track_id"])) > 15
    assert crossings(priced, prior) > 0
    for price in (-1, 301, float("nan")):
        with pytest.raises(ValueError, match="prior_price"):
            sp.slic(image, prior=prior, prior_price=price)


def test_pictures_of_a_set_have_priors():
    images = [picture(90 + 9 * i, 120 - 9 * i, seed=i) for i in range(3)]
    priors = [scaled(areas(), 40 + i, 50) for i in range(3)]
    options = {"n_regions": 20, "prior_price": 2.0, "prior_cuts": False}
    for given in (priors, (prior for prior in priors)):
        for one in sp.segment_images(images, prior=given, **options):
            want = sp.slic(images[one.index], prior=priors[one.index], **options)
            assert (one.labels == want).all()
    batch = np.stack([picture(seed=i) for i in range(3)])
    mask = np.arange(120) > 9
    masks = np.stack([np.broadcast_to(mask, (90, 120))] * 3)
    for given in (priors[0], np.stack([areas(), areas()[::-1], areas().T[:90, :90].repeat(2, 1)[:, :120]])):
        want = sp.slic(batch, n_regions=20, mask=masks, prior=given)
        found = list(sp.segment_images(batch, n_regions=20, mask=masks, prior=given))
        assert all((one.labels == labels).all() for one, labels in zip(found, want))
        assert (sp.segment_batch(batch, n_regions=20, mask=masks, prior=given).labels == want).all()
    with pytest.raises(ValueError, match="2 priors for 3 images"):
        sp.segment_images(images, prior=priors[:2])
    with pytest.raises(TypeError, match="prior must be an array of shape"):
        sp.segment_images(images, prior=np.zeros((2, 3, 4, 5), int))
    with pytest.raises(ValueError, match="prior_price"):
        sp.segment_images(images, prior=priors, prior_price=-1)
    for some in (images, batch):
        found = sp.segment_images(some, prior=iter(priors[:2]), mask=(np.ones(image.shape[:2], bool) for image in some))
        assert [next(found).index, next(found).index] == [0, 1]
        with pytest.raises(ValueError, match="^image 2: there is no prior"):
            next(found)
    with pytest.raises(ValueError, match="^image 0: the prior of an image"):
        list(sp.segment_images(batch, prior=[np.zeros((3, 4, 5), int)] * 3))
