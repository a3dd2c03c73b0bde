// SPDX-License-Identifier: MPL-2.0
//! Ten viewers, and all at once what peers can do to a studio: half requests, downloads that nobody reads, requests
//! that start the pipeline again and again. Memory stays, frames go on for a viewer who behaves, and the end comes
//! soon.
//!
//! Some seconds, or as long as it is told:
//! `STUDIO_MINUTES=10 cargo test --release -p superpixel-studio --test attacks -- --ignored --nocapture`

mod common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::program::{Program, raise_files};
use common::{Viewer, get, host};
use futures_util::SinkExt;
use rustix::process::Signal;
use serde_json::json;
use superpixel_studio::http::connections::MOST_CONNECTIONS;
use superpixel_studio::http::download::MOST_DOWNLOADS;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

/// Bytes of the file that stands for the export of a long clip.
const LONG: u64 = 400 << 20;
/// More than a process may have open files, usually.
const HALF_REQUESTS: usize = 1100;
/// MiB that may come on top of the memory at the start.
const MOST_MEMORY: u64 = 300;

/// Sends a request for an export and reads nothing but the status.
async fn begin_download(address: &str, id: u64) -> Option<(u16, TcpStream)> {
    let mut stream = TcpStream::connect(host(address)).await.ok()?;
    let request = format!("GET /export/{id} HTTP/1.1\r\nhost: {}\r\n\r\n", host(address));
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.ok()?;
    Some((std::str::from_utf8(&status[9..]).ok()?.parse().ok()?, stream))
}

async fn half_requests(address: &str) -> Vec<TcpStream> {
    let mut open = Vec::new();
    for _ in 0..HALF_REQUESTS {
        if let Ok(mut stream) = TcpStream::connect(host(address)).await {
            // One that was closed already is as good.
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: 127").await;
            open.push(stream);
        }
    }
    open
}

/// Exports the clip and makes its file as long as that of a long clip.
async fn long_export(program: &Program, viewer: &mut Viewer) -> u64 {
    viewer.send(json!({ "do": "pause", "on": true })).await;
    viewer.send(json!({ "do": "export", "side": "a", "overlay": "none", "kind": "video" })).await;
    viewer.until("the video", |state| state["export"]["done"] == true).await;
    viewer.send(json!({ "do": "pause", "on": false })).await;
    let file = std::fs::OpenOptions::new().write(true).open(program.export().expect("its file")).unwrap();
    file.set_len(LONG).unwrap();
    viewer.state["export"]["id"].as_u64().unwrap()
}

/// The most expensive requests that a viewer may send.
fn hostile(round: u64) -> serde_json::Value {
    match round % 8 {
        0 => json!({ "do": "set", "side": "a", "name": "threads", "value": 1024 }),
        1 => json!({ "do": "set", "side": "a", "name": "threads", "value": round / 8 % 2 }),
        2 => json!({ "do": "compare", "on": round / 8 % 2 == 1 }),
        3 => json!({ "do": "seek", "to": (round % 5) as f64 }),
        4 => json!({ "do": "set", "side": "a", "name": "merge", "value": 2 }),
        5 => json!({ "do": "set", "side": "a", "name": "regions", "value": 50 }),
        6 => json!({ "do": "apply", "side": "a", "values": { "superpixel-size": 24 } }),
        _ => json!({ "do": "restart" }),
    }
}

/// Sends as much as a viewer may until it is told to stop; comes again where it is thrown out.
async fn storm(address: String, over: Arc<AtomicBool>) {
    let mut round = 0;
    while !over.load(Ordering::Relaxed) {
        let mut viewer = Viewer::new(&address).await;
        while !over.load(Ordering::Relaxed) {
            let mut requests = vec![hostile(round)];
            round += 1;
            match tokio::time::timeout(Duration::from_millis(12), viewer.receive()).await {
                Ok(None) => break,
                Ok(Some(Some(frame))) => requests.push(json!({ "do": "seen", "number": frame.number() })),
                _ => {}
            }
            for request in requests {
                // One that was thrown out reads so with the next message.
                let _ = viewer.socket.send(Message::text(request.to_string())).await;
            }
        }
    }
}

