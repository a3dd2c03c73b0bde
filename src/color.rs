// SPDX-License-Identifier: MPL-2.0
//! Color: converts code values to packed features, with integers and tables that all backends share.
//!
//! A feature is one u32: three channels of 10, 11 and 11 bits, lowest first. In `lab` a quantum is 1/8 Delta E in every
//! channel, with a and b offset by 1024; so no weight between channels is ever needed and sums are exact.

use once_cell::race::OnceBox;

use crate::error::{Error, Result};
use crate::image::{FrameInfo, PIECE, PixelFormat, YuvMatrix};
use crate::parameter::{About, choices};

/// Meaning of a feature's three channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ColorSpace {
    /// CIE L, a, b (D65) of sRGB. Quantum 1/8 Delta E.
    #[default]
    Lab,
    /// Lab computed without undoing the sRGB transfer curve, as gSLICr does. Quantum 1/8.
    LabGslicr,
    /// X, Y, Z computed without undoing the sRGB transfer curve, as gSLICr does. Quantum 1/1020 of white's Y.
    XyzGslicr,
    /// R', G', B'. Quantum 1/4 code value.
    Rgb,
}

/// The list of color spaces, which gives their names and the values of the element's property.
macro_rules! color_spaces {
    ($with:ident) => {
        $with!("ColorSpace", ColorSpace {
            Lab, "lab", "Lab: CIE L, a, b (D65) of sRGB";
            LabGslicr, "lab-gslicr", "Lab, gSLICr: L, a, b without undoing the sRGB curve, as gSLICr";
            XyzGslicr, "xyz-gslicr", "XYZ, gSLICr: X, Y, Z without undoing the sRGB curve, as gSLICr";
            Rgb, "rgb", "RGB: R', G', B' code values";
        });
    };
}
#[cfg(feature = "gst")]
pub(crate) use color_spaces;
color_spaces!(choices);

/// Color space of the differences.
pub const COLOR_SPACE: About =
    About::new("color-space", "Color space", "", "Color space of the differences (LSC: always Lab)");

impl ColorSpace {
    /// Every color space.
    pub const ALL: [Self; 4] = [Self::Lab, Self::LabGslicr, Self::XyzGslicr, Self::Rgb];

    /// Quanta of a feature per unit of color: of L, a and b, of a code value in `rgb`, and in `xyz-gslicr` of about
    /// 1/128 of white's Y.
    pub(crate) const fn quanta(self) -> f64 {
        match self {
            Self::Lab | Self::LabGslicr | Self::XyzGslicr => 8.0,
            Self::Rgb => 4.0,
        }
    }

    /// A feature near the middle of the gamut: scores are computed relative to it to keep them small.
    pub(crate) fn middle(self) -> [i32; 3] {
        match self {
            Self::Lab | Self::LabGslicr => [400, 1024, 1024],
            Self::XyzGslicr => [485, 510, 555],
            Self::Rgb => [510, 510, 510],
        }
    }
}

/// The channels of a feature.
#[inline(always)]
pub fn unpack(feature: u32) -> [u32; 3] {
    [feature & 0x3ff, (feature >> 10) & 0x7ff, feature >> 21]
}

#[inline(always)]
fn pack(channels: [i32; 3]) -> u32 {
    let [a, b, c] = channels;
    (a.clamp(0, 1023) | b.clamp(0, 2047) << 10) as u32 | (c.clamp(0, 2047) as u32) << 21
}

/// Feature of pixels outside of a mask: no color has it, in any space. It is not farther from colors than they are from
/// each other, so arithmetic that is exact for them stays exact.
pub(crate) const OUTSIDE: u32 = 1400 << 10 | 400 << 21;

/// Colors that are converted together.
pub(crate) const COLORS: usize = PIECE;
/// Most bits of a code value.
const MAX_BITS: u32 = 16;
/// Fewest bits of a code.
const LEAST_BITS: u32 = 8;
/// Number of bit depths that codes may have.
const WIDTHS: usize = (MAX_BITS - LEAST_BITS + 1) as usize;
const LINEAR_ONE: f64 = 65_535.0;
const MATRIX_ONE: i32 = 1 << 14;
const CURVE_ONE: f64 = 32_768.0;
const CURVE_LEN: usize = MATRIX_ONE as usize + 1;

/// Linear sRGB to XYZ (D65); the rows sum to the white point.
const XYZ: [[f64; 3]; 3] =
    [[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]];

