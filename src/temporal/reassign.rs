// SPDX-License-Identifier: MPL-2.0
//! Clusters to the cells that they are over, on the CPU: the reference of the stage `temporal/reassign`.

use super::state::{NONE, SLOTS, Scratch, Slot, Source, State};
use super::{CLAIM_ROUNDS, POSITION_UNIT, whole_px};
use crate::algo::grid::Grid;
use crate::cpu::memory;
use crate::error::Result;

/// The claims on a cell, round by round: of each round the largest, 0 where there was none.
type Claims = [u64; 1 + CLAIM_ROUNDS];

/// A cluster's claim on a cell: the larger one wins, of equal ones that of the lower slot.
fn claim(slot: usize, size: u32) -> u64 {
    u64::from(size) << 32 | u64::from(NONE - slot as u32)
}

/// The slot whose claim this is.
fn claimant(claim: u64) -> usize {
    (NONE - claim as u32) as usize
}

/// The center of a cell in 1/16 px.
fn center(grid: &Grid, cell: i32) -> [i32; 2] {
    let nx = grid.nx as i32;
    let (columns, rows) = (grid.columns((cell % nx) as usize), grid.rows((cell / nx) as usize));
    [columns, rows].map(|r| POSITION_UNIT / 2 * (r.start + r.end - 1) as i32)
}

/// Whole cells that all slots move by: the picture's motion so far, of which `drift` keeps what is left.
fn whole_cells(grid: &Grid, drift: &mut [i32; 2], shift: [i32; 2]) -> [i32; 2] {
    let cell = POSITION_UNIT * grid.step as i32;
    [0, 1].map(|i| {
        drift[i] += shift[i];
        let cells = (2 * drift[i] + cell).div_euclid(2 * cell);
        drift[i] -= cells * cell;
        cells
    })
}

impl State {
    /// Moves every cluster into the cell that it is over.
    pub(super) fn reassign(&mut self) -> Result<()> {
        let along = whole_cells(&self.grid, &mut self.drift, self.shift);
        memory::refill(&mut self.scratch.claims, SLOTS, self.slots.len(), Claims::default())?;
        memory::refill(&mut self.scratch.wanted, SLOTS, self.slots.len(), None)?;
        self.claim_cells(along);
        for round in 1..=CLAIM_ROUNDS {
            self.claim_free_cells(round);
        }
        self.take_cells()
    }

    /// Where a slot's cluster is now, in 1/16 px.
    fn position(shift: [i32; 2], slot: &Slot) -> [i32; 2] {
        [0, 1].map(|i| slot.position[i] + shift[i] + slot.velocity[i])
    }

    /// Every cluster inside the frame claims a cell: the own one, `along` the picture's motion, unless it has left that for good, or
    /// else the one that it is over.
    fn claim_cells(&mut self, along: [i32; 2]) {
        let Self { grid, slots, shift, scratch: Scratch { claims, wanted, .. }, .. } = self;
        let (nx, ny, step) = (grid.nx as i32, grid.ny as i32, grid.step as i32);
        let most = [grid.geometry.width, grid.geometry.height].map(|side| POSITION_UNIT * (side as i32 - 1));
        let stays = 9 * POSITION_UNIT * step / 10;
        for (h, slot) in slots.iter().enumerate().filter(|(_, slot)| slot.size > 0) {
            let at = Self::position(*shift, slot);
            if (0..2).any(|i| at[i] < 0 || at[i] > most[i]) {
                continue;
            }
            let (x, y) = (h as i32 % nx + along[0], h as i32 / nx + along[1]);
            let inside = x >= 0 && y >= 0 && x < nx && y < ny;
            let own = if inside { center(grid, y * nx + x) } else { [0; 2] };
            let cell = if inside && (0..2).all(|i| (at[i] - own[i]).abs() <= stays) {
                y * nx + x
            } else {
                (at[1] / POSITION_UNIT / step).min(ny - 1) * nx + (at[0] / POSITION_UNIT / step).min(nx - 1)
            };
            wanted[h] = Some(cell);
            let best = &mut claims[cell as usize][0];
            *best = (*best).max(claim(h, slot.size));
        }
    }

    /// Every cluster whose claims have failed so far claims the nearest free cell within reach; of equally near ones the first.
    fn claim_free_cells(&mut self, round: usize) {
        let Self { plan, grid, slots, shift, scratch: Scratch { claims, wanted, .. }, .. } = self;
        let (nx, ny) = (grid.nx as i32, grid.ny as i32);
        for (h, slot) in slots.iter().enumerate() {
            let Some(cell) = wanted[h] else { continue };
            if claims[cell as usize][..round].contains(&claim(h, slot.size)) {
                continue;
            }
            let at = Self::position(*shift, slot);
            let (gx, gy) = (cell % nx, cell / nx);
            let free = (gy - 2..=gy + 2)
                .flat_map(|y| (gx - 2..=gx + 2).map(move |x| (x, y)))
                .filter(|&(x, y)| x >= 0 && y >= 0 && x < nx && y < ny)
                .map(|(x, y)| y * nx + x)
                .filter(|&c| claims[c as usize][..round].iter().all(|&claim| claim == 0))
                .filter(|&c| (0..2).all(|i| at[i].abs_diff(center(grid, c)[i]) <= plan.claim_reach));
            let nearest = free.min_by_key(|&c| {
                let center = center(grid, c);
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

    /// Gives every cell to the first round's claim on it, with what the algorithm and predictions need to know.
    fn take_cells(&mut self) -> Result<()> {
        let Self { grid, slots, sources, moves, cells, shift, tracks, scratch, .. } = self;
        let nx = grid.nx as i32;
        memory::refill(cells, SLOTS, tracks.len(), NONE)?;
        for (c, claims) in scratch.claims.iter().enumerate() {
            let winner = claims.iter().find(|&&claim| claim != 0).map(|&claim| claimant(claim));
            sources[c] = winner.map(|h| {
                if slots[h].region != NONE {
                    cells[slots[h].region as usize] = (c as i32 / nx) as u32 * 65536 + (c as i32 % nx) as u32;
                }
                Source {
                    slot: h,
                    shift: [0, 1].map(|i| shift[i] + slots[h].velocity[i]),
                    reseeded: slots[h].reseeded.map(|color| (color, slots[h].position)),
                }
            });
            let motion = sources[c].map_or(*shift, |source| source.shift);
            moves[c] = whole_px(motion);
        }
        Ok(())
    }
}
