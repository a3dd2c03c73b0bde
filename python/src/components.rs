// SPDX-License-Identifier: MPL-2.0
//! Images of many bands by their three principal components, which become colors.
//!
//! With c1, c2 and c3 the components of a pixel and s the standard deviation of the first one inside of the mask, its color is
//! L = 50 + 12 c1 / s, a = 12 c2 / s, b = 12 c3 / s: differences in Lab are those of the components, on one scale. A larger one would
//! leave the gamut of sRGB often, and what is cut off there is lost, while `compactness` makes up for a small one.
//!
//! Sums are of parts of the image that depend on its size alone, pixel by pixel, then of the parts in their order.

use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::{Frame, FrameInfo, PixelFormat};
use rayon::prelude::*;

use crate::data_range::DataRange;
use crate::eigenvectors::principal_axes;
use crate::error::Failure;
use crate::lab_codes::LabCodes;
use crate::memory;
use crate::values::View;

/// Most bands: imaging spectrometers have up to 242. The time for sums of products grows with the square of their number.
pub const MOST_BANDS: usize = 256;
/// Units of Lab that the first component's standard deviation becomes.
const UNITS: f64 = 12.0;
/// Lightness of the mean.
const MIDDLE: f64 = 50.0;
/// No color is so far from gray.
const MOST_UNITS: f64 = 400.0;
/// Squares of much larger values are no numbers.
const MOST_VALUE: f64 = 1e100;
/// Parts of an image that are added up side by side.
const PARTS: usize = 64;
/// Pixels of a row that are read together.
const BLOCK: usize = 64;
/// Bands whose products are added up together; numbers of bands are rounded up to whole ones, with zeros.
const TILE: usize = 4;
/// What memory is for, where there is none.
const NUMBERS: &str = "components of an image";

/// A map from bands to colors.
pub struct Components {
    bands: usize,
    means: Vec<f64>,
    /// Of each band for L, a and b. Zeros where all pixels are the same.
    weights: Vec<[f64; 3]>,
}

/// Images that become colors one after another, with what is kept between them.
#[derive(Default)]
pub struct Kept {
    /// True if components of one image hold for those that follow.
    pub is_video: bool,
    components: Option<Components>,
}

impl Kept {
    /// The next image has components of its own.
    pub fn forget(&mut self) {
        self.components = None;
    }
}

/// An image of many bands.
pub struct Bands<'a> {
    info: FrameInfo,
    view: View<'a>,
    /// Values beyond become one of them.
    limits: (f64, f64),
    codes: LabCodes,
}

impl<'a> Bands<'a> {
    /// Format of the frames that such images become.
    pub const FORMAT: PixelFormat = PixelFormat::Rgb48Le;

    /// `info` has that format. Of ranges two given numbers count.
    pub fn new(info: FrameInfo, view: View<'a>, range: DataRange, codes: LabCodes) -> Self {
        let limits = match range {
            DataRange::Given(low, high) => (low, high),
            _ => (f64::NEG_INFINITY, f64::INFINITY),
        };
        Self { info, view, limits, codes }
    }

