// SPDX-License-Identifier: MPL-2.0
//! Frames and label planes in host memory: sizes, formats, strides; no pixel arithmetic.

mod codes;
mod format;
mod frame;
mod labels;
pub(crate) mod prior;

use std::fmt;

use crate::error::{Error, Result};

pub(crate) use codes::{PIECE, RowCodes};
pub use format::{Channel, Family, Layout, PackedRgb, PixelFormat, Sample};
pub(crate) use frame::{Band, Mask, RowPair};
pub use frame::{Frame, FrameMut};
pub(crate) use labels::LabelBand;
pub use labels::{Labels, NO_LABEL};
pub use prior::{Prior, PriorSamples};

/// Largest width and height in px.
pub const MAX_SIDE: u32 = 16384;

/// Frame size in px, each side 1 to [`MAX_SIDE`]; only [`Geometry::new`] makes one.
///
/// ```compile_fail,E0616
/// let mut geometry = gstsuperpixel::image::Geometry::new(64, 48).unwrap();
/// geometry.width = 0;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Geometry {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl Geometry {
    /// Checks a frame size.
    ///
    /// # Errors
    ///
    /// [`Error::Geometry`] outside 1x1 to 16384x16384.
    pub fn new(width: u32, height: u32) -> Result<Self> {
        if (1..=MAX_SIDE).contains(&width) && (1..=MAX_SIDE).contains(&height) {
            Ok(Self { width, height })
        } else {
            Err(Error::Geometry { width, height })
        }
    }

    /// Width in px.
    pub fn width(self) -> u32 {
        self.width
    }

    /// Height in px.
    pub fn height(self) -> u32 {
        self.height
    }

    /// Number of pixels.
    pub fn pixels(self) -> usize {
        self.width as usize * self.height as usize
    }
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// Most planes of a format.
pub const MOST_PLANES: usize = 4;

/// Matrix between R'G'B' and Y'CbCr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs)]
pub enum YuvMatrix {
    #[default]
    Bt601,
    Bt709,
    Bt2020,
    Fcc,
    Smpte240m,
}

impl YuvMatrix {
    /// Weights of red and blue in luma.
    pub fn kr_kb(self) -> (f64, f64) {
        match self {
            Self::Bt601 => (0.299, 0.114),
            Self::Bt709 => (0.2126, 0.0722),
            Self::Bt2020 => (0.2627, 0.0593),
            Self::Fcc => (0.30, 0.11),
            Self::Smpte240m => (0.212, 0.087),
        }
    }
}

/// Meaning of a frame's samples: size, format, matrix and range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameInfo {
    /// Frame size.
    pub geometry: Geometry,
    /// Byte layout.
    pub format: PixelFormat,
    /// Matrix of YCbCr formats; unused for the others.
    pub matrix: YuvMatrix,
    /// Luma 0..255 instead of 16..235, or the same in more bits (YCbCr and gray); unused for RGB.
    pub full_range: bool,
}

impl FrameInfo {
    /// RGB or full-range gray/BT.601 frame.
    pub fn new(geometry: Geometry, format: PixelFormat) -> Self {
        Self { geometry, format, matrix: YuvMatrix::Bt601, full_range: true }
    }

    /// Returns an error for a frame of another kind than this planned one.
    pub(crate) fn check(&self, frame: &Self) -> Result<()> {
        if self.is_like(frame) { Ok(()) } else { Err(Error::Frame { planned: *self, got: *frame }) }
    }

    /// Returns true if frames of both kinds are read and drawn in the same way.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let family = self.format.layout().family;
        self.geometry == other.geometry
            && self.format == other.format
            && (family != Family::Yuv || self.matrix == other.matrix)
            && (family == Family::Rgb || self.full_range == other.full_range)
    }
}

impl fmt::Display for FrameInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.geometry, self.format)?;
        if !self.format.is_rgb() {
            let range = if self.full_range { "full" } else { "studio" };
            write!(f, " ({:?}, {range} range)", self.matrix)?;
        }
        Ok(())
    }
}

/// Returns an error if a plane of `len` bytes or labels cannot hold `rows` rows of `row`.
pub(crate) fn check_rows(
    what: &'static str,
    len: usize,
    stride: usize,
    row: usize,
    rows: usize,
) -> Result<()> {
    let needed = stride.saturating_mul(rows - 1).saturating_add(row);
    // A plane without data needs no stride.
    if len > 0 && stride < row {
        return Err(Error::Stride { what, least: row, got: stride });
    }
    if len < needed {
        return Err(Error::Plane { what, needed, got: len });
    }
    Ok(())
}
