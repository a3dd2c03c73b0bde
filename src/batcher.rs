// SPDX-License-Identifier: MPL-2.0
//! Frames of several streams, each on a thread of its own, segmented side by side by one engine of a device.
//!
//! A stream hands its frame in and waits until all that are awaited have come, or for a bounded time. The last to come, or whose time is
//! over, launches what is there; then each takes its own results. The next batch begins when all have.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::buffers::DeviceResults;
use crate::cuda::{Cuda, DeviceFrame};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::params::{Drawing, Outputs};
use crate::plan::Plan;

/// Shortest silence after which a stream is not waited for.
const AWAITED: Duration = Duration::from_secs(1);

/// An engine that threads share.
pub struct Batcher {
    plan: Plan,
    cuda: Cuda,
    /// Longest that a frame waits for those of other streams.
    wait: Duration,
    round: Mutex<Round>,
    /// Told when frames come, a batch is launched, results are taken or a stream ends.
    changed: Condvar,
}

/// A frame that has been handed in.
struct Entry {
    stream: u32,
    frame: DeviceFrame<'static>,
    outputs: Outputs,
}

/// A stream that somebody has.
struct Seat {
    /// When it last handed a frame in.
    seen: Instant,
    /// Its frame is for a later batch than the one that is gathered.
    is_held: bool,
}

/// The batch that is being gathered, and the one before.
struct Round {
    engine: Engine<Cuda>,
    /// Streams that the engine has room for; none where nobody has taken it.
    seats: Vec<Option<Seat>>,
    waiting: Vec<Entry>,
    /// When the first of these came.
    began: Instant,
    /// Batches that were launched.
    launched: u64,
    /// A stream that has handed nothing in for so long is not waited for.
    awaited: Duration,
    /// Streams of the last one, in its order, and how it ended.
    last: Vec<u32>,
    failed: Option<String>,
    /// Streams that have not taken its results yet.
    unread: usize,
}

impl Batcher {
    /// Makes an engine with room for `streams` streams of one plan.
    ///
    /// # Errors
    ///
    /// As [`Engine::for_batch`].
    pub fn new(cuda: &Cuda, plan: &Plan, streams: u32, wait: Duration) -> Result<Arc<Self>> {
        let engine = Engine::for_batch(cuda, plan, streams)?;
        Ok(Arc::new(Self {
            plan: plan.clone(),
            cuda: engine.backend().clone(),
            wait,
            round: Mutex::new(Round {
                engine,
                seats: (0..streams).map(|_| None).collect(),
                waiting: Vec::with_capacity(streams as usize),
                began: Instant::now(),
                launched: 0,
                // What a frame waits for may come as late as the frame may go.
                awaited: AWAITED.max(wait),
                last: Vec::with_capacity(streams as usize),
                failed: None,
                unread: 0,
            }),
            changed: Condvar::new(),
        }))
    }

    /// The plan of all frames.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The device, with the stream that all batches are launched on.
    pub fn cuda(&self) -> &Cuda {
        &self.cuda
    }

    /// Longest that a frame waits for those of other streams.
    pub fn wait(&self) -> Duration {
        self.wait
    }

    /// Takes a stream of the engine, which begins anew; none if all are taken.
    pub fn join(self: &Arc<Self>) -> Option<Member> {
        let mut round = self.lock();
        let stream = round.seats.iter().position(Option::is_none)?;
        round.seats[stream] = Some(Seat { seen: Instant::now(), is_held: false });
        round.engine.reset_stream(stream as u32);
        Some(Member { batcher: self.clone(), stream: stream as u32, frames: AtomicU32::new(0) })
    }

    fn lock(&self) -> MutexGuard<'_, Round> {
        self.round.lock().unwrap()
    }
}

impl Round {
    /// Returns true if every stream that is awaited has handed its frame in.
    fn is_full(&self) -> bool {
        let awaited = |(stream, seat): (usize, &Option<Seat>)| {
            seat.as_ref().is_some_and(|seat| !seat.is_held && seat.seen.elapsed() < self.awaited)
                && self.waiting.iter().all(|entry| entry.stream as usize != stream)
        };
        !self.seats.iter().enumerate().any(awaited)
    }

    /// Returns true if a frame can go into the batch that is gathered: strides agree, and mean colors of all are of light or of codes.
    fn takes(&self, frame: &DeviceFrame<'_>, outputs: Outputs) -> bool {
        self.unread == 0
            && self.waiting.first().is_none_or(|first| {
                first.outputs.linear_light == outputs.linear_light
                    && DeviceFrame::of_batch(&[first.frame, *frame]).is_ok()
            })
    }

    fn seat(&mut self, stream: u32) -> &mut Seat {
        match &mut self.seats[stream as usize] {
            Some(seat) => seat,
            None => unreachable!("a member has its seat until it is dropped"),
        }
    }

