// SPDX-License-Identifier: MPL-2.0
//! Objects of a clip: boxes from a file go to `superpixelobjects`, and what it follows becomes rows of a table and frames of masks.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use gst::prelude::*;
use gst_video::VideoRegionOfInterestMeta;
use gstsuperpixel::meta::SuperpixelMeta;
use serde_json::{Map, Value, json};
use superpixel_output::{Folder, clip};

use crate::decode::stream_time;
use crate::fault::{Failure, Result};
use crate::recorder::{NO_TIME, send};
use crate::schema::Schema;
use crate::tables::{Cell, Table};
use crate::watch::Watch;

/// Type of the regions of interest that `superpixelobjects` attaches, and name of the structure with what is known of each.
const KIND: &str = "superpixel-object";
/// Largest file of boxes, in bytes.
const MOST_BYTES: u64 = 64 << 20;
/// Rows of GStreamer's frames are multiples of so many bytes.
const ROW_UNIT: usize = 4;

/// A box in a frame.
#[derive(Debug, Clone, PartialEq)]
struct Detection {
    /// Left, top, width, height in px.
    place: [u32; 4],
    class: String,
}

/// The boxes of a clip by frame.
#[derive(Debug, Default)]
pub struct Detections(BTreeMap<u64, Vec<Detection>>);

/// Reads a file of boxes: a list of `{"frame": NUMBER, "box": [X, Y, WIDTH, HEIGHT], "class": TEXT}`, in px of the upright frame.
///
/// # Errors
///
/// A file that cannot be read, or is not such a list: with what is wrong where.
pub fn read(path: &Path) -> Result<Detections> {
    let name = path.display();
    let cannot = |error: std::io::Error| Failure::machine(format!("{name}: {error}"));
    let length = std::fs::metadata(path).map_err(cannot)?.len();
    if length > MOST_BYTES {
        return Err(Failure::usage(format!(
            "{name}: {length} bytes; a list of boxes has at most {MOST_BYTES}"
        )));
    }
    let text = std::fs::read(path).map_err(cannot)?;
    parse(&text).map_err(|reason| Failure::usage(format!("{name}: {reason}")))
}

fn parse(text: &[u8]) -> std::result::Result<Detections, String> {
    let value: Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let Value::Array(list) = value else { return Err("it must be a list of boxes".into()) };
    let mut all = Detections::default();
    for (i, entry) in list.iter().enumerate() {
        let (frame, detection) = entry
            .as_object()
            .ok_or_else(|| "it must be an object with frame and box".to_owned())
            .and_then(parse_one)
            .map_err(|reason| format!("box {i}: {reason}"))?;
        all.0.entry(frame).or_default().push(detection);
    }
    Ok(all)
}

fn parse_one(entry: &Map<String, Value>) -> std::result::Result<(u64, Detection), String> {
    if let Some(name) = entry.keys().find(|name| !["frame", "box", "class"].contains(&name.as_str())) {
        return Err(format!("{name} is no name; there are frame, box and class"));
    }
    let frame = entry.get("frame").and_then(Value::as_u64).ok_or("frame must be a number from 0 on")?;
    let class = match entry.get("class") {
        None => String::new(),
        Some(class) => class.as_str().ok_or("class must be a text")?.to_owned(),
    };
    // It ends up in a text of C, and would be taken for an object that is followed.
    if class.contains('\0') || class == KIND {
        return Err(format!("class must be another text than {KIND}, without NUL"));
    }
    let sides = entry.get("box").and_then(Value::as_array).filter(|sides| sides.len() == 4);
    let sides: Option<Vec<f64>> = sides.and_then(|sides| sides.iter().map(Value::as_f64).collect());
    match sides.as_deref() {
        Some(&[x, y, width, height]) if width > 0.0 && height > 0.0 => {
            // Boxes of detectors reach over borders and between pixels: every pixel that they touch is in.
            let first = |v: f64| v.floor().clamp(0.0, u32::MAX.into()) as u32;
            let end = |v: f64| v.ceil().clamp(0.0, u32::MAX.into()) as u32;
            let ([left, top], [right, bottom]) = ([first(x), first(y)], [end(x + width), end(y + height)]);
            let place = [left, top, right.saturating_sub(left), bottom.saturating_sub(top)];
            Ok((frame, Detection { place, class }))
        }
        _ => Err("box must be [x, y, width, height] in px, the last two above 0".into()),
    }
}

/// What is known of an object in all.
#[derive(Debug, Default)]
struct Seen {
    class: String,
    first: u32,
    last: u32,
    frames: u32,
}

