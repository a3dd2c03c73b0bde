// SPDX-License-Identifier: MPL-2.0
//! What lasts from frame to frame, on the CPU: the reference. Stages `temporal/motion`, `temporal/rehome`,
//! `temporal/identify`.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::merged::Merged;
use super::{
    CLAIM_ROUNDS, MATCH_ROUNDS, PLACE, Plan, SAME, STILL, TRACK_FLAT, TRACK_FLAT_PX, TRACK_HOPS,
    TRACK_MARGIN, TRACK_NOISE, Track, track_step, whole_px,
};
use crate::algo::grid::Grid;
use crate::backend::{self, StageTimes};
use crate::color::unpack;
use crate::cpu::{Cpu, Work, check_labels};
use crate::error::Result;
use crate::image::Labels;
use crate::regions::Motion;

/// No slot, region or candidate.
const NONE: u32 = u32::MAX;
/// A pixel that is predicted to belong to none of its candidates.
pub(crate) const NO_CANDIDATE: u8 = u8::MAX;
/// Bit of a predicted candidate whose pixel looks as it did.
pub(crate) const SURE: u8 = 16;

/// Sum over the channels of the absolute difference of two features.
fn feature_difference(a: u32, b: u32) -> u32 {
    let (a, b) = (unpack(a), unpack(b));
    (0..3).map(|j| a[j].abs_diff(b[j])).sum()
}

/// A cluster as the next frame needs to know it.
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// Center in 1/16 px.
    place: [i32; 2],
    /// Own motion in 1/16 px a frame, less that of the picture.
    velocity: [i32; 2],
    /// Identity of its region, or 0.
    id: u32,
    /// Pixels of its main component; 0 ends it.
    size: u32,
    /// Its region's label in the last frame.
    region: u32,
    /// Mean features, where a region without a cluster has taken the slot.
    planted: Option<[u32; 3]>,
}

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

/// What a frame leaves to the next.
pub(crate) struct State {
    plan: Plan,
    grid: Grid,
    /// Whether the last frame counts.
    warm: bool,
    /// Whether this frame's clusters are those of the slots.
    in_slots: bool,
    /// This frame's thumbnail, and the last one's.
    thumbnails: [Vec<u16>; 2],
    /// Motion of the picture in 1/16 px.
    shift: [i32; 2],
    /// Whether no shift makes the last thumbnail like this one.
    unlike: bool,
    slots: Vec<Slot>,
    /// For each cell, of this frame.
    sources: Vec<Option<Source>>,
    /// Motion of each cell in whole px.
    moves: Vec<[i32; 2]>,
    /// Cell that each of the last frame's regions has its cluster in: column, and row in the upper half; or none.
    cells: Vec<u32>,
    /// The last frame's labels; rows without padding.
    labels: Vec<u16>,
    /// The last frame's features; rows without padding.
    pub features: Vec<u32>,
    /// Motion of the picture since the slots moved with it, in 1/16 px.
    drift: [i32; 2],
    /// The last frame's residual.
    residual: u64,
    next_id: u32,
    /// Names of merged regions, where regions are merged: those are then the ones that a reader sees.
    pub merged: Option<Merged>,
    /// One for each cluster, from the stage `connectivity`.
    pub mains: Vec<Main>,
    /// One for each region.
    pub tracks: Vec<Track>,
}

impl State {
    pub fn new(plan: &crate::plan::Plan, temporal: &Plan) -> Self {
        let (grid, cells) = (plan.grid, plan.grid.cells());
        let squares = (temporal.thumbnail[0] * temporal.thumbnail[1]) as usize;
        Self {
            plan: temporal.clone(),
            grid,
            warm: false,
            in_slots: false,
            thumbnails: [vec![0; squares], vec![0; squares]],
            shift: [0; 2],
            unlike: false,
            slots: vec![EMPTY; cells],
            sources: vec![None; cells],
            moves: vec![[0; 2]; cells],
            cells: Vec::new(),
            labels: vec![0; plan.frame.geometry.pixels()],
            features: vec![0; plan.frame.geometry.pixels()],
            drift: [0; 2],
            residual: 0,
            next_id: 1,
            merged: plan.merge.map(|_| Merged::default()),
            mains: Vec::new(),
            tracks: Vec::new(),
        }
    }