    /// Launches what has been handed in.
    fn launch(&mut self) {
        self.waiting.sort_unstable_by_key(|entry| entry.stream);
        self.last.clear();
        self.last.extend(self.waiting.iter().map(|entry| entry.stream));
        let outputs = self.waiting.iter().fold(Outputs::default(), |all, entry| all.with(entry.outputs));
        let frames: Vec<_> = self.waiting.drain(..).map(|entry| entry.frame).collect();
        let mut submit = || {
            let batch = match self.engine.plan().temporal().is_some() {
                true => DeviceFrame::of_streams(&frames, &self.last)?,
                false => DeviceFrame::of_batch(&frames)?,
            };
            self.engine.submit(&batch, &mut None, outputs)
        };
        self.failed = submit().err().map(|error| error.to_string());
        self.unread = self.last.len();
        self.launched += 1;
    }
}

/// A stream of a [`Batcher`].
pub struct Member {
    batcher: Arc<Batcher>,
    stream: u32,
    /// Frames of the batch that its last one was in.
    frames: AtomicU32,
}

impl Member {
    /// The engine that it shares.
    pub fn batcher(&self) -> &Arc<Batcher> {
        &self.batcher
    }

    /// Frames of the batch that its last one was in.
    pub fn frames(&self) -> u32 {
        self.frames.load(Ordering::Relaxed)
    }

    /// Segments the stream's next frame together with those of others, draws on it, and gives its results to `take` while they are
    /// there: it puts copies on the stream of [`Batcher::cuda`]. Waits for other streams, not for the device.
    ///
    /// # Errors
    ///
    /// A frame that does not match the plan; errors of the device, which all frames of the batch get.
    pub fn submit<R>(
        &self,
        frame: &mut DeviceFrame<'_>,
        outputs: Outputs,
        drawing: Option<&Drawing>,
        take: impl FnOnce(&DeviceResults<'_>) -> Result<R>,
    ) -> Result<R> {
        let batcher = &*self.batcher;
        // A wrong frame would fail those of all others.
        batcher.plan.frame().check(frame.info())?;
        frame.check_context(&batcher.cuda)?;
        let mut round = batcher.lock();
        while !round.takes(frame, outputs) {
            // A frame that only waits until the last results are taken is still awaited.
            round.seat(self.stream).is_held = round.unread == 0;
            batcher.changed.notify_all();
            round = batcher.changed.wait(round).unwrap();
        }
        *round.seat(self.stream) = Seat { seen: Instant::now(), is_held: false };
        if round.waiting.is_empty() {
            round.began = Instant::now();
        }
        // SAFETY: `launch` removes the entry, and this call returns behind it only, so the frame is borrowed for as long.
        let shared = unsafe { std::mem::transmute::<DeviceFrame<'_>, DeviceFrame<'static>>(*frame) };
        round.waiting.push(Entry { stream: self.stream, frame: shared, outputs });
        let own = round.launched;
        batcher.changed.notify_all();
        while round.launched == own {
            let left = batcher.wait.saturating_sub(round.began.elapsed());
            if left.is_zero() || round.is_full() {
                round.launch();
                batcher.changed.notify_all();
            } else {
                round = batcher.changed.wait_timeout(round, left).unwrap().0;
            }
        }
        self.frames.store(round.last.len() as u32, Ordering::Relaxed);
        let taken = self.take_results(&mut round, frame, outputs, drawing, take);
        round.unread -= 1;
        if round.unread == 0 {
            batcher.changed.notify_all();
        }
        taken
    }

    fn take_results<R>(
        &self,
        round: &mut Round,
        on: &mut DeviceFrame<'_>,
        outputs: Outputs,
        drawing: Option<&Drawing>,
        take: impl FnOnce(&DeviceResults<'_>) -> Result<R>,
    ) -> Result<R> {
        if let Some(reason) = &round.failed {
            return Err(Error::Batch(reason.clone()));
        }
        let Ok(frame) = round.last.binary_search(&self.stream) else {
            return Err(Error::NotSegmented);
        };
        if let Some(drawing) = drawing {
            round.engine.draw_of(frame, on, drawing)?;
        }
        take(&round.engine.results_of(frame)?.for_outputs(outputs))
    }

    /// Discards the stream's frames before: the next one is segmented as if it were the first, with new identities.
    pub fn reset(&self) {
        self.batcher.lock().engine.reset_stream(self.stream);
    }

    /// The identity of the stream's next new region. Waits for the device.
    pub fn next_id(&self) -> Result<u32> {
        self.batcher.lock().engine.next_id_of(self.stream)
    }

    /// Sets the identity of the stream's next new region. Waits for the device.
    pub fn set_next_id(&self, id: u32) -> Result<()> {
        self.batcher.lock().engine.set_next_id_of(self.stream, id)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut round = self.batcher.round.lock().unwrap_or_else(PoisonError::into_inner);
        round.seats[self.stream as usize] = None;
        // The state of a stream that goes on would be copied with every batch that has no frame of it.
        round.engine.reset_stream(self.stream);
        drop(round);
        // Those who wait for its frame need not any more.
        self.batcher.changed.notify_all();
    }
}
