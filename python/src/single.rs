// SPDX-License-Identifier: MPL-2.0
//! Images without a past: what the functions `slic`, `lsc`, `quickshift` and `snic` do. Those of a batch or a list are
//! segmented beside each other.

use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::wide::is_needed;
use numpy::{Element, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::arrays::{Images, is_host_array, is_path};
use crate::batch::{Crew, Job, Stopped};
use crate::data_range::DataRange;
use crate::device;
use crate::devices;
use crate::engines::DeviceEngine;
use crate::error::{Failure, exception};
use crate::foreign::is_on_device;
use crate::kept_engines;
use crate::label_arrays::{LabelArray, is_uint32};
use crate::library;
use crate::mask::Masks;
use crate::memory;
use crate::parameters;
use crate::plane::Plane;
use crate::pools::pool;
use crate::prior::{PriorRule, Priors};
use crate::reading::Reading;
use crate::size::warn_of_size;
use crate::watch::Watch;
use crate::wide;
use crate::wide_device::WideDevice;

/// Arguments that all images of a call share.
struct Call {
    params: Params,
    cpu: Cpu,
    reading: Reading,
    start: i32,
}

/// Labels of an image, of each of a batch, or a list with those of each array of a list or tuple: uint16 from 0, uint32 where more
/// superpixels are asked for than 16 bits name, or int32 where `start_label` is another or there is a mask, outside of which they are
/// one less than `start_label`.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
#[pyo3(signature = (algorithm, image, values, order, threads, start_label, out, mask, stream = None, check = false, data_range = None, bands = None, channel_axis = None, progress = None, prior = None, prior_cuts = true, prior_price = 0.0))]
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
    stream: Option<&Bound<'py, PyAny>>,
    check: bool,
    data_range: Option<&Bound<'py, PyAny>>,
    bands: Option<&Bound<'py, PyAny>>,
    channel_axis: Option<&Bound<'py, PyAny>>,
    progress: Option<&Bound<'py, PyAny>>,
    prior: Option<&Bound<'py, PyAny>>,
    prior_cuts: bool,
    prior_price: f32,
) -> PyResult<Bound<'py, PyAny>> {
    let mut params = parameters::params(parameters::algorithm(algorithm)?);
    parameters::change(&mut params, values)?;
    params = parameters::with_enough_superpixels(&params);
    // Images of a batch do not follow each other.
    params.temporal = false;
    let start = first_label(start_label)?;
    let reading = Reading::new(order, data_range, bands, channel_axis)?;
    params.stretch_gray16 |= reading.range == DataRange::Stretched;
    let threads = parameters::threads(threads)?;
    params.masked = mask.is_some();
    let rule = PriorRule::new(prior_cuts, prior_price)?;
    prior.is_some().then(|| rule.set(&mut params));
    let arguments = device::Arguments { out, mask, prior, stream, check };
    let on_device = |image: &_, is_of_list: bool| {
        let call = device::Call::new(image, arguments, &reading, start)?;
        if is_of_list && call.is_batch() {
            return Err(list_shape());
        }
        if is_needed(&params, call.info().geometry) {
            refuse_wide_prior(&call)?;
            return wide_on_device(py, &params, call, threads);
        }
        on_device(py, &params, call)
    };
    if is_on_device(image)? {
        let watch = Watch::new(py, progress, 1)?;
        let labels = on_device(image, false)?;
        watch.end(py)?;
        return Ok(labels);
    }
    let list = items(image);
    if let Some(list) =
        list.as_ref().filter(|list| list.iter().all(|item| matches!(is_on_device(item), Ok(true))))
    {
        refuse_in_list(arguments)?;
        refuse_prior(prior)?;
        let watch = Watch::new(py, progress, list.len())?;
        let mut labels = Vec::new();
        for image in list {
            labels.push(on_device(image, true)?);
            watch.note();
            if watch.is_due() {
                watch.look()?;
            }
        }
        watch.end(py)?;
        return Ok(PyList::new(py, labels)?.into_any());
    }
    if stream.is_some() {
        return Err(PyValueError::new_err("stream is for images on a device"));
    }
    let call = Call { params, cpu: pool(py, threads)?, reading: reading.clone(), start };
    if let Some(list) = list.filter(|list| list.iter().any(is_image)) {
        refuse_in_list(arguments)?;
        refuse_prior(prior)?;
        let single = |(index, image)| call.single(image).map_err(|error| numbered(py, index, error));
        let images = list.iter().enumerate().map(single).collect::<PyResult<Vec<_>>>()?;
        let labels = call.segment(py, &images, None, (None, None), progress)?;
        let labels = list.iter().zip(labels).map(|(image, labels)| library::as_given(image, labels));
        return Ok(PyList::new(py, labels.collect::<PyResult<Vec<_>>>()?)?.into_any());
    }
    let images = Images::new(image, &call.reading)?;
    let masks = mask.map(|mask| Masks::new(mask, &images)).transpose()?;
    let priors = prior.map(|prior| Priors::new(prior, &images)).transpose()?;
    let mut labels = call.segment(py, &[images], out, (masks.as_ref(), priors.as_ref()), progress)?;
    // One array of images gives one of labels.
    out.map_or_else(|| library::as_given(image, labels.remove(0)), |out| Ok(out.clone()))
}

