// SPDX-License-Identifier: MPL-2.0
//! Disjoint sets, and the sums and means of their members, for stages on the CPU that unite components or regions.

/// Names of arrays in errors about memory.
pub(super) const RUNS: &str = "runs";
pub(super) const COMPONENTS: &str = "components";
pub(super) const EDGES: &str = "pairs of components";

/// Returns the root of a set: the lowest member, in a forest where no parent is above its child.
pub(crate) fn find(parents: &mut [u32], mut i: u32) -> u32 {
    while parents[i as usize] != i {
        let up = parents[parents[i as usize] as usize];
        parents[i as usize] = up;
        i = up;
    }
    i
}

pub(crate) fn unite(parents: &mut [u32], a: u32, b: u32) {
    let (a, b) = (find(parents, a), find(parents, b));
    let (low, high) = (a.min(b), a.max(b));
    parents[high as usize] = low;
}

/// Pixels of a component and the sums of their features.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sums {
    pub count: u32,
    pub color: [u64; 3],
}

impl Sums {
    pub fn add(&mut self, other: &Sums) {
        self.count += other.count;
        for i in 0..3 {
            self.color[i] += other.color[i];
        }
    }

    /// Subtracts sums that were added before.
    pub fn subtract(&mut self, other: &Sums) {
        self.count -= other.count;
        for i in 0..3 {
            self.color[i] -= other.color[i];
        }
    }

    /// Mean feature in 1/16 quantum, rounded half up.
    pub fn mean(&self) -> [u32; 3] {
        let n = u64::from(self.count.max(1));
        self.color.map(|sum| ((32 * sum + n) / (2 * n)) as u32)
    }
}

pub(crate) fn distance(a: [u32; 3], b: [u32; 3]) -> u32 {
    (0..3).map(|i| a[i].abs_diff(b[i]).pow(2)).sum()
}
