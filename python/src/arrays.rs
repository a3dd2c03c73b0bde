// SPDX-License-Identifier: MPL-2.0
//! Arrays of numbers as frames, one or a batch: codes are read where they are, if they lie as the library takes them.

use std::ffi::CString;

use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::{Frame, FrameInfo, Geometry};
use numpy::{
    PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::components::{Bands, Kept, MOST_BANDS};
use crate::data_range::DataRange;
use crate::dlpack;
use crate::error::{Failure, exception};
use crate::lab_codes::LabCodes;
use crate::layout::{Layout, Shape, memory_around};
use crate::memory;
use crate::order::Order;
use crate::reading::Reading;
use crate::values::{Numbers, Values};

/// Codes that are borrowed for reading.
enum Codes<'py> {
    Bytes(PyReadonlyArrayDyn<'py, u8>),
    Words(PyReadonlyArrayDyn<'py, u16>),
}

impl<'py> Codes<'py> {
    /// `None` for an array of another dtype.
    fn new(array: &Bound<'py, PyUntypedArray>) -> PyResult<Option<Self>> {
        let busy = |_| in_use("image");
        Ok(if let Ok(array) = array.cast::<PyArrayDyn<u8>>() {
            Some(Self::Bytes(array.try_readonly().map_err(busy)?))
        } else if let Ok(array) = array.cast::<PyArrayDyn<u16>>() {
            Some(Self::Words(array.try_readonly().map_err(busy)?))
        } else {
            None
        })
    }

    fn data(&self) -> *const u8 {
        match self {
            Self::Bytes(array) => array.data().cast_const(),
            Self::Words(array) => array.data().cast_const().cast(),
        }
    }

    fn sample(&self) -> usize {
        match self {
            Self::Bytes(_) => 1,
            Self::Words(_) => 2,
        }
    }

    fn white(&self) -> f64 {
        match self {
            Self::Bytes(_) => 255.0,
            Self::Words(_) => 65_535.0,
        }
    }
}

/// The samples that are read of the caller's array.
enum Held<'py> {
    /// Codes as the library takes them.
    InPlace(Codes<'py>, Layout),
    /// Others become such.
    Converted(Numbers<'py>),
    /// Their components do.
    Bands(Numbers<'py>, LabCodes),
}

/// An image of the caller as the library takes it, or as it can be converted.
pub enum PixelSource<'a> {
    /// Read where it is.
    Frame(Frame<'a>),
    /// Converted.
    Values(Values<'a>),
    /// Converted by its components.
    Bands(Bands<'a>),
}

/// Memory of conversions, and what they keep from image to image.
#[derive(Default)]
pub struct Converted {
    codes: Vec<u16>,
    pub components: Kept,
}

impl PixelSource<'_> {
    /// Calls `take` with the frame and its mask, which has one byte a pixel; one that is converted lies in `converted` then, and threads
    /// of `cpu` have done that.
    pub fn with<R>(
        &self,
        cpu: &Cpu,
        mask: Option<&[u8]>,
        converted: &mut Converted,
        take: impl FnOnce(&Frame<'_>) -> Result<R, Error>,
    ) -> Result<R, Failure> {
        let frame = match self {
            Self::Frame(frame) => *frame,
            Self::Values(values) => values.convert(cpu, mask, &mut converted.codes)?,
            Self::Bands(bands) => {
                bands.convert(cpu, mask, &mut converted.components, &mut converted.codes)?
            }
        };
        let width = frame.info().geometry.width() as usize;
        let frame = mask.map_or(Ok(frame), |mask| frame.with_mask(mask, width))?;
        Ok(take(&frame)?)
    }
}

/// One image that the caller keeps, or a batch of them.
pub struct Images<'py> {
    held: Held<'py>,
    info: FrameInfo,
    /// Number of a batch, and bytes from one image to the next; `None` for a single image.
    batch: Option<(usize, isize)>,
    /// Addresses of the first byte of all and of the one behind the last.
    memory: [usize; 2],
    range: DataRange,
}

impl<'py> Images<'py> {
    /// Takes (H, W), (H, W, C) or (N, H, W, C), C 1, 3 or 4, of any layout: codes of uint8 and uint16, floats, and with a range of
    /// values any type of real numbers.
    pub fn new(image: &Bound<'py, PyAny>, reading: &Reading) -> PyResult<Self> {
        let array = reading.arrange(host_array(image)?)?;
        if reading.is_by_components() {
            return Self::of_bands(&array, reading.range);
        }
        let shape = array.shape().to_vec();
        // One of three axes is always one picture: (N, H, W) could not be told from (H, W, C).
        let is_batch = shape.len() == 4;
        let (height, width, channels) = match shape[usize::from(is_batch)..] {
            [height, width] => (height, width, 1),
            [height, width, channels @ (1 | 3 | 4)] => (height, width, channels),
            _ => return Err(shape_error(&shape)),
        };
        let geometry = geometry(height, width)?;
        let size = (height, width, channels);
        let is_stretched = reading.range == DataRange::Stretched;
        if is_stretched && (channels != 1 || array.cast::<PyArrayDyn<u16>>().is_err()) {
            let dtype = array.dtype();
            return Err(PyValueError::new_err(format!(
                "data_range='stretch' is for gray images of uint16, got {dtype} with {channels} channels; \
                 data_range='image' takes the range of each image"
            )));
        }
        let codes = Codes::new(&array)?.filter(|codes| reading.range.keeps_codes(codes.white()));
        if let Some(codes) = codes {
            let layout = layout_of(&array, &codes, is_batch, size, reading.order);
            let (array, codes, layout) = match layout {
                Some(layout) => (array, codes, layout),
                None => {
                    let array = contiguous(&array)?;
                    let codes = Codes::new(&array)?.ok_or_else(|| dtype_error(&array))?;
                    let layout = layout_of(&array, &codes, is_batch, size, reading.order);
                    (array, codes, layout.ok_or_else(|| shape_error(&shape))?)
                }
            };
            let format = match codes {
                Codes::Bytes(_) => layout.format_of_bytes(),
                Codes::Words(_) => layout.format_of_words(),
            };
            let batch = batch_of(&array, is_batch);
            let memory = layout_memory(codes.data(), &layout, batch);
            let info = FrameInfo::new(geometry, format);
            return Ok(Self {
                held: Held::InPlace(codes, layout),
                info,
                batch,
                memory,
                range: reading.range,
            });
        }
        if array.dtype().kind() != b'f' && reading.range == DataRange::OfType {
            return Err(dtype_error(&array));
        }
        let numbers = Numbers::new(&array, || in_use("image"))?.ok_or_else(|| dtype_error(&array))?;
        let (batch, memory) = (batch_of(&array, is_batch), memory_of(&array, numbers.data()));
        let info = FrameInfo::new(geometry, Values::format(channels, reading.order));
        Ok(Self { held: Held::Converted(numbers), info, batch, memory, range: reading.range })
    }

    /// Takes (H, W, B) or (N, H, W, B) of any type of real numbers.
    fn of_bands(array: &Bound<'py, PyUntypedArray>, range: DataRange) -> PyResult<Self> {
        let (height, width, is_batch) = match *array.shape() {
            [height, width, 2..=MOST_BANDS] => (height, width, false),
            [_, height, width, 2..=MOST_BANDS] => (height, width, true),
            _ => {
                let shape = array.shape();
                let advice = match shape.len() {
                    2 => "an image of one band has no components, and needs no bands",
                    _ => "of more, image[..., ::2] is every second, and bands=0 takes one",
                };
                return Err(PyValueError::new_err(format!(
                    "bands='pca' is for images of shape (H, W, B) or (N, H, W, B) with 2 to {MOST_BANDS} bands, got {shape:?}; \
                     {advice}"
                )));
            }
        };
        let info = FrameInfo::new(geometry(height, width)?, Bands::FORMAT);
        let numbers = Numbers::new(array, || in_use("image"))?.ok_or_else(|| dtype_error(array))?;
        let (batch, memory) = (batch_of(array, is_batch), memory_of(array, numbers.data()));
        let codes = LabCodes::new(array.py())?;
        Ok(Self { held: Held::Bands(numbers, codes), info, batch, memory, range })
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
    pub fn is_within(&self, start: usize, end: usize) -> bool {
        start < self.memory[1] && self.memory[0] < end
    }

    /// The images as the library takes them.
    pub fn sources(&self) -> PyResult<Vec<PixelSource<'_>>> {
        let (count, apart) = self.batch.unwrap_or((1, 0));
        let source = |i: usize| -> PyResult<PixelSource<'_>> {
            Ok(match &self.held {
                Held::Converted(numbers) => {
                    let view = numbers.image(self.batch.map(|_| i));
                    PixelSource::Values(Values::new(self.info, view, self.range))
                }
                Held::Bands(numbers, codes) => {
                    let view = numbers.bands(self.batch.map(|_| i));
                    PixelSource::Bands(Bands::new(self.info, view, self.range, *codes))
                }
                Held::InPlace(codes, layout) => {
                    // SAFETY: numpy keeps the layout's bytes around the first element of image `i`, as `new` found from shape and
                    // strides, and where a sample is skipped from the memory that they lie in; the array is held, and no other of
                    // this module writes to it while it is borrowed. That Python code writes to it in another thread meanwhile is
                    // the caller's to prevent, as the documents say.
                    let bytes = unsafe {
                        std::slice::from_raw_parts(
                            codes.data().offset(apart * i as isize + layout.span().start),
                            layout.len,
                        )
                    };
                    PixelSource::Frame(Frame::new(self.info, &[bytes], &[layout.stride]).map_err(exception)?)
                }
            })
        };
        let mut sources = Vec::new();
        memory::reserve("images of a batch", &mut sources, count).map_err(exception)?;
        for i in 0..count {
            sources.push(source(i)?);
        }
        Ok(sources)
    }

    /// Tells the user of uint16 that uses little of its range, which nobody has said: it is probably of 10 or 12 bits. Says whether
    /// there was a reason. Black alone is none. The warning is of the caller's line, `level` calls of Python up.
    pub fn warn_of_range(&self, py: Python<'_>, is_stretched: bool, level: i32) -> PyResult<bool> {
        let Some(most) = self.low_maximum()? else { return Ok(false) };
        if is_stretched && self.info.format.is_gray() {
            return Ok(false);
        }
        let white = (u32::from(most) + 1).next_power_of_two() - 1;
        let text = format!(
            "image is uint16 with values up to {most} and is taken as nearly black; pass data_range=(0, {white}) for white at {white}, \
             or data_range=(0, 65535) for what it is now"
        );
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(text)?, level)?;
        Ok(true)
    }

    /// The highest code, if it is of uint16 without a given range, below 1/8 of white and not black.
    fn low_maximum(&self) -> PyResult<Option<u16>> {
        let Held::InPlace(Codes::Words(_), layout) = &self.held else { return Ok(None) };
        if self.range != DataRange::OfType {
            return Ok(None);
        }
        let mut most = 0;
        for source in self.sources()? {
            let PixelSource::Frame(frame) = source else { continue };
            for y in 0..self.info.geometry.height() as usize {
                let samples =
                    frame.row(0, y).as_chunks::<2>().0.iter().map(|bytes| u16::from_le_bytes(*bytes));
                most = match layout.samples {
                    4 => {
                        let color =
                            |&(i, _): &(usize, u16)| (layout.first..layout.first + 3).contains(&(i % 4));
                        samples.enumerate().filter(color).map(|(_, code)| code).fold(most, u16::max)
                    }
                    _ => samples.fold(most, u16::max),
                };
                if most > u16::MAX / 8 {
                    return Ok(None);
                }
            }
        }
        Ok(Some(most).filter(|&most| most > 0))
    }
}

/// Whether an object is an array of numpy, or becomes one without a copy: an array of another library in the host's memory. Lists are
/// none: they are lists of images.
pub fn is_host_array(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if value.cast::<PyUntypedArray>().is_ok() {
        return Ok(true);
    }
    let py = value.py();
    let is_list = value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>();
    if is_list || value.is_instance_of::<PyString>() {
        return Ok(false);
    }
    match value.getattr_opt(intern!(py, "__dlpack_device__"))? {
        Some(device) => {
            let (kind, _): (i64, i64) = device.call0()?.extract()?;
            Ok([dlpack::CPU, dlpack::CUDA_HOST].map(i64::from).contains(&kind))
        }
        None => value.hasattr(intern!(py, "__array__")),
    }
}

/// An array of numpy, or what [`is_host_array`] as one over the same memory.
pub fn as_numpy<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if array.cast::<PyUntypedArray>().is_ok() {
        return Ok(array.clone());
    }
    let py = array.py();
    let name = if array.hasattr(intern!(py, "__array__"))? { "asarray" } else { "from_dlpack" };
    py.import(intern!(py, "numpy"))?.call_method1(name, (array,))
}

/// Returns true if an object names a file.
pub fn is_path(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(value.is_instance_of::<PyString>() || value.hasattr(intern!(value.py(), "__fspath__"))?)
}

/// An array of numpy, aligned and in the machine's byte order; a copy where it is not.
fn host_array<'py>(image: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    refuse_masked("image", image)?;
    let py = image.py();
    if !is_host_array(image)? {
        let name = image.get_type().name()?;
        let advice = if is_path(image)? {
            "read the file first, with np.asarray(PIL.Image.open(path)) or cv2.imread(path) and order='bgr'"
        } else if image.is_none() {
            "cv2.imread gives None where it cannot read the file"
        } else if image.hasattr(intern!(py, "__next__"))? {
            "segment_images takes what gives one image after another"
        } else if image.len().is_ok_and(|len| len == 0) {
            "it is empty"
        } else {
            "np.asarray(image) may make one"
        };
        return Err(PyTypeError::new_err(format!("image must be an array of numbers, got {name}; {advice}")));
    }
    let array = as_numpy(image)?.cast_into::<PyUntypedArray>()?;
    let dtype = array.dtype();
    let is_half = dtype.kind() == b'f' && dtype.itemsize() == 2;
    let is_number = matches!(dtype.kind(), b'f' | b'i' | b'u');
    let is_aligned = || array.getattr(intern!(py, "flags"))?.getattr(intern!(py, "aligned"))?.is_truthy();
    if !is_number || (!is_half && dtype.is_native_byteorder() != Some(false) && is_aligned()?) {
        return Ok(array);
    }
    let wanted = match is_half {
        true => py.import(intern!(py, "numpy"))?.getattr(intern!(py, "float32"))?,
        false => dtype.call_method1("newbyteorder", ("=",))?,
    };
    Ok(array.call_method1("astype", (wanted,))?.cast_into::<PyUntypedArray>()?)
}

fn contiguous<'py>(array: &Bound<'py, PyUntypedArray>) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = array.py();
    let numpy = py.import(intern!(py, "numpy"))?;
    Ok(numpy.call_method1(intern!(py, "ascontiguousarray"), (array,))?.cast_into::<PyUntypedArray>()?)
}

