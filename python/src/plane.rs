// SPDX-License-Identifier: MPL-2.0
//! Where the labels of one image go: as they are, or numbered from another label on.

use gstsuperpixel::error::Error;
use gstsuperpixel::image::{Geometry, NO_LABEL};

use crate::memory::reserve;

/// Target for the labels of an image, in rows.
pub enum Plane<'a> {
    /// As they are.
    Words(&'a mut [u16]),
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
        let (plane, start) = match self {
            Self::Words(plane) => return write(plane, stride),
            Self::Shifted(plane, start) => (plane, *start),
        };
        let (pixels, width) = (geometry.pixels(), geometry.width() as usize);
        reserve("labels of an image", map, pixels.saturating_sub(map.len()))?;
        map.resize(pixels, 0);
        write(map, width)?;
        for (to, from) in plane.chunks_mut(stride).zip(map.chunks(width)) {
            let label = |from: u16| if from == NO_LABEL { start - 1 } else { start + i32::from(from) };
            to.iter_mut().zip(from).for_each(|(to, &from)| *to = label(from));
        }
        Ok(())
    }
}
