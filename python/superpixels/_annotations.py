# SPDX-License-Identifier: MPL-2.0
"""Label maps in the formats of annotation tools: COCO, Label Studio and CVAT."""

from __future__ import annotations

from collections.abc import Mapping as _Mapping
from typing import TYPE_CHECKING

import numpy as _np

from ._contours import contours as _contours
from ._helpers import _label_map
from ._runs import _areas, _boxes, _runs
from ._runs import rles as _rles

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from numpy.typing import NDArray

    from ._native import _Labels

__all__ = ["to_coco", "to_cvat", "to_label_studio"]


def to_coco(
    labels: _Labels,
    file_name: str,
    *,
    classes: str | _Mapping[int, str] = "superpixel",
    image_id: int = 1,
    first_id: int = 1,
    outside: int | None = -1,
) -> dict[str, Any]:
    """The regions as a data set of COCO with one image.

    Parameters
    ----------
    labels : ndarray of integers, shape (H, W)
        Label map with any values.
    file_name : str
        Name of the picture's file.
    classes : str or mapping of int to str
        Class of the regions: one for all, or by label; regions of labels that it lacks are left out.
    image_id, first_id : int
        Number of the image, and of its first annotation; pycocotools wants numbers of annotations from 1 on.
    outside : int or None
        A label to leave out: -1 is what is outside of a mask. None leaves out none.

    Returns
    -------
    dataset : dict
        What ``json.dump`` writes: ``images``, ``annotations`` and ``categories``. There is one annotation a region, lowest
        label first: ``segmentation`` is what `rles` gives, with its counts as str; ``area`` in pixels; ``bbox`` x, y, width and
        height; ``iscrowd`` 0; and ``label``, which is not COCO's. Categories are numbered from 1 on, in alphabetical order.

    Raises
    ------
    TypeError, ValueError
        Labels of another type or shape; classes or an `outside` of another type.

    See Also
    --------
    rles : The run lengths alone.
    to_label_studio : Polygons for Label Studio.
    to_cvat : Polygons for CVAT.

    Notes
    -----
    To put several images into one data set, count `image_id` and `first_id` on, append their images and annotations, and pass
    the same `classes` to all: categories are numbered over all classes of the mapping, whether a region has them or not.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> dataset = sp.to_coco(np.array([[4, 4, 9]]), "picture.png", classes={4: "sky"})
    >>> dataset["annotations"][0]["bbox"], dataset["categories"]
    ([0, 0, 2, 1], [{'id': 1, 'name': 'sky'}])
    """
    labels = _label_map(labels)
    height, width = labels.shape
    names = _Classes(classes)
    numbers = {name: i for i, name in enumerate(names.all, 1)}
    runs = _runs(labels, outside)
    boxes = _boxes(runs, height).tolist() if runs.labels else []
    annotations: list[dict[str, Any]] = []
    for (label, mask), area, box in zip(_rles(labels, outside=outside).items(), _areas(runs), boxes):
        name = names.of(label)
        if name is not None:
            annotations.append({
                "id": first_id + len(annotations), "image_id": image_id, "category_id": numbers[name],
                "segmentation": {"size": mask["size"], "counts": mask["counts"].decode()},
                "area": area, "bbox": box, "iscrowd": 0, "label": label,
            })  # fmt: skip
    return {
        "images": [{"id": image_id, "width": width, "height": height, "file_name": file_name}],
        "annotations": annotations,
        "categories": [{"id": i, "name": name} for name, i in numbers.items()],
    }


def to_label_studio(
    labels: _Labels,
    url: str,
    *,
    classes: str | _Mapping[int, str] = "superpixel",
    from_name: str = "label",
    to_name: str = "image",
    outside: int | None = -1,
) -> dict[str, Any]:
    """The regions as a task of Label Studio with polygons as pre-annotations.

    Parameters
    ----------
    labels : ndarray of integers, shape (H, W)
        Label map with any values.
    url : str
        Address of the picture, as Label Studio reaches it; it stands as ``image`` in the task's data.
    classes : str or mapping of int to str
        Class of the regions, a value of the PolygonLabels tag: one for all, or by label; regions of labels that it lacks are
        left out.
    from_name, to_name : str
        Names of the tags PolygonLabels and Image in the labeling configuration.
    outside : int or None
        A label to leave out: -1 is what is outside of a mask. None leaves out none.

    Returns
    -------
    task : dict
        One task; ``json.dump`` of a list of them is what Label Studio imports. Each part of a region is a result of its own,
        ``<label>-<part>`` as its id, with points in percent of the picture's width and height.

    Raises
    ------
    TypeError, ValueError
        Labels of another type or shape; classes or an `outside` of another type.

    See Also
    --------
    to_coco : Run lengths for tools that read COCO.
    to_cvat : Polygons for CVAT.

    Notes
    -----
    Polygons of Label Studio have one ring. Holes are joined to the outline by slits of no width, so that a polygon covers the
    pixels of its region exactly.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> task = sp.to_label_studio(np.array([[4, 9]]), "http://localhost/picture.png")
    >>> task["predictions"][0]["result"][0]["value"]["points"]
    [[0.0, 0.0], [50.0, 0.0], [50.0, 100.0], [0.0, 100.0]]
    """
    labels = _label_map(labels)
    height, width = labels.shape
    results = []
    for label, name, part, ring in _rings(labels, classes, outside):
        points = (ring * (100 / width, 100 / height)).tolist()
        results.append({
            "id": f"{label}-{part}", "type": "polygonlabels", "from_name": from_name, "to_name": to_name,
            "original_width": width, "original_height": height, "image_rotation": 0,
            "value": {"points": points, "closed": True, "polygonlabels": [name]},
        })  # fmt: skip
    return {"data": {"image": url}, "predictions": [{"model_version": "superpixels", "result": results}]}


