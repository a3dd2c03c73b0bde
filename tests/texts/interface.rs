// SPDX-License-Identifier: MPL-2.0
//! The public interface is the one written down in docs/interface.json: elements, pads, properties, texts. A change of it shows
//! there. With `SUPERPIXEL_WRITE=1` this test writes the file anew, and `tests/texts/documents.rs` the tables of docs/properties.md.

use crate::common;
use std::path::Path;

use gst::glib::translate::IntoGlib;
use gst::glib::{self, ParamFlags};
use gst::prelude::*;
use serde_json::{Value, json};

fn text(value: &glib::Value) -> String {
    // It has none, and GStreamer complains where there is none to write.
    if value.type_() == gst::Structure::static_type() {
        return "NULL".to_owned();
    }
    value.serialize().map_or_else(|_| "NULL".to_owned(), |text| text.to_string())
}

/// Smallest and largest value, for numbers.
fn range(spec: &glib::ParamSpec) -> Option<[String; 2]> {
    if let Some(spec) = spec.downcast_ref::<glib::ParamSpecUInt>() {
        Some([spec.minimum().to_string(), spec.maximum().to_string()])
    } else if let Some(spec) = spec.downcast_ref::<glib::ParamSpecInt>() {
        Some([spec.minimum().to_string(), spec.maximum().to_string()])
    } else {
        let spec = spec.downcast_ref::<glib::ParamSpecFloat>()?;
        Some([spec.minimum().to_string(), spec.maximum().to_string()])
    }
}

/// Nicks of an enum with their texts.
fn values(spec: &glib::ParamSpec) -> Option<Value> {
    let class = spec.downcast_ref::<glib::ParamSpecEnum>()?.enum_class();
    Some(
        class
            .values()
            .iter()
            .map(|value| json!({"nick": value.nick(), "value": value.value(), "text": value.name()}))
            .collect(),
    )
}

fn property(spec: &glib::ParamSpec) -> Value {
    let flags = spec.flags();
    let mutable = if flags.contains(gst::PARAM_FLAG_MUTABLE_PLAYING) {
        "playing"
    } else if flags.contains(gst::PARAM_FLAG_MUTABLE_READY) {
        "ready"
    } else {
        "null"
    };
    let mut property = json!({
        "type": spec.value_type().name(),
        "nick": spec.nick(),
        "blurb": spec.blurb(),
        "default": text(spec.default_value()),
        "readable": flags.contains(ParamFlags::READABLE),
        "writable": flags.contains(ParamFlags::WRITABLE),
        "controllable": flags.contains(gst::PARAM_FLAG_CONTROLLABLE),
        "mutable": mutable,
    });
    if let Some(range) = range(spec) {
        property["range"] = json!(range);
    }
    if let Some(values) = values(spec) {
        property["values"] = values;
    }
    property
}

fn element(name: &str) -> Value {
    let factory = gst::ElementFactory::find(name).unwrap();
    let element = factory.create().build().unwrap();
    let kind = element.type_();
    let own = |spec: &&glib::ParamSpec| spec.owner_type() == kind;
    let properties: serde_json::Map<_, _> = element
        .list_properties()
        .iter()
        .filter(own)
        .map(|spec| (spec.name().to_owned(), property(spec)))
        .collect();
    let pads: serde_json::Map<_, _> = factory
        .static_pad_templates()
        .iter()
        .map(|pad| {
            // One structure a line.
            let caps: Vec<_> = pad.caps().iter_with_features().map(|(s, f)| format!("{f} {s}")).collect();
            let direction = format!("{:?}", pad.direction());
            (pad.name_template().to_string(), json!({"direction": direction, "caps": caps}))
        })
        .collect();
    let ancestors: Vec<_> =
        std::iter::successors(Some(kind), |kind| kind.parent()).map(|kind| kind.name()).collect();
    json!({
        "long-name": factory.metadata("long-name"),
        "klass": factory.metadata("klass"),
        "description": factory.metadata("description"),
        "author": factory.metadata("author"),
        "rank": factory.rank().into_glib(),
        "hierarchy": ancestors,
        "pads": pads,
        "properties": properties,
    })
}

#[test]
fn the_interface_is_the_one_that_is_written_down() {
    common::init();
    let elements: serde_json::Map<_, _> = ["superpixel", "superpixellabels", "superpixelobjects"]
        .map(|name| (name.to_owned(), element(name)))
        .into_iter()
        .collect();
    let real = serde_json::to_string_pretty(&elements).unwrap() + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/interface.json");
    if std::env::var_os("SUPERPIXEL_WRITE").is_some() {
        std::fs::write(&path, &real).unwrap();
        return;
    }
    let said = std::fs::read_to_string(&path).unwrap();
    let differs = said.lines().zip(real.lines()).position(|(a, b)| a != b);
    assert!(
        said == real,
        "docs/interface.json differs from the elements, first in line {}; if that is meant, SUPERPIXEL_WRITE=1 cargo test --test texts \
         writes it anew",
        differs.unwrap_or(said.lines().count().min(real.lines().count())) + 1
    );
}
