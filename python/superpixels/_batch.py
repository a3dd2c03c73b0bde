# SPDX-License-Identifier: MPL-2.0
"""Labels, tables and one graph of a batch of pictures: on a device in one set of launches."""

from __future__ import annotations

import operator as _operator
import sys as _sys
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, cast

import numpy as _np

from . import _native
from ._images import segment_images as _segment_images

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from typing_extensions import Unpack

    from numpy.typing import NDArray

    from ._functions import Parameters
    from ._images import SegmentedImage
    from ._native import _Algorithm, _Order

__all__ = ["PictureOfBatch", "RegionBatch", "segment_batch"]

_ArrayT = TypeVar("_ArrayT")
# The number of such devices in DLPack.
_CUDA = 2


class PictureOfBatch(NamedTuple):
    """One picture of a `RegionBatch`: views of its arrays.

    Attributes
    ----------
    labels : array of int32, shape (H, W)
        Its label map.
    regions : dict of arrays, or None
        Columns of its regions: row i is of label i, or of i + `start_label`.
    edge_index : array of int64, shape (2, 2E), or None
        Its pairs in both directions, with regions numbered from 0: an array of its own.

    See Also
    --------
    RegionBatch : All pictures together.

    Examples
    --------
    >>> import superpixels as sp
    >>> sp.PictureOfBatch._fields
    ('labels', 'regions', 'edge_index')
    """

    labels: Any
    regions: dict[str, Any] | None
    edge_index: Any


class RegionBatch(Generic[_ArrayT]):
    """Regions of a batch of pictures, as graph libraries batch graphs.

    All arrays are where the images are, and of their library: torch's or CuPy's, else `DeviceArray` on a device and numpy's in the
    host's memory. On a device they are in the order of the caller's stream. Regions of all pictures are numbered through: those of picture i are rows `ptr[i]` to `ptr[i + 1]`.

    Attributes
    ----------
    labels : array of int32, shape (N, H, W)
        Label maps, each from `start_label` on.
    ptr : array of int64, shape (N + 1,)
        Regions before each picture, and of all.
    batch : array of int64, shape (R,)
        The picture of each region.
    regions : dict of arrays of R rows
        Columns of all regions, as `Segmenter.regions` has them on a device.
    neighbors : dict of arrays of E rows
        Pairs of each picture, with labels from 0; those of picture i are rows `pair_ptr[i]` to `pair_ptr[i + 1]`.
    pair_ptr : array of int64, shape (N + 1,)
        Pairs before each picture, and of all.
    edge_index : array of int64, shape (2, 2E)
        Pairs of all in both directions, by the rows of `regions`: with `batch` and `ptr` what PyTorch Geometric makes of a list of graphs.

    See Also
    --------
    segment_batch : Gives it.

    Examples
    --------
    >>> import superpixels as sp
    >>> sp.RegionBatch.__name__
    'RegionBatch'
    """

    def __init__(self, labels: _ArrayT, tables: dict[str, Any]) -> None:
        self.labels = labels
        self._tables = tables

    def _found(self, name: str, wanted: str) -> Any:
        if name not in self._tables:
            raise RuntimeError(f"pass {wanted}=True to the call that has given this")
        return self._tables[name]

    @property
    def ptr(self) -> _ArrayT:
        return cast("_ArrayT", self._tables["ptr"])

    @property
    def batch(self) -> _ArrayT:
        return cast("_ArrayT", self._tables["batch"])

    @property
    def regions(self) -> dict[str, _ArrayT]:
        return cast("dict[str, _ArrayT]", self._found("regions", "regions"))

    @property
    def neighbors(self) -> dict[str, _ArrayT]:
        return cast("dict[str, _ArrayT]", self._found("neighbors", "neighbors"))

    @property
    def pair_ptr(self) -> _ArrayT:
        return cast("_ArrayT", self._found("pair_ptr", "neighbors"))

    @property
    def edge_index(self) -> _ArrayT:
        return cast("_ArrayT", self._found("edge_index", "neighbors"))

    def __len__(self) -> int:
        labels: Any = self.labels
        return int(labels.shape[0])

    def __getitem__(self, index: int) -> PictureOfBatch:
        """Views of one picture, of torch, CuPy and numpy. Waits for `ptr`."""
        at = range(len(self))[index]
        labels: Any = self.labels
        if not hasattr(labels, "__getitem__"):
            raise TypeError("pictures are taken of torch and CuPy; make arrays of theirs with from_dlpack")

        def bounds(ptr: Any) -> tuple[int, int]:
            return int(ptr[at]), int(ptr[at + 1])

        first, end = bounds(self.ptr)
        regions: dict[str, Any] | None = self._tables.get("regions")
        columns = None if regions is None else {name: column[first:end] for name, column in regions.items()}
        edges: Any = self._tables.get("edge_index")
        if edges is not None:
            begin, stop = bounds(self.pair_ptr)
            edges = edges[:, 2 * begin : 2 * stop] - first
        return PictureOfBatch(labels[at], columns, edges)

    def __repr__(self) -> str:
        labels: Any = self.labels
        count, height, width = labels.shape
        return f"RegionBatch({count} pictures, {width}x{height}, {self._tables['batch'].shape[0]} regions)"


