// SPDX-License-Identifier: MPL-2.0
//! Clips as people have them: lying on their side, beginning late, with sound that outlasts the picture, cut off.

mod common;

use std::fmt::Write as _;
use std::path::Path;

use common::{Folder, buffers, done, init, label_maps, play, run, summary};
use gst::prelude::*;
use serde_json::json;

/// Sides of the stored picture in px: whole blocks of the encoder.
const STORED: (usize, usize) = (96, 64);

/// The values of `image-orientation`, each with the matrix of MP4 that says it: `a b c d`, by which x, y becomes ax + cy, bx + dy.
const MATRICES: [(&str, [i32; 4]); 8] = [
    ("rotate-0", [1, 0, 0, 1]),
    ("rotate-90", [0, 1, -1, 0]),
    ("rotate-180", [-1, 0, 0, -1]),
    ("rotate-270", [0, -1, 1, 0]),
    ("flip-rotate-0", [-1, 0, 0, 1]),
    ("flip-rotate-90", [0, -1, -1, 0]),
    ("flip-rotate-180", [1, 0, 0, -1]),
    ("flip-rotate-270", [0, 1, 1, 0]),
];

/// Writes a matrix into the header of the only track, as a telephone does that was held in some way.
fn turn(path: &str, [a, b, c, d]: [i32; 4]) {
    let mut bytes = std::fs::read(path).unwrap();
    let header = bytes.windows(4).position(|kind| kind == b"tkhd").unwrap() + 4;
    let at = header + if bytes[header] == 0 { 40 } else { 52 };
    let matrix = [a << 16, b << 16, 0, c << 16, d << 16, 0, 0, 0, 1 << 30];
    bytes[at..at + 36].copy_from_slice(&matrix.map(i32::to_be_bytes).concat());
    std::fs::write(path, bytes).unwrap();
}

/// A clip of one picture, four quarters of different gray.
fn quarters(path: &str) {
    init();
    let (width, height) = STORED;
    let gray = |x: usize, y: usize| {
        [[40u8, 90], [140, 220]][usize::from(y >= height / 2)][usize::from(x >= width / 2)]
    };
    let pixels: Vec<u8> = (0..height).flat_map(|y| (0..width).map(move |x| gray(x, y))).collect();
    let description = format!(
        "appsrc name=source format=time caps=video/x-raw,format=GRAY8,width={width},height={height},framerate=25/1 ! \
         videoconvert ! video/x-raw,format=I420 ! x264enc pass=quant quantizer=1 ! h264parse ! mp4mux ! \
         filesink location=\"{path}\""
    );
    let pipeline = gst::parse::launch(&description).unwrap().downcast::<gst::Pipeline>().unwrap();
    let source = pipeline.by_name("source").unwrap().downcast::<gst_app::AppSrc>().unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    let mut buffer = gst::Buffer::from_mut_slice(pixels);
    buffer.get_mut().unwrap().set_pts(gst::ClockTime::ZERO);
    buffer.get_mut().unwrap().set_duration(gst::ClockTime::from_mseconds(40));
    source.push_buffer(buffer).unwrap();
    source.end_of_stream().unwrap();
    let bus = pipeline.bus().unwrap();
    let end = bus.timed_pop_filtered(None, &[gst::MessageType::Eos, gst::MessageType::Error]).unwrap();
    assert_eq!(end.type_(), gst::MessageType::Eos, "{end:?}");
    pipeline.set_state(gst::State::Null).unwrap();
}

