// SPDX-License-Identifier: MPL-2.0
//! Columns of the tables: some of the frame, then those of the library's records, from the library's list of their fields.

use gstsuperpixel::record::{Layout, Record, RecordField, Scalar, Unit};
use gstsuperpixel::regions::{Event, Motion, Neighbor, Region};

/// Type of a column. Parquet stores unsigned integers of up to 32 bits in signed ones of 32 bits, by their bits.
#[derive(Debug, Clone, Copy)]
enum Kind {
    U8,
    U16,
    U32,
    I64,
    Float,
}

impl Kind {
    /// Types in a Parquet message: of what is stored, and of what that means.
    fn declared(self) -> (&'static str, &'static str) {
        match self {
            Self::U8 => ("int32", " (INTEGER(8, false))"),
            Self::U16 => ("int32", " (INTEGER(16, false))"),
            Self::U32 => ("int32", " (INTEGER(32, false))"),
            Self::I64 => ("int64", ""),
            Self::Float => ("float", ""),
        }
    }
}

impl From<&RecordField> for Kind {
    fn from(field: &RecordField) -> Self {
        match (field.unit, field.scalar) {
            // Labels fit into the map's 16 bits.
            (Unit::Label, _) | (_, Scalar::U16) => Self::U16,
            (_, Scalar::U8) => Self::U8,
            (_, Scalar::U32) => Self::U32,
            (_, Scalar::F32) => Self::Float,
        }
    }
}

/// Columns of one type and meaning, side by side.
#[derive(Debug)]
#[cfg_attr(not(test), allow(dead_code))] // The document alone shows unit and text.
struct Group {
    names: &'static [&'static str],
    kind: Kind,
    unit: &'static str,
    text: &'static str,
}

impl From<&'static RecordField> for Group {
    fn from(field: &'static RecordField) -> Self {
        Self { names: field.columns, kind: field.into(), unit: field.unit.name(), text: field.text }
    }
}

/// Columns of a table.
#[derive(Debug)]
pub struct Schema {
    name: &'static str,
    groups: Vec<Group>,
}

/// Number of the frame, which all tables begin with.
const FRAME: Group =
    Group { names: &["frame"], kind: Kind::U32, unit: "", text: "Number of the frame, from 0 on" };

