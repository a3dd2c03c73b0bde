// SPDX-License-Identifier: MPL-2.0
//! Inputs that must not cause a panic, an abort, a leak or a hang.

use crate::common;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::common::{
    PATIENCE, bytes, caps, error_on, harness, info, launch, picture, play_to_end, superpixel, warning_on,
};
use gst::glib;
use gst::prelude::*;
use gstsuperpixel::meta::SuperpixelMeta;

#[test]
fn non_finite_values_leave_properties_as_they_were() {
    let element = superpixel();
    for name in ["compactness", "lsc-ratio", "min-region"] {
        let before: f32 = element.property(name);
        // The binding reports a value that GObject refuses as a panic of the caller.
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(catch_unwind(AssertUnwindSafe(|| element.set_property(name, value))).is_err());
            assert_eq!(element.property::<f32>(name), before, "{name}={value}");
        }
    }
}

#[test]
fn values_out_of_range_are_refused_by_gobject() {
    let element = superpixel();
    for (name, value) in [
        ("superpixel-size", 3u32.to_value()),
        ("superpixel-size", 1025u32.to_value()),
        ("superpixel-size", u32::MAX.to_value()),
        ("iterations", 0u32.to_value()),
        ("iterations", 101u32.to_value()),
        ("compactness", 0f32.to_value()),
        ("compactness", (-1f32).to_value()),
        ("compactness", f32::MAX.to_value()),
        ("lsc-ratio", 0f32.to_value()),
        ("lsc-ratio", 1.1f32.to_value()),
        ("min-region", 4.1f32.to_value()),
        ("min-region", (-0.1f32).to_value()),
        ("boundary-width", 0u32.to_value()),
        ("boundary-width", 9u32.to_value()),
        ("threads", 1025u32.to_value()),
        #[cfg(feature = "cuda")]
        ("cuda-device-id", (-2i32).to_value()),
    ] {
        let before = format!("{:?}", element.property_value(name));
        let result = catch_unwind(AssertUnwindSafe(|| element.set_property_from_value(name, &value)));
        assert!(result.is_err(), "{name}={value:?} was taken");
        assert_eq!(format!("{:?}", element.property_value(name)), before, "{name}");
    }
}

/// Every numeric property at both ends of its range, on small and odd frames.
#[test]
fn ends_of_ranges_work() {
    for (width, height) in [(1, 1), (2, 40), (45, 31)] {
        let info = info("NV12", width, height);
        for property in superpixel().list_properties() {
            let ends = match property.downcast_ref::<glib::ParamSpecUInt>() {
                Some(p) => [p.minimum().to_value(), p.maximum().to_value()],
                None => match property.downcast_ref::<glib::ParamSpecFloat>() {
                    Some(p) => [p.minimum().to_value(), p.maximum().to_value()],
                    None => continue,
                },
            };
            if property.name() == "threads" {
                continue;
            }
            for (value, algo) in ends.iter().flat_map(|value| ["slic", "lsc"].map(|algo| (value, algo))) {
                let element = superpixel();
                element.set_property_from_str("algo", algo);
                element.set_property_from_str("overlay", "mean-color-boundaries");
                element.set_property_from_value(property.name(), value);
                let (mut h, bus) = harness(&element);
                h.set_src_caps(caps("NV12", width, height));
                let case = format!("{algo} {}={value:?} at {width}x{height}", property.name());
                let output = h.push_and_pull(picture(&info, 1, 0));
                let output = output.unwrap_or_else(|_| panic!("{case}: {:?}", error_on(&bus)));
                assert!(SuperpixelMeta::from_buffer(&output).unwrap().regions() >= 1, "{case}");
            }
        }
    }
}

