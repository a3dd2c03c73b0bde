// SPDX-License-Identifier: MPL-2.0
//! Compares the colors that an element measures and draws with those that GStreamer's `videoconvert` makes of the same codes.
#![allow(dead_code)]

use gst::prelude::*;
use gstsuperpixel::image::{Geometry, PixelFormat};
use gstsuperpixel::meta::SuperpixelMeta;

use crate::common::{self, bytes, formats, harness, superpixel};

/// Most that a mean differs from `videoconvert`'s color, in codes of 8 bits: its factors have 8 bits and are cut off,
/// which makes colors up to 4 codes darker. A range that is taken for another shifts most colors by more, and so does a
/// matrix.
const MEASURED: u8 = 4;
/// Tolerance for a color that was drawn, since it was rounded to codes of YCbCr before.
const DRAWN: u8 = 5;
/// Frames are large enough for four superpixels and for lines of 8 px between them.
pub const SIDE: u32 = 32;
pub const LINE: [u8; 3] = [200, 60, 20];
/// Y, Cb, Cr in 8 bits, within what every matrix and range has a color for, and beyond some of them.
pub const CODES: [[u16; 3]; 3] = [[97, 84, 201], [120, 118, 140], [230, 60, 30]];

/// Caps of a stream; no colorimetry where there is no string.
pub fn caps(format: &str, (width, height): (u32, u32), colorimetry: Option<&str>) -> gst::Caps {
    let mut caps = common::caps(format, width, height);
    match colorimetry {
        Some(text) => caps.make_mut().set("colorimetry", text),
        None => caps.make_mut().structure_mut(0).unwrap().remove_field("colorimetry"),
    }
    caps
}

/// A frame whose samples all have these codes of 8 bits, or the same in more bits with some of them set.
pub fn flat(format: PixelFormat, caps: &gst::Caps, codes: [u16; 3]) -> gst::Buffer {
    let info = gst_video::VideoInfo::from_caps(caps).unwrap();
    let mut data = vec![0xff; info.size()];
    let layout = format.layout();
    let shapes: Vec<_> = format.planes(Geometry::new(info.width(), info.height()).unwrap()).collect();
    for (channel, code) in layout.channels.iter().zip(codes) {
        let (row, rows) = shapes[channel.plane];
        let more = channel.sample.bits - 8;
        let code = (code << more) | ((1 << more) / 3);
        for y in 0..rows {
            let start = info.offset()[channel.plane] + y * info.stride()[channel.plane] as usize;
            for at in (channel.offset..row).step_by(channel.step) {
                channel.sample.set(&mut data[start + at..start + row.max(at + channel.sample.bytes)], code);
            }
        }
    }
    gst::Buffer::from_mut_slice(data)
}

/// Pixels of R', G', B' as GStreamer's own element makes them of a frame.
fn converted(caps: &gst::Caps, frame: gst::Buffer) -> Vec<[u8; 3]> {
    let convert = gst::ElementFactory::make("videoconvert").build().unwrap();
    let (mut harness, _bus) = harness(&convert);
    harness.set_sink_caps(gst::Caps::builder("video/x-raw").field("format", "RGBA").build());
    harness.set_src_caps(caps.clone());
    let rgba = bytes(&harness.push_and_pull(frame).unwrap());
    rgba.chunks_exact(4).map(|p| [p[0], p[1], p[2]]).collect()
}

pub fn near(a: &[u8], b: [u8; 3], bound: u8) -> bool {
    a.iter().zip(b).all(|(a, b)| a.abs_diff(b) <= bound)
}

/// Compares means and drawings of a flat frame with what `videoconvert` sees in it; says what is wrong.
pub fn fault(
    backend: &str,
    format: PixelFormat,
    size: (u32, u32),
    colorimetry: Option<&str>,
    codes: [u16; 3],
) -> Option<String> {
    let caps = caps(format.name(), size, colorimetry);
    let frame = flat(format, &caps, codes);
    let middle = size.0 as usize * (size.1 as usize / 2) + size.0 as usize / 2;
    let color = converted(&caps, frame.clone())[middle];
    let element = superpixel();
    element.set_property_from_str("backend", backend);
    element.set_property("superpixel-size", 16u32);
    element.set_property_from_str("overlay", "mean-color-boundaries");
    element.set_property("boundary-width", 8u32);
    element.set_property("boundary-color", u32::from_be_bytes([255, LINE[0], LINE[1], LINE[2]]));
    let (mut harness, bus) = harness(&element);
    harness.set_src_caps(caps.clone());
    let case = format!("{backend} {} {size:?} {colorimetry:?} {codes:?}", format.name());
    let Ok(output) = harness.push_and_pull(frame) else {
        return Some(format!("{case}: {:?}", common::error_on(&bus)));
    };
    let table = SuperpixelMeta::from_buffer(&output).expect("meta").table().unwrap();
    if let Some(region) = table.iter().find(|region| !near(&region.mean_rgb[..3], color, MEASURED)) {
        return Some(format!("{case}: a mean of {:?} where videoconvert has {color:?}", region.mean_rgb));
    }
    if format.is_gray() {
        return None;
    }
    let drawn = converted(&caps, output);
    let count = |color| drawn.iter().filter(|&&pixel| near(&pixel, color, DRAWN)).count();
    let (lines, fills) = (count(LINE), count(color));
    // Between lines and fills chroma is blended where pixels share it.
    let enough = lines * 5 >= drawn.len() && fills * 5 >= drawn.len();
    (!enough).then(|| {
        format!("{case}: of {} pixels {lines} have the line's color, {fills} {color:?}", drawn.len())
    })
}

pub fn all_right(faults: impl IntoIterator<Item = Option<String>>) {
    let (mut count, mut wrong) = (0, Vec::new());
    for fault in faults {
        count += 1;
        wrong.extend(fault);
    }
    assert!(wrong.is_empty(), "{} of {count} cases:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 0);
}

pub const SQUARE: (u32, u32) = (SIDE, SIDE);

/// Every range and matrix that GStreamer has, in numbers; 0 is unknown, and a matrix of 1 is that of RGB.
pub fn ranges_and_matrices() -> impl Iterator<Item = String> {
    (0..=2).flat_map(|range| (0..=6).map(move |matrix| format!("{range}:{matrix}:0:0")))
}

pub fn yuv_formats() -> impl Iterator<Item = PixelFormat> {
    formats().map(|(_, format)| format).filter(|format| !format.is_rgb() && !format.is_gray())
}

/// Formats of 8, 10 and 16 bits, of whole and shared chroma.
pub const SOME: [PixelFormat; 4] =
    [PixelFormat::I420, PixelFormat::Y444, PixelFormat::P010Le, PixelFormat::Y444p16Le];
