// SPDX-License-Identifier: MPL-2.0
//! The backend in use: opened once at start, then the path of a buffer through it. The only place that knows them all.

use crate::backend::{Backend as _, StageTimes};
use crate::bad_buffers::Failure;
use crate::cpu::Cpu;
use crate::cpu::memory::{self, Array};
#[cfg(feature = "cuda")]
use crate::cuda::Cuda;
#[cfg(feature = "cuda")]
use crate::cuda::device::CurrentContext;
use crate::engine::Engine;
#[cfg(not(feature = "cuda"))]
use crate::error::Error;
use crate::error::Result;
use crate::image::Labels;
use crate::meta;
use crate::plan::Plan;

#[cfg(feature = "cuda")]
pub(super) use super::cuda_memory::Home;
use super::frame::{DrawMap, ReadMap};
#[cfg(feature = "cuda")]
use super::on_cuda::OnCuda;
#[cfg(feature = "cuda")]
pub(super) use super::on_cuda::Pending;
use super::settings::Settings;
use super::task::{Found, Stream, Task, library_error};

/// Until it is dropped, whatever is done may change what context is current on this thread, which is not ours.
#[cfg(feature = "cuda")]
pub(super) fn keep_context() -> CurrentContext {
    CurrentContext::keep()
}

/// There are no contexts without devices.
#[cfg(not(feature = "cuda"))]
pub(super) struct NoContext;

#[cfg(not(feature = "cuda"))]
pub(super) fn keep_context() -> NoContext {
    NoContext
}

/// How far a frame is.
// Moved once or twice a frame; a box would be one more allocation instead.
#[allow(clippy::large_enum_variant)]
pub(super) enum Progress {
    /// What is to be attached.
    Done(Found),
    /// [`Pending::finish`] finishes it.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    Started(Pending),
}

/// Where a buffer's memory lives; there is no such place without a device.
#[cfg(not(feature = "cuda"))]
pub(super) enum Home {}

/// A backend that no engine holds.
pub(super) enum ActiveBackend {
    Cpu(Cpu),
    #[cfg(feature = "cuda")]
    Cuda(Cuda),
}

impl ActiveBackend {
    /// Starts the threads of the CPU backend.
    pub(super) fn cpu(settings: &Settings) -> Result<Self> {
        Ok(Self::Cpu(Cpu::new(settings.threads)?))
    }

    /// Opens the device.
    ///
    /// Errors: no driver, no device or a build without CUDA, with what to do.
    #[cfg(feature = "cuda")]
    pub(super) fn cuda(settings: &Settings) -> Result<Self> {
        Ok(Self::Cuda(Cuda::new(settings.cuda_device_id)?))
    }

    /// Opens the device.
    ///
    /// Errors: always, since the build has no CUDA.
    #[cfg(not(feature = "cuda"))]
    pub(super) fn cuda(_: &Settings) -> Result<Self> {
        let reason = "not in this build; build with the cargo feature `cuda` or use the cpu backend";
        Err(Error::Backend { backend: "cuda", reason: reason.into() })
    }

    /// Whether it works in the memory of a device.
    pub(super) fn is_device(&self) -> bool {
        !matches!(self, Self::Cpu(_))
    }

    /// Device and size in words.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Cpu(cpu) => cpu.describe(),
            #[cfg(feature = "cuda")]
            Self::Cuda(cuda) => cuda.describe(),
        }
    }

    /// The same where a buffer's memory lives.
    #[cfg(feature = "cuda")]
    pub(super) fn at(self, home: Option<Home>) -> Result<Self> {
        let _current = matches!(self, Self::Cuda(_)).then(CurrentContext::keep);
        match (self, home) {
            (Self::Cuda(cuda), Some(home)) if cuda.context_handle() != home.handle() => {
                // SAFETY: the context is that of a GstCudaContext, which `home` holds.
                unsafe { cuda.adopt(home.into_foreign()) }.map(Self::Cuda)
            }
            (backend, _) => Ok(backend),
        }
    }

    /// The same: there is one place only.
    #[cfg(not(feature = "cuda"))]
    pub(super) fn at(self, _: Option<Home>) -> Result<Self> {
        Ok(self)
    }

    /// Makes what the frames of a plan need, `depth` of which may be under way while the next comes.
    pub(super) fn engine(
        self,
        plan: Plan,
        #[cfg_attr(not(feature = "cuda"), allow(unused_variables))] depth: usize,
    ) -> Result<ActiveEngine> {
        #[cfg(feature = "cuda")]
        let _current = matches!(self, Self::Cuda(_)).then(CurrentContext::keep);
        Ok(match self {
            Self::Cpu(cpu) => {
                ActiveEngine::Cpu(Box::new(OnCpu { engine: Engine::new(cpu, plan)?, scratch: Array::new() }))
            }
            #[cfg(feature = "cuda")]
            Self::Cuda(cuda) => ActiveEngine::Cuda(Box::new(OnCuda::new(cuda, plan, depth)?)),
        })
    }
}

