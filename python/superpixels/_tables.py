# SPDX-License-Identifier: MPL-2.0
"""Tables of a `Segmenter` as data frames."""

from __future__ import annotations

from collections.abc import Mapping as _Mapping
from typing import TYPE_CHECKING

import numpy as _np

if TYPE_CHECKING:
    from typing import Any

    import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]
    import polars  # type: ignore[import-untyped,import-not-found,unused-ignore]
    import pyarrow  # type: ignore[import-untyped,import-not-found,unused-ignore]
    from numpy.typing import NDArray

__all__ = ["to_arrow", "to_pandas", "to_polars"]

# Columns of the fields that are vectors, as src/regions.rs names them for superpixel-clip.
_COLUMNS = {
    "centroid": ("cx", "cy"),
    "mean_rgb": ("mean_r", "mean_g", "mean_b"),
    "mean_lab": ("lab_l", "lab_a", "lab_b"),
    "bounds": ("x0", "y0", "x1", "y1"),
    "velocity": ("vx", "vy"),
}
# torch and CuPy show these with the signed type of the same size.
_UNSIGNED = {"track_id", "area", "bounds", "age", "a", "b", "length"}
# Kinds of memory that the host reads, as DLPack numbers them.
_HOST = (1, 3)


def to_pandas(table: NDArray[_np.void] | _Mapping[str, Any]) -> pandas.DataFrame:
    """A table as a data frame of pandas.

    Parameters
    ----------
    table : structured ndarray of shape (N,), or dict of arrays of shape (N,) or (N, K)
        What `Segmenter.regions`, `motion`, `neighbors`, `merges` or `events` gives. Arrays of a dict, as of a frame on a
        device, have to be in the host's memory.

    Returns
    -------
    frame : pandas.DataFrame
        One row a record, in the same order: row i of regions and motion is of label i. One column for each field, with the
        field's type, and for a vector one for each component, named as in the files of superpixel-clip: `cx` and `cy` [px];
        `mean_r`, `mean_g` and `mean_b` [code values]; `lab_l`, `lab_a` and `lab_b`; `x0`, `y0`, `x1` and `y1` [px]; `vx` and
        `vy` [px per frame].

    Raises
    ------
    ImportError
        There is no pandas.
    TypeError
        Something else than a table, or an array on a device; the message says how to copy it.
    ValueError
        Arrays of different lengths.

    See Also
    --------
    to_polars : The same for polars.
    to_arrow : The same for pyarrow.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> segmenter = sp.Segmenter(n_segments=12)
    >>> labels = segmenter.segment(np.zeros((60, 80, 3), np.uint8))
    >>> sp.to_pandas(segmenter.neighbors).columns.tolist()
    ['a', 'b', 'length']
    """
    import pandas

    return pandas.DataFrame(_flattened(table))


def to_polars(table: NDArray[_np.void] | _Mapping[str, Any]) -> polars.DataFrame:
    """A table as a data frame of Polars.

    Parameters
    ----------
    table : structured ndarray of shape (N,), or dict of arrays of shape (N,) or (N, K)
        As `to_pandas` takes it.

    Returns
    -------
    frame : polars.DataFrame
        The rows and columns that `to_pandas` gives.

    Raises
    ------
    ImportError
        There is no Polars.
    TypeError, ValueError
        As `to_pandas`.

    See Also
    --------
    to_pandas : The same for pandas.
    to_arrow : The same for pyarrow.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> segmenter = sp.Segmenter(n_segments=12)
    >>> labels = segmenter.segment(np.zeros((60, 80, 3), np.uint8))
    >>> sp.to_polars(segmenter.neighbors).columns
    ['a', 'b', 'length']
    """
    import polars

    return polars.DataFrame(_flattened(table))


def to_arrow(table: NDArray[_np.void] | _Mapping[str, Any]) -> pyarrow.Table:
    """A table as one of Apache Arrow, for example to write it as Parquet.

    Parameters
    ----------
    table : structured ndarray of shape (N,), or dict of arrays of shape (N,) or (N, K)
        As `to_pandas` takes it.

    Returns
    -------
    table : pyarrow.Table
        The rows and columns that `to_pandas` gives.

    Raises
    ------
    ImportError
        There is no pyarrow.
    TypeError, ValueError
        As `to_pandas`.

    See Also
    --------
    to_pandas : The same for pandas.
    to_polars : The same for polars.

    Examples
    --------
    >>> import numpy as np, superpixels as sp
    >>> segmenter = sp.Segmenter(n_segments=12)
    >>> labels = segmenter.segment(np.zeros((60, 80, 3), np.uint8))
    >>> sp.to_arrow(segmenter.neighbors).column_names
    ['a', 'b', 'length']
    """
    import pyarrow

    return pyarrow.table(_flattened(table))


def _flattened(table: Any) -> dict[str, NDArray[Any]]:
    """The columns of a table, each in memory of its own."""
    fields = _fields(table)
    columns: dict[str, NDArray[Any]] = {}
    for name, values in fields.items():
        if values.ndim == 1:
            columns[name] = _np.ascontiguousarray(values)
            continue
        names = _COLUMNS.get(name, ())
        if values.ndim != 2 or values.shape[1] != len(names):
            raise TypeError(f"field {name!r} of the table has shape {values.shape}, which no table of a Segmenter has")
        columns.update({column: _np.ascontiguousarray(values[:, i]) for i, column in enumerate(names)})
    if len({len(column) for column in columns.values()}) > 1:
        raise ValueError(f"fields of the table differ in length: { {name: len(column) for name, column in columns.items()} }")
    return columns


def _fields(table: Any) -> dict[str, NDArray[Any]]:
    """The fields of a table as arrays of the host."""
    if isinstance(table, _np.ndarray) and not isinstance(table, _np.ma.MaskedArray) and table.ndim == 1 and table.dtype.names:
        return {name: table[name] for name in table.dtype.names}
    if not isinstance(table, _Mapping) or not all(isinstance(name, str) for name in table):
        raise TypeError("table must be what regions, motion, neighbors, merges or events of a Segmenter gives")
    return {name: _of_host(name, values) for name, values in table.items()}


def _of_host(name: str, values: Any) -> NDArray[Any]:
    """An array of a dict, with the type of a structured array's field."""
    kind = getattr(values, "__dlpack_device__", None)
    if hasattr(values, "__cuda_array_interface__") or (callable(kind) and kind()[0] not in _HOST):
        raise TypeError(
            f"table[{name!r}] is on a device; copy each array to the host's memory: array.cpu() of torch, array.get() of CuPy, "
            "array.numpy() of a DeviceArray"
        )
    array = _np.asarray(values)
    if array.dtype.kind not in "iuf" or array.ndim == 0:
        raise TypeError(f"table[{name!r}] must be an array of numbers, got {array.dtype} of shape {array.shape}")
    if name in _UNSIGNED and array.dtype in (_np.int16, _np.int32):
        return array.view(f"u{array.dtype.itemsize}")
    return array
