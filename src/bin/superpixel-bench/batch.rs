// SPDX-License-Identifier: MPL-2.0
//! Frames side by side on a device, in memory of their own there; in temporal mode those of as many streams, which go on.

use std::time::Instant;

use cudarc::driver::{CudaContext, CudaSlice, DevicePtr};
use gstsuperpixel::cuda::{Cuda, DeviceFrame};
use gstsuperpixel::engine::Engine;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::{FrameInfo, Labels, MOST_PLANES};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::regions::Regions;

use super::{Case, Clip, Job, Result, medians, ms};

/// Times a batch by the device's own clock.
pub struct BatchJob {
    case: Case,
    cuda: Cuda,
    /// One for all, or one for each where they come one after the other.
    engines: Vec<Engine<Cuda>>,
    /// Of each frame, the address and row stride of each plane; in temporal mode of a clip there and back.
    planes: Vec<([u64; MOST_PLANES], [u32; MOST_PLANES])>,
    /// Frames of a batch.
    frames: usize,
    /// Batches before this one.
    submitted: usize,
    /// All frames.
    _memory: Vec<CudaSlice<u8>>,
}

impl BatchJob {
    /// Puts `frames` frames of the clip on the device.
    pub fn new(cuda: &Cuda, ordinal: usize, case: &Case, clip: &Clip, frames: u32) -> Result<Self> {
        let (plan, frames) = (Plan::new(&case.params, case.info)?, frames as usize);
        let engines = match case.one_by_one {
            false => vec![Engine::for_batch(cuda, &plan, frames as u32)?],
            true => (0..frames).map(|_| Engine::new(cuda.lane()?, plan.clone())).collect::<Result<_, _>>()?,
        };
        // Streams show the same clip, each one frame further than the one before, so that none jumps.
        let cycle = (2 * clip.frames.len()).saturating_sub(2).max(1);
        let held = if case.params.temporal { cycle } else { frames };
        let stream = CudaContext::new(ordinal)?.default_stream();
        let (mut planes, mut memory) = (Vec::new(), Vec::new());
        for pixels in clip.there_and_back().take(held) {
            let slice = stream.clone_htod(pixels)?;
            let (mut at, mut own) = (slice.device_ptr(&stream).0, ([0; MOST_PLANES], [0; MOST_PLANES]));
            for (i, (row, rows)) in case.info.format.planes(case.size.0).enumerate() {
                (own.0[i], own.1[i]) = (at, row as u32);
                at += (row * rows) as u64;
            }
            planes.push(own);
            memory.push(slice);
        }
        stream.synchronize()?;
        Ok(Self {
            case: case.clone(),
            cuda: cuda.clone(),
            engines,
            planes,
            frames,
            submitted: 0,
            _memory: memory,
        })
    }

    fn submit(&mut self) -> Result<(), Error> {
        let info: FrameInfo = self.case.info;
        let first = if self.case.params.temporal { self.submitted } else { 0 };
        self.submitted += 1;
        let frames: Vec<_> = (first..first + self.frames)
            .map(|i| self.planes[i % self.planes.len()])
            // SAFETY: `new` has made memory of the device's primary context for all planes of this format, which nobody else uses,
            // and has waited for the copies.
            .map(|(addresses, strides)| unsafe { DeviceFrame::from_planes(info, addresses, strides) })
            .collect::<Result<_, _>>()?;
        let outputs = self.case.outputs;
        match &mut self.engines[..] {
            [engine] => engine.submit(&DeviceFrame::of_batch(&frames)?, &mut None, outputs),
            engines => engines
                .iter_mut()
                .zip(&frames)
                .try_for_each(|(engine, frame)| engine.submit(frame, &mut None, outputs)),
        }
    }
}

impl Job for BatchJob {
    fn frame(&mut self) -> Result<f64> {
        if self.case.one_by_one {
            // On streams of their own, which no clock of one stream covers.
            let start = Instant::now();
            self.submit()?;
            self.engines.iter().try_for_each(|engine| engine.backend().synchronize())?;
            return Ok(ms(start.elapsed()));
        }
        let cuda = self.cuda.clone();
        let ((), time) = cuda.device_time(|| self.submit())?;
        Ok(ms(time))
    }

    fn stages(&mut self, runs: usize) -> Result<Vec<(&'static str, f64)>> {
        // Of many engines the first one's.
        self.engines[0].set_profiling(true);
        let mut samples = Vec::new();
        for _ in 0..runs {
            self.submit()?;
            let times = self.engines[0].take_device_times()?;
            samples.push(times.iter().map(|(name, time)| (name, ms(time))).collect());
        }
        self.engines[0].set_profiling(false);
        Ok(medians(&samples))
    }

    /// Host memory has no part in it.
    fn round_trip(&mut self) -> Result<Option<f64>> {
        Ok(None)
    }

    fn result(&mut self) -> Result<(u32, u32, Vec<u16>)> {
        self.submit()?;
        let engine = &self.engines[0];
        let (geometry, results) = (self.case.info.geometry, engine.results()?);
        let (mut map, mut regions) = (vec![0; geometry.pixels()], Regions::default());
        results.download_labels(&mut Labels::new(geometry, &mut map, geometry.width() as usize)?)?;
        results.download(&mut regions)?;
        Ok((regions.count, engine.plan().grid().step(), map))
    }
}
