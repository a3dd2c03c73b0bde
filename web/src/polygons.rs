// SPDX-License-Identifier: MPL-2.0
//! Regions as polygons, which annotation tools read.

use gstsuperpixel::image::Labels;
use gstsuperpixel::vectors::Outlines;
use js_sys::{Array, Object, Reflect};
use wasm_bindgen::prelude::*;

use crate::errors::{Result, thrown, type_error};
use crate::labels::Map;
use crate::tables::put;
use crate::values::{check_object, real, whole};

/// The pieces of one region, each with its outer ring and its holes: x and y of points in turn.
#[wasm_bindgen(skip_typescript)]
pub fn polygons(map: &JsValue, label: &JsValue, options: &JsValue) -> Result<Array> {
    let mut tolerance = 0.0;
    if !options.is_undefined() {
        check_object("options", options)?;
        for key in Reflect::own_keys(options)? {
            let value = Reflect::get(options, &key)?;
            match key.as_string().as_deref() {
                _ if value.is_undefined() => {}
                Some("tolerance") => tolerance = real("tolerance", &value, 0.0, 4.0)?,
                _ => return Err(type_error("polygons has the one option tolerance")),
            }
        }
    }
    let mut all = Map::read(map)?;
    let label = whole("label", label, 0, u16::MAX.into())?;
    // Boundaries between others take memory and time.
    for one in &mut all.labels {
        *one = u16::from(u32::from(*one) == label);
    }
    let width = all.geometry.width() as usize;
    let labels = Labels::new(all.geometry, &mut all.labels, width).map_err(thrown)?;
    let outlines = Outlines::of(&labels, tolerance).map_err(thrown)?;
    let pieces = Array::new();
    for polygon in outlines.polygons(1) {
        let piece = Object::new();
        put(&piece, "outer", numbers(&polygon.outer))?;
        put(&piece, "holes", polygon.holes.iter().map(|hole| numbers(hole)).collect::<Array>())?;
        pieces.push(&piece);
    }
    Ok(pieces)
}

/// As arrays that become JSON, and not typed ones.
fn numbers(points: &[[f32; 2]]) -> Array {
    points.as_flattened().iter().map(|&place| JsValue::from(place)).collect()
}
