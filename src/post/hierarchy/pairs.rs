// SPDX-License-Identifier: MPL-2.0
//! Pairs of labels that touch, each once, found by a hash of both labels: what is added to them commutes.

use super::Boundary;
use crate::cpu::memory::{self, Array};
use crate::error::Result;

/// What memory is for, in errors.
const PAIRS: &str = "pairs of regions";

/// Two regions that touch, named by labels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    pub a: u32,
    pub b: u32,
    /// Bits of the cost, or [`STALE`].
    pub cost: u32,
    pub boundary: Boundary,
}

/// A cost that has to be computed: no number's bits.
pub(crate) const STALE: u32 = u32::MAX;

/// No pair: two labels are never equal.
const EMPTY: u32 = u32::MAX;
/// Slots at first.
const LEAST_SLOTS: usize = 64;

/// A list of pairs and where each stands in it.
#[derive(Default)]
pub(crate) struct Pairs {
    pub list: Array<Pair>,
    /// Labels of a pair, and its place; at least twice as many slots as pairs, a power of two.
    slots: Array<(u32, u32)>,
    /// Bits of a hash that are no slot's number.
    shift: u32,
    /// For each label, the other one of the pair that it was the lower one of last, and the place of that: boundaries go on from row
    /// to row.
    recent: Array<(u32, u32)>,
}

impl Pairs {
    /// Forgets all, with slots for about as many pairs of labels below `labels`.
    pub fn clear(&mut self, expected: usize, labels: usize) -> Result<()> {
        self.list.clear();
        memory::refill(&mut self.recent, PAIRS, labels, (EMPTY, 0))?;
        self.clear_slots(expected)
    }

    fn clear_slots(&mut self, expected: usize) -> Result<()> {
        let slots = (2 * expected).next_power_of_two().max(LEAST_SLOTS);
        self.shift = u32::BITS - slots.ilog2();
        memory::refill(&mut self.slots, PAIRS, slots, (EMPTY, 0))
    }

    /// The slot of a pair of labels, or the free one where it belongs.
    #[inline]
    fn slot(&self, labels: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = (labels.wrapping_mul(0x9e37_79b1) >> self.shift) as usize;
        while self.slots[slot].0 != labels && self.slots[slot].0 != EMPTY {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// Adds a piece of boundary between two labels that differ, in any order.
    #[inline]
    pub fn add(&mut self, one: u32, other: u32, boundary: &Boundary) -> Result<()> {
        let (a, b) = (one.min(other), one.max(other));
        let (last, place) = self.recent[a as usize];
        if last == b {
            self.list[place as usize].boundary.add(boundary);
            return Ok(());
        }
        let labels = a << 16 | b;
        let slot = self.slot(labels);
        if self.slots[slot].0 == labels {
            let place = self.slots[slot].1;
            self.recent[a as usize] = (b, place);
            self.list[place as usize].boundary.add(boundary);
            return Ok(());
        }
        memory::reserve(&mut self.list, PAIRS, 1)?;
        let place = self.list.len() as u32;
        self.slots[slot] = (labels, place);
        self.recent[a as usize] = (b, place);
        self.list.push(Pair { a, b, cost: STALE, boundary: *boundary });
        if 2 * self.list.len() > self.slots.len() { self.grow() } else { Ok(()) }
    }

    #[cold]
    fn grow(&mut self) -> Result<()> {
        self.clear_slots(2 * self.list.len())?;
        for i in 0..self.list.len() {
            let labels = self.list[i].a << 16 | self.list[i].b;
            let slot = self.slot(labels);
            self.slots[slot] = (labels, i as u32);
        }
        Ok(())
    }

    /// Names the regions of all pairs anew; pairs within one go, and equal ones add up. Costs of pairs for which `keeps` holds, by
    /// their new names, stay.
    pub fn rename(&mut self, name: &[u32], keeps: impl Fn(u32) -> bool) -> Result<()> {
        let before = self.list.len();
        self.clear_slots(before)?;
        let mut kept = 0;
        for i in 0..before {
            let mut pair = self.list[i];
            let (one, other) = (name[pair.a as usize], name[pair.b as usize]);
            if one == other {
                continue;
            }
            (pair.a, pair.b) = (one.min(other), one.max(other));
            if !keeps(pair.a) || !keeps(pair.b) {
                pair.cost = STALE;
            }
            let labels = pair.a << 16 | pair.b;
            let slot = self.slot(labels);
            if self.slots[slot].0 == labels {
                let first = &mut self.list[self.slots[slot].1 as usize];
                first.boundary.add(&pair.boundary);
                first.cost = STALE;
            } else {
                self.slots[slot] = (labels, kept as u32);
                self.list[kept] = pair;
                kept += 1;
            }
        }
        self.list.truncate(kept);
        Ok(())
    }
}
