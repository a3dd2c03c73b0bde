// SPDX-License-Identifier: MPL-2.0
//! Colors of a stream are those that GStreamer's own `videoconvert` with its defaults makes of it, whatever its
//! colorimetry says: means that the element measures, and what it draws.
#![cfg(feature = "gst")]

mod common;
#[cfg(feature = "cuda")]
mod device;

use common::{bytes, formats, harness, superpixel};
use gst::prelude::*;
use gstsuperpixel::image::{Geometry, PixelFormat};
use gstsuperpixel::meta::SuperpixelMeta;

/// Most that a mean differs from `videoconvert`'s color, in codes of 8 bits: its factors have 8 bits and are cut off,
/// which makes colors up to 4 codes darker. A range that is taken for another shifts most colors by more, and so does a
/// matrix.
const MEASURED: u8 = 4;
/// Tolerance for a color that was drawn, since it was rounded to codes of YCbCr before.
const DRAWN: u8 = 5;
/// Frames are large enough for four superpixels and for lines of 8 px between them.
const SIDE: u32 = 32;
const LINE: [u8; 3] = [200, 60, 20];
/// Y, Cb, Cr in 8 bits, within what every matrix and range has a color for, and beyond some of them.
const CODES: [[u16; 3]; 3] = [[97, 84, 201], [120, 118, 140], [230, 60, 30]];

/// Caps of a stream; no colorimetry where there is no string.
fn caps(format: &str, (width, height): (u32, u32), colorimetry: Option<&str>) -> gst::Caps {
    let mut caps = common::caps(format, width, height);
    match colorimetry {
        Some(text) => caps.make_mut().set("colorimetry", text),
        None => caps.make_mut().structure_mut(0).unwrap().remove_field("colorimetry"),
    }
    caps
}

