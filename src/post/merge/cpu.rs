// SPDX-License-Identifier: MPL-2.0
//! Stage `merge` on the CPU: sums and touching pairs of bands of rows in parallel, then union-find over labels.

use super::{Plan, RATIO_ONE};
use crate::backend::{Pass, Stage};
use crate::buffers::cpu::FrameBuffers;
use crate::cpu::memory::Array;
use crate::cpu::{Cpu, memory};
use crate::error::Result;
use crate::image::{Geometry, Labels, NO_LABEL};
use crate::parallel::prelude::*;
use crate::plan;
use crate::post::color_sums::BandSums;
use crate::post::connectivity::components::{Sums, distance, find, unite};
use crate::post::statistics::cpu::{add_equal_pairs, list_pairs};
use crate::temporal::merged::MergedSuperpixel;

/// Name of the regions in errors about memory.
const REGIONS: &str = "regions to merge";

/// Two regions that touch.
#[derive(Debug, Clone, Copy)]
struct Edge {
    ends: [u32; 2],
    /// What is added to their squared distance.
    price: u32,
}

/// The rows of one task: sums for the labels that occur in them, and the pairs that touch there.
#[derive(Default)]
struct Band {
    sums: BandSums,
    pairs: Array<u64>,
}

impl Band {
    fn measure(&mut self, features: &[u32], labels: &Labels<'_>, rows: std::ops::Range<usize>) -> Result<()> {
        self.sums.measure(features, labels, rows.clone())?;
        list_pairs(labels, rows, &mut self.pairs)
    }
}

pub(crate) struct Merge {
    cpu: Cpu,
    geometry: Geometry,
    plan: Plan,
    bands: Vec<Band>,
    /// Sums of each label. The arrays below have one entry per label or per touching pair.
    sums: Array<Sums>,
    means: Array<[u32; 3]>,
    nearest: Array<u32>,
    /// Pixels of each label before the first pass.
    sizes: Array<u32>,
    parents: Array<u32>,
    labels: Array<u16>,
    pairs: Array<u64>,
    edges: Array<Edge>,
}

impl Merge {
    pub fn new(cpu: &Cpu, plan: &plan::Plan, own: Plan) -> Result<Self> {
        let geometry = plan.frame.geometry;
        let bands = cpu.threads().min(geometry.height as usize);
        Ok(Self {
            cpu: cpu.clone(),
            geometry,
            plan: own,
            bands: (0..bands).map(|_| Band::default()).collect(),
            sums: Array::new(),
            means: Array::new(),
            nearest: Array::new(),
            sizes: Array::new(),
            parents: Array::new(),
            labels: Array::new(),
            pairs: Array::new(),
            edges: Array::new(),
        })
    }

    /// Measures the sums of all labels, and lists the touching pairs that may merge. `areas` has the area of each label in a prior, or
    /// nothing.
    fn measure(&mut self, features: &[u32], labels: &Labels<'_>, count: usize, areas: &[u32]) -> Result<()> {
        let height = self.geometry.height as usize;
        let rows = height.div_ceil(self.bands.len());
        let span = |i: usize| (i * rows).min(height)..((i + 1) * rows).min(height);
        let Self { cpu, bands, sums, pairs, edges, plan, .. } = self;
        cpu.run(|| {
            bands
                .par_iter_mut()
                .enumerate()
                .filter(|(i, _)| !span(*i).is_empty())
                .try_for_each(|(i, band)| band.measure(features, labels, span(i)))
        })?;
        memory::refill(sums, "sums", count, Sums::default())?;
        pairs.clear();
        for (_, band) in bands.iter().enumerate().filter(|(i, _)| !span(*i).is_empty()) {
            band.sums.add_to(sums);
            memory::append(pairs, "pairs of labels", &band.pairs)?;
        }
        add_equal_pairs(pairs);
        edges.clear();
        memory::reserve(edges, "pairs of labels", pairs.len())?;
        edges.extend(pairs.iter().filter_map(|pair| {
            let ends = [(pair >> 48) as u32, (pair >> 32) as u32 & 0xffff];
            let [a, b] = ends.map(|label| areas.get(label as usize));
            let price = if a == b { 0 } else { plan.price };
            (a == b || price > 0).then_some(Edge { ends, price })
        }));
        Ok(())
    }

