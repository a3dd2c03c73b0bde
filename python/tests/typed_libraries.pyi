# SPDX-License-Identifier: MPL-2.0
# Arrays of other libraries with their own signatures, for samples that checkers read.

from enum import IntEnum
from typing import Any

import numpy as np

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
    def __array__(self, dtype: Any = None) -> Any: ...
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

# As array_api_strict has it.
class ApiArray:
    def __dlpack__(self, *, stream: None = None) -> Any: ...
    def __dlpack_device__(self) -> tuple[Kind, int]: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...

# Becomes an array of numpy, as xarray's do.
class DataArray:
    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> np.ndarray[Any, Any]: ...

# The interface alone.
class NumbaArray:
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
