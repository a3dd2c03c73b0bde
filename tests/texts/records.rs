// SPDX-License-Identifier: MPL-2.0
//! Texts that repeat the layout of a record are the ones that `regions` gives: the header of the kernels, documents, docstrings and
//! the readers for people who have no code of ours. `SUPERPIXEL_WRITE=1` writes them anew; without features that compiles even while
//! the header is old.

use std::path::Path;

use gstsuperpixel::record::{Layout, Record, RecordField, Scalar, Unit};
use gstsuperpixel::regions::{Event, MergeStep, Motion, Neighbor, RECORDS, Region};

/// A generated text in a file: all that stands behind `begin` and before `end`, or to the end of the file where that is empty.
struct Generated {
    file: &'static str,
    begin: &'static str,
    end: &'static str,
    text: String,
}

impl Generated {
    /// The content of the file with this text in its place; `None` where the place is not there.
    fn put(&self, content: &str) -> Option<String> {
        let start = content.find(self.begin)? + self.begin.len();
        let end =
            if self.end.is_empty() { content.len() } else { start + content[start..].find(self.end)? };
        Some([&content[..start], &self.text, &content[end..]].concat())
    }
}

const LAYOUTS: [&Layout; 5] =
    [Region::LAYOUT, Motion::LAYOUT, Neighbor::LAYOUT, MergeStep::LAYOUT, Event::LAYOUT];

