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
//! Each round is one of Borůvka's algorithm, in which only components below M select. Selections cannot form a cycle
//! longer than two: every component in a cycle selects a small one, so a pair costs the same from both sides; around a
//! cycle costs cannot rise, so they are equal, and then roots would fall all the way around. So the result does not
//! depend on the order of the unions. Every component that is still small after a round has at least doubled, so there
//! are at most ceil(log2 M) rounds; most frames need three or four. No pixel ever leaves its component, an image below
//! M pixels becomes one region, and running the stage on its own output changes nothing.
//!
//! Differs from Achanta's clean-up, which joins a fragment to the neighbor that its scan met last: color decides here.
//! Small neighbors are preferred for two or three rounds, in which the fragments of a thin object become a region of
//! their own instead of parts of its surroundings (docs/quality.md). In a frame with a mask only pixels inside take
//! part, and a component without a neighbor stays (docs/masks.md). In a frame with a prior that cuts, components are of equal label and
//! area, and neighbors are those of the same area. If more than 65535 regions are left, M doubles and
//! the rounds start again, until labels can name all.

mod areas;
pub(crate) mod components;
pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
pub(crate) mod renumber;
mod shared;
mod strip;
pub(crate) mod wide;

/// Largest M with only two rounds in which a small component may select any neighbor. In later rounds it selects a
/// large one if it has one.
const LIKE_REGION: u32 = 64;

/// Rounds in which a small component may select any neighbor.
fn alike_rounds(min_region: u32) -> u32 {
    if min_region > LIKE_REGION { 3 } else { 2 }
}

/// Cost of joining a neighbor, which `small` says is below `min_region`, too: the upper half of a selection's key.
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