/// What segments the frames; one variant for each backend.
pub(super) enum ActiveEngine {
    Cpu(Box<OnCpu>),
    #[cfg(feature = "cuda")]
    Cuda(Box<OnCuda>),
}

impl ActiveEngine {
    /// Gives the backend back, to be used with another plan.
    pub(super) fn into_backend(self) -> ActiveBackend {
        match self {
            Self::Cpu(on) => ActiveBackend::Cpu(on.engine.into_backend()),
            #[cfg(feature = "cuda")]
            Self::Cuda(on) => {
                let _current = CurrentContext::keep();
                ActiveBackend::Cuda(on.into_cuda())
            }
        }
    }

    /// Ends it, and lets go of the context that it was in; says whether that is broken.
    pub(super) fn end(self) -> bool {
        match self {
            Self::Cpu(_) => false,
            #[cfg(feature = "cuda")]
            Self::Cuda(on) => {
                let _current = CurrentContext::keep();
                let broken = !on.cuda().works();
                drop(on);
                broken
            }
        }
    }

    pub(super) fn plan(&self) -> &Plan {
        match self {
            Self::Cpu(on) => on.engine.plan(),
            #[cfg(feature = "cuda")]
            Self::Cuda(on) => on.plan(),
        }
    }

    /// Goes on with another plan where that follows this one, and says whether it does.
    pub(super) fn change(&mut self, plan: &Plan) -> Result<bool> {
        match self {
            Self::Cpu(on) => on.engine.change(plan),
            #[cfg(feature = "cuda")]
            Self::Cuda(on) => {
                let _current = CurrentContext::keep();
                on.change(plan)
            }
        }
    }

    /// The next frame has nothing to do with the last.
    pub(super) fn reset(&mut self) {
        match self {
            Self::Cpu(on) => on.engine.reset(),
            #[cfg(feature = "cuda")]
            Self::Cuda(on) => on.reset(),
        }
    }

    /// The lowest identity that no region has had yet.
    pub(super) fn next_id(&mut self) -> Result<u32> {
        #[cfg(feature = "cuda")]
        let _current = matches!(self, Self::Cuda(_)).then(CurrentContext::keep);
        match self {
            Self::Cpu(on) => on.engine.next_id(),
            #[cfg(feature = "cuda")]
            Self::Cuda(on) => on.next_id(),
        }
    }

    /// Gives identities from `id` on.
    pub(super) fn set_next_id(&mut self, id: u32) -> Result<()> {
        #[cfg(feature = "cuda")]
        let _current = matches!(self, Self::Cuda(_)).then(CurrentContext::keep);
        match self {
            Self::Cpu(on) => on.engine.set_next_id(id),
            #[cfg(feature = "cuda")]
            Self::Cuda(on) => on.set_next_id(id),
        }
    }

    /// Whether frames in the memory of `home` can be worked on.
    pub(super) fn reaches(&self, home: Option<&Home>) -> bool {
        match (self, home) {
            #[cfg(feature = "cuda")]
            (Self::Cuda(on), Some(home)) => on.cuda().context_handle() == home.handle(),
            _ => true,
        }
    }

    /// Bytes that went over the bus since start: pixels up, pixels down, results down.
    #[cfg(feature = "cuda")]
    pub(super) fn traffic(&self) -> Option<crate::cuda::TrafficCount> {
        match self {
            Self::Cpu(_) => None,
            Self::Cuda(on) => Some(on.cuda().traffic().count()),
        }
    }

