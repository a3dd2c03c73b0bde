# SPDX-License-Identifier: MPL-2.0
"""Every public name as users write it: checkers find no error here, and values are of the types that they find."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import numpy as np
import superpixels as sp
from numpy.typing import NDArray

if TYPE_CHECKING:
    import ipywidgets
    import pandas
    import polars
    import pyarrow
    from typed_libraries import (
        ApiArray,
        CuPyArray,
        DataArray,
        JaxArray,
        NumbaArray,
        StandardArray,
        Tensor,
        TorchDevice,
        TorchStream,
    )
    from typing_extensions import assert_type
else:
    from typed_values import assert_type

IMAGE = np.zeros((24, 32, 3), np.uint8)
IMAGE[:, 16:] = 200
CODES, FLOATS = (257 * IMAGE.astype(np.int32)).astype(np.uint16), (IMAGE / 255).astype(np.float32)
DOUBLES, INTEGERS = FLOATS.astype(np.float64), IMAGE.astype(np.int32)
MASK = np.ones((24, 32), np.bool_)
# Of SLIC, which has labels of 32 bits where those of 16 do not suffice.
Map = Union[NDArray[np.uint16], NDArray[np.uint32]]


def functions() -> None:
    assert_type(sp.slic(IMAGE), Map)
    assert_type(sp.slic(CODES, 30, 20), Map)
    assert_type(sp.slic(FLOATS, n_segments=30, compactness=5.5, color_space="rgb", mask=MASK), NDArray[np.int32])
    assert_type(sp.slic(IMAGE, mask=MASK, start_label=1, out=np.empty((24, 32), np.int32)), NDArray[np.int32])
    assert_type(sp.slic([IMAGE], progress=lambda done, total: print(done / total)), list[Map])
    assert_type(sp.slic(np.stack([IMAGE, IMAGE]), order="bgr", threads=1, start_label=0), Map)
    assert_type(sp.slic(IMAGE, start_label=1), NDArray[np.int32])
    assert_type(sp.slic(IMAGE, out=np.empty((24, 32), np.uint16)), NDArray[np.uint16])
    assert_type(sp.slic(IMAGE, out=np.empty((24, 32), np.uint32)), NDArray[np.uint32])
    assert_type(sp.snic(IMAGE, out=np.empty((24, 32), np.uint32)), NDArray[np.uint32])
    assert_type(sp.slic(IMAGE, start_label=-3, out=np.empty((24, 32), np.int32)), NDArray[np.int32])
    assert_type(sp.slic([IMAGE, IMAGE[:20]]), list[Map])
    assert_type(sp.slic([IMAGE, CODES, FLOATS]), list[Map])
    assert_type(sp.slic((IMAGE, FLOATS), start_label=1), list[NDArray[np.int32]])
    assert_type(sp.lsc(IMAGE, 30, ratio=0.1), NDArray[np.uint16])
    assert_type(sp.lsc([IMAGE], start_label=1), list[NDArray[np.int32]])
    assert_type(sp.quickshift(IMAGE, sigma=2, tau=8.0), NDArray[np.uint16])
    assert_type(sp.snic(IMAGE, 30, n_regions=5, merge_rule="either"), NDArray[np.uint16])
    assert_type(sp.snic((IMAGE, IMAGE)), list[NDArray[np.uint16]])
    assert_type(sp.slic(DOUBLES), Map)
    assert_type(sp.slic(FLOATS.astype(np.float16), start_label=1), NDArray[np.int32])
    assert_type(sp.slic(INTEGERS, data_range=(0, 200)), Map)
    assert_type(sp.lsc([DOUBLES, INTEGERS], data_range="image"), list[NDArray[np.uint16]])
    assert_type(sp.snic(CODES[..., 0].copy(), data_range="stretch"), NDArray[np.uint16])
    assert_type(sp.slic(INTEGERS, data_range=(0.5, 200.5), bands=[2, 1, 0]), Map)
    assert_type(sp.quickshift(IMAGE.transpose(2, 0, 1), bands=(0, 1, 2), channel_axis=0), NDArray[np.uint16])
    assert_type(sp.slic(INTEGERS, bands="pca"), Map)
    assert_type(sp.slic(IMAGE, bands=1, channel_axis=None, data_range=None), Map)
    # Words of scikit-image.
    assert_type(sp.slic(IMAGE, max_num_iter=7, slic_zero=True), Map)
    assert_type(sp.lsc(IMAGE, max_num_iter=7), NDArray[np.uint16])
    assert_type(sp.quickshift(IMAGE, kernel_size=2.5), NDArray[np.uint16])


def images() -> None:
    for one in sp.segment_images([IMAGE, FLOATS], "lsc", threads=1, n_segments=30, ratio=0.1):
        assert_type(one, sp.SegmentedImage[NDArray[np.uint16]])
        assert_type(one.labels, NDArray[np.uint16])
        assert_type(one.index + one.n_regions, int)
        assert_type(one.regions["mean_lab"].dtype, np.dtype[np.float32])
        assert_type(one.neighbors["length"].dtype, np.dtype[np.uint32])
        assert_type(one.edge_index, NDArray[np.int64])
    batch = np.stack([IMAGE, IMAGE])
    [first, second] = sp.segment_images(batch, mask=MASK, levels=True, progress=lambda done, total: None)
    assert_type(first.labels, NDArray[np.int32])
    assert_type(second.merges["height"].dtype, np.dtype[np.float32])
    [first, second] = sp.segment_images(batch, mask=(MASK for _ in batch), device="cpu", bands=[2, 1, 0])
    assert_type(first.labels, NDArray[np.int32])
    pictures = (INTEGERS[:height] for height in (20, 24))
    assert_type([one.labels for one in sp.segment_images(pictures, data_range=(0, 200))], list[NDArray[np.uint16]])
    assert_type(next(sp.segment_images((CODES, IMAGE), start_label=1)).labels, NDArray[np.int32])
    settings: sp.Parameters = {"n_segments": 30, "merge": 2.0}
    assert_type(list(sp.segment_images(iter([DOUBLES]), **settings))[0].labels, NDArray[np.uint16])


def segmenter() -> None:
    video = sp.Segmenter("slic", n_segments=30, temporal=True, events=True, levels=True)
    for shift in range(3):
        frame = np.ascontiguousarray(np.roll(IMAGE, shift, axis=1))
        assert_type(video.segment(frame), Map)
    assert_type(video.segment(FLOATS, out=np.empty((24, 32), np.uint16)), NDArray[np.uint16])
    assert_type(video.segment(FLOATS, out=np.empty((24, 32), np.uint32)), NDArray[np.uint32])
    assert_type(video.segment(FLOATS, out=np.empty((24, 32), np.int32), mask=MASK), NDArray[np.int32])
    assert_type(video.segment(IMAGE, mask=MASK.view(np.uint8), progress=True), NDArray[np.int32])
    assert_type(video.segment(IMAGE, start_label=1), NDArray[np.int32])
    regions, motion, neighbors = video.regions, video.motion, video.neighbors
    assert_type(regions["track_id"].dtype, np.dtype[np.uint32])
    assert_type(regions["area"].dtype, np.dtype[np.uint32])
    assert_type(regions["centroid"].dtype, np.dtype[np.float32])
    assert_type(regions["mean_rgb"].dtype, np.dtype[np.uint8])
    assert_type(regions["mean_lab"].dtype, np.dtype[np.float32])
    assert_type(regions["bounds"].dtype, np.dtype[np.uint16])
    large = regions[regions["area"] > 20].copy()
    assert_type(regions[regions["track_id"] == 7]["area"].dtype, np.dtype[np.uint32])
    assert_type(large["track_id"][motion["velocity"][regions["area"] > 20][:, 0] >= 0], NDArray[np.uint32])
    assert_type(regions[np.argsort(regions["area"])][:3]["area"].dtype, np.dtype[np.uint32])
    assert_type(regions[0], np.void)
    assert_type(motion["age"].dtype, np.dtype[np.uint32])
    assert_type(neighbors["a"].dtype, np.dtype[np.uint32])
    assert_type(neighbors[neighbors["length"] > 3]["b"].dtype, np.dtype[np.uint32])
    assert_type(video.merges["height"].dtype, np.dtype[np.float32])
    assert_type(video.merges["area"].dtype, np.dtype[np.uint32])
    assert_type(video.edge_index, NDArray[np.int64])
    events = video.events
    split = events[events["kind"] == sp.EventKind.SPLIT]
    assert_type(split["other"].dtype, np.dtype[np.uint32])
    assert_type([sp.EventKind(kind) for kind in events["kind"].tolist()], list[sp.EventKind])
    assert_type(video.births, NDArray[np.uint32])
    assert_type(video.deaths, NDArray[np.uint32])
    assert_type(video.is_cut, bool)
    assert_type(video.n_regions, int)
    assert_type(video.next_id, int)
    assert_type(video.threads, int)
    assert_type(video.device, "str | None")
    video.set(compactness=20, merge=1.5)
    video.set(n_segments=None)
    video.reset()
    assert_type(video.parameters, sp.Parameters)
    assert_type(video.parameters.get("compactness", 10.0), float)
    assert video.algorithm == "slic" and video.order == "rgb"

    assert_type(sp.Segmenter(bands="pca", temporal=True).segment(DOUBLES), Map)
    wide = sp.Segmenter(data_range=(0, 200), bands=[0, 1, 2], channel_axis=-1)
    assert_type(wide.segment(INTEGERS), Map)
    assert_type(wide.segment(DOUBLES), Map)

    settings: sp.Parameters = {"n_segments": 30, "merge_rule": "mutual"}
    settings["superpixel_size"] = None
    same = sp.Segmenter(device="cpu", order="bgr", threads=1, regions=False, neighbors=False, **settings)
    same.set(**settings)
    rows: NDArray[np.void] = regions
    sums(video, rows)


def sums(video: sp.Segmenter, rows: NDArray[np.void]) -> int:
    """Names a Segmenter whose frames are numpy's."""
    return len(rows) + int(video.regions["area"].sum())


