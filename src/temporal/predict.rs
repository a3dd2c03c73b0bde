// SPDX-License-Identifier: MPL-2.0
//! Predictions on the CPU: the region that every pixel comes from, and its similarity to the pixel that was there.

// Lanes run over several arrays at once; an iterator over one of them hides that.
#![allow(clippy::needless_range_loop)]

use super::state::State;
use super::{MOST_PARTS, PART_SHIFT, SAME, SIMILARITY_SHIFT, STAYS, STILL};
use crate::color::unpack;
use crate::cpu::chunk;
use crate::cpu::level::{LANES, by_level};
use crate::grid::CANDIDATES;
use crate::image::{LabelBand, NO_LABEL};

/// Bits of a prediction that name the candidate; similarity and part are above.
pub(crate) const CANDIDATE: u16 = 15;
/// A pixel that is predicted to belong to none of its candidates.
pub(crate) const NO_CANDIDATE: u16 = CANDIDATE;

/// Sum over the channels of the absolute difference of two features.
#[inline(always)]
pub(super) fn feature_difference(a: u32, b: u32) -> u32 {
    let (a, b) = (unpack(a), unpack(b));
    a[0].abs_diff(b[0]) + a[1].abs_diff(b[1]) + a[2].abs_diff(b[2])
}

/// Adds their part's number, times `cells`, to the labels of pixels that go to the cluster that they are predicted to belong to.
/// `index` are the candidates that they go to.
#[inline(always)]
pub(crate) fn add_parts<const N: usize>(
    cells: u16,
    predicted: &[u16; N],
    index: &[u16; N],
    labels: &mut [u16; N],
) {
    for lane in 0..N {
        let stays = mask(predicted[lane] & CANDIDATE == index[lane]);
        labels[lane] += cells.wrapping_mul(predicted[lane] >> PART_SHIFT) & stays;
    }
}

/// Pixels that are predicted together.
const BLOCK: usize = 2 * LANES;
/// Rows of a cell that are predicted before the next cell's. With more rows, prefetching fails.
const ROWS: usize = 4;

/// All ones if a condition holds: vectors select by `and` and `or`, while branches would take each lane by itself.
#[inline(always)]
pub(crate) fn mask(holds: bool) -> u16 {
    u16::from(holds).wrapping_neg()
}

/// Features and labels of the last frame, at some pixels or at those that they come from.
#[derive(Clone, Copy)]
struct Last {
    features: [u32; BLOCK],
    labels: [u16; BLOCK],
}

impl Last {
    const NONE: Self = Self { features: [0; BLOCK], labels: [0; BLOCK] };

    /// Feature differences to this frame's pixels.
    #[inline(always)]
    fn differences(&self, now: &[u32; BLOCK]) -> [u16; BLOCK] {
        let mut differences = [0; BLOCK];
        for lane in 0..BLOCK {
            differences[lane] = feature_difference(now[lane], self.features[lane]) as u16;
        }
        differences
    }
}

/// Most regions of the candidates of a cell.
const MOST_REGIONS: usize = CANDIDATES * (1 + MOST_PARTS as usize);

/// The last frame's regions whose clusters are the candidates of a cell, and the parts of these clusters.
struct Regions {
    len: usize,
    /// Labels; `NO_LABEL`, as outside of a mask, for a candidate without a region.
    labels: [u16; MOST_REGIONS],
    /// The candidates' numbers, with those of parts above.
    numbers: [u16; MOST_REGIONS],
}

impl Regions {
    #[inline(always)]
    fn new(state: &State, (gx, gy): (usize, usize)) -> Self {
        let mut all =
            Self { len: 0, labels: [NO_LABEL; MOST_REGIONS], numbers: [NO_CANDIDATE; MOST_REGIONS] };
        if state.released[gy * state.grid.nx as usize + gx] {
            return all;
        }
        for (i, at) in state.grid.candidates(gx, gy).enumerate() {
            let region = state.regions[at];
            all.labels[i] = region;
            all.numbers[i] = if region == NO_LABEL { NO_CANDIDATE } else { i as u16 };
            all.len = i + 1;
        }
        for (i, at) in state.grid.candidates(gx, gy).enumerate() {
            let [from, end] = [0, 1].map(|next| state.parts_from[at + next] as usize);
            for part in &state.parts[from..end] {
                all.labels[all.len] = part.region;
                all.numbers[all.len] = part.number << PART_SHIFT | i as u16;
                all.len += 1;
            }
        }
        all
    }

    /// Predicts some pixels: `still` has the last frame at their positions, `moved` at those that their cell comes
    /// from.
    #[inline(always)]
    fn predict(&self, now: &[u32; BLOCK], still: &Last, moved: &Last) -> [u16; BLOCK] {
        const STAYING: u16 = STAYS << SIMILARITY_SHIFT;
        let (near, far) = (still.differences(now), moved.differences(now));
        let (mut labels, mut similarity) = ([0; BLOCK], [0; BLOCK]);
        for lane in 0..BLOCK {
            let stays = mask(u32::from(near[lane]) < STILL);
            labels[lane] = (still.labels[lane] & stays) | (moved.labels[lane] & !stays);
        }
        for lane in 0..BLOCK {
            let stays = mask(u32::from(near[lane]) < STILL);
            similarity[lane] = (STAYING & stays) | (similarity_of(far[lane]) << SIMILARITY_SHIFT & !stays);
        }
        let mut candidates = [NO_CANDIDATE; BLOCK];
        for (&label, &number) in self.labels[..self.len].iter().zip(&self.numbers) {
            for lane in 0..BLOCK {
                let own = mask(labels[lane] == label);
                candidates[lane] = (candidates[lane] & !own) | (number & own);
            }
        }
        for lane in 0..BLOCK {
            candidates[lane] |= similarity[lane];
        }
        candidates
    }

