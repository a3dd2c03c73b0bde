// SPDX-License-Identifier: MPL-2.0
//! Gradients of regions: the change of color along one line that explains most of a region's pixels.
//!
//! A plane of color (least squares, as the drawing of `post/abstraction` has it) rises in another direction in each channel; a gradient of
//! SVG has one for all. With V the covariance of positions, plus a ridge, and c_k that of positions with the codes of channel k, a line of
//! least squares along a direction d explains the sum over k of (d c_k)² / d V d. That is largest for the first eigenvector of
//! V⁻¹ C, C the sum of c_k c_kᵀ, and the slope of channel k along it is d c_k / d V d.

use std::collections::HashMap;

use super::{OUTSIDE, wide};
use crate::error::{Error, Result};
use crate::image::{Geometry, Labels};

/// Pixels below which a region has no gradient.
const LEAST_PIXELS: u32 = 8;
/// Variance of positions in px² that is added in both directions: small regions have flatter gradients.
const RIDGE: f64 = 4.0;
/// Difference in codes between both ends below which nobody sees a gradient.
const LEAST_CHANGE: u8 = 2;

/// A change of color along a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gradient {
    /// Columns and rows of both ends, in px from the corner of the picture. Beyond them colors stay.
    pub ends: [[f64; 2]; 2],
    /// Red, green and blue there.
    pub colors: [[u8; 3]; 2],
}

/// Sums over the pixels of a region.
#[derive(Debug, Clone, Copy)]
struct Sums {
    pixels: u32,
    /// Of columns and rows, and of their products xx, xy and yy.
    at: [u64; 2],
    squares: [u64; 3],
    /// Of the codes of each channel, and of their products with columns and rows.
    codes: [u64; 3],
    products: [[u64; 2]; 3],
    low: [u8; 3],
    high: [u8; 3],
}

impl Sums {
    const NONE: Self = Self {
        pixels: 0,
        at: [0; 2],
        squares: [0; 3],
        codes: [0; 3],
        products: [[0; 2]; 3],
        low: [u8::MAX; 3],
        high: [0; 3],
    };

    fn add(&mut self, [x, y]: [usize; 2], rgb: [u8; 3]) {
        let at = [x as u64, y as u64];
        self.pixels += 1;
        (self.at[0], self.at[1]) = (self.at[0] + at[0], self.at[1] + at[1]);
        for (sum, product) in self.squares.iter_mut().zip([at[0] * at[0], at[0] * at[1], at[1] * at[1]]) {
            *sum += product;
        }
        for (c, code) in rgb.into_iter().enumerate() {
            self.codes[c] += u64::from(code);
            self.products[c][0] += at[0] * u64::from(code);
            self.products[c][1] += at[1] * u64::from(code);
            self.low[c] = self.low[c].min(code);
            self.high[c] = self.high[c].max(code);
        }
    }

    /// The line along which color changes, if it does.
    fn line(&self) -> Option<Line> {
        if self.pixels < LEAST_PIXELS {
            return None;
        }
        let n = f64::from(self.pixels);
        let middle = self.at.map(|sum| sum as f64 / n);
        let with = |sum: u64, a: f64, b: f64| sum as f64 / n - a * b;
        let xx = with(self.squares[0], middle[0], middle[0]) + RIDGE;
        let xy = with(self.squares[1], middle[0], middle[1]);
        let yy = with(self.squares[2], middle[1], middle[1]) + RIDGE;
        let codes = [0, 1, 2].map(|c| {
            let mean = self.codes[c] as f64 / n;
            [0, 1].map(|axis| with(self.products[c][axis], middle[axis], mean))
        });
        let of_codes = |a: usize, b: usize| codes.iter().map(|with| with[a] * with[b]).sum::<f64>();
        let (code_xx, code_xy, code_yy) = (of_codes(0, 0), of_codes(0, 1), of_codes(1, 1));
        // V⁻¹ C but for a factor, which leaves eigenvectors as they are.
        let (a, b) = (yy * code_xx - xy * code_xy, yy * code_xy - xy * code_yy);
        let (c, d) = (xx * code_xy - xy * code_xx, xx * code_yy - xy * code_xy);
        let half = (a - d) / 2.0;
        let root = (half * half + b * c).max(0.0).sqrt();
        // Of both forms of the eigenvector the one that does not cancel.
        let [x, y] = if half >= 0.0 { [half + root, c] } else { [b, root - half] };
        let length = (x * x + y * y).sqrt();
        // All directions are alike where there is none.
        let [x, y] = if length > 0.0 { [x / length, y / length] } else { [1.0, 0.0] };
        let variance = x * x * xx + 2.0 * x * y * xy + y * y * yy;
        let slopes = codes.map(|with| (x * with[0] + y * with[1]) / variance);
        let far = [f64::INFINITY, f64::NEG_INFINITY];
        Some(Line { middle, direction: [x, y], slopes, reach: far, low: self.low, high: self.high })
    }
}

