// SPDX-License-Identifier: MPL-2.0
//! Stage `connectivity` on the CPU: components of strips of rows are united over the whole frame, and small ones absorbed.

use std::ops::Range;

use rayon::prelude::*;

use super::components::{COMPONENTS, EDGES, Sums, distance, find, unite};
use super::strip::{Roots, Strip, StripBorder, overlaps};
use super::{MAX_REGIONS, cost};
use crate::backend;
use crate::buffers::cpu::{FrameBuffers, NO_CLUSTER};
use crate::cpu::memory::Array;
use crate::cpu::{Cpu, memory};
use crate::error::Result;
use crate::image::{Geometry, Labels, NO_LABEL};
use crate::plan::Plan;
use crate::temporal::state::Largest;

/// Rows that one task works on.
const STRIP: usize = 32;
/// Size of a component that is outside; no other is so large.
const OUTSIDE: u32 = u32::MAX;

/// Writes the label of a run, and at will over the runs behind it, which come next: most are short, and one store does.
#[inline(always)]
fn write_run(row: &mut [u16], columns: Range<usize>, label: u16) {
    const PIECE: usize = 8;
    for x in columns.clone().step_by(PIECE) {
        match row[x..].first_chunk_mut() {
            Some(piece) => *piece = [label; PIECE],
            None => row[x..columns.end].fill(label),
        }
    }
}

pub(crate) struct Connectivity {
    cpu: Cpu,
    geometry: Geometry,
    clusters: usize,
    min_region: u32,
    /// Whether there may be more of the smallest regions than labels can name.
    may_overflow: bool,
    /// The cluster of what is outside, where frames may have masks.
    outside: Option<u32>,
    strips: Vec<Strip>,
    borders: Vec<StripBorder>,
    /// Union-find over the components of all strips; ids are in raster order of first pixels.
    parents: Array<u32>,
    sums: Array<Sums>,
    /// As far as they have been asked for; an edge asks for two, and divisions take long.
    means: Array<Option<[u32; 3]>>,
    selected: Array<u64>,
    edges: Array<(u32, u32)>,
    small: Array<u32>,
    labels: Array<u16>,
}

impl Connectivity {
    pub fn new(cpu: &Cpu, plan: &Plan) -> Self {
        let strips = (plan.frame.geometry.height as usize).div_ceil(STRIP);
        Self {
            cpu: cpu.clone(),
            geometry: plan.frame.geometry,
            clusters: plan.max_clusters(),
            min_region: plan.min_region,
            may_overflow: plan.may_overflow(),
            outside: plan.masked.then_some(if plan.clusters_are_pixels() {
                NO_CLUSTER
            } else {
                u32::from(NO_LABEL)
            }),
            strips: (0..strips).map(|_| Strip::default()).collect(),
            borders: (0..strips).map(|_| StripBorder::default()).collect(),
            parents: Array::new(),
            sums: Array::new(),
            means: Array::new(),
            selected: Array::new(),
            edges: Array::new(),
            small: Array::new(),
            labels: Array::new(),
        }
    }

    /// Components of the whole frame, from a plane of clusters of either width.
    fn find_components<'r, T: Copy + PartialEq + Into<u32> + 'r>(
        &mut self,
        cluster_row: impl Fn(usize) -> &'r [T] + Sync,
        features: &[u32],
    ) -> Result<()> {
        let (cpu, height) = (self.cpu.clone(), self.geometry.height as usize);
        let strips = &mut self.strips;
        cpu.run(|| {
            strips.par_iter_mut().enumerate().try_for_each(|(i, strip)| {
                strip.scan(&cluster_row, features, i * STRIP, STRIP.min(height - i * STRIP))
            })
        })?;
        self.join_strips(cluster_row)
    }

