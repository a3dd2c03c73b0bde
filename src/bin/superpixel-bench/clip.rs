// SPDX-License-Identifier: MPL-2.0
//! What is segmented: a picture, a folder of pictures that are the frames of a clip, or a picture that is made.

use std::path::PathBuf;

use gstsuperpixel::image::Geometry;

use super::{Args, Format, Result, picture};

/// What there is to say of a clip that ended; none does.
pub const NO_FRAMES: &str = "the clip has no frames";

/// Frames as often as wanted.
pub type Frames<'a> = Box<dyn Iterator<Item = &'a [u8]> + 'a>;

/// The frames of a case as its format has them, at least one.
pub struct Clip {
    pub frames: Vec<Vec<u8>>,
}

impl Clip {
    /// To the clip's end, back to its start and so on.
    pub fn there_and_back(&self) -> Frames<'_> {
        let between = self.frames.len().saturating_sub(2);
        let back = self.frames.iter().skip(1).take(between).rev();
        Box::new(self.frames.iter().chain(back).cycle().map(Vec::as_slice))
    }
}

/// Reads or makes pictures and lays them out for a size.
pub struct Pictures {
    files: Vec<image::RgbaImage>,
}

impl Pictures {
    pub fn open(args: &Args) -> Result<Self> {
        let Some(path) = &args.picture else { return Ok(Self { files: Vec::new() }) };
        let mut paths = vec![path.clone()];
        if path.is_dir() {
            let entries = std::fs::read_dir(path)?.map(|entry| Ok(entry?.path()));
            paths = entries.collect::<Result<_>>()?;
            paths.retain(|path| image::ImageFormat::from_path(path).is_ok());
            paths.sort();
            if paths.is_empty() {
                return Err(format!("{}: no picture in this folder", path.display()).into());
            }
        }
        let open = |path: &PathBuf| match image::open(path) {
            Ok(picture) => Ok(picture.to_rgba8()),
            Err(e) => Err(format!("{}: {e}", path.display())),
        };
        Ok(Self { files: paths.iter().map(open).collect::<Result<_, _>>()? })
    }

    /// The frames of a size in a format.
    pub fn clip(&self, size: Geometry, format: Format) -> Clip {
        let scaled = |file: &image::RgbaImage| {
            if file.dimensions() == (size.width(), size.height()) {
                return file.as_raw().clone();
            }
            let filter = image::imageops::FilterType::CatmullRom;
            image::imageops::resize(file, size.width(), size.height(), filter).into_raw()
        };
        let mut frames: Vec<_> = self.files.iter().map(|file| format.pack(&scaled(file), size)).collect();
        if frames.is_empty() {
            frames.push(format.pack(&picture::rgba(size.width(), size.height()), size));
        }
        Clip { frames }
    }
}
