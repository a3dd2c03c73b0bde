// SPDX-License-Identifier: MPL-2.0
//! Stage `connectivity` on a CUDA device: one launch a phase of the rounds that frames need, one for all further rounds.

use super::MAX_REGIONS;
use crate::algo::temporal::cuda::State;
use crate::backend;
use crate::cuda::launch::{Argument, Kernel};
use crate::cuda::tuning::{self, BORDER_THREADS, CONNECT_THREADS, NUMBER_THREADS, TILE};
use crate::cuda::work::args;
use crate::cuda::{Cuda, Work};
use crate::error::Result;
use crate::plan::Plan;

/// A frame of this size gives one block of [`CONNECT_THREADS`] less than an edge a thread: a second one would wait for memory
/// as long again.
const PIXELS_A_BLOCK: u32 = 512;

/// Rounds with launches of their own: photographs take three or four, few of them one more.
const LAUNCHED_ROUNDS: u32 = 4;

// Part of the result on both sides.
const _: () = assert!(tuning::LIKE_REGION == super::LIKE_REGION);

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct ConnectArgs {
    width: u32,
    height: u32,
    tiles_x: u32,
    min_region: u32,
    max_regions: u32,
    connectivity: u32,
    words: u32,
    small_places: u32,
}

const _: () = assert!(size_of::<ConnectArgs>() == 4 * 8);
// SAFETY: repr(C), the fields of `ConnectArgs` in kernels/connectivity.cu.
unsafe impl Argument for ConnectArgs {}

pub(crate) struct Connectivity {
    borders: Kernel,
    settle: Kernel,
    pick_first: Kernel,
    pick: Kernel,
    hook: Kernel,
    rest: Kernel,
    mark: Kernel,
    count: Kernel,
    number: Kernel,
    fit: Kernel,
    args: ConnectArgs,
    /// Rounds of absorption: a component that is still small has doubled in each.
    rounds: u32,
    /// Whether a map of the smallest regions could have more than labels can name.
    may_overflow: bool,
    border_blocks: u32,
    blocks: u32,
    /// Of the launches after the first round's.
    later_blocks: u32,
    number_blocks: u32,
    resident: u32,
}

/// Places in the list of pairs that a small component is in. One for eight pixels is too few for small ragged
/// photographs. Where there are more pairs, rounds go over all.
pub(crate) fn small_pair_places(pixels: usize) -> usize {
    (pixels / 2).max(1)
}

impl Connectivity {
    pub fn new(cuda: &Cuda, plan: &Plan) -> Result<Self> {
        let (width, height) = (plan.frame.geometry.width, plan.frame.geometry.height);
        let clusters = plan.max_clusters() as u32;
        let kernel = |name| cuda.device.kernel("connectivity", name, "connectivity");
        let pairs = (width - 1) / TILE * height + (height - 1) / TILE * width;
        let (rest, fit) = (kernel("connect_rest")?, kernel("connect_fit")?);
        let resident = fit.resident_blocks(NUMBER_THREADS)?.min(rest.resident_blocks(NUMBER_THREADS)?).min(1);
        Ok(Self {
            borders: kernel("connect_borders")?,
            settle: kernel("connect_settle")?,
            pick_first: kernel("connect_pick_first")?,
            pick: kernel("connect_pick")?,
            hook: kernel("connect_hook")?,
            rest,
            mark: kernel("connect_mark")?,
            count: kernel("connect_count")?,
            number: kernel("connect_number")?,
            resident: (resident * cuda.device.multiprocessors).clamp(1, 1024),
            fit,
            args: ConnectArgs {
                width,
                height,
                tiles_x: width.div_ceil(TILE),
                min_region: plan.min_region,
                max_regions: MAX_REGIONS as u32,
                connectivity: u32::from(plan.connectivity),
                words: if plan.connectivity { height * width.div_ceil(32) } else { clusters.div_ceil(32) },
                small_places: small_pair_places(plan.frame.geometry.pixels()) as u32,
            },
            rounds: if plan.connectivity { plan.min_region.next_power_of_two().ilog2() } else { 0 },
            may_overflow: plan.connectivity
                && plan.frame.geometry.pixels() / plan.min_region as usize > MAX_REGIONS,
            // Merging wants the pairs that touch across tiles, too.
            border_blocks: if plan.connectivity || plan.merge.is_some() {
                pairs.div_ceil(BORDER_THREADS)
            } else {
                0
            },
            blocks: (width * height).div_ceil(PIXELS_A_BLOCK).clamp(1, 8 * cuda.device.multiprocessors),
            later_blocks: (width * height)
                .div_ceil(2 * PIXELS_A_BLOCK)
                .clamp(1, 4 * cuda.device.multiprocessors),
            number_blocks: (width * height)
                .div_ceil(32 * PIXELS_A_BLOCK)
                .clamp(1, cuda.device.multiprocessors.min(1024)),
        })
    }
}

