// SPDX-License-Identifier: MPL-2.0
//! The element `superpixellabels`: exact label maps, its properties, its errors, and files that keep every label.

use crate::common;
use std::path::PathBuf;

use crate::common::{caps, error_on, harness, info, launch, picture, play_to_end, samples, superpixel};
use gst::meta::CustomMeta;
use gst::prelude::*;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::image::{Geometry, Labels};
use gstsuperpixel::meta::{NAME, SuperpixelMeta};
use gstsuperpixel::post::abstraction::labels::LabelSmoother;

const WIDTH: u32 = 61;
const HEIGHT: u32 = 35;
const SOURCE: &str = "videotestsrc pattern=smpte num-buffers=3 ! video/x-raw,format=RGB,width=61,height=35 ! \
                      superpixel overlay=none superpixel-size=4 threads=1";

/// A segmented frame.
fn segmented(table: bool) -> gst::Buffer {
    let element = superpixel();
    element.set_property("region-table", table);
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("RGB", WIDTH, HEIGHT));
    h.push_and_pull(picture(&info("RGB", WIDTH, HEIGHT), 1, 0)).unwrap()
}

fn labels_element(properties: &[(&str, &str)]) -> (gst::Element, gst_check::Harness, common::TestBus) {
    common::init();
    let element = gst::ElementFactory::make("superpixellabels").build().unwrap();
    for (name, value) in properties {
        element.set_property_from_str(name, value);
    }
    let (mut h, bus) = harness(&element);
    h.set_src_caps(caps("RGB", WIDTH, HEIGHT));
    (element, h, bus)
}

/// Labels of a GRAY16_LE buffer in GStreamer's default layout.
fn gray16(buffer: &gst::BufferRef, width: u32, height: u32) -> Vec<u16> {
    let info = info("GRAY16_LE", width, height);
    let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, &info).unwrap();
    let rows = frame.plane_data(0).unwrap().chunks(info.stride()[0] as usize);
    let pixels = rows.flat_map(|row| row[..2 * width as usize].chunks_exact(2));
    pixels.map(|pixel| u16::from_le_bytes([pixel[0], pixel[1]])).collect()
}

fn expected(buffer: &gst::BufferRef) -> Vec<u16> {
    SuperpixelMeta::from_buffer(buffer).unwrap().labels().unwrap().as_slice().to_vec()
}

#[test]
fn frames_become_their_label_maps() {
    let (_element, mut h, _bus) = labels_element(&[]);
    let input = segmented(false);
    let (pts, duration, labels) = (input.pts(), input.duration(), expected(&input));
    let output = h.push_and_pull(input).unwrap();
    assert_eq!((output.pts(), output.duration()), (pts, duration));
    assert!(gray16(&output, WIDTH, HEIGHT) == labels);
    let caps = h.sinkpad().unwrap().current_caps().unwrap();
    let out = gst_video::VideoInfo::from_caps(&caps).unwrap();
    assert_eq!((out.format(), out.width(), out.height()), (gst_video::VideoFormat::Gray16Le, WIDTH, HEIGHT));
    assert_eq!(out.fps(), gst::Fraction::new(25, 1));
}

#[test]
fn labels_come_out_of_padded_label_buffers_too() {
    let mut input = segmented(false);
    let labels = expected(&input);
    let stride = 2 * WIDTH as usize + 22;
    let mut bytes = vec![0xff; 10 + stride * HEIGHT as usize];
    for (y, row) in labels.chunks(WIDTH as usize).enumerate() {
        for (x, label) in row.iter().enumerate() {
            bytes[10 + y * stride + 2 * x..][..2].copy_from_slice(&label.to_le_bytes());
        }
    }
    let mut padded = gst::Buffer::from_mut_slice(bytes);
    let (flags, format) = (gst_video::VideoFrameFlags::empty(), gst_video::VideoFormat::Gray16Le);
    let offsets = ([10], [stride as i32]);
    gst_video::VideoMeta::add_full(
        padded.get_mut().unwrap(),
        flags,
        format,
        WIDTH,
        HEIGHT,
        &offsets.0,
        &offsets.1,
    )
    .unwrap();
    CustomMeta::from_mut_buffer(input.make_mut(), NAME).unwrap().mut_structure().set("labels", padded);
    let (_element, mut h, _bus) = labels_element(&[]);
    assert!(gray16(&h.push_and_pull(input).unwrap(), WIDTH, HEIGHT) == labels);
}

