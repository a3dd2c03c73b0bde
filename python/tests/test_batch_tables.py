# SPDX-License-Identifier: MPL-2.0
"""segment_batch in the host's memory: tables and one graph of all pictures, of what each gives alone."""

import numpy as np
import pytest
import superpixels as sp


@pytest.fixture(scope="module")
def images():
    y, x = np.mgrid[:50, :64]
    noise = np.random.default_rng(3).integers(0, 40, (4, 50, 64, 3))
    return (np.stack([x * 2, y * 3, (x + y) % 90 * 2], axis=2) + noise).astype(np.uint8)


@pytest.mark.parametrize("algorithm", ["slic", "lsc", "quickshift", "snic"])
@pytest.mark.parametrize("start_label", [0, 3])
def test_each_picture_as_alone(images, algorithm, start_label):
    batch = sp.segment_batch(images, algorithm, start_label=start_label)
    assert len(batch) == 4 and batch.labels.dtype == np.int32 and batch.ptr[0] == 0
    assert np.array_equal(batch.batch, np.repeat(np.arange(4), np.diff(batch.ptr)))
    for i, one in enumerate(sp.segment_images(images, algorithm, start_label=start_label)):
        found = batch[i]
        assert np.array_equal(found.labels, one.labels) and batch.ptr[i + 1] - batch.ptr[i] == one.n_regions
        for name in one.regions.dtype.names:
            assert np.array_equal(found.regions[name], one.regions[name]), name
        assert np.array_equal(found.edge_index, one.edge_index)
        rows = slice(*batch.pair_ptr[i : i + 2])
        assert np.array_equal(batch.neighbors["length"][rows], one.neighbors["length"])
    assert batch.edge_index.max() < batch.ptr[-1] == len(batch.regions["area"])
    assert batch.regions["area"].sum() == images[..., 0].size and "4 pictures, 64x50" in repr(batch)


def test_masks_and_only_what_is_asked_for(images):
    mask = np.ones(images.shape[:3], bool)
    mask[1, 10:30] = mask[2, :, :20] = False
    mask[1, 10:30, 5] = True
    batch = sp.segment_batch(images, mask=mask, neighbors=False, n_regions=9)
    assert np.array_equal(batch.labels == -1, ~mask) and batch.ptr.tolist() == [0, 9, 18, 27, 36]
    assert batch[1].edge_index is None
    with pytest.raises(RuntimeError, match="neighbors=True"):
        batch.edge_index


def test_tensors_give_tensors(images):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    batch = sp.segment_batch(torch.from_numpy(images), n_regions=12)
    assert all(isinstance(one, torch.Tensor) for one in (batch.labels, batch.ptr, batch.edge_index, batch.regions["area"]))
    assert torch.equal(batch.labels, torch.from_numpy(sp.segment_batch(images, n_regions=12).labels))


def test_what_is_no_batch_is_refused(images):
    for wrong in (images[0], images[:0], images[..., 0]):
        with pytest.raises(ValueError, match=r"\(N, H, W, C\)"):
            sp.segment_batch(wrong)
    with pytest.raises(ValueError, match="temporal is for frames"):
        sp.segment_batch(images, temporal=True)
    with pytest.raises(TypeError, match="stream is for images on a device"):
        sp.segment_batch(images, stream=0)
    with pytest.raises(ValueError, match="n_regions"):
        sp.segment_batch(images, n_regions=-1)
    with pytest.raises(ValueError, match="^image 2: "):
        sp.segment_batch(np.where(np.arange(4)[:, None, None, None] == 2, np.nan, images / np.float32(255)).astype(np.float32))


def test_pictures_of_a_list_and_in_parts(images):
    whole = sp.segment_batch(images, n_regions=12)
    for found in (sp.segment_batch(list(images), n_regions=12), sp.segment_batch(images, n_regions=12, chunk=1)):
        assert np.array_equal(found.labels, whole.labels) and np.array_equal(found.edge_index, whole.edge_index)
    with pytest.raises(ValueError, match=r"of one shape, got .*segment_images"):
        sp.segment_batch([images[0], images[1][:-1]])
    for wrong in (0, -3, True):
        with pytest.raises(ValueError, match="chunk must be the number of pictures"):
            sp.segment_batch(images, chunk=wrong)
    with pytest.raises(TypeError):
        sp.segment_batch(images, chunk=1.5)
