// SPDX-License-Identifier: MPL-2.0
//! The element `superpixel` in its stream: properties, shared buffers, events, caps changes, errors.

use crate::common;
use std::sync::{Arc, Mutex};

use crate::common::{
    PATIENCE, bytes, caps, error_on, frame_info, harness, info, launch, library, params, picture, superpixel,
};
use crate::control::control;
use gst::glib;
use gst::prelude::*;
use gstsuperpixel::algo::{Algorithm, AlgorithmParams, lsc, quickshift, slic, snic};
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::meta::SuperpixelMeta;
use gstsuperpixel::params::{Boundaries, Drawing, Fill, Params};

const WIDTH: u32 = 97;
const HEIGHT: u32 = 81;

fn labels(buffer: &gst::BufferRef) -> Vec<u16> {
    SuperpixelMeta::from_buffer(buffer).expect("meta").labels().expect("labels").as_slice().to_vec()
}

fn slic_params(params: &mut Params) -> &mut slic::Params {
    match &mut params.algorithm {
        AlgorithmParams::Slic(slic) => slic,
        other => panic!("{other:?} is not SLIC"),
    }
}

/// Sets the property of the name between two frames of a playing element; the very next frame has to be as the library
/// says, and unlike the one before.
#[test]
fn segmentation_properties_take_effect_on_the_next_frame() {
    type Change = fn(&mut Params);
    let changes: [(&str, &str, Change); 13] = [
        ("superpixel-size", "16", |p| p.superpixel_size = 16),
        ("superpixels", "40", |p| p.superpixels = 40),
        ("iterations", "1", |p| slic_params(p).iterations = 1),
        ("compactness", "2.5", |p| slic_params(p).compactness = 2.5),
        ("color-space", "lab-gslicr", |p| slic_params(p).color_space = ColorSpace::LabGslicr),
        ("color-space", "xyz-gslicr", |p| slic_params(p).color_space = ColorSpace::XyzGslicr),
        ("color-space", "rgb", |p| slic_params(p).color_space = ColorSpace::Rgb),
        ("adaptive-compactness", "true", |p| slic_params(p).adaptive_compactness = true),
        ("connectivity", "false", |p| p.connectivity = false),
        ("min-region", "1.5", |p| p.min_region = 1.5),
        ("min-region", "0", |p| p.min_region = 0.0),
        ("algo", "slic", |_| ()),
        ("algo", "lsc", |p| p.algorithm = AlgorithmParams::Lsc(lsc::Params::default())),
    ];
    let info = info("RGB", WIDTH, HEIGHT);
    let input = picture(&info, 1, 0);
    let usual = library(&input, &info, frame_info(&info), &params(), None);
    for (name, value, change) in changes {
        let element = superpixel();
        element.set_property_from_str("overlay", "none");
        let (mut h, _bus) = harness(&element);
        h.set_src_caps(caps("RGB", WIDTH, HEIGHT));
        assert!(labels(&h.push_and_pull(input.clone()).unwrap()) == usual.labels, "{name}: before");
        let mut changed = params();
        change(&mut changed);
        element.set_property_from_str(name, value);
        let expected = library(&input, &info, frame_info(&info), &changed, None);
        assert!(labels(&h.push_and_pull(input.clone()).unwrap()) == expected.labels, "{name}={value}: after");
        assert!(
            value == "slic" || expected.labels != usual.labels,
            "{name}={value} changes nothing in this picture"
        );
        let default = element.find_property(name).unwrap().default_value().clone();
        element.set_property_from_value(name, &default);
        element.set_property("superpixel-size", 8u32);
        assert!(labels(&h.push_and_pull(input.clone()).unwrap()) == usual.labels, "{name}: set back");
    }
}

#[test]
fn properties_of_lsc_take_effect_on_the_next_frame() {
    let info = info("NV12", WIDTH, HEIGHT);
    let input = picture(&info, 1, 0);
    let element = superpixel();
    element.set_property_from_str("overlay", "none");
    element.set_property_from_str("algo", "lsc");
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("NV12", WIDTH, HEIGHT));
    let mut seen: Vec<Vec<u16>> = Vec::new();
    for (name, value, iterations, ratio) in
        [("iterations", "5", 5, 0.1), ("iterations", "1", 1, 0.1), ("lsc-ratio", "0.4", 1, 0.4)]
    {
        element.set_property_from_str(name, value);
        let algorithm = AlgorithmParams::Lsc(lsc::Params { iterations, ratio });
        let expected = library(&input, &info, frame_info(&info), &Params { algorithm, ..params() }, None);
        let output = h.push_and_pull(input.clone()).unwrap();
        assert_eq!(SuperpixelMeta::from_buffer(&output).unwrap().algo(), "lsc");
        assert!(labels(&output) == expected.labels, "{name}={value}");
        assert!(!seen.contains(&expected.labels), "{name}={value} changes nothing in this picture");
        seen.push(expected.labels);
    }
}

