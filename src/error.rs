// SPDX-License-Identifier: MPL-2.0
//! The one error type of the library.

use std::borrow::Cow;

use crate::image::{FrameInfo, Geometry};

/// What can go wrong below the GStreamer elements. Every message says what to do.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter is outside its range or not finite.
    #[error("{name} must be {allowed}, got {}", shortest(*value))]
    Param {
        /// Name of the parameter, as the element's property is called.
        name: &'static str,
        /// The refused value.
        value: f64,
        /// The values that are taken, in words.
        allowed: Cow<'static, str>,
    },
    /// A parameter got something that is no value of its kind.
    #[error("{name} must be {allowed}, got {got}")]
    Value {
        /// Name of the parameter, as the element's property is called.
        name: &'static str,
        /// The refused value, as it was written.
        got: String,
        /// The values that are taken, in words.
        allowed: String,
    },
    /// A plane of a frame, or a label plane, is too short.
    #[error("{what}: needs {needed} bytes or labels, got {got}; pass the whole plane with its stride")]
    Plane {
        /// Which plane.
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
        /// Which plane.
        what: &'static str,
        /// Length of a row.
        least: usize,
        /// Stride found.
        got: usize,
    },
    /// A frame is not of the plan's kind.
    #[error("the plan is for frames of {planned}, got one of {got}; make a plan and an engine for it")]
    Frame {
        /// What the plan is for.
        planned: FrameInfo,
        /// What came.
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
    /// The host has no memory.
    #[error("no memory for {what}: {bytes} bytes; take smaller frames, or end other programs")]
    Memory {
        /// What it was for.
        what: &'static str,
        /// Bytes that were asked for.
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
    /// The backend that was asked for cannot be had.
    #[error("{backend} backend: {reason}")]
    Backend {
        /// Nick of the backend.
        backend: &'static str,
        /// Why not, and what to do.
        reason: String,
    },
    /// The device refused or failed.
    #[error("CUDA failed in {stage}: {reason}")]
    Cuda {
        /// What was being done.
        stage: &'static str,
        /// What the driver says, and what to do.
        reason: String,
    },
}

/// A number that was one of 32 bits, or not, in as few digits as tell it from others.
fn shortest(value: f64) -> String {
    let single = value as f32;
    if f64::from(single) == value { single.to_string() } else { value.to_string() }
}

/// Result with the library's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
