// SPDX-License-Identifier: MPL-2.0
//! Frames and label planes in host memory: sizes, formats, strides; no pixel arithmetic.

use std::fmt;

use rayon::iter::Either;
use rayon::prelude::*;

use crate::error::{Error, Result};

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

    /// Size of a 4:2:0 chroma plane in samples: odd sides round up.
    pub fn chroma(self) -> (usize, usize) {
        (self.width.div_ceil(2) as usize, self.height.div_ceil(2) as usize)
    }
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// Pixel formats, named as GStreamer names them: bytes in memory order. `P010Le` is P010_10LE: NV12 with 16-bit little
/// endian samples, of which the upper 10 bits count. `Gray16Le` and those with 48 and 64 bits a pixel have 16-bit little endian
/// samples, all bits of which count; the elements do not offer them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum PixelFormat {
    Rgba,
    Bgra,
    Rgbx,
    Bgrx,
    Argb,
    Abgr,
    Xrgb,
    Xbgr,
    Rgb,
    Bgr,
    Gray8,
    Nv12,
    I420,
    P010Le,
    Gray16Le,
    Rgb48Le,
    Bgr48Le,
    Rgba64Le,
    Bgra64Le,
    Argb64Le,
    Abgr64Le,
}

/// Where the bytes of a packed RGB format stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedRgb {
    /// Bytes from one pixel to the next.
    pub bytes: usize,
    /// Byte offset of red, green, blue.
    pub offsets: [usize; 3],
}

/// How the samples of a format stand in memory, in little endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Bytes of a sample: 1 or 2.
    pub bytes: usize,
    /// Bits that count, the upper ones: 8, 10 or 16.
    pub bits: u32,
}

impl Sample {
    /// The code of the sample at the front of `bytes`.
    #[inline(always)]
    pub fn code(self, bytes: &[u8]) -> u16 {
        if self.bytes == 1 {
            u16::from(bytes[0])
        } else {
            u16::from_le_bytes([bytes[0], bytes[1]]) >> (16 - self.bits)
        }
    }

    /// Writes a code to the front of `bytes`; bits that do not count become zero.
    #[inline(always)]
    pub fn set(self, bytes: &mut [u8], code: u16) {
        if self.bytes == 1 {
            bytes[0] = code as u8;
        } else {
            bytes[..2].copy_from_slice(&(code << (16 - self.bits)).to_le_bytes());
        }
    }
}

impl PixelFormat {
    /// Every format, those that the elements offer first and in that order.
    pub const ALL: [Self; 21] = [
        Self::Rgba,
        Self::Bgra,
        Self::Rgbx,
        Self::Bgrx,
        Self::Argb,
        Self::Abgr,
        Self::Xrgb,
        Self::Xbgr,
        Self::Rgb,
        Self::Bgr,
        Self::Gray8,
        Self::Nv12,
        Self::I420,
        Self::P010Le,
        Self::Gray16Le,
        Self::Rgb48Le,
        Self::Bgr48Le,
        Self::Rgba64Le,
        Self::Bgra64Le,
        Self::Argb64Le,
        Self::Abgr64Le,
    ];

    /// Byte layout of a packed RGB format; `None` for gray and 4:2:0.
    pub fn packed_rgb(self) -> Option<PackedRgb> {
        let (bytes, offsets) = match self {
            Self::Rgba | Self::Rgbx => (4, [0, 1, 2]),
            Self::Bgra | Self::Bgrx => (4, [2, 1, 0]),
            Self::Argb | Self::Xrgb => (4, [1, 2, 3]),
            Self::Abgr | Self::Xbgr => (4, [3, 2, 1]),
            Self::Rgb => (3, [0, 1, 2]),
            Self::Bgr => (3, [2, 1, 0]),
            Self::Rgba64Le => (8, [0, 2, 4]),
            Self::Bgra64Le => (8, [4, 2, 0]),
            Self::Argb64Le => (8, [2, 4, 6]),
            Self::Abgr64Le => (8, [6, 4, 2]),
            Self::Rgb48Le => (6, [0, 2, 4]),
            Self::Bgr48Le => (6, [4, 2, 0]),
            Self::Gray8 | Self::Gray16Le | Self::Nv12 | Self::I420 | Self::P010Le => return None,
        };
        Some(PackedRgb { bytes, offsets })
    }

    /// Whether there is luma alone.
    pub fn is_gray(self) -> bool {
        matches!(self, Self::Gray8 | Self::Gray16Le)
    }

