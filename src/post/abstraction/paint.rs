// SPDX-License-Identifier: MPL-2.0
//! What a region is painted with: a plane of color in each channel, its weights and its mean color.

use super::rule::{PX, Rule};
use crate::buffers::cpu::RegionSums;
use crate::color::{ColorTables, Yuv, narrow, unpack};
use crate::image::FrameInfo;

/// Samples below which a region has no slope.
const LEAST_SAMPLES: u32 = 8;
/// Variance of positions in px² that is added in both directions: small regions have flatter planes.
const RIDGE: f64 = 4.0;
/// Bits of a code and its fraction together.
const CODE_BITS: u32 = 20;

/// Sums over the samples of a region, which are the pixels of every second column and row, in small frames all.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moments {
    pub x: u64,
    pub y: u64,
    pub xx: u64,
    pub xy: u64,
    pub yy: u64,
    /// Of each channel, in the frame's own codes.
    pub code: [u64; 3],
    pub x_code: [u64; 3],
    pub y_code: [u64; 3],
    /// 65535 without the least code, and the greatest code.
    pub low_gap: [u32; 3],
    pub high: [u32; 3],
    pub samples: u32,
    /// Sides of the region's pixels behind which another region is, of all pixels.
    pub sides: u32,
}

impl Moments {
    pub fn add(&mut self, other: &Self) {
        self.x += other.x;
        self.y += other.y;
        self.xx += other.xx;
        self.xy += other.xy;
        self.yy += other.yy;
        for c in 0..3 {
            self.code[c] += other.code[c];
            self.x_code[c] += other.x_code[c];
            self.y_code[c] += other.y_code[c];
            self.low_gap[c] = self.low_gap[c].max(other.low_gap[c]);
            self.high[c] = self.high[c].max(other.high[c]);
        }
        self.samples += other.samples;
        self.sides += other.sides;
    }
}

/// Scale of planes in frames of one size and format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlaneScale {
    /// Fraction bits of a code.
    pub fraction: u32,
    /// Largest slope, which keeps every value of a plane in the frame within 32 bits.
    pub steepest: i32,
}

impl PlaneScale {
    pub fn new(info: &FrameInfo) -> Self {
        let longest = info.geometry.width().max(info.geometry.height());
        Self { fraction: CODE_BITS - info.format.bits(), steepest: (1 << 29) / longest as i32 }
    }
}

/// A region's paint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Paint {
    /// Code at the middle, with half a code added.
    pub base: [i32; 3],
    /// Change of the code from column to column, and from row to row.
    pub slope_x: [i32; 3],
    pub slope_y: [i32; 3],
    /// Least and largest code.
    pub low: [u16; 3],
    pub high: [u16; 3],
    /// Column and row of the middle.
    pub middle: [u16; 2],
    /// Weights of the region at the wide and at the narrow scale.
    pub boost: [u16; 2],
    /// Color at the middle as a feature of `lab`.
    pub feature: u32,
    /// Earlier frames of the region's track.
    pub age: u32,
    /// Number of its color in the palette.
    pub color: u8,
}

impl Paint {
    /// One color.
    fn flat(mean: [u16; 3], fraction: u32) -> Self {
        let base = mean.map(|code| (i32::from(code) << fraction) + (1 << (fraction - 1)));
        Self { base, low: mean, high: mean, ..Self::default() }
    }

