// SPDX-License-Identifier: MPL-2.0
//! What lasts from frame to frame: clusters that move on and region identities. Independent of the algorithm that
//! clusters on the grid.
//!
//! ```text
//! motion:   a shift of the whole picture, from thumbnails of this frame and the last
//! track:    the motion of every region, from how its pixels match
//! rehome:   every cluster moves on, and into the cell that it is then over
//! segment:  the algorithm goes on from there; a pixel prefers the cluster that its place belonged to (inertia)
//! identify: regions take the identity of their cluster, else of the free earlier region that they cover most
//! ```
//!
//! A slot is the cluster of a cell. Places and velocities are in 1/16 px. The velocity of a slot is its own motion less
//! that of the whole picture.
//!
//! *Motion.* Thumbnails are means of channel 0 over squares. The shift is the one of least squared difference over the
//! squares that every shift of up to `reach` can compare, refined by a parabola along each axis.
//!
//! *Track.* The samples of a region, on a lattice in the 3x3 cells around its slot, are compared with this frame's pixels
//! (sum of absolute differences; places outside count as the nearest inside). The shift is none, unless that of the last
//! frame or that of the picture is clearly better; then the best of the eight at 2 px around, and of the eight at 1 px.
//! It is none, too, where the samples hardly differ without one, and the further the shift the more they have to differ:
//! what is flat is not seen to move.
//!
//! *Rehome.* When the picture has moved by half a cell, all slots move by one with it. A cluster stays in its slot while
//! it is within 0.9 S of the cell's center on both axes, and else wants the cell that it is over. The largest of several
//! gets it (ties: the lowest slot); the others take the nearest free one of the 5x5 cells around it, in two rounds, or
//! end, as do those that left the picture. Cells that nobody took are seeded anew.
//!
//! *Inertia.* A pixel is predicted to belong to the region that was in its place, moved as its cell moves, and the
//! distance to the cluster that this region has now is reduced; most so where the pixel looks as it did there. A pixel
//! that looks as the one in the very same place before goes with that one's region.
//!
//! *Identity.* Among the clusters whose main component (the largest; ties: the first in raster order) lies in a region,
//! the one with the largest owns it and names it (ties: the lowest slot). Regions without a name take over that of an
//! earlier region that no one else has: pairs by their overlap on the sample lattice, in [`MATCH_ROUNDS`] rounds in which
//! those pairs unite that are each other's best (ties: the lower label). All others are new, numbered in label order. A
//! name that is missing in a frame does not come back. Regions that no cluster owns take the nearest slot without a
//! region in the 3x3 cells around their centroid, which the larger of several gets: from there on they have a cluster. Where
//! regions are merged, all this is about the superpixels before; see `merged.rs`.
//!
//! *Cut.* Where the first warm round's residual, the sum of least distances over the sample lattice, exceeds four times
//! that of the last frame's labels, or twice where no shift leaves less squared difference between the thumbnails than
//! 5/4 of this one's variance, the frame is segmented from seeds, in as many rounds, and nothing is carried over.
//!
//! *Without clusters*, with quick shift, identities go by overlap alone, moved as the picture moves, and a cut is where no shift leaves
//! less than 9/8 of the variance.

pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
mod identify;
mod matching;
pub(crate) mod merged;

use crate::algo::grid::Grid;
use crate::image::Geometry;
use crate::params::Range;

/// How strongly a pixel keeps its region: share of the distance that is waived.
pub const INERTIA: Range<f32> =
    Range { name: "temporal-inertia", min: 0.0, max: 0.9, default: 0.2, allowed: "0 to 0.9" };

/// Assign/update rounds of a frame that goes on from the last one.
pub const WARM_ROUNDS: u32 = 2;
/// Rounds in which regions without an identity and free identities choose each other.
pub const MATCH_ROUNDS: u32 = 4;
/// Rounds in which clusters that did not get the cell that they are over look for a free one.
pub(crate) const CLAIM_ROUNDS: usize = 2;
/// Quanta of places and velocities in a px.
pub const PLACE: i32 = 16;
/// One in the fixed point of inertia.
pub const INERTIA_ONE: u32 = 256;

/// Most that a distance is spared for looks, in 1/256: 32 bits hold this times a distance below 2^24.
const MOST_INERTIA: u32 = 252;
/// Feature difference up to which a pixel looks as it did, in quanta over all channels.
pub(crate) const SAME: u32 = 64;
/// Feature difference to the pixel in the same place below which a pixel stays with the region that was there, however
/// that moves: in flat areas nothing is seen to move.
pub(crate) const STILL: u32 = 45;
/// Regions move only where that lowers the difference of their samples by this part and by so much a sample.
pub(crate) const TRACK_MARGIN: u32 = 8;
pub(crate) const TRACK_NOISE: u32 = 3;
/// A region whose samples differ by less than this, each, from the pixels in their places stays: it is too flat to tell.
pub(crate) const TRACK_FLAT: u32 = 30;
/// So does one where that is less than this for each px, along the longer axis, that it would move by.
pub(crate) const TRACK_FLAT_PX: u32 = 6;
/// Distances in px at which better shifts are looked for around the best.
pub(crate) const TRACK_HOPS: [i32; 2] = [2, 1];

/// Distance of a region's samples when its motion is looked for: a multiple of the sample lattice's, at most 37 a side.
pub(crate) fn track_step(grid: &Grid) -> usize {
    let step = grid.sample_step() as usize;
    step * (grid.step as usize / 8).div_ceil(step).max(1)
}

