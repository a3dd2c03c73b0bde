// SPDX-License-Identifier: MPL-2.0
//! Names in JavaScript: those that packages for pictures have, with a capital letter where they have `_`.

use gstsuperpixel::algo::Algorithm;
use gstsuperpixel::params::{self, Listed, SUPERPIXEL_SIZE, SUPERPIXELS};
use gstsuperpixel::picture_params;

/// Options that are of this package, and no parameters of the library: name, type in TypeScript, default, meaning.
pub const OWN: [(&str, &str, &str, &str); 4] = [
    ("regions", "boolean", "true", "Measure `regions`, and with `temporal` `motion`. Takes time"),
    ("neighbors", "boolean", "false", "Find `neighbors`. Takes time"),
    ("linearLight", "boolean", "false", "Mean colors of light instead of code values"),
    (
        "mask",
        "Uint8Array | Uint8ClampedArray",
        "none",
        "A byte a pixel: superpixels are made where it is not 0",
    ),
];
/// The option that chooses an algorithm.
pub const ALGORITHM: &str = "algorithm";

/// A name with `_` in JavaScript.
pub fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

/// The name in JavaScript of a parameter of the library.
pub fn option_name(name: &str) -> String {
    camel(&picture_params::name(name))
}

/// The parameters that an algorithm takes, with their names. Quick shift takes a size, too, though it has no use for it: programs go
/// through algorithms with it set.
pub fn of_algorithm(algorithm: Algorithm) -> Vec<(String, Listed)> {
    let is_size =
        |listed: &Listed| [SUPERPIXELS.about.name, SUPERPIXEL_SIZE.about.name].contains(&listed.about().name);
    let takes =
        |listed: &Listed| is_size(listed) || listed.users.is_empty() || listed.users.contains(&algorithm);
    let named = |listed: Listed| (option_name(listed.about().name), listed);
    params::list().into_iter().filter(takes).map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_capitals_where_words_begin() {
        assert_eq!(option_name("superpixels"), "nSegments");
        assert_eq!(option_name("merge-max-distance"), "mergeMaxDistance");
        assert_eq!(option_name("stretch-gray16"), "stretchGray16");
        assert_eq!(camel("area"), "area");
    }

    #[test]
    fn no_two_options_have_one_name() {
        for &algorithm in Algorithm::ALL {
            let mut names: Vec<_> = of_algorithm(algorithm).into_iter().map(|(name, _)| name).collect();
            names.extend(OWN.iter().map(|(name, ..)| (*name).to_owned()));
            names.push(ALGORITHM.to_owned());
            let count = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), count, "{names:?}");
        }
    }
}
