// SPDX-License-Identifier: MPL-2.0
//! Stage `hierarchy`: touching regions are merged pair by pair, the most similar first, until exactly the wanted number
//! is left. The order of all further merges can be listed as well.
//!
//! Everything is an integer; quotients are rounded down, means half up. `q` is a quantum of color, `w` and `h` are the frame's sides.
//!
//! ```text
//! region i: n pixels; c, the mean of their features, in 1/4 q; p, the mean of their columns and rows, in 1/4 px
//! pair i, j that touches: l, the number of pairs of 4-neighbors across; b, the mean of the summed absolute differences of their
//!     features, in 1/4 q
//! D(i, j) = |c_i - c_j|_1² + C + floor(G b²) + floor(P |p_i - p_j|² / 2^s), at most 2^32 - 1
//!     C = 20 (Delta E)²; G = 1/2; P / 2^s = (m / E)², with m the compactness in Delta E and E = sqrt(w h) / 16 px
//! W(i, j) = floor(16 n_i n_j / (n_i + n_j))
//! R(i, j) = the largest integer with R^5 <= 2^20 l, which is floor(16 l^(1/5))
//! T(i, j) = floor(256 k / l), where k pairs of 4-neighbors are between two superpixels that were in one region of the last frame
//! cost(i, j) = floor(W floor(D (256 - floor(T I / 256)) / 256) / R), without the bits below its 24 highest; I = HELD
//! ```
//!
//! This is Ward's increase of the squared error, of colors and positions, plus a term for a visible edge between the
//! two regions, divided by a root of the length of their common boundary. Regions that were one in the last frame cost
//! less to merge, so that they do not flicker: a superpixel's predecessor is the one that its track continues or, for a
//! new track, the one that was at its center (src/temporal/mod.rs); without temporal mode no superpixel has one. An
//! integer of 24 bits times a power of two is a number of 32-bit floating point, and the order of costs is that of
//! these numbers' bits: `cost_bits`.
//!
//! ```text
//! every region is named by its label; t = 0
//! round r = 0, 1, ...:
//!     every region i that touches others selects the neighbor s(i) of least (cost, name)
//!     root: a region that its selection selects, too, and whose name is the lower of both
//!     a region i that is no root joins s(i) if s(i) selects it, too; in an open round if it touches any at all
//!         open: the round before joined fewer than 1/16 of the regions that it began with
//!         height of what joins: the largest of its cost, t, and the heights of all that has joined i or s(i) before
//!     all at once; n and sums add up, l and sums of b of pairs that have become equal, too; a root keeps its name
//! ```
//!
//! An open round is a round of Borůvka's algorithm; the others join reciprocal nearest neighbors only. Selections form
//! no cycle longer than two: costs around one are equal, and then the lowest name's selection selects it back. So every
//! region joins at most once, and `(into, height, round)` of every region that has joined is a forest. The regions that
//! join one root in a round touch it or each other. An open round at least halves the regions that touch others.
//! Without open rounds a region that touches a thousand others, as the sky does birds, would take a thousand rounds.
//!
//! ```text
//! f = the number of regions before any round
//! stage: f = floor(f / 8); rounds while more than max(f, 1) regions are left and one has joined in the last round
//!     then t = the height of the merge of rank (number before any round) - 2f
//! stages until 2f <= the wanted number K, or nothing has joined
//! kept: the merges of least (height, round, name), as many as leave K regions; if there are not so many, all
//! labels: what the kept merges leave, numbered in the order of their lowest label, which is raster order where labels are connected
//! ```
//!
//! Heights never fall along a path of the forest, and rounds rise, so the merges inside of a region that a kept merge
//! joins are kept as well. Merges of later stages are never lower than `t`, which leaves the first 2f of them in their
//! order: the wanted number decides only how far the stages go, and every region of a level lies in one of any coarser
//! level.
//!
//! *With a prior* every superpixel is in an area. Pairs of two areas are left out until a round joins nothing. Then t becomes the
//! largest height so far, if that is more, and these pairs take part, by the regions that their superpixels are in. The end of a
//! stage never lowers t. If crossing a border has a price, no pair is left out: each pair of 4-neighbors across that is between
//! superpixels of two areas counts with a difference of features that is higher by the price.
//!
//! *With stage `refine`* the cut comes before it and the list behind it: the list is that of these rules with the
//! refined regions as superpixels, of which none has a predecessor. So it describes the map that users get: its pairs
//! touch there, and its areas are of those pixels. A list from before would join regions that no longer touch.
//!
//! The order of pixels, regions, pairs or threads does not matter: sums and minima commute. Pixels outside of a mask
//! are no region and touch nothing. Regions that do not touch are never joined, so a picture in several pieces keeps at
//! least one region in each. Without connectivity two labels touch where any of their pixels do.
//!
//! After Ward 1963; rounds of reciprocal nearest neighbors after de Rham 1980 and Benzecri 1982.

