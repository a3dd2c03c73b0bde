// SPDX-License-Identifier: MPL-2.0
//! How large superpixels come out, and a warning where that is not what was asked for.

use std::ffi::CString;

use gstsuperpixel::algo::Algorithm;
use gstsuperpixel::grid::{Grid, MAX_CELLS};
use gstsuperpixel::image::Geometry;
use gstsuperpixel::params::Params;
use gstsuperpixel::wide;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;

use crate::names::python_name;

/// The step that is asked for.
fn wanted(params: &Params, geometry: Geometry) -> u32 {
    match params.superpixels {
        0 => params.superpixel_size,
        count => Grid::step_for_count(geometry, count),
    }
}

/// What keeps labels at 16 bits, under the name that it has in Python.
fn obstacle(params: &Params) -> String {
    match wide::obstacle(params) {
        Some("algo") | None => format!("algorithm={:?}", params.algorithm.nick()),
        Some(name) => python_name(name),
    }
}

/// Warns where label maps of 16 bits have no room for as many superpixels as are asked for, and says whether it did. The warning is
/// of the caller's line, `level` calls of Python up.
pub fn warn_of_size(py: Python<'_>, params: &Params, geometry: Geometry, level: i32) -> PyResult<bool> {
    if wide::is_needed(params, geometry) {
        return Ok(false);
    }
    warn(py, params, geometry, level, || format!("those of slic have 32 bits without {}", obstacle(params)))
}

/// As [`warn_of_size`], where labels have 16 bits in any case.
pub fn warn_of_size_in_16_bits(
    py: Python<'_>,
    params: &Params,
    geometry: Geometry,
    level: i32,
) -> PyResult<bool> {
    warn(py, params, geometry, level, || "take slic, whose label maps have 32 bits where they need to".into())
}

fn warn(
    py: Python<'_>,
    params: &Params,
    geometry: Geometry,
    level: i32,
    advice: impl FnOnce() -> String,
) -> PyResult<bool> {
    let is_on_grid = params.algorithm.algorithm() != Algorithm::QuickShift;
    if !is_on_grid || has_room(params, geometry) {
        return Ok(false);
    }
    let step = wanted(params, geometry);
    let grid = Grid::with_step(geometry, step);
    if grid.step() == step {
        return Ok(false);
    }
    let asked = match params.superpixels {
        0 => format!("superpixel_size={step}"),
        count => format!("n_segments={count}"),
    };
    let text = format!(
        "{asked} asks for more superpixels than label maps of 16 bits have names for: they are {} px wide, {} of them; {}, or \
         segment parts of the image",
        grid.step(),
        grid.cells(),
        advice()
    );
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(text)?, level)?;
    Ok(true)
}

/// Whether there is room at first sight: a closer look takes longer than to segment a small image.
fn has_room(params: &Params, geometry: Geometry) -> bool {
    let along = |side: u32| u64::from(side / params.superpixel_size.max(1) + 1);
    match params.superpixels {
        0 => along(geometry.width()) * along(geometry.height()) <= u64::from(MAX_CELLS),
        // The nearest number is at most 3.2 times the wanted one.
        count => count <= MAX_CELLS / 4,
    }
}
