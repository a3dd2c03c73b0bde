// SPDX-License-Identifier: MPL-2.0
//! What lasts from frame to frame, on the CPU: the reference. Stage `temporal/rehome`; `temporal/motion` and `temporal/track` are in
//! `motion.rs`, predictions in `look_back.rs`, `temporal/identify` in `identify.rs`.

use super::identify::Naming;
use super::merged::Merged;
use super::motion::Samples;
use super::{CLAIM_ROUNDS, Inertia, PLACE, Plan, Track, whole_px};
use crate::algo::grid::Grid;
use crate::backend::{self, StageTimes};
use crate::cpu::memory::Array;
use crate::cpu::{Cpu, Work, memory};
use crate::error::Result;
use crate::image::Labels;
use crate::regions::Motion;

/// No slot, region or candidate.
pub(super) const NONE: u32 = u32::MAX;

/// A cluster as the next frame needs to know it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    /// Center in 1/16 px.
    pub place: [i32; 2],
    /// Own motion in 1/16 px a frame, less that of the picture.
    pub velocity: [i32; 2],
    /// Identity of its region, or 0.
    pub id: u32,
    /// Pixels of its main component; 0 ends it.
    pub size: u32,
    /// Its region's label in the last frame.
    pub region: u32,
    /// Mean features, where a region without a cluster has taken the slot.
    pub planted: Option<[u32; 3]>,
}

/// What memory is for, in errors.
const SLOTS: &str = "clusters over time";
/// Parts of the slots for each thread: regions are not equally large.
const PARTS: usize = 4;

const EMPTY: Slot = Slot { place: [0; 2], velocity: [0; 2], id: 0, size: 0, region: NONE, planted: None };

/// Where a cell's cluster comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    /// Slot in the last frame.
    pub slot: usize,
    /// How far it has moved, in 1/16 px.
    pub shift: [i32; 2],
    /// Where a region without a cluster took the slot: its mean features, and its centroid before it moved, in 1/16 px.
    pub planted: Option<([u32; 3], [i32; 2])>,
}

/// The main component of a cluster: pixels and final label.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Main {
    pub size: u32,
    pub label: u32,
}

