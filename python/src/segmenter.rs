// SPDX-License-Identifier: MPL-2.0
//! The class `Segmenter`: an engine for frames one after another, with what is known about their regions.

use std::sync::{Mutex, MutexGuard, TryLockError};

use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::error::Result;
use gstsuperpixel::image::{FrameInfo, Labels};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::regions::Regions;
use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::arrays::{Images, LabelArray, Order};
use crate::error::{Failure, exception};
use crate::mask::Mask;
use crate::parameters;
use crate::pools::pool;

/// Segments frames one after another, and keeps what that needs from call to call.
///
/// Parameters
/// ----------
/// algorithm : {"slic", "lsc", "quickshift", "snic"}
///     The algorithm.
/// order : {"rgb", "bgr"}
///     Order of the channels; OpenCV has "bgr".
/// threads : int
///     Threads, 0 to 1024; 0 is one for each core. The result is the same.
/// regions : bool
///     Measure `regions` and, with `temporal`, `motion` of every frame. Takes time.
/// neighbors : bool
///     Find `neighbors` and `edge_index` of every frame. Takes time.
/// linear_light : bool
///     Mean colors of light instead of code values.
/// temporal : bool
///     Frames are a video: each starts from the one before, and regions keep their track ids until a cut.
/// temporal_inertia : float
///     How strongly a pixel keeps its region, 0 to 0.9.
/// n_segments : int, optional
///     Wanted number of superpixels, about; 0 leaves it to `superpixel_size`.
/// superpixel_size : int, optional
///     Grid step in px, 4 to 1024, instead of `n_segments`.
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
/// Notes
/// -----
/// Without `temporal` every frame is independent, and its labels are those of the function of the same name. Frames may change
/// their size and channels; identities then go on with new numbers.
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
    order: Order,
    outputs: Outputs,
    threads: u32,
}

struct State {
    params: Params,
    engine: Option<Engine<Cpu>>,
    /// Whether `params` need another engine than the one that is there.
    is_outdated: bool,
    is_segmented: bool,
    /// The next identity, where the engine that knew it is gone.
    next_id: u32,
    /// Where frames of floats are converted.
    codes: Vec<u16>,
}

impl State {
    /// Runs `segment` on an engine for such frames. Identities go on where that is a new one.
    fn run(
        &mut self,
        info: FrameInfo,
        cpu: Cpu,
        segment: impl FnOnce(&mut Engine<Cpu>) -> Result<()>,
    ) -> Result<()> {
        let is_other = |engine: &Engine<Cpu>| engine.plan().frame() != info;
        if self.is_outdated || self.engine.as_ref().is_some_and(is_other) {
            self.remove()?;
        }
        let mut engine = match self.engine.take() {
            Some(engine) => engine,
            None => {
                let mut engine = Engine::new(cpu, Plan::new(&self.params, info)?)?;
                engine.set_next_id(self.next_id)?;
                self.is_outdated = false;
                engine
            }
        };
        let result = segment(&mut engine);
        self.is_segmented = result.is_ok();
        self.engine = Some(engine);
        result
    }

    /// Drops the engine and remembers the next identity.
    fn remove(&mut self) -> Result<()> {
        self.is_segmented = false;
        if let Some(mut engine) = self.engine.take() {
            self.next_id = engine.next_id()?;
        }
        Ok(())
    }

    fn change(&mut self, params: Params) -> Result<()> {
        self.params = params;
        if self.is_outdated {
            return Ok(());
        }
        let Some(engine) = &mut self.engine else { return Ok(()) };
        let plan = Plan::new(&self.params, engine.plan().frame())?;
        match engine.change(&plan) {
            Ok(is_done) => self.is_outdated = !is_done,
            // It is of no use now.
            Err(error) => {
                self.remove()?;
                return Err(error);
            }
        }
        Ok(())
    }

    fn regions(&self) -> PyResult<&Regions> {
        match &self.engine {
            Some(engine) if self.is_segmented => Ok(engine.regions()),
            _ => Err(PyRuntimeError::new_err("no frame has been segmented; call segment(frame) first")),
        }
    }
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
            std::mem::forget(state.engine.take());
        }
    }
}

