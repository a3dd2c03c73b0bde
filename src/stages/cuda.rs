// SPDX-License-Identifier: MPL-2.0
//! Composition of the CUDA backend: the stages that a plan has on a device, and the methods that [`Engine`] has there only.

use crate::algo::{self, AlgorithmPlan, algorithms};
use crate::backend::{self, Backend, Internal, StageTimes, Stages};
use crate::buffers::cuda::FrameBuffers;
use crate::buffers::{BatchResults, DeviceResults};
use crate::cuda::access::Kind;
use crate::cuda::{Cuda, DeviceFrame, HostLabels, Kept};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::ingest;
use crate::params::{Drawing, Outputs};
use crate::plan::Plan;
use crate::post::{connectivity, hierarchy, merge, overlay, refine, stages, statistics};
use crate::temporal;

impl Engine<Cuda> {
    /// Switches the device timers of stages on or off. While they are on, a frame's kernels are launched one by one, with an
    /// event at the end of each stage, and not as a recorded graph.
    pub fn set_profiling(&mut self, on: bool) {
        self.buffers_mut().queue.set_profiling(on);
    }

    /// Device times of the stages since the last call; waits for them.
    pub fn take_device_times(&mut self) -> Result<StageTimes> {
        self.buffers_mut().queue.take_device_times()
    }

    /// Results of the frame that was submitted last, in device memory; they hold until the next frame is submitted.
    ///
    /// # Errors
    ///
    /// [`Error::NotSegmented`] if none was, or if it failed.
    pub fn results(&self) -> Result<DeviceResults<'_>> {
        self.results_of(0)
    }

    /// The same of a frame of the batch that was submitted last, [`DeviceFrame::of_batch`].
    ///
    /// # Errors
    ///
    /// Also [`Error::Batch`] if the batch had no such frame.
    pub fn results_of(&self, frame: usize) -> Result<DeviceResults<'_>> {
        let (outputs, buffers) = (self.segmented_for()?, self.buffers());
        let count = buffers.members_len();
        if frame >= count {
            return Err(Error::Batch(format!("no frame {frame}; the last batch had {count}")));
        }
        Ok(DeviceResults::of(buffers, outputs, buffers.memory_of(frame)))
    }

    /// The same of all frames of that batch together.
    ///
    /// # Errors
    ///
    /// [`Error::Batch`] for a batch of some of its streams, which have results one by one; else as [`Engine::results`].
    pub fn batch_results(&self) -> Result<BatchResults<'_>> {
        let (results, buffers) = (self.results()?, self.buffers());
        if buffers.has_absent() {
            return Err(Error::Batch(
                "some streams had no frame; take Engine::results_of each that had".into(),
            ));
        }
        Ok(BatchResults::of(results))
    }

    /// Makes an engine that works on as many as `frames` side by side, those of [`DeviceFrame::of_batch`], with the results of each
    /// by itself. Frames of a batch are pictures of their own, from which nothing lasts to another. In temporal mode they are of as many
    /// streams, and each goes on from the last frame of its own one: that of its index in the batch, or which
    /// [`DeviceFrame::of_streams`] says.
    ///
    /// # Errors
    ///
    /// [`Error::Batch`] for no frame or too many, or where frames are too large; errors of the driver, as without memory.
    pub fn for_batch(cuda: &Cuda, plan: &Plan, frames: u32) -> Result<Self> {
        // Room for the longest array of nearly all plans; others say what they need.
        let mut distance = 32 * plan.frame.geometry.pixels() + (64 << 10);
        loop {
            let cuda = cuda.with_batch(frames, distance)?;
            let engine = Self::new(cuda.clone(), plan.clone());
            let longest = cuda.batch.as_ref().map_or(0, |batch| batch.longest());
            let longest = longest.max(engine.as_ref().map_or(0, |engine| engine.buffers().longest_later()));
            if longest <= distance {
                return engine;
            }
            distance = longest;
        }
    }

    /// Draws on a frame of the batch that was submitted last, as [`Engine::draw`] does on a frame by itself.
    ///
    /// # Errors
    ///
    /// [`Error::Batch`] if the batch had no such frame, and for an abstraction; else as [`Engine::draw`].
    pub fn draw_of(&mut self, frame: usize, on: &mut DeviceFrame<'_>, drawing: &Drawing) -> Result<()> {
        self.results_of(frame)?;
        let memory = self.buffers().memory_of(frame);
        self.buffers_mut().drawn = Some(memory);
        let drawn = self.draw(on, &None, drawing);
        self.buffers_mut().drawn = None;
        drawn
    }

    /// Discards the frames of a stream before, as [`Engine::reset`] does those of all: its next one is segmented as if it were the first,
    /// with new identities. Nothing where no stream has that number.
    pub fn reset_stream(&mut self, stream: u32) {
        if let Some(state) = &mut self.buffers_mut().temporal {
            state.forget_stream(stream as usize);
        }
    }

    /// The identity of a stream's next new region, as [`Engine::next_id`] for the highest of all. Waits for the device.
    ///
    /// # Errors
    ///
    /// [`Error::Batch`] where no stream has that number; errors of the driver.
    pub fn next_id_of(&mut self, stream: u32) -> Result<u32> {
        self.check_stream(stream)?;
        let FrameBuffers { temporal, queue, .. } = self.buffers();
        temporal.as_ref().map_or(Ok(1), |state| state.next_id_of(&queue.cuda, stream as usize))
    }

    /// Sets that identity; 0 counts as 1.
    ///
    /// # Errors
    ///
    /// As [`Engine::next_id_of`].
    pub fn set_next_id_of(&mut self, stream: u32, id: u32) -> Result<()> {
        self.check_stream(stream)?;
        let FrameBuffers { temporal, queue, .. } = self.buffers_mut();
        temporal.as_mut().map_or(Ok(()), |state| state.set_next_id_of(&queue.cuda, stream as usize, id))
    }

    fn check_stream(&self, stream: u32) -> Result<()> {
        let room = self.backend().batch.as_ref().map_or(1, |batch| batch.frames());
        if stream < room {
            return Ok(());
        }
        Err(Error::Batch(format!("stream {stream}; the engine has room for {room}, see Engine::for_batch")))
    }

    /// Makes this engine keep results in the pool of device memory that `other`, an engine with the same plan, has for them.
    #[cfg(feature = "gst")]
    pub(crate) fn share_results(&mut self, other: &Self) {
        self.buffers_mut().share_results(other.buffers());
    }
}

