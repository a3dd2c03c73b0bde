# SPDX-License-Identifier: MPL-2.0
# Written by generate.py from the parameters of the library. Change them there.
"""Functions that segment pictures, one for each algorithm."""

from __future__ import annotations

from collections.abc import Callable as _Callable
from collections.abc import Sequence
from typing import Literal, TypedDict

import numpy as _np

from . import _native


def _with_others(algorithm: str, values: dict[str, object], other: dict[str, object]) -> dict[str, object]:
    """Values with names that are none of a function's: the native part takes or answers words of other packages."""
    for name in other:
        if name in _native.defaults(algorithm):
            raise TypeError(f"{algorithm} has no parameter {name}; Segmenter takes it")
    return {**values, **other}


class _Parameters(TypedDict, total=False):
    """Parameters of `hierarchy` beside its own."""

    superpixel_size: int | None
    iterations: int
    compactness: float
    color_space: Literal["lab", "lab-gslicr", "xyz-gslicr", "rgb"]
    adaptive: bool
    connectivity: bool
    min_region: float
    temporal: bool
    temporal_inertia: float
    stretch_gray16: bool
    merge: float
    merge_rule: Literal["mutual", "either"]
    merge_max_distance: float
    merge_passes: int
    n_regions: int
    regions_compactness: float
    refine: int
    smoothness: float
    ratio: float
    sigma: float
    tau: float
    color_scale: float


class Parameters(_Parameters, total=False):
    """Parameters of `Segmenter` and its `set` by name; an algorithm refuses those of others.

    See Also
    --------
    Segmenter : Takes them, and says what they are.

    Examples
    --------
    >>> import superpixels as sp
    >>> settings: sp.Parameters = {"n_segments": 300, "compactness": 20.0}
    >>> sp.Segmenter(**settings).parameters["compactness"]
    20.0
    """

    n_segments: int | None
    levels: bool


