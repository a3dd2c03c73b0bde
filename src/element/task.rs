// SPDX-License-Identifier: MPL-2.0
//! The task for a frame, the properties of its stream, and its results.

use std::time::Instant;

use crate::analytics::Detail;
use crate::error::{DeviceFailure, Error};
use crate::image::{FrameInfo, Geometry};
use crate::params::{Drawing, Outputs};

use super::frame::LabelPool;

/// Converts an error of the library to an element error.
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

/// Results that a frame has to give.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task {
    pub outputs: Outputs,
    /// True if results are attached as metadata.
    pub labels: bool,
    /// True if these include the merges that would come next.
    pub merges: bool,
    /// True if these include motion, in a frame without a region as well.
    pub motion: bool,
    /// `None` leaves the pixels unchanged.
    pub drawing: Option<Drawing>,
}

/// Settings that a frame was made with. When a frame in flight leaves, those of the element may have changed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Made {
    pub algo: &'static str,
    pub geometry: Geometry,
    /// Wanted number of regions; 0 is none.
    pub regions: u32,
    /// Standard metadata to attach, if any.
    pub analytics: Option<Detail>,
    /// True if events are attached, and if the frame is the first after a reset.
    pub events: bool,
    pub is_first: bool,
    /// Time at which its work began.
    pub began: Instant,
}

/// Properties of a stream that follow from its caps.
pub(super) struct Stream {
    pub info: gst_video::VideoInfo,
    pub frame: FrameInfo,
    /// True if frames are in device memory.
    pub on_device: bool,
    pub pool: LabelPool,
}

/// Results of a frame.
pub(super) struct FrameResults {
    pub regions: u32,
    /// GRAY16_LE with a video meta. This and the buffers below are `None` unless they were asked for.
    pub labels: Option<gst::Buffer>,
    pub table: Option<gst::Buffer>,
    pub motion: Option<gst::Buffer>,
    pub neighbors: Option<gst::Buffer>,
    pub hierarchy: Option<gst::Buffer>,
}
