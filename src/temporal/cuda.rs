// SPDX-License-Identifier: MPL-2.0
//! Stages of temporal mode on a CUDA device: launches only, see kernels/temporal.cu and kernels/identity.cu.
//!
//! The host knows before a frame starts whether it is a warm start, and records one graph for either case. Only the
//! device knows of a cut: every launch after the first warm round reads the residuals and branches on them.

use super::{CLAIM_ROUNDS, Plan};
use crate::backend::{self, StageTimes};
use crate::buffers::cuda::FrameBuffers;
use crate::cuda::kernels::{
    temporal_begin, temporal_begin_masked, temporal_claim, temporal_identify, temporal_name, temporal_own,
    temporal_reassign, temporal_shift, temporal_shift_masked, temporal_track,
};
use crate::cuda::tuning::{
    CLAIM_THREADS, IDENTIFY_THREADS, SHIFT_THREADS, TEMPORAL_THREADS, TRACK_POINTS, TRACK_THREADS,
};
use crate::cuda::{Cuda, HostLabels};
use crate::error::Result;

/// Stages of temporal mode around the segmentation.
pub(crate) struct Temporal {
    begin: temporal_begin::Kernel,
    shift: temporal_shift::Kernel,
    track: temporal_track::Kernel,
    claim: temporal_claim::Kernel,
    reassign: temporal_reassign::Kernel,
    own: temporal_own::Kernel,
    identify: temporal_identify::Kernel,
    name: temporal_name::Kernel,
    claim_reach: u32,
    shifts: u32,
    begin_blocks: u32,
    identify_blocks: u32,
}

impl Temporal {
    pub fn new(cuda: &Cuda, plan: &crate::plan::Plan, temporal: &Plan) -> Result<Self> {
        let device = &cuda.device;
        let most = 4 * cuda.multiprocessors();
        let squares = temporal.thumbnail[0] * temporal.thumbnail[1];
        let points = super::track_points(&plan.grid, plan.frame.geometry);
        debug_assert!(points <= TRACK_POINTS as usize);
        // Two words per sample.
        let track_bytes = 8 * points * (TRACK_THREADS / 32) as usize;
        let (begin, shift) = match temporal.masked {
            false => (temporal_begin::KERNEL, temporal_shift::KERNEL),
            true => (temporal_begin_masked::KERNEL, temporal_shift_masked::KERNEL),
        };
        Ok(Self {
            begin: device.kernel(begin, "temporal/motion")?,
            shift: device.kernel(shift, "temporal/motion")?,
            track: device.kernel(temporal_track::KERNEL, "temporal/track")?.with_shared(track_bytes),
            claim: device.kernel(temporal_claim::KERNEL, "temporal/reassign")?,
            reassign: device.kernel(temporal_reassign::KERNEL, "temporal/reassign")?,
            own: device.kernel(temporal_own::KERNEL, "temporal/identify")?,
            identify: device.kernel(temporal_identify::KERNEL, "temporal/identify")?,
            name: device.kernel(temporal_name::KERNEL, "temporal/identify")?,
            claim_reach: temporal.claim_reach,
            shifts: temporal.shifts() as u32,
            begin_blocks: squares.div_ceil(TEMPORAL_THREADS / 32).clamp(1, 2 * most),
            identify_blocks: (temporal.samples as u32).div_ceil(IDENTIFY_THREADS).clamp(1, most),
        })
    }
}

impl Temporal {
    /// Launches the stage `temporal/identify`.
    fn launch_identify(&self, buffers: &FrameBuffers) -> Result<()> {
        let Some(state) = &buffers.temporal else { return Ok(()) };
        let (all, queue) = (state.addresses(buffers.first_labels.address()), &buffers.queue);
        let (t, grid, args) = (&all, &state.grid, &state.args);
        let (c, component_label) = (&buffers.components(), buffers.component_labels.address());
        let follows = u32::from(state.warm);
        let threads = TEMPORAL_THREADS;
        // SAFETY: `State::new` has made all arrays with the entries that kernels/abi.cuh names, for this grid; the table of pairs has
        // twice as many slots as there are samples.
        unsafe {
            if args.in_slots != 0 {
                let slots = (state.cells.div_ceil(threads), 1);
                let own = temporal_own::Args { c, component_label, t, grid, args, warm: follows };
                queue.launch(&self.own, slots, threads, &own)?;
            }
            let identify = temporal_identify::Args { c, component_label, t, grid, args, follows };
            queue.launch(&self.identify, (self.identify_blocks, 1), IDENTIFY_THREADS, &identify)?;
            state.match_regions(queue, t)?;
            let name = temporal_name::Args { c, t, grid, args, follows };
            queue.launch(&self.name, (args.name_blocks, 1), threads, &name)
        }
    }
}

