// SPDX-License-Identifier: MPL-2.0
//! The gate before the element: decides when a frame goes on, by pause, step and speed, and numbers it.
//!
//! It works in the streaming thread, between two frames: there it may send the last frame again, so that a paused picture
//! shows new settings, and may link elements anew.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use gst::prelude::*;

/// Slowest and fastest, against the clock of the source.
pub const SPEEDS: std::ops::RangeInclusive<f64> = 0.1..=8.0;
/// From this delay on frames follow the clock anew, instead of hurrying.
const LATE: Duration = Duration::from_millis(80);
/// How soon a viewer that comes is seen.
const LOOK: Duration = Duration::from_millis(100);

type Job = Box<dyn FnOnce() + Send>;
/// Returns true while viewers need something: frames, or drawings on them.
pub type Watched = Arc<dyn Fn() -> bool + Send + Sync>;

#[derive(Default)]
struct State {
    /// Frames wait.
    paused: bool,
    /// So many go on although others wait.
    allowed: u32,
    /// The last frame goes on once more.
    again: bool,
    /// Frames of before a seek are dropped.
    flushing: bool,
    /// All frames are dropped.
    closed: bool,
    /// A moment and the time of the frame that went on then.
    anchor: Option<(Instant, gst::ClockTime)>,
    jobs: Vec<Job>,
    last: Option<gst::Buffer>,
    position: Option<gst::ClockTime>,
}

/// Shared by the streaming thread and the player.
pub struct Gate {
    state: Mutex<State>,
    speed: Mutex<f64>,
    wake: Condvar,
    live: bool,
    watched: Watched,
    number: Arc<AtomicU64>,
}

impl Gate {
    /// `number` goes on counting where the gate before it has ended. The first frame goes on, paused and watched or not.
    pub fn new(live: bool, paused: bool, speed: f64, watched: Watched, number: Arc<AtomicU64>) -> Arc<Self> {
        let (state, speed) = (State { paused, allowed: 1, ..State::default() }, Mutex::new(speed));
        Arc::new(Self { state: Mutex::new(state), speed, wake: Condvar::new(), live, watched, number })
    }

    /// Lets all frames of a pad through this gate.
    pub fn guard(self: &Arc<Self>, pad: &gst::Pad) {
        let gate = self.clone();
        pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| match info.buffer_mut() {
            Some(buffer) => gate.pass(pad, buffer),
            None => gst::PadProbeReturn::Ok,
        });
        let gate = self.clone();
        pad.add_probe(gst::PadProbeType::EVENT_FLUSH, move |_, info| {
            if info.event().is_some_and(|event| event.type_() == gst::EventType::FlushStop) {
                gate.state.lock().unwrap().flushing = false;
            }
            gst::PadProbeReturn::Ok
        });
    }

    /// Pauses or goes on.
    pub fn pause(&self, paused: bool) {
        self.change(|state| (state.paused, state.anchor) = (paused, None));
    }

    /// Lets a number of frames through a gate that is paused.
    pub fn step(&self) {
        self.change(|state| state.allowed = (state.allowed + 1).min(4));
    }

    /// Sets the speed against the source's clock.
    pub fn set_speed(&self, speed: f64) {
        *self.speed.lock().unwrap() = speed;
        self.change(|state| state.anchor = None);
    }

    /// Sends the last frame again, if no other comes anyway.
    pub fn repeat(&self) {
        self.change(|state| state.again = state.paused);
    }

    /// Returns true if no job waits for the next frame.
    pub fn is_free(&self) -> bool {
        self.state.lock().unwrap().jobs.is_empty()
    }

    /// Runs `job` between two frames, while none is between the gate and the queue behind the element.
    pub fn between_frames(&self, job: impl FnOnce() + Send + 'static) {
        self.change(|state| state.jobs.push(Box::new(job)));
    }

    /// Drops what waits and what comes until the flush of a seek has passed; then a frame is shown, paused or not.
    pub fn before_seek(&self) {
        self.change(|state| {
            (state.flushing, state.allowed, state.anchor) = (true, 1, None);
            (state.last, state.again) = (None, false);
        });
    }

    /// After a seek, flush or not.
    pub fn after_seek(&self) {
        self.change(|state| state.flushing = false);
    }

    /// Time of the frame that went on last.
    pub fn position(&self) -> Option<gst::ClockTime> {
        self.state.lock().unwrap().position
    }

    /// Lets the streaming thread go, for good.
    pub fn close(&self) {
        self.change(|state| {
            state.closed = true;
            state.last = None;
            state.jobs.clear();
        });
    }

    fn change(&self, how: impl FnOnce(&mut State)) {
        how(&mut self.state.lock().unwrap());
        self.wake.notify_all();
    }

    /// Waits for the frame's turn.
    fn pass(&self, pad: &gst::Pad, buffer: &mut gst::Buffer) -> gst::PadProbeReturn {
        let mut state = self.state.lock().unwrap();
        loop {
            if state.closed || state.flushing {
                return gst::PadProbeReturn::Drop;
            }
            if !state.jobs.is_empty() {
                let jobs = std::mem::take(&mut state.jobs);
                drop(state);
                jobs.into_iter().for_each(|job| job());
                state = self.state.lock().unwrap();
                continue;
            }
            if std::mem::take(&mut state.again)
                && let Some(last) = state.last.clone()
            {
                drop(state);
                self.send_again(pad, last);
                state = self.state.lock().unwrap();
                continue;
            }
            if state.allowed > 0 {
                state.allowed -= 1;
                break;
            }
            if state.paused {
                state = self.wake.wait(state).unwrap();
                continue;
            }
            if !(self.watched)() {
                state.anchor = None;
                state = self.wake.wait_timeout(state, LOOK).unwrap().0;
                continue;
            }
            match self.wait_for(&mut state, buffer.pts()) {
                None => break,
                Some(time) => state = self.wake.wait_timeout(state, time).unwrap().0,
            }
        }
        self.number(buffer);
        state.last = Some(buffer.clone());
        state.position = buffer.pts();
        gst::PadProbeReturn::Ok
    }

    fn number(&self, buffer: &mut gst::Buffer) {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        buffer.make_mut().set_offset(number);
    }

    fn send_again(&self, pad: &gst::Pad, mut last: gst::Buffer) {
        self.number(&mut last);
        last.make_mut().unset_flags(gst::BufferFlags::DISCONT);
        if let Some(peer) = pad.peer() {
            // An error is on the bus.
            let _ = peer.chain(last);
        }
    }

    /// How long until a frame of this time is due; none where it is.
    fn wait_for(&self, state: &mut MutexGuard<'_, State>, pts: Option<gst::ClockTime>) -> Option<Duration> {
        let pts = pts.filter(|_| !self.live)?;
        let now = Instant::now();
        let &mut (start, first) = state.anchor.get_or_insert((now, pts));
        let speed = *self.speed.lock().unwrap();
        let offset = pts.saturating_sub(first).nseconds() as f64 / speed;
        let due = start + Duration::from_nanos(offset as u64);
        if now > due + LATE || pts < first {
            state.anchor = Some((now, pts));
        }
        due.checked_duration_since(now).filter(|time| !time.is_zero())
    }
}
