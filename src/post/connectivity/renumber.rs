// SPDX-License-Identifier: MPL-2.0
//! Stage `connectivity` on the CPU where the plan switches it off: labels only become dense.

use super::MAX_REGIONS;
use crate::backend;
use crate::buffers::cpu::FrameBuffers;
use crate::cpu::Cpu;
use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::image::{Geometry, Labels, NO_LABEL};
use crate::parallel::prelude::*;
use crate::plan::Plan;
use crate::temporal::state::Largest;

/// Rows per task.
const STRIP: usize = 32;

/// Labels in order of their clusters.
pub(crate) struct Renumber {
    cpu: Cpu,
    geometry: Geometry,
    clusters: usize,
    used: Vec<Array<bool>>,
    numbers: Array<u16>,
}

impl Renumber {
    pub fn new(cpu: &Cpu, plan: &Plan) -> Result<Self> {
        let clusters = plan.max_clusters();
        let flags = || memory::zeroed("labels in use", clusters);
        Ok(Self {
            cpu: cpu.clone(),
            geometry: plan.frame.geometry,
            clusters,
            used: (0..cpu.threads()).map(|_| flags()).collect::<Result<_>>()?,
            numbers: memory::zeroed("labels", clusters)?,
        })
    }
}

impl backend::Connectivity<Cpu> for Renumber {
    fn enforce(&mut self, buffers: &mut FrameBuffers, labels: &mut Labels<'_>) -> Result<()> {
        let Self { cpu, used, numbers, .. } = self;
        let rows = (self.geometry.height as usize).div_ceil(used.len());
        cpu.run(|| {
            used.par_iter_mut().zip(labels.bands_mut(rows)).for_each(|(used, mut band)| {
                used.fill(false);
                for y in 0..band.rows() {
                    for &label in band.row_mut(y).iter() {
                        // Pixels outside of a mask have no label.
                        if let Some(used) = used.get_mut(usize::from(label)) {
                            *used = true;
                        }
                    }
                }
            });
        });
        // A frame with fewer rows than threads leaves bands unused. Their flags may be from an earlier frame.
        let bands = (self.geometry.height as usize).div_ceil(rows);
        let mut count = 0;
        let mut largest = buffers.temporal.as_mut().map(|state| &mut state.largest);
        if let Some(largest) = &mut largest {
            memory::refill(largest, "components", self.clusters, Largest::default())?;
        }
        for k in 0..self.clusters {
            numbers[k] = count as u16;
            let used = used[..bands].iter().any(|used| used[k]);
            if let (Some(largest), true) = (&mut largest, used) {
                largest[k] = Largest { size: 1, label: count };
            }
            count += u32::from(used);
        }
        let numbers = &*numbers;
        cpu.run(|| {
            labels.bands_mut(rows).for_each(|mut band| {
                for y in 0..band.rows() {
                    for label in band.row_mut(y) {
                        *label = numbers.get(usize::from(*label)).copied().unwrap_or(NO_LABEL);
                    }
                }
            });
        });
        buffers.count = count;
        Ok(())
    }
}

/// Numbers clusters that are named by one of their pixels, in raster order of these. Clusters past the last label share
/// it.
pub(crate) struct RenumberPixels {
    cpu: Cpu,
    geometry: Geometry,
    /// Label of a cluster, at the pixel that names it.
    numbers: Array<u16>,
}

impl RenumberPixels {
    pub fn new(cpu: &Cpu, plan: &Plan) -> Result<Self> {
        let geometry = plan.frame.geometry;
        Ok(Self {
            cpu: cpu.clone(),
            geometry,
            numbers: memory::zeroed("labels of clusters", geometry.pixels())?,
        })
    }
}

impl backend::Connectivity<Cpu> for RenumberPixels {
    fn enforce(&mut self, buffers: &mut FrameBuffers, labels: &mut Labels<'_>) -> Result<()> {
        let Self { cpu, numbers, geometry } = self;
        let (clusters, width) = (&buffers.clusters, geometry.width as usize);
        let mut count = 0;
        for (i, (number, &cluster)) in numbers.iter_mut().zip(clusters).enumerate() {
            if cluster as usize == i {
                *number = count.min(MAX_REGIONS - 1) as u16;
                count += 1;
            }
        }
        let numbers = &*numbers;
        cpu.run(|| {
            labels.bands_mut(STRIP).for_each(|mut band| {
                for y in 0..band.rows() {
                    let clusters = &clusters[(band.first_row + y) * width..][..width];
                    for (label, &cluster) in band.row_mut(y).iter_mut().zip(clusters) {
                        *label = numbers.get(cluster as usize).copied().unwrap_or(NO_LABEL);
                    }
                }
            });
        });
        buffers.count = count.min(MAX_REGIONS) as u32;
        Ok(())
    }
}
