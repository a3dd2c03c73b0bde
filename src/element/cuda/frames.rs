// SPDX-License-Identifier: MPL-2.0
//! Frames on a CUDA device: launched on streams one after the other, and finished in the same order.
//!
//! The host waits for a frame only when that leaves the queue of frames in flight in `imp.rs`: the metadata contains
//! the number of regions, and a memory without a stream of its own has to be complete by then. Frames take turns on
//! lanes, each with a stream and scratch memory of its own, since a frame is many short launches that leave most of a
//! device idle. Frames of the host are uploaded and downloaded on streams of their own.

use cudarc::driver::CudaEvent;

use crate::any_engine::Continuity;
use crate::backend::Backend as _;
use crate::bad_buffers::Failure;
use crate::batcher::Member;
use crate::buffers::DeviceResults;
use crate::cuda::frame_mask::{FrameMask, FramePrior};
use crate::cuda::host_frames::HostFrames;
use crate::cuda::{Cuda, KeepsContext, Kept, Staging};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::image::FrameInfo;
use crate::mask::PriorPlane;
use crate::params::Fill;
use crate::plan::Plan;

use super::drawn::{Drawn, host_layout};
use super::group;
use super::input::{Input, masked, with_prior};
use super::memory::{DeviceContext, DeviceMap};
use super::results;
use super::settings::DeviceSettings;
use crate::element::frame::ReadMap;
use crate::element::log::CAT;
use crate::element::mask::Counted;
use crate::element::task::{FrameResults, Stream, Task, advised, library_error};

/// Most lanes that frames in flight are spread over; each takes about 90 bytes of scratch memory per pixel.
const MOST_LANES: usize = 4;

/// A device without an engine.
pub(in crate::element) struct CudaBackend {
    cuda: KeepsContext<Cuda>,
    settings: DeviceSettings,
}

impl CudaBackend {
    /// Opens the device.
    ///
    /// # Errors
    ///
    /// If there is no driver or no device; the message says what to do.
    pub(in crate::element) fn open(settings: &DeviceSettings) -> Result<Self> {
        let cuda = KeepsContext::make(|| Cuda::new(settings.cuda_device_id))?;
        Ok(Self { cuda, settings: settings.clone() })
    }

    /// The device in words.
    pub(in crate::element) fn describe(&self) -> String {
        self.cuda.get().describe()
    }

    /// Moves the backend to the context of a buffer.
    pub(in crate::element) fn at(self, context: DeviceContext) -> Result<Self> {
        let Self { cuda, settings } = self;
        if cuda.get().context_handle() == context.handle() {
            return Ok(Self { cuda, settings });
        }
        cuda.end(|cuda| {
            // SAFETY: the context is that of a GstCudaContext, which what `into_foreign` makes holds.
            let cuda = unsafe { cuda.adopt(context.into_foreign()) }?;
            Ok(Self { cuda: KeepsContext::of(cuda), settings })
        })
    }

    /// Makes an engine for a plan, with up to `depth` frames in flight while the next comes.
    pub(in crate::element) fn engine(self, plan: Plan, depth: usize) -> Result<CudaEngine> {
        let Self { cuda, settings } = self;
        cuda.end(|cuda| Ok(CudaEngine(KeepsContext::of(Lanes::new(cuda, plan, depth, settings)?))))
    }
}

/// The engine for the frames of one plan.
pub(in crate::element) struct CudaEngine(KeepsContext<Lanes>);

impl CudaEngine {
    /// Ends the engine; the device can serve another plan.
    pub(in crate::element) fn into_backend(self) -> CudaBackend {
        self.0
            .end(|on| CudaBackend { cuda: KeepsContext::of(on.cuda.clone()), settings: on.settings.clone() })
    }

    /// Returns true if the context has failed for good.
    pub(in crate::element) fn is_broken(&self) -> bool {
        self.0.with(|lanes| !lanes.cuda.works())
    }

    /// Returns true if the engine can access memory of a context.
    pub(in crate::element) fn reaches(&self, context: &DeviceContext) -> bool {
        self.0.get().cuda.context_handle() == context.handle()
    }

