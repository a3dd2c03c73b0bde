// SPDX-License-Identifier: MPL-2.0
//! Tables of a frame of the host as structured arrays of numpy.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// A structure of the library as a dtype of numpy: names, formats, offsets, bytes of a record.
pub struct Record {
    names: &'static [&'static str],
    formats: &'static [&'static str],
    offsets: &'static [usize],
    bytes: usize,
    dtype: PyOnceLock<Py<PyAny>>,
}

pub static REGION: Record = Record {
    names: &["track_id", "area", "centroid", "mean_rgb", "mean_lab", "bounds"],
    formats: &["<u4", "<u4", "(2,)<f4", "(3,)u1", "(3,)<f4", "(4,)<u2"],
    offsets: &[0, 4, 8, 16, 20, 32],
    bytes: 40,
    dtype: PyOnceLock::new(),
};
pub static MOTION: Record = Record {
    names: &["velocity", "age"],
    formats: &["(2,)<f4", "<u4"],
    offsets: &[0, 8],
    bytes: 12,
    dtype: PyOnceLock::new(),
};
pub static NEIGHBOR: Record = Record {
    names: &["a", "b", "length"],
    formats: &["<u4", "<u4", "<u4"],
    offsets: &[0, 4, 8],
    bytes: 12,
    dtype: PyOnceLock::new(),
};
pub static MERGE: Record = Record {
    names: &["a", "b", "height", "area"],
    formats: &["<u4", "<u4", "<f4", "<u4"],
    offsets: &[0, 4, 8, 12],
    bytes: 16,
    dtype: PyOnceLock::new(),
};

/// A new array with a copy of records.
pub fn records<'py>(py: Python<'py>, record: &Record, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let dtype = record.dtype.get_or_try_init(py, || {
        let fields = PyDict::new(py);
        fields.set_item("names", record.names.to_vec())?;
        fields.set_item("formats", record.formats.to_vec())?;
        fields.set_item("offsets", record.offsets.to_vec())?;
        fields.set_item("itemsize", record.bytes)?;
        py.import("numpy")?.call_method1("dtype", (fields,)).map(Bound::unbind)
    })?;
    PyArray1::from_slice(py, bytes).call_method1("view", (dtype,))
}
