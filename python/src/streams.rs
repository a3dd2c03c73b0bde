// SPDX-License-Identifier: MPL-2.0
//! CUDA streams of the caller: which one a call takes its place on.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

use crate::library::Library;

/// The handle of the legacy default stream, which arrays' protocols call 1.
pub const DEFAULT: usize = 0;

/// A `CUstream` from a number, or from an object that has one: of torch, CuPy, cuda.core or whatever has `ptr`.
pub fn handle(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let py = value.py();
    let number = if let Some(method) = value.getattr_opt(intern!(py, "__cuda_stream__"))? {
        let (_, number): (i64, Bound<'_, PyAny>) = method.call0()?.extract()?;
        number
    } else if let Some(number) = value.getattr_opt(intern!(py, "cuda_stream"))? {
        number
    } else if let Some(number) = value.getattr_opt(intern!(py, "ptr"))? {
        number
    } else {
        value.clone()
    };
    let number = number.call_method0(intern!(py, "__index__")).map_err(|_| {
        let name = value.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "stream must be the handle of a CUDA stream, or an object with cuda_stream or ptr, got {name}"
        ))
    })?;
    match number.extract::<usize>() {
        Ok(1) => Ok(DEFAULT),
        Ok(handle) => Ok(handle),
        Err(_) => Err(PyValueError::new_err("stream must be the handle of a CUDA stream, 0 or a pointer")),
    }
}

/// The stream that a library is on now; nothing where it does not say.
pub fn current(py: Python<'_>, library: &Library, ordinal: i32) -> PyResult<Option<usize>> {
    let (module, function) = match library {
        Library::Torch(module) => (module, "current_stream"),
        Library::CuPy(module) => (module, "get_current_stream"),
        Library::Other => return Ok(None),
    };
    let stream = module.bind(py).getattr(intern!(py, "cuda"))?.getattr(function)?.call1((ordinal,))?;
    handle(&stream).map(Some)
}
