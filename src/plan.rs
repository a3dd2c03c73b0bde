// SPDX-License-Identifier: MPL-2.0
//! The plan: all constants that follow from the parameters and the frame, computed once, the same for every backend.

use crate::algo::AlgorithmPlan;
use crate::algo::method::ClusterLabels;
use crate::color::ColorSpace;
use crate::error::Result;
use crate::grid::Grid;
use crate::image::{FrameInfo, Geometry};
use crate::params::Params;
use crate::post::connectivity::MAX_REGIONS;
use crate::post::{hierarchy, merge, refine};
use crate::temporal;

/// All properties of a stream's frames that do not depend on their pixels. Only [`Plan::new`] makes one, and it is
/// read-only: memory sizes and kernel arguments follow from it.
///
/// ```compile_fail,E0616
/// use gstsuperpixel::image::{FrameInfo, Geometry, PixelFormat};
/// use gstsuperpixel::params::Params;
/// use gstsuperpixel::plan::Plan;
///
/// # fn main() -> gstsuperpixel::error::Result<()> {
/// let frame = FrameInfo::new(Geometry::new(64, 48)?, PixelFormat::Rgb);
/// let mut plan = Plan::new(&Params::default(), frame)?;
/// plan.min_region = 0;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub(crate) frame: FrameInfo,
    pub(crate) grid: Grid,
    pub(crate) color_space: ColorSpace,
    pub(crate) algorithm: AlgorithmPlan,
    pub(crate) temporal: Option<temporal::Plan>,
    pub(crate) connectivity: bool,
    pub(crate) min_region: u32,
    pub(crate) merge: Option<merge::Plan>,
    pub(crate) hierarchy: Option<hierarchy::Plan>,
    pub(crate) refine: Option<refine::Plan>,
    /// True if pixels may belong to no region: outside of a mask, or, of the many areas of a prior, in one past the last label.
    pub(crate) masked: bool,
    pub(crate) prior: bool,
    pub(crate) prior_cuts: bool,
    /// True if the range of gray is found before colors are packed.
    pub(crate) stretches: bool,
    pub(crate) raised_from: Option<u32>,
}

impl Plan {
    /// Derives the plan.
    ///
    /// # Errors
    ///
    /// [`Error::Param`](crate::error::Error::Param) for a value out of range.
    pub fn new(params: &Params, frame: FrameInfo) -> Result<Self> {
        params.validate()?;
        let (wanted, most) = Self::wanted_step(params, frame.geometry);
        let grid = Grid::with_step(frame.geometry, wanted);
        let in_cells = params.algorithm.algorithm().capabilities().labels == ClusterLabels::Cells;
        let raised_from = (in_cells && grid.step != wanted).then_some(wanted);
        let regions = most.unwrap_or(params.hierarchy.regions);
        let merging = hierarchy::Params { regions, ..params.hierarchy.clone() };
        let plan = Self::on_grid(params, frame, grid);
        let hierarchy = hierarchy::Plan::new(&merging, plan.color_space, frame.geometry);
        let hierarchy = match most {
            None => hierarchy.map(|own| own.with_price(params.prior_price, plan.color_space)),
            Some(_) => hierarchy.map(|own| hierarchy::Plan { crosses: false, ..own }),
        };
        Ok(Self { raised_from, hierarchy, ..plan })
    }

    /// The grid step that is asked for, whether or not labels can name all its cells, and the most regions where their number is held.
    pub(crate) fn wanted_step(params: &Params, geometry: Geometry) -> (u32, Option<u32>) {
        let in_cells = params.algorithm.algorithm().capabilities().labels == ClusterLabels::Cells;
        match params.wanted_step(geometry) {
            // The grid serves only as the sample lattice.
            (_, most) if !in_cells && params.temporal => (temporal::LATTICE_STEP, most),
            wanted => wanted,
        }
    }

    /// Derives the plan for a grid, from parameters that are valid.
    pub(crate) fn on_grid(params: &Params, frame: FrameInfo, grid: Grid) -> Self {
        let geometry = frame.geometry;
        let masked = params.masked || params.prior;
        let warm_start = params.algorithm.algorithm().capabilities().warm_start;
        let side = f64::from(params.algorithm.region_side(&grid));
        Self {
            frame,
            grid,
            color_space: params.algorithm.color_space(),
            algorithm: params.algorithm.plan(geometry, &grid, params.temporal),
            temporal: params.temporal.then(|| {
                let in_slots = warm_start && grid.step > 1;
                let reach = params.algorithm.claim_reach(&grid);
                temporal::Plan {
                    masked,
                    in_regions: params.hierarchy.regions > 0,
                    parts: if in_slots && params.connectivity { temporal::parts_of(grid.cells()) } else { 0 },
                    ..temporal::Plan::new(params.temporal_inertia, geometry, &grid, in_slots, reach)
                }
            }),
            connectivity: params.connectivity,
            min_region: ((f64::from(params.min_region) * side * side) as u32).max(1),
            merge: merge::Plan::new(&params.merge, params.prior_price, params.algorithm.color_space()),
            hierarchy: hierarchy::Plan::new(&params.hierarchy, params.algorithm.color_space(), geometry),
            refine: refine::Plan::new(&params.refine, params.algorithm.color_space()),
            masked,
            prior: params.prior,
            prior_cuts: params.prior_cuts,
            stretches: params.stretch_gray16 && frame.format.is_gray() && frame.format.bits() == 16,
            raised_from: None,
        }
    }

