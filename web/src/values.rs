// SPDX-License-Identifier: MPL-2.0
//! Values of JavaScript, checked: numbers, texts, properties of objects, bytes of typed arrays.

use gstsuperpixel::error::Error;
use gstsuperpixel::parameter::{Choices, Kind, Range, Value};
use js_sys::{Array, Function, Reflect, Uint8Array};
use wasm_bindgen::{JsCast, JsValue};

use crate::errors::{Result, range_error, thrown, type_error};

/// A property of an object; `undefined` where it has none.
pub fn property(object: &JsValue, name: &str) -> Result<JsValue> {
    Reflect::get(object, &name.into())
}

/// Refuses what is no object.
pub fn check_object(name: &str, value: &JsValue) -> Result<()> {
    if value.is_object() {
        Ok(())
    } else {
        Err(type_error(&format!("{name} must be an object, got {}", shown(value))))
    }
}

/// A value as messages show it.
pub fn shown(value: &JsValue) -> String {
    if let Some(number) = value.as_f64() {
        return number.to_string();
    }
    match value.as_string() {
        Some(text) => format!("{text:?}"),
        None if value.is_null() => "null".into(),
        None => value.as_bool().map_or_else(
            || value.js_typeof().as_string().unwrap_or_else(|| "another value".into()),
            |on| on.to_string(),
        ),
    }
}

/// A number without a fraction.
fn integer(name: &str, value: &JsValue) -> Result<f64> {
    match value.as_f64() {
        Some(number) if number.fract() == 0.0 => Ok(number),
        _ => Err(type_error(&format!("{name} must be a whole number, got {}", shown(value)))),
    }
}

/// A whole number from `least` to `most`.
pub fn whole(name: &str, value: &JsValue, least: u32, most: u32) -> Result<u32> {
    let number = integer(name, value)?;
    if (f64::from(least)..=f64::from(most)).contains(&number) {
        Ok(number as u32)
    } else {
        Err(range_error(&format!("{name} must be {least} to {most}, got {number}")))
    }
}

/// A number from `least` to `most`; NaN is none.
pub fn real(name: &str, value: &JsValue, least: f32, most: f32) -> Result<f32> {
    let Some(number) = value.as_f64() else {
        return Err(type_error(&format!("{name} must be a number, got {}", shown(value))));
    };
    if (f64::from(least)..=f64::from(most)).contains(&number) {
        Ok(number as f32)
    } else {
        Err(range_error(&format!("{name} must be {least} to {most}, got {number}")))
    }
}

/// `true` or `false`.
pub fn truth(name: &str, value: &JsValue) -> Result<bool> {
    value.as_bool().ok_or_else(|| type_error(&format!("{name} must be true or false, got {}", shown(value))))
}

/// The index of one of some words.
pub fn word<'a>(name: &str, words: impl Iterator<Item = &'a str> + Clone, value: &JsValue) -> Result<usize> {
    let refuse = |error: fn(&str) -> JsValue| {
        let all: Vec<_> = words.clone().map(|word| format!("{word:?}")).collect();
        error(&format!("{name} must be one of {}, got {}", all.join(", "), shown(value)))
    };
    let text = value.as_string().ok_or_else(|| refuse(type_error))?;
    words.clone().position(|word| word == text).ok_or_else(|| refuse(range_error))
}

/// Red, green and blue, 0 to 255.
pub fn color(name: &str, value: &JsValue) -> Result<[u8; 3]> {
    let codes = Array::is_array(value).then(|| Array::from(value)).filter(|codes| codes.length() == 3);
    let codes =
        codes.ok_or_else(|| type_error(&format!("{name} must be an array of red, green and blue")))?;
    let mut color = [0; 3];
    for (code, value) in color.iter_mut().zip(codes.iter()) {
        *code = whole(name, &value, 0, 255)? as u8;
    }
    Ok(color)
}

/// A value of a parameter that is called `name` here.
pub fn of_kind(name: &str, kind: &Kind, value: &JsValue) -> Result<Value> {
    let of_choices = |choices: &Choices| word(name, choices.all.iter().map(|choice| choice.nick), value);
    Ok(match kind {
        Kind::Whole(range) => Value::Whole(in_range(name, *range, value)?),
        Kind::Real(range) => {
            let Some(number) = value.as_f64() else {
                return Err(type_error(&format!("{name} must be a number, got {}", shown(value))));
            };
            let single = range.check(number as f32);
            Value::Real(single.map_err(|_| {
                let allowed = range.allowed().into();
                thrown(Error::Param { name: range.about.name, value: number, allowed })
            })?)
        }
        Kind::Switch(_) => Value::Switch(truth(name, value)?),
        Kind::Choice(_, choices) => Value::Choice(of_choices(choices)?),
        Kind::Signed(_) => return Err(type_error(&format!("{name} is no option"))),
    })
}

fn in_range(name: &str, range: Range<u32>, value: &JsValue) -> Result<u32> {
    let number = integer(name, value)?;
    if number >= f64::from(range.min) && number <= f64::from(range.max) {
        return Ok(number as u32);
    }
    Err(thrown(Error::Param { name: range.about.name, value: number, allowed: range.allowed().into() }))
}

/// The bytes of a typed array of whole numbers without a sign, whose items have so many bytes, or one.
pub fn bytes_of(name: &str, value: &JsValue, item: usize) -> Result<Uint8Array> {
    let is_typed = value.is_instance_of::<Uint8Array>()
        || value.is_instance_of::<js_sys::Uint8ClampedArray>()
        || (item == 2 && value.is_instance_of::<js_sys::Uint16Array>())
        || (item == 4 && value.is_instance_of::<js_sys::Uint32Array>());
    if !is_typed {
        let kind =
            if item == 1 { "Uint8Array or Uint8ClampedArray" } else { "Uint8Array or one of its samples" };
        return Err(type_error(&format!("{name} must be a {kind}, got {}", shown(value))));
    }
    // By a call that returns what it throws: an array may have lost its memory to another thread.
    let arguments = Array::of3(
        &property(value, "buffer")?,
        &property(value, "byteOffset")?,
        &property(value, "byteLength")?,
    );
    let class: Function = property(&js_sys::global(), "Uint8Array")?.unchecked_into();
    Reflect::construct(&class, &arguments).map(JsCast::unchecked_into)
}

/// Copies bytes, which have to be so many.
pub fn copy(name: &str, bytes: &Uint8Array, needed: u64, to: &mut Vec<u8>) -> Result<()> {
    let got = bytes.length();
    if u64::from(got) != needed {
        return Err(range_error(&format!("{name} must have {needed} bytes, got {got}")));
    }
    resize(name, to, needed as usize, 0)?;
    bytes.copy_to(to);
    Ok(())
}

/// Sets a vector to `count` items, reusing its memory.
pub fn resize<T: Clone>(what: &str, values: &mut Vec<T>, count: usize, value: T) -> Result<()> {
    let more = count.saturating_sub(values.len());
    if values.try_reserve_exact(more).is_err() {
        let bytes = count.saturating_mul(size_of::<T>());
        return Err(
            js_sys::Error::new(&format!("no memory for {what}: {bytes} bytes; take smaller images")).into()
        );
    }
    values.resize(count, value);
    Ok(())
}
