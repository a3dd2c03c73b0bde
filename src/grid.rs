// SPDX-License-Identifier: MPL-2.0
//! The grid of home cells that SLIC and LSC share: grid step, cells, seeds, candidates.

use std::cmp::Ordering;
use std::ops::Range;

use crate::color::OUTSIDE;
use crate::image::{Geometry, MAX_SIDE};
use crate::parameter::{self, About};

/// Assign/update rounds of the algorithms that cluster on the grid, for independent frames.
pub const ITERATIONS: parameter::Range<u32> = parameter::Range {
    about: About::new(
        "iterations",
        "Iterations",
        "",
        "Assign and update rounds of an independent frame; more = better fit, slower. Warm-started frames ({temporal=true}), and those after a cut, take two",
    ),
    min: 1,
    max: 100,
    default: 5,
};

/// Most cells of a frame: labels are u16, and 65535 means no label.
pub const MAX_CELLS: u32 = 65_535;

/// Most clusters that a pixel chooses from.
pub(crate) const CANDIDATES: usize = 9;

/// A frame cut into `nx` by `ny` cells of side `step`. The last column and row take the remainder and are between half
/// a step and one and a half steps wide, so no sliver exists and no frame is without a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    pub(crate) geometry: Geometry,
    pub(crate) step: u32,
    pub(crate) nx: u32,
    pub(crate) ny: u32,
}

impl Grid {
    /// Cuts a frame with the smallest step from `step` on that needs at most [`MAX_CELLS`] cells.
    pub fn with_step(geometry: Geometry, step: u32) -> Self {
        // A step of twice the longest side makes any frame one cell.
        let mut step = step.clamp(1, 2 * MAX_SIDE);
        while cells(geometry, step) > u64::from(MAX_CELLS) {
            step += 1;
        }
        Self::with_any_number(geometry, step)
    }

    /// Cuts a frame with exactly this step, into any number of cells.
    pub(crate) fn with_any_number(geometry: Geometry, step: u32) -> Self {
        let step = step.clamp(1, 2 * MAX_SIDE);
        let [nx, ny] = cells_along(geometry, step);
        Self { geometry, step, nx, ny }
    }

    /// The part of the grid in some columns and rows of cells, as a grid of its own. It is cut like the whole one where it begins at
    /// a multiple of [`Grid::sample_step`] cells.
    pub(crate) fn window(&self, columns: &Range<usize>, rows: &Range<usize>) -> Self {
        let side = |cells: &Range<usize>, of: &dyn Fn(usize) -> Range<usize>| {
            (of(cells.end - 1).end - of(cells.start).start) as u32
        };
        let geometry = Geometry {
            width: side(columns, &|gx| self.columns(gx)),
            height: side(rows, &|gy| self.rows(gy)),
        };
        Self { geometry, step: self.step, nx: columns.len() as u32, ny: rows.len() as u32 }
    }

    /// The step for a wanted number of superpixels, at most the longer side. Detached fragments become regions of their own, on
    /// photographs about one for eight cells: the step is the largest whose cells and an eighth of them are nearest to `count`.
    /// Pictures without fragments have fewer, and over time some regions end, so there are at least four fifths of `count` cells,
    /// as far as the frame has pixels.
    pub fn step_for_count(geometry: Geometry, count: u32) -> u32 {
        Self::step_with_cells(geometry, count, [4, 5])
    }

    /// As [`Grid::step_for_count`], with at least seven eighths of `count` cells: nearly all photographs have as many regions as
    /// cells, and seldom fewer than 0.97 of them.
    pub(crate) fn step_for_held_count(geometry: Geometry, count: u32) -> u32 {
        Self::step_with_cells(geometry, count, [7, 8])
    }

    /// The largest step whose cells and an eighth of them are nearest to `count`, of those with at least the fraction `least` of it.
    fn step_with_cells(geometry: Geometry, count: u32, least: [u64; 2]) -> u32 {
        let count = u64::from(count.max(1));
        let has_enough = |&step: &u32| least[1] * cells(geometry, step) >= least[0] * count;
        let far = |&step: &u32| (9 * cells(geometry, step)).abs_diff(8 * count);
        let longest = geometry.width.max(geometry.height);
        // Cells grow as steps fall: once a step is farther from `count` than the one before, so are all that follow.
        let mut steps = (1..=longest).rev().filter(has_enough);
        let Some(mut best) = steps.next() else { return 1 };
        for step in steps {
            match far(&step).cmp(&far(&best)) {
                Ordering::Less => best = step,
                Ordering::Equal => {}
                Ordering::Greater => break,
            }
        }
        best
    }

