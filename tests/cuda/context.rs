// SPDX-License-Identifier: MPL-2.0
//! Frames in a context and behind a stream that another library made: equal to the CPU, with no wait of the host between
//! producer and engine, and the context outlives nobody.
//!
//! Without a device it prints that it was skipped; `SUPERPIXEL_REQUIRE_CUDA=1` makes that a failure.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::device::device;
use crate::pictures::{Buffer, Picture};
use cudarc::driver::{result, sys};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::cuda::{DeviceFrame, ForeignContext, Part, Staging};
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{FrameInfo, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Drawing, Fill, Outputs, Params};
use gstsuperpixel::plan::Plan;

/// The other library: its context, and what tells that ours has let go of it.
struct Owner {
    context: sys::CUcontext,
    released: Arc<AtomicBool>,
}
// SAFETY: a handle, which any thread may use.
unsafe impl Send for Owner {}
// SAFETY: as above.
unsafe impl Sync for Owner {}

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: made by the test and destroyed once.
        unsafe { sys::cuCtxDestroy_v2(self.context).result().unwrap() };
        self.released.store(true, Ordering::Relaxed);
    }
}

/// A context of another library, and what tells that it has been given back.
fn foreign() -> (ForeignContext, Arc<AtomicBool>) {
    let mut context = std::ptr::null_mut();
    // SAFETY: a plain driver call.
    unsafe { sys::cuCtxCreate_v2(&mut context, 0, 0).result().unwrap() };
    let released = Arc::new(AtomicBool::new(false));
    let owner = Owner { context, released: released.clone() };
    (ForeignContext { handle: context as usize, ordinal: 0, keeper: Box::new(owner) }, released)
}

/// Whatever holds a context last gives back all else before that.
#[test]
fn the_last_holder_of_a_context_ends_it() {
    let Some(cuda) = device("the_last_holder_of_a_context_ends_it") else { return };
    let info = FrameInfo::new(Geometry::new(160, 96).unwrap(), PixelFormat::Rgba);
    let buffer = Buffer::new(info, Picture::Natural, 1, 0);
    for (what, temporal) in [("engine", false), ("engine", true), ("staging", false)] {
        let (context, released) = foreign();
        // SAFETY: the keeper destroys the context when it is dropped.
        let adopted = unsafe { cuda.adopt(context) }.unwrap();
        let plan = Plan::new(&Params { temporal, ..Params::default() }, info).unwrap();
        let mut staging = Staging::new(&adopted, info).unwrap();
        let mut engine = Engine::new(adopted, plan).unwrap();
        let frame = staging.upload(&buffer.frame()).unwrap();
        let mut map = vec![0; info.geometry.pixels()];
        let labels = Labels::new(info.geometry, &mut map, 160).unwrap();
        let outputs = Outputs { neighbors: true, ..Outputs::default() };
        engine.segment(&frame, &mut Some(labels), outputs).unwrap();
        if what == "engine" {
            drop(staging);
            assert!(!released.load(Ordering::Relaxed), "{what}");
            drop(engine);
        } else {
            drop(engine);
            assert!(!released.load(Ordering::Relaxed), "{what}");
            drop(staging);
        }
        assert!(released.load(Ordering::Relaxed), "{what}: the context is held for ever");
    }
}

/// An address of one context means nothing in another.
#[test]
fn frames_of_another_context_are_refused() {
    let Some(cuda) = device("frames_of_another_context_are_refused") else { return };
    let info = FrameInfo::new(Geometry::new(160, 96).unwrap(), PixelFormat::Rgba);
    let buffer = Buffer::new(info, Picture::Natural, 1, 0);
    let plan = || Plan::new(&Params::default(), info).unwrap();
    // SAFETY: the keeper destroys the context when it is dropped.
    let adopted = unsafe { cuda.adopt(foreign().0) }.unwrap();
    for (own, other) in [(&cuda, &adopted), (&adopted, &cuda)] {
        let mut engine = Engine::new(own.clone(), plan()).unwrap();
        let (mut there, mut here) = (Staging::new(other, info).unwrap(), Staging::new(own, info).unwrap());
        let mut frame = there.upload(&buffer.frame()).unwrap();
        let error = engine.submit(&frame, &mut None, Outputs::default()).unwrap_err().to_string();
        assert!(error.contains("another context"), "{error}");
        engine.segment(&here.upload(&buffer.frame()).unwrap(), &mut None, Outputs::default()).unwrap();
        assert!(engine.draw(&mut frame, &None, &Drawing { fill: Fill::Labels, boundaries: None }).is_err());
    }
}

