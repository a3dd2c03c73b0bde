// SPDX-License-Identifier: MPL-2.0
//! `superpixelobjects` as GStreamer sees it: properties, signals, events, messages, and the path of a frame.

use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::subclass::prelude::*;

use super::background::{Background, Drawing};
use super::given_mask::GivenMask;
use super::requests::{Place, Requests, boxes};
use super::state::{Change, KIND, State, Wishes};
use super::{ObjectsOnMissing, ObjectsOverlay};
use crate::image::{Geometry, MAX_SIDE};
use crate::meta::SuperpixelMeta;
use crate::regions::{Motion, Neighbor, Region};

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "superpixelobjects",
        gst::DebugColorFlags::empty(),
        Some("Objects of superpixels"),
    )
});

/// Shortest time between two warnings. A later warning counts what is refused in between.
const WARNING_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
struct Settings {
    objects: Arc<str>,
    classes: Arc<[String]>,
    max_objects: u32,
    analytics: bool,
    overlay: ObjectsOverlay,
    background_color: u32,
    on_missing: ObjectsOnMissing,
    /// Set while the element is started.
    is_started: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            objects: "".into(),
            classes: [].into(),
            max_objects: 32,
            analytics: true,
            overlay: ObjectsOverlay::None,
            background_color: 0xb000_0000,
            on_missing: ObjectsOnMissing::Error,
            is_started: false,
        }
    }
}

/// Figures for the property `stats`.
#[derive(Debug, Default, Clone, Copy)]
struct Stats {
    frames: u64,
    objects: u32,
    taken: u64,
    refused: u64,
    last: Duration,
    total: Duration,
}

/// State of the streaming thread.
#[derive(Default)]
struct Stream {
    state: State,
    geometry: Option<Geometry>,
    background: Option<Background>,
    warned: Option<Instant>,
    /// Refused since the last warning.
    unreported: u64,
    warned_of_missing: bool,
    warned_of_overlay: bool,
}

/// The element. No two locks are held together but for `requests` within a frame, and none of those that properties and signals
/// take while objects are found.
#[derive(Default)]
pub struct SuperpixelObjects {
    settings: Mutex<Settings>,
    requests: Mutex<Requests>,
    stream: Mutex<Stream>,
    stats: Mutex<Stats>,
}

#[glib::object_subclass]
impl ObjectSubclass for SuperpixelObjects {
    const NAME: &'static str = "GstSuperpixelObjects";
    type Type = super::SuperpixelObjects;
    type ParentType = gst_base::BaseTransform;
}

/// Reads a box from the arguments of a signal, from the `first` on.
fn place(values: &[glib::Value], first: usize) -> Option<Place> {
    let number = |at: usize| values.get(first + at)?.get::<i32>().ok().map(i64::from);
    Some([number(0)?, number(1)?, number(2)?, number(3)?])
}

