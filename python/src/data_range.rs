// SPDX-License-Identifier: MPL-2.0
//! What values of an image are black and white, as the caller says it.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

/// The values that become the least and the highest code.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum DataRange {
    /// All codes of uint8 and uint16, and [0, 1] of floats, which have to be in it.
    #[default]
    OfType,
    /// These two. What is below or above becomes one of them.
    Given(f64, f64),
    /// The least and the highest value of each image, inside of its mask.
    OfImage,
    /// All codes, of which the library then finds those that frames use: gray of uint16.
    Stretched,
}

impl DataRange {
    /// `None`, a pair of numbers, or a word.
    pub fn new(value: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(value) = value else { return Ok(Self::OfType) };
        if let Ok(word) = value.cast::<PyString>() {
            return match &*word.to_string_lossy() {
                "image" => Ok(Self::OfImage),
                "stretch" => Ok(Self::Stretched),
                other => Err(PyValueError::new_err(format!(
                    "data_range must be (low, high), 'image' or 'stretch', got '{other}'"
                ))),
            };
        }
        let Ok((low, high)) = value.extract::<(f64, f64)>().or_else(|_| {
            let pair: [f64; 2] = value.extract()?;
            Ok::<_, PyErr>((pair[0], pair[1]))
        }) else {
            return Err(PyTypeError::new_err(
                "data_range must be None, two numbers (low, high), 'image' or 'stretch'",
            ));
        };
        // Their difference, too, has to be a number.
        if !(low < high && (high - low).is_finite()) {
            return Err(PyValueError::new_err(format!(
                "data_range must be two finite numbers, the lower first, got ({low}, {high})"
            )));
        }
        Ok(Self::Given(low, high))
    }

    /// Whether codes of a type, of which the highest is `white`, are taken as they are.
    pub fn keeps_codes(self, white: f64) -> bool {
        matches!(self, Self::OfType | Self::Stretched) || self == Self::Given(0.0, white)
    }
}
