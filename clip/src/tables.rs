// SPDX-License-Identifier: MPL-2.0
//! Parquet files of numbers: written row group by row group, and read again.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Type as Physical, ZstdLevel};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{FloatType, Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use crate::fault::{Failure, Result};
use crate::schema::Schema;

/// Rows of a row group.
const GROUP: usize = 200_000;

/// Values of a column.
#[derive(Debug, Clone)]
pub enum Column {
    /// Numbers of up to 32 bits.
    Int(Vec<i32>),
    /// Numbers of 64 bits.
    Long(Vec<i64>),
    /// Floats.
    Float(Vec<f32>),
}

/// One value of a row.
#[derive(Debug, Clone, Copy)]
pub enum Cell {
    /// A number of up to 32 bits, by its bits.
    Int(u32),
    /// A number of 64 bits.
    Long(i64),
    /// A float.
    Float(f32),
}

impl Column {
    fn of(kind: Physical) -> Self {
        match kind {
            Physical::INT64 => Self::Long(Vec::new()),
            Physical::FLOAT => Self::Float(Vec::new()),
            _ => Self::Int(Vec::new()),
        }
    }

    fn push(&mut self, cell: Cell) {
        match (self, cell) {
            (Self::Int(values), Cell::Int(value)) => values.push(value.cast_signed()),
            (Self::Long(values), Cell::Long(value)) => values.push(value),
            (Self::Float(values), Cell::Float(value)) => values.push(value),
            (column, cell) => unreachable!("{cell:?} in a column of {column:?}"),
        }
    }

    fn append(&mut self, more: &mut Self) {
        match (self, more) {
            (Self::Int(values), Self::Int(more)) => values.append(more),
            (Self::Long(values), Self::Long(more)) => values.append(more),
            (Self::Float(values), Self::Float(more)) => values.append(more),
            (column, more) => unreachable!("{more:?} in a column of {column:?}"),
        }
    }
}

/// A table that is being written.
pub struct Table {
    writer: SerializedFileWriter<File>,
    columns: Vec<Column>,
    waiting: usize,
    rows: u64,
}

impl Table {
    /// Begins a file of that schema; `notes` become its key-value metadata.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn create(path: &Path, schema: &Schema, notes: &[(&str, &str)]) -> Result<Self> {
        let schema = Arc::new(parse_message_type(&schema.message())?);
        let notes =
            notes.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), (*value).to_owned())).collect();
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(concat!("superpixel-clip ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(notes));
        let mut columns = Vec::new();
        for field in schema.get_fields() {
            let kind = field.get_physical_type();
            if kind == Physical::FLOAT {
                // Hardly two are alike.
                properties = properties.set_column_dictionary_enabled(ColumnPath::from(field.name()), false);
            }
            columns.push(Column::of(kind));
        }
        let writer = SerializedFileWriter::new(File::create(path)?, schema, Arc::new(properties.build()))?;
        Ok(Self { writer, columns, waiting: 0, rows: 0 })
    }

    /// Adds a row of as many cells as there are columns.
    ///
    /// # Errors
    ///
    /// A full row group cannot be written.
    pub fn push(&mut self, row: impl IntoIterator<Item = Cell>) -> Result<()> {
        let mut row = row.into_iter();
        for (column, cell) in self.columns.iter_mut().zip(&mut row) {
            column.push(cell);
        }
        debug_assert!(row.next().is_none());
        self.added(1)
    }

    /// Adds rows by column, all of one length.
    ///
    /// # Errors
    ///
    /// A full row group cannot be written.
    pub fn append(&mut self, mut columns: Vec<Column>, rows: usize) -> Result<()> {
        for (column, more) in self.columns.iter_mut().zip(&mut columns) {
            column.append(more);
        }
        self.added(rows)
    }

    fn added(&mut self, rows: usize) -> Result<()> {
        self.waiting += rows;
        self.rows += rows as u64;
        if self.waiting >= GROUP { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            let mut writer = group.next_column()?.ok_or_else(|| Failure::machine("a column too many"))?;
            match column {
                Column::Int(values) => writer.typed::<Int32Type>().write_batch(values, None, None)?,
                Column::Long(values) => writer.typed::<Int64Type>().write_batch(values, None, None)?,
                Column::Float(values) => writer.typed::<FloatType>().write_batch(values, None, None)?,
            };
            writer.close()?;
            match column {
                Column::Int(values) => values.clear(),
                Column::Long(values) => values.clear(),
                Column::Float(values) => values.clear(),
            }
        }
        group.close()?;
        self.waiting = 0;
        Ok(())
    }

    /// Ends the file and says how many rows it has.
    ///
    /// # Errors
    ///
    /// The rest cannot be written.
    pub fn finish(mut self) -> Result<u64> {
        if self.waiting > 0 {
            self.flush()?;
        }
        self.writer.close()?;
        Ok(self.rows)
    }
}

/// Shows the row groups of a file of numbers one after the other: columns and number of rows.
///
/// # Errors
///
/// A file that is not one of [`Table`]'s, and what `show` says.
pub fn read(path: &Path, mut show: impl FnMut(Vec<Column>, usize) -> Result<()>) -> Result<()> {
    let reader = SerializedFileReader::new(File::open(path)?)?;
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or_default();
        let mut columns = Vec::new();
        for at in 0..group.num_columns() {
            columns.push(match group.get_column_reader(at)? {
                ColumnReader::Int32ColumnReader(mut column) => {
                    let mut values = Vec::with_capacity(rows);
                    column.read_records(rows, None, None, &mut values)?;
                    Column::Int(values)
                }
                ColumnReader::Int64ColumnReader(mut column) => {
                    let mut values = Vec::with_capacity(rows);
                    column.read_records(rows, None, None, &mut values)?;
                    Column::Long(values)
                }
                ColumnReader::FloatColumnReader(mut column) => {
                    let mut values = Vec::with_capacity(rows);
                    column.read_records(rows, None, None, &mut values)?;
                    Column::Float(values)
                }
                _ => {
                    return Err(Failure::machine(format!(
                        "{} holds no table of this program",
                        path.display()
                    )));
                }
            });
        }
        show(columns, rows)?;
    }
    Ok(())
}
