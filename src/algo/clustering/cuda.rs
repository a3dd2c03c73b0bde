// SPDX-License-Identifier: MPL-2.0
//! Rounds and labels of the methods that cluster on the grid, on a CUDA device: the launches that SLIC and LSC share.
//!
//! A method's kernels have equal parameters except for its tables, which stand between the samples and the sums, and
//! for the struct with the memory of temporal mode. `S` is the sum over a cluster's members, `C` a cluster between
//! rounds, `A` the arguments of the method's kernels.

use std::ffi::c_void;
use std::marker::PhantomData;

use crate::buffers::cuda::FrameBuffers;
use crate::cuda::Cuda;
use crate::cuda::abi::{Address, GridArgs};
use crate::cuda::device::ModuleCode;
use crate::cuda::launch::{Argument, Kernel, arg};
use crate::cuda::memory::Memory;
use crate::cuda::tuning::{ROUND_THREADS, ROUND_TILE, TILE};
use crate::error::Result;
use crate::plan::Plan;
use crate::temporal::WARM_ROUNDS;
use crate::temporal::device::{State, warm_rounds};

/// Kernels of a method and the stages that their time counts for.
pub(crate) struct Kernels {
    pub module: &'static ModuleCode,
    pub assign: &'static str,
    pub label: &'static str,
    /// `assign` and `label` in temporal mode.
    pub follow_assign: &'static str,
    pub follow_label: &'static str,
    pub assign_stage: &'static str,
    pub label_stage: &'static str,
    /// Threads of a block that labels a tile.
    pub label_threads: u32,
    /// Bytes of shared memory per cluster that such a tile can reach.
    pub reach: usize,
}

/// Sums and clusters of a frame in temporal mode; each frame and round swaps their roles.
pub(crate) struct RoundMemory<S, C> {
    /// Three sets of sums and two of clusters, which rounds take in turn.
    pub sums: [Address<S>; 3],
    pub clusters: [Address<C>; 2],
    /// Final clusters of the last frame, and of this one.
    pub carried_last: Address<C>,
    pub carried: Address<C>,
}

/// Kernels and memory of temporal mode.
struct Follow<C> {
    assign: Kernel,
    label: Kernel,
    /// Final clusters of this frame and of the last; each frame swaps the two.
    carried: [Memory<C>; 2],
}

/// Tables of a method in the order of its kernels' parameters: those of rounds, and those of labels in temporal mode.
pub(crate) struct Tables<'a> {
    pub rounds: &'a [Address<u8>],
    pub follow_label: &'a [Address<u8>],
}

/// Kernels and memory of a method that clusters on the grid.
pub(crate) struct Clustering<S, C, A> {
    assign: Kernel,
    label: Kernel,
    label_threads: u32,
    grid: GridArgs,
    args: A,
    rounds: u32,
    /// Clusters before and after a round.
    clusters: [Memory<C>; 2],
    /// `None` without temporal mode, and where the grid step is 1, so that every pixel is a cluster.
    follow: Option<Follow<C>>,
    sums: PhantomData<fn() -> S>,
}

/// Most parameters of a kernel here.
const PARAMETERS: usize = 16;

/// Addresses of a launch's arguments, which it borrows.
struct List<'a> {
    items: [*mut c_void; PARAMETERS],
    len: usize,
    arguments: PhantomData<&'a ()>,
}

impl<'a> List<'a> {
    fn new() -> Self {
        Self { items: [std::ptr::null_mut(); PARAMETERS], len: 0, arguments: PhantomData }
    }

    fn with<T: Argument>(mut self, value: &'a T) -> Self {
        self.items[self.len] = arg(value);
        self.len += 1;
        self
    }

    fn with_all<T: Argument>(self, values: &'a [T]) -> Self {
        values.iter().fold(self, Self::with)
    }

    fn items(&mut self) -> &mut [*mut c_void] {
        &mut self.items[..self.len]
    }
}

