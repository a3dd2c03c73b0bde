// SPDX-License-Identifier: MPL-2.0
//! Arrays of numpy as masks, which say what pixels of an image are segmented.

use gstsuperpixel::error::Error;
use gstsuperpixel::image::{Frame, FrameInfo};
use numpy::{PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::error::exception;

const DTYPE: &str = "mask must be an array of bool or uint8";

/// A copy of a mask: one byte a pixel. It is small beside the image, and nobody can write to it meanwhile.
pub struct Mask(Vec<u8>);

impl Mask {
    /// Takes (H, W) of bool or uint8, in any layout; what is not 0 is inside.
    pub fn new(mask: &Bound<'_, PyAny>, info: FrameInfo) -> PyResult<Self> {
        let Ok(untyped) = mask.cast::<PyUntypedArray>() else {
            let name = mask.get_type().name()?;
            return Err(PyTypeError::new_err(format!("{DTYPE}, got {name}; np.asarray(mask) may make one")));
        };
        let shape = [info.geometry.height() as usize, info.geometry.width() as usize];
        if untyped.shape() != shape {
            let got = untyped.shape();
            return Err(PyValueError::new_err(format!("mask must be of shape {shape:?}, got {got:?}")));
        }
        // The bytes of numpy's bool may be others than 0 and 1, which Rust's may not.
        let is_bool = untyped.dtype().kind() == b'b';
        let bytes = if is_bool { mask.call_method1("view", ("uint8",))? } else { mask.clone() };
        let Ok(array) = bytes.cast::<PyArrayDyn<u8>>() else {
            let dtype = untyped.dtype();
            return Err(PyTypeError::new_err(format!("{DTYPE}, got {dtype}; pass mask.astype(bool)")));
        };
        let array = array
            .try_readonly()
            .map_err(|_| PyRuntimeError::new_err("mask is the `out` of a call in another thread"))?;
        let (mut copy, pixels) = (Vec::new(), info.geometry.pixels());
        copy.try_reserve_exact(pixels)
            .map_err(|_| exception(Error::Memory { what: "mask", bytes: pixels }))?;
        copy.extend(array.as_array().iter());
        Ok(Self(copy))
    }

    /// The frame with this mask, if there is one.
    pub fn on<'a>(mask: Option<&'a Self>, frame: Frame<'a>) -> PyResult<Frame<'a>> {
        let width = frame.info().geometry.width() as usize;
        mask.map_or(Ok(frame), |mask| frame.with_mask(&mask.0, width)).map_err(exception)
    }
}
