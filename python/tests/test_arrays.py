# SPDX-License-Identifier: MPL-2.0
"""Which arrays are taken, and that they are read and written where they are."""

from pathlib import Path

import numpy as np
import pytest
import superpixels as sp

ALGORITHMS = [sp.slic, sp.lsc, sp.quickshift, sp.snic]


@pytest.mark.parametrize("function", ALGORITHMS)
def test_labels_are_dense(function, picture):
    labels = function(picture)
    assert labels.dtype == np.uint16 and labels.shape == picture.shape[:2] and labels.flags.c_contiguous
    assert np.array_equal(np.unique(labels), np.arange(labels.max() + 1))
    assert labels.max() > 20


@pytest.mark.parametrize("function", ALGORITHMS)
def test_layouts_are_the_same_pixels(function, picture):
    want = function(picture)
    bgr = picture[..., ::-1].copy()
    alpha = np.dstack([picture, np.zeros(picture.shape[:2], np.uint8)])
    wide = np.zeros((124, 200, 3), np.uint8)
    wide[1:123, 20:183] = picture
    rows = np.zeros((244, 163, 3), np.uint8)
    rows[::2] = picture
    for image, order in [
        (bgr, "bgr"),
        (alpha, "rgb"),
        (alpha[..., [2, 1, 0, 3]].copy(), "bgr"),
        (wide[1:123, 20:183], "rgb"),
        (rows[::2], "rgb"),
    ]:
        assert np.array_equal(function(image, order=order), want)
        assert np.array_equal(sp.Segmenter(function.__name__, order=order, n_segments=100).segment(image), want) or (
            function is sp.quickshift
        )
    assert not np.array_equal(function(bgr), want)


@pytest.mark.parametrize("function", ALGORITHMS)
def test_gray(function, picture):
    gray = picture[..., 1].copy()
    want = function(gray)
    assert np.array_equal(function(gray[..., None]), want)
    assert np.array_equal(function(gray, order="bgr"), want)
    assert np.array_equal(function(np.repeat(gray[..., None], 3, 2)), want)


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (1, 1, 3), (2, 3, 4), (1, 7, 3), (7, 1, 3), (16, 16, 1)])
def test_small_images(shape):
    image = np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)
    for function in ALGORITHMS:
        labels = function(image)
        assert labels.shape == shape[:2] and labels.min() == 0
        # An array of which there is one row or column may have any distance there.
        assert np.array_equal(function(np.asfortranarray(image)) if 1 in shape[:2] and len(shape) == 2 else labels, labels)


@pytest.mark.parametrize("start", [1, -5, 2**31 - 1 - 65535])
def test_start_label(start, picture):
    labels = sp.slic(picture, start_label=start)
    assert labels.dtype == np.int32
    assert np.array_equal(labels.astype(np.int64) - start, sp.slic(picture))
    out = np.zeros((122, 170), np.int32)[:, 3:166]
    assert sp.slic(picture, start_label=start, out=out) is out
    assert np.array_equal(out, labels) and out.base[:, :3].max() == 0 and out.base[:, 166:].max() == 0


def test_out(picture):
    want = sp.slic(picture)
    segmenter = sp.Segmenter(n_segments=100)
    for out in (np.empty((122, 163), np.uint16), np.full((122, 170), 9, np.uint16)[:, 3:166]):
        for call in (lambda: sp.slic(picture, out=out), lambda: segmenter.segment(picture, out=out)):
            out[:] = 7
            assert call() is out
            assert np.array_equal(out, want)
    assert (out.base[:, :3] == 9).all() and (out.base[:, 166:] == 9).all()


def test_threads(picture):
    for function in ALGORITHMS:
        one = function(picture, threads=1)
        for threads in (0, 2, 3, 5, 8):
            assert np.array_equal(function(picture, threads=threads), one)


class Array(np.ndarray):
    pass


