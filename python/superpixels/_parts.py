# SPDX-License-Identifier: MPL-2.0
"""Pictures of a set in parts that are segmented together, and what a device does in place of many threads."""

from __future__ import annotations

import itertools as _itertools
import math as _math
import time as _time
from collections.abc import Iterable as _Iterable
from collections.abc import Sized as _Sized
from typing import TYPE_CHECKING, NamedTuple

from ._native import Segmenter as _Segmenter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ._native import ImageSet as _ImageSet

# Numbers in the pictures of a part: as many keep all cores busy for tenths of a second. Fewer pictures than there are threads wait for
# more, up to the second number.
_ENOUGH, _MOST = 1 << 24, 1 << 27
# Seconds that a part may take to be read: nobody waits long for pictures that come slowly.
_SECONDS = 0.1


class Part(NamedTuple):
    """Pictures that are segmented together."""

    # As `ImageSet.segment` takes them: a list, or one batch.
    given: list[Any]
    # One by one.
    images: list[Any]
    masks: list[Any] | None
    priors: list[Any] | None
    # What was raised where the next picture should have come.
    error: Exception | None


class _Beside:
    """An array that goes with each picture, a mask or a prior: one for all, or one for each."""

    def __init__(self, name: str, shape: str, given: Any, count: int | None) -> None:
        self._name = name
        axes = getattr(given, "ndim", None)
        self._arrays: Iterator[Any]
        if axes == 2:
            self._arrays = _itertools.repeat(given)
            return
        if axes not in (None, 1, 3) or not isinstance(given, _Iterable):
            raise TypeError(
                f"{name} must be an array of shape ({shape}) or (N, {shape}), or an iterable with an array of shape ({shape}) for each image"
            )
        if count is not None and isinstance(given, _Sized) and len(given) != count:
            raise ValueError(f"there must be a {name} for each image, got {len(given)} {name}s for {count} images")
        self._arrays = iter(given) if axes == 3 or isinstance(given, (list, tuple)) else map(_copy, given)

    def some(self, count: int) -> list[Any]:
        """The next ones, as many as there are up to a number."""
        return list(_itertools.islice(self._arrays, count))

    def next(self, index: int) -> Any:
        """The one of a picture."""
        for array in self._arrays:
            return array
        raise self.missing(index)

    def missing(self, index: int) -> ValueError:
        """The error of a picture without one."""
        return ValueError(f"image {index}: there is no {self._name} for it")


