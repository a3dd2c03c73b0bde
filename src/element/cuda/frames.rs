// SPDX-License-Identifier: MPL-2.0
//! Frames on a CUDA device: put on streams one after the other, finished in the same order.
//!
//! The host waits for a frame only when that leaves the queue of frames in flight in `imp.rs`: the metadata says how many
//! regions there are, and a memory without a stream of its own has to be complete then. Frames take turns on lanes, each with a stream and scratch of its own, since a frame is many short
//! launches that leave most of a device idle. Frames of the host go up and down on streams of their own.

use std::sync::Arc;

use cudarc::driver::CudaEvent;

use crate::backend::Backend as _;
use crate::bad_buffers::Failure;
use crate::cpu::memory;
use crate::cuda::host_frames::{HostFrame, HostFrames, HostLayout};
use crate::cuda::{Cuda, DeviceFrame, KeepsContext, Kept, Part, Results, Staging};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::image::{Frame, FrameInfo, MOST_PLANES};
use crate::plan::Plan;
use crate::video_map::{Layout, Reason};

use super::memory::{DeviceContext, DeviceMap, Producers};
use super::results;
use super::settings::DeviceSettings;
use crate::element::frame::{ReadMap, shapes};
use crate::element::log::CAT;
use crate::element::task::{Found, Stream, Task, advised, library_error};

/// Lanes that frames in flight are spread over at most; each has about 90 bytes of scratch a pixel.
const MOST_LANES: usize = 4;

/// A device that no engine holds.
pub(in crate::element) struct CudaBackend(KeepsContext<Cuda>);

impl CudaBackend {
    /// Opens the device.
    ///
    /// # Errors
    ///
    /// No driver or no device, with what to do.
    pub(in crate::element) fn open(settings: &DeviceSettings) -> Result<Self> {
        KeepsContext::make(|| Cuda::new(settings.cuda_device_id)).map(Self)
    }

    /// The device in words.
    pub(in crate::element) fn describe(&self) -> String {
        self.0.get().describe()
    }

    /// The same in the context of a buffer.
    pub(in crate::element) fn at(self, context: DeviceContext) -> Result<Self> {
        if self.0.get().context_handle() == context.handle() {
            return Ok(self);
        }
        self.0.end(|cuda| {
            // SAFETY: the context is that of a GstCudaContext, which what `into_foreign` makes holds.
            unsafe { cuda.adopt(context.into_foreign()) }.map(|cuda| Self(KeepsContext::of(cuda)))
        })
    }

    /// Takes what a plan needs, for `depth` frames in flight while the next comes.
    pub(in crate::element) fn engine(self, plan: Plan, depth: usize) -> Result<CudaEngine> {
        self.0.end(|cuda| Ok(CudaEngine(KeepsContext::of(Lanes::new(cuda, plan, depth)?))))
    }
}

/// The frames of one plan.
pub(in crate::element) struct CudaEngine(KeepsContext<Lanes>);

impl CudaEngine {
    /// Ends the engine; the device can serve another plan.
    pub(in crate::element) fn into_backend(self) -> CudaBackend {
        CudaBackend(self.0.end(|on| KeepsContext::of(on.cuda.clone())))
    }

    /// Whether the driver takes no more orders for this context.
    pub(in crate::element) fn is_broken(&self) -> bool {
        self.0.with(|lanes| !lanes.cuda.works())
    }

    pub(in crate::element) fn plan(&self) -> &Plan {
        self.0.get().plan()
    }

    /// Continues with another plan where that follows this one, and says whether it does.
    pub(in crate::element) fn change(&mut self, plan: &Plan) -> Result<bool> {
        self.0.with_mut(|on| on.lanes.iter_mut().try_fold(true, |all, lane| Ok(lane.change(plan)? && all)))
    }

    /// The next frame has nothing to do with the last.
    pub(in crate::element) fn reset(&mut self) {
        self.0.get_mut().lanes.iter_mut().for_each(Engine::reset);
    }

    /// The lowest identity that no region has had yet.
    pub(in crate::element) fn next_id(&mut self) -> Result<u32> {
        self.0.with_mut(|on| on.lanes[0].next_id())
    }

