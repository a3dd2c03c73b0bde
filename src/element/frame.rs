// SPDX-License-Identifier: MPL-2.0
//! Converts GStreamer buffers to frames and label planes of the library.

use gst::glib;
use gst::prelude::*;

use crate::bad_buffers::Failure;
use crate::image::{self, FrameInfo, Geometry, MAX_SIDE, MOST_PLANES, PixelFormat, YuvMatrix};
use crate::video_map::{Reason, Shape, VideoMap, label_shape};

// Labels are written in place into GRAY16_LE planes, in native byte order.
#[cfg(target_endian = "big")]
compile_error!(
    "the GStreamer elements support little-endian machines only; build with --no-default-features"
);

/// GStreamer's names for formats in this machine's byte order.
const NATIVE: [(&str, PixelFormat); 1] = [("ARGB64", PixelFormat::Argb64Le)];

/// GStreamer's formats for one of the library; empty if this version of GStreamer does not know the name.
pub(super) fn video_formats(format: PixelFormat) -> impl Iterator<Item = gst_video::VideoFormat> {
    let native = NATIVE.into_iter().filter(move |(_, own)| *own == format).map(|(name, _)| name);
    std::iter::once(format.name()).chain(native).filter_map(|name| {
        let known = gst_video::VideoFormat::from_string(name);
        (known != gst_video::VideoFormat::Unknown).then_some(known)
    })
}

/// Caps of all formats that can be segmented in system memory.
pub(crate) fn system_caps() -> gst::Caps {
    caps_of(PixelFormat::ALL.into_iter().flat_map(video_formats))
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

/// Meaning of a stream's samples; `None` for formats that the caps do not offer.
pub(crate) fn frame_info(info: &gst_video::VideoInfo) -> Option<FrameInfo> {
    let geometry = Geometry::new(info.width(), info.height()).ok()?;
    let format = PixelFormat::ALL.into_iter().find(|f| video_formats(*f).any(|own| own == info.format()))?;
    if format.is_rgb() {
        return Some(FrameInfo::new(geometry, format));
    }
    let colorimetry = info.colorimetry();
    let matrix = match colorimetry.matrix() {
        gst_video::VideoColorMatrix::Bt709 => YuvMatrix::Bt709,
        gst_video::VideoColorMatrix::Bt2020 => YuvMatrix::Bt2020,
        gst_video::VideoColorMatrix::Fcc => YuvMatrix::Fcc,
        gst_video::VideoColorMatrix::Smpte240m => YuvMatrix::Smpte240m,
        // GStreamer replaces a missing matrix of YCbCr by its default; gray needs none.
        _ => YuvMatrix::Bt601,
    };
    // As GStreamer converts: all ranges except studio range are full, the unknown range too.
    let full_range = colorimetry.range() != gst_video::VideoColorRange::Range16_235;
    Some(FrameInfo { geometry, format, matrix, full_range })
}

/// The reason why buffers with single fields are refused.
pub(super) const SINGLE_FIELDS: &str = "Buffers hold single fields (interlace-mode=alternate); put deinterlace in front, which makes frames of them";

/// Returns true if buffers hold single fields.
pub(super) fn has_single_fields(caps: &gst::CapsRef) -> bool {
    caps.iter_with_features().any(|(_, features)| features.contains("format:Interlaced"))
}

/// The reason why frames are not successive pictures of one view, if there is one: neighbors in position or time would
/// be of different views.
pub(super) fn mixed_views(info: &gst_video::VideoInfo) -> Option<String> {
    use gst_video::VideoMultiviewMode as Mode;
    let mode = info.multiview_mode();
    let mixed = matches!(
        mode,
        Mode::FrameByFrame
            | Mode::MultiviewFrameByFrame
            | Mode::Separated
            | Mode::ColumnInterleaved
            | Mode::RowInterleaved
            | Mode::Checkerboard
            | Mode::SideBySideQuincunx
    );
    mixed.then(|| {
        format!(
            "Views of multiview-mode={} are mixed in place or time; put glupload ! glviewconvert ! gldownload with \
             output-mode-override=mono, side-by-side or top-bottom in front",
            glib::EnumValue::from_value(&mode.to_value()).map_or("", |(_, value)| value.nick())
        )
    })
}

/// The reason why a frame is not the whole picture, if there is one.
pub(crate) fn foreign_crop(buffer: &gst::BufferRef, info: &gst_video::VideoInfo) -> Option<Reason> {
    let crop = buffer.meta::<gst_video::VideoCropMeta>()?;
    let (x, y, width, height) = crop.rect();
    let whole = (x, y) == (0, 0) && width >= info.width() && height >= info.height();
    (!whole).then(|| {
        format!(
            "only {width}x{height} from {x}, {y} on of it are meant, by a GstVideoCropMeta that was not asked for; make its \
             producer crop"
        )
    })
}

/// Bytes of a row and number of rows, for each plane.
pub(crate) fn shapes(frame: FrameInfo) -> impl Iterator<Item = Shape> + Clone {
    let mut shapes = [(0, 0); MOST_PLANES];
    let count = frame.format.planes(frame.geometry).len();
    shapes.iter_mut().zip(frame.format.planes(frame.geometry)).for_each(|(to, shape)| *to = shape);
    shapes.into_iter().take(count)
}

/// A buffer mapped for reading.
pub(super) struct ReadMap<'a> {
    map: VideoMap<'a>,
    frame: FrameInfo,
}

