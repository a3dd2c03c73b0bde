// SPDX-License-Identifier: MPL-2.0
//! Frames as viewers get them: the element's own results, under one number, the newest available.

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use common::{Viewer, clip, studio};
use gst::prelude::*;
use gstsuperpixel::meta::SuperpixelMeta;
use gstsuperpixel::regions::{Motion, Neighbor, Region};
use serde_json::json;

/// A viewer that knows the names of the fields alone reads what the element has attached.
#[tokio::test(flavor = "multi_thread")]
async fn records_are_read_by_the_layouts_of_the_hello() {
    let running = studio(&["superpixel-size=48"]).await;
    let mut viewer = Viewer::new(&running.address()).await;
    let frame = viewer.frame().await;
    let side = &frame.sides()[0];
    let cast = |section: &str| frame.section(&side[section]);
    let table: Vec<Region> = bytemuck::pod_collect_to_vec(cast("table"));
    let motion: Vec<Motion> = bytemuck::pod_collect_to_vec(cast("motion"));
    let pairs: Vec<Neighbor> = bytemuck::pod_collect_to_vec(cast("neighbors"));
    assert!(!table.is_empty() && motion.len() == table.len() && !pairs.is_empty());
    let of_table = |field: &str| viewer.column(&frame, "table", field);
    let flat = |values: &dyn Fn(&Region) -> Vec<f64>| table.iter().flat_map(values).collect::<Vec<_>>();
    assert_eq!(of_table("track_id"), flat(&|region| vec![region.track_id.into()]));
    assert_eq!(of_table("area"), flat(&|region| vec![region.area.into()]));
    assert_eq!(of_table("centroid"), flat(&|region| region.centroid.map(f64::from).to_vec()));
    assert_eq!(
        of_table("mean_rgb"),
        flat(&|region| region.mean_rgb[..3].iter().map(|&v| v.into()).collect())
    );
    assert_eq!(of_table("mean_lab"), flat(&|region| region.mean_lab.map(f64::from).to_vec()));
    assert_eq!(of_table("bounds"), flat(&|region| region.bounds.map(f64::from).to_vec()));
    let velocity: Vec<_> = motion.iter().flat_map(|motion| motion.velocity.map(f64::from)).collect();
    assert_eq!(viewer.column(&frame, "motion", "velocity"), velocity);
    let ages: Vec<f64> = motion.iter().map(|motion| motion.age.into()).collect();
    assert_eq!(viewer.column(&frame, "motion", "age"), ages);
    for (field, of) in
        [("a", (|pair| pair.a) as fn(&Neighbor) -> u32), ("b", |pair| pair.b), ("length", |pair| pair.length)]
    {
        let real: Vec<f64> = pairs.iter().map(|pair| of(pair).into()).collect();
        assert_eq!(viewer.column(&frame, "neighbors", field), real, "{field}");
    }
    assert!(running.stop().await, "something hangs");
}

/// Labels, table, motion, neighbors and events of the first frames, by time in microseconds, from a pipeline of our own.
fn expected(frames: usize) -> BTreeMap<u64, [Vec<u8>; 5]> {
    superpixel_studio::init().unwrap();
    let line = "filesrc name=file ! decodebin ! videoconvert ! superpixel name=superpixel overlay=none neighbors=true events=true \
                superpixel-size=24 ! appsink name=sink sync=false max-buffers=2";
    let pipeline = gst::parse::launch(line).unwrap().downcast::<gst::Pipeline>().unwrap();
    pipeline.by_name("file").unwrap().set_property("location", clip());
    let sink = pipeline.by_name("sink").unwrap().downcast::<gst_app::AppSink>().unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    let mut found = BTreeMap::new();
    for _ in 0..frames {
        let sample = sink.pull_sample().unwrap();
        let buffer = sample.buffer().unwrap();
        let meta = SuperpixelMeta::from_buffer(buffer).unwrap();
        let bytes = [
            bytemuck::cast_slice(meta.labels().unwrap().as_slice()).to_vec(),
            bytemuck::cast_slice(&meta.table().unwrap()).to_vec(),
            bytemuck::cast_slice(&meta.motion().unwrap()).to_vec(),
            bytemuck::cast_slice(&meta.neighbors().unwrap()).to_vec(),
            bytemuck::cast_slice(&meta.events().unwrap()).to_vec(),
        ];
        found.insert(buffer.pts().unwrap().useconds(), bytes);
    }
    pipeline.set_state(gst::State::Null).unwrap();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_are_the_elements_bit_for_bit() {
    let running = studio(&["superpixel-size=24"]).await;
    let expected = expected(25);
    let mut viewer = Viewer::new(&running.address()).await;
    let mut compared = 0;
    loop {
        let frame = viewer.frame().await;
        // Of the first round of the clip, whose frames all have begun from the first.
        let Some([labels, table, motion, neighbors, events]) =
            expected.get(&((frame.time() * 1e6).round() as u64))
        else {
            break;
        };
        assert!(frame.number() < 132, "too late");
        let head = &frame.sides()[0];
        assert!(*bytemuck::cast_slice::<_, u8>(&frame.labels(0)) == **labels, "labels of {}", frame.number());
        for (name, bytes) in
            [("table", table), ("motion", motion), ("neighbors", neighbors), ("events", events)]
        {
            assert!(frame.section(&head[name]) == bytes, "{name} of {}", frame.number());
        }
        assert_eq!(frame.section(&frame.head["picture"])[..3], [0xff, 0xd8, 0xff], "a JPEG");
        compared += 1;
    }
    assert!(compared >= 5, "{compared} frames compared");
    assert!(running.stop().await, "something hangs");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_viewers_get_fewer_frames_and_never_older_ones() {
    let running = studio(&["superpixel-size=48"]).await;
    let (mut fast, mut slow) = (Viewer::new(&running.address()).await, Viewer::new(&running.address()).await);
    let mut last = None;
    for round in 0..3 {
        // Two frames, and no third before one was seen.
        let mut unseen = 0;
        while let Ok(received) = tokio::time::timeout(Duration::from_millis(600), slow.receive()).await {
            let Some(frame) = received.unwrap() else { continue };
            assert!(last.is_none_or(|last| frame.number() > last), "older than {last:?}");
            last = Some(frame.number());
            unseen += 1;
        }
        assert_eq!(unseen, 2, "in round {round}");
        let newest = loop {
            let frame = fast.frame().await;
            if frame.number() > last.unwrap() + 5 {
                break frame.number();
            }
        };
        for _ in 0..2 {
            slow.send(json!({ "do": "seen", "number": 0 })).await;
        }
        let next = loop {
            if let Some(frame) = slow.receive().await.unwrap() {
                slow.send(json!({ "do": "seen", "number": 0 })).await;
                break frame.number();
            }
        };
        assert!(next >= newest - 1, "{next} where {newest} was there");
        last = Some(next);
    }
    assert!(running.stop().await, "something hangs");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_viewers_see_the_same_stream() {
    let running = studio(&["superpixel-size=48"]).await;
    let (mut one, mut other) = (Viewer::new(&running.address()).await, Viewer::new(&running.address()).await);
    let mut seen = BTreeMap::new();
    let mut both = 0;
    for _ in 0..100 {
        for viewer in [&mut one, &mut other] {
            let frame = viewer.frame().await;
            if let Some(known) = seen.insert(frame.number(), frame.message.clone()) {
                assert!(known == frame.message, "frame {} differs", frame.number());
                both += 1;
            }
        }
    }
    assert!(both > 10, "{both} frames compared");
    assert!(running.stop().await, "something hangs");
}
