// SPDX-License-Identifier: MPL-2.0
//! Every pipeline and every reader of `pipelines/` runs: real sinks become fake ones, the camera a test source.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::init;
use crate::examples::example;
use gst::prelude::*;
use gst_video::prelude::*;
use gstsuperpixel::meta::SuperpixelMeta;

/// Frames that go through each pipeline.
const FRAMES: u32 = 8;
const CLIP: &str = "media/bigbuckbunny.mp4";
/// One for each use; a file that is missing here, or only here, is an error.
const PIPELINES: [&str; 13] = [
    "abstraction",
    "blur-background",
    "boundaries",
    "camera",
    "keyed",
    "label-branch",
    "labels-ffv1",
    "labels-png",
    "lsc",
    "mean-color",
    "preview",
    "quick-shift",
    "side-by-side",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn description(name: &str) -> String {
    let text = std::fs::read_to_string(root().join("pipelines").join(name).with_extension("launch")).unwrap();
    text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join(" ")
}

/// Takes the clip from the project's root, with a place to cut it short; or a test source for the camera.
fn with_inputs(text: &str) -> String {
    let clip = format!("location=\"{}\"", root().join(CLIP).display());
    text.replace(&format!("location={CLIP}"), &clip)
        .replace(
            " decodebin !",
            " decodebin ! videoconvert ! videoscale ! video/x-raw,width=640,height=360 ! identity name=cut !",
        )
        .replace("v4l2src !", &format!("videotestsrc num-buffers={FRAMES} !"))
}

/// Puts a fakesink in the place of whatever shows or writes.
fn without_outputs(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    let mut fakes = 0;
    let mut result: Vec<String> = Vec::new();
    let mut after_sink = false;
    for word in words {
        if ["autovideosink", "filesink", "multifilesink"].contains(&word) {
            result.push(format!("fakesink sync=false name=fake{fakes}"));
            fakes += 1;
            after_sink = true;
        } else if !(after_sink && word.starts_with("location=")) {
            after_sink = false;
            result.push(word.to_owned());
        }
    }
    assert!(fakes > 0, "no output found in: {text}");
    result.join(" ")
}

/// Makes a pipeline that gets no more than [`FRAMES`] where it has a place to cut.
fn parse(text: &str) -> gst::Pipeline {
    let pipeline: gst::Pipeline =
        gst::parse::launch(text).unwrap_or_else(|e| panic!("{e}: {text}")).downcast().unwrap();
    if let Some(cut) = pipeline.by_name("cut") {
        let passed = AtomicU32::new(0);
        cut.static_pad("src").unwrap().add_probe(gst::PadProbeType::BUFFER, move |_, _| {
            if passed.fetch_add(1, Ordering::SeqCst) < FRAMES {
                gst::PadProbeReturn::Ok
            } else {
                gst::PadProbeReturn::Drop
            }
        });
    }
    pipeline
}

/// Plays to the end of the stream.
fn play(pipeline: &gst::Pipeline, name: &str) {
    let bus = pipeline.bus().unwrap();
    let started = pipeline.set_state(gst::State::Playing);
    let message = bus.timed_pop_filtered(
        gst::ClockTime::from_seconds(120),
        &[gst::MessageType::Eos, gst::MessageType::Error],
    );
    pipeline.set_state(gst::State::Null).unwrap();
    match message.as_ref().map(|m| m.view()) {
        Some(gst::MessageView::Eos(_)) => started.map(|_| ()).unwrap(),
        Some(gst::MessageView::Error(e)) => panic!("{name}: {} ({:?})", e.error(), e.debug()),
        _ => panic!("{name}: no end of stream"),
    }
}

/// Counts the buffers that pass a pad and satisfy `check`.
fn count(pad: &gst::Pad, check: impl Fn(&gst::BufferRef) -> bool + Send + Sync + 'static) -> Arc<AtomicU32> {
    let counter = Arc::new(AtomicU32::new(0));
    let counted = counter.clone();
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        if info.buffer().is_some_and(|buffer| check(buffer)) {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        gst::PadProbeReturn::Ok
    });
    counter
}

fn elements(pipeline: &gst::Pipeline, factory: &str) -> Vec<gst::Element> {
    let of_factory = |e: &gst::Element| e.factory().is_some_and(|f| f.name() == factory);
    pipeline.iterate_elements().into_iter().map(Result::unwrap).filter(of_factory).collect()
}

