# SPDX-License-Identifier: MPL-2.0
"""data_range, bands, channel_axis and masked values of images on a CUDA device: the labels are those of the same arrays of numpy.

As test_device_images.py.
"""

import numpy as np
import pytest
import superpixels as sp
from driver import Interface
from test_data_range import drawn

RANGES = [(10, 90), (-1000, 400), (0, 4095), (0.25, 0.5), (0, 1), (0, 255), (0, 65535)]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "int32", "int64", "float32"])
def test_every_dtype(dtype, kind, driver):
    for low, high in RANGES:
        image = drawn(dtype, low, high)
        for one in (image, image[..., 1], image[::-1, ::2], image[..., ::-1].transpose(1, 0, 2), np.stack([image, image[:, ::-1]])):
            want = sp.slic(one, 60, data_range=(low, high))
            assert np.array_equal(sp.slic(kind(driver, one), 60, data_range=(low, high)).numpy(), want), (dtype, low, high)


def test_codes_are_halves_rounded_up(driver):
    """Every value of a range whose codes fall halfway between two."""
    device, host = (sp.Segmenter(data_range=(0, 2 * 65535)) for _ in range(2))
    for value in [*range(0, 2000, 7), *range(2 * 65535 - 999, 2 * 65535 + 2, 9)]:
        pixel = np.full((1, 1, 3), value, np.int32)
        host.segment(pixel), device.segment(Interface(driver, pixel))
        assert np.array_equal(device.regions["mean_rgb"].numpy(), host.regions["mean_rgb"]), value


@pytest.mark.parametrize("bad", [np.nan, np.inf, -9999.0])
def test_what_is_outside_of_a_mask_means_nothing(bad, kind, driver, picture):
    image = picture / np.float32(255)
    mask = np.zeros(image.shape[:2], np.uint8)
    mask[30:90, 20:150] = 9
    want = sp.slic(image, mask=mask)
    image[mask == 0] = bad
    segmenter = sp.Segmenter(n_segments=100)
    for one in (image, image[..., ::-1].copy()[..., ::-1]):
        found = sp.slic(kind(driver, one), mask=kind(driver, mask), check=True)
        assert np.array_equal(found.numpy(), want)
        segmenter.segment(kind(driver, one), mask=kind(driver, mask))
        # A read would tell of a bad value.
        assert segmenter.n_regions == want[mask != 0].max() + 1
    mask[0, 7] = 1
    with pytest.raises(ValueError, match="data_range"):
        sp.slic(kind(driver, image), mask=kind(driver, mask), check=True)
    batch = np.stack([image, image])
    masks = np.stack([mask, mask])
    masks[:, 0, 7] = 0
    assert np.array_equal(sp.slic(kind(driver, batch), mask=kind(driver, masks), check=True).numpy(), [want, want])


def test_infinite_values_are_cut_off_and_nan_is_noted(kind, driver):
    image = drawn(np.float32, -3, 5)
    image[5, 6, 1], image[7, 8, 2] = np.inf, -np.inf
    want = sp.slic(image, data_range=(-2, 4))
    assert np.array_equal(sp.slic(kind(driver, image), data_range=(-2, 4), check=True).numpy(), want)
    image[9, 10, 0] = np.nan
    with pytest.raises(ValueError, match="no number"):
        sp.slic(kind(driver, image), data_range=(-2, 4), check=True)
    segmenter = sp.Segmenter(data_range=(-2, 4))
    segmenter.segment(kind(driver, image))
    with pytest.raises(ValueError, match="no number"):
        segmenter.n_regions


def test_bands_and_channel_axis(kind, driver, picture):
    rng = np.random.default_rng(5)
    scene = rng.integers(0, 256, (*picture.shape[:2], 13), dtype=np.uint8)
    scene[..., [3, 2, 1]] = picture
    want = sp.slic(picture)
    first = scene.transpose(2, 0, 1).copy()
    assert np.array_equal(sp.slic(kind(driver, scene), bands=(3, 2, 1)).numpy(), want)
    assert np.array_equal(sp.slic(kind(driver, first), bands=(3, 2, 1), channel_axis=0).numpy(), want)
    assert np.array_equal(sp.slic(kind(driver, np.stack([first, first])), bands=(3, 2, 1), channel_axis=1).numpy(), [want, want])
    assert np.array_equal(sp.slic(kind(driver, scene), bands=7).numpy(), sp.slic(scene[..., 7].copy()))
    assert np.array_equal(sp.slic(kind(driver, scene), bands=(4, 4, 4)).numpy(), sp.slic(scene[..., [4, 4, 4]]))
    for bad in ((3, 2, 7), (0, 1, 13), (1, 2)):
        with pytest.raises(ValueError, match="bands"):
            sp.slic(kind(driver, scene), bands=bad)
    with pytest.raises(ValueError, match="channel_axis"):
        sp.slic(kind(driver, scene), bands=1, channel_axis=3)
    for call in (lambda image: sp.slic(image, bands="pca"), sp.Segmenter(bands="pca").segment):
        with pytest.raises(ValueError, match="host's memory.*three bands"):
            call(kind(driver, scene))
    # Frames of the host have components anywhere.
    assert np.array_equal(sp.Segmenter(device="cuda", n_segments=100, bands="pca").segment(scene), sp.slic(scene, bands="pca"))


def test_refused(kind, driver, picture):
    gray = picture[..., 0].astype(np.uint16)
    with pytest.raises(ValueError, match="two numbers"):
        sp.slic(kind(driver, picture), data_range="image")
    with pytest.raises(TypeError, match="data_range"):
        sp.slic(kind(driver, picture.astype(np.int16)))
    for image in (picture, gray.astype(np.uint8), np.dstack([gray] * 3), gray.astype(np.float32)):
        with pytest.raises((TypeError, ValueError), match="uint16"):
            sp.slic(kind(driver, image), data_range="stretch")
    assert np.array_equal(sp.slic(kind(driver, gray), data_range="stretch").numpy(), sp.slic(gray, data_range="stretch"))
