// SPDX-License-Identifier: MPL-2.0
//! Layouts of the metadata's records. `wire_records!` turns one description of a record into its struct, the list of its fields and
//! the assertion that both agree; kernels, numpy dtypes, Parquet columns, the studio and the documents are made from the list.

use bytemuck::Pod;

/// Type of a number in a record; little endian on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// IEEE 754 single precision.
    F32,
}

impl Scalar {
    /// Bytes of one number.
    pub const fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 | Self::F32 => 4,
        }
    }

    /// Name of the type in Rust.
    pub const fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::F32 => "f32",
        }
    }
}

/// Unit of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A name or a number without a unit.
    None,
    /// Pixels, as a length or as an area.
    Px,
    /// Pixels since the last frame.
    PxPerFrame,
    /// Frames.
    Frames,
    /// Pairs of 4-neighbor pixels, one on each side of a boundary.
    PixelEdges,
    /// Code values of 8 bits.
    CodeValues,
    /// Units of CIE Lab.
    Lab,
    /// A label of the map, below 65536 whatever the type of the field.
    Label,
}

impl Unit {
    /// The unit in documents; empty where there is none.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Px => "px",
            Self::PxPerFrame => "px per frame",
            Self::Frames => "frames",
            Self::PixelEdges => "pixel edges",
            Self::CodeValues => "code values",
            Self::Lab => "Lab units",
            Self::Label => "label",
        }
    }
}

/// One field of a record.
#[derive(Debug, Clone, Copy)]
pub struct RecordField {
    /// Name of the field in the struct, in numpy and in the studio.
    pub name: &'static str,
    /// Type of its numbers.
    pub scalar: Scalar,
    /// How many numbers it holds, one after the other.
    pub components: usize,
    /// Names of the components where each has a column of its own. Components without a name are filler and come last.
    pub columns: &'static [&'static str],
    /// Unit of its numbers.
    pub unit: Unit,
    /// Bytes from the start of the record.
    pub offset: usize,
    /// Meaning of the field, in one line without a period.
    pub text: &'static str,
}

/// One number of a record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// An unsigned integer of up to 32 bits.
    Int(u32),
    /// A float.
    Float(f32),
}

impl RecordField {
    /// Bytes of the field.
    pub const fn bytes(&self) -> usize {
        self.components * self.scalar.bytes()
    }

    /// Reads one component from the bytes of a record.
    ///
    /// # Panics
    ///
    /// Panics where the record ends before the component.
    pub fn value(&self, record: &[u8], component: usize) -> Value {
        let at = self.offset + component * self.scalar.bytes();
        let mut word = [0; 4];
        let bytes = &record[at..][..self.scalar.bytes()];
        word[..bytes.len()].copy_from_slice(bytes);
        match self.scalar {
            Scalar::F32 => Value::Float(f32::from_le_bytes(word)),
            Scalar::U8 | Scalar::U16 | Scalar::U32 => Value::Int(u32::from_le_bytes(word)),
        }
    }
}

/// Layout of a record.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Name of the struct, in Rust and in kernels.
    pub name: &'static str,
    /// Field of the metadata that holds such records.
    pub section: &'static str,
    /// Bytes of a record.
    pub bytes: usize,
    /// Subject of one record, in one line without a period.
    pub text: &'static str,
    /// Its fields in the order of their offsets.
    pub fields: &'static [RecordField],
}

impl Layout {
    /// Columns of a flat table of such records in their order: name, field, number of the component.
    pub fn columns(&self) -> impl Iterator<Item = (&'static str, &'static RecordField, usize)> + use<> {
        let of = |field: &'static RecordField| {
            field.columns.iter().enumerate().map(move |(i, &name)| (name, field, i))
        };
        self.fields.iter().flat_map(of)
    }

    /// Checks that the fields follow each other without gaps from the first byte to the last.
    pub(crate) const fn is_packed(&self) -> bool {
        let (mut i, mut end) = (0, 0);
        while i < self.fields.len() {
            let field = &self.fields[i];
            if field.offset != end || field.columns.is_empty() || field.columns.len() > field.components {
                return false;
            }
            end += field.bytes();
            i += 1;
        }
        end == self.bytes
    }
}

/// A record of the metadata.
pub trait Record: Pod {
    /// Places and meanings of its fields.
    const LAYOUT: &'static Layout;

    /// Values of its columns, in the order of [`Layout::columns`].
    fn values(&self) -> impl Iterator<Item = Value> {
        let bytes = bytemuck::bytes_of(self);
        Self::LAYOUT.columns().map(move |(_, field, component)| field.value(bytes, component))
    }
}

/// A type that a field may have: a number or an array of numbers.
pub(crate) trait Components {
    const SCALAR: Scalar;
    const COUNT: usize;
}

macro_rules! scalars {
    ($($kind:ty => $scalar:ident),+) => {$(
        impl Components for $kind {
            const SCALAR: Scalar = Scalar::$scalar;
            const COUNT: usize = 1;
        }
    )+};
}
scalars! { u8 => U8, u16 => U16, u32 => U32, f32 => F32 }

impl<T: Components, const N: usize> Components for [T; N] {
    const SCALAR: Scalar = T::SCALAR;
    const COUNT: usize = N * T::COUNT;
}