/// The items of a list or tuple; `None` for what is none, and for an empty one.
fn items<'py>(image: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    let items: Vec<_> = match (image.cast::<PyList>(), image.cast::<PyTuple>()) {
        (Ok(list), _) => list.iter().collect(),
        (_, Ok(tuple)) => tuple.iter().collect(),
        _ => return None,
    };
    Some(items).filter(|items| !items.is_empty())
}

/// Returns true if an item shows that a list is one of images, not of numbers. Names of files do: they are not read.
fn is_image(item: &Bound<'_, PyAny>) -> bool {
    if matches!(is_path(item), Ok(true)) {
        return true;
    }
    match item.cast::<PyUntypedArray>() {
        Ok(array) => array.ndim() > 1,
        Err(_) => is_host_array(item).unwrap_or(false),
    }
}

fn refuse_in_list(arguments: device::Arguments<'_, '_>) -> PyResult<()> {
    if arguments.out.is_none() && arguments.mask.is_none() {
        return Ok(());
    }
    Err(PyTypeError::new_err("out and mask must be None where image is a list of arrays"))
}

fn refuse_prior(prior: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    prior.map_or(Ok(()), |_| Err(PyTypeError::new_err("prior must be None where image is a list of arrays")))
}

/// Refuses a prior on a device where labels have 32 bits: their regions are found in the host's memory.
pub fn refuse_wide_prior(call: &device::Call<'_>) -> PyResult<()> {
    if !call.has_prior() {
        return Ok(());
    }
    Err(PyValueError::new_err(
        "a prior of an image on a device goes with at most 65535 superpixels; take fewer, or copy image and prior to the host",
    ))
}

/// The error of a batch where one image belongs.
pub fn list_shape() -> PyErr {
    PyValueError::new_err("the arrays of a list must be of shape (H, W) or (H, W, C)")
}

impl Call {
    /// An image of a list.
    fn single<'py>(&self, image: &Bound<'py, PyAny>) -> PyResult<Images<'py>> {
        let images = Images::new(image, &self.reading)?;
        match images.count() {
            (_, false) => Ok(images),
            _ => Err(list_shape()),
        }
    }

    /// The labels of each of some arrays.
    fn segment<'py>(
        &self,
        py: Python<'py>,
        images: &[Images<'py>],
        out: Option<&Bound<'py, PyAny>>,
        (masks, priors): (Option<&Masks>, Option<&Priors>),
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        for images in images {
            // This is called by a function of the package.
            warn_of_size(py, &self.params, images.info().geometry, 2)?;
            if images.warn_of_range(py, self.params.stretch_gray16, 2)? {
                break;
            }
        }
        let watch = Watch::new(py, progress, images.iter().map(|images| images.count().0).sum())?;
        let is_one = images.iter().all(|images| !images.count().1) && images.len() == 1;
        let (mut labels, mut before) = (Vec::new(), 0);
        for (is_wide, group) in self.groups(images) {
            let before_these = Some(before).filter(|_| !is_one);
            let target = Target { out, masks, priors, watch: &watch, before: before_these };
            labels.extend(match is_wide {
                true => self.segment_wide(py, group, target)?,
                false => self.segment_narrow(py, group, target)?,
            });
            before += group.len();
        }
        watch.end(py)?;
        Ok(labels)
    }

    /// Returns true if images need labels of 32 bits.
    fn is_wide(&self, images: &Images<'_>) -> bool {
        is_needed(&self.params, images.info().geometry)
    }

    /// Arrays that follow each other and have labels of as many bits.
    fn groups<'a, 'py>(&self, images: &'a [Images<'py>]) -> impl Iterator<Item = (bool, &'a [Images<'py>])> {
        let groups = images.chunk_by(|one, next| self.is_wide(one) == self.is_wide(next));
        groups.map(|group| (group.iter().any(|images| self.is_wide(images)), group))
    }

    /// Labels of 16 bits, or where `out` has room those in 32.
    fn segment_narrow<'py>(
        &self,
        py: Python<'py>,
        images: &[Images<'py>],
        target: Target<'_, 'py>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let run = |jobs: Vec<Job<'_>>| {
            let crew = Crew::new(self.params.clone(), Outputs::default(), self.cpu.clone());
            crew.run(jobs, target.watch)
        };
        // Closures, since a constructor is of one lifetime.
        #[allow(clippy::redundant_closure)]
        match (self.start, target.masks) {
            (0, None) if target.out.map_or(Ok(false), is_uint32)? => {
                fill(py, images, target, |items: &mut [u32]| Plane::Wide(items), run)
            }
            (0, None) => fill(py, images, target, |items: &mut [u16]| Plane::Words(items), run),
            (start, _) => fill(py, images, target, |items: &mut [i32]| Plane::Shifted(items, start), run),
        }
    }

    /// Labels of 32 bits.
    fn segment_wide<'py>(
        &self,
        py: Python<'py>,
        images: &[Images<'py>],
        target: Target<'_, 'py>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        for images in images {
            wide::check_start(self.start, images.info().geometry)?;
        }
        let run = |jobs: Vec<Job<'_>>| wide::run(&self.params, &self.cpu, jobs, target.watch);
        #[allow(clippy::redundant_closure)]
        match (self.start, target.masks) {
            (0, None) => fill(py, images, target, |items: &mut [u32]| Plane::Wide(items), run),
            (start, _) => fill(py, images, target, |items: &mut [i32]| Plane::Shifted(items, start), run),
        }
    }
}

