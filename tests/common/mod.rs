// SPDX-License-Identifier: MPL-2.0
//! Helpers for the tests of the elements: start-up, pictures as buffers, and the library's answer for a buffer.
#![allow(dead_code)]

use std::sync::Once;

use gst::prelude::*;
use gst_video::prelude::*;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{Frame, FrameInfo, FrameMut, Geometry, Labels, PixelFormat, Prior, YuvMatrix};
use gstsuperpixel::params::{Drawing, Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::regions::Regions;

/// Longest wait for anything before a test counts as hanging.
pub const PATIENCE: gst::ClockTime = gst::ClockTime::from_seconds(120);

/// Starts GStreamer with the plugin, once.
///
/// When tracers are asked for (GST_TRACERS=leaks), GStreamer is shut down after the last test, for that is when they
/// report.
pub fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        gst::init().expect("GStreamer");
        gstsuperpixel::plugin_register_static().expect("plugin");
        if std::env::var_os("GST_TRACERS").is_some() {
            // SAFETY: the handler is a plain function; at exit all tests have ended.
            unsafe { atexit(shut_down) };
        }
    });
}

unsafe extern "C" {
    fn atexit(handler: extern "C" fn()) -> std::ffi::c_int;
}

extern "C" fn shut_down() {
    // SAFETY: nothing uses GStreamer after the tests.
    unsafe { gst::deinit() };
}

/// Every format that the elements offer in system memory, by GStreamer's name.
pub fn formats() -> impl Iterator<Item = (&'static str, PixelFormat)> {
    init();
    let known = |name: &str| gst_video::VideoFormat::from_string(name) != gst_video::VideoFormat::Unknown;
    PixelFormat::ALL.into_iter().map(|format| (format.name(), format)).filter(move |(name, _)| known(name))
}

/// A stream of the default colorimetry.
pub fn info(format: &str, width: u32, height: u32) -> gst_video::VideoInfo {
    init();
    gst_video::VideoInfo::builder(format.parse().expect("format"), width, height)
        .fps(gst::Fraction::new(25, 1))
        .build()
        .expect("video info")
}

/// Caps of [`info`].
pub fn caps(format: &str, width: u32, height: u32) -> gst::Caps {
    info(format, width, height).to_caps().expect("caps")
}

/// The library's description of a stream of [`info`]: BT.601 in studio range, gray in full range.
pub fn frame_info(info: &gst_video::VideoInfo) -> FrameInfo {
    let name = info.format().to_str().to_string();
    let format = formats().find(|(n, _)| *n == name).expect("format").1;
    let full_range = format.is_rgb() || format.is_gray();
    let geometry = Geometry::new(info.width(), info.height()).expect("geometry");
    FrameInfo { geometry, format, matrix: YuvMatrix::Bt601, full_range }
}

/// Sample of a test picture: two tilted areas with a gradient and noise.
fn sample(seed: u32, plane: usize, x: usize, y: usize) -> u8 {
    let mut hash = (seed ^ 0x9e37_79b9).wrapping_add((plane * 0x0100_0003 + y * 7919 + x * 104_729) as u32);
    hash = (hash ^ (hash >> 15)).wrapping_mul(0x2c1b_3c6d);
    hash ^= hash >> 12;
    let area = [60, 150][(2 * x + 3 * y + seed as usize * 5) / 41 % 2];
    (area + (x + 2 * y + 31 * plane) % 50 + (hash % 24) as usize).min(255) as u8
}

/// Value of the bytes between rows and planes.
pub const PADDING: u8 = 0xa5;

/// A picture; with `padding`, planes start later and rows are longer than GStreamer's default, as a video meta says.
pub fn picture(info: &gst_video::VideoInfo, seed: u32, padding: usize) -> gst::Buffer {
    let frame = frame_info(info);
    let shapes: Vec<_> = frame.format.planes(frame.geometry).collect();
    let (mut offsets, mut strides, mut end) = (Vec::new(), Vec::new(), padding);
    for (plane, (row, rows)) in shapes.iter().enumerate() {
        let stride = if padding == 0 { info.stride()[plane] as usize } else { row + padding };
        let offset = if padding == 0 { info.offset()[plane] } else { end };
        offsets.push(offset);
        strides.push(stride as i32);
        end = offset + stride * rows + padding;
    }
    let mut bytes = vec![PADDING; end.max(info.size())];
    for (plane, (row, rows)) in shapes.iter().enumerate() {
        for y in 0..*rows {
            for x in 0..*row {
                bytes[offsets[plane] + y * strides[plane] as usize + x] = sample(seed, plane, x, y);
            }
        }
    }
    let mut buffer = gst::Buffer::from_mut_slice(bytes);
    let writable = buffer.get_mut().expect("fresh buffer");
    writable.set_pts(gst::ClockTime::from_mseconds(40) * u64::from(seed));
    writable.set_duration(gst::ClockTime::from_mseconds(40));
    if padding > 0 {
        let flags = gst_video::VideoFrameFlags::empty();
        let (width, height) = (info.width(), info.height());
        gst_video::VideoMeta::add_full(writable, flags, info.format(), width, height, &offsets, &strides)
            .expect("video meta");
    }
    buffer
}

