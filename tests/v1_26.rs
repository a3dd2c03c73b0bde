// SPDX-License-Identifier: MPL-2.0
//! The standard segmentation metadata of GStreamer 1.26, read back; empty without the feature `v1_26`.
#![cfg(feature = "v1_26")]

mod common;

use std::mem::MaybeUninit;

use common::{caps, harness, info, picture, samples, superpixel};
use gst::glib::translate::from_glib_full;
use gst::prelude::*;
use gst_analytics::ffi;
use gst_analytics::prelude::*;
use gstsuperpixel::meta::SuperpixelMeta;

/// What a reader of the standard metadata finds.
struct Segmentation {
    mask: gst::Buffer,
    place: (i32, i32, u32, u32),
    ids: Vec<u32>,
}

/// All segmentations on a buffer.
fn segmentations(buffer: &gst::BufferRef) -> Vec<Segmentation> {
    let mut found = Vec::new();
    // SAFETY: the buffer is valid and borrowed; the relation meta and the handles into it live as long as the buffer;
    // outputs are read only after the call that wrote them said so.
    unsafe {
        let relations = ffi::gst_buffer_get_analytics_relation_meta(buffer.as_mut_ptr());
        if relations.is_null() {
            return found;
        }
        for id in 0..ffi::gst_analytics_relation_get_length(relations) {
            let mut mtd = MaybeUninit::<ffi::GstAnalyticsSegmentationMtd>::uninit();
            let id = u32::try_from(id).unwrap();
            if ffi::gst_analytics_relation_meta_get_segmentation_mtd(relations, id, mtd.as_mut_ptr()) == 0 {
                continue;
            }
            let mtd = mtd.assume_init();
            let (mut x, mut y, mut w, mut h) = (-1, -1, 0, 0);
            let mask = ffi::gst_analytics_segmentation_mtd_get_mask(&mtd, &mut x, &mut y, &mut w, &mut h);
            let count = ffi::gst_analytics_segmentation_mtd_get_region_count(&mtd);
            let ids =
                (0..count).map(|i| ffi::gst_analytics_segmentation_mtd_get_region_id(&mtd, i)).collect();
            found.push(Segmentation { mask: from_glib_full(mask), place: (x, y, w, h), ids });
        }
    }
    found
}

#[test]
fn the_label_buffer_is_also_a_standard_segmentation() {
    let element = superpixel();
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("RGB", 61, 35));
    let output = h.push_and_pull(picture(&info("RGB", 61, 35), 1, 0)).unwrap();
    let meta = SuperpixelMeta::from_buffer(&output).expect("our own metadata");
    let [segmentation] = segmentations(&output).try_into().ok().expect("one segmentation");
    assert_eq!(segmentation.place, (0, 0, 61, 35));
    assert_eq!(segmentation.ids, (0..meta.regions()).collect::<Vec<_>>());
    assert_eq!(segmentation.mask.as_ptr(), meta.label_buffer().as_ptr(), "one plane, attached twice");
    let video = segmentation.mask.meta::<gst_video::VideoMeta>().expect("video meta");
    assert_eq!((video.format(), video.width(), video.height()), (gst_video::VideoFormat::Gray16Le, 61, 35));
}

#[test]
fn relations_of_an_earlier_analyzer_stay() {
    let element = superpixel();
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("RGB", 61, 35));
    let mut input = picture(&info("RGB", 61, 35), 1, 0);
    {
        let mut relations = gst_analytics::AnalyticsRelationMeta::add(input.get_mut().unwrap());
        let _ = relations.add_od_mtd(gst::glib::Quark::from_str("fish"), 1, 2, 3, 4, 0.5).unwrap();
    }
    let output = h.push_and_pull(input).unwrap();
    let relations = output.iter_meta::<gst_analytics::AnalyticsRelationMeta>().count();
    assert_eq!(relations, 1, "the existing relation meta is used again");
    let relations = output.meta::<gst_analytics::AnalyticsRelationMeta>().unwrap();
    assert_eq!(relations.iter::<gst_analytics::AnalyticsODMtd>().count(), 1);
    assert_eq!(segmentations(&output).len(), 1);
}

#[test]
fn labels_false_attaches_no_segmentation() {
    let element = superpixel();
    element.set_property("labels", false);
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("RGB", 61, 35));
    assert!(segmentations(&h.push_and_pull(picture(&info("RGB", 61, 35), 1, 0)).unwrap()).is_empty());
}

#[test]
fn it_passes_converters_and_queues() {
    let line = "videotestsrc num-buffers=3 ! video/x-raw,format=I420,width=64,height=48 ! \
                superpixel overlay=none threads=1 ! queue ! videoconvert ! video/x-raw,format=RGBA ! appsink name=out";
    for sample in samples(line) {
        let buffer = sample.buffer().unwrap();
        let meta = SuperpixelMeta::from_buffer(buffer).expect("our own metadata");
        assert_eq!(segmentations(buffer).len(), 1);
        assert_eq!(segmentations(buffer)[0].ids.len(), meta.regions() as usize);
    }
}

/// Frames of a size whose label map does not fit into the socket.
#[test]
fn frames_pass_a_unix_socket_without_the_metadata() {
    common::init();
    let path = std::env::temp_dir().join(format!("superpixel-{}", std::process::id()));
    let socket = path.to_str().unwrap();
    let sender = common::launch(
        "videotestsrc num-buffers=6 ! video/x-raw,format=RGB,width=640,height=480,framerate=25/1 ! \
         superpixel backend=cpu ! unixfdsink name=s wait-for-connection=true sync=false",
    );
    sender.by_name("s").unwrap().set_property("socket-path", socket);
    sender.set_state(gst::State::Playing).unwrap();
    let receiver = common::launch("unixfdsrc name=s ! appsink name=out sync=false");
    receiver.by_name("s").unwrap().set_property("socket-path", socket);
    let sink: gst_app::AppSink = receiver.by_name("out").unwrap().downcast().unwrap();
    receiver.set_state(gst::State::Playing).unwrap();
    let mut frames = 0;
    while let Some(sample) = sink.try_pull_sample(common::PATIENCE) {
        assert!(SuperpixelMeta::from_buffer(sample.buffer().unwrap()).is_none());
        frames += 1;
    }
    assert_eq!(frames, 6);
    receiver.set_state(gst::State::Null).unwrap();
    sender.set_state(gst::State::Null).unwrap();
    let _ = std::fs::remove_file(path);
}
