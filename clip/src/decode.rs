// SPDX-License-Identifier: MPL-2.0
//! From a file to the frames of its first video stream: all, or those of a part, with a new start where parts begin.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use gst::prelude::*;

use superpixel_output::parts::Part;

use crate::fault::{Failure, Result};
use crate::summary::Length;
use crate::upright;
use crate::watch::Watch;

/// Name of the message that asks for a seek, which no streaming thread may do itself.
const SEEK: &str = "superpixel-clip-seek";
/// Decoders of video and of pictures, of which some videos consist.
const DECODERS: gst::ElementFactoryType = gst::ElementFactoryType::DECODER
    .union(gst::ElementFactoryType::MEDIA_VIDEO)
    .union(gst::ElementFactoryType::MEDIA_IMAGE);

/// Turns without a message, of a tenth of a second, after which a demuxer that has stopped will not go on.
const PATIENCE: u32 = 20;

/// Facts about the source that are known once frames arrive.
#[derive(Debug, Default)]
pub struct Facts {
    /// The length that the container states, and how far its streams went.
    pub length: Length,
    /// Name of the decoder's factory.
    pub decoder: String,
    /// How frames are stored, by the tag `image-orientation`.
    pub orientation: &'static str,
}

/// Which frames pass.
#[derive(Debug, Default)]
pub struct Passage {
    /// Only those of this part.
    pub part: Option<Part>,
    /// Times in ns of frames before which the elements behind forget all earlier ones.
    pub restarts: Vec<u64>,
}

/// Source of a run's frames.
pub struct ClipSource {
    passage: Passage,
    /// The pad that frames come from. It holds this source itself.
    pad: gst::glib::WeakRef<gst::Pad>,
    decoder: gst::glib::WeakRef<gst::Bin>,
    /// The first video stream that nothing decodes.
    unknown: Mutex<Option<String>>,
    /// Turns without a message in which a demuxer had given up.
    given_up: AtomicU32,
    /// True once the seek to the part has been requested.
    asked: AtomicBool,
    /// True once the part's last frame has passed.
    ended: AtomicBool,
    facts: Mutex<Facts>,
}

/// How to decode.
#[derive(Debug, Clone, Copy)]
pub struct Decoding {
    /// Threads of the decoder; 0 lets it choose.
    pub threads: u32,
    /// True if hardware decoders are preferred.
    pub hardware: bool,
    /// True if frames are rotated as their tag says.
    pub upright: bool,
}

impl ClipSource {
    /// Puts a source into the pipeline whose frames go to `next`.
    ///
    /// # Errors
    ///
    /// An element is missing.
    pub fn add(
        pipeline: &gst::Pipeline,
        input: &Path,
        next: &gst::Element,
        decoding: Decoding,
        passage: Passage,
        watch: &Arc<Watch>,
    ) -> Result<Arc<Self>> {
        prefer(decoding.hardware);
        let file = gst::ElementFactory::make("filesrc").property("location", input).build()?;
        // Video alone, as frames: nothing else in the file is decoded.
        let caps = gst::Caps::builder_full()
            .structure_with_any_features(gst::Structure::new_empty("video/x-raw"))
            .build();
        let decoder = gst::ElementFactory::make("decodebin")
            .property("caps", &caps)
            .property("expose-all-streams", false)
            .build()?;
        pipeline.add_many([&file, &decoder])?;
        file.link(&decoder)?;
        let source = Arc::new(Self {
            passage,
            pad: gst::glib::WeakRef::new(),
            decoder: decoder.downcast_ref::<gst::Bin>().map(ObjectExt::downgrade).unwrap_or_default(),
            unknown: Mutex::default(),
            given_up: 0.into(),
            asked: false.into(),
            ended: false.into(),
            facts: Mutex::default(),
        });
        source.watch_decoders(pipeline, decoding.threads);
        if source.passage.part.is_none() {
            // Sound and the like come as they are: how long they are tells how much of the clip is there.
            decoder.connect("autoplug-continue", false, |values| {
                let (pad, caps) = (values[1].get::<gst::Pad>().ok()?, values[2].get::<gst::Caps>().ok()?);
                Some((!is_beside_video(&pad, &caps)).to_value())
            });
        }
        let on_unknown = source.clone();
        decoder.connect("unknown-type", false, move |values| {
            let caps = values[2].get::<gst::Caps>().ok()?;
            if has_kind(&caps, &["video/", "image/"]) {
                on_unknown.unknown.lock().unwrap().get_or_insert(caps.to_string());
            }
            None
        });
        let (on_pad, next, failed) = (source.clone(), next.clone(), watch.clone());
        decoder.connect_pad_added(move |decoder, pad| {
            let linked = if pad.current_caps().is_none_or(|caps| has_kind(&caps, &["video/x-raw"])) {
                on_pad.link(decoder, pad, &next, decoding.upright, &failed)
            } else {
                on_pad.measure(pad, &next, &failed)
            };
            if let Err(failure) = linked {
                failed.fail(failure);
            }
        });
        let (on_end, failed) = (source.clone(), watch.clone());
        decoder.connect_no_more_pads(move |_| {
            if on_end.pad.upgrade().is_none() {
                failed.fail(match on_end.unknown.lock().unwrap().take() {
                    Some(caps) => Failure::machine(format!("no decoder for {caps}")),
                    None => Failure::clip("no video stream"),
                });
            }
        });
        Ok(source)
    }