/// The first line of a comment without its period.
pub(crate) const fn line(comment: &str) -> &str {
    let text = comment.trim_ascii();
    match text.as_bytes() {
        [start @ .., b'.'] => match str::from_utf8(start) {
            Ok(start) => start,
            Err(_) => text,
        },
        _ => text,
    }
}

/// Defines the records of the wire format, all in one call: each struct with its [`Layout`], and `RECORDS`, the list of all layouts.
///
/// The first line of a comment becomes the text of its record or field. `in` names the field of the metadata, `unit` is a
/// [`Unit`], `columns` names the components of an array. A record with padding does not compile.
///
/// ```ignore
/// wire_records! {
///     /// One region.
///     #[derive(Eq)]
///     pub struct Region in "table" {
///         /// Number of pixels.
///         area: u32 { unit: Px },
///         /// Centroid, x then y.
///         centroid: [f32; 2] { unit: Px, columns: ["cx", "cy"] },
///     }
/// }
/// ```
macro_rules! wire_records {
    (@columns $field:ident) => { &[stringify!($field)] };
    (@columns $field:ident $($column:literal)+) => { &[$($column),+] };
    ($(
        #[doc = $about:literal]
        $(#[doc = $more_about:literal])*
        #[derive($($derived:path),*)]
        pub struct $name:ident in $section:literal {$(
            #[doc = $text:literal]
            $(#[doc = $more:literal])*
            $field:ident: $kind:ty { unit: $unit:ident $(, columns: [$($column:literal),+])? },
        )+}
    )+) => {
        $(
            #[doc = $about]
            $(#[doc = $more_about])*
            #[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable, $($derived),*)]
            #[repr(C)]
            pub struct $name {$(
                #[doc = $text]
                $(#[doc = $more])*
                pub $field: $kind,
            )+}

            impl $name {
                /// Its fields in the order of their offsets.
                pub const FIELDS: &'static [$crate::record::RecordField] = &[$(
                    $crate::record::RecordField {
                        name: stringify!($field),
                        scalar: <$kind as $crate::record::Components>::SCALAR,
                        components: <$kind as $crate::record::Components>::COUNT,
                        columns: $crate::record::wire_records!(@columns $field $($($column)+)?),
                        unit: $crate::record::Unit::$unit,
                        offset: std::mem::offset_of!($name, $field),
                        text: $crate::record::line($text),
                    },
                )+];
            }

            impl $crate::record::Record for $name {
                const LAYOUT: &'static $crate::record::Layout = &$crate::record::Layout {
                    name: stringify!($name),
                    section: $section,
                    bytes: size_of::<$name>(),
                    text: $crate::record::line($about),
                    fields: $name::FIELDS,
                };
            }

            const _: () = assert!(
                <$name as $crate::record::Record>::LAYOUT.is_packed(),
                concat!("fields, columns and size of ", stringify!($name), " do not agree")
            );
        )+

        /// Layouts of all records, in the order of their sections in the metadata.
        pub const RECORDS: &[&$crate::record::Layout] = &[$(<$name as $crate::record::Record>::LAYOUT),+];
    };
}
pub(crate) use wire_records;

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: RecordField = RecordField {
        name: "first",
        scalar: Scalar::U16,
        components: 2,
        columns: &["x", "y"],
        unit: Unit::Px,
        offset: 0,
        text: "",
    };
    const SECOND: RecordField =
        RecordField { scalar: Scalar::F32, components: 1, columns: &["z"], offset: 4, ..FIRST };

    fn is_packed(fields: &'static [RecordField], bytes: usize) -> bool {
        Layout { name: "", section: "", bytes, text: "", fields }.is_packed()
    }

    #[test]
    fn gaps_overlaps_and_columns_without_a_component_are_found() {
        assert!(is_packed(&[FIRST, SECOND], 8));
        assert!(!is_packed(&[FIRST, SECOND], 12), "ends later");
        assert!(!is_packed(&[FIRST, RecordField { offset: 6, ..SECOND }], 10), "gap");
        assert!(!is_packed(&[FIRST, RecordField { offset: 2, ..SECOND }], 6), "overlap");
        assert!(!is_packed(&[FIRST, RecordField { columns: &["z", "w"], ..SECOND }], 8), "a column too many");
        assert!(!is_packed(&[FIRST, RecordField { columns: &[], ..SECOND }], 8), "no column");
    }

    #[test]
    fn values_are_little_endian_at_their_offsets() {
        let record = [1, 2, 3, 4, 0, 0, 0xc0, 0xbf];
        let values = [FIRST.value(&record, 0), FIRST.value(&record, 1), SECOND.value(&record, 0)];
        assert_eq!(values, [Value::Int(0x201), Value::Int(0x403), Value::Float(-1.5)]);
        let layout = Layout { name: "", section: "", bytes: 8, text: "", fields: &[FIRST, SECOND] };
        let columns: Vec<_> =
            layout.columns().map(|(name, field, i)| (name, field.value(&record, i))).collect();
        assert_eq!(columns, [("x", values[0]), ("y", values[1]), ("z", values[2])]);
    }

    #[test]
    fn texts_end_without_a_period() {
        assert_eq!((line(" Number of pixels."), line(" Two. Parts ")), ("Number of pixels", "Two. Parts"));
    }
}