impl ObjectImpl for SuperpixelObjects {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
            let default = Settings::default();
            vec![
                glib::ParamSpecString::builder("objects")
                    .nick("Objects")
                    .blurb(
                        "Boxes of objects in the first frame, or where this is set while playing in the next one: x,y,width,height \
                         in px, several with a semicolon between them",
                    )
                    .mutable_playing()
                    .build(),
                glib::ParamSpecString::builder("classes")
                    .nick("Classes")
                    .blurb("Classes of detections that are followed, with commas between them; all where this is empty")
                    .mutable_playing()
                    .build(),
                glib::ParamSpecUInt::builder("max-objects")
                    .nick("Most objects")
                    .blurb("Most objects that are followed at once, and most detections of a frame that are heard")
                    .minimum(1)
                    .maximum(255)
                    .default_value(default.max_objects)
                    .mutable_playing()
                    .build(),
                glib::ParamSpecBoolean::builder("analytics")
                    .nick("Analytics")
                    .blurb(
                        "Attach objects as standard metadata of GStreamer 1.26 and newer, too: a mask, and for each a box and a track id",
                    )
                    .default_value(default.analytics)
                    .mutable_playing()
                    .build(),
                glib::ParamSpecEnum::builder_with_default("overlay", default.overlay)
                    .nick("Overlay")
                    .blurb("The drawing on frames with objects")
                    .mutable_playing()
                    .build(),
                glib::ParamSpecUInt::builder("background-color")
                    .nick("Background color")
                    .blurb("Color over all that is in no object, for overlay=background, blended by alpha")
                    .default_value(default.background_color)
                    .mutable_playing()
                    .build(),
                glib::ParamSpecEnum::builder_with_default("on-missing", default.on_missing)
                    .nick("On missing")
                    .blurb("What happens to a frame without the tables that objects are found in")
                    .mutable_playing()
                    .build(),
                glib::ParamSpecBoxed::builder::<gst::Structure>("stats")
                    .nick("Statistics")
                    .blurb(
                        "Since start: frames with objects, detections and requests that were taken and refused, time-us-mean of a frame; \
                         of the last such frame: objects, time-us",
                    )
                    .read_only()
                    .build(),
            ]
        });
        PROPERTIES.as_ref()
    }

    fn signals() -> &'static [glib::subclass::Signal] {
        static SIGNALS: LazyLock<Vec<glib::subclass::Signal>> = LazyLock::new(|| {
            let of = |args: &[glib::Value]| args[0].get::<super::SuperpixelObjects>().ok();
            let (int, uint, boolean) = (i32::static_type(), u32::static_type(), bool::static_type());
            vec![
                glib::subclass::Signal::builder("add-object")
                    .param_types([int; 4])
                    .return_type::<u32>()
                    .action()
                    .class_handler(move |args| {
                        let (element, place) = (of(args)?, place(args, 1)?);
                        Some(element.imp().requests.lock().unwrap().add(place).to_value())
                    })
                    .build(),
                glib::subclass::Signal::builder("add-point")
                    .param_types([uint, int, int, boolean])
                    .return_type::<u32>()
                    .action()
                    .class_handler(move |args| {
                        let (element, id) = (of(args)?, args[1].get::<u32>().ok()?);
                        let point = [args[2].get::<i32>().ok()?, args[3].get::<i32>().ok()?].map(i64::from);
                        let is_inside = args[4].get::<bool>().ok()?;
                        let mut requests = element.imp().requests.lock().unwrap();
                        Some(requests.add_point(id, point, is_inside).to_value())
                    })
                    .build(),
                glib::subclass::Signal::builder("add-mask")
                    .param_types([uint, gst::Sample::static_type()])
                    .return_type::<u32>()
                    .action()
                    .class_handler(move |args| {
                        let (element, id) = (of(args)?, args[1].get::<u32>().ok()?);
                        let sample = args[2].get::<Option<gst::Sample>>().ok()?;
                        Some(element.imp().add_mask(id, sample.as_ref()).to_value())
                    })
                    .build(),
                glib::subclass::Signal::builder("update-object")
                    .param_types([uint, int, int, int, int])
                    .return_type::<bool>()
                    .action()
                    .class_handler(move |args| {
                        let (element, id, place) = (of(args)?, args[1].get::<u32>().ok()?, place(args, 2)?);
                        Some(element.imp().requests.lock().unwrap().update(id, place).to_value())
                    })
                    .build(),
                glib::subclass::Signal::builder("remove-object")
                    .param_types([uint])
                    .return_type::<bool>()
                    .action()
                    .class_handler(move |args| {
                        let (element, id) = (of(args)?, args[1].get::<u32>().ok()?);
                        Some(element.imp().requests.lock().unwrap().remove(id).to_value())
                    })
                    .build(),
            ]
        });
        SIGNALS.as_ref()
    }

    fn set_property(&self, _id: usize, value: &glib::Value, pspec: &glib::ParamSpec) {
        let text = || value.get::<Option<String>>().ok().flatten().unwrap_or_default();
        match pspec.name() {
            "objects" => return self.set_objects(text()),
            "classes" => {
                let text = text();
                let classes = text.split(',').map(str::trim).filter(|class| !class.is_empty());
                self.settings.lock().unwrap().classes = classes.map(str::to_owned).collect();
                return;
            }
            _ => {}
        }
        let mut settings = self.settings.lock().unwrap();
        match pspec.name() {
            "max-objects" => settings.max_objects = value.get().unwrap_or(settings.max_objects),
            "analytics" => settings.analytics = value.get().unwrap_or_default(),
            "overlay" => settings.overlay = value.get().unwrap_or_default(),
            "background-color" => settings.background_color = value.get().unwrap_or_default(),
            "on-missing" => settings.on_missing = value.get().unwrap_or_default(),
            name => unimplemented!("property {name}"),
        }
    }

    fn property(&self, _id: usize, pspec: &glib::ParamSpec) -> glib::Value {
        if pspec.name() == "stats" {
            return self.stats.lock().unwrap().to_structure().to_value();
        }
        let settings = self.settings.lock().unwrap();
        match pspec.name() {
            "objects" => (*settings.objects).to_value(),
            "classes" => settings.classes.join(",").to_value(),
            "max-objects" => settings.max_objects.to_value(),
            "analytics" => settings.analytics.to_value(),
            "overlay" => settings.overlay.to_value(),
            "background-color" => settings.background_color.to_value(),
            "on-missing" => settings.on_missing.to_value(),
            name => unimplemented!("property {name}"),
        }
    }
}

