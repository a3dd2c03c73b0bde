# SPDX-License-Identifier: MPL-2.0
"""Arrays on a CUDA device: labels and tables are the CPU's, on the caller's streams, in memory that lasts.

Without a driver all are skipped; SUPERPIXEL_REQUIRE_CUDA=1 makes that a failure. With EMULATOR_LAZY=1, which tests of streams
set, the emulated device does its work when somebody waits for it: a missing wait shows.
"""

import gc
import os
import sys
import threading

import driver as drivers
import numpy as np
import pytest
import superpixels as sp
from driver import Dlpack, Interface, taken

FUNCTIONS = [sp.slic, sp.lsc, sp.quickshift]


def frames(picture, count):
    return [np.roll(picture, (2 * i, 3 * i), (0, 1)).copy() for i in range(count)]


def same_tables(device, host):
    levels = ["merges"] if host.parameters["levels"] else []
    for name in ["regions", "motion", "neighbors"] + levels:
        found, wanted = getattr(device, name), getattr(host, name)
        assert list(found) == list(wanted.dtype.names)
        for field in found:
            got, want = found[field].numpy(), wanted[field]
            assert got.shape == want.shape and np.array_equal(got.astype(want.dtype), want), field
    found = device.edge_index
    assert found.dtype == "int64" and np.array_equal(found.numpy(), host.edge_index)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_labels_are_the_cpus(function, kind, driver, picture):
    labels = function(kind(driver, picture))
    assert isinstance(labels, sp.DeviceArray) and labels.dtype == "int32" and labels.shape == picture.shape[:2]
    assert labels.device == "cuda:0" and len(labels) == 122 and "int32" in repr(labels)
    assert np.array_equal(labels.numpy(), function(picture))


def test_layouts(kind, driver, picture):
    alpha = np.dstack([picture, np.zeros(picture.shape[:2], np.uint8)])
    wide = np.zeros((124, 200, 3), np.uint8)
    wide[1:123, 20:183] = picture
    rows = np.zeros((244, 164, 4), np.uint8)
    rows[::2, :163] = alpha
    gray = picture[..., 1].copy()
    for image, order in [
        (picture[..., ::-1].copy(), "bgr"),
        (alpha, "rgb"),
        (wide[1:123, 20:183], "rgb"),
        (rows[::2, :163], "rgb"),
        (gray, "rgb"),
        (gray[..., None], "rgb"),
        (picture[:1], "rgb"),
        (picture[:, :1], "rgb"),
        (picture[:1, :1], "rgb"),
    ]:
        want = sp.slic(np.ascontiguousarray(image), order=order)
        assert np.array_equal(sp.slic(kind(driver, image), order=order).numpy(), want)


def test_strides_that_are_not_given(driver, picture):
    want = sp.slic(picture)
    assert np.array_equal(sp.slic(Interface(driver, picture, strides=None)).numpy(), want)
    assert np.array_equal(sp.slic(Dlpack(driver, picture, without_strides=True)).numpy(), want)


def test_older_interface(driver, picture):
    image = Interface(driver, picture, version=2, stream=None)
    assert np.array_equal(sp.slic(image).numpy(), sp.slic(picture))


@pytest.mark.parametrize("algorithm", ["slic", "lsc", "quickshift"])
def test_temporal_frames(algorithm, kind, driver, picture):
    parameters = dict(temporal=True, linear_light=True) | ({} if algorithm == "quickshift" else dict(n_segments=90))
    device, host = sp.Segmenter(algorithm, **parameters), sp.Segmenter(algorithm, threads=2, **parameters)
    assert device.device is None
    # Frames of a few places and of many.
    places = [kind(driver, picture) for _ in range(2)]
    for i, frame in enumerate(frames(picture, 9)):
        array = kind(driver, frame) if i > 5 else places[i % 2]
        array.memory.write(frame)
        if i == 6:
            device.set(min_region=0.1), host.set(min_region=0.1)
        labels = device.segment(array)
        assert np.array_equal(labels.numpy(), host.segment(frame))
        assert device.n_regions == host.n_regions and device.device == "cuda:0" and host.device == "cpu"
        same_tables(device, host)
    assert device.next_id == host.next_id
    device.reset(), host.reset()
    assert np.array_equal(device.segment(places[0]).numpy(), host.segment(frames(picture, 9)[4]))
    same_tables(device, host)


