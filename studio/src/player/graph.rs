// SPDX-License-Identifier: MPL-2.0
//! The pipeline: source, gate, one or two elements `superpixel`, and an `appsink` that gives whole frames.
//!
//! ```text
//! source ! queue ! (gate) ! superpixel a [! superpixel b] ! queue ! appsink
//! ```
//!
//! Two elements stand in a row, so that both see the same frame; each one's metadata is read where it leaves.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use gst::prelude::*;

use super::gate::Gate;
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
    a: gst::Element,
    b: Option<gst::Element>,
    after: gst::Element,
    waiting: Waiting,
}

impl Graph {
    /// Builds what plays `source`, stopped. Without `b` there is one element.
    ///
    /// # Errors
    ///
    /// If an element is missing; the message names it.
    pub fn new(
        source: &Source,
        gate: Arc<Gate>,
        settings: [Option<&[Property]>; 2],
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
        let a = make_superpixel(settings[0].unwrap_or_default(), &waiting)?;
        pipeline.add_many([&before, &a, &after, sink.upcast_ref()]).map_err(Problem::internal)?;
        gst::Element::link_many([&first, &before, &a, &after, sink.upcast_ref()])
            .map_err(Problem::internal)?;
        gate.guard(&before.static_pad("src").ok_or_else(|| Problem::internal("a queue without a pad"))?);
        let mut graph = Self { pipeline, gate, a, b: None, after, waiting };
        if let Some(settings) = settings[1] {
            graph.add_b(settings)?.run();
        }
        Ok(graph)
    }

    /// The element of a side.
    pub fn element(&self, side: Side) -> Option<&gst::Element> {
        match side {
            Side::A => Some(&self.a),
            Side::B => self.b.as_ref(),
        }
    }

    /// Returns true if a message of the bus comes from one of the elements `superpixel`.
    pub fn is_superpixel(&self, source: Option<&gst::Object>) -> bool {
        [Some(&self.a), self.b.as_ref()].into_iter().flatten().any(|e| source == Some(e.upcast_ref()))
    }

    /// Makes the second element; it takes part once the returned change has run between two frames.
    pub fn add_b(&mut self, settings: &[Property]) -> Result<Relink, Problem> {
        let b = make_superpixel(settings, &self.waiting)?;
        self.b = Some(b.clone());
        Ok(Relink {
            pipeline: self.pipeline.clone(),
            from: self.a.clone(),
            to: self.after.clone(),
            b,
            add: true,
        })
    }

    /// Takes the second element out, as [`Self::add_b`].
    pub fn remove_b(&mut self) -> Option<Relink> {
        let b = self.b.take()?;
        Some(Relink {
            pipeline: self.pipeline.clone(),
            from: self.a.clone(),
            to: self.after.clone(),
            b,
            add: false,
        })
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

/// An element whose metadata is read where a frame leaves it.
fn make_superpixel(settings: &[Property], waiting: &Waiting) -> Result<gst::Element, Problem> {
    let element = make("superpixel")?;
    for property in settings {
        property.apply(&element);
    }
    properties::hold(&element);
    let pad = element.static_pad("src").ok_or_else(|| Problem::internal("superpixel without a pad"))?;
    let waiting = waiting.clone();
    pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
        if let (Some(buffer), Some(element)) = (info.buffer(), pad.parent_element()) {
            match Segmentation::read(&element, buffer) {
                Ok(segmentation) => {
                    let mut waiting = waiting.lock().unwrap();
                    waiting.truncate(MOST_WAITING);
                    waiting.push_front((buffer.offset(), segmentation));
                }
                Err(error) => gst::element_error!(element, gst::StreamError::Failed, ("{error}")),
            }
        }
        gst::PadProbeReturn::Ok
    });
    Ok(element)
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