    /// Bytes that went over the bus since start, and frames that were segmented side by side with the last one, which counts.
    pub(in crate::element) fn figures(&self) -> [(&'static str, u64); 4] {
        let on = self.0.get();
        let (count, frames) = (on.cuda.traffic().count(), on.member.as_ref().map_or(1, Member::frames));
        [
            ("pixel-bytes-to-device", count.pixels_up),
            ("pixel-bytes-from-device", count.pixels_down),
            ("result-bytes-from-device", count.results_down),
            ("frames-in-batch", frames.into()),
        ]
    }

    /// Waits for all streams. Ignores errors, which the next call returns again.
    pub(in crate::element) fn synchronize(&self) {
        self.0.with(Lanes::synchronize);
    }

    /// Starts a frame. If the buffer is in device memory, the caller holds it until [`Pending::finish`], because
    /// launches access it.
    pub(in crate::element) fn start(
        &mut self,
        buffer: &mut gst::BufferRef,
        stream: &Stream,
        task: Task,
        counted: (Counted<'_>, Option<&PriorPlane>),
    ) -> Result<Pending, Failure> {
        self.0.with_mut(|on| Ok(Pending(KeepsContext::of(on.start(buffer, stream, task, counted)?))))
    }
}

/// All lanes have the plan; identities go on in the only lane that temporal mode has, or in the stream of a group.
impl Continuity for CudaEngine {
    fn plan(&self) -> &Plan {
        self.0.get().plan()
    }

    fn change(&mut self, plan: &Plan) -> Result<bool> {
        self.0.with_mut(|on| match &on.member {
            // Others go on with the plan of the group.
            Some(member) => Ok(member.batcher().plan() == plan),
            None => on.lanes.iter_mut().try_fold(true, |all, lane| Ok(lane.change(plan)? && all)),
        })
    }

    fn reset(&mut self) {
        let on = self.0.get_mut();
        on.lanes.iter_mut().for_each(Engine::reset);
        if let Some(member) = &on.member {
            member.reset();
        }
    }

    fn next_id(&mut self) -> Result<u32> {
        self.0.with_mut(|on| match &on.member {
            Some(member) => member.next_id(),
            None => on.lanes[0].next_id(),
        })
    }

    fn set_next_id(&mut self, id: u32) -> Result<()> {
        self.0.with_mut(|on| match &on.member {
            Some(member) => member.set_next_id(id),
            None => on.lanes[0].set_next_id(id),
        })
    }
}

/// A frame that the device may still be busy with.
pub(in crate::element) struct Pending(KeepsContext<InFlight>);

impl Pending {
    /// Waits until the device no longer uses the frame or its memory on the host. Ignores errors, which the next call
    /// returns again.
    pub(in crate::element) fn wait(&self) {
        let _ = self.0.with(|frame| frame.memory.wait());
    }

    /// Waits for the frame. A drawn frame of the host replaces the buffer. `engine` gets the frame's memory back, if
    /// its frames are of the same kind.
    pub(in crate::element) fn finish(
        self,
        buffer: &mut gst::Buffer,
        info: &gst_video::VideoInfo,
        engine: Option<&mut CudaEngine>,
    ) -> Result<FrameResults, Failure> {
        self.0.end(|frame| frame.finish(buffer, info, engine.map(|engine| engine.0.get_mut())))
    }
}

/// The lanes: engines that frames take turns on, each with a stream and scratch memory of its own.
struct Lanes {
    /// Memory of finished frames, for reuse.
    // Boxed, because it moves from owner to owner with a frame.
    #[allow(clippy::vec_box)]
    idle: Vec<Box<FrameMemory>>,
    drawn: HostFrames,
    /// One at first; others are added with the first frames. None in a group.
    lanes: Vec<Engine<Cuda>>,
    /// A stream of the engine that a group shares, in place of lanes.
    member: Option<Member>,
    /// Wanted number of lanes.
    wanted: usize,
    /// Index of the next frame's lane.
    next: usize,
    up: Cuda,
    down: Cuda,
    settings: DeviceSettings,
    /// Last: it may hold the context.
    cuda: Cuda,
}

/// Memory and events of one frame in flight.
struct FrameMemory {
    /// Recorded behind the download of the drawn frame, if there is one.
    downloaded: CudaEvent,
    /// Results of the frame.
    kept: Kept,
    /// Staging buffers, for frames of the host.
    staging: Option<Staging>,
    /// Memory for masks, allocated with the first.
    mask: Option<FrameMask>,
    /// The same for priors.
    prior: Option<FramePrior>,
    /// Last: it may hold the context.
    cuda: Cuda,
}

impl FrameMemory {
    fn new(cuda: &Cuda) -> Result<Self> {
        let (downloaded, kept) = (cuda.event()?, Kept::new(cuda)?);
        Ok(Self { downloaded, kept, staging: None, mask: None, prior: None, cuda: cuda.clone() })
    }

    /// Waits for the frame's stages and for its download.
    fn wait(&self) -> Result<()> {
        self.kept.wait()?;
        self.cuda.wait(&self.downloaded)
    }
}

impl Drop for FrameMemory {
    fn drop(&mut self) {
        // A copy in flight may still write to the memory of the drawn frame, which is released next.
        let _ = self.wait();
    }
}

impl Lanes {
    fn new(cuda: Cuda, plan: Plan, depth: usize, settings: DeviceSettings) -> Result<Self> {
        let member = group::join(&cuda, &plan, &settings)?;
        // The state from frame to frame is in a lane's memory, so temporal mode has only one.
        let wanted = if plan.temporal.is_some() { 1 } else { (depth + 1).min(MOST_LANES) };
        Ok(Self {
            idle: Vec::new(),
            drawn: HostFrames::default(),
            lanes: match member {
                Some(_) => Vec::new(),
                None => vec![Engine::new(cuda.clone(), plan)?],
            },
            member,
            wanted,
            next: 0,
            up: cuda.lane()?,
            down: cuda.lane()?,
            settings,
            cuda,
        })
    }

    fn plan(&self) -> &Plan {
        self.member.as_ref().map_or_else(|| self.lanes[0].plan(), |member| member.batcher().plan())
    }

    /// Leaves the group, whose engine draws no abstraction: the element goes on with one of its own, and with new identities.
    fn leave_group(&mut self) -> Result<()> {
        let Some(member) = &self.member else { return Ok(()) };
        gst::warning!(CAT, "batch-group is not for overlay=abstraction: the element goes on by itself");
        let mut engine = Engine::new(self.cuda.clone(), member.batcher().plan().clone())?;
        engine.set_next_id(member.next_id()?)?;
        self.lanes.push(engine);
        self.member = None;
        Ok(())
    }

    fn synchronize(&self) {
        let _ = self.up.synchronize();
        if let Some(member) = &self.member {
            let _ = member.batcher().cuda().synchronize();
        }
        for lane in &self.lanes {
            let _ = lane.backend().synchronize();
        }
        let _ = self.down.synchronize();
    }

    /// Selects the lane of the next frame, and adds one if there are too few. Continues without it if that fails, for
    /// instance for want of memory.
    fn next_lane(&mut self) -> usize {
        if self.next == self.lanes.len() {
            match self.another_lane() {
                Ok(lane) => self.lanes.push(lane),
                Err(error) => {
                    gst::info!(CAT, "frames take turns on {} lanes: {error}", self.lanes.len());
                    self.wanted = self.lanes.len();
                    self.next = 0;
                }
            }
        }
        let lane = self.next;
        self.next = (lane + 1) % self.wanted;
        lane
    }

    fn another_lane(&self) -> Result<Engine<Cuda>> {
        // Leaves as much memory free, for results that are kept and for other users of the device.
        let (wanted, free) = (2 * self.lane_bytes(), self.cuda.free_memory()?);
        if free < wanted {
            let reason = format!("{free} bytes are free where {wanted} should be");
            return Err(Error::Backend { backend: "cuda", reason });
        }
        let mut lane = Engine::new(self.cuda.lane()?, self.plan().clone())?;
        lane.share_results(&self.lanes[0]);
        Ok(lane)
    }

    /// Approximate memory of a lane.
    fn lane_bytes(&self) -> usize {
        const PIXEL: usize = 100;
        const REGIONS: usize = 24 << 20;
        PIXEL * self.plan().frame.geometry.pixels() + REGIONS
    }

    fn start(
        &mut self,
        buffer: &mut gst::BufferRef,
        stream: &Stream,
        task: Task,
        counted: (Counted<'_>, Option<&PriorPlane>),
    ) -> Result<InFlight, Failure> {
        let (frame, info) = (self.plan().frame, &stream.info);
        if stream.on_device {
            let map = match task.drawing {
                None => DeviceMap::read(buffer, info, frame, self.cuda.context_handle())?,
                Some(_) => DeviceMap::draw(buffer, info, frame, self.cuda.context_handle())?,
            };
            let input = Input::Device(map.frame()?, map.producers());
            return Ok(self.begin(input, counted, None, task)?);
        }
        let drawn = match task.drawing {
            None => None,
            Some(_) => {
                let layout = host_layout(buffer, info, frame)?;
                // As large as the buffer, whatever the frame needs.
                let host = self.drawn.take(&self.cuda, layout.bytes()).map_err(|e| advised(&e))?;
                Some(Drawn { host, layout })
            }
        };
        let map = ReadMap::new(buffer, info, frame)?;
        Ok(self.begin(Input::Host(&map.frame()?), counted, drawn, task)?)
    }

    fn begin(
        &mut self,
        input: Input<'_>,
        counted: (Counted<'_>, Option<&PriorPlane>),
        mut drawn: Option<Drawn>,
        task: Task,
    ) -> Result<InFlight, gst::ErrorMessage> {
        let memory = self.idle.pop().map_or_else(|| FrameMemory::new(&self.cuda).map(Box::new), Ok);
        let mut memory = memory.map_err(library_error)?;
        self.put(&mut memory, input, counted, drawn.as_mut(), task).map_err(|error| {
            // Waits before memory is freed that copies in flight may use.
            self.synchronize();
            library_error(error)
        })?;
        Ok(InFlight { memory, drawn, frame: self.plan().frame, task })
    }

    /// Launches a frame: upload, mask and prior, stages, download.
    fn put(
        &mut self,
        memory: &mut FrameMemory,
        input: Input<'_>,
        (counted, prior): (Counted<'_>, Option<&PriorPlane>),
        drawn: Option<&mut Drawn>,
        task: Task,
    ) -> Result<()> {
        let frame = self.plan().frame;
        if task.drawing.as_ref().is_some_and(|drawing| matches!(drawing.fill, Fill::Abstraction(_))) {
            self.leave_group()?;
        }
        let lane = if self.member.is_some() { 0 } else { self.next_lane() };
        let cuda = match &self.member {
            Some(member) => member.batcher().cuda(),
            None => self.lanes[lane].backend(),
        };
        let FrameMemory { kept, staging, mask, prior: prior_memory, downloaded, .. } = memory;
        let on_device = input.on_device(cuda, &self.up, frame, staging)?;
        let (on_device, mask_access) = masked(mask, &counted, cuda, &self.up, on_device)?;
        let (mut on_device, access) = with_prior(prior_memory, prior, cuda, &self.up, on_device)?;
        let access = (mask_access, access);
        if let Some(member) = &self.member {
            let keep = |results: &DeviceResults<'_>| results.keep_in(task.labels, kept);
            member.submit(&mut on_device, task.outputs, task.drawing.as_ref(), keep)?;
            drop(access);
        } else {
            let engine = &mut self.lanes[lane];
            engine.submit(&on_device, &mut None, task.outputs)?;
            if let Some(drawing) = &task.drawing {
                engine.draw(&mut on_device, &None, drawing)?;
            }
            drop(access);
            engine.keep(task.labels, kept)?;
        }
        if let (Some(drawn), Some(staging)) = (drawn, &*staging) {
            kept.precede(&self.down)?;
            // SAFETY: the stream has just been told to wait for the drawing. FrameMemory and host frame are used and given back after
            // a wait for `downloaded`, or for all streams.
            unsafe { staging.start_download(&self.down, &mut drawn.host, &drawn.layout)? };
            self.down.mark(downloaded)?;
        }
        Ok(())
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        // Results are still being copied out of a lane's memory.
        self.synchronize();
    }
}

struct InFlight {
    memory: Box<FrameMemory>,
    drawn: Option<Drawn>,
    frame: FrameInfo,
    task: Task,
}

impl InFlight {
    fn finish(
        mut self,
        buffer: &mut gst::Buffer,
        info: &gst_video::VideoInfo,
        engine: Option<&mut Lanes>,
    ) -> Result<FrameResults, Failure> {
        let (counts, results) = self.memory.kept.take().map_err(library_error)?;
        if self.drawn.is_some() {
            self.memory.cuda.wait(&self.memory.downloaded).map_err(library_error)?;
        }
        let mut crowded = false;
        if let Some(on) = engine
            && on.plan().frame == self.frame
            && on.cuda.context_handle() == self.memory.cuda.context_handle()
        {
            on.idle.push(self.memory);
            crowded = on.drawn.crowded();
        }
        if let Some(drawn) = self.drawn {
            drawn.replace(buffer, info, self.frame, crowded)?;
        }
        Ok(results::found(counts.regions, results, self.frame.geometry, self.task)?)
    }
}