/// A line through the middle of a region.
struct Line {
    middle: [f64; 2],
    direction: [f64; 2],
    /// Change of each channel in codes a px.
    slopes: [f64; 3],
    /// Where the region's first and last pixels are on it, in px from the middle.
    reach: [f64; 2],
    low: [u8; 3],
    high: [u8; 3],
}

impl Line {
    fn extend(&mut self, [x, y]: [usize; 2]) {
        let away = [x as f64 - self.middle[0], y as f64 - self.middle[1]];
        let along = away[0] * self.direction[0] + away[1] * self.direction[1];
        self.reach = [self.reach[0].min(along), self.reach[1].max(along)];
    }
}

/// How colors change within the regions of a picture.
pub struct Gradients {
    lines: HashMap<u32, Line>,
}

/// Calls `visit` with label, row, first and last column of every run of pixels in a region.
fn for_each_run(labels: &[u32], width: usize, mut visit: impl FnMut(u32, usize, [usize; 2])) {
    for (y, row) in labels.chunks_exact(width).enumerate() {
        let mut x = 0;
        for run in row.chunk_by(|a, b| a == b) {
            if run[0] != OUTSIDE {
                visit(run[0], y, [x, x + run.len() - 1]);
            }
            x += run.len();
        }
    }
}

impl Gradients {
    /// Measures the regions of a map of `geometry`, row by row without gaps; pixels with the label [`OUTSIDE`] are in no region. `rgb` has
    /// red, green and blue of each pixel.
    ///
    /// # Errors
    /// `labels` or `rgb` of another length, and too little memory.
    pub fn new(labels: &[u32], rgb: &[u8], geometry: Geometry) -> Result<Self> {
        let pixels = geometry.pixels();
        for (what, needed, got) in [("labels", pixels, labels.len()), ("pixels", 3 * pixels, rgb.len())] {
            if got != needed {
                return Err(Error::Plane { what, needed, got });
            }
        }
        let width = geometry.width() as usize;
        // There are no more regions than runs.
        let mut runs = 0;
        for_each_run(labels, width, |_, _, _| runs += 1);
        let bytes = 2 * runs * (size_of::<(u32, Sums)>() + size_of::<(u32, Line)>());
        Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| Error::Memory { what: "gradients", bytes })?;
        let (rgb, _) = rgb.as_chunks();
        let mut sums: HashMap<u32, Sums> = HashMap::new();
        for_each_run(labels, width, |label, y, [first, last]| {
            let sums = sums.entry(label).or_insert(Sums::NONE);
            (first..=last).for_each(|x| sums.add([x, y], rgb[y * width + x]));
        });
        let mut lines: HashMap<u32, Line> =
            sums.iter().filter_map(|(&label, sums)| Some((label, sums.line()?))).collect();
        for_each_run(labels, width, |label, y, ends| {
            if let Some(line) = lines.get_mut(&label) {
                ends.into_iter().for_each(|x| line.extend([x, y]));
            }
        });
        Ok(Self { lines })
    }

    /// Measures the regions of a label map of the library.
    ///
    /// # Errors
    /// As [`Gradients::new`].
    pub fn of(labels: &Labels<'_>, rgb: &[u8]) -> Result<Self> {
        Self::new(&wide(labels), rgb, labels.geometry())
    }

    /// The gradient of a region with a mean color, from one end of it to the other, or to where the channel that changes most leaves the
    /// codes that the region has. None where nobody would see it.
    pub fn gradient(&self, label: u32, mean: [u8; 3]) -> Option<Gradient> {
        let line = self.lines.get(&label)?;
        // A mean of light may lie outside of the codes of the region's pixels.
        let range = [0, 1, 2].map(|c| [line.low[c].min(mean[c]), line.high[c].max(mean[c])].map(f64::from));
        let most = (0..3).max_by(|&a, &b| line.slopes[a].abs().total_cmp(&line.slopes[b].abs()))?;
        let mut limits = range[most].map(|code| (code - f64::from(mean[most])) / line.slopes[most]);
        limits.sort_by(f64::total_cmp);
        let reach = [line.reach[0].max(limits[0]), line.reach[1].min(limits[1])];
        let ends = reach.map(|along| {
            // Pixels have their middle half a pixel from their corner.
            [0, 1].map(|axis| line.middle[axis] + along * line.direction[axis] + 0.5)
        });
        let colors = reach.map(|along| {
            [0, 1, 2].map(|c| {
                let code = (f64::from(mean[c]) + line.slopes[c] * along).round();
                code.clamp(range[c][0], range[c][1]) as u8
            })
        });
        let is_seen = (0..3).any(|c| colors[0][c].abs_diff(colors[1][c]) >= LEAST_CHANGE);
        is_seen.then_some(Gradient { ends, colors })
    }
}