    /// Facts about the source so far.
    pub fn facts(&self) -> std::sync::MutexGuard<'_, Facts> {
        self.facts.lock().unwrap()
    }

    /// To be called with every message of the pipeline, and where none came for a while.
    ///
    /// # Errors
    ///
    /// A clip in which nobody can seek, or without a stream.
    pub fn on_turn(&self, message: Option<&gst::Message>) -> Result<()> {
        let Some(message) = message else { return self.look_at_demuxer() };
        if message.type_() == gst::MessageType::Eos {
            // Some demuxers know the length only when they have read all.
            self.ask_length();
            return Ok(());
        }
        if message.structure().is_none_or(|structure| structure.name() != SEEK) {
            return Ok(());
        }
        let (pad, from) = (self.pad.upgrade(), self.passage.part.as_ref().and_then(|part| part.from));
        let (Some(pad), Some(from)) = (pad, from) else { return Ok(()) };
        // To the key frame: by an exact seek the decoder would cut the frame before in time, and hand it out as one of this part.
        let seek = gst::event::Seek::new(
            1.0,
            gst::SeekFlags::FLUSH | gst::SeekFlags::KEY_UNIT | gst::SeekFlags::SNAP_BEFORE,
            gst::SeekType::Set,
            gst::ClockTime::from_nseconds(from),
            gst::SeekType::None,
            gst::ClockTime::NONE,
        );
        if pad.send_event(seek) { Ok(()) } else { Err(Failure::clip("the clip does not seek")) }
    }

    /// decodebin keeps a demuxer's error to itself where it takes it for that of a candidate which is still being tried. What the
    /// demuxer leaves is a task that has stopped before there was a stream.
    fn look_at_demuxer(&self) -> Result<()> {
        let Some(decoder) = self.decoder.upgrade() else { return Ok(()) };
        if self.pad.upgrade().is_some() || !decoder.children().iter().any(has_given_up) {
            self.given_up.store(0, Ordering::Relaxed);
            return Ok(());
        }
        let turns = self.given_up.fetch_add(1, Ordering::Relaxed);
        if turns < PATIENCE { Ok(()) } else { Err(Failure::clip("the file contains no playable streams")) }
    }

    fn watch_decoders(self: &Arc<Self>, pipeline: &gst::Pipeline, threads: u32) {
        let source = self.clone();
        pipeline.connect_deep_element_added(move |_, _, element| {
            let Some(factory) = element.factory().filter(is_decoder) else { return };
            source.facts().decoder = factory.name().to_string();
            let number = ["max-threads", "n-threads"].into_iter().find(|name| element.has_property(name));
            if let (Some(name), true) = (number, threads > 0) {
                element.set_property_from_str(name, &threads.to_string());
            }
        });
    }

    /// Links the first stream of frames.
    fn link(
        self: &Arc<Self>,
        decoder: &gst::Element,
        pad: &gst::Pad,
        next: &gst::Element,
        is_upright: bool,
        watch: &Arc<Watch>,
    ) -> Result<()> {
        let Some(sink) = next.static_pad("sink").filter(|sink| !sink.is_linked()) else { return Ok(()) };
        pad.link(&sink).map_err(|error| {
            Failure::machine(format!("{} does not take the frames: {error}", next.name()))
        })?;
        self.pad.set(Some(pad));
        // The first frame comes behind the tags, and nothing has passed yet.
        let (source, watch) = (self.clone(), watch.clone());
        pad.add_probe(gst::PadProbeType::BLOCK | gst::PadProbeType::BUFFER, move |pad, _| {
            let orientation = upright::orientation(pad);
            source.facts().orientation = orientation;
            if is_upright
                && orientation != upright::STORED
                && let Err(failure) = upright::turn(pad, orientation)
            {
                watch.fail(failure);
            }
            gst::PadProbeReturn::Remove
        });
        if self.passage.part.as_ref().is_some_and(|part| part.from.is_some()) {
            let (source, decoder) = (self.clone(), decoder.downgrade());
            let kind = gst::PadProbeType::BLOCK | gst::PadProbeType::BUFFER;
            pad.add_probe(kind, move |_, _| source.wait_for_seek(decoder.upgrade()));
        }
        let source = self.clone();
        pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| match &info.data {
            Some(gst::PadProbeData::Buffer(buffer)) => source.pass(pad, buffer),
            _ => gst::PadProbeReturn::Ok,
        });
        Ok(())
    }

    /// Reads a stream that is not decoded to its end, for its length.
    fn measure(self: &Arc<Self>, pad: &gst::Pad, next: &gst::Element, watch: &Arc<Watch>) -> Result<()> {
        let bin = next.parent().and_downcast::<gst::Bin>();
        let bin = bin.ok_or_else(|| Failure::machine("an element without a bin"))?;
        let sink =
            gst::ElementFactory::make("fakesink").property("sync", false).property("async", false).build()?;
        bin.add(&sink)?;
        sink.sync_state_with_parent()?;
        let end = sink.static_pad("sink").ok_or_else(|| Failure::machine("fakesink has no pad"))?;
        pad.link(&end).map_err(|error| Failure::machine(format!("a stream goes nowhere: {error}")))?;
        let (source, watch) = (self.clone(), watch.clone());
        pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
            if let Some(gst::PadProbeData::Buffer(buffer)) = &info.data {
                source.reach(pad, buffer);
                watch.count_other();
            }
            gst::PadProbeReturn::Ok
        });
        Ok(())
    }

    /// Notes how far a stream has come.
    fn reach(&self, pad: &gst::Pad, buffer: &gst::BufferRef) {
        let Some(time) = stream_time(pad, buffer) else { return };
        let end = time.saturating_add(buffer.duration().unwrap_or_default()).nseconds();
        let mut facts = self.facts();
        facts.length.reached = facts.length.reached.max(end);
    }

    fn ask_length(&self) {
        let Some(pad) = self.pad.upgrade() else { return };
        let stated = pad.query_duration::<gst::ClockTime>().map(gst::ClockTime::nseconds);
        let offset = pad.sticky_event::<gst::event::Segment>(0).and_then(|event| {
            let segment = event.segment().downcast_ref::<gst::ClockTime>()?.clone();
            Some(segment.start()?.saturating_sub(segment.time()?).nseconds())
        });
        let length = &mut self.facts().length;
        length.stated = stated.max(length.stated);
        length.offset = offset.unwrap_or(length.offset);
    }

    /// Holds the first frame back, which the flush of the seek throws away, and lets those behind it pass.
    fn wait_for_seek(&self, decoder: Option<gst::Element>) -> gst::PadProbeReturn {
        if self.asked.swap(true, Ordering::Relaxed) {
            return gst::PadProbeReturn::Remove;
        }
        if let Some(decoder) = decoder {
            let seek =
                gst::message::Application::builder(gst::Structure::new_empty(SEEK)).src(&decoder).build();
            let _ = decoder.post_message(seek);
        }
        gst::PadProbeReturn::Ok
    }

    /// Decides if a frame passes.
    fn pass(&self, pad: &gst::Pad, buffer: &gst::Buffer) -> gst::PadProbeReturn {
        let is_known = self.facts().length.stated.is_some();
        if !is_known {
            self.ask_length();
        }
        self.reach(pad, buffer);
        let time = stream_time(pad, buffer).map(gst::ClockTime::nseconds);
        if let Some(part) = &self.passage.part {
            if part.from.is_some_and(|from| time.is_none_or(|time| time < from)) {
                return gst::PadProbeReturn::Drop;
            }
            if part.to.is_some_and(|to| time.is_none_or(|time| time >= to)) {
                // To the next element alone: the demuxer may take a pad that has ended for an error.
                if let (false, Some(next)) = (self.ended.swap(true, Ordering::Relaxed), pad.peer()) {
                    next.send_event(gst::event::Eos::new());
                }
                return gst::PadProbeReturn::Drop;
            }
        }
        // Repeating the segment is the documented way to make `superpixel` start anew.
        if time.is_some_and(|time| self.passage.restarts.contains(&time))
            && let Some(segment) = pad.sticky_event::<gst::event::Segment>(0)
        {
            pad.push_event(gst::event::Segment::new(segment.segment()));
        }
        gst::PadProbeReturn::Ok
    }
}

