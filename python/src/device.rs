// SPDX-License-Identifier: MPL-2.0
//! A call with a frame on a device: what is checked before it, and what comes out.

use gstsuperpixel::cuda::{Cuda, DeviceMemory, LabelType};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::arrays::{Order, frame_info};
use crate::device_array::{DeviceArray, Shared};
use crate::engines::{RawFrame, Streams, Target};
use crate::foreign::{Foreign, is_on_device};
use crate::library::{Dtype, Library};
use crate::streams;

/// A frame on a device and where its labels go.
pub struct Call<'py> {
    image: Foreign<'py>,
    frame: RawFrame,
    target: Target,
    kind: LabelType,
    streams: Streams,
    /// The array that comes out, unless it is ours.
    result: Option<Bound<'py, PyAny>>,
    /// Holds the memory of `out`.
    out: Option<Foreign<'py>>,
}

impl<'py> Call<'py> {
    /// Checks a frame that [`is_on_device`], `out` and `stream`. Labels are numbered from `first` on.
    pub fn new(
        image: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        stream: Option<&Bound<'py, PyAny>>,
        order: Order,
        first: i32,
    ) -> PyResult<Self> {
        let py = image.py();
        let stream = stream.map(streams::handle).transpose()?;
        let image = Foreign::new(image, "image", "uint8", stream)?;
        if image.dtype != Dtype::U8 {
            return Err(image.dtype_error());
        }
        let info = frame_info(&image.shape, order)?;
        let stride = image.rows().ok_or_else(|| {
            PyValueError::new_err(
                "the pixels of a row of image must be together and rows must go down; pass image.contiguous() of torch, \
                 cupy.ascontiguousarray(image) of CuPy",
            )
        })?;
        let stride =
            u32::try_from(stride).map_err(|_| PyValueError::new_err("rows of image are too far apart"))?;
        let frame = RawFrame { info, address: image.address, stride };
        let mut streams = Streams::new(image.stream.is_some());
        image.ready_on.iter().for_each(|&stream| streams.follow(stream));
        image.stream.iter().for_each(|&stream| streams.take_turn(stream));
        let kind = LabelType::I32 { first };
        let mut call = Self { image, frame, target: Target::Own, kind, streams, result: None, out: None };
        match out {
            Some(out) => call.take_out(out, stream, first)?,
            None => call.take_new(py)?,
        }
        Ok(call)
    }

    fn take_out(&mut self, array: &Bound<'py, PyAny>, stream: Option<usize>, first: i32) -> PyResult<()> {
        if !is_on_device(array)? {
            return Err(PyTypeError::new_err("out must be an array on the device of the image"));
        }
        let wanted = if first == 0 { "int32 or uint16" } else { "int32" };
        let out = Foreign::new(array, "out", wanted, stream)?;
        self.kind = match out.dtype {
            Dtype::I32 => LabelType::I32 { first },
            Dtype::U16 if first == 0 => LabelType::U16,
            _ => return Err(out.dtype_error()),
        };
        if out.ordinal != self.image.ordinal {
            return Err(PyValueError::new_err(format!(
                "out is on cuda:{} and image on cuda:{}; they must be on one device",
                out.ordinal, self.image.ordinal
            )));
        }
        let shape = &self.image.shape[..2];
        if out.shape != shape {
            return Err(PyValueError::new_err(format!(
                "out must be of shape {shape:?}, got {:?}",
                out.shape
            )));
        }
        if out.is_read_only {
            return Err(PyValueError::new_err("out is read-only"));
        }
        let stride = out.rows().ok_or_else(|| {
            PyValueError::new_err(
                "the labels of a row of out must be together and rows must go down; pass a new array",
            )
        })?;
        let (start, end) = out.span(stride)?;
        let (image_start, image_end) = self.image.span(self.frame.stride as usize)?;
        if start < image_end && image_start < end {
            return Err(PyValueError::new_err("out and image must not share memory"));
        }
        out.ready_on.iter().for_each(|&stream| self.streams.follow(stream));
        out.stream.iter().for_each(|&stream| self.streams.take_turn(stream));
        self.streams.is_ordered &= out.stream.is_some();
        self.target = Target::Given(out.address, stride);
        self.result = Some(array.clone());
        self.out = Some(out);
        Ok(())
    }

    /// A new array of the image's library. Its memory may be in use on the stream that the library is on.
    fn take_new(&mut self, py: Python<'py>) -> PyResult<()> {
        let Self { image: Foreign { library, ordinal, shape, .. }, .. } = self;
        if let Some((array, address)) = library.empty(py, *ordinal, Dtype::I32, &shape[..2])? {
            if let Some(stream) = streams::current(py, library, *ordinal)? {
                self.streams.take_turn(stream);
            }
            self.target = Target::Given(address, self.kind.bytes() * shape[1]);
            self.result = Some(array);
        }
        Ok(())
    }

    /// Number of the device.
    pub fn ordinal(&self) -> i32 {
        self.image.ordinal
    }

    /// Refuses memory that kernels of this device do not reach.
    pub fn check_context(&self, cuda: &Cuda) -> PyResult<()> {
        let context = cuda.context_handle();
        self.out.iter().chain([&self.image]).try_for_each(|array| array.check_context(context))
    }

    /// What an engine takes.
    pub fn parts(&self) -> (RawFrame, (Target, LabelType), &Streams) {
        (self.frame, (self.target, self.kind), &self.streams)
    }

    /// Whose the image is.
    pub fn library(&self, py: Python<'_>) -> Library {
        self.image.library.clone_ref(py)
    }

    /// The labels, where `memory` is what the engine took for them.
    pub fn finish(self, py: Python<'py>, memory: Option<DeviceMemory>) -> PyResult<Bound<'py, PyAny>> {
        match (self.result, memory) {
            (Some(array), _) => Ok(array),
            (None, Some(memory)) => {
                let labels = DeviceArray::whole(Shared::new(memory), Dtype::I32, &self.image.shape[..2]);
                Ok(Bound::new(py, labels)?.into_any())
            }
            (None, None) => Err(PyValueError::new_err("no labels came out")),
        }
    }
}
