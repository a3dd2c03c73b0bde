// SPDX-License-Identifier: MPL-2.0
//! Memory of a device that safe code can reach: freed after its last use on any stream, accessed in the order of the calls,
//! and never with sizes of something else.
//!
//! Without a device each test prints that it was skipped; `SUPERPIXEL_REQUIRE_CUDA=1` makes that a failure. On the
//! emulated device `EMULATOR_LAZY=1` shows missing waits: work is then done when somebody waits for it.

use crate::device::device;
use crate::pictures::{Buffer, Picture};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::cuda::{Counts, Cuda, Part, Staging};
use gstsuperpixel::engine::Engine;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::{FrameInfo, FrameMut, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Boundaries, Drawing, Fill, Outputs, Params};
use gstsuperpixel::plan::Plan;

const ALL: Outputs = Outputs { table: true, neighbors: true, mean_color: true, linear_light: false };
const MEANS: Drawing = Drawing { fill: Fill::MeanColor, boundaries: None };

fn info() -> FrameInfo {
    FrameInfo::new(Geometry::new(97, 71).unwrap(), PixelFormat::Rgb)
}

fn plan() -> Plan {
    Plan::new(&Params { superpixel_size: 8, ..Params::default() }, info()).unwrap()
}

fn buffer(seed: u64) -> Buffer {
    Buffer::new(info(), Picture::Natural, seed, 0)
}

/// The label map, and the frame with mean colors, of the CPU.
fn expected(engine: &mut Engine<Cpu>, buffer: &Buffer) -> (Vec<u16>, Vec<u8>) {
    let geometry = buffer.info.geometry;
    let mut map = vec![0; geometry.pixels()];
    let mut labels = Labels::new(geometry, &mut map, geometry.width() as usize).unwrap();
    engine.segment(&buffer.frame(), &mut labels, ALL).unwrap();
    let mut pixels = buffer.planes[0].clone();
    let mut frame = FrameMut::new(buffer.info, [pixels.as_mut_slice()], &buffer.strides).unwrap();
    engine.draw(&mut frame, &labels, &MEANS).unwrap();
    (map, pixels)
}

fn label_map(engine: &Engine<Cuda>) -> Vec<u16> {
    let geometry = engine.plan().frame().geometry;
    let mut map = vec![0; geometry.pixels()];
    let mut labels = Labels::new(geometry, &mut map, geometry.width() as usize).unwrap();
    engine.results().unwrap().download_labels(&mut labels).unwrap();
    map
}

fn download(staging: &mut Staging, buffer: &Buffer) -> Vec<u8> {
    let mut pixels = vec![0; buffer.planes[0].len()];
    staging
        .download(&mut FrameMut::new(buffer.info, [pixels.as_mut_slice()], &buffer.strides).unwrap())
        .unwrap();
    pixels
}

/// Upload, stages, drawing and download are on three streams, and nobody but the library orders them.
#[test]
fn streams_access_a_frame_in_the_order_of_the_calls() {
    let Some(cuda) = device("streams_access_a_frame_in_the_order_of_the_calls") else { return };
    let mut staging = Staging::new(&Cuda::new(-1).unwrap(), info()).unwrap();
    let mut engines = [0; 2].map(|_| Engine::new(Cuda::new(-1).unwrap(), plan()).unwrap());
    let mut cpu = Engine::new(Cpu::new(1).unwrap(), plan()).unwrap();
    for seed in 0..4 {
        let buffer = buffer(seed);
        let mut frame = staging.upload(&buffer.frame()).unwrap();
        for engine in &mut engines {
            engine.submit(&frame, &mut None, ALL).unwrap();
        }
        engines[0].draw(&mut frame, &None, &MEANS).unwrap();
        let pixels = download(&mut staging, &buffer);
        // The other engine has read the frame as it was before.
        let (map, drawn) = expected(&mut cpu, &buffer);
        assert!(pixels == drawn, "pixels of frame {seed}");
        for engine in &engines {
            assert!(label_map(engine) == map, "labels of frame {seed}");
        }
    }
    cuda.synchronize().unwrap();
}

