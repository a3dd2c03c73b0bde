// SPDX-License-Identifier: MPL-2.0
//! Exact numbers of regions on the CUDA backend against the CPU backend: equality of every output, for stills, masks and clips.
//!
//! Without a device each test prints that it was skipped; `SUPERPIXEL_REQUIRE_CUDA=1` makes that a failure.
//! `SUPERPIXEL_SHORT=1` takes the small cases only.

use crate::both::{Both, compare};
use crate::changes;
use crate::device::{device, short};
use crate::pictures::{Buffer, PICTURES, Picture, SHAPES, clip, hash};
use gstsuperpixel::algo::{AlgorithmParams, lsc, quickshift, slic};
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::image::{FrameInfo, Geometry, PixelFormat};
use gstsuperpixel::params::{Boundaries, Drawing, Fill, Params};
use gstsuperpixel::post::{hierarchy, merge, refine};
use gstsuperpixel::regions::MergeStep;

const DRAWINGS: [Drawing; 2] = [
    Drawing { fill: Fill::MeanColor, boundaries: Some(Boundaries { color: 0x8040_ff20, width: 2 }) },
    Drawing { fill: Fill::Labels, boundaries: None },
];

fn info(w: u32, h: u32, format: PixelFormat) -> FrameInfo {
    FrameInfo::new(Geometry::new(w, h).unwrap(), format)
}

fn with_regions(regions: u32, params: Params) -> Params {
    Params { hierarchy: hierarchy::Params { regions, ..params.hierarchy }, ..params }
}

/// Any parameters from a number, with numbers of regions from one to more than there are superpixels.
fn drawn_params(seed: u64) -> Params {
    let pick = |salt: u64, n: u64| hash(seed.wrapping_mul(47).wrapping_add(salt)) % n;
    let slic = slic::Params {
        iterations: 1 + pick(1, 4) as u32,
        compactness: [0.1, 10.0, 10.0, 700.0][pick(2, 4) as usize],
        color_space: ColorSpace::ALL[pick(3, 4) as usize],
        adaptive_compactness: pick(4, 3) == 0,
    };
    let small = quickshift::Params { sigma: 1.0, tau: 4.0, ..Default::default() };
    Params {
        superpixel_size: 4 + pick(6, 16) as u32,
        superpixels: [0, 0, 40, 900, u32::MAX][pick(7, 5) as usize],
        holds_count: pick(18, 2) == 0,
        connectivity: pick(8, 5) != 0,
        min_region: [0.0, 0.25, 0.25, 1.0][pick(9, 4) as usize],
        hierarchy: hierarchy::Params {
            regions: [1, 2, 1 + pick(12, 20) as u32, 1 + pick(13, 300) as u32, 65_535, 0]
                [pick(14, 6) as usize],
            compactness: [0.0, 4.0, 8.0, 100.0][pick(15, 4) as usize],
            levels: pick(17, 3) == 0,
        },
        refine: refine::Params { sweeps: [0, 0, 2][pick(16, 3) as usize], ..Default::default() },
        temporal_inertia: [0.0, 0.2, 0.9][pick(10, 3) as usize],
        algorithm: match pick(11, 5) {
            0 | 1 => AlgorithmParams::Slic(slic),
            2 | 3 => AlgorithmParams::Lsc(lsc::Params { iterations: slic.iterations, ratio: 0.1 }),
            _ => AlgorithmParams::QuickShift(small),
        },
        ..Params::default()
    }
}

#[test]
fn drawn_numbers_of_regions_match_cpu() {
    let Some(cuda) = device("drawn_numbers_of_regions_match_cpu") else { return };
    for seed in 0..if short() { 60 } else { 600 } {
        let pick = |salt: u64, n: u64| hash(seed * 101 + salt) % n;
        let side = if short() { 110 } else { 400 };
        let format = PixelFormat::ALL[pick(3, PixelFormat::ALL.len() as u64) as usize];
        let info = info(1 + pick(1, side) as u32, 1 + pick(2, side) as u32, format);
        let buffer = |seed: u64| Buffer::new(info, PICTURES[pick(4, 6) as usize], seed, pick(5, 9) as usize);
        let masked = pick(6, 3) == 0;
        let shape = SHAPES[seed as usize % SHAPES.len()];
        let frames = match masked {
            true => vec![buffer(1).with_mask(shape, seed, [0; 2]), buffer(2)],
            false => vec![buffer(1)],
        };
        let params = Params { masked, ..drawn_params(seed) };
        compare(&cuda, &params, &frames, &DRAWINGS[pick(7, 2) as usize], &format!("seed {seed}"));
    }
}

