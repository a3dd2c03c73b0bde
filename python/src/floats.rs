// SPDX-License-Identifier: MPL-2.0
//! Images of float32 in [0, 1] become codes of 16 bits: round(65535 x), halves up.

use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::{Frame, FrameInfo, PixelFormat};
use rayon::prelude::*;

use crate::error::Failure;
use crate::layout::Layout;

const SAMPLE: usize = size_of::<f32>();
/// Fewer are not worth another thread.
const ROWS_AT_ONCE: usize = 16;
/// The last bit of doubles from here on counts units.
const TO_UNITS: f64 = (1u64 << 52) as f64;

/// An image of float32.
pub struct Floats<'a> {
    info: FrameInfo,
    layout: Layout,
    bytes: &'a [u8],
}

impl<'a> Floats<'a> {
    /// `bytes` are those of the layout; `info` has the format of [`Self::format`].
    pub fn new(info: FrameInfo, layout: Layout, bytes: &'a [u8]) -> Self {
        Self { info, layout, bytes }
    }

    /// The format that they become: a fourth channel is left out.
    pub fn format(layout: &Layout) -> PixelFormat {
        match (layout.samples, layout.is_red_first) {
            (1, _) => PixelFormat::Gray16Le,
            (_, true) => PixelFormat::Rgb48Le,
            (_, false) => PixelFormat::Bgr48Le,
        }
    }

    /// Converts the image into `codes`, whatever was there, on the threads of `cpu`.
    ///
    /// # Errors
    ///
    /// A value that is no number or outside of [0, 1]; no memory.
    pub fn convert<'c>(&self, cpu: &Cpu, codes: &'c mut Vec<u16>) -> Result<Frame<'c>, Failure> {
        let (width, height) = (self.info.geometry.width() as usize, self.info.geometry.height() as usize);
        let row = width * self.layout.samples.min(3);
        codes
            .try_reserve_exact((row * height).saturating_sub(codes.len()))
            .map_err(|_| Error::Memory { what: "codes of an image", bytes: 2 * row * height })?;
        codes.resize(row * height, 0);
        let rows = codes.par_chunks_exact_mut(row).enumerate().with_min_len(ROWS_AT_ONCE);
        if !cpu.run(|| rows.map(|(y, codes)| self.convert_row(y, codes)).reduce(|| true, |a, b| a & b)) {
            return Err(Failure::Value(self.complaint()));
        }
        let frame = Frame::new(self.info, &[bytemuck::cast_slice(codes)], &[2 * row])?;
        Ok(frame)
    }

    /// Says whether all values were good.
    fn convert_row(&self, y: usize, codes: &mut [u16]) -> bool {
        if self.layout.samples != 4 {
            return convert(codes, self.row(y).as_chunks().0);
        }
        let pixels = self.row(y).as_chunks::<{ 4 * SAMPLE }>().0.iter();
        let skipped = SAMPLE * self.layout.first;
        convert(codes, pixels.flat_map(|pixel| pixel[skipped..][..3 * SAMPLE].as_chunks().0))
    }

    fn row(&self, y: usize) -> &'a [u8] {
        let row = self.info.geometry.width() as usize * self.layout.samples * SAMPLE;
        &self.bytes[y * self.layout.stride..][..row]
    }

    /// Describes the first bad value, and how to avoid it.
    fn complaint(&self) -> String {
        let values = (0..self.info.geometry.height() as usize).flat_map(|y| {
            let samples = self.row(y).as_chunks::<SAMPLE>().0.iter().enumerate();
            let (all, first) = (self.layout.samples, self.layout.first);
            let counted = samples.filter(move |(i, _)| (first..first + 3).contains(&(i % all)));
            counted.map(move |(i, bytes)| (i / all, y, f32::from_ne_bytes(*bytes)))
        });
        let (mut bad, mut most, mut least) = (None, 0.0f32, 0.0f32);
        for (x, y, value) in values {
            if bad.is_none() && !is_good(value) {
                bad = Some((x, y, value));
            }
            if value.is_finite() {
                (most, least) = (most.max(value), least.min(value));
            }
        }
        let Some((x, y, value)) = bad else { return "a value of image is out of range".into() };
        let advice = if !value.is_finite() {
            "np.nan_to_num(image, nan=0, posinf=1, neginf=0) replaces such values".into()
        } else if least < 0.0 {
            "np.clip(image, 0, 1) cuts off, and (image - image.min()) / np.ptp(image) scales".to_string()
        } else {
            let white = match most {
                ..=255.0 => "255",
                ..=65535.0 => "65535",
                _ => "image.max()",
            };
            format!("divide by the value of white, maybe {white}: image / np.float32({white})")
        };
        format!("a float image must have values in [0, 1], got {value} at x = {x}, y = {y}; {advice}")
    }
}

/// Returns true if a value is in [0, 1], which NaN is not.
#[inline(always)]
fn is_good(value: f32) -> bool {
    (0.0..=1.0).contains(&value)
}

/// Converts values to as many codes, and says whether all were good.
#[inline(always)]
fn convert<'a>(codes: &mut [u16], values: impl IntoIterator<Item = &'a [u8; SAMPLE]>) -> bool {
    let mut all = true;
    for (code, bytes) in codes.iter_mut().zip(values) {
        let value = f32::from_ne_bytes(*bytes);
        all &= is_good(value);
        // Exact: the product has 40 bits. The sum has no room for a fraction, which it rounds off; the one that lies halfway between
        // two codes is 0.5, and of those the even one, to which sums round, is the upper.
        *code = (65_535.0 * f64::from(value) + TO_UNITS).to_bits() as u16;
    }
    all
}
