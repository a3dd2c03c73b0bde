// SPDX-License-Identifier: MPL-2.0
//! The element on the CUDA backend against the element on the CPU, with any parameters, frames and events: the same frames
//! with the same metadata. A flush may drop frames in flight, no more. Runs on the emulated device, see run.sh.
#![no_main]

use arbitrary::{Result, Unstructured};
use gst::prelude::*;
use gstsuperpixel::algo::AlgorithmParams;
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::meta::SuperpixelMeta;
use gstsuperpixel::params::Params;
use gstsuperpixel::post::merge::Rule;
use libfuzzer_sys::fuzz_target;
use superpixel_fuzz::pictures::Buffer;
use superpixel_fuzz::{draw, stream};

/// Most pixels of a frame: the device is slow.
const MOST_PIXELS: u32 = 1500;

/// Output of the element for one frame.
#[derive(Debug, PartialEq)]
struct Outcome {
    pts: Option<gst::ClockTime>,
    bytes: Vec<u8>,
    labels: Vec<u16>,
    table: Vec<u8>,
    motion: Vec<u8>,
    neighbors: Vec<u8>,
}

/// Parameters that both backends take.
fn on_both(params: Params) -> Params {
    if params.algorithm.algorithm().capabilities().cuda {
        return params;
    }
    Params { algorithm: Params::default().algorithm, ..params }
}

fn outcome(buffer: &gst::BufferRef) -> Outcome {
    let bytes = buffer.map_readable().expect("readable").to_vec();
    let mut outcome = Outcome {
        pts: buffer.pts(),
        bytes,
        labels: vec![],
        table: vec![],
        motion: vec![],
        neighbors: vec![],
    };
    if let Some(meta) = SuperpixelMeta::from_buffer(buffer) {
        outcome.labels = meta.labels().expect("labels").as_slice().to_vec();
        outcome.table = format!("{:?}", meta.table().expect("table")).into();
        outcome.motion = format!("{:?}", meta.motion().expect("motion")).into();
        outcome.neighbors = format!("{:?}", meta.neighbors().expect("neighbors")).into();
    }
    outcome
}

/// An element and what has left it.
struct Side {
    harness: gst_check::Harness,
    element: gst::Element,
    bus: gst::Bus,
    out: Vec<Outcome>,
}

impl Side {
    fn new(backend: &str, depth: u32) -> Self {
        let element = gst::ElementFactory::make("superpixel")
            .property_from_str("backend", backend)
            .property("threads", 1u32)
            .property("async-depth", depth)
            .build()
            .expect("the element is registered");
        let bus = gst::Bus::new();
        element.set_bus(Some(&bus));
        let harness = gst_check::Harness::with_element(&element, Some("sink"), Some("src"));
        let active: String = element.property("active-backend");
        assert!(active.starts_with(backend), "no {backend}: {active:?}");
        Self { harness, element, bus, out: Vec::new() }
    }

    fn collect(&mut self) {
        while let Some(buffer) = self.harness.try_pull() {
            self.out.push(outcome(&buffer));
        }
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        self.bus.set_flushing(true);
    }
}

