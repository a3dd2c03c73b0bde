// SPDX-License-Identifier: MPL-2.0
//! State that a frame passes on to the next: clusters, which move with the picture, and identities of regions.
//! Independent of the algorithm that clusters on the grid.
//!
//! ```text
//! motion:   a shift of the whole picture, from thumbnails of this frame and the last
//! track:    the motion of every region, from how its pixels match
//! reassign: every cluster moves, and into the cell that it is then over
//! segment:  the algorithm starts from there; a pixel prefers the cluster that its position belonged to (inertia)
//! identify: regions take the identity of their cluster, else of the free earlier region that they cover most
//! ```
//!
//! A slot is the cluster of a cell. Positions and velocities are in 1/16 px. The velocity of a slot is its own motion less
//! that of the whole picture.
//!
//! *Motion.* Thumbnails are means of channel 0 over squares. The shift is the one of least squared difference over the
//! squares that every shift of up to `reach` can compare, refined by a parabola along each axis unless its vertex would be lower
//! by more than twice the least difference.
//!
//! *Track.* The samples of a region, on a lattice in the 3x3 cells around its slot, are compared with this frame's pixels
//! (sum of absolute differences; positions outside count as the nearest inside). The shift is none, unless that of the last
//! frame or that of the picture is clearly better; then the best of the eight at 2 px around, and of the eight at 1 px.
//! It is none, too, where the samples hardly differ without one, and the further the shift the more they have to differ:
//! what is flat is not seen to move. In frames of more px a scene moves by more of them and differs less from one to the next, so that a
//! px asks for less. Superpixels of an exact number of regions have to differ by no more than for 20 px: they are
//! small, and of a fast pan most would stay.
//!
//! *Reassign.* Where clusters are, in the mean over those that own a region and with the picture's motion, half a cell from the
//! centers of their cells, all slots move by one. A cluster stays in its slot while
//! it is within 0.9 S of the cell's center on both axes, and else wants the cell that it is over. The largest of several
//! gets it (ties: the lowest slot); the others take the nearest free one of the 5x5 cells around it, in two rounds, the
//! second around the cell that they did not get in the first. Those that get none are terminated, as are those that left
//! the picture and those that own no region any more. With LSC the center of such a cell is within 1.5 S of them along both
//! axes. Cells that nobody took are seeded anew. Where the slot that such a cell would have moved along with had no region either,
//! the cell's pixels have no prediction, so that the new cluster gets those that fit it: a superpixel is born. A cell that has
//! just become free waits for a frame, because a cluster that is passing may want it.
//!
//! *Inertia.* A pixel is predicted to belong to the region that was at its position in the last frame, moved as its cell
//! moves. The distance to the cluster that this region has now is discounted by five times the wanted part of it (up to
//! 252/256), but by no more than similarity allows: `MOVED_DISCOUNT` times the wanted part of the last frame's mean distance
//! where the pixel is similar to the one that it comes from, in eighths less where it is less so. A pixel that is similar to
//! the one at the very same position before stays with that one's region, by up to `STILL_DISCOUNT` times that part. The
//! bounds are on what is lost: no pixel stays with a cluster that fits it much worse than another does.
//!
//! *Parts.* A cluster's pixels may form several regions, as they do in frames by themselves: the largest component of a cluster
//! is its region, the others are regions without a slot. Such a region is a part of the cluster of its only component that is
//! not small or, where it consists of small ones, of the cluster at its first pixel in raster order. Its number, 1 to 7 (less
//! where labels would not name all), is 1 more than the remainder of its track id. Of
//! several with one number the largest, in samples, has it (ties: the lower label). Its pixels are predicted for that cluster;
//! those that go to it keep the number, and pixels of different numbers are not connected, although they are of one cluster.
//! So regions that come to touch stay two.
//!
//! *Small regions.* The largest component of a cluster that continues is kept, however small, if it has at least 9/16 of the
//! pixels that it had in the last frame, and 9/16 of the smallest region M. So is every component of a part that has 9/16 M.
//! What is about M in size does not come and go with noise.
//!
//! *Identity.* Among the clusters whose largest component (ties: the first in raster order) lies in a region,
//! the one with the largest owns it and names it (ties: the lowest slot). Regions without a name take over that of an
//! earlier region that no one else has: pairs by their overlap on the sample lattice, in [`MATCH_ROUNDS`] rounds in which
//! those pairs unite that are each other's best (ties: the lower label). All others are new, numbered in label order. A
//! name that is missing in a frame does not come back. Regions that no cluster owns take the nearest slot without a
//! region in the 3x3 cells around their centroid, which the larger of several gets: from there on they have a cluster. The
//! others are parts. Where
//! regions are merged, all this is about the superpixels before; see `merged.rs`. For an exact number of regions, new superpixels
//! go on from the earlier one at their cluster's center, or at the centroid of their samples without a cluster: in the same position
//! where the pixel is similar, else moved as that cell moves.
//!
//! *Cut.* Where the first warm round's residual, the sum of least distances over the sample lattice, exceeds four times
//! that of the last frame's labels and a quantum a sample, or twice where no shift leaves less squared difference between the thumbnails than
//! 5/4 of this one's variance, the frame is segmented from seeds, in as many rounds, and nothing is carried over.
//!
//! *Without clusters*, with quick shift, identities go by overlap alone, moved as the picture moves, and a cut is where no shift leaves
//! less than 9/8 of the variance, to which 64 a square are added for noise.

pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
#[cfg(feature = "cuda")]
pub(crate) mod device;
mod identify;
mod matching;
pub(crate) mod merged;
mod motion;
pub(crate) mod picture;
pub(crate) mod predict;
mod reassign;
mod samples;
pub(crate) mod state;
#[cfg(feature = "cuda")]
mod streams;

use crate::grid::Grid;
use crate::image::Geometry;
use crate::parameter::{About, Range};

/// How strongly a pixel keeps its region: share of the distance that is waived.
pub const INERTIA: Range<f32> = Range {
    about: About::new(
        "temporal-inertia",
        "Temporal inertia",
        "",
        "How strongly a pixel keeps its region from frame to frame; higher = steadier, slower to follow edges",
    ),
    min: 0.0,
    max: 0.9,
    default: 0.2,
};

/// Assign/update rounds of a warm start.
pub const WARM_ROUNDS: u32 = 2;
/// Rounds in which regions without an identity and free identities are matched.
pub const MATCH_ROUNDS: u32 = 4;
/// Rounds in which clusters that did not get the cell that they are over claim a free one.
pub(crate) const CLAIM_ROUNDS: usize = 2;
/// Quanta of positions and velocities in a px.
pub const POSITION_UNIT: i32 = 16;
/// One in the fixed point of inertia.
pub const INERTIA_ONE: u32 = 256;

/// Largest discount on a distance for similarity, in 1/256: 32 bits hold this times a distance below 2^24.
const MOST_INERTIA: u32 = 252;
/// Largest discount on a distance where a pixel has moved and is similar to the one it comes from: inertia times this,
/// of the mean distance in the last frame.
pub(crate) const MOVED_DISCOUNT: u32 = 6;
/// The same where a pixel is similar to the one at the same position before.
pub(crate) const STILL_DISCOUNT: u32 = 45;
/// Feature difference from which a pixel is not similar to the one it comes from, in quanta over all channels.
pub(crate) const SAME: u32 = 128;
/// Similarity of a pixel that equals the one at the same position before; other similarities are 0 to 8, in eighths.
pub(crate) const STAYS: u16 = 15;
/// Lowest bit of the similarity in a prediction; the candidate is below.
pub(crate) const SIMILARITY_SHIFT: u32 = 4;
/// Lowest bit of the part in a prediction; the similarity is below.
pub(crate) const PART_SHIFT: u32 = 8;
/// Most parts of a cluster that are told from its region.
pub(crate) const MOST_PARTS: u32 = 7;
/// Share of its last size, and of the smallest region, that a component has to have left to be kept, in sixteenths.
pub(crate) const KEPT_SIXTEENTHS: u32 = 9;
/// Feature difference below which a pixel stays with the region that was at its position, however that region moves: in
/// flat areas motion is invisible.
pub(crate) const STILL: u32 = 45;
/// A shift has to lower the difference of a region's samples by this part, and by so much per sample.
pub(crate) const TRACK_MARGIN: u32 = 8;
pub(crate) const TRACK_NOISE: u32 = 3;
/// A region whose samples differ by less than this, each, from the pixels at their positions stays: it is too flat to
/// track.
pub(crate) const TRACK_FLAT: u32 = 30;
/// A region also stays if its samples differ by less than this for each px of motion along the longer axis. Holds for
/// frames whose longer side is at most [`TRACK_FLAT_SIDE`] px; in larger ones the value falls in inverse proportion to
/// that side.
const TRACK_FLAT_PX: u32 = 6;
const TRACK_FLAT_SIDE: u32 = 864;
/// One in the fixed point of [`Plan::flat_px`].
pub(crate) const FLAT_ONE: u32 = 256;
/// Largest difference by [`TRACK_FLAT_PX`] that superpixels of an exact number of regions need.
const TRACK_FLAT_MOST: u32 = 120;
/// Distances in px at which shifts around the best one are tried.
pub(crate) const TRACK_HOPS: [i32; 2] = [2, 1];

