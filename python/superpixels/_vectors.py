# SPDX-License-Identifier: MPL-2.0
"""Label maps as vector graphics and as features of a map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as _np

from . import _native
from ._arcs import arcs as _arcs
from ._contours import contours as _contours
from ._drawings import _code_values
from ._drawings import mean_color as _mean_color
from ._helpers import _label_map, _left_out
from ._outlines import smooth_labels as _smooth_labels
from ._runs import _areas, _runs
from ._tables import _flattened

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Literal

    from numpy.typing import NDArray

    from ._native import _Image, _Labels, _OtherArray

__all__ = ["to_geojson", "to_svg"]

_IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)


def to_geojson(
    labels: _Labels,
    *,
    transform: Any = None,
    table: NDArray[_np.void] | Mapping[str, Any] | None = None,
    outside: int | None = -1,
) -> dict[str, Any]:
    """The regions as a feature collection of GeoJSON (RFC 7946), with holes.

    Parameters
    ----------
    labels : ndarray of integers, shape (H, W)
        Label map with any values.
    transform : sequence of six numbers, or object with attributes a to f, optional
        From corners of pixels to coordinates: ``(a x + b y + c, d x + e y + f)``, with x columns from the left and y rows from
        the top. This is the order of rasterio's ``dataset.transform``, which is taken as it is; GDAL's order is
        c, a, b, f, d, e. Default: coordinates are corners of pixels, y downward.
    table : structured ndarray or dict of arrays, optional
        `Segmenter.regions` or `motion`, whose row i is of label i: its columns, as `to_pandas` names them, become properties.
    outside : int or None
        A label to leave out: -1 is what is outside of a mask. None leaves out none.

    Returns
    -------
    collection : dict
        What ``json.dump`` writes: one feature a label, lowest first, a Polygon, or a MultiPolygon where the region has several
        parts. ``id`` is the label, and its properties are ``label``, ``area`` [px] and the columns of `table`.

    Raises
    ------
    TypeError, ValueError
        Labels of another type or shape; a transform that is not six finite numbers or maps the plane to a line; a table without
        a row for each label.

    See Also
    --------
    contours : Polygons on pixel corners, as arrays.
    to_svg : A drawing.

    Notes
    -----
    Rings have the orientation of RFC 7946 in their coordinates: outer ones counterclockwise, holes clockwise. That standard
    takes longitude and latitude on WGS 84; other coordinates are common, too, and need to be named to the reader.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> labels = np.array([[0, 0, 1]])
    >>> collection = sp.to_geojson(labels, transform=(0.5, 0, 10, 0, -0.5, 60))
    >>> collection["features"][1]["geometry"]["coordinates"]
    [[[11.0, 60.0], [11.0, 59.5], [11.5, 59.5], [11.5, 60.0], [11.0, 60.0]]]
    """
    labels = _label_map(labels)
    affine = None if transform is None else _affine(transform)
    columns = {} if table is None else {name: column.tolist() for name, column in _flattened(table).items()}
    polygons = _contours(labels, outside=outside)
    rows = min((len(column) for column in columns.values()), default=None)
    if rows is not None and polygons and (min(polygons) < 0 or max(polygons) >= rows):
        raise ValueError(f"table has {rows} rows, and labels are {min(polygons)} to {max(polygons)}")
    runs = _runs(labels, outside)
    areas = dict(zip(runs.labels, _areas(runs)))
    features = []
    for label, of_label in polygons.items():
        parts = [[_mapped(ring, affine) for ring in polygon] for polygon in of_label]
        one = len(parts) == 1
        geometry = {"type": "Polygon" if one else "MultiPolygon", "coordinates": parts[0] if one else parts}
        properties = {"label": label, "area": areas[label], **{name: column[label] for name, column in columns.items()}}
        features.append({"type": "Feature", "id": label, "properties": properties, "geometry": geometry})
    return {"type": "FeatureCollection", "features": features}


def _affine(transform: Any) -> tuple[float, ...]:
    """The six numbers of a transform."""
    if all(hasattr(transform, name) for name in "abcdef"):
        transform = [getattr(transform, name) for name in "abcdef"]
    numbers = _np.asarray(transform)
    if numbers.shape != (6,) or numbers.dtype.kind not in "iuf" or not _np.isfinite(numbers).all():
        raise ValueError(f"transform must be six finite numbers a, b, c, d, e, f, got {transform!r}")
    a, b, c, d, e, f = numbers.astype(float).tolist()
    if a * e == b * d:
        raise ValueError("transform maps the plane to a line: a e - b d is 0")
    return a, b, c, d, e, f


def _mapped(ring: NDArray[_np.int32], affine: tuple[float, ...] | None) -> list[list[float]]:
    """A ring in coordinates, turned around where the transform mirrors."""
    if affine is None:
        corners: list[list[float]] = ring.tolist()
        return corners
    a, b, c, d, e, f = affine
    x, y = ring[:, 0], ring[:, 1]
    points = _np.stack([a * x + b * y + c, d * x + e * y + f], axis=1)
    mapped: list[list[float]] = (points if a * e > b * d else points[::-1]).tolist()
    return mapped


def to_svg(
    labels: _Labels,
    image: _Image | _OtherArray | None = None,
    *,
    color: Sequence[int] = (0, 0, 0),
    line_width: float = 1.0,
    outside: int | None = -1,
    data_range: tuple[float, float] | Literal["image"] | None = None,
    tolerance: float = 0.0,
    smoothness: float = 0.0,
    ids: Mapping[int, str] | Sequence[str] | None = None,
    shading: bool = False,
) -> str:
    """The regions as a drawing in SVG, each boundary once.

    Parameters
    ----------
    labels : ndarray of integers, shape (H, W)
        Label map with any values.
    image : ndarray of numbers, shape (H, W) or (H, W, C), optional
        The picture: regions are filled with their mean colors. Without it lines are all there is.
    color : sequence of three int
        Of the lines: red, green and blue, 0 to 255.
    line_width : float
        Width of the lines [px]; 0 draws none.
    outside : int or None
        A label to leave out: -1 is what is outside of a mask. None leaves out none.
    data_range : tuple of float, or "image", optional
        What values of the image are black and white, as for `show`.
    tolerance : float
        0, for lines along corners of pixels, or up to 4: boundaries are curves, whose control points leave out what is no farther
        than this [px] from them. With 0.7 curves pass within 1 px of the boundaries of pixels, nearly everywhere.
    smoothness : float
        0, or 0.5 to 6: what is drawn are the labels of `smooth_labels` at this scale [px]. Colors are means of `labels`.
    ids : dict of int to str, or sequence of str, optional
        For labels the ``id`` of the element of a filled region, such as names of tracks; a sequence is for labels from 0.
    shading : bool
        Regions have a gradient from one end to the other where their colors change by 2 codes of 8 bits or more: the one of all
        directions that fits the picture best. It needs `image`.

    Returns
    -------
    drawing : str
        The text of an SVG file of the picture's size. Lines along the edge of the picture are included. All lines are one path: an
        arc between two places where three or more regions meet is drawn once, though it belongs to two regions. Filled regions
        are paths of their own, with ``data-label``; neighbors have the same curve, so that nothing is between them. Curves are
        drawn smoothly, and regions a little wider than their outlines, below those that follow.

    Raises
    ------
    TypeError, ValueError
        Arrays of other types or shapes; a color out of range, a width below 0 or not finite, a tolerance or smoothness out of
        range; an id that two labels have, or one with spaces; shading without an image.

    See Also
    --------
    show : A picture of pixels.
    smooth_labels : A label map with smooth outlines.
    contours : Polygons, as arrays.

    Notes
    -----
    A curve follows the middles of pixels' sides, smoothed by a binomial filter and thinned out (Ramer 1972; Douglas and Peucker
    1973), as a quadratic spline. Corners where three or more regions meet stay where they are.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> drawing = sp.to_svg(np.array([[0, 0, 1]]))
    >>> drawing.count("M")
    3
    """
    labels = _label_map(labels)
    channels = _np.asarray(color)
    if channels.shape != (3,) or channels.dtype.kind not in "iu" or channels.min() < 0 or channels.max() > 255:
        raise ValueError(f"color must be three integers from 0 to 255, got {color!r}")
    line_width = float(line_width)
    if not 0 <= line_width < _np.inf:
        raise ValueError(f"line_width must be a finite number from 0 on, got {line_width}")
    tolerance, names = float(tolerance), _names(ids)
    if shading and image is None:
        raise ValueError("shading needs image: the picture that regions get their colors from")
    # Without antialiasing where lines are along pixels, which would let the background shine through between neighbors.
    codes = None if image is None else _code_values(image, labels, data_range=data_range)
    drawn = labels if smoothness == 0 else _smooth_labels(labels, smoothness, outside=outside)
    # What is no tolerance is refused there.
    if tolerance != 0 or shading:
        return _curves(drawn, labels, codes, channels.tolist(), line_width, outside, tolerance, names, shading)
    height, width = labels.shape
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">']
    if codes is not None:
        fills = _fills(drawn, _painted(labels, codes, outside), outside, names)
        lines += ['<g shape-rendering="crispEdges" fill-rule="evenodd">', *fills, "</g>"]
    if line_width > 0:
        path = "".join(_path(arc.tolist()) for arc in _arcs(drawn, outside))
        lines.append(
            f'<path fill="none" stroke="{_hex(channels)}" stroke-width="{line_width:g}" stroke-linecap="square" d="{path}"/>'
        )
    return "\n".join([*lines, "</svg>\n"])


def _names(ids: Mapping[int, str] | Sequence[str] | None) -> dict[int, str]:
    """The ids by label."""
    if ids is None:
        return {}
    if isinstance(ids, str):
        raise TypeError("ids must be a dict or a sequence of str, got one str")
    names = dict(ids.items() if hasattr(ids, "items") else enumerate(ids))
    for label, name in names.items():
        if not isinstance(name, str):
            raise TypeError(f"ids must be str, got {name!r} for label {label}")
        if not name or any(character.isspace() or not character.isprintable() for character in name):
            raise ValueError(f"an id must be text without spaces, got {name!r} for label {label}")
    if len(set(names.values())) < len(names):
        raise ValueError("ids must differ: two labels have the same")
    return names


def _painted(labels: _Labels, codes: NDArray[_np.uint8], outside: int | None) -> dict[int, NDArray[_np.uint8]]:
    """The mean color of each label: gray, or three channels."""
    painted = _mean_color(codes, labels, outside=outside).reshape(labels.size, -1)
    values, first = _np.unique(labels, return_index=True)
    return dict(zip(values.tolist(), painted[first]))


def _curves(
    drawn: _Labels,
    labels: _Labels,
    codes: NDArray[_np.uint8] | None,
    color: list[int],
    line_width: float,
    outside: int | None,
    tolerance: float,
    names: dict[int, str],
    shading: bool,
) -> str:
    """The drawing with curves."""
    values = _np.unique(labels)
    left_out = _left_out(labels, outside)

    def numbered(map_: _Labels) -> NDArray[_np.uint32]:
        numbers: NDArray[_np.uint32] = _np.searchsorted(values, map_).astype(_np.uint32)
        if left_out is not None:
            numbers[map_ == left_out] = _np.iinfo(_np.uint32).max
        return numbers

    colors, measured = None, None
    if codes is not None:
        of_label = _painted(labels, codes, outside)
        colors = _np.array([_np.resize(of_label[label][:3], 3) for label in values.tolist()], _np.uint8).reshape(-1, 3)
        if shading:
            pixels = _np.broadcast_to(codes.reshape(*labels.shape, -1), (*labels.shape, 3))
            measured = numbered(labels), _np.ascontiguousarray(pixels)
    named = [(label, names.get(label)) for label in values.tolist()]
    return _native.svg(numbered(drawn), colors, measured, named, tolerance, line_width, color)


def _fills(
    labels: _Labels, colors: dict[int, NDArray[_np.uint8]], outside: int | None, names: dict[int, str]
) -> Iterable[str]:
    """One path for each region, in its mean color."""
    for label, polygons in _contours(labels, outside=outside).items():
        path = "".join(_path(ring.tolist()) for polygon in polygons for ring in polygon)
        name = f'id="{_escaped(names[label])}" ' if label in names else ""
        yield f'<path {name}data-label="{label}" fill="{_hex(colors[label])}" d="{path}"/>'


def _escaped(text: str) -> str:
    """The text of an attribute."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def _hex(color: NDArray[Any]) -> str:
    """A color of one or three code values as CSS has it."""
    red, green, blue = color[:3].tolist() if len(color) >= 3 else color.tolist() * 3
    return f"#{red:02x}{green:02x}{blue:02x}"


def _path(points: list[list[int]]) -> str:
    """A line along rows and columns, in the shortest commands that SVG has for it."""
    (x, y), closed = points[0], points[0] == points[-1]
    steps = [f"M{x} {y}"]
    for (x0, y0), (x1, y1) in zip(points, points[1 : len(points) - closed]):
        steps.append(f"h{x1 - x0}" if y1 == y0 else f"v{y1 - y0}")
    return "".join(steps) + ("z" if closed else "")
