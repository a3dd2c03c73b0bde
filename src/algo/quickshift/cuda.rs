// SPDX-License-Identifier: MPL-2.0
//! Quick shift on a CUDA device: launches only, see kernels/quickshift.cu.

use super::Plan;
use crate::algo::AlgorithmPlan;
use crate::backend::{Segmenter, StageTimes};
use crate::buffers::cuda::FrameBuffers;
use crate::cuda::abi::{QuickShiftArgs, QuickShiftOffset};
use crate::cuda::kernels::{
    quickshift_density, quickshift_density_small, quickshift_flatten, quickshift_label, quickshift_link,
};
use crate::cuda::memory::Memory;
use crate::cuda::tuning::{
    DENSITY_CELLS, DENSITY_CELLS_SMALL, DENSITY_THREADS, DENSITY_TILE_H, FLATTEN_PASSES, FLATTEN_THREADS,
    LABEL_THREADS, LINK_THREADS,
};
use crate::cuda::{Cuda, HostLabels};
use crate::error::Result;
use crate::grid::Grid;

pub(crate) struct QuickShift {
    density: quickshift_density::Kernel,
    link: quickshift_link::Kernel,
    flatten: quickshift_flatten::Kernel,
    label: quickshift_label::Kernel,
    args: QuickShiftArgs,
    column: Memory<f32>,
    row: Memory<f32>,
    offsets: Memory<QuickShiftOffset>,
    parents: Memory<u32>,
}

impl QuickShift {
    /// Words of the accumulators of a frame's clusters: quick shift has none.
    pub fn sums_words(_: &Grid) -> usize {
        0
    }

    /// Words of the clusters that a frame leaves to the next.
    pub fn carried_words(_: &Grid) -> usize {
        0
    }

    pub fn new(cuda: &Cuda, plan: &crate::plan::Plan, quickshift: &Plan, _: &FrameBuffers) -> Result<Self> {
        let (geometry, weight) = (plan.frame.geometry, &quickshift.weight);
        let stride = 32 + 2 * quickshift.radius;
        let (density, cells) = if stride * (DENSITY_TILE_H + quickshift.radius) <= DENSITY_CELLS_SMALL {
            (quickshift_density_small::KERNEL, DENSITY_CELLS_SMALL)
        } else {
            (quickshift_density::KERNEL, DENSITY_CELLS)
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
        let (device, what) = (&cuda.device, "device memory");
        Ok(Self {
            density: device.kernel(density, "quickshift/density")?,
            link: device.kernel(quickshift_link::KERNEL, "quickshift/link")?,
            flatten: device.kernel(quickshift_flatten::KERNEL, "quickshift/flatten")?,
            label: device.kernel(quickshift_label::KERNEL, "quickshift/label")?,
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
            // One more entry is the parent of pixels outside of a mask.
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

    fn segment(
        &mut self,
        buffers: &mut FrameBuffers,
        _: &mut HostLabels<'_>,
        _: &mut StageTimes,
    ) -> Result<()> {
        let (args, queue) = (&self.args, &buffers.queue);
        let (features, density) = (buffers.features(), buffers.sums[0].address());
        let (parents, pixels) = (self.parents.address(), args.width * args.height);
        let tiles = |rows: u32| (args.width.div_ceil(32), args.height.div_ceil(rows));
        // SAFETY: `FrameBuffers::new` and `new` have made planes with a word a pixel for the same plan, and parents one more, and ingest
        // has cleared the densities and the counters; the tables have an entry for each column and row of the window and for each
        // offset; component lists hold one entry a pixel, edges two.
        unsafe {
            queue.launch(
                &self.density,
                tiles(DENSITY_TILE_H),
                DENSITY_THREADS,
                &quickshift_density::Args {
                    features,
                    column: self.column.address(),
                    row: self.row.address(),
                    density,
                    args,
                },
            )?;
            queue.launch(
                &self.link,
                tiles(LINK_THREADS / 32),
                LINK_THREADS,
                &quickshift_link::Args { features, density, offsets: self.offsets.address(), parents, args },
            )?;
            for pass in 0..FLATTEN_PASSES {
                queue.launch(
                    &self.flatten,
                    (pixels.div_ceil(FLATTEN_THREADS), 1),
                    FLATTEN_THREADS,
                    &quickshift_flatten::Args { parents, counters: buffers.counters(), pass, pixels },
                )?;
            }
            queue.launch(
                &self.label,
                buffers.tiles,
                LABEL_THREADS,
                &quickshift_label::Args {
                    features,
                    parents,
                    components: &buffers.labeled_components(),
                    args,
                },
            )
        }
    }
}
