// SPDX-License-Identifier: MPL-2.0
//! The mask of a frame in a plane that is used again: from rectangles, from a plane of values that is scaled, or from alpha. And its
//! prior, from a plane of values.
//!
//! Sizes and places come from others: they are clipped to the frame, in 64 bits, before anything is written.

use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::image::prior::sample_of;
use crate::image::{Channel, Frame, Geometry, Prior, PriorSamples};

/// A rectangle in px: x, y, width, height. It may lie outside of the frame.
pub(crate) type Place = [i64; 4];

/// Most rectangles of one mask.
pub(crate) const MOST_PLACES: usize = 1024;

/// Reads `x,y,width,height`, numbers of 32 bits of which the last two are positive.
pub(crate) fn parse_place(text: &str) -> Option<Place> {
    let mut place = [0; 4];
    let mut parts = text.split(',');
    for number in &mut place {
        *number = parts.next()?.trim().parse::<i32>().ok()?.into();
    }
    (parts.next().is_none() && place[2] > 0 && place[3] > 0).then_some(place)
}

/// Values of samples, 8 or 16 bits, that are inside.
pub(crate) struct Values {
    text: String,
    /// 1 for each value inside, else 0.
    inside: Box<[u8]>,
}

impl Values {
    /// Every value but 0.
    pub(crate) fn all_but_0() -> Self {
        let mut inside = vec![1; 1 << u16::BITS].into_boxed_slice();
        inside[0] = 0;
        Self { text: String::new(), inside }
    }

    /// Reads numbers and ranges, as `1,3,5-9`. An empty text means every value but 0.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.trim().is_empty() {
            return Some(Self::all_but_0());
        }
        let mut inside = vec![0; 1 << u16::BITS].into_boxed_slice();
        for part in text.split(',').map(str::trim) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let [first, last] = [first, last].map(|number| number.trim().parse::<u16>().ok());
            let (first, last) = (first?, last?);
            inside.get_mut(first.into()..=last.into()).filter(|_| first <= last)?.fill(1);
        }
        Some(Self { text: text.to_owned(), inside })
    }

    /// The text that they were read from.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        self.inside == other.inside
    }
}

impl std::fmt::Debug for Values {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Values").field(&self.text).finish()
    }
}

/// Samples of a plane of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SampleKind {
    Bytes,
    WordsLe,
    WordsBe,
}

impl SampleKind {
    pub(crate) fn bytes(self) -> usize {
        if self == Self::Bytes { 1 } else { 2 }
    }
}

/// A plane of values, with a stride in bytes; rows may end at their last sample.
#[derive(Clone, Copy)]
pub(crate) struct ValuePlane<'a> {
    pub bytes: &'a [u8],
    pub stride: usize,
    pub geometry: Geometry,
    pub kind: SampleKind,
}

impl ValuePlane<'_> {
    /// Row `y`, where it is whole.
    fn row(&self, y: usize) -> Option<&[u8]> {
        let start = y.checked_mul(self.stride)?;
        self.bytes.get(start..start.checked_add(self.kind.bytes() * self.geometry.width as usize)?)
    }
}

/// The part of a span from `start` on that is within a frame's side.
fn clipped(start: i64, length: i64, side: u32) -> [usize; 2] {
    let within = |v: i64| v.clamp(0, side.into()) as usize;
    [within(start), within(start.saturating_add(length.max(0)))]
}

/// A mask: a byte a pixel, rows without padding.
#[derive(Default)]
pub(crate) struct MaskPlane {
    bytes: Array<u8>,
    geometry: Option<Geometry>,
    revision: u64,
    /// Clipped rectangles, x0, y0, x1, y1, by x0: those that the plane shows, and those that come next.
    places: Array<[usize; 4]>,
    next_places: Array<[usize; 4]>,
    shows_places: bool,
    /// The sample of each column.
    columns: Array<usize>,
}