impl Stats {
    fn to_structure(self) -> gst::Structure {
        let micros = |time: Duration| time.as_micros() as u64;
        gst::Structure::builder("superpixelobjects-stats")
            .field("frames", self.frames)
            .field("objects", self.objects)
            .field("taken", self.taken)
            .field("refused", self.refused)
            .field("time-us", micros(self.last))
            .field("time-us-mean", micros(self.total) / self.frames.max(1))
            .build()
    }
}

impl GstObjectImpl for SuperpixelObjects {}

impl ElementImpl for SuperpixelObjects {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Superpixel objects",
                "Filter/Analyzer/Effect/Video",
                "Follows objects from boxes or detections through the regions that superpixel attached to frames",
                env!("CARGO_PKG_AUTHORS"),
            )
        });
        Some(&*METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let sides = gst::IntRange::new(1, MAX_SIDE as i32);
            let caps = gst::Caps::builder("video/x-raw").any_features();
            let caps = caps.field("width", sides).field("height", sides).build();
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

impl BaseTransformImpl for SuperpixelObjects {
    const MODE: gst_base::subclass::BaseTransformMode = gst_base::subclass::BaseTransformMode::AlwaysInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        *self.stats.lock().unwrap() = Stats::default();
        let text = {
            let mut settings = self.settings.lock().unwrap();
            settings.is_started = true;
            settings.objects.clone()
        };
        self.request_boxes(&boxes(&text).unwrap_or_default());
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        self.settings.lock().unwrap().is_started = false;
        *self.stream.lock().unwrap() = Stream::default();
        // Ids go on.
        let mut requests = self.requests.lock().unwrap();
        requests.take(&mut Vec::new());
        requests.note(std::iter::empty());
        Ok(())
    }

    fn set_caps(&self, incaps: &gst::Caps, _outcaps: &gst::Caps) -> Result<(), gst::LoggableError> {
        let side = |name: &str| {
            let side = incaps.structure(0).and_then(|fields| fields.get::<i32>(name).ok());
            side.and_then(|side| u32::try_from(side).ok()).unwrap_or(0)
        };
        let geometry = Geometry::new(side("width"), side("height"))
            .map_err(|error| gst::loggable_error!(CAT, "{error}"))?;
        let is_in_system_memory = incaps.features(0).is_none_or(|features| {
            features.is_empty() || features.contains(gst::CAPS_FEATURE_MEMORY_SYSTEM_MEMORY)
        });
        let info = gst_video::VideoInfo::from_caps(incaps).ok().filter(|_| is_in_system_memory);
        let mut stream = self.stream.lock().unwrap();
        stream.state.reset("reset");
        stream.geometry = Some(geometry);
        stream.background = info.as_ref().and_then(Background::new);
        stream.warned_of_overlay = false;
        let changes = std::mem::take(&mut stream.state.changes);
        drop(stream);
        self.post(&changes, None);
        self.requests.lock().unwrap().note(std::iter::empty());
        Ok(())
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        // Serialized with buffers. `superpixel` gives new track ids behind both.
        if matches!(event.type_(), gst::EventType::FlushStop | gst::EventType::Segment) {
            let changes = {
                let mut stream = self.stream.lock().unwrap();
                stream.state.reset("reset");
                std::mem::take(&mut stream.state.changes)
            };
            self.requests.lock().unwrap().note(std::iter::empty());
            self.post(&changes, None);
        }
        self.parent_sink_event(event)
    }

    fn transform_ip(&self, buffer: &mut gst::BufferRef) -> Result<gst::FlowSuccess, gst::FlowError> {
        let settings = self.settings.lock().unwrap().clone();
        // A panic leaves the lock usable, and objects end.
        let mut stream = std::mem::take(&mut *self.stream.lock().unwrap());
        let done = self.follow(&mut stream, &settings, buffer);
        let changes = std::mem::take(&mut stream.state.changes);
        self.warn_of_refused(&mut stream);
        *self.stream.lock().unwrap() = stream;
        self.post(&changes, buffer.pts());
        match done {
            Ok(()) => Ok(gst::FlowSuccess::Ok),
            Err(message) => {
                self.post_error_message(message);
                Err(gst::FlowError::Error)
            }
        }
    }
}