def helpers(folder: Path) -> None:
    labels = sp.slic(IMAGE, 20)
    wide = labels.astype(np.int64)
    assert_type(sp.boundaries(IMAGE, labels), NDArray[np.uint8])
    assert_type(sp.boundaries(IMAGE, wide, color=(1, 2, 3)), NDArray[np.uint8])
    assert_type(sp.mean_color(IMAGE, labels), NDArray[np.uint8])
    assert_type(sp.boundaries(IMAGE.astype(np.float32), labels, [1, 2, 3]), NDArray[np.float32])
    assert_type(sp.boundaries(np.stack([CODES]), labels[None], data_range="image"), NDArray[np.uint16])
    assert_type(sp.boundaries(INTEGERS, labels, data_range=(0, 200)), NDArray[np.int32])
    assert_type(sp.mean_color(DOUBLES, wide), NDArray[np.float64])
    assert_type(sp.contours(wide, outside=7), dict[int, list[list[NDArray[np.int32]]]])
    assert_type(sp.contours(labels), dict[int, list[list[NDArray[np.int32]]]])
    assert_type(sp.select(IMAGE, points=[(30, 2)], point_labels=[1]), NDArray[np.bool_])
    [single] = sp.segment_images([IMAGE])
    seen = sp.Objects().update(single.labels, single, [sp.Detection(box=(9.5, 0, 32, 24))])
    assert_type(seen, list[sp.TrackedObject])
    assert_type(seen[0].mask, NDArray[np.bool_])
    assert_type(seen[0].bounds, tuple[int, int, int, int])
    region = sp.region_at(labels, x=3, y=2)
    assert_type(region, sp.RegionAt)
    assert_type(region.mask, NDArray[np.bool_])
    assert_type(region.bounds, tuple[int, int, int, int])
    assert_type(region.area + region.label, int)
    assert_type(sp.rle(labels, 0)["counts"], bytes)
    assert_type(sp.rle(wide, 0, compress=False)["counts"], list[int])
    assert_type(sp.rle(labels, 0, compress=bool(folder))["size"], list[int])
    assert_type(sp.rles(labels)[0]["counts"], bytes)
    assert_type(sp.rles(wide, compress=False, outside=3)[0]["counts"], list[int])
    sp.to_png16(folder / "labels.png", labels)
    sp.to_png16(str(folder / "labels.png"), wide)
    fine, merges = sp.hierarchy(IMAGE, 40, algorithm="lsc", mask=MASK, ratio=0.1, refine=1)
    assert_type(fine, NDArray[np.int32])
    assert_type(merges["area"].dtype, np.dtype[np.uint32])
    assert_type(sp.cut(fine, merges, 5), NDArray[np.int32])
    assert_type(sp.hierarchy(INTEGERS, bands="pca")[0], NDArray[np.uint16])
    given = sp.hierarchy(INTEGERS, bands=[0, 1, 2], data_range=(0, 200), channel_axis=2)
    assert_type(given[0], NDArray[np.uint16])
    assert_type(sp.cut(fine, merges, height=2.5), NDArray[np.int32])
    assert_type(sp.linkage(merges), NDArray[np.float64])
    columns: dict[str, NDArray[Any]] = {"a": merges["a"], "b": merges["b"], "height": merges["height"], "area": merges["area"]}
    assert_type(sp.cut(fine, columns, 5), NDArray[np.int32])
    assert_type(sp.linkage(columns, int(fine.max()) + 1), NDArray[np.float64])
    picture = sp.show(IMAGE, labels, color=(1, 2, 3), mean_color=True, order="bgr")
    assert_type(picture, sp.Picture)
    assert_type(picture.pixels, NDArray[np.uint8])
    picture.save(folder / "picture.png")
    assert_type(sp.show(np.stack([DOUBLES]), labels[None], color=None, data_range=(0, 1)), sp.Picture)
    assert_type(sp.to_svg(labels), str)
    assert_type(sp.to_svg(wide, FLOATS, color=[0, 0, 255], line_width=2, outside=3, data_range="image"), str)
    assert_type(sp.to_svg(labels, tolerance=0.7, smoothness=2, ids={0: "sky"}), str)
    assert_type(sp.to_svg(labels, ids=["sky", "tree"]), str)
    assert_type(sp.to_svg(labels, FLOATS, shading=True), str)
    assert_type(sp.smooth_labels(wide, 3, outside=None, threads=1), NDArray[np.int64])
    collection = sp.to_geojson(labels, transform=(0.5, 0, 10, 0, -0.5, 60), outside=None)
    assert_type(collection, dict[str, Any])
    assert_type(sp.to_coco(labels, "picture.png", classes={0: "sky"}, image_id=3, first_id=7), dict[str, Any])
    assert_type(sp.to_label_studio(wide, "http://localhost/picture.png", classes="region"), dict[str, Any])
    assert_type(sp.to_cvat(labels, "picture.png", image_id=1, outside=None), str)
    assert_type(sp.__version__, str)


