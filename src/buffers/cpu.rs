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
        Ok(Self { features, clusters, temporal, count: 0, merges: Array::new(), means: Array::new() })
    }

    /// Name of a region over time; its label where nothing lasts.
    pub(crate) fn track_id(&self, label: usize) -> u32 {
        self.temporal
            .as_ref()
            .and_then(|state| state.named().get(label))
            .map_or(label as u32, |track| track.id)
    }
}
