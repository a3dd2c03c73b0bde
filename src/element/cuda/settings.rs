// SPDX-License-Identifier: MPL-2.0
//! The parameters of the element that only a CUDA device uses.

use crate::parameter::{About, Range, parameters};

const CUDA_DEVICE_ID: Range<i32> = Range {
    about: About::new(
        "cuda-device-id",
        "CUDA device ID",
        "",
        "The device of the CUDA backend, as in GStreamer's own CUDA elements (-1 = first that works)",
    )
    .at_start(),
    min: -1,
    max: i32::MAX,
    default: -1,
};
const ASYNC_DEPTH: Range<u32> = Range {
    about: About::new(
        "async-depth",
        "Asynchronous depth",
        "frames",
        "Frames in flight on the GPU; each adds throughput and one frame of latency, and with {temporal=false} scratch memory \
         on the device",
    )
    .at_start(),
    min: 0,
    // Each frame in flight holds a buffer of the element before, which may have few.
    max: 4,
    default: 0,
};

/// Values of these properties.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::element) struct DeviceSettings {
    pub(super) cuda_device_id: i32,
    /// Frames that may be in flight; 0 = each is finished before the next.
    async_depth: u32,
}

impl Default for DeviceSettings {
    fn default() -> Self {
        Self { cuda_device_id: CUDA_DEVICE_ID.default, async_depth: ASYNC_DEPTH.default }
    }
}

parameters!(DeviceSettings {
    signed CUDA_DEVICE_ID => cuda_device_id;
    whole ASYNC_DEPTH => async_depth;
});

impl DeviceSettings {
    /// Most frames in flight.
    pub(in crate::element) fn depth(&self) -> usize {
        self.async_depth as usize
    }
}
