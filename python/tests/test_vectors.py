# SPDX-License-Identifier: MPL-2.0
"""Features of a map and vector graphics cover regions exactly and draw each boundary once."""

import json
import re
from collections import Counter
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
import superpixels as sp
from superpixels._arcs import arcs

TRANSFORMS = [(0.5, 0, 10, 0, -0.5, 60), (2, 0.25, -3, 0.5, 3, 1), (0, 1, 0, 1, 0, 0), (-1, 0, 0, 0, 1, 0)]


def unit_edges(lines):
    """Every pair of adjacent corners that lines pass, with the number of times."""
    passed = Counter()
    for line in lines:
        for (x0, y0), (x1, y1) in zip(line[:-1], line[1:]):
            length = abs(x1 - x0) + abs(y1 - y0)
            assert length > 0 and (x0 == x1 or y0 == y1)
            dx, dy = (x1 - x0) // length, (y1 - y0) // length
            steps = [(x0 + dx * i, y0 + dy * i) for i in range(length + 1)]
            passed.update((min(a, b), max(a, b)) for a, b in zip(steps[:-1], steps[1:]))
    return passed


def wanted_edges(labels, outside):
    """The same from the pixels: where two that are not of one region meet."""
    padded = np.pad(labels.astype(object), 1, constant_values=outside)
    across, down = padded[:, 1:] != padded[:, :-1], padded[1:] != padded[:-1]
    edges = {((x, y - 1), (x, y)) for y, x in np.argwhere(across).tolist()}
    return edges | {((x - 1, y), (x, y)) for y, x in np.argwhere(down).tolist()}


def drawn(path):
    """The lines of a path of SVG."""
    lines = []
    for x, y, steps, closed in re.findall(r"M(\d+) (\d+)((?:[hv]-?\d+)*)(z?)", path):
        line = [[int(x), int(y)]]
        for kind, step in re.findall(r"([hv])(-?\d+)", steps):
            line.append([line[-1][0] + int(step) * (kind == "h"), line[-1][1] + int(step) * (kind == "v")])
        lines.append(line + line[:1] if closed else line)
    return lines


def check_arcs(labels, outside=None):
    found = arcs(labels, outside)
    edges = unit_edges([arc.tolist() for arc in found])
    assert set(edges) == wanted_edges(labels, outside) and set(edges.values()) <= {1}
    degrees = Counter(point for edge in edges for point in edge)
    for arc in found:
        assert arc.dtype == np.int32 and arc.shape[1] == 2
        points = list(map(tuple, arc.tolist()))
        # It turns at each point in between, and meets other arcs at its ends alone.
        turns = np.diff(arc, axis=0)
        assert (turns[1:] * turns[:-1] == 0).all()
        assert all(degrees[point] == 2 for point in points[1:-1])
        assert all(degrees[point] > 2 for point in (points[0], points[-1])) or points[0] == points[-1]
    assert len(drawn(svg_lines(sp.to_svg(labels, outside=outside)))) == len(found)
    assert unit_edges(drawn(svg_lines(sp.to_svg(labels, outside=outside)))) == edges


def svg_lines(text):
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    return root[-1].get("d")


def test_arcs_of_drawn_values():
    rng = np.random.default_rng(2)
    for _ in range(150):
        height, width, colors = rng.integers(1, 10, 3)
        labels = rng.integers(-1, colors, (height, width))
        check_arcs(labels)
        check_arcs(labels, outside=0)


def test_arcs_without_nodes():
    labels = np.zeros((7, 9), np.uint8)
    labels[2:5, 2:7] = 1
    labels[3, 4] = 2
    check_arcs(labels)
    assert len(arcs(labels)) == 3
    assert [arc.tolist() for arc in arcs(labels, outside=0)] == [
        [[2, 2], [7, 2], [7, 5], [2, 5], [2, 2]],
        [[4, 3], [5, 3], [5, 4], [4, 4], [4, 3]],
    ]
    assert arcs(labels[:1], outside=0) == []


def test_segmented(picture):
    labels = sp.slic(picture, n_segments=120)
    check_arcs(labels[:60, :70])
    check_arcs(sp.slic(picture, mask=np.hypot(*np.indices(labels.shape)) < 100)[:70, 40:], -1)


def test_svg_fills(picture):
    labels = sp.slic(picture, n_segments=40, start_label=5)
    for image, outside in ((picture, None), (picture[..., 0], 5), (picture.astype(np.uint16) * 257, None)):
        root = ElementTree.fromstring(sp.to_svg(labels, image, color=(1, 2, 255), line_width=0.5, outside=outside))
        group, lines = root
        assert lines.get("stroke") == "#0102ff" and lines.get("stroke-width") == "0.5"
        painted = sp.mean_color(picture, labels)
        if image.ndim == 2:
            painted = np.repeat(sp.mean_color(image, labels)[..., None], 3, axis=2)
        assert [int(path.get("data-label")) for path in group] == [n for n in np.unique(labels).tolist() if n != outside]
        for path in group:
            label = int(path.get("data-label"))
            assert path.get("fill") == "#" + bytes(painted[labels == label][0]).hex()
            assert set(unit_edges(drawn(path.get("d")))) == wanted_edges(labels == label, False)
    assert len(ElementTree.fromstring(sp.to_svg(labels, picture, line_width=0))) == 1


