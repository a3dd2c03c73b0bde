// SPDX-License-Identifier: MPL-2.0
//! SLIC on a CUDA device: launches only. Seeding and updating happen inside the kernels, see kernels/slic.cu.

use super::Plan;
use crate::algo::grid::{Grid, GridArgs};
use crate::backend::{Segmenter, StageTimes};
use crate::cuda::device::{ModuleText, module_text};
use crate::cuda::launch::{Argument, Kernel};
use crate::cuda::tuning::{ROUND_THREADS, ROUND_TILE, TILE_THREADS};
use crate::cuda::work::{Memory, args};
use crate::cuda::{Cuda, Work};
use crate::error::Result;

pub(crate) const MODULE: ModuleText = module_text!("slic", sm80);

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct SlicArgs {
    grid: GridArgs,
    color_shift: u32,
    initial: u32,
    place_weight: u32,
}

const _: () = assert!(size_of::<SlicArgs>() == 4 * 13);
// SAFETY: repr(C), the fields of `SlicArgs` in kernels/clusters.cuh.
unsafe impl Argument for SlicArgs {}

/// Words of the accumulators of one cluster: `Sums` of kernels/clusters.cuh.
const SUMS_WORDS: usize = 8;

pub(crate) struct Slic {
    assign: Kernel,
    label: Kernel,
    args: SlicArgs,
    rounds: u32,
    px: Memory<i32>,
    py: Memory<i32>,
    centers: [Memory<[i32; 8]>; 2],
}

impl Slic {
    /// Words of the accumulators of a frame's clusters.
    pub fn sums_words(grid: &Grid) -> usize {
        grid.cells() * SUMS_WORDS
    }

    pub fn new(cuda: &Cuda, plan: &crate::plan::Plan, slic: &Plan, _: &Work) -> Result<Self> {
        let grid = plan.grid;
        let (assign, label) = match slic.adaptive {
            None => ("slic_assign", "slic_label"),
            Some(_) => ("slic_assign_adaptive", "slic_label_adaptive"),
        };
        let what = "device memory";
        Ok(Self {
            assign: cuda.device.kernel("slic", assign, "slic/assign")?,
            label: cuda.device.kernel("slic", label, "slic/label")?,
            args: SlicArgs {
                grid: grid.device_args(),
                color_shift: slic.color_shift,
                initial: slic.adaptive.map_or(0, |a| a.initial),
                place_weight: slic.adaptive.map_or(0, |a| a.place),
            },
            rounds: if grid.step == 1 { 0 } else { slic.iterations },
            px: Memory::with(cuda, what, &slic.px)?,
            py: Memory::with(cuda, what, &slic.py)?,
            centers: [Memory::new(cuda, what, grid.cells())?, Memory::new(cuda, what, grid.cells())?],
        })
    }
}

impl Segmenter<Cuda> for Slic {
    fn segment(&mut self, work: &mut Work, _: &mut (), _: &mut StageTimes) -> Result<()> {
        let (features, samples) = (work.features.address(), work.samples.address());
        let (px, py) = (self.px.address(), self.py.address());
        let sums = [0, 1, 2].map(|i: usize| work.sums[i].address());
        let centers = [self.centers[0].address(), self.centers[1].address()];
        let grid = &self.args.grid;
        let tiles = (grid.sample_width.div_ceil(ROUND_TILE.0), grid.sample_height.div_ceil(ROUND_TILE.1));
        for round in 0..self.rounds as usize {
            // Read what the last round left, add to the set that it cleared, clear the one before.
            let (last, own, next) = (sums[(round + 2) % 3], sums[round % 3], sums[(round + 1) % 3]);
            let (old, new) = (centers[(round + 1) % 2], centers[round % 2]);
            let seeds = u32::from(round == 0);
            // SAFETY: planes and tables are of the plan's size; sums and centers have one entry a cell.
            unsafe {
                work.launch(
                    &self.assign,
                    tiles,
                    ROUND_THREADS,
                    &mut args![features, samples, px, py, last, own, next, old, new, seeds, self.args],
                )?;
            }
        }
        let last = self.rounds.max(1) as usize - 1;
        let (sums, centers, components) = (sums[last % 3], centers[last % 2], work.components());
        // SAFETY: as above; component lists hold one entry a pixel, edges two.
        unsafe {
            work.launch(
                &self.label,
                work.tiles,
                TILE_THREADS,
                &mut args![features, px, py, sums, centers, components, self.args],
            )
        }
    }
}
