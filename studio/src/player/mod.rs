// SPDX-License-Identifier: MPL-2.0
//! Plays the source in a thread of its own and does what viewers ask for; the one owner of the pipeline.

mod gate;
mod graph;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use gst::prelude::*;
use serde_json::{Map, Value as Json};

pub use gate::SPEEDS;
use gate::{Gate, Watched};
pub use graph::Frame;
use graph::{Graph, Receive};

use crate::export::Exporter;
use crate::problem::Problem;
use crate::properties::{self, Described, Property};
use crate::script;
use crate::source::{Source, make};
use crate::state::{Request, Side, State};

/// Requests that may wait; more are refused.
const MOST_REQUESTS: usize = 256;
/// Frames after a change, of which one at least has come through the element.
const PROVEN: u64 = 6;
/// How often length and progress are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// How long a pipeline that is to seek may take to its first frame.
const START: gst::ClockTime = gst::ClockTime::from_seconds(5);

enum Event {
    Request(Request),
    Message(gst::Message),
    Stop,
}

/// Called with the whole state when something of it has changed.
pub type Tell = Box<dyn Fn(&State) + Send>;

/// What the player knows of those who look.
pub struct Viewers {
    /// Gets every frame.
    pub receive: Receive,
    /// Gets the state when something of it has changed.
    pub tell: Tell,
    /// Whether there is anybody; frames wait where not.
    pub watched: Watched,
}