#[test]
fn properties_of_snic_take_effect_on_the_next_frame() {
    let info = info("I420", WIDTH, HEIGHT);
    let input = picture(&info, 1, 0);
    let element = superpixel();
    element.set_property_from_str("overlay", "none");
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("I420", WIDTH, HEIGHT));
    let mut seen: Vec<Vec<u16>> = vec![labels(&h.push_and_pull(input.clone()).unwrap())];
    let mut own = snic::Params::default();
    for (name, value) in [("algo", "snic"), ("compactness", "40"), ("color-space", "rgb")] {
        element.set_property_from_str(name, value);
        match name {
            "compactness" => own.compactness = 40.0,
            "color-space" => own.color_space = ColorSpace::Rgb,
            _ => (),
        }
        let changed = Params { algorithm: AlgorithmParams::Snic(own.clone()), ..params() };
        let expected = library(&input, &info, frame_info(&info), &changed, None);
        let output = h.push_and_pull(input.clone()).unwrap();
        assert_eq!(SuperpixelMeta::from_buffer(&output).unwrap().algo(), "snic");
        assert!(labels(&output) == expected.labels, "{name}={value}");
        assert!(!seen.contains(&expected.labels), "{name}={value} changes nothing in this picture");
        seen.push(expected.labels);
    }
}

#[test]
fn the_values_of_algo_are_those_of_the_list() {
    let element = superpixel();
    let property = element.find_property("algo").unwrap();
    let values = property.downcast::<glib::ParamSpecEnum>().unwrap().enum_class();
    let nicks: Vec<_> = values.values().iter().map(|value| value.nick().to_string()).collect();
    let list: Vec<_> = Algorithm::ALL.iter().map(|algorithm| algorithm.nick().to_string()).collect();
    assert_eq!(nicks, list);
    assert!(Algorithm::ALL.iter().all(|&algorithm| algorithm.nick().parse() == Ok(algorithm)));
    assert!("slick".parse::<Algorithm>().unwrap_err().contains("slic, lsc"));
}

#[test]
fn properties_of_quickshift_take_effect_on_the_next_frame() {
    type Change = fn(&mut quickshift::Params);
    let changes: [(&str, &str, Change); 5] = [
        ("algo", "quickshift", |_| ()),
        ("sigma", "1.5", |p| p.sigma = 1.5),
        ("tau", "4", |p| p.tau = 4.0),
        ("color-scale", "2", |p| p.color_scale = 2.0),
        ("color-space", "rgb", |p| p.color_space = ColorSpace::Rgb),
    ];
    let info = info("RGB", WIDTH, HEIGHT);
    let input = picture(&info, 1, 0);
    let element = superpixel();
    element.set_property_from_str("overlay", "none");
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("RGB", WIDTH, HEIGHT));
    let mut last = labels(&h.push_and_pull(input.clone()).unwrap());
    let mut own = quickshift::Params::default();
    for (name, value, change) in changes {
        element.set_property_from_str(name, value);
        change(&mut own);
        let changed = Params { algorithm: AlgorithmParams::QuickShift(own.clone()), ..params() };
        let expected = library(&input, &info, frame_info(&info), &changed, None);
        let output = h.push_and_pull(input.clone()).unwrap();
        let meta = SuperpixelMeta::from_buffer(&output).expect("meta");
        assert_eq!(meta.algo(), "quickshift");
        let map = labels(&output);
        assert!(map == expected.labels, "{name}={value}: after");
        assert!(map != last, "{name}={value} changes nothing in this picture");
        last = map;
    }
}

#[test]
fn drawing_properties_take_effect_on_the_next_frame() {
    let info = info("RGBA", WIDTH, HEIGHT);
    let input = picture(&info, 2, 0);
    let element = superpixel();
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("RGBA", WIDTH, HEIGHT));
    let yellow = Boundaries::default();
    let red = Boundaries { color: 0x80ff_0000, ..yellow };
    let wide = Boundaries { width: 3, ..red };
    let line = |boundaries| Some(Drawing { fill: Fill::None, boundaries: Some(boundaries) });
    let mut seen: Vec<Vec<u8>> = Vec::new();
    for (name, value, drawing) in [
        ("overlay", "boundaries", line(yellow)),
        ("boundary-color", "2164195328", line(red)),
        ("boundary-width", "3", line(wide)),
        ("overlay", "mean-color", Some(Drawing { fill: Fill::MeanColor, boundaries: None })),
        ("overlay", "mean-color-boundaries", Some(Drawing { fill: Fill::MeanColor, boundaries: Some(wide) })),
        ("overlay", "labels", Some(Drawing { fill: Fill::Labels, boundaries: None })),
        ("overlay", "none", None),
    ] {
        element.set_property_from_str(name, value);
        let expected = library(&input, &info, frame_info(&info), &params(), drawing.as_ref());
        let output = bytes(&h.push_and_pull(input.copy_deep().unwrap()).unwrap());
        assert!(output == expected.drawn, "{name}={value}");
        assert!(!seen.contains(&output), "{name}={value} looks like an earlier one");
        seen.push(output);
    }
}

