// SPDX-License-Identifier: MPL-2.0
//! Layout of an array on a device: its samples are read in place, or packed first.

use gstsuperpixel::cuda::SampleType;
use gstsuperpixel::image::{FrameInfo, PixelFormat};
use pyo3::prelude::*;

use crate::arrays::{geometry, shape_error};
use crate::engines::{Form, RawFrame};
use crate::foreign::Foreign;
use crate::layout::{Layout, Shape};
use crate::library::Dtype;
use crate::order::Order;

/// Types that images may have.
pub const DTYPES: &str = "uint8, uint16 or float32";

/// One image on a device, or a batch of them.
pub struct DeviceImages {
    pub info: FrameInfo,
    pub count: usize,
    /// True if the batch is an axis of its own.
    pub is_batch: bool,
    first: u64,
    /// Bytes from one image to the next.
    apart: i64,
    form: Form,
}

impl DeviceImages {
    /// Takes (H, W), (H, W, C) or (N, H, W, C), C 1, 3 or 4, in any layout.
    pub fn new(image: &Foreign<'_>, order: Order) -> PyResult<Self> {
        let samples = match image.dtype {
            Dtype::U8 => SampleType::U8,
            Dtype::U16 => SampleType::U16,
            Dtype::F32 => SampleType::F32,
            _ => return Err(image.dtype_error()),
        };
        let is_batch = image.shape.len() == 4;
        let (one, strides) = (&image.shape[usize::from(is_batch)..], &image.strides[usize::from(is_batch)..]);
        let (height, width, channels) = match *one {
            [height, width] => (height, width, 1),
            [height, width, channels @ (1 | 3 | 4)] => (height, width, channels),
            _ => return Err(shape_error(&image.shape)),
        };
        let geometry = geometry(height, width)?;
        let strides = [strides[0], strides[1], strides.get(2).copied().unwrap_or_default()];
        let shape = Shape {
            height,
            width,
            channels,
            rows_apart: strides[0] as isize,
            pixels_apart: strides[1] as isize,
            channels_apart: strides[2] as isize,
            sample: samples.bytes(),
        };
        let (count, apart) = if is_batch { (image.shape[0], image.strides[0]) } else { (1, 0) };
        let direct = direct(shape, samples, order, [image.address, apart.unsigned_abs()]);
        let (format, first, form) = direct.map_or_else(
            || (packed(samples, channels, order), image.address, Form::Strided(samples, strides)),
            |(format, before, stride)| (format, image.address.wrapping_sub(before), Form::Rows(stride)),
        );
        Ok(Self { info: FrameInfo::new(geometry, format), count, is_batch, first, apart, form })
    }

    /// Image `i`, without its mask.
    pub fn frame(&self, i: usize) -> RawFrame {
        let address = self.first.wrapping_add_signed(self.apart.wrapping_mul(i as i64));
        RawFrame { info: self.info, address, form: self.form, mask: None }
    }
}

/// Format, bytes before the first sample and bytes from row to row of pixels that are read where they are, if all of `wholes` are whole
/// pixels; nothing for others.
fn direct(
    shape: Shape,
    samples: SampleType,
    order: Order,
    wholes: [u64; 2],
) -> Option<(PixelFormat, u64, u32)> {
    // The memory around the array is unknown.
    let layout = Layout::new(shape, order, || None)?;
    let format = match samples {
        SampleType::U8 => layout.format_of_bytes(),
        SampleType::U16 => layout.format_of_words(),
        SampleType::F32 => return None,
    };
    let unit = if layout.samples == 4 { 4 * samples.bytes() } else { samples.bytes() } as u64;
    let before = layout.before as u64;
    let is_whole = wholes[0].wrapping_sub(before).is_multiple_of(unit)
        && wholes[1].is_multiple_of(unit)
        && (layout.stride as u64).is_multiple_of(unit);
    Some((format, before, u32::try_from(layout.stride).ok()?)).filter(|_| is_whole)
}

/// The format that others become: a fourth channel is left out.
fn packed(samples: SampleType, channels: usize, order: Order) -> PixelFormat {
    match (samples, channels, order) {
        (SampleType::U8, 1, _) => PixelFormat::Gray8,
        (SampleType::U8, _, Order::Rgb) => PixelFormat::Rgb,
        (SampleType::U8, _, Order::Bgr) => PixelFormat::Bgr,
        (_, 1, _) => PixelFormat::Gray16Le,
        (_, _, Order::Rgb) => PixelFormat::Rgb48Le,
        (_, _, Order::Bgr) => PixelFormat::Bgr48Le,
    }
}