impl backend::Temporal<Cuda> for Temporal {
    fn begin(&mut self, buffers: &mut FrameBuffers, _: &mut StageTimes) -> Result<()> {
        let Some(state) = &buffers.temporal else { return Ok(()) };
        let (all, queue) = (state.addresses(buffers.first_labels.address()), &buffers.queue);
        let (t, grid, args) = (&all, &state.grid, &state.args);
        let (cells, threads) = (state.cells, TEMPORAL_THREADS);
        // SAFETY: `State::new` has made all arrays with the entries that kernels/abi.cuh names, for this grid; labels of the last frame
        // are below its number of regions.
        unsafe {
            let warm = u32::from(state.warm);
            let begin = temporal_begin::Args { t, counters: buffers.counters(), grid, args, warm };
            queue.launch(&self.begin, (self.begin_blocks, 1), threads, &begin)?;
            if !state.warm {
                return Ok(());
            }
            let shift = temporal_shift::Args { t, grid, args };
            queue.launch(&self.shift, (self.shifts + 1, 1), SHIFT_THREADS, &shift)?;
            if args.in_slots == 0 {
                return Ok(());
            }
            let regions = (cells.div_ceil(TRACK_THREADS / 32), 1);
            queue.launch(&self.track, regions, TRACK_THREADS, &temporal_track::Args { t, grid, args })?;
            for round in 1..=CLAIM_ROUNDS as u32 {
                let claim = temporal_claim::Args { t, grid, round, reach: self.claim_reach };
                queue.launch(&self.claim, (cells.div_ceil(CLAIM_THREADS), 1), CLAIM_THREADS, &claim)?;
            }
            let blocks = (cells.div_ceil(threads), 1);
            queue.launch(&self.reassign, blocks, threads, &temporal_reassign::Args { t, grid, args })
        }
    }

    fn identify(
        &mut self,
        buffers: &mut FrameBuffers,
        _: &mut HostLabels<'_>,
        _: &mut StageTimes,
    ) -> Result<()> {
        match &buffers.temporal {
            // Merging starts from identities, and refining changes components, so both have to wait for this stage.
            Some(state) if state.changes_later() => self.launch_identify(buffers),
            Some(_) => buffers.fork(|buffers| self.launch_identify(buffers)),
            None => Ok(()),
        }
    }

    fn reset(&mut self, buffers: &mut FrameBuffers) {
        if let Some(state) = &mut buffers.temporal {
            state.forget();
        }
    }

    fn next_id(&mut self, buffers: &FrameBuffers) -> Result<u32> {
        buffers.temporal.as_ref().map_or(Ok(1), |state| state.next_id(&buffers.queue.cuda))
    }

    fn set_next_id(&mut self, buffers: &mut FrameBuffers, id: u32) -> Result<()> {
        let cuda = &buffers.queue.cuda;
        buffers.temporal.as_mut().map_or(Ok(()), |state| state.set_next_id(cuda, id))
    }
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::TRACK_POINTS;

    /// The kernels divide by a multiplication that is exact for numbers below these.
    #[test]
    fn surroundings_of_slots_have_few_samples() {
        for step in (2..200).chain([1000, 8192]) {
            for (width, height) in [(1, 1), (16, 7), (640, 480), (1921, 1081), (7680, 4320)] {
                let geometry = Geometry::new(width, height).unwrap();
                let points = track_points(&Grid::with_step(geometry, step), geometry);
                assert!(points <= TRACK_POINTS as usize, "{points} for {step} in {width}x{height}");
            }
        }
    }

    #[test]
    fn the_kernels_have_the_same_constants() {
        let header = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/temporal.cuh"));
        let defined = |name: &str| {
            let value =
                |line: &'static str| line.strip_prefix("#define ")?.strip_prefix(name)?.strip_prefix(' ');
            let value = header.lines().find_map(value).unwrap_or_else(|| panic!("no {name}"));
            value.trim_end_matches('u').parse::<u32>().unwrap()
        };
        for (name, value) in [
            ("POSITION_UNIT", POSITION_UNIT as u32),
            ("SAME", SAME),
            ("MOVED_DISCOUNT", MOVED_DISCOUNT),
            ("STILL_DISCOUNT", STILL_DISCOUNT),
            ("STILL", STILL),
            ("TRACK_MARGIN", TRACK_MARGIN),
            ("TRACK_NOISE", TRACK_NOISE),
            ("TRACK_FLAT", TRACK_FLAT),
            ("FLAT_ONE", FLAT_ONE),
            ("TRACK_HOP", TRACK_HOPS[0] as u32),
            ("CLAIM_ROUNDS", CLAIM_ROUNDS as u32),
            ("MATCH_ROUNDS", MATCH_ROUNDS),
            ("SHIFTS", (2 * REACH + 1).pow(2)),
            ("MAX_REGIONS", crate::post::connectivity::MAX_REGIONS as u32),
        ] {
            assert_eq!(defined(name), value, "{name}");
        }
    }
}