impl SuperpixelObjects {
    fn set_objects(&self, text: String) {
        match boxes(&text) {
            Ok(boxes) => {
                let is_started = {
                    let mut settings = self.settings.lock().unwrap();
                    settings.objects = text.into();
                    settings.is_started
                };
                if is_started {
                    self.request_boxes(&boxes);
                }
            }
            Err(reason) => gst::element_imp_warning!(
                self,
                gst::LibraryError::Settings,
                ("objects keeps its value: {reason}")
            ),
        }
    }

    /// The id of the object that a mask is of; 0 where it is refused.
    fn add_mask(&self, id: u32, sample: Option<&gst::Sample>) -> u32 {
        let mask =
            sample.ok_or_else(|| "there is no sample".to_owned()).and_then(|sample| GivenMask::of(sample));
        match mask {
            Ok(mask) => self.requests.lock().unwrap().add_mask(id, mask),
            Err(reason) => {
                gst::element_imp_warning!(self, gst::LibraryError::Settings, ("A mask is refused: {reason}"));
                0
            }
        }
    }

    fn request_boxes(&self, boxes: &[Place]) {
        let mut requests = self.requests.lock().unwrap();
        for place in boxes {
            requests.add(*place);
        }
    }

    /// Finds the objects of a frame, attaches them and draws.
    ///
    /// # Errors
    ///
    /// If the frame has no tables that objects can be found in, and that is to be an error.
    fn follow(
        &self,
        stream: &mut Stream,
        settings: &Settings,
        buffer: &mut gst::BufferRef,
    ) -> Result<(), gst::ErrorMessage> {
        let began = Instant::now();
        let Some(geometry) = stream.geometry else { return Ok(()) };
        let meta = match readable(buffer, geometry) {
            Ok(meta) => meta,
            Err(reason) => return self.miss(stream, settings.on_missing, &reason),
        };
        let wishes = Wishes { classes: &settings.classes, most: settings.max_objects as usize };
        if !stream.state.collect(buffer, &self.requests, &wishes) {
            return Ok(());
        }
        let now = buffer.pts();
        if let Err(reason) = stream.state.update(&meta, geometry, &self.requests, &wishes, now) {
            let reason =
                format!("its metadata cannot be read: {reason}; make it with superpixel of this version");
            return self.miss(stream, settings.on_missing, &reason);
        }
        let labels = meta.label_buffer().clone();
        if !stream.state.about.is_empty() {
            let attached = stream.state.attach(buffer, &labels, geometry, settings.analytics);
            if let Err(error) = attached {
                gst::warning!(CAT, imp = self, "objects cannot be attached: {error}");
            }
            self.draw(stream, settings, buffer, &labels);
        }
        let mut stats = self.stats.lock().unwrap();
        stats.frames += 1;
        stats.objects = stream.state.about.len() as u32;
        stats.taken += std::mem::take(&mut stream.state.taken);
        let time = began.elapsed();
        (stats.last, stats.total) = (time, stats.total + time);
        gst::trace!(CAT, imp = self, "{} objects in {time:?}", stats.objects);
        Ok(())
    }

    /// Handles a frame that no object can be found in.
    fn miss(
        &self,
        stream: &mut Stream,
        on_missing: ObjectsOnMissing,
        reason: &str,
    ) -> Result<(), gst::ErrorMessage> {
        let text = format!("Objects cannot be found in the frame: {reason}");
        match on_missing {
            ObjectsOnMissing::Error => {
                Err(gst::error_msg!(gst::StreamError::Format, ("{text}; or set on-missing=pass")))
            }
            ObjectsOnMissing::Pass => {
                if !std::mem::replace(&mut stream.warned_of_missing, true) {
                    gst::element_imp_warning!(self, gst::StreamError::Format, ("{text}"));
                }
                Ok(())
            }
        }
    }

