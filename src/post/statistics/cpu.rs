// SPDX-License-Identifier: MPL-2.0
//! Stage `statistics` on the CPU: sums over runs of equal label, one band of rows a thread.

use std::ops::Range;

use crate::backend;
use crate::buffers::cpu::{FrameBuffers, RegionSums};
use crate::color::{ColorSpace, ColorTables, LinearLight, Yuv, lab_of_sums, narrow, unpack};
use crate::cpu::memory::Array;
use crate::cpu::{Cpu, memory};
use crate::error::Result;
use crate::image::{Frame, FrameInfo, Labels, NO_LABEL, PIECE, PackedRgb, PixelFormat, RowCodes};
use crate::parallel::prelude::*;
use crate::params::Outputs;
use crate::plan::Plan;
use crate::post::runs::{RowSums, for_each_change, for_each_run, packed};
use crate::regions::{Neighbor, Region, Regions};

fn mean_samples(sums: &RegionSums) -> [u16; 3] {
    let n = u64::from(sums.area.max(1));
    sums.samples.map(|sum| ((2 * sum + n) / (2 * n)) as u16)
}

/// Source of samples that are too large for packed sums, summed pixel by pixel: linear light, or the frame's own
/// samples of more than 10 bits.
struct LargeSamples<'a> {
    light: Option<&'a LinearLight>,
    yuv: &'a Yuv,
}

/// Sums row `y` of a frame of at most 10 bits in its own channels.
fn sum_samples(sums: &mut RowSums, frame: &Frame<'_>, y: usize, neutral: u16) -> Result<()> {
    let info = frame.info();
    let width = info.geometry.width as usize;
    // Packed 8-bit RGB, the most common format, has code of its own.
    match info.format.packed_rgb() {
        Some(packed) if packed.bytes == 4 => return sum_bytes::<4>(sums, width, frame.row(0, y), packed),
        Some(packed) if packed.bytes == 3 => return sum_bytes::<3>(sums, width, frame.row(0, y), packed),
        _ => {}
    }
    if info.format == PixelFormat::Gray8 {
        let luma = frame.row(0, y).iter().map(|&luma| u16::from(luma));
        return sums.sum_pixels(width, luma.map(|luma| packed([luma, neutral, neutral].map(u32::from))));
    }
    let row = RowCodes::new(frame, y);
    let mut codes = [[neutral; PIECE]; 3];
    sums.sum_pieces::<PIECE>(width, |first, pixels| {
        row.gather(first, &mut codes);
        for (i, pixel) in pixels.iter_mut().enumerate() {
            *pixel = packed([codes[0][i], codes[1][i], codes[2][i]].map(u32::from));
        }
    })
}

/// Sums a row of pixels of bytes.
#[inline(always)]
fn sum_bytes<const BYTES: usize>(
    sums: &mut RowSums,
    width: usize,
    row: &[u8],
    layout: PackedRgb,
) -> Result<()> {
    let [r, g, b] = layout.offsets.map(|offset| offset % BYTES);
    let pixels = row.as_chunks::<BYTES>().0.iter();
    sums.sum_pixels(width, pixels.map(|p| packed([p[r], p[g], p[b]].map(u32::from))))
}

impl LargeSamples<'_> {
    /// Sums of some columns of row `y`.
    fn sum(&self, frame: &Frame<'_>, y: usize, columns: Range<usize>) -> [u64; 3] {
        let row = RowCodes::new(frame, y);
        let mut codes = [[self.yuv.neutral(); PIECE]; 3];
        let mut sums = [0; 3];
        // Rows of codes start at even columns, because chroma may be shared.
        for first in (columns.start & !1..columns.end).step_by(PIECE) {
            row.gather(first, &mut codes);
            for x in first.max(columns.start)..columns.end.min(first + PIECE) {
                let own = codes.each_ref().map(|codes| codes[x - first]);
                for (sum, value) in sums.iter_mut().zip(self.values(frame.info().format, own)) {
                    *sum += u64::from(value);
                }
            }
        }
        sums
    }

    /// Returns codes as they are, or as linear red, green and blue.
    #[inline(always)]
    fn values(&self, format: PixelFormat, codes: [u16; 3]) -> [u16; 3] {
        let Some(light) = self.light else { return codes };
        let rgb = if format.is_rgb() { codes } else { self.yuv.rgb_wide(codes) };
        rgb.map(|code| light.of(code))
    }
}

