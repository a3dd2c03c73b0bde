// SPDX-License-Identifier: MPL-2.0
//! Pairs of labels that touch, each once, and what is between them: what is added to them commutes.

use std::ops::Range;

use super::Boundary;
use super::places::Places;
use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::image::NO_LABEL;

/// What memory is for, in errors.
const PAIRS: &str = "pairs of regions";

/// Two regions that touch, named by labels, of which `a` is the lower one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pair {
    pub a: u16,
    pub b: u16,
    /// Bits of the cost, once computed.
    pub cost: u32,
    pub boundary: Boundary,
}

/// A list of pairs and where each stands in it.
#[derive(Default)]
pub(crate) struct Pairs {
    pub list: Array<Pair>,
    /// Where in the list those begin whose cost has to be computed.
    pub stale: usize,
    places: Places,
    /// Whether there may be pairs with what is outside of a mask.
    touch_outside: bool,
}

impl Pairs {
    /// Forgets all, for pairs whose lower label is one of these.
    pub fn clear(&mut self, labels: Range<u16>) -> Result<()> {
        self.list.clear();
        (self.stale, self.touch_outside) = (0, false);
        self.places.clear(labels)
    }

    /// Adds what is between pixels of a lower and of a higher label, each with the difference of their features.
    #[inline(never)]
    pub fn add_pixels(&mut self, low: &[u16], high: &[u16], contrasts: &[u16]) -> Result<()> {
        let mut pixels = low.iter().zip(high).zip(contrasts);
        loop {
            // What is new changes where all this is.
            let Self { list, places: Places { first, higher, .. }, .. } = self;
            let (list, higher, first) = (&mut list[..], &higher[..], *first);
            let new = pixels.find(|&((&low, &high), &contrast)| {
                let known = higher[usize::from(low - first)].number(high);
                if let Some(place) = known {
                    let boundary = &mut list[place as usize].boundary;
                    boundary.length += 1;
                    boundary.contrast += u64::from(contrast);
                }
                known.is_none()
            });
            let Some(((&low, &high), &contrast)) = new else { return Ok(()) };
            self.add([low, high], Boundary { length: 1, held: 0, contrast: contrast.into() })?;
        }
    }

    /// Adds what is between two labels, of which the first is the lower one.
    #[inline(never)]
    pub fn add(&mut self, [a, b]: [u16; 2], boundary: Boundary) -> Result<()> {
        let next = self.list.len() as u32;
        let place = self.places.number([a, b], next)?;
        if place < next {
            self.list[place as usize].boundary.add(&boundary);
            return Ok(());
        }
        memory::reserve(&mut self.list, PAIRS, 1)?;
        self.list.push(Pair { a, b, cost: 0, boundary });
        self.touch_outside |= b == NO_LABEL;
        Ok(())
    }

    /// Adds all of other pairs. Those whose lower label is `alone` are added to by no others.
    pub fn append(&mut self, others: &Pairs, alone: Range<u16>) -> Result<()> {
        memory::reserve(&mut self.list, PAIRS, others.list.len())?;
        for pair in &others.list {
            if alone.contains(&pair.a) {
                self.list.push(*pair);
            } else {
                self.add([pair.a, pair.b], pair.boundary)?;
            }
        }
        self.touch_outside |= others.touch_outside;
        Ok(())
    }

    /// From the least of the lower labels to behind the highest.
    pub fn lows(&self) -> Range<u16> {
        let lows = || self.list.iter().map(|pair| pair.a);
        lows().min().unwrap_or(NO_LABEL)..lows().max().map_or(0, |most| most + 1)
    }

    /// Forgets pairs with what is outside of a mask, which touches nothing.
    pub fn drop_outside(&mut self) {
        if self.touch_outside {
            self.list.retain(|pair| pair.b != NO_LABEL);
        }
    }

    /// Names the regions of all pairs anew, and keeps those of which neither, by its new name, has changed: their costs stay, and they are
    /// equal to no other. The others are `moved`, if there are `several` lists by their lower name; pairs within one region go.
    pub fn rename(
        &mut self,
        names: &[u32],
        has_changed: &[bool],
        several: bool,
        moved: &mut Moved,
    ) -> Result<()> {
        let Self { list, stale, .. } = self;
        memory::lengthen(&mut moved.pairs, PAIRS, list.len() + 1)?;
        let (mut kept, mut front, mut back) = (0, 0, moved.pairs.len());
        let moved_pairs = &mut moved.pairs[..];
        // No branch: which pairs stay is hard to predict.
        for i in 0..list.len() {
            let mut pair = list[i];
            let [one, other] = [pair.a, pair.b].map(|label| names[usize::from(label)] as u16);
            (pair.a, pair.b) = (one.min(other), one.max(other));
            let is_stale = has_changed[usize::from(one)] | has_changed[usize::from(other)];
            list[kept] = pair;
            kept += usize::from(!is_stale);
            let (moves, to_second) = (is_stale & (one != other), several & (pair.a & 1 != 0));
            moved_pairs[if to_second { back - 1 } else { front }] = pair;
            front += usize::from(moves & !to_second);
            back -= usize::from(moves & to_second);
        }
        (moved.front, moved.back, *stale) = (front, back, kept);
        Ok(())
    }