def tables(video: sp.Segmenter, table: dict[str, Tensor]) -> None:
    """For checkers alone: the libraries may be absent."""
    assert_type(sp.to_pandas(video.regions), pandas.DataFrame)
    assert_type(sp.to_polars(video.motion), polars.DataFrame)
    assert_type(sp.to_arrow(table), pyarrow.Table)
    assert_type(sp.to_arrow(video.events).num_rows, int)
    labels, merges = sp.hierarchy(IMAGE)
    assert_type(sp.browse(IMAGE, labels, merges, n_regions=30, color=None, data_range="image"), ipywidgets.VBox)
    assert_type(sp.to_geojson(labels, table=video.regions), dict[str, Any])
    for frame in sp.segment_video(Path("clip.mp4"), "lsc", device="cpu", threads=1, n_segments=300, ratio=0.1):
        assert_type(frame, sp.Frame)
        assert_type(frame.image, NDArray[np.uint8])
        assert_type(frame.labels, NDArray[np.uint16])
        assert_type(frame.seconds + frame.index, float)
        assert_type(frame.pts, "int | None")
        assert_type(frame.is_cut, bool)
        assert_type(frame.births, NDArray[np.uint32])
        assert_type(frame.deaths, NDArray[np.uint32])
        assert_type(frame.merged_into, dict[int, int])
        assert_type(frame.n_regions, int)
        assert_type(frame.edge_index, NDArray[np.int64])
        assert_type(frame.regions["area"].dtype, np.dtype[np.uint32])
        assert_type(frame.motion["age"].dtype, np.dtype[np.uint32])
        assert_type(frame.neighbors["a"].dtype, np.dtype[np.uint32])
        assert_type(frame.events["other"].dtype, np.dtype[np.uint32])
    with closing(sp.segment_video("clip.mp4")) as frames:
        assert_type(next(frames), sp.Frame)


