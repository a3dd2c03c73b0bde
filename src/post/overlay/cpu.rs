// SPDX-License-Identifier: MPL-2.0
//! Stage `overlay` on the CPU: two rows and the samples that they share at a time, in parallel.

use std::ops::Range;

use super::{blend, false_color, native};
use crate::backend;
use crate::buffers::cpu::FrameBuffers;
use crate::color::Yuv;
use crate::cpu::memory::Array;
use crate::cpu::{Cpu, memory};
use crate::error::Result;
use crate::image::{Channel, Family, FrameInfo, FrameMut, Labels, Layout, NO_LABEL, PackedRgb, RowPair};
use crate::parallel::prelude::*;
use crate::params::{BOUNDARY_WIDTH, Boundaries, Drawing, Fill};
use crate::plan::Plan;
use crate::post::abstraction::cpu::Abstraction;

/// Columns that are drawn at a time; an even number.
const BLOCK: usize = 512;

pub(crate) struct Overlay {
    cpu: Cpu,
    info: FrameInfo,
    layout: &'static Layout,
    /// Set for frames of packed 8-bit RGB, which are the most common.
    packed_bytes: Option<PackedRgb>,
    yuv: Yuv,
    /// Thin boundary, widened along rows; nonzero where it is set.
    marks: Array<u8>,
    plan: Plan,
    /// Made for the first frame that asks for it.
    abstraction: Option<Box<Abstraction>>,
}

/// The color of a region in the frame's own channels.
trait RegionColor: Fn(u16) -> [u16; 3] + Sync {}
impl<F: Fn(u16) -> [u16; 3] + Sync> RegionColor for F {}

impl Overlay {
    pub fn new(cpu: &Cpu, plan: &Plan) -> Result<Self> {
        let marks = memory::zeroed("boundaries", plan.frame.geometry.pixels())?;
        let (info, format) = (plan.frame, plan.frame.format);
        let packed_bytes = format.packed_rgb().filter(|_| format.sample().bytes == 1);
        Ok(Self {
            cpu: cpu.clone(),
            info,
            layout: format.layout(),
            packed_bytes,
            yuv: Yuv::new(&info),
            marks,
            plan: plan.clone(),
            abstraction: None,
        })
    }

    /// A color as the frame's own channels.
    fn native(&self, rgb: [u8; 3]) -> [u16; 3] {
        native(&self.info, &self.yuv, rgb)
    }

    fn fill(&self, frame: &mut FrameMut<'_>, labels: &Labels<'_>, color: impl RegionColor) {
        self.cpu.run(|| {
            frame.row_pairs().enumerate().for_each(|(i, mut pair)| {
                let rows = 2 * i..(2 * i + 2).min(labels.geometry().height() as usize);
                for y in rows.clone() {
                    self.fill_row(&mut pair, y, labels.row(y), &color);
                }
                self.fill_shared(&mut pair, rows, labels, &color);
            });
        });
    }

    /// Fills the channels that have a sample for each pixel.
    fn fill_row(&self, pair: &mut RowPair<'_>, y: usize, labels: &[u16], color: &impl RegionColor) {
        let (layout, bytes) = (self.layout, self.packed_bytes);
        let mut x = 0;
        for run in labels.chunk_by(|a, b| a == b) {
            let columns = x..x + run.len();
            x = columns.end;
            if run[0] == NO_LABEL {
                continue;
            }
            let color = color(run[0]);
            if let Some(PackedRgb { bytes, offsets }) = bytes {
                let pixels = &mut pair.planes[0][y % 2][columns.start * bytes..columns.end * bytes];
                let [c0, c1, c2] = color.map(|c| c as u8);
                for pixel in pixels.chunks_exact_mut(bytes) {
                    pixel[offsets[0]] = c0;
                    pixel[offsets[1]] = c1;
                    pixel[offsets[2]] = c2;
                }
                continue;
            }
            for (channel, code) in layout.channels[..layout.own_channels()].iter().zip(color) {
                fill_samples(channel, pair.planes[channel.plane][y % 2], columns.clone(), code);
            }
        }
    }

