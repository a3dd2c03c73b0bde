// SPDX-License-Identifier: MPL-2.0
//! The rule of outputs: a file that the program did not write is never lost, whatever is at the output's path.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use superpixel_output::{Error, Folder, NewFile, Request, Result, clip, place};

const SUMMARY: &str =
    r#"{"schema": 1, "frames": 1, "width": 8, "height": 8, "tracks": 1, "regions": 1, "adjacency": 0}"#;

/// A folder that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("output-{name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Everything in it: contents of files, targets of links.
    fn all(&self) -> BTreeMap<PathBuf, String> {
        fn walk(folder: &Path, all: &mut BTreeMap<PathBuf, String>) {
            for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                let text = if entry.is_symlink() {
                    format!("-> {}", fs::read_link(&entry).unwrap().display())
                } else if entry.is_dir() {
                    walk(&entry, all);
                    "folder".to_owned()
                } else {
                    fs::read_to_string(&entry).unwrap()
                };
                all.insert(entry, text);
            }
        }
        let mut all = BTreeMap::new();
        walk(&self.0, &mut all);
        all
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn begin(output: &Path, inputs: &[&Path], force: bool) -> Result<Folder> {
    Folder::begin(&Request { path: output, inputs, force }, clip::LAYOUT)
}

/// Writes a whole folder, whose label maps hold `text`.
fn make(output: &Path, force: bool, text: &str) -> Result<()> {
    let folder = begin(output, &[], force)?;
    fs::write(folder.path(clip::LABELS), text).unwrap();
    fs::write(folder.path(clip::SUMMARY), SUMMARY).unwrap();
    folder.finish()
}

fn write(output: &Path, inputs: &[&Path], force: bool, text: &str) -> Result<()> {
    let is_own = |file: &mut fs::File| Ok(std::io::read_to_string(file)?.starts_with("ours"));
    NewFile::write(&Request { path: output, inputs, force }, is_own, text.as_bytes())
}

#[track_caller]
fn refused<T>(result: Result<T>, words: &str) {
    match result {
        Err(Error::Refused(text)) => assert!(text.contains(words), "{text}"),
        Err(error) => panic!("{error:?}"),
        Ok(_) => panic!("not refused"),
    }
}

#[test]
fn outputs_that_overlap_inputs_are_refused_even_with_force() {
    let scratch = Scratch::new("overlap");
    let input = scratch.write("videos/a.mp4", "film");
    scratch.write("videos/family/diary.txt", "diary");
    let folder = scratch.path("videos");
    symlink(&folder, scratch.path("link")).unwrap();
    symlink("videos/a.mp4", scratch.path("film")).unwrap();
    symlink("film", scratch.path("film2")).unwrap();
    fs::create_dir(scratch.path("twins")).unwrap();
    fs::hard_link(&input, scratch.path("twin.mp4")).unwrap();
    fs::hard_link(&input, scratch.path("twins/labels.mkv")).unwrap();
    fs::create_dir_all(scratch.path("through/here")).unwrap();
    symlink(&input, scratch.path("through/here/a.mp4")).unwrap();
    symlink("here", scratch.path("through/there")).unwrap();
    scratch.write("deep/.out.partial/out/a.mp4", "film");
    let before = scratch.all();
    let path = |name: &str| scratch.path(name);
    let pairs = [
        ("videos/a.mp4", "videos"),
        ("videos/a.mp4", "videos/"),
        ("videos/a.mp4", "videos/."),
        ("videos/a.mp4", "videos/family/.."),
        ("videos/a.mp4", "link/../videos"),
        ("videos/a.mp4", "link/family/.."),
        ("link/a.mp4", "videos"),
        ("film2", "videos"),
        ("videos/a.mp4", "videos/a.mp4"),
        ("videos/a.mp4", "link/a.mp4"),
        ("videos/a.mp4", "twin.mp4"),
        ("film", "twin.mp4"),
        ("videos/a.mp4", "twins"),
        ("videos/a.mp4", "videos/a.mp4/out"),
        ("film2", "link/a.mp4/more/out"),
        ("videos", "videos/out"),
        ("link", "videos/family/more/out"),
        ("videos", "link/out"),
        ("link", "videos"),
        ("videos/a.mp4", ""),
        ("through/here/a.mp4", "through"),
        ("through/there/a.mp4", "through"),
        ("through/there/a.mp4", "through/here"),
        ("deep/.out.partial/out/a.mp4", "deep/out"),
    ];
    for (input, output) in pairs {
        for force in [false, true] {
            let (input, output) = (path(input), path(output));
            refused(place::keep_apart(&input, &output), "name another output");
            refused(begin(&output, &[Path::new("/dev/null"), &input], force), "name another output");
            refused(write(&output, &[&input], force, "ours"), "name another output");
        }
    }
    assert_eq!(scratch.all(), before);
    for (input, output) in [("videos/a.mp4", "videos/b"), ("videos", "videos2"), ("no/such", "no/other")] {
        place::keep_apart(&path(input), &path(output)).unwrap();
    }
}

