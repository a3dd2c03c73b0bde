// SPDX-License-Identifier: MPL-2.0
//! Recorder of the metadata that `superpixel` attaches to each frame: regions, pairs and events become rows of the tables, label maps
//! go to the encoder.

use std::sync::{Arc, Mutex};

use gst::prelude::*;
use gstsuperpixel::meta::SuperpixelMeta;
use gstsuperpixel::record::{Record, Value};
use superpixel_output::{Folder, clip};

use crate::decode::stream_time;
use crate::fault::{Failure, Result};
use crate::schema::Schema;
use crate::summary::Totals;
use crate::tables::{Cell, Table};
use crate::watch::Watch;

/// Value of column `pts_ns` for a frame without a timestamp.
pub const NO_TIME: i64 = -1;

/// The tables of a clip, frame by frame.
pub struct Recorder {
    regions: Table,
    adjacency: Table,
    events: Table,
    /// Number of the next frame.
    frame: u32,
    totals: Totals,
}

impl Recorder {
    /// Begins tables whose first frame has the number `first`, which is above 0 for a later part of a clip.
    ///
    /// # Errors
    ///
    /// The files cannot be written.
    pub fn create(folder: &Folder, first: u32, notes: &[(&str, &str)]) -> Result<Self> {
        Ok(Self {
            regions: Table::create(&folder.path(clip::REGIONS), &Schema::regions(), notes)?,
            adjacency: Table::create(&folder.path(clip::ADJACENCY), &Schema::adjacency(), notes)?,
            events: Table::create(&folder.path(clip::EVENTS), &Schema::events(), notes)?,
            frame: first,
            totals: Totals::default(),
        })
    }

    /// Ends the tables.
    ///
    /// # Errors
    ///
    /// The files cannot be written.
    pub fn finish(mut self) -> Result<Totals> {
        self.totals.region_rows = self.regions.finish()?;
        self.totals.adjacency_rows = self.adjacency.finish()?;
        self.totals.event_rows = self.events.finish()?;
        Ok(self.totals)
    }

    /// Adds a frame and returns its label map as a buffer of its own, timed in stream time: the encoder's source has a segment
    /// that begins at 0.
    fn record(&mut self, buffer: &gst::BufferRef, time: Option<gst::ClockTime>) -> Result<gst::Buffer> {
        let meta = SuperpixelMeta::from_buffer(buffer).ok_or_else(|| {
            Failure::machine("a frame without superpixels: is the plugin of another version?")
        })?;
        self.totals.add_frame((meta.width(), meta.height()), time, buffer.duration())?;
        self.record_regions(&meta, time)?;
        for pair in meta.neighbors()? {
            self.adjacency.push(std::iter::once(Cell::Int(self.frame)).chain(cells(&pair)))?;
        }
        for event in meta.events()? {
            self.events.push(std::iter::once(Cell::Int(self.frame)).chain(cells(&event)))?;
        }
        self.frame += 1;
        let mut labels = meta.label_buffer().copy();
        if let Some(labels) = labels.get_mut() {
            labels.set_pts(time);
            labels.set_duration(buffer.duration());
        }
        Ok(labels)
    }

    fn record_regions(&mut self, meta: &SuperpixelMeta<'_>, time: Option<gst::ClockTime>) -> Result<()> {
        let pts = time.and_then(|time| i64::try_from(time.nseconds()).ok()).unwrap_or(NO_TIME);
        let motion = meta.motion()?;
        for (label, region) in (0..).zip(meta.table()?) {
            // The columns of motion stay without temporal mode, where no region has a motion: they hold zeros.
            let moved = motion.get(label as usize).copied().unwrap_or_default();
            let of_frame = [Cell::Int(self.frame), Cell::Long(pts), Cell::Int(label)];
            self.regions.push(of_frame.into_iter().chain(cells(&region)).chain(cells(&moved)))?;
            self.totals.most_track_id = self.totals.most_track_id.max(region.track_id);
        }
        Ok(())
    }
}

/// Columns of a record in the order of its fields.
fn cells<R: Record>(record: &R) -> impl Iterator<Item = Cell> {
    record.values().map(|value| match value {
        Value::Int(value) => Cell::Int(value),
        Value::Float(value) => Cell::Float(value),
    })
}

/// Records every frame that leaves `superpixel` and sends its label map to `labels`. The caller takes the recorder out of the
/// mutex to finish it; frames after that pass unrecorded.
pub fn attach(
    superpixel: &gst::Element,
    recorder: &Arc<Mutex<Option<Recorder>>>,
    labels: &gst_app::AppSrc,
    watch: &Arc<Watch>,
) -> Result<()> {
    let pad = superpixel.static_pad("src").ok_or_else(|| Failure::machine("superpixel has no pad src"))?;
    let (recorder, labels, watch) = (recorder.clone(), labels.clone(), watch.clone());
    pad.add_probe(gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM, move |pad, info| {
        match &info.data {
            Some(gst::PadProbeData::Buffer(buffer)) => {
                let mut recorder = recorder.lock().unwrap();
                let Some(recorder) = recorder.as_mut() else { return gst::PadProbeReturn::Ok };
                match recorder.record(buffer, stream_time(pad, buffer)) {
                    Ok(map) => send(pad, &labels, map),
                    Err(failure) => watch.fail(failure),
                }
                watch.count();
            }
            Some(gst::PadProbeData::Event(event)) if event.type_() == gst::EventType::Eos => {
                if watch.frames() == 0 {
                    watch.fail(Failure::clip("no frame of video"));
                }
                let _ = labels.end_of_stream();
            }
            _ => {}
        }
        gst::PadProbeReturn::Ok
    });
    Ok(())
}

/// Sends a plane of 16 bits, such as a label map, to its encoder. The first one also sets the caps: those of the video, with 16 bits of gray a pixel.
pub fn send(pad: &gst::Pad, labels: &gst_app::AppSrc, map: gst::Buffer) {
    if labels.caps().is_none()
        && let Some(caps) = pad.current_caps()
        && let Some(stream) = caps.structure(0)
    {
        let mut gray = gst::Structure::new_empty("video/x-raw");
        for (name, value) in stream.iter() {
            if ["width", "height", "framerate", "pixel-aspect-ratio"].contains(&name.as_str()) {
                gray.set_value(name.as_str(), value.clone());
            }
        }
        gray.set("format", "GRAY16_LE");
        labels.set_caps(Some(&gst::Caps::from(gray)));
    }
    // A map that is refused needs no failure from here: the encoder reports the reason on the bus.
    let _ = labels.push_buffer(map);
}
