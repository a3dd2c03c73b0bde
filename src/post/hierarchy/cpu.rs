// SPDX-License-Identifier: MPL-2.0
//! Stage `hierarchy` on the CPU: bands of rows list touching pairs in parallel, then rounds merge regions and pairs.
//! The sums of regions are inputs, and the region table reuses those of merged regions.

use super::Plan as Own;
use super::bands::{AHEAD, Band};
use super::graph::{Graph, Sums};
use super::passes::Passes;
use crate::backend::{Pass, Stage, Work};
use crate::buffers::cpu::{FrameBuffers, RegionSums};
use crate::cpu::memory::Array;
use crate::cpu::{Cpu, memory};
use crate::error::Result;
use crate::image::{Geometry, Labels, NO_LABEL};
use crate::parallel::{self, prelude::*};
use crate::params::Outputs;
use crate::plan::Plan;
use crate::temporal::merged::MergedSuperpixel;

/// Name of the regions in errors about memory.
const REGIONS: &str = "regions to merge";
/// Entries of a map from old to new labels, in which [`NO_LABEL`] stays itself.
const NAMES: usize = NO_LABEL as usize + 1;
/// Bands per thread, where there are several threads: if one thread is late, another takes its second band.
const BANDS: usize = 2;
/// Fewest rows of a band.
const LEAST_ROWS: usize = 16;

pub(crate) struct Hierarchy {
    cpu: Cpu,
    geometry: Geometry,
    passes: Passes,
    /// The plan before stage `refine`, or without it.
    own: Own,
    /// The plan behind stage `refine`.
    refined: Own,
    /// Rows of a band; the last one may have fewer.
    rows: usize,
    bands: Vec<Band>,
    graph: Graph,
    /// The region of each superpixel.
    labels: Array<u16>,
    /// The region of every possible label.
    names: Array<u16>,
}

impl Hierarchy {
    pub fn new(cpu: &Cpu, plan: &Plan, own: Own) -> Result<Self> {
        let geometry = plan.frame.geometry;
        let (height, threads) = (geometry.height as usize, cpu.threads());
        let bands = if threads == 1 { 1 } else { BANDS * threads };
        let rows = height.div_ceil(bands).max(LEAST_ROWS);
        Ok(Self {
            cpu: cpu.clone(),
            geometry,
            passes: Passes::new(plan),
            own: Own { levels: own.levels && !plan.lists_refined(), ..own },
            refined: Own { regions: 0, ..own },
            rows,
            bands: memory::collected(
                "bands of rows",
                (0..height.div_ceil(rows)).map(|_| Band::new(rows * geometry.width as usize)),
            )?,
            graph: Graph::default(),
            labels: Array::new(),
            names: Array::new(),
        })
    }

    /// Lists the pairs of labels that touch, and starts the graph with one region per superpixel.
    fn measure(&mut self, buffers: &FrameBuffers, labels: &Labels<'_>) -> Result<()> {
        let price = self.own.price;
        let FrameBuffers { features, sums, areas, .. } = buffers;
        let Self { cpu, geometry, rows, bands, graph, .. } = self;
        let (height, rows) = (geometry.height as usize, *rows);
        let superpixels =
            sums.iter().map(|sums| Sums { count: sums.area, color: sums.color, position: sums.position });
        let several = cpu.threads() > 1;
        let measure = |(i, band): (usize, &mut Band)| {
            band.pieces.several = several;
            band.measure(features, labels, i * rows..((i + 1) * rows).min(height))
        };
        let (begun, measured) = cpu.run(|| {
            parallel::join(
                || graph.begin(superpixels),
                || bands.par_iter_mut().enumerate().try_for_each(measure),
            )
        });
        begun.and(measured)?;
        graph.set_pairs(bands.iter().map(|band| &band.pieces), areas, price, several)
    }

