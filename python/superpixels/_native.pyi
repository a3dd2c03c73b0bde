# SPDX-License-Identifier: MPL-2.0
# Types of the native module, and of the arrays that go in and come out.
# Overlaps are meant: the first overload that fits counts.
# mypy: disable-error-code="overload-overlap"

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import GenericAlias
from typing import Any, Generic, Literal, Protocol, final, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Never, Self, TypeVar, Unpack

from ._functions import Parameters

_Algorithm = Literal["slic", "lsc", "quickshift", "snic"]
_Order = Literal["rgb", "bgr"]

_Image = NDArray[np.integer[Any] | np.floating[Any]]
_Labels = NDArray[np.integer[Any]]
_Mask = NDArray[np.bool_] | NDArray[np.uint8]
_Prior = NDArray[np.integer[Any]] | NDArray[np.bool_]

# Drawings are of the picture's type.
_LabelT = TypeVar("_LabelT", bound=np.integer[Any])
_RealT = TypeVar("_RealT", bound=np.integer[Any] | np.floating[Any])

# What numpy makes an array of numbers of. Its own arrays of other types are none.
class _Convertible(Protocol):
    def __array__(self) -> _Image: ...

# Arrays of numpy have `__dlpack__`, too, but say their device by a plain number.
class _Dlpack(Protocol):
    def __dlpack__(self) -> object: ...
    def __dlpack_device__(self) -> tuple[Enum, int]: ...

class _CudaInterface(Protocol):
    @property
    def __cuda_array_interface__(self) -> object: ...

# jax.Array has no `__dlpack_device__` in its types.
class _JaxArray(Protocol):
    def __dlpack__(self) -> object: ...
    def devices(self) -> object: ...

_OnDevice = _Dlpack | _CudaInterface | _JaxArray

# Libraries that follow the array API: their images in the host's memory give arrays of theirs.
class _ApiArray(_Dlpack, Protocol):
    def __array_namespace__(self) -> object: ...

_OtherArray = _Convertible | _ApiArray

# torch and CuPy make the results themselves. Results for other libraries on a device are DeviceArray.
class _TorchTensor(_Dlpack, Protocol):
    def data_ptr(self) -> int: ...

class _CuPyPointer(Protocol):
    @property
    def ptr(self) -> int: ...

class _CuPyArray(_CudaInterface, Protocol):
    @property
    def data(self) -> _CuPyPointer: ...

_KeptT = TypeVar("_KeptT", bound=_TorchTensor | _CuPyArray)
_OnDeviceT = TypeVar("_OnDeviceT", bound=_OnDevice)
_TensorT = TypeVar("_TensorT", bound=_TorchTensor)
_ApiT = TypeVar("_ApiT", bound=_ApiArray)
# Where labels of images of other libraries are written.
_OutT = TypeVar("_OutT", bound=NDArray[np.uint16] | NDArray[np.uint32] | NDArray[np.int32] | _OnDevice)
# Where labels from 0 on are written.
_MapT = TypeVar("_MapT", NDArray[np.uint16], NDArray[np.uint32])

class _CudaStream(Protocol):
    def __cuda_stream__(self) -> tuple[int, int]: ...

class _TorchStream(Protocol):
    @property
    def cuda_stream(self) -> int: ...

# CuPy's streams have `ptr`, as its arrays' memory has.
_Stream = int | _CudaStream | _TorchStream | _CuPyPointer

class _TorchDevice(Protocol):
    @property
    def type(self) -> str: ...
    @property
    def index(self) -> int | None: ...

# Rows that a structured array is indexed with.
_Rows = slice | Sequence[int] | NDArray[np.bool_] | NDArray[np.integer[Any]]

_ScalarT = TypeVar("_ScalarT", bound=np.generic)

# Structured arrays know the types of their fields here alone; elsewhere they are ndarray. A test compares fields and types.
class _Column(np.ndarray[Any, np.dtype[_ScalarT]]):
    # numpy compares to Any, which says of the records that it is an index of nothing.
    def __eq__(self, other: object, /) -> NDArray[np.bool_]: ...  # type: ignore[override]
    def __ne__(self, other: object, /) -> NDArray[np.bool_]: ...  # type: ignore[override]

