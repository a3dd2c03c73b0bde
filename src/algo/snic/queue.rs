// SPDX-License-Identifier: MPL-2.0
//! The queue of SNIC's offers: the least comes first, though later offers may be less than those that have been taken.
//!
//! Offers wait unsorted in buckets by distance. Of these the lowest is sorted when its turn comes. Whatever is offered
//! after that with such a distance or a lower one, mostly what is taken next, goes to a heap, which stays small.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::cpu::memory::{self, Array};
use crate::error::{Error, Result};

/// The queue's name in errors about memory.
const QUEUE: &str = "pixels in the queue";
/// Buckets from one power of two to the next are two to this power: short lists are sorted faster, but more buckets that
/// are written to need more of the cache.
const STEPS: u32 = 8;
/// Offers of a block, which takes four cache lines.
const BLOCK: usize = 15;
/// No block.
const NONE: u32 = u32::MAX;
const EMPTY: Bucket = Bucket { block: NONE, len: BLOCK as u32 };

/// A place that may be taken at a distance. Ordered by distance, then by place.
// One number, since two are compared by branches that sorting cannot predict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Offer(u128);

impl Offer {
    #[inline(always)]
    pub fn new(distance: u64, place: u64) -> Self {
        Self(u128::from(distance) << 64 | u128::from(place))
    }

    #[inline(always)]
    pub fn distance(self) -> u64 {
        (self.0 >> 64) as u64
    }

    #[inline(always)]
    pub fn place(self) -> u64 {
        self.0 as u64
    }
}

/// Offers of like distance, in a list of blocks of which the first has room.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    block: u32,
    /// Offers in the first block.
    len: u32,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    offers: [Offer; BLOCK],
    next: u32,
}

/// Which bucket a distance below 2^63 belongs to. Rounding to a float keeps the order.
#[inline(always)]
fn bucket(distance: u64) -> usize {
    let [one, bits] =
        [1.0, distance as i64 as f32].map(|value| value.to_bits() >> (f32::MANTISSA_DIGITS - 1 - STEPS));
    bits.saturating_sub(one) as usize
}

pub(super) struct Queue {
    buckets: Array<Bucket>,
    blocks: Array<Block>,
    /// The first of the blocks that no bucket uses.
    free: u32,
    /// The first bucket that has not been sorted.
    next: usize,
    /// What is left of the last one that was, the least at the end.
    sorted: Array<Offer>,
    late: BinaryHeap<Reverse<Offer>>,
}

impl Queue {
    pub fn new() -> Result<Self> {
        Ok(Self {
            buckets: memory::filled(QUEUE, bucket(i64::MAX as u64) + 1, EMPTY)?,
            blocks: Array::new(),
            free: NONE,
            next: 0,
            sorted: Array::new(),
            late: BinaryHeap::new(),
        })
    }

    /// Removes all offers and keeps the memory.
    pub fn clear(&mut self) {
        self.buckets.fill(EMPTY);
        self.blocks.clear();
        self.free = NONE;
        self.next = 0;
        self.sorted.clear();
        self.late.clear();
    }

    /// Reserves memory for `more` offers.
    #[inline(always)]
    pub fn reserve(&mut self, more: usize) -> Result<()> {
        memory::reserve(&mut self.blocks, QUEUE, more)?;
        if self.late.capacity() - self.late.len() >= more {
            return Ok(());
        }
        self.late.try_reserve(more).map_err(|_| Error::Memory {
            what: QUEUE,
            bytes: self.late.len().saturating_add(more).saturating_mul(size_of::<Offer>()),
        })
    }

    /// Adds an offer, for which memory has been reserved.
    #[inline(always)]
    pub fn push(&mut self, offer: Offer) {
        let at = bucket(offer.distance());
        if at < self.next {
            self.late.push(Reverse(offer));
            return;
        }
        if self.buckets[at].len as usize == BLOCK {
            self.add_block(at);
        }
        let bucket = &mut self.buckets[at];
        self.blocks[bucket.block as usize].offers[bucket.len as usize] = offer;
        bucket.len += 1;
    }

    fn add_block(&mut self, at: usize) {
        let bucket = &mut self.buckets[at];
        let block = self.free;
        if block == NONE {
            let added = self.blocks.len() as u32;
            self.blocks.push(Block { offers: [Offer::default(); BLOCK], next: bucket.block });
            *bucket = Bucket { block: added, len: 0 };
        } else {
            let next = &mut self.blocks[block as usize].next;
            self.free = std::mem::replace(next, bucket.block);
            *bucket = Bucket { block, len: 0 };
        }
    }

