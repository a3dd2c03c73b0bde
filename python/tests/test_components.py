# SPDX-License-Identifier: MPL-2.0
"""Images of many bands by their principal components: bands="pca"."""

import warnings

import numpy as np
import pytest
import superpixels as sp
from test_arrays import ALGORITHMS

KINDS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64", ">i2", "<f8"]
# Linear light of sRGB to X, Y and Z.
XYZ = np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])


def areas(height, width, count=60, seed=0):
    """The index of the nearest of some points, as curved areas."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    x, y = x + 6 * np.sin(y / 17) + 4 * np.sin(x / 23), y + 6 * np.sin(y / 17) + 6 * np.sin(x / 19)
    points = rng.uniform(0, 1, (count, 2)) * [height, width]
    return np.argmin((y[..., None] - points[:, 0]) ** 2 + (x[..., None] - points[:, 1]) ** 2, -1)


def scene(bands=8, height=96, width=128, seed=1):
    """Areas of a few spectra with noise, and the variances of three axes apart from each other."""
    rng = np.random.default_rng(seed)
    spectra = rng.normal(size=(6, bands)) * np.linspace(1, 0.1, bands)
    spectrum = rng.integers(0, 6, 60)[areas(height, width, 60, seed)]
    return (1000 + 100 * spectra[spectrum] + rng.normal(0, 8, (height, width, bands))).astype(np.float32)


def colors(image, mask=None):
    """L, a and b as docs/python.md has them."""
    values = image.astype(np.float64)
    inside = values.reshape(-1, values.shape[-1]) if mask is None else values[mask != 0]
    variances, vectors = np.linalg.eigh(np.cov(inside.T, bias=True))
    first = np.argsort(-variances)[:3]
    vectors = vectors[:, first]
    vectors *= np.sign(vectors[np.abs(vectors).argmax(0), np.arange(len(first))])
    components = (values - inside.mean(0)) @ vectors * 12 / np.sqrt(variances[first[0]])
    return np.pad(components, [(0, 0), (0, 0), (0, 3 - len(first))]) + [50, 0, 0]


def light_of(lab):
    """Red, green and blue light, in [0, 1] where the color is in the gamut."""
    lightness, a, b = np.moveaxis(lab, -1, 0)
    y = (lightness + 16) / 116
    f = np.stack([y + a / 500, y, y - b / 200], -1)
    return np.where(f**3 > 0.008856, f**3, (116 * f - 16) / 903.3) @ np.linalg.inv(XYZ / XYZ.sum(1, keepdims=True)).T


def codes(lab):
    """Codes of sRGB of 16 bits."""
    light = light_of(lab).clip(0, 1)
    value = np.where(light <= 0.04045 / 12.92, light * 12.92, 1.055 * light ** (1 / 2.4) - 0.055)
    return np.floor(65535 * value + 0.5).astype(np.uint16)


def edges(labels):
    found = np.zeros(labels.shape, bool)
    found[:, :-1] = labels[:, 1:] != labels[:, :-1]
    found[:-1] |= labels[1:] != labels[:-1]
    return found


def measures(truth, labels):
    """Boundary recall within two pixels, and achievable segmentation accuracy."""
    near = np.pad(edges(labels), 2)
    windows = np.lib.stride_tricks.sliding_window_view(near, (5, 5)).any((2, 3))
    table = np.zeros((labels.max() + 1, truth.max() + 1))
    np.add.at(table, (labels.ravel(), truth.ravel()), 1)
    return windows[edges(truth)].mean(), table.max(1).sum() / truth.size


@pytest.mark.parametrize("bands", [2, 3, 4, 5, 8, 13, 64, 256])
def test_colors_are_the_components(bands):
    image = scene(bands)
    mask = np.zeros(image.shape[:2], np.uint8)
    mask[10:80, 20:] = 1
    for given in (None, mask):
        segmenter = sp.Segmenter(n_segments=80, bands="pca")
        labels = segmenter.segment(image, mask=given)
        want = colors(image, given)
        inside = labels >= 0
        count = np.bincount(labels[inside])
        means = np.stack([np.bincount(labels[inside], want[inside, i]) / count for i in range(3)], -1)
        light = light_of(want[inside])
        cut_off = np.bincount(labels[inside], ((light < 0) | (light > 1)).any(-1)) > 0
        assert cut_off.mean() < 0.1
        # A feature's channel is of eighths.
        assert np.abs(segmenter.regions["mean_lab"] - means)[~cut_off].max() < 0.1
        same = sp.slic(codes(want), 80, mask=given, data_range=(0, 65535))
        assert np.mean(same == labels) > 0.9 and abs(int(same[inside].max()) - int(labels[inside].max())) <= 2


@pytest.mark.parametrize("function", ALGORITHMS)
def test_every_algorithm(function):
    image = scene()
    labels = function(image, bands="pca")
    similar = function(codes(colors(image)), data_range=(0, 65535))
    assert np.mean(edges(labels) == edges(similar)) > 0.97
    name = function.__name__
    sized = {} if name == "quickshift" else {"n_segments": 100}
    fine, merges = sp.hierarchy(image, 100, algorithm=name, bands="pca")
    assert np.array_equal(fine, labels) and len(merges) == labels.max()
    for threads in (1, 2, 3):
        assert np.array_equal(function(image, bands="pca", threads=threads), labels)
        assert np.array_equal(sp.Segmenter(name, bands="pca", threads=threads, **sized).segment(image), labels)


def test_layouts_and_dtypes():
    image = np.clip(scene(5) / 8, 0, 127).astype(np.uint8)
    want = sp.slic(image, bands="pca")
    first = image.transpose(2, 0, 1).copy()
    assert np.array_equal(sp.slic(first, bands="pca", channel_axis=0), want)
    assert np.array_equal(sp.slic(image.repeat(2, 1)[:, ::2], bands="pca"), want)
    assert np.array_equal(sp.slic(image[::-1], bands="pca")[:0], want[:0])
    assert np.array_equal(sp.slic(np.stack([first, first]), bands="pca", channel_axis=1), [want, want])
    for kind in KINDS:
        assert np.array_equal(sp.slic(image.astype(kind), bands="pca"), want), kind
    assert np.array_equal(sp.slic(image, bands="pca", order="bgr"), want)
    # The scale of values has no part in it; these products are exact.
    assert np.array_equal(sp.slic(image * 2.0**-60, bands="pca"), want)
    # Each image by itself.
    other = scene(5, seed=9)
    assert np.array_equal(sp.slic(np.stack([image, other]), bands="pca"), [want, sp.slic(other, bands="pca")])
    listed = sp.slic([other[:50], image], bands="pca")
    assert np.array_equal(listed[0], sp.slic(other[:50], bands="pca")) and np.array_equal(listed[1], want)
    labels = sp.slic(image, bands="pca", start_label=1)
    assert labels.dtype == np.int32 and np.array_equal(labels, want.astype(np.int32) + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sp.slic(image.astype(np.uint16), bands="pca")


def test_values_are_cut_off_by_a_range():
    image = scene()
    image[20:40, 30:60] += 1e5
    low, high = 800.0, 1200.0
    assert np.array_equal(sp.slic(image, bands="pca", data_range=(low, high)), sp.slic(image.clip(low, high), bands="pca"))
    cut = image.clip(low, high)
    image[20:40, 30:60], cut[20:40, 30:60] = np.inf, high
    image[50:60], cut[50:60] = -np.inf, low
    assert np.array_equal(sp.slic(image, bands="pca", data_range=(low, high)), sp.slic(cut, bands="pca"))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e101])
def test_bad_values(bad):
    image = scene().astype(np.float64)
    mask = np.zeros(image.shape[:2], np.uint8)
    mask[30:90, 20:110] = 9
    want = sp.slic(image, bands="pca", mask=mask)
    image[mask == 0] = bad
    assert np.array_equal(sp.slic(image, bands="pca", mask=mask), want)
    image[mask == 0] = 0
    image[40, 50, 3] = bad
    for call in (lambda **given: sp.slic(image, bands="pca", **given), sp.Segmenter(bands="pca", temporal=True).segment):
        with pytest.raises(ValueError, match="x = 50, y = 40 in band 3"):
            call(mask=mask) if call.__name__ == "<lambda>" else call(image, mask=mask)
    with pytest.raises(ValueError, match="x = 50, y = 40 in band 3"):
        sp.slic(image, bands="pca")
    if np.isnan(bad):
        with pytest.raises(ValueError, match="NaN at x = 50"):
            sp.slic(image, bands="pca", data_range=(0, 1))


def test_pixels_that_are_all_the_same_are_gray():
    gray = sp.slic(np.zeros((40, 50), np.uint8), mask=None)
    for value in (0, 0.1, -7e99):
        image = np.full((40, 50, 6), value) * [1, 1, 0.5, 0.5, 1, -1]
        assert np.array_equal(sp.slic(image, bands="pca"), gray)
    segmenter = sp.Segmenter(bands="pca")
    segmenter.segment(image)
    assert np.abs(segmenter.regions["mean_lab"] - [50, 0, 0]).max() < 0.1
    # No pixel at all.
    nothing = np.zeros((40, 50), bool)
    assert (sp.slic(image, bands="pca", mask=nothing) == -1).all()


def test_bands_that_repeat():
    """Of equal bands one component has all the variance, and two are rounding."""
    gray = scene()[..., 0]
    segmenter = sp.Segmenter(n_segments=100, bands="pca")
    segmenter.segment(np.stack([gray] * 7, -1))
    table = segmenter.regions
    assert np.abs(table["mean_lab"][:, 1:]).max() < 0.1 and table["mean_lab"][:, 0].std() > 5


def test_components_of_a_video():
    image, other = scene(seed=2), scene(seed=3)
    darker = image * np.float32(0.5)
    video = sp.Segmenter(n_segments=80, bands="pca", temporal=True)

    def color(frame):
        video.segment(frame)
        table = video.regions
        return (table["mean_lab"] * table["area"][:, None]).sum(0) / table["area"].sum()

    flat = color(np.zeros_like(image))
    assert np.abs(flat - [50, 0, 0]).max() < 0.1
    # The flat frame has settled nothing, this one does.
    assert np.abs(color(image) - [50, 0, 0]).max() < 0.1
    assert np.abs(color(darker) - [50, 0, 0]).max() > 10
    broken = image.copy()
    broken[0, 0, 0] = np.nan
    with pytest.raises(ValueError):
        video.segment(broken)
    assert np.abs(color(darker) - [50, 0, 0]).max() > 10
    video.reset()
    assert np.abs(color(darker) - [50, 0, 0]).max() < 0.1
    assert np.abs(color(image) - [50, 0, 0]).max() > 10
    # Another number of bands, and back.
    assert np.abs(color(other[..., :5]) - [50, 0, 0]).max() < 0.1
    assert np.abs(color(image) - [50, 0, 0]).max() < 0.1
    clip = sp.Segmenter(n_segments=80, bands="pca", temporal=True).segment(np.stack([image, darker]))
    frames = sp.Segmenter(n_segments=80, bands="pca", temporal=True)
    assert np.array_equal(clip, [frames.segment(image), frames.segment(darker)])
    # Frames that are independent have their own.
    single = sp.Segmenter(n_segments=80, bands="pca")
    for frame in (image, darker, other):
        assert np.array_equal(single.segment(frame), sp.slic(frame, 80, bands="pca"))


@pytest.mark.parametrize(
    "shape, arguments, words",
    [
        ((20, 30), {}, r"\(H, W, B\)"),
        ((20, 30, 1), {}, "2 to 256 bands"),
        ((20, 30, 0), {}, "2 to 256 bands"),
        ((20, 30, 257), {}, "every second"),
        ((2, 2, 20, 30, 5), {}, r"\(N, H, W, B\)"),
        ((20, 30, 5), {"data_range": "image"}, "finds its range"),
        ((20, 30, 5), {"data_range": "stretch"}, "finds its range"),
        ((20, 30, 5), {"bands": "PCA"}, "'pca', got 'PCA'"),
        ((20, 30, 5), {"channel_axis": 3}, "channel_axis=3"),
    ],
)
def test_refused(shape, arguments, words):
    arguments = {"bands": "pca", **arguments}
    for call in (lambda image: sp.slic(image, **arguments), lambda image: sp.Segmenter(**arguments).segment(image)):
        with pytest.raises(ValueError, match=words):
            call(np.zeros(shape, np.float32))


def test_other_dtypes_are_refused():
    for dtype in (bool, complex, object):
        with pytest.raises(TypeError, match="not taken"):
            sp.slic(np.zeros((20, 30, 5), dtype), bands="pca")
    with pytest.raises(TypeError, match="masked"):
        sp.slic(np.ma.masked_array(scene()), bands="pca")


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_boundaries_that_only_some_bands_have(seed):
    """Ten bands with noise in which bands 0 to 2 are of one spectrum: areas differ in bands 6 and 7 alone."""
    rng = np.random.default_rng(seed)
    kinds = rng.permutation(np.arange(60) % 8)
    truth = kinds[areas(240, 320, 60, seed)]
    image = np.tile(np.linspace(0.1, 0.3, 10), (240, 320, 1)) + rng.normal(0, 0.015, (240, 320, 10))
    image[..., 6:8] += np.linspace(0, 0.25, 8)[truth][..., None]
    low, high = np.percentile(image, [1, 99])
    blind = measures(truth, sp.slic(image, 300, bands=(2, 1, 0), data_range=(low, high)))
    one = measures(truth, sp.slic(image, 300, bands=(6, 2, 1), data_range=(low, high)))
    found = measures(truth, sp.slic(image, 300, bands="pca"))
    closer = measures(truth, sp.slic(image, 300, bands="pca", compactness=6))
    print(blind, one, found, closer)
    assert found[0] > 0.96 and found[1] > 0.975
    # Superpixels of noise have long boundaries, which meet many of others by chance: accuracy tells them apart.
    assert found[1] > blind[1] + 0.1 and found[0] > blind[0] + 0.04
    # The right band has more contrast than components, which have less noise: by compactness they have as much.
    assert closer[0] > 0.99 and closer[1] > max(one[1], 0.99)