/// A frame whose samples all have these codes of 8 bits, or the same in more bits with some of them set.
fn flat(format: PixelFormat, caps: &gst::Caps, codes: [u16; 3]) -> gst::Buffer {
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

fn near(a: &[u8], b: [u8; 3], bound: u8) -> bool {
    a.iter().zip(b).all(|(a, b)| a.abs_diff(b) <= bound)
}

/// Compares means and drawings of a flat frame with what `videoconvert` sees in it; says what is wrong.
fn fault(
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

fn all_right(faults: impl IntoIterator<Item = Option<String>>) {
    let (mut count, mut wrong) = (0, Vec::new());
    for fault in faults {
        count += 1;
        wrong.extend(fault);
    }
    assert!(wrong.is_empty(), "{} of {count} cases:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 0);
}

const SQUARE: (u32, u32) = (SIDE, SIDE);

/// Every range and matrix that GStreamer has, in numbers; 0 is unknown, and a matrix of 1 is that of RGB.
fn ranges_and_matrices() -> impl Iterator<Item = String> {
    (0..=2).flat_map(|range| (0..=6).map(move |matrix| format!("{range}:{matrix}:0:0")))
}

fn yuv_formats() -> impl Iterator<Item = PixelFormat> {
    formats().map(|(_, format)| format).filter(|format| !format.is_rgb() && !format.is_gray())
}

/// Formats of 8, 10 and 16 bits, of whole and shared chroma.
const SOME: [PixelFormat; 4] =
    [PixelFormat::I420, PixelFormat::Y444, PixelFormat::P010Le, PixelFormat::Y444p16Le];

#[test]
fn ranges_and_matrices_are_read_as_videoconvert_reads_them() {
    all_right(yuv_formats().flat_map(|format| {
        let codes = if SOME.contains(&format) { &CODES[..] } else { &CODES[..1] };
        ranges_and_matrices().flat_map(move |colorimetry| {
            codes.iter().map(move |&codes| fault("cpu", format, SQUARE, Some(&colorimetry), codes))
        })
    }));
}

/// Transfer curves and primaries change no color unless `videoconvert` is told to convert them.
#[test]
fn transfers_and_primaries_are_read_as_videoconvert_reads_them() {
    let of_range = |range: u32| {
        let transfers = (0..=16).map(move |transfer| format!("{range}:3:{transfer}:1"));
        transfers.chain((0..=12).map(move |primaries| format!("{range}:6:5:{primaries}")))
    };
    all_right(SOME.into_iter().flat_map(|format| {
        (0..=2).flat_map(of_range).map(move |text| fault("cpu", format, SQUARE, Some(&text), CODES[0]))
    }));
}

/// Names, text that is no colorimetry, and one that does not fit YCbCr, for which GStreamer takes its defaults.
#[test]
fn names_are_read_as_videoconvert_reads_them() {
    let names = [
        "bt601",
        "bt709",
        "smpte240m",
        "sRGB",
        "bt2020",
        "bt2020-10",
        "bt2100-pq",
        "bt2100-hlg",
        "none",
        "1:2",
        "0:0:0:0",
    ];
    all_right(SOME.into_iter().flat_map(|format| {
        names.into_iter().map(move |name| fault("cpu", format, SQUARE, Some(name), CODES[0]))
    }));
}

/// GStreamer's defaults depend on the format and the height.
#[test]
fn defaults_are_those_of_videoconvert() {
    let gray = [PixelFormat::Gray8, PixelFormat::Gray16Le];
    all_right(SOME.into_iter().chain(gray).chain([PixelFormat::Rgba]).flat_map(|format| {
        [SQUARE, (16, 576), (16, 578), (16, 2158), (16, 2160)]
            .into_iter()
            .map(move |size| fault("cpu", format, size, None, CODES[0]))
    }));
}

/// `videoconvert` leaves codes of RGB alone on the way to RGB, whatever range they are said to have.
#[test]
fn rgb_is_read_as_videoconvert_reads_it() {
    let rgb = [PixelFormat::Rgba, PixelFormat::Bgr, PixelFormat::Gbr, PixelFormat::Rgb10a2Le];
    let more = ["sRGB", "bt601", "bt2100-pq", "2:4:7:1", "none"].map(str::to_owned);
    all_right(rgb.into_iter().flat_map(|format| {
        let all = ranges_and_matrices().chain(more.clone());
        all.map(move |colorimetry| fault("cpu", format, SQUARE, Some(&colorimetry), CODES[0]))
    }));
}

/// A matrix changes nothing about gray. `videoconvert` takes gray of unknown matrix for red of that code, and here it
/// stays gray.
#[test]
fn gray_is_read_as_videoconvert_reads_it() {
    let gray = [PixelFormat::Gray8, PixelFormat::Gray16Le, PixelFormat::Gray16Be];
    all_right(gray.into_iter().flat_map(|format| {
        let known = ranges_and_matrices().filter(|text| !text.contains(":0:0:0"));
        known.map(move |text| fault("cpu", format, SQUARE, Some(&text), CODES[0]))
    }));
    for format in gray {
        let mean = |text: &str| {
            let caps = caps(format.name(), SQUARE, Some(text));
            let (mut harness, _bus) = harness(&superpixel());
            harness.set_src_caps(caps.clone());
            let output = harness.push_and_pull(flat(format, &caps, CODES[0])).unwrap();
            SuperpixelMeta::from_buffer(&output).expect("meta").table().unwrap()[0].mean_rgb
        };
        for range in 0..=2 {
            let unknown = mean(&format!("{range}:0:0:0"));
            assert_eq!(unknown, mean(&format!("{range}:4:0:0")), "{format:?} {range}");
        }
    }
}

/// A stream may say of itself from one frame to the next that its range is another.
#[test]
fn a_change_of_range_changes_the_colors() {
    let (mut harness, _bus) = harness(&superpixel());
    for (text, wanted) in [("0:4:0:0", LINE), ("2:4:0:0", [211, 52, 6]), ("0:4:0:0", LINE)] {
        let caps = caps("Y444", SQUARE, Some(text));
        harness.set_src_caps(caps.clone());
        // Y, Cb, Cr of (200, 60, 20) in full range.
        let output = harness.push_and_pull(flat(PixelFormat::Y444, &caps, CODES[0])).unwrap();
        let mean = SuperpixelMeta::from_buffer(&output).expect("meta").table().unwrap()[0].mean_rgb;
        assert!(near(&mean[..3], wanted, 2), "{text}: {mean:?}");
    }
}

#[cfg(feature = "cuda")]
#[test]
fn the_cuda_backend_reads_colors_as_videoconvert_does() {
    if device::device("the_cuda_backend_reads_colors_as_videoconvert_does").is_none() {
        return;
    }
    let few = [PixelFormat::Nv12, PixelFormat::P010Le, PixelFormat::Y444];
    all_right(few.into_iter().flat_map(|format| {
        ranges_and_matrices().map(move |text| fault("cuda", format, SQUARE, Some(&text), CODES[0]))
    }));
}
