// SPDX-License-Identifier: MPL-2.0
//! The folder of a clip: which files it has, and `clip.json`, which says that it is whole and made by `superpixel-clip`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::{Map, Value};

use crate::folder::Layout;

/// Version of the layout of all files of a clip.
pub const SCHEMA: u32 = 1;
/// The label maps.
pub const LABELS: &str = "labels.mkv";
/// The table of regions.
pub const REGIONS: &str = "regions.parquet";
/// The table of pairs of regions.
pub const ADJACENCY: &str = "adjacency.parquet";
/// The table of events.
pub const EVENTS: &str = "events.parquet";
/// The masks of objects, where some are followed.
pub const OBJECT_MASKS: &str = "objects.mkv";
/// The table of objects, where some are followed.
pub const OBJECTS: &str = "objects.parquet";
/// The clip as a whole; written last.
pub const SUMMARY: &str = "clip.json";
/// Numbers that every summary has.
const NUMBERS: [&str; 6] = ["frames", "width", "height", "tracks", "regions", "adjacency"];

/// The files that every folder has.
const ALWAYS: [&str; 5] = [LABELS, REGIONS, ADJACENCY, EVENTS, SUMMARY];
/// The files of objects.
const OF_OBJECTS: [&str; 2] = [OBJECT_MASKS, OBJECTS];
/// Longest `clip.json` that is looked at, in bytes.
const MOST: u64 = 1 << 20;

/// The folder of a clip without objects.
pub const LAYOUT: Layout = Layout {
    program: "superpixel-clip",
    names: |name| ALWAYS.iter().any(|own| name == *own),
    marker: Some((SUMMARY, |text| read(text).is_some())),
};

const WITH_OBJECTS: Layout =
    Layout { names: |name| ALWAYS.iter().chain(&OF_OBJECTS).any(|own| name == *own), ..LAYOUT };

/// The layout of the folder that a run writes, with objects or without. Files with the names of theirs are the program's own only where
/// the `clip.json` that is there lists objects, or where the caller may replace whatever has such a name.
pub fn layout(path: &Path, has_objects: bool, force: bool) -> Layout {
    let mut text = Vec::new();
    let read_all = File::open(path.join(SUMMARY)).and_then(|file| file.take(MOST).read_to_end(&mut text));
    let lists_objects =
        read_all.is_ok() && read(&text).is_some_and(|summary| summary.contains_key("objects"));
    let is_free = || OF_OBJECTS.iter().all(|name| path.join(name).symlink_metadata().is_err());
    if lists_objects || has_objects && (force || is_free()) { WITH_OBJECTS } else { LAYOUT }
}

/// Reads `clip.json`; `None` where it is not one of [`SCHEMA`], or not whole.
pub fn read(text: &[u8]) -> Option<Map<String, Value>> {
    let Ok(Value::Object(summary)) = serde_json::from_slice(text) else { return None };
    let number = |name: &str| summary.get(name).and_then(Value::as_u64);
    let is_whole =
        number("schema") == Some(SCHEMA.into()) && NUMBERS.iter().all(|name| number(name).is_some());
    is_whole.then_some(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_summary_is_a_marker() {
        let whole = r#"{"schema": 1, "frames": 3, "width": 4, "height": 2, "tracks": 9, "regions": 20, "adjacency": 40}"#;
        assert!(read(whole.as_bytes()).is_some());
        for (from, to) in [("1,", "2,"), ("frames", "frame"), ("40", "-40"), ("40}", "40")] {
            let text = whole.replacen(from, to, 1);
            assert!(read(text.as_bytes()).is_none(), "{text}");
        }
        assert!(read(b"[]").is_none());
    }
}
