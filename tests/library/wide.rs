// SPDX-License-Identifier: MPL-2.0
//! Label maps of 32 bits on the CPU: equal to those of 16 where these have room, in windows of any size, and as promised where not.

use crate::oracle;
use crate::pictures::{Buffer, PICTURES, Picture, SHAPES, hash};
use gstsuperpixel::algo::{AlgorithmParams, slic};
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::{FrameInfo, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::{hierarchy, merge, refine};
use gstsuperpixel::wide;

fn info(width: u32, height: u32, format: PixelFormat) -> FrameInfo {
    FrameInfo::new(Geometry::new(width, height).unwrap(), format)
}

fn narrow(params: &Params, buffer: &Buffer) -> (Vec<u32>, u32) {
    let g = buffer.info.geometry;
    let mut engine = Engine::new(Cpu::new(2).unwrap(), Plan::new(params, buffer.info).unwrap()).unwrap();
    let mut map = vec![0; g.pixels()];
    let mut labels = Labels::new(g, &mut map, g.width() as usize).unwrap();
    let count = engine.segment(&buffer.frame(), &mut labels, Outputs::default()).unwrap().count;
    let widened = |label: u16| if label == u16::MAX { wide::NO_LABEL } else { u32::from(label) };
    (map.into_iter().map(widened).collect(), count)
}

fn engine(threads: u32, plan: wide::Plan) -> wide::Engine<Cpu> {
    let cpu = Cpu::new(threads).unwrap();
    wide::Engine::new(cpu.clone(), cpu, plan).unwrap()
}

fn segment(engine: &mut wide::Engine<Cpu>, buffer: &Buffer) -> (Vec<u32>, u32) {
    let g = buffer.info.geometry;
    let mut map = vec![7; g.pixels()];
    let count = engine.segment(&buffer.frame(), &mut map, g.width() as usize, || Ok::<_, Error>(())).unwrap();
    (map, count)
}

/// Any parameters from a number.
fn drawn_params(seed: u64) -> Params {
    let pick = |salt: u64, n: u64| hash(seed.wrapping_mul(59).wrapping_add(salt)) % n;
    let slic = slic::Params {
        iterations: [1, 2, 3, 5][pick(1, 4) as usize],
        compactness: [0.1, 3.3, 10.0, 17.7, 30.0, 700.0][pick(2, 6) as usize],
        color_space: ColorSpace::ALL[pick(3, 4) as usize],
        adaptive_compactness: pick(4, 3) == 0,
    };
    Params {
        superpixel_size: 4 + pick(5, 15) as u32,
        superpixels: [0, 0, 0, 12_000, u32::MAX][pick(6, 5) as usize],
        connectivity: pick(7, 4) != 0,
        min_region: [0.0, 0.25, 0.25, 1.0, 4.0][pick(8, 5) as usize],
        masked: pick(9, 2) == 0,
        stretch_gray16: pick(10, 2) == 0,
        algorithm: AlgorithmParams::Slic(slic),
        ..Params::default()
    }
}

/// A picture of odd size in any format.
fn drawn_picture(seed: u64, params: &Params) -> Buffer {
    let pick = |salt: u64, n: u64| hash(seed.wrapping_mul(61).wrapping_add(salt)) % n;
    // Steps are up to 18 px: that many cells are more than a small window has.
    let unit = params.superpixel_size.min(if params.superpixels > 0 { 4 } else { 18 });
    let side =
        |salt: u64| (unit * (25 + pick(salt, 40) as u32) + pick(salt + 1, u64::from(unit)) as u32).min(600);
    let format = PixelFormat::ALL[pick(4, PixelFormat::ALL.len() as u64) as usize];
    let picture = PICTURES[pick(5, PICTURES.len() as u64) as usize];
    let buffer = Buffer::new(info(side(0), side(2), format), picture, seed, pick(6, 2) as usize * 5);
    match pick(7, 3) {
        0 => buffer,
        _ if !params.masked => buffer,
        _ => buffer.with_mask(SHAPES[pick(8, SHAPES.len() as u64) as usize], seed, [0, 0]),
    }
}

#[test]
fn windows_of_any_size_give_the_map_of_16_bits() {
    for seed in 0..60 {
        let params = drawn_params(seed);
        let buffer = drawn_picture(seed, &params);
        let g = buffer.info.geometry;
        let what = format!("{seed}: {g} {:?} {params:?}", buffer.info.format);
        // Where labels of 16 bits have no room for all cells or regions, there is nothing to compare with.
        if !wide::has_room(&params, g) {
            continue;
        }
        let (want, regions) = narrow(&params, &buffer);
        // With five rounds a window of less has no room for its halo.
        for most in [900, 2000, 65_535] {
            let plan = wide::Plan::in_windows(&params, buffer.info, most).unwrap();
            let windows = plan.windows();
            let (got, count) = segment(&mut engine(1 + seed as u32 % 3, plan), &buffer);
            if count as usize > 65_535 {
                continue;
            }
            assert_eq!(count, regions, "{windows} windows, {what}");
            let differ = want.iter().zip(&got).filter(|(a, b)| a != b).count();
            assert_eq!(differ, 0, "{windows} windows, {what}");
        }
    }
}

#[test]
fn an_engine_goes_on_with_other_frames_and_after_an_end() {
    let params = Params { superpixel_size: 5, ..Params::default() };
    let kind = info(301, 203, PixelFormat::Rgb);
    let plan = wide::Plan::in_windows(&params, kind, 1500).unwrap();
    let windows = plan.windows();
    assert!(windows > 3);
    let mut all = engine(2, plan);
    let mut map = vec![0; kind.geometry.pixels()];
    for seed in 0..3 {
        let buffer = Buffer::new(kind, Picture::Natural, seed, 0);
        // Ends before a window, as a signal does.
        let mut turns = 0;
        let ended = all.segment(&buffer.frame(), &mut map, 301, || {
            turns += 1;
            if turns > windows / 2 { Err(Error::NotSegmented) } else { Ok(()) }
        });
        assert_eq!((ended, turns), (Err(Error::NotSegmented), windows / 2 + 1));
        assert_eq!(segment(&mut all, &buffer), narrow(&params, &buffer), "{seed}");
    }
}

/// Components of equal label, by flooding.
fn components(map: &[u32], width: usize) -> usize {
    let mut seen = vec![false; map.len()];
    let (mut count, mut todo) = (0, Vec::new());
    for start in 0..map.len() {
        if seen[start] || map[start] == wide::NO_LABEL {
            continue;
        }
        count += 1;
        seen[start] = true;
        todo.push(start);
        while let Some(i) = todo.pop() {
            for j in oracle::neighbors(i, width, map.len()) {
                if !seen[j] && map[j] == map[start] {
                    seen[j] = true;
                    todo.push(j);
                }
            }
        }
    }
    count
}

#[test]
fn more_regions_than_16_bits_name_are_connected_dense_and_in_raster_order() {
    for (superpixels, format, picture) in [
        (100_000, PixelFormat::Rgb, Picture::Natural),
        (90_000, PixelFormat::Gray8, Picture::Noise),
        (u32::MAX, PixelFormat::Nv12, Picture::Natural),
    ] {
        let params = Params { superpixels, ..Params::default() };
        let buffer = Buffer::new(info(1263, 1004, format), picture, 3, 0);
        let g = buffer.info.geometry;
        assert!(wide::is_needed(&params, g));
        let plan = wide::Plan::new(&params, buffer.info).unwrap();
        assert!(plan.grid().cells() > 65_535);
        let mut all = engine(2, plan);
        let (map, count) = segment(&mut all, &buffer);
        assert!(count > 65_535, "{count} by {picture:?}");
        assert_eq!(components(&map, g.width() as usize), count as usize);
        let mut next = 0;
        for &label in &map {
            assert!(label <= next, "labels are in raster order of first pixels");
            next += u32::from(label == next);
        }
        assert_eq!(next, count);
    }
}

#[test]
fn without_connectivity_labels_are_cells_in_order() {
    let params = Params { superpixel_size: 4, connectivity: false, masked: true, ..Params::default() };
    let buffer = Buffer::new(info(1301, 1103, PixelFormat::Rgb), Picture::Natural, 5, 0);
    let buffer = buffer.with_mask(SHAPES[0], 5, [0, 0]);
    let plan = wide::Plan::new(&params, buffer.info).unwrap();
    assert!(plan.grid().cells() > 65_535);
    let (map, count) = segment(&mut engine(2, plan), &buffer);
    let mut used = vec![false; count as usize];
    for (i, &label) in map.iter().enumerate() {
        assert_eq!(label != wide::NO_LABEL, buffer.is_inside(i));
        if label != wide::NO_LABEL {
            used[label as usize] = true;
        }
    }
    assert!(used.iter().all(|&used| used));
}

#[test]
fn threads_and_strides_change_nothing() {
    let params = Params { superpixel_size: 4, ..Params::default() };
    let buffer = Buffer::new(info(1203, 1107, PixelFormat::Rgb), Picture::Natural, 2, 0);
    let plan = wide::Plan::new(&params, buffer.info).unwrap();
    let (want, _) = segment(&mut engine(1, plan.clone()), &buffer);
    let stride = 1203 + 5;
    let mut map = vec![3; stride * 1107];
    engine(3, plan).segment(&buffer.frame(), &mut map, stride, || Ok::<_, Error>(())).unwrap();
    for (row, want) in map.chunks(stride).zip(want.chunks(1203)) {
        assert!(row[..1203] == *want && row[1203..].iter().all(|&label| label == 3));
    }
}

#[test]
fn what_is_not_of_32_bits_is_named() {
    let geometry = Geometry::new(2000, 2000).unwrap();
    let kind = info(2000, 2000, PixelFormat::Rgb);
    let asks = Params { superpixels: 200_000, ..Params::default() };
    assert!(wide::is_needed(&asks, geometry) && wide::obstacle(&asks).is_none());
    let merge = merge::Params { ratio: 2.0, ..Default::default() };
    let regions = hierarchy::Params { regions: 50, ..Default::default() };
    let levels = hierarchy::Params { levels: true, ..Default::default() };
    let refine = refine::Params { sweeps: 1, ..Default::default() };
    for (name, params) in [
        ("temporal", Params { temporal: true, ..asks.clone() }),
        ("merge", Params { merge, ..asks.clone() }),
        ("regions", Params { hierarchy: regions, ..asks.clone() }),
        ("hierarchy", Params { hierarchy: levels, ..asks.clone() }),
        ("refine", Params { refine, ..asks.clone() }),
        ("algo", Params { algorithm: AlgorithmParams::Lsc(Default::default()), ..asks.clone() }),
    ] {
        assert!(!wide::is_needed(&params, geometry));
        assert_eq!(wide::obstacle(&params), Some(name));
        assert!(matches!(wide::Plan::new(&params, kind), Err(Error::Value { name: n, .. }) if n == name));
    }
    // Steps of 2 px would give too few, those of 1 px three times as many.
    let few = Params { superpixels: 32_767, ..Params::default() };
    assert!(wide::is_needed(&few, Geometry::new(322, 322).unwrap()));
    assert!(!wide::is_needed(&Params::default(), geometry));
}

#[test]
fn a_plane_that_does_not_fit_is_refused() {
    let params = Params::default();
    let kind = info(64, 48, PixelFormat::Rgb);
    let mut all = engine(1, wide::Plan::new(&params, kind).unwrap());
    let go = || Ok::<_, Error>(());
    let buffer = Buffer::new(kind, Picture::Natural, 1, 0);
    let short = all.segment(&buffer.frame(), &mut [0; 64 * 48 - 1], 64, go);
    assert!(matches!(short, Err(Error::Plane { .. })));
    assert!(matches!(all.segment(&buffer.frame(), &mut [0; 64 * 48], 63, go), Err(Error::Stride { .. })));
    let other = Buffer::new(info(48, 64, PixelFormat::Rgb), Picture::Natural, 1, 0);
    assert!(matches!(all.segment(&other.frame(), &mut [0; 64 * 48], 64, go), Err(Error::Frame { .. })));
    let masked = buffer.with_mask(SHAPES[0], 1, [0, 0]);
    assert_eq!(all.segment(&masked.frame(), &mut [0; 64 * 48], 64, go), Err(Error::Mask));
}