    /// Gives identities from `id` on.
    pub(in crate::element) fn set_next_id(&mut self, id: u32) -> Result<()> {
        self.0.with_mut(|on| on.lanes[0].set_next_id(id))
    }

    /// Whether memory of a context can be worked on.
    pub(in crate::element) fn reaches(&self, context: &DeviceContext) -> bool {
        self.0.get().cuda.context_handle() == context.handle()
    }

    /// Bytes that went over the bus since start.
    pub(in crate::element) fn traffic(&self) -> [(&'static str, u64); 3] {
        let count = self.0.get().cuda.traffic().count();
        [
            ("pixel-bytes-to-device", count.pixels_up),
            ("pixel-bytes-from-device", count.pixels_down),
            ("result-bytes-from-device", count.results_down),
        ]
    }

    /// Waits for all streams. A failure shows again in whatever is done next.
    pub(in crate::element) fn synchronize(&self) {
        self.0.with(Lanes::synchronize);
    }

    /// Starts a frame. What is put on the streams needs the buffer's memory only if that is on the device, and then the
    /// caller holds the buffer until [`Pending::finish`].
    pub(in crate::element) fn start(
        &mut self,
        buffer: &mut gst::BufferRef,
        stream: &Stream,
        task: Task,
    ) -> Result<Pending, Failure> {
        self.0.with_mut(|on| Ok(Pending(KeepsContext::of(on.start(buffer, stream, task)?))))
    }
}

/// A frame that the device may still be busy with.
pub(in crate::element) struct Pending(KeepsContext<InFlight>);

impl Pending {
    /// Waits until the device has let go of the frame and of the memory that it was to come down in. A failure shows again in
    /// whatever is done next.
    pub(in crate::element) fn wait(&self) {
        let _ = self.0.with(|frame| frame.place.wait());
    }

    /// Waits for the frame; a drawn frame of the host takes the buffer's place. `engine` gets the memory back if it is of
    /// its kind.
    pub(in crate::element) fn finish(
        self,
        buffer: &mut gst::Buffer,
        info: &gst_video::VideoInfo,
        engine: Option<&mut CudaEngine>,
    ) -> Result<Found, Failure> {
        self.0.end(|frame| frame.finish(buffer, info, engine.map(|engine| engine.0.get_mut())))
    }
}

/// Engines that frames take turns on, each with a stream and scratch of its own.
struct Lanes {
    /// Memory of frames that are finished, for the next.
    // Boxed, since it goes from hand to hand with a frame.
    #[allow(clippy::vec_box)]
    places: Vec<Box<Place>>,
    drawn: HostFrames,
    /// One at first; others come with the first frames.
    lanes: Vec<Engine<Cuda>>,
    /// How many lanes there are to be.
    wanted: usize,
    /// Whose turn it is.
    turn: usize,
    up: Cuda,
    down: Cuda,
    /// Last: it may hold the context.
    cuda: Cuda,
}

/// Memory and marks that a frame in flight has for itself.
struct Place {
    /// Passed when the drawn frame has come down, where there is one.
    downloaded: CudaEvent,
    /// What the frame gave.
    kept: Kept,
    /// Of frames of the host.
    staging: Option<Staging>,
    /// Last: it may hold the context.
    cuda: Cuda,
}

impl Place {
    fn new(engine: &Engine<Cuda>) -> Result<Self> {
        let cuda = engine.backend().clone();
        Ok(Self { downloaded: cuda.event()?, kept: engine.kept()?, staging: None, cuda })
    }

    fn staging(&mut self, cuda: &Cuda, frame: FrameInfo) -> Result<&mut Staging> {
        match &mut self.staging {
            Some(staging) => Ok(staging),
            none => Ok(none.insert(Staging::new(cuda, frame)?)),
        }
    }

