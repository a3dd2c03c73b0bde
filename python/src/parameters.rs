// SPDX-License-Identifier: MPL-2.0
//! Parameters by their names in Python. Defaults and ranges are the library's.

use gstsuperpixel::algo::Algorithm;
use gstsuperpixel::error::Error;
use gstsuperpixel::parameter::{Kind, Range, Value};
use gstsuperpixel::params::{self, Listed, Params, SUPERPIXEL_SIZE, SUPERPIXELS, THREADS};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyInt, PyList, PyString};

use crate::error::exception;
use crate::names::{advice, own_name, python_name};

pub use gstsuperpixel::picture_params::{N_SEGMENTS, defaults_of as params, with_enough_superpixels};

/// A parameter under its name in Python.
struct Named {
    name: String,
    /// The name as the one object that stands for it wherever source code names an argument.
    word: Py<PyString>,
    listed: Listed,
}

/// Parameters that an algorithm takes: the number and size of superpixels, its own, and those of frames and stages.
fn of_algorithm(py: Python<'_>, algorithm: Algorithm) -> &'static [Named] {
    /// Made once: functions look parameters up for every image.
    static ALL: PyOnceLock<Vec<(Algorithm, Vec<Named>)>> = PyOnceLock::new();
    let all = ALL.get_or_init(py, || {
        let named = |listed: Listed| {
            let name = python_name(listed.about().name);
            Named { word: PyString::intern(py, &name).unbind(), name, listed }
        };
        let of = |algorithm| {
            let takes = |listed: &Listed| listed.users.is_empty() || listed.users.contains(&algorithm);
            // Quick shift takes a size, too, though it has no use for it: programs go through algorithms with it set.
            let all = params::list().into_iter().filter(|one| is_size(one.about().name) || takes(one));
            let mut all: Vec<_> = all.map(named).collect();
            // The number of superpixels first, then what is the algorithm's own.
            all.sort_by_key(|one| (!is_size(one.listed.about().name), one.listed.users.is_empty()));
            (algorithm, all)
        };
        Algorithm::ALL.iter().map(|&algorithm| of(algorithm)).collect()
    });
    all.iter().find(|(one, _)| *one == algorithm).map_or(&[], |(_, all)| all)
}

/// Whether a parameter says how many superpixels there are.
fn is_size(name: &str) -> bool {
    [SUPERPIXELS.about.name, SUPERPIXEL_SIZE.about.name].contains(&name)
}

/// A whole number in its range. Numbers beyond 32 bits are refused in the same words.
pub fn whole(range: Range<u32>, value: &Bound<'_, PyAny>) -> PyResult<u32> {
    let index = value.call_method0("__index__").map_err(|_| not_whole(range.about.name, value))?;
    let number: u32 = match index.extract() {
        Ok(number) => number,
        Err(_) => return Err(out_of(range.about.name, &range.allowed(), &index)),
    };
    range.check(number).map_err(exception)
}

/// A number in its range; NaN is in none.
fn real(range: Range<f32>, value: &Bound<'_, PyAny>) -> PyResult<f32> {
    let name = range.about.name;
    let number: f64 = match value.extract() {
        Ok(number) => number,
        Err(_) if value.is_instance_of::<PyInt>() => return Err(out_of(name, &range.allowed(), value)),
        Err(_) => return Err(PyTypeError::new_err(format!("{} must be a number", python_name(name)))),
    };
    let checked = range.check(number as f32);
    checked.map_err(|_| exception(Error::Param { name, value: number, allowed: range.allowed().into() }))
}

fn not_whole(name: &str, value: &Bound<'_, PyAny>) -> PyErr {
    // Of what is no number the type says more than its text.
    let advice = match value.extract::<f64>() {
        Ok(number) if number.is_finite() => format!(", got {number:?}; pass round({number:?})"),
        _ => String::new(),
    };
    PyTypeError::new_err(format!("{} must be an integer{advice}", python_name(name)))
}

fn out_of(name: &str, allowed: &str, value: &Bound<'_, PyAny>) -> PyErr {
    // Python refuses to print integers of thousands of digits.
    let value = value.str().map_or_else(|_| "a larger one".into(), |text| text.to_string());
    PyValueError::new_err(format!("{} must be {allowed}, got {value}", python_name(name)))
}

fn truth(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.extract().map_err(|_| PyTypeError::new_err(format!("{name} must be True or False")))
}

/// One of some words, each with its value.
fn word<'a, T>(
    name: &str,
    words: impl Iterator<Item = (&'a str, T)> + Clone,
    value: &Bound<'_, PyAny>,
) -> PyResult<T> {
    let all = || words.clone().map(|(word, _)| format!("'{word}'")).collect::<Vec<_>>().join(", ");
    let Ok(text) = value.cast::<PyString>() else {
        return Err(PyTypeError::new_err(format!("{name} must be one of {}", all())));
    };
    let text = text.to_string_lossy();
    match words.clone().find(|(word, _)| *word == text) {
        Some((_, value)) => Ok(value),
        None => Err(PyValueError::new_err(format!("{name} must be one of {}, got '{text}'", all()))),
    }
}

/// A value of a parameter.
fn value_of(Named { name, listed, .. }: &Named, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    match &listed.kind {
        Kind::Whole(range) => whole(*range, value).map(Value::Whole),
        Kind::Real(range) => real(*range, value).map(Value::Real),
        Kind::Switch(_) => truth(name, value).map(Value::Switch),
        Kind::Choice(_, choices) => {
            let all = choices.all.iter().enumerate().map(|(index, choice)| (choice.nick, index));
            word(name, all, value).map(Value::Choice)
        }
        Kind::Signed(_) => Err(PyTypeError::new_err(format!("{name} is no parameter"))),
    }
}

/// A value as Python has it.
fn python_value<'py>(py: Python<'py>, kind: &Kind, value: Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Whole(number) => Ok(number.into_pyobject(py)?.into_any()),
        Value::Signed(number) => Ok(number.into_pyobject(py)?.into_any()),
        Value::Real(number) => Ok(double(number).into_pyobject(py)?.into_any()),
        Value::Switch(on) => Ok(on.into_pyobject(py)?.to_owned().into_any()),
        Value::Choice(_) => Ok(PyString::new(py, &kind.text(value)).into_any()),
    }
}

