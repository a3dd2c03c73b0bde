// SPDX-License-Identifier: MPL-2.0
//! Stage `connectivity` on the CPU: union-find over runs in strips of rows, then over components.

use std::ops::Range;

use rayon::prelude::*;

use super::{MAX_REGIONS, cost};
use crate::backend;
use crate::buffers::cpu::Work;
use crate::color::unpack;
use crate::cpu::memory::Array;
use crate::cpu::{Cpu, memory};
use crate::error::Result;
use crate::image::{Geometry, Labels};
use crate::plan::Plan;
use crate::post::runs::{RowSums, for_each_change, packed};
use crate::temporal::state::Main;

/// Rows that one task works on.
const STRIP: usize = 32;
/// What memory is for, in errors.
const RUNS: &str = "runs";
const COMPONENTS: &str = "components";
const EDGES: &str = "pairs of components";
/// Pairs that a strip remembers.
const SEEN: usize = 1 << (u32::BITS - 22);

/// The lowest set of a forest in which every parent is at most its child.
pub(crate) fn find(parents: &mut [u32], mut i: u32) -> u32 {
    while parents[i as usize] != i {
        let up = parents[parents[i as usize] as usize];
        parents[i as usize] = up;
        i = up;
    }
    i
}

pub(crate) fn unite(parents: &mut [u32], a: u32, b: u32) {
    let (a, b) = (find(parents, a), find(parents, b));
    let (low, high) = (a.min(b), a.max(b));
    parents[high as usize] = low;
}

/// Pixels of a component and the sums of their features.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sums {
    pub count: u32,
    pub color: [u64; 3],
}

impl Sums {
    pub fn add(&mut self, other: &Sums) {
        self.count += other.count;
        for i in 0..3 {
            self.color[i] += other.color[i];
        }
    }

    /// Mean feature in 1/16 quantum, rounded half up.
    pub fn mean(&self) -> [u32; 3] {
        let n = u64::from(self.count.max(1));
        self.color.map(|sum| ((32 * sum + n) / (2 * n)) as u32)
    }
}

pub(crate) fn distance(a: [u32; 3], b: [u32; 3]) -> u32 {
    (0..3).map(|i| a[i].abs_diff(b[i]).pow(2)).sum()
}

/// Some rows as runs of equal label, and the components that these runs form inside the strip.
#[derive(Default)]
struct Strip {
    /// First column of each run.
    starts: Array<u16>,
    /// First run of each row, and the end.
    rows: Array<u32>,
    /// Component of each run, counted from the strip's first.
    components: Array<u32>,
    /// Union-find over runs.
    parents: Array<u32>,
    /// Sums of the strip's components, ordered by their first run.
    sums: Array<Sums>,
    /// Their clusters.
    clusters: Array<u32>,
    /// Of the features in the row that is worked on.
    row_sums: RowSums,
    /// Number of components in the strips above.
    offset: u32,
    /// Touching components with a small one among them.
    edges: Array<(u32, u32)>,
    /// Pairs that touch, at places that follow from them, the latest of each place.
    seen: Array<(u32, u32)>,
}

impl Strip {
    fn runs(&self, row: usize) -> Range<usize> {
        self.rows[row] as usize..self.rows[row + 1] as usize
    }

    /// Finds the runs of rows `first..first + rows` and unites those that touch and have the same label.
    fn scan<'r, T: Copy + PartialEq + Into<u32> + 'r>(
        &mut self,
        cluster_row: impl Fn(usize) -> &'r [T],
        features: &[u32],
        first: usize,
        rows: usize,
    ) -> Result<()> {
        let width = cluster_row(first).len();
        self.starts.clear();
        self.rows.clear();
        self.parents.clear();
        for y in first..first + rows {
            self.rows.push(self.starts.len() as u32);
            let row = cluster_row(y);
            let begin = self.starts.len() as u32;
            memory::reserve(&mut self.starts, RUNS, width)?;
            self.starts.push(0);
            for_each_change(row, |x| self.starts.push(x as u16));
            memory::reserve(&mut self.parents, RUNS, self.starts.len() - begin as usize)?;
            self.parents.extend(begin..self.starts.len() as u32);
        }
        self.rows.push(self.starts.len() as u32);
        for y in 1..rows {
            let (above, below) = (cluster_row(first + y - 1), cluster_row(first + y));
            let (upper, lower) = (self.runs(y - 1), self.runs(y));
            let parents = &mut self.parents;
            overlaps(&self.starts, upper, &self.starts, lower, width, |u, l, x, _| {
                if above[x] == below[x] {
                    unite(parents, u as u32, l as u32);
                }
            });
        }
        self.collect(|y, x| cluster_row(y)[x].into(), features, first, rows, width)
    }

