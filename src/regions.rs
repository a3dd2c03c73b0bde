// SPDX-License-Identifier: MPL-2.0
//! What is known about the regions of a label map: records as they stand in the metadata.

use bytemuck::{Pod, Zeroable};

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
}