/// All bytes of a buffer.
pub fn bytes(buffer: &gst::BufferRef) -> Vec<u8> {
    buffer.map_readable().expect("readable").to_vec()
}

/// The rows of a frame without what stands between them.
pub fn pixels(buffer: &gst::BufferRef, info: &gst_video::VideoInfo) -> Vec<u8> {
    let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, info).unwrap();
    let shapes = frame_info(info);
    let mut out = Vec::new();
    for (plane, (row, rows)) in shapes.format.planes(shapes.geometry).enumerate() {
        let stride = frame.plane_stride()[plane] as usize;
        let data = frame.plane_data(plane as u32).unwrap();
        (0..rows).for_each(|y| out.extend_from_slice(&data[y * stride..][..row]));
    }
    out
}

/// The library's results for a frame.
pub struct Answer {
    pub labels: Vec<u16>,
    pub regions: Regions,
    /// All bytes of the buffer, padding too, after drawing.
    pub drawn: Vec<u8>,
}

/// Segments the picture in a buffer, and draws on a copy, by the library alone.
pub fn library(
    buffer: &gst::BufferRef,
    info: &gst_video::VideoInfo,
    frame: FrameInfo,
    params: &Params,
    drawing: Option<&Drawing>,
) -> Answer {
    library_with(buffer, info, frame, params, drawing, false)
}

/// Like [`library`], with means of light.
pub fn library_with(
    buffer: &gst::BufferRef,
    info: &gst_video::VideoInfo,
    frame: FrameInfo,
    params: &Params,
    drawing: Option<&Drawing>,
    linear_light: bool,
) -> Answer {
    let outputs = Outputs { table: true, neighbors: true, mean_color: true, linear_light };
    let plan = Plan::new(params, frame).expect("plan");
    let mut engine = Engine::new(Cpu::new(1).expect("cpu"), plan).expect("engine");
    library_on(&mut engine, buffer, info, drawing, outputs, None)
}

/// Like [`library`], with an engine for the frames of a clip, and where there is one a mask of a byte a pixel.
pub fn library_on(
    engine: &mut Engine<Cpu>,
    buffer: &gst::BufferRef,
    info: &gst_video::VideoInfo,
    drawing: Option<&Drawing>,
    outputs: Outputs,
    mask: Option<&[u8]>,
) -> Answer {
    library_in(engine, buffer, info, drawing, outputs, mask, None)
}

/// The same with a prior.
#[allow(clippy::too_many_arguments)]
pub fn library_in(
    engine: &mut Engine<Cpu>,
    buffer: &gst::BufferRef,
    info: &gst_video::VideoInfo,
    drawing: Option<&Drawing>,
    outputs: Outputs,
    mask: Option<&[u8]>,
    prior: Option<Prior<'_>>,
) -> Answer {
    let frame = engine.plan().frame();
    let meta = buffer.meta::<gst_video::VideoMeta>();
    let shapes: Vec<_> = frame.format.planes(frame.geometry).collect();
    let planes = shapes.len();
    let (offsets, strides): (Vec<usize>, Vec<usize>) = match &meta {
        Some(meta) => (meta.offset().to_vec(), meta.stride().iter().map(|s| *s as usize).collect()),
        None => {
            (info.offset()[..planes].to_vec(), info.stride()[..planes].iter().map(|s| *s as usize).collect())
        }
    };
    let mut drawn = bytes(buffer);
    let mut labels = vec![0; frame.geometry.pixels()];
    let mut plane =
        Labels::new(frame.geometry, &mut labels, frame.geometry.width() as usize).expect("labels");
    let length = |plane: usize| strides[plane] * (shapes[plane].1 - 1) + shapes[plane].0;
    let slices: Vec<&[u8]> = (0..planes).map(|i| &drawn[offsets[i]..][..length(i)]).collect();
    let readable = Frame::new(frame, &slices, &strides).expect("frame");
    let readable = match mask {
        Some(mask) => readable.with_mask(mask, frame.geometry.width() as usize).expect("mask"),
        None => readable,
    };
    let readable = prior.map_or(readable, |prior| readable.with_prior(prior));
    let regions = engine.segment(&readable, &mut plane, outputs).expect("segment").clone();
    if let Some(drawing) = drawing {
        let mut rest = drawn.as_mut_slice();
        let mut parts = Vec::new();
        for plane in (0..planes).rev() {
            let (before, part) = rest.split_at_mut(offsets[plane]);
            parts.insert(0, &mut part[..length(plane)]);
            rest = before;
        }
        let mut writable = FrameMut::new(frame, parts, &strides).expect("frame");
        engine.draw(&mut writable, &plane, drawing).expect("draw");
    }
    Answer { labels, regions, drawn }
}

