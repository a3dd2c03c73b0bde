// SPDX-License-Identifier: MPL-2.0
//! The element with the CUDA backend against the element with the CPU backend: equal frames and equal metadata.
//!
//! Without a device each test prints that it was skipped; `SUPERPIXEL_REQUIRE_CUDA=1` makes that a failure.

use crate::common;
use crate::common::{
    PATIENCE, TestBus, bytes, caps, error_on, formats, harness, info, launch, picture, samples, superpixel,
    warning_on,
};
use crate::device::{device, short};
use cudarc::driver::sys;
use gst::prelude::*;
use gstsuperpixel::meta::SuperpixelMeta;
use gstsuperpixel::regions::{Event, MergeStep, Neighbor, Region};

const OVERLAYS: [&str; 5] = ["none", "boundaries", "mean-color", "mean-color-boundaries", "labels"];

/// Metadata of a frame.
#[derive(PartialEq)]
struct Attached {
    regions: u32,
    labels: Vec<u16>,
    table: Vec<Region>,
    neighbors: Vec<Neighbor>,
    merges: Vec<MergeStep>,
    events: Vec<Event>,
}

/// Output of the element for a frame: every byte, padding too, and the metadata.
#[derive(PartialEq)]
pub struct Outcome {
    bytes: Vec<u8>,
    attached: Option<Attached>,
}

impl Outcome {
    pub fn regions(&self) -> u32 {
        self.attached.as_ref().map_or(0, |attached| attached.regions)
    }
}

pub fn outcome(buffer: &gst::BufferRef) -> Outcome {
    let attached = SuperpixelMeta::from_buffer(buffer).map(|meta| Attached {
        regions: meta.regions(),
        labels: meta.labels().unwrap().as_slice().to_vec(),
        table: meta.table().unwrap(),
        neighbors: meta.neighbors().unwrap(),
        merges: meta.merges().unwrap(),
        events: meta.events().unwrap(),
    });
    Outcome { bytes: bytes(buffer), attached }
}

/// Says what differs, in words short enough to read.
pub fn assert_same(cpu: &Outcome, cuda: &Outcome, case: &str) {
    match (&cpu.attached, &cuda.attached) {
        (Some(cpu), Some(cuda)) => {
            assert_eq!(cpu.regions, cuda.regions, "{case}: number of regions");
            let first = cpu.labels.iter().zip(&cuda.labels).position(|(a, b)| a != b);
            assert_eq!((first, cpu.labels.len()), (None, cuda.labels.len()), "{case}: labels");
            assert!(cpu.table == cuda.table, "{case}: region table");
            assert!(cpu.neighbors == cuda.neighbors, "{case}: neighbors");
            assert!(cpu.merges == cuda.merges, "{case}: merges");
            assert!(cpu.events == cuda.events, "{case}: events");
        }
        (cpu, cuda) => assert!(cpu.is_none() && cuda.is_none(), "{case}: metadata on one side only"),
    }
    let first = cpu.bytes.iter().zip(&cuda.bytes).position(|(a, b)| a != b);
    assert_eq!((first, cpu.bytes.len()), (None, cuda.bytes.len()), "{case}: pixels or padding");
}

/// One side of a comparison. The harness stops the element before the bus goes.
struct Side {
    harness: gst_check::Harness,
    element: gst::Element,
    bus: TestBus,
}

impl Side {
    fn new(backend: &str) -> Self {
        let element = superpixel();
        element.set_property_from_str("backend", backend);
        element.set_property("neighbors", true);
        let (harness, bus) = harness(&element);
        let active = element.property::<String>("active-backend");
        let wanted = if backend == "cpu" { "cpu " } else { "cuda:" };
        assert!(active.starts_with(wanted), "{backend}: {active:?}, {:?}", error_on(&bus));
        Self { harness, element, bus }
    }

    fn pass(&mut self, input: gst::Buffer, case: &str) -> gst::Buffer {
        let output = self.harness.push_and_pull(input);
        output.unwrap_or_else(|error| panic!("{case}: {error}: {:?}", error_on(&self.bus)))
    }
}

/// The element on both backends.
struct Pair {
    cpu: Side,
    cuda: Side,
}

impl Pair {
    fn new() -> Self {
        Self { cpu: Side::new("cpu"), cuda: Side::new("cuda") }
    }

