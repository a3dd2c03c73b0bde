// SPDX-License-Identifier: MPL-2.0
//! Writes the whole source as one file, a video or an archive of drawings or objects; one at a time, into a file that has no name: nobody
//! else opens it, no link leads away from it, and it is gone with the studio, however that ends.

mod archive;
mod objects;
mod svg;
mod video;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use gst::prelude::*;

use crate::objects::Marks;
use crate::problem::Problem;
use crate::properties::{self, Property};
use crate::request::{FileKind, Side};
use crate::source::{Source, make};
use crate::state::Export;

/// Bytes that an export leaves free on its disk.
pub const SPARE: u64 = 512 << 20;

/// An export that a viewer asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// With the settings of which element.
    pub side: Side,
    /// Value of the property `overlay`.
    pub overlay: String,
    /// Which file.
    pub kind: FileKind,
}

/// The last export only: its file goes when the next one starts, and with the studio.
pub struct Exporter {
    folder: PathBuf,
    spare: u64,
    started: AtomicU64,
    current: Mutex<Option<Running>>,
}

struct Running {
    export: Export,
    pipeline: gst::Pipeline,
    ended: Arc<Mutex<Option<Result<(), String>>>>,
    file: Arc<File>,
}

/// A file that was exported.
pub struct Finished {
    /// Open, and without a name on disk.
    pub file: Arc<File>,
    /// Its bytes.
    pub size: u64,
    /// The name that it is to have.
    pub name: String,
}

/// The folder whose disk holds exports: `TMPDIR`, or else `/var/tmp`, since `/tmp` is memory on many systems.
pub fn folder() -> PathBuf {
    let told = std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let usual = || Some(PathBuf::from("/var/tmp")).filter(|folder| folder.is_dir());
    told.or_else(usual).unwrap_or_else(std::env::temp_dir)
}

impl Exporter {
    /// Files will be on the disk of `folder`, of which `spare` bytes stay free.
    pub fn new(folder: PathBuf, spare: u64) -> Self {
        Self { folder, spare, started: AtomicU64::new(0), current: Mutex::default() }
    }

    /// Starts an export, in the place of one that is there. `marks` say which objects it follows.
    ///
    /// # Errors
    ///
    /// A source without an end, a full disk, an overlay that the element does not have, a missing element.
    pub fn start(
        &self,
        source: &Source,
        settings: &[Property],
        marks: &Marks,
        order: &Order,
    ) -> Result<(), Problem> {
        if source.is_live() {
            return Err(Problem::new("A live source has no end.", "Export a contact sheet instead."));
        }
        let id = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        self.remove();
        let file = Arc::new(create(&self.folder)?);
        if self.is_full(&file) {
            return Err(Problem::new(
                "The disk for exports is full.",
                "Make room, or start the studio with TMPDIR=FOLDER on another disk.",
            ));
        }
        let pipeline = gst::Pipeline::new();
        let suffix = build(&pipeline, source, settings, (order, marks), &file, &self.folder)?;
        let ended = Arc::new(Mutex::new(None));
        if let Some(bus) = pipeline.bus() {
            let (ended, source) = (ended.clone(), source.clone());
            bus.set_sync_handler(move |_, message| {
                match message.view() {
                    gst::MessageView::Eos(_) => {
                        ended.lock().unwrap().get_or_insert(Ok(()));
                    }
                    gst::MessageView::Error(error) => {
                        let words = source.censored(error.error().message()).to_owned();
                        // The first error has the reason; later ones follow from it.
                        ended.lock().unwrap().get_or_insert(Err(words));
                    }
                    _ => {}
                }
                gst::BusSyncReply::Drop
            });
        }
        // If this fails, the bus has the reason.
        let _ = pipeline.set_state(gst::State::Playing);
        let name = match order.kind {
            FileKind::Objects => format!("objects.{suffix}"),
            _ => format!("superpixels-{}.{suffix}", order.overlay),
        };
        let export = Export { id, progress: 0.0, done: false, name, problem: None };
        *self.current.lock().unwrap() = Some(Running { export, pipeline, ended, file });
        Ok(())
    }

