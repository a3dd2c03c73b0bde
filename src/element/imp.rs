// SPDX-License-Identifier: MPL-2.0
//! `superpixel` as GStreamer sees it: properties, caps, events and queries; `path.rs` has the path of a frame.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, Once};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::prelude::*;
use gst_base::subclass::base_transform::GenerateOutputSuccess;
use gst_base::subclass::prelude::*;
use gst_video::subclass::prelude::*;

use super::controlled::Controlled;
use super::cuda;
use super::frame::{self, LabelPool};
use super::heap;
use super::log::CAT;
use super::path::{BackendInfo, Started, State, restart};
use super::properties::PROPERTIES;
use super::settings::Settings;
use super::stats::Stats;
use super::task::Stream;
use crate::analytics;
use crate::bad_buffers::BadBuffers;

/// The element.
///
/// No two locks are held together, and none while a frame is worked on: a property access never waits for a frame, and
/// a panic in the frame path leaves every lock usable.
#[derive(Default)]
pub struct Superpixel {
    pub(super) settings: Mutex<Settings>,
    /// Controlled properties' values for the next frame.
    controlled: Mutex<Controlled>,
    pub(super) state: Mutex<Option<State>>,
    /// Frames in flight, in order.
    pub(super) queue: Mutex<VecDeque<(gst::Buffer, Started)>>,
    /// Most frames in flight; set at start.
    pub(super) depth: AtomicUsize,
    /// Longest in ns that a frame waits for those of other elements.
    pub(super) wait: AtomicU64,
    /// Latency in ns that frames in flight add.
    pub(super) delay: AtomicU64,
    /// `None` while the element is stopped.
    pub(super) active_backend: Mutex<Option<BackendInfo>>,
    pub(super) stats: Mutex<Stats>,
    pub(super) bad_buffers: BadBuffers,
    /// Set if the next frame does not follow the last: flush, seek, new caps.
    pub(super) discontinuity: AtomicBool,
}

/// Caps of all formats that can be segmented. Device memory comes first, because no pixel has to move there.
fn all_caps() -> gst::Caps {
    let mut caps = cuda::device_caps().unwrap_or_else(gst::Caps::new_empty);
    caps.merge(frame::system_caps());
    caps
}

#[glib::object_subclass]
impl ObjectSubclass for Superpixel {
    const NAME: &'static str = "GstSuperpixel";
    type Type = super::Superpixel;
    type ParentType = gst_video::VideoFilter;
}

