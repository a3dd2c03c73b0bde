// SPDX-License-Identifier: MPL-2.0
//! SLIC on the CPU: the reference. Stages `slic/seed`, `slic/assign`, `slic/update`, `slic/label`.
//!
//! Cell rows are worked on in bands of fixed height, whatever the number of threads. The samples that rounds visit are
//! gathered once, see [`Samples`].

// Lanes and channels run over several arrays at once; an iterator over one of them hides that.
#![allow(clippy::needless_range_loop)]

use multiversion::multiversion;
use multiversion::target::target_cfg_f;
use rayon::prelude::*;

use super::{ADAPTIVE_ONE, Adaptive, Plan};
use crate::algo::grid::Grid;
use crate::algo::samples::{BAND, CANDIDATES, LANES, Samples, whole};
use crate::algo::temporal::cpu::{CANDIDATE, NO_CANDIDATE, Source, State};
use crate::algo::temporal::{Inertia, WARM_ROUNDS};
use crate::backend::{Segmenter, StageTimes};
use crate::color::unpack;
use crate::cpu::{Cpu, Work, check_labels};
use crate::error::Result;
use crate::image::{LabelBand, Labels};

/// A cluster: mean feature in shifted quanta, scaled position, SLICO's M_k.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Center {
    pub color: [i32; 3],
    pub place: [i32; 2],
    pub spread: u32,
}

/// Sums over the members of a cluster.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    count: i64,
    color: [i64; 3],
    place: [i64; 2],
    /// Largest squared color distance of a member.
    spread: u32,
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.count += other.count;
        for i in 0..3 {
            self.color[i] += other.color[i];
        }
        for i in 0..2 {
            self.place[i] += other.place[i];
        }
        self.spread = self.spread.max(other.spread);
    }

    /// The mean, rounded half up; a cluster without members stays where it was.
    fn center(&self, old: &Center) -> Center {
        if self.count == 0 {
            return *old;
        }
        let mean = |sum: i64| ((2 * sum + self.count) / (2 * self.count)) as i32;
        Center {
            color: self.color.map(mean),
            place: self.place.map(mean),
            spread: old.spread.max(self.spread),
        }
    }
}

/// The sampled pixels of some rows of cells, and what their assignment adds to the clusters around.
struct Band {
    /// Places are scaled positions relative to the cell's first pixel.
    samples: Samples<i32>,
    /// Sums of the clusters of cell rows `first - 1` to `first + rows`.
    sums: Vec<Sums>,
}

pub(crate) struct Slic {
    cpu: Cpu,
    grid: Grid,
    plan: Plan,
    /// Scaled position of each column relative to its cell's first pixel.
    x: Vec<f32>,
    centers: Vec<Center>,
    /// Those of the last frame.
    last: Vec<Center>,
    bands: Vec<Band>,
}

impl Slic {
    pub fn new(cpu: &Cpu, plan: &crate::plan::Plan, slic: &Plan) -> Self {
        let grid = plan.grid;
        let nx = grid.nx as usize;
        let mut x = Vec::with_capacity(grid.geometry.width as usize);
        for gx in 0..nx {
            let columns = grid.columns(gx);
            x.extend(columns.clone().map(|i| (slic.px[i] - slic.px[columns.start]) as f32));
        }
        let samples =
            Samples::bands(&grid, |from, x| slic.px[x] - slic.px[from], |from, y| slic.py[y] - slic.py[from]);
        Self {
            cpu: cpu.clone(),
            grid,
            plan: slic.clone(),
            x,
            centers: vec![Center::default(); grid.cells()],
            last: vec![Center::default(); if plan.temporal.is_some() { grid.cells() } else { 0 }],
            bands: samples
                .into_iter()
                .map(|samples| Band { sums: vec![Sums::default(); (samples.rows + 2) * nx], samples })
                .collect(),
        }
    }

