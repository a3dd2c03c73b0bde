// SPDX-License-Identifier: MPL-2.0
//! Masks of regions as run lengths, as COCO has them: column by column, pixels outside and inside in turn, outside first.

use gstsuperpixel::vectors::runs;
use js_sys::{Array, Object};
use wasm_bindgen::prelude::*;

use crate::errors::Result;
use crate::labels::Map;
use crate::tables::put;
use crate::values::whole;

/// The mask of one region: `size` is height and width, `counts` the text that COCO's tools read.
#[wasm_bindgen(skip_typescript)]
pub fn rle(map: &JsValue, label: &JsValue) -> Result<Object> {
    let map = Map::read(map)?;
    let label = whole("label", label, 0, u16::MAX.into())? as u16;
    let (width, height) = (map.geometry.width() as usize, map.geometry.height() as usize);
    let counts = runs::lengths([width, height], [0, 0, width, height], |i| map.labels[i] == label);
    let object = Object::new();
    put(&object, "size", Array::of2(&map.geometry.height().into(), &map.geometry.width().into()))?;
    put(&object, "counts", runs::compressed(&counts))?;
    Ok(object)
}