def to_cvat(
    labels: _Labels,
    file_name: str,
    *,
    classes: str | _Mapping[int, str] = "superpixel",
    image_id: int = 0,
    outside: int | None = -1,
) -> str:
    """The regions as polygons in an XML file "CVAT for images 1.1".

    Parameters
    ----------
    labels : ndarray of integers, shape (H, W)
        Label map with any values.
    file_name : str
        Name of the picture in the task of CVAT.
    classes : str or mapping of int to str
        Class of the regions, a label of the task in CVAT: one for all, or by label; regions of labels that it lacks are left
        out.
    image_id : int
        Number of the picture in the task.
    outside : int or None
        A label to leave out: -1 is what is outside of a mask. None leaves out none.

    Returns
    -------
    document : str
        The text of the file, to be written as UTF-8. Each part of a region is a polygon, in pixels from the upper left corner
        of the picture; those of a region of several parts share a ``group_id``.

    Raises
    ------
    TypeError, ValueError
        Labels of another type or shape; classes or an `outside` of another type.

    See Also
    --------
    to_coco : Run lengths for tools that read COCO.
    to_label_studio : Polygons for Label Studio.

    Notes
    -----
    Polygons of CVAT have one ring. Holes are joined to the outline by slits of no width, so that a polygon covers the pixels of
    its region exactly.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> print(sp.to_cvat(np.array([[4, 9]]), "picture.png", classes={9: "sky"}).splitlines()[-3])
        <polygon label="sky" points="1,0;2,0;2,1;1,1" occluded="0" z_order="0" />
    """
    labels = _label_map(labels)
    height, width = labels.shape
    # ElementTree is slow to load, and only this function needs it.
    from xml.etree import ElementTree

    root = ElementTree.Element("annotations")
    ElementTree.SubElement(root, "version").text = "1.1"
    task = ElementTree.SubElement(ElementTree.SubElement(root, "meta"), "task")
    ElementTree.SubElement(task, "size").text = "1"
    ElementTree.SubElement(task, "mode").text = "annotation"
    listed = ElementTree.SubElement(task, "labels")
    for name in _Classes(classes).all:
        entry = ElementTree.SubElement(listed, "label")
        ElementTree.SubElement(entry, "name").text = name
        ElementTree.SubElement(entry, "type").text = "polygon"
    of_image = {"id": str(image_id), "name": file_name, "width": str(width), "height": str(height)}
    image = ElementTree.SubElement(root, "image", of_image)
    of_label: dict[int, list[ElementTree.Element]] = {}
    for label, name, _, ring in _rings(labels, classes, outside):
        points = ";".join(f"{x:.12g},{y:.12g}" for x, y in ring.tolist())
        of_polygon = {"label": name, "points": points, "occluded": "0", "z_order": "0"}
        of_label.setdefault(label, []).append(ElementTree.SubElement(image, "polygon", of_polygon))
    for group, parts in enumerate((parts for parts in of_label.values() if len(parts) > 1), 1):
        for part in parts:
            part.set("group_id", str(group))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


class _Classes:
    """Names of classes by label."""

    def __init__(self, classes: Any) -> None:
        if not isinstance(classes, str) and not (
            isinstance(classes, _Mapping) and all(isinstance(name, str) for name in classes.values())
        ):
            raise TypeError(f"classes must be a str or a mapping of labels to str, got {type(classes).__name__}")
        self._classes = classes
        # In the order in which they are numbered.
        self.all = [classes] if isinstance(classes, str) else sorted(set(classes.values()))

    def of(self, label: int) -> str | None:
        return self._classes if isinstance(self._classes, str) else self._classes.get(label)


def _rings(
    labels: _Labels, classes: Any, outside: int | None
) -> Iterator[tuple[int, str, int, NDArray[_np.float64]]]:
    """Label, class, number and one ring of each part of the regions; no point stands twice at its end."""
    names = _Classes(classes)
    for label, polygons in _contours(labels, outside=outside).items():
        name = names.of(label)
        if name is not None:
            for part, polygon in enumerate(polygons):
                yield label, name, part, _slit(polygon)[:-1]


def _slit(polygon: list[NDArray[_np.int32]]) -> NDArray[_np.float64]:
    """A polygon with holes as one closed ring, which passes slits of no width twice."""
    joined, *holes = (ring.astype(_np.float64) for ring in polygon)
    # A slit goes to the left from the middle of a pixel side at the hole's left end. What it meets first is the outer ring, or a
    # hole that reaches further to the left and is joined already.
    for hole in sorted(holes, key=lambda ring: float(ring[:, 0].min())):
        leftmost = (hole[:-1, 0] == hole[:, 0].min()) & (hole[1:, 0] == hole[:-1, 0])
        begin = int(_np.flatnonzero(leftmost)[0])
        x, y = hole[begin, 0], min(hole[begin, 1], hole[begin + 1, 1]) + 0.5
        low, high = _np.minimum(joined[:-1], joined[1:]), _np.maximum(joined[:-1], joined[1:])
        met = _np.flatnonzero((low[:, 0] == high[:, 0]) & (low[:, 0] < x) & (low[:, 1] < y) & (y < high[:, 1]))
        at = int(met[_np.argmax(low[met, 0])])
        slit = [[joined[at, 0], y], [x, y]]
        around = _np.concatenate([slit, hole[begin + 1 : -1], hole[: begin + 1], slit[::-1]])
        joined = _np.concatenate([joined[: at + 1], around, joined[at + 1 :]])
    return joined