impl MaskPlane {
    /// A number that changes with the pixels.
    #[cfg(feature = "cuda")]
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns true if the plane was made for frames of this size.
    pub(crate) fn is_of(&self, geometry: Geometry) -> bool {
        self.geometry == Some(geometry)
    }

    /// The frame with this mask.
    ///
    /// # Errors
    ///
    /// If the mask was made for a smaller frame.
    pub(crate) fn on<'a>(&'a self, frame: Frame<'a>) -> Result<Frame<'a>> {
        frame.with_mask(&self.bytes, frame.info().geometry.width as usize)
    }

    /// Prepares to write every pixel anew.
    fn begin(&mut self, geometry: Geometry) -> Result<usize> {
        if !self.is_of(geometry) {
            self.geometry = None;
            memory::resize(&mut self.bytes, "mask", geometry.pixels(), 0)?;
            self.geometry = Some(geometry);
        }
        self.revision += 1;
        self.shows_places = false;
        Ok(geometry.width as usize)
    }

    /// Inside is what one of the rectangles has of the frame; of more than [`MOST_PLACES`] the first count. Equal rectangles as the
    /// last time take no work.
    pub(crate) fn set_places(
        &mut self,
        geometry: Geometry,
        places: impl IntoIterator<Item = Place>,
    ) -> Result<()> {
        self.next_places.clear();
        memory::reserve(&mut self.next_places, "mask", MOST_PLACES)?;
        for [x, y, width, height] in places.into_iter().take(MOST_PLACES) {
            let [x0, x1] = clipped(x, width, geometry.width);
            let [y0, y1] = clipped(y, height, geometry.height);
            if x0 < x1 && y0 < y1 {
                self.next_places.push([x0, y0, x1, y1]);
            }
        }
        self.next_places.sort_unstable();
        if self.shows_places && self.is_of(geometry) && self.next_places[..] == self.places[..] {
            return Ok(());
        }
        let width = self.begin(geometry)?;
        let Self { bytes, places, next_places, shows_places, .. } = self;
        std::mem::swap(places, next_places);
        for (y, row) in bytes.chunks_exact_mut(width).enumerate() {
            // Every byte is written once, however many rectangles lie over it.
            let mut done = 0;
            for &[x0, y0, x1, y1] in &*places {
                if (y0..y1).contains(&y) && x1 > done {
                    let from = x0.max(done);
                    row[done..from].fill(0);
                    row[from..x1].fill(1);
                    done = x1;
                }
            }
            row[done..].fill(0);
        }
        *shows_places = true;
        Ok(())
    }

    /// Inside is where a plane of values, scaled to `place`, has one of `values`; pixels out of `place` are outside. A pixel has the
    /// value of the sample that its center lies in.
    pub(crate) fn set_values(
        &mut self,
        geometry: Geometry,
        plane: ValuePlane<'_>,
        place: Place,
        values: &Values,
    ) -> Result<()> {
        self.begin(geometry)?;
        let inside = &values.inside;
        scale(geometry, plane, place, &mut self.columns, &mut self.bytes, |value| inside[usize::from(value)])
    }

    /// Inside is where alpha is at least `least` of 255.
    pub(crate) fn set_alpha(&mut self, frame: &Frame<'_>, alpha: Channel, least: u32) -> Result<()> {
        let width = self.begin(frame.info().geometry)?;
        let least = least_code(alpha, least);
        let Channel { plane, offset, step, sample } = alpha;
        for (y, out) in self.bytes.chunks_exact_mut(width).enumerate() {
            let row = &frame.row(plane, y)[offset..];
            match (sample.bytes, step) {
                (1, 1) => {
                    out.iter_mut().zip(row).for_each(|(out, a)| *out = u8::from(u16::from(*a) >= least))
                }
                (1, 4) => {
                    // The last pixel's bytes behind alpha may be missing.
                    let pixels = row.chunks(4);
                    out.iter_mut().zip(pixels).for_each(|(out, p)| *out = u8::from(u16::from(p[0]) >= least));
                }
                _ => {
                    let pixels = row.chunks(step);
                    out.iter_mut().zip(pixels).for_each(|(out, p)| *out = u8::from(sample.code(p) >= least));
                }
            }
        }
        Ok(())
    }
}

