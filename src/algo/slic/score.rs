// SPDX-License-Identifier: MPL-2.0
//! What pixels score against SLIC's clusters, on the CPU: the arithmetic of the reference. Every number is an exact integer,
//! whatever type holds it.

// Lanes and channels run over several arrays at once; an iterator over one of them hides that.
#![allow(clippy::needless_range_loop)]

use super::cpu::Center;
use super::{ADAPTIVE_ONE, Adaptive, Plan};
use crate::algo::grid::Grid;
use crate::algo::samples::{CANDIDATES, LANES, whole};
use crate::algo::temporal::Inertia;
use crate::algo::temporal::look_back::{CANDIDATE, PREDICTED};
use crate::color::unpack;

/// The candidates of one cell, transposed for scoring: `score = (Σ |p - color|)² + constant + Σ weight · p`, which is the distance
/// less the squared length of the pixel's place, with everything relative to the cell's first pixel and to mid gamut.
pub(super) struct Candidates {
    pub len: usize,
    pub labels: [u32; CANDIDATES],
    constant: [f32; CANDIDATES],
    /// L, a, b.
    color: [[f32; CANDIDATES]; 3],
    /// x, y.
    weights: [[f32; CANDIDATES]; 2],
    pub centers: [Center; CANDIDATES],
}

impl Candidates {
    #[inline(always)]
    pub fn new(grid: &Grid, plan: &Plan, centers: &[Center], gx: usize, gy: usize) -> Self {
        let (x0, y0) = (plan.px[grid.columns(gx).start], plan.py[grid.rows(gy).start]);
        let mut all = Self {
            len: 0,
            labels: [0; CANDIDATES],
            constant: [0.0; CANDIDATES],
            color: [[0.0; CANDIDATES]; 3],
            weights: [[0.0; CANDIDATES]; 2],
            centers: [Center::default(); CANDIDATES],
        };
        for (i, k) in grid.candidates(gx, gy).enumerate() {
            let mut center = centers[k];
            for j in 0..3 {
                center.color[j] -= plan.middle[j];
            }
            center.place[0] -= x0;
            center.place[1] -= y0;
            for j in 0..3 {
                all.color[j][i] = center.color[j] as f32;
            }
            let mut norm = 0i64;
            for (j, v) in center.place.into_iter().enumerate() {
                norm += i64::from(v) * i64::from(v);
                all.weights[j][i] = (-2 * v) as f32;
            }
            // With SLICO the scores are integers and this one, which may be inexact, is not used.
            debug_assert!(plan.adaptive.is_some() || norm < 1 << 24);
            all.constant[i] = norm as f32;
            all.labels[i] = k as u32;
            all.centers[i] = center;
            all.len = i + 1;
        }
        all
    }

    /// Scores of the candidate `i`.
    #[inline(always)]
    fn score<const FMA: bool>(&self, p: &[[f32; LANES]; 5], i: usize) -> [f32; LANES] {
        let mut place = [self.constant[i]; LANES];
        for (p, weights) in p[3..].iter().zip(&self.weights) {
            for lane in 0..LANES {
                place[lane] = madd::<FMA>(p[lane], weights[i], place[lane]);
            }
        }
        self.add_color::<FMA>(p, &place, i)
    }

    /// `rest` and the squared color distance of the candidate `i`; of `p`, the first three are the color.
    #[inline(always)]
    fn add_color<const FMA: bool>(&self, p: &[[f32; LANES]], rest: &[f32; LANES], i: usize) -> [f32; LANES] {
        let mut score = [0.0; LANES];
        for lane in 0..LANES {
            let [l, a, b] = [0, 1, 2].map(|j| (p[j][lane] - self.color[j][i]).abs());
            let color = l + a + b;
            score[lane] = madd::<FMA>(color, color, rest[lane]);
        }
        score
    }
}

/// Some pixels of one cell: features relative to mid gamut, scaled place relative to the cell.
pub(super) struct Pixels {
    pub color: [[i32; LANES]; 3],
    pub place: [[i32; LANES]; 2],
}

impl Pixels {
    #[inline(always)]
    pub fn new(plan: &Plan, features: &[u32; LANES], x: &[i32; LANES], y: &[i32; LANES]) -> Self {
        let mut color = [[0; LANES]; 3];
        for lane in 0..LANES {
            let channels = unpack(features[lane]);
            for j in 0..3 {
                color[j][lane] = (channels[j] >> plan.color_shift) as i32 - plan.middle[j];
            }
        }
        Self { color, place: [*x, *y] }
    }

