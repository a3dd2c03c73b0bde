// SPDX-License-Identifier: MPL-2.0
//! Reassigns clusters to the cells that they are over, on the CPU: the reference of the stage `temporal/reassign`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::matching::index;
use super::state::{ClusterSource, NONE, Part, SLOTS, Scratch, Slot, State};
use super::{CLAIM_ROUNDS, POSITION_UNIT, whole_px};
use crate::cpu::{Cpu, atomic, memory};
use crate::error::Result;
use crate::grid::Grid;
use crate::image::NO_LABEL;
use crate::parallel::prelude::*;

/// Rows of cells per task.
const ROWS: usize = 2;

/// A cluster's claim on a cell: the largest cluster wins, of equal ones the lowest slot.
fn claim(slot: usize, size: u32) -> u64 {
    u64::from(size) << 32 | u64::from(NONE - slot as u32)
}

/// The slot that made a claim.
fn claimant(claim: u64) -> usize {
    (NONE - claim as u32) as usize
}

/// The center of a cell in 1/16 px.
fn center(grid: &Grid, x: i32, y: i32) -> [i32; 2] {
    [grid.columns(x as usize), grid.rows(y as usize)]
        .map(|r| POSITION_UNIT / 2 * (r.start + r.end - 1) as i32)
}

/// Whole cells that all slots move by: those that clusters are, in the mean, from the centers of their cells once they have moved
/// with the picture.
fn whole_cells(grid: &Grid, slots: &[Slot], shift: [i32; 2]) -> [i32; 2] {
    let cell = POSITION_UNIT * grid.step as i32;
    let (mut count, mut sum) = (0, [0; 2]);
    // A region without a cluster that was given a slot says nothing of how clusters have moved.
    for (k, slot) in slots.iter().enumerate().filter(|(_, s)| s.region != NONE && s.reseeded.is_none()) {
        let center = center(grid, k as i32 % grid.nx as i32, k as i32 / grid.nx as i32);
        (0..2).for_each(|i| sum[i] += i64::from(slot.position[i] - center[i]));
        count += 1;
    }
    [0, 1].map(|i| {
        let offset = sum[i].div_euclid(count.max(1)) as i32 + shift[i];
        (2 * offset + cell).div_euclid(2 * cell)
    })
}

impl State {
    /// Moves every cluster into the cell that it is over.
    pub(super) fn reassign(&mut self, cpu: &Cpu) -> Result<()> {
        let along = whole_cells(&self.grid, &self.slots, self.shift);
        let alone = cpu.threads() == 1;
        memory::lengthen(&mut self.scratch.claims, SLOTS, self.slots.len())?;
        cpu.run(|| {
            self.claim_cells(along, alone);
            for round in 1..=CLAIM_ROUNDS {
                self.claim_free_cells(round, alone);
            }
            self.settle_claims(along);
        });
        self.find_parts()
    }

    /// Lists the parts of each cell's cluster.
    fn find_parts(&mut self) -> Result<()> {
        let Self { sources, part_claims, parts, parts_from, plan, .. } = self;
        parts.clear();
        for (cell, source) in sources.iter().enumerate() {
            parts_from[cell] = parts.len() as u32;
            let Some(source) = source else { continue };
            let most = plan.parts as usize;
            let claims = part_claims[source.slot * most..][..most].iter();
            memory::reserve(parts, SLOTS, most)?;
            parts.extend(
                claims
                    .zip(1..)
                    .filter(|(claim, _)| **claim != 0)
                    .map(|(&claim, number)| Part { region: index(claim) as u16, number }),
            );
        }
        parts_from[sources.len()] = parts.len() as u32;
        Ok(())
    }

    /// Position of a slot's cluster in this frame, in 1/16 px.
    fn position(shift: [i32; 2], slot: &Slot) -> [i32; 2] {
        [0, 1].map(|i| slot.position[i] + shift[i] + slot.velocity[i])
    }