#[test]
fn only_what_the_program_made_is_replaced() {
    let scratch = Scratch::new("replace");
    let out = scratch.path("deep/out");
    make(&out, false, "one").unwrap();
    make(&out, false, "two").unwrap();
    assert_eq!(fs::read_to_string(out.join("labels.mkv")).unwrap(), "two");
    assert_eq!(fs::read_dir(scratch.path("deep")).unwrap().count(), 1);

    // A file that somebody has put into it.
    scratch.write("deep/out/notes.txt", "notes");
    let before = scratch.all();
    refused(make(&out, false, "three"), "notes.txt");
    assert_eq!(scratch.all(), before);
    make(&out, true, "three").unwrap();
    assert_eq!(fs::read_to_string(out.join("notes.txt")).unwrap(), "notes");
    assert_eq!(fs::read_to_string(out.join("labels.mkv")).unwrap(), "three");

    // Our names, without our marker or with a folder among them.
    scratch.write("names/labels.mkv", "somebody's");
    scratch.write("wrong/clip.json", r#"{"schema": 7}"#);
    scratch.write("folders/labels.mkv/film", "somebody's");
    scratch.write("file", "somebody's");
    fs::create_dir(scratch.path("empty")).unwrap();
    symlink("empty", scratch.path("link")).unwrap();
    symlink("nowhere", scratch.path("dangling")).unwrap();
    let before = scratch.all();
    for (name, words) in [
        ("names", "--force"),
        ("wrong", "--force"),
        ("folders", "--force"),
        ("file", "no folder"),
        ("link", "symbolic link"),
        ("link/", "symbolic link"),
        ("dangling", "symbolic link"),
    ] {
        refused(make(&scratch.path(name), false, "four"), words);
    }
    for (name, words) in [("folders", "is a folder"), ("file", "no folder"), ("link", "symbolic link")] {
        refused(make(&scratch.path(name), true, "four"), words);
    }
    assert_eq!(scratch.all(), before);
    make(&scratch.path("names"), true, "four").unwrap();
    make(&scratch.path("empty"), false, "five").unwrap();
    assert_eq!(fs::read_to_string(scratch.path("empty/labels.mkv")).unwrap(), "five");
}

#[test]
fn files_are_replaced_by_their_content_or_by_force() {
    let scratch = Scratch::new("files");
    let path = scratch.path("new/list.json");
    write(&path, &[], false, "ours 1").unwrap();
    write(&path, &[], false, "ours 2").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "ours 2");
    let foreign = scratch.write("foreign", "somebody's");
    symlink("foreign", scratch.path("link")).unwrap();
    fs::create_dir(scratch.path("folder")).unwrap();
    let before = scratch.all();
    refused(write(&foreign, &[], false, "ours"), "--force");
    for force in [false, true] {
        refused(write(&scratch.path("link"), &[], force, "ours"), "symbolic link");
        refused(write(&scratch.path("folder"), &[], force, "ours"), "no file");
        refused(write(Path::new("/dev/null"), &[], force, "ours"), "no file");
        refused(write(Path::new("/"), &[], force, "ours"), "no name");
    }
    assert_eq!(scratch.all(), before);
    write(&foreign, &[], true, "ours").unwrap();
    assert_eq!(fs::read_to_string(&foreign).unwrap(), "ours");
}

