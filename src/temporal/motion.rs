// SPDX-License-Identifier: MPL-2.0
//! Motion of the picture and of its regions, on the CPU: the reference of the stages `temporal/motion` and `temporal/track`.

// Lanes run over several arrays at once; an iterator over one of them hides that.
#![allow(clippy::needless_range_loop)]

use rayon::prelude::*;

use super::matching::refill;
use super::predict::feature_difference;
use super::state::{NONE, Samples, Slot, SlotSamples, State};
use super::{
    POSITION_UNIT, TRACK_FLAT, TRACK_FLAT_PX, TRACK_HOPS, TRACK_MARGIN, TRACK_NOISE, shift_of, track_step,
    whole_px,
};
use crate::algo::grid::Grid;
use crate::color::{OUTSIDE, unpack};
use crate::cpu::level::LANES;
use crate::cpu::level::by_level;
use crate::cpu::{Cpu, memory};
use crate::error::Result;

/// A square of a thumbnail without a pixel inside of the mask.
const NO_MEAN: u16 = u16::MAX;
/// The difference of thumbnails of which less than half the squares can be compared: above that of any others.
const INCOMPARABLE: u64 = 1 << 40;

impl State {
    pub(super) fn take_thumbnail(&mut self, cpu: &Cpu, features: &[u32]) {
        self.thumbnails.swap(0, 1);
        let (side, columns) = (self.plan.square as usize, self.plan.thumbnail[0] as usize);
        let width = self.grid.geometry.width as usize;
        if columns == 0 {
            return;
        }
        let (thumbnail, masked) = (&mut self.thumbnails[0], self.plan.masked);
        cpu.run(|| {
            thumbnail.par_chunks_mut(columns).enumerate().for_each(|(v, row)| {
                for (u, mean) in row.iter_mut().enumerate() {
                    let square = |y: usize| &features[y * width + u * side..][..side];
                    let pixels = (v * side..(v + 1) * side).flat_map(square);
                    let sum: u32 = pixels.clone().map(|&f| unpack(f)[0]).sum();
                    *mean = if masked {
                        // What is outside adds nothing to the sum.
                        let inside = pixels.filter(|feature| **feature != OUTSIDE).count() as u32;
                        sum.checked_div(inside).map_or(NO_MEAN, |mean| mean as u16)
                    } else {
                        (sum / (side * side) as u32) as u16
                    };
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
        let (mut count, mut sum, mut squares) = (0u64, 0u64, 0u64);
        for v in reach_y..rows - reach_y {
            let row = &now[(v * columns + reach_x) as usize..][..(columns - 2 * reach_x).max(0) as usize];
            for &mean in row.iter().filter(|mean| **mean != NO_MEAN) {
                count += 1;
                sum += u64::from(mean);
                squares += u64::from(mean).pow(2);
            }
        }
        let masked = self.plan.masked;
        let difference = |index: i32| -> u64 {
            let (dx, dy) = (index % across - reach_x, index / across - reach_y);
            let (mut sum, mut compared) = (0, 0u64);
            for v in reach_y..rows - reach_y {
                let at = |u: i32, v: i32| (v * columns + u) as usize;
                let span = (columns - 2 * reach_x).max(0) as usize;
                let here = &now[at(reach_x, v)..][..span];
                let there = &last[at(reach_x - dx, v - dy)..][..span];
                let pairs = here.iter().zip(there);
                let squared = |(&a, &b): (&u16, &u16)| u64::from(a.abs_diff(b)).pow(2);
                if masked {
                    let pairs = pairs.filter(|(a, b)| **a != NO_MEAN && **b != NO_MEAN);
                    compared += pairs.clone().count() as u64;
                    sum += pairs.map(squared).sum::<u64>();
                } else {
                    sum += pairs.map(squared).sum::<u64>();
                }
            }
            if !masked {
                sum
            } else if compared == 0 || 2 * compared < count {
                INCOMPARABLE
            } else {
                sum * count / compared
            }
        };
        let differences = &mut self.scratch.differences;
        let each = || differences.par_iter_mut().enumerate().for_each(|(i, d)| *d = difference(i as i32));
        cpu.run(each);
        self.shift = shift_of(&self.plan, differences);
        let least = differences.iter().copied().min().unwrap_or(0);
        let [part, noise] = self.plan.unlike.map(u64::from);
        self.unlike = 8 * least * count > part * (count * squares - sum * sum) + 8 * noise * count * count;
    }

    /// Where the pixels of every slot's region went.
    pub(super) fn track(&mut self, cpu: &Cpu, features: &[u32]) -> Result<()> {
        let Self { plan, grid, slots, labels, shift, features: last, scratch, .. } = self;
        if !plan.in_slots {
            return Ok(());
        }
        let (nx, homes) = (grid.nx as usize, &mut scratch.homes);
        refill(
            homes,
            slots.iter().filter(|s| s.region != NONE).map(|s| s.region as usize + 1).max().unwrap_or(0),
            NONE,
        )?;
        for (k, slot) in slots.iter().enumerate().filter(|(_, slot)| slot.region != NONE) {
            debug_assert_eq!(homes[slot.region as usize], NONE, "a region has one slot");
            homes[slot.region as usize] = ((k / nx) << 16 | (k % nx)) as u32;
        }
        let tracking = Tracking { grid, homes, labels, last, now: features, shift: *shift };
        cpu.run(|| {
            let rows = (grid.ny as usize).div_ceil(scratch.samples.len());
            let parts = slots.par_chunks_mut(rows * nx).zip(&mut scratch.samples).enumerate();
            parts.try_for_each(|(part, (slots, samples))| track_slots(&tracking, part * rows, slots, samples))
        })
    }
}

/// Bounds of nothing, which a shift can still be added to.
const NOWHERE: [i32; 2] = [i32::MAX / 2, i32::MIN / 2];
const NO_SAMPLES: SlotSamples = SlotSamples { count: 0, end: 0, columns: NOWHERE, rows: NOWHERE };

/// Samples of a region.
struct Region<'a> {
    at: &'a [i32],
    features: &'a [u32],
    columns: [i32; 2],
    rows: [i32; 2],
}

impl Samples {
    fn of(&self, slot: usize) -> Region<'_> {
        let SlotSamples { count, end, columns, rows } = self.slots[slot];
        let own = end - count..end;
        Region { at: &self.at[own.clone()], features: &self.features[own], columns, rows }
    }
}

/// What the motion of regions is found from.
struct Tracking<'a> {
    grid: &'a Grid,
    /// Where the slot of each region is: column, and row in the upper half; or none.
    homes: &'a [u32],
    /// The last frame's labels and features.
    labels: &'a [u16],
    last: &'a [u32],
    now: &'a [u32],
    /// Motion of the picture in 1/16 px.
    shift: [i32; 2],
}

impl Tracking<'_> {
    /// Takes the samples of the regions of `count` slots, whole rows from row `first` on: each from the 3x3 cells around its slot.
    #[inline(always)]
    fn collect(&self, first: usize, count: usize, samples: &mut Samples) -> Result<()> {
        const WHAT: &str = "samples of regions";
        let grid = self.grid;
        let (nx, ny, step) = (grid.nx as usize, grid.ny as usize, track_step(grid));
        let rows = count / nx;
        let Samples { found, slots, at, features } = samples;
        found.clear();
        refill(slots, count, NO_SAMPLES)?;
        for gy in first.saturating_sub(1)..(first + rows + 1).min(ny) {
            let lines = grid.rows(gy);
            for y in (lines.start.next_multiple_of(step)..lines.end).step_by(step) {
                let row = y * grid.geometry.width as usize;
                memory::reserve(found, WHAT, grid.geometry.width.div_ceil(step as u32) as usize)?;
                for gx in 0..nx {
                    let columns = grid.columns(gx);
                    for x in (columns.start.next_multiple_of(step)..columns.end).step_by(step) {
                        let Some(&home) = self.homes.get(usize::from(self.labels[row + x])) else { continue };
                        let (sx, sy) = ((home & 0xffff) as usize, (home >> 16) as usize);
                        // None is far from every cell.
                        if sx.abs_diff(gx) > 1 || sy.abs_diff(gy) > 1 || sy < first || sy >= first + rows {
                            continue;
                        }
                        let slot = (sy - first) * nx + sx;
                        found.push((slot as u32, (row + x) as i32));
                        let own = &mut slots[slot];
                        own.count += 1;
                        for (bounds, v) in [(&mut own.columns, x as i32), (&mut own.rows, y as i32)] {
                            *bounds = [bounds[0].min(v), bounds[1].max(v)];
                        }
                    }
                }
            }
        }
        let mut begin = 0;
        for slot in &mut *slots {
            slot.end = begin;
            begin += slot.count;
        }
        memory::resize(at, WHAT, begin, 0)?;
        memory::resize(features, WHAT, begin, 0)?;
        for &(slot, pixel) in &*found {
            let end = &mut slots[slot as usize].end;
            (at[*end], features[*end]) = (pixel, self.last[pixel as usize]);
            *end += 1;
        }
        Ok(())
    }

    /// How much samples differ from where a shift leads; at least `enough` if that is reached.
    #[inline(always)]
    fn difference(&self, samples: &Region<'_>, [dx, dy]: [i32; 2], enough: u32) -> u32 {
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
    fn track(&self, slot: &mut Slot, samples: &Region<'_>) {
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
            slot.velocity = [0, 1].map(|i| POSITION_UNIT * found[i] - shift[i]);
        }
    }
}

by_level! {
    /// Tracks those of some rows of slots, from row `first` on, that have regions.
    fn track_slots(
        tracking: &Tracking<'_>,
        first: usize,
        slots: &mut [Slot],
        samples: &mut Samples,
    ) -> Result<()> = track_slots_body
}

#[inline(always)]
fn track_slots_body(
    tracking: &Tracking<'_>,
    first: usize,
    slots: &mut [Slot],
    samples: &mut Samples,
) -> Result<()> {
    tracking.collect(first, slots.len(), samples)?;
    for (i, slot) in slots.iter_mut().enumerate().filter(|(_, slot)| slot.region != NONE) {
        tracking.track(slot, &samples.of(i));
    }
    Ok(())
}
