// SPDX-License-Identifier: MPL-2.0
//! Arrays of numbers that are no codes, or lie in memory as codes may not: they become codes of 16 bits.
//!
//! code = floor(65535 (value - low) / (high - low) + 1/2), in doubles.

use std::ops::Range;

use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::{Frame, FrameInfo, PixelFormat};
use numpy::ndarray::{ArrayView1, ArrayView3, ArrayViewD, Axis, Ix3, s};
use numpy::{PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArray};
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::data_range::DataRange;
use crate::error::Failure;
use crate::order::Order;

/// Fewer are not worth another thread.
const ROWS_AT_ONCE: usize = 16;
/// The last bit of doubles from here on counts units.
const TO_UNITS: f64 = (1u64 << 52) as f64;
const WHITE: f64 = 65_535.0;

/// A number of an array.
trait Number: Copy + Send + Sync {
    /// The nearest double.
    fn value(self) -> f64;
}

/// Types of numbers, in the three forms that they take: an array that is borrowed, the view of one image, and what works on either.
macro_rules! numbers {
    ($($name:ident: $type:ty),*) => {
        $(impl Number for $type {
            #[inline(always)]
            fn value(self) -> f64 {
                self as f64
            }
        })*

        /// An array of numbers that is borrowed for reading.
        pub enum Numbers<'py> {
            $($name(PyReadonlyArrayDyn<'py, $type>)),*
        }

        impl<'py> Numbers<'py> {
            /// Borrows an array in the machine's byte order; `None` for one of another dtype.
            pub fn new(array: &Bound<'py, PyUntypedArray>, busy: impl Fn() -> PyErr) -> PyResult<Option<Self>> {
                $(if let Ok(array) = array.cast::<PyArrayDyn<$type>>() {
                    return Ok(Some(Self::$name(array.try_readonly().map_err(|_| busy())?)));
                })*
                Ok(None)
            }

            /// The first element.
            pub fn data(&self) -> *const u8 {
                match self {
                    $(Self::$name(array) => array.data().cast_const().cast()),*
                }
            }

            /// One image of a batch, or the one that there is, without alpha.
            pub fn image(&self, batch_index: Option<usize>) -> View<'_> {
                match self {
                    $(Self::$name(array) => View::$name(without_alpha(image_of(array.as_array(), batch_index)))),*
                }
            }

            /// The same with all bands.
            pub fn bands(&self, batch_index: Option<usize>) -> View<'_> {
                match self {
                    $(Self::$name(array) => View::$name(image_of(array.as_array(), batch_index))),*
                }
            }
        }

        /// One image: rows, columns, channels.
        pub enum View<'a> {
            $($name(ArrayView3<'a, $type>)),*
        }

        impl View<'_> {
            /// Number of channels.
            pub fn bands(&self) -> usize {
                match self {
                    $(Self::$name(view) => view.len_of(Axis(2))),*
                }
            }

            /// Calls `take` with the values of a row's pixels in one band, each with its place in `columns`, from 0.
            #[inline(always)]
            pub fn values(&self, y: usize, columns: Range<usize>, band: usize, mut take: impl FnMut(usize, f64)) {
                match self {
                    $(Self::$name(view) => {
                        let all = view.slice(s![y, columns, band]);
                        all.iter().enumerate().for_each(|(i, number)| take(i, number.value()));
                    }),*
                }
            }

            fn convert(&self, cpu: &Cpu, scale: Scale, mask: Option<&[u8]>, row: usize, codes: &mut [u16]) -> bool {
                match self {
                    $(Self::$name(view) => convert(view, cpu, scale, mask, row, codes)),*
                }
            }

            /// The least and the highest finite value inside of the mask.
            fn range(&self, mask: Option<&[u8]>) -> Option<(f64, f64)> {
                match self {
                    $(Self::$name(view) => range(view, mask)),*
                }
            }

            /// Column, row and value of the first that the scale refuses, and the range of all.
            fn first_bad(&self, scale: Scale, mask: Option<&[u8]>) -> Option<(usize, usize, f64)> {
                match self {
                    $(Self::$name(view) => samples(view, mask).find(|&(_, _, value)| !scale.takes(value))),*
                }
            }
        }
    };
}
numbers!(U8: u8, I8: i8, U16: u16, I16: i16, U32: u32, I32: i32, U64: u64, I64: i64, F32: f32, F64: f64);

