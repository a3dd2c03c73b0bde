// SPDX-License-Identifier: MPL-2.0
//! Runs of equal pixels in a row: where they begin, and the sums over their pixels.

use std::ops::Range;

use crate::color::unpack;
use crate::cpu::level::by_level;
use crate::cpu::memory::{self, Array};
use crate::error::Result;

/// Pixels that are compared at a time.
pub(crate) const WORD: usize = u64::BITS as usize;
/// Pixels whose differences are listed before any is visited.
pub(crate) const BLOCK: usize = 8 * WORD;
/// Differences of a word that are listed without a branch; few words have more.
pub(crate) const FEW: usize = 8;
/// Columns of a block, with room for the entries that are written past the last.
type Columns = [u16; BLOCK + FEW];

/// Calls `visit` with each column whose pixel differs from the one left of it, from left to right.
///
/// Runs are short and end anywhere, so a branch per pixel would often be mispredicted. All pixels are compared first,
/// without branches.
#[inline]
pub(crate) fn for_each_change<T: Copy + PartialEq>(row: &[T], mut visit: impl FnMut(usize)) {
    let Some((_, rest)) = row.split_first() else { return };
    for_each_difference(rest, row, |x| visit(x + 1));
}

/// Calls `visit` with each column whose pixels in two rows differ, from left to right, up to the end of the shorter
/// row.
///
/// Columns are listed first: a loop over the bits of a word would end with a mispredicted branch each time.
#[inline]
pub(crate) fn for_each_difference<T: Copy + PartialEq>(one: &[T], other: &[T], mut visit: impl FnMut(usize)) {
    let mut columns = [0; BLOCK + FEW];
    for (block, (one, other)) in one.chunks(BLOCK).zip(other.chunks(BLOCK)).enumerate() {
        let found = list_differences(one, other, &mut columns);
        for &column in &columns[..found] {
            visit(block * BLOCK + usize::from(column));
        }
    }
}

/// Lists the columns of a block whose pixels differ, up to the end of the shorter row. Writes past the last one.
/// Returns how many there are.
#[inline(always)]
fn list_differences<T: Copy + PartialEq>(one: &[T], other: &[T], columns: &mut Columns) -> usize {
    let mut found = 0;
    for (word, (one, other)) in one.chunks(WORD).zip(other.chunks(WORD)).enumerate() {
        let mut differ = [0u8; WORD];
        for ((differ, one), other) in differ.iter_mut().zip(one).zip(other) {
            *differ = u8::from(one != other);
        }
        let mut bits = bits_of(&differ);
        let behind = found + bits.count_ones() as usize;
        while let Some(few) = columns[found..].first_chunk_mut::<FEW>() {
            for column in few {
                *column = (word * WORD) as u16 + bits.trailing_zeros() as u16;
                bits &= bits.wrapping_sub(1);
            }
            if bits == 0 {
                break;
            }
            found += FEW;
        }
        found = behind;
    }
    found
}

/// A bit for each pixel of a word that differs between two rows, and the number of such bits.
#[inline(always)]
pub(crate) fn differences(one: &[u16; WORD], other: &[u16; WORD]) -> (u64, usize) {
    let mut differ = [0u8; WORD];
    for ((differ, one), other) in differ.iter_mut().zip(one).zip(other) {
        *differ = u8::from(one != other);
    }
    let sums = differ.as_chunks().0.iter().fold(0, |sums, bytes| sums + u64::from_le_bytes(*bytes));
    // The number of set bytes is at most 64, so byte sums do not overflow, and the product's upper byte is the total.
    (bits_of(&differ), (sums.wrapping_mul(0x0101_0101_0101_0101) >> 56) as usize)
}

