// SPDX-License-Identifier: MPL-2.0
//! Stage `ingest` on the CPU: rows in parallel.

use super::{BIN_SHIFT, BINS, GrayRange};
use crate::backend;
use crate::buffers::cpu::FrameBuffers;
use crate::color::{COLORS, ColorTables, OUTSIDE, Yuv};
use crate::cpu::Cpu;
use crate::cpu::chunk;
use crate::cpu::level::by_level;
use crate::cpu::memory;
use crate::error::{Error, Result};
use crate::image::{Family, Frame, FrameInfo, Geometry, Mask, PixelFormat, RowCodes};
use crate::parallel::prelude::*;
use crate::plan::Plan;
use crate::temporal::picture::Thumbnail;

/// Fewest rows per task.
const ROWS: usize = 16;

pub(crate) struct Ingest {
    cpu: Cpu,
    info: FrameInfo,
    tables: &'static ColorTables,
    yuv: Yuv,
    /// Features of the codes of 8-bit gray.
    gray: [u32; 256],
    stretch: Option<Stretch>,
}

/// Finds the range of 16-bit gray, and keeps it for the next frame.
struct Stretch {
    last: Option<GrayRange>,
    /// Histograms of codes, each of some rows.
    counts: Vec<Box<[u32; BINS]>>,
}

impl Stretch {
    fn new(cpu: &Cpu) -> Result<Self> {
        let counts = || bytemuck::allocation::try_zeroed_box::<[u32; BINS]>();
        let counts = (0..cpu.threads()).map(|_| counts());
        let refused = |()| Error::Memory { what: "counts of gray", bytes: BINS * size_of::<u32>() };
        Ok(Self { last: None, counts: counts.collect::<std::result::Result<_, _>>().map_err(refused)? })
    }

    /// Finds the range of a frame. `follows` is true for a warm start. Runs inside of the pool.
    fn find(&mut self, frame: &Frame<'_>, follows: bool) -> GrayRange {
        let height = frame.info().geometry.height as usize;
        let rows = height.div_ceil(self.counts.len());
        self.counts.par_iter_mut().enumerate().for_each(|(i, counts)| {
            counts.fill(0);
            (i * rows..height.min((i + 1) * rows)).for_each(|y| count_row(counts, frame, y));
        });
        let Some((all, parts)) = self.counts.split_first_mut() else {
            return GrayRange { low: 0, high: 65_535 };
        };
        for part in parts {
            all.iter_mut().zip(part.iter()).for_each(|(sum, n)| *sum += n);
        }
        let range = GrayRange::find(all, self.last.filter(|_| follows));
        self.last = Some(range);
        range
    }
}

/// Counts the pixels of a row by code, without those outside of the mask.
fn count_row(counts: &mut [u32; BINS], frame: &Frame<'_>, y: usize) {
    let (row, width) = (RowCodes::new(frame, y), frame.info().geometry.width as usize);
    let mut codes = [[0; COLORS]; 3];
    for first in (0..width).step_by(COLORS) {
        row.gather(first, &mut codes);
        for (i, code) in codes[0].iter().enumerate().take(width - first) {
            let inside = frame.mask().is_none_or(|mask| mask.bytes[y * mask.stride + first + i] != 0);
            counts[usize::from(code >> BIN_SHIFT)] += u32::from(inside);
        }
    }
}

impl Ingest {
    pub fn new(cpu: &Cpu, plan: &Plan) -> Result<Self> {
        let tables = ColorTables::shared(plan.color_space, plan.frame.format.bits())?;
        let yuv = Yuv::new(&plan.frame);
        let gray = match plan.frame.format {
            PixelFormat::Gray8 => {
                std::array::from_fn(|v| tables.feature_wide(yuv.rgb_wide([v as u16, 128, 128])))
            }
            _ => [0; 256],
        };
        let stretch = plan.stretches.then(|| Stretch::new(cpu)).transpose()?;
        Ok(Self { cpu: cpu.clone(), info: plan.frame, tables, yuv, gray, stretch })
    }

    /// Computes the features of a row.
    fn convert_row(&self, frame: &Frame<'_>, y: usize, out: &mut [u32]) {
        ingest_row(self, frame, y, out);
        if let Some(Mask { bytes, stride }) = frame.mask() {
            for (feature, _) in out.iter_mut().zip(&bytes[y * stride..]).filter(|(_, m)| **m == 0) {
                *feature = OUTSIDE;
            }
        }
    }
}

/// Features of packed pixels of bytes.
#[inline(always)]
fn rgb_row<const BYTES: usize, const R: usize, const G: usize, const B: usize>(
    ingest: &Ingest,
    row: &[u8],
    out: &mut [u32],
) {
    for (out, pixels) in out.chunks_mut(COLORS).zip(row.chunks(BYTES * COLORS)) {
        let mut light = [[0; COLORS]; 3];
        for (i, pixel) in pixels.chunks_exact(BYTES).take(COLORS).enumerate() {
            for (channel, at) in light.iter_mut().zip([R, G, B]) {
                channel[i] = ingest.tables.light(u16::from(pixel[at]));
            }
        }
        chunk::write(&ingest.tables.features(&light), out);
    }
}

/// Codes of some pixels, by channel.
type Codes = [[u16; COLORS]; 3];

