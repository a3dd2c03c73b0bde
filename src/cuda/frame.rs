// SPDX-License-Identifier: MPL-2.0
//! Frames in device memory, and transfers of host frames to it and back.

use std::marker::PhantomData;

#[cfg(feature = "gst")]
use cudarc::driver::sys;

use super::abi::{Address, FrameArgs, FramePlanes};
use super::access::{Accesses, Guard, Kind};
use super::handle::{Cuda, Traffic};
#[cfg(feature = "gst")]
use super::host_frames::{HostFrame, HostLayout};
use super::launch::check;
use super::memory::{Memory, Rows, copy_rows};
use super::prior::{DevicePrior, PriorMemory};
use super::shared::FrameMemory;
use super::staging_buffer::{DeviceRows, StagingBuffer};
use crate::color::Yuv;
use crate::error::{Error, Result};
use crate::image::{Family, Frame, FrameInfo, FrameMut, Geometry, Layout, MOST_PLANES, PixelFormat};

/// A borrowed frame in device memory. The call decides if it is read or drawn on.
///
/// A frame does not outlive its [`Staging`]:
///
/// ```compile_fail,E0505
/// use gstsuperpixel::cuda::{Cuda, Staging};
/// use gstsuperpixel::engine::Engine;
/// use gstsuperpixel::image::Frame;
/// use gstsuperpixel::params::Outputs;
///
/// fn late(cuda: &Cuda, engine: &mut Engine<Cuda>, host: &Frame<'_>) -> gstsuperpixel::error::Result<()> {
///     let mut staging = Staging::new(cuda, *host.info())?;
///     let frame = staging.upload(host)?;
///     drop(staging);
///     engine.submit(&frame, &mut None, Outputs::default())
/// }
/// ```
///
/// Nor does the next upload change it while it is in use:
///
/// ```compile_fail,E0499
/// use gstsuperpixel::cuda::{Cuda, Staging};
/// use gstsuperpixel::engine::Engine;
/// use gstsuperpixel::image::Frame;
/// use gstsuperpixel::params::Outputs;
///
/// fn twice(staging: &mut Staging, engine: &mut Engine<Cuda>, host: &Frame<'_>) -> gstsuperpixel::error::Result<()> {
///     let frame = staging.upload(host)?;
///     staging.upload(host)?;
///     engine.submit(&frame, &mut None, Outputs::default())
/// }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct DeviceFrame<'a> {
    pub(crate) planes: Planes,
    yuv: Yuv,
    /// The order of accesses, if the memory is a [`Staging`]'s.
    accesses: Option<&'a Accesses>,
    /// All frames of a batch, of which this one stands for the layout; none for a frame by itself.
    batch: &'a [DeviceFrame<'a>],
    /// The stream of each frame of the batch; none where that is its index.
    streams: &'a [u32],
    /// Borrows the memory.
    memory: PhantomData<&'a ()>,
}

/// Layout of a frame's planes in device memory. A recorded graph fits every frame with an equal one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Planes {
    pub info: FrameInfo,
    pub addresses: [u64; MOST_PLANES],
    pub strides: [u32; MOST_PLANES],
    /// Address and row stride of the mask, if there is one.
    pub mask: Option<(u64, u32)>,
    pub prior: Option<DevicePrior>,
}

impl Planes {
    /// What the planes of all frames of a batch have in common.
    pub fn without_addresses(self) -> Self {
        Self {
            addresses: [0; MOST_PLANES],
            mask: self.mask.map(|(_, stride)| (0, stride)),
            prior: self.prior.map(DevicePrior::without_address),
            ..self
        }
    }

    /// Rows of a plane, and their offset in pinned memory of the same layout.
    fn rows(&self, plane: usize, row: usize, rows: usize) -> DeviceRows {
        DeviceRows {
            address: self.addresses[plane],
            stride: self.strides[plane] as usize,
            row,
            rows,
            offset: (self.addresses[plane] - self.addresses[0]) as usize,
        }
    }
}

