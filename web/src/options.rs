// SPDX-License-Identifier: MPL-2.0
//! Options of a call: parameters of the library under their names in JavaScript, and what is measured. Unknown names are refused.

use gstsuperpixel::algo::Algorithm;
use gstsuperpixel::parameter::Value;
use gstsuperpixel::params::{Outputs, Params, SUPERPIXEL_SIZE, SUPERPIXELS};
use gstsuperpixel::picture_params::defaults_of;
use js_sys::Reflect;
use wasm_bindgen::JsValue;

use crate::errors::{Result, thrown, type_error};
use crate::names::{ALGORITHM, OWN, of_algorithm};
use crate::values::{check_object, of_kind, property, shown, truth, word};

/// What is segmented, how, and what is measured.
#[derive(Clone)]
pub struct Options {
    /// Of the library.
    pub params: Params,
    /// What is measured.
    pub outputs: Outputs,
    /// The mask as it was given, or `undefined`.
    pub mask: JsValue,
}

impl Options {
    /// Reads options; `undefined` has none.
    pub fn new(options: &JsValue) -> Result<Self> {
        let nick = if options.is_undefined() { JsValue::UNDEFINED } else { algorithm_of(options)? };
        let algorithm = match nick.is_undefined() {
            true => Algorithm::default(),
            false => Algorithm::ALL[word(ALGORITHM, Algorithm::ALL.iter().map(|one| one.nick()), &nick)?],
        };
        let outputs = Outputs { table: true, ..Outputs::default() };
        let mut own = Self { params: defaults_of(algorithm), outputs, mask: JsValue::UNDEFINED };
        own.change(options)?;
        Ok(own)
    }

    /// Sets what is named; nothing changes where a name or value is refused.
    pub fn change(&mut self, options: &JsValue) -> Result<()> {
        if options.is_undefined() {
            return Ok(());
        }
        check_object("options", options)?;
        let mut changed = self.clone();
        let algorithm = changed.params.algorithm.algorithm();
        let known = of_algorithm(algorithm);
        let (mut size, mut is_counted) = (None, false);
        for key in Reflect::own_keys(options)? {
            let Some(name) = key.as_string() else { return Err(type_error("options have no symbols")) };
            let value = Reflect::get(options, &key)?;
            // As where it is not given.
            if value.is_undefined() {
                continue;
            }
            match name.as_str() {
                ALGORITHM if value.as_string().as_deref() == Some(algorithm.nick()) => {}
                ALGORITHM => {
                    let nick = algorithm.nick();
                    return Err(type_error(&format!("algorithm is {nick} and stays, got {}", shown(&value))));
                }
                "regions" => changed.outputs.table = truth(&name, &value)?,
                "neighbors" => changed.outputs.neighbors = truth(&name, &value)?,
                "linearLight" => changed.outputs.linear_light = truth(&name, &value)?,
                "mask" => changed.mask = value,
                _ => {
                    let Some((_, listed)) = known.iter().find(|(one, _)| *one == name) else {
                        let names = known.iter().map(|(name, _)| &**name);
                        let names = names.chain([ALGORITHM]).chain(OWN.iter().map(|(name, ..)| *name));
                        let names = names.collect::<Vec<_>>().join(", ");
                        let nick = algorithm.nick();
                        return Err(type_error(&format!("{nick} has no option {name}; it takes {names}")));
                    };
                    let (library_name, value) = (listed.about().name, of_kind(&name, &listed.kind, &value)?);
                    if library_name == SUPERPIXEL_SIZE.about.name {
                        size = Some(value);
                        continue;
                    }
                    is_counted |= library_name == SUPERPIXELS.about.name;
                    changed.params.set_value(library_name, value).unwrap_or(Ok(())).map_err(thrown)?;
                }
            }
        }
        // The library looks at the size only where there is no number.
        if let Some(Value::Whole(size)) = size {
            if is_counted && changed.params.superpixels > 0 {
                let text =
                    "nSegments and superpixelSize both say how large superpixels are; give one of them";
                return Err(type_error(text));
            }
            (changed.params.superpixel_size, changed.params.superpixels) = (size, 0);
        }
        changed.params.validate().map_err(thrown)?;
        *self = changed;
        Ok(())
    }
}

fn algorithm_of(options: &JsValue) -> Result<JsValue> {
    check_object("options", options)?;
    property(options, ALGORITHM)
}
