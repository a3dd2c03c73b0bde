// SPDX-License-Identifier: MPL-2.0
//! Arrays of other libraries on a device, by DLPack or `__cuda_array_interface__`. Nothing that they say is believed unchecked.

use std::ops::Range;

use gstsuperpixel::cuda::owner_of;
use numpy::PyUntypedArray;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::dlpack::{self, DataType};
use crate::error::exception;
use crate::library::{Dtype, Library};
use crate::streams;

/// An array in device memory.
pub struct Foreign<'py> {
    /// Name and allowed types of the array, for errors.
    what: &'static str,
    wanted: &'static str,
    pub address: u64,
    /// The `CUcontext` that the memory is of; 0 where it is of none.
    context: usize,
    pub ordinal: i32,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    /// In bytes.
    pub strides: Vec<i64>,
    pub is_read_only: bool,
    pub library: Library,
    /// Streams that have it once they have passed what is on them now.
    pub ready_on: Vec<usize>,
    /// The stream that it is used on, where that is known.
    pub stream: Option<usize>,
    /// Keeps the memory.
    _holder: Bound<'py, PyAny>,
}

/// Returns true if an object declares itself an array on a device.
pub fn is_on_device(array: &Bound<'_, PyAny>) -> PyResult<bool> {
    if array.cast::<PyUntypedArray>().is_ok() {
        return Ok(false);
    }
    let py = array.py();
    if let Some(device) = array.getattr_opt(intern!(py, "__dlpack_device__"))? {
        let (kind, _): (i64, i64) = device.call0()?.extract()?;
        return Ok([dlpack::CUDA, dlpack::CUDA_MANAGED].map(i64::from).contains(&kind));
    }
    array.hasattr(intern!(py, "__cuda_array_interface__"))
}

impl<'py> Foreign<'py> {
    /// Describes an array that [`is_on_device`]. `stream` is the caller's.
    pub fn new(
        array: &Bound<'py, PyAny>,
        what: &'static str,
        wanted: &'static str,
        stream: Option<usize>,
    ) -> PyResult<Self> {
        let py = array.py();
        let library = Library::of(array)?;
        let is_known = !matches!(library, Library::Other);
        let mut found = if is_known || array.hasattr(intern!(py, "__dlpack__"))? {
            // torch and CuPy are on streams that they name; others let the stream wait that they are told.
            let asked = if is_known {
                -1
            } else {
                stream.filter(|&stream| stream != 0).map_or(1, |stream| stream as i64)
            };
            Self::from_dlpack(array, (what, wanted), library, asked)?
        } else {
            Self::from_interface(array, (what, wanted), library)?
        };
        found.check_address()?;
        found.stream = match stream.or(found.stream) {
            None => streams::current(py, &found.library, found.ordinal)?,
            known => known,
        };
        found.ready_on.extend(found.stream);
        Ok(found)
    }

    fn from_dlpack(
        array: &Bound<'py, PyAny>,
        (what, wanted): (&'static str, &'static str),
        library: Library,
        stream: i64,
    ) -> PyResult<Self> {
        let imported = dlpack::import(array, stream)?;
        if ![dlpack::CUDA, dlpack::CUDA_MANAGED].contains(&imported.device.kind) {
            return Err(PyValueError::new_err(format!("{what} is not on a CUDA device")));
        }
        let DataType { code, bits, lanes } = imported.dtype;
        let dtype = match (code, bits, lanes) {
            (1, 8, 1) => Some(Dtype::U8),
            (1, 16, 1) => Some(Dtype::U16),
            (0, 16, 1) => Some(Dtype::I16),
            (0, 32, 1) => Some(Dtype::I32),
            (0, 64, 1) => Some(Dtype::I64),
            (2, 32, 1) => Some(Dtype::F32),
            (6, 8, 1) => Some(Dtype::Bool),
            _ => None,
        };
        let dtype = dtype.ok_or_else(|| {
            let kind = ["int", "uint", "float", "opaque", "bfloat", "complex", "bool"].get(usize::from(code));
            dtype_error(what, wanted, &format!("{}{bits}", kind.unwrap_or(&"type ")))
        })?;
        let shape = sizes(what, &imported.shape)?;
        let strides = match imported.strides {
            Some(strides) => strides
                .iter()
                .map(|stride| stride.checked_mul(dtype.bytes() as i64))
                .collect::<Option<Vec<_>>>()
                .ok_or_else(|| PyValueError::new_err(format!("{what} has strides beyond 64 bits")))?,
            None => together(what, &shape, dtype)?,
        };
        Ok(Self {
            what,
            wanted,
            address: imported.address,
            context: 0,
            ordinal: imported.device.id,
            dtype,
            shape,
            strides,
            is_read_only: imported.read_only,
            library,
            ready_on: if stream == 1 { vec![streams::DEFAULT] } else { Vec::new() },
            stream: None,
            _holder: imported.capsule,
        })
    }

