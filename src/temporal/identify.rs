// SPDX-License-Identifier: MPL-2.0
//! Identities of regions over time, on the CPU: the reference of the stage `temporal/identify`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::matching::{Pair, REGIONS, index, key, number_new, refill};
use super::predict::feature_difference;
use super::state::{BAND, NONE, Naming, Slot, State};
use super::{POSITION_UNIT, STILL, Track};
use crate::color::unpack;
use crate::cpu::memory::Array;
use crate::cpu::{Cpu, atomic, memory};
use crate::error::Result;
use crate::image::{Labels, NO_LABEL};
use crate::parallel::prelude::*;

/// Kinds of regions that samples are measured for: those without a cluster, and those without an identity.
const UNOWNED: u8 = 1;
const UNNAMED: u8 = 2;

/// Fewest regions or slots per task.
const AT_ONCE: usize = 2048;

/// Iterates in parallel over the regions that clusters own, with their owners.
fn owned<'a>(
    tracks: &'a mut [Track],
    owners: &'a [u64],
) -> impl ParallelIterator<Item = (&'a mut Track, usize)> {
    let all = tracks.par_iter_mut().zip(owners).with_min_len(AT_ONCE);
    all.filter(|(_, owner)| **owner != 0).map(|(track, &owner)| (track, index(owner)))
}

/// Loads the sums over the samples of a region.
fn loaded(sums: &[AtomicU64; 6]) -> [u64; 6] {
    sums.each_ref().map(|sum| sum.load(Relaxed))
}

/// Centroid of a region's samples in 1/16 px; `None` without samples.
fn centroid(sum: &[u64; 6]) -> Option<[i32; 2]> {
    (sum[0] > 0).then(|| [1, 2].map(|i| ((32 * sum[i] + sum[0]) / (2 * sum[0])) as i32))
}

impl State {
    /// Gives every region its identity, and stores the state for the next frame.
    pub(super) fn identify(
        &mut self,
        cpu: &Cpu,
        features: &[u32],
        labels: &Labels<'_>,
        count: usize,
    ) -> Result<()> {
        let Self { naming, tracks, slots, largest, shift, .. } = self;
        std::mem::swap(tracks, &mut naming.last);
        refill(&mut naming.used, naming.last.len(), false)?;
        let unknown = Track { velocity: if self.warm { *shift } else { [0; 2] }, ..Track::default() };
        refill(tracks, count, unknown)?;
        refill(&mut naming.owners, count, 0)?;
        if self.in_slots {
            for (k, main) in largest.iter().enumerate().filter(|(_, main)| main.size > 0) {
                let owner = &mut naming.owners[main.label as usize];
                *owner = (*owner).max(key(u64::from(main.size), k));
            }
            let Naming { last, used, owners, .. } = naming;
            let (last, slots) = (&*last, &*slots);
            cpu.run(|| {
                owned(tracks, owners).for_each(|(track, owner)| {
                    let slot = &slots[owner];
                    if slot.id != 0 {
                        track.id = slot.id;
                        track.age = last[slot.region as usize].age + 1;
                        track.from = Some(slot.region);
                    }
                });
            });
            tracks.iter().filter_map(|track| track.from).for_each(|region| used[region as usize] = true);
        }
        self.measure_samples(cpu, features, labels)?;
        let Naming { last, used, overlaps, .. } = &mut self.naming;
        overlaps.unite(&mut self.tracks, last, used)?;
        number_new(&mut self.tracks, &mut self.next_id);
        if self.in_slots {
            let Self { naming, tracks, slots, largest, shift, warm, .. } = self;
            let owners = &naming.owners;
            cpu.run(|| {
                let named = &*tracks;
                let all = slots.par_iter_mut().zip(&largest[..]).with_min_len(AT_ONCE).enumerate();
                all.for_each(|(k, (slot, main))| {
                    let owns = main.size > 0 && index(owners[main.label as usize]) == k;
                    slot.size = main.size;
                    (slot.id, slot.region) =
                        if owns { (named[main.label as usize].id, main.label) } else { (0, NONE) };
                });
                if *warm {
                    owned(tracks, owners).for_each(|(track, owner)| {
                        track.velocity = [0, 1].map(|i| slots[owner].velocity[i] + shift[i]);
                    });
                }
            });
            self.fill_slots()?;
            self.number_parts();
            if self.warm && self.plan.in_regions {
                self.find_origins(features);
            }
        }
        let width = self.grid.geometry.width as usize;
        cpu.run(|| {
            self.labels.par_chunks_exact_mut(width).with_min_len(BAND).enumerate().for_each(|(y, row)| {
                row.copy_from_slice(labels.row(y));
            });
        });
        self.warm = true;
        self.in_slots = false;
        Ok(())
    }

