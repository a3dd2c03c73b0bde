// SPDX-License-Identifier: MPL-2.0
//! `superpixel`: state, caps and the path of a frame; no pixel arithmetic.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::prelude::*;
use gst_base::subclass::base_transform::GenerateOutputSuccess;
use gst_base::subclass::prelude::*;
use gst_video::subclass::prelude::*;

use super::active::{ActiveBackend, ActiveEngine, Progress};
use super::cuda::{self, DeviceContext, Pending};
use super::frame::{self, LabelPool};
use super::heap;
use super::log::CAT;
use super::settings::{self, Settings};
use super::task::{Found, Stream, Task, library_error};
use crate::algo::Algorithm;
use crate::bad_buffers::{BadBuffers, Failure};
use crate::error::Error;
use crate::image::FrameInfo;
use crate::meta;
use crate::params::Params;
use crate::plan::Plan;

/// What a stream of no fixed rate counts as, frames a second, where the latency depends on it.
const VARIABLE_RATE: (u64, u64) = (25, 1);

/// A stream goes on where not more than this of it is missing.
const LONGEST_GAP: gst::ClockTime = gst::ClockTime::SECOND;

/// A frame that a device works on, and what it takes to finish it.
struct Started {
    pending: Pending,
    info: gst_video::VideoInfo,
    algo: &'static str,
    began: Instant,
}

/// What is known of the backend outside the streaming thread.
#[derive(Debug, Clone)]
struct BackendInfo {
    is_device: bool,
    description: String,
}

/// What lives from start to stop.
struct State {
    /// Taken while an engine holds it.
    backend: Option<ActiveBackend>,
    /// The engine with the parameters that its plan was made from.
    engine: Option<(Params, ActiveEngine)>,
    stream: Option<Stream>,
    /// The frame that was started last, until it stands in the line.
    started: Option<Started>,
    /// When the last frame began, and how long it lasts.
    last: Option<(gst::ClockTime, gst::ClockTime)>,
    /// The identity that the next engine begins with.
    next_id: u32,
    warned_of_step: bool,
}

impl State {
    /// Whether a frame that is flagged as a discontinuity continues the stream all the same. Forward, a short gap does: frames were
    /// left out, as a leaky queue does. In reverse, decoders flag every frame or group of frames, without a gap too. A new scene
    /// is found as any cut.
    fn continues_with(&self, buffer: &gst::BufferRef, reverse: bool) -> bool {
        let (Some((began, duration)), Some(now)) = (self.last, buffer.pts()) else { return false };
        let step = duration.saturating_add(duration / 4);
        if reverse {
            now < began && began.saturating_sub(now) <= LONGEST_GAP.max(step)
        } else {
            now > began.saturating_add(step) && now <= began.saturating_add(LONGEST_GAP)
        }
    }

    fn note_time(&mut self, buffer: &gst::BufferRef) {
        let rate = self.stream.as_ref().map(|stream| stream.info.fps());
        let of_rate = rate
            .filter(|rate| rate.numer() > 0)
            .and_then(|rate| gst::ClockTime::SECOND.mul_div_floor(rate.denom() as u64, rate.numer() as u64));
        self.last = buffer.pts().zip(buffer.duration().or(of_rate));
    }
}

