// SPDX-License-Identifier: MPL-2.0
//! Frames on a CUDA device: put on streams one after the other, finished in the same order.
//!
//! Nothing waits for a frame before the next is put behind it, but the line of frames under way in `imp.rs`, and there
//! the host: the metadata says how many regions there are, and a memory without a stream of its own has to be complete
//! when it goes on. Frames take turns on lanes, each with a stream and scratch of its own, since a frame is many short
//! launches that leave most of a device idle. Frames of the host go up and down on streams of their own.

use std::sync::Arc;

use cudarc::driver::CudaEvent;

use crate::bad_buffers::Failure;
use crate::cpu::memory;
use crate::cuda::device::CurrentContext;
use crate::cuda::landing::{Block, Blocks, HostLayout};
use crate::cuda::pinned::Pinned;
use crate::cuda::{Counts, Cuda, DeviceFrame, Part, Results, Staging};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::image::{Frame, FrameInfo};
use crate::plan::Plan;
use crate::video_map::Reason;

use super::cuda_memory::{DeviceMap, Producers};
use super::frame::{ReadMap, host_layout, label_buffer};
use super::log::CAT;
use super::result_memory;
use super::task::{Found, Stream, Task, library_error};

/// Lanes that frames under way are spread over at most; each has about 90 bytes of scratch a pixel.
const MOST_LANES: usize = 4;

/// The frames of one plan.
pub(super) struct OnCuda {
    /// Memory of frames that are finished, for the next.
    // Boxed, since it goes from hand to hand with a frame.
    #[allow(clippy::vec_box)]
    places: Vec<Box<Place>>,
    drawn: Blocks,
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

/// Memory and marks that a frame under way has for itself.
struct Place {
    /// Of frames of the host.
    staging: Option<Staging>,
    counts: Pinned,
    /// Passed when the frame is drawn on and its counts are here.
    counted: CudaEvent,
    /// Passed when the drawn frame has come down.
    landed: CudaEvent,
}

impl Place {
    fn new(cuda: &Cuda) -> Result<Self> {
        let counts = Pinned::new(cuda, "pinned memory", 8)?;
        Ok(Self { staging: None, counts, counted: cuda.event()?, landed: cuda.event()? })
    }

    fn staging(&mut self, cuda: &Cuda, frame: FrameInfo) -> Result<&mut Staging> {
        match &mut self.staging {
            Some(staging) => Ok(staging),
            none => Ok(none.insert(Staging::new(cuda, frame)?)),
        }
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
    block: Block,
    layout: HostLayout,
}

impl OnCuda {
    /// Takes what a plan needs, for `depth` frames under way while the next comes.
    pub(super) fn new(cuda: Cuda, plan: Plan, depth: usize) -> Result<Self> {
        // What lasts from frame to frame is in a lane's memory.
        let wanted = if plan.temporal.is_some() { 1 } else { (depth + 1).min(MOST_LANES) };
        Ok(Self {
            places: Vec::new(),
            drawn: Blocks::default(),
            lanes: vec![Engine::new(cuda.clone(), plan)?],
            wanted,
            turn: 0,
            up: cuda.lane()?,
            down: cuda.lane()?,
            cuda,
        })
    }

    pub(super) fn cuda(&self) -> &Cuda {
        &self.cuda
    }

    /// Ends the lanes; what remains can serve another plan.
    pub(super) fn into_cuda(self) -> Cuda {
        self.cuda.clone()
    }

    pub(super) fn plan(&self) -> &Plan {
        self.lanes[0].plan()
    }

    /// Goes on with another plan where that follows this one, and says whether it does.
    pub(super) fn change(&mut self, plan: &Plan) -> Result<bool> {
        let mut changed = true;
        for lane in &mut self.lanes {
            changed &= lane.change(plan)?;
        }
        Ok(changed)
    }

    /// The next frame has nothing to do with the last.
    pub(super) fn reset(&mut self) {
        self.lanes.iter_mut().for_each(Engine::reset);
    }

    /// The lowest identity that no region has had yet.
    pub(super) fn next_id(&mut self) -> Result<u32> {
        self.lanes[0].next_id()
    }

    /// Gives identities from `id` on.
    pub(super) fn set_next_id(&mut self, id: u32) -> Result<()> {
        self.lanes[0].set_next_id(id)
    }

