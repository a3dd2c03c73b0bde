// SPDX-License-Identifier: MPL-2.0
//! GStreamer buffers to frames and label planes of the library: every map and unmap of video memory.

use gst::glib;
use gst::prelude::*;
use gst_video::prelude::*;

use crate::image::{self, FrameInfo, Geometry, MAX_SIDE, PixelFormat, YuvMatrix};

// Labels are written in place into GRAY16_LE planes, which are native only here.
#[cfg(target_endian = "big")]
compile_error!(
    "the GStreamer elements support little-endian machines only; build with --no-default-features"
);

/// GStreamer's name of a format.
fn video_format(format: PixelFormat) -> gst_video::VideoFormat {
    match format {
        PixelFormat::Rgba => gst_video::VideoFormat::Rgba,
        PixelFormat::Bgra => gst_video::VideoFormat::Bgra,
        PixelFormat::Rgbx => gst_video::VideoFormat::Rgbx,
        PixelFormat::Bgrx => gst_video::VideoFormat::Bgrx,
        PixelFormat::Argb => gst_video::VideoFormat::Argb,
        PixelFormat::Abgr => gst_video::VideoFormat::Abgr,
        PixelFormat::Xrgb => gst_video::VideoFormat::Xrgb,
        PixelFormat::Xbgr => gst_video::VideoFormat::Xbgr,
        PixelFormat::Rgb => gst_video::VideoFormat::Rgb,
        PixelFormat::Bgr => gst_video::VideoFormat::Bgr,
        PixelFormat::Gray8 => gst_video::VideoFormat::Gray8,
        PixelFormat::Nv12 => gst_video::VideoFormat::Nv12,
        PixelFormat::I420 => gst_video::VideoFormat::I420,
        PixelFormat::P010Le => gst_video::VideoFormat::P01010le,
    }
}

/// Caps of everything that can be segmented in system memory.
pub(crate) fn system_caps() -> gst::Caps {
    caps_of(PixelFormat::ALL.map(video_format))
}

/// Caps of everything that can be segmented, on the device first: there no pixel has to move.
pub(super) fn all_caps() -> gst::Caps {
    let mut caps = gst::Caps::new_empty();
    #[cfg(feature = "cuda")]
    {
        let formats = PixelFormat::ALL.into_iter().filter(|format| on_device(*format)).map(video_format);
        let mut device = caps_of(formats);
        device.make_mut().set_features_simple(Some(gst::CapsFeatures::new([super::cuda_memory::FEATURE])));
        caps.merge(device);
    }
    caps.merge(system_caps());
    caps
}

/// Whether GStreamer keeps frames of a format in device memory.
#[cfg(feature = "cuda")]
fn on_device(format: PixelFormat) -> bool {
    use PixelFormat::*;
    matches!(format, Nv12 | I420 | P010Le | Rgba | Bgra | Rgbx | Bgrx)
}

/// Whether caps are of frames in device memory.
pub(super) fn is_on_device(features: &gst::CapsFeaturesRef) -> bool {
    #[cfg(feature = "cuda")]
    return features.contains(super::cuda_memory::FEATURE);
    #[cfg(not(feature = "cuda"))]
    return {
        let _ = features;
        false
    };
}

/// Caps of any supported size in one of `formats`.
pub(crate) fn caps_of(formats: impl IntoIterator<Item = gst_video::VideoFormat>) -> gst::Caps {
    let sides = 1..=MAX_SIDE as i32;
    gst_video::VideoCapsBuilder::new()
        .format_list(formats)
        .width_range(sides.clone())
        .height_range(sides)
        .build()
}

/// What the samples of a stream mean; `None` for what the caps do not offer.
pub(super) fn frame_info(info: &gst_video::VideoInfo) -> Option<FrameInfo> {
    let geometry = Geometry::new(info.width(), info.height()).ok()?;
    let format = PixelFormat::ALL.into_iter().find(|f| video_format(*f) == info.format())?;
    if format.packed_rgb().is_some() {
        return Some(FrameInfo::new(geometry, format));
    }
    let colorimetry = info.colorimetry();
    let matrix = match colorimetry.matrix() {
        gst_video::VideoColorMatrix::Bt709 => YuvMatrix::Bt709,
        gst_video::VideoColorMatrix::Bt2020 => YuvMatrix::Bt2020,
        gst_video::VideoColorMatrix::Fcc => YuvMatrix::Fcc,
        gst_video::VideoColorMatrix::Smpte240m => YuvMatrix::Smpte240m,
        _ => YuvMatrix::Bt601,
    };
    let full_range = match colorimetry.range() {
        gst_video::VideoColorRange::Range0_255 => true,
        gst_video::VideoColorRange::Range16_235 => false,
        _ => format == PixelFormat::Gray8,
    };
    Some(FrameInfo { geometry, format, matrix, full_range })
}

/// Where the rows of a mapped plane lie.
#[derive(Clone, Copy)]
pub(super) struct Plane {
    pub data: *mut u8,
    pub len: usize,
    pub stride: usize,
}

