// SPDX-License-Identifier: MPL-2.0
//! The element's drawing as viewers get it: exact, of the frame that it came with, and at no cost for those who do not look.

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use common::{Frame, Viewer, small_clip, studio, studio_of};
use gst::prelude::*;
use gstsuperpixel::meta::SuperpixelMeta;
use serde_json::json;
use superpixel_studio::Running;
use superpixel_studio::source::Source;

/// Longer than a frame takes on a machine with other work.
const QUIET: Duration = Duration::from_millis(1500);
/// Without easing a drawing does not depend on when somebody began to look.
const STEADY: [&str; 2] = ["superpixels=100", "steadiness=0"];

async fn small_studio(folder: &std::path::Path, properties: &[&str]) -> Running {
    studio_of(Source::File(small_clip(folder)), properties).await
}

async fn look(viewer: &mut Viewer, abstraction: bool) {
    viewer.send(json!({ "do": "look", "abstraction": abstraction })).await;
}

/// Pixels of a drawing, R, G and B.
fn pixels(png: &[u8]) -> Vec<u8> {
    image::load_from_memory_with_format(png, image::ImageFormat::Png).unwrap().into_rgb8().into_raw()
}

/// Labels and drawings of a clip by time in microseconds, from a pipeline of our own.
fn expected(clip: &std::path::Path) -> BTreeMap<u64, [Vec<u8>; 2]> {
    let line = format!(
        "filesrc name=file ! decodebin ! videoconvert ! superpixel overlay=abstraction {} ! videoconvert \
         ! video/x-raw,format=RGB ! appsink name=sink sync=false max-buffers=2",
        STEADY.join(" ")
    );
    let pipeline = gst::parse::launch(&line).unwrap().downcast::<gst::Pipeline>().unwrap();
    pipeline.by_name("file").unwrap().set_property("location", clip);
    let sink = pipeline.by_name("sink").unwrap().downcast::<gst_app::AppSink>().unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    let mut found = BTreeMap::new();
    while let Ok(sample) = sink.pull_sample() {
        let buffer = sample.buffer().unwrap();
        let labels = SuperpixelMeta::from_buffer(buffer).unwrap().labels().unwrap();
        let labels = bytemuck::cast_slice(labels.as_slice()).to_vec();
        found.insert(buffer.pts().unwrap().useconds(), [labels, buffer.map_readable().unwrap().to_vec()]);
    }
    pipeline.set_state(gst::State::Null).unwrap();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_are_the_elements_bit_for_bit_with_the_labels_of_their_frame() {
    let folder = tempfile::tempdir().unwrap();
    let running = small_studio(folder.path(), &STEADY).await;
    let expected = expected(&folder.path().join("small.mkv"));
    let mut viewer = Viewer::new(&running.address()).await;
    look(&mut viewer, true).await;
    let mut compared = 0;
    loop {
        let frame = viewer.frame().await;
        if frame.number() >= expected.len() as u64 {
            // Frames of the next round go on from the last of this one.
            break;
        }
        let [labels, picture] = &expected[&((frame.time() * 1e6).round() as u64)];
        assert!(*bytemuck::cast_slice::<_, u8>(&frame.labels(0)) == **labels, "labels of {}", frame.number());
        let Some(png) = frame.drawn(0) else { continue };
        assert!(pixels(png) == *picture, "picture of {}", frame.number());
        compared += 1;
    }
    assert!(compared >= 5, "{compared} pictures compared");
    assert!(running.stop().await, "something hangs");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_drawn_or_sent_that_nobody_looks_at() {
    let folder = tempfile::tempdir().unwrap();
    let running = small_studio(folder.path(), &STEADY).await;
    let (mut looker, mut other) =
        (Viewer::new(&running.address()).await, Viewer::new(&running.address()).await);
    let first = looker.frame().await;
    if first.sides()[0]["stages"].as_array().unwrap().is_empty() {
        println!("skipped: a device opens here, which does not say when it draws");
        assert!(running.stop().await, "something hangs");
        return;
    }
    assert!(first.drawn(0).is_none() && !first.was_drawn(0));
    look(&mut looker, true).await;
    looker.frame_until("a drawing", |frame| frame.drawn(0).is_some()).await;
    let beside = other.frame_until("a frame that was drawn on", |frame| frame.was_drawn(0)).await;
    assert!(beside.drawn(0).is_none(), "sent to who does not look");
    look(&mut looker, false).await;
    let after = other.frame_until("a frame without", |frame| !frame.was_drawn(0)).await;
    looker
        .frame_until("the same", |frame| frame.number() >= after.number() && frame.drawn(0).is_none())
        .await;
    // A viewer that goes looks no longer.
    look(&mut looker, true).await;
    other.frame_until("a frame that was drawn on", |frame| frame.was_drawn(0)).await;
    drop(looker);
    other.frame_until("a frame without", |frame| !frame.was_drawn(0)).await;
    assert!(running.stop().await, "something hangs");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_picture_is_drawn_for_whoever_comes_and_with_every_setting() {
    let folder = tempfile::tempdir().unwrap();
    let running = small_studio(folder.path(), &STEADY).await;
    let (mut viewer, mut late) =
        (Viewer::new(&running.address()).await, Viewer::new(&running.address()).await);
    viewer.frame().await;
    viewer.send(json!({ "do": "pause", "on": true })).await;
    viewer.until("pause", |state| state["paused"] == true).await;
    let mut last = None;
    while let Some(frame) = viewer.frame_within(QUIET).await {
        last = Some(frame);
    }
    while late.frame_within(QUIET).await.is_some() {}
    look(&mut viewer, true).await;
    let drawn = viewer.frame().await;
    assert!(drawn.drawn(0).is_some());
    assert!(last.is_none_or(|last| last.time() == drawn.time()), "another frame");
    viewer.send(json!({ "do": "set", "side": "a", "name": "ink", "value": 6.0 })).await;
    let inked = viewer.frame().await;
    assert!(inked.time() == drawn.time() && inked.labels(0) == drawn.labels(0));
    assert!(pixels(inked.drawn(0).unwrap()) != pixels(drawn.drawn(0).unwrap()), "no ink");
    // The other viewer has the frame already, without the drawing.
    while late.frame_within(QUIET).await.is_some() {}
    look(&mut late, true).await;
    let same = late.frame().await;
    assert!(same.number() == inked.number() && same.drawn(0) == inked.drawn(0));
    assert!(viewer.frame_within(QUIET).await.is_none(), "drawn again");
    assert!(running.stop().await, "something hangs");
}

/// Share of pixels that have the mean color of their region, but for rounding.
fn flat(viewer: &Viewer, frame: &Frame) -> f64 {
    let means = viewer.column(frame, "table", "mean_rgb");
    let (labels, drawn) = (frame.labels(0), pixels(frame.drawn(0).unwrap()));
    let is_mean = |(label, pixel): (&u16, &[u8])| {
        let mean = &means[3 * usize::from(*label)..][..3];
        mean.iter().zip(pixel).all(|(mean, &value)| (mean - f64::from(value)).abs() <= 4.0)
    };
    labels.iter().zip(drawn.chunks(3)).filter(|pair| is_mean((pair.0, pair.1))).count() as f64
        / labels.len() as f64
}

#[tokio::test(flavor = "multi_thread")]
async fn colors_do_not_ease_in_a_paused_picture() {
    let running = studio(&["superpixels=300", "ink=0", "steadiness=100"]).await;
    let mut viewer = Viewer::new(&running.address()).await;
    look(&mut viewer, true).await;
    viewer.frame_until("a drawing", |frame| frame.drawn(0).is_some()).await;
    viewer.send(json!({ "do": "pause", "on": true })).await;
    viewer.until("pause", |state| state["paused"] == true).await;
    while viewer.frame_within(QUIET).await.is_some() {}
    viewer.send(json!({ "do": "set", "side": "a", "name": "shading", "value": true })).await;
    viewer.send(json!({ "do": "set", "side": "a", "name": "outline-smoothness", "value": 1.0 })).await;
    let shaded = viewer.frame().await;
    while viewer.frame_within(QUIET).await.is_some() {}
    viewer.send(json!({ "do": "set", "side": "a", "name": "shading", "value": false })).await;
    let plain = viewer.frame().await;
    let shares = [flat(&viewer, &shaded), flat(&viewer, &plain)];
    assert!(shares[1] > shares[0] + 0.3, "{shares:?}");
    assert_eq!(viewer.state["values"][0]["steadiness"], 100.0);
    assert!(viewer.state["problem"].is_null(), "{}", viewer.state["problem"]);
    assert!(running.stop().await, "something hangs");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_side_sees_the_frame_and_not_the_first_ones_drawing() {
    let folder = tempfile::tempdir().unwrap();
    let running = small_studio(folder.path(), &["superpixels=100", "temporal=false"]).await;
    let mut viewer = Viewer::new(&running.address()).await;
    look(&mut viewer, true).await;
    viewer.send(json!({ "do": "compare", "on": true })).await;
    let is_both = |frame: &Frame| frame.sides().len() == 2;
    let both = viewer.frame_until("two drawings", |frame| is_both(frame) && frame.drawn(1).is_some()).await;
    assert_eq!(both.labels(0), both.labels(1));
    assert!(both.drawn(0).unwrap() == both.drawn(1).unwrap());
    viewer.send(json!({ "do": "set", "side": "b", "name": "shading", "value": false })).await;
    viewer.send(json!({ "do": "set", "side": "b", "name": "outline-smoothness", "value": 5.0 })).await;
    let other = |frame: &Frame| is_both(frame) && frame.drawn(0) != frame.drawn(1);
    let both = viewer.frame_until("another drawing", other).await;
    assert_eq!(both.labels(0), both.labels(1));
    assert!(running.stop().await, "something hangs");
}
