// SPDX-License-Identifier: MPL-2.0
//! Stage `ingest` on the CPU: rows in parallel, one table lookup chain a pixel.

use rayon::prelude::*;

use crate::backend;
use crate::color::{ColorTables, Yuv};
use crate::cpu::{Cpu, Work, check_frame};
use crate::error::Result;
use crate::image::{Frame, FrameInfo, PixelFormat, p010_code};
use crate::plan::Plan;

pub(crate) struct Ingest {
    cpu: Cpu,
    info: FrameInfo,
    tables: ColorTables,
    yuv: Yuv,
    gray: [u32; 256],
}

impl Ingest {
    pub fn new(cpu: &Cpu, plan: &Plan) -> Self {
        let tables = ColorTables::with_bits(plan.color_space, plan.frame.format.bits());
        let yuv = Yuv::new(&plan.frame);
        let gray = std::array::from_fn(|v| tables.feature_wide(yuv.rgb_wide([v as u16, 128, 128])));
        Self { cpu: cpu.clone(), info: plan.frame, tables, yuv, gray }
    }

    fn rgb_row<const BYTES: usize, const R: usize, const G: usize, const B: usize>(
        &self,
        row: &[u8],
        out: &mut [u32],
    ) {
        for (feature, pixel) in out.iter_mut().zip(row.chunks_exact(BYTES)) {
            *feature = self.tables.feature([pixel[R], pixel[G], pixel[B]]);
        }
    }

    fn yuv_row<'p>(&self, luma: &[u8], chroma: impl Iterator<Item = (&'p u8, &'p u8)>, out: &mut [u32]) {
        for ((pair, luma), (&u, &v)) in out.chunks_mut(2).zip(luma.chunks(2)).zip(chroma) {
            for (feature, &y) in pair.iter_mut().zip(luma) {
                *feature = self.tables.feature(self.yuv.rgb([y, u, v]));
            }
        }
    }

    fn row(&self, frame: &Frame<'_>, y: usize, out: &mut [u32]) {
        let row = frame.row(0, y);
        match self.info.format {
            PixelFormat::Rgba | PixelFormat::Rgbx => self.rgb_row::<4, 0, 1, 2>(row, out),
            PixelFormat::Bgra | PixelFormat::Bgrx => self.rgb_row::<4, 2, 1, 0>(row, out),
            PixelFormat::Argb | PixelFormat::Xrgb => self.rgb_row::<4, 1, 2, 3>(row, out),
            PixelFormat::Abgr | PixelFormat::Xbgr => self.rgb_row::<4, 3, 2, 1>(row, out),
            PixelFormat::Rgb => self.rgb_row::<3, 0, 1, 2>(row, out),
            PixelFormat::Bgr => self.rgb_row::<3, 2, 1, 0>(row, out),
            PixelFormat::Gray8 => {
                for (feature, &v) in out.iter_mut().zip(row) {
                    *feature = self.gray[usize::from(v)];
                }
            }
            PixelFormat::Nv12 => {
                let chroma = frame.row(1, y / 2).chunks_exact(2).map(|c| (&c[0], &c[1]));
                self.yuv_row(row, chroma, out);
            }
            PixelFormat::I420 => {
                self.yuv_row(row, frame.row(1, y / 2).iter().zip(frame.row(2, y / 2)), out);
            }
            PixelFormat::P010Le => {
                let chroma = frame.row(1, y / 2).chunks_exact(4);
                for ((pair, luma), chroma) in out.chunks_mut(2).zip(row.chunks(4)).zip(chroma) {
                    let (u, v) = (p010_code(chroma), p010_code(&chroma[2..]));
                    for (feature, y) in pair.iter_mut().zip(luma.chunks_exact(2)) {
                        *feature = self.tables.feature_wide(self.yuv.rgb_wide([p010_code(y), u, v]));
                    }
                }
            }
        }
    }
}

impl backend::Ingest<Cpu> for Ingest {
    fn ingest(&mut self, frame: &Frame<'_>, work: &mut Work) -> Result<()> {
        check_frame(&self.info, frame.info())?;
        let width = self.info.geometry.width as usize;
        if let Some(state) = &mut work.temporal {
            std::mem::swap(&mut work.features, &mut state.features);
        }
        self.cpu.run(|| {
            work.features
                .par_chunks_mut(width)
                .enumerate()
                .with_min_len(16)
                .for_each(|(y, out)| self.row(frame, y, out));
        });
        Ok(())
    }
}
