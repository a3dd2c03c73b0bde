# SPDX-License-Identifier: MPL-2.0
"""Drawings in the picture's own type: integers of all sizes, floats, batches, and any range of values."""

from fractions import Fraction

import numpy as np
import pytest
import superpixels as sp

LABELS = np.array([[0, 0, 1], [0, 2, 1], [2, 2, 1]], np.uint16)
LINE = np.array([[0, 1, 0], [1, 1, 0], [0, 1, 0]], bool)
INTEGERS = [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.uint64, np.int64]
FLOATS = [np.float16, np.float32, np.float64]


def random(dtype, shape, seed=0):
    """Numbers of all of a type's range, or floats about 0."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return rng.normal(0, 100, shape).astype(dtype)
    bounds = np.iinfo(dtype)
    return rng.integers(bounds.min, bounds.max, shape, dtype, endpoint=True)


def mean(values):
    """The mean of integers, halves up, without rounding on the way."""
    return (2 * sum(map(int, values)) + len(values)) // (2 * len(values))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("channels", [None, 1, 2, 3, 4, 6])
def test_means_of_integers_are_exact(dtype, channels):
    image = random(dtype, (3, 3) if channels is None else (3, 3, channels))
    before = image.copy()
    painted = sp.mean_color(image, LABELS)
    assert painted.dtype == dtype and painted.shape == image.shape and np.array_equal(image, before)
    planes, drawn = image.reshape(3, 3, -1), painted.reshape(3, 3, -1)
    for channel in range(channels or 1):
        for label in range(3):
            values = planes[LABELS == label, channel]
            if channels == 4 and channel == 3:
                assert np.array_equal(drawn[LABELS == label, channel], values)
            else:
                assert (drawn[LABELS == label, channel] == dtype(mean(values))).all()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_means_at_the_ends_of_types(dtype):
    bounds = np.iinfo(dtype)
    for value in (bounds.min, bounds.max):
        image = np.full((30, 40), value, dtype)
        assert np.array_equal(sp.mean_color(image, np.zeros((30, 40), int)), image)
    halves = np.array([[bounds.min, bounds.min + 1, bounds.max, bounds.max - 1]], dtype)
    assert sp.mean_color(halves, np.array([[0, 0, 1, 1]])).tolist() == [[bounds.min + 1] * 2 + [bounds.max] * 2]


@pytest.mark.parametrize("dtype", FLOATS)
def test_means_of_floats(dtype):
    image = random(dtype, (3, 3, 3))
    painted = sp.mean_color(image, LABELS)
    assert painted.dtype == dtype
    for label in range(3):
        for channel in range(3):
            values = image[LABELS == label, channel]
            want = float(sum(Fraction(float(value)) for value in values) / len(values))
            assert painted[LABELS == label, channel] == pytest.approx(want, rel=float(np.finfo(dtype).eps))
    image[0, 2] = np.nan
    assert np.isnan(sp.mean_color(image, LABELS)[LABELS == 1]).all()
    assert np.isfinite(sp.mean_color(image, LABELS)[LABELS != 1]).all()


@pytest.mark.parametrize("dtype, white", [(np.uint8, 255), (np.uint16, 65535), *((dtype, 1) for dtype in FLOATS)])
def test_colors_have_the_types_range(dtype, white):
    image = np.zeros((3, 3, 3), dtype)
    drawn = sp.boundaries(image, LABELS, (0, 51, 255))
    assert drawn.dtype == dtype and not image.any() and not drawn[~LINE].any()
    assert (drawn[LINE] == np.array([0, white / 5, white], dtype)).all()
    for code in range(256):
        [_, value, _], _, _ = sp.boundaries(image[..., 0], LABELS, (code,)).tolist()
        assert value == (257 * code if dtype == np.uint16 else code if dtype == np.uint8 else dtype(code / 255))


def test_colors_in_a_given_range():
    image = np.zeros((3, 3), np.int16)
    assert sp.boundaries(image, LABELS, (255,), data_range=(-1000, 3000))[LINE].tolist() == [3000] * 4
    assert sp.boundaries(image, LABELS, (0,), data_range=(-1000, 3000))[LINE].tolist() == [-1000] * 4
    # Halves go up: 127.5 and -127.5.
    assert sp.boundaries(image, LABELS, (51,), data_range=(127, 129.5))[LINE].tolist() == [128] * 4
    assert sp.boundaries(image, LABELS, (51,), data_range=(-128, -125.5))[LINE].tolist() == [-127] * 4
    # What a type does not have is cut off.
    assert sp.boundaries(image.astype(np.uint8), LABELS, (255,), data_range=(0, 4095))[LINE].tolist() == [255] * 4
    assert sp.boundaries(image.astype(np.int64), LABELS, (255,), data_range=(0, 2**63))[LINE].tolist() == [2**63 - 1] * 4
    floats = np.array([[np.nan, 2, 3], [4, 5, 6], [7, np.inf, 12]])
    assert (sp.boundaries(floats, LABELS, (255,), data_range="image")[LINE] == 12).all()
    assert (sp.boundaries(floats, LABELS, (0,), data_range="image")[LINE] == 2).all()
    assert (sp.boundaries(np.full((3, 3), 5), LABELS, (255,), data_range="image")[LINE] == 6).all()


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.uint32, np.int64, np.uint64])
def test_types_without_a_white_need_a_range(dtype):
    image = np.zeros((3, 3, 3), dtype)
    for draw in (sp.boundaries, sp.show):
        with pytest.raises(TypeError, match=f"an image of {np.dtype(dtype)} needs data_range="):
            draw(image, LABELS)
        draw(image, LABELS, data_range=(0, 100))
        draw(image, LABELS, data_range="image")


@pytest.mark.parametrize("data_range", [(1, 1), (2, 1), (0, np.inf), (np.nan, 1), (-1e308, 1e308), "stretch", "other"])
def test_ranges_that_are_none(data_range):
    for draw in (sp.boundaries, sp.show):
        with pytest.raises(ValueError, match="data_range must be"):
            draw(np.zeros((3, 3)), LABELS, data_range=data_range) if draw is sp.show else draw(
                np.zeros((3, 3)), LABELS, (1,), data_range=data_range
            )


@pytest.mark.parametrize("data_range", [1, (1,), (1, 2, 3), ("0", "1"), (0, 1j)])
def test_ranges_of_other_types(data_range):
    for draw in (sp.boundaries, sp.show):
        with pytest.raises(TypeError, match="data_range must be"):
            draw(np.zeros((3, 3, 3)), LABELS, data_range=data_range)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_batches(picture, dtype, channels):
    white = 1 if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max
    color = np.dstack([picture, picture[..., :1]])[..., :channels]
    image = (color / 255 * white).astype(dtype)
    batch = np.stack([image, image[::-1], image[:, ::-1]])
    labels = sp.slic(batch, n_segments=30)
    assert labels.ndim == 3
    for draw in (sp.boundaries, sp.mean_color):
        drawn = draw(batch, labels)
        assert drawn.dtype == dtype
        assert np.array_equal(drawn, np.stack([draw(one, of_one) for one, of_one in zip(batch, labels)]))
        assert draw(batch[:0], labels[:0]).shape == (0, *image.shape)
    # Each has its own range.
    scaled = batch * np.array([1, 2, 3]).reshape(3, 1, 1, 1)
    drawn = sp.boundaries(scaled, labels, data_range="image")
    assert np.array_equal(drawn[2], sp.boundaries(scaled[2], labels[2], data_range="image"))


def test_shapes_that_do_not_fit():
    batch, labels = np.zeros((2, 3, 3, 3), np.uint8), np.stack([LABELS, LABELS])
    for draw in (sp.boundaries, sp.mean_color, sp.show):
        for image, of_image in [
            (batch, LABELS),
            (batch[0], labels),
            (batch[..., 0], labels),
            (batch[:1], labels),
            (batch[:, :2], labels),
            (batch[0, 0, 0], LABELS),
            (batch, labels[None]),
            (batch, labels.astype(float)),
        ]:
            with pytest.raises((TypeError, ValueError), match="image|labels"):
                draw(image, of_image)
        for image in (batch[0].astype(bool), batch[0].astype(complex), batch[0].astype(object), batch[0].astype("U1")):
            with pytest.raises(TypeError, match="image must be of integers or floats"):
                draw(image, LABELS)


@pytest.mark.parametrize("dtype", [">u2", ">i4", ">f4", ">f8"])
def test_byte_orders(dtype):
    image = np.arange(27).reshape(3, 3, 3).astype(dtype)
    native = image.astype(image.dtype.newbyteorder("="))
    for draw in (sp.mean_color, lambda *given: sp.boundaries(*given, data_range=(0, 26))):
        drawn = draw(image, LABELS)
        assert drawn.dtype == image.dtype and np.array_equal(drawn, draw(native, LABELS))


def test_layouts(picture):
    image = picture.astype(np.uint16) * 257
    labels = sp.slic(image)
    views = [np.asfortranarray(image), image[:, ::-1].copy()[:, ::-1], np.moveaxis(np.moveaxis(image, -1, 0).copy(), 0, -1)]
    for draw in (sp.mean_color, sp.boundaries):
        want = draw(image, labels)
        for view in views:
            before = view.copy()
            assert np.array_equal(draw(view, labels), want) and np.array_equal(view, before)


def test_types_give_the_same_picture(picture):
    """Of uint8, uint16 and floats with the same values."""
    labels = sp.slic(picture)
    lines, pixels = sp.boundaries(picture, labels), sp.show(picture, labels, mean_color=True).pixels
    wide = picture.astype(np.uint16) * 257
    assert np.array_equal(sp.boundaries(wide, labels), lines.astype(np.uint16) * 257)
    assert np.array_equal(sp.show(wide, labels, mean_color=True).pixels, pixels)
    for dtype in (np.float32, np.float64):
        floats = (picture / 255).astype(dtype)
        assert np.array_equal(sp.boundaries(floats, labels), (lines / 255).astype(dtype))
        assert np.array_equal(sp.show(floats, labels, mean_color=True).pixels, pixels)
    shifted = picture.astype(np.int32) * 10 - 1000
    assert np.array_equal(sp.show(shifted, labels, mean_color=True, data_range=(-1000, 1550)).pixels, pixels)
    assert np.array_equal(sp.boundaries(shifted, labels, data_range=(-1000, 1550)), lines.astype(np.int32) * 10 - 1000)


def test_show_cuts_off_what_is_beyond_the_range():
    floats = np.array([[np.nan, -np.inf, -1], [0, 10, 11], [np.inf, 5, 2]])
    shown = sp.show(floats, LABELS, color=None, data_range=(0, 10)).pixels[..., 0]
    assert shown.tolist() == [[0, 0, 0], [0, 255, 255], [255, 128, 51]]
    with pytest.raises(ValueError, match="data_range"):
        sp.show(floats, LABELS)


@pytest.mark.parametrize("count, columns, rows", [(1, 1, 1), (2, 2, 1), (3, 2, 2), (4, 2, 2), (5, 3, 2), (7, 3, 3), (10, 4, 3)])
def test_show_puts_a_batch_side_by_side(count, columns, rows):
    batch = np.random.default_rng(0).integers(1, 256, (count, 8, 9, 3), dtype=np.uint8)
    labels = sp.slic(batch, superpixel_size=4)
    pixels = sp.show(batch, labels, mean_color=True).pixels
    assert pixels.shape == (8 * rows, 9 * columns, 3)
    for i in range(rows * columns):
        y, x = i // columns, i % columns
        one = pixels[8 * y : 8 * y + 8, 9 * x : 9 * x + 9]
        want = sp.show(batch[i], labels[i], mean_color=True).pixels if i < count else np.zeros_like(one)
        assert np.array_equal(one, want)


def test_fills_of_svg_in_a_range(picture):
    labels = sp.slic(picture, 20)
    want = sp.to_svg(labels, picture)
    assert sp.to_svg(labels, picture.astype(np.int16) - 100, data_range=(-100, 155)) == want
    assert sp.to_svg(labels, picture / 255) == want


def test_largest_doubles():
    most = np.finfo(np.float64).max
    image = np.array([[-most, most, 0]])
    labels = np.array([[0, 1, 2]])
    assert sp.show(image, labels, color=None, data_range="image").pixels[0, :, 0].tolist() == [0, 255, 128]
    assert sp.boundaries(image, labels, (0,), data_range="image").tolist() == [[-most, -most, 0]]
    assert sp.boundaries(image, labels, (255,), data_range="image").tolist() == [[most, most, 0]]
    wide = np.array([[0, 2**63 - 1, 5]])
    assert sp.boundaries(wide, labels, (51,), data_range=(0, 2**60)).tolist() == [[2**60 // 5, 2**60 // 5, 5]]


class Other:
    """An array of another library, which numpy makes an array of."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


def test_arrays_of_other_libraries(picture):
    labels = sp.slic(picture)
    for draw in (sp.boundaries, sp.mean_color):
        assert np.array_equal(draw(Other(picture), Other(labels)), draw(picture, labels))
    fine, merges = sp.hierarchy(Other(picture), 50)
    assert fine.dtype == np.uint16 and len(np.unique(sp.cut(fine, merges, 7))) == 7


def test_hierarchy_reads_images_as_functions_do(picture):
    wide = np.moveaxis(picture.astype(np.float64) * 10 - 5, -1, 0)
    bands = np.concatenate([wide, wide[::-1]])
    given = {"data_range": (-5, 2545), "bands": [3, 4, 5], "channel_axis": 0}
    labels, merges = sp.hierarchy(bands, 50, **given)
    assert np.array_equal(labels, sp.slic(bands, 50, **given))
    same, steps = sp.hierarchy(bands[3:], 50, data_range=(-5, 2545), channel_axis=0)
    assert np.array_equal(labels, same) and np.array_equal(merges, steps)
    with pytest.raises(ValueError, match="in \\[0, 1\\]"):
        sp.hierarchy(bands, 50, bands=[3, 4, 5], channel_axis=0)