/// Where the labels of some arrays go, and what says which pixels have any.
#[derive(Clone, Copy)]
struct Target<'a, 'py> {
    out: Option<&'a Bound<'py, PyAny>>,
    masks: Option<&'a Masks>,
    priors: Option<&'a Priors>,
    watch: &'a Watch,
    /// Number of the images before these; `None` for one that is no list or batch.
    before: Option<usize>,
}

/// An error with the number of the image, from 0, that is to blame.
fn numbered(py: Python<'_>, index: usize, error: PyErr) -> PyErr {
    let kind = error.get_type(py);
    match kind.is(py.get_type::<PyTypeError>()) || kind.is(py.get_type::<PyValueError>()) {
        true => PyErr::from_type(kind, format!("image {index}: {}", error.value(py))),
        false => error,
    }
}

/// Makes label arrays of one type, and lets `run` fill them.
fn fill<'py, T: Element>(
    py: Python<'py>,
    images: &[Images<'py>],
    Target { out, masks, priors, before, .. }: Target<'_, 'py>,
    plane: impl Fn(&mut [T]) -> Plane<'_>,
    run: impl FnOnce(Vec<Job<'_>>) -> Result<(), Stopped> + Send,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let arrays = images.iter().map(|images| LabelArray::<T>::new(py, out, images));
    let mut arrays = arrays.collect::<PyResult<Vec<_>>>()?;
    let sources = images.iter().map(Images::sources).collect::<PyResult<Vec<_>>>()?;
    let count = sources.iter().map(Vec::len).sum();
    let mut jobs = Vec::new();
    memory::reserve("images of a batch", &mut jobs, count).map_err(exception)?;
    for (sources, array) in sources.iter().zip(&mut arrays) {
        let stride = array.stride();
        let places = sources.iter().zip(array.planes()).enumerate();
        let first = jobs.len();
        jobs.extend(places.map(|(i, (source, items))| Job {
            index: first + i,
            source,
            mask: masks.map(|masks| masks.plane(i)),
            prior: priors.map(|priors| (priors, i)),
            plane: plane(items),
            stride,
            found: None,
        }));
    }
    py.detach(|| run(jobs)).map_err(|Stopped { index, failure }| match (before, index) {
        (Some(before), Some(index)) => numbered(py, before + index, failure.into()),
        _ => failure.into(),
    })?;
    Ok(arrays.into_iter().map(LabelArray::into_array).collect())
}

/// Labels of images on a device, there once its stream has passed.
fn on_device<'py>(py: Python<'py>, params: &Params, call: device::Call<'py>) -> PyResult<Bound<'py, PyAny>> {
    let cuda = devices::cuda(py, call.ordinal())?;
    call.check_context(&cuda)?;
    warn_of_size(py, params, call.info().geometry, 2)?;
    let plan = Plan::new(params, call.info()).map_err(exception)?;
    let kept = kept_engines::take(py, &cuda, &plan);
    let task = call.task();
    let done = py.detach(|| {
        let mut engine = match kept {
            Some(engine) => engine,
            None => DeviceEngine::new(&cuda, plan)?,
        };
        let memory = engine.segment(&task, Outputs::default())?;
        Ok::<_, Failure>((engine, memory))
    });
    let (engine, memory) = done.map_err(|failure| devices::failed(py, call.ordinal(), failure))?;
    kept_engines::keep(py, &cuda, engine);
    call.finish(py, memory)
}

/// The same with labels of 32 bits, which are there when this returns.
fn wide_on_device<'py>(
    py: Python<'py>,
    params: &Params,
    call: device::Call<'py>,
    threads: u32,
) -> PyResult<Bound<'py, PyAny>> {
    wide::check_start(call.first_label()?, call.info().geometry)?;
    let (cuda, cpu) = (devices::cuda(py, call.ordinal())?, pool(py, threads)?);
    call.check_context(&cuda)?;
    let plan = gstsuperpixel::wide::Plan::new(params, call.info()).map_err(exception)?;
    let (task, watch) = (call.task(), Watch::new(py, None, 1)?);
    let done = py.detach(|| WideDevice::new(&cuda, &cpu, plan)?.segment(&task, &watch));
    let (memory, _) = done.map_err(|failure| devices::failed(py, call.ordinal(), failure))?;
    call.finish(py, memory)
}

/// A number to which every label can be added in 32 bits.
pub fn first_label(value: &Bound<'_, PyAny>) -> PyResult<i32> {
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