/// The number of threads.
pub fn threads(value: &Bound<'_, PyAny>) -> PyResult<u32> {
    whole(THREADS, value)
}

/// An algorithm by its name.
pub fn algorithm(name: &Bound<'_, PyAny>) -> PyResult<Algorithm> {
    word("algorithm", Algorithm::ALL.iter().map(|&algorithm| (algorithm.nick(), algorithm)), name)
}

/// Sets what is named; nothing changes where a name or value is refused.
pub fn change(params: &mut Params, values: &Bound<'_, PyDict>) -> PyResult<()> {
    let mut changed = params.clone();
    let (mut size, mut is_counted) = (None, false);
    for (name, value) in values {
        let algorithm = changed.algorithm.algorithm();
        let named = match named(algorithm, &name)? {
            Some(named) => named,
            None => of_another_package(algorithm, &name, &value, values)?,
        };
        let library_name = named.listed.about().name;
        match library_name {
            // `None` is what is not given.
            _ if is_size(library_name) && value.is_none() => {}
            _ if library_name == SUPERPIXEL_SIZE.about.name => size = Some(whole(SUPERPIXEL_SIZE, &value)?),
            _ => {
                is_counted |= library_name == SUPERPIXELS.about.name;
                let set = changed.set_value(library_name, value_of(named, &value)?);
                set.unwrap_or(Ok(())).map_err(exception)?;
            }
        }
    }
    // The library looks at the size only where there is no number.
    if let Some(size) = size {
        if is_counted && changed.superpixels > 0 {
            return Err(PyValueError::new_err(
                "n_segments and superpixel_size both say how large superpixels are; pass one of them",
            ));
        }
        (changed.superpixel_size, changed.superpixels) = (size, 0);
    }
    changed.validate().map_err(exception)?;
    *params = changed;
    Ok(())
}

