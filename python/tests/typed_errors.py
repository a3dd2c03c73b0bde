# SPDX-License-Identifier: MPL-2.0
"""Mistakes that checkers have to find: each marked line names the kind of its error for mypy, then for pyright.

No program runs this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import superpixels as sp
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typed_libraries import NumbaArray, Tensor

image = np.zeros((24, 32, 3), np.uint8)
doubles = np.zeros((24, 32, 3))
bits = np.zeros((24, 32, 3), np.bool_)
labels = sp.slic(image)
integers = np.empty((24, 32), np.int32)
wide = labels.astype(np.int64)
video = sp.Segmenter(temporal=True, events=True, levels=True)


def names() -> None:
    sp.slic(image, n_segmets=3)  # error: call-overload, reportCallIssue
    sp.slic(image, nonsense="x")  # error: call-overload, reportCallIssue
    sp.slic(image, ratio=0.1)  # error: call-overload, reportCallIssue
    sp.lsc(image, compactness=5.0)  # error: call-overload, reportCallIssue
    sp.quickshift(image, n_segments=100)  # error: call-overload, reportCallIssue
    sp.Segmenter(n_segmets=3)  # error: call-arg, reportCallIssue
    video.set(nonsense=1)  # error: call-arg, reportCallIssue
    sp.hierarchy(image, levels=False)  # error: call-overload, reportCallIssue
    sp.slic(image, sigma=1)  # error: call-overload, reportCallIssue
    sp.slic(image, kernel_size=1.0)  # error: call-overload, reportCallIssue
    sp.slic(image, max_num_iter=1.5)  # error: call-overload, reportCallIssue
    sp.quickshift(image, max_dist=10)  # error: call-overload, reportCallIssue
    sp.snic(image, max_num_iter=7)  # error: call-overload, reportCallIssue
    sp.Segmenter(max_num_iter=7)  # error: call-arg, reportCallIssue
    sp.segment_images([image], n_segmets=3)  # error: call-overload, reportCallIssue
    sp.segment_images([image], mask=3)  # error: call-overload, reportCallIssue
    sp.boundaries(image, labels, colour=(1, 2, 3))  # error: call-overload, reportCallIssue
    sp.watershed(image)  # error: attr-defined, reportAttributeAccessIssue
    sp.EventKind.BORN  # error: attr-defined, reportAttributeAccessIssue


def values() -> None:
    sp.slic(image, "many")  # error: call-overload, reportCallIssue
    sp.slic(image, n_segments=1.5)  # error: call-overload, reportCallIssue
    sp.slic(image, color_space="hsv")  # error: call-overload, reportCallIssue
    sp.slic(image, order="rgba")  # error: call-overload, reportCallIssue
    sp.slic(image, adaptive="yes")  # error: call-overload, reportCallIssue
    sp.Segmenter("SLIC")  # error: arg-type, reportArgumentType
    sp.Segmenter(compactness="high")  # error: arg-type, reportArgumentType
    sp.Segmenter(device=0)  # error: arg-type, reportArgumentType
    sp.lsc(image, 100, 0.1, 5)  # error: call-overload, reportCallIssue
    sp.slic(image, data_range="all")  # error: call-overload, reportCallIssue
    sp.slic(image, data_range=(0, 1, 2))  # error: arg-type, reportCallIssue
    sp.lsc(image, bands="red")  # error: arg-type, reportCallIssue
    sp.snic(image, channel_axis=0.5)  # error: call-overload, reportCallIssue
    sp.Segmenter(data_range=255)  # error: arg-type, reportArgumentType
    sp.Segmenter(bands=0.5)  # error: arg-type, reportArgumentType
    sp.Segmenter(bands="PCA")  # error: arg-type, reportArgumentType
    sp.hierarchy(image, data_range="all")  # error: call-overload, reportArgumentType
    sp.hierarchy(image, bands=(0.5, 1.5))  # error: arg-type, reportArgumentType
    sp.hierarchy(image, channel_axis="last")  # error: call-overload, reportArgumentType
    sp.boundaries(image, labels, data_range="stretch")  # error: call-overload, reportCallIssue
    sp.show(image, labels, order="rgba")  # error: call-overload, reportArgumentType
    sp.to_svg(labels, line_width="1")  # error: arg-type, reportArgumentType
    sp.to_svg(labels, shading="flat")  # error: arg-type, reportArgumentType
    sp.to_coco(labels, "a", classes=3)  # error: arg-type, reportArgumentType
    sp.to_cvat(labels, 3)  # error: arg-type, reportArgumentType
    sp.to_label_studio(labels, None)  # error: arg-type, reportArgumentType
    video.set(merge_rule="any")  # error: arg-type, reportArgumentType
    sp.hierarchy(image, algorithm="watershed")  # error: call-overload, reportArgumentType
    sp.hierarchy(image, iterations="5")  # error: call-overload, reportArgumentType
    wrong: sp.Parameters = {"n_segments": "many"}  # error: typeddict-item, reportAssignmentType
    sp.Segmenter(**wrong)


def arrays() -> None:
    sp.slic("not an image")  # error: arg-type, reportCallIssue
    sp.slic(bits)  # error: arg-type, reportCallIssue
    sp.slic([bits])  # error: list-item, reportCallIssue
    sp.snic(bits)  # error: arg-type, reportCallIssue
    sp.slic(image, out=integers)  # error: type-var, reportCallIssue
    sp.slic(image, start_label=1, out=labels)  # error: arg-type, reportCallIssue
    sp.slic([image], out=labels)  # error: call-overload, reportCallIssue
    sp.slic([image], mask=labels > 0)  # error: call-overload, reportCallIssue
    sp.slic(image, mask=doubles)  # error: arg-type, reportCallIssue
    sp.slic(image, stream=7)  # error: call-overload, reportCallIssue
    sp.snic(image, stream=None)  # error: call-overload, reportCallIssue
    video.segment(bits)  # error: arg-type, reportArgumentType
    video.segment([image])  # error: call-overload, reportArgumentType
    video.segment(image, out=integers)  # error: type-var, reportArgumentType
    sp.boundaries(bits, labels)  # error: type-var, reportArgumentType
    sp.boundaries(image, doubles)  # error: arg-type, reportArgumentType
    sp.boundaries(image, labels, color="red")  # error: arg-type, reportArgumentType
    sp.mean_color(image, doubles)  # error: arg-type, reportArgumentType
    sp.contours(doubles)  # error: arg-type, reportArgumentType
    sp.region_at(labels, 0.5, 0)  # error: arg-type, reportArgumentType
    sp.rle(doubles, 0)  # error: arg-type, reportArgumentType
    sp.to_png16(3.5, labels)  # error: arg-type, reportArgumentType
    sp.cut(wide, video.merges, 3)  # error: type-var, reportArgumentType
    sp.cut(labels, labels, 3)  # error: arg-type, reportArgumentType
    sp.cut(labels, video.merges, height="1")  # error: arg-type, reportArgumentType
    sp.linkage(3)  # error: arg-type, reportArgumentType
    sp.rles(doubles)  # error: arg-type, reportArgumentType
    sp.show(bits, labels)  # error: arg-type, reportArgumentType
    sp.show(image, labels, ax=3)  # error: call-overload, reportArgumentType
    sp.browse(image, doubles, video.merges)  # error: arg-type, reportArgumentType
    sp.to_pandas(3)  # error: arg-type, reportArgumentType
    sp.to_polars([1])  # error: arg-type, reportArgumentType
    sp.to_arrow("a")  # error: arg-type, reportArgumentType
    sp.to_geojson(doubles)  # error: arg-type, reportArgumentType
    sp.to_svg(doubles)  # error: arg-type, reportArgumentType
    sp.Picture(doubles)  # error: arg-type, reportArgumentType
    sp.adjacency(image.shape)  # error: arg-type, reportArgumentType
    sp.segment_video("a.mp4", order="bgr")  # error: call-arg, reportCallIssue
    sp.segment_video(image)  # error: arg-type, reportArgumentType


def results() -> None:
    a: NDArray[np.int32] = sp.slic(image)  # error: assignment, reportAssignmentType
    b: NDArray[np.uint16] = sp.slic(image, start_label=1)  # error: assignment, reportAssignmentType
    c: NDArray[np.uint16] = sp.slic([image])  # error: assignment, reportAssignmentType
    d: list[NDArray[np.uint16]] = sp.slic(image)  # error: assignment, reportAssignmentType
    e: NDArray[np.int64] = video.segment(image)  # error: assignment, reportAssignmentType
    f: NDArray[np.float64] = video.regions["centroid"]  # error: assignment, reportAssignmentType
    g: NDArray[np.int32] = video.edge_index  # error: assignment, reportAssignmentType
    h: str = sp.rle(labels, 0)["counts"]  # error: assignment, reportAssignmentType
    i: NDArray[np.uint8] = sp.region_at(labels, 0, 0).mask  # error: assignment, reportAssignmentType
    j: int = sp.__version__  # error: assignment, reportAssignmentType
    k: str = sp.contours(labels)  # error: assignment, reportAssignmentType
    l: NDArray[np.int32] = sp.adjacency(labels).data  # error: assignment, reportAssignmentType
    m: str = sp.cut(*sp.hierarchy(image), 3)  # error: assignment, reportAssignmentType
    n: NDArray[np.uint16] = sp.mean_color(image, labels)  # error: assignment, reportAssignmentType
    o: NDArray[np.uint16] = sp.boundaries(image, labels)  # error: assignment, reportAssignmentType
    p: str = video.n_regions  # error: assignment, reportAssignmentType
    q: str = video.device  # error: assignment, reportAssignmentType
    r: bytes = sp.to_png16("a", labels)  # error: func-returns-value, reportAssignmentType
    s: bytes = sp.rles(labels, compress=False)[0]["counts"]  # error: assignment, reportAssignmentType
    t: bytes = sp.show(image, labels)  # error: assignment, reportAssignmentType
    u: NDArray[np.float32] = sp.linkage(video.merges)  # error: assignment, reportAssignmentType
    v: bytes = sp.to_svg(labels)  # error: assignment, reportAssignmentType
    w: str = sp.to_geojson(labels)  # error: assignment, reportAssignmentType
    x: str = sp.to_coco(labels, "a")  # error: assignment, reportAssignmentType
    y: bytes = sp.to_cvat(labels, "a")  # error: assignment, reportAssignmentType
    z: str = sp.to_pandas(video.regions)  # error: assignment, reportAssignmentType
    f2: NDArray[np.int32] = next(sp.segment_video("a.mp4")).births  # error: assignment, reportAssignmentType
    print(s, t, u, v, w, x, y, z, f2)
    print(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)


def fields() -> None:
    video.regions["aera"]  # error: index, reportCallIssue
    video.motion["speed"]  # error: index, reportCallIssue
    video.neighbors["c"]  # error: index, reportCallIssue
    video.merges["a", "b"]  # error: index, reportCallIssue
    video.events["track"]  # error: index, reportCallIssue
    video.regions = video.regions  # error: assignment, reportAttributeAccessIssue
    video.n_regions = 3  # error: misc, reportAttributeAccessIssue
    sp.rle(labels, 0)["count"]  # error: typeddict-item, reportGeneralTypeIssues
    video.parameters["nonsense"]  # error: typeddict-item, reportGeneralTypeIssues


def on_device(tensor: Tensor, numba: NumbaArray) -> None:
    # Tables are of the library that the annotation names.
    video.segment(numba)  # error: call-overload, reportArgumentType
    theirs = sp.Segmenter[Tensor]()
    theirs.segment(image)  # error: call-overload, reportArgumentType
    theirs.segment(numba)  # error: call-overload, reportArgumentType
    theirs.regions.dtype  # error: attr-defined, reportAttributeAccessIssue
    a: Tensor = sp.slic(numba)  # error: assignment, reportAssignmentType
    b: sp.DeviceArray = sp.slic(tensor)  # error: assignment, reportAssignmentType
    c: NDArray[Any] = sp.slic(tensor)  # error: assignment, reportAssignmentType
    sp.slic(numba, mask=labels > 0)  # error: call-overload, reportCallIssue
    sp.slic(tensor, out=doubles)  # error: type-var, reportCallIssue
    sp.slic(tensor, stream="main")  # error: call-overload, reportCallIssue
    sp.snic(numba)  # error: call-overload, reportCallIssue
    sp.slic([tensor, image])  # error: list-item, reportCallIssue
    sp.Segmenter[int]()  # error: type-var, reportInvalidTypeArguments
    print(a, b, c)