    /// How samples stand in memory.
    pub fn sample(self) -> Sample {
        match self {
            Self::P010Le => Sample { bytes: 2, bits: 10 },
            Self::Gray16Le
            | Self::Rgb48Le
            | Self::Bgr48Le
            | Self::Rgba64Le
            | Self::Bgra64Le
            | Self::Argb64Le
            | Self::Abgr64Le => Sample { bytes: 2, bits: 16 },
            _ => Sample { bytes: 1, bits: 8 },
        }
    }

    /// Bits of a sample that count: 8, 10 or 16.
    pub fn bits(self) -> u32 {
        self.sample().bits
    }

    /// Bytes of a row without padding and number of rows, for each plane.
    pub fn planes(self, geometry: Geometry) -> impl ExactSizeIterator<Item = (usize, usize)> {
        let (w, h) = (geometry.width as usize, geometry.height as usize);
        let (cw, ch) = geometry.chroma();
        let none = (0, 0);
        let (planes, count) = match self {
            Self::Gray8 => ([(w, h), none, none], 1),
            Self::Gray16Le => ([(2 * w, h), none, none], 1),
            Self::Nv12 => ([(w, h), (2 * cw, ch), none], 2),
            Self::I420 => ([(w, h), (cw, ch), (cw, ch)], 3),
            Self::P010Le => ([(2 * w, h), (4 * cw, ch), none], 2),
            packed => ([(w * packed.packed_rgb().map_or(1, |p| p.bytes), h), none, none], 1),
        };
        planes.into_iter().take(count)
    }
}

/// The sample at the front of P010 bytes, in 10 bits.
#[inline(always)]
pub(crate) fn p010_code(bytes: &[u8]) -> u16 {
    PixelFormat::P010Le.sample().code(bytes)
}

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

/// What the samples of a frame mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameInfo {
    /// Frame size.
    pub geometry: Geometry,
    /// Byte layout.
    pub format: PixelFormat,
    /// Matrix of 4:2:0 formats; unused for the others.
    pub matrix: YuvMatrix,
    /// Luma 0..255 instead of 16..235, or the same in more bits (4:2:0 and gray); unused for RGB.
    pub full_range: bool,
}

impl FrameInfo {
    /// RGB or full-range gray/BT.601 frame.
    pub fn new(geometry: Geometry, format: PixelFormat) -> Self {
        Self { geometry, format, matrix: YuvMatrix::Bt601, full_range: true }
    }

    /// Refuses a frame of another kind than this, which was planned.
    pub(crate) fn check(&self, frame: &Self) -> Result<()> {
        if self.is_like(frame) { Ok(()) } else { Err(Error::Frame { planned: *self, got: *frame }) }
    }

    /// Whether frames of both are read and drawn on alike.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let subsampled = self.format.planes(self.geometry).count() > 1;
        self.geometry == other.geometry
            && self.format == other.format
            && (!subsampled || self.matrix == other.matrix)
            && (self.format.packed_rgb().is_some() || self.full_range == other.full_range)
    }
}

impl fmt::Display for FrameInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.geometry, self.format)?;
        if self.format.packed_rgb().is_none() {
            let range = if self.full_range { "full" } else { "studio" };
            write!(f, " ({:?}, {range} range)", self.matrix)?;
        }
        Ok(())
    }
}

/// Label of pixels that belong to no region: those outside of a mask.
pub const NO_LABEL: u16 = u16::MAX;

/// A readable frame: up to three planes, each with its own stride in bytes, and at will a mask.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    info: FrameInfo,
    planes: [&'a [u8]; 3],
    strides: [usize; 3],
    mask: Option<Mask<'a>>,
}

/// One byte a pixel, which is inside where that is not zero.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mask<'a> {
    pub bytes: &'a [u8],
    pub stride: usize,
}

/// A frame that can be drawn on.
#[derive(Debug)]
pub struct FrameMut<'a> {
    info: FrameInfo,
    planes: [&'a mut [u8]; 3],
    strides: [usize; 3],
}

/// Refuses a plane of `len` bytes or labels that does not hold `rows` rows of `row`.
fn check_rows(what: &'static str, len: usize, stride: usize, row: usize, rows: usize) -> Result<()> {
    let needed = stride.saturating_mul(rows - 1).saturating_add(row);
    // A plane that is not there has no stride either.
    if len > 0 && stride < row {
        return Err(Error::Stride { what, least: row, got: stride });
    }
    if len < needed {
        return Err(Error::Plane { what, needed, got: len });
    }
    Ok(())
}

