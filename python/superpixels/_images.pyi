# SPDX-License-Identifier: MPL-2.0
# Types of the pictures of a set: labels are of the pictures' library, tables are numpy's.
# Overlaps are meant: the first overload that fits counts.
# mypy: disable-error-code="overload-overlap"

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Generic, Literal, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypeVar, Unpack

from ._functions import Parameters
from ._native import (
    _Algorithm,
    _ApiT,
    _Convertible,
    _Image,
    _Mask,
    _Merges,
    _Neighbors,
    _OnDevice,
    _Order,
    _Prior,
    _Regions,
    _TensorT,
    _TorchDevice,
)

__all__ = ["SegmentedImage", "segment_images"]

_LabelsT = TypeVar("_LabelsT")

class SegmentedImage(Generic[_LabelsT]):
    def __init__(
        self,
        index: int,
        image: Any,
        labels: _LabelsT,
        n_regions: int,
        regions: _Regions | None,
        neighbors: _Neighbors | None,
        merges: _Merges | None,
    ) -> None: ...
    index: int
    image: Any
    labels: _LabelsT
    n_regions: int
    @property
    def regions(self) -> _Regions: ...
    @property
    def neighbors(self) -> _Neighbors: ...
    @property
    def merges(self) -> _Merges: ...
    @property
    def edge_index(self) -> NDArray[np.int64]: ...

