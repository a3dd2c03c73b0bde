// SPDX-License-Identifier: MPL-2.0
//! The pipeline: source, gate, one or two elements `superpixel`, and an `appsink` that gives whole frames.
//!
//! ```text
//! source ! queue ! (gate) ! superpixel a ! superpixelobjects [! superpixel b] ! queue ! appsink
//! ```
//!
//! Two elements stand in a row, so that both see the same frame; each one's metadata is read where it leaves, that of a behind
//! the element that follows objects on it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use gst::prelude::*;

use super::drawing::Drawing;
use super::gate::Gate;
use crate::objects::{Followed, Follower, Marks};
use crate::problem::Problem;
use crate::properties::{self, Property};
use crate::request::Side;
use crate::segmentation::Segmentation;
use crate::source::{Source, make};

/// A frame with what one or two elements said about it.
pub struct Frame {
    /// Its number, one higher than that of the frame before.
    pub number: u64,
    /// Picture and caps.
    pub sample: gst::Sample,
    /// One or two, in the order of their sides.
    pub sides: Vec<Segmentation>,
}

/// Receiver of complete frames.
pub type Receive = Arc<dyn Fn(Frame) + Send + Sync>;

/// Segmentations whose frame has not reached the sink. As many frames as queue and sink hold, and some more.
type Waiting = Arc<Mutex<VecDeque<(u64, Segmentation)>>>;
const MOST_WAITING: usize = 16;

/// The pipeline with what the player works on.
pub struct Graph {
    /// Its bus has the errors.
    pub pipeline: gst::Pipeline,
    /// Before the elements.
    pub gate: Arc<Gate>,
    /// Follows what viewers have marked.
    pub follower: Follower,
    a: Drawer,
    b: Option<Drawer>,
    after: gst::Element,
    waiting: Waiting,
    draws: bool,
}

/// An element with what it draws.
#[derive(Clone)]
struct Drawer {
    element: gst::Element,
    drawing: Drawing,
}

impl Graph {
    /// Builds what plays `source`, stopped. Without settings of side b there is one element. With `draws` they draw from the first
    /// frame on.
    ///
    /// # Errors
    ///
    /// If an element is missing; the message names it.
    pub fn new(
        source: &Source,
        gate: Arc<Gate>,
        settings: [Option<&[Property]>; 2],
        marks: &Marks,
        draws: bool,
        receive: Receive,
    ) -> Result<Self, Problem> {
        let pipeline = gst::Pipeline::new();
        let first = source.add_to(&pipeline)?;
        let before = make("queue")?;
        before.set_property("max-size-buffers", 3u32);
        before.set_property("max-size-bytes", 0u32);
        before.set_property("max-size-time", 0u64);
        if source.is_live() {
            before.set_property_from_str("leaky", "downstream");
        }
        let after = make("queue")?;
        after.set_property("max-size-buffers", 1u32);
        after.set_property("max-size-bytes", 0u32);
        after.set_property("max-size-time", 0u64);
        let waiting = Waiting::default();
        let sink = gst_app::AppSink::builder().sync(false).max_buffers(1).build();
        let elements = waiting.clone();
        sink.set_callbacks(
            gst_app::AppSinkCallbacks::builder()
                .new_sample(move |sink| {
                    let sample = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?;
                    if let Some(frame) = whole(sample, &elements) {
                        receive(frame);
                    }
                    Ok(gst::FlowSuccess::Ok)
                })
                .build(),
        );
        // Weak, because the gate has the last frame, and its pads belong to the pipeline that this closure is in.
        let again = Arc::downgrade(&gate);
        let again = move || {
            if let Some(gate) = again.upgrade() {
                gate.repeat();
            }
        };
        let follower = Follower::new(marks.clone(), again)?;
        let a = Drawer::new(settings[0].unwrap_or_default(), draws, &waiting, Some(&follower))?;
        let objects = follower.element();
        pipeline
            .add_many([&before, &a.element, objects, &after, sink.upcast_ref()])
            .map_err(Problem::internal)?;
        gst::Element::link_many([&first, &before, &a.element, objects, &after, sink.upcast_ref()])
            .map_err(Problem::internal)?;
        gate.guard(&before.static_pad("src").ok_or_else(|| Problem::internal("a queue without a pad"))?);
        let mut graph = Self { pipeline, gate, follower, a, b: None, after, waiting, draws };
        if let Some(settings) = settings[1] {
            graph.add_b(settings)?.run();
        }
        Ok(graph)
    }

    fn drawer(&self, side: Side) -> Option<&Drawer> {
        match side {
            Side::A => Some(&self.a),
            Side::B => self.b.as_ref(),
        }
    }

    /// The element of a side.
    pub fn element(&self, side: Side) -> Option<&gst::Element> {
        self.drawer(side).map(|drawer| &drawer.element)
    }

    /// Sets a property of a side that may change from frame to frame.
    pub fn apply(&self, side: Side, property: &Property) {
        if let Some(Drawer { element, drawing }) = self.drawer(side) {
            drawing.apply(element, property);
        }
    }

    /// Takes back settings that a side's element refuses, as [`properties::take_back_refused`]. `None` where there is no such element.
    pub fn take_back_refused(&self, side: Side, wanted: &mut [Property]) -> Option<Vec<String>> {
        let Drawer { element, drawing } = self.drawer(side)?;
        Some(drawing.take_back_refused(element, wanted))
    }

