// SPDX-License-Identifier: MPL-2.0
//! What a frame leaves to the next, on the CPU. What works on it is in `motion.rs`, `reassign.rs`, `predict.rs` and `identify.rs`.

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

/// A cluster as the next frame needs to know it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    /// Center in 1/16 px.
    pub position: [i32; 2],
    /// Own motion in 1/16 px a frame, less that of the picture.
    pub velocity: [i32; 2],
    /// Identity of its region, or 0.
    pub id: u32,
    /// Pixels of its largest component; 0 terminates its track.
    pub size: u32,
    /// Its region's label in the last frame.
    pub region: u32,
    /// Mean features, where a region without a cluster has taken the slot.
    pub reseeded: Option<[u32; 3]>,
}

/// What memory is for, in errors.
pub(super) const SLOTS: &str = "clusters over time";
/// Values of a label.
pub(super) const LABELS: usize = 1 << u16::BITS;
/// Rows whose samples one task looks at.
pub(super) const BAND: usize = 32;
/// Parts of the slots for each thread: regions are not equally large.
const PARTS: usize = 4;

const EMPTY: Slot = Slot { position: [0; 2], velocity: [0; 2], id: 0, size: 0, region: NONE, reseeded: None };

/// Where a cell's cluster comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    /// Slot in the last frame.
    pub slot: usize,
    /// How far it has moved, in 1/16 px.
    pub shift: [i32; 2],
    /// Where a region without a cluster took the slot: its mean features, and its centroid before it moved, in 1/16 px.
    pub reseeded: Option<([u32; 3], [i32; 2])>,
}

/// The largest component of a cluster: pixels and final label.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Largest {
    pub size: u32,
    pub label: u32,
}

/// Room for the work on identities; nothing in it lasts but the last tracks.
#[derive(Default)]
pub(super) struct Naming {
    /// The last frame's tracks.
    pub last: Array<Track>,
    /// Whether somebody has the identity of each of the last frame's regions.
    pub used: Array<bool>,
    /// The cluster that owns each region, with its size; 0 is none.
    pub owners: Array<u64>,
    /// Overlaps of regions without an identity with earlier ones, in samples.
    pub overlaps: Matching,
    /// What the samples of each label are counted for.
    pub kinds: Array<u8>,
    /// The same overlaps, of the samples of some rows each.
    pub bands: Vec<Array<Pair>>,
    /// The regions without a cluster.
    pub unowned: Array<u32>,
    /// Number, position and features of the samples of each of all regions; void for those with a cluster.
    pub sums: Array<[AtomicU64; 6]>,
    /// The largest claim on each slot.
    pub claims: Array<u64>,
    /// The slot that each region without a cluster wants, and its centroid.
    pub wanted: Array<Option<(usize, [i32; 2])>>,
}

/// Room for the samples of regions, see `samples.rs`.
#[derive(Default)]
pub(super) struct Samples {
    /// Of the regions of three rows of slots: what their samples add up to, and where in the cells around these are.
    pub sums: Array<u64>,
    pub codes: Array<u16>,
    /// Of the samples of a row: what each adds, and the column of cells that it is in.
    pub row: Array<u64>,
    pub cells: Array<u16>,
    /// Of one region, row in the upper half, and column.
    pub places: Array<u32>,
    /// Its pixels, and the last frame's features there; their channels, too, so that no shift unpacks them again.
    pub at: Array<i32>,
    pub features: Array<u32>,
    pub channels: [Array<u32>; 3],
}

/// Room for work on a frame; nothing in it lasts.
#[derive(Default)]
pub(super) struct Scratch {
    /// Squared difference of the thumbnails for each shift.
    pub differences: Array<u64>,
    /// Where the slot of each of the last frame's regions is.
    pub homes: Array<u32>,
    /// Samples of regions, for each part of the slots that is worked on at a time.
    pub samples: Vec<Samples>,
    /// The claims on each cell, round by round: of each round the largest, 0 where there was none, as before and after the stage.
    pub claims: Array<[AtomicU64; 1 + CLAIM_ROUNDS]>,
    /// The cell that each slot wants.
    pub wanted: Array<Option<i32>>,
}

