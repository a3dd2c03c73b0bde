// SPDX-License-Identifier: MPL-2.0
//! Arrays in another library's device memory with any order of samples, or of floats, which are packed before they are
//! segmented.

use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::sys;

use super::abi::Address;
use super::access::Kind;
use super::frame::{DeviceFrame, Staging};
use super::handle::Cuda;
use super::kernels::{pack_bytes, pack_floats, pack_words};
use super::launch::{Shape, check};
use super::memory::Memory;
use super::tuning::EXPORT_THREADS;
use crate::error::{Error, Result};
use crate::image::FrameInfo;

const STAGE: &str = "packing of an array";

/// Type of an array's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleType {
    /// Bytes.
    U8,
    /// 16 bits, little endian.
    U16,
    /// Floats of 32 bits in [0, 1], which become round(65535 x), halves up. Others are clamped, and NaN is 0.
    F32,
}

impl SampleType {
    /// Bytes of a sample.
    pub fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::F32 => 4,
        }
    }
}

/// A borrowed image in device memory.
#[derive(Debug, Clone, Copy)]
pub struct StridedImage<'a> {
    info: FrameInfo,
    address: u64,
    samples: SampleType,
    strides: [i64; 3],
    memory: PhantomData<&'a ()>,
}

impl StridedImage<'_> {
    /// Wraps the samples of an image. The caller chooses the lifetime. `address` is that of the first sample, `strides`
    /// are the bytes from one row, one pixel, one channel to the next. `info` has size and number of channels: its
    /// format is the packed one that they become, channels in their order.
    ///
    /// # Errors
    ///
    /// [`Error::Plane`] for a format of several planes or of other samples, and if samples are not aligned.
    ///
    /// # Safety
    /// As [`DeviceFrame::from_planes`], for every sample.
    pub unsafe fn from_raw(
        info: FrameInfo,
        address: u64,
        samples: SampleType,
        strides: [i64; 3],
    ) -> Result<Self> {
        let (bytes, packed) = (samples.bytes(), info.format.sample());
        let fits = packed.bytes == bytes.min(2) && packed.bits as usize == 8 * packed.bytes;
        let is_packed = info.format.is_gray() || info.format.packed_rgb().is_some();
        let is_whole = |&stride: &i64| stride.unsigned_abs().is_multiple_of(bytes as u64);
        if !fits || !is_packed || !address.is_multiple_of(bytes as u64) || !strides.iter().all(is_whole) {
            let what = "array of samples in device memory, in whole samples";
            return Err(Error::Plane { what, needed: bytes, got: (address % bytes as u64) as usize });
        }
        Ok(Self { info, address, samples, strides, memory: PhantomData })
    }

    /// Size, and the format that it becomes.
    pub fn info(&self) -> &FrameInfo {
        &self.info
    }
}

/// Kernels that pack, and the flag that they set.
pub(super) struct Packing {
    bytes: pack_bytes::Kernel,
    words: pack_bytes::Kernel,
    floats: pack_bytes::Kernel,
    /// 1 once a float was out of range.
    is_bad: Memory<u32>,
    cuda: Cuda,
}

impl Packing {
    /// Loads the kernels. They run on the stream of `cuda`.
    pub fn new(cuda: &Cuda) -> Result<Self> {
        let kernel = |entry| cuda.device.kernel(entry, STAGE);
        Ok(Self {
            bytes: kernel(pack_bytes::KERNEL)?,
            words: kernel(pack_words::KERNEL)?,
            floats: kernel(pack_floats::KERNEL)?,
            is_bad: Memory::new(cuda, STAGE, 1)?,
            cuda: cuda.clone(),
        })
    }

    /// Returns true if this is for the stream of `cuda`.
    pub fn is_on(&self, cuda: &Cuda) -> bool {
        Arc::ptr_eq(&self.cuda.stream, &cuda.stream)
    }

    /// Packs pixels into `staging` on the stream. Once that has passed, the image's owner may reuse its memory.
    pub fn pack<'s>(
        &mut self,
        image: &StridedImage<'_>,
        staging: &'s mut Staging,
    ) -> Result<DeviceFrame<'s>> {
        let Self { cuda, is_bad, .. } = self;
        let frame = staging.frame();
        frame.info().check(&image.info)?;
        let access = frame.access(cuda, Kind::Write)?;
        check(STAGE, cuda.device.context.bind_to_thread())?;
        let geometry = image.info.geometry;
        let (width, height) = (geometry.width, geometry.height);
        let sample = image.info.format.sample().bytes;
        let channels = image.info.format.packed_rgb().map_or(1, |packed| packed.bytes / sample) as u32;
        let kernel = match image.samples {
            SampleType::U8 => &self.bytes,
            SampleType::U16 => &self.words,
            SampleType::F32 => &self.floats,
        };
        let [rows_apart, pixels_apart, channels_apart] = image.strides;
        let args = pack_bytes::Args {
            from: Address::new(image.address),
            to: Address::new(frame.planes.addresses[0]),
            bad: is_bad.address(),
            rows_apart,
            pixels_apart,
            channels_apart,
            width,
            stride: frame.planes.strides[0],
            channels,
        };
        let grid = (width.div_ceil(EXPORT_THREADS), height);
        // SAFETY: who made the image keeps its samples; the staging has been laid out for its packed pixels, and the stream waits for all
        // earlier accesses.
        unsafe { kernel.launch(&cuda.stream, Shape::of(grid, EXPORT_THREADS), &args)? };
        drop(access);
        Ok(staging.frame())
    }

    /// Clears the flag for clamped floats.
    pub fn forget(&mut self) -> Result<()> {
        check(STAGE, self.cuda.device.context.bind_to_thread())?;
        let (word, stream) = (self.is_bad.address().raw(), self.cuda.stream.cu_stream());
        // SAFETY: the word is ours, and this stream is the only one that uses it.
        check(STAGE, unsafe { sys::cuMemsetD8Async(word, 0, size_of::<u32>(), stream) }.result())
    }

    /// Returns true if a float since the last call was outside of [0, 1] or NaN. Waits for it.
    pub fn was_cut_off(&mut self) -> Result<bool> {
        let mut word = [0];
        self.is_bad.read(&self.cuda, STAGE, 0, &mut word)?;
        if word == [0] {
            return Ok(false);
        }
        self.forget().map(|()| true)
    }
}
