# SPDX-License-Identifier: MPL-2.0
"""As much of torch and CuPy as the package asks of them, over memory of the emulated device: modules to put into sys.modules.

The real ones are tested by gpu/run.py. Memory of the emulated device is memory of the host, so numpy reads it once the device is done.
"""

import ctypes
import types

import numpy as np
from driver import Dlpack, Memory


class Tensor:
    """An array that shows memory of the device; indexed and viewed as numpy does."""

    def __init__(self, module, memory, view):
        self.module, self.memory, self.host, self.device = module, memory, view, (2, 0)

    def view(self, dtype):
        return type(self)(self.module, self.memory, self.host.view(dtype))

    def __getitem__(self, index):
        return type(self)(self.module, self.memory, self.host[index])

    def __add__(self, number):
        self.memory.driver.synchronize()
        return self.module.up(self.host + number)

    @property
    def shape(self):
        return self.host.shape

    @property
    def ndim(self):
        return self.host.ndim

    def numpy(self):
        self.memory.driver.synchronize()
        return self.host.copy()

    @property
    def address(self):
        return self.host.__array_interface__["data"][0]

    def __dlpack_device__(self):
        return self.device

    def __array__(self, dtype=None, copy=None):
        if self.device != (1, 0):
            raise TypeError("an array on a device does not become one of numpy unasked")
        return self.host

    def __dlpack__(self, stream=None, max_version=None):
        # The library sees to the order itself: it is on a stream that it names.
        assert stream == -1
        self.exported = Dlpack.__new__(Dlpack)
        self.exported.__dict__.update(
            memory=self.memory, offset=self.address - self.memory.address, host=self.host, version=(1, 0), flags=0, changes={},
            without_strides=False, streams=[],
        )  # fmt: skip
        return self.exported.capsule(stream)


class TorchTensor(Tensor):
    def data_ptr(self):
        return self.address


class CuPyArray(Tensor):
    @property
    def data(self):
        return types.SimpleNamespace(ptr=self.address)

    @property
    def __cuda_array_interface__(self):
        raise AssertionError("DLPack comes first")


def module(driver, name):
    """A module; its `current` is the stream that it is on, `made` counts its new arrays."""
    kind = TorchTensor if name == "torch" else CuPyArray
    library = types.ModuleType(name)
    library.current, library.made, library.device = 0, 0, None
    for dtype in ("uint8", "int16", "int32", "int64", "float32", "uint16"):
        setattr(library, dtype, np.dtype(dtype))

    def show(host):
        memory = Memory(driver, host.nbytes)
        raw = (ctypes.c_uint8 * max(host.nbytes, 1)).from_address(memory.address)
        view = np.ndarray(host.shape, host.dtype, raw)
        return kind(library, memory, view)

    def up(host, stream=None):
        array = show(host)
        array.memory.write(host, stream)
        return array

    def empty(shape, dtype, device=None):
        assert name == "torch" and device == "cuda:0" or name == "cupy" and library.device == 0
        library.made += 1
        array = show(np.empty(shape, dtype))
        # Work of an earlier owner of the memory may still be in flight on the library's stream.
        array.memory.fill(0xEE, library.current)
        return array

    def joined(how):
        def join(arrays, **axis):
            assert set(axis) <= {"dim" if name == "torch" else "axis"}
            driver.synchronize()
            return up(how([array.host for array in arrays], *axis.values()))

        return join

    class Device:
        def __init__(self, ordinal):
            self.ordinal = ordinal

        def __enter__(self):
            library.device = self.ordinal

        def __exit__(self, *_):
            library.device = None

    def current(ordinal):
        assert ordinal == 0
        return types.SimpleNamespace(**{"cuda_stream" if name == "torch" else "ptr": library.current})

    setattr(library, "cat" if name == "torch" else "concatenate", joined(np.concatenate))
    library.stack = joined(np.stack)
    library.up, library.empty, library.from_numpy = up, empty, lambda array: array
    library.cuda = types.SimpleNamespace(current_stream=current, get_current_stream=current, Device=Device)
    setattr(library, "Tensor" if name == "torch" else "ndarray", kind)
    return library