def segment_batch(
    images: _ArrayT | Sequence[_ArrayT],
    algorithm: _Algorithm = "slic",
    *,
    mask: Any = None,
    prior: Any = None,
    prior_cuts: bool = True,
    prior_price: float = 0.0,
    start_label: int = 0,
    order: _Order = "rgb",
    data_range: tuple[float, float] | Literal["image", "stretch"] | None = None,
    bands: int | Sequence[int] | Literal["pca"] | None = None,
    channel_axis: int | None = None,
    regions: bool = True,
    neighbors: bool = True,
    linear_light: bool = False,
    stream: Any = None,
    check: bool = False,
    chunk: int | None = None,
    **parameters: Unpack[Parameters],
) -> RegionBatch[_ArrayT]:
    """Labels, tables and one graph of a batch of pictures: on a device all in one set of launches.

    Parameters
    ----------
    images : array, shape (N, H, W, C), or sequence of arrays of one shape (H, W, C)
        Pictures as `slic` takes them, gray ones with C = 1. On a CUDA device of torch, CuPy, or any with ``__dlpack__`` or
        ``__cuda_array_interface__``; in the host's memory of any library. Those of a sequence are of torch, CuPy or numpy, and are copied
        into one array.
    algorithm : {"slic", "lsc", "quickshift", "snic"}
        The algorithm; "snic" takes pictures in the host's memory.
    mask : array of bool or uint8 where the images are, shape (H, W) or (N, H, W), optional
        Segment only pixels where it is not 0.
    prior : array of integers where the images are, shape (h, w) or (N, h, w), optional
        Label maps from elsewhere, of any size, whose areas no region leaves: one for all pictures, or one for each; see `slic`.
    prior_cuts : bool
        Superpixels end where the prior's areas do, as for `slic`.
    prior_price : float
        What merging across borders of the prior costs, as for `slic`; 0 is never.
    start_label : int
        The lowest label.
    order : {"rgb", "bgr"}
        Order of the channels; OpenCV has "bgr".
    data_range : tuple of float, {"image", "stretch"}, optional
        What values are black and white, as for `slic`.
    bands : int, sequence of three int, or "pca", optional
        Which bands count, as for `slic`.
    channel_axis : int, optional
        The axis of channels or bands.
    regions, neighbors : bool
        Measure `regions`, and find `neighbors` and `edge_index`.
    linear_light : bool
        Mean colors of light instead of code values.
    stream : int or stream, optional
        The stream in whose order images are ready and results are used, as for `slic`; of images on a device.
    check : bool
        Look at values before they are used, as for `slic`. The host's are always looked at.
    chunk : int, optional
        Segment so many pictures at once, which bounds the memory on a device: 300 bytes a pixel of these, and the results of all twice. The
        results are the same; images are of torch or CuPy then, on its current stream. In the host's memory it changes nothing.
    **parameters
        As those of `Segmenter`, without `temporal`. ``n_regions`` gives every picture the same number of regions.

    Returns
    -------
    batch : RegionBatch
        The same as a Segmenter gives for each picture, wherever it is. On a device the call waits once, for the numbers of regions and
        pairs.

    Raises
    ------
    TypeError, ValueError
        Images that are no batch, or a parameter.
    RuntimeError
        The device has no memory for all: about 300 bytes a pixel. Pass fewer pictures at once.

    See Also
    --------
    slic, lsc, quickshift : Labels alone, of a batch of any size in parts, without waiting.
    segment_images : Pictures in the host's memory, of different sizes too.
    Segmenter : Frames one after another, also in video.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> images = np.random.default_rng(0).integers(0, 256, (3, 60, 80, 3), dtype=np.uint8)
    >>> batch = sp.segment_batch(images, n_regions=20)
    >>> batch.labels.shape, batch.ptr.tolist(), batch.regions["area"].shape
    ((3, 60, 80), [0, 20, 40, 60], (60,))
    """
    if parameters.get("temporal"):
        raise ValueError("temporal is for frames of a video: segment_video or a Segmenter takes them")
    if chunk is not None and (isinstance(chunk, bool) or _operator.index(chunk) < 1):
        raise ValueError(f"chunk must be the number of pictures to segment at once, from 1 on; got {chunk}")
    images = _stacked(images)

    shared: dict[str, Any] = {
        "prior_cuts": prior_cuts, "prior_price": prior_price, "start_label": start_label, "order": order, "data_range": data_range,
        "bands": bands, "channel_axis": channel_axis, "regions": regions, "neighbors": neighbors, "linear_light": linear_light,
    }  # fmt: skip

    def on_device(some: Any, mask: Any, prior: Any) -> RegionBatch[_ArrayT] | None:
        found = _native.segment_batch(
            some, algorithm, dict(parameters), mask=mask, prior=prior, stream=stream, check=check, **shared
        )
        return None if found is None else RegionBatch(*found)

    parts = _parts(images, mask, prior, chunk)
    if len(parts) > 1 and stream is not None:
        raise ValueError("chunk is for the current stream of torch or CuPy; leave stream out")
    first = on_device(*parts[0])
    if first is not None:
        return _together([first, *(cast("RegionBatch[_ArrayT]", on_device(*part)) for part in parts[1:])])
    if stream is not None:
        raise TypeError("stream is for images on a device")
    if _np.ndim(cast("Any", images)) != 4 or len(cast("Any", images)) == 0:
        raise ValueError("images must be a batch of shape (N, H, W, C), of one image at least; gray ones have C = 1")
    # Its overloads tell labels apart, which are all made int32 here.
    each: Any = _segment_images
    pictures: list[SegmentedImage[Any]] = list(
        each(images, algorithm, mask=mask, prior=prior, **shared, **parameters)
    )
    return _joined(pictures, cast("_ArrayT", images), regions, neighbors)