    fn from_interface(
        array: &Bound<'py, PyAny>,
        (what, wanted): (&'static str, &'static str),
        library: Library,
    ) -> PyResult<Self> {
        let py = array.py();
        let interface = array.getattr(intern!(py, "__cuda_array_interface__"))?;
        let wrong =
            |reason: &str| PyValueError::new_err(format!("{what}.__cuda_array_interface__: {reason}"));
        let interface = interface.cast::<PyDict>().map_err(|_| wrong("not a dict"))?;
        let item = |name: &str| interface.get_item(name).map(|item| item.filter(|item| !item.is_none()));
        let needed = |name: &str| item(name)?.ok_or_else(|| wrong(&format!("no {name}")));
        let version: i64 = needed("version")?.extract()?;
        if version < 2 {
            return Err(wrong(&format!("version {version}; 2 and 3 are taken")));
        }
        if item("mask")?.is_some() {
            return Err(wrong("masked arrays are not taken"));
        }
        let typestr: String = needed("typestr")?.extract()?;
        let all = [Dtype::Bool, Dtype::U8, Dtype::U16, Dtype::I16, Dtype::I32, Dtype::I64, Dtype::F32];
        let dtype = all.into_iter().find(|dtype| {
            typestr == dtype.typestr() || (dtype.bytes() == 1 && typestr.get(1..) == dtype.typestr().get(1..))
        });
        let dtype = dtype.ok_or_else(|| dtype_error(what, wanted, &typestr))?;
        let shape: Vec<i64> =
            needed("shape")?.cast::<PyTuple>().map_err(|_| wrong("shape is no tuple"))?.extract()?;
        let shape = sizes(what, &shape)?;
        let strides = match item("strides")? {
            Some(strides) => strides.extract::<Vec<i64>>()?,
            None => together(what, &shape, dtype)?,
        };
        if strides.len() != shape.len() {
            return Err(wrong("as many strides as sizes are needed"));
        }
        let (address, is_read_only): (u64, bool) = needed("data")?.extract()?;
        let stream = match item("stream")? {
            Some(stream) => match stream.extract::<i64>()? {
                0 => return Err(wrong("stream 0 may mean either default stream; 1 and 2 name them")),
                _ => Some(streams::handle(&stream)?),
            },
            None => None,
        };
        let ordinal = match owner_of(address).map_err(exception)? {
            Some(owner) => owner.ordinal as i32,
            // Refused below.
            None => 0,
        };
        Ok(Self {
            what,
            wanted,
            address,
            context: 0,
            ordinal,
            dtype,
            shape,
            strides,
            is_read_only,
            library,
            ready_on: vec![stream.unwrap_or(streams::DEFAULT)],
            stream,
            _holder: array.clone(),
        })
    }

    /// Asks the driver whether it knows the memory at both of its ends.
    fn check_address(&mut self) -> PyResult<()> {
        let what = self.what;
        // Of nothing there is no memory; such a shape is refused later, or needs none.
        if self.shape.contains(&0) {
            return Ok(());
        }
        if self.address == 0 {
            return Err(PyValueError::new_err(format!("{what} is null")));
        }
        let span = self.span()?;
        for address in [self.address, span.start, span.end - 1] {
            let Some(owner) = owner_of(address).map_err(exception)? else {
                return Err(PyValueError::new_err(format!(
                    "{what} is not in memory that the CUDA driver knows"
                )));
            };
            if i32::try_from(owner.ordinal) != Ok(self.ordinal) {
                return Err(PyValueError::new_err(format!(
                    "{what} says that it is on device {}, but its memory is on device {}",
                    self.ordinal, owner.ordinal
                )));
            }
            self.context = owner.context;
        }
        Ok(())
    }

