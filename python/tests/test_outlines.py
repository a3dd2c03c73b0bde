# SPDX-License-Identifier: MPL-2.0
"""Smoothed label maps, and drawings with curves and gradients: what an independent renderer makes of them."""

import io
import itertools
import re

import numpy as np
import pytest
import superpixels as sp
from picture import ROOT

CLIP = ROOT / "media/bigbuckbunny.mp4"


@pytest.fixture(scope="module")
def labels():
    """Regions of a noisy picture, with a few hundred corners where three meet."""
    rng = np.random.default_rng(5)
    image = rng.integers(0, 60, (150, 200, 3)).astype(np.uint8)
    image[40:110, 60:140] += 120
    image[70:72] += 60
    return sp.slic(image, n_segments=60, compactness=5)


def rendered(text):
    resvg = pytest.importorskip("resvg_py", reason="resvg_py draws SVG")
    image = pytest.importorskip("PIL.Image")
    return np.asarray(image.open(io.BytesIO(bytes(resvg.svg_to_bytes(svg_string=text)))).convert("RGBA")).astype(int)


def borders(labels):
    """Pixels beside one of another label."""
    found = np.zeros(labels.shape, bool)
    for one, other in (((slice(1, None),), (slice(-1),)), ((slice(None), slice(1, None)), (slice(None), slice(-1)))):
        differ = labels[one] != labels[other]
        found[one] |= differ
        found[other] |= differ
    return found


def seen(text):
    """The label map that a renderer makes of a drawing, -1 where a pixel is of no region or of more than one."""
    # One pixel, one region: without antialiasing, and without what makes regions wider.
    sharp = re.sub(r' stroke="currentColor" stroke-width="[^"]*" stroke-linejoin="round"', ' shape-rendering="crispEdges"', text, count=1)
    assert sharp != text
    # A color for each label, which no blend of two has: few numbers are multiples of 997.
    sharp = re.sub(r'data-label="(\d+)" color="[^"]*"', lambda label: f'color="#{997 * (int(label[1]) + 1):06x}"', sharp)
    drawn = rendered(sharp)
    codes = drawn[..., 0] << 16 | drawn[..., 1] << 8 | drawn[..., 2]
    return np.where((codes % 997 == 0) & (drawn[..., 3] == 255), codes // 997 - 1, -1)


@pytest.mark.parametrize(("tolerance", "smoothness"), [(0.7, 0), (0.7, 2), (2.0, 0)])
def test_a_renderer_sees_the_labels(labels, tolerance, smoothness):
    wanted = sp.smooth_labels(labels, smoothness) if smoothness else labels
    text = sp.to_svg(labels, np.zeros(labels.shape, np.uint8), line_width=0, tolerance=tolerance, smoothness=smoothness)
    found = seen(text)
    assert found.shape == labels.shape and set(np.unique(found)) <= set(np.unique(wanted))
    wrong = found != wanted
    assert not (wrong & ~borders(wanted)).any() if tolerance < 1 else wrong.mean() < 0.2
    # With antialiasing nothing of the background shines through.
    assert (rendered(text)[2:-2, 2:-2, 3] >= 224).all()


def test_a_renderer_sees_the_tracks_of_a_clip():
    av = pytest.importorskip("av", reason="PyAV reads the clip")
    with av.open(str(CLIP)) as container:
        images = [frame.to_ndarray(format="rgb24", width=320, height=180) for frame in itertools.islice(container.decode(video=0), 20)]
    segmenter = sp.Segmenter(n_regions=120, temporal=True)
    tracks, far = [], 0
    for image in images:
        labels = segmenter.segment(image)
        ids = [f"track-{track}" for track in segmenter.regions["track_id"]]
        text = sp.to_svg(labels, image, line_width=0, tolerance=0.7, smoothness=2, ids=ids)
        found, wanted = seen(text), sp.smooth_labels(labels, 2)
        assert set(np.unique(found)) <= set(np.unique(wanted))
        far += int(((found != wanted) & ~borders(wanted)).sum())
        named = dict(re.findall(r' id="(\S+)" data-label="(\d+)"', text))
        assert named == {ids[label]: str(label) for label in np.unique(wanted).tolist()}
        tracks.append(set(named))
    # Of 1.2 million.
    assert far <= 5
    assert len(tracks) == 20 and len(set.intersection(*tracks)) > 60


def error(drawn, image):
    return float(((drawn[..., :3] - image.astype(int)) ** 2).mean())


@pytest.mark.parametrize(("tolerance", "smoothness"), [(0, 0), (0.7, 0), (0.7, 2)])
def test_shaded_regions_are_nearer_to_the_picture(tolerance, smoothness):
    y, x = np.indices((120, 160))
    planes = [60 + x, 200 - y - x // 2, 90 + (x - y) // 4]
    labels = (np.hypot(x - 80, y - 60) < 40) * 5 + (x > 80) * 7
    image = np.stack([plane + labels * 3 for plane in planes], axis=2).clip(0, 255).astype(np.uint8)
    options = {"line_width": 0, "tolerance": tolerance, "smoothness": smoothness}
    flat, shaded = (sp.to_svg(labels, image, shading=shading, **options) for shading in (False, True))
    assert flat.count("Gradient") == 0 and shaded.count("<linearGradient") == 4
    # Where nothing changes there is no gradient; the gray of an image is that of all channels.
    gray = sp.to_svg(labels, np.where(labels == 5, image[..., 0], 77), shading=True, **options)
    assert gray.count("<linearGradient") == 1 and "#4d4d4d" in gray
    errors = [error(rendered(text), image) for text in (flat, shaded)]
    assert errors[1] < 0.3 * errors[0]


def test_gradients_leave_out_what_is_outside_and_ids_differ():
    image = np.broadcast_to(np.arange(0, 200, 5, dtype=np.uint8), (30, 40))
    labels = np.repeat([[-1] * 20 + [3] * 20], 30, axis=0)
    text = sp.to_svg(labels, image, shading=True, ids={3: "g0"}, line_width=0)
    names = re.findall(r' id="([^"]+)"', text)
    assert len(names) == len(set(names)) == 2 and "g0" in names
    # The dark half is not in it.
    assert min(int(code, 16) for code in re.findall(r'stop-color="#(..)', text)) >= 95
    with pytest.raises(ValueError, match="shading needs image"):
        sp.to_svg(labels, shading=True)


def test_curves_are_smaller_than_stairs(labels):
    image = np.zeros((*labels.shape, 3), np.uint8)
    exact = len(sp.to_svg(labels, image))
    assert len(sp.to_svg(labels, image, tolerance=0.7)) < 0.95 * exact
    assert len(sp.to_svg(labels, image, tolerance=0.7, smoothness=2)) < 0.7 * exact


def test_elements_have_ids_and_labels():
    labels = np.array([[5, 5, -1], [-2, -2, -2]])
    for tolerance in (0, 0.7):
        text = sp.to_svg(labels, np.full((2, 3), 7, np.uint8), tolerance=tolerance, ids={5: 'a"<&', -2: "track-9"})
        assert 'id="track-9" data-label="-2"' in text and text.count("data-label=") == 2 and "#070707" in text
        assert "&lt;&amp;" in text
        assert sp.to_svg(labels, tolerance=tolerance).count("<path") == 1
    assert 'id="b" data-label="1"' in sp.to_svg(np.array([[0, 1]]), np.zeros((1, 2), np.uint8), ids=["a", "b"], tolerance=1)
    for ids in ({0: "a b"}, {0: ""}, ["a", "a"]):
        with pytest.raises(ValueError, match="id"):
            sp.to_svg(labels, ids=ids)
    for ids in ("ab", {0: 3}):
        with pytest.raises(TypeError, match="ids must be"):
            sp.to_svg(labels, ids=ids)
    for tolerance in (-1, 4.5, np.nan):
        with pytest.raises(ValueError, match="tolerance must be"):
            sp.to_svg(labels, tolerance=tolerance)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int32, np.int64, np.uint64])
