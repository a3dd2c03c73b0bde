// SPDX-License-Identifier: MPL-2.0
//! Motion of regions on the CPU: the reference of the stage `temporal/track`.

// Lanes run over several arrays at once; an iterator over one of them hides that.
#![allow(clippy::needless_range_loop)]

use std::ops::Range;

use rayon::prelude::*;

use super::predict::feature_difference;
use super::state::{NONE, Samples, Slot, State};
use super::{POSITION_UNIT, Plan, TRACK_HOPS, TRACK_MARGIN, TRACK_NOISE, track_step, whole_px};
use crate::algo::grid::Grid;
use crate::color::unpack;
use crate::cpu::level::LANES;
use crate::cpu::level::by_level;
use crate::cpu::{Cpu, memory};
use crate::error::Result;

impl State {
    /// Where the pixels of every slot's region went.
    pub(super) fn track(&mut self, cpu: &Cpu, features: &[u32]) -> Result<()> {
        let Self { plan, grid, slots, labels, shift, features: last, scratch, .. } = self;
        if !plan.in_slots {
            return Ok(());
        }
        let nx = grid.nx as usize;
        let tracking = Tracking { plan, grid, labels, last, now: features, shift: *shift };
        cpu.run(|| {
            let rows = (grid.ny as usize).div_ceil(scratch.samples.len());
            let parts = slots.par_chunks_mut(rows * nx).zip(&mut scratch.samples).enumerate();
            parts.try_for_each(|(part, (slots, samples))| track_slots(&tracking, part * rows, slots, samples))
        })
    }
}

/// Bounds of nothing, which a shift can still be added to.
const NOWHERE: [i32; 2] = [i32::MAX / 2, i32::MIN / 2];

/// Samples of a region, in raster order.
struct Region<'a> {
    places: &'a [u32],
    at: &'a [i32],
    /// The last frame's features there, and their channels.
    features: &'a [u32],
    channels: [&'a [u32]; 3],
    /// First and last column, and row.
    columns: [i32; 2],
    rows: [i32; 2],
}

impl Region<'_> {
    /// Whether all samples are inside of a frame after a shift, and so far all around it.
    #[inline(always)]
    fn stays_inside(&self, grid: &Grid, [dx, dy]: [i32; 2], around: i32) -> bool {
        let inside = |[first, last]: [i32; 2], by: i32, side: u32| {
            first + by - around >= 0 && last + by + around < side as i32
        };
        inside(self.columns, dx, grid.geometry.width) && inside(self.rows, dy, grid.geometry.height)
    }
}

/// What the motion of regions is found from.
struct Tracking<'a> {
    plan: &'a Plan,
    grid: &'a Grid,
    /// The last frame's labels and features.
    labels: &'a [u16],
    last: &'a [u32],
    now: &'a [u32],
    /// Motion of the picture in 1/16 px.
    shift: [i32; 2],
}

