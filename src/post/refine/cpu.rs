// SPDX-License-Identifier: MPL-2.0
//! Stage `refine` on the CPU. Even and odd rows lie in planes of their own, so that the rows of one plane may change in
//! parallel while the other is only read.

use super::{DIAGONAL, Plan, STRAIGHT, is_free};
use crate::backend::{Pass, Stage};
use crate::buffers::cpu::FrameBuffers;
use crate::color::unpack;
use crate::cpu::Cpu;
use crate::cpu::level::by_level;
use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::image::{Geometry, Labels, NO_LABEL};
use crate::parallel::prelude::*;
use crate::plan;
use crate::post::color_sums::BandSums;
use crate::post::connectivity::components::{Sums, distance};
use crate::post::runs::bits_of;

/// Name of the regions in errors about memory.
const REGIONS: &str = "regions to refine";
/// Rows of one parity per task.
const ROWS: usize = 16;
/// Pixels that are compared at a time.
const WORD: usize = u64::BITS as usize;

/// A pixel that has changed its region.
#[derive(Clone, Copy)]
struct Move {
    feature: u32,
    from: u16,
    to: u16,
}

pub(crate) struct Refine {
    cpu: Cpu,
    geometry: Geometry,
    plan: Plan,
    bands: Vec<BandSums>,
    /// Sums of each region.
    sums: Array<Sums>,
    means: Array<[u32; 3]>,
    /// The even and the odd rows, each with a column outside of the frame at both ends. A row outside stands before the
    /// first odd row and behind the last row of either plane.
    planes: [Array<u16>; 2],
    /// Moves found by each task, for each plane.
    moves: [Vec<Array<Move>>; 2],
}

impl Refine {
    pub fn new(cpu: &Cpu, plan: &plan::Plan, own: Plan) -> Result<Self> {
        let geometry = plan.frame.geometry;
        let rows = geometry.height.div_ceil(2) as usize + 1;
        let plane = || memory::filled("labels to refine", rows * stride(geometry), NO_LABEL);
        let tasks = || memory::collected("moves", (0..rows.div_ceil(ROWS)).map(|_| Array::new()));
        Ok(Self {
            cpu: cpu.clone(),
            geometry,
            plan: own,
            bands: (0..cpu.threads().min(geometry.height as usize)).map(|_| BandSums::default()).collect(),
            sums: Array::new(),
            means: Array::new(),
            planes: [plane()?, plane()?],
            moves: [tasks()?, tasks()?],
        })
    }

    /// Measures pixels and features of every region.
    fn measure(&mut self, features: &[u32], labels: &Labels<'_>, count: usize) -> Result<()> {
        let height = self.geometry.height as usize;
        let rows = height.div_ceil(self.bands.len());
        let span = |i: usize| (i * rows).min(height)..((i + 1) * rows).min(height);
        let used = height.div_ceil(rows);
        let bands = &mut self.bands[..used];
        self.cpu.run(|| {
            bands.par_iter_mut().enumerate().try_for_each(|(i, band)| band.measure(features, labels, span(i)))
        })?;
        memory::refill(&mut self.sums, REGIONS, count, Sums::default())?;
        bands.iter().for_each(|band| band.add_to(&mut self.sums));
        Ok(())
    }

    /// Splits the labels into even and odd rows.
    fn split_rows(&mut self, labels: &Labels<'_>) {
        let (width, stride) = (self.geometry.width as usize, stride(self.geometry));
        let height = self.geometry.height as usize;
        let Self { cpu, planes, .. } = self;
        cpu.run(|| {
            for (parity, plane) in planes.iter_mut().enumerate() {
                let rows =
                    plane[parity * stride..].par_chunks_exact_mut(stride).with_min_len(ROWS).enumerate();
                rows.for_each(|(i, row)| {
                    if 2 * i + parity < height {
                        row[1..=width].copy_from_slice(labels.row(2 * i + parity));
                    }
                });
            }
        });
    }

