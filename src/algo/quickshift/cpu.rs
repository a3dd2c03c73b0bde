// SPDX-License-Identifier: MPL-2.0
//! Quick shift on the CPU: the reference. Stages `quickshift/density`, `quickshift/link`, `quickshift/flatten`.
//!
//! Channels are kept as planes of floats with a margin all along the rows, so that neighbors in a row are worked on together
//! and no offset leaves the plane sideways.

// Lanes run over several arrays at once; an iterator over one of them hides that.
#![allow(clippy::needless_range_loop)]

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::{EXP2, Plan};
use crate::algo::AlgorithmPlan;
use crate::backend::{Segmenter, StageTimes};
use crate::buffers::cpu::{FrameBuffers, NO_CLUSTER};
use crate::color::{OUTSIDE, unpack};
use crate::cpu::level::by_level;
use crate::cpu::memory::Array;
use crate::cpu::{Cpu, memory};
use crate::error::Result;
use crate::image::{Geometry, Labels};
use crate::parallel::prelude::*;

/// Pixels of a row that are worked on together.
const LANES: usize = 16;
/// Rows per task.
const BAND: usize = 4;
/// A color outside of the frame or a mask, so far off that it gets no weight and no link at any color scale.
const NOWHERE: f32 = 1e15;

type Lanes<T> = [T; LANES];

/// Channels and densities. Rows have a margin of `margin` columns outside of the frame on both sides.
struct Planes {
    geometry: Geometry,
    margin: usize,
    stride: usize,
    color: [Array<f32>; 3],
    /// 0 outside of the frame.
    density: Array<u32>,
}

impl Planes {
    fn new(geometry: Geometry, reach: usize) -> Result<Self> {
        let margin = reach.next_multiple_of(LANES);
        let stride = (geometry.width as usize).next_multiple_of(LANES) + 2 * margin;
        let len = stride * geometry.height as usize;
        let channel = || memory::filled("channels", len, NOWHERE);
        Ok(Self {
            geometry,
            margin,
            stride,
            color: [channel()?, channel()?, channel()?],
            density: memory::zeroed("densities", len)?,
        })
    }

    /// Rows `y - reach` to `y + reach`, as far as they are in the frame.
    fn rows(&self, y: usize, reach: usize) -> std::ops::Range<usize> {
        y.saturating_sub(reach)..(y + reach + 1).min(self.geometry.height as usize)
    }

    #[inline(always)]
    fn colors(&self, at: usize) -> [Lanes<f32>; 3] {
        [0, 1, 2].map(|j| lanes(&self.color[j], at))
    }
}

#[inline(always)]
fn lanes<T: Copy + Default>(plane: &[T], at: usize) -> Lanes<T> {
    plane[at..].first_chunk().copied().unwrap_or([T::default(); LANES])
}

pub(crate) struct QuickShift {
    cpu: Cpu,
    plan: Plan,
    /// True if frames may have masks.
    masked: bool,
    planes: Planes,
    /// Link of each pixel to its parent, itself for a root; rows without margin.
    parents: Array<AtomicU32>,
}

impl QuickShift {
    pub fn new(cpu: &Cpu, plan: &crate::plan::Plan, quickshift: &Plan) -> Result<Self> {
        let geometry = plan.frame.geometry;
        let mut parents = Array::new();
        memory::reserve(&mut parents, "links", geometry.pixels())?;
        parents.extend((0..geometry.pixels() as u32).map(AtomicU32::new));
        Ok(Self {
            cpu: cpu.clone(),
            planes: Planes::new(geometry, quickshift.reach())?,
            plan: quickshift.clone(),
            masked: plan.masked,
            parents,
        })
    }