def test_numpy_frames_on_the_device(driver, picture):
    device, host = (sp.Segmenter(device=name, temporal=True, levels=True) for name in ("cuda", "cpu"))
    assert (device.device, host.device) == ("cuda:0", "cpu")
    for i, frame in enumerate(frames(picture, 5)):
        want = host.segment(frame)
        if i == 2:
            # In between, from the device.
            assert np.array_equal(device.segment(Interface(driver, frame)).numpy(), want)
            same_tables(device, host)
            continue
        labels = device.segment(frame)
        assert labels.dtype == np.uint16 and np.array_equal(labels, want)
        for name in ["regions", "motion", "neighbors", "edge_index", "merges"]:
            assert np.array_equal(getattr(device, name), getattr(host, name)), name
    out = np.zeros((122, 170), np.uint16)[:, 3:166]
    assert device.segment(frame, out=out) is out and np.array_equal(out, host.segment(frame))
    for name in ["cuda:0", type("Device", (), {"__str__": lambda self: "cuda:0"})()]:
        assert sp.Segmenter(device=name).device == "cuda:0"


@pytest.mark.parametrize("count", [0, 30])
def test_levels(count, kind, driver, picture):
    device, host = (sp.Segmenter(n_segments=300, n_regions=count, levels=True, temporal=True) for _ in range(2))
    for frame in frames(picture, 3):
        labels, want = device.segment(kind(driver, frame)).numpy(), host.segment(frame)
        assert np.array_equal(labels, want) and len(host.merges) == host.n_regions - 1
        same_tables(device, host)
        merges = {name: column.numpy() for name, column in device.merges.items()}
        assert np.array_equal(sp.cut(want, merges, 7), sp.cut(want, host.merges, 7))
    device.set(levels=False)
    device.segment(kind(driver, picture))
    with pytest.raises(RuntimeError, match="levels=True"):
        device.merges


def test_out(kind, driver, picture):
    image, want = kind(driver, picture), sp.slic(picture).astype(np.int32)
    segmenter = sp.Segmenter(n_segments=100)
    for dtype in (np.int32, np.uint16):
        for host in (np.empty((122, 163), dtype), np.full((122, 170), 9, dtype)[:, 3:166]):
            for call in (sp.slic, segmenter.segment):
                out = kind(driver, host)
                assert call(image, out=out) is out
                assert np.array_equal(out.numpy(), want)
                if host.base is not None:
                    whole = out.memory.read().view(dtype).reshape(122, 170)
                    assert (whole[:, :3] == 9).all() and (whole[:, 166:] == 9).all()
    out = kind(driver, np.empty((122, 163), np.int32))
    sp.slic(image, start_label=-5, out=out)
    assert np.array_equal(out.numpy(), want - 5)
    assert np.array_equal(sp.slic(image, start_label=1).numpy(), want + 1)
    with pytest.raises(TypeError, match="int32"):
        sp.slic(image, start_label=1, out=kind(driver, np.empty((122, 163), np.uint16)))


class Stream:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Protocol:
    def __init__(self, handle):
        self.handle = handle

    def __cuda_stream__(self):
        return (0, self.handle)


STREAMS = {
    "handle": lambda handle: handle,
    "torch": lambda handle: Stream(cuda_stream=handle),
    "cupy": lambda handle: Stream(ptr=handle),
    "protocol": Protocol,
}


