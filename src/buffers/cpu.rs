// SPDX-License-Identifier: MPL-2.0
//! What the stages of a frame share on the CPU.

use crate::cpu::Cpu;
use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::plan::Plan;
use crate::regions::MergeStep;
use crate::temporal::state::State;

/// Cluster of pixels outside of a mask, where clusters are named by pixels.
pub(crate) const NO_CLUSTER: u32 = u32::MAX;

/// What the pixels of a region add up to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RegionSums {
    pub area: u32,
    /// Columns and rows.
    pub position: [u64; 2],
    /// Left, top, and behind right and bottom.
    pub bounds: [u16; 4],
    /// Features.
    pub color: [u64; 3],
    /// The frame's own samples: R, G, B or Y, Cb, Cr; or the light of R, G, B.
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

/// What the stages of a frame hand on.
pub struct FrameBuffers {
    /// The packed color plane, see [`crate::color`], `OUTSIDE` of a mask; rows without padding.
    pub(crate) features: Array<u32>,
    /// The cluster of each pixel where clusters are named by one of their pixels, which is in it; rows without padding.
    /// Empty where clusters are cells of the grid: then the label plane holds them.
    pub(crate) clusters: Array<u32>,
    /// What lasts from frame to frame.
    pub(crate) temporal: Option<Box<State>>,
    /// Number of regions.
    pub(crate) count: u32,
    /// Of each region, once measured; empty before that, and where labels have changed since.
    pub(crate) sums: Array<RegionSums>,
    /// Whether samples and bounds are to be among them, and whether they are. Only stage `statistics` measures these.
    pub(crate) wants_samples: bool,
    pub(crate) has_samples: bool,
    /// What would be merged next, where that was asked for.
    pub(crate) merges: Array<MergeStep>,
    /// Mean samples of each region in the frame's own channels, where mean colors were asked for.
    pub(crate) means: Array<[u16; 3]>,
}

impl FrameBuffers {
    /// Memory for the frames of a plan.
    pub(crate) fn new(cpu: &Cpu, plan: &Plan) -> Result<Self> {
        let pixels = plan.frame.geometry.pixels();
        let features = memory::zeroed("packed colors", pixels)?;
        let clusters = memory::zeroed("clusters", if plan.clusters_are_pixels() { pixels } else { 0 })?;
        let state = |temporal| State::new(cpu, plan, temporal).map(Box::new);
        let temporal = plan.temporal.as_ref().map(state).transpose()?;
        let (sums, merges, means) = (Array::new(), Array::new(), Array::new());
        let (wants_samples, has_samples) = (false, false);
        Ok(Self { features, clusters, temporal, count: 0, sums, wants_samples, has_samples, merges, means })
    }

    /// Forgets what regions add up to.
    pub(crate) fn clear_sums(&mut self) {
        self.sums.clear();
        self.has_samples = false;
    }

    /// Name of a region over time; its label where nothing lasts.
    pub(crate) fn track_id(&self, label: usize) -> u32 {
        self.temporal
            .as_ref()
            .and_then(|state| state.named().get(label))
            .map_or(label as u32, |track| track.id)
    }
}
