// SPDX-License-Identifier: MPL-2.0
//! Colors over regions of a frame, or a blur of them. Alpha and padding bytes do not change.
//!
//! A sample that several pixels share is drawn on where all of them are in such a region, with the mean of their colors.

use std::ops::Range;

use super::blur::{Blur, Plane, cell_side};
use crate::color::Yuv;
use crate::element::frame;
use crate::image::{Channel, FrameInfo, Geometry, MOST_PLANES};
use crate::post::overlay::{blend, native};
use crate::video_map::{Reason, VideoMap, label_shape};

/// A color in the channels of the frame; `None` leaves pixels as they are.
pub(super) type Color = Option<[u16; 3]>;

/// The drawing on regions that have a color.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Drawing {
    /// Their color, blended by alpha.
    Color { alpha: u8 },
    /// A blur of them, whatever their color is.
    Blur,
}

/// Draws on the frames of one format.
pub(super) struct Background {
    info: gst_video::VideoInfo,
    labels: gst_video::VideoInfo,
    frame: FrameInfo,
    yuv: Yuv,
    /// The color of each label.
    pub colors: Vec<Color>,
    /// Colors of two rows of pixels, as many as share a sample at most.
    rows: [Vec<Color>; 2],
    blur: Blur,
    /// True for each pixel that is blurred.
    mask: Vec<bool>,
}

impl Background {
    /// `None` for formats that cannot be drawn on.
    pub(super) fn new(info: &gst_video::VideoInfo) -> Option<Self> {
        let frame = frame::frame_info(info)?;
        let Geometry { width, height } = frame.geometry;
        let labels = gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray16Le, width, height);
        Some(Self {
            info: info.clone(),
            labels: labels.build().ok()?,
            frame,
            yuv: Yuv::new(&frame),
            colors: Vec::new(),
            rows: [vec![None; width as usize], vec![None; width as usize]],
            blur: Blur::default(),
            mask: Vec::new(),
        })
    }

    /// A color in the channels of the frame.
    pub(super) fn color(&self, rgb: [u8; 3]) -> [u16; 3] {
        native(&self.frame, &self.yuv, rgb)
    }

    /// Draws on each label with a color. Pixels without a label have that of `rest`.
    ///
    /// # Errors
    ///
    /// If the label map or the frame is not what it claims to be.
    pub(super) fn draw(
        &mut self,
        buffer: &mut gst::BufferRef,
        labels: &gst::BufferRef,
        drawing: Drawing,
        rest: Color,
    ) -> Result<(), Reason> {
        if let Some(reason) = frame::foreign_crop(buffer, &self.info) {
            return Err(reason);
        }
        let shape = label_shape(self.frame.geometry);
        let labels = VideoMap::read(labels, &self.labels, std::iter::once(shape))?;
        let label_stride = labels.strides()[0];
        let mut map = VideoMap::write(buffer, &self.info, frame::shapes(self.frame))?;
        let strides = map.strides();
        let mut planes = map.slices_mut();
        let (width, height) = (self.frame.geometry.width() as usize, self.frame.geometry.height() as usize);
        let Self { colors, rows: [first, second], .. } = self;
        let color = |label: &[u8]| {
            colors.get(usize::from(u16::from_le_bytes([label[0], label[1]]))).copied().unwrap_or(rest)
        };
        let line = |y: usize| labels.slices()[0][y * label_stride..][..shape.0].chunks_exact(2).map(color);
        match drawing {
            Drawing::Color { alpha } => {
                for y in (0..height).step_by(2) {
                    let lines = y..height.min(y + 2);
                    for (y, row) in lines.clone().zip([&mut *first, &mut *second]) {
                        row.iter_mut().zip(line(y)).for_each(|(to, color)| *to = color);
                    }
                    draw_rows(self.frame, &mut planes, &strides, lines, [first, second], alpha);
                }
            }
            Drawing::Blur => {
                let layout = self.frame.format.layout();
                let side = cell_side(width, height);
                self.mask.clear();
                (0..height).for_each(|y| self.mask.extend(line(y).map(|color| color.is_some())));
                let mask = |y: usize| &self.mask[y * width..][..width];
                for (index, channel) in layout.channels[..channels(self.frame)].iter().enumerate() {
                    let shared = layout.shared(index);
                    let [wide, high] = shared.map(|log2| 1 << log2);
                    let mut plane = Plane {
                        bytes: &mut *planes[channel.plane],
                        stride: strides[channel.plane],
                        channel: *channel,
                        width: width.div_ceil(wide),
                        height: height.div_ceil(high),
                        cell: shared.map(|log2| side >> log2),
                    };
                    self.blur.draw(&mut plane, |y, row| {
                        if (wide, high) == (1, 1) {
                            return row.copy_from_slice(mask(y));
                        }
                        row.fill(true);
                        for y in y * high..height.min((y + 1) * high) {
                            let shared = row.iter_mut().zip(mask(y).chunks(wide));
                            shared.for_each(|(to, marks)| *to &= marks.iter().all(|is_marked| *is_marked));
                        }
                    });
                }
            }
        }
        Ok(())
    }
}

