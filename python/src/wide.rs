// SPDX-License-Identifier: MPL-2.0
//! Label maps of 32 bits of images in the host's memory: engines on either backend.

use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::cuda::Cuda;
use gstsuperpixel::error::{Error, Result};
use gstsuperpixel::image::{Frame, FrameInfo, Geometry};
use gstsuperpixel::params::Params;
use gstsuperpixel::wide;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::Converted;
use crate::batch::{Job, Stopped};
use crate::error::Failure;
use crate::plane::Plane;
use crate::prior::with_prior;
use crate::watch::Watch;
use crate::wide_device::WideDevice;

/// Refuses a first label from which an image of that size could have labels that 32 bits do not hold.
pub fn check_start(start: i32, geometry: Geometry) -> PyResult<()> {
    let most = i64::from(i32::MAX) - geometry.pixels() as i64;
    if i64::from(start) > most {
        return Err(PyValueError::new_err(format!("start_label must be at most {most} for this image")));
    }
    Ok(())
}

/// An engine for label maps of 32 bits.
pub enum WideEngine {
    /// On the CPU.
    Cpu(Box<wide::Engine<Cpu>>),
    /// On a device.
    Device(Box<WideDevice>),
}

impl WideEngine {
    /// An engine that clusters on `cuda`, or on the CPU where there is none.
    pub fn new(cpu: &Cpu, cuda: Option<&Cuda>, params: &Params, info: FrameInfo) -> Result<Self> {
        let plan = wide::Plan::new(params, info)?;
        Ok(match cuda {
            Some(cuda) => Self::Device(Box::new(WideDevice::new(cuda, cpu, plan)?)),
            None => Self::Cpu(Box::new(wide::Engine::new(cpu.clone(), cpu.clone(), plan)?)),
        })
    }

    /// Its plan.
    pub fn plan(&self) -> &wide::Plan {
        match self {
            Self::Cpu(engine) => engine.plan(),
            Self::Device(engine) => engine.plan(),
        }
    }

    /// Segments a frame of the host, and returns the number of labels. Signals are looked after between windows.
    pub fn segment(
        &mut self,
        frame: &Frame<'_>,
        plane: &mut Plane<'_>,
        stride: usize,
        watch: &Watch,
    ) -> Result<u32, Failure> {
        let look = || watch.look_if_due();
        plane.fill_wide(frame.info().geometry, stride, |labels, stride| match self {
            Self::Cpu(engine) => engine.segment(frame, labels, stride, look),
            Self::Device(engine) => engine.segment_host(frame, labels, stride, look),
        })
    }
}

/// Segments images one after another, each on all threads: they are large. After an error the labels of some are there.
pub fn run(params: &Params, cpu: &Cpu, jobs: Vec<Job<'_>>, watch: &Watch) -> Result<(), Stopped> {
    let (mut converted, mut kept) = (Converted::default(), None::<WideEngine>);
    for Job { index, source, mask, prior, mut plane, stride, .. } in jobs {
        let done = source.with(cpu, mask, &mut converted, |frame| {
            let info = *frame.info();
            let engine = match kept.take().filter(|engine| engine.plan().frame() == info) {
                Some(engine) => engine,
                None => WideEngine::new(cpu, None, params, info)?,
            };
            // What Python raises meanwhile is no error of the library.
            Ok::<_, Error>(kept.insert(engine).segment(&with_prior(frame, prior)?, &mut plane, stride, watch))
        });
        done.and_then(|done| done).map_err(|failure| Stopped { index: Some(index), failure })?;
        watch.note();
        watch.look_if_due().map_err(Stopped::by)?;
    }
    Ok(())
}
