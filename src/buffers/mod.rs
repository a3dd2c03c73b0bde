// SPDX-License-Identifier: MPL-2.0
//! Memory that the stages of a frame share: packed colors, clusters, counts, and state from frame to frame.

#[cfg(feature = "cuda")]
mod batch_exports;
#[cfg(feature = "cuda")]
mod batch_results;
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "cuda")]
mod device_results;
#[cfg(feature = "cuda")]
mod frame_list;
#[cfg(feature = "cuda")]
pub(crate) mod prior;
#[cfg(feature = "cuda")]
mod streams;
#[cfg(feature = "cuda")]
pub use batch_results::{BatchResults, BatchTable};
#[cfg(feature = "cuda")]
pub use device_results::DeviceResults;
