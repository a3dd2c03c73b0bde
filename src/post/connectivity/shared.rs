// SPDX-License-Identifier: MPL-2.0
//! Components of the whole frame as a lock-free union-find: roots are linked by compare-and-swap, the higher below the
//! lower, and paths are halved on the way up (Anderson and Woll, "Wait-free Parallel Algorithms for the Union-Find
//! Problem", 1991). Komura 2015 and Playne and Stephenson 2018 label images on GPUs in the same way, with atomic minima
//! for the links. All operations commute, so threads may run in any order: the lowest root of a set stays, the least
//! selection wins, sums are integers. Between the passes of a round all threads wait for each other.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::components::{COMPONENTS, Sums};
use super::cost;
use super::strip::Edge;
use crate::cpu::atomic;
use crate::cpu::memory::{self, Array};
use crate::error::Result;

/// Size of a component outside of the mask; no component inside is so large.
pub(super) const OUTSIDE: u32 = u32::MAX;
/// Bit in the size of a component that is kept however small it is. Frames have fewer pixels, so that no such size is small.
/// What takes it up takes the bit, too: of all that is united at once only one is not small.
const KEPT: u32 = 1 << 30;
/// Marks a mean that has not been computed since its component changed.
const STALE: u64 = u64::MAX;
/// Marks a component that has selected no neighbor.
const NONE: u64 = u64::MAX;

/// A component's mean in 1/16 quantum, 16 bits per channel, and a flag for small components.
#[derive(Clone, Copy)]
struct Mean(u64);

impl Mean {
    const SMALL: u32 = 48;

    fn new(sums: &Sums, min_region: u32) -> Self {
        let pixels = Sums { count: sums.count & !KEPT, ..*sums };
        let [a, b, c] = pixels.mean().map(u64::from);
        Self(a | b << 16 | c << 32 | u64::from(sums.count < min_region) << Self::SMALL)
    }

    #[inline(always)]
    fn is_small(self) -> bool {
        self.0 >> Self::SMALL != 0
    }

    #[inline(always)]
    fn distance(self, other: Self) -> u32 {
        let channel = |mean: Self, i: u32| (mean.0 >> (16 * i)) as u32 & 0xffff;
        (0..3).map(|i| channel(self, i).abs_diff(channel(other, i)).pow(2)).sum()
    }
}

/// [`Sums`] that several threads may add to at once.
#[derive(Default)]
struct SharedSums {
    count: AtomicU32,
    color: [AtomicU64; 3],
}

impl SharedSums {
    fn load(&self) -> Sums {
        Sums { count: self.count.load(Relaxed), color: [0, 1, 2].map(|i| self.color[i].load(Relaxed)) }
    }

    fn store(&self, sums: &Sums) {
        self.count.store(sums.count, Relaxed);
        self.color.iter().zip(sums.color).for_each(|(own, sum)| own.store(sum, Relaxed));
    }
}

/// A component's root in the upper bits, and its kind in the lower two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag(u32);

impl Tag {
    const SMALL: u32 = 1;
    const OUTSIDE: u32 = 2;
    const KINDS: u32 = 3;

    pub fn root(self) -> u32 {
        self.0 >> Self::KINDS.count_ones()
    }

    /// Returns true for the tag of `component` if that is a root and small.
    pub fn is_small_root(self, component: u32) -> bool {
        self.0 == component << Self::KINDS.count_ones() | Self::SMALL
    }

    /// Returns true if two touching components form an edge: they differ, one is small, and neither is outside.
    #[inline(always)]
    pub fn forms_edge(self, other: Self) -> bool {
        (self != other) & ((self.0 | other.0) & Self::KINDS == Self::SMALL)
    }
}

/// The components of all strips as disjoint sets. Ids are in raster order of first pixels, so the lowest id in a set is
/// its root. Sums, means and selections are valid at roots only.
#[derive(Default)]
pub(super) struct Components {
    count: usize,
    parents: Array<AtomicU32>,
    sums: Array<SharedSums>,
    means: Array<AtomicU64>,
    /// Selection of each small component: cost, then root.
    selected: Array<AtomicU64>,
    /// Area of each component in a prior; empty without one.
    areas: Array<AtomicU32>,
    /// True while one thread works alone, which then uses plain loads and stores.
    pub alone: bool,
}

impl Components {
    /// Allocates `count` components, which [`Self::place`] then fills; with areas if there is a prior.
    pub fn begin(&mut self, count: usize, has_prior: bool) -> Result<()> {
        self.count = count;
        self.areas.clear();
        memory::lengthen(&mut self.areas, COMPONENTS, if has_prior { count } else { 0 })?;
        memory::lengthen(&mut self.parents, COMPONENTS, count)?;
        memory::lengthen(&mut self.sums, COMPONENTS, count)?;
        memory::lengthen(&mut self.means, COMPONENTS, count)?;
        memory::lengthen(&mut self.selected, COMPONENTS, count)
    }