fn batch_of(array: &Bound<'_, PyUntypedArray>, is_batch: bool) -> Option<(usize, isize)> {
    is_batch.then(|| (array.shape()[0], array.strides()[0]))
}

/// Addresses of an array's first byte and of the one behind its last; `data` is that of its first element.
fn memory_of(array: &Bound<'_, PyUntypedArray>, data: *const u8) -> [usize; 2] {
    let first = data as usize;
    if array.shape().contains(&0) {
        return [first, first];
    }
    let ends = array.shape().iter().zip(array.strides()).map(|(&side, &apart)| apart * (side as isize - 1));
    let (below, above) = ends.fold((0, 0), |(below, above), end| (below + end.min(0), above + end.max(0)));
    let itemsize = array.dtype().itemsize();
    [first.wrapping_add_signed(below), first.wrapping_add_signed(above) + itemsize]
}

/// The same of what a layout reads, to which samples belong that are skipped.
fn layout_memory(data: *const u8, layout: &Layout, batch: Option<(usize, isize)>) -> [usize; 2] {
    let (count, apart) = batch.unwrap_or((1, 0));
    if count == 0 {
        return [data as usize; 2];
    }
    let (span, last) = (layout.span(), apart * (count as isize - 1));
    let at = |offset: isize| (data as usize).wrapping_add_signed(offset);
    [at(span.start + last.min(0)), at(span.end + last.max(0))]
}

