// SPDX-License-Identifier: MPL-2.0
//! Stage `hierarchy` on the CPU: touching pairs of bands of rows in parallel, then rounds over regions and pairs. What regions add up
//! to has been measured for it, and serves the region table after it.

use std::ops::Range;

use rayon::prelude::*;

use super::Plan;
use super::graph::{Graph, Sums};
use super::pairs::Pairs;
use crate::backend;
use crate::buffers::cpu::{FrameBuffers, RegionSums};
use crate::color::unpack;
use crate::cpu::level::by_level;
use crate::cpu::memory::Array;
use crate::cpu::{Cpu, chunk, memory};
use crate::error::Result;
use crate::image::{Geometry, Labels, NO_LABEL};
use crate::post::runs::{BLOCK, FEW, WORD, differences};
use crate::post::statistics::cpu::label_span;
use crate::temporal::merged::Part;

/// What memory is for, in errors.
const REGIONS: &str = "regions to merge";
/// New labels by old ones, with [`NO_LABEL`] for itself.
const NAMES: usize = NO_LABEL as usize + 1;

/// Features that are worked on together.
const LANES: usize = 16;
/// By how many rows pixels are asked for before they are read.
const AHEAD: usize = 2;

by_level! {
    /// What is between pixels of both sides, [`LANES`] at a time.
    fn compare_sides(sides: &mut Sides, count: usize) = compare_sides_body
}

#[inline(always)]
fn compare_sides_body(sides: &mut Sides, count: usize) {
    let Sides { labels: [low, high], features: [near, far], contrasts } = sides;
    let (near, far) = (near.as_chunks::<LANES>().0, far.as_chunks::<LANES>().0);
    let contrasts = contrasts.as_chunks_mut::<LANES>().0;
    for ((contrasts, near), far) in contrasts.iter_mut().zip(near).zip(far).take(count.div_ceil(LANES)) {
        for ((contrast, &near), &far) in contrasts.iter_mut().zip(near).zip(far) {
            let (a, b) = (unpack(near), unpack(far));
            *contrast = (a[0].abs_diff(b[0]) + a[1].abs_diff(b[1]) + a[2].abs_diff(b[2])) as u16;
        }
    }
    let (low, high) = (low.as_chunks_mut::<LANES>().0, high.as_chunks_mut::<LANES>().0);
    for (low, high) in low.iter_mut().zip(high).take(count.div_ceil(LANES)) {
        for (low, high) in low.iter_mut().zip(high) {
            (*low, *high) = ((*low).min(*high), (*low).max(*high));
        }
    }
}

/// Some pixels of a row.
#[derive(Clone, Copy)]
struct Pixels<'a> {
    labels: &'a [u16],
    features: &'a [u32],
}

impl Pixels<'_> {
    fn columns(self, columns: Range<usize>) -> Self {
        Self { labels: &self.labels[columns.clone()], features: &self.features[columns] }
    }
}

/// Room for the pixels of a block that have another label than their neighbor, and for what is written behind them.
const SIDES: usize = BLOCK + FEW.next_multiple_of(LANES);

/// Pixels on both sides of boundaries: labels, of which the first becomes the lower one, and features, with their differences.
struct Sides {
    labels: [[u16; SIDES]; 2],
    features: [[u32; SIDES]; 2],
    contrasts: [u16; SIDES],
}

impl Sides {
    fn new() -> Self {
        Self { labels: [[0; SIDES]; 2], features: [[0; SIDES]; 2], contrasts: [0; SIDES] }
    }

    /// Lists those of a word whose labels differ behind `found` others; returns how many there are then.
    #[inline(always)]
    fn list_word(&mut self, labels: [&[u16; WORD]; 2], features: [&[u32; WORD]; 2], found: usize) -> usize {
        let (mut bits, count) = differences(labels[0], labels[1]);
        let mut next = found;
        while let [Some(one), Some(other)] =
            self.labels.each_mut().map(|labels| labels[next..].first_chunk_mut::<FEW>())
            && let [Some(near), Some(far)] =
                self.features.each_mut().map(|features| features[next..].first_chunk_mut::<FEW>())
        {
            for i in 0..FEW {
                let column = bits.trailing_zeros() as usize % WORD;
                (one[i], other[i]) = (labels[0][column], labels[1][column]);
                (near[i], far[i]) = (features[0][column], features[1][column]);
                bits &= bits.wrapping_sub(1);
            }
            if bits == 0 {
                break;
            }
            next += FEW;
        }
        found + count
    }
}

