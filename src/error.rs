// SPDX-License-Identifier: MPL-2.0
//! The one error type of the library.

use std::borrow::Cow;

use crate::image::{FrameInfo, Geometry};

/// Failures below the GStreamer elements. A message says what to do, but for [`Error::Cuda`], where that depends on the caller.
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
    /// A frame has a prior, and the plan has none.
    #[error("the plan is for frames without a prior; make one with Params::prior, and an engine for it")]
    Prior,
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
    /// Frames cannot be worked on side by side.
    #[cfg(feature = "cuda")]
    #[error("a batch on a device: {0}")]
    Batch(String),
    /// The device refused or failed. [`Error::device_failure`] says of which kind that is.
    #[cfg(feature = "cuda")]
    #[error("CUDA failed in {stage}: {source}{}", behind(log))]
    Cuda {
        /// Stage or operation that failed.
        stage: &'static str,
        /// The driver's own error.
        source: cudarc::driver::DriverError,
        /// Log of the driver's compiler, where it refuses kernels; else empty.
        log: String,
    },
}

/// Kinds of failures of a device, by what helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceFailure {
    /// The device has too little memory.
    Memory,
    /// The driver does not take the kernels: it is too old, or not whole.
    Kernels,
    /// Anything else, after most of which the device works again once nobody holds it.
    Other,
}

impl Error {
    /// The kind of failure where a device has failed.
    pub fn device_failure(&self) -> Option<DeviceFailure> {
        match self {
            #[cfg(feature = "cuda")]
            Self::Cuda { source, .. } => {
                use cudarc::driver::sys::CUresult::*;
                Some(match source.0 {
                    CUDA_ERROR_OUT_OF_MEMORY => DeviceFailure::Memory,
                    CUDA_ERROR_INVALID_PTX
                    | CUDA_ERROR_UNSUPPORTED_PTX_VERSION
                    | CUDA_ERROR_JIT_COMPILER_NOT_FOUND
                    | CUDA_ERROR_NO_BINARY_FOR_GPU
                    | CUDA_ERROR_NOT_FOUND => DeviceFailure::Kernels,
                    _ => DeviceFailure::Other,
                })
            }
            _ => None,
        }
    }
}

/// A text as it follows another.
#[cfg(feature = "cuda")]
fn behind(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("; {text}") }
}

/// A number that was one of 32 bits, or not, in as few digits as tell it from others.
fn shortest(value: f64) -> String {
    let single = value as f32;
    if f64::from(single) == value { single.to_string() } else { value.to_string() }
}

/// Result with the library's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(all(test, feature = "cuda"))]
mod tests {
    use std::error::Error as _;

    use cudarc::driver::DriverError;
    use cudarc::driver::sys::CUresult;

    use super::*;

    #[test]
    fn an_error_of_the_driver_is_the_source_and_has_a_kind() {
        for (code, kind) in [
            (CUresult::CUDA_ERROR_OUT_OF_MEMORY, DeviceFailure::Memory),
            (CUresult::CUDA_ERROR_INVALID_PTX, DeviceFailure::Kernels),
            (CUresult::CUDA_ERROR_LAUNCH_FAILED, DeviceFailure::Other),
        ] {
            let error = Error::Cuda { stage: "test", source: DriverError(code), log: String::new() };
            let source = error.source().and_then(|source| source.downcast_ref::<DriverError>());
            assert!(source.is_some_and(|source| source.0 == code), "{code:?}");
            assert_eq!(error.device_failure(), Some(kind));
        }
        assert_eq!(Error::Mask.device_failure(), None);
        assert_eq!((behind(""), behind("said")), (String::new(), "; said".into()));
    }
}