/// Distance of a region's samples for tracking: a multiple of the sample lattice's, with at most 37 a side.
pub(crate) fn track_step(grid: &Grid) -> usize {
    let step = grid.sample_step() as usize;
    step * (grid.step as usize / 8).div_ceil(step).max(1)
}

/// Most samples, `track_step` apart, in the 3x3 cells around a slot.
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

/// Rounds 1/16 px to whole px, half up.
pub(crate) fn whole_px(position: [i32; 2]) -> [i32; 2] {
    position.map(|v| (v + POSITION_UNIT / 2) >> 4)
}

/// Grid step of algorithms that do not cluster on the grid, whose overlaps are counted on every second column and row.
pub(crate) const LATTICE_STEP: u32 = 8;
/// Ratio in eighths, of the squared difference of two thumbnails to the second's variance, from which no shift makes
/// them alike: with residuals as a second criterion, and without.
const UNLIKE: [u32; 2] = [10, 9];
/// Mean squared difference that is never a cut without residuals, because noise on a flat picture reaches it.
const UNLIKE_NOISE: u32 = 64;

/// Longest side of a thumbnail.
const THUMBNAIL: u32 = 128;
/// Largest shift that is tried, in squares of the thumbnail.
const REACH: u32 = 8;

/// Constants that follow from the frame size and the inertia.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The wanted inertia, in 1/256: bounds on discounts are multiples of it.
    pub(crate) inertia: u32,
    /// The largest discount for the predicted cluster, in 1/256 of its distance.
    pub(crate) sure: u32,
    /// Parts of a cluster that are told from its region.
    pub(crate) parts: u32,
    /// Side of a thumbnail's squares in px, a power of two.
    pub(crate) square: u32,
    /// Whole squares in a row and rows of them.
    pub(crate) thumbnail: [u32; 2],
    /// Largest shift along each axis, in squares.
    pub(crate) reach: [u32; 2],
    /// Pixels of the sample lattice.
    pub(crate) samples: u64,
    /// True if clusters continue; else only identities do.
    pub(crate) in_slots: bool,
    /// Farthest, along each axis and in 1/16 px, that a cluster may be from the center of a free cell that it takes.
    pub(crate) claim_reach: u32,
    /// Threshold for thumbnails that no shift makes alike: in eighths of the variance, and per square.
    pub(crate) unlike: [u32; 2],
    /// True if frames may have masks.
    pub(crate) masked: bool,
    /// True if superpixels are merged to an exact number of regions.
    pub(crate) in_regions: bool,
    /// [`TRACK_FLAT_PX`] for frames of this size, in 1/[`FLAT_ONE`].
    pub(crate) flat_px: u32,
}

impl Plan {
    pub(crate) fn new(
        inertia: f32,
        geometry: Geometry,
        grid: &Grid,
        in_slots: bool,
        claim_reach: u32,
    ) -> Self {
        let Geometry { width, height } = geometry;
        let square = width.max(height).div_ceil(THUMBNAIL).next_power_of_two();
        let thumbnail = [width / square, height / square];
        let step = grid.sample_step();
        let inertia = (f64::from(inertia) * f64::from(INERTIA_ONE) + 0.5) as u32;
        Self {
            inertia,
            sure: (5 * inertia).min(MOST_INERTIA),
            parts: 0,
            square,
            thumbnail,
            reach: thumbnail.map(|side| REACH.min(side / 4)),
            samples: u64::from(width.div_ceil(step)) * u64::from(height.div_ceil(step)),
            in_slots,
            claim_reach,
            unlike: if in_slots { [UNLIKE[0], 0] } else { [UNLIKE[1], UNLIKE_NOISE] },
            masked: false,
            in_regions: false,
            flat_px: FLAT_ONE * TRACK_FLAT_PX * TRACK_FLAT_SIDE / width.max(height).max(TRACK_FLAT_SIDE),
        }
    }