#[test]
fn all_orientations_are_made_upright() {
    let folder = Folder::new("upright");
    let (input, out, stored) = (folder.text("clip.mp4"), folder.text("out"), folder.text("stored"));
    quarters(&input);
    let maps = |folder: &str, (width, height)| {
        label_maps(&Path::new(folder).join("labels.mkv"), width, height).remove(0)
    };
    // Regions of one gray each, whatever way it lies.
    let words = ["superpixel-size=16", "regions=4"];
    for (name, matrix @ [a, b, c, d]) in MATRICES {
        turn(&input, matrix);
        let said = done(&[&[input.as_str(), &out][..], &words].concat());
        if name == "flip-rotate-90" && said["orientation"] == "rotate-0" {
            println!(
                "this qtdemux does not know {name}, as that of GStreamer 1.22; the unit test of upright.rs has it"
            );
            continue;
        }
        assert_eq!((&said["orientation"], &said["upright"]), (&name.into(), &true.into()), "{said}");
        let (width, height) = if a == 0 { (STORED.1, STORED.0) } else { STORED };
        assert_eq!((&said["width"], &said["height"]), (&width.into(), &height.into()), "{name}");
        let said = done(&[&[input.as_str(), &stored, "--no-autorotate"][..], &words].concat());
        assert_eq!((&said["width"], &said["height"]), (&STORED.0.into(), &STORED.1.into()), "{name}");
        assert_eq!((&said["orientation"], &said["upright"]), (&name.into(), &(name == "rotate-0").into()));
        let (upright, lying) = (maps(&out, (width, height)), maps(&stored, STORED));
        // One label of the one for each of the other.
        let mut pairs = std::collections::BTreeSet::new();
        for (x, y) in (0..STORED.1).flat_map(|y| (0..STORED.0).map(move |x| (x, y))) {
            // A side that runs backwards ends at 0.
            let along = |by_x: i32, by_y: i32, side: usize| match by_x + by_y {
                1 => x * usize::from(by_x == 1) + y * usize::from(by_y == 1),
                _ => side - 1 - (x * usize::from(by_x == -1) + y * usize::from(by_y == -1)),
            };
            let at = along(b, d, height) * width + along(a, c, width);
            pairs.insert((upright[at], lying[y * STORED.0 + x]));
        }
        assert_eq!(pairs.len(), 4, "{name}: {pairs:?}");
    }
}

#[test]
fn parts_and_cuts_of_a_turned_clip_are_those_of_the_whole() {
    let folder = Folder::new("turned");
    let input = folder.text("clip.mp4");
    common::scenes(&input, "mp4mux");
    turn(&input, [0, 1, -1, 0]);
    let list = folder.text("parts.json");
    let cuts = done(&["cuts", &input, &list, "--least", "0.5"]);
    assert_eq!(cuts["parts"].as_array().unwrap().len(), 4, "{cuts}");
    let settings = ["superpixel-size=12", "threads=2", "--cuts", &list];
    done(&[&[input.as_str(), &folder.text("whole")][..], &settings].concat());
    let mut words = vec!["join".to_owned(), folder.text("joined")];
    for part in ["0", "1", "2", "3"] {
        let piece = folder.text(&format!("piece{part}"));
        done(&[&[input.as_str(), &piece, "--part", part][..], &settings].concat());
        words.push(piece);
    }
    done(&words);
    let (whole, joined) = (folder.path("whole"), folder.path("joined"));
    for name in
        ["width", "height", "orientation", "upright", "frames", "tracks", "regions", "begin_ns", "end_ns"]
    {
        assert_eq!(summary(&whole)[name], summary(&joined)[name], "{name}");
    }
    assert_eq!(
        (&summary(&whole)["width"], &summary(&whole)["orientation"]),
        (&json!(180), &json!("rotate-90"))
    );
    let maps = |folder: &Path| label_maps(&folder.join("labels.mkv"), 180, 320);
    assert!(maps(&whole) == maps(&joined));
    // The frames of the tables are those that a player shows.
    let shown = buffers(&format!(
        "filesrc location=\"{input}\" ! decodebin ! videoflip video-direction=auto ! videoconvert ! \
         superpixel superpixel-size=12 threads=2 overlay=none ! appsink name=sink"
    ));
    let meta = gstsuperpixel::meta::SuperpixelMeta::from_buffer(&shown[0]).unwrap();
    assert!(meta.labels().unwrap().as_slice() == maps(&whole)[0]);
}

/// A pipeline's words for a picture and a sound, each from one time to another, in seconds.
fn streams(muxer: &str, file: &str, picture: (u64, u64), sound: Option<(u64, u64)>) -> String {
    let (encode, voice) = match muxer {
        "mpegtsmux" => ("x264enc key-int-max=12 ! h264parse", "avenc_mp2"),
        "avimux" => ("x264enc bframes=0 key-int-max=12 ! h264parse", "avenc_mp2"),
        _ => ("x264enc key-int-max=12", "avenc_aac ! aacparse"),
    };
    let offset = |from: u64| from * 1_000_000_000;
    let mut words = format!(
        "{muxer} name=mux ! filesink location=\"{file}\"  videotestsrc pattern=ball num-buffers={} timestamp-offset={} ! \
         video/x-raw,format=I420,width=96,height=64,framerate=25/1 ! {encode} ! queue max-size-time=0 max-size-bytes=0 \
         max-size-buffers=0 ! mux. ",
        25 * (picture.1 - picture.0),
        offset(picture.0)
    );
    if let Some((from, to)) = sound {
        write!(
            words,
            "audiotestsrc samplesperbuffer=4800 num-buffers={} timestamp-offset={} ! audio/x-raw,rate=48000,channels=2 ! \
             audioconvert ! {voice} ! queue max-size-time=0 max-size-bytes=0 max-size-buffers=0 ! mux. ",
            10 * (to - from),
            offset(from)
        )
        .unwrap();
    }
    words
}