/// Expands to an algorithm's code for a device; for one that the list has on the CPU only, to a `return` of an error.
macro_rules! on_cuda {
    (cuda, $nick:literal, $($value:tt)*) => { $($value)* };
    (cpu, $nick:literal, $($value:tt)*) => {
        return Err(Error::Backend {
            backend: "cuda",
            reason: concat!($nick, " runs on the CPU only; use the cpu backend").into(),
        })
    };
}

impl Backend for Cuda {
    type Frame<'a> = DeviceFrame<'a>;
    type FrameMut<'a> = DeviceFrame<'a>;
    /// Plane on the host to download the finished label map to, if any. Stages write to the plane of [`FrameBuffers`].
    type Labels<'a> = HostLabels<'a>;
    type Buffers = FrameBuffers;
    type Kept = Kept;

    fn describe(&self) -> String {
        format!("cuda:{} {}", self.device.ordinal, self.device.name)
    }

    fn buffers(&self, plan: &Plan, _: Internal) -> Result<FrameBuffers> {
        // Words of the algorithm's accumulators and clusters, whose layout only its own file knows.
        macro_rules! words {
            ($($variant:ident, $module:ident, $nick:literal, $backends:ident, $about:literal;)*) => {
                match &plan.algorithm {
                    $(AlgorithmPlan::$variant(_) => {
                        on_cuda!($backends, $nick, {
                            use algo::$module::cuda::$variant;
                            ($variant::sums_words(&plan.grid), $variant::carried_words(&plan.grid))
                        })
                    })*
                }
            };
        }
        let (sums_words, carried_words) = algorithms!(words);
        FrameBuffers::new(self, plan, sums_words, carried_words)
    }

    fn kept(&self, _: Internal) -> Result<Kept> {
        Kept::new(self)
    }

    fn ingest(
        &self,
        plan: &Plan,
        buffers: &FrameBuffers,
        _: Internal,
    ) -> Result<Box<dyn backend::Ingest<Self>>> {
        Ok(Box::new(ingest::cuda::Ingest::new(self, plan, buffers)?))
    }

    // `own` in the macro is unused for algorithms that run on the CPU only.
    #[allow(unused_variables)]
    fn segmenter(
        &self,
        plan: &Plan,
        buffers: &FrameBuffers,
        _: Internal,
    ) -> Result<Box<dyn backend::Segmenter<Self>>> {
        macro_rules! choose {
            ($($variant:ident, $module:ident, $nick:literal, $backends:ident, $about:literal;)*) => {
                match &plan.algorithm {
                    $(AlgorithmPlan::$variant(own) => {
                        on_cuda!($backends, $nick, Box::new(algo::$module::cuda::$variant::new(self, plan, own, buffers)?))
                    })*
                }
            };
        }
        Ok(algorithms!(choose))
    }

