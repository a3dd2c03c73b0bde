// SPDX-License-Identifier: MPL-2.0
//! Stage `connectivity`: every label becomes one 4-connected region of at least M pixels, by absorption into the
//! neighbor of nearest color; labels become dense.
//!
//! ```text
//! components: the 4-connected components of equal cluster label; the root of one is its first pixel in raster order
//! while a component is below M and there are two or more:
//!     the mean of every component, in 1/16 quantum, rounded half up
//!     every component below M picks the neighbor of least (squared distance of means, root)
//!     all picks are united at once; sums add, the lower root stays
//! labels: components numbered by raster order of their roots
//! ```
//!
//! Picks cannot form a cycle longer than two: around a cycle distances cannot rise, so they are equal, and then roots
//! would fall all the way around. So the result does not depend on the order of the unions. Every component that is
//! still small after a round has at least doubled, so there are at most ceil(log2 M) rounds. No pixel ever leaves its
//! component, an image below M pixels becomes one region, and running the stage on its own output changes nothing.
//!
//! Differs from Achanta's clean-up, which hands a fragment to whichever neighbor its scan met last: color decides here.
//! Should more than 65535 regions be left, M doubles and the rounds go on until they fit.

pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;

/// Most regions of a frame: labels are u16 and 65535 stays free.
pub const MAX_REGIONS: usize = 65_535;
