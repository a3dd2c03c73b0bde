// SPDX-License-Identifier: MPL-2.0
//! One object over time: what it looked like, where it was, and how much each region of the next frame looks like it.

use super::color_model::{ColorModel, ONE, log_ratio};
use super::graph::{Graph, Node, root, squared};

// Chosen on one clip (docs/objects.md).

/// Weights of the terms of a score, in percent.
const NEARBY: i64 = 132;
const COLOR: i64 = 271;
const SAME_TRACK: i64 = 80;
const MOTION: i64 = 255;
const OUTSIDE_EXTENT: i64 = 150;
/// Radii of what is nearby: of colors in quarters of a Delta E, of positions in percent of S.
const COLOR_RADIUS: i64 = 24;
const RADIUS: i64 = 320;
/// Farthest distance of what may join the object from what was in it, in percent of S.
const REACH: i64 = 450;
/// Shares that count as none, in thousandths: of nearby regions, and of colors.
const NEARBY_LEAST: i64 = 9;
const COLOR_LEAST: i64 = 6;
/// Limits of the two log ratios, in 1/256 bit.
const NEARBY_LIMIT: i64 = 986;
const COLOR_LIMIT: i64 = 768;
/// Percent of the color models that are those of the last evidence; the rest follows the object.
const ANCHOR: i64 = 80;
/// Percent that stays of the models that follow, and of a region that is hidden, from frame to frame.
const KEPT: u64 = 81;
const HIDDEN_KEPT: i64 = 95;
/// Hidden regions below this share of S^2 are forgotten.
const HIDDEN_LEAST: i64 = 10;
/// Most that the extent moves beside the object's motion, in percent of S.
const EXTENT_STEP: i64 = 10;

/// 1/16 px.
const SIXTEENTHS: i64 = 16;

/// A region of the last frame, or one of the object that is hidden since.
struct Past {
    center: [i32; 2],
    color: [i32; 3],
    weight: i64,
    is_inside: bool,
}

/// State of an object after a frame.
pub(super) struct Track {
    past: Vec<Past>,
    /// Track ids of the last frame's regions, sorted, with whether each was inside.
    ids: Vec<(u32, bool)>,
    /// Inside and outside, since the last evidence and at it.
    models: [ColorModel; 2],
    anchors: [ColorModel; 2],
    /// px since the frame before.
    pub(super) velocity: [i32; 2],
    /// Box in which centers of its regions are expected: x0, y0, x1, y1 in [`SIXTEENTHS`].
    extent: [i64; 4],
    /// S^2 of the last frame that had regions.
    spacing_squared: i64,
}

/// A value with at least half of the weight on either side; 0 without values.
fn median(mut values: Vec<(i32, i64)>) -> i32 {
    values.sort_unstable();
    let whole: i64 = values.iter().map(|(_, weight)| weight).sum();
    let mut sum = 0;
    let half = values.into_iter().find(|(_, weight)| {
        sum += weight;
        2 * sum >= whole
    });
    half.map_or(0, |(value, _)| value)
}

fn median_velocity<'a>(nodes: impl Iterator<Item = &'a Node>) -> [i32; 2] {
    let nodes: Vec<&Node> = nodes.collect();
    [0, 1].map(|axis| median(nodes.iter().map(|node| (node.velocity[axis], node.area)).collect()))
}

/// Points by square cells, to find those within a radius.
struct Cells {
    side: i32,
    columns: i32,
    rows: i32,
    cells: Vec<Vec<u32>>,
}

impl Cells {
    fn new(graph: &Graph, radius: i64) -> Self {
        let side = (radius as i32).max(1);
        // One more on each side, for what lies outside of the frame.
        let [columns, rows] = [graph.width, graph.height].map(|length| length as i32 / side + 3);
        Self { side, columns, rows, cells: vec![Vec::new(); (columns * rows) as usize] }
    }

    fn cell(&self, [x, y]: [i32; 2]) -> [i32; 2] {
        let at = |v: i32, count: i32| (v.div_euclid(self.side) + 1).clamp(0, count - 1);
        [at(x, self.columns), at(y, self.rows)]
    }

    fn insert(&mut self, point: [i32; 2], index: usize) {
        let [x, y] = self.cell(point);
        self.cells[(y * self.columns + x) as usize].push(index as u32);
    }

    /// All points within a side of this one, and some others.
    fn around(&self, point: [i32; 2]) -> impl Iterator<Item = usize> {
        let [x, y] = self.cell(point);
        let rows = (y - 1).max(0)..(y + 2).min(self.rows);
        rows.flat_map(move |y| ((x - 1).max(0)..(x + 2).min(self.columns)).map(move |x| y * self.columns + x))
            .flat_map(|cell| self.cells[cell as usize].iter().map(|&index| index as usize))
    }
}

/// (1 - d² / r²)² in 1/256, 0 from r on: the biweight kernel, which is a Gaussian's shape in integers.
fn kernel(distance_squared: i64, radius_squared: i64) -> i64 {
    ((radius_squared - distance_squared).max(0) * 256 / radius_squared).pow(2) / 256
}

