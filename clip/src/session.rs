// SPDX-License-Identifier: MPL-2.0
//! State that all runs of one process share: the receiver of progress reports, and contexts of devices, which are slow
//! to make.

use std::io::Write;
use std::time::Instant;

use gst::prelude::*;
use serde_json::Value;

use crate::summary;

/// The process, and the run that it is at.
pub struct Session {
    /// The caller's id of the job.
    id: Option<Value>,
    began: Instant,
    contexts: Vec<gst::Context>,
}

impl Session {
    /// Of a process that begins now.
    pub fn new() -> Self {
        Self { id: None, began: Instant::now(), contexts: Vec::new() }
    }

    /// Begins a job of that name. The first one counts from the start of the process.
    pub fn begin(&mut self, id: Value) {
        if self.id.replace(id).is_some() {
            self.began = Instant::now();
        }
    }

    /// When the run began, with all that its process had to do for it.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// Writes one line of JSON, with the name of the job where it has one. Nobody reading is no reason to stop.
    pub fn say(&self, mut line: Value) {
        if let Some(id) = &self.id {
            summary::extend(&mut line, serde_json::json!({"id": id}));
        }
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }

    /// Says that the run is done, with its result.
    pub fn say_done(&self, mut result: Value) {
        summary::extend(&mut result, serde_json::json!({"event": "done"}));
        self.say(result);
    }

    /// A pipeline that has the contexts of the one before: to open a device anew takes longer than a short clip.
    pub fn pipeline(&self) -> gst::Pipeline {
        let pipeline = gst::Pipeline::new();
        self.contexts.iter().for_each(|context| pipeline.set_context(context));
        pipeline
    }

    /// Keeps what elements of a pipeline have shared for the next one.
    pub fn keep(&mut self, pipeline: &gst::Pipeline) {
        self.contexts = pipeline.contexts().into_iter().filter(|context| context.is_persistent()).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn persistent_contexts_go_on_to_the_next_pipeline() {
        gst::init().unwrap();
        let mut session = Session::new();
        let pipeline = session.pipeline();
        pipeline.set_context(&gst::Context::new("test.device", true));
        pipeline.set_context(&gst::Context::new("test.stream", false));
        session.keep(&pipeline);
        let element = gst::ElementFactory::make("identity").build().unwrap();
        session.pipeline().add(&element).unwrap();
        assert!(element.context("test.device").is_some());
        assert!(element.context("test.stream").is_none());
    }
}