impl<'a> DeviceFrame<'a> {
    /// Wraps planes in device memory, with their row strides in bytes. The caller chooses the lifetime. Planes that the
    /// format does not have are ignored.
    ///
    /// # Errors
    ///
    /// [`Error::Plane`] if a plane is missing, if rows overlap, or if planes or rows do not start at whole words (RGB
    /// pixels of four or eight bytes) or samples (of two or four).
    ///
    /// # Safety
    /// - The planes lie in memory that kernels of every context reach which the frame is used in: with [`Engine`] that is
    ///   the one of its [`Cuda`].
    /// - Each plane holds the rows that `info` says, `strides` apart; planes that are drawn on share no byte.
    /// - The memory stays, and nobody else writes there, nor reads while the frame is drawn on, during `'a` and until the
    ///   streams that it was used on have passed that work: calls return before the device has done it.
    /// - Whoever wrote the planes on another stream has been waited for, for instance by [`Cuda::wait_for`].
    ///
    /// [`Engine`]: crate::engine::Engine
    pub unsafe fn from_planes<const N: usize>(
        info: FrameInfo,
        planes: [u64; N],
        strides: [u32; N],
    ) -> Result<Self> {
        let unit = match info.format.packed_rgb() {
            Some(layout) if layout.bytes % 4 == 0 => layout.bytes as u32,
            _ => info.format.sample().bytes as u32,
        };
        let (mut addresses, mut distances) = ([0; MOST_PLANES], [0; MOST_PLANES]);
        for (i, (row, _)) in info.format.planes(info.geometry).enumerate() {
            let (address, stride) = if i < N { (planes[i], strides[i]) } else { (0, 0) };
            if (stride as usize) < row
                || !stride.is_multiple_of(unit)
                || !address.is_multiple_of(u64::from(unit))
            {
                let what = "row of a plane in device memory, in whole words";
                return Err(Error::Plane { what, needed: row, got: stride as usize });
            }
            (addresses[i], distances[i]) = (address, stride);
        }
        let planes = Planes { info, addresses, strides: distances, mask: None, prior: None };
        Ok(Self {
            planes,
            yuv: Yuv::new(&info),
            accesses: None,
            batch: &[],
            streams: &[],
            memory: PhantomData,
        })
    }

