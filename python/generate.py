# SPDX-License-Identifier: MPL-2.0
"""Writes superpixels/_functions.py and its types: the functions of the algorithms, with the library's own parameters, defaults and
texts.

    python generate.py

Needs the built package. A test compares the files with what this gives; with SUPERPIXEL_WRITE=1 it writes them.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from superpixels import _native

FOLDER = Path(__file__).resolve().parent / "superpixels"
WIDTH = 128

# Functions return labels of pictures that do not follow each other.
OF_SEGMENTER = {"levels", "temporal", "temporal_inertia"}

# Parameters that `hierarchy` has of its own, or sets itself.
OF_HIERARCHY = {"n_segments", "levels"}

# Exactly one of them counts.
SIZES = {"n_segments", "superpixel_size"}

# A sentence that only Python needs.
MORE = {
    "n_regions": "To as few as can be where the pieces of a mask do not touch. By a grid there are at least three superpixels for each, "
    "and if `n_segments` is not above 100 about 2000. Not with `merge`.",
    "superpixel_size": "Instead of `n_segments`.",
    "n_segments": f"Default: {_native.N_SEGMENTS}, or as `superpixel_size` says. In pictures of 24 px a side or more there are at most a "
    "tenth more, since the most alike are merged, and in nearly all photographs at most a tenth fewer, with `snic` a fifth; not so with `merge`, with "
    "`temporal`, or without `connectivity`.",
}

HEAD = '''\
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
'''

TYPES_HEAD = '''\
# SPDX-License-Identifier: MPL-2.0
# Written by generate.py from the parameters of the library. Change them there.
# Types of the functions that segment pictures.
# Overlaps are meant: the first overload that fits counts.
# mypy: disable-error-code="overload-overlap"

from collections.abc import Callable, Sequence
from typing import Literal, TypedDict, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Never

from ._native import DeviceArray, _ApiT, _Convertible, _Image, _KeptT, _MapT, _Mask, _OnDevice, _Order, _OutT, _Prior, _Stream, _TensorT
'''

# How images are read: the same in both files, and in the types of `Segmenter`.
READING = [
    ("data_range", 'tuple[float, float] | Literal["image", "stretch"] | None'),
    ("bands", 'int | Sequence[int] | Literal["pca"] | None'),
    ("channel_axis", "int | None"),
]

# Words of scikit-image that the library's part for Python takes for parameters of ours, with their types.
WORDS = {"max_num_iter": "iterations", "slic_zero": "adaptive", "kernel_size": "sigma"}

# Types by the kind of image: of `image`, `start_label`, `out`, `mask`, `stream` and the result. The first that fits counts.
EITHER_MASK = "_Mask | _OnDevice | None = None"
NONE = "None = None"
STREAM = "_Stream | None = None"
# Labels of 16 bits, or where an algorithm has some of 32, of either.
MAP, WIDE_MAP = "NDArray[np.uint16]", "NDArray[np.uint16] | NDArray[np.uint32]"
FACES = [
    ("_Image", "Literal[0] = 0", NONE, NONE, NONE, MAP),
    ("_Image", "Literal[0] = 0", "_MapT", NONE, NONE, "_MapT"),
    ("_Image", "int = 0", "NDArray[np.int32] | None = None", "_Mask", NONE, "NDArray[np.int32]"),
    ("_Image", "int", "NDArray[np.int32] | None = None", NONE, NONE, "NDArray[np.int32]"),
    ("Sequence[_Image]", "Literal[0] = 0", NONE, NONE, NONE, f"list[{MAP}]"),
    ("Sequence[_Image]", "int", NONE, NONE, NONE, "list[NDArray[np.int32]]"),
]
# Of other libraries: in the host's memory or on a device, which their types do not say.
FACES_OF_OTHERS = [
    ("_KeptT", "int = 0", NONE, EITHER_MASK, STREAM, "_KeptT"),
    ("_ApiT", "int = 0", NONE, EITHER_MASK, STREAM, "_ApiT"),
    ("_OnDevice", "int = 0", "_OutT", EITHER_MASK, STREAM, "_OutT"),
    ("_OnDevice", "int = 0", NONE, "_OnDevice | None = None", STREAM, "DeviceArray"),
    ("Sequence[_KeptT]", "int = 0", NONE, NONE, STREAM, "list[_KeptT]"),
    ("Sequence[_ApiT]", "int = 0", NONE, NONE, STREAM, "list[_ApiT]"),
    ("Sequence[_OnDevice]", "int = 0", NONE, NONE, STREAM, "list[DeviceArray]"),
]
# Where images on a device are refused.
FACES_OF_HOST = [
    ("_TensorT", "int = 0", NONE, EITHER_MASK, NONE, "_TensorT"),
    ("_ApiT", "int = 0", NONE, EITHER_MASK, NONE, "_ApiT"),
    ("_TensorT | _ApiT", "int = 0", "_OutT", EITHER_MASK, NONE, "_OutT"),
    ("Sequence[_TensorT]", "int = 0", NONE, NONE, NONE, "list[_TensorT]"),
    ("Sequence[_ApiT]", "int = 0", NONE, NONE, NONE, "list[_ApiT]"),
]
FACES_OF_NUMPY = [
    ("_Convertible", "Literal[0] = 0", NONE, NONE, NONE, MAP),
    ("_Convertible", "Literal[0] = 0", "_MapT", NONE, NONE, "_MapT"),
    ("_Convertible", "int = 0", "NDArray[np.int32] | None = None", "_Mask", NONE, "NDArray[np.int32]"),
    ("_Convertible", "int", "NDArray[np.int32] | None = None", NONE, NONE, "NDArray[np.int32]"),
]

IMAGE = """\
image : ndarray of numbers, or list of such
    The picture, of shape (H, W), (H, W, 1), (H, W, 3) or (H, W, 4), in any layout: gray, or color of sRGB; `data_range` says what \
