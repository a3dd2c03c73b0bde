// SPDX-License-Identifier: MPL-2.0
//! A clip, or a part of one, to its folder: label maps, tables and what is said of it as a whole.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gst::prelude::*;
use serde_json::{Value, json};

use superpixel_output::parts::Parts;
use superpixel_output::{Folder, Request, clip};

use crate::decode::{ClipSource, Decoding, Passage};
use crate::fault::{Failure, Result};
use crate::objects::{self, Detections, ObjectRecorder};
use crate::properties::Property;
use crate::recorder::{self, Recorder};
use crate::session::Session;
use crate::summary::{self, Length};
use crate::upright;
use crate::watch::{self, Watch};

/// Label maps that may wait for the encoder.
const WAITING: u64 = 4;

/// A conversion of one clip.
pub struct Job<'a> {
    /// The video file.
    pub input: &'a Path,
    /// The folder that appears.
    pub output: &'a Path,
    /// The list that the parts come from, and that of objects.
    pub lists: Vec<&'a Path>,
    /// Boxes of objects to follow.
    pub detections: Option<Detections>,
    /// True if files of the same names may be replaced even if this program did not make them.
    pub force: bool,
    /// The element, and the properties that it was given.
    pub superpixel: (gst::Element, Vec<Property>),
    /// How to decode.
    pub decoding: Decoding,
    /// Longest time without a frame.
    pub stall: Duration,
    /// The caller's name of this job.
    pub key: Option<&'a str>,
    /// Name of the video in the tables.
    pub source: String,
    /// Starts of the parts, and the one part to convert, if not all.
    pub parts: Option<(Parts, Option<usize>)>,
}

/// Does it and returns what is in `clip.json`.
///
/// # Errors
///
/// Whatever the pipeline reports, a stall, output that cannot be written; nothing is left then.
pub fn run(job: Job<'_>, session: &mut Session) -> Result<Value> {
    let Job {
        input,
        output,
        lists,
        detections,
        force,
        superpixel: (superpixel, properties),
        decoding,
        stall,
        key,
        source: name,
        parts,
    } = job;
    let began = Instant::now();
    let inputs: Vec<_> = std::iter::once(input).chain(lists).collect();
    let request = Request { path: output, inputs: &inputs, force };
    // Before anything else: a wrong output stays wrong whatever the input is.
    let layout = clip::layout(output, detections.is_some(), force);
    Folder::check(&request, &layout)?;
    if !input.is_file() {
        return Err(Failure::machine(format!("{} is no file that can be read", input.display())));
    }
    let folder = Folder::begin(&request, layout)?;
    let (passage, expected, number) = passage(&parts)?;
    let first = parts.as_ref().zip(number).map_or(0, |((parts, _), number)| parts.first_of(number));
    let notes = [("superpixel.schema", clip::SCHEMA.to_string()), ("superpixel.source", name.clone())];
    let notes = notes.each_ref().map(|(name, value)| (*name, value.as_str()));
    let recorder = Arc::new(Mutex::new(Some(Recorder::create(&folder, first, &notes)?)));
    let (pipeline, watch) = (session.pipeline(), Arc::new(Watch::default()));
    let objects = detections.map(objects::make).transpose()?;
    let head = add_segmentation(&pipeline, &superpixel, objects.as_ref())?;
    let labels = add_encoder(&pipeline, &folder.path(clip::LABELS))?;
    recorder::attach(&superpixel, &recorder, &labels, &watch)?;
    let object_recorder = Arc::new(Mutex::new(None));
    if let Some(objects) = &objects {
        *object_recorder.lock().unwrap() = Some(ObjectRecorder::create(&folder, &notes)?);
        let masks = add_encoder(&pipeline, &folder.path(clip::OBJECT_MASKS))?;
        objects::attach(objects, &object_recorder, &masks, &watch)?;
    }
    let source = ClipSource::add(&pipeline, input, &head, decoding, passage, &watch)?;
    let mut backend = String::new();
    watch::run(pipeline, &watch, stall, session, |message| {
        if backend.is_empty() {
            backend = superpixel.property("active-backend");
        }
        source.on_turn(message)
    })?;
    let recorder = recorder.lock().unwrap().take().ok_or_else(|| Failure::machine("the tables are gone"))?;
    let totals = recorder.finish()?;
    if let Some(expected) = expected.filter(|expected| *expected != totals.frames) {
        let found = totals.frames;
        return Err(Failure::clip(format!(
            "{found} frames instead of {expected}: the clip does not seek exactly"
        )));
    }
    let facts = source.facts();
    let seconds = began.elapsed().as_secs_f64();
    let mut result = json!({
        "schema": clip::SCHEMA,
        "key": key,
        "source": name,
        "properties": properties.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
        "version": version(&superpixel),
        "backend": backend,
        "decoder": facts.decoder,
        "orientation": facts.orientation,
        "upright": decoding.upright || facts.orientation == upright::STORED,
        "first_frame_seconds": watch.first().map(|first| (first - session.began()).as_secs_f64()),
        "seconds": seconds,
        "frames_per_second": totals.frames as f64 / seconds,
        "part": number,
        "parts": parts.as_ref().map(|(parts, _)| parts.parts.len()),
    });
    summary::extend(&mut result, totals.to_json());
    if let Some(recorder) = object_recorder.lock().unwrap().take() {
        summary::extend(&mut result, recorder.finish()?);
    }
    let length = if number.is_none() { facts.length } else { Length::default() };
    summary::add_coverage(&mut result, &length);
    std::fs::write(folder.path(clip::SUMMARY), summary::text(&result))?;
    folder.finish()?;
    Ok(result)
}

