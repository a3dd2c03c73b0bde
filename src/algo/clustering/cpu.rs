// SPDX-License-Identifier: MPL-2.0
//! Clustering on the grid on the CPU, for any score: seeds or the clusters of the last frame, rounds, and the label of each pixel.
//!
//! Cell rows are worked on in bands of fixed height, whatever the number of threads. The samples that rounds visit are
//! gathered once, see [`Samples`].

use std::ops::Range;

use super::samples::{BAND, ROWS, Samples};
use crate::algo::AlgorithmPlan;
use crate::backend::{Segmenter, StageTimes};
use crate::buffers::cpu::FrameBuffers;
use crate::color::OUTSIDE;
use crate::cpu::memory::Array;
use crate::cpu::{Cpu, memory};
use crate::error::Result;
use crate::grid::Grid;
use crate::image::{LabelBand, Labels, NO_LABEL};
use crate::parallel::prelude::*;
use crate::plan::Plan;
use crate::temporal::state::State;
use crate::temporal::{Inertia, WARM_ROUNDS};

/// Names of an algorithm's stages.
pub(crate) struct Stages {
    /// Gathers the samples; where it has no name it belongs to what comes next.
    pub gather: Option<&'static str>,
    pub seed: &'static str,
    pub carry: &'static str,
    pub assign: &'static str,
    pub update: &'static str,
    pub label: &'static str,
}

/// Sums over the members of one cluster.
pub(crate) trait Sums: Copy + Default + Send + Sync {
    /// Adds the sums over other members of the same cluster.
    fn add(&mut self, other: &Self);
}

/// The part that differs between SLIC and LSC: the clusters and the score of a pixel against one. There is one cluster
/// per cell.
pub(crate) trait Clusters: Send + Sync + Sized {
    const STAGES: Stages;
    /// The algorithm's part of a plan.
    type Plan;
    /// Position of a sample in a row or a column, in the algorithm's own terms.
    type Position: Copy + Default + Send + Sync;
    type Sums: Sums;

    /// Allocates the clusters.
    fn new(plan: &Plan, own: &Self::Plan) -> Result<Self>;
    /// Returns the algorithm's part of a plan, or `None` if the plan is another algorithm's.
    fn own(plan: &AlgorithmPlan) -> Option<&Self::Plan>;
    /// Rounds of an independent frame.
    fn iterations(&self) -> u32;
    /// Cuts the sample lattice into bands, once for all frames of a plan.
    fn samples(&self, plan: &Plan) -> Result<Vec<Samples<Self::Position>>>;

    /// Gathers the samples of a frame. LSC also needs their mean before it can score anything.
    fn gather(&mut self, cpu: &Cpu, grid: &Grid, bands: &mut [Band<Self>], features: &[u32]) {
        cpu.run(|| bands.par_iter_mut().for_each(|band| band.samples.gather(grid, features)));
    }

    /// Seeds every cluster with the pixel at the center of its cell.
    fn seed(&mut self, cpu: &Cpu, grid: &Grid, features: &[u32]);
    /// Moves the clusters of the last frame to where they are now, and seeds cells that none came to.
    fn carry(&mut self, cpu: &Cpu, grid: &Grid, features: &[u32], state: &State);
    /// Adds each sample of a band to its nearest cluster's sums. With `inertia`, returns the samples' part of the
    /// residual.
    fn assign_band(&self, grid: &Grid, band: &mut Band<Self>, inertia: Option<Inertia>) -> u64;
    /// Moves each cluster to the mean of its members, whose sums `sums` gives for a column and a row of cells.
    fn update(&mut self, cpu: &Cpu, nx: usize, sums: impl Fn(usize, usize) -> Self::Sums + Sync);
    /// Labels up to S rows of pixels, all of one row of cells. In temporal mode, returns the samples' part of the
    /// residual.
    fn label_band(
        &self,
        grid: &Grid,
        band: &mut LabelBand<'_>,
        features: &[u32],
        state: Option<&State>,
    ) -> u64;
    /// Positions of the clusters in 1/16 px.
    fn positions(&self, grid: &Grid) -> impl Iterator<Item = [i32; 2]>;
    /// Continues with clusters that were made for another plan, which this plan follows.
    fn take_over(&mut self, old: Self);
}

/// The samples of some rows of cells, with their sums for the clusters around them.
pub(crate) struct Band<C: Clusters> {
    pub samples: Samples<C::Position>,
    /// Sums of the clusters of cell rows `first - 1` to `first + rows`.
    pub sums: Array<C::Sums>,
}