    fn draw(
        &self,
        stream: &mut Stream,
        settings: &Settings,
        buffer: &mut gst::BufferRef,
        labels: &gst::BufferRef,
    ) {
        let Stream { state, background, .. } = stream;
        let color = settings.background_color.to_be_bytes();
        let drawn = match (settings.overlay, background) {
            (ObjectsOverlay::None, _) => return,
            (_, None) => Err(
                "it needs a format of superpixel in system memory; put cudadownload or videoconvert in front"
                    .to_owned(),
            ),
            (overlay, Some(background)) => {
                let [alpha, r, g, b] = color;
                let plain = background.color([r, g, b]);
                let is_mean = overlay == ObjectsOverlay::MeanColor;
                let drawing = match overlay {
                    ObjectsOverlay::Blur => Drawing::Blur,
                    _ => Drawing::Color { alpha: if is_mean { 255 } else { alpha } },
                };
                let mut colors = std::mem::take(&mut background.colors);
                colors.clear();
                colors.extend(state.owners.iter().zip(&state.regions).map(|(owner, region)| {
                    let [r, g, b, _] = region.mean_rgb;
                    (*owner == 0).then(|| if is_mean { background.color([r, g, b]) } else { plain })
                }));
                background.colors = colors;
                background.draw(buffer, labels, drawing, Some(plain))
            }
        };
        if let Err(reason) = drawn
            && !std::mem::replace(&mut stream.warned_of_overlay, true)
        {
            gst::element_imp_warning!(self, gst::StreamError::Format, ("Nothing is drawn: {reason}"));
        }
    }

    /// Warns of requests and detections that were refused, at most once in an interval.
    fn warn_of_refused(&self, stream: &mut Stream) {
        let refused = std::mem::take(&mut stream.state.refused);
        let Some(reason) = refused.last() else { return };
        self.stats.lock().unwrap().refused += refused.len() as u64;
        stream.unreported += refused.len() as u64;
        if stream.warned.is_none_or(|last| last.elapsed() >= WARNING_INTERVAL) {
            stream.warned = Some(Instant::now());
            let count = std::mem::take(&mut stream.unreported);
            gst::element_imp_warning!(
                self,
                gst::StreamError::Failed,
                ("An object is refused: {reason}; refused: {count}")
            );
        }
    }

    /// Posts which objects have begun or ended.
    fn post(&self, changes: &[Change], time: Option<gst::ClockTime>) {
        for change in changes {
            let mut fields = gst::Structure::new_empty(KIND);
            match *change {
                Change::Begins { id, kind, bounds } => {
                    let [x0, y0, x1, y1] = bounds.map(u32::from);
                    fields.set("event", "begins");
                    fields.set("id", id);
                    fields.set("class", kind);
                    let [width, height] = [x1.saturating_sub(x0), y1.saturating_sub(y0)];
                    for (name, value) in [("x", x0), ("y", y0), ("width", width), ("height", height)] {
                        fields.set(name, value);
                    }
                }
                Change::Ends { id, reason } => {
                    fields.set("event", "ends");
                    fields.set("id", id);
                    fields.set("reason", reason);
                }
            }
            fields.set("timestamp", time);
            let message = gst::message::Element::builder(fields).src(&*self.obj()).build();
            // Posting fails before the element is in a pipeline, when there is no listener.
            let _ = self.obj().post_message(message);
        }
    }
}

/// The metadata of a frame, if objects can be found in it.
fn readable(buffer: &gst::BufferRef, geometry: Geometry) -> Result<SuperpixelMeta<'_>, String> {
    let Some(meta) = SuperpixelMeta::from_buffer(buffer) else {
        return Err("it carries no regions; put superpixel neighbors=true in front, and nothing between them that changes the size"
            .to_owned());
    };
    if (meta.width(), meta.height()) != (geometry.width(), geometry.height()) {
        return Err(format!(
            "its label map has {}x{}, the frame {geometry}; put superpixel after elements that change the size",
            meta.width(),
            meta.height()
        ));
    }
    let wanted = [
        (meta.has::<Region>(), "region-table=true"),
        (meta.has::<Motion>(), "temporal=true"),
        (meta.has::<Neighbor>(), "neighbors=true"),
    ];
    let missing: Vec<_> = wanted.iter().filter(|(has, _)| !has).map(|(_, setting)| *setting).collect();
    if missing.is_empty() {
        return Ok(meta);
    }
    Err(format!("it lacks tables; set {} on superpixel", missing.join(" ")))
}
