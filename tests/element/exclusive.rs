// SPDX-License-Identifier: MPL-2.0
//! Properties that exclude each other: refused at the write while the element runs, which goes on; before start in any order, with an
//! error at start that says what to do; controlled ones by their values of each frame.

use std::sync::{Arc, Mutex};

use crate::common::{
    TestBus, caps, error_on, frame_info, harness, info, library, params, picture, superpixel, warning_on,
};
use crate::control::control;
use gst::prelude::*;
use gstsuperpixel::meta::SuperpixelMeta;
use gstsuperpixel::params::Params;
use gstsuperpixel::post::{hierarchy, merge};

const WIDTH: u32 = 96;
const HEIGHT: u32 = 64;

fn labels(buffer: &gst::BufferRef) -> Vec<u16> {
    SuperpixelMeta::from_buffer(buffer).expect("meta").labels().expect("labels").as_slice().to_vec()
}

fn with(regions: u32, ratio: f32) -> Params {
    Params {
        merge: merge::Params { ratio, ..Default::default() },
        hierarchy: hierarchy::Params { regions, ..Default::default() },
        ..params()
    }
}

/// The library's label map for the picture of a frame.
fn expected(params: &Params, seed: u32) -> Vec<u16> {
    let info = info("RGB", WIDTH, HEIGHT);
    library(&picture(&info, seed, 0), &info, frame_info(&info), params, None).labels
}

fn set(element: &gst::Element, name: &str, value: f32) {
    match name {
        "regions" => element.set_property(name, value as u32),
        _ => element.set_property(name, value),
    }
}

fn get(element: &gst::Element, name: &str) -> f32 {
    match name {
        "regions" => element.property::<u32>(name) as f32,
        _ => element.property(name),
    }
}

#[test]
fn a_write_while_running_keeps_the_old_value_and_says_why() {
    let info = info("RGB", WIDTH, HEIGHT);
    for (first, value, second, refused) in [("regions", 20.0, "merge", 2.0), ("merge", 2.0, "regions", 20.0)]
    {
        let element = superpixel();
        element.set_property_from_str("overlay", "none");
        set(&element, first, value);
        let (mut h, bus) = harness(&element);
        h.set_src_caps(caps("RGB", WIDTH, HEIGHT));
        let own = if first == "regions" { with(20, 0.0) } else { with(0, 2.0) };
        assert!(labels(&h.push_and_pull(picture(&info, 3, 0)).unwrap()) == expected(&own, 3));
        // A handler of `notify` sees the final value.
        let seen = Arc::new(Mutex::new(Vec::new()));
        let notified = seen.clone();
        element.connect_notify(Some(second), move |element, property| {
            notified.lock().unwrap().push(get(element, property.name()));
        });
        set(&element, second, refused);
        assert_eq!(get(&element, second), 0.0);
        assert_eq!(*seen.lock().unwrap(), [0.0]);
        let said = warning_on(&bus).expect("a warning");
        assert!(said.contains(second) && said.contains("regions must be 0 while merge is above 0"), "{said}");
        for seed in [3, 4] {
            assert!(labels(&h.push_and_pull(picture(&info, seed, 0)).unwrap()) == expected(&own, seed));
        }
        // One after the other it is a change as any.
        set(&element, first, 0.0);
        set(&element, second, refused);
        let other = if first == "regions" { with(0, 2.0) } else { with(20, 0.0) };
        assert!(labels(&h.push_and_pull(picture(&info, 3, 0)).unwrap()) == expected(&other, 3));
        assert_eq!(error_on(&bus), None);
        assert_eq!(warning_on(&bus), None);
    }
}

#[test]
fn before_start_any_order_goes_and_a_contradiction_is_an_error_there() {
    let element = superpixel();
    let bus = TestBus::new(&element);
    element.set_property("merge", 2f32);
    element.set_property("regions", 20u32);
    assert_eq!((element.property::<f32>("merge"), element.property::<u32>("regions")), (2.0, 20));
    assert!(element.set_state(gst::State::Paused).is_err());
    let said = error_on(&bus).expect("an error");
    assert!(said.contains("regions must be 0 while merge is above 0"), "{said}");
    // The failed start leaves no state behind.
    element.set_state(gst::State::Null).unwrap();
    element.set_property("regions", 30u32);
    element.set_property("merge", 0f32);
    element.set_state(gst::State::Paused).unwrap();
    element.set_property("merge", 1f32);
    assert_eq!(element.property::<f32>("merge"), 0.0);
    assert!(warning_on(&bus).is_some());
    element.set_state(gst::State::Null).unwrap();
    element.set_property("merge", 1f32);
    assert_eq!(element.property::<f32>("merge"), 1.0);
    assert_eq!((warning_on(&bus), error_on(&bus)), (None, None));
}

