// SPDX-License-Identifier: MPL-2.0
//! What is known about the regions of a label map: records as they stand in the metadata.

use crate::image::NO_LABEL;
use crate::record::wire_records;

wire_records! {
    /// One region; record i belongs to label i.
    #[derive()]
    pub struct Region in "table" {
        /// Name of the region over time; the label where `temporal` is off.
        ///
        /// Identities are given in order, 1 to `u32::MAX` and then from 1 again; 0 is none. Those of a frame differ, unless a region
        /// has lasted while all others were given: at a thousand new regions a second, that is seven weeks.
        track_id: u32 { unit: None },
        /// Number of pixels.
        area: u32 { unit: Px },
        /// Centroid, x then y; pixel centers have integer coordinates.
        centroid: [f32; 2] { unit: Px, columns: ["cx", "cy"] },
        /// Mean R', G', B', rounded half up.
        ///
        /// Then 255. For Y'CbCr frames: the color of the mean Y'CbCr. With `Outputs::linear_light`: the color of the mean light, in
        /// any format.
        mean_rgb: [u8; 4] { unit: CodeValues, columns: ["mean_r", "mean_g", "mean_b"] },
        /// Mean CIE L, a, b (D65).
        ///
        /// Of the pixels where the segmentation works in `lab`, else of `mean_rgb`.
        mean_lab: [f32; 3] { unit: Lab, columns: ["lab_l", "lab_a", "lab_b"] },
        /// Bounding box: x0, y0, x1, y1; x1 and y1 exclusive.
        bounds: [u16; 4] { unit: Px, columns: ["x0", "y0", "x1", "y1"] },
    }

    /// How a region has come to its place; record i belongs to label i.
    #[derive(Default)]
    pub struct Motion in "motion" {
        /// Motion since the last frame, x then y; 0 in the first frame and after a cut.
        ///
        /// In whole px where it was seen. Regions that no cluster owns have that of the whole picture.
        velocity: [f32; 2] { unit: PxPerFrame, columns: ["vx", "vy"] },
        /// Number of earlier frames with the same `track_id`.
        age: u32 { unit: Frames },
    }

    /// Two regions that touch; records are sorted by (a, b).
    #[derive(Eq, PartialOrd, Ord)]
    pub struct Neighbor in "neighbors" {
        /// Lower label.
        a: u32 { unit: Label },
        /// Higher label.
        b: u32 { unit: Label },
        /// Length of the shared boundary: pairs of pixels side by side or one above the other.
        length: u32 { unit: PixelEdges },
    }

    /// Two regions that become one in the next coarser level.
    ///
    /// See [`cut`].
    #[derive()]
    pub struct MergeStep in "hierarchy" {
        /// A label of one; its region is by then part of the first of both.
        a: u32 { unit: Label },
        /// A label of the other.
        b: u32 { unit: Label },
        /// How unlike both are, comparable in one frame only; never falls from record to record.
        height: f32 { unit: None },
        /// Area of the region that the two are in, with all that has joined it at the same time.
        area: u32 { unit: Px },
    }

    /// What became of a region since the last frame, or a cut.
    ///
    /// See [`events`](crate::events).
    #[derive(Eq)]
    pub struct Event in "events" {
        /// 1 birth, 2 split, 3 death, 4 merge, 5 cut.
        ///
        /// An [`EventKind`](crate::events::EventKind).
        kind: u32 { unit: None },
        /// The region that is new or gone; 0 for a cut.
        track_id: u32 { unit: None },
        /// The region that it split off from or merged into; else 0.
        other: u32 { unit: None },
        /// Its pixels: where it is new in this frame, where it is gone in the last.
        area: u32 { unit: Px },
    }
}

/// Rewrites a label map to a coarser level of its hierarchy: to `regions` regions, or to as few as there can be. Equal to what
/// [`hierarchy::Params::regions`](crate::post::hierarchy::Params::regions) gives with the same superpixels. Labels are 0 to n-1, in the
/// order of the lowest label that a region had; [`NO_LABEL`] stays. Returns n.
///
/// `merges` is the whole list of the map, [`Regions::merges`]; it is in order, so that a level takes as many steps from its start as
/// regions are to disappear. Takes memory for one number a label.
///
/// # Errors
///
/// `None`, and nothing is changed, where a step names a label that the map does not have.
///
/// ```
/// use gstsuperpixel::regions::{MergeStep, cut};
///
/// let step = |a, b, height| MergeStep { a, b, height, area: 2 };
/// let mut labels = [0, 0, 1, 2, 3];
/// assert_eq!(cut(&mut labels, &[step(1, 3, 2.0), step(0, 2, 5.0), step(0, 1, 5.5)], 3), Some(3));
/// assert_eq!(labels, [0, 0, 1, 2, 1]);
/// ```
pub fn cut(labels: &mut [u16], merges: &[MergeStep], regions: u32) -> Option<u32> {
    let count =
        labels.iter().filter(|label| **label != NO_LABEL).max().map_or(0, |&most| usize::from(most) + 1);
    let steps = &merges[..count.saturating_sub(regions as usize).min(merges.len())];
    // From each label to a lower one of its region, as far as it goes.
    let mut lower: Vec<u32> = (0..count as u32).collect();
    let lowest = |lower: &mut [u32], mut label: u32| {
        while lower[label as usize] != label {
            lower[label as usize] = lower[lower[label as usize] as usize];
            label = lower[label as usize];
        }
        label
    };
    for step in steps {
        if step.a.max(step.b) as usize >= count {
            return None;
        }
        let (a, b) = (lowest(&mut lower, step.a), lowest(&mut lower, step.b));
        lower[a.max(b) as usize] = a.min(b);
    }
    let mut next = 0;
    for label in 0..count {
        // What is lower has its number already.
        let root = lower[label] as usize;
        lower[label] = if root == label { next } else { lower[root] };
        next += u32::from(root == label);
    }
    for label in labels.iter_mut().filter(|label| **label != NO_LABEL) {
        *label = lower[usize::from(*label)] as u16;
    }
    Some(next)
}

/// What one frame gave beside the label map; kept by the engine and overwritten by the next frame.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Regions {
    /// Number of labels n; the label map holds 0..n-1, each at least once, beside what is outside of a mask.
    pub count: u32,
    /// One record a label, in label order; empty unless asked for.
    pub table: Vec<Region>,
    /// One for each record of the table where identities last from frame to frame; else empty.
    pub motion: Vec<Motion>,
    /// Touching pairs sorted by (a, b); empty unless asked for.
    pub neighbors: Vec<Neighbor>,
    /// What of these regions, refined where that was asked for, would be merged next, down to one for each piece of the picture; with
    /// [`hierarchy::Params::levels`](crate::post::hierarchy::Params::levels).
    pub merges: Vec<MergeStep>,
}
