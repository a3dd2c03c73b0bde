// SPDX-License-Identifier: MPL-2.0
//! Slow work that viewers request: requests are merged into one, and repeated only after frames were seen in between.

use std::time::{Duration, Instant};

use crate::export;

/// How long a frame after a start or a seek is waited for, before the next.
const SHOWN: Duration = Duration::from_secs(10);

/// Requests that are waiting.
#[derive(Default)]
pub struct Wanted {
    /// The pipeline built anew.
    pub anew: bool,
    /// Another position.
    pub position: Option<gst::ClockTime>,
    /// A file of the whole source.
    pub export: Option<export::Order>,
}

/// A start or a seek, from which on viewers see nothing until its first frame.
pub struct Gap {
    began: Instant,
    ended: Instant,
    /// Of the first frame after it.
    number: u64,
    /// From its begin until viewers got a frame.
    took: Option<Duration>,
}

impl Gap {
    /// One that began then, has been worked on until now, and is open until frame `number` or a later one was shown.
    pub fn new(began: Instant, number: u64) -> Self {
        Self { began, ended: Instant::now(), number, took: None }
    }

    /// Notes how long it took, where frames before `shown` have been shown.
    pub fn watch(&mut self, shown: u64) {
        if self.took.is_none() && shown > self.number {
            self.took = Some(self.began.elapsed());
        }
    }

    /// Returns true if the last work ended at least `time` ago.
    pub fn is_older_than(&self, time: Duration) -> bool {
        self.ended.elapsed() >= time
    }

    /// Returns true if the next work may begin: viewers have seen frames for `times` as long as the last one took, and
    /// for at least `least`.
    pub fn is_over(&self, times: u32, least: Duration) -> bool {
        match self.took {
            Some(took) => self.began.elapsed() >= took + least.max(took * times),
            None => self.ended.elapsed() >= SHOWN,
        }
    }
}
