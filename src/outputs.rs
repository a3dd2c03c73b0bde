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