#[test]
fn identity_writes_the_low_bits_of_track_ids() {
    let (element, mut h, _bus) = labels_element(&[("identity", "true")]);
    let mut input = segmented(true);
    let labels = expected(&input);
    assert!(gray16(&h.push_and_pull(input.clone()).unwrap(), WIDTH, HEIGHT) == labels, "track_id = label");
    // Identities that are not labels, and some above 16 bits.
    let regions = SuperpixelMeta::from_buffer(&input).unwrap().regions();
    let mut table = SuperpixelMeta::from_buffer(&input).unwrap().table().unwrap();
    for (label, region) in table.iter_mut().enumerate() {
        region.track_id = 0x0001_0000 * (label as u32 % 3) + regions - label as u32;
    }
    let wanted: Vec<u16> = labels.iter().map(|label| (regions - u32::from(*label)) as u16).collect();
    let records: Vec<u8> = table
        .iter()
        .flat_map(|region| {
            let mut record = [0; 40];
            record[..4].copy_from_slice(&region.track_id.to_le_bytes());
            record
        })
        .collect();
    CustomMeta::from_mut_buffer(input.make_mut(), NAME)
        .unwrap()
        .mut_structure()
        .set("table", gst::Buffer::from_slice(records));
    assert!(gray16(&h.push_and_pull(input.clone()).unwrap(), WIDTH, HEIGHT) == wanted);
    element.set_property("identity", false);
    assert!(gray16(&h.push_and_pull(input).unwrap(), WIDTH, HEIGHT) == labels, "change while playing");
}

#[test]
fn outlines_are_smoothed_as_the_library_does_it() {
    let smooth = |map: &[u16], scale: f32| {
        let geometry = Geometry::new(WIDTH, HEIGHT).unwrap();
        let (mut map, mut out) = (map.to_vec(), vec![0; map.len()]);
        let labels = Labels::new(geometry, &mut map, WIDTH as usize).unwrap();
        let mut smoothed = Labels::new(geometry, &mut out, WIDTH as usize).unwrap();
        let mut smoother = LabelSmoother::new(&Cpu::new(1).unwrap(), geometry, scale).unwrap();
        smoother.smooth(&labels, &mut smoothed).unwrap();
        out
    };
    let (element, mut h, _bus) = labels_element(&[("outline-smoothness", "2")]);
    let input = segmented(true);
    let labels = expected(&input);
    let wanted = smooth(&labels, 2.0);
    assert!(wanted != labels);
    assert!(gray16(&h.push_and_pull(input.clone()).unwrap(), WIDTH, HEIGHT) == wanted);
    // The metadata stays that of the segmentation.
    assert!(expected(&h.push_and_pull(input.clone()).unwrap()) == labels);
    // While it plays; and smaller scales are the least.
    for (scale, wanted) in [(0.2, smooth(&labels, 0.5)), (6.0, smooth(&labels, 6.0)), (0.0, labels.clone())] {
        element.set_property("outline-smoothness", scale as f32);
        assert!(gray16(&h.push_and_pull(input.clone()).unwrap(), WIDTH, HEIGHT) == wanted, "{scale}");
    }
    // Track ids of smoothed labels, which are labels here.
    element.set_property("outline-smoothness", 2f32);
    element.set_property("identity", true);
    assert!(gray16(&h.push_and_pull(input).unwrap(), WIDTH, HEIGHT) == wanted);
}

#[test]
fn identity_without_table_says_what_to_set() {
    let (_element, mut h, bus) = labels_element(&[("identity", "true")]);
    assert_eq!(h.push(segmented(false)), Err(gst::FlowError::Error));
    let text = error_on(&bus).expect("an element error");
    assert!(text.contains("region-table=true"), "{text}");
}

#[test]
fn on_missing_error_says_what_to_do() {
    let (_element, mut h, bus) = labels_element(&[]);
    assert_eq!(h.push(picture(&info("RGB", WIDTH, HEIGHT), 1, 0)), Err(gst::FlowError::Error));
    let text = error_on(&bus).expect("an element error");
    assert!(text.contains("put superpixel") && text.contains("on-missing"), "{text}");
}

