// SPDX-License-Identifier: MPL-2.0
//! What lies between labels that touch, pixel by pixel: found by the lower label, which few higher ones touch.

use std::ops::Range;

use super::Boundary;
use super::pairs::Pairs;
use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::image::NO_LABEL;

/// What memory is for, in errors.
const BOUNDARIES: &str = "boundaries of regions";
/// Higher labels that are compared at once; most labels touch three.
const ROOM: usize = 4;
/// Bits of a label.
const BITS: usize = u16::BITS as usize;
/// The lowest bit of each label in a word, and the highest.
const LOWEST: u64 = 0x0001_0001_0001_0001;
const HIGHEST: u64 = LOWEST << (BITS - 1);
/// A place without a label: 0 is higher than no other.
const FREE: u16 = 0;

/// Where a label stands in a word of them, or [`ROOM`]. No branch: it would often be mispredicted.
#[inline(always)]
fn place(labels: u64, label: u16) -> usize {
    let differ = labels ^ (LOWEST * u64::from(label));
    // The lowest that is 0 is the lowest that borrows.
    let equal = differ.wrapping_sub(LOWEST) & !differ & HIGHEST;
    equal.trailing_zeros() as usize / BITS
}

/// Boundaries between some labels and higher ones.
#[derive(Default)]
pub(crate) struct Touching {
    /// The least of these labels.
    first: u16,
    /// The higher labels that each touches first, in a word, and what is between them.
    higher: Array<u64>,
    boundaries: Array<[Boundary; ROOM]>,
    /// All others.
    more: Pairs,
}

impl Touching {
    /// Forgets all, for pairs whose lower label is one of these.
    pub fn clear(&mut self, labels: Range<u16>) -> Result<()> {
        self.first = labels.start;
        memory::refill(&mut self.higher, BOUNDARIES, labels.len(), u64::from(FREE))?;
        // What is there is of no label before it has one.
        memory::resize(&mut self.boundaries, BOUNDARIES, labels.len(), [Boundary::default(); ROOM])?;
        self.more.clear()
    }

    /// Adds what is between two rows of labels in these columns, where they differ; `contrasts` has a difference of features for each.
    // Within what lists columns it would lack registers.
    #[inline(never)]
    pub fn add_pixels(
        &mut self,
        [one, other]: [&[u16]; 2],
        columns: &[u16],
        contrasts: &[u16],
    ) -> Result<()> {
        let Self { first, higher, boundaries, more } = self;
        for (&column, &contrast) in columns.iter().zip(contrasts) {
            let (one, other) = (one[usize::from(column)], other[usize::from(column)]);
            let labels = [one.min(other), one.max(other)];
            let i = usize::from(labels[0] - *first);
            let (higher, boundaries) = (&mut higher[i], &mut boundaries[i]);
            match boundaries.get_mut(place(*higher, labels[1])) {
                Some(boundary) => {
                    boundary.length += 1;
                    boundary.contrast += u64::from(contrast);
                }
                None => {
                    let boundary = Boundary { length: 1, held: 0, contrast: contrast.into() };
                    add_elsewhere(higher, boundaries, more, labels, boundary)?;
                }
            }
        }
        Ok(())
    }

    /// Adds what is between two labels, of which the first is the lower one.
    pub fn add(&mut self, labels: [u16; 2], boundary: Boundary) -> Result<()> {
        let i = usize::from(labels[0] - self.first);
        let (higher, boundaries) = (&mut self.higher[i], &mut self.boundaries[i]);
        match boundaries.get_mut(place(*higher, labels[1])) {
            Some(sum) => sum.add(&boundary),
            None => add_elsewhere(higher, boundaries, &mut self.more, labels, boundary)?,
        }
        Ok(())
    }

    /// Calls `visit` with the labels of each pair, the lower one first, and what is between them. What is outside of a mask touches
    /// nothing.
    pub fn for_each(&self, mut visit: impl FnMut([u16; 2], Boundary) -> Result<()>) -> Result<()> {
        for (i, (&higher, boundaries)) in self.higher.iter().zip(&self.boundaries).enumerate() {
            let low = self.first + i as u16;
            let labels = (0..ROOM).map(|place| (higher >> (place * BITS)) as u16);
            for (high, &boundary) in labels.zip(boundaries).take_while(|(high, _)| *high != FREE) {
                if high != NO_LABEL {
                    visit([low, high], boundary)?;
                }
            }
        }
        let more = self.more.list.iter().map(|pair| ([pair.a as u16, pair.b as u16], pair.boundary));
        more.filter(|(labels, _)| labels[1] != NO_LABEL)
            .try_for_each(|(labels, boundary)| visit(labels, boundary))
    }
}

/// Adds to a pair that is new, or has no place with its lower label.
#[inline(never)]
fn add_elsewhere(
    higher: &mut u64,
    boundaries: &mut [Boundary; ROOM],
    more: &mut Pairs,
    [low, high]: [u16; 2],
    boundary: Boundary,
) -> Result<()> {
    let free = place(*higher, FREE);
    match boundaries.get_mut(free) {
        Some(first) => {
            *first = boundary;
            *higher |= u64::from(high) << (free * BITS);
            Ok(())
        }
        None => more.add(low.into(), high.into(), &boundary),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn boundaries_add_up_however_many_a_label_has() {
        let (mut touching, mut wanted) = (Touching::default(), BTreeMap::new());
        for round in 0..2 {
            touching.clear(3..200).unwrap();
            wanted.clear();
            // Some labels touch one higher label, some up to 12, and some what is outside.
            let one: Vec<u16> = (0..500).map(|x| 3 + x * 7 % 190).collect();
            let other: Vec<u16> =
                (0..500).map(|x| if x % 50 == 9 { NO_LABEL } else { 3 + x % 31 * x % 97 + x % 12 }).collect();
            let columns: Vec<u16> = (0..500).filter(|&x| one[x as usize] != other[x as usize]).collect();
            let contrasts: Vec<u16> = columns.iter().map(|x| x * 10 + round).collect();
            touching.add_pixels([&one, &other], &columns, &contrasts).unwrap();
            touching.add([5, 6], Boundary { length: 2, held: 0, contrast: 9 }).unwrap();
            let mut add = |one: u16, other: u16, length, contrast| {
                if one.max(other) != NO_LABEL {
                    let sums: &mut (u32, u64) = wanted.entry([one.min(other), one.max(other)]).or_default();
                    *sums = (sums.0 + length, sums.1 + contrast);
                }
            };
            for (&x, &contrast) in columns.iter().zip(&contrasts) {
                add(one[usize::from(x)], other[usize::from(x)], 1, contrast.into());
            }
            add(6, 5, 2, 9);
            let mut found = BTreeMap::new();
            touching
                .for_each(|labels, boundary| {
                    assert!(found.insert(labels, (boundary.length, boundary.contrast)).is_none());
                    Ok(())
                })
                .unwrap();
            assert_eq!(found, wanted);
            let most = (3..200).map(|low| wanted.keys().filter(|labels| labels[0] == low).count()).max();
            assert!(most > Some(ROOM) && !touching.more.list.is_empty());
        }
    }
}