    /// Share of the distance that a predicted cluster is spared.
    pub fn plan(&self) -> &Plan {
        &self.plan
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
        let Self { slots, sources, warm, .. } = self;
        let last = std::mem::take(slots);
        slots.extend(places.zip(sources).map(|(place, source)| {
            let Some(Source { slot, .. }) = source.filter(|_| *warm) else { return Slot { place, ..EMPTY } };
            Slot { place, planted: None, ..last[slot] }
        }));
        self.residual = residual;
        self.in_slots = true;
    }

    /// Writes which candidate each of some pixels in row `y` of a cell is predicted to belong to.
    pub fn predict(
        &self,
        (gx, gy): (usize, usize),
        y: usize,
        columns: impl Iterator<Item = usize>,
        features: &[u32],
        out: &mut [u8],
    ) {
        if !self.warm {
            out.fill(NO_CANDIDATE);
            return;
        }
        let (nx, ny) = (self.grid.nx as usize, self.grid.ny as usize);
        let (width, height) = (self.grid.geometry.width as i32, self.grid.geometry.height as i32);
        let [move_x, move_y] = self.moves[gy * nx + gx];
        let row = (y as i32 - move_y).clamp(0, height - 1) as usize;
        let before = &self.features[row * width as usize..][..width as usize];
        let now = &features[y * width as usize..][..width as usize];
        let row = &self.labels[row * width as usize..][..width as usize];
        let (left, top) = (gx.saturating_sub(1) as u32, gy.saturating_sub(1) as u32);
        let (across, down) = ((gx + 2).min(nx) as u32 - left, (gy + 2).min(ny) as u32 - top);
        let (mut known, mut candidate) = (None, NO_CANDIDATE);
        for (x, out) in columns.zip(out) {
            let from = (x as i32 - move_x).clamp(0, width - 1) as usize;
            let still = y * width as usize + x;
            let (label, difference) = match feature_difference(now[x], self.features[still]) {
                small if small < STILL => (self.labels[still], small),
                _ => (row[from], feature_difference(now[x], before[from])),
            };
            if known != Some(label) {
                let cell = self.cells[usize::from(label)];
                let (dx, dy) = ((cell & 0xffff).wrapping_sub(left), (cell >> 16).wrapping_sub(top));
                candidate = if dx < across && dy < down { (dy * across + dx) as u8 } else { NO_CANDIDATE };
                known = Some(label);
            }
            let sure = difference <= SAME && candidate != NO_CANDIDATE;
            *out = if sure { candidate | SURE } else { candidate };
        }
    }

    fn take_thumbnail(&mut self, cpu: &Cpu, features: &[u32]) {
        self.thumbnails.swap(0, 1);
        let (side, columns) = (self.plan.square as usize, self.plan.thumbnail[0] as usize);
        let width = self.grid.geometry.width as usize;
        if columns == 0 {
            return;
        }
        let thumbnail = &mut self.thumbnails[0];
        cpu.run(|| {
            thumbnail.par_chunks_mut(columns).enumerate().for_each(|(v, row)| {
                let mut sums = vec![0u32; columns];
                for y in v * side..(v + 1) * side {
                    let pixels = &features[y * width..][..columns * side];
                    for (sum, square) in sums.iter_mut().zip(pixels.chunks_exact(side)) {
                        *sum += square.iter().map(|&f| unpack(f)[0]).sum::<u32>();
                    }
                }
                for (mean, sum) in row.iter_mut().zip(sums) {
                    *mean = (sum / (side * side) as u32) as u16;
                }
            });
        });
    }