/// An algorithm that clusters on the grid.
pub(crate) struct Clustering<C: Clusters> {
    cpu: Cpu,
    grid: Grid,
    /// True if frames may have masks.
    masked: bool,
    clusters: C,
    bands: Vec<Band<C>>,
}

impl<C: Clusters> Clustering<C> {
    pub fn new(cpu: &Cpu, plan: &Plan, own: &C::Plan) -> Result<Self> {
        let grid = plan.grid;
        let clusters = C::new(plan, own)?;
        let band = |samples: Samples<C::Position>| {
            let sums = memory::filled("sums", (samples.rows + 2) * grid.nx as usize, C::Sums::default())?;
            Ok(Band { samples, sums })
        };
        let bands = memory::try_collected("bands of cells", clusters.samples(plan)?.into_iter().map(band))?;
        Ok(Self { cpu: cpu.clone(), grid, masked: plan.masked, clusters, bands })
    }

    fn gather(&mut self, features: &[u32]) {
        self.clusters.gather(&self.cpu, &self.grid, &mut self.bands, features);
    }

    fn carry(&mut self, features: &[u32], state: &State) {
        let Self { cpu, grid, clusters, bands, .. } = self;
        clusters.carry(cpu, grid, features, state);
        cpu.run(|| bands.par_iter_mut().for_each(|band| band.samples.predict(grid, features, state)));
    }

    fn assign(&mut self, inertia: Option<Inertia>) -> u64 {
        let Self { cpu, grid, clusters, bands, .. } = self;
        cpu.run(|| bands.par_iter_mut().map(|band| clusters.assign_band(grid, band, inertia)).sum())
    }

    fn update(&mut self) {
        let Self { cpu, grid, clusters, bands, .. } = self;
        let nx = grid.nx as usize;
        clusters.update(cpu, nx, |gx, gy| {
            let own = gy / BAND;
            let mut sums = C::Sums::default();
            for band in &bands[own.saturating_sub(1)..(own + 2).min(bands.len())] {
                // A band's sums begin one cell row above it.
                let at = (gy + 1).wrapping_sub(band.samples.first);
                if at < band.samples.rows + 2 {
                    sums.add(&band.sums[at * nx + gx]);
                }
            }
            sums
        });
    }

    fn label(&mut self, features: &[u32], labels: &mut Labels<'_>, state: Option<&State>) -> u64 {
        let Self { cpu, grid, clusters, masked, .. } = self;
        let bands = labels.bands_mut(grid.step as usize);
        let label = |mut band: LabelBand<'_>| {
            let residual = clusters.label_band(grid, &mut band, features, state);
            if *masked {
                leave_outside(&mut band, grid, features);
            }
            residual
        };
        cpu.run(|| bands.map(label).sum())
    }

    /// Runs the rounds of an independent frame.
    fn start(&mut self, features: &[u32], times: &mut StageTimes) {
        times.time(C::STAGES.seed, || self.clusters.seed(&self.cpu, &self.grid, features));
        for _ in 0..self.clusters.iterations() {
            times.time(C::STAGES.assign, || self.assign(None));
            times.time(C::STAGES.update, || self.update());
        }
    }

    /// Runs the rounds of a warm start or, after a cut, those from seeds.
    fn follow(&mut self, features: &[u32], state: &mut State, times: &mut StageTimes) {
        times.time(C::STAGES.carry, || self.carry(features, state));
        let inertia = state.inertia();
        let residual = times.time(C::STAGES.assign, || self.assign(Some(inertia)));
        let cut = state.cut(residual);
        if cut {
            times.time(C::STAGES.seed, || self.clusters.seed(&self.cpu, &self.grid, features));
            times.time(C::STAGES.assign, || self.assign(None));
        }
        for _ in 1..WARM_ROUNDS {
            times.time(C::STAGES.update, || self.update());
            times.time(C::STAGES.assign, || self.assign((!cut).then_some(inertia)));
        }
        times.time(C::STAGES.update, || self.update());
    }
}