class _Records(np.ndarray[Any, np.dtype[np.void]]):
    def copy(self, order: Literal["K", "A", "C", "F"] | None = "C") -> Self: ...

class _Regions(_Records):
    @overload  # type: ignore[override]
    def __getitem__(self, key: Literal["track_id", "area"]) -> _Column[np.uint32]: ...
    @overload
    def __getitem__(self, key: Literal["centroid", "mean_lab"]) -> _Column[np.float32]: ...
    @overload
    def __getitem__(self, key: Literal["mean_rgb"]) -> _Column[np.uint8]: ...
    @overload
    def __getitem__(self, key: Literal["bounds"]) -> _Column[np.uint16]: ...
    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> np.void: ...
    @overload
    def __getitem__(self, key: _Rows) -> Self: ...

class _Motion(_Records):
    @overload  # type: ignore[override]
    def __getitem__(self, key: Literal["velocity"]) -> _Column[np.float32]: ...
    @overload
    def __getitem__(self, key: Literal["age"]) -> _Column[np.uint32]: ...
    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> np.void: ...
    @overload
    def __getitem__(self, key: _Rows) -> Self: ...

class _Neighbors(_Records):
    @overload  # type: ignore[override]
    def __getitem__(self, key: Literal["a", "b", "length"]) -> _Column[np.uint32]: ...
    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> np.void: ...
    @overload
    def __getitem__(self, key: _Rows) -> Self: ...

class _Merges(_Records):
    @overload  # type: ignore[override]
    def __getitem__(self, key: Literal["a", "b", "area"]) -> _Column[np.uint32]: ...
    @overload
    def __getitem__(self, key: Literal["height"]) -> _Column[np.float32]: ...
    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> np.void: ...
    @overload
    def __getitem__(self, key: _Rows) -> Self: ...

class _Events(_Records):
    @overload  # type: ignore[override]
    def __getitem__(self, key: Literal["kind", "track_id", "other", "area"]) -> _Column[np.uint32]: ...
    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> np.void: ...
    @overload
    def __getitem__(self, key: _Rows) -> Self: ...

__all__ = [
    "__version__",
    "N_SEGMENTS",
    "REGION",
    "MOTION",
    "NEIGHBOR",
    "MERGE",
    "Segmenter",
    "DeviceArray",
    "ImageSet",
    "ObjectTracker",
    "segment",
    "segment_batch",
    "cut",
    "contours",
    "smooth_labels",
    "svg",
    "defaults",
    "described",
    "ranges",
]

__version__: str

N_SEGMENTS: int
REGION: np.dtype[np.void]
MOTION: np.dtype[np.void]
NEIGHBOR: np.dtype[np.void]
MERGE: np.dtype[np.void]

def defaults(name: str) -> Parameters: ...
def described(name: str) -> list[dict[str, object]]: ...
def ranges() -> dict[str, tuple[float, float, str]]: ...
def segment_batch(
    images: Any,
    algorithm: str,
    values: Mapping[str, object],
    order: str,
    mask: object,
    prior: object,
    prior_cuts: bool,
    prior_price: float,
    start_label: int,
    stream: object,
    check: bool,
    data_range: object,
    bands: object,
    channel_axis: object,
    regions: bool,
    neighbors: bool,
    linear_light: bool,
) -> tuple[Any, dict[str, Any]] | None: ...
def contours(bordered: NDArray[np.int32]) -> dict[int, list[list[NDArray[np.int32]]]]: ...
def cut(labels: NDArray[np.uint16], steps: NDArray[np.uint8], regions: int) -> None: ...
def smooth_labels(labels: NDArray[np.uint16], smoothed: NDArray[np.uint16], smoothness: float, threads: int) -> None: ...

# Callers have the types: `_objects.py`.
@final
class ObjectTracker:
    def __new__(cls) -> ObjectTracker: ...
    def update(
        self,
        size: tuple[int, int],
        regions: NDArray[np.uint8],
        motion: NDArray[np.uint8],
        neighbors: NDArray[np.uint8],
        said: list[tuple[int | None, list[int] | None, list[int] | None, list[int], list[int]]],
    ) -> list[tuple[int, NDArray[np.uint32], int, list[int]]]: ...
    def end(self, id: int) -> bool: ...
    def reset(self) -> None: ...