class Pictures:
    """The pictures of a set, each with its mask and prior: of a batch, or of whatever gives one after another."""

    def __init__(self, images: Any, mask: Any, prior: Any, channel_axis: int | None) -> None:
        axes = () if isinstance(images, (list, tuple)) else tuple(getattr(images, "shape", ()))
        self.is_batch = len(axes) == 4
        # Of one axis it is a list in another form.
        if len(axes) in (2, 3) or len(axes) > 4:
            raise ValueError(
                f"images must be of shape (N, H, W, C), or an iterable of arrays, got an array of shape {list(axes)}; pass [image] for "
                "one picture, and images[..., None] for a batch of gray ones"
            )
        if not self.is_batch and not isinstance(images, _Iterable) and not hasattr(images, "__getitem__"):
            raise TypeError(f"images must be an iterable of arrays, got {type(images).__name__}")
        # The axis of channels may come first.
        self._axis = 1 if channel_axis in (0, -4) else 0
        self._numbers = _math.prod(axes) // max(axes[self._axis], 1) if self.is_batch else 0
        self._images, self._is_kept = images, isinstance(images, (list, tuple))
        #: How many there are; `None` where nobody knows.
        self.count: int | None = axes[self._axis] if self.is_batch else len(images) if hasattr(images, "__len__") else None
        beside = (("mask", "H, W", mask), ("prior", "h, w", prior))
        self._beside = [None if given is None else _Beside(name, shape, given, self.count) for name, shape, given in beside]
        self._read_before = 0

    def parts(self, at_least: int, at_most: int | None = None) -> Iterator[Part]:
        """Parts of at least so many pictures, if they do not come slowly or are too large, and at most so many."""
        return self._of_batch(at_least, at_most) if self.is_batch else self._of_others(at_least, at_most)

    def _of_batch(self, at_least: int, at_most: int | None) -> Iterator[Part]:
        some = max(at_least, _ENOUGH // max(self._numbers, 1))
        some = max(min(some, _MOST // max(self._numbers, 1), at_most or some), 1)
        for start in range(0, self.count or 0, some):
            # Of a file's array, as of h5py, a part is read here.
            given = self._some(start, start + some)
            count, error = given.shape[self._axis], None
            found = [None if one is None else one.some(count) for one in self._beside]
            for one, arrays in zip(self._beside, found):
                if one is not None and arrays is not None and len(arrays) < count:
                    count, error = len(arrays), one.missing(start + len(arrays))
            if error is not None:
                given = self._some(start, start + count)
            masks, priors = (None if arrays is None else arrays[:count] for arrays in found)
            images = [given[i] if self._axis == 0 else given[:, i] for i in range(count)]
            yield Part([given], images, masks, priors, error)
            if error is not None:
                return

    def _some(self, start: int, end: int) -> Any:
        """Pictures of the batch."""
        return self._images[start:end] if self._axis == 0 else self._images[:, start:end]

    def _of_others(self, at_least: int, at_most: int | None) -> Iterator[Part]:
        source = iter(self._images)
        while True:
            part = self._read(source, at_least, at_most)
            yield part
            if part.error is not None:
                return

    def _read(self, source: Iterator[Any], at_least: int, at_most: int | None) -> Part:
        """The next part; with a StopIteration behind the last picture."""
        images: list[Any] = []
        found: list[list[Any] | None] = [None if one is None else [] for one in self._beside]
        masks, priors = found
        numbers, end = 0, _time.monotonic() + _SECONDS
        try:
            while numbers < _MOST and (numbers < _ENOUGH or len(images) < at_least):
                image = next(source)
                arrays = [None if one is None else one.next(self._read_before) for one in self._beside]
                for some, array in zip(found, arrays):
                    if some is not None:
                        some.append(array)
                self._read_before += 1
                # A generator may give the same memory again and again.
                images.append(image if self._is_kept else _copy(image))
                numbers += _math.prod(getattr(image, "shape", ()))
                if len(images) == at_most or _time.monotonic() > end:
                    break
        except Exception as error:
            return Part(images, images, masks, priors, error)
        return Part(images, images, masks, priors, None)


def _copy(array: Any) -> Any:
    """A copy, by whatever name the array's library has for that."""
    copy = getattr(array, "copy", None) or getattr(array, "clone", None)
    return copy() if callable(copy) else array


class OneByOne:
    """Stands for an `ImageSet` on a device: its `segment` takes one picture."""

    def __init__(self, images: _ImageSet, segmenter: _Segmenter, **options: Any) -> None:
        self._images, self._segmenter, self._options = images, segmenter, options

    def segment(
        self, given: list[Any], masks: list[Any] | None, priors: list[Any] | None, is_batch: bool
    ) -> tuple[list[Any], Exception | None]:
        segmenter: Any = self._segmenter
        results: list[Any] = []
        try:
            for image, mask, prior in zip(given, masks or [None], priors or [None]):
                self._images.check(image, is_batch)
                labels = segmenter.segment(image, mask=mask, prior=prior, **self._options)
                tables = map(self._table, ("regions", "neighbors", "merges"))
                results.append((labels[0] if is_batch else labels, segmenter.n_regions, *tables))
        except Exception as error:
            return results, error
        # What a report raises is of no picture.
        self._images.note()
        return results, None

    def _table(self, name: str) -> Any:
        """A table, if somebody asked for it."""
        try:
            return getattr(self._segmenter, name)
        except RuntimeError:
            return None

    def end(self, count: int) -> None:
        self._images.end(count)
