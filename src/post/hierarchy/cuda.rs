// SPDX-License-Identifier: MPL-2.0
//! Stage `hierarchy` on a CUDA device: one launch over pixels, two for all rounds, a few for the cut, two more for the list.

use super::Plan as Own;
use super::passes::Passes;
use crate::backend::{Pass, Stage, Work};
use crate::buffers::cuda::FrameBuffers;
use crate::cuda::abi::{
    Address, Forest, Hierarchy as Lists, HierarchyArgs, HierarchyJoin, HierarchySums, MergeList,
};
use crate::cuda::kernels::{
    hierarchy_keys, hierarchy_label, hierarchy_last_rounds, hierarchy_last_rounds_narrow, hierarchy_list,
    hierarchy_measure, hierarchy_measure_areas, hierarchy_number, hierarchy_regions, hierarchy_roots,
    hierarchy_rounds, hierarchy_rounds_narrow, hierarchy_start, merge_gather, merge_keep,
};
use crate::cuda::memory::Memory;
use crate::cuda::tuning::{
    HIERARCHY_THREADS, HIERARCHY_THREADS_NARROW, LAST_REGIONS, LAST_THREADS, LAST_THREADS_NARROW,
    MERGE_THREADS, NUMBER_THREADS, TILE_THREADS,
};
use crate::cuda::{Cuda, HostLabels};
use crate::error::Result;
use crate::params::Outputs;
use crate::plan::Plan;
use crate::temporal::device::State;

const STAGE: &str = "hierarchy";

/// Pixels per block, with S = 16: a block of [`MERGE_THREADS`] has about one component per thread, one of
/// [`HIERARCHY_THREADS`] half as many slots of the table of pairs as threads.
const PIXELS_A_BLOCK: u32 = 2048;
const PIXELS_A_ROUND_BLOCK: u32 = 16_384;
/// `HIERARCHY_COUNTS` in kernels/hierarchy.cuh.
const COUNTS: usize = 17;

/// Slots of a hash table for `pairs` pairs: a power of two, more than twice as many.
fn slots_for(pairs: usize) -> usize {
    2 << ((2 * pairs) | 31).ilog2()
}

/// The merges and lists that a plan needs.
struct Task {
    args: HierarchyArgs,
    /// True if labels change.
    merges: bool,
    /// True if the merges that the cut leaves out are listed.
    lists: bool,
}

impl Task {
    fn new(own: &Own, plan: &Plan, max_pairs: usize) -> Self {
        let geometry = plan.frame.geometry;
        Self {
            args: HierarchyArgs {
                width: geometry.width,
                height: geometry.height,
                regions: if own.regions > 0 { own.regions } else { u32::MAX },
                planar: u32::from(plan.connectivity),
                max_pairs: max_pairs as u32,
                least: own.least,
                contrast: own.contrast.into(),
                position: own.position.into(),
                position_shift: own.position_shift,
                until: if own.levels { 1 } else { own.regions },
                joins_areas: u32::from(own.price == 0 && (own.crosses || own.levels)),
                crosses: u32::from(own.crosses),
                price: own.price,
                unused: 0,
            },
            merges: own.regions > 0,
            lists: own.levels,
        }
    }
}

/// Kernels and memory for listing the merges that the cut leaves out.
struct Listing {
    keys: hierarchy_keys::Kernel,
    list: hierarchy_list::Kernel,
    areas: Memory<u32>,
}

impl Listing {
    fn new(cuda: &Cuda, labels: usize) -> Result<Self> {
        Ok(Self {
            keys: cuda.device.kernel(hierarchy_keys::KERNEL, STAGE)?,
            list: cuda.device.kernel(hierarchy_list::KERNEL, STAGE)?,
            areas: Memory::new(cuda, "device memory", labels)?,
        })
    }
}

/// The pairs of regions in two areas of a prior, which join when no others are left.
struct Across {
    keys: Memory<u32>,
    lengths: Memory<u32>,
    contrasts: Memory<u64>,
}

impl Across {
    fn new(cuda: &Cuda, slots: usize) -> Result<Self> {
        let what = "device memory";
        Ok(Self {
            keys: Memory::new(cuda, what, slots)?,
            lengths: Memory::new(cuda, what, slots)?,
            contrasts: Memory::new(cuda, what, slots)?,
        })
    }
}

