// SPDX-License-Identifier: MPL-2.0
//! Objects: marked by viewers, followed in frames, and exported as the element has them.

mod common;

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{Frame, Viewer, get, small_clip, studio_of};
use gst::prelude::*;
use gst_video::VideoRegionOfInterestMeta;
use gstsuperpixel::meta::SuperpixelMeta;
use serde_json::{Value as Json, json};
use superpixel_studio::source::Source;

const WIDTH: usize = 192;
const HEIGHT: usize = 128;
const SETTINGS: &str = "superpixels=150";
/// Of the small clip.
const FRAMES: usize = 50;
/// A frame, and a pixel that is marked there.
const LATER: (u64, [i32; 2]) = (25, [5, 5]);

/// An object of a frame: id, box, area, regions.
type Object = (u64, [u64; 4], u64, u64);

/// A mask with the objects that it shows.
#[derive(Debug, PartialEq)]
struct Masked {
    mask: Vec<u8>,
    objects: Vec<Object>,
}

/// The box of the ball, which is bright, a little wider than its regions.
fn ball(viewer: &Viewer, frame: &Frame) -> [i32; 4] {
    let colors = viewer.column(frame, "table", "mean_rgb");
    let bounds = viewer.column(frame, "table", "bounds");
    let channels = colors.len() / frame.regions(0) as usize;
    let bright = colors.chunks(channels).zip(bounds.chunks(4)).filter(|(color, _)| color[0] > 120.0);
    let bright: Vec<_> = bright.map(|(_, bounds)| bounds).collect();
    assert!(!bright.is_empty());
    let least = |i: usize| bright.iter().map(|b| b[i] as i32).min().unwrap();
    let most = |i: usize| bright.iter().map(|b| b[i] as i32).max().unwrap();
    let [x0, y0, x1, y1] = [least(0) - 3, least(1) - 3, most(2) + 3, most(3) + 3];
    [x0, y0, x1 - x0, y1 - y0]
}

/// Objects of each frame of a clip, from a pipeline of our own: a box in the first frame and a point in a later one.
fn expected(clip: &Path, [x, y, width, height]: [i32; 4]) -> Vec<Masked> {
    let line = format!(
        "filesrc name=file ! decodebin ! videoconvert ! superpixel overlay=none neighbors=true {SETTINGS} \
         ! superpixelobjects name=objects analytics=false ! appsink name=sink sync=false max-buffers=2"
    );
    let pipeline = gst::parse::launch(&line).unwrap().downcast::<gst::Pipeline>().unwrap();
    pipeline.by_name("file").unwrap().set_property("location", clip);
    let number = AtomicU64::new(0);
    let objects = pipeline.by_name("objects").unwrap();
    objects.static_pad("sink").unwrap().add_probe(gst::PadProbeType::BUFFER, move |pad, _| {
        let element = pad.parent_element().unwrap();
        let number = number.fetch_add(1, Ordering::Relaxed);
        if number == 0 {
            assert_eq!(element.emit_by_name::<u32>("add-object", &[&x, &y, &width, &height]), 1);
        } else if number == LATER.0 {
            let [x, y] = LATER.1;
            assert_eq!(element.emit_by_name::<u32>("add-point", &[&0u32, &x, &y, &true]), 2);
        }
        gst::PadProbeReturn::Ok
    });
    let sink = pipeline.by_name("sink").unwrap().downcast::<gst_app::AppSink>().unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    let mut frames = Vec::new();
    while let Ok(sample) = sink.pull_sample() {
        let buffer = sample.buffer().unwrap();
        let meta = SuperpixelMeta::from_buffer(buffer).unwrap();
        let (labels, owners) = (meta.labels().unwrap(), meta.objects().unwrap());
        let owner = |label: &u16| owners.get(usize::from(*label)).map_or(0, |id| u8::try_from(*id).unwrap());
        let mask = labels.as_slice().iter().map(owner).collect();
        let mut objects = Vec::new();
        for roi in buffer.iter_meta::<VideoRegionOfInterestMeta>() {
            let fields = roi.params().find(|fields| fields.name() == "superpixel-object").unwrap();
            let (x, y, w, h) = roi.rect();
            let of = |name: &str| u64::from(fields.get::<u32>(name).unwrap());
            objects.push((of("id"), [x, y, w, h].map(u64::from), fields.get("area").unwrap(), of("regions")));
        }
        objects.sort_unstable();
        frames.push(Masked { mask, objects });
    }
    pipeline.set_state(gst::State::Null).unwrap();
    frames
}