    /// Components of the whole frame, from those of the strips.
    fn join_strips<'r, T: Copy + PartialEq + Into<u32> + 'r>(
        &mut self,
        cluster_row: impl Fn(usize) -> &'r [T],
    ) -> Result<()> {
        let Self { strips, borders, parents, sums, .. } = self;
        parents.clear();
        sums.clear();
        let count = strips.iter().map(|strip| strip.sums.len()).sum();
        memory::reserve(parents, COMPONENTS, count)?;
        memory::reserve(sums, COMPONENTS, count)?;
        for (strip, border) in strips.iter_mut().zip(&mut *borders) {
            strip.offset = sums.len() as u32;
            parents.extend(strip.offset..strip.offset + strip.sums.len() as u32);
            sums.extend_from_slice(&strip.sums);
            let last = strip.runs(strip.rows.len() - 2);
            border.starts.clear();
            border.starts.extend_from_slice(&strip.starts[last.clone()]);
            border.components.clear();
            border.components.extend(strip.components[last].iter().map(|c| c + strip.offset));
        }
        let width = self.geometry.width as usize;
        for i in 1..strips.len() {
            let (border, strip) = (&borders[i - 1], &strips[i]);
            let (above, below) = (cluster_row(i * STRIP - 1), cluster_row(i * STRIP));
            let upper = 0..border.starts.len();
            overlaps(&border.starts, upper, &strip.starts, strip.runs(0), width, |u, l, x, _| {
                if above[x] == below[x] {
                    unite(parents, border.components[u], strip.offset + strip.components[l]);
                }
            });
        }
        self.flatten();
        self.set_outside_apart();
        memory::refill(&mut self.means, COMPONENTS, self.sums.len(), None)
    }

    /// The largest component of each cluster, by its number.
    fn find_largest(&self, largest: &mut Array<Largest>, clusters: usize) -> Result<()> {
        memory::refill(largest, COMPONENTS, clusters, Largest::default())?;
        for strip in &self.strips {
            for (i, &cluster) in strip.clusters.iter().enumerate() {
                // What is outside has none.
                let Some(main) = largest.get_mut(cluster as usize) else { continue };
                let component = strip.offset + i as u32;
                // What has been joined holds nothing; of equal ones the first stays.
                if self.sums[component as usize].count > main.size {
                    *main = Largest { size: self.sums[component as usize].count, label: component };
                }
            }
        }
        Ok(())
    }

    /// Points every component at its root and moves all sums there.
    fn flatten(&mut self) {
        for i in 0..self.parents.len() {
            let root = self.parents[self.parents[i] as usize];
            self.parents[i] = root;
            if root as usize != i {
                let moved = std::mem::take(&mut self.sums[i]);
                self.sums[root as usize].add(&moved);
            }
        }
    }

    /// Makes the components outside of a mask known by their size, which lets them neither join others nor be joined.
    fn set_outside_apart(&mut self) {
        let Self { strips, parents, sums, outside: Some(outside), .. } = self else { return };
        for strip in &*strips {
            for (i, _) in strip.clusters.iter().enumerate().filter(|(_, cluster)| *cluster == outside) {
                sums[parents[strip.offset as usize + i] as usize].count = OUTSIDE;
            }
        }
    }

    fn list_edges(&mut self, min_region: u32) -> Result<()> {
        let Self { cpu, strips, borders, parents, sums, edges, .. } = self;
        let width = self.geometry.width as usize;
        let roots = Roots { parents, sums, min_region };
        let borders = &*borders;
        cpu.run(|| {
            strips.par_iter_mut().enumerate().try_for_each(|(i, strip)| {
                strip.list_edges(i.checked_sub(1).map(|above| &borders[above]), &roots, width)
            })
        })?;
        edges.clear();
        memory::reserve(edges, EDGES, strips.iter().map(|strip| strip.edges.len()).sum())?;
        for strip in strips {
            edges.extend_from_slice(&strip.edges);
        }
        if self.outside.is_some() {
            let inside = |component: u32| sums[component as usize].count != OUTSIDE;
            edges.retain(|&(a, b)| inside(a) && inside(b));
        }
        Ok(())
    }

