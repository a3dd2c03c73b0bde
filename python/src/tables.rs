// SPDX-License-Identifier: MPL-2.0
//! Tables of a frame on a device: dicts of arrays of the frame's library, which show the columns of one copy of the records.

use gstsuperpixel::cuda::{Counts, Part};
use gstsuperpixel::record::{Layout, Record, RecordField, Scalar};
use gstsuperpixel::regions::{MergeStep, Motion, Neighbor, Region};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice};

use crate::device_array::{DeviceArray, Shared};
use crate::engines::{DeviceEngine, Streams, Table};
use crate::error::Failure;
use crate::library::{Dtype, Library};
use crate::streams;

/// Records of the library as columns of one array of words.
pub struct Columns {
    part: Part,
    layout: &'static Layout,
}

pub const REGIONS: Columns = Columns::of::<Region>(Part::Table);
pub const MOTION: Columns = Columns::of::<Motion>(Part::Motion);
pub const NEIGHBORS: Columns = Columns::of::<Neighbor>(Part::Neighbors);
pub const MERGES: Columns = Columns::of::<MergeStep>(Part::Merges);

/// Bytes of a word, the item of the array that shows records.
const WORD: usize = 4;

impl Columns {
    const fn of<R: Record>(part: Part) -> Self {
        let columns = Self { part, layout: R::LAYOUT };
        let mut i = 0;
        while i < columns.layout.fields.len() {
            let field = &columns.layout.fields[i];
            assert!(field.offset.is_multiple_of(field.scalar.bytes()), "a view cannot show it");
            i += 1;
        }
        assert!(columns.layout.bytes.is_multiple_of(WORD));
        columns
    }

    /// Words of a record.
    fn words(&self) -> usize {
        self.layout.bytes / WORD
    }
}

/// Type of a column. torch computes with no unsigned types but uint8: counts and coordinates keep their bits.
fn dtype(scalar: Scalar) -> Dtype {
    match scalar {
        Scalar::U8 => Dtype::U8,
        Scalar::U16 => Dtype::I16,
        Scalar::U32 => Dtype::I32,
        Scalar::F32 => Dtype::F32,
    }
}

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
    pub fn columns<'py>(&mut self, py: Python<'py>, of: &Columns) -> PyResult<Bound<'py, PyAny>> {
        let counts = self.counts(py)?;
        let rows = match of.part {
            Part::Neighbors => counts.pairs,
            Part::Merges => counts.merges,
            _ => counts.regions,
        } as usize;
        let made = self.make(py, Table::Records(of.part), Dtype::I32, [rows, of.words()])?;
        let columns = PyDict::new(py);
        for field in of.layout.fields {
            columns.set_item(field.name, self.column(py, &made, rows, of.words(), field)?)?;
        }
        Ok(columns.into_any())
    }

    fn column<'py>(
        &self,
        py: Python<'py>,
        made: &Made<'py>,
        rows: usize,
        words: usize,
        field: &RecordField,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (dtype, columns) = (dtype(field.scalar), field.columns.len());
        let first = field.offset / dtype.bytes();
        match made {
            Made::Theirs(array) => {
                let view = self.library.view(array, dtype)?;
                let all = PySlice::full(py);
                match columns {
                    1 => view.get_item((all, first)),
                    _ => {
                        view.get_item((all, PySlice::new(py, first as isize, (first + columns) as isize, 1)))
                    }
                }
            }
            Made::Ours(memory) => {
                let mut shape = vec![rows];
                let mut strides = vec![WORD * words / dtype.bytes()];
                if columns > 1 {
                    shape.push(columns);
                    strides.push(1);
                }
                let array = DeviceArray::new(memory.clone(), field.offset, dtype, shape, strides);
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
