// SPDX-License-Identifier: MPL-2.0
//! The options of an algorithm as data, from which pages make their controls.

use gstsuperpixel::algo::Algorithm;
use gstsuperpixel::parameter::{Kind, Value};
use gstsuperpixel::picture_params::defaults_of;
use js_sys::{Array, Object};
use wasm_bindgen::prelude::*;

use crate::errors::Result;
use crate::names::{ALGORITHM, of_algorithm, option_name};
use crate::tables::put;
use crate::values::word;

/// Names of the algorithms.
#[wasm_bindgen(skip_typescript)]
pub fn algorithms() -> Array {
    Algorithm::ALL.iter().map(|one| JsValue::from(one.nick())).collect()
}

/// Options of an algorithm: name, title, unit, text, kind, range or choices, default.
#[wasm_bindgen(skip_typescript)]
pub fn parameters(algorithm: &JsValue) -> Result<Array> {
    let nicks = Algorithm::ALL.iter().map(|one| one.nick());
    let algorithm = Algorithm::ALL[word(ALGORITHM, nicks, algorithm)?];
    let (params, all) = (defaults_of(algorithm), Array::new());
    for (name, listed) in of_algorithm(algorithm) {
        let (about, object) = (*listed.about(), Object::new());
        let typed = |name: &str, value: Option<&str>| match value {
            Some(value) => format!("{}: {value}", option_name(name)),
            None => option_name(name),
        };
        put(&object, "name", name)?;
        put(&object, "title", about.nick)?;
        put(&object, "unit", about.unit)?;
        put(&object, "text", about.text_with(typed))?;
        match listed.kind {
            Kind::Whole(range) => numeric(&object, "integer", range.min.into(), range.max.into())?,
            Kind::Signed(range) => numeric(&object, "integer", range.min.into(), range.max.into())?,
            Kind::Real(range) => numeric(&object, "number", shortest(range.min), shortest(range.max))?,
            Kind::Switch(_) => put(&object, "kind", "boolean")?,
            Kind::Choice(_, choices) => {
                let choice = |choice: &gstsuperpixel::parameter::Choice| {
                    let object = Object::new();
                    put(&object, "name", choice.nick)?;
                    put(&object, "text", choice.text)?;
                    Ok::<_, JsValue>(object)
                };
                put(&object, "kind", "choice")?;
                put(&object, "choices", choices.all.iter().map(choice).collect::<Result<Array>>()?)?;
            }
        }
        if let Some(value) = params.value(about.name) {
            put(&object, "default", plain(&listed.kind, value))?;
        }
        all.push(&object);
    }
    Ok(all)
}

fn numeric(object: &Object, kind: &str, min: f64, max: f64) -> Result<()> {
    put(object, "kind", kind)?;
    put(object, "min", min)?;
    put(object, "max", max)
}

fn plain(kind: &Kind, value: Value) -> JsValue {
    match value {
        Value::Whole(number) => number.into(),
        Value::Signed(number) => number.into(),
        Value::Real(number) => shortest(number).into(),
        Value::Switch(on) => on.into(),
        Value::Choice(_) => kind.text(value).into(),
    }
}

/// A single as the double that people write: 0.1 and not 0.10000000149.
fn shortest(number: f32) -> f64 {
    number.to_string().parse().unwrap_or_else(|_| number.into())
}
