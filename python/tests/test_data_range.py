# SPDX-License-Identifier: MPL-2.0
"""What values are black and white: of each dtype, as the caller says, or as the image has them."""

import warnings

import numpy as np
import pytest
import superpixels as sp
from test_arrays import ALGORITHMS

DTYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64", ">i2", "<f8", "float16"]


def codes(image, low, high):
    """The codes of 16 bits that values become, as docs/python.md has it."""
    values = np.clip(image.astype(np.float64), low, high)
    return np.floor(65535 * (values - low) / (high - low) + 0.5).astype(np.uint16)


def drawn(dtype, low, high, seed=3):
    """A picture of some areas with noise, in a range of values and somewhat beyond."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:48, :64]
    areas = rng.integers(0, 2**16, (4, 4, 3))[y // 12, x // 16] + rng.integers(-900, 900, (48, 64, 3))
    return np.clip(low + areas / 65535 * (high - low), *bounds(dtype)).astype(dtype)


def bounds(dtype):
    kind = np.dtype(dtype)
    info = np.finfo(kind) if kind.kind == "f" else np.iinfo(kind)
    return info.min, info.max


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype):
    ranges = [(10, 90), (0, 127), (-1000, 400), (0, 4095), (-3, 1e6), (0.25, 0.5)]
    for low, high in ranges:
        image = drawn(dtype, low, high)
        for one in (image, image[..., 1], image[::-1, ::2], image[..., ::-1].transpose(1, 0, 2), np.dstack([image, image[..., :1]])):
            want = codes(one[..., :3] if one.ndim == 3 else one, low, high)
            assert np.array_equal(
                sp.slic(one, 60, data_range=(low, high)), sp.slic(want, 60, data_range=(0, 65535))
            ), (dtype, low, high)


def test_twelve_bits_are_as_good_as_eight(picture):
    twelve = np.floor(picture.astype(np.float64) * 4095 / 255 + 0.5).astype(np.uint16)
    want = sp.slic(picture)
    labels = sp.slic(twelve, data_range=(0, 4095))
    # Nearly the same colors give nearly the same labels.
    assert abs(int(labels.max()) - int(want.max())) <= 3
    same = np.bincount(labels.ravel().astype(int) * 65536 + want.ravel(), minlength=1)
    assert same.max() > 0 and np.mean(labels == want) > 0.8
    segmenter = sp.Segmenter(n_segments=100, data_range=(0, 4095))
    assert np.array_equal(segmenter.segment(twelve), labels)
    # Means are of the codes.
    mean = picture.reshape(-1, 3).mean(0)
    area = segmenter.regions["area"][:, None]
    assert abs((segmenter.regions["mean_rgb"] * area).sum(0) / area.sum() - mean).max() < 1


@pytest.mark.parametrize("function", ALGORITHMS)
def test_units_of_tomography(function):
    image = drawn(np.int16, -1000, 1000)[..., 0]
    want = function(codes(image, -160, 240), data_range=(0, 65535))
    assert np.array_equal(function(image, data_range=(-160, 240)), want)
    assert np.array_equal(function(image.astype(np.float32), data_range=[-160.0, 240.0]), want)


def test_range_of_the_image(picture):
    image = picture[..., :2].astype(np.float32).repeat(2, 2)[..., :3] * 3 - 40
    low, high = float(image.min()), float(image.max())
    want = sp.slic(image, data_range=(low, high))
    assert np.array_equal(sp.slic(image, data_range="image"), want)
    # Of each image of a batch or a list.
    batch = np.stack([image, image * 2])
    assert np.array_equal(sp.slic(batch, data_range="image"), [want, want])
    assert np.array_equal(sp.slic([image, image[:60]], data_range="image")[1], sp.slic(image[:60], data_range="image"))
    # Inside of the mask, and of finite values, alpha not counted.
    mask = np.zeros(image.shape[:2], bool)
    mask[30:90, 20:150] = True
    part = image[mask]
    want = sp.slic(image, data_range=(float(part.min()), float(part.max())), mask=mask)
    outside = image.copy()
    outside[~mask] = [np.nan, np.inf, -9999]
    outside = np.dstack([outside, np.full(mask.shape, 1e9, np.float32)])
    assert np.array_equal(sp.slic(outside, data_range="image", mask=mask), want)
    for constant in (np.full((20, 30), 7, np.int64), np.zeros((20, 30), np.float32)):
        assert np.array_equal(sp.slic(constant, data_range="image"), sp.slic(np.zeros((20, 30), np.uint8)))


def test_infinite_values_are_cut_off_and_nan_is_refused():
    image = drawn(np.float32, 0, 1)
    image[5, 6, 1], image[7, 8, 2] = np.inf, -np.inf
    cut = np.clip(image, 0, 1)
    assert np.array_equal(sp.slic(image, data_range=(0, 1)), sp.slic(cut))
    image[9, 10, 0] = np.nan
    with pytest.raises(ValueError, match="numbers, got NaN at x = 10, y = 9"):
        sp.slic(image, data_range=(0, 1))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -9999.0])
def test_what_is_outside_of_a_mask_means_nothing(picture, bad):
    image = picture / np.float32(255)
    mask = np.zeros(image.shape[:2], np.uint8)
    mask[30:90, 20:150] = 9
    want = sp.slic(image, mask=mask)
    image[mask == 0] = bad
    segmenter = sp.Segmenter(n_segments=100)
    for one in (image, image[..., ::-1].copy()[..., ::-1], image.astype(np.float64)):
        assert np.array_equal(sp.slic(one, mask=mask), want)
        assert np.array_equal(segmenter.segment(one, mask=mask), want)
    mask[0, 7] = 1
    with pytest.raises(ValueError, match="x = 7, y = 0"):
        sp.slic(image, mask=mask)


def test_a_range_that_is_probably_wrong_is_named(picture):
    ten = picture.astype(np.uint16) * 4
    alpha = np.dstack([ten, np.full(ten.shape[:2], 65535, np.uint16)])
    for image in (ten, ten[..., 0].copy(), ten[None], alpha, alpha[..., :3], [ten, ten]):
        with pytest.warns(UserWarning, match=r"data_range=\(0, 1023\)") as told:
            sp.slic(image)
        assert told[0].filename == __file__
    segmenter = sp.Segmenter()
    with pytest.warns(UserWarning, match="data_range"):
        segmenter.segment(ten)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # It has been told.
        segmenter.segment(ten)
        sp.slic(ten, data_range=(0, 1023))
        sp.slic(ten, data_range=(0, 65535))
        sp.slic(ten[..., 0].copy(), stretch_gray16=True)
        sp.slic(np.zeros((20, 30), np.uint16))
        ten[50, 50, 1] = 8192
        sp.slic(ten)


def test_stretch(picture):
    gray = picture[..., 0].astype(np.uint16) + 3000
    want = sp.slic(gray, stretch_gray16=True)
    assert np.array_equal(sp.slic(gray, data_range="stretch"), want)
    assert np.array_equal(sp.Segmenter(n_segments=100, data_range="stretch").segment(gray), want)
    for image in (picture, picture[..., 0], gray.astype(np.float32)):
        with pytest.raises(ValueError, match="gray images of uint16"):
            sp.slic(image, data_range="stretch")


@pytest.mark.parametrize(
    "bad, error",
    [
        ((1, 0), ValueError),
        ((1, 1), ValueError),
        ((0, np.inf), ValueError),
        ((np.nan, 1), ValueError),
        ((-1.7e308, 1.7e308), ValueError),
        ("picture", ValueError),
        ((1,), TypeError),
        ((1, 2, 3), TypeError),
        (5, TypeError),
        (("a", "b"), TypeError),
        ((1, 10**400), TypeError),
    ],
)
def test_bad_ranges(bad, error, picture):
    for call in (lambda: sp.slic(picture, data_range=bad), lambda: sp.Segmenter(data_range=bad)):
        with pytest.raises(error, match="data_range"):
            call()
