# SPDX-License-Identifier: MPL-2.0
"""Superpixels of pictures and video.

Functions segment pictures: `slic`, `lsc`, `quickshift` and `snic`. The class `Segmenter` is for video and loops: it keeps
its memory from call to call, and knows the regions, their neighbors and, in video, their track ids and motion. Arrays are
numpy's, and results do not depend on the number of threads. Arrays on a CUDA device (torch's, CuPy's, or any with `__dlpack__` or
`__cuda_array_interface__`) are segmented there, with the same labels, and results are arrays of the same library.

Images are uint8, uint16 or float32 of shape (H, W), (H, W, 1), (H, W, 3) or (H, W, 4); a fourth channel is ignored. Arrays of
integers are read where they are: rows may be at any distance, the pixels of a row are together. Floats are in [0, 1] and
become codes of 16 bits, round(65535 x) with halves up. Do not write to an array in another thread while a call reads it.

An array with three axes is always one image. With four, (N, H, W, C), the functions take it as a batch of independent images
and `Segmenter` as a clip, frame by frame; gray ones have C = 1.

Label maps are uint16 of shape (H, W), or (N, H, W), labels 0 to n - 1, each used, and 65535 outside of a `mask`. Equal
distances: the lower cluster; docs/python.md names where each method is specified.
"""

from __future__ import annotations

import numpy as _np

from . import _native
from ._contours import contours
from ._helpers import RegionAt, adjacency, boundaries, mean_color, region_at, rle, to_png16
from ._hierarchy import cut, hierarchy
from ._native import DeviceArray, Segmenter, __version__

__all__ = [
    "DeviceArray",
    "RegionAt",
    "Segmenter",
    "adjacency",
    "boundaries",
    "contours",
    "cut",
    "hierarchy",
    "lsc",
    "mean_color",
    "quickshift",
    "region_at",
    "rle",
    "slic",
    "snic",
    "to_png16",
]

_SLIC = _native.defaults("slic")
_LSC = _native.defaults("lsc")
_QUICKSHIFT = _native.defaults("quickshift")

# As scikit-image has it. The library's own default is a grid step.
_N_SEGMENTS = _native.N_SEGMENTS


_COMMON = """connectivity : bool
        Make every label one 4-connected region of at least `min_region`.
    min_region : float
        Smallest region as a fraction of {square}, 0 to 4.
    merge : float
        Merge regions that touch: how many times as far in color as the nearest neighbor; 0 is off, usual are 1.5 to 2.5.
    merge_rule : {{"mutual", "either"}}
        Whether both regions have to be near enough for each other, or one.
    merge_max_distance : float
        Never merge across a larger color difference (Delta E); 0 is no limit.
    merge_passes : int
        How often regions are merged, 1 to 8.
    refine : int
        Sweeps in which pixels at boundaries move to the region that fits them best, 0 to 8; 0 is off. Boundaries get smoother and
        follow edges more closely.
    smoothness : float
        For `refine`: weight of a pixel's boundary against color, 0 to 100.
    n_regions : int
        Merge regions to exactly so many, the most alike first, 0 to 65535; to as few as can be where the pieces of a mask do not
        touch. By a grid there are at least three superpixels for each, and if `n_segments` is not above 100 about 2000. 0 is
        off. Not with `merge`.
    regions_compactness : float
        For `n_regions`: weight of position against color, 0 to 100. Higher is more regular.
    order : {{"rgb", "bgr"}}
        Order of the channels; OpenCV has "bgr".
    threads : int
        Threads, of which at most one a core is made; 0 is one for each core. The result is the same.
    start_label : int
        The lowest label. With another than 0 the result is int32.
    out : ndarray of shape (H, W), or (N, H, W) for a batch, optional
        Where labels are written: uint16, or int32 where `start_label` is not 0. Rows may be at any distance. Not for a list.
    mask : ndarray of bool or uint8, shape (H, W), or (N, H, W) for a batch, optional
        Segment only pixels where it is not 0: the others belong to no superpixel, and add to none. `n_segments` is still of
        the whole picture. It is where the image is. Not for a list.{stream}

    Returns
    -------
    labels : ndarray of uint16 (or int32), shape (H, W), or (N, H, W) for a batch; or list of ndarray
        Labels from `start_label` on, without gaps in each image; `out` where that is given. Outside of the mask 65535, or
        `start_label` - 1 where that is not 0.{device}

    Raises
    ------
    TypeError
        `image`, `out` or `mask` of another type or dtype, or a masked array.
    ValueError
        A shape, a layout, a parameter out of range, or a float that is not in [0, 1]."""