    /// Least difference per sample of a region that moves by `length` px along the longer axis.
    pub(crate) fn flat(&self, length: u32) -> u32 {
        TRACK_FLAT.max((self.flat_px * length / FLAT_ONE).min(self.flat_most()))
    }

    /// Upper bound of [`Self::flat`] for any length.
    pub(crate) fn flat_most(&self) -> u32 {
        if self.in_regions { TRACK_FLAT_MOST } else { u32::MAX }
    }

    /// Number of shifts that are tried.
    pub(crate) fn shifts(&self) -> usize {
        self.reach.iter().map(|&reach| 2 * reach as usize + 1).product()
    }

    /// The last frame's residual if it is not known: so large that no sum of distances, which have 32 bits, is a cut
    /// after it, and that it limits no discount.
    pub(crate) fn unknown_residual(&self) -> u64 {
        self.samples << 32
    }

    /// The last frame's residual after a change of plan that makes distances grow by at most `growth`; unknown if they
    /// do not compare.
    pub(crate) fn carried_residual(&self, last: u64, growth: Option<f64>) -> u64 {
        let unknown = self.unknown_residual();
        match growth {
            Some(1.0) => last,
            Some(factor) => ((last as f64 * factor).ceil() as u64).min(unknown),
            None => unknown,
        }
    }

    /// The last frame's residual, scaled from `last` samples inside of the mask to `samples`. Unknown if there were
    /// none.
    pub(crate) fn residual_of(&self, residual: u64, last: u64, samples: u64) -> u64 {
        if last == 0 || residual >= self.unknown_residual() {
            return self.unknown_residual();
        }
        residual / last * samples + residual % last * samples / last
    }

    /// Returns true if the frame is a cut: it does not continue the last one. It has `samples` inside of its mask.
    pub(crate) fn is_cut(&self, residual: u64, last: u64, samples: u64, unlike: bool) -> bool {
        residual > if unlike { 2 } else { 4 } * last + samples
    }

    /// Inertia of the frame after one with that residual and number of samples.
    pub(crate) fn inertia(&self, residual: u64, samples: u64) -> Inertia {
        let mean = residual / samples.max(1);
        // Residuals have less than 2^60: see `unknown_residual`.
        let part =
            |times: u32| ((mean * u64::from(times * self.inertia)) >> 8).min(u64::from(u32::MAX)) as u32;
        Inertia { sure: self.sure, eighth: part(MOVED_DISCOUNT) / 8, still: part(STILL_DISCOUNT) }
    }
}

/// Parts of a cluster that labels of 16 bits can name beside the clusters of all cells.
pub(crate) fn parts_of(cells: usize) -> u32 {
    (usize::from(u16::MAX) / cells.max(1)).saturating_sub(1).min(MOST_PARTS as usize) as u32
}

/// Least pixels of a component that is kept although it is below `min_region`: of a cluster whose largest component had
/// `last` pixels in the last frame, or of a part.
pub(crate) fn least_kept(last: Option<u32>, min_region: u32) -> u32 {
    let share = |size: u32| (u64::from(size) * u64::from(KEPT_SIXTEENTHS) / 16) as u32;
    last.map_or(share(min_region), |last| share(last).clamp(share(min_region), min_region))
}

/// Discounts on distances to the clusters that pixels are predicted to belong to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inertia {
    /// In 1/256 of the distance.
    sure: u32,
    /// Upper bound for each eighth of a moved pixel's similarity.
    eighth: u32,
    /// Upper bound for a pixel that stays.
    still: u32,
}

impl Inertia {
    /// A distance below 2^24 after the discount for its prediction.
    #[inline(always)]
    pub fn discounted(&self, distance: u32, predicted: u16) -> u32 {
        distance - ((distance * self.sure) >> 8).min(self.bound(predicted))
    }

    /// Any 32-bit distance after the discount for its prediction.
    #[inline(always)]
    pub fn discounted_any(&self, distance: u32, predicted: u16) -> u32 {
        // `distance * sure / 256` without overflow of 32 bits.
        let most = (distance >> 8) * self.sure + (((distance & 255) * self.sure) >> 8);
        distance - most.min(self.bound(predicted))
    }

    /// A 64-bit distance with `bits` more fraction bits than residuals, after the discount for its prediction.
    #[inline(always)]
    pub fn discounted_fine(&self, distance: u64, predicted: u16, bits: u32) -> u64 {
        distance - ((distance * u64::from(self.sure)) >> 8).min(u64::from(self.bound(predicted)) << bits)
    }

