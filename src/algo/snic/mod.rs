// SPDX-License-Identifier: MPL-2.0
//! SNIC: simple non-iterative clustering. Clusters grow from the grid's seeds, pixel by pixel, the nearest first; one pass, connected by
//! construction. On the CPU only: what is nearest depends on every pixel before.
//!
//! ```text
//! every seed enters a queue, with distance 0 to its own cluster
//! until the queue is empty:
//!     take the pixel of least (distance, pixel, cluster); leave it if it has a label
//!     else it joins the cluster, whose mean color and position now count it
//!     each of its four neighbors without a label enters with its distance to that cluster
//! distance(i, k) = |color(i) - mean color(k)|² + (m / S)² |position(i) - mean position(k)|²
//! ```
//!
//! All numbers are integers: colors in 1/16 quantum, positions as [`Plan::px`] in 1/16, means rounded half up to the same. A
//! distance fits 64 bits for any frame and any compactness. Ties go to the pixel that is first in raster order, then to the lower cluster.
//!
//! Source: Achanta and Süsstrunk, "Superpixels and Polygons using Simple Non-Iterative Clustering", CVPR 2017, algorithm 1 and
//! equation 1, whose distance is the root of ours over m². Differs: seeds are those of our grid, means are rounded.

pub(crate) mod cpu;
mod queue;

use super::method::{Capabilities, ClusterLabels, Method};
use super::slic::{COMPACTNESS, QUANTA};
use crate::color::{COLOR_SPACE, ColorSpace};
use crate::grid::Grid;
use crate::image::Geometry;
use crate::parameter::parameters;

/// SNIC's own parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// m in Lab units, 0.1 to 1000: a step of S px weighs as much as m Delta E. In `rgb` a unit is two code values, in
    /// `xyz-gslicr` 1/127.5 of white's Y.
    pub compactness: f32,
    /// Color space that the distance is measured in.
    pub color_space: ColorSpace,
}

impl Default for Params {
    fn default() -> Self {
        Self { compactness: COMPACTNESS.default, color_space: ColorSpace::default() }
    }
}

parameters!(Params {
    real COMPACTNESS => compactness;
    choice COLOR_SPACE => color_space: ColorSpace;
});

impl Method for Params {
    type Plan = Plan;

    const CAPABILITIES: Capabilities =
        Capabilities { labels: ClusterLabels::Cells, warm_start: false, cuda: false };

    fn color_space(&self) -> ColorSpace {
        self.color_space
    }

    fn plan(&self, geometry: Geometry, grid: &Grid, _: bool) -> Plan {
        let scale = QUANTA * f64::from(self.compactness) / f64::from(grid.step);
        let position = |i: u32| (f64::from(i) * scale + 0.5).floor() as u32;
        Plan {
            px: (0..geometry.width).map(position).collect(),
            py: (0..geometry.height).map(position).collect(),
        }
    }

    /// No clusters continue from frame to frame, so there are no distances to compare.
    fn growth(plan: &Plan, from: &Plan) -> Option<f64> {
        let _ = (plan, from);
        Some(1.0)
    }
}

/// Tables that follow from the parameters and the grid.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Scaled position of each column: a step of S px is 8 m, which is m units of color in quanta.
    pub px: Vec<u32>,
    /// Scaled position of each row.
    pub py: Vec<u32>,
}
