// SPDX-License-Identifier: MPL-2.0
//! Ten viewers and random changes for minutes: memory stays, nothing is left. Ignored, since it takes as long as it is told:
//! `STUDIO_MINUTES=10 cargo test --release -p superpixel-studio --test soak -- --ignored --nocapture`

mod common;

use std::time::{Duration, Instant};

use common::{Viewer, studio};
use serde_json::{Value as Json, json};

/// Properties that stay: those that slow frames to seconds tell nothing about memory, and a backend may be missing.
const LEFT_ALONE: [&str; 5] = ["backend", "sigma", "tau", "cuda-device-id", "algo"];

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % n
    }
}

fn in_use() -> [u64; 3] {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    [field("VmRSS:") / 1024, field("Threads:"), std::fs::read_dir("/proc/self/fd").unwrap().count() as u64]
}

/// A value of a property, near its default where its range has no end in practice.
fn value(random: &mut Random, property: &Json) -> Json {
    let usual = &property["default"];
    match property["kind"].as_str().unwrap() {
        "boolean" => json!(random.below(2) == 1),
        "enum" => {
            let values = property["values"].as_array().unwrap();
            values[random.below(values.len() as u64) as usize]["nick"].clone()
        }
        "integer" => {
            let (min, max) = (property["min"].as_i64().unwrap(), property["max"].as_i64().unwrap());
            let most = max.min(min.max(4) + 4 * usual.as_i64().unwrap().clamp(1, 100));
            json!(
                min.max(if property["name"] == "superpixel-size" { 12 } else { min })
                    + random.below((most - min).max(1) as u64) as i64
            )
        }
        _ => {
            let (min, max) = (property["min"].as_f64().unwrap(), property["max"].as_f64().unwrap());
            let most = max.min(4.0 * usual.as_f64().unwrap().max(0.5));
            json!(min + (most - min).max(0.0) * random.below(1000) as f64 / 1000.0)
        }
    }
}

async fn disturb(address: String, end: Instant) -> usize {
    let mut viewer = Viewer::new(&address).await;
    viewer.until("a state", |state| state.is_object()).await;
    let properties = viewer.hello["properties"].as_array().unwrap().clone();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut changes, mut next, mut frames) = (0, Instant::now(), 0);
    while Instant::now() < end {
        if viewer.frame_within(Duration::from_millis(500)).await.is_some() {
            frames += 1;
        }
        if Instant::now() < next {
            continue;
        }
        next = Instant::now() + Duration::from_millis(300);
        changes += 1;
        let side = ["a", "b"][random.below(2) as usize];
        let request = match random.below(40) {
            0 => json!({ "do": "compare", "on": random.below(2) == 1 }),
            1 => json!({ "do": "seek", "to": random.below(5) as f64 }),
            2 => json!({ "do": "apply", "side": side, "values": { "superpixel-size": 24 } }),
            3 => json!({ "do": "step" }),
            4 | 5 => json!({ "do": "pause", "on": false }),
            6 => json!({ "do": "speed", "factor": 1.0 + random.below(3) as f64 }),
            7 | 8 => {
                let place = json!({ "box": [random.below(1200), random.below(600), 200, 200] });
                json!({ "do": "mark", "time": random.below(5) as f64, "place": place })
            }
            9 => json!({ "do": "forget", "object": 1 + random.below(4) }),
            _ => {
                let property = &properties[random.below(properties.len() as u64) as usize];
                let name = property["name"].as_str().unwrap();
                if LEFT_ALONE.contains(&name) {
                    continue;
                }
                json!({ "do": "set", "side": side, "name": name, "value": value(&mut random, property) })
            }
        };
        viewer.send(request).await;
    }
    println!(
        "{changes} changes, {frames} frames at the viewer that made them, last problem {}",
        viewer.state["problem"]
    );
    frames
}

#[test]
#[ignore = "takes minutes"]
fn ten_viewers_and_random_changes() {
    let minutes = std::env::var("STUDIO_MINUTES").map_or(1.0, |text| text.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let before = in_use();
    let samples = runtime.block_on(async {
        let running = studio(&["superpixel-size=24"]).await;
        let end = Instant::now() + Duration::from_secs_f64(60.0 * minutes);
        let disturbing = tokio::spawn(disturb(running.address(), end));
        let watching: Vec<_> = (1..10)
            .map(|_| {
                let address = running.address();
                tokio::spawn(async move {
                    let mut viewer = Viewer::new(&address).await;
                    while Instant::now() < end {
                        viewer.frame_within(Duration::from_millis(500)).await;
                    }
                })
            })
            .collect();
        let mut samples = Vec::new();
        while Instant::now() < end {
            tokio::time::sleep(Duration::from_secs(5)).await;
            samples.push(in_use());
            println!("{:?} MB, threads, files with {} viewers", samples.last().unwrap(), running.viewers());
        }
        assert!(disturbing.await.unwrap() > 10, "hardly a frame");
        for viewer in watching {
            viewer.await.unwrap();
        }
        assert!(running.stop().await, "something hangs");
        samples
    });
    drop(runtime);
    std::thread::sleep(Duration::from_secs(1));
    let after = in_use();
    println!("before {before:?}, after {after:?}");
    // The most of the last third against that of the second: the first finds what the dearest settings need.
    let most = |part: usize| {
        samples.chunks(samples.len().div_ceil(3)).nth(part).unwrap().iter().map(|s| s[0]).max().unwrap()
    };
    let (second, third) = (most(1), most(2));
    assert!(third <= second + second / 10 + 20, "{second} MB, then {third} MB");
    assert!(after[1] <= before[1] + 1, "threads: {before:?}, {after:?}");
    // GStreamer and the runtime may open some files for the whole process.
    assert!(after[2] <= before[2] + 8, "files: {before:?}, {after:?}");
}
