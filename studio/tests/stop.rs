// SPDX-License-Identifier: MPL-2.0
//! A studio that was stopped leaves no thread, no open file and no file on disk. Alone, since it counts those of the process.

mod common;

use std::time::Duration;

use common::{Viewer, studio};
use serde_json::json;

fn count(folder: &str) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

fn names(folder: &str) -> Vec<String> {
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.ok()?.path();
        std::fs::read_to_string(path.join("comm")).ok()
    };
    std::fs::read_dir(folder).unwrap().filter_map(read).collect()
}

async fn run_once() {
    let running = studio(&["superpixel-size=48", "threads=2"]).await;
    let (mut viewer, mut other) =
        (Viewer::new(&running.address()).await, Viewer::new(&running.address()).await);
    viewer.frame().await;
    other.frame().await;
    viewer.send(json!({ "do": "compare", "on": true })).await;
    viewer.frame_until("both", |frame| frame.sides().len() == 2).await;
    // Canceled by the stop.
    viewer.send(json!({ "do": "export", "side": "a", "overlay": "labels", "kind": "video" })).await;
    viewer.until("an export", |state| state["export"].is_object()).await;
    assert!(running.stop().await, "something hangs");
}

#[test]
fn nothing_is_left() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // The first run creates what lasts as long as the process.
    runtime.block_on(run_once());
    let before = (count("/proc/self/task"), count("/proc/self/fd"));
    runtime.block_on(run_once());
    runtime.block_on(run_once());
    let mut after = before;
    // Threads end a moment after what waits for them has gone on.
    for _ in 0..100 {
        after = (count("/proc/self/task"), count("/proc/self/fd"));
        if after.0 <= before.0 && after.1 <= before.1 {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let prefix = format!("superpixel-studio-{}-", std::process::id());
    let left = std::fs::read_dir(std::env::temp_dir()).unwrap();
    let left: Vec<_> = left
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .filter(|n| n.starts_with(&prefix))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(
        after.0 <= before.0 && after.1 <= before.1,
        "{before:?} threads and files became {after:?}: {:?}",
        names("/proc/self/task")
    );
}
