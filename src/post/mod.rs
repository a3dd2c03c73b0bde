// SPDX-License-Identifier: MPL-2.0
//! The stages behind every algorithm: connectivity, statistics, overlay.

pub mod connectivity;
pub mod hierarchy;
pub mod merge;
pub mod overlay;
mod runs;
pub mod statistics;
