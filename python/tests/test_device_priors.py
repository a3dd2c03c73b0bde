# SPDX-License-Identifier: MPL-2.0
"""Priors on a CUDA device: the labels are those of the same arrays of numpy.

As test_device.py, which has images without.
"""

import numpy as np
import pytest
import superpixels as sp
from driver import Interface

FUNCTIONS = [sp.slic, sp.lsc, sp.quickshift]


def areas(height, width):
    """A disk, a bar that crosses it, and what is around."""
    y, x = np.mgrid[:height, :width]
    found = np.where((y - height / 2) ** 2 + (x - width / 3) ** 2 < (height / 3) ** 2, 7, 0)
    found[height // 2 : height // 2 + 9, 15 : width - 20] = 300
    return found


@pytest.mark.parametrize("function", FUNCTIONS)
def test_priors(function, kind, driver, picture):
    image, prior = kind(driver, picture), areas(*picture.shape[:2])
    plain = function(picture)
    for dtype in (bool, np.uint8, np.int16, np.int32, np.int64):
        own = prior.astype(dtype)
        want = function(picture, prior=own)
        assert not np.array_equal(want, plain)
        assert np.array_equal(function(image, prior=kind(driver, own)).numpy(), want)
    for shape in ((9, 12), (200, 333), (1, 1)):
        small = areas(*shape).astype(np.uint16) if min(shape) > 40 else np.arange(shape[0] * shape[1], dtype=np.uint16).reshape(shape)
        for options in ({"prior_cuts": False, "n_regions": 12}, {"n_regions": 40}, {"n_regions": 9, "prior_price": 3}, {"merge": 1.5}, {"merge": 2, "merge_passes": 2, "prior_price": 4}):
            want = function(picture, prior=small, **options)
            assert np.array_equal(function(image, prior=kind(driver, small), **options).numpy(), want), (shape, options)


def test_priors_of_batches_and_clips(kind, driver, picture):
    clip = np.stack([np.roll(picture, (i, 2 * i), (0, 1)) for i in range(3)])
    several = np.stack([np.roll(areas(*picture.shape[:2]), i, 1) for i in range(3)]).astype(np.int32)
    wide = np.zeros((3, several.shape[1] + 4, several.shape[2] + 40), np.int32)
    wide[:, 2:-2, 37:-3] = several
    mask = np.zeros(picture.shape[:2], bool)
    mask[9:, 20:] = True
    for prior in (several, several[0], wide[:, 2:-2, 37:-3]):
        there = kind(driver, prior)
        assert np.array_equal(sp.slic(kind(driver, clip), prior=there).numpy(), sp.slic(clip, prior=prior))
        masked = sp.slic(kind(driver, clip), prior=there, mask=kind(driver, mask)).numpy()
        assert np.array_equal(masked, sp.slic(clip, prior=prior, mask=mask))
        device, host = (sp.Segmenter(temporal=True, n_segments=90) for _ in range(2))
        assert np.array_equal(device.segment(kind(driver, clip[0])).numpy(), host.segment(clip[0]))
        assert np.array_equal(device.segment(kind(driver, clip), prior=there).numpy(), host.segment(clip, prior=prior))
        coarse = prior.reshape(-1, *prior.shape[-2:])[0, ::8, ::8].copy()
        options = dict(prior_cuts=False)
        got = device.segment(kind(driver, clip[1]), prior=kind(driver, coarse), **options).numpy()
        assert np.array_equal(got, host.segment(clip[1], prior=coarse, **options))


def test_batches_with_tables_have_priors(kind, driver, picture):
    clip = np.stack([np.roll(picture, (i, 2 * i), (0, 1)) for i in range(3)])
    several = np.stack([np.roll(areas(*picture.shape[:2]), i, 1) for i in range(3)]).astype(np.uint8)
    for prior, options in ((several, {"n_regions": 30}), (several[0], {"prior_cuts": False, "n_regions": 30, "prior_price": 2.5})):
        found = sp.segment_batch(kind(driver, clip), prior=kind(driver, prior), **options)
        wanted = sp.segment_batch(clip, prior=prior, **options)
        assert np.array_equal(found.labels.numpy(), wanted.labels)
        assert np.array_equal(found.ptr.numpy(), wanted.ptr)
        assert np.array_equal(found.regions["area"].numpy(), wanted.regions["area"])
        assert np.array_equal(found.edge_index.numpy(), wanted.edge_index)


def test_frames_of_the_host_have_priors_on_a_device(driver, picture):
    prior = areas(*picture.shape[:2])
    device, host = (sp.Segmenter(device=name, temporal=True, n_regions=60) for name in ("cuda", "cpu"))
    for i in range(4):
        own = None if i == 2 else np.roll(prior, i, 1)[:: i + 1]
        frame = np.roll(picture, 2 * i, 1)
        assert np.array_equal(device.segment(frame, prior=own), host.segment(frame, prior=own)), i
        assert np.array_equal(device.regions["track_id"], host.regions["track_id"])


def test_priors_that_are_refused(kind, driver, picture):
    image, prior = kind(driver, picture), areas(*picture.shape[:2]).astype(np.int32)
    for call in (sp.slic, sp.Segmenter().segment):
        for host, error, words in [
            (prior.astype(np.float32), TypeError, "integers or bool, got float32|<f4"),
            (np.stack([prior, prior]), ValueError, r"shape \(h, w\), .*got \[2, "),
            (prior[0], ValueError, "shape"),
            (prior[:0], ValueError, "shape"),
            (prior[:, ::-1], ValueError, "contiguous"),
            (prior[:, ::2], ValueError, "contiguous"),
            (prior[::-1], ValueError, "contiguous"),
        ]:
            with pytest.raises(error, match=words):
                call(image, prior=kind(driver, host))
        with pytest.raises(TypeError, match="on the device of the image"):
            call(image, prior=prior)
        with pytest.raises(TypeError, match="prior is on a device and image is not"):
            call(picture, prior=kind(driver, prior))
    with pytest.raises(ValueError, match="got \\[3, "):
        sp.slic(kind(driver, np.stack([picture] * 2)), prior=kind(driver, np.stack([prior] * 3)))
    with pytest.raises(TypeError, match="list"):
        sp.slic([image], prior=kind(driver, prior))
    with pytest.raises(ValueError, match="at most 65535 superpixels"):
        sp.slic(kind(driver, np.zeros((1200, 1200, 3), np.uint8)), superpixel_size=4, prior=kind(driver, prior))
    shared = Interface(driver, np.zeros(4 * prior.size, np.uint8))
    both = [Interface(driver, host, data=(shared.address, False)) for host in (prior, np.zeros(prior.shape, np.int32))]
    with pytest.raises(ValueError, match="out and prior"):
        sp.slic(image, prior=both[0], out=both[1])
    odd = Interface(driver, prior[:-1].copy(), data=(shared.address + 2, False))
    with pytest.raises(ValueError, match="contiguous"):
        sp.slic(image, prior=odd)
