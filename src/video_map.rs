// SPDX-License-Identifier: MPL-2.0
//! Video buffers of other elements, mapped after checking every claim that the buffer makes about its planes.
//!
//! Every plane has to lie in memory that the buffer holds, by its offset, stride and size in 64 bits: before the buffer
//! is mapped by its own description, afterwards by the addresses that GStreamer gives.

use std::marker::PhantomData;

use gst::glib;
use gst::glib::translate::{ToGlibPtr, from_glib};

use crate::image::{Geometry, MOST_PLANES};

/// Cause, in words that say how to avoid it.
pub(crate) type Reason = String;

/// Bytes of a row without padding, and number of rows.
pub(crate) type Shape = (usize, usize);

/// Shape of a plane of 16-bit labels.
pub(crate) fn label_shape(geometry: Geometry) -> Shape {
    (size_of::<u16>() * geometry.width() as usize, geometry.height() as usize)
}

/// A [`gst_video::VideoMeta`] as it is, even if it contradicts itself.
struct Description {
    format: gst_video::VideoFormat,
    width: u32,
    height: u32,
    planes: usize,
    offsets: [usize; 4],
    strides: [i32; 4],
    can_map: bool,
}

impl Description {
    /// The video meta that GStreamer maps a buffer by: of several the one of lowest id, which need not be the first.
    fn of(buffer: &gst::BufferRef) -> Option<Self> {
        // SAFETY: the buffer is valid; the meta belongs to it and is read while it is borrowed.
        let meta = unsafe { gst_video::ffi::gst_buffer_get_video_meta(buffer.as_mut_ptr()).as_ref() }?;
        Some(Self {
            // SAFETY: any number is a format or becomes `__Unknown`.
            format: unsafe { from_glib(meta.format) },
            width: meta.width,
            height: meta.height,
            planes: meta.n_planes as usize,
            offsets: meta.offset,
            strides: meta.stride,
            can_map: meta.map.is_some() && meta.unmap.is_some(),
        })
    }

    /// Returns an error if the meta contradicts the caps, which GStreamer treats as a programming error when it maps.
    fn check(&self, info: &gst_video::VideoInfo) -> Result<(), Reason> {
        if self.format != info.format() || self.width < info.width() || self.height < info.height() {
            return Err(format!(
                "its video meta says {} {}x{}; make the element that attached it follow the caps",
                self.format, self.width, self.height
            ));
        }
        if self.planes != info.n_planes() as usize {
            return Err(format!(
                "its video meta has {} planes where {} has {}; make the element that attached it describe all planes",
                self.planes,
                info.format(),
                info.n_planes()
            ));
        }
        if !self.can_map {
            return Err("its video meta has no functions to map it".into());
        }
        Ok(())
    }
}

/// Layout of a plane in its buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PlaneLayout {
    /// Bytes from the start of the buffer to the first row.
    pub offset: usize,
    /// Bytes from one row to the next.
    pub stride: usize,
    /// Bytes from the first of the first row to the last of the last row.
    pub len: usize,
}

/// Layout of a buffer's planes, checked against its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    planes: [PlaneLayout; MOST_PLANES],
    count: usize,
}

impl Layout {
    /// Derives the layout from the buffer's video meta, or from the caps if it has none.
    ///
    /// Shapes: one for each plane of the caps.
    ///
    /// # Errors
    ///
    /// If the meta contradicts the caps, a stride is shorter than a row, or the buffer does not hold a plane.
    pub fn of(
        buffer: &gst::BufferRef,
        info: &gst_video::VideoInfo,
        shapes: impl Iterator<Item = Shape>,
    ) -> Result<Self, Reason> {
        let size = buffer.size();
        let description = Description::of(buffer);
        if let Some(description) = &description {
            description.check(info)?;
        } else if size < info.size() {
            return Err(too_short(size, info, shapes));
        }
        let mut layout = Self { planes: Default::default(), count: 0 };
        for (i, (row, rows)) in shapes.take(MOST_PLANES).enumerate() {
            let (offset, stride) = match &description {
                Some(description) => (description.offsets[i], description.strides[i]),
                None => (info.offset()[i], info.stride()[i]),
            };
            layout.planes[i] = plane(offset, stride, row, rows, size)
                .map_err(|reason| format!("plane {i} of {} {reason}", info.format()))?;
            layout.count += 1;
        }
        Ok(layout)
    }

    /// The planes of the format.
    pub fn planes(&self) -> &[PlaneLayout] {
        &self.planes[..self.count]
    }
}

