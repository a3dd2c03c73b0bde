// SPDX-License-Identifier: MPL-2.0
//! State that a frame passes on to the next, in the memory of a CUDA device; see kernels/temporal.cu and
//! kernels/identity.cu.
//!
//! Planes and tables come in pairs, one for this frame and one for the last, which swap with every frame: see
//! [`State::swap`].

use std::mem::offset_of;

use super::{CLAIM_ROUNDS, Plan, WARM_ROUNDS};
use crate::cuda::Cuda;
use crate::cuda::abi::{
    Address, Components, Continued, Forest, GridArgs, Merged as MergedArgs, RegionSums, Slot, Source,
    Temporal, TemporalArgs, TemporalState, Track,
};
use crate::cuda::kernels::{temporal_largest, temporal_match, temporal_name_merged, temporal_vote};
use crate::cuda::memory::Memory;
use crate::cuda::queue::Queue;
use crate::cuda::tuning::{IDENTIFY_THREADS, MATCH_BLOCKS, TEMPORAL_THREADS, TILE};
use crate::error::Result;
use crate::image::NO_LABEL;
use crate::regions::Motion;

/// Memory of the names of merged regions.
pub(super) struct Merged {
    vote: temporal_vote::Kernel,
    name: temporal_name_merged::Kernel,
    blocks: u32,
    /// Merged label of each superpixel, of the last frame and of this one.
    pub(super) numbers: [Memory<u32>; 2],
    pub(super) tracks: [Memory<Track>; 2],
    totals: Memory<[u64; 3]>,
    pub(super) next_id: Memory<u32>,
}

impl Merged {
    fn new(cuda: &Cuda, max_regions: usize) -> Result<Self> {
        let what = "device memory";
        Ok(Self {
            vote: cuda.device.kernel(temporal_vote::KERNEL, "merge")?,
            name: cuda.device.kernel(temporal_name_merged::KERNEL, "merge")?,
            blocks: (max_regions as u32).div_ceil(TEMPORAL_THREADS),
            numbers: [Memory::new(cuda, what, max_regions)?, Memory::new(cuda, what, max_regions)?],
            tracks: [Memory::new(cuda, what, max_regions)?, Memory::new(cuda, what, max_regions)?],
            totals: Memory::new(cuda, what, max_regions)?,
            next_id: Memory::with_each(cuda, what, &[1])?,
        })
    }
}

/// Words of [`TemporalState`], and the indices of the last residual's first word and of the next identity's.
const STATE_WORDS: usize = size_of::<TemporalState>() / size_of::<u32>();
pub(super) const RESIDUAL: usize = offset_of!(TemporalState, residual) / size_of::<u32>();
pub(super) const NEXT_ID: usize = offset_of!(TemporalState, next_id) / size_of::<u32>();
const INSIDE: usize = offset_of!(TemporalState, inside) / size_of::<u32>();

/// Device memory with the state that a frame passes on to the next.
pub(crate) struct State {
    pub(super) grid: GridArgs,
    pub(super) args: TemporalArgs,
    pub(super) cells: u32,
    /// True if this frame, once it has begun, is a warm start; before, if the next one is. In a batch, of the streams whose frames
    /// are launched together.
    pub(super) warm: bool,
    /// Of a batch, which streams' next frames are warm starts.
    pub(super) go_on: Vec<bool>,
    /// Index, 0 or 1, of the buffers of this frame, in a batch of all streams; the others are those of the last.
    pub(super) current: usize,
    find_largest: temporal_largest::Kernel,
    matching: temporal_match::Kernel,
    match_blocks: u32,
    /// One [`TemporalState`] as words, a few of which the host reads and writes.
    pub(super) state: Memory<u32>,
    pub(super) slots: [Memory<Slot>; 2],
    /// Final clusters of each set of buffers, whose layout only the algorithm knows.
    pub(crate) carried: [Memory<u32>; 2],
    sources: Memory<Source>,
    moves: Memory<[i32; 2]>,
    claims: Memory<u64>,
    wanted: Memory<u32>,
    region_cells: Memory<u32>,
    pub(super) features: [Memory<u32>; 2],
    /// The second label plane: the last frame's labels are read while this one's are written.
    pub(super) labels: Option<Memory<u16>>,
    /// The last frame's labels before merging or refining; replaces `labels` where a later stage changes them.
    early_labels: Option<Memory<u16>>,
    pub(super) thumbnails: [Memory<u16>; 2],
    differences: Memory<u64>,
    largest: Memory<u64>,
    largest_label: Memory<u32>,
    positions: Memory<[i32; 2]>,
    owners: Memory<u64>,
    pub(super) tracks: [Memory<Track>; 2],
    pub(crate) motion: Memory<Motion>,
    sums: Memory<[u64; 6]>,
    reseed_claims: Memory<u64>,
    reseed_wanted: Memory<u32>,
    best: Memory<u64>,
    taken: Memory<u32>,
    new_tracks: Memory<u32>,
    from: Memory<u32>,
    pub(super) merged: Option<Merged>,
    pairs: Memory<[u32; 2]>,
    pair_list: Memory<u32>,
    part_claims: Memory<u64>,
    part_clusters: Memory<u32>,
    least_kept: Memory<u32>,
}