/// Number of channels; gray has one three times.
fn channels(frame: FrameInfo) -> usize {
    if frame.format.is_gray() { 1 } else { 3 }
}

/// Draws on two rows, or on the last one of an odd height.
fn draw_rows(
    frame: FrameInfo,
    planes: &mut [&mut [u8]; MOST_PLANES],
    strides: &[usize; MOST_PLANES],
    lines: Range<usize>,
    rows: [&Vec<Color>; 2],
    alpha: u8,
) {
    let layout = frame.format.layout();
    for (index, channel) in layout.channels[..channels(frame)].iter().enumerate() {
        let [wide, high] = layout.shared(index).map(|log2| 1 << log2);
        for first in lines.clone().step_by(high) {
            let rows = &rows[first - lines.start..][..high.min(lines.end - first)];
            let start = (first / high) * strides[channel.plane] + channel.offset;
            let Some(samples) = planes[channel.plane].get_mut(start..) else { continue };
            let width = rows[0].len();
            let mut x = 0;
            while x < width {
                let begin = x;
                while x < width && rows.iter().all(|row| row[x] == row[begin]) {
                    x += 1;
                }
                // Samples whose first pixel is in this run; the last may reach beyond it.
                let samples_in = begin.div_ceil(wide)..x.div_ceil(wide);
                let alike = samples_in.start..if x == width { samples_in.end } else { x / wide };
                if let Some(code) = mean(rows, begin..begin + 1, index) {
                    draw_samples(channel, samples, alike.clone(), code, alpha);
                }
                for sample in alike.end.max(samples_in.start)..samples_in.end {
                    let pixels = sample * wide..width.min((sample + 1) * wide);
                    if let Some(code) = mean(rows, pixels, index) {
                        draw_samples(channel, samples, sample..sample + 1, code, alpha);
                    }
                }
            }
        }
    }
}

/// Draws a code on some samples of a channel.
fn draw_samples(channel: &Channel, row: &mut [u8], samples: Range<usize>, code: u16, alpha: u8) {
    let Channel { step, sample, .. } = *channel;
    let Some(row) = row.get_mut(samples.start * step..) else { return };
    if sample.bytes > 1 {
        for bytes in row.chunks_mut(step).take(samples.len()) {
            sample.set(bytes, blend(sample.code(bytes), code, alpha));
        }
    } else if step == 1 {
        let count = samples.len().min(row.len());
        row[..count].iter_mut().for_each(|byte| *byte = blend(u16::from(*byte), code, alpha) as u8);
    } else {
        for byte in row.iter_mut().step_by(step).take(samples.len()) {
            *byte = blend(u16::from(*byte), code, alpha) as u8;
        }
    }
}

/// Mean of a channel of some pixels; `None` if one has no color.
fn mean(rows: &[&Vec<Color>], columns: Range<usize>, channel: usize) -> Option<u16> {
    let (mut sum, mut count) = (0, 0);
    for color in rows.iter().flat_map(|row| &row[columns.clone()]) {
        sum += u32::from((*color)?[channel]);
        count += 1;
    }
    Some(((2 * sum + count) / (2 * count).max(1)) as u16)
}
