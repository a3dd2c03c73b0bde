// SPDX-License-Identifier: MPL-2.0
//! Pairs of labels that touch, each once, found by both labels: what is added to them commutes.

use super::Boundary;
use super::touching::Touching;
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
/// At least so many slots for each pair.
const SPACE: usize = 2;

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
    /// Forgets all.
    pub fn clear(&mut self) -> Result<()> {
        self.list.clear();
        self.stale = 0;
        self.clear_slots(0)
    }

    /// At least so many slots, all free.
    fn clear_slots(&mut self, least: usize) -> Result<()> {
        let slots = least.next_power_of_two().max(LEAST_SLOTS);
        self.shift = u32::BITS - slots.ilog2();
        memory::refill(&mut self.slots, PAIRS, slots, (EMPTY, 0))
    }

    /// The slot of a pair of labels, or the free one that it gets.
    #[inline]
    fn slot(&self, labels: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = (labels.wrapping_mul(0x9e37_79b1) >> self.shift) as usize;
        while self.slots[slot].0 != labels && self.slots[slot].0 != EMPTY {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// Adds a piece of boundary between two labels, of which `a` is the lower one.
    pub fn add(&mut self, a: u32, b: u32, boundary: &Boundary) -> Result<()> {
        let labels = a << 16 | b;
        let slot = self.slot(labels);
        if self.slots[slot].0 == labels {
            let place = self.slots[slot].1;
            self.list[place as usize].boundary.add(boundary);
            return Ok(());
        }
        memory::reserve(&mut self.list, PAIRS, 1)?;
        self.slots[slot] = (labels, self.list.len() as u32);
        self.list.push(Pair { a, b, cost: 0, boundary: *boundary });
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

    /// Takes the pairs of what touches.
    pub fn take(&mut self, touching: &Touching) -> Result<()> {
        self.list.clear();
        self.stale = 0;
        touching.for_each(|[a, b], boundary| {
            memory::reserve(&mut self.list, PAIRS, 1)?;
            self.list.push(Pair { a: a.into(), b: b.into(), cost: 0, boundary });
            Ok(())
        })
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
        self.clear_slots(SPACE * self.renamed.len())?;
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
