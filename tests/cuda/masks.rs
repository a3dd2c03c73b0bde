// SPDX-License-Identifier: MPL-2.0
//! Frames with masks on the CUDA backend against the CPU backend: equality of every output, for stills and clips.

use crate::both::{EVERYTHING, compare};
use crate::device::{device, short};
use crate::pictures::{Buffer, PICTURES, Picture, SHAPES, Shape, clip, hash};
use gstsuperpixel::algo::{AlgorithmParams, lsc, quickshift, slic};
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::cuda::Staging;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::{FrameInfo, Geometry, PixelFormat};
use gstsuperpixel::params::{Boundaries, Drawing, Fill, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::{merge, refine};

fn info(w: u32, h: u32, format: PixelFormat) -> FrameInfo {
    FrameInfo::new(Geometry::new(w, h).unwrap(), format)
}

const DRAWINGS: [Drawing; 3] = [
    Drawing { fill: Fill::MeanColor, boundaries: Some(Boundaries { color: 0x8040_ff20, width: 2 }) },
    Drawing { fill: Fill::Labels, boundaries: None },
    Drawing { fill: Fill::None, boundaries: Some(Boundaries { color: 0xffff_ff00, width: 1 }) },
];

/// Any parameters from a number.
fn drawn_params(seed: u64) -> Params {
    let pick = |salt: u64, n: u64| hash(seed.wrapping_mul(43).wrapping_add(salt)) % n;
    let slic = slic::Params {
        iterations: 1 + pick(1, 4) as u32,
        compactness: [1.0, 10.0, 30.0, 700.0][pick(2, 4) as usize],
        color_space: ColorSpace::ALL[pick(3, 4) as usize],
        adaptive_compactness: pick(4, 3) == 0,
    };
    let small = quickshift::Params { sigma: 1.0, tau: 4.0, ..Default::default() };
    let merge = merge::Params { ratio: [0.0, 0.0, 2.0][pick(5, 3) as usize], ..Default::default() };
    let refine = refine::Params { sweeps: [0, 0, 2][pick(12, 3) as usize], ..Default::default() };
    Params {
        superpixel_size: 4 + pick(6, 30) as u32,
        superpixels: [0, 0, 0, 40, u32::MAX][pick(7, 5) as usize],
        holds_count: pick(13, 2) == 0,
        connectivity: pick(8, 4) != 0,
        min_region: [0.0, 0.25, 0.25, 1.0][pick(9, 4) as usize],
        merge,
        refine,
        temporal_inertia: [0.0, 0.2, 0.9][pick(10, 3) as usize],
        algorithm: match pick(11, 5) {
            0 | 1 => AlgorithmParams::Slic(slic),
            2 | 3 => AlgorithmParams::Lsc(lsc::Params { iterations: slic.iterations, ratio: 0.1 }),
            _ => AlgorithmParams::QuickShift(small),
        },
        masked: true,
        stretch_gray16: false,
        ..Params::default()
    }
}

#[test]
fn masked_frames_match_cpu() {
    let Some(cuda) = device("masked_frames_match_cpu") else { return };
    for seed in 0..if short() { 90 } else { 600 } {
        let pick = |salt: u64, n: u64| hash(seed * 91 + salt) % n;
        let side = if short() { 90 } else { 300 };
        let info =
            info(1 + pick(1, side) as u32, 1 + pick(2, side) as u32, PixelFormat::ALL[pick(3, 14) as usize]);
        let buffer = |seed: u64| Buffer::new(info, PICTURES[pick(4, 6) as usize], seed, pick(5, 9) as usize);
        let shape = SHAPES[seed as usize % SHAPES.len()];
        let clip = [
            buffer(1).with_mask(shape, seed, [pick(6, 9) as i32, 0]),
            buffer(2),
            buffer(3).with_mask(SHAPES[pick(7, 9) as usize], seed, [0, 0]),
        ];
        compare(
            &cuda,
            &drawn_params(seed),
            &clip,
            &DRAWINGS[pick(8, 3) as usize],
            &format!("{seed} {shape:?}"),
        );
    }
}

#[test]
fn masked_clips_match_cpu() {
    let Some(cuda) = device("masked_clips_match_cpu") else { return };
    for seed in 0..if short() { 36 } else { 200 } {
        let pick = |salt: u64, n: u64| hash(seed * 97 + salt) % n;
        let side = if short() { 100 } else { 300 };
        let g = Geometry::new(1 + pick(1, side) as u32, 1 + pick(2, side) as u32).unwrap();
        let motion = [pick(3, 9) as i32 - 4, pick(4, 9) as i32 - 4];
        let shape = SHAPES[seed as usize % SHAPES.len()];
        let frames = clip(g, PixelFormat::Rgb, seed, 6, motion, (pick(5, 2) == 0).then_some(4));
        let mask = |(i, buffer): (usize, Buffer)| match i {
            2 => buffer,
            5 => buffer.with_mask(SHAPES[pick(6, 9) as usize], seed, [0, 0]),
            _ => buffer.with_mask(shape, seed, motion.map(|v| (v - 1) * i as i32)),
        };
        let frames: Vec<_> = frames.into_iter().enumerate().map(mask).collect();
        let params = Params { temporal: true, ..drawn_params(seed) };
        compare(&cuda, &params, &frames, &DRAWINGS[1], &format!("clip {seed} {shape:?}"));
    }
}

#[test]
fn islands_beyond_the_last_label_match_cpu() {
    let Some(cuda) = device("islands_beyond_the_last_label_match_cpu") else { return };
    let islands = || Buffer::new(info(390, 380, PixelFormat::Rgb), Picture::Natural, 3, 0);
    let clip = [0, 1].map(|seed| islands().with_mask(Shape::Checker, seed, [0, 0]));
    for (superpixel_size, temporal) in [(4, false), (16, true)] {
        let params = Params { superpixel_size, temporal, masked: true, ..Params::default() };
        compare(&cuda, &params, &clip, &DRAWINGS[0], "islands");
    }
}

#[test]
fn masks_without_a_plan_for_them_are_refused() {
    let Some(cuda) = device("masks_without_a_plan_for_them_are_refused") else { return };
    let buffer = Buffer::new(info(40, 30, PixelFormat::Rgb), Picture::Natural, 3, 0);
    let plan = Plan::new(&Params::default(), buffer.info).unwrap();
    let mut engine = Engine::new(cuda.clone(), plan).unwrap();
    let mut staging = Staging::new(&cuda, buffer.info).unwrap();
    let buffer = buffer.with_mask(Shape::Disk, 0, [0, 0]);
    let frame = staging.upload(&buffer.frame()).unwrap();
    assert_eq!(engine.segment(&frame, &mut None, EVERYTHING).unwrap_err(), Error::Mask);
    // SAFETY: nothing is done with the frame but to refuse it.
    assert!(matches!(unsafe { frame.with_mask(0, 39) }, Err(Error::Stride { what: "mask", .. })));
}
