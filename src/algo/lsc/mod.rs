// SPDX-License-Identifier: MPL-2.0
//! LSC: linear spectral clustering, k-means of color and position mapped onto circles, so that it approximates a normalized
//! cut; each pixel chooses among the nine clusters around its home cell.
//!
//! ```text
//! mean:    mean feature of the sampled pixels
//! seed:    every cell's cluster starts with the cell's center pixel
//! T times: assign the sampled pixels to the nearest cluster; add up the members of each
//! finally: assign every pixel
//! ```
//!
//! Source: Ban, Liu, Fouriaux 2016 (GLSC), Eq. 1 to 5; feature `φ'(p)`, ten numbers: cosine and sine of five angles, with
//! L in 0..100, a and b from -128 to 127 and a grid step of position each spanning a quarter turn, times `C_c`, `2.55 C_c`,
//! `2.55 C_c`, `C_s`, `C_s`. Weight `w(p) = φ'(p) · φ̄'`, `φ(p) = φ'(p) / w(p)`, distance `|φ(p) - m_k|²`.
//!
//! The arithmetic. As `w φ = φ'`, the weighted mean of Eq. 5 is `m_k = S_k / (S_k · φ̄')` with the plain sum `S_k = Σ φ'`
//! over members: ten integers, whose order does not matter. All `φ(p)` and `m_k` lie on the plane `φ · φ̄' = 1`; with `T_k =
//! |φ̄'|² m_k - φ̄'`, which is at right angles to `φ̄'`, the distance times `w(p) |φ̄'|²` is, but for what all candidates
//! share,
//!
//! ```text
//! score = w(p) / |φ̄'|² · |T_k|² - 2 φ'(p) · T_k
//! ```
//!
//! without a division or a stored number a pixel. `φ'`, `φ̄'` and all up to `T_k` times `S_k · φ̄'` are integers; from there on
//! it is single operations and one chain of fused multiply-adds in the order of `score.rs`, so that every backend finds the same
//! minimum. Ties: the lowest cluster index.
//!
//! Warm starts continue the sums of clusters, with their position pairs turned by the motion in whole px. Inertia
//! discounts the distance `|φ'|² / w' - |φ̄'|² w' + score`, `w'` being `w(p) / |φ̄'|²`: the true one times `w(p)
//! |φ̄'|²`, cut to a whole number. A cluster's position is the one that its pairs point to.
//!
//! Differs from the paper: position is measured in grid steps (the paper gives no unit, in any other it is noise); its mean
//! is taken as zero, as it is over whole turns, where the paper's depends on how far the frame goes into one; the mean of
//! color is that of the sampled pixels; rounds visit only every second or fourth column and row where cells are large enough
//! for it to change nothing (boundary recall at 1000 labels 0.9728 with all pixels, 0.9730 without); candidates surround the
//! pixel's home cell, not its last label; a cluster without members keeps its sums.

pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
mod label;
mod score;

use std::f64::consts::FRAC_PI_2;
use std::sync::Arc;

use super::method::{Capabilities, ClusterLabels, Method};
use crate::color::ColorSpace;
use crate::grid::{Grid, ITERATIONS};
use crate::image::Geometry;
use crate::parameter::{About, Range, parameters};
use crate::temporal;

/// LSC's r_c = C_s / C_c; higher = more regular.
pub const RATIO: Range<f32> = Range {
    about: About::new(
        "lsc-ratio",
        "LSC ratio",
        "",
        "Weight of position against color, C_s / C_c of the paper; higher = more regular superpixels",
    ),
    min: 0.01,
    max: 1.0,
    default: 0.1,
};

/// `C_c` in quanta of a feature. Sums over 2^20 samples, the most that a cluster can have, fit 32 bits: 2.55 times this
/// without a sign, [`PLACE`] with one.
const COLOR: f64 = 1280.0;
/// Weight of a and b, whose 255 units span the quarter turn that 100 units of L do.
const CHROMA: f64 = 2.55;
/// Length of a position in quanta, whatever the ratio, which enters where clusters are compared.
const PLACE: f64 = 1024.0;
/// Length of the pairs that positions are turned by.
const TURN: f64 = 16384.0;
/// Bits of [`TURN`].
pub(crate) const TURN_BITS: u32 = 14;
/// Quanta of a packed color for a unit of L, a or b.
const QUANTA: f64 = ColorSpace::Lab.quanta();

/// LSC's own parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Assign/update rounds, 1 to 100. Warm starts, and frames after a cut, take two.
    pub iterations: u32,
    /// r_c, 0.01 to 1: a step of S px weighs about as much as 100 r_c Delta E.
    pub ratio: f32,
}