/// Every level of one frame: flat pictures, whose costs are equal, noise, and those of one row or column.
#[test]
fn levels_match_cpu() {
    let Some(cuda) = device("levels_match_cpu") else { return };
    let sizes = if short() { vec![(120, 90), (1, 97)] } else { vec![(640, 480), (1, 900), (1920, 1080)] };
    for (w, h) in sizes {
        for picture in [Picture::Natural, Picture::Flat, Picture::Noise, Picture::Halves] {
            let frame = [Buffer::new(info(w, h, PixelFormat::Rgb), picture, 3, 0)];
            let one = with_regions(1, Params { superpixels: 4000, ..Params::default() });
            let mut both = Both::new(&cuda, &one, frame[0].info, &format!("{picture:?}"));
            for regions in [1, 2, 9, 30, 77, 200, 1000, 65_535] {
                both.change(&with_regions(regions, one.clone()));
                both.compare(&frame[0], &DRAWINGS[0]);
            }
        }
    }
    if short() {
        return;
    }
    // As many superpixels as labels can name.
    let slic = AlgorithmParams::Slic(slic::Params { compactness: 0.1, ..Default::default() });
    let params = Params { superpixel_size: 4, min_region: 0.0, algorithm: slic, ..Params::default() };
    let frame = [Buffer::new(info(1024, 1024, PixelFormat::Rgb), Picture::Noise, 5, 0)];
    for regions in [1, 5000, 30_000] {
        compare(&cuda, &with_regions(regions, params.clone()), &frame, &DRAWINGS[0], "many");
    }
    for (w, h) in [(3840, 2160), (7680, 4320)] {
        let frame = [Buffer::new(info(w, h, PixelFormat::Nv12), Picture::Natural, 2, 0)];
        for regions in [50, 2000, 20_000] {
            compare(&cuda, &with_regions(regions, Params::default()), &frame, &DRAWINGS[0], "large");
        }
    }
}

fn with_list(regions: u32, params: Params) -> Params {
    let own = hierarchy::Params { levels: true, ..params.hierarchy.clone() };
    with_regions(regions, Params { hierarchy: own, ..params })
}

/// Lists down to one region: of equal costs, of noise, of one row or column, and of a single superpixel.
#[test]
fn lists_match_cpu() {
    let Some(cuda) = device("lists_match_cpu") else { return };
    let sizes = match short() {
        true => vec![(1, 1), (3, 2), (1, 97), (97, 1), (120, 90), (131, 67)],
        false => vec![(1, 1), (3, 2), (1, 900), (900, 1), (640, 480), (1921, 1079)],
    };
    for (w, h) in sizes {
        for picture in [Picture::Natural, Picture::Flat, Picture::Noise, Picture::Halves] {
            let frame = Buffer::new(info(w, h, PixelFormat::Rgb), picture, 3, 0);
            let params = Params { superpixels: 3000, ..Params::default() };
            let what = format!("{picture:?}");
            let mut both = Both::new(&cuda, &with_list(0, params.clone()), frame.info, &what);
            both.compare(&frame, &DRAWINGS[0]);
            let all = both.cuda.regions().clone();
            assert_eq!(all.merges.len(), all.count as usize - 1, "{what}");
            let mut both = Both::new(&cuda, &with_list(1, params.clone()), frame.info, &what);
            for regions in [1, 2, 8, 60, 700, 65_535] {
                both.change(&with_list(regions, params.clone()));
                both.compare(&frame, &DRAWINGS[0]);
                let left = both.cuda.regions();
                assert_eq!(left.merges.len(), left.count as usize - 1, "{what}: {regions}");
                // Merges made first are the beginning of the same list.
                let heights = |merges: &[MergeStep]| merges.iter().map(|m| m.height).collect::<Vec<_>>();
                let rest = &all.merges[all.merges.len() - left.merges.len()..];
                assert_eq!(heights(&left.merges), heights(rest), "{what}: {regions}");
            }
        }
    }
}