    /// The largest discount that a prediction's similarity allows.
    #[inline(always)]
    fn bound(&self, predicted: u16) -> u32 {
        let similarity = (predicted >> SIMILARITY_SHIFT) & STAYS;
        if similarity == STAYS { self.still } else { self.eighth * u32::from(similarity) }
    }
}

/// Track of a region: its identity over time and its motion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Track {
    /// Track id; 0 is none.
    pub id: u32,
    /// Earlier frames with the same track id.
    pub age: u32,
    /// Motion since the last frame, as its samples were matched, in 1/16 px.
    pub velocity: [i32; 2],
    /// Label of the predecessor in the last frame: the region that had the identity or, where regions are merged to an
    /// exact number, the one that was at the new region's center.
    pub from: Option<u32>,
}

/// Returns true if the parabola's vertex lies lower than the least difference by more than twice that. Then it is the squares at the
/// border that make one neighbor differ more than the other: without this a still picture would drift.
fn explains_too_much(slope: u64, bend: u64, least: u64) -> bool {
    // The vertex is slope² / (8 bend) lower. A slope is at most the bend, since the middle is the least.
    slope * (256 * slope / bend) > 256 * 16 * least
}

/// Motion of the picture in 1/16 px, from the squared differences of all shifts in raster order.
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
        if bend <= 0 || explains_too_much((before - after).unsigned_abs(), bend as u64, least) {
            return 0;
        }
        (i64::from(POSITION_UNIT / 2 * plan.square as i32) * (before - after) / bend) as i32
    };
    let whole = POSITION_UNIT * plan.square as i32;
    [whole * dx + vertex(dx, reach_x, 1), whole * dy + vertex(dy, reach_y, across as usize)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::NO_LABEL;

    #[test]
    fn discounts_are_bounded() {
        let geometry = Geometry { width: 64, height: 48 };
        let plan = Plan::new(0.2, geometry, &Grid::with_step(geometry, 16), true, u32::MAX);
        assert_eq!((plan.inertia, plan.sure), (51, 252));
        // The mean distance is 1000: an eighth allows 1000 * 6 * 51 / 256 / 8, staying 1000 * 45 * 51 / 256.
        let inertia = plan.inertia(1000 * plan.samples + 1, plan.samples);
        for (distance, similarity, discounted) in [
            (5120, STAYS, 5040),
            (10_240, STAYS, 8964),
            (5120, 8, 8 * 149),
            (5120, 3, 3 * 149),
            (5120, 1, 149),
            (5120, 0, 0),
            (512, 8, 504),
            (51_200, 8, 8 * 149),
            (51_200, STAYS, 8964),
        ] {
            // The candidate and the part do not matter.
            let predicted = 5 << PART_SHIFT | similarity << SIMILARITY_SHIFT | 4;
            let left = distance - discounted;
            assert_eq!(inertia.discounted(distance, predicted), left, "{distance} {similarity}");
            assert_eq!(inertia.discounted_any(distance, predicted), left, "{distance} {similarity}");
            let fine = inertia.discounted_fine(u64::from(distance) << 20, predicted, 20);
            assert_eq!(fine, u64::from(left) << 20, "{distance} {similarity}");
        }
        assert_eq!(
            Plan::new(0.0, geometry, &Grid::with_step(geometry, 16), true, u32::MAX)
                .inertia(plan.unknown_residual(), plan.samples)
                .discounted(77, 15 << 4),
            77
        );
        // Without a last frame to compare with nothing bounds them.
        let unbounded = plan.inertia(plan.unknown_residual(), plan.samples);
        assert_eq!(unbounded.discounted_any(u32::MAX, STAYS << 4), u32::MAX - u32::MAX / 256 * 252 - 251);
    }

    #[test]
    fn parts_fit_labels() {
        for (cells, parts) in
            [(1, 7), (527, 7), (8191, 7), (8192, 6), (32_400, 1), (32_767, 1), (32_768, 0), (65_535, 0)]
        {
            assert_eq!(parts_of(cells), parts, "{cells}");
            assert!(cells * (1 + parts as usize) <= usize::from(NO_LABEL));
        }
        assert_eq!(
            [
                least_kept(None, 64),
                least_kept(Some(1000), 64),
                least_kept(Some(80), 64),
                least_kept(Some(9), 64)
            ],
            [36, 64, 45, 36]
        );
    }
}
