// SPDX-License-Identifier: MPL-2.0
//! Priors: planes of numbers, of the frame's size or any other, that say which areas no region leaves.

use super::{Geometry, check_rows};
use crate::error::Result;

/// Numbers of a prior's samples. Only whether two are equal counts.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum PriorSamples<'a> {
    /// Of 8 bits.
    U8(&'a [u8]),
    /// Of 16 bits.
    U16(&'a [u16]),
    /// Of 32 bits.
    U32(&'a [u32]),
}

/// A label map from elsewhere, as of a network, whose borders no region crosses; see
/// [`Frame::with_prior`](super::Frame::with_prior).
#[derive(Debug, Clone, Copy)]
pub struct Prior<'a> {
    samples: PriorSamples<'a>,
    geometry: Geometry,
    stride: usize,
}

impl<'a> Prior<'a> {
    /// Wraps samples that live elsewhere.
    ///
    /// Shapes: `samples`: `geometry` of them, in rows of `stride` samples, the last row may end at its last one.
    ///
    /// # Errors
    ///
    /// [`Error::Plane`](crate::error::Error::Plane) or [`Error::Stride`](crate::error::Error::Stride) where the plane or its stride is
    /// too short.
    pub fn new(samples: PriorSamples<'a>, geometry: Geometry, stride: usize) -> Result<Self> {
        let count = match samples {
            PriorSamples::U8(samples) => samples.len(),
            PriorSamples::U16(samples) => samples.len(),
            PriorSamples::U32(samples) => samples.len(),
        };
        check_rows("prior", count, stride, geometry.width as usize, geometry.height as usize)?;
        Ok(Self { samples, geometry, stride })
    }

    /// Its size in samples.
    #[cfg(feature = "cuda")]
    pub(crate) fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Samples from a row to the next.
    #[cfg(feature = "cuda")]
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// Bytes of a sample, and the samples as bytes.
    #[cfg(feature = "cuda")]
    pub(crate) fn bytes(&self) -> (u32, &'a [u8]) {
        match self.samples {
            PriorSamples::U8(samples) => (1, samples),
            PriorSamples::U16(samples) => (2, bytemuck::cast_slice(samples)),
            PriorSamples::U32(samples) => (4, bytemuck::cast_slice(samples)),
        }
    }

    /// Writes the numbers of a frame's row `y`, by [`sample_of`].
    pub(crate) fn write_row(&self, frame: Geometry, y: usize, out: &mut [u32]) {
        let row = sample_of(y as i64, frame.height.into(), self.geometry.height);
        let columns = row * self.stride..row * self.stride + self.geometry.width as usize;
        match self.samples {
            PriorSamples::U8(samples) => scale_row(&samples[columns], out),
            PriorSamples::U16(samples) => scale_row(&samples[columns], out),
            PriorSamples::U32(samples) => scale_row(&samples[columns], out),
        }
    }
}

/// The index of the sample, of `samples`, in which the center of pixel `at` of `pixels` lies. On a border it is the later one.
pub(crate) fn sample_of(at: i64, pixels: i64, samples: u32) -> usize {
    ((2 * at + 1) * i64::from(samples) / (2 * pixels)) as usize
}

/// Scales a row of samples to one of pixels as [`sample_of`] does, without a division for each.
fn scale_row<T: Copy + Into<u32>>(samples: &[T], out: &mut [u32]) {
    let (step, one) = (samples.len(), out.len());
    if step == one {
        out.iter_mut().zip(samples).for_each(|(out, &sample)| *out = sample.into());
        return;
    }
    // (2x + 1) w = 2W index + rest.
    let (mut index, mut rest) = (step / (2 * one), step % (2 * one));
    let (whole, part) = (2 * step / (2 * one), 2 * step % (2 * one));
    for out in out {
        *out = samples[index].into();
        index += whole;
        rest += part;
        if rest >= 2 * one {
            rest -= 2 * one;
            index += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_have_the_sample_that_their_center_lies_in() {
        let sides = [1, 2, 3, 5, 8, 9, 16, 31];
        for w in sides {
            for pixels in sides {
                let samples: Vec<u16> = (0..w + 2).map(|x| 7 * x as u16).collect();
                let stride = w as usize + 2;
                let geometry = Geometry::new(w, 1).unwrap();
                let prior = Prior::new(PriorSamples::U16(&samples), geometry, stride).unwrap();
                let mut row = vec![u32::MAX; pixels as usize];
                prior.write_row(Geometry::new(pixels, 3).unwrap(), 2, &mut row);
                let wanted: Vec<u32> = (0..pixels).map(|x| 7 * ((2 * x + 1) * w / (2 * pixels))).collect();
                assert_eq!(row, wanted, "{w} {pixels}");
            }
        }
        let samples: Vec<u8> = (0..23).collect();
        let prior = Prior::new(PriorSamples::U8(&samples), Geometry::new(3, 6).unwrap(), 4).unwrap();
        for y in 0..9 {
            let mut row = [0; 1];
            prior.write_row(Geometry::new(1, 9).unwrap(), y, &mut row);
            assert_eq!(row, [4 * ((2 * y as u32 + 1) * 6 / 18) + 1], "{y}");
        }
    }

    #[test]
    fn planes_that_are_too_short_are_refused() {
        let geometry = Geometry::new(4, 3).unwrap();
        let samples = [0u32; 13];
        assert!(Prior::new(PriorSamples::U32(&samples), geometry, 4).is_ok());
        for (count, stride) in [(11, 4), (13, 5), (13, 3), (13, usize::MAX), (0, 4)] {
            assert!(
                Prior::new(PriorSamples::U32(&samples[..count]), geometry, stride).is_err(),
                "{count} {stride}"
            );
        }
    }
}