    /// Writes as many predictions as fit.
    #[inline(always)]
    fn predict_block(&self, now: &[u32; BLOCK], still: &Last, moved: &Last, out: Option<&mut [u16]>) {
        if let Some(out) = out {
            chunk::write(&self.predict(now, still, moved), out);
        }
    }
}

/// Similarity in eighths of a pixel with that difference from the one it comes from.
#[inline(always)]
fn similarity_of(difference: u16) -> u16 {
    const EIGHTH: u16 = SAME as u16 / 8;
    (SAME as u16).saturating_sub(difference).div_ceil(EIGHTH)
}

/// Some neighboring pixels of a row; beyond its ends the nearest one in it.
#[inline(always)]
fn block<T: Copy>(row: &[T], x: i32) -> [T; BLOCK] {
    let inside = usize::try_from(x).ok().and_then(|x| row.get(x..)?.first_chunk());
    inside.copied().unwrap_or_else(|| clamped(row, x))
}

#[cold]
fn clamped<T: Copy>(row: &[T], x: i32) -> [T; BLOCK] {
    std::array::from_fn(|i| row[(x + i as i32).clamp(0, row.len() as i32 - 1) as usize])
}

impl State {
    /// Origin of the pixels of row `y` of a cell: their motion to the right, and the row.
    #[inline(always)]
    fn origin(&self, (gx, gy): (usize, usize), y: usize) -> (i32, usize) {
        let [move_x, move_y] = self.moves[gy * self.grid.nx as usize + gx];
        (move_x, (y as i32 - move_y).clamp(0, self.grid.geometry.height as i32 - 1) as usize)
    }

    /// Writes the predictions for the samples of a cell in raster order: the candidate of each, and its similarity.
    pub fn predict(&self, cell: (usize, usize), features: &[u32], out: &mut [u16]) {
        predict_samples(self, cell, features, out);
    }

    /// Predicts all pixels of a band within one row of cells, and leaves the predictions in the label plane. Goes over
    /// some rows of each cell in turn, because memory of two frames is far apart from cell to cell.
    #[inline(always)]
    pub fn predict_band(&self, gy: usize, features: &[u32], band: &mut LabelBand<'_>) {
        if !self.warm {
            (0..band.rows()).for_each(|y| band.row_mut(y).fill(NO_CANDIDATE));
            return;
        }
        for top in (0..band.rows()).step_by(ROWS) {
            for gx in 0..self.grid.nx as usize {
                let regions = Regions::new(self, (gx, gy));
                for y in top..band.rows().min(top + ROWS) {
                    let at = band.first_row + y;
                    self.predict_row(&regions, (gx, gy), at, features, band.row_mut(y));
                }
            }
        }
    }

    /// Predicts row `y` of a cell in whole blocks. They overwrite pixels right of the cell, which therefore have to be
    /// predicted later.
    #[inline(always)]
    fn predict_row(
        &self,
        regions: &Regions,
        cell: (usize, usize),
        y: usize,
        features: &[u32],
        out: &mut [u16],
    ) {
        let width = self.grid.geometry.width as usize;
        let (move_x, from) = self.origin(cell, y);
        let last = |y: usize| (&self.features[y * width..][..width], &self.labels[y * width..][..width]);
        let (now, still, moved) = (&features[y * width..][..width], last(y), last(from));
        let at = |(features, labels): (&[u32], &[u16]), x: i32| Last {
            features: block(features, x),
            labels: block(labels, x),
        };
        for first in self.grid.columns(cell.0).step_by(BLOCK) {
            let x = first as i32;
            let all = regions.predict(&block(now, x), &at(still, x), &at(moved, x - move_x));
            chunk::write(&all, &mut out[first..]);
        }
    }
}

by_level! {
    fn predict_samples(
        state: &State,
        cell: (usize, usize),
        features: &[u32],
        out: &mut [u16],
    ) = predict_samples_body
}

#[inline(always)]
fn predict_samples_body(state: &State, cell: (usize, usize), features: &[u32], out: &mut [u16]) {
    if !state.warm {
        out.fill(NO_CANDIDATE);
        return;
    }
    let (grid, width) = (&state.grid, state.grid.geometry.width as usize);
    let (regions, columns) = (Regions::new(state, cell), grid.columns(cell.0));
    let (mut now, mut still, mut moved, mut lane) = ([0; BLOCK], Last::NONE, Last::NONE, 0);
    let mut blocks = out.chunks_mut(BLOCK);
    for y in grid.samples(&grid.rows(cell.1)) {
        let (move_x, from) = state.origin(cell, y);
        let row = |y: usize| (&state.features[y * width..][..width], &state.labels[y * width..][..width]);
        let (features, here, there) = (&features[y * width..][..width], row(y), row(from));
        for x in grid.samples(&columns) {
            let from = (x as i32 - move_x).clamp(0, width as i32 - 1) as usize;
            now[lane] = features[x];
            (still.features[lane], still.labels[lane]) = (here.0[x], here.1[x]);
            (moved.features[lane], moved.labels[lane]) = (there.0[from], there.1[from]);
            lane += 1;
            if lane == BLOCK {
                regions.predict_block(&now, &still, &moved, blocks.next());
                lane = 0;
            }
        }
    }
    if lane > 0 {
        regions.predict_block(&now, &still, &moved, blocks.next());
    }
}
