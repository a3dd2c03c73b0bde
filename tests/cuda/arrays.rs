// SPDX-License-Identifier: MPL-2.0
//! Frames, labels and tables in another library's device memory, on its stream: nothing but events orders the two.
//!
//! Without a device each test prints that it was skipped; `SUPERPIXEL_REQUIRE_CUDA=1` makes that a failure. On the
//! emulated device `EMULATOR_LAZY=1` shows missing waits: work is then done when somebody waits for it.

use std::sync::Arc;

use crate::device::device;
use crate::pictures::{Buffer, Picture};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::cuda::{
    Cuda, DeviceBytes, DeviceFrame, DeviceLabels, DevicePool, Intake, LabelType, Part, owner_of,
};
use gstsuperpixel::engine::Engine;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::{FrameInfo, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::regions::Regions;

const ALL: Outputs = Outputs { table: true, neighbors: true, mean_color: false, linear_light: false };
const WIDTH: usize = 97;
const HEIGHT: usize = 71;
/// Labels from row to row in the other library's planes.
const STRIDE: usize = 103;

fn info() -> FrameInfo {
    FrameInfo::new(Geometry::new(WIDTH as u32, HEIGHT as u32).unwrap(), PixelFormat::Rgb)
}

fn plan() -> Plan {
    Plan::new(&Params { superpixel_size: 8, temporal: true, ..Params::default() }, info()).unwrap()
}

fn buffer(seed: u64) -> Buffer {
    Buffer::new(info(), Picture::Natural, seed, 0)
}

fn cpu_engine() -> Engine<Cpu> {
    Engine::new(Cpu::new(1).unwrap(), plan()).unwrap()
}

fn expected(engine: &mut Engine<Cpu>, buffer: &Buffer) -> (Vec<u16>, Regions) {
    let mut map = vec![0; WIDTH * HEIGHT];
    let mut labels = Labels::new(info().geometry, &mut map, WIDTH).unwrap();
    let regions = engine.segment(&buffer.frame(), &mut labels, ALL).unwrap().clone();
    (map, regions)
}

/// Another library on the same device: its stream, and what it holds there.
struct Library(Arc<CudaStream>);

impl Library {
    fn new(cuda: &Cuda) -> Self {
        let context = CudaContext::new(cuda.ordinal()).unwrap();
        // With it the first stream would wait for the whole context, which ends recordings on other threads.
        // SAFETY: memory of a library is used on its one stream.
        unsafe { context.disable_event_tracking() };
        Self(context.new_stream().unwrap())
    }

    fn handle(&self) -> usize {
        self.0.cu_stream() as usize
    }

    fn address<T>(&self, memory: &CudaSlice<T>) -> u64 {
        memory.device_ptr(&self.0).0
    }

    fn frame(&self, memory: &CudaSlice<u8>, stride: usize) -> DeviceFrame<'static> {
        // SAFETY: tests keep the memory until they have waited for all streams.
        unsafe { DeviceFrame::from_planes(info(), [self.address(memory), 0, 0], [stride as u32, 0, 0]) }
            .unwrap()
    }

    fn read<T: Default + Clone + cudarc::driver::DeviceRepr>(&self, memory: &CudaSlice<T>) -> Vec<T> {
        let out = self.0.clone_dtoh(memory).unwrap();
        self.0.synchronize().unwrap();
        out
    }
}