    fn write_labels(&mut self, labels: &mut Labels<'_>) -> Result<()> {
        let Self { cpu, geometry, labels: numbers, names, rows, .. } = self;
        if geometry.pixels() < NAMES {
            // To fill the map takes longer than to check each label.
            for y in 0..geometry.height as usize {
                let row = labels.row_mut(y);
                row.iter_mut()
                    .for_each(|label| *label = *numbers.get(usize::from(*label)).unwrap_or(&NO_LABEL));
            }
            return Ok(());
        }
        memory::resize(names, REGIONS, NAMES, NO_LABEL)?;
        let Some(names) = names.first_chunk_mut::<NAMES>() else { return Ok(()) };
        // No superpixel has [`NO_LABEL`], the last entry.
        names[..numbers.len()].copy_from_slice(numbers);
        let names = &*names;
        cpu.run(|| {
            labels.bands_mut(*rows).for_each(|mut band| {
                let rows = band.rows();
                for y in 0..rows {
                    memory::prefetch(band.row_mut((y + AHEAD).min(rows - 1)));
                    // A plain loop over pixels is faster than one over runs, and than a gather of AVX-512.
                    band.row_mut(y).iter_mut().for_each(|label| *label = names[usize::from(*label)]);
                }
            });
        });
        Ok(())
    }
}

/// Adds up the sums of superpixels that became one region. Regions are numbered in the order of their lowest
/// superpixel, so no sum is overwritten before it is read.
fn add_parts(sums: &mut Array<RegionSums>, numbers: &[u16], count: usize) {
    let mut next = 0;
    for (part, &number) in numbers.iter().enumerate() {
        let (number, part) = (usize::from(number), sums[part]);
        if number == next {
            sums[number] = part;
            next += 1;
        } else {
            sums[number].add(&part);
        }
    }
    sums.truncate(count);
}

impl Hierarchy {
    /// Merges and, unless boundaries are refined, lists what would be merged next.
    fn build(&mut self, buffers: &mut FrameBuffers, labels: &mut Labels<'_>) -> Result<()> {
        let is_merged = (self.own.regions as usize) < buffers.count as usize;
        if !is_merged && !self.own.levels && buffers.temporal.is_none() {
            buffers.merges.clear();
            return Ok(());
        }
        self.measure(buffers, labels)?;
        let Self { graph, own: plan, labels: numbers, .. } = self;
        // Predecessors are labels of superpixels; after stage `merge` the regions here are no superpixels.
        if plan.regions > 0
            && let Some(state) = &buffers.temporal
            && let Some(merged) = &state.merged
        {
            graph.hold(|label| merged.earlier(&state.tracks[label as usize]));
        }
        graph.merge(plan)?;
        let wanted = if plan.regions > 0 { plan.regions as usize } else { usize::MAX };
        buffers.count = graph.cut(wanted, plan.crosses, numbers)? as u32;
        buffers.merges.clear();
        if plan.levels {
            graph.list_merges(wanted, plan.crosses, numbers, &mut buffers.merges)?;
        }
        if plan.regions == 0 {
            return Ok(());
        }
        if let Some(state) = &mut buffers.temporal
            && let Some(merged) = &mut state.merged
        {
            let parts = numbers.iter().zip(&buffers.sums);
            let parts = parts.map(|(&label, sums)| MergedSuperpixel { label, size: sums.area });
            merged.name(&state.tracks, parts, buffers.count as usize)?;
        }
        add_parts(&mut buffers.sums, numbers, buffers.count as usize);
        buffers.relabel_areas(numbers);
        self.write_labels(labels)
    }

    /// Lists the merges of the refined regions; labels stay.
    fn list(&mut self, buffers: &mut FrameBuffers, labels: &mut Labels<'_>) -> Result<()> {
        self.measure(buffers, labels)?;
        let Self { graph, refined, labels: numbers, .. } = self;
        graph.merge(refined)?;
        graph.cut(usize::MAX, true, numbers)?;
        graph.list_merges(usize::MAX, true, numbers, &mut buffers.merges)
    }
}

impl Stage<Cpu> for Hierarchy {
    fn work(&self, pass: Pass, outputs: Outputs) -> Option<Work> {
        self.passes.work(pass, outputs)
    }

    fn run(&mut self, pass: Pass, buffers: &mut FrameBuffers, labels: &mut Labels<'_>) -> Result<()> {
        match pass {
            Pass::Labels => self.build(buffers, labels),
            Pass::Lists => self.list(buffers, labels),
        }
    }
}
