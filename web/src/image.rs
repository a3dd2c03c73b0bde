// SPDX-License-Identifier: MPL-2.0
//! Images of JavaScript: `ImageData`, or an object with `data`, `width`, `height` and, where it is not RGBA, `format`.

use gstsuperpixel::image::{Frame, FrameInfo, Geometry, MAX_SIDE, MOST_PLANES, PixelFormat, YuvMatrix};
use wasm_bindgen::JsValue;

use crate::errors::{Result, thrown};
use crate::values::{bytes_of, check_object, copy, property, truth, whole, word};

/// Names of the matrices between Y'CbCr and R'G'B', as WebCodecs has them, and one more.
pub const MATRICES: [(&str, YuvMatrix); 6] = [
    ("bt470bg", YuvMatrix::Bt601),
    ("smpte170m", YuvMatrix::Bt601),
    ("bt601", YuvMatrix::Bt601),
    ("bt709", YuvMatrix::Bt709),
    ("bt2020-ncl", YuvMatrix::Bt2020),
    ("smpte240m", YuvMatrix::Smpte240m),
];

/// An image in memory of our own.
pub struct Image {
    /// Layout of its bytes.
    pub info: FrameInfo,
    /// Planes one after another, rows without gaps.
    pub bytes: Vec<u8>,
}

impl Image {
    /// Copies an image, into memory that is taken from `reused`.
    pub fn read(image: &JsValue, reused: &mut Vec<u8>) -> Result<Self> {
        check_object("image", image)?;
        let side = |name| whole(&format!("image.{name}"), &property(image, name)?, 1, MAX_SIDE);
        let geometry = Geometry::new(side("width")?, side("height")?).map_err(thrown)?;
        let mut info = FrameInfo::new(geometry, format(image)?);
        let (matrix, full_range) = (property(image, "matrix")?, property(image, "fullRange")?);
        if !matrix.is_undefined() {
            let index = word("image.matrix", MATRICES.iter().map(|(name, _)| *name), &matrix)?;
            info.matrix = MATRICES[index].1;
        }
        if !full_range.is_undefined() {
            info.full_range = truth("image.fullRange", &full_range)?;
        }
        let needed = info.format.planes(geometry).map(|(row, rows)| row as u64 * rows as u64).sum();
        let bytes = bytes_of("image.data", &property(image, "data")?, info.format.sample().bytes)?;
        let name = format!("image.data of {geometry} {}", info.format.name());
        let mut all = std::mem::take(reused);
        all.truncate(needed as usize);
        copy(&name, &bytes, needed, &mut all)?;
        Ok(Self { info, bytes: all })
    }

    /// The image as the library takes it.
    pub fn frame(&self) -> Result<Frame<'_>> {
        let (planes, strides) = self.planes();
        let count = self.info.format.layout().planes;
        Frame::new(self.info, &planes[..count], &strides[..count]).map_err(thrown)
    }

    fn planes(&self) -> ([&[u8]; MOST_PLANES], [usize; MOST_PLANES]) {
        let (mut planes, mut strides): ([&[u8]; MOST_PLANES], [usize; MOST_PLANES]) = Default::default();
        let mut rest = &self.bytes[..];
        for (i, (row, rows)) in self.info.format.planes(self.info.geometry).enumerate() {
            (planes[i], rest) = rest.split_at(row * rows);
            strides[i] = row;
        }
        (planes, strides)
    }

    /// Lengths of rows and the planes themselves, to draw on.
    pub fn planes_mut(&mut self) -> (Vec<&mut [u8]>, Vec<usize>) {
        let (mut planes, mut strides) = (Vec::new(), Vec::new());
        let mut rest = &mut self.bytes[..];
        for (row, rows) in self.info.format.planes(self.info.geometry) {
            let (plane, others) = rest.split_at_mut(row * rows);
            planes.push(plane);
            strides.push(row);
            rest = others;
        }
        (planes, strides)
    }
}

/// The format by its name; of `ImageData` it is RGBA.
fn format(image: &JsValue) -> Result<PixelFormat> {
    let format = property(image, "format")?;
    if format.is_undefined() {
        return Ok(PixelFormat::Rgba);
    }
    let index = word("image.format", PixelFormat::ALL.iter().map(|format| format.name()), &format)?;
    Ok(PixelFormat::ALL[index])
}
