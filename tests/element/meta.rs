// SPDX-License-Identifier: MPL-2.0
//! `GstSuperpixelMeta`: its fields, how other languages see them, and where it survives.

use crate::common;
use crate::common::{caps, harness, info, picture, samples, superpixel};
use gst::meta::CustomMeta;
use gst::prelude::*;
use gstsuperpixel::meta::{NAME, SuperpixelMeta};

fn segmented() -> gst::Buffer {
    let element = superpixel();
    element.set_property("neighbors", true);
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("RGB", 61, 35));
    h.push_and_pull(picture(&info("RGB", 61, 35), 1, 0)).unwrap()
}

/// Reads every field by GStreamer's generic calls, as C and Python do, and compares with the reader.
#[test]
fn fields_are_as_documented() {
    let buffer = segmented();
    let meta = SuperpixelMeta::from_buffer(&buffer).unwrap();
    let custom = CustomMeta::from_buffer(&buffer, NAME).unwrap();
    let fields = custom.structure();
    assert_eq!(fields.get::<u32>("version"), Ok(1));
    assert_eq!(fields.get::<&str>("algo"), Ok("slic"));
    assert_eq!((fields.get::<u32>("width"), fields.get::<u32>("height")), (Ok(61), Ok(35)));
    let regions = fields.get::<u32>("regions").unwrap();

    let labels = fields.get::<gst::Buffer>("labels").unwrap();
    let video = labels.meta::<gst_video::VideoMeta>().expect("video meta on the label buffer");
    assert_eq!((video.format(), video.width(), video.height()), (gst_video::VideoFormat::Gray16Le, 61, 35));
    let (map, stride) = (labels.map_readable().unwrap(), video.stride()[0] as usize);
    let mut used = vec![0u32; regions as usize];
    let rows = meta.labels().unwrap();
    for y in 0..35 {
        for x in 0..61 {
            let at = y * stride + 2 * x;
            let label = u16::from_le_bytes([map[at], map[at + 1]]);
            assert_eq!(label, rows.row(y)[x]);
            used[usize::from(label)] += 1;
        }
    }
    assert_eq!(rows.rows().count(), 35);

    let table = fields.get::<gst::Buffer>("table").unwrap();
    assert_eq!(table.size(), 40 * regions as usize);
    let table = table.map_readable().unwrap();
    for (label, (record, read)) in table.chunks_exact(40).zip(meta.table().unwrap()).enumerate() {
        let u32_at = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().unwrap());
        let f32_at = |at: usize| f32::from_le_bytes(record[at..at + 4].try_into().unwrap());
        let u16_at = |at: usize| u16::from_le_bytes(record[at..at + 2].try_into().unwrap());
        assert_eq!((u32_at(0), u32_at(4)), (label as u32, used[label]));
        assert_eq!([f32_at(8), f32_at(12)], read.centroid);
        assert_eq!((&record[16..20], record[19]), (&read.mean_rgb[..], 255));
        assert_eq!([f32_at(20), f32_at(24), f32_at(28)], read.mean_lab);
        assert_eq!([u16_at(32), u16_at(34), u16_at(36), u16_at(38)], read.bounds);
    }

    let neighbors = fields.get::<gst::Buffer>("neighbors").unwrap();
    let neighbors = neighbors.map_readable().unwrap();
    let pairs: Vec<[u32; 3]> = neighbors
        .chunks_exact(12)
        .map(|r| [0, 4, 8].map(|at| u32::from_le_bytes(r[at..at + 4].try_into().unwrap())))
        .collect();
    assert!(pairs.iter().all(|[a, b, length]| a < b && *b < regions && *length > 0));
    assert!(pairs.is_sorted() && pairs.len() == meta.neighbors().unwrap().len());
}

#[test]
fn copies_share_the_label_buffer() {
    let buffer = segmented();
    for copy in [buffer.copy(), buffer.copy_deep().unwrap()] {
        let (a, b) =
            (SuperpixelMeta::from_buffer(&buffer).unwrap(), SuperpixelMeta::from_buffer(&copy).unwrap());
        assert_eq!(a.label_buffer().as_ptr(), b.label_buffer().as_ptr());
        assert_eq!(
            (a.table().unwrap(), a.neighbors().unwrap()),
            (b.table().unwrap(), b.neighbors().unwrap())
        );
    }
}

