// SPDX-License-Identifier: MPL-2.0
//! The algorithms, each in its folder, and their registration. To add one: a folder here, `kernels/<name>.cu`, one variant
//! of [`AlgorithmParams`] and of [`AlgorithmPlan`]; the compiler lists the matches to answer, all in this file and in the
//! element's properties.

pub mod grid;
mod samples;
pub mod slic;
pub mod temporal;

use crate::backend::Segmenter;
use crate::color::ColorSpace;
use crate::cpu::Cpu;
#[cfg(feature = "cuda")]
use crate::cuda::{Cuda, Work, device::ModuleText};
use crate::error::Result;
use crate::image::Geometry;
use grid::Grid;

/// Which algorithm, with the parameters that are its own.
#[derive(Debug, Clone, PartialEq)]
pub enum AlgorithmParams {
    /// Simple linear iterative clustering.
    Slic(slic::Params),
}

impl AlgorithmParams {
    /// Nick of the algorithm, as property and metadata show it.
    pub fn nick(&self) -> &'static str {
        match self {
            Self::Slic(_) => "slic",
        }
    }

    /// Checks every value.
    pub fn validate(&self) -> Result<()> {
        match self {
            Self::Slic(params) => params.validate(),
        }
    }

    /// The color space that ingest has to deliver.
    pub fn color_space(&self) -> ColorSpace {
        match self {
            Self::Slic(params) => params.color_space,
        }
    }

    /// Whether clusters are those of the grid's cells.
    pub(crate) fn uses_grid(&self) -> bool {
        match self {
            Self::Slic(_) => true,
        }
    }

    /// Side in px of the square that `min-region` is a fraction of.
    pub(crate) fn region_side(&self, grid: &Grid) -> f32 {
        match self {
            Self::Slic(_) => grid.step as f32,
        }
    }

    pub(crate) fn plan(&self, geometry: Geometry, grid: &Grid) -> AlgorithmPlan {
        match self {
            Self::Slic(params) => AlgorithmPlan::Slic(slic::Plan::new(params, geometry, grid)),
        }
    }
}

/// What follows from an algorithm's parameters and the frame size.
#[derive(Debug, Clone)]
pub enum AlgorithmPlan {
    /// Simple linear iterative clustering.
    Slic(slic::Plan),
}

impl AlgorithmPlan {
    /// Whether clusters are those of the grid's cells.
    pub(crate) fn uses_grid(&self) -> bool {
        match self {
            Self::Slic(_) => true,
        }
    }

    /// The stages of the algorithm on the CPU.
    pub(crate) fn on_cpu(&self, cpu: &Cpu, plan: &crate::plan::Plan) -> Box<dyn Segmenter<Cpu>> {
        match self {
            Self::Slic(slic) => Box::new(slic::cpu::Slic::new(cpu, plan, slic)),
        }
    }

    /// The stages of the algorithm on a CUDA device.
    #[cfg(feature = "cuda")]
    pub(crate) fn on_cuda(
        &self,
        cuda: &Cuda,
        plan: &crate::plan::Plan,
        work: &Work,
    ) -> Result<Box<dyn Segmenter<Cuda>>> {
        Ok(match self {
            Self::Slic(slic) => Box::new(slic::cuda::Slic::new(cuda, plan, slic, work)?),
        })
    }

    /// Words of device memory that the algorithm adds up in. There are three such sets; the first is zero when a frame
    /// starts.
    #[cfg(feature = "cuda")]
    pub(crate) fn sums_words(&self, grid: &Grid) -> usize {
        match self {
            Self::Slic(_) => slic::cuda::Slic::sums_words(grid),
        }
    }
}

/// The kernels of all algorithms.
#[cfg(feature = "cuda")]
pub(crate) const MODULES: [ModuleText; 1] = [slic::cuda::MODULE];