/// Pauses, and goes to the first frame.
async fn start_over(viewer: &mut Viewer) -> Frame {
    viewer.until("a length", |state| state["seekable"] == true).await;
    viewer.send(json!({ "do": "pause", "on": true })).await;
    viewer.send(json!({ "do": "seek", "to": 0 })).await;
    let first = viewer.frame_until("the first frame", |frame| frame.time() == 0.0).await;
    viewer.until("the pause", |state| state["paused"] == true).await;
    first
}

async fn mark(viewer: &mut Viewer, object: Option<u64>, time: f64, place: Json) {
    viewer.send(json!({ "do": "mark", "object": object, "time": time, "place": place })).await;
}

/// Ids of the objects in a frame.
fn ids(frame: &Frame) -> Vec<u64> {
    let objects = frame.sides()[0].get("objects").and_then(Json::as_array);
    objects.into_iter().flatten().map(|object| object["id"].as_u64().unwrap()).collect()
}

fn object(json: &Json) -> Object {
    let bounds: Vec<_> = json["box"].as_array().unwrap().iter().map(|v| v.as_u64().unwrap()).collect();
    let of = |name: &str| json[name].as_u64().unwrap();
    (of("id"), bounds.try_into().unwrap(), of("area"), of("regions"))
}

/// The mask of an object by the labels of a frame and their owners.
fn mask(frame: &Frame, id: u8) -> Vec<bool> {
    let owners = frame.section(&frame.sides()[0]["owners"]);
    assert_eq!(owners.len() as u64, frame.regions(0));
    frame.labels(0).iter().map(|label| owners[usize::from(*label)] == id).collect()
}

/// Box and area of a mask.
fn measure(mask: &[bool]) -> ([u64; 4], u64) {
    let inside: Vec<_> =
        (0..mask.len()).filter(|i| mask[*i]).map(|i| [(i % WIDTH) as u64, (i / WIDTH) as u64]).collect();
    let of = |axis: usize| inside.iter().map(move |at| at[axis]);
    let [x0, y0] = [of(0).min().unwrap(), of(1).min().unwrap()];
    let [x1, y1] = [of(0).max().unwrap(), of(1).max().unwrap()];
    ([x0, y0, x1 + 1 - x0, y1 + 1 - y0], inside.len() as u64)
}

