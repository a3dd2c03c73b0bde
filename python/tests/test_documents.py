# SPDX-License-Identifier: MPL-2.0
"""The examples of the documents run as they stand, and so do those of the docstrings."""

import doctest
import itertools
import os
import re
from importlib.util import find_spec

import numpy as np
import pytest
import superpixels as sp
from picture import ROOT, rgba

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


# Photo of the first example, and what it shows.
SHOWN = ROOT / "docs/pictures/python.png"


def examples(name, language="python"):
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / name).read_text(), re.M | re.S)


@pytest.mark.parametrize("name, i", [(name, i) for name in DOCUMENTS for i in range(len(examples(name)))])
def test_examples(name, i, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if "photo.png" in examples(name)[i]:
        pytest.importorskip("PIL", reason="Pillow is not installed")
        photo(tmp_path / "photo.png")
    exec(compile(examples(name)[i], name, "exec"), {"__name__": "example"})


def photo(path):
    """Writes a picture: of the bundled clip, where PyAV is."""
    try:
        import av
    except ImportError:
        sp.show(rgba(480, 270)[..., :3].copy(), np.zeros((270, 480), int)).save(path)
        return
    with av.open(str(ROOT / "media/bigbuckbunny.mp4")) as container:
        frame = next(itertools.islice(container.decode(video=0), 59, None))
        image = frame.to_ndarray(width=480, height=270, format="rgb24", interpolation="LANCZOS")
    sp.show(image, np.zeros(image.shape[:2], int)).save(path)


def test_the_first_picture_is_what_the_first_lines_give(tmp_path, monkeypatch):
    pytest.importorskip("av", reason="PyAV is not installed")
    image_module = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    monkeypatch.chdir(tmp_path)
    photo(tmp_path / "photo.png")
    first = examples("docs/python.md")[0]
    assert len([line for line in first.splitlines() if line]) == 5
    exec(compile(first, "first", "exec"), {"__name__": "example"})
    if os.environ.get("SUPERPIXEL_WRITE"):
        SHOWN.write_bytes((tmp_path / "regions.png").read_bytes())
    given, shown = (np.asarray(image_module.open(path)).astype(int) for path in (tmp_path / "regions.png", SHOWN))
    # Versions of PyAV decode and scale a little differently, and lines differ with that.
    assert given.shape == shown.shape
    lines, shown_lines = ((pixels == (255, 255, 0)).all(axis=2) for pixels in (given, shown))
    assert abs(lines.sum() / shown_lines.sum() - 1) < 0.1
    assert np.abs(given - shown)[~lines & ~shown_lines].mean() < 6


@pytest.mark.parametrize("i", range(len(examples("docs/python.md", "py"))))
def test_examples_of_torch(i):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tensor = torch.rand(48, 64, 3, device=device)
    frames, image = [(255 * tensor).to(torch.uint8)] * 2, np.zeros((48, 64), np.uint8)
    space = {"sp": sp, "torch": torch, "tensor": tensor, "frames": frames, "image": image}
    exec(compile(examples("docs/python.md", "py")[i], "docs/python.md", "exec"), space)


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
