// SPDX-License-Identifier: MPL-2.0
//! The program `superpixel-clip` as its users call it.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Folder, buffers, bundled, done, label_maps, play, program, run, scenes, wait_until};
use gstsuperpixel::meta::SuperpixelMeta;
use gstsuperpixel::regions::{Event, Motion, Neighbor, Region};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::Value;

const SETTINGS: [&str; 3] = ["superpixel-size=40", "merge=1.5", "threads=2"];

fn rows(path: &Path) -> Vec<Row> {
    let reader = SerializedFileReader::try_from(path).unwrap();
    reader.get_row_iter(None).unwrap().map(Result::unwrap).collect()
}

fn number(field: &Field) -> f64 {
    match *field {
        Field::UInt(value) => value.into(),
        Field::UShort(value) => value.into(),
        Field::UByte(value) => value.into(),
        Field::Long(value) => value as f64,
        Field::Float(value) => value.into(),
        ref other => panic!("{other:?}"),
    }
}

fn numbers(row: &Row) -> Vec<f64> {
    row.get_column_iter().map(|(_, field)| number(field)).collect()
}

/// A row of the region table as it has to be.
fn expected(frame: usize, pts: gst::ClockTime, label: usize, region: &Region, motion: &Motion) -> Vec<f64> {
    let head =
        [frame as f64, pts.nseconds() as f64, label as f64, region.track_id.into(), region.area.into()];
    let color =
        [region.mean_rgb[..3].iter().map(|&v| v.into()).collect(), region.mean_lab.map(f64::from).to_vec()];
    let [colors, bounds] = [color.concat(), region.bounds.map(f64::from).to_vec()];
    let [center, moved] = [region.centroid, motion.velocity].map(|v| v.map(f64::from).to_vec());
    [head.to_vec(), center, colors, bounds, moved, vec![motion.age.into()]].concat()
}

#[test]
fn output_is_what_the_element_attaches_to_every_frame() {
    let folder = Folder::new("same");
    let input = folder.text("half.mp4");
    let (width, height) = (640, 360);
    play(&format!(
        "filesrc location=\"{}\" ! decodebin ! videoconvert ! videoscale ! video/x-raw,width={width},height={height} ! \
         x264enc speed-preset=veryfast bframes=0 ! mp4mux ! filesink location=\"{input}\"",
        bundled()
    ));
    let said = done(&[&[input.as_str(), &folder.text("out")][..], &SETTINGS, &["--key", "k1"]].concat());
    assert_eq!(folder.names(), ["half.mp4", "out"]);
    let written: Value =
        serde_json::from_slice(&std::fs::read(folder.path("out/clip.json")).unwrap()).unwrap();
    assert_eq!(written["key"], "k1");
    assert_eq!(written["properties"]["merge"], "1.5");
    assert_eq!(
        (&written["short"], &written["schema"], &said["frames"]),
        (&false.into(), &1.into(), &132.into())
    );
    assert_eq!((&written["width"], &written["height"]), (&width.into(), &height.into()));

    let frames = buffers(&format!(
        "filesrc location=\"{input}\" ! decodebin ! videoconvert ! superpixel {} overlay=none neighbors=true events=true ! appsink name=sink",
        SETTINGS.join(" ")
    ));
    let maps = label_maps(&folder.path("out/labels.mkv"), width, height);
    assert_eq!((frames.len(), maps.len()), (132, 132));
    let [mut regions, mut adjacency, mut events] = ["regions", "adjacency", "events"]
        .map(|table| rows(&folder.path(&format!("out/{table}.parquet"))).into_iter());
    let mut seen = 0;
    for (frame, (buffer, map)) in frames.iter().zip(&maps).enumerate() {
        let meta = SuperpixelMeta::from_buffer(buffer).unwrap();
        assert!(meta.labels().unwrap().as_slice() == map, "labels of frame {frame}");
        let (table, motion) = (meta.table().unwrap(), meta.motion().unwrap());
        let mut areas = vec![0; table.len()];
        map.iter().for_each(|&label| areas[usize::from(label)] += 1);
        for (label, (region, motion)) in table.iter().zip(&motion).enumerate() {
            let row = numbers(&regions.next().unwrap());
            assert_eq!(row, expected(frame, buffer.pts().unwrap(), label, region, motion));
            assert_eq!(areas[label], region.area);
        }
        for Neighbor { a, b, length } in meta.neighbors().unwrap() {
            let row = numbers(&adjacency.next().unwrap());
            assert_eq!(row, [frame as f64, a.into(), b.into(), length.into()]);
        }
        for Event { kind, track_id, other, area } in meta.events().unwrap() {
            let row = numbers(&events.next().unwrap());
            assert_eq!(row, [frame as f64, kind.into(), track_id.into(), other.into(), area.into()]);
            seen += 1;
        }
    }
    assert!(regions.next().is_none() && adjacency.next().is_none() && events.next().is_none());
    assert!(seen > 100 && written["events"] == seen, "{seen} events");
}

