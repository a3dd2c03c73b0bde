// SPDX-License-Identifier: MPL-2.0
//! Layout of an image in memory, from shape, strides and what is around it, and the matching format of the library.

use std::ops::Range;

use gstsuperpixel::image::PixelFormat;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::order::Order;

/// Shape and strides of an image; strides and `sample` in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub height: usize,
    pub width: usize,
    /// 1, 3 or 4.
    pub channels: usize,
    pub rows_apart: isize,
    pub pixels_apart: isize,
    /// Of one channel anything.
    pub channels_apart: isize,
    pub sample: usize,
}

/// How pixels lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Bytes from the array's first element down to the first byte that is read.
    pub before: usize,
    /// Bytes from one row to the next.
    pub stride: usize,
    /// Samples of a pixel in memory, and the first of the one or three that count.
    pub samples: usize,
    pub first: usize,
    /// True if red comes before blue.
    pub is_red_first: bool,
    /// Bytes from the first one that is read to the last.
    pub len: usize,
}

impl Layout {
    /// Finds the layout. `around`: how many bytes before the array's first element and from there on belong to its memory; they say
    /// whether a sample that is skipped stands before or behind the others.
    ///
    /// `None` for pixels of a row that are not together, and for rows that overlap or go up.
    pub fn new(shape: Shape, order: Order, around: impl FnOnce() -> Option<[usize; 2]>) -> Option<Self> {
        let Shape { height, width, channels, sample, .. } = shape;
        let item = sample as isize;
        let is_backward = channels > 1 && shape.channels_apart == -item;
        if channels > 1 && !is_backward && shape.channels_apart != item {
            return None;
        }
        // The stride of an axis of length 1 has no meaning.
        let is_padded = channels == 3 && width > 1 && shape.pixels_apart == 4 * item;
        let samples = if is_padded { 4 } else { channels };
        if width > 1 && shape.pixels_apart != (samples * sample) as isize {
            return None;
        }
        let row = width * samples * sample;
        if height > 1 && shape.rows_apart < row as isize {
            return None;
        }
        let stride = if height == 1 { row } else { shape.rows_apart as usize };
        let len = stride.checked_mul(height - 1)?.checked_add(row)?;
        let mut before = if is_backward { (channels - 1) * sample } else { 0 };
        // The fourth channel is alpha, whichever way the channels go.
        let mut first = usize::from(is_backward && channels == 4);
        if is_padded {
            let [below, above] = around()?;
            if len - before > above {
                before += sample;
                first = 1;
            }
            if before > below || len - before > above {
                return None;
            }
        }
        Some(Self { before, stride, samples, first, is_red_first: (order == Order::Rgb) != is_backward, len })
    }

    /// The bytes that are read, as distances from the array's first element.
    pub fn span(&self) -> Range<isize> {
        -(self.before as isize)..self.len as isize - self.before as isize
    }

    /// The format of samples of one byte.
    pub fn format_of_bytes(&self) -> PixelFormat {
        match (self.samples, self.first, self.is_red_first) {
            (1, ..) => PixelFormat::Gray8,
            (3, _, true) => PixelFormat::Rgb,
            (3, _, false) => PixelFormat::Bgr,
            (_, 0, true) => PixelFormat::Rgbx,
            (_, 0, false) => PixelFormat::Bgrx,
            (_, _, true) => PixelFormat::Xrgb,
            (_, _, false) => PixelFormat::Xbgr,
        }
    }

    /// The format of samples of two bytes.
    pub fn format_of_words(&self) -> PixelFormat {
        match (self.samples, self.first, self.is_red_first) {
            (1, ..) => PixelFormat::Gray16Le,
            (3, _, true) => PixelFormat::Rgb48Le,
            (3, _, false) => PixelFormat::Bgr48Le,
            (_, 0, true) => PixelFormat::Rgba64Le,
            (_, 0, false) => PixelFormat::Bgra64Le,
            (_, _, true) => PixelFormat::Argb64Le,
            (_, _, false) => PixelFormat::Abgr64Le,
        }
    }
}

/// The bytes below and from an array's first element on that belong to the memory that it is a view of, the same for every image
/// of a batch. `None` where nothing is known.
pub fn memory_around(
    array: &Bound<'_, PyUntypedArray>,
    data: *const u8,
    batch: Option<(usize, isize)>,
) -> Option<[usize; 2]> {
    let mut owner = array.clone();
    while let Ok(base) = own(&owner, "base")?.cast_into::<PyUntypedArray>() {
        owner = base;
    }
    if !owner.is_contiguous() {
        return None;
    }
    let interface = own(&owner, "__array_interface__")?.cast_into::<PyDict>().ok()?;
    let (start, _): (usize, bool) = interface.get_item("data").ok()??.extract().ok()?;
    let bytes: usize = own(&owner, "nbytes")?.extract().ok()?;
    let last = batch.map_or(0, |(count, apart)| apart * (count.max(1) as isize - 1));
    let at = |offset: isize| (data as usize).checked_add_signed(offset);
    let below = at(last.min(0))?.checked_sub(start)?;
    let above = start.checked_add(bytes)?.checked_sub(at(last.max(0))?)?;
    Some([below, above])
}

/// An attribute as numpy itself gives it: a subclass may say anything.
fn own<'py>(array: &Bound<'py, PyUntypedArray>, name: &str) -> Option<Bound<'py, PyAny>> {
    let class = array.py().get_type::<PyUntypedArray>();
    class.getattr(name).ok()?.call_method1("__get__", (array,)).ok()
}
