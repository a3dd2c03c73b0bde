// SPDX-License-Identifier: MPL-2.0
//! Where pairs of labels stand in a list: found by the lower label, which few higher ones touch.

use crate::cpu::memory::{self, Array};
use crate::error::Result;

/// What memory is for, in errors.
const PAIRS: &str = "pairs of regions";
/// Higher labels that are compared at once; most superpixels touch three.
pub(super) const ROOM: usize = 4;
/// Bits of a label.
const BITS: usize = u16::BITS as usize;
/// The lowest bit of each label in a word, and the highest.
const LOWEST: u64 = 0x0001_0001_0001_0001;
const HIGHEST: u64 = LOWEST << (BITS - 1);
/// A place without a label: 0 is higher than no other.
const FREE: u16 = 0;

/// Where a label stands in a word of them, or [`ROOM`]. No branch: it would often be mispredicted.
#[inline(always)]
fn find(labels: u64, label: u16) -> usize {
    let differ = labels ^ (LOWEST * u64::from(label));
    // The lowest that is 0 is the lowest that borrows.
    let equal = differ.wrapping_sub(LOWEST) & !differ & HIGHEST;
    equal.trailing_zeros() as usize / BITS
}

/// The higher labels that a label touches first, in a word, and the numbers of these pairs.
#[derive(Clone, Copy)]
struct Higher {
    labels: u64,
    numbers: [u32; ROOM],
}

/// Numbers of pairs of labels.
#[derive(Default)]
pub(super) struct Places {
    /// Of each lower label.
    higher: Array<Higher>,
    /// Of those that have no room there.
    more: More,
}

impl Places {
    /// Forgets all, for pairs of as many labels.
    pub fn clear(&mut self, labels: usize) -> Result<()> {
        memory::resize(&mut self.higher, PAIRS, labels, Higher { labels: 0, numbers: [0; ROOM] })?;
        // Numbers are of no label before it has one.
        self.higher.iter_mut().for_each(|higher| higher.labels = 0);
        self.more.clear()
    }

    /// The number of a pair: `next`, which it keeps, if it is new.
    #[inline(always)]
    pub fn number(&mut self, [low, high]: [u16; 2], next: u32) -> Result<u32> {
        let Higher { labels, numbers } = &mut self.higher[usize::from(low)];
        let (known, free) = (find(*labels, high), find(*labels, FREE));
        let is_new = known == ROOM;
        let Some(place) = numbers.get_mut(if is_new { free } else { known }) else {
            return self.more.number([low, high], next);
        };
        // No branch: which pairs are new is hard to predict.
        let number = if is_new { next } else { *place };
        *place = number;
        *labels |= (u64::from(high) * u64::from(is_new)) << (free % ROOM * BITS);
        Ok(number)
    }
}

/// Numbers of pairs, found by a hash of both labels.
#[derive(Default)]
struct More {
    /// Labels of a pair, and its number; a power of two.
    slots: Array<(u32, u32)>,
    /// Slots in use.
    used: usize,
    /// Bits of a hash that are no slot's number.
    shift: u32,
    /// What had slots before there were more of them.
    moved: Array<(u32, u32)>,
}

/// No pair: two labels are never equal.
const EMPTY: u32 = u32::MAX;
/// Slots at first.
const LEAST_SLOTS: usize = 64;
/// At least so many slots for each pair.
const SPACE: usize = 2;

impl More {
    fn clear(&mut self) -> Result<()> {
        // As many as it took the last time, or half.
        self.clear_slots(2 * SPACE * self.used)
    }

    /// At least so many slots, all free.
    fn clear_slots(&mut self, least: usize) -> Result<()> {
        let slots = least.next_power_of_two().max(LEAST_SLOTS);
        self.shift = u32::BITS - slots.ilog2();
        self.used = 0;
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

    #[inline(never)]
    fn number(&mut self, [low, high]: [u16; 2], next: u32) -> Result<u32> {
        let labels = u32::from(low) << 16 | u32::from(high);
        let slot = self.slot(labels);
        if self.slots[slot].0 == labels {
            return Ok(self.slots[slot].1);
        }
        self.slots[slot] = (labels, next);
        self.used += 1;
        if SPACE * self.used > self.slots.len() {
            self.grow()?;
        }
        Ok(next)
    }

    #[cold]
    fn grow(&mut self) -> Result<()> {
        let mut moved = std::mem::take(&mut self.moved);
        std::mem::swap(&mut moved, &mut self.slots);
        let done = self.clear_slots(2 * moved.len());
        if done.is_ok() {
            for &(labels, number) in moved.iter().filter(|(labels, _)| *labels != EMPTY) {
                let slot = self.slot(labels);
                self.slots[slot] = (labels, number);
                self.used += 1;
            }
        }
        self.moved = moved;
        done
    }
}