#[test]
fn output_properties_take_effect_on_the_next_frame() {
    let info = info("RGB", WIDTH, HEIGHT);
    let element = superpixel();
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("RGB", WIDTH, HEIGHT));
    let mut fields = |labels: bool, table: bool, neighbors: bool| {
        element.set_property("labels", labels);
        element.set_property("region-table", table);
        element.set_property("neighbors", neighbors);
        let output = h.push_and_pull(picture(&info, 1, 0)).unwrap();
        let meta = SuperpixelMeta::from_buffer(&output)?;
        Some((meta.table().unwrap().len() as u32 == meta.regions(), !meta.neighbors().unwrap().is_empty()))
    };
    assert_eq!(fields(true, true, false), Some((true, false)));
    assert_eq!(fields(true, false, true), Some((false, true)));
    assert_eq!(fields(true, true, true), Some((true, true)));
    assert_eq!(fields(true, false, false), Some((false, false)));
    assert_eq!(fields(false, true, true), None);
    assert_eq!(fields(true, true, false), Some((true, false)));
}

#[test]
fn labels_false_still_draws() {
    let info = info("RGB", WIDTH, HEIGHT);
    let input = picture(&info, 2, 0);
    let element = superpixel();
    element.set_property("labels", false);
    element.set_property_from_str("overlay", "mean-color");
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("RGB", WIDTH, HEIGHT));
    let drawing = Drawing { fill: Fill::MeanColor, boundaries: None };
    let expected = library(&input, &info, frame_info(&info), &params(), Some(&drawing));
    assert!(bytes(&h.push_and_pull(input).unwrap()) == expected.drawn);
}

#[test]
fn labels_only_neither_copies_nor_touches_a_shared_buffer() {
    let info = info("NV12", WIDTH, HEIGHT);
    let element = superpixel();
    element.set_property_from_str("overlay", "none");
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("NV12", WIDTH, HEIGHT));
    let held = picture(&info, 1, 0);
    let before = bytes(&held);
    let output = h.push_and_pull(held.clone()).unwrap();
    assert_eq!(output.peek_memory(0).as_ptr(), held.peek_memory(0).as_ptr(), "the pixels were copied");
    assert!(bytes(&held) == before);
    assert!(SuperpixelMeta::from_buffer(&held).is_none(), "the holder's buffer got the metadata");
    assert!(SuperpixelMeta::from_buffer(&output).is_some());
}

#[test]
fn drawing_leaves_the_other_holder_of_a_shared_buffer_alone() {
    let info = info("I420", WIDTH, HEIGHT);
    let element = superpixel();
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("I420", WIDTH, HEIGHT));
    let held = picture(&info, 1, 0);
    let before = bytes(&held);
    let output = h.push_and_pull(held.clone()).unwrap();
    assert!(bytes(&held) == before, "the holder's pixels changed");
    assert!(bytes(&output) != before, "nothing was drawn");
    assert!(SuperpixelMeta::from_buffer(&held).is_none());
}

#[test]
fn drawing_on_an_exclusive_buffer_copies_nothing() {
    let info = info("I420", WIDTH, HEIGHT);
    let element = superpixel();
    // A device's drawing comes down into memory of its own.
    element.set_property_from_str("backend", "cpu");
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("I420", WIDTH, HEIGHT));
    let input = picture(&info, 1, 0);
    let memory = input.peek_memory(0).as_ptr();
    assert_eq!(h.push_and_pull(input).unwrap().peek_memory(0).as_ptr(), memory);
}

#[test]
fn both_branches_of_a_tee_get_what_they_asked_for() {
    let pipeline = launch(
        "videotestsrc num-buffers=8 ! video/x-raw,format=I420,width=97,height=81 ! tee name=t \
         t. ! queue ! superpixel name=only overlay=none threads=1 ! appsink name=a sync=false \
         t. ! queue ! superpixel name=draw superpixel-size=24 threads=1 ! appsink name=b sync=false \
         t. ! queue ! appsink name=c sync=false",
    );
    pipeline.set_state(gst::State::Playing).unwrap();
    let sinks = ["a", "b", "c"].map(|n| pipeline.by_name(n).unwrap().downcast::<gst_app::AppSink>().unwrap());
    for _ in 0..8 {
        let [a, b, c] = sinks.each_ref().map(|sink| sink.try_pull_sample(PATIENCE).expect("sample"));
        let [a, b, c] = [&a, &b, &c].map(|sample| sample.buffer().unwrap());
        assert!(bytes(a) == bytes(c) && bytes(b) != bytes(c));
        assert!(labels(a) != labels(b) && SuperpixelMeta::from_buffer(c).is_none());
    }
    pipeline.set_state(gst::State::Null).unwrap();
}

#[test]
fn caps_may_change_in_the_stream() {
    let element = superpixel();
    let (mut h, _bus) = harness(&element);
    for (seed, (name, width, height)) in
        [("RGB", 64, 48), ("NV12", 64, 48), ("NV12", 33, 17), ("GRAY8", 128, 9), ("RGB", 64, 48)]
            .into_iter()
            .enumerate()
    {
        let info = info(name, width, height);
        h.set_src_caps(caps(name, width, height));
        for seed in [seed as u32, 10 + seed as u32] {
            let input = picture(&info, seed, 0);
            let drawing = Drawing { fill: Fill::None, boundaries: Some(Boundaries::default()) };
            let expected = library(&input, &info, frame_info(&info), &params(), Some(&drawing));
            let output = h.push_and_pull(input).unwrap();
            assert!(
                labels(&output) == expected.labels && bytes(&output) == expected.drawn,
                "{name} {width}x{height}"
            );
        }
    }
}