    /// Returns true if a message of the bus comes from one of the elements `superpixel`.
    pub fn is_superpixel(&self, source: Option<&gst::Object>) -> bool {
        Side::ALL.iter().filter_map(|side| self.element(*side)).any(|e| source == Some(e.upcast_ref()))
    }

    /// Returns true if the elements draw, or will from the next frame on.
    pub fn draws(&self) -> bool {
        self.draws
    }

    /// Lets the elements draw, or no more, once the returned change has run between two frames.
    pub fn draw(&mut self, on: bool) -> impl FnOnce() + Send + use<> {
        self.draws = on;
        let drawers = [Some(self.a.clone()), self.b.clone()];
        move || drawers.iter().flatten().for_each(|drawer| drawer.drawing.switch(&drawer.element, on))
    }

    /// Makes the second element; it takes part once the returned change has run between two frames.
    pub fn add_b(&mut self, settings: &[Property]) -> Result<Relink, Problem> {
        let b = Drawer::new(settings, self.draws, &self.waiting, None)?;
        let element = b.element.clone();
        self.b = Some(b);
        Ok(self.relink(element, true))
    }

    /// Takes the second element out, as [`Self::add_b`].
    pub fn remove_b(&mut self) -> Option<Relink> {
        let b = self.b.take()?;
        Some(self.relink(b.element, false))
    }

    fn relink(&self, b: gst::Element, add: bool) -> Relink {
        let (pipeline, from) = (self.pipeline.clone(), self.follower.element().clone());
        Relink { pipeline, from, to: self.after.clone(), b, add }
    }

    /// Stops, and waits until no thread of it is left.
    pub fn stop(&self) {
        self.gate.close();
        // Going down does not fail.
        let _ = self.pipeline.set_state(gst::State::Null);
        // One that was linked in meanwhile did not hear of it.
        for element in self.pipeline.children() {
            let _ = element.set_state(gst::State::Null);
        }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Links the second element in, or out.
pub struct Relink {
    pipeline: gst::Pipeline,
    from: gst::Element,
    to: gst::Element,
    b: gst::Element,
    add: bool,
}

impl Relink {
    /// Between two frames only.
    pub fn run(self) {
        let Self { pipeline, from, to, b, add } = self;
        if add {
            from.unlink(&to);
            let linked = pipeline.add(&b).and_then(|()| gst::Element::link_many([&from, &b, &to]));
            if let Err(error) = linked.and_then(|()| b.sync_state_with_parent()) {
                gst::element_error!(from, gst::CoreError::Negotiation, ("the second element: {error}"));
            }
        } else {
            from.unlink(&b);
            b.unlink(&to);
            // A pipeline that starts meanwhile leaves it alone. Going down does not fail.
            b.set_locked_state(true);
            let _ = b.set_state(gst::State::Null);
            let _ = pipeline.remove(&b);
            if let Err(error) = from.link(&to) {
                gst::element_error!(from, gst::CoreError::Negotiation, ("{error}"));
            }
        }
    }
}

impl Drawer {
    /// An element whose metadata is read where a frame leaves it, or the one behind it that follows objects.
    fn new(
        settings: &[Property],
        draws: bool,
        waiting: &Waiting,
        follower: Option<&Follower>,
    ) -> Result<Self, Problem> {
        let element = make("superpixel")?;
        for property in settings {
            property.apply(&element);
        }
        properties::hold(&element);
        let drawing = Drawing::default();
        drawing.switch(&element, draws);
        let pad = |element: &gst::Element, name| {
            element.static_pad(name).ok_or_else(|| Problem::internal("superpixel without a pad"))
        };
        let entering = drawing.clone();
        pad(&element, "sink")?.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
            if let (Some(frame), Some(element)) = (info.buffer(), pad.parent_element()) {
                entering.keep(&element, frame);
            }
            gst::PadProbeReturn::Ok
        });
        let (leaving, waiting) = (drawing.clone(), waiting.clone());
        let last = follower.map_or(&element, Follower::element);
        let (own, follower) = (element.downgrade(), follower.cloned());
        pad(last, "src")?.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
            if let (Some(buffer), Some(element)) = (info.buffer_mut(), own.upgrade()) {
                let followed = follower.as_ref().map_or_else(|| Ok(Followed::default()), |f| f.read(buffer));
                match Segmentation::read(&element, buffer, followed) {
                    Ok(mut segmentation) => {
                        segmentation.drawn = leaving.take_off(&element, buffer);
                        let mut waiting = waiting.lock().unwrap();
                        waiting.truncate(MOST_WAITING);
                        waiting.push_front((buffer.offset(), segmentation));
                    }
                    Err(error) => gst::element_error!(element, gst::StreamError::Failed, ("{error}")),
                }
            }
            gst::PadProbeReturn::Ok
        });
        Ok(Self { element, drawing })
    }
}

/// Puts a sample together with what was said about it, and forgets what was said about earlier ones.
fn whole(sample: gst::Sample, waiting: &Waiting) -> Option<Frame> {
    let number = sample.buffer()?.offset();
    let mut waiting = waiting.lock().unwrap();
    let mut sides = Vec::new();
    waiting.retain(|(of, _)| *of >= number);
    while waiting.back().is_some_and(|(of, _)| *of == number) {
        sides.extend(waiting.pop_back().map(|(_, segmentation)| segmentation));
    }
    (!sides.is_empty()).then_some(Frame { number, sample, sides })
}