values are black and white. An array of shape (N, H, W, C) is a batch, and the arrays of a list may differ in size and dtype. \
Arrays of other libraries in the host's memory, with `__array__` or `__dlpack__`, are taken as well."""

OPTIONS = """\
order : {"rgb", "bgr"}
    Order of the channels; OpenCV has "bgr".
data_range : tuple of float, {"image", "stretch"}, optional
    What values are black and white: two numbers, beyond which values are cut off; "image": the least and the highest finite \
value of each image, inside of its mask; "stretch": what `stretch_gray16` finds. Default: 0 and 255 for uint8, 0 and 65535 for \
uint16, with a warning where that is probably wrong, and 0 and 1 for floats, which have to be in it; other types need one. \
On a device not "image".
bands : int, sequence of three int, or "pca", optional
    Which bands of images of shape (H, W, B) count, from 0: one for gray, three for red, green and blue in the order of `order`. They \
are copied. Without it images have one or three, and a fourth is alpha, which is left out. On a device they are equally far apart, and no copy is made. \
"pca": all of 2 to 256 bands, by the principal components c1, c2 and c3 of each image inside of its mask: pixels are compared as colors of \
L = 50 + 12 c1 / s, a = 12 c2 / s, b = 12 c3 / s, with s the standard deviation of c1. The number of largest magnitude in each component, the \
first of such, is positive. Values are what they are, and two numbers of `data_range` cut them off before; `order` has no part in it. Not on a device.
channel_axis : int, optional
    The axis of channels or bands. Default: the last one.
threads : int
    Threads, of which at most one a core is made; 0 is one for each core. The result is the same.
start_label : int
    The lowest label. With another than 0 the result is int32.
out : ndarray of shape (H, W), or (N, H, W) for a batch, optional
    Where labels are written, of the type that they have, or of uint32 instead of uint16. Rows may be at any distance. Not for a list.
mask : ndarray of bool or uint8, shape (H, W), or (N, H, W) for a batch, optional
    Segment only pixels where it is not 0: the others belong to no superpixel, and add to none. `n_segments` is still of \
the whole picture. It is where the image is. Not for a list.
prior : ndarray of integers, shape (h, w), or (N, h, w) for a batch, optional
    A label map from elsewhere, as of a network, of any size: column x of W has sample floor((2x + 1) w / 2W), rows likewise. No superpixel \
has pixels of two of its numbers, and pieces below `min_region` join none of another; `n_regions` below the number of its connected areas \
merges areas last. Only whether numbers are equal counts; they are of 32 bits with a sign. Past 65535 labels the last areas have 65535. \
Needs `connectivity`. It is where the image is, and on a device the lowest 32 bits of longer numbers count. Not for a list.
prior_cuts : bool
    Superpixels end where the prior's areas do. False is for one that is coarser than the picture: superpixels keep their own outlines, each is \
of the area that most of its pixels have, and `merge` and `n_regions` alone stay within areas.
prior_price : float
    `merge` and `n_regions` may join superpixels of two areas as if the colors where they touch were so much further apart, in Delta E (with \
"rgb": code values), 0 to 300. 0 is never, but for `n_regions` below the number of areas.
progress : bool or callable
    True shows a bar for the images of a batch or list, tqdm's where that is installed; a callable gets the number of images that are \
done and of all, some times a second, on this thread. Ctrl-C and what it raises end the call between images; `out` keeps what is \
done."""

