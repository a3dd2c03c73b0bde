// SPDX-License-Identifier: MPL-2.0
//! Some rows of a cluster plane as runs: the components that they form, and which of these touch.

use std::ops::Range;

use super::components::{COMPONENTS, EDGES, RUNS, Sums, find, unite};
use super::shared::{Components, Tag};
use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::post::runs::{RowSums, for_each_change};

/// Slots of the cache of pairs seen last.
const SEEN: usize = 1 << (u64::BITS - 54);

/// Two roots packed into one number, the lower one first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Edge(u64);

impl Edge {
    /// Matches no pair: no root touches itself.
    const NONE: Self = Self(0);

    #[inline(always)]
    pub fn new(a: u32, b: u32) -> Self {
        Self(u64::from(a.min(b)) << 32 | u64::from(a.max(b)))
    }

    #[inline(always)]
    pub fn ends(self) -> (u32, u32) {
        ((self.0 >> 32) as u32, self.0 as u32)
    }

    /// Slot of the pair in a cache of [`SEEN`].
    #[inline(always)]
    fn place(self) -> usize {
        (self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize
    }

    /// Returns `self` if the condition holds, else `other`, without a branch.
    #[inline(always)]
    fn or(self, keep: bool, other: Self) -> Self {
        Self(other.0 ^ ((self.0 ^ other.0) & u64::from(keep).wrapping_neg()))
    }
}

/// What pixels of one component have in common.
pub(super) trait Kind: Copy + PartialEq + Sync {
    /// True if it includes the area in a prior.
    const HAS_AREA: bool;

    fn cluster(self) -> u32;

    fn area(self) -> u32 {
        0
    }
}

impl Kind for u16 {
    const HAS_AREA: bool = false;

    fn cluster(self) -> u32 {
        self.into()
    }
}

impl Kind for u32 {
    const HAS_AREA: bool = false;

    fn cluster(self) -> u32 {
        self
    }
}

/// Cluster and area of a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct InArea {
    pub cluster: u32,
    pub area: u32,
}

impl Kind for InArea {
    const HAS_AREA: bool = true;

    fn cluster(self) -> u32 {
        self.cluster
    }

    fn area(self) -> u32 {
        self.area
    }
}

/// Some rows as runs of equal kind, and the components that these runs form inside the strip.
#[derive(Default)]
pub(super) struct Strip {
    /// First column of each run.
    pub starts: Array<u16>,
    /// First run of each row, then the number of runs.
    pub rows: Array<u32>,
    /// Component of each run, counted from the strip's first.
    pub components: Array<u32>,
    /// Union-find over runs.
    parents: Array<u32>,
    /// Sums of the strip's components, ordered by their first run.
    pub sums: Array<Sums>,
    /// Sums of their columns and rows; empty unless added.
    pub positions: Array<[u64; 2]>,
    /// Cluster of each component.
    pub clusters: Array<u32>,
    /// Area of each component in a prior; empty without one.
    pub areas: Array<u32>,
    /// Prefix sums of the features of the current row.
    row_sums: RowSums,
    /// Number of components in the strips above.
    pub offset: u32,
    /// Number of regions with their root in this strip, and number of those in the strips above.
    pub regions: usize,
    pub first_region: usize,
    /// Label of each component.
    pub labels: Array<u16>,
    /// Components of the frame, by root, that are not small before any is absorbed; in temporal mode.
    pub large: Array<u32>,
    /// Touching components with a small one among them.
    pub edges: Array<Edge>,
    /// The pair that was listed last for each slot of a hash.
    seen: Array<Edge>,
    /// Roots among the strip's components that are small.
    pub small: Array<u32>,
    /// Tags of the strip's components, of the current row's runs, and of those above.
    tags: Array<Tag>,
    lower: Array<Tag>,
    upper: Array<Tag>,
}

impl Strip {
    pub fn runs(&self, row: usize) -> Range<usize> {
        self.rows[row] as usize..self.rows[row + 1] as usize
    }

