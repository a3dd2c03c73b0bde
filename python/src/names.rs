// SPDX-License-Identifier: MPL-2.0
//! Names that the library's parameters have in Python.

pub use gstsuperpixel::picture_params::name as python_name;

/// Words of scikit-image that mean the same as ours.
const SAME: [(&str, &str); 3] =
    [("max_num_iter", "iterations"), ("slic_zero", "adaptive"), ("kernel_size", "sigma")];

/// Words of scikit-image, fast-slic and OpenCV, and what to say instead.
const OTHER: [(&str, &str); 19] = [
    ("convert2lab", "color_space='lab' is the default, and color_space='rgb' compares code values"),
    ("enforce_connectivity", "connectivity"),
    ("max_dist", "tau"),
    ("max_iter", "iterations"),
    ("max_size_factor", "large regions are not split; n_segments makes all smaller"),
    ("min_size_factor", "min_region, of which 0.25 is the default here and 0.5 there"),
    ("multichannel", "channel_axis"),
    ("num_components", "n_segments"),
    ("num_iterations", "iterations"),
    ("num_threads", "threads"),
    ("random_seed", "nothing is random here"),
    ("ratio", "color_scale, of which 1 is the default there"),
    ("region_size", "superpixel_size"),
    ("return_tree", "the tree is not given; hierarchy gives steps in which regions are merged"),
    ("rng", "nothing is random here"),
    ("ruler", "compactness"),
    ("seed", "nothing is random here"),
    ("sigma", "blur the image before, as with skimage.filters.gaussian(image, sigma, channel_axis=-1)"),
    ("spacing", "pixels are square, and volumes are not taken"),
];

/// Our name for what a word of another package means.
pub fn own_name(word: &str) -> Option<&'static str> {
    SAME.iter().find(|(other, _)| *other == word).map(|(_, own)| *own)
}

/// What to say instead of a word of another package.
pub fn advice(word: &str) -> Option<&'static str> {
    OTHER.iter().find(|(other, _)| *other == word).map(|(_, advice)| *advice)
}
