// SPDX-License-Identifier: MPL-2.0
//! Sums over the samples and the boundary of every region, by bands of rows.

use std::ops::Range;

use super::paint::Moments;
use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::image::{Frame, Labels, NO_LABEL, PIECE, RowCodes};
use crate::post::runs::{for_each_change, for_each_difference};
use crate::post::statistics::cpu::label_span;

/// Frames of at least as many pixels are sampled at every second column and row.
const SPARSE: usize = 1 << 16;

/// Columns and rows from one sample to the next.
pub(super) fn sample_step(pixels: usize) -> usize {
    if pixels < SPARSE { 1 } else { 2 }
}

/// Sums of one task's rows for the labels that occur in them and in the row below.
#[derive(Default)]
pub(super) struct BandMoments {
    lowest: u16,
    sums: Array<Moments>,
}

impl BandMoments {
    /// Adds up some rows. Without `samples` only boundaries count.
    pub fn measure(
        &mut self,
        frame: &Frame<'_>,
        labels: &Labels<'_>,
        rows: Range<usize>,
        samples: bool,
        neutral: u16,
    ) -> Result<()> {
        let height = labels.geometry().height() as usize;
        let occurring = label_span(labels, rows.start..(rows.end + 1).min(height));
        self.lowest = occurring.start;
        memory::refill(&mut self.sums, "moments", occurring.len(), Moments::default())?;
        let step = sample_step(labels.geometry().pixels());
        for y in rows {
            let row = labels.row(y);
            for_each_change(row, |x| self.add_side(row[x - 1], row[x]));
            if y + 1 < height {
                let below = labels.row(y + 1);
                for_each_difference(row, below, |x| self.add_side(row[x], below[x]));
            }
            if samples && y % step == 0 {
                self.add_row(frame, row, y, step, neutral);
            }
        }
        Ok(())
    }

    /// Counts a side of two pixels.
    fn add_side(&mut self, a: u16, b: u16) {
        if a != NO_LABEL && b != NO_LABEL {
            self.sums[usize::from(a - self.lowest)].sides += 1;
            self.sums[usize::from(b - self.lowest)].sides += 1;
        }
    }

    /// Adds the samples of a row.
    fn add_row(&mut self, frame: &Frame<'_>, row: &[u16], y: usize, step: usize, neutral: u16) {
        let pixels = RowCodes::new(frame, y);
        let mut codes = [[neutral; PIECE]; 3];
        for first in (0..row.len()).step_by(PIECE) {
            pixels.gather(first, &mut codes);
            let row = &row[first..row.len().min(first + PIECE)];
            let mut from = 0;
            while from < row.len() {
                let label = row[from];
                let mut end = from + step;
                while end < row.len() && row[end] == label {
                    end += step;
                }
                if label != NO_LABEL {
                    let sums = run(&codes, from, end.min(row.len()), step, first, y);
                    self.sums[usize::from(label - self.lowest)].add(&sums);
                }
                from = end;
            }
        }
    }

    /// Adds this task's sums to those of all labels.
    pub fn add_to(&self, sums: &mut [Moments]) {
        sums.iter_mut().skip(usize::from(self.lowest)).zip(&self.sums).for_each(|(sum, part)| sum.add(part));
    }
}

/// Sums over a run of samples of one label in row `y`; `first` is the column of the codes' first.
#[inline(always)]
fn run(codes: &[[u16; PIECE]; 3], from: usize, end: usize, step: usize, first: usize, y: usize) -> Moments {
    let mut sums = Moments::default();
    let (mut code, mut at_code) = ([0u32; 3], [0u32; 3]);
    let (mut x, mut xx) = (0u64, 0u64);
    for at in (from..end).step_by(step) {
        let column = (first + at) as u64;
        x += column;
        xx += column * column;
        for c in 0..3 {
            let value = u32::from(codes[c][at]);
            code[c] += value;
            at_code[c] += value * at as u32;
            sums.low_gap[c] = sums.low_gap[c].max(u32::from(u16::MAX) - value);
            sums.high[c] = sums.high[c].max(value);
        }
        sums.samples += 1;
    }
    let (n, y, first) = (u64::from(sums.samples), y as u64, first as u64);
    (sums.x, sums.y, sums.xx, sums.xy, sums.yy) = (x, n * y, xx, x * y, n * y * y);
    for c in 0..3 {
        sums.code[c] = code[c].into();
        sums.x_code[c] = u64::from(at_code[c]) + first * u64::from(code[c]);
        sums.y_code[c] = y * u64::from(code[c]);
    }
    sums
}
