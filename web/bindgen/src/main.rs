// SPDX-License-Identifier: MPL-2.0
//! Makes a JavaScript module of a WebAssembly file that wasm-bindgen has prepared: superpixels-web-bindgen FILE.wasm FOLDER

use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [file, folder] = &arguments[..] else {
        eprintln!("usage: superpixels-web-bindgen FILE.wasm FOLDER");
        return ExitCode::from(2);
    };
    let mut bindgen = Bindgen::new();
    bindgen.input_path(file).typescript(true).remove_name_section(true).remove_producers_section(true);
    match bindgen.web(true).and_then(|bindgen| bindgen.generate(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
