// SPDX-License-Identifier: MPL-2.0
//! How a file's frames are turned until they are upright, as `video-direction` of `videoflip`.
//!
//! GStreamer reads seven of the eight orientations from the matrix in the track header of MP4 and MOV, and `auto`
//! follows it. `qtdemux` of GStreamer 1.22 does not know the eighth, mirrored at the diagonal from upper right to
//! lower left: that one is read here.

use std::fs::File;
use std::io::{BufReader, Error, ErrorKind, Read, Result, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

/// The two columns of the matrix, in 16.16 fixed point, of the orientation that is read here.
const MIRRORED: [i32; 4] = [0, -1 << 16, -1 << 16, 0];
/// Boxes that are looked at within one; a film has a few dozen.
const MOST_BOXES: usize = 10_000;

/// The direction for a file. What is no MP4 or MOV, or cannot be read, has that of its tags.
pub fn direction(path: &Path) -> &'static str {
    // Whatever is wrong with the file, the pipeline says it.
    File::open(path).map_or("auto", |file| direction_of(BufReader::new(file)))
}

/// Orientation by a file's content.
pub fn direction_of(content: impl Read + Seek) -> &'static str {
    if is_mirrored(content).unwrap_or(false) { "ur-ll" } else { "auto" }
}

fn is_mirrored<F: Read + Seek>(mut file: F) -> Result<bool> {
    let end = file.seek(SeekFrom::End(0))?;
    let mut film = Boxes { file, left: MOST_BOXES };
    let Some(moov) = film.find(0..end, b"moov", |_, _| Ok(true))? else { return Ok(false) };
    // Of the first track with video.
    let video = film.find(moov, b"trak", |film, track| {
        let Some(mdia) = film.find(track, b"mdia", |_, _| Ok(true))? else { return Ok(false) };
        let Some(hdlr) = film.find(mdia, b"hdlr", |_, _| Ok(true))? else { return Ok(false) };
        Ok(film.read::<4>(&hdlr, 8)? == *b"vide")
    })?;
    let Some(track) = video else { return Ok(false) };
    let Some(tkhd) = film.find(track, b"tkhd", |_, _| Ok(true))? else { return Ok(false) };
    // Version 1 has times of 64 bits.
    let matrix = if film.read::<1>(&tkhd, 0)? == [0] { 40 } else { 52 };
    let mut found = [0; 4];
    for (value, at) in found.iter_mut().zip([0, 4, 12, 16]) {
        *value = i32::from_be_bytes(film.read(&tkhd, matrix + at)?);
    }
    Ok(found == MIRRORED)
}

/// Reads boxes of ISO 14496-12 by their places in a file.
struct Boxes<F> {
    file: F,
    left: usize,
}

impl<F: Read + Seek> Boxes<F> {
    /// Content of the first box of a name within a place, that `fits`.
    fn find(
        &mut self,
        within: Range<u64>,
        name: &[u8; 4],
        fits: impl Fn(&mut Self, Range<u64>) -> Result<bool>,
    ) -> Result<Option<Range<u64>>> {
        let mut at = within.start;
        while at + 8 <= within.end {
            self.left = self.left.checked_sub(1).ok_or_else(wrong)?;
            let size = u64::from(u32::from_be_bytes(self.read(&(at..within.end), 0)?));
            let kind = self.read::<4>(&(at..within.end), 4)?;
            let (head, size) = match size {
                0 => (8, within.end - at),
                1 => (16, u64::from_be_bytes(self.read(&(at..within.end), 8)?)),
                size => (8, size),
            };
            let end =
                at.checked_add(size).filter(|end| size >= head && *end <= within.end).ok_or_else(wrong)?;
            if kind == *name && fits(self, at + head..end)? {
                return Ok(Some(at + head..end));
            }
            at = end;
        }
        Ok(None)
    }

    /// Bytes at an offset within a place.
    fn read<const N: usize>(&mut self, within: &Range<u64>, offset: u64) -> Result<[u8; N]> {
        if within.end - within.start < offset + N as u64 {
            return Err(wrong());
        }
        self.file.seek(SeekFrom::Start(within.start + offset))?;
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

fn wrong() -> Error {
    Error::new(ErrorKind::InvalidData, "no film")
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// A box around content.
    fn boxed(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
        [&(content.len() as u32 + 8).to_be_bytes(), name.as_slice(), content].concat()
    }

    fn film(matrix: [i32; 4]) -> Vec<u8> {
        let track = |handler: &[u8], [a, b, c, d]: [i32; 4]| {
            let mut tkhd = vec![0; 40];
            [a, b, 0, c, d, 0, 0, 0, 1 << 30].iter().for_each(|v: &i32| tkhd.extend(v.to_be_bytes()));
            let hdlr = boxed(b"hdlr", &[&[0; 8], handler, &[0; 12]].concat());
            boxed(b"trak", &[boxed(b"tkhd", &tkhd), boxed(b"mdia", &hdlr)].concat())
        };
        let tracks = [track(b"soun", [0; 4]), track(b"vide", matrix)].concat();
        [boxed(b"ftyp", b"isom"), boxed(b"mdat", &[7; 100]), boxed(b"moov", &tracks)].concat()
    }

    #[test]
    fn the_matrix_of_the_first_video_track_counts() {
        for (matrix, direction) in [(MIRRORED, "ur-ll"), ([1 << 16, 0, 0, 1 << 16], "auto")] {
            assert_eq!(direction_of(Cursor::new(film(matrix))), direction);
        }
    }

    #[test]
    fn files_that_lie_about_sizes_are_left_to_the_pipeline() {
        let whole = film(MIRRORED);
        for length in 0..whole.len() {
            assert_eq!(direction_of(Cursor::new(&whole[..length])), "auto", "the first {length} bytes");
        }
        for at in 0..whole.len() {
            for value in [0, 1, 255] {
                let mut other = whole.clone();
                other[at] = value;
                // Ends, and is one of both.
                direction_of(Cursor::new(other));
            }
        }
        // More boxes than any film has are not read to their end.
        let many = boxed(b"free", &[]).repeat(MOST_BOXES + 1);
        assert_eq!(direction_of(Cursor::new([many, whole].concat())), "auto");
    }
}
