// SPDX-License-Identifier: MPL-2.0
//! Allocations of later frames in a clip: next to none. A program of one test, since it counts for the whole process.

mod pictures;

use std::alloc::System;

use gstsuperpixel::algo::{AlgorithmParams, lsc, quickshift, slic};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{Frame, FrameMut, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Boundaries, Drawing, Fill, Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::{abstraction, hierarchy, merge, refine};
use pictures::{Buffer, clip};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations while a clip goes through once more.
fn allocations(params: &Params, clip: &[Buffer]) -> usize {
    let info = clip[0].info;
    let mut engine = Engine::new(Cpu::new(2).unwrap(), Plan::new(params, info).unwrap()).unwrap();
    let (geometry, stride) = (info.geometry, info.geometry.width() as usize);
    let outputs = Outputs { table: true, neighbors: true, mean_color: true, linear_light: false };
    let boundaries = Some(Boundaries { color: 0x80ff_ff00, width: 3 });
    let mut map = vec![0; geometry.pixels()];
    let mut drawn: Vec<_> = clip.iter().map(|buffer| buffer.planes[0].clone()).collect();
    let mut pass = || {
        let region = Region::new(ALLOCATOR);
        for (buffer, drawn) in clip.iter().zip(&mut drawn) {
            let frame = Frame::new(info, &[&buffer.planes[0]], &buffer.strides).unwrap();
            let mut labels = Labels::new(geometry, &mut map, stride).unwrap();
            engine.segment(&frame, &mut labels, outputs).unwrap();
            let mut frame = FrameMut::new(info, [drawn.as_mut_slice()], &buffer.strides).unwrap();
            for fill in [Fill::MeanColor, Fill::Abstraction(abstraction::Params::default())] {
                engine.draw(&mut frame, &labels, &Drawing { fill, boundaries }).unwrap();
            }
        }
        let change = region.change();
        change.allocations + change.reallocations
    };
    let passes: Vec<usize> = (0..4).map(|_| pass()).collect();
    assert!(passes[0] > 20, "what frames need first is counted: {passes:?}");
    passes[3]
}

#[test]
fn frames_allocate_next_to_nothing() {
    let clip = clip(Geometry::new(81, 63).unwrap(), PixelFormat::Rgb, 5, 8, [2, 1], Some(5));
    let slic = |adaptive_compactness| {
        AlgorithmParams::Slic(slic::Params { adaptive_compactness, ..slic::Params::default() })
    };
    let lsc = AlgorithmParams::Lsc(lsc::Params::default());
    let quickshift =
        AlgorithmParams::QuickShift(quickshift::Params { sigma: 1.0, ..quickshift::Params::default() });
    for algorithm in [slic(false), slic(true), lsc, quickshift] {
        for (temporal, connectivity, ratio, regions, sweeps) in [
            (false, true, 0.0, 0, 0),
            (false, false, 0.0, 0, 0),
            (false, true, 2.0, 0, 0),
            (false, true, 0.0, 0, 2),
            (false, true, 0.0, 20, 0),
            (true, true, 0.0, 0, 0),
            (true, false, 0.0, 0, 0),
            (true, true, 2.0, 0, 3),
            (true, true, 0.0, 20, 1),
        ] {
            let params = Params {
                algorithm: algorithm.clone(),
                superpixel_size: 8,
                temporal,
                connectivity,
                merge: merge::Params { ratio, ..merge::Params::default() },
                hierarchy: hierarchy::Params { regions, ..hierarchy::Params::default() },
                refine: refine::Params { sweeps, ..refine::Params::default() },
                ..Params::default()
            };
            let count = allocations(&params, &clip);
            // The thread pool's queue allocates once in many calls.
            assert!(count <= 2, "{count} allocations in {} frames: {params:?}", clip.len());
        }
    }
}
