// SPDX-License-Identifier: MPL-2.0
//! Memory that the stages of a frame share on the CPU.

use crate::cpu::Cpu;
use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::plan::Plan;
use crate::regions::MergeStep;
use crate::temporal::state::State;

/// Cluster of pixels outside of a mask, where clusters are named by pixels.
pub(crate) const NO_CLUSTER: u32 = u32::MAX;

/// Sums over the pixels of a region.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RegionSums {
    pub area: u32,
    /// Columns and rows.
    pub position: [u64; 2],
    /// Left, top, and one past right and bottom.
    pub bounds: [u16; 4],
    /// Features.
    pub color: [u64; 3],
    /// Sums of the frame's own samples: R, G, B or Y, Cb, Cr; or of linear R, G, B.
    pub samples: [u64; 3],
}

impl Default for RegionSums {
    fn default() -> Self {
        let bounds = [u16::MAX, u16::MAX, 0, 0];
        Self { area: 0, position: [0; 2], bounds, color: [0; 3], samples: [0; 3] }
    }
}

impl RegionSums {
    #[inline(always)]
    pub fn add(&mut self, other: &Self) {
        self.area += other.area;
        for i in 0..2 {
            self.position[i] += other.position[i];
            self.bounds[i] = self.bounds[i].min(other.bounds[i]);
            self.bounds[2 + i] = self.bounds[2 + i].max(other.bounds[2 + i]);
        }
        for i in 0..3 {
            self.color[i] += other.color[i];
            self.samples[i] += other.samples[i];
        }
    }
}

/// Memory that one stage of a frame hands to the next.
pub struct FrameBuffers {
    /// The packed color plane, see [`crate::color`]; `OUTSIDE` outside of a mask; rows without padding.
    pub(crate) features: Array<u32>,
    /// The cluster of each pixel, named by one of its pixels; rows without padding. Empty where clusters are cells of
    /// the grid, which the label plane holds.
    pub(crate) clusters: Array<u32>,
    /// The area of each pixel in the frame's prior, and of each region; rows without padding. Empty for a frame without one.
    pub(crate) prior: Array<u32>,
    pub(crate) areas: Array<u32>,
    /// State from frame to frame, in temporal mode.
    pub(crate) temporal: Option<Box<State>>,
    /// Number of regions.
    pub(crate) count: u32,
    /// Sums of each region. Empty before they are measured, and after labels have changed.
    pub(crate) sums: Array<RegionSums>,
    /// True if samples and bounds are wanted in `sums`, and true if they are there. Only stage `statistics` measures
    /// them.
    pub(crate) wants_samples: bool,
    pub(crate) has_samples: bool,
    /// The merges that would come next, if they were asked for.
    pub(crate) merges: Array<MergeStep>,
    /// Mean samples of each region in the frame's own channels, if mean colors were asked for.
    pub(crate) means: Array<[u16; 3]>,
}

impl FrameBuffers {
    /// Allocates memory for the frames of a plan.
    pub(crate) fn new(cpu: &Cpu, plan: &Plan) -> Result<Self> {
        let pixels = plan.frame.geometry.pixels();
        let features = memory::zeroed("packed colors", pixels)?;
        let clusters = memory::zeroed("clusters", if plan.clusters_are_pixels() { pixels } else { 0 })?;
        let state = |temporal| State::new(cpu, plan, temporal).map(Box::new);
        let temporal = plan.temporal.as_ref().map(state).transpose()?;
        let (sums, merges, means) = (Array::new(), Array::new(), Array::new());
        let (prior, areas) = (Array::new(), Array::new());
        let (wants_samples, has_samples) = (false, false);
        Ok(Self {
            features,
            clusters,
            prior,
            areas,
            temporal,
            count: 0,
            sums,
            wants_samples,
            has_samples,
            merges,
            means,
        })
    }

    /// Discards the sums of regions, whose labels have changed.
    pub(crate) fn clear_sums(&mut self) {
        self.sums.clear();
        self.has_samples = false;
    }

    /// Gives regions that earlier ones became a part of the area of the first of these. `labels` has the later label of each; later
    /// ones are numbered in the order of their first part.
    pub(crate) fn relabel_areas(&mut self, labels: &[u16]) {
        if self.areas.is_empty() {
            return;
        }
        let mut next = 0;
        for (part, &label) in labels.iter().enumerate() {
            if usize::from(label) == next {
                self.areas[next] = self.areas[part];
                next += 1;
            }
        }
        self.areas.truncate(next);
    }

    /// Track id of a region; without temporal mode, its label.
    pub(crate) fn track_id(&self, label: usize) -> u32 {
        self.temporal
            .as_ref()
            .and_then(|state| state.named().get(label))
            .map_or(label as u32, |track| track.id)
    }
}
