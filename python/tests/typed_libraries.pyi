# SPDX-License-Identifier: MPL-2.0
# Arrays of other libraries with their own signatures, for samples that checkers read.

from enum import IntEnum
from typing import Any

class Kind(IntEnum):
    CUDA = 2

class TorchDevice:
    type: str
    index: int

class TorchStream:
    cuda_stream: int

class Tensor:
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __dlpack__(self, *, stream: Any | None = -1, max_version: tuple[int, int] | None = None) -> object: ...
    def __dlpack_device__(self) -> tuple[Kind, int]: ...
    def data_ptr(self) -> int: ...
    def long(self) -> Tensor: ...

class Pointer:
    ptr: int

class CuPyArray:
    data: Pointer
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

class JaxArray:
    def __dlpack__(self) -> Any: ...
    def devices(self) -> set[Any]: ...

# As the standard of arrays has DLPack.
class StandardArray:
    def __dlpack__(self, *, stream: int | Any | None = None) -> Any: ...
    def __dlpack_device__(self) -> tuple[Kind, int]: ...

# The interface alone.
class NumbaArray:
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