pub(crate) struct Hierarchy {
    passes: Passes,
    /// Where connectivity leaves pixels and features with the components.
    gather: Option<merge_gather::Kernel>,
    start: hierarchy_start::Kernel,
    measure: hierarchy_measure::Kernel,
    /// Where there can be more regions than the last rounds take; with threads of a block.
    rounds: Option<(hierarchy_rounds::Kernel, u32)>,
    /// The last rounds, and threads of their block.
    last_rounds: (hierarchy_last_rounds::Kernel, u32),
    roots_of: hierarchy_roots::Kernel,
    number: hierarchy_number::Kernel,
    label: hierarchy_label::Kernel,
    regions: hierarchy_regions::Kernel,
    /// Labels before merging, where identities last.
    keep: merge_keep::Kernel,
    listing: Option<Listing>,
    before_refine: Task,
    behind_refine: Task,
    sums: Memory<HierarchySums>,
    joins: Memory<HierarchyJoin>,
    heights: Memory<u32>,
    earlier: Memory<u32>,
    roots: Memory<u32>,
    lowest: Memory<u32>,
    heads: Memory<u32>,
    numbers: Memory<u32>,
    counts: Memory<u32>,
    // Two halves each, which rounds take in turn.
    selected: Memory<u64>,
    keys: Memory<u32>,
    lengths: Memory<u32>,
    held: Memory<u32>,
    contrasts: Memory<u64>,
    /// Where frames may have priors.
    across: Option<Across>,
    /// Blocks for passes over components and over labels, and of the grid with barriers.
    blocks: u32,
    label_blocks: u32,
    number_blocks: u32,
    round_blocks: u32,
}

/// Addresses of both halves of an array.
fn halves<T>(memory: &Memory<T>) -> [Address<T>; 2] {
    [memory.address(), memory.address().item(memory.len() / 2)]
}

impl Hierarchy {
    pub fn new(cuda: &Cuda, plan: &Plan, buffers: &FrameBuffers, own: Own) -> Result<Self> {
        let device = &cuda.device;
        let (what, labels) = ("device memory", buffers.max_regions);
        let slots = slots_for(buffers.max_pairs);
        let (width, height) = (buffers.geometry.width, buffers.geometry.height);
        let multiprocessors = cuda.multiprocessors();
        let before_refine = Own { levels: own.levels && !plan.lists_refined(), ..own };
        let ((rounds, threads), (last_rounds, last_threads)) = match cuda.shares_multiprocessors() {
            false => {
                ((hierarchy_rounds::KERNEL, HIERARCHY_THREADS), (hierarchy_last_rounds::KERNEL, LAST_THREADS))
            }
            true => (
                (hierarchy_rounds_narrow::KERNEL, HIERARCHY_THREADS_NARROW),
                (hierarchy_last_rounds_narrow::KERNEL, LAST_THREADS_NARROW),
            ),
        };
        let rounds = device.kernel(rounds, STAGE)?;
        let measure = if plan.prior { hierarchy_measure_areas::KERNEL } else { hierarchy_measure::KERNEL };
        // At most one a multiprocessor, each of which has to meet all others.
        let resident = (rounds.resident_blocks(threads)?.min(1) * multiprocessors).max(1);
        Ok(Self {
            passes: Passes::new(plan),
            gather: match plan.connectivity || plan.merge.is_some() || !plan.has_hierarchy_before_refine() {
                true => None,
                false => Some(device.kernel(merge_gather::KERNEL, STAGE)?),
            },
            start: device.kernel(hierarchy_start::KERNEL, STAGE)?,
            measure: device.kernel(measure, STAGE)?,
            rounds: Some((rounds, threads)).filter(|_| !plan.connectivity || labels > LAST_REGIONS as usize),
            last_rounds: (device.kernel(last_rounds, STAGE)?, last_threads),
            roots_of: device.kernel(hierarchy_roots::KERNEL, STAGE)?,
            number: device.kernel(hierarchy_number::KERNEL, STAGE)?,
            label: device.kernel(hierarchy_label::KERNEL, STAGE)?,
            regions: device.kernel(hierarchy_regions::KERNEL, STAGE)?,
            keep: device.kernel(merge_keep::KERNEL, STAGE)?,
            listing: if own.levels { Some(Listing::new(cuda, labels)?) } else { None },
            before_refine: Task::new(&before_refine, plan, buffers.max_pairs),
            behind_refine: Task::new(&Own { regions: 0, ..own }, plan, buffers.max_pairs),
            sums: Memory::new(cuda, what, labels)?,
            joins: Memory::new(cuda, what, labels)?,
            heights: Memory::new(cuda, what, labels)?,
            earlier: Memory::new(cuda, what, labels)?,
            roots: Memory::new(cuda, what, labels)?,
            lowest: Memory::new(cuda, what, labels)?,
            heads: Memory::new(cuda, what, labels.div_ceil(32))?,
            numbers: Memory::new(cuda, what, labels)?,
            counts: Memory::new(cuda, what, COUNTS)?,
            selected: Memory::new(cuda, what, 2 * labels)?,
            keys: Memory::new(cuda, what, 2 * slots)?,
            lengths: Memory::new(cuda, what, 2 * slots)?,
            held: Memory::new(cuda, what, 2 * slots)?,
            contrasts: Memory::new(cuda, what, 2 * slots)?,
            across: plan.prior.then(|| Across::new(cuda, slots)).transpose()?,
            blocks: (width * height).div_ceil(PIXELS_A_BLOCK).clamp(1, 8 * multiprocessors),
            label_blocks: (labels as u32).div_ceil(MERGE_THREADS).clamp(1, 8 * multiprocessors),
            number_blocks: (labels as u32).div_ceil(NUMBER_THREADS),
            round_blocks: (width * height).div_ceil(PIXELS_A_ROUND_BLOCK).clamp(1, resident),
        })
    }

