// SPDX-License-Identifier: MPL-2.0
//! What lasts from frame to frame, on a CUDA device: memory and launches; see kernels/temporal.cu and kernels/identity.cu.
//!
//! Whether a frame is warm the host knows before it starts, and records one graph for either case. A cut is known on the
//! device only: every launch after the first warm round looks at the residuals and goes one way or the other.
//!
//! Planes and tables of the last frame and of this one change places with every frame, see [`State::turn`].

use super::{CLAIM_ROUNDS, Plan, WARM_ROUNDS};
use crate::algo::grid::GridArgs;
use crate::backend::{self, StageTimes};
use crate::cuda::device::{ModuleCode, module_code};
use crate::cuda::launch::{Argument, Kernel};
use crate::cuda::tuning::{
    CLAIM_THREADS, IDENTIFY_THREADS, SHIFT_THREADS, TEMPORAL_THREADS, TILE, TRACK_POINTS, TRACK_THREADS,
};
use crate::cuda::work::{Memory, args};
use crate::cuda::{Cuda, Work};
use crate::error::Result;
use crate::regions::Motion;

pub(crate) const MODULES: [ModuleCode; 2] = [module_code!("temporal", sm80), module_code!("identity")];

/// `TemporalArgs` of kernels/temporal.cuh.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct TemporalArgs {
    square_log: u32,
    thumbnail: [u32; 2],
    reach: [u32; 2],
    inertia: u32,
    sure: u32,
    samples: u32,
    track_step: u32,
    track_points: u32,
    tiles_x: u32,
    max_regions: u32,
    pair_mask: u32,
    in_slots: u32,
    connectivity: u32,
    unlike: [u32; 2],
}

const _: () = assert!(size_of::<TemporalArgs>() == 4 * 17);
// SAFETY: repr(C), the fields of `TemporalArgs` in kernels/temporal.cuh.
unsafe impl Argument for TemporalArgs {}
// SAFETY: repr(C), the fields of `GridArgs` in kernels/grid.cuh.
unsafe impl Argument for GridArgs {}

/// `Temporal` of kernels/temporal.cuh: where everything is in this frame.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Addresses([u64; 30]);

// SAFETY: repr(C), addresses in the order of `Temporal`.
unsafe impl Argument for Addresses {}

/// `Forest` of kernels/identity.cu.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Forest([u64; 3]);

// SAFETY: repr(C), addresses in the order of `Forest`.
unsafe impl Argument for Forest {}

/// `Merged` of kernels/identity.cu.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct MergedArgs([u64; 5]);

// SAFETY: repr(C), addresses in the order of `Merged`.
unsafe impl Argument for MergedArgs {}

/// Memory of the names of merged regions.
struct Merged {
    kernel: Kernel,
    /// The last frame's labels before merging.
    labels: Memory<u16>,
    numbers: Memory<u32>,
    tracks: [Memory<[u32; 4]>; 2],
    totals: Memory<[u64; 3]>,
    next_id: Memory<u32>,
}

impl Merged {
    fn new(cuda: &Cuda, pixels: usize, max_regions: usize) -> Result<Self> {
        let what = "device memory";
        Ok(Self {
            kernel: cuda.device.kernel("identity", "temporal_merged", "merge")?,
            labels: Memory::new(cuda, what, pixels)?,
            numbers: Memory::new(cuda, what, max_regions)?,
            tracks: [Memory::new(cuda, what, max_regions)?, Memory::new(cuda, what, max_regions)?],
            totals: Memory::new(cuda, what, max_regions)?,
            next_id: Memory::with(cuda, what, &[1])?,
        })
    }
}

/// Words of `TemporalState`, and where in it the last residual and the next identity stand.
const STATE_WORDS: usize = 20;
const RESIDUAL: usize = 4;
const NEXT_ID: usize = 13;

