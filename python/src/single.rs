// SPDX-License-Identifier: MPL-2.0
//! Images without a past: what the functions `slic`, `lsc`, `quickshift` and `snic` do. Those of a batch or a list are
//! segmented beside each other.

use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::params::Params;
use numpy::{Element, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::arrays::{Images, LabelArray, Order};
use crate::batch::{self, Job, Plane};
use crate::mask::Mask;
use crate::parameters;
use crate::pools::pool;

/// What all images of a call are segmented with.
struct Call {
    params: Params,
    cpu: Cpu,
    order: Order,
    start: i32,
}

/// Labels of an image, of each of a batch, or a list with those of each array of a list or tuple: uint16 from 0, or int32 from
/// `start_label` where that is another. Outside of a mask 65535, or one less than `start_label`.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
#[pyo3(signature = (algorithm, image, values, order, threads, start_label, out, mask))]
pub fn segment<'py>(
    py: Python<'py>,
    algorithm: &Bound<'py, PyAny>,
    image: &Bound<'py, PyAny>,
    values: &Bound<'py, PyDict>,
    order: &str,
    threads: &Bound<'py, PyAny>,
    start_label: &Bound<'py, PyAny>,
    out: Option<&Bound<'py, PyAny>>,
    mask: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut params = parameters::params(parameters::algorithm(algorithm)?);
    parameters::change(&mut params, values)?;
    // Images of a batch do not follow each other.
    params.temporal = false;
    params.masked = mask.is_some();
    let cpu = pool(py, parameters::threads(threads)?)?;
    let call = Call { params, cpu, order: Order::new(order)?, start: first_label(start_label)? };
    if let Some(list) = arrays(image) {
        for (name, array) in [("out", out), ("mask", mask)] {
            if array.is_some() {
                let text = format!("{name} must be None where image is a list of arrays");
                return Err(PyTypeError::new_err(text));
            }
        }
        let images = list.iter().map(|image| call.single(image)).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyList::new(py, call.segment(py, &images, None, None)?)?.into_any());
    }
    let images = Images::new(image, call.order)?;
    let mask = mask.map(|mask| Mask::new(mask, &images)).transpose()?;
    let mut labels = call.segment(py, &[images], out, mask.as_ref())?;
    // One array of images gives one of labels.
    Ok(labels.remove(0))
}

/// The items of a list or tuple of arrays; `None` for what is none, and for one with anything else in it.
fn arrays<'py>(image: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    let items: Vec<_> = match (image.cast::<PyList>(), image.cast::<PyTuple>()) {
        (Ok(list), _) => list.iter().collect(),
        (_, Ok(tuple)) => tuple.iter().collect(),
        _ => return None,
    };
    let is_array =
        |item: &Bound<'py, PyAny>| item.cast::<PyUntypedArray>().is_ok_and(|array| array.ndim() > 1);
    (!items.is_empty() && items.iter().all(is_array)).then_some(items)
}

impl Call {
    /// An image of a list.
    fn single<'py>(&self, image: &Bound<'py, PyAny>) -> PyResult<Images<'py>> {
        let images = Images::new(image, self.order)?;
        match images.count() {
            (_, false) => Ok(images),
            _ => Err(PyValueError::new_err("the arrays of a list must be of shape (H, W) or (H, W, C)")),
        }
    }

    /// The labels of each of some arrays.
    fn segment<'py>(
        &self,
        py: Python<'py>,
        images: &[Images<'py>],
        out: Option<&Bound<'py, PyAny>>,
        mask: Option<&Mask>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        match self.start {
            // A closure, since a constructor is of one lifetime.
            #[allow(clippy::redundant_closure)]
            0 => self.fill(py, images, out, mask, |plane| Plane::Words(plane)),
            start => self.fill(py, images, out, mask, |plane| Plane::Shifted(plane, start)),
        }
    }

    fn fill<'py, T: Element>(
        &self,
        py: Python<'py>,
        images: &[Images<'py>],
        out: Option<&Bound<'py, PyAny>>,
        mask: Option<&Mask>,
        plane: impl Fn(&mut [T]) -> Plane<'_>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let arrays = images.iter().map(|images| LabelArray::<T>::new(py, out, images));
        let mut arrays = arrays.collect::<PyResult<Vec<_>>>()?;
        let sources = images.iter().map(Images::sources).collect::<PyResult<Vec<_>>>()?;
        let mut jobs = Vec::new();
        for (sources, array) in sources.iter().zip(&mut arrays) {
            let stride = array.stride();
            let places = sources.iter().zip(array.planes()).enumerate();
            jobs.extend(places.map(|(i, (source, items))| {
                let mask = mask.map(|mask| mask.of(i));
                Job { source, mask, plane: plane(items), stride }
            }));
        }
        py.detach(|| batch::run(&self.params, &self.cpu, jobs))?;
        drop(sources);
        Ok(arrays.into_iter().map(LabelArray::into_array).collect())
    }
}

/// A number to which every label can be added in 32 bits.
fn first_label(value: &Bound<'_, PyAny>) -> PyResult<i32> {
    let index = value
        .call_method0("__index__")
        .map_err(|_| PyTypeError::new_err("start_label must be an integer"))?;
    // One less is the label of what is outside of a mask.
    let (least, most) = (i32::MIN + 1, i32::MAX - i32::from(u16::MAX));
    match index.extract::<i32>() {
        Ok(start) if (least..=most).contains(&start) => Ok(start),
        _ => Err(PyValueError::new_err(format!("start_label must be {least} to {most}"))),
    }
}
