// SPDX-License-Identifier: MPL-2.0
//! The backend in use: opened once at start, then the path of a buffer through it. The only place that knows them all.

use crate::backend::{Backend as _, StageTimes};
use crate::cpu::Cpu;
#[cfg(feature = "cuda")]
use crate::cuda::device::CurrentContext;
#[cfg(feature = "cuda")]
use crate::cuda::results::Pinned;
#[cfg(feature = "cuda")]
use crate::cuda::{Cuda, Part, Staging};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::image::{FrameInfo, Labels};
use crate::meta;
use crate::params::{Drawing, Outputs};
use crate::plan::Plan;

#[cfg(feature = "cuda")]
use super::cuda_memory::DeviceMap;
#[cfg(feature = "cuda")]
pub(super) use super::cuda_memory::Home;
use super::frame::{DrawMap, LabelPool, ReadMap};
#[cfg(feature = "cuda")]
use super::result_memory;
use super::settings::Settings;

/// An error of the library as an element error.
pub(super) fn library_error(error: Error) -> gst::ErrorMessage {
    gst::error_msg!(gst::LibraryError::Failed, ("{error}"))
}

/// What is wanted of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task {
    pub outputs: Outputs,
    /// Whether what was found is to be attached.
    pub labels: bool,
    /// `None` leaves the pixels alone.
    pub drawing: Option<Drawing>,
}

/// What the caps say.
pub(super) struct Stream {
    pub info: gst_video::VideoInfo,
    pub frame: FrameInfo,
    /// Whether frames are in device memory.
    #[cfg(feature = "cuda")]
    pub on_device: bool,
    pub pool: LabelPool,
}

impl Stream {
    /// Whether frames are in the host's memory.
    pub(super) fn in_system_memory(&self) -> bool {
        #[cfg(feature = "cuda")]
        return !self.on_device;
        #[cfg(not(feature = "cuda"))]
        return true;
    }
}

/// What a frame gave.
pub(super) struct Found {
    pub regions: u32,
    /// GRAY16_LE with a video meta, where it was asked for; so are the others.
    pub labels: Option<gst::Buffer>,
    pub table: Option<gst::Buffer>,
    pub motion: Option<gst::Buffer>,
    pub neighbors: Option<gst::Buffer>,
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

