// SPDX-License-Identifier: MPL-2.0
//! Tables of a frame on a device: dicts of arrays of the frame's library, which show the columns of one copy of the records.

use gstsuperpixel::cuda::{Counts, Part};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice};

use crate::device_array::{DeviceArray, Shared};
use crate::engines::{DeviceEngine, Streams, Table};
use crate::error::Failure;
use crate::library::{Dtype, Library};
use crate::streams;

/// A column of records: where it begins, in items of its type, and how many there are; 0 is one without an axis of its own.
struct Field {
    name: &'static str,
    dtype: Dtype,
    first: usize,
    columns: usize,
}

const fn field(name: &'static str, dtype: Dtype, first: usize, columns: usize) -> Field {
    Field { name, dtype, first, columns }
}

/// Records of the library as columns. torch computes with no unsigned types but uint8: counts and coordinates keep their bits.
pub struct Layout {
    part: Part,
    /// Words of a record.
    words: usize,
    fields: &'static [Field],
}

pub const REGIONS: Layout = Layout {
    part: Part::Table,
    words: 10,
    fields: &[
        field("track_id", Dtype::I32, 0, 0),
        field("area", Dtype::I32, 1, 0),
        field("centroid", Dtype::F32, 2, 2),
        field("mean_rgb", Dtype::U8, 16, 3),
        field("mean_lab", Dtype::F32, 5, 3),
        field("bounds", Dtype::I16, 16, 4),
    ],
};
pub const MOTION: Layout = Layout {
    part: Part::Motion,
    words: 3,
    fields: &[field("velocity", Dtype::F32, 0, 2), field("age", Dtype::I32, 2, 0)],
};
pub const NEIGHBORS: Layout = Layout {
    part: Part::Neighbors,
    words: 3,
    fields: &[field("a", Dtype::I32, 0, 0), field("b", Dtype::I32, 1, 0), field("length", Dtype::I32, 2, 0)],
};

pub const MERGES: Layout = Layout {
    part: Part::Merges,
    words: 4,
    fields: &[
        field("a", Dtype::I32, 0, 0),
        field("b", Dtype::I32, 1, 0),
        field("height", Dtype::F32, 2, 0),
        field("area", Dtype::I32, 3, 0),
    ],
};

/// An array of the library, or of ours.
enum Made<'py> {
    Theirs(Bound<'py, PyAny>),
    Ours(std::sync::Arc<Shared>),
}

/// Where arrays come from.
pub struct Source<'a> {
    pub library: &'a Library,
    pub ordinal: i32,
    pub engine: &'a mut DeviceEngine,
}

impl Source<'_> {
    fn counts(&mut self, py: Python<'_>) -> PyResult<Counts> {
        Ok(py.detach(|| self.engine.counts())?)
    }

    /// A new array with a table in it.
    fn make<'py>(
        &mut self,
        py: Python<'py>,
        table: Table,
        dtype: Dtype,
        shape: [usize; 2],
    ) -> PyResult<Made<'py>> {
        let bytes = shape[0] * shape[1] * dtype.bytes();
        let mut turns = Streams::default();
        let Self { library, ordinal, engine } = self;
        if let Some((array, address)) = library.empty(py, *ordinal, dtype, &shape)? {
            streams::current(py, library, *ordinal)?.iter().for_each(|&stream| turns.take_turn(stream));
            // Of nothing there is no address.
            if bytes > 0 {
                py.detach(|| engine.export(table, address, bytes, &turns))?;
            }
            return Ok(Made::Theirs(array));
        }
        let memory = py.detach(|| {
            let mut memory = engine.take(bytes)?;
            if bytes > 0 {
                engine.export(table, memory.address(), bytes, &turns)?;
            }
            memory.mark()?;
            Ok::<_, Failure>(memory)
        });
        Ok(Made::Ours(Shared::new(memory?)))
    }

    /// The columns of a table.
    pub fn columns<'py>(&mut self, py: Python<'py>, layout: &Layout) -> PyResult<Bound<'py, PyAny>> {
        let counts = self.counts(py)?;
        let rows = match layout.part {
            Part::Neighbors => counts.pairs,
            Part::Merges => counts.merges,
            _ => counts.regions,
        } as usize;
        let made = self.make(py, Table::Records(layout.part), Dtype::I32, [rows, layout.words])?;
        let columns = PyDict::new(py);
        for field in layout.fields {
            columns.set_item(field.name, self.column(py, &made, rows, layout.words, field)?)?;
        }
        Ok(columns.into_any())
    }

    fn column<'py>(
        &self,
        py: Python<'py>,
        made: &Made<'py>,
        rows: usize,
        words: usize,
        field: &Field,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Field { dtype, first, columns, .. } = *field;
        match made {
            Made::Theirs(array) => {
                let view = self.library.view(array, dtype)?;
                let all = PySlice::full(py);
                match columns {
                    0 => view.get_item((all, first)),
                    _ => {
                        view.get_item((all, PySlice::new(py, first as isize, (first + columns) as isize, 1)))
                    }
                }
            }
            Made::Ours(memory) => {
                let mut shape = vec![rows];
                let mut strides = vec![4 * words / dtype.bytes()];
                if columns > 0 {
                    shape.push(columns);
                    strides.push(1);
                }
                let array = DeviceArray::new(memory.clone(), first * dtype.bytes(), dtype, shape, strides);
                Ok(Bound::new(py, array)?.into_any())
            }
        }
    }

    /// Pairs in both directions, int64 of shape (2, 2E).
    pub fn edges<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shape = [2, 2 * self.counts(py)?.pairs as usize];
        match self.make(py, Table::Edges, Dtype::I64, shape)? {
            Made::Theirs(array) => Ok(array),
            Made::Ours(memory) => {
                Ok(Bound::new(py, DeviceArray::whole(memory, Dtype::I64, &shape))?.into_any())
            }
        }
    }
}
