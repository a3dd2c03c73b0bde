// SPDX-License-Identifier: MPL-2.0
//! Stage `merge` on a CUDA device: launches over components, pairs and labels, none over pixels.

use super::Plan as Rule;
use crate::backend::{Pass, Stage};
use crate::buffers::cuda::FrameBuffers;
use crate::buffers::prior::Areas;
use crate::cuda::abi::{Address, ComponentSums, Forest, MergeArgs, Merging};
use crate::cuda::kernels::{
    merge_again, merge_gather, merge_join, merge_keep, merge_label, merge_move_sums, merge_nearest,
    merge_number, merge_start,
};
use crate::cuda::memory::Memory;
use crate::cuda::tuning::{MERGE_THREADS, NUMBER_THREADS, TILE_THREADS};
use crate::cuda::{Cuda, HostLabels};
use crate::error::Result;
use crate::plan::Plan;

/// A frame of this size gives one block of [`MERGE_THREADS`] about a pair a thread.
const PIXELS_A_BLOCK: u32 = 2048;

pub(crate) struct Merge {
    /// Where connectivity leaves pixels and features with the components.
    gather: Option<merge_gather::Kernel>,
    start: merge_start::Kernel,
    again: merge_again::Kernel,
    nearest: merge_nearest::Kernel,
    join: merge_join::Kernel,
    move_sums: merge_move_sums::Kernel,
    number: merge_number::Kernel,
    label: merge_label::Kernel,
    keep: merge_keep::Kernel,
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
        const STAGE: &str = "merge";
        let device = &cuda.device;
        let (what, labels) = ("device memory", buffers.max_regions);
        let pixels = buffers.geometry.width * buffers.geometry.height;
        let most = 8 * cuda.multiprocessors();
        Ok(Self {
            gather: if plan.connectivity { None } else { Some(device.kernel(merge_gather::KERNEL, STAGE)?) },
            start: device.kernel(merge_start::KERNEL, STAGE)?,
            again: device.kernel(merge_again::KERNEL, STAGE)?,
            nearest: device.kernel(merge_nearest::KERNEL, STAGE)?,
            join: device.kernel(merge_join::KERNEL, STAGE)?,
            move_sums: device.kernel(merge_move_sums::KERNEL, STAGE)?,
            number: device.kernel(merge_number::KERNEL, STAGE)?,
            label: device.kernel(merge_label::KERNEL, STAGE)?,
            keep: device.kernel(merge_keep::KERNEL, STAGE)?,
            args: MergeArgs {
                ratio: rule.ratio,
                limit: rule.limit,
                mutual: u32::from(rule.mutual),
                price: rule.price,
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

impl Stage<Cuda> for Merge {
    fn run(&mut self, _: Pass, buffers: &mut FrameBuffers, _: &mut HostLabels<'_>) -> Result<()> {
        let (components, counters) = (buffers.components(), buffers.counters());
        let component_label = buffers.component_labels.address();
        let memory = Merging {
            parent: self.parent.address(),
            sums: self.sums.address(),
            mean: self.means.address(),
            nearest: self.nearest_of.address(),
            number: self.numbers.address(),
            count: self.count.address(),
        };
        let (lists, each) = ((self.blocks, 1), (self.label_blocks, 1));
        let (regions, threads, queue) = (buffers.regions.address(), MERGE_THREADS, &buffers.queue);
        let (c, m, args) = (&components, &memory, &self.args);
        let areas = buffers.areas.as_ref();
        let prior = areas.map_or(Address::NULL, Areas::of_superpixels);
        if let Some(areas) = areas.filter(|_| self.args.price > 0) {
            areas.list_all(queue, c)?;
        }
        // SAFETY: lists, labels and regions are as connectivity left them, whose numbers stay within what `FrameBuffers::new` has made;
        // `new` has made an entry for each of the most regions.
        unsafe {
            if let Some(gather) = &self.gather {
                let gathered = merge_gather::Args { c, component_label, regions };
                queue.launch(gather, lists, threads, &gathered)?;
            }
            queue.launch(&self.start, each, threads, &merge_start::Args { m, regions, counters })?;
            for pass in 0..self.passes {
                if pass > 0 {
                    queue.launch(&self.again, each, threads, &merge_again::Args { m })?;
                }
                let nearest = merge_nearest::Args { c, m, component_label, prior, args, pass };
                queue.launch(&self.nearest, lists, threads, &nearest)?;
                queue.launch(&self.join, lists, threads, &merge_join::Args { c, m, args })?;
                queue.launch(&self.move_sums, each, threads, &merge_move_sums::Args { m })?;
            }
            let number = merge_number::Args { m, counters };
            queue.launch(&self.number, (1, 1), NUMBER_THREADS, &number)?;
            let forest = Forest { parent: memory.parent, number: memory.number, count: memory.count };
            areas.map_or(Ok(()), |areas| areas.relabel(queue, &forest))?;
            if let Some(state) = &buffers.temporal {
                let kept = state.early_labels().map_or(Address::NULL, Memory::address);
                let (width, height) = (buffers.geometry.width, buffers.geometry.height);
                let planes = merge_keep::Args { c, component_label, kept, width, height };
                queue.launch(&self.keep, buffers.tiles, TILE_THREADS, &planes)?;
                let all = state.addresses(buffers.first_labels.address());
                state.name_merged(queue, c, &all, regions, &forest)?;
            }
            let labels = merge_label::Args { c, m, component_label, regions };
            queue.launch(&self.label, lists, threads, &labels)
        }
    }
}