    /// One round: every small component joins a neighbor. Returns whether any did.
    fn absorb(&mut self, min_region: u32, round: u32) -> Result<bool> {
        let Self { parents, sums, means, selected, edges, small, .. } = self;
        memory::resize(selected, COMPONENTS, sums.len(), u64::MAX)?;
        small.clear();
        // Each small component is an end of some edge, once.
        memory::reserve(small, COMPONENTS, sums.len().min(2 * edges.len()))?;
        for &(a, b) in &*edges {
            for c in [a, b] {
                selected[c as usize] = u64::MAX;
            }
        }
        for &(a, b) in &*edges {
            let [a_mean, b_mean] =
                [a, b].map(|c| *means[c as usize].get_or_insert_with(|| sums[c as usize].mean()));
            let distance = distance(a_mean, b_mean);
            let small_ones = [a, b].map(|c| sums[c as usize].count < min_region);
            for (i, (from, to)) in [(a, b), (b, a)].into_iter().enumerate() {
                if small_ones[i] {
                    let best = &mut selected[from as usize];
                    if *best == u64::MAX {
                        small.push(from);
                    }
                    let cost = cost(distance, small_ones[1 - i], min_region, round);
                    *best = (*best).min(u64::from(cost) << 32 | u64::from(to));
                }
            }
        }
        for &c in &*small {
            unite(parents, c, selected[c as usize] as u32);
        }
        // What was selected may have become a child of what selected it, so both ends give up their sums.
        for i in 0..small.len() {
            for c in [small[i], selected[small[i] as usize] as u32] {
                let root = find(parents, c);
                if root != c {
                    let moved = std::mem::take(&mut sums[c as usize]);
                    sums[root as usize].add(&moved);
                    means[root as usize] = None;
                }
            }
        }
        edges.retain_mut(|edge| {
            *edge = (find(parents, edge.0), find(parents, edge.1));
            let is_small = |c: u32| sums[c as usize].count < min_region;
            edge.0 != edge.1 && (is_small(edge.0) || is_small(edge.1))
        });
        Ok(!small.is_empty())
    }

    /// Absorbs components until none is small that has a neighbor, and labels can name all, as far as that is a matter of sizes;
    /// returns how many they name.
    fn absorb_all(&mut self) -> Result<usize> {
        let (mut min_region, pixels) = (self.min_region, self.geometry.pixels());
        loop {
            if min_region > 1 {
                self.list_edges(min_region)?;
                let mut round = 0;
                while self.absorb(min_region, round)? {
                    round += 1;
                }
            }
            let count = self.number()?;
            if count <= MAX_REGIONS || !self.may_overflow || min_region as usize > pixels {
                return Ok(count.min(MAX_REGIONS));
            }
            min_region *= 2;
        }
    }

    /// Numbers the roots in raster order, but for what is outside; returns how many there are.
    fn number(&mut self) -> Result<usize> {
        let Self { parents, labels, sums, .. } = self;
        labels.clear();
        memory::reserve(labels, COMPONENTS, parents.len())?;
        let mut next = 0usize;
        for i in 0..parents.len() {
            let root = parents[parents[i] as usize];
            parents[i] = root;
            if root as usize != i {
                let label = labels[root as usize];
                labels.push(label);
            } else if sums[i].count == OUTSIDE {
                labels.push(NO_LABEL);
            } else {
                // Of more than can be named the last have no label.
                labels.push(next.min(MAX_REGIONS) as u16);
                next += 1;
            }
        }
        Ok(next)
    }

    /// Writes each run's label.
    fn write_labels(&self, labels: &mut Labels<'_>) {
        let Self { cpu, strips, labels: numbers, .. } = self;
        cpu.run(|| {
            labels.bands_mut(STRIP).zip(strips).for_each(|(mut band, strip)| {
                for y in 0..band.rows() {
                    let row = band.row_mut(y);
                    let runs = strip.runs(y);
                    for run in runs.clone() {
                        let end = match run + 1 {
                            next if next == runs.end => row.len(),
                            next => usize::from(strip.starts[next]),
                        };
                        let label = numbers[(strip.offset + strip.components[run]) as usize];
                        write_run(row, usize::from(strip.starts[run])..end, label);
                    }
                }
            });
        });
    }
}

impl backend::Connectivity<Cpu> for Connectivity {
    fn enforce(&mut self, buffers: &mut FrameBuffers, labels: &mut Labels<'_>) -> Result<()> {
        let features = &buffers.features;
        if buffers.clusters.is_empty() {
            let clusters = &*labels;
            self.find_components(|y| clusters.row(y), features)?;
        } else {
            let (clusters, width) = (&buffers.clusters, self.geometry.width as usize);
            self.find_components(|y| &clusters[y * width..][..width], features)?;
        }
        let mut largest =
            buffers.temporal.as_mut().filter(|_| buffers.clusters.is_empty()).map(|state| &mut state.largest);
        if let Some(largest) = &mut largest {
            self.find_largest(largest, self.clusters)?;
        }
        let count = self.absorb_all()?;
        for main in largest.into_iter().flatten().filter(|main| main.size > 0) {
            let label = self.labels[main.label as usize];
            *main =
                if label == NO_LABEL { Largest::default() } else { Largest { label: label.into(), ..*main } };
        }
        self.write_labels(labels);
        buffers.count = count as u32;
        Ok(())
    }
}
