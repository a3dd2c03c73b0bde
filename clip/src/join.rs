// SPDX-License-Identifier: MPL-2.0
//! The parts of a clip to the folder that the whole would have given.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gst::prelude::*;
use serde_json::{Value, json};
use superpixel_output::{Folder, Request, clip};

use crate::fault::{Failure, Result};
use crate::schema::Schema;
use crate::session::Session;
use crate::summary::{self, Totals};
use crate::tables::{self, Column, Table};
use crate::watch::{self, Watch};

/// Joins the folders of all parts, in their order, and returns what is in `clip.json`.
///
/// # Errors
///
/// Parts that are missing or not of one clip; output that overlaps one of them or cannot be written.
pub fn run(
    output: &Path,
    parts: &[PathBuf],
    force: bool,
    stall: Duration,
    session: &mut Session,
) -> Result<Value> {
    let inputs: Vec<_> = parts.iter().map(PathBuf::as_path).collect();
    let request = Request { path: output, inputs: &inputs, force };
    let layout = clip::layout(output, false, force);
    Folder::check(&request, &layout)?;
    let summaries = parts.iter().map(|part| summary_of(part)).collect::<Result<Vec<_>>>()?;
    check(&summaries)?;
    let folder = Folder::begin(&request, layout)?;
    let mut totals = Totals::default();
    let source = summaries[0]["source"].as_str().unwrap_or_default();
    let schema = clip::SCHEMA.to_string();
    let notes = [("superpixel.schema", schema.as_str()), ("superpixel.source", source)];
    let mut regions = Table::create(&folder.path(clip::REGIONS), &Schema::regions(), &notes)?;
    let mut adjacency = Table::create(&folder.path(clip::ADJACENCY), &Schema::adjacency(), &notes)?;
    let mut events = Table::create(&folder.path(clip::EVENTS), &Schema::events(), &notes)?;
    for (part, summary) in parts.iter().zip(&summaries) {
        let before = totals.most_track_id;
        tables::read(&part.join(clip::REGIONS), |mut columns, rows| {
            raise(&mut columns, &Schema::regions(), "track_id", before)?;
            regions.append(columns, rows)
        })?;
        tables::read(&part.join(clip::ADJACENCY), |columns, rows| adjacency.append(columns, rows))?;
        tables::read(&part.join(clip::EVENTS), |mut columns, rows| {
            raise(&mut columns, &Schema::events(), "track_id", before)?;
            raise(&mut columns, &Schema::events(), "other", before)?;
            events.append(columns, rows)
        })?;
        let own = Totals::from_json(summary)
            .ok_or_else(|| Failure::machine(format!("{}: clip.json is not whole", part.display())))?;
        totals.add(&own)?;
    }
    let rows = [regions.finish()?, adjacency.finish()?, events.finish()?];
    if rows != [totals.region_rows, totals.adjacency_rows, totals.event_rows] {
        return Err(Failure::machine("the tables of the parts are not whole"));
    }
    join_labels(parts, &folder.path(clip::LABELS), totals.frames, stall, session)?;
    let seconds: f64 = summaries.iter().filter_map(|summary| summary["seconds"].as_f64()).sum();
    let mut result = summaries.into_iter().next().unwrap_or_default();
    let facts = json!({"part": null, "first_frame_seconds": null, "seconds": seconds, "frames_per_second": totals.frames as f64 / seconds});
    summary::extend(&mut result, facts);
    summary::extend(&mut result, totals.to_json());
    std::fs::write(folder.path(clip::SUMMARY), summary::text(&result))?;
    folder.finish()?;
    Ok(result)
}

/// Raises the track ids in a column by those of the parts before. 0 is none.
fn raise(columns: &mut [Column], schema: &Schema, name: &str, before: u32) -> Result<()> {
    let column = schema.position(name).and_then(|at| columns.get_mut(at));
    let Some(Column::Int(ids)) = column else {
        return Err(Failure::machine(format!("no column {name} of track ids")));
    };
    ids.iter_mut().filter(|id| **id != 0).for_each(|id| *id = id.wrapping_add(before.cast_signed()));
    Ok(())
}

