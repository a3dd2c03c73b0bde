// SPDX-License-Identifier: MPL-2.0
//! Parameters by their names in Python. Defaults and ranges are the library's.

use gstsuperpixel::algo::{Algorithm, AlgorithmParams, AllParams, lsc, quickshift, slic};
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::error::Error;
use gstsuperpixel::params::{ITERATIONS, MIN_REGION, Params, Range, SUPERPIXEL_SIZE, SUPERPIXELS, THREADS};
use gstsuperpixel::post::{hierarchy, merge, refine};
use gstsuperpixel::temporal::INERTIA;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString};

use crate::error::exception;
use crate::names::python_name;

/// Names of the color spaces.
const COLOR_SPACES: [(&str, ColorSpace); 4] = [
    ("lab", ColorSpace::Lab),
    ("lab-gslicr", ColorSpace::LabGslicr),
    ("xyz-gslicr", ColorSpace::XyzGslicr),
    ("rgb", ColorSpace::Rgb),
];
/// Superpixels that the functions ask for where nobody does, as scikit-image has it.
pub const N_SEGMENTS: u32 = 100;
/// Superpixels of which a region is made at least, where their number is asked for.
const FINER: u32 = 3;

const RULES: [(&str, merge::Rule); 2] = [("mutual", merge::Rule::Mutual), ("either", merge::Rule::Either)];

/// A whole number in its range. Numbers beyond 32 bits are refused in the same words.
pub fn whole(range: Range<u32>, value: &Bound<'_, PyAny>) -> PyResult<u32> {
    let index = value
        .call_method0("__index__")
        .map_err(|_| PyTypeError::new_err(format!("{} must be an integer", python_name(range.name))))?;
    let number: u32 = match index.extract() {
        Ok(number) => number,
        Err(_) => return Err(out_of(range.name, range.allowed, &index)),
    };
    range.check(number).map_err(exception)
}

/// A number in its range; NaN is in none.
fn real(range: Range<f32>, value: &Bound<'_, PyAny>) -> PyResult<f32> {
    let name = || python_name(range.name);
    let number: f64 = match value.extract() {
        Ok(number) => number,
        Err(_) if value.is_instance_of::<PyInt>() => return Err(out_of(range.name, range.allowed, value)),
        Err(_) => return Err(PyTypeError::new_err(format!("{} must be a number", name()))),
    };
    range
        .check(number as f32)
        .map_err(|_| exception(Error::Param { name: range.name, value: number, allowed: range.allowed }))
}

fn out_of(name: &str, allowed: &str, value: &Bound<'_, PyAny>) -> PyErr {
    // Python refuses to print integers of thousands of digits.
    let value = value.str().map_or_else(|_| "a larger one".into(), |text| text.to_string());
    PyValueError::new_err(format!("{} must be {allowed}, got {value}", python_name(name)))
}

fn truth(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.extract().map_err(|_| PyTypeError::new_err(format!("{name} must be True or False")))
}

/// One of some words.
fn word<T: Copy>(name: &str, words: &[(&str, T)], value: &Bound<'_, PyAny>) -> PyResult<T> {
    let all = || words.iter().map(|(word, _)| format!("'{word}'")).collect::<Vec<_>>().join(", ");
    let Ok(text) = value.cast::<PyString>() else {
        return Err(PyTypeError::new_err(format!("{name} must be one of {}", all())));
    };
    let text = text.to_string_lossy();
    match words.iter().find(|(word, _)| *word == text) {
        Some(&(_, value)) => Ok(value),
        None => Err(PyValueError::new_err(format!("{name} must be one of {}, got '{text}'", all()))),
    }
}

fn name_of<T: Copy + PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, have)| *have == value).map_or("", |(word, _)| word)
}

/// The number of threads.
pub fn threads(value: &Bound<'_, PyAny>) -> PyResult<u32> {
    whole(THREADS, value)
}

/// An algorithm by its name.
pub fn algorithm(name: &Bound<'_, PyAny>) -> PyResult<Algorithm> {
    let words: Vec<_> = Algorithm::ALL.iter().map(|&algorithm| (algorithm.nick(), algorithm)).collect();
    word("algorithm", &words, name)
}

/// The library's defaults for an algorithm.
pub fn params(algorithm: Algorithm) -> Params {
    Params { algorithm: AllParams::default().of(algorithm), ..Params::default() }
}

