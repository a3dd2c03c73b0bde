// SPDX-License-Identifier: MPL-2.0
//! A palette: a few colors that all regions are painted with, found in a frame and followed over a stream.

use std::cmp::Reverse;

use super::paint::Mixer;
use crate::color::unpack;
use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::image::FrameInfo;

/// Name of the palette in errors about memory.
const PALETTE: &str = "palette";
/// Most colors.
pub(crate) const MOST_COLORS: usize = 64;
/// Rounds in which regions choose colors and these become their means, where a palette is found.
const ROUNDS: usize = 8;
/// A region keeps its color until another one's squared distance is below this many quarters of that one's.
const KEPT_QUARTERS: u32 = 3;
/// The color of a region that has none.
pub(crate) const NO_COLOR: u8 = u8::MAX;

/// A region as the palette sees it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Candidate {
    /// Mean color in the frame's own channels, and as a feature of `lab`.
    pub code: [u16; 3],
    pub feature: u32,
    /// Pixels.
    pub area: u32,
    /// The color of its track in the last frame, then the one in this.
    pub color: u8,
}

/// The most that a color's codes move by in a frame: one of 8 bits.
pub(crate) fn step(info: &FrameInfo) -> u32 {
    1 << (info.format.bits() - 8)
}

/// The squared difference of two features. Below 2^24.
fn difference(a: u32, b: u32) -> u32 {
    unpack(a).iter().zip(unpack(b)).map(|(a, b)| a.abs_diff(b).pow(2)).sum()
}

/// Colors over time.
#[derive(Default)]
pub(super) struct Palette {
    /// In the frame's own channels, and as features.
    colors: Vec<([u16; 3], u32)>,
    candidates: Array<Candidate>,
    /// Squared difference of each region to the nearest color.
    differences: Array<u32>,
}

impl Palette {
    /// Memory for the regions of a frame, which the caller describes.
    pub fn candidates(&mut self, count: usize) -> Result<&mut [Candidate]> {
        memory::resize(&mut self.candidates, PALETTE, count, Candidate::default())?;
        memory::resize(&mut self.differences, PALETTE, count, 0)?;
        let more = MOST_COLORS - self.colors.len();
        memory::reserve(&mut self.colors, PALETTE, more)?;
        Ok(&mut self.candidates)
    }

    /// Chooses a color for each region: of those of the last frame, which move by at most a `step`, or where the frame does not follow it of
    /// at most `size` new ones.
    pub fn choose(&mut self, mixer: &Mixer<'_>, size: usize, step: u32, follows: bool) {
        if follows {
            self.assign(true);
            self.move_colors(mixer, step);
            return;
        }
        self.find(size);
        for _ in 0..ROUNDS {
            self.assign(false);
            self.move_colors(mixer, u32::MAX);
        }
        self.assign(false);
    }

    /// The color of a region: its number, its codes and its feature.
    pub fn of(&self, region: usize) -> (u8, [u16; 3], u32) {
        let number = self.candidates[region].color;
        let (code, feature) = self.colors[usize::from(number)];
        (number, code, feature)
    }

    /// Begins with the color of the largest region, then always that of the region which most area and difference speak for.
    fn find(&mut self, size: usize) {
        let Self { colors, candidates, differences } = self;
        colors.clear();
        differences.fill(u32::MAX);
        let mut best = (0..candidates.len()).max_by_key(|&i| (candidates[i].area, Reverse(i)));
        while let Some(region) = best.filter(|_| colors.len() < size) {
            let Candidate { code, feature, .. } = candidates[region];
            colors.push((code, feature));
            for (least, other) in differences.iter_mut().zip(&candidates[..]) {
                *least = difference(other.feature, feature).min(*least);
            }
            let weight = |i: usize| u64::from(candidates[i].area) * u64::from(differences[i]);
            best = (0..candidates.len()).max_by_key(|&i| (weight(i), Reverse(i))).filter(|&i| weight(i) > 0);
        }
    }

    /// Gives each region the nearest color, the first of equal ones, or the one that it has had.
    fn assign(&mut self, keeps: bool) {
        for candidate in &mut self.candidates[..] {
            let to = |(_, feature): &([u16; 3], u32)| difference(*feature, candidate.feature);
            let nearest = self.colors.iter().map(to).enumerate().min_by_key(|&(i, far)| (far, i));
            let Some((nearest, far)) = nearest else { continue };
            let last = self.colors.get(usize::from(candidate.color)).map(to);
            if last.is_none_or(|last| !keeps || 4 * far < KEPT_QUARTERS * last) {
                candidate.color = nearest as u8;
            }
        }
    }

    /// Moves each color to the mean of its regions' pixels, by at most a `step` in each channel. One without regions stays.
    fn move_colors(&mut self, mixer: &Mixer<'_>, step: u32) {
        let mut sums = [([0u64; 3], 0u64); MOST_COLORS];
        for Candidate { code, area, color, .. } in &self.candidates[..] {
            let (sum, pixels) = &mut sums[usize::from(*color)];
            *pixels += u64::from(*area);
            sum.iter_mut().zip(code).for_each(|(sum, &code)| *sum += u64::from(*area) * u64::from(code));
        }
        for ((code, feature), (sum, pixels)) in self.colors.iter_mut().zip(sums) {
            if pixels == 0 {
                continue;
            }
            for (code, sum) in code.iter_mut().zip(sum) {
                let (mean, last) = (((2 * sum + pixels) / (2 * pixels)) as u32, u32::from(*code));
                *code = mean.clamp(last.saturating_sub(step), last.saturating_add(step)) as u16;
            }
            *feature = mixer.feature(*code);
        }
    }
}