fn check_planes(info: &FrameInfo, lengths: [usize; 3], strides: [usize; 3]) -> Result<()> {
    for (i, (row, rows)) in info.format.planes(info.geometry).enumerate() {
        let what = ["plane 0 of the frame", "plane 1 of the frame", "plane 2 of the frame"][i];
        check_rows(what, lengths[i], strides[i], row, rows)?;
    }
    Ok(())
}

impl<'a> Frame<'a> {
    /// Wraps planes that live elsewhere.
    ///
    /// Shapes: `planes[i]`: rows of `strides[i]` bytes, the last row may end at its last pixel.
    ///
    /// # Errors
    ///
    /// [`Error::Plane`] or [`Error::Stride`] where a plane or a stride is too short.
    pub fn new(info: FrameInfo, planes: &[&'a [u8]], strides: &[usize]) -> Result<Self> {
        let mut frame = Self { info, planes: [&[]; 3], strides: [0; 3], mask: None };
        for (i, (&plane, &stride)) in planes.iter().zip(strides).take(3).enumerate() {
            (frame.planes[i], frame.strides[i]) = (plane, stride);
        }
        check_planes(&info, frame.planes.map(<[u8]>::len), frame.strides)?;
        Ok(frame)
    }

    /// The same frame of which only some pixels are segmented, see [`Params::masked`](crate::params::Params::masked).
    ///
    /// Shapes: `mask`: one byte a pixel, not 0 inside; rows of `stride` bytes, the last row may end at its last pixel.
    ///
    /// # Errors
    ///
    /// [`Error::Plane`] or [`Error::Stride`] where the mask or its stride is too short.
    pub fn with_mask(self, mask: &'a [u8], stride: usize) -> Result<Self> {
        let Geometry { width, height } = self.info.geometry;
        check_rows("mask", mask.len(), stride, width as usize, height as usize)?;
        Ok(Self { mask: Some(Mask { bytes: mask, stride }), ..self })
    }

    /// What says which pixels are inside; without one all are.
    pub(crate) fn mask(&self) -> Option<Mask<'a>> {
        self.mask
    }

    /// Size and format.
    pub fn info(&self) -> &FrameInfo {
        &self.info
    }

    /// Bytes from one row of a plane to the next.
    pub fn stride(&self, plane: usize) -> usize {
        self.strides[plane]
    }

    /// The bytes of a plane.
    #[cfg(feature = "cuda")]
    pub(crate) fn plane(&self, plane: usize) -> &'a [u8] {
        self.planes[plane]
    }

    /// Row `y` of plane `plane`, from its first byte to its last pixel or into the padding.
    #[inline]
    pub fn row(&self, plane: usize, y: usize) -> &'a [u8] {
        let start = y * self.strides[plane];
        let end = (start + self.strides[plane]).min(self.planes[plane].len());
        &self.planes[plane][start..end]
    }
}

impl<'a> FrameMut<'a> {
    /// Wraps planes that live elsewhere; as [`Frame::new`].
    pub fn new(
        info: FrameInfo,
        planes: impl IntoIterator<Item = &'a mut [u8]>,
        strides: &[usize],
    ) -> Result<Self> {
        let mut frame = Self { info, planes: [&mut [], &mut [], &mut []], strides: [0; 3] };
        let rows = info.format.planes(info.geometry);
        for (i, ((plane, &stride), (_, rows))) in planes.into_iter().zip(strides).zip(rows).enumerate() {
            // Bytes behind the last row are somebody else's, not another row.
            let len = plane.len().min(stride.saturating_mul(rows));
            (frame.planes[i], frame.strides[i]) = (&mut plane[..len], stride);
        }
        check_planes(&info, frame.planes.each_ref().map(|plane| plane.len()), frame.strides)?;
        Ok(frame)
    }

    /// Size and format.
    pub fn info(&self) -> &FrameInfo {
        &self.info
    }