    /// Frame size in px.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Grid step S in px.
    pub fn step(&self) -> u32 {
        self.step
    }

    /// Cells in a row.
    pub fn nx(&self) -> u32 {
        self.nx
    }

    /// Rows of cells.
    pub fn ny(&self) -> u32 {
        self.ny
    }

    /// Number of cells, and so of clusters.
    pub fn cells(&self) -> usize {
        self.nx as usize * self.ny as usize
    }

    /// Distance in px of the sampled columns and rows. In large cells fewer samples change nothing.
    #[inline]
    pub fn sample_step(&self) -> u32 {
        match self.step {
            // Such steps are longer than any that a user can set. Fewer samples keep sums within 32 bits.
            1025.. => 16,
            16.. => 4,
            8.. => 2,
            _ => 1,
        }
    }

    /// Sampled columns or rows within a range.
    #[inline]
    pub fn samples(&self, range: &Range<usize>) -> impl Iterator<Item = usize> + use<> {
        let step = self.sample_step() as usize;
        (range.start.next_multiple_of(step)..range.end).step_by(step)
    }

    /// Columns of pixels that belong to cell column `gx`.
    #[inline]
    pub fn columns(&self, gx: usize) -> Range<usize> {
        span(gx, self.nx, self.step, self.geometry.width)
    }

    /// Rows of pixels that belong to cell row `gy`.
    #[inline]
    pub fn rows(&self, gy: usize) -> Range<usize> {
        span(gy, self.ny, self.step, self.geometry.height)
    }

    /// The pixel at the center of a cell, where its cluster starts.
    #[inline]
    pub fn seed(&self, gx: usize, gy: usize) -> (usize, usize) {
        let (columns, rows) = (self.columns(gx), self.rows(gy));
        (
            ((columns.start + columns.end) / 2).min(self.geometry.width as usize - 1),
            ((rows.start + rows.end) / 2).min(self.geometry.height as usize - 1),
        )
    }

    /// The pixel where the cluster of a cell starts: its center or, if the mask excludes that, the nearest pixel
    /// inside, of equally near ones the first in raster order. A cell without pixels inside keeps its center.
    #[inline]
    pub(crate) fn seed_inside(&self, features: &[u32], gx: usize, gy: usize) -> (usize, usize) {
        let (center, width) = (self.seed(gx, gy), self.geometry.width as usize);
        let inside = |(x, y): (usize, usize)| features[y * width + x] != OUTSIDE;
        if inside(center) {
            return center;
        }
        let pixels = self.rows(gy).flat_map(|y| self.columns(gx).map(move |x| (x, y)));
        let distance = |&(x, y): &(usize, usize)| x.abs_diff(center.0).pow(2) + y.abs_diff(center.1).pow(2);
        pixels.filter(|&at| inside(at)).min_by_key(distance).unwrap_or(center)
    }

    /// Clusters that a pixel of a cell may join: the 3x3 cells around it, as far as they are in the frame, in raster
    /// order.
    #[inline]
    pub fn candidates(&self, gx: usize, gy: usize) -> impl Iterator<Item = usize> + use<> {
        let (nx, ny) = (self.nx as usize, self.ny as usize);
        let columns = gx.saturating_sub(1)..(gx + 2).min(nx);
        (gy.saturating_sub(1)..(gy + 2).min(ny)).flat_map(move |y| columns.clone().map(move |x| y * nx + x))
    }
}

#[cfg(feature = "cuda")]
impl Grid {
    /// Most cells that a square tile of `tile` px can reach: the cells that it overlaps and a ring of one around them.
    /// 0 if every pixel is a cell.
    pub(crate) fn reach(&self, tile: u32) -> usize {
        if self.step == 1 {
            return 0;
        }
        let across = |cells: u32| ((tile - 1) / self.step + 2).min(cells) as usize + 2;
        across(self.nx) * across(self.ny)
    }
}

/// Number of cell columns and of cell rows.
fn cells_along(geometry: Geometry, step: u32) -> [u32; 2] {
    [geometry.width, geometry.height].map(|side| ((2 * side + step) / (2 * step)).max(1))
}