/// Tables that convert R', G', B' codes to features.
pub struct ColorTables {
    space: ColorSpace,
    /// Code value to light, 65535 at white; in `rgb` to a channel of the feature. Entries past the last code are never
    /// touched, so they take no memory.
    linear: Box<[u16; 1 << MAX_BITS]>,
    #[cfg(feature = "cuda")]
    bits: u32,
    /// Rows in 1/16384, each summing to exactly that in the Lab spaces, so that gray has no chroma.
    matrix: [[i32; 3]; 3],
    /// The Lab curve f over light in 1/16384, 32768 at white.
    curve: Box<[u16; CURVE_LEN]>,
}

impl ColorTables {
    /// The tables of a color space for code values of 8 to 16 bits, computed once per process. Threads that need them
    /// at the same time each compute them, and one result is kept. A lock would be worse: another thread could hold it
    /// while the process forks.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`].
    pub fn shared(space: ColorSpace, bits: u32) -> Result<&'static Self> {
        static SHARED: [[OnceBox<ColorTables>; WIDTHS]; ColorSpace::ALL.len()] =
            [const { [const { OnceBox::new() }; WIDTHS] }; ColorSpace::ALL.len()];
        let bits = bits.clamp(LEAST_BITS, MAX_BITS);
        SHARED[space as usize][(bits - LEAST_BITS) as usize]
            .get_or_try_init(|| Self::with_bits(space, bits).map(Box::new))
    }

    /// Computes the tables of a color space for code values of 8 bits.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`].
    pub fn new(space: ColorSpace) -> Result<Self> {
        Self::with_bits(space, 8)
    }

    /// Computes the tables of a color space for code values of 8 to 16 bits.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`].
    pub fn with_bits(space: ColorSpace, bits: u32) -> Result<Self> {
        let bits = bits.clamp(LEAST_BITS, MAX_BITS);
        let white = f64::from((1u32 << bits) - 1);
        let linear_of = |code: usize| {
            let v = code as f64 / white;
            let value = match space {
                ColorSpace::Lab if v <= 0.04045 => v / 12.92 * LINEAR_ONE,
                ColorSpace::Lab => ((v + 0.055) / 1.055).powf(2.4) * LINEAR_ONE,
                ColorSpace::Rgb => v * 1020.0,
                _ => v * LINEAR_ONE,
            };
            value.round() as u16
        };
        let mut linear = table()?;
        linear[..1 << bits].iter_mut().enumerate().for_each(|(code, value)| *value = linear_of(code));
        let matrix = XYZ.map(|row| {
            let white: f64 = match space {
                ColorSpace::XyzGslicr => 1.0,
                _ => row.iter().sum(),
            };
            let mut fixed = row.map(|v| (v / white * f64::from(MATRIX_ONE)).round() as i32);
            if space != ColorSpace::XyzGslicr {
                fixed[1] += MATRIX_ONE - fixed.iter().sum::<i32>();
            }
            fixed
        });
        let curve_of = |i: usize| {
            let t = i as f64 / f64::from(MATRIX_ONE);
            let f = if t > 0.008856 { t.cbrt() } else { (903.3 * t + 16.0) / 116.0 };
            (f * CURVE_ONE).round() as u16
        };
        let mut curve: Box<[u16; CURVE_LEN]> = table()?;
        curve.iter_mut().enumerate().for_each(|(i, value)| *value = curve_of(i));
        Ok(Self {
            space,
            linear,
            #[cfg(feature = "cuda")]
            bits,
            matrix,
            curve,
        })
    }

    /// Converts a color of 8-bit codes to a feature.
    ///
    /// Source: CIE 15 with the sRGB primaries; integer arithmetic, every step rounds half up.
    #[inline(always)]
    pub fn feature(&self, rgb: [u8; 3]) -> u32 {
        self.feature_wide(rgb.map(u16::from))
    }

    /// Converts a color to a feature; codes have the bits that the tables are for.
    #[inline(always)]
    pub fn feature_wide(&self, rgb: [u16; 3]) -> u32 {
        self.feature_of_light(rgb.map(|code| self.light(code)))
    }

    #[inline(always)]
    fn feature_of_light(&self, light: [i32; 3]) -> u32 {
        match self.space {
            ColorSpace::Rgb => pack(light),
            ColorSpace::XyzGslicr => {
                pack(self.xyz(light).map(|v| (1020 * v + (MATRIX_ONE >> 1)) / MATRIX_ONE))
            }
            ColorSpace::Lab | ColorSpace::LabGslicr => pack(lab(self.xyz(light).map(|v| self.curved(v)))),
        }
    }

    /// Converts colors given as light to features, step by step for all of them: all steps except the table look-ups
    /// are vectorized.
    // The channels lie in arrays of their own.
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    pub(crate) fn features(&self, light: &[[i32; COLORS]; 3]) -> [u32; COLORS] {
        let color =
            |channels: &[[i32; COLORS]; 3], i: usize| [channels[0][i], channels[1][i], channels[2][i]];
        if !matches!(self.space, ColorSpace::Lab | ColorSpace::LabGslicr) {
            return std::array::from_fn(|i| self.feature_of_light(color(light, i)));
        }
        let mut xyz = [[0; COLORS]; 3];
        for i in 0..COLORS {
            [xyz[0][i], xyz[1][i], xyz[2][i]] = self.xyz(color(light, i));
        }
        let mut curved = [[0; COLORS]; 3];
        for (curved, xyz) in curved.iter_mut().zip(&xyz) {
            for i in 0..COLORS {
                curved[i] = self.curved(xyz[i]);
            }
        }
        let mut features = [0; COLORS];
        for i in 0..COLORS {
            features[i] = pack(lab(color(&curved, i)));
        }
        features
    }

    /// Light of a code, 65535 at white; in `rgb` the channel of the feature.
    #[inline(always)]
    pub(crate) fn light(&self, code: u16) -> i32 {
        i32::from(self.linear[usize::from(code)])
    }

    /// Converts a number to 1/16384, rounded.
    #[inline(always)]
    fn xyz(&self, light: [i32; 3]) -> [i32; 3] {
        self.matrix.map(|row| (row[0] * light[0] + row[1] * light[1] + row[2] * light[2] + (1 << 15)) >> 16)
    }

    #[inline(always)]
    fn curved(&self, light: i32) -> i32 {
        i32::from(self.curve[(light as usize).min(CURVE_LEN - 1)])
    }
}

