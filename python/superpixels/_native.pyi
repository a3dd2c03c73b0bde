# SPDX-License-Identifier: MPL-2.0
# Types of the native module.

from collections.abc import Sequence
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

_Image = Union[npt.NDArray[np.uint8], npt.NDArray[np.uint16], npt.NDArray[np.float32]]

__version__: str

def defaults(name: str) -> dict[str, Any]: ...
def ranges() -> dict[str, tuple[float, float, str]]: ...
def segment(
    algorithm: str,
    image: Union[_Image, Sequence[_Image]],
    values: dict[str, Any],
    order: str,
    threads: int,
    start_label: int,
    out: Optional[npt.NDArray[Any]],
    mask: Optional[npt.NDArray[Any]],
) -> Union[npt.NDArray[Any], list[npt.NDArray[Any]]]: ...

class Segmenter:
    def __new__(
        cls,
        algorithm: str = "slic",
        *,
        order: str = "rgb",
        threads: int = 0,
        regions: bool = True,
        neighbors: bool = True,
        linear_light: bool = False,
        n_segments: Optional[int] = None,
        superpixel_size: Optional[int] = None,
        compactness: float = ...,
        iterations: int = ...,
        color_space: str = ...,
        adaptive: bool = ...,
        ratio: float = ...,
        sigma: float = ...,
        tau: float = ...,
        color_scale: float = ...,
        connectivity: bool = ...,
        min_region: float = ...,
        merge: float = ...,
        merge_rule: str = ...,
        merge_max_distance: float = ...,
        merge_passes: int = ...,
        temporal: bool = ...,
        temporal_inertia: float = ...,
    ) -> "Segmenter": ...
    def segment(
        self,
        frame: _Image,
        out: Optional[npt.NDArray[np.uint16]] = None,
        mask: Optional[npt.NDArray[Any]] = None,
    ) -> npt.NDArray[np.uint16]: ...
    def reset(self) -> None: ...
    def set(
        self,
        *,
        n_segments: Optional[int] = ...,
        superpixel_size: Optional[int] = ...,
        compactness: float = ...,
        iterations: int = ...,
        color_space: str = ...,
        adaptive: bool = ...,
        ratio: float = ...,
        sigma: float = ...,
        tau: float = ...,
        color_scale: float = ...,
        connectivity: bool = ...,
        min_region: float = ...,
        merge: float = ...,
        merge_rule: str = ...,
        merge_max_distance: float = ...,
        merge_passes: int = ...,
        temporal: bool = ...,
        temporal_inertia: float = ...,
    ) -> None: ...
    @property
    def parameters(self) -> dict[str, Any]: ...
    @property
    def algorithm(self) -> str: ...
    @property
    def order(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def next_id(self) -> int: ...
    @property
    def n_regions(self) -> int: ...
    @property
    def regions(self) -> npt.NDArray[np.void]: ...
    @property
    def motion(self) -> npt.NDArray[np.void]: ...
    @property
    def neighbors(self) -> npt.NDArray[np.void]: ...
    @property
    def edge_index(self) -> npt.NDArray[np.int64]: ...
