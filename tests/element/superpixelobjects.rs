// SPDX-License-Identifier: MPL-2.0
//! The element `superpixelobjects`: objects that are followed, whatever says where they are, and all that is no object.

use crate::analytics::{Entry, Reader};
use crate::common::{self, TestBus, bytes, caps, error_on, harness, info, launch, pixels, warning_on};
use gst::prelude::*;
use gst_video::VideoRegionOfInterestMeta;
use gstsuperpixel::meta::{NAME, SuperpixelMeta};

const WIDTH: u32 = 240;
const HEIGHT: u32 = 160;
/// Side of the squares.
const SIDE: u32 = 60;
/// Type of the regions of interest that the element attaches.
const KIND: &str = "superpixel-object";

/// A rectangle: x, y, width, height.
type Place = (u32, u32, u32, u32);

/// Place of the square of a color in a frame.
fn square(color: usize, frame: u32) -> Place {
    match color {
        0 => (20 + 3 * frame, 40, SIDE, SIDE),
        _ => (160, 10 + 2 * frame, SIDE, SIDE),
    }
}

fn is_in((x, y, width, height): Place, px: u32, py: u32) -> bool {
    (x..x + width).contains(&px) && (y..y + height).contains(&py)
}

/// A frame with some squares on grass.
fn drawn(format: &str, frame: u32, squares: &[Place]) -> gst::Buffer {
    let sides = info(format, WIDTH, HEIGHT);
    assert!(sides.format() == gst_video::VideoFormat::Rgb, "drawn as RGB");
    let stride = sides.stride()[0] as usize;
    let mut bytes = vec![0; stride * HEIGHT as usize];
    for y in 0..HEIGHT {
        for x in 0..WIDTH {
            let mut noise = (x * 7919 + y * 104_729 + frame * 65_537).wrapping_mul(0x9e37_79b1);
            noise = (noise ^ noise >> 15) % 16;
            let of = squares.iter().position(|place| is_in(*place, x, y));
            // Squares have a pattern that moves with them.
            let check = of.map_or(0, |at| 40 * (((x - squares[at].0) / 12 + (y - squares[at].1) / 12) % 2));
            let rgb = match of {
                None => [60 + noise, 120 + noise, 50],
                Some(0) => [180 + check, 40 + noise, 40 + check],
                Some(_) => [40 + check, 60 + noise, 180 + check],
            };
            let at = y as usize * stride + 3 * x as usize;
            bytes[at..at + 3].copy_from_slice(&rgb.map(|v| v as u8));
        }
    }
    let mut buffer = gst::Buffer::from_mut_slice(bytes);
    let writable = buffer.get_mut().unwrap();
    writable.set_pts(gst::ClockTime::from_mseconds(40 * u64::from(frame)));
    writable.set_duration(gst::ClockTime::from_mseconds(40));
    buffer
}

/// `superpixel` and `superpixelobjects`, one behind the other.
struct Chain {
    superpixel: gst_check::Harness,
    objects: gst_check::Harness,
    element: gst::Element,
    bus: TestBus,
}

impl Chain {
    fn new(properties: &[(&str, &str)]) -> Self {
        Self::with(properties, &[("temporal", "true"), ("neighbors", "true")])
    }

    fn with(properties: &[(&str, &str)], of_superpixel: &[(&str, &str)]) -> Self {
        let superpixel = common::superpixel();
        superpixel.set_property_from_str("overlay", "none");
        superpixel.set_property_from_str("backend", "cpu");
        for (name, value) in of_superpixel {
            superpixel.set_property_from_str(name, value);
        }
        let element = gst::ElementFactory::make("superpixelobjects").build().unwrap();
        for (name, value) in properties {
            element.set_property_from_str(name, value);
        }
        let (mut superpixel, _) = harness(&superpixel);
        let (mut objects, bus) = harness(&element);
        for harness in [&mut superpixel, &mut objects] {
            harness.set_src_caps(caps("RGB", WIDTH, HEIGHT));
        }
        Self { superpixel, objects, element, bus }
    }