/// Allocates a table of zeros: pages that are never written take no memory.
fn table<const LEN: usize>() -> Result<Box<[u16; LEN]>> {
    let refused = Error::Memory { what: "color tables", bytes: LEN * size_of::<u16>() };
    let items = bytemuck::allocation::try_zeroed_slice_box::<u16>(LEN).map_err(|()| refused.clone())?;
    items.try_into().map_err(|_| refused)
}

/// Computes L, a, b in quanta from the curve's X, Y, Z.
#[inline(always)]
fn lab([fx, fy, fz]: [i32; 3]) -> [i32; 3] {
    let round = |v: i32| (v + (1 << 14)) >> 15;
    [
        round(8 * 116 * fy - 8 * 16 * 32_768),
        round(8 * 500 * (fx - fy)) + 1024,
        round(8 * 200 * (fy - fz)) + 1024,
    ]
}

#[cfg(feature = "cuda")]
impl ColorTables {
    /// Words for the device, in its byte order and padded to whole quads: the Lab curve, then the light of all codes.
    pub(crate) fn device_words(&self) -> Vec<u32> {
        let mut items = self.curve.to_vec();
        items.resize(items.len().next_multiple_of(2), 0);
        items.extend_from_slice(&self.linear[..1 << self.bits]);
        items.resize(items.len().next_multiple_of(8), 0);
        items.chunks_exact(2).map(|pair| u32::from(pair[0]) | u32::from(pair[1]) << 16).collect()
    }

    /// The space as kernels/features.cuh numbers it, and the matrix.
    pub(crate) fn device_space(&self) -> (u32, [[i32; 3]; 3]) {
        let space = match self.space {
            ColorSpace::Lab | ColorSpace::LabGslicr => 0,
            ColorSpace::XyzGslicr => 1,
            ColorSpace::Rgb => 2,
        };
        (space, self.matrix)
    }
}

/// Converts codes to linear light and back, by sRGB's curve, as for Lab.
#[derive(Debug, Clone)]
pub struct LinearLight {
    /// Light of each code, 65535 at white. Never falls, and rises with every code of 8 or 10 bits.
    of_code: &'static [u16],
}

impl LinearLight {
    /// Makes the conversion for code values of 8 to 16 bits.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`].
    pub fn new(bits: u32) -> Result<Self> {
        Ok(Self { of_code: &ColorTables::shared(ColorSpace::Lab, bits)?.linear[..1 << bits] })
    }

    /// Converts a code to light.
    #[inline(always)]
    pub fn of(&self, code: u16) -> u16 {
        self.of_code[usize::from(code)]
    }

    /// The code of nearest light; of several the lowest.
    pub fn code(&self, light: u16) -> u16 {
        let first = |light: u16| self.of_code.partition_point(|&l| l < light);
        let above = first(light).min(self.of_code.len() - 1);
        let [below, above] = [self.of_code[above.saturating_sub(1)], self.of_code[above]];
        // Dark codes of 16 bits share their light with others.
        first(if above.abs_diff(light) < below.abs_diff(light) { above } else { below }) as u16
    }

