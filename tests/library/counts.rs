// SPDX-License-Identifier: MPL-2.0
//! How many regions come for a wanted number of superpixels.

use crate::pictures::{Buffer, Picture};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{FrameInfo, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;

/// Regions of the first frame, and of the last of so many equal ones, each going on from the one before.
fn counts(buffer: &Buffer, superpixels: u32, frames: usize) -> [u32; 2] {
    let params = Params { superpixels, temporal: frames > 1, ..Params::default() };
    let plan = Plan::new(&params, buffer.info).unwrap();
    let mut engine = Engine::new(Cpu::new(2).unwrap(), plan).unwrap();
    let g = buffer.info.geometry;
    let mut map = vec![0; g.pixels()];
    let mut count = || {
        let mut labels = Labels::new(g, &mut map, g.width() as usize).unwrap();
        engine.segment(&buffer.frame(), &mut labels, Outputs::default()).unwrap().count
    };
    let counts: Vec<u32> = (0..frames).map(|_| count()).collect();
    [counts[0], counts[frames - 1]]
}

fn info(w: u32, h: u32) -> FrameInfo {
    FrameInfo::new(Geometry::new(w, h).unwrap(), PixelFormat::Rgb)
}

/// A shade from top to bottom, as smooth as pictures come, so that regions end and none are added.
fn gradient(w: u32, h: u32) -> Buffer {
    let mut buffer = Buffer::new(info(w, h), Picture::Flat, 0, 0);
    let stride = buffer.strides[0];
    for (y, row) in buffer.planes[0].chunks_mut(stride).enumerate() {
        row.fill((255 * y / h as usize) as u8);
    }
    buffer
}

#[test]
fn smooth_pictures_have_seven_tenths_of_the_number_at_least() {
    for (w, h, wanted) in
        [(28, 28, 75), (32, 32, 1000), (8, 8, 50), (224, 224, 600), (320, 180, 2300), (224, 224, 2000)]
    {
        let buffer = gradient(w, h);
        let ([alone, _], [_, later]) = (counts(&buffer, wanted, 1), counts(&buffer, wanted, 15));
        println!("{w}x{h}, {wanted} wanted: {alone} alone, {later} in the 15th frame");
        assert!(
            10 * alone >= 7 * wanted && 10 * later >= 7 * wanted,
            "{w}x{h}: {alone} and {later} of {wanted}"
        );
    }
}

/// The drawn picture is more ragged than photographs: it has more fragments than the eighth that is reckoned with.
#[test]
fn ragged_pictures_have_less_than_twice_the_number() {
    for (w, h) in [(320, 180), (481, 321), (640, 480)] {
        let buffer = Buffer::new(info(w, h), Picture::Natural, 7, 0);
        for wanted in [100, 200, 400] {
            let [count, _] = counts(&buffer, wanted, 1);
            println!("{w}x{h}, {wanted} wanted: {count}");
            assert!(10 * count >= 8 * wanted && count < 2 * wanted, "{w}x{h}: {count} of {wanted}");
        }
    }
}
