// SPDX-License-Identifier: MPL-2.0
//! Stage `lsc/label` on the CPU: assigns every pixel to its nearest cluster, some columns of a cell at a time.

// Lanes and channels run over several arrays at once; an iterator over one of them hides that.
#![allow(clippy::needless_range_loop)]

use std::ops::Range;

use super::Plan;
use super::score::{
    Candidates, Cluster, Mean, Pixels, add_score_y, distances, floats, keep_lower, keep_own, prefer, score_x,
};
use crate::algo::clustering::cpu::{Labeler, Piece, label_cells};
use crate::cpu::chunk;
use crate::cpu::level::{LANES, by_level};
use crate::grid::{CANDIDATES, Grid};
use crate::image::LabelBand;
use crate::temporal::Inertia;
use crate::temporal::predict::{NO_CANDIDATE, add_parts};
use crate::temporal::state::State;

/// Columns per piece: their part of the score is kept from row to row.
const BLOCK: usize = 64;

by_level! {
    /// Labels up to S rows of pixels, all of one row of cells. In temporal mode, returns the samples' part of the
    /// residual.
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
    let mut labeler = LscLabeler {
        grid,
        plan,
        mean,
        clusters,
        inertia: state.map(State::inertia),
        candidates: Candidates::NONE,
        across: [[[0.0; LANES]; CANDIDATES]; BLOCK / LANES],
    };
    label_cells(&mut labeler, grid, band, features, state)
}

struct LscLabeler<'a> {
    grid: &'a Grid,
    plan: &'a Plan,
    mean: &'a Mean,
    clusters: &'a [Cluster],
    /// Set where pixels have predictions, which the label plane holds until labels replace them.
    inertia: Option<Inertia>,
    candidates: Candidates,
    /// Column part of the scores.
    across: [[[f32; LANES]; CANDIDATES]; BLOCK / LANES],
}

impl Labeler for LscLabeler<'_> {
    const COLUMNS: usize = BLOCK;

    #[inline(always)]
    fn cell(&mut self, gx: usize, gy: usize) {
        self.candidates = Candidates::new(self.grid, self.clusters, gx, gy);
    }

    #[inline(always)]
    fn columns(&mut self, columns: Range<usize>) {
        for (x, across) in self.plan.px[columns].chunks(LANES).zip(&mut self.across) {
            let x = floats(&chunk::first(x, 0));
            for (cluster, across) in self.candidates.clusters.iter().zip(across) {
                *across = score_x(cluster, &x);
            }
        }
    }

    #[inline(always)]
    fn label(&mut self, piece: &Piece<'_>, out: &mut [u16]) -> u64 {
        let Self { plan, mean, candidates, across, inertia, .. } = self;
        let y = floats(&[plan.py[piece.row]; LANES]);
        let mut residual = 0;
        let vectors = piece.features.chunks(LANES).zip(out.chunks_mut(LANES)).zip(&*across);
        for (i, ((features, out), across)) in vectors.enumerate() {
            let nearest = Nearest::new(plan, mean, candidates, across, &y, &chunk::first(features, 0));
            let labels = match *inertia {
                None => nearest.label(),
                Some(inertia) => {
                    let predicted = chunk::first(out, NO_CANDIDATE);
                    let (labels, best) = nearest.label_predicted(inertia, &predicted);
                    if piece.sampled.is_some() {
                        let first = piece.columns.start + i * LANES;
                        let least = distances(plan, mean, &nearest.pixels, &best);
                        residual += piece.residual(first..first + features.len(), &least);
                    }
                    labels
                }
            };
            chunk::write(&labels, out);
        }
        residual
    }
}

/// Some pixels of a row of a cell, and their candidates.
struct Nearest<'a> {
    plan: &'a Plan,
    mean: &'a Mean,
    candidates: &'a Candidates,
    /// Column part of the scores.
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

    /// Scores of candidate `i`.
    #[inline(always)]
    fn score(&self, i: usize) -> [f32; LANES] {
        let cluster = &self.candidates.clusters[i];
        let mut score = self.across[i];
        add_score_y(&mut score, cluster, self.y);
        self.pixels.score(cluster, &mut score);
        score
    }

    /// Returns the label of each pixel's nearest candidate.
    #[inline(always)]
    fn label(&self) -> [u16; LANES] {
        let (mut best, mut index) = ([f32::INFINITY; LANES], [0; LANES]);
        for i in 0..self.candidates.len {
            keep_lower(&mut best, &mut index, &self.score(i), i as u32);
        }
        self.labels(&index)
    }

    /// Like [`Self::label`], with distances to predicted candidates discounted. Also returns the least scores, without
    /// discount.
    #[inline(always)]
    fn label_predicted(&self, inertia: Inertia, predicted: &[u16; LANES]) -> ([u16; LANES], [f32; LANES]) {
        let (mut best, mut index) = ([f32::INFINITY; LANES], [0; LANES]);
        let mut kept = [0.0; LANES];
        for i in 0..self.candidates.len {
            let score = self.score(i);
            keep_lower(&mut best, &mut index, &score, i as u32);
            keep_own(&mut kept, &score, predicted, i as u32);
        }
        prefer((self.plan, self.mean), inertia, &self.pixels, predicted, &kept, &best, &mut index);
        let mut labels = self.labels(&index);
        add_parts(self.candidates.cells, predicted, &index.map(|i| i as u16), &mut labels);
        (labels, best)
    }

    #[inline(always)]
    fn labels(&self, index: &[u32; LANES]) -> [u16; LANES] {
        index.map(|i| self.candidates.labels[i as usize] as u16)
    }
}
