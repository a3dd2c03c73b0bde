// SPDX-License-Identifier: MPL-2.0
//! Results that `Engine::keep` keeps stay while later frames are segmented, and are the same on both backends.
//!
//! Without a device the half of CUDA prints that it was skipped; `SUPERPIXEL_REQUIRE_CUDA=1` makes that a failure.

use crate::device;
use crate::pictures::{Buffer, Picture};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::{FrameInfo, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::regions::Regions;

const FRAMES: u64 = 4;
const OUTPUTS: Outputs = Outputs { table: true, neighbors: true, mean_color: false, linear_light: false };

fn info() -> FrameInfo {
    FrameInfo::new(Geometry::new(97, 71).unwrap(), PixelFormat::Rgb)
}

fn plan(temporal: bool) -> Plan {
    Plan::new(&Params { superpixel_size: 8, temporal, ..Params::default() }, info()).unwrap()
}

fn buffer(seed: u64) -> Buffer {
    Buffer::new(info(), Picture::Natural, seed, 0)
}

/// Label maps and regions, handed out frame by frame.
fn finished(temporal: bool) -> Vec<(Vec<u16>, Regions)> {
    let mut engine = Engine::new(Cpu::new(1).unwrap(), plan(temporal)).unwrap();
    let one = |seed| {
        let mut map = vec![0; info().geometry.pixels()];
        let mut labels = Labels::new(info().geometry, &mut map, 97).unwrap();
        let regions = engine.segment(&buffer(seed).frame(), &mut labels, OUTPUTS).unwrap().clone();
        (map, regions)
    };
    (0..FRAMES).map(one).collect()
}

#[test]
fn the_cpu_keeps_what_it_finishes() {
    for temporal in [false, true] {
        let mut engine = Engine::new(Cpu::new(2).unwrap(), plan(temporal)).unwrap();
        let mut kept: Vec<Regions> = (0..FRAMES).map(|_| engine.kept().unwrap()).collect();
        assert!(matches!(engine.keep(true, &mut kept[0]), Err(Error::NotSegmented)));
        let mut map = vec![0; info().geometry.pixels()];
        for (seed, kept) in (0..).zip(&mut kept) {
            let mut labels = Labels::new(info().geometry, &mut map, 97).unwrap();
            engine.submit(&buffer(seed).frame(), &mut labels, OUTPUTS).unwrap();
            engine.keep(true, kept).unwrap();
        }
        for (kept, (_, regions)) in kept.iter().zip(finished(temporal)) {
            assert_eq!(*kept, regions);
        }
        engine.keep(false, &mut kept[0]).unwrap();
        assert_eq!(kept[0], Regions { count: kept[3].count, ..Regions::default() });
    }
}

#[cfg(feature = "cuda")]
#[test]
fn a_device_keeps_what_the_cpu_finishes() {
    use gstsuperpixel::cuda::{Kept, Part, Staging};

    let Some(cuda) = device::device("a_device_keeps_what_the_cpu_finishes") else { return };
    for temporal in [false, true] {
        let mut engine = Engine::new(cuda.clone(), plan(temporal)).unwrap();
        let mut kept: Vec<Kept> = (0..FRAMES).map(|_| engine.kept().unwrap()).collect();
        assert!(matches!(engine.keep(true, &mut kept[0]), Err(Error::NotSegmented)));
        let mut staging = Staging::new(&cuda, info()).unwrap();
        for (seed, kept) in (0..).zip(&mut kept) {
            let frame = buffer(seed);
            engine.submit(&staging.upload(&frame.frame()).unwrap(), &mut None, OUTPUTS).unwrap();
            engine.keep(true, kept).unwrap();
        }
        for (kept, (map, regions)) in kept.iter_mut().zip(finished(temporal)) {
            let (counts, results) = kept.take().unwrap();
            let results = results.unwrap();
            assert_eq!((counts.regions, counts.pairs as usize), (regions.count, regions.neighbors.len()));
            let bytes = |part| {
                // SAFETY: the address holds as many bytes and stays as long as `results`.
                unsafe { std::slice::from_raw_parts(results.address(part).unwrap(), results.bytes(part)) }
            };
            let rows = bytes(Part::Labels).chunks(results.label_stride()).map(|row| &row[..2 * 97]);
            assert_eq!(rows.collect::<Vec<_>>().concat(), bytemuck::cast_slice::<_, u8>(&map));
            assert_eq!(bytes(Part::Table), bytemuck::cast_slice::<_, u8>(&regions.table));
            assert_eq!(bytes(Part::Neighbors), bytemuck::cast_slice::<_, u8>(&regions.neighbors));
            assert_eq!(bytes(Part::Motion), bytemuck::cast_slice::<_, u8>(&regions.motion));
            assert!(kept.take().unwrap().1.is_none(), "results are handed out once");
        }
        engine.keep(false, &mut kept[0]).unwrap();
        let (counts, results) = kept[0].take().unwrap();
        assert!(counts.regions > 0 && results.is_none());
        // On another stream, before anybody has read what was kept last.
        engine.keep(true, &mut kept[0]).unwrap();
        let mut other = Engine::new(gstsuperpixel::cuda::Cuda::new(-1).unwrap(), plan(temporal)).unwrap();
        other.submit(&staging.upload(&buffer(0).frame()).unwrap(), &mut None, OUTPUTS).unwrap();
        other.keep(true, &mut kept[0]).unwrap();
        assert_eq!(kept[0].take().unwrap().0.regions, finished(temporal)[0].1.count);
    }
}
