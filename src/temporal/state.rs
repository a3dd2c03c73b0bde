// SPDX-License-Identifier: MPL-2.0
//! State that a frame passes on to the next, on the CPU. `motion.rs`, `reassign.rs`, `predict.rs` and `identify.rs`
//! work on it.

use std::sync::atomic::AtomicU64;

use super::matching::{Matching, Pair};
use super::merged::Merged;
use super::{CLAIM_ROUNDS, Inertia, POSITION_UNIT, Plan, Track};
use crate::color::OUTSIDE;
use crate::cpu::Cpu;
use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::grid::Grid;
use crate::image::NO_LABEL;
use crate::regions::Motion;

/// No slot, region or candidate.
pub(super) const NONE: u32 = u32::MAX;

/// A cluster, as the state passes it on to the next frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    /// Center in 1/16 px.
    pub position: [i32; 2],
    /// Own motion in 1/16 px per frame, relative to that of the picture.
    pub velocity: [i32; 2],
    /// Identity of its region, or 0.
    pub id: u32,
    /// Pixels of its largest component; 0 terminates its track.
    pub size: u32,
    /// Its region's label in the last frame.
    pub region: u32,
    /// Mean features, if a region without a cluster has been assigned to the slot.
    pub reseeded: Option<[u32; 3]>,
}

/// Name of the clusters in errors about memory.
pub(super) const SLOTS: &str = "clusters over time";
/// Number of values of a label.
pub(super) const LABELS: usize = 1 << u16::BITS;
/// Rows per task that samples.
pub(super) const BAND: usize = 32;
/// Tasks per thread over the slots, because regions differ in size.
const PARTS: usize = 4;

const EMPTY: Slot = Slot { position: [0; 2], velocity: [0; 2], id: 0, size: 0, region: NONE, reseeded: None };

/// Origin of a cell's cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClusterSource {
    /// Slot in the last frame.
    pub slot: usize,
    /// Its motion in 1/16 px.
    pub shift: [i32; 2],
    /// Mean features, and the centroid before the motion in 1/16 px, if a region without a cluster had been assigned to
    /// the slot.
    pub reseeded: Option<([u32; 3], [i32; 2])>,
}

/// A region of the last frame that is a part of a cluster: see "Parts" in `temporal/mod.rs`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub region: u16,
    /// From 1.
    pub number: u16,
}

/// The largest component of a cluster: pixels and final label.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Largest {
    pub size: u32,
    pub label: u32,
}

/// Scratch memory for identities, reused between frames. Only `last` carries data from one to the next.
#[derive(Default)]
pub(super) struct Naming {
    /// The last frame's tracks.
    pub last: Array<Track>,
    /// True for each of the last frame's regions whose identity is in use.
    pub used: Array<bool>,
    /// The cluster that owns each region, with its size; 0 is none.
    pub owners: Array<u64>,
    /// Overlaps of regions without an identity with earlier ones, in samples.
    pub overlaps: Matching,
    /// Kinds of measurement that the samples of each label are for.
    pub kinds: Array<u8>,
    /// Parts of `overlaps`, each of the samples of some rows.
    pub bands: Vec<Array<Pair>>,
    /// The regions without a cluster.
    pub unowned: Array<u32>,
    /// Number, position and features of the samples of each region; void for regions with a cluster.
    pub sums: Array<[AtomicU64; 6]>,
    /// The largest claim on each slot.
    pub claims: Array<u64>,
    /// The slot that each region without a cluster wants, and its centroid.
    pub wanted: Array<Option<(usize, [i32; 2])>>,
}

/// Scratch memory for the samples of regions, see `samples.rs`.
#[derive(Default)]
pub(super) struct Samples {
    /// Sums over the samples of the regions of three rows of slots, and the positions of these samples.
    pub sums: Array<u64>,
    pub codes: Array<u16>,
    /// Samples of the current row: the word that each adds to a sum, and its column of cells.
    pub row: Array<u64>,
    pub cells: Array<u16>,
    /// Positions of the current region's samples: row in the upper half, and column.
    pub positions: Array<u32>,
    /// Index of its pixels, and the last frame's features there, also unpacked by channel so that trying a shift does
    /// not unpack them again.
    pub at: Array<i32>,
    pub features: Array<u32>,
    pub channels: [Array<u32>; 3],
}