#[test]
fn absurd_caps_are_refused() {
    for text in [
        "video/x-raw,format=RGB,width=0,height=48,framerate=25/1",
        "video/x-raw,format=RGB,width=-5,height=48,framerate=25/1",
        "video/x-raw,format=RGB,width=64,height=16385,framerate=25/1",
        "video/x-raw,format=RGB,width=2147483647,height=2147483647,framerate=25/1",
        "video/x-raw,format=RGB,framerate=25/1",
        "video/x-raw,format=NOPE,width=64,height=48,framerate=25/1",
        "video/x-raw,width=64,height=48",
        "video/x-raw,format=P010_10BE,width=64,height=48,framerate=25/1",
        "video/x-raw(memory:Imagined),format=RGB,width=64,height=48,framerate=25/1",
        "audio/x-raw,format=S16LE,rate=8000,channels=1,layout=interleaved",
        "image/png",
    ] {
        let caps: gst::Caps = text.parse().unwrap();
        for name in ["superpixel", "superpixellabels"] {
            common::init();
            let element = gst::ElementFactory::make(name).build().unwrap();
            element.set_state(gst::State::Playing).unwrap();
            let pad = element.static_pad("sink").unwrap();
            assert!(pad.send_event(gst::event::StreamStart::new("absurd")));
            assert!(!pad.send_event(gst::event::Caps::new(&caps)), "{name} took {text}");
            pad.send_event(gst::event::Segment::new(&gst::FormattedSegment::<gst::ClockTime>::new()));
            assert!(pad.chain(gst::Buffer::with_size(64 * 48 * 3).unwrap()).is_err(), "{name} with {text}");
            element.set_state(gst::State::Null).unwrap();
        }
    }
}

#[test]
fn a_buffer_before_caps_is_an_error() {
    let element = superpixel();
    element.set_state(gst::State::Playing).unwrap();
    let pad = element.static_pad("sink").unwrap();
    pad.send_event(gst::event::StreamStart::new("early"));
    pad.send_event(gst::event::Segment::new(&gst::FormattedSegment::<gst::ClockTime>::new()));
    assert_eq!(pad.chain(gst::Buffer::with_size(100).unwrap()), Err(gst::FlowError::NotNegotiated));
    element.set_state(gst::State::Null).unwrap();
}

/// Memory that somebody keeps mapped while the frame passes.
fn locked(
    flags: gst::ffi::GstMapFlags,
    overlay: &str,
    check: impl FnOnce(Result<gst::Buffer, String>, &[u8], &[u8]),
) {
    let info = info("RGB", 64, 48);
    let source = bytes(&picture(&info, 1, 0));
    let memory = gst::Memory::from_mut_slice(source.clone());
    let mut buffer = gst::Buffer::new();
    buffer.get_mut().unwrap().append_memory(memory.clone());
    buffer.get_mut().unwrap().set_pts(gst::ClockTime::ZERO);
    let element = superpixel();
    element.set_property_from_str("overlay", overlay);
    let (mut h, bus) = harness(&element);
    h.set_src_caps(caps("RGB", 64, 48));
    // SAFETY: the memory is valid, mapped once and unmapped once; its bytes are read while it is mapped.
    unsafe {
        let mut map = std::mem::zeroed();
        let mapped = gst::ffi::gst_memory_map(memory.as_mut_ptr(), &mut map, flags);
        assert_eq!(mapped, glib::ffi::GTRUE);
        let output = h.push_and_pull_or_warning(buffer, &bus);
        check(output, std::slice::from_raw_parts(map.data, source.len()), &source);
        gst::ffi::gst_memory_unmap(memory.as_mut_ptr(), &mut map);
    }
}

trait PushAndPullOrWarning {
    fn push_and_pull_or_warning(
        &mut self,
        buffer: gst::Buffer,
        bus: &gst::Bus,
    ) -> Result<gst::Buffer, String>;
}

impl PushAndPullOrWarning for gst_check::Harness {
    fn push_and_pull_or_warning(
        &mut self,
        buffer: gst::Buffer,
        bus: &gst::Bus,
    ) -> Result<gst::Buffer, String> {
        match self.push(buffer) {
            Ok(_) => {
                self.try_pull().ok_or_else(|| warning_on(bus).expect("a warning with the dropped frame"))
            }
            Err(error) => panic!("one buffer ended the stream: {error}"),
        }
    }
}

