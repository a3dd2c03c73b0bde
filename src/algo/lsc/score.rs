// SPDX-License-Identifier: MPL-2.0
//! Scores of pixels against LSC's clusters on the CPU: the arithmetic of the reference. Results depend on the rounding
//! of floats, so every backend makes each one by the same operations: single ones, and `mul_add`, which rounds once.

// Lanes and channels run over several arrays at once; an iterator over one of them hides that.
#![allow(clippy::needless_range_loop)]

use super::{ColorPairs, Plan, unpack_pair};
use crate::color::unpack;
use crate::cpu::level::LANES;
use crate::grid::{CANDIDATES, Grid};
use crate::temporal::Inertia;
use crate::temporal::predict::CANDIDATE;

/// The mean feature's color in quanta, and the weights that follow from it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mean {
    /// `φ̄'`, rounded half up; the four numbers of position are zero.
    color: [i64; 6],
    /// `|φ̄'|²`.
    norm: i64,
    /// `φ̄' / |φ̄'|²`.
    weights: [f32; 6],
}

impl Mean {
    pub fn new(sums: [i64; 6], count: i64) -> Self {
        let color = sums.map(|sum| (2 * sum + count) / (2 * count));
        let norm = color.iter().map(|v| v * v).sum::<i64>();
        let scale = 1.0 / norm as f32;
        Self { color, norm, weights: color.map(|v| v as f32 * scale) }
    }

    /// The mean of a frame that has one color only.
    pub fn of_color(pairs: [u32; 3]) -> Self {
        let [l, a, b] = pairs.map(|pair| unpack_pair(pair).map(i64::from));
        Self::new([l[0], l[1], a[0], a[1], b[0], b[1]], 1)
    }
}

/// `S_k`: the sum of a cluster's members, color before position. The next round and the next frame start from it alone.
pub(crate) type Sums = [i64; 10];

/// A cluster in the form that scores need.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Cluster {
    /// `-2 T_k`, color before position, the latter times the weight of position.
    along: [f32; 10],
    /// `|T_k|²`.
    norm: f32,
}

impl Cluster {
    const NONE: Self = Self { along: [0.0; 10], norm: 0.0 };

    /// Derives a cluster from its sums; `None` for one without members. With members `S_k · φ̄'` is positive, because
    /// colors of the gamut have positive cosines and sines of a and b.
    pub fn new(sums: &Sums, mean: &Mean, position_weight: f32) -> Option<Self> {
        let dot = (0..6).map(|j| sums[j] * mean.color[j]).sum::<i64>();
        if dot == 0 {
            return None;
        }
        let scale = 1.0 / dot as f32;
        let mut cluster = Self::default();
        for j in 0..10 {
            // Below 2^57: sums have 32 bits, the norm 25.
            let mut exact = mean.norm * sums[j];
            if j < 6 {
                exact -= dot * mean.color[j];
            }
            let across = exact as f32 * scale;
            let weighted = if j < 6 { across } else { across * position_weight };
            cluster.norm = weighted.mul_add(across, cluster.norm);
            cluster.along[j] = -2.0 * weighted;
        }
        Some(cluster)
    }
}

/// Returns the pairs of L, a and b of a packed color.
#[inline(always)]
pub(super) fn color_pairs(color: &ColorPairs, feature: u32) -> [u32; 3] {
    let [l, a, b] = unpack(feature);
    // `unpack` returns values within these masks; repeating them here removes the bounds checks.
    [color.l[l as usize & 1023], color.ab[a as usize & 2047], color.ab[b as usize & 2047]]
}

/// The candidates of one cell.
pub(super) struct Candidates {
    pub len: usize,
    pub labels: [u32; CANDIDATES],
    pub clusters: [Cluster; CANDIDATES],
    /// Clusters of the grid.
    pub cells: u16,
}

impl Candidates {
    pub const NONE: Self =
        Self { len: 0, labels: [0; CANDIDATES], clusters: [Cluster::NONE; CANDIDATES], cells: 0 };

    #[inline(always)]
    pub fn new(grid: &Grid, clusters: &[Cluster], gx: usize, gy: usize) -> Self {
        let mut all = Self { cells: grid.cells() as u16, ..Self::NONE };
        for (i, k) in grid.candidates(gx, gy).enumerate() {
            (all.labels[i], all.clusters[i]) = (k as u32, clusters[k]);
            all.len = i + 1;
        }
        all
    }
}

/// Some pixels: the color of their features, and their weights.
pub(super) struct Pixels {
    pub pairs: [[u32; LANES]; 3],
    color: [[f32; LANES]; 6],
    weight: [f32; LANES],
}

impl Pixels {
    #[inline(always)]
    pub fn new(color: &ColorPairs, mean: &Mean, features: &[u32; LANES]) -> Self {
        let mut all = Self { pairs: [[0; LANES]; 3], color: [[0.0; LANES]; 6], weight: [0.0; LANES] };
        for lane in 0..LANES {
            let pairs = color_pairs(color, features[lane]);
            for j in 0..3 {
                all.pairs[j][lane] = pairs[j];
            }
        }
        for j in 0..3 {
            [all.color[2 * j], all.color[2 * j + 1]] = floats(&all.pairs[j]);
        }
        for lane in 0..LANES {
            all.weight[lane] = all.color[0][lane] * mean.weights[0];
        }
        for j in 1..6 {
            for lane in 0..LANES {
                all.weight[lane] = all.color[j][lane].mul_add(mean.weights[j], all.weight[lane]);
            }
        }
        all
    }