use crate::color::ColorSpace;
use crate::grid::Grid;
use crate::image::Geometry;
use crate::parameter::{About, Range, parameters};

mod bands;
mod costs;
pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
pub(crate) mod graph;
mod pair_index;
mod pairs;
mod parts;
mod passes;

/// Wanted number of regions; 0 merges nothing.
pub const REGIONS: Range<u32> = Range {
    about: About::new(
        "regions",
        "Regions",
        "",
        "Exactly so many regions: superpixels are merged, the most alike first (0 = off); as many as there are, where fewer",
    ),
    min: 0,
    max: 65_535,
    default: 0,
};
/// Color difference, in Delta E, that weighs as much as a distance of 1/16 of the picture's side.
pub const COMPACTNESS: Range<f32> = Range {
    about: About::new(
        "regions-compactness",
        "Compactness of regions",
        "Delta E",
        "With {regions}: color difference, in Delta E, that weighs as much as 1/16 of the picture's side; higher = more compact",
    ),
    min: 0.0,
    max: 100.0,
    default: 4.0,
};
const LEVELS: About = About::new(
    "hierarchy",
    "Hierarchy",
    "",
    "Attach the list of merges from the label map's regions, as they are after {refine}, down to one to the metadata: any \
     coarser level is a cut",
);

/// Fractions of a quantum, or of a px, in which means are kept.
pub(crate) const MEAN_ONE: u64 = 4;
/// Squared difference, in units of color, that any two regions have: it evens out the sizes of regions of equal color.
const LEAST_DIFFERENCE: f64 = 20.0;
/// One in the fixed point of G.
pub(crate) const CONTRAST_ONE: u64 = 256;
/// Weight of the squared contrast across a boundary.
const CONTRAST: f64 = 0.5;
/// Discount in 1/256 on the difference of regions that were one in the last frame.
const HELD: u64 = 224;
/// Most bits of the weight of positions: with squared distances below 2^33, products stay below 2^63.
const POSITION_BITS: u32 = 30;
/// Fraction of the picture's side that [`COMPACTNESS`] refers to.
const SIDE_PARTS: f64 = 16.0;
/// A stage leaves one in so many regions.
pub(crate) const STAGE: usize = 8;
/// A round that joins fewer than one in so many regions is followed by an open round.
pub(crate) const FEW: usize = 16;
/// Fewest superpixels per wanted region.
const FINER: u32 = 3;
/// Fewest superpixels of a picture, as far as they are no smaller than [`SMALL_STEP`].
const FEWEST: u32 = 2000;
const SMALL_STEP: u32 = 4;

/// The wanted number of regions, and the weights of the cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Exact number of regions, or as many as there are superpixels if these are fewer; 0 = off.
    pub regions: u32,
    /// Higher = more compact regions, lower = closer to colors.
    pub compactness: f32,
    /// Also list the merges that would come next, down to one region:
    /// [`Regions::merges`](crate::regions::Regions::merges). With `regions` 0 the list begins at the superpixels. With
    /// stage `refine` it is a list of the refined regions.
    pub levels: bool,
}

impl Default for Params {
    fn default() -> Self {
        Self { regions: REGIONS.default, compactness: COMPACTNESS.default, levels: false }
    }
}

parameters!(Params {
    whole REGIONS => regions;
    real COMPACTNESS => compactness;
    switch LEVELS => levels;
});

impl Params {
    /// The grid step that gives enough superpixels to merge, at most `step`.
    pub(crate) fn finer_step(&self, geometry: Geometry, step: u32) -> u32 {
        match self.regions {
            0 => step,
            count => {
                let of = |superpixels| Grid::step_for_count(geometry, superpixels);
                step.min(of(count * FINER)).min(of(FEWEST).max(SMALL_STEP))
            }
        }
    }
}

