// SPDX-License-Identifier: MPL-2.0
//! Label maps of 32 bits, for more regions than 16 bits can name: SLIC in windows, each with at most 65,535 cells, on either backend.
//!
//! ```text
//! colors:     of the whole frame are packed, on the CPU
//! windows:    each is clustered by the backend, and its core gives the cell of each pixel's cluster
//! components: of all cells are made regions, on the CPU, as `post::connectivity` says, of any number
//! ```
//!
//! Positions are those of the frame, and a window has so much around its core that the rounds do not see where it ends: up to 31 of
//! them, labels are those of one engine with room for all cells, bit for bit. With more the halo stays at 64 cells, and what is farther
//! away has no part.

mod engine;
mod windows;

pub use engine::Engine;

use crate::algo::{Algorithm, AlgorithmPlan};
use crate::error::{Error, Result};
use crate::grid::{Grid, MAX_CELLS};
use crate::image::{FrameInfo, Geometry};
use crate::params::Params;
use crate::plan;
use windows::{Window, halo, windows};

/// Label of pixels that belong to no region: those outside of a mask.
pub const NO_LABEL: u32 = u32::MAX;

/// The parameter that label maps of 32 bits cannot be made with, by name; nothing where they can.
pub fn obstacle(params: &Params) -> Option<&'static str> {
    let obstacles = [
        ("algo", params.algorithm.algorithm() != Algorithm::Slic),
        ("temporal", params.temporal),
        ("merge", params.merge.ratio > 0.0),
        ("regions", params.hierarchy.regions > 0),
        ("hierarchy", params.hierarchy.levels),
        ("refine", params.refine.sweeps > 0),
    ];
    obstacles.into_iter().find(|(_, is_there)| *is_there).map(|(name, _)| name)
}

/// Returns true if parameters ask for more cells of the grid than label maps of 16 bits can name, and [`Plan`] can have all of them.
pub fn is_needed(params: &Params, geometry: Geometry) -> bool {
    obstacle(params).is_none() && !has_room(params, geometry)
}

/// Returns true if labels of 16 bits can name all cells that are asked for.
pub fn has_room(params: &Params, geometry: Geometry) -> bool {
    // A closer look takes longer than to segment a small frame, and the nearest number is at most 3.2 times the wanted one.
    let fits_at_once = params.superpixels > 0 && params.superpixels <= MAX_CELLS / 4;
    fits_at_once || wanted(params, geometry).cells() <= MAX_CELLS as usize
}

/// The grid that is asked for.
fn wanted(params: &Params, geometry: Geometry) -> Grid {
    Grid::with_any_number(geometry, plan::Plan::wanted_step(params, geometry).0)
}

/// What follows from parameters and frame: the plan of the whole frame, and its windows.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub(crate) whole: plan::Plan,
    pub(crate) windows: Vec<Window>,
}

impl Plan {
    /// Derives the plan. It may also be for a frame whose labels fit 16 bits, which get the same numbers then.
    ///
    /// # Errors
    ///
    /// [`Error::Param`] for a value out of range, [`Error::Value`] for an [`obstacle`].
    pub fn new(params: &Params, frame: FrameInfo) -> Result<Self> {
        Self::in_windows(params, frame, MAX_CELLS)
    }

    /// Derives the plan with windows of at most `most` cells, for tests.
    #[doc(hidden)]
    pub fn in_windows(params: &Params, frame: FrameInfo, most: u32) -> Result<Self> {
        params.validate()?;
        if let Some(name) = obstacle(params) {
            let allowed = "off, and algo slic, for label maps of 32 bits".into();
            return Err(Error::Value { name, got: "another value".into(), allowed });
        }
        let grid = wanted(params, frame.geometry);
        let whole = plan::Plan::on_grid(params, frame, grid);
        let rounds = match &whole.algorithm {
            AlgorithmPlan::Slic(slic) => slic.iterations,
            _ => 0,
        };
        // Where every pixel is a cell there is nothing to cluster.
        let all = if grid.step() == 1 { Vec::new() } else { windows(&grid, halo(rounds), most as usize) };
        Ok(Self { whole, windows: all })
    }

    /// Size and format of the frames.
    pub fn frame(&self) -> FrameInfo {
        self.whole.frame
    }

    /// The grid of home cells, of any number.
    pub fn grid(&self) -> &Grid {
        &self.whole.grid
    }

    /// Number of windows; 0 where every pixel is a cell.
    pub fn windows(&self) -> usize {
        self.windows.len()
    }

    /// The plan of a window, for the stages up to clusters.
    pub(crate) fn of_window(&self, window: &Window) -> plan::Plan {
        let grid = self.whole.grid.window(&window.columns, &window.rows);
        let first = |of: std::ops::Range<usize>| of.start;
        let columns = first(self.whole.grid.columns(window.columns.start));
        let rows = first(self.whole.grid.rows(window.rows.start));
        let (width, height) = (grid.geometry.width as usize, grid.geometry.height as usize);
        let algorithm = match &self.whole.algorithm {
            AlgorithmPlan::Slic(slic) => {
                AlgorithmPlan::Slic(slic.window(columns..columns + width, rows..rows + height))
            }
            other => other.clone(),
        };
        plan::Plan {
            frame: FrameInfo { geometry: grid.geometry, ..self.whole.frame },
            grid,
            algorithm,
            connectivity: false,
            min_region: 1,
            stretches: false,
            ..self.whole.clone()
        }
    }
}
