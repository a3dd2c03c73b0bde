// SPDX-License-Identifier: MPL-2.0
//! `async-depth`: frames under way while the next come. What leaves is what leaves without it, in order and complete.
//!
//! Without a device each test prints that it was skipped; `SUPERPIXEL_REQUIRE_CUDA=1` makes that a failure.

use crate::common;
use crate::common::{
    TestBus, bytes, caps, error_on, harness, info, launch, picture, pixels, samples, superpixel,
};
use crate::device::{device, or_skip, short};
use gst::prelude::*;
use gstsuperpixel::meta::SuperpixelMeta;

fn element(backend: &str, depth: u32) -> (gst::Element, gst_check::Harness, TestBus) {
    let element = superpixel();
    element.set_property_from_str("backend", backend);
    element.set_property("neighbors", true);
    element.set_property("async-depth", depth);
    let (harness, bus) = harness(&element);
    (element, harness, bus)
}

/// Content of a frame: time, pixels, metadata.
type Content = (Option<gst::ClockTime>, Vec<u8>, Option<Vec<u8>>);

fn content(buffer: &gst::BufferRef) -> Content {
    let meta = SuperpixelMeta::from_buffer(buffer).map(|meta| {
        let labels = meta.labels().unwrap();
        let mut all: Vec<u8> = labels.as_slice().iter().flat_map(|label| label.to_le_bytes()).collect();
        all.extend_from_slice(bytemuck::cast_slice(&meta.table().unwrap()));
        all.extend_from_slice(bytemuck::cast_slice(&meta.neighbors().unwrap()));
        all.extend_from_slice(bytemuck::cast_slice(&meta.motion().unwrap()));
        all.extend_from_slice(bytemuck::cast_slice(&meta.merges().unwrap()));
        all
    });
    (buffer.pts(), bytes(buffer), meta)
}

/// Ends a stream of which `left` has left, and returns all that leaves.
fn end(mut h: gst_check::Harness, bus: &TestBus, mut left: Vec<Content>) -> Vec<Content> {
    assert!(h.push_event(gst::event::Eos::new()));
    while let Some(buffer) = h.try_pull() {
        left.push(content(&buffer));
    }
    assert_eq!(error_on(bus), None);
    left
}

/// Compares what leaves at every depth with what the CPU gives, so many frames. `run` is for a backend and a depth.
fn compare_depths(count: usize, what: &str, run: impl Fn(&str, u32) -> Vec<Content>) {
    let expected = run("cpu", 0);
    assert_eq!(expected.len(), count, "{what}");
    for depth in 0..=4 {
        let found = run("cuda", depth);
        assert_eq!(found.len(), count, "{what}, depth {depth}");
        for (frame, (expected, found)) in expected.iter().zip(&found).enumerate() {
            assert!(expected == found, "{what}, depth {depth}, frame {frame}");
        }
    }
}

/// Pushes frames while properties change, and returns what leaves until the end of the stream.
fn run(backend: &str, depth: u32, temporal: bool) -> Vec<Content> {
    let (element, mut h, bus) = element(backend, depth);
    element.set_property("temporal", temporal);
    let mut left = Vec::new();
    for (i, (name, width, height)) in [("NV12", 97, 81), ("RGBA", 64, 48)].into_iter().enumerate() {
        let before = left.len();
        h.set_src_caps(caps(name, width, height));
        while let Some(buffer) = h.try_pull() {
            left.push(content(&buffer));
        }
        if i > 0 {
            assert_eq!(left.len(), before + depth as usize, "new caps: frames under way have left");
        }
        for seed in 0..12u32 {
            match seed {
                3 => element.set_property_from_str("overlay", "none"),
                4 => element.set_property_from_str("overlay", "labels"),
                5 => element.set_property_from_str("overlay", "mean-color-boundaries"),
                6 => element.set_property("superpixel-size", 12u32),
                8 => element.set_property("labels", false),
                9 => element.set_property("labels", true),
                10 => element.set_property("neighbors", seed % 2 == i as u32 % 2),
                _ => {}
            }
            // Every second frame goes on from the last.
            let mut input = picture(&info(name, width, height), seed / 2 * 2, 0);
            let writable = input.get_mut().unwrap();
            writable.set_pts(gst::ClockTime::from_mseconds(40 * u64::from(seed)));
            if seed == 7 {
                writable.set_flags(gst::BufferFlags::DISCONT);
            }
            assert_eq!(h.push(input), Ok(gst::FlowSuccess::Ok));
            while let Some(buffer) = h.try_pull() {
                left.push(content(&buffer));
            }
        }
        assert_eq!(left.len(), 12 * (i + 1) - depth as usize, "depth {depth}");
    }
    end(h, &bus, left)
}