#[test]
fn timestamps_and_flags_stay() {
    let element = superpixel();
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("RGB", 32, 32));
    let mut input = picture(&info("RGB", 32, 32), 7, 0);
    input.get_mut().unwrap().set_flags(gst::BufferFlags::DISCONT | gst::BufferFlags::MARKER);
    input.get_mut().unwrap().set_offset(9);
    let (pts, duration) = (input.pts(), input.duration());
    let output = h.push_and_pull(input).unwrap();
    assert_eq!((output.pts(), output.duration(), output.offset()), (pts, duration, 9));
    assert!(output.flags().contains(gst::BufferFlags::DISCONT | gst::BufferFlags::MARKER));
}

#[test]
fn frames_after_flush_segment_and_discont_are_segmented_as_any_other() {
    for temporal in [false, true] {
        let info = info("RGB", WIDTH, HEIGHT);
        let element = superpixel();
        element.set_property("temporal", temporal);
        element.set_property_from_str("overlay", "none");
        let (mut h, _bus) = harness(&element);
        h.set_src_caps(caps("RGB", WIDTH, HEIGHT));
        let input = picture(&info, 1, 0);
        let expected = library(&input, &info, frame_info(&info), &params(), None).labels;
        assert!(labels(&h.push_and_pull(input.clone()).unwrap()) == expected);
        assert!(h.push_event(gst::event::FlushStart::new()));
        assert_eq!(h.push(picture(&info, 2, 0)), Err(gst::FlowError::Flushing));
        assert!(h.push_event(gst::event::FlushStop::new(true)));
        assert!(h.push_event(gst::event::Segment::new(&gst::FormattedSegment::<gst::ClockTime>::new())));
        assert!(labels(&h.push_and_pull(input.clone()).unwrap()) == expected);
        let mut discont = input.copy();
        discont.get_mut().unwrap().set_flags(gst::BufferFlags::DISCONT);
        assert!(labels(&h.push_and_pull(discont).unwrap()) == expected);
    }
}

#[test]
fn identities_last_until_the_stream_is_another() {
    // A device where there is one.
    for backend in ["cpu", "auto"] {
        identities_last(backend);
    }
}

/// Without any property, nearly all regions of a still picture are those of the frame before.
#[test]
fn streams_go_on_by_default() {
    common::init();
    for backend in ["cpu", "auto"] {
        let element =
            gst::ElementFactory::make("superpixel").property_from_str("backend", backend).build().unwrap();
        let (mut h, _bus) = harness(&element);
        h.set_src_caps(caps("RGB", WIDTH, HEIGHT));
        let input = picture(&info("RGB", WIDTH, HEIGHT), 1, 0);
        let ids = [0, 1].map(|age| {
            let output = h.push_and_pull(input.copy_deep().unwrap()).unwrap();
            let meta = SuperpixelMeta::from_buffer(&output).unwrap();
            let (table, motion) = (meta.table().unwrap(), meta.motion().unwrap());
            let old = motion.iter().filter(|motion| motion.age == age).count();
            assert!(10 * old >= 9 * table.len(), "{backend}, frame {age}: {old} of {}", table.len());
            table.iter().map(|region| region.track_id).collect::<std::collections::BTreeSet<_>>()
        });
        let kept = ids[0].intersection(&ids[1]).count();
        assert!(10 * kept >= 9 * ids[1].len(), "{backend}: {kept} of {}", ids[1].len());
    }
}

fn identities(buffer: &gst::BufferRef) -> std::collections::BTreeSet<u32> {
    let meta = SuperpixelMeta::from_buffer(buffer).unwrap();
    let (table, motion) = (meta.table().unwrap(), meta.motion().unwrap());
    assert_eq!(table.len(), motion.len());
    table.iter().map(|region| region.track_id).collect()
}