    fn density(&mut self, features: &[u32]) {
        let Self { cpu, plan, planes, .. } = self;
        let (width, margin, stride) = (planes.geometry.width as usize, planes.margin, planes.stride);
        let [a, b, c] = &mut planes.color;
        let mut density = std::mem::take(&mut planes.density);
        cpu.run(|| {
            let rows = a.par_chunks_mut(stride).zip(b.par_chunks_mut(stride)).zip(c.par_chunks_mut(stride));
            features.par_chunks(width).zip(rows).with_min_len(BAND).for_each(|(features, ((a, b), c))| {
                for (x, &feature) in features.iter().enumerate() {
                    let color = unpack(feature).map(|v| v as f32);
                    let color = if feature == OUTSIDE { [NOWHERE; 3] } else { color };
                    [a[margin + x], b[margin + x], c[margin + x]] = color;
                }
            });
        });
        let planes_read = &*planes;
        cpu.run(|| {
            density.par_chunks_mut(stride).enumerate().with_min_len(BAND).for_each(|(y, out)| {
                density_row(planes_read, plan, y, &mut out[margin..stride - margin]);
                out[margin + width..].fill(0);
            });
        });
        planes.density = density;
    }

    fn link(&mut self) {
        let Self { cpu, plan, planes, parents, .. } = self;
        let width = planes.geometry.width as usize;
        cpu.run(|| {
            parents.par_chunks_mut(width).enumerate().with_min_len(BAND).for_each(|(y, out)| {
                link_row(planes, plan, y, out);
            });
        });
    }

    /// Points all pixels on the way from each pixel to its root at that root. Several threads may compress the same
    /// path: every value read there is an ancestor.
    fn flatten(&mut self, clusters: &mut [u32]) {
        let Self { cpu, planes, parents, .. } = self;
        let (band, parents) = (BAND * planes.geometry.width as usize, &*parents);
        cpu.run(|| {
            clusters.par_chunks_mut(band).enumerate().for_each(|(i, clusters)| {
                for (pixel, cluster) in (i * band..).zip(clusters) {
                    let mut root = pixel as u32;
                    loop {
                        let up = parents[root as usize].load(Relaxed);
                        if up == root {
                            break;
                        }
                        root = up;
                    }
                    let mut at = pixel as u32;
                    while at != root {
                        at = parents[at as usize].swap(root, Relaxed);
                    }
                    *cluster = root;
                }
            });
        });
    }
}

impl Segmenter<Cpu> for QuickShift {
    fn segment(
        &mut self,
        buffers: &mut FrameBuffers,
        _: &mut Labels<'_>,
        times: &mut StageTimes,
    ) -> Result<()> {
        times.time("quickshift/density", || self.density(&buffers.features));
        times.time("quickshift/link", || self.link());
        times.time("quickshift/flatten", || self.flatten(&mut buffers.clusters));
        if self.masked {
            let pixels = buffers.clusters.par_iter_mut().zip(&buffers.features[..]);
            let outside = pixels.filter(|(_, feature)| **feature == OUTSIDE);
            self.cpu.run(|| outside.for_each(|(cluster, _)| *cluster = NO_CLUSTER));
        }
        Ok(())
    }

    fn change(&mut self, plan: &crate::plan::Plan, _: &mut FrameBuffers) -> Result<()> {
        if let AlgorithmPlan::QuickShift(own) = &plan.algorithm {
            *self = Self::new(&self.cpu, plan, own)?;
        }
        Ok(())
    }
}

/// Squared color difference in squared quanta: exact.
#[inline(always)]
fn color_distance(p: &[Lanes<f32>; 3], q: &[Lanes<f32>; 3], lane: usize) -> f32 {
    let [a, b, c] = [0, 1, 2].map(|j| p[j][lane] - q[j][lane]);
    c.mul_add(c, b.mul_add(b, a * a))
}

by_level! {
    /// The densities of one row, in units of the weights.
    fn density_row(planes: &Planes, plan: &Plan, y: usize, out: &mut [u32]) = density_row_body
}

