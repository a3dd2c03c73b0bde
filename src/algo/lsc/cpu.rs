// SPDX-License-Identifier: MPL-2.0
//! LSC on the CPU, the reference: the clusters and rounds that [`Clustering`] runs in `lsc/mean`, `lsc/seed`,
//! `lsc/carry`, `lsc/assign` and `lsc/update`; `lsc/label` is in `label.rs`.
//!
//! Results depend on the rounding of floats, so every backend makes each one by the same operations: single ones, and
//! `mul_add`, which rounds once. A processor without such an instruction calls a slow function with the same result.

// Lanes and channels run over several arrays at once; an iterator over one of them hides that.
#![allow(clippy::needless_range_loop)]

use super::label::label_band;
use super::score::{
    Candidates, Cluster, Mean, Pixels, Sums, add_score_y, color_pairs, distances, floats, keep_lower,
    keep_own, prefer, score_x,
};
use super::{ColorPairs, Plan, unpack_pair};
use crate::algo::AlgorithmPlan;
use crate::algo::clustering::cpu::{self as clustering, Clustering, Clusters, Stages};
use crate::algo::clustering::samples::{BAND, Samples};
use crate::color::OUTSIDE;
use crate::cpu::chunk;
use crate::cpu::level::{LANES, by_level};
use crate::cpu::memory::Array;
use crate::cpu::{Cpu, memory};
use crate::error::Result;
use crate::grid::{CANDIDATES, Grid};
use crate::image::LabelBand;
use crate::parallel::prelude::*;
use crate::plan;
use crate::temporal::predict::NO_CANDIDATE;
use crate::temporal::state::{ClusterSource, State};
use crate::temporal::{Inertia, whole_px};

/// LSC's stages on the CPU.
pub(crate) type Lsc = Clustering<Means>;

type Band = clustering::Band<Means>;

impl clustering::Sums for Sums {
    #[inline]
    fn add(&mut self, other: &Sums) {
        self.iter_mut().zip(other).for_each(|(sum, other)| *sum += other);
    }
}

/// The clusters as weighted means of their members. Positions of samples are pairs.
pub(crate) struct Means {
    plan: Plan,
    mean: Mean,
    /// Sums of the last round in which the cluster had members.
    sums: Array<Sums>,
    /// Final sums of the last frame.
    last: Array<Sums>,
    clusters: Array<Cluster>,
}

impl Clusters for Means {
    const STAGES: Stages = Stages {
        gather: Some("lsc/mean"),
        seed: "lsc/seed",
        carry: "lsc/carry",
        assign: "lsc/assign",
        update: "lsc/update",
        label: "lsc/label",
    };
    type Plan = Plan;
    type Position = u32;
    type Sums = Sums;

    fn new(plan: &plan::Plan, lsc: &Plan) -> Result<Self> {
        let cells = plan.grid.cells();
        let last = if plan.temporal.is_some() { cells } else { 0 };
        Ok(Self {
            plan: lsc.clone(),
            mean: Mean::default(),
            sums: memory::filled("clusters", cells, Sums::default())?,
            last: memory::filled("last clusters", last, Sums::default())?,
            clusters: memory::filled("clusters", cells, Cluster::default())?,
        })
    }

    fn own(plan: &AlgorithmPlan) -> Option<&Plan> {
        if let AlgorithmPlan::Lsc(lsc) = plan { Some(lsc) } else { None }
    }

    fn iterations(&self) -> u32 {
        self.plan.iterations
    }

    fn samples(&self, plan: &plan::Plan) -> Result<Vec<Samples<u32>>> {
        let Plan { px, py, .. } = &self.plan;
        Samples::bands(&plan.grid, (plan.temporal.is_some(), plan.masked), |_, x| px[x], |_, y| py[y])
    }

