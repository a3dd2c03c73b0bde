// SPDX-License-Identifier: MPL-2.0
//! Streams for a frame's launches: the frame's own, a branch for small launches, and one that only records; with timers
//! for profiles.

use std::sync::Mutex;

use cudarc::driver::{CudaEvent, sys};

use super::handle::Cuda;
use super::launch::{Arguments, Kernel, check};
use crate::error::Result;
use crate::stage_times::StageTimes;

/// The streams of a frame.
pub(crate) struct Queue {
    profile: Option<Mutex<Vec<(&'static str, CudaEvent)>>>,
    beside: Beside,
    /// A stream that only records. Other threads may launch on the frame's stream at the same time, and that work must
    /// not get into a graph.
    pub recorder: Cuda,
    /// Dropped last, because it may hold the context.
    pub cuda: Cuda,
}

/// The branch: a stream parallel to the frame's, and the events between both. Its launches are small and depend on each
/// other, so they have priority: behind the blocks of a large launch they would finish after it.
struct Beside {
    begin: CudaEvent,
    end: CudaEvent,
    /// True if the frame's stream has yet to wait for the branch.
    in_flight: bool,
    /// Dropped last, because it may hold the context.
    cuda: Cuda,
}

impl Beside {
    fn new(cuda: &Cuda) -> Result<Self> {
        Ok(Self { begin: cuda.event()?, end: cuda.event()?, in_flight: false, cuda: cuda.urgent_lane()? })
    }
}

impl Queue {
    pub fn new(cuda: &Cuda) -> Result<Self> {
        Ok(Self { profile: None, beside: Beside::new(cuda)?, recorder: cuda.lane()?, cuda: cuda.clone() })
    }

    /// Returns true if stages are timed one by one.
    pub fn is_profiling(&self) -> bool {
        self.profile.is_some()
    }

    /// Sends further launches to the branch until [`Queue::end_beside`]. Returns false and does nothing while
    /// profiling.
    pub fn begin_beside(&mut self) -> Result<bool> {
        if self.is_profiling() {
            return Ok(false);
        }
        self.cuda.mark(&self.beside.begin)?;
        self.beside.cuda.follow(&self.beside.begin)?;
        std::mem::swap(&mut self.cuda, &mut self.beside.cuda);
        Ok(true)
    }

    /// Sends further launches to the frame's stream again; [`Queue::join`] waits for the branch.
    pub fn end_beside(&mut self) -> Result<()> {
        std::mem::swap(&mut self.cuda, &mut self.beside.cuda);
        self.beside.cuda.mark(&self.beside.end)?;
        self.beside.in_flight = true;
        Ok(())
    }

    /// Launches a kernel on the stream.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn launch<A>(
        &self,
        kernel: &Kernel<A>,
        grid: (u32, u32),
        threads: u32,
        args: &impl Arguments<Static = A>,
    ) -> Result<()> {
        // SAFETY: the caller keeps the memory of the arguments valid until this stream has passed; `begin_beside` and `join` order what
        // goes to the other stream.
        unsafe { kernel.launch(&self.cuda.stream, grid, threads, args)? };
        self.mark(kernel.stage())
    }

    /// Launches a grid whose blocks wait for each other. The branch must not be in flight: two such grids could each
    /// hold multiprocessors that the other waits for.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn launch_cooperative<A>(
        &self,
        kernel: &Kernel<A>,
        blocks: u32,
        threads: u32,
        args: &impl Arguments<Static = A>,
    ) -> Result<()> {
        debug_assert!(!self.beside.in_flight, "{}: cooperative beside other launches", kernel.stage());
        // SAFETY: as in `launch`.
        unsafe { kernel.launch_cooperative(&self.cuda.stream, blocks, threads, args)? };
        self.mark(kernel.stage())
    }

    /// Makes the frame's stream wait for the branch.
    pub fn join(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.beside.in_flight) {
            return Ok(());
        }
        self.cuda.follow(&self.beside.end)
    }

    /// Leaves out the wait for a branch whose launches went into a recording that is no more.
    pub fn forget_branch(&mut self) {
        self.beside.in_flight = false;
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