def svg(
    labels: NDArray[np.uint32],
    colors: NDArray[np.uint8] | None,
    shading: tuple[NDArray[np.uint32], NDArray[np.uint8]] | None,
    names: list[tuple[int, str | None]],
    tolerance: float,
    line_width: float,
    line_color: list[int],
) -> str: ...

# Callers have the types: `_functions.pyi`.
def segment(
    algorithm: str,
    image: object,
    values: Mapping[str, object],
    order: str,
    threads: int,
    start_label: int,
    out: object,
    mask: object,
    stream: object = None,
    check: bool = False,
    data_range: object = None,
    bands: object = None,
    channel_axis: object = None,
    progress: object = None,
    prior: object = None,
    prior_cuts: bool = True,
    prior_price: float = 0.0,
) -> object: ...

# Callers have the types: `_images.pyi`.
@final
class ImageSet:
    def __new__(
        cls,
        algorithm: str,
        values: Mapping[str, object],
        order: str,
        threads: int,
        start_label: int,
        regions: bool,
        neighbors: bool,
        linear_light: bool,
        data_range: object,
        bands: object,
        channel_axis: object,
        is_masked: bool,
        has_prior: bool,
        prior_cuts: bool,
        prior_price: float,
        progress: object,
        all: int,
    ) -> Self: ...
    @property
    def threads(self) -> int: ...
    def segment(
        self, images: list[Any], masks: list[Any] | None, priors: list[Any] | None, is_batch: bool
    ) -> tuple[list[Any], Exception | None]: ...
    def check(self, image: object, is_batch: bool) -> None: ...
    def note(self) -> None: ...
    def end(self, count: int) -> None: ...
@final
class DeviceArray:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def device(self) -> str: ...
    def numpy(self) -> NDArray[Any]: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, object]: ...
    def __len__(self) -> int: ...

# The library of the results. Frames decide it, which no constructor has seen: it is numpy where an annotation names no other.
_ArrayT = TypeVar("_ArrayT", bound=NDArray[Any] | _OnDevice, default=NDArray[Any])
_RecordsT = TypeVar("_RecordsT", bound=_Records)

# A structured array of numpy, or columns of another library.
class _Table(Generic[_RecordsT]):
    @overload
    def __get__(self, instance: None, owner: type[object]) -> Self: ...
    @overload
    def __get__(self, instance: Segmenter[NDArray[Any]], owner: type[object]) -> _RecordsT: ...
    @overload
    def __get__(self, instance: Segmenter[_OnDeviceT], owner: type[object]) -> dict[str, _OnDeviceT]: ...
    def __set__(self, instance: object, value: Never) -> None: ...

class _Edges:
    @overload
    def __get__(self, instance: None, owner: type[object]) -> Self: ...
    @overload
    def __get__(self, instance: Segmenter[NDArray[Any]], owner: type[object]) -> NDArray[np.int64]: ...
    @overload
    def __get__(self, instance: Segmenter[_OnDeviceT], owner: type[object]) -> _OnDeviceT: ...
    def __set__(self, instance: object, value: Never) -> None: ...