    /// Ids of the strip's components in the whole frame.
    pub fn ids(&self) -> Range<u32> {
        self.offset..self.offset + self.sums.len() as u32
    }

    /// Finds the runs of rows `first..first + rows` and unites those that touch and are of the same kind.
    pub fn scan<'r, T: Kind + 'r>(
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
        memory::reserve(&mut self.rows, RUNS, rows + 1)?;
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
            let (first_upper, first_lower) = (upper.start, lower.start);
            let parents = &mut self.parents;
            overlaps(&self.starts[upper], &self.starts[lower], width, |u, l, x| {
                if above[x] == below[x] {
                    unite(parents, (first_upper + u) as u32, (first_lower + l) as u32);
                }
            });
        }
        self.collect(|y, x| cluster_row(y)[x], features, first, rows, width)
    }

    /// Numbers the components and adds up their features.
    fn collect<T: Kind>(
        &mut self,
        kind: impl Fn(usize, usize) -> T,
        features: &[u32],
        first: usize,
        rows: usize,
        width: usize,
    ) -> Result<()> {
        let Self { starts, rows: firsts, components, parents, sums, clusters, areas, row_sums, .. } = self;
        sums.clear();
        clusters.clear();
        areas.clear();
        memory::resize(components, RUNS, starts.len(), 0)?;
        let (starts, components, parents) = (&starts[..], &mut components[..], &mut parents[..]);
        for y in 0..rows {
            let pixels = &features[(first + y) * width..][..width];
            row_sums.sum_features(pixels)?;
            let runs = firsts[y] as usize..firsts[y + 1] as usize;
            memory::reserve(sums, COMPONENTS, runs.len())?;
            memory::reserve(clusters, COMPONENTS, runs.len())?;
            if T::HAS_AREA {
                memory::reserve(areas, COMPONENTS, runs.len())?;
            }
            let mut start = 0;
            for run in runs.clone() {
                let end = if run + 1 == runs.end { width } else { usize::from(starts[run + 1]) };
                let own = Sums { count: (end - start) as u32, color: row_sums.over(start..end) };
                let root = find(parents, run as u32) as usize;
                components[run] = if root == run {
                    sums.push(own);
                    let kind = kind(first + y, start);
                    clusters.push(kind.cluster());
                    if T::HAS_AREA {
                        areas.push(kind.area());
                    }
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

    /// Adds up the columns and rows of the components; the strip's first row is the frame's `first`.
    pub fn add_positions(&mut self, first: usize, width: usize) -> Result<()> {
        memory::refill(&mut self.positions, COMPONENTS, self.sums.len(), [0; 2])?;
        for y in 0..self.rows.len() - 1 {
            let runs = self.runs(y);
            let (starts, components) = (&self.starts[runs.clone()], &self.components[runs]);
            let mut add = |start: u16, end: usize, component: u32| {
                let (x0, n) = (u64::from(start), end as u64 - u64::from(start));
                let [x_sum, y_sum] = &mut self.positions[component as usize];
                *x_sum += (x0 + end as u64 - 1) * n / 2;
                *y_sum += (first + y) as u64 * n;
            };
            for (ends, &component) in starts.windows(2).zip(components) {
                add(ends[0], ends[1].into(), component);
            }
            if let (Some(&start), Some(&component)) = (starts.last(), components.last()) {
                add(start, width, component);
            }
        }
        Ok(())
    }

    /// Lists the strip's small roots, and the pairs of touching roots with a small one among them, inside the strip and
    /// across its upper border; in a frame with a prior those of one area.
    pub fn list_edges<const HAS_AREAS: bool>(
        &mut self,
        above: Option<&StripBorder>,
        all: &Components,
        min_region: u32,
        width: usize,
    ) -> Result<()> {
        self.list_small(all, min_region)?;
        let Self { starts, rows, components, edges, seen, tags, upper, lower, .. } = self;
        edges.clear();
        memory::refill(seen, EDGES, SEEN, Edge::NONE)?;
        let seen = &mut seen[..];
        upper.clear();
        let mut upper_starts = &[][..];
        if let Some(above) = above {
            memory::reserve(upper, RUNS, above.components.len())?;
            upper.extend(above.components.iter().map(|&c| all.tag(above.first + c, min_region)));
            upper_starts = &above.starts;
        }
        for y in 0..rows.len() - 1 {
            let runs = rows[y] as usize..rows[y + 1] as usize;
            let lower_starts = &starts[runs.clone()];
            lower.clear();
            memory::reserve(lower, RUNS, runs.len())?;
            lower.extend(components[runs].iter().map(|&c| tags[c as usize]));
            // Two rows' runs overlap first at a column where one of them begins.
            let (above, row) = (&upper[..], &lower[..]);
            memory::write(edges, EDGES, above.len() + 2 * row.len(), |edges| {
                // Two components mostly touch in several rows, so pairs seen recently are dropped. A branch
                // would often be mispredicted.
                let mut offer = |a: Tag, b: Tag| {
                    let is_edge = a.forms_edge(b) && (!HAS_AREAS || all.share_area(a.root(), b.root()));
                    let edge = Edge::new(a.root(), b.root());
                    let seen = &mut seen[edge.place()];
                    edges.push_if(is_edge & (*seen != edge), edge);
                    *seen = edge.or(is_edge, *seen);
                };
                for pair in row.windows(2) {
                    offer(pair[0], pair[1]);
                }
                if !above.is_empty() {
                    overlaps(upper_starts, lower_starts, width, |u, l, _| offer(above[u], row[l]));
                }
            })?;
            std::mem::swap(upper, lower);
            upper_starts = lower_starts;
        }
        Ok(())
    }

    /// Looks up the root of every component, and lists the small roots.
    fn list_small(&mut self, all: &Components, min_region: u32) -> Result<()> {
        let ids = self.ids();
        let Self { sums, small, tags, .. } = self;
        tags.clear();
        memory::reserve(tags, COMPONENTS, sums.len())?;
        tags.extend(ids.clone().map(|c| all.tag(c, min_region)));
        small.clear();
        memory::write(small, COMPONENTS, sums.len(), |small| {
            for (c, tag) in ids.zip(&*tags) {
                small.push_if(tag.is_small_root(c), c);
            }
        })
    }
}

/// The last row of a strip, which is all that the strip below reads of it.
#[derive(Default)]
pub(super) struct StripBorder {
    pub starts: Array<u16>,
    /// Components, counted from the strip's first.
    pub components: Array<u32>,
    /// Id of the strip's first component in the whole frame.
    pub first: u32,
}

impl StripBorder {
    /// Copies the last row of a strip.
    pub fn copy_last_row(&mut self, strip: &Strip) -> Result<()> {
        let last = strip.runs(strip.rows.len() - 2);
        self.first = strip.offset;
        self.starts.clear();
        memory::append(&mut self.starts, RUNS, &strip.starts[last.clone()])?;
        self.components.clear();
        memory::append(&mut self.components, RUNS, &strip.components[last])
    }
}

/// Calls `visit(upper run, lower run, first shared column)` for all overlapping runs of two rows, given by their starts.
#[inline(always)]
pub(super) fn overlaps(
    upper: &[u16],
    lower: &[u16],
    width: usize,
    mut visit: impl FnMut(usize, usize, usize),
) {
    let end = |starts: &[u16], run: usize| starts.get(run + 1).map_or(width, |&end| usize::from(end));
    let (mut u, mut l, mut x) = (0, 0, 0);
    while x < width {
        let (upper_end, lower_end) = (end(upper, u), end(lower, l));
        let next = upper_end.min(lower_end);
        visit(u, l, x);
        u += usize::from(next == upper_end);
        l += usize::from(next == lower_end);
        x = next;
    }
}
