// SPDX-License-Identifier: MPL-2.0
//! Masks of the element from what earlier elements have attached: regions of interest and segmentations.

use crate::analytics::Reader;
use crate::common;
use crate::common::{caps, error_on, frame_info, harness, info, params, picture, superpixel, warning_on};
use crate::masks::{EVERYTHING, assert_same, engine, mask_of};
use gst::prelude::*;
use gstsuperpixel::image::NO_LABEL;
use gstsuperpixel::meta::SuperpixelMeta;
use gstsuperpixel::regions::Region;

const WIDTH: u32 = 64;
const HEIGHT: u32 = 47;

/// The element with masks of a kind, which draws nothing.
fn element(mask: &str, temporal: bool) -> gst::Element {
    let element = superpixel();
    for (name, value) in [("mask", mask), ("overlay", "none"), ("neighbors", "true")] {
        element.set_property_from_str(name, value);
    }
    element.set_property("temporal", temporal);
    element
}

type Roi = (&'static str, (u32, u32, u32, u32));

fn with_rois(mut buffer: gst::Buffer, rois: &[Roi]) -> gst::Buffer {
    for (kind, place) in rois {
        gst_video::VideoRegionOfInterestMeta::add(buffer.get_mut().unwrap(), kind, *place);
    }
    buffer
}

fn is_in(&(x, y, width, height): &(u32, u32, u32, u32), px: i64, py: i64) -> bool {
    let [x, y, width, height] = [x, y, width, height].map(i64::from);
    x <= px && px < x + width && y <= py && py < y + height
}

#[test]
fn regions_of_interest_are_united_by_their_types() {
    let info = info("NV12", WIDTH, HEIGHT);
    for (types, rois) in [
        ("", &[("fish", (5, 6, 20, 15)), ("bird", (20, 10, 30, 30))][..]),
        ("bird", &[("fish", (5, 6, 20, 15)), ("bird", (20, 10, 30, 30))]),
        ("cat, bird ,fish", &[("fish", (5, 6, 20, 15)), ("bird", (20, 10, 30, 30)), ("dog", (0, 0, 9, 9))]),
        (
            "",
            &[
                ("fish", (50, 40, u32::MAX, u32::MAX)),
                ("fish", (u32::MAX, 0, u32::MAX, 9)),
                ("x", (3, 3, 0, 5)),
            ],
        ),
    ] {
        let element = element("regions", false);
        element.set_property("mask-roi-types", types);
        let (mut h, bus) = harness(&element);
        h.set_src_caps(caps("NV12", WIDTH, HEIGHT));
        let takes = |kind: &str| types.is_empty() || types.split(',').any(|own| own.trim() == kind);
        let taken: Vec<_> = rois.iter().filter(|(kind, _)| takes(kind)).map(|(_, place)| *place).collect();
        let mask = mask_of(WIDTH, HEIGHT, |x, y| taken.iter().any(|place| is_in(place, x, y)));
        let input = with_rois(picture(&info, 1, 0), rois);
        let expected =
            common::library_on(&mut engine(&info, false), &input, &info, None, EVERYTHING, Some(&mask));
        assert_same(&h.push_and_pull(input).unwrap(), &expected, &format!("{types} {rois:?}"));
        assert_eq!(warning_on(&bus), None);
    }
}

#[test]
fn a_frame_without_a_mask_gets_what_mask_missing_says() {
    let info = info("RGB", WIDTH, HEIGHT);
    let place = (5, 6, 30, 25);
    let some = mask_of(WIDTH, HEIGHT, |x, y| is_in(&place, x, y));
    let none = vec![0; some.len()];
    for (missing, wanted) in [("all", None), ("none", Some(&none)), ("last", Some(&some))] {
        let element = element("regions", false);
        element.set_property_from_str("mask-missing", missing);
        element.set_property("mask-roi-types", "fish");
        let (mut h, bus) = harness(&element);
        h.set_src_caps(caps("RGB", WIDTH, HEIGHT));
        let mut pass = |rois: &[Roi], mask: Option<&Vec<u8>>| {
            let input = with_rois(picture(&info, 1, 0), rois);
            let mask = mask.map(Vec::as_slice);
            let expected =
                common::library_on(&mut engine(&info, false), &input, &info, None, EVERYTHING, mask);
            assert_same(&h.push_and_pull(input).unwrap(), &expected, missing);
        };
        pass(&[], if missing == "last" { None } else { wanted });
        pass(&[("fish", place)], Some(&some));
        pass(&[("bird", (0, 0, 9, 9))], wanted);
        pass(&[], wanted);
        pass(&[("fish", place)], Some(&some));
        h.push_event(gst::event::FlushStart::new());
        h.push_event(gst::event::FlushStop::new(true));
        h.push_event(gst::event::Segment::new(&gst::FormattedSegment::<gst::ClockTime>::new()));
        let input = picture(&info, 1, 0);
        let output = h.push_and_pull(input).unwrap();
        let map = SuperpixelMeta::from_buffer(&output).unwrap().labels().unwrap();
        let outside = map.as_slice().iter().filter(|label| **label == NO_LABEL).count();
        assert_eq!(
            outside,
            if missing == "none" { map.as_slice().len() } else { 0 },
            "{missing}: a flush ends the last mask"
        );
        assert_eq!(warning_on(&bus), None, "{missing}");
    }
}

#[test]
fn thousands_of_regions_of_interest_are_heard_up_to_a_limit() {
    let info = info("GRAY8", WIDTH, HEIGHT);
    let element = element("regions", false);
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("GRAY8", WIDTH, HEIGHT));
    let rois: Vec<Roi> = (0..3000).map(|i| ("fish", (i % WIDTH, i / WIDTH % HEIGHT, 1, 1))).collect();
    let input = with_rois(picture(&info, 1, 0), &rois);
    // Whichever 1024 count: metas may be listed in any order.
    let output = h.push_and_pull(input).unwrap();
    let map = SuperpixelMeta::from_buffer(&output).unwrap().labels().unwrap();
    assert_eq!(map.as_slice().iter().filter(|label| **label != NO_LABEL).count(), 1024);
}