#[test]
fn an_output_that_appears_meanwhile_is_not_lost() {
    let scratch = Scratch::new("meanwhile");
    let (out, file) = (scratch.path("out"), scratch.path("file"));
    let folder = begin(&out, &[], true).unwrap();
    scratch.write("out/notes.txt", "notes");
    refused(folder.finish(), "meanwhile");
    let new = NewFile::begin(&Request { path: &file, inputs: &[], force: true }, |_| Ok(true)).unwrap();
    fs::write(new.path(), "ours").unwrap();
    scratch.write("file", "somebody's");
    refused(new.finish(), "meanwhile");
    assert_eq!(scratch.all().into_values().collect::<Vec<_>>(), ["somebody's", "folder", "notes"]);

    // Into a folder that is about to be replaced.
    let own = scratch.path("own");
    make(&own, false, "one").unwrap();
    let folder = begin(&own, &[], false).unwrap();
    fs::write(folder.path(clip::SUMMARY), SUMMARY).unwrap();
    scratch.write("own/notes.txt", "notes");
    scratch.write("own/more/notes.txt", "more notes");
    folder.finish().unwrap();
    let mut names: Vec<_> = fs::read_dir(&own).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["clip.json", "more", "notes.txt"]);
    assert_eq!(fs::read_to_string(own.join("more/notes.txt")).unwrap(), "more notes");
    assert!(!scratch.path(".own.partial").exists());
}

#[test]
fn one_process_at_a_time_writes_an_output() {
    let scratch = Scratch::new("lock");
    let out = scratch.path("out");
    let first = begin(&out, &[], false).unwrap();
    fs::write(first.path(clip::LABELS), "first").unwrap();
    let error = begin(&out, &[], true).unwrap_err();
    let who = format!("process {}", std::process::id());
    assert!(matches!(&error, Error::Busy(text) if text.contains(&who)), "{error:?}");
    assert_eq!(fs::read_to_string(first.path(clip::LABELS)).unwrap(), "first");
    drop(first);
    assert!(scratch.all().is_empty());
    make(&out, false, "second").unwrap();
}

