// SPDX-License-Identifier: MPL-2.0
//! Properties of the element as GObject describes them: what the page shows and what a viewer may set.

use gst::glib;
use gst::prelude::*;
use serde::Serialize;
use serde_json::{Value as Json, json};

/// Properties that the studio sets itself: the page draws from labels, table, neighbors and events. `overlay` comes first.
const HELD: [(&str, &str); 5] = [
    ("overlay", "none"),
    ("labels", "true"),
    ("region-table", "true"),
    ("neighbors", "true"),
    ("events", "true"),
];

/// The overlay that the page cannot draw by itself.
pub const ABSTRACTION: &str = "abstraction";

/// Properties that only the command line sets: other devices of the machine may be in use by others, and masks are the source's.
/// `backend` stays with the viewers, who compare CPU and GPU: it takes the one device, and `async-depth` at most four frames of it.
const OWNERS: [&str; 4] = ["cuda-device-id", "mask", "mask-missing", "mask-alpha"];

/// Most of a property that takes something of the machine.
fn ceiling(name: &str) -> Option<u32> {
    // More threads than cores gain nothing and take time from everybody.
    let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get());
    (name == "threads").then(|| u32::try_from(cores()).unwrap_or(u32::MAX))
}

/// A property that may be set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// A short title.
    pub nick: String,
    /// Its effect, with the unit.
    pub text: String,
    /// Its allowed values.
    #[serde(flatten)]
    pub kind: Kind,
    /// The value of a new element.
    pub default: Json,
    /// True if it can change from frame to frame; others restart the pipeline.
    pub playing: bool,
}

/// Values that a property takes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Kind {
    /// Whole numbers of a range.
    Integer {
        /// Least.
        min: i64,
        /// Greatest.
        max: i64,
    },
    /// Numbers of a range.
    Float {
        /// Least.
        min: f32,
        /// Greatest.
        max: f32,
    },
    /// On or off.
    Boolean,
    /// One of several.
    Enum {
        /// All of them.
        values: Vec<Choice>,
    },
}

/// A value of an enum.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Choice {
    /// As it is written.
    pub nick: String,
    /// Meaning of the value.
    pub text: String,
}

/// A name with a checked value.
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    /// Of the element's own.
    pub name: String,
    /// In its range.
    pub value: Json,
}

impl Property {
    /// Sets it.
    pub fn apply(&self, element: &gst::Element) {
        let spec = element.find_property(&self.name);
        if let Some(value) = spec.and_then(|spec| from_json(&spec, &self.value)) {
            element.set_property_from_value(&self.name, &value);
        }
    }

    /// The element's own value, if it has refused this one.
    fn kept_by(&self, element: &gst::Element) -> Option<Json> {
        to_json(&element.property_value(&self.name)).filter(|kept| *kept != self.value)
    }
}

/// Sets once more what a running element has refused: the setting that was in the way may have changed after it. What it still refuses
/// gets the element's own value, and is returned as `NAME=VALUE`.
pub fn take_back_refused(element: &gst::Element, wanted: &mut [Property]) -> Vec<String> {
    wanted.iter().filter(|own| own.kept_by(element).is_some()).for_each(|own| own.apply(element));
    let take_back = |own: &mut Property| {
        let kept = own.kept_by(element)?;
        Some(format!("{}={}", own.name, std::mem::replace(&mut own.value, kept)))
    };
    wanted.iter_mut().filter_map(take_back).collect()
}

/// Sets what the studio needs of an element.
pub fn hold(element: &gst::Element) {
    for (name, value) in HELD {
        element.set_property_from_str(name, value);
    }
}

/// The value of an enum by its nick. Compared here, since GLib ends the thread at a text with a NUL in it.
fn by_nick(spec: &glib::ParamSpec, nick: &str) -> Option<glib::Value> {
    let class = glib::EnumClass::with_type(spec.value_type())?;
    let value = class.values().iter().find(|value| value.nick() == nick)?.value();
    class.to_value(value)
}