#[test]
fn a_foreign_context_and_stream_are_adopted() {
    let Some(cuda) = device("a_foreign_context_and_stream_are_adopted") else { return };
    let geometry = Geometry::new(160, 96).unwrap();
    let info = FrameInfo::new(geometry, PixelFormat::Nv12);
    let outputs = Outputs { table: true, neighbors: true, mean_color: false, linear_light: false };
    let plan = || Plan::new(&Params::default(), info).unwrap();
    let shapes: Vec<_> = info.format.planes(geometry).collect();
    let released = Arc::new(AtomicBool::new(false));

    let mut context = std::ptr::null_mut();
    let mut stream = std::ptr::null_mut();
    let (mut device, mut host) = ([0u64; 2], [std::ptr::null_mut(); 2]);
    // SAFETY: plain driver calls; every result is checked and every handle used in its own context.
    unsafe {
        sys::cuCtxCreate_v2(&mut context, 0, 0).result().unwrap();
        sys::cuStreamCreate(&mut stream, 1).result().unwrap();
        for (i, (row, rows)) in shapes.iter().enumerate() {
            sys::cuMemAlloc_v2(&mut device[i], row * rows).result().unwrap();
            sys::cuMemHostAlloc(&mut host[i], row * rows, 0).result().unwrap();
        }
    }
    let owner = Owner { context, released: released.clone() };
    let foreign = ForeignContext { handle: context as usize, ordinal: 0, keeper: Box::new(owner) };
    // SAFETY: the keeper destroys the context when it is dropped.
    let adopted = unsafe { cuda.adopt(foreign) }.unwrap();
    let cpu = Cpu::new(1).unwrap();
    let mut reference = Engine::new(cpu, plan()).unwrap();
    let mut engine = Engine::new(adopted.clone(), plan()).unwrap();
    let mut kept = Vec::new();
    for seed in 0..3 {
        let buffer = Buffer::new(info, Picture::Natural, seed, 0);
        // SAFETY: the producer's stream has passed the copies of the last frame, which `counts` waited for; sizes are
        // those of the planes. The engine's stream waits for the producer's.
        let frame = unsafe {
            sys::cuCtxSetCurrent(context).result().unwrap();
            for (i, plane) in buffer.planes.iter().enumerate() {
                host[i].cast::<u8>().copy_from_nonoverlapping(plane.as_ptr(), plane.len());
                sys::cuMemcpyHtoDAsync_v2(device[i], host[i], plane.len(), stream).result().unwrap();
            }
            adopted.wait_for(stream as usize).unwrap();
            DeviceFrame::from_planes(info, [device[0], device[1], 0], [160, 160, 0]).unwrap()
        };
        engine.submit(&frame, &mut None, outputs).unwrap();
        let results = engine.results().unwrap();
        let counts = results.counts().unwrap();
        kept.push(results.keep(Some(counts)).unwrap());

        let mut map = vec![0; geometry.pixels()];
        let mut labels = Labels::new(geometry, &mut map, geometry.width() as usize).unwrap();
        let regions = reference.segment(&buffer.frame(), &mut labels, outputs).unwrap().clone();
        assert_eq!((counts.regions, counts.pairs), (regions.count, regions.neighbors.len() as u32));
        let read = |part| {
            let results = &kept[seed as usize];
            // SAFETY: as many bytes are there, and stay while the results do.
            unsafe { std::slice::from_raw_parts(results.address(part).unwrap(), results.bytes(part)) }
        };
        assert!(read(Part::Labels) == bytemuck::cast_slice::<u16, u8>(&map), "labels of frame {seed}");
        assert!(read(Part::Table) == bytemuck::cast_slice::<_, u8>(&regions.table), "table of frame {seed}");
        assert!(
            read(Part::Neighbors) == bytemuck::cast_slice::<_, u8>(&regions.neighbors),
            "pairs of frame {seed}"
        );
    }
    // SAFETY: a plane of three bytes a row is refused before anything reads it.
    assert!(unsafe { DeviceFrame::from_planes(info, [device[0], device[1], 0], [159, 160, 0]) }.is_err());
    drop(adopted);
    drop(engine);
    assert!(!released.load(Ordering::Relaxed), "results that are kept need the context");
    drop(kept);
    assert!(released.load(Ordering::Relaxed), "the context is held for ever");
}

/// Sets a flag, also where a test fails.
struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// `cuCtxSynchronize` fails where anything in the context is captured, and ends that capture: `torch.cuda.synchronize` on another thread.
#[test]
fn waits_for_the_whole_context_disturb_no_recording() {
    let Some(cuda) = device("waits_for_the_whole_context_disturb_no_recording") else { return };
    let info = FrameInfo::new(Geometry::new(97, 71).unwrap(), PixelFormat::Rgb);
    let buffer = Buffer::new(info, Picture::Natural, 1, 0);
    let plan = Plan::new(&Params { superpixel_size: 8, ..Params::default() }, info).unwrap();
    let done = AtomicBool::new(false);
    let context = cuda.context_handle();
    let waits = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            // SAFETY: the context is that of `cuda`, which lives until the thread has ended.
            unsafe { result::ctx::set_current(context as sys::CUcontext) }.unwrap();
            let mut waits = 0;
            while !done.load(Ordering::Relaxed) {
                // SAFETY: of the context that is current.
                unsafe { sys::cuCtxSynchronize() }.result().unwrap();
                waits += 1;
            }
            waits
        });
        let end = OnDrop(&done);
        let mut engine = Engine::new(cuda.clone(), plan).unwrap();
        for _ in 0..40 {
            // Another address, another graph.
            let mut staging = Staging::new(&cuda, info).unwrap();
            let mut map = vec![0; info.geometry.pixels()];
            let labels = Labels::new(info.geometry, &mut map, 97).unwrap();
            let frame = staging.upload(&buffer.frame()).unwrap();
            engine.segment(&frame, &mut Some(labels), Outputs::default()).unwrap();
        }
        drop(end);
        waiter.join().unwrap()
    });
    assert!(waits > 0);
}
