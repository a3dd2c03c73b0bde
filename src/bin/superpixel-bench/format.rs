// SPDX-License-Identifier: MPL-2.0
//! The formats that frames are laid out in.

use std::fmt;
use std::str::FromStr;

use gstsuperpixel::color::{Yuv, widen};
use gstsuperpixel::image::{FrameInfo, Geometry, PixelFormat};

/// A pixel format by GStreamer's name.
#[derive(Clone, Copy)]
pub struct Format(pub PixelFormat);

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = PixelFormat::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(text));
        let names = || PixelFormat::ALL.map(PixelFormat::name).join(", ");
        named.map(Self).ok_or_else(|| format!("{text} is none of {}", names()))
    }
}

impl Format {
    /// Lays out R, G, B, 255 as this format, plane behind plane; pixels that share a sample give the mean of their colors.
    pub fn pack(self, rgba: &[u8], size: Geometry) -> Vec<u8> {
        let info = FrameInfo::new(size, self.0);
        let (layout, yuv, bits) = (self.0.layout(), Yuv::new(&info), self.0.bits());
        let (width, height) = (size.width() as usize, size.height() as usize);
        let mut planes: Vec<Vec<u8>> = self.0.planes(size).map(|(row, rows)| vec![255; row * rows]).collect();
        let rows: Vec<usize> = self.0.planes(size).map(|(row, _)| row).collect();
        let own = |x: usize, y: usize| {
            let at = 4 * (y * width + x);
            let rgb = [0, 1, 2].map(|c| widen(rgba[at + c], bits));
            if self.0.is_rgb() { rgb } else { yuv.yuv_wide(rgb) }
        };
        for (c, channel) in layout.channels.iter().enumerate().take(if self.0.is_gray() { 1 } else { 3 }) {
            let [wide, high] = layout.shared(c).map(|log2| 1usize << log2);
            for (y, x) in
                (0..height).step_by(high).flat_map(|y| (0..width).step_by(wide).map(move |x| (y, x)))
            {
                let pixels =
                    (y..height.min(y + high)).flat_map(|y| (x..width.min(x + wide)).map(move |x| (x, y)));
                let (sum, n) =
                    pixels.fold((0u32, 0u32), |(sum, n), (x, y)| (sum + u32::from(own(x, y)[c]), n + 1));
                let at = y / high * rows[channel.plane] + x / wide * channel.step + channel.offset;
                channel.sample.set(&mut planes[channel.plane][at..], (sum / n) as u16);
            }
        }
        planes.concat()
    }

    /// The planes of what [`Format::pack`] gave, and the strides of their rows.
    pub fn split(self, size: Geometry, bytes: &[u8]) -> (Vec<&[u8]>, Vec<usize>) {
        let mut rest = bytes;
        let planes = self.0.planes(size).map(|(row, rows)| {
            let (plane, behind) = rest.split_at(row * rows);
            rest = behind;
            plane
        });
        (planes.collect(), self.0.planes(size).map(|(row, _)| row).collect())
    }

    /// The same to draw on.
    pub fn split_mut(self, size: Geometry, bytes: &mut [u8]) -> (Vec<&mut [u8]>, Vec<usize>) {
        let mut rest = bytes;
        let mut planes = Vec::new();
        for (row, rows) in self.0.planes(size) {
            let (plane, behind) = std::mem::take(&mut rest).split_at_mut(row * rows);
            planes.push(plane);
            rest = behind;
        }
        (planes, self.0.planes(size).map(|(row, _)| row).collect())
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0.name())
    }
}
