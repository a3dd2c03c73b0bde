# SPDX-License-Identifier: MPL-2.0
"""Whatever is passed, public functions and `Segmenter` answer or raise an ordinary exception: no panic, no crash.

SUPERPIXEL_FUZZ_SECONDS says how long (default: 6). A failure prints the arguments, as small as they can be made.
"""

import contextlib
import inspect
import os
import tempfile
import time
import warnings

import numpy as np
import pytest
import superpixels as sp
from superpixels import _native

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

# Drawn images of 16 bits may be nearly black, of which the package warns.
pytestmark = pytest.mark.filterwarnings("ignore:image is uint16 with values up to:UserWarning")
SECONDS = float(os.environ.get("SUPERPIXEL_FUZZ_SECONDS", 6))
PROFILE = settings(max_examples=100, deadline=None, database=None, print_blob=True, suppress_health_check=list(HealthCheck))
# A panic is none of them: it is a BaseException.
ORDINARY = (TypeError, ValueError, RuntimeError, OverflowError, MemoryError, BufferError)
ALGORITHMS = ["slic", "lsc", "quickshift", "snic"]
HELPERS = sorted(name for name in sp.__all__ if inspect.isfunction(getattr(sp, name)) and name not in ALGORITHMS)
NATIVE = sorted(name for name in dir(_native) if not name.startswith("_") and name != "Segmenter")
DEFAULTS = {name: value for algorithm in ALGORITHMS for name, value in _native.defaults(algorithm).items()}
DTYPES = ["u1", "i1", "<u2", ">u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "?", "c8", "O", "S3", "U2", "M8[s]", "u1,u1"]


class Strange:
    """An object whose conversions raise, or give something else than they should."""

    def __init__(self, answer):
        self.answer = answer

    def reply(self, *_):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    __index__ = __float__ = __bool__ = __len__ = __str__ = __eq__ = __array__ = reply
    __hash__ = object.__hash__

    def __repr__(self):
        return f"Strange({self.answer!r})"


class Subclass(np.ndarray):
    pass


def scalars():
    return st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 40),
        st.integers(),
        st.sampled_from([2**31 - 1, 2**31, 2**32, 2**63, 2**64, -(2**63), 10**400]),
        st.floats(),
        st.floats(0, 20),
        st.complex_numbers(),
        st.text(max_size=5),
        st.binary(max_size=5),
        st.sampled_from([*ALGORITHMS, "lab", "rgb", "bgr", "mutual", "either", "\ud800"]),
        st.sampled_from([np.uint8(3), np.float32(2.5), np.float64("nan"), np.bool_(True), np.str_("lab"), np.int64(-1)]),
        st.builds(Strange, st.one_of(st.integers(), st.text(max_size=2), st.sampled_from([ValueError("no"), TypeError("no")]))),
    )


def values():
    return st.one_of(
        scalars(),
        st.lists(scalars(), max_size=3),
        st.dictionaries(st.text(max_size=2), scalars(), max_size=2),
        st.sampled_from([object(), int, memoryview(b"abc"), ..., sp, lambda: 0, range(3)]),
        odd_arrays(),
    )


@st.composite
def good_images(draw):
    height, width = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    shape = draw(st.sampled_from([(height, width), *((height, width, channels) for channels in (1, 3, 4))]))
    rng = np.random.default_rng(draw(st.integers(0, 20)))
    if len(shape) == 3 and draw(st.booleans()):
        shape = (draw(st.integers(0, 3)), *shape)
    image = rng.integers(0, draw(st.sampled_from([1, 2, 256])), shape, dtype=np.uint8)
    kind = draw(st.sampled_from(["u1", "u1", "u2", "f4"]))
    image = image if kind == "u1" else 257 * image.astype(np.uint16)
    image = image / np.float32(65535) if kind == "f4" else image
    return np.repeat(image, 2, axis=0)[::2] if draw(st.booleans()) else image


