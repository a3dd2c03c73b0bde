// SPDX-License-Identifier: MPL-2.0
//! Stage `overlay` on the CPU: two rows and their chroma at a time, in parallel.

use std::ops::Range;

use rayon::prelude::*;

use super::{false_color, native};
use crate::backend;
use crate::buffers::cpu::FrameBuffers;
use crate::color::Yuv;
use crate::cpu::memory::Array;
use crate::cpu::{Cpu, memory};
use crate::error::Result;
use crate::image::{FrameInfo, FrameMut, Labels, NO_LABEL, PixelFormat, RowPair, p010_code};
use crate::params::{BOUNDARY_WIDTH, Boundaries, Drawing, Fill};
use crate::plan::Plan;

/// Columns that are drawn at a time; an even number.
const BLOCK: usize = 512;

pub(crate) struct Overlay {
    cpu: Cpu,
    info: FrameInfo,
    yuv: Yuv,
    /// Thin boundary, widened along rows: nonzero where set.
    marks: Array<u8>,
}

/// The color of a region in the frame's own channels.
trait RegionColor: Fn(u16) -> [u16; 3] + Sync {}
impl<F: Fn(u16) -> [u16; 3] + Sync> RegionColor for F {}

impl Overlay {
    pub fn new(cpu: &Cpu, plan: &Plan) -> Result<Self> {
        let marks = memory::zeroed("boundaries", plan.frame.geometry.pixels())?;
        Ok(Self { cpu: cpu.clone(), info: plan.frame, yuv: Yuv::new(&plan.frame), marks })
    }

    /// A color as the frame's own channels.
    fn native(&self, rgb: [u8; 3]) -> [u16; 3] {
        native(&self.info, &self.yuv, rgb)
    }

    fn fill(&self, frame: &mut FrameMut<'_>, labels: &Labels<'_>, color: impl RegionColor) {
        self.cpu.run(|| {
            frame.row_pairs().enumerate().for_each(|(i, mut pair)| {
                for (j, out) in pair.luma.iter_mut().enumerate().filter(|(_, out)| !out.is_empty()) {
                    self.fill_row(out, labels.row(2 * i + j), &color);
                }
                self.fill_chroma(&mut pair, i, labels, &color);
            });
        });
    }

    /// Bytes from one pixel to the next in plane 0.
    fn pixel_bytes(&self) -> usize {
        let format = self.info.format;
        format.packed_rgb().map_or(format.sample().bytes, |layout| layout.bytes)
    }

    /// Whether samples have two bytes.
    fn is_wide(&self) -> bool {
        self.info.format.sample().bytes == 2
    }

    fn fill_row(&self, out: &mut [u8], labels: &[u16], color: &impl RegionColor) {
        let layout = self.info.format.packed_rgb();
        let (bytes, offsets) = (self.pixel_bytes(), layout.map_or([0; 3], |layout| layout.offsets));
        let sample = self.info.format.sample();
        let mut x = 0;
        for run in labels.chunk_by(|a, b| a == b) {
            if run[0] == NO_LABEL {
                x += run.len();
                continue;
            }
            let color = color(run[0]);
            let pixels = &mut out[x * bytes..(x + run.len()) * bytes];
            if self.is_wide() {
                let channels = if layout.is_some() { 3 } else { 1 };
                for pixel in pixels.chunks_exact_mut(bytes) {
                    for (&offset, color) in offsets[..channels].iter().zip(color) {
                        sample.set(&mut pixel[offset..], color);
                    }
                }
            } else if layout.is_some() {
                let [c0, c1, c2] = color.map(|c| c as u8);
                for pixel in pixels.chunks_exact_mut(bytes) {
                    pixel[offsets[0]] = c0;
                    pixel[offsets[1]] = c1;
                    pixel[offsets[2]] = c2;
                }
            } else {
                pixels.fill(color[0] as u8);
            }
            x += run.len();
        }
    }

    fn fill_chroma(&self, pair: &mut RowPair<'_>, i: usize, labels: &Labels<'_>, color: &impl RegionColor) {
        let rows = [2 * i, 2 * i + 1];
        let rows = &rows[..if pair.luma[1].is_empty() { 1 } else { 2 }];
        self.update_chroma(pair, 0..self.info.geometry.width as usize, |x, width, _| {
            let (mut sum, mut n) = ([0u32; 2], 0);
            for &y in rows {
                for &label in labels.row(y)[x..x + width].iter().filter(|label| **label != NO_LABEL) {
                    let [_, u, v] = color(label);
                    sum[0] += u32::from(u);
                    sum[1] += u32::from(v);
                    n += 1;
                }
            }
            (n > 0).then(|| sum.map(|s| ((2 * s + n) / (2 * n)) as u16))
        });
    }

    /// Sets those chroma samples of some columns, the first of them even, for which `value(first column, number of columns, Cb
    /// and Cr)` gives new ones.
    fn update_chroma(
        &self,
        pair: &mut RowPair<'_>,
        columns: Range<usize>,
        value: impl Fn(usize, usize, [u16; 2]) -> Option<[u16; 2]>,
    ) {
        let width = columns.end;
        let [first, second] = &mut pair.chroma;
        for x in columns.step_by(2) {
            let c = x / 2;
            let (u, v) = match self.info.format {
                PixelFormat::Nv12 => {
                    let [u, v] = &mut first[2 * c..2 * c + 2] else { return };
                    (u, v)
                }
                PixelFormat::I420 => (&mut first[c], &mut second[c]),
                PixelFormat::P010Le => {
                    let samples = &mut first[4 * c..4 * c + 4];
                    let old = [p010_code(samples), p010_code(&samples[2..])];
                    if let Some(new) = value(x, 2.min(width - x), old) {
                        let sample = self.info.format.sample();
                        samples
                            .chunks_exact_mut(2)
                            .zip(new)
                            .for_each(|(bytes, code)| sample.set(bytes, code));
                    }
                    continue;
                }
                _ => return,
            };
            if let Some([new_u, new_v]) = value(x, 2.min(width - x), [u16::from(*u), u16::from(*v)]) {
                (*u, *v) = (new_u as u8, new_v as u8);
            }
        }
    }