    /// Segments a frame, changes it, and passes it through the element.
    fn push(&mut self, frame: gst::Buffer, change: impl FnOnce(&mut gst::BufferRef)) -> gst::Buffer {
        let mut segmented = self.superpixel.push_and_pull(frame).unwrap();
        change(segmented.make_mut());
        self.objects.push_and_pull(segmented).unwrap()
    }

    /// A frame with the red square, with a region of interest around it if that is wanted.
    fn red(&mut self, frame: u32, roi: bool) -> gst::Buffer {
        let place = square(0, frame);
        self.push(drawn("RGB", frame, &[place]), |buffer| {
            if roi {
                VideoRegionOfInterestMeta::add(buffer, "thing", around(place));
            }
        })
    }

    fn stat(&self, name: &str) -> u64 {
        self.element.property::<gst::Structure>("stats").get(name).unwrap()
    }

    /// Messages of the element: event, id and reason.
    fn events(&self) -> Vec<(String, u32, String)> {
        let mut found = Vec::new();
        while let Some(message) = self.bus.pop_filtered(&[gst::MessageType::Element]) {
            let fields = message.structure().unwrap();
            assert_eq!(fields.name(), KIND);
            let reason = fields.get::<String>("reason").unwrap_or_default();
            found.push((fields.get("event").unwrap(), fields.get("id").unwrap(), reason));
        }
        found
    }
}

/// A box with some space around.
fn around((x, y, width, height): Place) -> Place {
    (x.saturating_sub(4), y.saturating_sub(4), width + 8, height + 8)
}

fn rois(buffer: &gst::BufferRef) -> Vec<(i32, Place)> {
    let all = buffer.iter_meta::<VideoRegionOfInterestMeta>().filter(|roi| roi.roi_type() == KIND);
    all.map(|roi| (roi.id(), roi.rect())).collect()
}

/// The object of each pixel.
fn mask(buffer: &gst::BufferRef) -> Vec<u32> {
    let meta = SuperpixelMeta::from_buffer(buffer).unwrap();
    let (labels, objects) = (meta.labels().unwrap(), meta.objects().unwrap());
    let of = |label: &u16| objects.get(usize::from(*label)).copied().unwrap_or(0);
    labels.as_slice().iter().map(of).collect()
}

/// Intersection over union of an object's mask and a rectangle.
fn jaccard(buffer: &gst::BufferRef, id: u32, place: Place) -> f64 {
    let (mut common, mut union) = (0, 0);
    for (at, owner) in mask(buffer).into_iter().enumerate() {
        let truth = is_in(place, at as u32 % WIDTH, at as u32 / WIDTH);
        common += u32::from(truth && owner == id);
        union += u32::from(truth || owner == id);
    }
    f64::from(common) / f64::from(union.max(1))
}

#[test]
fn a_square_of_the_first_frame_is_followed() {
    let mut chain = Chain::new(&[]);
    for frame in 0..30 {
        let output = chain.red(frame, frame == 0);
        let place = square(0, frame);
        let found = jaccard(&output, 1, place);
        assert!(found >= 0.9, "frame {frame}: {found}");
        let all = rois(&output);
        let [(1, (x, y, width, height))] = all[..] else { panic!("frame {frame}: {all:?}") };
        let near = |a: u32, b: u32| a.abs_diff(b) <= 6;
        let same = near(x, place.0) && near(y, place.1) && near(width, place.2) && near(height, place.3);
        assert!(same, "frame {frame}: {:?}", all[0]);
        // The detection stays, with the class that the object has.
        let roi = output.iter_meta::<VideoRegionOfInterestMeta>().find(|roi| roi.roi_type() == KIND);
        let roi = roi.unwrap();
        let fields = roi.param(KIND).unwrap();
        assert_eq!(fields.get::<u32>("id"), Ok(1));
        assert_eq!(fields.get::<String>("class").as_deref(), Ok("thing"));
        let area = mask(&output).iter().filter(|owner| **owner == 1).count() as u64;
        assert_eq!(fields.get::<u64>("area"), Ok(area));
        if frame > 2 {
            let velocity = ["velocity-x", "velocity-y"].map(|name| fields.get::<i32>(name).unwrap());
            assert!((velocity[0] - 3).abs() <= 1 && velocity[1].abs() <= 1, "frame {frame}: {velocity:?}");
        }
    }
    assert_eq!(chain.events(), [("begins".into(), 1, String::new())]);
    assert_eq!((chain.stat("taken"), chain.stat("refused"), chain.stat("frames")), (1, 0, 30));
    assert_eq!(error_on(&chain.bus).or(warning_on(&chain.bus)), None);
}

