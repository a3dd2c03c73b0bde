// SPDX-License-Identifier: MPL-2.0
//! What lasts from frame to frame, on the CPU: the reference. Stages `temporal/motion`, `temporal/track`,
//! `temporal/rehome`; `temporal/identify` is in `identify.rs`.

use rayon::prelude::*;

use super::identify::Naming;
use super::merged::Merged;
use super::{
    CLAIM_ROUNDS, Inertia, LOOKS_SHIFT, PLACE, Plan, SAME, STAYS, STILL, TRACK_FLAT, TRACK_FLAT_PX,
    TRACK_HOPS, TRACK_MARGIN, TRACK_NOISE, Track, track_step, whole_px,
};
use crate::algo::grid::Grid;
use crate::algo::samples::LANES;
use crate::backend::{self, StageTimes};
use crate::color::unpack;
use crate::cpu::{Cpu, Work, check_labels};
use crate::error::Result;
use crate::image::{LabelBand, Labels};
use crate::regions::Motion;

/// No slot, region or candidate.
pub(super) const NONE: u32 = u32::MAX;
/// A pixel that is predicted to belong to none of its candidates.
pub(crate) const NO_CANDIDATE: u8 = u8::MAX;
/// Bits of a prediction that name the candidate.
pub(crate) const CANDIDATE: u8 = 15;

/// Sum over the channels of the absolute difference of two features.
#[inline(always)]
fn feature_difference(a: u32, b: u32) -> u32 {
    let (a, b) = (unpack(a), unpack(b));
    a[0].abs_diff(b[0]) + a[1].abs_diff(b[1]) + a[2].abs_diff(b[2])
}

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

/// A sample of a region: where it was in the last frame, and its features there.
type Sample = (i32, i32, u32);

/// Room for work on a frame; nothing in it lasts.
#[derive(Default)]
struct Scratch {
    /// Squared difference of the thumbnails for each shift.
    differences: Vec<u64>,
    /// A region's samples, for each part of the slots that is worked on at a time.
    samples: Vec<Vec<Sample>>,
    /// The claims on each cell, round by round.
    claims: Vec<[u64; 1 + CLAIM_ROUNDS]>,
    /// The cell that each slot wants.
    wanted: Vec<Option<i32>>,
}

/// A row of the last frame.
struct LastRow<'a> {
    features: &'a [u32],
    labels: &'a [u16],
}

/// What predictions for a row of pixels in one cell rest on.
struct LookBack<'a> {
    /// This frame's features.
    now: &'a [u32],
    /// The same row of the last frame, and the one that the cell came from.
    still: LastRow<'a>,
    moved: LastRow<'a>,
    move_x: i32,
    cells: &'a [u32],
    /// First column and row of the cells that are candidates, and how many there are.
    corner: [u32; 2],
    sides: [u32; 2],
    /// The last label that was asked for, and its candidate.
    known: Option<(u16, u8)>,
}

/// Pixels of a row that are looked back from at a time.
const BLOCK: usize = 32;

/// Differences of neighboring pixels.
#[inline(always)]
fn differ(a: &[u32], b: &[u32], out: &mut [u32]) {
    for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
        *out = feature_difference(a, b);
    }
}

/// How a pixel looks that differs so much from where it comes from: in eighths.
#[inline(always)]
fn looks_of(difference: u32) -> u8 {
    SAME.saturating_sub(difference).div_ceil(SAME / 8) as u8
}

