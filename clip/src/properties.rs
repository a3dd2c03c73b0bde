// SPDX-License-Identifier: MPL-2.0
//! Properties of `superpixel` from NAME=VALUE, checked by the element's own description of them.

use gst::glib::{self, ParamFlags};
use gst::prelude::*;
use gstsuperpixel::algo::Algorithm;

use crate::fault::Failure;

/// Properties that this program sets itself: the tables need these values, and nobody sees drawn frames.
const OWN: [(&str, &str); 6] = [
    ("overlay", "none"),
    ("labels", "true"),
    ("region-table", "true"),
    ("neighbors", "true"),
    ("events", "true"),
    ("analytics", "none"),
];

/// A name with its value, in the element's own words.
pub type Property = (String, String);

/// Side of the picture on which properties are tried, in px.
const TRIAL_SIDE: i32 = 32;
/// Longest time for that.
const TRIAL_TIME: gst::ClockTime = gst::ClockTime::from_seconds(60);

/// As [`make`], for properties that the user gave: the element has also segmented a small frame with them, so values that exclude
/// each other are found before a clip is opened, on any machine.
///
/// # Errors
///
/// A wrong command line; an element that is missing.
pub fn make_checked(words: &[String]) -> crate::fault::Result<(gst::Element, Vec<Property>)> {
    let made = make(words).map_err(Failure::usage)?;
    try_out(words)?;
    Ok(made)
}

/// Segments a small frame on the CPU. Devices are left alone: that one is missing is no fault of the command line.
fn try_out(words: &[String]) -> crate::fault::Result<()> {
    let (trial, given) = make(words).map_err(Failure::usage)?;
    let value = |name: &str| given.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
    let algorithm = value("algo").and_then(|name| name.parse::<Algorithm>().ok());
    if value("backend") == Some("cuda") && algorithm.is_some_and(|algorithm| !algorithm.capabilities().cuda) {
        let name = value("algo").unwrap_or_default();
        return Err(Failure::usage(format!(
            "backend=cuda: algo={name} runs on the CPU only; set backend=cpu or auto"
        )));
    }
    trial.set_property_from_str("backend", "cpu");
    trial.set_property("threads", 1u32);
    let caps = gst::Caps::builder("video/x-raw")
        .field("format", "RGB")
        .field("width", TRIAL_SIDE)
        .field("height", TRIAL_SIDE)
        .field("framerate", gst::Fraction::new(1, 1))
        .build();
    let source = gst_app::AppSrc::builder().caps(&caps).format(gst::Format::Time).build();
    let sink = gst::ElementFactory::make("fakesink").property("sync", false).build()?;
    let pipeline = gst::Pipeline::new();
    pipeline.add_many([source.upcast_ref(), &trial, &sink])?;
    gst::Element::link_many([source.upcast_ref(), &trial, &sink])?;
    let bus = pipeline.bus().ok_or_else(|| Failure::machine("a pipeline without a bus"))?;
    // The reason of a failure is on the bus.
    let _ = pipeline.set_state(gst::State::Playing);
    let mut frame = gst::Buffer::from_mut_slice(vec![0u8; 3 * (TRIAL_SIDE * TRIAL_SIDE) as usize]);
    if let Some(frame) = frame.get_mut() {
        frame.set_pts(gst::ClockTime::ZERO);
    }
    let _ = source.push_buffer(frame).and_then(|_| source.end_of_stream());
    let end = bus.timed_pop_filtered(TRIAL_TIME, &[gst::MessageType::Error, gst::MessageType::Eos]);
    let result = match end.as_ref().map(|message| message.view()) {
        Some(gst::MessageView::Eos(_)) => Ok(()),
        Some(gst::MessageView::Error(error)) => Err(Failure::usage(Failure::of_pipeline(error).message)),
        _ => Err(Failure::machine("superpixel does not answer")),
    };
    pipeline.set_state(gst::State::Null).map_err(|error| Failure::machine(error.to_string()))?;
    result
}