impl State {
    /// `carried_words`: words of an algorithm's clusters that a frame leaves to the next.
    pub fn new(
        cuda: &Cuda,
        plan: &crate::plan::Plan,
        temporal: &Plan,
        max_regions: usize,
        carried_words: usize,
    ) -> Result<Self> {
        let what = "device memory";
        let (n, cells) = (plan.frame.geometry.pixels(), plan.grid.cells());
        let squares = (temporal.thumbnail[0] * temporal.thumbnail[1]) as usize;
        // A sample adds at most one pair, and so does a region where regions are merged.
        let votes = if plan.merges() { max_regions } else { 0 };
        let samples = (temporal.samples as usize).max(votes);
        let changes_later = plan.merges() || plan.refine.is_some();
        let pairs = (2 * samples).next_power_of_two();
        let name_blocks = cells.max(max_regions).div_ceil(TEMPORAL_THREADS as usize);
        let mut first = [0; STATE_WORDS];
        (first[NEXT_ID], first[INSIDE]) = (1, temporal.samples as u32);
        let region_cells = if temporal.masked {
            // Pixels outside of the mask have the highest label, `NO_LABEL`, which names no region.
            Memory::with_each(cuda, what, &vec![u32::MAX; usize::from(NO_LABEL) + 1])?
        } else {
            Memory::new(cuda, what, max_regions)?
        };
        let matching = cuda.device.kernel(temporal_match::KERNEL, "temporal/identify")?;
        let streams = cuda.batch.as_ref().map_or(1, |batch| batch.frames());
        // Blocks that meet have to be on the device at once: in a batch a frame has one, which meets nobody.
        let resident = match streams {
            1 => matching.resident_blocks(IDENTIFY_THREADS)? * cuda.multiprocessors(),
            _ => 1,
        };
        Ok(Self {
            grid: GridArgs::new(&plan.grid),
            args: Self::kernel_args(plan, temporal, max_regions, pairs, name_blocks),
            cells: cells as u32,
            warm: false,
            go_on: vec![false; streams as usize],
            current: 0,
            find_largest: cuda.device.kernel(temporal_largest::KERNEL, "temporal/identify")?,
            matching,
            match_blocks: MATCH_BLOCKS.clamp(1, resident.max(1)),
            state: Memory::with_each(cuda, what, &first)?,
            slots: [Memory::new(cuda, what, cells)?, Memory::new(cuda, what, cells)?],
            carried: [Memory::new(cuda, what, carried_words)?, Memory::new(cuda, what, carried_words)?],
            sources: Memory::new(cuda, what, cells)?,
            moves: Memory::new(cuda, what, cells)?,
            claims: Memory::new(cuda, what, (1 + CLAIM_ROUNDS) * cells)?,
            wanted: Memory::new(cuda, what, cells)?,
            region_cells,
            features: [Memory::new(cuda, what, n)?, Memory::new(cuda, what, n)?],
            labels: if changes_later { None } else { Some(Memory::new(cuda, what, n)?) },
            early_labels: if changes_later { Some(Memory::new(cuda, what, n)?) } else { None },
            thumbnails: [Memory::new(cuda, what, squares)?, Memory::new(cuda, what, squares)?],
            differences: Memory::new(cuda, what, temporal.shifts() + 2)?,
            largest: Memory::new(cuda, what, cells)?,
            largest_label: Memory::new(cuda, what, cells)?,
            positions: Memory::new(cuda, what, cells)?,
            owners: Memory::new(cuda, what, max_regions)?,
            tracks: [Memory::new(cuda, what, max_regions)?, Memory::new(cuda, what, max_regions)?],
            motion: Memory::new(cuda, what, max_regions)?,
            sums: Memory::new(cuda, what, max_regions)?,
            reseed_claims: Memory::new(cuda, what, cells)?,
            reseed_wanted: Memory::new(cuda, what, max_regions)?,
            best: Memory::new(cuda, what, 2 * max_regions)?,
            taken: Memory::new(cuda, what, 2 * max_regions)?,
            new_tracks: Memory::new(cuda, what, name_blocks)?,
            from: Memory::new(cuda, what, max_regions)?,
            merged: match plan.merges() {
                true => Some(Merged::new(cuda, max_regions)?),
                false => None,
            },
            pairs: Memory::new(cuda, what, pairs)?,
            pair_list: Memory::new(cuda, what, samples)?,
            part_claims: Memory::new(cuda, what, (cells * temporal.parts as usize).max(1))?,
            part_clusters: Memory::new(cuda, what, max_regions)?,
            least_kept: Memory::new(cuda, what, cells)?,
        })
    }