#[test]
fn several_objects_are_told_apart_and_end_one_by_one() {
    let mut chain = Chain::new(&[("objects", "16,36,68,68; 156,6,68,68")]);
    for frame in 0..20 {
        if frame == 12 {
            assert!(chain.element.emit_by_name::<bool>("remove-object", &[&1u32]));
            assert!(!chain.element.emit_by_name::<bool>("remove-object", &[&1u32]), "it has ended");
            assert!(!chain.element.emit_by_name::<bool>("remove-object", &[&9u32]), "it has never been");
        }
        let squares = [square(0, frame), square(1, frame)];
        let output = chain.push(drawn("RGB", frame, &squares), |_| ());
        let ids: Vec<i32> = rois(&output).iter().map(|roi| roi.0).collect();
        assert_eq!(ids, if frame < 12 { vec![1, 2] } else { vec![2] }, "frame {frame}");
        for (id, place) in (1..).zip(squares) {
            let found = jaccard(&output, id, place);
            let is_right = if id == 1 && frame >= 12 { found == 0.0 } else { found >= 0.9 };
            assert!(is_right, "frame {frame}, object {id}: {found}");
        }
    }
    let events = chain.events();
    let begins = |id| ("begins".to_owned(), id, String::new());
    assert_eq!(events, [begins(1), begins(2), ("ends".into(), 1, "removed".into())]);
}

/// By signals: a box while the stream plays, points, and a box for what is known.
#[test]
fn an_application_says_where_objects_are() {
    let mut chain = Chain::new(&[]);
    for frame in 0..3 {
        assert!(rois(&chain.red(frame, false)).is_empty());
    }
    let (x, y, width, height) = around(square(0, 3));
    let of = |place: [u32; 4]| place.map(|v| v as i32);
    let [x, y, width, height] = of([x, y, width, height]);
    assert_eq!(chain.element.emit_by_name::<u32>("add-object", &[&x, &y, &width, &0i32]), 0, "no area");
    let id = chain.element.emit_by_name::<u32>("add-object", &[&x, &y, &width, &height]);
    assert_eq!(id, 1);
    assert!(jaccard(&chain.red(3, false), id, square(0, 3)) >= 0.9);
    assert!(chain.element.emit_by_name::<bool>("update-object", &[&id, &x, &y, &width, &height]));
    assert!(!chain.element.emit_by_name::<bool>("update-object", &[&7u32, &x, &y, &width, &height]));
    assert!(jaccard(&chain.red(4, false), id, square(0, 4)) >= 0.9);
    assert!(chain.element.emit_by_name::<bool>("remove-object", &[&id]));
    let (x, y, ..) = square(0, 5);
    let [x, y] = [x, y].map(|v| v as i32 + SIDE as i32 / 2);
    let id = chain.element.emit_by_name::<u32>("add-point", &[&0u32, &x, &y, &true]);
    assert_eq!(id, 2);
    assert_eq!(chain.element.emit_by_name::<u32>("add-point", &[&id, &(x + 60), &y, &false]), id);
    assert_eq!(chain.element.emit_by_name::<u32>("add-point", &[&9u32, &x, &y, &true]), 0);
    assert!(jaccard(&chain.red(5, false), id, square(0, 5)) >= 0.9);
    for frame in 6..12 {
        assert!(jaccard(&chain.red(frame, false), id, square(0, frame)) >= 0.9, "frame {frame}");
    }
    assert_eq!(chain.stat("refused"), 0);
}