ON_DEVICE = """\
stream : int or object, optional
    For images on a device: the CUDA stream that the call takes its place on, as a handle or as an object with `cuda_stream` \
(torch) or `ptr` (CuPy). Default: the stream that the image's library is on.
check : bool
    For float images on a device: wait and raise `ValueError` where a value is not in [0, 1]. Without it such values are cut \
off, and NaN is 0. Images of numpy are always looked at."""

RETURNS = """\
labels : ndarray of uint16 (or int32), shape (H, W), or (N, H, W) for a batch; or list of ndarray
    Labels from `start_label` on, without gaps in each image; `out` where that is given. With a mask they are int32, and \
`start_label` - 1 outside of it."""

# Of an algorithm that has labels of 32 bits as well.
RETURNS_WIDE = """ Of an image with a grid of more than 65535 superpixels they are uint32, or int32 as before: as many as are asked for. \
With `merge`, `n_regions` or `refine` such superpixels are made larger, and a warning says how large."""

RETURNS_ON_DEVICE = " Of images on a device: int32 there, an array of the same library (`out`: int32, or of labels of 16 bits uint16 without a mask)."

RAISES = """\
TypeError
    `image`, `out`, `mask` or `prior` of another type or dtype, or a masked array.
ValueError
    A shape, the layout of `out`, a parameter out of range, a value of `image` that is no number, or without `data_range` a float \
that is not in [0, 1]; outside of the mask any value is taken."""

PARAMETERS = '''\
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
"""'''

# What to look at beside a function: every other algorithm, in a few words, and `Segmenter`.
SEE_ALSO = {
    "slic": "Simple linear iterative clustering, the usual choice.",
    "lsc": "Linear spectral clustering.",
    "quickshift": "Without a grid: how many regions there are follows from the picture.",
    "snic": "Non-iterative clustering, on the CPU alone.",
    "Segmenter": "The same for video and for many pictures of one size, with tables of the regions.",
}

# Summary, notes and an example of each algorithm.
ALGORITHMS = {
    "slic": (
        "Superpixels by simple linear iterative clustering (SLIC).",
        'Source: Achanta et al., "SLIC Superpixels Compared to State-of-the-Art Superpixel Methods", 2012; Ren, Prisacariu and '
        'Reid, "gSLICr", 2015. Color differences are sums of absolute differences of the channels. Of equally near clusters a '
        "pixel takes that of the lowest index.",
        """\
>>> import numpy as np, superpixels as sp
>>> image = np.zeros((60, 80, 3), np.uint8)
>>> sp.slic(image, n_segments=12).shape
(60, 80)""",
    ),
    "lsc": (
        "Superpixels by linear spectral clustering (LSC).",
        'Source: Li and Chen, "Superpixel Segmentation using Linear Spectral Clustering", 2015; Ban, Liu and Fouriaux, "GLSC", '
        "2016. Of equally near clusters a pixel takes that of the lowest index.",
        """\
>>> import numpy as np, superpixels as sp
>>> image = np.zeros((60, 80, 3), np.uint8)
>>> sp.lsc(image, n_segments=12, start_label=1).dtype
dtype('int32')""",
    ),
    "quickshift": (
        "Superpixels by quick shift: every pixel climbs to the nearest one of higher density.",
        'Source: Vedaldi and Soatto, "Quick Shift and Kernel Methods for Mode Seeking", 2008; Fulkerson and Soatto, "Really Quick '
        'Shift", 2010. Of pixels of equal density the one that comes first in raster order is the higher.',
        """\
>>> import numpy as np, superpixels as sp
>>> image = np.zeros((60, 80), np.uint8)
>>> image[:, 40:] = 200
>>> sp.quickshift(image, sigma=2, tau=8).shape
(60, 80)""",
    ),
    "snic": (
        "Superpixels by simple non-iterative clustering (SNIC): clusters grow from seeds, the nearest pixel first.",
        'Source: Achanta and Süsstrunk, "Superpixels and Polygons using Simple Non-Iterative Clustering", 2017. Of equally near '
        "pixels the first in raster order is taken, then the lower cluster. Clusters grow on one thread; images on a device are "
        "refused.\n\n"
        "It is here for comparison with results of SNIC: it takes four to eight times as long as `slic`, and at the same number of "
        "superpixels its boundaries are shorter and miss more (boundary recall .90 against .94 at 400 on BSDS500).",
        """\
>>> import numpy as np, superpixels as sp
>>> image = np.random.default_rng(0).random((60, 80, 3))
>>> len(np.unique(sp.snic(image, n_regions=7)))
7""",
    ),
}
# Algorithms whose labels may have 32 bits.
WIDE = {"slic"}
# Algorithms of the CPU alone.
NOT_ON_DEVICE = {"snic"}


