// SPDX-License-Identifier: MPL-2.0
//! SLIC: k-means of color and position, each pixel choosing among the nine clusters around its home cell.
//!
//! ```text
//! seed:    every cell's cluster starts at the cell's center pixel
//! T times: assign the sampled pixels to the nearest cluster; update the clusters from their members
//! finally: assign every pixel
//! ```
//!
//! Source: Achanta et al. 2012 (distance), Ren, Prisacariu, Reid 2015 (gSLICr: candidates gathered from the 3x3 cells
//! around the pixel's home cell). Differs from the papers: rounds visit only every second or fourth column and row
//! where cells are large enough for it to change nothing; features, positions and centers are integers, so sums are
//! exact and every backend finds the same minimum; a cluster without members keeps its center.
//!
//! The distance is `(|L-Lc| + |a-ac| + |b-bc|)² + (PX-Xc)² + (PY-Yc)²` with features in quanta and `PX[x] = round(x * 8m/S)`.
//! Differs from the papers, which square each channel: at the same length of boundaries, sums of absolute differences follow
//! outlines more closely (docs/quality.md). The distance stays below 2^24 for m <= 22, so 32 bits hold 16
//! times it with the number of a candidate below, of which both backends take the minimum; a larger m halves the quanta (`color_shift`) until it does. Ties: the lowest cluster index. SLICO squares each channel, as
//! published.

pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
mod label;
mod score;

use std::ops::Range;

use super::method::{Capabilities, ClusterLabels, Method};
use crate::color::{COLOR_SPACE, ColorSpace};
use crate::grid::{Grid, ITERATIONS};
use crate::image::Geometry;
use crate::parameter::{self, About, parameters};
use crate::temporal::POSITION_UNIT;

/// SLIC's m in Lab units; higher = more regular.
pub const COMPACTNESS: parameter::Range<f32> = parameter::Range {
    about: About::new(
        "compactness",
        "Compactness",
        "Lab units",
        "Weight of position against color, in Lab units; higher = more regular superpixels",
    ),
    min: 0.1,
    max: 1000.0,
    default: 10.0,
};
const ADAPTIVE: About = About::new(
    "adaptive-compactness",
    "Adaptive compactness",
    "",
    "Adapt the compactness of each superpixel to its colors (SLICO)",
);

/// Largest m that the exact arithmetic takes without halving the quanta: the square of the largest sum of differences of two
/// colors and `2 (8 steps * 8 m)²` stay below 2^24 together. The same without `temporal`: a stream's first frame is that of
/// an independent picture.
const EXACT_COMPACTNESS: f64 = 22.0;
/// More steps than a cluster is from a pixel that it is a candidate of, along each axis: 0.9 from the cell that it is over, twice
/// two more to one that is free, 1.5 to the far side of that one's neighbors, of which the last may be nearly two steps long.
#[cfg(test)]
const MOST_STEPS: f64 = 8.0;
/// The scale of SLICO's positions, as if they were m.
const ADAPTIVE_COMPACTNESS: f64 = 64.0;
/// Quanta of a feature for a unit of compactness, in any color space.
pub(super) const QUANTA: f64 = ColorSpace::Lab.quanta();

/// SLIC's own parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Assign/update rounds, 1 to 100. Warm starts, and frames after a cut, take two.
    pub iterations: u32,
    /// m in Lab units, 0.1 to 1000: a step of S px weighs as much as m Delta E. In `rgb` a unit is two code values, in
    /// `xyz-gslicr` 1/127.5 of white's Y.
    pub compactness: f32,
    /// Color space that the distance is measured in.
    pub color_space: ColorSpace,
    /// SLICO: the compactness of each superpixel adapts to the largest color distance among its members.
    pub adaptive_compactness: bool,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            iterations: ITERATIONS.default,
            compactness: COMPACTNESS.default,
            color_space: ColorSpace::default(),
            adaptive_compactness: false,
        }
    }
}

parameters!(Params {
    whole ITERATIONS => iterations;
    real COMPACTNESS => compactness;
    choice COLOR_SPACE => color_space: ColorSpace;
    switch ADAPTIVE => adaptive_compactness;
});

impl Method for Params {
    type Plan = Plan;

    const CAPABILITIES: Capabilities =
        Capabilities { labels: ClusterLabels::Cells, warm_start: true, cuda: true };

    fn color_space(&self) -> ColorSpace {
        self.color_space
    }

    fn plan(&self, geometry: Geometry, grid: &Grid, _: bool) -> Plan {
        Plan::new(self, geometry, grid)
    }

    fn growth(plan: &Plan, from: &Plan) -> Option<f64> {
        plan.growth(from)
    }
}

/// Tables and constants that follow from the parameters and the grid.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Rounds T.
    pub iterations: u32,
    /// The compactness m.
    pub(crate) compactness: f64,
    /// Bits that features lose so that distances stay exact.
    pub color_shift: u32,
    /// Center of the color range, subtracted from features before scores, in shifted quanta.
    pub middle: [i32; 3],
    /// Scaled position of each column, `PX`.
    pub px: Vec<i32>,
    /// Scaled position of each row, `PY`.
    pub py: Vec<i32>,
    /// SLICO's constants; `None` for plain SLIC.
    pub adaptive: Option<Adaptive>,
    /// Factors from a scaled position to 1/16 px and back, in fixed point with 2^16 as one.
    pub(crate) position_scale: [i64; 2],
}

