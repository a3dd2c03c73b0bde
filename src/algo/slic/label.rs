// SPDX-License-Identifier: MPL-2.0
//! Stage `slic/label` on the CPU: assigns every pixel to its nearest cluster, a row of a cell at a time.

// Lanes and channels run over several arrays at once; an iterator over one of them hides that.
#![allow(clippy::needless_range_loop)]

use std::ops::Range;

use super::score::{Candidates, Center, Columns, Pixels, Row};
use super::{Adaptive, Plan};
use crate::algo::clustering::cpu::{Labeler, Piece, label_cells};
use crate::algo::clustering::samples::WIDE;
use crate::cpu::chunk;
use crate::cpu::level::LANES;
use crate::cpu::level::by_level;
use crate::grid::Grid;
use crate::image::LabelBand;
use crate::temporal::Inertia;
use crate::temporal::predict::{NO_CANDIDATE, add_parts};
use crate::temporal::state::State;

/// Columns per piece: their part of the score is kept from row to row.
const BLOCK: usize = 4 * WIDE;

by_level! {
    /// Labels up to S rows of pixels, all of one row of cells. In temporal mode, returns the samples' part of the
    /// residual. `x` are the columns' scaled positions relative to their cell's first, padded to whole vectors.
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
    let mut labeler = SlicLabeler {
        grid,
        plan,
        x,
        centers,
        inertia: state.map(State::inertia),
        top: 0,
        candidates: Candidates::NONE,
        blocks: [const { Columns::NONE }; BLOCK / WIDE],
    };
    label_cells(&mut labeler, grid, band, features, state)
}

struct SlicLabeler<'a> {
    grid: &'a Grid,
    plan: &'a Plan,
    x: &'a [i32],
    centers: &'a [Center],
    /// Set where pixels have predictions, which the label plane holds until labels replace them.
    inertia: Option<Inertia>,
    /// Scaled position of the cell's first row.
    top: i32,
    candidates: Candidates,
    blocks: [Columns; BLOCK / WIDE],
}

impl Labeler for SlicLabeler<'_> {
    const COLUMNS: usize = BLOCK;

    #[inline(always)]
    fn cell(&mut self, gx: usize, gy: usize) {
        self.top = self.plan.py[self.grid.rows(gy).start];
        self.candidates.set(self.grid, self.plan, self.centers, gx, gy);
    }

    #[inline(always)]
    fn columns(&mut self, columns: Range<usize>) {
        for (first, block) in columns.step_by(WIDE).zip(&mut self.blocks) {
            // Lanes past the cell's last column are computed and not used.
            if let Some(x) = self.x[first..].first_chunk() {
                block.set(&self.candidates, x);
            }
        }
    }

    #[inline(always)]
    fn label(&mut self, piece: &Piece<'_>, out: &mut [u16]) -> u64 {
        let Self { plan, x, candidates, blocks, inertia, .. } = self;
        let (columns, y) = (piece.columns.clone(), plan.py[piece.row] - self.top);
        if let Some(adaptive) = &plan.adaptive {
            let row = AdaptiveRow { plan, adaptive, candidates, inertia: *inertia, y };
            return row.label(piece, &x[columns], out);
        }
        let row = Row { plan, candidates, constant: candidates.in_row(y), y };
        let mut residual = 0;
        let vectors = piece.features.chunks(WIDE).zip(out.chunks_mut(WIDE)).zip(&*blocks);
        for (i, ((features, out), block)) in vectors.enumerate() {
            let vector =
                Vector { row: &row, block, inertia: *inertia, piece, first: columns.start + i * WIDE };
            residual += if features.len() > LANES {
                vector.label::<WIDE>(features, out)
            } else {
                vector.label::<LANES>(features, out)
            };
        }
        residual
    }
}

/// Pixels of a piece that are labeled at once.
struct Vector<'a> {
    row: &'a Row<'a>,
    block: &'a Columns,
    inertia: Option<Inertia>,
    piece: &'a Piece<'a>,
    /// Column of the first pixel.
    first: usize,
}

impl Vector<'_> {
    /// Labels up to N pixels and returns the samples' part of the residual.
    #[inline(always)]
    fn label<const N: usize>(&self, pixels: &[u32], out: &mut [u16]) -> u64 {
        let features = chunk::first::<_, N>(pixels, 0);
        let mut residual = 0;
        let labels = match self.inertia {
            None => self.row.labels(self.block, &features),
            Some(inertia) => {
                let predicted = chunk::first::<_, N>(out, NO_CANDIDATE);
                let (labels, least) = self.row.labels_predicted(self.block, &features, inertia, &predicted);
                residual = self.piece.residual(self.first..self.first + pixels.len(), &least);
                labels
            }
        };
        chunk::write(&labels, out);
        residual
    }
}

/// A row of a cell, or a part of it, with SLICO's scores.
struct AdaptiveRow<'a> {
    plan: &'a Plan,
    adaptive: &'a Adaptive,
    candidates: &'a Candidates,
    /// Set where pixels have predictions, which the label plane holds until labels replace them.
    inertia: Option<Inertia>,
    /// Scaled position of the row in the cell.
    y: i32,
}

impl AdaptiveRow<'_> {
    /// Labels the piece and returns the samples' part of the residual. `x` are scaled positions in the cell.
    #[inline(always)]
    fn label(&self, piece: &Piece<'_>, x: &[i32], out: &mut [u16]) -> u64 {
        let mut sum = 0;
        let pieces = piece.features.chunks(LANES).zip(x.chunks(LANES)).zip(out.chunks_mut(LANES));
        for (i, ((features, x), out)) in pieces.enumerate() {
            let (mut f, mut p, mut own) = ([0; LANES], [0; LANES], [NO_CANDIDATE; LANES]);
            f[..features.len()].copy_from_slice(features);
            p.iter_mut().zip(x).for_each(|(p, &x)| *p = x);
            let pixels = Pixels::new(self.plan, &f, &p, &[self.y; LANES]);
            let index: [u16; LANES] = match self.inertia {
                None => pixels.nearest_adaptive(self.candidates, self.adaptive),
                Some(inertia) => {
                    own.iter_mut().zip(&*out).for_each(|(own, &predicted)| *own = predicted);
                    let (index, least) =
                        pixels.nearest_predicted_adaptive(self.candidates, self.adaptive, inertia, &own);
                    let first = piece.columns.start + i * LANES;
                    sum += piece.residual(first..first + features.len(), &least);
                    index
                }
            };
            let mut labels = index.map(|i| self.candidates.labels[usize::from(i)] as u16);
            add_parts(self.candidates.cells, &own, &index, &mut labels);
            chunk::write(&labels, out);
        }
        sum
    }
}
