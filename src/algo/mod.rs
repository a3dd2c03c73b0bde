// SPDX-License-Identifier: MPL-2.0
//! The algorithms, each in its folder, and their registration. To add one: a folder here, `kernels/<name>.cu`, one variant
//! of [`AlgorithmParams`] and of [`AlgorithmPlan`]; the compiler lists the matches to answer, all in this file and in the
//! element's properties.

pub mod grid;
pub mod lsc;
pub mod quickshift;
mod samples;
pub mod slic;

use crate::color::ColorSpace;
use crate::error::Result;
use crate::image::Geometry;
use grid::Grid;

/// Which algorithm, with the parameters that are its own.
#[derive(Debug, Clone, PartialEq)]
pub enum AlgorithmParams {
    /// Simple linear iterative clustering.
    Slic(slic::Params),
    /// Linear spectral clustering.
    Lsc(lsc::Params),
    /// Quick shift.
    QuickShift(quickshift::Params),
}

impl AlgorithmParams {
    /// Nick of the algorithm, as property and metadata show it.
    pub fn nick(&self) -> &'static str {
        match self {
            Self::Slic(_) => "slic",
            Self::Lsc(_) => "lsc",
            Self::QuickShift(_) => "quickshift",
        }
    }

    /// Checks every value.
    pub fn validate(&self) -> Result<()> {
        match self {
            Self::Slic(params) => params.validate(),
            Self::Lsc(params) => params.validate(),
            Self::QuickShift(params) => params.validate(),
        }
    }

    /// The color space that ingest has to deliver.
    pub fn color_space(&self) -> ColorSpace {
        match self {
            Self::Slic(params) => params.color_space,
            Self::Lsc(_) => ColorSpace::Lab,
            Self::QuickShift(params) => params.color_space,
        }
    }

    /// Whether clusters are those of the grid's cells.
    pub(crate) fn uses_grid(&self) -> bool {
        match self {
            Self::Slic(_) | Self::Lsc(_) => true,
            Self::QuickShift(_) => false,
        }
    }

    /// Side in px of the square that `min-region` is a fraction of.
    pub(crate) fn region_side(&self, grid: &Grid) -> f32 {
        match self {
            Self::Slic(_) | Self::Lsc(_) => grid.step as f32,
            Self::QuickShift(params) => params.tau,
        }
    }

    /// Farthest, along each axis and in 1/16 px, that a cluster may be from the center of the cell that has it.
    pub(crate) fn claim_reach(&self, grid: &Grid) -> u32 {
        match self {
            Self::Lsc(_) => lsc::claim_reach(grid),
            Self::Slic(_) | Self::QuickShift(_) => u32::MAX,
        }
    }

    pub(crate) fn plan(&self, geometry: Geometry, grid: &Grid, temporal: bool) -> AlgorithmPlan {
        match self {
            Self::Slic(params) => AlgorithmPlan::Slic(slic::Plan::new(params, geometry, grid)),
            Self::Lsc(params) => AlgorithmPlan::Lsc(lsc::Plan::new(params, geometry, grid, temporal)),
            Self::QuickShift(params) => AlgorithmPlan::QuickShift(quickshift::Plan::new(params)),
        }
    }
}

/// What follows from an algorithm's parameters and the frame size. To be read: nothing takes one but inside a
/// [`Plan`](crate::plan::Plan), which nobody edits.
#[derive(Debug, Clone, PartialEq)]
pub enum AlgorithmPlan {
    /// Simple linear iterative clustering.
    Slic(slic::Plan),
    /// Linear spectral clustering.
    Lsc(lsc::Plan),
    /// Quick shift.
    QuickShift(quickshift::Plan),
}

impl AlgorithmPlan {
    /// Whether clusters are those of the grid's cells.
    pub(crate) fn uses_grid(&self) -> bool {
        match self {
            Self::Slic(_) | Self::Lsc(_) => true,
            Self::QuickShift(_) => false,
        }
    }

    /// By which factor distances of the same pixels are larger than with another plan, at most. Nothing where they do not
    /// compare.
    pub(crate) fn growth(&self, from: &Self) -> Option<f64> {
        match (self, from) {
            (Self::Slic(to), Self::Slic(from)) => to.growth(from),
            (Self::Lsc(to), Self::Lsc(from)) => Some(to.growth(from)),
            (Self::QuickShift(_), Self::QuickShift(_)) => Some(1.0),
            _ => None,
        }
    }
}