    /// Joins even and odd rows again.
    fn join_rows(&self, labels: &mut Labels<'_>) {
        let (width, stride) = (self.geometry.width as usize, stride(self.geometry));
        self.cpu.run(|| {
            labels.bands_mut(1).with_min_len(ROWS).enumerate().for_each(|(y, mut band)| {
                let row = &self.planes[y % 2][(y / 2 + y % 2) * stride..][1..=width];
                band.row_mut(0).copy_from_slice(row);
            });
        });
    }

    /// Runs the four phases with one set of means: two over the even rows, then two over the odd ones.
    fn sweep(&mut self, features: &[u32], prior: &[u32], is_last: bool) -> Result<()> {
        let Self { geometry, plan, sums, means, planes: [even, odd], moves, .. } = self;
        means.clear();
        memory::reserve(means, REGIONS, sums.len())?;
        means.extend(sums.iter().map(Sums::mean));
        let sweep = Sweep { features, prior, means, plan: *plan, geometry: *geometry };
        self.cpu.run(|| {
            sweep.refine_plane(0, even, odd, &mut moves[0])?;
            sweep.refine_plane(1, odd, even, &mut moves[1])
        })?;
        if !is_last {
            for &Move { feature, from, to } in moves.iter().flatten().flat_map(|moves| &***moves) {
                let pixel = Sums { count: 1, color: unpack(feature).map(u64::from) };
                sums[usize::from(to)].add(&pixel);
                sums[usize::from(from)].subtract(&pixel);
            }
        }
        Ok(())
    }
}

/// Inputs that are constant for all phases of a sweep.
struct Sweep<'a> {
    features: &'a [u32],
    /// Empty for a frame without one.
    prior: &'a [u32],
    means: &'a [[u32; 3]],
    plan: Plan,
    geometry: Geometry,
}

impl Sweep<'_> {
    /// Runs the two phases of the rows of one parity. Such rows touch only by way of the other parity's, so a task runs
    /// the second phase in a row right after the first.
    fn refine_plane(
        &self,
        parity: usize,
        own: &mut [u16],
        other: &[u16],
        moves: &mut [Array<Move>],
    ) -> Result<()> {
        let (stride, width) = (stride(self.geometry), self.geometry.width as usize);
        let rows = own[parity * stride..].par_chunks_mut(ROWS * stride);
        rows.zip(moves).enumerate().try_for_each(|(task, (rows, moves))| {
            moves.clear();
            for (i, row) in rows.chunks_exact_mut(stride).enumerate() {
                let index = task * ROWS + i;
                let y = 2 * index + parity;
                if y >= self.geometry.height as usize {
                    break;
                }
                memory::reserve(moves, "pixels that move", width)?;
                // The row above has the same index in the other parity's plane, and the row below the next.
                let [above, below] = [index, index + 1].map(|at| &other[at * stride..][..stride]);
                let features = &self.features[y * width..][..width];
                for first in [0, 1] {
                    refine_row(self, [first, y], [above, below], row, features, moves);
                }
            }
            Ok(())
        })
    }

    /// Returns true if a 4-neighbor of a pixel, by its number in the ring, is in the same area.
    fn shares_area(&self, x: usize, y: usize, neighbor: usize) -> bool {
        let width = self.geometry.width as usize;
        let at = match neighbor {
            0 => (y - 1) * width + x,
            2 => y * width + x + 1,
            4 => (y + 1) * width + x,
            _ => y * width + x - 1,
        };
        self.prior[at] == self.prior[y * width + x]
    }

    /// Returns the region that the pixel at `x` of row `y` moves to, if any; `x` counts the column outside.
    #[inline(always)]
    fn better(
        &self,
        [x, y]: [usize; 2],
        [above, below]: [&[u16]; 2],
        row: &[u16],
        feature: u32,
    ) -> Option<u16> {
        let own = row[x];
        let ring = [
            above[x],
            above[x + 1],
            row[x + 1],
            below[x + 1],
            below[x],
            below[x - 1],
            row[x - 1],
            above[x - 1],
        ];
        let inside = |label: u16| {
            ring.iter().enumerate().fold(0, |bits, (i, &other)| bits | u8::from(other == label) << i)
        };
        let kept = inside(own);
        if own == NO_LABEL || !is_free(kept) {
            return None;
        }
        let color = unpack(feature).map(|channel| 16 * channel);
        let energy = |label: u16, inside: u8| {
            let straight = (!inside & STRAIGHT).count_ones();
            let diagonal = (!inside & DIAGONAL).count_ones();
            distance(color, self.means[usize::from(label)])
                + straight * self.plan.straight
                + diagonal * self.plan.diagonal
        };
        let mut best = (energy(own, kept), own);
        for i in (0..8).step_by(2) {
            let label = ring[i];
            // Each region is tried once: at a later pixel of it, it has already been chosen or refused. With a prior it may be tried again.
            if label == own || label == NO_LABEL {
                continue;
            }
            if self.prior.is_empty() {
                if ring[..i].iter().step_by(2).any(|&other| other == label) {
                    continue;
                }
            } else if !self.shares_area(x - 1, y, i) {
                continue;
            }
            let energy = energy(label, inside(label));
            if energy < best.0 || energy == best.0 && best.1 != own && label < best.1 {
                best = (energy, label);
            }
        }
        (best.1 != own).then_some(best.1)
    }
}