    fn set(&self, name: &str, value: &str) {
        for side in [&self.cpu, &self.cuda] {
            side.element.set_property_from_str(name, value);
        }
    }

    fn set_caps(&mut self, caps: gst::Caps) {
        self.cpu.harness.set_src_caps(caps.clone());
        self.cuda.harness.set_src_caps(caps);
    }

    /// Passes a frame through both and returns what left.
    fn compare(&mut self, input: &gst::BufferRef, case: &str) -> Outcome {
        let cpu = outcome(&self.cpu.pass(input.copy_deep().unwrap(), case));
        let cuda = outcome(&self.cuda.pass(input.copy_deep().unwrap(), case));
        assert_same(&cpu, &cuda, case);
        cuda
    }
}

#[test]
fn every_format_overlay_and_stride_gives_what_the_cpu_gives() {
    if device("every_format_overlay_and_stride_gives_what_the_cpu_gives").is_none() {
        return;
    }
    for (name, _) in formats() {
        let mut pair = Pair::new();
        for (width, height) in [(1, 1), (3, 5), (97, 81), (160, 96)] {
            pair.set_caps(caps(name, width, height));
            let info = info(name, width, height);
            for (seed, overlay) in OVERLAYS.iter().enumerate() {
                pair.set("overlay", overlay);
                // The short set takes one of the two for each overlay and size.
                let alternate = if (seed + width as usize).is_multiple_of(2) { &[0][..] } else { &[13] };
                for &padding in if short() { alternate } else { &[0, 13] } {
                    let case = format!("{name} {width}x{height} overlay={overlay} padding={padding}");
                    let input = picture(&info, seed as u32, padding);
                    let output = pair.compare(&input, &case);
                    // The small ones are a single region.
                    if *overlay == "none" || width > 8 {
                        assert_eq!(output.bytes == bytes(&input), *overlay == "none", "{case}");
                    }
                    assert!(output.attached.is_some(), "{case}");
                }
            }
        }
    }
}

#[test]
fn large_frames_give_what_the_cpu_gives() {
    if device("large_frames_give_what_the_cpu_gives").is_none() {
        return;
    }
    let mut pair = Pair::new();
    let mut cases = vec![("NV12", 1920, 1080, "16", "mean-color-boundaries")];
    if !short() {
        cases.extend([("RGBA", 1920, 1080, "32", "none"), ("I420", 3841, 2161, "24", "boundaries")]);
    }
    for (name, width, height, size, overlay) in cases {
        pair.set("superpixel-size", size);
        pair.set("overlay", overlay);
        pair.set_caps(caps(name, width, height));
        for seed in 0..2 {
            pair.compare(&picture(&info(name, width, height), seed, 0), &format!("{name} {width}x{height}"));
        }
    }
}

#[test]
fn properties_take_effect_on_the_next_frame() {
    if device("properties_take_effect_on_the_next_frame").is_none() {
        return;
    }
    let mut pair = Pair::new();
    pair.set_caps(caps("RGBA", 97, 81));
    let input = picture(&info("RGBA", 97, 81), 1, 0);
    let mut last = pair.compare(&input, "before");
    for (name, value) in [
        ("superpixel-size", "16"),
        ("superpixels", "40"),
        ("iterations", "1"),
        ("compactness", "2.5"),
        ("color-space", "lab-gslicr"),
        ("color-space", "xyz-gslicr"),
        ("color-space", "rgb"),
        ("adaptive-compactness", "true"),
        ("connectivity", "false"),
        ("connectivity", "true"),
        ("min-region", "1.5"),
        ("algo", "lsc"),
        ("lsc-ratio", "0.3"),
        ("algo", "slic"),
        ("boundary-color", "2164195328"),
        ("boundary-width", "3"),
        ("overlay", "mean-color"),
        ("overlay", "labels"),
        ("overlay", "none"),
        ("region-table", "false"),
        ("neighbors", "false"),
        ("neighbors", "true"),
        ("hierarchy", "true"),
        ("regions", "6"),
        ("hierarchy", "false"),
        ("hierarchy", "true"),
        ("regions", "0"),
        ("connectivity", "false"),
        ("hierarchy", "false"),
        ("hierarchy", "true"),
        ("merge", "2"),
        ("hierarchy", "false"),
        ("merge", "0"),
        ("connectivity", "true"),
        ("labels", "false"),
        ("overlay", "mean-color-boundaries"),
        ("labels", "true"),
        ("superpixels", "0"),
    ] {
        let case = format!("{name}={value}");
        pair.set(name, value);
        let output = pair.compare(&input, &case);
        assert!(output != last, "{case} changes nothing");
        // The second frame is a replay of the first.
        assert!(pair.compare(&input, &case) == output, "{case}: the second frame");
        last = output;
    }
}

