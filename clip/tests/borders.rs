// SPDX-License-Identifier: MPL-2.0
//! Whatever is named as output, nothing of its user's is lost, and nothing of a run that was killed stays.
#![cfg(unix)]

mod common;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{Folder, done, program, run, scenes, small, summary, wait_until};
use serde_json::{Value, json};

/// Every file below a folder with its content, and every link with its target.
fn all(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_symlink() {
                found.insert(path.clone(), fs::read_link(&path).unwrap().into_os_string().into_vec());
            } else if path.is_dir() {
                waiting.push(path);
            } else {
                found.insert(path.clone(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[track_caller]
fn refused(words: &[&str]) {
    let (status, said) = run(words);
    assert_eq!((status, &said["fault"]), (2, &"usage".into()), "{words:?}: {said}");
    let error = said["error"].as_str().unwrap();
    assert!(["name", "--force", "move"].iter().any(|advice| error.contains(advice)), "{words:?}: {error}");
}

#[test]
fn outputs_that_overlap_inputs_are_refused_by_every_tool() {
    let folder = Folder::new("overlap");
    let text = |name: &str| folder.text(name);
    fs::create_dir_all(folder.path("videos/family")).unwrap();
    fs::write(folder.path("videos/family/diary.txt"), "diary").unwrap();
    scenes(&text("videos/a.mkv"), "matroskamux");
    symlink("videos", folder.path("link")).unwrap();
    symlink("videos/a.mkv", folder.path("film")).unwrap();
    fs::hard_link(folder.path("videos/a.mkv"), folder.path("twin.mkv")).unwrap();
    let (input, list) = (text("videos/a.mkv"), text("lists/parts.json"));
    done(&["cuts", &input, &list, "--least", "0.5"]);
    for part in ["0", "1", "2", "3"] {
        let piece = text(&format!("pieces/{part}"));
        done(&[&input, &piece, "--cuts", &list, "--part", part, "superpixel-size=60"]);
    }
    let pieces: Vec<_> = (0..4).map(|part| text(&format!("pieces/{part}"))).collect();
    symlink("pieces/1", folder.path("piece")).unwrap();
    let before = all(&folder.path(""));
    let outputs =
        ["videos", "videos/", "link", "link/", "videos/family/..", "videos/a.mkv", "film", "twin.mkv"];
    for output in outputs.into_iter().chain(["videos/a.mkv/out", "film/out", "link/family/.."]) {
        for force in [&[][..], &["--force"]] {
            for input in ["videos/a.mkv", "film", "link/a.mkv", "twin.mkv"] {
                // A twin lies beside the folder.
                if input == "twin.mkv" && output != "twin.mkv" && output != "videos/a.mkv" {
                    continue;
                }
                refused(&[&[text(input).as_str(), &text(output)], force].concat());
                refused(&[&["cuts", &text(input), &text(output)], force].concat());
            }
        }
    }
    // The list of parts is an input, too.
    refused(&[&input, &text("lists"), "--cuts", &list, "--force"]);
    refused(&[&input, &list, "--cuts", &list, "--force"]);
    for output in ["pieces", "pieces/1", "piece", "pieces/0/out", "pieces/0/labels.mkv", "piece/.."] {
        let output = text(output);
        let words = ["join", "--force", &output].into_iter().chain(pieces.iter().map(String::as_str));
        refused(&words.collect::<Vec<_>>());
    }
    assert_eq!(all(&folder.path("")), before);

    // A line of `serve` is refused like a command line.
    let said = serve(&json!({"id": 1, "arguments": [input, text("link"), "--force"]}).to_string());
    assert_eq!((&said["fault"], &said["id"]), (&"usage".into(), &1.into()), "{said}");
    assert_eq!(all(&folder.path("")), before);
}

#[test]
fn only_outputs_of_its_own_are_replaced() {
    let folder = Folder::new("own");
    let text = |name: &str| folder.text(name);
    let input = text("clip.mkv");
    scenes(&input, "matroskamux");
    fs::create_dir(folder.path("music")).unwrap();
    fs::write(folder.path("music/labels.mkv"), "a film").unwrap();
    fs::write(folder.path("notes.json"), "notes").unwrap();
    fs::write(folder.path("report"), "{\"frames\": 3}").unwrap();
    let before = all(&folder.path(""));
    for output in ["music", "notes.json", "report"] {
        refused(&[&input, &text(output), "superpixel-size=60"]);
        refused(&["cuts", &input, &text(output)]);
    }
    assert_eq!(all(&folder.path("")), before);
    done(&[&input, &text("music"), "superpixel-size=60", "--force"]);
    done(&["cuts", &input, &text("notes.json"), "--force"]);
    // Its own, once more.
    done(&[&input, &text("music"), "superpixel-size=60"]);
    done(&["cuts", &input, &text("notes.json")]);
    // With something of somebody else in it.
    fs::write(folder.path("music/song"), "a song").unwrap();
    refused(&[&input, &text("music"), "superpixel-size=60"]);
    done(&[&input, &text("music"), "superpixel-size=60", "--force"]);
    assert_eq!(fs::read(folder.path("music/song")).unwrap(), b"a song");
    assert_eq!(folder.names(), ["clip.mkv", "music", "notes.json", "report"]);
}

#[test]
fn names_of_any_bytes_work() {
    let folder = Folder::new("bytes");
    scenes(&folder.text("clip.mkv"), "matroskamux");
    let name = |bytes: &[u8]| folder.path("").join(OsString::from_vec(bytes.to_vec()));
    let (input, out, list) = (name(b"caf\xe9.mkv"), name(b"out\xff"), name(b"\x80list"));
    fs::rename(folder.path("clip.mkv"), &input).unwrap();
    done(&["cuts".as_ref(), input.as_os_str(), list.as_os_str()]);
    let words = [input.as_os_str(), out.as_os_str(), "--cuts".as_ref(), list.as_os_str()];
    done(&[&words[..], &["superpixel-size=60".as_ref()]].concat());
    let source = summary(&out)["source"].as_str().unwrap().to_owned();
    assert!(source.ends_with("/caf\u{fffd}.mkv"), "{source}");

    // json.dumps(os.fsdecode(...)) of Python.
    let escaped = |path: &Path| {
        let escape = |byte: &u8| match byte {
            0x80.. => format!("\\udc{byte:02x}"),
            _ => char::from(*byte).to_string(),
        };
        path.as_os_str().as_bytes().iter().map(escape).collect::<String>()
    };
    let job = name(b"job\xfe");
    let line = format!(
        r#"{{"id": "a", "arguments": ["{}", "{}", "superpixel-size=60", "--source", "b\udcff"]}}"#,
        escaped(&input),
        escaped(&job)
    );
    let said = serve(&line);
    assert_eq!(
        (&said["event"], &said["id"], &said["source"]),
        (&"done".into(), &"a".into(), &"b\u{fffd}".into())
    );
    assert_eq!(fs::read_dir(&job).unwrap().count(), 5);
    for wrong in
        [r#"{"id": 1, "arguments": ["\ud800", "out"]}"#, r#"{"id": 1, "arguments": ["a\u0000", "out"]}"#]
    {
        assert_eq!(serve(wrong)["fault"], "usage", "{wrong}");
    }
}

/// The last line that a job of `serve` gives.
fn serve(line: &str) -> Value {
    let mut server = Command::new(env!("CARGO_BIN_EXE_superpixel-clip"))
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    writeln!(server.stdin.take().unwrap(), "{line}").unwrap();
    let text = String::from_utf8(server.wait_with_output().unwrap().stdout).unwrap();
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

fn begin(words: &[&str]) -> Child {
    // Shells have jobs in the background ignore SIGINT, and what a process ignores its children do, too.
    let mut command = Command::new("env");
    command
        .args(["--default-signal=INT,TERM,HUP", env!("CARGO_BIN_EXE_superpixel-clip")])
        .args(words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Numbers of a fixed sequence.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn fifty_kills_cost_nothing_of_the_sources_and_leave_nothing() {
    let folder = Folder::new("killed");
    fs::create_dir(folder.path("videos")).unwrap();
    let (input, out) = (folder.text("videos/a.mkv"), folder.text("out"));
    small(&input, "matroskamux");
    fs::write(folder.path("videos/diary.txt"), "diary").unwrap();
    let words = [input.as_str(), &out, "superpixel-size=6", "threads=1", "--threads", "1"];
    let began = std::time::Instant::now();
    done(&words);
    // About as long as a run takes now: a busy machine may become idle, and the other way round.
    let mut length = u64::try_from(began.elapsed().as_micros()).unwrap();
    let sources = all(&folder.path("videos"));
    let (mut seed, mut killed) = (50, 0);
    for number in 0..50 {
        if number % 10 == 0 {
            // Without an earlier output, too.
            let _ = fs::remove_dir_all(&out);
        }
        let mut child = begin(&words);
        std::thread::sleep(Duration::from_micros(draw(&mut seed) % (length + length / 4)));
        let _ = child.kill();
        let was_killed = child.wait().unwrap().code().is_none();
        killed += usize::from(was_killed);
        length = if was_killed { length + length / 16 } else { length - length / 8 };
        assert!(all(&folder.path("videos")) == sources, "the sources differ after kill {number}");
        if Path::new(&out).exists() {
            // Whole, or not there.
            assert_eq!(
                (summary(Path::new(&out))["frames"].as_u64(), fs::read_dir(&out).unwrap().count()),
                (Some(40), 5)
            );
        }
    }
    assert!(killed >= 10, "{killed} of 50 were killed: the test says little");
    done(&words);
    assert_eq!(folder.names(), ["out", "videos"]);
    assert!(all(&folder.path("videos")) == sources);
}

#[test]
fn signals_and_a_second_run_leave_the_place_clean() {
    let folder = Folder::new("signals");
    let (input, out) = (folder.text("a.mkv"), folder.text("deep/out"));
    scenes(&input, "matroskamux");
    let partial = folder.path("deep/.out.partial");
    // Slow enough to be met: quick shift with a wide kernel.
    let words = [input.as_str(), &out, "algo=quickshift", "sigma=8", "tau=30", "threads=1"];
    for signal in ["INT", "TERM", "HUP"] {
        let mut child = begin(&words);
        wait_until(|| partial.join("out/labels.mkv").exists());
        let (status, said) = run(&words[..2]);
        assert_eq!((status, &said["fault"]), (74, &"machine".into()), "{said}");
        let who = format!("process {}", child.id());
        assert!(said["error"].as_str().unwrap().contains(&who), "{said}");
        let kill = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
        assert!(kill.success());
        let status = child.wait().unwrap();
        assert!(std::os::unix::process::ExitStatusExt::signal(&status).is_some(), "{signal}: {status}");
        assert_eq!(folder.names(), ["a.mkv"], "{signal}");
    }
    // As under nohup.
    let script = format!("trap '' HUP; exec \"$0\" '{input}' '{out}' superpixel-size=60");
    let mut shell = Command::new("sh");
    let mut child = shell
        .args(["-c", &script, env!("CARGO_BIN_EXE_superpixel-clip")])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until(|| partial.exists() || Path::new(&out).exists());
    let _ = Command::new("kill").args(["-s", "HUP", &child.id().to_string()]).status();
    assert!(child.wait().unwrap().success());
    assert_eq!(fs::read_dir(folder.path("deep")).unwrap().count(), 1);
    assert!(program(&["check"]).status.success());
}
