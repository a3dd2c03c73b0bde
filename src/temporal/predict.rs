// SPDX-License-Identifier: MPL-2.0
//! Predictions on the CPU: which region every pixel comes from, and how similar it is to what was there.

use super::state::{NONE, State};
use super::{SAME, SIMILARITY_SHIFT, STAYS, STILL};
use crate::color::unpack;
use crate::cpu::level::LANES;
use crate::image::LabelBand;

/// A pixel that is predicted to belong to none of its candidates.
pub(crate) const NO_CANDIDATE: u8 = u8::MAX;
/// Bits of a prediction that name the candidate.
pub(crate) const CANDIDATE: u8 = 15;
/// How many they may name: candidates, and none.
pub(crate) const PREDICTED: usize = CANDIDATE as usize + 1;

/// Sum over the channels of the absolute difference of two features.
#[inline(always)]
pub(super) fn feature_difference(a: u32, b: u32) -> u32 {
    let (a, b) = (unpack(a), unpack(b));
    a[0].abs_diff(b[0]) + a[1].abs_diff(b[1]) + a[2].abs_diff(b[2])
}

/// A row of the last frame.
struct LastRow<'a> {
    features: &'a [u32],
    labels: &'a [u16],
}

/// What predictions for a row of pixels in one cell rest on.
struct Predictor<'a> {
    /// This frame's features.
    now: &'a [u32],
    /// The same row of the last frame, and the one that the cell came from.
    still: LastRow<'a>,
    moved: LastRow<'a>,
    move_x: i32,
    cells: &'a [u32],
    /// First column and row of the cells that are candidates, and how many there are.
    corner: [u32; 2],
    sides: [u32; 2],
    /// The last label that was asked for, and its candidate.
    known: Option<(u16, u8)>,
}

/// Pixels of a row that are looked back from at a time.
const BLOCK: usize = 32;

/// Differences of neighboring pixels.
#[inline(always)]
fn differ(a: &[u32], b: &[u32], out: &mut [u32]) {
    for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
        *out = feature_difference(a, b);
    }
}

/// How similar a pixel is that differs so much from where it comes from: in eighths.
#[inline(always)]
fn similarity_of(difference: u32) -> u8 {
    SAME.saturating_sub(difference).div_ceil(SAME / 8) as u8
}

impl Predictor<'_> {
    /// The last frame's label that a pixel is predicted from, and its similarity.
    #[inline(always)]
    fn at(&self, x: usize) -> (u16, u8) {
        if feature_difference(self.now[x], self.still.features[x]) < STILL {
            return (self.still.labels[x], STAYS);
        }
        let from = (x as i32 - self.move_x).clamp(0, self.now.len() as i32 - 1) as usize;
        let difference = feature_difference(self.now[x], self.moved.features[from]);
        (self.moved.labels[from], similarity_of(difference))
    }

    /// Writes the predictions for the neighboring pixels from `x` on, at most `BLOCK`.
    #[inline(always)]
    fn predict_block(&mut self, x: usize, out: &mut [u16]) {
        let n = out.len();
        let now = &self.now[x..][..n];
        let (mut differences, mut labels, mut similarity) = ([0; BLOCK], [0; BLOCK], [STAYS; BLOCK]);
        differ(now, &self.still.features[x..][..n], &mut differences);
        labels[..n].copy_from_slice(&self.still.labels[x..][..n]);
        if differences.iter().fold(0, |most: u32, &difference| most.max(difference)) >= STILL {
            let from = usize::try_from(x as i32 - self.move_x).ok().filter(|from| from + n <= self.now.len());
            let Some(from) = from else {
                for (x, out) in (x..x + n).zip(out) {
                    let (label, similarity) = self.at(x);
                    *out = u16::from(self.candidate(label) | similarity << SIMILARITY_SHIFT);
                }
                return;
            };
            let mut moved = [0; BLOCK];
            differ(now, &self.moved.features[from..][..n], &mut moved[..n]);
            let last = moved.iter().zip(&self.moved.labels[from..][..n]);
            for (((&mut difference, similarity), label), (&moved, &moved_label)) in
                differences.iter_mut().zip(&mut similarity).zip(&mut labels).zip(last)
            {
                let stays = difference < STILL;
                *label = if stays { *label } else { moved_label };
                *similarity = if stays { STAYS } else { similarity_of(moved) };
            }
        }
        let (labels, similarity) = (labels.as_chunks().0, similarity.as_chunks::<LANES>().0);
        for ((out, labels), similarity) in out.chunks_mut(LANES).zip(labels).zip(similarity) {
            let candidates = self.candidates(labels);
            let mut all = [0; LANES];
            for lane in 0..LANES {
                all[lane] = u16::from(candidates[lane] | similarity[lane] << SIMILARITY_SHIFT);
            }
            out.copy_from_slice(&all[..out.len()]);
        }
    }

    /// The candidates that have some labels' clusters.
    #[inline(always)]
    fn candidates(&mut self, labels: &[u16; LANES]) -> [u8; LANES] {
        // Most are of one region.
        if labels.iter().fold(0, |others, label| others | (label ^ labels[0])) == 0 {
            return [self.candidate(labels[0]); LANES];
        }
        let cells = labels.map(|label| self.cell(label));
        let mut candidates = [NO_CANDIDATE; LANES];
        for lane in 0..LANES {
            candidates[lane] = self.of_cell(cells[lane]);
        }
        candidates
    }

    /// The cell that a label's cluster is in; none of what was outside of a mask.
    #[inline(always)]
    fn cell(&self, label: u16) -> u32 {
        self.cells.get(usize::from(label)).copied().unwrap_or(NONE)
    }

    /// The candidate that a cell is, given as column, and row in the upper half.
    #[inline(always)]
    fn of_cell(&self, cell: u32) -> u8 {
        let [dx, dy] =
            [(cell & 0xffff).wrapping_sub(self.corner[0]), (cell >> 16).wrapping_sub(self.corner[1])];
        let inside = (dx < self.sides[0]) & (dy < self.sides[1]);
        if inside { dy.wrapping_mul(self.sides[0]).wrapping_add(dx) as u8 } else { NO_CANDIDATE }
    }

    #[inline(always)]
    fn candidate(&mut self, label: u16) -> u8 {
        match self.known {
            Some((known, candidate)) if known == label => candidate,
            _ => {
                let candidate = self.of_cell(self.cell(label));
                self.known = Some((label, candidate));
                candidate
            }
        }
    }
}

