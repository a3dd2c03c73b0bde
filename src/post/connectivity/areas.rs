// SPDX-License-Identifier: MPL-2.0
//! The area of a prior that each region is of.

use super::components::COMPONENTS;
use super::strip::Strip;
use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::image::{Labels, NO_LABEL};

/// Lists the area that all pixels of a region have, where areas cut regions.
pub(super) fn list(strips: &[Strip], areas: &mut Array<u32>, count: usize) -> Result<()> {
    memory::refill(areas, COMPONENTS, count, 0)?;
    for strip in strips {
        for (&area, &label) in strip.areas.iter().zip(&strip.labels) {
            // Components outside of a mask, and regions past the last label, have none.
            if let Some(known) = areas.get_mut(usize::from(label)) {
                *known = area;
            }
        }
    }
    Ok(())
}

/// Pixels of a row with one label and area.
#[derive(Clone, Copy)]
struct Run {
    /// Label, then area.
    key: u64,
    pixels: u32,
}

/// Counts pixels by label and area.
#[derive(Default)]
pub(super) struct Vote {
    runs: Array<Run>,
}

impl Vote {
    /// Lists the area that most pixels of a region have, of equally many the lowest.
    pub fn count(
        &mut self,
        labels: &Labels<'_>,
        prior: &[u32],
        areas: &mut Array<u32>,
        count: usize,
    ) -> Result<()> {
        let (runs, width) = (&mut self.runs, labels.geometry().width as usize);
        runs.clear();
        for (y, numbers) in prior.chunks_exact(width).enumerate() {
            memory::reserve(runs, COMPONENTS, width)?;
            let (row, mut start) = (labels.row(y), 0);
            for x in 1..=width {
                let ends = x == width || row[x] != row[start] || numbers[x] != numbers[start];
                if ends && row[start] != NO_LABEL {
                    let key = u64::from(row[start]) << 32 | u64::from(numbers[start]);
                    runs.push(Run { key, pixels: (x - start) as u32 });
                }
                start = if ends { x } else { start };
            }
        }
        runs.sort_unstable_by_key(|run| run.key);
        memory::refill(areas, COMPONENTS, count, 0)?;
        let mut best = (usize::MAX, 0);
        for same in runs.chunk_by(|one, next| one.key == next.key) {
            let (label, area) = ((same[0].key >> 32) as usize, same[0].key as u32);
            let pixels = same.iter().map(|run| run.pixels).sum::<u32>();
            if best.0 != label || pixels > best.1 {
                best = (label, pixels);
                areas[label] = area;
            }
        }
        Ok(())
    }
}
