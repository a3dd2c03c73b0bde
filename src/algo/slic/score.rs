// SPDX-License-Identifier: MPL-2.0
//! Scores of pixels against SLIC's clusters on the CPU: the arithmetic of the reference, in integers.

// Lanes and channels run over several arrays at once; an iterator over one of them hides that.
#![allow(clippy::needless_range_loop)]

use super::{ADAPTIVE_ONE, Adaptive, Plan};
use crate::algo::clustering::samples::WIDE;
use crate::color::unpack;
use crate::grid::{CANDIDATES, Grid};
use crate::temporal::Inertia;
use crate::temporal::predict::{CANDIDATE, add_parts, mask};

/// A cluster: mean feature in shifted quanta, scaled position, SLICO's M_k.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Center {
    pub color: [i32; 3],
    pub position: [i32; 2],
    pub spread: u32,
}

/// The candidates of one cell in the form that scores need. A score is 16 times `(Σ |p - color|)² + |position|² - 2 p ·
/// position`, which is the distance less the squared length of the pixel's position, with everything relative to the
/// cell's first pixel and to mid gamut. The candidate's number stands in the low four bits, so the least score also
/// names its candidate, the first of equals.
pub(super) struct Candidates {
    pub len: usize,
    pub labels: [u32; CANDIDATES],
    /// 16 times the squared length of the position, plus the candidate's number.
    constant: [i32; CANDIDATES],
    /// Four times L, a, b, so that squares of their sums are 16 times as large. All lanes are equal: filling them once
    /// is faster than broadcasting each time.
    color: [[[i16; WIDE]; 3]; CANDIDATES],
    /// Factors of x and y.
    weights: [[i32; CANDIDATES]; 2],
    pub centers: [Center; CANDIDATES],
    /// Labels follow from numbers: candidate i is in row `(i * row_part) >> 5` of the 3x3 cells, and `row_step` more
    /// cells lie between its rows.
    row_part: u16,
    row_step: u16,
    /// Clusters of the grid.
    pub cells: u16,
}

/// Low bits of a score that hold the candidate's number.
const NUMBER_BITS: u32 = 4;
/// Scale of colors, whose squares then leave those bits free.
const COLOR_SCALE: i16 = 1 << (NUMBER_BITS / 2);

/// Extracts the number from a score.
#[inline(always)]
fn number(score: i32) -> u16 {
    score as u16 & ((1 << NUMBER_BITS) - 1)
}

impl Candidates {
    pub const NONE: Self = Self {
        len: 0,
        labels: [0; CANDIDATES],
        constant: [0; CANDIDATES],
        color: [[[0; WIDE]; 3]; CANDIDATES],
        weights: [[0; CANDIDATES]; 2],
        centers: [Center { color: [0; 3], position: [0; 2], spread: 0 }; CANDIDATES],
        row_part: 0,
        row_step: 0,
        cells: 0,
    };

    /// Loads the candidates of a cell, in place: most of the time goes into memory.
    #[inline(always)]
    pub fn set(&mut self, grid: &Grid, plan: &Plan, centers: &[Center], gx: usize, gy: usize) {
        self.cells = grid.cells() as u16;
        let (x0, y0) = (plan.px[grid.columns(gx).start], plan.py[grid.rows(gy).start]);
        let nx = grid.nx as usize;
        let across = (gx + 2).min(nx) - gx.saturating_sub(1);
        (self.row_part, self.row_step) = (32u16.div_ceil(across as u16), (nx - across) as u16);
        for (i, k) in grid.candidates(gx, gy).enumerate() {
            let mut center = centers[k];
            for j in 0..3 {
                center.color[j] -= plan.middle[j];
                self.color[i][j] = [COLOR_SCALE * center.color[j] as i16; WIDE];
            }
            center.position[0] -= x0;
            center.position[1] -= y0;
            let [x, y] = center.position;
            // Only plain SLIC uses these scores; for it they stay exact.
            debug_assert!(plan.adaptive.is_some() || x * x + y * y < 1 << 24);
            self.constant[i] = ((x * x + y * y) << NUMBER_BITS) + i as i32;
            (self.weights[0][i], self.weights[1][i]) = (-2 * (x << NUMBER_BITS), -2 * (y << NUMBER_BITS));
            self.labels[i] = k as u32;
            self.centers[i] = center;
            self.len = i + 1;
        }
    }

