// SPDX-License-Identifier: MPL-2.0
//! Masks of the element from alpha and from a rectangle: results are those of the library with the same mask, bit for bit.

use crate::common;
use crate::common::{
    Answer, bytes, caps, error_on, formats, frame_info, harness, info, params, picture, superpixel,
    warning_on,
};
use gst::prelude::*;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{Channel, NO_LABEL};
use gstsuperpixel::meta::SuperpixelMeta;
use gstsuperpixel::params::{Boundaries, Drawing, Fill, Outputs, Params};
use gstsuperpixel::plan::Plan;

pub const EVERYTHING: Outputs =
    Outputs { table: true, neighbors: true, mean_color: true, linear_light: false };

/// An engine of the library for frames with masks, as [`superpixel`] has it.
pub fn engine(info: &gst_video::VideoInfo, temporal: bool) -> Engine<Cpu> {
    let params = Params { masked: true, temporal, ..params() };
    Engine::new(Cpu::new(1).unwrap(), Plan::new(&params, frame_info(info)).unwrap()).unwrap()
}

/// A mask of a byte a pixel.
pub fn mask_of(width: u32, height: u32, is_inside: impl Fn(i64, i64) -> bool) -> Vec<u8> {
    let pixels = (0..i64::from(height)).flat_map(|y| (0..i64::from(width)).map(move |x| (x, y)));
    pixels.map(|(x, y)| u8::from(is_inside(x, y))).collect()
}

/// Compares a frame that left with the library's answer.
pub fn assert_same(output: &gst::BufferRef, expected: &Answer, case: &str) {
    let meta = SuperpixelMeta::from_buffer(output).expect("meta");
    assert_eq!(meta.regions(), expected.regions.count, "{case}");
    assert!(meta.labels().unwrap().as_slice() == expected.labels, "{case}: labels differ");
    assert_eq!(meta.table().unwrap(), expected.regions.table, "{case}");
    assert_eq!(meta.motion().unwrap(), expected.regions.motion, "{case}");
    assert_eq!(meta.neighbors().unwrap(), expected.regions.neighbors, "{case}");
    assert!(bytes(output) == expected.drawn, "{case}: pixels or padding differ");
}

/// Writes a code of alpha for every pixel.
fn set_alpha(
    buffer: &mut gst::Buffer,
    info: &gst_video::VideoInfo,
    alpha: Channel,
    code: impl Fn(usize, usize) -> u32,
) {
    let meta = buffer
        .meta::<gst_video::VideoMeta>()
        .map(|meta| (meta.offset()[alpha.plane], meta.stride()[alpha.plane] as usize));
    let (offset, stride) = meta.unwrap_or((info.offset()[alpha.plane], info.stride()[alpha.plane] as usize));
    let mut map = buffer.get_mut().unwrap().map_writable().unwrap();
    for y in 0..info.height() as usize {
        for x in 0..info.width() as usize {
            let word = &mut map[offset + y * stride + alpha.offset + x * alpha.step..][..alpha.sample.bytes];
            match word {
                [byte] => *byte = code(x, y) as u8,
                [_, _] => word.copy_from_slice(&(code(x, y) as u16).to_le_bytes()),
                _ => word[3] = word[3] & 0x3f | (code(x, y) as u8) << 6,
            }
        }
    }
}

#[test]
fn alpha_is_the_mask_of_every_format_that_has_it() {
    let drawings = [
        ("none", None),
        (
            "mean-color-boundaries",
            Some(Drawing { fill: Fill::MeanColor, boundaries: Some(Boundaries::default()) }),
        ),
    ];
    let mut seen = 0;
    for (name, format) in formats() {
        let Some(alpha) = format.layout().alpha else { continue };
        seen += 1;
        let most = (1u32 << alpha.sample.bits) - 1;
        for (width, height) in [(1, 9), (33, 17), (64, 47)] {
            let info = info(name, width, height);
            // A disk, as opaque as the pixel is near its center, and noise of one code.
            let code = |x: usize, y: usize| {
                let [dx, dy] = [2 * x as i64 - i64::from(width), 2 * y as i64 - i64::from(height)];
                let far = 2 * (dx * dx + dy * dy) * i64::from(most)
                    / (i64::from(width).pow(2) + i64::from(height).pow(2));
                (i64::from(most) - far).max(i64::from((x * 7 + y * 3).is_multiple_of(11))) as u32
            };
            for (padding, least) in [(0, 1u32), (2, 1), (0, 140)] {
                for (overlay, drawing) in &drawings {
                    let case =
                        format!("{name} {width}x{height} {overlay} padding={padding} mask-alpha={least}");
                    let element = superpixel();
                    element.set_property_from_str("mask", "alpha");
                    element.set_property("mask-alpha", least);
                    element.set_property("neighbors", true);
                    element.set_property_from_str("overlay", overlay);
                    let (mut h, bus) = harness(&element);
                    h.set_src_caps(caps(name, width, height));
                    let mut input = picture(&info, 1, padding);
                    set_alpha(&mut input, &info, alpha, code);
                    let mask = mask_of(width, height, |x, y| {
                        u64::from(code(x as usize, y as usize)) * 255 >= u64::from(least) * u64::from(most)
                    });
                    let mut engine = engine(&info, false);
                    let expected = common::library_on(
                        &mut engine,
                        &input,
                        &info,
                        drawing.as_ref(),
                        EVERYTHING,
                        Some(&mask),
                    );
                    let output =
                        h.push_and_pull(input).unwrap_or_else(|_| panic!("{case}: {:?}", error_on(&bus)));
                    assert_same(&output, &expected, &case);
                    let outside = expected.labels.iter().filter(|label| **label == NO_LABEL).count();
                    assert_eq!(outside, mask.iter().filter(|inside| **inside == 0).count(), "{case}");
                    assert!(width < 9 || outside > 0, "{case}: nothing is outside");
                }
            }
        }
    }
    assert!(seen >= 9, "{seen} formats");
}