    /// How far the export is.
    pub fn state(&self) -> Option<Export> {
        let mut current = self.current.lock().unwrap();
        let running = current.as_mut()?;
        if running.export.done || running.export.problem.is_some() {
            return Some(running.export.clone());
        }
        let full = || self.is_full(&running.file).then(|| Err("The disk is full.".to_owned()));
        let ended = running.ended.lock().unwrap().take().or_else(full);
        let pipeline = running.pipeline.clone();
        let export = &mut running.export;
        let Some(result) = ended else {
            let position = pipeline.query_position::<gst::ClockTime>();
            let duration = pipeline.query_duration::<gst::ClockTime>();
            if let (Some(position), Some(duration)) = (position, duration.filter(|d| !d.is_zero())) {
                let part = position.nseconds() as f64 / duration.nseconds() as f64;
                // In whole parts of a hundred, so that states do not differ all the time.
                export.progress = (part * 100.0).floor().min(99.0) / 100.0;
            }
            return Some(export.clone());
        };
        // Not while others wait for the lock. Going down does not fail.
        drop(current);
        let _ = pipeline.set_state(gst::State::Null);
        let mut current = self.current.lock().unwrap();
        let export = &mut current.as_mut()?.export;
        (export.done, export.problem, export.progress) = (result.is_ok(), result.err(), 1.0);
        Some(export.clone())
    }

    /// The file of a finished export.
    pub fn finished(&self, id: u64) -> Option<Finished> {
        let current = self.current.lock().unwrap();
        let Running { export, file, .. } = current.as_ref()?;
        let found = export.done && export.id == id;
        let size = file.metadata().ok()?.len();
        found.then(|| Finished { file: file.clone(), size, name: export.name.clone() })
    }

    /// Stops an export that runs.
    pub fn cancel(&self) {
        let running = |current: &Option<Running>| {
            let running = current.as_ref().filter(|running| !running.export.done)?;
            Some(running.pipeline.clone())
        };
        let Some(pipeline) = running(&self.current.lock().unwrap()) else { return };
        // Not while others wait for the lock. Going down does not fail.
        let _ = pipeline.set_state(gst::State::Null);
        if let Some(running) = &mut *self.current.lock().unwrap() {
            running.export.problem.get_or_insert_with(|| "Canceled.".to_owned());
        }
    }

    fn remove(&self) {
        self.cancel();
        *self.current.lock().unwrap() = None;
    }

    fn is_full(&self, file: &File) -> bool {
        rustix::fs::fstatvfs(file).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < self.spare)
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.remove();
    }
}

fn create(folder: &Path) -> Result<File, Problem> {
    tempfile::tempfile_in(folder).map_err(|error| {
        Problem::new(
            format!("No file can be made for the export: {error}."),
            "Start the studio with TMPDIR=FOLDER, a folder that it may write to.",
        )
    })
}

/// Builds what writes to `file`, which has to stay open as long; returns the suffix for its name.
fn build(
    pipeline: &gst::Pipeline,
    source: &Source,
    settings: &[Property],
    (order, marks): (&Order, &Marks),
    file: &File,
    folder: &Path,
) -> Result<&'static str, Problem> {
    let first = source.add_to(pipeline)?;
    let element = make("superpixel")?;
    for property in settings {
        property.apply(&element);
    }
    let unknown = || Problem::new("The element draws nothing of that name.", "Choose another view.");
    properties::set_overlay(&element, &order.overlay).ok_or_else(unknown)?;
    let (writes, suffix) = match order.kind {
        FileKind::Video => video::writer(file)?,
        FileKind::Svg => svg::writer(&element, &order.overlay, file)?,
        FileKind::Objects => objects::writer(&element, marks, &source.name(), file, folder)?,
    };
    let mut chain = vec![make("queue")?, element, make("queue")?];
    chain.extend(writes);
    pipeline.add_many(&chain).map_err(Problem::internal)?;
    gst::Element::link_many(std::iter::once(&first).chain(&chain)).map_err(Problem::internal)?;
    Ok(suffix)
}
