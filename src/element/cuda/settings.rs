// SPDX-License-Identifier: MPL-2.0
//! The parameters of the element that only a CUDA device uses.

use std::time::Duration;

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

const BATCH_GROUP: Range<u32> = Range {
    about: About::new(
        "batch-group",
        "Batch group",
        "",
        "Elements of a process with the same number segment their frames side by side on the GPU, where size, format and parameters agree; labels are the same (0 = each by itself)",
    )
    .at_start(),
    min: 0,
    max: u32::MAX,
    default: 0,
};
const BATCH_SIZE: Range<u32> = Range {
    about: About::new(
        "batch-size",
        "Batch size",
        "streams",
        "Streams that a group of {batch-group} has memory for; further ones begin a group of their own",
    )
    .at_start(),
    min: 1,
    max: 1024,
    default: 8,
};
const BATCH_WAIT: Range<u32> = Range {
    about: About::new(
        "batch-wait",
        "Batch wait",
        "ms",
        "Longest that a frame waits for those of other streams of its {batch-group}; adds as much latency",
    )
    .at_start(),
    min: 0,
    max: 10_000,
    default: 10,
};

/// Values of these properties.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::element) struct DeviceSettings {
    pub(super) cuda_device_id: i32,
    /// Frames that may be in flight; 0 = each is finished before the next.
    async_depth: u32,
    /// 0 for none.
    pub(super) batch_group: u32,
    pub(super) batch_size: u32,
    batch_wait: u32,
}

impl Default for DeviceSettings {
    fn default() -> Self {
        Self {
            cuda_device_id: CUDA_DEVICE_ID.default,
            async_depth: ASYNC_DEPTH.default,
            batch_group: BATCH_GROUP.default,
            batch_size: BATCH_SIZE.default,
            batch_wait: BATCH_WAIT.default,
        }
    }
}

parameters!(DeviceSettings {
    signed CUDA_DEVICE_ID => cuda_device_id;
    whole ASYNC_DEPTH => async_depth;
    whole BATCH_GROUP => batch_group;
    whole BATCH_SIZE => batch_size;
    whole BATCH_WAIT => batch_wait;
});

impl DeviceSettings {
    /// Longest that a frame waits for those of other streams.
    pub(in crate::element) fn wait(&self) -> Duration {
        Duration::from_millis(if self.batch_group == 0 { 0 } else { self.batch_wait.into() })
    }

    /// Most frames in flight.
    pub(in crate::element) fn depth(&self) -> usize {
        self.async_depth as usize
    }
}