    /// Also computes the mean of all samples, which their weights depend on.
    fn gather(&mut self, cpu: &Cpu, grid: &Grid, bands: &mut [Band], features: &[u32]) {
        let color = &self.plan.color;
        let one = |band: &mut Band| {
            band.samples.gather(grid, features);
            sum_band(&band.samples, color)
        };
        let add = |(mut a, n): ([i64; 6], i64), (b, m): ([i64; 6], i64)| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
            (a, n + m)
        };
        let (sums, count) = cpu.run(|| bands.par_iter_mut().map(one).reduce_with(add)).unwrap_or_default();
        self.mean = match count {
            // The mask excludes every sample.
            0 => Mean::of_color(color_pairs(color, OUTSIDE)),
            _ => Mean::new(sums, count),
        };
    }

    fn seed(&mut self, cpu: &Cpu, grid: &Grid, features: &[u32]) {
        let Self { plan, mean, sums, clusters, .. } = self;
        let nx = grid.nx as usize;
        cpu.run(|| {
            let rows = sums.par_chunks_mut(nx).zip(clusters.par_chunks_mut(nx));
            rows.enumerate().with_min_len(BAND).for_each(|(gy, (sums, clusters))| {
                for (gx, (sums, cluster)) in sums.iter_mut().zip(clusters).enumerate() {
                    plan.seed(grid, features, (gx, gy), sums);
                    *cluster = Cluster::new(sums, mean, plan.position_weight).unwrap_or_default();
                }
            });
        });
    }

    fn carry(&mut self, cpu: &Cpu, grid: &Grid, features: &[u32], state: &State) {
        std::mem::swap(&mut self.sums, &mut self.last);
        let Self { plan, mean, sums, last, clusters } = self;
        let nx = grid.nx as usize;
        cpu.run(|| {
            let rows =
                sums.par_chunks_mut(nx).zip(clusters.par_chunks_mut(nx)).zip(state.sources().par_chunks(nx));
            rows.enumerate().with_min_len(BAND).for_each(|(gy, ((sums, clusters), sources))| {
                for (gx, ((sums, cluster), source)) in sums.iter_mut().zip(clusters).zip(sources).enumerate()
                {
                    match source {
                        Some(source) => plan.carry(grid, last, source, sums),
                        None => plan.seed(grid, features, (gx, gy), sums),
                    }
                    *cluster = Cluster::new(sums, mean, plan.position_weight).unwrap_or_default();
                }
            });
        });
    }

    fn assign_band(&self, grid: &Grid, band: &mut Band, inertia: Option<Inertia>) -> u64 {
        assign_band(band, grid, &self.plan, &self.mean, &self.clusters, inertia)
    }

    fn update(&mut self, cpu: &Cpu, nx: usize, sums: impl Fn(usize, usize) -> Sums + Sync) {
        let Self { plan, mean, sums: all, clusters, .. } = self;
        cpu.run(|| {
            let rows = all.par_chunks_mut(nx).zip(clusters.par_chunks_mut(nx));
            rows.enumerate().with_min_len(BAND).for_each(|(gy, (old, clusters))| {
                for (gx, (old, cluster)) in old.iter_mut().zip(clusters).enumerate() {
                    let sums = sums(gx, gy);
                    if let Some(new) = Cluster::new(&sums, mean, plan.position_weight) {
                        (*old, *cluster) = (sums, new);
                    }
                }
            });
        });
    }

    fn label_band(
        &self,
        grid: &Grid,
        band: &mut LabelBand<'_>,
        features: &[u32],
        state: Option<&State>,
    ) -> u64 {
        label_band(band, grid, &self.plan, &self.mean, &self.clusters, features, state)
    }

    fn positions(&self, grid: &Grid) -> impl Iterator<Item = [i32; 2]> {
        let nx = grid.nx as usize;
        self.sums.iter().enumerate().map(move |(k, sums)| {
            let (x, y) = grid.seed(k % nx, k / nx);
            [
                self.plan.position_of([sums[6], sums[7]], x as i32),
                self.plan.position_of([sums[8], sums[9]], y as i32),
            ]
        })
    }

    /// Sums need no translation: their pairs have fixed lengths, whatever the ratio.
    fn take_over(&mut self, old: Self) {
        self.sums = old.sums;
    }
}