    /// Converts the image into `codes`, whatever was there, on the threads of `cpu`. What is outside of the mask becomes 0, whatever
    /// it was. `mask` has one byte a pixel. In a video an image without any differences does not settle the components.
    ///
    /// # Errors
    ///
    /// A value that is no number or a huge one; no memory.
    pub fn convert<'c>(
        &self,
        cpu: &Cpu,
        mask: Option<&[u8]>,
        kept: &mut Kept,
        codes: &'c mut Vec<u16>,
    ) -> Result<Frame<'c>, Failure> {
        let (width, height) = self.size();
        let row = 3 * width;
        memory::reserve("codes of an image", codes, (row * height).saturating_sub(codes.len()))?;
        codes.resize(row * height, 0);
        let of_before = kept.components.take().filter(|of| kept.is_video && of.bands == self.view.bands());
        let components = match of_before {
            Some(components) => components,
            None => self.components(cpu, mask)?,
        };
        let convert_row = |(y, codes)| self.convert_row(&components, y, mask, codes);
        let is_good = cpu.run(|| {
            let rows = codes.par_chunks_exact_mut(row).enumerate();
            rows.map(convert_row).reduce(|| true, |a, b| a & b)
        });
        let has_differences = components.weights.iter().flatten().any(|&weight| weight != 0.0);
        kept.components = Some(components).filter(|_| kept.is_video && has_differences);
        if !is_good {
            return Err(self.complaint(mask));
        }
        Ok(Frame::new(self.info, &[bytemuck::cast_slice(codes)], &[2 * row])?)
    }

    fn size(&self) -> (usize, usize) {
        (self.info.geometry.width() as usize, self.info.geometry.height() as usize)
    }

    /// The value as it counts, and whether it is one.
    #[inline(always)]
    fn value(&self, value: f64) -> (f64, bool) {
        let value = value.clamp(self.limits.0, self.limits.1);
        (value, value.abs() <= MOST_VALUE)
    }

    /// Says whether all values inside of the mask were good.
    fn convert_row(&self, of: &Components, y: usize, mask: Option<&[u8]>, codes: &mut [u16]) -> bool {
        let (width, _) = self.size();
        let mask = mask.map(|mask| &mask[y * width..][..width]);
        let is_inside = |x: usize| mask.is_none_or(|mask| mask[x] != 0);
        let mut all = true;
        for (start, codes) in (0..width).step_by(BLOCK).zip(codes.chunks_mut(3 * BLOCK)) {
            let mut colors = [[MIDDLE, 0.0, 0.0]; BLOCK];
            for (band, (mean, weights)) in of.means.iter().zip(&of.weights).enumerate().take(of.bands) {
                self.view.values(y, start..width.min(start + BLOCK), band, |i, value| {
                    let (value, is_good) = self.value(value);
                    all &= is_good | !is_inside(start + i);
                    colors[i]
                        .iter_mut()
                        .zip(weights)
                        .for_each(|(sum, weight)| *sum += (value - mean) * weight);
                });
            }
            for (i, (codes, color)) in codes.chunks_exact_mut(3).zip(&colors).enumerate() {
                let color = color.map(|units| units.clamp(-MOST_UNITS, MOST_UNITS));
                codes.copy_from_slice(&if is_inside(start + i) { self.codes.of(color) } else { [0; 3] });
            }
        }
        all
    }

    fn components(&self, cpu: &Cpu, mask: Option<&[u8]>) -> Result<Components, Failure> {
        let bands = self.view.bands();
        let side = bands.next_multiple_of(TILE);
        // Differences from a pixel of the image: of equal pixels the means are exact.
        let mut means = memory::filled(NUMBERS, side, 0.0)?;
        let first = mask.map_or(Some(0), |mask| mask.iter().position(|&inside| inside != 0));
        let weights = memory::filled("weights of bands", side, [0.0; 3])?;
        let mut components = Components { bands, means: Vec::new(), weights };
        if let Some(first) = first {
            let (x, y) = (first % self.size().0, first / self.size().0);
            for (band, mean) in means.iter_mut().enumerate().take(bands) {
                self.view.values(y, x..x + 1, band, |_, value| *mean = self.value(value).0);
            }
            let (sums, count) = self.sums(cpu, mask, &means, side, add_values)?;
            means.iter_mut().zip(sums).for_each(|(mean, sum)| *mean += sum / count);
            let (mut matrix, count) = self.sums(cpu, mask, &means, side * side, add_products)?;
            for i in 0..side {
                for j in i..side {
                    matrix[i * side + j] /= count;
                    matrix[j * side + i] = matrix[i * side + j];
                }
            }
            set_weights(&mut components.weights, &mut matrix)?;
        }
        components.means = means;
        Ok(components)
    }

    /// Sums of what `add` adds to `len` numbers for a block of pixels, which are given as differences from `origin`; and the number of
    /// pixels inside of the mask.
    fn sums(
        &self,
        cpu: &Cpu,
        mask: Option<&[u8]>,
        origin: &[f64],
        len: usize,
        add: fn(&mut [f64], &[f64], usize),
    ) -> Result<(Vec<f64>, f64), Failure> {
        let (width, height) = self.size();
        let (side, rows) = (origin.len(), height.div_ceil(PARTS));
        let of_part = len + BLOCK * side;
        let mut parts = memory::filled(NUMBERS, height.div_ceil(rows) * of_part, 0.0)?;
        let add_part = |(part, memory): (usize, &mut [f64])| {
            let (sums, block) = memory.split_at_mut(len);
            let mut count = 0;
            for y in part * rows..height.min((part + 1) * rows) {
                let mask = mask.map(|mask| &mask[y * width..][..width]);
                for start in (0..width).step_by(BLOCK) {
                    let pixels = self.read(y, start..width.min(start + BLOCK), mask, origin, block)?;
                    add(sums, &block[..pixels * side], side);
                    count += pixels;
                }
            }
            Some(count)
        };
        let count = cpu.run(|| {
            let parts = parts.par_chunks_exact_mut(of_part).enumerate();
            parts.map(add_part).reduce(|| Some(0), |a, b| Some(a? + b?))
        });
        let Some(count) = count else { return Err(self.complaint(mask)) };
        let (all, others) = parts.split_at_mut(of_part);
        for part in others.chunks_exact(of_part) {
            all[..len].iter_mut().zip(part).for_each(|(sum, of_part)| *sum += of_part);
        }
        parts.truncate(len);
        Ok((parts, count as f64))
    }

    /// Reads pixels of a row into a block, those inside of the mask, and says how many; nothing where a value is bad.
    fn read(
        &self,
        y: usize,
        columns: std::ops::Range<usize>,
        mask: Option<&[u8]>,
        origin: &[f64],
        block: &mut [f64],
    ) -> Option<usize> {
        let (start, side, mut all) = (columns.start, origin.len(), true);
        let mut pixels = 0;
        for (band, origin) in origin.iter().enumerate().take(self.view.bands()) {
            pixels = 0;
            self.view.values(y, columns.clone(), band, |i, value| {
                if mask.is_none_or(|mask| mask[start + i] != 0) {
                    let (value, is_good) = self.value(value);
                    all &= is_good;
                    block[pixels * side + band] = value - origin;
                    pixels += 1;
                }
            });
        }
        all.then_some(pixels)
    }

    /// Describes the first bad value inside of the mask, in raster order.
    fn complaint(&self, mask: Option<&[u8]>) -> Failure {
        let (width, height) = self.size();
        let mut found = None;
        for i in (0..width * height).filter(|&i| mask.is_none_or(|mask| mask[i] != 0)) {
            let (x, y) = (i % width, i / width);
            for band in 0..self.view.bands() {
                self.view.values(y, x..x + 1, band, |_, value| {
                    if !self.value(value).1 {
                        found.get_or_insert((value, x, y, band));
                    }
                });
            }
            if found.is_some() {
                break;
            }
        }
        Failure::Value(match found {
            Some((value, x, y, band)) => format!(
                "values of image must be numbers, for bands='pca' up to {MOST_VALUE:e}, got {value} at x = {x}, y = {y} in band {band}; \
                 a mask leaves such pixels out, and data_range=(low, high) cuts all but NaN off"
            ),
            None => "a value of image is out of range".into(),
        })
    }
}