/// How the codes of one image lie, if the library takes them so.
fn layout_of(
    array: &Bound<'_, PyUntypedArray>,
    codes: &Codes<'_>,
    is_batch: bool,
    (height, width, channels): (usize, usize, usize),
    order: Order,
) -> Option<Layout> {
    let batch = batch_of(array, is_batch);
    // An empty array's address has no meaning.
    let of_nothing =
        [(width * channels) as isize, channels as isize, 1].map(|items| items * codes.sample() as isize);
    let strides = &array.strides()[usize::from(is_batch)..];
    let strides = if batch.is_some_and(|(count, _)| count == 0) { &of_nothing } else { strides };
    let shape = Shape {
        height,
        width,
        channels,
        rows_apart: strides[0],
        pixels_apart: strides[1],
        channels_apart: strides.get(2).copied().unwrap_or_default(),
        sample: codes.sample(),
    };
    Layout::new(shape, order, || memory_around(array, codes.data(), batch))
}

/// Refuses arrays with a mask, which numpy would drop without a word.
pub fn refuse_masked(name: &str, array: &Bound<'_, PyAny>) -> PyResult<()> {
    let is_plain = array.get_type().is(array.py().get_type::<PyUntypedArray>());
    if is_plain || array.cast::<PyUntypedArray>().is_err() {
        return Ok(());
    }
    let masked = array.py().import("numpy.ma")?.getattr("MaskedArray")?;
    if array.is_instance(&masked)? {
        let advice = match name {
            "image" => {
                "image.data with mask=~np.ma.getmaskarray(image), of colors mask=~np.ma.getmaskarray(image).any(axis=-1), \
                 or axis=0 where channels are first; or image.filled(0) for all pixels"
                    .into()
            }
            _ => format!("{name}.filled(0), or {name}.data for all pixels"),
        };
        return Err(PyTypeError::new_err(format!(
            "{name} must not be a masked array, whose mask would be ignored; pass {advice}"
        )));
    }
    Ok(())
}

