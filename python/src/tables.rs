// SPDX-License-Identifier: MPL-2.0
//! Tables of a frame on a device: dicts of arrays of the frame's library, which show the columns of one copy of the records.

use gstsuperpixel::buffers::BatchTable;
use gstsuperpixel::cuda::{Counts, Part};
use gstsuperpixel::record::{Layout, Record, RecordField, Scalar};
use gstsuperpixel::regions::{MergeStep, Motion, Neighbor, Region};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice};

use crate::device_array::{DeviceArray, Shared};
use crate::engines::{BatchItems, DeviceEngine, Streams, Table};
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

/// The array itself.
fn whole<'py>(
    py: Python<'py>,
    made: Made<'py>,
    dtype: Dtype,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    match made {
        Made::Theirs(array) => Ok(array),
        Made::Ours(memory) => Ok(Bound::new(py, DeviceArray::whole(memory, dtype, shape))?.into_any()),
    }
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

    /// A new array that `export` writes to: given an engine, an address, so many bytes and the streams in whose order that is.
    fn make<'py>(
        &mut self,
        py: Python<'py>,
        dtype: Dtype,
        shape: &[usize],
        export: impl FnOnce(&mut DeviceEngine, u64, usize, &Streams) -> Result<(), Failure> + Send,
    ) -> PyResult<Made<'py>> {
        let bytes = shape.iter().product::<usize>() * dtype.bytes();
        let mut turns = Streams::default();
        let Self { library, ordinal, engine } = self;
        if let Some((array, address)) = library.empty(py, *ordinal, dtype, shape)? {
            streams::current(py, library, *ordinal)?.iter().for_each(|&stream| turns.take_turn(stream));
            // Of nothing there is no address.
            if bytes > 0 {
                py.detach(|| export(engine, address, bytes, &turns))?;
            }
            return Ok(Made::Theirs(array));
        }
        let memory = py.detach(|| {
            let mut memory = engine.take(bytes)?;
            if bytes > 0 {
                export(engine, memory.address(), bytes, &turns)?;
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
        let (part, shape) = (of.part, [rows, of.words()]);
        let made = self.make(py, Dtype::I32, &shape, |engine, address, bytes, streams| {
            engine.export(Table::Records(part), address, bytes, streams)
        })?;
        self.columns_of(py, &made, rows, of)
    }

    /// The columns of records that have been copied.
    fn columns_of<'py>(
        &self,
        py: Python<'py>,
        made: &Made<'py>,
        rows: usize,
        of: &Columns,
    ) -> PyResult<Bound<'py, PyAny>> {
        let columns = PyDict::new(py);
        for field in of.layout.fields {
            columns.set_item(field.name, self.column(py, made, rows, of.words(), field)?)?;
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
        let made = self.make(py, Dtype::I64, &shape, |engine, address, bytes, streams| {
            engine.export(Table::Edges, address, bytes, streams)
        })?;
        whole(py, made, Dtype::I64, &shape)
    }

    /// What all frames of the last call gave together: offsets of regions, int64 [frames + 1], the frame of each region, and, as they
    /// are asked for, columns of regions and of pairs with the offsets of pairs, and pairs in both directions. Waits for it.
    pub fn batch<'py>(
        &mut self,
        py: Python<'py>,
        frames: usize,
        regions: bool,
        neighbors: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let offsets = |engine: &mut DeviceEngine, table| py.detach(|| engine.batch_offsets(table));
        let all = offsets(self.engine, BatchTable::Regions)?[frames] as usize;
        let found = PyDict::new(py);
        found.set_item(
            "ptr",
            self.batch_numbers(py, BatchItems::Offsets(BatchTable::Regions), &[frames + 1])?,
        )?;
        found.set_item("batch", self.batch_numbers(py, BatchItems::Frames(all), &[all])?)?;
        if regions {
            found.set_item("regions", self.batch_columns(py, &REGIONS, BatchTable::Regions, all)?)?;
        }
        if neighbors {
            let pairs = offsets(self.engine, BatchTable::Neighbors)?[frames] as usize;
            let edges = [2, 2 * pairs];
            let before = BatchItems::Offsets(BatchTable::Neighbors);
            found.set_item("pair_ptr", self.batch_numbers(py, before, &[frames + 1])?)?;
            found.set_item("neighbors", self.batch_columns(py, &NEIGHBORS, BatchTable::Neighbors, pairs)?)?;
            found.set_item("edge_index", self.batch_numbers(py, BatchItems::Edges(pairs), &edges)?)?;
        }
        Ok(found)
    }

    /// Numbers of 64 bits of a batch.
    fn batch_numbers<'py>(
        &mut self,
        py: Python<'py>,
        items: BatchItems,
        shape: &[usize],
    ) -> PyResult<Bound<'py, PyAny>> {
        let made = self.make(py, Dtype::I64, shape, |engine, address, bytes, streams| {
            engine.export_batch(items, address, bytes, streams)
        })?;
        whole(py, made, Dtype::I64, shape)
    }

    fn batch_columns<'py>(
        &mut self,
        py: Python<'py>,
        of: &Columns,
        table: BatchTable,
        rows: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let made = self.make(py, Dtype::I32, &[rows, of.words()], |engine, address, bytes, streams| {
            engine.export_batch(BatchItems::Records(table, rows), address, bytes, streams)
        })?;
        self.columns_of(py, &made, rows, of)
    }
}
