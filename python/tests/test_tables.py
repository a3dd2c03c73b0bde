# SPDX-License-Identifier: MPL-2.0
"""Tables of a `Segmenter` as data frames of other packages."""

import re

import numpy as np
import pytest
import superpixels as sp
from picture import ROOT
from superpixels import _tables

NAMES = {
    "regions": "track_id area cx cy mean_r mean_g mean_b lab_l lab_a lab_b x0 y0 x1 y1",
    "motion": "vx vy age",
    "neighbors": "a b length",
    "merges": "a b height area",
    "events": "kind track_id other area",
}


def with_pandas(table):
    frame = pytest.importorskip("pandas") and sp.to_pandas(table)
    return {name: frame[name].to_numpy() for name in frame.columns}


def with_polars(table):
    frame = pytest.importorskip("polars") and sp.to_polars(table)
    return {name: frame[name].to_numpy() for name in frame.columns}


def with_arrow(table):
    frame = pytest.importorskip("pyarrow") and sp.to_arrow(table)
    return {name: frame[name].to_numpy() for name in frame.column_names}


LIBRARIES = pytest.mark.parametrize("read", [with_pandas, with_polars, with_arrow, _tables._flattened])


@pytest.fixture(scope="module")
def segmenter(picture):
    segmenter = sp.Segmenter(n_segments=60, temporal=True, events=True, levels=True)
    for shift in (0, 5, 40):
        segmenter.segment(np.roll(picture, shift, axis=1))
    return segmenter


def components(table):
    """Columns of a structured array, in order."""
    return [column for name in table.dtype.names for column in table[name].reshape(len(table), -1).T]


@LIBRARIES
@pytest.mark.parametrize("name", NAMES)
def test_every_table(name, read, segmenter):
    table = getattr(segmenter, name)
    columns = read(table)
    assert list(columns) == NAMES[name].split()
    for got, want in zip(columns.values(), components(table)):
        assert got.dtype == want.dtype and np.array_equal(got, want)
    assert all(len(column) == 0 for column in read(table[:0]).values())


@LIBRARIES
def test_tables_of_a_device(read, segmenter):
    # As torch has them: strided views, and signed types.
    kinds = {"u2": "i2", "u4": "i4"}
    table = segmenter.regions
    table["track_id"] += np.uint32(3_000_000_000)
    copied = {name: table[name].view(kinds.get(table[name].dtype.str[1:], table[name].dtype)) for name in table.dtype.names}
    assert copied["track_id"].dtype == np.int32 and copied["bounds"].dtype == np.int16
    want = read(table)
    for name, column in read(copied).items():
        assert column.dtype == want[name].dtype and np.array_equal(column, want[name])


def test_names_are_those_of_the_files():
    text = (ROOT / "src/regions.rs").read_text()
    listed = re.findall(r"(\w+): \[\w+; \d\] \{ unit: \w+, columns: \[(.*?)\] \}", text)
    assert {name: tuple(re.findall(r'"(\w+)"', columns)) for name, columns in listed} == _tables._COLUMNS


class OnDevice:
    __cuda_array_interface__ = {}


class ByDlpack:
    def __dlpack_device__(self):
        return (2, 0)


@pytest.mark.parametrize("array", [OnDevice(), ByDlpack()])
def test_arrays_on_a_device(array):
    with pytest.raises(TypeError, match=r"table\['area'\] is on a device.*\.cpu\(\) of torch.*\.get\(\) of CuPy.*\.numpy\(\)"):
        _tables._flattened({"track_id": np.zeros(1, np.uint32), "area": array})


BAD = [
    None,
    5,
    np.zeros(3),
    np.zeros((3, 3)),
    [1],
    {1: np.zeros(2)},
    {"a": 1},
    {"a": ["x"]},
    {"centroid": np.zeros((3, 3))},
    {"other": np.zeros((3, 2))},
    np.ma.zeros(2, [("a", int)]),
]


@pytest.mark.parametrize("bad", BAD)
def test_what_is_refused(bad):
    with pytest.raises(TypeError, match="table"):
        _tables._flattened(bad)


def test_lengths():
    with pytest.raises(ValueError, match="length"):
        _tables._flattened({"a": np.zeros(2), "b": np.zeros(3)})


@pytest.mark.parametrize("function, package", [("to_pandas", "pandas"), ("to_polars", "polars"), ("to_arrow", "pyarrow")])
def test_without_the_package(function, package, segmenter, monkeypatch):
    # None in this place is how Python marks a module that cannot be imported.
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(ImportError, match=package):
        getattr(sp, function)(segmenter.neighbors)