    /// Takes the least offer. Those that `is_wanted` rejects may be left out.
    #[inline(always)]
    pub fn pop(&mut self, is_wanted: impl Fn(Offer) -> bool) -> Result<Option<Offer>> {
        if self.sorted.is_empty() && self.late.is_empty() {
            self.sort_next(is_wanted)?;
        }
        let is_late = match (self.sorted.last(), self.late.peek()) {
            (Some(sorted), Some(Reverse(late))) => late < sorted,
            (sorted, _) => sorted.is_none(),
        };
        Ok(if is_late { self.late.pop().map(|Reverse(offer)| offer) } else { self.sorted.pop() })
    }

    /// The offer that is likely to be taken after `count` others.
    #[inline(always)]
    pub fn ahead(&self, count: usize) -> Option<Offer> {
        self.sorted.get(self.sorted.len().wrapping_sub(count)).copied()
    }

    /// Sorts the wanted offers of the first bucket that has any.
    #[inline(never)]
    fn sort_next(&mut self, is_wanted: impl Fn(Offer) -> bool) -> Result<()> {
        while self.sorted.is_empty() && self.next < self.buckets.len() {
            let Bucket { block: mut at, mut len } = std::mem::replace(&mut self.buckets[self.next], EMPTY);
            self.next += 1;
            while at != NONE {
                let block = &mut self.blocks[at as usize];
                // Without a branch on what is wanted, which nothing predicts, pixels of many offers are read at once.
                memory::write(&mut self.sorted, QUEUE, BLOCK, |room| {
                    for &offer in &block.offers[..len as usize] {
                        room.push_if(is_wanted(offer), offer);
                    }
                })?;
                len = BLOCK as u32;
                let next = std::mem::replace(&mut block.next, self.free);
                self.free = std::mem::replace(&mut at, next);
            }
            self.sorted.sort_unstable_by(|a, b| b.cmp(a));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        state.rotate_left(31)
    }

    #[test]
    fn buckets_follow_distances() {
        let near = |i: u32| [(1u64 << i) - 1, 1 << i, (1 << i) + 1, (1 << i) + (1 << i >> 1)];
        let mut distances: Vec<u64> = (0..62).flat_map(near).chain([i64::MAX as u64]).collect();
        distances.sort_unstable();
        assert!(distances.windows(2).all(|pair| bucket(pair[0]) <= bucket(pair[1])));
        assert_eq!([bucket(0), bucket(1), bucket(2)], [0, 0, 1 << STEPS]);
    }

    #[test]
    fn offers_come_in_the_order_of_a_heap() {
        let mut queue = Queue::new().unwrap();
        let mut state = 7;
        // Few bits give ties of distances and of whole offers, many give far apart buckets.
        for bits in [0, 1, 4, 9, 20, 33, 62] {
            for round in 0..if cfg!(miri) { 1 } else { 20 } {
                queue.clear();
                let mut heap = BinaryHeap::new();
                let mut last = 0;
                for step in 0..if cfg!(miri) { 300 } else { 3000 } {
                    for _ in 0..random(&mut state) % if step < 1000 { 5 } else { 2 } {
                        // As distances of neighbors are: near the last one, often below it.
                        let distance = match random(&mut state) % 4 {
                            0 => random(&mut state) >> (63 - bits),
                            1 => last / 2,
                            _ => last + (random(&mut state) >> (63 - bits) >> (round % 4 * 4)),
                        };
                        let offer = Offer::new(distance.min(i64::MAX as u64), random(&mut state) % 64);
                        queue.reserve(1).unwrap();
                        queue.push(offer);
                        heap.push(Reverse(offer));
                    }
                    let offer = queue.pop(|_| true).unwrap();
                    assert_eq!(offer, heap.pop().map(|Reverse(offer)| offer), "{bits} bits, step {step}");
                    last = offer.map_or(last, Offer::distance);
                }
                // A frame may end early, with an error: nothing is left over then.
                if round % 2 == 0 {
                    while let Some(offer) = queue.pop(|_| true).unwrap() {
                        assert_eq!(Some(Reverse(offer)), heap.pop());
                    }
                    assert!(heap.is_empty());
                }
            }
        }
    }

    #[test]
    fn unwanted_offers_may_be_left_out_and_others_not() {
        let mut queue = Queue::new().unwrap();
        queue.reserve(100).unwrap();
        (0..100).for_each(|i| queue.push(Offer::new(1000 * (i % 10), i)));
        let is_wanted = |offer: Offer| offer.place().is_multiple_of(3);
        let mut wanted = 0;
        while let Some(offer) = queue.pop(is_wanted).unwrap() {
            wanted += usize::from(is_wanted(offer));
        }
        assert_eq!(wanted, 34);
    }
}