/// Sums of one task's rows for the labels that occur in them.
#[derive(Default)]
struct Band {
    lowest: u16,
    sums: Array<RegionSums>,
    pairs: Array<u64>,
    /// Prefix sums of the current row: features, then samples.
    row_sums: [RowSums; 2],
}

/// The samples that are added up beside features.
#[derive(Clone, Copy)]
struct Samples<'a> {
    frame: &'a Frame<'a>,
    large: Option<&'a LargeSamples<'a>>,
    neutral: u16,
}

impl Band {
    fn measure(
        &mut self,
        samples: Option<Samples<'_>>,
        features: &[u32],
        labels: &Labels<'_>,
        rows: Range<usize>,
    ) -> Result<()> {
        let width = labels.geometry().width as usize;
        let occurring = label_span(labels, rows.clone());
        self.lowest = occurring.start;
        memory::refill(&mut self.sums, "sums", occurring.len(), RegionSums::default())?;
        for y in rows {
            let row = labels.row(y);
            let [color_sums, sample_sums] = &mut self.row_sums;
            color_sums.sum_features(&features[y * width..][..width])?;
            if let Some(Samples { frame, large: None, neutral }) = samples {
                sum_samples(sample_sums, frame, y, neutral)?;
            }
            for_each_run(row, |columns| {
                // Pixels outside of a mask have no label, and so no sum.
                let Some(sum) = self.sums.get_mut(usize::from(row[columns.start] - self.lowest)) else {
                    return;
                };
                let (x0, x1) = (columns.start as u64, columns.end as u64);
                sum.add(&RegionSums {
                    area: (x1 - x0) as u32,
                    position: [(x0 + x1 - 1) * (x1 - x0) / 2, y as u64 * (x1 - x0)],
                    bounds: [x0 as u16, y as u16, x1 as u16, y as u16 + 1],
                    color: color_sums.over(columns.clone()),
                    samples: match samples {
                        Some(Samples { frame, large: Some(large), .. }) => large.sum(frame, y, columns),
                        Some(_) => sample_sums.over(columns),
                        None => [0; 3],
                    },
                });
            });
        }
        Ok(())
    }
}

/// The rows of a frame, split between tasks.
#[derive(Clone, Copy)]
struct Rows {
    height: usize,
    tasks: usize,
}

impl Rows {
    /// Rows of one task; empty for the last tasks of a low frame.
    fn of(self, task: usize) -> Range<usize> {
        let rows = self.height.div_ceil(self.tasks);
        (task * rows).min(self.height)..((task + 1) * rows).min(self.height)
    }
}

/// Range of the labels in some rows, from the lowest to behind the highest; empty if all pixels are outside of a mask.
pub(crate) fn label_span(labels: &Labels<'_>, rows: Range<usize>) -> Range<u16> {
    let lowest = |row: &[u16]| row.iter().fold(NO_LABEL, |least, &label| least.min(label));
    // The end is behind the highest label. `NO_LABEL` wraps to 0, which raises no maximum.
    let end = |row: &[u16]| row.iter().fold(0, |most: u16, label| most.max(label.wrapping_add(1)));
    let start = rows.clone().map(|y| lowest(labels.row(y))).min().unwrap_or(NO_LABEL);
    start..rows.map(|y| end(labels.row(y))).max().unwrap_or(0)
}

/// Lists the pairs of labels across boundaries whose upper or left pixel is in `rows`, each as `a | b | length`.
pub(crate) fn list_pairs(labels: &Labels<'_>, rows: Range<usize>, pairs: &mut Array<u64>) -> Result<()> {
    pairs.clear();
    let offer = |pairs: &mut Array<u64>, a: u16, b: u16, length: u64| {
        let key = u64::from(a.min(b)) << 48 | u64::from(a.max(b)) << 32;
        match pairs.last_mut() {
            Some(last) if *last >> 32 == key >> 32 => *last += length,
            _ => pairs.push(key | length),
        }
    };
    for y in rows {
        let row = labels.row(y);
        memory::reserve(pairs, "pairs of labels", 2 * row.len())?;
        for_each_change(row, |x| offer(pairs, row[x - 1], row[x], 1));
        if y + 1 < labels.geometry().height as usize {
            for (&above, &below) in row.iter().zip(labels.row(y + 1)) {
                if above != below {
                    offer(pairs, above, below, 1);
                }
            }
        }
    }
    add_equal_pairs(pairs);
    pairs.retain(|pair| (pair >> 32) as u16 != NO_LABEL);
    Ok(())
}

