# SPDX-License-Identifier: MPL-2.0
"""Masks: what is outside belongs to no superpixel, what is inside is segmented as if nothing else were there."""

import numpy as np
import pytest
import superpixels as sp

ALGORITHMS = [sp.slic, sp.lsc, sp.quickshift, sp.snic]


def disk(shape, x, y, radius):
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    return (columns - x) ** 2 + (rows - y) ** 2 < radius**2


@pytest.fixture
def mask(picture):
    return disk(picture.shape, 70, 60, 45)


@pytest.mark.parametrize("function", ALGORITHMS)
def test_only_what_is_inside_is_segmented(function, picture, mask):
    labels = function(picture, mask=mask)
    assert labels.dtype == np.int32
    assert np.array_equal(labels != -1, mask)
    assert np.array_equal(np.unique(labels[mask]), np.arange(labels[mask].max() + 1))
    # Colors outside count for nothing.
    other = picture.copy()
    other[~mask] = 255 - other[~mask]
    assert np.array_equal(function(other, mask=mask), labels)
    assert np.array_equal(function(picture, mask=np.ones_like(mask)), function(picture))
    assert (function(picture, mask=np.zeros_like(mask)) == -1).all()


def test_any_layout_and_any_byte(picture, mask):
    want = sp.slic(picture, mask=mask)
    wide = np.zeros((122, 400), np.uint8)
    wide[:, 10:336:2] = mask * np.arange(1, 164, dtype=np.uint8)
    flipped = mask[::-1].copy()
    for other in [mask.astype(np.uint8) * 255, wide[:, 10:336:2], np.asfortranarray(mask), flipped[::-1], wide[:, 10:336:2].view(bool)]:
        assert np.array_equal(sp.slic(picture, mask=other), want)


def test_start_label_and_out(picture, mask):
    want = sp.slic(picture, mask=mask)
    shifted = sp.slic(picture, mask=mask, start_label=1)
    assert shifted.dtype == np.int32 and np.array_equal(shifted, want + 1)
    assert np.array_equal(sp.slic(picture, mask=mask, start_label=-9), want - 9)
    segmenter = sp.Segmenter(n_segments=100)
    for start in (0, 1, -9):
        assert np.array_equal(segmenter.segment(picture, mask=mask, start_label=start), want + start)
    out = np.zeros(mask.shape, np.int32)
    assert sp.slic(picture, mask=mask, out=out) is out and np.array_equal(out, want)
    assert segmenter.segment(picture, out, mask) is out and np.array_equal(out, want)
    for call in (sp.slic, segmenter.segment):
        with pytest.raises(TypeError, match="out must be an array of int32, got uint16"):
            call(picture, mask=mask, out=np.zeros(mask.shape, np.uint16))
    # It is read before labels are written.
    own = mask.astype(np.uint8)
    assert np.array_equal(sp.Segmenter(n_segments=100).segment(picture, None, own), want)


@pytest.mark.parametrize(
    "mask, error, text",
    [
        (np.ones((122, 162), bool), ValueError, r"mask must be of shape \[122, 163\], got \[122, 162\]"),
        (np.ones((122, 163, 1), bool), ValueError, "mask must be of shape"),
        (np.ones((122, 163), np.float32), TypeError, r"mask must be an array of bool or uint8, got float32; pass mask.astype\(bool\)"),
        ([[True]], TypeError, "got list"),
    ],
)
def test_bad_masks(picture, mask, error, text):
    with pytest.raises(error, match=text):
        sp.slic(picture, mask=mask)
    with pytest.raises(error, match=text):
        sp.Segmenter().segment(picture, mask=mask)


def test_tables_are_of_what_is_inside(picture, mask):
    segmenter = sp.Segmenter(superpixel_size=9)
    labels = segmenter.segment(picture, mask=mask)
    assert np.array_equal(segmenter.regions["area"], np.bincount(labels[mask]))
    assert segmenter.neighbors["b"].max() < segmenter.n_regions
    assert np.array_equal(segmenter.segment(picture), sp.slic(picture, superpixel_size=9, n_segments=0))


