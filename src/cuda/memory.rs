// SPDX-License-Identifier: MPL-2.0
//! Arrays in device memory.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, result, sys};

use super::abi::Address;
use super::handle::Cuda;
use super::launch::check;
use super::pinned::Pinned;
use crate::error::Result;

/// Zeroed bytes of device memory, and where they begin.
fn zeroed(cuda: &Cuda, what: &'static str, bytes: usize) -> Result<(Arc<CudaSlice<u8>>, u64)> {
    check(what, cuda.device.context.bind_to_thread())?;
    let owner = Arc::new(check(what, cuda.stream.alloc_zeros::<u8>(bytes))?);
    let address = owner.device_ptr(&cuda.stream).0;
    Ok((owner, address))
}

/// An array in device memory, or one for each frame of a batch.
pub(crate) struct Memory<T> {
    address: Address<T>,
    len: usize,
    /// Keeps the memory, which may be larger.
    owner: Arc<CudaSlice<u8>>,
}

impl<T> Memory<T> {
    /// Allocates zeroed memory for `len` items, at least one; for as many in each frame of the handle's batch.
    pub fn new(cuda: &Cuda, what: &'static str, len: usize) -> Result<Self> {
        let Some(batch) = &cuda.batch else { return Self::alone(cuda, what, len) };
        let bytes = len.max(1) * size_of::<T>();
        let (owner, address) = batch.allocate(what, bytes, |bytes| zeroed(cuda, what, bytes))?;
        Ok(Self { address: Address::new(address), len, owner })
    }

    /// The same for what frames of a batch have in common, or have no part in.
    pub fn alone(cuda: &Cuda, what: &'static str, len: usize) -> Result<Self> {
        let (owner, address) = zeroed(cuda, what, len.max(1) * size_of::<T>())?;
        Ok(Self { address: Address::new(address), len, owner })
    }

    /// Allocates memory with a copy of the host's items, which all frames of a batch read.
    pub fn with(cuda: &Cuda, what: &'static str, items: &[T]) -> Result<Self>
    where
        T: bytemuck::Pod,
    {
        let mut memory = Self::alone(cuda, what, items.len())?;
        memory.write(cuda, what, 0, items)?;
        Ok(memory)
    }

    /// The same in memory of each frame's own, which kernels may change.
    pub fn with_each(cuda: &Cuda, what: &'static str, items: &[T]) -> Result<Self>
    where
        T: bytemuck::Pod,
    {
        let memory = Self::new(cuda, what, items.len())?;
        for frame in 0..cuda.batch.as_ref().map_or(1, |batch| batch.frames()) {
            memory.of_frame(cuda, frame as usize).write(cuda, what, 0, items)?;
        }
        Ok(memory)
    }

    /// Address of the items, in a batch of the first frame's; [`Address::NULL`] is no array's.
    pub fn address(&self) -> Address<T> {
        self.address
    }

    /// The items of a frame of the handle's batch.
    pub fn of_frame(&self, cuda: &Cuda, frame: usize) -> Self {
        let offset = cuda.batch.as_ref().map_or(0, |batch| frame * batch.distance());
        Self { address: self.address.byte(offset).cast(), len: self.len, owner: self.owner.clone() }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Starts to copy `bytes` from item `first` on into pinned memory, on the stream.
    pub fn fetch(
        &self,
        cuda: &Cuda,
        what: &'static str,
        first: usize,
        to: &mut Pinned,
        at: usize,
        len: usize,
    ) -> Result<()> {
        debug_assert!(first + len <= self.len.max(1));
        if len == 0 {
            return Ok(());
        }
        check(what, cuda.device.context.bind_to_thread())?;
        let from = self.address.item(first).raw();
        // SAFETY: `first + len` items are ours, `to` checks its own end, and callers read it only after they have waited for the
        // stream.
        unsafe { to.fetch(cuda, what, &cuda.stream, from, at, len * size_of::<T>()) }
    }

    /// Starts to replace all items by those of an array as long, on the stream.
    pub fn copy_from(&mut self, cuda: &Cuda, what: &'static str, from: &Self) -> Result<()> {
        debug_assert_eq!(self.len, from.len);
        check(what, cuda.device.context.bind_to_thread())?;
        let bytes = self.len * size_of::<T>();
        let rows = |memory: &Self| Rows { address: memory.address.raw(), stride: bytes };
        // SAFETY: both are ours, as long as this, and go when the stream has passed; whoever uses them does so in its order.
        unsafe { copy_rows(what, &cuda.stream, rows(from), rows(self), bytes, 1) }
    }

    /// Replaces the items from `first` on. The host's may be dropped after the call.
    pub fn write(&mut self, cuda: &Cuda, what: &'static str, first: usize, items: &[T]) -> Result<()>
    where
        T: bytemuck::Pod,
    {
        check(what, cuda.device.context.bind_to_thread())?;
        assert!(first + items.len() <= self.len, "{what}: {} items from {first} on", items.len());
        let to = self.address.item(first).raw();
        // SAFETY: there is room for the items, says the line above; the wait keeps them until the stream has passed.
        let copied = unsafe { result::memcpy_htod_async(to, items, cuda.stream.cu_stream()) };
        check(what, copied.and_then(|()| cuda.stream.synchronize()))
    }

    /// Copies the items from `first` on into `out` and waits for them.
    pub fn read(&self, cuda: &Cuda, what: &'static str, first: usize, out: &mut [T]) -> Result<()>
    where
        T: bytemuck::Pod,
    {
        if out.is_empty() {
            return Ok(());
        }
        assert!(first + out.len() <= self.len, "{what}: {} items from {first} on", out.len());
        check(what, cuda.device.context.bind_to_thread())?;
        let from = self.address.item(first).raw();
        // SAFETY: there are as many items, says the line above; the wait keeps `out` until the stream has passed.
        let copied = unsafe { result::memcpy_dtoh_async(out, from, cuda.stream.cu_stream()) };
        check(what, copied.and_then(|()| cuda.stream.synchronize()))
    }
}

/// Rows in device memory: the address of the first, and their stride in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    pub address: u64,
    pub stride: usize,
}

/// Starts to copy `rows` rows of `bytes` within device memory, on a stream.
///
/// # Safety
/// The context is current. `from` holds the rows and `to` has room for them; both stay until the stream has passed, and nobody
/// writes to either or reads `to` meanwhile but in the order of the stream.
pub(crate) unsafe fn copy_rows(
    what: &'static str,
    stream: &CudaStream,
    from: Rows,
    to: Rows,
    bytes: usize,
    rows: usize,
) -> Result<()> {
    let copy = sys::CUDA_MEMCPY2D {
        srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcDevice: from.address,
        srcPitch: from.stride,
        dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: to.address,
        dstPitch: to.stride,
        WidthInBytes: bytes,
        Height: rows,
        srcXInBytes: 0,
        srcY: 0,
        srcHost: std::ptr::null(),
        srcArray: std::ptr::null_mut(),
        dstXInBytes: 0,
        dstY: 0,
        dstHost: std::ptr::null_mut(),
        dstArray: std::ptr::null_mut(),
    };
    // SAFETY: the caller keeps both ends valid and in order until the stream has passed the copy.
    check(what, unsafe { sys::cuMemcpy2DAsync_v2(&copy, stream.cu_stream()) }.result())
}