/// Device memory of what a frame leaves to the next.
pub(crate) struct State {
    grid: GridArgs,
    args: TemporalArgs,
    cells: u32,
    /// Whether the next frame, or this one once it has begun, goes on from the last.
    warm: bool,
    /// Which of two is this frame's.
    turn: usize,
    mains: Kernel,
    state: Memory<u32>,
    slots: [Memory<[u32; 12]>; 2],
    sources: Memory<[u32; 4]>,
    moves: Memory<[i32; 2]>,
    claims: Memory<u64>,
    wanted: Memory<u32>,
    region_cells: Memory<u32>,
    features: [Memory<u32>; 2],
    /// The second label plane: what was seen in the last frame is looked at while this one's labels are written. Where
    /// regions are merged, labels are of merged regions, and those from before stand in `merged`.
    labels: Option<Memory<u16>>,
    thumbnails: [Memory<u16>; 2],
    differences: Memory<u64>,
    main: Memory<u64>,
    main_label: Memory<u32>,
    places: Memory<[i32; 2]>,
    owners: Memory<u64>,
    tracks: [Memory<[u32; 4]>; 2],
    pub(crate) motion: Memory<Motion>,
    sums: Memory<[u64; 6]>,
    plant_claims: Memory<u64>,
    plant_wanted: Memory<u32>,
    best: Memory<u64>,
    taken: Memory<u32>,
    born: Memory<u32>,
    from: Memory<u32>,
    merged: Option<Merged>,
    pairs: Memory<[u32; 2]>,
    pair_list: Memory<u32>,
}

impl State {
    pub fn new(cuda: &Cuda, plan: &crate::plan::Plan, temporal: &Plan, max_regions: usize) -> Result<Self> {
        let what = "device memory";
        let (n, cells) = (plan.frame.geometry.pixels(), plan.grid.cells());
        let squares = (temporal.thumbnail[0] * temporal.thumbnail[1]) as usize;
        // A sample gives at most one pair, and where regions are merged, a region.
        let votes = if plan.merge.is_some() { max_regions } else { 0 };
        let samples = (temporal.samples as usize).max(votes);
        let pairs = (2 * samples).next_power_of_two();
        let mut first = [0; STATE_WORDS];
        first[NEXT_ID] = 1;
        Ok(Self {
            grid: plan.grid.device_args(),
            args: TemporalArgs {
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
            },
            cells: cells as u32,
            warm: false,
            turn: 0,
            mains: cuda.device.kernel("identity", "temporal_mains", "temporal/identify")?,
            state: Memory::with(cuda, what, &first)?,
            slots: [Memory::new(cuda, what, cells)?, Memory::new(cuda, what, cells)?],
            sources: Memory::new(cuda, what, cells)?,
            moves: Memory::new(cuda, what, cells)?,
            claims: Memory::new(cuda, what, (1 + CLAIM_ROUNDS) * cells)?,
            wanted: Memory::new(cuda, what, cells)?,
            region_cells: Memory::new(cuda, what, max_regions)?,
            features: [Memory::new(cuda, what, n)?, Memory::new(cuda, what, n)?],
            labels: match plan.merge {
                Some(_) => None,
                None => Some(Memory::new(cuda, what, n)?),
            },
            thumbnails: [Memory::new(cuda, what, squares)?, Memory::new(cuda, what, squares)?],
            differences: Memory::new(cuda, what, temporal.shifts() + 2)?,
            main: Memory::new(cuda, what, cells)?,
            main_label: Memory::new(cuda, what, cells)?,
            places: Memory::new(cuda, what, cells)?,
            owners: Memory::new(cuda, what, max_regions)?,
            tracks: [Memory::new(cuda, what, max_regions)?, Memory::new(cuda, what, max_regions)?],
            motion: Memory::new(cuda, what, max_regions)?,
            sums: Memory::new(cuda, what, max_regions)?,
            plant_claims: Memory::new(cuda, what, cells)?,
            plant_wanted: Memory::new(cuda, what, max_regions)?,
            best: Memory::new(cuda, what, 4 * max_regions)?,
            taken: Memory::new(cuda, what, 2 * max_regions)?,
            born: Memory::new(cuda, what, max_regions.div_ceil(32))?,
            from: Memory::new(cuda, what, max_regions)?,
            merged: match plan.merge {
                Some(_) => Some(Merged::new(cuda, n, max_regions)?),
                None => None,
            },
            pairs: Memory::new(cuda, what, pairs)?,
            pair_list: Memory::new(cuda, what, samples)?,
        })
    }