@st.composite
def odd_arrays(draw):
    """Arrays of any dtype, shape, distances and flags, within their memory."""
    shape = tuple(draw(st.lists(st.integers(0, 9), max_size=4)))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    array = np.zeros(shape, dtype)
    if array.size and dtype.kind in "iufc":
        special = [0, 1, 255, 65535, -1, 2**31, 2**63, np.nan, np.inf]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            flat = np.array(draw(st.lists(st.sampled_from(special), min_size=1, max_size=5)), float)
            array = np.resize(flat, shape).astype(dtype)
    for _ in range(draw(st.integers(0, 2))):
        change = draw(st.integers(0, 6))
        if change == 0:
            array = array.T
        elif change == 1:
            steps = [draw(st.sampled_from([1, 2, -1, -2])) for _ in array.shape]
            array = array[(..., *(slice(None, None, step) for step in steps))]
        elif change == 2:
            array = np.broadcast_to(array, (draw(st.integers(0, 4)), *array.shape))
        elif change == 3:
            array = array.view(Subclass)
        elif change == 4:
            array = np.ma.masked_array(array)
        elif change == 5 and dtype.kind != "O":
            memory = np.zeros(array.nbytes + 1, np.uint8)
            array = np.ndarray(array.shape, dtype, memory.data, offset=1)
        else:
            array = array.view()
            array.flags.writeable = False
    return array


@st.composite
def mostly(draw, usual, odd):
    return draw(odd if draw(st.integers(0, 9)) == 9 else usual)


def images():
    return mostly(good_images(), st.one_of(odd_arrays(), values()))


def likely(name):
    """Values of the parameter's type, most of them in its range."""
    default = DEFAULTS.get(name)
    if isinstance(default, bool):
        return st.booleans()
    if isinstance(default, float):
        return st.floats(0, 4) if default < 1 else st.floats(0, 20)
    if isinstance(default, str) or name == "order":
        return st.sampled_from(["lab", "lab-gslicr", "xyz-gslicr", "rgb", "bgr", "mutual", "either", "\ud800"])
    if name == "bands":
        return st.sampled_from(["pca", "pca", (2, 1, 0), 0])
    return st.one_of(st.none(), st.integers(-1, 40))


@st.composite
def parameters(draw, names, most=3):
    """Some keyword arguments, usable or not."""
    chosen = draw(st.lists(st.sampled_from(names), unique=True, max_size=most))
    return {name: draw(mostly(likely(name), values())) for name in chosen}


def threads():
    # More than a few take long to start; no number of them is another path.
    return mostly(st.integers(0, 3), values().filter(lambda value: not many(value)))


@st.composite
def labeled_images(draw):
    """A label map and an image, most of the same size and usable."""
    image = draw(images())
    if isinstance(image, np.ndarray) and image.ndim >= 2 and draw(st.integers(0, 9)) < 9:
        most, dtype = draw(st.integers(1, 300)), draw(st.sampled_from(["u2", "i4", "i8", "u8", "i1"]))
        return np.random.default_rng(most).integers(0, most, image.shape[:2]).astype(dtype), image
    return draw(st.one_of(odd_arrays(), values())), image


def many(value):
    try:
        return 3 < value.__index__() <= 1024
    except Exception:
        return False


def fuzz(test):
    """Repeats a test with fresh arguments for its part of the time."""
    end = time.monotonic() + SECONDS / 4
    while True:
        test()
        if time.monotonic() > end:
            return


def call(function, *positional, **named):
    try:
        return function(*positional, **named)
    except ORDINARY:
        return None


def check_labels(labels, image):
    assert labels.shape == image.shape[: labels.ndim]
    assert labels.ndim > 2 or np.array_equal(np.unique(labels), np.arange(labels.min(), int(labels.max()) + 1))


def test_functions():
    @st.composite
    def calls(draw):
        function = getattr(sp, draw(st.sampled_from(ALGORITHMS)))
        names = sorted(set(inspect.signature(function).parameters) - {"image", "threads"})
        image, named = draw(images()), draw(parameters(names))
        if isinstance(image, np.ndarray) and draw(st.integers(0, 9)) > 6:
            named["mask"] = np.random.default_rng(draw(st.integers(0, 20))).random(image.shape[:2]) < 0.7
        return function, image, {**named, "threads": draw(threads())}

    @PROFILE
    @given(calls())
    def check(drawn):
        function, image, named = drawn
        labels = call(function, image, **named)
        if labels is not None:
            if named.get("mask") is None:
                check_labels(labels, image)
            assert named.get("out") is None or labels is named["out"]

    fuzz(check)


