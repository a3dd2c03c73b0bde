// SPDX-License-Identifier: MPL-2.0
//! Where the labels of one image go: as they are, or numbered from another label on.

use gstsuperpixel::error::Error;
use gstsuperpixel::image::{Geometry, NO_LABEL};
use gstsuperpixel::wide;

use crate::memory::reserve;

/// Target for the labels of an image, in rows.
pub enum Plane<'a> {
    /// As they are.
    Words(&'a mut [u16]),
    /// The same numbers in 32 bits.
    Wide(&'a mut [u32]),
    /// Each with this number added; what has no label has one less than this number.
    Shifted(&'a mut [i32], i32),
}

impl Plane<'_> {
    /// Lets `write` give labels, for rows of the length that it is told, and puts them in place: `stride` apart from row to row.
    /// `map` is memory for labels that have to be numbered anew, and lasts.
    pub fn fill<E: From<Error>>(
        &mut self,
        geometry: Geometry,
        stride: usize,
        map: &mut Vec<u16>,
        write: impl FnOnce(&mut [u16], usize) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Self::Words(plane) = self {
            return write(plane, stride);
        }
        let (pixels, width) = (geometry.pixels(), geometry.width() as usize);
        reserve("labels of an image", map, pixels.saturating_sub(map.len()))?;
        map.resize(pixels, 0);
        write(map, width)?;
        match self {
            Self::Words(_) => {}
            // Without a mask every pixel has a label.
            Self::Wide(plane) => copy_rows(plane, stride, map, width, u32::from),
            Self::Shifted(plane, start) => copy_rows(plane, stride, map, width, |label| {
                if label == NO_LABEL { *start - 1 } else { *start + i32::from(label) }
            }),
        }
        Ok(())
    }

    /// Lets `write` give labels of 32 bits, for rows `stride` apart, and numbers them anew where they are.
    pub fn fill_wide<R, E: From<Error>>(
        &mut self,
        geometry: Geometry,
        stride: usize,
        write: impl FnOnce(&mut [u32], usize) -> Result<R, E>,
    ) -> Result<R, E> {
        let (plane, start) = match self {
            Self::Wide(plane) => return write(plane, stride),
            Self::Shifted(plane, start) => (plane, *start),
            Self::Words(plane) => {
                let needed = 2 * plane.len();
                return Err(Error::Plane { what: "label plane of 32 bits", needed, got: plane.len() }.into());
            }
        };
        let written = write(bytemuck::cast_slice_mut(plane), stride)?;
        for row in plane.chunks_mut(stride) {
            row.iter_mut().take(geometry.width() as usize).for_each(|label| *label = shifted(*label, start));
        }
        Ok(written)
    }
}

/// A label whose bits are those of [`wide`]'s, with `start` added: `NO_LABEL` is -1 in them. `check_start` has seen that there is room.
pub fn shifted(label: i32, start: i32) -> i32 {
    label.wrapping_add(start)
}

const _: () = assert!(wide::NO_LABEL.cast_signed() == -1);

/// Converts labels in rows of `width` to rows that are `stride` apart.
fn copy_rows<T>(plane: &mut [T], stride: usize, map: &[u16], width: usize, label: impl Fn(u16) -> T) {
    for (to, from) in plane.chunks_mut(stride).zip(map.chunks(width)) {
        to.iter_mut().zip(from).for_each(|(to, &from)| *to = label(from));
    }
}
