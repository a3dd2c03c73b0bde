// SPDX-License-Identifier: MPL-2.0
//! The stages behind every algorithm: connectivity, merging, refinement, statistics, overlay.

mod color_sums;
pub mod connectivity;
pub mod hierarchy;
pub mod merge;
pub mod overlay;
pub mod refine;
mod runs;
pub mod statistics;