/// Work on a frame is put on an engine's stream, then the frame's memory goes, and other memory takes its place.
#[test]
fn memory_is_freed_after_its_last_use_on_any_stream() {
    let Some(_) = device("memory_is_freed_after_its_last_use_on_any_stream") else { return };
    let (one, other) = (Cuda::new(-1).unwrap(), Cuda::new(-1).unwrap());
    let mut engine = Engine::new(one, plan()).unwrap();
    let mut cpu = Engine::new(Cpu::new(1).unwrap(), plan()).unwrap();
    for seed in 0..4 {
        let (buffer, noise) = (buffer(seed), Buffer::new(info(), Picture::Noise, seed, 0));
        let mut staging = Staging::new(&other, info()).unwrap();
        let mut frame = staging.upload(&buffer.frame()).unwrap();
        engine.submit(&frame, &mut None, ALL).unwrap();
        engine.draw(&mut frame, &None, &MEANS).unwrap();
        drop(staging);
        let mut next = Staging::new(&other, info()).unwrap();
        next.upload(&noise.frame()).unwrap();
        other.synchronize().unwrap();
        assert!(label_map(&engine) == expected(&mut cpu, &buffer).0, "labels of frame {seed}");
        assert!(download(&mut next, &noise) == noise.planes[0], "frame {seed} was drawn on the next one");
    }
}

/// Engines of one `Cuda` share a stream; each records graphs of its own frames while others put work on it.
#[test]
fn engines_of_one_stream_record_beside_each_other() {
    let Some(cuda) = device("engines_of_one_stream_record_beside_each_other") else { return };
    let threads = 4;
    let start = std::sync::Barrier::new(threads);
    let small = FrameInfo::new(Geometry::new(20, 14).unwrap(), PixelFormat::Rgb);
    let plan = || Plan::new(&Params { superpixel_size: 8, ..Params::default() }, small).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..threads as u64 {
            let (cuda, start, plan) = (cuda.clone(), &start, &plan);
            scope.spawn(move || {
                let mut engine = Engine::new(cuda.clone(), plan()).unwrap();
                let mut cpu = Engine::new(Cpu::new(1).unwrap(), plan()).unwrap();
                start.wait();
                for seed in 0..30 {
                    let buffer = Buffer::new(small, Picture::Natural, 100 * thread + seed, 0);
                    // Another address, another graph.
                    let mut staging = Staging::new(&cuda, small).unwrap();
                    let frame = staging.upload(&buffer.frame()).unwrap();
                    engine.segment(&frame, &mut None, ALL).unwrap();
                    let map = label_map(&engine);
                    assert!(map == expected(&mut cpu, &buffer).0, "frame {seed} of thread {thread}");
                }
            });
        }
    });
}

/// Numbers that a caller makes up neither read nor write outside of what there is.
#[test]
fn results_are_no_longer_than_what_there_is() {
    let Some(cuda) = device("results_are_no_longer_than_what_there_is") else { return };
    let mut engine = Engine::new(cuda.clone(), plan()).unwrap();
    let mut staging = Staging::new(&cuda, info()).unwrap();
    let buffer = buffer(1);
    let most = Counts { regions: u32::MAX, pairs: u32::MAX, merges: u32::MAX };
    assert_eq!(engine.results().map(drop), Err(Error::NotSegmented));
    assert_eq!(engine.finish(&mut None).map(drop), Err(Error::NotSegmented));
    let frame = staging.upload(&buffer.frame()).unwrap();
    engine.submit(&frame, &mut None, Outputs { neighbors: false, ..ALL }).unwrap();
    for counts in [None, Some(most), Some(Counts::default())] {
        let mut kept = engine.results().unwrap().keep(counts).unwrap();
        kept.finalize(most, ALL).unwrap();
        for part in [Part::Labels, Part::Table, Part::Neighbors, Part::Motion, Part::Merges] {
            assert!(!kept.address(part).unwrap().is_null());
            assert!(kept.bytes(part) <= 97 * 71 * 40, "{part:?}: {} bytes", kept.bytes(part));
        }
        assert_eq!(kept.bytes(Part::Neighbors), 0, "there are none");
        assert_eq!(kept.bytes(Part::Merges), 0, "there are none");
    }
    assert_eq!(engine.finish(&mut None).unwrap().table.len(), engine.regions().count as usize);
}