#[test]
fn a_frame_in_write_locked_memory_is_dropped_with_a_warning_that_says_so() {
    for overlay in ["none", "boundaries"] {
        locked(gst::ffi::GST_MAP_WRITE, overlay, |output, held, source| {
            let text = output.expect_err("mapped what somebody writes");
            assert!(text.contains("locked"), "{text}");
            assert_eq!(held, source);
        });
    }
}

#[test]
fn read_locked_memory_is_copied_before_drawing() {
    locked(gst::ffi::GST_MAP_READ, "boundaries", |output, held, source| {
        assert_ne!(bytes(&output.unwrap()), source, "nothing was drawn");
        assert_eq!(held, source, "the reader's bytes changed");
    });
    locked(gst::ffi::GST_MAP_READ, "none", |output, held, source| {
        assert_eq!((bytes(&output.unwrap()).as_slice(), held), (source, source));
    });
}

#[test]
fn a_truncated_png_upstream_ends_the_pipeline() {
    let path =
        std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("cut-{}.png", std::process::id()));
    let pixels = bytes(&picture(&info("RGB", 64, 48), 1, 0));
    image::save_buffer(&path, &pixels, 64, 48, image::ColorType::Rgb8).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for length in [whole.len() / 2, 60, 9] {
        std::fs::write(&path, &whole[..length]).unwrap();
        let line =
            format!("filesrc location={} ! pngdec ! videoconvert ! superpixel ! fakesink", path.display());
        // The decoder may end with an error or with the frames it has; only a hang fails.
        let _ = play_to_end(&launch(&line));
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_frame_without_labels_ends_superpixellabels_with_an_error() {
    let line = "videotestsrc num-buffers=3 ! video/x-raw,format=RGB,width=64,height=48 ! superpixellabels ! fakesink";
    let text = play_to_end(&launch(line)).expect_err("labels from nowhere");
    assert!(text.contains("put superpixel"), "{text}");
}

#[test]
fn ten_thousand_property_changes_while_playing() {
    let pipeline = launch(
        "videotestsrc is-live=false ! video/x-raw,format=I420,width=96,height=64 ! \
         superpixel name=s threads=2 ! fakesink name=f sync=false signal-handoffs=true",
    );
    let element = pipeline.by_name("s").unwrap();
    let frames = Arc::new(AtomicU32::new(0));
    let counter = frames.clone();
    pipeline.by_name("f").unwrap().connect("handoff", false, move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        None
    });
    pipeline.set_state(gst::State::Playing).unwrap();
    let overlays = ["none", "boundaries", "mean-color", "mean-color-boundaries", "labels"];
    let spaces = ["lab", "lab-gslicr", "xyz-gslicr", "rgb"];
    let changer = {
        let element = element.clone();
        std::thread::spawn(move || {
            for i in 0..10_000u32 {
                match i % 16 {
                    0 => element.set_property("superpixel-size", 4 + i % 60),
                    1 => element.set_property("superpixels", (i % 5) * 30),
                    2 => element.set_property("iterations", 1 + i % 7),
                    3 => element.set_property("compactness", 0.5 + (i % 90) as f32),
                    4 => element.set_property_from_str("color-space", spaces[i as usize / 16 % 4]),
                    5 => element.set_property("adaptive-compactness", i / 16 % 2 == 0),
                    6 => element.set_property("connectivity", i / 16 % 3 != 0),
                    7 => element.set_property("min-region", (i % 16) as f32 / 4.0),
                    8 => element.set_property_from_str("overlay", overlays[i as usize / 16 % 5]),
                    9 => element.set_property("boundary-color", i.wrapping_mul(2_654_435_761)),
                    10 => element.set_property("boundary-width", 1 + i % 8),
                    11 => element.set_property("labels", i / 16 % 4 != 0),
                    12 => element.set_property("region-table", i / 16 % 3 != 0),
                    13 => element.set_property_from_str("algo", ["slic", "lsc"][i as usize / 16 % 2]),
                    14 => element.set_property("lsc-ratio", 0.01 + (i % 90) as f32 / 100.0),
                    _ => element.set_property("neighbors", i / 16 % 2 == 0),
                }
                let stats = element.property::<gst::Structure>("stats");
                assert!(stats.get::<u64>("frames").is_ok());
            }
        })
    };
    changer.join().expect("no panic while changing");
    let (after, bus) = (frames.load(Ordering::Relaxed), pipeline.bus().unwrap());
    while frames.load(Ordering::Relaxed) < after + 3 {
        let message = bus.timed_pop_filtered(gst::ClockTime::from_mseconds(20), &[gst::MessageType::Error]);
        assert!(message.is_none(), "{message:?}");
    }
    pipeline.set_state(gst::State::Null).unwrap();
}