def test_subclasses_are_arrays(picture):
    assert np.array_equal(sp.slic(picture.view(Array)), sp.slic(picture))


def image(shape=(20, 30, 3), dtype=np.uint8):
    return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    "bad, error, words",
    [
        (None, TypeError, "cv2.imread gives None"),
        (iter([image()]), TypeError, "segment_images"),
        ((), TypeError, "it is empty"),
        ([[1, 2], [3, 4]], TypeError, "np.asarray"),
        ("image", TypeError, "np.asarray"),
        (np.ma.masked_equal(image(), 0), TypeError, "filled"),
        (np.ma.zeros((20, 30), np.float32), TypeError, "filled"),
        (image(dtype=bool), TypeError, "255"),
        (image(dtype=np.int8), TypeError, "data_range=(low, high)"),
        (image(dtype=np.int64), TypeError, "data_range=(low, high)"),
        (image(dtype=object), TypeError, "integers or floats"),
        (image(dtype=complex), TypeError, "integers or floats"),
        (image(dtype="S1"), TypeError, "integers or floats"),
        (image(dtype=[("r", "u1"), ("g", "u1"), ("b", "u1")]), TypeError, "integers or floats"),
        (image(()), ValueError, "shape"),
        (image((20,)), ValueError, "shape"),
        (image((20, 30, 2)), ValueError, "bands=0"),
        (image((5, 20, 30)), ValueError, "image[..., None]"),
        (image((2, 20, 30, 2)), ValueError, "bands=0"),
        (image((2, 3, 20, 30)), ValueError, "channel_axis=1"),
        (image((2, 2, 20, 30, 3)), ValueError, "shape"),
        (image((2, 0, 30, 3)), ValueError, "1x1 to 16384x16384"),
        (image((20, 30, 5)), ValueError, "bands='pca' for all"),
        (image((13, 20, 30)), ValueError, "channel_axis=0 and bands"),
        (image((20, 30, 0)), ValueError, "shape"),
        (image((3, 20, 30)), ValueError, "channel_axis=0"),
        (image((1, 20, 30)), ValueError, "for channels first: channel_axis=0"),
        (image((2, 20, 30)), ValueError, "channel_axis=0 and bands=0"),
        (image((7, 1, 20, 30)), ValueError, "for channels first: channel_axis=1"),
        (image((7, 2, 20, 30)), ValueError, "channel_axis=1 and bands=0"),
        (image((7, 6, 20, 30)), ValueError, "channel_axis=1 and bands=(2, 1, 0)"),
        (image((20, 30, 2)), ValueError, "choose from 2 bands: bands=0 for gray, or"),
        (image((0, 30, 3)), ValueError, "1x1 to 16384x16384"),
        (image((30, 0, 3)), ValueError, "1x1 to 16384x16384"),
        (image((1, 16385)), ValueError, "1x1 to 16384x16384"),
        (image((16385, 1)), ValueError, "1x1 to 16384x16384"),
        (np.broadcast_to(np.uint8(0), (2**33, 2)), ValueError, "1x1 to 16384x16384"),
        (image((20, 30, 4))[..., ::2], ValueError, "bands=0"),
    ],
)
def test_bad_images(bad, error, words):
    for call in (sp.slic, sp.lsc, sp.quickshift, sp.snic, sp.Segmenter().segment):
        with pytest.raises(error) as raised:
            call(bad)
        assert words in str(raised.value)


