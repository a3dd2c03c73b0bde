# SPDX-License-Identifier: MPL-2.0
"""Arrays on a device that are refused, and the messages."""

import types

import driver as drivers
import numpy as np
import pytest
import superpixels as sp
from driver import Dlpack, Interface


def image(shape=(20, 30, 3), dtype=np.uint8):
    return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    "host, error, words",
    [
        (image(dtype=np.int32), TypeError, "int16, int32 or int64, got int32|<i4"),
        (image(dtype=bool), TypeError, "uint8"),
        (image(dtype=np.complex64), TypeError, "uint8"),
        (image(()), ValueError, "shape"),
        (image((20,)), ValueError, "shape"),
        (image((20, 30, 2)), ValueError, "shape"),
        (image((3, 20, 30)), ValueError, "channel_axis=0"),
        (image((0, 30, 3)), ValueError, "1x1 to 16384x16384"),
        (image((16385, 1)), ValueError, "1x1 to 16384x16384"),
        (image((2, 3, 20, 30)), ValueError, "shape"),
        (image((2, 20, 30)), ValueError, r"\[..., None\]"),
        (image((1, 1, 1, 1, 1, 1, 1, 1, 1)), ValueError, "dimensions|shape"),
    ],
)
def test_bad_images(host, error, words, kind, driver):
    for call in (sp.slic, sp.Segmenter().segment):
        with pytest.raises(error, match=words):
            call(kind(driver, host))


@pytest.mark.parametrize(
    "changes, error, words",
    [
        ({"data": (0, False)}, ValueError, "null"),
        ({"data": (image().ctypes.data, False)}, ValueError, "driver knows"),
        ({"data": None}, ValueError, "no data"),
        ({"data": (-5, False)}, OverflowError, None),
        ({"data": 5}, TypeError, None),
        ({"shape": (2**62, 2**62, 3), "strides": None}, ValueError, "64 bits|1x1"),
        ({"shape": (-1, 30, 3)}, ValueError, "below zero"),
        ({"shape": [20, 30, 3]}, ValueError, "tuple"),
        ({"shape": ("a",)}, TypeError, None),
        ({"strides": (90, 3)}, ValueError, "as many strides"),
        ({"strides": (2**40, 3, 1)}, ValueError, "driver knows"),
        ({"strides": (-(2**40), 3, 1)}, ValueError, "driver knows|end of memory"),
        ({"strides": (2**70, 3, 1)}, OverflowError, None),
        ({"version": 1}, ValueError, "version 1"),
        ({"version": None}, ValueError, "no version"),
        ({"typestr": ">u2"}, TypeError, "uint8"),
        ({"typestr": "|V3"}, TypeError, "uint8"),
        ({"typestr": "\N{SNOWMAN}"}, TypeError, "uint8"),
        ({"typestr": 5}, TypeError, None),
        ({"mask": 1}, ValueError, "mask"),
        ({"stream": 0}, ValueError, "stream 0"),
        ({"stream": "x"}, TypeError, None),
    ],
)
def test_bad_interfaces(changes, error, words, driver):
    with pytest.raises(error, match=words):
        sp.slic(Interface(driver, image(), **changes))


@pytest.mark.parametrize(
    "changes, error, words",
    [
        ({"data": 0}, ValueError, "null"),
        ({"data": image().ctypes.data, "byte_offset": 0}, ValueError, "driver knows"),
        ({"byte_offset": 2**64 - 1}, ValueError, "end of memory"),
        ({"device_id": 1}, ValueError, "says that it is on device 1"),
        ({"device_id": -1}, ValueError, "device"),
        ({"ndim": -1}, ValueError, "dimensions"),
        ({"ndim": 1000}, ValueError, "dimensions"),
        ({"shape": None}, ValueError, "dimensions"),
        ({"lanes": 3}, TypeError, "uint8"),
        ({"bits": 4}, TypeError, "uint8"),
        ({"code": 77}, TypeError, "uint8"),
        ({"shape": (drivers.ctypes.c_int64 * 3)(2**62, 2**62, 3)}, ValueError, None),
        ({"shape": (drivers.ctypes.c_int64 * 3)(-1, 2, 3)}, ValueError, "below zero"),
        ({"strides": (drivers.ctypes.c_int64 * 3)(2**62, 3, 1)}, ValueError, "end of memory"),
        ({"version": (2, 0)}, BufferError, "version 2"),
    ],
)
def test_bad_capsules(changes, error, words, driver):
    for version in (None, (1, 1)):
        with pytest.raises(error, match=words):
            sp.slic(Dlpack(driver, image(), **{"version": version, **changes}))


def test_capsules_that_are_none(driver):
    class Wrong(Dlpack):
        def __dlpack__(self, stream=None, max_version=None):
            return self.result

    array = Wrong(driver, image(), version=(1, 0))
    array.result = 5
    with pytest.raises(TypeError, match="capsule"):
        sp.slic(array)
    array.result = array.capsule(1)
    drivers._api.PyCapsule_SetName(array.result, b"used_dltensor_versioned")
    with pytest.raises(ValueError, match="used before"):
        sp.slic(array)