/// The element with the properties that were asked for, and these in the order of their names.
///
/// # Errors
///
/// A text that is no NAME=VALUE, a name that the element does not have or that this program sets itself, a value of another type or
/// out of range; with what would be right.
pub fn make(words: &[String]) -> Result<(gst::Element, Vec<Property>), String> {
    let element = gst::ElementFactory::make("superpixel").build().map_err(|error| error.to_string())?;
    let mut given = Vec::new();
    for word in words {
        let (name, text) = word.split_once('=').ok_or_else(|| format!("{word} is not NAME=VALUE"))?;
        let spec = find(&element, name)?;
        let value = parse(&spec, text)?;
        element.set_property_from_value(spec.name(), &value);
        given.retain(|(other, _)| other != spec.name());
        given.push((spec.name().to_owned(), value.serialize().map_or_else(|_| text.to_owned(), Into::into)));
    }
    given.sort();
    for (name, text) in OWN {
        element.set_property_from_str(name, text);
    }
    Ok((element, given))
}

fn find(element: &gst::Element, name: &str) -> Result<glib::ParamSpec, String> {
    if let Some((_, text)) = OWN.iter().find(|(own, _)| *own == name) {
        return Err(format!("{name} is always {text} here"));
    }
    let usable = |spec: &glib::ParamSpec| {
        spec.owner_type() == element.type_() && spec.flags().contains(ParamFlags::WRITABLE)
    };
    element.find_property(name).filter(usable).ok_or_else(|| {
        let specs = element.list_properties();
        let own = |name: &str| OWN.iter().any(|(own, _)| *own == name);
        let names: Vec<_> =
            specs.iter().filter(|spec| usable(spec) && !own(spec.name())).map(|spec| spec.name()).collect();
        format!("superpixel has no property {name} to set; there are {}", names.join(", "))
    })
}

fn parse(spec: &glib::ParamSpec, text: &str) -> Result<glib::Value, String> {
    let allowed = allowed(spec);
    let refused = || format!("{}={text}: allowed is {allowed}", spec.name());
    let value = glib::Value::deserialize_with_pspec(text, spec).map_err(|_| refused())?;
    if is_in_range(spec, &value) { Ok(value) } else { Err(refused()) }
}

fn is_in_range(spec: &glib::ParamSpec, value: &glib::Value) -> bool {
    if let Some(spec) = spec.downcast_ref::<glib::ParamSpecUInt>() {
        value.get::<u32>().is_ok_and(|value| (spec.minimum()..=spec.maximum()).contains(&value))
    } else if let Some(spec) = spec.downcast_ref::<glib::ParamSpecInt>() {
        value.get::<i32>().is_ok_and(|value| (spec.minimum()..=spec.maximum()).contains(&value))
    } else if let Some(spec) = spec.downcast_ref::<glib::ParamSpecFloat>() {
        value.get::<f32>().is_ok_and(|value| (spec.minimum()..=spec.maximum()).contains(&value))
    } else {
        true
    }
}

/// The values that a property takes, in words.
fn allowed(spec: &glib::ParamSpec) -> String {
    if let Some(spec) = spec.downcast_ref::<glib::ParamSpecUInt>() {
        format!("{} to {}", spec.minimum(), spec.maximum())
    } else if let Some(spec) = spec.downcast_ref::<glib::ParamSpecInt>() {
        format!("{} to {}", spec.minimum(), spec.maximum())
    } else if let Some(spec) = spec.downcast_ref::<glib::ParamSpecFloat>() {
        format!("{} to {}", spec.minimum(), spec.maximum())
    } else if let Some(spec) = spec.downcast_ref::<glib::ParamSpecEnum>() {
        spec.enum_class().values().iter().map(|value| value.nick()).collect::<Vec<_>>().join(", ")
    } else if spec.is::<glib::ParamSpecBoolean>() {
        "true, false".to_owned()
    } else {
        spec.value_type().to_string()
    }
}