    /// Applies the rule once. Returns true if any regions merged.
    fn pass(&mut self) -> Result<bool> {
        let Self { plan, sums, means, nearest, parents, edges, .. } = self;
        means.clear();
        memory::reserve(means, REGIONS, sums.len())?;
        means.extend(sums.iter().map(Sums::mean));
        memory::refill(nearest, REGIONS, sums.len(), u32::MAX)?;
        let apart = |edge: &Edge| {
            let [a, b] = edge.ends.map(|label| means[label as usize]);
            distance(a, b).saturating_add(edge.price)
        };
        for edge in &*edges {
            let d = apart(edge);
            for c in edge.ends {
                nearest[c as usize] = nearest[c as usize].min(d);
            }
        }
        for edge in &*edges {
            let d = apart(edge);
            let near =
                |c: u32| RATIO_ONE * u64::from(d) <= u64::from(plan.ratio) * u64::from(nearest[c as usize]);
            let sides: u32 = edge.ends.map(|label| u32::from(near(label))).iter().sum();
            if sides > u32::from(plan.mutual) && d <= plan.limit {
                unite(parents, edge.ends[0], edge.ends[1]);
            }
        }
        for i in 0..parents.len() {
            let root = parents[parents[i] as usize];
            parents[i] = root;
            if root as usize != i {
                let moved = std::mem::take(&mut sums[i]);
                sums[root as usize].add(&moved);
            }
        }
        let before = edges.len();
        edges.retain_mut(|edge| {
            edge.ends = edge.ends.map(|label| parents[label as usize]);
            edge.ends[0] != edge.ends[1]
        });
        Ok(edges.len() < before)
    }

    /// Numbers the roots by ascending label. Returns how many there are.
    fn number(&mut self) -> u32 {
        let Self { parents, labels, .. } = self;
        labels.clear();
        let mut next = 0;
        for i in 0..parents.len() as u32 {
            let root = find(parents, i);
            if root == i {
                labels.push(next as u16);
                next += 1;
            } else {
                let label = labels[root as usize];
                labels.push(label);
            }
        }
        next
    }
}

impl Stage<Cpu> for Merge {
    fn run(&mut self, _: Pass, buffers: &mut FrameBuffers, labels: &mut Labels<'_>) -> Result<()> {
        self.measure(&buffers.features, labels, buffers.count as usize, &buffers.areas)?;
        self.sizes.clear();
        memory::reserve(&mut self.sizes, REGIONS, self.sums.len())?;
        self.sizes.extend(self.sums.iter().map(|sums| sums.count));
        self.parents.clear();
        memory::reserve(&mut self.parents, REGIONS, buffers.count as usize)?;
        self.labels.clear();
        memory::reserve(&mut self.labels, REGIONS, buffers.count as usize)?;
        self.parents.extend(0..buffers.count);
        // A pass that merged nothing has left the same input for the next.
        for _ in 0..self.plan.passes {
            if !self.pass()? {
                break;
            }
        }
        buffers.clear_sums();
        buffers.count = self.number();
        buffers.relabel_areas(&self.labels);
        let rows = (self.geometry.height as usize).div_ceil(self.bands.len());
        let Self { cpu, labels: numbers, .. } = &*self;
        cpu.run(|| {
            labels.bands_mut(rows).for_each(|mut band| {
                for y in 0..band.rows() {
                    for label in band.row_mut(y) {
                        *label = numbers.get(usize::from(*label)).copied().unwrap_or(NO_LABEL);
                    }
                }
            });
        });
        if let Some(state) = &mut buffers.temporal
            && let Some(merged) = &mut state.merged
        {
            let parts =
                numbers.iter().zip(&self.sizes).map(|(&label, &size)| MergedSuperpixel { label, size });
            merged.name(&state.tracks, parts, buffers.count as usize)?;
        }
        Ok(())
    }
}