#[inline(always)]
fn density_row_body(planes: &Planes, plan: &Plan, y: usize, out: &mut [u32]) {
    let (weight, radius) = (&plan.weight, plan.radius as usize);
    let rows = planes.rows(y, radius);
    // Every product adds the bits of `unit` to the sum, too.
    let surplus = weight.unit.to_bits().wrapping_mul((rows.len() * (2 * radius + 1)) as u32);
    for (x, out) in (planes.margin..).step_by(LANES).zip(out.chunks_exact_mut(LANES)) {
        let p = planes.colors(y * planes.stride + x);
        let mut sum = [0u32; LANES];
        for row in rows.clone() {
            let start = row * planes.stride + x - radius;
            let share = weight.row[row.abs_diff(y)];
            for i in 0..2 * radius + 1 {
                let base = weight.column[i.abs_diff(radius)] - share;
                let q = planes.colors(start + i);
                for lane in 0..LANES {
                    let u = (-weight.color).mul_add(color_distance(&p, &q, lane), base);
                    let u = if u > 0.0 { u } else { 0.0 };
                    let z = u.mul_add(weight.span, weight.bias);
                    let f = u.mul_add(weight.span, -(z - weight.bias));
                    let mut power = EXP2[EXP2.len() - 1];
                    for &factor in EXP2.iter().rev().skip(1) {
                        power = power.mul_add(f, factor);
                    }
                    power = power.mul_add(f, 1.0);
                    let scale = f32::from_bits(z.to_bits() << 23);
                    sum[lane] = sum[lane].wrapping_add(power.mul_add(scale, weight.unit).to_bits());
                }
            }
        }
        for lane in 0..LANES {
            out[lane] = sum[lane].wrapping_sub(surplus);
        }
    }
}

by_level! {
    /// The parents of one row.
    fn link_row(planes: &Planes, plan: &Plan, y: usize, out: &mut [AtomicU32]) = link_row_body
}