    pub fn len(&self) -> usize {
        self.count
    }

    /// Makes singleton sets of the components from `first` on.
    pub fn place(&self, first: u32, sums: &[Sums], areas: &[u32]) {
        let range = first as usize..first as usize + sums.len();
        for (id, parent) in (first..).zip(&self.parents[range.clone()]) {
            parent.store(id, Relaxed);
        }
        if !areas.is_empty() {
            self.areas[range.clone()].iter().zip(areas).for_each(|(own, area)| own.store(*area, Relaxed));
        }
        self.sums[range.clone()].iter().zip(sums).for_each(|(own, sums)| own.store(sums));
        self.means[range.clone()].iter().for_each(|mean| mean.store(STALE, Relaxed));
        self.selected[range].iter().for_each(|selected| selected.store(NONE, Relaxed));
    }

    #[inline(always)]
    pub fn parent(&self, i: u32) -> u32 {
        self.parents[i as usize].load(Relaxed)
    }

    pub fn size(&self, i: u32) -> u32 {
        self.sums[i as usize].count.load(Relaxed)
    }

    #[inline(always)]
    pub fn find(&self, mut i: u32) -> u32 {
        loop {
            let parent = self.parent(i);
            let up = self.parent(parent);
            if up == parent {
                return up;
            }
            // Path halving. Component `i` is no root, so its former parent is no longer needed. If the exchange fails,
            // another thread has already moved it further up.
            let own = &self.parents[i as usize];
            if self.alone {
                own.store(up, Relaxed);
            } else {
                _ = own.compare_exchange(parent, up, Relaxed, Relaxed);
            }
            i = up;
        }
    }

    #[inline(always)]
    pub fn unite(&self, mut a: u32, mut b: u32) {
        loop {
            (a, b) = (self.find(a), self.find(b));
            if a == b {
                return;
            }
            let (low, high) = (a.min(b), a.max(b));
            let parent = &self.parents[high as usize];
            if self.alone {
                return parent.store(low, Relaxed);
            }
            // Fails if another thread has linked `high` in the meantime; then both roots are found again.
            if parent.compare_exchange(high, low, Relaxed, Relaxed).is_ok() {
                return;
            }
        }
    }

    /// Points components at their roots and moves their sums there. All unions have to be done.
    pub fn flatten(&self, range: Range<u32>) {
        for i in range {
            let root = self.point_at_root(i);
            if root != i {
                let moved = self.sums[i as usize].load();
                self.sums[i as usize].count.store(0, Relaxed);
                self.add(root, &moved);
            }
        }
    }

    /// Points a component at its root and returns it.
    pub fn point_at_root(&self, i: u32) -> u32 {
        let root = self.find(i);
        self.parents[i as usize].store(root, Relaxed);
        root
    }

    /// Returns true if two components are in one area, as all are that ever became one with them.
    #[inline(always)]
    pub fn share_area(&self, a: u32, b: u32) -> bool {
        self.area(a) == self.area(b)
    }

    /// Area of a component; none without a prior.
    pub fn area(&self, i: u32) -> Option<u32> {
        self.areas.get(i as usize).map(|area| area.load(Relaxed))
    }

    /// Keeps a root: it joins no other, but others may join it.
    pub fn keep(&self, i: u32) {
        self.sums[i as usize].count.fetch_or(KEPT, Relaxed);
    }

    /// Excludes a component: it neither joins others nor is joined.
    pub fn set_outside(&self, i: u32) {
        self.sums[self.find(i) as usize].count.store(OUTSIDE, Relaxed);
    }

    pub fn tag(&self, i: u32, min_region: u32) -> Tag {
        let root = self.parent(i);
        let size = self.size(root);
        let kind = Tag::SMALL * u32::from(size < min_region) + Tag::OUTSIDE * u32::from(size == OUTSIDE);
        Tag(root << Tag::KINDS.count_ones() | kind)
    }

    #[inline(always)]
    fn add(&self, root: u32, sums: &Sums) {
        let own = &self.sums[root as usize];
        if self.alone {
            let mut sum = own.load();
            sum.add(sums);
            own.store(&sum);
        } else {
            own.count.fetch_add(sums.count, Relaxed);
            own.color.iter().zip(sums.color).for_each(|(own, sum)| _ = own.fetch_add(sum, Relaxed));
        }
    }

    /// Marks all means as stale, since their flag for small components depends on `min_region`.
    pub fn forget_means(&mut self) {
        self.means.iter_mut().for_each(|mean| *mean.get_mut() = STALE);
    }