    fn lists(&self, buffers: &FrameBuffers, task: &Task) -> Lists {
        let (areas, across) = (buffers.areas.as_ref(), self.across.as_ref());
        let listing = self.listing.as_ref().filter(|_| task.lists);
        Lists {
            sums: self.sums.address(),
            joins: self.joins.address(),
            selected: halves(&self.selected),
            heights: self.heights.address(),
            keys: halves(&self.keys),
            lengths: halves(&self.lengths),
            held: halves(&self.held),
            contrasts: halves(&self.contrasts),
            earlier: self.earlier.address(),
            roots: self.roots.address(),
            lowest: self.lowest.address(),
            heads: self.heads.address(),
            numbers: self.numbers.address(),
            areas: listing.map_or(Address::NULL, |listing| listing.areas.address()),
            counts: self.counts.address(),
            prior: areas.map_or(Address::NULL, |areas| match task.merges {
                true => areas.of_superpixels(),
                false => areas.of_regions(),
            }),
            across_keys: across.map_or(Address::NULL, |across| across.keys.address()),
            across_lengths: across.map_or(Address::NULL, |across| across.lengths.address()),
            across_contrasts: across.map_or(Address::NULL, |across| across.contrasts.address()),
        }
    }

    /// Merges as far as the task needs, selects the kept merges, and lists the rest by the labels that these give.
    /// Pixels keep their labels for now. `predecessors` are those of superpixels, or null.
    fn merge(&self, buffers: &FrameBuffers, task: &Task, predecessors: [Address<u32>; 2]) -> Result<()> {
        let (components, counters, lists) =
            (buffers.components(), buffers.counters(), self.lists(buffers, task));
        let (component_label, regions) = (buffers.component_labels.address(), buffers.regions.address());
        let (features, queue) = (buffers.features(), &buffers.queue);
        let (over_labels, [from, merged]) = ((self.label_blocks, 1), predecessors);
        let (c, h, args) = (&components, &lists, &task.args);
        // SAFETY: tiles' components, their labels and regions are as connectivity, merging or refining left them, whose numbers stay within
        // what `FrameBuffers::new` has made; `new` has made an entry for each of the most regions, and tables with slots for the
        // most pairs.
        unsafe {
            let begin = hierarchy_start::Args { h, regions, counters, from, merged, args };
            queue.launch(&self.start, over_labels, MERGE_THREADS, &begin)?;
            let pixels = hierarchy_measure::Args { c, component_label, features, h, args };
            queue.launch(&self.measure, buffers.tiles, TILE_THREADS, &pixels)?;
            if let Some((kernel, threads)) = &self.rounds {
                let rounds = hierarchy_rounds::Args { h, counters, args };
                queue.launch_cooperative(kernel, self.round_blocks, *threads, &rounds)?;
            }
            let (last_rounds, threads) = &self.last_rounds;
            let last = hierarchy_last_rounds::Args { h, args };
            queue.launch(last_rounds, (1, 1), *threads, &last)?;
            queue.launch(&self.roots_of, over_labels, MERGE_THREADS, &hierarchy_roots::Args { h })?;
            let number = hierarchy_number::Args { h, counters };
            queue.launch(&self.number, (self.number_blocks, 1), NUMBER_THREADS, &number)?;
        }
        if task.lists { self.write_list(buffers, &lists) } else { Ok(()) }
    }