#[inline(always)]
fn link_row_body(planes: &Planes, plan: &Plan, y: usize, out: &mut [AtomicU32]) {
    const NONE: i32 = i32::MAX;
    let (width, height) = (planes.geometry.width as i32, planes.geometry.height as i32);
    for (i, out) in out.chunks_mut(LANES).enumerate() {
        let here = y * planes.stride + planes.margin + i * LANES;
        let (p, density) = (planes.colors(here), lanes(&planes.density, here));
        // Lanes beyond the row start at a distance of -1, which no link undercuts.
        let mut best: Lanes<f32> =
            std::array::from_fn(|lane| if lane < out.len() { plan.tau_sq } else { -1.0 });
        let mut parent = [NONE; LANES];
        for ring in &plan.rings {
            let length_sq = plan.offsets[ring.start].length_sq() as f32;
            let mut wanted = false;
            for lane in 0..LANES {
                wanted |= best[lane] >= length_sq;
            }
            if !wanted {
                break;
            }
            for offset in &plan.offsets[ring.clone()] {
                let (dx, dy) = (i32::from(offset.dx), i32::from(offset.dy));
                if !(0..height).contains(&(y as i32 + dy)) {
                    continue;
                }
                let there = (here as isize + dy as isize * planes.stride as isize + dx as isize) as usize;
                let (q, other) = (planes.colors(there), lanes(&planes.density, there));
                // Index of the other pixel less this one's, which orders other pixels by index.
                let step = dy * width + dx;
                // Of equal densities, the one of lower index counts as higher.
                let equal_is_higher = step < 0;
                for lane in 0..LANES {
                    let d = plan.color_sq.mul_add(color_distance(&p, &q, lane), length_sq);
                    let higher =
                        (other[lane] > density[lane]) | ((other[lane] == density[lane]) & equal_is_higher);
                    let nearer = (d < best[lane]) | ((d == best[lane]) & (step < parent[lane]));
                    let take = higher & nearer;
                    best[lane] = if take { d } else { best[lane] };
                    parent[lane] = if take { step } else { parent[lane] };
                }
            }
        }
        for (lane, out) in out.iter_mut().enumerate() {
            let pixel = y as i32 * width + (i * LANES + lane) as i32;
            *out.get_mut() = (pixel + if parent[lane] == NONE { 0 } else { parent[lane] }) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Params;
    use super::*;
    use crate::color::{ColorSpace, ColorTables};

    /// Densities and parents by their definitions in f64, one pair after the other.
    fn defined(geometry: Geometry, features: &[u32], params: &Params) -> (Vec<f64>, Vec<Option<usize>>) {
        let (w, h) = (geometry.width as i64, geometry.height as i64);
        let [sigma, tau, scale] = [params.sigma, params.tau, params.color_scale].map(f64::from);
        let quanta = params.color_space.quanta();
        let distance = |i: i64, j: i64| {
            let position = (i % w - j % w).pow(2) + (i / w - j / w).pow(2);
            let (p, q) = (unpack(features[i as usize]), unpack(features[j as usize]));
            let color: f64 = (0..3).map(|k| (f64::from(p[k].abs_diff(q[k])) / quanta * scale).powi(2)).sum();
            position as f64 + color
        };
        let around = |i: i64, reach: i64| {
            let (x, y) = (i % w, i / w);
            ((y - reach).max(0)..(y + reach + 1).min(h))
                .flat_map(move |v| ((x - reach).max(0)..(x + reach + 1).min(w)).map(move |u| v * w + u))
        };
        let density: Vec<f64> = (0..w * h)
            .map(|i| {
                around(i, (3.0 * sigma).ceil() as i64)
                    .map(|j| (-distance(i, j) / (2.0 * sigma * sigma)).exp())
                    .sum()
            })
            .collect();
        // Densities that differ by rounding alone have no defined order, so links between them are not compared.
        let near = |a: f64, b: f64| (a - b).abs() <= 3e-6 * a.abs();
        let parents = (0..w * h).map(|i| {
            let e = density[i as usize];
            let mut best = (tau * tau, i);
            for j in around(i, tau.ceil() as i64).filter(|&j| j != i) {
                let higher = density[j as usize] > e || (density[j as usize] == e && j < i);
                if higher && (distance(i, j), j) < best {
                    best = (distance(i, j), j);
                }
            }
            let unsure = around(i, tau.ceil() as i64).filter(|&j| j != i).any(|j| {
                let (d, other) = (distance(i, j), density[j as usize]);
                let in_reach = d <= best.0 || near(d, best.0);
                in_reach && (near(e, other) || (j != best.1 && other > e && d != best.0 && near(d, best.0)))
            });
            (!unsure).then_some(best.1 as usize)
        });
        let parents = parents.collect();
        (density, parents)
    }

    /// Pieces of a rendered film, and of the photographs in the folder that SUPERPIXEL_IMAGES names.
    fn crops(geometry: Geometry) -> Vec<image::RgbImage> {
        let film = include_bytes!("../../../docs/pictures/overlays.png");
        let film = image::load_from_memory(film).unwrap().to_rgb8();
        let crop = |picture: &image::RgbImage, (left, top): (u32, u32)| {
            image::imageops::crop_imm(picture, left, top, geometry.width, geometry.height).to_image()
        };
        let mut crops: Vec<_> = [(20, 30), (150, 100), (280, 140)].map(|at| crop(&film, at)).into();
        if let Some(folder) = std::env::var_os("SUPERPIXEL_IMAGES") {
            for file in std::fs::read_dir(folder).unwrap() {
                let path = file.unwrap().path();
                if !path.extension().is_some_and(|e| e == "jpg" || e == "png") {
                    continue;
                }
                let photograph = image::open(path).unwrap().to_rgb8();
                let middle = |side: u32, of: u32| (side - of) / 2;
                let (width, height) = photograph.dimensions();
                crops.push(crop(
                    &photograph,
                    (middle(width, geometry.width), middle(height, geometry.height)),
                ));
            }
        }
        crops
    }

    fn run(geometry: Geometry, features: &[u32], params: &Params) -> (Vec<u32>, Vec<u32>, Plan) {
        let wanted = crate::params::Params {
            algorithm: crate::algo::AlgorithmParams::QuickShift(params.clone()),
            ..Default::default()
        };
        let frame = crate::image::FrameInfo::new(geometry, crate::image::PixelFormat::Rgb);
        let plan = crate::plan::Plan::new(&wanted, frame).unwrap();
        let own = Plan::new(params);
        let mut quickshift = QuickShift::new(&Cpu::new(2).unwrap(), &plan, &own).unwrap();
        quickshift.density(features);
        quickshift.link();
        let planes = &quickshift.planes;
        let rows = planes.density.chunks(planes.stride).map(|row| &row[planes.margin..]);
        let density = rows.flat_map(|row| &row[..geometry.width as usize]).copied().collect();
        (density, quickshift.parents.iter().map(|p| p.load(Relaxed)).collect(), own)
    }

    #[test]
    fn densities_and_links_are_those_of_the_definition() {
        let geometry = Geometry::new(83, 67).unwrap();
        for crop in crops(geometry) {
            for (sigma, tau, color_scale, color_space) in [
                (3.0, 8.0, 0.5, ColorSpace::Lab),
                (6.0, 10.0, 0.125, ColorSpace::Rgb),
                (1.5, 4.5, 1.0, ColorSpace::Lab),
                (10.7, 20.0, 0.3, ColorSpace::Lab),
            ] {
                let params = Params { sigma, tau, color_scale, color_space };
                let tables = ColorTables::new(color_space).unwrap();
                let features: Vec<u32> = crop.pixels().map(|pixel| tables.feature(pixel.0)).collect();
                let (density, parents, plan) = run(geometry, &features, &params);
                let (want, links) = defined(geometry, &features, &params);
                let one = f64::from(8_388_608.0 / plan.weight.unit);
                let error = |(&e, w): (&u32, &f64)| (f64::from(e) / one / w - 1.0).abs();
                let worst = density.iter().zip(&want).map(error).fold(0.0, f64::max);
                // Weights are whole units, so the error of a sum depends on the picture; the largest seen is 1.03e-5.
                assert!(worst < 5e-5, "density is wrong by {worst:e} with {params:?}");
                let sure = links.iter().filter(|link| link.is_some()).count();
                let same = links.iter().zip(&parents).filter(|&(l, &p)| *l == Some(p as usize)).count();
                println!(
                    "{params:?}: density within {worst:e}, {same} of {sure} parents equal, {} unsure",
                    links.len() - sure
                );
                assert!(sure * 100 > 85 * links.len(), "too many ties: {sure} of {}", links.len());
                assert!(1000 * same >= 999 * sure, "{same} of {sure} parents with {params:?}");
            }
        }
    }

    #[test]
    fn weights_are_exact_at_one_and_vanish_outside() {
        // A lonely pixel has only its own weight; in a frame of one color the density is the sum of the kernel.
        let params = Params { sigma: 2.0, color_scale: 10.0, ..Params::default() };
        let far = [0, 1023 | 2047 << 10 | 2047 << 21];
        let geometry = Geometry::new(2, 1).unwrap();
        let (density, parents, _) = run(geometry, &far, &params);
        assert_eq!(density, [1 << 22, 1 << 22]);
        assert_eq!(parents, [0, 1]);
        for sigma in [0.5f32, 3.0, 10.0, 20.0] {
            let params = Params { sigma, ..Params::default() };
            let geometry = Geometry::new(150, 140).unwrap();
            let (density, _, plan) = run(geometry, &vec![77; geometry.pixels()], &params);
            let r = i64::from(plan.radius);
            let one = f64::from(8_388_608.0 / plan.weight.unit);
            let gauss = |d: i64| (-((d * d) as f64) / (2.0 * f64::from(sigma).powi(2))).exp();
            let line: f64 = (-r..=r).map(gauss).sum();
            let middle = f64::from(density[70 * 150 + 75]) / one;
            assert!((middle / line / line - 1.0).abs() < 1e-5, "sigma {sigma}: {middle} for {}", line * line);
        }
    }
}
