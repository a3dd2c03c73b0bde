// SPDX-License-Identifier: MPL-2.0
//! Drawings of all frames in a zip archive: `frame-000000.svg`, `frame-000001.svg`, ... in the order of the source.
//!
//! Each region is a path in its mean color, whose `id` is `track-` and the track id: the same from frame to frame. Outlines are
//! those of the segmentation, or of the abstraction where that is exported.

use std::fs::File;
use std::io::Write;

use gst::prelude::*;
use gst_video::prelude::*;
use gstsuperpixel::image::{Geometry, NO_LABEL};
use gstsuperpixel::meta::SuperpixelMeta;
use gstsuperpixel::regions::Region;
use gstsuperpixel::vectors::{Drawing, OUTSIDE, Outlines, SEAM, Style, TOLERANCE};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::archive::{self, Archive, Failure};
use crate::problem::Problem;
use crate::properties::{self, ABSTRACTION};
use crate::source::make;

/// Elements that write drawings of the metadata of `superpixel` into `file`, with the suffix of its name. Stops that element
/// from drawing, since its pixels are not used.
pub fn writer(
    superpixel: &gst::Element,
    overlay: &str,
    file: &File,
) -> Result<(Vec<gst::Element>, &'static str), Problem> {
    properties::hold(superpixel);
    let labels = make("superpixellabels")?;
    if overlay == ABSTRACTION {
        let smoothness: f32 = superpixel.property("outline-smoothness");
        labels.set_property("outline-smoothness", smoothness);
    }
    let archive = Drawings { zip: ZipWriter::new(file.try_clone().map_err(Problem::internal)?), frames: 0 };
    let caps = gst_video::VideoCapsBuilder::new().format(gst_video::VideoFormat::Gray16Le).build();
    Ok((vec![labels, archive::sink(archive, Some(&caps))], "zip"))
}

struct Drawings {
    zip: ZipWriter<File>,
    frames: u64,
}

impl Archive for Drawings {
    const CONTENT: &str = "A drawing";

    /// Adds the drawing of a label map.
    fn add(&mut self, sample: &gst::Sample) -> Result<(), Failure> {
        let (buffer, caps) = sample.buffer().zip(sample.caps()).ok_or("a frame without a picture")?;
        let table = SuperpixelMeta::from_buffer(buffer).ok_or("a frame without superpixels")?.table()?;
        let info = gst_video::VideoInfo::from_caps(caps)?;
        let map = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, &info)?;
        let text = draw(&map, &table)?;
        let options = SimpleFileOptions::default();
        self.zip.start_file(format!("frame-{:06}.svg", self.frames), options)?;
        self.zip.write_all(text.as_bytes())?;
        self.frames += 1;
        Ok(())
    }

    fn finish(self) -> Result<(), Failure> {
        self.zip.finish()?;
        Ok(())
    }
}

/// The drawing of a map of labels.
fn draw(map: &gst_video::VideoFrameRef<&gst::BufferRef>, table: &[Region]) -> Result<String, Failure> {
    let geometry = Geometry::new(map.width(), map.height())?;
    let label = |bytes: &[u8]| match u16::from_le_bytes([bytes[0], bytes[1]]) {
        NO_LABEL => OUTSIDE,
        label => label.into(),
    };
    let (stride, row) = (map.plane_stride()[0] as usize, 2 * map.width() as usize);
    let rows = map.plane_data(0)?.chunks(stride).take(map.height() as usize);
    let labels: Vec<u32> = rows.flat_map(|line| line[..row].chunks_exact(2).map(label)).collect();
    let is_known = |label: &u32| *label == OUTSIDE || (*label as usize) < table.len();
    if !labels.iter().all(is_known) {
        return Err("labels without regions".into());
    }
    let style = |label: u32| {
        let region = &table[label as usize];
        let [r, g, b, _] = region.mean_rgb;
        Style {
            label: label.into(),
            id: Some(format!("track-{}", region.track_id)),
            color: [r, g, b],
            gradient: None,
        }
    };
    let drawing = Drawing { fill: Some(&style), seam: SEAM, lines: None };
    Ok(Outlines::new(&labels, geometry, TOLERANCE)?.svg(&drawing))
}
