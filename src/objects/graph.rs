// SPDX-License-Identifier: MPL-2.0
//! The graph of a frame's regions in integers, the cut that separates an object in it, and distances in it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::minimum_cut::Network;
use super::tables::Tables;

/// A region. Colors are in quarters of a Delta E, positions in px.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) track: u32,
    pub(super) area: i64,
    pub(super) center: [i32; 2],
    pub(super) color: [i32; 3],
    pub(super) bounds: [i32; 4],
    /// px since the last frame.
    pub(super) velocity: [i32; 2],
}

/// Two regions that touch, with the length of their boundary.
struct Edge {
    a: usize,
    b: usize,
    length: i64,
}

/// A frame's regions.
pub(super) struct Graph {
    pub(super) width: i64,
    pub(super) height: i64,
    pub(super) nodes: Vec<Node>,
    edges: Vec<Edge>,
    /// S^2: the frame's pixels for each region, at least 1.
    pub(super) spacing_squared: i64,
}

/// Score that no other outweighs: the region is in the object.
pub(super) const CERTAIN: i64 = 1 << 20;
/// Weight of a boundary's length against scores: percent of 1 bit a px, for a region of S^2 pixels.
const SMOOTHNESS: i64 = 97;
/// Color difference, in quarters of a Delta E, at which a boundary costs half.
const CONTRAST: i64 = 32;
/// Cost of a boundary of any contrast, in thousandths.
const FLOOR: i64 = 40;
/// Color difference, in quarters of a Delta E, that adds nothing to a distance.
const FREE: i64 = 8;

/// Sum of squared differences.
pub(super) fn squared<const N: usize>(a: [i32; N], b: [i32; N]) -> i64 {
    (0..N).map(|i| i64::from(a[i] - b[i]).pow(2)).sum()
}

/// Square root, rounded down.
pub(super) fn root(value: i64) -> i64 {
    value.max(0).isqrt()
}

impl Graph {
    /// The graph of checked tables. Values of any size are taken: what no frame has is cut off.
    pub(super) fn new(tables: &Tables) -> Self {
        let whole = |value: f32, limit: i32| (value.round() as i32).clamp(-limit, limit);
        let node = |(label, region): (usize, &crate::regions::Region)| Node {
            track: region.track_id,
            area: i64::from(region.area),
            center: region.centroid.map(|c| whole(c, 1 << 15)),
            color: region.mean_lab.map(|c| whole(4.0 * c, 1 << 10)),
            bounds: region.bounds.map(i32::from),
            velocity: tables
                .motion
                .get(label)
                .map_or([0; 2], |motion| motion.velocity.map(|v| whole(v, 1 << 15))),
        };
        let nodes: Vec<Node> = tables.regions.iter().enumerate().map(node).collect();
        let edge = |pair: &crate::regions::Neighbor| Edge {
            a: pair.a as usize,
            b: pair.b as usize,
            length: i64::from(pair.length),
        };
        let (width, height) = (i64::from(tables.geometry.width()), i64::from(tables.geometry.height()));
        let spacing_squared = (width * height / nodes.len().max(1) as i64).max(1);
        Self { width, height, nodes, edges: tables.neighbors.iter().map(edge).collect(), spacing_squared }
    }

    /// S: the distance of neighboring regions, in px.
    pub(super) fn spacing(&self) -> i64 {
        root(self.spacing_squared)
    }

    /// The object: of all sets of regions the one of least cost, and of several such the smallest.
    ///
    /// `scores` say for each region how much more likely it is in the object than not, in 1/256 bit for each pixel; `None` is
    /// certainly outside. The cost is the sum of the scores of what is outside and above 0, and of what is inside and below, plus the
    /// price of the boundary.
    pub(super) fn cut(&self, scores: &[Option<i64>]) -> Vec<bool> {
        let mut indices = vec![usize::MAX; scores.len()];
        let mut gains = Vec::new();
        for (label, score) in scores.iter().enumerate() {
            if let Some(score) = score {
                indices[label] = gains.len();
                gains.push(score * self.nodes[label].area);
            }
        }
        let (source, sink) = (gains.len(), gains.len() + 1);
        let mut network = Network::new(gains.len() + 2);
        let spacing = self.spacing().max(1);
        for edge in &self.edges {
            let difference = squared(self.nodes[edge.a].color, self.nodes[edge.b].color);
            let weight = 1000 * CONTRAST * CONTRAST / (CONTRAST * CONTRAST + difference) + FLOOR;
            let price = edge.length * spacing * 256 * SMOOTHNESS / 100 * weight / 1000;
            match (indices[edge.a], indices[edge.b]) {
                (usize::MAX, usize::MAX) => {}
                // The other is outside.
                (a, usize::MAX) => gains[a] -= price,
                (usize::MAX, b) => gains[b] -= price,
                (a, b) => network.connect(a, b, price, price),
            }
        }
        for (index, &gain) in gains.iter().enumerate() {
            match gain {
                0 => {}
                1.. => network.connect(source, index, gain, 0),
                _ => network.connect(index, sink, -gain, 0),
            }
        }
        let side = network.cut(source, sink);
        indices.iter().map(|&index| index != usize::MAX && side[index]).collect()
    }

    /// Takes out parts that do not touch the largest one and have less than so many percent of its area.
    pub(super) fn drop_small_parts(&self, object: &mut [bool], percent: i64) {
        let mut above: Vec<usize> = (0..object.len()).collect();
        let top = |above: &mut [usize], mut label: usize| {
            while above[label] != label {
                above[label] = above[above[label]];
                label = above[label];
            }
            label
        };
        for edge in self.edges.iter().filter(|edge| object[edge.a] && object[edge.b]) {
            let (a, b) = (top(&mut above, edge.a), top(&mut above, edge.b));
            above[a.max(b)] = a.min(b);
        }
        let mut areas = vec![0; object.len()];
        for label in (0..object.len()).filter(|&label| object[label]) {
            areas[top(&mut above, label)] += self.nodes[label].area;
        }
        let largest = areas.iter().copied().max().unwrap_or(0);
        for label in 0..object.len() {
            if areas[top(&mut above, label)] * 100 < largest * percent {
                object[label] = false;
            }
        }
    }

    /// Geodesic distance of each region from those that `is_start` names: the least sum of color differences along a path, in
    /// quarters of a Delta E, small differences free. [`i64::MAX`] where no path leads. Dijkstra's algorithm.
    pub(super) fn distances(&self, is_start: impl Fn(usize) -> bool) -> Vec<i64> {
        let mut steps = vec![Vec::new(); self.nodes.len()];
        for edge in &self.edges {
            let difference = root(squared(self.nodes[edge.a].color, self.nodes[edge.b].color));
            let step = (difference - FREE).max(0);
            steps[edge.a].push((edge.b, step));
            steps[edge.b].push((edge.a, step));
        }
        let mut distances = vec![i64::MAX; self.nodes.len()];
        let mut queue = BinaryHeap::new();
        for label in (0..self.nodes.len()).filter(|&label| is_start(label)) {
            distances[label] = 0;
            queue.push(Reverse((0, label)));
        }
        while let Some(Reverse((distance, label))) = queue.pop() {
            if distance > distances[label] {
                continue;
            }
            for &(to, step) in &steps[label] {
                if distance + step < distances[to] {
                    distances[to] = distance + step;
                    queue.push(Reverse((distance + step, to)));
                }
            }
        }
        distances
    }
}
