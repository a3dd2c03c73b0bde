// SPDX-License-Identifier: MPL-2.0
//! Frames of every format made from nothing but arithmetic, for tests without files.
#![allow(dead_code)]

pub mod areas;
pub mod places;

use areas::Areas;
use gstsuperpixel::color::{ColorSpace, ColorTables, Yuv};
use gstsuperpixel::image::{Frame, FrameInfo, Geometry, PixelFormat};
use places::Channel;

/// The pictures that the properties are tried on.
#[derive(Debug, Clone, Copy)]
pub enum Picture {
    Flat,
    Gradient,
    Checker,
    Noise,
    Halves,
    Natural,
}

pub const PICTURES: [Picture; 6] =
    [Picture::Flat, Picture::Gradient, Picture::Checker, Picture::Noise, Picture::Halves, Picture::Natural];

pub fn hash(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

impl Picture {
    pub fn pixel(self, x: usize, y: usize, g: Geometry, seed: u64) -> [u8; 3] {
        let (w, h) = (g.width() as usize, g.height() as usize);
        let noise = hash(seed ^ (y * w + x) as u64).to_le_bytes();
        match self {
            Self::Flat => [seed as u8, 90, 30],
            Self::Gradient => [(255 * x / w) as u8, (255 * y / h) as u8, (255 * (x + y) / (w + h)) as u8],
            Self::Checker if (x + y).is_multiple_of(2) => [250, 240, 20],
            Self::Checker => [10, 20, 200],
            Self::Noise => [noise[0], noise[1], noise[2]],
            Self::Halves if x < w / 2 => [200, 30, 30],
            Self::Halves => [30, 30, 200],
            // Blobs, edges and fine texture: what a photograph has, from nothing but arithmetic.
            Self::Natural => {
                let (fx, fy) = (x as f64 / 23.0, y as f64 / 17.0);
                let blob = (fx.sin() + (fy + (seed % 7) as f64).cos() + (fx * 0.37 + fy * 0.61).sin()) / 3.0;
                let edge = if ((x * 3 + y * 5) / 97).is_multiple_of(2) { 40.0 } else { -40.0 };
                let base = 128.0 + 70.0 * blob + edge;
                let grain = f64::from(noise[0]) / 16.0 - 8.0;
                [base + grain, base * 0.8 + 20.0 - grain, 255.0 - base + grain]
                    .map(|v| v.clamp(0.0, 255.0) as u8)
            }
        }
    }
}

/// A frame of any format in memory, with padding of its own in every row.
#[derive(Clone)]
pub struct Buffer {
    pub info: FrameInfo,
    pub planes: Vec<Vec<u8>>,
    pub strides: Vec<usize>,
    /// With rows of `width + MASK_PADDING` bytes.
    pub mask: Option<Vec<u8>>,
    pub prior: Option<Areas>,
}

const MASK_PADDING: usize = 3;

/// Shape of a mask.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    Full,
    Empty,
    /// Every second pixel, by chance.
    Grains,
    /// A pixel here and there.
    Pixels,
    /// No two that touch.
    Checker,
    /// A disk, or all but one.
    Disk,
    Hole,
    /// Lines of a pixel's width.
    Lines,
    /// From a column on.
    Half,
}

pub const SHAPES: [Shape; 9] = [
    Shape::Full,
    Shape::Empty,
    Shape::Grains,
    Shape::Pixels,
    Shape::Checker,
    Shape::Disk,
    Shape::Hole,
    Shape::Lines,
    Shape::Half,
];

impl Shape {
    /// Returns true if a pixel is inside of the shape, which has been moved by `motion`.
    pub fn holds(self, (x, y): (i32, i32), g: Geometry, seed: u64, motion: [i32; 2]) -> bool {
        let (w, h) = (g.width() as i32, g.height() as i32);
        let (x, y) = (x - motion[0], y - motion[1]);
        let chance = hash(seed ^ hash((i64::from(y) * 70_000 + i64::from(x)) as u64));
        let (u, v) = (2 * x - w, 2 * y - h);
        let in_disk = 4 * (u * u + v * v) < w.min(h).pow(2) * 2;
        match self {
            Self::Full => true,
            Self::Empty => false,
            Self::Grains => chance.is_multiple_of(2),
            Self::Pixels => chance.is_multiple_of(23),
            Self::Checker => (x + y).rem_euclid(2) == 0,
            Self::Disk => in_disk,
            Self::Hole => !in_disk,
            Self::Lines => x.rem_euclid(5) == 0 || y.rem_euclid(11) == 3,
            Self::Half => 3 * x > w,
        }
    }
}

/// Channels that a format has samples of.
pub fn channels(format: PixelFormat) -> Vec<Channel> {
    (0..if format.is_gray() { 1 } else { 3 }).map(|c| Channel::new(format, c)).collect()
}

