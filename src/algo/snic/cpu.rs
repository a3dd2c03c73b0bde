// SPDX-License-Identifier: MPL-2.0
//! Stage `snic/grow` on the CPU: one priority queue, on one thread, since each pixel depends on all before it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Plan;
use crate::algo::AlgorithmPlan;
use crate::backend::{Segmenter, StageTimes};
use crate::buffers::cpu::FrameBuffers;
use crate::color::{OUTSIDE, unpack};
use crate::cpu::Cpu;
use crate::cpu::memory::{self, Array};
use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::image::{Labels, NO_LABEL};

/// Label of a pixel that no cluster has: no cell has this number. Pixels outside of a mask keep it.
const FREE: u16 = NO_LABEL;
/// The queue's name in errors about memory.
const QUEUE: &str = "pixels in the queue";

/// A pixel that may join a cluster. Ordered by its fields in turn; the least is taken first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Offer {
    distance: u64,
    /// Row in the upper half, column in the lower: raster order.
    pixel: u32,
    cluster: u16,
}

/// Members of a cluster: their number, and the sums of their colors and scaled positions.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    count: u64,
    values: [u64; 5],
}

impl Sums {
    /// Adds a member and returns the new means in 1/16, rounded half up.
    fn add(&mut self, values: [u32; 5]) -> [u32; 5] {
        self.count += 1;
        for (sum, value) in self.values.iter_mut().zip(values) {
            *sum += u64::from(value);
        }
        self.values.map(|sum| ((32 * sum + self.count) / (2 * self.count)) as u32)
    }
}

/// Squared distance of a pixel from means in 1/16.
fn distance(values: [u32; 5], means: [u32; 5]) -> u64 {
    values.into_iter().zip(means).map(|(value, mean)| u64::from((16 * value).abs_diff(mean)).pow(2)).sum()
}

pub(crate) struct Snic {
    grid: Grid,
    plan: Plan,
    /// True if frames may have masks.
    masked: bool,
    sums: Array<Sums>,
    queue: BinaryHeap<Reverse<Offer>>,
}

impl Snic {
    pub fn new(_: &Cpu, plan: &crate::plan::Plan, snic: &Plan) -> Result<Self> {
        Ok(Self {
            grid: plan.grid,
            plan: snic.clone(),
            masked: plan.masked,
            sums: memory::filled("clusters", plan.grid.cells(), Sums::default())?,
            queue: BinaryHeap::new(),
        })
    }

    fn grow(&mut self, features: &[u32], labels: &mut Labels<'_>) -> Result<()> {
        let Self { grid, plan, masked, sums, queue } = self;
        let (width, height) = (grid.geometry.width as usize, grid.geometry.height as usize);
        let values = |x: usize, y: usize| {
            let [a, b, c] = unpack(features[y * width + x]);
            [a, b, c, plan.px[x], plan.py[y]]
        };
        (0..height).for_each(|y| labels.row_mut(y).fill(FREE));
        sums.fill(Sums::default());
        queue.clear();
        reserve(queue, grid.cells())?;
        for cluster in 0..grid.cells() {
            let (x, y) = grid.seed_inside(features, cluster % grid.nx as usize, cluster / grid.nx as usize);
            if features[y * width + x] == OUTSIDE {
                continue;
            }
            queue.push(Reverse(Offer { distance: 0, pixel: position(x, y), cluster: cluster as u16 }));
        }
        while let Some(Reverse(Offer { pixel, cluster, .. })) = queue.pop() {
            let (x, y) = ((pixel & 0xffff) as usize, (pixel >> 16) as usize);
            let label = &mut labels.row_mut(y)[x];
            if *label != FREE {
                continue;
            }
            *label = cluster;
            let means = sums[usize::from(cluster)].add(values(x, y));
            reserve(queue, 4)?;
            let mut offer = |x: usize, y: usize| {
                if labels.row(y)[x] == FREE && features[y * width + x] != OUTSIDE {
                    let distance = distance(values(x, y), means);
                    queue.push(Reverse(Offer { distance, pixel: position(x, y), cluster }));
                }
            };
            if x > 0 {
                offer(x - 1, y);
            }
            if x + 1 < width {
                offer(x + 1, y);
            }
            if y > 0 {
                offer(x, y - 1);
            }
            if y + 1 < height {
                offer(x, y + 1);
            }
        }
        if *masked {
            assign_rest(grid, features, labels);
        }
        Ok(())
    }
}

/// Assigns pixels inside of a mask that no seed has reached to the clusters of their cells.
fn assign_rest(grid: &Grid, features: &[u32], labels: &mut Labels<'_>) {
    let width = grid.geometry.width as usize;
    for gy in 0..grid.ny as usize {
        for y in grid.rows(gy) {
            for gx in 0..grid.nx as usize {
                let columns = grid.columns(gx);
                let features = &features[y * width..][columns.clone()];
                for (label, &feature) in labels.row_mut(y)[columns].iter_mut().zip(features) {
                    if *label == FREE && feature != OUTSIDE {
                        *label = (gy * grid.nx as usize + gx) as u16;
                    }
                }
            }
        }
    }
}

fn position(x: usize, y: usize) -> u32 {
    (y << 16 | x) as u32
}

/// Reserves memory for `more` offers.
fn reserve(queue: &mut BinaryHeap<Reverse<Offer>>, more: usize) -> Result<()> {
    if queue.capacity() - queue.len() >= more {
        return Ok(());
    }
    queue.try_reserve(more).map_err(|_| Error::Memory {
        what: QUEUE,
        bytes: queue.len().saturating_add(more).saturating_mul(size_of::<Offer>()),
    })
}

impl Segmenter<Cpu> for Snic {
    fn change(&mut self, plan: &crate::plan::Plan, _: &mut FrameBuffers) -> Result<()> {
        if let AlgorithmPlan::Snic(own) = &plan.algorithm {
            self.plan = own.clone();
        }
        Ok(())
    }

    fn segment(
        &mut self,
        buffers: &mut FrameBuffers,
        labels: &mut Labels<'_>,
        times: &mut StageTimes,
    ) -> Result<()> {
        times.time("snic/grow", || self.grow(&buffers.features, labels))
    }
}