    /// The same frame for reading.
    pub fn as_frame(&self) -> Frame<'_> {
        Frame {
            info: self.info,
            planes: [&*self.planes[0], &*self.planes[1], &*self.planes[2]],
            strides: self.strides,
            mask: None,
        }
    }

    /// A plane with its stride in bytes.
    #[cfg(feature = "cuda")]
    pub(crate) fn plane_mut(&mut self, plane: usize) -> (&mut [u8], usize) {
        (self.planes[plane], self.strides[plane])
    }

    /// Rows `2*i` and `2*i+1` of plane 0 (one row at an odd end) and row `i` of the chroma planes, for every
    /// `i`: the pieces that can be drawn independently of each other.
    pub(crate) fn row_pairs(&mut self) -> impl IndexedParallelIterator<Item = RowPair<'_>> {
        let [luma, chroma0, chroma1] = &mut self.planes;
        let [s0, s1, s2] = self.strides;
        let pairs = self.info.geometry.height.div_ceil(2) as usize;
        let chroma = rows_or_none(chroma0, s1, pairs).zip(rows_or_none(chroma1, s2, pairs));
        luma.par_chunks_mut(s0.saturating_mul(2)).zip(chroma).map(move |(rows, chroma)| {
            let (first, second) = rows.split_at_mut(s0.min(rows.len()));
            RowPair { luma: [first, second], chroma: chroma.into() }
        })
    }
}

/// The rows of a plane; of one that is not there `count` empty ones.
fn rows_or_none(
    plane: &mut [u8],
    stride: usize,
    count: usize,
) -> impl IndexedParallelIterator<Item = &mut [u8]> {
    if plane.is_empty() {
        Either::Left((0..count).into_par_iter().map(|_| <&mut [u8]>::default()))
    } else {
        Either::Right(plane.par_chunks_mut(stride))
    }
}

/// Two rows of plane 0 with the row of chroma that they share.
pub(crate) struct RowPair<'a> {
    pub luma: [&'a mut [u8]; 2],
    pub chroma: [&'a mut [u8]; 2],
}

/// A label plane to write: one u16 a pixel.
#[derive(Debug)]
pub struct Labels<'a> {
    geometry: Geometry,
    stride: usize,
    data: &'a mut [u16],
}

impl<'a> Labels<'a> {
    /// Wraps `data`, rows of `stride` labels.
    ///
    /// # Errors
    ///
    /// [`Error::Stride`] where the stride is below the width, [`Error::Plane`] where the data is too short.
    pub fn new(geometry: Geometry, data: &'a mut [u16], stride: usize) -> Result<Self> {
        let Geometry { width, height } = geometry;
        check_rows("label plane", data.len(), stride, width as usize, height as usize)?;
        let whole = stride.saturating_mul(height as usize).min(data.len());
        Ok(Self { geometry, stride, data: &mut data[..whole] })
    }

    /// Size of the plane.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Refuses a plane of another size than the planned one.
    pub(crate) fn check(&self, planned: Geometry) -> Result<()> {
        let got = self.geometry;
        if planned == got { Ok(()) } else { Err(Error::Labels { planned, got }) }
    }

    /// Labels from one row to the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// All labels with the padding between rows.
    #[cfg(feature = "cuda")]
    pub(crate) fn whole_mut(&mut self) -> &mut [u16] {
        self.data
    }

    /// Row `y`, exactly `width` labels.
    #[inline]
    pub fn row(&self, y: usize) -> &[u16] {
        &self.data[y * self.stride..][..self.geometry.width as usize]
    }

    /// Row `y` for writing.
    #[inline]
    pub fn row_mut(&mut self, y: usize) -> &mut [u16] {
        &mut self.data[y * self.stride..][..self.geometry.width as usize]
    }

    /// Every pixel its own label.
    pub(crate) fn identity(&mut self) {
        let width = self.geometry.width as usize;
        for y in 0..self.geometry.height as usize {
            for (x, label) in self.row_mut(y).iter_mut().enumerate() {
                *label = (y * width + x) as u16;
            }
        }
    }

    /// Bands of `rows` rows each, without the padding of the last row.
    pub(crate) fn bands_mut(&mut self, rows: usize) -> impl IndexedParallelIterator<Item = LabelBand<'_>> {
        let (width, stride) = (self.geometry.width as usize, self.stride);
        self.data.par_chunks_mut(stride.saturating_mul(rows)).enumerate().map(move |(i, data)| LabelBand {
            first_row: i * rows,
            width,
            stride,
            data,
        })
    }
}

/// Some consecutive rows of a [`Labels`].
pub(crate) struct LabelBand<'a> {
    pub first_row: usize,
    width: usize,
    stride: usize,
    data: &'a mut [u16],
}