/// A name of each type, in the order of `Scalar`.
fn name(scalar: Scalar, names: [&'static str; 4]) -> &'static str {
    match scalar {
        Scalar::U8 => names[0],
        Scalar::U16 => names[1],
        Scalar::U32 => names[2],
        Scalar::F32 => names[3],
    }
}

fn in_c(field: &RecordField, names: [&'static str; 4]) -> String {
    let count = if field.components > 1 { format!("[{}]", field.components) } else { String::new() };
    format!("{} {}{count};", name(field.scalar, names), field.name)
}

/// The struct of a record for kernels, with the lines that both compilers check.
fn kernel_struct(layout: &Layout) -> String {
    let mut text =
        format!("\n// {}; `{}` of the metadata.\nstruct {} {{\n", layout.text, layout.section, layout.name);
    for field in layout.fields {
        text += &format!("  {}\n", in_c(field, ["u8", "u16", "u32", "float"]));
    }
    text += "};\n";
    for field in layout.fields {
        text += &format!("ABI({}, {}, {});\n", layout.name, field.name, field.offset);
    }
    text + &format!("ABI_SIZE({}, {});\n", layout.name, layout.bytes)
}

/// The struct of a record for C with GLib.
fn c_struct(layout: &Layout) -> String {
    let mut text = format!("// {}; {} bytes, little endian.\ntypedef struct {{\n", layout.text, layout.bytes);
    for field in layout.fields {
        let of_c = in_c(field, ["guint8", "guint16", "guint32", "gfloat"]);
        text += &format!("  {of_c}  // {}\n", described(field));
    }
    let Layout { name, bytes, .. } = layout;
    text + &format!("}} {name};\nG_STATIC_ASSERT(sizeof({name}) == {bytes});\n")
}

/// Offsets of a merge step for C without GLib, and its size.
fn c_offsets() -> String {
    let mut text = format!("// {}: offsets in a record, little endian.\nenum {{\n", MergeStep::LAYOUT.text);
    for field in MergeStep::FIELDS {
        let of_c = format!("CUT_{} = {},", field.name.to_uppercase(), field.offset);
        text += &format!("  {of_c}  // {}, {}\n", field.scalar.name(), described(field));
    }
    text + &format!("  CUT_BYTES = {}\n}};\n", MergeStep::LAYOUT.bytes)
}

/// The dtype of a record, with all components, under a name.
fn dtype(name: &str, layout: &Layout) -> String {
    let mut text =
        format!("# {}; {} bytes, little endian.\n{name} = np.dtype(\n    [\n", layout.text, layout.bytes);
    for field in layout.fields {
        let count = if field.components > 1 { format!(", {}", field.components) } else { String::new() };
        let kind = self::name(field.scalar, ["u1", "<u2", "<u4", "<f4"]);
        text += &format!("        (\"{}\", \"{kind}\"{count}),  # {}\n", field.name, described(field));
    }
    text + &format!("    ]\n)\nassert {name}.itemsize == {}\n", layout.bytes)
}

/// Fields of a record with their dtypes and columns, for Python.
fn columns(name: &str, layout: &Layout) -> String {
    let mut text = format!("{name} = (\n");
    for field in layout.fields {
        let kind = self::name(field.scalar, ["uint8", "uint16", "uint32", "float32"]);
        let columns: Vec<_> = field.columns.iter().map(|column| format!("\"{column}\"")).collect();
        let comma = if columns.len() == 1 { "," } else { "" };
        text += &format!("    (\"{}\", np.{kind}, ({}{comma})),\n", field.name, columns.join(", "));
    }
    text + ")\n"
}

/// The text of a field and its unit.
fn described(field: &RecordField) -> String {
    match field.unit {
        // The text says so.
        Unit::None | Unit::Label => field.text.to_owned(),
        unit => format!("{} [{}]", field.text, unit.name()),
    }
}

/// Fields of a record for a docstring: dtypes and the components that are shown.
fn docstring(layout: &Layout) -> String {
    let mut text = String::from("Fields:\n\n");
    for field in layout.fields {
        let kind = name(field.scalar, ["uint8", "uint16", "uint32", "float32"]);
        let count = if field.columns.len() > 1 { format!("{} ", field.columns.len()) } else { String::new() };
        text += &format!("- `{}`, {count}{kind}: {}\n", field.name, described(field));
    }
    // The docstring ends the last line.
    text.trim_end().to_owned()
}

/// Tables for docs/metadata.md.
fn tables() -> String {
    let mut text = String::new();
    for Layout { section, bytes, text: about, fields, .. } in RECORDS {
        text += &format!("\n`{section}`: {about}; {bytes} bytes.\n\n");
        text += "| byte | field | type | unit | content |\n|--:|---|---|---|---|\n";
        for field in *fields {
            let RecordField { offset, name, unit, .. } = field;
            let count = if field.components > 1 { format!("{} ", field.components) } else { String::new() };
            let kind = format!("{count}{}", field.scalar.name());
            let unit = if unit.name().is_empty() { "-" } else { unit.name() };
            text += &format!("| {offset} | `{name}` | {kind} | {unit} | {} |\n", field.text);
        }
    }
    text + "\n"
}

/// Names of the fields of records, for a row of docs/python.md.
fn listed(layouts: &[&Layout]) -> String {
    let names = |layout: &&Layout| {
        let names: Vec<_> = layout.fields.iter().map(|field| format!("`{}`", field.name)).collect();
        names.join(", ")
    };
    layouts.iter().map(names).collect::<Vec<_>>().join("; ")
}

/// Every text outside of `src` that repeats a layout.
fn all() -> Vec<Generated> {
    const PY: [&str; 2] = ["# Layouts, written by tests/texts/records.rs.\n", "# End of the layouts.\n"];
    const C: [&str; 2] = ["// Layouts, written by tests/texts/records.rs.\n", "// End of the layouts.\n"];
    const MD: [&str; 2] =
        ["<!-- Layouts, written by tests/texts/records.rs. -->\n", "<!-- End of the layouts. -->\n"];
    let between = |file, [begin, end]: [&'static str; 2], text| Generated { file, begin, end, text };
    let fields = |file, layout| between(file, ["", ""], docstring(layout));
    let structs = LAYOUTS.map(kernel_struct).concat();
    let dtypes = [("REGION", Region::LAYOUT), ("NEIGHBOR", Neighbor::LAYOUT), ("EVENT", Event::LAYOUT)];
    let dtypes = dtypes.map(|(name, layout)| dtype(name, layout)).join("\n");
    let stage = [columns("REGION", Region::LAYOUT), columns("MOTION", Motion::LAYOUT)].concat();
    let row = |begin, end, layouts| between("docs/python.md", [begin, end], listed(layouts));
    vec![
        between("kernels/records.cuh", ["#pragma once\n", ""], structs),
        between("docs/metadata.md", MD, tables()),
        between("pipelines/read_labels.py", PY, dtypes),
        between("examples/read_labels.c", C, [Region::LAYOUT, Event::LAYOUT].map(c_struct).join("\n")),
        between("examples/cut_labels.py", PY, dtype("MERGE", MergeStep::LAYOUT)),
        between("examples/cut_labels.h", C, c_offsets()),
        between("pipelines/cluster/superpixel_stage.py", PY, stage),
        fields("python/src/fields/regions.txt", Region::LAYOUT),
        fields("python/src/fields/motion.txt", Motion::LAYOUT),
        fields("python/src/fields/neighbors.txt", Neighbor::LAYOUT),
        fields("python/src/fields/merges.txt", MergeStep::LAYOUT),
        fields("python/src/fields/events.txt", Event::LAYOUT),
        row("structured arrays, one record a region: ", " |\n", &[Region::LAYOUT, Motion::LAYOUT]),
        row("pairs of regions that touch: ", "; (2, 2E)", &[Neighbor::LAYOUT]),
        row("since the last frame: ", "; whether it was a cut", &[Event::LAYOUT]),
        row("regions would be merged down to one: ", " |\n", &[MergeStep::LAYOUT]),
    ]
}

#[test]
fn layouts_elsewhere_are_those_of_the_library() {
    let mut old = Vec::new();
    for generated in all() {
        let file = generated.file;
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let there = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
        let wanted = generated.put(&there).unwrap_or_else(|| panic!("{file} has no {:?}", generated.begin));
        if there == wanted {
            continue;
        }
        if std::env::var_os("SUPERPIXEL_WRITE").is_some() {
            std::fs::write(&path, wanted).unwrap();
        } else {
            old.push(format!("{file}: want\n{}", generated.text));
        }
    }
    assert!(old.is_empty(), "write these anew with SUPERPIXEL_WRITE=1:\n{}", old.join("\n"));
}

#[test]
fn an_old_text_and_a_missing_place_are_found() {
    let generated = Generated { file: "", begin: "<a>\n", end: "<b>\n", text: "new\n".into() };
    assert_eq!(generated.put("1\n<a>\nold\n<b>\n2\n").unwrap(), "1\n<a>\nnew\n<b>\n2\n");
    assert_eq!(generated.put("1\n<a>\nold\n"), None);
    assert_eq!(generated.put("1\n<b>\n<a>\n"), None);
}

/// The list of all layouts is that of the records that this test writes.
#[test]
fn every_record_is_listed() {
    let names = |layouts: &[&Layout]| layouts.iter().map(|layout| layout.name).collect::<Vec<_>>();
    assert_eq!(names(RECORDS), names(&LAYOUTS));
}

/// What other programs have compiled in: whoever changes it raises `meta::VERSION`.
#[test]
fn records_of_version_1_are_where_they_were() {
    let places = |layout: &Layout| -> Vec<_> {
        layout.fields.iter().map(|field| (field.name, field.offset)).collect()
    };
    let region =
        [("track_id", 0), ("area", 4), ("centroid", 8), ("mean_rgb", 16), ("mean_lab", 20), ("bounds", 32)];
    assert_eq!(places(Region::LAYOUT), region);
    assert_eq!(places(Motion::LAYOUT), [("velocity", 0), ("age", 8)]);
    assert_eq!(places(Neighbor::LAYOUT), [("a", 0), ("b", 4), ("length", 8)]);
    assert_eq!(places(MergeStep::LAYOUT), [("a", 0), ("b", 4), ("height", 8), ("area", 12)]);
    assert_eq!(places(Event::LAYOUT), [("kind", 0), ("track_id", 4), ("other", 8), ("area", 12)]);
    assert_eq!(LAYOUTS.map(|layout| layout.bytes), [40, 12, 12, 16, 16]);
}
