# SPDX-License-Identifier: MPL-2.0
"""uint16 and float32: the same colors give the same labels, and no bits are lost before the features."""

import numpy as np
import pytest
import superpixels as sp
from test_arrays import ALGORITHMS


def views(picture):
    """Returns a picture in every accepted layout, with the name of its order."""
    height, width, _ = picture.shape
    bgr = picture[..., ::-1].copy()
    alpha = np.dstack([picture, np.full((height, width), picture.max() // 3, picture.dtype)])
    first = alpha[..., [3, 0, 1, 2]].copy()
    yield "packed", picture, "rgb"
    yield "blue first", bgr, "bgr"
    yield "blue first, seen backward", bgr[..., ::-1], "rgb"
    yield "seen backward", picture[..., ::-1], "bgr"
    yield "alpha", alpha, "rgb"
    yield "alpha, blue first", alpha[..., [2, 1, 0, 3]].copy(), "bgr"
    yield "alpha first, seen backward", alpha[..., ::-1].copy()[..., ::-1], "rgb"
    yield "alpha first, blue last, seen backward", first[..., [0, 1, 2, 3]][..., ::-1].copy()[..., [0, 1, 2, 3]], "bgr"
    yield "three of four", alpha[..., :3], "rgb"
    yield "three of four, seen backward", alpha[..., 2::-1], "bgr"
    yield "the last three of four", first[..., 1:], "rgb"
    yield "the last three of four, seen backward", first[..., :0:-1], "bgr"
    yield "a crop of three of four", np.pad(alpha, ((2, 3), (5, 1), (0, 0)))[2:-3, 5:-1, :3], "rgb"
    yield "every second row of three of four", np.repeat(alpha, 2, axis=0)[::2, :, :3], "rgb"


def as_dtype(picture, dtype):
    if dtype == np.uint8:
        return picture
    wide = 257 * picture.astype(np.uint16)
    return wide if dtype == np.uint16 else (wide / np.float32(65535)).astype(np.float32)


NAMES = [name for name, _, _ in views(np.zeros((2, 2, 3), np.uint8))]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("i", range(len(NAMES)), ids=NAMES)
def test_layouts(i, dtype, picture):
    _, image, order = list(views(as_dtype(picture, dtype)))[i]
    want = sp.slic(picture)
    assert image.shape[:2] == picture.shape[:2] and image.dtype == dtype
    if NAMES[i] == "alpha first, blue last, seen backward":
        # Alpha, red, green, blue in memory, seen as blue, green, red, alpha.
        image = np.dstack([image[..., :1]] * 4)
        image[..., 1:] = as_dtype(picture, dtype)
        image = image[..., ::-1]
    assert np.array_equal(sp.slic(image, order=order), want)
    assert np.array_equal(sp.Segmenter(order=order, n_segments=100).segment(image), want)
    # One row and one column have distances of their own.
    for part in (np.s_[:1], np.s_[:, :1], np.s_[:1, :1], np.s_[7:8, 3:9]):
        assert np.array_equal(sp.slic(image[part], order=order), sp.slic(picture[part].copy()))


def test_nothing_beyond_the_memory_is_read():
    # Three of four samples where the fourth of the last pixel is not there: the one before the first may serve, or a copy is read.
    for size, offset in [(120, 0), (120, 1), (119, 0), (122, 2)]:
        memory = np.arange(size, dtype=np.uint8)
        image = np.ndarray((5, 6, 3), np.uint8, memory, offset, (24, 4, 1))
        assert np.array_equal(sp.slic(image), sp.slic(image.copy()))
    # The memory behind the strides is no array's, so its size is unknown.
    image = np.lib.stride_tricks.as_strided(np.arange(200, dtype=np.uint8), (5, 6, 3), (24, 4, 1))
    assert np.array_equal(sp.slic(image), sp.slic(image.copy()))


@pytest.mark.parametrize("function", ALGORITHMS)
@pytest.mark.parametrize("dtype", [np.uint16, np.float32])
def test_the_same_colors_give_the_same_labels(function, dtype, picture):
    assert np.array_equal(function(as_dtype(picture, dtype)), function(picture))
    gray = picture[..., 1].copy()
    want = function(gray)
    for image in (as_dtype(gray, dtype), as_dtype(gray, dtype)[..., None]):
        assert np.array_equal(function(image), want)
    assert np.array_equal(function(as_dtype(np.dstack([picture] * 2)[..., :4].copy(), dtype)), function(picture))


@pytest.mark.parametrize("color_space", ["lab", "lab-gslicr", "xyz-gslicr", "rgb"])
def test_color_spaces(color_space, picture):
    want = sp.slic(picture, color_space=color_space)
    for dtype in (np.uint16, np.float32):
        assert np.array_equal(sp.slic(as_dtype(picture, dtype), color_space=color_space), want)


@pytest.mark.parametrize("dtype", [np.uint16, np.float32])
@pytest.mark.parametrize("linear_light", [False, True])
def test_tables(dtype, linear_light, picture):
    narrow, wide = (sp.Segmenter(linear_light=linear_light, color_space=space) for space in ("lab", "lab"))
    narrow.segment(picture)
    wide.segment(as_dtype(picture, dtype))
    assert narrow.regions.dtype == wide.regions.dtype
    for name in ("track_id", "area", "centroid", "mean_lab", "bounds", "mean_rgb"):
        a, b = narrow.regions[name], wide.regions[name]
        if name == "mean_rgb" and linear_light:
            # Codes of 8 bits are rounded once, those of 16 twice.
            assert abs(a.astype(int) - b).max() <= 1
        else:
            assert np.array_equal(a, b), name


def test_means_are_rounded_half_up():
    image = np.zeros((10, 10), np.uint16)
    for value, want in [(128, 0), (129, 1), (257 * 7 + 128, 7), (257 * 7 + 129, 8), (65535, 255), (65406, 254), (65407, 255)]:
        image[:] = value
        segmenter = sp.Segmenter(n_segments=1, data_range=(0, 65535))
        segmenter.segment(image)
        assert segmenter.regions["mean_rgb"].tolist() == [[want] * 3]


@pytest.mark.parametrize("channels", [1, 3])
def test_a_dark_gradient_of_low_contrast(channels):
    # A slope and a step of 200 of 65,536 codes, all of them one code of 8 bits.
    y, x = np.mgrid[:96, :128]
    side = x + y // 4 >= 70
    image = (1030 + (x + y) // 8 + 200 * side).astype(np.uint16)
    image = np.repeat(image[..., None], channels, 2)
    assert len(np.unique(image >> 8)) == 1

    def purity(labels):
        inside = np.bincount(labels.ravel(), weights=side.ravel())
        area = np.bincount(labels.ravel())
        return np.maximum(inside, area - inside).sum() / side.size

    labels = sp.slic(image, n_segments=48, compactness=0.1, data_range=(0, 65535))
    assert 24 <= labels.max() + 1 <= 96
    assert purity(labels) >= 0.995
    # Through 8 bits there is nothing to see.
    assert purity(sp.slic((image >> 8).astype(np.uint8), n_segments=48, compactness=0.1)) < 0.99
    assert np.array_equal(sp.slic(image / np.float32(65535), n_segments=48, compactness=0.1), labels)


def test_floats_are_rounded_half_up():
    # The least value whose product with 65535 is k + 1/2 or more becomes k + 1.
    for k in (0, 1, 1000, 40000, 65534):
        half = np.float32((k + 0.5) / 65535)
        while float(half) * 65535 < k + 0.5:
            half = np.nextafter(half, np.float32(2))
        below = np.nextafter(half, np.float32(-1))
        values = np.array([below, half], np.float32)
        codes = np.array([k, k + 1], np.uint16)
        y, x = np.mgrid[:16, :16]
        picked = (x // 8 + y // 8) % 2
        whole = (0, 65535)
        assert np.array_equal(sp.slic(values[picked], n_segments=16), sp.slic(codes[picked], n_segments=16, data_range=whole))
        for value, code in zip(values, codes):
            tables = []
            for image, data_range in ((np.full((9, 9), value), None), (np.full((9, 9), code), whole)):
                segmenter = sp.Segmenter(n_segments=1, color_space="rgb", data_range=data_range)
                segmenter.segment(image)
                tables.append(segmenter.regions.tobytes())
            assert tables[0] == tables[1]


def bad_float(value):
    image = np.full((20, 30, 3), 0.5, np.float32)
    image[7, 11, 2] = value
    return image


@pytest.mark.parametrize(
    "value, words",
    [
        (np.nan, "nan_to_num"),
        (np.inf, "nan_to_num"),
        (-np.inf, "nan_to_num"),
        (-0.25, "data_range=(-0.25, 0.5)"),
        (-1e-30, "data_range=(-"),
        (np.nextafter(np.float32(1), np.float32(2)), "data_range=(0, 255)"),
        (200, "data_range=(0, 255)"),
        (3000, "data_range=(0, 65535)"),
        (1e9, "1000000000)"),
    ],
)
def test_bad_floats(value, words, picture):
    segmenter = sp.Segmenter()
    want = segmenter.segment(picture)
    alpha = np.dstack([bad_float(value), np.zeros((20, 30), np.float32)])
    for image in (bad_float(value), bad_float(value)[..., 2].copy(), alpha, alpha[..., :3], alpha[..., 2::-1]):
        for call in (sp.slic, segmenter.segment):
            with pytest.raises(ValueError) as raised:
                call(image)
            assert words in str(raised.value) and "x = 11, y = 7" in str(raised.value)
    for image in (bad_float(value)[None], np.stack([np.zeros((20, 30, 3), np.float32), bad_float(value)])):
        with pytest.raises(ValueError, match="x = 11, y = 7"):
            sp.slic(image)
    # Alpha is not looked at, and the Segmenter lasts.
    ignored = np.dstack([np.zeros((20, 30, 3), np.float32), bad_float(value)[..., 2]])
    assert sp.slic(ignored).shape == (20, 30)
    assert np.array_equal(segmenter.segment(picture), want)
    assert np.array_equal(sp.slic(-0.0 * bad_float(1.0)), sp.slic(0.0 * bad_float(1.0)))
