// SPDX-License-Identifier: MPL-2.0
//! Pinned memory for drawn frames on the host: it leaves as the frame's own memory, which saves a copy.

use std::mem::ManuallyDrop;
use std::ops::Range;

use super::device::CurrentContext;
use super::handle::Cuda;
use super::pinned::Pinned;
use super::pool::{Lent, Pool};
use crate::error::{Error, Result};
use crate::image::{FrameInfo, MOST_PLANES};

/// Most host frames that are lent at a time. Further frames leave in ordinary memory, so that a reader who keeps many
/// does not pin the machine's memory.
const MOST_LENT: usize = 16;

/// Layout of a frame's planes in one piece of host memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostLayout {
    info: FrameInfo,
    bytes: usize,
    offsets: [usize; MOST_PLANES],
    strides: [usize; MOST_PLANES],
}

impl HostLayout {
    /// Describes planes by the offsets of their first rows and by their row strides.
    ///
    /// # Errors
    ///
    /// [`Error::Plane`] if one ends outside of the memory or overlaps another.
    pub fn new(
        info: FrameInfo,
        bytes: usize,
        offsets: [usize; MOST_PLANES],
        strides: [usize; MOST_PLANES],
    ) -> Result<Self> {
        let layout = Self { info, bytes, offsets, strides };
        let refuse = |what, needed, got| Err(Error::Plane { what, needed, got });
        let spans: Vec<_> = layout.spans().collect();
        for (i, (span, (row, _))) in spans.iter().zip(info.format.planes(info.geometry)).enumerate() {
            if strides[i] < row {
                return refuse("stride of a plane", row, strides[i]);
            }
            if span.end > bytes {
                return refuse("bytes of a buffer", span.end, bytes);
            }
            if let Some(other) = spans[..i].iter().find(|o| o.start < span.end && span.start < o.end) {
                return refuse("start of a plane behind another", other.end, span.start);
            }
        }
        Ok(layout)
    }

    /// Bytes from the first row's start to the last row's end, plane by plane.
    fn spans(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let shapes = self.info.format.planes(self.info.geometry).enumerate();
        shapes.map(|(i, (row, rows))| {
            self.offsets[i]..self.offsets[i].saturating_add(self.strides[i].saturating_mul(rows - 1) + row)
        })
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Offset of a plane and its row stride.
    pub fn plane(&self, plane: usize) -> (usize, usize) {
        (self.offsets[plane], self.strides[plane])
    }

    /// Returns true if some bytes belong to no plane.
    pub fn has_gaps(&self) -> bool {
        let shapes = self.info.format.planes(self.info.geometry);
        shapes.map(|(row, rows)| row * rows).sum::<usize>() < self.bytes
    }

    /// Copies the bytes between rows and planes.
    pub fn fill_gaps(&self, from: &[u8], to: &mut [u8]) {
        let mut copy = |gap: Range<usize>| {
            if gap.start < gap.end {
                to[gap.clone()].copy_from_slice(&from[gap]);
            }
        };
        let shapes = self.info.format.planes(self.info.geometry);
        let mut planes: Vec<_> = shapes.enumerate().collect();
        planes.sort_by_key(|(i, _)| self.offsets[*i]);
        let mut end = 0;
        for (i, (row, rows)) in planes {
            for y in 0..rows {
                let start = self.offsets[i] + y * self.strides[i];
                copy(end..start);
                end = start + row;
            }
        }
        copy(end..self.bytes);
    }
}

/// Pool of an engine's host frames.
#[derive(Default)]
pub(crate) struct HostFrames(Pool<Pinned>);

impl HostFrames {
    /// Returns a host frame of `bytes`, a free one if it has the size.
    pub fn take(&self, cuda: &Cuda, bytes: usize) -> Result<HostFrame> {
        let free = self.0.take(|pinned| pinned.len() == bytes);
        let pinned = free.map_or_else(|| Pinned::new(cuda, "pinned memory", bytes), Ok)?;
        Ok(HostFrame {
            pinned: ManuallyDrop::new(self.0.lend(pinned)),
            cuda: ManuallyDrop::new(cuda.clone()),
        })
    }

    /// Returns true if so many are lent that a filled one should be copied to ordinary memory.
    pub fn crowded(&self) -> bool {
        self.0.lent() > MOST_LENT
    }
}

/// Pinned memory of one frame. It may outlive its engine.
pub(crate) struct HostFrame {
    pinned: ManuallyDrop<Lent<Pinned>>,
    /// Dropped by hand, because it may be the last to hold its context.
    cuda: ManuallyDrop<Cuda>,
}

impl HostFrame {
    /// Target for copies from the device. Its bytes must not be read before such a copy has been waited for.
    pub fn pinned(&mut self) -> &mut Pinned {
        &mut self.pinned
    }
}

impl AsRef<[u8]> for HostFrame {
    fn as_ref(&self) -> &[u8] {
        self.pinned.bytes()
    }
}

impl AsMut<[u8]> for HostFrame {
    fn as_mut(&mut self) -> &mut [u8] {
        self.pinned.writable()
    }
}

impl Drop for HostFrame {
    fn drop(&mut self) {
        let _current = CurrentContext::keep();
        // SAFETY: each is dropped once, here, and nothing uses them after; the context last, in which the memory may end.
        unsafe {
            ManuallyDrop::drop(&mut self.pinned);
            ManuallyDrop::drop(&mut self.cuda);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{Geometry, PixelFormat};

    #[test]
    fn gaps_are_what_no_plane_covers() {
        let info = FrameInfo::new(Geometry::new(5, 3).unwrap(), PixelFormat::Nv12);
        // Chroma first, both with longer rows: 2 rows of 6 from 3 on, 3 rows of 5 from 20 on.
        let layout = HostLayout::new(info, 50, [20, 3, 0, 0], [9, 8, 0, 0]).unwrap();
        assert!(layout.has_gaps());
        let mut to = vec![0u8; 50];
        layout.fill_gaps(&[1; 50], &mut to);
        let covered = |i: usize| {
            (0..2).any(|y| (3 + 8 * y..9 + 8 * y).contains(&i))
                || (0..3).any(|y| (20 + 9 * y..25 + 9 * y).contains(&i))
        };
        for (i, byte) in to.iter().enumerate() {
            assert_eq!(*byte == 0, covered(i), "byte {i}");
        }
    }

    #[test]
    fn layouts_that_overlap_or_end_outside_are_refused() {
        let info = FrameInfo::new(Geometry::new(4, 4).unwrap(), PixelFormat::Nv12);
        assert!(!HostLayout::new(info, 24, [0, 16, 0, 0], [4, 4, 0, 0]).unwrap().has_gaps());
        for (bytes, offsets, strides) in [
            (23, [0, 16, 0, 0], [4, 4, 0, 0]),
            (24, [0, 15, 0, 0], [4, 4, 0, 0]),
            (24, [0, 16, 0, 0], [3, 4, 0, 0]),
        ] {
            assert!(HostLayout::new(info, bytes, offsets, strides).is_err(), "{bytes} {offsets:?}");
        }
    }
}
