// SPDX-License-Identifier: MPL-2.0
//! Paints that ease from frame to frame: which earlier paint a region continues, and how far it goes from there.

use super::paint::{Paint, part};
use super::rule::{Rule, SHARP};
use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::image::{Geometry, Labels, NO_LABEL};
use crate::temporal::Track;

/// Side of the cells of which one pixel's label is kept for the next frame.
pub(crate) const CELL: usize = 8;
/// A share of regions with an earlier paint below which a frame is a cut: one in four.
pub(crate) const CUT_SHARE: usize = 4;

/// Name of the state in errors about memory.
const STATE: &str = "paints over time";

/// Cells of a frame, by column and row.
pub(crate) fn cells(geometry: Geometry) -> [usize; 2] {
    [geometry.width(), geometry.height()].map(|side| (side as usize).div_ceil(CELL))
}

/// The pixel that stands for a cell, in one direction.
fn middle_of(cell: usize, side: u32) -> usize {
    (cell * CELL + CELL / 2).min(side as usize - 1)
}

impl Paint {
    /// This paint after it has gone `share` of 256 from an earlier one, or further where the colors differ much: a thing that is
    /// covered by another does not shine through.
    pub fn eased(&self, earlier: &Self, share: u32, fraction: u32) -> Self {
        let share = share.max(part(self.contrast(earlier), SHARP));
        let ease = |from: i32, to: i32| {
            from + (((i64::from(to) - i64::from(from)) * i64::from(share) + 128) >> 8) as i32
        };
        let step = |from: u16, to: u16| {
            let way = ((u32::from(to.abs_diff(from)) * share) >> 8).max(u32::from(from != to)) as u16;
            if to > from { from + way } else { from - way }
        };
        let mut eased = *self;
        for c in 0..3 {
            let from = earlier.value(c, usize::from(self.middle[0]), usize::from(self.middle[1]));
            let [low, high] = [earlier.low[c], earlier.high[c]].map(|code| i32::from(code) << fraction);
            eased.base[c] = ease(from.clamp(low, high + (1 << fraction) - 1), self.base[c]);
            eased.slope_x[c] = ease(earlier.slope_x[c], self.slope_x[c]);
            eased.slope_y[c] = ease(earlier.slope_y[c], self.slope_y[c]);
            eased.low[c] = step(earlier.low[c], self.low[c]);
            eased.high[c] = step(earlier.high[c], self.high[c]);
            // Steps of whole codes may stay behind the middle's color.
            let code = (eased.base[c] >> fraction) as u16;
            (eased.low[c], eased.high[c]) = (eased.low[c].min(code), eased.high[c].max(code));
        }
        for i in 0..2 {
            eased.boost[i] = step(earlier.boost[i], self.boost[i]);
        }
        eased
    }
}

/// Paints of the last frame, and where to find them.
#[derive(Default)]
pub(super) struct Steady {
    last: Array<Paint>,
    /// Track id and label of each region of the last frame, in the order of track ids.
    names: Array<(u32, u16)>,
    /// The label of a pixel of each cell.
    cells: Array<u16>,
}

impl Steady {
    /// Forgets the last frame.
    pub fn forget(&mut self) {
        self.last.clear();
    }

    /// The paint of a track in the last frame.
    pub fn named(&self, track: &Track) -> Option<Paint> {
        if self.last.is_empty() {
            return None;
        }
        let at = self.names.binary_search_by_key(&track.id, |(id, _)| *id).ok()?;
        // A gap in its ages: other frames came between.
        let paint = &self.last[usize::from(self.names[at].1)];
        (track.age == paint.age.wrapping_add(1)).then_some(*paint)
    }

    /// Returns true if a frame of these tracks continues the last one, and is no cut.
    pub fn continues(&self, tracks: &[Track]) -> bool {
        let matched = tracks.iter().filter(|track| self.named(track).is_some()).count();
        !self.last.is_empty() && CUT_SHARE * matched >= tracks.len()
    }

    /// Lets the paints of a frame that continues the last one follow those of it.
    pub fn ease(
        &self,
        paints: &mut [Paint],
        tracks: &[Track],
        geometry: Geometry,
        rule: &Rule,
        fraction: u32,
    ) {
        for (paint, track) in paints.iter_mut().zip(tracks) {
            if let Some(earlier) = self.named(track).or_else(|| self.at(paint.middle, geometry)) {
                *paint = paint.eased(&earlier, rule.share, fraction);
            }
        }
    }

    /// The last frame's paint at a pixel.
    fn at(&self, [x, y]: [u16; 2], geometry: Geometry) -> Option<Paint> {
        let [columns, _] = cells(geometry);
        let label = self.cells[usize::from(y) / CELL * columns + usize::from(x) / CELL];
        if label == NO_LABEL { None } else { self.last.get(usize::from(label)).copied() }
    }

    /// Keeps what the next frame asks for.
    pub fn keep(&mut self, paints: &[Paint], tracks: &[Track], labels: &Labels<'_>) -> Result<()> {
        memory::resize(&mut self.last, STATE, paints.len(), Paint::default())?;
        self.last.copy_from_slice(paints);
        memory::resize(&mut self.names, STATE, tracks.len(), (0, 0))?;
        for (label, (name, track)) in self.names.iter_mut().zip(tracks).enumerate() {
            *name = (track.id, label as u16);
        }
        self.names.sort_unstable();
        let geometry = labels.geometry();
        let [columns, rows] = cells(geometry);
        memory::resize(&mut self.cells, STATE, columns * rows, NO_LABEL)?;
        for (row, cells) in self.cells.chunks_mut(columns).enumerate() {
            let labels = labels.row(middle_of(row, geometry.height()));
            for (column, cell) in cells.iter_mut().enumerate() {
                *cell = labels[middle_of(column, geometry.width())];
            }
        }
        Ok(())
    }
}
