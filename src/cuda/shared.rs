// SPDX-License-Identifier: MPL-2.0
//! Memory of a frame: the device's or, on a device that has none of its own, the host's, which it reads and writes where it is. A
//! copy there would be one from memory to the same memory.

use rayon::prelude::*;

use super::handle::Cuda;
use super::memory::Memory;
use super::pinned::Pinned;
use super::staging_buffer::DeviceRows;
use crate::error::Result;

/// Pinned memory of the host that the device reaches.
pub(crate) struct Shared {
    pinned: Pinned,
    address: u64,
    /// Dropped last, because it may hold the context.
    cuda: Cuda,
}

impl Shared {
    /// Copies rows of the host, `stride` apart, to rows of the frame, which nothing on the device uses meanwhile.
    pub fn write(&mut self, host: &[u8], stride: usize, to: DeviceRows) {
        let together = to.copied_together();
        let plane = &mut self.pinned.writable()[to.offset..][..(to.rows - 1) * to.stride + to.row];
        self.cuda.pool.install(|| {
            plane.par_chunks_mut(to.stride * together).enumerate().for_each(|(i, rows)| {
                for (j, row) in rows.chunks_mut(to.stride).enumerate() {
                    row[..to.row].copy_from_slice(&host[(i * together + j) * stride..][..to.row]);
                }
            });
        });
    }

    /// Copies rows of the frame, which nothing on the device writes meanwhile, to rows of the host, `stride` apart.
    pub fn read(&self, host: &mut [u8], stride: usize, from: DeviceRows) {
        let together = from.copied_together();
        let plane = &self.pinned.bytes()[from.offset..];
        let end = ((from.rows - 1) * stride + from.row).min(host.len());
        self.cuda.pool.install(|| {
            host[..end].par_chunks_mut(stride * together).enumerate().for_each(|(i, rows)| {
                for (j, row) in rows.chunks_mut(stride).enumerate() {
                    row[..from.row].copy_from_slice(&plane[(i * together + j) * from.stride..][..from.row]);
                }
            });
        });
    }
}

/// Where a frame lies.
pub(crate) enum FrameMemory {
    Device(Memory<u8>),
    Shared(Shared),
}

impl FrameMemory {
    /// Allocates zeroed memory.
    pub fn new(cuda: &Cuda, bytes: usize) -> Result<Self> {
        let what = "frame memory";
        if !cuda.shares_memory() {
            return Memory::alone(cuda, what, bytes).map(Self::Device);
        }
        let (pinned, address) = Pinned::mapped(cuda, what, bytes)?;
        Ok(Self::Shared(Shared { pinned, address, cuda: cuda.clone() }))
    }

    /// Its address on the device.
    pub fn address(&self) -> u64 {
        match self {
            Self::Device(memory) => memory.address().raw(),
            Self::Shared(shared) => shared.address,
        }
    }

    /// Bytes of pinned memory that a frame passes through on its way there.
    pub fn staged(&self) -> usize {
        match self {
            Self::Device(memory) => memory.len(),
            Self::Shared(_) => 0,
        }
    }
}