#[test]
fn parts_of_a_buffer_do_not_inherit_it() {
    let buffer = segmented();
    let part = buffer.copy_region(gst::BufferCopyFlags::META | gst::BufferCopyFlags::MEMORY, 0..100).unwrap();
    assert!(SuperpixelMeta::from_buffer(&part).is_none());
    let whole = buffer.copy_region(gst::BufferCopyFlags::META | gst::BufferCopyFlags::MEMORY, ..).unwrap();
    assert!(SuperpixelMeta::from_buffer(&whole).is_some());
}

#[test]
fn label_buffers_stay_valid_after_stop() {
    let (first, second) = (segmented(), segmented());
    let labels = |buffer| SuperpixelMeta::from_buffer(buffer).unwrap().labels().unwrap();
    assert_eq!(labels(&first), labels(&second));
}

#[test]
fn a_buffer_without_it_reads_as_none() {
    common::init();
    assert!(SuperpixelMeta::from_buffer(&gst::Buffer::new()).is_none());
}

#[test]
fn foreign_or_damaged_metadata_is_refused_without_panic() {
    common::init();
    let mut buffer = gst::Buffer::new();
    let writable = buffer.get_mut().unwrap();
    CustomMeta::add(writable, NAME).unwrap();
    assert!(SuperpixelMeta::from_buffer(&buffer).is_none(), "empty");

    let damaged = |change: &dyn Fn(&mut gst::StructureRef)| {
        let mut buffer = segmented();
        change(CustomMeta::from_mut_buffer(buffer.make_mut(), NAME).unwrap().mut_structure());
        buffer
    };
    for (field, value) in [("version", 2u32), ("width", 0), ("height", 99_999)] {
        assert!(SuperpixelMeta::from_buffer(&damaged(&|s| s.set(field, value))).is_none(), "{field}={value}");
    }
    let buffer = damaged(&|s| s.set("width", 62u32));
    assert!(SuperpixelMeta::from_buffer(&buffer).unwrap().labels().is_err(), "wrong width");
    let buffer = damaged(&|s| s.set("labels", gst::Buffer::from_slice([0u8; 7])));
    assert!(SuperpixelMeta::from_buffer(&buffer).unwrap().labels().is_err(), "short plane");
    let buffer = damaged(&|s| s.set("table", gst::Buffer::from_slice([0u8; 41])));
    assert!(SuperpixelMeta::from_buffer(&buffer).unwrap().table().is_err(), "half a record");
    let buffer = damaged(&|s| s.set("table", gst::Buffer::from_slice([0u8; 40])));
    assert!(SuperpixelMeta::from_buffer(&buffer).unwrap().table().is_err(), "too few records");
}