/// Writes what `convert` makes of a plane of values, scaled to `place`, and nothing, which is the default, elsewhere.
fn scale<T: Copy + Default>(
    geometry: Geometry,
    plane: ValuePlane<'_>,
    [left, top, pixels, rows]: Place,
    columns: &mut Array<usize>,
    out: &mut [T],
    convert: impl Fn(u16) -> T,
) -> Result<()> {
    let width = geometry.width as usize;
    let [x0, x1] = clipped(left, pixels, geometry.width);
    let [y0, y1] = clipped(top, rows, geometry.height);
    columns.clear();
    memory::reserve(columns, "mask", width)?;
    let samples = plane.geometry;
    columns.extend((x0..x1).map(|x| sample_of(x as i64 - left, pixels, samples.width)));
    let mut last = None;
    for y in 0..geometry.height as usize {
        let (above, below) = out.split_at_mut(y * width);
        let row = &mut below[..width];
        let is_in_place = (y0..y1).contains(&y) && x0 < x1;
        let at = is_in_place.then(|| sample_of(y as i64 - top, rows, samples.height));
        if y > 0 && at == last {
            row.copy_from_slice(&above[above.len() - width..]);
            continue;
        }
        last = at;
        row.fill(T::default());
        let Some(from) = at.and_then(|at| plane.row(at)) else { continue };
        let out = row[x0..x1].iter_mut().zip(&*columns);
        match plane.kind {
            SampleKind::Bytes => out.for_each(|(out, &x)| *out = convert(from[x].into())),
            SampleKind::WordsLe => out.for_each(|(out, &x)| {
                *out = convert(u16::from_le_bytes([from[2 * x], from[2 * x + 1]]));
            }),
            SampleKind::WordsBe => out.for_each(|(out, &x)| {
                *out = convert(u16::from_be_bytes([from[2 * x], from[2 * x + 1]]));
            }),
        }
    }
    Ok(())
}

/// A prior: a number a pixel, rows without padding.
#[derive(Default)]
pub(crate) struct PriorPlane {
    /// Another for each prior.
    revision: u64,
    numbers: Array<u32>,
    columns: Array<usize>,
}

impl PriorPlane {
    /// Areas are of the values of a plane, scaled to `place`, and of what lies out of it.
    pub(crate) fn set(&mut self, geometry: Geometry, plane: ValuePlane<'_>, place: Place) -> Result<()> {
        let Self { revision, numbers, columns } = self;
        *revision += 1;
        memory::resize(numbers, "prior", geometry.pixels(), 0)?;
        scale(geometry, plane, place, columns, numbers, |value| u32::from(value) + 1)
    }

    /// The number of each pixel, and how often these have changed.
    #[cfg(feature = "cuda")]
    pub(crate) fn numbers(&self) -> (&[u32], u64) {
        (&self.numbers, self.revision)
    }

    /// The frame with this prior.
    ///
    /// # Errors
    ///
    /// If the prior was made for a smaller frame.
    pub(crate) fn on<'a>(&'a self, frame: Frame<'a>) -> Result<Frame<'a>> {
        let geometry = frame.info().geometry;
        let prior = Prior::new(PriorSamples::U32(&self.numbers), geometry, geometry.width as usize)?;
        Ok(frame.with_prior(prior))
    }
}

