// SPDX-License-Identifier: MPL-2.0
//! Samples of the last frame's regions on the CPU, collected for `motion.rs` in one pass over the lattice.
//!
//! A slot's region has samples in the 3x3 cells around the slot. So the samples of a row of slots are complete once the
//! row of cells below it is swept, and three rows of slots are collected at a time.

// Lanes run over several arrays at once; an iterator over one of them hides that.
#![allow(clippy::needless_range_loop)]

use super::predict::feature_difference;
use super::state::{NONE, SLOTS, Samples, Slot};
use crate::color::unpack;
use crate::cpu::chunk;
use crate::cpu::level::LANES;
use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::grid::Grid;

/// Rows of slots that are collected at a time. A new row reuses the memory of the third above it.
const SLOT_ROWS: usize = 3;
/// Bits that name a row or a column of samples: the 3x3 cells have at most 37.
const SIDE_BITS: u32 = 6;
const SIDE: u32 = (1 << SIDE_BITS) - 1;
/// Name of the samples in errors about memory.
const SAMPLES: &str = "samples of regions";

/// Sums over the samples of a slot's region, in one word: their number, their difference from this frame's pixels at
/// the same position, and from the pixels that the picture's motion leads to. 37 x 37 times the largest difference are
/// below 2^24.
#[derive(Clone, Copy)]
pub(super) struct Sum(u64);

impl Sum {
    const STILL: u32 = 16;
    const MOVED: u32 = 40;

    #[inline(always)]
    fn of_one(still: u32, moved: u32) -> u64 {
        1 | u64::from(still) << Self::STILL | u64::from(moved) << Self::MOVED
    }

    #[inline(always)]
    pub fn count(self) -> usize {
        self.0 as usize & 0xffff
    }

    #[inline(always)]
    pub fn still(self) -> u32 {
        (self.0 >> Self::STILL) as u32 & 0xff_ffff
    }

    #[inline(always)]
    pub fn moved(self) -> u32 {
        (self.0 >> Self::MOVED) as u32
    }
}

/// Lists the slot of each of the last frame's regions: column in the lower and row in the upper half, each plus one.
/// Regions without a slot get a position far from all.
pub(super) fn list_slots(
    slot_cells: &mut Array<u32>,
    slots: &[Slot],
    nx: usize,
    regions: usize,
) -> Result<()> {
    memory::refill(slot_cells, SLOTS, regions, u32::MAX)?;
    for (gy, row) in slots.chunks(nx).enumerate() {
        for (gx, slot) in row.iter().enumerate().filter(|(_, slot)| slot.region != NONE) {
            slot_cells[slot.region as usize] = ((gy + 1) << 16 | (gx + 1)) as u32;
        }
    }
    Ok(())
}

/// Inputs of sampling.
pub(super) struct Lattice<'a> {
    pub grid: &'a Grid,
    /// Distance of samples, and most samples of a region.
    pub step: usize,
    pub most: usize,
    /// See [`list_slots`].
    pub slot_cells: &'a [u32],
    /// The last frame's labels and features.
    pub labels: &'a [u16],
    pub last: &'a [u32],
    /// This frame's features.
    pub now: &'a [u32],
    /// Motion of the picture in whole px.
    pub shift: [i32; 2],
}

impl Lattice<'_> {
    fn width(&self) -> usize {
        self.grid.geometry.width as usize
    }

    /// Samples in a row.
    fn columns(&self) -> usize {
        self.width().div_ceil(self.step)
    }

    /// Writes the word that each sample of row `y` adds to the sum of its region.
    #[inline(always)]
    fn compare(&self, y: usize, sums: &mut [u64]) {
        // With a constant step the compiler loads vectors.
        if self.step == 4 { self.compare_spaced(y, 4, sums) } else { self.compare_spaced(y, self.step, sums) }
    }

    #[inline(always)]
    fn compare_spaced(&self, y: usize, step: usize, sums: &mut [u64]) {
        let (width, height) = (self.width(), self.grid.geometry.height as i32);
        let to = (y as i32 + self.shift[1]).clamp(0, height - 1) as usize;
        let [last, still, moved] =
            [(self.last, y), (self.now, y), (self.now, to)].map(|(all, y)| &all[y * width..][..width]);
        for (i, sums) in sums.chunks_mut(LANES).enumerate() {
            let x = (i * LANES * step) as i32;
            let (last, still) = (spaced(last, x, step), spaced(still, x, step));
            let moved = if self.shift == [0; 2] { still } else { spaced(moved, x + self.shift[0], step) };
            let mut own = [0; LANES];
            for lane in 0..LANES {
                let (still, moved) = (
                    feature_difference(still[lane], last[lane]),
                    feature_difference(moved[lane], last[lane]),
                );
                own[lane] = Sum::of_one(still, moved);
            }
            chunk::write(&own, sums);
        }
    }
}

