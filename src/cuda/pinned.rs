// SPDX-License-Identifier: MPL-2.0
//! Pinned host memory, which the device copies to while the host works on.

use cudarc::driver::{CudaStream, PinnedHostSlice, sys};

use super::handle::{Cuda, Traffic};
use super::launch::check;
use crate::error::Result;

/// Pinned host memory, zero at first.
pub(crate) struct Pinned {
    memory: PinnedHostSlice<u8>,
    start: *mut u8,
    len: usize,
}

// SAFETY: `start` points into `memory`, which is owned.
unsafe impl Send for Pinned {}

impl Pinned {
    /// Allocates memory for `len` bytes, at least one.
    pub fn new(cuda: &Cuda, what: &'static str, len: usize) -> Result<Self> {
        Self::with_flags(cuda, what, len, 0)
    }

    /// The same where the device reaches it, at an address that it has there.
    pub fn mapped(cuda: &Cuda, what: &'static str, len: usize) -> Result<(Self, u64)> {
        let own = Self::with_flags(cuda, what, len, sys::CU_MEMHOSTALLOC_DEVICEMAP)?;
        let mut address = 0;
        // SAFETY: `start` is memory of the current context that was allocated to be mapped.
        let found = unsafe { sys::cuMemHostGetDevicePointer_v2(&mut address, own.start.cast(), 0) };
        check(what, found.result())?;
        Ok((own, address))
    }

    fn with_flags(cuda: &Cuda, what: &'static str, len: usize, flags: u32) -> Result<Self> {
        let len = len.max(1);
        check(what, cuda.device.context.bind_to_thread())?;
        // SAFETY: bytes of any value; they are zeroed below.
        let memory = unsafe { cuda.device.context.alloc_pinned_with_flags::<u8>(len, flags) };
        let mut memory = check(what, memory)?;
        let start = check(what, memory.as_mut_ptr())?;
        // SAFETY: `memory` holds `len` bytes.
        unsafe { start.write_bytes(0, len) };
        Ok(Self { memory, start, len })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// All bytes. Copies into them on a stream have been waited for.
    pub fn bytes(&self) -> &[u8] {
        debug_assert!(self.len <= self.memory.len());
        // SAFETY: `memory` holds `len` bytes, written by `new` at the latest.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }

    /// Starts to copy device memory to offset `at`, on a stream.
    ///
    /// # Safety
    /// The device holds `bytes` at `from`; nobody reads or frees this memory before the stream has passed the copy.
    pub unsafe fn fetch(
        &mut self,
        cuda: &Cuda,
        what: &'static str,
        stream: &CudaStream,
        from: u64,
        at: usize,
        bytes: usize,
    ) -> Result<()> {
        let to = self.address(at, bytes);
        // SAFETY: `to` has room for `bytes`; the caller keeps the device's bytes valid until the stream has passed, and ours alone.
        let copied = unsafe { sys::cuMemcpyDtoHAsync_v2(to.cast(), from, bytes, stream.cu_stream()) };
        check(what, copied.result())?;
        Traffic::add(&cuda.traffic.results_down, bytes);
        Ok(())
    }

    /// Address of `bytes` from `at` on. Makes no reference to the other bytes, because readers of another part may hold
    /// one.
    pub(super) fn address(&self, at: usize, bytes: usize) -> *mut u8 {
        assert!(at <= self.len && bytes <= self.len - at, "inside the pinned memory");
        self.start.wrapping_add(at)
    }

    /// All bytes, to write; no copy from or to them is in flight.
    pub(crate) fn writable(&mut self) -> &mut [u8] {
        // SAFETY: `memory` holds `len` bytes, written by `new` at the latest, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }
}
