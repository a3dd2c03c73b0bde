// SPDX-License-Identifier: MPL-2.0
//! Curves along arcs: the middles of their sides, of which a polygon keeps few, as a spline of quadratic curves.

use super::arcs::Arc;

/// Parts of a pixel that coordinates are whole numbers of. Corners of polygons are even, so that middles between them are whole, too.
pub(super) const PARTS: f64 = 8.0;
/// How often the middles of sides are filtered.
const PASSES: usize = 2;
/// How far in px a curve may be from a corner that it rounds, which is a quarter of how far the corner is from the line between the
/// points around it, and where a side gets a point to keep it so near.
const CUT: f64 = 0.75;
const SUPPORT: f64 = 2.0;

/// A point in px.
type Point = [f64; 2];

/// A line or a quadratic curve, by the points after its first, in parts of a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    Line([i32; 2]),
    Quadratic([[i32; 2]; 2]),
}

impl Piece {
    pub fn end(self) -> [i32; 2] {
        match self {
            Self::Line(end) | Self::Quadratic([_, end]) => end,
        }
    }
}

/// The curve of an arc.
pub(super) struct Curve {
    pub start: [i32; 2],
    pub pieces: Vec<Piece>,
}

fn mix(a: Point, b: Point, share: f64) -> Point {
    [0, 1].map(|axis| a[axis] + (b[axis] - a[axis]) * share)
}

fn minus(a: Point, b: Point) -> Point {
    [a[0] - b[0], a[1] - b[1]]
}

fn length(a: Point) -> f64 {
    (a[0] * a[0] + a[1] * a[1]).sqrt()
}

/// Distance of a point from a line with two ends.
fn distance(of: Point, [from, to]: [Point; 2]) -> f64 {
    let (along, there) = (minus(to, from), minus(of, from));
    let square = along[0] * along[0] + along[1] * along[1];
    let share = if square > 0.0 {
        ((along[0] * there[0] + along[1] * there[1]) / square).clamp(0.0, 1.0)
    } else {
        0.0
    };
    length(minus(of, mix(from, to, share)))
}

/// The nearest even numbers of parts.
fn even(point: Point) -> [i32; 2] {
    point.map(|v| 2 * (v * PARTS / 2.0).round() as i32)
}

/// The curve of an arc. `tolerance` is in px; with 0 it keeps its corners.
pub(super) fn fit(arc: &Arc, tolerance: f64) -> Curve {
    let corners: Vec<Point> = arc.corners().map(|corner| corner.map(f64::from)).collect();
    let (start, end) = (corners[0], corners[corners.len() - 1]);
    if tolerance <= 0.0 || arc.is_straight() {
        let turns = arc.steps.windows(2).enumerate().filter(|(_, pair)| pair[0] != pair[1]);
        let points = turns.map(|(i, _)| corners[i + 1]).chain([end]);
        return Curve { start: even(start), pieces: points.map(|point| Piece::Line(even(point))).collect() };
    }
    let middles: Vec<Point> = corners.windows(2).map(|pair| mix(pair[0], pair[1], 0.5)).collect();
    let middles = filtered(middles, (!arc.is_closed).then_some([start, end]));
    let points: Vec<Point> = if arc.is_closed {
        middles.iter().copied().chain([middles[0]]).collect()
    } else {
        [start].into_iter().chain(middles).chain([end]).collect()
    };
    let mut polygon: Vec<[i32; 2]> =
        supported(&simplified(&points, tolerance), arc.is_closed).into_iter().map(even).collect();
    polygon.dedup();
    spline(&polygon, arc.is_closed)
}

/// The binomial filter 1 2 1, several times. A closed arc has no ends.
fn filtered(mut points: Vec<Point>, ends: Option<[Point; 2]>) -> Vec<Point> {
    for _ in 0..PASSES {
        let count = points.len();
        let [before, after] = ends.unwrap_or([points[count - 1], points[0]]);
        let at = |i: usize| if i == 0 { before } else { points.get(i - 1).copied().unwrap_or(after) };
        points = (1..=count).map(|i| mix(mix(at(i - 1), at(i + 1), 0.5), at(i), 0.5)).collect();
    }
    points
}

/// The points of a line from which all others are no farther than the tolerance (Ramer 1972; Douglas and Peucker 1973). A ring, whose
/// last point is its first, keeps the one in its middle, too.
fn simplified(points: &[Point], tolerance: f64) -> Vec<Point> {
    let last = points.len() - 1;
    let mut is_kept = vec![false; points.len()];
    (is_kept[0], is_kept[last]) = (true, true);
    let mut open = vec![(0, last)];
    if points[0] == points[last] {
        is_kept[last / 2] = true;
        open = vec![(0, last / 2), (last / 2, last)];
    }
    while let Some((from, to)) = open.pop() {
        let along = minus(points[to], points[from]);
        let away = |i: &usize| {
            let to = minus(points[*i], points[from]);
            (to[0] * along[1] - to[1] * along[0]).abs()
        };
        let farthest = (from + 1..to).max_by(|a, b| away(a).total_cmp(&away(b)));
        if let Some(i) = farthest.filter(|i| away(i) > tolerance * length(along)) {
            is_kept[i] = true;
            open.extend([(from, i), (i, to)]);
        }
    }
    points.iter().zip(is_kept).filter_map(|(&point, is_kept)| is_kept.then_some(point)).collect()
}

/// The polygon with more points on its sides beside corners that the spline would cut too much.
fn supported(polygon: &[Point], is_closed: bool) -> Vec<Point> {
    let count = polygon.len();
    let mut points = vec![polygon[0]];
    // The first point of a ring is there again at the end.
    for i in 1..if is_closed { count } else { count - 1 } {
        let (before, at) = (polygon[i - 1], polygon[i]);
        let after = if i + 1 < count { polygon[i + 1] } else { polygon[1] };
        let is_cut = distance(at, [before, after]) / 4.0 > CUT;
        let support = |other: Point| {
            let far = length(minus(other, at));
            (is_cut && far > 2.0 * SUPPORT).then(|| mix(at, other, SUPPORT / far))
        };
        points.extend(support(before));
        points.push(at);
        points.extend(support(after).filter(|_| i + 1 < count));
    }
    if !is_closed {
        points.push(polygon[count - 1]);
    }
    points
}

/// The quadratic spline whose control points are the corners of a polygon: curves from middle to middle of its sides.
fn spline(polygon: &[[i32; 2]], is_closed: bool) -> Curve {
    let count = polygon.len();
    let middle = |a: [i32; 2], b: [i32; 2]| [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
    let first = polygon[0];
    // A polygon that is a point after rounding, and a ring that is a line.
    if count < 3 {
        return Curve {
            start: first,
            pieces: polygon[1..].iter().map(|&point| Piece::Line(point)).collect(),
        };
    }
    if is_closed {
        // The last is the first again.
        let ring = &polygon[..if polygon[count - 1] == first { count - 1 } else { count }];
        let at = |i: usize| ring[i % ring.len()];
        let curves = (1..=ring.len()).map(|i| Piece::Quadratic([at(i), middle(at(i), at(i + 1))]));
        return Curve { start: middle(first, at(1)), pieces: curves.collect() };
    }
    let mut pieces = vec![Piece::Line(middle(first, polygon[1]))];
    pieces.extend(polygon.windows(3).map(|p| Piece::Quadratic([p[1], middle(p[1], p[2])])));
    pieces.push(Piece::Line(polygon[count - 1]));
    Curve { start: first, pieces }
}
