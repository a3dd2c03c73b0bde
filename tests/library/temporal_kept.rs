// SPDX-License-Identifier: MPL-2.0
//! What temporal mode keeps of a stream: the number of superpixels, and what is thin, small or faint.

use std::collections::HashMap;

use crate::pictures::{Buffer, Picture, clip};
use gstsuperpixel::algo::{AlgorithmParams, lsc, slic};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{FrameInfo, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;

const TABLE: Outputs = Outputs { table: true, neighbors: false, mean_color: false, linear_light: false };

/// A frame's label map, and the track ids of its regions.
struct Segmented {
    map: Vec<u16>,
    ids: Vec<u32>,
}

/// Segments a clip with one engine.
fn segment(params: &Params, clip: &[Buffer]) -> Vec<Segmented> {
    let info = clip[0].info;
    let mut engine = Engine::new(Cpu::new(2).unwrap(), Plan::new(params, info).unwrap()).unwrap();
    let frame = |buffer: &Buffer| {
        let mut map = vec![0; info.geometry.pixels()];
        let mut labels = Labels::new(info.geometry, &mut map, info.geometry.width() as usize).unwrap();
        let regions = engine.segment(&buffer.frame(), &mut labels, TABLE).unwrap();
        let ids = regions.table.iter().map(|region| region.track_id).collect();
        Segmented { map, ids }
    };
    clip.iter().map(frame).collect()
}

/// Parameters of a stream, and those of frames by themselves.
fn both(algorithm: AlgorithmParams, superpixel_size: u32) -> [Params; 2] {
    let temporal = Params { algorithm, superpixel_size, temporal: true, ..Params::default() };
    [temporal.clone(), Params { temporal: false, ..temporal }]
}

fn algorithms() -> [(&'static str, AlgorithmParams); 3] {
    let slico = slic::Params { adaptive_compactness: true, ..Default::default() };
    [
        ("slic", AlgorithmParams::Slic(slic::Params::default())),
        ("slico", AlgorithmParams::Slic(slico)),
        ("lsc", AlgorithmParams::Lsc(lsc::Params::default())),
    ]
}

/// Adds noise of up to `most` to every byte.
fn with_noise(mut clip: Vec<Buffer>, most: u64) -> Vec<Buffer> {
    let mut state = 1_u64;
    for buffer in &mut clip {
        for byte in &mut buffer.planes[0] {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let noise = (state >> 40) % (2 * most + 1);
            *byte = (u64::from(*byte) + noise).saturating_sub(most).min(255) as u8;
        }
    }
    clip
}

/// A camera that stands and one that pans over fine texture and noise, for 100 frames: the number of superpixels stays near that of
/// frames by themselves, and does not fall on. Texture like this is harder than pictures: a quarter of the regions are further
/// components. With a slot for each cluster and nothing else 0.62 to 0.80 of them were left, with SLICO 0.75 to 0.97.
#[test]
fn the_number_of_superpixels_lasts() {
    let g = Geometry::new(240, 176).unwrap();
    for (name, algorithm) in algorithms() {
        for (motion, least) in [([0, 0], 0.90), ([3, -2], 0.82)] {
            let clip = with_noise(clip(g, PixelFormat::Rgb, 3, 100, motion, None), 3);
            let [stream, alone] = both(algorithm.clone(), 12);
            let counts = |params: &Params, clip: &[Buffer]| -> Vec<f64> {
                segment(params, clip).iter().map(|frame| frame.ids.len() as f64).collect()
            };
            // Frames by themselves differ little: a fifth of them tells their number.
            let some: Vec<Buffer> = clip.iter().step_by(5).cloned().collect();
            let (stream, alone) = (counts(&stream, &clip), counts(&alone, &some));
            let mean = |counts: &[f64]| counts.iter().sum::<f64>() / counts.len() as f64;
            let of = |from: usize, to: usize| mean(&stream[from..to]) / mean(&alone);
            let quarters = [of(1, 25), of(25, 50), of(50, 75), of(75, 100)];
            assert!(
                quarters.iter().all(|share| (least..1.05).contains(share))
                    && quarters[1] - quarters[3] < 0.03,
                "{name} {motion:?}: {quarters:.3?} of the number that frames by themselves have"
            );
        }
    }
}

/// Slots moved with the picture's motion added up, and a tenth of the superpixels was lost whenever its error came to half a cell.
#[test]
fn a_still_picture_keeps_every_superpixel() {
    let g = Geometry::new(240, 176).unwrap();
    for (name, algorithm) in algorithms() {
        let [params, _] = both(algorithm, 12);
        let frames = segment(&params, &clip(g, PixelFormat::Rgb, 3, 130, [0, 0], None));
        for pair in frames[20..].windows(2) {
            let gone = pair[0].ids.iter().filter(|id| !pair[1].ids.contains(id)).count();
            assert!(gone <= 2, "{name}: {gone} of {} superpixels go in a still picture", pair[0].ids.len());
        }
    }
}

/// A line of 2 px, a disk of 8 px and a shadow that cross a still textured ground, and where each is.
fn crossing(frames: usize) -> (Vec<Buffer>, Vec<[Vec<usize>; 3]>) {
    let g = Geometry::new(240, 160).unwrap();
    let (w, h) = (g.width() as i32, g.height() as i32);
    let info = FrameInfo::new(g, PixelFormat::Rgb);
    let mut clip = Vec::new();
    let mut places = Vec::new();
    for frame in 0..frames as i32 {
        let mut buffer = Buffer::new(info, Picture::Flat, 0, 0);
        let mut place = [Vec::new(), Vec::new(), Vec::new()];
        for y in 0..h {
            for x in 0..w {
                let texture = ((x * 7 + y * 13) % 5 + (x / 9 + y / 7) % 3 * 4) as u8;
                let mut color = [150 + texture, 140 + texture, 120 + texture];
                let is_line = (x - 20 - 2 * frame).abs() < 1 || x - 20 - 2 * frame == 1;
                let (dx, dy) = (x - 30 - 3 * frame, y - 40);
                let (u, v) = (x - 200 + 2 * frame, y - 115);
                let i = (y * w + x) as usize;
                if is_line && (60..100).contains(&y) {
                    color = [60, 50, 40];
                    place[0].push(i);
                } else if dx * dx + dy * dy <= 16 {
                    color = [200, 60, 50];
                    place[1].push(i);
                } else if u * u / 4 + v * v <= 400 {
                    color = color.map(|c| c - 16);
                    place[2].push(i);
                }
                buffer.planes[0][y as usize * buffer.strides[0] + 3 * x as usize..][..3]
                    .copy_from_slice(&color);
            }
        }
        clip.push(buffer);
        places.push(place);
    }
    (with_noise(clip, 2), places)
}

/// Of the pixels of a thing the share in regions that are mostly its own, and the largest of these regions.
fn found(frame: &Segmented, place: &[usize]) -> (f64, Option<u32>) {
    let mut area: HashMap<u16, usize> = HashMap::new();
    frame.map.iter().for_each(|&label| *area.entry(label).or_default() += 1);
    let mut own: HashMap<u16, usize> = HashMap::new();
    place.iter().for_each(|&i| *own.entry(frame.map[i]).or_default() += 1);
    let regions: Vec<(usize, u16)> =
        own.into_iter().filter(|(label, n)| 2 * n > area[label]).map(|(label, n)| (n, label)).collect();
    let share = regions.iter().map(|(n, _)| n).sum::<usize>() as f64 / place.len() as f64;
    (share, regions.into_iter().max().map(|(_, label)| frame.ids[usize::from(label)]))
}

/// They are found nearly as in frames by themselves, and go on with their identities. With nothing but a slot for each cluster the
/// shares were 0.92, 0.94 and 0.90 with SLIC, 0.77, 0.85 and 0.90 with LSC.
#[test]
fn what_is_thin_small_or_faint_is_found() {
    let (clip, places) = crossing(50);
    let least_of = |name| if name == "slic" { [0.85, 0.96, 0.94] } else { [0.78, 0.91, 0.93] };
    // SLICO's squares find neither line nor disk in frames by themselves.
    for (name, algorithm) in algorithms().into_iter().filter(|(name, _)| *name != "slico") {
        let [stream, alone] = both(algorithm, 12).map(|params| segment(&params, &clip));
        for (thing, (what, least)) in ["line", "disk", "shadow"].into_iter().zip(least_of(name)).enumerate() {
            let of = |frames: &[Segmented]| -> Vec<(f64, Option<u32>)> {
                frames.iter().zip(&places).map(|(frame, places)| found(frame, &places[thing])).collect()
            };
            let (stream, alone) = (of(&stream), of(&alone));
            let mean = |all: &[(f64, Option<u32>)]| all[1..].iter().map(|f| f.0).sum::<f64>() / 49.0;
            let (share, share_alone) = (mean(&stream), mean(&alone));
            let goes_on = |pair: &&[(f64, Option<u32>)]| pair[0].1.is_some() && pair[0].1 == pair[1].1;
            let kept = stream[1..].windows(2).filter(goes_on).count();
            assert!(
                share >= least && share_alone > 0.95 && kept >= 36,
                "{name} {what}: {share:.3} of its pixels, {share_alone:.3} alone; {kept} of 48 with their identity"
            );
        }
    }
}
