// SPDX-License-Identifier: MPL-2.0
//! Hands frames and states to viewers: each gets the newest there is when it has room, and never an older one. Knows how many
//! look at what only the element draws.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

use crate::encode::Message;

/// More viewers are refused.
pub const MOST_VIEWERS: usize = 32;

/// One for all viewers.
pub struct Hub {
    frame: watch::Sender<Option<Message>>,
    state: watch::Sender<Option<String>>,
    viewers: AtomicUsize,
    lookers: AtomicUsize,
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            frame: watch::Sender::new(None),
            state: watch::Sender::default(),
            viewers: AtomicUsize::new(0),
            lookers: AtomicUsize::new(0),
        }
    }
}

/// A viewer's place, free again when this is dropped.
pub struct Seat<'a> {
    hub: &'a Hub,
    looks: bool,
}

impl Seat<'_> {
    /// Notes whether the viewer looks at the element's own drawing.
    pub fn look(&mut self, on: bool) {
        match (std::mem::replace(&mut self.looks, on), on) {
            (false, true) => self.hub.lookers.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.hub.lookers.fetch_sub(1, Ordering::Relaxed),
            _ => return,
        };
    }

    /// Returns true if the viewer looks at the element's own drawing.
    pub fn looks(&self) -> bool {
        self.looks
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.look(false);
        self.hub.viewers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Hub {
    /// Shows a frame to all viewers.
    pub fn show(&self, message: Message) {
        self.frame.send_replace(Some(message));
    }

    /// Tells all viewers a state.
    pub fn tell(&self, state: String) {
        self.state.send_replace(Some(state));
    }

    /// The newest frame, and all that come.
    pub fn frames(&self) -> watch::Receiver<Option<Message>> {
        let mut receiver = self.frame.subscribe();
        receiver.mark_changed();
        receiver
    }

    /// The newest state, and all that come.
    pub fn states(&self) -> watch::Receiver<Option<String>> {
        let mut receiver = self.state.subscribe();
        receiver.mark_changed();
        receiver
    }

    /// A place for one more viewer, where there is one.
    pub fn seat(&self) -> Option<Seat<'_>> {
        let taken = self.viewers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |viewers| {
            (viewers < MOST_VIEWERS).then_some(viewers + 1)
        });
        // Not made where there is none: dropping it would free another's.
        taken.is_ok().then(|| Seat { hub: self, looks: false })
    }

    /// How many viewers there are.
    pub fn viewers(&self) -> usize {
        self.viewers.load(Ordering::Relaxed)
    }

    /// How many of them look at the element's own drawing.
    pub fn lookers(&self) -> usize {
        self.lookers.load(Ordering::Relaxed)
    }
}
