// SPDX-License-Identifier: MPL-2.0
//! Buffers and metadata that other elements might send, honest and not, from the fuzzer's bytes.

use std::sync::atomic::{AtomicUsize, Ordering};

use arbitrary::{Result, Unstructured};
use gst::meta::CustomMeta;
use gst::prelude::*;
use gstsuperpixel::meta;

use crate::draw::rarely;

/// Starts GStreamer with the plugin, once. Errors that elements log are not errors of theirs.
pub fn init() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        gst::init().expect("GStreamer");
        gstsuperpixel::plugin_register_static().expect("plugin");
    });
}

/// GStreamer's names of formats; the elements take all but the last [`OTHERS`].
pub const FORMATS: [&str; 47] = [
    "RGB",
    "BGRx",
    "NV12",
    "I420",
    "P010_10LE",
    "GRAY8",
    "RGBA",
    "BGRA",
    "RGBx",
    "ARGB",
    "ABGR",
    "xRGB",
    "xBGR",
    "BGR",
    "GRAY16_LE",
    "GRAY16_BE",
    "YUY2",
    "UYVY",
    "YVYU",
    "NV21",
    "YV12",
    "NV16",
    "NV61",
    "Y42B",
    "Y444",
    "AYUV",
    "A420",
    "GBR",
    "RGBP",
    "P012_LE",
    "P016_LE",
    "I420_10LE",
    "I420_12LE",
    "I422_10LE",
    "I422_12LE",
    "Y444_10LE",
    "Y444_12LE",
    "Y444_16LE",
    "RGB10A2_LE",
    "BGR10A2_LE",
    "ARGB64_LE",
    "RGBA64_LE",
    "BGRA64_LE",
    "v210",
    "VUYA",
    "NV24",
    "Y41B",
];
/// Formats at the end of the list that the elements do not take.
pub const OTHERS: usize = 4;

/// A number that somebody might put into a description: near what is right, zero, or absurd.
pub fn about(u: &mut Unstructured<'_>, right: i64) -> Result<i64> {
    Ok(match u.int_in_range(0..=9)? {
        0..=4 => right,
        5 => right.saturating_add(u.int_in_range(-3..=3)?),
        6 => u.int_in_range(0..=64)?,
        7 => *u.choose(&[0, -1, 1, i64::from(i32::MAX), i64::from(i32::MIN), 1 << 30, -right])?,
        8 => right.saturating_mul(u.int_in_range(-2..=4)?),
        _ => i64::from(u.arbitrary::<i32>()?),
    })
}

/// Bytes of a memory, which are counted: the sanitizer's own search for leaks is off, since GLib leaks on purpose.
struct Counted(Vec<u8>);

static LIVE: AtomicUsize = AtomicUsize::new(0);

/// The number of memories that somebody holds.
pub fn live() -> usize {
    LIVE.load(Ordering::SeqCst)
}