#[test]
fn frames_and_results_of_another_library_are_the_cpus() {
    let Some(cuda) = device("frames_and_results_of_another_library_are_the_cpus") else { return };
    let (library, mut reference) = (Library::new(&cuda), cpu_engine());
    let mut engine = Engine::new(cuda.lane().unwrap(), plan()).unwrap();
    let mut intake = Intake::new();
    let stride = buffer(0).strides[0];
    let bytes = buffer(0).planes[0].len();
    let mut places: Vec<_> = (0..2).map(|_| library.0.alloc_zeros::<u8>(bytes).unwrap()).collect();
    let plane = library.0.alloc_zeros::<u32>(STRIDE * HEIGHT).unwrap();
    let narrow = library.0.alloc_zeros::<u16>(STRIDE * HEIGHT).unwrap();
    for seed in 0..8 {
        let buffer = buffer(seed);
        let place = &mut places[seed as usize % 2];
        library.0.memcpy_htod(&buffer.planes[0], place).unwrap();
        // SAFETY: the stream is one of the same context, and lives.
        unsafe { engine.backend().wait_for(library.handle()).unwrap() };
        let frame = library.frame(place, stride);
        engine.submit(&intake.take(&cuda_of(&engine), &frame).unwrap(), &mut None, ALL).unwrap();
        for (address, kind) in [
            (library.address(&plane), LabelType::I32 { first: -7 }),
            (library.address(&narrow), LabelType::U16),
        ] {
            let row = kind.bytes() * STRIDE;
            // SAFETY: the planes have `STRIDE` labels a row, and stay until the end.
            let labels = unsafe { DeviceLabels::from_raw(address, row, info().geometry, kind) };
            engine.results().unwrap().export_labels(&mut labels.unwrap()).unwrap();
        }
        // SAFETY: as above.
        unsafe { engine.backend().precede(library.handle()).unwrap() };
        // The frame's memory is used again at once, in the order of the library's stream.
        library.0.memset_zeros(place).unwrap();
        let (map, regions) = expected(&mut reference, &buffer);
        let wide: Vec<i32> = library.read(&plane).iter().map(|&word| word.cast_signed()).collect();
        let narrow = library.read(&narrow);
        for (y, row) in map.chunks(WIDTH).enumerate() {
            let wanted: Vec<i32> = row.iter().map(|&label| i32::from(label) - 7).collect();
            assert_eq!(&wide[y * STRIDE..][..WIDTH], wanted, "row {y} of frame {seed}");
            assert_eq!(&narrow[y * STRIDE..][..WIDTH], row, "row {y} of frame {seed}");
            assert!(
                y + 1 == HEIGHT || wide[y * STRIDE + WIDTH..(y + 1) * STRIDE].iter().all(|&gap| gap == 0)
            );
        }
        check_tables(&engine, &library, &regions);
    }
}

fn cuda_of(engine: &Engine<Cuda>) -> Cuda {
    engine.backend().clone()
}

fn check_tables(engine: &Engine<Cuda>, library: &Library, regions: &Regions) {
    let results = engine.results().unwrap();
    let counts = results.counts().unwrap();
    assert_eq!((counts.regions, counts.pairs as usize), (regions.count, regions.neighbors.len()));
    let memory = library.0.alloc_zeros::<u64>(1 << 14).unwrap();
    let room = || {
        // SAFETY: the memory is as large and stays until the end; the streams are waited for.
        unsafe { DeviceBytes::from_raw(library.address(&memory), 8 << 14) }.unwrap()
    };
    let wait = || {
        // SAFETY: a live stream of the same context.
        unsafe {
            engine.backend().precede(library.handle()).unwrap();
        }
        let words = library.read(&memory);
        // SAFETY: the same.
        unsafe { engine.backend().wait_for(library.handle()).unwrap() };
        words
    };
    // SAFETY: the same.
    unsafe { engine.backend().wait_for(library.handle()).unwrap() };
    let parts: [(Part, &[u8]); 3] = [
        (Part::Table, bytemuck::cast_slice(&regions.table)),
        (Part::Motion, bytemuck::cast_slice(&regions.motion)),
        (Part::Neighbors, bytemuck::cast_slice(&regions.neighbors)),
    ];
    for (part, wanted) in parts {
        assert_eq!(results.export(part, &mut room()).unwrap(), wanted.len());
        assert_eq!(&bytemuck::cast_slice::<_, u8>(&wait())[..wanted.len()], wanted, "{part:?}");
    }
    results.export_edges(&mut room()).unwrap();
    let lower = regions.neighbors.iter().map(|pair| u64::from(pair.a));
    let higher = regions.neighbors.iter().map(|pair| u64::from(pair.b));
    let edges: Vec<u64> = lower.clone().chain(higher.clone()).chain(higher.chain(lower)).collect();
    assert_eq!(wait()[..edges.len()], edges);
}

