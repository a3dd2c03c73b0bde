// SPDX-License-Identifier: MPL-2.0
//! Images of a set, some at a time: labels and tables of each, with engines that are kept from one part of the set to the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gstsuperpixel::params::Outputs;
use gstsuperpixel::regions::Regions;
use numpy::{Element, PyArray2, PyArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::arrays::Images;
use crate::batch::{Crew, Job};
use crate::data_range::DataRange;
use crate::error::exception;
use crate::foreign::is_on_device;
use crate::library;
use crate::mask::Masks;
use crate::memory;
use crate::parameters;
use crate::plane::Plane;
use crate::pools::pool;
use crate::prior::{PriorRule, Priors};
use crate::reading::Reading;
use crate::records::{MERGE, NEIGHBOR, REGION, records};
use crate::single::{first_label, list_shape};
use crate::size::warn_of_size_in_16_bits;
use crate::watch::Watch;

const ON_DEVICE: &str = "segment_images takes images in the host's memory, which device='cuda' sends to a device; a Segmenter segments \
     those that are there one after another, with segmenter.regions and segmenter.edge_index on the device, too";

/// What all images of a set have in common, and what is kept between them; `segment_images` is its face.
#[pyclass(frozen, module = "superpixels._native")]
pub struct ImageSet {
    crew: Arc<Crew>,
    /// The process that the crew's threads are in.
    process: u32,
    reading: Reading,
    start: i32,
    /// Of all calls together: reports are some time apart.
    watch: Watch,
    /// True once the user was told of values that use little of their range.
    has_warned: AtomicBool,
    /// True once the user was told that there is no room for as many superpixels as are asked for.
    has_warned_of_size: AtomicBool,
}

/// An image of the caller, or some in one array, and the mask and the prior of each.
struct Given<'py> {
    images: Images<'py>,
    masks: Vec<Masks>,
    priors: Vec<Priors>,
}

/// The items that belong to argument `i`: its own, or all where that is a batch.
fn items_of<'py>(
    list: Option<&Bound<'py, PyList>>,
    i: usize,
    is_batch: bool,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    match list {
        None => Ok(Vec::new()),
        Some(list) if is_batch => Ok(list.iter().collect()),
        Some(list) => Ok(vec![list.get_item(i)?]),
    }
}

