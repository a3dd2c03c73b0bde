// SPDX-License-Identifier: MPL-2.0
//! Windows of a grid: parts that are clustered one by one, each with a halo, from which the cores of all are the whole.
//!
//! SLIC is local. A pixel's label follows from the centers of the 3x3 cells around its own, and a center from the samples that were
//! nearest to it, which lie in the 3x3 cells around its cell and chose among the centers around theirs. So each round reaches two cells
//! farther, and after T rounds a label depends on what is at most 2T + 1 cells away. With a halo of as many cells the clusters of a
//! core are those of the whole frame.

use std::ops::Range;

use crate::grid::Grid;

/// Windows begin and halos end at multiples of so many cells: of the most pixels between two samples, for any step that a frame can
/// have here, so that the sampled pixels of a window are those of the frame.
const ALIGN: usize = 4;
/// Widest halo, in cells: a window of 65,535 cells then still has a core of a quarter of them.
const WIDEST_HALO: usize = 64;

/// A part of a grid, in columns and rows of cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    /// What is clustered.
    pub columns: Range<usize>,
    pub rows: Range<usize>,
    /// What counts of it.
    pub core_columns: Range<usize>,
    pub core_rows: Range<usize>,
}

/// Cells that a window has beside its core after so many rounds. From 32 rounds on it is narrower than they reach, and the windows
/// are a part of the result.
pub(super) fn halo(rounds: u32) -> usize {
    (2 * rounds as usize + 1).next_multiple_of(ALIGN).min(WIDEST_HALO)
}

/// Ranges of `side` cells in cores of `core`, each with its halo.
fn cut(side: usize, core: usize, halo: usize) -> impl Iterator<Item = (Range<usize>, Range<usize>)> + Clone {
    (0..side).step_by(core).map(move |start| {
        let end = side.min(start + core);
        (start.saturating_sub(halo)..side.min(end + halo), start..end)
    })
}

/// Cores of one side, so that it is cut into `count` of nearly equal length.
fn core(side: usize, count: usize) -> usize {
    side.div_ceil(count).next_multiple_of(ALIGN)
}

/// Widest window of a side and cells of all its windows.
fn extent(side: usize, core: usize, halo: usize) -> (usize, usize) {
    let lengths = cut(side, core, halo).map(|(all, _)| all.len());
    (lengths.clone().max().unwrap_or(0), lengths.sum())
}

/// Cuts a grid into windows of at most `most` cells, row by row, so that the least is clustered twice. A halo that leaves no core is
/// halved until it does.
pub(super) fn windows(grid: &Grid, halo: usize, most: usize) -> Vec<Window> {
    let (nx, ny) = (grid.nx() as usize, grid.ny() as usize);
    let counts = |side: usize| 1..=side.div_ceil(ALIGN);
    let mut best: Option<(usize, [usize; 2])> = None;
    for columns in counts(nx) {
        let (widest, all_columns) = extent(nx, core(nx, columns), halo);
        // As few rows of windows as there is room for: with more of them more is clustered twice.
        let rows = counts(ny).find(|&rows| widest * extent(ny, core(ny, rows), halo).0 <= most);
        let Some(rows) = rows else { continue };
        let cells = all_columns * extent(ny, core(ny, rows), halo).1;
        if best.is_none_or(|(least, _)| cells < least) {
            best = Some((cells, [core(nx, columns), core(ny, rows)]));
        }
    }
    let Some((_, [width, height])) = best else { return windows(grid, halo / 2 / ALIGN * ALIGN, most) };
    let row = |(rows, core_rows): (Range<usize>, Range<usize>)| {
        cut(nx, width, halo).map(move |(columns, core_columns)| Window {
            columns,
            rows: rows.clone(),
            core_columns,
            core_rows: core_rows.clone(),
        })
    };
    cut(ny, height, halo).flat_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::MAX_CELLS;
    use crate::image::Geometry;

    fn grid(width: u32, height: u32, step: u32) -> Grid {
        Grid::with_any_number(Geometry::new(width, height).unwrap(), step)
    }

    #[test]
    fn cores_are_every_cell_once_and_windows_have_room_for_halos() {
        let shapes = [(4000, 3000, 7), (16384, 16384, 4), (16384, 40, 2), (13, 16001, 3), (2003, 1999, 4)];
        for (width, height, step) in shapes {
            for (rounds, most) in [(5, MAX_CELLS as usize), (31, MAX_CELLS as usize), (1, 900)] {
                let (grid, halo) = (grid(width, height, step), halo(rounds));
                let (nx, ny) = (grid.nx() as usize, grid.ny() as usize);
                let mut seen = vec![0_u8; nx * ny];
                for window in windows(&grid, halo, most) {
                    let Window { columns, rows, core_columns, core_rows } = window;
                    assert!(columns.len() * rows.len() <= most, "{columns:?} {rows:?}");
                    assert!(columns.start % ALIGN == 0 && rows.start % ALIGN == 0);
                    for (all, core, side) in [(&columns, &core_columns, nx), (&rows, &core_rows, ny)] {
                        assert!(all.start == 0 || all.start + halo == core.start);
                        assert!(all.end == side || all.end == core.end + halo);
                    }
                    for gy in core_rows {
                        core_columns.clone().for_each(|gx| seen[gy * nx + gx] += 1);
                    }
                }
                assert!(seen.iter().all(|&times| times == 1), "{width}x{height} {rounds}");
            }
        }
    }

    #[test]
    fn a_grid_that_fits_is_one_window() {
        let grid = grid(1000, 1000, 4);
        assert_eq!(windows(&grid, halo(5), MAX_CELLS as usize).len(), 1);
        assert_eq!(halo(5), 12);
        assert!((1..=31).all(|rounds| halo(rounds) > 2 * rounds as usize));
    }

    #[test]
    fn a_halo_without_room_for_a_core_is_halved() {
        let all = windows(&grid(400, 400, 4), 64, 200);
        assert!(all.iter().all(|window| window.columns.len() * window.rows.len() <= 200));
    }
}
