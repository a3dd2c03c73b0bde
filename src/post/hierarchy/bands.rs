// SPDX-License-Identifier: MPL-2.0
//! Length and contrast of the boundaries between labels in a band of rows: pixels at boundaries are listed word by
//! word, then compared in vectors.

use std::ops::Range;

use super::Boundary;
use super::pairs::{Moved, Pair};
use crate::color::unpack;
use crate::cpu::chunk;
use crate::cpu::level::by_level;
use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::image::{Labels, NO_LABEL};
use crate::post::runs::{BLOCK, FEW, WORD, differences};

/// Name of the pieces in errors about memory.
const PIECES: &str = "boundaries of regions";
/// Bits of a label.
const BITS: u32 = u16::BITS;
/// Pixels of a band per slot of its cache: a row of superpixels has far fewer pairs than there are slots.
const SLOT_PIXELS: usize = 128;
const LEAST_SLOTS: usize = 64;
const MOST_SLOTS: usize = 1 << 14;
/// Features that are compared together.
const LANES: usize = 16;
/// Rows between prefetching pixels and reading them.
pub(super) const AHEAD: usize = 2;

by_level! {
    /// Computes the pair and the color difference of all listed pixels, [`LANES`] at a time.
    fn compare_sides(sides: &mut Sides, count: usize) = compare_sides_body
}

#[inline(always)]
fn compare_sides_body(sides: &mut Sides, count: usize) {
    let Sides { labels: [one, other], features: [near, far], pairs, contrasts } = sides;
    let (near, far) = (near.as_chunks::<LANES>().0, far.as_chunks::<LANES>().0);
    let contrasts = contrasts.as_chunks_mut::<LANES>().0;
    for ((contrasts, near), far) in contrasts.iter_mut().zip(near).zip(far).take(count.div_ceil(LANES)) {
        for ((contrast, &near), &far) in contrasts.iter_mut().zip(near).zip(far) {
            let (a, b) = (unpack(near), unpack(far));
            *contrast = (a[0].abs_diff(b[0]) + a[1].abs_diff(b[1]) + a[2].abs_diff(b[2])) as u16;
        }
    }
    let (one, other) = (one.as_chunks::<LANES>().0, other.as_chunks::<LANES>().0);
    let pairs = pairs.as_chunks_mut::<LANES>().0;
    for ((pairs, one), other) in pairs.iter_mut().zip(one).zip(other).take(count.div_ceil(LANES)) {
        for ((pair, &one), &other) in pairs.iter_mut().zip(one).zip(other) {
            *pair = u32::from(one.min(other)) << BITS | u32::from(one.max(other));
        }
    }
}

/// Labels and features of some pixels of a row.
#[derive(Clone, Copy)]
struct Pixels<'a> {
    labels: &'a [u16],
    features: &'a [u32],
}

impl Pixels<'_> {
    fn columns(self, columns: Range<usize>) -> Self {
        Self { labels: &self.labels[columns.clone()], features: &self.features[columns] }
    }
}

/// Most pixels of a block with another label than their neighbor, plus the entries that a vector store writes past the
/// last.
const SIDES: usize = BLOCK + FEW.next_multiple_of(LANES);

/// Pixels on both sides of boundaries: labels, features, and what follows from both: pairs, the lower label first, and
/// differences.
struct Sides {
    labels: [[u16; SIDES]; 2],
    features: [[u32; SIDES]; 2],
    pairs: [u32; SIDES],
    contrasts: [u16; SIDES],
}

impl Sides {
    fn new() -> Self {
        Self { labels: [[0; SIDES]; 2], features: [[0; SIDES]; 2], pairs: [0; SIDES], contrasts: [0; SIDES] }
    }

    /// Appends the pixels of a word whose labels differ behind `found` others. Returns the new number.
    #[inline(always)]
    fn list_word(&mut self, labels: [&[u16; WORD]; 2], features: [&[u32; WORD]; 2], found: usize) -> usize {
        let (mut bits, count) = differences(labels[0], labels[1]);
        let mut next = found;
        while let [Some(one), Some(other)] =
            self.labels.each_mut().map(|labels| labels[next..].first_chunk_mut::<FEW>())
            && let [Some(near), Some(far)] =
                self.features.each_mut().map(|features| features[next..].first_chunk_mut::<FEW>())
        {
            for i in 0..FEW {
                let column = bits.trailing_zeros() as usize % WORD;
                (one[i], other[i]) = (labels[0][column], labels[1][column]);
                (near[i], far[i]) = (features[0][column], features[1][column]);
                bits &= bits.wrapping_sub(1);
            }
            if bits == 0 {
                break;
            }
            next += FEW;
        }
        found + count
    }
}