def test_batches_and_clips(picture, mask):
    batch = np.stack([picture, picture[::-1], 255 - picture])
    masks = np.stack([mask, mask[::-1], ~mask])
    for own in (mask, masks):
        want = [sp.slic(image, mask=each) for image, each in zip(batch, np.broadcast_to(own, masks.shape))]
        assert np.array_equal(sp.slic(batch, mask=own), want)
        assert np.array_equal(sp.Segmenter(n_segments=100).segment(batch, mask=own), want)
        shifted = sp.slic(batch, mask=own, start_label=1)
        assert shifted.dtype == np.int32 and np.array_equal(shifted, np.array(want) + 1)
    floats = (picture / 255).astype(np.float32)
    assert np.array_equal(sp.slic(floats, mask=mask) != -1, mask)
    with pytest.raises(ValueError, match="mask must be of shape"):
        sp.slic(batch, mask=masks[:2])
    with pytest.raises(TypeError, match="mask must be None where image is a list"):
        sp.slic([picture, picture], mask=mask)


def test_a_mask_that_moves(picture):
    segmenter = sp.Segmenter(superpixel_size=9, temporal=True)
    ids = []
    for shift in range(4):
        mask = disk(picture.shape, 60 + 3 * shift, 60, 40)
        labels = segmenter.segment(np.roll(picture, 3 * shift, axis=1).copy(), mask=mask)
        assert np.array_equal(labels != -1, mask)
        ids.append(set(segmenter.regions["track_id"].tolist()))
    assert len(ids[0] & ids[3]) > len(ids[0]) / 2
    # From the first mask on regions keep their names, with masks or without.
    segmenter = sp.Segmenter(superpixel_size=9, temporal=True)
    segmenter.segment(picture)
    first = segmenter.next_id
    segmenter.segment(picture, mask=np.ones(picture.shape[:2], bool))
    named = set(segmenter.regions["track_id"].tolist())
    assert min(named) == first
    segmenter.segment(picture)
    assert len(named & set(segmenter.regions["track_id"].tolist())) > 0.9 * len(named)


@pytest.mark.parametrize("start_label", [0, 1])
def test_a_batch_has_one_mask_or_one_for_each_image(picture, start_label):
    images = np.stack([picture, picture[::-1], np.roll(picture, 9, axis=1)])
    masks = np.stack([disk(picture.shape, 40 + 30 * i, 60, 30 + 9 * i) for i in range(3)])
    outside = start_label - 1
    for given, of in ((masks, masks), (masks[1], [masks[1]] * 3)):
        together = sp.slic(images, 20, mask=given, start_label=start_label)
        for labels, image, mask in zip(together, images, of):
            assert (labels == sp.slic(image, 20, mask=mask, start_label=start_label)).all()
            assert (labels[~mask] == outside).all() and (labels[mask] != outside).all()
    clip = sp.Segmenter(n_segments=20, temporal=True).segment(images, mask=masks)
    one = sp.Segmenter(n_segments=20, temporal=True)
    assert all((labels == one.segment(image, mask=mask)).all() for labels, image, mask in zip(clip, images, masks))


def test_masks_of_other_batches_are_refused():
    images = np.zeros((3, 40, 60, 3), np.uint8)
    with pytest.raises(ValueError, match=r"\[40, 60\] or \[3, 40, 60\], got \[2, 40, 60\]"):
        sp.slic(images, mask=np.ones((2, 40, 60), bool))
    with pytest.raises(ValueError, match=r"mask must be of shape \[40, 60\], got"):
        sp.slic(images[0], mask=np.ones((1, 40, 60), bool))
    with pytest.raises(TypeError, match="list"):
        sp.slic(list(images), mask=np.ones((40, 60), bool))
