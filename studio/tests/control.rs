// SPDX-License-Identifier: MPL-2.0
//! Actions of viewers: play, tune, compare, export; and the messages that they get after a failure.

mod common;

use std::path::PathBuf;
use std::time::Duration;

use common::{Viewer, get, studio, studio_of};
use serde_json::json;
use superpixel_studio::source::Source;

/// Longer than a frame takes on a machine with other work.
const QUIET: Duration = Duration::from_millis(1500);

#[tokio::test(flavor = "multi_thread")]
async fn pause_step_seek_and_settings_on_a_still() {
    let running = studio(&["superpixel-size=48"]).await;
    let mut viewer = Viewer::new(&running.address()).await;
    viewer.until("a length", |state| state["seekable"] == true).await;
    viewer.send(json!({ "do": "pause", "on": true })).await;
    viewer.until("pause", |state| state["paused"] == true).await;
    while viewer.frame_within(QUIET).await.is_some() {}

    viewer.send(json!({ "do": "step" })).await;
    let first = viewer.frame().await;
    viewer.send(json!({ "do": "step" })).await;
    let second = viewer.frame().await;
    assert_eq!(second.number(), first.number() + 1);
    assert!((second.time() - first.time() - 0.04).abs() < 1e-3, "{} after {}", second.time(), first.time());
    assert!(viewer.frame_within(QUIET).await.is_none(), "a frame without a step");

    // Changes the size of regions during playback; the frame numbers continue.
    viewer.send(json!({ "do": "set", "side": "a", "name": "superpixel-size", "value": 24 })).await;
    let finer = viewer.frame().await;
    assert_eq!(finer.time(), second.time());
    assert!(finer.regions(0) > 2 * second.regions(0), "{} and {}", finer.regions(0), second.regions(0));
    assert_eq!(viewer.state["values"][0]["superpixel-size"], 24);

    viewer.send(json!({ "do": "seek", "to": 3.0 })).await;
    let sought = viewer.frame().await;
    assert!((sought.time() - 3.0).abs() < 0.05, "{}", sought.time());
    assert!(viewer.frame_within(QUIET).await.is_none(), "plays after a seek");

    viewer.send(json!({ "do": "speed", "factor": 4.0 })).await;
    viewer.send(json!({ "do": "pause", "on": false })).await;
    // Round the end, to the start.
    viewer.frame_until("the next round", |frame| frame.time() < 1.0).await;
    assert!(running.stop().await, "something hangs");
}