def wrapped(text: str, indent: int) -> str:
    """`text` in lines of the file's width; a line of its own for each entry's head and for what is indented below it."""
    lines = []
    for line in text.split("\n"):
        inner = indent + len(line) - len(line.lstrip())
        if line.lstrip().startswith((">>>", "(")):
            lines.append(" " * inner + line.strip())
            continue
        space = " " * inner
        lines += textwrap.wrap(
            line.strip(), WIDTH, initial_indent=space, subsequent_indent=space, break_on_hyphens=False, break_long_words=False
        )
    return "\n".join(lines)


def choices(one: dict) -> str:
    return ", ".join(f'"{value}"' for value, _ in one["choices"])


def annotation(one: dict) -> str:
    """The type of a parameter."""
    if one["choices"]:
        return f"Literal[{choices(one)}]"
    return "int | None" if one["name"] in SIZES else one["kind"]


def default(one: dict) -> str:
    if one["name"] in SIZES:
        return "None"
    value = one["default"]
    return f'"{value}"' if isinstance(value, str) else repr(value)


def documented(one: dict) -> str:
    """An entry of a numpy docstring."""
    kind = f"{{{choices(one)}}}" if one["choices"] else one["kind"]
    if one["name"] in SIZES:
        kind += ", optional"
    sentences = [one["text"] + "."]
    if one["kind"] in ("int", "float"):
        sentences.append(f"Range: {one['allowed']}.")
    sentences += [f'"{value}": {meaning}.' for value, meaning in one["choices"]]
    if one["name"] in MORE:
        sentences.append(MORE[one["name"]])
    return f"{one['name']} : {kind}\n    " + " ".join(sentences)


def parameters(algorithm: str) -> tuple[list[dict], list[dict]]:
    """Those of a function that may stand without their names: the number of superpixels, then numbers of its own; and the others."""
    used = [one for one in _native.described(algorithm) if one["used"] and one["name"] not in OF_SEGMENTER]
    sized = [one for one in used if one["name"] == "n_segments"]
    own = [one for one in used if one["own"] and one["kind"] == "float"]
    first = sized + own
    rest = [one for one in used if one not in first]
    # Its own before what all have.
    return first, sorted(rest, key=lambda one: not one["own"])


def words(algorithm: str) -> list[tuple[str, dict]]:
    """Words of scikit-image that the algorithm takes, with the parameters that they mean."""
    own = {one["name"]: one for one in _native.described(algorithm) if one["used"]}
    return [(word, own[name]) for word, name in WORDS.items() if name in own]


def others(algorithm: str) -> str:
    """The entry of what has another name in another package."""
    same = [f"`{word}` is `{one['name']}`" for word, one in words(algorithm)]
    taken = f"Words of scikit-image: {', '.join(same)}. " if same else ""
    return f"**other\n    {taken}A `TypeError` says what to use here for others of scikit-image, OpenCV and fast-slic."