by_level! {
    /// Runs one phase of row `y`, at every second column from `first` on. `row` has a column outside at both ends,
    /// `features` has none. `moves` has capacity for a move per pixel.
    fn refine_row(
        sweep: &Sweep<'_>,
        at: [usize; 2],
        beside: [&[u16]; 2],
        row: &mut [u16],
        features: &[u32],
        moves: &mut Array<Move>,
    ) = refine_row_body
}

#[inline(always)]
fn refine_row_body(
    sweep: &Sweep<'_>,
    [first, y]: [usize; 2],
    beside: [&[u16]; 2],
    row: &mut [u16],
    features: &[u32],
    moves: &mut Array<Move>,
) {
    let mask = 0x5555_5555_5555_5555 << first;
    for start in (0..features.len()).step_by(WORD) {
        let end = (start + WORD).min(features.len());
        let mut bits = boundary(&row[start..end + 2], beside.map(|row| &row[start + 1..end + 1])) & mask;
        while bits != 0 {
            let x = start + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            if let Some(to) = sweep.better([x + 1, y], beside, row, features[x]) {
                moves.push(Move { feature: features[x], from: row[x + 1], to });
                row[x + 1] = to;
            }
        }
    }
}

/// A bit for each of up to 64 pixels, set if a 4-neighbor has another label. `row` has one more pixel at both ends.
#[inline(always)]
fn boundary(row: &[u16], [above, below]: [&[u16]; 2]) -> u64 {
    let mut differ = [0u8; WORD];
    let len = above.len();
    let (left, own, right) = (&row[..len], &row[1..=len], &row[2..]);
    for i in 0..len {
        let other = (own[i] ^ left[i]) | (own[i] ^ right[i]) | (own[i] ^ above[i]) | (own[i] ^ below[i]);
        differ[i] = u8::from(other != 0);
    }
    bits_of(&differ)
}

/// Entries from one row of a plane to the next.
fn stride(geometry: Geometry) -> usize {
    geometry.width as usize + 2
}

impl Stage<Cpu> for Refine {
    fn run(&mut self, _: Pass, buffers: &mut FrameBuffers, labels: &mut Labels<'_>) -> Result<()> {
        if buffers.sums.is_empty() {
            self.measure(&buffers.features, labels, buffers.count as usize)?;
        } else {
            self.sums.clear();
            memory::reserve(&mut self.sums, REGIONS, buffers.sums.len())?;
            self.sums.extend(buffers.sums.iter().map(|sums| Sums { count: sums.area, color: sums.color }));
            buffers.clear_sums();
        }
        self.split_rows(labels);
        for sweep in 1..=self.plan.sweeps {
            self.sweep(&buffers.features, &buffers.prior, sweep == self.plan.sweeps)?;
        }
        self.join_rows(labels);
        Ok(())
    }
}
