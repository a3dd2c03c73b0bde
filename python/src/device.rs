// SPDX-License-Identifier: MPL-2.0
//! A call with an image or a batch on a device: what is checked before it, and what comes out.

use gstsuperpixel::cuda::{Cuda, DeviceMemory, LabelType};
use gstsuperpixel::image::{FrameInfo, Geometry};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::device_array::{DeviceArray, Shared};
use crate::device_image::{self, DeviceImages};
use crate::engines::{Streams, Target, Task};
use crate::foreign::{Foreign, is_on_device};
use crate::library::{Dtype, Library};
use crate::raw_frame::{RawFrame, RawPrior};
use crate::reading::Reading;
use crate::streams;

/// Arguments of a call besides the image.
#[derive(Clone, Copy)]
pub struct Arguments<'a, 'py> {
    pub out: Option<&'a Bound<'py, PyAny>>,
    pub mask: Option<&'a Bound<'py, PyAny>>,
    pub prior: Option<&'a Bound<'py, PyAny>>,
    pub stream: Option<&'a Bound<'py, PyAny>>,
    /// True if values are checked before they are used, which the host waits for.
    pub check: bool,
}

/// Images on a device and where their labels go.
pub struct Call<'py> {
    image: Foreign<'py>,
    images: DeviceImages,
    mask: Option<Mask<'py>>,
    prior: Option<Prior<'py>>,
    target: Target,
    kind: LabelType,
    streams: Streams,
    check: bool,
    /// Shape of the labels.
    shape: Vec<usize>,
    /// The array that comes out, unless it is ours.
    result: Option<Bound<'py, PyAny>>,
    /// Holds the memory of `out`.
    out: Option<Foreign<'py>>,
}

/// Masks of the images, or one for all.
struct Mask<'py> {
    array: Foreign<'py>,
    stride: u32,
    /// Bytes from one to the next.
    apart: u64,
}

/// Priors of the images, or one for all.
struct Prior<'py> {
    array: Foreign<'py>,
    first: RawPrior,
    /// Bytes from one to the next.
    apart: u64,
}

impl<'py> Call<'py> {
    /// Checks an image that [`is_on_device`], and what else is given. Labels are numbered from `first` on.
    pub fn new(
        image: &Bound<'py, PyAny>,
        arguments: Arguments<'_, 'py>,
        reading: &Reading,
        first: i32,
    ) -> PyResult<Self> {
        let py = image.py();
        let stream = arguments.stream.map(streams::handle).transpose()?;
        let image = Foreign::new(image, "image", device_image::DTYPES, stream)?;
        let images = DeviceImages::new(&image, reading)?;
        let mut streams = Streams::new(image.stream.is_some());
        image.ready_on.iter().for_each(|&stream| streams.follow(stream));
        image.stream.iter().for_each(|&stream| streams.take_turn(stream));
        let geometry = images.info.geometry;
        let mut shape = vec![geometry.height() as usize, geometry.width() as usize];
        if images.is_batch {
            shape.insert(0, images.count);
        }
        let (kind, check) = (LabelType::I32 { first }, arguments.check);
        let mut call = Self {
            image,
            images,
            mask: None,
            prior: None,
            target: Target::Own,
            kind,
            streams,
            check,
            shape,
            result: None,
            out: None,
        };
        if let Some(mask) = arguments.mask {
            call.take_mask(mask, stream)?;
        }
        if let Some(prior) = arguments.prior {
            call.take_prior(prior, stream)?;
        }
        match arguments.out {
            Some(out) => call.take_out(out, stream, first)?,
            None => call.take_new(py)?,
        }
        Ok(call)
    }

    /// Refuses an array of another device than the image's, and notes its streams.
    fn join(&mut self, what: &str, array: &Foreign<'py>) -> PyResult<()> {
        let (own, other) = (self.image.ordinal, array.ordinal);
        if own != other {
            return Err(PyValueError::new_err(format!(
                "{what} is on cuda:{other} and image on cuda:{own}; they must be on one device"
            )));
        }
        array.ready_on.iter().for_each(|&stream| self.streams.follow(stream));
        array.stream.iter().for_each(|&stream| self.streams.take_turn(stream));
        self.streams.is_ordered &= array.stream.is_some();
        Ok(())
    }

