// SPDX-License-Identifier: MPL-2.0
//! Label maps with smooth outlines: the regions of the drawing, without its colors.

use super::cpu::distance_of;
use super::outline::{HEIGHT, Tile, TopRow, WIDTH};
use super::paint::Paint;
use super::rule::{Rule, WIDE_WHOLE};
use super::{OUTLINE_SMOOTHNESS, Params};
use crate::color::Yuv;
use crate::cpu::Cpu;
use crate::cpu::memory::{self, Array};
use crate::error::{Error, Result};
use crate::image::{FrameInfo, Geometry, Labels, NO_LABEL, PixelFormat};
use crate::parallel::prelude::*;
use crate::post::runs::{for_each_change, for_each_difference, for_each_run};

/// Name of its memory in errors.
const REGIONS: &str = "outlines of labels";

/// Smooths the outlines of label maps of one size.
///
/// A pixel gets the label that weighs most around it as in the drawing `overlay=abstraction`, of whose outlines only corners of high
/// contrast differ, since a label map has no colors. Thin regions keep their width. Labels stay the numbers that they are; a region
/// may fall into parts, and one of a few pixels may go. Pixels outside of a mask stay as they are.
pub struct LabelSmoother {
    cpu: Cpu,
    geometry: Geometry,
    rule: Rule,
    /// Pixels of each region, and sides behind which another one is.
    sizes: Array<[u32; 2]>,
    paints: Array<Paint>,
    /// One for each row of tiles.
    tiles: Array<Tile>,
}

impl LabelSmoother {
    /// Smooths at a scale of `outline_smoothness` px, 0.5 to 6, the standard deviation of a Gaussian.
    ///
    /// # Errors
    /// A scale out of range; too little memory.
    pub fn new(cpu: &Cpu, geometry: Geometry, outline_smoothness: f32) -> Result<Self> {
        let range = &OUTLINE_SMOOTHNESS;
        if !(range.min..=range.max).contains(&outline_smoothness) {
            return Err(Error::Param {
                name: range.about.name,
                value: outline_smoothness.into(),
                allowed: format!("{} to {}", range.min, range.max).into(),
            });
        }
        // Of any format: only its lines would be in it.
        let info = FrameInfo::new(geometry, PixelFormat::Gray8);
        let params = Params { outline_smoothness, ..Params::default() };
        Ok(Self {
            cpu: cpu.clone(),
            geometry,
            rule: Rule::new(&params, &info, &Yuv::new(&info)),
            sizes: Array::new(),
            paints: Array::new(),
            tiles: memory::filled(
                "tiles of labels",
                (geometry.height() as usize).div_ceil(HEIGHT),
                Tile::new(),
            )?,
        })
    }

    /// Writes the smoothed labels of a map.
    ///
    /// # Errors
    /// Maps of another size; too little memory.
    pub fn smooth(&mut self, labels: &Labels<'_>, smoothed: &mut Labels<'_>) -> Result<()> {
        for got in [labels.geometry(), smoothed.geometry()] {
            if got != self.geometry {
                return Err(Error::Labels { planned: self.geometry, got });
            }
        }
        self.measure(labels)?;
        let Self { cpu, geometry, rule, paints, tiles, .. } = self;
        let width = geometry.width() as usize;
        cpu.run(|| {
            smoothed.bands_mut(HEIGHT).zip(tiles.par_iter_mut()).enumerate().for_each(
                |(i, (mut band, tile))| {
                    for left in (0..width).step_by(WIDTH) {
                        let one = tile.load(labels, [left, i * HEIGHT], rule.radius);
                        if one.is_none() {
                            tile.find_outlines(rule, paints);
                        }
                        for y in 0..tile.height {
                            let out = &mut band.row_mut(y)[left..][..tile.width];
                            match one {
                                Some(label) => out.fill(label),
                                None => smooth_row(tile, rule, paints, y, out),
                            }
                        }
                    }
                },
            );
        });
        Ok(())
    }

    /// Measures the regions, for their weights.
    fn measure(&mut self, labels: &Labels<'_>) -> Result<()> {
        let height = self.geometry.height() as usize;
        let highest = (0..height)
            .flat_map(|y| labels.row(y))
            .filter(|&&label| label != NO_LABEL)
            .max()
            .map_or(0, |&label| usize::from(label) + 1);
        memory::refill(&mut self.sizes, REGIONS, highest, [0; 2])?;
        let mut add = |label: u16, what: usize, count: usize| {
            if let Some(size) = self.sizes.get_mut(usize::from(label)) {
                size[what] += count as u32;
            }
        };
        for y in 0..height {
            let row = labels.row(y);
            for_each_run(row, |run| add(row[run.start], 0, run.len()));
            let mut add_side = |a: u16, b: u16| {
                if a != NO_LABEL && b != NO_LABEL {
                    add(a, 1, 1);
                    add(b, 1, 1);
                }
            };
            for_each_change(row, |x| add_side(row[x - 1], row[x]));
            if y + 1 < height {
                let below = labels.row(y + 1);
                for_each_difference(row, below, |x| add_side(row[x], below[x]));
            }
        }
        memory::resize(&mut self.paints, REGIONS, highest, Paint::default())?;
        for (paint, &[area, sides]) in self.paints.iter_mut().zip(&self.sizes[..]) {
            paint.boost = self.rule.boost(area, sides);
        }
        Ok(())
    }
}

/// Labels of a row of a tile.
fn smooth_row(tile: &Tile, rule: &Rule, paints: &[Paint], y: usize, out: &mut [u16]) {
    let TopRow { weight: [most, second], label: [own, other] } = &tile.rows[y];
    for (x, (out, &label)) in out.iter_mut().zip(tile.own_row(y)).enumerate() {
        *out = match (label, second[x]) {
            (NO_LABEL, _) => NO_LABEL,
            (_, 0) => own[x],
            _ => {
                let boosts = [own[x], other[x]].map(|label| u32::from(paints[usize::from(label)].boost[0]));
                let weights = [most[x], second[x]].map(u32::from);
                if distance_of(&rule.far, weights, boosts, WIDE_WHOLE) < 0 { other[x] } else { own[x] }
            }
        };
    }
}
