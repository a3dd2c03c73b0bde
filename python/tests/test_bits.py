# SPDX-License-Identifier: MPL-2.0
"""Labels, tables and drawings are the library's, bit for bit: the hashes of its own tests."""

import numpy as np
import pytest
import superpixels as sp
from picture import START, fnv, known_hashes, known_labels, rgba

MERGED = dict(merge=2.0, merge_max_distance=12.0)
# As settings() of tests/library/hashes.rs.
SETTINGS = {
    "slic": ("slic", dict(superpixel_size=16)),
    "slic, quanta halved": ("slic", dict(superpixel_size=7, compactness=60.0, iterations=3)),
    "slico": ("slic", dict(superpixel_size=9, adaptive=True, color_space="rgb")),
    "slico, pieces": ("slic", dict(superpixel_size=12, adaptive=True, color_space="rgb", connectivity=False)),
    "slic, merged": ("slic", dict(superpixel_size=8, **MERGED)),
    "lsc": ("lsc", dict(superpixel_size=16)),
    "lsc, fine": ("lsc", dict(superpixel_size=7, ratio=0.03, iterations=3)),
    "quickshift": ("quickshift", dict(sigma=2.0, tau=6.0)),
    "quickshift, merged": ("quickshift", dict(sigma=2.0, tau=6.0, **MERGED)),
    "snic": ("snic", dict(superpixel_size=12)),
}


def clip():
    large, frames = rgba(192, 192), []
    for number in range(6):
        left, top = (2, 30) if number == 5 else (20 - 3 * number, 4 + 2 * number)
        frame = large[top : top + 122, left : left + 163]
        frames.append(255 - frame if number == 5 else frame)
    return frames


CLIP = clip()


def hashes(frames, algorithm, **parameters):
    segmenter = sp.Segmenter(algorithm, threads=2, **parameters)
    labels_hash = table_hash = START
    for frame in frames:
        labels = segmenter.segment(frame)
        labels_hash = fnv(labels_hash, labels.tobytes())
        table_hash = fnv(table_hash, raw(segmenter.regions))
        if parameters.get("temporal"):
            table_hash = fnv(table_hash, raw(segmenter.motion))
        table_hash = fnv(table_hash, raw(segmenter.neighbors))
    return [labels_hash, table_hash]


def raw(records):
    """All bytes, those between fields too."""
    return records.view(np.uint8).tobytes()


def test_every_setting_is_there():
    assert len(known_hashes()) == 2 * len(SETTINGS) > 0
    assert set(known_hashes()) == set(SETTINGS) | {f"{name}, temporal" for name in SETTINGS}


@pytest.mark.parametrize("name", SETTINGS)
def test_pictures(name):
    algorithm, parameters = SETTINGS[name]
    assert hashes(CLIP[:1], algorithm, **parameters) == known_hashes()[name][:2]
    if parameters.get("superpixel_size") or algorithm == "quickshift":
        labels = getattr(sp, algorithm)(CLIP[0], threads=2, **parameters)
        assert fnv(START, labels.tobytes()) == known_hashes()[name][0]


@pytest.mark.parametrize("name", SETTINGS)
def test_clips(name):
    algorithm, parameters = SETTINGS[name]
    frames = CLIP[3:] if algorithm == "quickshift" else CLIP
    assert hashes(frames, algorithm, temporal=True, **parameters) == known_hashes()[f"{name}, temporal"][:2]


@pytest.mark.parametrize("name", ["slic", "slico", "lsc", "quickshift", "snic"])
def test_drawings(name):
    algorithm, parameters = SETTINGS[name]
    labels = getattr(sp, algorithm)(CLIP[0], **parameters)
    drawn = sp.boundaries(sp.mean_color(CLIP[0], labels), labels)
    assert fnv(START, drawn.tobytes()) == known_hashes()[name][2]


def test_default_parameters():
    width, height, known = known_labels()[0]
    image = rgba(width, height)
    labels = sp.Segmenter(superpixel_size=16).segment(image)
    assert fnv(START, labels.tobytes()) == known
    assert sp.slic(image, n_segments=0).tobytes() == labels.tobytes()
