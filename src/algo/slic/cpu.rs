// SPDX-License-Identifier: MPL-2.0
//! SLIC on the CPU, the reference: the clusters and rounds that [`Clustering`] runs in `slic/seed`, `slic/carry`,
//! `slic/assign` and `slic/update`; `slic/label` is in `label.rs`.

// Lanes and channels run over several arrays at once; an iterator over one of them hides that.
#![allow(clippy::needless_range_loop)]

use super::Plan;
use super::label::label_band;
use super::score::{Candidates, Center, Pixels};
use crate::algo::AlgorithmPlan;
use crate::algo::clustering::cpu::{self as clustering, Clustering, Clusters, Stages, Sums as _};
use crate::algo::clustering::samples::{BAND, Samples, WIDE};
use crate::color::unpack;
use crate::cpu::chunk;
use crate::cpu::level::by_level;
use crate::cpu::memory::Array;
use crate::cpu::{Cpu, memory};
use crate::error::Result;
use crate::grid::{CANDIDATES, Grid};
use crate::image::LabelBand;
use crate::parallel::prelude::*;
use crate::plan;
use crate::temporal::Inertia;
use crate::temporal::predict::NO_CANDIDATE;
use crate::temporal::state::{ClusterSource, State};

/// SLIC's stages on the CPU.
pub(crate) type Slic = Clustering<Centers>;

type Band = clustering::Band<Centers>;

/// Sums over the members of one cluster.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sums {
    count: i64,
    color: [i64; 3],
    position: [i64; 2],
    /// Largest squared color distance of a member.
    spread: u32,
}

impl clustering::Sums for Sums {
    #[inline]
    fn add(&mut self, other: &Sums) {
        self.count += other.count;
        for i in 0..3 {
            self.color[i] += other.color[i];
        }
        for i in 0..2 {
            self.position[i] += other.position[i];
        }
        self.spread = self.spread.max(other.spread);
    }
}

impl Sums {
    /// The mean, rounded half up; a cluster without members keeps its center.
    fn center(&self, old: &Center) -> Center {
        if self.count == 0 {
            return *old;
        }
        let mean = |sum: i64| ((2 * sum + self.count) / (2 * self.count)) as i32;
        Center {
            color: self.color.map(mean),
            position: self.position.map(mean),
            spread: old.spread.max(self.spread),
        }
    }
}

/// The clusters as centers. Positions of samples are scaled, and relative to the cell's first pixel.
pub(crate) struct Centers {
    plan: Plan,
    /// Scaled position of each column relative to its cell's first pixel, padded so that whole vectors can be read.
    x: Array<i32>,
    centers: Array<Center>,
    /// Final centers of the last frame.
    last: Array<Center>,
}

impl Clusters for Centers {
    const STAGES: Stages = Stages {
        gather: None,
        seed: "slic/seed",
        carry: "slic/carry",
        assign: "slic/assign",
        update: "slic/update",
        label: "slic/label",
    };
    type Plan = Plan;
    type Position = i32;
    type Sums = Sums;

    fn new(plan: &plan::Plan, slic: &Plan) -> Result<Self> {
        let grid = plan.grid;
        let mut x = Array::new();
        memory::reserve(&mut x, "columns", grid.geometry.width as usize + WIDE)?;
        for gx in 0..grid.nx as usize {
            let columns = grid.columns(gx);
            x.extend(columns.clone().map(|i| slic.px[i] - slic.px[columns.start]));
        }
        let len = x.len() + WIDE;
        x.resize(len, 0);
        let last = if plan.temporal.is_some() { grid.cells() } else { 0 };
        Ok(Self {
            plan: slic.clone(),
            x,
            centers: memory::filled("clusters", grid.cells(), Center::default())?,
            last: memory::filled("last clusters", last, Center::default())?,
        })
    }

    fn own(plan: &AlgorithmPlan) -> Option<&Plan> {
        if let AlgorithmPlan::Slic(slic) = plan { Some(slic) } else { None }
    }

    fn iterations(&self) -> u32 {
        self.plan.iterations
    }

    fn samples(&self, plan: &plan::Plan) -> Result<Vec<Samples<i32>>> {
        let Plan { px, py, .. } = &self.plan;
        Samples::bands(
            &plan.grid,
            (plan.temporal.is_some(), plan.masked),
            |from, x| px[x] - px[from],
            |from, y| py[y] - py[from],
        )
    }