/// Events need label maps on the host, whatever else stays on the device.
#[test]
fn events_are_those_of_the_cpu() {
    if device("events_are_those_of_the_cpu").is_none() {
        return;
    }
    let mut pair = Pair::new();
    for (name, value) in [("temporal", "true"), ("events", "true"), ("superpixel-size", "9")] {
        pair.set(name, value);
    }
    pair.set_caps(caps("NV12", 160, 96));
    let info = info("NV12", 160, 96);
    let mut seen = 0;
    for seed in [1, 1, 2, 2, 1] {
        let output = pair.compare(&picture(&info, seed, 0), &format!("picture {seed}"));
        seen += output.attached.unwrap().events.len();
    }
    assert!(seen > 100, "{seen} events");
    let sums = |side: &Side| {
        let stats: gst::Structure = side.element.property("stats");
        ["births", "splits", "deaths", "merges", "cuts"].map(|name| stats.get::<u64>(name).unwrap())
    };
    assert_eq!(sums(&pair.cpu), sums(&pair.cuda));
}

#[test]
fn properties_may_change_at_any_time() {
    if device("properties_may_change_at_any_time").is_none() {
        return;
    }
    let pipeline = launch(
        "videotestsrc ! video/x-raw,format=I420,width=96,height=64 ! superpixel name=s backend=cuda ! \
         fakesink name=f sync=false signal-handoffs=true",
    );
    let element = pipeline.by_name("s").unwrap();
    let (sender, frames) = std::sync::mpsc::sync_channel(0);
    pipeline.by_name("f").unwrap().connect("handoff", false, move |_| {
        // Fails once the test has seen enough.
        let _ = sender.send(());
        None
    });
    pipeline.set_state(gst::State::Playing).unwrap();
    let bus = pipeline.bus().unwrap();
    for i in 0..if short() { 600 } else { 2000u32 } {
        match i % 8 {
            0 => element.set_property("superpixel-size", 4 + i % 60),
            1 => element.set_property_from_str("overlay", OVERLAYS[i as usize / 8 % 5]),
            2 => element.set_property("connectivity", i / 8 % 3 != 0),
            3 => element.set_property("labels", i / 8 % 4 != 0),
            4 => element.set_property("neighbors", i / 8 % 2 == 0),
            5 => element.set_property("region-table", i / 8 % 3 != 0),
            6 => element.set_property("compactness", 0.5 + (i % 90) as f32),
            _ => element.set_property("iterations", 1 + i % 7),
        }
        if i % 3 == 0 {
            element.set_property("hierarchy", i % 2 == 0);
        }
        if i % 5 == 0 {
            let frame = frames.recv_timeout(std::time::Duration::from_secs(60));
            assert!(frame.is_ok(), "change {i}: no frame, {:?}", error_on(&bus));
        }
    }
    drop(frames);
    pipeline.set_state(gst::State::Null).unwrap();
    assert_eq!(error_on(&bus), None);
}

#[test]
fn caps_may_change_in_the_stream() {
    if device("caps_may_change_in_the_stream").is_none() {
        return;
    }
    let mut pair = Pair::new();
    pair.set("overlay", "mean-color-boundaries");
    for (seed, (name, width, height)) in [
        ("RGB", 64, 48),
        ("NV12", 64, 48),
        ("NV12", 33, 17),
        ("GRAY8", 128, 9),
        ("I420", 640, 480),
        ("RGB", 64, 48),
    ]
    .into_iter()
    .enumerate()
    {
        pair.set_caps(caps(name, width, height));
        for seed in [seed as u32, 10 + seed as u32] {
            let input = picture(&info(name, width, height), seed, 0);
            pair.compare(&input, &format!("{name} {width}x{height}"));
        }
    }
    let mut with_matrix = caps("I420", 64, 48);
    with_matrix.make_mut().set("colorimetry", "1:3:0:0");
    pair.set_caps(with_matrix);
    pair.compare(&picture(&info("I420", 64, 48), 3, 0), "BT.709 in full range");
}

