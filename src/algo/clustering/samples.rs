// SPDX-License-Identifier: MPL-2.0
//! The sampled pixels of some rows of cells, gathered cell by cell for the rounds on the CPU.

use std::ops::Range;

use crate::color::OUTSIDE;
use crate::cpu::level::LANES;
use crate::cpu::memory;
use crate::cpu::memory::Array;
use crate::error::Result;
use crate::grid::Grid;
use crate::temporal::predict::NO_CANDIDATE;
use crate::temporal::state::State;

/// Pixels that are worked on together as 16-bit numbers. In WebAssembly twice as many take a tenth longer: `docs/performance-tried.md`.
pub(crate) const WIDE: usize = if cfg!(target_family = "wasm") { LANES } else { 2 * LANES };

/// Rows of a cell that are labeled before the next cell's. With more rows, prefetching fails and page translations are
/// evicted.
pub(crate) const ROWS: usize = 16;
/// Cell rows per task.
pub(crate) const BAND: usize = 2;

/// The samples' name in errors about memory.
const WHAT: &str = "samples";

/// The samples of some rows of cells. Every cell's samples are padded to whole vectors, so that all lanes are used.
pub(crate) struct Samples<T> {
    /// First cell row.
    pub first: usize,
    /// Number of cell rows.
    pub rows: usize,
    /// First sample and number of samples of each cell.
    pub cells: Array<(usize, usize)>,
    /// Packed color of each sample.
    pub features: Array<u32>,
    /// Candidate that each sample is predicted to belong to.
    pub predicted: Array<u16>,
    /// Position in the row, in the algorithm's own terms.
    pub x: Array<T>,
    /// Position in the column.
    pub y: Array<T>,
    /// All samples of the lattice. Only with masks, which leave some of them out of `cells`.
    whole: Option<Whole<T>>,
}

/// Number and positions of every cell's samples, inside and outside of the mask.
struct Whole<T> {
    counts: Array<usize>,
    x: Array<T>,
    y: Array<T>,
}

impl<T: Copy + Default> Samples<T> {
    /// Cuts a grid into bands, with memory for predictions if `predicts` and for masks if `masked`. `x` and `y` compute
    /// a position from the first column or row of a cell and the sample's.
    pub fn bands(
        grid: &Grid,
        (predicts, masked): (bool, bool),
        x: impl Fn(usize, usize) -> T,
        y: impl Fn(usize, usize) -> T,
    ) -> Result<Vec<Self>> {
        let ny = grid.ny as usize;
        let band = |first| {
            let mut samples = Self::new(grid, predicts, first, BAND.min(ny - first), &x, &y)?;
            if masked {
                samples.whole = Some(samples.as_whole()?);
            }
            Ok(samples)
        };
        memory::try_collected("bands of cells", (0..ny).step_by(BAND).map(band))
    }

    fn new(
        grid: &Grid,
        predicts: bool,
        first: usize,
        rows: usize,
        position_x: &impl Fn(usize, usize) -> T,
        position_y: &impl Fn(usize, usize) -> T,
    ) -> Result<Self> {
        let nx = grid.nx as usize;
        let sampled = |range: Range<usize>| grid.samples(&range).count();
        let across: Vec<usize> = (0..nx).map(|gx| sampled(grid.columns(gx))).collect();
        let padded = |gy: usize| {
            let down = sampled(grid.rows(gy));
            across.iter().map(move |across| (down * across).next_multiple_of(LANES)).sum::<usize>()
        };
        let len = (first..first + rows).map(padded).sum::<usize>() + WIDE - LANES;
        let (mut cells, mut x, mut y) = (Array::new(), Array::new(), Array::new());
        memory::reserve(&mut cells, WHAT, rows * nx)?;
        memory::reserve(&mut x, WHAT, len)?;
        memory::reserve(&mut y, WHAT, len)?;
        for gy in first..first + rows {
            for gx in 0..nx {
                let start = x.len();
                let (columns, rows) = (grid.columns(gx), grid.rows(gy));
                for row in grid.samples(&rows) {
                    for column in grid.samples(&columns) {
                        x.push(position_x(columns.start, column));
                        y.push(position_y(rows.start, row));
                    }
                }
                cells.push((start, x.len() - start));
                let padded = start + (x.len() - start).next_multiple_of(LANES);
                x.resize(padded, T::default());
                y.resize(padded, T::default());
            }
        }
        // A vector of `WIDE` lanes may begin at the last `LANES` samples, and then reads past them.
        debug_assert_eq!(x.len() + WIDE - LANES, len);
        x.resize(len, T::default());
        y.resize(len, T::default());
        let features = memory::zeroed(WHAT, len)?;
        let predicted = memory::filled("predictions", if predicts { len } else { 0 }, NO_CANDIDATE)?;
        Ok(Self { first, rows, cells, features, predicted, x, y, whole: None })
    }

    fn as_whole(&self) -> Result<Whole<T>> {
        let mut whole = Whole { counts: Array::new(), x: Array::new(), y: Array::new() };
        memory::append(&mut whole.x, WHAT, &self.x)?;
        memory::append(&mut whole.y, WHAT, &self.y)?;
        memory::reserve(&mut whole.counts, WHAT, self.cells.len())?;
        whole.counts.extend(self.cells.iter().map(|&(_, count)| count));
        Ok(whole)
    }

    /// Gathers the samples' colors.
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
        self.leave_out();
    }

    /// Moves the samples inside of the mask to the front of their cells and counts only those.
    fn leave_out(&mut self) {
        let Self { cells, features, x, y, whole: Some(whole), .. } = self else { return };
        for ((start, count), &all) in cells.iter_mut().zip(&whole.counts) {
            let mut end = *start;
            for i in *start..*start + all {
                (features[end], x[end], y[end]) = (features[i], whole.x[i], whole.y[i]);
                end += usize::from(features[i] != OUTSIDE);
            }
            *count = end - *start;
        }
    }

    /// Gathers the samples' predictions.
    pub fn predict(&mut self, grid: &Grid, features: &[u32], state: &State) {
        let nx = grid.nx as usize;
        for (cell, &(start, count)) in self.cells.iter().enumerate() {
            let (gx, gy) = (cell % nx, self.first + cell / nx);
            let count = self.whole.as_ref().map_or(count, |whole| whole.counts[cell]);
            state.predict((gx, gy), features, &mut self.predicted[start..][..count]);
            if self.whole.is_some() {
                let columns = grid.columns(gx);
                let row = |y: usize| &features[y * grid.geometry.width as usize..];
                let samples =
                    grid.samples(&grid.rows(gy)).flat_map(|y| grid.samples(&columns).map(move |x| row(y)[x]));
                let mut end = start;
                for (i, feature) in (start..).zip(samples) {
                    self.predicted[end] = self.predicted[i];
                    end += usize::from(feature != OUTSIDE);
                }
            }
        }
    }
}
