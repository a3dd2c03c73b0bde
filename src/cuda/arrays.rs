// SPDX-License-Identifier: MPL-2.0
//! Device memory that results are written to: another library's, or ours that leaves the library.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;

use cudarc::driver::CudaEvent;

use super::device::CurrentContext;
use super::handle::{Cuda, wait_on};
use super::launch::check;
use super::memory::Memory;
use super::pool::{Lent, Pool};
use crate::error::{Error, Result};
use crate::image::Geometry;

/// What a label is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelType {
    /// 16 bits, from 0.
    U16,
    /// 32 bits, from this number on. Outside of a mask it is [`NO_LABEL`](crate::image::NO_LABEL) if that is 0, else one less.
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

/// A label plane in device memory, borrowed from whoever holds that, to be written.
#[derive(Debug)]
pub struct DeviceLabels<'a> {
    pub(crate) address: u64,
    /// Bytes from row to row.
    pub(crate) stride: usize,
    pub(crate) geometry: Geometry,
    pub(crate) kind: LabelType,
    context: Option<usize>,
    memory: PhantomData<&'a mut ()>,
}

impl DeviceLabels<'_> {
    /// Wraps rows of labels, `stride` bytes apart, for any lifetime that the caller names.
    ///
    /// # Errors
    ///
    /// [`Error::Plane`] where rows overlap, or where they do not start at whole labels.
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
        Ok(Self { address, stride, geometry, kind, context: None, memory: PhantomData })
    }

    /// Refuses a plane of another context than `cuda`'s: its address means nothing there.
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

/// Bytes in device memory, borrowed from whoever holds them, to be written.
#[derive(Debug)]
pub struct DeviceBytes<'a> {
    address: u64,
    len: usize,
    context: Option<usize>,
    memory: PhantomData<&'a mut ()>,
}

impl DeviceBytes<'_> {
    /// Wraps bytes for any lifetime that the caller names.
    ///
    /// # Errors
    ///
    /// [`Error::Plane`] where they do not start at whole words of eight bytes.
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

    /// Where the first `len` of them stand, to be written on the stream of `cuda`.
    pub(crate) fn room(&mut self, cuda: &Cuda, len: usize) -> Result<u64> {
        check_context(self.context, cuda)?;
        if self.len < len {
            return Err(Error::Plane { what: "records in device memory", needed: len, got: self.len });
        }
        Ok(self.address)
    }
}

/// Device memory for results that leave the library; used again when their holders let go.
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

    /// Memory for so many bytes, of any value.
    ///
    /// # Errors
    ///
    /// What the driver says, for instance of memory.
    pub fn take(&self, bytes: usize) -> Result<DeviceMemory> {
        let Self { free, cuda } = self;
        let memory = free.take(|memory| memory.len() >= bytes);
        let memory = memory.map_or_else(|| Memory::new(cuda, "results", bytes), Ok)?;
        Ok(DeviceMemory {
            ready: ManuallyDrop::new(cuda.event()?),
            memory: ManuallyDrop::new(free.lend(memory)),
            cuda: ManuallyDrop::new(cuda.clone()),
        })
    }
}

/// Device memory that holds what a frame gave. It may outlive engine and pool; its end waits for all that is on the device, since nobody
/// knows which streams have read it.
pub struct DeviceMemory {
    memory: ManuallyDrop<Lent<Memory<u8>>>,
    /// When it has been written.
    ready: ManuallyDrop<CudaEvent>,
    /// May be the last of its context; dropped by hand.
    cuda: ManuallyDrop<Cuda>,
}

impl DeviceMemory {
    /// Address of the first byte.
    pub fn address(&self) -> u64 {
        self.memory.address().raw()
    }

    /// Whose stream writes it.
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
    /// [`Error::Plane`] where it is too small.
    pub fn labels(&mut self, geometry: Geometry, kind: LabelType) -> Result<DeviceLabels<'_>> {
        let stride = geometry.width() as usize * kind.bytes();
        let needed = stride * geometry.height() as usize;
        let DeviceBytes { address, len, context, memory } = self.bytes();
        if len < needed {
            return Err(Error::Plane { what: "label plane in device memory", needed, got: len });
        }
        Ok(DeviceLabels { address, stride, geometry, kind, context, memory })
    }

    /// Copies the bytes from `first` on into `out`; waits for them.
    ///
    /// # Errors
    ///
    /// [`Error::Plane`] where there are fewer; what the driver says.
    pub fn read(&self, first: usize, out: &mut [u8]) -> Result<()> {
        let (needed, got) = (first.saturating_add(out.len()), self.memory.len());
        if got < needed {
            return Err(Error::Plane { what: "results in device memory", needed, got });
        }
        let _current = CurrentContext::keep();
        self.memory.read(&self.cuda, "results", first, out)
    }

    /// Notes that all has been put on the stream which writes it.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn mark(&mut self) -> Result<()> {
        let _current = CurrentContext::keep();
        self.cuda.mark(&self.ready)
    }

    /// Lets another library's stream wait until it has been written; the host does not wait. 0 is the context's default stream.
    ///
    /// # Errors
    ///
    /// What the driver says.
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
        // A broken context runs nothing any more.
        let _ = self.cuda.device.context.synchronize();
        // SAFETY: each is dropped once, here, and nothing uses them after; the context last, in which they may end.
        unsafe {
            ManuallyDrop::drop(&mut self.memory);
            ManuallyDrop::drop(&mut self.ready);
            ManuallyDrop::drop(&mut self.cuda);
        }
    }
}
