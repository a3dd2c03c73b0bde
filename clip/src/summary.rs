// SPDX-License-Identifier: MPL-2.0
//! What is said of a clip as a whole: `clip.json`, the last file of its folder.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::fault::{Failure, Result};

/// Version of the layout of all files of a clip.
pub const SCHEMA: u32 = 1;
/// A clip is short where less than this part of its stated length has come.
const WHOLE: f64 = 0.95;

/// Sums over the frames of a clip or of a part.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Totals {
    /// Number of frames.
    pub frames: u64,
    /// Width and height in px.
    pub size: (u32, u32),
    /// When the first frame is due, in ns.
    pub begin_ns: Option<u64>,
    /// When the last one ends, in ns.
    pub end_ns: Option<u64>,
    /// Number of identities: they are given in order from 1 on.
    pub most_track_id: u32,
    /// Rows of the region table.
    pub region_rows: u64,
    /// Rows of the adjacency table.
    pub adjacency_rows: u64,
}

impl Totals {
    /// Counts a frame.
    ///
    /// # Errors
    ///
    /// It is not as large as those before, which one video file of label maps cannot hold.
    pub fn see(
        &mut self,
        size: (u32, u32),
        time: Option<gst::ClockTime>,
        duration: Option<gst::ClockTime>,
    ) -> Result<()> {
        if self.frames > 0 && size != self.size {
            let ((w, h), (width, height)) = (self.size, size);
            return Err(Failure::clip(format!("frames change from {w}x{h} to {width}x{height} px")));
        }
        (self.size, self.frames) = (size, self.frames + 1);
        if let Some(time) = time.map(gst::ClockTime::nseconds) {
            self.begin_ns.get_or_insert(time);
            self.end_ns = Some(time + duration.map_or(0, gst::ClockTime::nseconds));
        }
        Ok(())
    }

    /// Adds the part that follows.
    ///
    /// # Errors
    ///
    /// Frames of another size.
    pub fn add(&mut self, next: &Self) -> Result<()> {
        if self.frames > 0 && next.size != self.size {
            return Err(Failure::machine("the parts are of different sizes"));
        }
        self.frames += next.frames;
        self.size = next.size;
        self.begin_ns = self.begin_ns.or(next.begin_ns);
        self.end_ns = next.end_ns.or(self.end_ns);
        self.most_track_id += next.most_track_id;
        self.region_rows += next.region_rows;
        self.adjacency_rows += next.adjacency_rows;
        Ok(())
    }

    /// As they stand in `clip.json`.
    pub fn to_json(&self) -> Value {
        json!({
            "frames": self.frames,
            "width": self.size.0,
            "height": self.size.1,
            "begin_ns": self.begin_ns,
            "end_ns": self.end_ns,
            "tracks": self.most_track_id,
            "regions": self.region_rows,
            "adjacency": self.adjacency_rows,
        })
    }

    /// From [`Self::to_json`]; `None` where that is not all there.
    pub fn from_json(value: &Value) -> Option<Self> {
        let number = |name: &str| value[name].as_u64();
        let side = |name: &str| number(name).and_then(|side| u32::try_from(side).ok());
        Some(Self {
            frames: number("frames")?,
            size: (side("width")?, side("height")?),
            begin_ns: number("begin_ns"),
            end_ns: number("end_ns"),
            most_track_id: side("tracks")?,
            region_rows: number("regions")?,
            adjacency_rows: number("adjacency")?,
        })
    }
}

/// Adds what the container says of the length, and whether the frames cover it.
pub fn add_coverage(summary: &mut Value, totals: &Totals, stated: Option<gst::ClockTime>) {
    let covered = totals.begin_ns.zip(totals.end_ns).map(|(begin, end)| end.saturating_sub(begin));
    let coverage = covered.zip(stated.filter(|stated| !stated.is_zero()));
    let coverage = coverage.map(|(covered, stated)| covered as f64 / stated.nseconds() as f64);
    summary["stated_ns"] = json!(stated.map(gst::ClockTime::nseconds));
    summary["coverage"] = json!(coverage);
    summary["short"] = json!(coverage.is_some_and(|coverage| coverage < WHOLE));
}

/// Adds the fields of one object to another.
pub fn extend(summary: &mut Value, more: Value) {
    if let (Value::Object(all), Value::Object(more)) = (summary, more) {
        all.extend(more);
    }
}

/// Writes `clip.json`.
///
/// # Errors
///
/// The file cannot be written.
pub fn write(path: &Path, summary: &Value) -> Result<()> {
    Ok(fs::write(path, serde_json::to_string_pretty(summary)? + "\n")?)
}
