// SPDX-License-Identifier: MPL-2.0
//! What an algorithm says of itself: what it can do, and what follows from its parameters.

use crate::color::ColorSpace;
use crate::error::Result;
use crate::grid::Grid;
use crate::image::Geometry;

/// What the cluster labels of an algorithm name, before connectivity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterLabels {
    /// Cells of the grid, in raster order: they fit the label plane.
    Cells,
    /// Pixels of the frame, one in each cluster: 32 bits, in a plane of their own.
    Pixels,
}

/// What an algorithm can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// What its cluster labels name.
    pub labels: ClusterLabels,
    /// Whether clusters continue from the last frame in temporal mode; else only identities do.
    pub warm_start: bool,
    /// Whether it runs on a CUDA device, too.
    pub cuda: bool,
}

/// The parameters of an algorithm.
pub trait Method: Default {
    /// What follows from them and the frame size.
    type Plan;

    /// What the algorithm can do, whatever its parameters.
    const CAPABILITIES: Capabilities;

    /// Checks every value.
    ///
    /// # Errors
    /// [`Error::Param`](crate::error::Error::Param) for the first value outside its range.
    fn validate(&self) -> Result<()>;

    /// The color space that ingest has to deliver.
    fn color_space(&self) -> ColorSpace;

    /// Side in px of the square that `min-region` is a fraction of.
    fn region_side(&self, grid: &Grid) -> f32 {
        grid.step() as f32
    }

    /// Farthest, along each axis and in 1/16 px, that a cluster may be from the center of the cell that has it.
    fn claim_reach(&self, grid: &Grid) -> u32 {
        let _ = grid;
        u32::MAX
    }

    /// What follows for frames of that size.
    fn plan(&self, geometry: Geometry, grid: &Grid, temporal: bool) -> Self::Plan;

    /// By which factor distances of the same pixels are larger with one plan than with another, at most. Nothing where they do not
    /// compare.
    fn growth(plan: &Self::Plan, from: &Self::Plan) -> Option<f64>;
}
