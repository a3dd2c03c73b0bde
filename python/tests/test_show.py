# SPDX-License-Identifier: MPL-2.0
"""Pictures for notebooks, figures and files."""

import io
import sys
from pathlib import Path

import numpy as np
import pytest
import superpixels as sp
from superpixels import _png


def decoded(data):
    """The pixels of a PNG file."""
    image = pytest.importorskip("PIL.Image").open(io.BytesIO(data))
    image.load()
    assert image.format == "PNG"
    return np.asarray(image)


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 1), (5, 7, 3), (5, 7, 4), (1, 1)])
@pytest.mark.parametrize("level", [0, 1, 9])
def test_png(shape, level):
    pixels = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    for view in (pixels, pixels[::-1], pixels[:, ::-1]):
        assert np.array_equal(decoded(_png.encode(view, level)), view[..., 0] if shape[2:] == (1,) else view)


def test_png16_of_any_dtype(picture, tmp_path):
    labels = sp.slic(picture)
    for dtype in (np.uint16, ">u2", np.int64, np.uint8):
        sp.to_png16(tmp_path / "labels.png", labels.astype(dtype))
        assert np.array_equal(decoded((tmp_path / "labels.png").read_bytes()), labels.astype(dtype))


def test_pictures_are_arrays_where_one_is_wanted(picture):
    shown = sp.show(picture, sp.slic(picture))
    assert np.shares_memory(np.asarray(shown), shown.pixels) and not np.shares_memory(np.array(shown), shown.pixels)
    assert np.array_equal(np.asarray(shown, float), shown.pixels) and np.asarray(shown, float).dtype == float
    assert np.array_equal(sp.slic(shown), sp.slic(shown.pixels))
    with pytest.raises(ValueError, match="are a copy"):
        shown.__array__(float, copy=False)


def test_names_of_colors_are_refused_as_they_are(picture):
    with pytest.raises(ValueError, match="got 'red'"):
        sp.show(picture, sp.slic(picture), color="red")


def test_boundaries_and_mean_colors(picture):
    labels = sp.slic(picture)
    assert np.array_equal(sp.show(picture, labels).pixels, sp.boundaries(picture, labels))
    assert np.array_equal(sp.show(picture, labels, color=None).pixels, picture)
    painted = sp.mean_color(picture, labels)
    assert np.array_equal(sp.show(picture, labels, mean_color=True, color=None).pixels, painted)
    drawn = sp.show(picture, labels, mean_color=True, color=[1, 2, 3])
    assert np.array_equal(drawn.pixels, sp.boundaries(painted, labels, (1, 2, 3)))
    assert repr(drawn) == "Picture(163x122)"


def test_images(picture):
    labels = sp.slic(picture)
    want = sp.show(picture, labels).pixels
    alpha = np.dstack([picture, picture[..., 0]])
    for image in (alpha, picture.astype(np.uint16) * 257, (picture / 255).astype(np.float32)):
        assert np.array_equal(sp.show(image, labels).pixels, want)
    assert np.array_equal(sp.show(picture[..., ::-1], labels, order="bgr").pixels, want)
    gray = sp.show(picture[..., 0], labels).pixels
    assert np.array_equal(gray, sp.boundaries(np.repeat(picture[..., :1], 3, 2), labels))
    assert np.array_equal(sp.show(picture[..., :1], labels).pixels, gray)
    # The picture is a copy.
    sp.show(np.array(picture), labels, color=None).pixels[:] = 0


def test_halves():
    # Codes of 16 bits to the nearest of 8 bits.
    codes = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    drawn = sp.show(codes, np.zeros(codes.shape, int)).pixels[..., 0]
    assert np.array_equal(drawn, np.floor(codes / 257 + 0.5))


def test_files(picture, tmp_path):
    drawn = sp.show(picture, sp.slic(picture))
    assert np.array_equal(decoded(drawn._repr_png_()), drawn.pixels)
    for name in (tmp_path / "a.png", str(tmp_path / "b.PNG")):
        drawn.save(name)
        assert Path(name).read_bytes() == drawn._repr_png_()
    for name in ("a.jpg", "png", tmp_path / "a"):
        with pytest.raises(ValueError, match=".png"):
            drawn.save(name)
    with pytest.raises(OSError):
        drawn.save(tmp_path / "none" / "a.png")


# Older releases of matplotlib warn of what they import.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_axes(picture):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    labels = sp.slic(picture)
    assert sp.show(picture, labels, ax=ax, mean_color=True) is ax
    [shown] = ax.get_images()
    assert np.array_equal(shown.get_array(), sp.show(picture, labels, mean_color=True).pixels)


def test_browse(picture):
    pytest.importorskip("ipywidgets")
    labels, merges = sp.hierarchy(picture, 200)
    box = sp.browse(picture, labels, merges, n_regions=17, color=(255, 0, 0))
    slider, shown = box.children
    assert slider.value == 17 and slider.options[0] == 1 and slider.options[-1] == labels.max() + 1
    for count in (17, slider.options[0], slider.options[-1]):
        slider.value = count
        want = sp.show(picture, sp.cut(labels, merges, count), color=(255, 0, 0))
        assert np.array_equal(decoded(bytes(shown.value)), want.pixels)
    mask = np.zeros(labels.shape, bool)
    mask[10:60, 10:70] = mask[80:110, 100:150] = True
    slider, _ = sp.browse(picture, *sp.hierarchy(picture, 200, mask=mask), n_regions=0).children
    assert slider.value == slider.options[0] == 2
    slider, _ = sp.browse(picture, *sp.hierarchy(picture, 200, mask=mask & False)).children
    assert slider.options == (1,)


def test_without_ipywidgets(picture, monkeypatch):
    # None in this place is how Python marks a module that cannot be imported.
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(ImportError, match="ipywidgets"):
        sp.browse(picture, *sp.hierarchy(picture, 50))


def test_what_is_refused(picture):
    labels = sp.slic(picture)
    for image in (picture[:-1], picture.astype(float), picture[None], np.ma.array(picture), picture[..., :2], None):
        with pytest.raises((TypeError, ValueError)):
            sp.show(image, labels)
    for value in (np.nan, -0.1, 1.5):
        with pytest.raises(ValueError, match=r"\[0, 1\]"):
            sp.show(np.full(labels.shape, value, np.float32), labels)
    for named in ({"color": (1, 2)}, {"color": (0, 0, 256)}, {"order": "rbg"}):
        with pytest.raises(ValueError):
            sp.show(picture, labels, **named)
    with pytest.raises(TypeError, match="ax"):
        sp.show(picture, labels, ax=5)
    for bad in (labels.astype(float), labels[0], None):
        with pytest.raises((TypeError, ValueError)):
            sp.show(picture, bad)