    /// Frames that an engine for batches ([`Engine::for_batch`](crate::engine::Engine::for_batch)) works on side by side.
    ///
    /// # Errors
    ///
    /// [`Error::Batch`] without frames, or if sizes, formats or strides of their planes, masks and priors differ. Some may be without
    /// mask or prior.
    pub fn of_batch(frames: &'a [DeviceFrame<'a>]) -> Result<Self> {
        let Some(&first) = frames.first() else {
            return Err(Error::Batch("no frame; give one at least".into()));
        };
        let mask = frames.iter().find_map(|frame| frame.planes.mask);
        let prior = frames.iter().find_map(|frame| frame.planes.prior);
        let first = Self { planes: Planes { mask, prior, ..first.planes }, ..first };
        for (i, frame) in frames.iter().enumerate() {
            let mask_differs = |(_, stride)| first.planes.mask.is_some_and(|(_, other)| stride != other);
            let kind = DevicePrior::without_address;
            let prior_differs = |own| prior.is_some_and(|other| kind(own) != kind(other));
            if frame.planes.info != first.planes.info
                || frame.planes.strides != first.planes.strides
                || frame.planes.mask.is_some_and(mask_differs)
                || frame.planes.prior.is_some_and(prior_differs)
            {
                let reason = format!(
                    "frame {i} has another size, format or stride than the others; give such frames apart"
                );
                return Err(Error::Batch(reason));
            }
        }
        Ok(Self { batch: frames, ..first })
    }

    /// The same of some of the streams that an engine for batches follows in temporal mode: frame i is of stream `streams[i]`.
    ///
    /// # Errors
    ///
    /// Also [`Error::Batch`] if there is another number of streams than of frames, or if they do not ascend.
    pub fn of_streams(frames: &'a [DeviceFrame<'a>], streams: &'a [u32]) -> Result<Self> {
        if frames.len() != streams.len() {
            return Err(Error::Batch(format!(
                "{} frames of {} streams; name one for each",
                frames.len(),
                streams.len()
            )));
        }
        if !streams.is_sorted_by(|a, b| a < b) {
            return Err(Error::Batch("streams ascend, and each has one frame; sort them".into()));
        }
        Ok(Self { streams, ..Self::of_batch(frames)? })
    }

    /// The stream of each frame of a batch; none where that is its index.
    pub(crate) fn streams(&self) -> &[u32] {
        self.streams
    }

    /// The stream of a frame of a batch.
    pub(crate) fn stream(&self, frame: usize) -> usize {
        self.streams.get(frame).map_or(frame, |stream| *stream as usize)
    }

    /// The frames of a batch, or the frame itself.
    pub(crate) fn each(&self) -> &[DeviceFrame<'a>] {
        if self.batch.is_empty() { std::slice::from_ref(self) } else { self.batch }
    }

    /// Where the frame's planes and mask are, for a list of frames.
    pub(crate) fn places(&self) -> FramePlanes {
        let Planes { info, addresses, mask, prior, .. } = self.planes;
        FramePlanes {
            plane: info.format.layout().channels.map(|channel| addresses[channel.plane]),
            mask: mask.map_or(0, |(address, _)| address),
            prior: prior.map_or(0, |prior| prior.address),
            absent: 0,
        }
    }

    /// Adds a mask, outside of which no pixel is segmented: one byte per pixel, nonzero inside, in rows of `stride`
    /// bytes; see [`Params::masked`](crate::params::Params::masked).
    ///
    /// # Errors
    ///
    /// [`Error::Stride`] if rows would overlap.
    ///
    /// # Safety
    /// The mask is memory like that of the planes of [`DeviceFrame::from_planes`], which nobody draws on.
    pub unsafe fn with_mask(self, mask: u64, stride: u32) -> Result<Self> {
        let width = self.planes.info.geometry.width;
        if stride < width {
            return Err(Error::Stride { what: "mask", least: width as usize, got: stride as usize });
        }
        Ok(Self { planes: Planes { mask: Some((mask, stride)), ..self.planes }, ..self })
    }

    /// Adds areas that no region leaves: numbers of `bytes` bytes, 1, 2, 4 or 8, of which the lowest four count, `geometry` of them, in
    /// rows of `stride` samples; see [`Params::prior`](crate::params::Params::prior).
    ///
    /// # Errors
    ///
    /// [`Error::Plane`] for samples of another size, or not at whole samples; [`Error::Stride`] if rows would overlap.
    ///
    /// # Safety
    /// The samples are memory like that of the planes of [`DeviceFrame::from_planes`], which nobody draws on.
    pub unsafe fn with_prior(
        self,
        samples: u64,
        bytes: u32,
        geometry: Geometry,
        stride: u32,
    ) -> Result<Self> {
        let prior = Some(DevicePrior::new(samples, bytes, geometry, stride)?);
        Ok(Self { planes: Planes { prior, ..self.planes }, ..self })
    }

    /// Size and format.
    pub fn info(&self) -> &FrameInfo {
        &self.planes.info
    }

    /// The `CUcontext` of the planes, if the library knows it.
    pub(crate) fn context(&self) -> Option<usize> {
        self.accesses.map(Accesses::context)
    }

    /// Returns an error for a frame of another context than `cuda`'s, where its addresses are not valid.
    pub(crate) fn check_context(&self, cuda: &Cuda) -> Result<()> {
        if self
            .each()
            .iter()
            .all(|frame| frame.context().is_none_or(|context| context == cuda.context_handle()))
        {
            return Ok(());
        }
        let reason =
            "the frame lies in another context; make its Staging with the Cuda that the engine was made with";
        Err(Error::Backend { backend: "cuda", reason: reason.into() })
    }

    /// Orders all work launched on the stream until the guard is dropped behind earlier accesses and before later ones.
    /// `None` for memory of others, which order their accesses themselves.
    pub(crate) fn access(&self, cuda: &Cuda, kind: Kind) -> Result<Option<Guard<'a>>> {
        self.accesses.map(|accesses| accesses.begin(cuda, kind)).transpose()
    }

    /// [`DeviceFrame::access`] of all frames of a batch.
    pub(crate) fn access_all(&self, cuda: &Cuda, kind: Kind) -> Result<(Option<Guard<'a>>, Vec<Guard<'a>>)> {
        if self.batch.is_empty() {
            return Ok((self.access(cuda, kind)?, Vec::new()));
        }
        // Each once, and in one order: a guard holds a lock.
        let mut all: Vec<_> = self.batch.iter().filter_map(|frame| frame.accesses).collect();
        all.sort_by_key(|accesses| std::ptr::from_ref(*accesses));
        all.dedup_by(|a, b| std::ptr::eq(*a, *b));
        let guards: Result<_> = all.into_iter().map(|accesses| accesses.begin(cuda, kind)).collect();
        Ok((None, guards?))
    }

    pub(crate) fn args(&self) -> FrameArgs {
        let Planes { info, addresses, strides, .. } = self.planes;
        let Layout { family, channels, subsampling, .. } = *info.format.layout();
        let (neutral, luma_offset, to_rgb, to_yuv) = self.yuv.fixed_point();
        let sample = channels[0].sample;
        FrameArgs {
            plane: channels.map(|channel| Address::new(addresses[channel.plane])),
            stride: channels.map(|channel| strides[channel.plane]),
            width: info.geometry.width,
            height: info.geometry.height,
            layout: kernel_layout(info.format),
            bytes: info.format.packed_rgb().map_or(sample.bytes, |p| p.bytes) as u32,
            offset: channels.map(|channel| channel.offset as u32),
            luma_offset,
            to_rgb,
            to_yuv: std::array::from_fn(|i| to_yuv[i / 3][i % 3]),
            neutral,
            step: channels.map(|channel| channel.step as u32),
            shift: channels.map(|channel| channel.sample.shift),
            word: sample.bytes as u32,
            family: family as u32,
            shared: subsampling,
            big_endian: u32::from(sample.big_endian),
            unused: 0,
        }
    }
}

