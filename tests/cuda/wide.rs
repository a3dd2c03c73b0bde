// SPDX-License-Identifier: MPL-2.0
//! Label maps of 32 bits whose windows are clustered on the CUDA backend: equal to those of the CPU backend.

use crate::device::{device, short};
use crate::pictures::{Buffer, PICTURES, Picture, SHAPES, hash};
use gstsuperpixel::algo::{AlgorithmParams, slic};
use gstsuperpixel::backend::Backend;
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::{FrameInfo, Geometry, PixelFormat};
use gstsuperpixel::params::Params;
use gstsuperpixel::wide::{Engine, Plan};

/// Maps of some frames, from one engine.
fn maps<B: Backend>(backend: B, plan: &Plan, buffers: &[Buffer]) -> Vec<(Vec<u32>, u32)> {
    let mut engine = Engine::new(backend, Cpu::new(2).unwrap(), plan.clone()).unwrap();
    let one = |buffer: &Buffer| {
        let g = buffer.info.geometry;
        let mut map = vec![7; g.pixels()];
        let look = || Ok::<_, Error>(());
        let count = engine.segment(&buffer.frame(), &mut map, g.width() as usize, look).unwrap();
        (map, count)
    };
    buffers.iter().map(one).collect()
}

/// Any parameters from a number.
fn drawn_params(seed: u64) -> Params {
    let pick = |salt: u64, n: u64| hash(seed.wrapping_mul(67).wrapping_add(salt)) % n;
    let slic = slic::Params {
        iterations: 1 + pick(1, 5) as u32,
        compactness: [0.1, 3.3, 10.0, 17.7, 700.0][pick(2, 5) as usize],
        color_space: ColorSpace::ALL[pick(3, 4) as usize],
        adaptive_compactness: pick(4, 3) == 0,
    };
    Params {
        superpixel_size: 4 + pick(5, 14) as u32,
        superpixels: [0, 0, 6000, u32::MAX][pick(6, 4) as usize],
        connectivity: pick(7, 4) != 0,
        masked: pick(8, 2) == 0,
        stretch_gray16: pick(9, 2) == 0,
        algorithm: AlgorithmParams::Slic(slic),
        ..Params::default()
    }
}

#[test]
fn windows_match_cpu() {
    let Some(cuda) = device("windows_match_cpu") else { return };
    for seed in 0..if short() { 12 } else { 80 } {
        let pick = |salt: u64, n: u64| hash(seed * 71 + salt) % n;
        let params = drawn_params(seed);
        let geometry = Geometry::new(150 + pick(1, 200) as u32, 120 + pick(2, 200) as u32).unwrap();
        let format = PixelFormat::ALL[pick(3, PixelFormat::ALL.len() as u64) as usize];
        let info = FrameInfo::new(geometry, format);
        let buffers: Vec<_> = (0..2)
            .map(|i| {
                let buffer = Buffer::new(info, PICTURES[pick(4 + i, 6) as usize], seed, 0);
                let shape = SHAPES[pick(6, SHAPES.len() as u64) as usize];
                if params.masked { buffer.with_mask(shape, seed, [i as i32, 0]) } else { buffer }
            })
            .collect();
        let plan = Plan::in_windows(&params, info, 900 + pick(7, 2000) as u32).unwrap();
        let want = maps(Cpu::new(2).unwrap(), &plan, &buffers);
        assert!(want == maps(cuda.clone(), &plan, &buffers), "{seed}: {geometry} {format:?} {params:?}");
    }
}

#[test]
fn more_regions_than_16_bits_name_match_cpu() {
    let Some(cuda) = device("more_regions_than_16_bits_name_match_cpu") else { return };
    let params = Params { superpixel_size: 4, ..Params::default() };
    let info = FrameInfo::new(Geometry::new(1103, 1005).unwrap(), PixelFormat::Rgb);
    let buffers = [Buffer::new(info, Picture::Natural, 4, 0)];
    let plan = Plan::new(&params, info).unwrap();
    let want = maps(Cpu::new(2).unwrap(), &plan, &buffers);
    assert!(want[0].1 > 65_535 && want == maps(cuda, &plan, &buffers));
}
