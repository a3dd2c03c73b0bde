// SPDX-License-Identifier: MPL-2.0
//! Stage `hierarchy` on the CPU: touching pairs of bands of rows in parallel, then rounds over regions and pairs. What regions add up
//! to has been measured for it, and serves the region table after it.

use rayon::prelude::*;

use super::graph::{Graph, Sums};
use super::pairs::Pairs;
use super::{Boundary, Plan};
use crate::backend;
use crate::buffers::cpu::{FrameBuffers, RegionSums};
use crate::color::unpack;
use crate::cpu::memory::Array;
use crate::cpu::{Cpu, memory};
use crate::error::Result;
use crate::image::{Geometry, Labels, NO_LABEL};
use crate::post::runs::{for_each_change, for_each_difference};
use crate::temporal::merged::Part;

/// What memory is for, in errors.
const REGIONS: &str = "regions to merge";
/// New labels by old ones, with [`NO_LABEL`] for itself.
const NAMES: usize = NO_LABEL as usize + 1;

/// Sum of the absolute differences of two features.
#[inline(always)]
fn difference(a: u32, b: u32) -> u64 {
    let (a, b) = (unpack(a), unpack(b));
    u64::from(a[0].abs_diff(b[0]) + a[1].abs_diff(b[1]) + a[2].abs_diff(b[2]))
}

/// The rows of one task, and the pairs of labels that touch in them or below them.
#[derive(Default)]
struct Band {
    pairs: Pairs,
}

impl Band {
    fn measure(
        &mut self,
        features: &[u32],
        labels: &Labels<'_>,
        rows: std::ops::Range<usize>,
        count: usize,
        bands: usize,
    ) -> Result<()> {
        let (width, height) = (labels.geometry().width as usize, labels.geometry().height as usize);
        // A planar graph has fewer than three edges for each node.
        self.pairs.clear(3 * count / bands)?;
        let row = |y: usize| (labels.row(y), &features[y * width..][..width]);
        for y in rows {
            self.list_row(row(y), (y + 1 < height).then(|| row(y + 1)))?;
        }
        Ok(())
    }

    /// Adds what is between neighbors in a row, and between its pixels and those below. Rows are labels and features.
    fn list_row(
        &mut self,
        (labels, pixels): (&[u16], &[u32]),
        below: Option<(&[u16], &[u32])>,
    ) -> Result<()> {
        let mut done = Ok(());
        let mut add = |labels: [u16; 2], pixels: [u32; 2]| {
            // What is outside of a mask touches nothing.
            if labels.contains(&NO_LABEL) {
                return;
            }
            let boundary = Boundary { length: 1, held: 0, contrast: difference(pixels[0], pixels[1]) };
            let added = self.pairs.add(labels[0].into(), labels[1].into(), &boundary);
            if added.is_err() {
                done = added;
            }
        };
        for_each_change(labels, |x| add([labels[x - 1], labels[x]], [pixels[x - 1], pixels[x]]));
        if let Some((labels_below, pixels_below)) = below {
            for_each_difference(labels, labels_below, |x| {
                add([labels[x], labels_below[x]], [pixels[x], pixels_below[x]]);
            });
        }
        done
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

    /// Lists the pairs of labels that touch.
    fn measure(&mut self, features: &[u32], labels: &Labels<'_>, count: usize) -> Result<()> {
        let height = self.geometry.height as usize;
        let rows = height.div_ceil(self.bands.len());
        let used = height.div_ceil(rows);
        let Self { cpu, bands, graph, .. } = self;
        let bands = &mut bands[..used];
        cpu.run(|| {
            bands.par_iter_mut().enumerate().try_for_each(|(i, band)| {
                band.measure(features, labels, i * rows..((i + 1) * rows).min(height), count, used)
            })
        })?;
        let Some((first, others)) = bands.split_first_mut() else { return Ok(()) };
        std::mem::swap(&mut graph.pairs, &mut first.pairs);
        for band in others {
            for pair in &band.pairs.list {
                graph.pairs.add(pair.a, pair.b, &pair.boundary)?;
            }
        }
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
