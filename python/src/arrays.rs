// SPDX-License-Identifier: MPL-2.0
//! Arrays of numpy as frames and label planes, without copies.

use std::ops::Range;

use gstsuperpixel::image::{Frame, FrameInfo, Geometry, Labels, PixelFormat};
use numpy::{
    Element, PyArray2, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn,
    PyReadwriteArrayDyn, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::error::exception;

/// Order of an image's channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Red first.
    Rgb,
    /// Blue first, as OpenCV has it.
    Bgr,
}

impl Order {
    /// By its name.
    pub fn new(name: &str) -> PyResult<Self> {
        match name {
            "rgb" => Ok(Self::Rgb),
            "bgr" => Ok(Self::Bgr),
            _ => Err(PyValueError::new_err(format!("order must be one of 'rgb', 'bgr', got '{name}'"))),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rgb => "rgb",
            Self::Bgr => "bgr",
        }
    }
}

/// An image that the caller keeps.
pub struct Image<'py> {
    array: PyReadonlyArrayDyn<'py, u8>,
    info: FrameInfo,
    stride: usize,
    len: usize,
}

const DTYPE: &str = "image must be an array of uint8";

impl<'py> Image<'py> {
    /// Takes (H, W), (H, W, 1), (H, W, 3) or (H, W, 4) of uint8, rows at any distance, pixels together.
    pub fn new(image: &Bound<'py, PyAny>, order: Order) -> PyResult<Self> {
        let Ok(untyped) = image.cast::<PyUntypedArray>() else {
            let name = image.get_type().name()?;
            return Err(PyTypeError::new_err(format!("{DTYPE}, got {name}; np.asarray(image) may make one")));
        };
        let Ok(array) = untyped.cast::<PyArrayDyn<u8>>() else {
            let dtype = untyped.dtype();
            let advice = match dtype.kind() {
                b'f' => "; if values are in [0, 1]: (255 * image).round().astype(np.uint8)",
                b'u' if dtype.itemsize() == 2 => "; for 16 bits that are used: (image >> 8).astype(np.uint8)",
                b'b' => "; for black and white: 255 * image.astype(np.uint8)",
                _ => "; convert it with image.astype(np.uint8) once values are in 0 to 255",
            };
            return Err(PyTypeError::new_err(format!("{DTYPE}, got {dtype}{advice}")));
        };
        let info = frame_info(array.shape(), order)?;
        let (width, height) = (info.geometry.width() as usize, info.geometry.height() as usize);
        let channels = array.shape().get(2).copied().unwrap_or(1);
        let strides = array.strides();
        let row = width * channels;
        // What there is one of has no distance to the next.
        let together = (width == 1 || strides[1] == channels as isize)
            && (channels == 1 || strides[2] == 1)
            && (height == 1 || strides[0] >= row as isize);
        if !together {
            return Err(PyValueError::new_err(
                "the pixels of a row of image must be together and rows must go down; \
                 pass np.ascontiguousarray(image)",
            ));
        }
        let stride = if height == 1 { row } else { strides[0] as usize };
        let array = array.try_readonly().map_err(|_| in_use("image"))?;
        Ok(Self { array, info, stride, len: stride * (height - 1) + row })
    }

    /// Size and format.
    pub fn info(&self) -> FrameInfo {
        self.info
    }

    fn span(&self) -> Range<usize> {
        let start = self.array.data() as usize;
        start..start + self.len
    }

    /// The image as the library takes it.
    pub fn frame(&self) -> PyResult<Frame<'_>> {
        // SAFETY: numpy keeps `len` bytes from there on, from the first pixel to the last, as `new` found from shape and
        // strides; the array is held, and no other of this module writes to it while it is borrowed. That Python code writes
        // to it in another thread meanwhile is the caller's to prevent, as the documents say.
        let bytes = unsafe { std::slice::from_raw_parts(self.array.data(), self.len) };
        Frame::new(self.info, &[bytes], &[self.stride]).map_err(exception)
    }
}

/// Size and format of an image by its shape.
pub fn frame_info(shape: &[usize], order: Order) -> PyResult<FrameInfo> {
    let (height, width, channels) = match *shape {
        [height, width] => (height, width, 1),
        [height, width, channels] => (height, width, channels),
        _ => return Err(shape_error(shape)),
    };
    let format = match (channels, order) {
        (1, _) => PixelFormat::Gray8,
        (3, Order::Rgb) => PixelFormat::Rgb,
        (3, Order::Bgr) => PixelFormat::Bgr,
        (4, Order::Rgb) => PixelFormat::Rgba,
        (4, Order::Bgr) => PixelFormat::Bgra,
        _ => return Err(shape_error(shape)),
    };
    Ok(FrameInfo::new(geometry(height, width)?, format))
}