/// The list comes and goes while identities go on, with whatever is before it and behind.
#[test]
fn a_fast_pan_over_flat_ground_matches_cpu() {
    let Some(cuda) = device("a_fast_pan_over_flat_ground_matches_cpu") else { return };
    let geometry = Geometry::new(300, 220).unwrap();
    let mut clip = clip(geometry, PixelFormat::Rgb, 9, 7, [26, 3], Some(5));
    // So little contrast that it matters by how much pixels have to differ for their superpixel to move.
    clip.iter_mut().flat_map(|buffer| &mut buffer.planes[0]).for_each(|code| *code /= 3);
    for regions in [25, 120] {
        let params = with_regions(regions, Params { temporal: true, superpixels: 600, ..Params::default() });
        let mut both = Both::new(&cuda, &params, clip[0].info, &format!("fast pan, {regions} regions"));
        for (i, buffer) in clip.iter().enumerate() {
            both.compare(buffer, &DRAWINGS[i % 2]);
        }
    }
}

#[test]
fn lists_of_clips_match_cpu() {
    let Some(cuda) = device("lists_of_clips_match_cpu") else { return };
    let off = |params: &Params| Params {
        hierarchy: hierarchy::Params { levels: false, ..params.hierarchy.clone() },
        ..params.clone()
    };
    for seed in 0..if short() { 24 } else { 100 } {
        let pick = |salt: u64, n: u64| hash(seed * 83 + salt) % n;
        let side = if short() { 120 } else { 400 };
        let geometry = Geometry::new(1 + pick(1, side) as u32, 1 + pick(2, side) as u32).unwrap();
        let clip = clip(geometry, PixelFormat::Rgb, seed, 6, [3, -2], (pick(3, 2) == 0).then_some(3));
        let behind_merge = pick(4, 3) == 0;
        let ratio = if behind_merge { 2.0 } else { 0.0 };
        let regions = if behind_merge || pick(5, 2) == 0 { 0 } else { 1 + pick(6, 60) as u32 };
        let merge = merge::Params { ratio, ..Default::default() };
        let temporal = pick(7, 3) > 0;
        let base = Params { temporal, superpixels: 300, merge, ..drawn_params(seed) };
        let listed = with_list(regions, base);
        let mut both = Both::new(&cuda, &off(&listed), clip[0].info, &format!("list of clip {seed}"));
        for (i, buffer) in clip.iter().enumerate() {
            match i {
                1 | 4 => both.change(&listed),
                3 => both.change(&off(&listed)),
                _ => {}
            }
            both.compare(buffer, &DRAWINGS[i % 2]);
            assert!([1, 2, 4, 5].contains(&i) || both.cuda.regions().merges.is_empty(), "{seed}: frame {i}");
        }
    }
}

/// Lists of refined maps: stills, masks and clips, with a number of regions, behind stage `merge` and of superpixels, connected or
/// not; the list comes and goes.
#[test]
fn lists_of_refined_maps_match_cpu() {
    let Some(cuda) = device("lists_of_refined_maps_match_cpu") else { return };
    let mut listed_frames = 0;
    for seed in 0..if short() { 32 } else { 150 } {
        let pick = |salt: u64, n: u64| hash(seed * 59 + salt) % n;
        let side = if short() { 110 } else { 400 };
        let geometry = Geometry::new(1 + pick(1, side) as u32, 1 + pick(2, side) as u32).unwrap();
        let masked = pick(3, 3) == 0;
        let mut frames = clip(geometry, PixelFormat::Rgb, seed, 5, [2, -1], None);
        if masked {
            let shape = SHAPES[seed as usize % SHAPES.len()];
            frames = frames.into_iter().map(|frame| frame.with_mask(shape, seed, [0; 2])).collect();
        }
        let ratio = if pick(4, 4) == 0 { 2.0 } else { 0.0 };
        let regions = if ratio > 0.0 || pick(5, 2) == 0 { 0 } else { 1 + pick(6, 60) as u32 };
        let refine = refine::Params { sweeps: 1 + pick(7, 3) as u32, ..Default::default() };
        let merge = merge::Params { ratio, ..Default::default() };
        let params = Params {
            masked,
            merge,
            refine,
            superpixels: 300,
            temporal: pick(8, 2) == 0,
            ..drawn_params(seed)
        };
        let listed = with_list(regions, params);
        let off = hierarchy::Params { levels: false, ..listed.hierarchy.clone() };
        let off = Params { hierarchy: off, ..listed.clone() };
        let mut both = Both::new(&cuda, &listed, frames[0].info, &format!("refined list {seed}"));
        for (i, frame) in frames.iter().enumerate() {
            match i {
                2 => both.change(&off),
                3 => both.change(&listed),
                _ => {}
            }
            both.compare(frame, &DRAWINGS[i % 2]);
            assert!(i != 2 || both.cuda.regions().merges.is_empty(), "{seed}");
            listed_frames += u32::from(!both.cuda.regions().merges.is_empty());
        }
    }
    assert!(listed_frames > 60, "{listed_frames} frames with a list");
}

