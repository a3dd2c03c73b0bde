# SPDX-License-Identifier: MPL-2.0
"""Arrays on a CUDA device by ctypes alone, with either protocol: the emulated device of tests/emulator has no torch and no CuPy."""

import ctypes
import os

import numpy as np
import pytest

VERSIONED = b"dltensor_versioned"
UNVERSIONED = b"dltensor"


class Driver:
    """The calls of the driver that arrays need, in the primary context of device 0."""

    def __init__(self):
        self.lib = ctypes.CDLL("libcuda.so.1")
        self.context = ctypes.c_void_p()
        self.check(self.lib.cuInit(0))
        self.check(self.lib.cuDevicePrimaryCtxRetain(ctypes.byref(self.context), 0))

    @staticmethod
    def check(result):
        assert result == 0, f"the driver says {result}"

    def call(self, name, *arguments):
        """In the context, whatever is current on the thread."""
        self.check(self.lib.cuCtxPushCurrent_v2(self.context))
        try:
            self.check(getattr(self.lib, name)(*arguments))
        finally:
            self.lib.cuCtxPopCurrent_v2(None)

    def current(self):
        context = ctypes.c_void_p()
        self.check(self.lib.cuCtxGetCurrent(ctypes.byref(context)))
        return context.value

    def stream(self):
        stream = ctypes.c_void_p()
        # 1: not ordered by the default stream.
        self.call("cuStreamCreate", ctypes.byref(stream), 1)
        return stream.value

    def synchronize(self):
        self.call("cuCtxSynchronize")


def driver():
    """The driver, or a skip that is a failure where SUPERPIXEL_REQUIRE_CUDA is 1."""
    try:
        return Driver()
    except (OSError, AssertionError) as error:
        if os.environ.get("SUPERPIXEL_REQUIRE_CUDA") == "1":
            pytest.fail(f"SUPERPIXEL_REQUIRE_CUDA is set, and there is no device: {error}")
        pytest.skip(f"no CUDA device: {error}")


class Memory:
    """Bytes on the device."""

    def __init__(self, driver, size):
        self.driver, self.size = driver, size
        address = ctypes.c_uint64()
        driver.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        self.address = address.value

    def write(self, data, stream=None):
        """On a stream; the emulated device keeps what it is given there until the stream is waited for."""
        data = np.ascontiguousarray(data)
        assert data.nbytes <= self.size
        self.driver.call(
            "cuMemcpyHtoDAsync_v2",
            ctypes.c_uint64(self.address),
            data.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_size_t(data.nbytes),
            ctypes.c_void_p(stream),
        )

    def fill(self, value, stream=None):
        self.driver.call(
            "cuMemsetD8Async", ctypes.c_uint64(self.address), ctypes.c_ubyte(value), ctypes.c_size_t(self.size), ctypes.c_void_p(stream)
        )

    def read(self, stream=None):
        """After what is on the stream."""
        out = np.empty(self.size, np.uint8)
        self.driver.call(
            "cuMemcpyDtoHAsync_v2",
            out.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_uint64(self.address),
            ctypes.c_size_t(self.size),
            ctypes.c_void_p(stream),
        )
        self.driver.call("cuStreamSynchronize", ctypes.c_void_p(stream))
        return out

    def __del__(self):
        self.driver.call("cuMemFree_v2", ctypes.c_uint64(self.address))


class Array:
    """An array of numpy's shape, strides and dtype on the device."""

    def __init__(self, driver, host, stream=None):
        base = host if host.base is None else host.base
        while base.base is not None:
            base = base.base
        self.memory = Memory(driver, base.nbytes)
        self.memory.write(base, stream)
        self.offset = host.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        self.host = host

    @property
    def address(self):
        return self.memory.address + self.offset

    def numpy(self, stream=None):
        data = self.memory.read(stream)
        return np.ndarray(self.host.shape, self.host.dtype, data, self.offset, self.host.strides).copy()


