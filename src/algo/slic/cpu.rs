// SPDX-License-Identifier: MPL-2.0
//! SLIC on the CPU: the reference. Stages `slic/seed`, `slic/carry`, `slic/assign`, `slic/update`; `slic/label` is in `label.rs`.
//!
//! Cell rows are worked on in bands of fixed height, whatever the number of threads. The samples that rounds visit are
//! gathered once, see [`Samples`].

// Lanes and channels run over several arrays at once; an iterator over one of them hides that.
#![allow(clippy::needless_range_loop)]

use rayon::prelude::*;

use super::Plan;
use super::label::label_band;
use super::score::{Candidates, Center, Pixels};
use crate::algo::AlgorithmPlan;
use crate::algo::grid::Grid;
use crate::algo::samples::{BAND, CANDIDATES, Samples, WIDE};
use crate::backend::{Segmenter, StageTimes};
use crate::buffers::cpu::Work;
use crate::color::unpack;
use crate::cpu::level::by_level;
use crate::cpu::memory::Array;
use crate::cpu::{Cpu, memory};
use crate::error::Result;
use crate::image::Labels;
use crate::temporal::look_back::NO_CANDIDATE;
use crate::temporal::state::{Source, State};
use crate::temporal::{Inertia, WARM_ROUNDS};

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
    sums: Array<Sums>,
}

pub(crate) struct Slic {
    cpu: Cpu,
    grid: Grid,
    plan: Plan,
    /// Scaled position of each column relative to its cell's first pixel, and some more.
    x: Array<i32>,
    centers: Array<Center>,
    /// Those of the last frame.
    last: Array<Center>,
    bands: Vec<Band>,
}

impl Slic {
    pub fn new(cpu: &Cpu, plan: &crate::plan::Plan, slic: &Plan) -> Result<Self> {
        let grid = plan.grid;
        let nx = grid.nx as usize;
        let mut x = Array::new();
        memory::reserve(&mut x, "columns", grid.geometry.width as usize + WIDE)?;
        for gx in 0..nx {
            let columns = grid.columns(gx);
            x.extend(columns.clone().map(|i| slic.px[i] - slic.px[columns.start]));
        }
        let len = x.len() + WIDE;
        x.resize(len, 0);
        let samples = Samples::bands(
            &grid,
            plan.temporal.is_some(),
            |from, x| slic.px[x] - slic.px[from],
            |from, y| slic.py[y] - slic.py[from],
        )?;
        Ok(Self {
            cpu: cpu.clone(),
            grid,
            plan: slic.clone(),
            x,
            centers: memory::filled("clusters", grid.cells(), Center::default())?,
            last: memory::filled(
                "last clusters",
                if plan.temporal.is_some() { grid.cells() } else { 0 },
                Center::default(),
            )?,
            bands: samples
                .into_iter()
                .map(|samples| {
                    let sums = memory::filled("sums", (samples.rows + 2) * nx, Sums::default())?;
                    Ok(Band { sums, samples })
                })
                .collect::<Result<_>>()?,
        })
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
        cpu.run(|| bands.map(|mut band| label_band(&mut band, grid, plan, x, centers, features, state)).sum())
    }
}

impl Segmenter<Cpu> for Slic {
    fn segment(&mut self, work: &mut Work, labels: &mut Labels<'_>, times: &mut StageTimes) -> Result<()> {
        let Work { features, temporal, .. } = work;
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

    fn change(&mut self, plan: &crate::plan::Plan, _: &mut Work) -> Result<()> {
        if let AlgorithmPlan::Slic(slic) = &plan.algorithm {
            let new = Self::new(&self.cpu, plan, slic)?;
            let mut centers = std::mem::take(&mut self.centers);
            for center in &mut centers {
                (center.color, center.place) = slic.translate(&self.plan, center.color, center.place);
            }
            *self = Self { centers, ..new };
        }
        Ok(())
    }
}

by_level! {
    fn assign_band(
        band: &mut Band,
        grid: &Grid,
        plan: &Plan,
        centers: &[Center],
        inertia: Option<Inertia>,
    ) -> u64 = slic_assign_band_body
}

#[inline(always)]
fn slic_assign_band_body(
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
    let mut candidates = Candidates::NONE;
    for (cell, &(start, len)) in samples.cells.iter().enumerate() {
        let (gx, gy) = (cell % nx, samples.first + cell / nx);
        candidates.set(grid, plan, centers, gx, gy);
        let mut sums = [Sums::default(); CANDIDATES];
        for at in (0..len).step_by(WIDE) {
            let range = start + at..start + at + WIDE;
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
                    let real = (len - at).min(WIDE);
                    let mut predicted = [NO_CANDIDATE; WIDE];
                    predicted[..real].copy_from_slice(&samples.predicted[start + at..][..real]);
                    let (index, least) = match adaptive {
                        None => pixels.nearest_predicted(&candidates, inertia, &predicted),
                        Some(adaptive) => {
                            pixels.nearest_predicted_adaptive(&candidates, adaptive, inertia, &predicted)
                        }
                    };
                    residual += least[..real].iter().sum::<u64>();
                    index
                }
                (None, None) => pixels.nearest(&candidates),
                (Some(adaptive), None) => pixels.nearest_adaptive(&candidates, adaptive),
            };
            for lane in 0..(len - at).min(WIDE) {
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
