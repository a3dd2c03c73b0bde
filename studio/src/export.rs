// SPDX-License-Identifier: MPL-2.0
//! Writes the whole source as a video, drawn on by the element, into a folder of the studio's own; one at a time.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use gst::prelude::*;

use crate::problem::Problem;
use crate::properties::{self, Property};
use crate::source::{Source, make};
use crate::state::Export;

/// The last export only: its file goes when the next one starts, and with the studio.
pub struct Exporter {
    folder: PathBuf,
    current: Mutex<Option<Running>>,
}

struct Running {
    export: Export,
    pipeline: gst::Pipeline,
    ended: Arc<Mutex<Option<Result<(), String>>>>,
}

impl Exporter {
    /// Files will be in `folder`, which appears with the first.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, current: Mutex::default() }
    }

    fn file(&self, id: u64) -> PathBuf {
        self.folder.join(format!("export-{id}"))
    }

    /// Starts an export, in the place of one that is there.
    ///
    /// # Errors
    ///
    /// A source without an end, an overlay that the element does not have, a missing element.
    pub fn start(&self, source: &Source, settings: &[Property], overlay: &str) -> Result<(), Problem> {
        if source.is_live() {
            return Err(Problem::new("A live source has no end.", "Export a contact sheet instead."));
        }
        let id = self.current.lock().unwrap().as_ref().map_or(0, |running| running.export.id) + 1;
        self.remove();
        create_private(&self.folder).map_err(Problem::internal)?;
        let pipeline = gst::Pipeline::new();
        let suffix = self.build(&pipeline, source, settings, overlay, id)?;
        let ended = Arc::new(Mutex::new(None));
        if let Some(bus) = pipeline.bus() {
            let ended = ended.clone();
            bus.set_sync_handler(move |_, message| {
                match message.view() {
                    gst::MessageView::Eos(_) => *ended.lock().unwrap() = Some(Ok(())),
                    gst::MessageView::Error(error) => {
                        *ended.lock().unwrap() = Some(Err(error.error().message().to_owned()));
                    }
                    _ => {}
                }
                gst::BusSyncReply::Drop
            });
        }
        // Where this fails, the bus has the reason.
        let _ = pipeline.set_state(gst::State::Playing);
        let name = format!("superpixels-{overlay}.{suffix}");
        let export = Export { id, progress: 0.0, done: false, name, problem: None };
        *self.current.lock().unwrap() = Some(Running { export, pipeline, ended });
        Ok(())
    }

    /// Returns the suffix of the file's name.
    fn build(
        &self,
        pipeline: &gst::Pipeline,
        source: &Source,
        settings: &[Property],
        overlay: &str,
        id: u64,
    ) -> Result<&'static str, Problem> {
        let first = source.add_to(pipeline)?;
        let element = make("superpixel")?;
        for property in settings {
            property.apply(&element);
        }
        let unknown = || Problem::new("The element draws nothing of that name.", "Choose another view.");
        properties::set_overlay(&element, overlay).ok_or_else(unknown)?;
        let (encode, suffix) = encoder()?;
        let file = make("filesink")?;
        file.set_property("location", self.file(id));
        let mut chain = vec![make("queue")?, element, make("queue")?, make("videoconvert")?];
        chain.extend(encode);
        chain.push(file);
        pipeline.add_many(&chain).map_err(Problem::internal)?;
        gst::Element::link_many(std::iter::once(&first).chain(&chain)).map_err(Problem::internal)?;
        Ok(suffix)
    }

    /// How far the export is.
    pub fn state(&self) -> Option<Export> {
        let mut current = self.current.lock().unwrap();
        let running = current.as_mut()?;
        let export = &mut running.export;
        if export.done || export.problem.is_some() {
            return Some(export.clone());
        }
        let ended = running.ended.lock().unwrap().take();
        match ended {
            Some(result) => {
                // Going down does not fail.
                let _ = running.pipeline.set_state(gst::State::Null);
                (export.done, export.problem) = (result.is_ok(), result.err());
                export.progress = 1.0;
            }
            None => {
                let position = running.pipeline.query_position::<gst::ClockTime>();
                let duration = running.pipeline.query_duration::<gst::ClockTime>();
                if let (Some(position), Some(duration)) = (position, duration.filter(|d| !d.is_zero())) {
                    let part = position.nseconds() as f64 / duration.nseconds() as f64;
                    // In whole parts of a hundred, so that states do not differ all the time.
                    export.progress = (part * 100.0).floor().min(99.0) / 100.0;
                }
            }
        }
        Some(export.clone())
    }

    /// The file of a finished export, with the name that it is to have.
    pub fn finished(&self, id: u64) -> Option<(PathBuf, String)> {
        let current = self.current.lock().unwrap();
        let export = &current.as_ref()?.export;
        (export.done && export.id == id).then(|| (self.file(id), export.name.clone()))
    }

    /// Stops an export that runs.
    pub fn cancel(&self) {
        if let Some(running) = &mut *self.current.lock().unwrap()
            && !running.export.done
        {
            // Going down does not fail.
            let _ = running.pipeline.set_state(gst::State::Null);
            running.export.problem.get_or_insert_with(|| "Canceled.".to_owned());
        }
    }

    fn remove(&self) {
        self.cancel();
        if let Some(running) = self.current.lock().unwrap().take() {
            // There may be none.
            let _ = std::fs::remove_file(self.file(running.export.id));
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.remove();
        // Not there without an export.
        let _ = std::fs::remove_dir(&self.folder);
    }
}

/// A folder that only this user reads.
fn create_private(folder: &std::path::Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

/// Encoder, parser and muxer that are there, with the suffix of their files.
fn encoder() -> Result<(Vec<gst::Element>, &'static str), Problem> {
    let has = |name: &str| gst::ElementFactory::find(name).is_some();
    let chain = |names: &[&str]| names.iter().map(|name| make(name)).collect::<Result<Vec<_>, _>>();
    if has("x264enc") {
        let elements = chain(&["x264enc", "h264parse", "mp4mux"])?;
        elements[0].set_property_from_str("speed-preset", "veryfast");
        return Ok((elements, "mp4"));
    }
    if has("openh264enc") {
        return Ok((chain(&["openh264enc", "h264parse", "mp4mux"])?, "mp4"));
    }
    let elements = chain(&["vp8enc", "webmmux"])?;
    elements[0].set_property("deadline", 1i64);
    Ok((elements, "webm"))
}
