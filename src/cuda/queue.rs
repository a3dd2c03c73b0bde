// SPDX-License-Identifier: MPL-2.0
//! Way of a frame's launches: onto its stream, or into a graph while one is recorded; with timers for profiles.

use std::sync::Mutex;

use cudarc::driver::{CudaEvent, sys};

use super::graph::Recording;
use super::handle::Cuda;
use super::launch::{Arguments, Frames, Kernel, Shape, check};
use crate::error::Result;
use crate::stage_times::StageTimes;

/// A stream with the graph that is being recorded for it.
pub(crate) struct Queue {
    profile: Option<Mutex<Vec<(&'static str, CudaEvent)>>>,
    recording: Mutex<Option<Recording>>,
    /// Frames that launches work on.
    pub frames: Frames,
    /// Dropped last, because it may hold the context.
    pub cuda: Cuda,
}

impl Queue {
    pub fn new(cuda: &Cuda) -> Self {
        Self { profile: None, recording: Mutex::default(), frames: Frames::ONE, cuda: cuda.clone() }
    }

    /// Returns true if stages are timed one by one.
    pub fn is_profiling(&self) -> bool {
        self.profile.is_some()
    }

    /// Adds further launches to a graph instead of the stream, until [`Queue::end_recording`]. The context is current.
    pub fn begin_recording(&mut self) -> Result<()> {
        *self.recording.get_mut().unwrap() = Some(Recording::new(self.cuda.device.add_edges())?);
        Ok(())
    }

    /// Ends the recording and gives it, if there was one.
    pub fn end_recording(&mut self) -> Option<Recording> {
        self.recording.get_mut().unwrap().take()
    }

    /// Sends further launches to a branch of the graph, parallel to what follows [`Queue::end_beside`], until
    /// [`Queue::join`]. Without a graph launches stay one after the other.
    pub fn begin_beside(&mut self) {
        if let Some(recording) = self.recording.get_mut().unwrap() {
            recording.begin_beside();
        }
    }

    /// Ends the branch.
    pub fn end_beside(&mut self) {
        if let Some(recording) = self.recording.get_mut().unwrap() {
            recording.end_beside();
        }
    }

    /// Makes the next launch wait for the branch.
    pub fn join(&mut self) {
        if let Some(recording) = self.recording.get_mut().unwrap() {
            recording.join();
        }
    }

    /// Launches a kernel.
    ///
    /// # Safety
    /// As [`Kernel::launch`], and as [`Recording::add`] while a graph is recorded.
    pub unsafe fn launch<A>(
        &self,
        kernel: &Kernel<A>,
        grid: (u32, u32),
        threads: u32,
        args: &impl Arguments<Static = A>,
    ) -> Result<()> {
        // SAFETY: the caller keeps what `put` asks for.
        unsafe { self.put(kernel, Shape::of(grid, threads), args) }
    }

    /// The same for one frame, whichever of a batch: the arguments are of its memory.
    ///
    /// # Safety
    /// As [`Queue::launch`].
    pub unsafe fn launch_alone<A>(
        &self,
        kernel: &Kernel<A>,
        grid: (u32, u32),
        threads: u32,
        args: &impl Arguments<Static = A>,
    ) -> Result<()> {
        // SAFETY: the caller keeps what `put_on` asks for.
        unsafe { self.put_on(kernel, Shape::of(grid, threads), args) }
    }

    /// Launches a grid whose blocks wait for each other. Nothing may be on the branch: two such grids could each hold
    /// multiprocessors that the other waits for.
    ///
    /// # Safety
    /// As [`Queue::launch`].
    pub unsafe fn launch_cooperative<A>(
        &self,
        kernel: &Kernel<A>,
        blocks: u32,
        threads: u32,
        args: &impl Arguments<Static = A>,
    ) -> Result<()> {
        let shape = Shape { together: blocks > 1, ..Shape::of((blocks, 1), threads) };
        // SAFETY: the caller keeps what `put` asks for.
        unsafe { self.put(kernel, shape, args) }
    }

    /// # Safety
    /// As [`Queue::launch`].
    unsafe fn put<A>(
        &self,
        kernel: &Kernel<A>,
        shape: Shape,
        args: &impl Arguments<Static = A>,
    ) -> Result<()> {
        // SAFETY: the caller keeps what `put_on` asks for.
        unsafe { self.put_on(kernel, Shape { frames: self.frames, ..shape }, args) }
    }

    /// # Safety
    /// As [`Queue::launch`].
    unsafe fn put_on<A>(
        &self,
        kernel: &Kernel<A>,
        shape: Shape,
        args: &impl Arguments<Static = A>,
    ) -> Result<()> {
        if let Some(recording) = &mut *self.recording.lock().unwrap() {
            debug_assert!(
                !shape.together || !recording.is_parallel(),
                "{}: beside other launches",
                kernel.stage()
            );
            // SAFETY: the caller keeps the memory of the arguments valid whenever the graph is launched.
            return unsafe { recording.add(kernel, shape, args) };
        }
        // SAFETY: the caller keeps the memory of the arguments valid until the stream has passed.
        unsafe { kernel.launch(&self.cuda.stream, shape, args)? };
        self.mark(kernel.stage())
    }

    /// Records the end of a stage on the stream, while profiling.
    pub fn mark(&self, stage: &'static str) -> Result<()> {
        if let Some(marks) = &self.profile {
            let flags = sys::CUevent_flags::CU_EVENT_DEFAULT;
            let event = check(stage, self.cuda.stream.record_event(Some(flags)))?;
            marks.lock().unwrap().push((stage, event));
        }
        Ok(())
    }

    /// Switches the device timers of stages on or off. While they are on, frames are not replayed from a graph.
    pub fn set_profiling(&mut self, on: bool) {
        self.profile = on.then(Mutex::default);
    }

    /// Device times of the stages since the last call; waits for them.
    pub fn take_device_times(&mut self) -> Result<StageTimes> {
        let mut times = StageTimes::default();
        let Some(marks) = &self.profile else { return Ok(times) };
        check("profile", self.cuda.stream.synchronize())?;
        let marks = std::mem::take(&mut *marks.lock().unwrap());
        for pair in marks.windows(2) {
            let ms = check("profile", pair[0].1.elapsed_ms(&pair[1].1))?;
            if pair[1].0 != "frame" {
                times.add(pair[1].0, std::time::Duration::from_secs_f64(f64::from(ms.max(0.0)) / 1e3));
            }
        }
        Ok(times)
    }
}
