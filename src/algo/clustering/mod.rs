// SPDX-License-Identifier: MPL-2.0
//! Clustering on the grid, once for each backend. SLIC and LSC share all of it except for the score of a pixel against
//! a cluster.

pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
pub(crate) mod samples;
