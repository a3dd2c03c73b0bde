// SPDX-License-Identifier: MPL-2.0
//! The path of a frame through `superpixel`: backend and engine, queue of frames in flight, results, metadata.

use std::sync::atomic::Ordering;
use std::time::Instant;

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::prelude::*;

use super::active::{ActiveBackend, ActiveEngine, Progress};
use super::cuda::{self, DeviceContext, Pending};
use super::enums;
use super::frame;
use super::heap;
use super::imp::Superpixel;
use super::log::CAT;
use super::mask::{Masks, Priors};
use super::settings::{Settings, cpu_only};
use super::task::{FrameResults, Made, Stream, Task, advised, library_error};
use crate::analytics;
use crate::any_engine::Continuity;
use crate::bad_buffers::Failure;
use crate::error::Error;
use crate::events::{EventKind, Events};
use crate::image::FrameInfo;
use crate::meta;
use crate::params::Params;
use crate::plan::Plan;

/// Frame rate that the latency assumes for streams without a fixed rate.
const VARIABLE_RATE: (u64, u64) = (25, 1);

/// Longest gap in timestamps across which a stream continues.
const LONGEST_GAP: gst::ClockTime = gst::ClockTime::SECOND;

/// A frame in flight, with all data that finishing it needs.
pub(super) struct Started {
    pub pending: Pending,
    pub info: gst_video::VideoInfo,
    pub made: Made,
}

/// Facts about the backend for threads other than the streaming thread.
#[derive(Debug, Clone)]
pub(super) struct BackendInfo {
    pub is_device: bool,
    pub description: String,
}

/// State from start to stop, used by the streaming thread.
pub(super) struct State {
    /// `None` while an engine holds it.
    pub backend: Option<ActiveBackend>,
    /// The engine, with the parameters that its plan was made from.
    pub engine: Option<(Params, ActiveEngine)>,
    pub stream: Option<Stream>,
    /// Timestamp and duration of the last frame.
    pub last: Option<(gst::ClockTime, gst::ClockTime)>,
    /// First identity of the next engine.
    pub next_id: u32,
    /// Writer of standard metadata.
    pub analytics: analytics::Writer,
    pub masks: Masks,
    pub priors: Priors,
    /// The last frame, for the events of the next.
    pub events: Events,
    pub warned_of_step: bool,
    pub warned_of_objects: bool,
    pub warned_of_regions: bool,
}

impl State {
    pub(super) fn new(backend: ActiveBackend) -> Self {
        Self {
            backend: Some(backend),
            engine: None,
            stream: None,
            last: None,
            next_id: 1,
            analytics: analytics::Writer::default(),
            masks: Masks::default(),
            priors: Priors::default(),
            events: Events::default(),
            warned_of_step: false,
            warned_of_objects: false,
            warned_of_regions: false,
        }
    }

    /// Returns true if the device has failed for good, or if no engine could be made.
    pub(super) fn is_broken(&self) -> bool {
        self.engine.as_ref().map_or(self.backend.is_none(), |(_, engine)| engine.is_broken())
    }