    /// Scores of candidate `i`, where `position` is the position part and `p` is four times the color.
    #[inline(always)]
    fn scores<const N: usize>(
        &self,
        p: &[[i16; N]; 3],
        position: impl Fn(usize) -> i32,
        i: usize,
    ) -> [i32; N] {
        let mut scores = [0; N];
        let mut color = [0i16; N];
        let [l, a, b] = &self.color[i];
        for lane in 0..N {
            color[lane] =
                (p[0][lane] - l[lane]).abs() + (p[1][lane] - a[lane]).abs() + (p[2][lane] - b[lane]).abs();
        }
        for lane in 0..N {
            // Below 2^15, so that a 16-bit multiplication squares it.
            let color = i32::from(color[lane] & i16::MAX);
            scores[lane] = color * color + position(lane);
        }
        scores
    }

    /// Adds a row's position to the constant part of the scores.
    #[inline(always)]
    pub fn in_row(&self, y: i32) -> [i32; CANDIDATES] {
        std::array::from_fn(|i| self.constant[i] + self.weights[1][i] * y)
    }

    /// Labels of the candidates with the given numbers.
    #[inline(always)]
    fn labels_of<const N: usize>(&self, index: &[u16; N]) -> [u16; N] {
        let (first, mut labels) = (self.labels[0] as u16, [0; N]);
        for lane in 0..N {
            let i = index[lane];
            labels[lane] = first + i + ((i * self.row_part) >> 5) * self.row_step;
        }
        labels
    }
}

/// Columns of a cell with their part of the scores, kept from row to row.
pub(super) struct Columns {
    /// Column part of the score, by candidate.
    across: [[i32; WIDE]; CANDIDATES],
    squares: [i32; WIDE],
}

impl Columns {
    pub const NONE: Self = Self { across: [[0; WIDE]; CANDIDATES], squares: [0; WIDE] };

    /// `x` are scaled positions in the cell.
    #[inline(always)]
    pub fn set(&mut self, candidates: &Candidates, x: &[i32; WIDE]) {
        for (across, weight) in self.across.iter_mut().zip(candidates.weights[0]) {
            *across = x.map(|x| weight * x);
        }
        self.squares = x.map(|x| x * x);
    }
}

/// A row of a cell.
pub(super) struct Row<'a> {
    pub plan: &'a Plan,
    pub candidates: &'a Candidates,
    /// Row part of the scores, see [`Candidates::in_row`].
    pub constant: [i32; CANDIDATES],
    /// Scaled position of the row in the cell.
    pub y: i32,
}

impl Row<'_> {
    /// Four times the color.
    #[inline(always)]
    fn color<const N: usize>(&self, features: &[u32; N]) -> [[i16; N]; 3] {
        let mut color = [[0; N]; 3];
        for lane in 0..N {
            let channels = unpack(features[lane]);
            for j in 0..3 {
                let v = (channels[j] >> self.plan.color_shift) as i16;
                color[j][lane] = COLOR_SCALE * (v - self.plan.middle[j] as i16);
            }
        }
        color
    }

    #[inline(always)]
    fn scores<const N: usize>(&self, columns: &Columns, color: &[[i16; N]; 3], i: usize) -> [i32; N] {
        let across = &columns.across[i];
        self.candidates.scores(color, |lane| across[lane] + self.constant[i], i)
    }

    /// Returns the labels of the nearest candidates.
    #[inline(always)]
    pub fn labels<const N: usize>(&self, columns: &Columns, features: &[u32; N]) -> [u16; N] {
        let color = self.color(features);
        let mut best = [i32::MAX; N];
        for i in 0..self.candidates.len {
            keep_least(&mut best, &self.scores(columns, &color, i));
        }
        self.candidates.labels_of(&best.map(number))
    }

    /// Like [`Self::label`], with distances to predicted candidates discounted. Also returns the least distances,
    /// without discount.
    #[inline(always)]
    pub fn labels_predicted<const N: usize>(
        &self,
        columns: &Columns,
        features: &[u32; N],
        inertia: Inertia,
        predicted: &[u16; N],
    ) -> ([u16; N], [u32; N]) {
        let color = self.color(features);
        let (mut best, mut kept, own) = ([i32::MAX; N], [0; N], candidate_of(predicted));
        for i in 0..self.candidates.len {
            let scores = self.scores(columns, &color, i);
            keep_least(&mut best, &scores);
            keep_own(&mut kept, &scores, &own, i);
        }
        let mut norm = [0; N];
        for lane in 0..N {
            norm[lane] = columns.squares[lane] + self.y * self.y;
        }
        let mut index = best.map(number);
        let least = distances(&best, &norm);
        prefer(inertia, &norm, &own, predicted, &kept, &least, &mut index);
        let mut labels = self.candidates.labels_of(&index);
        add_parts(self.candidates.cells, predicted, &index, &mut labels);
        (labels, least)
    }
}

/// Some pixels of one cell: features relative to mid gamut, scaled position relative to the cell.
pub(super) struct Pixels<const N: usize> {
    pub color: [[i32; N]; 3],
    pub position: [[i32; N]; 2],
}

