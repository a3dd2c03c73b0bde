// SPDX-License-Identifier: MPL-2.0
//! The mask and the prior of a frame in device memory: brought from the host, or the mask made there from the frame's alpha.

use super::abi::Address;
use super::access::{Guard, Kind};
use super::frame::DeviceFrame;
use super::handle::Cuda;
use super::host_plane::HostPlane;
use super::kernels::mask_alpha;
use super::launch::{Shape, check};
use super::tuning::MASK_THREADS;
use crate::error::Result;
use crate::image::{Channel, FrameInfo, Geometry};

const STAGE: &str = "mask";

/// Memory for masks of one kind of frames.
pub(crate) struct FrameMask {
    info: FrameInfo,
    kernel: Option<mask_alpha::Kernel>,
    plane: HostPlane<u8>,
}

impl FrameMask {
    /// Allocates it; masks of the host come on the stream of `cuda`.
    pub fn new(cuda: &Cuda, info: FrameInfo) -> Result<Self> {
        Ok(Self { info, kernel: None, plane: HostPlane::new(cuda, "mask memory", info.geometry)? })
    }

    /// Brings a mask of the host, rows without padding, unless the memory holds it: `revision` is another for each. Returns once the
    /// host's memory may be reused.
    pub fn upload(&mut self, mask: &[u8], revision: u64) -> Result<()> {
        self.plane.upload(mask, revision)
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
        let kernel = match &mut self.kernel {
            Some(kernel) => kernel,
            none => none.insert(cuda.device.kernel(mask_alpha::KERNEL, STAGE)?),
        };
        let _source = frame.access(cuda, Kind::Read)?;
        let (mask, _access) = self.plane.write(cuda)?;
        check(STAGE, cuda.device.context.bind_to_thread())?;
        let Geometry { width, height } = self.info.geometry;
        let planes = &frame.planes;
        let args = mask_alpha::Args {
            plane: Address::new(planes.addresses[alpha.plane] + alpha.offset as u64),
            mask,
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
        let (mask, guard) = self.plane.read(cuda)?;
        // SAFETY: the memory has a byte a pixel of the frame's size and lives for `'a`, later writes wait for what is launched while the
        // guard is held, and nobody draws on it.
        let masked = unsafe { frame.with_mask(mask.raw(), self.info.geometry.width)? };
        Ok((masked, guard))
    }
}

/// Memory for priors of one kind of frames, of the frame's size.
pub(crate) struct FramePrior {
    info: FrameInfo,
    plane: HostPlane<u32>,
}

impl FramePrior {
    /// Allocates it; priors come on the stream of `cuda`.
    pub fn new(cuda: &Cuda, info: FrameInfo) -> Result<Self> {
        Ok(Self { info, plane: HostPlane::new(cuda, "prior memory", info.geometry)? })
    }

    /// Brings a prior of the host, as [`FrameMask::upload`] does a mask.
    pub fn upload(&mut self, numbers: &[u32], revision: u64) -> Result<()> {
        self.plane.upload(numbers, revision)
    }

    /// The frame with this prior, for work on the stream of `cuda` as long as the guard is held.
    pub fn on<'a>(&'a self, cuda: &Cuda, frame: DeviceFrame<'a>) -> Result<(DeviceFrame<'a>, Guard<'a>)> {
        self.info.check(frame.info())?;
        frame.check_context(cuda)?;
        let (prior, guard) = self.plane.read(cuda)?;
        let (geometry, bytes) = (self.info.geometry, size_of::<u32>() as u32);
        // SAFETY: the memory has a number a pixel of the frame's size and lives for `'a`, later writes wait for what is launched while
        // the guard is held, and nobody draws on it.
        let frame = unsafe { frame.with_prior(prior.raw(), bytes, geometry, geometry.width)? };
        Ok((frame, guard))
    }
}
