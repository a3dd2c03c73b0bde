// SPDX-License-Identifier: MPL-2.0
//! Figures for the property `stats`.

use std::time::Duration;

use crate::events::EventKind;

/// Figures of the stream and of its last frame.
#[derive(Default)]
pub(super) struct Stats {
    pub frames: u64,
    pub regions: u32,
    /// Wanted number of regions less the last frame's; `None` if no number is wanted.
    pub missing: Option<u32>,
    pub last: Duration,
    pub total: Duration,
    /// Stage times of the last frame; empty on a device.
    pub stages: Vec<(&'static str, Duration)>,
    /// Events since they were first asked for, by [`EventKind::ALL`].
    pub events: Option<[u64; EventKind::ALL.len()]>,
    /// Bytes over the bus since start, and frames of the last batch; `None` on the CPU.
    pub device: Option<[(&'static str, u64); 4]>,
}

impl Stats {
    /// Adds the events of a frame; `None` adds none.
    pub fn add_events(&mut self, counts: Option<[u64; EventKind::ALL.len()]>) {
        let Some(counts) = counts else { return };
        let sums = self.events.get_or_insert_default();
        sums.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
    }

    pub fn to_structure(&self) -> gst::Structure {
        let micros = |time: Duration| time.as_micros() as u64;
        let mut stats = gst::Structure::builder("superpixel-stats")
            .field("frames", self.frames)
            .field("regions", self.regions)
            .field("frame-time-us", micros(self.last))
            .field("frame-time-us-mean", micros(self.total) / self.frames.max(1))
            .build();
        if let Some(missing) = self.missing {
            stats.set("regions-missing", missing);
        }
        for (kind, n) in EventKind::ALL.into_iter().zip(self.events.into_iter().flatten()) {
            let name = match kind {
                EventKind::Birth => "births",
                EventKind::Split => "splits",
                EventKind::Death => "deaths",
                EventKind::Merge => "merges",
                EventKind::Cut => "cuts",
            };
            stats.set(name, n);
        }
        for (name, figure) in self.device.iter().flatten() {
            stats.set(*name, *figure);
        }
        if !self.stages.is_empty() {
            let mut stages = gst::Structure::new_empty("stage-times-us");
            for (name, time) in &self.stages {
                stages.set(name.replace('/', "-"), micros(*time));
            }
            stats.set("stage-times-us", stages);
        }
        stats
    }
}
