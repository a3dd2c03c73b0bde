// SPDX-License-Identifier: MPL-2.0
//! The elements, fed with buffers, metas, caps, events and queries that no honest neighbor would send, and with a downstream
//! pool whose buffers are not what they claim: no panic, no access outside, no hang; what leaves is what was promised.
//!
//! `SUPERPIXEL_FUZZ_BACKEND=cuda` takes that backend instead of `cpu`.
#![no_main]

use std::sync::{Arc, Mutex};

use arbitrary::{Result, Unstructured};
use gst::glib;
use gst::prelude::*;
use gstsuperpixel::image::NO_LABEL;
use gstsuperpixel::meta::SuperpixelMeta;
use libfuzzer_sys::fuzz_target;
use superpixel_fuzz::draw::rarely;
use superpixel_fuzz::pool::Pool;
use superpixel_fuzz::stream;

/// Expected results of the frame that is in the element.
#[derive(Default)]
struct Expected {
    /// Label map of a frame whose metadata can be read, with its width.
    labels: Option<(u32, Vec<u16>)>,
}

/// Events that downstream has got, and expectations about the next.
#[derive(Default)]
struct Downstream {
    info: Option<gst_video::VideoInfo>,
    expected: Expected,
    /// Return value of the next push.
    answer: Option<gst::FlowError>,
    pool: Option<Pool>,
    frames: u32,
}

/// An element between two pads.
struct Fixture {
    element: gst::Element,
    labels: bool,
    /// True for `superpixelobjects`.
    objects: bool,
    source: gst::Pad,
    sink: gst::Pad,
    bus: gst::Bus,
    downstream: Arc<Mutex<Downstream>>,
    info: gst_video::VideoInfo,
}