/// SLICO: `D² = dc²/M_k + ds²/S²`, in fixed point with 2^30 as one.
/// Source: Achanta's SLICO; M_k never shrinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adaptive {
    /// M_k before the first round, in squared quanta.
    pub initial: u32,
    /// Weight of a squared scaled offset.
    pub position: u32,
}

/// One in the fixed point of [`Adaptive`].
pub const ADAPTIVE_ONE: u32 = 1 << 30;

impl Plan {
    /// The plan of some columns and rows of the frame, whose positions stay those in the frame: where 8 m is no integer, positions
    /// counted from another cell on would be rounded differently.
    pub(crate) fn window(&self, columns: Range<usize>, rows: Range<usize>) -> Self {
        Self { px: self.px[columns].to_vec(), py: self.py[rows].to_vec(), ..self.clone() }
    }

    /// Converts a scaled position to 1/16 px or, with `to_scaled`, back.
    #[inline]
    pub(crate) fn rescale(&self, position: i32, to_scaled: bool) -> i32 {
        ((i64::from(position) * self.position_scale[usize::from(to_scaled)] + (1 << 15)) >> 16) as i32
    }

    /// Largest factor by which distances of the same pixels are longer than with another plan: the weights of colors
    /// and positions and the quanta may differ. `None` between SLICO and SLIC.
    pub(crate) fn growth(&self, from: &Self) -> Option<f64> {
        let heavier = self.compactness / from.compactness;
        let quanta = 4f64.powi(from.color_shift as i32 - self.color_shift as i32);
        (self.adaptive.is_some() == from.adaptive.is_some())
            .then(|| heavier.max(heavier.recip()).powi(2) * quanta)
    }

    /// Translates a cluster's color and position from another plan's quanta to this one's.
    pub(crate) fn translate(&self, from: &Self, color: [i32; 3], position: [i32; 2]) -> ([i32; 3], [i32; 2]) {
        if (self.color_shift, self.position_scale) == (from.color_shift, from.position_scale) {
            return (color, position);
        }
        (
            color.map(|v| v << from.color_shift >> self.color_shift),
            position.map(|v| self.rescale(from.rescale(v, false), true)),
        )
    }

    pub(crate) fn new(params: &Params, geometry: Geometry, grid: &Grid) -> Self {
        let compactness = f64::from(params.compactness);
        let adaptive = params.adaptive_compactness.then(|| {
            let side = QUANTA * ADAPTIVE_COMPACTNESS;
            Adaptive {
                initial: ((QUANTA * compactness).powi(2) as u32).max(1),
                position: (f64::from(ADAPTIVE_ONE) / (side * side)) as u32,
            }
        });
        let mut color_shift = 0;
        let mut scale = if adaptive.is_some() { ADAPTIVE_COMPACTNESS } else { compactness };
        while adaptive.is_none() && scale > EXACT_COMPACTNESS {
            scale /= 2.0;
            color_shift += 1;
        }
        let position = |i: u32| (f64::from(i) * QUANTA * scale / f64::from(grid.step) + 0.5).floor() as i32;
        let quanta = QUANTA * scale / (f64::from(grid.step) * f64::from(POSITION_UNIT));
        Self {
            iterations: params.iterations,
            compactness,
            position_scale: [1.0 / quanta, quanta].map(|v| (v * 65536.0 + 0.5).floor() as i64),
            color_shift,
            middle: params.color_space.middle().map(|v| v >> color_shift),
            px: (0..geometry.width).map(position).collect(),
            py: (0..geometry.height).map(position).collect(),
            adaptive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::color::{ColorTables, OUTSIDE, unpack};

    /// Nine steps of each channel: the largest differences are between corners of the cube, all of which are among them.
    #[test]
    fn distances_of_exact_compactness_stay_below_two_to_the_24() {
        for space in [ColorSpace::Lab, ColorSpace::LabGslicr, ColorSpace::XyzGslicr, ColorSpace::Rgb] {
            let tables = ColorTables::new(space).unwrap();
            let level = |i: usize| (255 * i / 8) as u8;
            let colors: Vec<[u32; 3]> = (0..9 * 9 * 9)
                .map(|i| unpack(tables.feature([level(i % 9), level(i / 9 % 9), level(i / 81)])))
                .chain([unpack(OUTSIDE)])
                .collect();
            let differ = |a: &[u32; 3], b: &[u32; 3]| (0..3).map(|i| a[i].abs_diff(b[i])).sum::<u32>();
            let most = colors.iter().flat_map(|a| colors.iter().map(|b| differ(a, b))).max();
            let (most, position) = (f64::from(most.unwrap_or(0)), MOST_STEPS * QUANTA * EXACT_COMPACTNESS);
            assert!(most.powi(2) + 2.0 * position.powi(2) < f64::from(1 << 24), "{space:?}: {most}");
        }
    }
}