/// A bit for each byte, all of which are 0 or 1.
#[inline(always)]
pub(crate) fn bits_of(bytes: &[u8; WORD]) -> u64 {
    let mut bits = 0;
    for (i, bytes) in bytes.as_chunks().0.iter().enumerate() {
        // The product's upper byte collects the eight bytes' lowest bits in their order.
        bits |= u64::from_le_bytes(*bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56 << (8 * i);
    }
    bits
}

/// Calls `visit` with the columns of each run of equal pixels.
#[inline]
pub(crate) fn for_each_run<T: Copy + PartialEq>(row: &[T], mut visit: impl FnMut(Range<usize>)) {
    let mut start = 0;
    for_each_change(row, |end| {
        visit(start..end);
        start = end;
    });
    if start < row.len() {
        visit(start..row.len());
    }
}

/// Features that are summed together.
const PIECE: usize = 32;

/// Bits of a sum of one channel, and the number of pixels with channels of 11 bits that it holds.
const FIELD: u32 = 21;
const FIELD_PIXELS: usize = 1024;

/// Packs channels of at most 11 bits into one number, so that a single addition adds all.
#[inline(always)]
pub(crate) fn packed([a, b, c]: [u32; 3]) -> u64 {
    u64::from(a) | u64::from(b) << FIELD | u64::from(c) << (2 * FIELD)
}

/// Prefix sums of a row, which give the sum over any columns by one subtraction: runs are short, and a loop over each
/// would take longer.
#[derive(Default)]
pub(crate) struct RowSums {
    /// Sums before each column. They wrap; differences do not.
    before: Array<u64>,
}

impl RowSums {
    /// Makes room for a row of `width` pixels.
    fn prepare(&mut self, width: usize) -> Result<()> {
        memory::resize(&mut self.before, "sums of a row", width + 1, 0)
    }

    /// Sums a row of `width` pixels, see [`packed`].
    #[inline(always)]
    pub fn sum_pixels(&mut self, width: usize, pixels: impl Iterator<Item = u64>) -> Result<()> {
        self.prepare(width)?;
        let mut sum = 0u64;
        for (before, pixel) in self.before[1..].iter_mut().zip(pixels) {
            sum = sum.wrapping_add(pixel);
            *before = sum;
        }
        Ok(())
    }

    /// Sums a row of features.
    pub fn sum_features(&mut self, features: &[u32]) -> Result<()> {
        self.prepare(features.len())?;
        sum_features(&mut self.before[1..], features);
        Ok(())
    }

    /// Sums a row of pixels, N at a time. `pixels` gets the first column and may write past the row's end.
    #[inline(always)]
    pub fn sum_pieces<const N: usize>(
        &mut self,
        width: usize,
        mut pixels: impl FnMut(usize, &mut [u64; N]),
    ) -> Result<()> {
        self.prepare(width)?;
        let (mut sum, mut piece) = (0u64, [0; N]);
        for (i, before) in self.before[1..].chunks_mut(N).enumerate() {
            pixels(i * N, &mut piece);
            for (before, pixel) in before.iter_mut().zip(&piece) {
                sum = sum.wrapping_add(*pixel);
                *before = sum;
            }
        }
        Ok(())
    }

    /// Sums of the channels over some columns.
    #[inline(always)]
    pub fn over(&self, columns: Range<usize>) -> [u64; 3] {
        let mut sums = [0; 3];
        let mut start = columns.start;
        while start < columns.end {
            let end = columns.end.min(start + FIELD_PIXELS);
            let sum = self.before[end].wrapping_sub(self.before[start]);
            for (i, total) in sums.iter_mut().enumerate() {
                *total += sum >> (i as u32 * FIELD) & ((1 << FIELD.min(64 - i as u32 * FIELD)) - 1);
            }
            start = end;
        }
        sums
    }
}

by_level! {
    /// Prefix sums of packed features.
    fn sum_features(sums: &mut [u64], features: &[u32]) = sum_features_body
}

#[inline(always)]
fn sum_features_body(sums: &mut [u64], features: &[u32]) {
    let mut sum = 0u64;
    let mut add = |sums: &mut [u64], pixels: &[u64]| {
        for (before, pixel) in sums.iter_mut().zip(pixels) {
            sum = sum.wrapping_add(*pixel);
            *before = sum;
        }
    };
    let channels = |&feature: &u32| packed(unpack(feature));
    // Separating the channels is vectorized. In one loop with the sums it would not be.
    let (pieces, rest) = features.as_chunks::<PIECE>();
    let (sum_pieces, sum_rest) = sums.as_chunks_mut::<PIECE>();
    let mut pixels = [0; PIECE];
    for (sums, piece) in sum_pieces.iter_mut().zip(pieces) {
        pixels.iter_mut().zip(piece).for_each(|(pixel, feature)| *pixel = channels(feature));
        add(sums, &pixels);
    }
    pixels.iter_mut().zip(rest).for_each(|(pixel, feature)| *pixel = channels(feature));
    add(sum_rest, &pixels);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_found_wherever_they_are() {
        for length in [0, 1, 2, 63, 64, 65, 66, 127, 128, 129, 200, 511, 512, 513, 577, 1100] {
            for period in [1, 2, 7, 8, 9, 64, 300, 512] {
                let row: Vec<u16> = (0..length).map(|x| x / period * 7).collect();
                let wanted: Vec<usize> = (1..row.len()).filter(|&x| row[x] != row[x - 1]).collect();
                let mut found = Vec::new();
                for_each_change(&row, |x| found.push(x));
                assert_eq!(found, wanted, "{length} {period}");
            }
        }
    }

    #[test]
    fn sums_over_any_columns_are_exact() {
        let width = 3000;
        let row: Vec<[u32; 3]> =
            (0..width).map(|x| if x < 2100 { [2047; 3] } else { [x % 2048, 7, x % 5] }).collect();
        let mut sums = RowSums::default();
        sums.sum_pixels(row.len(), row.iter().map(|&pixel| packed(pixel))).unwrap();
        for columns in [0..3000, 0..1, 0..1024, 3..1028, 17..2900, 2999..3000, 5..5] {
            let wanted: [u64; 3] =
                [0, 1, 2].map(|i| row[columns.clone()].iter().map(|pixel| u64::from(pixel[i])).sum());
            assert_eq!(sums.over(columns.clone()), wanted, "{columns:?}");
        }
        for width in [1, 31, 32, 33, 2999, 3000] {
            // Channels of up to 11 bits, the first of 10.
            let features: Vec<u32> =
                row[..width].iter().map(|p| p[0] >> 1 | p[1] << 10 | p[2] << 21).collect();
            sums.sum_features(&features).unwrap();
            let wanted: [u64; 3] = [0, 1, 2].map(|i| features.iter().map(|&f| u64::from(unpack(f)[i])).sum());
            assert_eq!(sums.over(0..width), wanted, "{width}");
        }
    }
}