impl Default for Params {
    fn default() -> Self {
        Self { iterations: ITERATIONS.default, ratio: RATIO.default }
    }
}

parameters!(Params {
    whole ITERATIONS => iterations;
    real RATIO => ratio;
});

impl Method for Params {
    type Plan = Plan;

    const CAPABILITIES: Capabilities =
        Capabilities { labels: ClusterLabels::Cells, warm_start: true, cuda: true };

    fn color_space(&self) -> ColorSpace {
        ColorSpace::Lab
    }

    /// Positions repeat every four steps: a cluster further off would be near pixels on the cell's other side.
    fn claim_reach(&self, grid: &Grid) -> u32 {
        3 * temporal::POSITION_UNIT as u32 * grid.step / 2
    }

    fn plan(&self, geometry: Geometry, grid: &Grid, temporal: bool) -> Plan {
        Plan::new(self, geometry, grid, temporal)
    }

    fn growth(plan: &Plan, from: &Plan) -> Option<f64> {
        Some(plan.growth(from))
    }
}

/// Tables that follow from the parameters and the grid. A pair is a cosine in the low and a sine in the high 16 bits,
/// both signed.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Rounds T.
    pub iterations: u32,
    /// Pairs of each channel of a packed color.
    pub color: Arc<ColorPairs>,
    /// Pair of each column.
    pub px: Vec<u32>,
    /// Pair of each row.
    pub py: Vec<u32>,
    /// Weight of products of positions: the square of `C_s` in quanta, over the length of a position.
    pub position_weight: f32,
    /// `|φ'|²`, equal for all pixels except for rounding.
    pub(crate) square: f32,
    /// Pair of each whole px of a turn, of length 2^14; empty without temporal mode.
    pub(crate) turn: Vec<u32>,
}

/// Pairs of L, a and b by the channel's value in a packed color.
#[derive(Debug, Clone, PartialEq)]
pub struct ColorPairs {
    /// Pairs of L.
    pub l: [u32; 1024],
    /// Pairs of a and of b.
    pub ab: [u32; 2048],
}

fn pair(angle: f64, length: f64) -> u32 {
    let [c, s] = [angle.cos(), angle.sin()].map(|v| (v * length).round() as i16 as u16);
    u32::from(c) | u32::from(s) << 16
}

/// Splits a pair into its two numbers.
#[inline(always)]
pub fn unpack_pair(pair: u32) -> [i32; 2] {
    [i32::from(pair as i16), pair as i32 >> 16]
}

impl Plan {
    /// Largest factor by which distances of the same pixels are longer than with another plan.
    pub(crate) fn growth(&self, from: &Self) -> f64 {
        let heavier = f64::from(self.position_weight) / f64::from(from.position_weight);
        heavier.max(heavier.recip())
    }

    /// Turns the position pairs of some sums by a motion in whole px.
    pub(crate) fn moved(&self, position: [i64; 4], by: [i32; 2]) -> [i64; 4] {
        let mut out = [0; 4];
        for i in 0..2 {
            let [c, s] =
                unpack_pair(self.turn[by[i].rem_euclid(self.turn.len() as i32) as usize]).map(i64::from);
            let [x, y] = [position[2 * i], position[2 * i + 1]];
            let half = 1 << (TURN_BITS - 1);
            out[2 * i] = (x * c - y * s + half) >> TURN_BITS;
            out[2 * i + 1] = (x * s + y * c + half) >> TURN_BITS;
        }
        out
    }

    /// The position in 1/16 px that a sum of pairs points to. Positions repeat with every turn: it is the one nearest
    /// to `near` px. Within a px it is the middle.
    pub(crate) fn position_of(&self, [c, s]: [i64; 2], near: i32) -> i32 {
        let step = self.turn.len() / 4;
        let (quarter, c, s) = match (c, s) {
            (0, 0) => return near * temporal::POSITION_UNIT,
            (c, s) if c > 0 && s >= 0 => (0, c, s),
            (c, s) if c <= 0 && s > 0 => (1, s, -c),
            (c, s) if c < 0 => (2, -c, -s),
            (c, s) => (3, -s, c),
        };
        // The last px of the quarter that is not past the pair.
        let (mut low, mut high) = (0, step);
        while high - low > 1 {
            let middle = (low + high) / 2;
            let [tc, ts] = unpack_pair(self.turn[middle]).map(i64::from);
            if tc * s >= ts * c { low = middle } else { high = middle }
        }
        let (at, turn) = ((quarter * step + low) as i32, 4 * step as i32);
        let turns = (2 * (near - at) + turn).div_euclid(2 * turn);
        temporal::POSITION_UNIT * (at + turns * turn) + temporal::POSITION_UNIT / 2
    }

