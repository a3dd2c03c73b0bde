# SPDX-License-Identifier: MPL-2.0
"""superpixels/_functions.py and its types are what the library's parameters give."""

import importlib.util
import os
from pathlib import Path

import superpixels as sp
from superpixels import _functions, _native

PATH = Path(__file__).resolve().parents[1] / "generate.py"


def generate():
    """generate.py as a module."""
    spec = importlib.util.spec_from_file_location("generate", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_functions_are_those_of_the_library():
    for path, text in generate().sources().items():
        if os.environ.get("SUPERPIXEL_WRITE"):
            path.write_text(text, encoding="utf-8")
        assert path.read_text(encoding="utf-8") == text, (
            f"superpixels/{path.name} differs from the library's parameters; python/generate.py writes it anew"
        )
        # The installed package has the same.
        assert Path(_functions.__file__).with_name(path.name).read_text(encoding="utf-8") == text


def test_segmenter_reads_images_as_functions_do():
    types = (Path(_functions.__file__).parent / "_native.pyi").read_text(encoding="utf-8")
    types = types[types.index("class Segmenter") :]
    constructor = types[types.index("def __new__(") : types.index("**parameters")]
    assert [f"{name}: {kind} = None" in constructor for name, kind in generate().READING] == [True] * 3


def test_every_algorithm_has_a_function():
    module = generate()
    with_it = [name for name in sp.__all__ if callable(getattr(sp, name)) and name in module.ALGORITHMS]
    try:
        _native.defaults("none of these")
    except ValueError as error:
        known = [name for name in str(error).replace("'", " ").replace(",", " ").split() if name in module.ALGORITHMS]
    assert sorted(with_it) == sorted(module.ALGORITHMS) == sorted(set(known))


def test_texts_name_parameters_as_python_does():
    for algorithm in generate().ALGORITHMS:
        names = {one["name"] for one in _native.described(algorithm)}
        for one in _native.described(algorithm):
            marked = one["text"].split("`")[1::2]
            assert "{" not in one["text"] and len(one["text"]) > 10
            for text in marked:
                assert text.split("=")[0] in names | {"color_space"}, one