    fn seed(&mut self, features: &[u32]) {
        let Self { grid, plan, centers, bands, .. } = self;
        let width = grid.geometry.width as usize;
        for gy in 0..grid.ny as usize {
            for gx in 0..grid.nx as usize {
                let (x, y) = grid.seed(gx, gy);
                centers[gy * grid.nx as usize + gx] = Center {
                    color: unpack(features[y * width + x]).map(|v| (v >> plan.color_shift) as i32),
                    place: [plan.px[x], plan.py[y]],
                    spread: plan.adaptive.map_or(0, |a| a.initial),
                };
            }
        }
        self.cpu.run(|| bands.par_iter_mut().for_each(|band| band.samples.gather(grid, features)));
    }

    /// Clusters of the last frame where they are now; cells that none came to are seeded.
    fn carry(&mut self, features: &[u32], state: &State) {
        std::mem::swap(&mut self.centers, &mut self.last);
        self.seed(features);
        let Self { plan, centers, last, .. } = self;
        for (center, source) in centers.iter_mut().zip(state.sources()) {
            if let Some(Source { slot, shift, planted }) = source {
                let (color, place) = match planted {
                    Some((color, place)) => {
                        (color.map(|v| (v >> plan.color_shift) as i32), place.map(|v| plan.rescale(v, true)))
                    }
                    None => (last[*slot].color, last[*slot].place),
                };
                center.color = color;
                center.place = [0, 1].map(|i| place[i] + plan.rescale(shift[i], true));
            }
        }
        let Self { cpu, grid, bands, .. } = self;
        cpu.run(|| bands.par_iter_mut().for_each(|band| band.samples.predict(grid, features, state)));
    }

    /// The rounds of a frame that goes on from the last one, or, after a cut, from seeds.
    fn follow(&mut self, features: &[u32], state: &mut State, times: &mut StageTimes) {
        times.time("slic/carry", || self.carry(features, state));
        let inertia = state.inertia();
        let residual = times.time("slic/assign", || self.assign(Some(inertia)));
        let cut = state.cut(residual);
        if cut {
            times.time("slic/seed", || self.seed(features));
            times.time("slic/assign", || self.assign(None));
        }
        for _ in 1..WARM_ROUNDS {
            times.time("slic/update", || self.update());
            times.time("slic/assign", || self.assign((!cut).then_some(inertia)));
        }
        times.time("slic/update", || self.update());
    }

    /// Returns the residual where the clusters of the last frame count.
    fn assign(&mut self, inertia: Option<Inertia>) -> u64 {
        let Self { cpu, grid, plan, centers, bands, .. } = self;
        cpu.run(|| bands.par_iter_mut().map(|band| assign_band(band, grid, plan, centers, inertia)).sum())
    }

    fn update(&mut self) {
        let Self { cpu, grid, centers, bands, .. } = self;
        let nx = grid.nx as usize;
        let bands = &*bands;
        cpu.run(|| {
            centers.par_chunks_mut(nx).enumerate().with_min_len(BAND).for_each(|(gy, row)| {
                let home = gy / BAND;
                let touching = home.saturating_sub(1)..(home + 2).min(bands.len());
                for (gx, center) in row.iter_mut().enumerate() {
                    let mut sums = Sums::default();
                    for band in &bands[touching.clone()] {
                        // A band's sums begin one cell row above it.
                        let at = (gy + 1).wrapping_sub(band.samples.first);
                        if at < band.samples.rows + 2 {
                            sums.add(&band.sums[at * nx + gx]);
                        }
                    }
                    *center = sums.center(center);
                }
            });
        });
    }

    /// Returns the residual where something lasts.
    fn label(&mut self, features: &[u32], labels: &mut Labels<'_>, state: Option<&State>) -> u64 {
        let Self { cpu, grid, plan, x, centers, .. } = self;
        let bands = labels.bands_mut(grid.step as usize);
        cpu.run(|| {
            bands
                .map(|mut band| label_band(&mut band, grid, plan, x, centers, features, state))
                .sum()
        })
    }
}

