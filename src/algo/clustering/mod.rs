// SPDX-License-Identifier: MPL-2.0
//! Clustering on the grid, which SLIC and LSC share but for what a pixel scores against a cluster; once on each backend.

pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
pub(crate) mod samples;