#[pymethods]
impl Segmenter {
    #[new]
    #[pyo3(signature = (algorithm = None, *, order = "rgb", threads = None, regions = true, neighbors = true,
        linear_light = false, **values), text_signature = "(algorithm='slic', *, order='rgb', threads=0, regions=True, neighbors=True, linear_light=False, **parameters)")]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        algorithm: Option<&Bound<'_, PyAny>>,
        order: &str,
        threads: Option<&Bound<'_, PyAny>>,
        regions: bool,
        neighbors: bool,
        linear_light: bool,
        values: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut params = match algorithm {
            Some(name) => parameters::params(parameters::algorithm(name)?),
            None => Params::default(),
        };
        if let Some(values) = values {
            parameters::change(&mut params, values)?;
        }
        let threads = threads.map_or(Ok(0), parameters::threads)?;
        // What the system refuses is found here, not at the first frame.
        pool(py, threads)?;
        Ok(Self {
            state: Mutex::new(State {
                params,
                engine: None,
                is_outdated: false,
                is_segmented: false,
                next_id: 1,
                codes: Vec::new(),
            }),
            process: std::process::id(),
            order: Order::new(order)?,
            outputs: Outputs { table: regions, neighbors, mean_color: false, linear_light },
            threads,
        })
    }

    /// Segments a frame, or the frames of a clip in their order.
    ///
    /// Parameters
    /// ----------
    /// frame : ndarray of uint8, uint16 or float32, shape (H, W), (H, W, 1), (H, W, 3) or (H, W, 4)
    ///     The frame: gray, or color of sRGB; floats are in [0, 1]. Rows may be at any distance, the pixels of a row are together.
    ///     Of shape (N, H, W, C) it is a clip: N frames one after another, the same as N calls.
    /// out : ndarray of uint16, shape (H, W), or (N, H, W) for a clip, optional
    ///     Where labels are written. Rows may be at any distance.
    /// mask : ndarray of bool or uint8, shape (H, W), or (N, H, W) for a clip, optional
    ///     Segment only pixels where it is not 0: the others belong to no region, and add to none. The first mask makes the
    ///     Segmenter start anew, as another size does; later frames may have masks or not.
    ///
    /// Returns
    /// -------
    /// labels : ndarray of uint16, shape (H, W), or (N, H, W) for a clip
    ///     Labels 0 to `n_regions` - 1, each used, and 65535 outside of the mask; `out` where that is given. `regions` and what else is known about a frame is that
    ///     of the last one.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     `frame`, `out` or `mask` of another type or dtype, or a masked array.
    /// ValueError
    ///     A shape or layout that is not taken, a float that is not in [0, 1], or `out` shares memory with `frame`. Frames of a clip
    ///     before such a float have been segmented.
    /// RuntimeError
    ///     Another thread uses this Segmenter, or it is of a parent process.
    #[pyo3(signature = (frame, out = None, mask = None))]
    fn segment<'py>(
        &self,
        py: Python<'py>,
        frame: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        mask: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut guard = self.lock()?;
        let images = Images::new(frame, self.order)?;
        let mask = mask.map(|mask| Mask::new(mask, &images)).transpose()?;
        let mut array = LabelArray::<u16>::new(py, out, &images)?;
        let cpu = pool(py, self.threads)?;
        let (info, sources, stride) = (images.info(), images.sources()?, array.stride());
        let frames: Vec<_> = sources.iter().zip(array.planes()).collect();
        let (state, outputs) = (&mut *guard, self.outputs);
        if mask.is_some() && !state.params.masked {
            (state.params.masked, state.is_outdated) = (true, true);
        }
        let mut codes = std::mem::take(&mut state.codes);
        py.detach(|| {
            for (i, (source, plane)) in frames.into_iter().enumerate() {
                source.with(&mut codes, |frame| {
                    let frame = &Mask::on(mask.as_ref().map(|mask| mask.of(i)), frame)?;
                    let mut labels = Labels::new(info.geometry, plane, stride)?;
                    state.run(info, cpu.clone(), |engine| {
                        engine.segment(frame, &mut labels, outputs).map(drop)
                    })
                })?;
            }
            state.codes = codes;
            Ok::<_, Failure>(())
        })?;
        Ok(array.into_array())
    }

    /// Forgets the frames before: the next one is segmented as if it were the first, with new track ids.
    fn reset(&self) -> PyResult<()> {
        if let Some(engine) = &mut self.lock()?.engine {
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
    /// `temporal_inertia`, and of merging all but whether there is any. With others the next frame starts anew, with track
    /// ids that have not been given before.
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

    /// str: name of the algorithm.
    #[getter]
    fn algorithm(&self) -> PyResult<&'static str> {
        Ok(self.lock()?.params.algorithm.nick())
    }

    /// str: order of the channels, "rgb" or "bgr".
    #[getter]
    fn order(&self) -> &'static str {
        self.order.name()
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
        state.engine.as_mut().map_or(Ok(next_id), Engine::next_id).map_err(exception)
    }

    /// int: number of regions of the last frame.
    #[getter]
    fn n_regions(&self) -> PyResult<u32> {
        Ok(self.lock()?.regions()?.count)
    }

    /// ndarray of shape (n_regions,): the regions of the last frame in the order of labels, a copy.
    ///
    /// Fields: `track_id` (uint32; the label if not `temporal`), `area` (uint32, px), `centroid` (2 float32: x, y), `mean_rgb`
    /// (3 uint8, rounded half up; red first whatever the order), `mean_lab` (3 float32: CIE L, a, b), `bounds` (4 uint16: x0,
    /// y0, x1, y1, the latter two exclusive).
    #[getter]
    fn regions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.needs(self.outputs.table, "regions")?;
        records(py, &REGION, bytemuck::cast_slice(&self.lock()?.regions()?.table))
    }

    /// ndarray of shape (n_regions,): how the regions of the last frame came to their places, a copy. Needs `temporal`.
    ///
    /// Fields: `velocity` (2 float32: x, y in px since the last frame, 0 in the first one), `age` (uint32: number of frames
    /// before this one with a region of the same track id).
    #[getter]
    fn motion<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.needs(self.outputs.table, "regions")?;
        let guard = self.lock()?;
        let regions = guard.regions()?;
        self.needs(
            guard.engine.as_ref().is_some_and(|engine| engine.plan().temporal().is_some()),
            "temporal",
        )?;
        records(py, &MOTION, bytemuck::cast_slice(&regions.motion))
    }

    /// ndarray of shape (E,): pairs of regions of the last frame that touch, sorted by (a, b), a copy.
    ///
    /// Fields: `a`, `b` (uint32: the lower and the higher label), `length` (uint32: length of the boundary that they share, in pairs
    /// of pixels side by side or one above the other).
    #[getter]
    fn neighbors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.needs(self.outputs.neighbors, "neighbors")?;
        records(py, &NEIGHBOR, bytemuck::cast_slice(&self.lock()?.regions()?.neighbors))
    }

    /// ndarray of int64, shape (2, 2E): the same pairs as PyTorch Geometric takes them, a copy.
    ///
    /// Each pair in both directions: columns 0 to E - 1 from a to b in the order of `neighbors`, then as many from b to a.
    #[getter]
    fn edge_index<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.needs(self.outputs.neighbors, "neighbors")?;
        let guard = self.lock()?;
        let pairs = &guard.regions()?.neighbors;
        let (lower, higher) = (pairs.iter().map(|pair| pair.a), pairs.iter().map(|pair| pair.b));
        let sources = lower.clone().chain(higher.clone());
        let all: Vec<i64> = sources.chain(higher.chain(lower)).map(i64::from).collect();
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

