// SPDX-License-Identifier: MPL-2.0
//! Frames of real clips in device memory, from the hardware's decoders where they are: labels, table, neighbors and drawn
//! pixels of every frame equal those of the CPU backend on the same frames brought down, and no pixel goes over the bus.
//!
//! `SUPERPIXEL_MEDIA` names a folder with more clips than the bundled one (`tools/gpu-pack.sh` makes it), and
//! `SUPERPIXEL_CLIPS` one whose clips, H.264 or H.265 in MP4, are compared, too. On the emulated device, which decodes
//! nothing, frames of a small size come from `cudaupload`. Without a device each test prints that it was skipped;
//! `SUPERPIXEL_REQUIRE_CUDA=1` makes that a failure.

use crate::common;
use std::path::{Path, PathBuf};

use crate::common::{PATIENCE, error_on, launch, pixels};
use crate::device::{flag, or_skip, short};
use gst::prelude::*;
use gstsuperpixel::cuda::Cuda;
use gstsuperpixel::meta::SuperpixelMeta;
use gstsuperpixel::regions::{Neighbor, Region};

const ON_DEVICE: &str = "video/x-raw(memory:CUDAMemory)";

/// Returns true if frames can stay on a device here.
fn device(test: &str) -> bool {
    common::init();
    let found = Cuda::new(-1).map_err(|e| e.to_string()).and_then(|_| {
        let download = gst::ElementFactory::find("cudadownload");
        download.map(drop).ok_or_else(|| "no cudadownload (plugin nvcodec)".into())
    });
    or_skip(test, found).is_some()
}

/// A decoder that makes frames of a clip on the device.
struct Source {
    name: String,
    line: String,
}

/// How many frames of a clip are compared.
fn most_frames() -> usize {
    if short() { 5 } else { usize::MAX }
}

/// The clips that are here with the decoders that are here; the first has to be.
fn sources() -> Vec<Source> {
    let bundled = concat!(env!("CARGO_MANIFEST_DIR"), "/media");
    let folder = std::env::var_os("SUPERPIXEL_MEDIA").map_or(PathBuf::from(bundled), PathBuf::from);
    let path = |file: &str| folder.join(file);
    if flag("SUPERPIXEL_EMULATED") {
        let line = format!(
            "filesrc location=\"{}\" ! decodebin ! videoconvert ! videoscale ! \
             video/x-raw,format=NV12,width=160,height=90 ! cudaupload ! {ON_DEVICE}",
            path("bigbuckbunny.mp4").display()
        );
        return vec![Source { name: "bigbuckbunny.mp4, uploaded".into(), line }];
    }
    let wanted = [
        ("bigbuckbunny.mp4", "qtdemux ! h264parse", "nvh264dec"),
        ("1080p.mp4", "qtdemux ! h264parse", "nvh264dec"),
        ("1080p.mp4", "qtdemux ! h264parse", "nvh264sldec"),
        ("1080p-h265.mp4", "qtdemux ! h265parse", "nvh265dec"),
        ("clip.avi", "avidemux ! jpegparse", "nvjpegdec"),
    ];
    let wanted = wanted.map(|(file, parser, decoder)| (path(file), parser, decoder));
    let mut found = Vec::new();
    for (file, parser, decoder) in wanted.into_iter().chain(clips_of_a_folder()) {
        let shown = file.file_name().unwrap_or_default().to_string_lossy();
        if !file.exists() || gst::ElementFactory::find(decoder).is_none() {
            println!("skipped: {shown} through {decoder}: no such file or decoder here");
            continue;
        }
        // Decoders may use a layout on the device that no element can convert.
        let line = format!("filesrc location=\"{}\" ! {parser} ! {decoder} ! {ON_DEVICE}", file.display());
        found.push(Source { name: format!("{shown} through {decoder}"), line });
    }
    assert!(!found.is_empty(), "no decoder of the device (nvh264dec) and no clip for it");
    found
}