    /// Light of all codes, as words in the device's byte order.
    #[cfg(feature = "cuda")]
    pub(crate) fn device_words(&self) -> Vec<u32> {
        self.of_code.chunks_exact(2).map(|pair| u32::from(pair[0]) | u32::from(pair[1]) << 16).collect()
    }
}

/// Converts mean channels in quanta to L, a, b, for a feature in a Lab space.
pub(crate) fn lab_of_sums(sums: [u64; 3], count: u32) -> [f32; 3] {
    let mean = sums.map(|s| s as f64 / f64::from(count.max(1)));
    [mean[0], mean[1] - 1024.0, mean[2] - 1024.0].map(|v| (v / ColorSpace::Lab.quanta()) as f32)
}

/// An 8-bit code as a code of the same color in `bits`, rounded half up.
pub fn widen(code: u8, bits: u32) -> u16 {
    let white = (1u32 << bits) - 1;
    ((2 * white * u32::from(code) + 255) / 510) as u16
}

/// A code of `bits` as an 8-bit code of the same color, rounded half up.
pub fn narrow(code: u16, bits: u32) -> u8 {
    let white = (1u32 << bits) - 1;
    ((510 * u32::from(code) + white) / (2 * white)) as u8
}

/// R'G'B' from and to Y'CbCr codes in 16-bit fixed point, all in the bits of the frame's format; also gray, as luma with
/// neutral chroma.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Yuv {
    /// Code without chroma: half of the range of codes.
    neutral: i32,
    luma_offset: i32,
    to_rgb: [i32; 5],
    to_yuv: [[i32; 3]; 3],
}

impl Yuv {
    /// The conversion for a frame's matrix and range.
    pub fn new(frame: &FrameInfo) -> Self {
        // Gray carries no chroma, so only the luma weights matter, and those are BT.601's by convention.
        let matrix = if frame.format.is_gray() { YuvMatrix::Bt601 } else { frame.matrix };
        let (kr, kb) = matrix.kr_kb();
        let kg = 1.0 - kr - kb;
        let bits = frame.format.bits();
        let (white, unit) = (f64::from((1u32 << bits) - 1), 1 << (bits - 8));
        let (offset, luma, chroma) = if frame.full_range {
            (0, white, white)
        } else {
            (16 * unit, f64::from(219 * unit), f64::from(224 * unit))
        };
        let fixed = |v: f64| (v * 65_536.0).round() as i32;
        let (to_luma, to_chroma) = (luma / white, chroma / white);
        let row = |weights: [f64; 3], last: usize| {
            let mut fixed_row = weights.map(fixed);
            // The rounding error goes to the largest weight: white stays white and gray neutral.
            let sum = fixed(weights.iter().sum());
            fixed_row[last] += sum - fixed_row.iter().sum::<i32>();
            fixed_row
        };
        let blue = 0.5 / (1.0 - kb) * to_chroma;
        let red = 0.5 / (1.0 - kr) * to_chroma;
        Self {
            neutral: 128 * unit,
            luma_offset: offset,
            to_rgb: [
                fixed(1.0 / to_luma),
                fixed(2.0 * (1.0 - kr) / to_chroma),
                fixed(-2.0 * (1.0 - kb) * kb / kg / to_chroma),
                fixed(-2.0 * (1.0 - kr) * kr / kg / to_chroma),
                fixed(2.0 * (1.0 - kb) / to_chroma),
            ],
            to_yuv: [
                row([kr * to_luma, kg * to_luma, kb * to_luma], 1),
                row([-kr * blue, -kg * blue, (1.0 - kb) * blue], 1),
                row([(1.0 - kr) * red, -kg * red, -kb * red], 1),
            ],
        }
    }

    /// Neutral code, luma offset, matrix to R'G'B', matrix from it; for the device.
    #[cfg(feature = "cuda")]
    pub(crate) fn fixed_point(&self) -> (i32, i32, [i32; 5], [[i32; 3]; 3]) {
        (self.neutral, self.luma_offset, self.to_rgb, self.to_yuv)
    }

    /// Replaces the code of black, and the factor to white in 65536ths.
    pub(crate) fn with_luma(self, black: i32, scale: i32) -> Self {
        let [_, rv, gu, gv, bu] = self.to_rgb;
        Self { luma_offset: black, to_rgb: [scale, rv, gu, gv, bu], ..self }
    }

