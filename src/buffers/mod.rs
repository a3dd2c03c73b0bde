// SPDX-License-Identifier: MPL-2.0
//! What the stages of a frame share: packed colors, clusters, counts, and what lasts from frame to frame.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "cuda")]
mod export;