/// Chooses what an element draws; `None`, and nothing set, where it draws nothing of that name.
pub fn set_overlay(element: &gst::Element, overlay: &str) -> Option<()> {
    let spec = element.find_property(HELD[0].0)?;
    let value = by_nick(&spec, overlay)?;
    element.set_property_from_value(spec.name(), &value);
    Some(())
}

/// Lets an element draw the abstraction, or nothing.
pub fn draw(element: &gst::Element, on: bool) {
    let (name, nothing) = HELD[0];
    element.set_property_from_str(name, if on { ABSTRACTION } else { nothing });
}

fn is_settable(element: &gst::Element, spec: &glib::ParamSpec) -> bool {
    spec.flags().contains(glib::ParamFlags::WRITABLE)
        && spec.owner_type() == element.type_()
        && HELD.iter().all(|(name, _)| *name != spec.name())
}

fn kind(spec: &glib::ParamSpec) -> Option<Kind> {
    if let Some(spec) = spec.downcast_ref::<glib::ParamSpecUInt>() {
        let max = ceiling(spec.name()).map_or(spec.maximum(), |most| most.min(spec.maximum()));
        return Some(Kind::Integer { min: spec.minimum().into(), max: max.into() });
    }
    if let Some(spec) = spec.downcast_ref::<glib::ParamSpecInt>() {
        return Some(Kind::Integer { min: spec.minimum().into(), max: spec.maximum().into() });
    }
    if let Some(spec) = spec.downcast_ref::<glib::ParamSpecFloat>() {
        return Some(Kind::Float { min: spec.minimum(), max: spec.maximum() });
    }
    if spec.is::<glib::ParamSpecBoolean>() {
        return Some(Kind::Boolean);
    }
    let class = glib::EnumClass::with_type(spec.value_type())?;
    let choice = |value: &glib::EnumValue| Choice { nick: value.nick().into(), text: value.name().into() };
    Some(Kind::Enum { values: class.values().iter().map(choice).collect() })
}

/// A value as JSON; `None` for types that no property of the page has.
pub fn to_json(value: &glib::Value) -> Option<Json> {
    if let Ok(number) = value.get::<u32>() {
        return Some(json!(number));
    }
    if let Ok(number) = value.get::<i32>() {
        return Some(json!(number));
    }
    if let Ok(number) = value.get::<f32>() {
        // By its shortest decimal: 0.2 and not 0.20000000298.
        return number.to_string().parse::<f64>().ok().map(|number| json!(number));
    }
    if let Ok(on) = value.get::<bool>() {
        return Some(json!(on));
    }
    Some(json!(glib::EnumValue::from_value(value)?.1.nick()))
}

/// Every property that viewers may set, in the order of the element.
pub fn describe(element: &gst::Element) -> Vec<Described> {
    let properties = element.list_properties();
    let settable =
        properties.iter().filter(|spec| is_settable(element, spec) && !OWNERS.contains(&spec.name()));
    settable
        .filter_map(|spec| {
            Some(Described {
                name: spec.name().into(),
                nick: spec.nick().into(),
                text: spec.blurb().unwrap_or_default().into(),
                kind: kind(spec)?,
                default: to_json(spec.default_value())?,
                playing: spec.flags().contains(gst::PARAM_FLAG_MUTABLE_PLAYING),
            })
        })
        .collect()
}

/// Returns true if a number is in the range of the specification.
fn is_in_range(spec: &glib::ParamSpec, number: u32) -> bool {
    let spec = spec.downcast_ref::<glib::ParamSpecUInt>();
    spec.is_some_and(|spec| (spec.minimum()..=spec.maximum()).contains(&number))
}

