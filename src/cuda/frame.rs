// SPDX-License-Identifier: MPL-2.0
//! Frames in device memory, and the way there and back for frames of the host.

#[cfg(feature = "gst")]
use cudarc::driver::{CudaEvent, sys};

use super::bounce::{Bounce, DeviceRows};
#[cfg(feature = "gst")]
use super::landing::{Block, HostLayout};
use super::launch::Argument;
#[cfg(feature = "gst")]
use super::launch::check;
use super::work::Memory;
use super::{Cuda, Traffic};
use crate::color::Yuv;
use crate::cpu::check_frame;
use crate::error::{Error, Result};
use crate::image::{Frame, FrameInfo, FrameMut, PixelFormat};

/// Addresses of a frame's planes in device memory. Reading and drawing are told apart by the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceFrame {
    pub(crate) info: FrameInfo,
    pub(crate) planes: [u64; 3],
    pub(crate) strides: [u32; 3],
    yuv: Yuv,
}

/// `FrameArgs` of kernels/frame.cuh.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct FrameArgs {
    planes: [u64; 3],
    strides: [u32; 3],
    width: u32,
    height: u32,
    layout: u32,
    bytes: u32,
    offsets: [u32; 3],
    luma_offset: i32,
    to_rgb: [i32; 5],
    to_yuv: [[i32; 3]; 3],
    neutral: i32,
}

const _: () = assert!(size_of::<FrameArgs>() == 128);
// SAFETY: repr(C), the fields of `FrameArgs` in their order.
unsafe impl Argument for FrameArgs {}

impl DeviceFrame {
    pub(crate) fn new(info: FrameInfo, planes: [u64; 3], strides: [u32; 3]) -> Self {
        Self { info, planes, strides, yuv: Yuv::new(&info) }
    }

    /// Wraps planes in device memory, with the distance of their rows in bytes.
    ///
    /// Errors: [`Error::Plane`] where rows overlap, or where planes or rows do not start at whole words (pixels of four
    /// bytes) or samples (of two).
    ///
    /// # Safety
    /// The planes lie in the context that the frame is used in, are as large as `info` says, and stay while they are
    /// in use there.
    pub unsafe fn from_planes(info: FrameInfo, planes: [u64; 3], strides: [u32; 3]) -> Result<Self> {
        let unit = match info.format.packed_rgb() {
            Some(layout) if layout.bytes == 4 => 4,
            _ => info.format.bits().div_ceil(8),
        };
        for (i, (row, _)) in info.format.planes(info.geometry).enumerate() {
            let stride = strides[i];
            if (stride as usize) < row
                || !stride.is_multiple_of(unit)
                || !planes[i].is_multiple_of(u64::from(unit))
            {
                let what = "row of a plane in device memory, in whole words";
                return Err(Error::Plane { what, needed: row, got: stride as usize });
            }
        }
        Ok(Self::new(info, planes, strides))
    }

    pub(crate) fn args(&self) -> FrameArgs {
        let packed = self.info.format.packed_rgb();
        let (neutral, luma_offset, to_rgb, to_yuv) = self.yuv.fixed_point();
        FrameArgs {
            planes: self.planes,
            strides: self.strides,
            width: self.info.geometry.width,
            height: self.info.geometry.height,
            layout: match self.info.format {
                PixelFormat::Gray8 => 1,
                PixelFormat::Nv12 => 2,
                PixelFormat::I420 => 3,
                PixelFormat::P010Le => 4,
                _ => 0,
            },
            bytes: packed.map_or(self.info.format.bits().div_ceil(8), |p| p.bytes as u32),
            offsets: packed.map_or([0; 3], |p| p.offsets.map(|o| o as u32)),
            luma_offset,
            to_rgb,
            to_yuv,
            neutral,
        }
    }
}

/// A frame's place in device memory.
pub struct Staging {
    frame: DeviceFrame,
    traffic: std::sync::Arc<Traffic>,
    /// Holds what `frame` points to.
    _memory: Memory<u8>,
    /// Last: it may hold the context.
    bounce: Bounce,
}