/// A mask in GRAY8.
fn mask_sample(width: u32, height: u32, inside: impl Fn(u32, u32) -> bool) -> gst::Sample {
    let stride = width.next_multiple_of(4) as usize;
    let mut bytes = vec![0; stride * height as usize];
    for (y, row) in bytes.chunks_mut(stride).enumerate() {
        (0..width).for_each(|x| row[x as usize] = if inside(x, y as u32) { 3 } else { 0 });
    }
    let buffer = gst::Buffer::from_mut_slice(bytes);
    gst::Sample::builder().buffer(&buffer).caps(&caps("GRAY8", width, height)).build()
}

#[test]
fn a_mask_says_what_an_object_covers() {
    let mut chain = Chain::new(&[]);
    assert!(rois(&chain.red(0, false)).is_empty());
    let add = |chain: &Chain, id: u32, mask: &gst::Sample| {
        chain.element.emit_by_name::<u32>("add-mask", &[&id, mask])
    };
    // As large as the frame, then a quarter of it.
    let id = add(&chain, 0, &mask_sample(WIDTH, HEIGHT, |x, y| is_in(square(0, 1), x, y)));
    assert_eq!(id, 1);
    assert!(jaccard(&chain.red(1, false), id, square(0, 1)) >= 0.9);
    let small = mask_sample(WIDTH / 4, HEIGHT / 4, |x, y| is_in(square(0, 2), 4 * x + 2, 4 * y + 2));
    assert_eq!((add(&chain, id, &small), add(&chain, 7, &small)), (id, 0));
    assert!(jaccard(&chain.red(2, false), id, square(0, 2)) >= 0.9);
    assert!(jaccard(&chain.red(3, false), id, square(0, 3)) >= 0.9, "it is followed");
    // Refused at the border, or where the frame is: the stream goes on.
    let other = gst::Sample::builder().buffer(&gst::Buffer::new()).caps(&caps("RGB", 8, 8)).build();
    let short =
        gst::Sample::builder().buffer(&gst::Buffer::with_size(9).unwrap()).caps(&caps("GRAY8", 8, 8)).build();
    for bad in [other, short, gst::Sample::builder().build()] {
        assert_eq!(add(&chain, 0, &bad), 0);
    }
    assert_ne!(add(&chain, 0, &mask_sample(5, 5, |_, _| false)), 0);
    let many = (0..80).filter(|_| add(&chain, id, &small) == 0).count();
    assert_eq!(many, 80 - 63);
    chain.red(4, false);
    assert_eq!(chain.stat("refused"), 1);
}

#[test]
fn without_detections_a_frame_is_what_it_was() {
    let mut chain = Chain::new(&[("overlay", "background")]);
    let whole = |buffer: &gst::BufferRef| {
        let meta = gst::meta::CustomMeta::from_buffer(buffer, NAME).unwrap();
        let fields: Vec<_> = meta
            .structure()
            .iter()
            .filter(|(name, _)| *name != "local")
            .map(|(name, value)| match value.get::<gst::Buffer>() {
                Ok(field) => (name.to_string(), format!("{:?}", bytes(&field))),
                Err(_) => (name.to_string(), format!("{value:?}")),
            })
            .collect();
        let metas: Vec<_> = buffer.iter_meta::<gst::Meta>().map(|meta| meta.api().name()).collect();
        (bytes(buffer), fields, metas, buffer.pts(), buffer.duration(), buffer.flags())
    };
    for frame in 0..3 {
        let mut before = None;
        let output =
            chain.push(drawn("RGB", frame, &[square(0, frame)]), |buffer| before = Some(whole(buffer)));
        assert!(before.as_ref() == Some(&whole(&output)), "frame {frame}");
    }
    assert_eq!((chain.stat("frames"), chain.events().len()), (0, 0));
}

