// SPDX-License-Identifier: MPL-2.0
//! Parts by themselves: label codec, descriptions of properties, texts to copy.

use std::ffi::OsStr;
use std::path::PathBuf;

use gst::prelude::*;
use gstsuperpixel::meta::SuperpixelMeta;
use superpixel_studio::encode::labels;
use superpixel_studio::problem::Problem;
use superpixel_studio::properties::{self, Kind};
use superpixel_studio::script::{self, Pipeline};
use superpixel_studio::source::Source;

fn init() {
    superpixel_studio::init().unwrap();
}

/// Label maps of a moving test picture, with settings.
fn maps(settings: &str, frames: usize) -> Vec<gstsuperpixel::meta::LabelMap> {
    init();
    let line = format!(
        "videotestsrc num-buffers={frames} pattern=ball ! video/x-raw,width=203,height=117 ! superpixel {settings} \
         overlay=none ! appsink name=sink sync=false"
    );
    let pipeline = gst::parse::launch(&line).unwrap().downcast::<gst::Pipeline>().unwrap();
    let sink = pipeline.by_name("sink").unwrap().downcast::<gst_app::AppSink>().unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    let map = |_| {
        let sample = sink.pull_sample().unwrap();
        SuperpixelMeta::from_buffer(sample.buffer().unwrap()).unwrap().labels().unwrap()
    };
    let maps = (0..frames).map(map).collect();
    pipeline.set_state(gst::State::Null).unwrap();
    maps
}

#[test]
fn label_maps_come_back_as_they_were() {
    for settings in
        ["superpixel-size=4", "superpixel-size=16", "regions=2", "connectivity=false", "algo=quickshift"]
    {
        for map in maps(settings, 3) {
            let bytes = labels::encode(&map);
            let (width, height) = (map.width() as usize, map.height() as usize);
            assert!(labels::decode(&bytes, width, height).as_deref() == Some(map.as_slice()), "{settings}");
            assert!(bytes.len() < map.as_slice().len(), "{settings}: {} bytes", bytes.len());
            // Bytes of another length are no map of this size.
            assert_eq!(labels::decode(&bytes[..bytes.len() - 1], width, height), None);
            assert_eq!(labels::decode(&[&bytes[..], &[0]].concat(), width, height), None);
            assert!(labels::decode(&bytes, width - 1, height).is_none_or(|other| other != map.as_slice()));
        }
    }
}

#[test]
fn bytes_that_are_no_map_are_refused() {
    for bytes in
        [&[] as &[u8], &[255; 8], &[128], &[5, 0], &[0, 5, 2], &[0, 4, 1], &[0, 4, 255, 255, 255, 255, 15]]
    {
        assert_eq!(labels::decode(bytes, 4, 1), None, "{bytes:?}");
    }
    assert_eq!(labels::decode(&[0, 4, 6], 4, 1), Some(vec![3; 4]));
}

#[test]
fn every_writable_property_is_described_but_those_that_the_studio_sets() {
    init();
    let element = gst::ElementFactory::make("superpixel").build().unwrap();
    let described = properties::describe(&element);
    let own = |spec: &gst::glib::ParamSpec| {
        spec.owner_type() == element.type_() && spec.flags().contains(gst::glib::ParamFlags::WRITABLE)
    };
    let all: Vec<_> =
        element.list_properties().iter().filter(|s| own(s)).map(|s| s.name().to_owned()).collect();
    let missing: Vec<_> = all.iter().filter(|name| described.iter().all(|d| d.name != **name)).collect();
    let mut missing: Vec<_> = missing.into_iter().map(String::as_str).collect();
    missing.sort_unstable();
    // The studio sets five, the machine's owner the device and masks.
    let masks = ["mask", "mask-alpha", "mask-missing", "mask-rectangle", "mask-roi-types", "mask-values"];
    missing.retain(|name| !masks.contains(name));
    assert_eq!(missing, ["cuda-device-id", "events", "labels", "neighbors", "overlay", "region-table"]);
    assert!(described.len() > 25);
    for property in described {
        assert!(!property.nick.is_empty() && !property.text.is_empty(), "{}", property.name);
        let set = properties::check_json(&element, &property.name, &property.default).unwrap();
        assert_eq!(set.value, property.default, "{}", property.name);
        if let Kind::Integer { min, max } = property.kind {
            for beyond in [min - 1, max + 1] {
                assert!(
                    properties::check_json(&element, &property.name, &beyond.into()).is_err(),
                    "{}",
                    property.name
                );
            }
        }
    }
}

#[test]
fn command_lines_and_pages_are_checked_alike() {
    init();
    let element = gst::ElementFactory::make("superpixel").build().unwrap();
    for (text, value) in [
        ("superpixel-size=24", serde_json::json!(24)),
        ("compactness=0.5", serde_json::json!(0.5)),
        ("temporal=false", serde_json::json!(false)),
        ("algo=quickshift", serde_json::json!("quickshift")),
    ] {
        assert_eq!(properties::check_text(&element, text).unwrap().value, value);
    }
    for text in
        ["superpixel-size", "superpixel-size=3", "overlay=none", "name=x", "algo=x", "compactness=nan", "=1"]
    {
        assert!(properties::check_text(&element, text).is_err(), "{text}");
    }
}

