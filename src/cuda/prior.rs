// SPDX-License-Identifier: MPL-2.0
//! Priors of frames in device memory: where one lies, and memory for those that come from the host or are copied.

use super::access::{Accesses, Kind};
use super::handle::Cuda;
use super::memory::{Memory, Rows, copy_rows};
use super::staging_buffer::{DeviceRows, StagingBuffer};
use crate::error::{Error, Result};
use crate::image::{Geometry, Prior};

/// Where the samples of a prior are, and of which kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DevicePrior {
    pub address: u64,
    /// Bytes of a sample.
    pub bytes: u32,
    pub geometry: Geometry,
    /// Samples from a row to the next.
    pub stride: u32,
}

impl DevicePrior {
    /// # Errors
    ///
    /// [`Error::Plane`] for samples of other sizes than 1, 2, 4 or 8 bytes, or not at whole samples; [`Error::Stride`] if rows overlap.
    pub fn new(address: u64, bytes: u32, geometry: Geometry, stride: u32) -> Result<Self> {
        if !matches!(bytes, 1 | 2 | 4 | 8) || !address.is_multiple_of(bytes.into()) {
            let what = "sample of a prior in device memory, of 1, 2, 4 or 8 bytes and at a multiple of these";
            return Err(Error::Plane { what, needed: 1, got: bytes as usize });
        }
        if stride < geometry.width {
            return Err(Error::Stride {
                what: "prior",
                least: geometry.width as usize,
                got: stride as usize,
            });
        }
        Ok(Self { address, bytes, geometry, stride })
    }

    /// What the priors of all frames of a batch have in common.
    pub fn without_address(self) -> Self {
        Self { address: 0, ..self }
    }

    fn row(self) -> usize {
        self.bytes as usize * self.geometry.width as usize
    }

    fn rows(self) -> Rows {
        Rows { address: self.address, stride: self.bytes as usize * self.stride as usize }
    }
}

/// Device memory for the prior of a frame, which grows with them.
#[derive(Default)]
pub(super) struct PriorMemory {
    memory: Option<Memory<u8>>,
    /// For priors of the host; as large as the memory, or absent.
    buffer: Option<StagingBuffer>,
}

impl PriorMemory {
    /// Makes room for a prior without padding on the stream of `cuda`, the same each time, and says where it will lie.
    pub fn prepare(
        &mut self,
        cuda: &Cuda,
        accesses: &Accesses,
        geometry: Geometry,
        bytes: u32,
    ) -> Result<DevicePrior> {
        let len = geometry.pixels() * bytes as usize;
        let memory = match &mut self.memory {
            Some(memory) if memory.len() >= len => memory,
            small => {
                // What is freed has been read by then, and what is cleared is written by others behind that.
                let _access = accesses.begin(cuda, Kind::Write)?;
                self.buffer = None;
                small.insert(Memory::alone(cuda, "prior memory", len)?)
            }
        };
        DevicePrior::new(memory.address().raw(), bytes, geometry, geometry.width)
    }

    /// Brings a prior of the host to `to`. Returns once the host's memory may be reused.
    ///
    /// # Safety
    /// [`PriorMemory::prepare`] gave `to` for this prior and handle, and its stream waits for all earlier accesses.
    pub unsafe fn upload(&mut self, cuda: &Cuda, prior: &Prior<'_>, to: DevicePrior) -> Result<()> {
        let (bytes, host) = prior.bytes();
        let len = self.memory.as_ref().map_or(0, Memory::len);
        let buffer = match &mut self.buffer {
            Some(buffer) => buffer,
            none => none.insert(StagingBuffer::new(cuda, len)?),
        };
        buffer.ready()?;
        let (row, rows) = (to.row(), to.geometry.height as usize);
        let to = DeviceRows { address: to.address, stride: row, row, rows, offset: 0 };
        // SAFETY: `prepare` has made room for the rows, and the line above has waited for the last upload.
        unsafe { buffer.up(host, prior.stride() * bytes as usize, to) }
    }
}

impl DevicePrior {
    /// Copies the samples on the stream of `cuda` to memory that [`PriorMemory::prepare`] has made for them.
    ///
    /// # Safety
    /// Both stay until the stream has passed, which waits for all earlier accesses of `to`.
    pub unsafe fn copy(self, cuda: &Cuda, to: Self) -> Result<()> {
        let (row, rows) = (self.row(), self.geometry.height as usize);
        // SAFETY: the caller keeps both, and `to` has as many rows.
        unsafe { copy_rows("copy of a frame", &cuda.stream, self.rows(), to.rows(), row, rows) }
    }
}