    /// Goes on with another plan; see [`Backend::change`](crate::backend::Backend::change).
    pub fn change(&mut self, cuda: &Cuda, plan: &Plan, growth: Option<f64>) -> Result<()> {
        (self.args.inertia, self.args.sure) = (plan.inertia, plan.sure);
        if growth == Some(1.0) {
            return Ok(());
        }
        let mut halves = [0; 2];
        self.state.read(cuda, "residual", RESIDUAL, &mut halves)?;
        let last = u64::from(halves[0]) | u64::from(halves[1]) << 32;
        let carried = plan.carried_residual(last, growth);
        self.state.write(cuda, "residual", RESIDUAL, &[carried as u32, (carried >> 32) as u32])
    }

    /// Makes the frame that was this one the last one.
    pub fn turn(&mut self) {
        self.turn ^= 1;
    }

    /// The next frame goes on from this one.
    pub fn settle(&mut self) {
        self.warm = true;
    }

    /// Whether this frame goes on from the last one.
    pub fn is_warm(&self) -> bool {
        self.warm
    }

    /// What decides how a frame is worked on and where everything is.
    pub fn phase(&self) -> (bool, usize) {
        (self.warm, self.turn)
    }

    /// This frame's packed colors.
    pub fn features(&self) -> &Memory<u32> {
        &self.features[self.turn]
    }

    /// Identity, age and velocity of this frame's regions.
    pub fn tracks(&self) -> u64 {
        let merged = self.merged.as_ref().map(|merged| &merged.tracks);
        merged.unwrap_or(&self.tracks)[self.turn].address()
    }

    pub fn args(&self) -> TemporalArgs {
        self.args
    }

    pub fn addresses(&self, work: &Work) -> Addresses {
        let (now, last) = (self.turn, self.turn ^ 1);
        Addresses([
            self.state.address(),
            self.slots[last].address(),
            self.slots[now].address(),
            self.sources.address(),
            self.moves.address(),
            self.claims.address(),
            self.wanted.address(),
            self.region_cells.address(),
            self.last_labels(work),
            self.features[last].address(),
            self.features[now].address(),
            self.thumbnails[last].address(),
            self.thumbnails[now].address(),
            self.differences.address(),
            self.main.address(),
            self.main_label.address(),
            self.places.address(),
            self.owners.address(),
            self.tracks[last].address(),
            self.tracks[now].address(),
            self.motion.address(),
            self.sums.address(),
            self.plant_claims.address(),
            self.plant_wanted.address(),
            self.best.address(),
            self.taken.address(),
            self.born.address(),
            self.from.address(),
            self.pairs.address(),
            self.pair_list.address(),
        ])
    }

    /// This frame's labels, if it is the second plane's turn.
    pub fn labels(&self) -> Option<&Memory<u16>> {
        self.labels.as_ref().filter(|_| self.turn == 1)
    }

    /// Where labels from before merging stand for the next frame, which alone reads them.
    pub fn unmerged_labels(&self) -> Option<&Memory<u16>> {
        self.merged.as_ref().map(|merged| &merged.labels)
    }

    /// The last frame's labels, before merging.
    fn last_labels(&self, work: &Work) -> u64 {
        let second = self.labels.as_ref().filter(|_| self.turn == 0);
        self.unmerged_labels().or(second).unwrap_or(&work.first_labels).address()
    }

    /// Names merged regions. `forest` has the addresses of the superpixels' parents, of the roots' merged labels and of the
    /// number of superpixels.
    pub fn name_merged(&self, work: &Work, forest: [u64; 3]) -> Result<()> {
        let Some(merged) = &self.merged else { return Ok(()) };
        let (now, last) = (self.turn, self.turn ^ 1);
        let names = MergedArgs([
            merged.numbers.address(),
            merged.tracks[last].address(),
            merged.tracks[now].address(),
            merged.totals.address(),
            merged.next_id.address(),
        ]);
        let (regions, counters, forest) = (work.regions.address(), work.counters(), Forest(forest));
        let (all, shape) = (self.addresses(work), self.args);
        let names = &mut args![regions, forest, counters, all, shape, names];
        // SAFETY: one entry for each of the most regions; the table of pairs has twice as many slots.
        unsafe { work.launch(&merged.kernel, (1, 1), IDENTIFY_THREADS, names) }
    }

    /// Where the first round of absorption leaves the main component of every cluster; 0 if nobody wants them.
    pub fn mains(&self) -> u64 {
        if self.args.in_slots == 0 { 0 } else { self.main.address() }
    }