pub(super) fn refuse(what: impl std::fmt::Display) -> gst::ErrorMessage {
    gst::error_msg!(
        gst::StreamError::Format,
        ("The buffer does not hold a frame of the negotiated caps: {what}; fix the element that made it")
    )
}

/// Refuses a buffer whose own description contradicts the caps, which mapping it would treat as a programming error.
pub(super) fn check_meta(
    buffer: &gst::BufferRef,
    info: &gst_video::VideoInfo,
) -> Result<(), gst::ErrorMessage> {
    let Some(meta) = buffer.meta::<gst_video::VideoMeta>() else { return Ok(()) };
    if meta.format() == info.format() && meta.width() >= info.width() && meta.height() >= info.height() {
        return Ok(());
    }
    let (found, width, height) = (meta.format(), meta.width(), meta.height());
    Err(refuse(format_args!("its video meta says {found} {width}x{height}")))
}

pub(super) fn map_failed(access: &str) -> gst::ErrorMessage {
    gst::error_msg!(
        gst::ResourceError::Failed,
        ("Cannot map the buffer for {access}: its memory is too short for the caps, locked by another user or \
             not accessible to the CPU; put videoconvert, or a download element for device memory, before superpixel")
    )
}

/// Finds the planes of a mapped frame and checks that each lies within its memory; those that the format has not are empty.
pub(super) fn planes(
    mapped: &gst_video::ffi::GstVideoFrame,
    frame: FrameInfo,
) -> Result<[Plane; 3], gst::ErrorMessage> {
    let mut planes = [Plane { data: std::ptr::dangling_mut(), len: 0, stride: 0 }; 3];
    for (i, (row, rows)) in frame.format.planes(frame.geometry).enumerate() {
        let stride = usize::try_from(mapped.info.stride[i]).ok().filter(|stride| *stride >= row);
        let Some(stride) = stride else {
            return Err(refuse(format_args!("stride of plane {i} is {}", mapped.info.stride[i])));
        };
        let len = stride * (rows - 1) + row;
        // Without a video meta all planes lie in one mapping.
        let map = &mapped.map[if mapped.meta.is_null() { 0 } else { i }];
        let data = mapped.data[i].cast::<u8>();
        let offset = (data as usize).checked_sub(map.data as usize);
        if data.is_null() || offset.and_then(|o| o.checked_add(len)).is_none_or(|end| end > map.size) {
            return Err(refuse(format_args!("plane {i} ends outside of its memory")));
        }
        planes[i] = Plane { data, len, stride };
    }
    Ok(planes)
}

/// A buffer mapped for reading; shared memory stays shared.
pub(super) struct ReadMap<'a> {
    mapped: gst_video::VideoFrameRef<&'a gst::BufferRef>,
    frame: FrameInfo,
}

impl<'a> ReadMap<'a> {
    /// Maps a frame.
    pub(super) fn new(
        buffer: &'a gst::BufferRef,
        info: &gst_video::VideoInfo,
        frame: FrameInfo,
    ) -> Result<Self, gst::ErrorMessage> {
        check_meta(buffer, info)?;
        let mapped = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, info)
            .map_err(|_| map_failed("reading"))?;
        Ok(Self { mapped, frame })
    }

    /// The frame as the library reads it.
    pub(super) fn frame(&self) -> Result<image::Frame<'_>, gst::ErrorMessage> {
        // SAFETY: the pointer is to the map that `self` owns and that outlives the borrow.
        let planes = planes(unsafe { &*self.mapped.as_ptr() }, self.frame)?;
        // SAFETY: `planes` checked that the bytes lie in memory that stays mapped for reading while `self` lives.
        let slices = planes.map(|p| unsafe { std::slice::from_raw_parts(p.data, p.len) });
        image::Frame::new(self.frame, &slices, &planes.map(|p| p.stride)).map_err(refuse)
    }
}

/// A buffer mapped for drawing; GStreamer copies its memory first where that is shared.
pub(super) struct DrawMap<'a> {
    mapped: gst_video::VideoFrameRef<&'a mut gst::BufferRef>,
    frame: FrameInfo,
}

impl<'a> DrawMap<'a> {
    /// Maps a frame.
    pub(super) fn new(
        buffer: &'a mut gst::BufferRef,
        info: &gst_video::VideoInfo,
        frame: FrameInfo,
    ) -> Result<Self, gst::ErrorMessage> {
        check_meta(buffer, info)?;
        let mapped = gst_video::VideoFrameRef::from_buffer_ref_writable(buffer, info)
            .map_err(|_| map_failed("reading and writing"))?;
        Ok(Self { mapped, frame })
    }

