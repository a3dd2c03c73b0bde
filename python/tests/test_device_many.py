# SPDX-License-Identifier: MPL-2.0
"""Many pictures on a device: those of numpy go up and give what the CPU gives; those that are there are refused with advice."""

import numpy as np
import pytest
import superpixels as sp
from test_images import compare


@pytest.mark.parametrize("algorithm", ["slic", "lsc", "quickshift"])
def test_pictures_go_up(algorithm, driver, picture):
    images = [picture, picture[:60, :70, 1].copy(), 257 * picture[:60].astype(np.uint16), picture[:60, :70, 1] / 255]
    reports = []
    found = sp.segment_images(images, algorithm, device="cuda", levels=True, progress=lambda *numbers: reports.append(numbers))
    compare(found, images, algorithm, levels=True)
    assert reports[-1] == (4, 4)
    batch = np.stack([picture[:40, :50], picture[60:100, 30:80]])
    masks = np.random.default_rng(0).random(batch.shape[:3]) < 0.7
    compare(sp.segment_images(batch, algorithm, device="cuda:0", mask=masks, start_label=1), batch, algorithm, list(masks), 1)
    first = sp.segment_images(batch.transpose(0, 3, 1, 2), algorithm, device="cuda", channel_axis=1)
    assert [np.array_equal(one.labels, want.labels) for one, want in zip(first, sp.segment_images(batch, algorithm))] == [True] * 2


def test_only_what_is_asked_for(driver, picture):
    [one] = sp.segment_images([picture], device="cuda", regions=False, neighbors=False)
    for name in ("regions", "edge_index", "merges"):
        with pytest.raises(RuntimeError, match="=True to the call"):
            getattr(one, name)


def test_pictures_on_the_device_are_refused(kind, driver, picture):
    for device in (None, "cuda"):
        found = sp.segment_images([picture, kind(driver, picture)], device=device)
        assert next(found).index == 0
        with pytest.raises(TypeError, match="^image 1: segment_images takes images in the host's memory.*Segmenter"):
            next(found)


def test_a_wrong_picture_is_named(driver, picture):
    images = [picture, np.full((20, 30), np.nan), picture]
    found = sp.segment_images(images, device="cuda")
    assert next(found).index == 0
    with pytest.raises(ValueError, match="^image 1: .*nan"):
        next(found)
    with pytest.raises(RuntimeError, match="^image 0: .*snic runs on the CPU only"):
        list(sp.segment_images([picture], "snic", device="cuda"))
