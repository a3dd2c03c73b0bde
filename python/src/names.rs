// SPDX-License-Identifier: MPL-2.0
//! Names that the library's parameters have in Python.

/// The name of a parameter of the library.
pub fn python_name(name: &str) -> String {
    match name {
        "superpixels" => "n_segments".into(),
        "lsc-ratio" => "ratio".into(),
        // `regions` is the table.
        "regions" => "n_regions".into(),
        _ => name.replace('-', "_"),
    }
}
