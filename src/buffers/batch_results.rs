// SPDX-License-Identifier: MPL-2.0
//! Results of all frames of a batch together, as their stages have left them: label planes, records and pairs behind each other.

use cudarc::driver::sys;

use super::batch_exports::BatchExports;
use super::device_results::{DeviceResults, STAGE};
use crate::cuda::abi::{Address, COUNTER_REGIONS};
use crate::cuda::kernels::{batch_offsets, gather_records, list_batch_edges, number_frames, widen_labels};
use crate::cuda::launch::{Frames, Shape, check};
use crate::cuda::memory::{Rows, copy_rows};
use crate::cuda::tuning::EXPORT_THREADS;
use crate::cuda::{Cuda, DeviceBytes, DeviceLabels, LabelType};
use crate::error::{Error, Result};
use crate::regions::{MergeStep, Neighbor, Region};

/// Blocks that copy the results of a frame.
const BLOCKS: u32 = 8;

/// Records that each frame of a batch has a number of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchTable {
    /// One [`Region`] a label.
    Regions,
    /// One [`Neighbor`] for each touching pair.
    Neighbors,
    /// One [`MergeStep`] for each listed merge.
    Merges,
}

impl BatchTable {
    /// Bytes of a record.
    pub fn bytes(self) -> usize {
        match self {
            Self::Regions => size_of::<Region>(),
            Self::Neighbors => size_of::<Neighbor>(),
            Self::Merges => size_of::<MergeStep>(),
        }
    }
}

/// Results of the batch that an engine segmented last, in its device memory until the next one.
pub struct BatchResults<'a> {
    /// Of the first frame.
    results: DeviceResults<'a>,
    frames: Frames,
}

impl<'a> BatchResults<'a> {
    pub(crate) fn of(results: DeviceResults<'a>) -> Self {
        let frames = results.buffers.queue.frames;
        Self { results, frames }
    }

