// SPDX-License-Identifier: MPL-2.0
//! Arrays of numpy as frames and label planes, one or a batch, without copies but for floats.

use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::{Frame, FrameInfo, Geometry};
use numpy::{
    Element, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyReadwriteArrayDyn,
    PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Failure, exception};
use crate::floats::Floats;
use crate::layout::{Layout, Shape};
use crate::order::Order;

/// An array that is borrowed for reading.
enum Held<'py> {
    Bytes(PyReadonlyArrayDyn<'py, u8>),
    Words(PyReadonlyArrayDyn<'py, u16>),
    Floats(PyReadonlyArrayDyn<'py, f32>),
}

impl<'py> Held<'py> {
    /// `None` for an array of another dtype.
    fn new(array: &Bound<'py, PyUntypedArray>) -> PyResult<Option<Self>> {
        let busy = |_| in_use("image");
        Ok(if let Ok(array) = array.cast::<PyArrayDyn<u8>>() {
            Some(Self::Bytes(array.try_readonly().map_err(busy)?))
        } else if let Ok(array) = array.cast::<PyArrayDyn<u16>>() {
            Some(Self::Words(array.try_readonly().map_err(busy)?))
        } else if let Ok(array) = array.cast::<PyArrayDyn<f32>>() {
            Some(Self::Floats(array.try_readonly().map_err(busy)?))
        } else {
            None
        })
    }

    fn data(&self) -> *const u8 {
        match self {
            Self::Bytes(array) => array.data().cast_const(),
            Self::Words(array) => array.data().cast_const().cast(),
            Self::Floats(array) => array.data().cast_const().cast(),
        }
    }

    fn sample(&self) -> usize {
        match self {
            Self::Bytes(_) => 1,
            Self::Words(_) => 2,
            Self::Floats(_) => size_of::<f32>(),
        }
    }
}

/// An image of the caller as the library takes it, or as it can be converted.
pub enum PixelSource<'a> {
    /// Read where it is.
    Frame(Frame<'a>),
    /// Values in [0, 1].
    Floats(Floats<'a>),
}

impl PixelSource<'_> {
    /// Calls `take` with the frame; one that is converted lies in `codes` then, and threads of `cpu` have done that.
    pub fn with<R>(
        &self,
        cpu: &Cpu,
        codes: &mut Vec<u16>,
        take: impl FnOnce(&Frame<'_>) -> Result<R, Error>,
    ) -> Result<R, Failure> {
        Ok(match self {
            Self::Frame(frame) => take(frame)?,
            Self::Floats(floats) => take(&floats.convert(cpu, codes)?)?,
        })
    }
}

/// One image that the caller keeps, or a batch of them.
pub struct Images<'py> {
    array: Held<'py>,
    info: FrameInfo,
    layout: Layout,
    /// Number of a batch, and bytes from one image to the next; `None` for a single image.
    batch: Option<(usize, isize)>,
}

const DTYPE: &str = "image must be an array of uint8, uint16 or float32";

impl<'py> Images<'py> {
    /// Takes (H, W), (H, W, C) or (N, H, W, C) of uint8, uint16 or float32, C 1, 3 or 4, rows at any distance.
    pub fn new(image: &Bound<'py, PyAny>, order: Order) -> PyResult<Self> {
        refuse_masked(image)?;
        let Ok(untyped) = image.cast::<PyUntypedArray>() else {
            let name = image.get_type().name()?;
            return Err(PyTypeError::new_err(format!("{DTYPE}, got {name}; np.asarray(image) may make one")));
        };
        let Some(array) = Held::new(untyped)? else { return Err(dtype_error(untyped)) };
        let (shape, strides) = (untyped.shape(), untyped.strides());
        // One of three axes is always one picture: (N, H, W) could not be told from (H, W, C).
        let (batch, of_one) = match *shape {
            [count, _, _, _] => (Some((count, strides[0])), 1),
            _ => (None, 0),
        };
        let (height, width, channels) = match shape[of_one..] {
            [height, width] => (height, width, 1),
            [height, width, channels @ (1 | 3 | 4)] => (height, width, channels),
            _ => return Err(shape_error(shape)),
        };
        let geometry = geometry(height, width)?;
        // An empty array's address has no meaning.
        let of_nothing =
            [(width * channels) as isize, channels as isize, 1].map(|items| items * array.sample() as isize);
        let strides =
            if batch.is_some_and(|(count, _)| count == 0) { &of_nothing } else { &strides[of_one..] };
        let shape = Shape {
            height,
            width,
            channels,
            rows_apart: strides[0],
            pixels_apart: strides[1],
            channels_apart: strides.get(2).copied().unwrap_or_default(),
            sample: array.sample(),
        };
        let around = || memory_around(untyped, array.data(), batch);
        let Some(layout) = Layout::new(shape, order, around) else {
            return Err(PyValueError::new_err(
                "the pixels of a row of image must be together and rows must go down; \
                 pass np.ascontiguousarray(image)",
            ));
        };
        let format = match array {
            Held::Bytes(_) => layout.format_of_bytes(),
            Held::Words(_) => layout.format_of_words(),
            Held::Floats(_) => Floats::format(&layout),
        };
        Ok(Self { array, info: FrameInfo::new(geometry, format), layout, batch })
    }

    /// Size and format.
    pub fn info(&self) -> FrameInfo {
        self.info
    }

    /// Number of images, and whether that is an axis of its own.
    pub fn count(&self) -> (usize, bool) {
        (self.batch.map_or(1, |(count, _)| count), self.batch.is_some())
    }

    /// Returns true if a byte of the range is in this memory as well.
    fn is_within(&self, start: usize, end: usize) -> bool {
        let (count, apart) = self.batch.unwrap_or((1, 0));
        if count == 0 {
            return false;
        }
        let last = apart * (count as isize - 1);
        let span = self.layout.span();
        let at = |offset: isize| (self.array.data() as usize).wrapping_add_signed(offset);
        start < at(span.end + last.max(0)) && at(span.start + last.min(0)) < end
    }

    /// The images as the library takes them.
    pub fn sources(&self) -> PyResult<Vec<PixelSource<'_>>> {
        let (count, apart) = self.batch.unwrap_or((1, 0));
        let first = self.layout.span().start;
        let source = |i: usize| {
            // SAFETY: numpy keeps the layout's bytes around the first element of image `i`, as `new` found from shape and strides, and
            // where a sample is skipped from the memory that they lie in; the array is held, and no other of this module
            // writes to it while it is borrowed. That Python code writes to it in another thread meanwhile is the caller's
            // to prevent, as the documents say.
            let bytes = unsafe {
                std::slice::from_raw_parts(
                    self.array.data().offset(apart * i as isize + first),
                    self.layout.len,
                )
            };
            Ok(match self.array {
                Held::Floats(_) => PixelSource::Floats(Floats::new(self.info, self.layout, bytes)),
                _ => PixelSource::Frame(
                    Frame::new(self.info, &[bytes], &[self.layout.stride]).map_err(exception)?,
                ),
            })
        };
        (0..count).map(source).collect()
    }
}

/// The bytes below and from an array's first element on that belong to the memory that it is a view of, the same for every image
/// of a batch. `None` where nothing is known.
fn memory_around(
    array: &Bound<'_, PyUntypedArray>,
    data: *const u8,
    batch: Option<(usize, isize)>,
) -> Option<[usize; 2]> {
    let mut owner = array.clone();
    while let Ok(base) = owner.getattr("base").ok()?.cast_into::<PyUntypedArray>() {
        owner = base;
    }
    if !owner.is_contiguous() {
        return None;
    }
    let interface = owner.getattr("__array_interface__").ok()?.cast_into::<PyDict>().ok()?;
    let (start, _): (usize, bool) = interface.get_item("data").ok()??.extract().ok()?;
    let bytes: usize = owner.getattr("nbytes").ok()?.extract().ok()?;
    let last = batch.map_or(0, |(count, apart)| apart * (count.max(1) as isize - 1));
    let at = |offset: isize| (data as usize).checked_add_signed(offset);
    let below = at(last.min(0))?.checked_sub(start)?;
    let above = start.checked_add(bytes)?.checked_sub(at(last.max(0))?)?;
    Some([below, above])
}

/// Refuses arrays with a mask, which numpy would drop without a word.
fn refuse_masked(array: &Bound<'_, PyAny>) -> PyResult<()> {
    let is_plain = array.get_type().is(array.py().get_type::<PyUntypedArray>());
    if is_plain || array.cast::<PyUntypedArray>().is_err() {
        return Ok(());
    }
    let masked = array.py().import("numpy.ma")?.getattr("MaskedArray")?;
    if array.is_instance(&masked)? {
        return Err(PyTypeError::new_err(
            "image must not be a masked array, whose mask would be ignored; pass image.filled(0), or \
             image.data for all pixels",
        ));
    }
    Ok(())
}

fn dtype_error(array: &Bound<'_, PyUntypedArray>) -> PyErr {
    let dtype = array.dtype();
    let advice = match (dtype.kind(), dtype.itemsize()) {
        (b'f', 4) | (b'u', 2) => {
            "; for the machine's byte order: image.astype(image.dtype.newbyteorder('='))"
        }
        (b'f', _) => "; for values in [0, 1]: image.astype(np.float32)",
        (b'b', _) => "; for black and white: 255 * image.astype(np.uint8)",
        _ => {
            "; convert it with image.astype(np.uint8) if values are in 0 to 255, \
              or image.astype(np.uint16) if they are in 0 to 65535"
        }
    };
    PyTypeError::new_err(format!("{DTYPE}, got {dtype}{advice}"))
}

/// The error of an array of another shape than images have.
pub fn shape_error(shape: &[usize]) -> PyErr {
    let advice = match shape {
        [3 | 4, height, width] if *height > 4 && *width > 4 => {
            "; for channels first: image.transpose(1, 2, 0).copy(), of torch image.permute(1, 2, 0).contiguous()"
        }
        [_, 3 | 4, height, width] if *height > 4 && *width > 4 => {
            "; for channels first: image.transpose(0, 2, 3, 1).copy()"
        }
        [_, _, 2] | [_, _, _, 2] => "; for gray with alpha: image[..., :1].copy()",
        [_, height, width] if *height > 4 && *width > 4 => "; for a batch of gray images: image[..., None]",
        _ => "",
    };
    PyValueError::new_err(format!(
        "image must be of shape (H, W), (H, W, C) or (N, H, W, C) with C 1, 3 or 4, got {shape:?}{advice}"
    ))
}

fn in_use(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!("{what} is the `out` of a call in another thread"))
}