#[test]
fn without_alpha_every_pixel_counts() {
    for name in ["RGB", "NV12", "GRAY8", "RGBx"] {
        let element = superpixel();
        element.set_property_from_str("mask", "alpha");
        element.set_property("neighbors", true);
        element.set_property_from_str("overlay", "none");
        let (mut h, bus) = harness(&element);
        h.set_src_caps(caps(name, 64, 47));
        let info = info(name, 64, 47);
        let input = picture(&info, 1, 0);
        let expected = common::library(&input, &info, frame_info(&info), &params(), None);
        assert_same(&h.push_and_pull(input).unwrap(), &expected, name);
        assert_eq!(warning_on(&bus), None);
    }
}

#[test]
fn a_rectangle_is_clipped_to_the_frame() {
    let (width, height) = (64, 47);
    let info = info("I420", width, height);
    let element = superpixel();
    element.set_property_from_str("mask", "rectangle");
    element.set_property("neighbors", true);
    let drawing = Drawing { fill: Fill::None, boundaries: Some(Boundaries::default()) };
    let (mut h, bus) = harness(&element);
    h.set_src_caps(caps("I420", width, height));
    for (text, [x0, y0, x1, y1]) in [
        ("", [0, 0, 64, 47]),
        ("10,5,30,20", [10, 5, 40, 25]),
        (" -8, -3, 20, 20", [0, 0, 12, 17]),
        ("60,40,2147483647,2147483647", [60, 40, 64, 47]),
        ("63,46,1,1", [63, 46, 64, 47]),
        ("64,0,5,5", [0; 4]),
        ("0,-7,5,7", [0; 4]),
        ("-2147483648,-2147483648,2147483647,2147483647", [0; 4]),
        ("-5,-5,200,200", [0, 0, 64, 47]),
    ] {
        element.set_property("mask-rectangle", text);
        let mask = mask_of(width, height, |x, y| x0 <= x && x < x1 && y0 <= y && y < y1);
        for seed in 0..2 {
            let input = picture(&info, seed, 0);
            let mut engine = engine(&info, false);
            let expected =
                common::library_on(&mut engine, &input, &info, Some(&drawing), EVERYTHING, Some(&mask));
            assert_same(&h.push_and_pull(input).unwrap(), &expected, text);
        }
    }
    assert_eq!((warning_on(&bus), error_on(&bus)), (None, None));
}

#[test]
fn texts_that_say_nothing_keep_the_old_value() {
    for is_running in [false, true] {
        let element = superpixel();
        let (mut h, bus) = harness(&element);
        if is_running {
            h.set_src_caps(caps("RGB", 16, 12));
        }
        let good = [("mask-rectangle", "1,2,3,4"), ("mask-values", "1,3-5"), ("mask-roi-types", "a, b")];
        for (name, value) in good {
            element.set_property(name, value);
            assert_eq!(element.property::<String>(name), value);
        }
        assert_eq!(warning_on(&bus), None);
        for (name, bad) in [
            ("mask-rectangle", "1,2,3"),
            ("mask-rectangle", "1,2,0,4"),
            ("mask-rectangle", "1,2,3,99999999999"),
            ("mask-values", "5-3"),
            ("mask-values", "65536"),
            ("mask-values", "x"),
        ] {
            element.set_property(name, bad);
            assert!(warning_on(&bus).unwrap().contains(name), "{bad}");
        }
        for (name, value) in good {
            assert_eq!(element.property::<String>(name), value);
            element.set_property(name, None::<&str>);
            assert_eq!(element.property::<String>(name), "");
        }
        assert_eq!(warning_on(&bus), None);
    }
}

