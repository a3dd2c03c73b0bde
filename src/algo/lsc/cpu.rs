// SPDX-License-Identifier: MPL-2.0
//! LSC on the CPU: the reference. Stages `lsc/mean`, `lsc/seed`, `lsc/assign`, `lsc/update`, `lsc/label`.
//!
//! Cell rows are worked on in bands of fixed height, whatever the number of threads. Floats decide here, so every one is
//! made by the same operations everywhere: single ones, and `mul_add`, which rounds once. Where the processor has no such
//! instruction that is a slow call, and the result is the same.

// Lanes and channels run over several arrays at once; an iterator over one of them hides that.
#![allow(clippy::needless_range_loop)]

use multiversion::multiversion;
use rayon::prelude::*;

use super::{ColorPairs, Plan, unpack_pair};
use crate::algo::grid::Grid;
use crate::algo::samples::{BAND, CANDIDATES, LANES, Samples};
use crate::algo::temporal::cpu::{NO_CANDIDATE, SURE, Source, State};
use crate::algo::temporal::{self, WARM_ROUNDS, whole_px};
use crate::backend::{Segmenter, StageTimes};
use crate::color::unpack;
use crate::cpu::{Cpu, Work, check_labels};
use crate::error::Result;
use crate::image::{LabelBand, Labels};

/// Columns whose part of the score is kept while rows pass.
const BLOCK: usize = 64;

/// The mean feature's color in quanta, and how it weighs pixels.
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    /// `φ̄'`, rounded half up; the four numbers of place are zero.
    color: [i64; 6],
    /// `|φ̄'|²`.
    norm: i64,
    /// `φ̄' / |φ̄'|²`.
    weights: [f32; 6],
}

impl Mean {
    fn new(sums: [i64; 6], count: i64) -> Self {
        let color = sums.map(|sum| (2 * sum + count) / (2 * count));
        let norm = color.iter().map(|v| v * v).sum::<i64>();
        let scale = 1.0 / norm as f32;
        Self { color, norm, weights: color.map(|v| v as f32 * scale) }
    }
}

/// `S_k`: the sum of a cluster's members, color before place. It is all that the next round, or the next frame, needs
/// to start from.
type Sums = [i64; 10];

/// A cluster as scores need it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Cluster {
    /// `-2 T_k`, color before place, the latter times the weight of place.
    along: [f32; 10],
    /// `|T_k|²`.
    norm: f32,
}

impl Cluster {
    /// The cluster of some sums; `None` where there were no members, whose `S_k · φ̄'` is positive: colors of the gamut have
    /// positive cosines and sines of a and b.
    fn new(sums: &Sums, mean: &Mean, place_weight: f32) -> Option<Self> {
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
            let weighted = if j < 6 { across } else { across * place_weight };
            cluster.norm = weighted.mul_add(across, cluster.norm);
            cluster.along[j] = -2.0 * weighted;
        }
        Some(cluster)
    }
}

/// The sampled pixels of some rows of cells, and what their assignment adds to the clusters around.
struct Band {
    /// Places are pairs.
    samples: Samples<u32>,
    /// Sums of the clusters of cell rows `first - 1` to `first + rows`.
    sums: Vec<Sums>,
}

pub(crate) struct Lsc {
    cpu: Cpu,
    grid: Grid,
    plan: Plan,
    mean: Mean,
    /// Of the last round in which a cluster had members.
    sums: Vec<Sums>,
    /// Those of the last frame.
    last: Vec<Sums>,
    clusters: Vec<Cluster>,
    bands: Vec<Band>,
}

impl Lsc {
    pub fn new(cpu: &Cpu, plan: &crate::plan::Plan, lsc: &Plan) -> Self {
        let grid = plan.grid;
        let nx = grid.nx as usize;
        let samples = Samples::bands(&grid, |_, x| lsc.px[x], |_, y| lsc.py[y]);
        Self {
            cpu: cpu.clone(),
            grid,
            plan: lsc.clone(),
            mean: Mean::default(),
            sums: vec![Sums::default(); grid.cells()],
            last: vec![Sums::default(); if plan.temporal.is_some() { grid.cells() } else { 0 }],
            clusters: vec![Cluster::default(); grid.cells()],
            bands: samples
                .into_iter()
                .map(|samples| Band { sums: vec![Sums::default(); (samples.rows + 2) * nx], samples })
                .collect(),
        }
    }