#[test]
fn detections_that_cannot_be_are_refused() {
    let mut chain = Chain::new(&[]);
    let bad: [Place; 6] = [
        (0, 0, 0, 0),
        (WIDTH, 0, 10, 10),
        (0, HEIGHT + 7, 10, 10),
        (u32::MAX, u32::MAX, u32::MAX, u32::MAX),
        (10, 10, 0, 50),
        (10, 10, 50, 0),
    ];
    for frame in 0..4 {
        let output = chain.push(drawn("RGB", frame, &[square(0, frame)]), |buffer| {
            for place in bad {
                VideoRegionOfInterestMeta::add(buffer, "thing", place);
            }
        });
        assert!(rois(&output).is_empty());
    }
    assert_eq!(chain.stat("refused"), 4 * bad.len() as u64);
    let text = warning_on(&chain.bus).expect("a warning");
    assert!(text.contains("no pixel of the frame"), "{text}");
    assert_eq!(warning_on(&chain.bus), None, "one a second");
    // Over the edge is clipped; others go on.
    let output = chain.push(drawn("RGB", 4, &[square(0, 4)]), |buffer| {
        VideoRegionOfInterestMeta::add(buffer, "thing", (0, 0, u32::MAX, u32::MAX));
    });
    assert!(rois(&output).len() <= 1);
    assert_eq!(error_on(&chain.bus), None);
}

#[test]
fn no_more_objects_are_followed_than_wanted() {
    let mut chain = Chain::new(&[("max-objects", "1"), ("classes", "thing, other")]);
    for frame in 0..4 {
        let squares = [square(0, frame), square(1, frame)];
        let output = chain.push(drawn("RGB", frame, &squares), |buffer| {
            VideoRegionOfInterestMeta::add(buffer, "unwanted", around(squares[1]));
            VideoRegionOfInterestMeta::add(buffer, "thing", around(squares[0]));
            VideoRegionOfInterestMeta::add(buffer, "other", around(squares[1]));
        });
        assert_eq!(rois(&output).iter().map(|roi| roi.0).collect::<Vec<_>>(), [1]);
        assert!(jaccard(&output, 1, squares[0]) >= 0.9);
    }
    assert!(chain.element.emit_by_name::<u32>("add-object", &[&156i32, &8i32, &68i32, &72i32]) > 1);
    let before = chain.stat("refused");
    chain.push(drawn("RGB", 4, &[square(0, 4), square(1, 4)]), |_| ());
    assert_eq!(chain.stat("refused"), before + 1);
    let text = warning_on(&chain.bus).unwrap();
    assert!(text.contains("max-objects=1"), "{text}");
}

#[test]
fn missing_tables_are_said() {
    // Properties of `superpixel`.
    let cases = [
        ("temporal=true", "neighbors=true"),
        ("neighbors=true", "temporal=true"),
        ("temporal=true neighbors=true region-table=false", "region-table=true"),
        ("labels=false", "put superpixel"),
    ];
    for (settings, said) in cases {
        let settings: Vec<_> = settings.split(' ').filter_map(|setting| setting.split_once('=')).collect();
        let mut chain = Chain::with(&[], &settings);
        let frame = chain.superpixel.push_and_pull(drawn("RGB", 0, &[])).unwrap();
        assert_eq!(chain.objects.push(frame), Err(gst::FlowError::Error));
        let text = error_on(&chain.bus).expect("an element error");
        assert!(text.contains(said) && text.contains("on-missing=pass"), "{text}");
        let mut chain = Chain::with(&[("on-missing", "pass")], &settings);
        for frame in 0..3 {
            chain.red(frame, true);
        }
        let text = warning_on(&chain.bus).expect("an element warning");
        assert!(text.contains(said), "{text}");
        assert_eq!(warning_on(&chain.bus).or(error_on(&chain.bus)), None, "once");
    }
}