@pytest.mark.parametrize("name", STREAMS)
def test_streams_are_in_order(name, kind, driver, picture, lazy):
    own = driver.stream()
    stream = STREAMS[name](own)
    device, host = sp.Segmenter(temporal=True, n_segments=80), sp.Segmenter(temporal=True, n_segments=80)
    array, out = kind(driver, picture), kind(driver, np.empty((122, 163), np.int32))
    for i, frame in enumerate(frames(picture, 5)):
        array.memory.write(frame, own)
        labels = device.segment(array, stream=stream)
        assert device.segment(array, out=out, stream=stream) is out if i == 4 else True
        # Later work on the stream waits until the array has been read.
        array.memory.fill(0, own)
        want = host.segment(frame)
        assert np.array_equal(taken(labels, driver, own)[0], want)
    assert np.array_equal(out.numpy(own), host.segment(frame))
    for function in FUNCTIONS:
        array.memory.write(picture, own)
        labels = function(array, stream=stream)
        array.memory.fill(0, own)
        assert np.array_equal(taken(labels, driver, own)[0], function(picture))


def test_the_stream_of_an_interface(driver, picture, lazy):
    own = driver.stream()
    segmenter = sp.Segmenter(n_segments=100)
    array = Interface(driver, picture, own, stream=own)
    labels = segmenter.segment(array)
    array.memory.fill(0, own)
    assert np.array_equal(taken(labels, driver, own, versioned=False)[0], sp.slic(picture))
    interface = labels.__cuda_array_interface__
    assert interface["version"] == 3 and interface["stream"] > 2 and interface["data"][1] is False


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_a_stream_that_is_not_known(version, driver, picture, lazy):
    own = driver.stream()
    segmenter = sp.Segmenter(n_segments=100)
    array = Dlpack(driver, picture, version=version)
    labels = segmenter.segment(array)
    assert array.streams == [1]
    # The frame has been read when the call returns.
    array.memory.fill(0, own)
    assert np.array_equal(taken(labels, driver, own)[0], sp.slic(picture))
    out = Dlpack(driver, np.empty((122, 163), np.int32))
    array.memory.write(picture, own)
    driver.call("cuStreamSynchronize", drivers.ctypes.c_void_p(own))
    segmenter.segment(array, out=out)
    # And so have the labels been written.
    os.environ["EMULATOR_LAZY"] = "0"
    assert np.array_equal(np.ctypeslib.as_array((drivers.ctypes.c_int32 * (122 * 163)).from_address(out.address)).reshape(122, 163), sp.slic(picture)) or (
        "SUPERPIXEL_EMULATED" not in os.environ
    )


def test_results_live_on(kind, driver, picture):
    segmenter = sp.Segmenter(n_segments=100, temporal=True)
    host = sp.Segmenter(n_segments=100, temporal=True)
    held = []
    for frame in frames(picture, 6):
        labels, want = segmenter.segment(kind(driver, frame)), host.segment(frame)
        capsule, free = taken(labels, driver)
        held.append((labels, want))
        held.append((segmenter.regions["area"], host.regions["area"]))
        held.append((segmenter.edge_index, host.edge_index))
        if len(held) > 9:
            segmenter.set(superpixel_size=9), host.set(superpixel_size=9)
        free()
        # A capsule that nobody takes.
        labels.__dlpack__(), labels.__dlpack__(max_version=(1, 2))
    del segmenter, labels
    gc.collect()
    for array, want in held:
        assert np.array_equal(array.numpy(), want)
        assert np.array_equal(taken(array, driver)[0], want)
    # The consumer holds the memory alone.
    array, want = held[0]
    capsule = array.__dlpack__(max_version=(1, 0))
    del array, held
    gc.collect()
    sp.slic(kind(driver, picture))
    pointer = drivers._api.PyCapsule_GetPointer(capsule, drivers.VERSIONED)
    tensor = drivers.Versioned.from_address(pointer).tensor
    out = np.empty((122, 163), np.int32)
    driver.call("cuMemcpyDtoH_v2", out.ctypes.data_as(drivers.ctypes.c_void_p), drivers.ctypes.c_uint64(tensor.data), drivers.ctypes.c_size_t(out.nbytes))
    assert np.array_equal(out, want)