impl LookBack<'_> {
    /// The last frame's label that a pixel is predicted from, and how it looks.
    #[inline(always)]
    fn at(&self, x: usize) -> (u16, u8) {
        if feature_difference(self.now[x], self.still.features[x]) < STILL {
            return (self.still.labels[x], STAYS);
        }
        let from = (x as i32 - self.move_x).clamp(0, self.now.len() as i32 - 1) as usize;
        let difference = feature_difference(self.now[x], self.moved.features[from]);
        (self.moved.labels[from], looks_of(difference))
    }

    /// Writes the predictions for the neighboring pixels from `x` on, at most `BLOCK`.
    #[inline(always)]
    fn predict_block(&mut self, x: usize, out: &mut [u16]) {
        let n = out.len();
        let now = &self.now[x..][..n];
        let (mut differences, mut labels, mut looks) = ([0; BLOCK], [0; BLOCK], [STAYS; BLOCK]);
        let (differences, labels, looks) = (&mut differences[..n], &mut labels[..n], &mut looks[..n]);
        differ(now, &self.still.features[x..][..n], differences);
        labels.copy_from_slice(&self.still.labels[x..][..n]);
        if differences.iter().fold(0, |most: u32, &difference| most.max(difference)) >= STILL {
            let from = usize::try_from(x as i32 - self.move_x).ok().filter(|from| from + n <= self.now.len());
            let Some(from) = from else {
                for (x, out) in (x..x + n).zip(out) {
                    let (label, looks) = self.at(x);
                    *out = u16::from(self.candidate(label) | looks << LOOKS_SHIFT);
                }
                return;
            };
            let mut moved = [0; BLOCK];
            differ(now, &self.moved.features[from..][..n], &mut moved[..n]);
            let last = moved.iter().zip(&self.moved.labels[from..][..n]);
            for (((&mut difference, looks), label), (&moved, &moved_label)) in
                differences.iter_mut().zip(&mut *looks).zip(&mut *labels).zip(last)
            {
                let stays = difference < STILL;
                *label = if stays { *label } else { moved_label };
                *looks = if stays { STAYS } else { looks_of(moved) };
            }
        }
        for ((out, labels), looks) in out.chunks_mut(LANES).zip(labels.chunks(LANES)).zip(looks.chunks(LANES))
        {
            // Most are of one region.
            if labels.iter().fold(0, |others, label| others | (label ^ labels[0])) == 0 {
                let candidate = self.candidate(labels[0]);
                for (out, &looks) in out.iter_mut().zip(looks) {
                    *out = u16::from(candidate | looks << LOOKS_SHIFT);
                }
            } else {
                for ((out, &label), &looks) in out.iter_mut().zip(labels).zip(looks) {
                    *out = u16::from(self.candidate(label) | looks << LOOKS_SHIFT);
                }
            }
        }
    }

    #[inline(always)]
    fn candidate(&mut self, label: u16) -> u8 {
        match self.known {
            Some((known, candidate)) if known == label => candidate,
            _ => {
                let cell = self.cells[usize::from(label)];
                let [dx, dy] = [cell & 0xffff, cell >> 16];
                let (dx, dy) = (dx.wrapping_sub(self.corner[0]), dy.wrapping_sub(self.corner[1]));
                let inside = dx < self.sides[0] && dy < self.sides[1];
                let candidate = if inside { (dy * self.sides[0] + dx) as u8 } else { NO_CANDIDATE };
                self.known = Some((label, candidate));
                candidate
            }
        }
    }
}

/// What a frame leaves to the next.
pub(crate) struct State {
    plan: Plan,
    pub(super) grid: Grid,
    /// Whether the last frame counts.
    pub(super) warm: bool,
    /// Whether this frame's clusters are those of the slots.
    pub(super) in_slots: bool,
    /// This frame's thumbnail, and the last one's.
    thumbnails: [Vec<u16>; 2],
    /// Motion of the picture in 1/16 px.
    pub(super) shift: [i32; 2],
    /// Whether no shift makes the last thumbnail like this one.
    unlike: bool,
    pub(super) slots: Vec<Slot>,
    /// Those of the last frame, while this one's are made.
    last_slots: Vec<Slot>,
    /// For each cell, of this frame.
    sources: Vec<Option<Source>>,
    /// Motion of each cell in whole px.
    pub(super) moves: Vec<[i32; 2]>,
    /// Cell that each of the last frame's regions has its cluster in: column, and row in the upper half; or none.
    cells: Vec<u32>,
    /// The last frame's labels; rows without padding.
    pub(super) labels: Vec<u16>,
    /// The last frame's features; rows without padding.
    pub features: Vec<u32>,
    /// Motion of the picture since the slots moved with it, in 1/16 px.
    pub(super) drift: [i32; 2],
    /// The last frame's residual.
    residual: u64,
    pub(super) next_id: u32,
    /// Names of merged regions, where regions are merged: those are then the ones that a reader sees.
    pub merged: Option<Merged>,
    /// One for each cluster, from the stage `connectivity`.
    pub mains: Vec<Main>,
    /// One for each region.
    pub tracks: Vec<Track>,
    scratch: Scratch,
    pub(super) naming: Naming,
}

impl State {
    pub fn new(cpu: &Cpu, plan: &crate::plan::Plan, temporal: &Plan) -> Self {
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
            last_slots: Vec::with_capacity(cells),
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
            scratch: Scratch {
                differences: vec![0; temporal.shifts()],
                samples: vec![Vec::new(); PARTS * cpu.threads()],
                ..Scratch::default()
            },
            naming: Naming::default(),
        }
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

