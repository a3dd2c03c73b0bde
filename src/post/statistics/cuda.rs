// SPDX-License-Identifier: MPL-2.0
//! Stage `statistics` on a CUDA device: final labels, sums, records and the adjacency list.

use crate::backend;
use crate::buffers::DeviceResults;
use crate::buffers::cuda::FrameBuffers;
use crate::color::{ColorSpace, ColorTables, LinearLight};
use crate::cuda::abi::{Address, MeasureArgs, NeighborArgs, SpaceArgs};
use crate::cuda::frame::has_any_layout;
use crate::cuda::kernels::{
    measure, measure_any, measure_linear, measure_linear_any, neighbors_bucket, neighbors_clear,
    neighbors_count, neighbors_degree, neighbors_rank, neighbors_scan, region_table,
};
use crate::cuda::memory::Memory;
use crate::cuda::tuning::{NEIGHBOR_THREADS, TABLE_THREADS, TILE_THREADS};
use crate::cuda::{Cuda, DeviceFrame, HostLabels, Kept};
use crate::error::Result;
use crate::params::Outputs;
use crate::plan::Plan;
use crate::regions::Regions;

/// Most blocks that go over all slots of the hash table.
const NEIGHBOR_BLOCKS: u32 = 256;

/// Kernels of the adjacency list, in the order of their launches.
struct Neighbors {
    clear: neighbors_clear::Kernel,
    count: neighbors_count::Kernel,
    degree: neighbors_degree::Kernel,
    scan: neighbors_scan::Kernel,
    bucket: neighbors_bucket::Kernel,
    rank: neighbors_rank::Kernel,
}

impl Neighbors {
    fn new(cuda: &Cuda) -> Result<Self> {
        const STAGE: &str = "statistics/neighbors";
        Ok(Self {
            clear: cuda.device.kernel(neighbors_clear::KERNEL, STAGE)?,
            count: cuda.device.kernel(neighbors_count::KERNEL, STAGE)?,
            degree: cuda.device.kernel(neighbors_degree::KERNEL, STAGE)?,
            scan: cuda.device.kernel(neighbors_scan::KERNEL, STAGE)?,
            bucket: cuda.device.kernel(neighbors_bucket::KERNEL, STAGE)?,
            rank: cuda.device.kernel(neighbors_rank::KERNEL, STAGE)?,
        })
    }
}

pub(crate) struct Statistics {
    measure: measure::Kernel,
    measure_linear: measure_linear::Kernel,
    table: region_table::Kernel,
    neighbors: Neighbors,
    lab_tables: Memory<u32>,
    lab_args: SpaceArgs,
    lab_features: u32,
    refined: u32,
    /// Linear value of each code of the frame's bit depth, and the number of codes.
    linear: Memory<u32>,
    linear_codes: u32,
    /// True if codes have more than 10 bits.
    is_wide: bool,
}

impl Statistics {
    pub fn new(cuda: &Cuda, plan: &Plan, _: &FrameBuffers) -> Result<Self> {
        let (measure, linear) = match has_any_layout(plan.frame.format) {
            false => (measure::KERNEL, measure_linear::KERNEL),
            true => (measure_any::KERNEL, measure_linear_any::KERNEL),
        };
        Ok(Self {
            measure: cuda.device.kernel(measure, "statistics/measure")?,
            measure_linear: cuda.device.kernel(linear, "statistics/measure")?,
            table: cuda.device.kernel(region_table::KERNEL, "statistics/table")?,
            neighbors: Neighbors::new(cuda)?,
            lab_tables: FrameBuffers::lab_tables(cuda)?,
            lab_args: SpaceArgs::new(ColorTables::shared(ColorSpace::Lab, 8)?),
            lab_features: u32::from(plan.color_space == ColorSpace::Lab),
            refined: u32::from(plan.refine.is_some()),
            linear: Memory::with(
                cuda,
                "device memory",
                &LinearLight::new(plan.frame.format.bits())?.device_words(),
            )?,
            linear_codes: 1 << plan.frame.format.bits(),
            is_wide: plan.frame.format.bits() > 10,
        })
    }

