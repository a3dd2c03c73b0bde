// SPDX-License-Identifier: MPL-2.0
//! Stage `merge`: regions that touch and look alike become one, after Birkus and Benesova; labels stay dense.
//!
//! ```text
//! as often as there are passes:
//!     the mean of every region, in 1/16 quantum, rounded half up
//!     d(a, b), the squared distance of the means of two regions that touch; m(a), the least d of a
//!     a and b merge if d(a, b) <= C² m(a) and d(a, b) <= C² m(b), with the rule `either` if one of both holds,
//!     and d(a, b) is within the limit
//!     all merges at once, along chains too; sums add, the lowest label stays
//! labels: numbered in the order of their lowest label, which is raster order where labels are connected
//! ```
//!
//! C² is rounded to 1/256, and the comparison `256 d <= round(256 C²) m` is one of integers, so order does not matter.
//! Only touching regions unite, so connected labels stay connected. Without connectivity two labels touch where any of
//! their pixels do, and a merged region has as many pieces as its labels had.
//!
//! *With a prior* every label is in an area, and a pair of two areas takes part only if its border has a price: p² is then added to its d,
//! in all passes. Of pairs between the same two regions the one of least d decides. No d is above 2^32 - 1.
//!
//! Differs from the paper: there one side is enough, `d < C² m(a)`, and as every region has a nearest neighbor whole
//! pictures collapse along chains; here both sides have to agree unless the rule is `either`. Equality counts, since
//! regions of one color have m = 0. The limit is new: it keeps regions apart that merely lack a better neighbor.

use crate::color::ColorSpace;
use crate::parameter::{About, Range, choices, parameters};

pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;

/// C; 0 merges nothing.
pub const MERGE: Range<f32> = Range {
    about: About::new(
        "merge",
        "Merge",
        "",
        "Merge touching regions where a neighbor is at most this many times as far in color as the nearest one \
         (0 = off, usual 1.5 to 2.5); higher = fewer regions",
    ),
    min: 0.0,
    max: 100.0,
    default: 0.0,
};
/// Largest color difference that is merged across; 0 is no limit.
pub const MAX_DISTANCE: Range<f32> = Range {
    about: About::new(
        "merge-max-distance",
        "Merge maximum distance",
        "Delta E",
        "Never merge across a larger difference of mean colors, in Delta E ({color-space=rgb}: code values; 0 = no limit)",
    ),
    min: 0.0,
    max: 400.0,
    default: 0.0,
};
/// How often the rule is applied.
pub const PASSES: Range<u32> = Range {
    about: About::new(
        "merge-passes",
        "Merge passes",
        "",
        "Merging passes, each from the means that the last one left; more = fewer regions",
    ),
    min: 1,
    max: 8,
    default: 1,
};
const RULE: About = About::new("merge-rule", "Merge rule", "", "When two regions merge");

/// One in the fixed point of C².
pub(crate) const RATIO_ONE: u64 = 256;
/// Fractions of a quantum in which means are kept.
const MEAN_ONE: f64 = 16.0;

/// Number of sides from which the condition has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Rule {
    /// Both regions have to agree.
    #[default]
    Mutual,
    /// One region is enough, as the paper prints it.
    Either,
}

/// The list of rules, which gives their names and the values of the element's property.
macro_rules! merge_rules {
    ($with:ident) => {
        $with!("MergeRule", Rule {
            Mutual, "mutual", "Mutual: two regions merge if each is near enough for the other";
            Either, "either", "Either: two regions merge if one is near enough for the other";
        });
    };
}
#[cfg(feature = "gst")]
pub(crate) use merge_rules;
merge_rules!(choices);

/// Parameters of merging.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// C: a neighbor may be so many times as far in color as the nearest one. 0 = off, usual 1.5 to 2.5.
    pub ratio: f32,
    /// Number of sides from which that has to hold.
    pub rule: Rule,
    /// Largest color difference that is merged across: Delta E, in `rgb` code values; 0 = no limit.
    pub max_distance: f32,
    /// Passes of the rule, 1 to 8.
    pub passes: u32,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            ratio: MERGE.default,
            rule: Rule::default(),
            max_distance: MAX_DISTANCE.default,
            passes: PASSES.default,
        }
    }
}

parameters!(Params {
    real MERGE => ratio;
    choice RULE => rule: Rule;
    real MAX_DISTANCE => max_distance;
    whole PASSES => passes;
});

/// The rule in integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// C² in 1/256, rounded half up.
    pub(crate) ratio: u32,
    /// True if the condition has to hold from both sides.
    pub(crate) mutual: bool,
    /// Largest squared distance that is merged across.
    pub(crate) limit: u32,
    /// Passes of the rule.
    pub(crate) passes: u32,
    /// p², what a border of a prior adds to the squared distance; 0 if it is never crossed.
    pub(crate) price: u32,
}

impl Plan {
    /// Returns `None` if no regions are to be merged.
    pub(crate) fn new(params: &Params, price: f32, space: ColorSpace) -> Option<Self> {
        let (ratio, distance) = (f64::from(params.ratio), f64::from(params.max_distance));
        let quanta = space.quanta();
        let price = (f64::from(price) * quanta * MEAN_ONE).powi(2);
        (params.ratio > 0.0).then(|| Self {
            ratio: (ratio * ratio * RATIO_ONE as f64 + 0.5) as u32,
            mutual: params.rule == Rule::Mutual,
            limit: if distance > 0.0 { (distance * quanta * MEAN_ONE).powi(2) as u32 } else { u32::MAX },
            passes: params.passes,
            price: if price > 0.0 { (price as u32).max(1) } else { 0 },
        })
    }
}
