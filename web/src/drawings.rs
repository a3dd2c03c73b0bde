// SPDX-License-Identifier: MPL-2.0
//! Pictures on which regions are drawn, from any label map: lines between regions, and regions in their mean colors.

use gstsuperpixel::image::{NO_LABEL, PackedRgb};
use js_sys::{Reflect, Uint8ClampedArray};
use wasm_bindgen::prelude::*;

use crate::errors::{Result, type_error};
use crate::image::Image;
use crate::labels::Map;
use crate::values::{check_object, color};

/// Yellow.
const COLOR: [u8; 3] = [255, 255, 0];

/// An image of bytes whose channels are together, with the places of red, green and blue.
fn packed(image: &Image) -> Result<PackedRgb> {
    let packed = image.info.format.packed_rgb().filter(|_| image.info.format.sample().bytes == 1);
    packed.ok_or_else(|| {
        type_error("image must be RGBA, RGB or another order of these; Segmenter draws on others")
    })
}

/// The bytes of an image with lines: a pixel is on a line if its right or lower neighbor has another label.
#[wasm_bindgen(skip_typescript)]
pub fn boundaries(image: &JsValue, map: &JsValue, options: &JsValue) -> Result<Uint8ClampedArray> {
    let mut line = COLOR;
    if !options.is_undefined() {
        check_object("options", options)?;
        for key in Reflect::own_keys(options)? {
            match key.as_string().as_deref() {
                Some("color") => line = color("color", &Reflect::get(options, &key)?)?,
                _ => return Err(type_error("boundaries has the one option color")),
            }
        }
    }
    let (mut image, map) = (Image::read(image, &mut Vec::new())?, Map::read(map)?);
    map.check_size(image.info.geometry)?;
    let PackedRgb { bytes, offsets } = packed(&image)?;
    let (width, height) = (map.geometry.width() as usize, map.geometry.height() as usize);
    for (i, pixel) in image.bytes.chunks_exact_mut(bytes).enumerate() {
        let (x, y, own) = (i % width, i / width, map.labels[i]);
        let is_last = [x + 1 == width, y + 1 == height];
        if (!is_last[0] && map.labels[i + 1] != own) || (!is_last[1] && map.labels[i + width] != own) {
            offsets.iter().zip(line).for_each(|(&offset, code)| pixel[offset] = code);
        }
    }
    Ok(Uint8ClampedArray::from(&image.bytes[..]))
}

/// The bytes of an image with every region in its mean color, rounded half up.
#[wasm_bindgen(js_name = meanColor, skip_typescript)]
pub fn mean_color(image: &JsValue, map: &JsValue) -> Result<Uint8ClampedArray> {
    let (mut image, map) = (Image::read(image, &mut Vec::new())?, Map::read(map)?);
    map.check_size(image.info.geometry)?;
    let PackedRgb { bytes, offsets } = packed(&image)?;
    let mut sums = vec![[0u64; 4]; map.count()];
    let inside = |label: u16| (label != NO_LABEL).then_some(usize::from(label));
    for (pixel, &label) in image.bytes.chunks_exact(bytes).zip(&map.labels) {
        if let Some(label) = inside(label) {
            let codes = offsets.map(|offset| u64::from(pixel[offset]));
            sums[label].iter_mut().zip(codes.into_iter().chain([1])).for_each(|(sum, code)| *sum += code);
        }
    }
    let mean = |[r, g, b, n]: [u64; 4]| [r, g, b].map(|sum| ((2 * sum + n) / (2 * n.max(1))) as u8);
    let means: Vec<_> = sums.into_iter().map(mean).collect();
    for (pixel, &label) in image.bytes.chunks_exact_mut(bytes).zip(&map.labels) {
        if let Some(label) = inside(label) {
            offsets.iter().zip(means[label]).for_each(|(&offset, code)| pixel[offset] = code);
        }
    }
    Ok(Uint8ClampedArray::from(&image.bytes[..]))
}
