// SPDX-License-Identifier: MPL-2.0
//! The boundaries of a label map as a planar graph: arcs between the corners where three or more regions meet, each once, and the
//! rings of arcs around every region.

use std::collections::HashMap;

use super::{Map, OUTSIDE};

/// Directions of a step from corner to corner, each a quarter turn to the right of the one before; y points down.
const RIGHT: usize = 0;
const DOWN: usize = 1;
const LEFT: usize = 2;
const UP: usize = 3;
const STEPS: [[i32; 2]; 4] = [[1, 0], [0, 1], [-1, 0], [0, -1]];

/// A boundary from one node to another, or around a region that touches only one other.
pub(super) struct Arc {
    /// Column and row of its first corner.
    pub start: [i32; 2],
    /// Directions of its steps.
    pub steps: Vec<u8>,
    /// Labels to the right and to the left of it.
    pub beside: [u32; 2],
    /// True if it meets no node and ends where it begins.
    pub is_closed: bool,
}

impl Arc {
    /// Corners from the first to the last.
    pub fn corners(&self) -> impl Iterator<Item = [i32; 2]> + '_ {
        let mut at = self.start;
        std::iter::once(at).chain(self.steps.iter().map(move |&step| {
            at = [at[0] + STEPS[usize::from(step)][0], at[1] + STEPS[usize::from(step)][1]];
            at
        }))
    }

    /// True if it has no turn.
    pub fn is_straight(&self) -> bool {
        self.steps.windows(2).all(|pair| pair[0] == pair[1])
    }
}

/// An arc in one of its directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Half {
    pub arc: usize,
    pub is_reversed: bool,
}

/// The boundaries of a map.
pub(super) struct Graph {
    pub arcs: Vec<Arc>,
    /// Label and arcs of each ring, with the region to the right of them.
    pub rings: Vec<(u32, Vec<Half>)>,
}

impl Graph {
    pub fn new(map: &Map<'_>) -> Self {
        let arcs = Self::arcs(map);
        let rings = rings(&arcs);
        Self { arcs, rings }
    }

    /// The arcs alone.
    pub fn arcs(map: &Map<'_>) -> Vec<Arc> {
        Walker::new(map).arcs(map)
    }
}

/// Takes every side between two corners once.
struct Walker {
    /// Corners of a row.
    columns: usize,
    /// For each corner a bit for each direction in which a boundary leaves it that was not taken yet.
    open: Vec<u8>,
    is_node: Vec<bool>,
}

impl Walker {
    fn new(map: &Map<'_>) -> Self {
        let (columns, rows) = (map.width + 1, map.height + 1);
        let mut open = vec![0u8; columns * rows];
        for y in 0..rows {
            for x in 0..columns {
                let corner = y * columns + x;
                if x < map.width && map.at(x, y) != map.at(x, y.wrapping_sub(1)) {
                    open[corner] |= 1 << RIGHT;
                    open[corner + 1] |= 1 << LEFT;
                }
                if y < map.height && map.at(x, y) != map.at(x.wrapping_sub(1), y) {
                    open[corner] |= 1 << DOWN;
                    open[corner + columns] |= 1 << UP;
                }
            }
        }
        let mut is_node: Vec<bool> = open.iter().map(|sides| sides.count_ones() > 2).collect();
        // The picture keeps its corners.
        for corner in [0, columns - 1, (rows - 1) * columns, rows * columns - 1] {
            is_node[corner] |= open[corner] != 0;
        }
        Self { columns, open, is_node }
    }

    fn arcs(&mut self, map: &Map<'_>) -> Vec<Arc> {
        let mut arcs = Vec::new();
        // Those between nodes first; what is left then meets none.
        for only_nodes in [true, false] {
            for corner in 0..self.open.len() {
                while self.open[corner] != 0 && (self.is_node[corner] || !only_nodes) {
                    arcs.push(self.walk(map, corner));
                }
            }
        }
        arcs
    }

    fn walk(&mut self, map: &Map<'_>, first: usize) -> Arc {
        let (mut corner, mut steps) = (first, Vec::new());
        loop {
            let direction = self.open[corner].trailing_zeros() as usize;
            self.open[corner] &= !(1 << direction);
            corner = match direction {
                RIGHT => corner + 1,
                DOWN => corner + self.columns,
                LEFT => corner - 1,
                _ => corner - self.columns,
            };
            self.open[corner] &= !(1 << (direction ^ 2));
            steps.push(direction as u8);
            if self.is_node[corner] || corner == first {
                break;
            }
        }
        let (x, y) = (first % self.columns, first / self.columns);
        let (left, up) = (x.wrapping_sub(1), y.wrapping_sub(1));
        let [right_side, left_side] = match usize::from(steps[0]) {
            RIGHT => [(x, y), (x, up)],
            DOWN => [(left, y), (x, y)],
            LEFT => [(left, up), (left, y)],
            _ => [(x, up), (left, up)],
        };
        Arc {
            start: [x as i32, y as i32],
            is_closed: corner == first && !self.is_node[first],
            beside: [right_side, left_side].map(|(x, y)| map.at(x, y)),
            steps,
        }
    }
}

/// Links arcs to rings. At a node a ring goes on along the boundary that is farthest to the right, so that pixels of a label that touch
/// at a corner alone are not linked.
fn rings(arcs: &[Arc]) -> Vec<(u32, Vec<Half>)> {
    // The arc that leaves a node in each direction.
    let mut leaving: HashMap<[i32; 2], [Option<Half>; 4]> = HashMap::new();
    let mut ends = Vec::with_capacity(arcs.len());
    for (i, arc) in arcs.iter().enumerate() {
        let end = arc.corners().last().unwrap_or(arc.start);
        ends.push(end);
        if let (false, Some(&first), Some(&last)) = (arc.is_closed, arc.steps.first(), arc.steps.last()) {
            leaving.entry(arc.start).or_default()[usize::from(first)] =
                Some(Half { arc: i, is_reversed: false });
            leaving.entry(end).or_default()[usize::from(last ^ 2)] = Some(Half { arc: i, is_reversed: true });
        }
    }
    let next = |half: Half| {
        let arc = &arcs[half.arc];
        let (end, arriving) = if half.is_reversed {
            (arc.start, usize::from(arc.steps[0] ^ 2))
        } else {
            (ends[half.arc], usize::from(arc.steps[arc.steps.len() - 1]))
        };
        let there = leaving.get(&end)?;
        [arriving + 1, arriving, arriving + 3].into_iter().find_map(|direction| there[direction % 4])
    };
    let mut used = vec![[false; 2]; arcs.len()];
    let mut rings = Vec::new();
    for (i, arc) in arcs.iter().enumerate() {
        for is_reversed in [false, true] {
            let label = arc.beside[usize::from(is_reversed)];
            if label == OUTSIDE || used[i][usize::from(is_reversed)] {
                continue;
            }
            let mut ring = Vec::new();
            let mut half = Half { arc: i, is_reversed };
            while !std::mem::replace(&mut used[half.arc][usize::from(half.is_reversed)], true) {
                ring.push(half);
                match next(half) {
                    Some(following) if !arc.is_closed => half = following,
                    _ => break,
                }
            }
            rings.push((label, ring));
        }
    }
    // By label; rings of one label in the order of their first arcs.
    rings.sort_by_key(|&(label, _)| label);
    rings
}