def function(algorithm: str) -> str:
    summary, notes, example = ALGORITHMS[algorithm]
    on_device = algorithm not in NOT_ON_DEVICE
    first, rest = parameters(algorithm)
    signature = ["image: _np.ndarray | list[_np.ndarray]"]
    signature += [f"{one['name']}: {annotation(one)} = {default(one)}" for one in first]
    signature.append("*")
    signature += [f"{one['name']}: {annotation(one)} = {default(one)}" for one in rest]
    signature += [
        'order: Literal["rgb", "bgr"] = "rgb"',
        *(f"{name}: {kind} = None" for name, kind in READING),
        "threads: int = 0",
        "start_label: int = 0",
        "out: _np.ndarray | None = None",
        "mask: _np.ndarray | None = None",
        "prior: _np.ndarray | None = None",
        "prior_cuts: bool = True",
        "prior_price: float = 0.0",
        "progress: bool | _Callable[[int, int], object] = False",
    ]
    if on_device:
        signature += ["stream: object = None", "check: bool = False"]
    signature.append("**other: object")
    body = "\n".join([IMAGE, *map(documented, first + rest), OPTIONS, *([ON_DEVICE] if on_device else []), others(algorithm)])
    returns = RETURNS + (RETURNS_WIDE if algorithm in WIDE else "") + (RETURNS_ON_DEVICE if on_device else "")
    see_also = "\n".join(f"{name} : {what}" for name, what in SEE_ALSO.items() if name != algorithm)
    sections = [("Parameters", body), ("Returns", returns), ("Raises", RAISES), ("See Also", see_also), ("Notes", notes)]
    sections.append(("Examples", example))
    text = [f'    """{summary}']
    for title, content in sections:
        text += ["", f"    {title}", "    " + "-" * len(title), wrapped(content, 4)]
    text.append('    """')
    values = [f'        "{one["name"]}": {one["name"]},' for one in first + rest]
    device = ", stream, check" if on_device else ", None, False"
    return "\n".join(
        [
            f"def {algorithm}(",
            *(f"    {one}," for one in signature),
            ") -> _np.ndarray | list[_np.ndarray]:",
            *text,
            "    values: dict[str, object] = {",
            *values,
            "    }",
            "    if other:",
            f'        values = _with_others("{algorithm}", values, other)',
            "    return _native.segment(",
            f'        "{algorithm}", image, values, order, threads, start_label, out, mask{device},',
            "        data_range, bands, channel_axis, progress, prior, prior_cuts, prior_price,",
            "    )  # fmt: skip",
        ]
    )


def prior_of(image: str) -> str:
    """The type of a prior for images of a type."""
    if image.startswith("Sequence"):
        return NONE
    if image == "_OnDevice":
        return "_OnDevice | None = None"
    return "_Prior | None = None" if image in ("_Image", "_Convertible") else "_Prior | _OnDevice | None = None"


def types(algorithm: str) -> str:
    """The overloads of a function."""
    first, rest = parameters(algorithm)
    on_device = algorithm not in NOT_ON_DEVICE
    faces = [*FACES, *(FACES_OF_OTHERS if on_device else FACES_OF_HOST), *FACES_OF_NUMPY]
    overloads = []
    for image, start_label, out, mask, stream, result in faces:
        returns = result.replace(MAP, WIDE_MAP) if algorithm in WIDE else result
        signature = [f"image: {image}"]
        signature += [f"{one['name']}: {annotation(one)} = {default(one)}" for one in first]
        signature.append("*")
        signature += [f"{one['name']}: {annotation(one)} = {default(one)}" for one in rest]
        signature.append('order: _Order = "rgb"')
        signature += [f"{name}: {kind} = None" for name, kind in READING]
        signature += ["threads: int = 0", f"start_label: {start_label}", f"out: {out}", f"mask: {mask}", f"prior: {prior_of(image)}", "prior_cuts: bool = True", "prior_price: float = 0.0"]
        signature.append("progress: bool | Callable[[int, int], object] = False")
        if on_device:
            signature += [f"stream: {stream}", "check: bool = False"]
        # As many names as are taken, instead of any.
        signature += [f"{word}: {one['kind']} = ..." for word, one in words(algorithm)] or ["**other: Never"]
        lines = ["@overload", f"def {algorithm}(", *(f"    {one}," for one in signature), f") -> {returns}: ..."]
        overloads.append("\n".join(lines))
    return "\n".join(overloads)


def keywords() -> str:
    """The parameters of all algorithms as types, for `Segmenter` and for `hierarchy`."""
    every = {one["name"]: one for algorithm in ALGORITHMS for one in _native.described(algorithm)}
    fields = {name: f"    {name}: {annotation(one)}" for name, one in every.items()}
    return "\n".join(
        [
            "class _Parameters(TypedDict, total=False):",
            '    """Parameters of `hierarchy` beside its own."""',
            "",
            *(line for name, line in fields.items() if name not in OF_HIERARCHY),
            "",
            "",
            "class Parameters(_Parameters, total=False):",
            textwrap.indent(PARAMETERS, "    "),
            "",
            *(line for name, line in fields.items() if name in OF_HIERARCHY),
        ]
    )


def sources() -> dict[Path, str]:
    """The whole files, by their paths."""
    functions = [HEAD.rstrip("\n"), keywords(), *map(function, ALGORITHMS)]
    stubs = [TYPES_HEAD.rstrip("\n"), keywords(), *map(types, ALGORITHMS)]
    return {FOLDER / "_functions.py": "\n\n\n".join(functions) + "\n", FOLDER / "_functions.pyi": "\n\n".join(stubs) + "\n"}


if __name__ == "__main__":
    for path, text in sources().items():
        path.write_text(text, encoding="utf-8")