/// Pixels of a row, `step` apart; beyond its ends the nearest one in it.
#[inline(always)]
fn spaced(row: &[u32], x: i32, step: usize) -> [u32; LANES] {
    let inside = usize::try_from(x).ok().and_then(|x| row.get(x..x + LANES * step));
    let Some(pixels) = inside else { return spaced_at_end(row, x, step) };
    std::array::from_fn(|lane| pixels[lane * step])
}

#[cold]
fn spaced_at_end(row: &[u32], x: i32, step: usize) -> [u32; LANES] {
    std::array::from_fn(|lane| row[(x + (lane * step) as i32).clamp(0, row.len() as i32 - 1) as usize])
}

/// Samples of a region, in raster order.
pub(super) struct Region<'a> {
    /// Row in the upper half, and column.
    pub positions: &'a [u32],
    pub at: &'a [i32],
    /// The last frame's features there, and their channels.
    pub features: &'a [u32],
    pub channels: [&'a [u32]; 3],
    /// First and last column, and first and last row.
    columns: [i32; 2],
    rows: [i32; 2],
}

impl Region<'_> {
    /// Returns true if all samples stay inside of the frame after a shift, by at least `margin` px.
    #[inline(always)]
    pub fn stays_inside(&self, grid: &Grid, [dx, dy]: [i32; 2], around: i32) -> bool {
        let inside = |[first, last]: [i32; 2], by: i32, side: u32| {
            first + by - around >= 0 && last + by + around < side as i32
        };
        inside(self.columns, dx, grid.geometry.width) && inside(self.rows, dy, grid.geometry.height)
    }
}

/// Bounds of an empty region, to which a shift can still be added.
const NOWHERE: [i32; 2] = [i32::MAX / 2, i32::MIN / 2];

impl Samples {
    /// Allocates memory, and discards collected rows.
    pub fn begin(&mut self, lattice: &Lattice<'_>) -> Result<()> {
        let (nx, most, columns) = (lattice.grid.nx as usize, lattice.most, lattice.columns());
        memory::refill(&mut self.sums, SAMPLES, SLOT_ROWS * nx, 0)?;
        memory::lengthen(&mut self.codes, SAMPLES, SLOT_ROWS * nx * most)?;
        memory::lengthen(&mut self.row, SAMPLES, columns)?;
        self.cells.clear();
        memory::reserve(&mut self.cells, SAMPLES, columns)?;
        for gx in 0..nx {
            let columns = lattice.grid.columns(gx);
            let samples = columns.end.div_ceil(lattice.step) - columns.start.div_ceil(lattice.step);
            self.cells.extend(std::iter::repeat_n(gx as u16, samples));
        }
        for all in [&mut self.positions, &mut self.features].into_iter().chain(&mut self.channels) {
            memory::lengthen(all, SAMPLES, most)?;
        }
        memory::lengthen(&mut self.at, SAMPLES, most)
    }

    /// Adds the samples in a row of cells to those of their regions.
    #[inline(always)]
    pub fn sweep(&mut self, lattice: &Lattice<'_>, gy: usize) {
        let nx = lattice.grid.nx as usize;
        // The row of slots that begins reuses the memory of a finished one.
        self.sums[slot_row(gy + 1) * nx..][..nx].fill(0);
        let rows = lattice.grid.rows(gy);
        for y in (rows.start.next_multiple_of(lattice.step)..rows.end).step_by(lattice.step) {
            self.sweep_row(lattice, gy, y);
        }
    }