impl<S, C, A: Argument> Clustering<S, C, A> {
    /// `iterations` counts the rounds of an independent frame.
    pub fn new(cuda: &Cuda, plan: &Plan, kernels: &Kernels, args: A, iterations: u32) -> Result<Self> {
        let (grid, shared) = (&plan.grid, plan.grid.reach(TILE) * kernels.reach);
        let pair = || -> Result<[Memory<C>; 2]> {
            let one = || Memory::new(cuda, "device memory", grid.cells());
            Ok([one()?, one()?])
        };
        let assign = |name| cuda.device.kernel(kernels.module, name, kernels.assign_stage);
        let label = |name| -> Result<Kernel> {
            Ok(cuda.device.kernel(kernels.module, name, kernels.label_stage)?.with_shared(shared))
        };
        let follow = || -> Result<Follow<C>> {
            Ok(Follow {
                assign: assign(kernels.follow_assign)?,
                label: label(kernels.follow_label)?,
                carried: pair()?,
            })
        };
        let clustered = grid.step() > 1;
        Ok(Self {
            assign: assign(kernels.assign)?,
            label: label(kernels.label)?,
            label_threads: kernels.label_threads,
            grid: GridArgs::new(grid),
            args,
            rounds: if clustered { iterations } else { 0 },
            clusters: pair()?,
            follow: (plan.temporal.is_some() && clustered).then(follow).transpose()?,
            sums: PhantomData,
        })
    }

    /// Returns true in temporal mode, if there are clusters to continue.
    pub fn follows(&self) -> bool {
        self.follow.is_some()
    }

    /// Rounds of an independent frame; 0 if every pixel is a cluster.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Samples of a frame.
    pub fn samples(&self) -> u32 {
        self.grid.sample_width * self.grid.sample_height
    }

    /// Moves the final clusters of another plan here, and returns the last frame's, at index `current`, for the caller to
    /// translate. `None` without temporal mode.
    pub fn take_carried(&mut self, last: &mut Self, current: usize) -> Option<&mut Memory<C>> {
        let (next, last) = (self.follow.as_mut()?, last.follow.take()?);
        next.carried = last.carried;
        Some(&mut next.carried[current])
    }

    fn sample_tiles(&self) -> (u32, u32) {
        let grid = &self.grid;
        (grid.sample_width.div_ceil(ROUND_TILE.0), grid.sample_height.div_ceil(ROUND_TILE.1))
    }

    /// Launches the rounds and the labels of a frame. In temporal mode `own` makes the method's struct of memory.
    pub fn segment<T: Argument>(
        &self,
        buffers: &FrameBuffers,
        tables: &Tables<'_>,
        own: impl FnOnce(RoundMemory<S, C>) -> T,
    ) -> Result<()> {
        let sums = [0, 1, 2].map(|i: usize| buffers.sums[i].address().cast::<S>());
        let clusters = [self.clusters[0].address(), self.clusters[1].address()];
        let Some((follow, state)) = self.follow.as_ref().zip(buffers.temporal.as_ref()) else {
            self.assign_rounds(buffers, tables, sums, clusters)?;
            return self.label_alone(buffers, tables, sums, clusters);
        };
        let current = state.phase().1;
        let [carried, carried_last] = [current, current ^ 1].map(|i| follow.carried[i].address());
        let own = own(RoundMemory { sums, clusters, carried_last, carried });
        if state.is_warm() {
            self.follow_rounds(buffers, tables, follow, state, &own)?;
        } else {
            self.assign_rounds(buffers, tables, sums, clusters)?;
        }
        self.label_and_leave(buffers, tables, follow, state, &own)
    }

