// SPDX-License-Identifier: MPL-2.0
//! The composition root: which stages a backend makes of a plan. Nothing below knows all stages.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
