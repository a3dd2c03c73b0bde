// SPDX-License-Identifier: MPL-2.0
//! What a user wants. Ranges and defaults of an algorithm's own parameters are in its folder.

pub use crate::algo::grid::ITERATIONS;
pub use crate::cpu::THREADS;
pub use crate::outputs::Outputs;
pub use crate::range::Range;

use crate::algo::{self, AlgorithmParams};
use crate::error::{Error, Result};
use crate::post::{hierarchy, merge, refine};
use crate::temporal::INERTIA;

/// Grid step S in px.
pub const SUPERPIXEL_SIZE: Range<u32> =
    Range { name: "superpixel-size", min: 4, max: 1024, default: 16, allowed: "4 to 1024" };
/// Wanted number of superpixels; 0 leaves it to the grid step.
pub const SUPERPIXELS: Range<u32> =
    Range { name: "superpixels", min: 0, max: u32::MAX, default: 0, allowed: "0 or more" };
/// Smallest region, as a fraction of S², with quick shift of tau².
pub const MIN_REGION: Range<f32> =
    Range { name: "min-region", min: 0.0, max: 4.0, default: 0.25, allowed: "0 to 4" };
/// Width of a drawn boundary in px.
pub const BOUNDARY_WIDTH: Range<u32> =
    Range { name: "boundary-width", min: 1, max: 8, default: 1, allowed: "1 to 8" };

/// What is segmented and how; equal values give equal label maps.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Grid step S in px, used while `superpixels` is 0.
    pub superpixel_size: u32,
    /// Wanted number of superpixels a frame, or 0.
    pub superpixels: u32,
    /// Enforce that every label is one 4-connected region of at least `min_region`.
    pub connectivity: bool,
    /// Smallest region as a fraction of S², with quick shift of tau².
    pub min_region: f32,
    /// Which regions are merged.
    pub merge: merge::Params,
    /// How many regions superpixels are merged to; not together with `merge`.
    pub hierarchy: hierarchy::Params,
    /// How boundaries are refined.
    pub refine: refine::Params,
    /// Go on from the last frame and keep identities. Off, because pictures given one after another need not belong together;
    /// the element, which is given a stream, has it on.
    pub temporal: bool,
    /// How strongly a pixel keeps its region, 0 to 0.9.
    pub temporal_inertia: f32,
    /// Frames may have masks, see [`Frame::with_mask`](crate::image::Frame::with_mask): what is outside gets
    /// [`NO_LABEL`](crate::image::NO_LABEL). Takes time and memory also for frames without one, whose labels stay the same.
    pub masked: bool,
    /// Gray of 16 bits: the codes that a frame uses become black to white before anything is compared, with `temporal` those that
    /// the last frames used. What is drawn and measured are the frame's own codes; only the table's `mean_lab` is stretched too. Off,
    /// because a picture may mean its codes; the element has it on.
    pub stretch_gray16: bool,
    /// The algorithm and what is its own.
    pub algorithm: AlgorithmParams,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            superpixel_size: SUPERPIXEL_SIZE.default,
            superpixels: SUPERPIXELS.default,
            connectivity: true,
            min_region: MIN_REGION.default,
            merge: merge::Params::default(),
            hierarchy: hierarchy::Params::default(),
            refine: refine::Params::default(),
            temporal: false,
            temporal_inertia: INERTIA.default,
            masked: false,
            stretch_gray16: false,
            algorithm: AlgorithmParams::Slic(algo::slic::Params::default()),
        }
    }
}

impl Params {
    /// Whether both backends can do it; else only the CPU can.
    pub fn runs_on_cuda(&self) -> bool {
        self.algorithm.algorithm().capabilities().cuda
    }

    /// Checks every value.
    ///
    /// # Errors
    ///
    /// [`Error::Param`] for the first value outside its range, and for `regions` beside `merge`.
    pub fn validate(&self) -> Result<()> {
        SUPERPIXEL_SIZE.check(self.superpixel_size)?;
        SUPERPIXELS.check(self.superpixels)?;
        MIN_REGION.check(self.min_region)?;
        self.merge.validate()?;
        self.hierarchy.validate()?;
        if self.hierarchy.regions > 0 && self.merge.ratio > 0.0 {
            return Err(Error::Param {
                name: hierarchy::REGIONS.name,
                value: self.hierarchy.regions.into(),
                allowed: "0 while merge is above 0",
            });
        }
        self.refine.validate()?;
        INERTIA.check(self.temporal_inertia)?;
        self.algorithm.validate()
    }
}

/// What is drawn into the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fill {
    /// The frame's own pixels stay.
    #[default]
    None,
    /// Every region in the mean of its samples.
    MeanColor,
    /// Every region in a false color of its identity.
    Labels,
}

/// Lines between regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boundaries {
    /// 0xAARRGGBB, blended by alpha.
    pub color: u32,
    /// Width in px, 1 to 8.
    pub width: u32,
}

impl Default for Boundaries {
    fn default() -> Self {
        Self { color: 0xffff_ff00, width: BOUNDARY_WIDTH.default }
    }
}

/// One frame's drawing: fill first, lines on top.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drawing {
    /// What fills the regions.
    pub fill: Fill,
    /// What separates them.
    pub boundaries: Option<Boundaries>,
}