impl Staging {
    /// Takes memory for frames of one kind.
    pub fn new(cuda: &Cuda, info: FrameInfo) -> Result<Self> {
        let mut offsets = [0u64; 3];
        let mut strides = [0u32; 3];
        let mut end = 0usize;
        for (i, (row, rows)) in info.format.planes(info.geometry).enumerate() {
            // Rows begin where whole sectors do.
            let stride = row.next_multiple_of(128);
            (offsets[i], strides[i]) = (end as u64, stride as u32);
            end += stride * rows;
        }
        let memory = Memory::new(cuda, "frame memory", end)?;
        let planes = offsets.map(|offset| memory.address() + offset);
        Ok(Self {
            bounce: Bounce::new(cuda, end)?,
            frame: DeviceFrame::new(info, planes, strides),
            traffic: cuda.traffic.clone(),
            _memory: memory,
        })
    }

    /// The frame in device memory.
    pub fn frame(&self) -> DeviceFrame {
        self.frame
    }

    fn rows(&self, plane: usize, row: usize, rows: usize) -> DeviceRows {
        DeviceRows {
            address: self.frame.planes[plane],
            stride: self.frame.strides[plane] as usize,
            row,
            rows,
            place: (self.frame.planes[plane] - self.frame.planes[0]) as usize,
        }
    }

    /// Copies a frame of the host up; returns once the host's memory is free again.
    pub fn upload(&mut self, frame: &Frame<'_>) -> Result<DeviceFrame> {
        check_frame(&self.frame.info, frame.info())?;
        self.bounce.ready()?;
        for (i, (row, rows)) in frame.info().format.planes(frame.info().geometry).enumerate() {
            let to = self.rows(i, row, rows);
            // SAFETY: the plane lies in our memory; the stream orders the copy behind the last frame's work.
            unsafe { self.bounce.up(frame.plane(i), frame.stride(i), to)? };
        }
        Ok(self.frame)
    }

    /// Says when the device has the frame that was copied up last.
    #[cfg(feature = "gst")]
    pub(crate) fn uploaded(&self) -> &CudaEvent {
        self.bounce.passed()
    }

    /// Puts the frame's way back, into memory that it may keep, on the stream of `way`.
    ///
    /// # Safety
    /// That stream waits for what wrote the frame, and is waited for before any other use of `self` and `to`, their ends
    /// included.
    #[cfg(feature = "gst")]
    pub(crate) unsafe fn land(&self, way: &Cuda, to: &mut Block, layout: &HostLayout) -> Result<()> {
        let stage = "download";
        check(stage, way.device.context.bind_to_thread())?;
        let info = self.frame.info;
        for (i, (row, rows)) in info.format.planes(info.geometry).enumerate() {
            let (offset, stride) = layout.plane(i);
            let plane = &mut to.pinned().writable()[offset..][..stride * (rows - 1) + row];
            let copy = sys::CUDA_MEMCPY2D {
                srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
                srcDevice: self.frame.planes[i],
                srcPitch: self.frame.strides[i] as usize,
                dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_HOST,
                dstHost: plane.as_mut_ptr().cast(),
                dstPitch: stride,
                WidthInBytes: row,
                Height: rows,
                srcXInBytes: 0,
                srcY: 0,
                srcHost: std::ptr::null(),
                srcArray: std::ptr::null_mut(),
                dstXInBytes: 0,
                dstY: 0,
                dstDevice: 0,
                dstArray: std::ptr::null_mut(),
            };
            // SAFETY: both ends hold the plane; the caller promises the rest.
            check(stage, unsafe { sys::cuMemcpy2DAsync_v2(&copy, way.stream.cu_stream()) }.result())?;
            Traffic::add(&self.traffic.pixels_down, row * rows);
        }
        Ok(())
    }

    /// Copies the frame back; waits for it.
    pub fn download(&mut self, frame: &mut FrameMut<'_>) -> Result<()> {
        check_frame(&self.frame.info, frame.info())?;
        for (i, (row, rows)) in frame.info().format.planes(frame.info().geometry).enumerate() {
            let from = self.rows(i, row, rows);
            let (host, host_stride) = frame.plane_mut(i);
            // SAFETY: the plane lies in our memory.
            let bytes = unsafe { self.bounce.down(host, host_stride, from)? };
            Traffic::add(&self.traffic.pixels_down, bytes);
        }
        Ok(())
    }
}
