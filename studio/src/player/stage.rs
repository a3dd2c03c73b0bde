// SPDX-License-Identifier: MPL-2.0
//! The player's thread: answers requests and messages, and does what takes long when what came before it has been seen.
//!
//! Starting the pipeline, seeking, linking the second element and exporting only note what is wanted; [`Stage::work`]
//! does it once for all that ask, and no more often than a frame comes through in between. Requests of one viewer, as
//! many as it may send, so keep nobody from seeing frames.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use gst::prelude::*;
use serde_json::{Map, Value as Json};

use super::gate::{Gate, SPEEDS};
use super::graph::{Frame, Graph};
use super::wanted::{Gap, Wanted};
use super::{Event, Line, MOST_REQUESTS, Settings, Viewers};
use crate::export::{self, Exporter};
use crate::objects::{self, Marks, Moment};
use crate::problem::Problem;
use crate::properties::{self, Described, Property};
use crate::request::{FileKind, Place, Request, Side};
use crate::source::Source;
use crate::state::State;

/// Frames after a change, of which one at least has come through the element.
const PROVEN: u64 = 6;
/// How often length and progress are looked at, and the same where something waits to be done.
const LOOK: Duration = Duration::from_millis(100);
const SOON: Duration = Duration::from_millis(20);
/// Least time from one start of the pipeline to the next, and from one export to the next.
const APART: Duration = Duration::from_secs(1);
/// How long a pipeline that is to seek may take to its first frame.
const START: Duration = Duration::from_secs(5);

/// State of the player's thread.
pub struct Stage {
    source: Source,
    /// Settings of each side.
    settings: Settings,
    /// The last settings that a frame has passed with, and the number of the first frame after the change.
    before: Option<(u64, [Vec<Property>; 2])>,
    /// An element that never plays, to check values by.
    model: gst::Element,
    properties: Vec<Described>,
    state: State,
    marks: Marks,
    /// The object that was marked last, until it is found or not.
    marked: Option<u8>,
    graph: Option<Graph>,
    /// Of the next frame.
    number: Arc<AtomicU64>,
    /// One more than that of the last frame that viewers got.
    shown: Arc<AtomicU64>,
    wanted: Wanted,
    opened: Option<Gap>,
    sought: Option<Gap>,
    exported: Option<Instant>,
    viewers: Viewers,
    exporter: Arc<Exporter>,
    events: Sender<Event>,
    line: Arc<Line>,
}