    /// Launches all rounds of an independent frame.
    fn assign_rounds(
        &self,
        buffers: &FrameBuffers,
        tables: &Tables<'_>,
        sums: [Address<S>; 3],
        clusters: [Address<C>; 2],
    ) -> Result<()> {
        let (features, samples) = (buffers.features(), buffers.samples.address());
        for round in 0..self.rounds as usize {
            // Three sets rotate: the round reads the last round's, adds to the one cleared before, and clears the
            // third.
            let in_out_cleared = [sums[(round + 2) % 3], sums[round % 3], sums[(round + 1) % 3]];
            let before_and_after = [clusters[(round + 1) % 2], clusters[round % 2]];
            let seeds = u32::from(round == 0);
            let list = List::new().with(&features).with(&samples).with_all(tables.rounds);
            let mut list =
                list.with_all(&in_out_cleared).with_all(&before_and_after).with(&seeds).with(&self.args);
            // SAFETY: the parameters of the method's `assign`, whose tables the method names in their order. `FrameBuffers::new` and `new`
            // have made planes, sums and clusters for one plan: an entry a pixel or a cell; `FrameBuffers` waits before they go.
            unsafe { buffers.queue.launch(&self.assign, self.sample_tiles(), ROUND_THREADS, list.items())? };
        }
        Ok(())
    }

    /// Launches the rounds of a warm start.
    fn follow_rounds<T: Argument>(
        &self,
        buffers: &FrameBuffers,
        tables: &Tables<'_>,
        follow: &Follow<C>,
        state: &State,
        own: &T,
    ) -> Result<()> {
        let (samples, all, shape) =
            (buffers.samples.address(), state.addresses(buffers.first_labels.address()), state.args());
        for (begin, round) in warm_rounds() {
            let list = List::new().with(&samples).with_all(tables.rounds).with(own).with(&all).with(&shape);
            let mut list = list.with(&begin).with(&round).with(&self.args);
            // SAFETY: the parameters of the method's `follow`, whose tables the method names in their order. `FrameBuffers::new`,
            // `State::new` and `new` have made planes, sums and clusters for one plan: an entry a pixel or a cell.
            unsafe {
                buffers.queue.launch(&follow.assign, self.sample_tiles(), ROUND_THREADS, list.items())?
            };
        }
        Ok(())
    }

    /// Launches the labels of an independent frame.
    fn label_alone(
        &self,
        buffers: &FrameBuffers,
        tables: &Tables<'_>,
        sums: [Address<S>; 3],
        clusters: [Address<C>; 2],
    ) -> Result<()> {
        let (features, components) = (buffers.features(), buffers.components());
        let last = self.rounds.max(1) as usize - 1;
        let list = List::new().with(&features).with_all(tables.rounds);
        let list = list.with(&sums[last % 3]).with(&clusters[last % 2]);
        let mut list = list.with(&components).with(&self.args);
        // SAFETY: the parameters of the method's `label`, whose tables the method names in their order; memory as in the rounds.
        // `FrameBuffers::new` has made component lists for an entry a pixel, edges for two.
        unsafe { buffers.queue.launch(&self.label, buffers.tiles, self.label_threads, list.items()) }
    }

    /// Launches the labels of a frame in temporal mode, which stores its final clusters for the next one.
    fn label_and_leave<T: Argument>(
        &self,
        buffers: &FrameBuffers,
        tables: &Tables<'_>,
        follow: &Follow<C>,
        state: &State,
        own: &T,
    ) -> Result<()> {
        let (all, shape, components) =
            (state.addresses(buffers.first_labels.address()), state.args(), buffers.components());
        let follows = u32::from(state.is_warm());
        let last = if state.is_warm() { WARM_ROUNDS } else { self.rounds } - 1;
        let list = List::new().with_all(tables.follow_label).with(own).with(&all).with(&shape);
        let mut list = list.with(&components).with(&last).with(&follows).with(&self.args);
        // SAFETY: the parameters of the method's `label_follow`, whose tables the method names in their order; memory as in the
        // rounds. `FrameBuffers::new` has made component lists for an entry a pixel, edges for two.
        unsafe { buffers.queue.launch(&follow.label, buffers.tiles, self.label_threads, list.items()) }
    }
}