fn dtype_error(array: &Bound<'_, PyUntypedArray>) -> PyErr {
    let dtype = array.dtype();
    let advice = match dtype.kind() {
        b'b' => "; for black and white: 255 * image.astype(np.uint8)",
        b'i' | b'u' => {
            "; say what values are black and white with data_range=(low, high), or data_range='image' for the \
             range of each image"
        }
        _ => "; it must be of integers or floats of at most 64 bits",
    };
    PyTypeError::new_err(format!("an image of {dtype} is not taken{advice}"))
}

/// The error of an array of another shape than images have.
pub fn shape_error(shape: &[usize]) -> PyErr {
    let is_picture =
        |height: usize, width: usize, bands: usize| height > bands && width > bands && bands <= 64;
    let chosen = |bands: usize| if bands > 2 { "bands=(2, 1, 0)" } else { "bands=0" };
    let advice = match *shape {
        [.., height, width, bands @ 0..=2] if is_picture(height, width, bands) => {
            format!("; choose from {bands} bands: bands=0 for gray, or bands='pca' for all")
        }
        [.., height, width, bands] if is_picture(height, width, bands) => {
            format!(
                "; choose from {bands} bands: bands=(2, 1, 0) for red, green and blue, bands=0 for gray, or bands='pca' for all"
            )
        }
        [bands @ (1 | 3 | 4), height, width] if is_picture(height, width, bands) => {
            "; for channels first: channel_axis=0".into()
        }
        [bands, height, width] if is_picture(height, width, bands) => format!(
            "; for {bands} bands first: channel_axis=0 and {}; for a batch of gray images: image[..., None]",
            chosen(bands)
        ),
        [_, bands @ (1 | 3 | 4), height, width] if is_picture(height, width, bands) => {
            "; for channels first: channel_axis=1".into()
        }
        [_, bands, height, width] if is_picture(height, width, bands) => {
            format!("; for {bands} bands first: channel_axis=1 and {}", chosen(bands))
        }
        [_, height, width] if height > 4 && width > 4 => {
            "; for a batch of gray images: image[..., None]".into()
        }
        _ => String::new(),
    };
    PyValueError::new_err(format!(
        "image must be of shape (H, W), (H, W, C) or (N, H, W, C) with C 1, 3 or 4, got {shape:?}{advice}"
    ))
}

pub fn in_use(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!("{what} is the `out` of a call in another thread"))
}

/// A size, checked.
pub fn geometry(height: usize, width: usize) -> PyResult<Geometry> {
    let [height, width] = [height, width].map(|side| u32::try_from(side).unwrap_or(u32::MAX));
    Geometry::new(width, height).map_err(exception)
}
