// SPDX-License-Identifier: MPL-2.0
//! How many regions come for a wanted number of superpixels, and where that number is held.

use crate::pictures::{Buffer, Picture};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{FrameInfo, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::{hierarchy, merge};

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

/// Labels of a frame, and their number.
fn segment(buffer: &Buffer, params: &Params) -> (Vec<u16>, u32) {
    let g = buffer.info.geometry;
    let mut engine = Engine::new(Cpu::new(1).unwrap(), Plan::new(params, buffer.info).unwrap()).unwrap();
    let mut map = vec![0; g.pixels()];
    let mut labels = Labels::new(g, &mut map, g.width() as usize).unwrap();
    let count = engine.segment(&buffer.frame(), &mut labels, Outputs::default()).unwrap().count;
    (map, count)
}

fn step(buffer: &Buffer, params: &Params) -> u32 {
    Plan::new(params, buffer.info).unwrap().grid().step()
}

#[test]
fn a_number_that_is_held_is_exceeded_by_a_tenth_at_most() {
    for (w, h) in [(24, 24), (28, 28), (32, 32), (61, 47), (160, 120), (481, 321)] {
        for (picture, seed) in [(Picture::Natural, 7), (Picture::Natural, 8), (Picture::Noise, 1)] {
            let buffer = Buffer::new(info(w, h), picture, seed, 0);
            for superpixels in [1, 9, 10, 25, 50, 75, 100, 400].into_iter().filter(|n| n * 8 < w * h) {
                let params = Params { superpixels, holds_count: true, ..Params::default() };
                let (labels, count) = segment(&buffer, &params);
                let most = superpixels + superpixels / 10;
                assert!(count <= most, "{w}x{h}: {count} of {superpixels}");
                // The same grid without the bound.
                let grid = Params { superpixel_size: step(&buffer, &params).max(4), ..Params::default() };
                let (plain, all) = segment(&buffer, &grid);
                if step(&buffer, &grid) == step(&buffer, &params) {
                    assert!(count == all.min(most), "{w}x{h}: {count} of {all} and {superpixels}");
                    assert!(all > most || labels == plain, "{w}x{h}: {superpixels}");
                }
            }
        }
    }
}

#[test]
fn smooth_pictures_have_seven_eighths_of_a_number_that_is_held() {
    for (w, h) in [(24, 24), (28, 28), (32, 32), (224, 224), (320, 180)] {
        let buffer = gradient(w, h);
        for superpixels in [20, 30, 50, 60, 75, 100, 150].into_iter().filter(|n| n * 7 < w * h) {
            let params = Params { superpixels, holds_count: true, ..Params::default() };
            let (_, count) = segment(&buffer, &params);
            assert!(8 * count >= 7 * superpixels, "{w}x{h}: {count} of {superpixels}");
        }
    }
}

#[test]
fn a_number_is_held_only_where_it_can_be() {
    let held = |params: &Params| Params { superpixels: 30, holds_count: true, ..params.clone() };
    let plain = |params: &Params| Params { superpixels: 30, ..params.clone() };
    let (small, large) = (
        Buffer::new(info(40, 23), Picture::Natural, 3, 0),
        Buffer::new(info(99, 77), Picture::Natural, 3, 0),
    );
    let merge = merge::Params { ratio: 2.0, ..Default::default() };
    let others = [
        Params { temporal: true, ..Params::default() },
        Params { connectivity: false, ..Params::default() },
        Params { merge, ..Params::default() },
    ];
    for (buffer, params) in others.iter().map(|params| (&large, params)).chain([(&small, &Params::default())])
    {
        assert!(segment(buffer, &held(params)) == segment(buffer, &plain(params)), "{params:?}");
    }
    // An exact number stands.
    let exact =
        Params { hierarchy: hierarchy::Params { regions: 12, ..Default::default() }, ..Params::default() };
    assert_eq!(segment(&large, &held(&exact)).1, 12);
}
