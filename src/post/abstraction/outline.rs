// SPDX-License-Identifier: MPL-2.0
//! Smooth outlines of a tile: the two regions that weigh most at each pixel.

use super::paint::Paint;
use super::rule::{DIFFERENCES, MOST_RADIUS, MOST_WEIGHTS, NARROW, Rule};
use crate::cpu::level::by_level;
use crate::image::{Labels, NO_LABEL};

/// Size of a tile; both are even, since samples of chroma may be shared by two columns and rows.
pub(super) const WIDTH: usize = 64;
pub(super) const HEIGHT: usize = 32;
/// Size of its window, with the pixels that the widest Gaussian reaches.
const WINDOW_WIDTH: usize = WIDTH + 2 * MOST_RADIUS;
const WINDOW_HEIGHT: usize = HEIGHT + 2 * MOST_RADIUS;
/// Labels of a word of the set of labels.
const WORD: usize = u64::BITS as usize;

/// The regions of largest and second largest weight at each pixel of a row, with their weights.
#[derive(Clone, Copy)]
pub(super) struct TopRow {
    pub weight: [[u16; WIDTH]; 2],
    pub label: [[u16; WIDTH]; 2],
}

const NOTHING: TopRow = TopRow { weight: [[0; WIDTH]; 2], label: [[0; WIDTH]; 2] };

/// A tile's labels with those around it, and its outlines.
#[derive(Clone)]
pub(super) struct Tile {
    /// Column and row of the first pixel.
    pub left: usize,
    pub top: usize,
    /// Pixels of the frame in it.
    pub width: usize,
    pub height: usize,
    radius: usize,
    /// From `radius` columns and rows before the tile on; outside of the frame the nearest pixel's.
    window: [[u16; WINDOW_WIDTH]; WINDOW_HEIGHT],
    /// One bit for each label.
    occurring: [u64; (1 << 16) / WORD],
    /// The words of it that may not be zero.
    words: [usize; 2],
    pub rows: [TopRow; HEIGHT],
}

impl Tile {
    pub fn new() -> Self {
        Self {
            left: 0,
            top: 0,
            width: 0,
            height: 0,
            radius: 0,
            window: [[0; WINDOW_WIDTH]; WINDOW_HEIGHT],
            occurring: [0; (1 << 16) / WORD],
            words: [0; 2],
            rows: [NOTHING; HEIGHT],
        }
    }

    /// Copies the labels of the tile at `left`, `top`. Returns the label that all have, if they have one.
    pub fn load(&mut self, labels: &Labels<'_>, [left, top]: [usize; 2], radius: usize) -> Option<u16> {
        let (width, height) = (labels.geometry().width() as usize, labels.geometry().height() as usize);
        (self.left, self.top, self.radius) = (left, top, radius);
        (self.width, self.height) = (WIDTH.min(width - left), HEIGHT.min(height - top));
        if let Some(words) = self.occurring.get_mut(self.words[0]..self.words[1]) {
            words.fill(0);
        }
        self.words = [self.occurring.len(), 0];
        // Columns of the window that are in the frame.
        let from = radius.saturating_sub(left);
        let to = (width + radius - left).min(WIDTH + 2 * radius);
        let first = labels.row(top)[left];
        let mut is_one = true;
        for i in 0..self.height + 2 * radius {
            let row = labels.row((top + i).saturating_sub(radius).min(height - 1));
            let window = &mut self.window[i][..WIDTH + 2 * radius];
            window[from..to].copy_from_slice(&row[left + from - radius..left + to - radius]);
            let (before, after) = (window[from], window[to - 1]);
            window[..from].fill(before);
            window[to..].fill(after);
            is_one &= window.iter().all(|&label| label == first);
        }
        is_one.then_some(first)
    }

    /// The label of a pixel of the tile in the segmentation.
    pub fn own_row(&self, y: usize) -> &[u16] {
        &self.window[y + self.radius][self.radius..][..self.width]
    }

