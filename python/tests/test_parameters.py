# SPDX-License-Identifier: MPL-2.0
"""Names, defaults and ranges are the library's; what is outside raises, and nothing panics."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
import superpixels as sp
from superpixels import _functions, _native

FUNCTIONS = {"slic": sp.slic, "lsc": sp.lsc, "quickshift": sp.quickshift, "snic": sp.snic}
IMAGE = np.zeros((20, 30, 3), np.uint8)
RANGES = _native.ranges()


@pytest.mark.parametrize("algorithm", FUNCTIONS)
def test_defaults(algorithm):
    listed = inspect.signature(FUNCTIONS[algorithm]).parameters
    assert [name for name, it in listed.items() if it.kind == it.VAR_KEYWORD] == ["other"]
    given = {name: it.default for name, it in listed.items() if name != "other"}
    own = _native.defaults(algorithm)
    for name, default in own.items():
        if name in ("levels", "temporal", "temporal_inertia"):
            assert name not in given
        elif name not in ("n_segments", "superpixel_size"):
            assert given[name] == default, name
    extra = set(given) - set(own)
    on_device = {"stream", "check"} if algorithm != "snic" else set()
    assert extra == {"image", "order", "threads", "start_label", "out", "mask", "data_range", "bands", "channel_axis", "progress", "prior", "prior_cuts", "prior_price"} | on_device
    # Not the library's default: that of scikit-image, where nobody says how large they are.
    assert own["n_segments"] == 100 and given.get("n_segments") is given.get("superpixel_size") is own["superpixel_size"] is None
    assert sp.Segmenter(algorithm).parameters == own


@pytest.mark.parametrize("algorithm", FUNCTIONS)
def test_ranges(algorithm):
    for name, value in _native.defaults(algorithm).items():
        if isinstance(value, (bool, str)):
            continue
        least, most, words = RANGES[name]
        for good in (least, most, value) if value is not None else (least, most):
            sp.Segmenter(algorithm, **{name: good})
        below, above = (least - 1, most + 1) if isinstance(least, int) else (least - 0.001, most * 1.0001)
        bad = [below, above, -(10**30), 10**30, 10**400]
        if isinstance(value, float):
            bad += [float("nan"), float("inf"), float("-inf"), 1e300]
        for bad in bad:
            with pytest.raises(ValueError, match=f"{name} must be {words}, got "):
                sp.Segmenter(algorithm, **{name: bad})
            if name in inspect.signature(FUNCTIONS[algorithm]).parameters:
                with pytest.raises(ValueError, match=f"{name} must be {words}, got "):
                    FUNCTIONS[algorithm](IMAGE, **{name: bad})


@pytest.mark.parametrize("algorithm", FUNCTIONS)
def test_documented_ranges(algorithm):
    """Docstrings give the ranges of the library."""
    said = {}
    # Newer interpreters keep docstrings without their indentation.
    for text in map(inspect.getdoc, (FUNCTIONS[algorithm], sp.Segmenter)):
        for name, body in re.findall(r"^(\w+) : [^\n]*\n((?: {4}[^\n]*\n)+)", text, re.M):
            found = re.search(r"Range:\s+(\d[\d.]*\s+(?:to\s+\d[\d.]*|or\s+more))", body)
            if found and name in RANGES:
                said[name] = " ".join(found[1].split()).rstrip(".")
    assert said == {name: RANGES[name][2] for name in said}
    assert {"min_region", "smoothness", "merge_passes"} < set(said)


@pytest.mark.parametrize(
    "name, bad",
    [
        ("n_segments", "many"),
        ("n_segments", 10.5),
        ("superpixel_size", 8.0),
        ("iterations", None),
        ("iterations", []),
        ("compactness", "10"),
        ("compactness", None),
        ("compactness", 1j),
        ("compactness", np.zeros(3)),
        ("color_space", 3),
        ("color_space", None),
        ("adaptive", 1),
        ("adaptive", "yes"),
        ("connectivity", None),
        ("merge_rule", True),
        ("threads", 1.5),
        ("threads", None),
        ("start_label", 1.5),
        ("start_label", "1"),
        ("order", None),
        ("order", 3),
    ],
)
def test_types(name, bad):
    with pytest.raises(TypeError):
        sp.slic(IMAGE, **{name: bad})


@pytest.mark.parametrize(
    "name, bad",
    [
        ("color_space", "hsv"),
        ("color_space", "\ud800"),
        ("merge_rule", ""),
        ("order", "gbr"),
        ("order", "RGB"),
        ("threads", -1),
        ("threads", 1025),
        ("threads", 2**70),
        ("start_label", 2**31),
        ("start_label", 2**31 - 65535),
        ("start_label", -(2**31) - 1),
        pytest.param("start_label", 10**5000, id="start_label-huge"),
    ],
)
def test_values(name, bad):
    with pytest.raises(ValueError, match=name):
        sp.slic(IMAGE, **{name: bad})


def test_numbers_of_numpy_are_numbers():
    want = sp.slic(IMAGE, n_segments=12, compactness=4.0, connectivity=False)
    same = sp.slic(IMAGE, np.int16(12), np.float32(4), connectivity=np.bool_(False), threads=np.uint8(1))
    assert np.array_equal(same, want)
    assert np.array_equal(sp.slic(IMAGE, 12, 4, connectivity=False), want)


def test_floats_are_no_whole_numbers():
    for number in (300.0, np.float64(300)):
        for call in (lambda number: sp.slic(IMAGE, number), lambda number: sp.Segmenter(n_segments=number)):
            with pytest.raises(TypeError, match=r"^n_segments must be an integer, got 300\.0; pass round\(300\.0\)$"):
                call(number)
    for wrong in ("300", None, np.nan):
        with pytest.raises(TypeError, match="^iterations must be an integer$"):
            sp.slic(IMAGE, iterations=wrong)


def test_names():
    with pytest.raises(TypeError, match="slic has no parameter sigma; here it is: blur"):
        sp.Segmenter(sigma=3)
    with pytest.raises(TypeError, match="slic has no parameter tau; it takes n_segments, "):
        sp.Segmenter(tau=3)
    with pytest.raises(TypeError, match="no parameter"):
        sp.Segmenter("quickshift", compactness=3)
    with pytest.raises(TypeError):
        sp.slic(IMAGE, region_size=3)
    with pytest.raises(ValueError, match="'slic', 'lsc', 'quickshift', 'snic'"):
        sp.Segmenter("SLIC")
    with pytest.raises(TypeError, match="algorithm"):
        sp.Segmenter(3)
    with pytest.raises(ValueError, match="order"):
        sp.Segmenter(order="gray")


def test_size_and_number():
    size = sp.Segmenter(superpixel_size=20).parameters
    assert (size["superpixel_size"], size["n_segments"]) == (20, 0)
    for call in (lambda **given: sp.slic(IMAGE, **given), sp.Segmenter, lambda **given: sp.hierarchy(IMAGE, **given)):
        with pytest.raises(ValueError, match="n_segments and superpixel_size both say"):
            call(n_segments=50, superpixel_size=20)
        call(n_segments=0, superpixel_size=20), call(n_segments=50, superpixel_size=None), call(superpixel_size=20)
    both = sp.Segmenter(superpixel_size=20)
    both.set(n_segments=7)
    assert both.parameters["n_segments"] == 7
    both.set(superpixel_size=None, n_segments=None)
    assert both.parameters["n_segments"] == 7
    assert both.parameters["superpixel_size"] is None
    assert sp.Segmenter(**both.parameters).parameters == both.parameters
    both.set(superpixel_size=9)
    assert both.parameters["n_segments"] == 0


@pytest.mark.parametrize("algorithm", FUNCTIONS)
def test_one_default(algorithm, picture):
    assert np.array_equal(sp.Segmenter(algorithm).segment(picture), FUNCTIONS[algorithm](picture))


def test_superpixels_that_have_no_room():
    image = np.zeros((1100, 1100), np.uint8)
    segmenter = sp.Segmenter(superpixel_size=4, temporal=True, iterations=1)
    with pytest.raises(RuntimeError, match="no frame"):
        segmenter.effective_parameters
    with pytest.warns(UserWarning, match=r"superpixel_size=4 asks for more superpixels .* 5 px wide, 48400 of them") as told:
        labels = segmenter.segment(image)
        segmenter.segment(image)
    assert len(told) == 1 and told[0].filename == __file__
    assert labels.max() + 1 == segmenter.n_regions == 48400
    assert segmenter.parameters["superpixel_size"] == 4
    effective = segmenter.effective_parameters
    assert (effective["superpixel_size"], effective["n_segments"]) == (5, 48400)
    for call, more in ((sp.lsc, {"iterations": 1}), (sp.snic, {})):
        with pytest.warns(UserWarning, match="n_segments=70000 asks for more superpixels") as told:
            call(image, n_segments=70000, **more)
        assert told[0].filename == __file__
    # A size that fits, and algorithms without a grid, say nothing.
    segmenter.set(superpixel_size=5)
    segmenter.segment(image)
    sp.Segmenter("quickshift", superpixel_size=4).segment(image[:60, :60])
    sp.slic(image, n_segments=60000, iterations=1)
    small = sp.Segmenter()
    small.segment(image[:60, :80])
    effective = small.effective_parameters
    assert effective == {**small.parameters, "superpixel_size": effective["superpixel_size"], "n_segments": effective["n_segments"]}
    assert 80 <= effective["n_segments"] <= 120 and small.parameters["superpixel_size"] is None


def test_stubs():
    """The types name every parameter and member, and no other."""
    text = (Path(sp.__file__).parent / "_native.pyi").read_text()
    body = text[text.index("class Segmenter") :]
    kinds = re.search(r"def __new__\((.*?)\) ->", body, re.S).group(1), re.search(r"def set\((.*?)\) ->", body, re.S).group(1)
    names = {name for algorithm in FUNCTIONS for name in _native.defaults(algorithm)}
    own = {"device", "order", "threads", "regions", "neighbors", "linear_light", "events", "algorithm"}
    own |= {"data_range", "bands", "channel_axis"}
    assert set(re.findall(r"(\w+):", kinds[0])) == own | {"parameters"}
    assert set(re.findall(r"(\w+):", kinds[1])) == {"parameters"}
    assert set(_functions.Parameters.__annotations__) == names
    members = {name for name in vars(sp.Segmenter) if not name.startswith("_")}
    assert set(re.findall(r"^    (?:def )?([a-z]\w*)[(:]", body, re.M)) == members
    functions = set(re.findall(r"^def (\w+)\(", text, re.M))
    public = {name for name in vars(_native) if not name.startswith("__")}
    constants = set(re.findall(r"^([A-Z_]+): ", text, re.M))
    assert functions | constants | {"Segmenter", "DeviceArray", "ImageSet", "ObjectTracker"} == public
    for name in members:
        assert getattr(sp.Segmenter, name).__doc__, name
    for name in sp.__all__:
        assert getattr(sp, name).__doc__, name
