// SPDX-License-Identifier: MPL-2.0
//! Frames that a batch works on side by side: whose memory each has, and which are launched together.

use super::cuda::FrameBuffers;
use crate::cuda::DeviceFrame;
use crate::cuda::abi::Batch;
use crate::cuda::launch::{Frames, check};
use crate::error::{Error, Result};
use crate::params::Outputs;

impl FrameBuffers {
    /// Forgets what is known of the last frame's results, because the next one's stages overwrite them. Tells the device where the
    /// frames of a batch are.
    pub(crate) fn begin(&mut self, frame: &DeviceFrame<'_>) -> Result<()> {
        self.downloads.get_mut().unwrap().begin();
        self.members.clear();
        self.members.extend(0..frame.each().len());
        self.place(frame, None)
    }

    /// Has the next launches work on a batch's frames; on those of streams that go on, or of those that begin, if `warm` says which.
    fn place(&mut self, frame: &DeviceFrame<'_>, warm: Option<bool>) -> Result<()> {
        let Some((frames, batch)) = self.frames.as_ref().zip(self.queue.cuda.batch.as_ref()) else {
            return Ok(());
        };
        let (placed, state) = (&mut self.placed, self.temporal.as_ref());
        let chosen =
            |memory: usize| warm.is_none_or(|warm| state.is_some_and(|state| state.goes_on(memory) == warm));
        placed.clear();
        for (i, &memory) in self.members.iter().enumerate().filter(|(_, memory)| chosen(**memory)) {
            placed.resize(placed.len().max(memory + 1), None);
            placed[memory] = Some(i);
        }
        if *placed == [Some(0)] && self.members.len() == 1 {
            self.queue.frames = Frames::ONE;
            return Ok(());
        }
        let some = placed.iter().any(Option::is_none);
        if some {
            // Few sizes, each of which records a graph of its own.
            placed.resize(placed.len().next_power_of_two().min(batch.frames() as usize), None);
        }
        check("ingest", self.queue.cuda.device.context.bind_to_thread())?;
        frames.fill(&self.queue.cuda, frame, placed)?;
        let (distance, some) = (batch.distance() as u32, u32::from(some));
        let batch = Batch { planes: frames.list.address(), distance, some };
        self.queue.frames = Frames { count: placed.len() as u32, batch };
        Ok(())
    }

    /// The memory of the frame that is drawn on.
    ///
    /// # Errors
    ///
    /// [`Error::Batch`] after a batch, if nobody has said which.
    pub(crate) fn drawn_memory(&self) -> Result<usize> {
        match (self.drawn, &self.members[..]) {
            (Some(memory), _) => Ok(memory),
            (None, [] | [0]) => Ok(0),
            (None, _) => Err(Error::Batch("say which of its frames is drawn on, by Engine::draw_of".into())),
        }
    }

    /// Returns true if a stream before one of the last batch had no frame in it.
    pub(crate) fn has_absent(&self) -> bool {
        let Frames { count, batch } = self.queue.frames;
        batch.some != 0 || count as usize != self.members_len()
    }

    /// Frames of the last batch, or 1.
    pub(crate) fn members_len(&self) -> usize {
        self.members.len().max(1)
    }

    /// Which memory a frame of the last batch has.
    pub(crate) fn memory_of(&self, frame: usize) -> usize {
        self.members.get(frame).copied().unwrap_or(0)
    }

    /// Runs the frames of streams in temporal mode: first those of streams that go on, then of those that begin; see
    /// [`Backend::run`](crate::backend::Backend::run).
    pub(crate) fn run_streams(
        &mut self,
        frame: &DeviceFrame<'_>,
        outputs: Outputs,
        stages: &mut (dyn FnMut(&mut FrameBuffers) -> Result<()> + Send),
    ) -> Result<()> {
        self.downloads.get_mut().unwrap().begin();
        let count = frame.each().len();
        self.members.clear();
        self.members.extend((0..count).map(|i| frame.stream(i)));
        let Self { temporal: Some(state), queue, first_labels, members, .. } = self else { return Ok(()) };
        state.swap();
        let mut done =
            state.hold_others(&queue.cuda, first_labels, |stream| members.binary_search(&stream).is_ok());
        let going_on = members.iter().filter(|&&stream| state.goes_on(stream)).count();
        for (warm, frames) in [(true, going_on), (false, count - going_on)] {
            if frames > 0 {
                done = done.and_then(|()| self.run_some(frame, outputs, stages, warm));
            }
        }
        if 0 < going_on && going_on < count {
            // Results are those of all.
            done = done.and_then(|()| self.place(frame, None));
        }
        let Self { temporal: Some(state), members, .. } = self else { return done };
        match done {
            Ok(()) => members.iter().for_each(|&stream| state.complete(stream)),
            // A batch that failed is left out: all streams start from their last frames again.
            Err(_) => state.swap(),
        }
        done
    }

    /// Runs the frames of the streams that go on, or of those that begin.
    fn run_some(
        &mut self,
        frame: &DeviceFrame<'_>,
        outputs: Outputs,
        stages: &mut (dyn FnMut(&mut FrameBuffers) -> Result<()> + Send),
        warm: bool,
    ) -> Result<()> {
        if let Some(state) = &mut self.temporal {
            state.select(warm);
        }
        self.place(frame, Some(warm))?;
        self.replay(frame, outputs, stages)
    }
}