/// A handle; dropping it stops the pipeline and waits for its threads.
pub struct Player {
    events: SyncSender<Event>,
    thread: Option<JoinHandle<()>>,
    source: Source,
    properties: Vec<Described>,
    /// What was set, of each side; the player's thread changes it.
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
        let (events, inbox) = sync_channel(MOST_REQUESTS);
        let state = State {
            source: source.name(),
            live: source.is_live(),
            seekable: false,
            duration: None,
            paused: false,
            speed: 1.0,
            compare: false,
            backend: String::new(),
            values: [properties::values(&model), properties::values(&model)],
            problem: None,
            export: None,
        };
        let properties = properties::describe(&model);
        let settings = Arc::new(Mutex::new([settings.clone(), settings]));
        let mut stage = Stage {
            source: source.clone(),
            settings: settings.clone(),
            before: None,
            model,
            properties: properties.clone(),
            state,
            graph: None,
            number: Arc::default(),
            viewers,
            exporter,
            events: events.clone(),
        };
        let thread = std::thread::Builder::new().name("player".into()).spawn(move || stage.run(&inbox));
        let thread = Some(thread.map_err(Problem::internal)?);
        Ok(Self { events, thread, source, properties, settings })
    }

    /// Every property that may be set.
    pub fn properties(&self) -> &[Described] {
        &self.properties
    }

    /// The pipeline that draws what a side gives, as text; `None` for an overlay that the element does not have.
    pub fn pipeline_text(&self, side: Side, overlay: &str) -> Option<String> {
        let element = make("superpixel").ok()?;
        properties::set_overlay(&element, overlay)?;
        for property in &self.settings.lock().unwrap()[side as usize] {
            property.apply(&element);
        }
        Some(script::pipeline(&self.source, &properties::changed(&element), overlay))
    }

    /// Passes a request on; `false` where too many wait.
    pub fn request(&self, request: Request) -> bool {
        self.events.try_send(Event::Request(request)).is_ok()
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        // A thread that has ended already is no failure.
        let _ = self.events.send(Event::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the thread of the player works on.
struct Stage {
    source: Source,
    /// What was set, of each side.
    settings: Settings,
    /// The same before changes that no frame has come through yet, and the number of the next frame then.
    before: Option<(u64, [Vec<Property>; 2])>,
    /// An element that never plays, to check values by.
    model: gst::Element,
    properties: Vec<Described>,
    state: State,
    graph: Option<Graph>,
    number: Arc<AtomicU64>,
    viewers: Viewers,
    exporter: Arc<Exporter>,
    events: SyncSender<Event>,
}

impl Stage {
    fn run(&mut self, inbox: &Receiver<Event>) {
        self.open(None);
        (self.viewers.tell)(&self.state);
        loop {
            let event = inbox.recv_timeout(LOOK);
            let before = self.state.clone();
            match event {
                Ok(Event::Request(request)) => {
                    if let Err(problem) = self.answer(request) {
                        self.state.problem = Some(problem);
                    }
                }
                Ok(Event::Message(message)) => self.hear(&message),
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => break,
            }
            self.look();
            if before != self.state {
                (self.viewers.tell)(&self.state);
            }
        }
        self.exporter.cancel();
        self.close();
    }

    fn close(&mut self) {
        if let Some(graph) = self.graph.take() {
            if let Some(bus) = graph.pipeline.bus() {
                bus.unset_sync_handler();
            }
            graph.stop();
        }
    }

    /// Builds the pipeline anew and plays from a position on.
    fn open(&mut self, from: Option<gst::ClockTime>) {
        self.close();
        let gate = {
            let State { live, paused, speed, .. } = self.state;
            Gate::new(live, paused, speed, self.viewers.watched.clone(), self.number.clone())
        };
        let [a, b] = self.settings();
        let settings = [Some(a.as_slice()), self.state.compare.then_some(b.as_slice())];
        match Graph::new(&self.source, gate, settings, self.viewers.receive.clone()) {
            Ok(graph) => {
                self.listen(&graph);
                // Only a pipeline that has a frame can seek; nobody sees that one. Where this fails, the bus has the reason.
                let _ = graph.pipeline.set_state(gst::State::Paused);
                let ready =
                    from.is_some() && graph.pipeline.state(START).0 == Ok(gst::StateChangeSuccess::Success);
                self.graph = Some(graph);
                if let Some(from) = from.filter(|_| ready) {
                    self.seek(from);
                }
                if let Some(graph) = &self.graph {
                    let _ = graph.pipeline.set_state(gst::State::Playing);
                }
            }
            Err(problem) => self.state.problem = Some(problem),
        }
    }

    /// Messages come into the thread's inbox, where they wait for their turn as requests do.
    fn listen(&self, graph: &Graph) {
        let events = self.events.clone();
        if let Some(bus) = graph.pipeline.bus() {
            bus.set_sync_handler(move |_, message| {
                use gst::MessageType as Type;
                if matches!(
                    message.type_(),
                    Type::Eos | Type::Error | Type::AsyncDone | Type::DurationChanged
                ) {
                    // Full of requests: the position of a clip that has ended is looked at again with the next.
                    let _ = events.try_send(Event::Message(message.clone()));
                }
                gst::BusSyncReply::Drop
            });
        }
    }

    fn hear(&mut self, message: &gst::Message) {
        use gst::MessageView as View;
        // One of a pipeline that was stopped.
        let Some(graph) = &self.graph else { return };
        let ours = message.src().is_some_and(|src| {
            src == graph.pipeline.upcast_ref::<gst::Object>() || src.has_as_ancestor(&graph.pipeline)
        });
        match message.view() {
            _ if !ours => {}
            View::Eos(_) if self.state.seekable => self.seek(gst::ClockTime::ZERO),
            View::Eos(_) => {
                self.state.problem =
                    Some(Problem::new("The stream has ended.", "Press “Try again” to open it once more."));
            }
            View::Error(error) => {
                let from_superpixel = graph.is_superpixel(error.src());
                let name = self.source.name();
                let problem =
                    Problem::of_error(&error.error(), error.debug().as_deref(), from_superpixel, &name);
                self.fail(problem, from_superpixel);
            }
            _ => {}
        }
    }

    /// After an error: with the settings of before, where they are the reason; else stopped until somebody tries again.
    fn fail(&mut self, problem: Problem, from_superpixel: bool) {
        let before = self.before.take().filter(|_| from_superpixel);
        let position = self.position();
        self.close();
        if let Some((_, before)) = before {
            *self.settings.lock().unwrap() = before;
            for side in Side::ALL {
                self.show_values(side);
            }
            self.open(position);
        }
        self.state.problem = Some(problem);
    }

    fn position(&self) -> Option<gst::ClockTime> {
        let graph = self.graph.as_ref().filter(|_| self.state.seekable)?;
        graph.gate.position().or_else(|| graph.pipeline.query_position())
    }

    /// Looks at what is not told by messages.
    fn look(&mut self) {
        let number = self.number.load(Ordering::Relaxed);
        self.before.take_if(|(changed, _)| *changed + PROVEN <= number);
        self.state.export = self.exporter.state();
        let Some(graph) = &self.graph else { return };
        let active: Option<String> =
            graph.element(Side::A).and_then(|element| element.property("active-backend"));
        let active = active.unwrap_or_default();
        if !active.is_empty() && active != self.state.backend {
            self.state.backend = active;
        }
        if self.state.duration.is_none() && !self.state.live {
            let duration = graph.pipeline.query_duration::<gst::ClockTime>().filter(|d| !d.is_zero());
            self.state.duration = duration.map(|d| d.nseconds() as f64 / 1e9);
            let mut query = gst::query::Seeking::new(gst::Format::Time);
            self.state.seekable = duration.is_some() && graph.pipeline.query(&mut query) && query.result().0;
        }
    }

    fn seek(&mut self, to: gst::ClockTime) {
        let Some(graph) = &self.graph else { return };
        graph.gate.before_seek();
        let flags = gst::SeekFlags::FLUSH | gst::SeekFlags::ACCURATE;
        let sought = graph.pipeline.seek_simple(flags, to);
        graph.gate.after_seek();
        if sought.is_err() {
            self.state.problem =
                Some(Problem::new("The source does not go to that position.", "Choose another one."));
        }
    }

    fn answer(&mut self, request: Request) -> Result<(), Problem> {
        let refused = |what: String| Problem::new(what, "Choose another value.");
        match request {
            Request::Seen { .. } => {}
            Request::Set { side, name, value } => {
                let property = properties::check_json(&self.model, &name, &value).map_err(refused)?;
                self.set(side, vec![property]);
            }
            Request::Apply { side, values } => {
                let all = self.defaults_with(&values).map_err(refused)?;
                self.set(side, all);
            }
            Request::Pause { on } => {
                self.state.paused = on;
                self.with_gate(|gate| gate.pause(on));
            }
            Request::Step {} => {
                self.state.paused = true;
                self.with_gate(|gate| {
                    gate.pause(true);
                    gate.step();
                });
            }
            Request::Speed { factor } => {
                let range = format!("Speeds are {} to {}.", SPEEDS.start(), SPEEDS.end());
                if !SPEEDS.contains(&factor) {
                    return Err(refused(range));
                }
                self.state.speed = factor;
                self.with_gate(|gate| gate.set_speed(factor));
            }
            Request::Seek { to } => {
                let end = self.state.duration.filter(|_| self.state.seekable);
                let end = end.ok_or_else(|| Problem::new("This source cannot seek.", "Let it play."))?;
                if !(0.0..=end).contains(&to) {
                    return Err(refused(format!("Positions are 0 to {end} seconds.")));
                }
                self.seek(gst::ClockTime::from_nseconds((to * 1e9) as u64));
            }
            Request::Compare { on } => self.compare(on)?,
            Request::Restart {} => {
                self.state.problem = None;
                let position = self.position();
                self.open(position);
            }
            Request::Export { side, overlay } => {
                let settings = &self.settings()[side as usize];
                self.exporter.start(&self.source, settings, &overlay)?;
            }
            Request::Cancel {} => self.exporter.cancel(),
        }
        Ok(())
    }

    fn settings(&self) -> [Vec<Property>; 2] {
        self.settings.lock().unwrap().clone()
    }

    fn with_gate(&self, how: impl FnOnce(&Gate)) {
        if let Some(graph) = &self.graph {
            how(&graph.gate);
        }
    }

    /// All properties: the given values, and the defaults of all others.
    fn defaults_with(&self, values: &Map<String, Json>) -> Result<Vec<Property>, String> {
        let unknown = values.keys().find(|name| self.properties.iter().all(|p| p.name != **name));
        if let Some(name) = unknown {
            return Err(format!("superpixel has no property {name} to set here."));
        }
        let value = |p: &Described| {
            properties::check_json(&self.model, &p.name, values.get(&p.name).unwrap_or(&p.default))
        };
        self.properties.iter().map(value).collect()
    }

    /// Sets properties of one side, and starts the pipeline again where one of them needs that.
    fn set(&mut self, side: Side, properties: Vec<Property>) {
        let old = self.settings();
        // What was refused before is tried again with other settings.
        let mut anew = self.graph.is_none();
        for property in properties {
            let name = &property.name;
            if self.state.values[side as usize].get(name) == Some(&property.value) {
                continue;
            }
            let playing = self.properties.iter().any(|p| p.name == *name && p.playing);
            match self.graph.as_ref().and_then(|graph| graph.element(side)) {
                Some(element) if playing => property.apply(element),
                Some(_) => anew = true,
                None => {}
            }
            let settings = &mut self.settings.lock().unwrap()[side as usize];
            settings.retain(|known| known.name != *name);
            settings.push(property);
        }
        self.show_values(side);
        self.state.problem = None;
        let number = self.number.load(Ordering::Relaxed);
        self.before.get_or_insert((number, old));
        if anew {
            let position = self.position();
            self.open(position);
        } else {
            self.with_gate(Gate::repeat);
        }
    }

    fn show_values(&mut self, side: Side) {
        let mut values: Map<String, Json> =
            self.properties.iter().map(|p| (p.name.clone(), p.default.clone())).collect();
        let settings = self.settings();
        values.extend(settings[side as usize].iter().map(|p| (p.name.clone(), p.value.clone())));
        self.state.values[side as usize] = values;
    }

    /// Adds or removes side b, between two frames.
    fn compare(&mut self, on: bool) -> Result<(), Problem> {
        if on == self.state.compare {
            return Ok(());
        }
        if let Some(graph) = &mut self.graph {
            let relink =
                if on { Some(graph.add_b(&self.settings.lock().unwrap()[1])?) } else { graph.remove_b() };
            if let Some(relink) = relink
                && !graph.gate.between_frames(move || relink.run())
            {
                return Err(Problem::new("Too much at once.", "Wait a moment."));
            }
        }
        self.state.compare = on;
        Ok(())
    }
}