#[test]
fn every_depth_gives_what_none_gives() {
    if device("every_depth_gives_what_none_gives").is_none() {
        return;
    }
    for temporal in [false, true] {
        compare_depths(24, &format!("temporal {temporal}"), |backend, depth| run(backend, depth, temporal));
    }
}

/// Pushes frames while a number of regions, and with it `merge`, the list of merges and the region table, comes and goes.
fn run_with_numbers(backend: &str, depth: u32) -> Vec<Content> {
    let (element, mut h, bus) = element(backend, depth);
    element.set_property("temporal", true);
    h.set_src_caps(caps("NV12", 97, 81));
    let mut left = Vec::new();
    for frame in 0..18u32 {
        let part = frame as usize / 3;
        // One is switched off before the other is switched on.
        element.set_property("merge", 0f32);
        element.set_property("regions", [0u32, 50, 0, 20, 35, 0][part]);
        element.set_property("merge", [0f32, 0.0, 2.0, 0.0, 0.0, 0.0][part]);
        element.set_property("hierarchy", frame % 4 > 1);
        element.set_property("region-table", frame % 2 == 1);
        assert_eq!(h.push(picture(&info("NV12", 97, 81), 3, 0)), Ok(gst::FlowSuccess::Ok), "frame {frame}");
        while let Some(buffer) = h.try_pull() {
            left.push(content(&buffer));
        }
    }
    end(h, &bus, left)
}

#[test]
fn numbers_of_regions_come_and_go_at_every_depth() {
    if device("numbers_of_regions_come_and_go_at_every_depth").is_none() {
        return;
    }
    compare_depths(18, "numbers of regions", run_with_numbers);
}

/// A frame's metadata names the settings that it was made with, not those at the time it leaves.
#[test]
fn missing_regions_are_those_of_the_frame_that_leaves() {
    if device("missing_regions_are_those_of_the_frame_that_leaves").is_none() {
        return;
    }
    // More than there are, none, as many as there are.
    const WANTED: [u32; 9] = [20, 20, 20, 60_000, 60_000, 0, 0, 12, 12];
    for depth in 0..=4usize {
        let (element, mut h, bus) = element("cuda", depth as u32);
        h.set_src_caps(caps("NV12", 97, 81));
        let missing = || element.property::<gst::Structure>("stats").get::<u32>("regions-missing").ok();
        let mut left = 0;
        let mut check = |buffer: gst::Buffer, missing: Option<u32>| {
            let found = SuperpixelMeta::from_buffer(&buffer).unwrap().regions();
            let wanted = WANTED[left];
            let expected = (wanted > 0).then(|| wanted.saturating_sub(found));
            assert_eq!(missing, expected, "depth {depth}, frame {left}, {found} of {wanted}");
            assert!(wanted != 60_000 || missing > Some(0));
            left += 1;
        };
        for (frame, wanted) in WANTED.into_iter().enumerate() {
            element.set_property("regions", wanted);
            assert_eq!(h.push(picture(&info("NV12", 97, 81), 3, 0)), Ok(gst::FlowSuccess::Ok));
            assert_eq!(h.buffers_in_queue(), u32::from(frame >= depth));
            if let Some(buffer) = h.try_pull() {
                check(buffer, missing());
            }
        }
        // The last ones leave together, so that the figures are those of the last.
        assert!(h.push_event(gst::event::Eos::new()));
        assert_eq!(h.buffers_in_queue() as usize, depth);
        assert_eq!(missing(), Some(0));
        assert_eq!(error_on(&bus), None);
    }
}

#[test]
fn latency_is_that_of_the_frames_under_way() {
    if device("latency_is_that_of_the_frames_under_way").is_none() {
        return;
    }
    for (backend, depth, frames) in [("cuda", 0, 0), ("cuda", 1, 1), ("cuda", 4, 4), ("cpu", 4, 0)] {
        // A stream of no fixed rate counts as one of 25 frames a second.
        for (rate, ms) in [((50, 1), 20), ((0, 1), 40), ((1, i32::MAX), i32::MAX as u64 * 1000)] {
            let (_element, mut h, bus) = element(backend, depth);
            let mut caps = caps("NV12", 64, 48);
            caps.make_mut().set("framerate", gst::Fraction::new(rate.0, rate.1));
            h.set_src_caps(caps);
            let expected = gst::ClockTime::from_mseconds(ms) * frames;
            assert_eq!(h.query_latency(), Some(expected), "{backend} {depth} {rate:?}");
            assert_eq!(error_on(&bus), None, "{backend} {depth} {rate:?}");
        }
    }
}

