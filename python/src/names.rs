// SPDX-License-Identifier: MPL-2.0
//! Names that the library's parameters have in Python.

/// Parameters whose names differ by more than `-` and `_` from those of the library.
const ALIASES: [(&str, &str); 5] = [
    // As in scikit-image.
    ("superpixels", "n_segments"),
    // Its function is called `lsc`, and its class of SLIC's adaptive form SLICO.
    ("lsc-ratio", "ratio"),
    ("adaptive-compactness", "adaptive"),
    // `regions` is the table, and `hierarchy` a function.
    ("regions", "n_regions"),
    ("hierarchy", "levels"),
];

/// The name in Python of a parameter of the library.
pub fn python_name(name: &str) -> String {
    let alias = ALIASES.iter().find(|(library, _)| *library == name);
    alias.map_or_else(|| name.replace('-', "_"), |(_, alias)| (*alias).into())
}
