// SPDX-License-Identifier: MPL-2.0
//! Clusters to the cells that they are over, on the CPU: the reference of the stage `temporal/rehome`.

use super::state::{NONE, SLOTS, Scratch, Slot, Source, State};
use super::{CLAIM_ROUNDS, PLACE, whole_px};
use crate::cpu::memory;
use crate::error::Result;

impl State {
    /// Moves every cluster into the cell that it is over.
    pub(super) fn rehome(&mut self) -> Result<()> {
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