/// Sorts pairs and adds up the lengths of equal ones.
pub(crate) fn add_equal_pairs(pairs: &mut Array<u64>) {
    pairs.sort_unstable();
    pairs.dedup_by(|next, kept| {
        let equal = *next >> 32 == *kept >> 32;
        if equal {
            *kept += *next & u64::from(u32::MAX);
        }
        equal
    });
}

/// Regions per task.
const TOGETHER: usize = 512;

/// Adds up the bands' sums for each region.
fn add_up(cpu: &Cpu, bands: &[Band], sums: &mut [RegionSums]) {
    cpu.run(|| {
        sums.par_chunks_mut(TOGETHER).enumerate().for_each(|(i, sums)| {
            let first = i * TOGETHER;
            sums.fill(RegionSums::default());
            for band in bands {
                let lowest = usize::from(band.lowest);
                let parts = band.sums.get(first.saturating_sub(lowest)..).unwrap_or_default();
                let sums = sums.iter_mut().skip(lowest.saturating_sub(first));
                sums.zip(parts).for_each(|(sum, part)| sum.add(part));
            }
        });
    });
}

pub(crate) struct Statistics {
    cpu: Cpu,
    info: FrameInfo,
    space: ColorSpace,
    lab: &'static ColorTables,
    yuv: Yuv,
    light: LinearLight,
    /// True if the last frame's samples are summed as linear light.
    linear_light: bool,
    bands: Vec<Band>,
    pairs: Array<u64>,
}

impl Statistics {
    pub fn new(cpu: &Cpu, plan: &Plan) -> Result<Self> {
        let bands = cpu.threads().min(plan.frame.geometry.height as usize);
        Ok(Self {
            cpu: cpu.clone(),
            info: plan.frame,
            space: plan.color_space,
            lab: ColorTables::shared(ColorSpace::Lab, 8)?,
            yuv: Yuv::new(&plan.frame),
            light: LinearLight::new(plan.frame.format.bits())?,
            linear_light: false,
            bands: (0..bands).map(|_| Band::default()).collect(),
            pairs: Array::new(),
        })
    }

    fn list_neighbors(&mut self, labels: &Labels<'_>) -> Result<()> {
        let Self { cpu, info, bands, pairs, .. } = self;
        let rows = Rows { height: info.geometry.height as usize, tasks: bands.len() };
        cpu.run(|| {
            let tasks = bands.par_iter_mut();
            tasks.enumerate().try_for_each(|(i, band)| list_pairs(labels, rows.of(i), &mut band.pairs))
        })?;
        pairs.clear();
        for band in &*bands {
            memory::append(pairs, "pairs of labels", &band.pairs)?;
        }
        add_equal_pairs(pairs);
        Ok(())
    }

    fn region(&self, sums: &RegionSums, mean: [u16; 3], track_id: u32) -> Region {
        let area = f64::from(sums.area.max(1));
        let rgb = if self.linear_light {
            mean_samples(sums).map(|light| self.light.code(light))
        } else if self.info.format.is_rgb() {
            mean
        } else {
            self.yuv.rgb_wide(mean)
        };
        let [r, g, b] = rgb.map(|code| narrow(code, self.info.format.bits()));
        let mean_lab = if self.space == ColorSpace::Lab {
            lab_of_sums(sums.color, sums.area)
        } else {
            lab_of_sums(unpack(self.lab.feature([r, g, b])).map(u64::from), 1)
        };
        Region {
            track_id,
            area: sums.area,
            centroid: sums.position.map(|sum| (sum as f64 / area) as f32),
            mean_rgb: [r, g, b, 255],
            mean_lab,
            bounds: sums.bounds,
        }
    }
}

