// SPDX-License-Identifier: MPL-2.0
//! Records as objects with a typed array for each field, named as in JavaScript.

use gstsuperpixel::record::{Record, RecordField, Scalar, Value};
use js_sys::{Float32Array, Object, Reflect, Uint8Array, Uint16Array, Uint32Array};
use wasm_bindgen::JsValue;

use crate::errors::Result;
use crate::names::camel;

/// Sets a property of an object.
pub fn put(object: &Object, name: &str, value: impl Into<JsValue>) -> Result<()> {
    Reflect::set(object, &name.into(), &value.into()).map(drop)
}

/// The fields of records. Those of several numbers have them one after the other, without filler.
pub fn columns<R: Record>(records: &[R]) -> Result<Object> {
    let object = Object::new();
    for field in R::LAYOUT.fields {
        put(&object, &camel(field.name), column(records, field))?;
    }
    Ok(object)
}

fn column<R: Record>(records: &[R], field: &RecordField) -> JsValue {
    let numbers = records.iter().flat_map(|record| {
        let bytes = as_bytes(record);
        (0..field.columns.len()).map(move |component| field.value(bytes, component))
    });
    let whole = |number: Value| if let Value::Int(number) = number { number } else { 0 };
    match field.scalar {
        Scalar::U8 => {
            Uint8Array::from(&*numbers.map(|number| whole(number) as u8).collect::<Vec<_>>()).into()
        }
        Scalar::U16 => {
            Uint16Array::from(&*numbers.map(|number| whole(number) as u16).collect::<Vec<_>>()).into()
        }
        Scalar::U32 => Uint32Array::from(&*numbers.map(whole).collect::<Vec<_>>()).into(),
        Scalar::F32 => {
            let single = |number: Value| if let Value::Float(number) = number { number } else { 0.0 };
            Float32Array::from(&*numbers.map(single).collect::<Vec<_>>()).into()
        }
    }
}

fn as_bytes<R: Record>(record: &R) -> &[u8] {
    bytemuck::bytes_of(record)
}
