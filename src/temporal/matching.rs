// SPDX-License-Identifier: MPL-2.0
//! Regions and earlier regions choose each other, on the CPU: who takes over which identity.

use super::{MATCH_ROUNDS, Track};
use crate::cpu::memory;
use crate::cpu::memory::Array;
use crate::error::Result;

/// What memory is for, in errors.
pub(super) const REGIONS: &str = "regions over time";

/// As many of one value as wanted, in the memory that is there.
pub(super) fn refill<T: Clone>(values: &mut Array<T>, count: usize, value: T) -> Result<()> {
    memory::refill(values, REGIONS, count, value)
}

/// What orders by a number and, where that is equal, prefers the lower index.
pub(super) fn key(number: u64, index: usize) -> u64 {
    number << 32 | u64::from(u32::MAX - index as u32)
}

/// The index in a key.
pub(super) fn index(key: u64) -> usize {
    (u32::MAX - key as u32) as usize
}

/// Region, earlier region, and how much speaks for the pair.
pub(super) type Pair = (u32, u32, u64);

/// Room for the choice; nothing in it lasts from frame to frame.
#[derive(Default)]
pub(super) struct Matching {
    pairs: Array<Pair>,
    /// The best earlier region of each region, and the best region of each earlier one; 0 is none.
    best_earlier: Array<u64>,
    best_label: Array<u64>,
}

impl Matching {
    /// Lets more speak for some pairs.
    pub fn append(&mut self, pairs: &[Pair]) -> Result<()> {
        memory::append(&mut self.pairs, "overlaps", pairs)
    }

    /// Forgets all pairs.
    pub fn clear(&mut self) {
        self.pairs.clear();
    }

    /// Makes room for so many more pairs.
    pub fn reserve(&mut self, more: usize) -> Result<()> {
        memory::reserve(&mut self.pairs, "overlaps", more)
    }

    /// Lets more speak for a pair.
    pub fn add(&mut self, label: u32, earlier: u32, number: u64) {
        self.pairs.push((label, earlier, number));
    }

    /// Unites, round by round, the pairs that are each other's best (ties: the lower label): the region goes on with
    /// the earlier one's identity, which is marked in `used`. Regions with an identity and what is used already take no part.
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

/// Gives those without an identity the next ones, in order; after the last comes 1 again, since 0 is none.
pub(super) fn number_new(tracks: &mut [Track], next_id: &mut u32) {
    for track in tracks.iter_mut().filter(|track| track.id == 0) {
        track.id = *next_id;
        *next_id = next_id.wrapping_add(1).max(1);
    }
}