_STREAM = """
    stream : int or object, optional
        For images on a device: the CUDA stream that the call takes its place on, as a handle or as an object with `cuda_stream`
        (torch) or `ptr` (CuPy). Default: the stream that the image's library is on.
    check : bool
        For float images on a device: wait and raise `ValueError` where a value is not in [0, 1]. Without it such values are cut
        off, and NaN is 0. Images of numpy are always looked at."""

_DEVICE = """
        Of images on a device: int32 there, an array of the same library (`out`: int32 or uint16)."""


def _document(square, on_device=True):
    """Puts the part of the documentation that all functions share into that of one."""
    stream, device = (_STREAM, _DEVICE) if on_device else ("", "")

    def decorate(function):
        # Under -OO there is none.
        if function.__doc__:
            common = _COMMON.format(square=square, stream=stream, device=device)
            function.__doc__ = function.__doc__.replace("{common}", common)
        return function

    return decorate


@_document("the squared grid step")
def slic(
    image: _np.ndarray | list[_np.ndarray],
    n_segments: int = _N_SEGMENTS,
    compactness: float = _SLIC["compactness"],
    *,
    superpixel_size: int | None = None,
    iterations: int = _SLIC["iterations"],
    color_space: str = _SLIC["color_space"],
    adaptive: bool = _SLIC["adaptive"],
    connectivity: bool = _SLIC["connectivity"],
    min_region: float = _SLIC["min_region"],
    merge: float = _SLIC["merge"],
    merge_rule: str = _SLIC["merge_rule"],
    merge_max_distance: float = _SLIC["merge_max_distance"],
    merge_passes: int = _SLIC["merge_passes"],
    refine: int = _SLIC["refine"],
    smoothness: float = _SLIC["smoothness"],
    n_regions: int = _SLIC["n_regions"],
    regions_compactness: float = _SLIC["regions_compactness"],
    order: str = "rgb",
    threads: int = 0,
    start_label: int = 0,
    out: _np.ndarray | None = None,
    mask: _np.ndarray | None = None,
    stream: object = None,
    check: bool = False,
) -> _np.ndarray | list[_np.ndarray]:
    """Superpixels by simple linear iterative clustering (SLIC).

    Parameters
    ----------
    image : ndarray of uint8, uint16 or float32, or list of such
        The picture, of shape (H, W), (H, W, 1), (H, W, 3) or (H, W, 4): gray, or color of sRGB; floats are in [0, 1]. An array
        of shape (N, H, W, C) is a batch, and the arrays of a list may differ in size and dtype.
    n_segments : int
        Wanted number of superpixels, about.
    compactness : float
        Weight of position against color, 0.1 to 1000: a grid step weighs as much as so many Delta E. Higher is more regular.
    superpixel_size : int, optional
        Grid step in px, 4 to 1024, instead of `n_segments`.
    iterations : int
        Rounds of assignment and update, 1 to 100.
    color_space : {"lab", "lab-gslicr", "xyz-gslicr", "rgb"}
        What color differences are measured in.
    adaptive : bool
        SLICO: the compactness of each superpixel adapts to its colors.
    {common}

    Notes
    -----
    Source: Achanta et al., "SLIC Superpixels Compared to State-of-the-Art Superpixel Methods", 2012; Ren, Prisacariu and
    Reid, "gSLICr", 2015. Color differences are sums of absolute differences of the channels. Of equally near clusters a
    pixel takes that of the lowest index.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> image = np.zeros((60, 80, 3), np.uint8)
    >>> sp.slic(image, n_segments=12).shape
    (60, 80)
    """
    values = {
        "n_segments": n_segments,
        "superpixel_size": superpixel_size,
        "compactness": compactness,
        "iterations": iterations,
        "color_space": color_space,
        "adaptive": adaptive,
        "connectivity": connectivity,
        "min_region": min_region,
        "merge": merge,
        "merge_rule": merge_rule,
        "merge_max_distance": merge_max_distance,
        "merge_passes": merge_passes,
        "refine": refine,
        "smoothness": smoothness,
        "n_regions": n_regions,
        "regions_compactness": regions_compactness,
    }
    return _native.segment("slic", image, values, order, threads, start_label, out, mask, stream, check)