fn shape_error(shape: &[usize]) -> PyErr {
    let advice = match shape {
        [3 | 4, height, width] if *height > 4 && *width > 4 => {
            "; for channels first: image.transpose(1, 2, 0).copy(), of torch image.permute(1, 2, 0).contiguous()"
        }
        [_, _, 2] => "; for gray with alpha: image[..., 0].copy()",
        _ => "",
    };
    PyValueError::new_err(format!(
        "image must be of shape (H, W), (H, W, 1), (H, W, 3) or (H, W, 4), got {shape:?}{advice}"
    ))
}

fn in_use(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!("{what} is the `out` of a call in another thread"))
}

fn geometry(height: usize, width: usize) -> PyResult<Geometry> {
    let [height, width] = [height, width].map(|side| u32::try_from(side).unwrap_or(u32::MAX));
    Geometry::new(width, height).map_err(exception)
}

/// An array of labels, made here or by the caller.
pub struct LabelArray<'py, T: Element> {
    array: PyReadwriteArrayDyn<'py, T>,
    geometry: Geometry,
    /// Labels from one row to the next.
    stride: usize,
}

impl<'py, T: Element> LabelArray<'py, T> {
    /// `out`, or where that is `None` a new array, of the image's size.
    pub fn new(py: Python<'py>, out: Option<&Bound<'py, PyAny>>, image: &Image<'_>) -> PyResult<Self> {
        let geometry = image.info.geometry;
        let (height, width) = (geometry.height() as usize, geometry.width() as usize);
        let array = match out {
            None => PyArray2::<T>::zeros(py, [height, width], false).to_dyn().clone(),
            Some(out) => Self::check(py, out, [height, width])?,
        };
        let stride = if height == 1 { width } else { array.strides()[0] as usize / size_of::<T>() };
        let len = size_of::<T>() * (stride * (height - 1) + width);
        let start = array.data() as usize;
        let span = image.span();
        if start < span.end && span.start < start + len {
            return Err(PyValueError::new_err("out and image must not share memory"));
        }
        let array = array.try_readwrite().map_err(|_| in_use("out"))?;
        Ok(Self { array, geometry, stride })
    }

    fn check(
        py: Python<'py>,
        out: &Bound<'py, PyAny>,
        shape: [usize; 2],
    ) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
        let wanted = T::get_dtype(py);
        let [height, width] = shape;
        let Ok(untyped) = out.cast::<PyUntypedArray>() else {
            return Err(PyTypeError::new_err(format!("out must be an array of {wanted}")));
        };
        let Ok(array) = untyped.cast::<PyArrayDyn<T>>() else {
            let got = untyped.dtype();
            return Err(PyTypeError::new_err(format!("out must be an array of {wanted}, got {got}")));
        };
        if array.shape() != shape {
            let got = array.shape();
            return Err(PyValueError::new_err(format!("out must be of shape {shape:?}, got {got:?}")));
        }
        let (strides, item) = (array.strides(), size_of::<T>() as isize);
        let together = (width == 1 || strides[1] == item)
            && (height == 1 || strides[0] >= width as isize * item && strides[0] % item == 0)
            && array.data().is_aligned();
        if !together {
            return Err(PyValueError::new_err(
                "the labels of a row of out must be together and rows must go down; \
                 pass an array from np.empty",
            ));
        }
        if !out.getattr("flags")?.getattr("writeable")?.is_truthy()? {
            return Err(PyValueError::new_err("out is read-only"));
        }
        Ok(array.clone())
    }

    /// From the first label to the last, with what is between rows.
    pub fn slice(&mut self) -> (&mut [T], usize) {
        let (width, height) = (self.geometry.width() as usize, self.geometry.height() as usize);
        let len = self.stride * (height - 1) + width;
        // SAFETY: numpy keeps `len` items from there on, aligned and writeable, as `check` found from shape, strides and flags;
        // the array is held, and it is borrowed for writing: no other call of this module reads or writes it, and
        // `new` found no byte in common with the image. That Python code uses it in another thread meanwhile is the
        // caller's to prevent, as the documents say.
        let items = unsafe { std::slice::from_raw_parts_mut(self.array.data(), len) };
        (items, self.stride)
    }

    /// The array, to be returned.
    pub fn into_array(self) -> Bound<'py, PyAny> {
        let array: &Bound<'py, PyArrayDyn<T>> = &self.array;
        array.clone().into_any()
    }
}

impl LabelArray<'_, u16> {
    /// The array as the library takes it.
    pub fn labels(&mut self) -> PyResult<Labels<'_>> {
        let geometry = self.geometry;
        let (items, stride) = self.slice();
        Labels::new(geometry, items, stride).map_err(exception)
    }
}
