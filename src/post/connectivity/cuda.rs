// SPDX-License-Identifier: MPL-2.0
//! Stage `connectivity` on a CUDA device: one launch a phase of the rounds that frames need, one for all further rounds.

use super::MAX_REGIONS;
use crate::backend;
use crate::buffers::cuda::FrameBuffers;
use crate::cuda::abi::{Address, ConnectArgs, Continued, Late, Marks, Selections};
use crate::cuda::kernels::{
    connect_borders, connect_fit, connect_hook, connect_move_sums, connect_number, connect_select,
    connect_select_first, connect_select_late,
};
use crate::cuda::memory::Memory;
use crate::cuda::tuning::{
    self, BORDER_THREADS, CONNECT_THREADS, LATE_CAPACITY, LATE_SELECTOR_CAPACITY, MARK_GROUPS,
    NUMBER_THREADS, RECIPROCAL_BITS, TILE,
};
use crate::cuda::{Cuda, HostLabels};
use crate::error::Result;
use crate::plan::Plan;
use crate::temporal::device::State;

/// A frame of this size gives one block of [`CONNECT_THREADS`] less than an edge a thread: a second one would wait for memory
/// as long again.
const PIXELS_A_BLOCK: u32 = 512;

// The threshold is a part of the result, so both backends share it.
const _: () = assert!(tuning::LIKE_REGION == super::LIKE_REGION);

pub(crate) struct Connectivity {
    /// Selection of each small component, for each of two rounds.
    selections: Memory<u64>,
    /// Pairs that include a small component.
    small_pairs: Memory<[u32; 2]>,
    late_pairs: Memory<[u32; 2]>,
    late_selectors: Memory<[u32; 2]>,
    marks: Memory<u32>,
    borders: connect_borders::Kernel,
    move_sums: connect_move_sums::Kernel,
    select_first: connect_select_first::Kernel,
    select: connect_select::Kernel,
    hook: connect_hook::Kernel,
    select_late: connect_select_late::Kernel,
    number: connect_number::Kernel,
    fit: connect_fit::Kernel,
    args: ConnectArgs,
    /// Rounds with launches of their own: all in which a small component may join another one. One more round's first
    /// half is launched as well. Photographs then leave few small components to the launch that numbers.
    launched_rounds: u32,
    /// True if a map of the smallest regions could have more regions than labels can name.
    may_overflow: bool,
    border_blocks: u32,
    blocks: u32,
    /// Blocks of the launches after the first round's.
    later_blocks: u32,
    /// Blocks of the grids that wait for each other, all of which have to be resident.
    number_blocks: u32,
    resident: u32,
}

/// Capacity of the list of pairs that include a small component. One pair per eight pixels is too few for small ragged
/// photographs. Where the list overflows, rounds go over all pairs.
fn small_pair_capacity(pixels: usize) -> usize {
    (pixels / 2).max(1)
}

/// Words of the bitmap of marks: one bit a pixel, in rows of whole words, or one a cluster.
fn bitmap_words(plan: &Plan) -> usize {
    let geometry = plan.frame.geometry;
    if plan.connectivity {
        geometry.height as usize * geometry.width.div_ceil(32) as usize
    } else {
        plan.max_clusters().div_ceil(32)
    }
}

/// Bits of the number of words in a group of marks.
fn group_bits(words: usize) -> u32 {
    words.div_ceil(MARK_GROUPS as usize).next_power_of_two().max(4).ilog2()
}

/// Words of the marks: of the groups, then of the bitmap, in whole groups.
fn mark_words(plan: &Plan) -> usize {
    let words = bitmap_words(plan);
    MARK_GROUPS as usize + words.next_multiple_of(1 << group_bits(words))
}

/// Reciprocal for a `Divisor` of kernels/common.cuh.
fn inverse(divisor: u32) -> f32 {
    1.0 / divisor as f32 * (1.0 - 1.0 / (1 << RECIPROCAL_BITS) as f32)
}

impl Connectivity {
    pub fn new(cuda: &Cuda, plan: &Plan) -> Result<Self> {
        let (width, height) = (plan.frame.geometry.width, plan.frame.geometry.height);
        const STAGE: &str = "connectivity";
        let device = &cuda.device;
        // Merging wants the pairs that touch across tiles, too.
        let border_pairs = if plan.connectivity || plan.merge.is_some() {
            (width - 1) / TILE * height + (height - 1) / TILE * width
        } else {
            0
        };
        let words = bitmap_words(plan);
        let number = device.kernel(connect_number::KERNEL, STAGE)?;
        let fit = device.kernel(connect_fit::KERNEL, STAGE)?;
        // At most one a multiprocessor, each of which has to meet all others.
        let resident =
            fit.resident_blocks(NUMBER_THREADS)?.min(number.resident_blocks(NUMBER_THREADS)?).min(1);
        let resident = (resident * cuda.multiprocessors()).max(1);
        let (what, n) = ("device memory", plan.frame.geometry.pixels());
        Ok(Self {
            selections: Memory::new(cuda, what, 2 * n)?,
            small_pairs: Memory::new(cuda, what, small_pair_capacity(n))?,
            late_pairs: Memory::new(cuda, what, LATE_CAPACITY as usize)?,
            late_selectors: Memory::new(cuda, what, LATE_SELECTOR_CAPACITY as usize)?,
            marks: Memory::new(cuda, what, mark_words(plan))?,
            borders: device.kernel(connect_borders::KERNEL, STAGE)?,
            move_sums: device.kernel(connect_move_sums::KERNEL, STAGE)?,
            select_first: device.kernel(connect_select_first::KERNEL, STAGE)?,
            select: device.kernel(connect_select::KERNEL, STAGE)?,
            hook: device.kernel(connect_hook::KERNEL, STAGE)?,
            select_late: device.kernel(connect_select_late::KERNEL, STAGE)?,
            number,
            resident,
            fit,
            args: ConnectArgs {
                width,
                height,
                tiles_x: width.div_ceil(TILE),
                min_region: plan.min_region,
                max_regions: MAX_REGIONS as u32,
                connectivity: u32::from(plan.connectivity),
                border_pairs,
                words: words as u32,
                group_bits: group_bits(words),
                small_capacity: small_pair_capacity(plan.frame.geometry.pixels()) as u32,
                inverse_width: inverse(width),
                fits_later: u32::from(plan.may_overflow()),
            },
            launched_rounds: if plan.connectivity {
                // A component that is still small has doubled in every round.
                plan.min_region.next_power_of_two().ilog2().min(super::alike_rounds(plan.min_region))
            } else {
                0
            },
            may_overflow: plan.may_overflow(),
            border_blocks: border_pairs.div_ceil(BORDER_THREADS).max(1),
            blocks: (width * height).div_ceil(PIXELS_A_BLOCK).clamp(1, 8 * cuda.multiprocessors()),
            later_blocks: (width * height).div_ceil(2 * PIXELS_A_BLOCK).clamp(1, 4 * cuda.multiprocessors()),
            // Photographs have at most one component per thread then. Small ones have more components per pixel, and
            // the device has blocks to spare.
            number_blocks: (width * height)
                .div_ceil(64 * PIXELS_A_BLOCK)
                .max((width * height).div_ceil(24 * PIXELS_A_BLOCK).min(resident / 4))
                .clamp(1, resident),
        })
    }
}

