// SPDX-License-Identifier: MPL-2.0
//! The mask of a frame in device memory: brought from the host, or made there from the frame's alpha.

use super::abi::Address;
use super::access::{Accesses, Guard, Kind};
use super::frame::DeviceFrame;
use super::handle::Cuda;
use super::kernels::mask_alpha;
use super::launch::{Shape, check};
use super::memory::Memory;
use super::staging_buffer::{DeviceRows, StagingBuffer};
use super::tuning::MASK_THREADS;
use crate::error::Result;
use crate::image::{Channel, FrameInfo, Geometry};

const STAGE: &str = "mask";

/// Memory for a byte a pixel. Streams access it in the order of the calls.
pub(crate) struct FrameMask {
    info: FrameInfo,
    /// What the memory holds of the host's masks.
    revision: Option<u64>,
    /// Allocated and loaded with the first mask that needs it.
    buffer: Option<StagingBuffer>,
    kernel: Option<mask_alpha::Kernel>,
    accesses: Accesses,
    memory: Memory<u8>,
    /// Dropped last, because it may hold the context.
    cuda: Cuda,
}

impl FrameMask {
    /// Allocates memory for masks of one kind of frames, which come from the host on the stream of `cuda`.
    pub fn new(cuda: &Cuda, info: FrameInfo) -> Result<Self> {
        let memory = Memory::alone(cuda, "mask memory", info.geometry.pixels())?;
        let accesses = Accesses::new(cuda);
        // Fresh memory is cleared on this stream, and other streams must not write before.
        drop(accesses.begin(cuda, Kind::Write)?);
        let cuda = cuda.clone();
        Ok(Self { info, revision: None, buffer: None, kernel: None, accesses, memory, cuda })
    }

    /// Brings a mask of the host, rows without padding, unless the memory holds it: `revision` is another for each. Returns once the
    /// host's memory may be reused.
    pub fn upload(&mut self, mask: &[u8], revision: u64) -> Result<()> {
        if self.revision == Some(revision) {
            return Ok(());
        }
        self.revision = None;
        let Self { info, buffer, accesses, memory, cuda, .. } = self;
        let (row, rows) = (info.geometry.width as usize, info.geometry.height as usize);
        let buffer = match buffer {
            Some(buffer) => buffer,
            none => none.insert(StagingBuffer::new(cuda, row * rows)?),
        };
        buffer.ready()?;
        let access = accesses.begin(cuda, Kind::Write)?;
        let to = DeviceRows { address: memory.address().raw(), stride: row, row, rows, offset: 0 };
        // SAFETY: the memory holds a byte a pixel, and the stream waits for all earlier accesses; the line above has waited for the
        // last upload.
        unsafe { buffer.up(mask, row, to)? };
        drop(access);
        self.revision = Some(revision);
        Ok(())
    }

    /// Makes the mask of a frame's alpha on the stream of `cuda`: inside is what has the code `least` or more.
    pub fn take_alpha(
        &mut self,
        cuda: &Cuda,
        frame: &DeviceFrame<'_>,
        alpha: Channel,
        least: u32,
    ) -> Result<()> {
        self.info.check(frame.info())?;
        frame.check_context(cuda)?;
        self.revision = None;
        let kernel = match &mut self.kernel {
            Some(kernel) => kernel,
            none => none.insert(cuda.device.kernel(mask_alpha::KERNEL, STAGE)?),
        };
        let _source = frame.access(cuda, Kind::Read)?;
        let _access = self.accesses.begin(cuda, Kind::Write)?;
        check(STAGE, cuda.device.context.bind_to_thread())?;
        let Geometry { width, height } = self.info.geometry;
        let planes = &frame.planes;
        let args = mask_alpha::Args {
            plane: Address::new(planes.addresses[alpha.plane] + alpha.offset as u64),
            mask: self.memory.address(),
            stride: planes.strides[alpha.plane],
            step: alpha.step as u32,
            word: alpha.sample.bytes as u32,
            shift: alpha.sample.shift,
            least,
            width,
            height,
        };
        let blocks = (width * height).div_ceil(MASK_THREADS).min(8 * cuda.multiprocessors());
        // SAFETY: who made the frame keeps its planes until the stream has passed; the mask has a byte a pixel of the same size, and the
        // stream waits for all earlier accesses of it.
        unsafe { kernel.launch(&cuda.stream, Shape::of((blocks, 1), MASK_THREADS), &args) }
    }

    /// The frame with this mask, for work on the stream of `cuda` as long as the guard is held.
    pub fn on<'a>(&'a self, cuda: &Cuda, frame: DeviceFrame<'a>) -> Result<(DeviceFrame<'a>, Guard<'a>)> {
        self.info.check(frame.info())?;
        frame.check_context(cuda)?;
        let guard = self.accesses.begin(cuda, Kind::Read)?;
        // SAFETY: the memory has a byte a pixel of the frame's size and lives for `'a`, later writes wait for what is launched while the
        // guard is held, and nobody draws on it.
        let masked = unsafe { frame.with_mask(self.memory.address().raw(), self.info.geometry.width)? };
        Ok((masked, guard))
    }
}

impl Drop for FrameMask {
    fn drop(&mut self) {
        // The memory is freed in the order of this stream.
        self.accesses.synchronize(&self.cuda.stream);
    }
}
