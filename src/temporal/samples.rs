// SPDX-License-Identifier: MPL-2.0
//! Samples of the last frame's regions on the CPU, found in one pass over the lattice for `motion.rs`.
//!
//! A slot's region has samples in the 3x3 cells around the slot. So those of a row of slots are known once the row of cells below it is
//! swept, and three rows of slots are under way at a time.

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

/// Rows of slots that are under way, each in the place of the third above it.
const RINGS: usize = 3;
/// Bits that name a row or a column of samples: the 3x3 cells have at most 37.
const SIDE_BITS: u32 = 6;
const SIDE: u32 = (1 << SIDE_BITS) - 1;
/// What memory is for, in errors.
const SAMPLES: &str = "samples of regions";

/// What the samples of a slot's region add up to, in one word: their number, and how much they differ from this frame's pixels in the same
/// position, and from those where the picture's motion leads. 37 x 37 times the largest difference are below 2^24.
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

/// Lists for each of the last frame's regions where its slot is: column and, in the upper half, row, each one more than it is. What has no
/// slot is far from all.
pub(super) fn list_homes(homes: &mut Array<u32>, slots: &[Slot], nx: usize, regions: usize) -> Result<()> {
    memory::refill(homes, SLOTS, regions, u32::MAX)?;
    for (gy, row) in slots.chunks(nx).enumerate() {
        for (gx, slot) in row.iter().enumerate().filter(|(_, slot)| slot.region != NONE) {
            homes[slot.region as usize] = ((gy + 1) << 16 | (gx + 1)) as u32;
        }
    }
    Ok(())
}

/// What samples are taken from.
pub(super) struct Lattice<'a> {
    pub grid: &'a Grid,
    /// Distance of samples, and most samples of a region.
    pub step: usize,
    pub most: usize,
    /// See [`list_homes`].
    pub homes: &'a [u32],
    /// The last frame's labels and features.
    pub labels: &'a [u16],
    pub last: &'a [u32],
    /// This frame's.
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

    /// Writes what each sample of row `y` adds to the sum of its region.
    #[inline(always)]
    fn compare(&self, y: usize, sums: &mut [u64]) {
        // A step that the compiler knows lets it load vectors.
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

/// Pixels of a row at a distance from each other, those beyond its ends as the nearest in it.
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
    pub places: &'a [u32],
    pub at: &'a [i32],
    /// The last frame's features there, and their channels.
    pub features: &'a [u32],
    pub channels: [&'a [u32]; 3],
    /// First and last column, and row.
    columns: [i32; 2],
    rows: [i32; 2],
}

impl Region<'_> {
    /// Whether all samples are inside of a frame after a shift, and so far all around it.
    #[inline(always)]
    pub fn stays_inside(&self, grid: &Grid, [dx, dy]: [i32; 2], around: i32) -> bool {
        let inside = |[first, last]: [i32; 2], by: i32, side: u32| {
            first + by - around >= 0 && last + by + around < side as i32
        };
        inside(self.columns, dx, grid.geometry.width) && inside(self.rows, dy, grid.geometry.height)
    }
}

/// Bounds of nothing, which a shift can still be added to.
const NOWHERE: [i32; 2] = [i32::MAX / 2, i32::MIN / 2];

impl Samples {
    /// Makes room, and forgets what was under way.
    pub fn begin(&mut self, lattice: &Lattice<'_>) -> Result<()> {
        let (nx, most, columns) = (lattice.grid.nx as usize, lattice.most, lattice.columns());
        memory::refill(&mut self.sums, SAMPLES, RINGS * nx, 0)?;
        memory::lengthen(&mut self.codes, SAMPLES, RINGS * nx * most)?;
        memory::lengthen(&mut self.row, SAMPLES, columns)?;
        self.cells.clear();
        memory::reserve(&mut self.cells, SAMPLES, columns)?;
        for gx in 0..nx {
            let columns = lattice.grid.columns(gx);
            let samples = columns.end.div_ceil(lattice.step) - columns.start.div_ceil(lattice.step);
            self.cells.extend(std::iter::repeat_n(gx as u16, samples));
        }
        for all in [&mut self.places, &mut self.features].into_iter().chain(&mut self.channels) {
            memory::lengthen(all, SAMPLES, most)?;
        }
        memory::lengthen(&mut self.at, SAMPLES, most)
    }

