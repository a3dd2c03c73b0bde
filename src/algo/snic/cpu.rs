// SPDX-License-Identifier: MPL-2.0
//! Stage `snic/grow` on the CPU: one priority queue, on one thread, since each pixel depends on all before it.

use super::Plan;
use super::queue::{Offer, Queue};
use crate::algo::AlgorithmPlan;
use crate::backend::{Segmenter, StageTimes};
use crate::buffers::cpu::FrameBuffers;
use crate::color::{OUTSIDE, unpack};
use crate::cpu::Cpu;
use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::grid::Grid;
use crate::image::{Labels, NO_LABEL};

/// Pixels that no cluster has taken have this bit.
const FREE: u32 = 1 << 31;
/// Columns and rows around the frame, so that every pixel has four neighbors. Nobody takes a pixel there.
const BORDER: usize = 1;
/// Offers that are taken between the request for a pixel's memory and its use: it lies anywhere in the frame.
const AHEAD: usize = 8;

/// A pixel with what is read and written together with it.
#[derive(Debug, Clone, Copy)]
struct Pixel {
    feature: u32,
    /// The label or, if free, half the distance of its least offer.
    state: u32,
}

const NOBODYS: Pixel = Pixel { feature: OUTSIDE, state: NO_LABEL as u32 };

/// State of a free pixel whose least offer has a distance. Its order is that of distances, but not strictly.
#[inline(always)]
fn offered(distance: u64) -> u32 {
    if distance >> 32 == 0 { FREE | (distance >> 1) as u32 } else { u32::MAX }
}

/// Column and row, counted from the border, and cluster in one word that is ordered by row, column and cluster.
#[inline(always)]
fn place(x: usize, y: usize, cluster: u16) -> u64 {
    (y as u64) << 32 | (x as u64) << 16 | u64::from(cluster)
}

/// Column and row of a place.
#[inline(always)]
fn position(place: u64) -> (usize, usize) {
    (usize::from((place >> 16) as u16), (place >> 32) as usize)
}

/// Members of a cluster: their number, and the sums of their colors and scaled positions.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Sums {
    count: u64,
    /// 2^64 over twice the count of one member more, which nobody has to wait for when that comes.
    inverse: u64,
    values: [u64; 5],
}

impl Sums {
    const NONE: Self = Self { count: 0, inverse: u64::MAX / 2, values: [0; 5] };

    /// Adds a member and returns the new means in 1/16, rounded half up.
    #[inline(always)]
    fn add(&mut self, values: [u32; 5]) -> [u32; 5] {
        self.count += 1;
        for (sum, value) in self.values.iter_mut().zip(values) {
            *sum += u64::from(value);
        }
        let (count, inverse) = (self.count, self.inverse);
        self.inverse = u64::MAX / (2 * count + 2);
        self.values.map(|sum| {
            let dividend = 32 * sum + count;
            // The inverse is at most one too small, so this quotient is, too.
            let quotient = ((u128::from(dividend) * u128::from(inverse)) >> 64) as u64;
            (quotient + u64::from(dividend - 2 * count * quotient >= 2 * count)) as u32
        })
    }
}

/// Squared distances of four pixels from means, all in 1/16.
#[inline(always)]
fn distances(features: [u32; 4], xs: [u32; 4], ys: [u32; 4], means: [u32; 5]) -> [u64; 4] {
    std::array::from_fn(|i| {
        let [a, b, c] = unpack(features[i]);
        let square = |value: u32, mean: u32| {
            let difference = value.wrapping_sub(mean);
            difference.wrapping_mul(difference)
        };
        // Three channels of 15, 15 and 14 bits: their squares fit 32 bits together.
        let color = square(16 * a, means[0]) + square(16 * b, means[1]) + square(16 * c, means[2]);
        let wide = |value: u32, mean: u32| i64::from(value.wrapping_sub(mean) as i32).pow(2) as u64;
        u64::from(color) + wide(xs[i], means[3]) + wide(ys[i], means[4])
    })
}

pub(crate) struct Snic {
    grid: Grid,
    /// True if frames may have masks.
    masked: bool,
    /// Scaled positions of columns and of rows in 1/16, with the border.
    xs: Array<u32>,
    ys: Array<u32>,
    /// The frame with its border.
    pixels: Array<Pixel>,
    sums: Array<Sums>,
    queue: Queue,
}

/// The plan's scaled positions in 1/16, with a border.
fn places(plan: &Plan) -> Result<[Array<u32>; 2]> {
    let with_border = |scaled: &[u32]| {
        let mut places = memory::filled("positions", scaled.len() + 2 * BORDER, 0)?;
        places[BORDER..].iter_mut().zip(scaled).for_each(|(place, &scaled)| *place = 16 * scaled);
        Ok(places)
    };
    Ok([with_border(&plan.px)?, with_border(&plan.py)?])
}

impl Snic {
    pub fn new(_: &Cpu, plan: &crate::plan::Plan, snic: &Plan) -> Result<Self> {
        let [xs, ys] = places(snic)?;
        Ok(Self {
            grid: plan.grid,
            masked: plan.masked,
            pixels: memory::filled("pixels", xs.len() * ys.len(), NOBODYS)?,
            xs,
            ys,
            sums: memory::filled("clusters", plan.grid.cells(), Sums::NONE)?,
            queue: Queue::new()?,
        })
    }

