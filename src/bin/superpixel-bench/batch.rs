// SPDX-License-Identifier: MPL-2.0
//! Frames side by side on a device, in memory of their own there.

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
    engine: Engine<Cuda>,
    /// Of each frame, the address and row stride of each plane.
    planes: Vec<([u64; MOST_PLANES], [u32; MOST_PLANES])>,
    /// All frames.
    _memory: Vec<CudaSlice<u8>>,
}

impl BatchJob {
    /// Puts `frames` frames of the clip on the device.
    pub fn new(cuda: &Cuda, ordinal: usize, case: &Case, clip: &Clip, frames: u32) -> Result<Self> {
        let engine = Engine::for_batch(cuda, &Plan::new(&case.params, case.info)?, frames)?;
        let stream = CudaContext::new(ordinal)?.default_stream();
        let (mut planes, mut memory) = (Vec::new(), Vec::new());
        for pixels in clip.there_and_back().take(frames as usize) {
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
        Ok(Self { case: case.clone(), cuda: cuda.clone(), engine, planes, _memory: memory })
    }

    fn submit(&mut self) -> Result<(), Error> {
        let info: FrameInfo = self.case.info;
        let frames: Vec<_> = self
            .planes
            .iter()
            // SAFETY: `new` has made memory of the device's primary context for all planes of this format, which nobody else uses,
            // and has waited for the copies.
            .map(|&(addresses, strides)| unsafe { DeviceFrame::from_planes(info, addresses, strides) })
            .collect::<Result<_, _>>()?;
        self.engine.submit(&DeviceFrame::of_batch(&frames)?, &mut None, self.case.outputs)
    }
}

impl Job for BatchJob {
    fn frame(&mut self) -> Result<f64> {
        let cuda = self.cuda.clone();
        let ((), time) = cuda.device_time(|| self.submit())?;
        Ok(ms(time))
    }

    fn stages(&mut self, runs: usize) -> Result<Vec<(&'static str, f64)>> {
        self.engine.set_profiling(true);
        let mut samples = Vec::new();
        for _ in 0..runs {
            self.submit()?;
            let times = self.engine.take_device_times()?;
            samples.push(times.iter().map(|(name, time)| (name, ms(time))).collect());
        }
        self.engine.set_profiling(false);
        Ok(medians(&samples))
    }

    /// Host memory has no part in it.
    fn round_trip(&mut self) -> Result<Option<f64>> {
        Ok(None)
    }

    fn result(&mut self) -> Result<(u32, u32, Vec<u16>)> {
        self.submit()?;
        let (geometry, results) = (self.case.info.geometry, self.engine.results()?);
        let (mut map, mut regions) = (vec![0; geometry.pixels()], Regions::default());
        results.download_labels(&mut Labels::new(geometry, &mut map, geometry.width() as usize)?)?;
        results.download(&mut regions)?;
        Ok((regions.count, self.engine.plan().grid().step(), map))
    }
}