/// A mask that moves over a still picture: results are the library's, and regions that stay inside keep their track ids.
#[test]
fn a_mask_that_changes_keeps_track_ids() {
    for algo in ["slic", "lsc"] {
        let info = info("I420", WIDTH, HEIGHT);
        let element = element("regions", true);
        element.set_property_from_str("algo", algo);
        let (mut h, bus) = harness(&element);
        h.set_src_caps(caps("I420", WIDTH, HEIGHT));
        let mut engine = if algo == "slic" { Some(engine(&info, true)) } else { None };
        let mut last: Option<Vec<Region>> = None;
        let places =
            [Some((0, 0, 48, 47)), Some((8, 0, 48, 47)), None, Some((16, 0, 48, 47)), Some((16, 8, 40, 39))];
        for (i, place) in places.into_iter().enumerate() {
            let rois: Vec<Roi> = place.into_iter().map(|place| ("fish", place)).collect();
            let mut input = with_rois(picture(&info, 1, 0), &rois);
            input.get_mut().unwrap().set_pts(gst::ClockTime::from_mseconds(40 * i as u64));
            let mask = place.map(|place| mask_of(WIDTH, HEIGHT, |x, y| is_in(&place, x, y)));
            let expected = engine
                .as_mut()
                .map(|engine| common::library_on(engine, &input, &info, None, EVERYTHING, mask.as_deref()));
            let output = h.push_and_pull(input).unwrap();
            if let Some(expected) = &expected {
                assert_same(&output, expected, &format!("frame {i}"));
            }
            let table = SuperpixelMeta::from_buffer(&output).unwrap().table().unwrap();
            if let Some(last) = last {
                // A pixel and more from both borders of the part that both masks have.
                let is_well_inside = |region: &&Region| {
                    let [x0, y0, x1, y1] = region.bounds;
                    x0 > 17 && x1 < 47 && y0 > 9 && y1 < 46
                };
                let inner: Vec<_> = last.iter().filter(is_well_inside).collect();
                let kept =
                    inner.iter().filter(|old| table.iter().any(|new| new.track_id == old.track_id)).count();
                assert!(
                    inner.len() > 3 && 10 * kept >= 8 * inner.len(),
                    "{algo} frame {i}: {kept} of {}",
                    inner.len()
                );
            }
            last = Some(table);
        }
        assert_eq!((warning_on(&bus), error_on(&bus)), (None, None));
    }
}

/// The mask of a segmentation: a buffer with a video meta.
pub fn mask_buffer(format: &str, [width, height]: [u32; 2], value: impl Fn(u32, u32) -> u16) -> gst::Buffer {
    let wide = if format == "GRAY8" { 1 } else { 2 };
    let stride = wide * width as usize + 3;
    let mut bytes = vec![0x55; 7 + stride * height as usize];
    for y in 0..height {
        for x in 0..width {
            let value = value(x, y);
            let at = 7 + y as usize * stride + x as usize * wide;
            match format {
                "GRAY8" => bytes[at] = value as u8,
                "GRAY16_LE" => bytes[at..at + 2].copy_from_slice(&value.to_le_bytes()),
                _ => bytes[at..at + 2].copy_from_slice(&value.to_be_bytes()),
            }
        }
    }
    let mut buffer = gst::Buffer::from_mut_slice(bytes);
    let (flags, format) = (gst_video::VideoFrameFlags::empty(), format.parse().unwrap());
    let writable = buffer.get_mut().unwrap();
    gst_video::VideoMeta::add_full(writable, flags, format, width, height, &[7], &[stride as i32]).unwrap();
    buffer
}

