// SPDX-License-Identifier: MPL-2.0
//! One image, one call: what the functions `slic`, `lsc`, `quickshift` and `snic` do.

use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{Labels, NO_LABEL};
use gstsuperpixel::params::Outputs;
use gstsuperpixel::plan::Plan;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Image, LabelArray, Order};
use crate::error::exception;
use crate::mask::Mask;
use crate::parameters;
use crate::pools::pool;

/// Labels of an image: uint16 from 0, or int32 from `start_label` where that is another. Outside of the mask 65535, or one less than
/// `start_label`.
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
    let cpu = pool(py, parameters::threads(threads)?)?;
    let start = first_label(start_label)?;
    let image = Image::new(image, Order::new(order)?)?;
    let info = image.info();
    let mask = mask.map(|mask| Mask::new(mask, info)).transpose()?;
    params.masked = mask.is_some();
    let frame = Mask::on(mask.as_ref(), image.frame()?)?;
    let run = |labels: &mut Labels<'_>| {
        let mut engine = Engine::new(cpu, Plan::new(&params, info)?)?;
        engine.segment(&frame, labels, Outputs::default()).map(drop)
    };
    if start == 0 {
        let mut plane = LabelArray::<u16>::new(py, out, &image)?;
        let mut labels = plane.labels()?;
        py.detach(|| run(&mut labels)).map_err(exception)?;
        return Ok(plane.into_array());
    }
    let mut plane = LabelArray::<i32>::new(py, out, &image)?;
    let (shifted, stride) = plane.slice();
    let width = info.geometry.width() as usize;
    py.detach(|| {
        let mut map = vec![0; info.geometry.pixels()];
        run(&mut Labels::new(info.geometry, &mut map, width)?)?;
        for (to, from) in shifted.chunks_mut(stride).zip(map.chunks(width)) {
            let label = |from: u16| if from == NO_LABEL { start - 1 } else { start + i32::from(from) };
            to.iter_mut().zip(from).for_each(|(to, &from)| *to = label(from));
        }
        Ok(())
    })
    .map_err(exception)?;
    Ok(plane.into_array())
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