    /// Waits for all streams. A failure shows again in whatever is done next.
    pub(super) fn settle(&self) {
        let _ = self.up.synchronize();
        for lane in &self.lanes {
            let _ = lane.work().queue.cuda.synchronize();
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
        lane.work_mut().share_results(self.lanes[0].work());
        Ok(lane)
    }

    /// About what a lane takes.
    fn lane_bytes(&self) -> usize {
        const PIXEL: usize = 100;
        const REGIONS: usize = 24 << 20;
        PIXEL * self.plan().frame.geometry.pixels() + REGIONS
    }

    /// Starts a frame. What is put on the streams needs the buffer's memory only if that is on the device, and then the
    /// caller holds the buffer until [`Pending::finish`].
    pub(super) fn start(
        &mut self,
        buffer: &mut gst::BufferRef,
        stream: &Stream,
        task: Task,
    ) -> Result<Pending, Failure> {
        // Neighbors on this thread may have a context of their own.
        let _current = CurrentContext::keep();
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
                let block = self.drawn.take(&self.cuda, layout.bytes()).map_err(|e| e.to_string())?;
                Some(Drawn { block, layout })
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
    ) -> Result<Pending, gst::ErrorMessage> {
        let place = self.places.pop().map_or_else(|| Place::new(&self.cuda).map(Box::new), Ok);
        let mut place = place.map_err(library_error)?;
        let put = self.put(&mut place, input, drawn.as_mut(), task);
        let results = put.map_err(|error| {
            // Before the memory goes that copies may be under way to.
            self.settle();
            library_error(error)
        })?;
        Ok(Pending { place, results, drawn, frame: self.plan().frame, task, cuda: self.cuda.clone() })
    }

    /// Puts a frame on the streams: up, through, down.
    fn put(
        &mut self,
        place: &mut Place,
        input: Input<'_>,
        drawn: Option<&mut Drawn>,
        task: Task,
    ) -> Result<Option<Results>> {
        let frame = self.plan().frame;
        let turn = self.next_lane();
        let engine = &mut self.lanes[turn];
        let lane = engine.work().queue.cuda.clone();
        let mut on_device = match input {
            Input::Device(on_device, producers) => {
                for producer in producers.streams() {
                    // SAFETY: the stream of a memory of the frame, whose context the engine has adopted, or the default
                    // one; `DeviceMap` checked both.
                    unsafe { lane.wait_for(producer)? };
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
        engine.work().fetch_counts(task.outputs, &mut place.counts)?;
        lane.mark(&place.counted)?;
        // Behind the mark: the host needs not wait for these copies.
        let results = task.labels.then(|| engine.work().keep(None, task.outputs)).transpose()?;
        if let (Some(drawn), Some(staging)) = (drawn, &place.staging) {
            self.down.follow(&place.counted)?;
            // SAFETY: the stream has just been told to wait for the drawing. Place and block are used and given back after
            // a wait for `landed`, or for all streams.
            unsafe { staging.land(&self.down, &mut drawn.block, &drawn.layout)? };
            self.down.mark(&place.landed)?;
        }
        Ok(results)
    }
}

impl Drop for OnCuda {
    fn drop(&mut self) {
        // What is kept of frames is still being copied out of a lane's memory.
        self.settle();
    }
}

/// A frame that the device may still be busy with.
pub(super) struct Pending {
    place: Box<Place>,
    results: Option<Results>,
    drawn: Option<Drawn>,
    frame: FrameInfo,
    task: Task,
    /// Last: it may hold the context.
    cuda: Cuda,
}

impl Pending {
    fn wait(&self) -> Result<()> {
        self.cuda.wait(&self.place.counted)?;
        if self.drawn.is_some() { self.cuda.wait(&self.place.landed) } else { Ok(()) }
    }

    /// Waits until the device has let go of the frame and of the memory that it was to come down in.
    pub(super) fn settle(&self) {
        let _current = CurrentContext::keep();
        // A failure shows again in whatever is done next.
        let _ = self.wait();
    }

    /// Waits for the frame; a drawn frame of the host takes the buffer's place. `engine` gets the memory back if it is of
    /// its kind. Whoever calls keeps the current context.
    pub(super) fn finish(
        mut self,
        buffer: &mut gst::Buffer,
        info: &gst_video::VideoInfo,
        engine: Option<&mut OnCuda>,
    ) -> Result<Found, Failure> {
        self.wait().map_err(library_error)?;
        let counts = Counts::read(self.task.outputs, &self.place.counts);
        if let Some(results) = &mut self.results {
            results.settle(counts, self.task.outputs).map_err(library_error)?;
        }
        let mut crowded = false;
        if let Some(on) = engine
            && on.plan().frame == self.frame
            && on.cuda.context_handle() == self.cuda.context_handle()
        {
            on.places.push(self.place);
            crowded = on.drawn.crowded();
        }
        if let Some(drawn) = self.drawn {
            drawn.replace(buffer, info, self.frame, crowded)?;
        }
        Ok(found(counts.regions, self.results, self.frame, self.task)?)
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
            self.layout.fill_gaps(&came, self.block.as_mut());
        }
        let memory = if crowded {
            let mut copy = memory::Array::new();
            memory::append(&mut copy, "drawn frame", self.block.as_ref()).map_err(|e| e.to_string())?;
            gst::Memory::from_mut_slice(copy)
        } else {
            gst::Memory::from_mut_slice(self.block)
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
    let mut found = Found { regions, labels: None, table: None, motion: None, neighbors: None };
    if let Some(kept) = kept.map(Arc::new) {
        found.labels = Some(label_buffer(&kept, frame.geometry)?);
        found.table = task.outputs.table.then(|| result_memory::buffer(&kept, Part::Table));
        found.neighbors = task.outputs.neighbors.then(|| result_memory::buffer(&kept, Part::Neighbors));
        found.motion = (kept.bytes(Part::Motion) > 0).then(|| result_memory::buffer(&kept, Part::Motion));
    }
    Ok(found)
}
