// SPDX-License-Identifier: MPL-2.0
//! Quick shift: every pixel climbs to the nearest pixel of higher density; each summit is a cluster.
//!
//! ```text
//! density: E(p) = sum of w(D(p, q)) over the square window |dx|, |dy| <= R, R = ceil(3 sigma), inside the frame
//! link:    p's parent is the higher q of least (D(p, q), index) with D(p, q) <= tau², or p itself, which is a root
//! flatten: p's cluster is the root that its parents lead to
//! ```
//!
//! `D(p, q) = dx² + dy² + lambda² |color difference|²`; q is higher if its density is, or if it is equal and q's index
//! is lower. So the order is total: no cycle, no noise to break ties, and a flat frame is one tree.
//!
//! Source: Vedaldi, Soatto 2008 (quick shift), Fulkerson, Soatto 2010 (Really Quick Shift: the windows). Differs from
//! Really Quick Shift: densities are not divided by the pixels of the window, because that makes the corners of a flat
//! frame the densest.
//!
//! # Arithmetic
//!
//! Squared color differences are integers below 2^24 quanta, which f32 holds in any order of operations. All else is one
//! chain of operations for all backends:
//!
//! ```text
//! u = max(0, fma(-color, dc², column[|dx|] - row[|dy|]))     1 - D / (2 sigma² ln 2 SPAN), SPAN = BITS + 2
//! z = fma(u, SPAN, BIAS)                                     the exponent of two, rounded to an integer
//! f = fma(u, SPAN, -(z - BIAS))                              what is left of it, -0.5 to 0.5
//! w = polynomial(f) * 2^(z's lowest bits - 127)              rounded once, to a multiple of 2^-BITS
//! ```
//!
//! Weights are integers in units of 2^-BITS, so their sum does not depend on its order: not on tiles, threads or pairs
//! that are computed once for both ends. A weight of a whole is exact, one below half a unit is none. BITS is 22 up to
//! R = 15 and falls to 18 at R = 60, so that 32 bits hold every sum.
//!
//! `D = fma(lambda², dc², dx² + dy²)` for links is rounded once. Offsets are visited in order of their length, and a
//! pixel stops where the length alone is above the best distance: no link is missed, since D is not below it.

pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;

use std::ops::Range as Span;

use super::method::{Capabilities, ClusterLabels, Method};
use crate::color::{COLOR_SPACE, ColorSpace};
use crate::grid::Grid;
use crate::image::Geometry;
use crate::parameter::{About, Range, parameters};

/// Width of the kernel in px.
pub const SIGMA: Range<f32> = Range {
    about: About::new(
        "sigma",
        "Sigma",
        "px",
        "Width of the density kernel in px; higher = smoother; time grows with its square",
    ),
    min: 0.5,
    max: 20.0,
    default: 3.0,
};
/// Longest link in px.
pub const TAU: Range<f32> = Range {
    about: About::new(
        "tau",
        "Tau",
        "px",
        "Longest link in px, in position and color together; higher = fewer and larger regions",
    ),
    min: 1.0,
    max: 64.0,
    default: 8.0,
};
/// Weight lambda of a color unit against a px.
pub const COLOR_SCALE: Range<f32> = Range {
    about: About::new(
        "color-scale",
        "Color scale",
        "px per color unit",
        "Weight of a color unit (Delta E; {color-space=rgb}: code value) against a px; higher = regions follow color more closely",
    ),
    min: 0.01,
    max: 10.0,
    default: 0.5,
};

/// Quick shift's own parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Width of the Gaussian in px, 0.5 to 20. The time of the density grows with its square.
    pub sigma: f32,
    /// Longest link in px, 1 to 64, in place and color together; higher = fewer and larger regions.
    pub tau: f32,
    /// Weight of a color unit against a px, 0.01 to 10: of one Delta E, in `rgb` of one code value, in `xyz-gslicr` of
    /// 1/127.5 of white's Y; higher = regions follow color more closely.
    pub color_scale: f32,
    /// Color space that color differences are measured in.
    pub color_space: ColorSpace,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            sigma: SIGMA.default,
            tau: TAU.default,
            color_scale: COLOR_SCALE.default,
            color_space: ColorSpace::default(),
        }
    }
}

parameters!(Params {
    real SIGMA => sigma;
    real TAU => tau;
    real COLOR_SCALE => color_scale;
    choice COLOR_SPACE => color_space: ColorSpace;
});

impl Method for Params {
    type Plan = Plan;

    const CAPABILITIES: Capabilities =
        Capabilities { labels: ClusterLabels::Pixels, warm_start: false, cuda: true };

    fn color_space(&self) -> ColorSpace {
        self.color_space
    }

    fn region_side(&self, _: &Grid) -> f32 {
        self.tau
    }

    fn plan(&self, _: Geometry, _: &Grid, _: bool) -> Plan {
        Plan::new(self)
    }

