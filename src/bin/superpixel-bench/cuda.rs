// SPDX-License-Identifier: MPL-2.0
//! The CUDA backend by the device's own clock.

use std::time::Instant;

use cudarc::driver::CudaContext;
use cudarc::driver::sys::CUevent_flags;
use gstsuperpixel::algo::Algorithm;
use gstsuperpixel::backend::Backend;
use gstsuperpixel::cuda::{Cuda, Staging};
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{Frame, FrameMut, Labels};
use gstsuperpixel::plan::Plan;

use super::batch::BatchJob;
use super::{Case, Clip, Format, Frames, Job, Limit, NO_FRAMES, Result, Runner, median, ms};

/// Buffer of the copy test: far beyond the caches.
const COPY_BYTES: usize = 512 << 20;
const COPY_RUNS: usize = 15;

/// An opened device.
pub struct CudaRunner {
    cuda: Cuda,
    ordinal: usize,
    opening: Vec<(&'static str, f64)>,
}

impl CudaRunner {
    /// Opens a device; -1 takes the first that works.
    pub fn open(ordinal: i32) -> Result<Self> {
        // SAFETY: loads the driver's library by name, which has no unsound initialiser.
        if !unsafe { cudarc::driver::sys::is_culib_present() } {
            // The bindings panic without it; this is the error that says what to do.
            Cuda::new(ordinal)?;
        }
        let device = ordinal.max(0) as usize;
        let mut opening = Vec::new();
        let mut start = Instant::now();
        let mut part = |name| {
            opening.push((name, ms(start.elapsed())));
            start = Instant::now();
        };
        // First the costs that any program pays, then ours.
        cudarc::driver::result::init()?;
        part("driver");
        let context = CudaContext::new(device);
        part("context");
        let cuda = Cuda::new(ordinal)?;
        cuda.synchronize()?;
        part("kernels");
        // Held until here, so that it was made once.
        drop(context);
        Ok(Self { cuda, ordinal: device, opening })
    }
}

impl Runner for CudaRunner {
    fn has(&self, algorithm: Algorithm) -> bool {
        algorithm.capabilities().cuda
    }

    fn device(&self) -> String {
        format!("{}, {}", self.cuda.describe(), self.cuda.details())
    }

    fn driver(&self) -> String {
        let text = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        let version = line.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        version.map_or_else(|| "NVIDIA driver, version unknown".into(), |v| format!("NVIDIA driver {v}"))
    }

    fn limits(&self) -> Result<Vec<Limit>> {
        let context = CudaContext::new(self.ordinal)?;
        let stream = context.new_stream()?;
        let flags = Some(CUevent_flags::CU_EVENT_DEFAULT);
        let timed = |work: &mut dyn FnMut() -> Result<()>| -> Result<f64> {
            let mut times = Vec::new();
            for run in 0..=COPY_RUNS {
                let start = stream.record_event(flags)?;
                work()?;
                let end = stream.record_event(flags)?;
                // The first is for warming up.
                if run > 0 {
                    times.push(f64::from(start.elapsed_ms(&end)?));
                }
            }
            Ok(median(times))
        };
        let from = stream.alloc_zeros::<u8>(COPY_BYTES)?;
        let mut to = stream.alloc_zeros::<u8>(COPY_BYTES)?;
        let mut small = stream.alloc_zeros::<u8>(16)?;
        let pageable = vec![1u8; COPY_BYTES];
        let mut pageable_back = vec![2u8; COPY_BYTES];
        // SAFETY: the memory is uninitialized, and every byte of it is written before any is read.
        let mut pinned = unsafe { context.alloc_pinned::<u8>(COPY_BYTES)? };
        pinned.as_mut_slice()?.fill(3);
        let rate = |bytes: usize, ms: f64| bytes as f64 / ms / 1e6;
        let limit = |name: &str, value, unit| Limit { name: name.into(), value, unit };
        let gb = "GB/s";
        let copy = timed(&mut || Ok(stream.memcpy_dtod(&from, &mut to)?))?;
        let up = timed(&mut || Ok(stream.memcpy_htod(&pinned, &mut to)?))?;
        let down = timed(&mut || Ok(stream.memcpy_dtoh(&from, &mut pinned)?))?;
        let pageable_up = timed(&mut || Ok(stream.memcpy_htod(&pageable, &mut to)?))?;
        let pageable_down = timed(&mut || Ok(stream.memcpy_dtoh(&from, &mut pageable_back)?))?;
        let launch = timed(&mut || Ok(stream.memset_zeros(&mut small)?))?;
        let clock = timed(&mut || Ok(()))?;
        Ok(vec![
            limit("device copy", rate(2 * COPY_BYTES, copy), gb),
            limit("pinned host to device", rate(COPY_BYTES, up), gb),
            limit("device to pinned host", rate(COPY_BYTES, down), gb),
            limit("pageable host to device", rate(COPY_BYTES, pageable_up), gb),
            limit("device to pageable host", rate(COPY_BYTES, pageable_down), gb),
            limit("one launch that sets 16 bytes", 1e3 * launch, "us"),
            limit("nothing between two events", 1e3 * clock, "us"),
        ])
    }

