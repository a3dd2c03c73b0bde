// SPDX-License-Identifier: MPL-2.0
//! Which region each superpixel is in at a level of the hierarchy, and what that region covers.

use gstsuperpixel::image::NO_LABEL;
use gstsuperpixel::regions::{MergeStep, Region, cut};

/// One level.
pub struct Coarser {
    /// How many regions were asked for.
    pub wanted: u32,
    /// How many there are.
    pub count: u32,
    /// The region of each superpixel.
    pub of: Vec<u16>,
    /// Pixels of each region, and its box: x0, y0, x1, y1, the last two exclusive.
    pub covers: Vec<(u32, [u16; 4])>,
}

impl Coarser {
    /// A level of so many regions, or as few as there can be.
    pub fn new(table: &[Region], merges: &[MergeStep], wanted: u32) -> Option<Self> {
        let mut of: Vec<u16> = (0..table.len()).map(|label| label as u16).collect();
        let count = cut(&mut of, merges, wanted)?;
        let mut covers = vec![(0, [u16::MAX, u16::MAX, 0, 0]); count as usize];
        for (&region, one) in of.iter().zip(table) {
            let (area, [x0, y0, x1, y1]) = &mut covers[usize::from(region)];
            let [a0, b0, a1, b1] = one.bounds;
            *area += one.area;
            (*x0, *y0, *x1, *y1) = ((*x0).min(a0), (*y0).min(b0), (*x1).max(a1), (*y1).max(b1));
        }
        Some(Self { wanted, count, of, covers })
    }

    /// The region of a pixel by its superpixel; nothing outside of a mask.
    pub fn region(&self, superpixel: u16) -> Option<u16> {
        if superpixel == NO_LABEL { None } else { self.of.get(usize::from(superpixel)).copied() }
    }
}