impl Segmenter<Cpu> for Slic {
    fn segment(&mut self, work: &mut Work, labels: &mut Labels<'_>, times: &mut StageTimes) -> Result<()> {
        let Work { features, temporal, .. } = work;
        check_labels(self.grid.geometry, labels)?;
        if self.grid.step == 1 {
            labels.identity();
            return Ok(());
        }
        match temporal.as_mut().filter(|state| state.is_warm()) {
            Some(state) => self.follow(features, state, times),
            None => {
                times.time("slic/seed", || self.seed(features));
                for _ in 0..self.plan.iterations {
                    times.time("slic/assign", || self.assign(None));
                    times.time("slic/update", || self.update());
                }
            }
        }
        let residual = times.time("slic/label", || self.label(features, labels, temporal.as_deref()));
        if let Some(state) = temporal {
            let places = self.centers.iter().map(|c| c.place.map(|v| self.plan.rescale(v, false)));
            state.settle(places, residual);
        }
        Ok(())
    }
}

/// The candidates of one cell, transposed for scoring: `score = constant + Σ weight · p`, which is the distance less
/// `|p|²`, with everything relative to the cell's first pixel and to mid gamut.
struct Candidates {
    len: usize,
    labels: [u32; CANDIDATES],
    constant: [f32; CANDIDATES],
    /// L, a, b, x, y.
    weights: [[f32; CANDIDATES]; 5],
    centers: [Center; CANDIDATES],
}