def signed_area(ring):
    x, y = np.array(ring).T
    return (x[:-1] * y[1:] - x[1:] * y[:-1]).sum() / 2


def check_features(labels, transform, outside=None):
    collection = json.loads(json.dumps(sp.to_geojson(labels, transform=transform, outside=outside)))
    assert collection["type"] == "FeatureCollection"
    features = collection["features"]
    assert [feature["id"] for feature in features] == [n for n in np.unique(labels).tolist() if n != outside]
    a, b, _, d, e, _ = transform or (1, 0, 0, 0, 1, 0)
    for feature in features:
        geometry, area = feature["geometry"], int(np.count_nonzero(labels == feature["id"]))
        assert feature["type"] == "Feature" and feature["properties"] == {"label": feature["id"], "area": area}
        polygons = geometry["coordinates"] if geometry["type"] == "MultiPolygon" else [geometry["coordinates"]]
        assert (len(polygons) > 1) == (geometry["type"] == "MultiPolygon")
        areas = [[signed_area(ring) for ring in polygon] for polygon in polygons]
        assert all(outer > 0 and all(hole < 0 for hole in holes) for outer, *holes in areas)
        assert all(ring[0] == ring[-1] for polygon in polygons for ring in polygon)
        assert sum(map(sum, areas)) == pytest.approx(area * abs(a * e - b * d))


@pytest.mark.parametrize("transform", [None, *TRANSFORMS])
def test_features(transform, picture):
    rng = np.random.default_rng(3)
    for _ in range(30):
        labels = rng.integers(0, 4, rng.integers(1, 9, 2))
        check_features(labels, transform)
        check_features(labels, transform, outside=2)
    check_features(sp.slic(picture), transform)


def test_known_features():
    labels = np.array([[1, 1, 1], [1, 8, 1], [1, 1, 1]])
    outer, inner = sp.to_geojson(labels, transform=(10, 0, 500, 0, -10, 900))["features"]
    ring = [[510, 890], [510, 880], [520, 880], [520, 890], [510, 890]]
    assert inner["geometry"] == {"type": "Polygon", "coordinates": [ring]}
    assert len(outer["geometry"]["coordinates"]) == 2
    # An object with the attributes, though it is a sequence of nine, as rasterio's.
    affine = SimpleNamespace(a=10, b=0, c=500, d=0, e=-10, f=900)
    assert sp.to_geojson(labels, transform=affine) == sp.to_geojson(labels, transform=np.array([10, 0, 500, 0, -10, 900]))


def test_properties(picture):
    segmenter = sp.Segmenter(n_segments=30)
    labels = segmenter.segment(picture)
    table = segmenter.regions
    for feature in json.loads(json.dumps(sp.to_geojson(labels, table=table)))["features"]:
        row = table[feature["id"]]
        assert feature["properties"]["cx"] == row["centroid"][0] and feature["properties"]["x1"] == row["bounds"][2]
        assert feature["properties"]["area"] == row["area"]
    for bad, labels in ((table[:-1], labels), (table, labels.astype(int) - 2), (table, labels.astype(int) + 1)):
        with pytest.raises(ValueError, match="rows"):
            sp.to_geojson(labels, table=bad)


def test_shapely(picture):
    geometry = pytest.importorskip("shapely.geometry")
    labels = sp.slic(picture, connectivity=False)
    for transform in (None, *TRANSFORMS):
        for feature in sp.to_geojson(labels, transform=transform)["features"]:
            shape = geometry.shape(feature["geometry"])
            assert shape.is_valid
            for polygon in getattr(shape, "geoms", [shape]):
                assert polygon.exterior.is_ccw and not any(ring.is_ccw for ring in polygon.interiors)


def test_what_is_refused(picture):
    labels = sp.slic(picture)
    lines = [(1, 0, 0, 2, 0, 0), (0, 0, 0, 0, 0, 0)]
    for transform in [*lines, (1, 2, 3), "abcdef", 5, (1, 0, 0, 0, np.nan, 0), [[1, 0, 0, 0, 1, 0]], ("1", 0, 0, 0, 1, 0)]:
        with pytest.raises(ValueError, match="transform"):
            sp.to_geojson(labels, transform=transform)
    for named in ({"color": "red"}, {"color": (1, 2)}, {"color": (0, 0, 256)}, {"line_width": -1}, {"line_width": np.nan}):
        with pytest.raises(ValueError):
            sp.to_svg(labels, **named)
    for image in (picture[:-1], picture[None], picture.astype(float), np.full(labels.shape, 2, np.float32)):
        with pytest.raises((TypeError, ValueError)):
            sp.to_svg(labels, image)
    for bad in (labels.astype(float), labels[0], labels[:0], None):
        for call in (sp.to_svg, sp.to_geojson):
            with pytest.raises((TypeError, ValueError)):
                call(bad)
    for call in (sp.to_svg, sp.to_geojson):
        with pytest.raises(TypeError):
            call(labels, outside=0.5)
