// SPDX-License-Identifier: MPL-2.0
//! Elements with the same `batch-group`: frames of several streams side by side, each with what it has by itself on the CPU.

use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{error_on, harness, picture, superpixel};
use crate::device::device;
use crate::element::{Outcome, assert_same, outcome};
use gst::prelude::*;

/// An element of a stream.
struct Stream {
    harness: gst_check::Harness,
    element: gst::Element,
    bus: crate::common::TestBus,
}

impl Stream {
    fn new(settings: &[(&str, &str)], caps: &str) -> Self {
        let element = superpixel();
        element.set_property("neighbors", true);
        for (name, value) in settings {
            element.set_property_from_str(name, value);
        }
        let (mut harness, bus) = harness(&element);
        harness.set_src_caps_str(caps);
        Self { harness, element, bus }
    }

    fn pass(&mut self, input: gst::Buffer) -> Outcome {
        match self.harness.push_and_pull(input) {
            Ok(output) => outcome(&output),
            Err(error) => panic!("{error}: {:?}", error_on(&self.bus)),
        }
    }

    fn frames_in_batch(&self) -> u64 {
        self.element.property::<gst::Structure>("stats").get("frames-in-batch").unwrap()
    }
}

/// What the frames of a stream give on the CPU.
fn alone(settings: &[(&str, &str)], frames: impl Iterator<Item = gst::Buffer>) -> Vec<Outcome> {
    let settings: Vec<_> = settings.iter().copied().filter(|(name, _)| !name.starts_with("batch")).collect();
    let mut stream = Stream::new(&[&settings[..], &[("backend", "cpu")]].concat(), CAPS);
    frames.map(|buffer| stream.pass(buffer)).collect()
}

const CAPS: &str = "video/x-raw,format=RGB,width=96,height=64,framerate=30/1";

/// Frame `i` of a stream: a picture that moves.
fn frame(stream: u64, i: u64) -> gst::Buffer {
    let info = crate::common::info("RGB", 96, 64);
    let mut buffer = picture(&info, (100 * stream + i / 4) as u32, 0);
    let made = buffer.get_mut().unwrap();
    made.set_pts(gst::ClockTime::from_mseconds(33 * i));
    if stream == 1 && i == 5 {
        made.set_flags(gst::BufferFlags::DISCONT);
    }
    buffer
}

#[test]
fn streams_of_a_group_give_what_each_gives_alone() {
    if device("streams_of_a_group_give_what_each_gives_alone").is_none() {
        return;
    }
    let settings = [
        ("temporal", "true"),
        ("overlay", "none"),
        ("batch-group", "1"),
        ("batch-size", "3"),
        // A busy machine is slow, and every batch has to be full.
        ("batch-wait", "10000"),
    ];
    // Every stream is drawn on in its own way.
    let overlays = ["boundaries", "mean-color-boundaries", "labels"];
    // The third ends after half of the frames.
    let (all, two) = (Barrier::new(3), Barrier::new(2));
    // When each round of frames began. A machine so busy that one takes as long as a frame waits need not fill its batches.
    let began = Mutex::new(Vec::new());
    let is_quick = |round: usize| {
        let began = began.lock().unwrap();
        let times = began[round - 1..].iter().copied().chain([Instant::now()]).collect::<Vec<Instant>>();
        times.windows(2).all(|pair| pair[1] - pair[0] < Duration::from_secs(5))
    };
    thread::scope(|scope| {
        for number in 0..3 {
            let (all, two, began, is_quick) = (&all, &two, &began, &is_quick);
            scope.spawn(move || {
                let frames = || (0..if number == 2 { 4 } else { 8 }).map(move |i| frame(number, i));
                let settings = [&settings[..], &[("overlay", overlays[number as usize])]].concat();
                let wanted = alone(&settings, frames());
                let mut stream = Stream::new(&[&settings[..], &[("backend", "cuda")]].concat(), CAPS);
                for (i, (input, want)) in frames().zip(&wanted).enumerate() {
                    let barrier = if i < 4 { all } else { two };
                    if barrier.wait().is_leader() {
                        began.lock().unwrap().push(Instant::now());
                    }
                    // The time is known before any frame is handed in.
                    barrier.wait();
                    let case = format!("stream {number}, frame {i}");
                    assert_same(want, &stream.pass(input), &case);
                    // An element joins with its first frame.
                    if i > 0 && is_quick(i) {
                        assert_eq!(stream.frames_in_batch(), if i < 4 { 3 } else { 2 }, "{case}");
                    }
                }
            });
        }
    });
}

#[test]
fn a_frame_waits_no_longer_than_is_said() {
    if device("a_frame_waits_no_longer_than_is_said").is_none() {
        return;
    }
    let settings = [("backend", "cuda"), ("batch-group", "2"), ("batch-wait", "40")];
    let (mut first, mut second) = (Stream::new(&settings, CAPS), Stream::new(&settings, CAPS));
    let latency = |stream: &mut Stream| stream.harness.query_latency().unwrap();
    assert!(latency(&mut first) >= gst::ClockTime::from_mseconds(40), "{}", latency(&mut first));
    let wanted = alone(&settings[1..], (0..3).map(|i| frame(0, i)));
    first.pass(frame(0, 0));
    assert_same(&wanted[0], &second.pass(frame(0, 0)), "the first frame of the second");
    // The other one has a frame now and then, and this one waits for it.
    assert_same(&wanted[1], &first.pass(frame(0, 1)), "alone");
    assert_eq!(first.frames_in_batch(), 1);
    drop(second);
    assert_same(&wanted[2], &first.pass(frame(0, 2)), "with nobody to wait for");
}

#[test]
fn streams_that_do_not_agree_are_apart() {
    if device("streams_that_do_not_agree_are_apart").is_none() {
        return;
    }
    let group = [
        ("temporal", "true"),
        ("overlay", "none"),
        ("batch-group", "3"),
        ("batch-size", "1"),
        ("batch-wait", "1000"),
    ];
    let others: [&[(&str, &str)]; 4] =
        [&[], &[("superpixel-size", "12")], &[("compactness", "30")], &[("overlay", "abstraction")]];
    // None of them waits for another, which sends nothing.
    let mut streams: Vec<_> = others
        .iter()
        .map(|own| {
            let settings = [&group[..], own].concat();
            let wanted = alone(&settings, (0..3).map(|i| frame(0, i)));
            (Stream::new(&[&settings[..], &[("backend", "cuda")]].concat(), CAPS), wanted)
        })
        .collect();
    for i in 0..3 {
        for ((stream, wanted), own) in streams.iter_mut().zip(&others) {
            assert_same(&wanted[i as usize], &stream.pass(frame(0, i)), &format!("{own:?}, frame {i}"));
            assert_eq!(stream.frames_in_batch(), 1, "{own:?}");
        }
    }
    // A parameter that changes while frames come.
    let (stream, _) = &mut streams[0];
    stream.element.set_property("superpixel-size", 16u32);
    let regions = |outcome: &Outcome| outcome.regions();
    assert!(regions(&stream.pass(frame(0, 3))) < regions(&streams[2].1[2]));
}