impl State {
    /// What is asked about pixels in row `y` of a cell. Only while warm.
    #[inline(always)]
    fn predictor<'a>(&'a self, (gx, gy): (usize, usize), y: usize, features: &'a [u32]) -> Predictor<'a> {
        let (nx, ny) = (self.grid.nx as usize, self.grid.ny as usize);
        let (width, height) = (self.grid.geometry.width as usize, self.grid.geometry.height as i32);
        let [move_x, move_y] = self.moves[gy * nx + gx];
        let from = (y as i32 - move_y).clamp(0, height - 1) as usize;
        let row = |y: usize| {
            let pixels = y * width..(y + 1) * width;
            LastRow { features: &self.features[pixels.clone()], labels: &self.labels[pixels] }
        };
        let (left, top) = (gx.saturating_sub(1) as u32, gy.saturating_sub(1) as u32);
        Predictor {
            now: &features[y * width..][..width],
            still: row(y),
            moved: row(from),
            move_x,
            cells: &self.cells,
            corner: [left, top],
            sides: [(gx + 2).min(nx) as u32 - left, (gy + 2).min(ny) as u32 - top],
            known: None,
        }
    }

    /// Writes the predictions for some pixels in row `y` of a cell: the candidate that each belongs to, and its similarity.
    pub fn predict(
        &self,
        cell: (usize, usize),
        y: usize,
        columns: impl Iterator<Item = usize>,
        features: &[u32],
        out: &mut [u8],
    ) {
        if !self.warm {
            out.fill(NO_CANDIDATE);
            return;
        }
        let mut look = self.predictor(cell, y, features);
        for (x, out) in columns.zip(out) {
            let (label, similarity) = look.at(x);
            *out = look.candidate(label) | similarity << SIMILARITY_SHIFT;
        }
    }

    /// The same for all pixels of a band in one row of cells, left where their labels will be: row by row, since what two frames
    /// have at the cells, one after the other, is far apart.
    #[inline(always)]
    pub fn predict_band(&self, gy: usize, features: &[u32], band: &mut LabelBand<'_>) {
        for y in 0..band.rows() {
            let (at, row) = (band.first_row + y, band.row_mut(y));
            if !self.warm {
                row.fill(u16::from(NO_CANDIDATE));
                continue;
            }
            for gx in 0..self.grid.nx as usize {
                let columns = self.grid.columns(gx);
                let mut look = self.predictor((gx, gy), at, features);
                for (first, out) in columns.clone().step_by(BLOCK).zip(row[columns].chunks_mut(BLOCK)) {
                    look.predict_block(first, out);
                }
            }
        }
    }
}