    /// Every cluster inside the frame claims a cell: its own, moved `along` with the picture, until it has clearly left
    /// that; then the one that it is over.
    fn claim_cells(&mut self, along: [i32; 2], alone: bool) {
        let Self { grid, slots, shift, scratch: Scratch { claims, wanted, .. }, .. } = self;
        let (nx, ny, step) = (grid.nx as i32, grid.ny as i32, grid.step as i32);
        let most = [grid.geometry.width, grid.geometry.height].map(|side| POSITION_UNIT * (side as i32 - 1));
        let stays = 9 * POSITION_UNIT * step / 10;
        let claim_cell = |h: usize, x: i32, y: i32, slot: &Slot| {
            let at = Self::position(*shift, slot);
            if slot.size == 0 || slot.region == NONE || (0..2).any(|i| at[i] < 0 || at[i] > most[i]) {
                return None;
            }
            let (x, y) = (x + along[0], y + along[1]);
            let inside = x >= 0 && y >= 0 && x < nx && y < ny;
            let own = if inside { center(grid, x, y) } else { [0; 2] };
            let cell = if inside && (0..2).all(|i| (at[i] - own[i]).abs() <= stays) {
                y * nx + x
            } else {
                (at[1] / POSITION_UNIT / step).min(ny - 1) * nx + (at[0] / POSITION_UNIT / step).min(nx - 1)
            };
            atomic::raise(&claims[cell as usize][0], claim(h, slot.size), alone);
            Some(cell)
        };
        let rows = slots.par_chunks(nx as usize).zip(wanted.par_chunks_mut(nx as usize));
        rows.with_min_len(ROWS).enumerate().for_each(|(y, (slots, wanted))| {
            for (x, (slot, wanted)) in slots.iter().zip(wanted).enumerate() {
                *wanted = claim_cell(y * nx as usize + x, x as i32, y as i32, slot);
            }
        });
    }

    /// Every cluster whose claims have failed so far claims the nearest free cell within reach; of equally near ones
    /// the first.
    fn claim_free_cells(&mut self, round: usize, alone: bool) {
        let Self { plan, grid, slots, shift, scratch: Scratch { claims, wanted, .. }, .. } = self;
        let (nx, ny) = (grid.nx as i32, grid.ny as i32);
        let earlier = |cell: i32| claims[cell as usize][..round].iter().map(|claim| claim.load(Relaxed));
        let claim_near = |h: usize, slot: &Slot, cell: i32| {
            let own = claim(h, slot.size);
            if earlier(cell).any(|claim| claim == own) {
                return Some(cell);
            }
            let at = Self::position(*shift, slot);
            let (gx, gy) = (cell % nx, cell / nx);
            let nearest = (gy - 2..=gy + 2)
                .flat_map(|y| (gx - 2..=gx + 2).map(move |x| (x, y)))
                .filter(|&(x, y)| x >= 0 && y >= 0 && x < nx && y < ny)
                .filter(|&(x, y)| earlier(y * nx + x).all(|claim| claim == 0))
                .map(|(x, y)| (center(grid, x, y), y * nx + x))
                .filter(|(center, _)| (0..2).all(|i| at[i].abs_diff(center[i]) <= plan.claim_reach))
                .map(|(center, c)| {
                    let d = [0, 1].map(|i| i64::from(at[i] - center[i]));
                    (d[0] * d[0] + d[1] * d[1], c)
                })
                .min()?;
            atomic::raise(&claims[nearest.1 as usize][round], own, alone);
            Some(nearest.1)
        };
        let slots = slots.par_iter().zip(wanted.par_iter_mut()).with_min_len(ROWS * nx as usize);
        slots.enumerate().for_each(|(h, (slot, wanted))| {
            *wanted = wanted.and_then(|cell| claim_near(h, slot, cell));
        });
    }

    /// Gives every cell to the claim of its first round, with the data that the algorithm and predictions need, and
    /// clears all claims.
    fn settle_claims(&mut self, along: [i32; 2]) {
        let Self { grid, slots, sources, released, moves, regions, shift, scratch, .. } = self;
        let nx = grid.nx as usize;
        // The slot that the cell would have if all only moved along.
        let is_held = |c: usize| {
            let (x, y) = ((c % nx) as i32 - along[0], (c / nx) as i32 - along[1]);
            let inside = x >= 0 && y >= 0 && x < grid.nx as i32 && y < grid.ny as i32;
            inside && slots[y as usize * nx + x as usize].region != NONE
        };
        let cell = |claims: &mut [AtomicU64; 1 + CLAIM_ROUNDS]| {
            let winner =
                std::mem::take(claims).map(AtomicU64::into_inner).into_iter().find(|&claim| claim != 0);
            let source = winner.map(claimant).map(|h| ClusterSource {
                slot: h,
                shift: [0, 1].map(|i| shift[i] + slots[h].velocity[i]),
                reseeded: slots[h].reseeded.map(|color| (color, slots[h].position)),
            });
            let region = source.map(|source| slots[source.slot].region).filter(|&region| region != NONE);
            let motion = whole_px(source.map_or(*shift, |source| source.shift));
            (source, motion, region.map_or(NO_LABEL, |region| region as u16))
        };
        let all = sources.par_iter_mut().zip(moves.par_iter_mut()).zip(regions.par_iter_mut());
        let all = all.zip(released.par_iter_mut()).zip(scratch.claims.par_iter_mut());
        all.with_min_len(ROWS * nx).enumerate().for_each(
            |(c, ((((source, motion), region), released), claims))| {
                (*source, *motion, *region) = cell(claims);
                *released = source.is_none() && !is_held(c);
            },
        );
    }
}