    fn take_mask(&mut self, array: &Bound<'py, PyAny>, stream: Option<usize>) -> PyResult<()> {
        if !is_on_device(array)? {
            return Err(PyTypeError::new_err("mask must be an array on the device of the image"));
        }
        let mask = Foreign::new(array, "mask", "bool or uint8", stream)?;
        if !matches!(mask.dtype, Dtype::Bool | Dtype::U8) {
            return Err(mask.dtype_error());
        }
        let one = &self.shape[self.shape.len() - 2..];
        if mask.shape != self.shape && mask.shape != one {
            let wanted = if self.images.is_batch { format!(" or {:?}", self.shape) } else { String::new() };
            return Err(PyValueError::new_err(format!(
                "mask must be of shape {one:?}{wanted}, got {:?}",
                mask.shape
            )));
        }
        let axes = mask.shape.len() - 2;
        let layout = mask
            .row_and_plane(axes)
            .and_then(|(stride, apart)| Some((u32::try_from(stride).ok()?, apart as u64)));
        let (stride, apart) = layout.ok_or_else(|| {
            PyValueError::new_err(
                "the items of a row of mask must be together and rows must go down; pass mask.contiguous() of torch, \
                 cupy.ascontiguousarray(mask) of CuPy",
            )
        })?;
        self.join("mask", &mask)?;
        self.mask = Some(Mask { array: mask, stride, apart });
        Ok(())
    }

    fn take_prior(&mut self, array: &Bound<'py, PyAny>, stream: Option<usize>) -> PyResult<()> {
        if !is_on_device(array)? {
            return Err(PyTypeError::new_err("prior must be an array on the device of the image"));
        }
        let prior = Foreign::new(array, "prior", "integers or bool", stream)?;
        if prior.dtype == Dtype::F32 {
            return Err(prior.dtype_error());
        }
        let axes = prior.shape.len().saturating_sub(2);
        let is_taken = prior.shape.len() == 2
            || self.images.is_batch && prior.shape.len() == 3 && prior.shape[0] == self.images.count;
        let side = |i: usize| prior.shape.get(axes + i).and_then(|&side| u32::try_from(side).ok());
        let geometry = side(1).zip(side(0)).and_then(|(width, height)| Geometry::new(width, height).ok());
        let Some(geometry) = geometry.filter(|_| is_taken) else {
            let batch = if self.images.is_batch { " or, for a batch, (N, h, w)" } else { "" };
            return Err(PyValueError::new_err(format!(
                "prior must be of shape (h, w){batch}, with 1 to 16384 rows and columns; got {:?}",
                prior.shape
            )));
        };
        let item = prior.dtype.bytes();
        let is_whole = |bytes: &[usize]| {
            prior.address.is_multiple_of(item as u64) && bytes.iter().all(|bytes| bytes.is_multiple_of(item))
        };
        let layout = prior.row_and_plane(axes).filter(|&(stride, apart)| is_whole(&[stride, apart]));
        let layout =
            layout.and_then(|(stride, apart)| Some((u32::try_from(stride / item).ok()?, apart as u64)));
        let (stride, apart) = layout.ok_or_else(|| {
            PyValueError::new_err(
                "the items of a row of prior must be together and rows must go down; pass prior.contiguous() of torch, \
                 cupy.ascontiguousarray(prior) of CuPy",
            )
        })?;
        self.join("prior", &prior)?;
        let first = RawPrior { address: prior.address, bytes: item as u32, geometry, stride };
        self.prior = Some(Prior { array: prior, first, apart });
        Ok(())
    }

    fn take_out(&mut self, array: &Bound<'py, PyAny>, stream: Option<usize>, first: i32) -> PyResult<()> {
        if !is_on_device(array)? {
            return Err(PyTypeError::new_err("out must be an array on the device of the image"));
        }
        let may_be_short = first == 0 && self.mask.is_none();
        let wanted = if may_be_short { "int32 or uint16" } else { "int32" };
        let out = Foreign::new(array, "out", wanted, stream)?;
        self.kind = match out.dtype {
            Dtype::I32 => LabelType::I32 { first },
            Dtype::U16 if may_be_short => LabelType::U16,
            _ => return Err(out.dtype_error()),
        };
        self.join("out", &out)?;
        let shape = &self.shape;
        if out.shape != *shape {
            return Err(PyValueError::new_err(format!(
                "out must be of shape {shape:?}, got {:?}",
                out.shape
            )));
        }
        if out.is_read_only {
            return Err(PyValueError::new_err("out is read-only"));
        }
        let axes = usize::from(self.images.is_batch);
        let (stride, apart) = out.row_and_plane(axes).ok_or_else(|| {
            PyValueError::new_err(
                "the labels of a row of out must be together and rows must go down; pass a new array",
            )
        })?;
        if self.images.count > 0 {
            self.refuse_overlap(&out)?;
        }
        self.target = Target::Given { address: out.address, stride, apart: apart as u64 };
        self.result = Some(array.clone());
        self.out = Some(out);
        Ok(())
    }

