// SPDX-License-Identifier: MPL-2.0
//! All pairs of a round as one part, or as two for two threads. Results do not depend on which part has which pair.

use super::costs::list_costs;
use super::pairs::{Moved, Pair, Pairs};
use super::{Mean, Plan};
use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::parallel;

/// Name of the regions in errors about memory.
const REGIONS: &str = "regions to merge";
/// Marks a region that has selected no neighbor.
pub(super) const NONE: u64 = u64::MAX;
/// Pairs from which a pass is faster on two threads.
const MANY_PAIRS: usize = 1500;

#[derive(Default)]
struct Part {
    pairs: Pairs,
    /// Least cost of each region's pairs in this part, and the neighbor across, in the low bits.
    selected: Array<u64>,
}

impl Part {
    /// Computes the stale costs, and selects the least of each remaining region.
    fn select(&mut self, plan: &Plan, means: &[Mean], left: &[u32]) {
        let Self { pairs, selected } = self;
        let stale = pairs.stale;
        list_costs(&mut pairs.list_mut()[stale..], means, plan);
        for &region in left {
            selected[region as usize] = NONE;
        }
        for pair in pairs.list() {
            let [a, b] = [usize::from(pair.a), usize::from(pair.b)];
            let cost = u64::from(pair.cost) << 32;
            selected[a] = selected[a].min(cost | b as u64);
            selected[b] = selected[b].min(cost | a as u64);
        }
    }
}

/// The pairs of the remaining regions.
#[derive(Default)]
pub(super) struct Parts {
    /// The second part is empty with a single thread.
    parts: [Part; 2],
    /// Pairs that each part hands to both parts as regions are renamed.
    moved: [Moved; 2],
    several: bool,
}

impl Parts {
    /// Starts with the pairs of superpixels, given in pieces.
    pub fn begin<'a>(
        &mut self,
        pieces: impl Iterator<Item = &'a Moved> + Clone + Send,
        superpixels: usize,
        several: bool,
    ) -> Result<()> {
        self.several = several;
        self.moved.iter_mut().for_each(|moved| moved.several = several);
        for part in &mut self.parts {
            part.pairs.clear();
            memory::resize(&mut part.selected, REGIONS, superpixels, NONE)?;
        }
        self.append(several, pieces, superpixels)
    }

    /// Takes the pairs that were moved to each part.
    fn append<'a>(
        &mut self,
        worth_it: bool,
        moved: impl Iterator<Item = &'a Moved> + Clone + Send,
        labels: usize,
    ) -> Result<()> {
        let [Part { pairs: first, .. }, Part { pairs: second, .. }] = &mut self.parts;
        let to = |i: usize| moved.clone().map(move |moved| &moved.to[i][..]);
        let (one, other) = (to(0), to(1));
        both(worth_it, || first.append(one, labels), || second.append(other, labels))
    }

    pub fn pairs_mut(&mut self) -> impl Iterator<Item = &mut Pair> {
        self.parts.iter_mut().flat_map(|part| part.pairs.list_mut())
    }

    /// Least cost of each region's pairs, and the neighbor across, in the low bits; or [`NONE`].
    pub fn selected(&self) -> &[u64] {
        &self.parts[0].selected
    }

    /// Selects a neighbor for every remaining region.
    pub fn select(&mut self, plan: &Plan, means: &[Mean], left: &[u32]) -> Result<()> {
        let (several, worth_it) = (self.several, self.is_worth_it());
        let [first, second] = &mut self.parts;
        let select = |part: &mut Part| {
            part.select(plan, means, left);
            Ok(())
        };
        both(worth_it, || select(first), || select(second))?;
        for &region in if several { left } else { &[] } {
            let selected = &mut first.selected[region as usize];
            *selected = (*selected).min(second.selected[region as usize]);
        }
        Ok(())
    }

    /// Renames the regions of all pairs. Pairs within one are dropped, equal ones are added up.
    pub fn rename(&mut self, names: &[u32], has_changed: &[bool]) -> Result<()> {
        let worth_it = self.is_worth_it();
        let [Part { pairs: first, .. }, Part { pairs: second, .. }] = &mut self.parts;
        let [one, other] = &mut self.moved;
        both(
            worth_it,
            || first.rename(names, has_changed, one),
            || second.rename(names, has_changed, other),
        )?;
        let moved = std::mem::take(&mut self.moved);
        let done = self.append(worth_it, moved.iter(), names.len());
        self.moved = moved;
        done
    }

    fn is_worth_it(&self) -> bool {
        self.several && self.parts.iter().map(|part| part.pairs.list().len()).sum::<usize>() >= MANY_PAIRS
    }
}

/// Runs both, on two threads if `worth_it`.
fn both(
    worth_it: bool,
    one: impl FnOnce() -> Result<()> + Send,
    other: impl FnOnce() -> Result<()> + Send,
) -> Result<()> {
    if worth_it {
        let (one, other) = parallel::join(one, other);
        one.and(other)
    } else {
        one()?;
        other()
    }
}
