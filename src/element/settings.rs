// SPDX-License-Identifier: MPL-2.0
//! What the user asked for: values of properties to parameters of the library and back.

use std::sync::LazyLock;

use gst::glib;
use gst::prelude::*;

use crate::algo::{ALGORITHM, Algorithm};
use crate::parameter::{About, Choose, Kind, Parameters, Range, Value, parameters};
use crate::params::{
    self, BOUNDARY_WIDTH, Boundaries, Drawing, Fill, Listed, Outputs, ParamSet, Params, THREADS,
};
use crate::post::{abstraction, hierarchy};

use super::cuda::DeviceSettings;
use super::enums::{self, Analytics, Backend, Mask, Overlay, Prior};
use super::mask_settings::{MaskSettings, TEXTS};

const BACKEND: About = About::new(
    "backend",
    "Backend",
    "",
    "Where frames are segmented; both backends give the same result, bit for bit",
)
.at_start();
const OVERLAY: About = About::new("overlay", "Overlay", "", "What is drawn into the frame");
const MEAN_IN_LINEAR_LIGHT: About = About::new(
    "mean-in-linear-light",
    "Mean in linear light",
    "",
    "Average colors, drawn and in the region table, in linear RGB instead of code values",
);
const BOUNDARY_COLOR: Range<u32> = Range {
    about: About::new(
        "boundary-color",
        "Boundary color",
        "",
        "Color of boundaries as 0xAARRGGBB, blended by alpha",
    ),
    min: 0,
    max: u32::MAX,
    default: Boundaries::COLOR,
};
const LABELS: About = About::new("labels", "Labels", "", "Attach the label map as GstSuperpixelMeta");
const REGION_TABLE: About = About::new(
    "region-table",
    "Region table",
    "",
    "Attach one record per region to the metadata: area, centroid, mean colors, bounding box",
);
const NEIGHBORS: About = About::new(
    "neighbors",
    "Neighbors",
    "",
    "Attach the list of touching regions with their shared boundary lengths to the metadata",
);
const EVENTS: About = About::new(
    "events",
    "Events",
    "",
    "Attach births, deaths, splits and merges of regions, and cuts, to the metadata; needs {temporal=true} and \
     {region-table=true}",
);
const ANALYTICS: About = About::new(
    "analytics",
    "Analytics",
    "",
    "With GStreamer 1.26 or newer: standard metadata attached beside GstSuperpixelMeta, where {labels=true}; objects needs \
     {region-table=true}",
);

/// The values of all properties; copied once a frame.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    /// Parameters of the library.
    pub library: ParamSet,
    pub backend: Backend,
    pub device: DeviceSettings,
    pub threads: u32,
    pub overlay: Overlay,
    pub mean_in_linear_light: bool,
    pub boundaries: Boundaries,
    pub mask: MaskSettings,
    pub abstraction: abstraction::Params,
    pub labels: bool,
    pub region_table: bool,
    pub neighbors: bool,
    pub events: bool,
    pub analytics: Analytics,
    /// `backend` as it was at start; `None` while the element is stopped, when properties may exclude each other for a while.
    pub started: Option<Backend>,
}

parameters!(Settings {
    choice BACKEND => backend: Backend;
    whole THREADS => threads;
    choice OVERLAY => overlay: Overlay;
    switch MEAN_IN_LINEAR_LIGHT => mean_in_linear_light;
    whole BOUNDARY_COLOR => boundaries.color;
    whole BOUNDARY_WIDTH => boundaries.width;
    switch LABELS => labels;
    switch REGION_TABLE => region_table;
    switch NEIGHBORS => neighbors;
    switch EVENTS => events;
    choice ANALYTICS => analytics: Analytics;
});