    fn write_list(&self, buffers: &FrameBuffers, h: &Lists) -> Result<()> {
        let (Some(listing), Some(memory)) = (&self.listing, &buffers.merges) else { return Ok(()) };
        // Selections are over.
        let list = &MergeList {
            keys: self.selected.address(),
            steps: memory.steps.address(),
            count: memory.count.address(),
        };
        let grid = (self.label_blocks, 1);
        // SAFETY: keys, areas and steps have an entry for each of the most regions, of which there are more than merges.
        unsafe {
            buffers.queue.launch(&listing.keys, grid, MERGE_THREADS, &hierarchy_keys::Args { h, list })?;
            buffers.queue.launch(&listing.list, grid, MERGE_THREADS, &hierarchy_list::Args { h, list })
        }
    }

    /// What superpixels became.
    fn forest(&self) -> Forest {
        Forest { parent: self.roots.address(), number: self.numbers.address(), count: self.counts.address() }
    }

    /// Stores the labels of superpixels for the next frame, and derives the track ids of merged regions.
    fn name(&self, buffers: &FrameBuffers) -> Result<()> {
        let Some(state) = &buffers.temporal else { return Ok(()) };
        let (c, component_label) = (&buffers.components(), buffers.component_labels.address());
        let kept = state.early_labels().map_or(Address::NULL, Memory::address);
        let (width, height) = (buffers.geometry.width, buffers.geometry.height);
        let planes = merge_keep::Args { c, component_label, kept, width, height };
        // SAFETY: the plane that `State::new` has made is of this geometry.
        unsafe { buffers.queue.launch(&self.keep, buffers.tiles, TILE_THREADS, &planes)? };
        let forest = &self.forest();
        let all = state.addresses(buffers.first_labels.address());
        state.name_merged(&buffers.queue, c, &all, buffers.regions.address(), forest)
    }
}

impl Hierarchy {
    /// Merges and, unless boundaries are refined, lists what would be merged next.
    fn build(&mut self, buffers: &mut FrameBuffers) -> Result<()> {
        // Joins the branch that matches identities: its grid has barriers, like that of the rounds, and both must not
        // run at once. Without merging it may still be in flight here.
        buffers.queue.join();
        let task = &self.before_refine;
        let (c, h, counters) = (&buffers.components(), &self.lists(buffers, task), buffers.counters());
        let (component_label, regions) = (buffers.component_labels.address(), buffers.regions.address());
        let (queue, over_components) = (&buffers.queue, (self.blocks, 1));
        if let Some(gather) = &self.gather {
            let gathered = merge_gather::Args { c, component_label, regions };
            // SAFETY: lists, labels and regions are as connectivity left them, whose numbers stay within what `FrameBuffers::new` has made.
            unsafe { queue.launch(gather, over_components, MERGE_THREADS, &gathered)? };
        }
        // Predecessors are labels of superpixels; after stage `merge` the regions here are no superpixels.
        let state = buffers.temporal.as_ref().filter(|_| task.merges);
        self.merge(buffers, task, state.map_or([Address::NULL; 2], State::predecessors))?;
        if !task.merges {
            return Ok(());
        }
        let forest = self.forest();
        buffers.areas.as_ref().map_or(Ok(()), |areas| areas.relabel(&buffers.queue, &forest))?;
        self.name(buffers)?;
        // SAFETY: as in `merge`.
        unsafe {
            let names = hierarchy_label::Args { c, h, component_label, regions };
            queue.launch(&self.label, over_components, MERGE_THREADS, &names)?;
            let counted = hierarchy_regions::Args { h, regions, counters };
            queue.launch(&self.regions, (self.label_blocks, 1), MERGE_THREADS, &counted)
        }
    }

    /// Lists the merges of the refined regions; labels stay.
    fn list(&mut self, buffers: &mut FrameBuffers) -> Result<()> {
        self.merge(buffers, &self.behind_refine, [Address::NULL; 2])
    }
}

impl Stage<Cuda> for Hierarchy {
    fn work(&self, pass: Pass, outputs: Outputs) -> Option<Work> {
        self.passes.work(pass, outputs)
    }

    fn run(&mut self, pass: Pass, buffers: &mut FrameBuffers, _: &mut HostLabels<'_>) -> Result<()> {
        match pass {
            Pass::Labels => self.build(buffers),
            Pass::Lists => self.list(buffers),
        }
    }
}