impl Schema {
    fn new(name: &'static str, of_frame: Vec<Group>, layouts: &[&'static Layout]) -> Self {
        let mut groups = of_frame;
        groups.extend(layouts.iter().flat_map(|layout| layout.fields).map(Group::from));
        Self { name, groups }
    }

    /// One row for each region of each frame.
    pub fn regions() -> Self {
        let text =
            "Time of the frame from the [start of the clip](#time-and-length); -1 where the clip has none";
        let time = Group { names: &["pts_ns"], kind: Kind::I64, unit: "ns", text };
        let label =
            Group { names: &["label"], kind: Kind::U16, unit: "label", text: "Value in the label map" };
        Self::new("regions", vec![FRAME, time, label], &[Region::LAYOUT, Motion::LAYOUT])
    }

    /// One row for each pair of regions that touch, with a < b.
    pub fn adjacency() -> Self {
        Self::new("adjacency", vec![FRAME], &[Neighbor::LAYOUT])
    }

    /// One row for each event of each frame.
    pub fn events() -> Self {
        Self::new("events", vec![FRAME], &[Event::LAYOUT])
    }

    /// One row for each object of each frame.
    pub fn objects() -> Self {
        let group = |names, kind, unit, text| Group { names, kind, unit, text };
        let groups = vec![
            FRAME,
            group(&["pts_ns"], Kind::I64, "ns", "Time of the frame, as of `regions`"),
            group(&["id"], Kind::U32, "", "Name of the object over time, and its value in `objects.mkv`"),
            group(&["area"], Kind::U32, "px", "Number of pixels"),
            group(
                &["x0", "y0", "x1", "y1"],
                Kind::U16,
                "px",
                "Bounding box: x0, y0, x1, y1; x1 and y1 exclusive",
            ),
            group(&["vx", "vy"], Kind::Float, "px per frame", "Motion since the last frame, x then y"),
            group(&["regions"], Kind::U32, "", "Number of regions"),
            group(&["confidence"], Kind::Float, "", "Of the box in this frame, else of the last one"),
        ];
        Self::new("objects", groups, &[])
    }

    /// The schema as Parquet's parser takes it.
    pub fn message(&self) -> String {
        let columns = self.groups.iter().flat_map(|group| group.names.iter().map(|name| (name, group.kind)));
        let lines = columns.map(|(name, kind)| {
            let (stored, meant) = kind.declared();
            format!("    required {stored} {name}{meant};\n")
        });
        format!("message {} {{\n{}}}", self.name, lines.collect::<String>())
    }

    /// Number of a column.
    pub fn position(&self, column: &str) -> Option<usize> {
        self.groups.iter().flat_map(|group| group.names).position(|name| *name == column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What readers of earlier output rely on.
    #[test]
    fn columns_keep_names_order_and_types() {
        let regions = "message regions {
    required int32 frame (INTEGER(32, false));
    required int64 pts_ns;
    required int32 label (INTEGER(16, false));
    required int32 track_id (INTEGER(32, false));
    required int32 area (INTEGER(32, false));
    required float cx;
    required float cy;
    required int32 mean_r (INTEGER(8, false));
    required int32 mean_g (INTEGER(8, false));
    required int32 mean_b (INTEGER(8, false));
    required float lab_l;
    required float lab_a;
    required float lab_b;
    required int32 x0 (INTEGER(16, false));
    required int32 y0 (INTEGER(16, false));
    required int32 x1 (INTEGER(16, false));
    required int32 y1 (INTEGER(16, false));
    required float vx;
    required float vy;
    required int32 age (INTEGER(32, false));
}";
        assert_eq!(Schema::regions().message(), regions);
        let adjacency = "message adjacency {
    required int32 frame (INTEGER(32, false));
    required int32 a (INTEGER(16, false));
    required int32 b (INTEGER(16, false));
    required int32 length (INTEGER(32, false));
}";
        assert_eq!(Schema::adjacency().message(), adjacency);
        let events = "message events {
    required int32 frame (INTEGER(32, false));
    required int32 kind (INTEGER(32, false));
    required int32 track_id (INTEGER(32, false));
    required int32 other (INTEGER(32, false));
    required int32 area (INTEGER(32, false));
}";
        assert_eq!(Schema::events().message(), events);
        assert_eq!(Schema::regions().position("track_id"), Some(3));
    }

    /// The table of a schema for docs/corpus.md.
    fn table(schema: &Schema) -> String {
        let rows = schema.groups.iter().map(|group| {
            let names: Vec<_> = group.names.iter().map(|name| format!("`{name}`")).collect();
            let kind = match group.kind {
                Kind::U8 => "uint8",
                Kind::U16 => "uint16",
                Kind::U32 => "uint32",
                Kind::I64 => "int64",
                Kind::Float => "float",
            };
            let unit = if group.unit.is_empty() { "-" } else { group.unit };
            format!("| {} | {kind} | {unit} | {} |\n", names.join(", "), group.text)
        });
        format!(
            "| `{}` | type | unit | content |\n|---|---|---|---|\n{}",
            schema.name,
            rows.collect::<String>()
        )
    }

    #[test]
    fn tables_of_the_document_are_the_schemas() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/corpus.md");
        let there = std::fs::read_to_string(path).unwrap();
        let (begin, end) =
            ("<!-- Columns, written by clip/src/schema.rs. -->\n", "<!-- End of the columns. -->\n");
        let (before, rest) = there.split_once(begin).unwrap();
        let after = rest.split_once(end).unwrap().1;
        let tables = [Schema::regions(), Schema::adjacency(), Schema::events(), Schema::objects()]
            .map(|schema| table(&schema))
            .join("\n");
        let wanted = format!("{before}{begin}\n{tables}\n{end}{after}");
        if std::env::var_os("SUPERPIXEL_WRITE").is_some() {
            std::fs::write(path, wanted).unwrap();
        } else {
            assert!(
                there == wanted,
                "docs/corpus.md is old: SUPERPIXEL_WRITE=1 writes it anew. Want\n{tables}"
            );
        }
    }
}