impl Fixture {
    fn new(u: &mut Unstructured<'_>) -> Result<Self> {
        let labels = rarely(u, 3)?;
        let objects = !labels && rarely(u, 3)?;
        let element = if labels {
            gst::ElementFactory::make("superpixellabels").build()
        } else if objects {
            gst::ElementFactory::make("superpixelobjects").build()
        } else {
            let backend = std::env::var("SUPERPIXEL_FUZZ_BACKEND").unwrap_or_else(|_| "cpu".into());
            let builder = gst::ElementFactory::make("superpixel").property_from_str("backend", &backend);
            let builder = builder.property("threads", 1u32);
            if backend == "cpu" {
                builder.build()
            } else {
                builder.property("async-depth", u.int_in_range(0..=3u32)?).build()
            }
        };
        let element = element.expect("the element is registered");
        let bus = gst::Bus::new();
        element.set_bus(Some(&bus));
        let downstream = Arc::new(Mutex::new(Downstream::default()));
        let source = gst::Pad::builder(gst::PadDirection::Src)
            .query_function(|pad, parent, query| match query.view_mut() {
                gst::QueryViewMut::Latency(latency) => {
                    let longest = gst::ClockTime::from_nseconds(u64::MAX - 1);
                    latency.set(true, longest, longest);
                    true
                }
                _ => gst::Pad::query_default(pad, parent, query),
            })
            .build();
        let (seen, asked, told) = (downstream.clone(), downstream.clone(), downstream.clone());
        let sink = gst::Pad::builder(gst::PadDirection::Sink)
            .chain_function(move |_, _, buffer| receive(&seen, &buffer, labels))
            .event_function(move |pad, parent, event| {
                if let gst::EventView::Caps(caps) = event.view() {
                    told.lock().unwrap().info = gst_video::VideoInfo::from_caps(caps.caps()).ok();
                }
                gst::Pad::event_default(pad, parent, event)
            })
            .query_function(move |pad, parent, query| match query.view_mut() {
                gst::QueryViewMut::Allocation(allocation) => {
                    let Some(pool) = asked.lock().unwrap().pool.clone() else { return false };
                    allocation.add_allocation_pool(Some(&pool), pool.claimed_size(), 0, 0);
                    allocation.add_allocation_meta::<gst_video::VideoMeta>(None);
                    true
                }
                _ => gst::Pad::query_default(pad, parent, query),
            })
            .build();
        source.link(&element.static_pad("sink").expect("sink")).expect("linked");
        element.static_pad("src").expect("src").link(&sink).expect("linked");
        for pad in [&source, &sink] {
            pad.set_active(true).expect("active");
        }
        let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Rgb, 16, 12)
            .build()
            .expect("a small frame");
        Ok(Self { element, labels, objects, source, sink, bus, downstream, info })
    }

    /// A property with a value that GObject takes.
    fn set_property(&self, u: &mut Unstructured<'_>) -> Result<()> {
        let properties = self.element.list_properties();
        let property = u.choose(&properties)?;
        let name = property.name();
        // These say where and how frames are segmented, not into which regions; the last two are the parent class's.
        let fixed = ["backend", "threads", "cuda-device-id", "async-depth", "name", "parent"].contains(&name);
        if fixed || !property.flags().contains(glib::ParamFlags::WRITABLE) {
            return Ok(());
        }
        if let Some(spec) = property.downcast_ref::<glib::ParamSpecUInt>() {
            let value = match u.int_in_range(0..=4)? {
                0 => spec.minimum(),
                1 => spec.maximum(),
                2 => u.int_in_range(spec.minimum()..=spec.maximum())?,
                _ => u.int_in_range(spec.minimum()..=spec.maximum().min(spec.minimum() + 20))?,
            };
            self.element.set_property(name, value);
        } else if let Some(spec) = property.downcast_ref::<glib::ParamSpecFloat>() {
            let part = f32::from(u.arbitrary::<u8>()?) / 255.0;
            let value = spec.minimum() + part * part * (spec.maximum() - spec.minimum());
            let value = value.clamp(spec.minimum(), spec.maximum());
            // Quick shift takes time with the square of these.
            self.element
                .set_property(name, if matches!(name, "sigma" | "tau") { value.min(6.0) } else { value });
        } else if property.downcast_ref::<glib::ParamSpecBoolean>().is_some() {
            self.element.set_property(name, u.arbitrary::<bool>()?);
        } else if let Some(spec) = property.downcast_ref::<glib::ParamSpecEnum>() {
            let values = spec.enum_class().values().to_vec();
            self.element.set_property_from_str(name, u.choose(&values)?.nick());
        } else if property.downcast_ref::<glib::ParamSpecString>().is_some() {
            let texts =
                ["", "0", "1,3-9", "fuzz", "3,2,5,7", "-9,-9,2147483647,2147483647", "7,,", "65535-0"];
            self.element.set_property(name, *u.choose(&texts)?);
        }
        Ok(())
    }

    /// Returns true if no property excludes another.
    fn goes_together(&self) -> bool {
        if self.labels || self.objects {
            return true;
        }
        let on_cpu_only = self.element.property_value("algo").serialize().expect("text") == "snic";
        let on_device = self.element.property_value("backend").serialize().expect("text") == "cuda";
        let merges = self.element.property::<f32>("merge") > 0.0;
        !(merges && self.element.property::<u32>("regions") > 0 || on_cpu_only && on_device)
    }

    /// Caps of the template, mostly.
    fn set_caps(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let taken = &stream::FORMATS[..stream::FORMATS.len() - stream::OTHERS];
        let format = if rarely(u, 12)? { *u.choose(&stream::FORMATS)? } else { *u.choose(taken)? };
        let (width, height) = if rarely(u, 10)? {
            (u.int_in_range(1..=300)?, u.int_in_range(1..=40)?)
        } else {
            (u.int_in_range(1..=24)?, u.int_in_range(1..=20)?)
        };
        let rates = [(25, 1), (0, 1), (30000, 1001), (1, i32::MAX), (i32::MAX, 1)];
        let (numerator, denominator) = *u.choose(&rates)?;
        let mut caps = gst::Caps::builder("video/x-raw")
            .field("format", format)
            .field("width", width)
            .field("height", height)
            .field("framerate", gst::Fraction::new(numerator, denominator));
        if rarely(u, 4)? {
            let words = ["bt709", "bt601", "bt2020-10", "sRGB", "1:4:0:0", "2:3:5:1", "9:9:9:9", ""];
            caps = caps.field("colorimetry", *u.choose(&words)?);
        }
        if rarely(u, 8)? {
            let words = ["interleaved", "mixed", "fields", "alternate", "progressive"];
            caps = caps.field("interlace-mode", *u.choose(&words)?);
        }
        if rarely(u, 8)? {
            caps = caps.field(
                "pixel-aspect-ratio",
                gst::Fraction::new(u.int_in_range(1..=9)?, u.int_in_range(1..=9)?),
            );
        }
        let mut caps = caps.build();
        if rarely(u, 12)? {
            let features = *u.choose(&["memory:CUDAMemory", "memory:DMABuf", "format:Interlaced"])?;
            caps.make_mut().set_features_simple(Some(gst::CapsFeatures::new([features])));
        }
        if rarely(u, 12)? {
            caps.make_mut().set("width", *u.choose(&[0, -1, 16384, 16385, i32::MAX])?);
        }
        if self.source.push_event(gst::event::Caps::new(&caps))
            && let Ok(info) = gst_video::VideoInfo::from_caps(&caps)
            && info.size() < 1 << 17
        {
            self.info = info;
        }
        Ok(())
    }

    /// A buffer of the caps, or what claims to be one.
    fn push(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let mut buffer = stream::bytes(u, self.info.size())?;
        let (width, height) = (self.info.width(), self.info.height());
        let writable = buffer.get_mut().expect("a new buffer");
        for _ in 0..*u.choose(&[0, 1, 1, 2])? {
            stream::add_video_meta(u, writable, &self.info)?;
        }
        if !self.labels {
            for _ in 0..u.int_in_range(0..=2)? {
                let side = |u: &mut Unstructured<'_>| -> Result<u32> {
                    if rarely(u, 4)? { u.arbitrary() } else { u.int_in_range(0..=30) }
                };
                let place = (side(u)?, side(u)?, side(u)?, side(u)?);
                gst_video::VideoRegionOfInterestMeta::add(writable, "fuzz", place);
            }
        }
        if self.labels || self.objects || rarely(u, 4)? {
            for _ in 0..if rarely(u, 9)? { 2 } else { 1 } {
                stream::add_superpixel_meta(u, writable, width, height)?;
            }
        }
        if rarely(u, 6)? {
            gst_video::VideoCropMeta::add(writable, (1, 1, 5, 5));
        }
        let time = |u: &mut Unstructured<'_>| -> Result<Option<gst::ClockTime>> {
            Ok(match u.int_in_range(0..=5)? {
                0 => None,
                1 => Some(gst::ClockTime::from_nseconds(u64::MAX - 1)),
                2 => Some(gst::ClockTime::from_nseconds(u.int_in_range(0..=u64::MAX - 1)?)),
                _ => Some(gst::ClockTime::from_mseconds(40) * u.int_in_range(0..=50)?),
            })
        };
        writable.set_pts(time(u)?);
        writable.set_dts(time(u)?);
        writable.set_duration(time(u)?);
        writable.set_flags(gst::BufferFlags::from_bits_truncate(u32::from(u.arbitrary::<u16>()?) << 4));
        let shared = rarely(u, 3)?.then(|| buffer.clone());
        {
            let mut downstream = self.downstream.lock().unwrap();
            downstream.answer = None;
            if rarely(u, 10)? {
                let answers = [
                    gst::FlowError::Eos,
                    gst::FlowError::Flushing,
                    gst::FlowError::NotLinked,
                    gst::FlowError::Error,
                ];
                downstream.answer = Some(*u.choose(&answers)?);
            }
            downstream.expected.labels = None;
            if self.labels
                && let Some(meta) = SuperpixelMeta::from_buffer(&buffer)
                && !self.element.property::<bool>("identity")
                && !self.element.property::<bool>("objects")
                && self.element.property::<f32>("outline-smoothness") == 0.0
                && meta.width() <= 512
                && meta.height() <= 512
                && let Ok(labels) = meta.labels()
            {
                downstream.expected.labels = Some((meta.width(), labels.as_slice().to_vec()));
            }
        }
        let _ = self.source.push(buffer);
        drop(shared);
        Ok(())
    }

    fn event(&self, u: &mut Unstructured<'_>) -> Result<()> {
        let _ = match u.int_in_range(0..=8)? {
            0 => self.source.push_event(gst::event::FlushStart::new()),
            1 => self.source.push_event(gst::event::FlushStop::new(u.arbitrary()?)),
            2 | 3 => {
                let mut segment = gst::FormattedSegment::<gst::ClockTime>::new();
                let rate = *u.choose(&[1.0, -1.0, 0.5, 2.0, -0.001, 1e300, f64::MIN_POSITIVE])?;
                segment.set_rate(rate);
                segment.set_applied_rate(*u.choose(&[1.0, -1.0, 4.0])?);
                let time = |u: &mut Unstructured<'_>| -> Result<gst::ClockTime> {
                    Ok(gst::ClockTime::from_nseconds(if u.arbitrary()? {
                        0
                    } else {
                        u.int_in_range(0..=u64::MAX - 1)?
                    }))
                };
                segment.set_start(time(u)?);
                segment.set_time(time(u)?);
                segment.set_base(time(u)?);
                // GStreamer itself asks for an end where time goes backwards.
                if rate < 0.0 || u.arbitrary()? {
                    segment.set_stop(time(u)?);
                }
                self.source.push_event(gst::event::Segment::new(&segment))
            }
            4 => {
                let segment = gst::FormattedSegment::<gst::format::Bytes>::new();
                self.source.push_event(gst::event::Segment::new(&segment))
            }
            5 => {
                let start = gst::ClockTime::from_nseconds(u.int_in_range(0..=u64::MAX - 1)?);
                self.source.push_event(gst::event::Gap::builder(start).duration(start).build())
            }
            6 => self.source.push_event(gst::event::StreamStart::new("again")),
            7 => self.source.push_event(gst::event::Eos::new()),
            _ => self.sink.push_event(match u.int_in_range(0..=2)? {
                0 => gst::event::Reconfigure::new(),
                1 => gst::event::Qos::new(gst::QOSType::Underflow, 3.5, i64::MAX, gst::ClockTime::SECOND),
                _ => gst::event::Latency::new(gst::ClockTime::SECOND),
            }),
        };
        Ok(())
    }

    fn query(&self, u: &mut Unstructured<'_>) -> Result<()> {
        match u.int_in_range(0..=4)? {
            0 => {
                self.sink.peer_query(&mut gst::query::Latency::new());
            }
            1 => {
                self.sink.peer_query(&mut gst::query::Position::new(gst::Format::Time));
            }
            2 => {
                self.source.peer_query(&mut gst::query::Drain::new());
            }
            3 => {
                let caps = self.info.to_caps().ok();
                self.source.peer_query(&mut gst::query::Allocation::new(caps.as_ref(), u.arbitrary()?));
            }
            _ => drop((self.source.peer_query_caps(None), self.sink.peer_query_caps(None))),
        }
        Ok(())
    }

    /// A signal of an application.
    fn request(&self, u: &mut Unstructured<'_>) -> Result<()> {
        let number = |u: &mut Unstructured<'_>| -> Result<i32> {
            if rarely(u, 4)? { u.arbitrary() } else { u.int_in_range(-3..=30) }
        };
        let id: u32 = u.int_in_range(0..=3)?;
        let [x, y, width, height] = [number(u)?, number(u)?, number(u)?, number(u)?];
        let is_inside: bool = u.arbitrary()?;
        let element = &self.element;
        match u.int_in_range(0..=3)? {
            0 => {
                element.emit_by_name::<u32>("add-object", &[&x, &y, &width, &height]);
            }
            1 => {
                element.emit_by_name::<u32>("add-point", &[&id, &x, &y, &is_inside]);
            }
            2 => {
                element.emit_by_name::<bool>("update-object", &[&id, &x, &y, &width, &height]);
            }
            _ => {
                element.emit_by_name::<bool>("remove-object", &[&id]);
            }
        }
        Ok(())
    }

    fn step(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        match u.int_in_range(0..=15)? {
            0 => self.set_caps(u)?,
            1..=3 => self.set_property(u)?,
            4 | 5 => self.event(u)?,
            6 => self.query(u)?,
            8 if self.objects && u.arbitrary()? => self.request(u)?,
            7 => {
                let pool = u.arbitrary::<bool>()?.then(|| u.bytes(24).map(Pool::new)).transpose()?;
                self.downstream.lock().unwrap().pool = pool;
                self.sink.push_event(gst::event::Reconfigure::new());
            }
            8 if rarely(u, 3)? => {
                let state = *u.choose(&[gst::State::Null, gst::State::Ready, gst::State::Paused])?;
                let _ = self.element.set_state(state);
                let _ = self.element.set_state(gst::State::Playing);
                self.start();
                self.set_caps(u)?;
            }
            _ => self.push(u)?,
        }
        while self.bus.pop().is_some() {}
        Ok(())
    }

    fn start(&self) {
        self.source.push_event(gst::event::StreamStart::new("fuzz"));
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = self.source.set_active(false);
        let _ = self.element.set_state(gst::State::Null);
        let _ = self.sink.set_active(false);
        let _ = self.source.unlink(&self.element.static_pad("sink").expect("sink"));
        let _ = self.element.static_pad("src").expect("src").unlink(&self.sink);
        // Messages hold the element, which holds the bus.
        self.bus.set_flushing(true);
        self.element.set_bus(None);
        assert_eq!(self.element.ref_count(), 1, "somebody holds the element");
    }
}

