// SPDX-License-Identifier: MPL-2.0
//! Arrays of numpy as masks, which say what pixels of an image are segmented.

use numpy::{PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::arrays::{Images, as_numpy, is_host_array, refuse_masked};
use crate::error::exception;
use crate::foreign::is_on_device;
use crate::memory;

const DTYPE: &str = "mask must be an array of bool or uint8";

/// Copies of masks: one byte a pixel. They are small beside the images, and nobody can write to them meanwhile.
pub struct Masks {
    bytes: Vec<u8>,
    /// Bytes of a mask.
    pixels: usize,
}

impl Masks {
    /// Takes (H, W) for one image or all of a batch, or (N, H, W) for a batch, of bool or uint8 in any layout; what is not 0 is
    /// inside.
    pub fn new(mask: &Bound<'_, PyAny>, images: &Images<'_>) -> PyResult<Self> {
        refuse_masked("mask", mask)?;
        let seen = if !is_on_device(mask)? && is_host_array(mask)? { as_numpy(mask)? } else { mask.clone() };
        let Ok(untyped) = seen.cast::<PyUntypedArray>() else {
            if is_on_device(mask)? {
                return Err(PyTypeError::new_err(
                    "mask is on a device and image is not; they must be in one place",
                ));
            }
            let name = mask.get_type().name()?;
            return Err(PyTypeError::new_err(format!("{DTYPE}, got {name}; np.asarray(mask) may make one")));
        };
        let geometry = images.info().geometry;
        let (height, width) = (geometry.height() as usize, geometry.width() as usize);
        let wanted = match images.count() {
            (count, true) => vec![vec![height, width], vec![count, height, width]],
            (_, false) => vec![vec![height, width]],
        };
        let shape = untyped.shape();
        if !wanted.iter().any(|wanted| wanted == shape) {
            let wanted: Vec<_> = wanted.iter().map(|shape| format!("{shape:?}")).collect();
            let wanted = wanted.join(" or ");
            return Err(PyValueError::new_err(format!("mask must be of shape {wanted}, got {shape:?}")));
        }
        // The bytes of numpy's bool may be others than 0 and 1, which Rust's may not.
        let is_bool = untyped.dtype().kind() == b'b';
        let bytes = if is_bool { untyped.call_method1("view", ("uint8",))? } else { seen.clone() };
        let Ok(array) = bytes.cast::<PyArrayDyn<u8>>() else {
            let dtype = untyped.dtype();
            return Err(PyTypeError::new_err(format!("{DTYPE}, got {dtype}; pass mask.astype(bool)")));
        };
        let array = array
            .try_readonly()
            .map_err(|_| PyRuntimeError::new_err("mask is the `out` of a call in another thread"))?;
        let mut copy = Vec::new();
        memory::reserve("mask", &mut copy, array.len()).map_err(exception)?;
        copy.extend(array.as_array().iter());
        Ok(Self { bytes: copy, pixels: height * width })
    }

    /// How many there are: one for all images, or one for each.
    pub fn count(&self) -> usize {
        self.bytes.len() / self.pixels
    }

    /// The mask of image `i`.
    pub fn plane(&self, i: usize) -> &[u8] {
        let count = self.count();
        if count == 0 { &[] } else { &self.bytes[i % count * self.pixels..][..self.pixels] }
    }
}
