// SPDX-License-Identifier: MPL-2.0
//! The backend in use: opened once at start, then the path of a buffer through it. The only place that knows them all.

use crate::backend::{Backend as _, StageTimes};
use crate::bad_buffers::Failure;
use crate::cpu::Cpu;
use crate::error::Result;
use crate::plan::Plan;

use super::cpu::CpuEngine;
use super::cuda::{CudaBackend, CudaEngine, DeviceContext, Pending};
use super::settings::Settings;
use super::task::{Found, Stream, Task};

/// How far a frame is.
// Moved once or twice a frame; a box would be one more allocation instead.
#[allow(clippy::large_enum_variant)]
pub(super) enum Progress {
    /// What is to be attached.
    Done(Found),
    /// [`ActiveEngine::finish`] finishes it.
    // Never made in a build without a device.
    #[allow(dead_code)]
    Started(Pending),
}

/// A backend that no engine holds.
pub(super) enum ActiveBackend {
    Cpu(Cpu),
    Cuda(CudaBackend),
}

impl ActiveBackend {
    /// Starts the threads of the CPU backend, at most one a core.
    pub(super) fn cpu(settings: &Settings) -> Result<Self> {
        Ok(Self::Cpu(Cpu::within_machine(settings.threads)?))
    }

    /// Opens the device.
    ///
    /// # Errors
    ///
    /// No driver, no device or a build without CUDA, with what to do.
    pub(super) fn cuda(settings: &Settings) -> Result<Self> {
        Ok(Self::Cuda(CudaBackend::open(&settings.device)?))
    }

    /// Whether it works in the memory of a device.
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

    /// The same in the device context of a buffer.
    pub(super) fn at(self, context: Option<DeviceContext>) -> Result<Self> {
        match (self, context) {
            (Self::Cuda(cuda), Some(context)) => Ok(Self::Cuda(cuda.at(context)?)),
            (backend, _) => Ok(backend),
        }
    }

    /// Makes what the frames of a plan need, `depth` of which may be in flight while the next comes.
    pub(super) fn engine(self, plan: Plan, depth: usize) -> Result<ActiveEngine> {
        Ok(match self {
            Self::Cpu(cpu) => ActiveEngine::Cpu(Box::new(CpuEngine::new(cpu, plan)?)),
            Self::Cuda(cuda) => ActiveEngine::Cuda(Box::new(cuda.engine(plan, depth)?)),
        })
    }
}

/// What segments the frames; one variant for each backend.
pub(super) enum ActiveEngine {
    Cpu(Box<CpuEngine>),
    Cuda(Box<CudaEngine>),
}

impl ActiveEngine {
    /// Gives the backend back, to be used with another plan.
    // No engine of a device exists in a build without.
    #[cfg_attr(not(feature = "cuda"), allow(unreachable_code))]
    pub(super) fn into_backend(self) -> ActiveBackend {
        match self {
            Self::Cpu(on) => ActiveBackend::Cpu(on.into_cpu()),
            Self::Cuda(on) => ActiveBackend::Cuda(on.into_backend()),
        }
    }

    /// Whether the device has failed for good, and its context with it.
    pub(super) fn is_broken(&self) -> bool {
        match self {
            Self::Cpu(_) => false,
            Self::Cuda(on) => on.is_broken(),
        }
    }

    pub(super) fn plan(&self) -> &Plan {
        match self {
            Self::Cpu(on) => on.plan(),
            Self::Cuda(on) => on.plan(),
        }
    }

    /// Continues with another plan where that follows this one, and says whether it does.
    pub(super) fn change(&mut self, plan: &Plan) -> Result<bool> {
        match self {
            Self::Cpu(on) => on.change(plan),
            Self::Cuda(on) => on.change(plan),
        }
    }

    /// The next frame has nothing to do with the last.
    pub(super) fn reset(&mut self) {
        match self {
            Self::Cpu(on) => on.reset(),
            Self::Cuda(on) => on.reset(),
        }
    }

    /// The lowest identity that no region has had yet.
    pub(super) fn next_id(&mut self) -> Result<u32> {
        match self {
            Self::Cpu(on) => on.next_id(),
            Self::Cuda(on) => on.next_id(),
        }
    }

    /// Gives identities from `id` on.
    pub(super) fn set_next_id(&mut self, id: u32) -> Result<()> {
        match self {
            Self::Cpu(on) => on.set_next_id(id),
            Self::Cuda(on) => on.set_next_id(id),
        }
    }

    /// Whether frames in the memory of `context` can be worked on.
    pub(super) fn reaches(&self, context: Option<&DeviceContext>) -> bool {
        match (self, context) {
            (Self::Cuda(on), Some(context)) => on.reaches(context),
            _ => true,
        }
    }

    /// Bytes that went over the bus since start, by their name in the property `stats`; nothing where there is no bus.
    pub(super) fn traffic(&self) -> Option<[(&'static str, u64); 3]> {
        match self {
            Self::Cpu(_) => None,
            Self::Cuda(on) => Some(on.traffic()),
        }
    }

    /// How long the stages of the last frame took, where the host can tell: a device only takes orders from it.
    pub(super) fn times(&self) -> Option<&StageTimes> {
        match self {
            Self::Cpu(on) => Some(on.times()),
            Self::Cuda(_) => None,
        }
    }

    /// Waits until nothing that belongs to the engine is in use.
    pub(super) fn synchronize(&self) {
        match self {
            Self::Cpu(_) => {}
            Self::Cuda(on) => on.synchronize(),
        }
    }

    /// Segments a frame and draws on it, or starts to.
    pub(super) fn run(
        &mut self,
        buffer: &mut gst::BufferRef,
        stream: &Stream,
        task: Task,
    ) -> Result<Progress, Failure> {
        match self {
            Self::Cpu(on) => on.run(buffer, stream, task).map(Progress::Done),
            Self::Cuda(on) => on.start(buffer, stream, task).map(Progress::Started),
        }
    }

    /// Waits for a frame that was started; a drawn frame of the host takes the buffer's place. `engine` gets the memory back if it is
    /// of the frame's kind.
    pub(super) fn finish(
        engine: Option<&mut Self>,
        pending: Pending,
        buffer: &mut gst::Buffer,
        info: &gst_video::VideoInfo,
    ) -> Result<Found, Failure> {
        let engine = engine.and_then(|engine| match engine {
            Self::Cpu(_) => None,
            Self::Cuda(on) => Some(&mut **on),
        });
        pending.finish(buffer, info, engine)
    }
}
