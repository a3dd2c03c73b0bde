// SPDX-License-Identifier: MPL-2.0
//! Stage `lsc/label` on the CPU: every pixel to its nearest cluster, some columns of a cell at a time.

// Lanes and channels run over several arrays at once; an iterator over one of them hides that.
#![allow(clippy::needless_range_loop)]

use super::Plan;
use super::score::{
    Candidates, Cluster, Mean, Pixels, add_score_y, distances, floats, keep_lower, prefer, score_x,
};
use crate::algo::grid::Grid;
use crate::algo::samples::{CANDIDATES, ROWS};
use crate::cpu::level::LANES;
use crate::cpu::level::by_level;
use crate::image::LabelBand;
use crate::temporal::Inertia;
use crate::temporal::look_back::{NO_CANDIDATE, PREDICTED};
use crate::temporal::state::State;

/// Columns whose part of the score is kept while rows pass.
const BLOCK: usize = 64;

by_level! {
    /// Labels up to S rows of pixels, all of one row of cells. Returns what the samples among them add to the residual, where
    /// something lasts.
    pub(super) fn label_band(
        band: &mut LabelBand<'_>,
        grid: &Grid,
        plan: &Plan,
        mean: &Mean,
        clusters: &[Cluster],
        features: &[u32],
        state: Option<&State>,
    ) -> u64 = lsc_label_band_body
}

#[inline(always)]
fn lsc_label_band_body(
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
    let inertia = state.map(State::inertia);
    if let Some(state) = state {
        state.predict_band(gy, features, band);
    }
    let pieces =
        (0..band.rows()).step_by(ROWS).flat_map(|top| (0..grid.nx as usize).map(move |gx| (top, gx)));
    for (top, gx) in pieces {
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
            for y in top..band.rows().min(top + ROWS) {
                let row = band.first_row + y;
                let place = floats(&[plan.py[row]; LANES]);
                let sampled = grid.samples(&(row..row + 1)).next().is_some();
                let pixels = features[row * width..][columns.clone()].chunks(LANES);
                let out = band.row_mut(y)[columns.clone()].chunks_mut(LANES);
                for (i, ((pixels, out), across)) in pixels.zip(out).zip(&across).enumerate() {
                    let padded = pixels.first_chunk().copied().unwrap_or_else(|| {
                        let mut padded = [0; LANES];
                        padded[..pixels.len()].copy_from_slice(pixels);
                        padded
                    });
                    let nearest = Nearest::new(plan, mean, &candidates, across, &place, &padded);
                    let labels = match inertia {
                        None => nearest.label(),
                        Some(inertia) => {
                            let mut predicted = [NO_CANDIDATE; LANES];
                            predicted.iter_mut().zip(&*out).for_each(|(own, &label)| *own = label as u8);
                            let (labels, best) = nearest.label_predicted(inertia, &predicted);
                            if sampled {
                                let first = columns.start + i * LANES;
                                let least = distances(plan, mean, &nearest.pixels, &best);
                                let lanes = grid.samples(&(first..first + pixels.len()));
                                residual += lanes.map(|x| u64::from(least[x - first])).sum::<u64>();
                            }
                            labels
                        }
                    };
                    match out.first_chunk_mut() {
                        Some(out) => *out = labels,
                        None => out.copy_from_slice(&labels[..out.len()]),
                    }
                }
            }
        }
    }
    residual
}

/// Some pixels of a row of a cell, and what they can belong to.
struct Nearest<'a> {
    plan: &'a Plan,
    mean: &'a Mean,
    candidates: &'a Candidates,
    /// What place in the row gives.
    across: &'a [[f32; LANES]; CANDIDATES],
    y: &'a [[f32; LANES]; 2],
    pixels: Pixels,
}

impl<'a> Nearest<'a> {
    #[inline(always)]
    fn new(
        plan: &'a Plan,
        mean: &'a Mean,
        candidates: &'a Candidates,
        across: &'a [[f32; LANES]; CANDIDATES],
        y: &'a [[f32; LANES]; 2],
        features: &[u32; LANES],
    ) -> Self {
        Self { plan, mean, candidates, across, y, pixels: Pixels::new(&plan.color, mean, features) }
    }

    /// Scores of the candidate `i`.
    #[inline(always)]
    fn score(&self, i: usize) -> [f32; LANES] {
        let cluster = &self.candidates.clusters[i];
        let mut score = self.across[i];
        add_score_y(&mut score, cluster, self.y);
        self.pixels.score(cluster, &mut score);
        score
    }

    /// The label of each pixel's nearest candidate.
    #[inline(always)]
    fn label(&self) -> [u16; LANES] {
        let (mut best, mut index) = ([f32::INFINITY; LANES], [0; LANES]);
        for i in 0..self.candidates.len {
            keep_lower(&mut best, &mut index, &self.score(i), i as u32);
        }
        self.labels(&index)
    }

    /// The same where candidates are predicted. Also gives the least scores.
    #[inline(always)]
    fn label_predicted(&self, inertia: Inertia, predicted: &[u8; LANES]) -> ([u16; LANES], [f32; LANES]) {
        let (mut best, mut index) = ([f32::INFINITY; LANES], [0; LANES]);
        let mut scores = [[0.0; LANES]; PREDICTED];
        for i in 0..self.candidates.len {
            scores[i] = self.score(i);
            keep_lower(&mut best, &mut index, &scores[i], i as u32);
        }
        prefer((self.plan, self.mean), inertia, &self.pixels, predicted, &scores, &best, &mut index);
        (self.labels(&index), best)
    }

    #[inline(always)]
    fn labels(&self, index: &[u32; LANES]) -> [u16; LANES] {
        index.map(|i| self.candidates.labels[i as usize] as u16)
    }
}
