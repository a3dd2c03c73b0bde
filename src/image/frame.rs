// SPDX-License-Identifier: MPL-2.0
//! Frames: borrowed planes of pixels, for reading and for drawing.

use super::{FrameInfo, Geometry, MOST_PLANES, Prior, check_rows};
use crate::error::Result;
use crate::parallel::{iter::Either, prelude::*};

/// A readable frame: up to four planes, each with its own stride in bytes, and optionally a mask and a prior.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    info: FrameInfo,
    planes: [&'a [u8]; MOST_PLANES],
    strides: [usize; MOST_PLANES],
    mask: Option<Mask<'a>>,
    prior: Option<Prior<'a>>,
}

/// A mask: one byte per pixel, nonzero inside.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mask<'a> {
    pub bytes: &'a [u8],
    pub stride: usize,
}

/// A frame that can be drawn on.
#[derive(Debug)]
pub struct FrameMut<'a> {
    info: FrameInfo,
    planes: [&'a mut [u8]; MOST_PLANES],
    strides: [usize; MOST_PLANES],
}

fn check_planes(
    info: &FrameInfo,
    lengths: [usize; MOST_PLANES],
    strides: [usize; MOST_PLANES],
) -> Result<()> {
    const NAMES: [&str; MOST_PLANES] =
        ["plane 0 of the frame", "plane 1 of the frame", "plane 2 of the frame", "plane 3 of the frame"];
    for (i, (row, rows)) in info.format.planes(info.geometry).enumerate() {
        check_rows(NAMES[i], lengths[i], strides[i], row, rows)?;
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
    /// [`Error::Plane`](crate::error::Error::Plane) or [`Error::Stride`](crate::error::Error::Stride) where a plane or a stride is too short.
    pub fn new(info: FrameInfo, planes: &[&'a [u8]], strides: &[usize]) -> Result<Self> {
        let mut frame =
            Self { info, planes: [&[]; MOST_PLANES], strides: [0; MOST_PLANES], mask: None, prior: None };
        for (i, (&plane, &stride)) in planes.iter().zip(strides).take(MOST_PLANES).enumerate() {
            (frame.planes[i], frame.strides[i]) = (plane, stride);
        }
        check_planes(&info, frame.planes.map(<[u8]>::len), frame.strides)?;
        Ok(frame)
    }

    /// Adds a mask to the frame, outside of which no pixel is segmented, see
    /// [`Params::masked`](crate::params::Params::masked).
    ///
    /// Shapes: `mask`: one byte a pixel, not 0 inside; rows of `stride` bytes, the last row may end at its last pixel.
    ///
    /// # Errors
    ///
    /// [`Error::Plane`](crate::error::Error::Plane) or [`Error::Stride`](crate::error::Error::Stride) where the mask or its stride is too short.
    pub fn with_mask(self, mask: &'a [u8], stride: usize) -> Result<Self> {
        let Geometry { width, height } = self.info.geometry;
        check_rows("mask", mask.len(), stride, width as usize, height as usize)?;
        Ok(Self { mask: Some(Mask { bytes: mask, stride }), ..self })
    }

    /// The mask, if there is one; without, all pixels are inside.
    pub(crate) fn mask(&self) -> Option<Mask<'a>> {
        self.mask
    }

    /// Adds areas that no region leaves, see [`Params::prior`](crate::params::Params::prior).
    pub fn with_prior(self, prior: Prior<'a>) -> Self {
        Self { prior: Some(prior), ..self }
    }

    /// The prior, if there is one; without, the frame is one area.
    pub(crate) fn prior(&self) -> Option<Prior<'a>> {
        self.prior
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
    /// Wraps borrowed planes, like [`Frame::new`].
    pub fn new(
        info: FrameInfo,
        planes: impl IntoIterator<Item = &'a mut [u8]>,
        strides: &[usize],
    ) -> Result<Self> {
        let mut frame = Self { info, planes: Default::default(), strides: [0; MOST_PLANES] };
        let rows = info.format.planes(info.geometry);
        for (i, ((plane, &stride), (_, rows))) in planes.into_iter().zip(strides).zip(rows).enumerate() {
            // Bytes behind the last row belong to the caller, even if they would be another row.
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

    /// Borrows the frame for reading.
    pub fn as_frame(&self) -> Frame<'_> {
        Frame {
            info: self.info,
            planes: self.planes.each_ref().map(|plane| &**plane),
            strides: self.strides,
            mask: None,
            prior: None,
        }
    }

    /// A plane with its stride in bytes.
    #[cfg(feature = "cuda")]
    pub(crate) fn plane_mut(&mut self, plane: usize) -> (&mut [u8], usize) {
        (self.planes[plane], self.strides[plane])
    }

    /// The rows of every channel's plane that belong to pixel rows `2*i` and `2*i+1`, for every `i`: the pieces that can be drawn
    /// independently of each other.
    pub(crate) fn row_pairs(&mut self) -> impl IndexedParallelIterator<Item = RowPair<'_>> {
        let layout = self.info.format.layout();
        let pairs = self.info.geometry.height.div_ceil(2) as usize;
        // Two rows of pixels have two rows of a plane, or one that both share.
        let rows = |plane: usize| {
            let channel = (0..3).find(|&c| layout.channels[c].plane == plane);
            channel.map_or(2, |c| 2 >> layout.shared(c)[1])
        };
        let [a, b, c, _] = &mut self.planes;
        let [sa, sb, sc, _] = self.strides;
        let (a, b) = (pairs_or_none(a, sa, rows(0), pairs), pairs_or_none(b, sb, rows(1), pairs));
        let c = pairs_or_none(c, sc, rows(2), pairs);
        a.zip(b).zip(c).map(|((a, b), c)| RowPair { planes: [a, b, c] })
    }
}

impl FrameMut<'_> {
    /// Bands of `rows` pixel rows, an even number, with what belongs to them of every channel's plane: they can be drawn
    /// independently of each other. The last may be lower.
    pub(crate) fn bands_mut(&mut self, rows: usize) -> impl IndexedParallelIterator<Item = Band<'_>> {
        let layout = self.info.format.layout();
        let bands = (self.info.geometry.height as usize).div_ceil(rows);
        let rows_of = |plane: usize| {
            let channel = (0..3).find(|&c| layout.channels[c].plane == plane);
            channel.map_or(rows, |c| rows >> layout.shared(c)[1])
        };
        let strides = self.strides;
        let [a, b, c, _] = &mut self.planes;
        let (a, b) = (
            bands_or_none(a, strides[0], rows_of(0), bands),
            bands_or_none(b, strides[1], rows_of(1), bands),
        );
        let c = bands_or_none(c, strides[2], rows_of(2), bands);
        a.zip(b).zip(c).map(move |((a, b), c)| Band { planes: [a, b, c], strides })
    }
}

