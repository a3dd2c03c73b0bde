// SPDX-License-Identifier: MPL-2.0
//! The one error type of the library.

/// What can go wrong below the GStreamer elements. Every message says what to do.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter is outside its range or not finite.
    #[error("{name} must be {allowed}, got {value}")]
    Param {
        /// Name of the parameter, as the element's property is called.
        name: &'static str,
        /// The refused value.
        value: f64,
        /// The values that are taken, in words.
        allowed: &'static str,
    },
    /// A frame or a label plane does not have the shape that it was announced with.
    #[error("{what}: needs {needed} bytes or items, got {got}; pass the whole plane with its stride")]
    Plane {
        /// Which plane.
        what: &'static str,
        /// Least length.
        needed: usize,
        /// Length found.
        got: usize,
    },
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

/// Result with the library's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