#[test]
fn label_maps_that_a_reader_keeps_stay_as_they_are() {
    if device("label_maps_that_a_reader_keeps_stay_as_they_are").is_none() {
        return;
    }
    let mut side = Side::new("cuda");
    side.harness.set_src_caps(caps("RGB", 97, 81));
    let info = info("RGB", 97, 81);
    let kept: Vec<_> = (0..12)
        .map(|seed| {
            let output = side.pass(picture(&info, seed, 0), "kept");
            let seen = outcome(&output);
            (output, seen)
        })
        .collect();
    for (frame, (output, seen)) in kept.iter().enumerate() {
        assert_same(seen, &outcome(output), &format!("frame {frame}, later"));
    }
    assert!(kept[0].1 != kept[1].1);
}

#[test]
fn labels_only_neither_copies_nor_touches_a_shared_buffer() {
    if device("labels_only_neither_copies_nor_touches_a_shared_buffer").is_none() {
        return;
    }
    for labels in [true, false] {
        let mut side = Side::new("cuda");
        side.element.set_property_from_str("overlay", "none");
        side.element.set_property("labels", labels);
        side.harness.set_src_caps(caps("NV12", 97, 81));
        let held = picture(&info("NV12", 97, 81), 1, 0);
        let before = bytes(&held);
        let output = side.pass(held.clone(), "labels only");
        assert_eq!(output.peek_memory(0).as_ptr(), held.peek_memory(0).as_ptr(), "the pixels were copied");
        assert!(bytes(&held) == before);
        assert!(SuperpixelMeta::from_buffer(&held).is_none(), "the holder's buffer got the metadata");
        assert_eq!(SuperpixelMeta::from_buffer(&output).is_some(), labels);
        let regions = side.element.property::<gst::Structure>("stats").get::<u32>("regions").unwrap();
        assert!(regions > 1, "{regions} regions");
    }
}

#[test]
fn drawing_leaves_the_other_holder_of_a_shared_buffer_alone() {
    if device("drawing_leaves_the_other_holder_of_a_shared_buffer_alone").is_none() {
        return;
    }
    let mut side = Side::new("cuda");
    side.harness.set_src_caps(caps("I420", 97, 81));
    let held = picture(&info("I420", 97, 81), 1, 0);
    let before = bytes(&held);
    let output = side.pass(held.clone(), "shared");
    assert!(bytes(&held) == before, "the holder's pixels changed");
    assert!(bytes(&output) != before, "nothing was drawn");
}

#[test]
fn drawn_frames_outlive_the_element_and_their_memory_is_used_again() {
    if device("drawn_frames_outlive_the_element_and_their_memory_is_used_again").is_none() {
        return;
    }
    // More than leave in pinned memory; one in three is let go at once.
    let info = info("RGBA", 96, 64);
    let expected = |seed| {
        let mut cpu = Side::new("cpu");
        cpu.harness.set_src_caps(caps("RGBA", 96, 64));
        bytes(&cpu.pass(picture(&info, seed, 0), "cpu"))
    };
    let kept: Vec<_> = {
        let mut side = Side::new("cuda");
        side.harness.set_src_caps(caps("RGBA", 96, 64));
        let outputs = (0..40).map(|seed| (seed, side.pass(picture(&info, seed % 5, 0), "kept")));
        outputs.filter(|(seed, _)| seed % 3 != 0).collect()
    };
    let wanted: Vec<_> = (0..5).map(expected).collect();
    for (seed, output) in &kept {
        assert!(bytes(output) == wanted[(seed % 5) as usize], "frame {seed}");
        // Elements behind may draw, too.
        assert!(output.copy().make_mut().map_writable().is_ok());
    }
}

/// A pipeline of 30 frames through two elements. The size leaves no padding, which the source would not fill.
fn line(first: &str, second: &str) -> String {
    format!(
        "videotestsrc num-buffers=30 pattern=ball ! video/x-raw,format=NV12,width=160,height=120 ! \
         superpixel {first} superpixel-size=8 neighbors=true overlay=mean-color ! identity ! \
         superpixel {second} superpixel-size=24 neighbors=true ! appsink name=out"
    )
}

fn outcomes(line: &str) -> Vec<Outcome> {
    samples(line).iter().map(|sample| outcome(sample.buffer().unwrap())).collect()
}

