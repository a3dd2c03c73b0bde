// SPDX-License-Identifier: MPL-2.0
//! Gray of 16 bits as thermal cameras give it: a small part of all codes, which the element finds by itself.

use crate::common;
use crate::common::{caps, harness, info};
use gst::prelude::*;
use gstsuperpixel::meta::SuperpixelMeta;

const WIDTH: usize = 320;
const HEIGHT: usize = 240;

/// Three warm bodies before a wall, in hundredths of a kelvin, and which body each pixel is of.
fn thermal(offset: f64) -> (Vec<u16>, Vec<usize>) {
    let bodies = [(80, 120, 30, 70, 700.0), (200, 90, 40, 25, 400.0), (250, 190, 25, 25, 1000.0)];
    let mut seed = 0x2545_f491u32;
    let mut uniform = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(seed >> 8) / f64::from(1 << 24) - 0.5
    };
    (0..WIDTH * HEIGHT)
        .map(|i| {
            let (x, y) = ((i % WIDTH) as f64, (i / WIDTH) as f64);
            let inside = |&(_, &(cx, cy, rx, ry, _)): &(usize, &(i32, i32, i32, i32, f64))| {
                ((x - f64::from(cx)) / f64::from(rx)).powi(2) + ((y - f64::from(cy)) / f64::from(ry)).powi(2)
                    < 1.0
            };
            let body = bodies.iter().enumerate().rfind(inside);
            let warm = body.map_or(29_300.0 + 300.0 * x / WIDTH as f64, |(_, body)| 29_500.0 + body.4);
            // The sum of four is nearly normal, with a deviation of 5.
            let noise = (0..4).map(|_| uniform()).sum::<f64>() * 5.0 * 3f64.sqrt();
            ((warm + offset + noise) as u16, body.map_or(0, |(i, _)| i + 1))
        })
        .unzip()
}

fn buffer(codes: &[u16], format: &str) -> gst::Buffer {
    let bytes = |code: &u16| if format == "GRAY16_LE" { code.to_le_bytes() } else { code.to_be_bytes() };
    gst::Buffer::from_slice(codes.iter().flat_map(bytes).collect::<Vec<u8>>())
}

/// Part of the pixels that are of the body that most pixels of their region are of: achievable segmentation accuracy.
fn accuracy(labels: &[u16], truth: &[usize]) -> f64 {
    let mut counts = vec![[0usize; 4]; 1 + usize::from(*labels.iter().max().unwrap())];
    labels.iter().zip(truth).for_each(|(&label, &body)| counts[usize::from(label)][body] += 1);
    counts.iter().map(|bodies| *bodies.iter().max().unwrap()).sum::<usize>() as f64 / truth.len() as f64
}

fn element(properties: &[(&str, &str)]) -> gst::Element {
    common::init();
    let element = gst::ElementFactory::make("superpixel").build().unwrap();
    for (name, value) in
        [("backend", "cpu"), ("superpixels", "200"), ("overlay", "none")].iter().chain(properties)
    {
        element.set_property_from_str(name, value);
    }
    element
}

fn labels(h: &mut gst_check::Harness, codes: &[u16], format: &str) -> Vec<u16> {
    let output = h.push_and_pull(buffer(codes, format)).unwrap();
    let meta = SuperpixelMeta::from_buffer(&output).expect("meta");
    meta.labels().unwrap().as_slice().to_vec()
}

#[test]
fn a_thermal_picture_is_segmented_as_if_it_were_stretched() {
    let (codes, truth) = thermal(0.0);
    let mut maps = Vec::new();
    for format in ["GRAY16_LE", "GRAY16_BE"] {
        for (stretch, temporal) in [("true", "false"), ("true", "true"), ("false", "false")] {
            let element = element(&[("stretch-gray16", stretch), ("temporal", temporal)]);
            let (mut h, _bus) = harness(&element);
            h.set_src_caps(caps(format, WIDTH as u32, HEIGHT as u32));
            let map = labels(&mut h, &codes, format);
            let accuracy = accuracy(&map, &truth);
            println!("{format} stretch={stretch} temporal={temporal}: {accuracy:.4}");
            assert_eq!(accuracy >= 0.995, stretch == "true", "{format} {stretch}: {accuracy}");
            maps.push(map);
        }
    }
    assert!(maps[..3] == maps[3..], "the order of bytes changes results");
}

/// Noise moves neither the range nor therefore the colors of what does not move; a warmer scene does at once.
#[test]
fn a_range_stays_until_the_scene_leaves_it() {
    let element = element(&[]);
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("GRAY16_LE", WIDTH as u32, HEIGHT as u32));
    for offset in [0.0, 20.0, -20.0, 3000.0, 3000.0, -9000.0] {
        let (codes, truth) = thermal(offset);
        let accuracy = accuracy(&labels(&mut h, &codes, "GRAY16_LE"), &truth);
        assert!(accuracy >= 0.99, "{offset}: {accuracy}");
    }
}

/// Drawing uses the frame's own codes.
#[test]
fn means_are_drawn_in_the_codes_of_the_frame() {
    let (codes, _) = thermal(0.0);
    let element = element(&[("overlay", "mean-color")]);
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("GRAY16_LE", WIDTH as u32, HEIGHT as u32));
    let output = h.push_and_pull(buffer(&codes, "GRAY16_LE")).unwrap();
    let bytes = common::bytes(&output);
    let drawn: Vec<u16> = bytes.as_chunks().0.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
    let sum = |codes: &[u16]| codes.iter().map(|code| f64::from(*code)).sum::<f64>() / codes.len() as f64;
    assert!((sum(&drawn) - sum(&codes)).abs() < 1.0);
    assert!(drawn.iter().all(|code| (29_200..30_600).contains(code)));
    assert_eq!(info("GRAY16_LE", 4, 4).n_planes(), 1);
}
