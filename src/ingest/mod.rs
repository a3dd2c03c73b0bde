// SPDX-License-Identifier: MPL-2.0
//! Stage `ingest`: a frame of any format becomes one plane of packed colors, see [`crate::color`].

pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