/// Checks that a plane fits a buffer of `size` bytes.
fn plane(offset: usize, stride: i32, row: usize, rows: usize, size: usize) -> Result<PlaneLayout, Reason> {
    let stride = usize::try_from(stride)
        .ok()
        .filter(|stride| *stride >= row)
        .ok_or_else(|| format!("has a stride of {stride} bytes for rows of {row}"))?;
    // Computed in 64 bits, because 32 bits would wrap.
    let len = (stride as u64).saturating_mul(rows.saturating_sub(1) as u64).saturating_add(row as u64);
    let end = len.saturating_add(offset as u64);
    if end > size as u64 {
        return Err(format!("ends at byte {end}, but the buffer has {size}"));
    }
    Ok(PlaneLayout { offset, stride, len: len as usize })
}

/// The reason why a buffer without a video meta is shorter than the caps want.
fn too_short(size: usize, info: &gst_video::VideoInfo, shapes: impl Iterator<Item = Shape>) -> Reason {
    let (mut tight, mut padded, mut rows) = (0u64, Vec::new(), Vec::new());
    for ((row, count), stride) in shapes.zip(info.stride()) {
        tight += row as u64 * count as u64;
        padded.push(stride.to_string());
        rows.push(row.to_string());
    }
    let advice = if size as u64 == tight {
        format!(
            "its rows are not padded: pad them, or attach a GstVideoMeta with strides of {} bytes",
            rows.join(", ")
        )
    } else {
        "the frame is incomplete".into()
    };
    format!(
        "it has {size} bytes where {} {}x{} needs {} (rows of {} bytes); {advice}",
        info.format(),
        info.width(),
        info.height(),
        info.size(),
        padded.join(", ")
    )
}

/// A mapped plane.
#[derive(Clone, Copy)]
pub(crate) struct Plane {
    /// First byte of the first row; a device address if the buffer is mapped on the device.
    pub data: *mut u8,
    /// Bytes to the end of the last row.
    pub len: usize,
    /// Bytes from one row to the next.
    pub stride: usize,
}

impl Plane {
    const NONE: Self = Self { data: std::ptr::dangling_mut(), len: 0, stride: 0 };

    fn overlaps(&self, other: &Self) -> bool {
        let (a, b) = (self.data as usize, other.data as usize);
        self.len > 0 && other.len > 0 && a < b.saturating_add(other.len) && b < a.saturating_add(self.len)
    }
}

/// Access that a buffer is mapped for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    /// Reads as well, because drawing leaves most bytes as they are.
    Write,
}

/// A mapped buffer whose planes lie in memory that it holds.
pub(crate) struct VideoMap<'a> {
    mapped: gst_video::ffi::GstVideoFrame,
    planes: [Plane; MOST_PLANES],
    access: Access,
    _buffer: PhantomData<&'a gst::BufferRef>,
}

impl<'a> VideoMap<'a> {
    /// Maps for reading. Shared memory stays shared.
    pub fn read(
        buffer: &'a gst::BufferRef,
        info: &gst_video::VideoInfo,
        shapes: impl Iterator<Item = Shape> + Clone,
    ) -> Result<Self, Reason> {
        // SAFETY: the buffer is valid and stays borrowed while it is mapped.
        unsafe { Self::map(buffer.as_mut_ptr(), info, shapes, Access::Read, 0) }
    }

    /// Maps for writing. GStreamer first copies memory that is shared.
    ///
    /// # Errors
    ///
    /// Also if planes overlap, since writing to one would change another.
    pub fn write(
        buffer: &'a mut gst::BufferRef,
        info: &gst_video::VideoInfo,
        shapes: impl Iterator<Item = Shape> + Clone,
    ) -> Result<Self, Reason> {
        // SAFETY: the buffer is valid and stays borrowed, mutably, while it is mapped.
        unsafe { Self::map(buffer.as_mut_ptr(), info, shapes, Access::Write, 0) }
    }

