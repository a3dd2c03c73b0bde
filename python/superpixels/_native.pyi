# SPDX-License-Identifier: MPL-2.0
# Types of the native module.

from typing import Any, Optional, Union, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import Unpack

from ._functions import Parameters

_Image = Union[npt.NDArray[np.uint8], npt.NDArray[np.uint16], npt.NDArray[np.float32]]

__version__: str

N_SEGMENTS: int
MERGE: np.dtype[np.void]

def defaults(name: str) -> dict[str, Any]: ...
def described(name: str) -> list[dict[str, Any]]: ...
def ranges() -> dict[str, tuple[float, float, str]]: ...
def contours(bordered: npt.NDArray[np.int32]) -> dict[int, list[list[npt.NDArray[np.int32]]]]: ...
def cut(labels: npt.NDArray[np.uint16], steps: npt.NDArray[np.uint8], regions: int) -> None: ...
def segment(
    algorithm: str,
    image: Any,
    values: dict[str, Any],
    order: str,
    threads: int,
    start_label: int,
    out: Any,
    mask: Optional[npt.NDArray[Any]],
    stream: Any = None,
    check: bool = False,
) -> Any: ...

class DeviceArray:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def device(self) -> str: ...
    def numpy(self) -> npt.NDArray[Any]: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __dlpack__(
        self,
        *,
        stream: Optional[int] = None,
        max_version: Optional[tuple[int, int]] = None,
        dl_device: Optional[tuple[int, int]] = None,
        copy: Optional[bool] = None,
    ) -> Any: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __len__(self) -> int: ...

class Segmenter:
    def __new__(
        cls,
        algorithm: str = "slic",
        *,
        device: Any = None,
        order: str = "rgb",
        threads: int = 0,
        regions: bool = True,
        neighbors: bool = True,
        linear_light: bool = False,
        events: bool = False,
        **parameters: Unpack[Parameters],
    ) -> "Segmenter": ...
    @overload
    def segment(
        self,
        frame: _Image,
        out: Optional[npt.NDArray[np.uint16]] = None,
        mask: Optional[npt.NDArray[Any]] = None,
        stream: None = None,
        *,
        check: bool = False,
    ) -> npt.NDArray[np.uint16]: ...
    # Of a frame on a device: an array of its library, or a DeviceArray.
    @overload
    def segment(
        self, frame: Any, out: Any = None, mask: Any = None, stream: Any = None, *, check: bool = False
    ) -> Any: ...
    def reset(self) -> None: ...
    def set(
        self,
        **parameters: Unpack[Parameters],
    ) -> None: ...
    @property
    def parameters(self) -> dict[str, Any]: ...
    @property
    def algorithm(self) -> str: ...
    @property
    def device(self) -> Optional[str]: ...
    @property
    def order(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def next_id(self) -> int: ...
    @property
    def n_regions(self) -> int: ...
    @property
    def regions(self) -> Union[npt.NDArray[np.void], dict[str, Any]]: ...
    @property
    def motion(self) -> Union[npt.NDArray[np.void], dict[str, Any]]: ...
    @property
    def neighbors(self) -> Union[npt.NDArray[np.void], dict[str, Any]]: ...
    @property
    def merges(self) -> Union[npt.NDArray[np.void], dict[str, Any]]: ...
    @property
    def events(self) -> npt.NDArray[np.void]: ...
    @property
    def is_cut(self) -> bool: ...
    @property
    def births(self) -> npt.NDArray[np.uint32]: ...
    @property
    def deaths(self) -> npt.NDArray[np.uint32]: ...
    @property
    def edge_index(self) -> Any: ...