fn summary_of(part: &Path) -> Result<Value> {
    let path = part.join(clip::SUMMARY);
    let text =
        std::fs::read(&path).map_err(|error| Failure::machine(format!("{}: {error}", path.display())))?;
    let summary = clip::read(&text).map(Value::Object);
    summary.ok_or_else(|| Failure::machine(format!("{} is of no clip that is whole", path.display())))
}

/// Checks that these are all parts of one clip, in order.
fn check(summaries: &[Value]) -> Result<()> {
    for (number, summary) in summaries.iter().enumerate() {
        let same = ["key", "source", "properties", "version", "orientation", "upright"]
            .iter()
            .all(|name| summary[name] == summaries[0][name]);
        if !same || summary["part"] != json!(number) || summary["parts"] != json!(summaries.len()) {
            return Err(Failure::machine(format!(
                "folder {number} is not part {number} of {}",
                summaries.len()
            )));
        }
    }
    if summaries.is_empty() { Err(Failure::machine("no parts")) } else { Ok(()) }
}

/// Copies the encoded label maps one after the other; each stands for itself.
fn join_labels(
    parts: &[PathBuf],
    path: &Path,
    frames: u64,
    stall: Duration,
    session: &mut Session,
) -> Result<()> {
    let (pipeline, watch) = (gst::Pipeline::new(), Arc::new(Watch::default()));
    let source =
        gst_app::AppSrc::builder().format(gst::Format::Time).block(true).max_buffers(4).max_bytes(0).build();
    let muxer = gst::ElementFactory::make("matroskamux").build()?;
    let sink =
        gst::ElementFactory::make("filesink").property("location", path).property("sync", false).build()?;
    pipeline.add_many([source.upcast_ref(), &muxer, &sink])?;
    gst::Element::link_many([source.upcast_ref(), &muxer, &sink])?;
    let (feed, seen, parts) = (source, watch.clone(), parts.to_owned());
    let feeder = std::thread::spawn(move || {
        if let Err(failure) = parts.iter().try_for_each(|part| copy(&part.join(clip::LABELS), &feed, &seen)) {
            seen.fail(failure);
        }
        let _ = feed.end_of_stream();
    });
    watch::run(pipeline, &watch, stall, session, |_| Ok(()))?;
    let _ = feeder.join();
    let copied = watch.frames();
    if copied == frames {
        Ok(())
    } else {
        Err(Failure::machine(format!("{copied} label maps for {frames} frames")))
    }
}

fn copy(path: &Path, to: &gst_app::AppSrc, watch: &Watch) -> Result<()> {
    let pipeline = gst::Pipeline::new();
    let file = gst::ElementFactory::make("filesrc").property("location", path).build()?;
    let demuxer = gst::ElementFactory::make("matroskademux").build()?;
    let sink = gst_app::AppSink::builder().sync(false).max_buffers(4).build();
    pipeline.add_many([&file, &demuxer, sink.upcast_ref()])?;
    file.link(&demuxer)?;
    let next = sink.clone();
    demuxer.connect_pad_added(move |_, pad| {
        if let Some(sink) = next.static_pad("sink").filter(|sink| !sink.is_linked()) {
            let _ = pad.link(&sink);
        }
    });
    pipeline.set_state(gst::State::Playing).map_err(|error| Failure::machine(error.to_string()))?;
    while let Ok(sample) = sink.pull_sample() {
        if to.caps().is_none() {
            let mut caps = sample.caps().map(ToOwned::to_owned).unwrap_or_else(gst::Caps::new_any);
            // The muxer asks for a field that the demuxer writes with another name.
            caps.make_mut().set("ffversion", 1);
            to.set_caps(Some(&caps));
        }
        let Some(buffer) = sample.buffer_owned() else { continue };
        to.push_buffer(buffer).map_err(|error| Failure::machine(format!("{}: {error}", path.display())))?;
        watch.count();
    }
    pipeline.set_state(gst::State::Null).map_err(|error| Failure::machine(error.to_string()))?;
    Ok(())
}
