// SPDX-License-Identifier: MPL-2.0
//! Pairs of labels that touch, each once, found by both labels: what is added to them commutes.

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
    /// Bits of the cost, once computed.
    pub cost: u32,
    pub boundary: Boundary,
}

/// No pair: two labels are never equal.
const EMPTY: u32 = u32::MAX;
/// Slots at first.
const LEAST_SLOTS: usize = 64;
/// At least so many slots for each pair that pixels add to: nearly every pair is at home.
const SPACE: usize = 4;
/// Homes of a label's pairs.
const SPREAD: u32 = 16;
/// Slots that are looked at from a home on.
const NEAR: usize = 8;

/// A list of pairs and where each stands in it.
#[derive(Default)]
pub(crate) struct Pairs {
    pub list: Array<Pair>,
    /// Where in the list those begin whose cost has to be computed.
    pub stale: usize,
    /// What goes to the end of the list.
    renamed: Array<Pair>,
    /// Labels of a pair, and its place; a power of two.
    slots: Array<(u32, u32)>,
    /// Bits of a hash that are no slot's number.
    shift: u32,
}

impl Pairs {
    /// Forgets all, with slots for about as many pairs.
    pub fn clear(&mut self, expected: usize) -> Result<()> {
        self.list.clear();
        self.stale = 0;
        self.clear_slots(SPACE * expected)
    }

    /// At least so many slots, all free.
    fn clear_slots(&mut self, least: usize) -> Result<()> {
        let slots = least.next_power_of_two().max(LEAST_SLOTS);
        self.shift = u32::BITS - slots.ilog2();
        memory::refill(&mut self.slots, PAIRS, slots, (EMPTY, 0))
    }

    /// Where a pair belongs: beside its lower label's other pairs, which are needed at about the same time.
    #[inline(always)]
    fn home(&self, labels: u32) -> usize {
        let (a, b) = (labels >> 16, labels % SPREAD);
        (a * SPREAD + b) as usize & (self.slots.len() - 1)
    }

    /// The slot of a pair of labels, or the free one that it gets: near its home, or anywhere if the lower label has many.
    #[inline]
    fn slot(&self, labels: u32) -> usize {
        let mask = self.slots.len() - 1;
        let is_it = |slot: usize| self.slots[slot].0 == labels || self.slots[slot].0 == EMPTY;
        let home = self.home(labels);
        if let Some(slot) = (home..home + NEAR).map(|slot| slot & mask).find(|&slot| is_it(slot)) {
            return slot;
        }
        let mut slot = (labels.wrapping_mul(0x9e37_79b1) >> self.shift) as usize;
        while !is_it(slot) {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// Adds a piece of boundary between two labels that differ, in any order.
    #[inline(always)]
    pub fn add(&mut self, one: u32, other: u32, boundary: &Boundary) -> Result<()> {
        let labels = one.min(other) << 16 | one.max(other);
        let (found, place) = self.slots[self.home(labels)];
        if found == labels {
            self.list[place as usize].boundary.add(boundary);
            return Ok(());
        }
        self.add_elsewhere(labels, boundary)
    }

    /// Adds to a pair that is new, or not at home.
    #[inline(never)]
    fn add_elsewhere(&mut self, labels: u32, boundary: &Boundary) -> Result<()> {
        let slot = self.slot(labels);
        if self.slots[slot].0 == labels {
            let place = self.slots[slot].1;
            self.list[place as usize].boundary.add(boundary);
            return Ok(());
        }
        memory::reserve(&mut self.list, PAIRS, 1)?;
        self.slots[slot] = (labels, self.list.len() as u32);
        self.list.push(Pair { a: labels >> 16, b: labels & 0xffff, cost: 0, boundary: *boundary });
        if SPACE * self.list.len() > self.slots.len() { self.grow() } else { Ok(()) }
    }

    #[cold]
    fn grow(&mut self) -> Result<()> {
        self.clear_slots(2 * SPACE * self.list.len())?;
        for i in 0..self.list.len() {
            let labels = self.list[i].a << 16 | self.list[i].b;
            let slot = self.slot(labels);
            self.slots[slot] = (labels, i as u32);
        }
        Ok(())
    }

    /// Names the regions of all pairs anew; pairs within one go, and equal ones add up. Costs of pairs of which neither region, by its
    /// new name, has changed stay; these are equal to no other.
    pub fn rename(&mut self, name: &[u32], has_changed: impl Fn(u32) -> bool) -> Result<()> {
        let Self { list, renamed, .. } = self;
        renamed.clear();
        let mut kept = 0;
        // No branch: which pairs stay is hard to predict.
        memory::write(renamed, PAIRS, list.len() + 1, |renamed| {
            for i in 0..list.len() {
                let mut pair = list[i];
                let (one, other) = (name[pair.a as usize], name[pair.b as usize]);
                (pair.a, pair.b) = (one.min(other), one.max(other));
                let stale = has_changed(one) | has_changed(other);
                list[kept] = pair;
                kept += usize::from(!stale);
                renamed.push_if(stale & (one != other), pair);
            }
        })?;
        list.truncate(kept);
        self.stale = kept;
        self.clear_slots(2 * self.renamed.len())?;
        for i in 0..self.renamed.len() {
            let pair = self.renamed[i];
            let labels = pair.a << 16 | pair.b;
            let slot = self.slot(labels);
            if self.slots[slot].0 == labels {
                self.list[self.slots[slot].1 as usize].boundary.add(&pair.boundary);
            } else {
                self.slots[slot] = (labels, self.list.len() as u32);
                self.list.push(pair);
            }
        }
        Ok(())
    }
}