impl ObjectImpl for Superpixel {
    fn properties() -> &'static [glib::ParamSpec] {
        PROPERTIES.as_ref()
    }

    fn set_property(&self, _id: usize, value: &glib::Value, pspec: &glib::ParamSpec) {
        if self.controlled.lock().unwrap().takes(pspec, value) {
            return;
        }
        let taken = self.settings.lock().unwrap().take(pspec.name(), value);
        if let Err(reason) = taken {
            self.refuse(pspec.name(), &reason);
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

impl Superpixel {
    /// Posts a warning that a property keeps its value, with the reason.
    fn refuse(&self, name: &str, reason: &str) {
        gst::element_imp_warning!(self, gst::LibraryError::Settings, ("{name} keeps its value: {reason}"));
    }

    /// Posts a warning that the mask of a frame cannot be used, with the reason.
    pub(super) fn warn_of_mask(&self, reason: &str) {
        gst::element_imp_warning!(
            self,
            gst::StreamError::Format,
            ("A mask cannot be used: {reason}; mask-missing says what such frames get, and this is said once")
        );
    }

    /// Posts a warning that the prior of a frame cannot be used, with the reason.
    pub(super) fn warn_of_prior(&self, reason: &str) {
        gst::element_imp_warning!(
            self,
            gst::StreamError::Format,
            ("A prior cannot be used: {reason}; such frames are segmented without one, and this is said once")
        );
    }

    /// Sets controlled properties to their values at a stream time, all at once, because values on the way from one
    /// combination to another may be invalid together.
    fn sync_controlled(&self, time: gst::ClockTime) {
        // Notifications are sent once all values are set.
        let _notifications = self.obj().freeze_notify();
        self.controlled.lock().unwrap().begin();
        let synced = self.obj().sync_values(time);
        let values = self.controlled.lock().unwrap().end();
        if let Err(error) = synced {
            gst::warning!(CAT, imp = self, "cannot set controlled properties for {time}: {error}");
        }
        if values.is_empty() {
            return;
        }
        let taken = self
            .settings
            .lock()
            .unwrap()
            .take_all(values.iter().map(|(pspec, value)| (pspec.name(), &**value)));
        let refused = taken.err();
        // Warns once for all frames in a row with the same message.
        let is_news = self.controlled.lock().unwrap().note(refused.as_ref());
        if let Some((name, reason)) = refused.filter(|_| is_news) {
            self.refuse(name, &reason);
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
                env!("CARGO_PKG_AUTHORS"),
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
        let settings = {
            let mut settings = self.settings.lock().unwrap();
            settings
                .check(settings.backend)
                .map_err(|reason| gst::error_msg!(gst::LibraryError::Settings, ("Cannot start: {reason}")))?;
            settings.started = Some(settings.backend);
            settings.clone()
        };
        let backend = self.open(&settings).inspect_err(|_| self.settings.lock().unwrap().started = None)?;
        self.depth.store(settings.device.depth(), Ordering::Relaxed);
        self.wait.store(settings.device.wait().as_nanos() as u64, Ordering::Relaxed);
        self.delay.store(0, Ordering::Relaxed);
        self.show_backend(Some(&backend));
        *self.stats.lock().unwrap() = Stats::default();
        self.bad_buffers.reset();
        static SAY_ONCE: Once = Once::new();
        SAY_ONCE.call_once(|| {
            if let Some(reason) = analytics::unavailable() {
                gst::debug!(CAT, imp = self, "no standard metadata, which GStreamer 1.26 brings: {reason}");
            }
        });
        *self.state.lock().unwrap() = Some(State::new(backend));
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        self.forget();
        self.settings.lock().unwrap().started = None;
        let state = self.state.lock().unwrap().take();
        let broken = state.as_ref().is_some_and(State::is_broken);
        drop(state);
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
        // The base class gives the frame in a buffer that can be written to.
        let mut buffer = match self.parent_generate_output()? {
            GenerateOutputSuccess::Buffer(buffer) => buffer,
            other => return Ok(other),
        };
        let Some(mut state) = self.state.lock().unwrap().take() else {
            self.post_error_message(restart());
            return Err(gst::FlowError::Error);
        };
        let processed = self.process(&mut state, buffer.make_mut());
        *self.state.lock().unwrap() = Some(state);
        match processed {
            Err(failure) => {
                self.bad_buffers.handle(self.obj().upcast_ref(), &buffer, failure)?;
                return Ok(GenerateOutputSuccess::Dropped);
            }
            Ok(None) => {
                self.drain()?;
                return Ok(GenerateOutputSuccess::Buffer(buffer));
            }
            Ok(Some(started)) => self.queue.lock().unwrap().push_back((buffer, started)),
        }
        match self.take_finished(self.depth.load(Ordering::Relaxed)) {
            // Frames behind one that fails must not overtake it.
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
                // The event is passed on even if frames in flight failed; the next chain call returns the error.
                let _ = self.drain();
            }
            _ => {}
        }
        if let (EventView::Eos(_), Some(message)) = (event.view(), self.bad_buffers.at_end()) {
            self.post_error_message(message);
        }
        self.parent_sink_event(event)
    }

    /// Adds the buffers of frames in flight to a pool's minimum, and removes metas that only downstream could handle:
    /// by default the base class asks downstream as if the element were not there.
    fn propose_allocation(
        &self,
        decide_query: Option<&gst::query::Allocation>,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        let held = self.most_held();
        // If downstream does not answer, the pool is still told of the buffers in flight.
        if let Err(unanswered) = self.parent_propose_allocation(decide_query, query)
            && held == 0
        {
            return Err(unanswered);
        }
        // With a crop meta the whole picture would be sent, and segmented and drawn on from its first pixel on.
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

    fn accept_caps(&self, direction: gst::PadDirection, caps: &gst::Caps) -> bool {
        if self.parent_accept_caps(direction, caps) {
            return true;
        }
        // Refusing the caps gives upstream no reason, so it is posted.
        if direction == gst::PadDirection::Sink && frame::has_single_fields(caps) {
            gst::element_imp_warning!(self, gst::StreamError::Format, ("{}", frame::SINGLE_FIELDS));
        }
        false
    }

    fn query(&self, direction: gst::PadDirection, query: &mut gst::QueryRef) -> bool {
        if direction == gst::PadDirection::Sink && query.is_serialized() {
            // The query is answered after all earlier buffers have left.
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
        // The flag belongs to this frame, not to the oldest one in flight, which leaves next.
        if inbuf.flags().contains(gst::BufferFlags::DISCONT) {
            // An error is returned again when this frame is worked on.
            let _ = self.drain();
        }
        let segment = self.obj().segment();
        let stream_time =
            segment.downcast_ref::<gst::ClockTime>().and_then(|s| s.to_stream_time(inbuf.pts()));
        if let Some(time) = stream_time.filter(|_| self.obj().has_active_control_bindings()) {
            self.sync_controlled(time);
        }
    }

    // `generate_output` does the work, since a frame may leave later than it came. Without this the parent would map the frame for
    // writing, which copies shared pixels even if only labels are wanted.
    fn transform_ip(&self, _: &mut gst::BufferRef) -> Result<gst::FlowSuccess, gst::FlowError> {
        Ok(gst::FlowSuccess::Ok)
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
        if let Some(reason) = frame::mixed_views(info) {
            self.post_error_message(gst::error_msg!(gst::StreamError::Format, ("{reason}")));
            return Err(gst::loggable_error!(CAT, "{reason}"));
        }
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
            // Posting fails before the element is in a pipeline, when there is no listener.
            let _ = self.obj().post_message(gst::message::Latency::builder().src(&*self.obj()).build());
        }
        self.discontinuity.store(true, Ordering::Relaxed);
        Ok(())
    }
}
