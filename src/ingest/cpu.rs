// SPDX-License-Identifier: MPL-2.0
//! Stage `ingest` on the CPU: rows in parallel.

use rayon::prelude::*;

use crate::backend;
use crate::buffers::cpu::FrameBuffers;
use crate::color::{COLORS, ColorTables, OUTSIDE, Yuv};
use crate::cpu::Cpu;
use crate::cpu::level::by_level;
use crate::error::Result;
use crate::image::{Frame, FrameInfo, Mask, PixelFormat, p010_code};
use crate::plan::Plan;

pub(crate) struct Ingest {
    cpu: Cpu,
    info: FrameInfo,
    tables: &'static ColorTables,
    yuv: Yuv,
    /// Of 8 bits.
    gray: [u32; 256],
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
        Ok(Self { cpu: cpu.clone(), info: plan.frame, tables, yuv, gray })
    }
}

/// Features of packed pixels. Samples have two bytes where a pixel has six or more; `R`, `G` and `B` count samples.
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
                let code = if BYTES < 6 {
                    u16::from(pixel[at])
                } else {
                    u16::from_le_bytes([pixel[2 * at], pixel[2 * at + 1]])
                };
                channel[i] = ingest.tables.light(code);
            }
        }
        out.copy_from_slice(&ingest.tables.features(&light)[..out.len()]);
    }
}

/// Features of gray pixels of 16 bits, whose codes are too many for a table of features.
#[inline(always)]
fn gray16_row(ingest: &Ingest, row: &[u8], out: &mut [u32]) {
    for (out, pixels) in out.chunks_mut(COLORS).zip(row.chunks(2 * COLORS)) {
        let mut light = [0; COLORS];
        for (light, pixel) in light.iter_mut().zip(pixels.chunks_exact(2)) {
            let luma = u16::from_le_bytes([pixel[0], pixel[1]]);
            // No chroma: all three are alike.
            let [code, ..] = ingest.yuv.rgb_wide([luma, 1 << 15, 1 << 15]);
            *light = ingest.tables.light(code);
        }
        out.copy_from_slice(&ingest.tables.features(&[light; 3])[..out.len()]);
    }
}

/// Features of 4:2:0 pixels: `luma(x)`, and `chroma(x / 2)` for both pixels of a pair.
#[inline(always)]
fn yuv_row(
    ingest: &Ingest,
    luma: impl Fn(usize) -> u16,
    chroma: impl Fn(usize) -> [u16; 2],
    out: &mut [u32],
) {
    for (k, out) in out.chunks_mut(COLORS).enumerate() {
        let first = k * COLORS;
        let mut yuv = [[0; COLORS]; 3];
        for (i, y) in yuv[0][..out.len()].iter_mut().enumerate() {
            *y = luma(first + i);
        }
        for i in 0..out.len().div_ceil(2) {
            let [u, v] = chroma(first / 2 + i);
            yuv[1][2 * i..2 * i + 2].fill(u);
            yuv[2][2 * i..2 * i + 2].fill(v);
        }
        let mut rgb = [[0; COLORS]; 3];
        for i in 0..COLORS {
            [rgb[0][i], rgb[1][i], rgb[2][i]] = ingest.yuv.rgb_of_few_bits([yuv[0][i], yuv[1][i], yuv[2][i]]);
        }
        let mut light = [[0; COLORS]; 3];
        for (light, codes) in light.iter_mut().zip(&rgb) {
            for i in 0..COLORS {
                light[i] = ingest.tables.light(codes[i]);
            }
        }
        out.copy_from_slice(&ingest.tables.features(&light)[..out.len()]);
    }
}

by_level! {
    fn ingest_row(ingest: &Ingest, frame: &Frame<'_>, y: usize, out: &mut [u32]) = ingest_row_body
}

#[inline(always)]
fn ingest_row_body(ingest: &Ingest, frame: &Frame<'_>, y: usize, out: &mut [u32]) {
    let row = frame.row(0, y);
    match ingest.info.format {
        PixelFormat::Rgba | PixelFormat::Rgbx => rgb_row::<4, 0, 1, 2>(ingest, row, out),
        PixelFormat::Bgra | PixelFormat::Bgrx => rgb_row::<4, 2, 1, 0>(ingest, row, out),
        PixelFormat::Argb | PixelFormat::Xrgb => rgb_row::<4, 1, 2, 3>(ingest, row, out),
        PixelFormat::Abgr | PixelFormat::Xbgr => rgb_row::<4, 3, 2, 1>(ingest, row, out),
        PixelFormat::Rgb => rgb_row::<3, 0, 1, 2>(ingest, row, out),
        PixelFormat::Bgr => rgb_row::<3, 2, 1, 0>(ingest, row, out),
        PixelFormat::Rgba64Le => rgb_row::<8, 0, 1, 2>(ingest, row, out),
        PixelFormat::Bgra64Le => rgb_row::<8, 2, 1, 0>(ingest, row, out),
        PixelFormat::Argb64Le => rgb_row::<8, 1, 2, 3>(ingest, row, out),
        PixelFormat::Abgr64Le => rgb_row::<8, 3, 2, 1>(ingest, row, out),
        PixelFormat::Rgb48Le => rgb_row::<6, 0, 1, 2>(ingest, row, out),
        PixelFormat::Bgr48Le => rgb_row::<6, 2, 1, 0>(ingest, row, out),
        PixelFormat::Gray16Le => gray16_row(ingest, row, out),
        PixelFormat::Gray8 => {
            for (feature, &v) in out.iter_mut().zip(row) {
                *feature = ingest.gray[usize::from(v)];
            }
        }
        PixelFormat::Nv12 => {
            let chroma = frame.row(1, y / 2);
            let pair = |c: usize| [chroma[2 * c], chroma[2 * c + 1]].map(u16::from);
            yuv_row(ingest, |x| u16::from(row[x]), pair, out);
        }
        PixelFormat::I420 => {
            let (u, v) = (frame.row(1, y / 2), frame.row(2, y / 2));
            yuv_row(ingest, |x| u16::from(row[x]), |c| [u[c], v[c]].map(u16::from), out);
        }
        PixelFormat::P010Le => {
            let chroma = frame.row(1, y / 2);
            let pair = |c: usize| [p010_code(&chroma[4 * c..]), p010_code(&chroma[4 * c + 2..])];
            yuv_row(ingest, |x| p010_code(&row[2 * x..]), pair, out);
        }
    }
}

impl backend::Ingest<Cpu> for Ingest {
    fn ingest(&mut self, frame: &Frame<'_>, buffers: &mut FrameBuffers) -> Result<()> {
        let width = self.info.geometry.width as usize;
        self.cpu.run(|| {
            buffers.features.par_chunks_mut(width).enumerate().with_min_len(16).for_each(|(y, out)| {
                ingest_row(self, frame, y, out);
                if let Some(Mask { bytes, stride }) = frame.mask() {
                    for (feature, _) in out.iter_mut().zip(&bytes[y * stride..]).filter(|(_, m)| **m == 0) {
                        *feature = OUTSIDE;
                    }
                }
            });
        });
        Ok(())
    }
}