/// The clips of the folder that `SUPERPIXEL_CLIPS` names, with what parses and decodes each.
fn clips_of_a_folder() -> Vec<(PathBuf, &'static str, &'static str)> {
    let Some(folder) =
        std::env::var_os("SUPERPIXEL_CLIPS").filter(|folder| !folder.is_empty()).map(PathBuf::from)
    else {
        return Vec::new();
    };
    let files = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "mp4"));
    files.sort();
    let with_decoder = |file: PathBuf| {
        let kinds = [("qtdemux ! h264parse", "nvh264dec"), ("qtdemux ! h265parse", "nvh265dec")];
        let kind = kinds.into_iter().find(|(parser, _)| is_parsed(&file, parser));
        let (parser, decoder) =
            kind.unwrap_or_else(|| panic!("{}: neither H.264 nor H.265 in MP4", file.display()));
        (file, parser, decoder)
    };
    files.into_iter().map(with_decoder).collect()
}

/// Returns true if a parser gets a frame out of a file.
fn is_parsed(file: &Path, parser: &str) -> bool {
    let pipeline =
        launch(&format!("filesrc location=\"{}\" ! {parser} ! fakesink num-buffers=1", file.display()));
    pipeline.set_state(gst::State::Playing).unwrap();
    let bus = pipeline.bus().unwrap();
    let end = bus.timed_pop_filtered(PATIENCE, &[gst::MessageType::Eos, gst::MessageType::Error]);
    pipeline.set_state(gst::State::Null).unwrap();
    end.unwrap_or_else(|| panic!("{}: nothing comes of it", file.display())).type_() == gst::MessageType::Eos
}

/// Content of a frame: pixels, time and metadata.
#[derive(PartialEq)]
struct Frame {
    pts: Option<gst::ClockTime>,
    pixels: Vec<u8>,
    labels: Vec<u16>,
    table: Vec<Region>,
    neighbors: Vec<Neighbor>,
}

/// Plays a line with an appsink `out` and the element `s`, and hands each frame on; returns the element's counters.
fn play(line: &str, mut each: impl FnMut(usize, Frame)) -> gst::Structure {
    let pipeline = launch(line);
    let sink: gst_app::AppSink = pipeline.by_name("out").unwrap().downcast().unwrap();
    sink.set_sync(false);
    sink.set_max_buffers(2);
    pipeline.set_state(gst::State::Playing).unwrap();
    let mut count = 0;
    while count < most_frames()
        && let Some(sample) = sink.try_pull_sample(PATIENCE)
    {
        let (buffer, caps) = (sample.buffer().unwrap(), sample.caps().unwrap());
        let meta = SuperpixelMeta::from_buffer(buffer).expect("meta");
        let frame = Frame {
            pts: buffer.pts(),
            pixels: pixels(buffer, &gst_video::VideoInfo::from_caps(caps).unwrap()),
            labels: meta.labels().unwrap().as_slice().to_vec(),
            table: meta.table().unwrap(),
            neighbors: meta.neighbors().unwrap(),
        };
        each(count, frame);
        count += 1;
    }
    let ended = sink.is_eos() || count == most_frames();
    let error = error_on(&pipeline.bus().unwrap());
    let stats = pipeline.by_name("s").unwrap().property("stats");
    pipeline.set_state(gst::State::Null).unwrap();
    assert_eq!(error, None, "{line}");
    assert!(ended && count > 0, "{line}: {count} frames, no end of stream");
    stats
}

