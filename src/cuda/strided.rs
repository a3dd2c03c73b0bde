// SPDX-License-Identifier: MPL-2.0
//! Arrays in another library's device memory with any order of samples, or of values that become codes, which are packed before they are
//! segmented.

use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::sys;

use super::abi::Address;
use super::access::Kind;
use super::frame::{DeviceFrame, Staging};
use super::handle::Cuda;
use super::kernels::{pack_bytes, pack_values, pack_words};
use super::launch::{Shape, check};
use super::memory::Memory;
use super::tuning::{EXPORT_THREADS, SAMPLE_F32, SAMPLE_I16, SAMPLE_I32, SAMPLE_I64, SAMPLE_U8, SAMPLE_U16};
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
    /// 16 bits with a sign, little endian.
    I16,
    /// 32 bits with a sign, little endian.
    I32,
    /// 64 bits with a sign, little endian.
    I64,
    /// Floats of 32 bits.
    F32,
}

/// From values to codes of 16 bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueScale {
    /// None: bytes and words are codes.
    Codes,
    /// Floats in [0, 1] become round(65535 x), halves up. Others are cut off, and NaN is 0; both are noted.
    Unit,
    /// From `low` on, over the positive difference `span`: floor(65535 (x - low) / span + 1/2), in doubles. What is outside is cut off,
    /// and NaN is 0, which is noted.
    From {
        /// The value that is black.
        low: f64,
        /// The difference to white.
        span: f64,
    },
}

impl SampleType {
    /// Bytes of a sample.
    pub fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 => 8,
        }
    }

    fn number(self) -> u32 {
        match self {
            Self::U8 => SAMPLE_U8,
            Self::U16 => SAMPLE_U16,
            Self::I16 => SAMPLE_I16,
            Self::I32 => SAMPLE_I32,
            Self::I64 => SAMPLE_I64,
            Self::F32 => SAMPLE_F32,
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
    scale: ValueScale,
    /// Address and bytes from row to row of a mask outside of which values mean nothing.
    mask: Option<(u64, u32)>,
    memory: PhantomData<&'a ()>,
}

impl StridedImage<'_> {
    /// Wraps the samples of an image. The caller chooses the lifetime. `address` is that of the first sample, `strides`
    /// are the bytes from one row, one pixel, one channel to the next. `info` has size and number of channels: its
    /// format is the packed one that they become, channels in their order: of codes of their size, and of 16 bits for what is scaled.
    /// `mask` has one byte a pixel, nonzero inside; what is outside of it becomes 0.
    ///
    /// # Errors
    ///
    /// [`Error::Plane`] for a format of several planes or of other samples, and if samples are not aligned.
    ///
    /// # Safety
    /// As [`DeviceFrame::from_planes`], for every sample and every byte of the mask.
    pub unsafe fn from_raw(
        info: FrameInfo,
        address: u64,
        samples: SampleType,
        strides: [i64; 3],
        scale: ValueScale,
        mask: Option<(u64, u32)>,
    ) -> Result<Self> {
        let (bytes, packed) = (samples.bytes(), info.format.sample());
        let (wanted, is_type) = match scale {
            ValueScale::Codes => (bytes, matches!(samples, SampleType::U8 | SampleType::U16)),
            ValueScale::Unit => (2, samples == SampleType::F32),
            ValueScale::From { low, span } => (2, low.is_finite() && span.is_finite() && span > 0.0),
        };
        let fits = is_type && packed.bytes == wanted && packed.bits as usize == 8 * packed.bytes;
        let is_packed = info.format.is_gray() || info.format.packed_rgb().is_some();
        let is_whole = |&stride: &i64| stride.unsigned_abs().is_multiple_of(bytes as u64);
        if !fits || !is_packed || !address.is_multiple_of(bytes as u64) || !strides.iter().all(is_whole) {
            let what = "array of samples in device memory, in whole samples";
            return Err(Error::Plane { what, needed: bytes, got: (address % bytes as u64) as usize });
        }
        Ok(Self { info, address, samples, strides, scale, mask, memory: PhantomData })
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
    values: pack_values::Kernel,
    /// 1 once a value was out of range.
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
            values: cuda.device.kernel(pack_values::KERNEL, STAGE)?,
            is_bad: Memory::alone(cuda, STAGE, 1)?,
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
        let [rows_apart, pixels_apart, channels_apart] = image.strides;
        let (from, to) = (Address::new(image.address), Address::new(frame.planes.addresses[0]));
        let stride = frame.planes.strides[0];
        let (grid, stream) =
            (Shape::of((width.div_ceil(EXPORT_THREADS), height), EXPORT_THREADS), &cuda.stream);
        let done = match image.scale {
            ValueScale::Codes => {
                let kernel = if image.samples == SampleType::U8 { &self.bytes } else { &self.words };
                let args = pack_bytes::Args {
                    from,
                    to,
                    rows_apart,
                    pixels_apart,
                    channels_apart,
                    width,
                    stride,
                    channels,
                };
                // SAFETY: who made the image keeps its samples; the staging has been laid out for its packed pixels, and the stream waits for
                // all earlier accesses.
                unsafe { kernel.launch(stream, grid, &args) }
            }
            ValueScale::Unit | ValueScale::From { .. } => {
                let (low, span) = match image.scale {
                    ValueScale::From { low, span } => (low, span),
                    _ => (0.0, 0.0),
                };
                let (mask, mask_stride) = image.mask.unwrap_or_default();
                let args = pack_values::Args {
                    from,
                    to,
                    bad: is_bad.address(),
                    mask: Address::new(mask),
                    rows_apart,
                    pixels_apart,
                    channels_apart,
                    low,
                    span,
                    sample_type: image.samples.number(),
                    mask_stride,
                    width,
                    stride,
                    channels,
                };
                // SAFETY: as above, and who made the image keeps its mask.
                unsafe { self.values.launch(stream, grid, &args) }
            }
        };
        done?;
        drop(access);
        Ok(staging.frame())
    }

    /// Clears the flag for values out of range.
    pub fn forget(&mut self) -> Result<()> {
        check(STAGE, self.cuda.device.context.bind_to_thread())?;
        let (word, stream) = (self.is_bad.address().raw(), self.cuda.stream.cu_stream());
        // SAFETY: the word is ours, and this stream is the only one that uses it.
        check(STAGE, unsafe { sys::cuMemsetD8Async(word, 0, size_of::<u32>(), stream) }.result())
    }

    /// Returns true if a value since the last call was no number, or a float without a scale outside of [0, 1]. Waits for it.
    pub fn was_cut_off(&mut self) -> Result<bool> {
        let mut word = [0];
        self.is_bad.read(&self.cuda, STAGE, 0, &mut word)?;
        if word == [0] {
            return Ok(false);
        }
        self.forget().map(|()| true)
    }
}
