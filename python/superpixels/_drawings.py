# SPDX-License-Identifier: MPL-2.0
"""Pictures on which regions are drawn, as arrays of the picture's own type."""

from __future__ import annotations

import math as _math
from typing import TYPE_CHECKING, overload

import numpy as _np

from ._helpers import _label_map, _left_out, _whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Literal

    from numpy.typing import NDArray

    from ._native import _Image, _Labels, _OtherArray, _RealT

__all__ = ["boundaries", "mean_color"]

# Color images of the functions that segment have as many channels, and with alpha one more.
_COLORS = 3


@overload
def boundaries(
    image: NDArray[_RealT],
    labels: _Labels,
    color: Sequence[int] = (255, 255, 0),
    *,
    data_range: tuple[float, float] | Literal["image"] | None = None,
) -> NDArray[_RealT]: ...
@overload
def boundaries(
    image: _OtherArray,
    labels: _Labels,
    color: Sequence[int] = (255, 255, 0),
    *,
    data_range: tuple[float, float] | Literal["image"] | None = None,
) -> _Image: ...
def boundaries(
    image: object,
    labels: _Labels,
    color: Sequence[int] = (255, 255, 0),
    *,
    data_range: tuple[float, float] | Literal["image"] | None = None,
) -> NDArray[Any]:
    """Draws the lines between regions.

    Parameters
    ----------
    image : ndarray of numbers, shape (H, W), (H, W, C), or (N, H, W, C) for a batch
        The picture, or a batch of them; it stays as it is.
    labels : ndarray of integers, shape (H, W), or (N, H, W) for a batch
        Label map, or one for each picture.
    color : sequence of int
        Code values of 8 bits, 0 to 255, as many as the image has channels. A fourth channel stays if there are three; for gray
        images the first one counts.
    data_range : tuple of float, or "image", optional
        What values of the image code values 0 and 255 become, as for `slic`: two numbers, or the least and the highest finite
        value of each image. Default: 0 and 255 for uint8, 0 and 65535 for uint16, 0 and 1 for floats, of which those of another
        range need one for lines that show; other types need one.

    Returns
    -------
    drawn : ndarray
        A copy of the image's dtype with lines: a pixel is on a line if its right or lower neighbor has another label.

    Raises
    ------
    TypeError, ValueError
        Arrays of other types or shapes; a color of another length or out of range; a `data_range` that is missing or none.

    See Also
    --------
    show : A picture with lines that a notebook displays.
    mean_color : Regions in their mean colors.

    Notes
    -----
    Code value c becomes low + c (high - low) / 255, for integers rounded half up: 257 c for uint16, and c / 255 for floats.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> image = np.zeros((1, 3), np.uint16)
    >>> sp.boundaries(image, np.array([[4, 4, 9]]), (255,)).tolist()
    [[0, 65535, 0]]
    """
    labels = _label_map(labels, batch=True)
    drawn = _np.array(_image_of(image, labels))
    values = _np.asarray(color)
    if values.ndim != 1 or values.dtype.kind not in "iu" or values.size == 0 or values.min() < 0 or values.max() > 255:
        raise ValueError(f"color must be integers from 0 to 255, got {color!r}")
    channels = 1 if drawn.ndim == 2 else drawn.shape[-1]
    if channels == 1:
        values = values[:1]
    if len(values) != channels and (len(values), channels) != (_COLORS, _COLORS + 1):
        raise ValueError(f"color must have {channels} values for this image, got {color!r}")
    for pixels, of_pixels in _each(drawn, labels):
        low, high = _range_of(pixels, data_range)
        line = _np.zeros(of_pixels.shape, bool)
        line[:, :-1] = of_pixels[:, 1:] != of_pixels[:, :-1]
        line[:-1] |= of_pixels[1:] != of_pixels[:-1]
        planes = pixels.reshape(*of_pixels.shape, channels)
        planes[line, : len(values)] = [_value_of(code, low, high, drawn.dtype) for code in values.tolist()]
    return drawn


