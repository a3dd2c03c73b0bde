// SPDX-License-Identifier: MPL-2.0
//! Stages `temporal/motion`, `temporal/track`, `temporal/reassign` and `temporal/identify` on the CPU.

use super::state::State;
use crate::backend::{self, StageTimes};
use crate::buffers::cpu::FrameBuffers;
use crate::cpu::Cpu;
use crate::error::Result;
use crate::image::Labels;

/// Stages of temporal mode around the segmentation.
pub(crate) struct Temporal {
    cpu: Cpu,
}

impl Temporal {
    pub fn new(cpu: &Cpu) -> Self {
        Self { cpu: cpu.clone() }
    }
}

impl backend::Temporal<Cpu> for Temporal {
    fn begin(&mut self, buffers: &mut FrameBuffers, times: &mut StageTimes) -> Result<()> {
        let FrameBuffers { features, temporal: Some(state), .. } = buffers else { return Ok(()) };
        times.time("temporal/motion", || {
            state.count_inside(features);
            (state.shift, state.unlike) = ([0; 2], false);
            if state.warm {
                state.estimate_shift(&self.cpu);
                // Without clusters there is no residual that would tell of a cut.
                state.warm = state.plan.in_slots || !state.unlike;
            }
        });
        if state.warm {
            times.time("temporal/track", || state.track(&self.cpu, features))?;
            times.time("temporal/reassign", || state.reassign(&self.cpu))?;
        }
        Ok(())
    }

    fn identify(
        &mut self,
        buffers: &mut FrameBuffers,
        labels: &mut Labels<'_>,
        times: &mut StageTimes,
    ) -> Result<()> {
        let FrameBuffers { temporal: Some(state), count, features, .. } = buffers else { return Ok(()) };
        times.time("temporal/identify", || state.identify(&self.cpu, features, labels, *count as usize))
    }

    fn reset(&mut self, buffers: &mut FrameBuffers) {
        if let Some(state) = &mut buffers.temporal {
            state.forget();
        }
    }

    fn next_id(&mut self, buffers: &FrameBuffers) -> Result<u32> {
        Ok(buffers.temporal.as_deref().map_or(1, State::next_id))
    }

    fn set_next_id(&mut self, buffers: &mut FrameBuffers, id: u32) -> Result<()> {
        if let Some(state) = &mut buffers.temporal {
            state.set_next_id(id);
        }
        Ok(())
    }
}