impl Buffer {
    pub fn new(info: FrameInfo, picture: Picture, seed: u64, padding: usize) -> Self {
        let g = info.geometry;
        let sizes: Vec<_> = info.format.planes(g).collect();
        let strides: Vec<usize> = sizes.iter().map(|(row, _)| row + padding).collect();
        let mut planes: Vec<Vec<u8>> = sizes
            .iter()
            .zip(&strides)
            .map(|((_, rows), stride)| (0..rows * stride).map(|i| hash(seed + i as u64 + 7) as u8).collect())
            .collect();
        let yuv = Yuv::new(&info);
        let own = channels(info.format);
        for y in 0..g.height() as usize {
            for x in 0..g.width() as usize {
                let rgb = picture.pixel(x, y, g, seed);
                // All bits below the upper 8 vary with the place, and those that do not count.
                let extra = hash(seed ^ (y * 977 + x) as u64).to_le_bytes();
                let below = info.format.bits() - 8;
                let wide = [0, 1, 2].map(|i| {
                    let low = u32::from(extra[if below == 8 { i } else { 0 }]) & ((1 << below) - 1);
                    (u32::from(rgb[i]) << below | low) as u16
                });
                let native = if info.format.is_rgb() { wide } else { yuv.yuv_wide(wide) };
                for (channel, code) in own.iter().zip(native) {
                    channel.at(x, y).put(&mut planes, &strides, code, extra[3].into());
                }
            }
        }
        Self { info, planes, strides, mask: None, prior: None }
    }

    pub fn frame(&self) -> Frame<'_> {
        let planes: Vec<&[u8]> = self.planes.iter().map(Vec::as_slice).collect();
        let frame = Frame::new(self.info, &planes, &self.strides).unwrap();
        let stride = self.info.geometry.width() as usize + MASK_PADDING;
        let frame = self.mask.as_ref().map_or(frame, |mask| frame.with_mask(mask, stride).unwrap());
        self.prior.as_ref().map_or(frame, |areas| frame.with_prior(areas.prior()))
    }

    /// Returns the frame's own channels at a pixel, then its R'G'B'.
    pub fn samples(&self) -> impl Fn(usize, usize) -> ([u16; 3], [u16; 3]) {
        let (format, yuv, channels) = (self.info.format, Yuv::new(&self.info), channels(self.info.format));
        move |x, y| {
            let mut own = [1 << (format.bits() - 1); 3];
            for (code, channel) in own.iter_mut().zip(&channels) {
                *code = channel.at(x, y).get(&self.planes, &self.strides);
            }
            (own, if format.is_rgb() { own } else { yuv.rgb_wide(own) })
        }
    }

    /// Packed colors; what is outside of the mask has none of them.
    pub fn features(&self, space: ColorSpace) -> Vec<u32> {
        let tables = ColorTables::with_bits(space, self.info.format.bits()).unwrap();
        let (w, h) = (self.info.geometry.width() as usize, self.info.geometry.height() as usize);
        let samples = self.samples();
        let color = |i: usize| tables.feature_wide(samples(i % w, i / w).1);
        (0..w * h).map(|i| if self.is_inside(i) { color(i) } else { 1400 << 10 | 400 << 21 }).collect()
    }

    /// Gives the frame a mask.
    pub fn with_mask(mut self, shape: Shape, seed: u64, motion: [i32; 2]) -> Self {
        let g = self.info.geometry;
        let (w, h) = (g.width() as usize, g.height() as usize);
        let mut mask = vec![1; (w + MASK_PADDING) * h];
        for i in 0..w * h {
            let (x, y) = (i % w, i / w);
            let inside = shape.holds((x as i32, y as i32), g, seed, motion);
            // Any byte but 0 is inside.
            mask[y * (w + MASK_PADDING) + x] = if inside { hash(i as u64) as u8 | 4 } else { 0 };
        }
        self.mask = Some(mask);
        self
    }

    /// Gives the frame areas that no region leaves.
    pub fn with_prior(self, areas: Areas) -> Self {
        Self { prior: Some(areas), ..self }
    }

    /// Returns true if a pixel is inside of the mask.
    pub fn is_inside(&self, i: usize) -> bool {
        let w = self.info.geometry.width() as usize;
        self.mask.as_ref().is_none_or(|mask| mask[i / w * (w + MASK_PADDING) + i % w] != 0)
    }
}

/// Frames of one picture that moves by `motion` px a frame under fine noise, from `cut` on of another.
pub fn clip(
    geometry: Geometry,
    format: PixelFormat,
    seed: u64,
    frames: usize,
    motion: [i32; 2],
    cut: Option<usize>,
) -> Vec<Buffer> {
    let info = FrameInfo::new(geometry, format);
    let (w, h) = (geometry.width() as i32, geometry.height() as i32);
    (0..frames)
        .map(|frame| {
            let mut buffer = Buffer::new(info, Picture::Flat, 0, 0);
            let after = cut.is_some_and(|cut| frame >= cut);
            for y in 0..h {
                for x in 0..w {
                    // Far from zero, so that the scene has no edge.
                    let (u, v) = (x - motion[0] * frame as i32 + 5000, y - motion[1] * frame as i32 + 5000);
                    let scene = Picture::Natural.pixel(u as usize, v as usize, info.geometry, seed % 1000);
                    let [r, g, b] = if after { [255 - scene[1], scene[0] / 4, scene[2] / 2] } else { scene };
                    let layout = format.packed_rgb().unwrap();
                    let at = y as usize * buffer.strides[0] + x as usize * layout.bytes;
                    for (offset, value) in layout.offsets.into_iter().zip([r, g, b]) {
                        buffer.planes[0][at + offset] = value;
                    }
                }
            }
            buffer
        })
        .collect()
}
