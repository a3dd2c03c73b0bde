// SPDX-License-Identifier: MPL-2.0
//! Tables of a frame of the host as structured arrays of numpy.

use gstsuperpixel::record::{Layout, Record, RecordField, Scalar};
use gstsuperpixel::regions::{Event, MergeStep, Motion, Neighbor, Region};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// A record of the library as a dtype of numpy, made when it is first needed.
pub struct Structured {
    layout: &'static Layout,
    dtype: PyOnceLock<Py<PyAny>>,
}

pub static REGION: Structured = Structured::of::<Region>();
pub static MOTION: Structured = Structured::of::<Motion>();
pub static NEIGHBOR: Structured = Structured::of::<Neighbor>();
pub static MERGE: Structured = Structured::of::<MergeStep>();
pub static EVENT: Structured = Structured::of::<Event>();

/// The format of a field: type and number of the components that have a name.
fn format(field: &RecordField) -> String {
    let kind = match field.scalar {
        Scalar::U8 => "u1",
        Scalar::U16 => "<u2",
        Scalar::U32 => "<u4",
        Scalar::F32 => "<f4",
    };
    match field.columns.len() {
        1 => kind.to_owned(),
        count => format!("({count},){kind}"),
    }
}

impl Structured {
    const fn of<R: Record>() -> Self {
        Self { layout: R::LAYOUT, dtype: PyOnceLock::new() }
    }

    /// The dtype.
    pub fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let made = self.dtype.get_or_try_init(py, || {
            let of = self.layout.fields.iter();
            let fields = PyDict::new(py);
            fields.set_item("names", of.clone().map(|field| field.name).collect::<Vec<_>>())?;
            fields.set_item("formats", of.clone().map(format).collect::<Vec<_>>())?;
            fields.set_item("offsets", of.map(|field| field.offset).collect::<Vec<_>>())?;
            fields.set_item("itemsize", self.layout.bytes)?;
            py.import("numpy")?.call_method1("dtype", (fields,)).map(Bound::unbind)
        })?;
        Ok(made.bind(py).clone())
    }
}

/// A new array with a copy of records.
pub fn records<'py>(py: Python<'py>, record: &Structured, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    // Numpy itself raises where there is no memory.
    let empty = py.import(intern!(py, "numpy"))?.getattr(intern!(py, "empty"))?;
    let array = empty.call1((bytes.len(), intern!(py, "u1")))?.cast_into::<PyArray1<u8>>()?;
    array.readwrite().as_slice_mut()?.copy_from_slice(bytes);
    array.call_method1(intern!(py, "view"), (record.dtype(py)?,))
}