    fn opening(&self) -> &[(&'static str, f64)] {
        &self.opening
    }

    fn job<'a>(&'a self, case: &Case, clip: &'a Clip) -> Result<Box<dyn Job + 'a>> {
        if let Some(frames) = case.batch {
            if case.drawing.is_some() {
                return Err("nothing is drawn on a batch; leave --batch or the drawing out".into());
            }
            return Ok(Box::new(BatchJob::new(&self.cuda, self.ordinal, case, clip, frames)?));
        }
        let engine = Engine::new(self.cuda.clone(), Plan::new(&case.params, case.info)?)?;
        let mut job = CudaJob {
            case: case.clone(),
            cuda: self.cuda.clone(),
            engine,
            staging: Staging::new(&self.cuda, case.info)?,
            frames: clip.there_and_back(),
            is_still: clip.frames.len() == 1,
            is_ready: true,
            drawn: clip.frames[0].clone(),
            map: vec![0; case.info.geometry.pixels()],
        };
        job.upload()?;
        Ok(Box::new(job))
    }
}

struct CudaJob<'a> {
    case: Case,
    cuda: Cuda,
    engine: Engine<Cuda>,
    staging: Staging,
    frames: Frames<'a>,
    /// True if all frames are the same.
    is_still: bool,
    /// Returns true if the next frame is on the device.
    is_ready: bool,
    drawn: Vec<u8>,
    map: Vec<u16>,
}

impl CudaJob<'_> {
    /// Puts the next frame on the device.
    fn upload(&mut self) -> Result<()> {
        let pixels = self.frames.next().ok_or(NO_FRAMES)?;
        let info = self.case.info;
        let (planes, strides) = Format(info.format).split(info.geometry, pixels);
        let frame = Frame::new(info, &planes, &strides)?;
        self.staging.upload(&frame)?;
        Ok(())
    }

    /// The same before the clock starts; what is there stays.
    fn show(&mut self) -> Result<()> {
        if !self.is_ready {
            self.upload()?;
        }
        self.is_ready = self.is_still;
        Ok(())
    }

    /// Puts the frame that is on the device through all stages.
    fn submit(&mut self) -> Result<(), gstsuperpixel::error::Error> {
        let mut frame = self.staging.frame();
        self.engine.submit(&frame, &mut None, self.case.outputs)?;
        match &self.case.drawing {
            Some(drawing) => self.engine.draw(&mut frame, &None, drawing),
            None => Ok(()),
        }
    }
}

impl Job for CudaJob<'_> {
    fn frame(&mut self) -> Result<f64> {
        self.show()?;
        let cuda = self.cuda.clone();
        let ((), time) = cuda.device_time(|| self.submit())?;
        Ok(ms(time))
    }

    fn stages(&mut self, runs: usize) -> Result<Vec<(&'static str, f64)>> {
        self.engine.set_profiling(true);
        let mut samples = Vec::new();
        for _ in 0..runs {
            self.show()?;
            self.submit()?;
            let times = self.engine.take_device_times()?;
            samples.push(times.iter().map(|(name, time)| (name, ms(time))).collect());
        }
        self.engine.set_profiling(false);
        Ok(super::medians(&samples))
    }

    fn round_trip(&mut self) -> Result<Option<f64>> {
        let start = Instant::now();
        let info = self.case.info;
        self.upload()?;
        self.submit()?;
        let geometry = info.geometry;
        let labels = Labels::new(geometry, &mut self.map, geometry.width() as usize)?;
        if self.case.drawing.is_some() {
            let (planes, strides) = Format(info.format).split_mut(geometry, &mut self.drawn);
            self.staging.download(&mut FrameMut::new(info, planes, &strides)?)?;
        }
        self.engine.finish(&mut Some(labels))?;
        self.cuda.synchronize()?;
        Ok(Some(ms(start.elapsed())))
    }

    fn result(&mut self) -> Result<(u32, u32, Vec<u16>)> {
        self.round_trip()?;
        Ok((self.engine.regions().count, self.engine.plan().grid().step(), self.map.clone()))
    }
}