    /// Size and format of the frames.
    pub fn frame(&self) -> FrameInfo {
        self.frame
    }

    /// The grid of home cells.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Color space of the packed colors.
    pub fn color_space(&self) -> ColorSpace {
        self.color_space
    }

    /// The algorithm's own part.
    pub fn algorithm(&self) -> &AlgorithmPlan {
        &self.algorithm
    }

    /// State from frame to frame; `None` without temporal mode.
    pub fn temporal(&self) -> Option<&temporal::Plan> {
        self.temporal.as_ref()
    }

    /// Returns true if labels are made connected.
    pub fn connectivity(&self) -> bool {
        self.connectivity
    }

    /// Pixels from which a region is not small, at least 1.
    pub fn min_region(&self) -> u32 {
        self.min_region
    }

    /// The rule for merging regions, if any.
    pub fn merge(&self) -> Option<&merge::Plan> {
        self.merge.as_ref()
    }

    /// The plan for merging superpixels to a number of regions, if any.
    pub fn hierarchy(&self) -> Option<&hierarchy::Plan> {
        self.hierarchy.as_ref()
    }

    /// Returns true if the final regions are merged superpixels.
    pub(crate) fn merges(&self) -> bool {
        self.merge.is_some() || self.hierarchy.is_some_and(|own| own.regions > 0)
    }

    /// Returns true if stage `hierarchy` runs before boundaries are refined: it merges, or no pixel moves after its
    /// list.
    pub(crate) fn has_hierarchy_before_refine(&self) -> bool {
        self.hierarchy.is_some_and(|own| own.regions > 0 || self.refine.is_none())
    }

    /// Returns true if stage `hierarchy` lists merges behind `refine`: an earlier list would be of regions that are not
    /// in the final map.
    pub(crate) fn lists_refined(&self) -> bool {
        self.refine.is_some() && self.hierarchy.is_some_and(|own| own.levels)
    }

    /// Returns true if, on a device, pixels and colors are still with the components after all other stages:
    /// connectivity and every stage behind it move them to the regions.
    #[cfg(feature = "cuda")]
    pub(crate) fn components_hold(&self) -> bool {
        !self.connectivity && self.merge.is_none() && self.hierarchy.is_none() && self.refine.is_none()
    }

    /// Returns true if the merges that are not made are listed.
    #[cfg(feature = "cuda")]
    pub(crate) fn lists_merges(&self) -> bool {
        self.hierarchy.is_some_and(|own| own.levels)
    }

    /// The rule for refining boundaries, if any.
    pub fn refine(&self) -> Option<&refine::Plan> {
        self.refine.as_ref()
    }

    /// Returns true if pixels may belong to no region: frames may have masks or priors.
    pub fn masked(&self) -> bool {
        self.masked
    }

    /// Returns true if frames may have priors.
    pub fn prior(&self) -> bool {
        self.prior
    }

    /// The requested grid step, if it had to be raised to keep labels in 16 bits.
    pub fn raised_from(&self) -> Option<u32> {
        self.raised_from
    }

    /// Returns true if an engine made for `last` can continue with this plan, see
    /// [`Engine::change`](crate::engine::Engine::change): the plans may differ in how pixels are compared, how often,
    /// and how regions are merged, refined and kept.
    pub fn follows(&self, last: &Self) -> bool {
        self.frame == last.frame
            && self.grid == last.grid
            && self.color_space == last.color_space
            && std::mem::discriminant(&self.algorithm) == std::mem::discriminant(&last.algorithm)
            && self.temporal.is_some() == last.temporal.is_some()
            && self.connectivity == last.connectivity
            && self.min_region == last.min_region
            && self.merge.is_some() == last.merge.is_some()
            && self.merges() == last.merges()
            && self.refine.is_some() == last.refine.is_some()
            && self.masked == last.masked
            && self.prior == last.prior
            && self.prior_cuts == last.prior_cuts
            && self.stretches == last.stretches
    }

    /// Returns true if clusters are named by one of their pixels instead of a cell, which takes more than 16 bits.
    pub fn clusters_are_pixels(&self) -> bool {
        self.algorithm.algorithm().capabilities().labels == ClusterLabels::Pixels
    }

    /// Least pixels of any region, at least 1: in temporal mode a region that shrinks is kept below [`Self::min_region`].
    pub fn least_region(&self) -> u32 {
        let kept = self.temporal.as_ref().filter(|temporal| temporal.in_slots);
        kept.map_or(self.min_region, |_| temporal::least_kept(None, self.min_region)).max(1)
    }

    /// Most regions that a frame can have.
    pub fn max_regions(&self) -> usize {
        let most = if self.masked {
            // A region without neighbors stays, however small it is.
            self.frame.geometry.pixels()
        } else if self.connectivity {
            self.frame.geometry.pixels() / self.least_region() as usize
        } else {
            self.max_clusters()
        };
        most.clamp(1, MAX_REGIONS)
    }

    /// Returns true if a map of the smallest regions could have more regions than labels can name.
    pub(crate) fn may_overflow(&self) -> bool {
        self.connectivity && self.frame.geometry.pixels() / self.least_region() as usize > MAX_REGIONS
    }

    /// Upper bound of cluster labels before connectivity.
    pub fn max_clusters(&self) -> usize {
        if self.clusters_are_pixels() { self.frame.geometry.pixels() } else { self.grid.cells() }
    }
}
