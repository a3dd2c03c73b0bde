// SPDX-License-Identifier: MPL-2.0
//! LSC on a CUDA device: launches only. Seeding and updating happen inside the kernels, see kernels/lsc.cu.

use std::mem::offset_of;

use super::{Plan, unpack_pair};
use crate::algo::AlgorithmPlan;
use crate::algo::grid::Grid;
use crate::backend::{Segmenter, StageTimes};
use crate::buffers::cuda::Work;
use crate::cuda::Cuda;
use crate::cuda::abi::{
    Address, GridArgs, LSC_REACH_BYTES, LscArgs, LscMean, LscMeans, LscSums, LscTemporal,
};
use crate::cuda::device::{ModuleCode, module_code};
use crate::cuda::launch::{Kernel, args};
use crate::cuda::memory::Memory;
use crate::cuda::tuning::{
    LABEL_THREADS, LABEL_THREADS_SMALL, MEAN_THREADS, ROUND_THREADS, ROUND_TILE, TILE,
};
use crate::error::Result;
use crate::temporal::WARM_ROUNDS;
use crate::temporal::device::{State, warm_rounds};

const MODULE: ModuleCode = module_code!("lsc", sm80);

/// What it takes to go on from the last frame.
struct Follow {
    assign: Kernel,
    label: Kernel,
    /// Final sums of this frame and of the last, which take turns.
    carried: [Memory<LscSums>; 2],
    /// Pairs of color as floats.
    color: Memory<[f32; 2]>,
    turn: Memory<u32>,
    square: f32,
}

/// Samples that a block of stage `lsc/mean` adds up, while there are blocks enough.
const MEAN_SAMPLES: u32 = 4 * MEAN_THREADS;

/// Most blocks of stage `lsc/mean`; with these a block of the largest frame still has less than 2^20 samples.
const MEAN_BLOCKS: u32 = 1024;

pub(crate) struct Lsc {
    mean: Kernel,
    assign: Kernel,
    label: Kernel,
    label_threads: u32,
    args: LscArgs,
    rounds: u32,
    /// Behind the first set of sums.
    means: Address<LscMeans>,
    color: Memory<u32>,
    px: Memory<u32>,
    py: Memory<u32>,
    /// Sums of the last round in which a cluster had members, before and after a round.
    state: [Memory<LscSums>; 2],
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

    pub fn new(cuda: &Cuda, plan: &crate::plan::Plan, lsc: &Plan, work: &Work) -> Result<Self> {
        let grid = plan.grid;
        let what = "device memory";
        let reach = grid.reach(TILE) * LSC_REACH_BYTES;
        let (label, follow_label, label_threads) = if work.has_few_tiles() {
            ("lsc_label_small", "lsc_label_follow_small", LABEL_THREADS_SMALL)
        } else {
            ("lsc_label", "lsc_label_follow", LABEL_THREADS)
        };
        let color = [&lsc.color.l[..], &lsc.color.ab[..]].concat();
        let follow = || -> Result<Follow> {
            let floats: Vec<_> = color.iter().map(|&pair| unpack_pair(pair).map(|v| v as f32)).collect();
            Ok(Follow {
                assign: cuda.device.kernel(&MODULE, "lsc_follow", "lsc/assign")?,
                label: cuda.device.kernel(&MODULE, follow_label, "lsc/label")?.with_shared(reach),
                carried: [Memory::new(cuda, what, grid.cells())?, Memory::new(cuda, what, grid.cells())?],
                color: Memory::with(cuda, what, &floats)?,
                turn: Memory::with(cuda, what, &lsc.turn)?,
                square: lsc.square,
            })
        };
        Ok(Self {
            mean: cuda.device.kernel(&MODULE, "lsc_mean", "lsc/mean")?,
            assign: cuda.device.kernel(&MODULE, "lsc_assign", "lsc/assign")?,
            label: cuda.device.kernel(&MODULE, label, "lsc/label")?.with_shared(reach),
            label_threads,
            args: LscArgs { grid: GridArgs::new(&grid), position_weight: lsc.place_weight },
            rounds: if grid.step == 1 { 0 } else { lsc.iterations },
            means: work.sums[0].address().cast::<LscSums>().item(grid.cells()).cast(),
            color: Memory::with(cuda, what, &color)?,
            px: Memory::with(cuda, what, &lsc.px)?,
            py: Memory::with(cuda, what, &lsc.py)?,
            state: [Memory::new(cuda, what, grid.cells())?, Memory::new(cuda, what, grid.cells())?],
            follow: (plan.temporal.is_some() && grid.step > 1).then(follow).transpose()?,
        })
    }
}

impl Lsc {
    /// Rounds that go on from the last frame.
    fn assign_again(&self, work: &Work, follow: &Follow, state: &State, own: LscTemporal) -> Result<()> {
        let (samples, color, mean) = (work.samples.address(), self.color.address(), self.mean());
        let (px, py) = (self.px.address(), self.py.address());
        let (all, shape) = (state.addresses(work.first_labels.address()), state.args());
        let grid = &self.args.grid;
        let tiles = (grid.sample_width.div_ceil(ROUND_TILE.0), grid.sample_height.div_ceil(ROUND_TILE.1));
        for (begin, round) in warm_rounds() {
            // SAFETY: the parameters of this kernel of kernels/lsc.cu. `Work::new`, `State::new` and `new` have made planes, tables,
            // sums and state for the same plan: an entry a pixel, a column, a row or a cell; `Work` waits before they go.
            unsafe {
                work.queue.launch(
                    &follow.assign,
                    tiles,
                    ROUND_THREADS,
                    &mut args![samples, color, px, py, mean, own, all, shape, begin, round, self.args],
                )?;
            }
        }
        Ok(())
    }
}

