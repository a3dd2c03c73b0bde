// SPDX-License-Identifier: MPL-2.0
//! Motion of the picture and of its regions, on the CPU: the reference of the stages `temporal/motion` and `temporal/track`.

// Lanes run over several arrays at once; an iterator over one of them hides that.
#![allow(clippy::needless_range_loop)]

use std::ops::Range;

use multiversion::multiversion;
use rayon::prelude::*;

use super::cpu::{NONE, Slot, State};
use super::look_back::feature_difference;
use super::{
    PLACE, TRACK_FLAT, TRACK_FLAT_PX, TRACK_HOPS, TRACK_MARGIN, TRACK_NOISE, shift_of, track_step, whole_px,
};
use crate::algo::grid::Grid;
use crate::algo::samples::LANES;
use crate::color::unpack;
use crate::cpu::Cpu;

impl State {
    pub(super) fn take_thumbnail(&mut self, cpu: &Cpu, features: &[u32]) {
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
    pub(super) fn estimate_shift(&mut self, cpu: &Cpu) {
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
        self.shift = shift_of(&self.plan, differences);
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
    pub(super) fn track(&mut self, cpu: &Cpu, features: &[u32]) {
        let Self { grid, slots, labels, shift, features: last, scratch, .. } = self;
        let tracking = Tracking { grid, labels, last, now: features, shift: *shift };
        cpu.run(|| {
            let length = slots.len().div_ceil(scratch.samples.len());
            let parts = slots.par_chunks_mut(length).zip(&mut scratch.samples).enumerate();
            parts.for_each(|(part, (slots, samples))| track_slots(&tracking, part * length, slots, samples));
        });
    }
}

/// Samples of a region, as many as they are.
#[derive(Default)]
pub(super) struct Samples {
    /// Their pixels in the last frame.
    at: Vec<i32>,
    /// Their features there.
    features: Vec<u32>,
    /// First and last column, and row.
    columns: [i32; 2],
    rows: [i32; 2],
}

/// What the motion of regions is found from.
struct Tracking<'a> {
    grid: &'a Grid,
    /// The last frame's labels and features.
    labels: &'a [u16],
    last: &'a [u32],
    now: &'a [u32],
    /// Motion of the picture in 1/16 px.
    shift: [i32; 2],
}

impl Tracking<'_> {
    /// Takes the samples of a slot's region from the 3x3 cells around the slot.
    #[inline(always)]
    fn collect(&self, k: usize, region: u32, samples: &mut Samples) {
        let grid = self.grid;
        let (nx, ny) = (grid.nx as usize, grid.ny as usize);
        let (gx, gy, step) = (k % nx, k / nx, track_step(grid));
        let columns = grid.columns(gx.saturating_sub(1)).start..grid.columns((gx + 1).min(nx - 1)).end;
        let rows = grid.rows(gy.saturating_sub(1)).start..grid.rows((gy + 1).min(ny - 1)).end;
        let first = columns.start.next_multiple_of(step);
        samples.at.clear();
        samples.features.clear();
        // Of no samples yet.
        let empty = |span: &Range<usize>| [span.end as i32, span.start as i32];
        (samples.columns, samples.rows) = (empty(&columns), empty(&rows));
        for y in (rows.start.next_multiple_of(step)..rows.end).step_by(step) {
            let row = y * grid.geometry.width as usize;
            let labels = &self.labels[row..][..columns.end];
            for x in (first..columns.end).step_by(step) {
                if u32::from(labels[x]) == region {
                    samples.at.push((row + x) as i32);
                    samples.features.push(self.last[row + x]);
                    for (bounds, v) in [(&mut samples.columns, x as i32), (&mut samples.rows, y as i32)] {
                        *bounds = [bounds[0].min(v), bounds[1].max(v)];
                    }
                }
            }
        }
    }

    /// How much samples differ from where a shift leads; at least `enough` if that is reached.
    #[inline(always)]
    fn difference(&self, samples: &Samples, [dx, dy]: [i32; 2], enough: u32) -> u32 {
        let (width, height) = (self.grid.geometry.width as i32, self.grid.geometry.height as i32);
        let inside = |[first, last]: [i32; 2], by: i32, side: i32| first + by >= 0 && last + by < side;
        let all_inside = inside(samples.columns, dx, width) && inside(samples.rows, dy, height);
        let mut sum = 0;
        for (at, last) in samples.at.chunks(LANES).zip(samples.features.chunks(LANES)) {
            // Lanes beyond the samples are alike.
            let (mut here, mut there) = ([0; LANES], [0; LANES]);
            for ((here, there), (&at, &last)) in here.iter_mut().zip(&mut there).zip(at.iter().zip(last)) {
                let to = if all_inside {
                    at + dy * width + dx
                } else {
                    let (x, y) = (at % width + dx, at / width + dy);
                    y.clamp(0, height - 1) * width + x.clamp(0, width - 1)
                };
                (*here, *there) = (self.now[to as usize], last);
            }
            for lane in 0..LANES {
                sum += feature_difference(here[lane], there[lane]);
            }
            if sum >= enough {
                break;
            }
        }
        sum
    }

    /// Sets the velocity of a slot's region, if another one than its own is found.
    #[inline(always)]
    fn track(&self, slot: &mut Slot, samples: &Samples) {
        let shift = self.shift;
        let own = whole_px([0, 1].map(|i| shift[i] + slot.velocity[i]));
        let count = samples.at.len() as u32;
        let still = self.difference(samples, [0; 2], u32::MAX);
        let is_flat = |shift: [i32; 2]| {
            let length = shift[0].unsigned_abs().max(shift[1].unsigned_abs());
            still < TRACK_FLAT.max(TRACK_FLAT_PX * length) * count
        };
        let mut best = ([0; 2], still);
        // The first of the least, if it is clearly less than the best before.
        let mut offer = |shifts: &mut dyn Iterator<Item = [i32; 2]>| {
            let mut below = (best.1 - best.1 / TRACK_MARGIN).saturating_sub(TRACK_NOISE * count);
            for shift in shifts {
                let d = self.difference(samples, shift, below);
                if d < below {
                    best = (shift, d);
                    below = d;
                }
            }
            best.0
        };
        let mut found = [0; 2];
        if !is_flat(found) {
            found = offer(&mut [own, whole_px(shift)].into_iter());
            for hop in TRACK_HOPS {
                // The best one so far cannot be better than itself.
                let around = (0..9).filter(|i| *i != 4).map(|i| [hop * (i % 3 - 1), hop * (i / 3 - 1)]);
                found = offer(&mut around.map(|[dx, dy]| [found[0] + dx, found[1] + dy]));
            }
            if is_flat(found) {
                found = [0; 2];
            }
        }
        if found != own {
            slot.velocity = [0, 1].map(|i| PLACE * found[i] - shift[i]);
        }
    }
}

/// Tracks those of some slots, from `first` on, that have regions.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
fn track_slots(tracking: &Tracking<'_>, first: usize, slots: &mut [Slot], samples: &mut Samples) {
    for (i, slot) in slots.iter_mut().enumerate().filter(|(_, slot)| slot.region != NONE) {
        tracking.collect(first + i, slot.region, samples);
        tracking.track(slot, samples);
    }
}