impl Counted {
    fn new(bytes: Vec<u8>) -> Self {
        LIVE.fetch_add(1, Ordering::SeqCst);
        Self(bytes)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl AsMut<[u8]> for Counted {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// Bytes that no allocator rounds up, so that the sanitizer sees what goes beyond.
fn memory(u: &mut Unstructured<'_>, length: usize) -> Result<gst::Memory> {
    let value: u8 = u.arbitrary()?;
    let mut bytes = vec![value; length];
    let texture: [u8; 4] = u.arbitrary()?;
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = byte.wrapping_add(texture[i % 4].wrapping_mul((i / 97) as u8));
    }
    let read_only = rarely(u, 5)?;
    let bytes = Counted::new(bytes);
    Ok(if read_only { gst::Memory::from_slice(bytes) } else { gst::Memory::from_mut_slice(bytes) })
}

/// About so many bytes in one memory or several, with offsets.
pub fn bytes(u: &mut Unstructured<'_>, length: usize) -> Result<gst::Buffer> {
    let length = about(u, length as i64)?.clamp(0, 1 << 17) as usize;
    let mut buffer = gst::Buffer::new();
    let writable = buffer.get_mut().expect("a new buffer");
    let pieces = if rarely(u, 4)? { u.int_in_range(0..=4)? } else { 1 };
    for piece in 0..pieces {
        let share = if piece + 1 == pieces { length - length / pieces * piece } else { length / pieces };
        let mut memory = memory(u, share)?;
        if rarely(u, 6)? && share > 0 {
            // The bytes before and behind the share stay in the memory.
            let start = u.int_in_range(0..=share - 1)?;
            let rest = u.int_in_range(0..=share - start)?;
            memory = memory.share(start..start + rest);
        }
        writable.append_memory(memory);
    }
    Ok(buffer)
}

/// Adds a video meta about frames of `info`, which may lie. The memory is GStreamer's own layout of the meta.
pub fn add_video_meta(
    u: &mut Unstructured<'_>,
    buffer: &mut gst::BufferRef,
    info: &gst_video::VideoInfo,
) -> Result<()> {
    let honest = u.arbitrary()?;
    let format = if honest || !rarely(u, 3)? {
        info.format()
    } else {
        u.choose(&FORMATS)?.parse().unwrap_or(gst_video::VideoFormat::Unknown)
    };
    let (mut width, mut height) = (info.width(), info.height());
    let mut planes = info.n_planes();
    if !honest && rarely(u, 3)? {
        width = about(u, width.into())? as u32;
        height = about(u, height.into())? as u32;
    }
    if !honest && rarely(u, 3)? {
        planes = u.int_in_range(0..=4)?;
    }
    let (mut offsets, mut strides) = ([0usize; 4], [0i32; 4]);
    let padding = u.int_in_range(0..=9)?;
    for plane in 0..4 {
        if let (Some(offset), Some(stride)) = (info.offset().get(plane), info.stride().get(plane)) {
            (offsets[plane], strides[plane]) =
                (*offset, *stride + padding * i32::from(honest && rarely(u, 3)?));
        }
        if !honest && u.arbitrary()? {
            offsets[plane] = about(u, offsets[plane] as i64)? as usize;
            strides[plane] = about(u, strides[plane].into())? as i32;
        }
    }
    // SAFETY: the buffer is writable, the arrays have the four elements that are copied. The fields are written as any element
    // might, while nobody else has the buffer.
    unsafe {
        let meta = gst_video::ffi::gst_buffer_add_video_meta_full(
            buffer.as_mut_ptr(),
            gst_video::ffi::GST_VIDEO_FRAME_FLAG_NONE,
            gst::glib::translate::IntoGlib::into_glib(format),
            width.clamp(1, 1 << 20),
            height.clamp(1, 1 << 20),
            planes,
            &offsets,
            &strides,
        );
        if !meta.is_null() {
            // GStreamer's own function would refuse such values.
            (*meta).width = width;
            (*meta).height = height;
        }
    }
    Ok(())
}

/// A label buffer for a map of some size, with or without a video meta.
fn labels(u: &mut Unstructured<'_>, width: u32, height: u32) -> Result<gst::Buffer> {
    let format = gst_video::VideoFormat::Gray16Le;
    let info = gst_video::VideoInfo::builder(format, width.clamp(1, 512), height.clamp(1, 512)).build();
    let info = info.expect("a small frame");
    let mut buffer = bytes(u, info.size())?;
    let metas = *u.choose(&[0, 1, 1, 1, 2])?;
    for _ in 0..metas {
        add_video_meta(u, buffer.get_mut().expect("a new buffer"), &info)?;
    }
    if u.arbitrary()? {
        // Few labels, so that tables can hold them.
        if let Some(Ok(mut map)) = buffer.get_mut().map(|buffer| buffer.map_writable()) {
            let most = u.int_in_range(1..=9)?;
            for (i, label) in map.chunks_exact_mut(2).enumerate() {
                label.copy_from_slice(&((i / 5 % most) as u16).to_le_bytes());
            }
        }
    }
    Ok(buffer)
}

/// Any value that a field might have.
fn value(u: &mut Unstructured<'_>) -> Result<gst::glib::SendValue> {
    Ok(match u.int_in_range(0..=9)? {
        0 => u.arbitrary::<u32>()?.to_send_value(),
        1 => u.arbitrary::<i32>()?.to_send_value(),
        2 => u.arbitrary::<u64>()?.to_send_value(),
        3 => u.arbitrary::<f64>()?.to_send_value(),
        4 => u.arbitrary::<bool>()?.to_send_value(),
        5 => "slic".to_send_value(),
        6 => None::<String>.to_send_value(),
        7 => None::<gst::Buffer>.to_send_value(),
        8 => bytes(u, 64)?.to_send_value(),
        _ => gst::Fraction::new(u.int_in_range(0..=9)?, u.int_in_range(1..=9)?).to_send_value(),
    })
}

/// Attaches the metadata of the element, or what claims to be it, for a frame of some size.
pub fn add_superpixel_meta(
    u: &mut Unstructured<'_>,
    buffer: &mut gst::BufferRef,
    width: u32,
    height: u32,
) -> Result<()> {
    meta::register();
    let width = about(u, width.into())? as u32;
    let height = about(u, height.into())? as u32;
    let regions = match u.int_in_range(0..=2)? {
        0 => u.int_in_range(0..=9)?,
        1 => about(u, 9)? as u32,
        _ => u.arbitrary()?,
    };
    let labels = labels(u, width, height)?;
    let Ok(mut custom) = CustomMeta::add(buffer, meta::NAME) else { return Ok(()) };
    let fields = custom.mut_structure();
    let version = if rarely(u, 12)? { u.arbitrary()? } else { meta::VERSION };
    fields.set("version", version);
    fields.set("labels", labels);
    fields.set("regions", regions);
    fields.set("algo", "fuzz");
    fields.set("width", width);
    fields.set("height", height);
    for (name, record) in [("table", 40), ("motion", 12), ("neighbors", 12)] {
        if u.arbitrary()? {
            let right = record * regions.min(1000) as usize;
            fields.set(name, bytes(u, right)?);
        }
    }
    for _ in 0..u.int_in_range(0..=5u32)?.saturating_sub(3) {
        let names =
            ["version", "labels", "regions", "algo", "width", "height", "table", "motion", "neighbors", "x"];
        let name = *u.choose(&names)?;
        if u.arbitrary()? {
            fields.set_value(name, value(u)?);
        } else {
            fields.remove_field(name);
        }
    }
    Ok(())
}

/// Returns true if two structures have equal fields; buffers are compared by address, as copies of the metadata share
/// them.
pub fn same_fields(a: &gst::StructureRef, b: &gst::StructureRef) -> bool {
    let text = |structure: &gst::StructureRef| {
        let field = |(name, value): (&gst::glib::GStr, &gst::glib::SendValue)| match value
            .get::<Option<gst::Buffer>>()
        {
            Ok(buffer) => format!("{name} {:?}", buffer.map(|buffer| buffer.as_ptr() as usize)),
            Err(_) => format!("{name} {value:?}"),
        };
        structure.iter().map(field).collect::<std::collections::BTreeSet<_>>()
    };
    text(a) == text(b)
}