/// First number of a layout that kernels read by the format's description.
const LAYOUT_ANY: u32 = 5;

/// Returns true if kernels have no code of its own for a format.
pub(crate) fn has_any_layout(format: PixelFormat) -> bool {
    kernel_layout(format) >= LAYOUT_ANY
}

/// The layout of a format, as kernels/frame.cuh numbers it.
fn kernel_layout(format: PixelFormat) -> u32 {
    let own = format.layout();
    // Channels have pointers of their own, so it does not matter which plane they are in.
    let reads_like = |other: PixelFormat| {
        let other = other.layout();
        let same = own.channels.iter().zip(&other.channels).all(|(a, b)| {
            (a.offset, a.step, a.sample, a.plane == 0) == (b.offset, b.step, b.sample, b.plane == 0)
        });
        same && own.family == other.family && own.subsampling == other.subsampling
    };
    match own.family {
        Family::Rgb if format.packed_rgb().is_some() => 0,
        Family::Gray if !own.channels[0].sample.big_endian => 1,
        Family::Yuv if reads_like(PixelFormat::Nv12) => 2,
        Family::Yuv if reads_like(PixelFormat::I420) => 3,
        Family::Yuv if reads_like(PixelFormat::P010Le) => 4,
        _ => LAYOUT_ANY + u32::from(format.bits() > 10),
    }
}

/// Device memory for a frame. Streams access it in the order of the calls, even those of several engines that share
/// one.
pub struct Staging {
    planes: Planes,
    yuv: Yuv,
    accesses: Accesses,
    traffic: std::sync::Arc<Traffic>,
    /// Allocated with the first mask.
    mask: Option<Memory<u8>>,
    prior: PriorMemory,
    /// Memory that `planes` points to.
    memory: FrameMemory,
    /// For frames and masks of the host; allocated with the first.
    buffer: Option<StagingBuffer>,
    /// Dropped last, because it may hold the context.
    cuda: Cuda,
}

impl Staging {
    /// Allocates memory for frames of one kind.
    pub fn new(cuda: &Cuda, info: FrameInfo) -> Result<Self> {
        let mut offsets = [0u64; MOST_PLANES];
        let mut strides = [0u32; MOST_PLANES];
        let mut end = 0usize;
        for (i, (row, rows)) in info.format.planes(info.geometry).enumerate() {
            // Rows begin at whole sectors of memory.
            let stride = row.next_multiple_of(128);
            (offsets[i], strides[i]) = (end as u64, stride as u32);
            end += stride * rows;
        }
        let memory = FrameMemory::new(cuda, end)?;
        let addresses = offsets.map(|offset| memory.address() + offset);
        Ok(Self {
            buffer: None,
            cuda: cuda.clone(),
            planes: Planes { info, addresses, strides, mask: None, prior: None },
            mask: None,
            prior: PriorMemory::default(),
            yuv: Yuv::new(&info),
            accesses: Accesses::new(cuda),
            traffic: cuda.traffic.clone(),
            memory,
        })
    }

