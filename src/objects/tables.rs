// SPDX-License-Identifier: MPL-2.0
//! What objects are found from: the tables of a frame, and what is known of where objects are.

use crate::error::{Error, Result};
use crate::image::Geometry;
use crate::regions::{Motion, Neighbor, Region};

/// The tables of a frame, as [`Engine::segment`](crate::engine::Engine::segment) gives them.
#[derive(Debug, Clone, Copy)]
pub struct Tables<'a> {
    /// Size of the frame.
    pub geometry: Geometry,
    /// One record a label.
    pub regions: &'a [Region],
    /// One record a label, or none: then nothing moves.
    pub motion: &'a [Motion],
    /// Pairs that touch.
    pub neighbors: &'a [Neighbor],
}

/// Description of an object in one frame.
#[derive(Debug, Clone, Copy)]
pub enum Evidence<'a> {
    /// A box around it: x0, y0, x1, y1 in px, the latter two exclusive. It may reach over the frame's edge.
    Box([i32; 4]),
    /// A mask: for each label how many of its pixels are in the mask. The object is what is covered by more than half.
    Mask(&'a [u32]),
    /// Labels of regions that are in the object, and of some that are not, as clicks or scribbles hit them.
    Seeds {
        /// At least one.
        inside: &'a [u32],
        /// Regions that are in none of `inside`. With none given, regions at the frame's edge are taken to be outside.
        outside: &'a [u32],
    },
}

/// Evidence with the object that it is about.
#[derive(Debug, Clone, Copy)]
pub struct Detection<'a> {
    /// Id of a known object, or of a new one that was [reserved](super::Objects::reserve). `None`: a box is about the object whose
    /// bounds it fits best, with an intersection over union of at least 0.3, and else about a new object; a mask and seeds are
    /// about a new one.
    pub object: Option<u32>,
    /// Description of the object.
    pub evidence: Evidence<'a>,
}

fn refused(name: &'static str, allowed: impl Into<String>, got: impl ToString) -> Error {
    Error::Value { name, got: got.to_string(), allowed: allowed.into() }
}

impl Tables<'_> {
    /// Refuses tables that are not of one frame.
    pub(super) fn check(&self) -> Result<()> {
        let n = self.regions.len();
        if !self.motion.is_empty() && self.motion.len() != n {
            return Err(refused(
                "motion",
                format!("of the frame's {n} regions, or empty"),
                self.motion.len(),
            ));
        }
        // Sums stay in 64 bits because no frame has more.
        let pixels = self.geometry.pixels() as u64;
        let area: u64 = self.regions.iter().map(|region| u64::from(region.area)).sum();
        let length: u64 = self.neighbors.iter().map(|pair| u64::from(pair.length)).sum();
        if area > pixels || length > 2 * pixels {
            let got = format!("{area} pixels and boundaries of {length}");
            return Err(refused("regions", format!("of one frame of {pixels} pixels"), got));
        }
        match self.neighbors.iter().find(|pair| pair.a.max(pair.b) as usize >= n || pair.a == pair.b) {
            Some(pair) => {
                let got = format!("labels {} and {}", pair.a, pair.b);
                Err(refused("neighbors", format!("pairs of the frame's {n} regions"), got))
            }
            None => Ok(()),
        }
    }
}

impl Detection<'_> {
    /// Refuses what cannot be about this frame.
    pub(super) fn check(&self, tables: &Tables) -> Result<()> {
        let n = tables.regions.len();
        match self.evidence {
            Evidence::Box([x0, y0, x1, y1]) => {
                let (width, height) = (tables.geometry.width() as i32, tables.geometry.height() as i32);
                if x0 >= x1 || y0 >= y1 || x0 >= width || y0 >= height || x1 <= 0 || y1 <= 0 {
                    let allowed = format!("x0 < x1, y0 < y1, and partly in the frame of {width}x{height}");
                    return Err(refused("box", allowed, format!("{x0}, {y0}, {x1}, {y1}")));
                }
            }
            Evidence::Mask(counts) if counts.len() != n => {
                return Err(refused("mask", format!("a count for each of {n} regions"), counts.len()));
            }
            Evidence::Mask(_) => {}
            Evidence::Seeds { inside, outside } => {
                if inside.is_empty() {
                    return Err(refused("seeds", "at least one region inside", "none"));
                }
                if let Some(label) = inside.iter().chain(outside).find(|&&label| label as usize >= n) {
                    return Err(refused("seeds", format!("labels of the frame's {n} regions"), label));
                }
                if let Some(label) = inside.iter().find(|label| outside.contains(label)) {
                    return Err(refused(
                        "seeds",
                        "regions inside or outside, not both; more superpixels tell them apart",
                        label,
                    ));
                }
            }
        }
        Ok(())
    }
}