#[pymethods]
impl ImageSet {
    #[new]
    #[pyo3(signature = (algorithm, values, order, threads, start_label, regions, neighbors, linear_light, data_range, bands, channel_axis, is_masked, has_prior, prior_cuts, prior_price, progress, all))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        algorithm: &Bound<'_, PyAny>,
        values: &Bound<'_, PyDict>,
        order: &str,
        threads: &Bound<'_, PyAny>,
        start_label: &Bound<'_, PyAny>,
        regions: bool,
        neighbors: bool,
        linear_light: bool,
        data_range: Option<&Bound<'_, PyAny>>,
        bands: Option<&Bound<'_, PyAny>>,
        channel_axis: Option<&Bound<'_, PyAny>>,
        is_masked: bool,
        has_prior: bool,
        prior_cuts: bool,
        prior_price: f32,
        progress: Option<&Bound<'_, PyAny>>,
        all: usize,
    ) -> PyResult<Self> {
        let mut params = parameters::params(parameters::algorithm(algorithm)?);
        parameters::change(&mut params, values)?;
        params = parameters::with_enough_superpixels(&params);
        // Images of a set do not follow each other.
        (params.temporal, params.masked) = (false, is_masked);
        let rule = PriorRule::new(prior_cuts, prior_price)?;
        has_prior.then(|| rule.set(&mut params));
        let reading = Reading::new(order, data_range, bands, channel_axis)?;
        params.stretch_gray16 |= reading.range == DataRange::Stretched;
        let outputs = Outputs { table: regions, neighbors, mean_color: false, linear_light };
        let cpu = pool(py, parameters::threads(threads)?)?;
        Ok(Self {
            crew: Arc::new(Crew::new(params, outputs, cpu)),
            process: std::process::id(),
            reading,
            start: first_label(start_label)?,
            watch: Watch::new(py, progress, all)?,
            has_warned: AtomicBool::new(false),
            has_warned_of_size: AtomicBool::new(false),
        })
    }

    /// Number of threads.
    #[getter]
    fn threads(&self) -> usize {
        self.crew.threads()
    }

    /// Segments images beside each other: those of a list, or the ones of a batch that is the only item, with a mask and a prior for
    /// each or none.
    ///
    /// Gives a list with labels, number of regions, and the tables of each, and the error of the image behind these, or `None`. An
    /// error that no image is to blame for is raised.
    #[pyo3(signature = (images, masks, priors, is_batch))]
    fn segment<'py>(
        &self,
        py: Python<'py>,
        images: &Bound<'py, PyList>,
        masks: Option<&Bound<'py, PyList>>,
        priors: Option<&Bound<'py, PyList>>,
        is_batch: bool,
    ) -> PyResult<(Bound<'py, PyList>, Option<PyErr>)> {
        if self.process != std::process::id() {
            return Err(PyRuntimeError::new_err(
                "these images are segmented in the process that this one was forked from; call segment_images after the fork",
            ));
        }
        let (mut given, mut refused) = (Vec::new(), None);
        for (i, image) in images.iter().enumerate() {
            let (masks, priors) = (items_of(masks, i, is_batch)?, items_of(priors, i, is_batch)?);
            match self.take(py, &image, [&masks, &priors], is_batch) {
                Ok(one) => given.push(one),
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            }
        }
        let (found, failed) = match (self.start, masks) {
            // A closure, since a constructor is of one lifetime.
            #[allow(clippy::redundant_closure)]
            (0, None) => self.fill(py, images, &given, |plane: &mut [u16]| Plane::Words(plane))?,
            (start, _) => self.fill(py, images, &given, |plane: &mut [i32]| Plane::Shifted(plane, start))?,
        };
        Ok((found, failed.or(refused)))
    }

    /// Raises where an image is not one to be copied to a device, or a batch of such.
    fn check(&self, image: &Bound<'_, PyAny>, is_batch: bool) -> PyResult<()> {
        self.read(image, is_batch).map(drop)
    }

    /// Counts an image that was segmented elsewhere.
    fn note(&self) -> PyResult<()> {
        self.watch.note();
        if self.watch.is_due() {
            self.watch.look()?;
        }
        Ok(())
    }

    /// Reports that so many images are all.
    fn end(&self, py: Python<'_>, count: usize) -> PyResult<()> {
        self.watch.end_of(py, count)
    }
}

