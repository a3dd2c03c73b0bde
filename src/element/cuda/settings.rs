// SPDX-License-Identifier: MPL-2.0
//! The element's properties that only a CUDA device uses.

use gst::glib;
use gst::prelude::*;

/// Most frames in flight: each holds a buffer of the upstream pool, which may have few.
const MOST_ASYNC: u32 = 4;

/// Values of these properties.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::element) struct DeviceSettings {
    pub(super) cuda_device_id: i32,
    /// Frames that may be in flight; 0 = each is finished before the next.
    async_depth: u32,
}

impl Default for DeviceSettings {
    fn default() -> Self {
        Self { cuda_device_id: -1, async_depth: 0 }
    }
}

impl DeviceSettings {
    /// Most frames in flight.
    pub(in crate::element) fn depth(&self) -> usize {
        self.async_depth as usize
    }

    /// Sets a property, whose type GObject has checked. Returns false if it is none of these.
    pub(in crate::element) fn set(&mut self, name: &str, value: &glib::Value) -> bool {
        match name {
            "cuda-device-id" => self.cuda_device_id = value.get().unwrap_or_default(),
            "async-depth" => self.async_depth = value.get::<u32>().unwrap_or_default().min(MOST_ASYNC),
            _ => return false,
        }
        true
    }

    /// Value of a property, if it is one of these.
    pub(in crate::element) fn get(&self, name: &str) -> Option<glib::Value> {
        Some(match name {
            "cuda-device-id" => self.cuda_device_id.to_value(),
            "async-depth" => self.async_depth.to_value(),
            _ => return None,
        })
    }

    /// Specifications of all these properties.
    pub(in crate::element) fn properties() -> Vec<glib::ParamSpec> {
        let default = Self::default();
        vec![
            glib::ParamSpecInt::builder("cuda-device-id")
                .nick("CUDA device ID")
                .blurb("The device of the CUDA backend, as in GStreamer's own CUDA elements (-1 = first that works)")
                .minimum(-1)
                .default_value(default.cuda_device_id)
                .mutable_ready()
                .build(),
            glib::ParamSpecUInt::builder("async-depth")
                .nick("Asynchronous depth")
                .blurb("Frames in flight on the GPU; each adds throughput and one frame of latency, and with temporal=false scratch memory on the device")
                .maximum(MOST_ASYNC)
                .default_value(default.async_depth)
                .mutable_ready()
                .build(),
        ]
    }
}
