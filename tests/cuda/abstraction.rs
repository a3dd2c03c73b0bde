// SPDX-License-Identifier: MPL-2.0
//! The drawing `abstraction` on the CUDA backend against the CPU backend: every byte of every format.

use crate::both::{Both, compare};
use crate::clips;
use crate::device::{device, short};
use crate::pictures::{Buffer, PICTURES, Picture, SHAPES, clip, hash};
use gstsuperpixel::algo::{AlgorithmParams, lsc, quickshift, slic};
use gstsuperpixel::image::{FrameInfo, Geometry, PixelFormat, YuvMatrix};
use gstsuperpixel::params::{Drawing, Fill, Params};
use gstsuperpixel::post::{abstraction, hierarchy, merge, refine};

fn drawing(abstraction: abstraction::Params) -> Drawing {
    Drawing { fill: Fill::Abstraction(abstraction), boundaries: None }
}

/// Any parameters of the drawing from a number.
fn drawn(seed: u64) -> abstraction::Params {
    let pick = |salt: u64, n: u64| hash(seed.wrapping_mul(67).wrapping_add(salt)) % n;
    abstraction::Params {
        outline_smoothness: [0.5, 0.8, 1.0, 1.3, 2.0, 3.0, 4.7, 6.0][pick(1, 8) as usize],
        shading: pick(2, 4) > 0,
        ink: [0.0, 0.3, 1.5, 3.0, 8.0][pick(3, 5) as usize],
        ink_color: [0xff10_1018, 0xffff_ffff, 0x80ff_2000, 0x00ff_ffff][pick(4, 4) as usize],
        palette: [0, 0, 1, 5, 64][pick(6, 5) as usize],
        steadiness: [0.0, 0.5, 6.0, 100.0][pick(5, 4) as usize],
    }
}

#[test]
fn every_format_matches_cpu() {
    let Some(cuda) = device("abstraction::every_format_matches_cpu") else { return };
    for (i, format) in PixelFormat::ALL.into_iter().enumerate() {
        let mut info = FrameInfo::new(Geometry::new(131 + i as u32, 67 + i as u32 % 7).unwrap(), format);
        info.full_range = i % 2 == 0;
        info.matrix = if i % 3 == 0 { YuvMatrix::Bt709 } else { YuvMatrix::Bt601 };
        let buffer = Buffer::new(info, [Picture::Natural, Picture::Gradient][i % 2], 3, 5);
        let params = Params { superpixel_size: 12 + i as u32 % 9, ..Params::default() };
        compare(&cuda, &params, &[buffer], &drawing(drawn(i as u64)), "format");
    }
}

#[test]
fn any_frame_and_parameters_match_cpu() {
    let Some(cuda) = device("abstraction::any_frame_and_parameters_match_cpu") else { return };
    for seed in 0..if short() { 60 } else { 400 } {
        let pick = |salt: u64, n: u64| hash(seed * 91 + salt) % n;
        // Samples are sparse from 2^16 pixels on.
        let side = if pick(14, 8) == 0 { 400 } else { 150 };
        let format = PixelFormat::ALL[pick(3, PixelFormat::ALL.len() as u64) as usize];
        let geometry = Geometry::new(1 + pick(1, side) as u32, 1 + pick(2, side) as u32).unwrap();
        let info = FrameInfo::new(geometry, format);
        let buffer = Buffer::new(info, PICTURES[pick(4, 6) as usize], seed, pick(5, 9) as usize);
        let masked = pick(6, 3) == 0;
        let buffer = match masked {
            true => buffer.with_mask(SHAPES[pick(7, SHAPES.len() as u64) as usize], seed, [0, 0]),
            false => buffer,
        };
        let slic = slic::Params { iterations: 2, ..Default::default() };
        let shift = quickshift::Params { sigma: 1.0, tau: 4.0, ..Default::default() };
        let regions = [0, 0, 7][pick(10, 3) as usize];
        let params = Params {
            superpixel_size: 4 + pick(8, 36) as u32,
            connectivity: pick(9, 5) > 0,
            hierarchy: hierarchy::Params { regions, ..Default::default() },
            merge: merge::Params {
                ratio: if regions == 0 && pick(11, 3) == 0 { 1.0 } else { 0.0 },
                ..Default::default()
            },
            refine: refine::Params { sweeps: [0, 1][pick(12, 2) as usize], ..Default::default() },
            algorithm: match pick(13, 4) {
                0 | 1 => AlgorithmParams::Slic(slic),
                2 => AlgorithmParams::Lsc(lsc::Params { iterations: 2, ratio: 0.1 }),
                _ => AlgorithmParams::QuickShift(shift),
            },
            masked,
            ..Params::default()
        };
        compare(&cuda, &params, &[buffer], &drawing(drawn(seed)), &format!("seed {seed}"));
    }
}

