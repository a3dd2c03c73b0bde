// SPDX-License-Identifier: MPL-2.0
//! Priors of any size, made from nothing but arithmetic.

use super::hash;
use gstsuperpixel::image::{Geometry, Prior, PriorSamples};

/// A prior, with padding of its own in every row.
#[derive(Debug, Clone)]
pub struct Areas {
    samples: Vec<u32>,
    /// The same in fewer bits, which is what a frame gets then.
    narrow: Option<Narrow>,
    pub geometry: Geometry,
    pub stride: usize,
}

#[derive(Debug, Clone)]
enum Narrow {
    U8(Vec<u8>),
    U16(Vec<u16>),
}

impl Areas {
    pub fn new(samples: Vec<u32>, geometry: Geometry, stride: usize) -> Self {
        Self { samples, narrow: None, geometry, stride }
    }

    /// Blobs around points, some of which share a number.
    pub fn drawn(geometry: Geometry, points: u64, seed: u64) -> Self {
        let (w, h) = (geometry.width() as usize, geometry.height() as usize);
        let stride = w + (seed % 3) as usize;
        let points: Vec<[u64; 2]> = (0..points)
            .map(|i| {
                [
                    hash(seed ^ (3 * i)) % geometry.width() as u64,
                    hash(seed ^ (3 * i + 1)) % geometry.height() as u64,
                ]
            })
            .collect();
        let number = |i: usize| (hash(seed ^ (i as u64 / 2)) % 6 * 0x3333_3333) as u32;
        let samples = (0..stride * h).map(|at| {
            let (x, y) = ((at % stride) as u64, (at / stride) as u64);
            let apart = |[px, py]: [u64; 2]| px.abs_diff(x).pow(2) + py.abs_diff(y).pow(2);
            let nearest = (0..points.len()).min_by_key(|&i| (apart(points[i]), i));
            if at % stride < w { nearest.map_or(0, number) } else { 77 }
        });
        Self::new(samples.collect(), geometry, stride)
    }

    /// The lower bits of the same numbers, 8, 16 or 32.
    pub fn of_bits(mut self, bits: u32) -> Self {
        let mask = u32::MAX >> (32 - bits);
        self.samples.iter_mut().for_each(|sample| *sample &= mask);
        self.narrow = match bits {
            8 => Some(Narrow::U8(self.samples.iter().map(|&sample| sample as u8).collect())),
            16 => Some(Narrow::U16(self.samples.iter().map(|&sample| sample as u16).collect())),
            _ => None,
        };
        self
    }

    pub fn prior(&self) -> Prior<'_> {
        let samples = match &self.narrow {
            None => PriorSamples::U32(&self.samples),
            Some(Narrow::U8(samples)) => PriorSamples::U8(samples),
            Some(Narrow::U16(samples)) => PriorSamples::U16(samples),
        };
        Prior::new(samples, self.geometry, self.stride).unwrap()
    }

    /// The number of every pixel, by the rule of docs/masks.md.
    pub fn of_pixels(&self, frame: Geometry) -> Vec<u32> {
        let (w, h) = (frame.width() as usize, frame.height() as usize);
        let sample = |at: usize, samples: u32, pixels: usize| (2 * at + 1) * samples as usize / (2 * pixels);
        let at = |x: usize, y: usize| {
            let row = sample(y, self.geometry.height(), h);
            self.samples[row * self.stride + sample(x, self.geometry.width(), w)]
        };
        (0..w * h).map(|i| at(i % w, i / w)).collect()
    }
}
