// SPDX-License-Identifier: MPL-2.0
//! Arrays of numpy that take labels: planes of one image or of a batch, written where they are.

use gstsuperpixel::image::Geometry;
use numpy::{
    Element, PyArrayDyn, PyArrayMethods, PyReadwriteArrayDyn, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::arrays::{Images, as_numpy, in_use, is_host_array, refuse_masked};

/// Returns true for an array of uint32 in the host's memory.
pub fn is_uint32(out: &Bound<'_, PyAny>) -> PyResult<bool> {
    let seen = if is_host_array(out)? { as_numpy(out)? } else { out.clone() };
    Ok(seen.cast::<PyArrayDyn<u32>>().is_ok())
}

/// An array of labels, made here or by the caller: for one image, or for a batch.
pub struct LabelArray<'py, T: Element> {
    array: PyReadwriteArrayDyn<'py, T>,
    geometry: Geometry,
    /// Labels from one row to the next.
    stride: usize,
    /// Number of planes, and labels from one to the next.
    count: usize,
    apart: usize,
}

impl<'py, T: Element> LabelArray<'py, T> {
    /// `out`, or where that is `None` a new array, of the images' size.
    pub fn new(py: Python<'py>, out: Option<&Bound<'py, PyAny>>, images: &Images<'_>) -> PyResult<Self> {
        let geometry = images.info().geometry;
        let (height, width) = (geometry.height() as usize, geometry.width() as usize);
        let (count, is_batch) = images.count();
        let shape = &[count, height, width][usize::from(!is_batch)..];
        let array = match out {
            // They may be larger than memory, which numpy itself answers with an exception.
            None => {
                let array = py.import("numpy")?.call_method1("zeros", (shape, T::get_dtype(py)))?;
                array.cast_into::<PyArrayDyn<T>>()?
            }
            Some(out) => Self::check(py, out, shape)?,
        };
        let strides = &array.strides()[usize::from(is_batch)..];
        let stride = if height == 1 { width } else { strides[0] as usize / size_of::<T>() };
        let len = stride * (height - 1) + width;
        let apart = if count < 2 { len } else { array.strides()[0] as usize / size_of::<T>() };
        let (start, all) = (array.data() as usize, apart * count.saturating_sub(1) + len);
        if count > 0 && images.is_within(start, start + size_of::<T>() * all) {
            return Err(PyValueError::new_err("out and image must not share memory"));
        }
        let array = array.try_readwrite().map_err(|_| in_use("out"))?;
        Ok(Self { array, geometry, stride, count, apart })
    }

    fn check(
        py: Python<'py>,
        out: &Bound<'py, PyAny>,
        shape: &[usize],
    ) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
        refuse_masked("out", out)?;
        let wanted = T::get_dtype(py);
        // An array of another library in the host's memory is one of numpy over the same memory.
        let seen = if is_host_array(out)? { as_numpy(out)? } else { out.clone() };
        let Ok(untyped) = seen.cast::<PyUntypedArray>() else {
            return Err(PyTypeError::new_err(format!("out must be an array of {wanted}")));
        };
        let Ok(array) = untyped.cast::<PyArrayDyn<T>>() else {
            let got = untyped.dtype();
            return Err(PyTypeError::new_err(format!("out must be an array of {wanted}, got {got}")));
        };
        if array.shape() != shape {
            let got = array.shape();
            return Err(PyValueError::new_err(format!("out must be of shape {shape:?}, got {got:?}")));
        }
        // From the innermost axis on, what is further out goes over what is further in. What there is one of has no distance to the
        // next.
        let item = size_of::<T>();
        let mut least = item;
        let mut is_together = array.data().is_aligned();
        for (axis, (&side, &apart)) in shape.iter().zip(array.strides()).enumerate().rev() {
            let apart = if side > 1 { apart } else { least as isize };
            let is_last = axis + 1 == shape.len();
            is_together &= apart >= least as isize && apart % item as isize == 0;
            is_together &= !is_last || apart == item as isize;
            least += apart.max(0) as usize * side.saturating_sub(1);
        }
        if !is_together {
            return Err(PyValueError::new_err(
                "the labels of a row of out must be together and rows must go down; \
                 pass an array from np.empty",
            ));
        }
        if !untyped.getattr("flags")?.getattr("writeable")?.is_truthy()? {
            return Err(PyValueError::new_err("out is read-only"));
        }
        Ok(array.clone())
    }

    /// Labels from one row to the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Each plane from the first label to the last, with what is between rows.
    pub fn planes(&mut self) -> impl Iterator<Item = &mut [T]> {
        let (width, height) = (self.geometry.width() as usize, self.geometry.height() as usize);
        let len = self.stride * (height - 1) + width;
        let all = if self.count == 0 { 0 } else { self.apart * (self.count - 1) + len };
        // SAFETY: numpy keeps `all` items from there on, aligned and writeable, as `check` found from shape, strides and flags;
        // the array is held, and it is borrowed for writing: no other call of this module reads or writes it, and
        // `new` found no byte in common with the images. That Python code uses it in another thread meanwhile is the
        // caller's to prevent, as the documents say.
        let items = unsafe { std::slice::from_raw_parts_mut(self.array.data(), all) };
        items.chunks_mut(self.apart).map(move |plane| &mut plane[..len])
    }

    /// The array, to be returned.
    pub fn into_array(self) -> Bound<'py, PyAny> {
        let array: &Bound<'py, PyArrayDyn<T>> = &self.array;
        array.clone().into_any()
    }
}