/// What the property `stats` shows.
#[derive(Default)]
struct Stats {
    frames: u64,
    regions: u32,
    last: Duration,
    total: Duration,
    /// Empty where only the device could tell.
    stages: Vec<(&'static str, Duration)>,
    /// Bytes over the bus since start, where there is one.
    traffic: Option<[(&'static str, u64); 3]>,
}

impl Stats {
    fn to_structure(&self) -> gst::Structure {
        let micros = |time: Duration| time.as_micros() as u64;
        let mut stats = gst::Structure::builder("superpixel-stats")
            .field("frames", self.frames)
            .field("regions", self.regions)
            .field("frame-time-us", micros(self.last))
            .field("frame-time-us-mean", micros(self.total) / self.frames.max(1))
            .build();
        for (name, bytes) in self.traffic.iter().flatten() {
            stats.set(*name, *bytes);
        }
        if !self.stages.is_empty() {
            let mut stages = gst::Structure::new_empty("stage-times-us");
            for (name, time) in &self.stages {
                stages.set(name.replace('/', "-"), micros(*time));
            }
            stats.set("stage-times-us", stages);
        }
        stats
    }
}

/// The element.
///
/// No two locks are held together, and none while a frame is worked on: a property access never waits for a frame, and
/// a panic in the frame path leaves every lock usable.
#[derive(Default)]
pub struct Superpixel {
    settings: Mutex<Settings>,
    state: Mutex<Option<State>>,
    /// Frames under way in their order.
    line: Mutex<VecDeque<(gst::Buffer, Started)>>,
    /// How many may be under way; as it was at start.
    depth: AtomicUsize,
    /// How much later frames leave for it, in ns.
    delay: AtomicU64,
    /// None while the element is stopped.
    active_backend: Mutex<Option<BackendInfo>>,
    stats: Mutex<Stats>,
    bad_buffers: BadBuffers,
    /// Set where the next frame does not follow the last: flush, seek, new caps.
    discontinuity: AtomicBool,
}

/// Caps of everything that can be segmented, on the device first: there no pixel has to move.
fn all_caps() -> gst::Caps {
    let mut caps = cuda::device_caps().unwrap_or_else(gst::Caps::new_empty);
    caps.merge(frame::system_caps());
    caps
}

fn cpu_only(algorithm: Algorithm) -> String {
    format!("algo={} runs on the CPU only; set backend=cpu or backend=auto", algorithm.nick())
}

fn restart() -> gst::ErrorMessage {
    gst::error_msg!(gst::LibraryError::Failed, ("An earlier error ended this stream; restart the pipeline"))
}

impl Superpixel {
    /// Opens the backend that is asked for, or the best that opens.
    fn open(&self, settings: &Settings) -> Result<ActiveBackend, gst::ErrorMessage> {
        let refuse = |error: Error| gst::error_msg!(gst::LibraryError::Init, ("Cannot start: {error}"));
        let algorithm = settings.algorithm();
        match settings.backend {
            settings::Backend::Cpu => ActiveBackend::cpu(settings).map_err(refuse),
            settings::Backend::Cuda if !algorithm.capabilities().cuda => {
                Err(gst::error_msg!(gst::LibraryError::Init, ("Cannot start: {}", cpu_only(algorithm))))
            }
            settings::Backend::Cuda => ActiveBackend::cuda(settings).map_err(refuse),
            settings::Backend::Auto if !algorithm.capabilities().cuda => {
                gst::info!(
                    CAT,
                    imp = self,
                    "backend=auto: using the CPU, the only backend of {}",
                    algorithm.nick()
                );
                ActiveBackend::cpu(settings).map_err(refuse)
            }
            settings::Backend::Auto => match ActiveBackend::cuda(settings) {
                Ok(backend) => {
                    gst::info!(CAT, imp = self, "backend=auto: using {}", backend.describe());
                    Ok(backend)
                }
                Err(error) => {
                    let backend = ActiveBackend::cpu(settings).map_err(refuse)?;
                    gst::info!(CAT, imp = self, "backend=auto: using {}, since {error}", backend.describe());
                    Ok(backend)
                }
            },
        }
    }

    /// Whether the stream has to move from the device to the CPU for an algorithm.
    ///
    /// Errors: it would have to, but the user has asked for the device.
    fn has_to_leave_device(&self, algorithm: Algorithm) -> Result<bool, gst::ErrorMessage> {
        if algorithm.capabilities().cuda || !self.is_on_device() {
            return Ok(false);
        }
        if self.settings.lock().unwrap().backend != settings::Backend::Auto {
            return Err(gst::error_msg!(gst::LibraryError::Failed, ("{}", cpu_only(algorithm))));
        }
        Ok(true)
    }

    /// Takes the CPU in the place of a device until the next start.
    fn leave_device(&self, backend: ActiveBackend) -> Result<ActiveBackend, gst::ErrorMessage> {
        drop(backend);
        let backend = ActiveBackend::cpu(&self.settings.lock().unwrap()).map_err(library_error)?;
        gst::info!(CAT, imp = self, "backend=auto: now using {}", backend.describe());
        self.show_backend(Some(&backend));
        Ok(backend)
    }

    fn is_on_device(&self) -> bool {
        self.active_backend.lock().unwrap().as_ref().is_some_and(|active| active.is_device)
    }

    /// Whether frames may come in device memory: with the CUDA backend and GStreamer's CUDA library. Before start that is
    /// not known, and only refused where it was not asked for.
    fn takes_device_memory(&self) -> bool {
        let wanted = self.settings.lock().unwrap().may_use_device();
        let active = self.active_backend.lock().unwrap().clone();
        let found = || match cuda::unavailable() {
            None => true,
            Some(reason) => {
                gst::debug!(CAT, imp = self, "no CUDAMemory: GStreamer's CUDA library: {reason}");
                false
            }
        };
        // What is wanted now counts from the next start on.
        match active {
            None => wanted,
            Some(active) => active.is_device && found(),
        }
    }

    fn show_backend(&self, backend: Option<&ActiveBackend>) {
        let info = |backend: &ActiveBackend| BackendInfo {
            is_device: backend.is_device(),
            description: backend.describe(),
        };
        *self.active_backend.lock().unwrap() = backend.map(info);
        self.obj().notify("active-backend");
    }

    /// Makes a new plan where the last does not fit the properties or the caps any more, and a new engine where the last
    /// cannot go on with that.
    fn prepare(
        &self,
        state: &mut State,
        params: Params,
        frame: FrameInfo,
        context: Option<DeviceContext>,
    ) -> Result<(), gst::ErrorMessage> {
        let fits = |engine: &ActiveEngine| engine.plan().frame == frame && engine.reaches(context.as_ref());
        if state.engine.as_ref().is_some_and(|(old, engine)| *old == params && fits(engine)) {
            return Ok(());
        }
        let plan = Plan::new(&params, frame).map_err(library_error)?;
        if let Some(wanted) = plan.raised_from.filter(|_| !state.warned_of_step) {
            state.warned_of_step = true;
            gst::warning!(
                CAT,
                imp = self,
                "a grid step of {wanted} px needs more than 65535 superpixels in frames of {}x{}, using {} px; set \
                 superpixel-size or superpixels accordingly to make this the choice",
                frame.geometry.width,
                frame.geometry.height,
                plan.grid.step
            );
        }
        gst::debug!(CAT, imp = self, "new plan: {:?} for {:?}", params, frame);
        if let Some((old, engine)) = state.engine.as_mut().filter(|(_, engine)| fits(engine)) {
            match engine.change(&plan) {
                Ok(true) => {
                    *old = params;
                    return Ok(());
                }
                Ok(false) => {}
                // For instance for want of memory, of which a new engine needs less than two at a time.
                Err(error) => gst::info!(CAT, imp = self, "identities start anew: {error}"),
            }
        }
        // Before the engine goes: where the algorithm is refused, the backend stays.
        let leaves = self.has_to_leave_device(params.algorithm.algorithm())?;
        let backend = match state.engine.take() {
            Some((_, mut engine)) => {
                // Frames under way may still be in its memory.
                engine.synchronize();
                state.next_id = engine.next_id().map_err(library_error)?;
                let backend = engine.into_backend();
                heap::trim_sometimes();
                backend
            }
            None => state.backend.take().ok_or_else(restart)?,
        };
        let backend = if leaves { self.leave_device(backend)? } else { backend };
        let backend = backend.at(context).map_err(library_error)?;
        let depth = self.depth.load(Ordering::Relaxed);
        let mut engine = backend.engine(plan, depth).map_err(library_error)?;
        engine.set_next_id(state.next_id).map_err(library_error)?;
        state.engine = Some((params, engine));
        Ok(())
    }

    /// Segments, draws and attaches, or starts to.
    fn process(&self, state: &mut State, buffer: &mut gst::BufferRef) -> Result<(), Failure> {
        let began = Instant::now();
        let settings = self.settings.lock().unwrap().clone();
        let task = Task { outputs: settings.outputs(), labels: settings.labels, drawing: settings.drawing() };
        let stream = state.stream.as_ref().ok_or_else(restart)?;
        let (frame, context) = (stream.frame, DeviceContext::of(buffer, stream)?);
        self.prepare(state, settings.params(), frame, context)?;
        let flushed = self.discontinuity.swap(false, Ordering::Relaxed);
        let reverse = self.obj().segment().rate() < 0.0;
        let discontinuous =
            buffer.flags().contains(gst::BufferFlags::DISCONT) && !state.continues_with(buffer, reverse);
        if (flushed || discontinuous)
            && let Some((_, engine)) = &mut state.engine
        {
            engine.reset();
        }
        state.note_time(buffer);
        let State { engine: Some((params, engine)), stream: Some(stream), started, .. } = state else {
            return Err(restart().into());
        };
        let algo = params.algorithm.nick();
        match engine.run(buffer, stream, task)? {
            Progress::Done(found) => Ok(self.attach(buffer, found, frame.geometry, algo, began, engine)?),
            Progress::Started(pending) => {
                *started = Some(Started { pending, info: stream.info.clone(), algo, began });
                Ok(())
            }
        }
    }

    /// Finishes a frame that was started.
    fn finish(&self, state: &mut State, buffer: &mut gst::Buffer, started: Started) -> Result<(), Failure> {
        let Started { pending, info, algo, began } = started;
        let frame = frame::frame_info(&info).ok_or_else(restart)?;
        let found =
            ActiveEngine::finish(state.engine.as_mut().map(|(_, engine)| engine), pending, buffer, &info)?;
        let Some((_, engine)) = &state.engine else { return Err(restart().into()) };
        Ok(self.attach(buffer.make_mut(), found, frame.geometry, algo, began, engine)?)
    }

    /// Finishes the oldest frame under way, if more than `depth` are; no buffer comes of a bad one.
    fn take_finished(&self, depth: usize) -> Option<Result<Option<gst::Buffer>, gst::FlowError>> {
        let (mut buffer, started) = {
            let mut line = self.line.lock().unwrap();
            if line.len() <= depth {
                return None;
            }
            line.pop_front()?
        };
        let Some(mut state) = self.state.lock().unwrap().take() else {
            return Some(Err(gst::FlowError::Flushing));
        };
        let result = self.finish(&mut state, &mut buffer, started);
        *self.state.lock().unwrap() = Some(state);
        Some(match result {
            Ok(()) => Ok(Some(buffer)),
            Err(failure) => self.bad_buffers.handle(self.obj().upcast_ref(), &buffer, failure).map(|()| None),
        })
    }

    /// Finishes and sends all frames under way. Where one fails or is not wanted, the others are forgotten: what comes after
    /// them must not overtake them.
    fn drain(&self) -> Result<(), gst::FlowError> {
        while let Some(result) = self.take_finished(0) {
            let pushed = match result {
                Ok(Some(buffer)) => self.obj().src_pad().push(buffer).map(|_| ()),
                other => other.map(|_| ()),
            };
            if let Err(error) = pushed {
                self.forget();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Forgets all frames under way, once the device has let go of them.
    fn forget(&self) {
        let line = std::mem::take(&mut *self.line.lock().unwrap());
        line.iter().for_each(|(_, started)| started.pending.wait());
    }

    /// Most frames that are held back when one is taken.
    fn most_held(&self) -> u32 {
        if self.is_on_device() { self.depth.load(Ordering::Relaxed) as u32 } else { 0 }
    }

    /// How much later than in the stream frames leave.
    fn delay_of(&self, stream: &Stream) -> gst::ClockTime {
        let depth = u64::from(self.most_held());
        let rate = stream.info.fps();
        let (frames, seconds) = match (u64::try_from(rate.numer()), u64::try_from(rate.denom())) {
            (Ok(frames), Ok(seconds)) if frames > 0 => (frames, seconds),
            _ => VARIABLE_RATE,
        };
        gst::ClockTime::SECOND
            .mul_div_floor(seconds.saturating_mul(depth), frames)
            .unwrap_or(gst::ClockTime::MAX)
    }

    /// Attaches what was found and counts the frame.
    fn attach(
        &self,
        buffer: &mut gst::BufferRef,
        found: Found,
        geometry: crate::image::Geometry,
        algo: &'static str,
        began: Instant,
        engine: &ActiveEngine,
    ) -> Result<(), gst::ErrorMessage> {
        if let Some(labels) = found.labels {
            let attached = meta::attach(
                buffer,
                meta::Attachment {
                    labels,
                    geometry,
                    algo,
                    regions: found.regions,
                    table: found.table,
                    motion: found.motion,
                    neighbors: found.neighbors,
                },
            );
            attached.map_err(|e| {
                gst::error_msg!(gst::LibraryError::Failed, ("Cannot attach the metadata: {e}"))
            })?;
        }
        let mut stats = self.stats.lock().unwrap();
        self.bad_buffers.note_used();
        stats.frames += 1;
        stats.regions = found.regions;
        stats.last = began.elapsed();
        stats.total += began.elapsed();
        stats.stages.clear();
        stats.stages.extend(engine.times().into_iter().flat_map(|times| times.iter()));
        stats.traffic = engine.traffic();
        gst::trace!(CAT, imp = self, "{} regions in {:?}", stats.regions, stats.last);
        Ok(())
    }
}

#[glib::object_subclass]
impl ObjectSubclass for Superpixel {
    const NAME: &'static str = "GstSuperpixel";
    type Type = super::Superpixel;
    type ParentType = gst_video::VideoFilter;
}

impl ObjectImpl for Superpixel {
    fn properties() -> &'static [glib::ParamSpec] {
        settings::PROPERTIES.as_ref()
    }

    fn set_property(&self, _id: usize, value: &glib::Value, pspec: &glib::ParamSpec) {
        let result = self.settings.lock().unwrap().set(pspec.name(), value);
        if let Err(error) = result {
            gst::warning!(CAT, imp = self, "{error}; the old value stays");
        }
    }

    fn property(&self, _id: usize, pspec: &glib::ParamSpec) -> glib::Value {
        match pspec.name() {
            "active-backend" => {
                let active = self.active_backend.lock().unwrap();
                active.as_ref().map_or("", |active| &active.description).to_value()
            }
            "stats" => {
                let mut stats = self.stats.lock().unwrap().to_structure();
                stats.set("dropped", self.bad_buffers.dropped());
                stats.to_value()
            }
            name => self.settings.lock().unwrap().get(name),
        }
    }
}

impl GstObjectImpl for Superpixel {}

impl ElementImpl for Superpixel {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Superpixel segmentation",
                "Filter/Analyzer/Effect/Video",
                "Segments video into superpixels, attaches the label map and draws boundaries or mean colors",
                "The superpixel contributors",
            )
        });
        Some(&*METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let caps = all_caps();
            [("sink", gst::PadDirection::Sink), ("src", gst::PadDirection::Src)]
                .into_iter()
                .filter_map(|(name, direction)| {
                    gst::PadTemplate::new(name, direction, gst::PadPresence::Always, &caps).ok()
                })
                .collect()
        });
        TEMPLATES.as_ref()
    }
}

