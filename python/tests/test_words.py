# SPDX-License-Identifier: MPL-2.0
"""Words of other packages: those that mean the same are taken, and errors say what to use instead of others."""

import importlib.util
import inspect
from pathlib import Path

import numpy as np
import pytest
import superpixels as sp
from superpixels import _native

FUNCTIONS = {"slic": sp.slic, "lsc": sp.lsc, "quickshift": sp.quickshift, "snic": sp.snic}
# Function, word of scikit-image, parameter here, and a value that is not its default.
TAKEN = [
    ("slic", "max_num_iter", "iterations", 2),
    ("lsc", "max_num_iter", "iterations", 2),
    ("slic", "slic_zero", "adaptive", True),
    ("quickshift", "kernel_size", "sigma", 0.5),
]
# Words that are answered, each with a part of what is said.
ANSWERED = [
    ("slic", "sigma", "blur the image before"),
    ("slic", "spacing", "pixels are square"),
    ("slic", "convert2lab", "color_space"),
    ("slic", "enforce_connectivity", "here it is: connectivity"),
    ("slic", "min_size_factor", "min_region"),
    ("slic", "max_size_factor", "n_segments"),
    ("slic", "multichannel", "channel_axis"),
    ("slic", "region_size", "superpixel_size"),
    ("slic", "ruler", "compactness"),
    ("slic", "num_components", "n_segments"),
    ("slic", "max_iter", "iterations"),
    ("lsc", "num_iterations", "iterations"),
    ("lsc", "num_threads", "threads"),
    ("quickshift", "max_dist", "here it is: tau"),
    ("quickshift", "ratio", "color_scale"),
    ("quickshift", "return_tree", "hierarchy"),
    ("quickshift", "rng", "nothing is random"),
    ("snic", "seed", "nothing is random"),
]


def calls(algorithm, **values):
    """A function, the class, its `set` and `hierarchy` with the same values, as callables that give labels."""

    def by_set():
        segmenter = sp.Segmenter(algorithm)
        segmenter.set(**values)
        return segmenter.segment(IMAGE)

    sized = {"n_segments": 100} if algorithm != "quickshift" else {}
    return {
        "function": lambda: FUNCTIONS[algorithm](IMAGE, **values),
        "Segmenter": lambda: sp.Segmenter(algorithm, **sized, **values).segment(IMAGE),
        "set": by_set,
        "hierarchy": lambda: sp.hierarchy(IMAGE, 100, algorithm=algorithm, **values)[0],
    }


IMAGE = np.random.default_rng(3).integers(0, 256, (40, 50, 3), dtype=np.uint8)
WAYS = list(calls("slic"))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("algorithm, word, name, value", TAKEN)
def test_same_meaning(algorithm, word, name, value, way):
    labels = calls(algorithm, **{word: value})[way]()
    assert np.array_equal(labels, calls(algorithm, **{name: value})[way]())
    assert not np.array_equal(labels, calls(algorithm)[way]())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("algorithm, word, advice", ANSWERED)
def test_advice(algorithm, word, advice, way):
    with pytest.raises(TypeError, match=f"^{algorithm} has no parameter {word}; here it is: ") as raised:
        calls(algorithm, **{word: 1})[way]()
    assert advice in str(raised.value)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("algorithm", FUNCTIONS)
def test_unknown_names(algorithm, way):
    for name in ("nonsense", "other", "values", "iterationes", "ÿ"):
        with pytest.raises(TypeError, match=f"^{algorithm} has no parameter {name}; it takes "):
            calls(algorithm, **{name: 1})[way]()


@pytest.mark.parametrize("way", WAYS)
def test_words_of_another_algorithm(way):
    with pytest.raises(TypeError, match="slic has no parameter kernel_size"):
        calls("slic", kernel_size=3)[way]()
    with pytest.raises(TypeError, match="quickshift has no parameter max_num_iter"):
        calls("quickshift", max_num_iter=3)[way]()


@pytest.mark.parametrize("way", WAYS)
def test_two_names_for_one_parameter(way):
    with pytest.raises(TypeError, match="max_num_iter is iterations; pass one of them"):
        calls("slic", iterations=7, max_num_iter=9)[way]()
    same = calls("slic", iterations=7, max_num_iter=7)[way]()
    assert np.array_equal(same, calls("slic", iterations=7)[way]())


@pytest.mark.parametrize("way", WAYS)
def test_values_are_checked(way):
    with pytest.raises(ValueError, match="iterations must be 1 to "):
        calls("slic", max_num_iter=0)[way]()
    with pytest.raises(TypeError, match="adaptive must be True or False"):
        calls("slic", slic_zero="yes")[way]()


def test_parameters_of_segmenter_alone():
    for algorithm, function in FUNCTIONS.items():
        for name, value in {"temporal": True, "temporal_inertia": 0.5, "levels": True}.items():
            with pytest.raises(TypeError, match=f"{algorithm} has no parameter {name}; Segmenter takes it"):
                function(IMAGE, **{name: value})
    with pytest.raises(TypeError, match="quickshift has no parameter n_segments; Segmenter takes it"):
        sp.quickshift(IMAGE, n_segments=10)


def test_lists_and_batches():
    batch = np.stack([IMAGE, IMAGE[::-1]])
    assert np.array_equal(sp.slic(batch, max_num_iter=2), sp.slic(batch, iterations=2))
    assert all(map(np.array_equal, sp.slic([*batch], slic_zero=True), sp.slic([*batch], adaptive=True)))


def test_documented_words_are_those_that_are_taken():
    spec = importlib.util.spec_from_file_location("generate", Path(__file__).resolve().parents[1] / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert {(word, name) for _, word, name, _ in TAKEN} == set(module.WORDS.items())
    for algorithm, function in FUNCTIONS.items():
        text = inspect.getdoc(function).split("**other")[1].split("Returns")[0]
        for word, name in module.WORDS.items():
            takes = name in _native.defaults(algorithm)
            assert (f"`{word}` is `{name}`" in " ".join(text.split())) == takes, (algorithm, word)