/// A piece of the boundary between two labels, within some rows.
#[derive(Clone, Copy, Default)]
struct Piece {
    /// Both labels, the lower one first; 0 is no pair.
    labels: u32,
    length: u32,
    contrast: u64,
}

/// The rows of one task, and the pairs of labels that touch in them or below them.
pub(super) struct Band {
    /// Finished pieces of boundaries; a pair may have several.
    pub pieces: Moved,
    /// Growing pieces in a direct-mapped cache by pair; the size is a power of two. Another pair evicts the piece in
    /// its slot.
    slots: Array<Piece>,
    /// Pixels in the rows.
    pixels: usize,
    sides: Sides,
}

impl Band {
    pub fn new(pixels: usize) -> Self {
        Self { pieces: Moved::default(), slots: Array::new(), pixels, sides: Sides::new() }
    }

    pub fn measure(&mut self, features: &[u32], labels: &Labels<'_>, rows: Range<usize>) -> Result<()> {
        let (width, height) = (labels.geometry().width as usize, labels.geometry().height as usize);
        let row = |y: usize| Pixels { labels: labels.row(y), features: &features[y * width..][..width] };
        let slots = (self.pixels / SLOT_PIXELS).next_power_of_two().clamp(LEAST_SLOTS, MOST_SLOTS);
        memory::refill(&mut self.slots, PIECES, slots, Piece::default())?;
        self.pieces.clear();
        for y in rows {
            let (own, ahead) = (row(y), row((y + AHEAD).min(height - 1)));
            self.add_rows(own.columns(0..width - 1), own.columns(1..width), ahead.labels)?;
            if y + 1 < height {
                self.add_rows(own, row(y + 1), ahead.features)?;
            }
        }
        let Self { pieces, slots, .. } = self;
        slots.iter().try_for_each(|&piece| keep(piece, pieces))
    }

    /// Adds the boundary between two rows of pixels, and prefetches `ahead` on the way.
    fn add_rows<T>(&mut self, one: Pixels<'_>, other: Pixels<'_>, ahead: &[T]) -> Result<()> {
        let width = one.labels.len();
        for first in (0..width).step_by(BLOCK) {
            let columns = first..(first + BLOCK).min(width);
            memory::prefetch(&ahead[columns.clone()]);
            self.add_block(one.columns(columns.clone()), other.columns(columns))?;
        }
        Ok(())
    }

    fn add_block(&mut self, one: Pixels<'_>, other: Pixels<'_>) -> Result<()> {
        let sides = &mut self.sides;
        let (mut found, both) = (0, [one, other]);
        let [(one, rest), (other, other_rest)] = both.map(|pixels| pixels.labels.as_chunks());
        let [(near, near_rest), (far, far_rest)] = both.map(|pixels| pixels.features.as_chunks());
        for (labels, features) in one.iter().zip(other).zip(near.iter().zip(far)) {
            found = sides.list_word([labels.0, labels.1], [features.0, features.1], found);
        }
        if !rest.is_empty() {
            let labels = [rest, other_rest].map(|labels| chunk::first(labels, 0));
            let features = [near_rest, far_rest].map(|features| chunk::first(features, 0));
            found = sides.list_word(labels.each_ref(), features.each_ref(), found);
        }
        compare_sides(sides, found);
        let Sides { pairs, contrasts, .. } = &self.sides;
        add_pixels(&pairs[..found], &contrasts[..found], &mut self.slots, &mut self.pieces)
    }
}

/// Adds listed pixels to the pieces of their pairs.
#[inline(never)]
fn add_pixels(pairs: &[u32], contrasts: &[u16], slots: &mut [Piece], pieces: &mut Moved) -> Result<()> {
    let shift = u32::BITS - slots.len().ilog2();
    for (&labels, &contrast) in pairs.iter().zip(contrasts) {
        let piece = &mut slots[(labels.wrapping_mul(0x9e37_79b1) >> shift) as usize];
        if piece.labels != labels {
            keep(*piece, pieces)?;
            *piece = Piece { labels, ..Piece::default() };
        }
        piece.length += 1;
        piece.contrast += u64::from(contrast);
    }
    Ok(())
}

/// Stores a finished piece. Drops empty ones, and those beside pixels outside of a mask, which touch nothing.
#[inline(never)]
fn keep(piece: Piece, pieces: &mut Moved) -> Result<()> {
    let Piece { labels, length, contrast } = piece;
    let [a, b] = [labels >> BITS, labels].map(|label| label as u16);
    if length == 0 || b == NO_LABEL {
        return Ok(());
    }
    pieces.push(Pair { a, b, cost: 0, boundary: Boundary { length, held: 0, contrast } })
}
