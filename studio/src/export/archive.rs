// SPDX-License-Identifier: MPL-2.0
//! The end of a pipeline that writes what each frame gives into a zip archive.

use std::sync::{Arc, Mutex};

use gst::prelude::*;

pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// An archive that frames are added to.
pub trait Archive: Send + 'static {
    /// What it has, as the message about a failure begins.
    const CONTENT: &str;

    /// Adds what a frame gives.
    fn add(&mut self, sample: &gst::Sample) -> Result<(), Failure>;

    /// Writes what stands at the end of the file.
    fn finish(self) -> Result<(), Failure>;
}

/// Gives all frames to an archive, and ends it with the stream. A failure is an error of the element.
pub fn sink<A: Archive>(archive: A, caps: Option<&gst::Caps>) -> gst::Element {
    // Finishing consumes it, so it is taken out at the end of the stream.
    let archive = Arc::new(Mutex::new(Some(archive)));
    let ending = archive.clone();
    let add = move |sink: &gst_app::AppSink| {
        let sample = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?;
        match archive.lock().unwrap().as_mut().map_or(Ok(()), |archive| archive.add(&sample)) {
            Ok(()) => Ok(gst::FlowSuccess::Ok),
            Err(failure) => {
                fail::<A>(sink, &failure);
                Err(gst::FlowError::Error)
            }
        }
    };
    let end = move |sink: &gst_app::AppSink| {
        if let Some(Err(failure)) = ending.lock().unwrap().take().map(A::finish) {
            fail::<A>(sink, &failure);
        }
    };
    let callbacks = gst_app::AppSinkCallbacks::builder().new_sample(add).eos(end).build();
    let sink = gst_app::AppSink::builder().sync(false).max_buffers(1).callbacks(callbacks).build();
    sink.set_caps(caps);
    sink.upcast()
}

fn fail<A: Archive>(sink: &gst_app::AppSink, failure: &Failure) {
    gst::element_error!(sink, gst::ResourceError::Write, ("{} cannot be written: {failure}.", A::CONTENT));
}
