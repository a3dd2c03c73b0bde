// SPDX-License-Identifier: MPL-2.0
//! Label maps as SVG, whose boundaries are drawn once.

use gstsuperpixel::image::Labels;
use gstsuperpixel::vectors::{Drawing, Lines, Outlines, SEAM, Style, TOLERANCE};
use js_sys::{Reflect, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::errors::{Result, range_error, thrown, type_error};
use crate::labels::Map;
use crate::values::{bytes_of, check_object, color, property, real};

/// Widest lines in px.
const WIDEST: f32 = 1000.0;

/// The text of an SVG file. Regions have the colors `colors`, three bytes a label, or those of the map's own table.
#[wasm_bindgen(skip_typescript)]
pub fn svg(map: &JsValue, options: &JsValue) -> Result<String> {
    let (mut tolerance, mut lines) = (TOLERANCE, Lines { width: 0.0, color: [0; 3] });
    let mut colors = JsValue::UNDEFINED;
    if !options.is_undefined() {
        check_object("options", options)?;
        for key in Reflect::own_keys(options)? {
            let value = Reflect::get(options, &key)?;
            match key.as_string().as_deref() {
                _ if value.is_undefined() => {}
                Some("tolerance") => tolerance = real("tolerance", &value, 0.0, 4.0)?,
                Some("lines") => lines.width = real("lines", &value, 0.0, WIDEST)?,
                Some("color") => lines.color = color("color", &value)?,
                Some("colors") => colors = value,
                _ => return Err(type_error("svg takes the options tolerance, lines, color and colors")),
            }
        }
    }
    let mut all = Map::read(map)?;
    let colors = Colors::new(map, colors, all.count())?;
    let width = all.geometry.width() as usize;
    let labels = Labels::new(all.geometry, &mut all.labels, width).map_err(thrown)?;
    let outlines = Outlines::of(&labels, tolerance).map_err(thrown)?;
    let style = |label: u32| Style { label: label.into(), color: colors.of(label), ..Style::default() };
    let drawing = Drawing { fill: Some(&style), seam: SEAM, lines: (lines.width > 0.0).then_some(lines) };
    Ok(outlines.svg(&drawing))
}

/// Red, green and blue of each label, one after the other.
struct Colors(Vec<u8>);

impl Colors {
    fn new(map: &JsValue, given: JsValue, count: usize) -> Result<Self> {
        let given = match given.is_undefined() {
            false => given,
            true => {
                let table = property(map, "regions")?;
                check_object("map.regions, or the option colors,", &table)?;
                property(&table, "meanRgb")?
            }
        };
        let bytes: Uint8Array = bytes_of("colors", &given, 1)?;
        if (bytes.length() as usize) < 3 * count {
            return Err(range_error(&format!(
                "colors of {count} labels must have {} bytes, got {}",
                3 * count,
                bytes.length()
            )));
        }
        Ok(Self(bytes.to_vec()))
    }

    fn of(&self, label: u32) -> [u8; 3] {
        let at = 3 * label as usize;
        self.0.get(at..at + 3).map_or([0; 3], |color| [color[0], color[1], color[2]])
    }
}
