// SPDX-License-Identifier: MPL-2.0
//! Errors as JavaScript has them: `TypeError` for what is of another kind, `RangeError` for values, `Error` for the rest.

use gstsuperpixel::error::Error;
use js_sys::{RangeError, TypeError};
use wasm_bindgen::JsValue;

use crate::names::option_name;

/// Exception that a failed call throws.
pub type Result<T, E = JsValue> = std::result::Result<T, E>;

/// A `TypeError`.
pub fn type_error(text: &str) -> JsValue {
    TypeError::new(text).into()
}

/// A `RangeError`.
pub fn range_error(text: &str) -> JsValue {
    RangeError::new(text).into()
}

/// An error of the library, with a parameter under the name that it has in JavaScript.
pub fn thrown(error: Error) -> JsValue {
    let text = error.to_string();
    match error {
        Error::Param { name, .. } | Error::Value { name, .. } => {
            range_error(&text.replacen(name, &option_name(name), 1))
        }
        Error::Plane { .. } | Error::Stride { .. } | Error::Frame { .. } | Error::Geometry { .. } => {
            range_error(&text)
        }
        _ => js_sys::Error::new(&text).into(),
    }
}