    /// The index of each pixel's nearest candidate.
    #[inline(always)]
    pub fn nearest<const FMA: bool>(&self, candidates: &Candidates) -> [u32; LANES] {
        let p = self.floats();
        let mut best = [f32::INFINITY; LANES];
        let mut index = [0u32; LANES];
        for i in 0..candidates.len {
            keep_lower(&mut best, &mut index, &candidates.score::<FMA>(&p, i), i as u32);
        }
        index
    }

    /// The same for SLICO, in integers.
    #[inline(always)]
    pub fn nearest_adaptive(&self, candidates: &Candidates, adaptive: &Adaptive) -> [u32; LANES] {
        let mut best = [u64::MAX; LANES];
        let mut index = [0u32; LANES];
        for i in 0..candidates.len {
            let center = &candidates.centers[i];
            let weight = u64::from(ADAPTIVE_ONE / center.spread);
            for lane in 0..LANES {
                let color = self.color_distance(center, lane);
                let [dx, dy] = [0, 1].map(|j| self.place[j][lane] - center.place[j]);
                let place = (dx * dx + dy * dy) as u32;
                let score = u64::from(color) * weight + u64::from(place) * u64::from(adaptive.place);
                let lower = score < best[lane];
                best[lane] = if lower { score } else { best[lane] };
                index[lane] = if lower { i as u32 } else { index[lane] };
            }
        }
        index
    }

    /// The same where a candidate is predicted, which is spared part of its distance. Also gives the least distance, with
    /// nothing spared.
    #[inline(always)]
    pub fn nearest_predicted<const FMA: bool>(
        &self,
        candidates: &Candidates,
        inertia: Inertia,
        predicted: &[u8; LANES],
    ) -> ([u32; LANES], [u64; LANES]) {
        let p = self.floats();
        let mut scores = [[0.0; LANES]; PREDICTED];
        let mut best = [f32::INFINITY; LANES];
        let mut index = [0u32; LANES];
        for i in 0..candidates.len {
            scores[i] = candidates.score::<FMA>(&p, i);
            keep_lower(&mut best, &mut index, &scores[i], i as u32);
        }
        let norm = squares::<FMA>(&p[3..], 0.0);
        prefer(inertia, &norm, predicted, &scores, &best, &mut index);
        (index, distances(&best, &norm).map(u64::from))
    }

    /// The same for SLICO: the upper part of the least distance.
    #[inline(always)]
    pub fn nearest_predicted_adaptive(
        &self,
        candidates: &Candidates,
        adaptive: &Adaptive,
        inertia: Inertia,
        predicted: &[u8; LANES],
    ) -> ([u32; LANES], [u64; LANES]) {
        let (mut index, mut least) = ([0; LANES], [0; LANES]);
        for lane in 0..LANES {
            let score = |i: usize| self.adaptive_score(&candidates.centers[i], adaptive, lane);
            let all = || (0..candidates.len).map(|i| (score(i), i));
            least[lane] = all().map(|(score, _)| score).min().unwrap_or(0) >> RESIDUAL_BITS;
            let spared = |(score, i): (u64, usize)| {
                let own = i == usize::from(predicted[lane] & CANDIDATE);
                let left = || inertia.spared_of_fine(score, predicted[lane], RESIDUAL_BITS);
                (if own { left() } else { score }, i)
            };
            index[lane] = all().map(spared).min().map_or(0, |(_, i)| i as u32);
        }
        (index, least)
    }

    /// Color and place as scores need them.
    #[inline(always)]
    fn floats(&self) -> [[f32; LANES]; 5] {
        let ([l, a, b], [x, y]) = (&self.color, &self.place);
        [l, a, b, x, y].map(|v| v.map(|v| v as f32))
    }

    #[inline(always)]
    fn adaptive_score(&self, center: &Center, adaptive: &Adaptive, lane: usize) -> u64 {
        let weight = u64::from(ADAPTIVE_ONE / center.spread);
        let [dx, dy] = [0, 1].map(|j| self.place[j][lane] - center.place[j]);
        let place = (dx * dx + dy * dy) as u32;
        u64::from(self.color_distance(center, lane)) * weight + u64::from(place) * u64::from(adaptive.place)
    }

    /// SLICO's squared color distance.
    #[inline(always)]
    pub fn color_distance(&self, center: &Center, lane: usize) -> u32 {
        (0..3).map(|j| (self.color[j][lane] - center.color[j]).pow(2) as u32).sum()
    }
}