    fn list_neighbors(&self, buffers: &FrameBuffers) -> Result<()> {
        let Some(memory) = &buffers.neighbors else { return Ok(()) };
        let width = buffers.geometry.width;
        let args = &NeighborArgs {
            width,
            height: buffers.geometry.height,
            label_stride: width,
            slots: memory.slots,
        };
        // One more than the last label.
        let labels = buffers.max_regions as u32;
        let (keys, lengths, degree) =
            (memory.keys.address(), memory.lengths.address(), memory.degree.address());
        let (bucketed, pairs) = (memory.bucketed.address(), memory.pairs.address());
        let Neighbors { clear, count, degree: degrees, scan, bucket, rank } = &self.neighbors;
        let most = NEIGHBOR_BLOCKS.min(8 * buffers.queue.cuda.multiprocessors());
        let blocks = most.min(memory.slots.div_ceil(NEIGHBOR_THREADS));
        let (all, threads, queue) = ((blocks, 1), NEIGHBOR_THREADS, &buffers.queue);
        // SAFETY: every array has the size that `prepare_neighbors` derives from the most pairs a map can have.
        unsafe {
            let cleared = neighbors_clear::Args { keys, lengths, degree, labels, args };
            queue.launch(clear, all, threads, &cleared)?;
            let plane = neighbors_count::Args { labels: buffers.labels().address(), keys, lengths, args };
            queue.launch(count, buffers.tiles, TILE_THREADS, &plane)?;
            queue.launch(degrees, all, threads, &neighbors_degree::Args { keys, degree, args })?;
            queue.launch(scan, (1, 1), 1024, &neighbors_scan::Args { degree, labels })?;
            let buckets = neighbors_bucket::Args { keys, lengths, degree, bucketed, labels, args };
            queue.launch(bucket, all, threads, &buckets)?;
            queue.launch(rank, all, threads, &neighbors_rank::Args { degree, bucketed, pairs, labels })
        }
    }
}

impl backend::Statistics<Cuda> for Statistics {
    fn measure(
        &mut self,
        frame: &DeviceFrame<'_>,
        buffers: &mut FrameBuffers,
        _: &mut HostLabels<'_>,
        outputs: Outputs,
    ) -> Result<()> {
        let with_sums = outputs.table || outputs.mean_color;
        let args = &MeasureArgs {
            label_stride: buffers.geometry.width,
            measure: u32::from(with_sums),
            components_hold: u32::from(buffers.components_hold),
            refined: self.refined,
        };
        let (c, component_label) = (&buffers.components(), buffers.component_labels.address());
        let (labels, regions) = (buffers.labels().address(), buffers.regions.address());
        let (linear, frame) = (self.linear.address().cast(), &frame.args());
        // SAFETY: `FrameBuffers::new` has made planes for the plan, which `check` has compared the frame with, and `new` the tables; there
        // is one accumulator for each of the most regions, and a linear value for each code.
        unsafe {
            if with_sums && (outputs.linear_light || self.is_wide) {
                let linear = if outputs.linear_light { linear } else { Address::NULL };
                let args = measure_linear::Args { c, component_label, labels, regions, frame, linear, args };
                buffers.queue.launch(&self.measure_linear, buffers.tiles, TILE_THREADS, &args)?;
            } else {
                let args = measure::Args { c, component_label, labels, regions, frame, args };
                buffers.queue.launch(&self.measure, buffers.tiles, TILE_THREADS, &args)?;
            }
        }
        buffers.queue.join();
        if with_sums {
            let args = region_table::Args {
                counters: buffers.counters(),
                regions,
                tracks: buffers.tracks(),
                tables: self.lab_tables.address(),
                linear,
                means: buffers.means.address(),
                records: buffers.records.address(),
                frame,
                lab: &self.lab_args,
                lab_features: self.lab_features,
                linear_codes: if outputs.linear_light { self.linear_codes } else { 0 },
            };
            let blocks = ((buffers.max_regions as u32).div_ceil(TABLE_THREADS), 1);
            // SAFETY: `FrameBuffers::new` has made regions, means and records, `State::new` tracks, for each of the most regions; the
            // tables are those of `new`.
            unsafe { buffers.queue.launch(&self.table, blocks, TABLE_THREADS, &args)? };
        }
        if outputs.neighbors { self.list_neighbors(buffers) } else { Ok(()) }
    }

    fn collect(
        &mut self,
        buffers: &FrameBuffers,
        labels: &mut HostLabels<'_>,
        outputs: Outputs,
        regions: &mut Regions,
    ) -> Result<()> {
        let results = DeviceResults::of(buffers, outputs, 0);
        if let Some(labels) = labels {
            results.download_labels(labels)?;
        }
        results.download(regions)
    }

    fn keep(
        &mut self,
        buffers: &FrameBuffers,
        outputs: Outputs,
        copies: bool,
        kept: &mut Kept,
    ) -> Result<()> {
        DeviceResults::of(buffers, outputs, 0).keep_in(copies, kept)
    }
}
