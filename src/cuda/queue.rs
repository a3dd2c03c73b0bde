// SPDX-License-Identifier: MPL-2.0
//! Where a frame's launches go: its stream, one beside it for small launches, one that only records; with clocks for profiles.

use std::sync::Mutex;

use cudarc::driver::{CudaEvent, sys};

use super::handle::Cuda;
use super::launch::{Kernel, check};
use crate::error::Result;
use crate::stage_times::StageTimes;

/// The streams of a frame.
pub(crate) struct Queue {
    profile: Option<Mutex<Vec<(&'static str, CudaEvent)>>>,
    beside: Beside,
    /// A stream that only records: others may put work on the frames' stream at the same time, which must not get into a graph.
    pub recorder: Cuda,
    /// Last: it may hold the context.
    pub cuda: Cuda,
}

/// A stream for launches beside those of the frame's stages, and what both note for each other. Its launches are small and wait for
/// each other, so they go first: behind the blocks of a large one they would end after that.
struct Beside {
    begin: CudaEvent,
    end: CudaEvent,
    /// Whether the frame's stream has yet to wait for the end.
    in_flight: bool,
    /// Last: it may hold the context.
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

    /// Whether stages are timed one by one.
    pub fn is_profiling(&self) -> bool {
        self.profile.is_some()
    }

    /// Sends what follows beside the frame's stream until [`Queue::end_beside`]; not while profiling.
    pub fn begin_beside(&mut self) -> Result<bool> {
        if self.is_profiling() {
            return Ok(false);
        }
        self.cuda.mark(&self.beside.begin)?;
        self.beside.cuda.follow(&self.beside.begin)?;
        std::mem::swap(&mut self.cuda, &mut self.beside.cuda);
        Ok(true)
    }

    /// What follows goes to the frame's stream again; [`Queue::join`] waits for what went beside.
    pub fn end_beside(&mut self) -> Result<()> {
        std::mem::swap(&mut self.cuda, &mut self.beside.cuda);
        self.beside.cuda.mark(&self.beside.end)?;
        self.beside.in_flight = true;
        Ok(())
    }

    /// Puts a launch on the stream.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn launch(
        &self,
        kernel: &Kernel,
        grid: (u32, u32),
        threads: u32,
        args: &mut [*mut std::ffi::c_void],
    ) -> Result<()> {
        // SAFETY: the caller keeps `args` equal to the kernel's parameters and their memory valid until this stream has passed;
        // `begin_beside` and `join` order what goes to the other stream.
        unsafe { kernel.launch(&self.cuda.stream, grid, threads, args)? };
        self.mark(kernel.stage)
    }

    /// The same for a grid whose blocks wait for each other. None may be behind another that went beside: each could have some of the
    /// multiprocessors that the other waits for.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn launch_cooperative(
        &self,
        kernel: &Kernel,
        blocks: u32,
        threads: u32,
        args: &mut [*mut std::ffi::c_void],
    ) -> Result<()> {
        debug_assert!(!self.beside.in_flight, "{}: cooperative beside other launches", kernel.stage);
        // SAFETY: as in `launch`.
        unsafe { kernel.launch_cooperative(&self.cuda.stream, blocks, threads, args)? };
        self.mark(kernel.stage)
    }

    /// What follows waits for the launches of `begin_beside`.
    pub fn join(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.beside.in_flight) {
            return Ok(());
        }
        self.cuda.follow(&self.beside.end)
    }

    /// Notes on the stream that a stage ends here, while profiling.
    pub fn mark(&self, stage: &'static str) -> Result<()> {
        if let Some(marks) = &self.profile {
            let flags = sys::CUevent_flags::CU_EVENT_DEFAULT;
            let event = check(stage, self.cuda.stream.record_event(Some(flags)))?;
            marks.lock().unwrap().push((stage, event));
        }
        Ok(())
    }

    /// Switches the device clocks of stages on or off; on, frames are not replayed from a graph.
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
