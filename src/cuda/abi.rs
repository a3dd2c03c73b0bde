// SPDX-License-Identifier: MPL-2.0
//! Structs and places of counters that several stages pass to kernels.

use super::launch::Argument;
use crate::algo::grid::GridArgs;
use crate::color::SpaceArgs;

// SAFETY: repr(C), the fields of `GridArgs` in kernels/grid.cuh.
unsafe impl Argument for GridArgs {}
// SAFETY: repr(C), the fields of `SpaceArgs` in kernels/color.cu.
unsafe impl Argument for SpaceArgs {}

/// `Components` of kernels/components.cuh.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Components {
    pub local: u64,
    pub tile_first: u64,
    pub tile_count: u64,
    pub parent: u64,
    pub cluster: u64,
    pub sums: u64,
    pub edges: u64,
    pub counters: u64,
    pub large: u32,
    pub unused: u32,
}

const _: () = assert!(size_of::<Components>() == 72);
// SAFETY: repr(C), the fields of `Components` in their order.
unsafe impl Argument for Components {}

/// Counters that a frame starts with as zero, the last four quick shift's; then come the two of the grid's barrier.
pub(crate) const FRAME_COUNTERS: usize = 40;
/// Where the number of regions stands.
pub(crate) const COUNTER_REGIONS: usize = 2;
