// SPDX-License-Identifier: MPL-2.0
//! A floor under the quality of every algorithm: boundary recall, achievable segmentation accuracy and undersegmentation error on three
//! drawn pictures whose areas are known exactly.
//!
//! The figures are no substitute for those of `docs/quality.md`, which are of photographs and people; they notice that something broke.
//! Measured values stand in the table, floors are a little below. The same measures of a segmentation that ignores colors have to
//! be below the floor, so that the floors mean something.

use crate::picture;
use std::collections::BTreeMap;

use gstsuperpixel::algo::{AlgorithmParams, lsc, quickshift, slic, snic};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{Frame, FrameInfo, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;

const WIDTH: usize = 240;
const HEIGHT: usize = 160;
/// Distance in px within which a boundary counts as found.
const TOLERANCE: usize = 2;
/// Amount by which a measure may be worse than measured. Results are equal on all machines, so this is for intended
/// changes.
const MARGIN: f64 = 0.004;

/// A picture in R, G, B and the number of each pixel's area.
struct Known {
    name: &'static str,
    pixels: Vec<u8>,
    areas: Vec<usize>,
}

/// How good a label map is.
#[derive(Debug, Clone, Copy)]
struct Measures {
    /// Share of the true boundary that has one of the label map within the tolerance.
    recall: f64,
    /// Share of pixels that are right if every superpixel is given to the area that it shares most with.
    accuracy: f64,
    /// For every superpixel and area that meet, the smaller of the parts inside and outside, as share of all pixels (Neubert and
    /// Protzel 2012).
    undersegmentation: f64,
}

/// A number without pattern. Source: the finalizer of SplitMix64.
fn random(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Integers only, so that the bytes are the same everywhere: the area of a place, and the color of a place in an area.
fn drawn(
    name: &'static str,
    grain: i64,
    area: impl Fn(i64, i64) -> usize,
    color: impl Fn(i64, i64, usize) -> [i64; 3],
) -> Known {
    let (mut pixels, mut areas) = (Vec::new(), Vec::new());
    for i in 0..WIDTH * HEIGHT {
        let (x, y) = ((i % WIDTH) as i64, (i / WIDTH) as i64);
        let own = area(x, y);
        for (channel, v) in color(x, y, own).into_iter().enumerate() {
            let noise = (random((3 * i + channel) as u64) % (2 * grain as u64 + 1)) as i64 - grain;
            pixels.push((v + noise).clamp(0, 255) as u8);
        }
        areas.push(own);
    }
    Known { name, pixels, areas }
}

/// A color of its own for an area.
fn tint(area: usize, spread: u64) -> [i64; 3] {
    [0, 1, 2].map(|c| 128 + (random(1000 + 3 * area as u64 + c) % (2 * spread + 1)) as i64 - spread as i64)
}

fn pictures() -> [Known; 3] {
    // The picture of the benches: areas with wavy edges, shading, texture and grain.
    let (w, h) = (WIDTH as u32, HEIGHT as u32);
    let pixels = picture::rgba(w, h).chunks_exact(4).flat_map(|p| [p[0], p[1], p[2]]).collect();
    let mut numbers = BTreeMap::new();
    let number = |cell| {
        let next = numbers.len();
        *numbers.entry(cell).or_insert(next)
    };
    let shaded =
        Known { name: "shaded areas", pixels, areas: picture::areas(w, h).into_iter().map(number).collect() };
    // Disks one over the other on a gradient, with strong grain.
    let disks: Vec<[i64; 3]> = (0..24)
        .map(|i| [random(10 + i) % 240, random(40 + i) % 160, 8 + random(70 + i) % 26].map(|v| v as i64))
        .collect();
    let top = |x: i64, y: i64| {
        let inside = |d: &[i64; 3]| (x - d[0]).pow(2) + (y - d[1]).pow(2) < d[2].pow(2);
        disks.iter().rposition(inside).map_or(0, |i| i + 1)
    };
    let lit = |x: i64, y: i64, area: usize| match area {
        0 => [60 + x / 2, 90 + y / 2, 150 - x / 4],
        _ => tint(area, 50).map(|v| v + (x + y) / 16),
    };
    let disks = drawn("disks", 12, top, lit);
    // Slanted stripes that are narrower than superpixels on the left and wider on the right, of little contrast, with a fine pattern.
    let stripe = |x: i64, y: i64| ((3 * x + 2 * y) / (24 + x / 8)) as usize;
    let woven = |x: i64, y: i64, area: usize| {
        let pattern = if (x / 2 + y / 2) % 2 == 0 { 7 } else { -7 };
        [[100, 120, 108], [124, 118, 104], [110, 106, 128]][area % 3].map(|v| v + pattern)
    };
    let stripes = drawn("stripes", 9, stripe, woven);
    [shaded, disks, stripes]
}

/// Pixels whose right or lower neighbor is of another number.
fn boundaries<T: PartialEq>(map: &[T]) -> Vec<bool> {
    (0..map.len())
        .map(|i| {
            (i % WIDTH + 1 < WIDTH && map[i] != map[i + 1])
                || (i + WIDTH < map.len() && map[i] != map[i + WIDTH])
        })
        .collect()
}

fn measure(map: &[u16], areas: &[usize]) -> Measures {
    let (found, real) = (boundaries(map), boundaries(areas));
    let near = |i: usize| {
        let (x, y) = (i % WIDTH, i / WIDTH);
        (y.saturating_sub(TOLERANCE)..(y + TOLERANCE + 1).min(HEIGHT)).any(|v| {
            (x.saturating_sub(TOLERANCE)..(x + TOLERANCE + 1).min(WIDTH)).any(|u| found[v * WIDTH + u])
        })
    };
    let all = real.iter().filter(|&&is| is).count();
    let recalled = (0..real.len()).filter(|&i| real[i] && near(i)).count();
    let mut shared: BTreeMap<u16, BTreeMap<usize, usize>> = BTreeMap::new();
    for (&label, &area) in map.iter().zip(areas) {
        *shared.entry(label).or_default().entry(area).or_default() += 1;
    }
    let (mut right, mut leaked) = (0, 0);
    for parts in shared.values() {
        let size: usize = parts.values().sum();
        right += parts.values().max().unwrap_or(&0);
        leaked += parts.values().map(|&part| part.min(size - part)).sum::<usize>();
    }
    let n = map.len() as f64;
    Measures {
        recall: recalled as f64 / all as f64,
        accuracy: right as f64 / n,
        undersegmentation: leaked as f64 / n,
    }
}

fn segment(known: &Known, algorithm: AlgorithmParams) -> (Measures, usize) {
    let geometry = Geometry::new(WIDTH as u32, HEIGHT as u32).unwrap();
    let info = FrameInfo::new(geometry, PixelFormat::Rgb);
    let params = Params { superpixel_size: 16, algorithm, ..Params::default() };
    let mut engine = Engine::new(Cpu::new(2).unwrap(), Plan::new(&params, info).unwrap()).unwrap();
    let mut map = vec![0; geometry.pixels()];
    let mut labels = Labels::new(geometry, &mut map, WIDTH).unwrap();
    let frame = Frame::new(info, &[&known.pixels], &[3 * WIDTH]).unwrap();
    let count = engine.segment(&frame, &mut labels, Outputs::default()).unwrap().count;
    (measure(&map, &known.areas), count as usize)
}

/// An algorithm, the same where it hardly sees colors, and what was measured on each picture: recall, accuracy, undersegmentation.
struct Case {
    name: &'static str,
    usual: AlgorithmParams,
    blind: AlgorithmParams,
    measured: [[f64; 3]; 3],
}

fn cases() -> Vec<Case> {
    let slic = |compactness, adaptive_compactness| {
        AlgorithmParams::Slic(slic::Params { compactness, adaptive_compactness, ..Default::default() })
    };
    let lsc = |ratio| AlgorithmParams::Lsc(lsc::Params { ratio, ..Default::default() });
    let snic = |compactness| AlgorithmParams::Snic(snic::Params { compactness, ..Default::default() });
    let quickshift = |color_scale| {
        AlgorithmParams::QuickShift(quickshift::Params {
            sigma: 2.0,
            tau: 6.0,
            color_scale,
            ..Default::default()
        })
    };
    vec![
        Case {
            name: "slic",
            usual: slic(10.0, false),
            blind: slic(1000.0, false),
            measured: [[0.9657, 0.9178, 0.1643], [0.9933, 0.9866, 0.0259], [0.9757, 0.9729, 0.0543]],
        },
        Case {
            name: "slico",
            usual: slic(10.0, true),
            blind: slic(1000.0, true),
            measured: [[0.9437, 0.9022, 0.1954], [0.9846, 0.9821, 0.0357], [0.9245, 0.9400, 0.1197]],
        },
        Case {
            name: "lsc",
            usual: lsc(0.1),
            blind: lsc(1.0),
            measured: [[0.9661, 0.9308, 0.1383], [0.9947, 0.9890, 0.0220], [0.9733, 0.9753, 0.0494]],
        },
        Case {
            name: "quickshift",
            usual: quickshift(0.5),
            blind: quickshift(0.01),
            measured: [[0.9983, 0.9969, 0.0062], [0.9995, 0.9968, 0.0063], [0.9941, 0.9884, 0.0232]],
        },
        Case {
            name: "snic",
            usual: snic(10.0),
            blind: snic(1000.0),
            measured: [[0.9408, 0.8932, 0.2110], [0.9851, 0.9833, 0.0334], [0.9554, 0.9645, 0.0710]],
        },
    ]
}

#[test]
fn quality_is_what_it_was() {
    let (pictures, mut wrong) = (pictures(), Vec::new());
    for Case { name, usual, blind, measured } in cases() {
        for (known, [recall, accuracy, undersegmentation]) in pictures.iter().zip(measured) {
            let [(usual, regions), (blind, blind_regions)] =
                [&usual, &blind].map(|algorithm| segment(known, algorithm.clone()));
            let what = format!("{name}, {}: {usual:.4?}, {regions} regions", known.name);
            println!("{what}; blind {blind:.4?}, {blind_regions} regions");
            // Larger is better.
            for (usual, blind, floor) in [
                (usual.recall, blind.recall, recall - MARGIN),
                (usual.accuracy, blind.accuracy, accuracy - MARGIN),
                (-usual.undersegmentation, -blind.undersegmentation, -(undersegmentation + MARGIN)),
            ] {
                if usual < floor {
                    wrong.push(format!("{what}: {:.4} is below the floor, {:.4}", usual.abs(), floor.abs()));
                }
                if blind >= floor {
                    wrong.push(format!("{what}: the floor {:.4} is too low to notice anything", floor.abs()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// One round instead of five, or superpixels half as compact again, are seen: losses need not be as large as those of the blind.
#[test]
fn small_losses_are_below_the_floor() {
    let [.., stripes] = pictures();
    let [recall, ..] = cases()[0].measured[2];
    for (iterations, compactness) in [(1, 10.0), (5, 15.0)] {
        let worse = slic::Params { iterations, compactness, ..Default::default() };
        let (measures, _) = segment(&stripes, AlgorithmParams::Slic(worse));
        assert!(measures.recall < recall - MARGIN, "{iterations} rounds, m {compactness}: {measures:.4?}");
    }
}