/// What a frame is segmented with, from what is set: as many superpixels as regions can be made of. Functions and `Segmenter` have
/// this rule in common. [`N_SEGMENTS`] or fewer leave the number to the library, since functions ask for these unasked.
pub fn with_enough_superpixels(params: &Params) -> Params {
    let (asked, regions) = (params.superpixels, params.hierarchy.regions);
    let superpixels = match asked {
        _ if regions == 0 => asked,
        0..=N_SEGMENTS => 0,
        _ => asked.max(FINER * regions),
    };
    Params { superpixels, ..params.clone() }
}

/// Names of the parameters that an algorithm takes.
fn names(algorithm: Algorithm) -> Vec<&'static str> {
    let mut names = vec!["n_segments", "superpixel_size"];
    names.extend_from_slice(match algorithm {
        Algorithm::Slic => &["compactness", "iterations", "color_space", "adaptive"][..],
        Algorithm::Lsc => &["ratio", "iterations"],
        Algorithm::QuickShift => &["sigma", "tau", "color_scale", "color_space"],
        Algorithm::Snic => &["compactness", "color_space"],
        _ => &[],
    });
    names.extend(["connectivity", "min_region", "merge", "merge_rule", "merge_max_distance", "merge_passes"]);
    names.extend(["refine", "smoothness"]);
    names.extend(["n_regions", "regions_compactness", "levels", "temporal", "temporal_inertia"]);
    names
}

/// Sets what is named; nothing changes where a name or value is refused.
pub fn change(params: &mut Params, values: &Bound<'_, PyDict>) -> PyResult<()> {
    let mut changed = params.clone();
    let mut size = None;
    for (name, value) in values {
        let name: String = name.extract()?;
        match name.as_str() {
            // `None` is what is not given.
            "n_segments" | "superpixel_size" if value.is_none() => {}
            "superpixel_size" => size = Some(whole(SUPERPIXEL_SIZE, &value)?),
            name => set(&mut changed, name, &value)?,
        }
    }
    // The library looks at the size only where there is no number.
    if let Some(size) = size {
        (changed.superpixel_size, changed.superpixels) = (size, 0);
    }
    changed.validate().map_err(exception)?;
    *params = changed;
    Ok(())
}

fn set(params: &mut Params, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    match name {
        "n_segments" => params.superpixels = whole(SUPERPIXELS, value)?,
        "connectivity" => params.connectivity = truth(name, value)?,
        "min_region" => params.min_region = real(MIN_REGION, value)?,
        "merge" => params.merge.ratio = real(merge::MERGE, value)?,
        "merge_rule" => params.merge.rule = word(name, &RULES, value)?,
        "merge_max_distance" => params.merge.max_distance = real(merge::MAX_DISTANCE, value)?,
        "merge_passes" => params.merge.passes = whole(merge::PASSES, value)?,
        "refine" => params.refine.sweeps = whole(refine::REFINE, value)?,
        "smoothness" => params.refine.smoothness = real(refine::SMOOTHNESS, value)?,
        "n_regions" => params.hierarchy.regions = whole(hierarchy::REGIONS, value)?,
        "regions_compactness" => params.hierarchy.compactness = real(hierarchy::COMPACTNESS, value)?,
        "levels" => params.hierarchy.levels = truth(name, value)?,
        "temporal" => params.temporal = truth(name, value)?,
        "temporal_inertia" => params.temporal_inertia = real(INERTIA, value)?,
        _ => match (&mut params.algorithm, name) {
            (AlgorithmParams::Slic(own), "compactness") => own.compactness = real(slic::COMPACTNESS, value)?,
            (AlgorithmParams::Slic(own), "iterations") => own.iterations = whole(ITERATIONS, value)?,
            (AlgorithmParams::Slic(own), "color_space") => {
                own.color_space = word(name, &COLOR_SPACES, value)?
            }
            (AlgorithmParams::Slic(own), "adaptive") => own.adaptive_compactness = truth(name, value)?,
            (AlgorithmParams::Lsc(own), "ratio") => own.ratio = real(lsc::RATIO, value)?,
            (AlgorithmParams::Lsc(own), "iterations") => own.iterations = whole(ITERATIONS, value)?,
            (AlgorithmParams::QuickShift(own), "sigma") => own.sigma = real(quickshift::SIGMA, value)?,
            (AlgorithmParams::QuickShift(own), "tau") => own.tau = real(quickshift::TAU, value)?,
            (AlgorithmParams::QuickShift(own), "color_scale") => {
                own.color_scale = real(quickshift::COLOR_SCALE, value)?;
            }
            (AlgorithmParams::QuickShift(own), "color_space") => {
                own.color_space = word(name, &COLOR_SPACES, value)?;
            }
            (AlgorithmParams::Snic(own), "compactness") => own.compactness = real(slic::COMPACTNESS, value)?,
            (AlgorithmParams::Snic(own), "color_space") => {
                own.color_space = word(name, &COLOR_SPACES, value)?
            }
            (own, _) => {
                let names = names(own.algorithm()).join(", ");
                let nick = own.nick();
                return Err(PyTypeError::new_err(format!(
                    "{nick} has no parameter {name}; it takes {names}"
                )));
            }
        },
    }
    Ok(())
}