#[test]
fn objects_end_where_the_stream_does_not_go_on() {
    let ends = |id| ("ends".to_owned(), id, "reset".to_owned());
    let begins = |id| ("begins".to_owned(), id, String::new());
    let mut chain = Chain::new(&[]);
    chain.red(0, true);
    for harness in [&mut chain.superpixel, &mut chain.objects] {
        assert!(harness.push_event(gst::event::FlushStart::new()));
        assert!(harness.push_event(gst::event::FlushStop::new(true)));
        let segment = gst::FormattedSegment::<gst::ClockTime>::new();
        assert!(harness.push_event(gst::event::Segment::new(&segment)));
    }
    assert_eq!(chain.events(), [begins(1), ends(1)]);
    assert!(rois(&chain.red(1, false)).is_empty());
    chain.red(2, true);
    let segment = gst::FormattedSegment::<gst::ClockTime>::new();
    assert!(chain.objects.push_event(gst::event::Segment::new(&segment)));
    assert_eq!(chain.events(), [begins(2), ends(2)]);
    chain.red(3, true);
    let (small, id) = (caps("RGB", 64, 48), 3);
    for harness in [&mut chain.superpixel, &mut chain.objects] {
        harness.set_src_caps(small.clone());
    }
    assert_eq!(chain.events(), [begins(id), ends(id)]);
    let output = chain.push(common::picture(&info("RGB", 64, 48), 1, 0), |_| ());
    assert!(rois(&output).is_empty());
}

#[test]
fn an_object_that_is_gone_ends() {
    let mut chain = Chain::new(&[]);
    for frame in 0..4 {
        chain.red(frame, frame == 0);
    }
    let mut last = 0;
    for frame in 4..30 {
        let output = chain.push(drawn("RGB", frame, &[]), |_| ());
        if !rois(&output).is_empty() {
            last = frame;
        }
    }
    assert!(last < 10, "followed until frame {last}");
    let events = chain.events();
    assert_eq!(events.last(), Some(&("ends".to_owned(), 1, "lost".to_owned())), "{events:?}");
}

#[test]
fn the_background_is_drawn_on() {
    let at = |buffer: &gst::BufferRef, x: u32, y: u32| {
        let all = pixels(buffer, &info("RGB", WIDTH, HEIGHT));
        let at = 3 * (y * WIDTH + x) as usize;
        [all[at], all[at + 1], all[at + 2]]
    };
    for (overlay, color, is_right) in [
        ("background", 0xff0a_141e_u32, (|_, new| new == [10, 20, 30]) as fn([u8; 3], [u8; 3]) -> bool),
        ("background", 0x8000_0000, |old, new| {
            old.iter().zip(new).all(|(old, new)| new.abs_diff(old / 2) <= 1)
        }),
        ("blur", 0, |old, new| old != new && new[2].abs_diff(50) < 4 && new[0].abs_diff(67) < 6),
        ("mean-color", 0, |_, new| new[2] == 50 && new[0].abs_diff(65) < 8),
        ("none", 0, |old, new| old == new),
    ] {
        let mut chain = Chain::new(&[("overlay", overlay)]);
        chain.element.set_property("background-color", color);
        let frame = drawn("RGB", 0, &[square(0, 0)]);
        let before = frame.clone();
        let output = chain.push(frame, |buffer| {
            VideoRegionOfInterestMeta::add(buffer, "thing", around(square(0, 0)));
        });
        // Another holder of the frame sees it as it was.
        assert!(bytes(&before) == bytes(&drawn("RGB", 0, &[square(0, 0)])));
        assert_eq!(at(&output, 50, 70), at(&before, 50, 70), "{overlay}: inside");
        let (old, new) = (at(&before, 200, 20), at(&output, 200, 20));
        assert!(is_right(old, new), "{overlay} {color:#x}: {old:?} became {new:?}");
    }
}

