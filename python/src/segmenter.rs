// SPDX-License-Identifier: MPL-2.0
//! The class `Segmenter`: an engine for frames one after another, with what is known about their regions.

use std::sync::{Mutex, MutexGuard, TryLockError};

use gstsuperpixel::algo::Algorithm;
use gstsuperpixel::any_engine::{AnyEngine, Continuity};
use gstsuperpixel::events::EventKind;
use gstsuperpixel::params::Outputs;
use gstsuperpixel::regions::Event;
use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::Images;
use crate::data_range::DataRange;
use crate::device::{Arguments, Call};
use crate::devices::{self, WorkDevice};
use crate::engines;
use crate::error::{Failure, exception};
use crate::foreign::is_on_device;
use crate::host_frames::HostFrames;
use crate::mask::Masks;
use crate::memory;
use crate::parameters;
use crate::pools::pool;
use crate::prior::{PriorRule, Priors};
use crate::reading::Reading;
use crate::records::{EVENT, MERGE, MOTION, NEIGHBOR, REGION, records};
use crate::single::{first_label, refuse_wide_prior};
use crate::state::State;
use crate::tables;
use crate::watch::Watch;
use crate::wide::{WideEngine, check_start};

/// Segments frames one after another, and keeps what that needs from call to call.
///
/// Parameters
/// ----------
/// algorithm : {"slic", "lsc", "quickshift", "snic"}
///     The algorithm.
/// device : {"cpu", "cuda", "cuda:0", ...}, optional
///     Where frames are segmented: "cuda" is the first device that works. By default the first frame settles it: its device, or the
///     CPU for an array of numpy. On a device, frames of numpy go up and their labels come down.
/// order : {"rgb", "bgr"}
///     Order of the channels; OpenCV has "bgr".
/// threads : int
///     Threads, 0 to 1024, of which at most one a core is made; 0 is one for each core. The result is the same.
/// regions : bool
///     Measure `regions` and, with `temporal`, `motion` of every frame. Takes time.
/// neighbors : bool
///     Find `neighbors` and `edge_index` of every frame. Takes time.
/// linear_light : bool
///     Mean colors of light instead of code values.
/// events : bool
///     Find `events` of every frame, with `regions` and `temporal`, for frames of numpy. Takes time.
/// data_range : tuple of float, {"image", "stretch"}, optional
///     What values of frames are black and white, as for `slic`. "image" is anew for each frame: in a video regions change with it,
///     for which two numbers are better.
/// bands, channel_axis : optional
///     Which bands of frames count, and where they are, as for `slic`. With "pca" and `temporal` the components of the first frame
///     that has two different pixels hold for those that follow, until `reset` or another number of bands.
/// temporal : bool
///     Frames are a video: each starts from the one before, and regions keep their track ids until a cut.
/// temporal_inertia : float
///     How strongly a pixel keeps its region, 0 to 0.9.
/// n_segments : int, optional
///     Wanted number of superpixels, about. Default: 100, or as `superpixel_size` says.
/// superpixel_size : int, optional
///     Grid step in px, 4 to 1024, instead of `n_segments`.
/// levels : bool
///     Also find `merges`: what of the regions, refined where that is asked for, would be merged next, down to one.
/// **parameters
///     What the algorithm takes, with the names and defaults of its function: see `slic`, `lsc`, `quickshift` and `snic`.
///
/// Raises
/// ------
/// TypeError
///     A parameter that the algorithm does not have, or of another type.
/// ValueError
///     A parameter out of range.
///
/// See Also
/// --------
/// slic, lsc, quickshift, snic : Pictures by themselves, in one call.
/// segment_video : Frames of a video file.
///
/// Notes
/// -----
/// Without `temporal` every frame is independent, and its labels are those of the function of the same name with the same values.
/// Frames may change their size and channels; identities then go on with new numbers.
///
/// A Segmenter belongs to one thread at a time; calls let other threads of Python run. After a fork the child has to make its
/// own. It cannot be pickled.
///
/// Examples
/// --------
/// >>> import numpy as np, superpixels as sp
/// >>> segmenter = sp.Segmenter(n_segments=12)
/// >>> labels = segmenter.segment(np.zeros((60, 80, 3), np.uint8))
/// >>> int(segmenter.regions["area"].sum())
/// 4800
#[pyclass(frozen, module = "superpixels")]
pub struct Segmenter {
    /// Locked while a frame is segmented, without the interpreter's lock.
    state: Mutex<State>,
    /// The process that the engine's threads are in.
    process: u32,
    reading: Reading,
    outputs: Outputs,
    events: bool,
    threads: u32,
}

