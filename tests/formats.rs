// SPDX-License-Identifier: MPL-2.0
//! Every format, odd sizes, padded rows: the element gives what the library gives, and touches nothing else.
#![cfg(feature = "gst")]

mod common;

use common::{FORMATS, bytes, caps, frame_info, harness, info, library, params, picture, superpixel};
use gst::prelude::*;
use gstsuperpixel::image::YuvMatrix;
use gstsuperpixel::meta::SuperpixelMeta;
use gstsuperpixel::params::{Boundaries, Drawing, Fill};

const OVERLAYS: [&str; 5] = ["none", "boundaries", "mean-color", "mean-color-boundaries", "labels"];

fn drawing(overlay: &str) -> Option<Drawing> {
    let boundaries = Some(Boundaries::default());
    match overlay {
        "none" => None,
        "boundaries" => Some(Drawing { fill: Fill::None, boundaries }),
        "mean-color" => Some(Drawing { fill: Fill::MeanColor, boundaries: None }),
        "mean-color-boundaries" => Some(Drawing { fill: Fill::MeanColor, boundaries }),
        "labels" => Some(Drawing { fill: Fill::Labels, boundaries: None }),
        other => panic!("{other}"),
    }
}

#[test]
fn element_equals_library_for_every_format_size_and_stride() {
    for (name, _) in FORMATS {
        for (width, height) in [(1, 1), (1, 9), (3, 5), (33, 17), (64, 47)] {
            let element = superpixel();
            element.set_property("neighbors", true);
            let (mut h, bus) = harness(&element);
            h.set_src_caps(caps(name, width, height));
            let info = info(name, width, height);
            for (seed, overlay) in OVERLAYS.iter().enumerate() {
                for padding in [0, 2, 13] {
                    let case = format!("{name} {width}x{height} overlay={overlay} padding={padding}");
                    element.set_property_from_str("overlay", overlay);
                    let input = picture(&info, seed as u32, padding);
                    let expected =
                        library(&input, &info, frame_info(&info), &params(), drawing(overlay).as_ref());
                    let output = h
                        .push_and_pull(input)
                        .unwrap_or_else(|_| panic!("{case}: {:?}", common::error_on(&bus)));
                    let meta = SuperpixelMeta::from_buffer(&output).expect("meta");
                    assert_eq!((meta.width(), meta.height(), meta.algo()), (width, height, "slic"), "{case}");
                    assert_eq!(meta.regions(), expected.regions.count, "{case}");
                    assert!(meta.labels().unwrap().as_slice() == expected.labels, "{case}: labels differ");
                    assert_eq!(meta.table().unwrap(), expected.regions.table, "{case}");
                    assert_eq!(meta.neighbors().unwrap(), expected.regions.neighbors, "{case}");
                    assert!(bytes(&output) == expected.drawn, "{case}: pixels or padding differ");
                }
            }
        }
    }
}

#[test]
fn colorimetry_of_the_caps_reaches_the_library() {
    let (width, height) = (48, 32);
    for (colorimetry, matrix, full_range) in [
        ("bt601", YuvMatrix::Bt601, false),
        ("bt709", YuvMatrix::Bt709, false),
        ("bt2020", YuvMatrix::Bt2020, false),
        ("1:4:0:0", YuvMatrix::Bt601, true),
        ("1:3:0:0", YuvMatrix::Bt709, true),
        ("2:5:0:0", YuvMatrix::Smpte240m, false),
    ] {
        let element = superpixel();
        let (mut h, _bus) = harness(&element);
        let mut caps = caps("I420", width, height);
        caps.make_mut().set("colorimetry", colorimetry);
        h.set_src_caps(caps);
        let info = info("I420", width, height);
        let frame = gstsuperpixel::image::FrameInfo { matrix, full_range, ..frame_info(&info) };
        let input = picture(&info, 3, 0);
        let expected = library(&input, &info, frame, &params(), drawing("boundaries").as_ref());
        let output = h.push_and_pull(input).unwrap();
        let meta = SuperpixelMeta::from_buffer(&output).expect("meta");
        assert_eq!(meta.table().unwrap(), expected.regions.table, "{colorimetry}");
        assert!(bytes(&output) == expected.drawn, "{colorimetry}: pixels differ");
    }
}

/// Two flat halves with a line between them: where a 2x2 block is all line, its chroma is the line's; where it has no
/// line, luma and chroma are as before.
#[test]
fn boundaries_have_the_right_chroma() {
    const YELLOW: [u8; 3] = [210, 16, 146];
    let (width, height) = (64usize, 32usize);
    let mut results = Vec::new();
    for name in ["I420", "NV12"] {
        let info = info(name, width as u32, height as u32);
        let mut input = picture(&info, 0, 0);
        let (offset, stride) = (info.offset().to_vec(), info.stride().to_vec());
        let luma_at = |x: usize, y: usize| y * stride[0] as usize + x;
        let chroma_at = |c: usize, x: usize, y: usize| match name {
            "I420" => offset[1 + c] + y * stride[1 + c] as usize + x,
            _ => offset[1] + y * stride[1] as usize + 2 * x + c,
        };
        let chroma = [90, 160];
        {
            let mut map = input.get_mut().unwrap().map_writable().unwrap();
            for y in 0..height {
                for x in 0..width {
                    map[luma_at(x, y)] = if x < width / 2 { 60 } else { 180 };
                    map[chroma_at(0, x / 2, y / 2)] = chroma[0];
                    map[chroma_at(1, x / 2, y / 2)] = chroma[1];
                }
            }
        }
        let element = superpixel();
        element.set_property("superpixel-size", 32u32);
        element.set_property("boundary-width", 4u32);
        let (mut h, _bus) = harness(&element);
        h.set_src_caps(caps(name, width as u32, height as u32));
        let output = bytes(&h.push_and_pull(input).unwrap());
        let (mut lines, mut rests) = (0, 0);
        let mut planar = Vec::new();
        for y in 0..height / 2 {
            for x in 0..width / 2 {
                let before = if 2 * x < width / 2 { 60 } else { 180 };
                let block =
                    [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(i, j)| output[luma_at(2 * x + i, 2 * y + j)]);
                let found = [output[chroma_at(0, x, y)], output[chroma_at(1, x, y)]];
                planar.push((block, found));
                if block.iter().all(|luma| luma.abs_diff(YELLOW[0]) <= 1) {
                    lines += 1;
                    assert!(
                        found[0].abs_diff(YELLOW[1]) <= 1 && found[1].abs_diff(YELLOW[2]) <= 1,
                        "{name} {found:?}"
                    );
                } else if block == [before; 4] {
                    rests += 1;
                    assert_eq!(found, chroma, "{name} at {x},{y}");
                }
            }
        }
        assert!(lines > 0 && rests > 0, "{name}: {lines} blocks of line, {rests} untouched");
        results.push(planar);
    }
    assert_eq!(results[0], results[1], "I420 and NV12 differ");
}