/// Every parameter that the element has a property for, but for [`TEXTS`].
pub(super) static LISTED: LazyLock<Vec<Listed>> = LazyLock::new(|| {
    let for_all = |kind| Listed { kind, users: Vec::new() };
    let own = Settings::LIST.iter().map(|parameter| parameter.kind);
    let mask = MaskSettings::LIST.iter().map(|parameter| parameter.kind);
    let abstraction = abstraction::Params::LIST.iter().map(|parameter| parameter.kind);
    let device = DeviceSettings::LIST.iter().map(|parameter| parameter.kind);
    let algorithm = Kind::Choice(ALGORITHM, Algorithm::CHOICES);
    // The page of the studio shows them in this order.
    let library = [for_all(algorithm)].into_iter().chain(params::list());
    library.chain(own.chain(mask).chain(abstraction).chain(device).map(for_all)).collect()
});

impl Default for Settings {
    fn default() -> Self {
        let params = Params {
            // A stream is one scene after another; the library cannot know that of what it is given.
            temporal: true,
            // Cameras with 16 bits use few of their codes.
            stretch_gray16: true,
            ..Params::default()
        };
        Self {
            library: ParamSet { params, ..ParamSet::default() },
            backend: Backend::Auto,
            device: DeviceSettings::default(),
            threads: THREADS.default,
            overlay: Overlay::Boundaries,
            mean_in_linear_light: false,
            boundaries: Boundaries::default(),
            mask: MaskSettings::default(),
            abstraction: abstraction::Params::default(),
            labels: true,
            region_table: true,
            neighbors: false,
            events: false,
            analytics: Analytics::Segmentation,
            started: None,
        }
    }
}

impl Settings {
    /// Returns true if a device may be chosen at start.
    pub(super) fn may_use_device(&self) -> bool {
        self.backend != Backend::Cpu && self.params().runs_on_cuda()
    }

    /// Parameters of the label map.
    pub(super) fn params(&self) -> Params {
        let params = self.library.params();
        // Without the metadata nobody could read a list of merges.
        let levels = self.labels && params.hierarchy.levels;
        let (masked, prior) = (self.mask.source != Mask::None, self.mask.prior != Prior::None);
        let hierarchy = hierarchy::Params { levels, ..params.hierarchy };
        let MaskSettings { prior_cuts, prior_price, .. } = self.mask;
        Params { hierarchy, masked, prior, prior_cuts, prior_price, ..params }
    }

    /// Checks that all values go together, with `backend` as it is at start.
    ///
    /// # Errors
    ///
    /// Two that exclude each other, with what to do.
    pub(super) fn check(&self, backend: Backend) -> Result<(), String> {
        let params = self.params();
        params.validate().map_err(|error| error.to_string())?;
        if backend == Backend::Cuda && !params.runs_on_cuda() { Err(cpu_only(&params)) } else { Ok(()) }
    }

    /// Takes the value of a property as [`Settings::set`] does. While the element runs, nothing changes where the value does not go
    /// together with the others: the next frame would end the stream.
    ///
    /// # Errors
    ///
    /// Why the old value stays.
    pub(super) fn take(&mut self, name: &str, value: &glib::Value) -> Result<(), String> {
        let Some(backend) = self.started else { return self.set(name, value) };
        let mut changed = self.clone();
        changed.set(name, value)?;
        changed.check(backend)?;
        *self = changed;
        Ok(())
    }