fn moved(point: [i32; 2], by: [i32; 2]) -> [i32; 2] {
    [point[0] + by[0], point[1] + by[1]]
}

/// Masses of what is nearby, inside and outside, and the squared distance to the nearest region inside.
struct Nearby {
    masses: [i64; 2],
    nearest: i64,
}

impl Track {
    /// A new object.
    pub(super) fn new(graph: &Graph, inside: &[bool]) -> Self {
        let models = color_models(graph, inside, |_| 1);
        let mut track = Self {
            past: Vec::new(),
            ids: Vec::new(),
            anchors: models.clone(),
            models,
            velocity: [0; 2],
            extent: [0; 4],
            spacing_squared: graph.spacing_squared,
        };
        track.store(graph, inside);
        track.extent = extent(graph, inside).unwrap_or_default();
        track
    }

    /// The models and the extent of new evidence, which later frames are compared with.
    pub(super) fn anchor(&mut self, models: [ColorModel; 2], bounds: Option<[i32; 4]>, graph: &Graph) {
        self.anchors = models;
        // Centers of regions are inside of the box by some part of S.
        let inset = SIXTEENTHS * graph.spacing() / 4;
        if let Some([x0, y0, x1, y1]) = bounds.map(|bounds| bounds.map(|v| SIXTEENTHS * i64::from(v))) {
            self.extent = [x0 + inset, y0 + inset, x1 - inset, y1 - inset];
        }
    }

    /// Returns true if any region goes on from the last frame: without one it was a cut.
    pub(super) fn goes_on(&self, graph: &Graph) -> bool {
        graph.nodes.iter().any(|node| self.was_inside(node).is_some())
    }

    /// Returns true if a part of it is seen or expected.
    pub(super) fn is_known(&self) -> bool {
        self.past.iter().any(|past| past.is_inside)
    }

    /// Returns true if the region of this track id was in the object; `None` if there was no such region.
    fn was_inside(&self, node: &Node) -> Option<bool> {
        let at = self.ids.binary_search_by_key(&node.track, |&(id, _)| id).ok()?;
        Some(self.ids[at].1)
    }

    /// Motion since the last frame: the median of its regions that go on, or without one what it was.
    pub(super) fn predict(&mut self, graph: &Graph) {
        let mut nodes = graph.nodes.iter().filter(|node| self.was_inside(node) == Some(true)).peekable();
        if nodes.peek().is_some() {
            self.velocity = median_velocity(nodes);
        }
    }

    /// Scores of a frame's regions, as [`Graph::cut`] takes them.
    pub(super) fn scores(&self, graph: &Graph) -> Vec<Option<i64>> {
        let nearby = self.nearby(graph);
        let reach = graph.spacing_squared * REACH * REACH / 10_000;
        let around = graph
            .nodes
            .iter()
            .zip(&nearby)
            .filter(|(node, nearby)| nearby.nearest < 4 * reach && self.was_inside(node) == Some(false));
        let background = median_velocity(around.map(|(node, _)| node));
        let score = |(node, nearby): (&Node, &Nearby)| {
            if nearby.nearest > reach {
                return None;
            }
            let [inside, outside] = nearby.masses;
            let least = NEARBY_LEAST * 4096 / 1000;
            let near = log_ratio(inside, outside, least, NEARBY_LIMIT);
            let density = |side: usize| {
                let [anchor, now] =
                    [&self.anchors[side], &self.models[side]].map(|model| model.density(node.color));
                (now * (100 - ANCHOR) + anchor * ANCHOR) / 100
            };
            let color = log_ratio(density(0), density(1), COLOR_LEAST * ONE / 1000, COLOR_LIMIT);
            let track = self.was_inside(node).map_or(0, |inside| if inside { 256 } else { -256 });
            let differs = |velocity: [i32; 2]| root(256 * squared(node.velocity, velocity));
            let motion = (differs(background) - differs(self.velocity)).clamp(-256, 256);
            let sum = NEARBY * near + COLOR * color + SAME_TRACK * track + MOTION * motion;
            Some((sum - OUTSIDE_EXTENT * self.outside_extent(node, graph)) / 100)
        };
        graph.nodes.iter().zip(&nearby).map(score).collect()
    }

    /// How far a region is out of the moved extent, in 1/256 S, at most 4 S.
    fn outside_extent(&self, node: &Node, graph: &Graph) -> i64 {
        let beyond = |axis: usize| {
            let at = SIXTEENTHS * i64::from(node.center[axis] - self.velocity[axis]);
            (self.extent[axis] - at).max(at - self.extent[axis + 2])
        };
        (256 / SIXTEENTHS * beyond(0).max(beyond(1)).max(0) / graph.spacing().max(1)).min(4 * 256)
    }

