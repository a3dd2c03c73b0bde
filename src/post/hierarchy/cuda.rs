// SPDX-License-Identifier: MPL-2.0
//! Stage `hierarchy` on a CUDA device: one launch over pixels, one for all rounds, a few for the cut, two more for the list.

use super::Plan as Own;
use crate::backend;
use crate::buffers::cuda::FrameBuffers;
use crate::cuda::Cuda;
use crate::cuda::abi::{
    Address, Forest, Hierarchy as Lists, HierarchyArgs, HierarchyJoin, HierarchySums, MergeList,
};
use crate::cuda::device::{ModuleCode, module_code};
use crate::cuda::launch::{Kernel, args};
use crate::cuda::memory::Memory;
use crate::cuda::tuning::{HIERARCHY_THREADS, MERGE_THREADS, NUMBER_THREADS, TILE_THREADS};
use crate::error::Result;
use crate::plan::Plan;
use crate::post::merge;
use crate::temporal::device::State;

const MODULE: ModuleCode = module_code!("hierarchy");
const LIST_MODULE: ModuleCode = module_code!("hierarchy_list");

/// Pixels per block, with S = 16: a block of [`MERGE_THREADS`] has about one component per thread, one of
/// [`HIERARCHY_THREADS`] half as many slots of the table of pairs as threads.
const PIXELS_A_BLOCK: u32 = 2048;
const PIXELS_A_ROUND_BLOCK: u32 = 16_384;
/// `HIERARCHY_COUNTS` in kernels/hierarchy.cuh.
const COUNTS: usize = 10;

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
            },
            merges: own.regions > 0,
            lists: own.levels,
        }
    }
}

/// Kernels and memory for listing the merges that the cut leaves out.
struct Listing {
    keys: Kernel,
    list: Kernel,
    areas: Memory<u32>,
}

impl Listing {
    fn new(cuda: &Cuda, labels: usize) -> Result<Self> {
        let kernel = |name| cuda.device.kernel(&LIST_MODULE, name, "hierarchy");
        Ok(Self {
            keys: kernel("hierarchy_keys")?,
            list: kernel("hierarchy_list")?,
            areas: Memory::new(cuda, "device memory", labels)?,
        })
    }
}