#[test]
fn on_missing_drop_leaves_the_frame_out() {
    let (element, mut h, bus) = labels_element(&[("on-missing", "drop")]);
    assert_eq!(h.push(picture(&info("RGB", WIDTH, HEIGHT), 1, 0)), Ok(gst::FlowSuccess::Ok));
    assert!(h.try_pull().is_none());
    let input = segmented(false);
    let labels = expected(&input);
    assert!(gray16(&h.push_and_pull(input).unwrap(), WIDTH, HEIGHT) == labels);
    element.set_property_from_str("on-missing", "error");
    assert_eq!(h.push(picture(&info("RGB", WIDTH, HEIGHT), 1, 0)), Err(gst::FlowError::Error));
    assert!(error_on(&bus).is_some(), "change while playing");
}

#[test]
fn on_missing_zero_writes_zeros() {
    let (_element, mut h, _bus) = labels_element(&[("on-missing", "zero")]);
    let output = h.push_and_pull(picture(&info("RGB", WIDTH, HEIGHT), 1, 0)).unwrap();
    assert!(gray16(&output, WIDTH, HEIGHT).iter().all(|label| *label == 0));
}

#[test]
fn a_map_of_another_size_is_an_error() {
    let (_element, mut h, bus) = labels_element(&[]);
    h.set_src_caps(caps("RGB", 32, 32));
    let mut buffer = picture(&info("RGB", 32, 32), 0, 0);
    let other = segmented(false);
    let source = CustomMeta::from_buffer(&other, NAME).unwrap();
    let mut meta = CustomMeta::add(buffer.get_mut().unwrap(), NAME).unwrap();
    for (name, value) in source.structure().iter() {
        meta.mut_structure().set_value(name, value.clone());
    }
    assert_eq!(h.push(buffer), Err(gst::FlowError::Error));
    let text = error_on(&bus).expect("an element error");
    assert!(text.contains("61x35") && text.contains("32x32"), "{text}");
}

#[test]
fn caps_may_change_in_the_stream() {
    let line = "superpixel overlay=none threads=1 superpixel-size=8 ! superpixellabels";
    common::init();
    let mut h = gst_check::Harness::new_parse(line);
    for (name, width, height) in [("RGB", 61, 35), ("NV12", 64, 48), ("GRAY8", 33, 9)] {
        h.set_src_caps(caps(name, width, height));
        let output = h.push_and_pull(picture(&info(name, width, height), 1, 0)).unwrap();
        assert!(gray16(&output, width, height) == expected(&output), "{name} {width}x{height}");
    }
}

/// Label maps of the frames of [`SOURCE`].
fn source_labels() -> Vec<Vec<u16>> {
    let maps: Vec<_> = samples(&format!("{SOURCE} ! superpixellabels ! appsink name=out"))
        .iter()
        .map(|sample| gray16(sample.buffer().unwrap(), WIDTH, HEIGHT))
        .collect();
    assert_eq!(maps.len(), 3);
    assert!(
        maps.iter().all(|map| map.iter().any(|label| *label > 127)),
        "labels fit in a byte, so prove little"
    );
    maps
}

/// A fresh folder for files of a test.
fn folder(name: &str) -> PathBuf {
    let path =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("labels-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn png_files_keep_every_label() {
    let folder = folder("png");
    let location = folder.join("l%05d.png");
    for between in ["", "videoconvert !"] {
        let line = format!(
            "{SOURCE} ! superpixellabels ! {between} pngenc ! multifilesink location={}",
            location.display()
        );
        play_to_end(&launch(&line)).unwrap();
        for (i, labels) in source_labels().iter().enumerate() {
            let file = folder.join(format!("l{i:05}.png"));
            let picture = image::open(&file).unwrap();
            assert_eq!(picture.color(), image::ColorType::L16, "{between}");
            assert!(picture.to_luma16().as_raw() == labels, "{between} frame {i}");
            std::fs::remove_file(file).unwrap();
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn ffv1_in_matroska_keeps_every_label() {
    let folder = folder("ffv1");
    let file = folder.join("labels.mkv");
    let (write, read) = (
        format!(
            "{SOURCE} ! superpixellabels ! avenc_ffv1 ! matroskamux ! filesink location={}",
            file.display()
        ),
        format!(
            "filesrc location={} ! matroskademux ! avdec_ffv1 ! video/x-raw,format=GRAY16_LE ! appsink name=out",
            file.display()
        ),
    );
    play_to_end(&launch(&write)).unwrap();
    let maps: Vec<_> =
        samples(&read).iter().map(|sample| gray16(sample.buffer().unwrap(), WIDTH, HEIGHT)).collect();
    assert!(maps == source_labels());
    std::fs::remove_dir_all(folder).unwrap();
}