    /// Finds the two regions of largest weight at every pixel.
    pub fn find_outlines(&mut self, rule: &Rule, paints: &[Paint]) {
        self.rows = [NOTHING; HEIGHT];
        let rows = self.height + 2 * self.radius;
        for row in &self.window[..rows] {
            let row = &row[..WIDTH + 2 * self.radius];
            let mut last = None;
            for &label in row {
                if last != Some(label) {
                    let word = usize::from(label) / WORD;
                    self.occurring[word] |= 1 << (usize::from(label) % WORD);
                    self.words = [self.words[0].min(word), self.words[1].max(word + 1)];
                    last = Some(label);
                }
            }
        }
        // Ascending, so that of equal weights the lower label's stays.
        for word in self.words[0]..self.words[1] {
            let mut bits = self.occurring[word];
            while bits != 0 {
                let label = (WORD * word) as u16 + bits.trailing_zeros() as u16;
                bits &= bits - 1;
                if let Some(paint) = paints.get(usize::from(label)).filter(|_| label != NO_LABEL) {
                    add_region(self, rule, label, paint.boost[0]);
                }
            }
        }
    }

    /// Weights of two regions at the narrow scale around a pixel of the tile.
    pub fn narrow_weights(&self, x: usize, y: usize, labels: [u16; 2]) -> [u32; 2] {
        let mut weights = [0; 2];
        for (row, down) in self.window[y + self.radius - 2..][..5].iter().zip(NARROW) {
            for (&label, across) in row[x + self.radius - 2..][..5].iter().zip(NARROW) {
                for (weight, of) in weights.iter_mut().zip(labels) {
                    *weight += if label == of { down * across } else { 0 };
                }
            }
        }
        weights
    }
}

by_level! {
    /// Offers a region with its weight to every pixel of the tile.
    fn add_region(tile: &mut Tile, rule: &Rule, label: u16, boost: u16) = add_region_body
}

#[inline(always)]
fn add_region_body(tile: &mut Tile, rule: &Rule, label: u16, boost: u16) {
    let Tile { window, rows, height, radius, .. } = tile;
    let (radius, height) = (*radius, *height);
    let taps = 2 * radius + 1;
    // Sums along rows, in which 128 is all. Rows without the label stay zero.
    let mut along = [[0u8; WIDTH]; WINDOW_HEIGHT];
    let (mut first, mut end) = (usize::MAX, 0);
    for (i, (row, along)) in window.iter().zip(&mut along).enumerate().take(height + 2 * radius) {
        let mut inside = [0u8; WINDOW_WIDTH];
        let mut any = 0;
        for (inside, &other) in inside.iter_mut().zip(row).take(WIDTH + 2 * radius) {
            *inside = if other == label { 0xff } else { 0 };
            any |= *inside;
        }
        if any == 0 {
            continue;
        }
        (first, end) = (first.min(i), i + 1);
        for (shift, &weight) in rule.weights[..taps].iter().enumerate() {
            for (sum, inside) in along.iter_mut().zip(&inside[shift..]) {
                *sum += inside & weight;
            }
        }
    }
    for (y, row) in rows.iter_mut().enumerate().take(height) {
        if y + taps <= first || y >= end {
            continue;
        }
        let mut sums = [0u16; WIDTH];
        for (along, &weight) in along[y..y + taps].iter().zip(&rule.weights[..taps]) {
            for (sum, &along) in sums.iter_mut().zip(along) {
                *sum += u16::from(along) * u16::from(weight);
            }
        }
        let TopRow { weight: [most, second], label: [own, other] } = row;
        for x in 0..WIDTH {
            // At most 2^14, so that the product's upper half holds it.
            let weight = ((u32::from(2 * sums[x]) * u32::from(boost)) >> 16) as u16;
            let is_most = weight > most[x];
            let is_second = weight > second[x];
            second[x] = if is_most {
                most[x]
            } else if is_second {
                weight
            } else {
                second[x]
            };
            other[x] = if is_most {
                own[x]
            } else if is_second {
                label
            } else {
                other[x]
            };
            most[x] = if is_most { weight } else { most[x] };
            own[x] = if is_most { label } else { own[x] };
        }
    }
}

/// Step of a relative difference of two weights; not both are 0.
#[inline(always)]
pub(super) fn difference(a: u32, b: u32) -> usize {
    (DIFFERENCES as u32 * a.abs_diff(b) / (a + b)) as usize
}

const _: () = assert!(MOST_WEIGHTS == 2 * MOST_RADIUS + 1 && MOST_RADIUS >= 2);