@pytest.mark.parametrize(
    "host, error",
    [
        (np.empty((20, 30), np.int16), TypeError),
        (np.empty((20, 30), np.int64), TypeError),
        (np.empty((20, 30), np.float32), TypeError),
        (np.empty((30, 20), np.int32), ValueError),
        (np.empty((20, 30, 1), np.int32), ValueError),
        (np.empty((600,), np.int32), ValueError),
        (np.empty((20, 60), np.int32)[:, ::2], ValueError),
        (np.empty((20, 30), np.int32)[::-1], ValueError),
        (np.empty((30, 20), np.int32).T, ValueError),
        (np.zeros(2401, np.uint8)[1:].view(np.int32).reshape(20, 30), ValueError),
    ],
)
def test_bad_outs(host, error, kind, driver):
    for call in (sp.slic, sp.Segmenter().segment):
        with pytest.raises(error, match="out|labels"):
            call(kind(driver, image()), out=kind(driver, host))


def test_outs_elsewhere(driver):
    frame, labels = image(), np.empty((20, 30), np.int32)
    with pytest.raises(TypeError, match="on the device"):
        sp.slic(Interface(driver, frame), out=labels)
    with pytest.raises(TypeError, match="out"):
        sp.slic(frame, out=Interface(driver, labels))
    with pytest.raises(ValueError, match="read-only"):
        sp.slic(Interface(driver, frame), out=Dlpack(driver, labels, version=(1, 0), flags=1))
    out = Interface(driver, labels)
    out.changes["data"] = (out.address, True)
    with pytest.raises(ValueError, match="read-only"):
        sp.slic(Interface(driver, frame), out=out)
    # A frame may be.
    sp.slic(Dlpack(driver, frame, version=(1, 0), flags=1))
    shared = Interface(driver, np.zeros(6000, np.uint8))
    both = [Interface(driver, host, data=(shared.address, False)) for host in (frame, labels)]
    with pytest.raises(ValueError, match="share"):
        sp.slic(both[0], out=both[1])


def test_places(driver, picture):
    host = sp.Segmenter(device="cpu")
    with pytest.raises(ValueError, match="device='cuda:0'"):
        host.segment(Interface(driver, picture))
    settled = sp.Segmenter()
    settled.segment(picture)
    with pytest.raises(ValueError, match="this Segmenter on cpu"):
        settled.segment(Interface(driver, picture))
    for name in ["gpu", "cuda:", "cuda:x", "cuda:-1", "CUDA", "", 5, "cuda:70000"]:
        with pytest.raises(ValueError, match="device"):
            sp.Segmenter(device=name)
    with pytest.raises(RuntimeError, match="no device 999"):
        sp.Segmenter(device="cuda:999")
    with pytest.raises(RuntimeError, match="CPU only"):
        sp.snic(Interface(driver, picture))
    with pytest.raises(RuntimeError, match="CPU only"):
        sp.Segmenter("snic", device="cuda").segment(picture)


def test_arrays_of_other_devices(driver):
    """Of ROCm: neither CUDA's nor the host's."""
    with pytest.raises(TypeError, match="np.asarray"):
        sp.slic(Dlpack(driver, image(), device_type=10))


@pytest.mark.parametrize(
    "stream, error",
    [("1", TypeError), (1.5, TypeError), (-1, ValueError), (2**64, ValueError), (types.SimpleNamespace(ptr="x"), TypeError)],
)
def test_bad_streams(stream, error, driver, picture):
    for call in (sp.slic, sp.Segmenter().segment):
        with pytest.raises(error, match="stream"):
            call(Interface(driver, picture), stream=stream)


def test_streams_are_for_arrays_on_a_device(picture):
    for call in (sp.slic, sp.Segmenter().segment):
        with pytest.raises(ValueError, match="stream"):
            call(picture, stream=1)


def test_memory_of_another_context(driver):
    context, address = drivers.ctypes.c_void_p(), drivers.ctypes.c_uint64()
    driver.check(driver.lib.cuCtxCreate_v2(drivers.ctypes.byref(context), 0, 0))
    try:
        driver.check(driver.lib.cuMemAlloc_v2(drivers.ctypes.byref(address), drivers.ctypes.c_size_t(2400)))
        driver.lib.cuCtxPopCurrent_v2(None)
        labels = np.empty((20, 30), np.int32)
        for arguments in [
            dict(image=Interface(driver, image(), data=(address.value, False))),
            dict(image=Interface(driver, image()), out=Interface(driver, labels, data=(address.value, False))),
        ]:
            with pytest.raises(ValueError, match="another CUDA context"):
                sp.slic(**arguments)
    finally:
        driver.lib.cuCtxDestroy_v2(context)