/// Finds a property that may be set.
fn find(element: &gst::Element, name: &str) -> Result<glib::ParamSpec, String> {
    // Compared here, as nicks are.
    let all = element.list_properties();
    all.iter()
        .find(|spec| spec.name() == name)
        .filter(|spec| is_settable(element, spec))
        .cloned()
        .ok_or_else(|| format!("superpixel has no property {name} to set here."))
}

fn wrong(spec: &glib::ParamSpec, value: &dyn std::fmt::Display) -> String {
    let range = match kind(spec) {
        Some(Kind::Integer { min, max }) => format!("a whole number of {min} to {max}"),
        Some(Kind::Float { min, max }) => format!("a number of {min} to {max}"),
        Some(Kind::Boolean) => "true or false".into(),
        Some(Kind::Enum { values }) => {
            format!("one of {}", values.iter().map(|v| v.nick.as_str()).collect::<Vec<_>>().join(", "))
        }
        None => "something else".into(),
    };
    format!("{value} is no value for {}: it takes {range}.", spec.name())
}

fn from_json(spec: &glib::ParamSpec, json: &Json) -> Option<glib::Value> {
    match kind(spec)? {
        Kind::Integer { min, max } => {
            let number = json.as_i64().filter(|number| (min..=max).contains(number))?;
            if spec.is::<glib::ParamSpecUInt>() {
                Some(u32::try_from(number).ok()?.to_value())
            } else {
                Some(i32::try_from(number).ok()?.to_value())
            }
        }
        Kind::Float { min, max } => {
            let number = json.as_f64()? as f32;
            (min..=max).contains(&number).then(|| number.to_value())
        }
        Kind::Boolean => Some(json.as_bool()?.to_value()),
        Kind::Enum { .. } => by_nick(spec, json.as_str()?),
    }
}

/// Checks a value that a page sent.
///
/// # Errors
///
/// A name that is not the element's own or not for viewers, or a value out of its range, with what it takes.
pub fn check_json(element: &gst::Element, name: &str, json: &Json) -> Result<Property, String> {
    if OWNERS.contains(&name) {
        return Err(format!("{name} is chosen where the studio is started, as {name}=VALUE."));
    }
    check(&find(element, name)?, json)
}

fn check(spec: &glib::ParamSpec, json: &Json) -> Result<Property, String> {
    // As the element would say it, so that equal values are equal.
    let value = from_json(spec, json).and_then(|value| to_json(&value)).ok_or_else(|| wrong(spec, json))?;
    Ok(Property { name: spec.name().to_owned(), value })
}

/// Checks a `NAME=VALUE` of the command line. More than the machine has becomes what it has.
///
/// # Errors
///
/// A text that is none, a name that is not the element's own, or a value out of its range, with what it takes.
pub fn check_text(element: &gst::Element, text: &str) -> Result<Property, String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("{text} is not PROPERTY=VALUE."))?;
    let spec = find(element, name)?;
    let parsed = glib::Value::deserialize_with_pspec(value, &spec).map_err(|_| wrong(&spec, &value))?;
    let parsed = match (parsed.get::<u32>(), ceiling(name)) {
        (Ok(number), Some(most)) if is_in_range(&spec, number) => number.min(most).to_value(),
        _ => parsed,
    };
    // Again through JSON, which knows the range.
    check(&spec, &to_json(&parsed).ok_or_else(|| wrong(&spec, &value))?)
}

/// Values of an element by their names.
pub fn values(element: &gst::Element) -> serde_json::Map<String, Json> {
    let described = describe(element).into_iter();
    described.filter_map(|d| Some((d.name.clone(), to_json(&element.property_value(&d.name))?))).collect()
}

/// The properties that differ from a new element's, as `NAME=VALUE` for a pipeline.
pub fn changed(element: &gst::Element) -> Vec<String> {
    let differs = |d: Described| {
        let value = to_json(&element.property_value(&d.name))?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (value != d.default).then(|| format!("{}={}", d.name, text.trim_end_matches(".0")))
    };
    describe(element).into_iter().filter_map(differs).collect()
}