/// Both values are of one frame, whichever GStreamer sets first.
#[test]
fn controlled_values_change_places_at_once() {
    let info = info("RGB", WIDTH, HEIGHT);
    for merge_first in [false, true] {
        let element = superpixel();
        element.set_property_from_str("overlay", "none");
        let (mut h, bus) = harness(&element);
        h.set_src_caps(caps("RGB", WIDTH, HEIGHT));
        let merge =
            || control(&element, c"merge", &[(0, 0.0), (1, 0.0), (2, 2.0), (3, 2.0), (4, 0.0), (9, 0.0)]);
        let regions = || {
            control(&element, c"regions", &[(0, 20.0), (1, 20.0), (2, 0.0), (3, 0.0), (4, 12.0), (9, 12.0)])
        };
        if merge_first {
            merge();
        }
        regions();
        if !merge_first {
            merge();
        }
        let wanted = [with(20, 0.0), with(20, 0.0), with(0, 2.0), with(0, 2.0), with(12, 0.0)];
        for (seed, wanted) in (0..).zip(&wanted) {
            let found = labels(&h.push_and_pull(picture(&info, seed, 0)).unwrap());
            assert!(found == expected(wanted, seed), "frame {seed}, merge first: {merge_first}");
        }
        assert_eq!((warning_on(&bus), error_on(&bus)), (None, None));
    }
}

#[test]
fn controlled_values_that_exclude_each_other_are_refused_with_one_warning() {
    let info = info("RGB", WIDTH, HEIGHT);
    let element = superpixel();
    element.set_property_from_str("overlay", "none");
    element.set_property("regions", 20u32);
    let (mut h, bus) = harness(&element);
    h.set_src_caps(caps("RGB", WIDTH, HEIGHT));
    control(&element, c"compactness", &[(0, 10.0), (1, 10.0), (2, 40.0), (9, 40.0)]);
    control(&element, c"merge", &[(0, 0.0), (1, 0.0), (2, 2.0), (6, 2.0), (7, 0.0), (9, 0.0)]);
    for seed in 0..9 {
        let mut wanted = with(20, 0.0);
        if seed > 1 {
            let own = gstsuperpixel::algo::slic::Params { compactness: 40.0, ..Default::default() };
            wanted.algorithm = gstsuperpixel::algo::AlgorithmParams::Slic(own);
        }
        let found = labels(&h.push_and_pull(picture(&info, seed, 0)).unwrap());
        assert!(found == expected(&wanted, seed), "frame {seed}");
        assert_eq!(element.property::<f32>("merge"), 0.0);
        // The others count all the same, and so many frames say it once.
        assert_eq!(warning_on(&bus).is_some(), seed == 2, "frame {seed}");
    }
    assert_eq!(error_on(&bus), None);
}

/// Another thread writes while frames come: every frame leaves.
#[test]
fn writers_on_other_threads_never_end_the_stream() {
    let info = info("RGB", 48, 32);
    let element = superpixel();
    let (mut h, bus) = harness(&element);
    h.set_src_caps(caps("RGB", 48, 32));
    control(&element, c"regions-compactness", &[(0, 1.0), (100, 90.0)]);
    std::thread::scope(|scope| {
        for (name, value) in [("regions", 9.0), ("merge", 2.0)] {
            let element = &element;
            scope.spawn(move || {
                for i in 0..200 {
                    set(element, name, if i % 2 == 0 { value } else { 0.0 });
                    std::thread::yield_now();
                }
            });
        }
        for seed in 0..60 {
            h.push_and_pull(picture(&info, seed, 0)).unwrap();
        }
    });
    assert_eq!(error_on(&bus), None);
}
