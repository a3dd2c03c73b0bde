// SPDX-License-Identifier: MPL-2.0
//! Still parts of a picture: which cells rest, and how their drawn pixels settle.

use super::moments::sample_step;
use super::rule::{PX, Rule};
use crate::cpu::Cpu;
use crate::cpu::level::by_level;
use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::image::{Frame, FrameInfo, Geometry, PIECE, RowCodes};
use crate::parallel::prelude::*;

/// Side of the cells whose mean colors are compared.
pub(crate) const CELL: usize = 4;
/// Change of a cell's mean color from which on it moves, on the scale of 16 bits: 16 codes of 8 bits.
const MOVED: u32 = 1 << 12;
/// Drawn pixels stay where they would change by no more than this: 2 codes of 8 bits.
const LITTLE: i32 = 1 << 9;
/// All of a change.
const WHOLE: u32 = PX as u32;
/// Frames without motion are counted so far.
const LONGEST: u16 = 255;

/// Name of the state in errors about memory.
const STATE: &str = "still pixels";

/// Cells of a frame, by column and row.
pub(crate) fn cells(geometry: Geometry) -> [usize; 2] {
    [geometry.width(), geometry.height()].map(|side| (side as usize).div_ceil(CELL))
}

/// A cell in one frame: its mean color on the scale of 16 bits, and how far that is from the color that it has had.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    color: [u16; 3],
    change: u16,
}

/// A cell over time.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    /// The color that it has had, on the scale of 16 bits.
    color: [u16; 3],
    /// Frames since it or one around it moved.
    calm: u16,
}

/// Part of 256 that a cell goes to what it is now.
fn share(calm: u16, change: u16, least: u32) -> u32 {
    let calm = 4 * WHOLE / (u32::from(calm) + 2).pow(2);
    let step = u32::from(change).min(MOVED - 1) >> 4;
    calm.max(least).max(step.pow(4) >> 24)
}

/// What is known of the cells of a stream.
#[derive(Default)]
pub(super) struct Still {
    seen: Array<Seen>,
    cells: Array<Cell>,
    /// Part of 256 that the pixels of each cell go to their new colors.
    shares: Array<u16>,
}

impl Still {
    /// Compares a frame with the last ones, before anything is drawn on it. Nothing is still where it does not follow them.
    pub fn look(&mut self, cpu: &Cpu, frame: &Frame<'_>, rule: &Rule, follows: bool) -> Result<()> {
        let info = frame.info();
        let [columns, rows] = cells(info.geometry);
        memory::resize(&mut self.seen, STATE, columns * rows, Seen::default())?;
        memory::resize(&mut self.cells, STATE, columns * rows, Cell::default())?;
        memory::resize(&mut self.shares, STATE, columns * rows, 0)?;
        let Self { seen, cells, shares } = self;
        cpu.run(|| {
            let rows = seen.par_chunks_mut(columns).zip(cells.par_chunks(columns)).enumerate();
            rows.for_each(|(row, (seen, cells))| look_row(frame, row, seen, cells, follows));
            let cells = cells.par_chunks_mut(columns).zip(shares.par_chunks_mut(columns)).enumerate();
            cells.for_each(|(row, (cells, shares))| settle_row(seen, row, cells, shares, rule.least_share));
        });
        Ok(())
    }

    /// The shares of the cells of a row of pixels, from column `left` on; both are where cells begin.
    pub fn shares(&self, geometry: Geometry, [left, top]: [usize; 2]) -> &[u16] {
        let [columns, _] = cells(geometry);
        &self.shares[top / CELL * columns..][left / CELL..columns]
    }
}

/// Finds the mean colors of a row of cells.
fn look_row(frame: &Frame<'_>, row: usize, seen: &mut [Seen], cells: &[Cell], follows: bool) {
    let info: &FrameInfo = frame.info();
    let (width, height) = (info.geometry.width() as usize, info.geometry.height() as usize);
    let step = sample_step(info.geometry.pixels());
    let fraction = 16 - info.format.bits();
    let mut codes = [[0; PIECE]; 3];
    let pieces = seen.chunks_mut(PIECE / CELL).zip(cells.chunks(PIECE / CELL));
    for (piece, (seen, cells)) in pieces.enumerate() {
        let first = PIECE * piece;
        let mut sums = [[0u32; 3]; PIECE / CELL];
        let rows = (CELL * row..height.min(CELL * (row + 1))).step_by(step);
        let lines = rows.len() as u32;
        for y in rows {
            RowCodes::new(frame, y).gather(first, &mut codes);
            for x in (0..PIECE.min(width - first)).step_by(step) {
                for (sum, codes) in sums[x / CELL].iter_mut().zip(&codes) {
                    *sum += u32::from(codes[x]);
                }
            }
        }
        for (i, ((seen, cell), sums)) in seen.iter_mut().zip(cells).zip(sums).enumerate() {
            let samples = lines * CELL.min(width - first - CELL * i).div_ceil(step) as u32;
            seen.color = sums.map(|sum| ((sum << fraction) / samples) as u16);
            let far = seen.color.iter().zip(&cell.color).map(|(a, b)| a.abs_diff(*b));
            seen.change = if follows { far.max().unwrap_or(0) } else { u16::MAX };
        }
    }
}

