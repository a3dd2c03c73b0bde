# SPDX-License-Identifier: MPL-2.0
"""Labels and tables of many pictures: they are read some at a time, and segmented beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as _np

from . import _native
from ._parts import OneByOne as _OneByOne
from ._parts import Pictures as _Pictures

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from typing import Any, Literal

    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from ._functions import Parameters
    from ._native import _Algorithm, _Merges, _Neighbors, _Order, _Regions
    from ._parts import Part

__all__ = ["SegmentedImage", "segment_images"]

_LabelsT = TypeVar("_LabelsT")


class SegmentedImage(Generic[_LabelsT]):
    """A picture with its regions, as `segment_images` gives it.

    Attributes
    ----------
    index : int
        Number of the picture, from 0.
    image : ndarray
        The picture as it was given: of a batch a view, and of an iterable that is no list a copy.
    labels : ndarray of uint16 or int32, shape (H, W)
        The label map, as the functions give it.
    n_regions : int
        Number of regions.
    regions, neighbors, merges : ndarray
        As those of `Segmenter`: row i of `regions` is of label i, or of i + `start_label`.
    edge_index : ndarray of int64, shape (2, 2E)
        The pairs of `neighbors` in both directions, as PyTorch Geometric takes them.

    See Also
    --------
    segment_images : Gives such pictures.
    Segmenter : Says what the fields of the tables are.
    adjacency : The same pairs as a sparse matrix, of a label map.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> image = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    >>> [one] = sp.segment_images([image], n_regions=12)
    >>> one.n_regions, one.regions["mean_lab"].shape, len(one.edge_index), int(one.regions["area"].sum())
    (12, (12, 3), 2, 4800)
    """

    def __init__(
        self,
        index: int,
        image: Any,
        labels: _LabelsT,
        n_regions: int,
        regions: _Regions | None,
        neighbors: _Neighbors | None,
        merges: _Merges | None,
    ) -> None:
        self.index = index
        self.image = image
        self.labels = labels
        self.n_regions = n_regions
        self._regions, self._neighbors, self._merges = regions, neighbors, merges

    @property
    def regions(self) -> _Regions:
        return _found(self._regions, "regions")

    @property
    def neighbors(self) -> _Neighbors:
        return _found(self._neighbors, "neighbors")

    @property
    def merges(self) -> _Merges:
        return _found(self._merges, "levels")

    @property
    def edge_index(self) -> NDArray[_np.int64]:
        pairs = self.neighbors
        count = len(pairs)
        edges = _np.empty((2, 2 * count), _np.int64)
        edges[0, :count] = edges[1, count:] = pairs["a"]
        edges[1, :count] = edges[0, count:] = pairs["b"]
        return edges

    def __repr__(self) -> str:
        labels: Any = self.labels
        height, width = _np.shape(labels)
        return f"SegmentedImage({self.index}, {width}x{height}, {self.n_regions} regions)"


_TableT = TypeVar("_TableT")


def _found(table: _TableT | None, name: str) -> _TableT:
    if table is None:
        raise RuntimeError(f"pass {name}=True to the call that has given this")
    return table


def segment_images(
    images: Any,
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
    device: Any = None,
    threads: int = 0,
    progress: bool | Callable[[int, int], object] = False,
    **parameters: Unpack[Parameters],
) -> Generator[SegmentedImage[Any], None, None]:
    """Labels, tables and graphs of many pictures, which have nothing to do with each other, in their order.

    Parameters
    ----------
    images : iterable of ndarray, or ndarray of shape (N, H, W, C)
        The pictures, each as `slic` takes one, of any sizes and dtypes: a list, a generator or whatever else gives one after
        another, or a batch. Arrays of other libraries in the host's memory are taken as well.
    algorithm : {"slic", "lsc", "quickshift", "snic"}
        The algorithm.
    mask : ndarray of bool or uint8, shape (H, W) or (N, H, W), or iterable of such of shape (H, W), optional
        Segment only pixels where it is not 0: one for all pictures, or one for each.
    prior : ndarray of integers, shape (h, w) or (N, h, w), or iterable of such of shape (h, w), optional
        Label maps from elsewhere, of any size, whose areas no region leaves: one for all pictures, or one for each; see `slic`.
    prior_cuts : bool
        Superpixels end where the prior's areas do, as for `slic`.
    prior_price : float
        What merging across borders of the prior costs, as for `slic`; 0 is never.
    start_label : int
        The lowest label. With another than 0 labels are int32.
    order : {"rgb", "bgr"}
        Order of the channels; OpenCV has "bgr".
    data_range : tuple of float, {"image", "stretch"}, optional
        What values are black and white, as for `slic`.
    bands : int, sequence of three int, or "pca", optional
        Which bands count, as for `slic`.
    channel_axis : int, optional
        The axis of channels or bands: of a picture, or of a batch.
    regions, neighbors : bool
        Measure `regions`, and find `neighbors` and `edge_index`, of every picture. Takes time.
    linear_light : bool
        Mean colors of light instead of code values.
    device : {"cpu", "cuda", "cuda:0", ...}, optional
        Where pictures are segmented. On a device they go up and their labels come down, one after another. Default: the CPU.
    threads : int
        Threads, of which at most one a core is made; 0 is one for each core. The result is the same.
    progress : bool or callable
        True shows a bar, tqdm's where that is installed; a callable gets the number of pictures that are done and of all, some
        times a second, on this thread. Where `images` has no length, the latter is 0 until all are done.
    **parameters
        As those of `Segmenter`, without `temporal`; `levels=True` finds `merges`.

    Returns
    -------
    images : generator of SegmentedImage
        Each picture with its labels and tables, the same as those of a `Segmenter`. It has arrays of its own, so a list keeps
        them all.

    Raises
    ------
    TypeError, ValueError
        A parameter, by the call. A picture, mask or prior, by the generator at its turn: the text begins with ``image`` and its number
        from 0, and the pictures before it have been given.

    See Also
    --------
    slic, lsc, quickshift, snic : Labels alone, of a batch or list in one call.
    Segmenter : Frames one after another, also on a device and in video.
    segment_video : Frames of a video file.
    SegmentedImage : What is given.

    Notes
    -----
    Some pictures are read ahead: up to about 16 million numbers, or more where these are fewer pictures than threads, but
    nothing is waited for longer than 0.1 s. Of a list or a batch they must not be changed meanwhile; whatever else gives them may
    use the same memory for the next one.

    Ctrl-C, an error and the end of a loop by ``break`` end the work; pictures that were given remain. What the iterable raises
    comes out as it is, after the pictures before.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> rng = np.random.default_rng(0)
    >>> images = (rng.integers(0, 256, (60, width, 3), dtype=np.uint8) for width in (80, 40, 90))
    >>> for one in sp.segment_images(images, n_regions=20):
    ...     print(one.index, one.labels.shape, one.n_regions, one.edge_index.shape[1] > 40)
    0 (60, 80) 20 True
    1 (60, 40) 20 True
    2 (60, 90) 20 True
    """
    if parameters.get("temporal"):
        raise ValueError("temporal is for frames of a video: segment_video or a Segmenter takes them")
    pictures = _Pictures(images, mask, prior, channel_axis)
    settings: dict[str, Any] = {
        "order": order, "threads": threads, "regions": regions, "neighbors": neighbors, "linear_light": linear_light,
        "data_range": data_range, "bands": bands, "channel_axis": channel_axis,
    }  # fmt: skip
    # It looks at all parameters, whoever segments.
    work: Any = _native.ImageSet(
        algorithm, dict(parameters), start_label=start_label, is_masked=mask is not None, has_prior=prior is not None,
        prior_cuts=prior_cuts, prior_price=prior_price, progress=progress, all=pictures.count or 0, **settings,
    )  # fmt: skip
    if device is None or str(device) == "cpu":
        return _results(work, pictures.parts(work.threads), pictures.is_batch)
    segmenter = _native.Segmenter(algorithm, device=device, **settings, **parameters)
    one_by_one = _OneByOne(work, segmenter, start_label=start_label, prior_cuts=prior_cuts, prior_price=prior_price)
    return _results(one_by_one, pictures.parts(1, at_most=1), pictures.is_batch)


def _results(work: Any, parts: Iterator[Part], is_batch: bool) -> Generator[SegmentedImage[Any], None, None]:
    """The pictures of each part, then what stands behind them."""
    index = 0
    for part in parts:
        found, error = work.segment(part.given, part.masks, part.priors, is_batch)
        for image, one in zip(part.images, found):
            yield SegmentedImage(index, image, *one)
            index += 1
        if error is not None:
            raise _named(error, index) from None
        if part.error is not None and not isinstance(part.error, StopIteration):
            raise part.error
    work.end(index)


def _named(error: Exception, index: int) -> Exception:
    """An error of this package with the number of the picture."""
    if type(error) in (TypeError, ValueError, RuntimeError, MemoryError):
        return type(error)(f"image {index}: {error}")
    return error
