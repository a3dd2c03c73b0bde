// SPDX-License-Identifier: MPL-2.0
//! Stage `refine` on a CUDA device: one launch per sweep, between two label planes. Then labels become components
//! again, for `statistics`.

use super::Plan as Rule;
use crate::backend::{Pass, Stage};
use crate::buffers::cuda::FrameBuffers;
use crate::cuda::abi::{Address, RefineArgs};
use crate::cuda::kernels::{merge_gather, refine_begin, refine_end, refine_means, refine_sweep};
use crate::cuda::memory::Memory;
use crate::cuda::tuning::{MERGE_THREADS, REFINE_THREADS, TABLE_THREADS, TILE_THREADS};
use crate::cuda::{Cuda, HostLabels};
use crate::error::Result;
use crate::plan::Plan;

pub(crate) struct Refine {
    /// Where no stage before brings pixels and features from components to regions.
    gather: Option<merge_gather::Kernel>,
    begin: refine_begin::Kernel,
    means: refine_means::Kernel,
    sweep: refine_sweep::Kernel,
    end: refine_end::Kernel,
    args: RefineArgs,
    sweeps: u32,
    /// Two label planes, which sweeps read and write in turn.
    planes: [Memory<u16>; 2],
    mean: Memory<u64>,
    /// True if labels are kept for the next frame here rather than before merging.
    keeps: bool,
    /// Blocks for passes over components.
    blocks: u32,
}

impl Refine {
    pub fn new(cuda: &Cuda, plan: &Plan, buffers: &FrameBuffers, rule: Rule) -> Result<Self> {
        const STAGE: &str = "refine";
        let device = &cuda.device;
        let (what, pixels) = ("device memory", buffers.geometry.pixels());
        let gathers = !plan.connectivity && plan.merge.is_none() && !plan.has_hierarchy_before_refine();
        Ok(Self {
            gather: match gathers {
                true => Some(device.kernel(merge_gather::KERNEL, STAGE)?),
                false => None,
            },
            begin: device.kernel(refine_begin::KERNEL, STAGE)?,
            means: device.kernel(refine_means::KERNEL, STAGE)?,
            sweep: device.kernel(refine_sweep::KERNEL, STAGE)?,
            end: device.kernel(refine_end::KERNEL, STAGE)?,
            args: RefineArgs {
                width: buffers.geometry.width,
                height: buffers.geometry.height,
                straight: rule.straight,
                diagonal: rule.diagonal,
            },
            sweeps: rule.sweeps,
            planes: [Memory::new(cuda, what, pixels)?, Memory::new(cuda, what, pixels)?],
            mean: Memory::new(cuda, what, buffers.max_regions)?,
            keeps: !plan.merges(),
            blocks: (pixels as u32).div_ceil(MERGE_THREADS).clamp(1, 8 * cuda.multiprocessors()),
        })
    }
}

impl Stage<Cuda> for Refine {
    fn run(&mut self, _: Pass, buffers: &mut FrameBuffers, _: &mut HostLabels<'_>) -> Result<()> {
        let (counters, queue) = (buffers.counters(), &buffers.queue);
        let (component_label, regions) = (buffers.component_labels.address(), buffers.regions.address());
        let (features, mean, tiles) = (buffers.features(), self.mean.address(), buffers.tiles);
        let kept = buffers.temporal.as_ref().and_then(|state| state.early_labels()).filter(|_| self.keeps);
        let kept = kept.map_or(Address::NULL, Memory::address);
        let [mut labels, mut refined] = [&self.planes[0], &self.planes[1]].map(Memory::address);
        let label_blocks = (buffers.max_regions as u32).div_ceil(TABLE_THREADS);
        let (c, args) = (&buffers.components(), &self.args);
        let prior = c.prior;
        // SAFETY: lists, labels and regions are as connectivity or merging left them, whose numbers stay within what `FrameBuffers::new`
        // has made; `new` has made planes of the frame's size, as are features and `kept`, and a mean for each of the most
        // regions. A tile's labels are no more than its pixels, for each of which `FrameBuffers::new` has made a component label.
        unsafe {
            if let Some(gather) = &self.gather {
                let gathered = merge_gather::Args { c, component_label, regions };
                queue.launch(gather, (self.blocks, 1), MERGE_THREADS, &gathered)?;
            }
            let begin = refine_begin::Args { c, component_label, regions, labels, kept, mean, args };
            queue.launch(&self.begin, tiles, TILE_THREADS, &begin)?;
            for sweep in 0..self.sweeps {
                if sweep > 0 {
                    let means = refine_means::Args { counters, regions, mean };
                    queue.launch(&self.means, (label_blocks, 1), TABLE_THREADS, &means)?;
                }
                let planes = refine_sweep::Args { labels, refined, features, prior, mean, regions, args };
                queue.launch(&self.sweep, tiles, REFINE_THREADS, &planes)?;
                (labels, refined) = (refined, labels);
            }
            let end = refine_end::Args { c, labels, component_label, args };
            queue.launch(&self.end, tiles, TILE_THREADS, &end)
        }
    }
}