#[test]
fn clips_with_changing_parameters_match_cpu() {
    let Some(cuda) = device("abstraction::clips_with_changing_parameters_match_cpu") else { return };
    let geometry = Geometry::new(160, 120).unwrap();
    let frames = if short() { 6 } else { 40 };
    for seed in 0..4 {
        let regions = hierarchy::Params { regions: [0, 20, 60, 0][seed as usize], ..Default::default() };
        let merge = merge::Params { ratio: [0.0, 0.0, 0.0, 2.0][seed as usize], ..Default::default() };
        let params =
            Params { superpixel_size: 16, temporal: true, hierarchy: regions, merge, ..Params::default() };
        let clip = clip(geometry, PixelFormat::Rgba, seed, frames, [3, -1], Some(frames / 2));
        let mut both = Both::new(&cuda, &params, clip[0].info, "clip");
        for (i, buffer) in clip.iter().enumerate() {
            // A frame without it is a gap, which nothing eases over.
            let is_gap = i == frames / 2 + 2;
            let drawing = if is_gap { Drawing::default() } else { drawing(drawn(seed + i as u64 / 3)) };
            both.compare(buffer, &drawing);
        }
    }
}

/// A frame of a still picture with a bit of noise, through which something of other colors moves.
fn with_something_moving(info: FrameInfo, seed: u64, frame: usize) -> Buffer {
    let mut buffer = Buffer::new(info, Picture::Natural, seed, 3);
    for plane in &mut buffer.planes {
        let (count, from) = (plane.len(), plane.len() / 40 * frame);
        for (i, byte) in plane.iter_mut().enumerate() {
            *byte ^= u8::from(hash((i + count * frame) as u64).is_multiple_of(8));
            if (from..from + count / 12).contains(&i) {
                *byte = !*byte;
            }
        }
    }
    buffer
}

#[test]
fn still_clips_of_every_format_match_cpu() {
    let Some(cuda) = device("abstraction::still_clips_of_every_format_match_cpu") else { return };
    for (i, format) in PixelFormat::ALL.into_iter().enumerate().skip(usize::from(short()) * 2) {
        if short() && i % 5 > 0 {
            continue;
        }
        let info = FrameInfo::new(Geometry::new(101 + i as u32, 62 + i as u32 % 5).unwrap(), format);
        let params = Params { superpixel_size: 14, temporal: true, masked: i % 4 == 0, ..Params::default() };
        let drawing = drawing(abstraction::Params {
            palette: [0, 7][i % 2],
            steadiness: [6.0, 1.0, 30.0][i % 3],
            ..drawn(i as u64)
        });
        let mut both = Both::new(&cuda, &params, info, "still clip");
        for frame in 0..if short() { 8 } else { 20 } {
            let buffer = with_something_moving(info, i as u64, frame);
            let buffer = match params.masked {
                true => buffer.with_mask(SHAPES[i % SHAPES.len()], 1, [frame as i32, 0]),
                false => buffer,
            };
            both.compare(&buffer, &drawing);
        }
    }
}

#[test]
fn clips_of_a_folder_match_cpu() {
    let Some(clips) = clips::of_folder("abstraction::clips_of_a_folder_match_cpu") else { return };
    let Some(cuda) = device("abstraction::clips_of_a_folder_match_cpu") else { return };
    for (name, frames) in clips {
        for (regions, palette) in [(400, 0), (120, 12)] {
            let hierarchy = hierarchy::Params { regions, ..Default::default() };
            let params = Params { superpixels: 1500, temporal: true, hierarchy, ..Params::default() };
            let drawing = drawing(abstraction::Params { palette, ..Default::default() });
            let mut both: Option<Both> = None;
            for buffer in frames.iter().take(40).map(|frame| clips::frame(frame)) {
                both.get_or_insert_with(|| Both::new(&cuda, &params, buffer.info, &name))
                    .compare(&buffer, &drawing);
            }
        }
    }
}
