// SPDX-License-Identifier: MPL-2.0
//! Measures ways to compress the label maps of a clip without loss: `codecs [FILE [PROPERTY=VALUE ...]]`. Bytes and time a frame.

use std::error::Error;
use std::io::Write;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::DeflateEncoder;
use gst::prelude::*;
use gstsuperpixel::meta::{LabelMap, SuperpixelMeta};
use superpixel_studio::encode::labels;

const FRAMES: usize = 50;

type Encode = fn(&LabelMap) -> Vec<u8>;

fn deflate(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(level));
    // Into memory, where nothing fails.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// Each row less the one above.
fn deltas(map: &LabelMap) -> Vec<u16> {
    let mut above = vec![0; map.width() as usize];
    let mut out = Vec::with_capacity(map.as_slice().len());
    for row in map.rows() {
        out.extend(row.iter().zip(&above).map(|(here, above)| here.wrapping_sub(*above)));
        above.copy_from_slice(row);
    }
    out
}

fn png(map: &LabelMap) -> Vec<u8> {
    let mut out = std::io::Cursor::new(Vec::new());
    let image = image::ImageBuffer::<image::Luma<u16>, _>::from_raw(
        map.width(),
        map.height(),
        map.as_slice().to_vec(),
    );
    // Writing to memory cannot fail.
    let _ = image.map(|image| image.write_to(&mut out, image::ImageFormat::Png));
    out.into_inner()
}

const WAYS: [(&str, Encode); 6] = [
    ("PNG of 16 bits", png),
    ("deflate 6", |map| deflate(bytemuck::cast_slice(map.as_slice()), 6)),
    ("deflate 1 of row deltas", |map| deflate(bytemuck::cast_slice(&deltas(map)), 1)),
    ("deflate 6 of row deltas", |map| deflate(bytemuck::cast_slice(&deltas(map)), 6)),
    ("runs against the row above", labels::encode),
    ("the same, deflate 1", |map| deflate(&labels::encode(map), 1)),
];

fn main() -> Result<(), Box<dyn Error>> {
    superpixel_studio::init()?;
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().unwrap_or_else(|| "media/bigbuckbunny.mp4".into());
    let line = format!(
        "filesrc name=file ! decodebin ! videoconvert ! superpixel overlay=none {} ! appsink name=sink sync=false max-buffers=2",
        arguments.collect::<Vec<_>>().join(" ")
    );
    let pipeline = gst::parse::launch(&line)?.downcast::<gst::Pipeline>().map_err(|_| "not a pipeline")?;
    pipeline.by_name("file").ok_or("no file")?.set_property("location", file);
    let sink = pipeline.by_name("sink").and_downcast::<gst_app::AppSink>().ok_or("no sink")?;
    pipeline.set_state(gst::State::Playing)?;
    let mut maps = Vec::new();
    for _ in 0..FRAMES {
        let sample = sink.pull_sample()?;
        let buffer = sample.buffer().ok_or("no buffer")?;
        maps.push(SuperpixelMeta::from_buffer(buffer).ok_or("no superpixels")?.labels()?);
    }
    pipeline.set_state(gst::State::Null)?;
    for (name, encode) in WAYS {
        let (mut bytes, mut best) = (0, vec![Duration::MAX; maps.len()]);
        // The best of three of each frame: others work on this machine, too.
        for _ in 0..3 {
            bytes = 0;
            for (map, best) in maps.iter().zip(&mut best) {
                let start = Instant::now();
                bytes += encode(map).len();
                *best = start.elapsed().min(*best);
            }
        }
        let time = best.iter().sum::<Duration>().as_secs_f64() * 1e3 / maps.len() as f64;
        println!("{name:28} {:8} bytes {time:7.2} ms", bytes / maps.len());
    }
    Ok(())
}