/// Frames of both sides at once, so that a clip's are never held all together.
fn compare(case: &str, cuda: &str, cpu: &str) {
    let (send, receive) = std::sync::mpsc::sync_channel::<Frame>(2);
    let frames = std::thread::scope(|scope| {
        // Ends with this side, so that the other does not wait for ever.
        let receive = receive;
        scope.spawn(move || {
            play(cpu, |_, frame| {
                // A failed comparison receives no more.
                let _ = send.send(frame);
            })
        });
        let mut frames = 0;
        let stats = play(cuda, |i, found| {
            let wanted = receive.recv().unwrap_or_else(|_| panic!("{case}: frame {i} is one too many"));
            assert_eq!(found.pts, wanted.pts, "{case}: frame {i}");
            let differ = found.labels.iter().zip(&wanted.labels).filter(|(a, b)| a != b).count();
            assert_eq!((differ, found.labels.len()), (0, wanted.labels.len()), "{case}: labels of frame {i}");
            assert!(found.table == wanted.table, "{case}: table of frame {i}");
            assert!(found.neighbors == wanted.neighbors, "{case}: neighbors of frame {i}");
            let differ = found.pixels.iter().zip(&wanted.pixels).filter(|(a, b)| a != b).count();
            assert_eq!((differ, found.pixels.len()), (0, wanted.pixels.len()), "{case}: pixels of frame {i}");
            frames = i + 1;
        });
        assert!(receive.recv().is_err(), "{case}: frames are missing after {frames}");
        for name in ["pixel-bytes-to-device", "pixel-bytes-from-device"] {
            assert_eq!(stats.get::<u64>(name), Ok(0), "{case}: {name}");
        }
        frames
    });
    println!("{case}: same, {frames} frames");
}

#[test]
fn every_frame_gives_what_the_cpu_gives() {
    if !device("every_frame_gives_what_the_cpu_gives") {
        return;
    }
    for Source { name, line } in sources() {
        for (overlay, depth) in
            [("none", 0), ("boundaries", 2), ("mean-color-boundaries", 0), ("labels", 3), ("none", 4)]
        {
            let properties = format!("name=s neighbors=true overlay={overlay} async-depth={depth}");
            // Brought down by the map that reads it: GStreamer 1.22's download leaves metadata behind.
            let cuda = format!("{line} ! superpixel backend=cuda {properties} ! appsink name=out");
            let cpu = format!(
                "{line} ! cudadownload ! video/x-raw ! superpixel backend=cpu {properties} ! appsink name=out"
            );
            compare(&format!("{name}, overlay={overlay}, async-depth={depth}"), &cuda, &cpu);
        }
        // Memory that another branch holds too.
        let cuda = format!(
            "{line} ! tee name=t ! queue ! superpixel name=s backend=cuda neighbors=true overlay=mean-color ! \
             appsink name=out t. ! queue ! fakesink sync=false"
        );
        let cpu = format!(
            "{line} ! cudadownload ! video/x-raw ! superpixel name=s backend=cpu neighbors=true overlay=mean-color ! \
             appsink name=out"
        );
        compare(&format!("{name}, behind a tee"), &cuda, &cpu);
    }
}

#[test]
fn nothing_goes_over_the_bus_that_nobody_asks_for() {
    if !device("nothing_goes_over_the_bus_that_nobody_asks_for") {
        return;
    }
    for Source { name, line } in sources() {
        for depth in [0u64, 2] {
            let pipeline = launch(&format!(
                "{line} ! superpixel name=s backend=cuda overlay=none neighbors=true async-depth={depth} ! \
                 fakesink num-buffers={}",
                i32::try_from(most_frames()).unwrap_or(-1)
            ));
            pipeline.set_state(gst::State::Playing).unwrap();
            let bus = pipeline.bus().unwrap();
            let end = bus.timed_pop_filtered(PATIENCE, &[gst::MessageType::Eos, gst::MessageType::Error]);
            assert_eq!(end.unwrap().type_(), gst::MessageType::Eos, "{name}");
            let stats: gst::Structure = pipeline.by_name("s").unwrap().property("stats");
            pipeline.set_state(gst::State::Null).unwrap();
            let bytes = |field: &str| stats.get::<u64>(field).unwrap();
            println!("{name}, async-depth={depth}: {stats}");
            assert!(bytes("frames") > 0);
            assert_eq!(bytes("pixel-bytes-to-device") + bytes("pixel-bytes-from-device"), 0, "{name}");
            // Two numbers a frame, of regions and of pairs; also of those that the end of a short run left under way.
            let numbers = bytes("result-bytes-from-device") / 8;
            assert_eq!(bytes("result-bytes-from-device") % 8, 0, "{name}");
            assert!((bytes("frames")..=bytes("frames") + depth + 1).contains(&numbers), "{name}: {numbers}");
        }
    }
}