/// Whatever two runs of the same kind have in common.
fn same(a: &Path, b: &Path, width: usize, height: usize) {
    let maps = label_maps(&a.join("labels.mkv"), width, height);
    assert!(maps == label_maps(&b.join("labels.mkv"), width, height), "label maps differ");
    for table in ["regions.parquet", "adjacency.parquet", "events.parquet"] {
        let (one, other) = (rows(&a.join(table)), rows(&b.join(table)));
        assert_eq!(one.len(), other.len(), "{table}");
        assert!(!one.is_empty());
        if let Some(at) = (0..one.len()).find(|&at| one[at] != other[at]) {
            panic!("{table}, row {at}: {} and {}", one[at], other[at]);
        }
    }
    let read = |path: &Path| -> Value {
        serde_json::from_slice(&std::fs::read(path.join("clip.json")).unwrap()).unwrap()
    };
    let (one, other) = (read(a), read(b));
    for name in
        ["frames", "tracks", "regions", "adjacency", "events", "begin_ns", "end_ns", "width", "height"]
    {
        assert_eq!(one[name], other[name], "{name}");
    }
}

#[test]
fn parts_between_cuts_join_to_the_whole() {
    for (name, muxer) in [("parts.mp4", "mp4mux"), ("parts.mkv", "matroskamux")] {
        let folder = Folder::new(name);
        let (input, list) = (folder.text(name), folder.text("parts.json"));
        scenes(&input, muxer);
        let parts = done(&["cuts", &input, &list, "--least", "0.5"]);
        let parts = parts["parts"].as_array().unwrap().clone();
        assert_eq!(
            parts.iter().map(|part| part["frames"].as_u64().unwrap()).collect::<Vec<_>>(),
            [24; 4],
            "{parts:?}"
        );
        let settings = ["superpixel-size=12", "threads=2"];
        let whole = folder.text("whole");
        done(&[&[input.as_str(), &whole, "--cuts", &list][..], &settings].concat());
        let pieces: Vec<_> = (0..4).map(|part| folder.text(&format!("piece{part}"))).collect();
        for (part, piece) in pieces.iter().enumerate() {
            let part = part.to_string();
            done(&[&[input.as_str(), piece, "--cuts", &list, "--part", &part][..], &settings].concat());
        }
        let joined = folder.text("joined");
        let words: Vec<_> = ["join", &joined].into_iter().chain(pieces.iter().map(String::as_str)).collect();
        done(&words);
        same(Path::new(&whole), Path::new(&joined), 320, 180);
        // As many identities as all parts together, which the first alone does not have.
        let tracks = |summary: &Value| summary["tracks"].as_u64().unwrap();
        let of = |folder: &str| -> Value {
            serde_json::from_slice(&std::fs::read(Path::new(folder).join("clip.json")).unwrap()).unwrap()
        };
        assert_eq!(tracks(&of(&joined)), pieces.iter().map(|piece| tracks(&of(piece))).sum::<u64>());
        // Parts that are missing or in another order.
        let (status, said) = run(&["join", &joined, &pieces[1], &pieces[0]]);
        assert_eq!((status, &said["fault"]), (74, &"machine".into()));
    }
}