#[test]
fn a_shell_gets_names_of_any_kind_through() {
    init();
    for name in [
        "clip.mp4",
        "a b.mp4",
        "it's.mp4",
        "q\".mp4",
        "back\\slash.mp4",
        "$(touch x)`y` ! filesink.mp4",
        "-x;&.mp4",
        "a ! superpixel b.mp4",
        "a\nb.mp4",
    ] {
        let path = format!("/no such folder/{name}");
        let source = Source::File(path.clone().into());
        let copied = Pipeline::new(&source, &["superpixel-size=24".into()], "labels");
        let text = copied.text();
        let pipeline = gst::parse::launch(&text).unwrap().downcast::<gst::Pipeline>().unwrap();
        let file =
            pipeline.iterate_recurse().find(|e| e.factory().is_some_and(|f| f.name() == "filesrc")).unwrap();
        assert_eq!(file.property::<String>("location"), path, "{text}");
        // The words that a shell makes of the line are the pipeline again.
        let line = script::launch(&copied).replacen("gst-launch-1.0 ", "printf '%s ' ", 1);
        let words = std::process::Command::new("sh").arg("-c").arg(line).output().unwrap();
        let words = String::from_utf8(words.stdout).unwrap();
        assert_eq!(words.trim_end(), text);
        // The program opens the same file, and finds the element by its name.
        let program = script::python(&copied);
        let literal = program.split_once("Gst.parse_launch(").unwrap().1.split_once(")\n").unwrap().0;
        let text: String = serde_json::from_str(literal).unwrap();
        let pipeline = gst::parse::launch(&text).unwrap().downcast::<gst::Pipeline>().unwrap();
        let file =
            pipeline.iterate_recurse().find(|e| e.factory().is_some_and(|f| f.name() == "filesrc")).unwrap();
        assert_eq!(file.property::<String>("location"), path, "{text}");
        assert_eq!(pipeline.by_name("superpixel").unwrap().factory().unwrap().name(), "superpixel");
    }
}

#[test]
fn a_name_of_any_bytes_is_copied_as_its_address() {
    use std::os::unix::ffi::OsStrExt;
    init();
    let source = Source::File(PathBuf::from(OsStr::from_bytes(b"/clips/\xffa b.mp4")));
    let text = Pipeline::new(&source, &[], "none").text();
    assert!(text.contains("uri=file:///clips/%FFa%20b.mp4 !"), "{text}");
    gst::parse::launch(&text).unwrap();
}

/// An address may contain secrets of its user: they are used for playing and never shown.
#[test]
fn users_and_passwords_of_addresses_stay_with_the_source() {
    init();
    for (uri, shown) in [
        ("http://user:secret@127.0.0.1:1/cam", "http://127.0.0.1:1/cam"),
        ("rtsp://user:sec@ret@host/cam?password=secret#secret", "rtsp://host/cam"),
        ("rtsp://secret@[::1]:554/a", "rtsp://[::1]:554/a"),
        ("http://host/clip.mp4?token=secret&x=1", "http://host/clip.mp4"),
        ("http://user:se%63ret@host", "http://host/"),
        ("http://host/user", "http://host/user"),
        // No address that can be taken apart.
        ("rtsp://user:pass/secret@host/x", "rtsp://"),
    ] {
        let source = Source::parse(OsStr::new(uri));
        assert_eq!(source.name(), shown);
        assert_eq!(source.uri().unwrap().as_deref(), Some(uri), "played");
        let copied = Pipeline::new(&source, &[], "none");
        for text in [source.name(), script::launch(&copied), script::python(&copied)] {
            assert!(!text.contains("secret") && !text.contains("se%63ret"), "{text}");
        }
        let error =
            gst::glib::Error::new(gst::ResourceError::NotFound, &format!("Cannot open {uri}: secret"));
        let problem = Problem::of_error(&error, None, false, &source).to_string();
        assert!(uri == shown || !problem.contains("secret"), "{problem}");
    }
    // Words that have nothing of it stay.
    let source = Source::parse(OsStr::new("http://user:secret@host/x"));
    assert_eq!(source.censored("Not found"), "Not found");
}

#[test]
fn addresses_of_files_are_files() {
    assert_eq!(Source::parse(OsStr::new("file:///a%20b.mp4")), Source::File("/a b.mp4".into()));
    assert!(matches!(Source::parse(OsStr::new("file://host/a.mp4")), Source::Uri(_)));
}

#[test]
fn what_the_machine_has_is_the_most_that_may_be_set() {
    init();
    let element = gst::ElementFactory::make("superpixel").build().unwrap();
    let cores = std::thread::available_parallelism().unwrap().get();
    let threads = properties::describe(&element).into_iter().find(|p| p.name == "threads").unwrap();
    assert_eq!(threads.kind, Kind::Integer { min: 0, max: cores as i64 });
    assert!(properties::check_json(&element, "threads", &cores.into()).is_ok());
    let words = properties::check_json(&element, "threads", &(cores + 1).into()).unwrap_err();
    assert!(words.contains(&format!("0 to {cores}")), "{words}");
    // The user who starts the studio may exceed a viewer's limit, and gets all cores.
    assert_eq!(properties::check_text(&element, "threads=1024").unwrap().value, serde_json::json!(cores));
    assert!(properties::check_text(&element, "threads=1025").is_err());
    assert_eq!(properties::check_text(&element, "cuda-device-id=1").unwrap().value, serde_json::json!(1));
    assert!(properties::check_json(&element, "cuda-device-id", &1.into()).is_err());
}

#[test]
fn sources_are_told_apart() {
    let parse = |text: &str| Source::parse(OsStr::new(text));
    assert_eq!(parse("camera"), Source::Camera);
    assert_eq!(parse("rtsp://host/x"), Source::Uri("rtsp://host/x".into()));
    assert!(matches!(parse("clip.mp4"), Source::File(path) if path.is_absolute()));
    assert!(matches!(parse("://x"), Source::File(_)));
    assert!(parse("rtsp://host/x").is_live() && !parse("http://host/x").is_live());
}