/// `a * b + c`. Every product and sum here is an exact integer, so fusing changes nothing but speed.
#[inline(always)]
pub(super) fn madd<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// Takes the predicted candidates, which are spared part of their distance, where that makes them nearer than the nearest,
/// `index`. The scores of all candidates, and `best`, are `norm` less than distances. All lanes at once; in one without
/// a prediction nothing changes.
#[inline(always)]
pub(super) fn prefer(
    inertia: Inertia,
    norm: &[f32; LANES],
    predicted: &[u8; LANES],
    scores: &[[f32; LANES]; PREDICTED],
    best: &[f32; LANES],
    index: &mut [u32; LANES],
) {
    let own = predicted.map(|predicted| u32::from(predicted & CANDIDATE));
    let mut others = false;
    for lane in 0..LANES {
        others |= (own[lane] != index[lane]) & (own[lane] < CANDIDATES as u32);
    }
    // Most pixels are nearest to the cluster that they are predicted to belong to.
    if !others {
        return;
    }
    let mut kept = [0.0; LANES];
    for lane in 0..LANES {
        kept[lane] = scores[usize::from(predicted[lane] & CANDIDATE)][lane];
    }
    let (nearest, kept) = (distances(best, norm), distances(&kept, norm));
    for lane in 0..LANES {
        let spared = inertia.spared(kept[lane], predicted[lane]);
        let preferred = (spared < nearest[lane]) | ((spared == nearest[lane]) & (own[lane] < index[lane]));
        let preferred = preferred & (own[lane] < CANDIDATES as u32);
        index[lane] = if preferred { own[lane] } else { index[lane] };
    }
}

/// Distances, from scores that are `norm` less.
#[inline(always)]
pub(super) fn distances(scores: &[f32; LANES], norm: &[f32; LANES]) -> [u32; LANES] {
    let mut distances = [0; LANES];
    for lane in 0..LANES {
        distances[lane] = whole(scores[lane] + norm[lane]);
    }
    distances
}

/// Bits of SLICO's scores that residuals go without.
const RESIDUAL_BITS: u32 = 20;

#[inline(always)]
pub(super) fn keep_lower(best: &mut [f32; LANES], index: &mut [u32; LANES], score: &[f32; LANES], i: u32) {
    for lane in 0..LANES {
        let lower = score[lane] < best[lane];
        best[lane] = if lower { score[lane] } else { best[lane] };
        index[lane] = if lower { i } else { index[lane] };
    }
}

/// The constants of scores with a row's place in them.
#[inline(always)]
pub(super) fn with_row<const FMA: bool>(candidates: &Candidates, y: i32) -> [f32; CANDIDATES] {
    let mut constant = [0.0; CANDIDATES];
    for i in 0..CANDIDATES {
        constant[i] = madd::<FMA>(y as f32, candidates.weights[1][i], candidates.constant[i]);
    }
    constant
}

/// Sums of squares, and `rest`.
#[inline(always)]
pub(super) fn squares<const FMA: bool>(p: &[[f32; LANES]], rest: f32) -> [f32; LANES] {
    let mut sum = [rest; LANES];
    for v in p {
        for lane in 0..LANES {
            sum[lane] = madd::<FMA>(v[lane], v[lane], sum[lane]);
        }
    }
    sum
}

/// Pixels as scores in a row need them: relative to mid gamut, and their places in the row.
#[inline(always)]
pub(super) fn color_and_x(plan: &Plan, features: &[u32; LANES], x: &[f32; LANES]) -> [[f32; LANES]; 4] {
    let mut p = [[0.0; LANES], [0.0; LANES], [0.0; LANES], *x];
    for lane in 0..LANES {
        let channels = unpack(features[lane]);
        for j in 0..3 {
            p[j][lane] = ((channels[j] >> plan.color_shift) as i32 - plan.middle[j]) as f32;
        }
    }
    p
}

/// Scores of a candidate.
#[inline(always)]
pub(super) fn score_in_row<const FMA: bool>(
    candidates: &Candidates,
    constant: &[f32; CANDIDATES],
    p: &[[f32; LANES]; 4],
    i: usize,
) -> [f32; LANES] {
    let mut place = [0.0; LANES];
    for lane in 0..LANES {
        place[lane] = madd::<FMA>(p[3][lane], candidates.weights[0][i], constant[i]);
    }
    candidates.add_color::<FMA>(p, &place, i)
}
