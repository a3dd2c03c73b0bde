// SPDX-License-Identifier: MPL-2.0
//! Times every stage of a frame on the CPU: `cargo bench`, without GStreamer `cargo bench --no-default-features`.
//!
//! A stage's time is the engine's own. Before anything is timed the label map has to be the known one: a faster stage
//! that gives something else is no faster stage.

mod picture;

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{Frame, FrameInfo, FrameMut, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Boundaries, Drawing, Fill, Outputs, Params};
use gstsuperpixel::plan::Plan;

/// Beside the stages: all of them together.
const WHOLE: &str = "frame";

/// Everything that a frame needs, with all outputs on.
struct Bench {
    info: FrameInfo,
    engine: Engine<Cpu>,
    pixels: Vec<u8>,
    drawn: Vec<u8>,
    map: Vec<u16>,
}

impl Bench {
    fn new(geometry: Geometry) -> Self {
        let info = FrameInfo::new(geometry, PixelFormat::Rgba);
        let plan = Plan::new(&Params::default(), info).expect("default parameters are in range");
        let pixels = picture::rgba(geometry.width(), geometry.height());
        Self {
            info,
            engine: Engine::new(Cpu::new(0).expect("threads"), plan).expect("engine"),
            drawn: pixels.clone(),
            pixels,
            map: vec![0; geometry.pixels()],
        }
    }

    fn run(&mut self) {
        let geometry = self.info.geometry;
        let stride = 4 * geometry.width() as usize;
        let frame = Frame::new(self.info, &[&self.pixels], &[stride]).expect("frame");
        let mut labels = Labels::new(geometry, &mut self.map, geometry.width() as usize).expect("labels");
        let outputs = Outputs { table: true, neighbors: true, mean_color: true, linear_light: false };
        self.engine.segment(&frame, &mut labels, outputs).expect("segmented");
        let mut target = FrameMut::new(self.info, [self.drawn.as_mut_slice()], &[stride]).expect("frame");
        let drawing = Drawing { fill: Fill::MeanColor, boundaries: Some(Boundaries::default()) };
        self.engine.draw(&mut target, &labels, &drawing).expect("drawn");
    }

    fn stages(&self) -> Vec<&'static str> {
        self.engine.times().iter().map(|(name, _)| name).collect()
    }

    /// Runs `count` frames and adds up one stage, or all.
    fn time(&mut self, stage: &str, count: u64) -> Duration {
        (0..count)
            .map(|_| {
                self.run();
                let times = self.engine.times().iter();
                times
                    .filter(|(name, _)| stage == WHOLE || stage == *name)
                    .map(|(_, time)| time)
                    .sum::<Duration>()
            })
            .sum()
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    for (width, height, expected) in picture::KNOWN {
        let geometry = Geometry::new(width, height).expect("a frame size");
        let mut bench = Bench::new(geometry);
        bench.run();
        let hash = picture::hash(&bench.map);
        assert_eq!(
            hash, expected,
            "{width}x{height}: the label map changed; if that was wanted, its hash is {hash:#018x} (see tests/library/hashes.rs)"
        );
        let mut group = criterion.benchmark_group(format!("{width}x{height}"));
        group.throughput(Throughput::Elements(geometry.pixels() as u64)).sample_size(20);
        for stage in bench.stages().into_iter().chain([WHOLE]) {
            group.bench_function(BenchmarkId::from_parameter(stage), |b| {
                b.iter_custom(|count| bench.time(stage, count));
            });
        }
        group.finish();
    }
    criterion.final_summary();
}