fn identities_last(backend: &str) {
    let element = superpixel();
    element.set_property_from_str("overlay", "none");
    element.set_property_from_str("backend", backend);
    element.set_property("temporal", true);
    let (mut h, _bus) = harness(&element);
    let first = info("RGB", WIDTH, HEIGHT);
    h.set_src_caps(caps("RGB", WIDTH, HEIGHT));
    let mut known = identities(&h.push_and_pull(picture(&first, 1, 0)).unwrap());
    assert_eq!(known.first(), Some(&1));
    type Change = fn(&gst::Element, &mut gst_check::Harness);
    let changes: [(&str, Change); 9] = [
        ("nothing", |_, _| {}),
        ("compactness", |element, _| element.set_property("compactness", 11f32)),
        ("what keeps pixels", |element, _| element.set_property("temporal-inertia", 0.3f32)),
        ("what is of no use", |element, _| {
            element.set_property("merge-max-distance", 5f32);
            element.set_property("tau", 9f32);
            element.set_property("iterations", 6u32);
        }),
        ("a flush", |_, h| {
            assert!(h.push_event(gst::event::FlushStart::new()));
            assert!(h.push_event(gst::event::FlushStop::new(true)));
            let segment = gst::FormattedSegment::<gst::ClockTime>::new();
            assert!(h.push_event(gst::event::Segment::new(&segment)));
        }),
        ("a segment", |_, h| {
            let mut segment = gst::FormattedSegment::<gst::ClockTime>::new();
            segment.set_start(gst::ClockTime::from_mseconds(40));
            assert!(h.push_event(gst::event::Segment::new(&segment)));
        }),
        ("a discontinuity", |_, _| {}),
        ("a property of the grid", |element, _| element.set_property("superpixel-size", 9u32)),
        ("caps", |_, h| h.set_src_caps(caps("BGR", WIDTH, HEIGHT))),
    ];
    for (i, (what, change)) in changes.into_iter().enumerate() {
        change(&element, &mut h);
        let mut input =
            picture(&if what == "caps" { info("BGR", WIDTH, HEIGHT) } else { first.clone() }, 1, 0);
        if what == "a discontinuity" {
            input.get_mut().unwrap().set_flags(gst::BufferFlags::DISCONT);
        }
        let output = h.push_and_pull(input).unwrap();
        let own = identities(&output);
        let common = own.intersection(&known).count();
        let motion = SuperpixelMeta::from_buffer(&output).unwrap().motion().unwrap();
        let oldest = motion.iter().map(|m| m.age as usize).max().unwrap();
        if i < 4 {
            assert_eq!(oldest, i + 1, "{what}");
            assert!(2 * common > own.len(), "{common} of {} identities outlive {what}", own.len());
        } else {
            assert_eq!((common, oldest), (0, 0), "identities outlive {what}");
        }
        known.extend(own);
    }
}

/// A leaky queue marks what comes after frames that it dropped; a real break is marked, too, or comes as an event.
#[test]
fn frames_left_out_do_not_end_identities_and_breaks_do() {
    let info = info("RGB", WIDTH, HEIGHT);
    for (what, at, goes_on) in [
        ("two frames are missing", Some(40 * 4), true),
        ("nearly a second is missing", Some(40 + 1000), true),
        ("more than a second is missing", Some(40 + 1001), false),
        ("nothing is missing", Some(40 * 2), false),
        ("time goes back", Some(0), false),
        ("nobody knows the time", None, false),
    ] {
        let element = superpixel();
        element.set_property("temporal", true);
        let (mut h, _bus) = harness(&element);
        h.set_src_caps(caps("RGB", WIDTH, HEIGHT));
        let known = identities(&h.push_and_pull(picture(&info, 1, 0)).unwrap());
        let mut input = picture(&info, 1, 0);
        let writable = input.get_mut().unwrap();
        writable.set_pts(at.map(gst::ClockTime::from_mseconds));
        writable.set_flags(gst::BufferFlags::DISCONT);
        let own = identities(&h.push_and_pull(input).unwrap());
        let common = own.intersection(&known).count();
        assert_eq!(2 * common > own.len(), goes_on, "{what}: {common} of {} identities last", own.len());
        assert!(goes_on || common == 0, "{what}: {common} identities last");
    }
}

/// Caps of 61x35 in RGB with one more field.
fn special(name: &str, value: &str) -> gst::Caps {
    format!("video/x-raw,format=RGB,width=61,height=35,framerate=25/1,{name}={value}").parse().unwrap()
}

#[test]
fn pictures_of_other_kinds_are_segmented_as_they_are() {
    let plain = |caps: gst::Caps, flags: gst::BufferFlags| {
        let (mut h, _bus) = harness(&superpixel());
        h.set_src_caps(caps);
        let mut input = picture(&info("RGB", 61, 35), 1, 0);
        input.get_mut().unwrap().set_flags(flags);
        let output = h.push_and_pull(input).unwrap();
        assert!(output.flags().contains(flags));
        labels(&output)
    };
    let wanted = plain(caps("RGB", 61, 35), gst::BufferFlags::empty());
    for (name, value) in [
        ("interlace-mode", "interleaved"),
        ("interlace-mode", "mixed"),
        ("pixel-aspect-ratio", "4/3"),
        ("multiview-mode", "side-by-side"),
        ("multiview-mode", "left"),
    ] {
        assert!(plain(special(name, value), gst::BufferFlags::empty()) == wanted, "{name}={value}");
    }
    for flags in [gst::BufferFlags::GAP, gst::BufferFlags::CORRUPTED] {
        assert!(plain(caps("RGB", 61, 35), flags) == wanted, "{flags:?}");
    }
}

#[test]
fn mixed_views_are_refused_with_advice() {
    for mode in ["frame-by-frame", "column-interleaved", "checkerboard", "separated"] {
        let element = superpixel();
        let (mut h, bus) = harness(&element);
        h.set_src_caps(special("multiview-mode", mode));
        assert!(h.push(picture(&info("RGB", 61, 35), 1, 0)).is_err());
        let error = error_on(&bus).expect("an error message");
        assert!(error.contains(mode) && error.contains("glviewconvert"), "{error}");
    }
}