impl ImageSet {
    fn read<'py>(&self, image: &Bound<'py, PyAny>, is_batch: bool) -> PyResult<Images<'py>> {
        if is_on_device(image)? {
            return Err(PyTypeError::new_err(ON_DEVICE));
        }
        let images = Images::new(image, &self.reading)?;
        if images.count().1 != is_batch {
            return Err(list_shape());
        }
        Ok(images)
    }

    /// Looks at images, their masks and priors before they are segmented.
    fn take<'py>(
        &self,
        py: Python<'py>,
        image: &Bound<'py, PyAny>,
        [masks, priors]: [&[Bound<'py, PyAny>]; 2],
        is_batch: bool,
    ) -> PyResult<Given<'py>> {
        let images = self.read(image, is_batch)?;
        // This is called by a generator of the package.
        if !self.has_warned_of_size.load(Ordering::Relaxed) {
            let (params, geometry) = (self.crew.params(), images.info().geometry);
            let has_warned = warn_of_size_in_16_bits(py, params, geometry, 2)?;
            self.has_warned_of_size.store(has_warned, Ordering::Relaxed);
        }
        if !self.has_warned.load(Ordering::Relaxed) {
            let has_warned = images.warn_of_range(py, self.crew.params().stretch_gray16, 2)?;
            self.has_warned.store(has_warned, Ordering::Relaxed);
        }
        let masks = masks.iter().map(|mask| Masks::new(mask, &images)).collect::<PyResult<Vec<_>>>()?;
        if masks.iter().any(|mask| mask.count() > 1) {
            return Err(PyValueError::new_err("the mask of an image must be of shape (H, W)"));
        }
        let priors = priors.iter().map(|prior| Priors::new(prior, &images)).collect::<PyResult<Vec<_>>>()?;
        if priors.iter().any(|prior| prior.count() > 1) {
            return Err(PyValueError::new_err("the prior of an image must be of shape (h, w)"));
        }
        Ok(Given { images, masks, priors })
    }

    /// What is found of each image up to the first that fails, and its error.
    fn fill<'py, T: Element>(
        &self,
        py: Python<'py>,
        objects: &Bound<'py, PyList>,
        given: &[Given<'py>],
        plane: impl Fn(&mut [T]) -> Plane<'_>,
    ) -> PyResult<(Bound<'py, PyList>, Option<PyErr>)> {
        let sources = given.iter().map(|given| given.images.sources()).collect::<PyResult<Vec<_>>>()?;
        let count = sources.iter().map(Vec::len).sum();
        let (mut arrays, mut jobs) = (Vec::new(), Vec::new());
        memory::reserve("images of a set", &mut arrays, count).map_err(exception)?;
        memory::reserve("images of a set", &mut jobs, count).map_err(exception)?;
        let mut found = memory::filled("tables of a set", count, Regions::default()).map_err(exception)?;
        let zeros = py.import(intern!(py, "numpy"))?.getattr(intern!(py, "zeros"))?;
        let dtype = T::get_dtype(py);
        for (given, sources) in given.iter().zip(&sources) {
            let geometry = given.images.info().geometry;
            let shape = (geometry.height(), geometry.width());
            for _ in sources {
                let array = zeros.call1((shape, &dtype))?.cast_into::<PyArray2<T>>()?;
                arrays.push(array.readwrite());
            }
        }
        let each = given.iter().zip(&sources).flat_map(|(given, sources)| {
            sources.iter().enumerate().map(move |(i, source)| (given, i, source))
        });
        for (index, (((given, i, source), array), found)) in each.zip(&mut arrays).zip(&mut found).enumerate()
        {
            jobs.push(Job {
                index,
                source,
                mask: given.masks.get(i).map(|mask| mask.plane(0)),
                prior: given.priors.get(i).map(|prior| (prior, 0)),
                plane: plane(array.as_slice_mut()?),
                stride: given.images.info().geometry.width() as usize,
                found: Some(found),
            });
        }
        let done = py.detach(|| self.crew.run(jobs, &self.watch));
        let (count, failed) = match done {
            Ok(()) => (count, None),
            Err(stopped) => match stopped.index {
                Some(index) => (index, Some(PyErr::from(stopped.failure))),
                None => return Err(stopped.failure.into()),
            },
        };
        let objects = given
            .iter()
            .zip(objects)
            .flat_map(|(given, object)| std::iter::repeat_n(object, given.images.count().0));
        let results = PyList::empty(py);
        for ((object, array), found) in objects.zip(&arrays).zip(&found).take(count) {
            let labels = library::as_given(&object, array.as_any().clone())?;
            results.append(self.result(py, labels, found)?)?;
        }
        Ok((results, failed))
    }

    /// Labels, number of regions, and tables, or `None` for those that nobody asked for.
    fn result<'py>(
        &self,
        py: Python<'py>,
        labels: Bound<'py, PyAny>,
        found: &Regions,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let Outputs { table, neighbors, .. } = self.crew.outputs();
        let levels = self.crew.params().hierarchy.levels;
        let regions = table.then(|| records(py, &REGION, bytemuck::cast_slice(&found.table))).transpose()?;
        let pairs =
            neighbors.then(|| records(py, &NEIGHBOR, bytemuck::cast_slice(&found.neighbors))).transpose()?;
        let merges = levels.then(|| records(py, &MERGE, bytemuck::cast_slice(&found.merges))).transpose()?;
        (labels, found.count, regions, pairs, merges).into_pyobject(py)
    }
}

impl Drop for ImageSet {
    fn drop(&mut self) {
        // To end threads that are not here could wait for locks that nobody gives back.
        if self.process != std::process::id() {
            std::mem::forget(self.crew.clone());
        }
    }
}