impl Plan {
    /// Starts a cell's cluster with one pixel.
    fn seed(&self, grid: &Grid, features: &[u32], (gx, gy): (usize, usize), sums: &mut Sums) {
        let (x, y) = grid.seed_inside(features, gx, gy);
        let color = color_pairs(&self.color, features[y * grid.geometry.width as usize + x]);
        set_sums(sums, color, [self.px[x], self.py[y]]);
    }

    /// Starts a cell's cluster with one of the last frame, moved by `shift`.
    fn carry(
        &self,
        grid: &Grid,
        last: &[Sums],
        ClusterSource { slot, shift, reseeded }: &ClusterSource,
        sums: &mut Sums,
    ) {
        match reseeded {
            None => *sums = last[*slot],
            Some(([l, a, b], position)) => {
                let sides = [grid.geometry.width, grid.geometry.height].map(|side| side as i32);
                let [x, y] = whole_px(*position);
                let color =
                    [self.color.l[*l as usize], self.color.ab[*a as usize], self.color.ab[*b as usize]];
                let position =
                    [self.px[x.clamp(0, sides[0] - 1) as usize], self.py[y.clamp(0, sides[1] - 1) as usize]];
                set_sums(sums, color, position);
            }
        }
        let moved = self.moved([sums[6], sums[7], sums[8], sums[9]], whole_px(*shift));
        sums[6..].copy_from_slice(&moved);
    }
}

/// Sets sums to those of a cluster of one pixel.
fn set_sums(sums: &mut Sums, color: [u32; 3], position: [u32; 2]) {
    for (j, pair) in color.into_iter().chain(position).enumerate() {
        let [c, s] = unpack_pair(pair);
        (sums[2 * j], sums[2 * j + 1]) = (i64::from(c), i64::from(s));
    }
}

/// Returns the sum of the samples' colors, and their number.
fn sum_band(samples: &Samples<u32>, color: &ColorPairs) -> ([i64; 6], i64) {
    let (mut sums, mut count) = ([0; 6], 0);
    for &(start, len) in &samples.cells {
        // A cell has at most 2^20 samples, as the only one of a frame: see the tests of the tables.
        let mut cell = [0u32; 6];
        for &feature in &samples.features[start..start + len] {
            for (j, pair) in color_pairs(color, feature).into_iter().enumerate() {
                cell[2 * j] += pair & 0xffff;
                cell[2 * j + 1] += pair >> 16;
            }
        }
        for j in 0..6 {
            sums[j] += i64::from(cell[j]);
        }
        count += len as i64;
    }
    (sums, count)
}

/// Packs both numbers of a pair into one word, so that one addition adds both; [`split`] and [`split_color`] take them
/// apart.
#[inline(always)]
fn spread(pair: u32) -> u64 {
    let [c, s] = unpack_pair(pair);
    (i64::from(c) as u64).wrapping_add((i64::from(s) as u64) << 32)
}

/// Packs a pair of color, whose numbers are not negative.
#[inline(always)]
fn split_color(sum: u64) -> [i64; 2] {
    [i64::from(sum as u32), i64::from((sum >> 32) as u32)]
}

#[inline(always)]
fn split(sum: u64) -> [i64; 2] {
    let low = i64::from(sum as i32);
    [low, (sum.wrapping_sub(low as u64) as i64) >> 32]
}

by_level! {
    fn assign_band(
        band: &mut Band,
        grid: &Grid,
        plan: &Plan,
        mean: &Mean,
        clusters: &[Cluster],
        inertia: Option<Inertia>,
    ) -> u64 = lsc_assign_band_body
}