#[test]
fn leftovers_of_dead_processes_are_swept_and_nothing_else() {
    let scratch = Scratch::new("sweep");
    let out = scratch.path("out");
    let lock = format!("{:255}\n", r#"{"superpixel": "lock", "process": 999999, "host": "x"}"#);
    let left = || {
        scratch.write(".out.partial/.superpixel-lock", &lock);
        scratch.write(".out.partial/out/labels.mkv", "half");
    };
    left();
    make(&out, false, "whole").unwrap();
    assert_eq!(scratch.all().len(), 3);

    // It died while it replaced an earlier output on a file system that cannot exchange names.
    left();
    fs::rename(&out, scratch.path(".out.partial/.superpixel-old")).unwrap();
    drop(begin(&out, &[], false).unwrap());
    assert_eq!(fs::read_to_string(out.join("labels.mkv")).unwrap(), "whole");
    assert_eq!(scratch.all().len(), 3);

    // It died before it had written who it is, or as soon as it had made the folder.
    scratch.write(".out.partial/.superpixel-lock", "");
    make(&out, false, "whole").unwrap();
    fs::create_dir(scratch.path(".out.partial")).unwrap();
    make(&out, false, "whole").unwrap();
    assert_eq!(scratch.all().len(), 3);

    // Folders of somebody else that look alike.
    let looks_alike: [&dyn Fn(); 5] = [
        &|| drop(scratch.write(".out.partial", "a file")),
        &|| drop(scratch.write(".out.partial/out/labels.mkv", "somebody's")),
        &|| {
            scratch.write(".out.partial/.superpixel-lock", "");
            scratch.write(".out.partial/out/labels.mkv", "somebody's");
        },
        &|| {
            left();
            scratch.write(".out.partial/out/notes.txt", "notes");
        },
        &|| {
            left();
            scratch.write(".out.partial/film.mp4", "film");
        },
    ];
    for (number, make_it) in looks_alike.iter().enumerate() {
        make_it();
        let before = scratch.all();
        refused(make(&out, true, "new"), "move it away");
        let mut after = scratch.all();
        let path = scratch.path(".out.partial/.superpixel-lock");
        // An attempt to lock writes itself into the lock file.
        if let (Some(old), Some(new)) = (before.get(&path), after.get_mut(&path)) {
            new.clone_from(old);
        }
        assert_eq!(after, before, "{number}");
        let _ = fs::remove_file(scratch.path(".out.partial"));
        let _ = fs::remove_dir_all(scratch.path(".out.partial"));
    }
    // A link in its place is not followed.
    scratch.write("elsewhere/.superpixel-lock", &lock);
    scratch.write("elsewhere/out/labels.mkv", "half");
    symlink("elsewhere", scratch.path(".out.partial")).unwrap();
    let before = scratch.all();
    refused(make(&out, true, "new"), "move it away");
    assert_eq!(scratch.all(), before);
}

#[test]
fn a_run_that_fails_leaves_nothing() {
    let scratch = Scratch::new("fails");
    let folder = begin(&scratch.path("a/b/out"), &[], false).unwrap();
    fs::write(folder.path(clip::REGIONS), "half").unwrap();
    drop(folder);
    assert!(scratch.all().is_empty());
    scratch.write("file", "a file");
    assert!(matches!(begin(&scratch.path("file/out"), &[], false), Err(Error::Failed(_))));
    assert_eq!(scratch.all().len(), 1);
}

/// Writes a folder with objects or without, as a run with `--objects` does.
fn make_with(output: &Path, has_objects: bool, force: bool) -> Result<()> {
    let layout = clip::layout(output, has_objects, force);
    let folder = Folder::begin(&Request { path: output, inputs: &[], force }, layout)?;
    fs::write(folder.path(clip::LABELS), "labels").unwrap();
    let mut summary = SUMMARY.to_owned();
    if has_objects {
        fs::write(folder.path(clip::OBJECTS), "ours").unwrap();
        fs::write(folder.path(clip::OBJECT_MASKS), "ours").unwrap();
        summary = summary.replacen('{', "{\"objects\": [], ", 1);
    }
    fs::write(folder.path(clip::SUMMARY), summary).unwrap();
    folder.finish()
}

#[test]
fn files_of_objects_are_ours_where_the_summary_lists_objects() {
    let scratch = Scratch::new("objects");
    let out = scratch.path("out");
    let has = |name: &str| out.join(name).exists();
    // Ours come and go.
    make_with(&out, true, false).unwrap();
    assert!(has(clip::OBJECTS) && has(clip::OBJECT_MASKS));
    make_with(&out, true, false).unwrap();
    make_with(&out, false, false).unwrap();
    assert!(!has(clip::OBJECTS) && !has(clip::OBJECT_MASKS));
    // A user's own of that name stay.
    for name in [clip::OBJECTS, clip::OBJECT_MASKS] {
        fs::write(out.join(name), "mine").unwrap();
        for has_objects in [false, true] {
            refused(make_with(&out, has_objects, false), name);
        }
        make_with(&out, false, true).unwrap();
        assert_eq!(fs::read_to_string(out.join(name)).unwrap(), "mine");
        fs::remove_file(out.join(name)).unwrap();
    }
    // As of all names, with force.
    fs::write(out.join(clip::OBJECTS), "mine").unwrap();
    make_with(&out, true, true).unwrap();
    assert_eq!(fs::read_to_string(out.join(clip::OBJECTS)).unwrap(), "ours");
}