@_document("the squared grid step")
def lsc(
    image: _np.ndarray | list[_np.ndarray],
    n_segments: int = _N_SEGMENTS,
    ratio: float = _LSC["ratio"],
    *,
    superpixel_size: int | None = None,
    iterations: int = _LSC["iterations"],
    connectivity: bool = _LSC["connectivity"],
    min_region: float = _LSC["min_region"],
    merge: float = _LSC["merge"],
    merge_rule: str = _LSC["merge_rule"],
    merge_max_distance: float = _LSC["merge_max_distance"],
    merge_passes: int = _LSC["merge_passes"],
    refine: int = _LSC["refine"],
    smoothness: float = _LSC["smoothness"],
    n_regions: int = _LSC["n_regions"],
    regions_compactness: float = _LSC["regions_compactness"],
    order: str = "rgb",
    threads: int = 0,
    start_label: int = 0,
    out: _np.ndarray | None = None,
    mask: _np.ndarray | None = None,
    stream: object = None,
    check: bool = False,
) -> _np.ndarray | list[_np.ndarray]:
    """Superpixels by linear spectral clustering (LSC).

    Parameters
    ----------
    image : ndarray of uint8, uint16 or float32, or list of such
        The picture, of shape (H, W), (H, W, 1), (H, W, 3) or (H, W, 4): gray, or color of sRGB; floats are in [0, 1]. An array
        of shape (N, H, W, C) is a batch, and the arrays of a list may differ in size and dtype.
    n_segments : int
        Wanted number of superpixels, about.
    ratio : float
        Weight of position against color, 0.01 to 1. Higher is more regular.
    superpixel_size : int, optional
        Grid step in px, 4 to 1024, instead of `n_segments`.
    iterations : int
        Rounds of assignment and update, 1 to 100.
    {common}

    Notes
    -----
    Source: Li and Chen, "Superpixel Segmentation using Linear Spectral Clustering", 2015; Ban, Liu and Fouriaux, "GLSC",
    2016. Of equally near clusters a pixel takes that of the lowest index.
    """
    values = {
        "n_segments": n_segments,
        "superpixel_size": superpixel_size,
        "ratio": ratio,
        "iterations": iterations,
        "connectivity": connectivity,
        "min_region": min_region,
        "merge": merge,
        "merge_rule": merge_rule,
        "merge_max_distance": merge_max_distance,
        "merge_passes": merge_passes,
        "refine": refine,
        "smoothness": smoothness,
        "n_regions": n_regions,
        "regions_compactness": regions_compactness,
    }
    return _native.segment("lsc", image, values, order, threads, start_label, out, mask, stream, check)


