// SPDX-License-Identifier: MPL-2.0
//! `segment_batch`: labels and tables of a batch of images on a device, put there together.

use gstsuperpixel::params::Outputs;
use gstsuperpixel::plan::Plan;
use gstsuperpixel::wide::is_needed;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::data_range::DataRange;
use crate::device;
use crate::devices;
use crate::engines::{DeviceEngine, Task};
use crate::error::{Failure, exception};
use crate::foreign::is_on_device;
use crate::kept_engines;
use crate::parameters;
use crate::prior::PriorRule;
use crate::reading::Reading;
use crate::single::first_label;
use crate::size::warn_of_size;
use crate::tables::Source;

/// Labels of a batch on a device, and a dict of what belongs to them; see `segment_batch` in superpixels/_batch.py. `None` for images
/// in the host's memory.
#[pyfunction]
#[pyo3(signature = (images, algorithm, values, order, mask, prior, prior_cuts, prior_price, start_label, stream, check, data_range, bands, channel_axis, regions, neighbors, linear_light))]
#[allow(clippy::too_many_arguments)]
pub fn segment_batch<'py>(
    py: Python<'py>,
    images: &Bound<'py, PyAny>,
    algorithm: &Bound<'py, PyAny>,
    values: &Bound<'py, PyDict>,
    order: &str,
    mask: Option<&Bound<'py, PyAny>>,
    prior: Option<&Bound<'py, PyAny>>,
    prior_cuts: bool,
    prior_price: f32,
    start_label: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, PyAny>>,
    check: bool,
    data_range: Option<&Bound<'py, PyAny>>,
    bands: Option<&Bound<'py, PyAny>>,
    channel_axis: Option<&Bound<'py, PyAny>>,
    regions: bool,
    neighbors: bool,
    linear_light: bool,
) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyDict>)>> {
    if !is_on_device(images)? {
        return Ok(None);
    }
    let mut params = parameters::params(parameters::algorithm(algorithm)?);
    parameters::change(&mut params, values)?;
    params = parameters::with_enough_superpixels(&params);
    (params.temporal, params.masked) = (false, mask.is_some());
    let rule = PriorRule::new(prior_cuts, prior_price)?;
    prior.is_some().then(|| rule.set(&mut params));
    let reading = Reading::new(order, data_range, bands, channel_axis)?;
    params.stretch_gray16 |= reading.range == DataRange::Stretched;
    let arguments = device::Arguments { out: None, mask, prior, stream, check };
    let call = device::Call::new(images, arguments, &reading, first_label(start_label)?)?;
    let task = Task { together: true, ..call.task() };
    let (frames, geometry, ordinal) = (task.frames.len(), call.info().geometry, call.ordinal());
    if !call.is_batch() || frames == 0 {
        return Err(PyValueError::new_err(
            "images must be a batch of shape (N, H, W, C), of one image at least; gray ones have C = 1",
        ));
    }
    if is_needed(&params, geometry) {
        return Err(PyValueError::new_err(
            "a batch has at most 65535 superpixels an image; take fewer, or slic for labels of 32 bits",
        ));
    }
    let cuda = devices::cuda(py, ordinal)?;
    call.check_context(&cuda)?;
    warn_of_size(py, &params, geometry, 2)?;
    let plan = Plan::new(&params, call.info()).map_err(exception)?;
    let kept = kept_engines::take(py, &cuda, &plan);
    let outputs = Outputs { table: regions, neighbors, mean_color: false, linear_light };
    let done = py.detach(|| {
        let mut engine = match kept {
            Some(engine) => engine,
            None => DeviceEngine::new(&cuda, plan)?,
        };
        let memory = engine.segment(&task, outputs)?;
        Ok::<_, Failure>((engine, memory))
    });
    let (mut engine, memory) = done.map_err(|failure| devices::failed(py, ordinal, failure))?;
    let library = call.library(py);
    let tables =
        Source { library: &library, ordinal, engine: &mut engine }.batch(py, frames, regions, neighbors)?;
    kept_engines::keep(py, &cuda, engine);
    Ok(Some((call.finish(py, memory)?, tables)))
}
