// SPDX-License-Identifier: MPL-2.0
//! Exact minimum cut of a network with integer capacities, by Dinic's algorithm.
//!
//! E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation", 1970. Each phase finds the
//! distances from the source by breadth-first search and saturates all shortest paths. At most V phases of V E steps; graphs of
//! regions are planar and sparse and take a handful of phases.

use std::collections::VecDeque;

/// No arc, or no level.
const NONE: u32 = u32::MAX;

/// A network. Arcs come in pairs: arc `e ^ 1` is the reverse of arc `e`.
pub(super) struct Network {
    first: Vec<u32>,
    next: Vec<u32>,
    to: Vec<u32>,
    /// Residual capacities.
    capacity: Vec<i64>,
}

impl Network {
    /// A network of so many nodes without arcs.
    pub(super) fn new(nodes: usize) -> Self {
        Self { first: vec![NONE; nodes], next: Vec::new(), to: Vec::new(), capacity: Vec::new() }
    }

    /// Adds an arc from `a` to `b` and one back. Capacities are 0 or more.
    pub(super) fn connect(&mut self, a: usize, b: usize, forward: i64, backward: i64) {
        for (from, to, capacity) in [(a, b, forward), (b, a, backward)] {
            self.next.push(self.first[from]);
            self.first[from] = self.to.len() as u32;
            self.to.push(to as u32);
            self.capacity.push(capacity);
        }
    }

    /// Which nodes are on the source's side of the minimum cut.
    ///
    /// Of several minimum cuts it is the one with the fewest nodes on this side. That one is unique, so the order of the arcs does
    /// not matter.
    pub(super) fn cut(mut self, source: usize, sink: usize) -> Vec<bool> {
        loop {
            let levels = self.levels(source);
            if levels[sink] == NONE {
                return levels.iter().map(|&level| level != NONE).collect();
            }
            self.saturate(source, sink, levels);
        }
    }

    /// Distances from the source over arcs with capacity.
    fn levels(&self, source: usize) -> Vec<u32> {
        let mut levels = vec![NONE; self.first.len()];
        levels[source] = 0;
        let mut queue = VecDeque::from([source]);
        while let Some(node) = queue.pop_front() {
            let mut arc = self.first[node];
            while arc != NONE {
                let to = self.to[arc as usize] as usize;
                if self.capacity[arc as usize] > 0 && levels[to] == NONE {
                    levels[to] = levels[node] + 1;
                    queue.push_back(to);
                }
                arc = self.next[arc as usize];
            }
        }
        levels
    }

    /// Fills all shortest paths. The path is a list instead of a recursion, because paths may be as long as there are regions.
    fn saturate(&mut self, source: usize, sink: usize, levels: Vec<u32>) {
        let mut untried = self.first.clone();
        let mut path: Vec<u32> = Vec::new();
        let mut node = source;
        loop {
            if node == sink {
                node = self.push_along(&mut path);
                continue;
            }
            let arc = untried[node];
            if arc == NONE {
                // A dead end: the arc that led here is not tried again.
                let Some(arc) = path.pop() else { return };
                node = self.to[arc as usize ^ 1] as usize;
                untried[node] = self.next[arc as usize];
                continue;
            }
            let to = self.to[arc as usize] as usize;
            if self.capacity[arc as usize] > 0 && levels[to] == levels[node] + 1 {
                path.push(arc);
                node = to;
            } else {
                untried[node] = self.next[arc as usize];
            }
        }
    }

    /// Pushes what a path to the sink takes, shortens the path to its first full arc, and returns the node there.
    fn push_along(&mut self, path: &mut Vec<u32>) -> usize {
        let flow = path.iter().map(|&arc| self.capacity[arc as usize]).min().unwrap_or(0);
        let mut full = 0;
        for (at, &arc) in path.iter().enumerate().rev() {
            self.capacity[arc as usize] -= flow;
            self.capacity[arc as usize ^ 1] += flow;
            if self.capacity[arc as usize] == 0 {
                full = at;
            }
        }
        let node = self.to[path[full] as usize ^ 1] as usize;
        path.truncate(full);
        node
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Capacity from the chosen side to the other.
    fn cost(arcs: &[(usize, usize, i64, i64)], side: impl Fn(usize) -> bool) -> i64 {
        let one = |&(a, b, forward, backward): &(usize, usize, i64, i64)| match (side(a), side(b)) {
            (true, false) => forward,
            (false, true) => backward,
            _ => 0,
        };
        arcs.iter().map(one).sum()
    }

    fn cut(arcs: &[(usize, usize, i64, i64)]) -> Vec<bool> {
        let mut network = Network::new(8);
        for &(a, b, forward, backward) in arcs {
            network.connect(a, b, forward, backward);
        }
        network.cut(0, 7)
    }

    proptest! {
        /// Against all 64 cuts of six nodes between source and sink.
        #[test]
        fn cuts_equal_brute_force(arcs in prop::collection::vec((0_usize..8, 0_usize..8, 0_i64..9, 0_i64..9), 0..30)) {
            let found = cut(&arcs);
            prop_assert!(found[0] && !found[7]);
            let side = |bits: usize| move |node: usize| node == 0 || node != 7 && bits >> (node - 1) & 1 == 1;
            let least = (0..64).map(|bits| cost(&arcs, side(bits))).min().unwrap();
            prop_assert_eq!(cost(&arcs, |node| found[node]), least);
            // No other minimum cut leaves out a node of this one.
            for bits in (0..64).filter(|&bits| cost(&arcs, side(bits)) == least) {
                prop_assert!((0..8).all(|node| !found[node] || side(bits)(node)));
            }
        }

        #[test]
        fn the_order_of_arcs_does_not_matter(
            (arcs, shuffled) in prop::collection::vec((0_usize..8, 0_usize..8, 0_i64..9, 0_i64..9), 0..30)
                .prop_flat_map(|arcs| (Just(arcs.clone()), Just(arcs).prop_shuffle()))
        ) {
            prop_assert_eq!(cut(&arcs), cut(&shuffled));
        }
    }
}
