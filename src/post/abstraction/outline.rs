// SPDX-License-Identifier: MPL-2.0
//! Smooth outlines of a tile: the two regions that weigh most at each pixel.

use super::paint::Paint;
use super::rule::{DIFFERENCES, MOST_RADIUS, MOST_WEIGHTS, NARROW, Rule, WEIGHT_SUM};
use crate::cpu::level::by_level;
use crate::image::{Labels, NO_LABEL};
use crate::post::runs::for_each_change;

/// Size of a tile; both are even, since samples of chroma may be shared by two columns and rows.
pub(super) const WIDTH: usize = 64;
pub(super) const HEIGHT: usize = 32;
/// Size of its window, with the pixels that the widest Gaussian reaches.
const WINDOW_WIDTH: usize = WIDTH + 2 * MOST_RADIUS;
const WINDOW_HEIGHT: usize = HEIGHT + 2 * MOST_RADIUS;
/// Columns of a window of 5 x 5 px around each pixel of a row.
const AROUND: usize = WIDTH + 4;
/// Weight of all labels of a window together.
const WHOLE: u16 = 1 << 14;
/// Weights of a vector.
const LANES: usize = 16;
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
    /// What the regions that were not weighed yet weigh together.
    rest: [[u16; WIDTH]; HEIGHT],
    /// Not zero where the 5 x 5 px around a pixel have more than one label, after `find_changes`.
    pub changes: [[u8; WIDTH]; HEIGHT],
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
            rest: [[0; WIDTH]; HEIGHT],
            changes: [[0; WIDTH]; HEIGHT],
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
            // All of them, without an early end: that is faster.
            is_one &= window.iter().fold(0, |different, &label| different | (label ^ first)) == 0;
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
            let mut add = |label: u16| {
                let word = usize::from(label) / WORD;
                self.occurring[word] |= 1 << (usize::from(label) % WORD);
                self.words = [self.words[0].min(word), self.words[1].max(word + 1)];
            };
            add(row[0]);
            for_each_change(row, |x| add(row[x]));
        }
        self.rest[..self.height].fill([WHOLE; WIDTH]);
        let words = self.words[0]..self.words[1];
        let known = |label: u16| paints.get(usize::from(label)).filter(|_| label != NO_LABEL);
        // What is left for the last is its own only if every pixel counts for a region.
        let last = self.occurring[words.clone()].iter().rposition(|&bits| bits != 0).map(|i| {
            let word = words.start + i;
            (WORD * word + WORD - 1 - self.occurring[word].leading_zeros() as usize) as u16
        });
        // Ascending, so that of equal weights the lower label's stays.
        for word in words {
            let mut bits = self.occurring[word];
            while bits != 0 {
                let label = (WORD * word) as u16 + bits.trailing_zeros() as u16;
                bits &= bits - 1;
                if let Some(paint) = known(label) {
                    add_region(self, rule, label, paint.boost[0], last == Some(label));
                }
            }
        }
    }

    /// Finds the pixels that have more than one label around them at the narrow scale.
    pub fn find_changes(&mut self) {
        find_changes(self);
    }

    /// Weights of two regions at the narrow scale around a pixel of the tile.
    pub fn narrow_weights(&self, x: usize, y: usize, labels: [u16; 2]) -> [u32; 2] {
        let mut weights = [[0u16; 8]; 2];
        for (row, &down) in self.window[y + self.radius - 2..][..5].iter().zip(&NARROW) {
            // Of eight pixels the last three weigh nothing.
            let Some(row) = row[x + self.radius - 2..].first_chunk::<8>() else { continue };
            for (weight, of) in weights.iter_mut().zip(labels) {
                for ((weight, &label), &across) in weight.iter_mut().zip(row).zip(&NARROW_ROW) {
                    *weight += if label == of { down as u16 * across } else { 0 };
                }
            }
        }
        weights.map(|weights| weights.iter().copied().map(u32::from).sum())
    }
}

/// The narrow Gaussian, with zeros to a whole vector.
const NARROW_ROW: [u16; 8] = {
    let mut row = [0; 8];
    let mut i = 0;
    while i < NARROW.len() {
        row[i] = NARROW[i] as u16;
        i += 1;
    }
    row
};

by_level! {
    /// Offers a region with its weight to every pixel of the tile; the last of all regions has what the others leave.
    fn add_region(tile: &mut Tile, rule: &Rule, label: u16, boost: u16, is_last: bool) = add_region_body
}