/// A region that touches more others than rounds of pairs could ever take up: they are opened.
#[test]
fn islands_match_cpu() {
    let Some(cuda) = device("islands_match_cpu") else { return };
    let (w, h) = if short() { (96, 96) } else { (384, 384) };
    let mut buffer = Buffer::new(info(w, h, PixelFormat::Rgb), Picture::Flat, 0, 0);
    for (i, pixel) in buffer.planes[0].chunks_exact_mut(3).enumerate() {
        let (x, y) = (i % w as usize, i / w as usize);
        let inside = x % 6 > 2 && y % 6 > 2;
        let shade = (hash((x / 6 + 1000 * (y / 6)) as u64) % 90) as u8;
        pixel.copy_from_slice(&if inside { [160 + shade, shade, 60] } else { [30, 60, 90] });
    }
    let own = quickshift::Params { sigma: 1.0, tau: 3.0, ..Default::default() };
    let algorithm = AlgorithmParams::QuickShift(own);
    for (connectivity, regions) in [(true, 1), (true, 40), (false, 3)] {
        let params =
            Params { connectivity, min_region: 0.0, algorithm: algorithm.clone(), ..Params::default() };
        for params in [with_list(regions, params.clone()), with_regions(regions, params)] {
            compare(&cuda, &params, std::slice::from_ref(&buffer), &DRAWINGS[0], "islands");
        }
    }
}

/// Merged regions have names of their own; the number of regions changes while superpixels go on.
#[test]
fn clips_match_cpu() {
    let Some(cuda) = device("clips_match_cpu") else { return };
    for seed in 0..if short() { 16 } else { 100 } {
        let pick = |salt: u64, n: u64| hash(seed * 61 + salt) % n;
        let side = if short() { 120 } else { 400 };
        let geometry = Geometry::new(1 + pick(1, side) as u32, 1 + pick(2, side) as u32).unwrap();
        let motion = [pick(3, 9) as i32 - 4, pick(4, 9) as i32 - 4];
        let clip = clip(geometry, PixelFormat::Rgb, seed, 7, motion, (pick(5, 2) == 0).then_some(4));
        // Unless it is set, the number of superpixels follows that of regions.
        let drawn = drawn_params(seed);
        let params = with_regions(
            drawn.hierarchy.regions.max(1),
            Params { temporal: true, superpixels: 300, ..drawn },
        );
        let mut both = Both::new(&cuda, &params, clip[0].info, &format!("clip {seed}"));
        for (i, buffer) in clip.iter().enumerate() {
            if i == 2 && pick(6, 3) == 0 {
                both.cpu.reset();
                both.cuda.reset();
            }
            if i == 5 {
                both.change(&with_regions(1 + pick(7, 60) as u32, params.clone()));
            }
            both.compare(buffer, &DRAWINGS[i % 2]);
        }
    }
}

/// A number of regions comes and goes, and with it the list, `merge` and tables.
#[test]
fn numbers_that_come_and_go_match_cpu() {
    let Some(cuda) = device("numbers_that_come_and_go_match_cpu") else { return };
    let frames = changes::frames();
    for (number, case) in changes::cases().into_iter().enumerate() {
        for (mode, outputs) in changes::MODES.into_iter().enumerate() {
            if short() && mode != number % changes::MODES.len() {
                continue;
            }
            let what = format!("{}, outputs {mode}", case.what);
            let mut both = Both::new(&cuda, &case.params[0], frames[0].info, &what);
            let mut identities = changes::Identities::default();
            for (i, (buffer, params)) in frames.iter().zip(&case.params).enumerate() {
                let what = format!("{what}, frame {i}");
                let is_new = both.change_or_renew(params) || i == 0;
                assert_eq!(is_new, changes::is_anew(&case.params, i), "{what}");
                let first = is_new.then(|| both.cuda.next_id().unwrap());
                let map = both.compare_for(buffer, outputs(i), &DRAWINGS[1]);
                let regions = both.cuda.regions();
                changes::check(&map, regions, both.cuda.plan(), params, buffer, outputs(i), &what);
                identities.check(regions, first, &what);
            }
        }
    }
}