    /// Numbers the components and adds up their features.
    fn collect(
        &mut self,
        cluster: impl Fn(usize, usize) -> u32,
        features: &[u32],
        first: usize,
        rows: usize,
        width: usize,
    ) -> Result<()> {
        self.sums.clear();
        self.clusters.clear();
        self.components.clear();
        memory::reserve(&mut self.components, RUNS, self.starts.len())?;
        for y in 0..rows {
            let pixels = &features[(first + y) * width..][..width];
            self.row_sums.take(width, pixels.iter().map(|&feature| packed(unpack(feature))));
            let runs = self.runs(y);
            memory::reserve(&mut self.sums, COMPONENTS, runs.len())?;
            memory::reserve(&mut self.clusters, COMPONENTS, runs.len())?;
            for run in runs.clone() {
                let start = usize::from(self.starts[run]);
                let end = if run + 1 == runs.end { width } else { usize::from(self.starts[run + 1]) };
                let sums = Sums { count: (end - start) as u32, color: self.row_sums.over(start..end) };
                let root = find(&mut self.parents, run as u32) as usize;
                let component = if root == run {
                    self.sums.push(sums);
                    self.clusters.push(cluster(first + y, start));
                    self.sums.len() as u32 - 1
                } else {
                    let component = self.components[root];
                    self.sums[component as usize].add(&sums);
                    component
                };
                self.components.push(component);
            }
        }
        Ok(())
    }

    /// Lists the pairs of touching roots of which one is small, inside the strip and across its upper border.
    fn list_edges(&mut self, above: Option<&StripBorder>, roots: &Roots<'_>, width: usize) -> Result<()> {
        let (mut edges, mut seen) = (std::mem::take(&mut self.edges), std::mem::take(&mut self.seen));
        edges.clear();
        memory::refill(&mut seen, EDGES, SEEN, (0, 0))?;
        let mut offer = |edges: &mut Array<(u32, u32)>, a: u32, b: u32| {
            if a != b && (roots.small(a) || roots.small(b)) {
                // Those that touch mostly do so in several rows.
                let edge = (a.min(b), a.max(b));
                let slot =
                    edge.0.wrapping_mul(0x9e37_79b1).wrapping_add(edge.1.wrapping_mul(0x85eb_ca77)) >> 22;
                if seen[slot as usize] != edge {
                    seen[slot as usize] = edge;
                    edges.push(edge);
                }
            }
        };
        let root = |run: usize| roots.parents[(self.offset + self.components[run]) as usize];
        if let Some(above) = above {
            memory::reserve(&mut edges, EDGES, above.starts.len() + self.runs(0).len())?;
            overlaps(
                &above.starts,
                0..above.starts.len(),
                &self.starts,
                self.runs(0),
                width,
                |u, l, _, _| {
                    offer(&mut edges, roots.parents[above.components[u] as usize], root(l));
                },
            );
        }
        for y in 0..self.rows.len() - 1 {
            let runs = self.runs(y);
            // Each pair of runs begins where one of them does.
            let above = if y > 0 { self.runs(y - 1).len() } else { 0 };
            memory::reserve(&mut edges, EDGES, 2 * runs.len() + above)?;
            for run in runs.start + 1..runs.end {
                offer(&mut edges, root(run - 1), root(run));
            }
            if y > 0 {
                overlaps(&self.starts, self.runs(y - 1), &self.starts, runs, width, |u, l, _, _| {
                    offer(&mut edges, root(u), root(l));
                });
            }
        }
        (self.edges, self.seen) = (edges, seen);
        Ok(())
    }
}

/// The last row of a strip: what the strip below has to know of it.
#[derive(Default)]
struct StripBorder {
    starts: Array<u16>,
    /// Components, counted over the whole frame.
    components: Array<u32>,
}