/// A float that prints as the single that it was.
fn double(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}

/// What is set, by name.
pub fn dict<'py>(py: Python<'py>, params: &Params) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("n_segments", params.superpixels)?;
    // Together they would say that the size counts.
    all.set_item("superpixel_size", (params.superpixels == 0).then_some(params.superpixel_size))?;
    match &params.algorithm {
        AlgorithmParams::Slic(own) => {
            all.set_item("compactness", double(own.compactness))?;
            all.set_item("iterations", own.iterations)?;
            all.set_item("color_space", name_of(&COLOR_SPACES, own.color_space))?;
            all.set_item("adaptive", own.adaptive_compactness)?;
        }
        AlgorithmParams::Lsc(own) => {
            all.set_item("ratio", double(own.ratio))?;
            all.set_item("iterations", own.iterations)?;
        }
        AlgorithmParams::QuickShift(own) => {
            all.set_item("sigma", double(own.sigma))?;
            all.set_item("tau", double(own.tau))?;
            all.set_item("color_scale", double(own.color_scale))?;
            all.set_item("color_space", name_of(&COLOR_SPACES, own.color_space))?;
        }
        AlgorithmParams::Snic(own) => {
            all.set_item("compactness", double(own.compactness))?;
            all.set_item("color_space", name_of(&COLOR_SPACES, own.color_space))?;
        }
    }
    all.set_item("connectivity", params.connectivity)?;
    all.set_item("min_region", double(params.min_region))?;
    all.set_item("merge", double(params.merge.ratio))?;
    all.set_item("merge_rule", name_of(&RULES, params.merge.rule))?;
    all.set_item("merge_max_distance", double(params.merge.max_distance))?;
    all.set_item("merge_passes", params.merge.passes)?;
    all.set_item("refine", params.refine.sweeps)?;
    all.set_item("smoothness", double(params.refine.smoothness))?;
    all.set_item("n_regions", params.hierarchy.regions)?;
    all.set_item("regions_compactness", double(params.hierarchy.compactness))?;
    all.set_item("levels", params.hierarchy.levels)?;
    all.set_item("temporal", params.temporal)?;
    all.set_item("temporal_inertia", double(params.temporal_inertia))?;
    Ok(all)
}

/// The library's defaults of an algorithm's parameters, by name.
#[pyfunction]
pub fn defaults<'py>(name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    dict(name.py(), &params(algorithm(name)?))
}

/// Ranges of all numbers that may be set: name to (least, most, in words).
#[pyfunction]
pub fn ranges(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for range in
        [SUPERPIXELS, SUPERPIXEL_SIZE, ITERATIONS, merge::PASSES, hierarchy::REGIONS, refine::REFINE, THREADS]
    {
        all.set_item(python_name(range.name), (range.min, range.max, range.allowed))?;
    }
    let own = [slic::COMPACTNESS, lsc::RATIO, quickshift::SIGMA, quickshift::TAU, quickshift::COLOR_SCALE];
    for range in own.into_iter().chain([
        MIN_REGION,
        merge::MERGE,
        merge::MAX_DISTANCE,
        hierarchy::COMPACTNESS,
        refine::SMOOTHNESS,
        INERTIA,
    ]) {
        all.set_item(python_name(range.name), (double(range.min), double(range.max), range.allowed))?;
    }
    Ok(all)
}