pub(crate) struct Hierarchy {
    /// Adds up pixels and features of regions from their components; `None` if an earlier stage has.
    gather: Option<Kernel>,
    start: Kernel,
    measure: Kernel,
    rounds: Kernel,
    roots_of: Kernel,
    number: Kernel,
    label: Kernel,
    regions: Kernel,
    /// Copies the labels before merging, which track ids need.
    keep: Kernel,
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
        let kernel = |name| cuda.device.kernel(&MODULE, name, "hierarchy");
        let (what, labels) = ("device memory", buffers.max_regions);
        let slots = slots_for(buffers.max_pairs);
        let (width, height) = (buffers.geometry.width, buffers.geometry.height);
        let multiprocessors = cuda.device.multiprocessors;
        let before_refine = Own { levels: own.levels && !plan.lists_refined(), ..own };
        let rounds = kernel("hierarchy_rounds")?;
        // At most one block per multiprocessor, since each has to meet all others at barriers.
        let resident = (rounds.resident_blocks(HIERARCHY_THREADS)?.min(1) * multiprocessors).max(1);
        let shared = |name| cuda.device.kernel(&merge::cuda::MODULE, name, "hierarchy");
        Ok(Self {
            gather: match plan.connectivity || plan.merge.is_some() || !plan.has_hierarchy_before_refine() {
                true => None,
                false => Some(shared("merge_gather")?),
            },
            start: kernel("hierarchy_start")?,
            measure: kernel("hierarchy_measure")?,
            rounds,
            roots_of: kernel("hierarchy_roots")?,
            number: kernel("hierarchy_number")?,
            label: kernel("hierarchy_label")?,
            regions: kernel("hierarchy_regions")?,
            keep: shared("merge_keep")?,
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
            blocks: (width * height).div_ceil(PIXELS_A_BLOCK).clamp(1, 8 * multiprocessors),
            label_blocks: (labels as u32).div_ceil(MERGE_THREADS).clamp(1, 8 * multiprocessors),
            number_blocks: (labels as u32).div_ceil(NUMBER_THREADS),
            round_blocks: (width * height).div_ceil(PIXELS_A_ROUND_BLOCK).clamp(1, resident),
        })
    }

    fn lists(&self, task: &Task) -> Lists {
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
        }
    }

    /// Merges as far as the task needs, selects the kept merges, and lists the rest by the labels that these give.
    /// Pixels keep their labels for now. `predecessors` are those of superpixels, or null.
    fn merge(&self, buffers: &FrameBuffers, task: &Task, predecessors: [Address<u32>; 2]) -> Result<()> {
        let (components, counters, lists) = (buffers.components(), buffers.counters(), self.lists(task));
        let (labels, regions) = (buffers.component_labels.address(), buffers.regions.address());
        let (shape, features, queue) = (task.args, buffers.features(), &buffers.queue);
        let (over_labels, [from, merged]) = ((self.label_blocks, 1), predecessors);
        // SAFETY: the parameters of the kernels of kernels/hierarchy.cu. Tiles' components, their labels and regions are as connectivity,
        // merging or refining left them, whose numbers stay within what `FrameBuffers::new` has made; `new` has made an entry for each
        // of the most regions, and tables with slots for the most pairs.
        unsafe {
            let begin = &mut args![lists, regions, counters, from, merged, shape];
            queue.launch(&self.start, over_labels, MERGE_THREADS, begin)?;
            let pixels = &mut args![components, labels, features, lists, shape];
            queue.launch(&self.measure, buffers.tiles, TILE_THREADS, pixels)?;
            let rounds = &mut args![lists, counters, shape];
            queue.launch_cooperative(&self.rounds, self.round_blocks, HIERARCHY_THREADS, rounds)?;
            queue.launch(&self.roots_of, over_labels, MERGE_THREADS, &mut args![lists])?;
            queue.launch(
                &self.number,
                (self.number_blocks, 1),
                NUMBER_THREADS,
                &mut args![lists, counters],
            )?;
        }
        if task.lists { self.write_list(buffers, lists) } else { Ok(()) }
    }

    fn write_list(&self, buffers: &FrameBuffers, lists: Lists) -> Result<()> {
        let (Some(listing), Some(memory)) = (&self.listing, &buffers.merges) else { return Ok(()) };
        // The rounds are over, so their memory is free for the list.
        let list = MergeList {
            keys: self.selected.address(),
            steps: memory.steps.address(),
            count: memory.count.address(),
        };
        let grid = (self.label_blocks, 1);
        // SAFETY: the parameters of the kernels of kernels/hierarchy_list.cu; keys, areas and steps have an entry for each of the most
        // regions, of which there are more than merges.
        unsafe {
            buffers.queue.launch(&listing.keys, grid, MERGE_THREADS, &mut args![lists, list])?;
            buffers.queue.launch(&listing.list, grid, MERGE_THREADS, &mut args![lists, list])
        }
    }

    /// Stores the labels of superpixels for the next frame, and derives the track ids of merged regions.
    fn name(&self, buffers: &FrameBuffers) -> Result<()> {
        let Some(state) = &buffers.temporal else { return Ok(()) };
        let (components, labels) = (buffers.components(), buffers.component_labels.address());
        let kept = state.early_labels().map_or(Address::NULL, Memory::address);
        let (width, height) = (buffers.geometry.width, buffers.geometry.height);
        let planes = &mut args![components, labels, kept, width, height];
        // SAFETY: the parameters of `merge_keep` of kernels/merge.cu; the plane that `State::new` has made is of this geometry.
        unsafe { buffers.queue.launch(&self.keep, buffers.tiles, TILE_THREADS, planes)? };
        let forest = Forest {
            parent: self.roots.address(),
            number: self.numbers.address(),
            count: self.counts.address(),
        };
        let all = state.addresses(buffers.first_labels.address());
        state.name_merged(&buffers.queue, &components, all, buffers.regions.address(), forest)
    }
}

impl backend::Hierarchy<Cuda> for Hierarchy {
    fn build(&mut self, buffers: &mut FrameBuffers, _: &mut ()) -> Result<()> {
        // Joins the branch that matches identities: its grid has barriers, like that of the rounds, and both must not
        // run at once. Without merging it may still be in flight here.
        buffers.queue.join()?;
        let task = &self.before_refine;
        let (components, counters, lists) = (buffers.components(), buffers.counters(), self.lists(task));
        let (labels, regions) = (buffers.component_labels.address(), buffers.regions.address());
        let (queue, over_components) = (&buffers.queue, (self.blocks, 1));
        if let Some(gather) = &self.gather {
            let gathered = &mut args![components, labels, regions];
            // SAFETY: the parameters of `merge_gather`. Lists, labels and regions are as connectivity left them, whose numbers stay within
            // what `FrameBuffers::new` has made.
            unsafe { queue.launch(gather, over_components, MERGE_THREADS, gathered)? };
        }
        // Predecessors are labels of superpixels; after stage `merge` the regions here are no superpixels.
        let state = buffers.temporal.as_ref().filter(|_| task.merges);
        self.merge(buffers, task, state.map_or([Address::NULL; 2], State::predecessors))?;
        if !task.merges {
            return Ok(());
        }
        self.name(buffers)?;
        // SAFETY: as in `merge`.
        unsafe {
            let names = &mut args![components, lists, labels, regions];
            queue.launch(&self.label, over_components, MERGE_THREADS, names)?;
            let counted = &mut args![lists, regions, counters];
            queue.launch(&self.regions, (self.label_blocks, 1), MERGE_THREADS, counted)
        }
    }

    fn list(&mut self, buffers: &mut FrameBuffers, _: &mut ()) -> Result<()> {
        self.merge(buffers, &self.behind_refine, [Address::NULL; 2])
    }
}
