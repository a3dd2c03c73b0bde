# SPDX-License-Identifier: MPL-2.0
"""Superpixels of pictures and video.

Functions segment pictures: `slic`, `lsc`, `quickshift` and `snic`; `segment_images` gives tables of many, `select` makes a mask of a box or of clicks. The class `Segmenter` is for video and loops: it keeps
its memory from call to call, and knows the regions, their neighbors and, in video, their track ids and motion. Arrays are
numpy's, and results do not depend on the number of threads. Arrays on a CUDA device (torch's, CuPy's, or any with `__dlpack__` or
`__cuda_array_interface__`) are segmented there, with the same labels, and results are arrays of the same library.

Images are of shape (H, W), (H, W, 1), (H, W, 3) or (H, W, 4); a fourth channel is ignored. Arrays of uint8 and uint16 are read
where they are: rows may be at any distance, the pixels of a row are together. Floats are in [0, 1] and become codes of 16 bits,
round(65535 x) with halves up; `data_range` says of these and all other types what values are black and white. Do not write to
an array in another thread while a call reads it.

An array with three axes is always one image. With four, (N, H, W, C), the functions take it as a batch of independent images
and `Segmenter` as a clip, frame by frame; gray ones have C = 1.

Label maps are uint16 of shape (H, W), or (N, H, W), labels 0 to n - 1, each used; of more than 65,535 superpixels, which `slic`
has, uint32; with a `mask` int32, and -1 outside. Equal
distances: the lower cluster; docs/python.md names where each method is specified.
"""

from ._annotations import to_coco, to_cvat, to_label_studio
from ._batch import PictureOfBatch, RegionBatch, segment_batch
from ._contours import contours
from ._drawings import boundaries, mean_color
from ._events import EventKind
from ._functions import Parameters, lsc, quickshift, slic, snic
from ._helpers import RegionAt, adjacency, region_at, to_png16
from ._hierarchy import cut, hierarchy, linkage
from ._images import SegmentedImage, segment_images
from ._native import DeviceArray
from ._native import __version__ as __version__
from ._objects import Detection, Objects, TrackedObject, select
from ._outlines import smooth_labels
from ._runs import rle, rles
from ._segmenter import Segmenter
from ._show import Picture, browse, show
from ._tables import to_arrow, to_pandas, to_polars
from ._vectors import to_geojson, to_svg
from ._video import Frame, segment_video

__all__ = [
    "Detection",
    "DeviceArray",
    "EventKind",
    "Frame",
    "Objects",
    "Parameters",
    "Picture",
    "PictureOfBatch",
    "RegionAt",
    "RegionBatch",
    "SegmentedImage",
    "Segmenter",
    "TrackedObject",
    "adjacency",
    "boundaries",
    "browse",
    "contours",
    "cut",
    "hierarchy",
    "linkage",
    "lsc",
    "mean_color",
    "quickshift",
    "region_at",
    "rle",
    "rles",
    "segment_batch",
    "segment_images",
    "segment_video",
    "select",
    "show",
    "slic",
    "smooth_labels",
    "snic",
    "to_arrow",
    "to_coco",
    "to_cvat",
    "to_geojson",
    "to_label_studio",
    "to_pandas",
    "to_png16",
    "to_polars",
    "to_svg",
]


def __dir__() -> list[str]:
    """Public names, and those that Python gives every module: the modules of this package are private."""
    return sorted(name for name in globals() if name in __all__ or name[:2] == name[-2:] == "__")