def test_segmenter():
    @st.composite
    def calls(draw):
        known = draw(st.sampled_from(ALGORITHMS))
        algorithm = draw(mostly(st.just(known), values()))
        own = list(_native.defaults(known))
        names = draw(mostly(st.just(own), st.just([*DEFAULTS, "", "other"])))
        flags = draw(parameters(["regions", "neighbors", "linear_light", "events", "order", "bands"], 1))
        named = {**draw(parameters(names)), **flags, "threads": draw(threads()), "temporal": draw(st.booleans())}
        empty = st.builds(lambda *shape: np.zeros(shape, np.uint16), st.integers(1, 40), st.integers(1, 40))
        outs = st.one_of(st.none(), st.none(), odd_arrays(), empty)
        steps = st.one_of(
            st.tuples(st.just("segment"), images(), outs),
            st.tuples(st.just("segment"), good_images(), st.none()),
            st.tuples(st.just("set"), parameters(names, 2)),
            st.tuples(st.just("reset"), *draw(st.sampled_from([(), (), (values(),)]))),
            st.tuples(st.just("read")),
        )
        return algorithm, named, draw(st.lists(steps, max_size=8))

    @PROFILE
    @given(calls())
    def check(drawn):
        algorithm, named, steps = drawn
        segmenter = call(sp.Segmenter, algorithm, **named) or sp.Segmenter(threads=1)
        for step in steps:
            take(segmenter, *step)

    fuzz(check)


def take(segmenter, name, *positional):
    """One call of a Segmenter, and what has to be so after it."""
    if name == "segment":
        labels = call(segmenter.segment, *positional)
        if labels is not None:
            check_labels(labels, positional[0])
            # Of a clip the last frame's, and of an empty one nothing new.
            if len(labels):
                assert segmenter.n_regions == int(labels.reshape(-1, *labels.shape[-2:])[-1].max()) + 1
    elif name == "set":
        before = segmenter.parameters
        try:
            segmenter.set(**positional[0])
        except ORDINARY:
            assert segmenter.parameters == before
    elif name == "reset":
        call(segmenter.reset, *positional)
    else:
        repr(segmenter)
        for attribute in ("regions", "motion", "neighbors", "edge_index", "n_regions", "next_id", "parameters", "algorithm"):
            call(getattr, segmenter, attribute)
            with pytest.raises(AttributeError):
                setattr(segmenter, attribute, 1)


def test_helpers():
    pytest.importorskip("scipy")
    colors = st.tuples(*[st.integers(0, 255)] * 3)

    @st.composite
    def calls(draw):
        name = draw(st.sampled_from(HELPERS))
        labels, image = draw(labeled_images())
        named = {}
        for parameter in inspect.signature(getattr(sp, name)).parameters.values():
            if parameter.name in ("labels", "image"):
                named[parameter.name] = labels if parameter.name == "labels" else image
            elif parameter.name != "path" and (parameter.default is parameter.empty or draw(st.booleans())):
                named[parameter.name] = draw(mostly(st.one_of(st.integers(0, 300), st.booleans(), colors), values()))
        return name, named

    @PROFILE
    @given(calls())
    def check(drawn):
        name, named = drawn
        # Warnings of numpy are no failures: values that are no numbers, comparisons of unlike things.
        with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("ignore")
            if "path" in inspect.signature(getattr(sp, name)).parameters:
                named["path"] = os.path.join(folder, "labels.png")
            # Some need a package that may not be installed.
            with contextlib.suppress(ImportError):
                call(getattr(sp, name), **named)

    fuzz(check)


def test_native():
    @PROFILE
    @given(st.sampled_from(NATIVE), st.lists(values(), max_size=7), st.sampled_from(ALGORITHMS))
    def check(name, positional, algorithm):
        call(getattr(_native, name), *positional)
        if name == "segment":
            call(_native.segment, algorithm, *([*positional, None, None, None])[:6])

    fuzz(check)


def test_every_public_name_is_fuzzed():
    # What `region_at`, `show`, `segment_images`, `segment_batch` and `segment_video` give is no call, and neither are names and types.
    given = {"SegmentedImage", "Frame", "RegionAt", "Picture", "PictureOfBatch", "RegionBatch", "TrackedObject", "EventKind", "Parameters"}
    assert {*HELPERS, *ALGORITHMS, "Segmenter", "Detection", "Objects", *given} | set(NATIVE) >= set(sp.__all__)
    assert {"adjacency", "boundaries", "rle", "to_png16"} <= set(HELPERS) and {"segment", "defaults"} <= set(NATIVE)
