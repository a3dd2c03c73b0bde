// SPDX-License-Identifier: MPL-2.0
//! SLIC on a CUDA device: launches only. Seeding and updating happen inside the kernels, see kernels/slic.cu.

use super::Plan;
use crate::algo::AlgorithmPlan;
use crate::algo::grid::Grid;
use crate::backend::{Segmenter, StageTimes};
use crate::buffers::cuda::Work;
use crate::cuda::Cuda;
use crate::cuda::abi::{GridArgs, SLIC_REACH_BYTES, SlicArgs, SlicCenter, SlicSums, SlicTemporal};
use crate::cuda::device::{ModuleCode, module_code};
use crate::cuda::launch::{Kernel, args};
use crate::cuda::memory::Memory;
use crate::cuda::tuning::{LABEL_THREADS, LABEL_THREADS_SMALL, ROUND_THREADS, ROUND_TILE, TILE};
use crate::error::Result;
use crate::temporal::WARM_ROUNDS;
use crate::temporal::device::{State, warm_rounds};

const MODULE: ModuleCode = module_code!("slic", sm80);

/// What it takes to go on from the last frame.
struct Follow {
    assign: Kernel,
    label: Kernel,
    /// Final centers of this frame and of the last, which take turns.
    carried: [Memory<SlicCenter>; 2],
    scale: [i64; 2],
}

pub(crate) struct Slic {
    assign: Kernel,
    label: Kernel,
    label_threads: u32,
    plan: Plan,
    args: SlicArgs,
    rounds: u32,
    px: Memory<i32>,
    py: Memory<i32>,
    centers: [Memory<SlicCenter>; 2],
    /// Where something lasts and is clustered.
    follow: Option<Follow>,
}

impl Slic {
    /// Words of the accumulators of a frame's clusters.
    pub fn sums_words(grid: &Grid) -> usize {
        grid.cells() * size_of::<SlicSums>() / size_of::<u32>()
    }

    pub fn new(cuda: &Cuda, plan: &crate::plan::Plan, slic: &Plan, work: &Work) -> Result<Self> {
        let grid = plan.grid;
        let small = slic.adaptive.is_none() && work.has_few_tiles();
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
        let what = "device memory";
        let reach = grid.reach(TILE) * SLIC_REACH_BYTES;
        let follow = || -> Result<Follow> {
            Ok(Follow {
                assign: cuda.device.kernel(&MODULE, follow_assign, "slic/assign")?,
                label: cuda.device.kernel(&MODULE, follow_label, "slic/label")?.with_shared(reach),
                carried: [Memory::new(cuda, what, grid.cells())?, Memory::new(cuda, what, grid.cells())?],
                scale: slic.place_scale,
            })
        };
        Ok(Self {
            assign: cuda.device.kernel(&MODULE, assign, "slic/assign")?,
            label: cuda.device.kernel(&MODULE, label, "slic/label")?.with_shared(reach),
            label_threads: if small { LABEL_THREADS_SMALL } else { LABEL_THREADS },
            plan: slic.clone(),
            args: SlicArgs {
                grid: GridArgs::new(&grid),
                color_shift: slic.color_shift,
                initial: slic.adaptive.map_or(0, |a| a.initial),
                position_weight: slic.adaptive.map_or(0, |a| a.place),
            },
            rounds: if grid.step == 1 { 0 } else { slic.iterations },
            px: Memory::with(cuda, what, &slic.px)?,
            py: Memory::with(cuda, what, &slic.py)?,
            centers: [Memory::new(cuda, what, grid.cells())?, Memory::new(cuda, what, grid.cells())?],
            follow: (plan.temporal.is_some() && grid.step > 1).then(follow).transpose()?,
        })
    }
}

impl Slic {
    /// Rounds that go on from the last frame.
    fn assign_again(&self, work: &Work, follow: &Follow, state: &State, own: SlicTemporal) -> Result<()> {
        let (samples, px, py) = (work.samples.address(), self.px.address(), self.py.address());
        let (all, shape) = (state.addresses(work.first_labels.address()), state.args());
        let grid = &self.args.grid;
        let tiles = (grid.sample_width.div_ceil(ROUND_TILE.0), grid.sample_height.div_ceil(ROUND_TILE.1));
        for (begin, round) in warm_rounds() {
            // SAFETY: the parameters of this kernel of kernels/slic.cu. `Work::new`, `State::new` and `new` have made planes, tables,
            // sums and centers for the same plan: an entry a pixel, a column, a row or a cell; `Work` waits before they go.
            unsafe {
                work.queue.launch(
                    &follow.assign,
                    tiles,
                    ROUND_THREADS,
                    &mut args![samples, px, py, own, all, shape, begin, round, self.args],
                )?;
            }
        }
        Ok(())
    }
}