    /// Measures the samples of regions without a cluster, and the overlaps of regions without an identity with earlier
    /// ones whose identity is free.
    fn measure_samples(&mut self, cpu: &Cpu, features: &[u32], labels: &Labels<'_>) -> Result<()> {
        let Self { naming: Naming { owners, overlaps, unowned, kinds, sums, .. }, tracks, .. } = self;
        overlaps.clear();
        unowned.clear();
        memory::reserve(unowned, REGIONS, tracks.len())?;
        memory::lengthen(sums, REGIONS, tracks.len())?;
        let mut any = false;
        for (l, track) in tracks.iter().enumerate() {
            let is_unowned = self.in_slots && owners[l] == 0;
            let is_unnamed = self.warm && track.id == 0;
            kinds[l] = UNOWNED * u8::from(is_unowned) + UNNAMED * u8::from(is_unnamed);
            any |= kinds[l] != 0;
            if is_unowned {
                unowned.push(l as u32);
                sums[l] = Default::default();
            }
        }
        if !any {
            return Ok(());
        }
        let mut bands = std::mem::take(&mut self.naming.bands);
        let (state, height) = (&*self, self.grid.geometry.height as usize);
        let alone = cpu.threads() == 1;
        let done = cpu.run(|| {
            bands.par_iter_mut().enumerate().try_for_each(|(i, pairs)| {
                pairs.clear();
                let rows = i * BAND..height.min((i + 1) * BAND);
                state
                    .grid
                    .samples(&rows)
                    .try_for_each(|y| state.measure_row(y, features, labels, pairs, alone))
            })
        });
        self.naming.bands = bands;
        done?;
        let Naming { bands, overlaps, .. } = &mut self.naming;
        bands.iter().try_for_each(|pairs| overlaps.append(pairs))
    }

    /// Measures the samples of one row.
    fn measure_row(
        &self,
        y: usize,
        features: &[u32],
        labels: &Labels<'_>,
        pairs: &mut Array<Pair>,
        alone: bool,
    ) -> Result<()> {
        let Self { grid, naming: Naming { kinds, sums, used, .. }, moves, labels: before, .. } = self;
        let (width, height) = (grid.geometry.width as usize, grid.geometry.height as usize);
        let (step, nx) = (grid.step as usize, grid.nx as usize);
        let (row, gy) = (labels.row(y), (y / step).min(grid.ny as usize - 1));
        memory::reserve(pairs, REGIONS, row.len().div_ceil(grid.sample_step() as usize))?;
        for x in grid.samples(&(0..width)) {
            // Pixels outside of a mask are of no kind.
            let (label, kind) = (usize::from(row[x]), kinds[usize::from(row[x])]);
            if kind & UNOWNED != 0 {
                let [a, b, c] = unpack(features[y * width + x]).map(u64::from);
                for (sum, v) in sums[label].iter().zip([1, x as u64, y as u64, a, b, c]) {
                    atomic::add(sum, v, alone);
                }
            }
            if kind & UNNAMED != 0 {
                let [move_x, move_y] = moves[gy * nx + (x / step).min(nx - 1)];
                let from_x = (x as i32 - move_x).clamp(0, width as i32 - 1) as usize;
                let from_y = (y as i32 - move_y).clamp(0, height as i32 - 1) as usize;
                let earlier = usize::from(before[from_y * width + from_x]);
                if used.get(earlier) == Some(&false) {
                    match pairs.last_mut() {
                        Some(last) if (last.0, last.1) == (label as u32, earlier as u32) => last.2 += 1,
                        _ => pairs.push((label as u32, earlier as u32, 1)),
                    }
                }
            }
        }
        Ok(())
    }

