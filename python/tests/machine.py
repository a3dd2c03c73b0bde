# SPDX-License-Identifier: MPL-2.0
"""Drawn calls for hypothesis: pictures of every type and layout with every option, and what has to hold of labels and tables."""

import dataclasses

import numpy as np
import superpixels as sp
from hypothesis import strategies as st

ALGORITHMS = ["slic", "lsc", "quickshift", "snic"]
DTYPES = ["uint8", "uint16", "int16", "float32", "float64"]


@dataclasses.dataclass
class Call:
    """A call of a function, by pictures whose channels are last and together in memory, and the same in another layout."""

    algorithm: str
    plain: list
    given: list
    masks: list
    given_masks: list
    axis: int
    options: dict
    start: int
    threads: int

    def __repr__(self):
        first, given = self.plain[0], self.given[0]
        arrays = f"{len(self.plain)} of {first.dtype} {[one.shape for one in self.plain]} as {given.dtype.str} {given.shape} {given.strides}"
        masks = None if self.masks[0] is None else [mask.mean().round(2) for mask in self.masks]
        return f"Call({self.algorithm}, {arrays}, axis {self.axis}, masks {masks}, {self.options}, start_label={self.start}, threads={self.threads})"


def pixels(rng, shape, dtype, contrast):
    """Blocks with noise, over most of the values that a type has, or a few of them."""
    blocks = rng.random((shape[0] // 7 + 1, shape[1] // 7 + 1, *shape[2:]))
    y, x = np.mgrid[: shape[0], : shape[1]]
    values = (contrast * blocks[y // 7, x // 7] + 0.1 * rng.random(shape)).clip(0, 1)
    if dtype.startswith("float"):
        return values.astype(dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return (low + values * (high - low)).astype(dtype)


# Views with the same values as an array of (H, W) or (H, W, C), in other memory.
def strided(array):
    wide = np.zeros((2 * array.shape[0], 3 * array.shape[1], *array.shape[2:]), array.dtype)
    wide[::2, ::3] = array
    return wide[::2, ::3]


def crop(array):
    margins = [(1, 2), (3, 1)] + [(0, 0)] * (array.ndim - 2)
    return np.pad(array, margins)[1:-2, 3:-1]


def unaligned(array):
    memory = np.zeros(array.nbytes + 1, np.uint8)
    view = memory[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def frozen(array):
    copy = array.copy()
    copy.flags.writeable = False
    return copy


LAYOUTS = {
    "C": np.copy,
    "F": np.asfortranarray,
    "up": lambda array: array[::-1].copy()[::-1],
    "left": lambda array: array[:, ::-1].copy()[:, ::-1],
    "transposed": lambda array: array.swapaxes(0, 1).copy().swapaxes(0, 1),
    "planes": lambda array: np.moveaxis(np.moveaxis(array, -1, 0).copy(), 0, -1),
    "blue first": lambda array: array[..., ::-1].copy()[..., ::-1],
    "strided": strided,
    "crop": crop,
    "swapped": lambda array: array.astype(array.dtype.newbyteorder()),
    "unaligned": unaligned,
    "frozen": frozen,
    "equal rows": lambda array: array,
}


@st.composite
def options(draw, algorithm):
    """Parameters that the algorithm has."""
    drawn = {}
    if algorithm == "quickshift":
        drawn["sigma"], drawn["tau"] = draw(st.sampled_from([0.5, 1.0, 2.0])), draw(st.sampled_from([3.0, 8.0]))
    elif draw(st.booleans()):
        drawn["n_segments"] = draw(st.integers(1, 60))
    else:
        drawn["superpixel_size"] = draw(st.integers(4, 30))
    if algorithm in ("slic", "snic") and draw(st.booleans()):
        drawn["compactness"] = draw(st.sampled_from([0.1, 1.0, 40.0, 1000.0]))
    if algorithm == "slic" and draw(st.booleans()):
        drawn["adaptive"], drawn["iterations"] = draw(st.booleans()), draw(st.integers(1, 6))
    if algorithm != "lsc" and draw(st.integers(0, 3)) == 0:
        drawn["color_space"] = draw(st.sampled_from(["lab", "lab-gslicr", "xyz-gslicr", "rgb"]))
    kind = draw(st.sampled_from(["", "", "regions", "merge"]))
    if kind == "regions":
        drawn["n_regions"] = draw(st.integers(1, 40))
    elif kind == "merge":
        drawn["merge"], drawn["merge_passes"] = draw(st.sampled_from([1.0, 2.5])), draw(st.integers(1, 3))
    if draw(st.integers(0, 3)) == 0:
        drawn["refine"] = draw(st.integers(1, 3))
    if draw(st.integers(0, 3)) == 0:
        drawn["min_region"] = draw(st.sampled_from([0.0, 0.5, 4.0]))
    if draw(st.integers(0, 5)) == 0:
        drawn["order"] = "bgr"
    return drawn


@st.composite
def calls(draw, most=3):
    """A call with pictures of one dtype, all of one size or not."""
    algorithm, dtype = draw(st.sampled_from(ALGORITHMS)), draw(st.sampled_from(DTYPES))
    rng, contrast = np.random.default_rng(draw(st.integers(0, 1000))), draw(st.sampled_from([0.0, 0.1, 0.9]))
    named = draw(options(algorithm))
    bands = draw(st.sampled_from([None, None, None, "pca", 1, (2, 0, 1)]))
    named["bands"] = bands
    named["data_range"] = draw(st.sampled_from([None, None, "image", "stretch", (0, 255), (-30000.5, 30000), (0.25, 0.75)]))
    tail = draw(st.sampled_from([(), (1,), (3,), (3,), (4,)] if bands is None else [(3,), (4,), (7,)]))
    count, size = draw(st.integers(1, most)), st.integers(1, 36)
    height, width = draw(size), draw(size)
    is_uniform = draw(st.booleans())
    sizes = [(height, width) if is_uniform or i == 0 else (draw(size), draw(size)) for i in range(count)]
    plain = [pixels(rng, (*one, *tail), dtype, contrast) for one in sizes]
    masks = [None] * count
    if draw(st.booleans()):
        inside = draw(st.sampled_from([0.0, 0.3, 0.8, 1.0]))
        masks = [rng.random(one) < inside for one in sizes]
        if dtype.startswith("float") and draw(st.booleans()):
            for image, mask in zip(plain, masks):
                image[~mask] = np.nan
    elif dtype.startswith("float") and draw(st.integers(0, 9)) == 0:
        plain[-1][-1, -1] = draw(st.sampled_from([np.nan, np.inf, 1.5]))
    layout = LAYOUTS[draw(st.sampled_from(list(LAYOUTS)))]
    axis = draw(st.sampled_from([-1, -1, 0, 1])) if tail else -1
    given = [np.moveaxis(layout(image), -1, axis) for image in plain]
    of_mask = LAYOUTS[draw(st.sampled_from(list(LAYOUTS)))]
    given_masks = [mask if mask is None else of_mask(mask) for mask in masks]
    start = draw(st.sampled_from([0, 0, 1, -5, 70_000]))
    return Call(algorithm, plain, given, masks, given_masks, axis, named, start, draw(st.integers(1, 3)))


def connected(labels, count):
    """Whether each of so many labels is one 4-connected region."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    places = np.arange(labels.size).reshape(labels.shape)
    across, down = labels[:, :-1] == labels[:, 1:], labels[:-1] == labels[1:]
    one = np.concatenate([places[:, :-1][across], places[:-1][down]])
    other = np.concatenate([places[:, 1:][across], places[1:][down]])
    number, of = connected_components(coo_matrix((np.ones(len(one)), (one, other)), shape=(labels.size,) * 2), directed=False)
    return len(np.unique(of[labels.ravel() >= 0])) == count


def check_labels(labels, image, mask, start):
    """Dense from the start, connected, one less outside of the mask; gives the labels from 0 and their number."""
    assert labels.shape == image.shape[:2] and labels.dtype == (np.uint16 if mask is None and start == 0 else np.int32)
    from_zero = labels.astype(np.int64) - start
    inside = np.ones(labels.shape, bool) if mask is None else mask
    assert (from_zero[~inside] == -1).all()
    used = np.unique(from_zero[inside])
    assert np.array_equal(used, np.arange(len(used)))
    assert connected(from_zero, len(used))
    return from_zero, len(used)


def check_tables(one, labels, count):
    """The tables of a result that has `regions` and `neighbors` say what the labels, from 0, say."""
    inside = labels >= 0
    assert one.n_regions == count == len(one.regions)
    assert np.array_equal(one.regions["area"], np.bincount(labels[inside], minlength=count))
    rows, columns = np.nonzero(inside)
    for axis, places in enumerate((columns, rows)):
        centers = np.bincount(labels[inside], places, count) / one.regions["area"]
        assert np.allclose(one.regions["centroid"][:, axis], centers, atol=1e-3)
        low, high = np.full(count, 1 << 20), np.zeros(count, int)
        np.minimum.at(low, labels[inside], places)
        np.maximum.at(high, labels[inside], places)
        assert np.array_equal(one.regions["bounds"][:, [axis, axis + 2]], np.stack([low, high + 1], axis=1))
    pairs = one.neighbors
    table = np.zeros((count, count), np.int64)
    table[pairs["a"], pairs["b"]] = pairs["length"]
    assert np.array_equal(table + table.T, sp.adjacency(labels).toarray() if count else table)
    assert np.array_equal(one.edge_index, np.concatenate([[pairs["a"], pairs["b"]], [pairs["b"], pairs["a"]]], axis=1))


def check_helpers(labels, count, image):
    """Drawings and exports of a label map, from 0 and -1 outside, agree with it."""
    inside = labels >= 0
    sizes = np.bincount(labels[inside], minlength=count)
    assert len(sp.contours(labels)) == count == len(sp.rles(labels))
    y, x = np.unravel_index(int(np.argmax(labels)), labels.shape)
    at = sp.region_at(labels, x=int(x), y=int(y))
    assert at.area == at.mask.sum() == (sizes[labels[y, x]] if count else labels.size)
    if (image.ndim == 3 and image.shape[2] not in (1, 3, 4)) or not np.isfinite(image).all():
        return
    drawn, flat = sp.boundaries(image, labels, data_range=(0, 1)), sp.mean_color(image, labels)
    for one in (drawn, flat):
        assert one.shape == image.shape and one.dtype == image.dtype
    line = np.zeros(labels.shape, bool)
    line[:, :-1] |= labels[:, :-1] != labels[:, 1:]
    line[:-1] |= labels[:-1] != labels[1:]
    assert np.array_equal(drawn[~line], image[~line])
    planes = (one.reshape(*labels.shape, -1)[..., : 3 if image.shape[-1] == 4 and image.ndim == 3 else None] for one in (image, flat))
    for values, means in zip(*(np.moveaxis(one, -1, 0) for one in planes)):
        want = np.bincount(labels[inside], values[inside].astype(float), count) / np.maximum(sizes, 1)
        assert np.allclose(means[inside], want[labels[inside]], rtol=1e-5, atol=1e-5 if image.dtype.kind == "f" else 0.51)
        assert np.array_equal(means[~inside], values[~inside])