impl Tracking<'_> {
    /// Takes the samples of a region from the 3x3 cells around its slot's.
    #[inline(always)]
    fn collect<'a>(
        &self,
        (gx, gy): (usize, usize),
        region: u32,
        samples: &'a mut Samples,
    ) -> Result<Region<'a>> {
        const WHAT: &str = "samples of regions";
        let (grid, step) = (self.grid, track_step(self.grid));
        let (nx, ny, width) = (grid.nx as usize, grid.ny as usize, grid.geometry.width as usize);
        let around = |first: Range<usize>, last: Range<usize>| first.start.next_multiple_of(step)..last.end;
        let columns = around(grid.columns(gx.saturating_sub(1)), grid.columns((gx + 1).min(nx - 1)));
        let rows = around(grid.rows(gy.saturating_sub(1)), grid.rows((gy + 1).min(ny - 1)));
        let most = columns.len().div_ceil(step) * rows.len().div_ceil(step);
        let Samples { places, at, features, channels } = samples;
        memory::lengthen(places, WHAT, most)?;
        memory::lengthen(at, WHAT, most)?;
        memory::lengthen(features, WHAT, most)?;
        channels.iter_mut().try_for_each(|channel| memory::lengthen(channel, WHAT, most))?;
        // Each is written, and the next over it unless it is one of the region's: a branch would often go the other way.
        let mut count = 0;
        for y in rows.step_by(step) {
            let labels = &self.labels[y * width..][..width];
            for x in columns.clone().step_by(step) {
                places[count] = (y << 16 | x) as u32;
                count += usize::from(u32::from(labels[x]) == region);
            }
        }
        let (places, at, features) = (&places[..count], &mut at[..count], &mut features[..count]);
        let mut columns = NOWHERE;
        for (at, &place) in at.iter_mut().zip(places) {
            let [x, y] = place_of(place);
            *at = y * width as i32 + x;
            columns = [columns[0].min(x), columns[1].max(x)];
        }
        for (feature, &at) in features.iter_mut().zip(&*at) {
            *feature = self.last[at as usize];
        }
        let [a, b, c] = channels.each_mut().map(|channel| &mut channel[..count]);
        for (((&feature, a), b), c) in features.iter().zip(&mut *a).zip(&mut *b).zip(&mut *c) {
            [*a, *b, *c] = unpack(feature);
        }
        let ends = places.first().zip(places.last());
        let rows = ends.map_or(NOWHERE, |(&first, &last)| [first, last].map(|place| place_of(place)[1]));
        Ok(Region { places, at, features, channels: [a, b, c], columns, rows })
    }

    /// How much samples differ from where a shift leads; at least `enough` if that is reached.
    #[inline(always)]
    fn difference(&self, samples: &Region<'_>, shift: [i32; 2], enough: u32) -> u32 {
        if !samples.stays_inside(self.grid, shift, 0) {
            return self.difference_at_borders(samples, shift);
        }
        let by = shift[1] * self.grid.geometry.width as i32 + shift[0];
        let now = |at: i32| self.now[(at + by) as usize];
        let ((at, last_at), (features, last_features)) =
            (samples.at.as_chunks::<LANES>(), samples.features.as_chunks::<LANES>());
        let mut sum = 0;
        for (at, last) in at.iter().zip(features) {
            let here = at.map(now);
            for lane in 0..LANES {
                sum += feature_difference(here[lane], last[lane]);
            }
            if sum >= enough {
                return sum;
            }
        }
        for (&at, &last) in last_at.iter().zip(last_features) {
            sum += feature_difference(now(at), last);
        }
        sum
    }

    /// The same where some are outside, which count as the nearest inside.
    #[cold]
    fn difference_at_borders(&self, samples: &Region<'_>, [dx, dy]: [i32; 2]) -> u32 {
        let (width, height) = (self.grid.geometry.width as i32, self.grid.geometry.height as i32);
        let differences = samples.places.iter().zip(samples.features).map(|(&place, &last)| {
            let [x, y] = place_of(place);
            let to = (y + dy).clamp(0, height - 1) * width + (x + dx).clamp(0, width - 1);
            feature_difference(self.now[to as usize], last)
        });
        differences.sum()
    }

    /// How much samples differ from where the shifts lead that are a hop around one, four of each row in turn, of which the last says
    /// nothing. None where that may be outside.
    #[inline(always)]
    fn differences_around<const HOP: usize>(
        &self,
        samples: &Region<'_>,
        shift: [i32; 2],
    ) -> Option<[u32; AROUND]> {
        let (hop, width) = (HOP as i32, self.grid.geometry.width as i32);
        if !samples.stays_inside(self.grid, shift, hop) {
            return None;
        }
        let by = (shift[1] - hop) * width + shift[0] - hop;
        let [a, b, c] = samples.channels;
        let mut sums = [0; AROUND];
        for (((&at, &a), &b), &c) in samples.at.iter().zip(a).zip(b).zip(c) {
            let mut here = [0; AROUND];
            for row in 0..3 {
                let from = (at + by) as usize + row * HOP * width as usize;
                let now: &[u32; LANES] = self.now.get(from..)?.first_chunk()?;
                for i in 0..4 {
                    here[4 * row + i] = now[i * HOP];
                }
            }
            for lane in 0..AROUND {
                let here = unpack(here[lane]);
                sums[lane] += here[0].abs_diff(a) + here[1].abs_diff(b) + here[2].abs_diff(c);
            }
        }
        Some(sums)
    }

    /// Offers the shifts a hop around the best.
    #[inline(always)]
    fn offer_around<const HOP: usize>(&self, best: &mut Best, samples: &Region<'_>) {
        let (hop, [x, y]) = (HOP as i32, best.shift);
        best.expect(samples.at.len());
        let known = self.differences_around::<HOP>(samples, best.shift);
        for i in (0..9).filter(|i| *i != 4) {
            let shift = [x + hop * (i % 3 - 1), y + hop * (i / 3 - 1)];
            let difference = match &known {
                Some(known) => known[(i + i / 3) as usize],
                None => self.difference_at_borders(samples, shift),
            };
            best.offer(shift, difference);
        }
    }

    /// Sets the velocity of a slot's region, if another one than its own is found.
    #[inline(always)]
    fn track(&self, slot: &mut Slot, samples: &Region<'_>) {
        let shift = self.shift;
        let own = whole_px([0, 1].map(|i| shift[i] + slot.velocity[i]));
        let count = samples.at.len();
        let still = self.difference(samples, [0; 2], u32::MAX);
        let is_flat = |shift: [i32; 2]| {
            let length = shift[0].unsigned_abs().max(shift[1].unsigned_abs());
            still < self.plan.flat(length) * count as u32
        };
        let mut best = Best { shift: [0; 2], difference: still, enough: still };
        if !is_flat([0; 2]) {
            best.expect(count);
            // A shift that has been offered before would be refused.
            for (shift, known) in [(own, [0; 2]), (whole_px(shift), own)] {
                if shift != known {
                    best.offer(shift, self.difference(samples, shift, best.enough));
                }
            }
            self.offer_around::<{ TRACK_HOPS[0] as usize }>(&mut best, samples);
            self.offer_around::<{ TRACK_HOPS[1] as usize }>(&mut best, samples);
        }
        let found = if is_flat(best.shift) { [0; 2] } else { best.shift };
        if found != own {
            slot.velocity = [0, 1].map(|i| POSITION_UNIT * found[i] - shift[i]);
        }
    }
}