/// The objects of a clip, frame by frame.
pub struct ObjectRecorder {
    table: Table,
    frame: u32,
    seen: BTreeMap<u32, Seen>,
}

impl ObjectRecorder {
    /// Begins the table.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn create(folder: &Folder, notes: &[(&str, &str)]) -> Result<Self> {
        let table = Table::create(&folder.path(clip::OBJECTS), &Schema::objects(), notes)?;
        Ok(Self { table, frame: 0, seen: BTreeMap::new() })
    }

    /// Ends the table; returns the fields of `clip.json`.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn finish(self) -> Result<Value> {
        let rows = self.table.finish()?;
        let list = self.seen.into_iter().map(|(id, seen)| {
            json!({
                "id": id,
                "class": seen.class,
                "first_frame": seen.first,
                "last_frame": seen.last,
                "frames": seen.frames,
            })
        });
        Ok(json!({"object_rows": rows, "objects": list.collect::<Vec<_>>()}))
    }

    /// Adds a frame, and returns its mask as a buffer, timed as its label map is: the id of the object of each pixel, 0 for none.
    fn record(&mut self, buffer: &gst::BufferRef, time: Option<gst::ClockTime>) -> Result<gst::Buffer> {
        let meta = SuperpixelMeta::from_buffer(buffer)
            .ok_or_else(|| Failure::machine("a frame without superpixels"))?;
        let pts = time.and_then(|time| i64::try_from(time.nseconds()).ok()).unwrap_or(NO_TIME);
        let mut found: Vec<_> = buffer
            .iter_meta::<VideoRegionOfInterestMeta>()
            .filter_map(|roi| {
                let fields = roi.params().find(|fields| fields.name() == KIND)?;
                Some(value(fields, "id").map(|id: u32| (id, roi.rect(), fields.to_owned())))
            })
            .collect::<Result<_>>()?;
        found.sort_by_key(|(id, ..)| *id);
        for (id, (x, y, width, height), fields) in found {
            let bounds = [x, y, x.saturating_add(width), y.saturating_add(height)];
            // Frames have fewer pixels than 32 bits count.
            let area = value::<u64>(&fields, "area")? as u32;
            let speeds = [value::<i32>(&fields, "velocity-x")?, value(&fields, "velocity-y")?];
            let (regions, confidence) = (value(&fields, "regions")?, value::<f64>(&fields, "confidence")?);
            self.table.push(
                [Cell::Int(self.frame), Cell::Long(pts), Cell::Int(id), Cell::Int(area)]
                    .into_iter()
                    .chain(bounds.map(Cell::Int))
                    .chain(speeds.map(|speed| Cell::Float(speed as f32)))
                    .chain([Cell::Int(regions), Cell::Float(confidence as f32)]),
            )?;
            let seen = self.seen.entry(id).or_insert_with(|| Seen { first: self.frame, ..Seen::default() });
            (seen.last, seen.frames) = (self.frame, seen.frames + 1);
            if let Ok(class) = fields.get::<String>("class") {
                seen.class = class;
            }
        }
        self.frame += 1;
        mask(&meta, time, buffer.duration())
    }
}

/// A field of what is known of an object.
fn value<'a, T: gst::glib::value::FromValue<'a>>(fields: &'a gst::StructureRef, name: &str) -> Result<T> {
    fields.get(name).map_err(|error| Failure::machine(format!("an object of another version: {error}")))
}

/// The mask of a frame's objects as a GRAY16_LE frame.
fn mask(
    meta: &SuperpixelMeta<'_>,
    time: Option<gst::ClockTime>,
    duration: Option<gst::ClockTime>,
) -> Result<gst::Buffer> {
    let ids = meta.objects()?;
    let labels = meta.labels()?;
    let (width, height) = (meta.width() as usize, meta.height() as usize);
    let stride = (2 * width).next_multiple_of(ROW_UNIT);
    let mut bytes = vec![0; stride * height];
    for (row, labels) in bytes.chunks_exact_mut(stride).zip(labels.as_slice().chunks_exact(width)) {
        for (pixel, label) in row.chunks_exact_mut(2).zip(labels) {
            // Ids are not given again, so those past 16 bits, which no clip comes to, would be others.
            let id = ids.get(usize::from(*label)).map_or(Ok(0), |id| u16::try_from(*id));
            let id = id.map_err(|_| Failure::clip("more than 65535 objects"))?;
            pixel.copy_from_slice(&id.to_le_bytes());
        }
    }
    let mut buffer = gst::Buffer::from_mut_slice(bytes);
    if let Some(buffer) = buffer.get_mut() {
        buffer.set_pts(time);
        buffer.set_duration(duration);
    }
    Ok(buffer)
}