#[test]
fn two_elements_and_two_pipelines_work_side_by_side() {
    if device("two_elements_and_two_pipelines_work_side_by_side").is_none() {
        return;
    }
    let expected = outcomes(&line("backend=cpu threads=1", "backend=cpu threads=1"));
    assert_eq!(expected.len(), 30);
    std::thread::scope(|scope| {
        let runs: Vec<_> = [
            ("backend=cuda", "backend=cuda"),
            ("backend=cuda cuda-device-id=0", "backend=auto"),
            ("backend=cpu threads=1", "backend=cuda"),
        ]
        .into_iter()
        .map(|(first, second)| scope.spawn(move || (first, second, outcomes(&line(first, second)))))
        .collect();
        for run in runs {
            let (first, second, found) = run.join().unwrap();
            assert_eq!(found.len(), expected.len());
            for (i, (expected, found)) in expected.iter().zip(&found).enumerate() {
                assert_same(expected, found, &format!("{first} ! {second}, frame {i}"));
            }
        }
    });
}

#[test]
fn twenty_starts_and_stops() {
    if device("twenty_starts_and_stops").is_none() {
        return;
    }
    let pipeline = launch(
        "videotestsrc ! video/x-raw,format=NV12,width=64,height=48 ! superpixel name=s backend=cuda ! \
         superpixellabels ! fakesink sync=false",
    );
    let element = pipeline.by_name("s").unwrap();
    for cycle in 0..20 {
        pipeline.set_state(gst::State::Playing).unwrap();
        let (result, state, _) = pipeline.state(PATIENCE);
        let error = error_on(&pipeline.bus().unwrap());
        assert!(result.is_ok() && state == gst::State::Playing, "cycle {cycle}: {result:?}, {error:?}");
        assert!(element.property::<String>("active-backend").starts_with("cuda:"), "cycle {cycle}");
        pipeline.set_state(gst::State::Null).unwrap();
        assert_eq!(element.property::<String>("active-backend"), "", "cycle {cycle}");
    }
}

fn current() -> Option<sys::CUcontext> {
    cudarc::driver::result::ctx::get_current().unwrap()
}

/// A careless neighbor may leave a context current that is destroyed before the element restores it.
#[test]
fn a_current_context_that_has_ended_does_no_harm() {
    if device("a_current_context_that_has_ended_does_no_harm").is_none() {
        return;
    }
    let mut context = std::ptr::null_mut();
    // SAFETY: a plain driver call.
    unsafe { sys::cuCtxCreate_v2(&mut context, 0, 0).result().unwrap() };
    let address = context as usize;
    let end = move || {
        // SAFETY: made above, and ended once; the thread that it is current on does nothing meanwhile.
        unsafe { sys::cuCtxDestroy_v2(address as sys::CUcontext).result().unwrap() }
    };
    std::thread::spawn(end).join().unwrap();
    let pipeline = launch(
        "videotestsrc num-buffers=3 ! video/x-raw,format=NV12,width=64,height=48 ! superpixel backend=cuda ! \
         superpixellabels ! fakesink sync=false",
    );
    common::play_to_end(&pipeline).unwrap();
    common::play_to_end(&pipeline).unwrap();
}