/// A label buffer of 61x35 without a video meta, as a copy or a socket leaves it, and with metas that lie.
#[test]
fn label_buffers_are_read_by_no_more_than_they_hold() {
    let with_labels = |labels: gst::Buffer| {
        let mut buffer = segmented();
        CustomMeta::from_mut_buffer(buffer.make_mut(), NAME).unwrap().mut_structure().set("labels", labels);
        SuperpixelMeta::from_buffer(&buffer).unwrap().labels().map_err(|error| error.to_string())
    };
    let honest = segmented();
    let meta = SuperpixelMeta::from_buffer(&honest).unwrap();
    let bytes = common::bytes(meta.label_buffer());
    assert_eq!(
        with_labels(gst::Buffer::from_slice(bytes.clone())).unwrap(),
        meta.labels().unwrap(),
        "no video meta"
    );
    // Rows of the default layout may come in several memories.
    let mut split = gst::Buffer::new();
    for part in [&bytes[..1001], &bytes[1001..]] {
        split.get_mut().unwrap().append_memory(gst::Memory::from_slice(part.to_vec()));
    }
    assert_eq!(with_labels(split).unwrap(), meta.labels().unwrap(), "two memories");
    for (case, planes, offset, stride) in [
        ("no planes", 0, 0, 124),
        ("many planes", 99, 0, 124),
        ("offset", 1, 4, 124),
        ("offset outside", 1, usize::MAX - 61, 124),
        ("short stride", 1, 0, 120),
        ("negative stride", 1, 0, -124),
        ("wrapping stride", 1, 0, 0x4ea4_ea50),
    ] {
        let mut labels = gst::Buffer::from_mut_slice(bytes.clone());
        // SAFETY: the buffer is writable and the new meta belongs to it alone; its fields are plain numbers.
        unsafe {
            let meta = gst_video::ffi::gst_buffer_add_video_meta_full(
                labels.get_mut().unwrap().as_mut_ptr(),
                0,
                gst_video::ffi::GST_VIDEO_FORMAT_GRAY16_LE,
                61,
                35,
                1,
                &[offset, 0, 0, 0],
                &[stride, 0, 0, 0],
            );
            (*meta).n_planes = planes;
        }
        let text = with_labels(labels).expect_err(case);
        assert!(text.contains("label buffer"), "{case}: {text}");
    }
    let mut beyond = bytes;
    beyond[0..2].copy_from_slice(&[0xfe, 0xff]);
    let refused = with_labels(gst::Buffer::from_slice(beyond.clone()));
    assert!(refused.expect_err("a label of no region").contains("65534"));
    // The mark of what is outside of a mask.
    beyond[0..2].copy_from_slice(&[0xff, 0xff]);
    assert_eq!(with_labels(gst::Buffer::from_slice(beyond)).unwrap().row(0)[0], 65535);
}

/// From GStreamer 1.24 on, serializers of custom metadata stop at the first field that has no text.
#[test]
fn the_first_field_keeps_the_metadata_from_being_serialized() {
    let buffer = segmented();
    let custom = CustomMeta::from_buffer(&buffer, NAME).unwrap();
    let (name, value) = custom.structure().iter().next().unwrap();
    assert_eq!(name, "local");
    assert!(value.serialize().is_err());
    // A copy keeps the order.
    let copy = buffer.copy();
    let custom = CustomMeta::from_buffer(&copy, NAME).unwrap();
    assert_eq!(custom.structure().nth_field_name(0).unwrap(), "local");
}

/// Frames of 64x48 through `element`: how many come out, and how many with the metadata.
fn through(element: &str) -> (usize, usize) {
    let line = format!(
        "videotestsrc num-buffers=4 ! video/x-raw,format=I420,width=64,height=48,pixel-aspect-ratio=1/1,framerate=10/1 ! \
         superpixel overlay=none threads=1 ! {element} ! appsink name=out"
    );
    let samples = samples(&line);
    let with = samples.iter().filter(|sample| match SuperpixelMeta::from_buffer(sample.buffer().unwrap()) {
        Some(meta) => {
            assert_eq!(meta.labels().unwrap().as_slice().len(), 64 * 48, "{element}");
            assert_eq!(meta.table().unwrap().len(), meta.regions() as usize, "{element}");
            true
        }
        None => false,
    });
    (samples.len(), with.count())
}

#[test]
fn it_survives_where_the_geometry_stays() {
    for element in [
        "queue",
        "tee",
        "identity",
        "videoconvert ! video/x-raw,format=RGBA",
        "videoconvert ! video/x-raw,format=GRAY16_LE",
        "videoscale ! video/x-raw,width=64,height=48",
        "videoconvert ! videoscale ! videoconvert",
        "videorate ! video/x-raw,framerate=20/1",
        "videobalance saturation=0.5",
        "gamma gamma=1.5",
        "superpixellabels",
    ] {
        let (frames, with) = through(element);
        assert!(frames >= 4 && with == frames, "{element}: {with} of {frames}");
    }
}

#[test]
fn it_is_dropped_where_the_geometry_changes() {
    for element in [
        "videocrop left=2",
        "videobox top=-4",
        "videoscale ! video/x-raw,width=32,height=24",
        "videoscale ! video/x-raw,width=64,height=48,pixel-aspect-ratio=2/1",
        "videoflip video-direction=90r",
        "videoflip video-direction=horiz",
        "compositor",
    ] {
        let (frames, with) = through(element);
        assert!(frames >= 3 && with == 0, "{element}: {with} of {frames}");
    }
}