impl BaseTransformImpl for Superpixel {
    const MODE: gst_base::subclass::BaseTransformMode = gst_base::subclass::BaseTransformMode::AlwaysInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let settings = self.settings.lock().unwrap().clone();
        let backend = self.open(&settings)?;
        self.depth.store(settings.device.depth(), Ordering::Relaxed);
        self.delay.store(0, Ordering::Relaxed);
        self.show_backend(Some(&backend));
        *self.stats.lock().unwrap() = Stats::default();
        self.bad_buffers.reset();
        *self.state.lock().unwrap() = Some(State {
            backend: Some(backend),
            engine: None,
            stream: None,
            started: None,
            last: None,
            next_id: 1,
            warned_of_step: false,
        });
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        self.forget();
        let state = self.state.lock().unwrap().take();
        let broken = match state {
            Some(State { engine: Some((_, engine)), .. }) => engine.is_broken(),
            // An engine could not be made.
            Some(State { backend: None, .. }) => true,
            _ => false,
        };
        if broken {
            cuda::forget_context(self.obj().upcast_ref());
        }
        heap::trim();
        self.show_backend(None);
        Ok(())
    }

    fn transform_caps(
        &self,
        _direction: gst::PadDirection,
        caps: &gst::Caps,
        filter: Option<&gst::Caps>,
    ) -> Option<gst::Caps> {
        let mut caps = caps.clone();
        if caps.iter_with_features().any(|(_, features)| cuda::is_on_device(features))
            && !self.takes_device_memory()
        {
            caps = caps
                .iter_with_features()
                .filter(|(_, features)| !cuda::is_on_device(features))
                .map(|(structure, features)| (structure.to_owned(), features.to_owned()))
                .collect();
        }
        Some(filter.map_or_else(
            || caps.clone(),
            |filter| filter.intersect_with_mode(&caps, gst::CapsIntersectMode::First),
        ))
    }

    fn generate_output(&self) -> Result<GenerateOutputSuccess, gst::FlowError> {
        let generated = match self.parent_generate_output()? {
            GenerateOutputSuccess::Buffer(buffer) => buffer,
            other => return Ok(other),
        };
        let started = self.state.lock().unwrap().as_mut().and_then(|state| state.started.take());
        let Some(started) = started else {
            self.drain()?;
            return Ok(GenerateOutputSuccess::Buffer(generated));
        };
        self.line.lock().unwrap().push_back((generated, started));
        match self.take_finished(self.depth.load(Ordering::Relaxed)) {
            // What comes after one that fails must not overtake it.
            Some(Err(error)) => {
                self.forget();
                Err(error)
            }
            Some(Ok(Some(buffer))) => Ok(GenerateOutputSuccess::Buffer(buffer)),
            Some(Ok(None)) | None => Ok(GenerateOutputSuccess::NoOutput),
        }
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        use gst::EventView;
        // Serialized with buffers. A seek comes as flush or as a new segment.
        if matches!(event.type_(), gst::EventType::FlushStop | gst::EventType::Segment) {
            self.discontinuity.store(true, Ordering::Relaxed);
        }
        match event.view() {
            EventView::FlushStop(_) => self.forget(),
            _ if event.is_serialized() => {
                // The event goes on whatever became of the frames: the next chain call tells.
                let _ = self.drain();
            }
            _ => {}
        }
        if let (EventView::Eos(_), Some(message)) = (event.view(), self.bad_buffers.at_end()) {
            self.post_error_message(message);
        }
        self.parent_sink_event(event)
    }

    /// Adds what frames under way take of a pool, and takes away what is not done for upstream: without this, the base class asks
    /// downstream as if the element were not there.
    fn propose_allocation(
        &self,
        decide_query: Option<&gst::query::Allocation>,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        let held = self.most_held();
        // A downstream that does not answer knows nothing of what is held.
        if let Err(unanswered) = self.parent_propose_allocation(decide_query, query)
            && held == 0
        {
            return Err(unanswered);
        }
        // Sent with the whole picture, a frame would be segmented and drawn on from its first pixel on.
        while let Some(index) = query.find_allocation_meta::<gst_video::VideoCropMeta>() {
            query.remove_nth_allocation_meta(index);
        }
        if held == 0 {
            return Ok(());
        }
        let pools: Vec<_> = query.allocation_pools().collect();
        for (index, (pool, size, min, max)) in (0..).zip(&pools) {
            let max = if *max == 0 { 0 } else { max.saturating_add(held) };
            query.set_nth_allocation_pool(index, pool.as_ref(), *size, min.saturating_add(held), max);
        }
        let size =
            query.get().0.and_then(|caps| gst_video::VideoInfo::from_caps(caps).ok()).map(|info| info.size());
        if let (true, Some(size)) = (pools.is_empty(), size.and_then(|size| u32::try_from(size).ok())) {
            query.add_allocation_pool(None::<&gst::BufferPool>, size, held + 1, 0);
        }
        Ok(())
    }

    fn query(&self, direction: gst::PadDirection, query: &mut gst::QueryRef) -> bool {
        if direction == gst::PadDirection::Sink && query.is_serialized() {
            // Who asks waits for what it has sent.
            let _ = self.drain();
        }
        if !BaseTransformImplExt::parent_query(self, direction, query) {
            return false;
        }
        let delay = gst::ClockTime::from_nseconds(self.delay.load(Ordering::Relaxed));
        if let (gst::PadDirection::Src, gst::QueryViewMut::Latency(latency)) = (direction, query.view_mut())
            && !delay.is_zero()
        {
            let (live, min, max) = latency.result();
            latency.set(live, min.saturating_add(delay), max.map(|max| max.saturating_add(delay)));
        }
        true
    }

    fn before_transform(&self, inbuf: &gst::BufferRef) {
        // The flag belongs to this frame, not to the one that leaves next.
        if inbuf.flags().contains(gst::BufferFlags::DISCONT) {
            // An error shows again when this frame is worked on.
            let _ = self.drain();
        }
        let segment = self.obj().segment();
        let stream_time =
            segment.downcast_ref::<gst::ClockTime>().and_then(|s| s.to_stream_time(inbuf.pts()));
        if let Some(time) = stream_time
            && let Err(error) = self.obj().sync_values(time)
        {
            gst::warning!(CAT, imp = self, "cannot set controlled properties for {time}: {error}");
        }
    }

    // On the raw buffer and not on a mapped frame: the parent would map for writing, which copies shared pixels even
    // where only labels are wanted, and gives no buffer to attach metadata to.
    fn transform_ip(&self, buffer: &mut gst::BufferRef) -> Result<gst::FlowSuccess, gst::FlowError> {
        let Some(mut state) = self.state.lock().unwrap().take() else {
            self.post_error_message(restart());
            return Err(gst::FlowError::Error);
        };
        let result = self.process(&mut state, buffer);
        *self.state.lock().unwrap() = Some(state);
        match result {
            Ok(()) => Ok(gst::FlowSuccess::Ok),
            Err(failure) => {
                self.bad_buffers.handle(self.obj().upcast_ref(), buffer, failure)?;
                Ok(gst_base::BASE_TRANSFORM_FLOW_DROPPED)
            }
        }
    }
}

