// SPDX-License-Identifier: MPL-2.0
//! Pairs of labels that touch, each once, with the sums of their boundary, which commute.

use super::Boundary;
use super::pair_index::PairIndex;
use crate::cpu::memory::{self, Array, Room};
use crate::error::Result;

/// Name of the pairs in errors about memory.
const PAIRS: &str = "pairs of regions";

/// Two regions that touch, named by labels, of which `a` is the lower one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pair {
    pub a: u16,
    pub b: u16,
    /// Bits of the cost, once computed.
    pub cost: u32,
    pub boundary: Boundary,
}

/// A list of pairs, and the index of each in it.
#[derive(Default)]
pub(crate) struct Pairs {
    /// Entries past `count` are stale: clearing them would take longer than everything else.
    list: Array<Pair>,
    count: usize,
    /// Index of the first pair whose cost has to be computed.
    pub stale: usize,
    index: PairIndex,
}

impl Pairs {
    /// Removes all pairs.
    pub fn clear(&mut self) {
        (self.count, self.stale) = (0, 0);
    }

    pub fn list(&self) -> &[Pair] {
        &self.list[..self.count]
    }

    pub fn list_mut(&mut self) -> &mut [Pair] {
        &mut self.list[..self.count]
    }

    /// Renames the regions of all pairs. Pairs of two unchanged regions stay with their costs, and equal no other;
    /// pairs within one region are dropped; all others go to `moved`.
    pub fn rename(&mut self, names: &[u32], has_changed: &[bool], moved: &mut Moved) -> Result<()> {
        let Self { list, count, stale, .. } = self;
        let list = &mut list[..*count];
        let (several, [first, second]) = (moved.several, &mut moved.to);
        let most = list.len() + 1;
        first.clear();
        second.clear();
        let mut kept = 0;
        let mut rename = |first: &mut Room<'_, Pair>, second: &mut Room<'_, Pair>| {
            // No branch, because it would often be mispredicted.
            for i in 0..list.len() {
                let mut pair = list[i];
                let [one, other] = [pair.a, pair.b].map(|label| names[usize::from(label)] as u16);
                (pair.a, pair.b) = (one.min(other), one.max(other));
                let is_stale = has_changed[usize::from(one)] | has_changed[usize::from(other)];
                list[kept] = pair;
                kept += usize::from(!is_stale);
                let (moves, to_second) = (is_stale & (one != other), several & is_of_second(pair.a));
                first.push_if(moves & !to_second, pair);
                second.push_if(moves & to_second, pair);
            }
        };
        memory::reserve(second, PAIRS, most)?;
        memory::write(first, PAIRS, most, |first| {
            _ = memory::write(second, PAIRS, most, |second| rename(first, second));
        })?;
        (*count, *stale) = (kept, kept);
        Ok(())
    }

    /// Appends the moved pairs behind the kept ones, and adds up equal ones. Labels are below `labels`.
    pub fn append<'a>(
        &mut self,
        moved: impl Iterator<Item = &'a [Pair]> + Clone,
        labels: usize,
    ) -> Result<()> {
        let Self { list, count, stale, index } = self;
        let most = *stale + moved.clone().map(|moved| moved.len()).sum::<usize>();
        let mut found = 0;
        if most > *stale {
            index.clear(labels)?;
            memory::lengthen(list, PAIRS, most)?;
            let list = &mut list[*stale..];
            for moved in moved.flatten() {
                let at = index.number([moved.a, moved.b], found as u32)? as usize;
                let (mut pair, is_new) = (*moved, at == found);
                pair.boundary.add(&list[at].boundary.if_so(!is_new));
                list[at] = pair;
                found += usize::from(is_new);
            }
        }
        *count = *stale + found;
        Ok(())
    }
}

/// Returns true if pairs with this lower label belong to the second list, if there are two.
#[inline(always)]
fn is_of_second(label: u16) -> bool {
    label & 1 != 0
}