    /// The motion of the picture.
    fn estimate_shift(&mut self, cpu: &Cpu) {
        let [now, last] = &self.thumbnails;
        let [columns, rows] = self.plan.thumbnail.map(|side| side as i32);
        let [reach_x, reach_y] = self.plan.reach.map(|reach| reach as i32);
        let across = 2 * reach_x + 1;
        let difference = |index: i32| -> u64 {
            let (dx, dy) = (index % across - reach_x, index / across - reach_y);
            let mut sum = 0;
            for v in reach_y..rows - reach_y {
                let at = |u: i32, v: i32| (v * columns + u) as usize;
                let span = (columns - 2 * reach_x).max(0) as usize;
                let here = &now[at(reach_x, v)..][..span];
                let there = &last[at(reach_x - dx, v - dy)..][..span];
                let row: u64 = here.iter().zip(there).map(|(&a, &b)| u64::from(a.abs_diff(b)).pow(2)).sum();
                sum += row;
            }
            sum
        };
        let shifts = self.plan.shifts() as i32;
        let differences: Vec<u64> = cpu.run(|| (0..shifts).into_par_iter().map(difference).collect());
        self.shift = super::shift_of(&self.plan, &differences);
        let (mut count, mut sum, mut squares) = (0u64, 0u64, 0u64);
        for v in reach_y..rows - reach_y {
            for &mean in &now[(v * columns + reach_x) as usize..][..(columns - 2 * reach_x).max(0) as usize] {
                count += 1;
                sum += u64::from(mean);
                squares += u64::from(mean).pow(2);
            }
        }
        let least = differences.iter().copied().min().unwrap_or(0);
        let [part, noise] = self.plan.unlike.map(u64::from);
        self.unlike = 8 * least * count > part * (count * squares - sum * sum) + 8 * noise * count * count;
    }

    /// Where the pixels of every slot's region went.
    fn track(&mut self, cpu: &Cpu, features: &[u32]) {
        let Self { grid, slots, labels, shift, features: last, .. } = self;
        let (nx, ny) = (grid.nx as usize, grid.ny as usize);
        let (width, height) = (grid.geometry.width as i32, grid.geometry.height as i32);
        let step = track_step(grid);
        let (grid, labels, last, shift) = (&*grid, &*labels, &*last, *shift);
        let track = |(k, slot): (usize, &mut Slot)| {
            let (gx, gy) = (k % nx, k / nx);
            let columns = grid.columns(gx.saturating_sub(1)).start..grid.columns((gx + 1).min(nx - 1)).end;
            let rows = grid.rows(gy.saturating_sub(1)).start..grid.rows((gy + 1).min(ny - 1)).end;
            let mut points = Vec::new();
            for y in (rows.start.next_multiple_of(step)..rows.end).step_by(step) {
                for x in (columns.start.next_multiple_of(step)..columns.end).step_by(step) {
                    let at = y * width as usize + x;
                    if u32::from(labels[at]) == slot.region {
                        points.push((x as i32, y as i32, last[at]));
                    }
                }
            }
            let difference = |[dx, dy]: [i32; 2]| -> u32 {
                let of = |&(x, y, feature): &(i32, i32, u32)| {
                    let (x, y) = ((x + dx).clamp(0, width - 1), (y + dy).clamp(0, height - 1));
                    feature_difference(features[(y * width + x) as usize], feature)
                };
                points.iter().map(of).sum()
            };
            let own = whole_px([0, 1].map(|i| shift[i] + slot.velocity[i]));
            let noise = TRACK_NOISE * points.len() as u32;
            let still = difference([0; 2]);
            let is_flat = |shift: [i32; 2]| {
                let length = shift[0].unsigned_abs().max(shift[1].unsigned_abs());
                still < TRACK_FLAT.max(TRACK_FLAT_PX * length) * points.len() as u32
            };
            let mut best = ([0; 2], still);
            // The first of the least, if it is clearly less than the best before.
            let mut offer = |shifts: &[[i32; 2]]| {
                let mut below = (best.1 - best.1 / TRACK_MARGIN).saturating_sub(noise);
                for &shift in shifts {
                    let d = difference(shift);
                    if d < below {
                        best = (shift, d);
                        below = d;
                    }
                }
                best.0
            };
            let mut found = [0; 2];
            if !is_flat(found) {
                found = offer(&[own, whole_px(shift)]);
                for hop in TRACK_HOPS {
                    found = offer(&std::array::from_fn::<_, 9, _>(|i| {
                        [found[0] + hop * (i as i32 % 3 - 1), found[1] + hop * (i as i32 / 3 - 1)]
                    }));
                }
                if is_flat(found) {
                    found = [0; 2];
                }
            }
            if found != own {
                slot.velocity = [0, 1].map(|i| PLACE * found[i] - shift[i]);
            }
        };
        cpu.run(|| {
            let held = slots.par_iter_mut().enumerate().filter(|(_, slot)| slot.region != NONE);
            held.for_each(track);
        });
    }

