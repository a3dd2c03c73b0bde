// SPDX-License-Identifier: MPL-2.0
//! `superpixel-clip serve`: many runs in one process are what as many processes do, and nothing of one is left for the next.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use common::{Folder, label_maps, program, scenes, small};
use serde_json::{Value, json};

/// A process that serves.
struct Server {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn start() -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_superpixel-clip"))
            .args(["serve", "--parent", &std::process::id().to_string()])
            // A heap for each of many threads would grow for long without a leak.
            .env("MALLOC_ARENA_MAX", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, output }
    }

    fn send(&mut self, line: &str) {
        writeln!(self.process.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The last line of a job, behind those of its progress.
    fn answer(&mut self) -> Value {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "no answer");
            let said: Value = serde_json::from_str(&line).unwrap();
            if said["event"] != "progress" {
                return said;
            }
        }
    }

    fn ask(&mut self, id: impl Into<Value>, words: &[&str]) -> Value {
        let id = id.into();
        self.send(&json!({"id": id, "arguments": words}).to_string());
        let said = self.answer();
        assert_eq!(said["id"], id);
        said
    }

    fn end(mut self) -> ExitStatus {
        drop(self.process.stdin.take());
        let mut rest = String::new();
        assert_eq!(self.output.read_line(&mut rest).unwrap(), 0, "{rest}");
        self.process.wait().unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.process.id()))
    }

    /// Entries of one of the folders that Linux has for a process.
    fn count(&self, name: &str) -> usize {
        std::fs::read_dir(self.path(name)).unwrap().count()
    }

    /// Memory in KiB.
    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(self.path("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }
}

fn table(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).unwrap()
}

#[test]
fn jobs_give_what_single_runs_give() {
    let folder = Folder::new("serve");
    let input = folder.text("clip.mkv");
    scenes(&input, "matroskamux");
    let mut server = Server::start();
    let list = folder.text("parts.json");
    assert_eq!(server.ask("cuts", &["cuts", &input, &list, "--least", "0.5"])["event"], "done");
    let other: &[&str] = &["superpixel-size=30", "temporal=false"];
    let parted: &[&str] = &["superpixel-size=12", "--cuts", &list, "--part", "2"];
    let settings =
        [&["superpixel-size=12", "--key", "a"], other, &["superpixel-size=12", "merge=1.5"], parted];
    for (number, words) in settings.iter().enumerate() {
        let (one, alone) = (folder.text(&format!("job{number}")), folder.text(&format!("alone{number}")));
        let said = server.ask(number, &[&[input.as_str(), &one], *words].concat());
        assert_eq!(said["event"], "done", "{said}");
        assert!(program(&[&[input.as_str(), &alone], *words].concat()).status.success());
        let (one, alone) = (Path::new(&one), Path::new(&alone));
        for name in ["regions.parquet", "adjacency.parquet", "events.parquet"] {
            assert!(table(one, name) == table(alone, name), "{name} of {words:?}");
        }
        let maps = |folder: &Path| label_maps(&folder.join("labels.mkv"), 320, 180);
        assert!(maps(one) == maps(alone), "labels of {words:?}");
    }
    assert_eq!(server.end().code(), Some(0));
}

/// decodebin sometimes keeps to itself that there is none, the more so where plugins are loaded already.
#[test]
fn a_file_without_a_stream_is_the_clips_fault() {
    let folder = Folder::new("serve-no-stream");
    let (input, half, out) = (folder.text("clip.mp4"), folder.text("half.mp4"), folder.text("out"));
    small(&input, "mp4mux");
    // `whole` includes the end of the file, where the index is.
    let whole = std::fs::read(&input).unwrap();
    std::fs::write(&half, &whole[..whole.len() / 2]).unwrap();
    for attempt in 0..20 {
        let mut server = Server::start();
        let good = folder.text(&format!("good{attempt}"));
        assert_eq!(server.ask(1, &[&input, &good, "superpixel-size=40"])["event"], "done");
        let said = server.ask(2, &[&half, &out, "--stall", "5"]);
        assert_eq!((&said["fault"], &said["stalled"]), (&json!("clip"), &json!(false)), "{attempt}: {said}");
        assert_eq!(server.end().code(), Some(65));
    }
}

#[test]
fn a_job_that_fails_is_the_last() {
    let folder = Folder::new("serve-fails");
    let (input, garbage, out) = (folder.text("clip.mkv"), folder.text("garbage.mkv"), folder.text("out"));
    scenes(&input, "matroskamux");
    std::fs::write(&garbage, [7u8, 99, 13, 201, 5].repeat(10_000)).unwrap();
    let stalling = ["--stall", "0"];
    for (status, fault, words) in [
        (65, "clip", vec![garbage.as_str(), &out]),
        (74, "machine", vec!["/no/such/clip.mkv", &out]),
        (74, "machine", [&[input.as_str(), &out][..], &stalling].concat()),
        (2, "usage", vec![&input, &out, "superpixel-size=3"]),
        (2, "usage", vec![&input]),
        (2, "usage", vec!["serve"]),
        (2, "usage", vec![&input, &out, "--parent", "1"]),
    ] {
        let mut server = Server::start();
        assert_eq!(server.ask(1, &[&input, &folder.text("good"), "superpixel-size=40"])["event"], "done");
        // The second waits while the first fails.
        server.send(&json!({"id": 2, "arguments": words}).to_string());
        server.send(&json!({"id": 3, "arguments": [input, out]}).to_string());
        let said = server.answer();
        assert_eq!((&said["event"], &said["id"]), (&"failed".into(), &2.into()), "{said}");
        assert_eq!((&said["fault"], &said["stalled"]), (&fault.into(), &words.contains(&"--stall").into()));
        assert_eq!(server.end().code(), Some(status), "{words:?}");
    }
    assert_eq!(folder.names(), ["clip.mkv", "garbage.mkv", "good"]);
    for line in ["", "nonsense", "{}", r#"{"id": 1, "arguments": [1]}"#, r#"{"arguments": ["a", "b"]}"#] {
        let mut server = Server::start();
        server.send(line);
        let said = server.answer();
        assert_eq!((&said["fault"], &said["id"]), (&"usage".into(), &Value::Null), "{said}");
        assert_eq!(server.end().code(), Some(2));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_of_a_job_stays() {
    // GLib keeps a few idle threads of its pool.
    const SPARE_THREADS: usize = 8;
    const MOST_GROWTH: u64 = 3 << 10;
    let folder = Folder::new("serve-many");
    let (input, out, list) = (folder.text("clip.mkv"), folder.text("out"), folder.text("parts.json"));
    scenes(&input, "matroskamux");
    let mut server = Server::start();
    // It has started once it answers.
    server.ask("check", &["check"]);
    let threads = server.count("task");
    server.ask("cuts", &["cuts", &input, &list, "--least", "0.5"]);
    // As many as are left after a job, whatever was open while it started.
    let files = server.count("fd");
    let mut after = Vec::new();
    for number in 0..30 {
        let part = (number % 4).to_string();
        let words = ["superpixel-size=24", "threads=1", "--threads", "1", "--cuts", &list, "--part", &part];
        assert_eq!(server.ask(number, &[&[input.as_str(), &out][..], &words].concat())["event"], "done");
        assert!(server.count("fd") <= files, "files after job {number}");
        assert!(server.count("task") <= threads + SPARE_THREADS, "threads after job {number}");
        after.push(server.memory());
    }
    let (settled, last) = (after[9], after[29]);
    assert!(last < settled + MOST_GROWTH, "memory grows: {after:?} KiB");
    assert_eq!(server.end().code(), Some(0));
}
