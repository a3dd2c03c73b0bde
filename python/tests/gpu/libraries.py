# SPDX-License-Identifier: MPL-2.0
"""torch and CuPy behind the same few names: arrays up and down, streams, and a device that is kept busy."""

import numpy as np

# Clock cycles that keep a stream busy while the host goes on: a tenth of a second and more.
LONG = 400_000_000


class Torch:
    name = "torch"

    def __init__(self):
        import torch

        if not torch.cuda.is_available():
            raise ImportError("torch finds no device")
        self.lib = torch

    def up(self, host):
        return self.lib.from_numpy(np.ascontiguousarray(host)).to("cuda:0")

    def down(self, array):
        assert isinstance(array, self.lib.Tensor) and array.is_cuda
        return array.cpu().numpy()

    def empty(self, shape, dtype):
        return self.lib.empty(shape, dtype=getattr(self.lib, dtype), device="cuda:0")

    def stream(self):
        return self.lib.cuda.Stream()

    def on(self, stream):
        return self.lib.cuda.stream(stream)

    def synchronize(self):
        self.lib.cuda.synchronize()

    def keep_busy(self):
        self.lib.cuda._sleep(LONG)

    def mark(self):
        event = self.lib.cuda.Event()
        event.record()
        return event.query


class CuPy:
    name = "CuPy"

    def __init__(self):
        import cupy

        cupy.cuda.runtime.getDeviceCount()
        self.lib = cupy
        code = 'extern "C" __global__ void wait(long long cycles) { long long start = clock64(); while (clock64() - start < cycles) {} }'
        self.wait = cupy.RawKernel(code, "wait")

    def up(self, host):
        return self.lib.asarray(np.ascontiguousarray(host))

    def down(self, array):
        assert isinstance(array, self.lib.ndarray)
        return self.lib.asnumpy(array)

    def empty(self, shape, dtype):
        return self.lib.empty(shape, dtype)

    def stream(self):
        return self.lib.cuda.Stream(non_blocking=True)

    def on(self, stream):
        return stream

    def synchronize(self):
        self.lib.cuda.runtime.deviceSynchronize()

    def keep_busy(self):
        self.wait((1,), (1,), (np.int64(LONG),))

    def mark(self):
        event = self.lib.cuda.Event()
        event.record()
        return lambda: event.done