@overload
def mean_color(image: NDArray[_RealT], labels: _Labels, *, outside: int | None = -1) -> NDArray[_RealT]: ...
@overload
def mean_color(image: _OtherArray, labels: _Labels, *, outside: int | None = -1) -> _Image: ...
def mean_color(image: object, labels: _Labels, *, outside: int | None = -1) -> NDArray[Any]:
    """Paints every region in its mean color.

    Parameters
    ----------
    image : ndarray of numbers, shape (H, W), (H, W, C), or (N, H, W, C) for a batch
        The picture, or a batch of them; it stays as it is.
    labels : ndarray of integers, shape (H, W), or (N, H, W) for a batch
        Label map with any values, or one for each picture.
    outside : int or None
        A label whose pixels stay: -1 is what is outside of a mask. None for none.

    Returns
    -------
    drawn : ndarray
        Of the image's shape and dtype: the mean of each channel, for integers rounded half up. Of four channels the last one,
        alpha, stays.

    Raises
    ------
    TypeError, ValueError
        Arrays of other types or shapes.

    See Also
    --------
    show : A picture of mean colors that a notebook displays.
    boundaries : Lines between regions.

    Notes
    -----
    Sums of integers are exact. Floats are added up as doubles, in raster order, and divided; a region with a value that is not
    finite has a mean that is none.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> sp.mean_color(np.array([[0, 1, 1000]], np.uint16), np.array([[4, 4, 9]])).tolist()
    [[1, 1, 1000]]
    """
    labels = _label_map(labels, batch=True)
    drawn = _np.array(_image_of(image, labels), order="C")
    left_out = _left_out(labels, outside)
    for pixels, of_pixels in _each(drawn, labels):
        flat = _dense(of_pixels)
        inside = slice(None) if left_out is None else of_pixels.ravel() != left_out
        # Labels that no pixel has would divide by zero; nobody looks at their means.
        counts = _np.maximum(_np.bincount(flat), 1)
        planes = pixels.reshape(of_pixels.size, -1)
        channels = planes.shape[1]
        for channel in range(_COLORS if channels == _COLORS + 1 else channels):
            planes[inside, channel] = _means(planes[:, channel], flat, counts)[flat[inside]]
    return drawn


def _each(images: NDArray[Any], labels: NDArray[Any]) -> Iterable[tuple[NDArray[Any], NDArray[Any]]]:
    """The pictures of a batch, or the one that there is, with their labels."""
    return zip(images, labels) if labels.ndim == 3 else [(images, labels)]


def _image_of(image: object, labels: NDArray[Any]) -> NDArray[Any]:
    """A picture of numbers, or a batch, of the size of the labels."""
    found = _whole("image", image)
    if found.dtype.kind not in "iuf":
        advice = "; for black and white: 255 * image.astype(np.uint8)" if found.dtype.kind == "b" else ""
        raise TypeError(f"image must be of integers or floats, got {found.dtype}{advice}")
    if labels.ndim == 3:
        if found.ndim != 4:
            raise ValueError(f"with labels of shape (N, H, W) image must be of shape (N, H, W, C), got {found.shape}")
    elif found.ndim not in (2, 3):
        raise ValueError(f"with labels of shape (H, W) image must be of shape (H, W) or (H, W, C), got {found.shape}")
    if found.shape[: labels.ndim] != labels.shape:
        raise ValueError(f"image is of size {found.shape[: labels.ndim]}, labels are of {labels.shape}")
    return found