    /// How long the stages of the last frame took, where the host can tell: a device only takes orders from it.
    pub(super) fn times(&self) -> Option<&StageTimes> {
        match self {
            Self::Cpu(on) => Some(on.engine.times()),
            #[cfg(feature = "cuda")]
            Self::Cuda(_) => None,
        }
    }

    /// Waits until nothing that belongs to the engine is in use.
    pub(super) fn settle(&self) {
        #[cfg(feature = "cuda")]
        if let Self::Cuda(on) = self {
            let _current = CurrentContext::keep();
            on.settle();
        }
    }

    /// Waits for a frame that was started; a drawn frame of the host takes the buffer's place. `engine` gets the memory back if it is
    /// of the frame's kind. Whoever calls keeps the current context.
    #[cfg(feature = "cuda")]
    pub(super) fn finish(
        engine: Option<&mut Self>,
        pending: Pending,
        buffer: &mut gst::Buffer,
        info: &gst_video::VideoInfo,
    ) -> Result<Found, Failure> {
        let on_cuda = engine.and_then(|engine| match engine {
            Self::Cpu(_) => None,
            Self::Cuda(on) => Some(&mut **on),
        });
        pending.finish(buffer, info, on_cuda)
    }

    /// There is no such frame without a device.
    #[cfg(not(feature = "cuda"))]
    pub(super) fn finish(
        _: Option<&mut Self>,
        pending: Pending,
        _: &mut gst::Buffer,
        _: &gst_video::VideoInfo,
    ) -> Result<Found, Failure> {
        match pending {}
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
            #[cfg(feature = "cuda")]
            Self::Cuda(on) => on.start(buffer, stream, task).map(Progress::Started),
        }
    }
}

/// The CPU backend works in the buffer's own memory.
pub(super) struct OnCpu {
    engine: Engine<Cpu>,
    /// Label plane where nobody wants one.
    scratch: Array<u16>,
}

impl OnCpu {
    fn run(&mut self, buffer: &mut gst::BufferRef, stream: &Stream, task: Task) -> Result<Found, Failure> {
        if task.labels {
            let engine = &mut self.engine;
            let run = |labels: &mut Labels<'_>| segment_on_cpu(engine, buffer, &stream.info, labels, task);
            let (labels, ()) = stream.pool.fill(run)?;
            let regions = self.engine.regions();
            return Ok(Found {
                regions: regions.count,
                labels: Some(labels),
                table: task.outputs.table.then(|| meta::records(&regions.table)),
                motion: (!regions.motion.is_empty()).then(|| meta::records(&regions.motion)),
                neighbors: task.outputs.neighbors.then(|| meta::records(&regions.neighbors)),
            });
        }
        let geometry = self.engine.plan().frame.geometry;
        memory::resize(&mut self.scratch, "label map", geometry.pixels(), 0).map_err(library_error)?;
        let mut labels =
            Labels::new(geometry, &mut self.scratch, geometry.width as usize).map_err(library_error)?;
        segment_on_cpu(&mut self.engine, buffer, &stream.info, &mut labels, task)?;
        Ok(Found {
            regions: self.engine.regions().count,
            labels: None,
            table: None,
            motion: None,
            neighbors: None,
        })
    }
}

/// Maps the frame for what is to be done, and does it.
fn segment_on_cpu(
    engine: &mut Engine<Cpu>,
    buffer: &mut gst::BufferRef,
    info: &gst_video::VideoInfo,
    labels: &mut Labels<'_>,
    task: Task,
) -> Result<(), Failure> {
    let layout = engine.plan().frame;
    let Some(drawing) = task.drawing else {
        let map = ReadMap::new(buffer, info, layout)?;
        engine.segment(&map.frame()?, labels, task.outputs).map_err(library_error)?;
        return Ok(());
    };
    let mut map = DrawMap::new(buffer, info, layout)?;
    let mut frame = map.frame_mut()?;
    engine.segment(&frame.as_frame(), labels, task.outputs).map_err(library_error)?;
    Ok(engine.draw(&mut frame, labels, &drawing).map_err(library_error)?)
}

/// A frame in flight: there is none without a device.
#[cfg(not(feature = "cuda"))]
pub(super) enum Pending {}

#[cfg(not(feature = "cuda"))]
impl Pending {
    /// Nothing to wait for.
    pub(super) fn settle(&self) {
        match *self {}
    }
}