#[tokio::test(flavor = "multi_thread")]
async fn both_settings_are_of_the_same_frame() {
    let running = studio(&["superpixel-size=48"]).await;
    let mut viewer = Viewer::new(&running.address()).await;
    let before = viewer.frame().await;
    assert_eq!(before.sides().len(), 1);
    viewer.send(json!({ "do": "compare", "on": true })).await;
    viewer.send(json!({ "do": "apply", "side": "b", "values": { "regions": 40, "algo": "lsc" } })).await;
    let both =
        viewer.frame_until("40 regions", |frame| frame.sides().len() == 2 && frame.regions(1) == 40).await;
    assert_eq!(both.sides()[0]["algo"], "slic");
    assert_eq!(both.sides()[1]["algo"], "lsc");
    // Side a goes on: its identities have lasted.
    let ages = viewer.column(&both, "motion", "age");
    assert!(ages.iter().any(|&age| age >= 1.0), "{ages:?}");
    viewer.send(json!({ "do": "compare", "on": false })).await;
    viewer.frame_until("one side", |frame| frame.sides().len() == 1).await;
    assert!(running.stop().await, "something hangs");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_property_that_needs_a_start_keeps_the_position() {
    let running = studio(&["superpixel-size=64"]).await;
    let mut viewer = Viewer::new(&running.address()).await;
    viewer.until("a length", |state| state["seekable"] == true).await;
    viewer.send(json!({ "do": "seek", "to": 2.0 })).await;
    let before = viewer.frame_until("the position", |frame| (2.0..2.5).contains(&frame.time())).await;
    viewer.send(json!({ "do": "set", "side": "a", "name": "threads", "value": 1 })).await;
    viewer
        .until("one thread", |state| state["backend"].as_str().is_some_and(|b| b.contains("1 thread")))
        .await;
    let after = viewer.frame().await;
    assert!(
        after.number() > before.number() && after.time() >= 2.0,
        "{} at {}",
        after.number(),
        after.time()
    );
    assert!(running.stop().await, "something hangs");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_is_refused_is_explained() {
    let running = studio(&["superpixel-size=64", "backend=cpu"]).await;
    let mut viewer = Viewer::new(&running.address()).await;
    viewer.frame().await;
    viewer.send(json!({ "do": "set", "side": "a", "name": "backend", "value": "cuda" })).await;
    viewer
        .until("an answer", |state| {
            state["problem"].is_object() || state["backend"].as_str().is_some_and(|b| b.starts_with("cuda"))
        })
        .await;
    if viewer.state["problem"].is_null() {
        println!("skipped: a device opens here");
        assert!(running.stop().await, "something hangs");
        return;
    }
    let problem = &viewer.state["problem"];
    assert!(problem["advice"].as_str().unwrap().contains("backend auto or cpu"), "{problem}");
    assert_eq!(viewer.state["values"][0]["backend"], "cpu");
    let number = viewer.frame().await.number();
    viewer.frame_until("frames as before", |frame| frame.number() > number + 2).await;
    assert!(running.stop().await, "something hangs");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_contradict_each_other_are_taken_back() {
    let running = studio(&["superpixel-size=64"]).await;
    let mut viewer = Viewer::new(&running.address()).await;
    for (name, value) in [("merge", json!(2)), ("regions", json!(50))] {
        // Each is tried before the next.
        let number = viewer.frame().await.number();
        viewer.frame_until("some frames", |frame| frame.number() > number + 8).await;
        viewer.send(json!({ "do": "set", "side": "a", "name": name, "value": value })).await;
    }
    viewer.until("a problem", |state| state["problem"].is_object()).await;
    assert_eq!(viewer.state["values"][0]["merge"], 2.0);
    assert_eq!(viewer.state["values"][0]["regions"], 0);
    let what = viewer.state["problem"]["what"].as_str().unwrap();
    assert!(what.contains("regions=50"), "{what}");
    // Both change places in one request, in either direction.
    for (regions, merge) in [(50, 0.0), (0, 1.5), (30, 0.0)] {
        viewer
            .send(json!({ "do": "apply", "side": "a", "values": { "regions": regions, "merge": merge } }))
            .await;
        viewer.until("the other setting", |state| state["values"][0]["regions"] == regions).await;
        assert_eq!(viewer.state["values"][0]["merge"], merge);
        assert!(viewer.state["problem"].is_null(), "{}", viewer.state["problem"]);
        let number = viewer.frame().await.number();
        viewer.frame_until("frames with it", |frame| frame.number() > number + 2).await;
    }
    let number = viewer.frame().await.number();
    viewer.frame_until("frames as before", |frame| frame.number() > number + 2).await;
    assert!(running.stop().await, "something hangs");
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_that_do_not_play_are_explained() {
    for (source, what, advice) in [
        (Source::File(PathBuf::from("/no/such/clip.mp4")), "clip.mp4 cannot be read", "Try again"),
        (
            Source::File(PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))),
            "Cargo.toml",
            "video",
        ),
        (Source::File(PathBuf::from("/dev/null")), "no regular file", "file of video"),
        (Source::Camera, "/dev/video0", "camera"),
    ] {
        if source == Source::Camera && std::path::Path::new("/dev/video0").exists() {
            println!("skipped: there is a camera");
            continue;
        }
        let running = studio_of(source, &[]).await;
        let mut viewer = Viewer::new(&running.address()).await;
        viewer.until("a problem", |state| state["problem"].is_object()).await;
        let problem = &viewer.state["problem"];
        assert!(problem["what"].as_str().unwrap().contains(what), "{problem}");
        assert!(problem["advice"].as_str().unwrap().contains(advice), "{problem}");
        assert!(running.stop().await, "something hangs");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clip_is_exported_as_video() {
    let folder = tempfile::tempdir().unwrap();
    let running = studio_of(Source::File(common::small_clip(folder.path())), &["superpixels=100"]).await;
    let mut viewer = Viewer::new(&running.address()).await;
    viewer.frame().await;
    // Frames on show take time from the export.
    viewer.send(json!({ "do": "pause", "on": true })).await;
    viewer.send(json!({ "do": "export", "side": "a", "overlay": "mean-color", "kind": "video" })).await;
    viewer.until("the video", |state| state["export"]["done"] == true).await;
    let name = viewer.state["export"]["name"].as_str().unwrap().to_owned();
    let (head, body) = get(&running.address(), "/export/1").await;
    assert!(head.starts_with("HTTP/1.1 200") && head.contains(&name), "{head}");
    assert!(body.len() > 5_000, "{} bytes", body.len());
    let (head, _) = get(&running.address(), "/export/2").await;
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
    viewer.send(json!({ "do": "export", "side": "a", "overlay": "x ! filesink location=/tmp/x", "kind": "video" })).await;
    viewer.until("a refusal", |state| state["problem"].is_object()).await;
    assert!(running.stop().await, "something hangs");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_copied_has_what_was_changed() {
    let running = studio(&["compactness=20"]).await;
    let (head, body) = get(&running.address(), "/copy/gst-launch?side=a&overlay=mean-color").await;
    let text = String::from_utf8(body).unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(text.starts_with("gst-launch-1.0 filesrc location="), "{text}");
    assert!(
        text.contains("bigbuckbunny.mp4") && text.contains("superpixel compactness=20 overlay=mean-color !"),
        "{text}"
    );
    let (_, body) = get(&running.address(), "/copy/python?side=b&overlay=none").await;
    assert!(
        String::from_utf8(body).unwrap().contains("superpixel name=superpixel compactness=20 overlay=none")
    );
    for path in ["/copy/gst-launch?side=a&overlay=plaid", "/copy/gst-launch?side=c&overlay=none"] {
        assert!(get(&running.address(), path).await.0.starts_with("HTTP/1.1 400"), "{path}");
    }
    assert!(running.stop().await, "something hangs");
}
