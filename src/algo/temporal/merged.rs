// SPDX-License-Identifier: MPL-2.0
//! Names of merged regions over time, from the ways of the superpixels in them: superpixels go on as if nothing merged.
//!
//! A superpixel votes, with its pixels, for the merged region that its predecessor was in. Regions and earlier regions
//! choose each other by these votes in [`MATCH_ROUNDS`] rounds, in which those pairs unite that are each other's best (ties:
//! the lower label). What is left is new, numbered in label order. The velocity is the mean of the superpixels', each
//! counted by its pixels, rounded half up.

use super::{MATCH_ROUNDS, Track, refill};

/// What the next frame has to know of merged regions.
pub(crate) struct Merged {
    /// The last frame's merged label of each superpixel.
    numbers: Vec<u16>,
    /// One for each merged region.
    pub tracks: Vec<Track>,
    pub next_id: u32,
    /// Earlier region, region, and what votes for the pair.
    votes: Vec<(u32, u32, u64)>,
    /// The last frame's tracks.
    last: Vec<Track>,
    /// The best earlier region of each region, the best region of each earlier one, and whether that is taken.
    best_earlier: Vec<u64>,
    best_label: Vec<u64>,
    taken: Vec<bool>,
    /// Way and pixels of each region.
    sums: Vec<([i64; 2], i64)>,
}

/// A superpixel with its merged label and its pixels.
pub(crate) struct Part {
    pub label: u16,
    pub size: u32,
}

impl Default for Merged {
    fn default() -> Self {
        Self {
            numbers: Vec::new(),
            tracks: Vec::new(),
            next_id: 1,
            votes: Vec::new(),
            last: Vec::new(),
            best_earlier: Vec::new(),
            best_label: Vec::new(),
            taken: Vec::new(),
            sums: Vec::new(),
        }
    }
}

impl Merged {
    /// Names this frame's regions, as many as `count`; `superpixels` are those of `parts`.
    pub fn name(&mut self, superpixels: &[Track], parts: impl Iterator<Item = Part> + Clone, count: usize) {
        std::mem::swap(&mut self.tracks, &mut self.last);
        refill(&mut self.tracks, count, Track::default());
        self.vote(superpixels, parts.clone());
        self.choose();
        for track in self.tracks.iter_mut().filter(|track| track.id == 0) {
            track.id = self.next_id;
            // 0 is no identity.
            self.next_id = self.next_id.wrapping_add(1).max(1);
        }
        let sums = &mut self.sums;
        refill(sums, count, ([0; 2], 0));
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
        self.numbers.extend(parts.map(|part| part.label));
    }

    fn vote(&mut self, superpixels: &[Track], parts: impl Iterator<Item = Part>) {
        let Self { numbers, votes, .. } = self;
        votes.clear();
        votes.extend(superpixels.iter().zip(parts).filter_map(|(track, part)| {
            let earlier = numbers[track.from? as usize];
            Some((u32::from(earlier), u32::from(part.label), u64::from(part.size)))
        }));
        votes.sort_unstable();
        votes.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            kept.2 += if same { next.2 } else { 0 };
            same
        });
    }

    fn choose(&mut self) {
        let Self { tracks, votes, last, best_earlier, best_label, taken, .. } = self;
        let key = |n: u64, index: u32| n << 32 | u64::from(u32::MAX - index);
        for _ in 0..MATCH_ROUNDS {
            refill(best_earlier, tracks.len(), 0);
            refill(best_label, last.len(), 0);
            for &(earlier, label, n) in &*votes {
                let (there, back) = (&mut best_earlier[label as usize], &mut best_label[earlier as usize]);
                *there = key(n, earlier).max(*there);
                *back = key(n, label).max(*back);
            }
            for &(earlier, label, n) in &*votes {
                if best_earlier[label as usize] == key(n, earlier)
                    && best_label[earlier as usize] == key(n, label)
                {
                    let (track, before) = (&mut tracks[label as usize], &last[earlier as usize]);
                    (track.id, track.age, track.from) = (before.id, before.age + 1, Some(earlier));
                }
            }
            // Both ends of a pair that united are taken: votes for them count no more.
            refill(taken, last.len(), false);
            tracks.iter().filter_map(|track| track.from).for_each(|earlier| taken[earlier as usize] = true);
            votes.retain(|&(earlier, label, _)| tracks[label as usize].id == 0 && !taken[earlier as usize]);
        }
    }
}