/// Looks at what leaves the element.
fn receive(
    downstream: &Mutex<Downstream>,
    buffer: &gst::BufferRef,
    labels: bool,
) -> Result<gst::FlowSuccess, gst::FlowError> {
    let mut downstream = downstream.lock().unwrap();
    downstream.frames += 1;
    if let Some(answer) = downstream.answer {
        return Err(answer);
    }
    let Some(info) = &downstream.info else { return Ok(gst::FlowSuccess::Ok) };
    if labels {
        if let Some((width, expected)) = &downstream.expected.labels {
            let rows = rows(buffer, info).expect("a frame left whose memory does not hold it");
            assert_eq!(*width, info.width(), "labels of another size");
            let big = info.format() == gst_video::VideoFormat::Gray16Be;
            let written: Vec<u16> = rows
                .chunks_exact(2)
                .map(
                    |b| if big { u16::from_be_bytes([b[0], b[1]]) } else { u16::from_le_bytes([b[0], b[1]]) },
                )
                .collect();
            assert!(written == *expected, "the frame that left is not the label map");
        }
    } else if let Some(meta) = SuperpixelMeta::from_buffer(buffer)
        && (meta.width(), meta.height()) == (info.width(), info.height())
        && meta.algo() != "fuzz"
    {
        // Metadata that was attached to the buffers earlier has another name.
        let map = meta.labels().expect("the element's own labels");
        assert!(map.as_slice().iter().all(|&label| label == NO_LABEL || u32::from(label) < meta.regions()));
        meta.table().expect("the element's own table");
        meta.motion().expect("the element's own motion");
        meta.neighbors().expect("the element's own neighbors");
    }
    Ok(gst::FlowSuccess::Ok)
}

