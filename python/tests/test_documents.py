# SPDX-License-Identifier: MPL-2.0
"""The examples of the documents run as they stand, and so do those of the docstrings."""

import doctest
import re
from importlib.util import find_spec

import pytest
import superpixels as sp
from picture import ROOT

DOCUMENTS = ["README.md", "python/README.md", "docs/python.md"]
# Packages that examples of docstrings need.
NEEDED = {
    "Frame": "av",
    "adjacency": "scipy",
    "browse": "ipywidgets",
    "linkage": "scipy",
    "segment_video": "av",
    "to_arrow": "pyarrow",
    "to_pandas": "pandas",
    "to_polars": "polars",
}


def examples(name):
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / name).read_text(), re.M | re.S)


@pytest.mark.parametrize("name, i", [(name, i) for name in DOCUMENTS for i in range(len(examples(name)))])
def test_examples(name, i, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(examples(name)[i], name, "exec"), {"__name__": "example"})


def test_every_document_has_one():
    for name in DOCUMENTS:
        assert examples(name), name


def test_docstrings(monkeypatch):
    # Examples name the bundled clip.
    monkeypatch.chdir(ROOT)
    runner, finder = doctest.DocTestRunner(), doctest.DocTestFinder()
    for name in sp.__all__:
        if name in NEEDED and not find_spec(NEEDED[name]):
            continue
        for test in finder.find(getattr(sp, name), name, globs={}):
            runner.run(test)
    assert runner.tries >= 60 and runner.failures == 0