    /// The error of an array of another type than is wanted.
    pub fn dtype_error(&self) -> PyErr {
        dtype_error(self.what, self.wanted, self.dtype.name())
    }

    /// Refuses memory of another context than the one in use.
    pub fn check_context(&self, context: usize) -> PyResult<()> {
        if self.context == 0 || self.context == context {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "{} is in another CUDA context than the device's primary one, which torch, CuPy and this package use; copy it with one of \
             them",
            self.what
        )))
    }

    /// Bytes from row to row of planes (H, W) that rows go down in and hold their items together; nothing for others. The first `axes`
    /// axes are left out.
    pub fn rows(&self, axes: usize) -> Option<usize> {
        let [height, width] = *self.shape.get(axes..)? else { return None };
        let [down, right] = *self.strides.get(axes..)? else { return None };
        let item = self.dtype.bytes();
        let row = item.checked_mul(width)?;
        // The stride of an axis of length 1 has no meaning.
        if width > 1 && right != item as i64 {
            return None;
        }
        if height <= 1 {
            return Some(row);
        }
        usize::try_from(down).ok().filter(|&down| down >= row)
    }

    /// Bytes from one item of a batch to the next, each of which is `bytes` long; nothing where they overlap.
    pub fn planes(&self, bytes: usize) -> Option<usize> {
        match (self.shape.first()?, self.strides.first()?) {
            (0 | 1, _) => Some(bytes),
            (_, &apart) => usize::try_from(apart).ok().filter(|&apart| apart >= bytes),
        }
    }

    /// Bytes from row to row of planes as [`Self::rows`] takes them, and from one plane of a batch to the next: 0 for one plane.
    pub fn row_and_plane(&self, axes: usize) -> Option<(usize, usize)> {
        let stride = self.rows(axes)?;
        let row = self.shape[axes + 1].checked_mul(self.dtype.bytes())?;
        let bytes = stride.checked_mul(self.shape[axes].checked_sub(1)?)?.checked_add(row)?;
        Some((stride, if axes == 0 { 0 } else { self.planes(bytes)? }))
    }

    /// First byte and the one behind the last.
    pub fn span(&self) -> PyResult<Range<u64>> {
        let address = i128::from(self.address);
        let (mut start, mut end) = (address, address + self.dtype.bytes() as i128);
        for (&size, &stride) in self.shape.iter().zip(&self.strides) {
            let reach = (size as i128 - 1) * i128::from(stride);
            (start, end) = (start + reach.min(0), end + reach.max(0));
        }
        let beyond = |_| PyValueError::new_err(format!("{} ends beyond the end of memory", self.what));
        Ok(u64::try_from(start).map_err(beyond)?..u64::try_from(end).map_err(beyond)?)
    }
}

fn dtype_error(what: &str, wanted: &str, got: &str) -> PyErr {
    PyTypeError::new_err(format!("{what} must be an array of {wanted}, got {got}"))
}

fn sizes(what: &str, shape: &[i64]) -> PyResult<Vec<usize>> {
    let shape: Option<Vec<usize>> = shape.iter().map(|&size| usize::try_from(size).ok()).collect();
    shape.ok_or_else(|| PyValueError::new_err(format!("{what} has a size below zero")))
}

/// Strides in bytes of an array without gaps.
fn together(what: &str, shape: &[usize], dtype: Dtype) -> PyResult<Vec<i64>> {
    let mut strides = vec![0; shape.len()];
    let mut next = dtype.bytes() as i64;
    for (stride, &size) in strides.iter_mut().zip(shape).rev() {
        *stride = next;
        next = i64::try_from(size)
            .ok()
            .and_then(|size| next.checked_mul(size))
            .ok_or_else(|| PyValueError::new_err(format!("{what} is larger than 64 bits count")))?;
    }
    Ok(strides)
}
