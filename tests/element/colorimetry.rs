// SPDX-License-Identifier: MPL-2.0
//! Colors of a stream are those that GStreamer's own `videoconvert` with its defaults makes of it, whatever its
//! colorimetry says: means that the element measures, and what it draws.

use gstsuperpixel::image::PixelFormat;
use gstsuperpixel::meta::SuperpixelMeta;

use crate::colors::{
    CODES, LINE, SOME, SQUARE, all_right, caps, fault, flat, near, ranges_and_matrices, yuv_formats,
};
use crate::common::{harness, superpixel};

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
