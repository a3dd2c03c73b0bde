// SPDX-License-Identifier: MPL-2.0
//! Stage `connectivity`: every label becomes one 4-connected region of at least M pixels, by absorption into the
//! neighbor of nearest color, with small neighbors preferred at first; labels become dense.
//!
//! ```text
//! components: the 4-connected components of equal cluster label; the root of one is its first pixel in raster order
//! while a component is below M and there are two or more:
//!     the mean of every component, in 1/16 quantum, rounded half up
//!     every component below M selects the neighbor of least (cost, root); with d the squared distance of means, the cost is
//!         in the first two rounds, or three if M is above 64: d, for a neighbor that is below M, too, floor(d / 4)
//!         in later rounds: floor(d / 2), for a neighbor that is below M, too, 2^31 + floor(d / 4)
//!     all selected pairs are united at once; sums add, the lower root stays
//! labels: components numbered by raster order of their roots
//! ```
//!
//! Selections cannot form a cycle longer than two: what is selected in a cycle is small, so that the cost is the same both ways;
//! around a cycle costs cannot rise, so they are equal, and then roots would fall all the way around. So the result does
//! not depend on the order of the unions. Every component that is still small after a round has at least doubled, so
//! there are at most ceil(log2 M) rounds; most frames need three or four. No pixel ever leaves its component, an
//! image below M pixels becomes one region, and running the stage on its own output changes nothing.
//!
//! Differs from Achanta's clean-up, which hands a fragment to whichever neighbor its scan met last: color decides here.
//! Two or three rounds are what fragments of a thin thing take to become a region of their own instead of parts of what is
//! around them (docs/quality.md). Of a frame with a mask only what is inside takes part, and what has no neighbor stays (docs/masks.md). Should more than 65535 regions be left, M doubles and the rounds begin anew until they fit.

pub(crate) mod components;
pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
pub(crate) mod renumber;
mod shared;
mod strip;

/// Largest M that takes only two rounds in which a small component may select any neighbor. In later ones it selects a large one
/// if there is one.
const LIKE_REGION: u32 = 64;

/// Rounds in which a small component may select any neighbor.
fn alike_rounds(min_region: u32) -> u32 {
    if min_region > LIKE_REGION { 3 } else { 2 }
}

/// What it costs a component below `min_region` to join a neighbor, small itself or not: the first half of a selection's key.
fn cost(distance: u32, small: bool, min_region: u32, round: u32) -> u32 {
    match (round < alike_rounds(min_region), small) {
        (true, false) => distance,
        (true, true) => distance >> 2,
        (false, false) => distance >> 1,
        (false, true) => 1 << 31 | distance >> 2,
    }
}

/// Most regions of a frame: labels are u16 and 65535 stays free.
pub const MAX_REGIONS: usize = 65_535;
