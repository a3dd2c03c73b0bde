// SPDX-License-Identifier: MPL-2.0
//! The npm package `superpixels`: what JavaScript sees of the library. `web/package` is its face.
//!
//! Every value that JavaScript gives is checked here before the library sees it: numbers as doubles, arrays by their bytes. A panic,
//! which would be a mistake of ours, is thrown with its text.

mod coarser;
mod drawings;
mod errors;
mod image;
mod labels;
mod levels;
pub mod names;
mod options;
mod parameters;
mod polygons;
mod runs;
mod segmenter;
mod tables;
mod threads;
mod values;
mod vectors;

use wasm_bindgen::prelude::*;

/// Lets a panic be thrown instead of a trap without words.
#[wasm_bindgen(start)]
pub fn start() {
    std::panic::set_hook(Box::new(|panic| wasm_bindgen::throw_str(&format!("superpixels: {panic}"))));
}
