// SPDX-License-Identifier: MPL-2.0
//! Values that GStreamer's controller sets for a frame: one after the other, on the thread of the stream, though they are of one time.

use std::thread::{self, ThreadId};

use gst::glib;
use gst::prelude::*;

/// A property and its value.
pub(super) type Value = (glib::ParamSpec, glib::SendValue);

/// Collects them until all are there.
#[derive(Default)]
pub(super) struct Controlled {
    /// On which they come; nothing while none do.
    thread: Option<ThreadId>,
    values: Vec<Value>,
    /// What was refused of the last frame.
    refused: Option<String>,
}

impl Controlled {
    /// From here on, values that this thread sets are for one frame.
    pub fn begin(&mut self) {
        self.thread = Some(thread::current().id());
    }

    /// Keeps a value if it is for a frame, and says whether it is. Another thread sets one of its own.
    pub fn takes(&mut self, pspec: &glib::ParamSpec, value: &glib::Value) -> bool {
        if self.thread != Some(thread::current().id()) {
            return false;
        }
        // Controllable are numbers of these types.
        let whole = value.get::<u32>().map(|number| number.to_send_value());
        let Ok(number) = whole.or_else(|_| value.get::<f32>().map(|number| number.to_send_value())) else {
            return false;
        };
        self.values.push((pspec.clone(), number));
        true
    }

    /// All that came.
    pub fn end(&mut self) -> Vec<Value> {
        self.thread = None;
        std::mem::take(&mut self.values)
    }

    /// Takes note of what was refused of a frame; says whether it differs from that of the last.
    pub fn note(&mut self, refused: Option<&(&str, String)>) -> bool {
        let refused = refused.map(|(name, reason)| format!("{name}: {reason}"));
        let is_news = refused != self.refused;
        self.refused = refused;
        is_news
    }
}