impl Segmenter {
    fn lock(&self) -> PyResult<MutexGuard<'_, State>> {
        if self.process != std::process::id() {
            return Err(PyRuntimeError::new_err(
                "this Segmenter is of the process that this one was forked from; make a Segmenter after the fork",
            ));
        }
        self.state.try_lock().map_err(|error| {
            PyRuntimeError::new_err(match error {
                TryLockError::WouldBlock => {
                    "this Segmenter is in use by another thread; make a Segmenter for each thread"
                }
                TryLockError::Poisoned(_) => "this Segmenter failed in an earlier call; make another one",
            })
        })
    }

    fn segment_on_device<'py>(
        &self,
        py: Python<'py>,
        state: &mut State,
        frame: &Bound<'py, PyAny>,
        arguments: Arguments<'_, 'py>,
        (start, prior_rule): (i32, PriorRule),
    ) -> PyResult<Bound<'py, PyAny>> {
        let call = Call::new(frame, arguments, &self.reading, start)?;
        state.settle(call.ordinal())?;
        state.warn_of_size(py, call.info().geometry)?;
        state.events.forget();
        let cuda = devices::cuda(py, call.ordinal())?;
        call.check_context(&cuda)?;
        state.library = call.library(py);
        if call.is_masked() {
            state.expect_masks();
        }
        if call.has_prior() {
            state.expect_priors(prior_rule).map_err(exception)?;
        }
        let (task, outputs) = (call.task(), self.outputs);
        let mut memory = None;
        if state.is_wide(task.info.geometry) {
            refuse_wide_prior(&call)?;
            check_start(call.first_label()?, task.info.geometry)?;
            let (cpu, watch) = (pool(py, self.threads)?, Watch::new(py, None, 1)?);
            let make = |params: &_| WideEngine::new(&cpu, Some(&cuda), params, task.info);
            let done = py.detach(|| {
                state.run_wide(task.info, make, |engine| {
                    let WideEngine::Device(engine) = engine else { return Ok(0) };
                    let (labels, count) = engine.segment(&task, &watch)?;
                    memory = labels;
                    Ok::<_, Failure>(count)
                })
            });
            done.map_err(|error| devices::failed(py, call.ordinal(), error))?;
            return call.finish(py, memory);
        }
        let done: Result<_, Failure> = py.detach(|| {
            let make = |plan| engines::on_device(&cuda, plan);
            state.run(task.info, make, |engine| {
                if let AnyEngine::Device(engine) = engine {
                    memory = engine.segment(&task, outputs)?;
                }
                Ok(())
            })
        });
        done.map_err(|error| devices::failed(py, call.ordinal(), error))?;
        call.finish(py, memory)
    }

    /// The state, where it has the events of the last frame.
    fn found(&self) -> PyResult<MutexGuard<'_, State>> {
        self.needs(self.events, "events")?;
        self.needs(self.outputs.table, "regions")?;
        let mut guard = self.lock()?;
        self.needs(guard.segmented()?.plan().temporal().is_some(), "temporal")?;
        if guard.on_device()?.is_some() {
            return Err(PyRuntimeError::new_err(
                "events are found for frames of numpy only; give the Segmenter such frames, with device='cuda' if need be",
            ));
        }
        Ok(guard)
    }

    /// Track ids of the last frame's events of some kinds.
    fn tracks_of<'py>(&self, py: Python<'py>, kinds: [EventKind; 2]) -> PyResult<Bound<'py, PyAny>> {
        let guard = self.found()?;
        let is_one = |event: &&Event| kinds.into_iter().any(|kind| kind as u32 == event.kind);
        let ids: Vec<u32> = guard.found.iter().filter(is_one).map(|event| event.track_id).collect();
        Ok(ids.into_pyarray(py).into_any())
    }

    fn needs(&self, is_there: bool, name: &str) -> PyResult<()> {
        if is_there {
            Ok(())
        } else {
            Err(PyRuntimeError::new_err(format!("pass {name}=True to Segmenter(...)")))
        }
    }
}