/// Lets a row of cells follow what was seen of it.
fn settle_row(seen: &[Seen], row: usize, cells: &mut [Cell], shares: &mut [u16], least: u32) {
    let width = cells.len();
    let around = row.saturating_sub(1)..(row + 2).min(seen.len() / width);
    let moved = |column: usize| {
        let columns = column.saturating_sub(1)..(column + 2).min(width);
        around.clone().any(|row| {
            let row = &seen[row * width..][columns.clone()];
            row.iter().any(|seen| u32::from(seen.change) >= MOVED)
        })
    };
    for column in 0..width {
        let Seen { color, change } = seen[row * width + column];
        let calm = if moved(column) { 0 } else { (cells[column].calm + 1).min(LONGEST) };
        let share = share(calm, change, least);
        let before = cells[column].color;
        let color = std::array::from_fn(|c| step(before[c].into(), color[c].into(), share as i32) as u16);
        cells[column] = Cell { color, calm };
        shares[column] = share as u16;
    }
}

/// A value that has gone `share` of 256 from one to another.
#[inline(always)]
fn step(from: i32, to: i32, share: i32) -> i32 {
    from + (((to - from) * share + WHOLE as i32 / 2) >> 8)
}

by_level! {
    /// Lets the drawn codes of a row settle, each by its share of 256; `drawn` has those of the last frame on the scale of 16 bits, or 0
    /// where nothing was drawn.
    pub(super) fn settle(codes: &mut [u16], drawn: &mut [u16], shares: &[u16], fraction: u32) = settle_body
}

#[inline(always)]
fn settle_body(codes: &mut [u16], drawn: &mut [u16], shares: &[u16], fraction: u32) {
    let half = (1 << fraction) >> 1;
    for ((code, drawn), &share) in codes.iter_mut().zip(drawn).zip(shares) {
        let (to, from, share) = (i32::from(*code) << fraction, i32::from(*drawn), i32::from(share));
        let eased = if (to - from).abs() <= LITTLE { from } else { step(from, to, share) };
        let is_new = from == 0 || share == WHOLE as i32;
        *drawn = if is_new { to.max(1) } else { eased } as u16;
        *code = if is_new { *code } else { ((eased + half) >> fraction) as u16 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_fall_while_nothing_moves_and_rise_with_change() {
        assert_eq!(share(0, 0, 4), WHOLE);
        let calm: Vec<u32> = (0..LONGEST).map(|calm| share(calm, 0, 4)).collect();
        assert!(calm.is_sorted_by(|a, b| a >= b) && calm[calm.len() - 1] == 4, "{calm:?}");
        let change: Vec<u32> = (0..=u16::MAX).map(|change| share(LONGEST, change, 4)).collect();
        assert!(change.is_sorted() && change[0] == 4 && change[MOVED as usize] > 240);
    }

    #[test]
    fn codes_settle_without_going_beyond() {
        for fraction in [0, 4, 6, 8] {
            let most = (1u32 << (16 - fraction)) - 1;
            for (from, to) in [(0, most), (most, 0), (most / 2, most / 3), (1, 1)] {
                let mut drawn = [0];
                let mut code = [from as u16];
                settle(&mut code, &mut drawn, &[4], fraction);
                assert_eq!(code, [from as u16], "nothing was drawn before");
                let mut last = from;
                for _ in 0..2000 {
                    code = [to as u16];
                    settle(&mut code, &mut drawn, &[4], fraction);
                    let now = u32::from(code[0]);
                    assert!(now.abs_diff(to) <= last.abs_diff(to), "{fraction}: {last} to {now} for {to}");
                    last = now;
                }
                assert!(
                    last.abs_diff(to) << fraction <= LITTLE as u32 + (1 << fraction),
                    "{fraction}: {last} for {to}"
                );
                code = [to as u16];
                settle(&mut code, &mut drawn, &[WHOLE as u16], fraction);
                assert_eq!(code, [to as u16], "what moves is as it is");
            }
        }
    }
}