    /// Makes what the frames of a plan need.
    pub(super) fn engine(self, plan: Plan) -> Result<ActiveEngine> {
        #[cfg(feature = "cuda")]
        let _current = matches!(self, Self::Cuda(_)).then(CurrentContext::keep);
        Ok(match self {
            Self::Cpu(cpu) => {
                ActiveEngine::Cpu(Box::new(OnCpu { engine: Engine::new(cpu, plan)?, scratch: Vec::new() }))
            }
            #[cfg(feature = "cuda")]
            Self::Cuda(cuda) => ActiveEngine::Cuda(Box::new(OnCuda {
                staging: None,
                places: Vec::new(),
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
            Self::Cuda(on) => {
                // The engine goes here, and with it what is in its context.
                let _current = CurrentContext::keep();
                let cuda = on.cuda.clone();
                drop(on);
                ActiveBackend::Cuda(cuda)
            }
        }
    }

    /// Ends it, and lets go of the context that it was in.
    pub(super) fn end(self) {
        #[cfg(feature = "cuda")]
        let _current = matches!(self, Self::Cuda(_)).then(CurrentContext::keep);
        drop(self);
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
        #[cfg(feature = "cuda")]
        let _current = matches!(self, Self::Cuda(_)).then(CurrentContext::keep);
        match self {
            Self::Cpu(on) => on.engine.next_id(),
            #[cfg(feature = "cuda")]
            Self::Cuda(on) => on.engine.next_id(),
        }
    }

    /// Gives identities from `id` on.
    pub(super) fn set_next_id(&mut self, id: u32) -> Result<()> {
        #[cfg(feature = "cuda")]
        let _current = matches!(self, Self::Cuda(_)).then(CurrentContext::keep);
        match self {
            Self::Cpu(on) => on.engine.set_next_id(id),
            #[cfg(feature = "cuda")]
            Self::Cuda(on) => on.engine.set_next_id(id),
        }
    }

    /// Whether frames in the memory of `home` can be worked on.
    pub(super) fn reaches(&self, home: Option<&Home>) -> bool {
        match (self, home) {
            #[cfg(feature = "cuda")]
            (Self::Cuda(on), Some(home)) => on.cuda.context_handle() == home.handle(),
            _ => true,
        }
    }

    /// Bytes that went over the bus since start: pixels up, pixels down, results down.
    #[cfg(feature = "cuda")]
    pub(super) fn traffic(&self) -> Option<crate::cuda::TrafficCount> {
        match self {
            Self::Cpu(_) => None,
            Self::Cuda(on) => Some(on.cuda.traffic().count()),
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

    /// Whether frames of a stream can be under way while the next come.
    pub(super) fn overlaps(&self, stream: &Stream) -> bool {
        match self {
            Self::Cpu(_) => {
                let _ = stream;
                false
            }
            #[cfg(feature = "cuda")]
            Self::Cuda(_) => stream.in_system_memory(),
        }
    }

    /// Starts a frame that [`Pending::finish`] finishes; only where frames overlap.
    pub(super) fn start(
        &mut self,
        buffer: &gst::BufferRef,
        stream: &Stream,
        task: Task,
    ) -> Result<Pending, gst::ErrorMessage> {
        match self {
            Self::Cpu(_) => {
                let _ = (buffer, stream, task);
                Err(gst::error_msg!(
                    gst::LibraryError::Failed,
                    ("The CPU backend works on one frame at a time")
                ))
            }
            #[cfg(feature = "cuda")]
            Self::Cuda(on) => on.start(buffer, stream, task),
        }
    }

    /// Waits until nothing that belongs to the engine is in use.
    pub(super) fn settle(&self) {
        #[cfg(feature = "cuda")]
        if let Self::Cuda(on) = self {
            // A failure shows again in whatever is done next.
            let _ = on.cuda.synchronize();
        }
    }

    /// Segments a frame and draws on it; gives what is to be attached.
    pub(super) fn run(
        &mut self,
        buffer: &mut gst::BufferRef,
        stream: &Stream,
        task: Task,
    ) -> Result<Found, gst::ErrorMessage> {
        match self {
            Self::Cpu(on) => on.run(buffer, stream, task),
            #[cfg(feature = "cuda")]
            Self::Cuda(on) => on.run(buffer, stream, task),
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
        stream: &Stream,
        task: Task,
    ) -> Result<Found, gst::ErrorMessage> {
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
        self.scratch.resize(geometry.pixels(), 0);
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

/// The CUDA backend: frames of the host go up, and back if they are drawn on; frames in device memory stay there. What
/// was found stays on the device until somebody reads it.
#[cfg(feature = "cuda")]
pub(super) struct OnCuda {
    /// Taken with the first frame of the host.
    staging: Option<Staging>,
    /// Places for frames that are under way, taken with the first of them.
    places: Vec<Place>,
    engine: Engine<Cuda>,
    cuda: Cuda,
}

#[cfg(feature = "cuda")]
impl OnCuda {
    fn run(
        &mut self,
        buffer: &mut gst::BufferRef,
        stream: &Stream,
        task: Task,
    ) -> Result<Found, gst::ErrorMessage> {
        // Neighbors on this thread may have a context of their own.
        let _current = CurrentContext::keep();
        let (layout, info) = (self.engine.plan().frame, &stream.info);
        match (stream.on_device, task.drawing) {
            (true, None) => {
                let map = DeviceMap::read(buffer, info, layout)?;
                self.on_device(&map, task)
            }
            (true, Some(_)) => {
                let map = DeviceMap::draw(buffer, info, layout)?;
                self.on_device(&map, task)
            }
            (false, None) => {
                let map = ReadMap::new(buffer, info, layout)?;
                let frame = map.frame()?;
                self.finish_after(task, |on| {
                    let frame = on.staging()?.upload(&frame)?;
                    on.engine.submit(&frame, &mut (), task.outputs)
                })
            }
            (false, Some(drawing)) => {
                let mut map = DrawMap::new(buffer, info, layout)?;
                let mut frame = map.frame_mut()?;
                self.finish_after(task, |on| {
                    let mut on_device = on.staging()?.upload(&frame.as_frame())?;
                    on.engine.submit(&on_device, &mut (), task.outputs)?;
                    on.engine.draw(&mut on_device, &(), &drawing)?;
                    on.staging()?.download(&mut frame)
                })
            }
        }
    }

    fn on_device(&mut self, map: &DeviceMap<'_>, task: Task) -> Result<Found, gst::ErrorMessage> {
        let mut frame = map.frame()?;
        self.finish_after(task, |on| {
            if let Some(stream) = map.stream() {
                // SAFETY: the stream of the memory, whose context the engine has adopted.
                unsafe { on.cuda.wait_for(stream)? };
            }
            on.engine.submit(&frame, &mut (), task.outputs)?;
            task.drawing.map_or(Ok(()), |drawing| on.engine.draw(&mut frame, &(), &drawing))
        })
    }

    fn staging(&mut self) -> Result<&mut Staging> {
        match &mut self.staging {
            Some(staging) => Ok(staging),
            none => Ok(none.insert(Staging::new(&self.cuda, self.engine.plan().frame)?)),
        }
    }

    /// Runs what puts a frame's work on the stream and waits for it. After an error too: what is on the stream by then
    /// may still read and write memory that `work` has borrowed.
    fn finish_after(
        &mut self,
        task: Task,
        work: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<Found, gst::ErrorMessage> {
        let result = work(self).and_then(|()| {
            let counts = self.engine.work().counts(task.outputs)?;
            let kept =
                task.labels.then(|| self.engine.work().keep(Some(counts), task.outputs)).transpose()?;
            Ok((counts, kept))
        });
        let (counts, kept) = result.map_err(|error| {
            // A second error comes from the same failure.
            let _ = self.cuda.synchronize();
            library_error(error)
        })?;
        found(counts.regions, kept, self.engine.plan().frame.geometry, task)
    }

    /// Starts a frame of the host; what is put on the stream borrows nothing of the buffer.
    fn start(
        &mut self,
        buffer: &gst::BufferRef,
        stream: &Stream,
        task: Task,
    ) -> Result<Pending, gst::ErrorMessage> {
        let _current = CurrentContext::keep();
        let layout = self.engine.plan().frame;
        let map = ReadMap::new(buffer, &stream.info, layout)?;
        let frame = map.frame()?;
        let mut begin = || {
            let mut place = match self.places.pop() {
                Some(place) => place,
                None => Place {
                    staging: Staging::new(&self.cuda, layout)?,
                    counts: Pinned::new(&self.cuda, "pinned memory", 8)?,
                },
            };
            let work = place.begin(&self.cuda, &mut self.engine, &frame, task);
            if work.is_err() {
                // Before the place goes, to which copies may be under way. A second error comes from the same failure.
                let _ = self.cuda.synchronize();
            }
            Ok((place, work?))
        };
        let (place, (done, results)) = begin().map_err(library_error)?;
        Ok(Pending { place, results, done, frame: layout, task, cuda: self.cuda.clone() })
    }
}

/// What is to be attached.
#[cfg(feature = "cuda")]
fn found(
    regions: u32,
    kept: Option<crate::cuda::Results>,
    geometry: crate::image::Geometry,
    task: Task,
) -> Result<Found, gst::ErrorMessage> {
    let mut found = Found { regions, labels: None, table: None, motion: None, neighbors: None };
    if let Some(kept) = kept.map(std::sync::Arc::new) {
        found.labels = Some(super::frame::label_buffer(&kept, geometry)?);
        found.table = task.outputs.table.then(|| result_memory::buffer(&kept, Part::Table));
        found.neighbors = task.outputs.neighbors.then(|| result_memory::buffer(&kept, Part::Neighbors));
        found.motion = (kept.bytes(Part::Motion) > 0).then(|| result_memory::buffer(&kept, Part::Motion));
    }
    Ok(found)
}

/// Memory that a frame under way has for itself.
#[cfg(feature = "cuda")]
struct Place {
    staging: Staging,
    counts: Pinned,
}

#[cfg(feature = "cuda")]
impl Place {
    /// Puts a frame on the stream, up, through and down.
    fn begin(
        &mut self,
        cuda: &Cuda,
        engine: &mut Engine<Cuda>,
        frame: &crate::image::Frame<'_>,
        task: Task,
    ) -> Result<(cudarc::driver::CudaEvent, Option<crate::cuda::Results>)> {
        let mut on_device = self.staging.upload(frame)?;
        engine.submit(&on_device, &mut (), task.outputs)?;
        if let Some(drawing) = &task.drawing {
            engine.draw(&mut on_device, &(), drawing)?;
            // SAFETY: the place is used again once `Pending::finish` has waited, and given up after a wait, too.
            unsafe { self.staging.start_download()? };
        }
        engine.work().fetch_counts(task.outputs, &mut self.counts)?;
        let results = task.labels.then(|| engine.work().keep(None, task.outputs)).transpose()?;
        Ok((cuda.mark()?, results))
    }
}

/// A frame that the device may still be busy with.
#[cfg(feature = "cuda")]
pub(super) struct Pending {
    place: Place,
    results: Option<crate::cuda::Results>,
    done: cudarc::driver::CudaEvent,
    frame: FrameInfo,
    task: Task,
    cuda: Cuda,
}

/// There is no such frame without a device.
#[cfg(not(feature = "cuda"))]
pub(super) enum Pending {}

impl Pending {
    /// Waits until the device has let go of it.
    pub(super) fn settle(&self) {
        #[cfg(feature = "cuda")]
        // A failure shows again in whatever is done next.
        let _ = self.cuda.synchronize();
    }

    /// Waits for the frame and puts what was drawn into its buffer. `engine` takes the memory back if it is of its kind.
    #[cfg(feature = "cuda")]
    pub(super) fn finish(
        mut self,
        buffer: &mut gst::BufferRef,
        info: &gst_video::VideoInfo,
        engine: Option<&mut ActiveEngine>,
    ) -> Result<Found, gst::ErrorMessage> {
        let _current = CurrentContext::keep();
        self.cuda.wait(&self.done).map_err(library_error)?;
        if self.task.drawing.is_some() {
            let mut map = DrawMap::new(buffer, info, self.frame)?;
            self.place.staging.take_download(&mut map.frame_mut()?).map_err(library_error)?;
        }
        let counts = crate::cuda::Counts::read(self.task.outputs, &self.place.counts);
        if let Some(results) = &mut self.results {
            results.settle(counts, self.task.outputs);
        }
        if let Some(ActiveEngine::Cuda(on)) = engine
            && on.engine.plan().frame == self.frame
            && on.cuda.context_handle() == self.cuda.context_handle()
        {
            on.places.push(self.place);
        }
        found(counts.regions, self.results, self.frame.geometry, self.task)
    }

    /// Nothing to wait for.
    #[cfg(not(feature = "cuda"))]
    pub(super) fn finish(
        self,
        _: &mut gst::BufferRef,
        _: &gst_video::VideoInfo,
        _: Option<&mut ActiveEngine>,
    ) -> Result<Found, gst::ErrorMessage> {
        match self {}
    }
}