    /// What is asked about pixels in row `y` of a cell. Only while warm.
    #[inline(always)]
    fn look_back<'a>(&'a self, (gx, gy): (usize, usize), y: usize, features: &'a [u32]) -> LookBack<'a> {
        let (nx, ny) = (self.grid.nx as usize, self.grid.ny as usize);
        let (width, height) = (self.grid.geometry.width as usize, self.grid.geometry.height as i32);
        let [move_x, move_y] = self.moves[gy * nx + gx];
        let from = (y as i32 - move_y).clamp(0, height - 1) as usize;
        let row = |y: usize| {
            let pixels = y * width..(y + 1) * width;
            LastRow { features: &self.features[pixels.clone()], labels: &self.labels[pixels] }
        };
        let (left, top) = (gx.saturating_sub(1) as u32, gy.saturating_sub(1) as u32);
        LookBack {
            now: &features[y * width..][..width],
            still: row(y),
            moved: row(from),
            move_x,
            cells: &self.cells,
            corner: [left, top],
            sides: [(gx + 2).min(nx) as u32 - left, (gy + 2).min(ny) as u32 - top],
            known: None,
        }
    }

    /// Writes the predictions for some pixels in row `y` of a cell: the candidate that each belongs to, and how it looks.
    pub fn predict(
        &self,
        cell: (usize, usize),
        y: usize,
        columns: impl Iterator<Item = usize>,
        features: &[u32],
        out: &mut [u8],
    ) {
        if !self.warm {
            out.fill(NO_CANDIDATE);
            return;
        }
        let mut look = self.look_back(cell, y, features);
        for (x, out) in columns.zip(out) {
            let (label, looks) = look.at(x);
            *out = look.candidate(label) | looks << LOOKS_SHIFT;
        }
    }

    /// The same for all pixels of a band in one row of cells, left where their labels will be: row by row, since what two frames
    /// have at the cells, one after the other, is far apart.
    #[inline(always)]
    pub fn predict_band(&self, gy: usize, features: &[u32], band: &mut LabelBand<'_>) {
        for y in 0..band.rows() {
            let (at, row) = (band.first_row + y, band.row_mut(y));
            if !self.warm {
                row.fill(u16::from(NO_CANDIDATE));
                continue;
            }
            for gx in 0..self.grid.nx as usize {
                let columns = self.grid.columns(gx);
                let mut look = self.look_back((gx, gy), at, features);
                for (first, out) in columns.clone().step_by(BLOCK).zip(row[columns].chunks_mut(BLOCK)) {
                    look.predict_block(first, out);
                }
            }
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
                for (u, mean) in row.iter_mut().enumerate() {
                    let square = |y: usize| &features[y * width + u * side..][..side];
                    let sum: u32 = (v * side..(v + 1) * side).flat_map(square).map(|&f| unpack(f)[0]).sum();
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
        let differences = &mut self.scratch.differences;
        let each = || differences.par_iter_mut().enumerate().for_each(|(i, d)| *d = difference(i as i32));
        cpu.run(each);
        self.shift = super::shift_of(&self.plan, differences);
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
        let Self { grid, slots, labels, shift, features: last, scratch, .. } = self;
        let (nx, ny) = (grid.nx as usize, grid.ny as usize);
        let (width, height) = (grid.geometry.width as i32, grid.geometry.height as i32);
        let step = track_step(grid);
        let (grid, labels, last, shift) = (&*grid, &*labels, &*last, *shift);
        let track = |k: usize, slot: &mut Slot, points: &mut Vec<Sample>| {
            let (gx, gy) = (k % nx, k / nx);
            let columns = grid.columns(gx.saturating_sub(1)).start..grid.columns((gx + 1).min(nx - 1)).end;
            let rows = grid.rows(gy.saturating_sub(1)).start..grid.rows((gy + 1).min(ny - 1)).end;
            points.clear();
            for y in (rows.start.next_multiple_of(step)..rows.end).step_by(step) {
                for x in (columns.start.next_multiple_of(step)..columns.end).step_by(step) {
                    let at = y * width as usize + x;
                    if u32::from(labels[at]) == slot.region {
                        points.push((x as i32, y as i32, last[at]));
                    }
                }
            }
            let difference = |[dx, dy]: [i32; 2]| -> u32 {
                let of = |&(x, y, feature): &Sample| {
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
            let length = slots.len().div_ceil(scratch.samples.len());
            let parts = slots.par_chunks_mut(length).zip(&mut scratch.samples).enumerate();
            parts.for_each(|(part, (slots, points))| {
                for (i, slot) in slots.iter_mut().enumerate().filter(|(_, slot)| slot.region != NONE) {
                    track(part * length + i, slot, points);
                }
            });
        });
    }

    /// Moves every cluster into the cell that it is over.
    fn rehome(&mut self) {
        let Self { grid, slots, sources, moves, cells, shift, drift, scratch, .. } = self;
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
        claims.clear();
        claims.resize(slots.len(), [0; 1 + CLAIM_ROUNDS]);
        wanted.clear();
        wanted.resize(slots.len(), None);
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
