// SPDX-License-Identifier: MPL-2.0
//! How the caller wants an image to be read: where its channels are, which of them count, and what their values mean.

use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::data_range::DataRange;
use crate::order::Order;

/// Most bands of an image of which some are chosen.
const MOST_BANDS: usize = 1024;

/// Shape and strides of an array, and bytes from its first element to the first that counts.
pub struct Axes {
    pub shape: Vec<usize>,
    pub strides: Vec<i64>,
    pub offset: i64,
}

/// How an image is to be read.
#[derive(Debug, Clone)]
pub struct Reading {
    pub order: Order,
    pub range: DataRange,
    bands: Bands,
    channel_axis: Option<isize>,
}

/// Which bands count.
#[derive(Debug, Clone)]
enum Bands {
    /// Those of an image that has one or three, and maybe alpha.
    OfImage,
    /// One, or three.
    Chosen(Vec<usize>),
    /// The components of all.
    Components,
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
        let (range, bands) = (DataRange::new(range)?, Bands::new(bands)?);
        if matches!((&bands, range), (Bands::Components, DataRange::OfImage | DataRange::Stretched)) {
            return Err(PyValueError::new_err(
                "bands='pca' finds its range in each image; data_range must be None, or (low, high) to cut values off before",
            ));
        }
        Ok(Self { order: Order::new(order)?, range, bands, channel_axis: channel_axis.transpose()? })
    }

    /// Whether the components of all bands are the channels.
    pub fn is_by_components(&self) -> bool {
        matches!(self.bands, Bands::Components)
    }

    /// The axes of an array on a device with its channels last, and with those alone that count: bands that are equally far apart.
    pub fn arrange_axes(&self, axes: Axes) -> PyResult<Axes> {
        let Axes { mut shape, mut strides, mut offset } = axes;
        if self.is_by_components() {
            return Err(PyValueError::new_err(
                "bands='pca' is for images in the host's memory; copy it there, by image.cpu() of torch or image.get() of CuPy, or choose \
                 three bands",
            ));
        }
        if let Some(axis) = self.channel_axis(&shape)? {
            let (side, apart) = (shape.remove(axis), strides.remove(axis));
            shape.push(side);
            strides.push(apart);
        }
        if let Some((bands, _)) = self.bands(&shape)? {
            let last = shape.len() - 1;
            let step = match *bands {
                [first, second, third] if second as i64 - first as i64 != third as i64 - second as i64 => {
                    return Err(PyValueError::new_err(
                        "bands of an image on a device must be equally far apart; choose others by image[..., [3, 7, 1]]",
                    ));
                }
                [first, second, _] => second as i64 - first as i64,
                _ => 1,
            };
            offset += bands[0] as i64 * strides[last];
            (shape[last], strides[last]) = (bands.len(), step * strides[last]);
        }
        Ok(Axes { shape, strides, offset })
    }

    /// The array with its channels last, and with those alone that count: a view, or a copy where bands are chosen.
    pub fn arrange<'py>(&self, array: Bound<'py, PyUntypedArray>) -> PyResult<Bound<'py, PyUntypedArray>> {
        let py = array.py();
        let array = match self.channel_axis(array.shape())? {
            None => array,
            Some(axis) => {
                let numpy = py.import(intern!(py, "numpy"))?;
                numpy.call_method1("moveaxis", (array, axis, -1))?.cast_into::<PyUntypedArray>()?
            }
        };
        Ok(match self.bands(array.shape())? {
            None => array,
            Some((bands, axis)) => {
                array.call_method1("take", (bands.to_vec(), axis))?.cast_into::<PyUntypedArray>()?
            }
        })
    }

    /// The axis of channels, counted from 0, where the caller says which.
    fn channel_axis(&self, shape: &[usize]) -> PyResult<Option<usize>> {
        let Some(axis) = self.channel_axis else { return Ok(None) };
        let sides = shape.len() as isize;
        if sides < 3 || !(-sides..sides).contains(&axis) {
            return Err(PyValueError::new_err(format!(
                "channel_axis={axis} is no axis of channels of an image of shape {shape:?}; gray images have none"
            )));
        }
        Ok(Some(axis.rem_euclid(sides) as usize))
    }

    /// Bands that are chosen from an image of this shape, whose channels are last, and their axis.
    fn bands(&self, shape: &[usize]) -> PyResult<Option<(&[usize], usize)>> {
        let Bands::Chosen(bands) = &self.bands else { return Ok(None) };
        let all = match *shape {
            [_, _, all] | [_, _, _, all] if all <= MOST_BANDS => all,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "bands are chosen from images of shape (H, W, B) or (N, H, W, B) with at most {MOST_BANDS} bands, got {shape:?}"
                )));
            }
        };
        match bands.iter().find(|&&band| band >= all) {
            Some(band) => Err(PyValueError::new_err(format!(
                "bands must be 0 to {}, got {band}",
                all.saturating_sub(1)
            ))),
            None => Ok(Some((bands, shape.len() - 1))),
        }
    }
}

impl Bands {
    /// `None`, one band or three, or the word for components.
    fn new(value: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(value) = value else { return Ok(Self::OfImage) };
        if let Ok(word) = value.cast::<PyString>() {
            return match &*word.to_string_lossy() {
                "pca" => Ok(Self::Components),
                other => Err(PyValueError::new_err(format!(
                    "bands must be numbers of bands from 0, one or three, or 'pca', got '{other}'"
                ))),
            };
        }
        let one = value.extract::<usize>().map(|band| vec![band]);
        match one.or_else(|_| value.extract::<Vec<usize>>()) {
            Ok(bands) if matches!(bands.len(), 1 | 3) => Ok(Self::Chosen(bands)),
            Ok(bands) => Err(PyValueError::new_err(format!(
                "bands must be one, or three for red, green and blue in the order of `order`, or 'pca' for all, got {}",
                bands.len()
            ))),
            Err(_) => {
                Err(PyTypeError::new_err("bands must be numbers of bands from 0, one or three, or 'pca'"))
            }
        }
    }
}
