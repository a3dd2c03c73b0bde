// SPDX-License-Identifier: MPL-2.0
//! What is known about the regions of a label map: records as they stand in the metadata.

use bytemuck::{Pod, Zeroable};

use crate::image::NO_LABEL;

/// One region; 40 bytes, little endian on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Region {
    /// Name of the region over time; the label where nothing carries identities from frame to frame. Identities are given in
    /// order, 1 to `u32::MAX` and then from 1 again; 0 is none. Those of a frame differ, unless a region has lasted while all
    /// others were given: at a thousand new regions a second, that is seven weeks.
    pub track_id: u32,
    /// Number of pixels.
    pub area: u32,
    /// Centroid in px, x then y; pixel centers have integer coordinates.
    pub centroid: [f32; 2],
    /// Mean R', G', B' (code values, rounded half up), then 255. For Y'CbCr frames: the color of the mean Y'CbCr. With
    /// `Outputs::linear_light`: the color of the mean light, in any format.
    pub mean_rgb: [u8; 4],
    /// Mean CIE L, a, b (D65): of the pixels where the segmentation works in `lab`, else of `mean_rgb`.
    pub mean_lab: [f32; 3],
    /// Bounding box: x0, y0, x1, y1; x1 and y1 exclusive.
    pub bounds: [u16; 4],
}

const _: () = assert!(size_of::<Region>() == 40);

/// Two regions that touch; 12 bytes, little endian on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct Neighbor {
    /// Lower label.
    pub a: u32,
    /// Higher label.
    pub b: u32,
    /// Length of the shared boundary: number of 4-neighbor pixel pairs, one on each side.
    pub length: u32,
}

const _: () = assert!(size_of::<Neighbor>() == 12);

/// How a region has come to its place; 12 bytes, little endian on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Motion {
    /// Motion since the last frame in px, x then y, in whole px where it was seen; 0 in the first frame and after a cut.
    /// Regions that no cluster owns have that of the whole picture.
    pub velocity: [f32; 2],
    /// Number of frames before this one that had a region of the same identity.
    pub age: u32,
}

const _: () = assert!(size_of::<Motion>() == 12);

/// Two regions that become one in the next coarser level; 16 bytes, little endian on the wire. See [`cut`].
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct MergeStep {
    /// A label of the map; its region is by then part of the first of both.
    pub a: u32,
    /// A label of the other.
    pub b: u32,
    /// How unlike both are: at least as much as those of any step before. Without a unit; comparable in one frame only.
    pub height: f32,
    /// Pixels of the region that the two are in, with all that has joined it at the same time.
    pub area: u32,
}

const _: () = assert!(size_of::<MergeStep>() == 16);

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