    pub(crate) fn new(params: &Params, geometry: Geometry, grid: &Grid, temporal: bool) -> Self {
        let channel = |value: usize, range: f64, length: f64| {
            pair((value as f64 / (QUANTA * range)).min(1.0) * FRAC_PI_2, length)
        };
        let color = ColorPairs {
            l: std::array::from_fn(|v| channel(v, 100.0, COLOR)),
            ab: std::array::from_fn(|v| channel(v, 255.0, CHROMA * COLOR)),
        };
        // Four steps are a turn. Reducing the position to one turn first gives equal pairs for equal angles, without
        // rounding.
        let angle = |i: u32| f64::from(i % (4 * grid.step)) / f64::from(grid.step) * FRAC_PI_2;
        let position = |i: u32| pair(angle(i), PLACE);
        let position_weight = (COLOR * f64::from(params.ratio) / PLACE).powi(2);
        Self {
            iterations: params.iterations,
            color: Arc::new(color),
            px: (0..geometry.width).map(position).collect(),
            py: (0..geometry.height).map(position).collect(),
            position_weight: position_weight as f32,
            square: (COLOR.powi(2) * (1.0 + 2.0 * CHROMA.powi(2)) + 2.0 * position_weight * PLACE.powi(2))
                as f32,
            turn: (0..if temporal { 4 * grid.step } else { 0 }).map(|i| pair(angle(i), TURN)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A px of 16 turns by a 64th: cosine 16305 and sine 1606 of 16384. 0.995 is 1 and -0.995 is -1; 0.098 is 0, and 3 * 0.995 - 5 *
    /// 0.098 = 2.495 is 2.
    #[test]
    fn a_turn_is_rounded_half_up() {
        let geometry = Geometry::new(300, 40).unwrap();
        let plan = Plan::new(&Params::default(), geometry, &Grid::with_step(geometry, 16), true);
        assert_eq!(unpack_pair(plan.turn[1]), [16305, 1606]);
        assert_eq!(plan.moved([1, 0, -1, 0], [1, -1]), [1, 0, -1, 0]);
        assert_eq!(plan.moved([3, 5, 3, 5], [1, 0]), [2, 5, 3, 5]);
    }

    /// C libraries differ in the last bits of cosines and sines. None is as near as that to where rounding changes it.
    #[test]
    fn pairs_are_the_same_with_every_c_library() {
        let is_clear = |angle: f64, length: f64| {
            let clear = |v: f64| ((v * length).abs().fract() - 0.5).abs() > 1e-9;
            clear(angle.cos()) && clear(angle.sin())
        };
        for (range, length) in [(100.0, COLOR), (255.0, CHROMA * COLOR)] {
            let angle = |v: u32| (f64::from(v) / (QUANTA * range)).min(1.0) * FRAC_PI_2;
            assert!((0..2048).all(|v| is_clear(angle(v), length)));
        }
        for step in 1..=1024u32 {
            let angle = |i: u32| f64::from(i) / f64::from(step) * FRAC_PI_2;
            assert!((0..4 * step).all(|i| is_clear(angle(i), PLACE) && is_clear(angle(i), TURN)), "{step}");
        }
    }

    #[test]
    fn pairs_hold_their_angles_and_sums_fit_32_bits() {
        let geometry = Geometry::new(300, 40).unwrap();
        let grid = Grid::with_step(geometry, 16);
        let plan = Plan::new(&Params::default(), geometry, &grid, false);
        let most = 1u64 << 20;
        for &p in plan.color.l.iter().chain(&plan.color.ab) {
            assert!(unpack_pair(p).iter().all(|&v| v >= 0 && v as u64 * most <= u64::from(u32::MAX)));
        }
        for &p in plan.px.iter().chain(&plan.py) {
            assert!(unpack_pair(p).iter().all(|&v| u64::from(v.unsigned_abs()) * most <= 1 << 30));
        }
        assert_eq!(unpack_pair(plan.color.l[0]), [1280, 0]);
        assert_eq!(unpack_pair(plan.color.l[800]), [0, 1280]);
        assert_eq!(unpack_pair(plan.color.ab[1020]), [2308, 2308]);
        assert_eq!(
            [0, 16, 32, 48, 64].map(|x| unpack_pair(plan.px[x])),
            [[1024, 0], [0, 1024], [-1024, 0], [0, -1024], [1024, 0]]
        );
    }
}