    /// Adds the samples in a row of cells to those of the regions they belong to.
    #[inline(always)]
    pub fn sweep(&mut self, lattice: &Lattice<'_>, gy: usize) {
        let nx = lattice.grid.nx as usize;
        // The row of slots that begins takes the place of the one that is done.
        self.sums[ring(gy + 1) * nx..][..nx].fill(0);
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
        // Of the slots one row above, in this one and below.
        let rings = [gy + RINGS - 1, gy, gy + 1].map(|gy| ring(gy) * nx);
        let labels = &lattice.labels[y * lattice.width()..][..lattice.width()];
        let code = ((y / step) as u32 & SIDE) << SIDE_BITS;
        for (i, (&own, &cell)) in row.iter().zip(&**cells).enumerate() {
            let Some(&home) = lattice.homes.get(usize::from(labels[i * step])) else { continue };
            let from_here = home.wrapping_sub((gy << 16) as u32 | u32::from(cell));
            let [across, down] = [from_here & 0xffff, from_here >> 16];
            if across > 2 || down > 2 {
                continue;
            }
            let slot = rings[down as usize] + usize::from(cell) + across as usize - 1;
            codes[slot * most + Sum(sums[slot]).count()] = (code | (i as u32 & SIDE)) as u16;
            sums[slot] += own;
        }
    }

    /// What the samples of a slot's region add up to, once the row of cells below the slot's is swept.
    #[inline(always)]
    pub fn sum(&self, lattice: &Lattice<'_>, (gx, gy): (usize, usize)) -> Sum {
        Sum(self.sums[ring(gy) * lattice.grid.nx as usize + gx])
    }

    /// The samples themselves.
    #[inline(always)]
    pub fn region(&mut self, lattice: &Lattice<'_>, (gx, gy): (usize, usize)) -> Region<'_> {
        let (count, slot) = (self.sum(lattice, (gx, gy)).count(), ring(gy) * lattice.grid.nx as usize + gx);
        let (grid, step, width) = (lattice.grid, lattice.step as u32, lattice.width() as i32);
        let Self { codes, places, at, features, channels, .. } = self;
        let codes = &codes[slot * lattice.most..][..count];
        let (places, at, features) = (&mut places[..count], &mut at[..count], &mut features[..count]);
        // The cells' first, of which the lowest bits are those of codes.
        let first_column = (grid.columns(gx.saturating_sub(1)).start as u32).div_ceil(step);
        let first_row = (grid.rows(gy.saturating_sub(1)).start as u32).div_ceil(step);
        let mut columns = NOWHERE;
        for ((&code, place), at) in codes.iter().zip(&mut *places).zip(&mut *at) {
            let code = u32::from(code);
            let x = (first_column + (code.wrapping_sub(first_column) & SIDE)) * step;
            let y = (first_row + ((code >> SIDE_BITS).wrapping_sub(first_row) & SIDE)) * step;
            (*place, *at) = (y << 16 | x, y as i32 * width + x as i32);
            columns = [columns[0].min(x as i32), columns[1].max(x as i32)];
        }
        for (feature, &at) in features.iter_mut().zip(&*at) {
            *feature = lattice.last[at as usize];
        }
        let [a, b, c] = channels.each_mut().map(|channel| &mut channel[..count]);
        for (((&feature, a), b), c) in features.iter().zip(&mut *a).zip(&mut *b).zip(&mut *c) {
            [*a, *b, *c] = unpack(feature);
        }
        let ends = places.first().zip(places.last());
        let rows = ends.map_or(NOWHERE, |(&first, &last)| [first, last].map(|place| place_of(place)[1]));
        Region { places, at, features, channels: [a, b, c], columns, rows }
    }
}

/// Where a row of slots stands.
#[inline(always)]
fn ring(gy: usize) -> usize {
    gy % RINGS
}

/// Column and row of a sample.
#[inline(always)]
pub(super) fn place_of(place: u32) -> [i32; 2] {
    [(place & 0xffff) as i32, (place >> 16) as i32]
}
