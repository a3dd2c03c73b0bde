// SPDX-License-Identifier: MPL-2.0
//! The summary of a clip or of a part: `clip.json`, which is written last and so marks its folder as whole.

use serde_json::{Value, json};

use crate::fault::{Failure, Result};

/// Coverage below which a clip is marked `short`.
const LEAST_COVERAGE: f64 = 0.95;
/// Largest coverage, counted from time 0, that is believed. More means that the stated length counts from the clip's start.
const LARGEST_COVERAGE: f64 = 1.05;

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
    /// Highest track id, and so the number of tracks: ids are given in order from 1 on.
    pub most_track_id: u32,
    /// Rows of the region table.
    pub region_rows: u64,
    /// Rows of the adjacency table.
    pub adjacency_rows: u64,
    /// Rows of the table of events.
    pub event_rows: u64,
}

impl Totals {
    /// Adds a frame.
    ///
    /// # Errors
    ///
    /// A frame of another size than those before: one video file of label maps holds one size.
    pub fn add_frame(
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
        // Ids begin at 1 in each part; `join` raises those of a later part by this total.
        self.most_track_id += next.most_track_id;
        self.region_rows += next.region_rows;
        self.adjacency_rows += next.adjacency_rows;
        self.event_rows += next.event_rows;
        Ok(())
    }

    /// Fields of `clip.json`.
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
            "events": self.event_rows,
        })
    }

    /// Reads what [`Self::to_json`] gives; `None` if a field other than the two times, which may be null, is missing.
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
            event_rows: number("events")?,
        })
    }
}

/// The length of a clip: what its container says, and how far its streams went, in ns of stream time.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Length {
    /// Length that the container states.
    pub stated: Option<u64>,
    /// When the last buffer of any stream ends. A picture that begins late or ends before the sound is no gap.
    pub reached: u64,
    /// Time, as the container counts it, at which stream time is 0.
    pub offset: u64,
}

impl Length {
    /// The part of the stated length that is there, 0 to 1; `None` where the container states none.
    ///
    /// Containers differ in where their length begins. Matroska counts from time 0 even if the clip begins later, so that
    /// `offset` is part of the length; transport streams count from their first clock, and stop before the end of the last
    /// frame. Time 0 is tried first: if it gives clearly more than the whole, the length counts from the clip's start.
    fn coverage(&self) -> Option<f64> {
        let stated = self.stated.filter(|stated| *stated > 0)? as f64;
        let [from_start, from_zero] =
            [self.reached, self.reached.saturating_add(self.offset)].map(|end| end as f64 / stated);
        let covered = if from_zero <= LARGEST_COVERAGE { from_zero } else { from_start };
        Some(covered.min(1.0))
    }
}

/// Adds what the container says of the length, and whether the streams cover it.
pub fn add_coverage(summary: &mut Value, length: &Length) {
    let coverage = length.coverage();
    summary["stated_ns"] = json!(length.stated);
    summary["coverage"] = json!(coverage);
    summary["short"] = json!(coverage.is_some_and(|coverage| coverage < LEAST_COVERAGE));
}

/// Adds the fields of one object to another.
pub fn extend(summary: &mut Value, more: Value) {
    if let (Value::Object(all), Value::Object(more)) = (summary, more) {
        all.extend(more);
    }
}

/// The content of a file of JSON.
pub fn text(summary: &Value) -> String {
    format!("{summary:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coverage_is_of_what_is_there() {
        // All three times are in tenths of a second.
        let of = |stated: u64, reached: u64, offset: u64| {
            let [stated, reached, offset] = [stated, reached, offset].map(|time| time * 100_000_000);
            Length { stated: Some(stated), reached, offset }.coverage().unwrap()
        };
        assert_eq!(of(100, 100, 0), 1.0);
        assert_eq!(of(100, 50, 0), 0.5);
        // Matroska that begins at 5 s: whole, and cut in the middle.
        assert_eq!(of(150, 100, 50), 1.0);
        assert!(of(150, 50, 50) < LEAST_COVERAGE);
        // A muxer may leave the start out of the length.
        assert_eq!(of(100, 100, 50), 1.0);
        // A transport stream at 1000 s whose last clock stands before the end of the last frame.
        assert_eq!(of(31, 40, 10_000), 1.0);
        assert_eq!(Length { stated: Some(0), reached: 1, offset: 0 }.coverage(), None);
    }
}