impl Drop for Segmenter {
    fn drop(&mut self) {
        // To end threads that are not here could wait for locks that nobody gives back.
        if self.process != std::process::id()
            && let Ok(mut state) = self.state.try_lock()
        {
            std::mem::forget((state.engine.take(), state.wide.take()));
        }
    }
}

#[pymethods]
impl Segmenter {
    #[new]
    #[pyo3(signature = (algorithm = None, *, device = None, order = "rgb", threads = None, regions = true, neighbors = true,
        linear_light = false, events = false, data_range = None, bands = None, channel_axis = None, **values), text_signature = "(algorithm='slic', *, device=None, order='rgb', threads=0, regions=True, neighbors=True, linear_light=False, events=False, data_range=None, bands=None, channel_axis=None, **parameters)")]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        algorithm: Option<&Bound<'_, PyAny>>,
        device: Option<&Bound<'_, PyAny>>,
        order: &str,
        threads: Option<&Bound<'_, PyAny>>,
        regions: bool,
        neighbors: bool,
        linear_light: bool,
        events: bool,
        data_range: Option<&Bound<'_, PyAny>>,
        bands: Option<&Bound<'_, PyAny>>,
        channel_axis: Option<&Bound<'_, PyAny>>,
        values: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut params = match algorithm {
            Some(name) => parameters::params(parameters::algorithm(name)?),
            None => parameters::params(Algorithm::default()),
        };
        if let Some(values) = values {
            parameters::change(&mut params, values)?;
        }
        let reading = Reading::new(order, data_range, bands, channel_axis)?;
        params.stretch_gray16 |= reading.range == DataRange::Stretched;
        let threads = threads.map_or(Ok(0), parameters::threads)?;
        // Starts the threads now, so that a refusal of the system does not wait for the first frame.
        pool(py, threads)?;
        Ok(Self {
            state: Mutex::new(State {
                params,
                place: WorkDevice::new(py, device)?,
                next_id: 1,
                ..State::default()
            }),
            process: std::process::id(),
            reading,
            outputs: Outputs { table: regions, neighbors, mean_color: false, linear_light },
            events,
            threads,
        })
    }

    /// Segments a frame, or the frames of a clip in their order.
    ///
    /// Parameters
    /// ----------
    /// frame : ndarray of numbers, shape (H, W), (H, W, 1), (H, W, 3) or (H, W, 4)
    ///     The frame, in any layout: gray, or color of sRGB, with values as `data_range` says. Arrays of other libraries in the host's
    ///     memory, with `__array__` or `__dlpack__`, are taken as well. Of shape (N, H, W, C) it is a clip: N frames one after another, the same as N calls. Or the same on a CUDA device, in any
    ///     layout: of torch, of CuPy, or any with `__dlpack__` or `__cuda_array_interface__`.
    /// out : ndarray of uint16, uint32 or int32, shape (H, W), or (N, H, W) for a clip, optional
    ///     Where labels are written, of the type that they have, or of uint32 instead of uint16. Rows may be at any distance. For a frame on a device: int32 there, or
    ///     uint16 where labels start at 0 and there is no mask.
    /// mask : ndarray of bool or uint8, shape (H, W), or (N, H, W) for a clip, optional
    ///     Segment only pixels where it is not 0: the others belong to no region, and add to none. The first mask makes the
    ///     Segmenter start anew, as another size does; later frames may have masks or not. It is where the frame is.
    /// stream : int or object, optional
    ///     For frames on a device: the CUDA stream that the call takes its place on, as a handle or as an object with `cuda_stream`
    ///     (torch) or `ptr` (CuPy). Default: the stream that the frame's library is on.
    /// start_label : int
    ///     The lowest label.
    /// check : bool
    ///     For float frames on a device: wait and raise `ValueError` where a value is not in [0, 1]. Without it such values are cut
    ///     off, NaN is 0, and the next read of `n_regions` or a table raises. Frames of numpy are always looked at.
    /// progress : bool or callable
    ///     True shows a bar for the frames of a clip, tqdm's where that is installed; a callable gets the number of frames that are
    ///     done and of all, some times a second.
    /// prior : ndarray of integers, shape (h, w), or (N, h, w) for a clip, optional
    ///     A label map from elsewhere, as of a network, of any size: no region has pixels of two of its numbers, but for `n_regions`
    ///     below the number of its areas; see `slic`. The first one makes the Segmenter start anew; later frames may have one or not. It
    ///     is where the frame is.
    /// prior_cuts : bool
    ///     Regions end where the prior's areas do; False where it is coarse: see `slic`.
    /// prior_price : float
    ///     What merging across borders of the prior costs, in Delta E; 0 is never, but for `n_regions`: see `slic`.
    ///
    /// Returns
    /// -------
    /// labels : ndarray of uint16, uint32 or int32, shape (H, W), or (N, H, W) for a clip
    ///     Labels from `start_label` on, `n_regions` of them, each used; `out` where that is given. They are uint16, and int32
    ///     with a mask, outside of which they are `start_label` - 1, or where `start_label` is not 0. Where "slic" has a grid of more
    ///     than 65535 superpixels they are uint32 instead of uint16, and no table is made of them; with `temporal`, `merge`, `n_regions`,
    ///     `levels` or `refine` superpixels are made larger instead, and a warning says how large. `regions` and what
    ///     else is known about a frame is that of the last one. Of a frame on a device: int32 there, an array of torch or CuPy
    ///     where the frame is one, or else a `DeviceArray`; complete once the stream has passed, the host does not wait. Of a frame of torch in the host's memory
    ///     int32 there.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     `frame`, `out` or `mask` of another type or dtype, or a masked array.
    /// ValueError
    ///     A shape that is not taken, a value that is no number or without `data_range` a float that is not in [0, 1], `out` shares memory with `frame`, or they are not
    ///     where this Segmenter works. Frames of a clip before such a float have been segmented.
    /// RuntimeError
    ///     Another thread uses this Segmenter, it is of a parent process, or the device fails.
    #[pyo3(signature = (frame, out = None, mask = None, stream = None, *, start_label = None, check = false, progress = None, prior = None, prior_cuts = true, prior_price = 0.0),
        text_signature = "($self, frame, out=None, mask=None, stream=None, *, start_label=0, check=False, progress=False, prior=None, prior_cuts=True, prior_price=0.0)")]
    #[allow(clippy::too_many_arguments)]
    fn segment<'py>(
        &self,
        py: Python<'py>,
        frame: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        mask: Option<&Bound<'py, PyAny>>,
        stream: Option<&Bound<'py, PyAny>>,
        start_label: Option<&Bound<'py, PyAny>>,
        check: bool,
        progress: Option<&Bound<'py, PyAny>>,
        prior: Option<&Bound<'py, PyAny>>,
        prior_cuts: bool,
        prior_price: f32,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut guard = self.lock()?;
        let prior_rule = PriorRule::new(prior_cuts, prior_price)?;
        let start = start_label.map_or(Ok(0), first_label)?;
        if is_on_device(frame)? {
            let arguments = Arguments { out, mask, prior, stream, check };
            let watch = Watch::new(py, progress, 1)?;
            let labels = self.segment_on_device(py, &mut guard, frame, arguments, (start, prior_rule))?;
            watch.end(py)?;
            return Ok(labels);
        }
        if stream.is_some() {
            return Err(PyValueError::new_err("stream is for frames on a device"));
        }
        let images = Images::new(frame, &self.reading)?;
        if !guard.has_warned {
            guard.has_warned = images.warn_of_range(py, guard.params.stretch_gray16, 1)?;
        }
        guard.warn_of_size(py, images.info().geometry)?;
        let call = HostFrames {
            frame,
            out,
            start,
            outputs: self.outputs,
            finds_events: self.events && self.outputs.table && guard.params.temporal,
            threads: self.threads,
            watch: Watch::new(py, progress, images.count().0)?,
            masks: mask.map(|mask| Masks::new(mask, &images)).transpose()?,
            priors: prior.map(|prior| Priors::new(prior, &images)).transpose()?,
            prior_rule,
            images,
        };
        call.segment(py, &mut guard)
    }

    /// Forgets the frames before: the next one is segmented as if it were the first, with new track ids.
    fn reset(&self) -> PyResult<()> {
        let mut guard = self.lock()?;
        guard.events.forget();
        guard.converted.components.forget();
        if let Some(engine) = &mut guard.engine {
            engine.reset();
        }
        Ok(())
    }

    /// Changes parameters between frames.
    ///
    /// Parameters
    /// ----------
    /// **parameters
    ///     As in the constructor; what is not named stays.
    ///
    /// Raises
    /// ------
    /// TypeError, ValueError
    ///     As in the constructor; nothing has changed then.
    ///
    /// Notes
    /// -----
    /// Track ids last if only these change: `compactness`, `iterations`, `adaptive`, `ratio`, `sigma`, `color_scale`,
    /// `temporal_inertia`, and of merging all but whether there is any, as long as the superpixels are enough for `n_regions`. With
    /// others the next frame starts anew, with track ids that have not been given before.
    #[pyo3(signature = (**values), text_signature = "($self, **parameters)")]
    fn set(&self, py: Python<'_>, values: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let mut guard = self.lock()?;
        let Some(values) = values else { return Ok(()) };
        let mut params = guard.params.clone();
        parameters::change(&mut params, values)?;
        let state = &mut *guard;
        py.detach(|| state.change(params)).map_err(exception)
    }

    /// dict: all parameters by name, a copy.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        parameters::dict(py, &self.lock()?.params)
    }

    /// dict: the parameters that the last frame was segmented with, by name, where they differ from `parameters`: `superpixel_size` is
    /// the step of the grid in px, and `n_segments` how many superpixels it starts from.
    #[getter]
    fn effective_parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut guard = self.lock()?;
        let all = parameters::dict(py, &guard.params)?;
        let grid = guard.grid()?;
        if guard.params.algorithm.algorithm() != Algorithm::QuickShift {
            all.set_item("superpixel_size", grid.step())?;
            all.set_item("n_segments", grid.cells())?;
        }
        Ok(all)
    }

    /// str: name of the algorithm.
    #[getter]
    fn algorithm(&self) -> PyResult<&'static str> {
        Ok(self.lock()?.params.algorithm.nick())
    }

    /// str or None: where frames are segmented, "cpu", "cuda:0" and so on; None until the first frame settles it.
    #[getter]
    fn device(&self) -> PyResult<Option<String>> {
        Ok(self.lock()?.place.map(WorkDevice::name))
    }

    /// str: order of the channels, "rgb" or "bgr".
    #[getter]
    fn order(&self) -> &'static str {
        self.reading.order.name()
    }

    /// int: the number of threads as it was given; 0 is one for each core.
    #[getter]
    fn threads(&self) -> u32 {
        self.threads
    }

    /// int: the track id that the next new region gets.
    #[getter]
    fn next_id(&self) -> PyResult<u32> {
        let mut state = self.lock()?;
        let next_id = state.next_id;
        state.engine.as_mut().map_or(Ok(next_id), Continuity::next_id).map_err(exception)
    }

    /// int: number of regions of the last frame. Waits for a frame on a device.
    #[getter]
    fn n_regions(&self, py: Python<'_>) -> PyResult<u32> {
        let mut guard = self.lock()?;
        if let Some(count) = guard.wide_regions {
            return Ok(count);
        }
        match guard.on_device()? {
            Some(source) => Ok(py.detach(|| source.engine.counts()).map(|counts| counts.regions)?),
            None => Ok(guard.regions()?.count),
        }
    }

    /// ndarray of shape (n_regions,): the regions of the last frame in the order of labels, a copy.
    ///
    #[doc = include_str!("fields/regions.txt")]
    ///
    /// `mean_rgb` has red first whatever the order.
    ///
    /// Of a frame on a device: a dict of arrays there by these names, (n_regions,) or (n_regions, columns), with int32 for uint32
    /// and int16 for uint16. Waits for the frame, as its number of regions is not known before, and for nothing else.
    #[getter]
    fn regions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.needs(self.outputs.table, "regions")?;
        let mut guard = self.lock()?;
        match guard.on_device()? {
            Some(mut source) => source.columns(py, &tables::REGIONS),
            None => records(py, &REGION, bytemuck::cast_slice(&guard.regions()?.table)),
        }
    }

    /// ndarray of shape (n_regions,): how the regions of the last frame came to their places, a copy. Needs `temporal`.
    ///
    #[doc = include_str!("fields/motion.txt")]
    ///
    /// Of a frame on a device: a dict, as `regions`.
    #[getter]
    fn motion<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.needs(self.outputs.table, "regions")?;
        let mut guard = self.lock()?;
        self.needs(guard.segmented()?.plan().temporal().is_some(), "temporal")?;
        match guard.on_device()? {
            Some(mut source) => source.columns(py, &tables::MOTION),
            None => records(py, &MOTION, bytemuck::cast_slice(&guard.regions()?.motion)),
        }
    }

    /// ndarray of shape (E,): pairs of regions of the last frame that touch, sorted by (a, b), a copy.
    ///
    #[doc = include_str!("fields/neighbors.txt")]
    ///
    /// Of a frame on a device: a dict, as `regions`.
    #[getter]
    fn neighbors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.needs(self.outputs.neighbors, "neighbors")?;
        let mut guard = self.lock()?;
        match guard.on_device()? {
            Some(mut source) => source.columns(py, &tables::NEIGHBORS),
            None => records(py, &NEIGHBOR, bytemuck::cast_slice(&guard.regions()?.neighbors)),
        }
    }

    /// ndarray: what would be merged next of the last frame, one record a step, a copy; for `cut`. Needs `levels`.
    ///
    #[doc = include_str!("fields/merges.txt")]
    ///
    /// As many steps as there are regions but one, or fewer where some do not touch. Of a frame on a device: a dict, as `regions`.
    #[getter]
    fn merges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut guard = self.lock()?;
        self.needs(guard.params.hierarchy.levels, "levels")?;
        match guard.on_device()? {
            Some(mut source) => source.columns(py, &tables::MERGES),
            None => records(py, &MERGE, bytemuck::cast_slice(&guard.regions()?.merges)),
        }
    }

    /// ndarray: what became of regions from the frame before to the last one, a copy. Needs `events`, `temporal` and a frame of numpy.
    ///
    #[doc = include_str!("fields/events.txt")]
    ///
    /// `EventKind` has names for the kinds. A cut comes first, then new regions in the order of labels, then gone ones. The first
    /// frame has no events.
    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        records(py, &EVENT, bytemuck::cast_slice(&self.found()?.found))
    }

    /// bool: no region of the last frame was in the frame before. Needs what `events` needs.
    #[getter]
    fn is_cut(&self) -> PyResult<bool> {
        Ok(self.found()?.found.iter().any(|event| EventKind::of(event) == Some(EventKind::Cut)))
    }

    /// ndarray of uint32: track ids of the regions that are new in the last frame, births and splits. Needs what `events` needs.
    #[getter]
    fn births<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.tracks_of(py, [EventKind::Birth, EventKind::Split])
    }

    /// ndarray of uint32: track ids of the regions that are gone since the frame before, deaths and merges. Needs what `events`
    /// needs.
    #[getter]
    fn deaths<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.tracks_of(py, [EventKind::Death, EventKind::Merge])
    }

    /// ndarray of int64, shape (2, 2E): the same pairs as PyTorch Geometric takes them, a copy.
    ///
    /// Each pair in both directions: columns 0 to E - 1 from a to b in the order of `neighbors`, then as many from b to a. Of a
    /// frame on a device: there, an array of its library; waits for the frame, for E.
    #[getter]
    fn edge_index<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.needs(self.outputs.neighbors, "neighbors")?;
        let mut guard = self.lock()?;
        if let Some(mut source) = guard.on_device()? {
            return source.edges(py);
        }
        let pairs = &guard.regions()?.neighbors;
        let (lower, higher) = (pairs.iter().map(|pair| pair.a), pairs.iter().map(|pair| pair.b));
        let sources = lower.clone().chain(higher.clone());
        let mut all = Vec::new();
        memory::reserve("pairs of regions", &mut all, 4 * pairs.len()).map_err(exception)?;
        all.extend(sources.chain(higher.chain(lower)).map(i64::from));
        Ok(all.into_pyarray(py).reshape([2, 2 * pairs.len()])?.into_any())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (nick, values) = {
            let state = self.lock()?;
            (state.params.algorithm.nick(), parameters::dict(py, &state.params)?)
        };
        let values = values.iter().map(|(name, value)| Ok(format!(", {name}={}", value.repr()?)));
        Ok(format!("Segmenter('{nick}'{})", values.collect::<PyResult<String>>()?))
    }
}