    /// Moves every cluster into the cell that it is over.
    fn rehome(&mut self) {
        let Self { grid, slots, sources, moves, cells, shift, drift, .. } = self;
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
        let mut claims = vec![[0u64; 1 + CLAIM_ROUNDS]; slots.len()];
        let mut wanted: Vec<Option<i32>> = vec![None; slots.len()];
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
                    .filter(|&c| claims[c as usize][..round].iter().all(|&claim| claim == 0));
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
        cells.clear();
        cells.resize(self.tracks.len(), NONE);
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
    }

    /// Gives every region its identity and leaves what the next frame needs.
    fn identify(&mut self, features: &[u32], labels: &Labels<'_>, count: usize) {
        let last = std::mem::take(&mut self.tracks);
        let mut used = vec![false; last.len()];
        let mut tracks = vec![Track { velocity: self.shift, ..Track::default() }; count];
        if !self.warm {
            tracks.fill(Track::default());
            self.drift = [0; 2];
        }
        let mut owners = vec![0u64; count];
        if self.in_slots {
            for (k, main) in self.mains.iter().enumerate().filter(|(_, main)| main.size > 0) {
                let owner = &mut owners[main.label as usize];
                *owner = (*owner).max(u64::from(main.size) << 32 | u64::from(NONE - k as u32));
            }
            for (track, &owner) in tracks.iter_mut().zip(&owners).filter(|(_, owner)| **owner != 0) {
                let slot = &self.slots[(NONE - owner as u32) as usize];
                if slot.id != 0 {
                    track.id = slot.id;
                    track.age = last[slot.region as usize].age + 1;
                    track.from = Some(slot.region);
                    used[slot.region as usize] = true;
                }
            }
        }
        if self.warm {
            self.adopt(labels, &last, &mut used, &mut tracks);
        }
        for track in tracks.iter_mut().filter(|track| track.id == 0) {
            track.id = self.next_id;
            // 0 is no identity.
            self.next_id = self.next_id.wrapping_add(1).max(1);
        }
        if self.in_slots {
            for (k, slot) in self.slots.iter_mut().enumerate() {
                let main = self.mains[k];
                let owns = main.size > 0 && NONE - owners[main.label as usize] as u32 == k as u32;
                slot.size = main.size;
                (slot.id, slot.region) =
                    if owns { (tracks[main.label as usize].id, main.label) } else { (0, NONE) };
            }
            for slot in self.slots.iter().filter(|slot| slot.region != NONE && self.warm) {
                tracks[slot.region as usize].velocity = [0, 1].map(|i| slot.velocity[i] + self.shift[i]);
            }
            self.plant(features, labels, &owners, &tracks);
        }
        self.tracks = tracks;
        let width = self.grid.geometry.width as usize;
        for (y, row) in self.labels.chunks_exact_mut(width).enumerate() {
            row.copy_from_slice(labels.row(y));
        }
        self.warm = true;
        self.in_slots = false;
    }

    /// Regions without a cluster take slots nearby that no region belongs to.
    fn plant(&mut self, features: &[u32], labels: &Labels<'_>, owners: &[u64], tracks: &[Track]) {
        let (width, height) = (self.grid.geometry.width as usize, self.grid.geometry.height as usize);
        let (nx, ny, step) = (self.grid.nx as i32, self.grid.ny as i32, self.grid.step as i32);
        let mut sums = vec![[0u64; 6]; owners.len()];
        for y in self.grid.samples(&(0..height)) {
            for x in self.grid.samples(&(0..width)) {
                let label = usize::from(labels.row(y)[x]);
                if owners[label] == 0 {
                    let [a, b, c] = unpack(features[y * width + x]).map(u64::from);
                    for (sum, v) in sums[label].iter_mut().zip([1, x as u64, y as u64, a, b, c]) {
                        *sum += v;
                    }
                }
            }
        }
        let mut claims = vec![0u64; self.slots.len()];
        let mut wanted: Vec<Option<(usize, [i32; 2])>> = vec![None; owners.len()];
        let key = |l: usize| sums[l][0] << 32 | u64::from(NONE - l as u32);
        for (l, sum) in sums.iter().enumerate().filter(|(_, sum)| sum[0] > 0) {
            let at = [1, 2].map(|i| ((32 * sum[i] + sum[0]) / (2 * sum[0])) as i32);
            let (gx, gy) = ((at[0] / PLACE / step).min(nx - 1), (at[1] / PLACE / step).min(ny - 1));
            let near = (gy - 1..=gy + 1)
                .flat_map(|y| (gx - 1..=gx + 1).map(move |x| (x, y)))
                .filter(|&(x, y)| x >= 0 && y >= 0 && x < nx && y < ny)
                .map(|(x, y)| (y * nx + x) as usize)
                .filter(|&k| self.slots[k].region == NONE)
                .min_by_key(|&k| {
                    let (columns, rows) =
                        (self.grid.columns(k % nx as usize), self.grid.rows(k / nx as usize));
                    let center = [columns, rows].map(|r| PLACE / 2 * (r.start + r.end - 1) as i32);
                    let d = [0, 1].map(|i| i64::from(at[i] - center[i]));
                    (d[0] * d[0] + d[1] * d[1], k)
                });
            wanted[l] = near.map(|k| {
                claims[k] = claims[k].max(key(l));
                (k, at)
            });
        }
        for (l, sum) in sums.iter().enumerate() {
            let Some((k, place)) = wanted[l].filter(|&(k, _)| claims[k] == key(l)) else { continue };
            let slot = &mut self.slots[k];
            let color = [3, 4, 5].map(|i| ((2 * sum[i] + sum[0]) / (2 * sum[0])) as u32);
            let sample = u64::from(self.grid.sample_step());
            *slot = Slot {
                place,
                velocity: slot.velocity,
                id: tracks[l].id,
                size: (sum[0] * sample * sample) as u32,
                region: l as u32,
                planted: Some(color),
            };
        }
    }