    fn cuda(&self) -> &'a Cuda {
        self.results.cuda()
    }

    /// Frames of the batch.
    pub fn frames(&self) -> usize {
        self.frames.count as usize
    }

    /// Starts to copy the label maps of all frames, on the engine's stream.
    ///
    /// # Errors
    ///
    /// [`Error::Labels`] for planes of another size, [`Error::Batch`] for another number of planes, [`Error::Cuda`] from the driver.
    pub fn export_labels(&self, to: &mut DeviceLabels<'_>) -> Result<()> {
        let (cuda, buffers, planned) = (self.cuda(), self.results.buffers, self.results.buffers.geometry);
        if to.geometry != planned {
            return Err(Error::Labels { planned, got: to.geometry });
        }
        if to.planes != self.frames() {
            let (got, frames) = (to.planes, self.frames());
            return Err(Error::Batch(format!("{got} label planes for {frames} frames; pass one for each")));
        }
        to.check_context(cuda)?;
        check(STAGE, cuda.device.context.bind_to_thread())?;
        let (width, height) = (planned.width, planned.height);
        let LabelType::I32 { first } = to.kind else {
            for frame in 0..self.frames() {
                let from = buffers.labels().of_frame(cuda, frame).address().raw();
                let from = Rows { address: from, stride: 2 * width as usize };
                let to = Rows { address: to.address + frame as u64 * to.apart, stride: to.stride };
                // SAFETY: `FrameBuffers::new` has made a label plane for this geometry in each frame, without padding; who made `to`
                // keeps room for as many planes.
                unsafe { copy_rows(STAGE, &cuda.stream, from, to, 2 * width as usize, height as usize)? };
            }
            return Ok(());
        };
        let args = widen_labels::Args {
            labels: buffers.labels().address(),
            out: Address::new(to.address),
            apart: to.apart / size_of::<i32>() as u64,
            width,
            stride: (to.stride / size_of::<i32>()) as u32,
            first: first.cast_unsigned(),
            outside: first.wrapping_sub(1).cast_unsigned(),
        };
        let shape = self.shape((width.div_ceil(EXPORT_THREADS), height), EXPORT_THREADS);
        // SAFETY: as above; rows are of whole labels, and there are as many planes as the grid has frames.
        unsafe { self.results.exports()?.widen.launch(&cuda.stream, shape, &args) }
    }

    /// Starts to copy where each frame's records begin among those of all, on the engine's stream: 64-bit numbers [frames + 1], the
    /// last of which is the number of all.
    ///
    /// # Errors
    ///
    /// [`Error::Plane`] if `to` is too small, [`Error::Cuda`] from the driver.
    pub fn export_offsets(&self, table: BatchTable, to: &mut DeviceBytes<'_>) -> Result<()> {
        let (cuda, bytes) = (self.cuda(), (self.frames() + 1) * size_of::<u64>());
        let from = self.offsets_of(table)?.raw();
        let to = to.room(cuda, bytes)?;
        // SAFETY: `BatchExports` has as many numbers for each table, and there is room for them.
        let copied = unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, cuda.stream.cu_stream()) };
        check(STAGE, copied.result())
    }

    /// Where each frame's records begin among those of all, and behind these their number. Waits for the batch.
    pub fn offsets(&self, table: BatchTable) -> Result<Vec<u64>> {
        self.offsets_of(table)?;
        let row = self.frames() + 1;
        let mut offsets = vec![0; row];
        self.exports()?.offsets.read(self.cuda(), STAGE, table as usize * row, &mut offsets)?;
        Ok(offsets)
    }

    /// Starts to copy the records of all frames, on the engine's stream: behind each other, where the numbers of
    /// [`BatchResults::offsets`] say, or with a `capacity` as many of each frame, zeros behind those that it has; that does not wait.
    ///
    /// # Errors
    ///
    /// [`Error::Batch`] if a frame may have more records than its capacity, or if `to` is smaller than what all frames may have;
    /// [`Error::Cuda`] from the driver.
    pub fn export_records(
        &self,
        table: BatchTable,
        capacity: Option<usize>,
        to: &mut DeviceBytes<'_>,
        total: usize,
    ) -> Result<()> {
        let (cuda, offsets) = (self.cuda(), self.offsets_of(table)?);
        let Some((from, most)) = self.source(table) else { return Ok(()) };
        if let Some(capacity) = capacity
            && capacity < most
        {
            return Err(Error::Batch(format!(
                "a frame may have {most} records; give room for them, not for {capacity}"
            )));
        }
        if capacity.is_none() {
            self.check_total(table, total)?;
        }
        let records = capacity.map_or(total, |capacity| self.frames() * capacity);
        let to = to.room(cuda, records * table.bytes())?;
        let args = gather_records::Args {
            from: Address::new(from),
            to: Address::new(to),
            offsets,
            words: (table.bytes() / size_of::<u32>()) as u32,
            capacity: capacity.unwrap_or(0) as u32,
        };
        // SAFETY: every frame has as many records as its offsets say, and there is room for all: the capacity of each, or `total`,
        // which the caller has from `offsets`.
        unsafe {
            self.exports()?.records.launch(&cuda.stream, self.shape((BLOCKS, 1), EXPORT_THREADS), &args)
        }
    }

    /// Most records that a frame can have.
    pub fn capacity(&self, table: BatchTable) -> usize {
        self.source(table).map_or(0, |(_, most)| most)
    }

    /// Starts to write the touching pairs of all frames, on the engine's stream, as 64-bit numbers [2][2 `pairs`]: of each frame as
    /// [`DeviceResults::export_edges`], with regions numbered through all frames. `pairs` are those of all, from
    /// [`BatchResults::offsets`].
    ///
    /// # Errors
    ///
    /// [`Error::Plane`] if `to` is too small, [`Error::Cuda`] from the driver.
    pub fn export_edges(&self, to: &mut DeviceBytes<'_>, pairs: usize) -> Result<()> {
        let cuda = self.cuda();
        let (regions_before, pairs_before) =
            (self.offsets_of(BatchTable::Regions)?, self.offsets_of(BatchTable::Neighbors)?);
        let Some((from, _)) = self.source(BatchTable::Neighbors) else { return Ok(()) };
        self.check_total(BatchTable::Neighbors, pairs)?;
        let to = to.room(cuda, 4 * size_of::<i64>() * pairs)?;
        let args = list_batch_edges::Args {
            pairs: Address::new(from),
            edges: Address::new(to),
            regions_before,
            pairs_before,
            frames: self.frames.count,
        };
        // SAFETY: every frame has as many pairs as its offsets say; there is room for four numbers of each, of which the caller has
        // the number from `offsets`.
        unsafe { self.exports()?.edges.launch(&cuda.stream, self.shape((BLOCKS, 1), EXPORT_THREADS), &args) }
    }

    /// Starts to write the frame of each region, on the engine's stream, as `regions` 64-bit numbers, those of all frames.
    ///
    /// # Errors
    ///
    /// [`Error::Plane`] if `to` is too small, [`Error::Cuda`] from the driver.
    pub fn export_frame_numbers(&self, to: &mut DeviceBytes<'_>, regions: usize) -> Result<()> {
        let (cuda, regions_before) = (self.cuda(), self.offsets_of(BatchTable::Regions)?);
        self.check_total(BatchTable::Regions, regions)?;
        let to = Address::new(to.room(cuda, size_of::<i64>() * regions)?);
        let args = number_frames::Args { to, regions_before };
        // SAFETY: there is room for a number of each region, of which the caller has the number from `offsets`.
        unsafe {
            self.exports()?.numbers.launch(&cuda.stream, self.shape((BLOCKS, 1), EXPORT_THREADS), &args)
        }
    }

    /// Refuses another number of records than all frames have: kernels write that many. Waits for the batch.
    fn check_total(&self, table: BatchTable, given: usize) -> Result<()> {
        match self.offsets(table)?.last() {
            Some(&total) if total == given as u64 => Ok(()),
            total => Err(Error::Batch(format!(
                "{given} records, and its frames have {total:?}; ask for `offsets`"
            ))),
        }
    }

    fn shape(&self, grid: (u32, u32), threads: u32) -> Shape {
        Shape { frames: self.frames, ..Shape::of(grid, threads) }
    }

    fn exports(&self) -> Result<&'a BatchExports> {
        self.results.buffers.batch_exports.get_or_try_init(|| BatchExports::new(self.cuda()))
    }

    /// The first frame's records, and the most that one has; `None` if nobody asked for them.
    fn source(&self, table: BatchTable) -> Option<(u64, usize)> {
        let (buffers, outputs) = (self.results.buffers, self.results.outputs);
        match table {
            BatchTable::Regions => {
                outputs.table.then(|| (buffers.records.address().raw(), buffers.max_regions))
            }
            BatchTable::Neighbors => {
                let memory = buffers.neighbors.as_ref().filter(|_| outputs.neighbors)?;
                Some((memory.pairs.address().raw(), buffers.max_pairs))
            }
            BatchTable::Merges => {
                let memory = buffers.merges.as_ref()?;
                Some((memory.steps.address().raw(), buffers.max_regions))
            }
        }
    }

    /// Writes the offsets of all tables on the stream, once for a batch, and gives where those of one stand.
    fn offsets_of(&self, table: BatchTable) -> Result<Address<u64>> {
        let (cuda, buffers, outputs) = (self.cuda(), self.results.buffers, self.results.outputs);
        let exports = self.exports()?;
        check(STAGE, cuda.device.context.bind_to_thread())?;
        let at = exports.offsets.address().item(table as usize * (self.frames() + 1));
        let mut downloads = buffers.downloads.lock().unwrap();
        if downloads.has_offsets {
            return Ok(at);
        }
        let pairs = buffers.neighbors.as_ref().filter(|_| outputs.neighbors);
        let args = batch_offsets::Args {
            regions: buffers.counters().item(COUNTER_REGIONS),
            pairs: pairs.map_or(Address::NULL, |memory| memory.degree.address().item(buffers.max_regions)),
            merges: buffers.merges.as_ref().map_or(Address::NULL, |memory| memory.count.address()),
            offsets: exports.offsets.address(),
            frames: self.frames.count,
            distance: self.frames.batch.distance,
        };
        // SAFETY: each frame has these numbers, as far from the first one's as `distance` says; `BatchExports` has made an entry for each
        // frame, and one more, of each table.
        unsafe { exports.write_offsets.launch(&cuda.stream, Shape::of((1, 1), 1024), &args)? };
        downloads.has_offsets = true;
        Ok(at)
    }
}