class Interface(Array):
    """With __cuda_array_interface__; `changes` are put into it, those that are None taken out."""

    def __init__(self, driver, host, on=None, **changes):
        super().__init__(driver, host, on)
        self.changes = changes

    @property
    def __cuda_array_interface__(self):
        interface = {
            "shape": self.host.shape,
            "typestr": self.host.dtype.str,
            "data": (self.address, False),
            "strides": self.host.strides,
            "stream": 1,
            "version": 3,
        }
        interface.update(self.changes)
        return {name: value for name, value in interface.items() if value is not None}


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_uint64),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_api.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]

CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class Dlpack(Array):
    """With __dlpack__; `changes` are put into its tensor. Knows versions if `version` is there."""

    def __init__(self, driver, host, on=None, version=None, flags=0, without_strides=False, **changes):
        super().__init__(driver, host, on)
        self.version, self.flags, self.changes, self.without_strides = version, flags, changes, without_strides
        self.streams = []
        if version is None:
            # A library of before version 1.
            self.__class__ = Unversioned

    def __dlpack_device__(self):
        return (self.changes.get("device_type", 2), self.changes.get("device_id", 0))

    def __dlpack__(self, stream=None, max_version=None):
        assert max_version and max_version[0] >= 1
        return self.capsule(stream)

    def capsule(self, stream):
        self.streams.append(stream)
        item, ndim = self.host.dtype.itemsize, self.host.ndim
        # Capsules without a destructor: all of this lives as long as the array.
        self.shape = (ctypes.c_int64 * max(ndim, 1))(*self.host.shape)
        self.strides = (ctypes.c_int64 * max(ndim, 1))(*[stride // item for stride in self.host.strides])
        tensor = Tensor(
            self.memory.address,
            2,
            0,
            ndim,
            CODES[self.host.dtype.kind],
            8 * item,
            1,
            self.shape,
            None if self.without_strides else self.strides,
            self.offset,
        )
        for name, value in self.changes.items():
            setattr(tensor, name, value)
        if self.version is None:
            self.managed, name = Managed(tensor, None, None), UNVERSIONED
        else:
            self.managed, name = Versioned(*self.version, None, None, self.flags, tensor), VERSIONED
        return _api.PyCapsule_New(ctypes.addressof(self.managed), name, None)


class Unversioned(Dlpack):
    def __dlpack__(self, stream=None):
        return self.capsule(stream)


def taken(array, driver, stream=None, versioned=True):
    """Returns the content of an array as a consumer of DLPack on a stream reads it, and a function that gives the array back."""
    arguments = {"max_version": (1, 0)} if versioned else {}
    capsule = array.__dlpack__(stream=stream or 1, **arguments)
    name, kind = (VERSIONED, Versioned) if versioned else (UNVERSIONED, Managed)
    pointer = _api.PyCapsule_GetPointer(capsule, name)
    managed = kind.from_address(pointer)
    used = b"used_" + name
    _api.PyCapsule_SetName(capsule, used)
    taken.names.append(used)
    tensor = managed.tensor
    shape, strides = tensor.shape[: tensor.ndim], tensor.strides[: tensor.ndim]
    code = {value: key for key, value in CODES.items()}[tensor.code]
    dtype = np.dtype(f"{code}{tensor.bits // 8}")
    size = dtype.itemsize * (1 + sum((n - 1) * stride for n, stride in zip(shape, strides))) if all(shape) else 0
    data = np.empty(size, np.uint8)
    if size:
        driver.call(
            "cuMemcpyDtoHAsync_v2",
            data.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_uint64(tensor.data + tensor.byte_offset),
            ctypes.c_size_t(size),
            ctypes.c_void_p(stream),
        )
        driver.call("cuStreamSynchronize", ctypes.c_void_p(stream))
    found = np.ndarray(shape, dtype, data, 0, [dtype.itemsize * stride for stride in strides]).copy()
    return found, lambda: DELETER(managed.deleter)(pointer)


# Names of capsules are not copied.
taken.names = []


# How an array says where it is.
KINDS = {
    "interface": Interface,
    "dlpack": Dlpack,
    "dlpack 1": lambda driver, host, on=None, **more: Dlpack(driver, host, on, version=(1, 1), **more),
}