/// Calls `visit(upper run, lower run, first shared column, number of shared columns)` for all overlapping runs of two
/// rows.
fn overlaps(
    upper_starts: &[u16],
    upper: Range<usize>,
    lower_starts: &[u16],
    lower: Range<usize>,
    width: usize,
    mut visit: impl FnMut(usize, usize, usize, usize),
) {
    let end = |starts: &[u16], runs: &Range<usize>, run: usize| {
        if run + 1 == runs.end { width } else { usize::from(starts[run + 1]) }
    };
    let (mut u, mut l, mut x) = (upper.start, lower.start, 0);
    while x < width {
        let (upper_end, lower_end) = (end(upper_starts, &upper, u), end(lower_starts, &lower, l));
        let next = upper_end.min(lower_end);
        visit(u, l, x, next - x);
        u += usize::from(next == upper_end);
        l += usize::from(next == lower_end);
        x = next;
    }
}

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

/// Components of the whole frame while they are united.
struct Roots<'a> {
    parents: &'a [u32],
    sums: &'a [Sums],
    min_region: u32,
}

impl Roots<'_> {
    fn small(&self, root: u32) -> bool {
        self.sums[root as usize].count < self.min_region
    }
}

pub(crate) struct Connectivity {
    cpu: Cpu,
    geometry: Geometry,
    clusters: usize,
    min_region: u32,
    strips: Vec<Strip>,
    borders: Vec<StripBorder>,
    /// Union-find over the components of all strips; ids are in raster order of first pixels.
    parents: Array<u32>,
    sums: Array<Sums>,
    /// As far as they have been asked for; an edge asks for two, and divisions take long.
    means: Array<Option<[u32; 3]>>,
    picks: Array<u64>,
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
            strips: (0..strips).map(|_| Strip::default()).collect(),
            borders: (0..strips).map(|_| StripBorder::default()).collect(),
            parents: Array::new(),
            sums: Array::new(),
            means: Array::new(),
            picks: Array::new(),
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
        self.settle();
        memory::refill(&mut self.means, COMPONENTS, self.sums.len(), None)
    }

    /// The main component of each cluster, by its number.
    fn find_mains(&self, mains: &mut Array<Main>, clusters: usize) -> Result<()> {
        memory::refill(mains, COMPONENTS, clusters, Main::default())?;
        for strip in &self.strips {
            for (i, &cluster) in strip.clusters.iter().enumerate() {
                let (component, main) = (strip.offset + i as u32, &mut mains[cluster as usize]);
                // What has been joined holds nothing; of equal ones the first stays.
                if self.sums[component as usize].count > main.size {
                    *main = Main { size: self.sums[component as usize].count, label: component };
                }
            }
        }
        Ok(())
    }

    /// Points every component at its root and moves all sums there.
    fn settle(&mut self) {
        for i in 0..self.parents.len() {
            let root = self.parents[self.parents[i] as usize];
            self.parents[i] = root;
            if root as usize != i {
                let moved = std::mem::take(&mut self.sums[i]);
                self.sums[root as usize].add(&moved);
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
        Ok(())
    }

    /// One round: every small component joins a neighbor. Returns whether any did.
    fn absorb(&mut self, min_region: u32, round: u32) -> Result<bool> {
        let Self { parents, sums, means, picks, edges, small, .. } = self;
        memory::resize(picks, COMPONENTS, sums.len(), u64::MAX)?;
        small.clear();
        // Each small component is an end of some edge, once.
        memory::reserve(small, COMPONENTS, sums.len().min(2 * edges.len()))?;
        for &(a, b) in &*edges {
            for c in [a, b] {
                picks[c as usize] = u64::MAX;
            }
        }
        for &(a, b) in &*edges {
            let [a_mean, b_mean] =
                [a, b].map(|c| *means[c as usize].get_or_insert_with(|| sums[c as usize].mean()));
            let distance = distance(a_mean, b_mean);
            let small_ones = [a, b].map(|c| sums[c as usize].count < min_region);
            for (i, (from, to)) in [(a, b), (b, a)].into_iter().enumerate() {
                if small_ones[i] {
                    let pick = &mut picks[from as usize];
                    if *pick == u64::MAX {
                        small.push(from);
                    }
                    let cost = cost(distance, small_ones[1 - i], min_region, round);
                    *pick = (*pick).min(u64::from(cost) << 32 | u64::from(to));
                }
            }
        }
        for &c in &*small {
            unite(parents, c, picks[c as usize] as u32);
        }
        // A pick may have been hooked below the component that picked it, so both ends give up their sums.
        for i in 0..small.len() {
            for c in [small[i], picks[small[i] as usize] as u32] {
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

    /// Numbers the roots in raster order; returns how many there are.
    fn number(&mut self) -> Result<usize> {
        let Self { parents, labels, .. } = self;
        labels.clear();
        memory::reserve(labels, COMPONENTS, parents.len())?;
        let mut next = 0usize;
        for i in 0..parents.len() {
            let root = parents[parents[i] as usize];
            parents[i] = root;
            if root as usize == i {
                labels.push(next as u16);
                next += 1;
            } else {
                let label = labels[root as usize];
                labels.push(label);
            }
        }
        Ok(next)
    }
}

impl backend::Connectivity<Cpu> for Connectivity {
    fn enforce(&mut self, work: &mut Work, labels: &mut Labels<'_>) -> Result<()> {
        let features = &work.features;
        if work.clusters.is_empty() {
            let clusters = &*labels;
            self.find_components(|y| clusters.row(y), features)?;
        } else {
            let (clusters, width) = (&work.clusters, self.geometry.width as usize);
            self.find_components(|y| &clusters[y * width..][..width], features)?;
        }
        let mut mains =
            work.temporal.as_mut().filter(|_| work.clusters.is_empty()).map(|state| &mut state.mains);
        if let Some(mains) = &mut mains {
            self.find_mains(mains, self.clusters)?;
        }
        let mut min_region = self.min_region;
        let count = loop {
            if min_region > 1 {
                self.list_edges(min_region)?;
                let mut round = 0;
                while self.absorb(min_region, round)? {
                    round += 1;
                }
            }
            let count = self.number()?;
            if count <= MAX_REGIONS {
                break count;
            }
            min_region *= 2;
        };
        for main in mains.into_iter().flatten().filter(|main| main.size > 0) {
            main.label = u32::from(self.labels[main.label as usize]);
        }
        let Self { cpu, strips, labels: numbers, .. } = &*self;
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
        work.count = count as u32;
        Ok(())
    }
}

/// Connectivity off: labels only become dense, in order of their clusters.
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
    fn enforce(&mut self, work: &mut Work, labels: &mut Labels<'_>) -> Result<()> {
        let Self { cpu, used, numbers, .. } = self;
        let rows = (self.geometry.height as usize).div_ceil(used.len());
        cpu.run(|| {
            used.par_iter_mut().zip(labels.bands_mut(rows)).for_each(|(used, mut band)| {
                used.fill(false);
                for y in 0..band.rows() {
                    for &label in band.row_mut(y).iter() {
                        used[usize::from(label)] = true;
                    }
                }
            });
        });
        // A frame with fewer rows than threads leaves bands unused, whose flags are of an earlier frame or none.
        let bands = (self.geometry.height as usize).div_ceil(rows);
        let mut count = 0;
        let mut mains = work.temporal.as_mut().map(|state| &mut state.mains);
        if let Some(mains) = &mut mains {
            memory::refill(mains, COMPONENTS, self.clusters, Main::default())?;
        }
        for k in 0..self.clusters {
            numbers[k] = count as u16;
            let used = used[..bands].iter().any(|used| used[k]);
            if let (Some(mains), true) = (&mut mains, used) {
                mains[k] = Main { size: 1, label: count };
            }
            count += u32::from(used);
        }
        let numbers = &*numbers;
        cpu.run(|| {
            labels.bands_mut(rows).for_each(|mut band| {
                for y in 0..band.rows() {
                    for label in band.row_mut(y) {
                        *label = numbers[usize::from(*label)];
                    }
                }
            });
        });
        work.count = count;
        Ok(())
    }
}

/// Connectivity off, clusters named by one of their pixels: labels in raster order of those. Clusters beyond the most
/// that labels can name share the last label.
pub(crate) struct RenumberPixels {
    cpu: Cpu,
    geometry: Geometry,
    /// At each pixel that names a cluster, its label.
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
    fn enforce(&mut self, work: &mut Work, labels: &mut Labels<'_>) -> Result<()> {
        let Self { cpu, numbers, geometry } = self;
        let (clusters, width) = (&work.clusters, geometry.width as usize);
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
                        *label = numbers[cluster as usize];
                    }
                }
            });
        });
        work.count = count.min(MAX_REGIONS) as u32;
        Ok(())
    }
}