/// The parameter of an algorithm that a name stands for, if it has one.
fn named(algorithm: Algorithm, name: &Bound<'_, PyAny>) -> PyResult<Option<&'static Named>> {
    let all = of_algorithm(name.py(), algorithm);
    // Names in source code are interned, so that most are found without a look at their letters.
    if let Some(named) = all.iter().find(|named| named.word.as_ptr() == name.as_ptr()) {
        return Ok(Some(named));
    }
    let text: String = name.extract()?;
    Ok(all.iter().find(|named| named.name == text))
}

/// The parameter that a word of another package means here. An error says what to use instead of others.
fn of_another_package(
    algorithm: Algorithm,
    name: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    values: &Bound<'_, PyDict>,
) -> PyResult<&'static Named> {
    let (py, word): (_, String) = (name.py(), name.extract()?);
    let own = own_name(&word).map(|own| PyString::new(py, own));
    if let Some(own) = own
        && let Some(found) = named(algorithm, &own)?
    {
        // Functions name all parameters, with defaults for those that nobody gave.
        let given = values.get_item(&own)?;
        let is_given = |given: Bound<'_, PyAny>| {
            Ok::<_, PyErr>(!given.eq(value)? && !given.eq(dict(py, &params(algorithm))?.get_item(&own)?)?)
        };
        if given.map_or(Ok(false), is_given)? {
            return Err(PyTypeError::new_err(format!("{word} is {own}; pass one of them")));
        }
        return Ok(found);
    }
    let nick = algorithm.nick();
    Err(PyTypeError::new_err(match advice(&word) {
        Some(advice) => format!("{nick} has no parameter {word}; here it is: {advice}"),
        None => {
            let names: Vec<_> = of_algorithm(py, algorithm).iter().map(|named| &*named.name).collect();
            format!("{nick} has no parameter {word}; it takes {}", names.join(", "))
        }
    }))
}

/// A float that prints as the single that it was.
fn double(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}

/// Values of all parameters that an algorithm takes, by name.
pub fn dict<'py>(py: Python<'py>, params: &Params) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for Named { name, listed, .. } in of_algorithm(py, params.algorithm.algorithm()) {
        if let Some(value) = params.value(listed.about().name) {
            all.set_item(name, python_value(py, &listed.kind, value)?)?;
        }
    }
    // Together they would say that the size counts.
    if params.superpixels > 0 {
        all.set_item(python_name(SUPERPIXEL_SIZE.about.name), py.None())?;
    }
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
    let kinds = params::list().into_iter().map(|listed| listed.kind).chain([Kind::Whole(THREADS)]);
    for kind in kinds {
        let name = python_name(kind.about().name);
        match kind {
            Kind::Whole(range) => all.set_item(name, (range.min, range.max, range.allowed()))?,
            Kind::Real(range) => {
                all.set_item(name, (double(range.min), double(range.max), range.allowed()))?;
            }
            _ => {}
        }
    }
    Ok(all)
}

/// The parameters of an algorithm as `generate.py` documents them: dicts of `name`, `kind` ("int", "float", "bool" or "str"),
/// `default`, `allowed`, `choices` (pairs of a value and its meaning), `text`, and whether this algorithm has a use for it (`used`), and others none (`own`).
#[pyfunction]
pub fn described<'py>(name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    let py = name.py();
    let values = defaults(name)?;
    let all = PyList::empty(py);
    let other = |name: &str, value: Option<&str>| match value {
        Some("true") => format!("`{}=True`", python_name(name)),
        Some("false") => format!("`{}=False`", python_name(name)),
        Some(value) => format!("`{}=\"{value}\"`", python_name(name)),
        None => format!("`{}`", python_name(name)),
    };
    let chosen = algorithm(name)?;
    for Named { name, listed, .. } in of_algorithm(py, chosen) {
        let kind = match listed.kind {
            Kind::Whole(_) | Kind::Signed(_) => "int",
            Kind::Real(_) => "float",
            Kind::Switch(_) => "bool",
            Kind::Choice(..) => "str",
        };
        let meaning = |text: &'static str| text.split_once(": ").map_or(text, |(_, meaning)| meaning);
        let choices: Vec<_> = match listed.kind {
            Kind::Choice(_, choices) => {
                choices.all.iter().map(|choice| (choice.nick, meaning(choice.text))).collect()
            }
            _ => Vec::new(),
        };
        let one = PyDict::new(py);
        one.set_item("kind", kind)?;
        one.set_item("default", values.get_item(name)?)?;
        one.set_item("allowed", listed.kind.allowed())?;
        one.set_item("choices", choices)?;
        one.set_item("text", listed.about().text_with(other))?;
        one.set_item("own", !listed.users.is_empty())?;
        one.set_item("used", listed.users.is_empty() || listed.users.contains(&chosen))?;
        one.set_item("name", name)?;
        all.append(one)?;
    }
    Ok(all)
}
