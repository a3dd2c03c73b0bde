// SPDX-License-Identifier: MPL-2.0
//! The program ends soon after a signal, whatever it is about, and leaves no file, however it ends.

mod common;

use std::time::Duration;

use common::Viewer;
use common::program::Program;
use rustix::process::Signal;
use serde_json::json;

/// Twice what it may take, for machines with other work; without a limit it took up to a minute, or for ever.
const SOON: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread")]
async fn no_signal_leaves_a_file() {
    for signal in [Signal::HUP, Signal::TERM, Signal::INT, Signal::KILL] {
        let mut program = Program::start(&common::clip(), &["superpixel-size=40"]);
        // An attacker who guesses a temporary name must find that it is not written to.
        let victim = program.folder.path().join("victim");
        std::fs::write(&victim, "precious").unwrap();
        let port = program.address.rsplit(':').next().unwrap().trim_end_matches('/').to_owned();
        let trap = program.folder.path().join(format!("superpixel-studio-{}-{port}", program.id()));
        std::fs::create_dir(&trap).unwrap();
        std::os::unix::fs::symlink(&victim, trap.join("export-1")).unwrap();

        let mut viewer = Viewer::new(&program.address).await;
        viewer.frame().await;
        viewer.send(json!({ "do": "export", "side": "a", "overlay": "labels", "kind": "video" })).await;
        viewer.until("an export", |state| state["export"].is_object()).await;
        assert!(program.export().is_some(), "where is it written to?");
        let (status, time) = program.end(signal);
        assert!(time < SOON, "{signal:?}: {time:?}");
        assert!(signal == Signal::KILL || status.success(), "{signal:?}: {status}");
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
        let mut left = program.left();
        left.sort();
        assert_eq!(left, [trap, victim], "{signal:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_wait_are_not_waited_for() {
    let mut program = Program::start(&common::clip(), &["superpixel-size=24"]);
    let mut viewer = Viewer::new(&program.address).await;
    viewer.frame().await;
    for _ in 0..90 {
        viewer.send(json!({ "do": "restart" })).await;
        viewer.send(json!({ "do": "compare", "on": true })).await;
    }
    // They are joined: frames go on.
    let number = viewer.frame().await.number();
    viewer.frame_until("more frames", |frame| frame.number() > number + 10).await;
    for _ in 0..60 {
        viewer.send(json!({ "do": "restart" })).await;
    }
    let (status, time) = program.end(Signal::INT);
    assert!(status.success() && time < SOON, "{status} after {time:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_pipe_is_refused_and_does_not_keep_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.mp4");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut program = Program::start(&pipe, &[]);
    let mut viewer = Viewer::new(&program.address).await;
    viewer.until("a problem", |state| state["problem"].is_object()).await;
    assert!(viewer.state["problem"]["what"].as_str().unwrap().contains("no regular file"));
    let (status, time) = program.end(Signal::TERM);
    assert!(status.success() && time < SOON, "{status} after {time:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_hangs_does_not_keep_the_program() {
    // Takes connections and says nothing.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/clip.mp4", listener.local_addr().unwrap());
    let mut program = Program::start(address.as_ref(), &[]);
    let mut viewer = Viewer::new(&program.address).await;
    viewer.until("a state", |state| state.is_object()).await;
    viewer.send(json!({ "do": "restart" })).await;
    let (status, time) = program.end(Signal::INT);
    assert!(status.success() && time < SOON, "{status} after {time:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nohup_is_respected() {
    let mut program = Program::start_without_hangup(&common::clip());
    let mut viewer = Viewer::new(&program.address).await;
    let number = viewer.frame().await.number();
    program.signal(Signal::HUP);
    viewer.frame_until("frames as before", |frame| frame.number() > number + 5).await;
    assert!(program.end(Signal::TERM).0.success());
}