def slic(
    image: _np.ndarray | list[_np.ndarray],
    n_segments: int | None = None,
    compactness: float = 10.0,
    *,
    superpixel_size: int | None = None,
    iterations: int = 5,
    color_space: Literal["lab", "lab-gslicr", "xyz-gslicr", "rgb"] = "lab",
    adaptive: bool = False,
    connectivity: bool = True,
    min_region: float = 0.25,
    stretch_gray16: bool = False,
    merge: float = 0.0,
    merge_rule: Literal["mutual", "either"] = "mutual",
    merge_max_distance: float = 0.0,
    merge_passes: int = 1,
    n_regions: int = 0,
    regions_compactness: float = 4.0,
    refine: int = 0,
    smoothness: float = 5.0,
    order: Literal["rgb", "bgr"] = "rgb",
    data_range: tuple[float, float] | Literal["image", "stretch"] | None = None,
    bands: int | Sequence[int] | Literal["pca"] | None = None,
    channel_axis: int | None = None,
    threads: int = 0,
    start_label: int = 0,
    out: _np.ndarray | None = None,
    mask: _np.ndarray | None = None,
    prior: _np.ndarray | None = None,
    prior_cuts: bool = True,
    prior_price: float = 0.0,
    progress: bool | _Callable[[int, int], object] = False,
    stream: object = None,
    check: bool = False,
    **other: object,
) -> _np.ndarray | list[_np.ndarray]:
    """Superpixels by simple linear iterative clustering (SLIC).

    Parameters
    ----------
    image : ndarray of numbers, or list of such
        The picture, of shape (H, W), (H, W, 1), (H, W, 3) or (H, W, 4), in any layout: gray, or color of sRGB; `data_range`
        says what values are black and white. An array of shape (N, H, W, C) is a batch, and the arrays of a list may differ in
        size and dtype. Arrays of other libraries in the host's memory, with `__array__` or `__dlpack__`, are taken as well.
    n_segments : int, optional
        Wanted number per frame, from which the grid step follows; approximate (0 = use `superpixel_size`). Range: 0 or more.
        Default: 100, or as `superpixel_size` says. In pictures of 24 px a side or more there are at most a tenth more, since
        the most alike are merged, and in nearly all photographs at most a tenth fewer, with `snic` a fifth; not so with
        `merge`, with `temporal`, or without `connectivity`.
    compactness : float
        Weight of position against color, in Lab units; higher = more regular superpixels. Range: 0.1 to 1000.
    superpixel_size : int, optional
        Grid step in px, the distance between seeds; higher = fewer and larger superpixels. Range: 4 to 1024. Instead of
        `n_segments`.
    iterations : int
        Assign and update rounds of an independent frame; more = better fit, slower. Warm-started frames (`temporal=True`), and
        those after a cut, take two. Range: 1 to 100.
    color_space : {"lab", "lab-gslicr", "xyz-gslicr", "rgb"}
        Color space of the differences (LSC: always Lab). "lab": CIE L, a, b (D65) of sRGB. "lab-gslicr": L, a, b without
        undoing the sRGB curve, as gSLICr. "xyz-gslicr": X, Y, Z without undoing the sRGB curve, as gSLICr. "rgb": R', G', B'
        code values.
    adaptive : bool
        Adapt the compactness of each superpixel to its colors (SLICO).
    connectivity : bool
        Make every label one 4-connected region of at least `min_region`.
    min_region : float
        Smallest region as a fraction of the squared grid step (quick shift: of tau squared); smaller components join a neighbor
        of near color, preferring other small regions; in temporal mode one that shrinks is kept down to 9/16 of it. Range: 0 to
        4.
    stretch_gray16 : bool
        GRAY16: compare pixels by the range of codes that the frames use, as of thermal cameras, and not by all 65,536; pixels
        of the frame stay.
    merge : float
        Merge touching regions where a neighbor is at most this many times as far in color as the nearest one (0 = off, usual
        1.5 to 2.5); higher = fewer regions. Range: 0 to 100.
    merge_rule : {"mutual", "either"}
        When two regions merge. "mutual": two regions merge if each is near enough for the other. "either": two regions merge if
        one is near enough for the other.
    merge_max_distance : float
        Never merge across a larger difference of mean colors, in Delta E (`color_space="rgb"`: code values; 0 = no limit).
        Range: 0 to 400.
    merge_passes : int
        Merging passes, each from the means that the last one left; more = fewer regions. Range: 1 to 8.
    n_regions : int
        Exactly so many regions: superpixels are merged, the most alike first (0 = off); as many as there are, where fewer.
        Range: 0 to 65535. To as few as can be where the pieces of a mask do not touch. By a grid there are at least three
        superpixels for each, and if `n_segments` is not above 100 about 2000. Not with `merge`.
    regions_compactness : float
        With `n_regions`: color difference, in Delta E, that weighs as much as 1/16 of the picture's side; higher = more
        compact. Range: 0 to 100.
    refine : int
        Sweeps in which pixels at boundaries move to the neighboring region that fits them best, without tearing one (0 = off,
        usual 1 or 2). Range: 0 to 8.
    smoothness : float
        With `refine`: a pixel's side of boundary weighs as much as this color difference, in Delta E (`color_space="rgb"`: code
        values); higher = smoother outlines. Range: 0 to 100.
    order : {"rgb", "bgr"}
        Order of the channels; OpenCV has "bgr".
    data_range : tuple of float, {"image", "stretch"}, optional
        What values are black and white: two numbers, beyond which values are cut off; "image": the least and the highest finite
        value of each image, inside of its mask; "stretch": what `stretch_gray16` finds. Default: 0 and 255 for uint8, 0 and
        65535 for uint16, with a warning where that is probably wrong, and 0 and 1 for floats, which have to be in it; other
        types need one. On a device not "image".
    bands : int, sequence of three int, or "pca", optional
        Which bands of images of shape (H, W, B) count, from 0: one for gray, three for red, green and blue in the order of
        `order`. They are copied. Without it images have one or three, and a fourth is alpha, which is left out. On a device
        they are equally far apart, and no copy is made. "pca": all of 2 to 256 bands, by the principal components c1, c2 and c3
        of each image inside of its mask: pixels are compared as colors of L = 50 + 12 c1 / s, a = 12 c2 / s, b = 12 c3 / s,
        with s the standard deviation of c1. The number of largest magnitude in each component, the first of such, is positive.
        Values are what they are, and two numbers of `data_range` cut them off before; `order` has no part in it. Not on a
        device.
    channel_axis : int, optional
        The axis of channels or bands. Default: the last one.
    threads : int
        Threads, of which at most one a core is made; 0 is one for each core. The result is the same.
    start_label : int
        The lowest label. With another than 0 the result is int32.
    out : ndarray of shape (H, W), or (N, H, W) for a batch, optional
        Where labels are written, of the type that they have, or of uint32 instead of uint16. Rows may be at any distance. Not
        for a list.
    mask : ndarray of bool or uint8, shape (H, W), or (N, H, W) for a batch, optional
        Segment only pixels where it is not 0: the others belong to no superpixel, and add to none. `n_segments` is still of the
        whole picture. It is where the image is. Not for a list.
    prior : ndarray of integers, shape (h, w), or (N, h, w) for a batch, optional
        A label map from elsewhere, as of a network, of any size: column x of W has sample floor((2x + 1) w / 2W), rows
        likewise. No superpixel has pixels of two of its numbers, and pieces below `min_region` join none of another;
        `n_regions` below the number of its connected areas merges areas last. Only whether numbers are equal counts; they are
        of 32 bits with a sign. Past 65535 labels the last areas have 65535. Needs `connectivity`. It is where the image is, and
        on a device the lowest 32 bits of longer numbers count. Not for a list.
    prior_cuts : bool
        Superpixels end where the prior's areas do. False is for one that is coarser than the picture: superpixels keep their
        own outlines, each is of the area that most of its pixels have, and `merge` and `n_regions` alone stay within areas.
    prior_price : float
        `merge` and `n_regions` may join superpixels of two areas as if the colors where they touch were so much further apart,
        in Delta E (with "rgb": code values), 0 to 300. 0 is never, but for `n_regions` below the number of areas.
    progress : bool or callable
        True shows a bar for the images of a batch or list, tqdm's where that is installed; a callable gets the number of images
        that are done and of all, some times a second, on this thread. Ctrl-C and what it raises end the call between images;
        `out` keeps what is done.
    stream : int or object, optional
        For images on a device: the CUDA stream that the call takes its place on, as a handle or as an object with `cuda_stream`
        (torch) or `ptr` (CuPy). Default: the stream that the image's library is on.
    check : bool
        For float images on a device: wait and raise `ValueError` where a value is not in [0, 1]. Without it such values are cut
        off, and NaN is 0. Images of numpy are always looked at.
    **other
        Words of scikit-image: `max_num_iter` is `iterations`, `slic_zero` is `adaptive`. A `TypeError` says what to use here
        for others of scikit-image, OpenCV and fast-slic.

    Returns
    -------
    labels : ndarray of uint16 (or int32), shape (H, W), or (N, H, W) for a batch; or list of ndarray
        Labels from `start_label` on, without gaps in each image; `out` where that is given. With a mask they are int32, and
        `start_label` - 1 outside of it. Of an image with a grid of more than 65535 superpixels they are uint32, or int32 as
        before: as many as are asked for. With `merge`, `n_regions` or `refine` such superpixels are made larger, and a warning
        says how large. Of images on a device: int32 there, an array of the same library (`out`: int32, or of labels of 16 bits
        uint16 without a mask).

    Raises
    ------
    TypeError
        `image`, `out`, `mask` or `prior` of another type or dtype, or a masked array.
    ValueError
        A shape, the layout of `out`, a parameter out of range, a value of `image` that is no number, or without `data_range` a
        float that is not in [0, 1]; outside of the mask any value is taken.

    See Also
    --------
    lsc : Linear spectral clustering.
    quickshift : Without a grid: how many regions there are follows from the picture.
    snic : Non-iterative clustering, on the CPU alone.
    Segmenter : The same for video and for many pictures of one size, with tables of the regions.

    Notes
    -----
    Source: Achanta et al., "SLIC Superpixels Compared to State-of-the-Art Superpixel Methods", 2012; Ren, Prisacariu and Reid,
    "gSLICr", 2015. Color differences are sums of absolute differences of the channels. Of equally near clusters a pixel takes
    that of the lowest index.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> image = np.zeros((60, 80, 3), np.uint8)
    >>> sp.slic(image, n_segments=12).shape
    (60, 80)
    """
    values: dict[str, object] = {
        "n_segments": n_segments,
        "compactness": compactness,
        "superpixel_size": superpixel_size,
        "iterations": iterations,
        "color_space": color_space,
        "adaptive": adaptive,
        "connectivity": connectivity,
        "min_region": min_region,
        "stretch_gray16": stretch_gray16,
        "merge": merge,
        "merge_rule": merge_rule,
        "merge_max_distance": merge_max_distance,
        "merge_passes": merge_passes,
        "n_regions": n_regions,
        "regions_compactness": regions_compactness,
        "refine": refine,
        "smoothness": smoothness,
    }
    if other:
        values = _with_others("slic", values, other)
    return _native.segment(
        "slic", image, values, order, threads, start_label, out, mask, stream, check,
        data_range, bands, channel_axis, progress, prior, prior_cuts, prior_price,
    )  # fmt: skip


