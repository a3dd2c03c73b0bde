// SPDX-License-Identifier: MPL-2.0
//! SLIC on a CUDA device: its tables and arguments. `algo/clustering/cuda.rs` launches; kernels/slic.cu seeds and
//! updates inside of its kernels.

use super::Plan;
use crate::algo::AlgorithmPlan;
use crate::algo::clustering::cuda::{Clustering, Kernels, Lasting, Method, Round, Turns};
use crate::backend::{Segmenter, StageTimes};
use crate::buffers::cuda::FrameBuffers;
use crate::cuda::abi::{
    Address, Components, GridArgs, SLIC_REACH_BYTES, SlicArgs, SlicCenter, SlicSums, SlicTemporal,
};
use crate::cuda::kernels::{
    slic_assign, slic_assign_adaptive, slic_follow, slic_follow_adaptive, slic_label, slic_label_adaptive,
    slic_label_follow, slic_label_follow_adaptive, slic_label_follow_small, slic_label_small,
};
use crate::cuda::memory::Memory;
use crate::cuda::tuning::{LABEL_THREADS, LABEL_THREADS_SMALL};
use crate::cuda::{Cuda, HostLabels};
use crate::error::Result;
use crate::grid::Grid;

/// Positions on the scale of colors, and the kernels' arguments.
struct Tables {
    px: Memory<i32>,
    py: Memory<i32>,
    /// [`Plan::position_scale`].
    scale: [i64; 2],
    args: SlicArgs,
}

impl Method for Tables {
    type Sums = SlicSums;
    type Cluster = SlicCenter;
    type Own = SlicTemporal;
    type Assign<'a> = slic_assign::Args<'a>;
    type Label<'a> = slic_label::Args<'a>;
    type FollowAssign<'a> = slic_follow::Args<'a>;
    type FollowLabel<'a> = slic_label_follow::Args<'a>;

    fn own(&self, memory: Turns<SlicSums, SlicCenter>) -> SlicTemporal {
        let Turns { sums, clusters: centers, carried_last, carried } = memory;
        SlicTemporal { sums, centers, carried_last, carried, scale: self.scale }
    }

    fn assign(&self, buffers: &FrameBuffers, round: Round<SlicSums, SlicCenter>) -> slic_assign::Args<'_> {
        slic_assign::Args {
            features: buffers.features(),
            samples: buffers.samples.address(),
            px: self.px.address(),
            py: self.py.address(),
            sums: round.sums,
            sums_out: round.sums_out,
            sums_clear: round.sums_clear,
            old: round.old,
            out: round.out,
            seeds: round.seeds,
            args: &self.args,
        }
    }

    fn label<'a>(
        &'a self,
        buffers: &FrameBuffers,
        sums: Address<SlicSums>,
        old: Address<SlicCenter>,
        components: &'a Components,
    ) -> slic_label::Args<'a> {
        slic_label::Args {
            features: buffers.features(),
            px: self.px.address(),
            py: self.py.address(),
            sums,
            old,
            components,
            args: &self.args,
        }
    }

    fn follow_assign<'a>(
        &'a self,
        buffers: &FrameBuffers,
        lasting: &'a Lasting<SlicTemporal>,
        begin: u32,
        round: u32,
    ) -> slic_follow::Args<'a> {
        slic_follow::Args {
            samples: buffers.samples.address(),
            px: self.px.address(),
            py: self.py.address(),
            own: &lasting.own,
            t: &lasting.all,
            temporal: &lasting.shape,
            begin,
            round,
            args: &self.args,
        }
    }

    fn follow_label<'a>(
        &'a self,
        lasting: &'a Lasting<SlicTemporal>,
        components: &'a Components,
        round: u32,
        follows: u32,
    ) -> slic_label_follow::Args<'a> {
        slic_label_follow::Args {
            px: self.px.address(),
            py: self.py.address(),
            own: &lasting.own,
            t: &lasting.all,
            temporal: &lasting.shape,
            components,
            round,
            follows,
            args: &self.args,
        }
    }
}

pub(crate) struct Slic {
    clustering: Clustering<Tables>,
    tables: Tables,
    plan: Plan,
}

impl Slic {
    /// Words of the accumulators of a frame's clusters.
    pub fn sums_words(grid: &Grid) -> usize {
        grid.cells() * size_of::<SlicSums>() / size_of::<u32>()
    }

    /// Words of the clusters that a frame leaves to the next: none where every pixel is one.
    pub fn carried_words(grid: &Grid) -> usize {
        if grid.step() > 1 { grid.cells() * size_of::<SlicCenter>() / size_of::<u32>() } else { 0 }
    }

    pub fn new(cuda: &Cuda, plan: &crate::plan::Plan, slic: &Plan, buffers: &FrameBuffers) -> Result<Self> {
        let small = slic.adaptive.is_none() && buffers.has_few_tiles();
        let (assign, follow_assign) = match slic.adaptive {
            None => (slic_assign::KERNEL, slic_follow::KERNEL),
            Some(_) => (slic_assign_adaptive::KERNEL, slic_follow_adaptive::KERNEL),
        };
        let (label, follow_label) = match slic.adaptive {
            None if small => (slic_label_small::KERNEL, slic_label_follow_small::KERNEL),
            None => (slic_label::KERNEL, slic_label_follow::KERNEL),
            Some(_) => (slic_label_adaptive::KERNEL, slic_label_follow_adaptive::KERNEL),
        };
        let kernels = Kernels {
            assign,
            label,
            follow_assign,
            follow_label,
            assign_stage: "slic/assign",
            label_stage: "slic/label",
            label_threads: if small { LABEL_THREADS_SMALL } else { LABEL_THREADS },
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
            clustering: Clustering::new(cuda, plan, kernels, slic.iterations)?,
            tables: Tables {
                px: Memory::with(cuda, "device memory", &slic.px)?,
                py: Memory::with(cuda, "device memory", &slic.py)?,
                scale: slic.position_scale,
                args,
            },
            plan: slic.clone(),
        })
    }
}

impl Segmenter<Cuda> for Slic {
    fn change(&mut self, plan: &crate::plan::Plan, buffers: &mut FrameBuffers) -> Result<()> {
        let AlgorithmPlan::Slic(slic) = &plan.algorithm else { return Ok(()) };
        let next = Self::new(&buffers.queue.cuda, plan, slic, buffers)?;
        if let Some(state) = buffers.temporal.as_ref().filter(|_| next.clustering.follows()) {
            let what = "carried clusters";
            let mut words = vec![0; Self::carried_words(&plan.grid)];
            for mut carried in state.carried_of_streams(&buffers.queue.cuda) {
                carried.read(&buffers.queue.cuda, what, 0, &mut words)?;
                for SlicCenter { value: [l, a, b, x, y, ..] } in bytemuck::cast_slice_mut(&mut words) {
                    ([*l, *a, *b], [*x, *y]) = slic.translate(&self.plan, [*l, *a, *b], [*x, *y]);
                }
                carried.write(&buffers.queue.cuda, what, 0, &words)?;
            }
        }
        *self = next;
        Ok(())
    }

    fn segment(
        &mut self,
        buffers: &mut FrameBuffers,
        _: &mut HostLabels<'_>,
        _: &mut StageTimes,
    ) -> Result<()> {
        self.clustering.segment(buffers, &self.tables)
    }
}
