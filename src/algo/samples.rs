// SPDX-License-Identifier: MPL-2.0
//! The sampled pixels of some rows of cells, gathered cell by cell: what rounds on the CPU work on.

use super::grid::Grid;
use super::temporal::cpu::State;
use super::temporal::look_back::NO_CANDIDATE;

/// Pixels that are scored together.
pub(crate) const LANES: usize = 8;
/// The same where 16 bits hold a number of each.
pub(crate) const WIDE: usize = 2 * LANES;

/// Rows of a cell that are labeled before the next cell's: of more, a processor cannot foresee what is read next, nor keep their
/// pages.
pub(crate) const ROWS: usize = 16;
/// Cell rows that one task works on.
pub(crate) const BAND: usize = 4;
/// Most clusters a pixel can choose from.
pub(crate) const CANDIDATES: usize = 9;

/// The samples of some rows of cells. Every cell's are padded to whole vectors, so that lanes fill.
pub(crate) struct Samples<T> {
    /// First cell row.
    pub first: usize,
    /// Number of cell rows.
    pub rows: usize,
    /// Where each cell's samples start and how many there are.
    pub cells: Vec<(usize, usize)>,
    /// Packed colors, as gathered last.
    pub features: Vec<u32>,
    /// Which candidate each is predicted to belong to, as gathered last.
    pub predicted: Vec<u8>,
    /// Place in a row, in the algorithm's own terms.
    pub x: Vec<T>,
    /// Place in a column.
    pub y: Vec<T>,
}

impl<T: Copy + Default> Samples<T> {
    /// Cuts a grid into bands. `x` and `y` make a place from the first column or row of a cell and the sample's.
    pub fn bands(grid: &Grid, x: impl Fn(usize, usize) -> T, y: impl Fn(usize, usize) -> T) -> Vec<Self> {
        let ny = grid.ny as usize;
        (0..ny).step_by(BAND).map(|first| Self::new(grid, first, BAND.min(ny - first), &x, &y)).collect()
    }

    fn new(
        grid: &Grid,
        first: usize,
        rows: usize,
        place_x: &impl Fn(usize, usize) -> T,
        place_y: &impl Fn(usize, usize) -> T,
    ) -> Self {
        let nx = grid.nx as usize;
        let (mut cells, mut x, mut y) = (Vec::with_capacity(rows * nx), Vec::new(), Vec::new());
        for gy in first..first + rows {
            for gx in 0..nx {
                let start = x.len();
                let (columns, rows) = (grid.columns(gx), grid.rows(gy));
                for row in grid.samples(&rows) {
                    for column in grid.samples(&columns) {
                        x.push(place_x(columns.start, column));
                        y.push(place_y(rows.start, row));
                    }
                }
                cells.push((start, x.len() - start));
                let padded = start + (x.len() - start).next_multiple_of(LANES);
                x.resize(padded, T::default());
                y.resize(padded, T::default());
            }
        }
        // What begins inside can be taken by so many.
        x.resize(x.len() + WIDE - LANES, T::default());
        y.resize(x.len(), T::default());
        Self { first, rows, cells, features: vec![0; x.len()], predicted: Vec::new(), x, y }
    }

    /// Takes the samples of a frame.
    pub fn gather(&mut self, grid: &Grid, features: &[u32]) {
        let (nx, width) = (grid.nx as usize, grid.geometry.width as usize);
        for (cell, &(start, _)) in self.cells.iter().enumerate() {
            let mut out = self.features[start..].iter_mut();
            for y in grid.samples(&grid.rows(self.first + cell / nx)) {
                let row = &features[y * width..][..width];
                for (x, out) in grid.samples(&grid.columns(cell % nx)).zip(out.by_ref()) {
                    *out = row[x];
                }
            }
        }
    }

    /// Takes the predictions for a frame.
    pub fn predict(&mut self, grid: &Grid, features: &[u32], state: &State) {
        let nx = grid.nx as usize;
        self.predicted.resize(self.features.len(), NO_CANDIDATE);
        for (cell, &(start, _)) in self.cells.iter().enumerate() {
            let (gx, gy) = (cell % nx, self.first + cell / nx);
            let columns = grid.columns(gx);
            let count = grid.samples(&columns).count();
            let mut out = &mut self.predicted[start..];
            for y in grid.samples(&grid.rows(gy)) {
                let (row, rest) = out.split_at_mut(count);
                state.predict((gx, gy), y, grid.samples(&columns), features, row);
                out = rest;
            }
        }
    }
}
