// SPDX-License-Identifier: MPL-2.0
//! Order of an image's channels, by the names that Python has for it.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

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