    /// The frame in device memory.
    pub fn frame(&self) -> DeviceFrame<'_> {
        let Self { planes, yuv, accesses, .. } = self;
        DeviceFrame {
            planes: *planes,
            yuv: *yuv,
            accesses: Some(accesses),
            batch: &[],
            streams: &[],
            memory: PhantomData,
        }
    }

    /// Allocates memory for a mask, here and in the staging buffer.
    fn prepare_mask(&mut self) -> Result<()> {
        if self.mask.is_none() {
            let pixels = self.planes.info.geometry.pixels();
            // Streams that write the memory wait until it is cleared.
            let _access = self.accesses.begin(&self.cuda, Kind::Write)?;
            self.mask = Some(Memory::alone(&self.cuda, "mask memory", pixels)?);
            self.buffer = None;
        }
        Ok(())
    }

    /// Makes room for a prior of a size and of samples of so many bytes.
    fn prepare_prior(&mut self, kind: Option<(Geometry, u32)>) -> Result<Option<DevicePrior>> {
        let Self { prior, accesses, cuda, .. } = self;
        kind.map(|(geometry, bytes)| prior.prepare(cuda, accesses, geometry, bytes)).transpose()
    }

    /// Copies a frame in device memory, with its mask and prior, on the stream of `cuda`. Once that has passed, the frame's owner
    /// may reuse its memory.
    pub(crate) fn copy(&mut self, cuda: &Cuda, frame: &DeviceFrame<'_>) -> Result<DeviceFrame<'_>> {
        let stage = "copy of a frame";
        self.planes.info.check(frame.info())?;
        if frame.planes.mask.is_some() {
            self.prepare_mask()?;
        }
        let prior = self.prepare_prior(frame.planes.prior.map(|prior| (prior.geometry, prior.bytes)))?;
        let Self { planes, accesses, mask, .. } = self;
        let _source = frame.access(cuda, Kind::Read)?;
        let access = accesses.begin(cuda, Kind::Write)?;
        check(stage, cuda.device.context.bind_to_thread())?;
        for (i, (row, rows)) in planes.info.format.planes(planes.info.geometry).enumerate() {
            let at =
                |planes: &Planes| Rows { address: planes.addresses[i], stride: planes.strides[i] as usize };
            // SAFETY: who made `frame` keeps its planes until the stream has passed; ours are laid out for the same format and
            // size, and the stream waits for all earlier accesses.
            unsafe { copy_rows(stage, &cuda.stream, at(&frame.planes), at(planes), row, rows)? };
        }
        planes.mask = None;
        if let (Some((address, stride)), Some(mask)) = (frame.planes.mask, mask) {
            let Geometry { width, height } = planes.info.geometry;
            let from = Rows { address, stride: stride as usize };
            let to = Rows { address: mask.address().raw(), stride: width as usize };
            // SAFETY: as for the planes; ours has a byte a pixel.
            unsafe { copy_rows(stage, &cuda.stream, from, to, width as usize, height as usize)? };
            planes.mask = Some((to.address, width));
        }
        if let (Some(from), Some(to)) = (frame.planes.prior, prior) {
            // SAFETY: as for the planes; ours is as large.
            unsafe { from.copy(cuda, to)? };
        }
        planes.prior = prior;
        drop(access);
        Ok(self.frame())
    }

    /// Uploads a frame of the host. Returns once the host's memory may be reused.
    pub fn upload(&mut self, frame: &Frame<'_>) -> Result<DeviceFrame<'_>> {
        self.planes.info.check(frame.info())?;
        if frame.mask().is_some() {
            self.prepare_mask()?;
        }
        let to = self.prepare_prior(frame.prior().map(|prior| (prior.geometry(), prior.bytes().0)))?;
        let Self { planes, accesses, mask, prior, buffer, memory, cuda, .. } = self;
        let bytes = memory.staged() + mask.as_ref().map_or(0, Memory::len);
        let buffer = pinned(buffer, cuda, bytes)?;
        buffer.ready()?;
        if let FrameMemory::Shared(_) = memory {
            accesses.wait(Kind::Write)?;
        }
        let access = accesses.begin(buffer.cuda(), Kind::Write)?;
        for (i, (row, rows)) in frame.info().format.planes(frame.info().geometry).enumerate() {
            let (host, stride, to) = (frame.plane(i), frame.stride(i), planes.rows(i, row, rows));
            match memory {
                // SAFETY: the plane lies in our memory, and the stream waits for all earlier accesses.
                FrameMemory::Device(_) => unsafe { buffer.up(host, stride, to)? },
                // All earlier accesses have been waited for, and later ones wait for the lock.
                FrameMemory::Shared(shared) => shared.write(host, stride, to),
            }
        }
        planes.mask = None;
        if let (Some(from), Some(mask)) = (frame.mask(), mask) {
            let Geometry { width, height } = planes.info.geometry;
            let (row, rows) = (width as usize, height as usize);
            let offset = buffer.len() - row * rows;
            let to = DeviceRows { address: mask.address().raw(), stride: row, row, rows, offset };
            // SAFETY: the memory holds a byte a pixel, and the stream waits for all earlier accesses.
            unsafe { buffer.up(from.bytes, from.stride, to)? };
            planes.mask = Some((to.address, width));
        }
        if let (Some(from), Some(to)) = (frame.prior(), to) {
            // SAFETY: `to` is ours for this prior, and the stream waits for all earlier accesses.
            unsafe { prior.upload(cuda, &from, to)? };
        }
        planes.prior = to;
        drop(access);
        Ok(self.frame())
    }

    /// Starts to download the frame on the stream of `way`, into memory that may leave with it.
    ///
    /// # Safety
    /// That stream waits for what wrote the frame, and is waited for before any other use of `self` and `to`, their ends
    /// included.
    #[cfg(feature = "gst")]
    pub(crate) unsafe fn start_download(
        &self,
        way: &Cuda,
        to: &mut HostFrame,
        layout: &HostLayout,
    ) -> Result<()> {
        let stage = "download";
        check(stage, way.device.context.bind_to_thread())?;
        let Planes { info, addresses, strides, .. } = self.planes;
        for (i, (row, rows)) in info.format.planes(info.geometry).enumerate() {
            let (offset, stride) = layout.plane(i);
            let plane = &mut to.pinned().writable()[offset..][..stride * (rows - 1) + row];
            let copy = sys::CUDA_MEMCPY2D {
                srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
                srcDevice: addresses[i],
                srcPitch: strides[i] as usize,
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
            // SAFETY: our memory holds the plane as `Staging::new` laid it out, `writable` has checked the host's end; the caller
            // orders the stream behind what wrote the frame and before any other use of both ends.
            check(stage, unsafe { sys::cuMemcpy2DAsync_v2(&copy, way.stream.cu_stream()) }.result())?;
            Traffic::add(&self.traffic.pixels_down, row * rows);
        }
        Ok(())
    }

    /// Downloads the frame and waits for it.
    pub fn download(&mut self, frame: &mut FrameMut<'_>) -> Result<()> {
        let Self { planes, accesses, mask, buffer, memory, traffic, cuda, .. } = self;
        planes.info.check(frame.info())?;
        if let FrameMemory::Shared(shared) = memory {
            accesses.wait(Kind::Read)?;
            for (i, (row, rows)) in frame.info().format.planes(frame.info().geometry).enumerate() {
                let (host, host_stride) = frame.plane_mut(i);
                shared.read(host, host_stride, planes.rows(i, row, rows));
            }
            return Ok(());
        }
        let bytes = memory.staged() + mask.as_ref().map_or(0, Memory::len);
        let buffer = pinned(buffer, cuda, bytes)?;
        let _access = accesses.begin(buffer.cuda(), Kind::Read)?;
        for (i, (row, rows)) in frame.info().format.planes(frame.info().geometry).enumerate() {
            let (host, host_stride) = frame.plane_mut(i);
            // SAFETY: the plane lies in our memory, and the stream waits for the last write.
            let bytes = unsafe { buffer.down(host, host_stride, planes.rows(i, row, rows))? };
            Traffic::add(&traffic.pixels_down, bytes);
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let FrameMemory::Shared(_) = self.memory {
            // Fails only in a broken context, which runs no work any more.
            let _ = self.accesses.wait(Kind::Write);
        }
        // Other memory is freed in the order of this stream.
        self.accesses.synchronize(&self.cuda.stream);
    }
}

/// The pinned memory of a [`Staging`].
fn pinned<'a>(
    buffer: &'a mut Option<StagingBuffer>,
    cuda: &Cuda,
    bytes: usize,
) -> Result<&'a mut StagingBuffer> {
    match buffer {
        Some(buffer) => Ok(buffer),
        none => Ok(none.insert(StagingBuffer::new(cuda, bytes)?)),
    }
}
