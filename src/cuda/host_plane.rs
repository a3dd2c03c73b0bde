// SPDX-License-Identifier: MPL-2.0
//! A plane of the host in device memory, brought only when it has changed.

use super::abi::Address;
use super::access::{Accesses, Guard, Kind};
use super::handle::Cuda;
use super::memory::Memory;
use super::staging_buffer::{DeviceRows, StagingBuffer};
use crate::error::Result;
use crate::image::Geometry;

/// Memory for an item a pixel. Streams access it in the order of the calls.
pub(super) struct HostPlane<T> {
    geometry: Geometry,
    /// What the memory holds of the host's planes.
    revision: Option<u64>,
    /// Allocated with the first plane that comes from the host.
    buffer: Option<StagingBuffer>,
    accesses: Accesses,
    memory: Memory<T>,
    /// Dropped last, because it may hold the context.
    cuda: Cuda,
}

impl<T: bytemuck::Pod> HostPlane<T> {
    /// Allocates memory for planes that come from the host on the stream of `cuda`.
    pub fn new(cuda: &Cuda, what: &'static str, geometry: Geometry) -> Result<Self> {
        let memory = Memory::alone(cuda, what, geometry.pixels())?;
        let accesses = Accesses::new(cuda);
        // Fresh memory is cleared on this stream, and other streams must not write before.
        drop(accesses.begin(cuda, Kind::Write)?);
        Ok(Self { geometry, revision: None, buffer: None, accesses, memory, cuda: cuda.clone() })
    }

    /// Brings a plane of the host, rows without padding, unless the memory holds it: `revision` is another for each. Returns once the
    /// host's memory may be reused.
    pub fn upload(&mut self, items: &[T], revision: u64) -> Result<()> {
        if self.revision == Some(revision) {
            return Ok(());
        }
        self.revision = None;
        let Self { geometry, buffer, accesses, memory, cuda, .. } = self;
        let (row, rows) = (geometry.width as usize * size_of::<T>(), geometry.height as usize);
        let buffer = match buffer {
            Some(buffer) => buffer,
            none => none.insert(StagingBuffer::new(cuda, row * rows)?),
        };
        buffer.ready()?;
        let access = accesses.begin(cuda, Kind::Write)?;
        let to = DeviceRows { address: memory.address().raw(), stride: row, row, rows, offset: 0 };
        // SAFETY: the memory holds an item a pixel, and the stream waits for all earlier accesses; the line above has waited for the
        // last upload.
        unsafe { buffer.up(bytemuck::cast_slice(items), row, to)? };
        drop(access);
        self.revision = Some(revision);
        Ok(())
    }

    /// Lets the stream of `cuda` write the plane while the guard is held: it holds none of the host then.
    pub fn write(&mut self, cuda: &Cuda) -> Result<(Address<T>, Guard<'_>)> {
        self.revision = None;
        Ok((self.memory.address(), self.accesses.begin(cuda, Kind::Write)?))
    }

    /// Lets the stream of `cuda` read it while the guard is held.
    pub fn read(&self, cuda: &Cuda) -> Result<(Address<T>, Guard<'_>)> {
        Ok((self.memory.address(), self.accesses.begin(cuda, Kind::Read)?))
    }
}

impl<T> Drop for HostPlane<T> {
    fn drop(&mut self) {
        // The memory is freed in the order of this stream.
        self.accesses.synchronize(&self.cuda.stream);
    }
}