fn runs(name: &str) {
    init();
    let pipeline = parse(&without_outputs(&with_inputs(&description(name))));
    let superpixels = elements(&pipeline, "superpixel");
    assert_eq!(superpixels.len(), 1, "{name}");
    let segmented = count(&superpixels[0].static_pad("src").unwrap(), |buffer| {
        SuperpixelMeta::from_buffer(buffer).is_some_and(|meta| meta.regions() > 1 && meta.table().is_ok())
    });
    let sinks = elements(&pipeline, "fakesink");
    let arrived: Vec<_> =
        sinks.iter().map(|s| count(&s.static_pad("sink").unwrap(), |b| b.size() > 0)).collect();
    play(&pipeline, name);
    // A leaky queue may drop a frame that comes too fast; all others pass every frame.
    let least = if name == "camera" { 1 } else { FRAMES };
    let segmented = segmented.load(Ordering::SeqCst);
    assert!((least..=FRAMES).contains(&segmented), "{name}: {segmented} frames with metadata");
    for arrived in arrived {
        let arrived = arrived.load(Ordering::SeqCst);
        assert!(arrived >= least, "{name}: {arrived} buffers at an output");
    }
}

#[test]
fn list_of_pipelines_is_complete() {
    let mut found: Vec<String> = std::fs::read_dir(root().join("pipelines"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "launch"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    found.sort();
    assert_eq!(found, PIPELINES);
    let readme = std::fs::read_to_string(root().join("pipelines/README.md")).unwrap();
    for name in found {
        assert!(
            readme.contains(&format!("`{name}.launch`")),
            "pipelines/README.md does not name {name}.launch"
        );
    }
}

#[test]
fn abstraction_runs() {
    runs("abstraction");
}

#[test]
fn blur_background_runs() {
    runs("blur-background");
}

#[test]
fn boundaries_runs() {
    runs("boundaries");
}

#[test]
fn camera_runs() {
    runs("camera");
}

#[test]
fn keyed_runs() {
    runs("keyed");
}

#[test]
fn label_branch_runs() {
    runs("label-branch");
}

#[test]
fn labels_ffv1_runs() {
    runs("labels-ffv1");
}

#[test]
fn labels_png_runs() {
    runs("labels-png");
}

#[test]
fn lsc_runs() {
    runs("lsc");
}

#[test]
fn mean_color_runs() {
    runs("mean-color");
}

#[test]
fn preview_runs() {
    runs("preview");
}

#[test]
fn quick_shift_runs() {
    runs("quick-shift");
}

#[test]
fn side_by_side_runs() {
    runs("side-by-side");
}

/// The label maps that the superpixel element of a pipeline attaches, one a frame.
fn attached_labels(pipeline: &gst::Pipeline) -> Arc<std::sync::Mutex<Vec<Vec<u16>>>> {
    let maps = Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = maps.clone();
    let pad = elements(pipeline, "superpixel")[0].static_pad("src").unwrap();
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let labels = SuperpixelMeta::from_buffer(info.buffer().unwrap()).unwrap().labels().unwrap();
        kept.lock().unwrap().push(labels.as_slice().to_vec());
        gst::PadProbeReturn::Ok
    });
    maps
}

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn png_files_hold_the_exact_labels() {
    init();
    let folder = scratch("labels-png");
    let text = with_inputs(&description("labels-png"));
    let location = format!("location=\"{}/labels-%05d.png\"", folder.display());
    let pipeline = parse(&text.replace("location=labels-%05d.png", &location));
    let maps = attached_labels(&pipeline);
    play(&pipeline, "labels-png");
    let maps = maps.lock().unwrap();
    assert_eq!(maps.len(), FRAMES as usize);
    for (i, map) in maps.iter().enumerate() {
        let file = image::open(folder.join(format!("labels-{i:05}.png"))).unwrap();
        let image::DynamicImage::ImageLuma16(file) = file else { panic!("frame {i} is not 16-bit gray") };
        assert!(file.into_raw() == *map, "frame {i} differs");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn ffv1_file_holds_the_exact_labels() {
    init();
    let folder = scratch("labels-ffv1");
    let file = folder.join("labels.mkv");
    let text = with_inputs(&description("labels-ffv1"));
    let pipeline = parse(&text.replace("location=labels.mkv", &format!("location=\"{}\"", file.display())));
    let maps = attached_labels(&pipeline);
    play(&pipeline, "labels-ffv1");
    let text = format!(
        "filesrc location=\"{}\" ! matroskademux ! avdec_ffv1 ! video/x-raw,format=GRAY16_LE ! fakesink name=out",
        file.display()
    );
    let reader = parse(&text);
    let read = Arc::new(std::sync::Mutex::new(Vec::<Vec<u16>>::new()));
    let kept = read.clone();
    let pad = reader.by_name("out").unwrap().static_pad("sink").unwrap();
    pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
        let video = gst_video::VideoInfo::from_caps(&pad.current_caps().unwrap()).unwrap();
        let frame =
            gst_video::VideoFrameRef::from_buffer_ref_readable(info.buffer().unwrap(), &video).unwrap();
        let stride = frame.plane_stride()[0] as usize;
        let rows = frame.plane_data(0).unwrap().chunks(stride).take(video.height() as usize);
        let labels = |row: &[u8]| -> Vec<u16> {
            let row = &row[..2 * video.width() as usize];
            row.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect()
        };
        kept.lock().unwrap().push(rows.flat_map(labels).collect());
        gst::PadProbeReturn::Ok
    });
    play(&reader, "reading labels.mkv");
    let (maps, read) = (maps.lock().unwrap(), read.lock().unwrap());
    assert_eq!(maps.len(), FRAMES as usize);
    assert_eq!(read.len(), maps.len());
    for (i, (written, read)) in maps.iter().zip(read.iter()).enumerate() {
        assert!(written == read, "frame {i} differs");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Runs a program, which has to succeed, and returns what it prints.
fn output_of(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn assert_one_line_per_frame(text: &str) {
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), FRAMES as usize, "{text}");
    for (i, line) in lines.iter().enumerate() {
        let start = format!("frame {i}: 1280x720, ");
        let rest = line.strip_prefix(&start).unwrap_or_else(|| panic!("{line}"));
        let regions: u32 = rest.split(' ').next().unwrap().parse().unwrap();
        assert!((500..2000).contains(&regions), "{line}");
    }
}

/// A folder with nothing but the plugin that this program was linked with, which lies beside it. `cargo build --lib` would not
/// do: it leaves the features that development dependencies add out, and so puts another library in the place of this one.
fn plugin_alone(name: &str) -> std::path::PathBuf {
    let built = std::env::current_exe().unwrap().with_file_name("libgstsuperpixel.so");
    let folder = scratch(name);
    std::fs::copy(&built, folder.join("libgstsuperpixel.so")).unwrap_or_else(|e| panic!("{built:?}: {e}"));
    folder
}

/// The clip under a name that is a pipeline of its own to whoever parses it.
fn clip_with_a_hostile_name(folder: &Path) -> PathBuf {
    let file = folder.join("a\tb \"' \\ ! fakesink ! filesink location=stolen.mp4 \"\n");
    std::fs::copy(root().join(CLIP), &file).unwrap();
    file
}

#[test]
fn python_reads_labels() {
    let python = ["python3", "/usr/bin/python3"].into_iter().find(|python| {
        Command::new(python).args(["-c", "import gi, numpy"]).output().is_ok_and(|o| o.status.success())
    });
    let python = python.expect("no python3 with gi and numpy; install python3-gi and python3-numpy");
    let folder = plugin_alone("plugin-python");
    let mut command = Command::new(python);
    command.arg(root().join("pipelines/read_labels.py"));
    command.arg(clip_with_a_hostile_name(&folder)).arg(FRAMES.to_string());
    command.env("GST_PLUGIN_PATH", &folder).env("GST_REGISTRY", folder.join("registry.bin"));
    assert_one_line_per_frame(&output_of(&mut command));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn c_reads_labels() {
    let libraries = ["gstreamer-app-1.0", "gstreamer-video-1.0"];
    let flags = output_of(Command::new("pkg-config").args(["--cflags", "--libs"]).args(libraries));
    let folder = plugin_alone("plugin-c");
    let program = folder.join("read_labels");
    let mut compile = Command::new("cc");
    compile
        .args(["-Wall", "-Wextra", "-Werror", "-O1", "-o"])
        .arg(&program)
        .arg(root().join("examples/read_labels.c"));
    output_of(compile.args(flags.split_whitespace()));
    let mut command = Command::new(&program);
    command.arg(clip_with_a_hostile_name(&folder)).arg(FRAMES.to_string());
    command.env("GST_PLUGIN_PATH", &folder).env("GST_REGISTRY", folder.join("registry.bin"));
    assert_one_line_per_frame(&output_of(&mut command));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn rust_reads_labels() {
    let mut run = Command::new(example("read_labels"));
    let folder = scratch("clip-rust");
    run.arg(clip_with_a_hostile_name(&folder)).arg(FRAMES.to_string());
    assert_one_line_per_frame(&output_of(&mut run));
    std::fs::remove_dir_all(folder).unwrap();
}
