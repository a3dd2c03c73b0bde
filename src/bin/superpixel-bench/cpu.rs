// SPDX-License-Identifier: MPL-2.0
//! The CPU backend by the clock, and how fast the machine copies.

use std::time::Instant;

use gstsuperpixel::backend::Backend;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{Frame, FrameMut, Labels};
use gstsuperpixel::plan::Plan;

use super::{Case, Clip, Format, Frames, Job, Limit, NO_FRAMES, Result, Runner, median, medians, ms};

/// The CPU backend by the clock.
pub struct CpuRunner {
    cpu: Cpu,
    opening: [(&'static str, f64); 1],
}

impl CpuRunner {
    pub fn open(threads: u32) -> Result<Self> {
        let start = Instant::now();
        Ok(Self { cpu: Cpu::new(threads)?, opening: [("threads", ms(start.elapsed()))] })
    }
}

/// Buffer of the copy test: far beyond every cache.
const COPY_BYTES: usize = 256 << 20;
const COPY_RUNS: usize = 7;

/// Copies with `threads` threads and returns GB/s, read and write counted.
fn copy_bandwidth(threads: usize) -> f64 {
    let from = vec![1u8; COPY_BYTES];
    let mut to = vec![2u8; COPY_BYTES];
    let part = COPY_BYTES.div_ceil(threads);
    let times = (0..COPY_RUNS).map(|_| {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for (to, from) in to.chunks_mut(part).zip(from.chunks(part)) {
                scope.spawn(move || to.copy_from_slice(from));
            }
        });
        start.elapsed().as_secs_f64()
    });
    2.0 * COPY_BYTES as f64 / median(times.collect()) / 1e9
}

impl Runner for CpuRunner {
    fn device(&self) -> String {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        match model {
            Some((_, model)) => format!("{}, {model}", self.cpu.describe()),
            None => self.cpu.describe(),
        }
    }

    fn driver(&self) -> String {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        format!("{} {}", std::env::consts::OS, kernel.trim())
    }

    fn limits(&self) -> Result<Vec<Limit>> {
        let mut counts = vec![self.cpu.threads()];
        if self.cpu.threads() > 1 {
            counts.push(1);
        }
        Ok(counts
            .into_iter()
            .map(|threads| Limit {
                name: format!("memory copy, threads: {threads}"),
                value: copy_bandwidth(threads),
                unit: "GB/s",
            })
            .collect())
    }

    fn opening(&self) -> &[(&'static str, f64)] {
        &self.opening
    }

    fn job<'a>(&'a self, case: &Case, clip: &'a Clip) -> Result<Box<dyn Job + 'a>> {
        if case.batch.is_some() {
            return Err("--batch is for --backend cuda".into());
        }
        let engine = Engine::new(self.cpu.clone(), Plan::new(&case.params, case.info)?)?;
        let mut job = CpuJob {
            case: case.clone(),
            engine,
            frames: clip.there_and_back(),
            drawn: Vec::new(),
            map: vec![0; case.size.0.pixels()],
            stages: Vec::new(),
        };
        if case.drawing.is_some() {
            job.drawn.clone_from(&clip.frames[0]);
        }
        Ok(Box::new(job))
    }
}

struct CpuJob<'a> {
    case: Case,
    engine: Engine<Cpu>,
    frames: Frames<'a>,
    /// Canvas of all frames: each draws over the last one, which costs the same.
    drawn: Vec<u8>,
    map: Vec<u16>,
    /// Stage times of every frame so far.
    stages: Vec<Vec<(&'static str, f64)>>,
}

impl Job for CpuJob<'_> {
    fn frame(&mut self) -> Result<f64> {
        let geometry = self.case.size.0;
        let format = Format(self.case.info.format);
        let (planes, strides) = format.split(geometry, self.frames.next().ok_or(NO_FRAMES)?);
        let frame = Frame::new(self.case.info, &planes, &strides)?;
        let mut labels = Labels::new(geometry, &mut self.map, geometry.width() as usize)?;
        let start = Instant::now();
        self.engine.segment(&frame, &mut labels, self.case.outputs)?;
        if let Some(drawing) = &self.case.drawing {
            let (planes, strides) = format.split_mut(geometry, &mut self.drawn);
            let mut target = FrameMut::new(self.case.info, planes, &strides)?;
            self.engine.draw(&mut target, &labels, drawing)?;
        }
        let whole = ms(start.elapsed());
        self.stages.push(self.engine.times().iter().map(|(name, time)| (name, ms(time))).collect());
        Ok(whole)
    }

    fn stages(&mut self, _: usize) -> Result<Vec<(&'static str, f64)>> {
        Ok(medians(&self.stages))
    }

    fn round_trip(&mut self) -> Result<Option<f64>> {
        Ok(None)
    }

    fn result(&mut self) -> Result<(u32, u32, Vec<u16>)> {
        Ok((self.engine.regions().count, self.engine.plan().grid().step(), self.map.clone()))
    }
}
