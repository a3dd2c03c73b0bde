// SPDX-License-Identifier: MPL-2.0
//! Smooth outlines of the label maps of a stream.

use crate::cpu::Cpu;
use crate::error::Result;
use crate::image::{Geometry, Labels};
use crate::post::abstraction::OUTLINE_SMOOTHNESS;
use crate::post::abstraction::labels::LabelSmoother;

/// A smoother with its maps, made again where their size or its scale changes.
#[derive(Default)]
pub(super) struct Smooth {
    smoother: Option<(Geometry, f32, LabelSmoother)>,
    map: Vec<u16>,
    smoothed: Vec<u16>,
}

impl Smooth {
    /// Begins a map. The least scale is that of the drawing.
    pub fn begin(&mut self, width: u32, height: u32, scale: f32) -> Result<()> {
        let geometry = Geometry::new(width, height)?;
        let scale = scale.max(OUTLINE_SMOOTHNESS.min);
        if !matches!(&self.smoother, Some((of, at, _)) if (*of, *at) == (geometry, scale)) {
            self.smoother = Some((geometry, scale, LabelSmoother::new(&Cpu::new(0)?, geometry, scale)?));
        }
        self.map.clear();
        self.smoothed.resize(geometry.pixels(), 0);
        Ok(())
    }

    /// Adds a row of little-endian labels.
    pub fn add_row(&mut self, row: &[u8]) {
        self.map.extend(row.as_chunks().0.iter().map(|&label| u16::from_le_bytes(label)));
    }

    /// Smooths the map, and passes on its rows of little-endian labels.
    pub fn for_each_row(&mut self, mut pass: impl FnMut(&[u8])) -> Result<()> {
        let Some((geometry, _, smoother)) = &mut self.smoother else { return Ok(()) };
        let width = geometry.width() as usize;
        let labels = Labels::new(*geometry, &mut self.map, width)?;
        smoother.smooth(&labels, &mut Labels::new(*geometry, &mut self.smoothed, width)?)?;
        self.smoothed.iter_mut().for_each(|label| *label = label.to_le());
        self.smoothed.chunks_exact(width).for_each(|row| pass(bytemuck::cast_slice(row)));
        Ok(())
    }
}