/// Pairs on their way to one or two lists, by their lower label. A pair may occur more than once.
#[derive(Default)]
pub(crate) struct Moved {
    pub to: [Array<Pair>; 2],
    pub several: bool,
}

impl Moved {
    pub fn clear(&mut self) {
        self.to.iter_mut().for_each(|pairs| pairs.clear());
    }

    /// Adds one pair.
    #[inline(always)]
    pub fn push(&mut self, pair: Pair) -> Result<()> {
        let pairs = &mut self.to[usize::from(self.several & is_of_second(pair.a))];
        memory::reserve(pairs, PAIRS, 1)?;
        pairs.push(pair);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Boundaries by their two labels.
    type Sums = BTreeMap<[u16; 2], (u32, u64)>;

    fn sums_of(both: &[Pairs; 2]) -> Sums {
        let mut sums = Sums::new();
        for pair in both.iter().flat_map(|pairs| pairs.list()) {
            let of = (pair.boundary.length, pair.boundary.contrast);
            assert!(pair.a < pair.b && sums.insert([pair.a, pair.b], of).is_none());
        }
        sums
    }

    fn add(sums: &mut Sums, one: u16, other: u16, length: u32, contrast: u64) {
        if one != other {
            let sum = sums.entry([one.min(other), one.max(other)]).or_default();
            *sum = (sum.0 + length, sum.1 + contrast);
        }
    }

    #[test]
    fn renamed_pairs_add_up_however_many_a_label_has() {
        let (mut both, mut moved, mut wanted) =
            ([(); 2].map(|()| Pairs::default()), Moved::default(), Sums::new());
        for i in 0..3000u16 {
            let (a, b) = (i * 7 % 199, (i / 199 * 31 + i) % 200);
            if a != b {
                let boundary = Boundary { length: 1 + u32::from(i), held: 1, contrast: i.into() };
                moved.push(Pair { a: a.min(b), b: a.max(b), cost: 0, boundary }).unwrap();
                add(&mut wanted, a, b, boundary.length, boundary.contrast);
            }
        }
        both[0].append([&moved.to[0][..]].into_iter(), 200).unwrap();
        assert_eq!(sums_of(&both), wanted);
        let most = (0..200).map(|low| wanted.keys().filter(|labels| labels[0] == low).count()).max();
        assert!(most > Some(super::super::pair_index::ROOM));
        for (parts, several) in [(90, false), (20, true), (3, true), (1, true)] {
            // Some regions become one, others stay as they are, with their costs.
            let names: Vec<u32> =
                (0..200).map(|label| if label < 150 { label % parts } else { label }).collect();
            let changed: Vec<bool> = (0..200).map(|label| label < parts).collect();
            let moved = both.each_mut().map(|pairs| {
                pairs.list_mut().iter_mut().for_each(|pair| pair.cost = 7);
                let mut moved = Moved { several, ..Moved::default() };
                pairs.rename(&names, &changed, &mut moved).unwrap();
                moved
            });
            for (i, pairs) in both.iter_mut().enumerate() {
                pairs.append(moved.iter().map(|moved| &moved.to[i][..]), 200).unwrap();
            }
            let mut next = Sums::new();
            for (&[a, b], &(length, contrast)) in &wanted {
                add(&mut next, names[usize::from(a)] as u16, names[usize::from(b)] as u16, length, contrast);
            }
            wanted = next;
            assert_eq!(sums_of(&both), wanted);
            assert_eq!(several, parts == 1 || !both[1].list().is_empty());
            for pairs in &both {
                for (i, pair) in pairs.list().iter().enumerate() {
                    let is_stale = [pair.a, pair.b].iter().any(|&label| changed[usize::from(label)]);
                    assert_eq!(is_stale, i >= pairs.stale);
                    assert!(is_stale || pair.cost == 7);
                }
            }
        }
    }
}
