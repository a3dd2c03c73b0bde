// SPDX-License-Identifier: MPL-2.0
//! Stage `hierarchy` on the CPU: sums and touching pairs of bands of rows in parallel, then rounds over regions and pairs.

use rayon::prelude::*;

use super::graph::{Graph, Sums};
use super::pairs::Pairs;
use super::{Boundary, Plan};
use crate::backend;
use crate::buffers::cpu::FrameBuffers;
use crate::color::unpack;
use crate::cpu::memory::Array;
use crate::cpu::{Cpu, memory};
use crate::error::Result;
use crate::image::{Geometry, Labels, NO_LABEL};
use crate::post::runs::{RowSums, for_each_difference, for_each_run};
use crate::post::statistics::cpu::label_span;
use crate::temporal::merged::Part;

/// What memory is for, in errors.
const REGIONS: &str = "regions to merge";

/// Sum of the absolute differences of two features.
#[inline(always)]
fn difference(a: u32, b: u32) -> u64 {
    let (a, b) = (unpack(a), unpack(b));
    u64::from(a[0].abs_diff(b[0]) + a[1].abs_diff(b[1]) + a[2].abs_diff(b[2]))
}

/// A piece of boundary between two labels that grows pixel by pixel.
#[derive(Default)]
struct Piece {
    labels: [u16; 2],
    boundary: Boundary,
}

impl Piece {
    /// Adds a pair of pixels. What is between two other labels goes to `pairs` first.
    #[inline(always)]
    fn add(&mut self, labels: [u16; 2], contrast: u64, pairs: &mut Pairs) -> Result<()> {
        if labels != self.labels {
            self.finish(pairs)?;
            self.labels = labels;
        }
        self.boundary.add(&Boundary { length: 1, held: 0, contrast });
        Ok(())
    }

    #[inline]
    fn finish(&mut self, pairs: &mut Pairs) -> Result<()> {
        let Self { labels, boundary } = std::mem::take(self);
        // What is outside of a mask touches nothing.
        if boundary.length == 0 || labels.contains(&NO_LABEL) {
            return Ok(());
        }
        pairs.add(u32::from(labels[0]), u32::from(labels[1]), &boundary)
    }
}

/// The rows of one task, and what they add to the labels that occur in them.
#[derive(Default)]
struct Band {
    lowest: u16,
    sums: Array<Sums>,
    pairs: Pairs,
    /// Of the features in the row that is worked on.
    row_sums: RowSums,
}

impl Band {
    fn measure(&mut self, features: &[u32], labels: &Labels<'_>, rows: std::ops::Range<usize>) -> Result<()> {
        let (width, height) = (labels.geometry().width as usize, labels.geometry().height as usize);
        let occurring = label_span(labels, rows.clone());
        self.lowest = occurring.start;
        memory::refill(&mut self.sums, "sums", occurring.len(), Sums::default())?;
        // A planar graph has fewer than three edges for each node.
        self.pairs.clear(3 * occurring.len(), occurring.end.into())?;
        for y in rows {
            let (row, pixels) = (labels.row(y), &features[y * width..][..width]);
            self.measure_row(row, pixels, y)?;
            if y + 1 < height {
                let below = (labels.row(y + 1), &features[(y + 1) * width..][..width]);
                self.list_below((row, pixels), below)?;
            }
        }
        Ok(())
    }

    /// Sums of a row's runs, and what is between neighbors in it.
    fn measure_row(&mut self, row: &[u16], pixels: &[u32], y: usize) -> Result<()> {
        let Self { lowest, sums, pairs, row_sums } = self;
        row_sums.take_features(pixels);
        let mut done = Ok(());
        for_each_run(row, |columns| {
            let start = columns.start;
            if start > 0 {
                let mut piece = Piece::default();
                let contrast = difference(pixels[start - 1], pixels[start]);
                let added = piece.add([row[start - 1], row[start]], contrast, pairs);
                if let Err(error) = added.and_then(|()| piece.finish(pairs)) {
                    done = Err(error);
                }
            }
            // What is outside of a mask has none.
            let Some(sum) = sums.get_mut(usize::from(row[start] - *lowest)) else { return };
            let (x0, x1) = (start as u64, columns.end as u64);
            let position = [(x0 + x1 - 1) * (x1 - x0) / 2, y as u64 * (x1 - x0)];
            let color = row_sums.over(columns.clone());
            sum.add(&Sums { count: columns.len() as u32, color, position });
        });
        done
    }