impl backend::Statistics<Cpu> for Statistics {
    fn measure_parts(
        &mut self,
        frame: &Frame<'_>,
        buffers: &mut FrameBuffers,
        labels: &Labels<'_>,
        outputs: Outputs,
    ) -> Result<()> {
        let FrameBuffers { features, sums, has_samples, count, .. } = buffers;
        let with_samples = outputs.table || outputs.mean_color;
        if !with_samples && !sums.is_empty() {
            return Ok(());
        }
        let Self { cpu, info, yuv, light, bands, .. } = self;
        let rows = Rows { height: info.geometry.height as usize, tasks: bands.len() };
        let large = LargeSamples { light: outputs.linear_light.then_some(light), yuv };
        let large = (outputs.linear_light || info.format.bits() > 10).then_some(&large);
        let samples = Samples { frame, large, neutral: yuv.neutral() };
        let samples = with_samples.then_some(samples);
        cpu.run(|| {
            let tasks = bands.par_iter_mut();
            tasks.enumerate().try_for_each(|(i, band)| band.measure(samples, features, labels, rows.of(i)))
        })?;
        let used = (0..bands.len()).take_while(|&i| !rows.of(i).is_empty()).count();
        memory::resize(sums, "sums", *count as usize, RegionSums::default())?;
        add_up(cpu, &bands[..used], sums);
        *has_samples = with_samples;
        Ok(())
    }

    fn measure(
        &mut self,
        frame: &Frame<'_>,
        buffers: &mut FrameBuffers,
        labels: &mut Labels<'_>,
        outputs: Outputs,
    ) -> Result<()> {
        buffers.means.clear();
        self.linear_light = outputs.linear_light;
        if outputs.table || outputs.mean_color {
            if !buffers.has_samples {
                self.measure_parts(frame, buffers, labels, outputs)?;
            }
            let Self { cpu, light, info, yuv, .. } = self;
            memory::resize(&mut buffers.means, "means", buffers.sums.len(), [0; 3])?;
            let mean_of = |sums: &RegionSums| match outputs.linear_light {
                false => mean_samples(sums),
                true => yuv.native(info.format, mean_samples(sums).map(|channel| light.code(channel))),
            };
            let means = buffers.means.par_iter_mut().zip(&buffers.sums[..]).with_min_len(TOGETHER);
            cpu.run(|| means.for_each(|(mean, sums)| *mean = mean_of(sums)));
        }
        if outputs.neighbors { self.list_neighbors(labels) } else { Ok(()) }
    }

    fn collect(
        &mut self,
        buffers: &FrameBuffers,
        _: &mut Labels<'_>,
        outputs: Outputs,
        regions: &mut Regions,
    ) -> Result<()> {
        self.copy(buffers, outputs, regions)
    }

    fn keep(
        &mut self,
        buffers: &FrameBuffers,
        outputs: Outputs,
        copies: bool,
        kept: &mut Regions,
    ) -> Result<()> {
        let outputs = if copies { outputs } else { Outputs::default() };
        self.copy(buffers, outputs, kept)
    }
}

impl Statistics {
    fn copy(&self, buffers: &FrameBuffers, outputs: Outputs, regions: &mut Regions) -> Result<()> {
        regions.count = buffers.count;
        regions.table.clear();
        regions.neighbors.clear();
        regions.motion.clear();
        regions.merges.clear();
        memory::reserve(&mut regions.merges, "list of merges", buffers.merges.len())?;
        regions.merges.extend_from_slice(&buffers.merges);
        if outputs.table {
            memory::reserve(&mut regions.table, "region table", buffers.sums.len())?;
            memory::reserve(&mut regions.motion, "motion", buffers.sums.len())?;
            let of = |(label, (sums, &mean))| self.region(sums, mean, buffers.track_id(label));
            regions.table.extend(buffers.sums.iter().zip(&buffers.means).enumerate().map(of));
            regions.motion.extend(buffers.temporal.iter().flat_map(|state| state.motion()));
        }
        if outputs.neighbors {
            memory::reserve(&mut regions.neighbors, "neighbors", self.pairs.len())?;
            regions.neighbors.extend(self.pairs.iter().map(|&pair| Neighbor {
                a: (pair >> 48) as u32,
                b: (pair >> 32) as u32 & 0xffff,
                length: pair as u32,
            }));
        }
        Ok(())
    }
}