/// An application may use a device of its own on the threads that start, feed, flush and stop the element.
#[test]
fn the_caller_keeps_its_current_context() {
    if device("the_caller_keeps_its_current_context").is_none() {
        return;
    }
    for (depth, own) in [(0, true), (4, true), (4, false)] {
        let mut context = std::ptr::null_mut();
        // SAFETY: plain driver calls; the context is destroyed below.
        unsafe {
            sys::cuCtxCreate_v2(&mut context, 0, 0).result().unwrap();
            while !own && current().is_some() {
                // Uncovers the one that was current before, if any.
                sys::cuCtxSetCurrent(std::ptr::null_mut()).result().unwrap();
            }
        }
        let before = current();
        assert_eq!(before, own.then_some(context));
        let check = |after: &str| {
            assert_eq!(current(), before, "depth {depth}, after {after}");
        };
        let element = superpixel();
        element.set_property_from_str("backend", "cuda");
        element.set_property("async-depth", depth as u32);
        let (mut h, bus) = harness(&element);
        check("the start");
        h.set_src_caps(caps("NV12", 64, 48));
        check("caps");
        let push = |h: &mut gst_check::Harness, after: &str| {
            for seed in 0..3 {
                h.push(picture(&info("NV12", 64, 48), seed, 0)).unwrap();
                check(after);
                while let Some(buffer) = h.try_pull() {
                    outcome(&buffer);
                    drop(buffer);
                    check("a frame that is read and dropped");
                }
            }
        };
        push(&mut h, "a frame");
        element.set_property("compactness", 20f32);
        push(&mut h, "a change of compactness");
        element.set_property("superpixel-size", 12u32);
        push(&mut h, "a change of the grid");
        h.push_event(gst::event::FlushStart::new());
        h.push_event(gst::event::FlushStop::new(true));
        check("a flush");
        h.push_event(gst::event::Segment::new(&gst::FormattedSegment::<gst::ClockTime>::new()));
        push(&mut h, "a frame after the flush");
        element.set_state(gst::State::Null).unwrap();
        check("the stop with frames under way");
        element.set_state(gst::State::Paused).unwrap();
        check("a start");
        element.set_state(gst::State::Null).unwrap();
        check("the stop without a frame");
        assert_eq!(error_on(&bus), None);
        drop((h, bus, element));
        check("the end");
        // SAFETY: made above, and used by nobody else.
        unsafe { sys::cuCtxDestroy_v2(context).result().unwrap() };
    }
}

#[test]
fn an_element_works_after_an_error_and_a_restart() {
    if device("an_element_works_after_an_error_and_a_restart").is_none() {
        return;
    }
    let mut pair = Pair::new();
    pair.set_caps(caps("RGB", 97, 81));
    let input = picture(&info("RGB", 97, 81), 1, 0);
    let before = pair.compare(&input, "before");
    // So many in a row end a stream.
    for _ in 1..10 {
        assert!(pair.cuda.harness.push(gst::Buffer::with_size(10).unwrap()).is_ok());
    }
    assert_eq!(pair.cuda.harness.push(gst::Buffer::with_size(10).unwrap()), Err(gst::FlowError::Error));
    assert!(error_on(&pair.cuda.bus).is_some_and(|text| text.contains("buffer")));
    assert!(pair.compare(&input, "after the error") == before);
    for side in [&mut pair.cpu, &mut pair.cuda] {
        side.element.set_state(gst::State::Null).unwrap();
        side.harness.play();
        // A stopped pad has forgotten its events.
        side.harness.push_event(gst::event::StreamStart::new("again"));
        side.harness.push_event(gst::event::Caps::new(&caps("RGB", 97, 81)));
        side.harness.push_event(gst::event::Segment::new(&gst::FormattedSegment::<gst::ClockTime>::new()));
    }
    assert!(pair.compare(&input, "after the restart") == before);
}

#[test]
fn the_device_is_chosen_and_named() {
    if device("the_device_is_chosen_and_named").is_none() {
        return;
    }
    for (backend, id) in [("cuda", -1), ("cuda", 0), ("auto", -1), ("auto", 0)] {
        let element = superpixel();
        element.set_property_from_str("backend", backend);
        element.set_property("cuda-device-id", id);
        element.set_state(gst::State::Paused).unwrap();
        let active = element.property::<String>("active-backend");
        let name = active.strip_prefix("cuda:").and_then(|rest| rest.split_once(' '));
        let (ordinal, name) = name.unwrap_or_else(|| panic!("{active:?}"));
        assert!((id < 0 || ordinal == id.to_string()) && !name.is_empty(), "{active:?} for {id}");
        element.set_state(gst::State::Null).unwrap();
    }
    let element = superpixel();
    let bus = TestBus::new(&element);
    element.set_property_from_str("backend", "cuda");
    element.set_property("cuda-device-id", i32::MAX);
    assert!(element.set_state(gst::State::Paused).is_err());
    let text = error_on(&bus).expect("an element error");
    assert!(text.contains("no device 2147483647"), "{text}");
    element.set_state(gst::State::Null).unwrap();
}

