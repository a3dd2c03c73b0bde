// SPDX-License-Identifier: MPL-2.0
//! Identities of regions over time, on the CPU: the reference of the stage `temporal/identify`.

use super::matching::{index, key, number_new, refill};
use super::state::{NONE, Naming, Slot, State};
use super::{POSITION_UNIT, Track};
use crate::color::unpack;
use crate::error::Result;
use crate::image::Labels;

impl State {
    /// Gives every region its identity and leaves what the next frame needs.
    pub(super) fn identify(&mut self, features: &[u32], labels: &Labels<'_>, count: usize) -> Result<()> {
        let Self { naming, tracks, slots, largest, shift, .. } = self;
        std::mem::swap(tracks, &mut naming.last);
        refill(&mut naming.used, naming.last.len(), false)?;
        let unknown = Track { velocity: if self.warm { *shift } else { [0; 2] }, ..Track::default() };
        refill(tracks, count, unknown)?;
        if !self.warm {
            self.drift = [0; 2];
        }
        refill(&mut naming.owners, count, 0)?;
        if self.in_slots {
            for (k, main) in largest.iter().enumerate().filter(|(_, main)| main.size > 0) {
                let owner = &mut naming.owners[main.label as usize];
                *owner = (*owner).max(key(u64::from(main.size), k));
            }
            for (track, &owner) in tracks.iter_mut().zip(&naming.owners).filter(|(_, owner)| **owner != 0) {
                let slot = &slots[index(owner)];
                if slot.id != 0 {
                    track.id = slot.id;
                    track.age = naming.last[slot.region as usize].age + 1;
                    track.from = Some(slot.region);
                    naming.used[slot.region as usize] = true;
                }
            }
        }
        if self.warm {
            self.adopt(labels)?;
        }
        number_new(&mut self.tracks, &mut self.next_id);
        if self.in_slots {
            let Self { naming, tracks, slots, largest, shift, warm, .. } = self;
            for (k, slot) in slots.iter_mut().enumerate() {
                let main = largest[k];
                let owns = main.size > 0 && index(naming.owners[main.label as usize]) == k;
                slot.size = main.size;
                (slot.id, slot.region) =
                    if owns { (tracks[main.label as usize].id, main.label) } else { (0, NONE) };
            }
            for slot in slots.iter().filter(|slot| slot.region != NONE && *warm) {
                tracks[slot.region as usize].velocity = [0, 1].map(|i| slot.velocity[i] + shift[i]);
            }
            self.plant(features, labels)?;
        }
        let width = self.grid.geometry.width as usize;
        for (y, row) in self.labels.chunks_exact_mut(width).enumerate() {
            row.copy_from_slice(labels.row(y));
        }
        self.warm = true;
        self.in_slots = false;
        Ok(())
    }

    /// Regions without a cluster take slots nearby that no region belongs to.
    fn plant(&mut self, features: &[u32], labels: &Labels<'_>) -> Result<()> {
        let Self { grid, slots, tracks, naming, .. } = self;
        let Naming { owners, sums, claims, wanted, .. } = naming;
        let (width, height) = (grid.geometry.width as usize, grid.geometry.height as usize);
        let (nx, ny, step) = (grid.nx as i32, grid.ny as i32, grid.step as i32);
        refill(sums, owners.len(), [0; 6])?;
        for y in grid.samples(&(0..height)) {
            let row = labels.row(y);
            for x in grid.samples(&(0..width)) {
                let label = usize::from(row[x]);
                // What is outside of a mask has none.
                if owners.get(label) == Some(&0) {
                    let [a, b, c] = unpack(features[y * width + x]).map(u64::from);
                    for (sum, v) in sums[label].iter_mut().zip([1, x as u64, y as u64, a, b, c]) {
                        *sum += v;
                    }
                }
            }
        }
        refill(claims, slots.len(), 0)?;
        refill(wanted, owners.len(), None)?;
        for (l, sum) in sums.iter().enumerate().filter(|(_, sum)| sum[0] > 0) {
            let at = [1, 2].map(|i| ((32 * sum[i] + sum[0]) / (2 * sum[0])) as i32);
            let (gx, gy) =
                ((at[0] / POSITION_UNIT / step).min(nx - 1), (at[1] / POSITION_UNIT / step).min(ny - 1));
            let near = (gy - 1..=gy + 1)
                .flat_map(|y| (gx - 1..=gx + 1).map(move |x| (x, y)))
                .filter(|&(x, y)| x >= 0 && y >= 0 && x < nx && y < ny)
                .map(|(x, y)| (y * nx + x) as usize)
                .filter(|&k| slots[k].region == NONE)
                .min_by_key(|&k| {
                    let (columns, rows) = (grid.columns(k % nx as usize), grid.rows(k / nx as usize));
                    let center = [columns, rows].map(|r| POSITION_UNIT / 2 * (r.start + r.end - 1) as i32);
                    let d = [0, 1].map(|i| i64::from(at[i] - center[i]));
                    (d[0] * d[0] + d[1] * d[1], k)
                });
            wanted[l] = near.map(|k| {
                claims[k] = claims[k].max(key(sum[0], l));
                (k, at)
            });
        }
        for (l, sum) in sums.iter().enumerate() {
            let Some((k, position)) = wanted[l].filter(|&(k, _)| claims[k] == key(sum[0], l)) else {
                continue;
            };
            let color = [3, 4, 5].map(|i| ((2 * sum[i] + sum[0]) / (2 * sum[0])) as u32);
            let sample = u64::from(grid.sample_step());
            slots[k] = Slot {
                position,
                velocity: slots[k].velocity,
                id: tracks[l].id,
                size: (sum[0] * sample * sample) as u32,
                region: l as u32,
                reseeded: Some(color),
            };
        }
        Ok(())
    }

    /// Regions without an identity take over free ones.
    fn adopt(&mut self, labels: &Labels<'_>) -> Result<()> {
        let Self { grid, tracks, naming, moves, labels: before, .. } = self;
        let Naming { last, used, overlaps, .. } = naming;
        let (width, height) = (grid.geometry.width as usize, grid.geometry.height as usize);
        let (step, nx) = (grid.step as usize, grid.nx as usize);
        overlaps.clear();
        for y in grid.samples(&(0..height)) {
            overlaps.reserve(width.div_ceil(grid.sample_step() as usize))?;
            let (row, gy) = (labels.row(y), (y / step).min(grid.ny as usize - 1));
            for x in grid.samples(&(0..width)) {
                let label = usize::from(row[x]);
                if tracks.get(label).is_none_or(|track| track.id != 0) {
                    continue;
                }
                let [move_x, move_y] = moves[gy * nx + (x / step).min(nx - 1)];
                let from_x = (x as i32 - move_x).clamp(0, width as i32 - 1) as usize;
                let from_y = (y as i32 - move_y).clamp(0, height as i32 - 1) as usize;
                let earlier = usize::from(before[from_y * width + from_x]);
                if used.get(earlier) == Some(&false) {
                    overlaps.add(label as u32, earlier as u32, 1);
                }
            }
        }
        overlaps.unite(tracks, last, used)
    }
}
