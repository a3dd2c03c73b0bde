// SPDX-License-Identifier: MPL-2.0
//! Stage `refine`: pixels at boundaries move to the neighboring region that fits them best; no region is lost or torn.
//!
//! ```text
//! as often as there are sweeps:
//!     the mean color of every region, in 1/16 quantum, rounded half up; it stays for the whole sweep
//!     for each (px, py) of (0, 0), (1, 0), (0, 1), (1, 1): all pixels p with x mod 2 = px and y mod 2 = py at once
//!         a, the region of p; its ring, the 8 pixels around it
//!         p is free if one of its 4-neighbors is in a, and those that are hang together in a along the ring
//!         a free p moves to that of a and its 4-neighbors' regions which has the least
//!             E(l) = |color(p) - mean(l)|² + s² (4-neighbors of p not in l) + s² / sqrt(2) (diagonal ones not in l)
//!         ties: p stays, else it takes the lowest label
//! ```
//!
//! s is `smoothness`, both weights are rounded to whole squares of 1/16 quantum, and an energy is below 2^32. Pixels
//! outside of the frame or of a mask are in no region, never move, and count for every `l` alike.
//!
//! *The order within a phase does not matter.* The rings of two pixels of one parity may overlap, but no ring has a
//! pixel of its own center's parity. So the inputs of p do not change in its phase: its ring, its own label, the means.
//! The pixels of a phase may be taken in any order, or in parallel, with the same result.
//!
//! *A region stays connected.* Take them one after the other. A path in `a` through p enters and leaves p by 4-neighbors in `a`,
//! which hang together along the ring, so the path can go around p; and p joins a region of a 4-neighbor. So each move keeps
//! both regions in as many pieces as before: one, with `connectivity`. *No region is lost*: the 4-neighbor in `a` that a move
//! asks for has another parity and stays in this phase. A region of one pixel has none, and stays. So labels are dense as before,
//! but a region may become smaller than `min-region`.
//!
//! Method: iterated conditional modes (Besag 1986) of a Potts energy on the 8-neighborhood, by its four coding sets,
//! with moves restricted to those that keep regions connected, as in Yao, Boben, Fidler and Urtasun, "Real-Time
//! Coarse-to-fine Topologically Preserving Segmentation", CVPR 2015. Their energy also has a position term and moves
//! blocks of pixels, and a queue orders the moves; phases make the order irrelevant.

use crate::color::ColorSpace;
use crate::parameter::{About, Range, parameters};

pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;

/// How often boundaries are refined; 0 leaves them alone.
pub const REFINE: Range<u32> = Range {
    about: About::new(
        "refine",
        "Refine",
        "",
        "Sweeps in which pixels at boundaries move to the neighboring region that fits them best, without tearing one (0 = off, usual 1 or 2)",
    ),
    min: 0,
    max: 8,
    default: 0,
};
/// Weight of boundary length.
pub const SMOOTHNESS: Range<f32> = Range {
    about: About::new(
        "smoothness",
        "Smoothness",
        "Delta E",
        "With {refine}: a pixel's side of boundary weighs as much as this color difference, in Delta E ({color-space=rgb}: code \
         values); higher = smoother outlines",
    ),
    min: 0.0,
    max: 100.0,
    default: 5.0,
};

/// Fractions of a quantum in which means and colors are compared.
const MEAN_ONE: f64 = 16.0;

/// Parameters of refining.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Sweeps over all boundary pixels, 0 to 8; 0 = off.
    pub sweeps: u32,
    /// Weight of one side of a pixel on a boundary, as a color difference in Delta E, in `rgb` in code values, 0 to
    /// 100.
    pub smoothness: f32,
}

impl Default for Params {
    fn default() -> Self {
        Self { sweeps: REFINE.default, smoothness: SMOOTHNESS.default }
    }
}

parameters!(Params {
    whole REFINE => sweeps;
    real SMOOTHNESS => smoothness;
});

/// The rule in integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Number of sweeps.
    pub(crate) sweeps: u32,
    /// Cost of a 4-neighbor in another region, and of a diagonal one, in squares of 1/16 quantum.
    pub(crate) straight: u32,
    pub(crate) diagonal: u32,
}

impl Plan {
    /// Returns `None` if no boundaries are to be refined.
    pub(crate) fn new(params: &Params, space: ColorSpace) -> Option<Self> {
        let weight = (f64::from(params.smoothness) * space.quanta() * MEAN_ONE).powi(2);
        (params.sweeps > 0).then_some(Self {
            sweeps: params.sweeps,
            straight: (weight + 0.5) as u32,
            diagonal: (weight * std::f64::consts::FRAC_1_SQRT_2 + 0.5) as u32,
        })
    }
}

/// Ring pixels that are 4-neighbors, and the diagonal ones. Bits go around clockwise from the pixel above.
pub(crate) const STRAIGHT: u8 = 0b0101_0101;
pub(crate) const DIAGONAL: u8 = 0b1010_1010;

/// Returns true if the 4-neighbors of a pixel in its own region, at least one, stay connected along the ring without
/// it. `kept` marks all ring pixels in that region.
#[inline(always)]
pub(crate) fn is_free(kept: u8) -> bool {
    // Starts of arcs of the ring. A whole ring has none, but then there is also no other region to move to.
    let before = kept.rotate_left(1) & kept.rotate_left(2);
    (kept & STRAIGHT & !before).count_ones() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energies_fit_32_bits() {
        let params = Params { sweeps: 1, smoothness: SMOOTHNESS.max };
        for space in ColorSpace::ALL {
            let plan = Plan::new(&params, space).unwrap();
            let color: u64 = [1023u64, 2047, 2047].map(|most| (16 * most).pow(2)).iter().sum();
            let length = 4 * u64::from(plan.straight) + 4 * u64::from(plan.diagonal);
            assert!(color + length < 1 << 32, "{space:?}");
        }
    }

    #[test]
    fn free_pixels_leave_their_neighbors_linked() {
        // Alone, all around, a bridge, a corner with its diagonal and without, an end, a thick side.
        let cases = [
            (0b0000_0000, false),
            (0b1111_1111, false),
            (0b0001_0001, false),
            (0b0000_0111, true),
            (0b0000_0101, false),
            (0b0001_0000, true),
            (0b1100_0111, true),
            (0b1010_1010, false),
            (0b1101_1111, true),
        ];
        for (ring, free) in cases {
            assert_eq!(is_free(ring), free, "{ring:08b}");
        }
    }
}
