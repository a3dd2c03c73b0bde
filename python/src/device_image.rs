// SPDX-License-Identifier: MPL-2.0
//! Layout of an array on a device: its samples are read in place, or packed first.

use gstsuperpixel::cuda::{SampleType, ValueScale};
use gstsuperpixel::image::{FrameInfo, PixelFormat};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{geometry, shape_error};
use crate::data_range::DataRange;
use crate::foreign::Foreign;
use crate::layout::{Layout, Shape};
use crate::library::Dtype;
use crate::order::Order;
use crate::raw_frame::{Form, RawFrame};
use crate::reading::{Axes, Reading};

/// Types that images may have.
pub const DTYPES: &str = "uint8, uint16 or float32, or with data_range=(low, high) int16, int32 or int64";

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
    pub fn new(image: &Foreign<'_>, reading: &Reading) -> PyResult<Self> {
        let order = reading.order;
        let axes = Axes { shape: image.shape.clone(), strides: image.strides.clone(), offset: 0 };
        let Axes { shape, strides: all, offset } = reading.arrange_axes(axes)?;
        let address = image.address.wrapping_add_signed(offset);
        let is_batch = shape.len() == 4;
        let (one, strides) = (&shape[usize::from(is_batch)..], &all[usize::from(is_batch)..]);
        let (height, width, channels) = match *one {
            [height, width] => (height, width, 1),
            [height, width, channels @ (1 | 3 | 4)] => (height, width, channels),
            _ => return Err(shape_error(&shape)),
        };
        let (samples, scale) = samples(image, reading.range)?;
        if reading.range == DataRange::Stretched && (samples != SampleType::U16 || channels != 1) {
            return Err(PyValueError::new_err("data_range='stretch' is for gray images of uint16"));
        }
        let geometry = geometry(height, width)?;
        let strides = [strides[0], strides[1], strides.get(2).copied().unwrap_or_default()];
        let array = Shape {
            height,
            width,
            channels,
            rows_apart: strides[0] as isize,
            pixels_apart: strides[1] as isize,
            channels_apart: strides[2] as isize,
            sample: samples.bytes(),
        };
        let (count, apart) = if is_batch { (shape[0], all[0]) } else { (1, 0) };
        let direct = match scale {
            ValueScale::Codes => direct(array, samples, order, [address, apart.unsigned_abs()]),
            _ => None,
        };
        let (format, first, form) = direct.map_or_else(
            || (packed(samples, scale, channels, order), address, Form::Strided(samples, strides, scale)),
            |(format, before, stride)| (format, address.wrapping_sub(before), Form::Rows(stride)),
        );
        Ok(Self { info: FrameInfo::new(geometry, format), count, is_batch, first, apart, form })
    }

    /// Image `i`, without its mask and prior.
    pub fn frame(&self, i: usize) -> RawFrame {
        let address = self.first.wrapping_add_signed(self.apart.wrapping_mul(i as i64));
        RawFrame { info: self.info, address, form: self.form, mask: None, prior: None }
    }
}

/// Type of the samples, and what their values mean.
fn samples(image: &Foreign<'_>, range: DataRange) -> PyResult<(SampleType, ValueScale)> {
    let samples = match image.dtype {
        Dtype::U8 => SampleType::U8,
        Dtype::U16 => SampleType::U16,
        Dtype::I16 => SampleType::I16,
        Dtype::I32 => SampleType::I32,
        Dtype::I64 => SampleType::I64,
        Dtype::F32 => SampleType::F32,
        Dtype::Bool => return Err(image.dtype_error()),
    };
    let white = match samples {
        SampleType::U8 => Some(255.0),
        SampleType::U16 => Some(65_535.0),
        _ => None,
    };
    let scale = match range {
        _ if white.is_some_and(|white| range.keeps_codes(white)) => ValueScale::Codes,
        DataRange::OfType if samples == SampleType::F32 => ValueScale::Unit,
        DataRange::OfType | DataRange::Stretched => return Err(image.dtype_error()),
        DataRange::Given(low, high) => ValueScale::From { low, span: high - low },
        DataRange::OfImage => {
            return Err(PyValueError::new_err(
                "data_range='image' is for images in the host's memory; give two numbers, for all of it \
                 (float(image.min()), float(image.max()))",
            ));
        }
    };
    Ok((samples, scale))
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
        _ => return None,
    };
    let unit = if layout.samples == 4 { 4 * samples.bytes() } else { samples.bytes() } as u64;
    let before = layout.before as u64;
    let is_whole = wholes[0].wrapping_sub(before).is_multiple_of(unit)
        && wholes[1].is_multiple_of(unit)
        && (layout.stride as u64).is_multiple_of(unit);
    Some((format, before, u32::try_from(layout.stride).ok()?)).filter(|_| is_whole)
}

/// The format that others become: a fourth channel is left out.
fn packed(samples: SampleType, scale: ValueScale, channels: usize, order: Order) -> PixelFormat {
    match (samples == SampleType::U8 && scale == ValueScale::Codes, channels, order) {
        (true, 1, _) => PixelFormat::Gray8,
        (true, _, Order::Rgb) => PixelFormat::Rgb,
        (true, _, Order::Bgr) => PixelFormat::Bgr,
        (_, 1, _) => PixelFormat::Gray16Le,
        (_, _, Order::Rgb) => PixelFormat::Rgb48Le,
        (_, _, Order::Bgr) => PixelFormat::Bgr48Le,
    }
}