impl VideoFilterImpl for Superpixel {
    fn set_info(
        &self,
        incaps: &gst::Caps,
        info: &gst_video::VideoInfo,
        _outcaps: &gst::Caps,
        _out_info: &gst_video::VideoInfo,
    ) -> Result<(), gst::LoggableError> {
        let frame = frame::frame_info(info)
            .ok_or_else(|| gst::loggable_error!(CAT, "frames of {info:?} are not supported"))?;
        let pool = LabelPool::new(frame.geometry).map_err(|error| {
            gst::loggable_error!(CAT, "no pool for label maps of {:?}: {error}", frame.geometry)
        })?;
        gst::debug!(CAT, imp = self, "caps: {:?}", frame);
        let stream = Stream {
            info: info.clone(),
            frame,
            on_device: incaps.features(0).is_some_and(cuda::is_on_device),
            pool,
        };
        let delay = self.delay_of(&stream).nseconds();
        match &mut *self.state.lock().unwrap() {
            Some(state) => state.stream = Some(stream),
            None => return Err(gst::loggable_error!(CAT, "caps before start or after an error")),
        }
        if self.delay.swap(delay, Ordering::Relaxed) != delay {
            // Nobody listens before the element is in a pipeline.
            let _ = self.obj().post_message(gst::message::Latency::builder().src(&*self.obj()).build());
        }
        self.discontinuity.store(true, Ordering::Relaxed);
        Ok(())
    }
}