    fn mean(&mut self, features: &[u32]) {
        let Self { cpu, grid, plan, mean, bands, .. } = self;
        let color = &plan.color;
        let (sums, count) = cpu.run(|| {
            bands
                .par_iter_mut()
                .map(|band| {
                    band.samples.gather(grid, features);
                    sum_band(&band.samples, color)
                })
                .reduce(
                    || ([0; 6], 0),
                    |(mut a, n), (b, m)| {
                        for j in 0..6 {
                            a[j] += b[j];
                        }
                        (a, n + m)
                    },
                )
        });
        *mean = Mean::new(sums, count);
    }

    fn seed(&mut self, features: &[u32]) {
        let Self { grid, plan, mean, sums, clusters, .. } = self;
        let (nx, width) = (grid.nx as usize, grid.geometry.width as usize);
        for (k, (sums, cluster)) in sums.iter_mut().zip(clusters).enumerate() {
            let (x, y) = grid.seed(k % nx, k / nx);
            let [l, a, b] = color_pairs(&plan.color, features[y * width + x]);
            for (j, pair) in [l, a, b, plan.px[x], plan.py[y]].into_iter().enumerate() {
                let [c, s] = unpack_pair(pair);
                (sums[2 * j], sums[2 * j + 1]) = (i64::from(c), i64::from(s));
            }
            *cluster = Cluster::new(sums, mean, plan.place_weight).unwrap_or_default();
        }
    }

    /// Clusters of the last frame where they are now; cells that none came to are seeded.
    fn carry(&mut self, features: &[u32], state: &State) {
        std::mem::swap(&mut self.sums, &mut self.last);
        self.seed(features);
        let Self { grid, plan, mean, sums, last, clusters, .. } = self;
        let sides = [grid.geometry.width, grid.geometry.height].map(|side| side as i32);
        for ((sums, cluster), source) in sums.iter_mut().zip(clusters).zip(state.sources()) {
            let Some(Source { slot, shift, planted }) = source else { continue };
            *sums = last[*slot];
            if let Some(([l, a, b], place)) = planted {
                let [x, y] = whole_px(*place);
                let color =
                    [plan.color.l[*l as usize], plan.color.ab[*a as usize], plan.color.ab[*b as usize]];
                let [px, py] =
                    [plan.px[x.clamp(0, sides[0] - 1) as usize], plan.py[y.clamp(0, sides[1] - 1) as usize]];
                for (j, pair) in color.into_iter().chain([px, py]).enumerate() {
                    let [c, s] = unpack_pair(pair);
                    (sums[2 * j], sums[2 * j + 1]) = (i64::from(c), i64::from(s));
                }
            }
            let moved = plan.moved([sums[6], sums[7], sums[8], sums[9]], whole_px(*shift));
            sums[6..].copy_from_slice(&moved);
            *cluster = Cluster::new(sums, mean, plan.place_weight).unwrap_or_default();
        }
        let Self { cpu, grid, bands, .. } = self;
        cpu.run(|| bands.par_iter_mut().for_each(|band| band.samples.predict(grid, features, state)));
    }

    /// The rounds of a frame that goes on from the last one, or, after a cut, from seeds.
    fn follow(&mut self, features: &[u32], state: &mut State, times: &mut StageTimes) {
        times.time("lsc/carry", || self.carry(features, state));
        let inertia = state.plan().clone();
        let residual = times.time("lsc/assign", || self.assign(Some(&inertia)));
        let cut = state.cut(residual);
        if cut {
            times.time("lsc/seed", || self.seed(features));
            times.time("lsc/assign", || self.assign(None));
        }
        for _ in 1..WARM_ROUNDS {
            times.time("lsc/update", || self.update());
            times.time("lsc/assign", || self.assign((!cut).then_some(&inertia)));
        }
        times.time("lsc/update", || self.update());
    }

    /// Where the clusters are, in 1/16 px.
    fn places(&self) -> impl Iterator<Item = [i32; 2]> {
        let nx = self.grid.nx as usize;
        self.sums.iter().enumerate().map(move |(k, sums)| {
            let (x, y) = self.grid.seed(k % nx, k / nx);
            [
                self.plan.place_of([sums[6], sums[7]], x as i32),
                self.plan.place_of([sums[8], sums[9]], y as i32),
            ]
        })
    }

    /// Returns the residual where the clusters of the last frame count.
    fn assign(&mut self, inertia: Option<&temporal::Plan>) -> u64 {
        let Self { cpu, grid, plan, mean, clusters, bands, .. } = self;
        cpu.run(|| {
            let bands = bands.par_iter_mut();
            bands.map(|band| assign_band(band, grid, plan, mean, clusters, inertia)).sum()
        })
    }

