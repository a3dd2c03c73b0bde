// SPDX-License-Identifier: MPL-2.0
//! Index of a pair of labels in a list, found by the lower label, which few higher ones touch.

use crate::cpu::memory::{self, Array};
use crate::error::Result;

/// Name of the pairs in errors about memory.
const PAIRS: &str = "pairs of regions";
/// Higher labels that are compared at once; most superpixels touch three.
pub(super) const ROOM: usize = 4;
/// Bits of a label.
const BITS: usize = u16::BITS as usize;
/// The lowest and the highest bit of each label in a word.
const LOWEST: u64 = 0x0001_0001_0001_0001;
const HIGHEST: u64 = LOWEST << (BITS - 1);
/// Marks a free position in a word: label 0 is higher than no other.
const FREE: u16 = 0;

/// Position of a label in a word of four, or [`ROOM`] if it is not there. No branch, because it would often be
/// mispredicted.
#[inline(always)]
fn find(labels: u64, label: u16) -> usize {
    let differ = labels ^ (LOWEST * u64::from(label));
    // The subtraction borrows at the lowest label that is 0, which is found first.
    let equal = differ.wrapping_sub(LOWEST) & !differ & HIGHEST;
    equal.trailing_zeros() as usize / BITS
}

/// The first few higher labels that a label touches, in a word, and the indices of these pairs.
#[derive(Clone, Copy)]
struct Higher {
    labels: u64,
    numbers: [u32; ROOM],
}

/// Map from pairs of labels to indices: a small array per lower label, and a hash table for overflow.
#[derive(Default)]
pub(super) struct PairIndex {
    /// Entry of each lower label.
    higher: Array<Higher>,
    /// Pairs that did not fit there.
    more: More,
}

impl PairIndex {
    /// Removes all pairs, and allocates entries for `labels` labels.
    pub fn clear(&mut self, labels: usize) -> Result<()> {
        memory::resize(&mut self.higher, PAIRS, labels, Higher { labels: 0, numbers: [0; ROOM] })?;
        // Indices need no clearing: they count only where there is a label.
        self.higher.iter_mut().for_each(|higher| higher.labels = 0);
        self.more.clear()
    }

    /// Index of a pair; a new pair gets `next`.
    #[inline(always)]
    pub fn number(&mut self, [low, high]: [u16; 2], next: u32) -> Result<u32> {
        let Higher { labels, numbers } = &mut self.higher[usize::from(low)];
        let (known, free) = (find(*labels, high), find(*labels, FREE));
        let is_new = known == ROOM;
        let Some(entry) = numbers.get_mut(if is_new { free } else { known }) else {
            return self.more.number([low, high], next);
        };
        // No branch, because it would often be mispredicted.
        let number = if is_new { next } else { *entry };
        *entry = number;
        *labels |= (u64::from(high) * u64::from(is_new)) << (free % ROOM * BITS);
        Ok(number)
    }
}

/// Map from pairs to indices by a hash of both labels, with linear probing.
#[derive(Default)]
struct More {
    /// Labels of a pair, and its index. The length is a power of two.
    slots: Array<(u32, u32)>,
    /// Slots in use.
    used: usize,
    /// Shift that leaves the bits of a slot's number.
    shift: u32,
    /// Old slots, while the table grows.
    moved: Array<(u32, u32)>,
}

/// Marks a free slot: the two labels of a pair are never equal.
const EMPTY: u32 = u32::MAX;
/// Fewest slots.
const LEAST_SLOTS: usize = 64;
/// Slots per pair, at least.
const SPACE: usize = 2;

impl More {
    fn clear(&mut self) -> Result<()> {
        // The table keeps the size that the last round needed, or half of it.
        self.clear_slots(2 * SPACE * self.used)
    }

    /// Allocates at least `least` slots, all free.
    fn clear_slots(&mut self, least: usize) -> Result<()> {
        let slots = least.next_power_of_two().max(LEAST_SLOTS);
        self.shift = u32::BITS - slots.ilog2();
        self.used = 0;
        memory::refill(&mut self.slots, PAIRS, slots, (EMPTY, 0))
    }

    /// Finds the slot of a pair, or the free slot where it belongs.
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