/// What a frame leaves to the next.
pub(crate) struct State {
    pub(super) plan: Plan,
    pub(super) grid: Grid,
    /// Whether the last frame counts.
    pub(super) warm: bool,
    /// Whether this frame's clusters are those of the slots.
    pub(super) in_slots: bool,
    /// This frame's thumbnail, and the last one's.
    pub(super) thumbnails: [Array<u16>; 2],
    /// Motion of the picture in 1/16 px.
    pub(super) shift: [i32; 2],
    /// Whether no shift makes the last thumbnail like this one.
    pub(super) unlike: bool,
    pub(super) slots: Array<Slot>,
    /// Those of the last frame, while this one's are made.
    last_slots: Array<Slot>,
    /// For each cell, of this frame.
    pub(super) sources: Array<Option<Source>>,
    /// Motion of each cell in whole px.
    pub(super) moves: Array<[i32; 2]>,
    /// The last frame's region whose cluster each cell has now; or none.
    pub(super) regions: Array<u16>,
    /// The last frame's labels; rows without padding.
    pub(super) labels: Array<u16>,
    /// The last frame's features; rows without padding.
    pub features: Array<u32>,
    /// Motion of the picture since the slots moved with it, in 1/16 px.
    pub(super) drift: [i32; 2],
    /// The last frame's residual, or once this one has begun, what it would be of as many samples.
    residual: u64,
    /// Samples inside of the mask: of the last frame, or of this one once it has begun.
    inside: u64,
    pub(super) next_id: u32,
    /// Names of merged regions, where regions are merged: those are then the ones that a reader sees.
    pub merged: Option<Merged>,
    /// One for each cluster, from the stage `connectivity`.
    pub largest: Array<Largest>,
    /// One for each region.
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
            moves: memory::filled(SLOTS, cells, [0; 2])?,
            regions: memory::filled(SLOTS, cells, NO_LABEL)?,
            labels: memory::zeroed("last labels", pixels)?,
            features: memory::zeroed("last colors", pixels)?,
            drift: [0; 2],
            residual: 0,
            inside: temporal.samples,
            next_id: 1,
            merged: plan.merges().then(Merged::default),
            largest: Array::new(),
            tracks: Array::new(),
            scratch: Scratch {
                differences: memory::zeroed(SLOTS, temporal.shifts())?,
                samples: (0..PARTS * cpu.threads()).map(|_| Samples::default()).collect(),
                wanted: memory::filled(SLOTS, cells, None)?,
                ..Scratch::default()
            },
            naming: Naming {
                kinds: memory::zeroed(SLOTS, LABELS)?,
                bands: (0..plan.frame.geometry.height.div_ceil(BAND as u32)).map(|_| Array::new()).collect(),
                ..Naming::default()
            },
        })
    }

    /// Goes on with another plan; see [`Backend::change`](crate::backend::Backend::change).
    pub fn change(&mut self, plan: &Plan, growth: Option<f64>) {
        self.plan = plan.clone();
        self.residual = plan.carried_residual(self.residual, growth);
    }

    /// The discount for a predicted cluster, as part of its distance.
    pub fn inertia(&self) -> Inertia {
        self.plan.inertia(self.residual, self.inside)
    }

    /// One for each region that a reader sees.
    pub fn named(&self) -> &[Track] {
        self.merged.as_ref().map_or(&self.tracks, |merged| &merged.tracks)
    }

    /// What the frame's regions are told about their way.
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

    /// The next frame is the first.
    pub fn forget(&mut self) {
        (self.warm, self.in_slots) = (false, false);
    }

    /// Whether the next frame is a warm start.
    pub fn is_warm(&self) -> bool {
        self.warm
    }

    /// Where the cluster of each cell comes from; `None` seeds it. Only while warm.
    pub fn sources(&self) -> &[Option<Source>] {
        &self.sources
    }

    /// Whether the first warm round's residual tells of a cut; then nothing is carried over.
    pub fn cut(&mut self, residual: u64) -> bool {
        if self.plan.is_cut(residual, self.residual, self.inside, self.unlike) {
            self.warm = false;
        }
        !self.warm
    }

    /// Takes what the algorithm leaves: the center of each slot in 1/16 px, and the residual.
    pub fn finalize(&mut self, positions: impl Iterator<Item = [i32; 2]>, residual: u64) {
        std::mem::swap(&mut self.slots, &mut self.last_slots);
        let Self { slots, last_slots: last, sources, warm, .. } = self;
        slots.clear();
        slots.extend(positions.zip(sources).map(|(position, source)| {
            let Some(Source { slot, .. }) = source.filter(|_| *warm) else {
                return Slot { position, ..EMPTY };
            };
            Slot { position, reseeded: None, ..last[slot] }
        }));
        self.residual = residual;
        self.in_slots = true;
    }

    /// The identity that the next new region gets.
    pub fn next_id(&self) -> u32 {
        self.merged.as_ref().map_or(self.next_id, |merged| merged.next_id)
    }

    /// Gives identities from `id` on, which is not 0.
    pub fn set_next_id(&mut self, id: u32) {
        match &mut self.merged {
            Some(merged) => merged.next_id = id.max(1),
            None => self.next_id = id.max(1),
        }
    }
}
