// SPDX-License-Identifier: MPL-2.0
//! The documents are true where a program can tell: the property tables are those of the elements, the pipelines of the README
//! can be built, every link leads somewhere, lists are those of the code, and the README stays short. `SUPERPIXEL_WRITE=1` writes the property tables anew.

use crate::common;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gst::glib::{self, ParamFlags};
use gst::prelude::*;

/// A row of the table of properties: name, type, default, range, change in, meaning.
type Row = [String; 6];

fn value_text(spec: &glib::ParamSpec) -> String {
    if let Some(spec) = spec.downcast_ref::<glib::ParamSpecBoolean>() {
        spec.default_value().to_string()
    } else if spec.name().ends_with("-color") {
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
            (0, u32::MAX) if spec.name().ends_with("-color") => ("uint", "0xAARRGGBB".into()),
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
        panic!(
            "property {} has a type that docs/properties.md has no word for: {}",
            spec.name(),
            spec.value_type()
        )
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

/// Texts of GObject with what is to be typed marked as such: properties of several words, settings and names of fields.
fn marked(text: &str, is_property: impl Fn(&str) -> bool) -> String {
    let word = |word: &str| {
        let bare = word.trim_matches(|c: char| ",.;:()".contains(c));
        let typed = bare.contains(['=', '_']) || bare.contains('-') && is_property(bare);
        if typed && bare.len() > 1 { word.replace(bare, &format!("`{bare}`")) } else { word.to_owned() }
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// The property's own text, and that of each value of an enum.
fn meaning(spec: &glib::ParamSpec) -> String {
    let mut text = spec.blurb().unwrap_or_default().to_owned();
    if let Some(spec) = spec.downcast_ref::<glib::ParamSpecEnum>() {
        let class = spec.enum_class();
        for (i, value) in class.values().iter().enumerate() {
            // Names are a title and what it means.
            let (_, means) = value.name().split_once(": ").unwrap();
            text += &format!("{} `{}`: {means}", if i == 0 { "." } else { ";" }, value.nick());
        }
    }
    text
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
            let meaning = marked(&meaning(spec), |word| element.has_property(word));
            [name, kind.into(), value_text(spec), range, change_in(spec.flags()).into(), meaning]
        })
        .collect();
    rows.sort();
    rows
}

/// The rows of the first table below a heading, sorted by name.
fn table(document: &str, heading: &str) -> Vec<Row> {
    let below = document.lines().skip_while(|line| *line != heading).skip(1);
    let in_section = below.take_while(|line| !line.starts_with('#'));
    let rows = in_section.skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let mut rows: Vec<Row> = rows
        .skip(2)
        .map(|line| {
            let cells: Vec<_> =
                line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
            cells.try_into().unwrap_or_else(|_| panic!("not six columns: {line}"))
        })
        .collect();
    rows.sort();
    rows
}

/// The document with the table below `heading` made anew: rows stay in their order, a property that the table does not have comes last.
fn rewritten(document: &str, heading: &str, element: &str) -> String {
    let mut real = properties(element);
    let mut lines = document.lines();
    let mut new: Vec<String> = Vec::new();
    let push_until = |lines: &mut std::str::Lines, new: &mut Vec<String>, last: &dyn Fn(&str) -> bool| {
        for line in lines {
            new.push(line.to_owned());
            if last(line) {
                return;
            }
        }
    };
    push_until(&mut lines, &mut new, &|line| line == heading);
    push_until(&mut lines, &mut new, &|line| line.starts_with("|---"));
    let mut rest = lines.clone();
    for line in lines.take_while(|line| line.starts_with('|')) {
        rest.next();
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        if let Some(at) = real.iter().position(|row| row[0] == cells[0]) {
            new.push(format!("| {} |", real.remove(at).join(" | ")));
        }
    }
    new.extend(real.iter().map(|row| format!("| {} |", row.join(" | "))));
    new.extend(rest.map(str::to_owned));
    new.join("\n") + "\n"
}

fn compare(element: &str) {
    common::init();
    if std::env::var_os("SUPERPIXEL_WRITE").is_some() {
        // Both tables are in one file, and tests run beside each other.
        static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _guard = ONE_AT_A_TIME.lock().unwrap();
        let path = root().join("docs/properties.md");
        let document = std::fs::read_to_string(&path).unwrap();
        let heading = format!("## Properties of `{element}`");
        std::fs::write(&path, rewritten(&document, &heading, element)).unwrap();
        return;
    }
    let document = include_str!("../../docs/properties.md");
    let (mut said, real) = (table(document, &format!("## Properties of `{element}`")), properties(element));
    // Builds without the feature do not have them.
    let of_cuda = ["`cuda-device-id`", "`async-depth`"];
    said.retain(|row| cfg!(feature = "cuda") || !of_cuda.contains(&row[0].as_str()));
    let text = |rows: &[Row]| rows.iter().map(|row| format!("| {} |\n", row.join(" | "))).collect::<String>();
    let missing: Vec<Row> = real.iter().filter(|row| !said.contains(row)).cloned().collect();
    let wrong: Vec<Row> = said.iter().filter(|row| !real.contains(row)).cloned().collect();
    assert!(
        said == real,
        "docs/properties.md, {element}.\nMissing:\n{}Not so:\n{}",
        text(&missing),
        text(&wrong)
    );
}

#[test]
fn superpixel_properties_are_those_of_the_table() {
    compare("superpixel");
}

#[test]
fn superpixellabels_properties_are_those_of_the_table() {
    compare("superpixellabels");
}

#[test]
fn superpixelobjects_properties_are_those_of_the_table() {
    compare("superpixelobjects");
}

/// Each block of shell lines that starts a pipeline, without the program's name, in one line.
fn pipelines(document: &str) -> Vec<String> {
    let joined = document.replace("\\\n", " ");
    joined.lines().filter_map(|line| line.strip_prefix("gst-launch-1.0 ")).map(str::to_owned).collect()
}

#[test]
fn pipelines_of_the_readme_can_be_built() {
    common::init();
    let pipelines = pipelines(include_str!("../../README.md"));
    assert_eq!(pipelines.len(), 5);
    for pipeline in pipelines {
        gst::parse::launch(&pipeline).unwrap_or_else(|error| panic!("{pipeline}\n{error}"));
    }
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every document of the tree, by its path from the top folder.
pub fn documents() -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for folder in ["", "docs", "pipelines", "media", "python"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.insert(path.strip_prefix(root()).unwrap().to_owned(), text);
            }
        }
    }
    assert!(found.len() > 10, "{:?}", found.keys());
    found
}