/// A structure of the library as a dtype of numpy: names, formats, offsets, bytes of a record.
struct Record {
    names: &'static [&'static str],
    formats: &'static [&'static str],
    offsets: &'static [usize],
    bytes: usize,
    dtype: PyOnceLock<Py<PyAny>>,
}

static REGION: Record = Record {
    names: &["track_id", "area", "centroid", "mean_rgb", "mean_lab", "bounds"],
    formats: &["<u4", "<u4", "(2,)<f4", "(3,)u1", "(3,)<f4", "(4,)<u2"],
    offsets: &[0, 4, 8, 16, 20, 32],
    bytes: 40,
    dtype: PyOnceLock::new(),
};
static MOTION: Record = Record {
    names: &["velocity", "age"],
    formats: &["(2,)<f4", "<u4"],
    offsets: &[0, 8],
    bytes: 12,
    dtype: PyOnceLock::new(),
};
static NEIGHBOR: Record = Record {
    names: &["a", "b", "length"],
    formats: &["<u4", "<u4", "<u4"],
    offsets: &[0, 4, 8],
    bytes: 12,
    dtype: PyOnceLock::new(),
};

/// A new array with a copy of records.
fn records<'py>(py: Python<'py>, record: &Record, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let dtype = record.dtype.get_or_try_init(py, || {
        let fields = PyDict::new(py);
        fields.set_item("names", record.names.to_vec())?;
        fields.set_item("formats", record.formats.to_vec())?;
        fields.set_item("offsets", record.offsets.to_vec())?;
        fields.set_item("itemsize", record.bytes)?;
        py.import("numpy")?.call_method1("dtype", (fields,)).map(Bound::unbind)
    })?;
    PyArray1::from_slice(py, bytes).call_method1("view", (dtype,))
}