/// Every format: far from borders all that is in no object has the color, and objects have theirs.
#[test]
fn all_formats_are_drawn_on() {
    let cases = common::formats().flat_map(|format| ["background", "blur"].map(|overlay| (format, overlay)));
    for ((format, pixel), overlay) in cases {
        let line = format!(
            "videoconvert dither=none ! capsfilter caps=video/x-raw,format={format} ! \
             superpixel backend=cpu threads=1 overlay=none superpixel-size=8 neighbors=true ! \
             superpixelobjects objects=14,34,72,72 overlay={overlay} background-color=0xff0000ff ! \
             videoconvert dither=none ! capsfilter caps=video/x-raw,format=RGB"
        );
        let mut chain = gst_check::Harness::new_parse(&line);
        chain.set_src_caps(caps("RGB", WIDTH, HEIGHT));
        let output = chain.push_and_pull(drawn("RGB", 0, &[square(0, 0)])).unwrap();
        let (owners, colors) = (mask(&output), pixels(&output, &info("RGB", WIDTH, HEIGHT)));
        // Gray does not tell the square from the grass.
        let is_gray = pixel.is_gray();
        assert!(is_gray || jaccard(&output, 1, square(0, 0)) > 0.9, "{format}");
        let mut counts = [0; 2];
        for (y, x) in (4..HEIGHT - 4).flat_map(|y| (4..WIDTH - 4).map(move |x| (y, x))) {
            let near = (y - 4..=y + 4).flat_map(|y| (x - 4..=x + 4).map(move |x| (y * WIDTH + x) as usize));
            let at = (y * WIDTH + x) as usize;
            if near.into_iter().any(|near| owners[near] != owners[at]) {
                continue;
            }
            counts[owners[at] as usize] += 1;
            let [r, g, b] = [0, 1, 2].map(|channel| i32::from(colors[3 * at + channel]));
            let near = |a: i32, b: i32| (a - b).abs() < 8;
            let is_right = match (is_gray, owners[at], overlay) {
                (true, _, "blur") => true,
                // Blue is darker than all else.
                (true, owner, _) => (r < 45) == (owner == 0),
                // The mean of the grass, and nothing of the square.
                (false, 0, "blur") => near(r, 67) && near(g, 127) && near(b, 50),
                (false, 0, _) => r < 12 && g < 12 && b > 243,
                (false, _, _) => r > 150 && b < 110,
            };
            assert!(is_right, "{format}, {overlay} at {x}, {y}: {r} {g} {b}, object {}", owners[at]);
        }
        assert!(counts[0] > 1000 && (is_gray || counts[1] > 1000), "{format}: {counts:?}");
    }
}

#[test]
fn label_video_has_the_ids_of_objects() {
    let mut chain = Chain::new(&[]);
    let labels = gst::ElementFactory::make("superpixellabels").property("objects", true).build().unwrap();
    let (mut labels, _bus) = harness(&labels);
    labels.set_src_caps(caps("RGB", WIDTH, HEIGHT));
    for frame in 0..4 {
        // Without objects all is 0.
        let output = chain.red(frame, frame == 1);
        let wanted: Vec<u16> = mask(&output).iter().map(|id| *id as u16).collect();
        assert_eq!(wanted.contains(&1), frame > 0);
        let video = labels.push_and_pull(output).unwrap();
        let map = video.map_readable().unwrap();
        let written: Vec<u16> = map.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect();
        assert!(written == wanted, "frame {frame}");
    }
}

#[test]
fn a_text_that_is_no_list_of_boxes_is_refused() {
    let chain = Chain::new(&[("objects", "1,2,3,4")]);
    chain.element.set_property("objects", "1,2,3");
    let text = warning_on(&chain.bus).unwrap();
    assert!(text.contains("objects keeps its value"), "{text}");
    assert_eq!(chain.element.property::<String>("objects"), "1,2,3,4");
}