#[test]
fn whole_clips_are_covered_and_times_count_from_their_start() {
    let folder = Folder::new("covered");
    let second = 1_000_000_000;
    // Muxer, picture, sound, and when the first frame is due.
    for (number, (muxer, picture, sound, first)) in [
        ("matroskamux", (0, 2), None, 0),
        ("matroskamux", (5, 7), None, 0),
        ("matroskamux", (2, 4), Some((0, 4)), 2),
        ("matroskamux", (0, 2), Some((0, 6)), 0),
        ("matroskamux", (1000, 1002), Some((1000, 1003)), 0),
        ("mp4mux", (0, 2), None, 0),
        ("mp4mux", (2, 4), Some((0, 4)), 2),
        ("mp4mux", (0, 2), Some((0, 6)), 0),
        ("mp4mux faststart=true", (0, 2), Some((0, 6)), 0),
        ("mpegtsmux", (0, 2), None, 0),
        ("mpegtsmux", (1000, 1004), Some((1000, 1004)), 0),
        ("mpegtsmux", (0, 2), Some((0, 6)), 0),
        ("avimux", (0, 4), Some((0, 6)), 0),
    ]
    .into_iter()
    .enumerate()
    {
        let (input, out) = (folder.text(&format!("clip{number}")), folder.text("out"));
        play(&streams(muxer, &input, picture, sound));
        let said = done(&[&input, &out, "superpixel-size=24"]);
        let what = format!("{muxer} {picture:?} {sound:?}: {said}");
        assert_eq!(said["frames"], 25 * (picture.1 - picture.0), "{what}");
        assert_eq!(said["short"], false, "{what}");
        let coverage = said["coverage"].as_f64();
        assert!(coverage.is_none_or(|coverage| (0.95..=1.0).contains(&coverage)), "{what}");
        assert!(coverage.is_some() || muxer == "mpegtsmux", "{what}");
        // A transport stream begins with its clock, some frames before the picture.
        let begin = said["begin_ns"].as_u64().unwrap();
        assert!((first * second..first * second + second / 2).contains(&begin), "{what}");
    }
}

#[test]
fn clips_that_are_cut_off_are_short() {
    let folder = Folder::new("cut-off");
    for (number, (muxer, picture, sound)) in [
        ("matroskamux", (0, 8), None),
        ("matroskamux", (5, 13), None),
        ("matroskamux", (0, 8), Some((0, 12))),
        ("matroskamux", (2, 8), Some((0, 8))),
        ("mp4mux faststart=true", (0, 8), Some((0, 8))),
        ("mp4mux faststart=true", (0, 8), Some((0, 12))),
    ]
    .into_iter()
    .enumerate()
    {
        let (input, out) = (folder.text(&format!("clip{number}")), folder.text("out"));
        play(&streams(muxer, &input, picture, sound));
        let bytes = std::fs::read(&input).unwrap();
        std::fs::write(&input, &bytes[..bytes.len() * 6 / 10]).unwrap();
        let said = done(&[&input, &out, "superpixel-size=24"]);
        assert_eq!(said["short"], true, "{muxer} {picture:?} {sound:?}: {said}");
        assert!(said["coverage"].as_f64().unwrap() < 0.9, "{muxer} {picture:?} {sound:?}: {said}");
    }
    // Sound alone is no video.
    let input = folder.text("sound.mkv");
    play(&format!("audiotestsrc num-buffers=50 ! avenc_aac ! matroskamux ! filesink location=\"{input}\""));
    let (status, said) = run(&[&input, &folder.text("none")]);
    assert_eq!((status, &said["fault"]), (65, &"clip".into()), "{said}");
}