#[test]
fn faults_are_told_apart() {
    let folder = Folder::new("faults");
    let out = folder.text("out");
    let input = folder.text("clip.mkv");
    scenes(&input, "matroskamux");
    let bytes = std::fs::read(&input).unwrap();
    std::fs::write(folder.path("garbage.mp4"), [7u8, 99, 13, 201, 5].repeat(10_000)).unwrap();
    std::fs::write(folder.path("empty.mp4"), []).unwrap();
    std::fs::write(folder.path("half.mkv"), &bytes[..bytes.len() / 2]).unwrap();
    for (name, status, fault) in
        [("garbage.mp4", 65, "clip"), ("empty.mp4", 65, "clip"), ("missing.mp4", 74, "machine")]
    {
        let (found, said) = run(&[&folder.text(name), &out, "--stall", "20"]);
        assert_eq!((found, &said["fault"]), (status, &fault.into()), "{name}: {said}");
        assert!(!said["error"].as_str().unwrap().is_empty());
    }
    let (status, said) = run(&[&input, &out, "backend=cuda", "cuda-device-id=77"]);
    assert_eq!((status, &said["fault"]), (74, &"machine".into()), "{said}");
    // Less than what the container promises is no error of the decoder.
    let said = done(&[&folder.text("half.mkv"), &out, "superpixel-size=30"]);
    assert_eq!(said["short"], true, "{said}");
    assert!(said["coverage"].as_f64().unwrap() < 0.9);
    assert_eq!(folder.names(), ["clip.mkv", "empty.mp4", "garbage.mp4", "half.mkv", "out"]);
    // A folder that cannot be made.
    let (status, said) = run(&[&input, &folder.text("empty.mp4/out")]);
    assert_eq!((status, &said["fault"]), (74, &"machine".into()), "{said}");
    // A clip again, into the same folder.
    let said = done(&[&input, &out, "superpixel-size=30"]);
    assert_eq!((&said["short"], &said["frames"]), (&false.into(), &96.into()), "{said}");
    assert_eq!(folder.names(), ["clip.mkv", "empty.mp4", "garbage.mp4", "half.mkv", "out"]);
}

#[test]
fn what_sends_no_frames_ends() {
    let folder = Folder::new("stall");
    let input = folder.text("clip.mkv");
    scenes(&input, "matroskamux");
    let (status, said) = run(&[&input, &folder.text("out"), "--stall", "0"]);
    assert_eq!((status, &said["stalled"]), (74, &true.into()), "{said}");
    assert_eq!(folder.names(), ["clip.mkv"]);
}