/// A bus for an element outside of a pipeline.
pub struct TestBus(gst::Bus);

impl TestBus {
    /// Gives an element a bus of its own.
    pub fn new(element: &gst::Element) -> Self {
        let bus = gst::Bus::new();
        element.set_bus(Some(&bus));
        Self(bus)
    }
}

impl std::ops::Deref for TestBus {
    type Target = gst::Bus;

    fn deref(&self) -> &gst::Bus {
        &self.0
    }
}

impl Drop for TestBus {
    fn drop(&mut self) {
        // Messages hold their element, which holds the bus: this ends the circle.
        self.0.set_flushing(true);
    }
}

/// An element in a harness that has no caps yet, and its bus.
pub fn harness(element: &gst::Element) -> (gst_check::Harness, TestBus) {
    let bus = TestBus::new(element);
    (gst_check::Harness::with_element(element, Some("sink"), Some("src")), bus)
}

/// The element `superpixel` with small superpixels, each frame by itself, as [`library`] has it.
pub fn superpixel() -> gst::Element {
    init();
    gst::ElementFactory::make("superpixel")
        .property("threads", 2u32)
        .property("superpixel-size", 8u32)
        .property("temporal", false)
        .build()
        .expect("superpixel")
}

/// Parameters of [`superpixel`].
pub fn params() -> Params {
    Params { superpixel_size: 8, stretch_gray16: true, ..Params::default() }
}

/// The text of the error on a bus, with its advice.
pub fn error_on(bus: &gst::Bus) -> Option<String> {
    match bus.pop_filtered(&[gst::MessageType::Error])?.view() {
        gst::MessageView::Error(error) => Some(error.error().to_string()),
        _ => None,
    }
}

/// The text of the warning on a bus.
pub fn warning_on(bus: &gst::Bus) -> Option<String> {
    match bus.pop_filtered(&[gst::MessageType::Warning])?.view() {
        gst::MessageView::Warning(warning) => Some(warning.error().to_string()),
        _ => None,
    }
}

/// Makes a pipeline.
pub fn launch(line: &str) -> gst::Pipeline {
    init();
    let element = gst::parse::launch(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    element.downcast().expect("a pipeline")
}

/// Plays a pipeline until its end or its error and returns the error's text.
pub fn play_to_end(pipeline: &gst::Pipeline) -> Result<(), String> {
    let bus = pipeline.bus().expect("bus");
    // A refused change of state has put its error onto the bus.
    let _ = pipeline.set_state(gst::State::Playing);
    let message = bus.timed_pop_filtered(PATIENCE, &[gst::MessageType::Eos, gst::MessageType::Error]);
    let result = match message.expect("no end and no error: the pipeline hangs").view() {
        gst::MessageView::Error(error) => Err(error.error().to_string()),
        _ => Ok(()),
    };
    pipeline.set_state(gst::State::Null).expect("NULL");
    result
}

/// Plays a pipeline with an appsink called `out` to its end and returns its samples.
pub fn samples(line: &str) -> Vec<gst::Sample> {
    let pipeline = launch(line);
    let sink: gst_app::AppSink = pipeline.by_name("out").expect("out").downcast().expect("appsink");
    sink.set_sync(false);
    pipeline.set_state(gst::State::Playing).expect("PLAYING");
    let mut samples = Vec::new();
    while let Some(sample) = sink.try_pull_sample(PATIENCE) {
        samples.push(sample);
    }
    let error = pipeline.bus().and_then(|bus| error_on(&bus));
    let ended = sink.is_eos();
    pipeline.set_state(gst::State::Null).expect("NULL");
    assert_eq!(error, None, "{line}");
    assert!(ended, "{line}: no end of stream");
    samples
}
