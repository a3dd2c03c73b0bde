# SPDX-License-Identifier: MPL-2.0
"""Docstrings of public names are numpydoc's, complete, with neighbors to look at and an example."""

import inspect

import pytest
import superpixels as sp

# Each has a reason: they ask for a style of prose, or read less than the package has.
NOT_ASKED = {
    "ES01": "a second paragraph, which not every function needs",
    "SS05": "summaries in the imperative",
    "RT02": "results without names, which are said here",
    "PR04": "types of parameters that are said to be those of another function",
    "GL01": "the line of the first word, in older versions",
    "GL02": "where the quotes end, which in Rust is not in the text",
}
# Of classes only `Segmenter` is made by users; attributes say what the others have.
MADE_BY_THE_PACKAGE = {"Frame", "SegmentedImage", "RegionAt", "RegionBatch", "Picture", "PictureOfBatch", "EventKind", "TrackedObject"}
# What one cannot see of functions whose signature is in Rust.
NATIVE = {"PR01", "PR02"}


def names():
    methods = ["Segmenter.segment", "Segmenter.set"]
    return [*sp.__all__, *methods]


def problems(name):
    validate = pytest.importorskip("numpydoc.validate", reason="numpydoc is not installed").validate
    left_out = set(NOT_ASKED)
    if name in MADE_BY_THE_PACKAGE:
        left_out |= {"PR01"}
    if name.startswith("Segmenter"):
        left_out |= NATIVE
    # What a method is for its class says.
    if "." in name:
        left_out |= {"SA01", "EX01"}
    return {code: text for code, text in validate(f"superpixels.{name}")["errors"] if code not in left_out}


@pytest.mark.parametrize("name", names())
def test_docstrings_are_complete(name):
    assert problems(name) == {}


def test_what_see_also_names_is_public():
    docscrape = pytest.importorskip("numpydoc.docscrape", reason="numpydoc is not installed")
    for name in sp.__all__:
        named = docscrape.NumpyDocString(inspect.getdoc(getattr(sp, name)))["See Also"]
        assert {one for group, _ in named for one, _ in group} <= set(sp.__all__) - {name}, name


def test_a_missing_part_is_found(monkeypatch):
    for section, code in (("See Also", "SA01"), ("Examples", "EX01"), ("order :", "PR01")):
        monkeypatch.setattr(
            sp.show, "__doc__", sp.show.__doc__.replace(section, "Warnings" if len(section) == 8 else "other :")
        )
        assert code in problems("show"), section
        monkeypatch.undo()