def lsc(
    image: _np.ndarray | list[_np.ndarray],
    n_segments: int | None = None,
    ratio: float = 0.1,
    *,
    superpixel_size: int | None = None,
    iterations: int = 5,
    connectivity: bool = True,
    min_region: float = 0.25,
    stretch_gray16: bool = False,
    merge: float = 0.0,
    merge_rule: Literal["mutual", "either"] = "mutual",
    merge_max_distance: float = 0.0,
    merge_passes: int = 1,
    n_regions: int = 0,
    regions_compactness: float = 4.0,
    refine: int = 0,
    smoothness: float = 5.0,
    order: Literal["rgb", "bgr"] = "rgb",
    data_range: tuple[float, float] | Literal["image", "stretch"] | None = None,
    bands: int | Sequence[int] | Literal["pca"] | None = None,
    channel_axis: int | None = None,
    threads: int = 0,
    start_label: int = 0,
    out: _np.ndarray | None = None,
    mask: _np.ndarray | None = None,
    prior: _np.ndarray | None = None,
    prior_cuts: bool = True,
    prior_price: float = 0.0,
    progress: bool | _Callable[[int, int], object] = False,
    stream: object = None,
    check: bool = False,
    **other: object,
) -> _np.ndarray | list[_np.ndarray]:
    """Superpixels by linear spectral clustering (LSC).

    Parameters
    ----------
    image : ndarray of numbers, or list of such
        The picture, of shape (H, W), (H, W, 1), (H, W, 3) or (H, W, 4), in any layout: gray, or color of sRGB; `data_range`
        says what values are black and white. An array of shape (N, H, W, C) is a batch, and the arrays of a list may differ in
        size and dtype. Arrays of other libraries in the host's memory, with `__array__` or `__dlpack__`, are taken as well.
    n_segments : int, optional
        Wanted number per frame, from which the grid step follows; approximate (0 = use `superpixel_size`). Range: 0 or more.
        Default: 100, or as `superpixel_size` says. In pictures of 24 px a side or more there are at most a tenth more, since
        the most alike are merged, and in nearly all photographs at most a tenth fewer, with `snic` a fifth; not so with
        `merge`, with `temporal`, or without `connectivity`.
    ratio : float
        Weight of position against color, C_s / C_c of the paper; higher = more regular superpixels. Range: 0.01 to 1.
    superpixel_size : int, optional
        Grid step in px, the distance between seeds; higher = fewer and larger superpixels. Range: 4 to 1024. Instead of
        `n_segments`.
    iterations : int
        Assign and update rounds of an independent frame; more = better fit, slower. Warm-started frames (`temporal=True`), and
        those after a cut, take two. Range: 1 to 100.
    connectivity : bool
        Make every label one 4-connected region of at least `min_region`.
    min_region : float
        Smallest region as a fraction of the squared grid step (quick shift: of tau squared); smaller components join a neighbor
        of near color, preferring other small regions; in temporal mode one that shrinks is kept down to 9/16 of it. Range: 0 to
        4.
    stretch_gray16 : bool
        GRAY16: compare pixels by the range of codes that the frames use, as of thermal cameras, and not by all 65,536; pixels
        of the frame stay.
    merge : float
        Merge touching regions where a neighbor is at most this many times as far in color as the nearest one (0 = off, usual
        1.5 to 2.5); higher = fewer regions. Range: 0 to 100.
    merge_rule : {"mutual", "either"}
        When two regions merge. "mutual": two regions merge if each is near enough for the other. "either": two regions merge if
        one is near enough for the other.
    merge_max_distance : float
        Never merge across a larger difference of mean colors, in Delta E (`color_space="rgb"`: code values; 0 = no limit).
        Range: 0 to 400.
    merge_passes : int
        Merging passes, each from the means that the last one left; more = fewer regions. Range: 1 to 8.
    n_regions : int
        Exactly so many regions: superpixels are merged, the most alike first (0 = off); as many as there are, where fewer.
        Range: 0 to 65535. To as few as can be where the pieces of a mask do not touch. By a grid there are at least three
        superpixels for each, and if `n_segments` is not above 100 about 2000. Not with `merge`.
    regions_compactness : float
        With `n_regions`: color difference, in Delta E, that weighs as much as 1/16 of the picture's side; higher = more
        compact. Range: 0 to 100.
    refine : int
        Sweeps in which pixels at boundaries move to the neighboring region that fits them best, without tearing one (0 = off,
        usual 1 or 2). Range: 0 to 8.
    smoothness : float
        With `refine`: a pixel's side of boundary weighs as much as this color difference, in Delta E (`color_space="rgb"`: code
        values); higher = smoother outlines. Range: 0 to 100.
    order : {"rgb", "bgr"}
        Order of the channels; OpenCV has "bgr".
    data_range : tuple of float, {"image", "stretch"}, optional
        What values are black and white: two numbers, beyond which values are cut off; "image": the least and the highest finite
        value of each image, inside of its mask; "stretch": what `stretch_gray16` finds. Default: 0 and 255 for uint8, 0 and
        65535 for uint16, with a warning where that is probably wrong, and 0 and 1 for floats, which have to be in it; other
        types need one. On a device not "image".
    bands : int, sequence of three int, or "pca", optional
        Which bands of images of shape (H, W, B) count, from 0: one for gray, three for red, green and blue in the order of
        `order`. They are copied. Without it images have one or three, and a fourth is alpha, which is left out. On a device
        they are equally far apart, and no copy is made. "pca": all of 2 to 256 bands, by the principal components c1, c2 and c3
        of each image inside of its mask: pixels are compared as colors of L = 50 + 12 c1 / s, a = 12 c2 / s, b = 12 c3 / s,
        with s the standard deviation of c1. The number of largest magnitude in each component, the first of such, is positive.
        Values are what they are, and two numbers of `data_range` cut them off before; `order` has no part in it. Not on a
        device.
    channel_axis : int, optional
        The axis of channels or bands. Default: the last one.
    threads : int
        Threads, of which at most one a core is made; 0 is one for each core. The result is the same.
    start_label : int
        The lowest label. With another than 0 the result is int32.
    out : ndarray of shape (H, W), or (N, H, W) for a batch, optional
        Where labels are written, of the type that they have, or of uint32 instead of uint16. Rows may be at any distance. Not
        for a list.
    mask : ndarray of bool or uint8, shape (H, W), or (N, H, W) for a batch, optional
        Segment only pixels where it is not 0: the others belong to no superpixel, and add to none. `n_segments` is still of the
        whole picture. It is where the image is. Not for a list.
    prior : ndarray of integers, shape (h, w), or (N, h, w) for a batch, optional
        A label map from elsewhere, as of a network, of any size: column x of W has sample floor((2x + 1) w / 2W), rows
        likewise. No superpixel has pixels of two of its numbers, and pieces below `min_region` join none of another;
        `n_regions` below the number of its connected areas merges areas last. Only whether numbers are equal counts; they are
        of 32 bits with a sign. Past 65535 labels the last areas have 65535. Needs `connectivity`. It is where the image is, and
        on a device the lowest 32 bits of longer numbers count. Not for a list.
    prior_cuts : bool
        Superpixels end where the prior's areas do. False is for one that is coarser than the picture: superpixels keep their
        own outlines, each is of the area that most of its pixels have, and `merge` and `n_regions` alone stay within areas.
    prior_price : float
        `merge` and `n_regions` may join superpixels of two areas as if the colors where they touch were so much further apart,
        in Delta E (with "rgb": code values), 0 to 300. 0 is never, but for `n_regions` below the number of areas.
    progress : bool or callable
        True shows a bar for the images of a batch or list, tqdm's where that is installed; a callable gets the number of images
        that are done and of all, some times a second, on this thread. Ctrl-C and what it raises end the call between images;
        `out` keeps what is done.
    stream : int or object, optional
        For images on a device: the CUDA stream that the call takes its place on, as a handle or as an object with `cuda_stream`
        (torch) or `ptr` (CuPy). Default: the stream that the image's library is on.
    check : bool
        For float images on a device: wait and raise `ValueError` where a value is not in [0, 1]. Without it such values are cut
        off, and NaN is 0. Images of numpy are always looked at.
    **other
        Words of scikit-image: `max_num_iter` is `iterations`. A `TypeError` says what to use here for others of scikit-image,
        OpenCV and fast-slic.

    Returns
    -------
    labels : ndarray of uint16 (or int32), shape (H, W), or (N, H, W) for a batch; or list of ndarray
        Labels from `start_label` on, without gaps in each image; `out` where that is given. With a mask they are int32, and
        `start_label` - 1 outside of it. Of images on a device: int32 there, an array of the same library (`out`: int32, or of
        labels of 16 bits uint16 without a mask).

    Raises
    ------
    TypeError
        `image`, `out`, `mask` or `prior` of another type or dtype, or a masked array.
    ValueError
        A shape, the layout of `out`, a parameter out of range, a value of `image` that is no number, or without `data_range` a
        float that is not in [0, 1]; outside of the mask any value is taken.

    See Also
    --------
    slic : Simple linear iterative clustering, the usual choice.
    quickshift : Without a grid: how many regions there are follows from the picture.
    snic : Non-iterative clustering, on the CPU alone.
    Segmenter : The same for video and for many pictures of one size, with tables of the regions.

    Notes
    -----
    Source: Li and Chen, "Superpixel Segmentation using Linear Spectral Clustering", 2015; Ban, Liu and Fouriaux, "GLSC", 2016.
    Of equally near clusters a pixel takes that of the lowest index.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> image = np.zeros((60, 80, 3), np.uint8)
    >>> sp.lsc(image, n_segments=12, start_label=1).dtype
    dtype('int32')
    """
    values: dict[str, object] = {
        "n_segments": n_segments,
        "ratio": ratio,
        "superpixel_size": superpixel_size,
        "iterations": iterations,
        "connectivity": connectivity,
        "min_region": min_region,
        "stretch_gray16": stretch_gray16,
        "merge": merge,
        "merge_rule": merge_rule,
        "merge_max_distance": merge_max_distance,
        "merge_passes": merge_passes,
        "n_regions": n_regions,
        "regions_compactness": regions_compactness,
        "refine": refine,
        "smoothness": smoothness,
    }
    if other:
        values = _with_others("lsc", values, other)
    return _native.segment(
        "lsc", image, values, order, threads, start_label, out, mask, stream, check,
        data_range, bands, channel_axis, progress, prior, prior_cuts, prior_price,
    )  # fmt: skip