    /// Marks the thin boundary and widens it along rows.
    fn mark(&mut self, labels: &Labels<'_>, width: usize) {
        let columns = self.info.geometry.width as usize;
        let last = self.info.geometry.height as usize - 1;
        let Self { cpu, marks, .. } = self;
        cpu.run(|| {
            marks.par_chunks_mut(columns).enumerate().with_min_len(16).for_each(|(y, marks)| {
                let (row, below) = (labels.row(y), labels.row((y + 1).min(last)));
                for (i, marks) in marks.chunks_mut(BLOCK).enumerate() {
                    // A thin mark at x0 reaches from x0 - (ceil(w/2) - 1) to x0 + floor(w/2): these are all that reach here.
                    let (left, right) = (width / 2, width.div_ceil(2) - 1);
                    let mut thin = [0; BLOCK + BOUNDARY_WIDTH.max as usize];
                    let start = i * BLOCK;
                    let from = start.saturating_sub(left);
                    for x in from..(start + marks.len() + right).min(columns) {
                        let edge = row[x] != row[(x + 1).min(columns - 1)] || row[x] != below[x];
                        thin[x + left - start] = u8::from(edge);
                    }
                    marks.fill(0);
                    for shift in 0..width {
                        marks.iter_mut().zip(&thin[shift..]).for_each(|(m, t)| *m |= t);
                    }
                }
            });
        });
    }

    fn draw_boundaries(&mut self, frame: &mut FrameMut<'_>, labels: &Labels<'_>, boundaries: &Boundaries) {
        let width = boundaries.width as usize;
        self.mark(labels, width);
        let columns = self.info.geometry.width as usize;
        let height = self.info.geometry.height as usize;
        let [alpha, r, g, b] = boundaries.color.to_be_bytes();
        let color = self.native([r, g, b]);
        let (this, bytes) = (&*self, self.pixel_bytes());
        self.cpu.run(|| {
            frame.row_pairs().enumerate().with_min_len(8).for_each(|(i, mut pair)| {
                for start in (0..columns).step_by(BLOCK) {
                    let block = start..columns.min(start + BLOCK);
                    let mut lines = [[0; BLOCK]; 2];
                    for (j, line) in lines.iter_mut().enumerate().filter(|(j, _)| 2 * i + j < height) {
                        let (y, line) = (2 * i + j, &mut line[..block.len()]);
                        for y in y.saturating_sub(width / 2)..(y + width.div_ceil(2)).min(height) {
                            let marks = &this.marks[y * columns..][block.clone()];
                            line.iter_mut().zip(marks).for_each(|(l, m)| *l |= m);
                        }
                        this.draw_row(&mut pair.luma[j][start * bytes..], line, color, alpha);
                    }
                    let on = |x: usize, width: usize| {
                        lines.iter().any(|line| line[x - start..][..width].iter().any(|&l| l != 0))
                    };
                    this.update_chroma(&mut pair, block, |x, width, [u, v]| {
                        on(x, width).then(|| [blend(u, color[1], alpha), blend(v, color[2], alpha)])
                    });
                }
            });
        });
    }

    fn draw_row(&self, out: &mut [u8], line: &[u8], color: [u16; 3], alpha: u8) {
        let layout = self.info.format.packed_rgb();
        let (bytes, sample) = (self.pixel_bytes(), self.info.format.sample());
        let (channels, offsets) = layout.map_or((1, [0; 3]), |layout| (3, layout.offsets));
        for (pixel, _) in out.chunks_exact_mut(bytes).zip(line).filter(|(_, on)| **on != 0) {
            for (&offset, c) in offsets[..channels].iter().zip(color) {
                let bytes = &mut pixel[offset..];
                sample.set(bytes, blend(sample.code(bytes), c, alpha));
            }
        }
    }
}

fn blend(sample: u16, color: u16, alpha: u8) -> u16 {
    let (sample, color, alpha) = (u32::from(sample), u32::from(color), u32::from(alpha));
    ((alpha * color + (255 - alpha) * sample + 127) / 255) as u16
}

impl backend::Overlay<Cpu> for Overlay {
    fn draw(
        &mut self,
        frame: &mut FrameMut<'_>,
        buffers: &FrameBuffers,
        labels: &Labels<'_>,
        drawing: &Drawing,
    ) -> Result<()> {
        self.info.check(frame.info())?;
        labels.check(self.info.geometry)?;
        match drawing.fill {
            Fill::None => {}
            Fill::MeanColor => {
                let fallback = self.native([127; 3]);
                self.fill(frame, labels, |label| {
                    buffers.means.get(usize::from(label)).copied().unwrap_or(fallback)
                });
            }
            Fill::Labels => {
                self.fill(frame, labels, |label| {
                    self.native(false_color(buffers.track_id(usize::from(label))))
                });
            }
        }
        if let Some(boundaries) = &drawing.boundaries {
            self.draw_boundaries(frame, labels, boundaries);
        }
        Ok(())
    }
}