/// Adds the differences of each pixel, band by band.
fn add_values(sums: &mut [f64], block: &[f64], side: usize) {
    for pixel in block.chunks_exact(side) {
        sums.iter_mut().zip(pixel).for_each(|(sum, value)| *sum += value);
    }
}

/// Adds the products of all pairs of bands of each pixel: rows of a matrix, from the diagonal on.
fn add_products(sums: &mut [f64], block: &[f64], side: usize) {
    for i in (0..side).step_by(TILE) {
        for j in (i..side).step_by(TILE) {
            // They stay in registers.
            let mut tile = [[0.0; TILE]; TILE];
            for (k, row) in tile.iter_mut().enumerate() {
                row.copy_from_slice(&sums[(i + k) * side + j..][..TILE]);
            }
            for pixel in block.chunks_exact(side) {
                let (of_rows, of_columns) = (&pixel[i..][..TILE], &pixel[j..][..TILE]);
                for (row, a) in tile.iter_mut().zip(of_rows) {
                    row.iter_mut().zip(of_columns).for_each(|(sum, b)| *sum += a * b);
                }
            }
            for (k, row) in tile.iter().enumerate() {
                sums[(i + k) * side + j..][..TILE].copy_from_slice(row);
            }
        }
    }
}

/// Weights of bands from their covariances, which are used up.
fn set_weights(weights: &mut [[f64; 3]], covariances: &mut [f64]) -> Result<(), Error> {
    let side = weights.len();
    let mut vectors = memory::filled(NUMBERS, side * side, 0.0)?;
    vectors.iter_mut().step_by(side + 1).for_each(|one| *one = 1.0);
    let axes = principal_axes(covariances, &mut vectors, side);
    let variances = axes.map(|axis| covariances[axis * side + axis]);
    for (place, (axis, variance)) in axes.into_iter().zip(variances).enumerate() {
        // The rest is rounding: rows of zeros that were added, or bands that others make up for.
        if variance > 0.0 {
            let scale = UNITS / variances[0].sqrt();
            let vector = &vectors[axis * side..][..side];
            weights.iter_mut().zip(vector).for_each(|(weights, one)| weights[place] = scale * one);
        }
    }
    Ok(())
}