    fn growth(plan: &Plan, from: &Plan) -> Option<f64> {
        let _ = (plan, from);
        Some(1.0)
    }
}

/// Tables and constants that follow from the parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// R: the density's window reaches this many px to each side.
    pub radius: u32,
    /// Constants of a pair's weight.
    pub weight: Weight,
    /// Squared px per squared quantum of color, in the distance of a link.
    pub color_sq: f32,
    /// Squared length of the longest link.
    pub tau_sq: f32,
    /// Offsets that a link may have, shortest first.
    pub offsets: Vec<Offset>,
    /// Runs of `offsets` with equal length, as ranges of their indices.
    pub rings: Vec<Span<usize>>,
}

/// Constants of the weight's chain of operations, see the top of this file.
#[derive(Debug, Clone, PartialEq)]
pub struct Weight {
    /// Share of SPAN that a squared quantum of color takes.
    pub color: f32,
    /// 1 less the share of SPAN that an offset of so many columns takes.
    pub column: Vec<f32>,
    /// Share of SPAN that an offset of so many rows takes.
    pub row: Vec<f32>,
    /// SPAN: powers of two from a weight of 1 to one that is surely 0.
    pub span: f32,
    /// 2^23, whose sum with a smaller number has that one's integer in its lowest bits, and 127 - SPAN, which makes these
    /// bits a float's exponent.
    pub bias: f32,
    /// 2^(23 - BITS): the sum with a weight has the weight's units in its lowest bits.
    pub unit: f32,
}

/// Offset from one pixel to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    /// Columns.
    pub dx: i16,
    /// Rows.
    pub dy: i16,
}

impl Offset {
    /// Squared length.
    pub fn length_sq(self) -> i32 {
        i32::from(self.dx) * i32::from(self.dx) + i32::from(self.dy) * i32::from(self.dy)
    }
}

/// 2^f for -0.5 to 0.5 is `1 + f * (EXP2[0] + f * (EXP2[1] + ...))` within a relative 3e-6, exactly 1 at 0: the least
/// largest error of four terms, so not the series' own factors. A fifth changed no link that the definition decides on
/// 66,000 pixels, and neither did it bring densities nearer.
#[allow(clippy::approx_constant)]
pub const EXP2: [f32; 4] = [0.693_124_2, 0.240_240_99, 0.055_906_426, 0.009_582_844];

/// Largest scale of weights: the chain's last sum has 23 bits behind the point.
const MOST_BITS: u32 = 22;

impl Plan {
    pub(crate) fn new(params: &Params) -> Self {
        let [sigma, tau, scale] = [params.sigma, params.tau, params.color_scale].map(f64::from);
        let quanta = params.color_space.quanta();
        let color_sq = (scale / quanta).powi(2);

        let radius = (3.0 * sigma).ceil() as u32;
        let window = u64::from(2 * radius + 1).pow(2);
        let bits = (u64::from(u32::MAX) / window).ilog2().min(MOST_BITS);
        let span = f64::from(bits + 2);
        let position = std::f64::consts::LOG2_E / (2.0 * sigma * sigma * span);
        let share = |d: u32| position * f64::from(d * d);
        let weight = Weight {
            color: (color_sq * position) as f32,
            column: (0..=radius).map(|d| (1.0 - share(d)) as f32).collect(),
            row: (0..=radius).map(|d| share(d) as f32).collect(),
            span: span as f32,
            bias: 8_388_608.0 + 127.0 - span as f32,
            unit: (1u32 << (23 - bits)) as f32,
        };

        let tau_sq = (tau * tau) as f32;
        let reach = tau.floor() as i16;
        let mut offsets: Vec<Offset> = (-reach..=reach)
            .flat_map(|dy| (-reach..=reach).map(move |dx| Offset { dx, dy }))
            .filter(|o| o.length_sq() > 0 && o.length_sq() as f32 <= tau_sq)
            .collect();
        offsets.sort_by_key(|o| o.length_sq());
        let mut rings: Vec<Span<usize>> = Vec::new();
        for (i, offset) in offsets.iter().enumerate() {
            match rings.last_mut() {
                Some(ring) if offsets[ring.start].length_sq() == offset.length_sq() => ring.end = i + 1,
                _ => rings.push(i..i + 1),
            }
        }
        Self { radius, weight, color_sq: color_sq as f32, tau_sq, offsets, rings }
    }

    /// Columns or rows that a link spans at most.
    pub(crate) fn longest_link(&self) -> usize {
        self.offsets.iter().map(|o| usize::from(o.dx.unsigned_abs())).max().unwrap_or(0)
    }

    /// Columns and rows that the stages read to each side of a pixel.
    pub(crate) fn reach(&self) -> usize {
        self.longest_link().max(self.radius as usize)
    }
}
