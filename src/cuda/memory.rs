// SPDX-License-Identifier: MPL-2.0
//! Arrays in device memory.

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, sys};

use super::abi::Address;
use super::handle::Cuda;
use super::launch::check;
use super::pinned::Pinned;
use crate::error::Result;

/// An array in device memory.
pub(crate) struct Memory<T> {
    slice: CudaSlice<u8>,
    address: Address<T>,
    len: usize,
}

impl<T> Memory<T> {
    /// Allocates zeroed memory for `len` items, at least one.
    pub fn new(cuda: &Cuda, what: &'static str, len: usize) -> Result<Self> {
        check(what, cuda.device.context.bind_to_thread())?;
        let bytes = len.max(1) * size_of::<T>();
        let slice = check(what, cuda.stream.alloc_zeros::<u8>(bytes))?;
        let address = Address::new(slice.device_ptr(&cuda.stream).0);
        Ok(Self { slice, address, len })
    }

    /// Allocates memory with a copy of the host's items.
    pub fn with(cuda: &Cuda, what: &'static str, items: &[T]) -> Result<Self>
    where
        T: bytemuck::Pod,
    {
        let mut memory = Self::new(cuda, what, items.len())?;
        let bytes: &[u8] = bytemuck::cast_slice(items);
        check(what, cuda.stream.memcpy_htod(bytes, &mut memory.slice))?;
        Ok(memory)
    }

    /// Address of the items; [`Address::NULL`] is no array's.
    pub fn address(&self) -> Address<T> {
        self.address
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

    /// Replaces the items from `first` on. The host's may be dropped after the call.
    pub fn write(&mut self, cuda: &Cuda, what: &'static str, first: usize, items: &[T]) -> Result<()>
    where
        T: bytemuck::Pod,
    {
        check(what, cuda.device.context.bind_to_thread())?;
        let bytes: &[u8] = bytemuck::cast_slice(items);
        let start = first * size_of::<T>();
        check(what, cuda.stream.memcpy_htod(bytes, &mut self.slice.slice_mut(start..start + bytes.len())))?;
        check(what, cuda.stream.synchronize())
    }

    /// Copies the items from `first` on into `out` and waits for them.
    pub fn read(&self, cuda: &Cuda, what: &'static str, first: usize, out: &mut [T]) -> Result<()>
    where
        T: bytemuck::Pod,
    {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(out);
        if bytes.is_empty() {
            return Ok(());
        }
        check(what, cuda.device.context.bind_to_thread())?;
        check(
            what,
            cuda.stream.memcpy_dtoh(
                &self.slice.slice(first * size_of::<T>()..first * size_of::<T>() + bytes.len()),
                bytes,
            ),
        )?;
        check(what, cuda.stream.synchronize())
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
