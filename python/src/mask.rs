// SPDX-License-Identifier: MPL-2.0
//! Arrays of numpy as masks, which say what pixels of images are segmented.

use gstsuperpixel::error::{Error, Result};
use gstsuperpixel::image::Frame;
use numpy::{PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::arrays::Images;
use crate::error::exception;

const DTYPE: &str = "mask must be an array of bool or uint8";

/// A copy of a mask: one byte a pixel. It is small beside the images, and nobody can write to it meanwhile.
pub struct Mask {
    bytes: Vec<u8>,
    /// Of an image.
    pixels: usize,
}

impl Mask {
    /// Takes (H, W) for all images, or (N, H, W) for those of a batch, of bool or uint8 in any layout; what is not 0 is inside.
    pub fn new(mask: &Bound<'_, PyAny>, images: &Images<'_>) -> PyResult<Self> {
        let Ok(untyped) = mask.cast::<PyUntypedArray>() else {
            let name = mask.get_type().name()?;
            return Err(PyTypeError::new_err(format!("{DTYPE}, got {name}; np.asarray(mask) may make one")));
        };
        let geometry = images.info().geometry;
        let (count, is_batch) = images.count();
        let shape = [count, geometry.height() as usize, geometry.width() as usize];
        let got = untyped.shape();
        if got != &shape[1..] && (got != shape || !is_batch) {
            let wanted = &shape[1..];
            return Err(PyValueError::new_err(format!("mask must be of shape {wanted:?}, got {got:?}")));
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
        let (mut bytes, len) = (Vec::new(), array.len());
        bytes.try_reserve_exact(len).map_err(|_| exception(Error::Memory { what: "mask", bytes: len }))?;
        bytes.extend(array.as_array().iter());
        Ok(Self { bytes, pixels: geometry.pixels() })
    }

    /// What counts for an image.
    pub fn of(&self, image: usize) -> &[u8] {
        if self.bytes.len() == self.pixels {
            &self.bytes
        } else {
            &self.bytes[image * self.pixels..][..self.pixels]
        }
    }

    /// The frame with a mask, if there is one.
    pub fn on<'a>(mask: Option<&'a [u8]>, frame: &Frame<'a>) -> Result<Frame<'a>> {
        let width = frame.info().geometry.width() as usize;
        mask.map_or(Ok(*frame), |mask| frame.with_mask(mask, width))
    }
}
