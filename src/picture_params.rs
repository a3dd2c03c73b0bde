// SPDX-License-Identifier: MPL-2.0
//! Parameters as packages for pictures in arrays have them: their names, and how many superpixels there are where nobody says.

use crate::algo::{Algorithm, AllParams};
use crate::params::Params;

/// Superpixels where nobody says how many, as scikit-image has it.
pub const N_SEGMENTS: u32 = 100;
/// Superpixels of which a region is made at least, where their number is asked for.
const FINER: u32 = 3;

/// Parameters whose names differ by more than `-` and `_` from those of the element.
const ALIASES: [(&str, &str); 5] = [
    // As in scikit-image.
    ("superpixels", "n_segments"),
    // Its function in Python is called `lsc`, and its class of SLIC's adaptive form SLICO.
    ("lsc-ratio", "ratio"),
    ("adaptive-compactness", "adaptive"),
    // `regions` is the table, and `hierarchy` a function.
    ("regions", "n_regions"),
    ("hierarchy", "levels"),
];

/// The name of a parameter, with `_` between words.
pub fn name(name: &str) -> String {
    let alias = ALIASES.iter().find(|(element, _)| *element == name);
    alias.map_or_else(|| name.replace('-', "_"), |(_, alias)| (*alias).into())
}

/// The defaults of an algorithm: of so many superpixels, which are held.
pub fn defaults_of(algorithm: Algorithm) -> Params {
    let algorithm = AllParams::default().of(algorithm);
    Params { algorithm, superpixels: N_SEGMENTS, holds_count: true, ..Params::default() }
}

/// What a frame is segmented with, from what is set: as many superpixels as regions can be made of. [`N_SEGMENTS`] or fewer leave the
/// number to the library: nobody may have asked for these.
pub fn with_enough_superpixels(params: &Params) -> Params {
    let (asked, regions) = (params.superpixels, params.hierarchy.regions);
    let superpixels = match asked {
        _ if regions == 0 => asked,
        0..=N_SEGMENTS => 0,
        _ => asked.max(FINER * regions),
    };
    Params { superpixels, ..params.clone() }
}
