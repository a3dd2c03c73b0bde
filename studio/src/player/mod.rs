// SPDX-License-Identifier: MPL-2.0
//! Plays the source in a thread of its own and does what viewers ask for; the one owner of the pipeline.

mod drawing;
mod gate;
mod graph;
mod stage;
mod wanted;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use gate::SPEEDS;
use gate::Watched;
pub use graph::Frame;
use graph::Receive;
use stage::Stage;

use crate::export::Exporter;
use crate::problem::Problem;
use crate::properties::{self, Described, Property};
use crate::request::{Request, Side};
use crate::script::Pipeline;
use crate::source::{Source, make};
use crate::state::State;

/// Requests that may wait; more are refused.
const MOST_REQUESTS: usize = 256;
/// How long a player that is dropped waits for its thread.
const PATIENCE: Duration = Duration::from_secs(1);

enum Event {
    Request(Request),
    Message(gst::Message),
    Stop,
}

/// Called with the whole state when something of it has changed.
pub type Tell = Box<dyn Fn(&State) + Send>;

/// The player's view of its viewers.
pub struct Viewers {
    /// Gets every frame.
    pub receive: Receive,
    /// Gets the state when something of it has changed.
    pub tell: Tell,
    /// True while there are viewers; without them frames wait.
    pub watched: Watched,
    /// True while one of them looks at what only the element draws.
    pub drawn: Watched,
}

/// The way to the player's thread: what waits there, and whether it is to end.
#[derive(Default)]
struct Line {
    /// Requests that wait; messages of the pipeline are few, and none may be lost.
    waiting: AtomicUsize,
    stop: AtomicBool,
}

/// A handle; dropping it stops the pipeline.
pub struct Player {
    events: Sender<Event>,
    line: Arc<Line>,
    thread: Option<JoinHandle<()>>,
    source: Source,
    properties: Vec<Described>,
    /// Settings of each side; only the player's thread changes them.
    settings: Settings,
}

type Settings = Arc<Mutex<[Vec<Property>; 2]>>;

impl Player {
    /// Starts to play. Whatever goes wrong with the source is told in the state.
    ///
    /// # Errors
    ///
    /// An element that is missing, or a property of the command line that is refused.
    pub fn start(
        source: Source,
        arguments: &[String],
        viewers: Viewers,
        exporter: Arc<Exporter>,
    ) -> Result<Self, Problem> {
        let model = make("superpixel")?;
        properties::hold(&model);
        let mut settings = Vec::new();
        for text in arguments {
            let found = properties::check_text(&model, text)
                .map_err(|what| Problem::new(what, "gst-inspect-1.0 superpixel lists all properties."))?;
            found.apply(&model);
            settings.push(found);
        }
        let (events, inbox) = channel();
        let line = Arc::<Line>::default();
        let properties = properties::describe(&model);
        let settings = Arc::new(Mutex::new([settings.clone(), settings]));
        let mut stage =
            Stage::new(&source, model, settings.clone(), viewers, exporter, (events.clone(), line.clone()));
        let thread = std::thread::Builder::new().name("player".into()).spawn(move || stage.run(&inbox));
        let thread = Some(thread.map_err(Problem::internal)?);
        Ok(Self { events, line, thread, source, properties, settings })
    }

    /// Every property that may be set.
    pub fn properties(&self) -> &[Described] {
        &self.properties
    }

    /// The pipeline that draws what a side gives; `None` for an overlay that the element does not have.
    pub fn pipeline(&self, side: Side, overlay: &str) -> Option<Pipeline> {
        let element = make("superpixel").ok()?;
        properties::set_overlay(&element, overlay)?;
        for property in &self.settings.lock().unwrap()[side as usize] {
            property.apply(&element);
        }
        Some(Pipeline::new(&self.source, &properties::changed(&element), overlay))
    }

    /// Passes a request on; `false` where too many wait.
    pub fn request(&self, request: Request) -> bool {
        if self.line.waiting.fetch_add(1, Ordering::Relaxed) < MOST_REQUESTS
            && self.events.send(Event::Request(request)).is_ok()
        {
            return true;
        }
        self.line.waiting.fetch_sub(1, Ordering::Relaxed);
        false
    }

    /// Tells the thread to end: the request that it works on is its last.
    pub fn stop(&self) {
        self.line.stop.store(true, Ordering::Relaxed);
        // A thread that has ended already is no failure.
        let _ = self.events.send(Event::Stop);
    }

    /// Returns true if the thread has ended, and the pipeline with it.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.stop();
        let end = Instant::now() + PATIENCE;
        while !self.has_ended() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        // A pipeline that hangs is left behind.
        if let Some(thread) = self.thread.take().filter(JoinHandle::is_finished) {
            let _ = thread.join();
        }
    }
}
