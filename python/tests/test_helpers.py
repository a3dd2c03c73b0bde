# SPDX-License-Identifier: MPL-2.0
"""Drawings, graphs, masks and files."""

import struct
import zlib

import numpy as np
import pytest
import superpixels as sp

LABELS = np.array([[0, 0, 1], [0, 2, 1], [2, 2, 1]], np.uint16)


def test_boundaries():
    image = np.zeros((3, 3, 3), np.uint8)
    drawn = sp.boundaries(image, LABELS, color=(1, 2, 3))
    line = np.array([[0, 1, 0], [1, 1, 0], [0, 1, 0]], bool)
    assert (drawn[line] == (1, 2, 3)).all() and not drawn[~line].any() and not image.any()
    assert np.array_equal(sp.boundaries(image[..., 0], LABELS, (9,)), 9 * line)
    assert sp.boundaries(image[..., :1], LABELS).shape == (3, 3, 1)
    alpha = np.full((3, 3, 4), 7, np.uint8)
    assert (sp.boundaries(alpha, LABELS)[..., 3] == 7).all()
    assert (sp.boundaries(alpha, LABELS, (1, 1, 1, 200))[line][:, 3] == 200).all()
    for color in [(1, 2), (1, 2, 3, 4), (256, 0, 0), (-1, 0, 0), (0.5, 0, 0), (), 3, "red"]:
        with pytest.raises(ValueError):
            sp.boundaries(image, LABELS, color)


def test_mean_color(picture):
    labels = sp.slic(picture)
    painted = sp.mean_color(picture, labels)
    for label in range(0, labels.max() + 1, 9):
        mean = np.floor(picture[labels == label].astype(float).mean(0) + 0.5)
        assert (painted[labels == label] == mean).all()
    shifted = sp.slic(picture, start_label=-3)
    assert np.array_equal(sp.mean_color(picture, shifted, outside=None), painted)
    # What is outside of a mask stays.
    masked = np.where(labels < 9, labels.astype(int), -1)
    assert np.array_equal(sp.mean_color(picture, masked), np.where(labels[..., None] < 9, painted, picture))
    assert np.array_equal(sp.mean_color(picture, labels.astype(np.int64) * 10**9), painted)
    gray = picture[..., 0].copy()
    assert sp.mean_color(gray, labels).shape == gray.shape
    # Any layout: these helpers are numpy's.
    assert np.array_equal(sp.mean_color(picture[::-1], labels[::-1]), painted[::-1])


def test_adjacency(picture):
    pytest.importorskip("scipy")
    matrix = sp.adjacency(LABELS)
    assert np.array_equal(matrix.toarray(), [[0, 1, 3], [1, 0, 2], [3, 2, 0]])
    segmenter = sp.Segmenter()
    labels = segmenter.segment(picture)
    assert (sp.adjacency(segmenter) != sp.adjacency(labels)).nnz == 0
    assert sp.adjacency(np.zeros((1, 1), int)).shape == (1, 1)
    with pytest.raises(ValueError):
        sp.adjacency(LABELS.astype(int) - 2)
    assert np.array_equal(sp.adjacency(LABELS.astype(int) - 1).toarray(), [[0, 2], [2, 0]])
    with pytest.raises(RuntimeError):
        sp.adjacency(sp.Segmenter())


def decompress(text):
    """rleFrString of COCO's maskApi.c."""
    counts, at = [], 0
    while at < len(text):
        value = shift = 0
        while True:
            byte = text[at] - 48
            value |= (byte & 0x1F) << shift
            shift += 5
            at += 1
            if not byte & 0x20:
                if byte & 0x10:
                    value |= -1 << shift
                break
        if len(counts) > 2:
            value += counts[-2]
        counts.append(value)
    return counts


def test_rle(picture):
    assert sp.rle(LABELS, 2, compress=False) == {"size": [3, 3], "counts": [2, 1, 1, 2, 3]}
    assert sp.rle(LABELS, 0, compress=False)["counts"] == [0, 2, 1, 1, 5]
    assert sp.rle(LABELS, 9, compress=False)["counts"] == [9]
    assert sp.rle(np.zeros((2, 2), int), 0, compress=False)["counts"] == [0, 4]
    # From pycocotools: encode of the mask LABELS == 2.
    assert sp.rle(LABELS, 2)["counts"] == b"21112"
    labels = sp.slic(picture)
    for label in range(0, labels.max() + 1, 5):
        counts = sp.rle(labels, label, compress=False)["counts"]
        assert decompress(sp.rle(labels, label)["counts"]) == counts
        values = np.arange(len(counts)) % 2 == 1
        assert np.array_equal(np.repeat(values, counts).reshape(labels.shape, order="F"), labels == label)


def test_png16(picture, tmp_path):
    labels = sp.slic(picture)
    sp.to_png16(tmp_path / "labels.png", labels)
    data = (tmp_path / "labels.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, kinds = 8, {}
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        kinds[kind] = body
        at += 12 + length
    width, height, *rest = struct.unpack(">IIBBBBB", kinds[b"IHDR"])
    assert rest == [16, 0, 0, 0, 0]
    rows = np.frombuffer(zlib.decompress(kinds[b"IDAT"]), np.uint8).reshape(height, 1 + 2 * width)
    assert not rows[:, 0].any() and np.array_equal(rows[:, 1:].copy().view(">u2"), labels)
    for bad in (labels.astype(int) - 1, labels.astype(int) + 65530):
        with pytest.raises(ValueError):
            sp.to_png16(tmp_path / "bad.png", bad)


MASKED = np.ma.masked_equal(LABELS, 2)


@pytest.mark.parametrize("bad", [LABELS.astype(float), LABELS[0], LABELS[None], "labels", None, LABELS[:0], MASKED])
def test_bad_labels(bad, tmp_path):
    image = np.zeros((3, 3, 3), np.uint8)
    for call in (
        lambda: sp.boundaries(image, bad),
        lambda: sp.mean_color(image, bad),
        lambda: sp.rle(bad, 0),
        lambda: sp.contours(bad),
        lambda: sp.region_at(bad, 0, 0),
        lambda: sp.to_png16(tmp_path / "bad.png", bad),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()


def test_bad_images():
    for image in (np.ma.zeros((3, 3, 3), np.uint8), np.zeros((3, 3, 3), bool), np.zeros((3, 4), np.uint8), np.zeros(3, np.uint8), None):
        for call in (sp.boundaries, sp.mean_color):
            with pytest.raises((TypeError, ValueError)):
                call(image, LABELS)