    /// Finds the main component of every cluster where there is no such round. Components are joined by then.
    pub fn find_mains(&self, work: &Work, blocks: u32) -> Result<()> {
        if self.args.in_slots == 0 {
            return Ok(());
        }
        let (components, all, shape) = (work.components(), self.addresses(work), self.args);
        // SAFETY: the lists that the label kernel filled; one entry a cluster.
        unsafe { work.launch(&self.mains, (blocks, 1), TEMPORAL_THREADS, &mut args![components, all, shape]) }
    }
}

/// How the rounds of a warm frame begin, `Begin` of kernels/temporal.cuh, and their numbers. The second runs after a cut
/// only.
pub(crate) fn warm_rounds() -> impl Iterator<Item = (u32, u32)> {
    [(0, 0), (1, 1)].into_iter().chain((1..WARM_ROUNDS).map(|round| (2, round)))
}

/// Stages around the segmentation.
pub(crate) struct Temporal {
    begin: Kernel,
    shift: Kernel,
    track: Kernel,
    claim: Kernel,
    rehome: Kernel,
    own: Kernel,
    identify: Kernel,
    name: Kernel,
    claim_reach: u32,
    shifts: u32,
    begin_blocks: u32,
    identify_blocks: u32,
}

impl Temporal {
    pub fn new(cuda: &Cuda, plan: &crate::plan::Plan, temporal: &Plan) -> Result<Self> {
        let kernel = |name, stage| cuda.device.kernel("temporal", name, stage);
        let identity = |name| cuda.device.kernel("identity", name, "temporal/identify");
        let most = 4 * cuda.device.multiprocessors;
        let squares = temporal.thumbnail[0] * temporal.thumbnail[1];
        let points = super::track_points(&plan.grid, plan.frame.geometry);
        debug_assert!(points <= TRACK_POINTS as usize);
        // Two words a sample.
        let track_bytes = 8 * points * (TRACK_THREADS / 32) as usize;
        Ok(Self {
            begin: kernel("temporal_begin", "temporal/motion")?,
            shift: kernel("temporal_shift", "temporal/motion")?,
            track: kernel("temporal_track", "temporal/track")?.with_shared(track_bytes),
            claim: kernel("temporal_claim", "temporal/rehome")?,
            rehome: kernel("temporal_rehome", "temporal/rehome")?,
            own: identity("temporal_own")?,
            identify: identity("temporal_identify")?,
            name: identity("temporal_name")?,
            claim_reach: temporal.claim_reach,
            shifts: temporal.shifts() as u32,
            begin_blocks: squares.div_ceil(TEMPORAL_THREADS / 32).clamp(1, 2 * most),
            identify_blocks: (temporal.samples as u32).div_ceil(IDENTIFY_THREADS).clamp(1, most),
        })
    }
}

impl Temporal {
    /// Puts the launches of the stage on the stream.
    fn put_identify(&self, work: &Work) -> Result<()> {
        let Some(state) = &work.temporal else { return Ok(()) };
        let (all, grid, shape) = (state.addresses(work), state.grid, state.args);
        let (components, labels) = (work.components(), work.component_labels.address());
        let follows = u32::from(state.warm);
        let threads = TEMPORAL_THREADS;
        let slots = (state.cells.div_ceil(threads), 1);
        let all_of = (state.cells.max(shape.max_regions).div_ceil(threads), 1);
        // SAFETY: arrays have one entry for each cell or region as their names say; the table of pairs has twice as many
        // slots as there are samples.
        unsafe {
            if shape.in_slots != 0 {
                let own = &mut args![components, labels, all, grid, shape, follows];
                work.launch(&self.own, slots, threads, own)?;
            }
            work.launch(
                &self.identify,
                (self.identify_blocks, 1),
                IDENTIFY_THREADS,
                &mut args![components, labels, all, grid, shape, follows],
            )?;
            work.launch(&self.name, all_of, threads, &mut args![components, all, grid, shape, follows])
        }
    }
}