/// The rows of a frame of one plane of 16 bits, as its video meta or the caps say; nothing where its memory ends before.
fn rows(buffer: &gst::BufferRef, info: &gst_video::VideoInfo) -> Option<Vec<u8>> {
    let (offset, stride) = match buffer.meta::<gst_video::VideoMeta>() {
        Some(meta) => (*meta.offset().first()?, *meta.stride().first()?),
        None => (info.offset()[0], info.stride()[0]),
    };
    let stride = usize::try_from(stride).ok()?;
    let map = buffer.map_readable().ok()?;
    let row = 2 * info.width() as usize;
    let mut rows = Vec::new();
    for y in 0..info.height() as usize {
        let start = offset.checked_add(stride.checked_mul(y)?)?;
        rows.extend_from_slice(map.get(start..start.checked_add(row)?)?);
    }
    Some(rows)
}

fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let mut fixture = Fixture::new(u)?;
    if u.arbitrary()? {
        fixture.downstream.lock().unwrap().pool = Some(Pool::new(u.bytes(24)?));
    }
    for _ in 0..u.int_in_range(0..=4)? {
        fixture.set_property(u)?;
    }
    if fixture.element.set_state(gst::State::Playing).is_err() {
        assert!(!fixture.goes_together(), "refuses to start");
        return Ok(());
    }
    fixture.start();
    fixture.set_caps(u)?;
    if !rarely(u, 16)? {
        fixture.source.push_event(gst::event::Segment::new(&gst::FormattedSegment::<gst::ClockTime>::new()));
    }
    for _ in 0..12 {
        if u.is_empty() {
            break;
        }
        fixture.step(u)?;
        assert!(fixture.goes_together(), "a write that should have been refused");
    }
    Ok(())
}

fuzz_target!(
    init: stream::init(),
    |data: &[u8]| {
        let _ = run(&mut Unstructured::new(data));
        assert_eq!(stream::live(), 0, "memories are left");
    }
);
