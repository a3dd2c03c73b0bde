// SPDX-License-Identifier: MPL-2.0
//! The property tables of README.md are those of the elements.
#![cfg(feature = "gst")]

mod common;

use gst::glib::{self, ParamFlags};
use gst::prelude::*;

/// What a row of the table says of a property: name, type, default, range, change in.
type Row = [String; 5];

fn value_text(spec: &glib::ParamSpec) -> String {
    if let Some(spec) = spec.downcast_ref::<glib::ParamSpecBoolean>() {
        spec.default_value().to_string()
    } else if spec.name() == "boundary-color" {
        let spec = spec.downcast_ref::<glib::ParamSpecUInt>().unwrap();
        format!("{:#010x}", spec.default_value())
    } else if let Some(spec) = spec.downcast_ref::<glib::ParamSpecUInt>() {
        spec.default_value().to_string()
    } else if let Some(spec) = spec.downcast_ref::<glib::ParamSpecInt>() {
        spec.default_value().to_string()
    } else if let Some(spec) = spec.downcast_ref::<glib::ParamSpecFloat>() {
        spec.default_value().to_string()
    } else if let Some(spec) = spec.downcast_ref::<glib::ParamSpecEnum>() {
        spec.enum_class().value(spec.default_value_as_i32()).unwrap().nick().to_owned()
    } else {
        "-".into()
    }
}

fn type_and_range(spec: &glib::ParamSpec) -> (&'static str, String) {
    if spec.is::<glib::ParamSpecBoolean>() {
        ("bool", "-".into())
    } else if let Some(spec) = spec.downcast_ref::<glib::ParamSpecUInt>() {
        match (spec.minimum(), spec.maximum()) {
            (0, u32::MAX) if spec.name() == "boundary-color" => ("uint", "0xAARRGGBB".into()),
            (min, u32::MAX) => ("uint", format!("{min} or more")),
            (min, max) => ("uint", format!("{min} to {max}")),
        }
    } else if let Some(spec) = spec.downcast_ref::<glib::ParamSpecInt>() {
        match (spec.minimum(), spec.maximum()) {
            (min, i32::MAX) => ("int", format!("{min} or more")),
            (min, max) => ("int", format!("{min} to {max}")),
        }
    } else if let Some(spec) = spec.downcast_ref::<glib::ParamSpecFloat>() {
        ("float", format!("{} to {}", spec.minimum(), spec.maximum()))
    } else if let Some(spec) = spec.downcast_ref::<glib::ParamSpecEnum>() {
        let class = spec.enum_class();
        let nicks: Vec<_> = class.values().iter().map(|value| format!("`{}`", value.nick())).collect();
        ("enum", nicks.join(" "))
    } else if spec.is::<glib::ParamSpecString>() {
        ("string", "-".into())
    } else if spec.value_type() == gst::Structure::static_type() {
        ("GstStructure", "-".into())
    } else {
        panic!("property {} has a type that README.md has no word for: {}", spec.name(), spec.value_type())
    }
}

fn change_in(flags: ParamFlags) -> &'static str {
    if !flags.contains(ParamFlags::WRITABLE) {
        "read-only"
    } else if flags.contains(gst::PARAM_FLAG_MUTABLE_PLAYING) {
        "playing"
    } else if flags.contains(gst::PARAM_FLAG_MUTABLE_PAUSED) {
        "paused"
    } else {
        "ready"
    }
}

/// The element's own properties, sorted by name.
fn properties(element: &str) -> Vec<Row> {
    let element = gst::ElementFactory::make(element).build().unwrap();
    let mut rows: Vec<Row> = element
        .list_properties()
        .iter()
        .filter(|spec| spec.owner_type() == element.type_())
        .map(|spec| {
            let (kind, range) = type_and_range(spec);
            let name = format!("`{}`", spec.name());
            [name, kind.into(), value_text(spec), range, change_in(spec.flags()).into()]
        })
        .collect();
    rows.sort();
    rows
}

/// The rows of the first table below a heading, without their last column, sorted by name.
fn table(readme: &str, heading: &str) -> Vec<Row> {
    let below = readme.lines().skip_while(|line| *line != heading).skip(1);
    let in_section = below.take_while(|line| !line.starts_with('#'));
    let rows = in_section.skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let mut rows: Vec<Row> = rows
        .skip(2)
        .map(|line| {
            let cells: Vec<_> =
                line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
            let cells: [String; 6] = cells.try_into().unwrap_or_else(|_| panic!("not six columns: {line}"));
            assert!(!cells[5].is_empty(), "no meaning: {line}");
            let [name, kind, default, range, change, _] = cells;
            [name, kind, default, range, change]
        })
        .collect();
    rows.sort();
    rows
}

fn compare(element: &str) {
    common::init();
    let readme = include_str!("../README.md");
    let (mut said, real) = (table(readme, &format!("### Properties of `{element}`")), properties(element));
    // Builds without the feature do not have them.
    let of_cuda = ["`cuda-device-id`", "`async-depth`"];
    said.retain(|row| cfg!(feature = "cuda") || !of_cuda.contains(&row[0].as_str()));
    let text = |rows: &[Row]| rows.iter().map(|row| format!("| {} |\n", row.join(" | "))).collect::<String>();
    let missing: Vec<Row> = real.iter().filter(|row| !said.contains(row)).cloned().collect();
    let wrong: Vec<Row> = said.iter().filter(|row| !real.contains(row)).cloned().collect();
    assert!(
        said == real,
        "README.md, properties of {element}.\nMissing:\n{}Not so:\n{}",
        text(&missing),
        text(&wrong)
    );
}

#[test]
fn superpixel_properties_are_those_of_the_readme() {
    compare("superpixel");
}

#[test]
fn superpixellabels_properties_are_those_of_the_readme() {
    compare("superpixellabels");
}
