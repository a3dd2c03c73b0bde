// SPDX-License-Identifier: MPL-2.0
//! Merging and means of light through the element: every property while frames come, on every format, and in a pipeline.

use crate::common::{
    bytes, caps, formats, frame_info, harness, info, library, library_with, params, picture, superpixel,
};
use gst::prelude::*;
use gstsuperpixel::meta::SuperpixelMeta;
use gstsuperpixel::params::{Drawing, Fill, Params};
use gstsuperpixel::post::merge::{self, Rule};

const MEAN: Drawing = Drawing { fill: Fill::MeanColor, boundaries: None };

#[test]
fn merging_takes_effect_on_the_next_frame() {
    let info = info("NV12", 160, 120);
    let input = picture(&info, 3, 0);
    let element = superpixel();
    element.set_property_from_str("overlay", "none");
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("NV12", 160, 120));
    let (mut own, mut last) = (merge::Params::default(), Vec::new());
    type Change = fn(&mut merge::Params);
    let changes: [(&str, &str, Change); 6] = [
        ("merge", "0", |own| own.ratio = 0.0),
        ("merge", "1.5", |own| own.ratio = 1.5),
        ("merge-rule", "either", |own| own.rule = Rule::Either),
        ("merge-rule", "mutual", |own| own.rule = Rule::Mutual),
        ("merge-passes", "2", |own| own.passes = 2),
        ("merge-max-distance", "2.5", |own| own.max_distance = 2.5),
    ];
    for (name, value, change) in changes {
        element.set_property_from_str(name, value);
        change(&mut own);
        let params = Params { merge: own.clone(), ..params() };
        let expected = library(&input, &info, frame_info(&info), &params, None);
        let output = h.push_and_pull(input.clone()).unwrap();
        let meta = SuperpixelMeta::from_buffer(&output).expect("meta");
        let map = meta.labels().unwrap().as_slice().to_vec();
        assert!(map == expected.labels, "{name}={value}");
        assert_eq!(meta.table().unwrap(), expected.regions.table, "{name}={value}");
        assert!(map != last, "{name}={value} changes nothing in this picture");
        last = map;
    }
}

#[test]
fn means_of_light_are_drawn_and_listed_in_every_format() {
    for (name, _) in formats() {
        let info = info(name, 65, 47);
        let input = picture(&info, 1, 0);
        let element = superpixel();
        element.set_property_from_str("overlay", "mean-color");
        let (mut h, _bus) = harness(&element);
        h.set_src_caps(caps(name, 65, 47));
        let mut seen = Vec::new();
        for light in [false, true, false] {
            element.set_property("mean-in-linear-light", light);
            let expected = library_with(&input, &info, frame_info(&info), &params(), Some(&MEAN), light);
            let output = h.push_and_pull(input.copy_deep().unwrap()).unwrap();
            let meta = SuperpixelMeta::from_buffer(&output).expect("meta");
            assert_eq!(meta.table().unwrap(), expected.regions.table, "{name} {light}");
            assert!(bytes(&output) == expected.drawn, "{name} {light}");
            seen.push(bytes(&output));
        }
        assert!(seen[0] == seen[2] && seen[0] != seen[1], "{name}: light makes no difference");
    }
}

/// Names of merged regions go through the element: a still picture keeps all of them.
#[test]
fn merged_regions_keep_their_track_ids() {
    let info = info("I420", 160, 120);
    let element = superpixel();
    element.set_property_from_str("backend", "cpu");
    element.set_property_from_str("overlay", "labels");
    element.set_property("temporal", true);
    element.set_property("merge", 1.5f32);
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("I420", 160, 120));
    let input = picture(&info, 2, 0);
    let mut last = (Vec::new(), Vec::new());
    for frame in 0..12u64 {
        let mut buffer = input.copy_deep().unwrap();
        buffer.get_mut().unwrap().set_pts(gst::ClockTime::from_mseconds(40 * frame));
        let output = h.push_and_pull(buffer).unwrap();
        let meta = SuperpixelMeta::from_buffer(&output).expect("meta");
        let table = meta.table().unwrap();
        assert_eq!(meta.motion().unwrap().len(), table.len());
        let labels = meta.labels().unwrap();
        let names: Vec<u32> = labels.as_slice().iter().map(|&l| table[usize::from(l)].track_id).collect();
        if frame == 11 {
            assert!(names == last.0, "a still picture changes its names");
            // Colors are those of identities.
            assert!(bytes(&output) == last.1, "a still picture changes its colors");
        }
        last = (names, bytes(&output));
    }
}