def _range_of(image: NDArray[Any], data_range: object) -> tuple[float, float]:
    """The values of one picture that are black and white."""
    if data_range is None:
        if image.dtype.kind == "f":
            return 0.0, 1.0
        if image.dtype.kind == "u" and image.dtype.itemsize <= 2:
            return 0.0, float(_np.iinfo(image.dtype).max)
        raise TypeError(
            f"an image of {image.dtype} needs data_range=(low, high), its values of black and white, or data_range='image'"
        )
    if isinstance(data_range, str):
        if data_range != "image":
            raise ValueError(f"data_range must be (low, high) or 'image', got {data_range!r}")
        finite = image[_np.isfinite(image)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
        # As for the functions that segment: one value alone is black.
        return low, high if high > low else low + 1
    pair = _np.asarray(data_range)
    if pair.shape != (2,) or pair.dtype.kind not in "iuf":
        raise TypeError("data_range must be None, two numbers (low, high) or 'image'")
    low, high = pair.astype(float).tolist()
    if not low < high or not _math.isfinite(high - low):
        raise ValueError(f"data_range must be two finite numbers, the lower first, got ({low}, {high})")
    return low, high


def _value_of(code: int, low: float, high: float, dtype: _np.dtype[Any]) -> float:
    """What a code value of 8 bits is in a picture."""
    # Fractions are exact: doubles round, and the difference of the largest and the least of them is infinite. Their module is slow
    # to load, and only this function needs it.
    from fractions import Fraction

    value = Fraction(low) + Fraction(code, 255) * (Fraction(high) - Fraction(low))
    if dtype.kind == "f":
        return float(value)
    bounds = _np.iinfo(dtype)
    return min(max(_math.floor(value + Fraction(1, 2)), int(bounds.min)), int(bounds.max))


def _code_values(image: object, labels: NDArray[Any], order: str = "rgb", data_range: object = None) -> NDArray[_np.uint8]:
    """A picture or a batch, as the functions that segment take it, as gray or RGB of 8 bits."""
    if order not in ("rgb", "bgr"):
        raise ValueError(f"order must be 'rgb' or 'bgr', got {order!r}")
    pixels = _image_of(image, labels)
    if pixels.ndim > 2 and pixels.shape[-1] not in (1, _COLORS, _COLORS + 1):
        raise ValueError(f"image must have 1, 3 or 4 channels, or be of shape (H, W), got {pixels.shape}")
    if pixels.ndim > 2:
        pixels = pixels[..., 0] if pixels.shape[-1] == 1 else pixels[..., :_COLORS]
    is_color = pixels.ndim > labels.ndim
    if is_color and order == "bgr":
        pixels = pixels[..., ::-1]
    if labels.ndim == 2:
        return _codes_of(pixels, data_range)
    codes = _np.empty(pixels.shape, _np.uint8)
    for i, one in enumerate(pixels):
        codes[i] = _codes_of(one, data_range)
    return codes


def _codes_of(image: NDArray[Any], data_range: object) -> NDArray[_np.uint8]:
    """Code values of 8 bits, rounded half up."""
    if data_range is None and image.dtype == _np.uint8:
        return image
    low, high = _range_of(image, data_range)
    if data_range is None and image.dtype.kind == "u":
        return ((image.astype(_np.uint32) + 128) // 257).astype(_np.uint8)
    if data_range is None and not ((image >= 0) & (image <= 1)).all():
        raise ValueError("float images must be in [0, 1], or data_range must say what values are black and white")
    # No number is black.
    values = _np.nan_to_num(image.astype(_np.float64), nan=low, posinf=high, neginf=low).clip(low, high)
    if high / 1024 - low / 1024 > 2.0**1000:
        # Doubles have no number for 255 times the difference.
        values, low, high = values / 1024, low / 1024, high / 1024
    return (255 * (values - low) / (high - low) + 0.5).astype(_np.uint8)


def _means(values: NDArray[Any], flat: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
    """The mean of each label's values."""
    if values.dtype.kind == "f":
        means: NDArray[Any] = _np.bincount(flat, weights=values.astype(_np.float64)) / counts
        return means
    size = values.dtype.itemsize
    # From the least value of the type on, so that no part is negative.
    least = int(_np.iinfo(values.dtype).min)
    above = values.astype(f"i{size}").view(f"u{size}") ^ _np.array(-least, f"u{size}")
    # Doubles hold sums of parts of 16 bits exactly, and so do 64 bits the whole sums of types of up to 32.
    kind = _np.int64 if size <= 4 else object
    sums = _np.zeros(len(counts), kind)
    for shift in range(0, 8 * size, 16):
        part = above >> _np.array(shift, above.dtype) & _np.array(min(0xFFFF, 2 ** (8 * size) - 1), above.dtype)
        sums += _np.bincount(flat, weights=part.astype(_np.float64)).astype(_np.int64).astype(kind) << shift
    counts = counts.astype(kind)
    rounded: NDArray[Any] = (2 * sums + counts) // (2 * counts) + least
    return rounded.astype(values.dtype)


def _dense(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels in raster order as small numbers from 0."""
    if labels.dtype == _np.uint16:
        return labels.ravel()
    numbers: NDArray[Any] = _np.unique(labels, return_inverse=True)[1].ravel()
    return numbers