impl backend::Connectivity<Cuda> for Connectivity {
    fn enforce(&mut self, work: &mut Work, _: &mut ()) -> Result<()> {
        let (components, shape) = (work.components(), self.args);
        let (grid, number_grid) = ((self.blocks, 1), (self.number_blocks, 1));
        let (picks, small, bitmap) =
            (work.picks.address(), work.small_pairs.address(), work.bitmap.address());
        let (before, totals) = (work.word_before.address(), work.block_total.address());
        let (labels, regions) = (work.component_labels.address(), work.regions.address());
        // SAFETY: the lists that the label kernel filled; edges and picks hold two entries a pixel, labels one, pairs
        // with something small `small_places`, the bitmaps `words`, totals 1024, regions one for each of the most regions.
        unsafe {
            if self.border_blocks > 0 {
                work.launch(
                    &self.borders,
                    (self.border_blocks, 1),
                    BORDER_THREADS,
                    &mut args![components, shape],
                )?;
            }
            work.launch(&self.settle, grid, CONNECT_THREADS, &mut args![components, picks, bitmap, shape])?;
            let mains = work.temporal.as_ref().map_or(0, State::mains);
            if let Some(state) = &work.temporal
                && self.rounds == 0
            {
                state.find_mains(work, self.blocks)?;
            }
            for round in 0..self.rounds.min(LAUNCHED_ROUNDS) {
                let blocks = if round == 0 { grid } else { (self.later_blocks, 1) };
                if round == 0 {
                    let pairs = &mut args![components, picks, small, mains, shape];
                    work.launch(&self.pick_first, blocks, CONNECT_THREADS, pairs)?;
                } else {
                    let pairs = &mut args![components, picks, small, round, shape];
                    work.launch(&self.pick, blocks, CONNECT_THREADS, pairs)?;
                }
                work.launch(
                    &self.hook,
                    blocks,
                    CONNECT_THREADS,
                    &mut args![components, picks, round, shape],
                )?;
            }
            if self.rounds > LAUNCHED_ROUNDS {
                self.rest.launch_cooperative(
                    &work.cuda.stream,
                    self.resident,
                    NUMBER_THREADS,
                    &mut args![components, picks, small, LAUNCHED_ROUNDS, bitmap, shape],
                )?;
                work.mark(self.rest.stage)?;
            } else {
                work.launch(&self.mark, grid, CONNECT_THREADS, &mut args![components, bitmap, shape])?;
            }
            work.launch(&self.count, number_grid, NUMBER_THREADS, &mut args![bitmap, before, totals, shape])?;
            work.launch(
                &self.number,
                number_grid,
                NUMBER_THREADS,
                &mut args![components, bitmap, before, totals, labels, regions, shape],
            )?;
            if self.may_overflow {
                self.fit.launch_cooperative(
                    &work.cuda.stream,
                    self.resident,
                    NUMBER_THREADS,
                    &mut args![components, picks, bitmap, before, totals, labels, regions, shape],
                )?;
                work.mark(self.fit.stage)?;
            }
        }
        Ok(())
    }
}