#[test]
fn properties_are_those_of_the_element() {
    let said = done(&["check", "superpixel-size=20", "compactness=8"]);
    assert_eq!(said["properties"], serde_json::json!({"compactness": "8", "superpixel-size": "20"}));
    for (word, answer) in [
        ("superpixel-size", "NAME=VALUE"),
        ("size=20", "superpixels, superpixel-size"),
        ("superpixel-size=3", "4 to 1024"),
        ("superpixel-size=many", "4 to 1024"),
        ("compactness=NaN", "0.1 to 1000"),
        ("algo=turbo", "slic, lsc"),
        ("temporal=maybe", "true, false"),
        ("overlay=labels", "always none"),
        ("active-backend=x", "no property"),
        ("name=x", "no property"),
    ] {
        let output = program(&["check", word]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{word}");
        assert!(said.contains(answer), "{word}: {said}");
    }
    // Values that exclude each other: the run says what the check says, and that another try is in vain.
    let folder = Folder::new("pairs");
    for (words, answer) in [
        (["regions=5", "merge=2"], "merge"),
        (["merge=2", "regions=5"], "merge"),
        (["backend=cuda", "algo=snic"], "CPU"),
    ] {
        let out = folder.text("out");
        for words in [vec!["check", words[0], words[1]], vec![&bundled(), &out, words[0], words[1]]] {
            let (status, said) = run(&words);
            assert_eq!((status, &said["fault"]), (2, &"usage".into()), "{words:?}: {said}");
            assert!(said["error"].as_str().unwrap().contains(answer), "{words:?}: {said}");
        }
    }
    assert!(folder.names().is_empty());
    // No device here is no fault of the words.
    done(&["check", "backend=cuda", "algo=slic"]);
}

#[cfg(target_os = "linux")]
#[test]
fn it_ends_with_its_parent() {
    let folder = Folder::new("parent");
    let (program, input, out) = (env!("CARGO_BIN_EXE_superpixel-clip"), bundled(), folder.text("out"));
    // A shell that starts the program, says its number and waits.
    let script =
        format!("'{program}' '{input}' '{out}' --parent $$ >'{}' & echo $!; wait", folder.text("log"));
    let mut shell =
        Command::new("sh").args(["-c", &script]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut output = std::io::BufReader::new(shell.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    let process = PathBuf::from(format!("/proc/{}", line.trim()));
    let started = || std::fs::read_to_string(folder.path("log")).is_ok_and(|log| log.contains("progress"));
    wait_until(started);
    assert!(process.exists());
    shell.kill().unwrap();
    shell.wait().unwrap();
    let ended = || {
        let state = std::fs::read_to_string(process.join("stat"));
        state.map_or(true, |state| state.rsplit(')').next().unwrap().trim().starts_with('Z'))
    };
    wait_until(ended);
    assert!(!folder.path("out").exists());
    // Of a parent that has ended already.
    let (status, said) = run(&[&bundled(), &folder.text("out"), "--parent", "1"]);
    assert_eq!((status, &said["fault"]), (74, &"machine".into()), "{said}");
}

#[test]
fn objects_are_followed_from_boxes_of_a_file() {
    let folder = Folder::new("objects");
    let input = folder.text("small.mp4");
    let (width, height) = (320, 180);
    play(&format!(
        "filesrc location=\"{}\" ! decodebin ! videoconvert ! videoscale ! video/x-raw,width={width},height={height} ! \
         x264enc speed-preset=veryfast bframes=0 ! mp4mux ! filesink location=\"{input}\"",
        bundled()
    ));
    let boxes = folder.text("boxes.json");
    std::fs::write(&boxes, r#"[{"frame": 0, "box": [57.5, 62.5, 76, 78.5], "class": "bunny"}]"#).unwrap();
    let settings = ["superpixel-size=12", "threads=2"];
    let said = done(&[&[input.as_str(), &folder.text("out"), "--objects", &boxes][..], &settings].concat());
    let chain = format!(
        "filesrc location=\"{input}\" ! decodebin ! videoconvert ! superpixel {} overlay=none neighbors=true ! \
         superpixelobjects objects=57,62,77,79 analytics=false",
        settings.join(" ")
    );
    let frames = buffers(&format!("{chain} ! appsink name=sink"));
    let masks = label_maps(&folder.path("out/objects.mkv"), width, height);
    assert_eq!((frames.len(), masks.len()), (132, 132));
    let mut table = rows(&folder.path("out/objects.parquet")).into_iter().peekable();
    let mut seen = 0;
    for (i, (frame, mask)) in frames.iter().zip(&masks).enumerate() {
        let meta = SuperpixelMeta::from_buffer(frame).unwrap();
        let (labels, ids) = (meta.labels().unwrap(), meta.objects().unwrap());
        let wanted = |label: &u16| ids.get(usize::from(*label)).copied().unwrap_or(0) as u16;
        assert!(labels.as_slice().iter().map(wanted).eq(mask.iter().copied()), "mask of frame {i}");
        while table.peek().is_some_and(|row| numbers(row)[0] == i as f64) {
            let row = numbers(&table.next().unwrap());
            let inside: Vec<_> = (0..mask.len()).filter(|&p| f64::from(mask[p]) == row[2]).collect();
            let (xs, ys) = (inside.iter().map(|p| p % width), inside.iter().map(|p| p / width));
            let bounds =
                [xs.clone().min(), ys.clone().min(), xs.max(), ys.max()].map(|side| side.unwrap() as f64);
            assert_eq!(row[3], inside.len() as f64, "area in frame {i}");
            assert_eq!(
                row[4..8],
                [bounds[0], bounds[1], bounds[2] + 1.0, bounds[3] + 1.0],
                "box in frame {i}"
            );
            assert_eq!(row[1], meta_time(frame), "time of frame {i}");
            seen += 1;
        }
    }
    assert!(table.next().is_none() && seen > 60, "{seen} frames with the object");
    assert_eq!((&said["object_rows"], &said["objects"][0]["class"]), (&seen.into(), &"bunny".into()));
    assert_eq!(said["objects"][0]["frames"], seen);

    // A run without objects replaces all of that.
    done(&[&[input.as_str(), &folder.text("out")][..], &settings].concat());
    let mut names: Vec<_> =
        std::fs::read_dir(folder.path("out")).unwrap().map(|one| one.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["adjacency.parquet", "clip.json", "events.parquet", "labels.mkv", "regions.parquet"]);

    let refused = |more: &[&str], reason: &str| {
        let (status, last) =
            run(&[&[input.as_str(), &folder.text("other"), "--objects", &boxes][..], more].concat());
        assert!(
            status == 2 && last["error"].as_str().unwrap_or_default().contains(reason),
            "{status} {last}"
        );
    };
    refused(&["temporal=false"], "leave temporal=false out");
    std::fs::write(&boxes, r#"[{"frame": 0, "box": [1, 2, 3]}]"#).unwrap();
    refused(&[], "box 0: box must be [x, y, width, height]");
    assert!(!folder.path("other").exists());
    let output = program(&[input.as_str(), &folder.text("other"), "--objects", &boxes, "--cuts", &boxes]);
    assert_eq!(output.status.code(), Some(2));
}

/// Time of a frame in ns, as the tables have it.
fn meta_time(frame: &gst::Buffer) -> f64 {
    frame.pts().unwrap().nseconds() as f64
}