impl<const N: usize> Pixels<N> {
    #[inline(always)]
    pub fn new(plan: &Plan, features: &[u32; N], x: &[i32; N], y: &[i32; N]) -> Self {
        let mut color = [[0; N]; 3];
        for lane in 0..N {
            let channels = unpack(features[lane]);
            for j in 0..3 {
                color[j][lane] = (channels[j] >> plan.color_shift) as i32 - plan.middle[j];
            }
        }
        Self { color, position: [*x, *y] }
    }

    /// Returns the index of each pixel's nearest candidate.
    #[inline(always)]
    pub fn nearest(&self, candidates: &Candidates) -> [u16; N] {
        let color = self.wide_color();
        let mut best = [i32::MAX; N];
        for i in 0..candidates.len {
            keep_least(&mut best, &self.scores(candidates, &color, i));
        }
        best.map(number)
    }

    /// Like [`Self::nearest`] with SLICO's scores, in integers.
    #[inline(always)]
    pub fn nearest_adaptive(&self, candidates: &Candidates, adaptive: &Adaptive) -> [u16; N] {
        let mut best = [u64::MAX; N];
        let mut index = [0; N];
        for i in 0..candidates.len {
            let center = &candidates.centers[i];
            let weight = u64::from(ADAPTIVE_ONE / center.spread);
            for lane in 0..N {
                let color = self.color_distance(center, lane);
                let [dx, dy] = [0, 1].map(|j| self.position[j][lane] - center.position[j]);
                let position = (dx * dx + dy * dy) as u32;
                let score = u64::from(color) * weight + u64::from(position) * u64::from(adaptive.position);
                let lower = score < best[lane];
                best[lane] = if lower { score } else { best[lane] };
                index[lane] = if lower { i as u16 } else { index[lane] };
            }
        }
        index
    }

    /// Like [`Self::nearest`], with the distance to a predicted candidate discounted. Also returns the least distance,
    /// without discount.
    #[inline(always)]
    pub fn nearest_predicted(
        &self,
        candidates: &Candidates,
        inertia: Inertia,
        predicted: &[u16; N],
    ) -> ([u16; N], [u64; N]) {
        let color = self.wide_color();
        let (mut best, mut kept, own) = ([i32::MAX; N], [0; N], candidate_of(predicted));
        for i in 0..candidates.len {
            let scores = self.scores(candidates, &color, i);
            keep_least(&mut best, &scores);
            keep_own(&mut kept, &scores, &own, i);
        }
        let mut norm = [0; N];
        for lane in 0..N {
            let [x, y] = [0, 1].map(|j| self.position[j][lane]);
            norm[lane] = x * x + y * y;
        }
        let mut index = best.map(number);
        let least = distances(&best, &norm);
        prefer(inertia, &norm, &own, predicted, &kept, &least, &mut index);
        (index, least.map(u64::from))
    }

    /// Like [`Self::nearest_predicted`] with SLICO's scores. The least distance is returned without its low
    /// `RESIDUAL_BITS`.
    #[inline(always)]
    pub fn nearest_predicted_adaptive(
        &self,
        candidates: &Candidates,
        adaptive: &Adaptive,
        inertia: Inertia,
        predicted: &[u16; N],
    ) -> ([u16; N], [u64; N]) {
        let (mut index, mut least) = ([0; N], [0; N]);
        for lane in 0..N {
            let score = |i: usize| self.adaptive_score(&candidates.centers[i], adaptive, lane);
            let all = || (0..candidates.len).map(|i| (score(i), i));
            least[lane] = all().map(|(score, _)| score).min().unwrap_or(0) >> RESIDUAL_BITS;
            let discounted = |(score, i): (u64, usize)| {
                let own = i == usize::from(predicted[lane] & CANDIDATE);
                let left = || inertia.discounted_fine(score, predicted[lane], RESIDUAL_BITS);
                (if own { left() } else { score }, i)
            };
            index[lane] = all().map(discounted).min().map_or(0, |(_, i)| i as u16);
        }
        (index, least)
    }

    /// Four times the color.
    #[inline(always)]
    fn wide_color(&self) -> [[i16; N]; 3] {
        self.color.map(|channel| channel.map(|v| COLOR_SCALE * v as i16))
    }

    #[inline(always)]
    fn scores(&self, candidates: &Candidates, color: &[[i16; N]; 3], i: usize) -> [i32; N] {
        let (constant, [x, y]) = (candidates.constant[i], [0, 1].map(|j| candidates.weights[j][i]));
        candidates.scores(color, |lane| constant + x * self.position[0][lane] + y * self.position[1][lane], i)
    }

