// SPDX-License-Identifier: MPL-2.0
//! SLIC on a CUDA device: its tables and arguments; `algo/clustering/cuda.rs` launches. Seeding and updating happen inside the kernels, see
//! kernels/slic.cu.

use super::Plan;
use crate::algo::AlgorithmPlan;
use crate::algo::clustering::cuda::{Clustering, Kernels, Tables, Turns};
use crate::backend::{Segmenter, StageTimes};
use crate::buffers::cuda::FrameBuffers;
use crate::cuda::Cuda;
use crate::cuda::abi::{GridArgs, SLIC_REACH_BYTES, SlicArgs, SlicCenter, SlicSums, SlicTemporal};
use crate::cuda::device::{ModuleCode, module_code};
use crate::cuda::memory::Memory;
use crate::cuda::tuning::{LABEL_THREADS, LABEL_THREADS_SMALL};
use crate::error::Result;
use crate::grid::Grid;

const MODULE: ModuleCode = module_code!("slic");

pub(crate) struct Slic {
    clustering: Clustering<SlicSums, SlicCenter, SlicArgs>,
    plan: Plan,
    px: Memory<i32>,
    py: Memory<i32>,
}

impl Slic {
    /// Words of the accumulators of a frame's clusters.
    pub fn sums_words(grid: &Grid) -> usize {
        grid.cells() * size_of::<SlicSums>() / size_of::<u32>()
    }

    pub fn new(cuda: &Cuda, plan: &crate::plan::Plan, slic: &Plan, buffers: &FrameBuffers) -> Result<Self> {
        let small = slic.adaptive.is_none() && buffers.has_few_tiles();
        let (assign, label, follow_assign, follow_label) = match slic.adaptive {
            None if small => ("slic_assign", "slic_label_small", "slic_follow", "slic_label_follow_small"),
            None => ("slic_assign", "slic_label", "slic_follow", "slic_label_follow"),
            Some(_) => (
                "slic_assign_adaptive",
                "slic_label_adaptive",
                "slic_follow_adaptive",
                "slic_label_follow_adaptive",
            ),
        };
        let label_threads = if small { LABEL_THREADS_SMALL } else { LABEL_THREADS };
        let kernels = Kernels {
            module: &MODULE,
            assign,
            label,
            follow_assign,
            follow_label,
            assign_stage: "slic/assign",
            label_stage: "slic/label",
            label_threads,
            reach: SLIC_REACH_BYTES,
        };
        let args = SlicArgs {
            grid: GridArgs::new(&plan.grid),
            color_shift: slic.color_shift,
            initial: slic.adaptive.map_or(0, |a| a.initial),
            position_weight: slic.adaptive.map_or(0, |a| a.position),
            unused: 0,
            seeds: buffers.seeds(),
        };
        Ok(Self {
            clustering: Clustering::new(cuda, plan, &kernels, args, slic.iterations)?,
            plan: slic.clone(),
            px: Memory::with(cuda, "device memory", &slic.px)?,
            py: Memory::with(cuda, "device memory", &slic.py)?,
        })
    }
}

impl Segmenter<Cuda> for Slic {
    fn change(&mut self, plan: &crate::plan::Plan, buffers: &mut FrameBuffers) -> Result<()> {
        let AlgorithmPlan::Slic(slic) = &plan.algorithm else { return Ok(()) };
        let mut next = Self::new(&buffers.queue.cuda, plan, slic, buffers)?;
        if let Some(state) = &buffers.temporal
            && let Some(carried) = next.clustering.take_carried(&mut self.clustering, state.phase().1)
        {
            let what = "carried clusters";
            let mut centers = vec![SlicCenter { value: [0; 8] }; carried.len()];
            carried.read(&buffers.queue.cuda, what, 0, &mut centers)?;
            for SlicCenter { value: [l, a, b, x, y, ..] } in &mut centers {
                ([*l, *a, *b], [*x, *y]) = slic.translate(&self.plan, [*l, *a, *b], [*x, *y]);
            }
            carried.write(&buffers.queue.cuda, what, 0, &centers)?;
        }
        *self = next;
        Ok(())
    }

    fn segment(&mut self, buffers: &mut FrameBuffers, _: &mut (), _: &mut StageTimes) -> Result<()> {
        let tables = [self.px.address().cast(), self.py.address().cast()];
        let tables = Tables { rounds: &tables, follow_label: &tables };
        let scale = self.plan.position_scale;
        self.clustering.segment(buffers, &tables, |turns| {
            let Turns { sums, clusters: centers, carried_last, carried } = turns;
            SlicTemporal { sums, centers, carried_last, carried, scale }
        })
    }
}