#[inline(always)]
fn add_region_body(tile: &mut Tile, rule: &Rule, label: u16, boost: u16, is_last: bool) {
    let Tile { window, rows, rest, height, radius, .. } = tile;
    let (radius, height) = (*radius, *height);
    if is_last {
        rows.iter_mut().zip(rest).take(height).for_each(|(row, rest)| row.offer(rest, label, boost));
        return;
    }
    let taps = 2 * radius + 1;
    // Sums along rows, in which 128 is all. Rows without the label stay zero.
    let mut along = [[0u8; WIDTH]; WINDOW_HEIGHT];
    let (mut first, mut end) = (usize::MAX, 0);
    for (i, (row, along)) in window.iter().zip(&mut along).enumerate().take(height + 2 * radius) {
        let mut inside = [0u8; WINDOW_WIDTH];
        let (mut any, mut all) = (0, 0xff);
        for (inside, &other) in inside.iter_mut().zip(row).take(WIDTH + 2 * radius) {
            *inside = if other == label { 0xff } else { 0 };
            any |= *inside;
            all &= *inside;
        }
        if any == 0 {
            continue;
        }
        (first, end) = (first.min(i), i + 1);
        if all != 0 {
            *along = [WEIGHT_SUM; WIDTH];
            continue;
        }
        let mut sums = [0u8; WIDTH];
        for (shift, &weight) in rule.weights[..taps].iter().enumerate() {
            for (sum, inside) in sums.iter_mut().zip(&inside[shift..]) {
                *sum += inside & weight;
            }
        }
        *along = sums;
    }
    for (y, (row, rest)) in rows.iter_mut().zip(rest).enumerate().take(height) {
        if y + taps <= first || y >= end {
            continue;
        }
        let mut sums = [0u16; WIDTH];
        for (along, &weight) in along[y..y + taps].iter().zip(&rule.weights[..taps]) {
            for (sum, &along) in sums.iter_mut().zip(along) {
                *sum += u16::from(along) * u16::from(weight);
            }
        }
        rest.iter_mut().zip(&sums).for_each(|(rest, sum)| *rest -= sum);
        row.offer(&sums, label, boost);
    }
}

impl TopRow {
    /// Offers a region with its sums to every pixel.
    #[inline(always)]
    fn offer(&mut self, sums: &[u16; WIDTH], label: u16, boost: u16) {
        let Self { weight: [most, second], label: [own, other] } = self;
        let most = most.as_chunks_mut::<LANES>().0.iter_mut().zip(second.as_chunks_mut::<LANES>().0);
        let own = own.as_chunks_mut::<LANES>().0.iter_mut().zip(other.as_chunks_mut::<LANES>().0);
        for (((most, second), (own, other)), sums) in most.zip(own).zip(sums.as_chunks::<LANES>().0) {
            let before = (*most, *own);
            for x in 0..LANES {
                // At most 2^14, so that the product's upper half holds it.
                let weight = ((u32::from(2 * sums[x]) * u32::from(boost)) >> 16) as u16;
                // The second is the better of it and of what it surpasses: all by masks, without a branch.
                let is_most = if weight > before.0[x] { u16::MAX } else { 0 };
                let lesser = before.0[x] & is_most | weight & !is_most;
                let of_lesser = before.1[x] & is_most | label & !is_most;
                // What was most comes before an equal second.
                let is_second = is_most | if lesser > second[x] { u16::MAX } else { 0 };
                most[x] = weight & is_most | before.0[x] & !is_most;
                own[x] = label & is_most | before.1[x] & !is_most;
                other[x] = of_lesser & is_second | other[x] & !is_second;
                second[x] = lesser & is_second | second[x] & !is_second;
            }
        }
    }
}

by_level! {
    /// Finds the pixels that have more than one label around them.
    fn find_changes(tile: &mut Tile) = find_changes_body
}

#[inline(always)]
fn find_changes_body(tile: &mut Tile) {
    let Tile { window, changes, height, radius, .. } = tile;
    let first = *radius - 2;
    // Whether a row's five pixels around a column are of several labels, and whether the middle one and that below it are.
    let mut rows = [[0u8; WIDTH]; HEIGHT + 4];
    let mut downs = [[0u8; WIDTH]; HEIGHT + 4];
    for (i, (row, down)) in rows.iter_mut().zip(&mut downs).enumerate().take(*height + 4) {
        let labels = &window[first + i][first..][..AROUND];
        let mut beside = [0u8; AROUND - 1];
        beside.iter_mut().zip(labels.windows(2)).for_each(|(b, pair)| *b = u8::from(pair[0] != pair[1]));
        for x in 0..WIDTH {
            row[x] = beside[x] | beside[x + 1] | beside[x + 2] | beside[x + 3];
        }
        if i + 1 < *height + 4 {
            let [middle, below] = [i, i + 1].map(|i| &window[first + i][first + 2..][..WIDTH]);
            down.iter_mut().zip(middle.iter().zip(below)).for_each(|(down, (a, b))| *down = u8::from(a != b));
        }
    }
    for (y, changes) in changes.iter_mut().enumerate().take(*height) {
        for x in 0..WIDTH {
            let across = rows[y][x] | rows[y + 1][x] | rows[y + 2][x] | rows[y + 3][x] | rows[y + 4][x];
            changes[x] = across | downs[y][x] | downs[y + 1][x] | downs[y + 2][x] | downs[y + 3][x];
        }
    }
}

/// Step of a relative difference of two weights; not both are 0.
#[inline(always)]
pub(super) fn difference(a: u32, b: u32) -> usize {
    (DIFFERENCES as u32 * a.abs_diff(b) / (a + b)) as usize
}

const _: () = assert!(MOST_WEIGHTS == 2 * MOST_RADIUS + 1 && MOST_RADIUS >= 2);