    fn refuse_overlap(&self, out: &Foreign<'py>) -> PyResult<()> {
        let own = out.span()?;
        let mask = self.mask.as_ref().map(|mask| &mask.array);
        let prior = self.prior.as_ref().map(|prior| &prior.array);
        let others = [("image", Some(&self.image)), ("mask", mask), ("prior", prior)];
        for (what, array) in others {
            let Some(array) = array else { continue };
            let other = array.span()?;
            if own.start < other.end && other.start < own.end {
                return Err(PyValueError::new_err(format!("out and {what} must not share memory")));
            }
        }
        Ok(())
    }

    /// A new array of the image's library. Its memory may be in use on the stream that the library is on.
    fn take_new(&mut self, py: Python<'py>) -> PyResult<()> {
        let Self { image: Foreign { library, ordinal, .. }, shape, .. } = self;
        if let Some((array, address)) = library.empty(py, *ordinal, Dtype::I32, shape)? {
            if let Some(stream) = streams::current(py, library, *ordinal)? {
                self.streams.take_turn(stream);
            }
            let [.., height, width] = shape[..] else { return Ok(()) };
            let stride = self.kind.bytes() * width;
            self.target = Target::Given { address, stride, apart: (stride * height) as u64 };
            self.result = Some(array);
        }
        Ok(())
    }

    /// Number of the device.
    pub fn ordinal(&self) -> i32 {
        self.image.ordinal
    }

    /// Size and format of the images.
    pub fn info(&self) -> FrameInfo {
        self.images.info
    }

    /// The lowest label, in 32 bits.
    ///
    /// # Errors
    ///
    /// `out` has 16.
    pub fn first_label(&self) -> PyResult<i32> {
        match self.kind {
            LabelType::I32 { first } => Ok(first),
            LabelType::U16 => {
                Err(PyTypeError::new_err("out must be int32 where there are more than 65535 superpixels"))
            }
        }
    }

    /// Returns true for a batch or clip.
    pub fn is_batch(&self) -> bool {
        self.images.is_batch
    }

    /// Returns true if there are masks.
    pub fn is_masked(&self) -> bool {
        self.mask.is_some()
    }

    /// Returns true if there are priors.
    pub fn has_prior(&self) -> bool {
        self.prior.is_some()
    }

    /// Refuses memory that kernels of this device do not reach.
    pub fn check_context(&self, cuda: &Cuda) -> PyResult<()> {
        let context = cuda.context_handle();
        let mask = self.mask.iter().map(|mask| &mask.array);
        let prior = self.prior.iter().map(|prior| &prior.array);
        let mut arrays = self.out.iter().chain(mask).chain(prior).chain([&self.image]);
        arrays.try_for_each(|array| array.check_context(context))
    }

    /// The task for an engine.
    pub fn task(&self) -> Task<'_> {
        let (masks, priors) = (self.mask.as_ref(), self.prior.as_ref());
        let frames = (0..self.images.count).map(|i| RawFrame {
            mask: masks.map(|Mask { array, stride, apart }| (array.address + i as u64 * apart, *stride)),
            prior: priors.map(|Prior { first, apart, .. }| RawPrior {
                address: first.address + i as u64 * apart,
                ..*first
            }),
            ..self.images.frame(i)
        });
        Task {
            info: self.images.info,
            frames: frames.collect(),
            target: self.target,
            kind: self.kind,
            streams: &self.streams,
            check: self.check,
            together: false,
        }
    }

    /// The library of the image.
    pub fn library(&self, py: Python<'_>) -> Library {
        self.image.library.clone_ref(py)
    }

    /// The labels, where `memory` is what the engine took for them.
    pub fn finish(self, py: Python<'py>, memory: Option<DeviceMemory>) -> PyResult<Bound<'py, PyAny>> {
        match (self.result, memory) {
            (Some(array), _) => Ok(array),
            (None, Some(memory)) => {
                let labels = DeviceArray::whole(Shared::new(memory), Dtype::I32, &self.shape);
                Ok(Bound::new(py, labels)?.into_any())
            }
            (None, None) => Err(PyValueError::new_err("no labels came out")),
        }
    }
}
