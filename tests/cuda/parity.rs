// SPDX-License-Identifier: MPL-2.0
//! The CUDA backend against the CPU backend: equality of every output, for every format, option and awkward size.
//!
//! Without a device each test prints that it was skipped; `SUPERPIXEL_REQUIRE_CUDA=1` makes that a failure.
//! `SUPERPIXEL_SHORT=1` takes the small cases only, for runs under a memory checker. `SUPERPIXEL_IMAGES=FOLDER` adds
//! every PNG and JPEG of a folder.

use crate::device::{device, short};
use crate::pictures;
use crate::pictures::{Buffer, PICTURES, Picture, hash};
use gstsuperpixel::algo::{AlgorithmParams, lsc, quickshift, slic};
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::cuda::{Cuda, Staging};
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{FrameInfo, FrameMut, Geometry, Labels, PixelFormat, YuvMatrix};
use gstsuperpixel::params::{Boundaries, Drawing, Fill, Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::{hierarchy, merge, refine};
use gstsuperpixel::regions::Regions;

const EVERYTHING: Outputs = Outputs { table: true, neighbors: true, mean_color: true, linear_light: false };

/// The device, or a printed skip.
struct Outcome {
    map: Vec<u16>,
    regions: Regions,
    planes: Vec<Vec<u8>>,
}

fn on_cpu(cpu: &Cpu, params: &Params, buffer: &Buffer, outputs: Outputs, drawing: &Drawing) -> Outcome {
    let g = buffer.info.geometry;
    let mut engine = Engine::new(cpu.clone(), Plan::new(params, buffer.info).unwrap()).unwrap();
    let mut map = vec![0; g.pixels()];
    let mut labels = Labels::new(g, &mut map, g.width() as usize).unwrap();
    engine.segment(&buffer.frame(), &mut labels, outputs).unwrap();
    let mut planes = buffer.planes.clone();
    let mut frame =
        FrameMut::new(buffer.info, planes.iter_mut().map(Vec::as_mut_slice), &buffer.strides).unwrap();
    engine.draw(&mut frame, &labels, drawing).unwrap();
    Outcome { regions: engine.regions().clone(), map, planes }
}

fn on_cuda(cuda: &Cuda, params: &Params, buffer: &Buffer, outputs: Outputs, drawing: &Drawing) -> Outcome {
    let g = buffer.info.geometry;
    let mut engine = Engine::new(cuda.clone(), Plan::new(params, buffer.info).unwrap()).unwrap();
    let mut staging = Staging::new(cuda, buffer.info).unwrap();
    let mut last: Option<Outcome> = None;
    for _ in 0..2 {
        let mut frame = staging.upload(&buffer.frame()).unwrap();
        let mut map = vec![0xfffe; g.pixels()];
        let labels = Labels::new(g, &mut map, g.width() as usize).unwrap();
        engine.segment(&frame, &mut Some(labels), outputs).unwrap();
        engine.draw(&mut frame, &None, drawing).unwrap();
        let mut planes = buffer.planes.clone();
        let mut host =
            FrameMut::new(buffer.info, planes.iter_mut().map(Vec::as_mut_slice), &buffer.strides).unwrap();
        staging.download(&mut host).unwrap();
        cuda.synchronize().unwrap();
        let outcome = Outcome { regions: engine.regions().clone(), map, planes };
        if let Some(last) = &last {
            assert!(last.map == outcome.map && last.planes == outcome.planes, "two runs differ");
            assert_eq!(last.regions.table, outcome.regions.table);
        }
        last = Some(outcome);
    }
    last.unwrap()
}

fn compare(cpu: &Cpu, cuda: &Cuda, params: &Params, buffer: &Buffer, drawing: &Drawing, what: &str) {
    compare_outputs(cpu, cuda, params, buffer, EVERYTHING, drawing, what);
}

fn compare_outputs(
    cpu: &Cpu,
    cuda: &Cuda,
    params: &Params,
    buffer: &Buffer,
    outputs: Outputs,
    drawing: &Drawing,
    what: &str,
) {
    let want = on_cpu(cpu, params, buffer, outputs, drawing);
    let got = on_cuda(cuda, params, buffer, outputs, drawing);
    let g = buffer.info.geometry;
    let what = format!("{what} {:?} {}x{} {params:?}", buffer.info.format, g.width(), g.height());
    if let Some(i) = (0..g.pixels()).find(|&i| want.map[i] != got.map[i]) {
        let differ = (0..g.pixels()).filter(|&i| want.map[i] != got.map[i]).count();
        panic!(
            "{what}: {differ} labels differ, first at ({}, {}): cpu {} of {}, cuda {} of {}",
            i % g.width() as usize,
            i / g.width() as usize,
            want.map[i],
            want.regions.count,
            got.map[i],
            got.regions.count
        );
    }
    assert_eq!(want.regions.count, got.regions.count, "{what}");
    assert_eq!(want.regions.table, got.regions.table, "{what}");
    assert_eq!(want.regions.neighbors, got.regions.neighbors, "{what}");
    for (plane, (want, got)) in want.planes.iter().zip(&got.planes).enumerate() {
        let first = want.iter().zip(got).position(|(a, b)| a != b);
        assert_eq!(first, None, "{what}: plane {plane} is drawn differently with {drawing:?}");
    }
}

const DRAWINGS: [Drawing; 5] = [
    Drawing { fill: Fill::None, boundaries: Some(Boundaries { color: 0xffff_ff00, width: 1 }) },
    Drawing { fill: Fill::MeanColor, boundaries: None },
    Drawing { fill: Fill::MeanColor, boundaries: Some(Boundaries { color: 0x8040_ff20, width: 2 }) },
    Drawing { fill: Fill::Labels, boundaries: None },
    Drawing { fill: Fill::None, boundaries: Some(Boundaries { color: 0x60ff_0080, width: 8 }) },
];

fn info(w: u32, h: u32, format: PixelFormat) -> FrameInfo {
    FrameInfo::new(Geometry::new(w, h).unwrap(), format)
}

#[test]
fn ingest_matches_cpu() {
    let Some(cuda) = device("ingest_matches_cpu") else { return };
    let mut staging;
    for format in PixelFormat::ALL {
        for space in ColorSpace::ALL {
            let matrix = [YuvMatrix::Bt601, YuvMatrix::Bt709, YuvMatrix::Bt2020][space as usize % 3];
            let info =
                FrameInfo { matrix, full_range: (space as usize).is_multiple_of(2), ..info(131, 37, format) };
            let buffer = Buffer::new(info, Picture::Noise, 5 + space as u64, 3);
            let slic = slic::Params { color_space: space, ..Default::default() };
            let params = Params { algorithm: AlgorithmParams::Slic(slic), ..Default::default() };
            let mut engine = Engine::new(cuda.clone(), Plan::new(&params, info).unwrap()).unwrap();
            staging = Staging::new(&cuda, info).unwrap();
            let frame = staging.upload(&buffer.frame()).unwrap();
            engine.segment(&frame, &mut None, EVERYTHING).unwrap();
            assert_eq!(
                engine.buffers().read_features().unwrap(),
                buffer.features(space),
                "{format:?} {space:?}"
            );
        }
    }
}

#[test]
fn every_format_and_drawing_matches_cpu() {
    let Some(cuda) = device("every_format_and_drawing_matches_cpu") else { return };
    let cpu = Cpu::new(0).unwrap();
    for (i, format) in PixelFormat::ALL.into_iter().enumerate() {
        for (j, drawing) in DRAWINGS.iter().enumerate() {
            let mut info = info(101 + i as u32, 67 + j as u32, format);
            info.full_range = j % 2 == 0;
            info.matrix = if i % 2 == 0 { YuvMatrix::Bt709 } else { YuvMatrix::Bt601 };
            let buffer = Buffer::new(info, Picture::Natural, 3, 7);
            let params = Params { superpixel_size: 8 + j as u32, ..Params::default() };
            compare(&cpu, &cuda, &params, &buffer, drawing, "format");
        }
    }
}

#[test]
fn means_in_linear_light_match_cpu() {
    let Some(cuda) = device("means_in_linear_light_match_cpu") else { return };
    let cpu = Cpu::new(0).unwrap();
    let outputs = Outputs { linear_light: true, ..EVERYTHING };
    for (i, format) in PixelFormat::ALL.into_iter().enumerate() {
        for (j, picture) in PICTURES.into_iter().enumerate() {
            let mut info = info(75 + i as u32, 61 + j as u32, format);
            info.full_range = j % 2 == 0;
            info.matrix = [YuvMatrix::Bt709, YuvMatrix::Bt601, YuvMatrix::Bt2020][j % 3];
            let buffer = Buffer::new(info, picture, 3, 7);
            let slic = slic::Params { color_space: ColorSpace::ALL[i % 4], ..Default::default() };
            let params = Params {
                superpixel_size: 8 + j as u32,
                algorithm: AlgorithmParams::Slic(slic),
                ..Params::default()
            };
            compare_outputs(&cpu, &cuda, &params, &buffer, outputs, &DRAWINGS[1 + i % 2], "light");
        }
    }
}

/// The range that is found of one frame is kept for the next, on the device.
#[test]
fn stretched_gray_matches_cpu() {
    let Some(cuda) = device("stretched_gray_matches_cpu") else { return };
    let cpu = Cpu::new(2).unwrap();
    for format in [PixelFormat::Gray16Le, PixelFormat::Gray16Be] {
        let mut of_both = Vec::new();
        for temporal in [false, true] {
            let info = info(173, 59, format);
            let params = Params {
                superpixel_size: 9,
                stretch_gray16: true,
                temporal,
                masked: true,
                ..Params::default()
            };
            let plan = Plan::new(&params, info).unwrap();
            let mut on_cpu = Engine::new(cpu.clone(), plan.clone()).unwrap();
            let mut on_cuda = Engine::new(cuda.clone(), plan).unwrap();
            let mut staging = Staging::new(&cuda, info).unwrap();
            let mut features = Vec::new();
            // Spans of codes that stay, shrink, grow and move; codes at both ends.
            for (frame, (base, span)) in [
                (20_000, 3000),
                (20_100, 2800),
                (20_900, 900),
                (20_900, 880),
                (20_000, 4000),
                (0, 60),
                (65_000, 535),
            ]
            .into_iter()
            .enumerate()
            {
                let mut buffer = Buffer::new(info, Picture::Natural, 3, 5);
                for (x, y) in (0..59).flat_map(|y| (0..173).map(move |x| (x, y))) {
                    let place = pictures::places::place(format, 0, x, y);
                    let code = place.get(&buffer.planes, &buffer.strides);
                    let small = (base + u64::from(code) * span / 65_535) as u16;
                    place.put(&mut buffer.planes, &buffer.strides, small, 0);
                }
                if frame % 2 == 1 {
                    buffer = buffer.with_mask(pictures::Shape::Disk, 1, [0, 0]);
                }
                let mut map = vec![0; info.geometry.pixels()];
                let mut labels = Labels::new(info.geometry, &mut map, 173).unwrap();
                let want = on_cpu.segment(&buffer.frame(), &mut labels, EVERYTHING).unwrap().clone();
                let uploaded = staging.upload(&buffer.frame()).unwrap();
                let got = on_cuda.segment(&uploaded, &mut None, EVERYTHING).unwrap().clone();
                let what = format!("{format:?} temporal={temporal} frame {frame}");
                assert_eq!(want.table, got.table, "{what}");
                let mut there = vec![0; info.geometry.pixels()];
                let results = on_cuda.results().unwrap();
                results.download_labels(&mut Labels::new(info.geometry, &mut there, 173).unwrap()).unwrap();
                assert!(map == there, "{what}: labels");
                features.push(on_cuda.buffers().read_features().unwrap());
            }
            of_both.push(features);
        }
        // With `temporal` the second frame has the range of the first.
        assert!(
            of_both[0][0] == of_both[1][0] && of_both[0][1] != of_both[1][1],
            "{format:?}: the range is not kept"
        );
    }
}

/// Any merging from a number.
fn drawn_merge(seed: u64) -> merge::Params {
    let pick = |salt: u64, n: u64| hash(seed.wrapping_mul(41).wrapping_add(salt)) % n;
    merge::Params {
        ratio: [0.5, 1.0, 1.5, 2.0, 2.5, 100.0][pick(1, 6) as usize],
        rule: [merge::Rule::Mutual, merge::Rule::Either][pick(2, 2) as usize],
        max_distance: [0.0, 0.0, 1.0, 5.0, 20.0, 400.0][pick(3, 6) as usize],
        passes: 1 + pick(4, 8) as u32,
    }
}

#[test]
fn merged_regions_match_cpu() {
    let Some(cuda) = device("merged_regions_match_cpu") else { return };
    let cpu = Cpu::new(0).unwrap();
    for seed in 0..if short() { 40 } else { 400 } {
        let pick = |salt: u64, n: u64| hash(seed * 83 + salt) % n;
        let side = if short() { 120 } else { 400 };
        let format = PixelFormat::ALL[pick(1, PixelFormat::ALL.len() as u64) as usize];
        let info = info(1 + pick(2, side) as u32, 1 + pick(3, side) as u32, format);
        let buffer = Buffer::new(info, PICTURES[pick(4, 6) as usize], seed, pick(5, 20) as usize);
        let params = if pick(6, 4) == 0 { drawn_quickshift(seed) } else { drawn_params(seed) };
        let small = params.algorithm.nick() != "quickshift" || info.geometry.pixels() < 6000 || !short();
        let params = if small { params } else { drawn_params(seed) };
        let params = Params { merge: drawn_merge(seed), ..params };
        let outputs = Outputs { linear_light: pick(7, 2) == 0, ..EVERYTHING };
        let drawing = &DRAWINGS[pick(8, 5) as usize];
        compare_outputs(&cpu, &cuda, &params, &buffer, outputs, drawing, &format!("seed {seed}"));
    }
    if short() {
        return;
    }
    let merge = merge::Params { ratio: 2.0, passes: 2, ..Default::default() };
    for (w, h, picture) in
        [(1920, 1080, Picture::Natural), (3840, 2160, Picture::Natural), (1920, 1080, Picture::Noise)]
    {
        for algorithm in algorithms() {
            let params = Params { merge: merge.clone(), algorithm, ..Params::default() };
            let buffer = Buffer::new(info(w, h, PixelFormat::Nv12), picture, 2, 0);
            compare(&cpu, &cuda, &params, &buffer, &DRAWINGS[2], "large");
        }
    }
    // As many regions as labels can name, and none left alone.
    let slic = slic::Params { compactness: 0.1, ..Default::default() };
    let params =
        Params { min_region: 0.0, merge, algorithm: AlgorithmParams::Slic(slic), ..Params::default() };
    let buffer = Buffer::new(info(1024, 1024, PixelFormat::Rgb), Picture::Noise, 5, 0);
    compare(&cpu, &cuda, &params, &buffer, &DRAWINGS[3], "too many regions");
}

/// Any refinement from a number.
fn drawn_refine(seed: u64) -> refine::Params {
    let pick = |salt: u64, n: u64| hash(seed.wrapping_mul(43).wrapping_add(salt)) % n;
    refine::Params {
        sweeps: 1 + pick(1, 3) as u32,
        smoothness: [0.0, 2.0, 5.0, 10.0, 30.0, 100.0][pick(2, 6) as usize],
    }
}

#[test]
fn refined_regions_match_cpu() {
    let Some(cuda) = device("refined_regions_match_cpu") else { return };
    let cpu = Cpu::new(0).unwrap();
    for seed in 0..if short() { 40 } else { 400 } {
        let pick = |salt: u64, n: u64| hash(seed * 89 + salt) % n;
        let side = if short() { 120 } else { 400 };
        let format = PixelFormat::ALL[pick(1, PixelFormat::ALL.len() as u64) as usize];
        let info = info(1 + pick(2, side) as u32, 1 + pick(3, side) as u32, format);
        let buffer = Buffer::new(info, PICTURES[pick(4, 6) as usize], seed, pick(5, 20) as usize);
        let few = !short() || info.geometry.pixels() < 6000;
        let params = if few && pick(6, 4) == 0 { drawn_quickshift(seed) } else { drawn_params(seed) };
        let merge = if pick(9, 3) == 0 { drawn_merge(seed) } else { merge::Params::default() };
        let params = Params { merge, refine: drawn_refine(seed), ..params };
        let outputs = Outputs { linear_light: pick(7, 2) == 0, ..EVERYTHING };
        let drawing = &DRAWINGS[pick(8, 5) as usize];
        compare_outputs(&cpu, &cuda, &params, &buffer, outputs, drawing, &format!("seed {seed}"));
    }
    // Rows and columns of one pixel, and a tile that a label comes into from the next one.
    for (w, h) in [(1, 1), (1, 77), (77, 1), (2, 2), (33, 65)] {
        for picture in PICTURES {
            let params = Params { superpixel_size: 4, refine: drawn_refine(3), ..Params::default() };
            let buffer = Buffer::new(info(w, h, PixelFormat::Rgb), picture, 7, 1);
            compare(&cpu, &cuda, &params, &buffer, &DRAWINGS[1], "awkward");
        }
    }
    if short() {
        return;
    }
    for (w, h, picture) in
        [(1920, 1080, Picture::Natural), (3840, 2160, Picture::Natural), (1920, 1080, Picture::Noise)]
    {
        for algorithm in algorithms() {
            let params = Params { refine: drawn_refine(w.into()), algorithm, ..Params::default() };
            let buffer = Buffer::new(info(w, h, PixelFormat::Nv12), picture, 2, 0);
            compare(&cpu, &cuda, &params, &buffer, &DRAWINGS[2], "large");
        }
    }
    // Nearly every pixel a region.
    let slic = slic::Params { compactness: 0.1, ..Default::default() };
    let refine = refine::Params { sweeps: 2, smoothness: 1.0 };
    let params =
        Params { min_region: 0.0, refine, algorithm: AlgorithmParams::Slic(slic), ..Params::default() };
    let buffer = Buffer::new(info(1024, 1024, PixelFormat::Rgb), Picture::Noise, 5, 0);
    compare(&cpu, &cuda, &params, &buffer, &DRAWINGS[3], "too many regions");
}

#[test]
fn awkward_sizes_match_cpu() {
    let Some(cuda) = device("awkward_sizes_match_cpu") else { return };
    let cpu = Cpu::new(0).unwrap();
    let mut sizes = vec![(1, 1), (1, 77), (77, 1), (2, 2), (31, 33), (32, 32), (33, 65), (64, 96), (5, 300)];
    if !short() {
        sizes.extend([(257, 193), (8191, 3), (3, 8191), (481, 321), (640, 480)]);
    }
    for (w, h) in sizes {
        for (i, picture) in PICTURES.into_iter().enumerate() {
            for (j, (size, count)) in
                [(4, 0), (16, 0), (33, 0), (16, 1), (16, 9), (16, u32::MAX)].into_iter().enumerate()
            {
                if short() && (i + j) % 2 == 1 {
                    continue;
                }
                let buffer = Buffer::new(info(w, h, PixelFormat::Rgb), picture, 1, 0);
                for algorithm in algorithms() {
                    let params =
                        Params { superpixel_size: size, superpixels: count, algorithm, ..Params::default() };
                    compare(&cpu, &cuda, &params, &buffer, &DRAWINGS[2], &format!("{picture:?}"));
                }
            }
        }
    }
}

/// Frames that take many rounds of absorption, smaller than the grid that does the last of them, with more pairs that touch
/// than pixels.
#[test]
fn many_rounds_match_cpu() {
    let Some(cuda) = device("many_rounds_match_cpu") else { return };
    let cpu = Cpu::new(0).unwrap();
    for (w, h) in [(257, 193), (64, 96), (3, 73)] {
        let buffer = Buffer::new(info(w, h, PixelFormat::Rgb), Picture::Noise, 1, 0);
        for (superpixel_size, min_region) in [(33, 0.25), (40, 1.0), (24, 4.0)] {
            for algorithm in algorithms() {
                let params = Params { superpixel_size, min_region, algorithm, ..Params::default() };
                compare(&cpu, &cuda, &params, &buffer, &DRAWINGS[2], "many rounds");
            }
        }
    }
}

/// Frames so ragged that the pairs with something small among them are not even listed for the last rounds.
#[test]
fn noise_matches_cpu() {
    let Some(cuda) = device("noise_matches_cpu") else { return };
    let cpu = Cpu::new(0).unwrap();
    let buffer = Buffer::new(info(517, 389, PixelFormat::Rgb), Picture::Noise, 1, 0);
    for superpixel_size in [16, 32] {
        for algorithm in algorithms() {
            let params = Params { superpixel_size, algorithm, ..Params::default() };
            compare(&cpu, &cuda, &params, &buffer, &DRAWINGS[0], "noise");
        }
    }
}

/// Default parameters of every algorithm.
fn algorithms() -> [AlgorithmParams; 2] {
    [AlgorithmParams::Slic(slic::Params::default()), AlgorithmParams::Lsc(lsc::Params::default())]
}

#[test]
fn ends_of_the_gamut_match_cpu() {
    let Some(cuda) = device("ends_of_the_gamut_match_cpu") else { return };
    let cpu = Cpu::new(0).unwrap();
    let ends = [0u8, 255];
    let colors: Vec<[u8; 3]> =
        ends.iter().flat_map(|&r| ends.iter().flat_map(move |&g| ends.map(|b| [r, g, b]))).collect();
    let sizes = if short() { vec![(1, 60), (60, 1), (37, 29)] } else { vec![(1, 200), (200, 1), (75, 53)] };
    for (w, h) in sizes {
        // One color, and each beside every other.
        for first in 0..colors.len() {
            for second in first..colors.len() {
                let mut buffer = Buffer::new(info(w, h, PixelFormat::Rgb), Picture::Flat, 0, 0);
                for (i, pixel) in buffer.planes[0].chunks_exact_mut(3).enumerate() {
                    pixel.copy_from_slice(
                        &colors[if hash(i as u64).is_multiple_of(3) { second } else { first }],
                    );
                }
                for algorithm in algorithms() {
                    let params = Params { superpixel_size: 12, algorithm, ..Params::default() };
                    let what = format!("{:?} {:?}", colors[first], colors[second]);
                    compare(&cpu, &cuda, &params, &buffer, &DRAWINGS[0], &what);
                }
            }
        }
    }
}

/// Any parameters from a number.
fn drawn_params(seed: u64) -> Params {
    let pick = |salt: u64, n: u64| hash(seed.wrapping_mul(31).wrapping_add(salt)) % n;
    let compactness = [0.1, 1.0, 5.0, 10.0, 20.0, 64.0, 100.0, 700.0][pick(1, 8) as usize];
    let slic = slic::Params {
        iterations: 1 + pick(2, 7) as u32,
        compactness,
        color_space: ColorSpace::ALL[pick(3, 4) as usize],
        adaptive_compactness: pick(4, 4) == 0,
    };
    let ratio = [0.01, 0.05, 0.075, 0.1, 0.2, 0.5, 1.0][pick(10, 7) as usize];
    let algorithm = match pick(11, 2) {
        0 => AlgorithmParams::Slic(slic),
        _ => AlgorithmParams::Lsc(lsc::Params { iterations: slic.iterations, ratio }),
    };
    Params {
        superpixel_size: 4 + pick(5, 40) as u32,
        superpixels: if pick(6, 3) == 0 { 1 + pick(7, 3000) as u32 } else { 0 },
        holds_count: pick(13, 2) == 0,
        connectivity: pick(8, 4) != 0,
        min_region: [0.0, 0.1, 0.25, 1.0, 4.0][pick(9, 5) as usize],
        stretch_gray16: pick(12, 2) == 0,
        algorithm,
        ..Params::default()
    }
}

#[test]
fn drawn_parameters_match_cpu() {
    let Some(cuda) = device("drawn_parameters_match_cpu") else { return };
    let cpu = Cpu::new(0).unwrap();
    for seed in 0..if short() { 24 } else { 600 } {
        let pick = |salt: u64, n: u64| hash(seed * 77 + salt) % n;
        let side = if short() { 96 } else { 400 };
        let format = PixelFormat::ALL[pick(1, PixelFormat::ALL.len() as u64) as usize];
        let info = info(1 + pick(2, side) as u32, 1 + pick(3, side) as u32, format);
        let buffer = Buffer::new(info, PICTURES[pick(4, 6) as usize], seed, pick(5, 20) as usize);
        let drawing = &DRAWINGS[pick(6, 5) as usize];
        compare(&cpu, &cuda, &drawn_params(seed), &buffer, drawing, &format!("seed {seed}"));
    }
}

/// Any parameters of quick shift from a number, of small windows mostly.
fn drawn_quickshift(seed: u64) -> Params {
    let pick = |salt: u64, n: u64| hash(seed.wrapping_mul(37).wrapping_add(salt)) % n;
    let own = quickshift::Params {
        sigma: [0.5, 1.0, 1.3, 2.0, 3.0, 3.0, 4.7, 6.0, 10.4, 20.0][pick(1, 10) as usize],
        tau: [1.0, 1.5, 4.0, 8.0, 8.0, 10.0, 23.4, 64.0][pick(2, 8) as usize],
        color_scale: [0.01, 0.125, 0.5, 0.5, 1.0, 10.0][pick(3, 6) as usize],
        color_space: ColorSpace::ALL[pick(4, 4) as usize],
    };
    Params {
        connectivity: pick(5, 4) != 0,
        min_region: [0.0, 0.1, 0.25, 1.0, 4.0][pick(6, 5) as usize],
        algorithm: AlgorithmParams::QuickShift(own),
        ..Params::default()
    }
}

#[test]
fn quickshift_matches_cpu() {
    let Some(cuda) = device("quickshift_matches_cpu") else { return };
    let cpu = Cpu::new(0).unwrap();
    let mut sizes = vec![(1, 1), (1, 77), (77, 1), (2, 2), (31, 33), (32, 16), (33, 65), (5, 300)];
    if !short() {
        sizes.extend([(257, 193), (8191, 3), (3, 2047), (481, 321)]);
    }
    for (i, (w, h)) in sizes.into_iter().enumerate() {
        for (j, picture) in PICTURES.into_iter().enumerate() {
            for own in [
                quickshift::Params::default(),
                quickshift::Params { sigma: 0.7, tau: 2.0, ..Default::default() },
            ] {
                let params = Params { algorithm: AlgorithmParams::QuickShift(own), ..Params::default() };
                let buffer = Buffer::new(info(w, h, PixelFormat::Rgb), picture, (i + j) as u64, 0);
                compare(&cpu, &cuda, &params, &buffer, &DRAWINGS[2], &format!("{picture:?}"));
            }
        }
    }
    for seed in 0..if short() { 12 } else { 200 } {
        let pick = |salt: u64, n: u64| hash(seed * 91 + salt) % n;
        let side = if short() { 64 } else { 250 };
        let format = PixelFormat::ALL[pick(1, PixelFormat::ALL.len() as u64) as usize];
        let info = info(1 + pick(2, side) as u32, 1 + pick(3, side) as u32, format);
        let buffer = Buffer::new(info, PICTURES[pick(4, 6) as usize], seed, pick(5, 20) as usize);
        let drawing = &DRAWINGS[pick(6, 5) as usize];
        compare(&cpu, &cuda, &drawn_quickshift(seed), &buffer, drawing, &format!("seed {seed}"));
    }
}

#[test]
fn large_frames_match_cpu_with_quickshift() {
    if short() {
        println!("large_frames_match_cpu_with_quickshift: left out of the short set");
        return;
    }
    let Some(cuda) = device("large_frames_match_cpu_with_quickshift") else { return };
    let cpu = Cpu::new(0).unwrap();
    let with = |sigma, tau, color_scale| {
        let own = quickshift::Params { sigma, tau, color_scale, ..Default::default() };
        Params { algorithm: AlgorithmParams::QuickShift(own), ..Params::default() }
    };
    for (w, h, params, picture) in [
        (1920, 1080, with(3.0, 8.0, 0.5), Picture::Natural),
        (1920, 1080, with(6.0, 10.0, 0.125), Picture::Natural),
        // One tree whose longest way is the sum of the sides.
        (1920, 1080, with(1.0, 1.0, 0.5), Picture::Flat),
        (3840, 2160, with(2.0, 8.0, 0.5), Picture::Natural),
    ] {
        let buffer = Buffer::new(info(w, h, PixelFormat::Nv12), picture, 2, 0);
        compare(&cpu, &cuda, &params, &buffer, &DRAWINGS[0], "large");
    }
    // More trees than labels: with connectivity absorbed until they fit, without it the last label is shared.
    for connectivity in [true, false] {
        let params = Params { min_region: 0.0, connectivity, ..with(0.5, 1.0, 10.0) };
        let buffer = Buffer::new(info(640, 400, PixelFormat::Rgb), Picture::Noise, 5, 0);
        compare(&cpu, &cuda, &params, &buffer, &DRAWINGS[3], "too many trees");
    }
}

#[test]
fn large_frames_match_cpu() {
    if short() {
        println!("large_frames_match_cpu: left out of the short set");
        return;
    }
    let Some(cuda) = device("large_frames_match_cpu") else { return };
    let cpu = Cpu::new(0).unwrap();
    for (w, h, size, picture) in [
        (1920, 1080, 16, Picture::Natural),
        (1920, 1080, 32, Picture::Natural),
        (3840, 2160, 32, Picture::Natural),
        (4096, 2048, 128, Picture::Natural),
        (7680, 4320, 16, Picture::Natural),
        (1920, 1080, 16, Picture::Noise),
        (1920, 1080, 300, Picture::Checker),
    ] {
        let buffer = Buffer::new(info(w, h, PixelFormat::Nv12), picture, 2, 0);
        for algorithm in algorithms() {
            let params = Params { superpixel_size: size, algorithm, ..Params::default() };
            compare(&cpu, &cuda, &params, &buffer, &DRAWINGS[0], "large");
        }
    }
    // More than 65535 regions: absorbed until they fit, by the same rule.
    let slic = slic::Params { compactness: 0.1, ..Default::default() };
    let params = Params { min_region: 0.0, algorithm: AlgorithmParams::Slic(slic), ..Params::default() };
    let buffer = Buffer::new(info(1024, 1024, PixelFormat::Rgb), Picture::Noise, 5, 0);
    compare(&cpu, &cuda, &params, &buffer, &DRAWINGS[3], "too many regions");
}

#[test]
fn pictures_of_a_folder_match_cpu() {
    let Some(folder) = std::env::var_os("SUPERPIXEL_IMAGES").filter(|folder| !folder.is_empty()) else {
        println!("pictures_of_a_folder_match_cpu: skipped: SUPERPIXEL_IMAGES names no folder");
        return;
    };
    let Some(cuda) = device("pictures_of_a_folder_match_cpu") else { return };
    let cpu = Cpu::new(0).unwrap();
    let usual_quickshift =
        Params { algorithm: AlgorithmParams::QuickShift(quickshift::Params::default()), ..Params::default() };
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.extension().is_some_and(|e| e == "jpg" || e == "png") {
            continue;
        }
        let picture = image::open(&path).unwrap().to_rgb8();
        let info = info(picture.width(), picture.height(), PixelFormat::Rgb);
        let strides = vec![3 * picture.width() as usize];
        let buffer = Buffer { info, planes: vec![picture.into_raw()], strides, mask: None, prior: None };
        let [slic, lsc] = algorithms().map(|algorithm| Params { algorithm, ..Params::default() });
        let exactly = |regions| hierarchy::Params { regions, ..Default::default() };
        let refine = refine::Params { sweeps: 2, ..Default::default() };
        for params in [
            Params { hierarchy: exactly(200), ..slic.clone() },
            Params { hierarchy: exactly(1000), refine: refine.clone(), ..lsc.clone() },
            Params { refine, ..slic.clone() },
            Params { superpixels: 1000, ..slic.clone() },
            Params { superpixels: 1000, ..lsc.clone() },
            slic,
            lsc,
            drawn_params(seen),
            usual_quickshift.clone(),
        ] {
            compare(&cpu, &cuda, &params, &buffer, &DRAWINGS[2], &path.display().to_string());
        }
        seen += 1;
    }
    assert!(seen > 0, "no picture in the folder");
}
