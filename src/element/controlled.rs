// SPDX-License-Identifier: MPL-2.0
//! Values that GStreamer's controller sets for a frame: they arrive one by one on the streaming thread, but hold for
//! the same time.

use std::thread::{self, ThreadId};

use gst::glib;
use gst::prelude::*;

/// A property and its value.
pub(super) type Value = (glib::ParamSpec, glib::SendValue);

/// Collects the values of one time, so that they can be set together.
#[derive(Default)]
pub(super) struct Controlled {
    /// The thread that sets values for a frame; `None` between frames.
    thread: Option<ThreadId>,
    values: Vec<Value>,
    /// Message about the last frame's refused values.
    refused: Option<String>,
}

impl Controlled {
    /// Starts a frame: from here on, values that this thread sets belong to it.
    pub fn begin(&mut self) {
        self.thread = Some(thread::current().id());
    }

    /// Stores a value if it belongs to a frame, and returns true if so. Other threads set values of their own.
    pub fn takes(&mut self, pspec: &glib::ParamSpec, value: &glib::Value) -> bool {
        if self.thread != Some(thread::current().id()) {
            return false;
        }
        // All controllable properties are of these types.
        let whole = value.get::<u32>().map(|number| number.to_send_value());
        let Ok(number) = whole.or_else(|_| value.get::<f32>().map(|number| number.to_send_value())) else {
            return false;
        };
        self.values.push((pspec.clone(), number));
        true
    }

    /// Ends a frame and returns its values.
    pub fn end(&mut self) -> Vec<Value> {
        self.thread = None;
        std::mem::take(&mut self.values)
    }

    /// Stores the message about a frame's refused values. Returns true if it differs from the last frame's.
    pub fn note(&mut self, refused: Option<&(&str, String)>) -> bool {
        let refused = refused.map(|(name, reason)| format!("{name}: {reason}"));
        let is_news = refused != self.refused;
        self.refused = refused;
        is_news
    }
}