def odd_layouts(picture):
    """The picture in layouts that the library does not read, with what lies behind them."""
    height, width, _ = picture.shape
    yield "upside down", picture[::-1].copy()[::-1]
    yield "mirrored", picture[:, ::-1].copy()[:, ::-1]
    yield "every second column", np.repeat(picture, 2, axis=1)[:, ::2]
    yield "channels first", picture.transpose(2, 0, 1).copy().transpose(1, 2, 0)
    yield "columns first", np.asfortranarray(picture)
    yield "three of five", np.dstack([picture, picture])[..., :5][..., :3]
    yield "odd bytes", np.ndarray(picture.shape, picture.dtype, b"\0" + picture.tobytes(), 1)
    yield "other byte order", picture.astype(picture.dtype.newbyteorder())


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_any_layout_is_taken(picture, dtype):
    image = picture if dtype == np.uint8 else (257 * picture.astype(np.uint16))
    if dtype in (np.float32, np.float64):
        image = (image / 65535).astype(dtype)
    want, gray = sp.slic(picture), sp.slic(picture[..., 1].copy())
    segmenter = sp.Segmenter(n_segments=100)
    for name, odd in odd_layouts(image):
        before = odd.copy()
        assert np.array_equal(sp.slic(odd), want), name
        assert np.array_equal(segmenter.segment(odd), want), name
        assert np.array_equal(sp.slic(odd[..., 1]), gray), name
        assert np.array_equal(sp.slic(odd[..., ::-1], order="bgr"), want), name
        assert np.array_equal(sp.slic(np.stack([odd, odd])[::-1]), [want, want]), name
        assert np.array_equal(odd, before), name
    # One row stands for all, without memory of its own.
    rows = np.broadcast_to(image[:1], image.shape)
    assert np.array_equal(sp.slic(rows), sp.slic(rows.copy()))


def test_half_precision():
    image = np.linspace(0, 1, 20 * 30).reshape(20, 30).astype(np.float16)
    assert np.array_equal(sp.slic(image), sp.slic(image.astype(np.float32)))


class Other:
    """An array of another library, in the host's memory."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array

    def __array_namespace__(self):
        return Namespace


class Namespace:
    """As much of the array API as is asked for."""

    @staticmethod
    def asarray(array):
        return Other(array)


class ByDlpack:
    """An array that has DLPack and no more."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_arrays_of_other_libraries(picture):
    want = sp.slic(picture)
    inside = np.zeros(want.shape, bool)
    inside[20:100, 20:140] = True
    masked = sp.slic(picture, mask=inside)
    for call in (sp.slic, sp.Segmenter(n_segments=100).segment):
        labels = call(Other(picture))
        assert isinstance(labels, Other) and np.array_equal(labels.array, want)
        assert np.array_equal(call(Other(picture), mask=Other(inside)).array, masked)
        out = Other(np.zeros(want.shape, np.uint16))
        assert call(Other(picture), out=out) is out and np.array_equal(out.array, want)
        # Nobody says what its arrays are made by.
        assert np.array_equal(call(ByDlpack(picture.copy())), want)
    first, second = sp.slic([Other(picture), picture[:50]])
    assert isinstance(first, Other) and np.array_equal(first.array, want)
    assert np.array_equal(second, sp.slic(picture[:50]))
    with pytest.raises(ValueError, match="share"):
        memory = np.zeros((20, 60), np.uint8)
        sp.slic(Other(memory[:, :30]), out=Other(memory.view(np.uint16)))


def test_values_that_are_converted_may_not_be_the_labels():
    memory = np.zeros((20, 30), np.uint16)
    for view in (memory[::-1], memory.view(np.int16), memory[:, ::-1]):
        with pytest.raises(ValueError, match="share"):
            sp.slic(view, out=memory, data_range=(0, 5))


def read_only():
    out = np.empty((20, 30), np.uint16)
    out.flags.writeable = False
    return out