#[test]
fn single_fields_are_refused_with_advice() {
    let element = superpixel();
    let bus = gst::Bus::new();
    element.set_bus(Some(&bus));
    let pad = element.static_pad("sink").unwrap();
    let taken = |caps: &str| pad.query_accept_caps(&caps.parse().unwrap());
    let shape = "format=I420,width=64,height=48,framerate=25/1";
    assert!(taken(&format!("video/x-raw,{shape},interlace-mode=interleaved")));
    assert!(!taken(&format!("video/x-raw(memory:Unheard),{shape}")));
    assert!(bus.pop_filtered(&[gst::MessageType::Warning]).is_none());
    assert!(!taken(&format!("video/x-raw(format:Interlaced),{shape},interlace-mode=alternate")));
    let message = bus.pop_filtered(&[gst::MessageType::Warning]).expect("a warning");
    let gst::MessageView::Warning(warning) = message.view() else { unreachable!() };
    assert!(warning.error().to_string().contains("deinterlace"), "{warning:?}");
}

#[test]
fn a_crop_that_was_not_asked_for_drops_the_frame() {
    let (mut h, bus) = harness(&superpixel());
    h.set_src_caps(caps("RGB", 61, 35));
    for (rectangle, passes) in [((0, 0, 61, 35), true), ((2, 0, 59, 35), false), ((0, 0, 61, 34), false)] {
        let mut input = picture(&info("RGB", 61, 35), 1, 0);
        gst_video::VideoCropMeta::add(input.get_mut().unwrap(), rectangle);
        h.push(input).unwrap();
        assert_eq!(h.try_pull().is_some(), passes, "{rectangle:?}");
    }
    let warning = bus.pop_filtered(&[gst::MessageType::Warning]).expect("a warning");
    let gst::MessageView::Warning(warning) = warning.view() else { unreachable!() };
    assert!(warning.error().to_string().contains("GstVideoCropMeta"), "{warning:?}");
}

/// Upstream would send the whole picture with a note of what part is meant, which is not looked at.
#[test]
fn cropped_pictures_arrive_cropped() {
    let element = superpixel();
    let (mut h, _bus) = harness(&element);
    h.add_propose_allocation_meta(gst_video::VideoCropMeta::meta_api(), None);
    h.add_propose_allocation_meta(gst_video::VideoMeta::meta_api(), None);
    h.set_src_caps(caps("RGB", WIDTH, HEIGHT));
    h.push_and_pull(picture(&info("RGB", WIDTH, HEIGHT), 1, 0)).unwrap();
    let mut query = gst::query::Allocation::new(Some(&caps("RGB", WIDTH, HEIGHT)), true);
    assert!(element.static_pad("sink").unwrap().query(&mut query));
    assert!(query.find_allocation_meta::<gst_video::VideoMeta>().is_some());
    assert!(query.find_allocation_meta::<gst_video::VideoCropMeta>().is_none());

    // Also in a pipeline whose sink accepts crop metas.
    let found = |crop: &str| {
        let pipeline = launch(&format!(
            "videotestsrc num-buffers=1 pattern=smpte ! video/x-raw,format=RGB,width=320,height=240 ! videocrop {crop} ! \
             superpixel overlay=none name=s ! fakevideosink sync=false"
        ));
        let seen = Arc::<Mutex<Option<gst::Buffer>>>::default();
        let to = seen.clone();
        pipeline.by_name("s").unwrap().static_pad("src").unwrap().add_probe(
            gst::PadProbeType::BUFFER,
            move |_, info| {
                *to.lock().unwrap() = info.buffer().cloned();
                gst::PadProbeReturn::Ok
            },
        );
        common::play_to_end(&pipeline).unwrap();
        let buffer = seen.lock().unwrap().take().unwrap();
        assert!(buffer.meta::<gst_video::VideoCropMeta>().is_none());
        labels(&buffer)
    };
    let (part, corner) = (found("left=160 top=120"), found("right=160 bottom=120"));
    assert_eq!((part.len(), corner.len()), (160 * 120, 160 * 120));
    assert!(part != corner, "two parts of a picture are segmented alike");
}

#[test]
fn end_of_stream_passes_at_once() {
    let element = superpixel();
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("RGB", 32, 32));
    h.push(picture(&info("RGB", 32, 32), 0, 0)).unwrap();
    assert!(h.push_event(gst::event::Eos::new()));
    let mut types = Vec::new();
    while let Some(event) = h.try_pull_event() {
        types.push(event.type_());
    }
    assert_eq!(types.last(), Some(&gst::EventType::Eos));
    assert_eq!(h.push(picture(&info("RGB", 32, 32), 1, 0)), Err(gst::FlowError::Eos));
}