    /// The code without chroma.
    pub(crate) fn neutral(&self) -> u16 {
        self.neutral as u16
    }

    /// Converts codes of at most 12 bits, whose products fit 32 bits.
    #[inline(always)]
    fn to_rgb(self, yuv: [i32; 3], neutral: i32) -> [i32; 3] {
        let [scale, rv, gu, gv, bu] = self.to_rgb;
        let y = (yuv[0] - self.luma_offset) * scale + (1 << 15);
        let (u, v) = (yuv[1] - neutral, yuv[2] - neutral);
        [y + rv * v, y + gu * u + gv * v, y + bu * u].map(|c| (c >> 16).clamp(0, 2 * neutral - 1))
    }

    /// Clamped R', G', B' of a Y', Cb, Cr triple; for formats of 8 bits.
    #[inline(always)]
    pub fn rgb(&self, yuv: [u8; 3]) -> [u8; 3] {
        self.to_rgb(yuv.map(i32::from), 128).map(|c| c as u8)
    }

    /// Like [`Self::rgb_wide`], for formats of at most 12 bits.
    #[inline(always)]
    pub(crate) fn rgb_of_few_bits(&self, yuv: [u16; 3]) -> [u16; 3] {
        self.to_rgb(yuv.map(i32::from), self.neutral).map(|c| c as u16)
    }

    /// Clamped R', G', B' of a Y', Cb, Cr triple.
    pub fn rgb_wide(&self, yuv: [u16; 3]) -> [u16; 3] {
        let [scale, rv, gu, gv, bu] = self.to_rgb.map(i64::from);
        let [y, u, v] = yuv.map(i64::from);
        let neutral = i64::from(self.neutral);
        let (y, u, v) = ((y - i64::from(self.luma_offset)) * scale + (1 << 15), u - neutral, v - neutral);
        [y + rv * v, y + gu * u + gv * v, y + bu * u].map(|c| (c >> 16).clamp(0, 2 * neutral - 1) as u16)
    }

    /// Y', Cb, Cr of an R', G', B' triple; for formats of 8 bits.
    pub fn yuv(&self, rgb: [u8; 3]) -> [u8; 3] {
        self.yuv_wide(rgb.map(u16::from)).map(|v| v as u8)
    }

    /// Converts R', G', B' to the channels of a frame of this format, all in its bits.
    pub(crate) fn native(&self, format: PixelFormat, rgb: [u16; 3]) -> [u16; 3] {
        if format.is_rgb() { rgb } else { self.yuv_wide(rgb) }
    }