    fn update(&mut self) {
        let Self { cpu, grid, plan, mean, sums, clusters, bands, .. } = self;
        let nx = grid.nx as usize;
        let bands = &*bands;
        cpu.run(|| {
            let rows = sums.par_chunks_mut(nx).zip(clusters.par_chunks_mut(nx));
            rows.enumerate().with_min_len(BAND).for_each(|(gy, (sums, clusters))| {
                let home = gy / BAND;
                let touching = home.saturating_sub(1)..(home + 2).min(bands.len());
                for (gx, (old, cluster)) in sums.iter_mut().zip(clusters).enumerate() {
                    let mut sums = Sums::default();
                    for band in &bands[touching.clone()] {
                        // A band's sums begin one cell row above it.
                        let at = (gy + 1).wrapping_sub(band.samples.first);
                        if at < band.samples.rows + 2 {
                            for j in 0..10 {
                                sums[j] += band.sums[at * nx + gx][j];
                            }
                        }
                    }
                    if let Some(new) = Cluster::new(&sums, mean, plan.place_weight) {
                        (*old, *cluster) = (sums, new);
                    }
                }
            });
        });
    }

    /// Returns the residual where something lasts.
    fn label(&mut self, features: &[u32], labels: &mut Labels<'_>, state: Option<&State>) -> u64 {
        let Self { cpu, grid, plan, mean, clusters, .. } = self;
        let bands: Vec<LabelBand<'_>> = labels.bands_mut(grid.step as usize).collect();
        cpu.run(|| {
            let bands = bands.into_par_iter();
            bands.map(|mut band| label_band(&mut band, grid, plan, mean, clusters, features, state)).sum()
        })
    }
}

impl Segmenter<Cpu> for Lsc {
    fn segment(&mut self, work: &mut Work, labels: &mut Labels<'_>, times: &mut StageTimes) -> Result<()> {
        let Work { features, temporal, .. } = work;
        check_labels(self.grid.geometry, labels)?;
        if self.grid.step == 1 {
            labels.identity();
            return Ok(());
        }
        times.time("lsc/mean", || self.mean(features));
        match temporal.as_mut().filter(|state| state.is_warm()) {
            Some(state) => self.follow(features, state, times),
            None => {
                times.time("lsc/seed", || self.seed(features));
                for _ in 0..self.plan.iterations {
                    times.time("lsc/assign", || self.assign(None));
                    times.time("lsc/update", || self.update());
                }
            }
        }
        let residual = times.time("lsc/label", || self.label(features, labels, temporal.as_ref()));
        if let Some(state) = temporal {
            state.settle(self.places(), residual);
        }
        Ok(())
    }
}

/// The pairs of L, a and b.
#[inline(always)]
fn color_pairs(color: &ColorPairs, feature: u32) -> [u32; 3] {
    let [l, a, b] = unpack(feature);
    // The masks say what `unpack` promises, so that no bounds are checked.
    [color.l[l as usize & 1023], color.ab[a as usize & 2047], color.ab[b as usize & 2047]]
}

