// SPDX-License-Identifier: MPL-2.0
//! `superpixel`: state, caps and the path of a frame; no pixel arithmetic.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::prelude::*;
use gst_base::subclass::prelude::*;
use gst_video::subclass::prelude::*;

use super::active::{ActiveBackend, ActiveEngine, Task, library_error};
use super::frame::{self, LabelPool};
use super::settings::{self, Settings};
use crate::error::Error;
use crate::image::FrameInfo;
use crate::meta;
use crate::params::Params;
use crate::plan::Plan;

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new("superpixel", gst::DebugColorFlags::empty(), Some("Superpixel segmentation"))
});

/// What the caps say.
struct Stream {
    info: gst_video::VideoInfo,
    frame: FrameInfo,
    pool: LabelPool,
}

/// What lives from start to stop.
struct State {
    /// Taken while an engine holds it.
    backend: Option<ActiveBackend>,
    /// The engine with the parameters that its plan was made from.
    engine: Option<(Params, ActiveEngine)>,
    stream: Option<Stream>,
    /// The lowest identity that no region of an earlier engine has had.
    next_id: u32,
    warned_of_step: bool,
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
    active_backend: Mutex<String>,
    stats: Mutex<Stats>,
    /// Set where the next frame does not follow the last: flush, seek, new caps.
    discontinuity: AtomicBool,
}

fn restart() -> gst::ErrorMessage {
    gst::error_msg!(gst::LibraryError::Failed, ("An earlier error ended this stream; restart the pipeline"))
}

impl Superpixel {
    /// Opens the backend that is asked for, or the best that opens.
    fn open(&self, settings: &Settings) -> Result<ActiveBackend, gst::ErrorMessage> {
        let refuse = |error: Error| gst::error_msg!(gst::LibraryError::Init, ("Cannot start: {error}"));
        match settings.backend {
            settings::Backend::Cpu => ActiveBackend::cpu(settings).map_err(refuse),
            settings::Backend::Cuda => ActiveBackend::cuda(settings).map_err(refuse),
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

    fn show_backend(&self, text: String) {
        *self.active_backend.lock().unwrap() = text;
        self.obj().notify("active-backend");
    }

    /// Makes a new plan and engine where the last do not fit the properties or the caps any more.
    fn prepare(&self, state: &mut State, params: Params, frame: FrameInfo) -> Result<(), gst::ErrorMessage> {
        if state.engine.as_ref().is_some_and(|(old, engine)| *old == params && engine.plan().frame == frame) {
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
        let backend = match state.engine.take() {
            Some((_, mut engine)) => {
                state.next_id = state.next_id.max(engine.next_id().map_err(library_error)?);
                engine.into_backend()
            }
            None => state.backend.take().ok_or_else(restart)?,
        };
        let mut engine = backend.engine(plan).map_err(library_error)?;
        engine.set_next_id(state.next_id).map_err(library_error)?;
        state.engine = Some((params, engine));
        Ok(())
    }

    /// Segments, draws and attaches.
    fn process(&self, state: &mut State, buffer: &mut gst::BufferRef) -> Result<(), gst::ErrorMessage> {
        let began = Instant::now();
        let settings = self.settings.lock().unwrap().clone();
        let task = Task { outputs: settings.outputs(), drawing: settings.drawing() };
        let frame = state.stream.as_ref().ok_or_else(restart)?.frame;
        self.prepare(state, settings.params(), frame)?;
        let flushed = self.discontinuity.swap(false, Ordering::Relaxed);
        if (flushed || buffer.flags().contains(gst::BufferFlags::DISCONT))
            && let Some((_, engine)) = &mut state.engine
        {
            engine.reset();
        }
        let State { engine: Some((params, engine)), stream: Some(stream), .. } = state else {
            return Err(restart());
        };
        if settings.labels {
            let (labels, ()) =
                stream.pool.fill(|labels| engine.run(buffer, &stream.info, Some(labels), task))?;
            let attached = meta::attach(
                buffer,
                meta::Attachment {
                    labels,
                    geometry: frame.geometry,
                    algo: params.algorithm.nick(),
                    regions: engine.regions(),
                    outputs: task.outputs,
                },
            );
            attached.map_err(|e| {
                gst::error_msg!(gst::LibraryError::Failed, ("Cannot attach the metadata: {e}"))
            })?;
        } else {
            engine.run(buffer, &stream.info, None, task)?;
        }
        let mut stats = self.stats.lock().unwrap();
        stats.frames += 1;
        stats.regions = engine.regions().count;
        stats.last = began.elapsed();
        stats.total += began.elapsed();
        stats.stages.clear();
        stats.stages.extend(engine.times().into_iter().flat_map(|times| times.iter()));
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
            "active-backend" => self.active_backend.lock().unwrap().to_value(),
            "stats" => self.stats.lock().unwrap().to_structure().to_value(),
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
            let caps = frame::system_caps();
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
        self.show_backend(backend.describe());
        *self.stats.lock().unwrap() = Stats::default();
        *self.state.lock().unwrap() = Some(State {
            backend: Some(backend),
            engine: None,
            stream: None,
            next_id: 1,
            warned_of_step: false,
        });
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        let state = self.state.lock().unwrap().take();
        drop(state);
        self.show_backend(String::new());
        Ok(())
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        // Serialized with buffers. A seek comes as flush or as a new segment.
        if matches!(event.type_(), gst::EventType::FlushStop | gst::EventType::Segment) {
            self.discontinuity.store(true, Ordering::Relaxed);
        }
        self.parent_sink_event(event)
    }

    fn before_transform(&self, inbuf: &gst::BufferRef) {
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
        result.map_err(|message| {
            self.post_error_message(message);
            gst::FlowError::Error
        })?;
        Ok(gst::FlowSuccess::Ok)
    }
}

impl VideoFilterImpl for Superpixel {
    fn set_info(
        &self,
        _incaps: &gst::Caps,
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
        let mut state = self.state.lock().unwrap();
        let state =
            state.as_mut().ok_or_else(|| gst::loggable_error!(CAT, "caps before start or after an error"))?;
        state.stream = Some(Stream { info: info.clone(), frame, pool });
        self.discontinuity.store(true, Ordering::Relaxed);
        Ok(())
    }
}