@final
class Segmenter(Generic[_ArrayT]):
    def __new__(
        cls,
        algorithm: _Algorithm = "slic",
        *,
        device: str | _TorchDevice | None = None,
        order: _Order = "rgb",
        threads: int = 0,
        regions: bool = True,
        neighbors: bool = True,
        linear_light: bool = False,
        events: bool = False,
        data_range: tuple[float, float] | Literal["image", "stretch"] | None = None,
        bands: int | Sequence[int] | Literal["pca"] | None = None,
        channel_axis: int | None = None,
        **parameters: Unpack[Parameters],
    ) -> Self: ...
    def __class_getitem__(cls, arrays: object, /) -> GenericAlias: ...
    @overload
    def segment(
        self: Segmenter[NDArray[Any]],
        frame: _Image,
        out: None = None,
        mask: None = None,
        stream: None = None,
        *,
        start_label: Literal[0] = 0,
        check: bool = False,
        progress: bool | Callable[[int, int], object] = False,
        prior: _Prior | None = None,
        prior_cuts: bool = True,
        prior_price: float = 0.0,
    ) -> NDArray[np.uint16] | NDArray[np.uint32]: ...
    @overload
    def segment(
        self: Segmenter[NDArray[Any]],
        frame: _Image,
        out: _MapT,
        mask: None = None,
        stream: None = None,
        *,
        start_label: Literal[0] = 0,
        check: bool = False,
        progress: bool | Callable[[int, int], object] = False,
        prior: _Prior | None = None,
        prior_cuts: bool = True,
        prior_price: float = 0.0,
    ) -> _MapT: ...
    @overload
    def segment(
        self: Segmenter[NDArray[Any]],
        frame: _Image,
        out: NDArray[np.int32] | None = None,
        *,
        mask: _Mask,
        stream: None = None,
        start_label: int = 0,
        check: bool = False,
        progress: bool | Callable[[int, int], object] = False,
        prior: _Prior | None = None,
        prior_cuts: bool = True,
        prior_price: float = 0.0,
    ) -> NDArray[np.int32]: ...
    @overload
    def segment(
        self: Segmenter[NDArray[Any]],
        frame: _Image,
        out: NDArray[np.int32] | None,
        mask: _Mask,
        stream: None = None,
        *,
        start_label: int = 0,
        check: bool = False,
        progress: bool | Callable[[int, int], object] = False,
        prior: _Prior | None = None,
        prior_cuts: bool = True,
        prior_price: float = 0.0,
    ) -> NDArray[np.int32]: ...
    @overload
    def segment(
        self: Segmenter[NDArray[Any]],
        frame: _Image,
        out: NDArray[np.int32] | None = None,
        mask: None = None,
        stream: None = None,
        *,
        start_label: int,
        check: bool = False,
        progress: bool | Callable[[int, int], object] = False,
        prior: _Prior | None = None,
        prior_cuts: bool = True,
        prior_price: float = 0.0,
    ) -> NDArray[np.int32]: ...
    # In the host's memory; on a device where an annotation says so.
    @overload
    def segment(
        self: Segmenter[NDArray[Any]],
        frame: _TorchTensor | _ApiArray,
        out: _OutT,
        mask: _Mask | _OnDevice | None = None,
        stream: None = None,
        *,
        start_label: int = 0,
        check: bool = False,
        progress: bool | Callable[[int, int], object] = False,
        prior: _Prior | _OnDevice | None = None,
        prior_cuts: bool = True,
        prior_price: float = 0.0,
    ) -> _OutT: ...
    @overload
    def segment(
        self: Segmenter[NDArray[Any]],
        frame: _TensorT,
        out: None = None,
        mask: _Mask | _OnDevice | None = None,
        stream: None = None,
        *,
        start_label: int = 0,
        check: bool = False,
        progress: bool | Callable[[int, int], object] = False,
        prior: _Prior | _OnDevice | None = None,
        prior_cuts: bool = True,
        prior_price: float = 0.0,
    ) -> _TensorT: ...
    @overload
    def segment(
        self: Segmenter[NDArray[Any]],
        frame: _ApiT,
        out: None = None,
        mask: _Mask | _OnDevice | None = None,
        stream: None = None,
        *,
        start_label: int = 0,
        check: bool = False,
        progress: bool | Callable[[int, int], object] = False,
        prior: _Prior | _OnDevice | None = None,
        prior_cuts: bool = True,
        prior_price: float = 0.0,
    ) -> _ApiT: ...
    @overload
    def segment(
        self: Segmenter[NDArray[Any]],
        frame: _Convertible,
        out: None = None,
        mask: None = None,
        stream: None = None,
        *,
        start_label: Literal[0] = 0,
        check: bool = False,
        progress: bool | Callable[[int, int], object] = False,
        prior: _Prior | None = None,
        prior_cuts: bool = True,
        prior_price: float = 0.0,
    ) -> NDArray[np.uint16] | NDArray[np.uint32]: ...
    @overload
    def segment(
        self: Segmenter[NDArray[Any]],
        frame: _Convertible,
        out: _MapT,
        mask: None = None,
        stream: None = None,
        *,
        start_label: Literal[0] = 0,
        check: bool = False,
        progress: bool | Callable[[int, int], object] = False,
        prior: _Prior | None = None,
        prior_cuts: bool = True,
        prior_price: float = 0.0,
    ) -> _MapT: ...
    @overload
    def segment(
        self: Segmenter[NDArray[Any]],
        frame: _Convertible,
        out: NDArray[np.int32] | None = None,
        *,
        mask: _Mask,
        stream: None = None,
        start_label: int = 0,
        check: bool = False,
        progress: bool | Callable[[int, int], object] = False,
        prior: _Prior | None = None,
        prior_cuts: bool = True,
        prior_price: float = 0.0,
    ) -> NDArray[np.int32]: ...
    @overload
    def segment(
        self: Segmenter[NDArray[Any]],
        frame: _Convertible,
        out: NDArray[np.int32] | None,
        mask: _Mask,
        stream: None = None,
        *,
        start_label: int = 0,
        check: bool = False,
        progress: bool | Callable[[int, int], object] = False,
        prior: _Prior | None = None,
        prior_cuts: bool = True,
        prior_price: float = 0.0,
    ) -> NDArray[np.int32]: ...
    @overload
    def segment(
        self: Segmenter[NDArray[Any]],
        frame: _Convertible,
        out: NDArray[np.int32] | None = None,
        mask: None = None,
        stream: None = None,
        *,
        start_label: int,
        check: bool = False,
        progress: bool | Callable[[int, int], object] = False,
        prior: _Prior | None = None,
        prior_cuts: bool = True,
        prior_price: float = 0.0,
    ) -> NDArray[np.int32]: ...
    @overload
    def segment(
        self: Segmenter[_KeptT],
        frame: _KeptT,
        out: None = None,
        mask: _OnDevice | None = None,
        stream: _Stream | None = None,
        *,
        start_label: int = 0,
        check: bool = False,
        progress: bool | Callable[[int, int], object] = False,
        prior: _Prior | _OnDevice | None = None,
        prior_cuts: bool = True,
        prior_price: float = 0.0,
    ) -> _KeptT: ...
    @overload
    def segment(
        self: Segmenter[_KeptT],
        frame: _KeptT,
        out: _OnDeviceT,
        mask: _OnDevice | None = None,
        stream: _Stream | None = None,
        *,
        start_label: int = 0,
        check: bool = False,
        progress: bool | Callable[[int, int], object] = False,
        prior: _Prior | _OnDevice | None = None,
        prior_cuts: bool = True,
        prior_price: float = 0.0,
    ) -> _OnDeviceT: ...
    @overload
    def segment(
        self: Segmenter[DeviceArray],
        frame: _OnDevice,
        out: None = None,
        mask: _OnDevice | None = None,
        stream: _Stream | None = None,
        *,
        start_label: int = 0,
        check: bool = False,
        progress: bool | Callable[[int, int], object] = False,
        prior: _OnDevice | None = None,
        prior_cuts: bool = True,
        prior_price: float = 0.0,
    ) -> DeviceArray: ...
    @overload
    def segment(
        self: Segmenter[DeviceArray],
        frame: _OnDevice,
        out: _OnDeviceT,
        mask: _OnDevice | None = None,
        stream: _Stream | None = None,
        *,
        start_label: int = 0,
        check: bool = False,
        progress: bool | Callable[[int, int], object] = False,
        prior: _OnDevice | None = None,
        prior_cuts: bool = True,
        prior_price: float = 0.0,
    ) -> _OnDeviceT: ...
    @property
    def effective_parameters(self) -> dict[str, Any]: ...
    def reset(self) -> None: ...
    def set(self, **parameters: Unpack[Parameters]) -> None: ...
    @property
    def parameters(self) -> Parameters: ...
    @property
    def algorithm(self) -> _Algorithm: ...
    @property
    def device(self) -> str | None: ...
    @property
    def order(self) -> _Order: ...
    @property
    def threads(self) -> int: ...
    @property
    def next_id(self) -> int: ...
    @property
    def n_regions(self) -> int: ...
    regions: _Table[_Regions]
    motion: _Table[_Motion]
    neighbors: _Table[_Neighbors]
    merges: _Table[_Merges]
    edge_index: _Edges
    @property
    def events(self) -> _Events: ...
    @property
    def is_cut(self) -> bool: ...
    @property
    def births(self) -> NDArray[np.uint32]: ...
    @property
    def deaths(self) -> NDArray[np.uint32]: ...