/// The sum of the samples' color, and their number.
fn sum_band(samples: &Samples<u32>, color: &ColorPairs) -> ([i64; 6], i64) {
    let (mut sums, mut count) = ([0; 6], 0);
    for &(start, len) in &samples.cells {
        // A cell has at most 2^18 samples.
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

/// The candidates of one cell.
struct Candidates {
    len: usize,
    labels: [u32; CANDIDATES],
    clusters: [Cluster; CANDIDATES],
}

impl Candidates {
    #[inline(always)]
    fn new(grid: &Grid, clusters: &[Cluster], gx: usize, gy: usize) -> Self {
        let mut all = Self { len: 0, labels: [0; CANDIDATES], clusters: [Cluster::default(); CANDIDATES] };
        for (i, k) in grid.candidates(gx, gy).enumerate() {
            (all.labels[i], all.clusters[i]) = (k as u32, clusters[k]);
            all.len = i + 1;
        }
        all
    }
}

/// Some pixels: the color of their features, and their weights.
struct Pixels {
    pairs: [[u32; LANES]; 3],
    color: [[f32; LANES]; 6],
    weight: [f32; LANES],
}

impl Pixels {
    #[inline(always)]
    fn new(color: &ColorPairs, mean: &Mean, features: &[u32; LANES]) -> Self {
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

    /// Adds all but place to a score: the order is part of the definition.
    #[inline(always)]
    fn score(&self, cluster: &Cluster, score: &mut [f32; LANES]) {
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

/// A distance in whole quanta from a score, and from what all candidates of a pixel share.
#[inline(always)]
fn distance(plan: &Plan, mean: &Mean, weight: f32, score: f32) -> u32 {
    let shared = plan.square / weight - mean.norm as f32 * weight;
    (shared + score) as u32
}

/// Hands each pixel to the candidate that it is predicted to belong to, where that is nearer once it is spared part of its
/// distance. `best` are the least scores, `own` the scores of the predicted ones. Returns the least distances.
#[inline(always)]
fn prefer(
    plan: &Plan,
    mean: &Mean,
    inertia: &temporal::Plan,
    pixels: &Pixels,
    (predicted, own): (&[u8], &[f32; LANES]),
    (best, index): (&[f32; LANES], &mut [u32; LANES]),
) -> [u32; LANES] {
    let mut least = [0; LANES];
    for (lane, &predicted) in predicted.iter().enumerate() {
        least[lane] = distance(plan, mean, pixels.weight[lane], best[lane]);
        let candidate = u32::from(predicted & !SURE);
        if candidate < CANDIDATES as u32 {
            let part = if predicted & SURE == 0 { inertia.inertia } else { inertia.sure };
            let whole = u64::from(distance(plan, mean, pixels.weight[lane], own[lane]));
            let spared = whole - ((whole * u64::from(part)) >> 8);
            if (spared, candidate) < (u64::from(least[lane]), index[lane]) {
                index[lane] = candidate;
            }
        }
    }
    least
}

/// Keeps the scores of a candidate where it is the predicted one.
#[inline(always)]
fn keep_own(own: &mut [f32; LANES], predicted: &[u8], score: &[f32; LANES], i: u32) {
    for (lane, &predicted) in predicted.iter().enumerate() {
        own[lane] = if u32::from(predicted & !SURE) == i { score[lane] } else { own[lane] };
    }
}

/// Cosines and sines of some pairs.
#[inline(always)]
fn floats(pairs: &[u32; LANES]) -> [[f32; LANES]; 2] {
    let mut all = [[0.0; LANES]; 2];
    for lane in 0..LANES {
        let [c, s] = unpack_pair(pairs[lane]);
        (all[0][lane], all[1][lane]) = (c as f32, s as f32);
    }
    all
}

/// The part of a score that place in a row has; that of place in a column is added to it next.
#[inline(always)]
fn score_x(cluster: &Cluster, [c, s]: &[[f32; LANES]; 2]) -> [f32; LANES] {
    let mut score = [0.0; LANES];
    for lane in 0..LANES {
        score[lane] = s[lane].mul_add(cluster.along[7], c[lane] * cluster.along[6]);
    }
    score
}

#[inline(always)]
fn add_score_y(score: &mut [f32; LANES], cluster: &Cluster, [c, s]: &[[f32; LANES]; 2]) {
    for lane in 0..LANES {
        let first = c[lane].mul_add(cluster.along[8], score[lane]);
        score[lane] = s[lane].mul_add(cluster.along[9], first);
    }
}

#[inline(always)]
fn keep_lower(best: &mut [f32; LANES], index: &mut [u32; LANES], score: &[f32; LANES], i: u32) {
    for lane in 0..LANES {
        let lower = score[lane] < best[lane];
        best[lane] = if lower { score[lane] } else { best[lane] };
        index[lane] = if lower { i } else { index[lane] };
    }
}

/// Both numbers of a pair in one: sums of these stay apart, see [`split`].
#[inline(always)]
fn spread(pair: u32) -> u64 {
    let [c, s] = unpack_pair(pair);
    (i64::from(c) as u64).wrapping_add((i64::from(s) as u64) << 32)
}

#[inline(always)]
fn split(sum: u64) -> [i64; 2] {
    let low = i64::from(sum as i32);
    [low, (sum.wrapping_sub(low as u64) as i64) >> 32]
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
fn assign_band(
    band: &mut Band,
    grid: &Grid,
    plan: &Plan,
    mean: &Mean,
    clusters: &[Cluster],
    inertia: Option<&temporal::Plan>,
) -> u64 {
    let mut residual = 0;
    let nx = grid.nx as usize;
    let Band { samples, sums: band_sums } = band;
    band_sums.fill(Sums::default());
    for (cell, &(start, len)) in samples.cells.iter().enumerate() {
        let candidates = Candidates::new(grid, clusters, cell % nx, samples.first + cell / nx);
        // A cell has at most 2^18 samples, whose sums of either number have at most 30 bits.
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
            let (mut own, real) = ([0.0; LANES], LANES.min(len - at));
            let predicted = inertia.map_or(&[][..], |_| &samples.predicted[start + at..][..real]);
            for i in 0..candidates.len {
                let cluster = &candidates.clusters[i];
                let mut score = score_x(cluster, &fx);
                add_score_y(&mut score, cluster, &fy);
                pixels.score(cluster, &mut score);
                keep_own(&mut own, predicted, &score, i as u32);
                keep_lower(&mut best, &mut index, &score, i as u32);
            }
            if let Some(inertia) = inertia {
                let least = prefer(plan, mean, inertia, &pixels, (predicted, &own), (&best, &mut index));
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
                let [c, s] = split(sum);
                to[2 * j] += c;
                to[2 * j + 1] += s;
            }
        }
    }
    residual
}

/// Labels up to S rows of pixels, all of one row of cells.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
fn label_band(
    band: &mut LabelBand<'_>,
    grid: &Grid,
    plan: &Plan,
    mean: &Mean,
    clusters: &[Cluster],
    features: &[u32],
    state: Option<&State>,
) -> u64 {
    let mut residual = 0;
    let width = grid.geometry.width as usize;
    let gy = (band.first_row / grid.step as usize).min(grid.ny as usize - 1);
    for gx in 0..grid.nx as usize {
        let candidates = Candidates::new(grid, clusters, gx, gy);
        let cell = grid.columns(gx);
        for from in cell.clone().step_by(BLOCK) {
            let columns = from..cell.end.min(from + BLOCK);
            let mut across = [[[0.0; LANES]; CANDIDATES]; BLOCK / LANES];
            for (x, across) in plan.px[columns.clone()].chunks(LANES).zip(&mut across) {
                let mut padded = [0; LANES];
                padded[..x.len()].copy_from_slice(x);
                let x = floats(&padded);
                for (cluster, across) in candidates.clusters.iter().zip(across) {
                    *across = score_x(cluster, &x);
                }
            }
            for y in 0..band.rows() {
                let row = band.first_row + y;
                let place = floats(&[plan.py[row]; LANES]);
                let mut predicted = [NO_CANDIDATE; BLOCK];
                if let Some(state) = state {
                    state.predict((gx, gy), row, columns.clone(), features, &mut predicted);
                }
                let sampled = grid.samples(&(row..row + 1)).next().is_some();
                let pixels = features[row * width..][columns.clone()].chunks(LANES);
                let out = band.row_mut(y)[columns.clone()].chunks_mut(LANES);
                for (i, ((pixels, out), across)) in pixels.zip(out).zip(&across).enumerate() {
                    let mut padded = [0; LANES];
                    padded[..pixels.len()].copy_from_slice(pixels);
                    let inertia = state.map(|state| (state.plan(), &predicted[i * LANES..][..pixels.len()]));
                    let (labels, least) = nearest(plan, mean, &candidates, across, &place, &padded, inertia);
                    out.copy_from_slice(&labels[..out.len()]);
                    if inertia.is_some() && sampled {
                        let first = columns.start + i * LANES;
                        let lanes = grid.samples(&(first..first + pixels.len()));
                        residual += lanes.map(|x| u64::from(least[x - first])).sum::<u64>();
                    }
                }
            }
        }
    }
    residual
}

/// The label of each pixel's nearest candidate; `across` is what place in the row gives.
#[inline(always)]
fn nearest(
    plan: &Plan,
    mean: &Mean,
    candidates: &Candidates,
    across: &[[f32; LANES]; CANDIDATES],
    y: &[[f32; LANES]; 2],
    features: &[u32; LANES],
    inertia: Option<(&temporal::Plan, &[u8])>,
) -> ([u16; LANES], [u32; LANES]) {
    let pixels = Pixels::new(&plan.color, mean, features);
    let (mut best, mut index) = ([f32::INFINITY; LANES], [0; LANES]);
    let (mut own, predicted) = ([0.0; LANES], inertia.map_or(&[][..], |(_, predicted)| predicted));
    for i in 0..candidates.len {
        let cluster = &candidates.clusters[i];
        let mut score = across[i];
        add_score_y(&mut score, cluster, y);
        pixels.score(cluster, &mut score);
        keep_own(&mut own, predicted, &score, i as u32);
        keep_lower(&mut best, &mut index, &score, i as u32);
    }
    let mut least = [0; LANES];
    if let Some((inertia, predicted)) = inertia {
        least = prefer(plan, mean, inertia, &pixels, (predicted, &own), (&best, &mut index));
    }
    (index.map(|i| candidates.labels[i as usize] as u16), least)
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
    }
}