    /// Compares each region with the last frame's that are near it in position and color. Those inside have moved with the
    /// object; what is outside moved as the region itself did.
    fn nearby(&self, graph: &Graph) -> Vec<Nearby> {
        let radius_squared = graph.spacing_squared * RADIUS * RADIUS / 10_000;
        let color_squared = COLOR_RADIUS * COLOR_RADIUS;
        let reach_squared = graph.spacing_squared * REACH * REACH / 10_000;
        let reach = root(reach_squared) + 1;
        let mut cells = [(); 2].map(|()| Cells::new(graph, reach.max(root(radius_squared) + 1)));
        for (index, past) in self.past.iter().enumerate() {
            let at = if past.is_inside { moved(past.center, self.velocity) } else { past.center };
            cells[usize::from(!past.is_inside)].insert(at, index);
        }
        // The integral of the kernel, so that 4096 is the mass of a neighborhood of the very color.
        let whole = (radius_squared * 256).max(1);
        let of = |node: &Node| {
            let origins = [
                moved(node.center, self.velocity.map(|v| -v)),
                moved(node.center, node.velocity.map(|v| -v)),
            ];
            let mut found = Nearby { masses: [0; 2], nearest: i64::MAX };
            for (side, origin) in origins.into_iter().enumerate() {
                // Out of reach no score is asked for.
                if side == 1 && found.nearest > reach_squared {
                    break;
                }
                let mut mass = 0;
                for index in cells[side].around([node.center, origin][side]) {
                    let past = &self.past[index];
                    let distance = squared(past.center, origin);
                    if side == 0 {
                        found.nearest = found.nearest.min(distance);
                    }
                    let color = squared(past.color, node.color);
                    if distance < radius_squared && color < color_squared {
                        mass += past.weight * kernel(distance, radius_squared) * kernel(color, color_squared)
                            / 256;
                    }
                }
                found.masses[side] = mass * 4096 / whole;
            }
            found
        };
        graph.nodes.iter().map(of).collect()
    }

    /// Takes over what a frame showed. The velocity is that of this frame.
    pub(super) fn remember(&mut self, graph: &Graph, inside: &[bool]) {
        for model in &mut self.models {
            model.decay(KEPT);
        }
        add_colors(&mut self.models, graph, inside, |_| 100 - KEPT);
        if let Some(seen) = extent(graph, inside) {
            let step = SIXTEENTHS * graph.spacing() * EXTENT_STEP / 100;
            for (side, seen) in seen.into_iter().enumerate() {
                let expected = self.extent[side] + SIXTEENTHS * i64::from(self.velocity[side % 2]);
                self.extent[side] = expected + (seen - expected).clamp(-step, step);
            }
        }
        self.store(graph, inside);
    }

    /// Keeps the regions, and of the object's that no region inside is near now a part, as hidden.
    fn store(&mut self, graph: &Graph, inside: &[bool]) {
        if !graph.nodes.is_empty() {
            self.spacing_squared = graph.spacing_squared;
        }
        let mut cells = Cells::new(graph, graph.spacing() + 1);
        for (label, node) in graph.nodes.iter().enumerate().filter(|&(label, _)| inside[label]) {
            cells.insert(node.center, label);
        }
        let hidden: Vec<Past> = self
            .past
            .iter()
            .filter(|past| past.is_inside)
            .map(|past| Past {
                center: moved(past.center, self.velocity),
                weight: past.weight * HIDDEN_KEPT / 100,
                ..*past
            })
            .filter(|past| {
                let [x, y] = past.center.map(i64::from);
                let is_seen = cells
                    .around(past.center)
                    .any(|label| squared(graph.nodes[label].center, past.center) < graph.spacing_squared);
                let is_in_frame = x >= 0 && y >= 0 && x < graph.width && y < graph.height;
                is_in_frame && !is_seen && past.weight * HIDDEN_LEAST >= self.spacing_squared
            })
            .collect();
        let nodes = || graph.nodes.iter().zip(inside);
        self.past = nodes()
            .map(|(node, &is_inside)| Past {
                center: node.center,
                color: node.color,
                weight: node.area,
                is_inside,
            })
            .chain(hidden)
            .collect();
        self.ids = nodes().map(|(node, &is_inside)| (node.track, is_inside)).collect();
        self.ids.sort_unstable();
    }
}

/// Colors inside and outside, weighted by area and by what is said of each region.
pub(super) fn color_models(graph: &Graph, inside: &[bool], weight: impl Fn(&Node) -> u64) -> [ColorModel; 2] {
    let mut models = [ColorModel::new(), ColorModel::new()];
    add_colors(&mut models, graph, inside, |node| 100 * weight(node));
    models
}

fn add_colors(models: &mut [ColorModel; 2], graph: &Graph, inside: &[bool], weight: impl Fn(&Node) -> u64) {
    for (node, &is_inside) in graph.nodes.iter().zip(inside) {
        models[usize::from(!is_inside)].add(node.color, node.area as u64 * weight(node));
    }
}

/// Bounds of the centers inside, in [`SIXTEENTHS`]; `None` without any.
fn extent(graph: &Graph, inside: &[bool]) -> Option<[i64; 4]> {
    let centers = graph.nodes.iter().zip(inside).filter(|(_, inside)| **inside);
    centers.map(|(node, _)| node.center.map(|v| SIXTEENTHS * i64::from(v))).fold(None, |bounds, [x, y]| {
        let [x0, y0, x1, y1] = bounds.unwrap_or([x, y, x, y]);
        Some([x0.min(x), y0.min(y), x1.max(x), y1.max(y)])
    })
}