def _library(array: object) -> tuple[Any, str] | None:
    """The module of an array, torch, CuPy or numpy, and what it calls an axis."""
    for name, kind, axis in [("torch", "Tensor", "dim"), ("cupy", "ndarray", "axis"), ("numpy", "ndarray", "axis")]:
        module = _sys.modules.get(name)
        if module is not None and isinstance(array, getattr(module, kind, ())):
            return module, axis
    return None


def _stacked(images: Any) -> Any:
    """Pictures of a sequence in one array."""
    if not isinstance(images, (list, tuple)) or not images or not hasattr(images[0], "shape"):
        return images
    shapes = {tuple(image.shape) for image in images if hasattr(image, "shape")}
    if len(shapes) > 1:
        raise ValueError(f"pictures must be of one shape, got {sorted(shapes)}; segment_images takes pictures of several")
    library = _library(images[0])
    if library is None or any(not isinstance(image, type(images[0])) for image in images):
        raise TypeError("pictures of a sequence must all be arrays of torch, of CuPy or of numpy; pass one array of shape (N, H, W, C)")
    return library[0].stack(images)


def _parts(images: Any, mask: Any, prior: Any, chunk: int | None) -> list[tuple[Any, Any, Any]]:
    """Images, masks and priors in parts of so many."""
    shape: tuple[int, ...] = getattr(images, "shape", ())
    # Pictures in the host's memory are segmented one by one anyway.
    if chunk is None or len(shape) != 4 or shape[0] <= chunk or not _is_on_device(images):
        return [(images, mask, prior)]
    if _library(images) is None:
        raise TypeError("chunk is for arrays of torch and CuPy; make one of theirs with from_dlpack")
    spans = [slice(first, first + chunk) for first in range(0, shape[0], chunk)]

    def part(array: Any, span: slice) -> Any:
        return array[span] if getattr(array, "ndim", 0) == 3 else array

    return [(images[span], part(mask, span), part(prior, span)) for span in spans]