impl Candidates {
    #[inline(always)]
    fn new(grid: &Grid, plan: &Plan, centers: &[Center], gx: usize, gy: usize) -> Self {
        let (x0, y0) = (plan.px[grid.columns(gx).start], plan.py[grid.rows(gy).start]);
        let mut all = Self {
            len: 0,
            labels: [0; CANDIDATES],
            constant: [0.0; CANDIDATES],
            weights: [[0.0; CANDIDATES]; 5],
            centers: [Center::default(); CANDIDATES],
        };
        for (i, k) in grid.candidates(gx, gy).enumerate() {
            let mut center = centers[k];
            for j in 0..3 {
                center.color[j] -= plan.middle[j];
            }
            center.place[0] -= x0;
            center.place[1] -= y0;
            let [l, a, b] = center.color;
            let [x, y] = center.place;
            let mut norm = 0i64;
            for (j, v) in [l, a, b, x, y].into_iter().enumerate() {
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
}

/// Some pixels of one cell: features relative to mid gamut, scaled place relative to the cell.
struct Pixels {
    color: [[i32; LANES]; 3],
    place: [[i32; LANES]; 2],
}

impl Pixels {
    #[inline(always)]
    fn new(plan: &Plan, features: &[u32; LANES], x: &[i32; LANES], y: &[i32; LANES]) -> Self {
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
    fn nearest<const FMA: bool>(&self, candidates: &Candidates) -> [u32; LANES] {
        let floats = |v: &[i32; LANES]| -> [f32; LANES] { std::array::from_fn(|i| v[i] as f32) };
        let p = [
            floats(&self.color[0]),
            floats(&self.color[1]),
            floats(&self.color[2]),
            floats(&self.place[0]),
            floats(&self.place[1]),
        ];
        let mut best = [f32::INFINITY; LANES];
        let mut index = [0u32; LANES];
        for i in 0..candidates.len {
            let mut score = [candidates.constant[i]; LANES];
            for (p, weights) in p.iter().zip(&candidates.weights) {
                for lane in 0..LANES {
                    score[lane] = madd::<FMA>(p[lane], weights[i], score[lane]);
                }
            }
            keep_lower(&mut best, &mut index, &score, i as u32);
        }
        index
    }

    /// The same for SLICO, in integers.
    #[inline(always)]
    fn nearest_adaptive(&self, candidates: &Candidates, adaptive: &Adaptive) -> [u32; LANES] {
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

    /// The same where a candidate is predicted, which is spared part of its distance. Also gives the least distance,
    /// with nothing spared; of SLICO the upper part of it.
    #[inline(always)]
    fn nearest_predicted<const FMA: bool>(
        &self,
        candidates: &Candidates,
        adaptive: Option<&Adaptive>,
        inertia: Inertia,
        predicted: &[u8; LANES],
    ) -> ([u32; LANES], [u64; LANES]) {
        let mut least = [0; LANES];
        if let Some(adaptive) = adaptive {
            let mut index = [0; LANES];
            for lane in 0..predicted.len() {
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
            return (index, least);
        }
        let floats = |v: &[i32; LANES]| -> [f32; LANES] { std::array::from_fn(|i| v[i] as f32) };
        let p = [
            floats(&self.color[0]),
            floats(&self.color[1]),
            floats(&self.color[2]),
            floats(&self.place[0]),
            floats(&self.place[1]),
        ];
        let (mut own, mut kept) = ([NONE; LANES], [0.0; LANES]);
        let mut best = [f32::INFINITY; LANES];
        let mut index = [0u32; LANES];
        for i in 0..candidates.len {
            let mut score = [candidates.constant[i]; LANES];
            for (p, weights) in p.iter().zip(&candidates.weights) {
                for lane in 0..LANES {
                    score[lane] = madd::<FMA>(p[lane], weights[i], score[lane]);
                }
            }
            keep_own((&mut own, &mut kept), predicted, &score, i, i as u32);
            keep_lower(&mut best, &mut index, &score, i as u32);
        }
        let distance = prefer(inertia, &squares::<FMA>(&p, 0.0), predicted, (&own, &kept), &best, &mut index);
        let least = distance.map(u64::from);
        (index, least)
    }

    #[inline(always)]
    fn adaptive_score(&self, center: &Center, adaptive: &Adaptive, lane: usize) -> u64 {
        let weight = u64::from(ADAPTIVE_ONE / center.spread);
        let [dx, dy] = [0, 1].map(|j| self.place[j][lane] - center.place[j]);
        let place = (dx * dx + dy * dy) as u32;
        u64::from(self.color_distance(center, lane)) * weight + u64::from(place) * u64::from(adaptive.place)
    }

    #[inline(always)]
    fn color_distance(&self, center: &Center, lane: usize) -> u32 {
        (0..3).map(|j| (self.color[j][lane] - center.color[j]).pow(2) as u32).sum()
    }
}

/// `a * b + c`. Every product and sum here is an exact integer, so fusing changes nothing but speed.
#[inline(always)]
fn madd<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// Takes the predicted clusters `own`, or `NONE`, which are spared part of their distance, where that makes them nearer than
/// the nearest, `chosen`. Scores are `best` and `kept`, less `norm` than squared distances. Returns the least distances. All
/// lanes at once; in one without a prediction nothing changes.
#[inline(always)]
fn prefer(
    inertia: Inertia,
    norm: &[f32; LANES],
    predicted: &[u8; LANES],
    (own, kept): (&[u32; LANES], &[f32; LANES]),
    best: &[f32; LANES],
    chosen: &mut [u32; LANES],
) -> [u32; LANES] {
    let mut least = [0; LANES];
    for lane in 0..LANES {
        let is_predicted = own[lane] != NONE;
        let score = if is_predicted { kept[lane] } else { best[lane] };
        let distance = whole(best[lane] + norm[lane]);
        let spared = inertia.spared(whole(score + norm[lane]), predicted[lane]);
        let preferred = (spared < distance) | ((spared == distance) & (own[lane] < chosen[lane]));
        chosen[lane] = if preferred & is_predicted { own[lane] } else { chosen[lane] };
        least[lane] = distance;
    }
    least
}

/// Keeps the scores of a candidate, and its name, where it is the predicted one.
#[inline(always)]
fn keep_own(
    (own, kept): (&mut [u32; LANES], &mut [f32; LANES]),
    predicted: &[u8; LANES],
    score: &[f32; LANES],
    i: usize,
    name: u32,
) {
    for lane in 0..LANES {
        let is_own = u32::from(predicted[lane] & CANDIDATE) == i as u32;
        own[lane] = if is_own { name } else { own[lane] };
        kept[lane] = if is_own { score[lane] } else { kept[lane] };
    }
}

/// Bits of SLICO's scores that residuals go without.
const RESIDUAL_BITS: u32 = 20;
/// No cluster.
const NONE: u32 = u32::MAX;

#[inline(always)]
fn keep_lower(best: &mut [f32; LANES], index: &mut [u32; LANES], score: &[f32; LANES], i: u32) {
    for lane in 0..LANES {
        let lower = score[lane] < best[lane];
        best[lane] = if lower { score[lane] } else { best[lane] };
        index[lane] = if lower { i } else { index[lane] };
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
fn assign_band(
    band: &mut Band,
    grid: &Grid,
    plan: &Plan,
    centers: &[Center],
    inertia: Option<Inertia>,
) -> u64 {
    if target_cfg_f!(target_feature = "fma") {
        assign_band_with::<true>(band, grid, plan, centers, inertia)
    } else {
        assign_band_with::<false>(band, grid, plan, centers, inertia)
    }
}

#[inline(always)]
fn assign_band_with<const FMA: bool>(
    band: &mut Band,
    grid: &Grid,
    plan: &Plan,
    centers: &[Center],
    inertia: Option<Inertia>,
) -> u64 {
    let mut residual = 0;
    let nx = grid.nx as usize;
    let Band { samples, sums: band_sums } = band;
    band_sums.fill(Sums::default());
    for (cell, &(start, len)) in samples.cells.iter().enumerate() {
        let (gx, gy) = (cell % nx, samples.first + cell / nx);
        let candidates = Candidates::new(grid, plan, centers, gx, gy);
        let mut sums = [Sums::default(); CANDIDATES];
        for at in (0..len).step_by(LANES) {
            let range = start + at..start + at + LANES;
            let (Some(features), Some(x), Some(y)) = (
                samples.features[range.clone()].first_chunk(),
                samples.x[range.clone()].first_chunk(),
                samples.y[range].first_chunk(),
            ) else {
                unreachable!("samples are padded to whole vectors")
            };
            let pixels = Pixels::new(plan, features, x, y);
            let index = match (&plan.adaptive, inertia) {
                (adaptive, Some(inertia)) => {
                    let real = (len - at).min(LANES);
                    let mut predicted = [NO_CANDIDATE; LANES];
                    predicted[..real].copy_from_slice(&samples.predicted[start + at..][..real]);
                    let (index, least) =
                        pixels.nearest_predicted::<FMA>(&candidates, adaptive.as_ref(), inertia, &predicted);
                    residual += least[..real].iter().sum::<u64>();
                    index
                }
                (None, None) => pixels.nearest::<FMA>(&candidates),
                (Some(adaptive), None) => pixels.nearest_adaptive(&candidates, adaptive),
            };
            for lane in 0..(len - at).min(LANES) {
                let k = index[lane] as usize;
                let sum = &mut sums[k];
                sum.count += 1;
                for j in 0..3 {
                    sum.color[j] += i64::from(pixels.color[j][lane]);
                }
                for j in 0..2 {
                    sum.place[j] += i64::from(pixels.place[j][lane]);
                }
                if plan.adaptive.is_some() {
                    sum.spread = sum.spread.max(pixels.color_distance(&candidates.centers[k], lane));
                }
            }
        }
        let origin = [plan.px[grid.columns(gx).start], plan.py[grid.rows(gy).start]];
        for (mut sum, &k) in sums.into_iter().zip(&candidates.labels).take(candidates.len) {
            for j in 0..3 {
                sum.color[j] += sum.count * i64::from(plan.middle[j]);
            }
            for j in 0..2 {
                sum.place[j] += sum.count * i64::from(origin[j]);
            }
            band_sums[k as usize + nx - samples.first * nx].add(&sum);
        }
    }
    residual
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
fn label_band(
    band: &mut LabelBand<'_>,
    grid: &Grid,
    plan: &Plan,
    x: &[f32],
    centers: &[Center],
    features: &[u32],
    state: Option<&State>,
) -> u64 {
    if target_cfg_f!(target_feature = "fma") {
        label_band_with::<true>(band, grid, plan, x, centers, features, state)
    } else {
        label_band_with::<false>(band, grid, plan, x, centers, features, state)
    }
}

/// Labels up to S rows of pixels, all of one row of cells.
#[inline(always)]
fn label_band_with<const FMA: bool>(
    band: &mut LabelBand<'_>,
    grid: &Grid,
    plan: &Plan,
    x: &[f32],
    centers: &[Center],
    features: &[u32],
    state: Option<&State>,
) -> u64 {
    let width = grid.geometry.width as usize;
    let gy = (band.first_row / grid.step as usize).min(grid.ny as usize - 1);
    let top = plan.py[grid.rows(gy).start];
    let mut residual = 0;
    let inertia = state.map(State::inertia);
    if let Some(state) = state {
        state.predict_band(gy, features, band);
    }
    for gx in 0..grid.nx as usize {
        let candidates = Candidates::new(grid, plan, centers, gx, gy);
        let columns = grid.columns(gx);
        for y in 0..band.rows() {
            let row = band.first_row + y;
            let offset = plan.py[row] - top;
            let pixels = &features[row * width..][columns.clone()];
            let (x, out) = (&x[columns.clone()], &mut band.row_mut(y)[columns.clone()]);
            if let Some(inertia) = inertia {
                let sampled = grid.samples(&(row..row + 1)).next().map(|_| (grid, columns.start));
                residual +=
                    label_row_predicted::<FMA>(plan, inertia, &candidates, offset, pixels, x, sampled, out);
            } else if let Some(adaptive) = &plan.adaptive {
                label_row_adaptive(plan, adaptive, &candidates, offset, pixels, x, out);
            } else {
                label_row::<FMA>(plan, &candidates, offset, pixels, x, out);
            }
        }
    }
    residual
}

/// Labels a piece of a row with predictions, which stand where the labels go. Returns what its samples, if `sampled`, which
/// has its first column, adds to the residual.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn label_row_predicted<const FMA: bool>(
    plan: &Plan,
    inertia: Inertia,
    candidates: &Candidates,
    y: i32,
    features: &[u32],
    x: &[f32],
    sampled: Option<(&Grid, usize)>,
    out: &mut [u16],
) -> u64 {
    let mut residual = 0;
    let constant = with_row::<FMA>(candidates, y);
    for at in (0..features.len()).step_by(LANES) {
        let n = LANES.min(features.len() - at);
        let (mut f, mut p, mut own) = ([0; LANES], [0.0; LANES], [NO_CANDIDATE; LANES]);
        f[..n].copy_from_slice(&features[at..at + n]);
        p[..n].copy_from_slice(&x[at..at + n]);
        own.iter_mut().zip(&out[at..at + n]).for_each(|(own, &predicted)| *own = predicted as u8);
        let (labels, least) = match &plan.adaptive {
            None => predicted_labels::<FMA>(plan, inertia, candidates, (&constant, y), &f, &p, &own),
            adaptive => {
                let pixels = Pixels::new(plan, &f, &p.map(|x| x as i32), &[y; LANES]);
                let (index, least) =
                    pixels.nearest_predicted::<FMA>(candidates, adaptive.as_ref(), inertia, &own);
                (index.map(|i| candidates.labels[i as usize] as u16), least)
            }
        };
        out[at..at + n].copy_from_slice(&labels[..n]);
        if let Some((grid, left)) = sampled {
            for x in grid.samples(&(left + at..left + at + n)) {
                residual += least[x - left - at];
            }
        }
    }
    residual
}

/// The labels of pixels with predictions, and their least distances; `constant` holds the row's place `y` already.
#[inline(always)]
fn predicted_labels<const FMA: bool>(
    plan: &Plan,
    inertia: Inertia,
    candidates: &Candidates,
    (constant, y): (&[f32; CANDIDATES], i32),
    features: &[u32; LANES],
    x: &[f32; LANES],
    predicted: &[u8; LANES],
) -> ([u16; LANES], [u64; LANES]) {
    let p = color_and_x(plan, features, x);
    let (mut own, mut kept) = ([NONE; LANES], [0.0; LANES]);
    let (mut best, mut label) = ([f32::INFINITY; LANES], [0u32; LANES]);
    let mut scores = [[0.0; LANES]; CANDIDATES];
    for i in 0..candidates.len {
        scores[i] = score_in_row::<FMA>(candidates, constant, &p, i);
        keep_lower(&mut best, &mut label, &scores[i], candidates.labels[i]);
    }
    // A loop of its own: with both in one, vectors of them are put together and taken apart.
    for i in 0..candidates.len {
        keep_own((&mut own, &mut kept), predicted, &scores[i], i, candidates.labels[i]);
    }
    let norm = squares::<FMA>(&p, (y * y) as f32);
    let least = prefer(inertia, &norm, predicted, (&own, &kept), &best, &mut label);
    (label.map(|k| k as u16), least.map(u64::from))
}

/// The constants of scores with a row's place in them.
#[inline(always)]
fn with_row<const FMA: bool>(candidates: &Candidates, y: i32) -> [f32; CANDIDATES] {
    let mut constant = [0.0; CANDIDATES];
    for i in 0..CANDIDATES {
        constant[i] = madd::<FMA>(y as f32, candidates.weights[4][i], candidates.constant[i]);
    }
    constant
}

/// Sums of squares, and `rest`.
#[inline(always)]
fn squares<const FMA: bool>(p: &[[f32; LANES]], rest: f32) -> [f32; LANES] {
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
fn color_and_x(plan: &Plan, features: &[u32; LANES], x: &[f32; LANES]) -> [[f32; LANES]; 4] {
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
fn score_in_row<const FMA: bool>(
    candidates: &Candidates,
    constant: &[f32; CANDIDATES],
    p: &[[f32; LANES]; 4],
    i: usize,
) -> [f32; LANES] {
    let mut score = [constant[i]; LANES];
    for (p, weights) in p.iter().zip(&candidates.weights) {
        for lane in 0..LANES {
            score[lane] = madd::<FMA>(p[lane], weights[i], score[lane]);
        }
    }
    score
}

/// Labels a piece of a row that lies in one cell; the row's place is folded into the constants.
#[inline(always)]
fn label_row<const FMA: bool>(
    plan: &Plan,
    candidates: &Candidates,
    y: i32,
    features: &[u32],
    x: &[f32],
    out: &mut [u16],
) {
    let constant = with_row::<FMA>(candidates, y);
    let whole = features.len() / LANES * LANES;
    for at in (0..whole).step_by(LANES) {
        if let (Some(features), Some(x), Some(out)) =
            (features[at..].first_chunk(), x[at..].first_chunk(), out[at..].first_chunk_mut())
        {
            *out = nearest_labels::<FMA>(plan, candidates, &constant, features, x);
        }
    }
    let rest = features.len() - whole;
    if rest > 0 {
        let (mut f, mut p) = ([0; LANES], [0.0; LANES]);
        f[..rest].copy_from_slice(&features[whole..]);
        p[..rest].copy_from_slice(&x[whole..]);
        let labels = nearest_labels::<FMA>(plan, candidates, &constant, &f, &p);
        out[whole..].copy_from_slice(&labels[..rest]);
    }
}

/// The label of each pixel's nearest candidate; `constant` holds the row's place already.
#[inline(always)]
fn nearest_labels<const FMA: bool>(
    plan: &Plan,
    candidates: &Candidates,
    constant: &[f32; CANDIDATES],
    features: &[u32; LANES],
    x: &[f32; LANES],
) -> [u16; LANES] {
    let p = color_and_x(plan, features, x);
    let mut best = [f32::INFINITY; LANES];
    let mut label = [0u32; LANES];
    for i in 0..candidates.len {
        let score = score_in_row::<FMA>(candidates, constant, &p, i);
        keep_lower(&mut best, &mut label, &score, candidates.labels[i]);
    }
    label.map(|k| k as u16)
}

#[inline(always)]
fn label_row_adaptive(
    plan: &Plan,
    adaptive: &Adaptive,
    candidates: &Candidates,
    y: i32,
    features: &[u32],
    x: &[f32],
    out: &mut [u16],
) {
    for ((features, x), out) in features.chunks(LANES).zip(x.chunks(LANES)).zip(out.chunks_mut(LANES)) {
        let (mut f, mut p) = ([0; LANES], [0; LANES]);
        f[..features.len()].copy_from_slice(features);
        for (p, &x) in p.iter_mut().zip(x) {
            *p = x as i32;
        }
        let index = Pixels::new(plan, &f, &p, &[y; LANES]).nearest_adaptive(candidates, adaptive);
        for (out, &i) in out.iter_mut().zip(&index) {
            *out = candidates.labels[i as usize] as u16;
        }
    }
}