/// Sets the properties of both elements to parameters of the library.
fn configure(elements: &[&gst::Element; 2], params: &Params) {
    let set = |name: &str, value: gst::glib::Value| {
        elements.iter().for_each(|e| e.set_property_from_value(name, &value))
    };
    let choose = |name: &str, value: &str| elements.iter().for_each(|e| e.set_property_from_str(name, value));
    let space = |space: ColorSpace| match space {
        ColorSpace::Lab => "lab",
        ColorSpace::LabGslicr => "lab-gslicr",
        ColorSpace::XyzGslicr => "xyz-gslicr",
        ColorSpace::Rgb => "rgb",
    };
    choose("algo", params.algorithm.nick());
    match &params.algorithm {
        AlgorithmParams::Slic(slic) => {
            set("iterations", slic.iterations.to_value());
            set("compactness", slic.compactness.to_value());
            set("adaptive-compactness", slic.adaptive_compactness.to_value());
            choose("color-space", space(slic.color_space));
        }
        AlgorithmParams::Lsc(lsc) => {
            set("iterations", lsc.iterations.to_value());
            set("lsc-ratio", lsc.ratio.to_value());
        }
        AlgorithmParams::Snic(_) => unreachable!("it runs on the CPU only"),
        AlgorithmParams::QuickShift(quickshift) => {
            set("sigma", quickshift.sigma.to_value());
            set("tau", quickshift.tau.to_value());
            set("color-scale", quickshift.color_scale.to_value());
            choose("color-space", space(quickshift.color_space));
        }
    }
    set("superpixel-size", params.superpixel_size.to_value());
    set("superpixels", params.superpixels.to_value());
    set("connectivity", params.connectivity.to_value());
    set("min-region", params.min_region.to_value());
    set("merge", params.merge.ratio.to_value());
    choose("merge-rule", if params.merge.rule == Rule::Either { "either" } else { "mutual" });
    set("merge-max-distance", params.merge.max_distance.to_value());
    set("merge-passes", params.merge.passes.to_value());
    set("temporal", params.temporal.to_value());
    set("temporal-inertia", params.temporal_inertia.to_value());
}

/// Sets what is drawn and attached.
fn show(u: &mut Unstructured<'_>, elements: &[&gst::Element; 2]) -> Result<()> {
    let overlay = *u.choose(&["none", "boundaries", "mean-color", "mean-color-boundaries", "labels"])?;
    let (labels, table, neighbors, light) =
        (!draw::rarely(u, 5)?, !draw::rarely(u, 5)?, u.arbitrary::<bool>()?, draw::rarely(u, 4)?);
    let (color, width): (u32, u32) = (u.arbitrary()?, u.int_in_range(1..=8)?);
    for element in elements {
        element.set_property_from_str("overlay", overlay);
        element.set_property("labels", labels);
        element.set_property("region-table", table);
        element.set_property("neighbors", neighbors);
        element.set_property("mean-in-linear-light", light);
        element.set_property("boundary-color", color);
        element.set_property("boundary-width", width);
    }
    Ok(())
}

/// A picture as a GStreamer buffer, whose strides a video meta gives.
fn frame(picture: &Buffer, info: &gst_video::VideoInfo, number: u64) -> gst::Buffer {
    let (mut bytes, mut offsets, mut strides) = (Vec::new(), Vec::new(), Vec::new());
    for (plane, stride) in picture.planes.iter().zip(&picture.strides) {
        offsets.push(bytes.len());
        strides.push(*stride as i32);
        bytes.extend_from_slice(plane);
    }
    let mut buffer = gst::Buffer::from_mut_slice(bytes);
    let writable = buffer.get_mut().expect("a new buffer");
    writable.set_pts(gst::ClockTime::from_mseconds(40) * number);
    writable.set_duration(gst::ClockTime::from_mseconds(40));
    let (flags, format) = (gst_video::VideoFrameFlags::empty(), info.format());
    gst_video::VideoMeta::add_full(writable, flags, format, info.width(), info.height(), &offsets, &strides)
        .expect("video meta");
    buffer
}

fn caps(u: &mut Unstructured<'_>) -> Result<(gst_video::VideoInfo, gstsuperpixel::image::FrameInfo)> {
    let frame = draw::frame_info(u, MOST_PIXELS)?;
    let format = gst_video::VideoFormat::from_string(frame.format.name());
    if format == gst_video::VideoFormat::Unknown {
        // The element does not offer the format.
        return Err(arbitrary::Error::IncorrectFormat);
    }
    let (width, height) = (frame.geometry.width(), frame.geometry.height());
    let info = gst_video::VideoInfo::builder(format, width, height).fps(gst::Fraction::new(25, 1)).build();
    Ok((info.expect("a small frame"), frame))
}

fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let depth = u.int_in_range(0..=3)?;
    let mut sides = [Side::new("cpu", 0), Side::new("cuda", depth)];
    let (mut info, mut kind) = caps(u)?;
    let mut params = on_both(draw::params(u, kind.geometry.pixels())?);
    configure(&[&sides[0].element, &sides[1].element], &params);
    show(u, &[&sides[0].element, &sides[1].element])?;
    let set_caps = |sides: &mut [Side; 2], info: &gst_video::VideoInfo| {
        sides.iter_mut().for_each(|side| side.harness.set_src_caps(info.to_caps().expect("caps")));
    };
    set_caps(&mut sides, &info);
    let padding = u.int_in_range(0..=19)?;
    let mut picture = draw::picture(u, kind, padding)?;
    let mut may_miss = 0;
    for number in 0..8 {
        let mut buffer = frame(&picture, &info, number);
        if draw::rarely(u, 12)? {
            buffer.get_mut().expect("a new buffer").set_flags(gst::BufferFlags::DISCONT);
        }
        for side in &mut sides {
            let answer = side.harness.push(buffer.copy_deep().expect("a copy"));
            assert_eq!(
                answer,
                Ok(gst::FlowSuccess::Ok),
                "{:?}",
                side.bus.pop_filtered(&[gst::MessageType::Error])
            );
            side.collect();
        }
        if u.is_empty() {
            break;
        }
        match u.int_in_range(0..=12)? {
            0 => {
                (info, kind) = caps(u)?;
                picture = draw::picture(u, kind, padding)?;
                // The cost of the parameters depends on the size.
                params = on_both(draw::params(u, kind.geometry.pixels())?);
                configure(&[&sides[0].element, &sides[1].element], &params);
                set_caps(&mut sides, &info);
            }
            1 => {
                may_miss += depth as usize;
                for side in &mut sides {
                    side.harness.push_event(gst::event::FlushStart::new());
                    side.harness.push_event(gst::event::FlushStop::new(true));
                    let segment = gst::FormattedSegment::<gst::ClockTime>::new();
                    side.harness.push_event(gst::event::Segment::new(&segment));
                    side.collect();
                }
            }
            2 => {
                for side in &mut sides {
                    let start = gst::ClockTime::from_mseconds(40) * (number + 1);
                    side.harness.push_event(gst::event::Gap::new(start, gst::ClockTime::from_mseconds(1)));
                }
            }
            3..=5 => {
                draw::change(u, &mut params, kind.geometry.pixels())?;
                params = on_both(params);
                configure(&[&sides[0].element, &sides[1].element], &params);
            }
            6 => show(u, &[&sides[0].element, &sides[1].element])?,
            7 => picture = draw::picture(u, kind, padding)?,
            _ => {
                draw::shift(u, &mut picture)?;
                draw::scribble(u, &mut picture)?;
            }
        }
    }
    for side in &mut sides {
        side.harness.push_event(gst::event::Eos::new());
        side.collect();
    }
    let [cpu, cuda] = &mut sides;
    let missing = cpu.out.len() - cuda.out.len();
    assert!(missing <= may_miss, "{missing} frames are missing, {may_miss} may be");
    let mut frames = cpu.out.iter();
    for there in &cuda.out {
        let here = frames.find(|frame| frame.pts == there.pts).expect("frames in their order");
        let pts = there.pts;
        assert!(here.labels == there.labels, "labels of {pts:?} with {params:?}");
        assert!(here.bytes == there.bytes, "pixels or padding of {pts:?}");
        assert!(here.table == there.table && here.motion == there.motion, "records of {pts:?}");
        assert!(here.neighbors == there.neighbors, "neighbors of {pts:?}");
    }
    Ok(())
}

fuzz_target!(
    init: stream::init(),
    |data: &[u8]| {
        let _ = run(&mut Unstructured::new(data));
    }
);
