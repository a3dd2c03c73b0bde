# SPDX-License-Identifier: MPL-2.0
"""Images of many bands, of which some are chosen, and channels on another axis than the last."""

import numpy as np
import pytest
import superpixels as sp


@pytest.fixture
def scene(picture):
    """Thirteen bands, of which 3, 2 and 1 are red, green and blue, as Sentinel-2 has them."""
    rng = np.random.default_rng(5)
    bands = rng.integers(0, 256, (*picture.shape[:2], 13), dtype=np.uint8)
    bands[..., [3, 2, 1]] = picture
    return bands


def test_bands(picture, scene):
    want, gray = sp.slic(picture), sp.slic(picture[..., 1].copy())
    for chosen in ((3, 2, 1), [3, 2, 1], np.array([3, 2, 1])):
        assert np.array_equal(sp.slic(scene, bands=chosen), want)
    assert np.array_equal(sp.slic(scene, bands=(1, 2, 3), order="bgr"), want)
    assert np.array_equal(sp.slic(scene, bands=2), gray)
    assert np.array_equal(sp.slic(scene, bands=(2,)), gray)
    assert np.array_equal(sp.slic(np.stack([scene, scene]), bands=(3, 2, 1)), [want, want])
    assert np.array_equal(sp.slic([scene, scene[:50]], bands=2)[0], gray)
    assert np.array_equal(sp.Segmenter(n_segments=100, bands=(3, 2, 1)).segment(scene), want)
    # Near infrared in the place of red, which four channels without `bands` would leave out.
    four = scene[..., [3, 2, 1, 7]]
    assert np.array_equal(sp.slic(four), want)
    assert np.array_equal(sp.slic(four, bands=(3, 0, 1)), sp.slic(scene[..., [7, 3, 2]]))
    reflectance = scene.astype(np.int16) * 40 - 100
    assert np.array_equal(sp.slic(reflectance, bands=(3, 2, 1), data_range=(-100, 10100)), want)


def test_channel_axis(picture, scene):
    want = sp.slic(picture)
    first = picture.transpose(2, 0, 1).copy()
    assert np.array_equal(sp.slic(first, channel_axis=0), want)
    assert np.array_equal(sp.slic(picture, channel_axis=-1), want)
    assert np.array_equal(sp.slic(picture.transpose(0, 2, 1), channel_axis=1), want)
    assert np.array_equal(sp.slic(np.stack([first, first]), channel_axis=1), [want, want])
    assert np.array_equal(sp.Segmenter(n_segments=100, channel_axis=0).segment(first), want)
    assert np.array_equal(sp.slic(scene.transpose(2, 0, 1), channel_axis=0, bands=(3, 2, 1)), want)


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        (dict(bands=(1, 2)), ValueError, "one, or three"),
        (dict(bands=()), ValueError, "one, or three"),
        (dict(bands=(0, 1, 2, 3)), ValueError, "one, or three"),
        (dict(bands=(0, 1, 13)), ValueError, "0 to 12, got 13"),
        (dict(bands=-1), TypeError, "from 0"),
        (dict(bands="red"), ValueError, "'pca', got 'red'"),
        (dict(bands=1.5), TypeError, "from 0"),
        (dict(channel_axis=3), ValueError, "channel_axis=3"),
        (dict(channel_axis=-4), ValueError, "channel_axis=-4"),
        (dict(channel_axis="last"), TypeError, "channel_axis"),
    ],
)
def test_bad_arguments(scene, arguments, error, words):
    with pytest.raises(error, match=words):
        sp.slic(scene, **arguments)
    with pytest.raises(error, match=words):
        sp.Segmenter(**arguments).segment(scene)


def test_gray_has_no_bands(picture):
    with pytest.raises(ValueError, match="H, W, B"):
        sp.slic(picture[..., 0], bands=0)
    with pytest.raises(ValueError, match="gray images have none"):
        sp.slic(picture[..., 0], channel_axis=-1)