    /// Adds the color part to a score. The order of additions is part of the definition.
    #[inline(always)]
    pub fn score(&self, cluster: &Cluster, score: &mut [f32; LANES]) {
        for lane in 0..LANES {
            score[lane] = self.weight[lane].mul_add(cluster.norm, score[lane]);
        }
        for j in 0..6 {
            for lane in 0..LANES {
                score[lane] = self.color[j][lane].mul_add(cluster.along[j], score[lane]);
            }
        }
    }
}

/// Converts scores, and the part that all candidates of a pixel share, to distances in whole quanta. Equals `as u32`,
/// which has no vector instruction.
#[inline(always)]
pub(super) fn distances(plan: &Plan, mean: &Mean, pixels: &Pixels, scores: &[f32; LANES]) -> [u32; LANES] {
    const END: f32 = 4_294_967_296.0;
    let mut distances = [0; LANES];
    for lane in 0..LANES {
        let weight = pixels.weight[lane];
        let shared = plan.square / weight - mean.norm as f32 * weight;
        let distance = shared + scores[lane];
        let whole = whole(distance.max(0.0).min(END.next_down()).floor());
        distances[lane] = if distance >= END { u32::MAX } else { whole };
    }
    distances
}

/// Assigns each pixel to the candidate that it is predicted to belong to, if that is nearest once its distance is
/// discounted. `kept` are the scores of the predicted candidates, `best` the least of all. All lanes go through it at
/// once; a lane without a prediction does not change.
#[inline(always)]
pub(super) fn prefer(
    (plan, mean): (&Plan, &Mean),
    inertia: Inertia,
    pixels: &Pixels,
    predicted: &[u16; LANES],
    kept: &[f32; LANES],
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
    let (nearest, kept) = (distances(plan, mean, pixels, best), distances(plan, mean, pixels, kept));
    for lane in 0..LANES {
        let discounted = inertia.discounted_any(kept[lane], predicted[lane]);
        let preferred =
            (discounted < nearest[lane]) | ((discounted == nearest[lane]) & (own[lane] < index[lane]));
        let preferred = preferred & (own[lane] < CANDIDATES as u32);
        index[lane] = if preferred { own[lane] } else { index[lane] };
    }
}

/// Splits pairs into cosines and sines.
#[inline(always)]
pub(super) fn floats(pairs: &[u32; LANES]) -> [[f32; LANES]; 2] {
    let mut all = [[0.0; LANES]; 2];
    for lane in 0..LANES {
        let [c, s] = unpack_pair(pairs[lane]);
        (all[0][lane], all[1][lane]) = (c as f32, s as f32);
    }
    all
}

/// The column part of a score, to which the row part is added next.
#[inline(always)]
pub(super) fn score_x(cluster: &Cluster, [c, s]: &[[f32; LANES]; 2]) -> [f32; LANES] {
    let mut score = [0.0; LANES];
    for lane in 0..LANES {
        score[lane] = s[lane].mul_add(cluster.along[7], c[lane] * cluster.along[6]);
    }
    score
}

#[inline(always)]
pub(super) fn add_score_y(score: &mut [f32; LANES], cluster: &Cluster, [c, s]: &[[f32; LANES]; 2]) {
    for lane in 0..LANES {
        let first = c[lane].mul_add(cluster.along[8], score[lane]);
        score[lane] = s[lane].mul_add(cluster.along[9], first);
    }
}

#[inline(always)]
pub(super) fn keep_lower(best: &mut [f32; LANES], index: &mut [u32; LANES], score: &[f32; LANES], i: u32) {
    for lane in 0..LANES {
        let lower = score[lane] < best[lane];
        best[lane] = if lower { score[lane] } else { best[lane] };
        index[lane] = if lower { i } else { index[lane] };
    }
}

/// Keeps the scores of candidate `i` in lanes that are predicted to belong to it.
#[inline(always)]
pub(super) fn keep_own(kept: &mut [f32; LANES], score: &[f32; LANES], predicted: &[u16; LANES], i: u32) {
    for lane in 0..LANES {
        let own = u32::from(u32::from(predicted[lane] & CANDIDATE) == i).wrapping_neg();
        kept[lane] = f32::from_bits((kept[lane].to_bits() & !own) | (score[lane].to_bits() & own));
    }
}

/// Converts a whole number from 0 to 2^32 - 1, without the range checks of `as`, which have no vector instruction.
#[inline(always)]
fn whole(v: f32) -> u32 {
    /// 2^52: a number added to it stands in the low bits of the mantissa.
    const LIFT: f64 = 4_503_599_627_370_496.0;
    (f64::from(v) + LIFT).to_bits() as u32
}
