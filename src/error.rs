// SPDX-License-Identifier: MPL-2.0
//! The one error type of the library.

use std::borrow::Cow;

use crate::image::{FrameInfo, Geometry};

/// Errors below the GStreamer elements. Every message says how to avoid it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter is outside its range or not finite.
    #[error("{name} must be {allowed}, got {}", shortest(*value))]
    Param {
        /// Name of the parameter, equal to the element's property.
        name: &'static str,
        /// The refused value.
        value: f64,
        /// Allowed values, in words.
        allowed: Cow<'static, str>,
    },
    /// A parameter got something that is no value of its kind.
    #[error("{name} must be {allowed}, got {got}")]
    Value {
        /// Name of the parameter, as the element's property is called.
        name: &'static str,
        /// The refused value, as it was written.
        got: String,
        /// Allowed values, in words.
        allowed: String,
    },
    /// A plane of a frame, or a label plane, is too short.
    #[error("{what}: needs {needed} bytes or labels, got {got}; pass the whole plane with its stride")]
    Plane {
        /// Name of the plane.
        what: &'static str,
        /// Least length.
        needed: usize,
        /// Length found.
        got: usize,
    },
    /// Rows of a plane would overlap.
    #[error(
        "{what}: rows take {least} bytes or labels, got a stride of {got}; pass the distance from row to row"
    )]
    Stride {
        /// Name of the plane.
        what: &'static str,
        /// Length of a row.
        least: usize,
        /// Stride found.
        got: usize,
    },
    /// A frame is not of the plan's kind.
    #[error("the plan is for frames of {planned}, got one of {got}; make a plan and an engine for it")]
    Frame {
        /// Kind of frame that the plan is for.
        planned: FrameInfo,
        /// Kind of the given frame.
        got: FrameInfo,
    },
    /// A frame has a mask, and the plan has none.
    #[error("the plan is for frames without a mask; make one with Params::masked, and an engine for it")]
    Mask,
    /// A label plane is not of the plan's size.
    #[error("the plan is for frames of {planned}, got a label plane of {got}; pass one of the frame's size")]
    Labels {
        /// Frame size of the plan.
        planned: Geometry,
        /// Size of the label plane.
        got: Geometry,
    },
    /// The host is out of memory.
    #[error("no memory for {what}: {bytes} bytes; take smaller frames, or end other programs")]
    Memory {
        /// Purpose of the memory.
        what: &'static str,
        /// Bytes that were requested.
        bytes: usize,
    },
    /// There is no label map to draw.
    #[error("nothing has been segmented; call Engine::segment or Engine::submit before Engine::draw")]
    NotSegmented,
    /// The frame size cannot be segmented.
    #[error("frames of {width}x{height} are not supported; use 1x1 to 16384x16384")]
    Geometry {
        /// Width in px.
        width: u32,
        /// Height in px.
        height: u32,
    },
    /// The requested backend is not available.
    #[error("{backend} backend: {reason}")]
    Backend {
        /// Nick of the backend.
        backend: &'static str,
        /// Cause and remedy.
        reason: String,
    },
    /// The device refused or failed.
    #[error("CUDA failed in {stage}: {reason}")]
    Cuda {
        /// Stage or operation that failed.
        stage: &'static str,
        /// Message of the driver and remedy.
        reason: String,
    },
}

/// Prints a number that may have been 32 bits wide with the fewest digits that identify it.
fn shortest(value: f64) -> String {
    let single = value as f32;
    if f64::from(single) == value { single.to_string() } else { value.to_string() }
}

/// Result with the library's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