#[test]
fn a_flush_forgets_frames_under_way_and_a_discontinuity_does_not() {
    if device("a_flush_forgets_frames_under_way_and_a_discontinuity_does_not").is_none() {
        return;
    }
    let (_element, mut h, bus) = element("cuda", 3);
    h.set_src_caps(caps("RGB", 64, 48));
    let info = info("RGB", 64, 48);
    const DISCONT: [u64; 3] = [0, 3, 22];
    let frame = |seed: u32| {
        let mut input = picture(&info, seed, 0);
        if DISCONT.contains(&u64::from(seed)) {
            input.get_mut().unwrap().set_flags(gst::BufferFlags::DISCONT);
        }
        input
    };
    let mut seen = Vec::new();
    let pull = |h: &mut gst_check::Harness, seen: &mut Vec<u64>| {
        while let Some(buffer) = h.try_pull() {
            assert!(SuperpixelMeta::from_buffer(&buffer).is_some());
            let frame = buffer.pts().unwrap().mseconds() / 40;
            assert_eq!(
                buffer.flags().contains(gst::BufferFlags::DISCONT),
                DISCONT.contains(&frame),
                "{frame}"
            );
            seen.push(frame);
        }
    };
    for seed in 0..6 {
        h.push(frame(seed)).unwrap();
        pull(&mut h, &mut seen);
    }
    // The three before the discontinuity have left, those from it on are under way.
    assert_eq!(seen, [0, 1, 2]);
    h.push_event(gst::event::FlushStart::new());
    h.push_event(gst::event::FlushStop::new(true));
    h.push_event(gst::event::Segment::new(&gst::FormattedSegment::<gst::ClockTime>::new()));
    for seed in 20..25 {
        h.push(frame(seed)).unwrap();
    }
    h.push_event(gst::event::Eos::new());
    pull(&mut h, &mut seen);
    assert_eq!(seen, [0, 1, 2, 20, 21, 22, 23, 24]);
    assert_eq!(error_on(&bus), None);
}

/// Random frames, flushes, seeks and new caps, against a list of what has to leave.
#[test]
fn no_order_of_events_loses_or_reorders_a_frame() {
    if device("no_order_of_events_loses_or_reorders_a_frame").is_none() {
        return;
    }
    for depth in 1..=4usize {
        let (element, mut h, bus) = element("cuda", depth as u32);
        element.set_property("neighbors", false);
        let sizes = [(16u32, 16u32), (24, 8)];
        let pictures = sizes.map(|(width, height)| picture(&info("GRAY8", width, height), 1, 0));
        let (mut size, mut number, mut state) = (0, 0u64, depth as u64);
        let (mut under_way, mut expected, mut seen) =
            (std::collections::VecDeque::new(), Vec::new(), Vec::new());
        h.set_src_caps(caps("GRAY8", sizes[0].0, sizes[0].1));
        let segment = || gst::event::Segment::new(&gst::FormattedSegment::<gst::ClockTime>::new());
        for _ in 0..if short() { 150 } else { 4000 } {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            match state >> 60 {
                0 => {
                    h.push_event(gst::event::FlushStart::new());
                    h.push_event(gst::event::FlushStop::new(true));
                    h.push_event(segment());
                    under_way.clear();
                }
                1 => {
                    h.push_event(segment());
                    expected.extend(under_way.drain(..));
                }
                2 => {
                    size = 1 - size;
                    h.push_event(gst::event::Caps::new(&caps("GRAY8", sizes[size].0, sizes[size].1)));
                    expected.extend(under_way.drain(..));
                }
                kind => {
                    let mut buffer = pictures[size].copy_deep().unwrap();
                    let writable = buffer.get_mut().unwrap();
                    writable.set_pts(gst::ClockTime::from_mseconds(number));
                    if kind == 3 {
                        writable.set_flags(gst::BufferFlags::DISCONT);
                        expected.extend(under_way.drain(..));
                    }
                    under_way.push_back(number);
                    number += 1;
                    h.push(buffer).unwrap();
                    if under_way.len() > depth {
                        expected.extend(under_way.pop_front());
                    }
                }
            }
            while let Some(buffer) = h.try_pull() {
                seen.push(buffer.pts().unwrap().mseconds());
            }
            assert_eq!(seen, expected, "depth {depth}");
        }
        h.push_event(gst::event::Eos::new());
        expected.extend(under_way);
        while let Some(buffer) = h.try_pull() {
            seen.push(buffer.pts().unwrap().mseconds());
        }
        assert_eq!(seen, expected, "depth {depth}, end");
        assert_eq!(error_on(&bus), None);
    }
}