    /// Maps with additional flags.
    ///
    /// # Safety
    /// `buffer` is valid and stays borrowed for `'a`, mutably with [`Access::Write`].
    pub unsafe fn map(
        buffer: *mut gst::ffi::GstBuffer,
        info: &gst_video::VideoInfo,
        shapes: impl Iterator<Item = Shape> + Clone,
        access: Access,
        flags: gst::ffi::GstMapFlags,
    ) -> Result<Self, Reason> {
        // SAFETY: valid by the caller's promise; the borrow ends before the buffer is mapped.
        let layout = Layout::of(unsafe { gst::BufferRef::from_ptr(buffer) }, info, shapes.clone())?;
        let (what, access_flags) = match access {
            Access::Read => ("reading", gst::ffi::GST_MAP_READ),
            Access::Write => ("writing", gst::ffi::GST_MAP_READ | gst::ffi::GST_MAP_WRITE),
        };
        let flags = flags | access_flags | gst_video::ffi::GST_VIDEO_FRAME_MAP_FLAG_NO_REF;
        let mut mapped = std::mem::MaybeUninit::uninit();
        // SAFETY: the buffer is valid by the caller's promise, its video meta agrees with the info; the frame is read
        // only where the call says that it has filled it.
        let mapped = unsafe {
            let done = gst_video::ffi::gst_video_frame_map(
                mapped.as_mut_ptr(),
                info.to_glib_none().0,
                buffer,
                flags,
            );
            (done != glib::ffi::GFALSE).then(|| mapped.assume_init())
        };
        let mapped = mapped.ok_or_else(|| {
            format!(
                "its memory cannot be mapped for {what}: another user has locked it, or it is not host memory; put a \
                 download element before this one for device memory"
            )
        })?;
        // From here on dropping unmaps.
        let mut map = Self { mapped, planes: [Plane::NONE; MOST_PLANES], access, _buffer: PhantomData };
        for (i, (found, (row, rows))) in layout.planes().iter().zip(shapes).enumerate() {
            map.planes[i] = map.plane(i, row, rows, layout.count == 1).ok_or_else(|| {
                format!("plane {i} of {} bytes ends outside of its mapped memory", found.len)
            })?;
        }
        let overlap = |i: usize| map.planes[..i].iter().any(|other| other.overlaps(&map.planes[i]));
        if access == Access::Write && (1..MOST_PLANES).any(overlap) {
            return Err(
                "its planes overlap and cannot be drawn on; make the element that made it place them apart"
                    .into(),
            );
        }
        Ok(map)
    }

    /// A plane as GStreamer has mapped it, if it lies within its map.
    fn plane(&self, i: usize, row: usize, rows: usize, single: bool) -> Option<Plane> {
        let stride = usize::try_from(self.mapped.info.stride[i]).ok().filter(|stride| *stride >= row)?;
        let len = stride.checked_mul(rows.checked_sub(1)?)?.checked_add(row)?;
        // Without a video meta all planes lie in one map.
        let map = &self.mapped.map[if self.mapped.meta.is_null() { 0 } else { i }];
        let data = self.mapped.data[i].cast::<u8>();
        let rest = map.size.checked_sub((data as usize).checked_sub(map.data as usize)?)?;
        // The last row of a plane that has a map of its own includes its padding, if that is mapped.
        let len = if single { len.max(rest.min(stride.checked_mul(rows)?)) } else { len };
        (!data.is_null() && len <= rest).then_some(Plane { data, len, stride })
    }

    /// The planes; those that the format lacks are empty.
    #[cfg(feature = "cuda")]
    pub fn planes(&self) -> &[Plane; MOST_PLANES] {
        &self.planes
    }

    /// The memories that the planes were mapped from, which may not be those that the buffer had before.
    #[cfg(feature = "cuda")]
    pub fn memories(&self) -> impl Iterator<Item = *mut gst::ffi::GstMemory> {
        let maps =
            if self.mapped.meta.is_null() { 1 } else { self.planes.iter().filter(|p| p.len > 0).count() };
        self.mapped.map[..maps].iter().map(|map| map.memory)
    }

    /// Strides of the planes in bytes.
    pub fn strides(&self) -> [usize; MOST_PLANES] {
        self.planes.map(|plane| plane.stride)
    }

    /// The bytes of the planes, for a buffer that is mapped on the host.
    pub fn slices(&self) -> [&[u8]; MOST_PLANES] {
        // SAFETY: `map` checked that the bytes lie in memory that stays mapped for reading while `self` lives; a map on
        // a device is not asked for them (`DeviceMap` keeps it to itself).
        self.planes.map(|p| unsafe { std::slice::from_raw_parts(p.data, p.len) })
    }

    /// The bytes of the planes for writing; empty if the buffer is mapped for reading.
    pub fn slices_mut(&mut self) -> [&mut [u8]; MOST_PLANES] {
        let planes = if self.access == Access::Write { self.planes } else { [Plane::NONE; MOST_PLANES] };
        // SAFETY: `map` checked that the bytes lie in memory that stays mapped for writing while `self` lives and that no
        // two planes overlap; `self` is borrowed mutably, so nothing else refers to them.
        planes.map(|p| unsafe { std::slice::from_raw_parts_mut(p.data, p.len) })
    }
}

impl Drop for VideoMap<'_> {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and unmapped once.
        unsafe { gst_video::ffi::gst_video_frame_unmap(&mut self.mapped) };
    }
}
