# SPDX-License-Identifier: MPL-2.0
"""Pictures of label maps for notebooks, figures and files."""

from __future__ import annotations

import math as _math
import os as _os
from typing import TYPE_CHECKING, overload

import numpy as _np

from ._drawings import _code_values
from ._drawings import boundaries as _boundaries
from ._drawings import mean_color as _mean_color
from ._helpers import _label_map
from ._hierarchy import _NO_LABEL, _steps
from ._hierarchy import cut as _cut
from ._png import encode as _encode_png

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal, Protocol, TypeVar

    import ipywidgets  # type: ignore[import-untyped,import-not-found,unused-ignore]
    from numpy.typing import DTypeLike, NDArray

    from ._native import _Image, _Labels, _Order, _OtherArray

    class _Axes(Protocol):
        """As much of matplotlib's as is used: it may be absent."""

        def imshow(self, pixels: Any, /) -> object: ...
        def set_axis_off(self) -> None: ...

    _AxesT = TypeVar("_AxesT", bound=_Axes)

__all__ = ["Picture", "browse", "show"]


class Picture:
    """A drawn picture, as `show` gives it: notebooks display it, and what takes arrays takes its pixels.

    Attributes
    ----------
    pixels : ndarray of uint8, shape (H, W, 3)
        Red, green and blue.

    See Also
    --------
    show : Gives it.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> picture = sp.show(np.zeros((60, 80), np.uint8), np.zeros((60, 80), int))
    >>> picture, picture.pixels.shape
    (Picture(80x60), (60, 80, 3))
    """

    def __init__(self, pixels: NDArray[_np.uint8]) -> None:
        self.pixels = pixels

    def save(self, path: str | _os.PathLike[str]) -> None:
        """Writes the picture as a PNG file.

        Parameters
        ----------
        path : str or path
            The file to write. It ends in .png, in small or capital letters.

        Raises
        ------
        ValueError
            Another ending.
        OSError
            The file cannot be written.
        """
        if not _os.fspath(path).lower().endswith(".png"):
            raise ValueError(f"path must end in .png, got {_os.fspath(path)!r}")
        with open(path, "wb") as file:
            file.write(self._repr_png_())

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False and dtype is not None and _np.dtype(dtype) != self.pixels.dtype:
            raise ValueError("pixels of another type are a copy")
        return self.pixels.astype(dtype or self.pixels.dtype, copy=bool(copy))

    def _repr_png_(self) -> bytes:
        return _encode_png(self.pixels)

    def __repr__(self) -> str:
        height, width = self.pixels.shape[:2]
        return f"Picture({width}x{height})"


@overload
def show(
    image: _Image | _OtherArray,
    labels: _Labels,
    *,
    ax: None = None,
    color: Sequence[int] | None = (255, 255, 0),
    mean_color: bool = False,
    order: _Order = "rgb",
    data_range: tuple[float, float] | Literal["image"] | None = None,
) -> Picture: ...
@overload
def show(
    image: _Image | _OtherArray,
    labels: _Labels,
    *,
    ax: _AxesT,
    color: Sequence[int] | None = (255, 255, 0),
    mean_color: bool = False,
    order: _Order = "rgb",
    data_range: tuple[float, float] | Literal["image"] | None = None,
) -> _AxesT: ...
def show(
    image: _Image | _OtherArray,
    labels: _Labels,
    *,
    ax: _AxesT | None = None,
    color: Sequence[int] | None = (255, 255, 0),
    mean_color: bool = False,
    order: _Order = "rgb",
    data_range: tuple[float, float] | Literal["image"] | None = None,
) -> Picture | _AxesT:
    """A picture with its regions drawn, which a notebook displays.

    Parameters
    ----------
    image : ndarray of numbers
        The picture, of shape (H, W), (H, W, 1), (H, W, 3) or (H, W, 4), as `slic` takes it; or of shape (N, H, W, C) a batch.
    labels : ndarray of integers, shape (H, W), or (N, H, W) for a batch
        Label map with any values, or one for each picture.
    ax : matplotlib.axes.Axes, optional
        Where the picture is drawn, instead of making a `Picture`.
    color : sequence of three int, optional
        Of the lines between regions: red, green and blue, 0 to 255. None draws no lines.
    mean_color : bool
        Paint each region in its mean color.
    order : {"rgb", "bgr"}
        Order of the image's channels; OpenCV has "bgr".
    data_range : tuple of float, or "image", optional
        What values are black and white, as for `slic`: two numbers, beyond which values are cut off, or the least and the
        highest finite value of each image. Default: 0 and 255 for uint8, 0 and 65535 for uint16, and 0 and 1 for floats, which
        have to be in it; other types need one.

    Returns
    -------
    picture : Picture, or matplotlib.axes.Axes
        The drawn picture with a method ``save``, or `ax` where that is given. Lines are where `boundaries` has them. Those of
        a batch stand beside and below each other, row by row, in as many columns as rows or one more; free places are black.

    Raises
    ------
    TypeError, ValueError
        Arrays of other types or shapes, a color, an order or a range that is none, or without `data_range` floats that are not
        in [0, 1].

    See Also
    --------
    boundaries : The same lines in an array of the image's dtype.
    browse : A picture with a slider over the levels of a hierarchy.
    to_svg : A drawing of vectors.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> image = np.zeros((60, 80, 3), np.uint8)
    >>> sp.show(image, sp.slic(image, n_segments=12))
    Picture(80x60)
    """
    if ax is not None and not callable(getattr(ax, "imshow", None)):
        raise TypeError(f"ax must be axes of matplotlib, got {type(ax).__name__}")
    labels = _label_map(labels, batch=True)
    pixels = _drawn(_code_values(image, labels, order, data_range), labels, color, mean_color)
    if labels.ndim == 3:
        pixels = _beside(pixels)
    if ax is None:
        return Picture(pixels)
    ax.imshow(pixels)
    ax.set_axis_off()
    return ax