    /// Bends it to the plane of least squares through a region's samples, with `mean` at their centroid.
    ///
    /// Every operation is in the order written, so that a device gives the same bits.
    fn bend(&mut self, moments: &Moments, mean: [u16; 3], scale: PlaneScale) {
        if moments.samples < LEAST_SAMPLES {
            return;
        }
        let n = f64::from(moments.samples);
        let (x, y) = (moments.x as f64, moments.y as f64);
        let ridge = n * n * RIDGE;
        let xx = n * moments.xx as f64 - x * x + ridge;
        let yy = n * moments.yy as f64 - y * y + ridge;
        let xy = n * moments.xy as f64 - x * y;
        let determinant = xx * yy - xy * xy;
        let one = f64::from(1u32 << scale.fraction);
        let middle = self.middle.map(f64::from);
        let steepest = f64::from(scale.steepest);
        for (c, &mean) in mean.iter().enumerate() {
            let code = moments.code[c] as f64;
            let x_code = n * moments.x_code[c] as f64 - x * code;
            let y_code = n * moments.y_code[c] as f64 - y * code;
            let slope_x = (yy * x_code - xy * y_code) / determinant;
            let slope_y = (xx * y_code - xy * x_code) / determinant;
            let slope_x = (slope_x * one + 0.5).floor().clamp(-steepest, steepest);
            let slope_y = (slope_y * one + 0.5).floor().clamp(-steepest, steepest);
            let moved = slope_x * (middle[0] - x / n) + slope_y * (middle[1] - y / n);
            self.base[c] += (moved + 0.5).floor() as i32;
            (self.slope_x[c], self.slope_y[c]) = (slope_x as i32, slope_y as i32);
            self.low[c] = (u16::MAX - moments.low_gap[c] as u16).min(mean);
            self.high[c] = (moments.high[c] as u16).max(mean);
        }
    }

    /// The plane of a channel at a pixel, with its fraction.
    #[inline(always)]
    pub fn value(&self, channel: usize, x: usize, y: usize) -> i32 {
        let [dx, dy] = [x as i32 - i32::from(self.middle[0]), y as i32 - i32::from(self.middle[1])];
        self.base[channel] + self.slope_x[channel] * dx + self.slope_y[channel] * dy
    }

    /// The code of a channel at a pixel.
    #[inline(always)]
    pub fn code(&self, channel: usize, x: usize, y: usize, fraction: u32) -> u16 {
        let [low, high] = [self.low[channel], self.high[channel]].map(i32::from);
        (self.value(channel, x, y) >> fraction).clamp(low, high) as u16
    }

    /// How unlike the mean colors of two regions are, in 1/8 Delta E.
    #[inline(always)]
    pub fn contrast(&self, other: &Self) -> u32 {
        let (a, b) = (unpack(self.feature), unpack(other.feature));
        let square: u32 = a.iter().zip(b).map(|(a, b)| a.abs_diff(b).pow(2)).sum();
        // Below 2^24, so that the root is the same everywhere.
        (square as f32).sqrt() as u32
    }
}

/// Makes paints of frames of one format.
pub(crate) struct Mixer<'a> {
    pub rule: &'a Rule,
    pub info: &'a FrameInfo,
    pub yuv: &'a Yuv,
    pub lab: &'a ColorTables,
    pub scale: PlaneScale,
}

impl Mixer<'_> {
    /// The paint of a region by its sums over all pixels, its samples, and its color with the feature of that.
    pub fn paint(&self, sums: &RegionSums, moments: &Moments, (color, feature): ([u16; 3], u32)) -> Paint {
        let mut paint = Paint::flat(color, self.scale.fraction);
        let area = u64::from(sums.area.max(1));
        paint.middle = sums.position.map(|sum| ((2 * sum + area) / (2 * area)) as u16);
        paint.boost = self.rule.boost(sums.area, moments.sides);
        paint.feature = feature;
        if self.rule.shading {
            paint.bend(moments, color, self.scale);
        }
        paint
    }

    /// A color in the frame's channels as a feature of `lab`.
    pub fn feature(&self, color: [u16; 3]) -> u32 {
        let rgb = if self.info.format.is_rgb() { color } else { self.yuv.rgb_wide(color) };
        self.lab.feature(rgb.map(|code| narrow(code, self.info.format.bits())))
    }

    /// Adapts the color for contrasts to a paint that has changed.
    pub fn refresh(&self, paint: &mut Paint) {
        let [x, y] = paint.middle.map(usize::from);
        paint.feature = self.feature([0, 1, 2].map(|c| paint.code(c, x, y, self.scale.fraction)));
    }
}

/// Part of 256 that a value has gone from the first to the second of two.
#[inline(always)]
pub(crate) fn part(value: u32, [from, to]: [u32; 2]) -> u32 {
    (256 * value.saturating_sub(from) / (to - from)).min(PX as u32)
}
