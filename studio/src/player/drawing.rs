// SPDX-License-Identifier: MPL-2.0
//! Takes an element's drawing off its frames: the picture goes to viewers, and the frame goes on as it came.
//!
//! An element draws into the frame itself, which the second element and all other views need as it was. So a frame is kept
//! where it enters the element and put back where it leaves: picture and metadata are those of one frame, and nothing is
//! segmented twice.
//!
//! A paused picture is drawn again with new settings. No time passes then in which colors could ease, so `steadiness` is 0 for that
//! frame, and the viewers' value comes back behind it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use gst::prelude::*;

use crate::properties::{self, Property};

const STEADINESS: &str = "steadiness";

/// One for each element; clones share it.
#[derive(Clone, Default)]
pub struct Drawing(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    is_on: bool,
    /// Frames in the element, the oldest first: several where a device works on them.
    frames: VecDeque<gst::Buffer>,
    /// Time of the last frame.
    time: Option<gst::ClockTime>,
    /// The viewers' value of `steadiness`, while the element has 0.
    steadiness: Option<f32>,
}

impl Kept {
    fn restore(&mut self, element: &gst::Element) {
        if let Some(steadiness) = self.steadiness.take() {
            element.set_property(STEADINESS, steadiness);
        }
    }
}

impl Drawing {
    /// Lets an element draw, or stops it. Between two frames only: `keep` and the element have to agree on every frame.
    pub fn switch(&self, element: &gst::Element, on: bool) {
        properties::draw(element, on);
        self.0.lock().unwrap().is_on = on;
    }

    /// Keeps a frame that enters, where it will be drawn on.
    pub fn keep(&self, element: &gst::Element, frame: &gst::Buffer) {
        let mut kept = self.0.lock().unwrap();
        kept.restore(element);
        let is_again = frame.pts().is_some() && std::mem::replace(&mut kept.time, frame.pts()) == frame.pts();
        if !kept.is_on {
            return;
        }
        kept.frames.push_back(frame.clone());
        if is_again {
            kept.steadiness = Some(element.property(STEADINESS));
            element.set_property(STEADINESS, 0f32);
        }
    }

    /// Sets a property that may change while frames are drawn.
    pub fn apply(&self, element: &gst::Element, property: &Property) {
        self.with_settings(element, |element| property.apply(element));
    }

    /// Takes back settings that the element refuses, as [`properties::take_back_refused`].
    pub fn take_back_refused(&self, element: &gst::Element, wanted: &mut [Property]) -> Vec<String> {
        self.with_settings(element, |element| properties::take_back_refused(element, wanted))
    }

    /// Gives the element to `work` with the viewers' own settings.
    fn with_settings<R>(&self, element: &gst::Element, work: impl FnOnce(&gst::Element) -> R) -> R {
        let mut kept = self.0.lock().unwrap();
        kept.restore(element);
        work(element)
    }

    /// Puts the frame that was kept in the place of the one that leaves, and returns that, where it was drawn on.
    pub fn take_off(&self, element: &gst::Element, frame: &mut gst::Buffer) -> Option<gst::Buffer> {
        let mut kept = self.0.lock().unwrap();
        kept.restore(element);
        // Earlier ones were dropped on the way, by the element or a seek.
        kept.frames.retain(|own| own.offset() >= frame.offset());
        kept.frames.front().filter(|own| own.offset() == frame.offset())?;
        kept.frames.pop_front().map(|original| std::mem::replace(frame, original))
    }
}
