// SPDX-License-Identifier: MPL-2.0
//! Objects of all frames in a zip archive: masks as pictures, run lengths as COCO has them, and the track of each object.
//!
//! ```text
//! masks/frame-000000.png   the id of the object of each pixel, 0 for none: 8 bits, with a palette
//! coco.json                a data set: an image for each frame, an annotation for each object in it
//! tracks.json              what was marked, and for each frame its time and the boxes of its objects
//! ```
//!
//! One picture a frame says all, since no pixel is of two objects. An archive is written one file after another, so what the two
//! texts are made of waits in files without a name, not in memory.

use std::fs::File;
use std::io::{BufWriter, Seek, Write, copy};
use std::path::Path;

use gst::prelude::*;
use gstsuperpixel::meta::SuperpixelMeta;
use gstsuperpixel::vectors::runs;
use serde_json::{Value as Json, json};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::archive::{self, Archive, Failure};
use super::create;
use crate::objects::{Followed, Follower, MOST_OBJECTS, Marks, Object};
use crate::problem::Problem;
use crate::properties;

/// Elements that follow `marks` on the metadata of `superpixel` and write what they find into `file`, with the suffix of its name. What
/// waits is on the disk of `folder`.
pub fn writer(
    superpixel: &gst::Element,
    marks: &Marks,
    source: &str,
    file: &File,
    folder: &Path,
) -> Result<(Vec<gst::Element>, &'static str), Problem> {
    if marks.is_empty() {
        return Err(Problem::new(
            "No object is marked.",
            "Switch “Object” on and draw a box around a thing.",
        ));
    }
    properties::hold(superpixel);
    // A missing table is an error here: the file would have nothing.
    let follower = Follower::new(marks.clone(), || {})?;
    follower.element().set_property_from_str("on-missing", "error");
    let objects = follower.element().clone();
    let archive = Masks {
        zip: ZipWriter::new(file.try_clone().map_err(Problem::internal)?),
        follower,
        about: json!({ "source": source, "objects": marks.json() }),
        images: Spool::new(folder)?,
        annotations: Spool::new(folder)?,
        frames: Spool::new(folder)?,
    };
    Ok((vec![objects, archive::sink(archive, None)], "zip"))
}

/// Entries of a list in JSON that wait on disk.
struct Spool {
    file: BufWriter<File>,
    count: u64,
}

impl Spool {
    fn new(folder: &Path) -> Result<Self, Problem> {
        Ok(Self { file: BufWriter::new(create(folder)?), count: 0 })
    }

    fn add(&mut self, entry: &Json) -> Result<(), Failure> {
        if self.count > 0 {
            self.file.write_all(b",\n")?;
        }
        self.count += 1;
        Ok(serde_json::to_writer(&mut self.file, entry)?)
    }

    fn list(&mut self, to: &mut impl Write) -> Result<(), Failure> {
        self.file.rewind()?;
        copy(self.file.get_mut(), to)?;
        Ok(())
    }
}

struct Masks {
    zip: ZipWriter<File>,
    follower: Follower,
    about: Json,
    images: Spool,
    annotations: Spool,
    frames: Spool,
}

impl Archive for Masks {
    const CONTENT: &str = "Objects";

    /// Adds a frame.
    fn add(&mut self, sample: &gst::Sample) -> Result<(), Failure> {
        let buffer = sample.buffer().ok_or("a frame without a picture")?;
        let labels = SuperpixelMeta::from_buffer(buffer).ok_or("a frame without superpixels")?.labels()?;
        let Followed { objects, owners } = self.follower.read(buffer)?;
        let size = [labels.width() as usize, labels.height() as usize];
        // Labels without a region are outside of a mask.
        let owner = |label: &u16| owners.get(usize::from(*label)).copied().unwrap_or(0);
        let mask: Vec<u8> = labels.as_slice().iter().map(owner).collect();
        let number = self.images.count;
        let name = format!("frame-{number:06}.png");
        let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        self.zip.start_file(format!("masks/{name}"), stored)?;
        self.zip.write_all(&png_of(&mask, size)?)?;
        let time = buffer.pts().map(|time| time.nseconds() as f64 / 1e9);
        let [width, height] = size;
        self.images.add(&json!({
            "id": number + 1, "file_name": name, "width": width, "height": height, "frame": number, "time": time,
        }))?;
        for Object { id, bounds, area, .. } in &objects {
            let [x, y, w, h] = bounds.map(|v| v as usize);
            let counts = runs::lengths(size, [x, y, x + w, y + h], |pixel| mask[pixel] == *id);
            let next = self.annotations.count + 1;
            self.annotations.add(&json!({
                "id": next, "image_id": number + 1, "category_id": 1, "object_id": id,
                "bbox": bounds, "area": area, "iscrowd": 0,
                "segmentation": { "size": [height, width], "counts": runs::compressed(&counts) },
            }))?;
        }
        self.frames.add(&json!({ "frame": number, "time": time, "objects": objects }))
    }

    /// Adds the two texts, and the archive's own list.
    fn finish(self) -> Result<(), Failure> {
        let Self { mut zip, about, mut images, mut annotations, mut frames, .. } = self;
        // Beyond 4 GiB a file needs larger numbers, which are to be promised before.
        let options = SimpleFileOptions::default().large_file(true);
        zip.start_file("coco.json", options)?;
        zip.write_all(b"{\"categories\":[{\"id\":1,\"name\":\"object\"}],\n\"images\":[\n")?;
        images.list(&mut zip)?;
        zip.write_all(b"],\n\"annotations\":[\n")?;
        annotations.list(&mut zip)?;
        zip.write_all(b"]}\n")?;
        zip.start_file("tracks.json", options)?;
        write!(zip, "{{\"source\":{},\n\"objects\":{},\n\"frames\":[\n", about["source"], about["objects"])?;
        frames.list(&mut zip)?;
        zip.write_all(b"]}\n")?;
        zip.finish()?;
        Ok(())
    }
}

/// A picture of ids, each in a color of its own, as data sets of objects in video have them.
fn png_of(mask: &[u8], [width, height]: [usize; 2]) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette((0..=MOST_OBJECTS as u8).flat_map(color).collect::<Vec<_>>());
    encoder.write_header()?.write_image_data(mask)?;
    Ok(bytes)
}

/// Three bits of an id in turn go to red, green and blue, the lowest to the highest: 0 is black, and near ids are far apart.
fn color(id: u8) -> [u8; 3] {
    let mut rgb = [0; 3];
    for bit in 0..8 {
        rgb[bit % 3] |= (id >> bit & 1) << (7 - bit / 3);
    }
    rgb
}