/// Makes the element, whose frames get the boxes of their number.
///
/// # Errors
///
/// The element is missing.
pub fn make(detections: Detections) -> Result<gst::Element> {
    let element = gst::ElementFactory::make("superpixelobjects").property("analytics", false).build()?;
    let pad =
        element.static_pad("sink").ok_or_else(|| Failure::machine("superpixelobjects has no pad sink"))?;
    let next = Mutex::new((0, detections));
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let mut next = next.lock().unwrap();
        let (frame, Detections(all)) = &mut *next;
        let found = all.remove(frame);
        *frame += 1;
        if let (Some(found), Some(gst::PadProbeData::Buffer(buffer))) = (found, &mut info.data) {
            let buffer = buffer.make_mut();
            for Detection { place: [x, y, width, height], class } in found {
                VideoRegionOfInterestMeta::add(buffer, &class, (x, y, width, height));
            }
        }
        gst::PadProbeReturn::Ok
    });
    Ok(element)
}

/// Records every frame that leaves `superpixelobjects` and sends its mask to `masks`. The caller takes the recorder out of the mutex
/// to finish it.
pub fn attach(
    objects: &gst::Element,
    recorder: &Arc<Mutex<Option<ObjectRecorder>>>,
    masks: &gst_app::AppSrc,
    watch: &Arc<Watch>,
) -> Result<()> {
    let pad =
        objects.static_pad("src").ok_or_else(|| Failure::machine("superpixelobjects has no pad src"))?;
    let (recorder, masks, watch) = (recorder.clone(), masks.clone(), watch.clone());
    pad.add_probe(gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM, move |pad, info| {
        match &info.data {
            Some(gst::PadProbeData::Buffer(buffer)) => {
                let mut recorder = recorder.lock().unwrap();
                let Some(recorder) = recorder.as_mut() else { return gst::PadProbeReturn::Ok };
                match recorder.record(buffer, stream_time(pad, buffer)) {
                    Ok(map) => send(pad, &masks, map),
                    Err(failure) => watch.fail(failure),
                }
            }
            Some(gst::PadProbeData::Event(event)) if event.type_() == gst::EventType::Eos => {
                let _ = masks.end_of_stream();
            }
            _ => {}
        }
        gst::PadProbeReturn::Ok
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_read_by_frame() {
        let text = br#"[{"frame": 3, "box": [10, 20, 30, 40], "class": "dog"}, {"box": [-4.5, 0.2, 9, 1.5], "frame": 0},
            {"frame": 3, "box": [1e30, 0, 1, 1]}]"#;
        let Detections(all) = parse(text).unwrap();
        let places = |frame| all[&frame].iter().map(|one: &Detection| one.place).collect::<Vec<_>>();
        assert_eq!(places(0), [[0, 0, 5, 2]]);
        assert_eq!(places(3), [[10, 20, 30, 40], [u32::MAX, 0, 0, 1]]);
        assert_eq!(all[&3][0].class, "dog");
        assert!(parse(b"[]").unwrap().0.is_empty());
    }

    #[test]
    fn what_is_no_box_is_refused_by_its_number() {
        for (text, reason) in [
            ("{}", "a list of boxes"),
            ("[3]", "box 0: it must be an object"),
            (
                r#"[{"frame": 0, "box": [1, 2, 3, 4]}, {"frame": -1, "box": [1, 2, 3, 4]}]"#,
                "box 1: frame must be",
            ),
            (r#"[{"box": [1, 2, 3, 4]}]"#, "frame must be"),
            (r#"[{"frame": 0, "box": [1, 2, 3]}]"#, "box must be"),
            (r#"[{"frame": 0, "box": [1, 2, 0, 4]}]"#, "box must be"),
            (r#"[{"frame": 0, "box": [1, 2, "3", 4]}]"#, "box must be"),
            (r#"[{"frame": 0, "bbox": [1, 2, 3, 4]}]"#, "bbox is no name"),
            (r#"[{"frame": 0, "box": [1, 2, 3, 4], "class": 7}]"#, "class must be"),
            (r#"[{"frame": 0, "box": [1, 2, 3, 4], "class": "superpixel-object"}]"#, "class must be another"),
            ("[", "EOF"),
        ] {
            let found = parse(text.as_bytes()).unwrap_err();
            assert!(found.contains(reason), "{text}: {found}");
        }
    }
}