    /// Fills the chroma samples, which several pixels share.
    fn fill_shared(
        &self,
        pair: &mut RowPair<'_>,
        rows: Range<usize>,
        labels: &Labels<'_>,
        color: &impl RegionColor,
    ) {
        let layout = self.layout;
        if layout.family != Family::Yuv || layout.is_whole() {
            return;
        }
        let [_, u, v] = layout.channels;
        let (wide, high) = (1 << layout.subsampling[0], 1 << layout.subsampling[1]);
        let width = self.info.geometry.width as usize;
        for (i, y) in rows.clone().step_by(high).enumerate() {
            let rows = y..rows.end.min(y + high);
            for (s, x) in (0..width).step_by(wide).enumerate() {
                let columns = x..width.min(x + wide);
                if let Some(mean) = mean_color(labels, rows.clone(), columns, color) {
                    for (c, code) in [&u, &v].into_iter().zip(mean) {
                        c.sample.set(&mut pair.planes[c.plane][i][c.offset + s * c.step..], code);
                    }
                }
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
                    // A mark at x0 widens to x0 - (ceil(w/2) - 1) through x0 + floor(w/2). These are the marks that
                    // reach this block.
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
        let this = &*self;
        self.cpu.run(|| {
            frame.row_pairs().enumerate().with_min_len(8).for_each(|(i, mut pair)| {
                let rows = 2 * i..height.min(2 * i + 2);
                for start in (0..columns).step_by(BLOCK) {
                    let block = start..columns.min(start + BLOCK);
                    let mut lines = [[0; BLOCK]; 2];
                    for y in rows.clone() {
                        let line = &mut lines[y % 2][..block.len()];
                        for y in y.saturating_sub(width / 2)..(y + width.div_ceil(2)).min(height) {
                            let marks = &this.marks[y * columns..][block.clone()];
                            line.iter_mut().zip(marks).for_each(|(l, m)| *l |= m);
                        }
                    }
                    this.draw_lines(&mut pair, start, &lines, color, alpha);
                }
            });
        });
    }

    /// Draws lines on two rows, from column `start` on.
    fn draw_lines(
        &self,
        pair: &mut RowPair<'_>,
        start: usize,
        lines: &[[u8; BLOCK]; 2],
        color: [u16; 3],
        alpha: u8,
    ) {
        let (layout, own) = (self.layout, self.layout.own_channels());
        for (row, line) in lines.iter().enumerate() {
            if let Some(packed) = self.packed_bytes {
                draw_pixels(packed, pair.planes[0][row], start, line, color, alpha);
                continue;
            }
            for (channel, color) in layout.channels[..own].iter().zip(color) {
                draw_samples(channel, pair.planes[channel.plane][row], start, line, color, alpha);
            }
        }
        if layout.family != Family::Yuv {
            return;
        }
        for (row, lines) in lines.chunks(1 << layout.subsampling[1]).enumerate() {
            let line = shared_line(lines);
            for (channel, color) in layout.channels.iter().zip(color).skip(own) {
                draw_samples(channel, pair.planes[channel.plane][row], start / 2, &line, color, alpha);
            }
        }
    }
}

/// Mask of chroma samples on a line: each is shared by pixels of some rows and of two columns, any of which may be on
/// it.
fn shared_line(lines: &[[u8; BLOCK]]) -> [u8; BLOCK / 2] {
    let mut shared = [0; BLOCK / 2];
    for line in lines {
        shared.iter_mut().zip(line.as_chunks().0).for_each(|(shared, [a, b])| *shared |= a | b);
    }
    shared
}

/// Draws a line on pixels of bytes, from column `start` on.
fn draw_pixels(packed: PackedRgb, row: &mut [u8], start: usize, line: &[u8], color: [u16; 3], alpha: u8) {
    let PackedRgb { bytes, offsets } = packed;
    for (x, _) in (start..).zip(line).filter(|(_, on)| **on != 0) {
        let pixel = &mut row[x * bytes..][..bytes];
        for (&offset, color) in offsets.iter().zip(color) {
            pixel[offset] = blend(u16::from(pixel[offset]), color, alpha) as u8;
        }
    }
}

/// Draws a line on the samples of a channel, from sample `start` on.
fn draw_samples(channel: &Channel, row: &mut [u8], start: usize, line: &[u8], color: u16, alpha: u8) {
    let Channel { offset, step, sample, .. } = *channel;
    for (x, _) in (start..).zip(line).filter(|(_, on)| **on != 0) {
        let bytes = &mut row[offset + x * step..];
        sample.set(bytes, blend(sample.code(bytes), color, alpha));
    }
}

/// Cb and Cr of the mean color of the labeled ones among some pixels; `None` if none has a label.
fn mean_color(
    labels: &Labels<'_>,
    rows: Range<usize>,
    columns: Range<usize>,
    color: &impl RegionColor,
) -> Option<[u16; 2]> {
    let (mut sum, mut n) = ([0u32; 2], 0);
    for y in rows {
        for &label in labels.row(y)[columns.clone()].iter().filter(|label| **label != NO_LABEL) {
            let [_, u, v] = color(label);
            sum[0] += u32::from(u);
            sum[1] += u32::from(v);
            n += 1;
        }
    }
    (n > 0).then(|| sum.map(|s| ((2 * s + n) / (2 * n)) as u16))
}

/// Sets the samples of a channel in some columns of a row.
fn fill_samples(channel: &Channel, row: &mut [u8], columns: Range<usize>, code: u16) {
    let Channel { offset, step, sample, .. } = *channel;
    let samples = &mut row[offset + columns.start * step..];
    if step == 1 {
        return samples[..columns.len()].fill(code as u8);
    }
    for bytes in samples.chunks_mut(step).take(columns.len()) {
        sample.set(bytes, code);
    }
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
        if let (Some(abstraction), false) =
            (&mut self.abstraction, matches!(drawing.fill, Fill::Abstraction(_)))
        {
            abstraction.forget();
        }
        match drawing.fill {
            Fill::None => {}
            Fill::MeanColor => {
                let fallback = self.native([127; 3]);
                self.fill(frame, labels, |label| {
                    buffers.means.get(usize::from(label)).copied().unwrap_or(fallback)
                });
            }
            Fill::Abstraction(params) => {
                let abstraction = match &mut self.abstraction {
                    Some(abstraction) => abstraction,
                    none => none.insert(Box::new(Abstraction::new(&self.cpu, &self.plan, &params)?)),
                };
                abstraction.draw(frame, buffers, labels, &params)?;
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