/// Scratch memory of a frame, reused between frames.
#[derive(Default)]
pub(super) struct Scratch {
    /// Squared difference of the thumbnails for each shift.
    pub differences: Array<u64>,
    /// Slot of each of the last frame's regions.
    pub slot_cells: Array<u32>,
    /// Samples of regions, for each task over the slots.
    pub samples: Vec<Samples>,
    /// Largest claim on each cell in each round; 0 if there is none, as between frames.
    pub claims: Array<[AtomicU64; 1 + CLAIM_ROUNDS]>,
    /// The cell that each slot wants.
    pub wanted: Array<Option<i32>>,
}

/// State that a frame passes on to the next.
pub(crate) struct State {
    pub(super) plan: Plan,
    pub(super) grid: Grid,
    /// True if the last frame is continued.
    pub(super) warm: bool,
    /// True if this frame's clusters continue those of the slots.
    pub(super) in_slots: bool,
    /// This frame's thumbnail, and the last one's.
    pub(super) thumbnails: [Array<u16>; 2],
    /// Motion of the picture in 1/16 px.
    pub(super) shift: [i32; 2],
    /// True if no shift makes the last thumbnail like this one.
    pub(super) unlike: bool,
    pub(super) slots: Array<Slot>,
    /// Slots of the last frame, while this one's are made.
    last_slots: Array<Slot>,
    /// Origin of each cell's cluster in this frame.
    pub(super) sources: Array<Option<ClusterSource>>,
    /// True for each cell whose pixels are predicted for no cluster: it has none, and had none with a region in the last frame.
    pub(super) released: Array<bool>,
    /// Motion of each cell in whole px.
    pub(super) moves: Array<[i32; 2]>,
    /// Region of the last frame whose cluster each cell has now, or `NO_LABEL`.
    pub(super) regions: Array<u16>,
    /// The last frame's part with each number of each slot: samples, and its region; 0 is none.
    pub(super) part_claims: Array<u64>,
    /// Parts of the clusters that cells have now, by cell, and where each cell's begin; then the end.
    pub(super) parts: Array<Part>,
    pub(super) parts_from: Array<u32>,
    /// The last frame's labels; rows without padding.
    pub(super) labels: Array<u16>,
    /// The last frame's features; rows without padding.
    pub features: Array<u32>,
    /// The last frame's residual. Once this frame has begun, scaled to its number of samples.
    residual: u64,
    /// Samples inside of the mask: of the last frame or, once it has begun, of this one.
    inside: u64,
    pub(super) next_id: u32,
    /// Tracks of merged regions, which are then the ones that readers get.
    pub merged: Option<Merged>,
    /// Largest component of each cluster, from the stage `connectivity`.
    pub largest: Array<Largest>,
    /// The cluster that each region would be a part of, from there, too.
    pub part_clusters: Array<u16>,
    /// Track of each region.
    pub tracks: Array<Track>,
    pub(super) scratch: Scratch,
    pub(super) naming: Naming,
}

impl State {
    pub fn new(cpu: &Cpu, plan: &crate::plan::Plan, temporal: &Plan) -> Result<Self> {
        let (grid, cells) = (plan.grid, plan.grid.cells());
        let squares = (temporal.thumbnail[0] * temporal.thumbnail[1]) as usize;
        let pixels = plan.frame.geometry.pixels();
        Ok(Self {
            plan: temporal.clone(),
            grid,
            warm: false,
            in_slots: false,
            thumbnails: [memory::zeroed(SLOTS, squares)?, memory::zeroed(SLOTS, squares)?],
            shift: [0; 2],
            unlike: false,
            slots: memory::filled(SLOTS, cells, EMPTY)?,
            last_slots: memory::filled(SLOTS, cells, EMPTY)?,
            sources: memory::filled(SLOTS, cells, None)?,
            released: memory::filled(SLOTS, cells, false)?,
            moves: memory::filled(SLOTS, cells, [0; 2])?,
            regions: memory::filled(SLOTS, cells, NO_LABEL)?,
            part_claims: memory::filled(SLOTS, cells * temporal.parts as usize, 0)?,
            parts: Array::new(),
            parts_from: memory::filled(SLOTS, cells + 1, 0)?,
            labels: memory::zeroed("last labels", pixels)?,
            features: memory::zeroed("last colors", pixels)?,
            residual: 0,
            inside: temporal.samples,
            next_id: 1,
            merged: plan.merges().then(Merged::default),
            largest: Array::new(),
            part_clusters: Array::new(),
            tracks: Array::new(),
            scratch: Scratch {
                differences: memory::zeroed(SLOTS, temporal.shifts())?,
                samples: (0..PARTS * cpu.threads()).map(|_| Samples::default()).collect(),
                wanted: memory::filled(SLOTS, cells, None)?,
                ..Scratch::default()
            },
            naming: Naming {
                kinds: memory::zeroed(SLOTS, LABELS)?,
                bands: memory::collected(
                    "bands of rows",
                    (0..plan.frame.geometry.height as usize).step_by(BAND).map(|_| Array::new()),
                )?,
                ..Naming::default()
            },
        })
    }