/// No pixel counts in some frames of a stream; whoever reads them goes on.
#[test]
fn frames_in_which_no_pixel_counts_have_no_region_and_end_nothing() {
    let overlays = ["none", "boundaries", "mean-color", "mean-color-boundaries", "labels", "abstraction"];
    for algo in ["slic", "lsc", "quickshift", "snic"] {
        for (i, overlay) in overlays.into_iter().enumerate() {
            let element = superpixel();
            for (name, value) in
                [("algo", algo), ("overlay", overlay), ("mask", "rectangle"), ("analytics", "objects")]
            {
                element.set_property_from_str(name, value);
            }
            for name in ["temporal", "neighbors", "events", "hierarchy"] {
                element.set_property(name, true);
            }
            element.set_property("regions", if i % 2 == 0 { 0u32 } else { 5 });
            let objects = gst::ElementFactory::make("superpixelobjects")
                .property("objects", "4,4,20,20")
                .build()
                .unwrap();
            let labels = gst::ElementFactory::make("superpixellabels")
                .property("identity", i % 3 == 0)
                .build()
                .unwrap();
            labels.set_property("outline-smoothness", if i < 3 { 0.0f32 } else { 2.0 });
            let bin = gst::Bin::new();
            bin.add_many([&element, &objects, &labels]).unwrap();
            gst::Element::link_many([&element, &objects, &labels]).unwrap();
            for (name, of) in [("sink", &element), ("src", &labels)] {
                bin.add_pad(&gst::GhostPad::with_target(&of.static_pad(name).unwrap()).unwrap()).unwrap();
            }
            let (mut h, bus) = harness(bin.upcast_ref());
            h.set_src_caps(caps("RGBA", 64, 47));
            let info = info("RGBA", 64, 47);
            for (frame, rectangle) in
                ["0,0,64,47", "64,0,1,1", "64,0,1,1", "8,8,40,30", "0,0,64,47"].into_iter().enumerate()
            {
                let case = format!("{algo} {overlay} {frame}");
                element.set_property("mask-rectangle", rectangle);
                let input = picture(&info, 1, 0);
                let output =
                    h.push_and_pull(input).unwrap_or_else(|_| panic!("{case}: {:?}", error_on(&bus)));
                let meta = SuperpixelMeta::from_buffer(&output).expect("meta");
                let map = meta.labels().unwrap();
                let is_empty = rectangle == "64,0,1,1";
                assert_eq!(meta.regions() == 0, is_empty, "{case}");
                assert_eq!(map.as_slice().iter().all(|label| *label == NO_LABEL), is_empty, "{case}");
                assert_eq!(meta.table().unwrap().len(), meta.regions() as usize, "{case}");
                assert_eq!(meta.motion().unwrap().len(), meta.regions() as usize, "{case}");
                let written = bytes(&output);
                let written = written.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]]));
                for (written, label) in written.zip(map.as_slice()).filter(|(_, label)| **label == NO_LABEL) {
                    assert_eq!(written, if i % 3 == 0 { 0 } else { NO_LABEL }, "{case}: {label}");
                }
                let stats: gst::Structure = element.property("stats");
                if frame == 1 {
                    assert!(stats.get::<u64>("deaths").unwrap() > 0, "{case}");
                }
            }
            assert_eq!(error_on(&bus), None, "{algo} {overlay}");
        }
    }
}

/// The frame's own memory leaves, though others hold it.
#[test]
fn a_mask_copies_no_frame() {
    for mask in ["alpha", "rectangle"] {
        let element = superpixel();
        element.set_property_from_str("mask", mask);
        element.set_property("mask-rectangle", "3,3,20,20");
        element.set_property_from_str("overlay", "none");
        let (mut h, _bus) = harness(&element);
        h.set_src_caps(caps("RGBA", 64, 47));
        let held = picture(&info("RGBA", 64, 47), 1, 0);
        let output = h.push_and_pull(held.clone()).unwrap();
        assert_eq!(output.peek_memory(0).as_ptr(), held.peek_memory(0).as_ptr(), "{mask}");
    }
}

/// Switched on and off in the stream, with ids that go on and a size that changes.
#[test]
fn a_mask_may_come_and_go_in_the_stream() {
    let element = superpixel();
    element.set_property("neighbors", true);
    element.set_property_from_str("overlay", "none");
    let (mut h, bus) = harness(&element);
    for (width, height) in [(64, 47), (33, 60)] {
        h.set_src_caps(caps("RGBA", width, height));
        let info = info("RGBA", width, height);
        for (mask, rectangle) in [
            ("none", ""),
            ("rectangle", "5,5,20,30"),
            ("none", ""),
            ("rectangle", "5,5,20,30"),
            ("rectangle", ""),
        ] {
            element.set_property_from_str("mask", mask);
            element.set_property("mask-rectangle", rectangle);
            let is_inside = |x: i64, y: i64| (5..25).contains(&x) && (5..35).contains(&y);
            let inside = (!rectangle.is_empty()).then(|| mask_of(width, height, is_inside));
            let input = picture(&info, 1, 0);
            let mut engine = engine(&info, false);
            let expected =
                common::library_on(&mut engine, &input, &info, None, EVERYTHING, inside.as_deref());
            assert_same(
                &h.push_and_pull(input).unwrap(),
                &expected,
                &format!("{width}x{height} {mask} {rectangle}"),
            );
        }
    }
    assert_eq!((warning_on(&bus), error_on(&bus)), (None, None));
}
