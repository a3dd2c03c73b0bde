// SPDX-License-Identifier: MPL-2.0
//! Kernels and memory by which the results of all frames of a batch are read together.

use crate::cuda::Cuda;
use crate::cuda::kernels::{batch_offsets, gather_records, list_batch_edges, number_frames};
use crate::cuda::memory::Memory;
use crate::error::Result;

const STAGE: &str = "export";
/// Tables whose records a frame has a number of: regions, pairs, merges.
const TABLES: usize = 3;

/// Kernels that list the results of a batch, and where each frame's begin.
pub(super) struct BatchExports {
    /// For each of the tables, the items before each frame, and of all.
    pub offsets: Memory<u64>,
    pub write_offsets: batch_offsets::Kernel,
    pub records: gather_records::Kernel,
    pub edges: list_batch_edges::Kernel,
    pub numbers: number_frames::Kernel,
}

impl BatchExports {
    pub fn new(cuda: &Cuda) -> Result<Self> {
        let (device, frames) = (&cuda.device, cuda.batch.as_ref().map_or(1, |batch| batch.frames()));
        Ok(Self {
            offsets: Memory::with(cuda, STAGE, &vec![0; TABLES * (frames as usize + 1)])?,
            write_offsets: device.kernel(batch_offsets::KERNEL, STAGE)?,
            records: device.kernel(gather_records::KERNEL, STAGE)?,
            edges: device.kernel(list_batch_edges::KERNEL, STAGE)?,
            numbers: device.kernel(number_frames::KERNEL, STAGE)?,
        })
    }
}