/// Rows, columns and channels of an image.
fn image_of<T>(all: ArrayViewD<'_, T>, batch_index: Option<usize>) -> ArrayView3<'_, T> {
    let one = match batch_index {
        Some(i) => all.index_axis_move(Axis(0), i),
        None => all,
    };
    let one = if one.ndim() == 2 { one.insert_axis(Axis(2)) } else { one };
    one.into_dimensionality::<Ix3>().unwrap_or_else(|_| unreachable!("an image has two or three axes"))
}

fn without_alpha<T>(image: ArrayView3<'_, T>) -> ArrayView3<'_, T> {
    let channels = image.len_of(Axis(2)).min(3);
    image.split_at(Axis(2), channels).0
}

/// From values to codes.
#[derive(Debug, Clone, Copy)]
enum Scale {
    /// From [0, 1]; other values are refused.
    Unit,
    /// From this value on, over this difference; what is outside is cut off, and what is no number is refused.
    From(f64, f64),
}

impl Scale {
    /// NaN is taken by none.
    #[inline(always)]
    fn takes(self, value: f64) -> bool {
        match self {
            Self::Unit => (0.0..=1.0).contains(&value),
            Self::From(..) => !value.is_nan(),
        }
    }

    #[inline(always)]
    fn code(self, value: f64) -> u16 {
        match self {
            // Of float32 it is exact: the product has 40 bits. The sum has no room for a fraction, which it rounds off; the one that
            // lies halfway between two codes is 0.5, and of those the even one, to which sums round, is the upper.
            Self::Unit => (WHITE * value + TO_UNITS).to_bits() as u16,
            Self::From(low, span) => {
                let above = (value - low).max(0.0).min(span);
                (WHITE * above / span + 0.5) as u16
            }
        }
    }
}

/// An image whose values become codes.
pub struct Values<'a> {
    info: FrameInfo,
    view: View<'a>,
    range: DataRange,
}

impl<'a> Values<'a> {
    /// `info` has the format of [`Self::format`].
    pub fn new(info: FrameInfo, view: View<'a>, range: DataRange) -> Self {
        Self { info, view, range }
    }

    /// The format that an image of so many channels becomes.
    pub fn format(channels: usize, order: Order) -> PixelFormat {
        match (channels, order) {
            (1, _) => PixelFormat::Gray16Le,
            (_, Order::Rgb) => PixelFormat::Rgb48Le,
            (_, Order::Bgr) => PixelFormat::Bgr48Le,
        }
    }

    /// Converts the image into `codes`, whatever was there, on the threads of `cpu`. What is outside of the mask becomes 0, whatever
    /// it was. `mask` has one byte a pixel.
    ///
    /// # Errors
    ///
    /// A value that is no number, or of floats without a range one outside of [0, 1]; no memory.
    pub fn convert<'c>(
        &self,
        cpu: &Cpu,
        mask: Option<&[u8]>,
        codes: &'c mut Vec<u16>,
    ) -> Result<Frame<'c>, Failure> {
        let (width, height) = (self.info.geometry.width() as usize, self.info.geometry.height() as usize);
        let row = width * if self.info.format == PixelFormat::Gray16Le { 1 } else { 3 };
        codes
            .try_reserve_exact((row * height).saturating_sub(codes.len()))
            .map_err(|_| Error::Memory { what: "codes of an image", bytes: 2 * row * height })?;
        codes.resize(row * height, 0);
        let scale = self.scale(mask);
        if !self.view.convert(cpu, scale, mask, row, codes) {
            return Err(Failure::Value(self.complaint(scale, mask)));
        }
        Ok(Frame::new(self.info, &[bytemuck::cast_slice(codes)], &[2 * row])?)
    }

    fn scale(&self, mask: Option<&[u8]>) -> Scale {
        match self.range {
            DataRange::Given(low, high) => Scale::From(low, high - low),
            DataRange::OfImage => {
                // One value alone is black, and so is nothing.
                let (low, high) = self.view.range(mask).unwrap_or_default();
                Scale::From(low, if high > low { high - low } else { 1.0 })
            }
            DataRange::OfType | DataRange::Stretched => Scale::Unit,
        }
    }

    /// Describes the first bad value, and how to avoid it.
    fn complaint(&self, scale: Scale, mask: Option<&[u8]>) -> String {
        let Some((x, y, value)) = self.view.first_bad(scale, mask) else {
            return "a value of image is out of range".into();
        };
        let advice = match self.view.range(mask) {
            _ if !value.is_finite() => {
                "a mask leaves such pixels out, and np.nan_to_num(image, nan=0, posinf=1, neginf=0) replaces them"
                    .into()
            }
            Some((low, high)) if low < 0.0 || high > 65_535.0 => {
                format!("say what black and white are, for all of it data_range=({low}, {high})")
            }
            Some((_, high)) => {
                let white = if high <= 255.0 { 255 } else { 65535 };
                format!("say what black and white are, maybe data_range=(0, {white})")
            }
            None => String::new(),
        };
        match scale {
            Scale::Unit => format!(
                "a float image must have values in [0, 1], or come with data_range, got {value} at x = {x}, y = {y}; {advice}"
            ),
            Scale::From(..) => {
                format!("values of image must be numbers, got {value} at x = {x}, y = {y}; {advice}")
            }
        }
    }
}