#[test]
fn seeks_while_playing_deliver_from_the_new_place() {
    let pipeline = launch(
        "videotestsrc ! video/x-raw,width=64,height=48,framerate=25/1 ! superpixel threads=1 ! \
         appsink name=out sync=false max-buffers=2",
    );
    let sink: gst_app::AppSink = pipeline.by_name("out").unwrap().downcast().unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    sink.try_pull_sample(PATIENCE).expect("first frame");
    for seconds in [100, 3, 500, 0] {
        let target = gst::ClockTime::from_seconds(seconds);
        pipeline.seek_simple(gst::SeekFlags::FLUSH, target).unwrap();
        let sample = sink.try_pull_sample(PATIENCE).expect("frame after seek");
        assert_eq!(sample.buffer().unwrap().pts(), Some(target));
        assert!(SuperpixelMeta::from_buffer(sample.buffer().unwrap()).is_some());
    }
    pipeline.set_state(gst::State::Null).unwrap();
}

#[test]
fn late_frames_are_dropped_by_qos() {
    let element = superpixel();
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("RGB", 32, 32));
    let info = info("RGB", 32, 32);
    h.push_and_pull(picture(&info, 0, 0)).unwrap();
    let late = gst::event::Qos::new(
        gst::QOSType::Underflow,
        2.0,
        400_000_000,
        Some(gst::ClockTime::from_mseconds(40)),
    );
    h.push_upstream_event(late);
    h.push(picture(&info, 2, 0)).unwrap();
    assert!(h.try_pull().is_none(), "a frame that is late passed");
    h.push(picture(&info, 100, 0)).unwrap();
    assert!(h.try_pull().is_some());
}

#[test]
fn numeric_properties_can_be_controlled_in_stream_time() {
    let info = info("RGB", WIDTH, HEIGHT);
    let element = superpixel();
    element.set_property_from_str("overlay", "none");
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("RGB", WIDTH, HEIGHT));
    control(&element, c"superpixel-size", &[(0, 8.0), (2, 8.0), (3, 20.0), (9, 20.0)]);
    control(&element, c"compactness", &[(0, 5.0), (4, 5.0), (5, 40.0), (9, 40.0)]);
    for (seed, size, compactness) in [(0, 8, 5.0), (2, 8, 5.0), (3, 20, 5.0), (4, 20, 5.0), (5, 20, 40.0)] {
        let mut expected = Params { superpixel_size: size, ..Params::default() };
        slic_params(&mut expected).compactness = compactness;
        let input = picture(&info, seed, 0);
        let expected = library(&input, &info, frame_info(&info), &expected, None);
        assert!(labels(&h.push_and_pull(input).unwrap()) == expected.labels, "frame {seed}");
    }
}

#[test]
fn every_numeric_playing_property_is_controllable() {
    let mut numeric = 0;
    for property in superpixel().list_properties() {
        let playing = property.flags().contains(gst::PARAM_FLAG_MUTABLE_PLAYING);
        let number =
            property.value_type() == u32::static_type() || property.value_type() == f32::static_type();
        if playing && number {
            numeric += 1;
            assert!(property.flags().contains(gst::PARAM_FLAG_CONTROLLABLE), "{}", property.name());
        }
    }
    assert_eq!(numeric, 26);
}

#[test]
fn two_elements_in_one_pipeline_work_side_by_side() {
    let line = "videotestsrc num-buffers=3 ! video/x-raw,format=RGB,width=96,height=64 ! \
                superpixel overlay=none superpixel-size=8 threads=1 ! identity ! \
                superpixel overlay=none superpixel-size=32 threads=2 ! appsink name=out";
    for sample in common::samples(line) {
        let buffer = sample.buffer().unwrap();
        let metas =
            buffer.iter_meta::<gst::Meta>().filter(|meta| meta.try_as_custom_meta().is_some()).count();
        assert_eq!(metas, 1, "the second element replaces what the first attached");
        assert!(SuperpixelMeta::from_buffer(buffer).unwrap().regions() <= 12);
    }
}

/// Why the library opens no CUDA device of this number, or its name where it does.
#[cfg(feature = "cuda")]
fn cuda_device(id: i32) -> Result<String, String> {
    use gstsuperpixel::backend::Backend;
    gstsuperpixel::cuda::Cuda::new(id).map(|cuda| cuda.describe()).map_err(|error| error.to_string())
}

#[cfg(not(feature = "cuda"))]
fn cuda_device(_: i32) -> Result<String, String> {
    Err("cuda backend: not in this build".into())
}

/// Elements for the first device that works and for one that nobody has.
fn elements_of_devices() -> Vec<(gst::Element, Result<String, String>)> {
    let ids = if cfg!(feature = "cuda") { vec![-1, i32::MAX] } else { vec![-1] };
    let element = |id| {
        let element = superpixel();
        if cfg!(feature = "cuda") {
            element.set_property("cuda-device-id", id);
        }
        (element, cuda_device(id))
    };
    ids.into_iter().map(element).collect()
}