/// The shift of the least difference so far.
struct Best {
    shift: [i32; 2],
    difference: u32,
    /// What another one has to be below.
    enough: u32,
}

impl Best {
    /// Wants clearly less of those that are offered next, of which the first of the least is taken.
    #[inline(always)]
    fn expect(&mut self, samples: usize) {
        let clearly = self.difference - self.difference / TRACK_MARGIN;
        self.enough = clearly.saturating_sub(TRACK_NOISE * samples as u32);
    }

    #[inline(always)]
    fn offer(&mut self, shift: [i32; 2], difference: u32) {
        if difference < self.enough {
            *self = Self { shift, difference, enough: difference };
        }
    }
}

/// Shifts that are looked at together: four in each of three rows, and none to fill a vector.
const AROUND: usize = 16;
const _: () = assert!(3 * TRACK_HOPS[0] < LANES as i32 && 3 * TRACK_HOPS[1] < LANES as i32);

/// Column and row of a sample.
#[inline(always)]
fn place_of(place: u32) -> [i32; 2] {
    [(place & 0xffff) as i32, (place >> 16) as i32]
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
    let nx = tracking.grid.nx as usize;
    for (i, slot) in slots.iter_mut().enumerate().filter(|(_, slot)| slot.region != NONE) {
        let region = tracking.collect((i % nx, first + i / nx), slot.region, samples)?;
        tracking.track(slot, &region);
    }
    Ok(())
}