/// Some rows of a plane at a time; for a missing plane, `count` empty ones.
fn bands_or_none(
    plane: &mut [u8],
    stride: usize,
    rows: usize,
    count: usize,
) -> impl IndexedParallelIterator<Item = &mut [u8]> {
    if plane.is_empty() {
        Either::Left((0..count).into_par_iter().map(|_| Default::default()))
    } else {
        Either::Right(plane.par_chunks_mut(stride.saturating_mul(rows)))
    }
}

/// Rows of each channel's plane, see [`FrameMut::bands_mut`].
pub(crate) struct Band<'a> {
    planes: [&'a mut [u8]; 3],
    strides: [usize; MOST_PLANES],
}

impl Band<'_> {
    /// Row `y` of the band's part of a plane, or into the padding.
    #[inline]
    pub fn row(&mut self, plane: usize, y: usize) -> &mut [u8] {
        let (start, plane) = (y * self.strides[plane], &mut *self.planes[plane]);
        &mut plane[start..]
    }
}

/// The rows of a plane, `rows` at a time, 1 or 2; for a missing plane, `count` empty ones.
fn pairs_or_none(
    plane: &mut [u8],
    stride: usize,
    rows: usize,
    count: usize,
) -> impl IndexedParallelIterator<Item = [&mut [u8]; 2]> {
    if plane.is_empty() {
        Either::Left((0..count).into_par_iter().map(|_| Default::default()))
    } else {
        Either::Right(plane.par_chunks_mut(stride.saturating_mul(rows)).map(move |both| {
            let (first, second) = both.split_at_mut(stride.min(both.len()));
            [first, second]
        }))
    }
}

/// The rows of each channel's plane for two rows of pixels: two, or one that both share, or a single one below the last
/// pair of an odd height.
pub(crate) struct RowPair<'a> {
    pub planes: [[&'a mut [u8]; 2]; 3],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::PixelFormat;

    /// Odd and even sizes, with padding and without. Miri is slow and gets a few of them.
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
            // With one byte less the last row is incomplete.
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
                for (plane, rows) in pair.planes.into_iter().enumerate() {
                    let shared = info.format.planes(info.geometry).nth(plane).map_or(1, |(_, rows)| rows)
                        < info.geometry.height as usize;
                    for (j, row) in rows.into_iter().enumerate() {
                        let y = if shared { i } else { 2 * i + j };
                        row.iter_mut().for_each(|byte| *byte += 1 + y as u8);
                    }
                }
            });
            // The fourth plane holds alpha, which is no channel.
            for (plane, (row, rows)) in info.format.planes(info.geometry).enumerate().take(3) {
                for (i, &byte) in planes[plane].iter().enumerate() {
                    let (y, x) = (i / strides[plane], i % strides[plane]);
                    let behind = i >= rows * strides[plane];
                    assert!(!behind || byte == 0, "{info:?} {plane}: {i}");
                    assert!(behind || x >= row || byte == 1 + y as u8, "{info:?} {plane}: {x} {y}");
                }
            }
        }
    }
}