def quickshift(
    image: _np.ndarray | list[_np.ndarray],
    sigma: float = 3.0,
    tau: float = 8.0,
    color_scale: float = 0.5,
    *,
    color_space: Literal["lab", "lab-gslicr", "xyz-gslicr", "rgb"] = "lab",
    connectivity: bool = True,
    min_region: float = 0.25,
    stretch_gray16: bool = False,
    merge: float = 0.0,
    merge_rule: Literal["mutual", "either"] = "mutual",
    merge_max_distance: float = 0.0,
    merge_passes: int = 1,
    n_regions: int = 0,
    regions_compactness: float = 4.0,
    refine: int = 0,
    smoothness: float = 5.0,
    order: Literal["rgb", "bgr"] = "rgb",
    data_range: tuple[float, float] | Literal["image", "stretch"] | None = None,
    bands: int | Sequence[int] | Literal["pca"] | None = None,
    channel_axis: int | None = None,
    threads: int = 0,
    start_label: int = 0,
    out: _np.ndarray | None = None,
    mask: _np.ndarray | None = None,
    prior: _np.ndarray | None = None,
    prior_cuts: bool = True,
    prior_price: float = 0.0,
    progress: bool | _Callable[[int, int], object] = False,
    stream: object = None,
    check: bool = False,
    **other: object,
) -> _np.ndarray | list[_np.ndarray]:
    """Superpixels by quick shift: every pixel climbs to the nearest one of higher density.

    Parameters
    ----------
    image : ndarray of numbers, or list of such
        The picture, of shape (H, W), (H, W, 1), (H, W, 3) or (H, W, 4), in any layout: gray, or color of sRGB; `data_range`
        says what values are black and white. An array of shape (N, H, W, C) is a batch, and the arrays of a list may differ in
        size and dtype. Arrays of other libraries in the host's memory, with `__array__` or `__dlpack__`, are taken as well.
    sigma : float
        Width of the density kernel in px; higher = smoother; time grows with its square. Range: 0.5 to 20.
    tau : float
        Longest link in px, in position and color together; higher = fewer and larger regions. Range: 1 to 64.
    color_scale : float
        Weight of a color unit (Delta E; `color_space="rgb"`: code value) against a px; higher = regions follow color more
        closely. Range: 0.01 to 10.
    color_space : {"lab", "lab-gslicr", "xyz-gslicr", "rgb"}
        Color space of the differences (LSC: always Lab). "lab": CIE L, a, b (D65) of sRGB. "lab-gslicr": L, a, b without
        undoing the sRGB curve, as gSLICr. "xyz-gslicr": X, Y, Z without undoing the sRGB curve, as gSLICr. "rgb": R', G', B'
        code values.
    connectivity : bool
        Make every label one 4-connected region of at least `min_region`.
    min_region : float
        Smallest region as a fraction of the squared grid step (quick shift: of tau squared); smaller components join a neighbor
        of near color, preferring other small regions; in temporal mode one that shrinks is kept down to 9/16 of it. Range: 0 to
        4.
    stretch_gray16 : bool
        GRAY16: compare pixels by the range of codes that the frames use, as of thermal cameras, and not by all 65,536; pixels
        of the frame stay.
    merge : float
        Merge touching regions where a neighbor is at most this many times as far in color as the nearest one (0 = off, usual
        1.5 to 2.5); higher = fewer regions. Range: 0 to 100.
    merge_rule : {"mutual", "either"}
        When two regions merge. "mutual": two regions merge if each is near enough for the other. "either": two regions merge if
        one is near enough for the other.
    merge_max_distance : float
        Never merge across a larger difference of mean colors, in Delta E (`color_space="rgb"`: code values; 0 = no limit).
        Range: 0 to 400.
    merge_passes : int
        Merging passes, each from the means that the last one left; more = fewer regions. Range: 1 to 8.
    n_regions : int
        Exactly so many regions: superpixels are merged, the most alike first (0 = off); as many as there are, where fewer.
        Range: 0 to 65535. To as few as can be where the pieces of a mask do not touch. By a grid there are at least three
        superpixels for each, and if `n_segments` is not above 100 about 2000. Not with `merge`.
    regions_compactness : float
        With `n_regions`: color difference, in Delta E, that weighs as much as 1/16 of the picture's side; higher = more
        compact. Range: 0 to 100.
    refine : int
        Sweeps in which pixels at boundaries move to the neighboring region that fits them best, without tearing one (0 = off,
        usual 1 or 2). Range: 0 to 8.
    smoothness : float
        With `refine`: a pixel's side of boundary weighs as much as this color difference, in Delta E (`color_space="rgb"`: code
        values); higher = smoother outlines. Range: 0 to 100.
    order : {"rgb", "bgr"}
        Order of the channels; OpenCV has "bgr".
    data_range : tuple of float, {"image", "stretch"}, optional
        What values are black and white: two numbers, beyond which values are cut off; "image": the least and the highest finite
        value of each image, inside of its mask; "stretch": what `stretch_gray16` finds. Default: 0 and 255 for uint8, 0 and
        65535 for uint16, with a warning where that is probably wrong, and 0 and 1 for floats, which have to be in it; other
        types need one. On a device not "image".
    bands : int, sequence of three int, or "pca", optional
        Which bands of images of shape (H, W, B) count, from 0: one for gray, three for red, green and blue in the order of
        `order`. They are copied. Without it images have one or three, and a fourth is alpha, which is left out. On a device
        they are equally far apart, and no copy is made. "pca": all of 2 to 256 bands, by the principal components c1, c2 and c3
        of each image inside of its mask: pixels are compared as colors of L = 50 + 12 c1 / s, a = 12 c2 / s, b = 12 c3 / s,
        with s the standard deviation of c1. The number of largest magnitude in each component, the first of such, is positive.
        Values are what they are, and two numbers of `data_range` cut them off before; `order` has no part in it. Not on a
        device.
    channel_axis : int, optional
        The axis of channels or bands. Default: the last one.
    threads : int
        Threads, of which at most one a core is made; 0 is one for each core. The result is the same.
    start_label : int
        The lowest label. With another than 0 the result is int32.
    out : ndarray of shape (H, W), or (N, H, W) for a batch, optional
        Where labels are written, of the type that they have, or of uint32 instead of uint16. Rows may be at any distance. Not
        for a list.
    mask : ndarray of bool or uint8, shape (H, W), or (N, H, W) for a batch, optional
        Segment only pixels where it is not 0: the others belong to no superpixel, and add to none. `n_segments` is still of the
        whole picture. It is where the image is. Not for a list.
    prior : ndarray of integers, shape (h, w), or (N, h, w) for a batch, optional
        A label map from elsewhere, as of a network, of any size: column x of W has sample floor((2x + 1) w / 2W), rows
        likewise. No superpixel has pixels of two of its numbers, and pieces below `min_region` join none of another;
        `n_regions` below the number of its connected areas merges areas last. Only whether numbers are equal counts; they are
        of 32 bits with a sign. Past 65535 labels the last areas have 65535. Needs `connectivity`. It is where the image is, and
        on a device the lowest 32 bits of longer numbers count. Not for a list.
    prior_cuts : bool
        Superpixels end where the prior's areas do. False is for one that is coarser than the picture: superpixels keep their
        own outlines, each is of the area that most of its pixels have, and `merge` and `n_regions` alone stay within areas.
    prior_price : float
        `merge` and `n_regions` may join superpixels of two areas as if the colors where they touch were so much further apart,
        in Delta E (with "rgb": code values), 0 to 300. 0 is never, but for `n_regions` below the number of areas.
    progress : bool or callable
        True shows a bar for the images of a batch or list, tqdm's where that is installed; a callable gets the number of images
        that are done and of all, some times a second, on this thread. Ctrl-C and what it raises end the call between images;
        `out` keeps what is done.
    stream : int or object, optional
        For images on a device: the CUDA stream that the call takes its place on, as a handle or as an object with `cuda_stream`
        (torch) or `ptr` (CuPy). Default: the stream that the image's library is on.
    check : bool
        For float images on a device: wait and raise `ValueError` where a value is not in [0, 1]. Without it such values are cut
        off, and NaN is 0. Images of numpy are always looked at.
    **other
        Words of scikit-image: `kernel_size` is `sigma`. A `TypeError` says what to use here for others of scikit-image, OpenCV
        and fast-slic.

    Returns
    -------
    labels : ndarray of uint16 (or int32), shape (H, W), or (N, H, W) for a batch; or list of ndarray
        Labels from `start_label` on, without gaps in each image; `out` where that is given. With a mask they are int32, and
        `start_label` - 1 outside of it. Of images on a device: int32 there, an array of the same library (`out`: int32, or of
        labels of 16 bits uint16 without a mask).

    Raises
    ------
    TypeError
        `image`, `out`, `mask` or `prior` of another type or dtype, or a masked array.
    ValueError
        A shape, the layout of `out`, a parameter out of range, a value of `image` that is no number, or without `data_range` a
        float that is not in [0, 1]; outside of the mask any value is taken.

    See Also
    --------
    slic : Simple linear iterative clustering, the usual choice.
    lsc : Linear spectral clustering.
    snic : Non-iterative clustering, on the CPU alone.
    Segmenter : The same for video and for many pictures of one size, with tables of the regions.

    Notes
    -----
    Source: Vedaldi and Soatto, "Quick Shift and Kernel Methods for Mode Seeking", 2008; Fulkerson and Soatto, "Really Quick
    Shift", 2010. Of pixels of equal density the one that comes first in raster order is the higher.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> image = np.zeros((60, 80), np.uint8)
    >>> image[:, 40:] = 200
    >>> sp.quickshift(image, sigma=2, tau=8).shape
    (60, 80)
    """
    values: dict[str, object] = {
        "sigma": sigma,
        "tau": tau,
        "color_scale": color_scale,
        "color_space": color_space,
        "connectivity": connectivity,
        "min_region": min_region,
        "stretch_gray16": stretch_gray16,
        "merge": merge,
        "merge_rule": merge_rule,
        "merge_max_distance": merge_max_distance,
        "merge_passes": merge_passes,
        "n_regions": n_regions,
        "regions_compactness": regions_compactness,
        "refine": refine,
        "smoothness": smoothness,
    }
    if other:
        values = _with_others("quickshift", values, other)
    return _native.segment(
        "quickshift", image, values, order, threads, start_label, out, mask, stream, check,
        data_range, bands, channel_axis, progress, prior, prior_cuts, prior_price,
    )  # fmt: skip


