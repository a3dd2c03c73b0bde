// SPDX-License-Identifier: MPL-2.0
//! Quick shift on a CUDA device: launches only, see kernels/quickshift.cu.

use super::Plan;
use crate::algo::AlgorithmPlan;
use crate::backend::{Segmenter, StageTimes};
use crate::buffers::cuda::FrameBuffers;
use crate::cuda::Cuda;
use crate::cuda::abi::{QuickShiftArgs, QuickShiftOffset};
use crate::cuda::device::{ModuleCode, module_code};
use crate::cuda::launch::{Kernel, args};
use crate::cuda::memory::Memory;
use crate::cuda::tuning::{
    DENSITY_CELLS, DENSITY_CELLS_SMALL, DENSITY_THREADS, DENSITY_TILE_H, FLATTEN_PASSES, FLATTEN_THREADS,
    LABEL_THREADS, LINK_THREADS,
};
use crate::error::Result;
use crate::grid::Grid;

const MODULE: ModuleCode = module_code!("quickshift");

pub(crate) struct QuickShift {
    density: Kernel,
    link: Kernel,
    flatten: Kernel,
    label: Kernel,
    args: QuickShiftArgs,
    column: Memory<f32>,
    row: Memory<f32>,
    offsets: Memory<QuickShiftOffset>,
    parents: Memory<u32>,
}

impl QuickShift {
    /// Words of the accumulators of a frame's clusters: there are none.
    pub fn sums_words(_: &Grid) -> usize {
        0
    }

    pub fn new(cuda: &Cuda, plan: &crate::plan::Plan, quickshift: &Plan, _: &FrameBuffers) -> Result<Self> {
        let (geometry, weight) = (plan.frame.geometry, &quickshift.weight);
        let stride = 32 + 2 * quickshift.radius;
        let (density, cells) = if stride * (DENSITY_TILE_H + quickshift.radius) <= DENSITY_CELLS_SMALL {
            ("quickshift_density_small", DENSITY_CELLS_SMALL)
        } else {
            ("quickshift_density", DENSITY_CELLS)
        };
        let offsets: Vec<QuickShiftOffset> = quickshift
            .offsets
            .iter()
            .map(|o| {
                let (dx, dy) = (i32::from(o.dx), i32::from(o.dy));
                let step = dy * geometry.width as i32 + dx;
                QuickShiftOffset { length_sq: o.length_sq() as f32, step, dx, dy }
            })
            .collect();
        let kernel = |name, stage| cuda.device.kernel(&MODULE, name, stage);
        let what = "device memory";
        Ok(Self {
            density: kernel(density, "quickshift/density")?,
            link: kernel("quickshift_link", "quickshift/link")?,
            flatten: kernel("quickshift_flatten", "quickshift/flatten")?,
            label: kernel("quickshift_label", "quickshift/label")?,
            args: QuickShiftArgs {
                width: geometry.width,
                height: geometry.height,
                radius: quickshift.radius as i32,
                rows: (cells / stride) as i32,
                color: weight.color,
                span: weight.span,
                bias: weight.bias,
                unit: weight.unit,
                color_sq: quickshift.color_sq,
                tau_sq: quickshift.tau_sq,
                offsets: offsets.len() as u32,
                reach: quickshift.longest_link() as i32,
            },
            column: Memory::with(cuda, what, &weight.column)?,
            row: Memory::with(cuda, what, &weight.row)?,
            offsets: Memory::with(cuda, what, &offsets)?,
            // One more stands for what is outside of a mask.
            parents: Memory::new(cuda, what, geometry.pixels() + 1)?,
        })
    }
}

impl Segmenter<Cuda> for QuickShift {
    fn change(&mut self, plan: &crate::plan::Plan, buffers: &mut FrameBuffers) -> Result<()> {
        if let AlgorithmPlan::QuickShift(own) = &plan.algorithm {
            *self = Self::new(&buffers.queue.cuda, plan, own, buffers)?;
        }
        Ok(())
    }

    fn segment(&mut self, buffers: &mut FrameBuffers, _: &mut (), _: &mut StageTimes) -> Result<()> {
        let shape = self.args;
        let (features, density, counters) =
            (buffers.features(), buffers.sums[0].address(), buffers.counters());
        let (column, row, offsets) = (self.column.address(), self.row.address(), self.offsets.address());
        let (parents, components) = (self.parents.address(), buffers.components());
        let pixels = shape.width * shape.height;
        let tiles = |rows: u32| (shape.width.div_ceil(32), shape.height.div_ceil(rows));
        // SAFETY: the parameters of the kernels of kernels/quickshift.cu. `FrameBuffers::new` and `new` have made planes with a word a
        // pixel for the same plan, and parents one more, and ingest has cleared the densities and the counters; the tables have an
        // entry for each column and row of the window and for each offset; component lists hold one entry a pixel,
        // edges two.
        unsafe {
            buffers.queue.launch(
                &self.density,
                tiles(DENSITY_TILE_H),
                DENSITY_THREADS,
                &mut args![features, column, row, density, shape],
            )?;
            buffers.queue.launch(
                &self.link,
                tiles(LINK_THREADS / 32),
                LINK_THREADS,
                &mut args![features, density, offsets, parents, shape],
            )?;
            for pass in 0..FLATTEN_PASSES {
                buffers.queue.launch(
                    &self.flatten,
                    (pixels.div_ceil(FLATTEN_THREADS), 1),
                    FLATTEN_THREADS,
                    &mut args![parents, counters, pass, pixels],
                )?;
            }
            buffers.queue.launch(
                &self.label,
                buffers.tiles,
                LABEL_THREADS,
                &mut args![features, parents, components, shape],
            )
        }
    }
}