    fn seed(&mut self, cpu: &Cpu, grid: &Grid, features: &[u32]) {
        let Self { plan, centers, .. } = self;
        cpu.run(|| {
            let rows = centers.par_chunks_mut(grid.nx as usize).enumerate().with_min_len(BAND);
            rows.for_each(|(gy, row)| {
                for (gx, center) in row.iter_mut().enumerate() {
                    *center = plan.seed(grid, features, gx, gy);
                }
            });
        });
    }

    fn carry(&mut self, cpu: &Cpu, grid: &Grid, features: &[u32], state: &State) {
        std::mem::swap(&mut self.centers, &mut self.last);
        let Self { plan, centers, last, .. } = self;
        let nx = grid.nx as usize;
        cpu.run(|| {
            let rows = centers.par_chunks_mut(nx).zip(state.sources().par_chunks(nx));
            rows.enumerate().with_min_len(BAND).for_each(|(gy, (row, sources))| {
                for (gx, (center, source)) in row.iter_mut().zip(sources).enumerate() {
                    *center = match source {
                        Some(source) => plan.carry(last, source),
                        None => plan.seed(grid, features, gx, gy),
                    };
                }
            });
        });
    }

    fn assign_band(&self, grid: &Grid, band: &mut Band, inertia: Option<Inertia>) -> u64 {
        assign_band(band, grid, &self.plan, &self.centers, inertia)
    }

    fn update(&mut self, cpu: &Cpu, nx: usize, sums: impl Fn(usize, usize) -> Sums + Sync) {
        cpu.run(|| {
            self.centers.par_chunks_mut(nx).enumerate().with_min_len(BAND).for_each(|(gy, row)| {
                for (gx, center) in row.iter_mut().enumerate() {
                    *center = sums(gx, gy).center(center);
                }
            });
        });
    }

    fn label_band(
        &self,
        grid: &Grid,
        band: &mut LabelBand<'_>,
        features: &[u32],
        state: Option<&State>,
    ) -> u64 {
        label_band(band, grid, &self.plan, &self.x, &self.centers, features, state)
    }

    fn positions(&self, _: &Grid) -> impl Iterator<Item = [i32; 2]> {
        self.centers.iter().map(|center| center.position.map(|v| self.plan.rescale(v, false)))
    }

    fn take_over(&mut self, old: Self) {
        self.centers = old.centers;
        for center in &mut self.centers {
            (center.color, center.position) = self.plan.translate(&old.plan, center.color, center.position);
        }
    }
}

impl Plan {
    /// Center of a cell's seed.
    fn seed(&self, grid: &Grid, features: &[u32], gx: usize, gy: usize) -> Center {
        let (x, y) = grid.seed_inside(features, gx, gy);
        let feature = features[y * grid.geometry.width as usize + x];
        self.center(unpack(feature), [self.px[x], self.py[y]])
    }

    /// Center of a cluster of the last frame, moved by `shift`.
    fn carry(&self, last: &[Center], ClusterSource { slot, shift, reseeded }: &ClusterSource) -> Center {
        let mut center = match reseeded {
            Some((color, position)) => self.center(*color, position.map(|v| self.rescale(v, true))),
            None => Center { spread: self.first_spread(), ..last[*slot] },
        };
        for (position, &shift) in center.position.iter_mut().zip(shift) {
            *position += self.rescale(shift, true);
        }
        center
    }

    /// Center of a color and a scaled position, with the initial M_k.
    fn center(&self, color: [u32; 3], position: [i32; 2]) -> Center {
        Center { color: color.map(|v| (v >> self.color_shift) as i32), position, spread: self.first_spread() }
    }

    fn first_spread(&self) -> u32 {
        self.adaptive.map_or(0, |a| a.initial)
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
                    let predicted =
                        chunk::first::<_, WIDE>(&samples.predicted[start + at..][..real], NO_CANDIDATE);
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
                    sum.position[j] += i64::from(pixels.position[j][lane]);
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
                sum.position[j] += sum.count * i64::from(origin[j]);
            }
            band_sums[k as usize + nx - samples.first * nx].add(&sum);
        }
    }
    residual
}