def snic(
    image: _np.ndarray | list[_np.ndarray],
    n_segments: int | None = None,
    compactness: float = 10.0,
    *,
    superpixel_size: int | None = None,
    color_space: Literal["lab", "lab-gslicr", "xyz-gslicr", "rgb"] = "lab",
    connectivity: bool = True,
    min_region: float = 0.25,
    stretch_gray16: bool = False,
    merge: float = 0.0,
    merge_rule: Literal["mutual", "either"] = "mutual",
    merge_max_distance: float = 0.0,
    merge_passes: int = 1,
    n_regions: int = 0,
    regions_compactness: float = 4.0,
    refine: int = 0,
    smoothness: float = 5.0,
    order: Literal["rgb", "bgr"] = "rgb",
    data_range: tuple[float, float] | Literal["image", "stretch"] | None = None,
    bands: int | Sequence[int] | Literal["pca"] | None = None,
    channel_axis: int | None = None,
    threads: int = 0,
    start_label: int = 0,
    out: _np.ndarray | None = None,
    mask: _np.ndarray | None = None,
    prior: _np.ndarray | None = None,
    prior_cuts: bool = True,
    prior_price: float = 0.0,
    progress: bool | _Callable[[int, int], object] = False,
    **other: object,
) -> _np.ndarray | list[_np.ndarray]:
    """Superpixels by simple non-iterative clustering (SNIC): clusters grow from seeds, the nearest pixel first.

    Parameters
    ----------
    image : ndarray of numbers, or list of such
        The picture, of shape (H, W), (H, W, 1), (H, W, 3) or (H, W, 4), in any layout: gray, or color of sRGB; `data_range`
        says what values are black and white. An array of shape (N, H, W, C) is a batch, and the arrays of a list may differ in
        size and dtype. Arrays of other libraries in the host's memory, with `__array__` or `__dlpack__`, are taken as well.
    n_segments : int, optional
        Wanted number per frame, from which the grid step follows; approximate (0 = use `superpixel_size`). Range: 0 or more.
        Default: 100, or as `superpixel_size` says. In pictures of 24 px a side or more there are at most a tenth more, since
        the most alike are merged, and in nearly all photographs at most a tenth fewer, with `snic` a fifth; not so with
        `merge`, with `temporal`, or without `connectivity`.
    compactness : float
        Weight of position against color, in Lab units; higher = more regular superpixels. Range: 0.1 to 1000.
    superpixel_size : int, optional
        Grid step in px, the distance between seeds; higher = fewer and larger superpixels. Range: 4 to 1024. Instead of
        `n_segments`.
    color_space : {"lab", "lab-gslicr", "xyz-gslicr", "rgb"}
        Color space of the differences (LSC: always Lab). "lab": CIE L, a, b (D65) of sRGB. "lab-gslicr": L, a, b without
        undoing the sRGB curve, as gSLICr. "xyz-gslicr": X, Y, Z without undoing the sRGB curve, as gSLICr. "rgb": R', G', B'
        code values.
    connectivity : bool
        Make every label one 4-connected region of at least `min_region`.
    min_region : float
        Smallest region as a fraction of the squared grid step (quick shift: of tau squared); smaller components join a neighbor
        of near color, preferring other small regions; in temporal mode one that shrinks is kept down to 9/16 of it. Range: 0 to
        4.
    stretch_gray16 : bool
        GRAY16: compare pixels by the range of codes that the frames use, as of thermal cameras, and not by all 65,536; pixels
        of the frame stay.
    merge : float
        Merge touching regions where a neighbor is at most this many times as far in color as the nearest one (0 = off, usual
        1.5 to 2.5); higher = fewer regions. Range: 0 to 100.
    merge_rule : {"mutual", "either"}
        When two regions merge. "mutual": two regions merge if each is near enough for the other. "either": two regions merge if
        one is near enough for the other.
    merge_max_distance : float
        Never merge across a larger difference of mean colors, in Delta E (`color_space="rgb"`: code values; 0 = no limit).
        Range: 0 to 400.
    merge_passes : int
        Merging passes, each from the means that the last one left; more = fewer regions. Range: 1 to 8.
    n_regions : int
        Exactly so many regions: superpixels are merged, the most alike first (0 = off); as many as there are, where fewer.
        Range: 0 to 65535. To as few as can be where the pieces of a mask do not touch. By a grid there are at least three
        superpixels for each, and if `n_segments` is not above 100 about 2000. Not with `merge`.
    regions_compactness : float
        With `n_regions`: color difference, in Delta E, that weighs as much as 1/16 of the picture's side; higher = more
        compact. Range: 0 to 100.
    refine : int
        Sweeps in which pixels at boundaries move to the neighboring region that fits them best, without tearing one (0 = off,
        usual 1 or 2). Range: 0 to 8.
    smoothness : float
        With `refine`: a pixel's side of boundary weighs as much as this color difference, in Delta E (`color_space="rgb"`: code
        values); higher = smoother outlines. Range: 0 to 100.
    order : {"rgb", "bgr"}
        Order of the channels; OpenCV has "bgr".
    data_range : tuple of float, {"image", "stretch"}, optional
        What values are black and white: two numbers, beyond which values are cut off; "image": the least and the highest finite
        value of each image, inside of its mask; "stretch": what `stretch_gray16` finds. Default: 0 and 255 for uint8, 0 and
        65535 for uint16, with a warning where that is probably wrong, and 0 and 1 for floats, which have to be in it; other
        types need one. On a device not "image".
    bands : int, sequence of three int, or "pca", optional
        Which bands of images of shape (H, W, B) count, from 0: one for gray, three for red, green and blue in the order of
        `order`. They are copied. Without it images have one or three, and a fourth is alpha, which is left out. On a device
        they are equally far apart, and no copy is made. "pca": all of 2 to 256 bands, by the principal components c1, c2 and c3
        of each image inside of its mask: pixels are compared as colors of L = 50 + 12 c1 / s, a = 12 c2 / s, b = 12 c3 / s,
        with s the standard deviation of c1. The number of largest magnitude in each component, the first of such, is positive.
        Values are what they are, and two numbers of `data_range` cut them off before; `order` has no part in it. Not on a
        device.
    channel_axis : int, optional
        The axis of channels or bands. Default: the last one.
    threads : int
        Threads, of which at most one a core is made; 0 is one for each core. The result is the same.
    start_label : int
        The lowest label. With another than 0 the result is int32.
    out : ndarray of shape (H, W), or (N, H, W) for a batch, optional
        Where labels are written, of the type that they have, or of uint32 instead of uint16. Rows may be at any distance. Not
        for a list.
    mask : ndarray of bool or uint8, shape (H, W), or (N, H, W) for a batch, optional
        Segment only pixels where it is not 0: the others belong to no superpixel, and add to none. `n_segments` is still of the
        whole picture. It is where the image is. Not for a list.
    prior : ndarray of integers, shape (h, w), or (N, h, w) for a batch, optional
        A label map from elsewhere, as of a network, of any size: column x of W has sample floor((2x + 1) w / 2W), rows
        likewise. No superpixel has pixels of two of its numbers, and pieces below `min_region` join none of another;
        `n_regions` below the number of its connected areas merges areas last. Only whether numbers are equal counts; they are
        of 32 bits with a sign. Past 65535 labels the last areas have 65535. Needs `connectivity`. It is where the image is, and
        on a device the lowest 32 bits of longer numbers count. Not for a list.
    prior_cuts : bool
        Superpixels end where the prior's areas do. False is for one that is coarser than the picture: superpixels keep their
        own outlines, each is of the area that most of its pixels have, and `merge` and `n_regions` alone stay within areas.
    prior_price : float
        `merge` and `n_regions` may join superpixels of two areas as if the colors where they touch were so much further apart,
        in Delta E (with "rgb": code values), 0 to 300. 0 is never, but for `n_regions` below the number of areas.
    progress : bool or callable
        True shows a bar for the images of a batch or list, tqdm's where that is installed; a callable gets the number of images
        that are done and of all, some times a second, on this thread. Ctrl-C and what it raises end the call between images;
        `out` keeps what is done.
    **other
        A `TypeError` says what to use here for others of scikit-image, OpenCV and fast-slic.

    Returns
    -------
    labels : ndarray of uint16 (or int32), shape (H, W), or (N, H, W) for a batch; or list of ndarray
        Labels from `start_label` on, without gaps in each image; `out` where that is given. With a mask they are int32, and
        `start_label` - 1 outside of it.

    Raises
    ------
    TypeError
        `image`, `out`, `mask` or `prior` of another type or dtype, or a masked array.
    ValueError
        A shape, the layout of `out`, a parameter out of range, a value of `image` that is no number, or without `data_range` a
        float that is not in [0, 1]; outside of the mask any value is taken.

    See Also
    --------
    slic : Simple linear iterative clustering, the usual choice.
    lsc : Linear spectral clustering.
    quickshift : Without a grid: how many regions there are follows from the picture.
    Segmenter : The same for video and for many pictures of one size, with tables of the regions.

    Notes
    -----
    Source: Achanta and Süsstrunk, "Superpixels and Polygons using Simple Non-Iterative Clustering", 2017. Of equally near
    pixels the first in raster order is taken, then the lower cluster. Clusters grow on one thread; images on a device are
    refused.
    It is here for comparison with results of SNIC: it takes four to eight times as long as `slic`, and at the same number of
    superpixels its boundaries are shorter and miss more (boundary recall .90 against .94 at 400 on BSDS500).

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> image = np.random.default_rng(0).random((60, 80, 3))
    >>> len(np.unique(sp.snic(image, n_regions=7)))
    7
    """
    values: dict[str, object] = {
        "n_segments": n_segments,
        "compactness": compactness,
        "superpixel_size": superpixel_size,
        "color_space": color_space,
        "connectivity": connectivity,
        "min_region": min_region,
        "stretch_gray16": stretch_gray16,
        "merge": merge,
        "merge_rule": merge_rule,
        "merge_max_distance": merge_max_distance,
        "merge_passes": merge_passes,
        "n_regions": n_regions,
        "regions_compactness": regions_compactness,
        "refine": refine,
        "smoothness": smoothness,
    }
    if other:
        values = _with_others("snic", values, other)
    return _native.segment(
        "snic", image, values, order, threads, start_label, out, mask, None, False,
        data_range, bands, channel_axis, progress, prior, prior_cuts, prior_price,
    )  # fmt: skip