    fn kernel_args(
        plan: &crate::plan::Plan,
        temporal: &Plan,
        max_regions: usize,
        pairs: usize,
        name_blocks: usize,
    ) -> TemporalArgs {
        TemporalArgs {
            square_log: temporal.square.ilog2(),
            thumbnail: temporal.thumbnail,
            reach: temporal.reach,
            inertia: temporal.inertia,
            sure: temporal.sure,
            samples: temporal.samples as u32,
            track_step: super::track_step(&plan.grid) as u32,
            track_points: super::track_points(&plan.grid, plan.frame.geometry) as u32,
            tiles_x: plan.frame.geometry.width.div_ceil(TILE),
            max_regions: max_regions as u32,
            pair_mask: pairs as u32 - 1,
            in_slots: u32::from(temporal.in_slots),
            connectivity: u32::from(plan.connectivity),
            unlike: temporal.unlike,
            in_regions: u32::from(temporal.in_regions),
            name_blocks: name_blocks as u32,
            flat_px: temporal.flat_px,
            flat_most: temporal.flat_most(),
            parts: temporal.parts,
            cells: plan.grid.cells() as u32,
            min_region: plan.min_region,
        }
    }

    /// Continues with another plan; see [`Backend::change`](crate::backend::Backend::change).
    pub fn change(&mut self, cuda: &Cuda, plan: &Plan, growth: Option<f64>) -> Result<()> {
        (self.args.inertia, self.args.sure) = (plan.inertia, plan.sure);
        (self.args.in_regions, self.args.flat_most) = (u32::from(plan.in_regions), plan.flat_most());
        if growth == Some(1.0) {
            return Ok(());
        }
        for mut state in self.of_streams(cuda, &self.state) {
            let mut halves = [0; 2];
            state.read(cuda, "residual", RESIDUAL, &mut halves)?;
            let last = u64::from(halves[0]) | u64::from(halves[1]) << 32;
            let carried = plan.carried_residual(last, growth);
            state.write(cuda, "residual", RESIDUAL, &[carried as u32, (carried >> 32) as u32])?;
        }
        Ok(())
    }

    /// Swaps all pairs: this frame's state becomes the last one's.
    pub fn swap(&mut self) {
        self.current ^= 1;
    }

    /// Completes a frame, from which the next one warm starts.
    pub fn finalize(&mut self) {
        self.warm = true;
    }

    /// Returns true if this frame is a warm start.
    pub fn is_warm(&self) -> bool {
        self.warm
    }

    /// The two values that select a frame's graph: true for a warm start, and the index in pairs.
    pub fn phase(&self) -> (bool, usize) {
        (self.warm, self.current)
    }

