// SPDX-License-Identifier: MPL-2.0
//! Stage `statistics`: region table, adjacency list and mean samples of final labels. Sums are integers; a mean is
//! rounded once.

pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
