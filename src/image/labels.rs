// SPDX-License-Identifier: MPL-2.0
//! Label planes: one u16 a pixel.

use super::{Geometry, check_rows};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;

/// Label of pixels that belong to no region: those outside of a mask.
pub const NO_LABEL: u16 = u16::MAX;

/// A label plane to write: one u16 a pixel.
#[derive(Debug)]
pub struct Labels<'a> {
    geometry: Geometry,
    stride: usize,
    data: &'a mut [u16],
}

impl<'a> Labels<'a> {
    /// Wraps `data`, rows of `stride` labels.
    ///
    /// # Errors
    ///
    /// [`Error::Stride`] where the stride is below the width, [`Error::Plane`] where the data is too short.
    pub fn new(geometry: Geometry, data: &'a mut [u16], stride: usize) -> Result<Self> {
        let Geometry { width, height } = geometry;
        check_rows("label plane", data.len(), stride, width as usize, height as usize)?;
        let whole = stride.saturating_mul(height as usize).min(data.len());
        Ok(Self { geometry, stride, data: &mut data[..whole] })
    }

    /// Size of the plane.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Refuses a plane of another size than the planned one.
    pub(crate) fn check(&self, planned: Geometry) -> Result<()> {
        let got = self.geometry;
        if planned == got { Ok(()) } else { Err(Error::Labels { planned, got }) }
    }

    /// Labels from one row to the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// All labels with the padding between rows.
    #[cfg(feature = "cuda")]
    pub(crate) fn whole_mut(&mut self) -> &mut [u16] {
        self.data
    }

    /// Row `y`, exactly `width` labels.
    #[inline]
    pub fn row(&self, y: usize) -> &[u16] {
        &self.data[y * self.stride..][..self.geometry.width as usize]
    }

    /// Row `y` for writing.
    #[inline]
    pub fn row_mut(&mut self, y: usize) -> &mut [u16] {
        &mut self.data[y * self.stride..][..self.geometry.width as usize]
    }

    /// Gives every pixel its own label.
    pub(crate) fn identity(&mut self) {
        let width = self.geometry.width as usize;
        for y in 0..self.geometry.height as usize {
            for (x, label) in self.row_mut(y).iter_mut().enumerate() {
                *label = (y * width + x) as u16;
            }
        }
    }

    /// Bands of `rows` rows each, without the padding of the last row.
    pub(crate) fn bands_mut(&mut self, rows: usize) -> impl IndexedParallelIterator<Item = LabelBand<'_>> {
        let (width, stride) = (self.geometry.width as usize, self.stride);
        self.data.par_chunks_mut(stride.saturating_mul(rows)).enumerate().map(move |(i, data)| LabelBand {
            first_row: i * rows,
            width,
            stride,
            data,
        })
    }
}

/// Some consecutive rows of a [`Labels`].
pub(crate) struct LabelBand<'a> {
    pub first_row: usize,
    width: usize,
    stride: usize,
    data: &'a mut [u16],
}

impl LabelBand<'_> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.data.len().div_ceil(self.stride)
    }

    /// Row `y`, counted from the band's first.
    #[inline]
    pub fn row_mut(&mut self, y: usize) -> &mut [u16] {
        &mut self.data[y * self.stride..][..self.width]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_every_row_of_the_label_plane_once() {
        for (width, height, stride) in [(1, 1, 1), (3, 7, 3), (3, 7, 5), (4, 8, 9)] {
            for band in [1, 2, 3, 100] {
                let geometry = Geometry { width, height };
                let mut data = vec![9; stride * (height as usize - 1) + width as usize + 6];
                let mut labels = Labels::new(geometry, &mut data, stride).unwrap();
                labels.identity();
                labels.bands_mut(band).for_each(|mut band| {
                    for y in 0..band.rows() {
                        let first = band.first_row + y;
                        band.row_mut(y).iter_mut().for_each(|label| *label += 100 * (1 + first as u16));
                    }
                });
                for y in 0..height as usize {
                    let row = |x: usize| (y * width as usize + x + 100 * (1 + y)) as u16;
                    assert!(
                        labels.row(y).iter().copied().eq((0..width as usize).map(row)),
                        "{geometry:?} {y}"
                    );
                }
                let padding = |i: &usize| i % stride >= width as usize || *i >= stride * height as usize;
                assert!((0..data.len()).filter(padding).all(|i| data[i] == 9), "{geometry:?} {stride}");
            }
        }
    }
}