/// Which frames pass, how many these are where that is known, and the number of the part.
fn passage(parts: &Option<(Parts, Option<usize>)>) -> Result<(Passage, Option<u64>, Option<usize>)> {
    let Some((parts, number)) = parts else { return Ok((Passage::default(), None, None)) };
    let Some(number) = *number else {
        let restarts = parts.parts.iter().filter_map(|part| part.from).collect();
        return Ok((Passage { part: None, restarts }, Some(parts.frames()), None));
    };
    let part = parts
        .parts
        .get(number)
        .ok_or_else(|| Failure::machine(format!("no part {number}: there are {}", parts.parts.len())))?;
    Ok((Passage { part: Some(part.clone()), restarts: Vec::new() }, Some(part.frames), Some(number)))
}

/// The version of the plugin that the element comes from.
pub fn version(superpixel: &gst::Element) -> String {
    let plugin = superpixel.factory().and_then(|factory| factory.plugin());
    plugin.map_or_else(String::new, |plugin| plugin.version().to_string())
}

/// Adds what frames go through; returns the first of its elements.
fn add_segmentation(
    pipeline: &gst::Pipeline,
    superpixel: &gst::Element,
    objects: Option<&gst::Element>,
) -> Result<gst::Element> {
    let queue = gst::ElementFactory::make("queue")
        .property("max-size-buffers", 4u32)
        .property("max-size-bytes", 0u32)
        .property("max-size-time", 0u64)
        .build()?;
    // Takes no part where `superpixel` takes the format.
    let convert = gst::ElementFactory::make("videoconvert").build()?;
    // If a clip begins with a gap, a sink that waits for its state would hold back frames that the other sink waits
    // for.
    let sink =
        gst::ElementFactory::make("fakesink").property("sync", false).property("async", false).build()?;
    let all: Vec<_> = [&queue, &convert, superpixel].into_iter().chain(objects).chain([&sink]).collect();
    pipeline.add_many(&all)?;
    gst::Element::link_many(all)?;
    Ok(queue)
}

/// Adds what label maps go through; returns where they go in.
fn add_encoder(pipeline: &gst::Pipeline, path: &Path) -> Result<gst_app::AppSrc> {
    let source = gst_app::AppSrc::builder()
        .format(gst::Format::Time)
        .block(true)
        .max_buffers(WAITING)
        .max_bytes(0)
        .build();
    let encoder = gst::ElementFactory::make("avenc_ffv1")
        .build()
        .map_err(|_| Failure::machine("no encoder for FFV1: install gstreamer1.0-libav"))?;
    let muxer = gst::ElementFactory::make("matroskamux").build()?;
    let sink = gst::ElementFactory::make("filesink")
        .property("location", path)
        .property("sync", false)
        .property("async", false)
        .build()?;
    pipeline.add_many([source.upcast_ref(), &encoder, &muxer, &sink])?;
    gst::Element::link_many([source.upcast_ref(), &encoder, &muxer, &sink])?;
    Ok(source)
}