    /// Frees all pixels inside and offers every seed to its own cluster.
    fn start(&mut self, features: &[u32]) -> Result<()> {
        let Self { grid, pixels, sums, queue, xs, .. } = self;
        let (width, stride) = (grid.geometry.width as usize, xs.len());
        for (row, features) in pixels.chunks_exact_mut(stride).skip(BORDER).zip(features.chunks_exact(width))
        {
            for (pixel, &feature) in row[BORDER..].iter_mut().zip(features) {
                let state = if feature == OUTSIDE { NOBODYS.state } else { u32::MAX };
                *pixel = Pixel { feature, state };
            }
        }
        sums.fill(Sums::NONE);
        queue.clear();
        queue.reserve(grid.cells())?;
        for cluster in 0..grid.cells() {
            let (x, y) = grid.seed_inside(features, cluster % grid.nx as usize, cluster / grid.nx as usize);
            let pixel = &mut pixels[(y + BORDER) * stride + x + BORDER];
            if pixel.feature != OUTSIDE {
                pixel.state = offered(0);
                queue.push(Offer::new(0, place(x + BORDER, y + BORDER, cluster as u16)));
            }
        }
        Ok(())
    }

    fn grow(&mut self, features: &[u32], labels: &mut Labels<'_>) -> Result<()> {
        self.start(features)?;
        let Self { grid, masked, pixels, sums, queue, xs, ys } = self;
        let stride = xs.len();
        let index = |offer: Offer| {
            let (x, y) = position(offer.place());
            y * stride + x
        };
        // What is no more a pixel's least offer comes after that, and finds it taken.
        while let Some(offer) = queue.pop(|offer| pixels[index(offer)].state == offered(offer.distance()))? {
            if let Some(offer) = queue.ahead(AHEAD) {
                let at = index(offer);
                for at in [at - stride, at, at + stride] {
                    memory::prefetch(&pixels[at..=at]);
                }
                memory::prefetch(&sums[usize::from(offer.place() as u16)..][..1]);
            }
            let ((x, y), cluster) = (position(offer.place()), offer.place() as u16);
            let at = y * stride + x;
            let pixel = &mut pixels[at];
            if pixel.state < FREE {
                continue;
            }
            pixel.state = u32::from(cluster);
            let [a, b, c] = unpack(pixel.feature);
            let means = sums[usize::from(cluster)].add([a, b, c, xs[x] / 16, ys[y] / 16]);
            let around = [at - 1, at + 1, at - stride, at + stride];
            let distances = distances(
                around.map(|at| pixels[at].feature),
                [xs[x - 1], xs[x + 1], xs[x], xs[x]],
                [ys[y], ys[y], ys[y - 1], ys[y + 1]],
                means,
            );
            let places = [(x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)].map(|(x, y)| place(x, y, cluster));
            queue.reserve(4)?;
            for ((at, distance), place) in around.into_iter().zip(distances).zip(places) {
                let (pixel, state) = (&mut pixels[at], offered(distance));
                // False for a pixel that has been taken, and for an offer that would come after another to the same pixel.
                if state <= pixel.state {
                    pixel.state = state;
                    queue.push(Offer::new(distance, place));
                }
            }
        }
        for (y, row) in pixels.chunks_exact(stride).skip(BORDER).take(ys.len() - 2 * BORDER).enumerate() {
            for (label, pixel) in labels.row_mut(y).iter_mut().zip(&row[BORDER..]) {
                *label = pixel.state.min(NOBODYS.state) as u16;
            }
        }
        if *masked {
            assign_rest(grid, features, labels);
        }
        Ok(())
    }
}

/// Assigns pixels inside of a mask that no seed has reached to the clusters of their cells.
fn assign_rest(grid: &Grid, features: &[u32], labels: &mut Labels<'_>) {
    let width = grid.geometry.width as usize;
    for gy in 0..grid.ny as usize {
        for y in grid.rows(gy) {
            for gx in 0..grid.nx as usize {
                let columns = grid.columns(gx);
                let features = &features[y * width..][columns.clone()];
                for (label, &feature) in labels.row_mut(y)[columns].iter_mut().zip(features) {
                    if *label == NO_LABEL && feature != OUTSIDE {
                        *label = (gy * grid.nx as usize + gx) as u16;
                    }
                }
            }
        }
    }
}

impl Segmenter<Cpu> for Snic {
    fn change(&mut self, plan: &crate::plan::Plan, _: &mut FrameBuffers) -> Result<()> {
        if let AlgorithmPlan::Snic(own) = &plan.algorithm {
            [self.xs, self.ys] = places(own)?;
        }
        Ok(())
    }

    fn segment(
        &mut self,
        buffers: &mut FrameBuffers,
        labels: &mut Labels<'_>,
        times: &mut StageTimes,
    ) -> Result<()> {
        times.time("snic/grow", || self.grow(&buffers.features, labels))
    }
}
