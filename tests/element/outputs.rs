// SPDX-License-Identifier: MPL-2.0
//! The examples that write files lose nothing of their user's, whatever is named as output.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::examples::example;

/// A folder of pictures, with links to them, that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("outputs-{name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("frames")).unwrap();
        for number in 0..2u8 {
            let picture =
                image::RgbImage::from_fn(48, 32, |x, y| image::Rgb([x as u8 * 5, y as u8 * 7, number]));
            picture.save(path.join(format!("frames/{number}.png"))).unwrap();
        }
        symlink("frames", path.join("link")).unwrap();
        symlink("frames/0.png", path.join("photo.png")).unwrap();
        fs::hard_link(path.join("frames/0.png"), path.join("twin.png")).unwrap();
        fs::create_dir(path.join("full")).unwrap();
        fs::write(path.join("full/00000.png"), "somebody's").unwrap();
        fs::write(path.join("notes.png"), "somebody's").unwrap();
        Self(path)
    }

    /// Every file with its content, every link with its target.
    fn all(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let (mut found, mut waiting) = (BTreeMap::new(), vec![self.0.clone()]);
        while let Some(folder) = waiting.pop() {
            for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_symlink() {
                    found.insert(
                        path.clone(),
                        fs::read_link(&path).unwrap().to_string_lossy().into_owned().into(),
                    );
                } else if path.is_dir() {
                    waiting.push(path);
                } else {
                    found.insert(path.clone(), fs::read(&path).unwrap());
                }
            }
        }
        found
    }

    fn run(&self, name: &str, words: &[&str]) -> Result<(), String> {
        let output = Command::new(example(name)).args(words).current_dir(&self.0).output().unwrap();
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    /// Runs with and without `--force`: refused both times with words that say what to do, and nothing changes.
    #[track_caller]
    fn refused(&self, example: &str, words: &[&str]) {
        let before = self.all();
        for force in [&[][..], &["--force"]] {
            let error = self.run(example, &[words, force].concat()).unwrap_err();
            assert!(error.contains("name "), "{example} {words:?}: {error}");
            assert!(self.all() == before, "{example} {words:?} changed something");
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn segment_image_writes_new_files() {
    let scratch = Scratch::new("image");
    for output in
        ["frames/0.png", "photo.png", "twin.png", "link/0.png", "frames/../frames/0.png", "frames", "link/"]
    {
        scratch.refused("segment_image", &["frames/0.png", output]);
        scratch.refused("segment_image", &["frames/0.png", "new.png", "--labels", output]);
    }
    scratch.refused("segment_image", &["photo.png", "twin.png"]);
    scratch.refused("segment_image", &["frames/0.png", "new.png", "--labels", "new.png"]);
    let before = scratch.all();
    assert!(scratch.run("segment_image", &["frames/0.png", "notes.png"]).unwrap_err().contains("--force"));
    assert!(scratch.all() == before);
    scratch
        .run("segment_image", &["frames/0.png", "notes.png", "--labels", "labels.png", "--force"])
        .unwrap();
    for name in ["notes.png", "labels.png"] {
        assert_eq!(image::image_dimensions(scratch.0.join(name)).unwrap(), (48, 32));
    }
    scratch.refused("segment_image", &["frames/0.png", "new.png", "--svg", "photo.png"]);
    scratch.refused("segment_image", &["frames/0.png", "new.png", "--svg", "new.png"]);
    scratch.run("segment_image", &["frames/0.png", "drawn.png", "--svg", "drawn.svg"]).unwrap();
    let drawing = fs::read_to_string(scratch.0.join("drawn.svg")).unwrap();
    assert!(
        drawing.contains("width=\"48\" height=\"32\"") && drawing.contains("data-label=\"0\""),
        "{drawing}"
    );
    // One label map, one more picture and its drawing.
    assert_eq!(scratch.all().len(), before.len() + 3);
}

#[test]
fn track_video_writes_a_new_folder() {
    let scratch = Scratch::new("video");
    for output in [
        "frames",
        "link",
        "link/",
        ".",
        "frames/out",
        "link/out",
        "frames/../frames",
        "photo.png",
        "notes.png",
    ] {
        scratch.refused("track_video", &["frames", output]);
    }
    scratch.refused("track_video", &["link", "frames"]);
    let before = scratch.all();
    assert!(scratch.run("track_video", &["frames", "full"]).unwrap_err().contains("--force"));
    assert!(scratch.all() == before);
    fs::write(scratch.0.join("full/diary.txt"), "diary").unwrap();
    scratch.run("track_video", &["frames", "full", "--force"]).unwrap();
    scratch.run("track_video", &["frames", "new"]).unwrap();
    for folder in ["full", "new"] {
        assert_eq!(image::image_dimensions(scratch.0.join(folder).join("00001.png")).unwrap(), (48, 32));
    }
    assert_eq!(fs::read(scratch.0.join("full/diary.txt")).unwrap(), b"diary");
}
