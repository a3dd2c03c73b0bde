// SPDX-License-Identifier: MPL-2.0
//! Some rows of a cluster plane as runs: the components that they form, and which of these touch.

use std::ops::Range;

use super::components::{COMPONENTS, EDGES, RUNS, Sums, find, unite};
use crate::color::unpack;
use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::post::runs::{RowSums, for_each_change, packed};

/// Pairs that a strip remembers.
const SEEN: usize = 1 << (u32::BITS - 22);

/// Some rows as runs of equal label, and the components that these runs form inside the strip.
#[derive(Default)]
pub(super) struct Strip {
    /// First column of each run.
    pub starts: Array<u16>,
    /// First run of each row, and the end.
    pub rows: Array<u32>,
    /// Component of each run, counted from the strip's first.
    pub components: Array<u32>,
    /// Union-find over runs.
    parents: Array<u32>,
    /// Sums of the strip's components, ordered by their first run.
    pub sums: Array<Sums>,
    /// Their clusters.
    pub clusters: Array<u32>,
    /// Of the features in the row that is worked on.
    row_sums: RowSums,
    /// Number of components in the strips above.
    pub offset: u32,
    /// Touching components with a small one among them.
    pub edges: Array<(u32, u32)>,
    /// Pairs that touch, at places that follow from them, the latest of each place.
    seen: Array<(u32, u32)>,
}

impl Strip {
    pub fn runs(&self, row: usize) -> Range<usize> {
        self.rows[row] as usize..self.rows[row + 1] as usize
    }

    /// Finds the runs of rows `first..first + rows` and unites those that touch and have the same label.
    pub fn scan<'r, T: Copy + PartialEq + Into<u32> + 'r>(
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
            memory::write(&mut self.starts, RUNS, width, |starts| {
                starts.push(0);
                for_each_change(row, |x| starts.push(x as u16));
            })?;
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
        let Self { starts, rows: firsts, components, parents, sums, clusters, row_sums, .. } = self;
        sums.clear();
        clusters.clear();
        memory::resize(components, RUNS, starts.len(), 0)?;
        let (starts, components, parents) = (&starts[..], &mut components[..], &mut parents[..]);
        for y in 0..rows {
            let pixels = &features[(first + y) * width..][..width];
            row_sums.take(width, pixels.iter().map(|&feature| packed(unpack(feature))));
            let runs = firsts[y] as usize..firsts[y + 1] as usize;
            memory::reserve(sums, COMPONENTS, runs.len())?;
            memory::reserve(clusters, COMPONENTS, runs.len())?;
            let mut start = 0;
            for run in runs.clone() {
                let end = if run + 1 == runs.end { width } else { usize::from(starts[run + 1]) };
                let own = Sums { count: (end - start) as u32, color: row_sums.over(start..end) };
                let root = find(parents, run as u32) as usize;
                components[run] = if root == run {
                    sums.push(own);
                    clusters.push(cluster(first + y, start));
                    sums.len() as u32 - 1
                } else {
                    let component = components[root];
                    sums[component as usize].add(&own);
                    component
                };
                start = end;
            }
        }
        Ok(())
    }

    /// Lists the pairs of touching roots of which one is small, inside the strip and across its upper border.
    pub fn list_edges(&mut self, above: Option<&StripBorder>, roots: &Roots<'_>, width: usize) -> Result<()> {
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
pub(super) struct StripBorder {
    pub starts: Array<u16>,
    /// Components, counted over the whole frame.
    pub components: Array<u32>,
}

/// Calls `visit(upper run, lower run, first shared column, number of shared columns)` for all overlapping runs of two
/// rows.
pub(super) fn overlaps(
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

/// Components of the whole frame while they are united.
pub(super) struct Roots<'a> {
    pub parents: &'a [u32],
    pub sums: &'a [Sums],
    pub min_region: u32,
}

impl Roots<'_> {
    fn small(&self, root: u32) -> bool {
        self.sums[root as usize].count < self.min_region
    }
}
