// SPDX-License-Identifier: MPL-2.0
//! Frames with priors on the CUDA backend against the CPU backend: equality of every output, for stills and clips.

use crate::both::{Both, compare};
use crate::device::{device, short};
use crate::pictures::areas::Areas;
use crate::pictures::{Buffer, PICTURES, Picture, SHAPES, clip, hash};
use gstsuperpixel::algo::{AlgorithmParams, lsc, quickshift, slic};
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::cuda::{DeviceFrame, Staging};
use gstsuperpixel::engine::Engine;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::{FrameInfo, Geometry, PixelFormat};
use gstsuperpixel::params::{Drawing, Fill, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::{hierarchy, merge, refine};

const DRAWING: Drawing = Drawing { fill: Fill::Labels, boundaries: None };

fn info(w: u32, h: u32, format: PixelFormat) -> FrameInfo {
    FrameInfo::new(Geometry::new(w, h).unwrap(), format)
}

/// Any parameters from a number.
fn drawn_params(seed: u64) -> Params {
    let pick = |salt: u64, n: u64| hash(seed.wrapping_mul(67).wrapping_add(salt)) % n;
    let slic = slic::Params {
        iterations: 1 + pick(1, 4) as u32,
        compactness: [1.0, 10.0, 30.0, 700.0][pick(2, 4) as usize],
        color_space: ColorSpace::ALL[pick(3, 4) as usize],
        adaptive_compactness: pick(4, 3) == 0,
    };
    let small = quickshift::Params { sigma: 1.0, tau: 4.0, ..Default::default() };
    let merge = merge::Params {
        ratio: [0.0, 0.0, 2.0][pick(5, 3) as usize],
        passes: 1 + pick(21, 3) as u32,
        ..Default::default()
    };
    let exact = merge.ratio == 0.0 && pick(6, 2) == 0;
    Params {
        superpixel_size: 4 + pick(7, 14) as u32,
        superpixels: [0, 0, 8, 40, 900][pick(8, 5) as usize],
        holds_count: pick(9, 2) == 0,
        min_region: [0.0, 0.25, 0.25, 1.0, 4.0][pick(10, 5) as usize],
        merge,
        hierarchy: hierarchy::Params {
            regions: if exact {
                [1, 2, 1 + pick(11, 40) as u32, 1 + pick(11, 400) as u32][pick(12, 4) as usize]
            } else {
                0
            },
            levels: pick(13, 2) == 0,
            ..Default::default()
        },
        refine: refine::Params { sweeps: [0, 0, 2][pick(14, 3) as usize], ..Default::default() },
        algorithm: match pick(15, 5) {
            0 | 1 => AlgorithmParams::Slic(slic),
            2 | 3 => AlgorithmParams::Lsc(lsc::Params { iterations: slic.iterations, ratio: 0.1 }),
            _ => AlgorithmParams::QuickShift(small),
        },
        temporal_inertia: [0.0, 0.2, 0.9][pick(16, 3) as usize],
        masked: pick(17, 3) == 0,
        prior: true,
        prior_cuts: pick(18, 3) != 0,
        prior_price: [0.0, 0.0, 3.0, 20.0, 300.0][pick(19, 5) as usize],
        ..Params::default()
    }
}

#[test]
fn frames_with_priors_match_cpu() {
    let Some(cuda) = device("frames_with_priors_match_cpu") else { return };
    let wanted = std::env::var("SUPERPIXEL_PRIORS").ok().map(|text| text.parse().unwrap());
    for seed in 0..wanted.unwrap_or(if short() { 60 } else { 600 }) {
        let pick = |salt: u64, n: u64| hash(seed * 83 + salt) % n;
        let side = if short() { 100 } else { 300 };
        let info = info(1 + pick(1, side) as u32, 1 + pick(2, side) as u32, PixelFormat::Rgb);
        let params = drawn_params(seed);
        let buffer = |salt: u64| {
            let buffer = Buffer::new(info, PICTURES[pick(salt, 6) as usize], seed, 2);
            let shape = SHAPES[pick(salt + 1, SHAPES.len() as u64) as usize];
            if params.masked { buffer.with_mask(shape, seed, [0, 0]) } else { buffer }
        };
        let areas = |salt: u64| {
            let own = Geometry::new(1 + pick(salt, side) as u32, 1 + pick(salt + 1, side) as u32).unwrap();
            let size = if pick(salt + 2, 2) == 0 { info.geometry } else { own };
            Areas::drawn(size, 1 + pick(salt + 3, 60), seed + salt)
                .of_bits([8, 16, 32][pick(salt + 4, 3) as usize])
        };
        let frames = [buffer(10).with_prior(areas(20)), buffer(30), buffer(40).with_prior(areas(50))];
        compare(&cuda, &params, &frames, &DRAWING, &format!("seed {seed}"));
    }
}

#[test]
fn clips_with_priors_match_cpu() {
    let Some(cuda) = device("clips_with_priors_match_cpu") else { return };
    for seed in 0..if short() { 24 } else { 200 } {
        let pick = |salt: u64, n: u64| hash(seed * 89 + salt) % n;
        let side = if short() { 90 } else { 300 };
        let g = Geometry::new(1 + pick(1, side) as u32, 1 + pick(2, side) as u32).unwrap();
        let motion = [pick(3, 9) as i32 - 4, pick(4, 9) as i32 - 4];
        let frames = clip(g, PixelFormat::Rgb, seed, 7, motion, (pick(5, 2) == 0).then_some(4));
        // Areas stay for some frames, are absent in one and come back.
        let areas = |i: usize| Areas::drawn(g, 2 + pick(6, 9), seed + (i / 3) as u64);
        let frames: Vec<_> = frames
            .into_iter()
            .enumerate()
            .map(|(i, buffer)| if i == 2 { buffer } else { buffer.with_prior(areas(i)) })
            .collect();
        let params = Params { temporal: true, masked: false, ..drawn_params(seed) };
        compare(&cuda, &params, &frames, &DRAWING, &format!("clip {seed}"));
    }
}

/// An area in each pixel: more than labels, and numbers up to the highest.
#[test]
fn areas_of_one_pixel_match_cpu() {
    let Some(cuda) = device("areas_of_one_pixel_match_cpu") else { return };
    let sides = if short() { [(90, 70), (260, 256)] } else { [(300, 200), (390, 380)] };
    for (w, h) in sides {
        let buffer = Buffer::new(info(w, h, PixelFormat::Rgb), Picture::Natural, 4, 0);
        let samples = (0..w * h).map(|i| u32::MAX - i).collect();
        let buffer = buffer.with_prior(Areas::new(samples, Geometry::new(w, h).unwrap(), w as usize));
        for (prior_cuts, regions) in [(true, 0), (true, 40), (false, 0), (false, 40)] {
            let hierarchy = hierarchy::Params { regions, levels: true, ..Default::default() };
            let params = Params { prior: true, prior_cuts, hierarchy, ..Params::default() };
            // Too many regions to merge to a number.
            if w * h <= 65_535 || regions == 0 {
                compare(&cuda, &params, std::slice::from_ref(&buffer), &DRAWING, "pixels");
            }
        }
    }
}

/// More areas than regions, whose number is held: nothing joins across areas, but a list goes on there.
#[test]
fn a_held_number_within_areas_matches_cpu() {
    let Some(cuda) = device("a_held_number_within_areas_matches_cpu") else { return };
    let (w, h) = if short() { (160, 120) } else { (481, 321) };
    let buffer = Buffer::new(info(w, h, PixelFormat::Rgb), Picture::Natural, 4, 0);
    let frame = [buffer.with_prior(Areas::drawn(Geometry::new(w, h).unwrap(), 90, 5))];
    for levels in [false, true] {
        let hierarchy = hierarchy::Params { levels, ..Default::default() };
        let params =
            Params { prior: true, superpixels: 10, holds_count: true, hierarchy, ..Params::default() };
        compare(&cuda, &params, &frame, &DRAWING, "held");
    }
}

/// Numbers that a hash table of a tile's areas would take for one: the highest, which names no slot there, and one of the same slot.
#[test]
fn the_highest_area_matches_cpu() {
    let Some(cuda) = device("the_highest_area_matches_cpu") else { return };
    let slot = |area: u32| area.wrapping_mul(0x9e37_79b1) >> 7 & 2047;
    let like = (0..).find(|&area| slot(area) == slot(u32::MAX)).unwrap();
    let g = Geometry::new(64, 48).unwrap();
    let buffer = Buffer::new(info(64, 48, PixelFormat::Rgb), Picture::Flat, 4, 0);
    for order in [[u32::MAX, like], [like, u32::MAX]] {
        let samples = (0..64 * 48).map(|i| order[i % 64 / 5 % 2]).collect();
        let frame = buffer.clone().with_prior(Areas::new(samples, g, 64));
        let params = Params { prior: true, min_region: 0.0, ..Params::default() };
        compare(&cuda, &params, &[frame], &DRAWING, "highest");
    }
}

/// Numbers around that of areas, with more superpixels than the last rounds take and with fewer.
#[test]
fn levels_across_areas_match_cpu() {
    let Some(cuda) = device("levels_across_areas_match_cpu") else { return };
    let sizes = if short() { vec![(120, 90), (1, 97)] } else { vec![(640, 480), (1, 900), (1920, 1080)] };
    for (w, h) in sizes {
        for (picture, points) in [(Picture::Natural, 40), (Picture::Flat, 400), (Picture::Noise, 3)] {
            let g = Geometry::new(w, h).unwrap();
            let buffer = Buffer::new(info(w, h, PixelFormat::Rgb), picture, 3, 0);
            let frame = buffer.with_prior(Areas::drawn(g, points, 9));
            let with = |regions, levels| Params {
                prior: true,
                superpixels: 4000,
                hierarchy: hierarchy::Params { regions, levels, ..Default::default() },
                ..Params::default()
            };
            let mut both = Both::new(&cuda, &with(1, false), frame.info, &format!("{picture:?} {points}"));
            for (regions, levels) in
                [(1, false), (2, true), (9, false), (30, true), (77, false), (300, true), (3000, false)]
            {
                both.change(&with(regions, levels));
                both.compare(&frame, &DRAWING);
            }
        }
    }
}

#[test]
fn priors_without_a_plan_for_them_are_refused() {
    let Some(cuda) = device("priors_without_a_plan_for_them_are_refused") else { return };
    let buffer = Buffer::new(info(40, 30, PixelFormat::Rgb), Picture::Natural, 3, 0);
    let g = buffer.info.geometry;
    let plan = Plan::new(&Params::default(), buffer.info).unwrap();
    let mut engine = Engine::new(cuda.clone(), plan).unwrap();
    let mut stagings = [0, 1].map(|_| Staging::new(&cuda, buffer.info).unwrap());
    let frame = stagings[0].upload(&buffer.frame()).unwrap();
    // SAFETY: nothing is read where a call is refused.
    let with = |address, bytes, stride| unsafe { frame.with_prior(address, bytes, g, stride) };
    assert!(matches!(with(0x1000, 3, 40), Err(Error::Plane { .. })));
    assert!(matches!(with(0x1002, 4, 40), Err(Error::Plane { .. })));
    assert!(matches!(with(0x1000, 4, 39), Err(Error::Stride { what: "prior", .. })));
    let with_prior = with(0x1000, 4, 40).unwrap();
    assert_eq!(engine.segment(&with_prior, &mut None, Default::default()).unwrap_err(), Error::Prior);
    // Frames of a batch have priors of one kind.
    let other = with(0x1000, 2, 40).unwrap();
    assert!(matches!(DeviceFrame::of_batch(&[with_prior, other]), Err(Error::Batch(_))));
    assert!(DeviceFrame::of_batch(&[frame, with_prior]).is_ok());
}