/// Most samples of a step `track_step` in the cells around a slot's.
#[cfg(feature = "cuda")]
pub(crate) fn track_points(grid: &Grid, geometry: Geometry) -> usize {
    let (cell, step) = (grid.step as usize, track_step(grid));
    let most = |cells: u32, side: u32| {
        let along = (0..cells as usize).map(|at| {
            let end = if at + 2 >= cells as usize { side as usize } else { (at + 2) * cell };
            end.div_ceil(step) - (at.saturating_sub(1) * cell).div_ceil(step)
        });
        along.max().unwrap_or(0)
    };
    most(grid.nx, geometry.width) * most(grid.ny, geometry.height)
}

/// 1/16 px in whole px, rounded half up.
pub(crate) fn whole_px(place: [i32; 2]) -> [i32; 2] {
    place.map(|v| (v + PLACE / 2) >> 4)
}

/// Grid step of algorithms that do not cluster on the grid: overlaps are counted on every second column and row.
pub(crate) const LATTICE_STEP: u32 = 8;
/// Squared difference of two thumbnails over the second's variance from which no shift makes them alike, in eighths:
/// where residuals are a second witness, and where there are none.
const UNLIKE: [u32; 2] = [10, 9];
/// Mean squared difference that is never a cut without residuals: noise on a flat picture.
const UNLIKE_NOISE: u32 = 64;

/// Longest side of a thumbnail.
const THUMBNAIL: u32 = 128;
/// Largest shift that is looked for, in squares of the thumbnail.
const REACH: u32 = 8;

/// What follows from the frame size and the wanted inertia.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Share of the distance that the predicted cluster is spared, in 1/256.
    pub inertia: u32,
    /// The same where the pixel looks as it did.
    pub sure: u32,
    /// Side of a thumbnail's squares in px, a power of two.
    pub square: u32,
    /// Whole squares in a row and rows of them.
    pub thumbnail: [u32; 2],
    /// Largest shift along each axis, in squares.
    pub reach: [u32; 2],
    /// Pixels of the sample lattice.
    pub samples: u64,
    /// Whether clusters go on; else only identities do.
    pub in_slots: bool,
    /// From which on no shift makes two thumbnails alike: in eighths of the variance, and by square.
    pub unlike: [u32; 2],
}

impl Plan {
    pub(crate) fn new(inertia: f32, geometry: Geometry, grid: &Grid, in_slots: bool) -> Self {
        let Geometry { width, height } = geometry;
        let square = width.max(height).div_ceil(THUMBNAIL).next_power_of_two();
        let thumbnail = [width / square, height / square];
        let step = grid.sample_step();
        let inertia = (f64::from(inertia) * f64::from(INERTIA_ONE) + 0.5) as u32;
        Self {
            inertia,
            sure: (5 * inertia).min(MOST_INERTIA).max(inertia),
            square,
            thumbnail,
            reach: thumbnail.map(|side| REACH.min(side / 4)),
            samples: u64::from(width.div_ceil(step)) * u64::from(height.div_ceil(step)),
            in_slots,
            unlike: if in_slots { [UNLIKE[0], 0] } else { [UNLIKE[1], UNLIKE_NOISE] },
        }
    }

    /// Number of shifts that are looked at.
    pub(crate) fn shifts(&self) -> usize {
        self.reach.iter().map(|&reach| 2 * reach as usize + 1).product()
    }

    /// Whether a frame is not what its predecessor led to.
    pub(crate) fn is_cut(&self, residual: u64, last: u64, unlike: bool) -> bool {
        residual > if unlike { 2 } else { 4 } * last + self.samples
    }

    /// A distance to the cluster that a pixel is predicted to belong to.
    #[inline(always)]
    pub(crate) fn spared(&self, distance: u32, sure: bool) -> u32 {
        distance - ((distance * if sure { self.sure } else { self.inertia }) >> 8)
    }
}

/// What is known of a region beside its measures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Track {
    /// Name over time; 0 is none.
    pub id: u32,
    /// Frames before this one that had the identity.
    pub age: u32,
    /// Motion since the last frame, smoothed, in 1/16 px.
    pub velocity: [i32; 2],
    /// The last frame's label of the region that had the identity.
    pub from: Option<u32>,
}

/// As many of one value as wanted, in the memory that is there.
fn refill<T: Clone>(values: &mut Vec<T>, count: usize, value: T) {
    values.clear();
    values.resize(count, value);
}

/// The motion of the picture in 1/16 px from the squared differences of all shifts, in raster order.
///
/// Ties: the shorter shift, then the first. Without a clear minimum the picture stands still.
fn shift_of(plan: &Plan, differences: &[u64]) -> [i32; 2] {
    let [reach_x, reach_y] = plan.reach.map(|reach| reach as i32);
    let across = 2 * reach_x + 1;
    let of = |index: usize| (index as i32 % across - reach_x, index as i32 / across - reach_y);
    let length = |index: usize| {
        let (dx, dy) = of(index);
        dx * dx + dy * dy
    };
    let Some(best) = (0..differences.len()).min_by_key(|&i| (differences[i], length(i), i)) else {
        return [0; 2];
    };
    let (still, least) = (differences[differences.len() / 2], differences[best]);
    if length(best) > 0 && 8 * least > 7 * still {
        return [0; 2];
    }
    let (dx, dy) = of(best);
    let vertex = |at: i32, reach: i32, step: usize| {
        if at.abs() == reach {
            return 0;
        }
        let (before, after) = (differences[best - step] as i64, differences[best + step] as i64);
        let bend = before + after - 2 * least as i64;
        if bend > 0 {
            (i64::from(PLACE / 2 * plan.square as i32) * (before - after) / bend) as i32
        } else {
            0
        }
    };
    let whole = PLACE * plan.square as i32;
    [whole * dx + vertex(dx, reach_x, 1), whole * dy + vertex(dy, reach_y, across as usize)]
}