/// The parameters as integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Wanted number of regions, 0 for as many as there are.
    pub(crate) regions: u32,
    /// True if the further merges are listed.
    pub(crate) levels: bool,
    /// True if the wanted number counts for more than the areas of a prior.
    pub(crate) crosses: bool,
    /// Quanta by which colors differ more across a border of areas; 0 if pairs within areas come first.
    pub(crate) price: u32,
    /// C.
    pub(crate) least: u32,
    /// G in 1/256.
    pub(crate) contrast: u32,
    /// P, below 2^30.
    pub(crate) position: u32,
    /// s, below 64.
    pub(crate) position_shift: u32,
}

impl Plan {
    /// Returns `None` if no regions are to be merged or listed.
    pub(crate) fn new(params: &Params, space: ColorSpace, geometry: Geometry) -> Option<Self> {
        let unit = (MEAN_ONE as f64 * space.quanta()).powi(2);
        let m = f64::from(params.compactness) * space.quanta();
        let position = m * m * SIDE_PARTS * SIDE_PARTS / geometry.pixels() as f64;
        let position_shift = (0..64)
            .rev()
            .find(|&shift| position * (1u64 << shift) as f64 + 0.5 < f64::from(1u32 << POSITION_BITS))
            .unwrap_or(0);
        (params.regions > 0 || params.levels).then_some(Self {
            regions: params.regions,
            levels: params.levels,
            crosses: true,
            price: 0,
            least: (LEAST_DIFFERENCE * unit) as u32,
            contrast: (CONTRAST * CONTRAST_ONE as f64) as u32,
            position: (position * (1u64 << position_shift) as f64 + 0.5) as u32,
            position_shift,
        })
    }

    /// The same plan with a price of borders, in Delta E or code values.
    pub(crate) fn with_price(self, price: f32, space: ColorSpace) -> Self {
        let quanta = f64::from(price) * space.quanta();
        Self { price: if price > 0.0 { (quanta as u32).max(1) } else { 0 }, ..self }
    }

    /// The cost of joining two regions along that boundary.
    #[inline]
    pub(crate) fn cost(&self, a: &Mean, b: &Mean, boundary: &Boundary) -> u32 {
        let length = u64::from(boundary.length);
        let contrast = (2 * MEAN_ONE * boundary.contrast + length) / (2 * length);
        let together = match boundary.held {
            0 => 0,
            held => (256 * u64::from(held) / length * HELD) >> 8,
        };
        let color: u64 = (0..3).map(|i| u64::from(a.color[i].abs_diff(b.color[i]))).sum();
        let apart: u64 = (0..2).map(|i| u64::from(a.position[i].abs_diff(b.position[i])).pow(2)).sum();
        let difference = color * color
            + u64::from(self.least)
            + u64::from(self.contrast) * contrast * contrast / CONTRAST_ONE
            + ((u64::from(self.position) * apart) >> self.position_shift).min(u64::from(u32::MAX));
        let [n, m] = [a.count, b.count].map(u64::from);
        let weight = 16 * n * m / (n + m);
        let difference = (difference.min(u64::from(u32::MAX)) * (256 - together)) >> 8;
        cost_bits(weight * difference / root(boundary.length))
    }
}

/// The common boundary of two regions.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Boundary {
    /// Pairs of 4-neighbors across.
    pub length: u32,
    /// Pairs of 4-neighbors across, counting only those between superpixels that were in one region of the last frame.
    pub held: u32,
    /// Sum of the differences across, in quanta.
    pub contrast: u64,
}

impl Boundary {
    #[inline]
    pub fn add(&mut self, other: &Boundary) {
        self.length += other.length;
        self.held += other.held;
        self.contrast += other.contrast;
    }

    /// Returns `self` if the condition holds, else an empty boundary.
    #[inline(always)]
    pub fn if_so(&self, condition: bool) -> Self {
        let times = u32::from(condition);
        let contrast = self.contrast * u64::from(times);
        Self { length: self.length * times, held: self.held * times, contrast }
    }
}

/// Pixels of a region, and their means in 1/4 quantum and 1/4 px.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mean {
    pub count: u32,
    pub color: [u32; 3],
    pub position: [u32; 2],
}