#[test]
fn a_segmentation_is_scaled_to_its_place() {
    let Some(reader) = Reader::open() else { return };
    let info = info("NV12", WIDTH, HEIGHT);
    let value = |x: u32, y: u32| [0u16, 1, 2, 7, 300][((x / 3 + y / 2) % 5) as usize];
    for (format, size) in [
        ("GRAY8", [64, 47]),
        ("GRAY8", [16, 12]),
        ("GRAY16_LE", [200, 100]),
        ("GRAY16_BE", [7, 9]),
        ("GRAY8", [1, 1]),
    ] {
        for (values, counts) in
            [("", &[1u16, 2, 7, 300, 44][..]), ("1,7", &[1, 7]), ("2-300", &[2, 7, 300, 44]), ("0", &[0])]
        {
            for ([x, y], [w, h]) in [
                ([0, 0], [64, 47]),
                ([5, 6], [40, 30]),
                ([-9, -9], [80, 40]),
                ([60, 40], [u32::MAX, 7]),
                ([3, 3], [0, 9]),
            ] {
                let case = format!("{format} {size:?} mask-values={values} at {x}, {y}, {w}x{h}");
                let element = element("segmentation", false);
                element.set_property("mask-values", values);
                let (mut harness, bus) = harness(&element);
                harness.set_src_caps(caps("NV12", WIDTH, HEIGHT));
                let mut input = picture(&info, 1, 0);
                let writable = input.get_mut().unwrap();
                // An earlier one, which the last stands before.
                reader.add_segmentation(writable, mask_buffer("GRAY8", [2, 2], |_, _| 1), [0, 0], [64, 47]);
                reader.add_segmentation(writable, mask_buffer(format, size, value), [x, y], [w, h]);
                let mask = mask_of(WIDTH, HEIGHT, |px, py| {
                    let at = [px - i64::from(x), py - i64::from(y)];
                    if at[0] < 0 || at[1] < 0 || at[0] >= i64::from(w) || at[1] >= i64::from(h) {
                        return false;
                    }
                    let of = |at: i64, pixels: u32, samples: u32| {
                        ((at as f64 + 0.5) * f64::from(samples) / f64::from(pixels)).floor() as u32
                    };
                    let value = value(of(at[0], w, size[0]), of(at[1], h, size[1]));
                    counts.contains(&if format == "GRAY8" { value & 255 } else { value })
                });
                let expected = common::library_on(
                    &mut engine(&info, false),
                    &input,
                    &info,
                    None,
                    EVERYTHING,
                    Some(&mask),
                );
                let output =
                    harness.push_and_pull(input).unwrap_or_else(|_| panic!("{case}: {:?}", error_on(&bus)));
                assert_same(&output, &expected, &case);
                assert_eq!(warning_on(&bus), None, "{case}");
            }
        }
    }
}

/// Masks that are not what they say: a warning once, the frame is segmented whole, and the stream goes on.
#[test]
fn a_segmentation_that_lies_is_refused_once() {
    let Some(reader) = Reader::open() else { return };
    let info = info("RGB", WIDTH, HEIGHT);
    let element = element("segmentation", false);
    let (mut h, bus) = harness(&element);
    h.set_src_caps(caps("RGB", WIDTH, HEIGHT));
    let described = |size: usize, [width, height]: [u32; 2], stride: i32| {
        let mut buffer = mask_buffer("GRAY8", [16, 12], |_, _| 1);
        let writable = buffer.get_mut().unwrap();
        // SAFETY: the meta belongs to the buffer, which is borrowed; its fields are plain numbers.
        unsafe {
            let meta = gst_video::ffi::gst_buffer_get_video_meta(writable.as_mut_ptr());
            (*meta).width = width;
            (*meta).height = height;
            (*meta).stride[0] = stride;
        }
        writable.set_size(size);
        buffer
    };
    let bad = [
        described(10, [16, 12], 19),
        described(200, [16, 12], 5),
        described(200, [16, 12], -19),
        described(200, [16, 12], i32::MAX),
        described(200, [0, 12], 19),
        described(200, [16, u32::MAX], 19),
        described(200, [16385, 12], 19),
        described(0, [16, 12], 19),
    ];
    for (i, mask) in bad.into_iter().enumerate().chain([(8, mask_buffer("GRAY8", [4, 4], |x, _| x as u16))]) {
        let mut input = picture(&info, 1, 0);
        reader.add_segmentation(input.get_mut().unwrap(), mask, [0, 0], [64, 47]);
        let mask = (i == 8).then(|| mask_of(WIDTH, HEIGHT, |x, _| x >= 16));
        let expected = match &mask {
            Some(mask) => {
                common::library_on(&mut engine(&info, false), &input, &info, None, EVERYTHING, Some(mask))
            }
            None => common::library(&input, &info, frame_info(&info), &params(), None),
        };
        let output = h.push_and_pull(input).unwrap_or_else(|_| panic!("{i}: {:?}", error_on(&bus)));
        assert_same(&output, &expected, &i.to_string());
        assert_eq!(warning_on(&bus).is_some(), i == 0, "{i}");
    }
    assert_eq!(element.property::<gst::Structure>("stats").get::<u64>("dropped"), Ok(0));
}
