// SPDX-License-Identifier: MPL-2.0
//! Matching of regions to earlier regions on the CPU: decides which region continues which identity.

use super::{MATCH_ROUNDS, Track};
use crate::cpu::memory;
use crate::cpu::memory::Array;
use crate::error::Result;

/// Name of the regions in errors about memory.
pub(super) const REGIONS: &str = "regions over time";

/// Sets an array to `count` copies of a value, reusing its memory.
pub(super) fn refill<T: Clone>(values: &mut Array<T>, count: usize, value: T) -> Result<()> {
    memory::refill(values, REGIONS, count, value)
}

/// A key ordered by a number and, for equal numbers, by descending index, so that maxima prefer the lower index.
pub(super) fn key(number: u64, index: usize) -> u64 {
    number << 32 | u64::from(u32::MAX - index as u32)
}

/// The index of a key.
pub(super) fn index(key: u64) -> usize {
    (u32::MAX - key as u32) as usize
}

/// Region, earlier region, and the weight of the pair.
pub(super) type Pair = (u32, u32, u64);

/// Pairs and scratch memory of the matching, reused between frames.
#[derive(Default)]
pub(super) struct Matching {
    pairs: Array<Pair>,
    /// The best earlier region of each region, and the best region of each earlier one; 0 is none.
    best_earlier: Array<u64>,
    best_label: Array<u64>,
}

impl Matching {
    /// Adds pairs with their weights.
    pub fn append(&mut self, pairs: &[Pair]) -> Result<()> {
        memory::append(&mut self.pairs, "overlaps", pairs)
    }

    /// Removes all pairs.
    pub fn clear(&mut self) {
        self.pairs.clear();
    }

    /// Reserves memory for `more` pairs.
    pub fn reserve(&mut self, more: usize) -> Result<()> {
        memory::reserve(&mut self.pairs, "overlaps", more)
    }

    /// Adds a pair with its weight.
    pub fn add(&mut self, label: u32, earlier: u32, number: u64) {
        self.pairs.push((label, earlier, number));
    }

    /// Unites, round by round, the pairs that are each other's best (ties: the lower label): the region continues the
    /// earlier one's identity, which is marked in `used`. Regions with an identity and earlier regions in use take no
    /// part.
    pub fn unite(&mut self, tracks: &mut [Track], last: &[Track], used: &mut [bool]) -> Result<()> {
        let Self { pairs, best_earlier, best_label } = self;
        pairs.sort_unstable();
        pairs.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            kept.2 += if same { next.2 } else { 0 };
            same
        });
        for _ in 0..MATCH_ROUNDS {
            pairs.retain(|&(label, earlier, _)| tracks[label as usize].id == 0 && !used[earlier as usize]);
            if pairs.is_empty() {
                break;
            }
            refill(best_earlier, tracks.len(), 0)?;
            refill(best_label, last.len(), 0)?;
            for &(label, earlier, number) in &*pairs {
                let (label, earlier) = (label as usize, earlier as usize);
                best_earlier[label] = best_earlier[label].max(key(number, earlier));
                best_label[earlier] = best_label[earlier].max(key(number, label));
            }
            for (label, &choice) in best_earlier.iter().enumerate().filter(|(_, choice)| **choice != 0) {
                let earlier = index(choice);
                if index(best_label[earlier]) == label {
                    used[earlier] = true;
                    let (track, before) = (&mut tracks[label], &last[earlier]);
                    (track.id, track.age, track.from) = (before.id, before.age + 1, Some(earlier as u32));
                }
            }
        }
        Ok(())
    }
}

/// Gives regions without an identity the next ones, in order. Numbers wrap from the last to 1, since 0 means none.
pub(super) fn number_new(tracks: &mut [Track], next_id: &mut u32) {
    for track in tracks.iter_mut().filter(|track| track.id == 0) {
        track.id = *next_id;
        *next_id = next_id.wrapping_add(1).max(1);
    }
}