fn cells(geometry: Geometry, step: u32) -> u64 {
    let [nx, ny] = cells_along(geometry, step);
    u64::from(nx) * u64::from(ny)
}

fn span(cell: usize, cells: u32, step: u32, side: u32) -> Range<usize> {
    let (step, side) = (step as usize, side as usize);
    let end = if cell + 1 == cells as usize { side } else { (cell + 1) * step };
    (cell * step).min(side)..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pixel_has_one_home_and_no_cell_is_a_sliver() {
        for (w, h, s) in [(1, 1, 16), (1, 300, 16), (8191, 3, 16), (481, 321, 20), (7, 9, 4), (23, 40, 16)] {
            let grid = Grid::with_step(Geometry::new(w, h).unwrap(), s);
            for (cells, side, span) in [
                (grid.nx, w, (0..grid.nx as usize).map(|i| grid.columns(i)).collect::<Vec<_>>()),
                (grid.ny, h, (0..grid.ny as usize).map(|i| grid.rows(i)).collect::<Vec<_>>()),
            ] {
                assert_eq!(span.iter().map(|r| r.len()).sum::<usize>(), side as usize);
                assert!(span.windows(2).all(|p| p[0].end == p[1].start));
                if cells > 1 {
                    assert!(span.iter().all(|r| 2 * r.len() >= s as usize && 2 * r.len() <= 3 * s as usize));
                }
            }
        }
    }

    #[test]
    fn step_for_count_gives_the_nearest_number() {
        for (w, h) in
            [(8, 8), (28, 28), (32, 32), (224, 224), (320, 180), (481, 321), (1920, 1080), (3, 1000)]
        {
            let geometry = Geometry::new(w, h).unwrap();
            for count in (1..100).chain([300, 400, 600, 1000, 2000, 2300, 9000, u32::MAX]) {
                let step = Grid::step_for_count(geometry, count);
                let has = |step: u32| cells(geometry, step);
                let wanted = u64::from(count);
                let enough = (1..=w.max(h)).filter(|&step| 5 * has(step) >= 4 * wanted);
                let nearest = enough.map(|step| (9 * has(step)).abs_diff(8 * wanted)).min();
                assert_eq!(
                    (9 * has(step)).abs_diff(8 * wanted),
                    nearest.unwrap_or((9 * has(1)).abs_diff(8 * wanted))
                );
                assert!(nearest.is_some() || step == 1, "{w}x{h} {count}");
                // A frame has no more cells than pixels.
                assert!(wanted > geometry.pixels() as u64 || 10 * has(step) >= 8 * wanted, "{w}x{h} {count}");
                let held = has(Grid::step_for_held_count(geometry, count));
                assert!(
                    held == has(step) || 8 * has(step) < 7 * wanted && held > has(step),
                    "{w}x{h} {count}"
                );
                assert!(wanted > geometry.pixels() as u64 || 8 * held >= 7 * wanted, "{w}x{h} {count}");
                if (w, h) >= (320, 180) && (20..=2300).contains(&count) {
                    let regions = 9.0 * has(step) as f64 / 8.0;
                    println!("{w}x{h} {count}: step {step}, {:.2}", regions / f64::from(count));
                }
            }
        }
    }

    #[cfg(feature = "cuda")]
    #[test]
    fn a_tile_reaches_few_cells() {
        let geometry = Geometry::new(320, 240).unwrap();
        let reach = |step| Grid::with_step(geometry, step).reach(32);
        assert_eq!((reach(2), reach(16), reach(32), reach(320)), (19 * 19, 25, 16, 9));
        assert_eq!(Grid::with_step(Geometry::new(64, 48).unwrap(), 1).reach(32), 0);
        // Blocks have 48 KiB of shared memory, of which kernels declare up to 20 KiB themselves; a cell takes up to 48
        // bytes.
        assert!((2..320).all(|step| 48 * reach(step) <= 28 << 10));
    }

    #[test]
    fn a_step_that_needs_too_many_cells_is_raised() {
        let grid = Grid::with_step(Geometry::new(7680, 4320).unwrap(), 16);
        assert!(grid.cells() <= MAX_CELLS as usize && grid.step > 16);
        let below = |s: u32| ((2 * 7680 + s) / (2 * s)) * ((2 * 4320 + s) / (2 * s));
        assert!(below(grid.step - 1) > MAX_CELLS);
    }
}