    /// Y', Cb, Cr of an R', G', B' triple.
    pub fn yuv_wide(&self, rgb: [u16; 3]) -> [u16; 3] {
        let rgb = rgb.map(i64::from);
        let offsets = [self.luma_offset, self.neutral, self.neutral].map(i64::from);
        std::array::from_fn(|i| {
            let row = self.to_yuv[i].map(i64::from);
            let sum = row[0] * rgb[0] + row[1] * rgb[1] + row[2] * rgb[2] + (1 << 15);
            ((sum >> 16) + offsets[i]).clamp(0, 2 * i64::from(self.neutral) - 1) as u16
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Geometry;

    /// Miri is slow and reaches every path with few values: one in so many, and one color space, since tables take
    /// seconds each.
    const SPARSE: usize = if cfg!(miri) { 89 } else { 1 };

    fn spaces() -> impl Iterator<Item = ColorSpace> {
        ColorSpace::ALL.into_iter().take(if cfg!(miri) { 1 } else { usize::MAX })
    }

    fn lab_reference(rgb: [u8; 3]) -> [f64; 3] {
        let light = rgb.map(|c| {
            let v = f64::from(c) / 255.0;
            if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        });
        let f = XYZ.map(|row| {
            let white: f64 = row.iter().sum();
            let t = row.iter().zip(light).map(|(m, l)| m * l).sum::<f64>() / white;
            if t > 0.008856 { t.cbrt() } else { (903.3 * t + 16.0) / 116.0 }
        });
        [116.0 * f[1] - 16.0, 500.0 * (f[0] - f[1]), 200.0 * (f[1] - f[2])]
    }

    /// L is 0 only for colors near black, and without L the values of a and b are no larger than white's and have 11
    /// bits: so a few colors stand for all.
    #[test]
    fn no_color_is_that_of_outside() {
        for (space, bits) in spaces().flat_map(|space| [(space, 8), (space, 10)]) {
            let (tables, most) = (ColorTables::with_bits(space, bits).unwrap(), (1 << bits) - 1);
            let dark = if cfg!(miri) { 2 } else { 9 << (bits - 8) };
            let of = |codes: [u16; 3]| unpack(tables.feature_wide(codes));
            match space {
                ColorSpace::Lab | ColorSpace::LabGslicr => {
                    let last = 9 << (bits - 8);
                    assert!(
                        [[last, 0, 0], [0, last, 0], [0, 0, last]].into_iter().all(|codes| of(codes)[0] > 0)
                    );
                    let all = (0..dark)
                        .flat_map(|r| (0..dark).flat_map(move |g| (0..dark).map(move |b| [r, g, b])));
                    assert!(all.into_iter().all(|codes| tables.feature_wide(codes) != OUTSIDE), "{space:?}");
                }
                ColorSpace::XyzGslicr | ColorSpace::Rgb => {
                    assert!(of([most; 3])[1] < unpack(OUTSIDE)[1], "{space:?}");
                }
            }
        }
    }

    #[test]
    fn lab_is_the_formula_within_rounding() {
        let tables = ColorTables::new(ColorSpace::Lab).unwrap();
        let (mut worst, mut sum, mut count) = (0.0f64, 0.0, 0.0);
        for r in (0..=255).step_by(if cfg!(miri) { 51 } else { 15 }) {
            for g in (0..=255).step_by(if cfg!(miri) { 85 } else { 5 }) {
                for b in (0..=255).step_by(if cfg!(miri) { 51 } else { 3 }) {
                    let rgb = [r as u8, g as u8, b as u8];
                    let got = unpack(tables.feature(rgb)).map(f64::from);
                    let want = lab_reference(rgb);
                    let want = [8.0 * want[0], 8.0 * want[1] + 1024.0, 8.0 * want[2] + 1024.0];
                    for (g, w) in got.into_iter().zip(want) {
                        worst = worst.max((g - w).abs());
                        sum += (g - w).abs();
                        count += 1.0;
                    }
                }
            }
        }
        // Near black the curve is so steep that one step of its table is a quantum of a.
        assert!(worst < 2.5, "{worst}");
        assert!(sum / count < 0.3, "{}", sum / count);
    }

    /// A code of 16 bits that is 257 times one of 8 is the same color, and the same feature.
    #[test]
    #[cfg_attr(miri, ignore = "arithmetic alone, and a lot of it")]
    fn sixteen_bits_hold_the_colors_of_eight_exactly() {
        for space in spaces() {
            let (narrow, wide) =
                (ColorTables::new(space).unwrap(), ColorTables::with_bits(space, 16).unwrap());
            for code in (0..=255u16).step_by(SPARSE) {
                assert_eq!(wide.light(257 * code), narrow.light(code), "{space:?} {code}");
                assert_eq!(widen(code as u8, 16), 257 * code);
                assert_eq!(
                    (super::narrow(257 * code, 16), super::narrow((257 * code).saturating_add(128), 16)),
                    (code as u8, code as u8)
                );
                assert_eq!(
                    u16::from(super::narrow((257 * code).saturating_add(129), 16)),
                    (code + 1).min(255)
                );
            }
        }
        let geometry = Geometry::new(2, 2).unwrap();
        for (full_range, black, white) in [(true, 0, 65_535), (false, 4096, 60_160)] {
            let format = PixelFormat::Gray16Le;
            let yuv = Yuv::new(&FrameInfo { geometry, format, matrix: YuvMatrix::Bt2020, full_range });
            assert_eq!((yuv.yuv_wide([65_535; 3])[0], yuv.yuv_wide([0; 3])[0]), (white, black));
            assert_eq!(yuv.rgb_wide([white, 32_768, 32_768]), [65_535; 3]);
            assert_eq!(yuv.rgb_wide([black, 32_768, 32_768]), [0; 3]);
            for luma in (0..=65_535).step_by(SPARSE) {
                let [r, g, b] = yuv.rgb_wide([luma, 32_768, 32_768]);
                assert!(r == g && g == b && (!full_range || r == luma));
            }
        }
    }

    /// C libraries differ in the last bits of powers and roots. No entry is as near as that to where rounding changes it.
    #[test]
    #[cfg_attr(miri, ignore = "arithmetic alone, and a lot of it")]
    fn tables_are_the_same_with_every_c_library() {
        let is_clear = |v: f64| (v.fract() - 0.5).abs() > 1e-9;
        for bits in LEAST_BITS..=MAX_BITS {
            let white = f64::from((1u32 << bits) - 1);
            let light = |code| ((f64::from(code) / white + 0.055) / 1.055).powf(2.4) * LINEAR_ONE;
            assert!((0..1u32 << bits).map(light).all(is_clear), "{bits} bits");
        }
        let root = |i: usize| (i as f64 / f64::from(MATRIX_ONE)).cbrt() * CURVE_ONE;
        assert!((0..CURVE_LEN).map(root).all(is_clear));
    }

    #[test]
    fn features_of_many_are_those_of_each() {
        for bits in [8, 10, 16].into_iter().filter(|bits| !cfg!(miri) || *bits == 10) {
            for space in spaces() {
                let tables = ColorTables::with_bits(space, bits).unwrap();
                for start in (0..1u32 << 16).step_by(COLORS * SPARSE * if cfg!(miri) { 4 } else { 1 }) {
                    let code =
                        |i: u32, step: u32| ((start + i).wrapping_mul(step) >> 7 & ((1 << bits) - 1)) as u16;
                    let rgb = [40_503, 12_289, 769].map(|step| std::array::from_fn(|i| code(i as u32, step)));
                    let light = rgb.map(|codes: [u16; COLORS]| codes.map(|code| tables.light(code)));
                    let wanted =
                        std::array::from_fn(|i| tables.feature_wide([rgb[0][i], rgb[1][i], rgb[2][i]]));
                    assert_eq!(tables.features(&light), wanted, "{space:?} {rgb:?}");
                }
            }
        }
    }

    /// kernels/features.cuh packs Lab without clamping. Linear light grows with codes and the curve with light, so the
    /// corners of a box of codes bound all values inside.
    #[test]
    #[cfg_attr(miri, ignore = "arithmetic alone, and a lot of it")]
    fn no_color_leaves_the_channels_of_lab() {
        let spaces = [ColorSpace::Lab, ColorSpace::LabGslicr];
        for (space, bits) in spaces.into_iter().flat_map(|space| [(space, 8), (space, 10), (space, 16)]) {
            let tables = ColorTables::with_bits(space, bits).unwrap();
            assert!(tables.linear[..1 << bits].is_sorted() && tables.curve.is_sorted());
            assert!(tables.matrix.as_flattened().iter().all(|&weight| weight >= 0));
            let axes = |codes: [usize; 3]| {
                let light = codes.map(|code| i32::from(tables.linear[code]));
                tables.matrix.map(|row| {
                    let at = (row[0] * light[0] + row[1] * light[1] + row[2] * light[2] + (1 << 15)) >> 16;
                    i32::from(tables.curve[at as usize])
                })
            };
            let round = |v: i32| (v + (1 << 14)) >> 15;
            let (white, step) = ((1 << bits) - 1, 1 << (bits - 6));
            let codes = || (0..=white).step_by(step);
            for (r, g, b) in codes().flat_map(|r| codes().flat_map(move |g| codes().map(move |b| (r, g, b))))
            {
                let least = axes([r, g, b]);
                let most = axes([r, g, b].map(|code| (code + step - 1).min(white)));
                assert!(
                    round(928 * least[1] - 128 * 32_768) >= 0 && round(928 * most[1] - 128 * 32_768) < 1024
                );
                for (weight, from, to) in [(4000, 0, 1), (1600, 1, 2)] {
                    assert!(round(weight * (least[from] - most[to])) >= -1024, "{space:?} {r} {g} {b}");
                    assert!(round(weight * (most[from] - least[to])) < 1024, "{space:?} {r} {g} {b}");
                }
            }
        }
    }

    #[test]
    fn ten_bits_hold_the_colors_of_eight() {
        for space in spaces() {
            let (narrow, wide) =
                (ColorTables::new(space).unwrap(), ColorTables::with_bits(space, 10).unwrap());
            for code in (0..=255u8).step_by(SPARSE) {
                assert_eq!(super::narrow(widen(code, 10), 10), code);
                let rgb = [code, 255 - code, code / 2];
                let (a, b) =
                    (unpack(narrow.feature(rgb)), unpack(wide.feature_wide(rgb.map(|c| widen(c, 10)))));
                // A code of 10 bits is off by up to an eighth of an 8-bit code, and the Lab curve is steep near black.
                let most = if space == ColorSpace::Lab { 5 } else { 3 };
                assert!(
                    a.iter().zip(b).all(|(a, b)| a.abs_diff(b) <= most),
                    "{space:?} {rgb:?}: {a:?} {b:?}"
                );
            }
            assert_eq!(narrow.feature([255; 3]), wide.feature_wide([1023; 3]));
            assert_eq!(narrow.feature([0; 3]), wide.feature_wide([0; 3]));
        }
        let geometry = Geometry::new(2, 2).unwrap();
        for (full_range, black, white) in [(false, 64, 940), (true, 0, 1023)] {
            let matrix = YuvMatrix::Bt2020;
            let yuv = Yuv::new(&FrameInfo { geometry, format: PixelFormat::P010Le, matrix, full_range });
            assert_eq!(yuv.yuv_wide([1023; 3]), [white, 512, 512]);
            assert_eq!(yuv.yuv_wide([0; 3]), [black, 512, 512]);
            for rgb in [[1023, 0, 0], [0, 1023, 0], [0, 0, 1023], [48, 136, 224], [800, 400, 200]] {
                let back = yuv.rgb_wide(yuv.yuv_wide(rgb));
                assert!(back.iter().zip(rgb).all(|(a, b)| a.abs_diff(b) <= 3), "{rgb:?} -> {back:?}");
            }
            for luma in (0..1024).step_by(SPARSE) {
                let [r, g, b] = yuv.rgb_wide([luma, 512, 512]);
                assert!(r == g && g == b);
                for chroma in [[0, 1023], [1023, 0], [512, luma]] {
                    let codes = [luma, chroma[0], chroma[1]];
                    assert_eq!(yuv.rgb_of_few_bits(codes), yuv.rgb_wide(codes));
                }
            }
        }
    }

    /// Of codes that share their light, the lowest counts.
    #[test]
    #[cfg_attr(miri, ignore = "arithmetic alone, and a lot of it")]
    fn codes_of_16_bits_are_the_lowest_of_their_light() {
        let light = LinearLight::new(16).unwrap();
        for value in (0..=65_535u16).step_by(257) {
            let nearest = (0..=65_535u16).min_by_key(|&code| (light.of(code).abs_diff(value), code));
            assert_eq!(Some(light.code(value)), nearest, "light {value}");
        }
    }

    #[test]
    fn every_code_is_the_one_of_its_light() {
        for bits in [8, 10].into_iter().skip(usize::from(cfg!(miri))) {
            let light = LinearLight::new(bits).unwrap();
            let white = (1u16 << bits) - 1;
            assert_eq!((light.of(0), light.of(white)), (0, 65_535));
            for code in (0..=white).step_by(SPARSE) {
                assert_eq!(light.code(light.of(code)), code);
            }
            for value in (0..=65_535u16).step_by(SPARSE * SPARSE) {
                let nearest = (0..=white).min_by_key(|&code| (light.of(code).abs_diff(value), code));
                assert_eq!(Some(light.code(value)), nearest, "{bits} bits, light {value}");
            }
        }
        // Half of the light is far more than half of the code.
        assert_eq!(LinearLight::new(8).unwrap().code(32_768), 188);
    }

    #[test]
    fn gray_is_neutral() {
        for space in spaces().filter(|space| [ColorSpace::Lab, ColorSpace::LabGslicr].contains(space)) {
            let tables = ColorTables::new(space).unwrap();
            for v in (0..=255).step_by(SPARSE) {
                let [_, a, b] = unpack(tables.feature([v; 3]));
                assert_eq!([a, b], [1024, 1024], "{space:?} {v}");
            }
            assert_eq!(unpack(tables.feature([255; 3]))[0], 800);
            assert_eq!(unpack(tables.feature([0; 3]))[0], 0);
        }
    }

    #[test]
    fn yuv_knows_white_black_and_primaries() {
        let geometry = Geometry::new(2, 2).unwrap();
        for matrix in
            [YuvMatrix::Bt601, YuvMatrix::Bt709, YuvMatrix::Bt2020, YuvMatrix::Fcc, YuvMatrix::Smpte240m]
        {
            for full_range in [false, true] {
                let info = FrameInfo { geometry, format: PixelFormat::Nv12, matrix, full_range };
                let yuv = Yuv::new(&info);
                let (black, white) = if full_range { (0, 255) } else { (16, 235) };
                assert_eq!(yuv.yuv([255; 3]), [white, 128, 128]);
                assert_eq!(yuv.yuv([0; 3]), [black, 128, 128]);
                for rgb in
                    [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 0], [12, 34, 56], [200, 100, 50]]
                {
                    let back = yuv.rgb(yuv.yuv(rgb));
                    for (a, b) in back.into_iter().zip(rgb) {
                        assert!(a.abs_diff(b) <= 3, "{matrix:?} {full_range} {rgb:?} -> {back:?}");
                    }
                }
                for luma in (0..=255).step_by(SPARSE) {
                    let [r, g, b] = yuv.rgb([luma, 128, 128]);
                    assert!(r == g && g == b);
                }
            }
        }
    }
}
