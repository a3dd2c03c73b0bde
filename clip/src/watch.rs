// SPDX-License-Identifier: MPL-2.0
//! Runs a pipeline to its end, with an eye on whether frames still come.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, mpsc};
use std::time::{Duration, Instant};

use gst::prelude::*;

use crate::fault::{Failure, Result};
use crate::session::Session;

/// How often it is looked whether frames come.
const TICK: gst::ClockTime = gst::ClockTime::from_mseconds(100);
/// How often progress is told.
const REPORT: Duration = Duration::from_secs(1);
/// Longest time that a pipeline may take to stop.
const STOP: Duration = Duration::from_secs(10);

/// Messages of streaming threads to the thread that watches.
#[derive(Debug, Default)]
pub struct Watch {
    frames: AtomicU64,
    others: AtomicU64,
    first: OnceLock<Instant>,
    failure: Mutex<Option<Failure>>,
}

impl Watch {
    /// Counts a frame that is done.
    pub fn count(&self) {
        self.first.get_or_init(Instant::now);
        self.frames.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a buffer of another stream, which shows that the clip is still being read.
    pub fn count_other(&self) {
        self.others.fetch_add(1, Ordering::Relaxed);
    }

    fn steps(&self) -> u64 {
        self.frames() + self.others.load(Ordering::Relaxed)
    }

    /// Frames that are done.
    pub fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }

    /// When the first frame was done.
    pub fn first(&self) -> Option<Instant> {
        self.first.get().copied()
    }

    /// Ends the run with a failure; the first counts.
    pub fn fail(&self, failure: Failure) {
        self.failure.lock().unwrap().get_or_insert(failure);
    }

    fn failure(&self) -> Result<()> {
        self.failure.lock().unwrap().take().map_or(Ok(()), Err)
    }
}

/// Plays until the end of the stream. `on_turn` sees every message first, and nothing where none came for a tenth of a second. After a failure the pipeline is left as it is: to stop
/// one that hangs would hang, too, and the program ends anyway.
///
/// # Errors
///
/// Waits for a report of the pipeline or a streaming thread, a stall, or a pipeline that does not stop.
pub fn run(
    pipeline: gst::Pipeline,
    watch: &Watch,
    stall: Duration,
    session: &mut Session,
    mut on_turn: impl FnMut(Option<&gst::Message>) -> Result<()>,
) -> Result<()> {
    if let Err(failure) = play(&pipeline, watch, stall, session, &mut on_turn) {
        std::mem::forget(pipeline);
        return Err(failure);
    }
    session.keep(&pipeline);
    stop(pipeline, STOP)
}

/// Stops a pipeline and lets go of it, on a thread that may hang.
fn stop(pipeline: gst::Pipeline, limit: Duration) -> Result<()> {
    let (tell, told) = mpsc::channel();
    let stopping = std::thread::spawn(move || {
        let result = pipeline.set_state(gst::State::Null).map(drop);
        drop(pipeline);
        let _ = tell.send(result);
    });
    let Ok(result) = told.recv_timeout(limit) else {
        return Err(Failure::hang(limit.as_secs_f64()));
    };
    let _ = stopping.join();
    result.map_err(|error| Failure::machine(error.to_string()))
}

fn play(
    pipeline: &gst::Pipeline,
    watch: &Watch,
    stall: Duration,
    session: &Session,
    on_turn: &mut dyn FnMut(Option<&gst::Message>) -> Result<()>,
) -> Result<()> {
    let bus = pipeline.bus().ok_or_else(|| Failure::machine("a pipeline without a bus"))?;
    let began = Instant::now();
    let (mut steps, mut last_step, mut last_report) = (0, began, began);
    if pipeline.set_state(gst::State::Playing).is_err() {
        // The reason is on the bus.
        let error = bus.pop_filtered(&[gst::MessageType::Error]);
        let reason = error.as_ref().and_then(|message| match message.view() {
            gst::MessageView::Error(error) => Some(Failure::of_pipeline(error)),
            _ => None,
        });
        return Err(reason.unwrap_or_else(|| Failure::machine("the pipeline does not start")));
    }
    loop {
        // Every message: one that is waited for by kind alone throws the others away.
        let message = bus.timed_pop(TICK);
        on_turn(message.as_ref())?;
        if let Some(message) = message {
            match message.view() {
                gst::MessageView::Error(error) => {
                    watch.failure()?;
                    return Err(Failure::of_pipeline(error));
                }
                gst::MessageView::Eos(_) => return watch.failure(),
                _ => {}
            }
        }
        watch.failure()?;
        let now = Instant::now();
        let done = watch.steps();
        if done != steps {
            (steps, last_step) = (done, now);
        } else if now - last_step > stall {
            return Err(Failure::stall(stall.as_secs_f64()));
        }
        if now - last_report >= REPORT {
            last_report = now;
            let seconds = (now - began).as_secs_f64();
            let frames = watch.frames();
            session.say(serde_json::json!({"event": "progress", "frames": frames, "seconds": seconds}));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn playing(sleep_us: u32) -> gst::Pipeline {
        gst::init().unwrap();
        let text = format!("fakesrc ! identity sleep-time={sleep_us} ! fakesink async=false");
        let pipeline = gst::parse::launch(&text).unwrap().downcast::<gst::Pipeline>().unwrap();
        pipeline.set_state(gst::State::Playing).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        pipeline
    }

    #[test]
    fn a_pipeline_that_does_not_stop_is_a_stall() {
        stop(playing(1), STOP).unwrap();
        // Its thread sleeps for longer than that.
        let failure = stop(playing(3_000_000), Duration::from_millis(100)).unwrap_err();
        assert!(failure.stalled, "{}", failure.message);
        assert_eq!(failure.status(), 74);
    }
}
