// SPDX-License-Identifier: MPL-2.0
//! Blur of the background of a frame, into which objects do not bleed.
//!
//! Square cells have the mean of those of their samples that are background, and samples of the background become the bilinear
//! interpolation of the means around them. A cell without background has the mean of the cells around it that have some. A sample that
//! several pixels share is background where all of them are.

use crate::image::Channel;

/// Cells along the longer side of a frame: about as many.
const CELLS: usize = 64;
/// Least side of a cell in px; chroma may have half as many samples.
const LEAST: usize = 4;

/// Side of a cell in px, a power of two.
pub(super) fn cell_side(width: usize, height: usize) -> usize {
    (width.max(height) / CELLS).next_power_of_two().max(LEAST)
}

/// The samples of one channel.
pub(super) struct Plane<'a> {
    pub bytes: &'a mut [u8],
    pub stride: usize,
    pub channel: Channel,
    pub width: usize,
    pub height: usize,
    /// Width and height of a cell in samples, powers of two.
    pub cell: [usize; 2],
}

/// Memory that is used again for each plane.
#[derive(Default)]
pub(super) struct Blur {
    sums: Vec<u64>,
    counts: Vec<u32>,
    means: Vec<u32>,
    /// Means between two rows of cells.
    column: Vec<i64>,
    /// True for each sample of a row that is background.
    row: Vec<bool>,
}

/// Two cells along an axis that a sample lies between, and how much the second counts, of twice the length of a cell.
fn between(at: usize, cell: usize, cells: usize) -> ([usize; 2], u32) {
    let from_center = 2 * at + 1 + cell;
    let second = from_center / (2 * cell);
    let weight = from_center % (2 * cell);
    ([second.saturating_sub(1), second.min(cells - 1)], weight as u32)
}

impl Blur {
    /// Blurs a plane. `mark` says for each sample of a row whether it is background.
    pub(super) fn draw(&mut self, plane: &mut Plane<'_>, mut mark: impl FnMut(usize, &mut [bool])) {
        let Plane { stride, channel, width, height, cell: [cell_width, cell_height], .. } = *plane;
        let Channel { offset, step, sample, .. } = channel;
        let (columns, rows) = (width.div_ceil(cell_width), height.div_ceil(cell_height));
        self.sums.clear();
        self.sums.resize(columns * rows, 0);
        self.counts.clear();
        self.counts.resize(columns * rows, 0);
        self.row.clear();
        self.row.resize(width, false);
        for y in 0..height {
            mark(y, &mut self.row);
            let Some(bytes) = plane.bytes.get(y * stride + offset..) else { return };
            let cells = &mut self.sums[y / cell_height * columns..];
            let counts = &mut self.counts[y / cell_height * columns..];
            let parts = bytes.chunks(step * cell_width).zip(self.row.chunks(cell_width));
            for ((bytes, marks), (cell, count)) in parts.zip(cells.iter_mut().zip(counts)) {
                let (mut sum, mut marked) = (0, 0);
                for (bytes, _) in bytes.chunks(step).zip(marks).filter(|(_, is_marked)| **is_marked) {
                    sum += u64::from(sample.code(bytes));
                    marked += 1;
                }
                *cell += sum;
                *count += marked;
            }
        }
        self.find_means(columns, rows);
        // Sums over both axes, of weights that are twice the length of a cell each.
        let shift = (4 * cell_width * cell_height).trailing_zeros();
        let half = 1_i64 << (shift - 1);
        for y in 0..height {
            mark(y, &mut self.row);
            let ([above, below], down) = between(y, cell_height, rows);
            let (above, below) = (&self.means[above * columns..], &self.means[below * columns..]);
            let down = i64::from(down);
            self.column.clear();
            self.column.extend(above.iter().zip(below).take(columns).map(|(above, below)| {
                i64::from(*above) * (2 * cell_height as i64 - down) + i64::from(*below) * down
            }));
            let Some(bytes) = plane.bytes.get_mut(y * stride + offset..) else { return };
            // Samples between the centers of the same two cells: half a cell at both ends.
            let ends = (0..columns).map(|cell| cell * cell_width + cell_width / 2).chain([width]);
            let mut from = 0;
            for to in ends.map(|end| end.min(width)) {
                if from == to {
                    continue;
                }
                let ([left, right], along) = between(from, cell_width, columns);
                let [left, right] = [left, right].map(|cell| self.column[cell]);
                let (mut sum, slope) = (
                    left * (2 * cell_width as i64) + (right - left) * i64::from(along) + half,
                    2 * (right - left),
                );
                let samples = bytes[from * step..].chunks_mut(step).zip(&self.row[from..to]);
                for (bytes, is_marked) in samples {
                    if *is_marked {
                        sample.set(bytes, (sum >> shift) as u16);
                    }
                    sum += slope;
                }
                from = to;
            }
        }
    }

    /// Means of the cells, and of their neighbors for those without background.
    fn find_means(&mut self, columns: usize, rows: usize) {
        let mean = |(sum, count): (&u64, &u32)| {
            let count = u64::from(*count);
            ((2 * sum + count) / (2 * count).max(1)) as u32
        };
        self.means.clear();
        self.means.extend(self.sums.iter().zip(&self.counts).map(mean));
        for at in (0..columns * rows).filter(|at| self.counts[*at] == 0) {
            let (x, y) = (at % columns, at / columns);
            let near = (y.saturating_sub(1)..rows.min(y + 2))
                .flat_map(|y| (x.saturating_sub(1)..columns.min(x + 2)).map(move |x| y * columns + x));
            let (mut sum, mut count) = (0, 0);
            for other in near.filter(|other| self.counts[*other] > 0) {
                sum += self.means[other];
                count += 1;
            }
            self.means[at] = sum / count.max(1);
        }
    }
}