    /// What is between a row's pixels and those below.
    fn list_below(
        &mut self,
        (row, pixels): (&[u16], &[u32]),
        (row_below, below): (&[u16], &[u32]),
    ) -> Result<()> {
        let (mut piece, mut done) = (Piece::default(), Ok(()));
        for_each_difference(row, row_below, |x| {
            let contrast = difference(pixels[x], below[x]);
            if let Err(error) = piece.add([row[x], row_below[x]], contrast, &mut self.pairs) {
                done = Err(error);
            }
        });
        done.and(piece.finish(&mut self.pairs))
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
            bands: (0..bands).map(|_| Band::default()).collect(),
            graph: Graph::default(),
            sizes: Array::new(),
            labels: Array::new(),
        }
    }

    /// Sums of all labels and the pairs that touch.
    fn measure(&mut self, features: &[u32], labels: &Labels<'_>, count: usize) -> Result<()> {
        let height = self.geometry.height as usize;
        let rows = height.div_ceil(self.bands.len());
        let span = |i: usize| (i * rows).min(height)..((i + 1) * rows).min(height);
        let Self { cpu, bands, graph, .. } = self;
        cpu.run(|| {
            bands
                .par_iter_mut()
                .enumerate()
                .filter(|(i, _)| !span(*i).is_empty())
                .try_for_each(|(i, band)| band.measure(features, labels, span(i)))
        })?;
        memory::refill(&mut graph.sums, "sums", count, Sums::default())?;
        graph.pairs.clear(3 * count, count)?;
        for (_, band) in bands.iter().enumerate().filter(|(i, _)| !span(*i).is_empty()) {
            let first = usize::from(band.lowest);
            graph.sums.iter_mut().skip(first).zip(&band.sums).for_each(|(sum, part)| sum.add(part));
            for pair in &band.pairs.list {
                graph.pairs.add(pair.a, pair.b, &pair.boundary)?;
            }
        }
        Ok(())
    }

    fn write_labels(&self, labels: &mut Labels<'_>) {
        let Self { cpu, labels: numbers, .. } = self;
        let rows = (self.geometry.height as usize).div_ceil(self.bands.len());
        cpu.run(|| {
            labels.bands_mut(rows).for_each(|mut band| {
                for y in 0..band.rows() {
                    // Neighbors mostly have the same.
                    let (mut last, mut number) = (NO_LABEL, NO_LABEL);
                    for label in band.row_mut(y) {
                        if *label != last {
                            last = *label;
                            number = numbers.get(usize::from(last)).copied().unwrap_or(NO_LABEL);
                        }
                        *label = number;
                    }
                }
            });
        });
    }
}

impl backend::Hierarchy<Cpu> for Hierarchy {
    fn build(&mut self, buffers: &mut FrameBuffers, labels: &mut Labels<'_>) -> Result<()> {
        self.measure(&buffers.features, labels, buffers.count as usize)?;
        let Self { graph, plan, sizes, labels: numbers, .. } = self;
        sizes.clear();
        memory::reserve(sizes, REGIONS, graph.sums.len())?;
        sizes.extend(graph.sums.iter().map(|sums| sums.count));
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
        self.write_labels(labels);
        if let Some(state) = &mut buffers.temporal
            && let Some(merged) = &mut state.merged
        {
            let parts = self.labels.iter().zip(&self.sizes).map(|(&label, &size)| Part { label, size });
            merged.name(&state.tracks, parts, buffers.count as usize)?;
        }
        Ok(())
    }
}