/// Bits of the largest 32-bit float that is not above an integer. Bits are in the order of the floats.
#[inline]
pub(crate) fn cost_bits(cost: u64) -> u32 {
    let below = (u64::BITS - cost.leading_zeros()).saturating_sub(f32::MANTISSA_DIGITS);
    ((cost >> below << below) as f32).to_bits()
}

/// Values that R can take: boundaries are shorter than 2^30, which would give 1024.
const ROOTS: usize = 1024;

/// The least `length` with `root(length) >= R`, for every R.
const LEAST_LENGTHS: [u32; ROOTS] = {
    let mut lengths = [0; ROOTS];
    let mut r = 17u64;
    while (r as usize) < ROOTS {
        lengths[r as usize] = r.pow(5).div_ceil(1 << 20) as u32;
        r += 1;
    }
    lengths
};

/// Table of R for the lengths that most boundaries have.
const SMALL_ROOTS: [u8; 512] = {
    let (mut roots, mut length, mut r) = ([0; 512], 1, 16);
    while length < roots.len() {
        while LEAST_LENGTHS[r + 1] as usize <= length {
            r += 1;
        }
        roots[length] = r as u8;
        length += 1;
    }
    roots
};

/// R: 16 times the fifth root of the length, rounded down.
#[inline]
pub(crate) fn root(length: u32) -> u64 {
    match SMALL_ROOTS.get(length as usize) {
        Some(&root) => u64::from(root),
        None => LEAST_LENGTHS.partition_point(|&least| least <= length) as u64 - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_the_largest_that_hold() {
        for length in (1..70_000).chain([1 << 20, (1 << 29) - 1, 1 << 29, (1 << 30) - 1]) {
            let (r, wanted) = (root(length), u64::from(length) << 20);
            assert!(r.pow(5) <= wanted && (r + 1).pow(5) > wanted, "{length}: {r}");
        }
        assert_eq!([1, 2, 256].map(root), [16, 18, 48]);
    }

    #[test]
    fn bits_of_costs_are_in_their_order_and_exact_to_24_bits() {
        for cost in
            [0u64, 1, 2, (1 << 24) - 1, 1 << 24, (1 << 24) + 1, (1 << 25) - 1, u64::MAX >> 2, u64::MAX]
        {
            let float = f32::from_bits(cost_bits(cost));
            assert!(float as u128 <= u128::from(cost), "{cost}");
            let next = f32::from_bits(cost_bits(cost) + 1);
            // Small costs have neighbors between integers.
            assert!(f64::from(next).ceil() as u128 > u128::from(cost), "{cost}");
            assert!(cost_bits(cost / 2) <= cost_bits(cost));
        }
        assert_eq!(cost_bits((1 << 25) - 1), cost_bits((1 << 25) - 2));
    }

    #[test]
    fn positions_weigh_the_same_in_pictures_of_any_size() {
        for (w, h) in [(1, 1), (481, 321), (16384, 16384), (16384, 1)] {
            let geometry = Geometry::new(w, h).unwrap();
            for compactness in [0.0, 0.01, 8.0, 100.0] {
                let params = Params { regions: 1, compactness, ..Params::default() };
                let plan = Plan::new(&params, ColorSpace::Lab, geometry).unwrap();
                let weight = f64::from(plan.position) / 2f64.powi(plan.position_shift as i32);
                let side = geometry.pixels() as f64 / 256.0;
                let wanted = f64::from(compactness).powi(2) * 64.0 / side;
                assert!((weight - wanted).abs() <= 1e-6 * wanted, "{w}x{h} {compactness}");
            }
        }
    }

    #[test]
    fn no_cost_wraps() {
        let of = |count| Mean { count, ..Mean::default() };
        let far = |count| Mean { count, color: [4 * 1023, 4 * 2047, 4 * 2047], position: [4 * 16383; 2] };
        let geometry = Geometry::new(16384, 16384).unwrap();
        for compactness in [0.0, 100.0] {
            let plan = Plan::new(
                &Params { regions: 1, compactness, ..Params::default() },
                ColorSpace::Lab,
                geometry,
            )
            .unwrap();
            let boundary = Boundary { length: 1, held: 0, contrast: 5117 };
            let cost = plan.cost(&of(1 << 27), &far(1 << 27), &boundary);
            let near = plan.cost(&of(1 << 26), &far(1 << 26), &boundary);
            assert!(cost > near, "{compactness}");
        }
    }
}