impl Segmenter<Cuda> for Lsc {
    fn change(&mut self, plan: &crate::plan::Plan, work: &mut Work) -> Result<()> {
        let AlgorithmPlan::Lsc(lsc) = &plan.algorithm else { return Ok(()) };
        let mut next = Self::new(&work.queue.cuda, plan, lsc, work)?;
        // Sums hold pairs of fixed lengths, whatever the ratio.
        if let (Some(last), Some(next)) = (self.follow.take(), &mut next.follow) {
            next.carried = last.carried;
        }
        *self = next;
        Ok(())
    }

    fn segment(&mut self, work: &mut Work, _: &mut (), _: &mut StageTimes) -> Result<()> {
        let (features, samples, mean) = (work.features(), work.samples.address(), self.mean());
        let (color, px, py) = (self.color.address(), self.px.address(), self.py.address());
        let sums = [0, 1, 2].map(|i: usize| work.sums[i].address().cast::<LscSums>());
        let state = [self.state[0].address(), self.state[1].address()];
        let grid = &self.args.grid;
        let tiles = (grid.sample_width.div_ceil(ROUND_TILE.0), grid.sample_height.div_ceil(ROUND_TILE.1));
        let count = grid.sample_width * grid.sample_height;
        if self.rounds > 0 {
            let blocks = count.div_ceil(MEAN_SAMPLES).min(MEAN_BLOCKS);
            let means = self.means;
            // SAFETY: the parameters of `lsc_mean`. `Work::new` has made a sample for every pixel, of which `count` are used, and
            // `sums_words` has asked it for the `LscMeans` behind the sums; `color` has an entry for each value of a channel.
            unsafe {
                work.queue.launch(
                    &self.mean,
                    (blocks, 1),
                    MEAN_THREADS,
                    &mut args![samples, color, means, count],
                )?;
            }
        }
        let own = self.follow.as_ref().zip(work.temporal.as_ref()).map(|(follow, temporal)| {
            let turn = temporal.phase().1;
            let [carried, carried_last] = [turn, turn ^ 1].map(|turn| follow.carried[turn].address());
            let (turn, square) = (follow.turn.address(), follow.square);
            let own = LscTemporal { sums, state, carried_last, carried, turn, square, unused: 0 };
            (follow, temporal, own)
        });
        let warm = own.filter(|(_, temporal, _)| temporal.is_warm());
        if let Some((follow, temporal, own)) = warm {
            self.assign_again(work, follow, temporal, own)?;
        }
        let rounds = if warm.is_some() { 0 } else { self.rounds };
        for round in 0..rounds as usize {
            // Read what the last round left, add to the set that it cleared, clear the one before.
            let (last, own, next) = (sums[(round + 2) % 3], sums[round % 3], sums[(round + 1) % 3]);
            let (old, new) = (state[(round + 1) % 2], state[round % 2]);
            let seeds = u32::from(round == 0);
            // SAFETY: the parameters of this kernel of kernels/lsc.cu. `Work::new`, `State::new` and `new` have made planes, tables,
            // sums and state for the same plan: an entry a pixel, a column, a row or a cell; `Work` waits before they go.
            unsafe {
                work.queue.launch(
                    &self.assign,
                    tiles,
                    ROUND_THREADS,
                    &mut args![
                        features, samples, color, px, py, mean, last, own, next, old, new, seeds, self.args
                    ],
                )?;
            }
        }
        let components = work.components();
        if let Some((follow, temporal, own)) = own {
            let (all, shape, follows) =
                (temporal.addresses(work.first_labels.address()), temporal.args(), u32::from(warm.is_some()));
            let last = if warm.is_some() { WARM_ROUNDS } else { rounds } - 1;
            let color = follow.color.address();
            let list = &mut args![color, px, py, mean, own, all, shape, components, last, follows, self.args];
            // SAFETY: the parameters of this kernel of kernels/lsc.cu; planes, tables, sums and state are of one plan, as in the
            // rounds. `Work::new` has made component lists for an entry a pixel, edges for two.
            return unsafe { work.queue.launch(&follow.label, work.tiles, self.label_threads, list) };
        }
        let last = self.rounds.max(1) as usize - 1;
        let (sums, state) = (sums[last % 3], state[last % 2]);
        // SAFETY: the parameters of this kernel of kernels/lsc.cu; planes, tables, sums and state are of one plan, as in the rounds.
        // `Work::new` has made component lists for an entry a pixel, edges for two.
        unsafe {
            work.queue.launch(
                &self.label,
                work.tiles,
                self.label_threads,
                &mut args![features, color, px, py, mean, sums, state, components, self.args],
            )
        }
    }
}