/// The lowest code of alpha that is at least `least` of 255.
pub(crate) fn least_code(alpha: Channel, least: u32) -> u16 {
    let most = (1u32 << alpha.sample.bits) - 1;
    (least * most).div_ceil(255) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{FrameInfo, PixelFormat};

    fn size(width: u32, height: u32) -> Geometry {
        Geometry::new(width, height).unwrap()
    }

    #[test]
    fn rectangles_are_clipped_and_united() {
        let geometry = size(9, 7);
        let mut plane = MaskPlane::default();
        let huge = i64::from(u32::MAX);
        for places in [
            &[][..],
            &[[2, 1, 3, 4]],
            &[[-2, -3, 5, 5], [4, 3, 2, 2], [1, 1, 5, 1]],
            &[[-huge, -huge, 3 * huge, 3 * huge]],
            &[
                [8, 6, huge, huge],
                [9, 0, 1, 1],
                [0, 7, 1, 1],
                [0, 0, 0, 5],
                [0, 0, 5, 0],
                [i64::MAX, 0, i64::MAX, 1],
            ],
            &[[0, 0, 1, 7], [0, 2, 4, 1], [0, 2, 2, 3]],
        ] {
            plane.set_places(geometry, places.iter().copied()).unwrap();
            for y in 0..7 {
                for x in 0..9 {
                    let is_in = |[px, py, w, h]: [i64; 4]| {
                        px <= x
                            && i128::from(x) < i128::from(px) + i128::from(w)
                            && py <= y
                            && i128::from(y) < i128::from(py) + i128::from(h)
                    };
                    let wanted = places.iter().any(|place| is_in(*place));
                    assert_eq!(plane.bytes[(9 * y + x) as usize], u8::from(wanted), "{places:?} {x} {y}");
                }
            }
        }
        let before = plane.revision;
        plane.set_places(geometry, [[0, 2, 2, 3], [0, 0, 1, 7], [0, 2, 4, 1]]).unwrap();
        assert_eq!(plane.revision, before, "the same rectangles in another order");
        plane.set_places(size(7, 9), [[0, 2, 2, 3], [0, 0, 1, 7], [0, 2, 4, 1]]).unwrap();
        assert!(plane.revision > before && plane.bytes.len() == 63);
    }

    #[test]
    fn values_are_scaled_to_their_place() {
        let values = Values::parse("1,5-6, 300").unwrap();
        let mut plane = MaskPlane::default();
        for (samples, kind) in [
            (size(1, 1), SampleKind::Bytes),
            (size(3, 2), SampleKind::WordsLe),
            (size(3, 5), SampleKind::WordsBe),
            (size(40, 30), SampleKind::Bytes),
        ] {
            let (wide, stride) = (kind.bytes(), kind.bytes() * samples.width as usize + 3);
            let value = |x: usize, y: usize| [1u16, 2, 5, 6, 7, 300, 256 + 1, 0][(3 * x + 5 * y) % 8];
            let mut bytes = vec![0xee; stride * samples.height as usize - 3];
            for y in 0..samples.height as usize {
                for x in 0..samples.width as usize {
                    let value = value(x, y);
                    let at = y * stride + x * wide;
                    match kind {
                        SampleKind::Bytes => bytes[at] = value as u8,
                        SampleKind::WordsLe => bytes[at..at + 2].copy_from_slice(&value.to_le_bytes()),
                        SampleKind::WordsBe => bytes[at..at + 2].copy_from_slice(&value.to_be_bytes()),
                    }
                }
            }
            let from = ValuePlane { bytes: &bytes, stride, geometry: samples, kind };
            let huge = i64::from(u32::MAX);
            for place in [
                [0, 0, 12, 10],
                [2, 3, 4, 4],
                [-5, -2, 9, 30],
                [0, 0, 3, 2],
                [-7, 0, huge, 10],
                [i64::from(i32::MIN), 0, huge, huge],
                [3, 3, 0, 4],
                [12, 0, 5, 5],
            ] {
                plane.set_values(size(12, 10), from, place, &values).unwrap();
                for (i, &out) in plane.bytes.iter().enumerate() {
                    let at =
                        [(i % 12) as i128 - i128::from(place[0]), (i / 12) as i128 - i128::from(place[1])];
                    let (w, h) = (i128::from(place[2]), i128::from(place[3]));
                    let is_in = at[0] >= 0 && at[0] < w && at[1] >= 0 && at[1] < h;
                    let wanted = is_in && {
                        let x = ((2 * at[0] + 1) * i128::from(samples.width) / (2 * w)) as usize;
                        let y = ((2 * at[1] + 1) * i128::from(samples.height) / (2 * h)) as usize;
                        let value = if wide == 1 { value(x, y) & 255 } else { value(x, y) };
                        [1, 5, 6, 300].contains(&value)
                    };
                    assert_eq!(out, u8::from(wanted), "{kind:?} {samples} {place:?} {i}");
                }
            }
        }
    }

    #[test]
    fn values_and_places_are_read() {
        let all_but_0 = Values::parse(" ").unwrap();
        assert!(all_but_0.inside[0] == 0 && all_but_0.inside[1..].iter().all(|inside| *inside == 1));
        let some = Values::parse("0, 7 ,9 - 11,65535").unwrap();
        let found: Vec<_> = (0..=65_535).filter(|value| some.inside[*value] == 1).collect();
        assert_eq!(found, [0, 7, 9, 10, 11, 65_535]);
        assert!(some == Values::parse("65535,9-11,7,0").unwrap() && some != all_but_0);
        for bad in ["1,", ",", "-1", "1-", "3-2", "65536", "a", "1 2", "1-2-3"] {
            assert!(Values::parse(bad).is_none(), "{bad}");
        }
        assert_eq!(parse_place(" -1, 2,3,4"), Some([-1, 2, 3, 4]));
        for bad in ["", "1,2,3", "1,2,3,4,5", "1,2,0,4", "1,2,3,-4", "a,b,c,d", "1,2,3,4294967296", "1 2 3 4"]
        {
            assert_eq!(parse_place(bad), None, "{bad}");
        }
    }

    /// Alpha of every format that has one, by its own words.
    #[test]
    fn alpha_counts_from_the_least_on() {
        let geometry = size(5, 3);
        let mut seen = 0;
        for format in PixelFormat::ALL {
            let Some(alpha) = format.layout().alpha else { continue };
            seen += 1;
            let info = FrameInfo::new(geometry, format);
            let most = (1u32 << alpha.sample.bits) - 1;
            let code = |i: usize| [0, 1, most / 2, most / 2 + 1, most - 1, most][i % 6];
            let planes: Vec<_> = format.planes(geometry).collect();
            let mut bytes: Vec<_> =
                planes.iter().map(|(row, rows)| vec![0x77; (row + 3) * rows - 3]).collect();
            let strides: Vec<_> = planes.iter().map(|(row, _)| row + 3).collect();
            for i in 0..geometry.pixels() {
                let at = i / 5 * strides[alpha.plane] + alpha.offset + i % 5 * alpha.step;
                let word = &mut bytes[alpha.plane][at..at + alpha.sample.bytes];
                match alpha.sample.bytes {
                    1 => word[0] = code(i) as u8,
                    2 => word.copy_from_slice(&(code(i) as u16).to_le_bytes()),
                    _ => word.copy_from_slice(&(code(i) << 30 | 0x3777_7777).to_le_bytes()),
                }
            }
            let slices: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
            let frame = Frame::new(info, &slices, &strides).unwrap();
            let mut plane = MaskPlane::default();
            for least in [1, 2, 85, 86, 127, 128, 255] {
                plane.set_alpha(&frame, alpha, least).unwrap();
                for (i, out) in plane.bytes.iter().enumerate() {
                    let wanted = u64::from(code(i)) * 255 >= u64::from(least) * u64::from(most);
                    assert_eq!(*out, u8::from(wanted), "{format:?} {least} {i}");
                }
                assert!(plane.on(frame).is_ok());
            }
        }
        assert_eq!(seen, 12);
    }
}
