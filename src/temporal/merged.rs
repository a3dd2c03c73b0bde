// SPDX-License-Identifier: MPL-2.0
//! Track ids of merged regions over time, which follow from the tracks of their superpixels.
//!
//! A superpixel votes, with its pixels, for the merged region of its predecessor; a new one, where an exact number of
//! regions is wanted, for the one that was at its center. Regions and earlier regions are matched by these votes in
//! [`MATCH_ROUNDS`](super::MATCH_ROUNDS) rounds, in which those pairs unite that are each other's best (ties: the lower
//! label). The other regions are new, numbered in label order. The velocity is the mean of the superpixels', weighted
//! by their pixels, rounded half up.

use super::Track;
use super::matching::{Matching, number_new, refill};
use crate::cpu::memory;
use crate::cpu::memory::Array;
use crate::error::Result;

/// Merged regions and tracks that a frame passes on to the next.
pub(crate) struct Merged {
    /// The last frame's merged label of each superpixel.
    numbers: Array<u16>,
    /// Track of each merged region.
    pub tracks: Array<Track>,
    pub next_id: u32,
    votes: Matching,
    /// The last frame's tracks, and a flag for those that are continued.
    last: Array<Track>,
    used: Array<bool>,
    /// Summed motion and pixels of each region.
    sums: Array<([i64; 2], i64)>,
}

/// A superpixel with its merged label and its pixels.
pub(crate) struct MergedSuperpixel {
    pub label: u16,
    pub size: u32,
}

impl Default for Merged {
    fn default() -> Self {
        Self {
            numbers: Array::new(),
            tracks: Array::new(),
            next_id: 1,
            votes: Matching::default(),
            last: Array::new(),
            used: Array::new(),
            sums: Array::new(),
        }
    }
}

impl Merged {
    /// The merged region that a superpixel's predecessor was in. Valid until this frame's regions are named.
    pub fn earlier(&self, superpixel: &Track) -> Option<u16> {
        superpixel.from.map(|from| self.numbers[from as usize])
    }

    /// Names this frame's `count` regions. `superpixels` are the tracks of `parts`.
    pub fn name(
        &mut self,
        superpixels: &[Track],
        parts: impl Iterator<Item = MergedSuperpixel> + Clone,
        count: usize,
    ) -> Result<()> {
        std::mem::swap(&mut self.tracks, &mut self.last);
        refill(&mut self.tracks, count, Track::default())?;
        self.votes.clear();
        self.votes.reserve(superpixels.len())?;
        for (track, part) in superpixels.iter().zip(parts.clone()) {
            if let Some(earlier) = self.earlier(track) {
                self.votes.add(u32::from(part.label), u32::from(earlier), u64::from(part.size));
            }
        }
        refill(&mut self.used, self.last.len(), false)?;
        self.votes.unite(&mut self.tracks, &self.last, &mut self.used)?;
        number_new(&mut self.tracks, &mut self.next_id);
        let sums = &mut self.sums;
        refill(sums, count, ([0; 2], 0))?;
        for (track, part) in superpixels.iter().zip(parts.clone()) {
            let (sum, size) = &mut sums[usize::from(part.label)];
            let n = i64::from(part.size);
            *size += n;
            (0..2).for_each(|i| sum[i] += n * i64::from(track.velocity[i]));
        }
        for (track, &(sum, size)) in self.tracks.iter_mut().zip(&*sums) {
            track.velocity = sum.map(|v| (2 * v + size).div_euclid(2 * size.max(1)) as i32);
        }
        self.numbers.clear();
        memory::reserve(&mut self.numbers, "regions over time", superpixels.len())?;
        self.numbers.extend(parts.map(|part| part.label));
        Ok(())
    }
}