#[test]
fn stats_count_frames_and_leave_stage_times_out() {
    if device("stats_count_frames_and_leave_stage_times_out").is_none() {
        return;
    }
    let mut side = Side::new("cuda");
    side.harness.set_src_caps(caps("RGB", 97, 81));
    let mut regions = 0;
    for seed in 0..3 {
        let output = side.pass(picture(&info("RGB", 97, 81), seed, 0), "stats");
        regions = SuperpixelMeta::from_buffer(&output).unwrap().regions();
    }
    let stats = side.element.property::<gst::Structure>("stats");
    assert_eq!(stats.get::<u64>("frames"), Ok(3));
    assert_eq!(stats.get::<u32>("regions"), Ok(regions));
    assert!(stats.get::<u64>("frame-time-us").unwrap() > 0);
    assert!(stats.get::<u64>("frame-time-us-mean").unwrap() > 0);
    assert!(!stats.has_field("stage-times-us"), "{stats}");
}

#[test]
fn an_algorithm_of_the_cpu_takes_the_cpu_or_says_so() {
    let Some(_) = device("an_algorithm_of_the_cpu_takes_the_cpu_or_says_so") else { return };
    let info = info("RGB", 96, 64);
    let frame = |pts: u64| {
        let mut buffer = picture(&info, 3, 0);
        buffer.make_mut().set_pts(gst::ClockTime::from_mseconds(40 * pts));
        buffer
    };
    let active = |element: &gst::Element| element.property::<String>("active-backend");
    let labels = |buffer: &gst::Buffer| outcome(buffer).attached.unwrap().labels;
    let run = |backend: &str, algo: &str| {
        let element = superpixel();
        element.set_property_from_str("backend", backend);
        element.set_property_from_str("algo", algo);
        let (mut h, bus) = harness(&element);
        h.set_src_caps(caps("RGB", 96, 64));
        (h, element, bus)
    };

    // Chosen at start, or while frames are in flight, which leave in their order.
    let (mut h, element, _bus) = run("auto", "snic");
    assert!(active(&element).starts_with("cpu "), "{}", active(&element));
    let wanted = labels(&h.push_and_pull(frame(0)).unwrap());
    let element = superpixel();
    element.set_property("async-depth", 2u32);
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("RGB", 96, 64));
    assert!(active(&element).starts_with("cuda:"));
    h.push(frame(0)).unwrap();
    h.push(frame(1)).unwrap();
    element.set_property_from_str("algo", "snic");
    h.push(frame(2)).unwrap();
    let out: Vec<_> = (0..3).map(|_| h.pull().unwrap()).collect();
    assert!(
        out.iter().enumerate().all(|(i, b)| b.pts() == Some(gst::ClockTime::from_mseconds(40 * i as u64)))
    );
    let algos: Vec<_> =
        out.iter().map(|buffer| SuperpixelMeta::from_buffer(buffer).unwrap().algo().to_string()).collect();
    assert_eq!(algos, ["slic", "slic", "snic"]);
    assert!(labels(&out[2]) == wanted);
    assert!(active(&element).starts_with("cpu "), "{}", active(&element));
    // From then on there is no device to wait for.
    element.set_property_from_str("algo", "slic");
    assert_eq!(h.push_and_pull(frame(3)).unwrap().pts(), Some(gst::ClockTime::from_mseconds(120)));

    // A backend that is set explicitly has no replacement.
    let element = superpixel();
    element.set_property_from_str("backend", "cuda");
    element.set_property_from_str("algo", "snic");
    let bus = TestBus::new(&element);
    assert!(element.set_state(gst::State::Paused).is_err());
    assert!(error_on(&bus).unwrap().contains("backend=cpu"), "{:?}", error_on(&bus));
    element.set_state(gst::State::Null).unwrap();
    let (mut h, element, bus) = run("cuda", "slic");
    h.push_and_pull(frame(0)).unwrap();
    // Not even where another backend is set for the next start.
    for backend in ["cuda", "cpu", "auto"] {
        element.set_property_from_str("backend", backend);
        element.set_property_from_str("algo", "snic");
        assert!(warning_on(&bus).unwrap().contains("runs on the CPU only"), "{backend}");
        let output = h.push_and_pull(frame(1)).unwrap();
        assert_eq!(SuperpixelMeta::from_buffer(&output).unwrap().algo(), "slic", "{backend}");
        assert!(active(&element).starts_with("cuda:"));
    }
    assert_eq!(error_on(&bus), None);
    // After the next start it counts.
    element.set_state(gst::State::Null).unwrap();
    element.set_property_from_str("algo", "snic");
    element.set_state(gst::State::Paused).unwrap();
    assert!(active(&element).starts_with("cpu "), "{}", active(&element));
    element.set_state(gst::State::Null).unwrap();
}