impl<C: Clusters> Segmenter<Cpu> for Clustering<C> {
    fn segment(
        &mut self,
        buffers: &mut FrameBuffers,
        labels: &mut Labels<'_>,
        times: &mut StageTimes,
    ) -> Result<()> {
        let FrameBuffers { features, temporal, .. } = buffers;
        if self.grid.step == 1 {
            labels.identity();
            if self.masked {
                labels.bands_mut(1).for_each(|mut band| leave_outside(&mut band, &self.grid, features));
            }
            return Ok(());
        }
        let warm = temporal.as_mut().filter(|state| state.is_warm());
        let next = if warm.is_some() { C::STAGES.carry } else { C::STAGES.seed };
        times.time(C::STAGES.gather.unwrap_or(next), || self.gather(features));
        match warm {
            Some(state) => self.follow(features, state, times),
            None => self.start(features, times),
        }
        let residual = times.time(C::STAGES.label, || self.label(features, labels, temporal.as_deref()));
        if let Some(state) = temporal {
            state.finalize(self.clusters.positions(&self.grid), residual);
        }
        Ok(())
    }

    fn change(&mut self, plan: &Plan, _: &mut FrameBuffers) -> Result<()> {
        if let Some(own) = C::own(&plan.algorithm) {
            let new = Self::new(&self.cpu, plan, own)?;
            let old = std::mem::replace(self, new);
            self.clusters.take_over(old.clusters);
        }
        Ok(())
    }
}

/// Removes the labels of pixels outside of the mask.
fn leave_outside(band: &mut LabelBand<'_>, grid: &Grid, features: &[u32]) {
    let width = grid.geometry.width as usize;
    for y in 0..band.rows() {
        let features = &features[(band.first_row + y) * width..];
        for (label, &feature) in band.row_mut(y).iter_mut().zip(features) {
            *label = if feature == OUTSIDE { NO_LABEL } else { *label };
        }
    }
}

/// A run of pixels in one row of one cell.
pub(crate) struct Piece<'a> {
    /// Row in the frame.
    pub row: usize,
    pub columns: Range<usize>,
    /// The grid, in temporal mode and if the row has samples: only these add to the residual.
    pub sampled: Option<&'a Grid>,
    /// Packed colors.
    pub features: &'a [u32],
}

impl Piece<'_> {
    /// Sums `least`, the least distances of the pixels in `columns`, over the samples among them.
    #[inline(always)]
    pub fn residual<T: Copy + Into<u64>>(&self, columns: Range<usize>, least: &[T]) -> u64 {
        let Some(grid) = self.sampled else { return 0 };
        let inside = |&x: &usize| self.features[x - self.columns.start] != OUTSIDE;
        grid.samples(&columns).filter(inside).map(|x| least[x - columns.start].into()).sum()
    }
}

/// Labels the pixels of a cell, piece by piece.
pub(crate) trait Labeler {
    /// Most columns of a piece, because the column part of the scores is kept from row to row.
    const COLUMNS: usize;

    /// Loads the candidates of a cell.
    fn cell(&mut self, gx: usize, gy: usize);
    /// Computes the column part of the scores.
    fn columns(&mut self, columns: Range<usize>);
    /// Labels a piece and returns its samples' part of the residual. `out` holds the predictions at first, if there are
    /// any.
    fn label(&mut self, piece: &Piece<'_>, out: &mut [u16]) -> u64;
}

/// Labels up to S rows of pixels, all of one row of cells, and returns the samples' part of the residual. Inlined into
/// functions of one instruction level, see [`by_level`](crate::cpu::level::by_level).
#[inline(always)]
pub(crate) fn label_cells<L: Labeler>(
    labeler: &mut L,
    grid: &Grid,
    band: &mut LabelBand<'_>,
    features: &[u32],
    state: Option<&State>,
) -> u64 {
    let width = grid.geometry.width as usize;
    let gy = (band.first_row / grid.step as usize).min(grid.ny as usize - 1);
    if let Some(state) = state {
        state.predict_band(gy, features, band);
    }
    let mut residual = 0;
    let cells = (0..band.rows()).step_by(ROWS).flat_map(|top| (0..grid.nx as usize).map(move |gx| (top, gx)));
    for (top, gx) in cells {
        labeler.cell(gx, gy);
        let cell = grid.columns(gx);
        for from in cell.clone().step_by(L::COLUMNS) {
            let columns = from..cell.end.min(from + L::COLUMNS);
            labeler.columns(columns.clone());
            for y in top..band.rows().min(top + ROWS) {
                let row = band.first_row + y;
                let sampled = state.and_then(|_| grid.samples(&(row..row + 1)).next()).map(|_| grid);
                let features = &features[row * width..][columns.clone()];
                let piece = Piece { row, columns: columns.clone(), sampled, features };
                residual += labeler.label(&piece, &mut band.row_mut(y)[columns.clone()]);
            }
        }
    }
    residual
}