@pytest.mark.parametrize(
    "bad, error",
    [
        ([], TypeError),
        (np.empty((20, 30), np.int32), TypeError),
        (np.empty((20, 30), np.int16), TypeError),
        (np.empty((20, 30), ">u2"), TypeError),
        (np.empty((20, 30), np.float32), TypeError),
        (np.empty((30, 20), np.uint16), ValueError),
        (np.empty((20, 30, 1), np.uint16), ValueError),
        (np.empty((600,), np.uint16), ValueError),
        (np.empty((), np.uint16), ValueError),
        (np.empty((20, 60), np.uint16)[:, ::2], ValueError),
        (np.empty((20, 30), np.uint16)[::-1], ValueError),
        (np.empty((30, 20), np.uint16).T, ValueError),
        (np.broadcast_to(np.empty((1, 30), np.uint16), (20, 30)), ValueError),
        (np.zeros(1201, np.uint8)[1:].view(np.uint16).reshape(20, 30), ValueError),
        (np.ndarray((20, 30), np.uint16, np.zeros(2000, np.uint8), strides=(61, 2)), ValueError),
        (read_only(), ValueError),
    ],
)
def test_bad_outs(bad, error):
    for call in (sp.slic, sp.lsc, sp.quickshift, sp.snic, sp.Segmenter().segment):
        with pytest.raises(error, match="out"):
            call(image(), out=bad)


def test_out_may_not_be_the_image():
    memory = np.zeros((20, 300), np.uint8)
    frame, out = memory[:, :30], memory[:, 100:160].view(np.uint16)
    with pytest.raises(ValueError, match="share"):
        sp.slic(frame, out=out)
    raw = bytearray(4000)
    with pytest.raises(ValueError, match="share"):
        sp.Segmenter().segment(
            np.frombuffer(raw, np.uint8, 600).reshape(20, 30), np.frombuffer(raw, np.uint16, 600, 598).reshape(20, 30)
        )
    # One after the other in the same memory is two arrays.
    sp.slic(np.frombuffer(raw, np.uint8, 600).reshape(20, 30), out=np.frombuffer(raw, np.uint16, 600, 600).reshape(20, 30))


def test_advice_for_what_is_no_array(picture):
    for name in ("photo.png", Path("photo.png")):
        with pytest.raises(TypeError, match=r"read the file first, with np.asarray\(PIL.Image.open\(path\)\)"):
            sp.slic(name)
    masked = np.ma.masked_array(picture, np.repeat(picture[..., :1] > 200, 3, axis=2))
    with pytest.raises(TypeError, match=r"image.data with mask=~np.ma.getmaskarray\(image\)"):
        sp.slic(masked)
    sp.slic(masked.data, mask=~np.ma.getmaskarray(masked).any(axis=-1))
    planes = masked.transpose(2, 0, 1)
    with pytest.raises(TypeError, match="axis=0 where channels are first"):
        sp.slic(planes, channel_axis=0)
    sp.slic(planes.data, channel_axis=0, mask=~np.ma.getmaskarray(planes).any(axis=0))


def test_an_error_names_the_image_of_a_list_or_batch(picture):
    bright = picture / np.float32(100)
    for threads in (1, 2):
        for bad, error, words in (
            (picture[..., :2], ValueError, "image must be of shape"),
            (picture.astype(int), TypeError, "an image of int64"),
            (None, TypeError, "image must be an array of numbers, got NoneType; cv2.imread"),
            ("photo.png", TypeError, "image must be an array of numbers, got str; read the file"),
            (bright, ValueError, "a float image must have values"),
        ):
            with pytest.raises(error, match=f"^image 2: {words}"):
                sp.slic([picture, picture[:50], bad, picture], threads=threads)
        batch = np.stack([picture / np.float32(255)] * 2 + [bright, bright])
        with pytest.raises(ValueError, match="^image 2: a float image must have values"):
            sp.slic(batch, threads=threads)
        # Labels of 32 bits, which are made apart from the others.
        large = np.zeros((600, 600), np.float32)
        with pytest.raises(ValueError, match="^image 2: a float image must have values"):
            sp.slic([picture, large, large + 2], n_segments=80_000, threads=threads)
    with pytest.raises(ValueError, match="^a float image must have values"):
        sp.slic(bright)
    with pytest.raises(TypeError, match="^image 0: image must be an array of numbers, got str; read the file"):
        sp.slic(["a.png", "b.png"])