#[test]
fn two_hundred_starts_and_stops() {
    let pipeline = launch(
        "videotestsrc ! video/x-raw,format=NV12,width=64,height=48 ! superpixel backend=cpu threads=2 neighbors=true ! \
         superpixelobjects on-missing=pass objects=9,9,30,30 ! superpixellabels ! fakesink sync=false",
    );
    let thread_count = || std::fs::read_dir("/proc/self/task").map_or(0, |tasks| tasks.count());
    let mut early = 0;
    for cycle in 0..200 {
        pipeline.set_state(gst::State::Playing).unwrap();
        let (result, state, _) = pipeline.state(PATIENCE);
        assert!(result.is_ok() && state == gst::State::Playing, "cycle {cycle}: {result:?}");
        pipeline.set_state(gst::State::Null).unwrap();
        if cycle == 20 {
            early = thread_count();
        }
    }
    // Other tests run beside this one, each with few threads; 180 pools that were never ended would be 360.
    assert!(thread_count() < early + 150, "threads: {early} after 20 cycles, {} after 200", thread_count());
}

#[test]
fn stopping_in_the_middle_of_a_frame() {
    for round in 0..15 {
        let pipeline = launch(
            "videotestsrc pattern=snow ! video/x-raw,format=I420,width=640,height=480 ! \
             superpixel name=s threads=2 iterations=40 superpixel-size=8 ! fakesink sync=false async=false",
        );
        let (sender, entered) = mpsc::channel();
        let pad = pipeline.by_name("s").unwrap().static_pad("sink").unwrap();
        pad.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
            let _ = sender.send(());
            gst::PadProbeReturn::Ok
        });
        pipeline.set_state(gst::State::Playing).unwrap();
        // The probe runs on the streaming thread right before the frame is worked on.
        for _ in 0..=round % 3 {
            entered.recv_timeout(Duration::from_secs(60)).expect("a frame arrives");
        }
        pipeline.set_state(gst::State::Null).unwrap();
    }
}

#[test]
fn properties_are_readable_and_writable_while_a_frame_is_worked_on() {
    let pipeline = launch(
        "videotestsrc pattern=snow num-buffers=6 ! video/x-raw,format=I420,width=640,height=480 ! \
         superpixel name=s backend=cpu threads=1 iterations=60 superpixel-size=8 ! fakesink sync=false",
    );
    let element = pipeline.by_name("s").unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let reader = {
        let (element, done) = (element.clone(), done.clone());
        std::thread::spawn(move || {
            let mut reads = 0u32;
            while !done.load(Ordering::Relaxed) {
                assert!(element.property::<gst::Structure>("stats").get::<u32>("regions").is_ok());
                element.set_property("boundary-color", reads);
                reads += 1;
            }
            reads
        })
    };
    play_to_end(&pipeline).unwrap();
    done.store(true, Ordering::Relaxed);
    // Six frames take a second or more; an access that waited for frames would come back a handful of times.
    assert!(reader.join().unwrap() > 1000);
}
