# SPDX-License-Identifier: MPL-2.0
"""Many pictures in one call are the same as one call for each, and a clip is its frames one after another."""

import functools

import numpy as np
import pytest
import superpixels as sp
from test_arrays import ALGORITHMS
from test_bits import CLIP

BATCH = np.stack([frame[..., :3] for frame in CLIP])
# Quickshift takes much longer for each pixel.
SMALL = BATCH[:, 30:80, 40:110].copy()


@functools.lru_cache(maxsize=None)
def wanted(function):
    """The images of the batch for an algorithm, and the labels of each by itself."""
    batch = SMALL if function is sp.quickshift else BATCH
    return batch, [function(image) for image in batch]


@pytest.mark.parametrize("function", ALGORITHMS)
@pytest.mark.parametrize("threads", [1, 2, 3, 5, 16])
def test_functions(function, threads):
    batch, each = wanted(function)
    for count in (1, 2, 3, 6):
        labels = function(batch[:count], threads=threads)
        assert labels.shape == (count, *batch.shape[1:3]) and labels.dtype == np.uint16 and labels.flags.c_contiguous
        for one, want in zip(labels, each):
            assert np.array_equal(one, want)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("start", [0, 1])
def test_dtypes_and_out(dtype, start):
    batch = BATCH if dtype == np.uint8 else 257 * BATCH.astype(np.uint16)
    batch = batch / np.float32(65535) if dtype == np.float32 else batch
    want = np.stack([sp.slic(image, start_label=start) for image in BATCH])
    assert np.array_equal(sp.slic(batch, start_label=start), want) and want.min() == start
    gray = np.stack([sp.slic(image[..., 1].copy(), start_label=start) for image in BATCH])
    assert np.array_equal(sp.slic(batch[..., 1:2].copy(), start_label=start), gray)
    memory = np.full((7, 130, 170), 9, want.dtype)
    for out in (np.empty_like(want), memory[1:, 4:126, 3:166], np.full((12, 122, 163), 9, want.dtype)[::2]):
        assert sp.slic(batch, start_label=start, out=out) is out
        assert np.array_equal(out, want)
    memory[1:, 4:126, 3:166] = 9
    assert (memory == 9).all() and (out.base[1::2] == 9).all()


def test_views():
    want = sp.slic(BATCH)
    assert np.array_equal(sp.slic(BATCH[::-1]), want[::-1])
    assert np.array_equal(sp.slic(BATCH[::2]), want[::2])
    assert np.array_equal(sp.slic(BATCH[..., ::-1], order="bgr"), want)
    alpha = np.concatenate([BATCH, BATCH[..., :1]], axis=3)
    assert np.array_equal(sp.slic(alpha[..., :3]), want)
    assert np.array_equal(sp.slic(alpha[::-1, ..., :3]), want[::-1])
    assert np.array_equal(sp.slic(np.broadcast_to(BATCH[0], (3, 122, 163, 3))), np.stack([want[0]] * 3))
    # Images between each other's rows.
    rows = np.ascontiguousarray(BATCH.transpose(1, 0, 2, 3)).transpose(1, 0, 2, 3)
    assert np.array_equal(sp.slic(rows), want)


def test_empty():
    for function in ALGORITHMS:
        assert function(np.zeros((0, 20, 30, 3), np.uint8)).shape == (0, 20, 30)
    segmenter = sp.Segmenter()
    assert segmenter.segment(np.zeros((0, 20, 30, 1), np.float32)).shape == (0, 20, 30)
    with pytest.raises(RuntimeError):
        segmenter.n_regions


def test_three_axes_are_one_picture():
    image = np.random.default_rng(2).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    assert sp.slic(image).shape == (20, 30)
    # Even where it could be a batch of gray ones.
    assert sp.slic(image.transpose(2, 0, 1).copy()[..., None]).shape == (3, 20, 30)
    assert sp.slic(np.zeros((40, 30, 4), np.uint8)).shape == (40, 30)


@pytest.mark.parametrize("bad", [(5, 122, 163), (6, 122, 162), (122, 163), (6, 122, 163, 1), (1, 6, 122, 163)])
def test_bad_outs(bad):
    for call in (sp.slic, sp.Segmenter().segment):
        with pytest.raises(ValueError, match="out"):
            call(BATCH, out=np.empty(bad, np.uint16))


def test_planes_of_out_may_not_overlap():
    memory = np.zeros(3 * 122 * 163, np.uint16)
    for apart in (0, 1, 163, 122 * 163 - 1, -122 * 163):
        out = np.lib.stride_tricks.as_strided(memory, (2, 122, 163), (2 * apart, 326, 2))
        with pytest.raises(ValueError, match="out"):
            sp.slic(BATCH[:2], out=out)
    both = np.zeros(BATCH[:2].nbytes + 2 * 122 * 163, np.uint8)
    batch = both[: BATCH[:2].nbytes].reshape(2, 122, 163, 3)
    for view in (batch, batch[::-1]):
        with pytest.raises(ValueError, match="share"):
            sp.slic(view, out=both[-4 * 122 * 163 :].view(np.uint16).reshape(2, 122, 163))


@pytest.mark.parametrize("temporal", [False, True])
@pytest.mark.parametrize("algorithm", ["slic", "lsc", "quickshift", "snic"])
def test_clips(algorithm, temporal):
    batch, _ = wanted(getattr(sp, algorithm))
    one, whole, parts = (sp.Segmenter(algorithm, temporal=temporal) for _ in range(3))
    want = np.stack([one.segment(frame) for frame in batch])
    out = np.empty_like(want)
    assert np.array_equal(whole.segment(batch), want)
    assert parts.segment(batch[:2], out=out[:2]).base is out
    parts.segment(batch[2], out=out[2])
    parts.segment(batch[3:], out=out[3:])
    assert np.array_equal(out, want)
    for segmenter in (whole, parts):
        assert segmenter.next_id == one.next_id
        for name in ("regions", "neighbors") + (("motion",) if temporal else ()):
            assert np.array_equal(getattr(segmenter, name), getattr(one, name)), name
    if temporal and algorithm == "slic":
        # Results depend on the frames before.
        assert not np.array_equal(want, sp.Segmenter(algorithm, temporal=True).segment(BATCH[::-1])[::-1])


def test_lists(picture):
    images = [picture, picture[:50, :60, 1].copy(), picture[5:90], 257 * picture[:40].astype(np.uint16), picture]
    for threads in (1, 2, 4):
        for arrays in (images, tuple(images)):
            labels = sp.slic(arrays, n_segments=40, threads=threads)
            assert isinstance(labels, list) and len(labels) == 5
            assert all(np.array_equal(got, sp.slic(image, n_segments=40)) for got, image in zip(labels, images))
    assert sp.slic([picture], start_label=1)[0].dtype == np.int32
    with pytest.raises(TypeError, match="out"):
        sp.slic(images, out=np.empty((122, 163), np.uint16))
    with pytest.raises(ValueError, match="list"):
        sp.slic([picture[None]])
    for bad, words in (([], "it is empty"), ([picture, None], "image 1: .*NoneType"), ([picture, [1, 2]], "np.asarray"), ("ab", "np.asarray")):
        with pytest.raises(TypeError, match=words):
            sp.slic(bad)
    with pytest.raises(TypeError, match="np.asarray"):
        sp.Segmenter().segment(images)
