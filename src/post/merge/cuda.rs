// SPDX-License-Identifier: MPL-2.0
//! Stage `merge` on a CUDA device: launches over components, pairs and labels, none over pixels.

use super::Plan as Rule;
use crate::backend;
use crate::buffers::cuda::FrameBuffers;
use crate::cuda::Cuda;
use crate::cuda::abi::{Address, ComponentSums, Forest, MergeArgs, Merging};
use crate::cuda::device::{ModuleCode, module_code};
use crate::cuda::launch::{Kernel, args};
use crate::cuda::memory::Memory;
use crate::cuda::tuning::{MERGE_THREADS, NUMBER_THREADS, TILE_THREADS};
use crate::error::Result;
use crate::plan::Plan;

pub(crate) const MODULE: ModuleCode = module_code!("merge");

/// Pixels per block of [`MERGE_THREADS`], which then has about one pair per thread.
const PIXELS_A_BLOCK: u32 = 2048;

pub(crate) struct Merge {
    /// Adds up pixels and features of regions from their components; `None` if an earlier stage has.
    gather: Option<Kernel>,
    start: Kernel,
    again: Kernel,
    nearest: Kernel,
    join: Kernel,
    move_sums: Kernel,
    number: Kernel,
    label: Kernel,
    keep: Kernel,
    args: MergeArgs,
    passes: u32,
    parent: Memory<u32>,
    sums: Memory<ComponentSums>,
    means: Memory<u64>,
    nearest_of: Memory<u32>,
    numbers: Memory<u32>,
    count: Memory<u32>,
    /// Blocks for passes over components and pairs, and for those over labels.
    blocks: u32,
    label_blocks: u32,
}

impl Merge {
    pub fn new(cuda: &Cuda, plan: &Plan, buffers: &FrameBuffers, rule: Rule) -> Result<Self> {
        let kernel = |name| cuda.device.kernel(&MODULE, name, "merge");
        let (what, labels) = ("device memory", buffers.max_regions);
        let pixels = buffers.geometry.width * buffers.geometry.height;
        let most = 8 * cuda.device.multiprocessors;
        Ok(Self {
            gather: if plan.connectivity { None } else { Some(kernel("merge_gather")?) },
            start: kernel("merge_start")?,
            again: kernel("merge_again")?,
            nearest: kernel("merge_nearest")?,
            join: kernel("merge_join")?,
            move_sums: kernel("merge_move_sums")?,
            number: kernel("merge_number")?,
            label: kernel("merge_label")?,
            keep: kernel("merge_keep")?,
            args: MergeArgs {
                ratio: rule.ratio,
                limit: rule.limit,
                mutual: u32::from(rule.mutual),
                unused: 0,
            },
            passes: rule.passes,
            parent: Memory::new(cuda, what, labels)?,
            sums: Memory::new(cuda, what, labels)?,
            means: Memory::new(cuda, what, labels)?,
            nearest_of: Memory::new(cuda, what, labels)?,
            numbers: Memory::new(cuda, what, labels)?,
            count: Memory::new(cuda, what, 1)?,
            blocks: pixels.div_ceil(PIXELS_A_BLOCK).clamp(1, most),
            label_blocks: (labels as u32).div_ceil(MERGE_THREADS).clamp(1, most),
        })
    }
}

impl backend::Merge<Cuda> for Merge {
    fn merge(&mut self, buffers: &mut FrameBuffers, _: &mut ()) -> Result<()> {
        let (components, counters) = (buffers.components(), buffers.counters());
        let labels = buffers.component_labels.address();
        let memory = Merging {
            parent: self.parent.address(),
            sums: self.sums.address(),
            mean: self.means.address(),
            nearest: self.nearest_of.address(),
            number: self.numbers.address(),
            count: self.count.address(),
        };
        let (lists, each) = ((self.blocks, 1), (self.label_blocks, 1));
        let (regions, threads) = (buffers.regions.address(), MERGE_THREADS);
        // SAFETY: the parameters of the kernels of kernels/merge.cu. Lists, labels and regions are as connectivity left them, whose
        // numbers stay within what `FrameBuffers::new` has made; `new` has made an entry for each of the most regions.
        unsafe {
            if let Some(gather) = &self.gather {
                buffers.queue.launch(gather, lists, threads, &mut args![components, labels, regions])?;
            }
            buffers.queue.launch(&self.start, each, threads, &mut args![memory, regions, counters])?;
            for pass in 0..self.passes {
                if pass > 0 {
                    buffers.queue.launch(&self.again, each, threads, &mut args![memory])?;
                }
                buffers.queue.launch(
                    &self.nearest,
                    lists,
                    threads,
                    &mut args![components, memory, labels, pass],
                )?;
                let shape = self.args;
                buffers.queue.launch(&self.join, lists, threads, &mut args![components, memory, shape])?;
                buffers.queue.launch(&self.move_sums, each, threads, &mut args![memory])?;
            }
            buffers.queue.launch(&self.number, (1, 1), NUMBER_THREADS, &mut args![memory, counters])?;
            if let Some(state) = &buffers.temporal {
                let kept = state.early_labels().map_or(Address::NULL, Memory::address);
                let (width, height) = (buffers.geometry.width, buffers.geometry.height);
                let planes = &mut args![components, labels, kept, width, height];
                buffers.queue.launch(&self.keep, buffers.tiles, TILE_THREADS, planes)?;
                let all = state.addresses(buffers.first_labels.address());
                let forest = Forest { parent: memory.parent, number: memory.number, count: memory.count };
                state.name_merged(&buffers.queue, &components, all, regions, forest)?;
            }
            buffers.queue.launch(&self.label, lists, threads, &mut args![components, memory, labels, regions])
        }
    }
}