impl Segmenter<Cuda> for Slic {
    fn change(&mut self, plan: &crate::plan::Plan, work: &mut Work) -> Result<()> {
        let AlgorithmPlan::Slic(slic) = &plan.algorithm else { return Ok(()) };
        let mut next = Self::new(&work.queue.cuda, plan, slic, work)?;
        if let (Some(last), Some(next), Some(state)) = (self.follow.take(), &mut next.follow, &work.temporal)
        {
            next.carried = last.carried;
            let (what, carried) = ("carried clusters", &mut next.carried[state.phase().1]);
            let mut centers = vec![SlicCenter { value: [0; 8] }; carried.len()];
            carried.read(&work.queue.cuda, what, 0, &mut centers)?;
            for SlicCenter { value: [l, a, b, x, y, ..] } in &mut centers {
                ([*l, *a, *b], [*x, *y]) = slic.translate(&self.plan, [*l, *a, *b], [*x, *y]);
            }
            carried.write(&work.queue.cuda, what, 0, &centers)?;
        }
        *self = next;
        Ok(())
    }

    fn segment(&mut self, work: &mut Work, _: &mut (), _: &mut StageTimes) -> Result<()> {
        let (features, samples) = (work.features(), work.samples.address());
        let (px, py) = (self.px.address(), self.py.address());
        let sums = [0, 1, 2].map(|i: usize| work.sums[i].address().cast::<SlicSums>());
        let centers = [self.centers[0].address(), self.centers[1].address()];
        let grid = &self.args.grid;
        let tiles = (grid.sample_width.div_ceil(ROUND_TILE.0), grid.sample_height.div_ceil(ROUND_TILE.1));
        let own = self.follow.as_ref().zip(work.temporal.as_ref()).map(|(follow, state)| {
            let turn = state.phase().1;
            let [carried, carried_last] = [turn, turn ^ 1].map(|turn| follow.carried[turn].address());
            (follow, state, SlicTemporal { sums, centers, carried_last, carried, scale: follow.scale })
        });
        let warm = own.filter(|(_, state, _)| state.is_warm());
        if let Some((follow, state, own)) = warm {
            self.assign_again(work, follow, state, own)?;
        }
        let rounds = if warm.is_some() { 0 } else { self.rounds };
        for round in 0..rounds as usize {
            // Read what the last round left, add to the set that it cleared, clear the one before.
            let (last, own, next) = (sums[(round + 2) % 3], sums[round % 3], sums[(round + 1) % 3]);
            let (old, new) = (centers[(round + 1) % 2], centers[round % 2]);
            let seeds = u32::from(round == 0);
            // SAFETY: the parameters of this kernel of kernels/slic.cu. `Work::new`, `State::new` and `new` have made planes, tables,
            // sums and centers for the same plan: an entry a pixel, a column, a row or a cell; `Work` waits before they go.
            unsafe {
                work.queue.launch(
                    &self.assign,
                    tiles,
                    ROUND_THREADS,
                    &mut args![features, samples, px, py, last, own, next, old, new, seeds, self.args],
                )?;
            }
        }
        let components = work.components();
        if let Some((follow, state, own)) = own {
            let (all, shape, follows) =
                (state.addresses(work.first_labels.address()), state.args(), u32::from(warm.is_some()));
            let last = if warm.is_some() { WARM_ROUNDS } else { rounds } - 1;
            let list = &mut args![px, py, own, all, shape, components, last, follows, self.args];
            // SAFETY: the parameters of this kernel of kernels/slic.cu; planes, tables, sums and centers are of one plan, as in the
            // rounds. `Work::new` has made component lists for an entry a pixel, edges for two.
            return unsafe { work.queue.launch(&follow.label, work.tiles, self.label_threads, list) };
        }
        let last = self.rounds.max(1) as usize - 1;
        let (sums, centers) = (sums[last % 3], centers[last % 2]);
        // SAFETY: the parameters of this kernel of kernels/slic.cu; planes, tables, sums and centers are of one plan, as in the
        // rounds. `Work::new` has made component lists for an entry a pixel, edges for two.
        unsafe {
            work.queue.launch(
                &self.label,
                work.tiles,
                self.label_threads,
                &mut args![features, px, py, sums, centers, components, self.args],
            )
        }
    }
}