    /// Continues with another plan; see [`Backend::change`](crate::backend::Backend::change).
    pub fn change(&mut self, plan: &Plan, growth: Option<f64>) {
        self.plan = plan.clone();
        self.residual = plan.carried_residual(self.residual, growth);
    }

    /// Discounts on the distances to predicted clusters.
    pub fn inertia(&self) -> Inertia {
        self.plan.inertia(self.residual, self.inside)
    }

    /// Tracks of the regions that readers get.
    pub fn named(&self) -> &[Track] {
        self.merged.as_ref().map_or(&self.tracks, |merged| &merged.tracks)
    }

    /// Motion records of the frame's regions.
    pub fn motion(&self) -> impl Iterator<Item = Motion> {
        self.named().iter().map(|track| Motion {
            velocity: track.velocity.map(|v| v as f32 / POSITION_UNIT as f32),
            age: track.age,
        })
    }

    /// Counts the samples inside of the frame's mask.
    pub(super) fn count_inside(&mut self, features: &[u32]) {
        let Self { plan, grid, residual, inside, .. } = self;
        if !plan.masked {
            return;
        }
        let (width, height) = (grid.geometry.width as usize, grid.geometry.height as usize);
        let row =
            |y: usize| grid.samples(&(0..width)).filter(move |x| features[y * width + x] != OUTSIDE).count();
        let now = grid.samples(&(0..height)).map(row).sum::<usize>() as u64;
        *residual = plan.residual_of(*residual, *inside, now);
        *inside = now;
    }

    /// Discards the last frame, so that the next one is the first.
    pub fn forget(&mut self) {
        (self.warm, self.in_slots) = (false, false);
    }

    /// Returns true if the next frame is a warm start.
    pub fn is_warm(&self) -> bool {
        self.warm
    }

    /// Least pixels of a component of that cluster that is kept although it is below `min_region`. Valid between
    /// [`Self::finalize`] and the frame's identities.
    pub fn least_kept(&self, cluster: usize, min_region: u32) -> u32 {
        if !self.warm {
            return min_region;
        }
        match self.sources.get(cluster) {
            None => super::least_kept(None, min_region),
            Some(None) => min_region,
            Some(Some(source)) => super::least_kept(Some(self.last_slots[source.slot].size), min_region),
        }
    }

    /// Origin of each cell's cluster; `None` seeds it. Valid during a warm start.
    pub fn sources(&self) -> &[Option<ClusterSource>] {
        &self.sources
    }

    /// Returns true if the residual of the first warm round tells of a cut. Then no cluster is continued.
    pub fn cut(&mut self, residual: u64) -> bool {
        if self.plan.is_cut(residual, self.residual, self.inside, self.unlike) {
            self.warm = false;
        }
        !self.warm
    }

    /// Stores the algorithm's results: the center of each slot in 1/16 px, and the residual.
    pub fn finalize(&mut self, positions: impl Iterator<Item = [i32; 2]>, residual: u64) {
        std::mem::swap(&mut self.slots, &mut self.last_slots);
        let Self { slots, last_slots: last, sources, warm, .. } = self;
        slots.clear();
        slots.extend(positions.zip(sources).map(|(position, source)| {
            let Some(ClusterSource { slot, .. }) = source.filter(|_| *warm) else {
                return Slot { position, ..EMPTY };
            };
            Slot { position, reseeded: None, ..last[slot] }
        }));
        self.residual = residual;
        self.in_slots = true;
    }

    /// The identity of the next new region.
    pub fn next_id(&self) -> u32 {
        self.merged.as_ref().map_or(self.next_id, |merged| merged.next_id)
    }

    /// Sets the next identity, which is not 0.
    pub fn set_next_id(&mut self, id: u32) {
        match &mut self.merged {
            Some(merged) => merged.next_id = id.max(1),
            None => self.next_id = id.max(1),
        }
    }
}