/// The rows of one task, and the pairs of labels that touch in them or below them.
struct Band {
    pairs: Pairs,
    sides: Sides,
}

impl Band {
    fn new() -> Self {
        Self { pairs: Pairs::default(), sides: Sides::new() }
    }

    fn measure(&mut self, features: &[u32], labels: &Labels<'_>, rows: Range<usize>) -> Result<()> {
        let (width, height) = (labels.geometry().width as usize, labels.geometry().height as usize);
        let row = |y: usize| Pixels { labels: labels.row(y), features: &features[y * width..][..width] };
        for y in rows {
            let (own, ahead) = (row(y), row((y + AHEAD).min(height - 1)));
            self.add_rows(own.columns(0..width - 1), own.columns(1..width), ahead.labels)?;
            if y + 1 < height {
                self.add_rows(own, row(y + 1), ahead.features)?;
            }
        }
        Ok(())
    }

    /// Adds what is between the pixels of two rows, and asks for what is read `ahead` as it goes.
    fn add_rows<T>(&mut self, one: Pixels<'_>, other: Pixels<'_>, ahead: &[T]) -> Result<()> {
        let width = one.labels.len();
        for first in (0..width).step_by(BLOCK) {
            let columns = first..(first + BLOCK).min(width);
            memory::prefetch(&ahead[columns.clone()]);
            self.add_block(one.columns(columns.clone()), other.columns(columns))?;
        }
        Ok(())
    }

    fn add_block(&mut self, one: Pixels<'_>, other: Pixels<'_>) -> Result<()> {
        let Self { pairs, sides } = self;
        let (mut found, both) = (0, [one, other]);
        let [(one, rest), (other, other_rest)] = both.map(|pixels| pixels.labels.as_chunks());
        let [(near, near_rest), (far, far_rest)] = both.map(|pixels| pixels.features.as_chunks());
        for (labels, features) in one.iter().zip(other).zip(near.iter().zip(far)) {
            found = sides.list_word([labels.0, labels.1], [features.0, features.1], found);
        }
        if !rest.is_empty() {
            let labels = [rest, other_rest].map(|labels| chunk::first(labels, 0));
            let features = [near_rest, far_rest].map(|features| chunk::first(features, 0));
            found = sides.list_word(labels.each_ref(), features.each_ref(), found);
        }
        compare_sides(sides, found);
        let Sides { labels: [low, high], contrasts, .. } = &*sides;
        pairs.add_pixels(&low[..found], &high[..found], &contrasts[..found])
    }
}

pub(crate) struct Hierarchy {
    cpu: Cpu,
    geometry: Geometry,
    plan: Plan,
    bands: Vec<Band>,
    graph: Graph,
    /// Pixels before anything merged.
    sizes: Array<u32>,
    labels: Array<u16>,
}

impl Hierarchy {
    pub fn new(cpu: &Cpu, geometry: Geometry, plan: Plan) -> Self {
        let bands = cpu.threads().min(geometry.height as usize);
        Self {
            cpu: cpu.clone(),
            geometry,
            plan,
            bands: (0..bands).map(|_| Band::new()).collect(),
            graph: Graph::default(),
            sizes: Array::new(),
            labels: Array::new(),
        }
    }