def _drawn(
    codes: NDArray[_np.uint8], labels: _Labels, color: Sequence[int] | None, mean_color: bool
) -> NDArray[_np.uint8]:
    """RGB pixels with regions drawn."""
    pixels = _np.repeat(codes[..., None], 3, axis=-1) if codes.ndim == labels.ndim else codes
    if mean_color:
        pixels = _mean_color(pixels, labels)
    return _np.array(pixels) if color is None else _boundaries(pixels, labels, color)


def _beside(pictures: NDArray[_np.uint8]) -> NDArray[_np.uint8]:
    """The pictures of a batch as one."""
    count, height, width, channels = pictures.shape
    columns = _math.isqrt(max(count - 1, 0)) + 1
    rows = max(-(-count // columns), 1)
    places = _np.zeros((rows * columns, height, width, channels), _np.uint8)
    places[:count] = pictures
    grid = places.reshape(rows, columns, height, width, channels).swapaxes(1, 2)
    return grid.reshape(rows * height, columns * width, channels)


def browse(
    image: _Image | _OtherArray,
    labels: NDArray[_np.uint16] | NDArray[_np.uint32] | NDArray[_np.int32],
    merges: NDArray[_np.void] | dict[str, NDArray[Any]],
    *,
    n_regions: int = 100,
    color: Sequence[int] | None = (255, 255, 0),
    mean_color: bool = False,
    order: _Order = "rgb",
    data_range: tuple[float, float] | Literal["image"] | None = None,
) -> ipywidgets.VBox:
    """A picture with a slider over the levels of a hierarchy, for notebooks.

    Parameters
    ----------
    image : ndarray of numbers
        The picture, as `show` takes it; no batch.
    labels : ndarray of uint16, uint32 or int32, shape (H, W)
        The finest level.
    merges : ndarray of shape (M,), or dict of ndarray
        All its steps, as `hierarchy` gives both.
    n_regions : int
        Number of regions of the level that is shown first, or as near to it as there is a level.
    color, mean_color, order, data_range
        As of `show`.

    Returns
    -------
    widget : ipywidgets.VBox
        The slider and the picture. The slider has up to about 60 numbers of regions, each larger than the one before by the
        same factor, as far as they differ.

    Raises
    ------
    ImportError
        There is no ipywidgets.
    TypeError, ValueError
        As `show` and `cut`.

    See Also
    --------
    show : A picture without a slider.
    cut : The label map of one level.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> image = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    >>> slider, picture = sp.browse(image, *sp.hierarchy(image, 50), n_regions=7).children
    >>> slider.value
    7
    """
    import ipywidgets

    labels = _label_map(labels)
    pixels = _code_values(image, labels, order, data_range)
    inside = labels[(labels >= 0) & (labels != _NO_LABEL)]
    most = int(inside.max()) + 1 if inside.size else 1
    least = max(most - len(_steps(merges)), 1)
    first = min(max(int(n_regions), least), most)
    numbers = sorted({first, *_np.geomspace(least, most, 60).round().astype(int).tolist()})
    slider = ipywidgets.SelectionSlider(options=numbers, value=first, description="regions", continuous_update=False)
    shown = ipywidgets.Image(format="png")
    cut: Any = _cut

    def draw(_: object = None) -> None:
        level = cut(labels, merges, slider.value)
        # Little compression: the slider waits for it.
        shown.value = _encode_png(_drawn(pixels, level, color, mean_color), level=1)

    slider.observe(draw, names="value")
    draw()
    return ipywidgets.VBox([slider, shown])