    /// Sets the predecessor of each new region: the earlier region at its center.
    fn find_origins(&mut self, features: &[u32]) {
        let Self { grid, slots, tracks, naming, moves, labels: before, features: last, .. } = self;
        let (width, height) = (grid.geometry.width as i32, grid.geometry.height as i32);
        let (step, nx, ny) = (grid.step as i32, grid.nx as i32, grid.ny as i32);
        let pixel = |x: i32, y: i32| (y.clamp(0, height - 1) * width + x.clamp(0, width - 1)) as usize;
        for (l, track) in tracks.iter_mut().enumerate().filter(|(_, track)| track.from.is_none()) {
            let center = match naming.owners[l] {
                0 => centroid(&loaded(&naming.sums[l])),
                owner => Some(slots[index(owner)].position),
            };
            let Some(center) = center else { continue };
            let [x, y] = center.map(|v| v / POSITION_UNIT);
            let (x, y) = (x.clamp(0, width - 1), y.clamp(0, height - 1));
            let [move_x, move_y] = moves[((y / step).min(ny - 1) * nx + (x / step).min(nx - 1)) as usize];
            let still = pixel(x, y);
            let stays = feature_difference(features[still], last[still]) < STILL;
            let earlier = before[if stays { still } else { pixel(x - move_x, y - move_y) }];
            track.from = (earlier != NO_LABEL).then_some(earlier.into());
        }
    }

    /// Makes regions without a slot parts of clusters.
    fn number_parts(&mut self) {
        let Self { slots, tracks, naming, part_claims, part_clusters, plan, .. } = self;
        part_claims.fill(0);
        if plan.parts == 0 {
            return;
        }
        for (&l, wish) in naming.unowned.iter().zip(&naming.wanted) {
            let samples = loaded(&naming.sums[l as usize])[0];
            let planted = wish.is_some_and(|(k, _)| slots[k].region == l);
            if samples == 0 || planted {
                continue;
            }
            let slot = usize::from(part_clusters[l as usize]) % slots.len();
            let number = tracks[l as usize].id % plan.parts;
            let claim = &mut part_claims[slot * plan.parts as usize + number as usize];
            *claim = (*claim).max(key(samples, l as usize));
        }
    }

    /// Assigns regions without a cluster to nearby slots without a region.
    fn fill_slots(&mut self) -> Result<()> {
        let Self { grid, slots, tracks, naming, .. } = self;
        let Naming { sums, claims, wanted, unowned, .. } = naming;
        let (nx, ny, step) = (grid.nx as i32, grid.ny as i32, grid.step as i32);
        refill(claims, slots.len(), 0)?;
        wanted.clear();
        memory::reserve(wanted, REGIONS, unowned.len())?;
        let sums = |l: u32| loaded(&sums[l as usize]);
        for &l in &*unowned {
            let sum = sums(l);
            let Some(at) = centroid(&sum) else {
                wanted.push(None);
                continue;
            };
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
            wanted.push(near.map(|k| {
                claims[k] = claims[k].max(key(sum[0], l as usize));
                (k, at)
            }));
        }
        for (&l, wish) in unowned.iter().zip(&*wanted) {
            let sum = sums(l);
            let Some((k, position)) = wish.filter(|&(k, _)| claims[k] == key(sum[0], l as usize)) else {
                continue;
            };
            let color = [3, 4, 5].map(|i| ((2 * sum[i] + sum[0]) / (2 * sum[0])) as u32);
            let sample = u64::from(grid.sample_step());
            slots[k] = Slot {
                position,
                velocity: slots[k].velocity,
                id: tracks[l as usize].id,
                size: (sum[0] * sample * sample) as u32,
                region: l,
                reseeded: Some(color),
            };
        }
        Ok(())
    }
}
