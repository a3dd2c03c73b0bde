// SPDX-License-Identifier: MPL-2.0
//! What is wanted of a frame, what its stream is like and what it gave.

use std::time::Instant;

use crate::analytics::Detail;
use crate::error::{DeviceFailure, Error};
use crate::image::{FrameInfo, Geometry};
use crate::params::{Drawing, Outputs};

use super::frame::LabelPool;

/// An error of the library as an element error.
pub(super) fn library_error(error: Error) -> gst::ErrorMessage {
    gst::error_msg!(gst::LibraryError::Failed, ("{}", advised(&error)))
}

/// The text of an error of the library, with advice for pipelines where the library has none: it does not know them.
pub(super) fn advised(error: &Error) -> String {
    let advice = match error.device_failure() {
        None => return error.to_string(),
        Some(DeviceFailure::Memory) => {
            "close other users of the device, take smaller frames or use backend=cpu"
        }
        Some(DeviceFailure::Kernels) => "update the driver (525 or newer) or use backend=cpu",
        Some(_) => {
            "set every pipeline that uses the device to NULL and start again; if that does not help, restart the \
             program, check nvidia-smi or use backend=cpu"
        }
    };
    format!("{error}; {advice}")
}

/// What is wanted of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task {
    pub outputs: Outputs,
    /// Whether what was found is to be attached.
    pub labels: bool,
    /// Whether what would be merged next is among that.
    pub merges: bool,
    /// `None` leaves the pixels alone.
    pub drawing: Option<Drawing>,
}

/// What a frame was made with. Frames in flight leave when settings, caps and the engine may be others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Made {
    pub algo: &'static str,
    pub geometry: Geometry,
    /// Wanted number of regions; 0 is none.
    pub regions: u32,
    /// Standard metadata, where wanted.
    pub analytics: Option<Detail>,
    /// When its work began.
    pub began: Instant,
}

/// What the caps say.
pub(super) struct Stream {
    pub info: gst_video::VideoInfo,
    pub frame: FrameInfo,
    /// Whether frames are in device memory.
    pub on_device: bool,
    pub pool: LabelPool,
}

/// What a frame gave.
pub(super) struct Found {
    pub regions: u32,
    /// GRAY16_LE with a video meta, where it was asked for; so are the others.
    pub labels: Option<gst::Buffer>,
    pub table: Option<gst::Buffer>,
    pub motion: Option<gst::Buffer>,
    pub neighbors: Option<gst::Buffer>,
    pub hierarchy: Option<gst::Buffer>,
}