impl Stage {
    /// Plays nothing yet. `model` has the settings of both sides.
    pub fn new(
        source: &Source,
        model: gst::Element,
        settings: Settings,
        viewers: Viewers,
        exporter: Arc<Exporter>,
        (events, line): (Sender<Event>, Arc<Line>),
    ) -> Self {
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
            objects: Vec::new(),
        };
        let shown = Arc::<AtomicU64>::default();
        let (received, receive) = (shown.clone(), viewers.receive.clone());
        let receive = Arc::new(move |frame: Frame| {
            let next = frame.number + 1;
            receive(frame);
            received.fetch_max(next, Ordering::Relaxed);
        });
        Self {
            source: source.clone(),
            settings,
            before: None,
            properties: properties::describe(&model),
            model,
            state,
            marks: Marks::default(),
            marked: None,
            graph: None,
            number: Arc::default(),
            shown,
            wanted: Wanted::default(),
            opened: None,
            sought: None,
            exported: None,
            viewers: Viewers { receive, ..viewers },
            exporter,
            events,
            line,
        }
    }

    /// Plays until the player is to stop.
    pub fn run(&mut self, inbox: &Receiver<Event>) {
        self.open(None);
        (self.viewers.tell)(&self.state);
        while !self.is_stopped() {
            let first = match inbox.recv_timeout(if self.wants() { SOON } else { LOOK }) {
                Ok(event) => Some(event),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let before = self.state.clone();
            // Handles all waiting events together, so that their effects are applied once.
            for event in first.into_iter().chain(inbox.try_iter()).take(MOST_REQUESTS) {
                if self.is_stopped() {
                    break;
                }
                self.handle(event);
            }
            self.work();
            self.look();
            if before != self.state {
                (self.viewers.tell)(&self.state);
            }
        }
        self.exporter.cancel();
        self.close();
    }

    fn is_stopped(&self) -> bool {
        self.line.stop.load(Ordering::Relaxed)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Request(request) => {
                self.line.waiting.fetch_sub(1, Ordering::Relaxed);
                if let Err(problem) = self.answer(request) {
                    self.state.problem = Some(problem);
                }
            }
            Event::Message(message) => self.hear(&message),
            Event::Stop => {}
        }
    }

    fn wants(&self) -> bool {
        let Wanted { anew, position, export } = &self.wanted;
        *anew || position.is_some() || export.is_some() || self.is_unlinked() || self.is_undrawn()
    }

    /// Returns true if side b has to be linked or unlinked.
    fn is_unlinked(&self) -> bool {
        self.graph.as_ref().is_some_and(|graph| graph.element(Side::B).is_some() != self.state.compare)
    }

    /// Returns true if elements have to begin to draw, or to end.
    fn is_undrawn(&self) -> bool {
        self.graph.as_ref().is_some_and(|graph| graph.draws() != (self.viewers.drawn)())
    }

    fn next_number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    /// Notes which gaps are over.
    fn watch(&mut self) {
        let shown = self.shown.load(Ordering::Relaxed);
        [&mut self.opened, &mut self.sought].into_iter().flatten().for_each(|gap| gap.watch(shown));
    }

    /// Does what was asked for, where it is time.
    fn work(&mut self) {
        if self.is_stopped() {
            return;
        }
        self.watch();
        if self.wanted.anew {
            // A pipeline that has failed already gives no frames.
            let is_over =
                |gap: &Gap| gap.is_over(3, APART) || self.graph.is_none() && gap.is_older_than(APART);
            if self.opened.as_ref().is_none_or(is_over) {
                self.wanted.anew = false;
                let position = self.wanted.position.take().or_else(|| self.position());
                self.open(position);
            }
        } else if self.sought.as_ref().is_none_or(|gap| gap.is_over(1, Duration::ZERO))
            && let Some(to) = self.wanted.position.take()
        {
            self.seek(to);
        }
        if self.is_unlinked()
            && let Err(problem) = self.link()
        {
            self.state.problem = Some(problem);
            self.state.compare = false;
        }
        self.draw();
        if self.exported.is_none_or(|at| at.elapsed() >= APART)
            && let Some(order) = self.wanted.export.take()
        {
            let settings = &self.settings()[order.side as usize];
            if let Err(problem) = self.exporter.start(&self.source, settings, &self.marks, &order) {
                self.state.problem = Some(problem);
            }
            self.exported = Some(Instant::now());
        }
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
        let began = Instant::now();
        self.close();
        let number = self.next_number();
        if let Some((changed, _)) = &mut self.before {
            *changed = number;
        }
        let gate = {
            let State { live, paused, speed, .. } = self.state;
            Gate::new(live, paused, speed, self.viewers.watched.clone(), self.number.clone())
        };
        let [a, b] = self.settings();
        let settings = [Some(a.as_slice()), self.state.compare.then_some(b.as_slice())];
        let draws = (self.viewers.drawn)();
        let receive = self.viewers.receive.clone();
        match Graph::new(&self.source, gate, settings, &self.marks, draws, receive) {
            Ok(graph) => {
                self.listen(&graph);
                // Only a pipeline with a frame can seek; nobody sees that one. If this fails, the bus has the reason.
                let _ = graph.pipeline.set_state(gst::State::Paused);
                let ready = from.is_some() && self.is_ready(&graph.pipeline);
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
        self.opened = Some(Gap::new(began, number));
    }

    /// Waits for the first frame.
    fn is_ready(&self, pipeline: &gst::Pipeline) -> bool {
        let end = Instant::now() + START;
        while Instant::now() < end && !self.is_stopped() {
            match pipeline.state(gst::ClockTime::from_mseconds(50)).0 {
                Ok(gst::StateChangeSuccess::Async) => {}
                result => return result == Ok(gst::StateChangeSuccess::Success),
            }
        }
        false
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
                    // A player that has ended hears none.
                    let _ = events.send(Event::Message(message.clone()));
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
                let debug = error.debug();
                let problem =
                    Problem::of_error(&error.error(), debug.as_deref(), from_superpixel, &self.source);
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
            (self.wanted.anew, self.wanted.position) = (true, position);
        }
        self.state.problem = Some(problem);
    }

    fn position(&self) -> Option<gst::ClockTime> {
        let graph = self.graph.as_ref().filter(|_| self.state.seekable)?;
        graph.gate.position().or_else(|| graph.pipeline.query_position())
    }

    /// Looks at what is not told by messages.
    fn look(&mut self) {
        let number = self.next_number();
        // Not while the pipeline that has them is still to come.
        self.before.take_if(|(changed, _)| !self.wanted.anew && *changed + PROVEN <= number);
        self.state.export = self.exporter.state();
        self.look_for_marked();
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
        let began = Instant::now();
        graph.gate.before_seek();
        let number = self.next_number();
        let flags = gst::SeekFlags::FLUSH | gst::SeekFlags::ACCURATE;
        let sought = graph.pipeline.seek_simple(flags, to);
        graph.gate.after_seek();
        self.sought = Some(Gap::new(began, number));
        if sought.is_err() {
            self.state.problem =
                Some(Problem::new("The source does not go to that position.", "Choose another one."));
        }
    }

    fn answer(&mut self, request: Request) -> Result<(), Problem> {
        let refused = |what: String| Problem::new(what, "Choose another value.");
        match request {
            // The viewer's connection has noted it, and `work` sees it.
            Request::Seen { .. } | Request::Look { .. } => {}
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
                self.wanted.position = Some(gst::ClockTime::from_nseconds((to * 1e9) as u64));
            }
            Request::Compare { on } => self.state.compare = on,
            Request::Restart {} => {
                self.state.problem = None;
                self.wanted.anew = true;
            }
            Request::Export { side, overlay, kind } => {
                if let (FileKind::Objects, Some(graph)) = (kind, &self.graph) {
                    graph.follower.size()?;
                }
                self.wanted.export = Some(export::Order { side, overlay, kind });
            }
            Request::Cancel {} => {
                self.wanted.export = None;
                self.exporter.cancel();
            }
            Request::Mark { object, time, place } => self.mark(object, time, place)?,
            Request::Forget { object } => {
                if !self.marks.remove(object) {
                    return Err(refused(format!("There is no object {object}.")));
                }
                self.follow();
                self.with_gate(Gate::repeat);
            }
        }
        Ok(())
    }

    /// Marks an object in the frame of a time, and shows it there.
    fn mark(&mut self, object: Option<u8>, time: f64, place: Place) -> Result<(), Problem> {
        let absent = || Problem::new("There is no picture yet.", "Wait for the first one.");
        let time = objects::time_of(time).ok_or_else(|| {
            Problem::new("That is no time of a picture.", "Use the time that its head has.")
        })?;
        let graph = self.graph.as_ref().ok_or_else(absent)?;
        let size = graph.follower.size()?;
        let is_there = self.state.paused && graph.follower.is_at(time);
        if !is_there && !self.state.seekable {
            let what = "The picture has gone on, and this source does not go back.";
            return Err(Problem::new(what, "Pause, then mark the object."));
        }
        let end = self.state.duration.map(|end| (end * 1e9) as u64);
        if !is_there && end.is_some_and(|end| time.nseconds() > end) {
            return Err(Problem::new(
                "The source ends before that time.",
                "Use the time of a picture of it.",
            ));
        }
        self.marked = Some(self.marks.add(object, place, Moment { size, time })?);
        self.state.problem = None;
        self.follow();
        if is_there {
            self.with_gate(Gate::repeat);
        } else {
            self.wanted.position = Some(time);
        }
        Ok(())
    }

    /// Tells whoever has marked something in which no object was found. A new object is not kept then.
    fn look_for_marked(&mut self) {
        let found = self.marked.and_then(|id| Some((id, self.graph.as_ref()?.follower.is_found(id)?)));
        let Some((id, is_found)) = found else { return };
        self.marked = None;
        if is_found {
            return;
        }
        self.state.problem = Some(Problem::new(
            "No object was found there.",
            "Draw a box closely around a thing, or click into it.",
        ));
        if self.marks.count(id) == 1 {
            self.marks.remove(id);
            self.follow();
        }
    }

    /// Gives the marks to whoever needs them.
    fn follow(&mut self) {
        self.state.objects = self.marks.list();
        if let Some(graph) = &self.graph {
            graph.follower.set(&self.marks);
        }
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
        // Settings that were refused may succeed with other ones.
        let mut anew = self.graph.is_none();
        for property in properties {
            let name = &property.name;
            if self.state.values[side as usize].get(name) == Some(&property.value) {
                continue;
            }
            let playing = self.properties.iter().any(|p| p.name == *name && p.playing);
            match self.graph.as_ref().filter(|graph| graph.element(side).is_some()) {
                Some(graph) if playing => graph.apply(side, &property),
                Some(_) => anew = true,
                None => {}
            }
            let settings = &mut self.settings.lock().unwrap()[side as usize];
            settings.retain(|known| known.name != *name);
            settings.push(property);
        }
        self.state.problem = if anew { None } else { self.take_back_refused(side) };
        self.show_values(side);
        let number = self.next_number();
        self.before.get_or_insert((number, old));
        if anew {
            self.wanted.anew = true;
        } else {
            self.with_gate(Gate::repeat);
        }
    }

    /// Takes back the value that a side's element refuses in combination with its other settings.
    fn take_back_refused(&self, side: Side) -> Option<Problem> {
        let settings = &mut self.settings.lock().unwrap()[side as usize];
        let refused = self.graph.as_ref()?.take_back_refused(side, settings)?;
        let what = format!("The element superpixel refused {}.", refused.join(", "));
        let advice = "It does not go together with another setting; switch that one off first.";
        (!refused.is_empty()).then(|| Problem::new(what, advice))
    }

    fn show_values(&mut self, side: Side) {
        let mut values: Map<String, Json> =
            self.properties.iter().map(|p| (p.name.clone(), p.default.clone())).collect();
        let settings = self.settings();
        // Without what the command line alone sets.
        let settings =
            settings[side as usize].iter().filter(|p| self.properties.iter().any(|d| d.name == p.name));
        values.extend(settings.map(|p| (p.name.clone(), p.value.clone())));
        self.state.values[side as usize] = values;
    }

    /// Adds or removes side b, between two frames.
    fn link(&mut self) -> Result<(), Problem> {
        let Some(graph) = self.graph.as_mut().filter(|graph| graph.gate.is_free()) else { return Ok(()) };
        let relink = if self.state.compare {
            Some(graph.add_b(&self.settings.lock().unwrap()[1])?)
        } else {
            graph.remove_b()
        };
        if let Some(relink) = relink {
            graph.gate.between_frames(move || relink.run());
            graph.gate.repeat();
        }
        Ok(())
    }

    /// Lets elements draw where somebody looks, between two frames.
    fn draw(&mut self) {
        let is_wanted = (self.viewers.drawn)();
        let Some(graph) = self.graph.as_mut().filter(|graph| graph.gate.is_free()) else { return };
        if graph.draws() == is_wanted {
            return;
        }
        let switch = graph.draw(is_wanted);
        graph.gate.between_frames(switch);
        // A paused picture without its drawing is on show already.
        if is_wanted {
            graph.gate.repeat();
        }
    }
}