#[test]
fn backend_cuda_starts_on_a_device_or_says_what_to_do() {
    for (element, device) in elements_of_devices() {
        let bus = common::TestBus::new(&element);
        element.set_property_from_str("backend", "cuda");
        match device {
            Ok(name) => {
                element.set_state(gst::State::Paused).unwrap();
                assert_eq!(element.property::<String>("active-backend"), name);
            }
            Err(reason) => {
                assert!(element.set_state(gst::State::Paused).is_err());
                let text = error_on(&bus).expect("an element error");
                assert!(text.contains(&reason), "{text}, not {reason}");
                assert!(reason.contains("no device") || text.contains("use the cpu backend"), "{text}");
                assert_eq!(element.property::<String>("active-backend"), "");
            }
        }
        element.set_state(gst::State::Null).unwrap();
        element.set_property_from_str("backend", "cpu");
        element.set_state(gst::State::Paused).expect("starts after the advice is followed");
        assert_eq!(element.property::<String>("active-backend"), cpu_of(2));
        element.set_state(gst::State::Null).unwrap();
    }
}

#[test]
fn backend_auto_takes_a_device_or_the_cpu_and_logs_it_once() {
    for (element, device) in elements_of_devices() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (address, log) = (element.as_ptr() as usize, lines.clone());
        gst::log::set_threshold_for_name("superpixel", gst::DebugLevel::Info);
        let function = gst::log::add_log_function(move |_, level, _, _, _, object, message| {
            let own = object.is_some_and(|object| object.as_ptr() as usize == address);
            let text = message.get().map(|text| text.to_string()).unwrap_or_default();
            if own && level == gst::DebugLevel::Info && text.contains("backend") {
                log.lock().unwrap().push(text);
            }
        });
        let (mut h, _bus) = harness(&element);
        let active = element.property::<String>("active-backend");
        h.set_src_caps(caps("RGB", 64, 48));
        for seed in 0..3 {
            h.push_and_pull(picture(&info("RGB", 64, 48), seed, 0)).unwrap();
        }
        gst::log::remove_log_function(function);
        gst::log::unset_threshold_for_name("superpixel");
        let lines = lines.lock().unwrap();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains(&active), "{lines:?}");
        match device {
            Ok(name) => assert_eq!(active, name),
            Err(reason) => {
                assert_eq!(active, cpu_of(2));
                assert!(lines[0].contains(&reason), "{lines:?}, not {reason}");
            }
        }
    }
}

#[test]
fn only_a_build_with_cuda_has_a_device_property() {
    let property = superpixel().find_property("cuda-device-id");
    assert_eq!(property.is_some(), cfg!(feature = "cuda"));
    if let Some(property) = property {
        assert_eq!(property.default_value().get::<i32>().unwrap(), -1);
        assert!(property.flags().contains(gst::PARAM_FLAG_MUTABLE_READY));
    }
}

/// Value of `active-backend` on the CPU with `threads` threads; 0 is one per core, and there are never more.
fn cpu_of(threads: u32) -> String {
    let cores = std::thread::available_parallelism().unwrap().get();
    match if threads == 0 { cores } else { cores.min(threads as usize) } {
        1 => "cpu 1 thread".into(),
        threads => format!("cpu {threads} threads"),
    }
}

#[test]
fn active_backend_names_the_cpu_and_its_threads() {
    // More than there are cores are accepted, as they always were, and are not made.
    for threads in [1, 2, 1024, 0u32] {
        let element = superpixel();
        element.set_property_from_str("backend", "cpu");
        element.set_property("threads", threads);
        assert_eq!(element.property::<String>("active-backend"), "");
        element.set_state(gst::State::Paused).unwrap();
        assert_eq!(element.property::<String>("active-backend"), cpu_of(threads));
        assert_eq!(element.property::<u32>("threads"), threads);
        element.set_state(gst::State::Null).unwrap();
        assert_eq!(element.property::<String>("active-backend"), "");
    }
}

#[test]
fn stats_count_frames_and_time_the_stages() {
    let element = superpixel();
    element.set_property_from_str("backend", "cpu");
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("RGB", WIDTH, HEIGHT));
    let info = info("RGB", WIDTH, HEIGHT);
    let stats = || element.property::<gst::Structure>("stats");
    assert_eq!(stats().get::<u64>("frames"), Ok(0));
    let mut regions = 0;
    for seed in 0..3 {
        let output = h.push_and_pull(picture(&info, seed, 0)).unwrap();
        regions = SuperpixelMeta::from_buffer(&output).unwrap().regions();
    }
    let stats = stats();
    assert_eq!(stats.get::<u64>("frames"), Ok(3));
    assert_eq!(stats.get::<u32>("regions"), Ok(regions));
    let last = stats.get::<u64>("frame-time-us").unwrap();
    assert!(last > 0 && stats.get::<u64>("frame-time-us-mean").unwrap() > 0);
    let stages = stats.get::<gst::Structure>("stage-times-us").unwrap();
    for stage in ["ingest", "connectivity", "statistics", "overlay"] {
        assert!(stages.get::<u64>(stage).is_ok(), "{stage} in {stages}");
    }
    assert!(stages.iter().all(|(name, _)| !name.contains('/')), "{stages}");
    let sum: u64 = stages.iter().filter_map(|(_, value)| value.get::<u64>().ok()).sum();
    assert!(sum <= last, "stages take {sum} of {last} us");
}
