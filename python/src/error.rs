// SPDX-License-Identifier: MPL-2.0
//! The library's errors as exceptions of Python, with parameters under the names that they have there.

use gstsuperpixel::error::{DeviceFailure, Error};
use pyo3::PyErr;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};

use crate::names::python_name;

/// Why a call failed.
pub enum Failure {
    /// An error of the library.
    Library(Error),
    /// A value of an array.
    Value(String),
    /// What Python code has raised meanwhile: a handler of a signal, or a report of progress.
    Python(PyErr),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Library(error) => exception(error),
            Failure::Value(text) => PyValueError::new_err(text),
            Failure::Python(error) => error,
        }
    }
}

/// Advice about a device that has failed.
fn advice(failure: DeviceFailure) -> &'static str {
    match failure {
        DeviceFailure::Memory => "close other users of the device, take smaller images or use the CPU",
        DeviceFailure::Kernels => "update the driver (525 or newer) or use the CPU",
        _ => {
            "delete every segmenter of the device and try again; if that does not help, restart the process, check \
             nvidia-smi or use the CPU"
        }
    }
}

/// `ValueError` for what the caller gave, `MemoryError`, and `RuntimeError` for the rest.
pub fn exception(error: Error) -> PyErr {
    let text = match error.device_failure() {
        None => error.to_string(),
        Some(failure) => format!("{error}; {}", advice(failure)),
    };
    match error {
        Error::Param { name, .. } | Error::Value { name, .. } => {
            PyValueError::new_err(text.replacen(name, &python_name(name), 1))
        }
        Error::Plane { .. }
        | Error::Stride { .. }
        | Error::Frame { .. }
        | Error::Labels { .. }
        | Error::Mask
        | Error::Prior
        | Error::Geometry { .. } => PyValueError::new_err(text),
        Error::Memory { .. } => PyMemoryError::new_err(text),
        _ => PyRuntimeError::new_err(text),
    }
}
