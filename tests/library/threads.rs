// SPDX-License-Identifier: MPL-2.0
//! Equal results for any number of threads, where several work at the same time: frames of many small components, and clips.

use crate::pictures::{Buffer, Picture, Shape, clip};
use gstsuperpixel::algo::{AlgorithmParams, lsc, quickshift, slic};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{FrameInfo, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::hierarchy;
use gstsuperpixel::regions::Regions;

const TABLE: Outputs = Outputs { table: true, neighbors: true, mean_color: true, linear_light: false };
/// Which threads come first differs from run to run.
const RUNS: usize = 2;

/// Segments frames on one engine.
fn segment(threads: u32, params: &Params, frames: &[Buffer]) -> Vec<(Vec<u16>, Regions)> {
    let g = frames[0].info.geometry;
    let plan = Plan::new(params, frames[0].info).unwrap();
    let mut engine = Engine::new(Cpu::new(threads).unwrap(), plan).unwrap();
    let one = |buffer: &Buffer| {
        let mut map = vec![0xfffe; g.pixels()];
        let mut labels = Labels::new(g, &mut map, g.width() as usize).unwrap();
        let regions = engine.segment(&buffer.frame(), &mut labels, TABLE).unwrap().clone();
        (map, regions)
    };
    frames.iter().map(one).collect()
}

fn check(what: &str, params: &Params, frames: &[Buffer]) {
    let expected = segment(1, params, frames);
    for threads in [2, 3, 8].repeat(RUNS) {
        for (i, (found, expected)) in segment(threads, params, frames).iter().zip(&expected).enumerate() {
            assert!(found == expected, "{what}: frame {i} differs with {threads} threads: {params:?}");
        }
    }
}

fn algorithms() -> [AlgorithmParams; 4] {
    let slic = |adaptive_compactness| {
        AlgorithmParams::Slic(slic::Params { adaptive_compactness, ..Default::default() })
    };
    let quickshift = quickshift::Params { sigma: 1.0, tau: 4.0, ..Default::default() };
    [
        slic(false),
        slic(true),
        AlgorithmParams::Lsc(lsc::Params::default()),
        AlgorithmParams::QuickShift(quickshift),
    ]
}

/// Noise has thousands of components, whose rounds of absorption are shared.
#[test]
fn frames_of_many_components_are_the_same_with_any_threads() {
    let g = Geometry::new(331, 203).unwrap();
    for picture in [Picture::Noise, Picture::Natural] {
        let frame = |mask: bool| {
            let buffer = Buffer::new(FrameInfo::new(g, PixelFormat::Rgb), picture, 7, 0);
            if mask { buffer.with_mask(Shape::Hole, 3, [0; 2]) } else { buffer }
        };
        for algorithm in algorithms() {
            let params = Params { algorithm, superpixel_size: 12, ..Params::default() };
            check("by itself", &params, &[frame(false)]);
            check("masked", &Params { masked: true, ..params.clone() }, &[frame(true)]);
            let merged = hierarchy::Params { regions: 40, levels: true, ..Default::default() };
            check("merged", &Params { hierarchy: merged, ..params }, &[frame(false)]);
        }
    }
}

/// Regions that come, go and move, before and after a cut.
#[test]
fn clips_are_the_same_with_any_threads() {
    let clip = clip(Geometry::new(331, 203).unwrap(), PixelFormat::Rgb, 6, 9, [5, -3], Some(4));
    for algorithm in algorithms() {
        check("clip", &Params { algorithm, superpixel_size: 9, temporal: true, ..Params::default() }, &clip);
    }
}
