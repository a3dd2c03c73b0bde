// SPDX-License-Identifier: MPL-2.0
//! Takes what an element draws off its frames: the picture goes to viewers, and the frame goes on as it came.
//!
//! An element draws into the frame itself, which the second element and all other views need as it was. So a frame is kept
//! where it enters the element and put back where it leaves: picture and metadata are those of one frame, and nothing is
//! segmented twice.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::properties;

/// One for each element; clones share it.
#[derive(Clone, Default)]
pub struct Drawing(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    is_on: bool,
    /// Frames in the element, the oldest first: several where a device works on them.
    frames: VecDeque<gst::Buffer>,
}

impl Drawing {
    /// Lets an element draw, or no more. Between two frames only: what a frame is drawn with is decided where it enters.
    pub fn switch(&self, element: &gst::Element, on: bool) {
        properties::draw(element, on);
        self.0.lock().unwrap().is_on = on;
    }

    /// Keeps a frame that enters, where it will be drawn on.
    pub fn keep(&self, frame: &gst::Buffer) {
        let mut kept = self.0.lock().unwrap();
        if kept.is_on {
            kept.frames.push_back(frame.clone());
        }
    }

    /// Puts the frame that was kept in the place of the one that leaves, and returns that, where it was drawn on.
    pub fn take_off(&self, frame: &mut gst::Buffer) -> Option<gst::Buffer> {
        let mut kept = self.0.lock().unwrap();
        // Earlier ones were dropped on the way, by the element or a seek.
        kept.frames.retain(|own| own.offset() >= frame.offset());
        kept.frames.front().filter(|own| own.offset() == frame.offset())?;
        kept.frames.pop_front().map(|original| std::mem::replace(frame, original))
    }
}