#[inline(always)]
fn lsc_assign_band_body(
    band: &mut Band,
    grid: &Grid,
    plan: &Plan,
    mean: &Mean,
    clusters: &[Cluster],
    inertia: Option<Inertia>,
) -> u64 {
    let mut residual = 0;
    let nx = grid.nx as usize;
    let Band { samples, sums: band_sums } = band;
    band_sums.fill(Sums::default());
    for (cell, &(start, len)) in samples.cells.iter().enumerate() {
        let candidates = Candidates::new(grid, clusters, cell % nx, samples.first + cell / nx);
        // A cell has at most 2^20 samples: sums of either number of a position have 30 bits and a sign, those of a color 32 bits.
        let mut sums = [[0u64; 5]; CANDIDATES];
        for at in (0..len).step_by(LANES) {
            let range = start + at..start + at + LANES;
            let (Some(features), Some(x), Some(y)) = (
                samples.features[range.clone()].first_chunk(),
                samples.x[range.clone()].first_chunk(),
                samples.y[range].first_chunk(),
            ) else {
                continue;
            };
            let pixels = Pixels::new(&plan.color, mean, features);
            let (fx, fy) = (floats(x), floats(y));
            let (mut best, mut index) = ([f32::INFINITY; LANES], [0; LANES]);
            let mut kept = [0.0; LANES];
            let (mut predicted, real) = ([NO_CANDIDATE; LANES], LANES.min(len - at));
            if inertia.is_some() {
                predicted = chunk::first(&samples.predicted[start + at..][..real], NO_CANDIDATE);
            }
            for i in 0..candidates.len {
                let cluster = &candidates.clusters[i];
                let mut score = score_x(cluster, &fx);
                add_score_y(&mut score, cluster, &fy);
                pixels.score(cluster, &mut score);
                keep_lower(&mut best, &mut index, &score, i as u32);
                if inertia.is_some() {
                    keep_own(&mut kept, &score, &predicted, i as u32);
                }
            }
            if let Some(inertia) = inertia {
                prefer((plan, mean), inertia, &pixels, &predicted, &kept, &best, &mut index);
                let least = distances(plan, mean, &pixels, &best);
                residual += least[..real].iter().map(|&d| u64::from(d)).sum::<u64>();
            }
            let [l, a, b] = &pixels.pairs;
            for lane in 0..LANES.min(len - at) {
                let sum = &mut sums[index[lane] as usize];
                for (sum, pair) in sum.iter_mut().zip([l[lane], a[lane], b[lane], x[lane], y[lane]]) {
                    *sum = sum.wrapping_add(spread(pair));
                }
            }
        }
        for (sum, &k) in sums.into_iter().zip(&candidates.labels).take(candidates.len) {
            let to = &mut band_sums[k as usize + nx - samples.first * nx];
            for (j, sum) in sum.into_iter().enumerate() {
                let [c, s] = if j < 3 { split_color(sum) } else { split(sum) };
                to[2 * j] += c;
                to[2 * j + 1] += s;
            }
        }
    }
    residual
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_one_word_stay_apart() {
        let pair = |c: i16, s: i16| u32::from(c as u16) | u32::from(s as u16) << 16;
        let mut sum = 0u64;
        let mut want = [0i64; 2];
        for (c, s) in [(-1024, 1024), (3, -7), (-1, -1), (-1024, 0), (1000, -1024)] {
            for _ in 0..1000 {
                sum = sum.wrapping_add(spread(pair(c, s)));
                want = [want[0] + i64::from(c), want[1] + i64::from(s)];
            }
            assert_eq!(split(sum), want);
        }
        // Largest sum of one cell.
        let most = spread(pair(3264, 3264)) << 20;
        assert_eq!(split_color(most), [3264 << 20; 2]);
        assert_eq!(split(spread(pair(-1024, 1024)) << 20), [-1024 << 20, 1024 << 20]);
    }
}
