// SPDX-License-Identifier: MPL-2.0
//! How the caller wants an image to be read: where its channels are, which of them count, and what their values mean.

use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

use crate::data_range::DataRange;
use crate::order::Order;

/// Most bands of an image of which some are chosen.
const MOST_BANDS: usize = 1024;

/// How an image is to be read.
#[derive(Debug, Clone)]
pub struct Reading {
    pub order: Order,
    pub range: DataRange,
    bands: Option<Vec<usize>>,
    channel_axis: Option<isize>,
}

impl Reading {
    /// From the arguments of those names.
    pub fn new(
        order: &str,
        range: Option<&Bound<'_, PyAny>>,
        bands: Option<&Bound<'_, PyAny>>,
        channel_axis: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let channel_axis = channel_axis.map(|axis| {
            axis.extract().map_err(|_| PyTypeError::new_err("channel_axis must be None or an integer"))
        });
        Ok(Self {
            order: Order::new(order)?,
            range: DataRange::new(range)?,
            bands: bands.map(band_numbers).transpose()?,
            channel_axis: channel_axis.transpose()?,
        })
    }

    /// Refuses what is for arrays in the host's memory alone.
    pub fn check_for_device(&self) -> PyResult<()> {
        if self.range != DataRange::OfType {
            return Err(PyValueError::new_err(
                "data_range is for images in the host's memory; on a device scale them: (image - low) / (high - low) in float32",
            ));
        }
        if self.bands.is_some() || self.channel_axis.is_some() {
            return Err(PyValueError::new_err(
                "bands and channel_axis are for images in the host's memory; on a device index them: image.permute(1, 2, 0)[..., bands]",
            ));
        }
        Ok(())
    }

    /// The array with its channels last, and with those alone that count: a view, or a copy where bands are chosen.
    pub fn arrange<'py>(&self, array: Bound<'py, PyUntypedArray>) -> PyResult<Bound<'py, PyUntypedArray>> {
        let py = array.py();
        let array = match self.channel_axis {
            None => array,
            Some(axis) => {
                let sides = array.ndim() as isize;
                if array.ndim() < 3 || !(-sides..sides).contains(&axis) {
                    return Err(PyValueError::new_err(format!(
                        "channel_axis={axis} is no axis of channels of an image of shape {:?}; gray images have none",
                        array.shape()
                    )));
                }
                let numpy = py.import(intern!(py, "numpy"))?;
                numpy.call_method1("moveaxis", (array, axis, -1))?.cast_into::<PyUntypedArray>()?
            }
        };
        let Some(bands) = &self.bands else { return Ok(array) };
        let all = match *array.shape() {
            [_, _, all] | [_, _, _, all] if all <= MOST_BANDS => all,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "bands are chosen from images of shape (H, W, B) or (N, H, W, B) with at most {MOST_BANDS} bands, got {:?}",
                    array.shape()
                )));
            }
        };
        if let Some(band) = bands.iter().find(|&&band| band >= all) {
            return Err(PyValueError::new_err(format!(
                "bands are counted from 0 to {}, got {band}",
                all - 1
            )));
        }
        Ok(array.call_method1("take", (bands.clone(), -1))?.cast_into::<PyUntypedArray>()?)
    }
}

/// One band or three.
fn band_numbers(value: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let one = value.extract::<usize>().map(|band| vec![band]);
    match one.or_else(|_| value.extract::<Vec<usize>>()) {
        Ok(bands) if matches!(bands.len(), 1 | 3) => Ok(bands),
        Ok(bands) => Err(PyValueError::new_err(format!(
            "bands must be one, or three for red, green and blue in the order of `order`, got {}",
            bands.len()
        ))),
        Err(_) => Err(PyTypeError::new_err("bands must be numbers of bands from 0, one or three")),
    }
}
