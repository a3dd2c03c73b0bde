// SPDX-License-Identifier: MPL-2.0
//! Events in the metadata and in `stats`: as the library finds them, none where nothing can be compared.

use crate::common::{caps, harness, superpixel};
use gst::prelude::*;
use gstsuperpixel::events::{EventKind, Events};
use gstsuperpixel::image::Geometry;
use gstsuperpixel::meta::{NAME, SuperpixelMeta};

const SIDES: (u32, u32) = (128, 96);

/// A picture that moves by two px a frame, with spots that come and go; another one from frame 8 on.
fn frame(number: u64) -> gst::Buffer {
    let (w, h) = (u64::from(SIDES.0), u64::from(SIDES.1));
    let pixel = |i: u64| {
        let (x, y) = (i % w + 2 * number, i / w);
        let spot = (x / 11 + y / 9 + number / 3).is_multiple_of(5);
        let gray = (x * x / 40 + y * 3) % 120 + if spot { 90 } else { 0 };
        if number < 8 { gray as u8 } else { 255 - (gray / 2 * (y / 20 % 2)) as u8 }
    };
    let mut buffer = gst::Buffer::from_slice((0..w * h).map(pixel).collect::<Vec<_>>());
    buffer.get_mut().unwrap().set_pts(gst::ClockTime::from_mseconds(40 * number));
    buffer
}

fn started(backend: &str) -> (gst::Element, gst_check::Harness) {
    let element = superpixel();
    element.set_property_from_str("backend", backend);
    element.set_property("superpixel-size", 9_u32);
    element.set_property("temporal", true);
    element.set_property("events", true);
    let (mut harness, _bus) = harness(&element);
    harness.set_src_caps(caps("GRAY8", SIDES.0, SIDES.1));
    (element, harness)
}

#[test]
fn events_are_attached_and_counted() {
    let (element, mut harness) = started("cpu");
    let (mut own, mut sums) = (Events::default(), [0_u64; 5]);
    for number in 0..12 {
        let output = harness.push_and_pull(frame(number)).unwrap();
        let meta = SuperpixelMeta::from_buffer(&output).unwrap();
        let (labels, table, motion) = (meta.labels().unwrap(), meta.table().unwrap(), meta.motion().unwrap());
        let geometry = Geometry::new(SIDES.0, SIDES.1).unwrap();
        let expected = own.next(geometry, |y| labels.row(y), &table, &motion).unwrap();
        let events = meta.events().unwrap();
        assert_eq!(events, expected, "frame {number}");
        events.iter().for_each(|event| sums[event.kind as usize - 1] += 1);
        let is_cut = events.iter().any(|event| EventKind::of(event) == Some(EventKind::Cut));
        assert_eq!(is_cut, number == 8, "frame {number}");
    }
    let stats: gst::Structure = element.property("stats");
    let counted =
        ["births", "splits", "deaths", "merges", "cuts"].map(|name| stats.get::<u64>(name).unwrap());
    assert_eq!(counted, sums);
    assert!(sums.iter().all(|&sum| sum > 0), "{sums:?}");
}

/// Behind a new segment and without what events are made of there are none.
#[test]
fn nothing_is_compared_across_a_reset() {
    let (element, mut harness) = started("cpu");
    let events = |harness: &mut gst_check::Harness, number| {
        let output = harness.push_and_pull(frame(number)).unwrap();
        let meta = gst::meta::CustomMeta::from_buffer(&output, NAME).unwrap();
        let field = meta.structure().get::<gst::Buffer>("events").ok();
        field.map(|field| field.size())
    };
    assert_eq!(events(&mut harness, 0), Some(0));
    assert!(events(&mut harness, 1).unwrap() > 0);
    let segment = gst::FormattedSegment::<gst::ClockTime>::new();
    assert!(harness.push_event(gst::event::Segment::new(&segment)));
    assert_eq!(events(&mut harness, 9), Some(0), "a new segment");
    assert!(events(&mut harness, 10).unwrap() > 0);
    element.set_property("events", false);
    assert_eq!(events(&mut harness, 11), None);
    element.set_property("events", true);
    assert_eq!(events(&mut harness, 0), Some(0), "the frame before was not seen");
    element.set_property("region-table", false);
    assert_eq!(events(&mut harness, 1), None);
    element.set_property("region-table", true);
    element.set_property("temporal", false);
    assert_eq!(events(&mut harness, 2), None);
}