impl LabelBand<'_> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.data.len().div_ceil(self.stride)
    }

    /// Row `y`, counted from the band's first.
    #[inline]
    pub fn row_mut(&mut self, y: usize) -> &mut [u16] {
        &mut self.data[y * self.stride..][..self.width]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Odd sizes and others, with padding and without. Under Miri, which is slow, some of them.
    fn shapes() -> impl Iterator<Item = (FrameInfo, usize)> {
        let sizes = [(1, 1), (2, 1), (1, 2), (5, 3), (4, 4), (3, 7)];
        let all = PixelFormat::ALL.into_iter().flat_map(move |format| sizes.map(|size| (format, size)));
        all.flat_map(|(format, (width, height))| {
            let info = FrameInfo::new(Geometry { width, height }, format);
            [0, 3].map(|padding| (info, padding))
        })
        .step_by(if cfg!(miri) { 5 } else { 1 })
    }

    /// Planes whose last row ends at its last pixel and is followed by `behind` bytes.
    fn planes(info: FrameInfo, padding: usize, behind: usize) -> (Vec<Vec<u8>>, Vec<usize>) {
        let shapes = || info.format.planes(info.geometry);
        let bytes = |(row, rows)| vec![0; (row + padding) * (rows - 1) + row + behind];
        (shapes().map(bytes).collect(), shapes().map(|(row, _)| row + padding).collect())
    }

    #[test]
    fn rows_of_a_frame_are_where_the_strides_say() {
        for (info, padding) in shapes() {
            let (mut planes, strides) = planes(info, padding, 0);
            for plane in &mut planes {
                plane.iter_mut().enumerate().for_each(|(i, byte)| *byte = i as u8);
            }
            let slices: Vec<&[u8]> = planes.iter().map(Vec::as_slice).collect();
            let frame = Frame::new(info, &slices, &strides).unwrap();
            for (plane, (row, rows)) in info.format.planes(info.geometry).enumerate() {
                for y in 0..rows {
                    let first = y * strides[plane];
                    let want: Vec<u8> = (first..first + row).map(|i| i as u8).collect();
                    assert_eq!(frame.row(plane, y)[..row], want, "{info:?} {plane} {y}");
                }
            }
            // One byte less, and the last row is not there.
            let short: Vec<&[u8]> = planes.iter().map(|plane| &plane[..plane.len() - 1]).collect();
            assert!(Frame::new(info, &short, &strides).is_err(), "{info:?}");
        }
    }

    #[test]
    fn pairs_of_rows_are_every_row_once_and_nothing_behind_the_last() {
        for (info, padding) in shapes() {
            let (mut planes, strides) = planes(info, padding, padding + 7);
            let slices = planes.iter_mut().map(Vec::as_mut_slice);
            let mut frame = FrameMut::new(info, slices, &strides).unwrap();
            frame.row_pairs().enumerate().for_each(|(i, pair)| {
                let [first, second] = pair.luma;
                let rows = [(first, 2 * i), (second, 2 * i + 1)].into_iter();
                for (row, y) in rows.chain(pair.chroma.into_iter().map(|row| (row, i))) {
                    row.iter_mut().for_each(|byte| *byte += 1 + y as u8);
                }
            });
            for (plane, (row, rows)) in info.format.planes(info.geometry).enumerate() {
                for (i, &byte) in planes[plane].iter().enumerate() {
                    let (y, x) = (i / strides[plane], i % strides[plane]);
                    let behind = i >= rows * strides[plane];
                    assert!(!behind || byte == 0, "{info:?} {plane}: {i}");
                    assert!(behind || x >= row || byte == 1 + y as u8, "{info:?} {plane}: {x} {y}");
                }
            }
        }
    }

    #[test]
    fn bands_are_every_row_of_the_label_plane_once() {
        for (width, height, stride) in [(1, 1, 1), (3, 7, 3), (3, 7, 5), (4, 8, 9)] {
            for band in [1, 2, 3, 100] {
                let geometry = Geometry { width, height };
                let mut data = vec![9; stride * (height as usize - 1) + width as usize + 6];
                let mut labels = Labels::new(geometry, &mut data, stride).unwrap();
                labels.identity();
                labels.bands_mut(band).for_each(|mut band| {
                    for y in 0..band.rows() {
                        let first = band.first_row + y;
                        band.row_mut(y).iter_mut().for_each(|label| *label += 100 * (1 + first as u16));
                    }
                });
                for y in 0..height as usize {
                    let row = |x: usize| (y * width as usize + x + 100 * (1 + y)) as u16;
                    assert!(
                        labels.row(y).iter().copied().eq((0..width as usize).map(row)),
                        "{geometry:?} {y}"
                    );
                }
                let padding = |i: &usize| i % stride >= width as usize || *i >= stride * height as usize;
                assert!((0..data.len()).filter(padding).all(|i| data[i] == 9), "{geometry:?} {stride}");
            }
        }
    }
}