/// Run lengths as tools of COCO read them.
fn counts(text: &str) -> Vec<usize> {
    let (mut counts, mut number, mut bits) = (Vec::<i64>::new(), 0i64, 0);
    for letter in text.bytes().map(|letter| i64::from(letter) - 48) {
        number |= (letter & 31) << bits;
        bits += 5;
        if letter & 32 == 0 {
            if letter & 16 != 0 {
                number |= -1 << bits;
            }
            let before = if counts.len() > 2 { counts[counts.len() - 2] } else { 0 };
            counts.push(number + before);
            (number, bits) = (0, 0);
        }
    }
    counts.into_iter().map(|count| usize::try_from(count).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_marked_object_is_followed_and_comes_back_in_the_next_round() {
    let folder = tempfile::tempdir().unwrap();
    let running = studio_of(Source::File(small_clip(folder.path())), &[SETTINGS]).await;
    let mut viewer = Viewer::new(&running.address()).await;
    let first = start_over(&mut viewer).await;
    assert!(first.sides()[0].get("objects").is_none() && first.sides()[0].get("owners").is_none());
    let place = ball(&viewer, &first);
    mark(&mut viewer, None, 0.0, json!({ "box": place })).await;
    let found = viewer.frame_until("the object", |frame| ids(frame) == [1]).await;
    assert_eq!(found.time(), 0.0);
    let (_, bounds, area, _) = object(&found.sides()[0]["objects"][0]);
    assert_eq!(measure(&mask(&found, 1)), (bounds, area));
    assert_eq!(viewer.state["objects"], json!([{ "id": 1, "marks": [0.0] }]));

    // The regions are others, and the object is found in them again.
    viewer.send(json!({ "do": "set", "side": "a", "name": "superpixels", "value": 300 })).await;
    viewer.frame_until("the object again", |frame| frame.regions(0) > 200 && ids(frame) == [1]).await;
    viewer.send(json!({ "do": "pause", "on": false })).await;
    viewer.frame_until("the end", |frame| frame.time() > 1.6).await;
    let again =
        viewer.frame_until("the next round", |frame| frame.time() < 1.0 && !ids(frame).is_empty()).await;
    assert_eq!(ids(&again), [1]);
    // So it does where the pipeline starts anew, and beside a second setting.
    viewer.send(json!({ "do": "set", "side": "a", "name": "threads", "value": 1 })).await;
    viewer.send(json!({ "do": "compare", "on": true })).await;
    viewer.send(json!({ "do": "seek", "to": 0 })).await;
    viewer.frame_until("two sides", |frame| frame.sides().len() == 2 && ids(frame) == [1]).await;
    // An abstraction is drawn on frames that objects are read from.
    viewer.send(json!({ "do": "look", "abstraction": true })).await;
    viewer.send(json!({ "do": "seek", "to": 0 })).await;
    viewer.frame_until("a drawing", |frame| frame.drawn(0).is_some() && ids(frame) == [1]).await;

    viewer.send(json!({ "do": "forget", "object": 1 })).await;
    viewer.until("an empty list", |state| state["objects"] == json!([])).await;
    let number = viewer.frame().await.number();
    let after = viewer.frame_until("frames after it", |frame| frame.number() > number + 3).await;
    assert!(ids(&after).is_empty());
    assert!(viewer.state["problem"].is_null(), "{}", viewer.state["problem"]);
    assert!(running.stop().await, "something hangs");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mark_in_another_frame_than_the_one_on_show_goes_there() {
    let folder = tempfile::tempdir().unwrap();
    let running = studio_of(Source::File(small_clip(folder.path())), &[SETTINGS]).await;
    let mut viewer = Viewer::new(&running.address()).await;
    start_over(&mut viewer).await;
    // Within a frame that begins earlier.
    mark(&mut viewer, None, 1.013, json!({ "inside": [96, 64] })).await;
    let there = viewer.frame_until("that frame", |frame| frame.time() > 0.9).await;
    assert!(there.time() <= 1.013 && there.time() > 0.97, "{}", there.time());
    assert_eq!(viewer.state["objects"], json!([{ "id": 1, "marks": [1.013] }]));
    assert!(running.stop().await, "something hangs");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_marked_is_refused_and_frames_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let running = studio_of(Source::File(small_clip(folder.path())), &[SETTINGS]).await;
    let mut viewer = Viewer::new(&running.address()).await;
    let first = start_over(&mut viewer).await;
    for (object, time, place, words) in [
        (None, 0.0, json!({ "box": [200, 0, 5, 5] }), "no pixel of the picture of 192x128"),
        (None, 0.0, json!({ "inside": [-1, 5] }), "no pixel"),
        (Some(7), 0.0, json!({ "inside": [5, 5] }), "no object 7"),
        (None, 0.0, json!({ "outside": [5, 5] }), "says nothing by itself"),
        (None, -1.0, json!({ "inside": [5, 5] }), "no time of a picture"),
        (None, 1e300, json!({ "inside": [5, 5] }), "no time of a picture"),
        (None, 999.0, json!({ "inside": [5, 5] }), "ends before"),
    ] {
        mark(&mut viewer, object, time, place.clone()).await;
        let is_told =
            |state: &Json| state["problem"]["what"].as_str().is_some_and(|what| what.contains(words));
        viewer.until(words, is_told).await;
        assert!(!viewer.state["problem"]["advice"].as_str().unwrap().is_empty());
    }
    for text in [
        r#"{"do":"mark","object":256,"time":0,"place":{"box":[0,0,5,5]}}"#,
        r#"{"do":"mark","time":0,"place":{"box":[0,0,5]}}"#,
        r#"{"do":"mark","time":0,"place":{"box":[0,0,5,5],"inside":[1,1]}}"#,
        r#"{"do":"mark","time":0,"place":{"mask":[0]}}"#,
        r#"{"do":"mark","time":0,"place":{"inside":[0.5,1]}}"#,
        r#"{"do":"forget","object":-1}"#,
    ] {
        viewer.refused = None;
        viewer.send(serde_json::from_str(text).unwrap()).await;
        while viewer.refused.is_none() {
            viewer.receive().await.expect("a connection");
        }
        assert!(viewer.refused.as_ref().unwrap().starts_with("Not understood"), "{text}");
    }
    viewer.send(json!({ "do": "forget", "object": 1 })).await;
    viewer
        .until("a refusal", |state| {
            state["problem"]["what"].as_str().is_some_and(|w| w == "There is no object 1.")
        })
        .await;
    // Nothing is an object there, and none is kept.
    mark(&mut viewer, None, 0.0, json!({ "box": [0, 0, 1, 1] })).await;
    viewer.until("an answer", |state| state["problem"]["what"] == "No object was found there.").await;
    assert_eq!(viewer.state["objects"], json!([]));
    viewer.send(json!({ "do": "export", "side": "a", "overlay": "none", "kind": "objects" })).await;
    viewer.until("a refusal", |state| state["problem"]["what"] == "No object is marked.").await;
    assert_eq!(viewer.state["objects"], json!([]));

    // Without track ids there is nothing to follow objects by, and with them there is again.
    viewer.send(json!({ "do": "set", "side": "a", "name": "temporal", "value": false })).await;
    viewer.frame_until("no motion", |frame| frame.sides()[0]["motion"][1] == 0).await;
    let place = ball(&viewer, &first);
    mark(&mut viewer, None, 0.0, json!({ "box": place })).await;
    let is_told =
        |state: &Json| state["problem"]["advice"].as_str().is_some_and(|advice| advice.contains("temporal"));
    viewer.until("the advice", is_told).await;
    viewer.send(json!({ "do": "set", "side": "a", "name": "temporal", "value": true })).await;
    viewer.frame_until("motion", |frame| frame.sides()[0]["motion"][1] != 0).await;
    mark(&mut viewer, None, 0.0, json!({ "box": place })).await;
    viewer.frame_until("the object", |frame| ids(frame) == [1]).await;
    assert!(viewer.state["problem"].is_null(), "{}", viewer.state["problem"]);
    assert!(running.stop().await, "something hangs");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_has_what_the_element_gives() {
    let folder = tempfile::tempdir().unwrap();
    let clip = small_clip(folder.path());
    let running = studio_of(Source::File(clip.clone()), &[SETTINGS]).await;
    let mut viewer = Viewer::new(&running.address()).await;
    let first = start_over(&mut viewer).await;
    let place = ball(&viewer, &first);
    mark(&mut viewer, None, 0.0, json!({ "box": place })).await;
    mark(&mut viewer, None, LATER.0 as f64 / 25.0, json!({ "inside": LATER.1 })).await;
    viewer.until("two objects", |state| state["objects"].as_array().is_some_and(|o| o.len() == 2)).await;
    viewer.send(json!({ "do": "export", "side": "a", "overlay": "none", "kind": "objects" })).await;
    viewer
        .until("the archive", |state| {
            assert!(state["export"]["problem"].is_null(), "{}", state["export"]);
            state["export"]["done"] == true
        })
        .await;
    assert_eq!(viewer.state["export"]["name"], "objects.zip");
    let (head, body) = get(&running.address(), "/export/1").await;
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("application/zip"), "{head}");
    let mut archive = zip::ZipArchive::new(Cursor::new(body)).unwrap();
    let mut files = BTreeMap::new();
    for i in 0..archive.len() {
        let mut file = archive.by_index(i).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        files.insert(file.name().to_owned(), bytes);
    }
    let expected = expected(&clip, place);
    assert_eq!((expected.len(), files.len()), (FRAMES, FRAMES + 2));
    assert!(expected.iter().all(|frame| !frame.objects.is_empty()), "the ball is lost");
    let both = expected.iter().filter(|frame| frame.objects.len() == 2).count();
    assert!(both > 0, "the second object is not found");
    let coco: Json = serde_json::from_slice(&files["coco.json"]).unwrap();
    let tracks: Json = serde_json::from_slice(&files["tracks.json"]).unwrap();
    let [x, y] = LATER.1;
    assert_eq!(
        tracks["objects"],
        json!([
            { "id": 1, "marks": [{ "time": 0.0, "box": place }] },
            { "id": 2, "marks": [{ "time": 1.0, "points": [{ "x": x, "y": y, "inside": true }] }] },
        ])
    );
    assert_eq!(
        (tracks["source"].as_str(), coco["categories"][0]["id"].as_u64()),
        (Some("small.mkv"), Some(1))
    );
    let mut annotations = coco["annotations"].as_array().unwrap().iter().enumerate().peekable();
    for (number, Masked { mask, objects }) in expected.iter().enumerate() {
        let name = format!("frame-{number:06}.png");
        let mut picture = png::Decoder::new(Cursor::new(&files[&format!("masks/{name}")]));
        picture.set_transformations(png::Transformations::IDENTITY);
        let mut picture = picture.read_info().unwrap();
        let mut found = vec![0; WIDTH * HEIGHT];
        picture.next_frame(&mut found).unwrap();
        assert!(found == *mask, "{name}");
        let image = &coco["images"][number];
        let time = number as f64 / 25.0;
        assert_eq!(
            *image,
            json!({ "id": number + 1, "file_name": name, "width": WIDTH, "height": HEIGHT, "frame": number, "time": image["time"] })
        );
        let frame = &tracks["frames"][number];
        assert_eq!((&frame["frame"], &frame["time"]), (&json!(number), &image["time"]));
        assert!((frame["time"].as_f64().unwrap() - time).abs() < 1e-3, "{frame}");
        let listed: Vec<_> = frame["objects"].as_array().unwrap().iter().map(object).collect();
        assert_eq!(listed, *objects);
        for &(id, bounds, area, _) in objects {
            let (at, own) = annotations.next().unwrap();
            assert_eq!(own["id"], at + 1);
            assert_eq!((&own["image_id"], &own["object_id"]), (&json!(number + 1), &json!(id)));
            assert_eq!((&own["bbox"], &own["area"]), (&json!(bounds), &json!(area)));
            assert_eq!(own["segmentation"]["size"], json!([HEIGHT, WIDTH]));
            let runs = counts(own["segmentation"]["counts"].as_str().unwrap());
            let column: Vec<bool> =
                runs.iter().enumerate().flat_map(|(i, run)| std::iter::repeat_n(i % 2 == 1, *run)).collect();
            let is_inside = |i: usize| u64::from(mask[i]) == id;
            assert!(
                column.len() == mask.len()
                    && (0..mask.len()).all(|i| column[i % WIDTH * HEIGHT + i / WIDTH] == is_inside(i)),
                "{name}: object {id}"
            );
        }
    }
    assert!(annotations.next().is_none());
    assert!(running.stop().await, "something hangs");
}