/// Counts frames until the studio is gone.
async fn watch(address: String, seen: Arc<AtomicU64>) {
    let mut viewer = Viewer::new(&address).await;
    while let Some(received) = viewer.receive().await {
        if let Some(frame) = received {
            viewer.send(json!({ "do": "seen", "number": frame.number() })).await;
            seen.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Opens what a peer can open without being asked who it is, over and over.
async fn siege(address: String, export: u64, over: Arc<AtomicBool>) {
    while !over.load(Ordering::Relaxed) {
        let half = half_requests(&address).await;
        let mut stuck = Vec::new();
        for _ in 0..2 * MOST_DOWNLOADS {
            stuck.extend(begin_download(&address, export).await);
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
        drop((half, stuck));
    }
}

async fn attack(source: &Path, time: Duration, soon: Duration) {
    raise_files();
    let mut program = Program::start(source, &["superpixel-size=24"]);
    let address = program.address.clone();
    let mut good = Viewer::new(&address).await;
    good.frame().await;
    let export = long_export(&program, &mut good).await;
    let start = program.memory();

    let over = Arc::new(AtomicBool::new(false));
    let seen = Arc::new(AtomicU64::new(0));
    let mut tasks = vec![
        tokio::spawn(storm(address.clone(), over.clone())),
        tokio::spawn(storm(address.clone(), over.clone())),
        tokio::spawn(siege(address.clone(), export, over.clone())),
    ];
    for _ in 0..7 {
        tasks.push(tokio::spawn(watch(address.clone(), seen.clone())));
    }
    let (begin, mut most, mut files, mut frames, mut longest) = (Instant::now(), start, 0, 0, Duration::ZERO);
    let (mut last, mut looked) = (Instant::now(), Instant::now());
    while begin.elapsed() < time {
        if good.frame_within(Duration::from_millis(500)).await.is_some() {
            frames += 1;
            longest = longest.max(last.elapsed());
            last = Instant::now();
        }
        (most, files) = (most.max(program.memory()), files.max(program.files()));
        if looked.elapsed() > Duration::from_secs(5) {
            looked = Instant::now();
            println!("{} MB, {} files, {frames} frames", program.memory(), program.files());
        }
    }
    longest = longest.max(last.elapsed());
    // A new viewer gets in, beside all the others.
    let (head, _) = get(&address, "/").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    Viewer::new(&address).await.frame().await;
    over.store(true, Ordering::Relaxed);
    // With all that still waits in it.
    let (status, stop) = program.end(Signal::INT);
    println!(
        "{frames} frames in {time:?} at the viewer who behaves, {longest:?} between two at most; {} at seven others; \
         {start} MB at the start, {most} MB at most; {files} files at most; stopped in {stop:?}",
        seen.load(Ordering::Relaxed)
    );
    for task in tasks {
        task.abort();
    }
    assert!(status.success(), "{status}");
    assert!(most <= start + MOST_MEMORY, "{start} MB became {most} MB");
    assert!(files < MOST_CONNECTIONS + 100, "{files} files");
    assert!(frames as u64 >= time.as_secs() / 4, "{frames} frames in {time:?}");
    assert!(program.left().is_empty(), "{:?}", program.left());
    assert!(stop < soon, "{stop:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_attacks_at_once_for_seconds() {
    let folder = tempfile::tempdir().unwrap();
    attack(&common::small_clip(folder.path()), Duration::from_secs(8), Duration::from_secs(4)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes"]
async fn all_attacks_at_once_for_minutes() {
    let minutes = std::env::var("STUDIO_MINUTES").map_or(1.0, |text| text.parse().unwrap());
    attack(&common::clip(), Duration::from_secs_f64(60.0 * minutes), Duration::from_secs(2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn half_requests_keep_nobody_out_and_end() {
    raise_files();
    let program = Program::start(&common::clip(), &["superpixel-size=64"]);
    let mut before = Viewer::new(&program.address).await;
    before.frame().await;
    let mut half = half_requests(&program.address).await;
    assert!(half.len() > MOST_CONNECTIONS, "{} half requests", half.len());
    let (head, _) = get(&program.address, "/").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    // One who is there stays, and one who comes gets in.
    Viewer::new(&program.address).await.frame().await;
    before.frame().await;
    assert!(program.files() < MOST_CONNECTIONS + 100, "{} files", program.files());
    // Half a request is closed after a while, and so is a connection that asks for nothing more.
    let mut idle = TcpStream::connect(host(&program.address)).await.unwrap();
    let request = format!("GET / HTTP/1.1\r\nhost: {}\r\n\r\n", host(&program.address));
    idle.write_all(request.as_bytes()).await.unwrap();
    for stream in [half.last_mut().unwrap(), &mut idle] {
        let mut rest = Vec::new();
        // Closed or reset: both are an end.
        let end = tokio::time::timeout(common::PATIENCE, stream.read_to_end(&mut rest)).await;
        assert!(end.is_ok(), "still open");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn downloads_are_streamed_and_limited() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(&common::small_clip(folder.path()), &["superpixels=50"]);
    let mut viewer = Viewer::new(&program.address).await;
    viewer.frame().await;
    let export = long_export(&program, &mut viewer).await;
    drop(viewer);
    let start = program.memory();
    let mut stuck = Vec::new();
    for _ in 0..MOST_DOWNLOADS {
        let (status, stream) = begin_download(&program.address, export).await.unwrap();
        assert_eq!(status, 200);
        stuck.push(stream);
    }
    let (head, body) = get(&program.address, &format!("/export/{export}")).await;
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    assert!(String::from_utf8(body).unwrap().contains("Try again"), "no words");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let memory = program.memory();
    assert!(memory < start + 100, "{start} MB became {memory} MB");
    // A place is free again when a download ends, and the next one gets the whole file.
    stuck.clear();
    let end = Instant::now() + common::PATIENCE;
    let mut stream = loop {
        match begin_download(&program.address, export).await {
            Some((200, stream)) => break stream,
            _ => assert!(Instant::now() < end, "no place is free again"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let (mut piece, mut all) = (vec![0; 1 << 20], 0u64);
    while all < LONG {
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0, "ended after {all} bytes");
        all += read as u64;
    }
    let memory = program.memory();
    assert!(memory < start + 100, "{start} MB became {memory} MB");
}
