// SPDX-License-Identifier: MPL-2.0
//! The rounds of the hierarchy over regions and pairs, and the cut. No pixels are read here.

use super::pairs::{Moved, Pair};
use super::parts::{NONE, Parts};
use super::{FEW, MEAN_ONE, Mean, Plan, STAGE};
use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::regions::MergeStep;

/// Name of the regions in errors about memory.
const REGIONS: &str = "regions to merge";

/// Sums over the pixels of a region.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sums {
    pub count: u32,
    pub color: [u64; 3],
    pub position: [u64; 2],
}

impl Sums {
    pub fn add(&mut self, other: &Sums) {
        self.count += other.count;
        for i in 0..3 {
            self.color[i] += other.color[i];
        }
        for i in 0..2 {
            self.position[i] += other.position[i];
        }
    }

    fn mean(&self) -> Mean {
        let n = u64::from(self.count.max(1));
        let mean = |sum: u64| ((2 * MEAN_ONE * sum + n) / (2 * n)) as u32;
        Mean { count: self.count, color: self.color.map(mean), position: self.position.map(mean) }
    }
}

/// A region's merge into another.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Join {
    /// Height, as the bits of a float.
    pub height: u32,
    pub round: u32,
    pub into: u32,
    /// Pixels of the merged region after the round.
    pub area: u32,
}

/// Regions and pairs, from all superpixels down to the few that are left.
#[derive(Default)]
pub(crate) struct Graph {
    /// Sums of each region, by label like the arrays below. Entries of a region that joined another are stale.
    sums: Array<Sums>,
    pairs: Parts,
    means: Array<Mean>,
    /// Largest height within each region, as the bits of a float.
    heights: Array<u32>,
    /// The region itself, or the root that it joined.
    roots: Array<u32>,
    /// True if the last round changed the region.
    changed: Array<bool>,
    joins: Array<Join>,
    /// Regions that are left, by ascending label.
    left: Array<u32>,
    /// Regions that joined others, in the order of rounds.
    joined: Array<u32>,
    round: u32,
    /// Merges ordered by height, round and label.
    keys: Array<u64>,
    /// Least height of the merges to come.
    floor: u32,
    /// Pairs of regions of different areas, while those within areas are merged; then empty.
    across: Moved,
    /// Pairs within areas, and later pairs across them by the regions that are left.
    inside: Moved,
    /// Merges within areas; all, where nothing lies between two.
    within: usize,
}

impl Graph {
    /// Marks the boundaries between superpixels that were in the same region of the last frame. `earlier` returns the
    /// region.
    pub fn hold(&mut self, earlier: impl Fn(u32) -> Option<u16>) {
        let across = self.across.to.iter_mut().flat_map(|to| to.iter_mut());
        for pair in self.pairs.pairs_mut().chain(across) {
            let [a, b] = [pair.a, pair.b].map(|label| earlier(label.into()));
            let together = a.is_some() && a == b;
            pair.boundary.held = if together { pair.boundary.length } else { 0 };
        }
    }