@_document("the square of `tau`")
def quickshift(
    image: _np.ndarray | list[_np.ndarray],
    sigma: float = _QUICKSHIFT["sigma"],
    tau: float = _QUICKSHIFT["tau"],
    color_scale: float = _QUICKSHIFT["color_scale"],
    *,
    color_space: str = _QUICKSHIFT["color_space"],
    connectivity: bool = _QUICKSHIFT["connectivity"],
    min_region: float = _QUICKSHIFT["min_region"],
    merge: float = _QUICKSHIFT["merge"],
    merge_rule: str = _QUICKSHIFT["merge_rule"],
    merge_max_distance: float = _QUICKSHIFT["merge_max_distance"],
    merge_passes: int = _QUICKSHIFT["merge_passes"],
    refine: int = _QUICKSHIFT["refine"],
    smoothness: float = _QUICKSHIFT["smoothness"],
    n_regions: int = _QUICKSHIFT["n_regions"],
    regions_compactness: float = _QUICKSHIFT["regions_compactness"],
    order: str = "rgb",
    threads: int = 0,
    start_label: int = 0,
    out: _np.ndarray | None = None,
    mask: _np.ndarray | None = None,
    stream: object = None,
    check: bool = False,
) -> _np.ndarray | list[_np.ndarray]:
    """Superpixels by quick shift: every pixel climbs to the nearest one of higher density.

    Parameters
    ----------
    image : ndarray of uint8, uint16 or float32, or list of such
        The picture, of shape (H, W), (H, W, 1), (H, W, 3) or (H, W, 4): gray, or color of sRGB; floats are in [0, 1]. An array
        of shape (N, H, W, C) is a batch, and the arrays of a list may differ in size and dtype.
    sigma : float
        Width of the density's Gaussian in px, 0.5 to 20. Time grows with its square.
    tau : float
        Longest link in px, in position and color together, 1 to 64. Higher gives fewer and larger regions.
    color_scale : float
        Weight of a color unit against a px, 0.01 to 10.
    color_space : {"lab", "lab-gslicr", "xyz-gslicr", "rgb"}
        What color differences are measured in.
    {common}

    Notes
    -----
    Source: Vedaldi and Soatto, "Quick Shift and Kernel Methods for Mode Seeking", 2008; Fulkerson and Soatto, "Really Quick
    Shift", 2010. Of pixels of equal density the one that comes first in raster order is the higher.
    """
    values = {
        "sigma": sigma,
        "tau": tau,
        "color_scale": color_scale,
        "color_space": color_space,
        "connectivity": connectivity,
        "min_region": min_region,
        "merge": merge,
        "merge_rule": merge_rule,
        "merge_max_distance": merge_max_distance,
        "merge_passes": merge_passes,
        "refine": refine,
        "smoothness": smoothness,
        "n_regions": n_regions,
        "regions_compactness": regions_compactness,
    }
    return _native.segment("quickshift", image, values, order, threads, start_label, out, mask, stream, check)


@_document("the squared grid step", on_device=False)
def snic(
    image: _np.ndarray | list[_np.ndarray],
    n_segments: int = _N_SEGMENTS,
    compactness: float = _native.defaults("snic")["compactness"],
    *,
    superpixel_size: int | None = None,
    color_space: str = _SLIC["color_space"],
    connectivity: bool = _SLIC["connectivity"],
    min_region: float = _SLIC["min_region"],
    merge: float = _SLIC["merge"],
    merge_rule: str = _SLIC["merge_rule"],
    merge_max_distance: float = _SLIC["merge_max_distance"],
    merge_passes: int = _SLIC["merge_passes"],
    refine: int = _SLIC["refine"],
    smoothness: float = _SLIC["smoothness"],
    n_regions: int = _SLIC["n_regions"],
    regions_compactness: float = _SLIC["regions_compactness"],
    order: str = "rgb",
    threads: int = 0,
    start_label: int = 0,
    out: _np.ndarray | None = None,
    mask: _np.ndarray | None = None,
) -> _np.ndarray | list[_np.ndarray]:
    """Superpixels by simple non-iterative clustering (SNIC): clusters grow from seeds, the nearest pixel first.

    Parameters
    ----------
    image : ndarray of uint8, uint16 or float32, or list of such
        The picture, of shape (H, W), (H, W, 1), (H, W, 3) or (H, W, 4): gray, or color of sRGB; floats are in [0, 1]. An array
        of shape (N, H, W, C) is a batch, and the arrays of a list may differ in size and dtype.
    n_segments : int
        Wanted number of superpixels, about.
    compactness : float
        Weight of position against color, 0.1 to 1000. Higher is more regular.
    superpixel_size : int, optional
        Grid step in px, 4 to 1024, instead of `n_segments`.
    color_space : {"lab", "lab-gslicr", "xyz-gslicr", "rgb"}
        What color differences are measured in.
    {common}

    Notes
    -----
    Source: Achanta and Süsstrunk, "Superpixels and Polygons using Simple Non-Iterative Clustering", 2017. Of equally near
    pixels the first in raster order is taken, then the lower cluster. Clusters grow on one thread.
    """
    values = {
        "n_segments": n_segments,
        "superpixel_size": superpixel_size,
        "compactness": compactness,
        "color_space": color_space,
        "connectivity": connectivity,
        "min_region": min_region,
        "merge": merge,
        "merge_rule": merge_rule,
        "merge_max_distance": merge_max_distance,
        "merge_passes": merge_passes,
        "refine": refine,
        "smoothness": smoothness,
        "n_regions": n_regions,
        "regions_compactness": regions_compactness,
    }
    return _native.segment("snic", image, values, order, threads, start_label, out, mask)
