// SPDX-License-Identifier: MPL-2.0
//! The composition root: makes the stages of a plan on each backend. No module below knows all stages.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