#[test]
fn memory_of_ours_outlives_engine_and_pool() {
    let Some(cuda) = device("memory_of_ours_outlives_engine_and_pool") else { return };
    let library = Library::new(&cuda);
    let mut engine = Engine::new(cuda.lane().unwrap(), plan()).unwrap();
    let pool = DevicePool::new(engine.backend());
    let mut staging = gstsuperpixel::cuda::Staging::new(&cuda, info()).unwrap();
    let mut reference = cpu_engine();
    let mut held = Vec::new();
    for seed in 0..3 {
        engine.submit(&staging.upload(&buffer(seed).frame()).unwrap(), &mut None, ALL).unwrap();
        let mut memory = pool.take(2 * WIDTH * HEIGHT).unwrap();
        let mut labels = memory.labels(info().geometry, LabelType::U16).unwrap();
        engine.results().unwrap().export_labels(&mut labels).unwrap();
        memory.mark().unwrap();
        held.push((memory, expected(&mut reference, &buffer(seed)).0));
    }
    drop((engine, pool, staging));
    for (memory, wanted) in &held {
        // SAFETY: a live stream of the same context.
        unsafe { memory.precede(library.handle()).unwrap() };
        // SAFETY: the memory holds as many labels, is borrowed, and is given back to its owner below.
        let view = unsafe { library.0.upgrade_device_ptr::<u16>(memory.address(), WIDTH * HEIGHT) };
        assert_eq!(library.read(&view), *wanted);
        view.leak();
    }
}

#[test]
fn memory_that_does_not_fit_is_refused() {
    let Some(cuda) = device("memory_that_does_not_fit_is_refused") else { return };
    let mut engine = Engine::new(cuda.clone(), plan()).unwrap();
    let mut staging = gstsuperpixel::cuda::Staging::new(&cuda, info()).unwrap();
    engine.submit(&staging.upload(&buffer(0).frame()).unwrap(), &mut None, ALL).unwrap();
    let results = engine.results().unwrap();
    let pool = DevicePool::new(&cuda);
    let mut memory = pool.take(64).unwrap();
    let too_small =
        |result: Result<(), Error>| assert!(matches!(result, Err(Error::Plane { .. })), "{result:?}");
    too_small(memory.labels(info().geometry, LabelType::U16).map(drop));
    too_small(results.export(Part::Table, &mut memory.bytes()).map(drop));
    too_small(results.export_edges(&mut memory.bytes()));
    let mut memory = pool.take(4 * WIDTH * HEIGHT).unwrap();
    let other = Geometry::new(WIDTH as u32, HEIGHT as u32 - 1).unwrap();
    let refused = results.export_labels(&mut memory.labels(other, LabelType::U16).unwrap());
    assert!(matches!(refused, Err(Error::Labels { .. })));
    for (address, stride) in [(0, 400), (257, 400), (256, 2 * WIDTH), (256, 390), (256, 5 << 34)] {
        // SAFETY: refused, so that nothing is written there.
        let labels =
            unsafe { DeviceLabels::from_raw(address, stride, info().geometry, LabelType::I32 { first: 0 }) };
        too_small(labels.map(drop));
    }
    for address in [0, 260] {
        // SAFETY: as above.
        too_small(unsafe { DeviceBytes::from_raw(address, 800) }.map(drop));
    }
}

#[test]
fn addresses_are_known_or_not() {
    let Some(cuda) = device("addresses_are_known_or_not") else { return };
    let memory = DevicePool::new(&cuda).take(100).unwrap();
    let owner = owner_of(memory.address() + 50).unwrap().unwrap();
    assert_eq!(owner.ordinal, cuda.ordinal());
    assert!([0, cuda.context_handle()].contains(&owner.context));
    let host = [0u8; 16];
    assert_eq!(owner_of(host.as_ptr() as u64).unwrap(), None);
    assert_eq!(owner_of(0).unwrap(), None);
}