/// Room for work on a frame; nothing in it lasts.
#[derive(Default)]
pub(super) struct Scratch {
    /// Squared difference of the thumbnails for each shift.
    pub differences: Array<u64>,
    /// Where the slot of each of the last frame's regions is: column, and row in the upper half; or none.
    pub homes: Array<u32>,
    /// Samples of regions, for each part of the slots that is worked on at a time.
    pub samples: Vec<Samples>,
    /// The claims on each cell, round by round.
    claims: Array<[u64; 1 + CLAIM_ROUNDS]>,
    /// The cell that each slot wants.
    wanted: Array<Option<i32>>,
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
    sources: Array<Option<Source>>,
    /// Motion of each cell in whole px.
    pub(super) moves: Array<[i32; 2]>,
    /// Cell that each of the last frame's regions has its cluster in: column, and row in the upper half; or none.
    pub(super) cells: Array<u32>,
    /// The last frame's labels; rows without padding.
    pub(super) labels: Array<u16>,
    /// The last frame's features; rows without padding.
    pub features: Array<u32>,
    /// Motion of the picture since the slots moved with it, in 1/16 px.
    pub(super) drift: [i32; 2],
    /// The last frame's residual.
    residual: u64,
    pub(super) next_id: u32,
    /// Names of merged regions, where regions are merged: those are then the ones that a reader sees.
    pub merged: Option<Merged>,
    /// One for each cluster, from the stage `connectivity`.
    pub mains: Array<Main>,
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
            cells: Array::new(),
            labels: memory::zeroed("last labels", pixels)?,
            features: memory::zeroed("last colors", pixels)?,
            drift: [0; 2],
            residual: 0,
            next_id: 1,
            merged: plan.merge.map(|_| Merged::default()),
            mains: Array::new(),
            tracks: Array::new(),
            scratch: Scratch {
                differences: memory::zeroed(SLOTS, temporal.shifts())?,
                homes: Array::new(),
                samples: (0..PARTS * cpu.threads()).map(|_| Samples::default()).collect(),
                ..Scratch::default()
            },
            naming: Naming::default(),
        })
    }

    /// Goes on with another plan; see [`Backend::change`](crate::backend::Backend::change).
    pub fn change(&mut self, plan: &Plan, growth: Option<f64>) {
        self.plan = plan.clone();
        self.residual = plan.carried_residual(self.residual, growth);
    }

    /// Share of the distance that a predicted cluster is spared.
    pub fn inertia(&self) -> Inertia {
        self.plan.inertia(self.residual)
    }

    /// One for each region that a reader sees.
    pub fn named(&self) -> &[Track] {
        self.merged.as_ref().map_or(&self.tracks, |merged| &merged.tracks)
    }

    /// What the frame's regions are told about their way.
    pub fn motion(&self) -> impl Iterator<Item = Motion> {
        self.named()
            .iter()
            .map(|track| Motion { velocity: track.velocity.map(|v| v as f32 / PLACE as f32), age: track.age })
    }

    /// The next frame is the first.
    pub fn forget(&mut self) {
        (self.warm, self.in_slots) = (false, false);
    }

    /// Whether clusters go on from the last frame.
    pub fn is_warm(&self) -> bool {
        self.warm
    }

    /// Where the cluster of each cell comes from; `None` seeds it. Only while warm.
    pub fn sources(&self) -> &[Option<Source>] {
        &self.sources
    }

    /// Whether the first warm round's residual tells of a cut; then nothing is carried over.
    pub fn cut(&mut self, residual: u64) -> bool {
        if self.plan.is_cut(residual, self.residual, self.unlike) {
            self.warm = false;
        }
        !self.warm
    }

    /// Takes what the algorithm leaves: the center of each slot in 1/16 px, and the residual.
    pub fn settle(&mut self, places: impl Iterator<Item = [i32; 2]>, residual: u64) {
        std::mem::swap(&mut self.slots, &mut self.last_slots);
        let Self { slots, last_slots: last, sources, warm, .. } = self;
        slots.clear();
        slots.extend(places.zip(sources).map(|(place, source)| {
            let Some(Source { slot, .. }) = source.filter(|_| *warm) else { return Slot { place, ..EMPTY } };
            Slot { place, planted: None, ..last[slot] }
        }));
        self.residual = residual;
        self.in_slots = true;
    }

    /// Moves every cluster into the cell that it is over.
    fn rehome(&mut self) -> Result<()> {
        let Self { plan, grid, slots, sources, moves, cells, shift, drift, scratch, .. } = self;
        let (nx, ny, step) = (grid.nx as i32, grid.ny as i32, grid.step as i32);
        let (width, height) = (grid.geometry.width as i32, grid.geometry.height as i32);
        let center = |cell: i32| {
            let (columns, rows) = (grid.columns((cell % nx) as usize), grid.rows((cell / nx) as usize));
            [columns, rows].map(|r| PLACE / 2 * (r.start + r.end - 1) as i32)
        };
        // Whole cells that all slots move by.
        let along = [0, 1].map(|i| {
            drift[i] += shift[i];
            let cell = PLACE * step;
            let cells = (2 * drift[i] + cell).div_euclid(2 * cell);
            drift[i] -= cells * cell;
            cells
        });
        let stays = 9 * PLACE * step / 10;
        // The largest claim on each cell, round by round: size, then the lower slot.
        let Scratch { claims, wanted, .. } = scratch;
        memory::refill(claims, SLOTS, slots.len(), [0; 1 + CLAIM_ROUNDS])?;
        memory::refill(wanted, SLOTS, slots.len(), None)?;
        let claim = |slot: usize, size: u32| u64::from(size) << 32 | u64::from(NONE - slot as u32);
        let place = |slot: &Slot| [0, 1].map(|i| slot.place[i] + shift[i] + slot.velocity[i]);
        for (h, slot) in slots.iter().enumerate().filter(|(_, slot)| slot.size > 0) {
            let at = place(slot);
            if at[0] < 0 || at[1] < 0 || at[0] > PLACE * (width - 1) || at[1] > PLACE * (height - 1) {
                continue;
            }
            let (x, y) = (h as i32 % nx + along[0], h as i32 / nx + along[1]);
            let inside = x >= 0 && y >= 0 && x < nx && y < ny;
            let own = if inside { center(y * nx + x) } else { [0; 2] };
            let cell = if inside && (0..2).all(|i| (at[i] - own[i]).abs() <= stays) {
                y * nx + x
            } else {
                (at[1] / PLACE / step).min(ny - 1) * nx + (at[0] / PLACE / step).min(nx - 1)
            };
            wanted[h] = Some(cell);
            let best = &mut claims[cell as usize][0];
            *best = (*best).max(claim(h, slot.size));
        }
        for round in 1..=CLAIM_ROUNDS {
            for (h, slot) in slots.iter().enumerate() {
                let Some(cell) = wanted[h] else { continue };
                if (0..round).any(|r| claims[cell as usize][r] == claim(h, slot.size)) {
                    continue;
                }
                let at = place(slot);
                let (gx, gy) = (cell % nx, cell / nx);
                let free = (gy - 2..=gy + 2)
                    .flat_map(|y| (gx - 2..=gx + 2).map(move |x| (x, y)))
                    .filter(|&(x, y)| x >= 0 && y >= 0 && x < nx && y < ny)
                    .map(|(x, y)| y * nx + x)
                    .filter(|&c| claims[c as usize][..round].iter().all(|&claim| claim == 0))
                    .filter(|&c| (0..2).all(|i| at[i].abs_diff(center(c)[i]) <= plan.claim_reach));
                let nearest = free.min_by_key(|&c| {
                    let center = center(c);
                    let d = [0, 1].map(|i| i64::from(at[i] - center[i]));
                    (d[0] * d[0] + d[1] * d[1], c)
                });
                wanted[h] = nearest;
                if let Some(c) = nearest {
                    let best = &mut claims[c as usize][round];
                    *best = (*best).max(claim(h, slot.size));
                }
            }
        }
        memory::refill(cells, SLOTS, self.tracks.len(), NONE)?;
        for (c, claims) in claims.iter().enumerate() {
            let winner =
                claims.iter().find(|&&claim| claim != 0).map(|&claim| (NONE - claim as u32) as usize);
            sources[c] = winner.map(|h| {
                if slots[h].region != NONE {
                    cells[slots[h].region as usize] = (c as i32 / nx) as u32 * 65536 + (c as i32 % nx) as u32;
                }
                Source {
                    slot: h,
                    shift: [0, 1].map(|i| shift[i] + slots[h].velocity[i]),
                    planted: slots[h].planted.map(|color| (color, slots[h].place)),
                }
            });
            let motion = sources[c].map_or(*shift, |source| source.shift);
            moves[c] = whole_px(motion);
        }
        Ok(())
    }
}

