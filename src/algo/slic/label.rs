// SPDX-License-Identifier: MPL-2.0
//! Stage `slic/label` on the CPU: every pixel to its nearest cluster, a row of a cell at a time.

// Lanes and channels run over several arrays at once; an iterator over one of them hides that.
#![allow(clippy::needless_range_loop)]

use std::ops::Range;

use multiversion::multiversion;
use multiversion::target::target_cfg_f;

use super::cpu::Center;
use super::score::{
    Candidates, Pixels, color_and_x, distances, keep_lower, prefer, score_in_row, squares, with_row,
};
use super::{Adaptive, Plan};
use crate::algo::grid::Grid;
use crate::algo::samples::{CANDIDATES, LANES, ROWS};
use crate::algo::temporal::Inertia;
use crate::algo::temporal::cpu::State;
use crate::algo::temporal::look_back::{NO_CANDIDATE, PREDICTED};
use crate::image::LabelBand;

/// Labels up to S rows of pixels, all of one row of cells. Returns what the samples among them add to the residual, where
/// something lasts. `x` are the columns' scaled places, each from its cell's first.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
pub(super) fn label_band(
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
    let origin = plan.py[grid.rows(gy).start];
    let mut residual = 0;
    let inertia = state.map(State::inertia);
    if let Some(state) = state {
        state.predict_band(gy, features, band);
    }
    let pieces =
        (0..band.rows()).step_by(ROWS).flat_map(|top| (0..grid.nx as usize).map(move |gx| (top, gx)));
    for (top, gx) in pieces {
        let candidates = Candidates::new(grid, plan, centers, gx, gy);
        let columns = grid.columns(gx);
        for y in top..band.rows().min(top + ROWS) {
            let row = band.first_row + y;
            let offset = plan.py[row] - origin;
            let pixels = &features[row * width..][columns.clone()];
            let (x, out) = (&x[columns.clone()], &mut band.row_mut(y)[columns.clone()]);
            if let Some(inertia) = inertia {
                let sampled = grid.samples(&(row..row + 1)).next().map(|_| (grid, columns.start));
                let row = PredictedRow { plan, candidates: &candidates, inertia, y: offset, sampled };
                residual += match &plan.adaptive {
                    None => row.label::<FMA>(pixels, x, out),
                    Some(adaptive) => row.label_adaptive(adaptive, pixels, x, out),
                };
            } else if let Some(adaptive) = &plan.adaptive {
                label_row_adaptive(plan, adaptive, &candidates, offset, pixels, x, out);
            } else {
                label_row::<FMA>(plan, &candidates, offset, pixels, x, out);
            }
        }
    }
    residual
}

/// A row of a cell whose pixels have predictions, which stand where the labels go.
struct PredictedRow<'a> {
    plan: &'a Plan,
    candidates: &'a Candidates,
    inertia: Inertia,
    /// Scaled place in the cell.
    y: i32,
    /// The grid and the row's first column, where the row has samples.
    sampled: Option<(&'a Grid, usize)>,
}

impl PredictedRow<'_> {
    /// Labels the row. Returns what its samples add to the residual.
    #[inline(always)]
    fn label<const FMA: bool>(&self, features: &[u32], x: &[f32], out: &mut [u16]) -> u64 {
        let constant = with_row::<FMA>(self.candidates, self.y);
        let labels = |features: &[u32; LANES], x: &[f32; LANES], predicted: &[u8; LANES]| {
            predicted_labels::<FMA>(self, &constant, features, x, predicted)
        };
        let mut residual = 0;
        let whole = features.len() / LANES * LANES;
        for at in (0..whole).step_by(LANES) {
            if let (Some(features), Some(x), Some(out)) =
                (features[at..].first_chunk(), x[at..].first_chunk(), out[at..].first_chunk_mut())
            {
                let least;
                (*out, least) = labels(features, x, &out.map(|predicted| predicted as u8));
                residual += self.residual(at..at + LANES, &least);
            }
        }
        let rest = features.len() - whole;
        if rest > 0 {
            let (mut f, mut p, mut own) = ([0; LANES], [0.0; LANES], [NO_CANDIDATE; LANES]);
            f[..rest].copy_from_slice(&features[whole..]);
            p[..rest].copy_from_slice(&x[whole..]);
            own.iter_mut().zip(&out[whole..]).for_each(|(own, &predicted)| *own = predicted as u8);
            let (labels, least) = labels(&f, &p, &own);
            out[whole..].copy_from_slice(&labels[..rest]);
            residual += self.residual(whole..features.len(), &least);
        }
        residual
    }

    /// The same for SLICO.
    #[inline(always)]
    fn label_adaptive(&self, adaptive: &Adaptive, features: &[u32], x: &[f32], out: &mut [u16]) -> u64 {
        let mut residual = 0;
        let pieces = features.chunks(LANES).zip(x.chunks(LANES)).zip(out.chunks_mut(LANES));
        for (i, ((features, x), out)) in pieces.enumerate() {
            let (mut f, mut p, mut own) = ([0; LANES], [0; LANES], [NO_CANDIDATE; LANES]);
            f[..features.len()].copy_from_slice(features);
            p.iter_mut().zip(x).for_each(|(p, &x)| *p = x as i32);
            own.iter_mut().zip(&*out).for_each(|(own, &predicted)| *own = predicted as u8);
            let pixels = Pixels::new(self.plan, &f, &p, &[self.y; LANES]);
            let (index, least) =
                pixels.nearest_predicted_adaptive(self.candidates, adaptive, self.inertia, &own);
            out.iter_mut().zip(index).for_each(|(out, i)| *out = self.candidates.labels[i as usize] as u16);
            residual += self.residual(i * LANES..i * LANES + features.len(), &least);
        }
        residual
    }

    /// What the samples among some pixels of the row add.
    #[inline(always)]
    fn residual<T: Copy + Into<u64>>(&self, pixels: Range<usize>, least: &[T; LANES]) -> u64 {
        let Some((grid, left)) = self.sampled else { return 0 };
        let first = left + pixels.start;
        grid.samples(&(first..left + pixels.end)).map(|x| least[x - first].into()).sum()
    }
}

/// The labels of pixels with predictions, and, in a row with samples, their least distances; `constant` holds the row's place already.
#[inline(always)]
fn predicted_labels<const FMA: bool>(
    row: &PredictedRow<'_>,
    constant: &[f32; CANDIDATES],
    features: &[u32; LANES],
    x: &[f32; LANES],
    predicted: &[u8; LANES],
) -> ([u16; LANES], [u32; LANES]) {
    let candidates = row.candidates;
    let p = color_and_x(row.plan, features, x);
    let (mut best, mut index) = ([f32::INFINITY; LANES], [0u32; LANES]);
    let mut scores = [[0.0; LANES]; PREDICTED];
    for i in 0..candidates.len {
        scores[i] = score_in_row::<FMA>(candidates, constant, &p, i);
        keep_lower(&mut best, &mut index, &scores[i], i as u32);
    }
    let norm = squares::<FMA>(&p[3..], (row.y * row.y) as f32);
    prefer(row.inertia, &norm, predicted, &scores, &best, &mut index);
    let least = if row.sampled.is_some() { distances(&best, &norm) } else { [0; LANES] };
    (index.map(|i| candidates.labels[i as usize] as u16), least)
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