    /// Regions without an identity take over free ones.
    fn adopt(&self, labels: &Labels<'_>, last: &[Track], used: &mut [bool], tracks: &mut [Track]) {
        let (width, height) = (self.grid.geometry.width as usize, self.grid.geometry.height as usize);
        let (step, nx) = (self.grid.step as usize, self.grid.nx as usize);
        let mut overlaps = BTreeMap::new();
        for y in self.grid.samples(&(0..height)) {
            let gy = (y / step).min(self.grid.ny as usize - 1);
            for x in self.grid.samples(&(0..width)) {
                let label = usize::from(labels.row(y)[x]);
                if tracks[label].id != 0 {
                    continue;
                }
                let [move_x, move_y] = self.moves[gy * nx + (x / step).min(nx - 1)];
                let from_x = (x as i32 - move_x).clamp(0, width as i32 - 1) as usize;
                let from_y = (y as i32 - move_y).clamp(0, height as i32 - 1) as usize;
                let earlier = usize::from(self.labels[from_y * width + from_x]);
                if !used[earlier] {
                    *overlaps.entry((label, earlier)).or_insert(0u32) += 1;
                }
            }
        }
        let key = |overlap: u32, index: usize| u64::from(overlap) << 32 | u64::from(NONE - index as u32);
        for _ in 0..MATCH_ROUNDS {
            let open =
                |&(&(label, earlier), _): &(&(usize, usize), &u32)| tracks[label].id == 0 && !used[earlier];
            let (mut best_earlier, mut best_label) = (BTreeMap::new(), BTreeMap::new());
            for (&(label, earlier), &overlap) in overlaps.iter().filter(open) {
                let best: &mut u64 = best_earlier.entry(label).or_default();
                *best = (*best).max(key(overlap, earlier));
                let best: &mut u64 = best_label.entry(earlier).or_default();
                *best = (*best).max(key(overlap, label));
            }
            for (label, choice) in best_earlier {
                let earlier = (NONE - choice as u32) as usize;
                if (NONE - best_label[&earlier] as u32) as usize == label {
                    used[earlier] = true;
                    tracks[label].id = last[earlier].id;
                    tracks[label].age = last[earlier].age + 1;
                    tracks[label].from = Some(earlier as u32);
                }
            }
        }
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
            times.time("temporal/track", || state.track(&self.cpu, features));
            times.time("temporal/rehome", || state.rehome());
        }
        Ok(())
    }

    fn identify(&mut self, work: &mut Work, labels: &mut Labels<'_>, times: &mut StageTimes) -> Result<()> {
        let Work { temporal: Some(state), count, features, .. } = work else { return Ok(()) };
        check_labels(state.grid.geometry, labels)?;
        times.time("temporal/identify", || state.identify(features, labels, *count as usize));
        Ok(())
    }

    fn reset(&mut self, work: &mut Work) {
        if let Some(state) = &mut work.temporal {
            state.warm = false;
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
