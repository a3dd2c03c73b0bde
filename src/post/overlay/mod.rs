// SPDX-License-Identifier: MPL-2.0
//! Stage `overlay`: draws boundaries or false colors into the frame. Alpha and padding bytes do not change.
//!
//! A pixel is on the thin boundary if its right or lower neighbor has another label. Lines of width w cover the pixels
//! whose window of `w/2` (rounded down) pixels left and above to `w/2` (up) less one right and below holds a thin
//! boundary pixel, so a line stays centered on the crack. Blending: `(a*color + (255-a)*sample + 127) / 255`. With 4:2:0
//! a line is drawn on a chroma sample if any of its luma pixels is on it, and a fill gives a chroma sample the mean of
//! its pixels' colors, rounded half up. Colors given in 8 bits become `(2*w*c + 255) / 510` where white is `w`, 1023
//! or 65535; the bits of a drawn sample that do not count are zero.

use crate::color::{Yuv, widen};
use crate::image::FrameInfo;

pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;

/// Converts a color to the frame's own channels and bits.
pub(crate) fn native(info: &FrameInfo, yuv: &Yuv, rgb: [u8; 3]) -> [u16; 3] {
    yuv.native(info.format, rgb.map(|code| widen(code, info.format.bits())))
}

/// A sample with a color over it.
pub(crate) fn blend(sample: u16, color: u16, alpha: u8) -> u16 {
    let (sample, color, alpha) = (u32::from(sample), u32::from(color), u32::from(alpha));
    ((alpha * color + (255 - alpha) * sample + 127) / 255) as u16
}

/// A stable false color of a track id: well spread, never dark.
pub fn false_color(identity: u32) -> [u8; 3] {
    let mut h = identity.wrapping_add(1).wrapping_mul(0x9e37_79b1);
    h = (h ^ h >> 15).wrapping_mul(0x85eb_ca77);
    h = (h ^ h >> 13).wrapping_mul(0xc2b2_ae3d);
    h ^= h >> 16;
    [h, h >> 8, h >> 16].map(|v| (48 + (v & 0xff) * 207 / 255) as u8)
}