    /// Takes values that belong to one time: the order in which they come does not show. Where they do not go together, those are
    /// taken that go together with what is there, in their order.
    ///
    /// # Errors
    ///
    /// The first property that keeps its value, and why.
    pub(super) fn take_all<'a>(
        &mut self,
        values: impl Iterator<Item = (&'a str, &'a glib::Value)> + Clone,
    ) -> Result<(), (&'a str, String)> {
        let mut changed = self.clone();
        let all_set = values.clone().all(|(name, value)| changed.set(name, value).is_ok());
        if all_set && self.started.is_none_or(|backend| changed.check(backend).is_ok()) {
            *self = changed;
            return Ok(());
        }
        let refused = |(name, value)| self.take(name, value).err().map(|reason| (name, reason));
        // All of them, not up to the first that is refused.
        values.filter_map(refused).reduce(|first, _| first).map_or(Ok(()), Err)
    }

    /// Drawing into the frame; `None` leaves the pixels alone.
    pub(super) fn drawing(&self) -> Option<Drawing> {
        let boundaries = Some(self.boundaries);
        match self.overlay {
            Overlay::None => None,
            Overlay::Boundaries => Some(Drawing { fill: Fill::None, boundaries }),
            Overlay::MeanColor => Some(Drawing { fill: Fill::MeanColor, boundaries: None }),
            Overlay::MeanColorBoundaries => Some(Drawing { fill: Fill::MeanColor, boundaries }),
            Overlay::Labels => Some(Drawing { fill: Fill::Labels, boundaries: None }),
            Overlay::Abstraction => {
                Some(Drawing { fill: Fill::Abstraction(self.abstraction), boundaries: None })
            }
        }
    }

    /// Results to measure beside the label map.
    pub(super) fn outputs(&self) -> Outputs {
        Outputs {
            table: self.labels && self.region_table,
            neighbors: self.labels && self.neighbors,
            mean_color: self.drawing().is_some_and(|drawing| drawing.fill.needs_mean_color()),
            linear_light: self.mean_in_linear_light,
        }
    }

    /// Takes the value of a property.
    ///
    /// # Errors
    ///
    /// A text that cannot be read. A number out of range or NaN, which GObject refuses before in all usual ways. The old value stays.
    fn set(&mut self, name: &str, value: &glib::Value) -> Result<(), String> {
        if TEXTS.iter().any(|about| about.name == name) {
            let text = value.get::<Option<String>>().ok().flatten().unwrap_or_default();
            return self.mask.set_text(name, &text).unwrap_or(Ok(()));
        }
        let set = from_gobject(kind(name), value).and_then(|value| {
            // Each name is in one of the lists.
            let own = Parameters::set(self, name, value).or_else(|| self.abstraction.set(name, value));
            let own = own.or_else(|| self.mask.set(name, value));
            own.or_else(|| self.device.set(name, value)).or_else(|| self.library.set(name, value))
        });
        set.unwrap_or_else(|| unimplemented!("property {name}")).map_err(|error| error.to_string())
    }

    /// Value of a parameter; nothing where there is none of that name.
    pub(super) fn value(&self, name: &str) -> Option<Value> {
        let own = Parameters::get(self, name).or_else(|| self.abstraction.get(name));
        let own = own.or_else(|| self.mask.get(name));
        own.or_else(|| self.device.get(name)).or_else(|| self.library.get(name))
    }

    /// Value of a property.
    pub(super) fn get(&self, name: &str) -> glib::Value {
        if let Some(text) = self.mask.text(name) {
            return text.to_value();
        }
        let value = self.value(name).and_then(|value| to_gobject(kind(name), value));
        value.unwrap_or_else(|| unimplemented!("property {name}"))
    }
}

/// Looks up the kind of a property.
fn kind(name: &str) -> Option<&'static Kind> {
    LISTED.iter().map(|listed| &listed.kind).find(|kind| kind.about().name == name)
}

/// A value of GObject, whose type it has checked.
fn from_gobject(kind: Option<&Kind>, value: &glib::Value) -> Option<Value> {
    match kind? {
        Kind::Whole(_) => value.get().ok().map(Value::Whole),
        Kind::Signed(_) => value.get().ok().map(Value::Signed),
        Kind::Real(_) => value.get().ok().map(Value::Real),
        Kind::Switch(_) => value.get().ok().map(Value::Switch),
        Kind::Choice(_, choices) => {
            let (_, value) = glib::EnumValue::from_value(value)?;
            choices.find(value.nick()).map(Value::Choice)
        }
    }
}

fn to_gobject(kind: Option<&Kind>, value: Value) -> Option<glib::Value> {
    Some(match (kind?, value) {
        (_, Value::Whole(number)) => number.to_value(),
        (_, Value::Signed(number)) => number.to_value(),
        (_, Value::Real(number)) => number.to_value(),
        (_, Value::Switch(on)) => on.to_value(),
        (Kind::Choice(_, choices), Value::Choice(index)) => enums::value(choices, index)?,
        _ => return None,
    })
}

/// Why a device cannot do what is wanted, and what to do.
pub(super) fn cpu_only(params: &Params) -> String {
    let nick = params.algorithm.algorithm().nick();
    format!("algo={nick} runs on the CPU only; set backend=cpu or backend=auto")
}