/// Converts an image row by row, and says whether all values were good.
fn convert<T: Number>(
    view: &ArrayView3<'_, T>,
    cpu: &Cpu,
    scale: Scale,
    mask: Option<&[u8]>,
    row: usize,
    codes: &mut [u16],
) -> bool {
    let width = view.len_of(Axis(1));
    let rows = codes.par_chunks_exact_mut(row).enumerate().with_min_len(ROWS_AT_ONCE);
    let convert_row = |(y, codes): (usize, &mut [u16])| {
        let values = view.index_axis(Axis(0), y);
        let mask = mask.map(|mask| &mask[y * width..][..width]);
        if let (Some(values), None) = (values.as_slice(), mask) {
            return convert_all(codes.iter_mut().zip(values), scale);
        }
        let channels = values.len_of(Axis(1));
        (0..channels).fold(true, |all, channel| {
            let column: ArrayView1<'_, T> = values.index_axis(Axis(1), channel);
            let places = codes.iter_mut().skip(channel).step_by(channels).zip(column);
            all & match mask {
                None => convert_all(places, scale),
                Some(mask) => convert_inside(places.zip(mask), scale),
            }
        })
    };
    cpu.run(|| rows.map(convert_row).reduce(|| true, |a, b| a & b))
}

#[inline(always)]
fn convert_all<'a, T: Number + 'a>(places: impl Iterator<Item = (&'a mut u16, &'a T)>, scale: Scale) -> bool {
    let mut all = true;
    for (code, number) in places {
        let value = number.value();
        all &= scale.takes(value);
        *code = scale.code(value);
    }
    all
}

fn convert_inside<'a, T: Number + 'a>(
    places: impl Iterator<Item = ((&'a mut u16, &'a T), &'a u8)>,
    scale: Scale,
) -> bool {
    let mut all = true;
    for ((code, number), &inside) in places {
        let value = if inside == 0 { 0.0 } else { number.value() };
        all &= scale.takes(value);
        *code = if inside == 0 { 0 } else { scale.code(value) };
    }
    all
}

/// Column, row and value of what is inside of the mask, in raster order.
fn samples<'a, T: Number>(
    view: &'a ArrayView3<'_, T>,
    mask: Option<&'a [u8]>,
) -> impl Iterator<Item = (usize, usize, f64)> + 'a {
    let width = view.len_of(Axis(1));
    let inside = move |x: usize, y: usize| mask.is_none_or(|mask| mask[y * width + x] != 0);
    let all = view.indexed_iter().filter(move |&((y, x, _), _)| inside(x, y));
    all.map(|((y, x, _), number)| (x, y, number.value()))
}

fn range<T: Number>(view: &ArrayView3<'_, T>, mask: Option<&[u8]>) -> Option<(f64, f64)> {
    let finite = samples(view, mask).map(|(_, _, value)| value).filter(|value| value.is_finite());
    finite.fold(None, |range, value| {
        let (low, high) = range.unwrap_or((value, value));
        Some((value.min(low), value.max(high)))
    })
}
