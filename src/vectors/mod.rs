// SPDX-License-Identifier: MPL-2.0
//! Label maps as vector pictures: regions whose outlines are curves, as SVG.
//!
//! Each boundary between two regions is one arc, from one corner where three or more regions meet to the next. It is fitted once and
//! both regions have the same curve, so neighbors leave no gap and do not overlap. Corners where arcs meet stay where they are.
//!
//! A curve follows the middles of the sides of pixels, smoothed by a binomial filter, which takes the stairs of slanted borders. Of them
//! the fewest are kept from which all are no farther than the tolerance, and these are the control points of a quadratic spline, with
//! more beside sharp corners. With the default of 0.7 px a picture of the curves has other labels than the map only at pixels on a
//! border, but for one in millions.

use crate::error::{Error, Result};
use crate::image::{Geometry, Labels, NO_LABEL};

mod arcs;
mod curves;
mod gradients;
mod rings;
pub mod runs;
mod svg;

use arcs::Graph;
use curves::Curve;
pub use gradients::{Gradient, Gradients};
pub use rings::{Boundary, Polygon, boundaries};

/// A label of pixels that are in no region.
pub const OUTSIDE: u32 = u32::MAX;
/// Default of the distance in px that fitted curves may have from smoothed boundaries.
pub const TOLERANCE: f32 = 0.7;
/// Default of the width in px by which regions reach below their neighbors.
pub const SEAM: f32 = 0.7;

/// A label map.
#[derive(Clone, Copy)]
struct Map<'a> {
    labels: &'a [u32],
    width: usize,
    height: usize,
}

impl Map<'_> {
    /// The label of a pixel, [`OUTSIDE`] beyond the picture.
    #[inline(always)]
    fn at(&self, x: usize, y: usize) -> u32 {
        if x < self.width && y < self.height { self.labels[y * self.width + x] } else { OUTSIDE }
    }
}

/// Attributes and filling of a drawn region.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Style {
    /// Its number, the element's `data-label`.
    pub label: i64,
    /// The element's `id`, if it is to have one.
    pub id: Option<String>,
    /// Red, green and blue.
    pub color: [u8; 3],
    /// What it is filled with instead of one color, which stays the element's `color`.
    pub gradient: Option<Gradient>,
}

/// Lines on the boundaries of regions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lines {
    /// Width in px.
    pub width: f32,
    /// Red, green and blue.
    pub color: [u8; 3],
}

/// Style of outlines.
#[derive(Clone, Copy)]
pub struct Drawing<'a> {
    /// What each label is filled with, if regions are filled.
    pub fill: Option<&'a dyn Fn(u32) -> Style>,
    /// Renderers smooth the edges of each path alone, so what is behind would shine through between two: a region is so many px
    /// wider than its outline, half of it on either side, and drawn over those before it. 0 = not at all, and no edge is smoothed.
    pub seam: f32,
    /// Lines, each boundary once, also those along the edge of the picture.
    pub lines: Option<Lines>,
}

/// A label map of the library without gaps.
fn wide(labels: &Labels<'_>) -> Vec<u32> {
    let label = |&label: &u16| if label == NO_LABEL { OUTSIDE } else { label.into() };
    (0..labels.geometry().height() as usize).flat_map(|y| labels.row(y).iter().map(label)).collect()
}

/// Bytes that a side of a boundary takes at most, with rings and curves.
const SIDE: usize = 512;

/// Collections grow here without being asked whether there is memory, so all of it is asked for before: what corners and the sides of
/// boundaries take at most.
fn ask_for_memory(map: &Map<'_>, side: usize) -> Result<()> {
    const CORNER: usize = 2;
    let sides: usize = (0..=map.height)
        .map(|y| {
            let differ = |x: &usize| map.at(*x, y) != map.at(*x, y.wrapping_sub(1));
            let beside = |x: &usize| map.at(*x, y) != map.at(x.wrapping_sub(1), y);
            (0..map.width).filter(differ).count() + (0..=map.width).filter(beside).count()
        })
        .sum();
    let bytes = CORNER * (map.width + 1) * (map.height + 1) + side * sides;
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| Error::Memory { what: "outlines", bytes })
}

/// The outlines of the regions of a label map.
pub struct Outlines {
    size: [usize; 2],
    graph: Graph,
    curves: Vec<Curve>,
}

impl Outlines {
    /// Fits the outlines of a map of `geometry`, row by row without gaps; pixels with the label [`OUTSIDE`] are in no region.
    /// `tolerance` is the distance in px, at most 4, that curves may have from smoothed boundaries; with 0 outlines are those of the pixels.
    ///
    /// # Errors
    /// `labels` of another length, and a tolerance that is no number from 0 to 4.
    pub fn new(labels: &[u32], geometry: Geometry, tolerance: f32) -> Result<Self> {
        if labels.len() != geometry.pixels() {
            return Err(Error::Plane { what: "labels", needed: geometry.pixels(), got: labels.len() });
        }
        if !(0.0..=4.0).contains(&tolerance) {
            return Err(Error::Param {
                name: "tolerance",
                value: tolerance.into(),
                allowed: "a number of px from 0 to 4".into(),
            });
        }
        let size = [geometry.width() as usize, geometry.height() as usize];
        let map = Map { labels, width: size[0], height: size[1] };
        ask_for_memory(&map, SIDE)?;
        let graph = Graph::new(&map);
        let curves = graph.arcs.iter().map(|arc| curves::fit(arc, tolerance.into())).collect();
        Ok(Self { size, graph, curves })
    }

    /// Fits the outlines of a label map of the library.
    ///
    /// # Errors
    /// As [`Outlines::new`].
    pub fn of(labels: &Labels<'_>, tolerance: f32) -> Result<Self> {
        Self::new(&wide(labels), labels.geometry(), tolerance)
    }

    /// The text of an SVG file in the size of the picture, with a `path` for each label in ascending order.
    pub fn svg(&self, drawing: &Drawing<'_>) -> String {
        svg::write(self.size, &self.graph, &self.curves, drawing)
    }
}
