// SPDX-License-Identifier: MPL-2.0
//! LSC on a CUDA device: its tables, arguments and mean. `algo/clustering/cuda.rs` launches the rest; kernels/lsc.cu
//! seeds and updates inside of its kernels.

use std::mem::offset_of;

use super::{Plan, unpack_pair};
use crate::algo::AlgorithmPlan;
use crate::algo::clustering::cuda::{Clustering, Kernels, Lasting, Method, Round, Turns};
use crate::backend::{Segmenter, StageTimes};
use crate::buffers::cuda::FrameBuffers;
use crate::cuda::abi::{
    Address, Components, GridArgs, LSC_REACH_BYTES, LscArgs, LscMean, LscMeans, LscSums, LscTemporal,
};
use crate::cuda::kernels::{
    lsc_assign, lsc_follow, lsc_label, lsc_label_follow, lsc_label_follow_small, lsc_label_small, lsc_mean,
    lsc_mean_masked,
};
use crate::cuda::memory::Memory;
use crate::cuda::tuning::{LABEL_THREADS, LABEL_THREADS_SMALL, MEAN_THREADS};
use crate::cuda::{Cuda, HostLabels};
use crate::error::Result;
use crate::grid::Grid;

/// Samples that a block of stage `lsc/mean` adds up, while there are blocks enough.
const MEAN_SAMPLES: u32 = 4 * MEAN_THREADS;

/// Most blocks of stage `lsc/mean`; a block of the largest frame still has less than 2^20 samples.
const MEAN_BLOCKS: u32 = 1024;

/// Tables of temporal mode.
struct Follow {
    /// Pairs of color as floats.
    color: Memory<[f32; 2]>,
    turn: Memory<u32>,
    square: f32,
}

/// Pairs of coordinates for each value of a channel and for each column and row, and the kernels' arguments.
struct Tables {
    color: Memory<u32>,
    px: Memory<u32>,
    py: Memory<u32>,
    /// Behind the first set of sums.
    means: Address<LscMeans>,
    /// Where something lasts and is clustered.
    follow: Option<Follow>,
    args: LscArgs,
}

impl Tables {
    /// The mean that stage `lsc/mean` leaves, behind the sum of all samples.
    fn mean(&self) -> Address<LscMean> {
        self.means.byte(offset_of!(LscMeans, mean)).cast()
    }
}

impl Method for Tables {
    type Sums = LscSums;
    /// The sums of the last round in which it had members.
    type Cluster = LscSums;
    type Own = LscTemporal;
    type Assign<'a> = lsc_assign::Args<'a>;
    type Label<'a> = lsc_label::Args<'a>;
    type FollowAssign<'a> = lsc_follow::Args<'a>;
    type FollowLabel<'a> = lsc_label_follow::Args<'a>;

    fn own(&self, memory: Turns<LscSums, LscSums>) -> LscTemporal {
        let Turns { sums, clusters: state, carried_last, carried } = memory;
        let follow = self.follow.as_ref();
        let (turn, square) =
            follow.map_or((Address::NULL, 0.0), |follow| (follow.turn.address(), follow.square));
        LscTemporal { sums, state, carried_last, carried, turn, square, unused: 0 }
    }