    /// Computed on first use. Several threads may do so at once, with the same result.
    #[inline(always)]
    fn mean(&self, root: u32, min_region: u32) -> Mean {
        let known = &self.means[root as usize];
        let mut mean = known.load(Relaxed);
        if mean == STALE {
            mean = Mean::new(&self.sums[root as usize].load(), min_region).0;
            known.store(mean, Relaxed);
        }
        Mean(mean)
    }

    /// Lets the small end of every edge select the other end.
    pub fn select(&self, edges: &[Edge], min_region: u32, round: u32) {
        for edge in edges {
            let (a, b) = edge.ends();
            let [a_mean, b_mean] = [a, b].map(|c| self.mean(c, min_region));
            let distance = a_mean.distance(b_mean);
            for (from, to, small, other_small) in
                [(a, b, a_mean.is_small(), b_mean.is_small()), (b, a, b_mean.is_small(), a_mean.is_small())]
            {
                let key = u64::from(cost(distance, other_small, min_region, round)) << 32 | u64::from(to);
                let key = if small { key } else { NONE };
                atomic::lower(&self.selected[from as usize], key, self.alone);
            }
        }
    }

    /// Unites small components with their selections.
    pub fn unite_selected(&self, small: &[u32]) {
        for &c in small {
            let selected = self.selected[c as usize].load(Relaxed);
            if selected != NONE {
                self.unite(c, selected as u32);
            }
        }
    }

    /// Moves the sums of small components, and of the large ones that they have selected, to their roots. All unions
    /// have to be done.
    pub fn merge(&self, small: &[u32], min_region: u32) {
        for &c in small {
            let selected = &self.selected[c as usize];
            let to = selected.load(Relaxed) as u32;
            if selected.load(Relaxed) == NONE {
                continue;
            }
            selected.store(NONE, Relaxed);
            let root = self.find(c);
            self.means[root as usize].store(STALE, Relaxed);
            if root != c {
                self.parents[c as usize].store(root, Relaxed);
                self.add(root, &self.sums[c as usize].load());
            }
            // The selected component may have become a child, too. A small one moves its own sums; for a large one the
            // first thread to take its size does.
            if root != to {
                let size = self.take_large(to, min_region);
                if size > 0 {
                    self.parents[to as usize].store(root, Relaxed);
                    self.add(root, &Sums { count: size, ..self.sums[to as usize].load() });
                }
            }
        }
    }

    /// Takes the size of a large component that is no root any more. Returns 0 for a small one, and for one whose size
    /// was taken before.
    fn take_large(&self, i: u32, min_region: u32) -> u32 {
        let count = &self.sums[i as usize].count;
        let size = count.load(Relaxed);
        if size < min_region {
            0
        } else if self.alone {
            count.store(0, Relaxed);
            size
        } else {
            count.swap(0, Relaxed)
        }
    }

    /// Renames the ends of edges to roots, and drops edges within one component and those without a small end.
    pub fn contract(&self, edges: &mut Array<Edge>, min_region: u32) {
        let mut kept = 0;
        for i in 0..edges.len() {
            let (a, b) = edges[i].ends();
            let (a, b) = (self.parent(a), self.parent(b));
            let small = self.mean(a, min_region).is_small() | self.mean(b, min_region).is_small();
            edges[kept] = Edge::new(a, b);
            kept += usize::from((a != b) & small);
        }
        edges.truncate(kept);
    }

    /// Drops components that joined another or are no longer small.
    pub fn keep_small(&self, small: &mut Array<u32>, min_region: u32) {
        let mut kept = 0;
        for i in 0..small.len() {
            let c = small[i];
            let is_small = self.mean(self.parent(c), min_region).is_small();
            small[kept] = c;
            kept += usize::from((self.parent(c) == c) & is_small);
        }
        small.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    /// Unions in an unlucky order leave long chains, all of which have to end up at their root however threads that
    /// climb them interleave. Miri may switch threads anywhere.
    #[test]
    fn all_are_pointed_at_roots_by_any_threads() {
        let (count, rounds) = if cfg!(miri) { (7_u32, 150) } else { (300, 20_000) };
        let mut all = Components::default();
        all.begin(count as usize, false).unwrap();
        let (barrier, astray) = (Barrier::new(2), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (all, barrier, astray) = (&all, &barrier, &astray);
                scope.spawn(move || {
                    for _ in 0..rounds {
                        let own = || (0..count).filter(move |i| i / 2 % 2 == thread);
                        own().for_each(|i| all.parents[i as usize].store(i.saturating_sub(1), Relaxed));
                        barrier.wait();
                        // Starts at the far end, where the way up is longest. Halving skips every other component, so
                        // threads own them in alternating pairs.
                        own().rev().for_each(|i| _ = all.point_at_root(i));
                        barrier.wait();
                        astray.fetch_add(own().filter(|&i| all.parent(i) != 0).count() as u32, Relaxed);
                        barrier.wait();
                    }
                });
            }
        });
        assert_eq!(astray.into_inner(), 0);
    }
}
