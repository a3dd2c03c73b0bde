# SPDX-License-Identifier: MPL-2.0
"""Batches on a device: pictures side by side give what each gives alone, labels, tables and one graph of all."""

import numpy as np
import pytest
import superpixels as sp
from driver import Dlpack


def batch_of(picture, count=5, side=60):
    parts = [np.roll(picture, (7 * i, 11 * i), (0, 1))[:side, : side + 10] for i in range(count - 1)]
    # One without an edge is done early.
    return np.stack([*parts, np.full_like(parts[0], 90)])


def alone(image, mask=None, **parameters):
    segmenter = sp.Segmenter(**parameters)
    labels = segmenter.segment(image, mask=mask)
    return labels, segmenter.regions, segmenter.neighbors, segmenter.edge_index


def compare(found, images, masks=None, **parameters):
    columns = {name: column.numpy() for name, column in found.regions.items()}
    pairs = {name: column.numpy() for name, column in found.neighbors.items()}
    labels, ptr, batch = found.labels.numpy(), found.ptr.numpy(), found.batch.numpy()
    edges, pair_ptr = found.edge_index.numpy(), found.pair_ptr.numpy()
    assert len(found) == len(images) and ptr[0] == pair_ptr[0] == 0
    assert ptr[-1] == len(batch) and edges.shape == (2, 2 * pair_ptr[-1])
    for i, image in enumerate(images):
        want, regions, neighbors, edge_index = alone(image, None if masks is None else masks[i], **parameters)
        assert np.array_equal(labels[i], want.astype(np.int32))
        rows, pair_rows = slice(*ptr[i : i + 2]), slice(*pair_ptr[i : i + 2])
        assert (batch[rows] == i).all()
        for table, here, part in [(regions, columns, rows), (neighbors, pairs, pair_rows)]:
            assert list(here) == list(table.dtype.names)
            for name in table.dtype.names:
                assert np.array_equal(here[name][part].astype(table.dtype[name].base), table[name]), name
        assert np.array_equal(edges[:, 2 * pair_rows.start : 2 * pair_rows.stop], edge_index + ptr[i])


@pytest.mark.parametrize("algorithm", ["slic", "lsc", "quickshift"])
def test_each_picture_as_alone(algorithm, kind, driver, picture):
    images = batch_of(picture)
    compare(sp.segment_batch(kind(driver, images), algorithm), images, algorithm=algorithm)


def test_parameters_and_masks(driver, picture):
    images = batch_of(picture)
    masks = np.random.default_rng(0).random(images.shape[:3]) < 0.8
    parameters = {"superpixel_size": 8, "n_regions": 30, "refine": 1}
    found = sp.segment_batch(Dlpack(driver, images), mask=Dlpack(driver, masks), **parameters)
    compare(found, images, masks, **parameters)
    # One mask for all, floats, gray.
    gray = images[..., :1] / np.float32(255)
    found = sp.segment_batch(Dlpack(driver, gray), mask=Dlpack(driver, masks[0]), n_segments=40)
    compare(found, gray, [masks[0]] * len(gray), n_segments=40)


def test_batches_of_any_number_one_after_another(driver, picture):
    images = batch_of(picture, 9, 30)
    for count in (9, 1, 3, 9):
        compare(sp.segment_batch(Dlpack(driver, images[:count])), images[:count])


def test_labels_of_many_come_side_by_side(kind, driver, picture):
    images = batch_of(picture, 7)
    labels = sp.slic(kind(driver, images), n_segments=50)
    assert np.array_equal(labels.numpy(), sp.slic(images, n_segments=50))
    # Floats are packed first; what is no number is found.
    unit = images / np.float32(255)
    assert np.array_equal(sp.slic(kind(driver, unit)).numpy(), sp.slic(unit))
    unit[3, 5, 5] = np.nan
    with pytest.raises(ValueError, match="no number"):
        sp.slic(kind(driver, unit), check=True)
    with pytest.raises(ValueError, match="no number"):
        sp.segment_batch(kind(driver, unit))
    # A Segmenter has the last one's tables.
    segmenter = sp.Segmenter(temporal=False)
    segmenter.segment(kind(driver, images))
    _, regions, _, edge_index = alone(images[-1])
    assert np.array_equal(segmenter.regions["area"].numpy(), regions["area"])
    assert np.array_equal(segmenter.edge_index.numpy(), edge_index)
    # And after a frame by itself that one's.
    segmenter.segment(kind(driver, images[0]))
    assert np.array_equal(segmenter.regions["area"].numpy(), alone(images[0])[1]["area"])


def test_only_what_is_asked_for(driver, picture):
    found = sp.segment_batch(Dlpack(driver, batch_of(picture)), regions=False, neighbors=False)
    assert found.batch.shape == (found.ptr.numpy()[-1],) and "5 pictures, 70x60" in repr(found)
    for name in ("regions", "neighbors", "pair_ptr", "edge_index"):
        with pytest.raises(RuntimeError, match="=True to the call"):
            getattr(found, name)
    with pytest.raises(TypeError, match="torch and CuPy"):
        found[0]
    with pytest.raises(IndexError):
        found[5]


def test_the_host_gives_the_same(driver, picture):
    images = batch_of(picture)
    masks = np.random.default_rng(0).random(images.shape[:3]) < 0.8
    for parameters, mask in [({"n_regions": 30, "start_label": 7}, None), ({"linear_light": True}, masks), ({"start_label": 1}, masks)]:
        there = sp.segment_batch(Dlpack(driver, images), mask=None if mask is None else Dlpack(driver, mask), **parameters)
        here = sp.segment_batch(images, mask=mask, **parameters)
        for name in ("labels", "ptr", "batch", "pair_ptr", "edge_index"):
            one, other = getattr(here, name), getattr(there, name).numpy()
            assert one.dtype == other.dtype and np.array_equal(one, other), name
        for one, other in [(here.regions, there.regions), (here.neighbors, there.neighbors)]:
            assert list(one) == list(other)
            for name, column in one.items():
                assert column.dtype == other[name].numpy().dtype and np.array_equal(column, other[name].numpy()), name


def test_what_is_no_batch_is_refused(driver, picture):
    images = batch_of(picture)
    for wrong in (images[0], images[:0]):
        with pytest.raises(ValueError, match=r"\(N, H, W, C\)"):
            sp.segment_batch(Dlpack(driver, wrong))
    with pytest.raises(ValueError, match="temporal is for frames"):
        sp.segment_batch(Dlpack(driver, images), temporal=True)
    with pytest.raises(RuntimeError, match="CPU only"):
        sp.segment_batch(Dlpack(driver, images), "snic")
    with pytest.raises(ValueError, match="65535"):
        sp.segment_batch(Dlpack(driver, np.zeros((2, 1100, 1100, 1), np.uint8)), superpixel_size=4)
