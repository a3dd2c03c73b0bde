// SPDX-License-Identifier: MPL-2.0
//! Motion of the picture on the CPU, from thumbnails: the reference of the stage `temporal/motion`.

// Lanes run over several arrays at once; an iterator over one of them hides that.
#![allow(clippy::needless_range_loop)]

use super::shift_of;
use super::state::State;
use crate::color::{OUTSIDE, unpack};
use crate::cpu::Cpu;
use crate::cpu::level::LANES;
use crate::cpu::level::by_level;
use crate::parallel::{self, prelude::*};

/// Marks a square of a thumbnail without a pixel inside of the mask.
const NO_MEAN: u16 = u16::MAX;
/// Difference of thumbnails with less than half of the squares comparable: above any real difference.
const INCOMPARABLE: u64 = 1 << 40;

/// A thumbnail that is filled row by row of its squares, while the features of its frame are computed.
pub(crate) struct Thumbnail<'a> {
    means: &'a mut [u16],
    columns: usize,
    /// Rows of pixels in a row of squares.
    pub side: usize,
    masked: bool,
}

impl<'a> Thumbnail<'a> {
    /// An empty thumbnail, for frames without temporal mode; [`Self::side`] then returns `rows`.
    pub fn none(rows: usize) -> Self {
        Self { means: &mut [], columns: 1, side: rows, masked: false }
    }

    /// The rows of squares, then `None` up to `height` rows: pixels below the last square belong to none.
    pub fn rows(self, height: usize) -> impl IndexedParallelIterator<Item = Option<Row<'a>>> {
        let Self { means, columns, side, masked } = self;
        let rows = means.par_chunks_mut(columns).map(move |means| Some(Row { means, side, masked }));
        rows.chain(parallel::iter::repeat_n((), height).map(|()| None))
    }
}

/// A row of squares.
pub(crate) struct Row<'a> {
    means: &'a mut [u16],
    side: usize,
    masked: bool,
}

impl Row<'_> {
    /// Averages the pixels of the row, `width` features wide.
    pub fn average(self, features: &[u32], width: usize) {
        if self.masked {
            self.average_inside(features, width);
        } else {
            means(self.means, features, width, self.side);
        }
    }

    /// Averages the pixels inside of a mask.
    fn average_inside(self, features: &[u32], width: usize) {
        for (u, mean) in self.means.iter_mut().enumerate() {
            let square = features.chunks(width).flat_map(|row| &row[u * self.side..][..self.side]);
            let inside = square.filter(|feature| **feature != OUTSIDE);
            let (sum, count) = inside.fold((0, 0), |(sum, count), &f| (sum + unpack(f)[0], count + 1));
            *mean = u32::checked_div(sum, count).map_or(NO_MEAN, |mean| mean as u16);
        }
    }
}

by_level! {
    /// Computes means of channel 0 over a row of squares.
    fn means(means: &mut [u16], features: &[u32], width: usize, side: usize) = means_body
}

#[inline(always)]
fn means_body(means: &mut [u16], features: &[u32], width: usize, side: usize) {
    let pixels = 2 * side.ilog2();
    for (u, mean) in means.iter_mut().enumerate() {
        let mut sums = [0; LANES];
        for row in features.chunks(width) {
            let (pieces, rest) = row[u * side..][..side].as_chunks::<LANES>();
            for piece in pieces {
                for lane in 0..LANES {
                    sums[lane] += unpack(piece[lane])[0];
                }
            }
            for (sum, &feature) in sums.iter_mut().zip(rest) {
                *sum += unpack(feature)[0];
            }
        }
        *mean = (sums.iter().sum::<u32>() >> pixels) as u16;
    }
}

by_level! {
    /// Squared difference of two rows.
    fn squared_difference(one: &[u16], other: &[u16]) -> u32 = squared_difference_body
}

#[inline(always)]
fn squared_difference_body(one: &[u16], other: &[u16]) -> u32 {
    // Means have 10 bits, and a row at most 128 of them.
    let difference = |(&a, &b): (&u16, &u16)| i32::from(a as i16 - b as i16);
    one.iter().zip(other).map(difference).map(|d| d * d).sum::<i32>() as u32
}

impl State {
    /// Starts the next frame's thumbnail; this one becomes the last.
    pub fn next_thumbnail(&mut self) -> Thumbnail<'_> {
        self.thumbnails.swap(0, 1);
        Thumbnail {
            means: &mut self.thumbnails[0],
            columns: self.plan.thumbnail[0].max(1) as usize,
            side: self.plan.square as usize,
            masked: self.plan.masked,
        }
    }

    /// Estimates the motion of the picture.
    pub(super) fn estimate_shift(&mut self, cpu: &Cpu) {
        let [now, last] = &self.thumbnails;
        let [columns, rows] = self.plan.thumbnail.map(|side| side as i32);
        let [reach_x, reach_y] = self.plan.reach.map(|reach| reach as i32);
        let across = 2 * reach_x + 1;
        // Squares of a row that every shift can compare, moved.
        let span = |u: i32, v: i32| {
            let first = (v * columns + u) as usize;
            first..first + (columns - 2 * reach_x).max(0) as usize
        };
        let (mut count, mut sum, mut squares) = (0u64, 0u64, 0u64);
        for v in reach_y..rows - reach_y {
            for &mean in now[span(reach_x, v)].iter().filter(|mean| **mean != NO_MEAN) {
                count += 1;
                sum += u64::from(mean);
                squares += u64::from(mean).pow(2);
            }
        }
        let pairs = |index: i32| {
            let (dx, dy) = (index % across - reach_x, index / across - reach_y);
            (reach_y..rows - reach_y)
                .map(move |v| (&now[span(reach_x, v)], &last[span(reach_x - dx, v - dy)]))
        };
        let difference = |index: i32| -> u64 {
            pairs(index).map(|(here, there)| u64::from(squared_difference(here, there))).sum()
        };
        let difference_inside = |index: i32| -> u64 {
            let pairs = pairs(index).flat_map(|(here, there)| here.iter().zip(there));
            let inside = pairs.filter(|(a, b)| **a != NO_MEAN && **b != NO_MEAN);
            let squared = inside.map(|(&a, &b)| u64::from(a.abs_diff(b)).pow(2));
            match squared.fold((0, 0), |(sum, compared), d| (sum + d, compared + 1)) {
                (sum, compared) if 2 * compared >= count.max(1) => sum * count / compared,
                _ => INCOMPARABLE,
            }
        };
        let (differences, masked) = (&mut self.scratch.differences, self.plan.masked);
        cpu.run(|| {
            differences.par_iter_mut().enumerate().for_each(|(i, d)| {
                *d = if masked { difference_inside(i as i32) } else { difference(i as i32) };
            });
        });
        self.shift = shift_of(&self.plan, differences);
        let least = differences.iter().copied().min().unwrap_or(0);
        let [part, noise] = self.plan.unlike.map(u64::from);
        self.unlike = 8 * least * count > part * (count * squares - sum * sum) + 8 * noise * count * count;
    }
}
