// SPDX-License-Identifier: MPL-2.0
//! Helpers for the tests of the program: temporary folders, clips that are made here, label maps.
#![allow(dead_code)]

use std::ffi::OsStr;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gst::prelude::*;
use serde_json::Value;

/// A folder that goes with the test.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("clip-{name}"));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn bundled() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../media/bigbuckbunny.mp4").to_str().unwrap().to_owned()
}

/// The last line of the output, with the exit status.
pub fn run<S: AsRef<OsStr> + Debug>(words: &[S]) -> (i32, Value) {
    let output = program(words);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (last, progress) = lines.split_last().unwrap_or_else(|| {
        panic!("{words:?} says nothing: {}", String::from_utf8_lossy(&output.stderr));
    });
    assert!(progress.iter().all(|line| line["event"] == "progress"), "{text}");
    (output.status.code().unwrap(), last.clone())
}

pub fn done<S: AsRef<OsStr> + Debug>(words: &[S]) -> Value {
    let (status, last) = run(words);
    assert_eq!((status, &last["event"]), (0, &"done".into()), "{words:?}: {last}");
    last
}

/// As `clip.json` of a folder has it.
pub fn summary(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("clip.json")).unwrap()).unwrap()
}

pub fn program<S: AsRef<OsStr>>(words: &[S]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_superpixel-clip")).args(words).output().unwrap()
}

pub fn init() {
    gst::init().unwrap();
    gstsuperpixel::plugin_register_static().unwrap();
}

/// All buffers that come out of a pipeline with an appsink named `sink`.
pub fn buffers(description: &str) -> Vec<gst::Buffer> {
    init();
    let pipeline = gst::parse::launch(description).unwrap().downcast::<gst::Pipeline>().unwrap();
    let sink = pipeline.by_name("sink").unwrap().downcast::<gst_app::AppSink>().unwrap();
    sink.set_sync(false);
    pipeline.set_state(gst::State::Playing).unwrap();
    let mut found = Vec::new();
    while let Ok(sample) = sink.pull_sample() {
        // A copy, so that pools do not run dry.
        found.push(sample.buffer().unwrap().copy_deep().unwrap());
    }
    assert!(sink.is_eos());
    pipeline.set_state(gst::State::Null).unwrap();
    found
}

/// Plays a pipeline to its end.
pub fn play(description: &str) {
    init();
    let pipeline = gst::parse::launch(description).unwrap().downcast::<gst::Pipeline>().unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    let bus = pipeline.bus().unwrap();
    let end = bus.timed_pop_filtered(None, &[gst::MessageType::Eos, gst::MessageType::Error]).unwrap();
    assert_eq!(end.type_(), gst::MessageType::Eos, "{description}: {end:?}");
    pipeline.set_state(gst::State::Null).unwrap();
}

/// The label maps of a file, without the padding of rows.
pub fn label_maps(path: &Path, width: usize, height: usize) -> Vec<Vec<u16>> {
    let path = path.display();
    let description = format!(
        "filesrc location=\"{path}\" ! matroskademux ! avdec_ffv1 ! video/x-raw,format=GRAY16_LE ! appsink name=sink"
    );
    let stride = (2 * width).next_multiple_of(4);
    let map = |buffer: &gst::Buffer| {
        let bytes = buffer.map_readable().unwrap();
        assert_eq!(bytes.len(), stride * height);
        let rows = bytes.chunks(stride).flat_map(|row| row[..2 * width].chunks(2));
        rows.map(|code| u16::from_le_bytes([code[0], code[1]])).collect()
    };
    buffers(&description).iter().map(map).collect()
}

/// One of four pictures of blocks that move, each in colors of its own, 320x180 RGB.
fn picture(scene: usize, time: usize) -> Vec<u8> {
    let base = [[200u8, 40, 40], [30, 60, 200], [230, 230, 220], [20, 120, 30]][scene];
    let pixels = (0..180).flat_map(|y| (0..320).map(move |x| (x, y)));
    let shade = |(x, y): (usize, usize)| ((x + 2 * time) / 31 * 37 + (y + time) / 23 * 53) % 6 * 5;
    pixels.flat_map(|at| base.map(|v| v.saturating_add(shade(at) as u8))).collect()
}

/// A clip of 40 frames of a ball, 160x96.
pub fn small(path: &str, muxer: &str) {
    play(&format!(
        "videotestsrc pattern=ball num-buffers=40 ! video/x-raw,format=I420,width=160,height=96,framerate=25/1 ! x264enc ! \
         {muxer} ! filesink location=\"{path}\""
    ));
}

/// A clip of four scenes of 24 frames.
pub fn scenes(path: &str, muxer: &str) {
    init();
    let description = format!(
        "appsrc name=source format=time caps=video/x-raw,format=RGB,width=320,height=180,framerate=24/1 ! videoconvert ! \
         x264enc key-int-max=11 bframes=2 ! {muxer} ! filesink location=\"{path}\""
    );
    let pipeline = gst::parse::launch(&description).unwrap().downcast::<gst::Pipeline>().unwrap();
    let source = pipeline.by_name("source").unwrap().downcast::<gst_app::AppSrc>().unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    for frame in 0..96u64 {
        let mut buffer = gst::Buffer::from_mut_slice(picture(frame as usize / 24, frame as usize));
        let at = |frame: u64| gst::ClockTime::SECOND * frame / 24;
        let writable = buffer.get_mut().unwrap();
        writable.set_pts(at(frame));
        writable.set_duration(at(frame + 1) - at(frame));
        source.push_buffer(buffer).unwrap();
    }
    source.end_of_stream().unwrap();
    let bus = pipeline.bus().unwrap();
    let end = bus.timed_pop_filtered(None, &[gst::MessageType::Eos, gst::MessageType::Error]).unwrap();
    assert_eq!(end.type_(), gst::MessageType::Eos, "{end:?}");
    pipeline.set_state(gst::State::Null).unwrap();
}

pub fn wait_until(done: impl Fn() -> bool) {
    for _ in 0..600 {
        if done() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("a minute has passed");
}