impl backend::Connectivity<Cuda> for Connectivity {
    fn enforce(&mut self, buffers: &mut FrameBuffers, _: &mut HostLabels<'_>) -> Result<()> {
        let areas = buffers.areas.as_ref();
        let (components, args, queue) = (buffers.components(), &self.args, &buffers.queue);
        areas.map_or(Ok(()), |areas| areas.cut(queue, &components, buffers.features()))?;
        let (grid, later, small) = ((self.blocks, 1), (self.later_blocks, 1), self.small_pairs.address());
        let late = &Late { pairs: self.late_pairs.address(), selectors: self.late_selectors.address() };
        let marks = &Marks { groups: self.marks.address() };
        let selections = &Selections { at: self.selections.address() };
        let (labels, regions) = (buffers.component_labels.address(), buffers.regions.address());
        let continued = &buffers.temporal.as_ref().map(State::continued).unwrap_or(Continued::NONE);
        let part_clusters = buffers.temporal.as_ref().map_or(Address::NULL, State::part_clusters);
        let c = &components;
        // SAFETY: `FrameBuffers::new` and `new` have made all for one plan: edges and selections for two entries a pixel, labels for one,
        // pairs with something small for `small_capacity`, the lists of late rounds and the marks for what the kernels are built
        // for, regions for each of the most regions.
        unsafe {
            let borders = connect_borders::Args { c, marks, args };
            queue.launch(&self.borders, (self.border_blocks, 1), BORDER_THREADS, &borders)?;
            let sums = connect_move_sums::Args { c, selections, args };
            queue.launch(&self.move_sums, grid, CONNECT_THREADS, &sums)?;
            if let Some(state) = &buffers.temporal
                && self.launched_rounds == 0
            {
                let all = state.addresses(buffers.first_labels.address());
                state.find_largest(queue, c, &all, self.blocks)?;
            }
            for round in 0..self.launched_rounds {
                let blocks = if round == 0 { grid } else { later };
                if round == 0 {
                    let pairs = connect_select_first::Args { c, selections, small, continued, args };
                    queue.launch(&self.select_first, blocks, CONNECT_THREADS, &pairs)?;
                } else {
                    let pairs = connect_select::Args { c, selections, small, round, args };
                    queue.launch(&self.select, blocks, CONNECT_THREADS, &pairs)?;
                }
                let hook = connect_hook::Args { c, selections, round, args };
                queue.launch(&self.hook, blocks, CONNECT_THREADS, &hook)?;
            }
            let round = self.launched_rounds;
            let pairs = connect_select_late::Args { c, selections, small, late, marks, round, args };
            queue.launch(&self.select_late, later, CONNECT_THREADS, &pairs)?;
            let all = connect_number::Args {
                c,
                selections,
                small,
                late,
                marks,
                labels,
                regions,
                part_clusters,
                round,
                args,
            };
            queue.launch_cooperative(&self.number, self.number_blocks, NUMBER_THREADS, &all)?;
            if self.may_overflow {
                let all = connect_fit::Args { c, selections, marks, labels, regions, part_clusters, args };
                queue.launch_cooperative(&self.fit, self.resident, NUMBER_THREADS, &all)?;
            }
        }
        areas.map_or(Ok(()), |areas| areas.name(queue, c, labels))
    }
}

#[cfg(test)]
mod tests {
    use super::inverse;

    /// `quotient` of kernels/common.cuh.
    fn quotient(top: u32, divisor: u32) -> u32 {
        let below = (top as f32 * inverse(divisor)) as u32;
        below + u32::from(top.wrapping_sub(below * divisor) >= divisor)
    }

    #[test]
    fn places_of_pixels_are_exact() {
        for width in (1..=600).chain([640, 1023, 1024, 1920, 3840, 4095, 4096, 7680, 8191, 8192]) {
            for row in 0..(7680 * 4320 / width).min(65_536) {
                for column in [0, 1, width / 2, width - 1] {
                    let pixel = row * width + column.min(width - 1);
                    assert_eq!(quotient(pixel, width), row, "{pixel} of width {width}");
                }
            }
        }
    }
}
