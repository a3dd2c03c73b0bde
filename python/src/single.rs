// SPDX-License-Identifier: MPL-2.0
//! One image, one call: what the functions `slic`, `lsc`, `quickshift` and `snic` do.

use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::Labels;
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Image, LabelArray, Order};
use crate::device::Call;
use crate::devices;
use crate::engines::DeviceEngine;
use crate::error::exception;
use crate::foreign::is_on_device;
use crate::parameters;
use crate::pools::pool;

/// Labels of an image: uint16 from 0, or int32 from `start_label` where that is another.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
#[pyo3(signature = (algorithm, image, values, order, threads, start_label, out, stream = None))]
pub fn segment<'py>(
    py: Python<'py>,
    algorithm: &Bound<'py, PyAny>,
    image: &Bound<'py, PyAny>,
    values: &Bound<'py, PyDict>,
    order: &str,
    threads: &Bound<'py, PyAny>,
    start_label: &Bound<'py, PyAny>,
    out: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut params = parameters::params(parameters::algorithm(algorithm)?);
    parameters::change(&mut params, values)?;
    let (start, order) = (first_label(start_label)?, Order::new(order)?);
    let threads = parameters::threads(threads)?;
    if is_on_device(image)? {
        return on_device(py, &params, Call::new(image, out, stream, order, start)?);
    }
    if stream.is_some() {
        return Err(PyValueError::new_err("stream is for images on a device"));
    }
    let cpu = pool(py, threads)?;
    let image = Image::new(image, order)?;
    let (info, frame) = (image.info(), image.frame()?);
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
            to.iter_mut().zip(from).for_each(|(to, &from)| *to = start + i32::from(from));
        }
        Ok(())
    })
    .map_err(exception)?;
    Ok(plane.into_array())
}

/// Labels of an image on a device, complete when this returns.
fn on_device<'py>(py: Python<'py>, params: &Params, call: Call<'py>) -> PyResult<Bound<'py, PyAny>> {
    let cuda = devices::cuda(py, call.ordinal())?;
    call.check_context(&cuda)?;
    let (frame, to, streams) = call.parts();
    let memory = py.detach(|| {
        let mut engine = DeviceEngine::new(&cuda, Plan::new(params, frame.info)?)?;
        engine.segment(frame, to, streams, Outputs::default())
    });
    let memory = memory.map_err(|error| devices::failed(py, call.ordinal(), error))?;
    call.finish(py, memory)
}

/// A number to which every label can be added in 32 bits.
fn first_label(value: &Bound<'_, PyAny>) -> PyResult<i32> {
    let index = value
        .call_method0("__index__")
        .map_err(|_| PyTypeError::new_err("start_label must be an integer"))?;
    let most = i32::MAX - i32::from(u16::MAX);
    match index.extract::<i32>() {
        Ok(start) if start <= most => Ok(start),
        _ => Err(PyValueError::new_err(format!("start_label must be {} to {most}", i32::MIN))),
    }
}