    /// Waits for the frame's stages and for its way down.
    fn wait(&self) -> Result<()> {
        self.kept.wait()?;
        self.cuda.wait(&self.downloaded)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A copy may still write to the memory that the frame is to come down in, which is given back next.
        let _ = self.wait();
    }
}

/// A frame as it comes.
enum Input<'a> {
    /// In device memory, and the streams that its producer may still be busy on; 0 is the default stream.
    Device(DeviceFrame<'a>, Producers),
    /// In the host's memory.
    Host(&'a Frame<'a>),
}

/// Where a drawn frame comes down, and how it lies there.
struct Drawn {
    host: HostFrame,
    layout: HostLayout,
}

impl Lanes {
    fn new(cuda: Cuda, plan: Plan, depth: usize) -> Result<Self> {
        // What lasts from frame to frame is in a lane's memory.
        let wanted = if plan.temporal.is_some() { 1 } else { (depth + 1).min(MOST_LANES) };
        Ok(Self {
            places: Vec::new(),
            drawn: HostFrames::default(),
            lanes: vec![Engine::new(cuda.clone(), plan)?],
            wanted,
            turn: 0,
            up: cuda.lane()?,
            down: cuda.lane()?,
            cuda,
        })
    }

    fn plan(&self) -> &Plan {
        self.lanes[0].plan()
    }

    fn synchronize(&self) {
        let _ = self.up.synchronize();
        for lane in &self.lanes {
            let _ = lane.backend().synchronize();
        }
        let _ = self.down.synchronize();
    }

    /// Chooses the lane of the next frame. One that cannot be had, for instance for want of memory, is done without.
    fn next_lane(&mut self) -> usize {
        if self.turn == self.lanes.len() {
            match self.another_lane() {
                Ok(lane) => self.lanes.push(lane),
                Err(error) => {
                    gst::info!(CAT, "frames take turns on {} lanes: {error}", self.lanes.len());
                    self.wanted = self.lanes.len();
                    self.turn = 0;
                }
            }
        }
        let lane = self.turn;
        self.turn = (lane + 1) % self.wanted;
        lane
    }

    fn another_lane(&self) -> Result<Engine<Cuda>> {
        // As much is left over, for results that are kept and for whoever else is on the device.
        let (wanted, free) = (2 * self.lane_bytes(), self.cuda.free_memory()?);
        if free < wanted {
            let reason = format!("{free} bytes are free where {wanted} should be");
            return Err(Error::Backend { backend: "cuda", reason });
        }
        let mut lane = Engine::new(self.cuda.lane()?, self.plan().clone())?;
        lane.share_results(&self.lanes[0]);
        Ok(lane)
    }

