# SPDX-License-Identifier: MPL-2.0
"""Label maps of more than 65,535 superpixels of arrays on a device, and of the host on a device: the CPU's."""

import numpy as np
import pytest
import superpixels as sp

HEIGHT, WIDTH = 1101, 1005


@pytest.fixture(scope="module")
def large():
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    noise = np.random.default_rng(7).integers(0, 24, (HEIGHT, WIDTH, 3))
    image = np.stack([x // 3 % 200, (y + x // 7) % 200, (x * y // 900) % 200], axis=2) + noise
    return image.astype(np.uint8)


@pytest.fixture(scope="module")
def mask():
    mask = np.ones((HEIGHT, WIDTH), np.uint8)
    mask[100:300, 500:] = 0
    return mask


def test_images_on_a_device(kind, driver, large, mask):
    wanted = sp.slic(large, superpixel_size=4, iterations=2)
    labels = sp.slic(kind(driver, large), superpixel_size=4, iterations=2)
    assert labels.dtype == "int32" and wanted.max() > 65_535 and np.array_equal(labels.numpy(), wanted)
    # Values are packed on the device, as floats and planes are.
    floats = (np.moveaxis(large, 2, 0) / np.float32(255)).astype(np.float32)
    strided = sp.slic(kind(driver, np.ascontiguousarray(floats)), superpixel_size=4, iterations=2, channel_axis=0)
    assert np.array_equal(strided.numpy(), wanted)
    inside = sp.slic(kind(driver, large), superpixel_size=4, iterations=2, mask=kind(driver, mask), start_label=3)
    assert np.array_equal(inside.numpy(), sp.slic(large, superpixel_size=4, iterations=2, mask=mask, start_label=3))


# Ways of arrays to say where they are were tried above.
@pytest.mark.parametrize("kind", ["interface"], indirect=True)
def test_targets_and_batches(kind, driver, large):
    wanted = sp.slic(large, superpixel_size=4, iterations=1)
    out = kind(driver, np.full((HEIGHT, WIDTH), 9, np.int32))
    assert sp.slic(kind(driver, large), superpixel_size=4, iterations=1, out=out) is out
    assert np.array_equal(out.numpy(), wanted)
    with pytest.raises(TypeError, match="out must be int32"):
        short = kind(driver, np.zeros((HEIGHT, WIDTH), np.uint16))
        sp.slic(kind(driver, large), superpixel_size=4, out=short)
    batch = np.stack([large, large[:, ::-1]])
    labels = sp.slic(kind(driver, batch), superpixel_size=4, iterations=1).numpy()
    assert np.array_equal(labels, sp.slic(batch, superpixel_size=4, iterations=1))


@pytest.mark.parametrize("kind", ["interface"], indirect=True)
def test_segmenters(kind, driver, large, mask, picture):
    host = sp.slic(large, superpixel_size=4, iterations=1)
    segmenter = sp.Segmenter(superpixel_size=4, iterations=1, device="cuda")
    # Frames of the host and of the device, in turn with some that fit 16 bits.
    assert np.array_equal(segmenter.segment(large), host) and segmenter.n_regions == host.max() + 1
    small = segmenter.segment(kind(driver, picture)).numpy()
    assert np.array_equal(small, sp.slic(picture, superpixel_size=4, iterations=1)) and len(segmenter.regions["area"])
    assert np.array_equal(segmenter.segment(kind(driver, large)).numpy(), host)
    assert segmenter.n_regions == host.max() + 1
    with pytest.raises(RuntimeError, match="no table"):
        segmenter.regions
    inside = segmenter.segment(kind(driver, large), mask=kind(driver, mask)).numpy()
    assert np.array_equal(inside, sp.slic(large, superpixel_size=4, iterations=1, mask=mask))