class Axes:
    """As matplotlib's."""

    def imshow(self, pixels: NDArray[np.uint8]) -> object: ...
    def set_axis_off(self) -> None: ...


def axes(ax: Axes) -> None:
    """For checkers alone."""
    assert_type(sp.show(IMAGE, sp.slic(IMAGE), ax=ax), Axes)


def graph() -> None:
    """Takes SciPy."""
    matrix = sp.adjacency(sp.slic(IMAGE, 20))
    assert_type(matrix.toarray(), NDArray[np.int64])
    assert_type(matrix.data, NDArray[np.int64])
    assert_type(matrix.indices, NDArray[np.int32])
    assert_type(matrix.tocoo().row, NDArray[np.int32])
    assert_type(matrix.shape, tuple[int, int])
    assert_type(matrix.nnz, int)
    video = sp.Segmenter()
    video.segment(IMAGE)
    assert_type(sp.adjacency(video).toarray(), NDArray[np.int64])


def on_device(
    tensor: Tensor,
    array: CuPyArray,
    jax: JaxArray,
    numba: NumbaArray,
    standard: StandardArray,
    api: ApiArray,
    data: DataArray,
    stream: TorchStream,
    device: TorchDevice,
) -> None:
    """For checkers alone: the libraries are not there."""
    assert_type(sp.slic(tensor, 300, stream=stream), Tensor)
    assert_type(sp.slic(tensor, start_label=1, mask=tensor, check=True).long(), Tensor)
    assert_type(sp.lsc([tensor, tensor]), list[Tensor])
    assert_type(sp.quickshift(array, stream=7), CuPyArray)
    assert_type(sp.slic(tensor, out=array), CuPyArray)
    assert_type(sp.slic(jax), sp.DeviceArray)
    assert_type(sp.slic(standard, mask=standard), sp.DeviceArray)
    assert_type(sp.slic(numba, out=tensor), Tensor)
    assert_type(sp.slic((numba, jax)), list[sp.DeviceArray])

    # In the host's memory, too.
    assert_type(sp.slic(tensor, mask=MASK, data_range=(0, 4095), bands=0, channel_axis=0), Tensor)
    assert_type(sp.snic(tensor, mask=tensor), Tensor)
    assert_type(sp.slic(api, 300, data_range="image"), ApiArray)
    assert_type(sp.snic([api, api]), list[ApiArray])
    assert_type(sp.quickshift([tensor], start_label=1), list[Tensor])
    assert_type(sp.slic(data), Map)
    assert_type(sp.snic(data, start_label=1), NDArray[np.int32])
    for one in sp.segment_images(tensor, channel_axis=1, mask=tensor):
        assert_type(one.labels.long(), Tensor)
        assert_type(one.edge_index, NDArray[np.int64])
    assert_type(next(sp.segment_images([tensor, tensor], mask=[MASK, MASK])).labels, Tensor)
    assert_type(next(sp.segment_images((api for _ in range(3)), start_label=1)).labels, ApiArray)
    assert_type(next(sp.segment_images([data])).labels, NDArray[np.uint16])
    batch = sp.segment_batch(tensor, "lsc", mask=tensor, n_regions=20, regions=False)
    assert_type(batch.labels, Tensor)
    assert_type(batch.edge_index, Tensor)
    assert_type(batch.neighbors["length"], Tensor)
    assert_type(batch[0], sp.PictureOfBatch)
    hosted = sp.Segmenter()
    assert_type(hosted.segment(tensor, mask=MASK), Tensor)
    assert_type(hosted.segment(api), ApiArray)
    assert_type(hosted.segment(tensor, out=tensor), Tensor)
    assert_type(hosted.segment(data), Map)
    assert_type(sp.hierarchy(tensor)[0], NDArray[np.uint16])
    labels = sp.slic(data)
    assert_type(sp.lsc(tensor, out=labels), Map)
    sp.boundaries(tensor, labels)
    sp.show(data, labels)
    sp.mean_color(api, labels)
    sp.hierarchy(api)

    video = sp.Segmenter[Tensor](temporal=True, device=device)
    assert_type(video.segment(tensor, mask=tensor, stream=stream), Tensor)
    assert_type(video.segment(tensor, out=array), CuPyArray)
    assert_type(video.regions, dict[str, Tensor])
    assert_type(video.edge_index.long(), Tensor)
    other: sp.Segmenter[sp.DeviceArray] = sp.Segmenter(device="cuda")
    theirs = other.segment(jax)
    assert_type(theirs, sp.DeviceArray)
    assert_type(other.motion["velocity"], sp.DeviceArray)
    assert_type(theirs.shape, tuple[int, ...])
    assert_type(theirs.dtype + theirs.device, str)
    assert_type(theirs.numpy(), NDArray[Any])
    assert_type(theirs.__dlpack_device__(), tuple[int, int])
    assert_type(sp.slic(theirs), sp.DeviceArray)
    assert_type(len(theirs), int)
