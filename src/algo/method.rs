// SPDX-License-Identifier: MPL-2.0
//! The trait of an algorithm's parameters: its capabilities, and the plan that follows from the parameters.

use crate::color::ColorSpace;
use crate::grid::Grid;
use crate::image::Geometry;
use crate::parameter::Parameters;

/// Numbering of an algorithm's clusters before connectivity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterLabels {
    /// Cells of the grid, in raster order: they fit the label plane.
    Cells,
    /// Pixels of the frame, one in each cluster: 32 bits, in a plane of their own.
    Pixels,
}

/// Capabilities of an algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Numbering of its clusters.
    pub labels: ClusterLabels,
    /// True if clusters continue from the last frame in temporal mode; else only track ids do.
    pub warm_start: bool,
    /// True if it runs on a CUDA device as well.
    pub cuda: bool,
}

/// The parameters of an algorithm.
pub trait Method: Parameters {
    /// Tables and constants that follow from the parameters and the frame size.
    type Plan;

    /// Capabilities of the algorithm, whatever its parameters.
    const CAPABILITIES: Capabilities;

    /// The color space that ingest has to deliver.
    fn color_space(&self) -> ColorSpace;

    /// Side in px of the square that `min-region` is a fraction of.
    fn region_side(&self, grid: &Grid) -> f32 {
        grid.step() as f32
    }

    /// Farthest that a cluster may be from the center of its cell, along each axis and in 1/16 px.
    fn claim_reach(&self, grid: &Grid) -> u32 {
        let _ = grid;
        u32::MAX
    }

    /// Derives the plan for frames of that size.
    fn plan(&self, geometry: Geometry, grid: &Grid, temporal: bool) -> Self::Plan;

    /// Largest factor by which distances of the same pixels are longer with one plan than with another. `None` if the
    /// two do not compare.
    fn growth(plan: &Self::Plan, from: &Self::Plan) -> Option<f64>;
}
