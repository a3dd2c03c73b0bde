// SPDX-License-Identifier: MPL-2.0
//! The CUDA backend: devices, their memory and streams. It equals the CPU backend in every bit.
//!
//! A frame is one graph with all stages up to the region table, and one launch of the overlay. No stage waits for the
//! host, and the host waits once, when it asks for results.

pub(crate) mod abi;
pub(crate) mod access;
mod arrays;
pub(crate) mod batch;
pub(crate) mod device;
pub(crate) mod frame;
pub(crate) mod graph;
mod handle;
mod intake;
mod keeps_context;
mod kept;
pub(crate) mod kernels;
// Only the element finds masks and priors in frames and their metadata.
#[cfg(feature = "gst")]
pub(crate) mod frame_mask;
#[cfg(feature = "gst")]
mod host_plane;
// Only the element sends frames back in memory that they keep.
#[cfg(feature = "gst")]
pub(crate) mod host_frames;
pub(crate) mod launch;
pub(crate) mod memory;
pub(crate) mod module;
pub(crate) mod pinned;
pub(crate) mod pool;
pub(crate) mod prior;
pub(crate) mod queue;
pub(crate) mod results;
mod shared;
pub(crate) mod staging_buffer;
mod strided;
pub(crate) mod tuning;

pub use arrays::{DeviceBytes, DeviceLabels, DeviceMemory, DevicePool, LabelType};
pub use device::{Owner, owner_of};
pub use frame::{DeviceFrame, Staging};
pub use handle::{Cuda, ForeignContext, Traffic, TrafficCount};
pub use intake::Intake;
pub use keeps_context::KeepsContext;
pub use kept::Kept;
pub use results::{Counts, Part, Results};
pub use strided::{SampleType, StridedImage, ValueScale};

/// Target for the label map of a frame on a device: a plane of the host, which [`Engine::finish`] fills, or `None`, with
/// which it stays in device memory, for [`Engine::results`] and [`Engine::keep`].
///
/// [`Engine::finish`]: crate::engine::Engine::finish
/// [`Engine::keep`]: crate::engine::Engine::keep
/// [`Engine::results`]: crate::engine::Engine::results
pub type HostLabels<'a> = Option<crate::image::Labels<'a>>;
