// SPDX-License-Identifier: MPL-2.0
//! Motion of regions on the CPU: the reference of the stage `temporal/track`.

// Lanes run over several arrays at once; an iterator over one of them hides that.
#![allow(clippy::needless_range_loop)]

use super::predict::feature_difference;
use super::samples::{Lattice, Region, Sum, list_slots, position_of};
use super::state::{NONE, Samples, Slot, State};
use super::{POSITION_UNIT, Plan, TRACK_HOPS, TRACK_MARGIN, TRACK_NOISE, track_points, track_step, whole_px};
use crate::color::unpack;
use crate::cpu::Cpu;
use crate::cpu::level::LANES;
use crate::cpu::level::by_level;
use crate::error::Result;
use crate::parallel::prelude::*;

impl State {
    /// Tracks every slot's region from the last frame to this one.
    pub(super) fn track(&mut self, cpu: &Cpu, features: &[u32]) -> Result<()> {
        let Self { plan, grid, slots, tracks, labels, shift, features: last, scratch, .. } = self;
        if !plan.in_slots {
            return Ok(());
        }
        let nx = grid.nx as usize;
        list_slots(&mut scratch.slot_cells, slots, nx, tracks.len())?;
        let (step, most) = (track_step(grid), track_points(grid, grid.geometry));
        let lattice = Lattice {
            grid,
            step,
            most,
            slot_cells: &scratch.slot_cells,
            labels,
            last,
            now: features,
            shift: whole_px(*shift),
        };
        let tracking = Tracking { plan, lattice, shift: *shift };
        cpu.run(|| {
            let rows = (grid.ny as usize).div_ceil(scratch.samples.len());
            let parts = slots.par_chunks_mut(rows * nx).zip(&mut scratch.samples);
            parts
                .enumerate()
                .try_for_each(|(part, (slots, samples))| track_slots(&tracking, part * rows, slots, samples))
        })
    }
}

/// Inputs of the motion of regions.
struct Tracking<'a> {
    plan: &'a Plan,
    lattice: Lattice<'a>,
    /// Motion of the picture in 1/16 px.
    shift: [i32; 2],
}

impl Tracking<'_> {
    /// Sum of the samples' differences after a shift. Stops at `enough`.
    #[inline(always)]
    fn difference(&self, samples: &Region<'_>, shift: [i32; 2], enough: u32) -> u32 {
        if !samples.stays_inside(self.lattice.grid, shift, 0) {
            return self.difference_at_borders(samples, shift);
        }
        let by = shift[1] * self.lattice.grid.geometry.width as i32 + shift[0];
        let now = |at: i32| self.lattice.now[(at + by) as usize];
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

    /// Like [`Self::difference`] if samples fall outside of the frame, where the nearest pixel inside counts.
    #[cold]
    fn difference_at_borders(&self, samples: &Region<'_>, [dx, dy]: [i32; 2]) -> u32 {
        let (width, height) =
            (self.lattice.grid.geometry.width as i32, self.lattice.grid.geometry.height as i32);
        let differences = samples.positions.iter().zip(samples.features).map(|(&position, &last)| {
            let [x, y] = position_of(position);
            let to = (y + dy).clamp(0, height - 1) * width + (x + dx).clamp(0, width - 1);
            feature_difference(self.lattice.now[to as usize], last)
        });
        differences.sum()
    }

    /// Differences after the shifts a hop around one: three in each of three rows, the fourth of a row being void.
    /// `None` if samples may fall outside of the frame.
    #[inline(always)]
    fn differences_around<const HOP: usize>(
        &self,
        samples: &Region<'_>,
        shift: [i32; 2],
    ) -> Option<[u32; AROUND]> {
        let (hop, width) = (HOP as i32, self.lattice.grid.geometry.width as i32);
        if !samples.stays_inside(self.lattice.grid, shift, hop) {
            return None;
        }
        let by = (shift[1] - hop) * width + shift[0] - hop;
        let [a, b, c] = samples.channels;
        let mut sums = [0; AROUND];
        for (((&at, &a), &b), &c) in samples.at.iter().zip(a).zip(b).zip(c) {
            let mut here = [0; AROUND];
            for row in 0..3 {
                let from = (at + by) as usize + row * HOP * width as usize;
                let now: &[u32; LANES] = self.lattice.now.get(from..)?.first_chunk()?;
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

    /// Offers the shifts a hop around the best one.
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

    /// Sets the velocity of a slot's region, if the tracked motion differs from it.
    #[inline(always)]
    fn track(&self, slot: &mut Slot, at: (usize, usize), samples: &mut Samples) {
        let shift = self.shift;
        let own = whole_px([0, 1].map(|i| shift[i] + slot.velocity[i]));
        let sum = samples.sum(&self.lattice, at);
        let is_flat = |shift: [i32; 2]| {
            let length = shift[0].unsigned_abs().max(shift[1].unsigned_abs());
            sum.still() < self.plan.flat(length) * sum.count() as u32
        };
        let mut found = [0; 2];
        if !is_flat(found) {
            let best = self.search(own, sum, &samples.region(&self.lattice, at));
            found = if is_flat(best) { [0; 2] } else { best };
        }
        if found != own {
            slot.velocity = [0, 1].map(|i| POSITION_UNIT * found[i] - shift[i]);
        }
    }

    /// The best shift of a region, among zero, its own of the last frame, that of the picture, and shifts around the
    /// best of these.
    #[inline(always)]
    fn search(&self, own: [i32; 2], sum: Sum, region: &Region<'_>) -> [i32; 2] {
        let mut best = Best { shift: [0; 2], difference: sum.still(), enough: sum.still() };
        best.expect(sum.count());
        // These two shifts are offered anyway.
        if own != [0; 2] && own != self.lattice.shift {
            best.offer(own, self.difference(region, own, best.enough));
        }
        best.offer(self.lattice.shift, sum.moved());
        self.offer_around::<{ TRACK_HOPS[0] as usize }>(&mut best, region);
        self.offer_around::<{ TRACK_HOPS[1] as usize }>(&mut best, region);
        best.shift
    }
}

/// The shift of the least difference so far.
struct Best {
    shift: [i32; 2],
    difference: u32,
    /// Difference that the next shift has to be below.
    enough: u32,
}

impl Best {
    /// From here on a shift has to be clearly better than the best so far. Of equal ones the first wins.
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

/// Lanes for the shifts around one: four in each of three rows, padded to a whole vector.
const AROUND: usize = 16;
const _: () = assert!(3 * TRACK_HOPS[0] < LANES as i32 && 3 * TRACK_HOPS[1] < LANES as i32);

by_level! {
    /// Tracks the regions of some rows of slots, from row `first` on.
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
    let lattice = &tracking.lattice;
    let (nx, ny) = (lattice.grid.nx as usize, lattice.grid.ny as usize);
    samples.begin(lattice)?;
    samples.sweep(lattice, first.saturating_sub(1));
    if first > 0 {
        samples.sweep(lattice, first);
    }
    for (gy, slots) in (first..).zip(slots.chunks_mut(nx)) {
        if gy + 1 < ny {
            samples.sweep(lattice, gy + 1);
        }
        for (gx, slot) in slots.iter_mut().enumerate().filter(|(_, slot)| slot.region != NONE) {
            tracking.track(slot, (gx, gy), samples);
        }
    }
    Ok(())
}