/// A size, checked.
pub fn geometry(height: usize, width: usize) -> PyResult<Geometry> {
    let [height, width] = [height, width].map(|side| u32::try_from(side).unwrap_or(u32::MAX));
    Geometry::new(width, height).map_err(exception)
}

/// An array of labels, made here or by the caller: for one image, or for a batch.
pub struct LabelArray<'py, T: Element> {
    array: PyReadwriteArrayDyn<'py, T>,
    geometry: Geometry,
    /// Labels from one row to the next.
    stride: usize,
    /// Number of planes, and labels from one to the next.
    count: usize,
    apart: usize,
}

impl<'py, T: Element> LabelArray<'py, T> {
    /// `out`, or where that is `None` a new array, of the images' size.
    pub fn new(py: Python<'py>, out: Option<&Bound<'py, PyAny>>, images: &Images<'_>) -> PyResult<Self> {
        let geometry = images.info.geometry;
        let (height, width) = (geometry.height() as usize, geometry.width() as usize);
        let (count, is_batch) = images.count();
        let shape = &[count, height, width][usize::from(!is_batch)..];
        let array = match out {
            None if !is_batch => PyArrayDyn::<T>::zeros(py, shape, false),
            // A batch may be larger than memory, which numpy itself answers with an exception.
            None => {
                let array = py.import("numpy")?.call_method1("zeros", (shape, T::get_dtype(py)))?;
                array.cast_into::<PyArrayDyn<T>>()?
            }
            Some(out) => Self::check(py, out, shape)?,
        };
        let strides = &array.strides()[usize::from(is_batch)..];
        let stride = if height == 1 { width } else { strides[0] as usize / size_of::<T>() };
        let len = stride * (height - 1) + width;
        let apart = if count < 2 { len } else { array.strides()[0] as usize / size_of::<T>() };
        let (start, all) = (array.data() as usize, apart * count.saturating_sub(1) + len);
        if count > 0 && images.is_within(start, start + size_of::<T>() * all) {
            return Err(PyValueError::new_err("out and image must not share memory"));
        }
        let array = array.try_readwrite().map_err(|_| in_use("out"))?;
        Ok(Self { array, geometry, stride, count, apart })
    }