    /// This frame's packed colors.
    pub fn features(&self) -> &Memory<u32> {
        &self.features[self.current]
    }

    /// Track id, age and velocity of this frame's regions.
    pub fn tracks(&self) -> Address<Track> {
        self.track_memory().address()
    }

    /// The same with its length, in a batch of every stream.
    pub fn track_memory(&self) -> &Memory<Track> {
        let merged = self.merged.as_ref().map(|merged| &merged.tracks);
        &merged.unwrap_or(&self.tracks)[self.current]
    }

    pub fn args(&self) -> TemporalArgs {
        self.args
    }

    /// Addresses for this frame's kernels. `first_labels` is the first label plane.
    pub fn addresses(&self, first_labels: Address<u16>) -> Temporal {
        let (now, last) = (self.current, self.current ^ 1);
        Temporal {
            state: self.state.address().cast(),
            slots_last: self.slots[last].address(),
            slots: self.slots[now].address(),
            sources: self.sources.address(),
            moves: self.moves.address(),
            claims: self.claims.address(),
            wanted: self.wanted.address(),
            cells: self.region_cells.address(),
            labels: self.last_labels(first_labels),
            features_last: self.features[last].address(),
            features: self.features[now].address(),
            thumbnail_last: self.thumbnails[last].address(),
            thumbnail: self.thumbnails[now].address(),
            differences: self.differences.address(),
            largest: self.largest.address(),
            largest_label: self.largest_label.address(),
            positions: self.positions.address(),
            owners: self.owners.address(),
            tracks_last: self.tracks[last].address(),
            tracks: self.tracks[now].address(),
            motion: self.motion.address(),
            sums: self.sums.address().cast(),
            reseed_claims: self.reseed_claims.address(),
            reseed_wanted: self.reseed_wanted.address(),
            best: self.best.address(),
            taken: self.taken.address(),
            new_tracks: self.new_tracks.address(),
            from: self.from.address(),
            pairs: self.pairs.address(),
            pair_list: self.pair_list.address(),
            part_claims: self.part_claims.address(),
            part_clusters: self.part_clusters.address(),
            least_kept: self.least_kept.address(),
        }
    }

    /// The second label plane, if this frame writes that one.
    pub fn labels(&self) -> Option<&Memory<u16>> {
        self.labels.as_ref().filter(|_| self.current == 1)
    }

    /// The plane that keeps labels from before merging and refining for the next frame, which is its only reader.
    pub fn early_labels(&self) -> Option<&Memory<u16>> {
        self.early_labels.as_ref()
    }

    /// The last frame's labels, before merging and refining.
    fn last_labels(&self, first_labels: Address<u16>) -> Address<u16> {
        let second = self.labels.as_ref().filter(|_| self.current == 0);
        self.early_labels().or(second).map_or(first_labels, Memory::address)
    }

    /// Each superpixel's predecessor in the last frame, and the merged regions of those until this frame's are named.
    /// Null where regions are not merged.
    pub fn predecessors(&self) -> [Address<u32>; 2] {
        match &self.merged {
            Some(merged) => [self.from.address(), merged.numbers[self.current ^ 1].address()],
            None => [Address::NULL; 2],
        }
    }

    /// Derives the track ids of merged regions. `forest` says which superpixels they consist of.
    pub fn name_merged(
        &self,
        queue: &Queue,
        components: &Components,
        t: &Temporal,
        regions: Address<RegionSums>,
        forest: &Forest,
    ) -> Result<()> {
        let Some(merged) = &self.merged else { return Ok(()) };
        let (now, last) = (self.current, self.current ^ 1);
        let merged_args = &MergedArgs {
            numbers_last: merged.numbers[last].address(),
            numbers: merged.numbers[now].address(),
            tracks_last: merged.tracks[last].address(),
            tracks: merged.tracks[now].address(),
            totals: merged.totals.address().cast(),
            next_id: merged.next_id.address(),
        };
        let (counters, blocks) = (components.counters, (merged.blocks, 1));
        let votes = temporal_vote::Args { regions, forest, t, args: &self.args, merged: merged_args };
        let names = temporal_name_merged::Args { counters, t, merged: merged_args };
        // SAFETY: `State::new` and the stage that merges have made an entry for each of the most regions, a table of pairs with twice as
        // many slots, and a count for each block that names.
        unsafe {
            queue.launch(&merged.vote, blocks, TEMPORAL_THREADS, &votes)?;
            self.match_regions(queue, t)?;
            queue.launch(&merged.name, blocks, TEMPORAL_THREADS, &names)
        }
    }