impl<'a> ReadMap<'a> {
    /// Maps a frame.
    pub(super) fn new(
        buffer: &'a gst::BufferRef,
        info: &gst_video::VideoInfo,
        frame: FrameInfo,
    ) -> Result<Self, Reason> {
        Ok(Self { map: VideoMap::read(buffer, info, shapes(frame))?, frame })
    }

    /// The frame as the library reads it.
    pub(super) fn frame(&self) -> Result<image::Frame<'_>, Reason> {
        image::Frame::new(self.frame, &self.map.slices(), &self.map.strides()).map_err(|e| e.to_string())
    }
}

/// A buffer mapped for drawing.
pub(super) struct DrawMap<'a> {
    map: VideoMap<'a>,
    frame: FrameInfo,
}

impl<'a> DrawMap<'a> {
    /// Maps a frame.
    pub(super) fn new(
        buffer: &'a mut gst::BufferRef,
        info: &gst_video::VideoInfo,
        frame: FrameInfo,
    ) -> Result<Self, Reason> {
        Ok(Self { map: VideoMap::write(buffer, info, shapes(frame))?, frame })
    }

    /// The frame as the library draws on it.
    pub(super) fn frame_mut(&mut self) -> Result<image::FrameMut<'_>, Reason> {
        let strides = self.map.strides();
        image::FrameMut::new(self.frame, self.map.slices_mut(), &strides).map_err(|e| e.to_string())
    }
}

/// Zeroes the bytes between the rows of a plane, because fresh memory holds data of its last owner.
pub(crate) fn clear_padding(plane: &mut [u8], row: usize, stride: usize) {
    if stride > row {
        plane.chunks_mut(stride).filter_map(|line| line.get_mut(row..)).for_each(|padding| padding.fill(0));
    }
}

/// Makes label buffers of one size: GRAY16_LE with a video meta. Their memory is reused once readers release them.
pub(super) struct LabelPool {
    pool: gst_video::VideoBufferPool,
    info: gst_video::VideoInfo,
    geometry: Geometry,
}

impl LabelPool {
    /// Sets up the pool; the first frames allocate its memory.
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

    /// Returns a label buffer that nobody else holds, filled by `fill`. Bytes between rows are zero.
    pub(super) fn fill<R>(
        &self,
        fill: impl FnOnce(&mut image::Labels<'_>) -> Result<R, Failure>,
    ) -> Result<(gst::Buffer, R), Failure> {
        let no_memory = |reason: String| {
            gst::error_msg!(
                gst::ResourceError::NoSpaceLeft,
                ("No memory for the label map; use smaller frames or release label maps sooner"),
                ["{reason}"]
            )
        };
        let mut buffer = self.pool.acquire_buffer(None).map_err(|e| no_memory(e.to_string()))?;
        let writable = buffer.get_mut().ok_or_else(|| no_memory("a new buffer is shared".into()))?;
        let shape = label_shape(self.geometry);
        // An earlier holder of the buffer may have changed its video meta.
        let mut map = VideoMap::write(writable, &self.info, std::iter::once(shape)).map_err(&no_memory)?;
        let stride = map.strides()[0];
        let [bytes, ..] = map.slices_mut();
        clear_padding(bytes, shape.0, stride);
        let plane = bytemuck::try_cast_slice_mut(bytes).map_err(|e| no_memory(e.to_string()))?;
        let labels = image::Labels::new(self.geometry, plane, stride / size_of::<u16>());
        let result = fill(&mut labels.map_err(|e| no_memory(e.to_string()))?)?;
        drop(map);
        Ok((buffer, result))
    }
}

impl Drop for LabelPool {
    fn drop(&mut self) {
        // Buffers still in use are freed when they return; a failure here would change nothing.
        let _ = self.pool.set_active(false);
    }
}