/// Drawing needs a label map.
#[test]
fn nothing_is_drawn_before_a_frame_was_segmented() {
    let geometry = info().geometry;
    let buffer = buffer(1);
    let mut pixels = buffer.planes[0].clone();
    let drawing = Drawing { fill: Fill::Labels, boundaries: Some(Boundaries::default()) };
    let mut map = vec![9; geometry.pixels()];
    let labels = Labels::new(geometry, &mut map, 97).unwrap();
    let mut cpu = Engine::new(Cpu::new(1).unwrap(), plan()).unwrap();
    let mut frame = FrameMut::new(buffer.info, [pixels.as_mut_slice()], &buffer.strides).unwrap();
    assert_eq!(cpu.draw(&mut frame, &labels, &drawing), Err(Error::NotSegmented));

    let Some(cuda) = device("nothing_is_drawn_before_a_frame_was_segmented") else { return };
    let mut engine = Engine::new(cuda.clone(), plan()).unwrap();
    let mut staging = Staging::new(&cuda, info()).unwrap();
    let mut frame = staging.upload(&buffer.frame()).unwrap();
    assert_eq!(engine.draw(&mut frame, &None, &drawing), Err(Error::NotSegmented));
    engine.submit(&frame, &mut None, Outputs::default()).unwrap();
    engine.draw(&mut frame, &None, &drawing).unwrap();
    // Of another size or format than the plan's.
    for (width, height, format) in [(96, 71, PixelFormat::Rgb), (97, 71, PixelFormat::Rgba)] {
        let other = FrameInfo::new(Geometry::new(width, height).unwrap(), format);
        let mut staging = Staging::new(&cuda, other).unwrap();
        let mut frame = staging.upload(&Buffer::new(other, Picture::Natural, 1, 0).frame()).unwrap();
        assert!(matches!(engine.draw(&mut frame, &None, &drawing), Err(Error::Frame { .. })));
        assert!(matches!(engine.submit(&frame, &mut None, ALL), Err(Error::Frame { .. })));
    }
}

/// On a device without memory of its own frames are where the host has written them; what was there before has been used by then.
#[test]
fn frames_are_copied_only_where_the_device_has_memory() {
    let Some(cuda) = device("frames_are_copied_only_where_the_device_has_memory") else { return };
    let mut engine = Engine::new(cuda.clone(), plan()).unwrap();
    let mut cpu = Engine::new(Cpu::new(1).unwrap(), plan()).unwrap();
    let mut staging = Staging::new(&cuda, info()).unwrap();
    let before = cuda.traffic().count();
    for seed in 0..6 {
        let buffer = buffer(seed);
        let mut frame = staging.upload(&buffer.frame()).unwrap();
        engine.submit(&frame, &mut None, ALL).unwrap();
        engine.draw(&mut frame, &None, &MEANS).unwrap();
        let (map, pixels) = expected(&mut cpu, &buffer);
        // Half of the frames are replaced before anybody has waited for them.
        if seed % 2 == 0 {
            assert!(download(&mut staging, &buffer) == pixels && label_map(&engine) == map, "{seed}");
        }
    }
    let after = cuda.traffic().count();
    let copied = [after.pixels_up - before.pixels_up, after.pixels_down - before.pixels_down];
    assert_eq!(copied.map(|bytes| bytes == 0), [cuda.shares_memory(); 2]);
}