    fn check(
        py: Python<'py>,
        out: &Bound<'py, PyAny>,
        shape: &[usize],
    ) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
        let wanted = T::get_dtype(py);
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
        // From the innermost axis on, what is further out goes over what is further in. What there is one of has no distance to the
        // next.
        let item = size_of::<T>();
        let mut least = item;
        let mut is_together = array.data().is_aligned();
        for (axis, (&side, &apart)) in shape.iter().zip(array.strides()).enumerate().rev() {
            let apart = if side > 1 { apart } else { least as isize };
            let is_last = axis + 1 == shape.len();
            is_together &= apart >= least as isize && apart % item as isize == 0;
            is_together &= !is_last || apart == item as isize;
            least += apart.max(0) as usize * side.saturating_sub(1);
        }
        if !is_together {
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

    /// Labels from one row to the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Each plane from the first label to the last, with what is between rows.
    pub fn planes(&mut self) -> impl Iterator<Item = &mut [T]> {
        let (width, height) = (self.geometry.width() as usize, self.geometry.height() as usize);
        let len = self.stride * (height - 1) + width;
        let all = if self.count == 0 { 0 } else { self.apart * (self.count - 1) + len };
        // SAFETY: numpy keeps `all` items from there on, aligned and writeable, as `check` found from shape, strides and flags;
        // the array is held, and it is borrowed for writing: no other call of this module reads or writes it, and
        // `new` found no byte in common with the images. That Python code uses it in another thread meanwhile is the
        // caller's to prevent, as the documents say.
        let items = unsafe { std::slice::from_raw_parts_mut(self.array.data(), all) };
        items.chunks_mut(self.apart).map(move |plane| &mut plane[..len])
    }

    /// The array, to be returned.
    pub fn into_array(self) -> Bound<'py, PyAny> {
        let array: &Bound<'py, PyArrayDyn<T>> = &self.array;
        array.clone().into_any()
    }
}
