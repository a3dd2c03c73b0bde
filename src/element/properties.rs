// SPDX-License-Identifier: MPL-2.0
//! The element's properties as GObject shows them, made from the lists of parameters.

use std::sync::LazyLock;

use gst::glib;
use gst::prelude::*;

use crate::parameter::{About, Kind, Value, as_typed};
use crate::params::Listed;

use super::enums;
use super::mask_settings::TEXTS;
use super::settings::{LISTED, Settings};

/// Sets what all kinds have in common. Numbers that change between frames may follow a controller.
macro_rules! finish {
    ($spec:expr, $about:expr, $blurb:expr) => {{
        let spec = $spec.nick($about.nick).blurb($blurb);
        if $about.hot { spec.mutable_playing().build() } else { spec.mutable_ready().build() }
    }};
    (number $spec:expr, $about:expr, $blurb:expr) => {{
        let spec = $spec;
        finish!(if $about.hot { spec.controllable() } else { spec }, $about, $blurb)
    }};
}

fn spec(listed: &Listed, default: Value) -> Option<glib::ParamSpec> {
    let (about, blurb) = (*listed.about(), &*listed.text_with(as_typed));
    Some(match (listed.kind, default) {
        (Kind::Whole(range), Value::Whole(default)) => {
            let spec = glib::ParamSpecUInt::builder(about.name).minimum(range.min).maximum(range.max);
            finish!(number spec.default_value(default), about, blurb)
        }
        (Kind::Signed(range), Value::Signed(default)) => {
            let spec = glib::ParamSpecInt::builder(about.name).minimum(range.min).maximum(range.max);
            finish!(number spec.default_value(default), about, blurb)
        }
        (Kind::Real(range), Value::Real(default)) => {
            let spec = glib::ParamSpecFloat::builder(about.name).minimum(range.min).maximum(range.max);
            finish!(number spec.default_value(default), about, blurb)
        }
        (Kind::Switch(_), Value::Switch(default)) => {
            finish!(glib::ParamSpecBoolean::builder(about.name).default_value(default), about, blurb)
        }
        (Kind::Choice(_, choices), Value::Choice(default)) => enums::spec(&choices, &about, blurb, default)?,
        _ => return None,
    })
}

fn text_spec(about: &About) -> glib::ParamSpec {
    let blurb = about.text_with(as_typed);
    finish!(glib::ParamSpecString::builder(about.name).default_value(Some("")), about, &*blurb)
}

/// Every property of the element.
pub(super) static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
    let default = Settings::default();
    let of_parameter = |listed: &Listed| spec(listed, default.value(listed.about().name)?);
    let mut properties: Vec<_> = LISTED.iter().filter_map(of_parameter).collect();
    properties.extend(TEXTS.iter().map(text_spec));
    properties.push(
        glib::ParamSpecString::builder("active-backend")
            .nick("Active backend")
            .blurb("The backend in use, with its device or number of threads; empty before start")
            .read_only()
            .build(),
    );
    properties.push(
        glib::ParamSpecBoxed::builder::<gst::Structure>("stats")
            .nick("Statistics")
            .blurb(
                "Since start: frames, dropped, frame-time-us-mean, with CUDA pixel-bytes-to-device, pixel-bytes-from-device, \
                 result-bytes-from-device, with events=true births, splits, deaths, merges, cuts; of the last frame: regions, where a number is wanted regions-missing, frame-time-us, on the CPU stage-times-us",
            )
            .read_only()
            .build(),
    );
    properties
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_is_a_property() {
        gst::init().unwrap();
        let names: Vec<_> = PROPERTIES.iter().map(|spec| spec.name()).collect();
        for listed in LISTED.iter() {
            let name = listed.about().name;
            assert_eq!(names.iter().filter(|have| **have == name).count(), 1, "{name}");
        }
        assert_eq!(names.len(), LISTED.len() + TEXTS.len() + 2);
    }
}