/// Computes features of pixels of any format. `to_rgb` converts their codes to R', G', B'; it is an argument so that
/// the choice is made once, not per pixel.
#[inline(always)]
fn any_row(ingest: &Ingest, row: &RowCodes<'_>, to_rgb: impl Fn(&Codes) -> Codes, out: &mut [u32]) {
    let mut codes = [[0; COLORS]; 3];
    for (k, out) in out.chunks_mut(COLORS).enumerate() {
        row.gather(k * COLORS, &mut codes);
        let rgb = to_rgb(&codes);
        let mut light = [[0; COLORS]; 3];
        for (light, codes) in light.iter_mut().zip(&rgb) {
            for i in 0..COLORS {
                light[i] = ingest.tables.light(codes[i]);
            }
        }
        chunk::write(&ingest.tables.features(&light), out);
    }
}

/// Converts codes of Y', Cb, Cr to R', G', B'. Not in place, because then it would not be vectorized.
#[inline(always)]
fn convert(codes: &Codes, rgb: impl Fn([u16; 3]) -> [u16; 3]) -> Codes {
    let mut converted = [[0; COLORS]; 3];
    for i in 0..COLORS {
        [converted[0][i], converted[1][i], converted[2][i]] = rgb([codes[0][i], codes[1][i], codes[2][i]]);
    }
    converted
}

by_level! {
    fn ingest_row(ingest: &Ingest, frame: &Frame<'_>, y: usize, out: &mut [u32]) = ingest_row_body
}

#[inline(always)]
fn ingest_row_body(ingest: &Ingest, frame: &Frame<'_>, y: usize, out: &mut [u32]) {
    let (row, format) = (frame.row(0, y), ingest.info.format);
    // Packed 8-bit RGB, the most common format, has code of its own.
    match format.packed_rgb().map(|packed| (packed.bytes, packed.offsets)) {
        Some((4, [0, 1, 2])) => return rgb_row::<4, 0, 1, 2>(ingest, row, out),
        Some((4, [2, 1, 0])) => return rgb_row::<4, 2, 1, 0>(ingest, row, out),
        Some((4, [1, 2, 3])) => return rgb_row::<4, 1, 2, 3>(ingest, row, out),
        Some((4, [3, 2, 1])) => return rgb_row::<4, 3, 2, 1>(ingest, row, out),
        Some((3, [0, 1, 2])) => return rgb_row::<3, 0, 1, 2>(ingest, row, out),
        Some((3, [2, 1, 0])) => return rgb_row::<3, 2, 1, 0>(ingest, row, out),
        _ => {}
    }
    let (codes, yuv) = (RowCodes::new(frame, y), &ingest.yuv);
    match (format.layout().family, format.bits()) {
        (Family::Rgb, _) => any_row(ingest, &codes, |codes| *codes, out),
        (Family::Gray, 8) => {
            for (feature, &v) in out.iter_mut().zip(row) {
                *feature = ingest.gray[usize::from(v)];
            }
        }
        (Family::Gray, _) => any_row(
            ingest,
            &codes,
            |codes| {
                // Gray has no chroma, so R', G' and B' are equal.
                let neutral = yuv.neutral();
                [codes[0].map(|luma| yuv.rgb_wide([luma, neutral, neutral])[0]); 3]
            },
            out,
        ),
        (Family::Yuv, 16) => any_row(ingest, &codes, |codes| convert(codes, |c| yuv.rgb_wide(c)), out),
        (Family::Yuv, _) => {
            any_row(ingest, &codes, |codes| convert(codes, |c| yuv.rgb_of_few_bits(c)), out);
        }
    }
}

impl backend::Ingest<Cpu> for Ingest {
    fn ingest(&mut self, frame: &Frame<'_>, buffers: &mut FrameBuffers) -> Result<()> {
        let Geometry { width, height } = self.info.geometry;
        let (width, height) = (width as usize, height as usize);
        let cpu = self.cpu.clone();
        buffers.prior.clear();
        if frame.prior().is_some() {
            memory::resize(&mut buffers.prior, "prior", width * height, 0)?;
        }
        cpu.run(|| {
            if let Some(prior) = frame.prior() {
                let rows = buffers.prior.par_chunks_mut(width).with_min_len(ROWS).enumerate();
                rows.for_each(|(y, row)| prior.write_row(self.info.geometry, y, row));
            }
            if let Some(stretch) = &mut self.stretch {
                let follows = buffers.temporal.as_ref().is_some_and(|state| state.is_warm());
                let range = stretch.find(frame, follows);
                self.yuv = self.yuv.with_luma(range.low, range.scale());
            }
            let FrameBuffers { features, temporal, .. } = buffers;
            let thumbnail = temporal.as_mut().map_or(Thumbnail::none(ROWS), |state| state.next_thumbnail());
            let side = thumbnail.side;
            let bands = features.par_chunks_mut(side * width).zip(thumbnail.rows(height)).enumerate();
            bands.with_min_len(ROWS.div_ceil(side)).for_each(|(i, (features, squares))| {
                for (y, out) in (i * side..).zip(features.chunks_mut(width)) {
                    self.convert_row(frame, y, out);
                }
                if let Some(squares) = squares {
                    squares.average(features, width);
                }
            });
        });
        Ok(())
    }
}
