// SPDX-License-Identifier: MPL-2.0
//! Stage `slic/label` on the CPU: every pixel to its nearest cluster, a row of a cell at a time.

// Lanes and channels run over several arrays at once; an iterator over one of them hides that.
#![allow(clippy::needless_range_loop)]

use std::ops::Range;

use super::score::{Candidates, Center, Columns, Pixels, Row};
use super::{Adaptive, Plan};
use crate::algo::grid::Grid;
use crate::algo::samples::{ROWS, WIDE};
use crate::cpu::level::LANES;
use crate::cpu::level::by_level;
use crate::image::LabelBand;
use crate::temporal::Inertia;
use crate::temporal::look_back::{NO_CANDIDATE, PREDICTED};
use crate::temporal::state::State;

/// Columns whose part of the scores is kept while rows pass.
const BLOCK: usize = 4 * WIDE;

by_level! {
    /// Labels up to S rows of pixels, all of one row of cells. Returns what the samples among them add to the residual, where
    /// something lasts. `x` are the columns' scaled places, each from its cell's first, and some more.
    pub(super) fn label_band(
        band: &mut LabelBand<'_>,
        grid: &Grid,
        plan: &Plan,
        x: &[i32],
        centers: &[Center],
        features: &[u32],
        state: Option<&State>,
    ) -> u64 = slic_label_band_body
}

#[inline(always)]
fn slic_label_band_body(
    band: &mut LabelBand<'_>,
    grid: &Grid,
    plan: &Plan,
    x: &[i32],
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
    let mut candidates = Candidates::NONE;
    let mut blocks = [const { Columns::NONE }; BLOCK / WIDE];
    let mut scores = [[0; WIDE]; PREDICTED];
    let pieces =
        (0..band.rows()).step_by(ROWS).flat_map(|top| (0..grid.nx as usize).map(move |gx| (top, gx)));
    for (top, gx) in pieces {
        candidates.set(grid, plan, centers, gx, gy);
        let cell = grid.columns(gx);
        for from in cell.clone().step_by(BLOCK) {
            let columns = from..cell.end.min(from + BLOCK);
            for (first, block) in columns.clone().step_by(WIDE).zip(&mut blocks) {
                // What lies right of the cell is not used.
                if let Some(x) = x[first..].first_chunk() {
                    block.set(&candidates, x);
                }
            }
            for y in top..band.rows().min(top + ROWS) {
                let row = band.first_row + y;
                let offset = plan.py[row] - origin;
                let sampled = grid.samples(&(row..row + 1)).next().map(|_| grid);
                let pixels = &features[row * width..][columns.clone()];
                let out = &mut band.row_mut(y)[columns.clone()];
                if let Some(adaptive) = &plan.adaptive {
                    let row = AdaptiveRow { plan, adaptive, candidates: &candidates, inertia, y: offset };
                    residual += row.label(pixels, &x[columns.clone()], out, |lanes, least| {
                        residual_of(sampled, columns.start + lanes.start..columns.start + lanes.end, least)
                    });
                    continue;
                }
                let constant = candidates.in_row(offset);
                let row = Row { plan, candidates: &candidates, constant, y: offset };
                let pieces = pixels.chunks(WIDE).zip(out.chunks_mut(WIDE)).zip(&blocks);
                for (i, ((pixels, out), block)) in pieces.enumerate() {
                    let piece = Piece { row: &row, block, inertia, sampled, first: columns.start + i * WIDE };
                    residual += if pixels.len() > LANES {
                        piece.label::<WIDE>(pixels, out, &mut scores)
                    } else {
                        piece.label::<LANES>(pixels, out, &mut scores)
                    };
                }
            }
        }
    }
    residual
}

/// Some columns of a row of a cell.
struct Piece<'a> {
    row: &'a Row<'a>,
    block: &'a Columns,
    /// Where pixels have predictions, which stand where the labels go.
    inertia: Option<Inertia>,
    /// Where the row has samples.
    sampled: Option<&'a Grid>,
    /// The first column.
    first: usize,
}

impl Piece<'_> {
    /// Labels up to N pixels. Returns what the samples among them add.
    #[inline(always)]
    fn label<const N: usize>(
        &self,
        pixels: &[u32],
        out: &mut [u16],
        scores: &mut [[i32; WIDE]; PREDICTED],
    ) -> u64 {
        let features = pixels.first_chunk().copied().unwrap_or_else(|| {
            let mut padded = [0; N];
            padded[..pixels.len()].copy_from_slice(pixels);
            padded
        });
        let mut residual = 0;
        let labels = match self.inertia {
            None => self.row.labels(self.block, &features),
            Some(inertia) => {
                let mut predicted = [NO_CANDIDATE; N];
                predicted.iter_mut().zip(&*out).for_each(|(own, &label)| *own = label as u8);
                let (labels, least) =
                    self.row.labels_predicted(self.block, &features, inertia, &predicted, scores);
                residual = residual_of(self.sampled, self.first..self.first + pixels.len(), &least);
                labels
            }
        };
        match out.first_chunk_mut() {
            Some(out) => *out = labels,
            None => out.copy_from_slice(&labels[..out.len()]),
        }
        residual
    }
}

/// What the samples among some pixels of a row add; none without the grid.
#[inline(always)]
fn residual_of<T: Copy + Into<u64>>(grid: Option<&Grid>, columns: Range<usize>, least: &[T]) -> u64 {
    let Some(grid) = grid else { return 0 };
    grid.samples(&columns).map(|x| least[x - columns.start].into()).sum()
}

/// A row of a cell, or a part of it, for SLICO.
struct AdaptiveRow<'a> {
    plan: &'a Plan,
    adaptive: &'a Adaptive,
    candidates: &'a Candidates,
    /// Where pixels have predictions, which stand where the labels go.
    inertia: Option<Inertia>,
    /// Scaled place in the cell.
    y: i32,
}

impl AdaptiveRow<'_> {
    /// Labels the row. `x` are scaled places in the cell. Returns what `residual` gives for its pieces.
    #[inline(always)]
    fn label(
        &self,
        features: &[u32],
        x: &[i32],
        out: &mut [u16],
        residual: impl Fn(Range<usize>, &[u64]) -> u64,
    ) -> u64 {
        let mut sum = 0;
        let pieces = features.chunks(LANES).zip(x.chunks(LANES)).zip(out.chunks_mut(LANES));
        for (i, ((features, x), out)) in pieces.enumerate() {
            let (mut f, mut p, mut own) = ([0; LANES], [0; LANES], [NO_CANDIDATE; LANES]);
            f[..features.len()].copy_from_slice(features);
            p.iter_mut().zip(x).for_each(|(p, &x)| *p = x);
            let pixels = Pixels::new(self.plan, &f, &p, &[self.y; LANES]);
            let index = match self.inertia {
                None => pixels.nearest_adaptive(self.candidates, self.adaptive),
                Some(inertia) => {
                    own.iter_mut().zip(&*out).for_each(|(own, &predicted)| *own = predicted as u8);
                    let (index, least) =
                        pixels.nearest_predicted_adaptive(self.candidates, self.adaptive, inertia, &own);
                    sum += residual(i * LANES..i * LANES + features.len(), &least);
                    index
                }
            };
            out.iter_mut().zip(index).for_each(|(out, i)| *out = self.candidates.labels[i as usize] as u16);
        }
        sum
    }
}
