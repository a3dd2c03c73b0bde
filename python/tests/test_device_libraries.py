# SPDX-License-Identifier: MPL-2.0
"""Results are arrays of the library that the frame is of, in its memory and on its stream: torch and CuPy, or what passes for them."""

import gc
import os
import sys

import driver as drivers
import libraries
import numpy as np
import pytest
import superpixels as sp
from driver import Interface

pytestmark = pytest.mark.skipif("SUPERPIXEL_EMULATED" not in os.environ, reason="gpu/run.py tests real libraries")


@pytest.fixture(params=["torch", "cupy"])
def library(request, driver, monkeypatch):
    library = libraries.module(driver, request.param)
    monkeypatch.setitem(sys.modules, request.param, library)
    return library


def same(array, want):
    found = array.numpy()
    return found.shape == want.shape and np.array_equal(found.astype(want.dtype), want)


def test_functions(library, picture):
    for function in (sp.slic, sp.lsc, sp.quickshift):
        labels = function(library.up(picture), start_label=5)
        assert isinstance(labels, libraries.Tensor) and labels.host.dtype == np.int32
        assert same(labels, function(picture, start_label=5))
    assert library.made == 3


def test_a_clip(library, picture, driver, lazy):
    device, host = sp.Segmenter(temporal=True, n_segments=90), sp.Segmenter(temporal=True, n_segments=90)
    held = []
    for i in range(7):
        library.current = driver.stream() if i % 2 else 0
        frame = np.roll(picture, 3 * i, 1).copy()
        image = library.up(frame, library.current)
        held.append((device.segment(image), host.segment(frame)))
        # Behind the call on the library's stream the frame is free.
        image.memory.fill(0, library.current)
        assert device.n_regions == host.n_regions
        for name in ("regions", "motion", "neighbors"):
            found, want = getattr(device, name), getattr(host, name)
            assert list(found) == list(want.dtype.names)
            held += [(found[field], want[field]) for field in found]
        held.append((device.edge_index, host.edge_index))
    del device
    gc.collect()
    for array, want in held:
        assert isinstance(array, libraries.Tensor) and same(array, want)


def test_a_stream_beside_the_librarys(library, picture, driver, lazy):
    """Its new memory may be in use on the stream that it is on, and may be used there again."""
    own, library.current = driver.stream(), driver.stream()
    image = library.up(picture, own)
    labels = sp.Segmenter(n_segments=100).segment(image, stream=own)
    image.memory.fill(0, own)
    wide = np.zeros(labels.memory.size, np.uint8)
    driver.call(
        "cuMemcpyDtoHAsync_v2",
        wide.ctypes.data_as(drivers.ctypes.c_void_p),
        drivers.ctypes.c_uint64(labels.memory.address),
        drivers.ctypes.c_size_t(wide.nbytes),
        drivers.ctypes.c_void_p(library.current),
    )
    labels.memory.fill(0, library.current)
    driver.call("cuStreamSynchronize", drivers.ctypes.c_void_p(library.current))
    assert np.array_equal(wide.view(np.int32).reshape(122, 163), sp.slic(picture))


def test_out(library, picture):
    for dtype in (np.int32, np.uint16):
        out = library.up(np.zeros((122, 163), dtype))
        assert sp.slic(library.up(picture), out=out) is out and same(out, sp.slic(picture))
    assert library.made == 0


def test_one_pixel_has_no_neighbors(library):
    segmenter = sp.Segmenter()
    assert segmenter.segment(library.up(np.zeros((1, 1), np.uint8))).numpy().tolist() == [[0]]
    assert segmenter.edge_index.numpy().shape == (2, 0) and segmenter.neighbors["length"].numpy().shape == (0,)
    assert segmenter.regions["area"].numpy().tolist() == [1]


def test_arrays_of_the_host(library, picture):
    image = library.up(picture)
    image.device = (1, 0)
    labels, want = sp.slic(image), sp.slic(picture)
    # CuPy has none in the host's memory; its stand-in says nothing of the array API.
    assert labels.dtype == (np.int32 if library.__name__ == "torch" else np.uint16)
    assert np.array_equal(labels, want)


def test_a_module_that_is_being_imported(library, picture, driver):
    del library.__dict__["Tensor" if library.__name__ == "torch" else "ndarray"]
    assert isinstance(sp.slic(Interface(driver, picture)), sp.DeviceArray)


def test_nothing_is_imported():
    assert not {"torch", "cupy"} & set(sys.modules)


def pictures(picture, count=7):
    return [np.roll(picture, 9 * i, 1)[:60, :70].copy() for i in range(count)]


def assert_equal_batches(one, other):
    for name in ("labels", "ptr", "batch", "pair_ptr", "edge_index"):
        assert same(getattr(one, name), getattr(other, name).numpy()), name
    for name in ("regions", "neighbors"):
        tables = getattr(one, name), getattr(other, name)
        assert list(tables[0]) == list(tables[1])
        assert all(same(tables[0][column], tables[1][column].numpy()) for column in tables[0])


def test_a_batch_in_parts_and_of_a_list(library, picture):
    images = pictures(picture)
    masks = np.random.default_rng(0).random((7, 60, 70)) < 0.8
    whole = sp.segment_batch(library.up(np.stack(images)), n_segments=40)
    for chunk in (1, 3, 7, 100):
        assert_equal_batches(sp.segment_batch(library.up(np.stack(images)), n_segments=40, chunk=chunk), whole)
    assert_equal_batches(sp.segment_batch([library.up(image) for image in images], n_segments=40, chunk=4), whole)
    inside = sp.segment_batch(library.up(np.stack(images)), mask=library.up(masks), n_segments=40)
    assert_equal_batches(sp.segment_batch(library.up(np.stack(images)), mask=library.up(masks), n_segments=40, chunk=2), inside)
    one = sp.segment_batch(library.up(np.stack(images)), mask=library.up(masks[0]), n_segments=40)
    assert_equal_batches(sp.segment_batch(library.up(np.stack(images)), mask=library.up(masks[0]), n_segments=40, chunk=5), one)
    few = sp.segment_batch(library.up(np.stack(images)), regions=False, neighbors=False, chunk=3)
    assert few.ptr.numpy()[-1] == len(few.batch.numpy()) and len(few) == 7
    with pytest.raises(ValueError, match="leave stream out"):
        sp.segment_batch(library.up(np.stack(images)), chunk=3, stream=0)
    with pytest.raises(TypeError, match="all be arrays of torch"):
        sp.segment_batch([library.up(images[0]), images[1]])