#[test]
fn a_device_memory_or_unknown_format_passes_undrawn() {
    let line = "videotestsrc num-buffers=3 ! video/x-raw,format=RGB,width=64,height=48 ! \
                superpixel backend=cpu threads=1 overlay=none superpixel-size=8 neighbors=true ! \
                capssetter join=false caps=video/x-raw,format=NV12,width=64,height=48,framerate=30/1,multiview-mode=mono ! \
                superpixelobjects objects=0,0,30,30 overlay=background ! fakesink";
    // The frame is too long for its caps and fits; nothing ends.
    common::play_to_end(&launch(line)).unwrap();
}

/// Objects of GStreamer's analytics metadata become evidence, and followed ones are described there.
#[test]
fn analytics_metadata_is_read_and_written() {
    let Some(reader) = Reader::open() else { return };
    let mut chain = Chain::with(&[], &[("temporal", "true"), ("neighbors", "true"), ("analytics", "none")]);
    for frame in 0..12 {
        let place = square(0, frame);
        let (x, y, w, h) = around(place);
        let output = chain.push(drawn("RGB", frame, &[place]), |buffer| {
            if frame % 5 == 0 {
                reader.add_fish(buffer, [x, y, w, h].map(|v| v as i32), Some(77));
                // One that is attached in two ways is one.
                VideoRegionOfInterestMeta::add(buffer, "fish", (x, y, w, h));
                reader.add_fish(buffer, [i32::MIN, 5, i32::MAX, 9], None);
            }
        });
        assert!(jaccard(&output, 1, place) >= 0.9, "frame {frame}");
        let entries = reader.entries(&output);
        let first = if frame % 5 == 0 { 3 } else { 0 };
        let [Entry::Segmentation { mask: plane, place: whole, ids }, object, tracking] = &entries[first..]
        else {
            panic!("frame {frame}: {entries:?}")
        };
        assert_eq!((*whole, &ids[..]), ((0, 0, WIDTH, HEIGHT), &[1][..]));
        let plane: Vec<u32> = bytes(plane).into_iter().map(u32::from).collect();
        assert!(plane == mask(&output), "frame {frame}");
        let (x, y, w, h) = rois(&output)[0].1;
        let place = (x as i32, y as i32, w as i32, h as i32);
        assert_eq!(*object, Entry::Object { kind: "fish".into(), place });
        let last = output.pts().unwrap().nseconds();
        assert_eq!(*tracking, Entry::Tracking { id: 1, first: 0, last, lost: false });
        let first = first as u32;
        assert_eq!(reader.relation(&output, first, first + 1), 4);
        assert_eq!(reader.relation(&output, first + 1, first + 2), 8);
    }
    assert_eq!(chain.stat("taken"), 3);
    assert_eq!(chain.stat("refused"), 3);
}

/// Detections of a tracker are about its object, wherever it jumps to. The square is small, or its jump would be a cut.
#[test]
fn analytics_tracks_name_objects() {
    let Some(reader) = Reader::open() else { return };
    let mut chain = Chain::new(&[("analytics", "false")]);
    for (frame, at) in [(0, 20), (1, 20), (2, 52)] {
        let place = (at, 40, 24, 24);
        let output = chain.push(drawn("RGB", frame, &[place]), |buffer| {
            let (x, y, w, h) = around(place);
            reader.add_fish(buffer, [x, y, w, h].map(|v| v as i32), Some(u64::MAX));
        });
        let ids: Vec<i32> = rois(&output).iter().map(|roi| roi.0).collect();
        assert_eq!(ids, [1], "frame {frame}: {:?}", chain.events());
        assert!(jaccard(&output, 1, place) >= 0.9, "frame {frame}");
    }
}
