// SPDX-License-Identifier: MPL-2.0
//! The export of drawings: a zip archive with the regions of every frame as SVG, whose ids are the track ids of the frame.

mod common;

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::path::Path;

use common::{Viewer, get, small_clip, studio_of};
use gst::prelude::*;
use gstsuperpixel::meta::SuperpixelMeta;
use serde_json::json;
use superpixel_studio::source::Source;

/// Color by id of each frame of a clip, from a pipeline of our own.
fn expected(clip: &Path, settings: &str) -> Vec<BTreeMap<String, String>> {
    let line = format!(
        "filesrc name=file ! decodebin ! videoconvert ! superpixel overlay=none {settings} ! appsink name=sink sync=false \
         max-buffers=2"
    );
    let pipeline = gst::parse::launch(&line).unwrap().downcast::<gst::Pipeline>().unwrap();
    pipeline.by_name("file").unwrap().set_property("location", clip);
    let sink = pipeline.by_name("sink").unwrap().downcast::<gst_app::AppSink>().unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    let mut frames = Vec::new();
    while let Ok(sample) = sink.pull_sample() {
        let table = SuperpixelMeta::from_buffer(sample.buffer().unwrap()).unwrap().table().unwrap();
        let style = |region: &gstsuperpixel::regions::Region| {
            let [r, g, b, _] = region.mean_rgb;
            (format!("track-{}", region.track_id), format!("#{r:02x}{g:02x}{b:02x}"))
        };
        frames.push(table.iter().map(style).collect());
    }
    pipeline.set_state(gst::State::Null).unwrap();
    frames
}

/// Drawings by their names, of an export with an overlay.
async fn export(viewer: &mut Viewer, address: &str, overlay: &str) -> BTreeMap<String, String> {
    let before = viewer.state["export"]["id"].as_u64().unwrap_or(0);
    viewer.send(json!({ "do": "export", "side": "a", "overlay": overlay, "kind": "svg" })).await;
    viewer
        .until("the archive", |state| {
            let export = &state["export"];
            assert!(export["problem"].is_null() || export["id"] == before, "{export}");
            export["id"].as_u64() > Some(before) && export["done"] == true
        })
        .await;
    assert_eq!(viewer.state["export"]["name"], format!("superpixels-{overlay}.zip"));
    let (head, body) = get(address, &format!("/export/{}", before + 1)).await;
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("application/zip"), "{head}");
    let mut archive = zip::ZipArchive::new(Cursor::new(body)).unwrap();
    let count = archive.len();
    let read = |i| {
        let mut file = archive.by_index(i).unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        (file.name().to_owned(), text)
    };
    (0..count).map(read).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_frame_is_a_drawing_whose_ids_are_its_tracks() {
    let folder = tempfile::tempdir().unwrap();
    let running = studio_of(Source::File(small_clip(folder.path())), &["superpixels=100"]).await;
    let mut viewer = Viewer::new(&running.address()).await;
    viewer.frame().await;
    // Frames on show take time from the export.
    viewer.send(json!({ "do": "pause", "on": true })).await;
    let drawings = export(&mut viewer, &running.address(), "mean-color").await;
    let expected = expected(&folder.path().join("small.mkv"), "superpixels=100");
    assert_eq!(drawings.len(), expected.len());
    for (number, ((name, text), regions)) in drawings.iter().zip(&expected).enumerate() {
        assert_eq!(*name, format!("frame-{number:06}.svg"));
        let document = roxmltree::Document::parse(text).unwrap();
        assert_eq!(document.root_element().attribute("width"), Some("192"));
        let paths = document.descendants().filter(|node| node.has_tag_name("path"));
        let paths: Vec<_> = paths
            .map(|path| {
                (path.attribute("id").unwrap().to_owned(), path.attribute("color").unwrap().to_owned())
            })
            .collect();
        assert_eq!(paths.len(), regions.len(), "{name}");
        assert_eq!(paths.into_iter().collect::<BTreeMap<_, _>>(), *regions, "{name}");
    }
    // The abstraction has outlines of its own.
    viewer.send(json!({ "do": "set", "side": "a", "name": "outline-smoothness", "value": 4.0 })).await;
    let smooth = export(&mut viewer, &running.address(), "abstraction").await;
    assert!(smooth.keys().eq(drawings.keys()));
    assert!(smooth.iter().all(|(name, text)| *text != drawings[name]), "outlines of the segmentation");
    viewer.send(json!({ "do": "export", "side": "a", "overlay": "plaid", "kind": "svg" })).await;
    viewer.until("a refusal", |state| state["problem"].is_object()).await;
    assert!(running.stop().await, "something hangs");
}