    /// Lists the pairs of labels that touch.
    fn measure(&mut self, features: &[u32], labels: &Labels<'_>, count: usize) -> Result<()> {
        let height = self.geometry.height as usize;
        let rows = height.div_ceil(self.bands.len());
        let used = height.div_ceil(rows);
        let Self { cpu, bands, graph, .. } = self;
        let bands = &mut bands[..used];
        cpu.run(|| {
            bands.par_iter_mut().enumerate().try_for_each(|(i, band)| {
                let rows = i * rows..((i + 1) * rows).min(height);
                // The first band takes what the others have.
                let own = match i {
                    0 => 0..count as u16,
                    _ => label_span(labels, rows.start..(rows.end + 1).min(height)),
                };
                band.pairs.clear(own)?;
                band.measure(features, labels, rows)
            })
        })?;
        let Some((first, others)) = bands.split_first_mut() else { return Ok(()) };
        for band in others {
            band.pairs.list.iter().try_for_each(|pair| first.pairs.add([pair.a, pair.b], pair.boundary))?;
        }
        first.pairs.drop_outside();
        std::mem::swap(&mut graph.pairs, &mut first.pairs);
        Ok(())
    }

    fn write_labels(&mut self, labels: &mut Labels<'_>) -> Result<()> {
        let Self { cpu, labels: names, .. } = self;
        memory::resize(names, REGIONS, NAMES, NO_LABEL)?;
        let Some(names) = names.first_chunk::<NAMES>() else { return Ok(()) };
        let rows = (self.geometry.height as usize).div_ceil(self.bands.len());
        cpu.run(|| {
            labels.bands_mut(rows).for_each(|mut band| {
                for y in 0..band.rows() {
                    // Faster than looking for runs, and than what AVX-512 makes of it.
                    band.row_mut(y).iter_mut().for_each(|label| *label = names[usize::from(*label)]);
                }
            });
        });
        Ok(())
    }
}

/// Adds up the sums of superpixels that have become one region. Regions are numbered in the order of their lowest superpixel, so
/// none is overwritten before it has been read.
fn add_parts(sums: &mut Array<RegionSums>, numbers: &[u16], count: usize) {
    let mut next = 0;
    for (part, &number) in numbers.iter().enumerate() {
        let (number, part) = (usize::from(number), sums[part]);
        if number == next {
            sums[number] = part;
            next += 1;
        } else {
            sums[number].add(&part);
        }
    }
    sums.truncate(count);
}

impl backend::Hierarchy<Cpu> for Hierarchy {
    fn build(&mut self, buffers: &mut FrameBuffers, labels: &mut Labels<'_>) -> Result<()> {
        self.measure(&buffers.features, labels, buffers.count as usize)?;
        let Self { graph, plan, sizes, labels: numbers, .. } = self;
        sizes.clear();
        memory::reserve(sizes, REGIONS, buffers.sums.len())?;
        sizes.extend(buffers.sums.iter().map(|sums| sums.area));
        graph.sums.clear();
        memory::reserve(&mut graph.sums, REGIONS, buffers.sums.len())?;
        graph.sums.extend(buffers.sums.iter().map(|sums| Sums {
            count: sums.area,
            color: sums.color,
            position: sums.position,
        }));
        // Names of what stage `merge` leaves are none of superpixels.
        if plan.regions > 0
            && let Some(state) = &buffers.temporal
            && let Some(merged) = &state.merged
        {
            graph.hold(|label| merged.earlier(&state.tracks[label as usize]));
        }
        graph.merge(plan)?;
        let wanted = if plan.regions > 0 { plan.regions as usize } else { usize::MAX };
        buffers.count = graph.cut(wanted, numbers)? as u32;
        buffers.merges.clear();
        if plan.levels {
            graph.list_merges(wanted, numbers, &mut buffers.merges)?;
        }
        if plan.regions == 0 {
            return Ok(());
        }
        add_parts(&mut buffers.sums, numbers, buffers.count as usize);
        self.write_labels(labels)?;
        if let Some(state) = &mut buffers.temporal
            && let Some(merged) = &mut state.merged
        {
            let parts = self.labels.iter().zip(&self.sizes).map(|(&label, &size)| Part { label, size });
            merged.name(&state.tracks, parts, buffers.count as usize)?;
        }
        Ok(())
    }
}
