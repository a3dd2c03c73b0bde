// SPDX-License-Identifier: MPL-2.0
//! Clips that `SUPERPIXEL_CLIPS` names, as pictures: each folder in that folder is one, its PNG and JPEG files are its frames.

use std::path::{Path, PathBuf};

use crate::pictures::Buffer;
use gstsuperpixel::image::{FrameInfo, Geometry, PixelFormat};

/// Name and frames of each clip. Without a folder it prints that `test` was skipped.
pub fn of_folder(test: &str) -> Option<Vec<(String, Vec<PathBuf>)>> {
    let Some(folder) = std::env::var_os("SUPERPIXEL_CLIPS").filter(|folder| !folder.is_empty()) else {
        println!("{test}: skipped: SUPERPIXEL_CLIPS names no folder");
        return None;
    };
    let clip = |path: PathBuf| {
        let files = std::fs::read_dir(&path).into_iter().flatten().map(|entry| entry.unwrap().path());
        let mut frames: Vec<_> =
            files.filter(|p| p.extension().is_some_and(|e| e == "jpg" || e == "png")).collect();
        frames.sort();
        (path.display().to_string(), frames)
    };
    let clips: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| clip(entry.unwrap().path())).collect();
    assert!(clips.iter().any(|(_, frames)| !frames.is_empty()), "no folder of pictures in the folder");
    Some(clips)
}

/// A frame of a clip.
pub fn frame(path: &Path) -> Buffer {
    let picture = image::open(path).unwrap().to_rgb8();
    let geometry = Geometry::new(picture.width(), picture.height()).unwrap();
    let strides = vec![3 * picture.width() as usize];
    Buffer {
        info: FrameInfo::new(geometry, PixelFormat::Rgb),
        planes: vec![picture.into_raw()],
        strides,
        mask: None,
        prior: None,
    }
}
