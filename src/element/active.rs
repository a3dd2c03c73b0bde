// SPDX-License-Identifier: MPL-2.0
//! The backend in use: opened once at start, then the path of a buffer through it. The only place that knows them all.

use crate::backend::{Backend as _, StageTimes};
use crate::cpu::Cpu;
#[cfg(feature = "cuda")]
use crate::cuda::{Cuda, DeviceFrame, Staging};
use crate::engine::Engine;
use crate::error::{Error, Result};
#[cfg(feature = "cuda")]
use crate::image::Frame;
use crate::image::Labels;
use crate::params::{Drawing, Outputs};
use crate::plan::Plan;
use crate::regions::Regions;

use super::frame::{DrawMap, ReadMap};
use super::settings::Settings;

/// An error of the library as an element error.
pub(super) fn library_error(error: Error) -> gst::ErrorMessage {
    gst::error_msg!(gst::LibraryError::Failed, ("{error}"))
}

/// What is wanted of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task {
    pub outputs: Outputs,
    /// `None` leaves the pixels alone.
    pub drawing: Option<Drawing>,
}

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

    /// Device and size in words.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Cpu(cpu) => cpu.describe(),
            #[cfg(feature = "cuda")]
            Self::Cuda(cuda) => cuda.describe(),
        }
    }

    /// Makes what the frames of a plan need.
    pub(super) fn engine(self, plan: Plan) -> Result<ActiveEngine> {
        Ok(match self {
            Self::Cpu(cpu) => {
                ActiveEngine::Cpu(Box::new(OnCpu { engine: Engine::new(cpu, plan)?, scratch: Vec::new() }))
            }
            #[cfg(feature = "cuda")]
            Self::Cuda(cuda) => ActiveEngine::Cuda(Box::new(OnCuda {
                staging: Staging::new(&cuda, plan.frame)?,
                engine: Engine::new(cuda.clone(), plan)?,
                cuda,
            })),
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
            Self::Cuda(on) => ActiveBackend::Cuda(on.cuda),
        }
    }

    pub(super) fn plan(&self) -> &Plan {
        match self {
            Self::Cpu(on) => on.engine.plan(),
            #[cfg(feature = "cuda")]
            Self::Cuda(on) => on.engine.plan(),
        }
    }

    /// The next frame has nothing to do with the last.
    pub(super) fn reset(&mut self) {
        match self {
            Self::Cpu(on) => on.engine.reset(),
            #[cfg(feature = "cuda")]
            Self::Cuda(on) => on.engine.reset(),
        }
    }

    /// The lowest identity that no region has had yet.
    pub(super) fn next_id(&mut self) -> Result<u32> {
        match self {
            Self::Cpu(on) => on.engine.next_id(),
            #[cfg(feature = "cuda")]
            Self::Cuda(on) => on.engine.next_id(),
        }
    }

    /// Gives identities from `id` on.
    pub(super) fn set_next_id(&mut self, id: u32) -> Result<()> {
        match self {
            Self::Cpu(on) => on.engine.set_next_id(id),
            #[cfg(feature = "cuda")]
            Self::Cuda(on) => on.engine.set_next_id(id),
        }
    }

    /// What the last frame gave beside its label map.
    pub(super) fn regions(&self) -> &Regions {
        match self {
            Self::Cpu(on) => on.engine.regions(),
            #[cfg(feature = "cuda")]
            Self::Cuda(on) => on.engine.regions(),
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

    /// Segments a frame, draws on it and, where `labels` is given, writes its label map there.
    pub(super) fn run(
        &mut self,
        buffer: &mut gst::BufferRef,
        info: &gst_video::VideoInfo,
        labels: Option<&mut Labels<'_>>,
        task: Task,
    ) -> Result<(), gst::ErrorMessage> {
        match self {
            Self::Cpu(on) => on.run(buffer, info, labels, task),
            #[cfg(feature = "cuda")]
            Self::Cuda(on) => on.run(buffer, info, labels, task),
        }
    }
}

/// The CPU backend works in the buffer's own memory.
pub(super) struct OnCpu {
    engine: Engine<Cpu>,
    /// Label plane where nobody wants one.
    scratch: Vec<u16>,
}

impl OnCpu {
    fn run(
        &mut self,
        buffer: &mut gst::BufferRef,
        info: &gst_video::VideoInfo,
        labels: Option<&mut Labels<'_>>,
        task: Task,
    ) -> Result<(), gst::ErrorMessage> {
        if let Some(labels) = labels {
            return segment_on_cpu(&mut self.engine, buffer, info, labels, task);
        }
        let geometry = self.engine.plan().frame.geometry;
        self.scratch.resize(geometry.pixels(), 0);
        let mut labels =
            Labels::new(geometry, &mut self.scratch, geometry.width as usize).map_err(library_error)?;
        segment_on_cpu(&mut self.engine, buffer, info, &mut labels, task)
    }
}

/// Maps the frame for what is to be done, and does it.
fn segment_on_cpu(
    engine: &mut Engine<Cpu>,
    buffer: &mut gst::BufferRef,
    info: &gst_video::VideoInfo,
    labels: &mut Labels<'_>,
    task: Task,
) -> Result<(), gst::ErrorMessage> {
    let layout = engine.plan().frame;
    let Some(drawing) = task.drawing else {
        let map = ReadMap::new(buffer, info, layout)?;
        engine.segment(&map.frame()?, labels, task.outputs).map_err(library_error)?;
        return Ok(());
    };
    let mut map = DrawMap::new(buffer, info, layout)?;
    let mut frame = map.frame_mut()?;
    engine.segment(&frame.as_frame(), labels, task.outputs).map_err(library_error)?;
    engine.draw(&mut frame, labels, &drawing).map_err(library_error)
}

/// The CUDA backend: pixels go up; labels, records and drawn pixels come back if they are wanted, with one wait.
#[cfg(feature = "cuda")]
pub(super) struct OnCuda {
    staging: Staging,
    engine: Engine<Cuda>,
    cuda: Cuda,
}

#[cfg(feature = "cuda")]
impl OnCuda {
    fn run(
        &mut self,
        buffer: &mut gst::BufferRef,
        info: &gst_video::VideoInfo,
        labels: Option<&mut Labels<'_>>,
        task: Task,
    ) -> Result<(), gst::ErrorMessage> {
        let layout = self.engine.plan().frame;
        let Some(drawing) = task.drawing else {
            let map = ReadMap::new(buffer, info, layout)?;
            let frame = map.frame()?;
            return self.finish_after(|on| {
                on.submit(&frame, task.outputs)?;
                on.download_labels(labels)
            });
        };
        let mut map = DrawMap::new(buffer, info, layout)?;
        let mut frame = map.frame_mut()?;
        self.finish_after(|on| {
            let mut on_device = on.submit(&frame.as_frame(), task.outputs)?;
            // Before the copies, which may hold the host up.
            on.engine.draw(&mut on_device, &(), &drawing)?;
            on.download_labels(labels)?;
            on.staging.download(&mut frame)
        })
    }

    fn submit(&mut self, frame: &Frame<'_>, outputs: Outputs) -> Result<DeviceFrame> {
        let frame = self.staging.upload(frame)?;
        self.engine.submit(&frame, &mut (), outputs)?;
        Ok(frame)
    }

    fn download_labels(&self, labels: Option<&mut Labels<'_>>) -> Result<()> {
        labels.map_or(Ok(()), |labels| self.engine.work().download_labels(labels))
    }

    /// Runs what puts a frame's work on the stream and waits for it. After an error too: what is on the stream by then
    /// may still read and write memory that `work` has borrowed.
    fn finish_after(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<(), gst::ErrorMessage> {
        let result = work(self).and_then(|()| self.engine.finish().map(drop));
        result.map_err(|error| {
            // A second error comes from the same failure.
            let _ = self.cuda.synchronize();
            library_error(error)
        })
    }
}
