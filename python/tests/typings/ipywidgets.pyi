# SPDX-License-Identifier: MPL-2.0
# As much of ipywidgets as results need: it may be absent where checkers read the samples.

from collections.abc import Callable, Sequence

class Image:
    value: bytes
    def __init__(self, *, format: str) -> None: ...

class SelectionSlider:
    value: int
    def __init__(self, *, options: Sequence[int], value: int, description: str, continuous_update: bool) -> None: ...
    def observe(self, handler: Callable[[object], None], names: str) -> None: ...

class VBox:
    def __init__(self, children: Sequence[object]) -> None: ...
    children: tuple[object, ...]