    /// About what a lane takes.
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
    ) -> Result<InFlight, Failure> {
        let (frame, info) = (self.plan().frame, &stream.info);
        if stream.on_device {
            let map = match task.drawing {
                None => DeviceMap::read(buffer, info, frame, self.cuda.context_handle())?,
                Some(_) => DeviceMap::draw(buffer, info, frame, self.cuda.context_handle())?,
            };
            let input = Input::Device(map.frame()?, map.producers());
            return Ok(self.begin(input, None, task)?);
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
        Ok(self.begin(Input::Host(&map.frame()?), drawn, task)?)
    }

    fn begin(
        &mut self,
        input: Input<'_>,
        mut drawn: Option<Drawn>,
        task: Task,
    ) -> Result<InFlight, gst::ErrorMessage> {
        let place = self.places.pop().map_or_else(|| Place::new(&self.lanes[0]).map(Box::new), Ok);
        let mut place = place.map_err(library_error)?;
        self.put(&mut place, input, drawn.as_mut(), task).map_err(|error| {
            // Before the memory goes that copies may be in flight to.
            self.synchronize();
            library_error(error)
        })?;
        Ok(InFlight { place, drawn, frame: self.plan().frame, task })
    }

    /// Puts a frame on the streams: up, through, down.
    fn put(
        &mut self,
        place: &mut Place,
        input: Input<'_>,
        drawn: Option<&mut Drawn>,
        task: Task,
    ) -> Result<()> {
        let frame = self.plan().frame;
        let turn = self.next_lane();
        let engine = &mut self.lanes[turn];
        let mut on_device = match input {
            Input::Device(on_device, producers) => {
                for producer in producers.streams() {
                    // SAFETY: the stream of a memory of the frame, whose context the engine has adopted, or the default
                    // one; `DeviceMap` checked both.
                    unsafe { engine.backend().wait_for(producer)? };
                }
                on_device
            }
            // The engine waits for the upload by itself.
            Input::Host(host) => place.staging(&self.up, frame)?.upload(host)?,
        };
        engine.submit(&on_device, &mut (), task.outputs)?;
        if let Some(drawing) = &task.drawing {
            engine.draw(&mut on_device, &(), drawing)?;
        }
        engine.keep(task.labels, &mut place.kept)?;
        if let (Some(drawn), Some(staging)) = (drawn, &place.staging) {
            place.kept.precede(&self.down)?;
            // SAFETY: the stream has just been told to wait for the drawing. Place and host frame are used and given back after
            // a wait for `downloaded`, or for all streams.
            unsafe { staging.land(&self.down, &mut drawn.host, &drawn.layout)? };
            self.down.mark(&place.downloaded)?;
        }
        Ok(())
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        // What is kept of frames is still being copied out of a lane's memory.
        self.synchronize();
    }
}

/// Where the planes of a buffer lie in it.
fn host_layout(
    buffer: &gst::BufferRef,
    info: &gst_video::VideoInfo,
    frame: FrameInfo,
) -> Result<HostLayout, Reason> {
    let layout = Layout::of(buffer, info, shapes(frame))?;
    let (mut offsets, mut strides) = ([0; MOST_PLANES], [0; MOST_PLANES]);
    for (i, plane) in layout.planes().iter().enumerate() {
        (offsets[i], strides[i]) = (plane.offset, plane.stride);
    }
    HostLayout::new(frame, buffer.size(), offsets, strides).map_err(|e| e.to_string())
}

struct InFlight {
    place: Box<Place>,
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
    ) -> Result<Found, Failure> {
        let (counts, results) = self.place.kept.take().map_err(library_error)?;
        if self.drawn.is_some() {
            self.place.cuda.wait(&self.place.downloaded).map_err(library_error)?;
        }
        let mut crowded = false;
        if let Some(on) = engine
            && on.plan().frame == self.frame
            && on.cuda.context_handle() == self.place.cuda.context_handle()
        {
            on.places.push(self.place);
            crowded = on.drawn.crowded();
        }
        if let Some(drawn) = self.drawn {
            drawn.replace(buffer, info, self.frame, crowded)?;
        }
        Ok(found(counts.regions, results, self.frame, self.task)?)
    }
}

impl Drawn {
    /// Puts the drawn frame in the place of the one that came: its pixels are all new, and memory that others hold, or a
    /// pool wants back, stays as it is.
    fn replace(
        mut self,
        buffer: &mut gst::Buffer,
        info: &gst_video::VideoInfo,
        frame: FrameInfo,
        crowded: bool,
    ) -> Result<(), Reason> {
        if host_layout(buffer, info, frame)? != self.layout {
            return Err("it has changed while it was in flight; make its producer leave it alone".into());
        }
        if self.layout.has_gaps() {
            let came = buffer.map_readable().map_err(|e| e.to_string())?;
            self.layout.fill_gaps(&came, self.host.as_mut());
        }
        let memory = if crowded {
            let mut copy = memory::Array::new();
            memory::append(&mut copy, "drawn frame", self.host.as_ref()).map_err(|e| e.to_string())?;
            gst::Memory::from_mut_slice(copy)
        } else {
            gst::Memory::from_mut_slice(self.host)
        };
        let mut fresh = buffer.copy();
        fresh.make_mut().replace_all_memory(memory);
        *buffer = fresh;
        Ok(())
    }
}

/// What is to be attached.
fn found(
    regions: u32,
    kept: Option<Results>,
    frame: FrameInfo,
    task: Task,
) -> Result<Found, gst::ErrorMessage> {
    let mut found =
        Found { regions, labels: None, table: None, motion: None, neighbors: None, hierarchy: None };
    if let Some(kept) = kept.map(Arc::new) {
        found.labels = Some(results::label_buffer(&kept, frame.geometry)?);
        found.table = task.outputs.table.then(|| results::buffer(&kept, Part::Table));
        found.neighbors = task.outputs.neighbors.then(|| results::buffer(&kept, Part::Neighbors));
        found.hierarchy = task.merges.then(|| results::buffer(&kept, Part::Merges));
        found.motion = (kept.bytes(Part::Motion) > 0).then(|| results::buffer(&kept, Part::Motion));
    }
    Ok(found)
}
