// SPDX-License-Identifier: MPL-2.0
//! Masks that an application gives, and how much of each region they cover.

use std::sync::Arc;

use crate::image::Geometry;
use crate::image::prior::sample_of;
use crate::video_map::{Reason, VideoMap};

/// A mask of any size, over the whole frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GivenMask {
    geometry: Geometry,
    /// True inside, rows without padding.
    inside: Arc<[bool]>,
}

impl GivenMask {
    /// Copies the mask of a sample: GRAY8, inside where it is not 0.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn of(sample: &gst::SampleRef) -> Result<Self, Reason> {
        let caps = sample.caps().ok_or("the sample has no caps")?;
        let info = gst_video::VideoInfo::from_caps(caps).map_err(|_| format!("{caps} is no video"))?;
        if info.format() != gst_video::VideoFormat::Gray8 {
            return Err(format!("the mask is {}, not GRAY8; convert it", info.format()));
        }
        let geometry = Geometry::new(info.width(), info.height()).map_err(|error| error.to_string())?;
        let buffer = sample.buffer().ok_or("the sample has no buffer")?;
        let (width, rows) = (geometry.width as usize, geometry.height as usize);
        let map = VideoMap::read(buffer, &info, std::iter::once((width, rows)))?;
        let (bytes, stride) = (map.slices()[0], map.strides()[0]);
        let inside =
            bytes.chunks(stride).take(rows).flat_map(|row| row[..width].iter().map(|value| *value != 0));
        Ok(Self { geometry, inside: inside.collect() })
    }

    /// Pixels of each of `regions` that are inside. A pixel has the value of the sample that its center lies in.
    pub fn counts(&self, labels: &[u16], frame: Geometry, regions: usize) -> Vec<u32> {
        let mut counts = vec![0; regions];
        let (width, own_width) = (frame.width as usize, self.geometry.width as usize);
        let columns: Vec<usize> =
            (0..width).map(|x| sample_of(x as i64, frame.width.into(), self.geometry.width)).collect();
        for (y, row) in labels.chunks_exact(width).enumerate() {
            let from = sample_of(y as i64, frame.height.into(), self.geometry.height) * own_width;
            for (&label, &column) in row.iter().zip(&columns) {
                if let (true, Some(count)) = (self.inside[from + column], counts.get_mut(usize::from(label)))
                {
                    *count += 1;
                }
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_are_counted_by_the_sample_that_they_lie_in() {
        let geometry = Geometry::new(2, 1).unwrap();
        let mask = GivenMask { geometry, inside: [false, true].into() };
        // The middle column of five lies on the border, and is of the later sample.
        let labels = [0, 1, 1, 2, u16::MAX, 0, 0, 0, 2, 2];
        assert_eq!(mask.counts(&labels, Geometry::new(5, 2).unwrap(), 3), [1, 1, 3]);
    }
}
