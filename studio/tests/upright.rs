// SPDX-License-Identifier: MPL-2.0
//! Clips that say how they are to be turned are shown and exported upright, in all eight orientations.

mod common;

use std::path::Path;

use common::{Viewer, get, studio_of};
use gst::prelude::*;
use serde_json::json;
use superpixel_studio::source::Source;

/// Size of the frames as they are stored.
const STORED: (usize, usize) = (96, 64);

/// Matrices of a track, by the place where the stored picture's upper left corner is shown: right, at the bottom; and
/// whether rows are shown as columns.
const TURNS: [([i32; 4], bool, bool, bool); 8] = [
    ([1, 0, 0, 1], false, false, false),
    ([0, 1, -1, 0], true, false, true),
    ([-1, 0, 0, -1], true, true, false),
    ([0, -1, 1, 0], false, true, true),
    ([-1, 0, 0, 1], true, false, false),
    ([1, 0, 0, -1], false, true, false),
    ([0, 1, 1, 0], false, false, true),
    ([0, -1, -1, 0], true, true, true),
];

/// Runs a pipeline to its end.
fn run(pipeline: &gst::Pipeline) {
    pipeline.set_state(gst::State::Playing).unwrap();
    let end = [gst::MessageType::Eos, gst::MessageType::Error];
    let message = pipeline.bus().unwrap().timed_pop_filtered(gst::ClockTime::from_seconds(60), &end).unwrap();
    pipeline.set_state(gst::State::Null).unwrap();
    assert_eq!(message.type_(), gst::MessageType::Eos, "{message:?}");
}

/// A film whose frames are black, but for a white mark in the upper left quarter, 40 px wide and 12 high.
fn film(path: &Path, matrix: [i32; 4]) {
    superpixel_studio::init().unwrap();
    let (width, height) = STORED;
    let line = format!(
        "appsrc name=frames format=time caps=video/x-raw,format=GRAY8,width={width},height={height},framerate=10/1 \
         ! videoconvert ! jpegenc quality=95 ! qtmux ! filesink name=sink"
    );
    let pipeline = gst::parse::launch(&line).unwrap().downcast::<gst::Pipeline>().unwrap();
    pipeline.by_name("sink").unwrap().set_property("location", path);
    let frames = pipeline.by_name("frames").unwrap().downcast::<gst_app::AppSrc>().unwrap();
    for number in 0..10 {
        let mark = |at: usize| (4..44).contains(&(at % width)) && (4..16).contains(&(at / width));
        let pixels: Vec<u8> = (0..width * height).map(|at| if mark(at) { 255 } else { 0 }).collect();
        let mut buffer = gst::Buffer::from_mut_slice(pixels);
        let time = gst::ClockTime::from_mseconds(100);
        let stamped = buffer.get_mut().unwrap();
        stamped.set_pts(time * number);
        stamped.set_duration(time);
        frames.push_buffer(buffer).unwrap();
    }
    frames.end_of_stream().unwrap();
    run(&pipeline);
    // As a telephone writes it: the same frames, and a matrix in the header of the track.
    let mut bytes = std::fs::read(path).unwrap();
    let start = bytes.windows(4).position(|four| four == b"tkhd").unwrap() + 4;
    let times = if bytes[start] == 0 { 20 } else { 32 };
    let place = start + 4 + times + 16;
    let [a, b, c, d] = matrix.map(|number| number << 16);
    for (number, value) in [a, b, 0, c, d, 0, 0, 0, 1 << 30].into_iter().enumerate() {
        bytes[place + 4 * number..][..4].copy_from_slice(&value.to_be_bytes());
    }
    std::fs::write(path, bytes).unwrap();
}

/// The first picture that a pipeline gives at its end `last`, as gray: width, height, pixels.
fn first_picture(pipeline: &gst::Pipeline, last: &gst::Element) -> (usize, usize, Vec<u8>) {
    let convert = gst::ElementFactory::make("videoconvert").build().unwrap();
    let caps = gst_video::VideoCapsBuilder::new().format(gst_video::VideoFormat::Gray8).build();
    let sink = gst_app::AppSink::builder().sync(false).caps(&caps).build();
    pipeline.add_many([&convert, sink.upcast_ref()]).unwrap();
    gst::Element::link_many([last, &convert, sink.upcast_ref()]).unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    let sample = sink.pull_sample().unwrap();
    let info = gst_video::VideoInfo::from_caps(sample.caps().unwrap()).unwrap();
    let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(sample.buffer().unwrap(), &info).unwrap();
    let (width, height, stride) = (info.width() as usize, info.height() as usize, info.stride()[0] as usize);
    let rows = frame.plane_data(0).unwrap().chunks(stride).take(height);
    let pixels = rows.flat_map(|row| row[..width].to_vec()).collect();
    pipeline.set_state(gst::State::Null).unwrap();
    (width, height, pixels)
}

/// Position and shape of the mark: right, at the bottom, upright.
fn mark((width, height, pixels): (usize, usize, Vec<u8>)) -> ((usize, usize), bool, bool, bool) {
    let bright =
        || pixels.iter().enumerate().filter(|(_, p)| **p > 128).map(|(at, _)| (at % width, at / width));
    let (left, right) = (bright().map(|p| p.0).min().unwrap(), bright().map(|p| p.0).max().unwrap());
    let (top, bottom) = (bright().map(|p| p.1).min().unwrap(), bright().map(|p| p.1).max().unwrap());
    ((width, height), left + right > width, top + bottom > height, bottom - top > right - left)
}

#[test]
fn all_eight_orientations_are_shown_upright() {
    let folder = tempfile::tempdir().unwrap();
    for (matrix, right, bottom, turned) in TURNS {
        let path = folder.path().join("film.mov");
        film(&path, matrix);
        let pipeline = gst::Pipeline::new();
        let last = Source::File(path).add_to(&pipeline).unwrap();
        let size = if turned { (STORED.1, STORED.0) } else { STORED };
        assert_eq!(mark(first_picture(&pipeline, &last)), (size, right, bottom, turned), "{matrix:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn viewers_and_exports_get_a_turned_clip_upright() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("film.mov");
    let (matrix, right, bottom, turned) = TURNS[1];
    film(&path, matrix);
    let running = studio_of(Source::File(path), &["superpixel-size=8"]).await;
    let mut viewer = Viewer::new(&running.address()).await;
    let frame = viewer.frame().await;
    assert_eq!(
        (&frame.sides()[0]["width"], &frame.sides()[0]["height"]),
        (&json!(STORED.1), &json!(STORED.0))
    );
    viewer.send(json!({ "do": "export", "side": "a", "overlay": "none", "kind": "video" })).await;
    viewer.until("the video", |state| state["export"]["done"] == true).await;
    let (_, body) = get(&running.address(), "/export/1").await;
    assert!(running.stop().await, "something hangs");
    let exported = folder.path().join("exported");
    std::fs::write(&exported, body).unwrap();
    let pipeline = gst::Pipeline::new();
    let last = Source::File(exported).add_to(&pipeline).unwrap();
    let size = (STORED.1, STORED.0);
    assert_eq!(mark(first_picture(&pipeline, &last)), (size, right, bottom, turned));
}