impl backend::Temporal<Cuda> for Temporal {
    fn begin(&mut self, work: &mut Work, _: &mut StageTimes) -> Result<()> {
        let Some(state) = &work.temporal else { return Ok(()) };
        let (all, grid, shape) = (state.addresses(work), state.grid, state.args);
        let (cells, warm) = (state.cells, u32::from(state.warm));
        let threads = TEMPORAL_THREADS;
        let blocks = (cells.div_ceil(threads), 1);
        // SAFETY: arrays have one entry for each cell, region, square or shift as their names say.
        unsafe {
            let begin_blocks = (self.begin_blocks, 1);
            work.launch(&self.begin, begin_blocks, threads, &mut args![all, grid, shape, warm])?;
            if !state.warm {
                return Ok(());
            }
            work.launch(&self.shift, (self.shifts + 1, 1), SHIFT_THREADS, &mut args![all, grid, shape])?;
            if shape.in_slots == 0 {
                return Ok(());
            }
            let regions = (cells.div_ceil(TRACK_THREADS / 32), 1);
            work.launch(&self.track, regions, TRACK_THREADS, &mut args![all, grid, shape])?;
            for round in 1..=CLAIM_ROUNDS as u32 {
                let blocks = (cells.div_ceil(CLAIM_THREADS), 1);
                work.launch(
                    &self.claim,
                    blocks,
                    CLAIM_THREADS,
                    &mut args![all, grid, round, self.claim_reach],
                )?;
            }
            work.launch(&self.rehome, blocks, threads, &mut args![all, grid])
        }
    }

    fn identify(&mut self, work: &mut Work, _: &mut (), _: &mut StageTimes) -> Result<()> {
        match &work.temporal {
            // Merging goes on from what is found here.
            Some(State { merged: Some(_), .. }) => self.put_identify(work),
            Some(_) => work.fork(|work| self.put_identify(work)),
            None => Ok(()),
        }
    }

    fn reset(&mut self, work: &mut Work) {
        if let Some(state) = &mut work.temporal {
            state.warm = false;
        }
    }

    fn next_id(&mut self, work: &Work) -> Result<u32> {
        let mut id = [1];
        if let Some(state) = &work.temporal {
            match &state.merged {
                Some(merged) => merged.next_id.read(&work.cuda, "next identity", 0, &mut id)?,
                None => state.state.read(&work.cuda, "next identity", NEXT_ID, &mut id)?,
            }
        }
        Ok(id[0])
    }

    fn set_next_id(&mut self, work: &mut Work, id: u32) -> Result<()> {
        match &mut work.temporal {
            Some(State { merged: Some(merged), .. }) => {
                merged.next_id.write(&work.cuda, "next identity", 0, &[id.max(1)])
            }
            Some(state) => state.state.write(&work.cuda, "next identity", NEXT_ID, &[id.max(1)]),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::TRACK_POINTS;

    /// The kernels divide by a multiplication that is exact below so many.
    #[test]
    fn surroundings_of_slots_have_few_samples() {
        for step in (2..200).chain([1000, 8192]) {
            for (width, height) in [(1, 1), (16, 7), (640, 480), (1921, 1081), (7680, 4320)] {
                let geometry = Geometry::new(width, height).unwrap();
                let points = track_points(&Grid::with_step(geometry, step), geometry);
                assert!(points <= TRACK_POINTS as usize, "{points} for {step} in {width}x{height}");
            }
        }
    }

    #[test]
    fn the_kernels_have_the_same_constants() {
        let header = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/temporal.cuh"));
        let defined = |name: &str| {
            let value =
                |line: &'static str| line.strip_prefix("#define ")?.strip_prefix(name)?.strip_prefix(' ');
            let value = header.lines().find_map(value).unwrap_or_else(|| panic!("no {name}"));
            value.trim_end_matches('u').parse::<u32>().unwrap()
        };
        for (name, value) in [
            ("PLACE", PLACE as u32),
            ("SAME", SAME),
            ("MOST_SPARED", MOST_SPARED),
            ("STILL", STILL),
            ("STAYS", u32::from(STAYS)),
            ("TRACK_MARGIN", TRACK_MARGIN),
            ("TRACK_NOISE", TRACK_NOISE),
            ("TRACK_FLAT", TRACK_FLAT),
            ("TRACK_FLAT_PX", TRACK_FLAT_PX),
            ("TRACK_HOP", TRACK_HOPS[0] as u32),
            ("CLAIM_ROUNDS", CLAIM_ROUNDS as u32),
            ("MATCH_ROUNDS", MATCH_ROUNDS),
            ("SHIFTS", (2 * REACH + 1).pow(2)),
            ("MAX_REGIONS", crate::post::connectivity::MAX_REGIONS as u32),
        ] {
            assert_eq!(defined(name), value, "{name}");
        }
    }
}