/// Lines outside of blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !fence && !in_code
    })
}

/// Anchors of the headings as GitHub and GitLab make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for line in prose(text).filter(|line| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let slug: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let mut anchor = slug.clone();
        for number in 1.. {
            if anchors.insert(anchor) {
                break;
            }
            anchor = format!("{slug}-{number}");
        }
    }
    anchors
}

/// Targets of `[text](target)` and `![text](target)`.
pub fn links(text: &str) -> Vec<&str> {
    let targets = |line| str::split(line, "](").skip(1).filter_map(|rest| rest.split_once(')'));
    prose(text).flat_map(targets).map(|(target, _)| target).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let documents = documents();
    let (mut dead, mut count) = (Vec::new(), 0);
    for (from, text) in &documents {
        for link in links(text).into_iter().filter(|link| !link.contains("://")) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            // The path from the top folder, without `..`.
            let mut target = if path.is_empty() { from.clone() } else { from.parent().unwrap().to_owned() };
            for part in Path::new(path) {
                if part == ".." { assert!(target.pop(), "{link}") } else { target.push(part) }
            }
            let there = match anchor {
                "" => root().join(&target).exists(),
                anchor => documents.get(&target).is_some_and(|text| anchors(text).contains(anchor)),
            };
            count += 1;
            if !there {
                dead.push(format!("{}: {link}", from.display()));
            }
        }
    }
    assert!(dead.is_empty(), "links that lead nowhere:\n{}", dead.join("\n"));
    assert!(count > 30, "{count} links");
}

#[test]
fn the_readme_is_short() {
    let lines: Vec<_> = include_str!("../../README.md").lines().collect();
    assert!(lines.len() <= 150, "README.md has {} lines", lines.len());
    let long = prose(include_str!("../../README.md"))
        .find(|line| line.chars().count() > 120 && !line.starts_with('|'));
    assert_eq!(long, None);
}

/// The version and, once released, the date stand in Cargo.toml; files that cannot refer to it have to say the same.
#[test]
fn every_file_names_one_version() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let manifest = read("Cargo.toml");
    let released = manifest.lines().find_map(|line| line.strip_prefix("release_date = "));
    let released = released.map(|date| date.trim_matches('"'));
    assert!(read("meson.build").contains(&format!("version: '{version}'")), "meson.build");
    let citation = read("CITATION.cff");
    assert!(citation.contains(&format!("\nversion: {version}\n")), "CITATION.cff");
    let dated = citation.lines().find_map(|line| line.strip_prefix("date-released: "));
    assert_eq!(dated, released, "CITATION.cff");
    if let Some(date) = released {
        assert!(read("CHANGELOG.md").contains(&format!("\n## [{version}] - {date}\n")), "CHANGELOG.md");
    }
}