    /// Lets regions without an identity and free identities choose each other, where there is a frame before.
    pub fn match_regions(&self, queue: &Queue, t: &Temporal) -> Result<()> {
        if !self.warm {
            return Ok(());
        }
        let args = temporal_match::Args { t, args: &self.args };
        // SAFETY: pairs are of regions that `State::new` has made entries for, and it asked how many blocks are resident at once.
        unsafe { queue.launch_cooperative(&self.matching, self.match_blocks, IDENTIFY_THREADS, &args) }
    }

    /// What the first round of absorption takes from the last frame, and where it leaves the largest component of every cluster.
    pub fn continued(&self) -> Continued {
        if self.args.in_slots == 0 {
            return Continued::NONE;
        }
        Continued {
            largest: self.largest.address(),
            least_kept: self.least_kept.address(),
            state: self.state.address().cast(),
            cells: self.cells,
            follows: u32::from(self.warm),
        }
    }

    /// Output of absorption: the cluster that each region would be a part of. Null where clusters have none.
    pub fn part_clusters(&self) -> Address<u32> {
        if self.args.parts == 0 { Address::NULL } else { self.part_clusters.address() }
    }

    /// Finds the largest component of every cluster where there is no such round. Components are joined by then.
    pub fn find_largest(&self, queue: &Queue, c: &Components, t: &Temporal, blocks: u32) -> Result<()> {
        if self.args.in_slots == 0 {
            return Ok(());
        }
        let args = temporal_largest::Args { c, t, args: &self.args };
        // SAFETY: the label kernel has filled the lists, whose clusters are below the number of cells that `State::new` has made
        // entries for.
        unsafe { queue.launch(&self.find_largest, (blocks, 1), TEMPORAL_THREADS, &args) }
    }

    /// The identity of the next new region, in a batch of any stream. Waits for the device.
    pub fn next_id(&self, cuda: &Cuda) -> Result<u32> {
        (0..self.go_on.len()).try_fold(1, |highest, stream| Ok(self.next_id_of(cuda, stream)?.max(highest)))
    }

    /// The identity of a stream's next new region. Waits for the device.
    pub fn next_id_of(&self, cuda: &Cuda, stream: usize) -> Result<u32> {
        let (memory, at) = self.next_ids();
        let mut id = [1];
        memory.of_frame(cuda, stream).read(cuda, "next identity", at, &mut id)?;
        Ok(id[0])
    }

    /// Sets that identity, which is not 0.
    pub fn set_next_id_of(&mut self, cuda: &Cuda, stream: usize, id: u32) -> Result<()> {
        let (memory, at) = self.next_ids();
        memory.of_frame(cuda, stream).write(cuda, "next identity", at, &[id.max(1)])
    }

    /// Sets the next identity, which is not 0, in a batch of all streams.
    pub fn set_next_id(&mut self, cuda: &Cuda, id: u32) -> Result<()> {
        (0..self.go_on.len()).try_for_each(|stream| self.set_next_id_of(cuda, stream, id))
    }

    /// Discards the frames before, in a batch of all streams.
    pub fn forget(&mut self) {
        self.warm = false;
        self.go_on.fill(false);
    }

    /// Returns true if later stages change the labels that regions were identified by.
    pub fn changes_later(&self) -> bool {
        self.early_labels.is_some()
    }
}

/// Start of each round of a warm frame, `Begin` of kernels/temporal.cuh, and its number. The second start runs after a
/// cut only.
pub(crate) fn warm_rounds() -> impl Iterator<Item = (u32, u32)> {
    [(0, 0), (1, 1)].into_iter().chain((1..WARM_ROUNDS).map(|round| (2, round)))
}