    fn connectivity(
        &self,
        plan: &Plan,
        _: &FrameBuffers,
        _: Internal,
    ) -> Result<Box<dyn backend::Connectivity<Self>>> {
        Ok(Box::new(connectivity::cuda::Connectivity::new(self, plan)?))
    }

    fn stages(&self, plan: &Plan, buffers: &FrameBuffers, _: Internal) -> Result<Stages<Self>> {
        let mut list: Stages<Self> = Vec::new();
        macro_rules! add {
            ($($stage:ident, $type:ident;)*) => {
                $(if let Some(own) = plan.$stage {
                    list.push((stringify!($stage), Box::new($stage::cuda::$type::new(self, plan, buffers, own)?)));
                })*
            };
        }
        stages!(add);
        Ok(list)
    }

    fn temporal(
        &self,
        plan: &Plan,
        _: &FrameBuffers,
        _: Internal,
    ) -> Result<Option<Box<dyn backend::Temporal<Self>>>> {
        let Some(temporal) = &plan.temporal else { return Ok(None) };
        Ok(Some(Box::new(temporal::cuda::Temporal::new(self, plan, temporal)?)))
    }

    fn statistics(
        &self,
        plan: &Plan,
        buffers: &FrameBuffers,
        _: Internal,
    ) -> Result<Box<dyn backend::Statistics<Self>>> {
        Ok(Box::new(statistics::cuda::Statistics::new(self, plan, buffers)?))
    }

    fn overlay(&self, plan: &Plan, _: &FrameBuffers, _: Internal) -> Result<Box<dyn backend::Overlay<Self>>> {
        Ok(Box::new(overlay::cuda::Overlay::new(self, plan)?))
    }

    fn check(&self, plan: &Plan, frame: &DeviceFrame<'_>, labels: &HostLabels<'_>) -> Result<()> {
        plan.frame.check(frame.info())?;
        if let Some(labels) = labels {
            labels.check(plan.frame.geometry)?;
        }
        if frame.planes.mask.is_some() && !plan.masked {
            return Err(Error::Mask);
        }
        if frame.planes.prior.is_some() && !plan.prior {
            return Err(Error::Prior);
        }
        let (frames, room) = (frame.each().len(), self.batch.as_ref().map_or(1, |batch| batch.frames()));
        if frames > room as usize {
            return Err(Error::Batch(format!(
                "{frames} frames; the engine has room for {room}, see Engine::for_batch"
            )));
        }
        if let Some(stream) = frame.streams().iter().copied().max() {
            if plan.temporal.is_none() {
                return Err(Error::Batch(
                    "streams are of temporal mode; set `temporal` or use of_batch".into(),
                ));
            }
            if stream >= room {
                return Err(Error::Batch(format!(
                    "stream {stream}; the engine has room for {room}, see Engine::for_batch"
                )));
            }
        }
        frame.check_context(self)
    }

    fn cluster(
        &self,
        plan: &Plan,
        buffers: &mut FrameBuffers,
        segmenter: &mut dyn backend::Segmenter<Self>,
        colors: &[u32],
        clusters: &mut [u16],
        _: Internal,
    ) -> Result<()> {
        buffers.load(&plan.grid, colors)?;
        segmenter.segment(buffers, &mut None, &mut StageTimes::default())?;
        buffers.read_clusters(clusters)
    }

    fn change(&self, plan: &Plan, buffers: &mut FrameBuffers, growth: Option<f64>) -> Result<()> {
        buffers.change(plan, growth)
    }

    fn run(
        &mut self,
        buffers: &mut FrameBuffers,
        frame: &DeviceFrame<'_>,
        outputs: Outputs,
        stages: &mut (dyn FnMut(&mut FrameBuffers) -> Result<()> + Send),
    ) -> Result<()> {
        if outputs.neighbors {
            buffers.prepare_neighbors()?;
        }
        // The guards order the frames' memory against other streams until they are dropped, behind the last launch.
        let _accesses = frame.access_all(&buffers.queue.cuda, Kind::Read)?;
        if self.batch.is_some() && buffers.temporal.is_some() {
            return buffers.run_streams(frame, outputs, stages);
        }
        buffers.begin(frame)?;
        // The last frame's results become the state that this frame reads; it writes to the other half of each pair.
        if let Some(state) = &mut buffers.temporal {
            state.swap();
        }
        let replayed = buffers.replay(frame, outputs, stages);
        if let Some(state) = &mut buffers.temporal {
            match replayed {
                Ok(()) => state.finalize(),
                // A frame that failed is left out: the next one starts from the last frame's state again.
                Err(_) => state.swap(),
            }
        }
        replayed
    }
}