@overload
def segment_images(
    images: _Image | Iterable[_Image],
    algorithm: _Algorithm = "slic",
    *,
    mask: None = None,
    prior: _Prior | Iterable[_Prior] | None = None,
    prior_cuts: bool = True,
    prior_price: float = 0.0,
    start_label: Literal[0] = 0,
    order: _Order = "rgb",
    data_range: tuple[float, float] | Literal["image", "stretch"] | None = None,
    bands: int | Sequence[int] | Literal["pca"] | None = None,
    channel_axis: int | None = None,
    regions: bool = True,
    neighbors: bool = True,
    linear_light: bool = False,
    device: str | _TorchDevice | None = None,
    threads: int = 0,
    progress: bool | Callable[[int, int], object] = False,
    **parameters: Unpack[Parameters],
) -> Generator[SegmentedImage[NDArray[np.uint16]], None, None]: ...
@overload
def segment_images(
    images: _Image | Iterable[_Image],
    algorithm: _Algorithm = "slic",
    *,
    mask: _Mask | Iterable[_Mask],
    prior: _Prior | Iterable[_Prior] | None = None,
    prior_cuts: bool = True,
    prior_price: float = 0.0,
    start_label: int = 0,
    order: _Order = "rgb",
    data_range: tuple[float, float] | Literal["image", "stretch"] | None = None,
    bands: int | Sequence[int] | Literal["pca"] | None = None,
    channel_axis: int | None = None,
    regions: bool = True,
    neighbors: bool = True,
    linear_light: bool = False,
    device: str | _TorchDevice | None = None,
    threads: int = 0,
    progress: bool | Callable[[int, int], object] = False,
    **parameters: Unpack[Parameters],
) -> Generator[SegmentedImage[NDArray[np.int32]], None, None]: ...
@overload
def segment_images(
    images: _Image | Iterable[_Image],
    algorithm: _Algorithm = "slic",
    *,
    mask: None = None,
    prior: _Prior | Iterable[_Prior] | None = None,
    prior_cuts: bool = True,
    prior_price: float = 0.0,
    start_label: int,
    order: _Order = "rgb",
    data_range: tuple[float, float] | Literal["image", "stretch"] | None = None,
    bands: int | Sequence[int] | Literal["pca"] | None = None,
    channel_axis: int | None = None,
    regions: bool = True,
    neighbors: bool = True,
    linear_light: bool = False,
    device: str | _TorchDevice | None = None,
    threads: int = 0,
    progress: bool | Callable[[int, int], object] = False,
    **parameters: Unpack[Parameters],
) -> Generator[SegmentedImage[NDArray[np.int32]], None, None]: ...
@overload
def segment_images(
    images: _TensorT | Iterable[_TensorT],
    algorithm: _Algorithm = "slic",
    *,
    mask: _Mask | _OnDevice | Iterable[_Mask | _OnDevice] | None = None,
    prior: _Prior | _OnDevice | Iterable[_Prior | _OnDevice] | None = None,
    prior_cuts: bool = True,
    prior_price: float = 0.0,
    start_label: int = 0,
    order: _Order = "rgb",
    data_range: tuple[float, float] | Literal["image", "stretch"] | None = None,
    bands: int | Sequence[int] | Literal["pca"] | None = None,
    channel_axis: int | None = None,
    regions: bool = True,
    neighbors: bool = True,
    linear_light: bool = False,
    device: str | _TorchDevice | None = None,
    threads: int = 0,
    progress: bool | Callable[[int, int], object] = False,
    **parameters: Unpack[Parameters],
) -> Generator[SegmentedImage[_TensorT], None, None]: ...
@overload
def segment_images(
    images: _ApiT | Iterable[_ApiT],
    algorithm: _Algorithm = "slic",
    *,
    mask: _Mask | _OnDevice | Iterable[_Mask | _OnDevice] | None = None,
    prior: _Prior | _OnDevice | Iterable[_Prior | _OnDevice] | None = None,
    prior_cuts: bool = True,
    prior_price: float = 0.0,
    start_label: int = 0,
    order: _Order = "rgb",
    data_range: tuple[float, float] | Literal["image", "stretch"] | None = None,
    bands: int | Sequence[int] | Literal["pca"] | None = None,
    channel_axis: int | None = None,
    regions: bool = True,
    neighbors: bool = True,
    linear_light: bool = False,
    device: str | _TorchDevice | None = None,
    threads: int = 0,
    progress: bool | Callable[[int, int], object] = False,
    **parameters: Unpack[Parameters],
) -> Generator[SegmentedImage[_ApiT], None, None]: ...
@overload
def segment_images(
    images: _Convertible | Iterable[_Convertible],
    algorithm: _Algorithm = "slic",
    *,
    mask: None = None,
    prior: _Prior | Iterable[_Prior] | None = None,
    prior_cuts: bool = True,
    prior_price: float = 0.0,
    start_label: Literal[0] = 0,
    order: _Order = "rgb",
    data_range: tuple[float, float] | Literal["image", "stretch"] | None = None,
    bands: int | Sequence[int] | Literal["pca"] | None = None,
    channel_axis: int | None = None,
    regions: bool = True,
    neighbors: bool = True,
    linear_light: bool = False,
    device: str | _TorchDevice | None = None,
    threads: int = 0,
    progress: bool | Callable[[int, int], object] = False,
    **parameters: Unpack[Parameters],
) -> Generator[SegmentedImage[NDArray[np.uint16]], None, None]: ...
@overload
def segment_images(
    images: _Convertible | Iterable[_Convertible],
    algorithm: _Algorithm = "slic",
    *,
    mask: _Mask | Iterable[_Mask],
    prior: _Prior | Iterable[_Prior] | None = None,
    prior_cuts: bool = True,
    prior_price: float = 0.0,
    start_label: int = 0,
    order: _Order = "rgb",
    data_range: tuple[float, float] | Literal["image", "stretch"] | None = None,
    bands: int | Sequence[int] | Literal["pca"] | None = None,
    channel_axis: int | None = None,
    regions: bool = True,
    neighbors: bool = True,
    linear_light: bool = False,
    device: str | _TorchDevice | None = None,
    threads: int = 0,
    progress: bool | Callable[[int, int], object] = False,
    **parameters: Unpack[Parameters],
) -> Generator[SegmentedImage[NDArray[np.int32]], None, None]: ...
@overload
def segment_images(
    images: _Convertible | Iterable[_Convertible],
    algorithm: _Algorithm = "slic",
    *,
    mask: None = None,
    prior: _Prior | Iterable[_Prior] | None = None,
    prior_cuts: bool = True,
    prior_price: float = 0.0,
    start_label: int,
    order: _Order = "rgb",
    data_range: tuple[float, float] | Literal["image", "stretch"] | None = None,
    bands: int | Sequence[int] | Literal["pca"] | None = None,
    channel_axis: int | None = None,
    regions: bool = True,
    neighbors: bool = True,
    linear_light: bool = False,
    device: str | _TorchDevice | None = None,
    threads: int = 0,
    progress: bool | Callable[[int, int], object] = False,
    **parameters: Unpack[Parameters],
) -> Generator[SegmentedImage[NDArray[np.int32]], None, None]: ...
