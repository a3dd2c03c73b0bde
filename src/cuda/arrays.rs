// SPDX-License-Identifier: MPL-2.0
//! Device memory that results are written to: another library's, or our own that leaves the library.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;

use cudarc::driver::CudaEvent;

use super::device::CurrentContext;
use super::handle::{Cuda, wait_on};
use super::launch::check;
use super::memory::{Memory, Rows, copy_rows};
use super::pool::{Lent, Pool};
use crate::error::{Error, Result};
use crate::image::Geometry;

/// Integer type of the labels that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelType {
    /// 16 bits, from 0 on. Pixels outside of a mask get [`NO_LABEL`](crate::image::NO_LABEL).
    U16,
    /// 32 bits, from `first` on. Pixels outside of a mask get `first - 1`.
    I32 {
        /// The lowest label.
        first: i32,
    },
}

impl LabelType {
    /// Bytes of a label.
    pub fn bytes(self) -> usize {
        match self {
            Self::U16 => 2,
            Self::I32 { .. } => 4,
        }
    }
}

/// A borrowed label plane in device memory, for writing.
#[derive(Debug)]
pub struct DeviceLabels<'a> {
    pub(crate) address: u64,
    /// Bytes from row to row.
    pub(crate) stride: usize,
    pub(crate) geometry: Geometry,
    pub(crate) kind: LabelType,
    /// Planes, of a batch, and bytes from one to the next.
    pub(crate) planes: usize,
    pub(crate) apart: u64,
    context: Option<usize>,
    memory: PhantomData<&'a mut ()>,
}

impl DeviceLabels<'_> {
    /// Wraps rows of labels, `stride` bytes apart. The caller chooses the lifetime.
    ///
    /// # Errors
    ///
    /// [`Error::Plane`] if rows overlap or do not start at whole labels.
    ///
    /// # Safety
    /// - The rows lie in memory that kernels of the context reach which labels are written in.
    /// - The memory stays, and nobody else writes or reads there, during `'a` and until the stream that writes has passed that
    ///   work: calls return before the device has done it.
    /// - Whoever used the memory before on another stream has been waited for, for instance by [`Cuda::wait_for`].
    pub unsafe fn from_raw(address: u64, stride: usize, geometry: Geometry, kind: LabelType) -> Result<Self> {
        let (bytes, row) = (kind.bytes(), geometry.width() as usize * kind.bytes());
        let is_whole = address != 0 && address.is_multiple_of(bytes as u64) && stride.is_multiple_of(bytes);
        // The kernel counts labels from row to row in 32 bits.
        if !is_whole || stride < row || u32::try_from(stride / bytes).is_err() {
            let what = "row of labels in device memory, in whole labels";
            return Err(Error::Plane { what, needed: row, got: stride });
        }
        Ok(Self { address, stride, geometry, kind, planes: 1, apart: 0, context: None, memory: PhantomData })
    }

    /// The same plane and others like it behind it, `planes` in all, `apart` bytes from each other.
    ///
    /// # Errors
    ///
    /// [`Error::Plane`] if they do not start at whole labels.
    ///
    /// # Safety
    /// All of them are memory like that of the first.
    pub unsafe fn with_planes(self, planes: usize, apart: u64) -> Result<Self> {
        let bytes = self.kind.bytes();
        if !apart.is_multiple_of(bytes as u64) {
            let what = "distance of label planes in device memory, in whole labels";
            return Err(Error::Plane { what, needed: bytes, got: (apart % bytes as u64) as usize });
        }
        Ok(Self { planes, apart, ..self })
    }

    /// Copies labels of 32 bits from the host, rows without gaps, and waits for it.
    ///
    /// # Errors
    ///
    /// [`Error::Plane`] for another number of labels, or for a plane of 16 bits; errors of the driver.
    pub fn write(&mut self, cuda: &Cuda, labels: &[i32]) -> Result<()> {
        let (stage, pixels) = ("write labels", self.geometry.pixels());
        self.check_context(cuda)?;
        if labels.len() != pixels || self.kind.bytes() != size_of::<i32>() {
            let needed = size_of::<i32>() * pixels;
            return Err(Error::Plane { what: "label plane of 32 bits", needed, got: size_of_val(labels) });
        }
        let row = self.geometry.width() as usize * size_of::<i32>();
        let memory = Memory::with(cuda, stage, labels)?;
        let from = Rows { address: memory.address().raw(), stride: row };
        let to = Rows { address: self.address, stride: self.stride };
        // SAFETY: `memory` has as many labels, and stays until the stream has passed; who made the plane keeps room for its rows, and
        // has ordered its stream.
        let copied =
            unsafe { copy_rows(stage, &cuda.stream, from, to, row, self.geometry.height() as usize) };
        cuda.synchronize().and(copied)
    }

    /// Returns an error for a plane of another context than `cuda`'s, where its address is not valid.
    pub(crate) fn check_context(&self, cuda: &Cuda) -> Result<()> {
        check_context(self.context, cuda)
    }
}

fn check_context(context: Option<usize>, cuda: &Cuda) -> Result<()> {
    if context.is_none_or(|context| context == cuda.context_handle()) {
        return Ok(());
    }
    let reason =
        "the memory is of another context; take it from a pool of the Cuda that the engine was made with";
    Err(Error::Backend { backend: "cuda", reason: reason.into() })
}

/// Borrowed bytes in device memory, for writing.
#[derive(Debug)]
pub struct DeviceBytes<'a> {
    address: u64,
    len: usize,
    context: Option<usize>,
    memory: PhantomData<&'a mut ()>,
}