def test_memory_waits_for_its_readers(driver, picture, lazy):
    """Nobody knows who reads an array: its memory is used again when the device is done."""
    own = driver.stream()
    segmenter = sp.Segmenter(n_segments=100)
    image, copy = Interface(driver, picture), drivers.Memory(driver, 4 * 122 * 163)
    for frame in frames(picture, 4):
        image.memory.write(frame)
        labels = segmenter.segment(image)
        capsule = labels.__dlpack__(stream=own)
        address = labels.__cuda_array_interface__["data"][0]
        driver.call(
            "cuMemcpyDtoDAsync_v2",
            drivers.ctypes.c_uint64(copy.address),
            drivers.ctypes.c_uint64(address),
            drivers.ctypes.c_size_t(copy.size),
            drivers.ctypes.c_void_p(own),
        )
        del labels, capsule
        # In the same memory.
        image.memory.write(picture)
        labels = segmenter.segment(image)
        assert labels.__cuda_array_interface__["data"][0] == address
        labels.numpy()
        assert np.array_equal(copy.read(own).view(np.int32).reshape(122, 163), sp.slic(frame))
        del labels


def free_memory(driver):
    free, total = drivers.ctypes.c_size_t(), drivers.ctypes.c_size_t()
    driver.call("cuMemGetInfo_v2", drivers.ctypes.byref(free), drivers.ctypes.byref(total))
    return free.value


def test_memory_is_given_back(driver, picture):
    def rounds(count):
        segmenter = sp.Segmenter(temporal=True)
        for i in range(count):
            array = Interface(driver, picture)
            labels = segmenter.segment(array)
            segmenter.regions, segmenter.motion, segmenter.neighbors, segmenter.edge_index
            labels.__dlpack__()
            with pytest.raises(ValueError):
                segmenter.segment(array, stream=-1)
        references = sys.getrefcount(array)
        del segmenter, labels
        gc.collect()
        assert sys.getrefcount(array) == references == 2
        del array
        return free_memory(driver)

    first = rounds(3)
    assert rounds(12) == first


def test_a_result_is_a_frame(driver, picture):
    """Our own arrays are accepted like any other."""
    labels = sp.slic(Interface(driver, picture))
    segmenter = sp.Segmenter(temporal=True)
    segmenter.segment(Interface(driver, picture))
    colors = segmenter.regions["mean_rgb"]
    assert colors.shape == (segmenter.n_regions, 3) and colors.dtype == "uint8"
    # A gray image three pixels wide, whose rows are records apart.
    assert np.array_equal(sp.slic(colors).numpy(), sp.slic(colors.numpy()))
    with pytest.raises(TypeError, match="int64, got int32"):
        sp.slic(labels)
    # Its memory is no longer asked for.
    assert sp.slic(Interface(driver, picture), out=labels) is labels
    assert np.array_equal(labels.numpy(), sp.slic(picture))


def test_the_current_context_stays(driver, picture):
    def work():
        for before in (None, driver.context.value):
            driver.check(driver.lib.cuCtxSetCurrent(drivers.ctypes.c_void_p(before)))
            segmenter = sp.Segmenter(device="cuda:0", temporal=True)
            labels = segmenter.segment(Interface(driver, picture))
            segmenter.segment(picture)
            labels = segmenter.segment(Interface(driver, picture))
            segmenter.regions, segmenter.edge_index, segmenter.next_id
            segmenter.set(compactness=20)
            segmenter.reset()
            labels.numpy()
            sp.lsc(Interface(driver, picture))
            del labels, segmenter
            gc.collect()
            found.append(driver.current() == before)

    found = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [True, True]


def test_other_threads_run(driver, picture):
    large = Interface(driver, np.tile(picture, (4, 4, 1)))
    done, steps = threading.Event(), 0

    def work():
        sp.slic(large)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.wait(0.001):
        steps += 1
    thread.join()
    assert steps > 3 or "SUPERPIXEL_EMULATED" not in os.environ
