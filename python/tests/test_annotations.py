# SPDX-License-Identifier: MPL-2.0
"""Files of annotation tools: every polygon or mask in them covers the pixels of its region."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest
import superpixels as sp
from test_contours import filled
from test_helpers import decompress

NESTED = np.zeros((15, 17), np.uint8)
for depth, color in enumerate([1, 0, 2, 1, 0]):
    NESTED[1 + depth : 14 - depth, 1 + depth : 16 - depth] = color


def covered(points, shape):
    """How often each half pixel is inside of a ring without its last point; corners and slits lie on half pixels."""
    ring = np.array([*points, points[0]], float) * 2
    assert np.array_equal(ring, ring.round())
    return filled([[ring.astype(int)]], (2 * shape[0], 2 * shape[1]))


def check_rings(rings, labels):
    """Rings as (label, points) together cover each pixel of their label once."""
    found = {}
    for label, points in rings:
        # Slits pass twice, so that the winding number is 0 or 1.
        found[label] = found.get(label, 0) + covered(points, labels.shape)
    for label, times in found.items():
        assert np.array_equal(times, np.kron(labels == label, np.ones((2, 2), int)))


def polygons_of_label_studio(labels, **named):
    task = json.loads(json.dumps(sp.to_label_studio(labels, "/data/a.png", **named)))
    assert task["data"] == {"image": "/data/a.png"} and len(task["predictions"]) == 1
    results = task["predictions"][0]["result"]
    assert len({result["id"] for result in results}) == len(results)
    scale = np.array(labels.shape[::-1]) / 100
    for result in results:
        assert (result["original_height"], result["original_width"]) == labels.shape and result["type"] == "polygonlabels"
        points = (np.array(result["value"]["points"]) * scale * 2).round(6) / 2
        yield int(result["id"].rpartition("-")[0]), points.tolist(), result["value"]["polygonlabels"][0]


def polygons_of_cvat(labels, **named):
    root = ElementTree.fromstring(sp.to_cvat(labels, "a.png", **named))
    image = root.find("image")
    assert root.tag == "annotations" and root.find("version").text == "1.1" and root.find("meta/task/mode").text == "annotation"
    assert image.get("name") == "a.png" and (int(image.get("height")), int(image.get("width"))) == labels.shape
    for polygon in image:
        points = [[float(value) for value in pair.split(",")] for pair in polygon.get("points").split(";")]
        yield polygon.get("label"), points, polygon.get("group_id")


def check_polygons(labels, outside=None):
    wanted = [label for label in np.unique(labels).tolist() if label != outside]
    found = list(polygons_of_label_studio(labels, outside=outside))
    assert sorted({label for label, _, _ in found}) == wanted
    check_rings([(label, points) for label, points, _ in found], labels)
    classes = {label: f"n{label}" for label in wanted}
    found = list(polygons_of_cvat(labels, classes=classes, outside=outside))
    assert sorted({name for name, _, _ in found}) == sorted(classes.values())
    check_rings([(int(name[1:]), points) for name, points, _ in found], labels)
    names = [name for name, _, _ in found]
    groups = {name: {group for of, _, group in found if of == name} for name in names}
    assert all(len(groups[name]) == 1 and (groups[name] == {None}) == (names.count(name) == 1) for name in names)


def test_polygons_of_drawn_values():
    rng = np.random.default_rng(11)
    for _ in range(80):
        height, width, colors = rng.integers(1, 12, 3)
        labels = rng.integers(-2, colors, (height, width))
        check_polygons(labels)
        check_polygons(labels, outside=0)


def test_holes():
    check_polygons(NESTED)
    many = np.ones((21, 22), np.int64)
    many[1::2, 1:-1:2] = np.arange(100).reshape(10, 10) + 2
    check_polygons(many)
    many[1::2, 1:-1:2] = 5
    check_polygons(many)
    # Random holes of any form in one region.
    rng = np.random.default_rng(1)
    for _ in range(40):
        check_polygons(np.pad((rng.random((16, 18)) < 0.3).astype(int), 1))


def test_segmented(picture):
    check_polygons(sp.slic(picture, n_segments=60))
    mask = np.hypot(*np.indices(picture.shape[:2])) < 90
    check_polygons(sp.slic(picture, mask=mask, connectivity=False), outside=-1)


def check_coco(labels, outside=None):
    dataset = json.loads(json.dumps(sp.to_coco(labels, "a.png", outside=outside)))
    height, width = labels.shape
    assert dataset["images"] == [{"id": 1, "width": width, "height": height, "file_name": "a.png"}]
    assert dataset["categories"] == [{"id": 1, "name": "superpixel"}]
    annotations = dataset["annotations"]
    assert [one["id"] for one in annotations] == list(range(1, len(annotations) + 1))
    assert [one["label"] for one in annotations] == [label for label in np.unique(labels).tolist() if label != outside]
    for one in annotations:
        inside = labels == one["label"]
        y, x = np.nonzero(inside)
        assert one["area"] == len(y) and one["iscrowd"] == 0 and one["image_id"] == one["category_id"] == 1
        assert one["bbox"] == [x.min(), y.min(), np.ptp(x) + 1, np.ptp(y) + 1]
        assert one["segmentation"]["size"] == [height, width]
        counts = decompress(one["segmentation"]["counts"].encode())
        values = np.arange(len(counts)) % 2 == 1
        assert np.array_equal(np.repeat(values, counts).reshape(labels.shape, order="F"), inside)


def test_coco(picture):
    rng = np.random.default_rng(4)
    for _ in range(100):
        height, width, colors = rng.integers(1, 12, 3)
        labels = rng.integers(-2, colors, (height, width))
        check_coco(labels)
        check_coco(labels, outside=0)
    check_coco(sp.slic(picture))


# pycocotools 2.0.11 warns of itself with numpy 2.
@pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")
def test_pycocotools(picture, tmp_path):
    coco = pytest.importorskip("pycocotools.coco")
    labels = sp.slic(picture)
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps(sp.to_coco(labels, "a.png")))
    dataset = coco.COCO(str(path))
    for one in dataset.loadAnns(dataset.getAnnIds(imgIds=[1])):
        assert np.array_equal(dataset.annToMask(one), labels == one["label"])


def test_classes(picture):
    labels = sp.slic(picture)
    classes = {3: "tree", np.int64(7): "sky", 8: "tree", 9999: "none"}
    dataset = sp.to_coco(labels, "a.png", classes=classes, image_id=6, first_id=100)
    found = [(one["id"], one["label"], one["category_id"]) for one in dataset["annotations"]]
    assert found == [(100, 3, 3), (101, 7, 2), (102, 8, 3)]
    assert dataset["categories"] == [{"id": 1, "name": "none"}, {"id": 2, "name": "sky"}, {"id": 3, "name": "tree"}]
    assert {one["image_id"] for one in dataset["annotations"]} == {6} == {dataset["images"][0]["id"]}
    found = polygons_of_label_studio(labels, classes=classes, from_name="a", to_name="b")
    assert [(label, name) for label, _, name in found] == [(3, "tree"), (7, "sky"), (8, "tree")]
    assert [name for name, _, _ in polygons_of_cvat(labels, classes=classes)] == ["tree", "sky", "tree"]
    text = sp.to_cvat(labels, 'a&"<.png', classes='b&"<', image_id=4)
    root = ElementTree.fromstring(text)
    assert root.find("image").attrib == {"id": "4", "name": 'a&"<.png', "width": "163", "height": "122"}
    assert root.find("image/polygon").get("label") == 'b&"<' == root.find("meta/task/labels/label/name").text
    for call in (sp.to_coco, sp.to_label_studio, sp.to_cvat):
        for bad in (None, 5, ["sky"], {1: 2}, {1: None}):
            with pytest.raises(TypeError, match="classes"):
                call(labels, "a.png", classes=bad)


def test_nothing_left():
    labels = np.full((3, 4), -1)
    assert sp.to_coco(labels, "a.png")["annotations"] == []
    assert list(polygons_of_label_studio(labels)) == list(polygons_of_cvat(labels)) == []
    assert sp.to_geojson(labels)["features"] == []


@pytest.mark.parametrize("call", [sp.to_coco, sp.to_label_studio, sp.to_cvat])
def test_what_is_refused(call):
    for bad in (np.zeros((2, 2)), np.zeros(3, int), np.zeros((0, 2), int), None, np.ma.zeros((2, 2), int)):
        with pytest.raises((TypeError, ValueError)):
            call(bad, "a.png")
    with pytest.raises(TypeError):
        call(np.zeros((2, 2), int), "a.png", outside="0")