    #[inline(always)]
    fn adaptive_score(&self, center: &Center, adaptive: &Adaptive, lane: usize) -> u64 {
        let weight = u64::from(ADAPTIVE_ONE / center.spread);
        let [dx, dy] = [0, 1].map(|j| self.position[j][lane] - center.position[j]);
        let position = (dx * dx + dy * dy) as u32;
        u64::from(self.color_distance(center, lane)) * weight
            + u64::from(position) * u64::from(adaptive.position)
    }

    /// SLICO's squared color distance.
    #[inline(always)]
    pub fn color_distance(&self, center: &Center, lane: usize) -> u32 {
        (0..3).map(|j| (self.color[j][lane] - center.color[j]).pow(2) as u32).sum()
    }
}

/// Assigns each pixel to the candidate that it is predicted to belong to, if the discount makes that nearer than the
/// nearest, `index`, at the distance `least`. `kept` are the scores of the predicted candidates, which are `norm` less
/// than distances. All lanes go through it at once; a lane without a prediction does not change.
#[inline(always)]
fn prefer<const N: usize>(
    inertia: Inertia,
    norm: &[i32; N],
    own: &[u16; N],
    predicted: &[u16; N],
    kept: &[i32; N],
    least: &[u32; N],
    index: &mut [u16; N],
) {
    let mut others = 0;
    for lane in 0..N {
        others |= (own[lane] ^ index[lane]) & mask(own[lane] < CANDIDATES as u16);
    }
    // Most pixels are nearest to the cluster that they are predicted to belong to.
    if others == 0 {
        return;
    }
    let kept = distances(kept, norm);
    let mut preferred = [0; N];
    for lane in 0..N {
        let discounted = inertia.discounted(kept[lane], predicted[lane]);
        let nearer = (discounted < least[lane]) | ((discounted == least[lane]) & (own[lane] < index[lane]));
        preferred[lane] = mask(nearer & (own[lane] < CANDIDATES as u16));
    }
    for lane in 0..N {
        index[lane] = (own[lane] & preferred[lane]) | (index[lane] & !preferred[lane]);
    }
}

/// Converts scores, which are `norm` less, to distances.
#[inline(always)]
fn distances<const N: usize>(scores: &[i32; N], norm: &[i32; N]) -> [u32; N] {
    let mut distances = [0; N];
    for lane in 0..N {
        distances[lane] = ((scores[lane] >> NUMBER_BITS) + norm[lane]) as u32;
    }
    distances
}

/// Low bits of SLICO's scores that residuals drop.
const RESIDUAL_BITS: u32 = 20;

/// Masks predictions to the candidates that they name.
#[inline(always)]
fn candidate_of<const N: usize>(predicted: &[u16; N]) -> [u16; N] {
    let mut own = [0; N];
    for lane in 0..N {
        own[lane] = predicted[lane] & CANDIDATE;
    }
    own
}

/// Keeps the scores of candidate `i` where it is a lane's `own`. One select per lane is faster than storing all scores
/// and loading one.
#[inline(always)]
fn keep_own<const N: usize>(kept: &mut [i32; N], scores: &[i32; N], own: &[u16; N], i: usize) {
    for lane in 0..N {
        let chosen = -i32::from(own[lane] == i as u16);
        kept[lane] = (kept[lane] & !chosen) | (scores[lane] & chosen);
    }
}

#[inline(always)]
fn keep_least<const N: usize>(best: &mut [i32; N], scores: &[i32; N]) {
    for lane in 0..N {
        best[lane] = best[lane].min(scores[lane]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algo::AlgorithmParams;
    use crate::image::{FrameInfo, Geometry, PixelFormat};
    use crate::params::Params;

    #[test]
    fn labels_follow_from_numbers() {
        for (width, height) in [(16, 16), (32, 40), (48, 48), (300, 100), (16, 400)] {
            let geometry = Geometry::new(width, height).unwrap();
            let params = Params { superpixel_size: 16, ..Params::default() };
            let AlgorithmParams::Slic(slic) = &params.algorithm else { unreachable!("the default") };
            let plan = crate::plan::Plan::new(&params, FrameInfo::new(geometry, PixelFormat::Rgb)).unwrap();
            let own = Plan::new(slic, geometry, &plan.grid);
            let centers = vec![Center::default(); plan.grid.cells()];
            let mut candidates = Candidates::NONE;
            for gy in 0..plan.grid.ny as usize {
                for gx in 0..plan.grid.nx as usize {
                    candidates.set(&plan.grid, &own, &centers, gx, gy);
                    for i in 0..candidates.len {
                        let label = candidates.labels_of(&[i as u16]);
                        assert_eq!(label, [candidates.labels[i] as u16], "{width}x{height} {gx} {gy} {i}");
                    }
                }
            }
        }
    }
}
