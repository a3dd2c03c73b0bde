// SPDX-License-Identifier: MPL-2.0
//! Motion of the picture and of its regions, on the CPU: the reference of the stages `temporal/motion` and `temporal/track`.

use rayon::prelude::*;

use super::cpu::{NONE, Slot, State};
use super::look_back::feature_difference;
use super::{
    PLACE, TRACK_FLAT, TRACK_FLAT_PX, TRACK_HOPS, TRACK_MARGIN, TRACK_NOISE, shift_of, track_step, whole_px,
};
use crate::color::unpack;
use crate::cpu::Cpu;

/// A sample of a region: where it was in the last frame, and its features there.
pub(super) type Sample = (i32, i32, u32);

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
}
