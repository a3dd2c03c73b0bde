// SPDX-License-Identifier: MPL-2.0
//! LSC on a CUDA device: its tables, arguments and mean; `algo/clustering/cuda.rs` launches the rest. Seeding and updating happen inside the
//! kernels, see kernels/lsc.cu.

use std::mem::offset_of;

use super::{Plan, unpack_pair};
use crate::algo::AlgorithmPlan;
use crate::algo::clustering::cuda::{Clustering, Kernels, Tables, Turns};
use crate::backend::{Segmenter, StageTimes};
use crate::buffers::cuda::FrameBuffers;
use crate::cuda::Cuda;
use crate::cuda::abi::{
    Address, GridArgs, LSC_REACH_BYTES, LscArgs, LscMean, LscMeans, LscSums, LscTemporal,
};
use crate::cuda::device::{ModuleCode, module_code};
use crate::cuda::launch::{Kernel, args};
use crate::cuda::memory::Memory;
use crate::cuda::tuning::{LABEL_THREADS, LABEL_THREADS_SMALL, MEAN_THREADS};
use crate::error::Result;
use crate::grid::Grid;

const MODULE: ModuleCode = module_code!("lsc");

/// Samples that a block of stage `lsc/mean` adds up, while there are blocks enough.
const MEAN_SAMPLES: u32 = 4 * MEAN_THREADS;

/// Most blocks of stage `lsc/mean`; with these a block of the largest frame still has less than 2^20 samples.
const MEAN_BLOCKS: u32 = 1024;

/// Tables of a frame that follows another.
struct Follow {
    /// Pairs of color as floats.
    color: Memory<[f32; 2]>,
    turn: Memory<u32>,
    square: f32,
}

pub(crate) struct Lsc {
    /// Between rounds a cluster is the sums of the last round in which it had members.
    clustering: Clustering<LscSums, LscSums, LscArgs>,
    mean: Kernel,
    /// Whether frames may have masks.
    masked: bool,
    /// Behind the first set of sums.
    means: Address<LscMeans>,
    color: Memory<u32>,
    px: Memory<u32>,
    py: Memory<u32>,
    /// Where something lasts and is clustered.
    follow: Option<Follow>,
}

impl Lsc {
    /// Words of the accumulators of a frame's clusters, and of [`LscMeans`] behind them.
    pub fn sums_words(grid: &Grid) -> usize {
        (grid.cells() * size_of::<LscSums>() + size_of::<LscMeans>()) / size_of::<u32>()
    }

    /// The mean that stage `lsc/mean` leaves, behind the sum of all samples.
    fn mean(&self) -> Address<LscMean> {
        self.means.byte(offset_of!(LscMeans, mean)).cast()
    }

    pub fn new(cuda: &Cuda, plan: &crate::plan::Plan, lsc: &Plan, buffers: &FrameBuffers) -> Result<Self> {
        let grid = plan.grid;
        let what = "device memory";
        let (label, follow_label, label_threads) = if buffers.has_few_tiles() {
            ("lsc_label_small", "lsc_label_follow_small", LABEL_THREADS_SMALL)
        } else {
            ("lsc_label", "lsc_label_follow", LABEL_THREADS)
        };
        let kernels = Kernels {
            module: &MODULE,
            assign: "lsc_assign",
            label,
            follow_assign: "lsc_follow",
            follow_label,
            assign_stage: "lsc/assign",
            label_stage: "lsc/label",
            label_threads,
            reach: LSC_REACH_BYTES,
        };
        let args = LscArgs {
            grid: GridArgs::new(&grid),
            position_weight: lsc.position_weight,
            unused: 0,
            seeds: buffers.seeds(),
        };
        let clustering = Clustering::new(cuda, plan, &kernels, args, lsc.iterations)?;
        let color = [&lsc.color.l[..], &lsc.color.ab[..]].concat();
        let follow = || -> Result<Follow> {
            let floats: Vec<_> = color.iter().map(|&pair| unpack_pair(pair).map(|v| v as f32)).collect();
            Ok(Follow {
                color: Memory::with(cuda, what, &floats)?,
                turn: Memory::with(cuda, what, &lsc.turn)?,
                square: lsc.square,
            })
        };
        Ok(Self {
            mean: cuda.device.kernel(
                &MODULE,
                if plan.masked { "lsc_mean_masked" } else { "lsc_mean" },
                "lsc/mean",
            )?,
            masked: plan.masked,
            means: buffers.sums[0].address().cast::<LscSums>().item(grid.cells()).cast(),
            px: Memory::with(cuda, what, &lsc.px)?,
            py: Memory::with(cuda, what, &lsc.py)?,
            follow: clustering.follows().then(follow).transpose()?,
            color: Memory::with(cuda, what, &color)?,
            clustering,
        })
    }

    /// Puts stage `lsc/mean` on the stream.
    fn launch_mean(&self, buffers: &FrameBuffers) -> Result<()> {
        let (samples, color, means) = (buffers.samples.address(), self.color.address(), self.means);
        let count = self.clustering.samples();
        let blocks = count.div_ceil(MEAN_SAMPLES).min(MEAN_BLOCKS);
        let counters = buffers.counters();
        let list: &mut [_] = if self.masked {
            &mut args![samples, color, means, counters, count]
        } else {
            &mut args![samples, color, means, count]
        };
        // SAFETY: the parameters of `lsc_mean`, or with masks of `lsc_mean_masked`. `FrameBuffers::new` has made a sample for every pixel, of which `count` are used, and
        // `sums_words` has asked it for the `LscMeans` behind the sums; `color` has an entry for each value of a channel.
        unsafe { buffers.queue.launch(&self.mean, (blocks, 1), MEAN_THREADS, list) }
    }
}

impl Segmenter<Cuda> for Lsc {
    fn change(&mut self, plan: &crate::plan::Plan, buffers: &mut FrameBuffers) -> Result<()> {
        let AlgorithmPlan::Lsc(lsc) = &plan.algorithm else { return Ok(()) };
        let mut next = Self::new(&buffers.queue.cuda, plan, lsc, buffers)?;
        // Sums hold pairs of fixed lengths, whatever the ratio: nothing to translate.
        next.clustering.take_carried(&mut self.clustering, 0);
        *self = next;
        Ok(())
    }

    fn segment(&mut self, buffers: &mut FrameBuffers, _: &mut (), _: &mut StageTimes) -> Result<()> {
        if self.clustering.rounds() > 0 {
            self.launch_mean(buffers)?;
        }
        let follow = self.follow.as_ref();
        let floats = follow.map_or(Address::NULL, |follow| follow.color.address().cast());
        let (turn, square) =
            follow.map_or((Address::NULL, 0.0), |follow| (follow.turn.address(), follow.square));
        let (px, py, mean) = (self.px.address().cast(), self.py.address().cast(), self.mean().cast());
        let tables = Tables {
            rounds: &[self.color.address().cast(), px, py, mean],
            follow_label: &[floats, px, py, mean],
        };
        self.clustering.segment(buffers, &tables, |turns| {
            let Turns { sums, clusters: state, carried_last, carried } = turns;
            LscTemporal { sums, state, carried_last, carried, turn, square, unused: 0 }
        })
    }
}