    #[inline(always)]
    fn sweep_row(&mut self, lattice: &Lattice<'_>, gy: usize, y: usize) {
        let Self { sums, codes, row, cells, .. } = self;
        let (nx, step, most) = (lattice.grid.nx as usize, lattice.step, lattice.most);
        let row = &mut row[..cells.len()];
        lattice.compare(y, row);
        // Slots of the row of cells above, of this one and below.
        let rows_of_slots = [gy + SLOT_ROWS - 1, gy, gy + 1].map(|gy| slot_row(gy) * nx);
        let labels = &lattice.labels[y * lattice.width()..][..lattice.width()];
        let code = ((y / step) as u32 & SIDE) << SIDE_BITS;
        for (i, (&own, &cell)) in row.iter().zip(&**cells).enumerate() {
            let Some(&slot_cell) = lattice.slot_cells.get(usize::from(labels[i * step])) else { continue };
            let from_here = slot_cell.wrapping_sub((gy << 16) as u32 | u32::from(cell));
            let [across, down] = [from_here & 0xffff, from_here >> 16];
            if across > 2 || down > 2 {
                continue;
            }
            let slot = rows_of_slots[down as usize] + usize::from(cell) + across as usize - 1;
            codes[slot * most + Sum(sums[slot]).count()] = (code | (i as u32 & SIDE)) as u16;
            sums[slot] += own;
        }
    }

    /// Sums over the samples of a slot's region. Complete once the row of cells below the slot's is swept.
    #[inline(always)]
    pub fn sum(&self, lattice: &Lattice<'_>, (gx, gy): (usize, usize)) -> Sum {
        Sum(self.sums[slot_row(gy) * lattice.grid.nx as usize + gx])
    }

    /// The samples of a slot's region.
    #[inline(always)]
    pub fn region(&mut self, lattice: &Lattice<'_>, (gx, gy): (usize, usize)) -> Region<'_> {
        let (count, slot) =
            (self.sum(lattice, (gx, gy)).count(), slot_row(gy) * lattice.grid.nx as usize + gx);
        let (grid, step, width) = (lattice.grid, lattice.step as u32, lattice.width() as i32);
        let Self { codes, positions, at, features, channels, .. } = self;
        let codes = &codes[slot * lattice.most..][..count];
        let (positions, at, features) = (&mut positions[..count], &mut at[..count], &mut features[..count]);
        // First column and row of the 3x3 cells. Codes hold the low bits of a position, which are unique within these
        // cells.
        let first_column = (grid.columns(gx.saturating_sub(1)).start as u32).div_ceil(step);
        let first_row = (grid.rows(gy.saturating_sub(1)).start as u32).div_ceil(step);
        let mut columns = NOWHERE;
        for ((&code, position), at) in codes.iter().zip(&mut *positions).zip(&mut *at) {
            let code = u32::from(code);
            let x = (first_column + (code.wrapping_sub(first_column) & SIDE)) * step;
            let y = (first_row + ((code >> SIDE_BITS).wrapping_sub(first_row) & SIDE)) * step;
            (*position, *at) = (y << 16 | x, y as i32 * width + x as i32);
            columns = [columns[0].min(x as i32), columns[1].max(x as i32)];
        }
        for (feature, &at) in features.iter_mut().zip(&*at) {
            *feature = lattice.last[at as usize];
        }
        let [a, b, c] = channels.each_mut().map(|channel| &mut channel[..count]);
        for (((&feature, a), b), c) in features.iter().zip(&mut *a).zip(&mut *b).zip(&mut *c) {
            [*a, *b, *c] = unpack(feature);
        }
        let ends = positions.first().zip(positions.last());
        let rows =
            ends.map_or(NOWHERE, |(&first, &last)| [first, last].map(|position| position_of(position)[1]));
        Region { positions, at, features, channels: [a, b, c], columns, rows }
    }
}

/// Index of a row of slots among those that are collected.
#[inline(always)]
fn slot_row(gy: usize) -> usize {
    gy % SLOT_ROWS
}

/// Column and row of a sample.
#[inline(always)]
pub(super) fn position_of(position: u32) -> [i32; 2] {
    [(position & 0xffff) as i32, (position >> 16) as i32]
}
