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
    sp.hierarchy(image, levels=False)  # error: call-arg, reportCallIssue
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
    video.set(merge_rule="any")  # error: arg-type, reportArgumentType
    sp.hierarchy(image, algorithm="watershed")  # error: arg-type, reportArgumentType
    sp.hierarchy(image, iterations="5")  # error: arg-type, reportArgumentType
    wrong: sp.Parameters = {"n_segments": "many"}  # error: typeddict-item, reportAssignmentType
    sp.Segmenter(**wrong)


def arrays() -> None:
    sp.slic("not an image")  # error: arg-type, reportCallIssue
    sp.slic(doubles)  # error: arg-type, reportCallIssue
    sp.slic([doubles])  # error: list-item, reportCallIssue
    sp.snic(integers)  # error: arg-type, reportCallIssue
    sp.slic(image, out=integers)  # error: arg-type, reportCallIssue
    sp.slic(image, start_label=1, out=labels)  # error: arg-type, reportCallIssue
    sp.slic([image], out=labels)  # error: call-overload, reportCallIssue
    sp.slic([image], mask=labels > 0)  # error: call-overload, reportCallIssue
    sp.slic(image, mask=doubles)  # error: arg-type, reportCallIssue
    sp.slic(image, stream=7)  # error: call-overload, reportCallIssue
    sp.snic(image, stream=None)  # error: call-overload, reportCallIssue
    video.segment(doubles)  # error: arg-type, reportArgumentType
    video.segment([image])  # error: arg-type, reportArgumentType
    video.segment(image, out=integers)  # error: arg-type, reportArgumentType
    sp.boundaries(doubles, labels)  # error: arg-type, reportArgumentType
    sp.boundaries(image, doubles)  # error: arg-type, reportArgumentType
    sp.boundaries(image, labels, color="red")  # error: arg-type, reportArgumentType
    sp.mean_color(image, doubles)  # error: arg-type, reportArgumentType
    sp.contours(doubles)  # error: arg-type, reportArgumentType
    sp.region_at(labels, 0.5, 0)  # error: arg-type, reportArgumentType
    sp.rle(doubles, 0)  # error: arg-type, reportArgumentType
    sp.to_png16(3.5, labels)  # error: arg-type, reportArgumentType
    sp.cut(wide, video.merges, 3)  # error: arg-type, reportArgumentType
    sp.cut(labels, labels, 3)  # error: arg-type, reportArgumentType
    sp.adjacency(image.shape)  # error: arg-type, reportArgumentType


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
    video.segment(tensor)  # error: arg-type, reportArgumentType
    theirs = sp.Segmenter[Tensor]()
    theirs.segment(image)  # error: call-overload, reportArgumentType
    theirs.segment(numba)  # error: call-overload, reportArgumentType
    theirs.regions.dtype  # error: attr-defined, reportAttributeAccessIssue
    a: Tensor = sp.slic(numba)  # error: assignment, reportAssignmentType
    b: sp.DeviceArray = sp.slic(tensor)  # error: assignment, reportAssignmentType
    c: NDArray[Any] = sp.slic(tensor)  # error: assignment, reportAssignmentType
    sp.slic(tensor, mask=labels > 0)  # error: call-overload, reportCallIssue
    sp.slic(tensor, out=labels)  # error: call-overload, reportCallIssue
    sp.slic(tensor, stream="main")  # error: call-overload, reportCallIssue
    sp.snic(tensor)  # error: call-overload, reportCallIssue
    sp.slic([tensor, image])  # error: list-item, reportCallIssue
    sp.Segmenter[int]()  # error: type-var, reportInvalidTypeArguments
    print(a, b, c)