    /// Returns true if a frame flagged as a discontinuity continues the stream nonetheless. Forwards it does after a
    /// short gap, as a leaky queue leaves by dropping frames. In reverse, decoders flag every frame or group of frames,
    /// even without a gap. A new scene is detected like any cut.
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

/// The error for frames after one that ended the stream.
pub(super) fn restart() -> gst::ErrorMessage {
    gst::error_msg!(gst::LibraryError::Failed, ("An earlier error ended this stream; restart the pipeline"))
}

impl Superpixel {
    /// Opens the requested backend or, for `auto`, the best that opens.
    pub(super) fn open(&self, settings: &Settings) -> Result<ActiveBackend, gst::ErrorMessage> {
        let refuse =
            |error: Error| gst::error_msg!(gst::LibraryError::Init, ("Cannot start: {}", advised(&error)));
        let params = settings.params();
        match settings.backend {
            enums::Backend::Cpu => ActiveBackend::cpu(settings).map_err(refuse),
            enums::Backend::Cuda => ActiveBackend::cuda(settings).map_err(refuse),
            enums::Backend::Auto if !params.runs_on_cuda() => {
                gst::info!(CAT, imp = self, "backend=auto: using the CPU: {}", cpu_only(&params));
                ActiveBackend::cpu(settings).map_err(refuse)
            }
            enums::Backend::Auto => match ActiveBackend::cuda(settings) {
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

    /// Returns true if the stream has to move from the device to the CPU, because only that supports the parameters.
    ///
    /// # Errors
    ///
    /// If the user asked for the device explicitly.
    fn has_to_leave_device(&self, params: &Params) -> Result<bool, gst::ErrorMessage> {
        if params.runs_on_cuda() || !self.is_on_device() {
            return Ok(false);
        }
        // A property written since start takes effect at the next start.
        if self.settings.lock().unwrap().started != Some(enums::Backend::Auto) {
            return Err(gst::error_msg!(gst::LibraryError::Failed, ("{}", cpu_only(params))));
        }
        Ok(true)
    }

    /// Replaces the device by the CPU until the next start.
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

    /// Returns true if frames may be in device memory: with the CUDA backend and GStreamer's CUDA library. Before start
    /// the backend is not known; then it is true unless the settings exclude a device.
    pub(super) fn takes_device_memory(&self) -> bool {
        let wanted = self.settings.lock().unwrap().may_use_device();
        let active = self.active_backend.lock().unwrap().clone();
        let found = || match cuda::unavailable() {
            None => true,
            Some(reason) => {
                gst::debug!(CAT, imp = self, "no CUDAMemory: GStreamer's CUDA library: {reason}");
                false
            }
        };
        // A property written now takes effect at the next start.
        match active {
            None => wanted,
            Some(active) => active.is_device && found(),
        }
    }

    pub(super) fn show_backend(&self, backend: Option<&ActiveBackend>) {
        let info = |backend: &ActiveBackend| BackendInfo {
            is_device: backend.is_device(),
            description: backend.describe(),
        };
        *self.active_backend.lock().unwrap() = backend.map(info);
        self.obj().notify("active-backend");
    }

    /// Makes a new plan if properties or caps have changed, and a new engine if the old one cannot continue with that
    /// plan.
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
                // Fails for instance for want of memory, of which a new engine needs less, since two never exist at
                // once.
                Err(error) => gst::info!(CAT, imp = self, "identities start anew: {error}"),
            }
        }
        // Checked before the engine is dropped: if the algorithm is refused, the backend stays usable.
        let leaves = self.has_to_leave_device(&params)?;
        let backend = match state.engine.take() {
            Some((_, mut engine)) => {
                // Frames in flight may still use its memory.
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

    /// Segments a frame, draws on it and attaches metadata, or starts to: then it returns what finishing needs.
    pub(super) fn process(
        &self,
        state: &mut State,
        buffer: &mut gst::BufferRef,
    ) -> Result<Option<Started>, Failure> {
        let began = Instant::now();
        let settings = self.settings.lock().unwrap().clone();
        let params = settings.params();
        let task = Task {
            outputs: settings.outputs(),
            labels: settings.labels,
            merges: params.hierarchy.levels,
            motion: params.temporal && settings.outputs().table,
            drawing: settings.drawing(),
        };
        let stream = state.stream.as_ref().ok_or_else(restart)?;
        if let Some(reason) = frame::foreign_crop(buffer, &stream.info) {
            return Err(reason.into());
        }
        let (frame, context) = (stream.frame, DeviceContext::of(buffer, stream)?);
        self.prepare(state, params, frame, context)?;
        let flushed = self.discontinuity.swap(false, Ordering::Relaxed);
        let reverse = self.obj().segment().rate() < 0.0;
        let discontinuous =
            buffer.flags().contains(gst::BufferFlags::DISCONT) && !state.continues_with(buffer, reverse);
        if flushed || discontinuous {
            state.masks.forget();
            if let Some((_, engine)) = &mut state.engine {
                engine.reset();
            }
        }
        state.note_time(buffer);
        let State { engine: Some((params, engine)), stream: Some(stream), masks, priors, .. } = state else {
            return Err(restart().into());
        };
        let (counted, reason) = masks.of(buffer, frame, &settings.mask).map_err(library_error)?;
        if let Some(reason) = reason {
            self.warn_of_mask(&reason);
        }
        let (prior, reason) = priors.of(buffer, frame, settings.mask.prior).map_err(library_error)?;
        if let Some(reason) = reason {
            self.warn_of_prior(&reason);
        }
        let made = Made {
            algo: params.algorithm.nick(),
            geometry: frame.geometry,
            regions: params.hierarchy.regions,
            analytics: settings.analytics.detail(),
            events: settings.events,
            is_first: flushed || discontinuous,
            began,
        };
        match engine.run(buffer, stream, task, counted, prior)? {
            Progress::Done(found) => {
                self.attach(state, buffer, found, made)?;
                if let Some((_, engine)) = &state.engine {
                    let times = engine.times().into_iter().flat_map(|times| times.iter());
                    self.stats.lock().unwrap().stages.extend(times);
                }
                Ok(None)
            }
            Progress::Started(pending) => Ok(Some(Started { pending, info: stream.info.clone(), made })),
        }
    }

    /// Finishes a frame in flight.
    fn finish(&self, state: &mut State, buffer: &mut gst::Buffer, started: Started) -> Result<(), Failure> {
        let Started { pending, info, made } = started;
        let found =
            ActiveEngine::finish(state.engine.as_mut().map(|(_, engine)| engine), pending, buffer, &info)?;
        Ok(self.attach(state, buffer.make_mut(), found, made)?)
    }

    /// Finishes the oldest frame in flight, if there are more than `depth`. A bad frame gives no buffer.
    pub(super) fn take_finished(&self, depth: usize) -> Option<Result<Option<gst::Buffer>, gst::FlowError>> {
        let (mut buffer, started) = {
            let mut queue = self.queue.lock().unwrap();
            if queue.len() <= depth {
                return None;
            }
            queue.pop_front()?
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

    /// Finishes and pushes all frames in flight. If one fails or is refused, the others are discarded, because later
    /// frames must not overtake it.
    pub(super) fn drain(&self) -> Result<(), gst::FlowError> {
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

    /// Discards all frames in flight, once the device no longer uses them.
    pub(super) fn forget(&self) {
        let queue = std::mem::take(&mut *self.queue.lock().unwrap());
        queue.iter().for_each(|(_, started)| started.pending.wait());
    }

    /// Most frames that are in flight while the next one is taken.
    pub(super) fn most_held(&self) -> u32 {
        if self.is_on_device() { self.depth.load(Ordering::Relaxed) as u32 } else { 0 }
    }

    /// Longest that a frame waits for those of other elements.
    fn most_wait(&self) -> gst::ClockTime {
        let wait = if self.is_on_device() { self.wait.load(Ordering::Relaxed) } else { 0 };
        gst::ClockTime::from_nseconds(wait)
    }

    /// Latency that frames in flight add, and waiting for other elements.
    pub(super) fn delay_of(&self, stream: &Stream) -> gst::ClockTime {
        let depth = u64::from(self.most_held());
        let rate = stream.info.fps();
        let (frames, seconds) = match (u64::try_from(rate.numer()), u64::try_from(rate.denom())) {
            (Ok(frames), Ok(seconds)) if frames > 0 => (frames, seconds),
            _ => VARIABLE_RATE,
        };
        gst::ClockTime::SECOND
            .mul_div_floor(seconds.saturating_mul(depth), frames)
            .unwrap_or(gst::ClockTime::MAX)
            .saturating_add(self.most_wait())
    }

    /// Attaches the results and counts the frame.
    fn attach(
        &self,
        state: &mut State,
        buffer: &mut gst::BufferRef,
        found: FrameResults,
        made: Made,
    ) -> Result<(), gst::ErrorMessage> {
        let Made { algo, geometry, regions: wanted, analytics, began, .. } = made;
        let regions = found.regions;
        let refuse = |e: glib::BoolError| {
            gst::error_msg!(gst::LibraryError::Failed, ("Cannot attach the metadata: {e}"))
        };
        if let Some(labels) = found.labels {
            let described =
                analytics::FrameRegions { labels: &labels, geometry, regions, table: found.table.as_ref() };
            self.describe(state, buffer, &described, analytics).map_err(refuse)?;
            let FrameResults { table, motion, neighbors, hierarchy, .. } = found;
            let attachment =
                meta::Attachment { labels, geometry, algo, regions, table, motion, neighbors, hierarchy };
            meta::attach(buffer, attachment).map_err(refuse)?;
        }
        let counts = self.note_events(state, buffer, made).map_err(refuse)?;
        if regions < wanted && !state.warned_of_regions {
            state.warned_of_regions = true;
            gst::warning!(
                CAT,
                imp = self,
                "{wanted} regions wanted, {regions} found: there are not more superpixels, or the picture is in pieces; a \
                 smaller superpixel-size, min-region or regions helps"
            );
        }
        let mut stats = self.stats.lock().unwrap();
        self.bad_buffers.note_used();
        stats.frames += 1;
        stats.regions = regions;
        stats.missing = (wanted > 0).then(|| wanted.saturating_sub(regions));
        stats.last = began.elapsed();
        stats.total += began.elapsed();
        stats.add_events(counts);
        // Stage times could be of another engine by now.
        stats.stages.clear();
        // After the CPU has replaced the device, the last bytes over the bus stay.
        let figures = state.engine.as_ref().and_then(|(_, engine)| engine.device_figures());
        stats.device = figures.or(stats.device);
        gst::trace!(CAT, imp = self, "{} regions in {:?}", stats.regions, stats.last);
        Ok(())
    }

    /// Attaches what became of regions since the last frame, and counts it by kind; `None` where events are not asked for.
    fn note_events(
        &self,
        state: &mut State,
        buffer: &mut gst::BufferRef,
        made: Made,
    ) -> Result<Option<[u64; EventKind::ALL.len()]>, glib::BoolError> {
        let events = &mut state.events;
        if made.is_first || !made.events {
            events.forget();
        }
        let Some(meta) = meta::SuperpixelMeta::from_buffer(buffer).filter(|_| made.events) else {
            return Ok(None);
        };
        let (table, motion) = (meta.table()?, meta.motion()?);
        // A frame whose mask has nothing inside has no motion either.
        if motion.is_empty() && meta.regions() > 0 {
            events.forget();
            return Ok(None);
        }
        let labels = meta.labels()?;
        let found = events.next(made.geometry, |y| labels.row(y), &table, &motion);
        let found = found.map_err(|error| glib::bool_error!("{error}"))?;
        meta::add_events(buffer, found)?;
        Ok(Some(EventKind::ALL.map(|kind| found.iter().filter(|e| e.kind == kind as u32).count() as u64)))
    }

    /// Attaches standard metadata, if it is wanted.
    fn describe(
        &self,
        state: &mut State,
        buffer: &mut gst::BufferRef,
        found: &analytics::FrameRegions<'_>,
        detail: Option<analytics::Detail>,
    ) -> Result<(), glib::BoolError> {
        let Some(detail) = detail else { return Ok(()) };
        let complete = state.analytics.attach(buffer, found, detail)?;
        if !complete && !state.warned_of_objects {
            state.warned_of_objects = true;
            let reason = analytics::unavailable().map_or_else(
                || format!("they need region-table=true and at most {} regions", analytics::MOST_OBJECTS),
                String::from,
            );
            gst::warning!(CAT, imp = self, "analytics=objects: no objects are attached, {reason}");
        }
        Ok(())
    }
}