    fn assign(&self, buffers: &FrameBuffers, round: Round<LscSums, LscSums>) -> lsc_assign::Args<'_> {
        lsc_assign::Args {
            features: buffers.features(),
            samples: buffers.samples.address(),
            color: self.color.address(),
            px: self.px.address(),
            py: self.py.address(),
            mean: self.mean(),
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
        sums: Address<LscSums>,
        old: Address<LscSums>,
        components: &'a Components,
    ) -> lsc_label::Args<'a> {
        lsc_label::Args {
            features: buffers.features(),
            color: self.color.address(),
            px: self.px.address(),
            py: self.py.address(),
            mean: self.mean(),
            sums,
            old,
            components,
            args: &self.args,
        }
    }

    fn follow_assign<'a>(
        &'a self,
        buffers: &FrameBuffers,
        lasting: &'a Lasting<LscTemporal>,
        begin: u32,
        round: u32,
    ) -> lsc_follow::Args<'a> {
        lsc_follow::Args {
            samples: buffers.samples.address(),
            color: self.color.address(),
            px: self.px.address(),
            py: self.py.address(),
            mean: self.mean(),
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
        lasting: &'a Lasting<LscTemporal>,
        components: &'a Components,
        round: u32,
        follows: u32,
    ) -> lsc_label_follow::Args<'a> {
        lsc_label_follow::Args {
            color: self.follow.as_ref().map_or(Address::NULL, |follow| follow.color.address()),
            px: self.px.address(),
            py: self.py.address(),
            mean: self.mean(),
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

/// The kernel of stage `lsc/mean`.
enum Mean {
    OfAll(lsc_mean::Kernel),
    /// Leaves out samples outside of a mask, which frames of the plan may have.
    OfMasked(lsc_mean_masked::Kernel),
}

pub(crate) struct Lsc {
    clustering: Clustering<Tables>,
    mean: Mean,
    tables: Tables,
}

impl Lsc {
    /// Words of the accumulators of a frame's clusters, and of [`LscMeans`] behind them.
    pub fn sums_words(grid: &Grid) -> usize {
        (grid.cells() * size_of::<LscSums>() + size_of::<LscMeans>()) / size_of::<u32>()
    }

    /// Words of the clusters that a frame leaves to the next: none where every pixel is one.
    pub fn carried_words(grid: &Grid) -> usize {
        if grid.step() > 1 { grid.cells() * size_of::<LscSums>() / size_of::<u32>() } else { 0 }
    }

    pub fn new(cuda: &Cuda, plan: &crate::plan::Plan, lsc: &Plan, buffers: &FrameBuffers) -> Result<Self> {
        let grid = plan.grid;
        let what = "device memory";
        let (label, follow_label, label_threads) = if buffers.has_few_tiles() {
            (lsc_label_small::KERNEL, lsc_label_follow_small::KERNEL, LABEL_THREADS_SMALL)
        } else {
            (lsc_label::KERNEL, lsc_label_follow::KERNEL, LABEL_THREADS)
        };
        let kernels = Kernels {
            assign: lsc_assign::KERNEL,
            label,
            follow_assign: lsc_follow::KERNEL,
            follow_label,
            assign_stage: "lsc/assign",
            label_stage: "lsc/label",
            label_threads,
            reach: LSC_REACH_BYTES,
        };
        let clustering = Clustering::new(cuda, plan, kernels, lsc.iterations)?;
        let color = [&lsc.color.l[..], &lsc.color.ab[..]].concat();
        let follow = || -> Result<Follow> {
            let floats: Vec<_> = color.iter().map(|&pair| unpack_pair(pair).map(|v| v as f32)).collect();
            Ok(Follow {
                color: Memory::with(cuda, what, &floats)?,
                turn: Memory::with(cuda, what, &lsc.turn)?,
                square: lsc.square,
            })
        };
        let stage = "lsc/mean";
        Ok(Self {
            mean: match plan.masked {
                false => Mean::OfAll(cuda.device.kernel(lsc_mean::KERNEL, stage)?),
                true => Mean::OfMasked(cuda.device.kernel(lsc_mean_masked::KERNEL, stage)?),
            },
            tables: Tables {
                px: Memory::with(cuda, what, &lsc.px)?,
                py: Memory::with(cuda, what, &lsc.py)?,
                means: buffers.sums[0].address().cast::<LscSums>().item(grid.cells()).cast(),
                follow: clustering.follows().then(follow).transpose()?,
                color: Memory::with(cuda, what, &color)?,
                args: LscArgs {
                    grid: GridArgs::new(&grid),
                    position_weight: lsc.position_weight,
                    unused: 0,
                    seeds: buffers.seeds(),
                },
            },
            clustering,
        })
    }

    /// Launches stage `lsc/mean`.
    fn launch_mean(&self, buffers: &FrameBuffers) -> Result<()> {
        let Tables { color, means, .. } = &self.tables;
        let (samples, color, means) = (buffers.samples.address(), color.address(), *means);
        let count = self.clustering.samples();
        let blocks = (count.div_ceil(MEAN_SAMPLES).min(MEAN_BLOCKS), 1);
        // SAFETY: `FrameBuffers::new` has made a sample for every pixel, of which `count` are used, and `sums_words` has asked it for
        // the `LscMeans` behind the sums; `color` has an entry for each value of a channel.
        unsafe {
            match &self.mean {
                Mean::OfAll(kernel) => {
                    let args = lsc_mean::Args { samples, color, means, count };
                    buffers.queue.launch(kernel, blocks, MEAN_THREADS, &args)
                }
                Mean::OfMasked(kernel) => {
                    let counters = buffers.counters();
                    let args = lsc_mean_masked::Args { samples, color, means, counters, count };
                    buffers.queue.launch(kernel, blocks, MEAN_THREADS, &args)
                }
            }
        }
    }
}

impl Segmenter<Cuda> for Lsc {
    fn change(&mut self, plan: &crate::plan::Plan, buffers: &mut FrameBuffers) -> Result<()> {
        let AlgorithmPlan::Lsc(lsc) = &plan.algorithm else { return Ok(()) };
        // Sums that a frame has left need no translation: their pairs have fixed lengths, whatever the ratio.
        *self = Self::new(&buffers.queue.cuda, plan, lsc, buffers)?;
        Ok(())
    }

    fn segment(
        &mut self,
        buffers: &mut FrameBuffers,
        _: &mut HostLabels<'_>,
        _: &mut StageTimes,
    ) -> Result<()> {
        if self.clustering.rounds() > 0 {
            self.launch_mean(buffers)?;
        }
        self.clustering.segment(buffers, &self.tables)
    }
}