/// Returns true for a pad with sound, text or the like that has left the container.
fn is_beside_video(pad: &gst::Pad, caps: &gst::CapsRef) -> bool {
    let inner = pad.downcast_ref::<gst::GhostPad>().and_then(GhostPadExt::target);
    let element = inner.as_ref().unwrap_or(pad).parent_element().and_then(|element| element.factory());
    element.is_none_or(|factory| factory.name() != "typefind")
        && has_kind(caps, &["audio/", "text/", "subtitle/", "subpicture/", "closedcaption/", "meta/"])
}

fn has_kind(caps: &gst::CapsRef, kinds: &[&str]) -> bool {
    caps.structure(0).is_some_and(|structure| kinds.iter().any(|kind| structure.name().starts_with(kind)))
}

/// When a frame is due, counted from the start of the clip.
pub fn stream_time(pad: &gst::Pad, buffer: &gst::BufferRef) -> Option<gst::ClockTime> {
    let segment = pad.sticky_event::<gst::event::Segment>(0)?;
    segment.segment().downcast_ref::<gst::ClockTime>()?.to_stream_time(buffer.pts()?)
}

fn has_given_up(element: &gst::Element) -> bool {
    let is_demuxer = |factory: gst::ElementFactory| factory.has_type(gst::ElementFactoryType::DEMUXER);
    let has_stopped =
        |pad: &gst::Pad| pad.mode() == gst::PadMode::Pull && pad.task_state() != gst::TaskState::Started;
    element.factory().is_some_and(is_demuxer)
        && element.src_pads().is_empty()
        && element.sink_pads().iter().any(has_stopped)
}

fn is_decoder(factory: &gst::ElementFactory) -> bool {
    factory.has_type(DECODERS)
}

/// Puts decoders of the hardware before all others, or leaves them out. Where they are refused, decodebin takes the next.
fn prefer(hardware: bool) {
    for factory in gst::ElementFactory::factories_with_type(DECODERS, gst::Rank::NONE) {
        let class = factory.metadata(gst::ELEMENT_METADATA_KLASS).unwrap_or_default();
        if class.contains("Hardware") && factory.rank() >= gst::Rank::MARGINAL {
            factory.set_rank(if hardware { gst::Rank::PRIMARY + 64 } else { gst::Rank::NONE });
        }
    }
}