/// Records the output of an element in order: frames by number and size, events by name.
fn watch(element: &gst::Element) -> std::sync::Arc<std::sync::Mutex<Vec<String>>> {
    let seen = std::sync::Arc::<std::sync::Mutex<Vec<String>>>::default();
    let to = seen.clone();
    let kinds = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
    element.static_pad("src").unwrap().add_probe(kinds, move |_, info| {
        to.lock().unwrap().push(match &info.data {
            Some(gst::PadProbeData::Buffer(buffer)) => {
                format!("{} of {}", buffer.pts().unwrap().mseconds() / 40, buffer.size())
            }
            Some(gst::PadProbeData::Event(event)) => event.type_().name().to_string(),
            _ => String::new(),
        });
        gst::PadProbeReturn::Ok
    });
    seen
}

#[test]
fn events_and_queries_do_not_overtake_frames() {
    if device("events_and_queries_do_not_overtake_frames").is_none() {
        return;
    }
    let (element, mut h, bus) = element("cuda", 2);
    h.set_src_caps(caps("GRAY8", 32, 32));
    let seen = watch(&element);
    let info = info("GRAY8", 32, 32);
    let mut expected = Vec::new();
    for seed in 0..8 {
        h.push(picture(&info, seed, 0)).unwrap();
        expected.push(format!("{seed} of 1024"));
        let event = match seed {
            1 => gst_video::DownstreamForceKeyUnitEvent::builder().build(),
            2 => gst_video::StillFrameEvent::builder(true).build(),
            4 => gst::event::SegmentDone::new(gst::ClockTime::SECOND),
            5 => gst::event::Tag::new(gst::TagList::new()),
            6 => {
                assert!(element.static_pad("sink").unwrap().query(&mut gst::query::Drain::new()));
                assert_eq!(*seen.lock().unwrap(), expected, "a drained element holds no frame");
                continue;
            }
            _ => continue,
        };
        expected.push(event.type_().name().to_string());
        assert!(h.push_event(event));
        assert_eq!(*seen.lock().unwrap(), expected);
    }
    // Events out of band do not wait for frames.
    let oob = gst::event::CustomDownstreamOob::new(gst::Structure::new_empty("now"));
    assert!(h.push_event(oob));
    assert_eq!(seen.lock().unwrap().len(), expected.len());
    assert_eq!(error_on(&bus), None);
}

#[test]
fn frames_that_nobody_takes_do_not_leave_under_later_caps() {
    if device("frames_that_nobody_takes_do_not_leave_under_later_caps").is_none() {
        return;
    }
    let (element, mut h, bus) = element("cuda", 3);
    let (small, large) = (info("GRAY8", 32, 32), info("GRAY8", 64, 32));
    h.set_src_caps(caps("GRAY8", 32, 32));
    for seed in 0..3 {
        h.push(picture(&small, seed, 0)).unwrap();
    }
    let src = element.static_pad("src").unwrap();
    let peer = src.peer().unwrap();
    src.unlink(&peer).unwrap();
    h.push_event(gst::event::Caps::new(&caps("GRAY8", 64, 32)));
    src.link(&peer).unwrap();
    let seen = watch(&element);
    for seed in 3..8 {
        h.push(picture(&large, seed, 0)).unwrap();
    }
    h.push_event(gst::event::Eos::new());
    let frames =
        seen.lock().unwrap().iter().filter(|what| what.contains(" of ")).cloned().collect::<Vec<_>>();
    assert_eq!(frames, [3, 4, 5, 6, 7].map(|seed| format!("{seed} of 2048")));
    assert_eq!(error_on(&bus), None);
}

