// SPDX-License-Identifier: MPL-2.0
//! The mask of a segmentation: the label map, or one in 8 bits that is made from it on the first map.

use std::sync::{Arc, OnceLock};

use gst::glib;

use crate::image::Geometry;
use crate::lazy_memory::{self, LazyBytes};
use crate::video_map::{Reason, VideoMap, label_shape};

/// Most regions that a mask of 8 bits holds, since 0 means none.
const MOST_IN_8_BITS: u32 = u8::MAX as u32;

/// A label map in 8 bits: with each label plus one, or with the value of each label.
struct Mask {
    labels: gst::Buffer,
    geometry: Geometry,
    values: Option<Box<[u8]>>,
    bytes: OnceLock<Result<Box<[u8]>, Reason>>,
}

// SAFETY: the bytes are made once, as many as `len` says, and stay in their box; nobody may write to them.
unsafe impl LazyBytes for Mask {
    fn len(&self) -> usize {
        self.geometry.pixels()
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn address(&self) -> Result<*mut u8, String> {
        match self.bytes.get_or_init(|| narrow(&self.labels, self.geometry, self.values.as_deref())) {
            Ok(bytes) => Ok(bytes.as_ptr().cast_mut()),
            Err(reason) => Err(format!("cannot make the mask: {reason}")),
        }
    }
}

/// Converts labels to their values. Without a list of these labels are below 255, and become bytes, each plus one.
fn narrow(labels: &gst::BufferRef, geometry: Geometry, values: Option<&[u8]>) -> Result<Box<[u8]>, Reason> {
    let info =
        gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray16Le, geometry.width, geometry.height);
    let info = info.build().map_err(|e| e.to_string())?;
    let map = VideoMap::read(labels, &info, std::iter::once(label_shape(geometry)))?;
    let (row, stride) = (label_shape(geometry).0, map.strides()[0]);
    let rows = map.slices()[0].chunks(stride).take(geometry.height as usize);
    let pixels = rows.flat_map(|bytes| bytes[..row].chunks_exact(2));
    Ok(match values {
        // The upper byte is 0; with `NO_LABEL` it is 255, and the lower one wraps to 0, no region.
        None => pixels.map(|label| label[0].wrapping_add(1)).collect(),
        Some(values) => {
            let value = |label: u16| values.get(usize::from(label)).copied().unwrap_or(0);
            pixels.map(|label| value(u16::from_le_bytes([label[0], label[1]]))).collect()
        }
    })
}

/// Makes the mask of a label buffer with `regions` regions. Also returns the value that label 0 has in it.
pub(super) fn of(
    labels: &gst::Buffer,
    geometry: Geometry,
    regions: u32,
) -> Result<(gst::Buffer, u32), glib::BoolError> {
    if regions > MOST_IN_8_BITS {
        return Ok((labels.clone(), 0));
    }
    Ok((in_8_bits(labels, geometry, None)?, 1))
}

/// Makes a mask with the value of each label, which is made when somebody maps it.
pub(super) fn of_values(
    labels: &gst::Buffer,
    geometry: Geometry,
    values: &[u8],
) -> Result<gst::Buffer, glib::BoolError> {
    in_8_bits(labels, geometry, Some(values.into()))
}

fn in_8_bits(
    labels: &gst::Buffer,
    geometry: Geometry,
    values: Option<Box<[u8]>>,
) -> Result<gst::Buffer, glib::BoolError> {
    let source: Arc<dyn LazyBytes> =
        Arc::new(Mask { labels: labels.clone(), geometry, values, bytes: OnceLock::new() });
    let mut mask = lazy_memory::buffer(&source);
    let (Geometry { width, height }, flags) = (geometry, gst_video::VideoFrameFlags::empty());
    let writable = mask.get_mut().ok_or_else(|| glib::bool_error!("a new buffer is shared"))?;
    let stride = [width as i32];
    gst_video::VideoMeta::add_full(
        writable,
        flags,
        gst_video::VideoFormat::Gray8,
        width,
        height,
        &[0],
        &stride,
    )?;
    Ok(mask)
}
