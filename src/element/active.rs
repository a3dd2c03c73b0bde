// SPDX-License-Identifier: MPL-2.0
//! The backend in use: opened once at start, then the path of a buffer through it. No other file of the element knows
//! all backends.

use crate::any_engine::AnyEngine;
use crate::backend::{Backend as _, StageTimes};
use crate::bad_buffers::Failure;
use crate::cpu::Cpu;
use crate::error::Result;
use crate::plan::Plan;

use super::cpu::CpuEngine;
use super::cuda::{CudaBackend, CudaEngine, DeviceContext, Pending};
use super::mask::Counted;
use super::settings::Settings;
use super::task::{FrameResults, Stream, Task};
use crate::mask::PriorPlane;

/// State of a frame after [`ActiveEngine::run`].
// Moved once or twice a frame; a box would be one more allocation instead.
#[allow(clippy::large_enum_variant)]
pub(super) enum Progress {
    /// Finished, with results to attach.
    Done(FrameResults),
    /// In flight; [`ActiveEngine::finish`] finishes it.
    // Never made in a build without a device.
    #[allow(dead_code)]
    Started(Pending),
}

/// A backend without an engine.
pub(super) enum ActiveBackend {
    Cpu(Cpu),
    Cuda(CudaBackend),
}

impl ActiveBackend {
    /// Starts the threads of the CPU backend, at most one per core.
    pub(super) fn cpu(settings: &Settings) -> Result<Self> {
        Ok(Self::Cpu(Cpu::within_machine(settings.threads)?))
    }

    /// Opens the device.
    ///
    /// # Errors
    ///
    /// If there is no driver, no device, or no CUDA in this build; the message says what to do.
    pub(super) fn cuda(settings: &Settings) -> Result<Self> {
        Ok(Self::Cuda(CudaBackend::open(&settings.device)?))
    }

    /// Returns true if frames are worked on in device memory.
    pub(super) fn is_device(&self) -> bool {
        matches!(self, Self::Cuda(_))
    }

    /// Device and size in words.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Cpu(cpu) => cpu.describe(),
            Self::Cuda(cuda) => cuda.describe(),
        }
    }

    /// Moves the backend to the device context of a buffer.
    pub(super) fn at(self, context: Option<DeviceContext>) -> Result<Self> {
        match (self, context) {
            (Self::Cuda(cuda), Some(context)) => Ok(Self::Cuda(cuda.at(context)?)),
            (backend, _) => Ok(backend),
        }
    }

    /// Makes an engine for the frames of a plan, with up to `depth` frames in flight while the next comes.
    pub(super) fn engine(self, plan: Plan, depth: usize) -> Result<ActiveEngine> {
        Ok(match self {
            Self::Cpu(cpu) => ActiveEngine::Cpu(Box::new(CpuEngine::new(cpu, plan)?)),
            Self::Cuda(cuda) => ActiveEngine::Device(Box::new(cuda.engine(plan, depth)?)),
        })
    }
}

/// The engine that segments the frames.
pub(super) type ActiveEngine = AnyEngine<CpuEngine, CudaEngine>;

impl ActiveEngine {
    /// Returns the backend, for use with another plan.
    // A build without CUDA has no engine of a device.
    #[cfg_attr(not(feature = "cuda"), allow(unreachable_code))]
    pub(super) fn into_backend(self) -> ActiveBackend {
        match self {
            Self::Cpu(on) => ActiveBackend::Cpu(on.into_cpu()),
            Self::Device(on) => ActiveBackend::Cuda(on.into_backend()),
        }
    }

    /// Returns true if the device has failed for good, and its context with it.
    pub(super) fn is_broken(&self) -> bool {
        match self {
            Self::Cpu(_) => false,
            Self::Device(on) => on.is_broken(),
        }
    }

    /// Returns true if the engine can access memory of `context`.
    pub(super) fn reaches(&self, context: Option<&DeviceContext>) -> bool {
        match (self, context) {
            (Self::Device(on), Some(context)) => on.reaches(context),
            _ => true,
        }
    }

    /// Bytes that went over the bus since start, and frames of the last batch, by their names in the property `stats`; `None` on the CPU.
    pub(super) fn device_figures(&self) -> Option<[(&'static str, u64); 4]> {
        match self {
            Self::Cpu(_) => None,
            Self::Device(on) => Some(on.figures()),
        }
    }

    /// Times of the stages of the last frame; `None` on a device, since the host does not see when its stages run.
    pub(super) fn times(&self) -> Option<&StageTimes> {
        match self {
            Self::Cpu(on) => Some(on.times()),
            Self::Device(_) => None,
        }
    }

    /// Waits until memory of the engine is no longer in use.
    pub(super) fn synchronize(&self) {
        match self {
            Self::Cpu(_) => {}
            Self::Device(on) => on.synchronize(),
        }
    }

    /// Segments the pixels of a frame that count and draws on it, or starts to.
    pub(super) fn run(
        &mut self,
        buffer: &mut gst::BufferRef,
        stream: &Stream,
        task: Task,
        counted: Counted<'_>,
        prior: Option<&PriorPlane>,
    ) -> Result<Progress, Failure> {
        match self {
            Self::Cpu(on) => on.run(buffer, stream, task, counted, prior).map(Progress::Done),
            Self::Device(on) => on.start(buffer, stream, task, (counted, prior)).map(Progress::Started),
        }
    }

    /// Waits for a frame that was started. A drawn frame of the host replaces the buffer. `engine` gets the frame's
    /// memory back, if its frames are of the same kind.
    pub(super) fn finish(
        engine: Option<&mut Self>,
        pending: Pending,
        buffer: &mut gst::Buffer,
        info: &gst_video::VideoInfo,
    ) -> Result<FrameResults, Failure> {
        let engine = engine.and_then(|engine| match engine {
            Self::Cpu(_) => None,
            Self::Device(on) => Some(&mut **on),
        });
        pending.finish(buffer, info, engine)
    }
}
