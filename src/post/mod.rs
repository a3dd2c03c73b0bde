// SPDX-License-Identifier: MPL-2.0
//! The stages behind every algorithm: connectivity, merging, refinement, statistics, overlay, abstraction.

pub mod abstraction;
mod color_sums;
pub mod connectivity;
pub mod hierarchy;
pub mod merge;
pub mod overlay;
pub mod refine;
mod runs;
pub mod statistics;

/// The list of stages that change final labels, in the order in which they run: folder, which is also the field of `Params` and
/// `Plan` and the name in times, and type. It gives the stages of both backends, and the parameters through
/// [`params::list`](crate::params::list).
macro_rules! stages {
    ($with:ident) => {
        $with! {
            merge, Merge;
            hierarchy, Hierarchy;
            refine, Refine;
        }
    };
}
pub(crate) use stages;