def _is_on_device(images: Any) -> bool:
    """Says whether an array is in the memory of a CUDA device."""
    return hasattr(images, "__dlpack_device__") and images.__dlpack_device__()[0] == _CUDA


def _together(parts: list[RegionBatch[_ArrayT]]) -> RegionBatch[_ArrayT]:
    """The batches of parts as one."""
    if len(parts) == 1:
        return parts[0]
    module, axis = cast("tuple[Any, str]", _library(parts[0].labels))
    cat = module.cat if axis == "dim" else module.concatenate

    def joined(arrays: list[Any], at: int = 0) -> Any:
        return cat(arrays, **{axis: at})

    def columns(name: str) -> dict[str, Any]:
        tables = [part._tables[name] for part in parts]
        return {column: joined([table[column] for table in tables]) for column in tables[0]}

    def shifted(name: str, counts: list[int]) -> list[Any]:
        """Arrays of the parts, plus what all parts before have."""
        return [part._tables[name] + sum(counts[:i]) for i, part in enumerate(parts)]

    def bounds(name: str, counts: list[int]) -> Any:
        first, *rest = shifted(name, counts)
        return joined([first, *(one[1:] for one in rest)])

    images = [len(part) for part in parts]
    regions = [part._tables["batch"].shape[0] for part in parts]
    tables: dict[str, Any] = {"ptr": bounds("ptr", regions), "batch": joined(shifted("batch", images))}
    if "regions" in parts[0]._tables:
        tables["regions"] = columns("regions")
    if "neighbors" in parts[0]._tables:
        pairs = [part._tables["edge_index"].shape[1] // 2 for part in parts]
        tables["pair_ptr"] = bounds("pair_ptr", pairs)
        tables["neighbors"] = columns("neighbors")
        tables["edge_index"] = joined(shifted("edge_index", regions), 1)
    return RegionBatch(joined([part.labels for part in parts]), tables)


def _joined(pictures: list[SegmentedImage[Any]], images: _ArrayT, regions: bool, neighbors: bool) -> RegionBatch[_ArrayT]:
    """Pictures of the host as one batch, in arrays of the library of `images`."""
    torch: Any = _sys.modules.get("torch")
    like: Any = torch.from_numpy if torch is not None and isinstance(images, torch.Tensor) else lambda array: array
    counts = [one.n_regions for one in pictures]
    ptr = _before(counts)
    tables: dict[str, Any] = {"ptr": like(ptr), "batch": like(_np.repeat(_np.arange(len(pictures)), counts))}
    if regions:
        tables["regions"] = _columns([one.regions for one in pictures], like)
    if neighbors:
        tables["pair_ptr"] = like(_before([len(one.neighbors) for one in pictures]))
        tables["neighbors"] = _columns([one.neighbors for one in pictures], like)
        edges = [one.edge_index + first for one, first in zip(pictures, ptr.tolist())]
        tables["edge_index"] = like(_np.concatenate(edges, axis=1))
    labels = _np.stack([_np.asarray(one.labels) for one in pictures]).astype(_np.int32)
    return RegionBatch(like(labels), tables)


def _before(counts: list[int]) -> NDArray[_np.int64]:
    """How many come before each, and of all."""
    return _np.concatenate([[0], _np.cumsum(counts)]).astype(_np.int64)


def _columns(parts: list[Any], like: Any) -> dict[str, Any]:
    """Columns of tables behind each other; integers have a sign, as on a device."""
    table: Any = _np.concatenate(parts)
    columns: dict[str, Any] = {}
    for name in table.dtype.names:
        column = _np.ascontiguousarray(table[name])
        signed = column.dtype.kind == "u" and column.dtype.itemsize > 1
        columns[name] = like(column.view(f"i{column.dtype.itemsize}") if signed else column)
    return columns