def test_smoothed_labels_are_of_the_same_type_and_values(labels, kind):
    wide = np.array([3, 200, 17], kind)[labels % 3]
    smoothed = sp.smooth_labels(wide)
    assert smoothed.dtype == wide.dtype and set(np.unique(smoothed)) <= set(np.unique(wide))
    assert 0 < (smoothed != wide).mean() < 0.3
    length = [int(borders(one).sum()) for one in (wide, smoothed)]
    assert length[1] < length[0]
    assert np.array_equal(sp.smooth_labels(wide, threads=1), smoothed)


def test_pixels_outside_stay():
    labels = np.zeros((60, 80), np.int32)
    labels[:, 40:] = 1
    labels[20:40, 30:50] = -1
    labels[30, 10] = 1
    smoothed = sp.smooth_labels(labels)
    assert np.array_equal(smoothed == -1, labels == -1) and smoothed[30, 10] == 0
    # As any other label, the hole's corners are round.
    assert ((sp.smooth_labels(labels, outside=None) == -1) != (labels == -1)).any()


def test_what_cannot_be_smoothed_is_refused(labels):
    with pytest.raises(ValueError, match="65535 different values"):
        sp.smooth_labels(np.arange(1 << 17).reshape(1 << 8, -1))
    for smoothness in (0, 6.5, np.nan):
        with pytest.raises(ValueError, match="smoothness must be 0.5 to 6"):
            sp.smooth_labels(labels, smoothness)
    with pytest.raises(TypeError, match="labels must be integers"):
        sp.smooth_labels(np.zeros((3, 3)))
    with pytest.raises(ValueError, match="threads must be"):
        sp.smooth_labels(labels, threads=-1)