/// Stages around the segmentation.
pub(crate) struct Temporal {
    cpu: Cpu,
}

impl Temporal {
    pub fn new(cpu: &Cpu) -> Self {
        Self { cpu: cpu.clone() }
    }
}

impl backend::Temporal<Cpu> for Temporal {
    fn begin(&mut self, work: &mut Work, times: &mut StageTimes) -> Result<()> {
        let Work { features, temporal: Some(state), .. } = work else { return Ok(()) };
        times.time("temporal/motion", || {
            state.take_thumbnail(&self.cpu, features);
            (state.shift, state.unlike) = ([0; 2], false);
            if state.warm {
                state.estimate_shift(&self.cpu);
                // Without clusters there is no residual to ask.
                state.warm = state.plan.in_slots || !state.unlike;
            }
        });
        if state.warm {
            times.time("temporal/track", || state.track(&self.cpu, features))?;
            times.time("temporal/rehome", || state.rehome())?;
        }
        Ok(())
    }

    fn identify(&mut self, work: &mut Work, labels: &mut Labels<'_>, times: &mut StageTimes) -> Result<()> {
        let Work { temporal: Some(state), count, features, .. } = work else { return Ok(()) };
        times.time("temporal/identify", || state.identify(features, labels, *count as usize))
    }

    fn reset(&mut self, work: &mut Work) {
        if let Some(state) = &mut work.temporal {
            state.forget();
        }
    }

    fn next_id(&mut self, work: &Work) -> Result<u32> {
        let next = |state: &State| state.merged.as_ref().map_or(state.next_id, |merged| merged.next_id);
        Ok(work.temporal.as_deref().map_or(1, next))
    }

    fn set_next_id(&mut self, work: &mut Work, id: u32) -> Result<()> {
        if let Some(state) = &mut work.temporal {
            match &mut state.merged {
                Some(merged) => merged.next_id = id.max(1),
                None => state.next_id = id.max(1),
            }
        }
        Ok(())
    }
}
