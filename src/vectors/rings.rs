// SPDX-License-Identifier: MPL-2.0
//! Outlines as lists of points: the boundaries of a map, each once, and the polygons of a region.

use super::arcs::{Graph, Half};
use super::curves::{PARTS, Piece};
use super::{Map, Outlines, ask_for_memory, wide};
use crate::error::Result;
use crate::image::Labels;

/// Bytes that a side of a boundary takes at most, while only arcs are made.
const SIDE: usize = 32;

/// A boundary between two regions, from one corner where three or more meet to the next, or around a region that touches only one other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary {
    /// Labels to the right and to the left of it; [`OUTSIDE`](super::OUTSIDE) beyond the picture and outside of regions.
    pub beside: [u32; 2],
    /// Column and row of the corners of pixels where it begins, turns and ends.
    pub corners: Vec<[u32; 2]>,
}

/// All boundaries of a label map, along the sides of pixels, each once.
///
/// # Errors
/// No memory.
pub fn boundaries(labels: &Labels<'_>) -> Result<Vec<Boundary>> {
    let [width, height] = [labels.geometry().width(), labels.geometry().height()].map(|side| side as usize);
    let all = wide(labels);
    let map = Map { labels: &all, width, height };
    ask_for_memory(&map, SIDE)?;
    let turns = |arc: &super::arcs::Arc| {
        let is_kept = |i: usize| i == 0 || i == arc.steps.len() || arc.steps[i - 1] != arc.steps[i];
        let kept = arc.corners().enumerate().filter(|(i, _)| is_kept(*i));
        kept.map(|(_, corner)| corner.map(|place| place as u32)).collect()
    };
    Ok(Graph::arcs(&map).iter().map(|arc| Boundary { beside: arc.beside, corners: turns(arc) }).collect())
}

/// A piece of a region: points in px, of which the last is joined to the first. With y down the outer ring goes clockwise, holes the
/// other way.
#[derive(Debug, Clone, PartialEq)]
pub struct Polygon {
    /// The ring around it.
    pub outer: Vec<[f32; 2]>,
    /// The rings around what is not of it.
    pub holes: Vec<Vec<[f32; 2]>>,
}

/// A ring as it is among pixels, to tell what is inside.
struct Ring<'a> {
    halves: &'a [Half],
    corners: Vec<[i32; 2]>,
    /// Twice its area; below 0 for a hole.
    area: i64,
}

impl<'a> Ring<'a> {
    fn new(graph: &Graph, halves: &'a [Half]) -> Self {
        let mut corners = Vec::new();
        for half in halves {
            let mut part: Vec<_> = graph.arcs[half.arc].corners().collect();
            if half.is_reversed {
                part.reverse();
            }
            // Its end is where the next one begins.
            part.pop();
            corners.append(&mut part);
        }
        let sides = corners.iter().zip(corners.iter().cycle().skip(1));
        let area =
            sides.map(|(a, b)| i64::from(a[0]) * i64::from(b[1]) - i64::from(b[0]) * i64::from(a[1])).sum();
        Self { halves, corners, area }
    }

    /// The pixel of the region beside its first side, which is to the right.
    fn pixel(&self) -> [i32; 2] {
        let ([x, y], [to_x, to_y]) = (self.corners[0], self.corners[1 % self.corners.len()]);
        match [to_x - x, to_y - y] {
            [1, _] => [x, y],
            [_, 1] => [x - 1, y],
            [-1, _] => [x - 1, y - 1],
            _ => [x, y - 1],
        }
    }

    /// True if it goes around a pixel.
    fn surrounds(&self, [x, y]: [i32; 2]) -> bool {
        let sides = self.corners.iter().zip(self.corners.iter().cycle().skip(1));
        let crosses = |(a, b): &(&[i32; 2], &[i32; 2])| a[0] == b[0] && a[0] <= x && a[1].min(b[1]) == y;
        sides.filter(crosses).count() % 2 == 1
    }
}

impl Outlines {
    /// The polygons of a region, one for each piece whose pixels touch by their sides. Curves become lines with a point in the middle
    /// of each; with a tolerance of 0 the polygons have exactly the pixels of the region.
    pub fn polygons(&self, label: u32) -> Vec<Polygon> {
        let first = self.graph.rings.partition_point(|ring| ring.0 < label);
        let rings = self.graph.rings[first..].iter().take_while(|ring| ring.0 == label);
        let rings = rings.map(|(_, halves)| Ring::new(&self.graph, halves)).collect::<Vec<_>>();
        let (outer, holes): (Vec<_>, Vec<_>) = rings.into_iter().partition(|ring| ring.area > 0);
        let mut polygons: Vec<_> =
            outer.iter().map(|ring| Polygon { outer: self.points(ring.halves), holes: Vec::new() }).collect();
        for hole in holes {
            let pixel = hole.pixel();
            let around = outer.iter().enumerate().filter(|(_, ring)| ring.surrounds(pixel));
            // A piece may lie in the hole of another one; the innermost is that of the pixel.
            if let Some((i, _)) = around.min_by_key(|(_, ring)| ring.area) {
                polygons[i].holes.push(self.points(hole.halves));
            }
        }
        polygons
    }

    fn points(&self, halves: &[Half]) -> Vec<[f32; 2]> {
        let mut points: Vec<[i32; 2]> = Vec::new();
        for half in halves {
            let curve = &self.curves[half.arc];
            let mut at = curve.first(half.is_reversed);
            points.push(at);
            curve.for_each(half.is_reversed, |piece| {
                if let Piece::Quadratic([control, end]) = piece {
                    points.push([0, 1].map(|axis| (at[axis] + 2 * control[axis] + end[axis]) / 4));
                }
                at = piece.end();
                points.push(at);
            });
        }
        points.dedup();
        if points.len() > 1 && points.first() == points.last() {
            points.pop();
        }
        points.into_iter().map(|point| point.map(|place| place as f32 / PARTS as f32)).collect()
    }
}
