// SPDX-License-Identifier: MPL-2.0
//! Buffers that cannot be used: each is dropped with a warning, and many in a row are an error.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use gst::prelude::*;
use gst_base::prelude::*;

use crate::video_map::Reason;

/// Bad buffers in a row that end a stream.
const MOST_IN_A_ROW: u32 = 10;

/// Shortest time between two warnings. A later warning counts the buffers in between.
const WARNING_INTERVAL: Duration = Duration::from_secs(1);

/// A failed buffer, and its effect on the stream.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Only this buffer is at fault; the next may be good.
    Buffer(Reason),
    /// No later buffer can succeed.
    Stream(gst::ErrorMessage),
}

impl From<Reason> for Failure {
    fn from(reason: Reason) -> Self {
        Self::Buffer(reason)
    }
}

impl From<gst::ErrorMessage> for Failure {
    fn from(message: gst::ErrorMessage) -> Self {
        Self::Stream(message)
    }
}

#[derive(Default)]
struct Counts {
    used: u64,
    dropped: u64,
    in_a_row: u32,
    /// Buffers dropped since the last warning.
    unreported: u64,
    reported: Option<Instant>,
    last: Option<Reason>,
}

/// The bad buffers of an element since it started.
#[derive(Default)]
pub(crate) struct BadBuffers(Mutex<Counts>);

impl BadBuffers {
    /// Resets all counters when the element starts.
    pub fn reset(&self) {
        *self.0.lock().unwrap() = Counts::default();
    }

    /// Counts a buffer that was used.
    pub fn note_used(&self) {
        let mut counts = self.0.lock().unwrap();
        counts.used += 1;
        counts.in_a_row = 0;
    }

    /// Buffers that were dropped since start.
    pub fn dropped(&self) -> u64 {
        self.0.lock().unwrap().dropped
    }

    /// Reports a failure. Returns `Ok` if the stream continues without the buffer.
    ///
    /// # Errors
    ///
    /// [`gst::FlowError::Error`] after an element error has been posted.
    pub fn handle(
        &self,
        element: &gst_base::BaseTransform,
        buffer: &gst::BufferRef,
        failure: Failure,
    ) -> Result<(), gst::FlowError> {
        let reason = match failure {
            Failure::Buffer(reason) => reason,
            Failure::Stream(message) => {
                element.post_error_message(message);
                return Err(gst::FlowError::Error);
            }
        };
        let text = format!("A buffer does not hold a frame that can be used: {reason}");
        let (given_up, report, processed, dropped) = {
            let mut counts = self.0.lock().unwrap();
            counts.dropped += 1;
            counts.in_a_row += 1;
            counts.unreported += 1;
            counts.last = Some(reason);
            let given_up = counts.in_a_row >= MOST_IN_A_ROW;
            if given_up {
                counts.in_a_row = 0;
            }
            let due = counts.reported.is_none_or(|last| last.elapsed() >= WARNING_INTERVAL);
            let report = due.then(|| {
                counts.reported = Some(Instant::now());
                std::mem::take(&mut counts.unreported)
            });
            (given_up, report, counts.used, counts.dropped)
        };
        if given_up {
            let text = format!("{text}; {MOST_IN_A_ROW} such buffers came in a row");
            element.post_error_message(gst::error_msg!(gst::StreamError::Format, ("{text}")));
            return Err(gst::FlowError::Error);
        }
        if let Some(count) = report {
            gst::element_warning!(element, gst::StreamError::Format, ("{text}; buffers dropped: {count}"));
            self.post_qos(element, buffer, processed, dropped);
        }
        Ok(())
    }

    /// Tells the application of a dropped frame, like sinks do for a late one.
    fn post_qos(&self, element: &gst_base::BaseTransform, buffer: &gst::BufferRef, used: u64, dropped: u64) {
        let segment = element.segment();
        let segment = segment.downcast_ref::<gst::ClockTime>();
        let message = gst::message::Qos::builder(false)
            .running_time(segment.and_then(|segment| segment.to_running_time(buffer.pts())))
            .stream_time(segment.and_then(|segment| segment.to_stream_time(buffer.pts())))
            .timestamp(buffer.pts())
            .duration(buffer.duration())
            .stats(gst::format::Buffers::from_u64(used), gst::format::Buffers::from_u64(dropped))
            .src(element)
            .build();
        // Posting fails before the element is in a pipeline, when there is no listener.
        let _ = element.post_message(message);
    }

    /// The error at the end of a stream of which no buffer could be used.
    pub fn at_end(&self) -> Option<gst::ErrorMessage> {
        let counts = self.0.lock().unwrap();
        let reason = counts.last.as_ref().filter(|_| counts.used == 0)?;
        Some(gst::error_msg!(
            gst::StreamError::Format,
            ("No buffer of the stream holds a frame that can be used: {reason}")
        ))
    }
}
