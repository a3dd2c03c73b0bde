// SPDX-License-Identifier: MPL-2.0
//! Stage `connectivity` with labels of 32 bits, on the CPU: the same components and rounds, and names for any number of regions, so
//! that the smallest region is never doubled.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::components::COMPONENTS;
use super::cpu::Connectivity;
use super::shared::OUTSIDE;
use crate::buffers::cpu::{FrameBuffers, NO_CLUSTER};
use crate::cpu::Cpu;
use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::parallel::prelude::*;
use crate::plan::Plan;

/// Rows per task where clusters are only numbered.
const ROWS: usize = 32;

/// From clusters, named by numbers of 32 bits, to regions.
pub(crate) struct Regions {
    width: usize,
    /// Cells of the grid.
    cells: usize,
    /// What makes them connected, unless the plan switches that off.
    connectivity: Option<Connectivity>,
    /// Label of each component, or of each cluster.
    numbers: Array<u32>,
    /// Clusters that have a pixel.
    used: Array<AtomicBool>,
}

impl Regions {
    pub fn new(cpu: &Cpu, plan: &Plan) -> Result<Self> {
        let connectivity = || {
            let mut own = Connectivity::new(cpu, plan)?;
            own.outside = plan.masked.then_some(NO_CLUSTER);
            Ok(own)
        };
        Ok(Self {
            width: plan.frame.geometry.width as usize,
            cells: plan.grid.cells(),
            connectivity: plan.connectivity.then(connectivity).transpose()?,
            numbers: Array::new(),
            used: Array::new(),
        })
    }

    /// Writes the label of each pixel, `NO_CLUSTER` outside of a mask, into rows of `stride` labels. `clusters` have rows without
    /// padding. Returns the number of labels. Runs inside of the pool.
    pub fn find(
        &mut self,
        clusters: &[u32],
        colors: &FrameBuffers,
        labels: &mut [u32],
        stride: usize,
    ) -> Result<u32> {
        let Self { width, numbers, connectivity, .. } = self;
        let Some(own) = connectivity else { return self.number_clusters(clusters, labels, stride) };
        own.find_components(|y| &clusters[y * *width..][..*width], &colors.prior, &colors.features)?;
        if own.min_region > 1 {
            own.absorb(own.min_region)?;
        }
        let count = number(own, numbers)?;
        let (numbers, width, rows) = (&numbers[..], *width, own.rows);
        labels.par_chunks_mut(stride.saturating_mul(rows)).zip(&own.strips).for_each(|(band, strip)| {
            for (y, row) in band.chunks_mut(stride).enumerate() {
                let runs = strip.runs(y);
                let starts = strip.starts[runs.clone()].iter().map(|&start| usize::from(start));
                let ends = starts.clone().skip(1).chain([width]);
                for ((start, end), &component) in starts.zip(ends).zip(&strip.components[runs]) {
                    row[start..end].fill(numbers[(strip.offset + component) as usize]);
                }
            }
        });
        Ok(count)
    }

    /// Numbers the clusters in their order, those without a pixel left out.
    fn number_clusters(&mut self, clusters: &[u32], labels: &mut [u32], stride: usize) -> Result<u32> {
        let Self { width, cells, numbers, used, .. } = self;
        let width = *width;
        used.clear();
        memory::reserve(used, "labels in use", *cells)?;
        used.extend((0..*cells).map(|_| AtomicBool::new(false)));
        let flags = &used[..];
        clusters.par_chunks(width * ROWS).for_each(|rows| {
            let mut last = NO_CLUSTER;
            for &cluster in rows {
                // Most pixels have the cluster of the one before.
                if cluster != last
                    && let Some(flag) = flags.get(cluster as usize)
                {
                    flag.store(true, Relaxed);
                }
                last = cluster;
            }
        });
        memory::refill(numbers, "labels", *cells, NO_CLUSTER)?;
        let mut count = 0;
        for (number, _) in numbers.iter_mut().zip(flags).filter(|(_, used)| used.load(Relaxed)) {
            *number = count;
            count += 1;
        }
        let numbers = &numbers[..];
        labels.par_chunks_mut(stride).zip(clusters.par_chunks(width)).for_each(|(row, clusters)| {
            for (label, &cluster) in row.iter_mut().zip(clusters) {
                *label = numbers.get(cluster as usize).copied().unwrap_or(NO_CLUSTER);
            }
        });
        Ok(count)
    }
}

/// Numbers the regions in raster order of their roots, which come before all that joined them.
fn number(own: &mut Connectivity, numbers: &mut Array<u32>) -> Result<u32> {
    let all = &mut own.components;
    all.alone = true;
    numbers.clear();
    memory::reserve(numbers, COMPONENTS, all.len())?;
    let (mut count, masked) = (0, own.outside.is_some());
    for i in 0..all.len() as u32 {
        let root = all.point_at_root(i);
        let label = match root == i {
            false => numbers[root as usize],
            true if masked && all.size(i) == OUTSIDE => NO_CLUSTER,
            true => {
                count += 1;
                count - 1
            }
        };
        numbers.push(label);
    }
    Ok(count)
}
