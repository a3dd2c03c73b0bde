// SPDX-License-Identifier: MPL-2.0
//! Exact numbers of regions through the element: properties while frames come, the list of merges in the metadata, identities.

use std::collections::BTreeSet;

use crate::common::{caps, error_on, frame_info, harness, info, library, params, picture, superpixel};
use gst::prelude::*;
use gstsuperpixel::meta::SuperpixelMeta;
use gstsuperpixel::params::Params;
use gstsuperpixel::post::hierarchy;
use gstsuperpixel::regions::cut;

#[test]
fn numbers_of_regions_take_effect_on_the_next_frame() {
    let info = info("NV12", 160, 120);
    let input = picture(&info, 3, 0);
    let element = superpixel();
    element.set_property_from_str("overlay", "none");
    // Else the grid follows from the number of regions.
    element.set_property("superpixels", 300u32);
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("NV12", 160, 120));
    let mut own = hierarchy::Params::default();
    type Change = fn(&mut hierarchy::Params);
    let changes: [(&str, &str, Change); 5] = [
        ("regions", "20", |own| own.regions = 20),
        ("regions-compactness", "30", |own| own.compactness = 30.0),
        ("hierarchy", "true", |own| own.levels = true),
        ("regions", "0", |own| own.regions = 0),
        ("hierarchy", "false", |own| own.levels = false),
    ];
    for (name, value, change) in changes {
        element.set_property_from_str(name, value);
        change(&mut own);
        let params = Params { superpixels: 300, hierarchy: own.clone(), ..params() };
        let expected = library(&input, &info, frame_info(&info), &params, None);
        let output = h.push_and_pull(input.clone()).unwrap();
        let meta = SuperpixelMeta::from_buffer(&output).expect("meta");
        let mut map = meta.labels().unwrap();
        assert!(map.as_slice() == expected.labels, "{name}={value}");
        assert_eq!(meta.table().unwrap(), expected.regions.table, "{name}={value}");
        let merges = meta.merges().unwrap();
        assert_eq!(merges, expected.regions.merges);
        assert_eq!(merges.len(), if own.levels { meta.regions() as usize - 1 } else { 0 }, "{name}={value}");
        if own.regions > 0 {
            assert_eq!(meta.regions(), own.regions);
        }
        if own.levels {
            let coarse = Params { hierarchy: hierarchy::Params { regions: 5, ..own.clone() }, ..params };
            assert_eq!(cut(map.as_mut_slice(), &merges, 5), Some(5));
            assert!(map.as_slice() == library(&input, &info, frame_info(&info), &coarse, None).labels);
        }
    }
}

/// Another number of the same superpixels goes on with the same identities.
#[test]
fn regions_keep_their_track_ids() {
    let info = info("I420", 160, 120);
    let element = superpixel();
    element.set_property_from_str("backend", "cpu");
    element.set_property("temporal", true);
    element.set_property("superpixels", 300u32);
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("I420", 160, 120));
    let mut last = BTreeSet::new();
    for (i, regions) in [30u32, 30, 30, 30, 20, 20].into_iter().enumerate() {
        element.set_property("regions", regions);
        let output = h.push_and_pull(picture(&info, 3, 0)).unwrap();
        let table = SuperpixelMeta::from_buffer(&output).expect("meta").table().unwrap();
        let ids: BTreeSet<u32> = table.iter().map(|region| region.track_id).collect();
        assert_eq!(ids.len(), regions as usize);
        if i > 2 {
            assert!(ids.is_subset(&last), "frame {i}: new identities in a still picture");
        }
        last = ids;
    }
}

/// Switching a number on or off begins new identities, and none of before is given again.
#[test]
fn numbers_that_come_and_go_reuse_no_track_id() {
    let info = info("I420", 160, 120);
    let element = superpixel();
    element.set_property_from_str("backend", "cpu");
    element.set_property("temporal", true);
    let (mut h, bus) = harness(&element);
    h.set_src_caps(caps("I420", 160, 120));
    let (mut seen, mut last) = (BTreeSet::new(), BTreeSet::new());
    let numbers = [0u32, 0, 0, 50, 50, 50, 0, 0, 0, 20, 20, 20, 0, 0];
    for (i, regions) in numbers.into_iter().enumerate() {
        // One is switched off before the other is switched on.
        element.set_property("merge", 0f32);
        element.set_property("regions", regions);
        // Frames without a number of regions run without merging first, and then with it.
        element.set_property("merge", if regions == 0 && i > 5 { 2f32 } else { 0.0 });
        element.set_property("hierarchy", i % 4 > 1);
        let output = h.push_and_pull(picture(&info, 3, 0)).unwrap();
        assert_eq!(error_on(&bus), None, "frame {i}");
        let table = SuperpixelMeta::from_buffer(&output).expect("meta").table().unwrap();
        let ids: BTreeSet<u32> = table.iter().map(|region| region.track_id).collect();
        assert_eq!(ids.len(), table.len(), "frame {i}: two regions share a track id");
        assert!(regions == 0 || ids.len() == regions as usize, "frame {i}");
        if i > 0 && regions == numbers[i - 1] {
            assert!(2 * ids.intersection(&last).count() > ids.len(), "frame {i}: few track ids are kept");
            assert!(ids.difference(&last).all(|id| !seen.contains(id)), "frame {i}: one came back");
        } else {
            assert!(ids.is_disjoint(&seen), "frame {i}: track ids of before the change");
        }
        seen.extend(&ids);
        last = ids;
    }
}

#[test]
fn stats_say_how_many_regions_are_missing() {
    let info = info("I420", 64, 48);
    let element = superpixel();
    element.set_property("connectivity", true);
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("I420", 64, 48));
    let missing = |element: &gst::Element| {
        element.property::<gst::Structure>("stats").get::<u32>("regions-missing").ok()
    };
    h.push_and_pull(picture(&info, 3, 0)).unwrap();
    assert_eq!(missing(&element), None);
    for wanted in [10u32, 60_000] {
        element.set_property("regions", wanted);
        let output = h.push_and_pull(picture(&info, 3, 0)).unwrap();
        let found = SuperpixelMeta::from_buffer(&output).expect("meta").regions();
        assert_eq!(missing(&element), Some(wanted - found));
        assert_eq!(found == wanted, wanted == 10);
    }
}