    /// Takes what has been moved here, behind what has been kept, and adds up what is equal; names are below `end`.
    pub fn take(&mut self, moved: [&[Pair]; 2], end: u16) -> Result<()> {
        let Self { list, stale, places, .. } = self;
        let most = *stale + moved.iter().map(|moved| moved.len()).sum::<usize>();
        let mut found = 0;
        if most > *stale {
            places.clear(0..end)?;
            memory::lengthen(list, PAIRS, most)?;
            let list = &mut list[*stale..];
            for moved in moved.into_iter().flatten() {
                let place = places.number([moved.a, moved.b], found as u32)? as usize;
                let (mut pair, is_new) = (*moved, place == found);
                pair.boundary.add(&list[place].boundary.if_so(!is_new));
                list[place] = pair;
                found += usize::from(is_new);
            }
        }
        list.truncate(*stale + found);
        Ok(())
    }
}

/// Pairs that move as regions get other names: to a first list from the front on, and to a second one from the back.
#[derive(Default)]
pub(crate) struct Moved {
    pairs: Array<Pair>,
    front: usize,
    back: usize,
}

impl Moved {
    pub fn to_first(&self) -> &[Pair] {
        &self.pairs[..self.front]
    }

    pub fn to_second(&self) -> &[Pair] {
        &self.pairs[self.back..]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// What is between pairs, by their labels.
    type Sums = BTreeMap<[u16; 2], (u32, u64)>;

    fn sums_of(pairs: &Pairs) -> Sums {
        let mut sums = Sums::new();
        for pair in &pairs.list {
            let of = (pair.boundary.length, pair.boundary.contrast);
            assert!(pair.a < pair.b && sums.insert([pair.a, pair.b], of).is_none());
        }
        sums
    }

    fn add(sums: &mut Sums, one: u16, other: u16, length: u32, contrast: u64) {
        if one != other {
            let sum = sums.entry([one.min(other), one.max(other)]).or_default();
            *sum = (sum.0 + length, sum.1 + contrast);
        }
    }

    fn most(sums: &Sums) -> usize {
        (0..200).map(|low| sums.keys().filter(|labels| labels[0] == low).count()).max().unwrap()
    }

    #[test]
    fn boundaries_add_up_however_many_a_label_has() {
        let mut pairs = Pairs::default();
        for round in 0..2 {
            pairs.clear(3..200).unwrap();
            let mut wanted = Sums::new();
            // Some labels touch one higher label, some up to 12, and some what is outside.
            let of =
                |x: u16| (3 + x * 7 % 190, if x % 50 == 9 { NO_LABEL } else { 3 + x % 31 * x % 97 + x % 12 });
            let sides = || (0..500).map(of).filter(|(one, other)| one != other);
            let low: Vec<u16> = sides().map(|(one, other)| one.min(other)).collect();
            let high: Vec<u16> = sides().map(|(one, other)| one.max(other)).collect();
            let contrasts: Vec<u16> = (0..low.len() as u16).map(|i| i * 10 + round).collect();
            pairs.add_pixels(&low, &high, &contrasts).unwrap();
            pairs.add([5, 6], Boundary { length: 2, held: 0, contrast: 9 }).unwrap();
            for ((&low, &high), &contrast) in low.iter().zip(&high).zip(&contrasts) {
                add(&mut wanted, low, high, 1, contrast.into());
            }
            add(&mut wanted, 5, 6, 2, 9);
            assert_eq!(sums_of(&pairs), wanted);
            assert!(most(&wanted) > super::super::places::ROOM);
            pairs.drop_outside();
            wanted.retain(|labels, _| labels[1] != NO_LABEL);
            assert_eq!(sums_of(&pairs), wanted);
        }
    }

    #[test]
    fn renamed_pairs_add_up() {
        let mut pairs = Pairs::default();
        pairs.clear(0..200).unwrap();
        let mut wanted = Sums::new();
        for i in 0..3000u16 {
            let (a, b) = (i * 7 % 199, i % 199 * 31 % 200);
            if a != b {
                let boundary = Boundary { length: 1 + u32::from(i), held: 1, contrast: i.into() };
                pairs.add([a.min(b), a.max(b)], boundary).unwrap();
                add(&mut wanted, a, b, boundary.length, boundary.contrast);
            }
        }
        assert_eq!(sums_of(&pairs), wanted);
        let (mut moved, mut second) = (Moved::default(), Pairs::default());
        for (parts, several) in [(90, false), (20, true), (3, true), (1, false)] {
            // Some regions become one, others stay as they are, with their costs.
            pairs.list.iter_mut().for_each(|pair| pair.cost = 7);
            let names: Vec<u32> =
                (0..200).map(|label| if label < 150 { label % parts } else { label }).collect();
            let changed: Vec<bool> = (0..200).map(|label| label < parts).collect();
            pairs.rename(&names, &changed, several, &mut moved).unwrap();
            pairs.take([moved.to_first(), &[]], 200).unwrap();
            second.clear(0..0).unwrap();
            second.take([&[], moved.to_second()], 200).unwrap();
            let mut next = Sums::new();
            for (&[a, b], &(length, contrast)) in &wanted {
                add(&mut next, names[usize::from(a)] as u16, names[usize::from(b)] as u16, length, contrast);
            }
            wanted = next;
            assert_eq!(several, second.list.iter().any(|pair| pair.a % 2 == 1));
            let mut found = sums_of(&pairs);
            found.extend(sums_of(&second));
            assert_eq!(found, wanted);
            for (i, pair) in pairs.list.iter().enumerate() {
                let is_stale = [pair.a, pair.b].iter().any(|&label| changed[usize::from(label)]);
                assert_eq!(is_stale, i >= pairs.stale);
                assert!(is_stale || pair.cost == 7);
            }
            pairs.list.extend_from_slice(&second.list);
        }
    }
}