/// A pool of few buffers would never give another while frames under way hold all.
#[test]
fn pools_have_room_for_frames_under_way() {
    if device("pools_have_room_for_frames_under_way").is_none() {
        return;
    }
    for (backend, depth, held) in [("cuda", 0, 0), ("cuda", 3, 3), ("cpu", 3, 0)] {
        for (answers, offered) in [
            (false, None),
            (true, None),
            (true, Some((2, 0))),
            (true, Some((2, 4))),
            (true, Some((2, u32::MAX))),
        ] {
            let (element, mut h, bus) = element(backend, depth);
            if offered.is_some() || !answers {
                let sink = element.static_pad("src").unwrap().peer().unwrap();
                sink.add_probe(gst::PadProbeType::QUERY_DOWNSTREAM, move |_, info| {
                    let Some(gst::QueryViewMut::Allocation(query)) =
                        info.query_mut().map(|query| query.view_mut())
                    else {
                        return gst::PadProbeReturn::Ok;
                    };
                    let Some((min, max)) = offered else { return gst::PadProbeReturn::Drop };
                    query.add_allocation_pool(None::<&gst::BufferPool>, 1024, min, max);
                    gst::PadProbeReturn::Handled
                });
            }
            h.set_src_caps(caps("GRAY8", 32, 32));
            h.push(picture(&info("GRAY8", 32, 32), 1, 0)).unwrap();
            let mut query = gst::query::Allocation::new(Some(&caps("GRAY8", 32, 32)), true);
            // Nobody else would know of what is held.
            assert_eq!(element.static_pad("sink").unwrap().query(&mut query), answers || held > 0);
            let found: Vec<_> =
                query.allocation_pools().map(|(_, size, min, max)| (size, min, max)).collect();
            let expected = match offered {
                Some((min, max)) => {
                    vec![(1024, min + held, if max == 0 { 0 } else { max.saturating_add(held) })]
                }
                None if held > 0 => vec![(1024, held + 1, 0)],
                None => vec![],
            };
            assert_eq!(found, expected, "{backend}, {depth}, {answers}, {offered:?}");
            assert_eq!(error_on(&bus), None);
        }
    }
}

#[test]
fn a_stop_with_frames_under_way_starts_again() {
    if device("a_stop_with_frames_under_way_starts_again").is_none() {
        return;
    }
    let line = "videotestsrc num-buffers=9 pattern=ball ! video/x-raw,format=NV12,width=96,height=64 ! \
                superpixel name=s backend=cuda async-depth=4 overlay=labels ! appsink name=out";
    assert_eq!(samples(line).len(), 9);
    let pipeline = launch(&line.replace("num-buffers=9 ", ""));
    for _ in 0..10 {
        pipeline.set_state(gst::State::Playing).unwrap();
        let (result, _, _) = pipeline.state(common::PATIENCE);
        assert!(result.is_ok(), "{:?}", error_on(&pipeline.bus().unwrap()));
        pipeline.set_state(gst::State::Null).unwrap();
    }
}

#[test]
fn frames_of_the_device_leave_in_order_and_as_without() {
    common::init();
    let test = "frames_of_the_device_leave_in_order_and_as_without";
    let upload = gst::ElementFactory::find("cudaupload").ok_or("no cudaupload (plugin nvcodec)".into());
    if device(test).is_none() || or_skip(test, upload).is_none() {
        return;
    }
    let found = |properties: &str, upload: &str| -> Vec<Content> {
        let line = format!(
            "videotestsrc num-buffers=14 pattern=ball ! video/x-raw,format=NV12,width=96,height=64 ! {upload} \
             superpixel superpixel-size=8 neighbors=true overlay=mean-color {properties} ! appsink name=out"
        );
        let content = |sample: &gst::Sample| {
            let (buffer, caps) = (sample.buffer().unwrap(), sample.caps().unwrap());
            let (pts, _, attached) = content(buffer);
            // Device memory has its own distance of rows; a map for reading brings it down.
            (pts, pixels(buffer, &gst_video::VideoInfo::from_caps(caps).unwrap()), attached)
        };
        samples(&line).iter().map(content).collect()
    };
    let expected = found("backend=cpu", "");
    assert_eq!(expected.len(), 14);
    let upload = "cudaupload ! video/x-raw(memory:CUDAMemory) !";
    for depth in 0..=4 {
        let found = found(&format!("backend=cuda async-depth={depth}"), upload);
        assert_eq!(found.len(), 14, "depth {depth}");
        for (frame, (expected, found)) in expected.iter().zip(&found).enumerate() {
            assert!(expected == found, "depth {depth}, frame {frame}");
        }
    }
    let (_element, mut h, _bus) = element("cuda", 2);
    let mut caps = caps("NV12", 64, 48);
    caps.make_mut().set("framerate", gst::Fraction::new(50, 1));
    caps.make_mut().set_features_simple(Some(gst::CapsFeatures::new(["memory:CUDAMemory"])));
    h.set_src_caps(caps);
    assert_eq!(h.query_latency(), Some(gst::ClockTime::from_mseconds(40)));
}
