// SPDX-License-Identifier: MPL-2.0
//! Results that a caller can ask for beside the label map.

/// What is computed beside the label map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outputs {
    /// One [`Region`](crate::regions::Region) for each label.
    pub table: bool,
    /// The region adjacency list.
    pub neighbors: bool,
    /// What [`Engine::draw`](crate::engine::Engine::draw) needs for mean colors.
    pub mean_color: bool,
    /// Mean colors, drawn and in the table, of light instead of code values.
    pub linear_light: bool,
}

#[cfg(feature = "cuda")]
impl Outputs {
    /// All that either asks for. Both have the same `linear_light`.
    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            table: self.table || other.table,
            neighbors: self.neighbors || other.neighbors,
            mean_color: self.mean_color || other.mean_color,
            linear_light: self.linear_light || other.linear_light,
        }
    }
}