    /// Starts with the pairs of superpixels, given in pieces. `areas` has the area of each superpixel in a prior, or nothing; across
    /// their borders colors differ by `price` more, or pairs wait if that is 0. With `several`, two threads may work on them.
    pub fn set_pairs<'a>(
        &mut self,
        pieces: impl Iterator<Item = &'a Moved> + Clone + Send,
        areas: &[u32],
        price: u32,
        several: bool,
    ) -> Result<()> {
        self.across.clear();
        self.within = usize::MAX;
        if areas.is_empty() {
            return self.pairs.begin(pieces, self.sums.len(), several);
        }
        let mut inside = std::mem::take(&mut self.inside);
        inside.clear();
        (inside.several, self.across.several) = (several, several);
        for pair in pieces.flat_map(|piece| piece.to.iter().flat_map(|to| to.iter())) {
            let [a, b] = [pair.a, pair.b].map(|label| areas[usize::from(label)]);
            if a == b {
                inside.push(*pair)?;
            } else if price == 0 {
                self.across.push(*pair)?;
            } else {
                let mut pair = *pair;
                pair.boundary.contrast += u64::from(price) * u64::from(pair.boundary.length);
                inside.push(pair)?;
            }
        }
        let begun = self.pairs.begin(std::iter::once(&inside), self.sums.len(), several);
        self.inside = inside;
        begun
    }

    /// Continues with the pairs across areas, whose merges come after all others. Returns false if there are none.
    fn cross(&mut self) -> Result<bool> {
        let Self { across, roots, joins, joined, floor, within, .. } = self;
        if across.to.iter().all(|pairs| pairs.is_empty()) {
            return Ok(false);
        }
        *within = joined.len();
        let highest = joined.iter().map(|&region| joins[region as usize].height).max();
        *floor = (*floor).max(highest.unwrap_or(0));
        let mut renamed = std::mem::take(&mut self.inside);
        renamed.clear();
        for pair in across.to.iter().flat_map(|to| to.iter()) {
            let [a, b] = [pair.a, pair.b].map(|label| {
                let mut root = u32::from(label);
                while roots[root as usize] != root {
                    root = roots[root as usize];
                }
                root as u16
            });
            renamed.push(Pair { a: a.min(b), b: a.max(b), ..*pair })?;
        }
        self.across.clear();
        let several = renamed.several;
        let begun = self.pairs.begin(std::iter::once(&renamed), self.sums.len(), several);
        self.inside = renamed;
        begun.map(|()| true)
    }

    /// Runs rounds until the plan's number of regions, or the whole list, is reached.
    pub fn merge(&mut self, plan: &Plan) -> Result<()> {
        let n = self.sums.len();
        let (mut stage, mut open) = (n, false);
        let last = if plan.levels { 1 } else { plan.regions as usize };
        while 2 * stage > last {
            stage /= STAGE;
            while self.left.len() > stage.max(1) {
                let before = self.left.len();
                let joined = self.run_round(plan, open)?;
                // A wanted number that stops at areas needs no more, a list does.
                let goes_on = joined > 0 || (plan.crosses || plan.levels) && self.cross()?;
                if !goes_on {
                    return Ok(());
                }
                open = FEW * joined < before;
            }
            if stage > 0 {
                self.floor = self.floor.max(self.height_of_rank(n - 2 * stage)?);
            }
        }
        Ok(())
    }

    /// Starts with one region per superpixel, given by their sums.
    pub fn begin(&mut self, superpixels: impl ExactSizeIterator<Item = Sums>) -> Result<()> {
        let n = superpixels.len();
        self.sums.clear();
        memory::reserve(&mut self.sums, REGIONS, n)?;
        self.sums.extend(superpixels);
        memory::refill(&mut self.heights, REGIONS, n, 0)?;
        memory::refill(&mut self.changed, REGIONS, n, false)?;
        memory::refill(&mut self.joins, REGIONS, n, Join::default())?;
        for list in [&mut self.roots, &mut self.left, &mut self.joined] {
            list.clear();
            memory::reserve(list, REGIONS, n)?;
        }
        self.roots.extend(0..n as u32);
        self.left.extend(0..n as u32);
        self.means.clear();
        memory::reserve(&mut self.means, REGIONS, n)?;
        self.means.extend(self.sums.iter().map(Sums::mean));
        (self.round, self.floor) = (0, 0);
        Ok(())
    }

    /// Runs one round and returns how many regions joined others.
    fn run_round(&mut self, plan: &Plan, open: bool) -> Result<usize> {
        self.pairs.select(plan, &self.means, &self.left)?;
        let first = self.joined.len();
        self.join(open)?;
        self.unite(first);
        let Self { left, roots, changed, pairs, .. } = self;
        let mut kept = 0;
        // No branch, because it would often be mispredicted.
        for i in 0..left.len() {
            let region = left[i];
            left[kept] = region;
            kept += usize::from(roots[region as usize] == region);
        }
        left.truncate(kept);
        pairs.rename(roots, changed)?;
        self.round += 1;
        Ok(self.joined.len() - first)
    }

    /// Lists the regions that join their selection in this round.
    fn join(&mut self, open: bool) -> Result<()> {
        let Self { pairs, heights, roots, joins, left, joined, .. } = self;
        let (first, selected) = (joined.len(), pairs.selected());
        // No branch, because it would often be mispredicted.
        memory::write(joined, REGIONS, left.len() + 1, |joined| {
            for &region in &*left {
                let selection = selected[region as usize];
                let into = selection as u32;
                // A region without neighbors has selected `NONE`, whose index is out of bounds.
                let mutual = selected.get(into as usize).is_some_and(|&back| back as u32 == region);
                joined.push_if((mutual & (into < region)) | (open & !mutual & (selection != NONE)), region);
            }
        })?;
        for &region in &joined[first..] {
            let selection = selected[region as usize];
            let (cost, into) = ((selection >> 32) as u32, selection as u32);
            let within = heights[region as usize].max(heights[into as usize]);
            let height = cost.max(within).max(self.floor);
            joins[region as usize] = Join { height, round: self.round, into, area: 0 };
            roots[region as usize] = into;
        }
        Ok(())
    }

    /// Adds the regions that joined from `first` on to their roots.
    fn unite(&mut self, first: usize) {
        let Self { sums, means, heights, roots, changed, joins, left, joined, .. } = self;
        for &region in &*left {
            changed[region as usize] = false;
        }
        for &region in &joined[first..] {
            let mut root = roots[region as usize];
            while roots[root as usize] != root {
                root = roots[root as usize];
            }
            roots[region as usize] = root;
            let more = sums[region as usize];
            sums[root as usize].add(&more);
            heights[root as usize] = heights[root as usize].max(joins[region as usize].height);
            changed[root as usize] = true;
        }
        for &region in &joined[first..] {
            let root = roots[region as usize] as usize;
            joins[region as usize].area = sums[root].count;
            if std::mem::take(&mut changed[root]) {
                means[root] = sums[root].mean();
            }
        }
        for &region in &joined[first..] {
            changed[roots[region as usize] as usize] = true;
        }
    }

    /// Makes the keys of all merges and moves the `rank` least of them to the front.
    fn select_keys(&mut self, rank: usize) -> Result<()> {
        let Self { keys, joined, joins, .. } = self;
        keys.clear();
        memory::reserve(keys, REGIONS, joined.len())?;
        keys.extend(joined.iter().map(|&region| {
            let Join { height, round, .. } = joins[region as usize];
            u64::from(height) << 32 | u64::from(round) << 16 | u64::from(region)
        }));
        if 0 < rank && rank < keys.len() {
            keys.select_nth_unstable(rank - 1);
        }
        Ok(())
    }

    /// Height of the merge of rank `rank`.
    fn height_of_rank(&mut self, rank: usize) -> Result<u32> {
        self.select_keys(rank)?;
        Ok(self.keys.get(rank.wrapping_sub(1)).map_or(0, |key| (key >> 32) as u32))
    }

    /// Lists the merges that the last cut left out, in order, by the labels that the cut gave.
    pub fn list_merges(
        &mut self,
        regions: usize,
        crosses: bool,
        labels: &[u16],
        merges: &mut Array<MergeStep>,
    ) -> Result<()> {
        let kept = self.kept(regions, crosses);
        let Self { keys, joins, .. } = self;
        let rest = &mut keys[kept..];
        rest.sort_unstable();
        merges.clear();
        memory::reserve(merges, REGIONS, rest.len())?;
        merges.extend(rest.iter().map(|&key| {
            let region = usize::from(key as u16);
            let Join { height, into, area, .. } = joins[region];
            let [a, b] = [into as usize, region].map(|region| u32::from(labels[region]));
            MergeStep { a, b, height: f32::from_bits(height), area }
        }));
        Ok(())
    }

    /// Number of merges that leave `regions` regions.
    fn kept(&self, regions: usize, crosses: bool) -> usize {
        let most = if crosses { self.joined.len() } else { self.joined.len().min(self.within) };
        self.sums.len().saturating_sub(regions).min(most)
    }

    /// Computes the label of each superpixel's region with `regions` of them left, or as few as can be; unless `crosses`, as few as
    /// merges within areas leave. Returns the number.
    pub fn cut(&mut self, regions: usize, crosses: bool, labels: &mut Array<u16>) -> Result<usize> {
        let n = self.sums.len();
        let kept = self.kept(regions, crosses);
        self.select_keys(kept)?;
        let Self { keys, joins, roots, left, .. } = self;
        // `roots` now holds each region's root after the cut, and further down its label.
        roots.clear();
        roots.extend(0..n as u32);
        for key in &keys[..kept] {
            let region = *key as u16;
            roots[usize::from(region)] = joins[usize::from(region)].into;
        }
        labels.clear();
        memory::reserve(labels, REGIONS, n)?;
        let numbers = left;
        memory::refill(numbers, REGIONS, n, u32::MAX)?;
        let mut next = 0;
        for region in 0..n as u32 {
            let mut root = region;
            while roots[root as usize] != root {
                let up = roots[roots[root as usize] as usize];
                roots[root as usize] = up;
                root = up;
            }
            let number = &mut numbers[root as usize];
            if *number == u32::MAX {
                *number = next;
                next += 1;
            }
            labels.push(*number as u16);
        }
        Ok(next as usize)
    }
}
