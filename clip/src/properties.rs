// SPDX-License-Identifier: MPL-2.0
//! Properties of `superpixel` from NAME=VALUE, checked by the element's own description of them.

use gst::glib::{self, ParamFlags};
use gst::prelude::*;

/// What this program sets itself, and to what: the tables need it, and nobody sees what is drawn.
const OWN: [(&str, &str); 5] = [
    ("overlay", "none"),
    ("labels", "true"),
    ("region-table", "true"),
    ("neighbors", "true"),
    ("analytics", "none"),
];

/// A name with its value, in the element's own words.
pub type Property = (String, String);

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