impl DeviceBytes<'_> {
    /// Wraps bytes. The caller chooses the lifetime.
    ///
    /// # Errors
    ///
    /// [`Error::Plane`] if they do not start at whole words of eight bytes.
    ///
    /// # Safety
    /// As [`DeviceLabels::from_raw`].
    pub unsafe fn from_raw(address: u64, len: usize) -> Result<Self> {
        if address == 0 || !address.is_multiple_of(8) {
            let what = "start of records in device memory, in whole words of eight bytes";
            return Err(Error::Plane { what, needed: 8, got: (address % 8) as usize });
        }
        Ok(Self { address, len, context: None, memory: PhantomData })
    }

    /// Address for `len` bytes to be written on the stream of `cuda`; an error if there are fewer.
    pub(crate) fn room(&mut self, cuda: &Cuda, len: usize) -> Result<u64> {
        check_context(self.context, cuda)?;
        if self.len < len {
            return Err(Error::Plane { what: "records in device memory", needed: len, got: self.len });
        }
        Ok(self.address)
    }
}

/// A pool of device memory for results that leave the library; reused once their holders drop it.
#[derive(Clone)]
pub struct DevicePool {
    free: Pool<Memory<u8>>,
    cuda: Cuda,
}

impl DevicePool {
    /// An empty pool. Its memory is written on the stream of `cuda`.
    pub fn new(cuda: &Cuda) -> Self {
        Self { free: Pool::default(), cuda: cuda.clone() }
    }

    /// Returns memory for `bytes` bytes of any value.
    ///
    /// # Errors
    ///
    /// Errors of the driver, for instance of memory.
    pub fn take(&self, bytes: usize) -> Result<DeviceMemory> {
        let Self { free, cuda } = self;
        let memory = free.take(|memory| memory.len() >= bytes);
        let memory = memory.map_or_else(|| Memory::alone(cuda, "results", bytes), Ok)?;
        Ok(DeviceMemory {
            ready: ManuallyDrop::new(cuda.event()?),
            memory: ManuallyDrop::new(free.lend(memory)),
            cuda: ManuallyDrop::new(cuda.clone()),
        })
    }
}

/// Device memory with a frame's results. It may outlive engine and pool. Dropping it waits for all work on the device,
/// since the streams that have read it are not known.
pub struct DeviceMemory {
    memory: ManuallyDrop<Lent<Memory<u8>>>,
    /// Recorded once the memory has been written.
    ready: ManuallyDrop<CudaEvent>,
    /// Dropped by hand, because it may be the last to hold its context.
    cuda: ManuallyDrop<Cuda>,
}

impl DeviceMemory {
    /// Address of the first byte.
    pub fn address(&self) -> u64 {
        self.memory.address().raw()
    }

    /// The handle on whose stream it is written.
    pub fn cuda(&self) -> &Cuda {
        &self.cuda
    }

    /// The bytes, to be written on the stream of [`DeviceMemory::cuda`].
    pub fn bytes(&mut self) -> DeviceBytes<'_> {
        let context = Some(self.cuda.context_handle());
        DeviceBytes { address: self.address(), len: self.memory.len(), context, memory: PhantomData }
    }

    /// The first bytes as a label plane without gaps.
    ///
    /// # Errors
    ///
    /// [`Error::Plane`] if it is too small.
    pub fn labels(&mut self, geometry: Geometry, kind: LabelType) -> Result<DeviceLabels<'_>> {
        let stride = geometry.width() as usize * kind.bytes();
        let needed = stride * geometry.height() as usize;
        let DeviceBytes { address, len, context, memory } = self.bytes();
        if len < needed {
            return Err(Error::Plane { what: "label plane in device memory", needed, got: len });
        }
        Ok(DeviceLabels { address, stride, geometry, kind, planes: 1, apart: 0, context, memory })
    }

    /// Copies the bytes from `first` on into `out`, and waits for them.
    ///
    /// # Errors
    ///
    /// [`Error::Plane`] if there are fewer; errors of the driver.
    pub fn read(&self, first: usize, out: &mut [u8]) -> Result<()> {
        let (needed, got) = (first.saturating_add(out.len()), self.memory.len());
        if got < needed {
            return Err(Error::Plane { what: "results in device memory", needed, got });
        }
        let _current = CurrentContext::keep();
        self.memory.read(&self.cuda, "results", first, out)
    }

    /// Records that all writes have been launched on its stream.
    ///
    /// # Errors
    ///
    /// Errors of the driver.
    pub fn mark(&mut self) -> Result<()> {
        let _current = CurrentContext::keep();
        self.cuda.mark(&self.ready)
    }

    /// Makes another library's stream wait until the memory has been written. The host does not wait. 0 is the
    /// context's default stream.
    ///
    /// # Errors
    ///
    /// Errors of the driver.
    ///
    /// # Safety
    /// `stream` is a `CUstream` of the same context, or 0.
    pub unsafe fn precede(&self, stream: usize) -> Result<()> {
        let stage = "let the consumer wait";
        let _current = CurrentContext::keep();
        check(stage, self.cuda.device.context.bind_to_thread())?;
        // SAFETY: `stream` is one of this context, or 0, says the caller, who keeps it while this call lasts.
        check(stage, unsafe { wait_on(stream, &self.ready) })
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        let _current = CurrentContext::keep();
        // Fails only in a broken context, which runs no work any more.
        let _ = self.cuda.device.context.synchronize();
        // SAFETY: each is dropped once, here, and nothing uses them after; the context last, in which they may end.
        unsafe {
            ManuallyDrop::drop(&mut self.memory);
            ManuallyDrop::drop(&mut self.ready);
            ManuallyDrop::drop(&mut self.cuda);
        }
    }
}