    /// The frame as the library draws on it.
    pub(super) fn frame_mut(&mut self) -> Result<image::FrameMut<'_>, gst::ErrorMessage> {
        // SAFETY: the pointer is to the map that `self` owns and that outlives the borrow.
        let planes = planes(unsafe { &*self.mapped.as_mut_ptr() }, self.frame)?;
        let range = |p: &Plane| p.data as usize..p.data as usize + p.len;
        let disjoint =
            |a: &Plane, b: &Plane| range(a).end <= range(b).start || range(b).end <= range(a).start;
        if !(0..planes.len()).all(|i| planes[..i].iter().all(|other| disjoint(other, &planes[i]))) {
            return Err(refuse("its planes overlap"));
        }
        // SAFETY: `planes` checked that the bytes lie in memory that stays mapped for writing while `self` lives; no two
        // planes overlap and `self` is borrowed mutably, so nothing else refers to them.
        let slices = planes.map(|p| unsafe { std::slice::from_raw_parts_mut(p.data, p.len) });
        image::FrameMut::new(self.frame, slices, &planes.map(|p| p.stride)).map_err(refuse)
    }
}

/// Where the planes of a buffer lie in it.
#[cfg(feature = "cuda")]
pub(super) fn host_layout(
    buffer: &gst::BufferRef,
    info: &gst_video::VideoInfo,
    frame: FrameInfo,
) -> Result<crate::cuda::landing::HostLayout, gst::ErrorMessage> {
    check_meta(buffer, info)?;
    let (mut offsets, mut strides) = ([0; 3], [0; 3]);
    let meta = buffer.meta::<gst_video::VideoMeta>();
    for i in 0..frame.format.planes(frame.geometry).len() {
        let (offset, stride) = match &meta {
            Some(meta) => (meta.offset()[i], meta.stride()[i]),
            None => (info.offset()[i], info.stride()[i]),
        };
        (offsets[i], strides[i]) = (offset, usize::try_from(stride).map_err(refuse)?);
    }
    crate::cuda::landing::HostLayout::new(frame, buffer.size(), offsets, strides).map_err(refuse)
}

/// A label buffer whose labels come down when it is mapped: GRAY16_LE with a video meta.
#[cfg(feature = "cuda")]
pub(super) fn label_buffer(
    results: &std::sync::Arc<crate::cuda::Results>,
    geometry: Geometry,
) -> Result<gst::Buffer, gst::ErrorMessage> {
    let mut buffer = super::result_memory::buffer(results, crate::cuda::Part::Labels);
    let stride = [i32::try_from(results.label_stride()).map_err(refuse)?];
    let (flags, format) = (gst_video::VideoFrameFlags::empty(), gst_video::VideoFormat::Gray16Le);
    let writable = buffer.get_mut().ok_or_else(|| refuse("a new buffer is shared"))?;
    gst_video::VideoMeta::add_full(writable, flags, format, geometry.width, geometry.height, &[0], &stride)
        .map_err(refuse)?;
    Ok(buffer)
}

/// Makes label buffers of one size: GRAY16_LE with a video meta. Their memory is used again when readers let go.
pub(super) struct LabelPool {
    pool: gst_video::VideoBufferPool,
    info: gst_video::VideoInfo,
    geometry: Geometry,
}

impl LabelPool {
    /// Sets up the pool; memory comes with the first frames.
    pub(super) fn new(geometry: Geometry) -> Result<Self, glib::BoolError> {
        let format = gst_video::VideoFormat::Gray16Le;
        let info = gst_video::VideoInfo::builder(format, geometry.width, geometry.height).build()?;
        let size = u32::try_from(info.size()).map_err(|_| glib::bool_error!("label map too large"))?;
        let pool = gst_video::VideoBufferPool::new();
        let mut config = pool.config();
        config.set_params(Some(&info.to_caps()?), size, 0, 0);
        config.add_option(gst_video::BUFFER_POOL_OPTION_VIDEO_META.as_str());
        pool.set_config(config)?;
        pool.set_active(true)?;
        Ok(Self { pool, info, geometry })
    }

    /// A label buffer that nobody else holds, filled by `fill`.
    pub(super) fn fill<R>(
        &self,
        fill: impl FnOnce(&mut image::Labels<'_>) -> Result<R, gst::ErrorMessage>,
    ) -> Result<(gst::Buffer, R), gst::ErrorMessage> {
        let no_memory = || {
            gst::error_msg!(
                gst::ResourceError::NoSpaceLeft,
                ("No memory for the label map; use smaller frames or release label maps sooner")
            )
        };
        let mut buffer = self.pool.acquire_buffer(None).map_err(|_| no_memory())?;
        let writable = buffer.get_mut().ok_or_else(no_memory)?;
        let mut mapped = gst_video::VideoFrameRef::from_buffer_ref_writable(writable, &self.info)
            .map_err(|_| no_memory())?;
        let stride = mapped.plane_stride()[0] as usize / size_of::<u16>();
        let bytes = mapped.plane_data_mut(0).map_err(|_| no_memory())?;
        let plane = bytemuck::try_cast_slice_mut(bytes).map_err(refuse)?;
        let result = fill(&mut image::Labels::new(self.geometry, plane, stride).map_err(refuse)?)?;
        drop(mapped);
        Ok((buffer, result))
    }
}

impl Drop for LabelPool {
    fn drop(&mut self) {
        // Buffers that are still out come back later and are freed then; a failure here would change nothing.
        let _ = self.pool.set_active(false);
    }
}
