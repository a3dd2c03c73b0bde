// SPDX-License-Identifier: MPL-2.0
//! Cuts in the picture of a clip, and the parts between them.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gst::prelude::*;
use gstsuperpixel::meta::SuperpixelMeta;
use superpixel_output::parts::{self, Part, Parts};

use crate::decode::{ClipSource, Decoding, Passage, stream_time};
use crate::fault::{Failure, Result};
use crate::session::Session;
use crate::watch::{self, Watch};

/// Cuts are looked for in frames of this size: enough to see one, and little work.
const LOOK: (i32, i32) = (160, 90);
/// Superpixels of these frames.
const LOOK_SIZE: &str = "superpixel-size=8";

/// The time of a frame, and whether none of its regions was in the frame before.
type Seen = (Option<gst::ClockTime>, bool);

/// Makes parts of at least `least` that begin at cuts, from the time of every frame and whether it comes after a cut. Where times are
/// missing or run backwards, nobody could find a cut again: all is one part.
fn parts_of(frames: &[Seen], least: gst::ClockTime) -> Parts {
    let rising = frames.is_sorted_by(|(a, _), (b, _)| a.is_some() && a < b);
    let mut parts = vec![Part { frames: 0, from: None, to: None }];
    let mut begin = frames.first().and_then(|(time, _)| *time);
    let end = frames.last().and_then(|(time, _)| *time);
    for (time, cut) in frames {
        let long = |from: Option<gst::ClockTime>, to: Option<gst::ClockTime>| {
            from.zip(to).is_some_and(|(from, to)| to.saturating_sub(from) >= least)
        };
        if *cut && rising && long(begin, *time) && long(*time, end) {
            let at = time.map(gst::ClockTime::nseconds);
            parts.last_mut().unwrap().to = at;
            parts.push(Part { frames: 0, from: at, to: None });
            begin = *time;
        }
        parts.last_mut().unwrap().frames += 1;
    }
    Parts { parts }
}

/// Reads a list of parts.
///
/// # Errors
///
/// A file that is not one of those.
pub fn read(path: &Path) -> Result<Parts> {
    let name = path.display();
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(parts::MOST).read_to_end(&mut text))
        .map_err(|error| Failure::machine(format!("{name}: {error}")))?;
    Parts::read(&text)
        .ok_or_else(|| Failure::machine(format!("{name} is no list of parts of superpixel-clip cuts")))
}

/// Returns true if a file is a list of parts.
pub fn is_list(file: &mut File) -> std::io::Result<bool> {
    let mut text = Vec::new();
    file.take(parts::MOST).read_to_end(&mut text)?;
    Ok(Parts::read(&text).is_some())
}

/// Looks for cuts: `superpixel` itself says where nothing follows from the frame before, on small frames.
///
/// # Errors
///
/// As of any run.
pub fn find(
    input: &Path,
    decoding: Decoding,
    stall: Duration,
    least: Duration,
    session: &mut Session,
) -> Result<Parts> {
    let (pipeline, watch) = (session.pipeline(), Arc::new(Watch::default()));
    let words = [LOOK_SIZE, "backend=cpu", &format!("threads={}", decoding.threads)].map(str::to_owned);
    let (superpixel, _) = crate::properties::make(&words).map_err(Failure::machine)?;
    superpixel.set_property("neighbors", false);
    let head = gst::ElementFactory::make("queue").build()?;
    let [scale, convert] = ["videoscale", "videoconvert"].map(|name| gst::ElementFactory::make(name).build());
    let (scale, convert) = (scale?, convert?);
    let small = gst::Caps::builder("video/x-raw")
        .field("width", LOOK.0)
        .field("height", LOOK.1)
        .field("pixel-aspect-ratio", gst::FractionRange::new((1, 1000), (1000, 1)))
        .build();
    let filter = gst::ElementFactory::make("capsfilter").property("caps", &small).build()?;
    let sink = gst::ElementFactory::make("fakesink").property("sync", false).build()?;
    let all = [&head, &scale, &filter, &convert, &superpixel, &sink];
    pipeline.add_many(all)?;
    gst::Element::link_many(all)?;
    let frames = Arc::new(Mutex::new(Vec::new()));
    look(&superpixel, &frames, &watch)?;
    let source = ClipSource::add(&pipeline, input, &head, decoding, Passage::default(), &watch)?;
    watch::run(pipeline, &watch, stall, session, |message| source.on_turn(message))?;
    let frames = std::mem::take(&mut *frames.lock().unwrap());
    if frames.is_empty() {
        return Err(Failure::clip("no frame of video"));
    }
    let least = gst::ClockTime::try_from(least).map_err(|error| Failure::machine(error.to_string()))?;
    Ok(parts_of(&frames, least))
}

/// Notes the time of every frame and whether none of its regions was there before.
fn look(superpixel: &gst::Element, frames: &Arc<Mutex<Vec<Seen>>>, watch: &Arc<Watch>) -> Result<()> {
    let pad = superpixel.static_pad("src").ok_or_else(|| Failure::machine("superpixel has no pad src"))?;
    let (frames, watch) = (frames.clone(), watch.clone());
    pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
        if let Some(gst::PadProbeData::Buffer(buffer)) = &info.data {
            let motion = SuperpixelMeta::from_buffer(buffer).map(|meta| meta.motion());
            let mut frames = frames.lock().unwrap();
            match motion {
                Some(Ok(motion)) => {
                    let cut = !frames.is_empty() && motion.iter().all(|motion| motion.age == 0);
                    frames.push((stream_time(pad, buffer), cut));
                }
                Some(Err(error)) => watch.fail(error.into()),
                None => watch.fail(Failure::machine("a frame without superpixels")),
            }
            watch.count();
        }
        gst::PadProbeReturn::Ok
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_long_enough_on_both_sides_of_a_cut() {
        let at = |second: u64| Some(gst::ClockTime::from_seconds(second));
        let frames: Vec<_> = (0..10).map(|i| (at(i), [2, 3, 7, 9].contains(&i))).collect();
        let parts = parts_of(&frames, gst::ClockTime::from_seconds(2));
        let of = |frames, from: Option<gst::ClockTime>, to: Option<gst::ClockTime>| {
            let [from, to] = [from, to].map(|time| time.map(gst::ClockTime::nseconds));
            Part { frames, from, to }
        };
        assert_eq!(parts.parts, [of(2, None, at(2)), of(5, at(2), at(7)), of(3, at(7), None)]);
        assert_eq!((parts.frames(), parts.first_of(2)), (10, 7));
        let mut unknown = frames.clone();
        unknown[4].0 = None;
        assert_eq!(parts_of(&unknown, gst::ClockTime::ZERO).parts.len(), 1);
        unknown[4].0 = at(3);
        assert_eq!(parts_of(&unknown, gst::ClockTime::ZERO).parts.len(), 1);
    }
}
