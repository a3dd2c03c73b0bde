// SPDX-License-Identifier: MPL-2.0
//! The path of frames on a CUDA device; builds without CUDA use `no_cuda.rs` instead.

mod drawn;
mod frames;
mod group;
mod input;
mod memory;
mod results;
mod settings;

pub(super) use frames::{CudaBackend, CudaEngine, Pending};
pub(super) use memory::{DeviceContext, device_caps, forget_context, is_on_device, unavailable};
pub(super) use settings::DeviceSettings;
