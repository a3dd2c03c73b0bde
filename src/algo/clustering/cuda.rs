// SPDX-License-Identifier: MPL-2.0
//! Rounds and labels of the methods that cluster on the grid, on a CUDA device: the launches that SLIC and LSC share.

use crate::buffers::cuda::FrameBuffers;
use crate::cuda::Cuda;
use crate::cuda::abi::{Address, Components, GridArgs, Temporal, TemporalArgs};
use crate::cuda::launch::{Arguments, Kernel};
use crate::cuda::memory::Memory;
use crate::cuda::module::Entry;
use crate::cuda::tuning::{ROUND_THREADS, ROUND_TILE, TILE};
use crate::error::Result;
use crate::plan::Plan;
use crate::temporal::WARM_ROUNDS;
use crate::temporal::device::warm_rounds;

/// A method that clusters on the grid: it adds its tables to the arguments of its kernels.
pub(crate) trait Method: 'static {
    /// Sums of a cluster's samples.
    type Sums;
    /// A cluster between rounds.
    type Cluster;
    /// The struct that kernels of a frame which follows another take the method's memory from.
    type Own;
    /// Arguments of the kernel that assigns samples in an independent frame.
    type Assign<'a>: Arguments<Static = Self::Assign<'static>>
    where
        Self: 'a;
    /// Arguments of the kernel that labels an independent frame.
    type Label<'a>: Arguments<Static = Self::Label<'static>>
    where
        Self: 'a;
    /// Arguments of the kernel that assigns samples in a warm start.
    type FollowAssign<'a>: Arguments<Static = Self::FollowAssign<'static>>
    where
        Self: 'a;
    /// Arguments of the kernel that labels a frame which leaves something to the next.
    type FollowLabel<'a>: Arguments<Static = Self::FollowLabel<'static>>
    where
        Self: 'a;

    fn own(&self, memory: Turns<Self::Sums, Self::Cluster>) -> Self::Own;

    fn assign(&self, buffers: &FrameBuffers, round: Round<Self::Sums, Self::Cluster>) -> Self::Assign<'_>;

    fn label<'a>(
        &'a self,
        buffers: &FrameBuffers,
        sums: Address<Self::Sums>,
        old: Address<Self::Cluster>,
        components: &'a Components,
    ) -> Self::Label<'a>;

    /// `begin` is how the round begins, `Begin` of kernels/temporal.cuh.
    fn follow_assign<'a>(
        &'a self,
        buffers: &FrameBuffers,
        lasting: &'a Lasting<Self::Own>,
        begin: u32,
        round: u32,
    ) -> Self::FollowAssign<'a>;

    /// `round` is the last one, `follows` is 1 in a warm start.
    fn follow_label<'a>(
        &'a self,
        lasting: &'a Lasting<Self::Own>,
        components: &'a Components,
        round: u32,
        follows: u32,
    ) -> Self::FollowLabel<'a>;
}

/// Kernels of a method and the stages that they belong to.
pub(crate) struct Kernels<M: Method> {
    pub assign: Entry<M::Assign<'static>>,
    pub label: Entry<M::Label<'static>>,
    /// The same for a frame that follows another.
    pub follow_assign: Entry<M::FollowAssign<'static>>,
    pub follow_label: Entry<M::FollowLabel<'static>>,
    pub assign_stage: &'static str,
    pub label_stage: &'static str,
    /// Threads of a block that labels a tile.
    pub label_threads: u32,
    /// Bytes of shared memory per cluster that such a tile can reach.
    pub reach: usize,
}

/// Memory of a round of an independent frame.
pub(crate) struct Round<S, C> {
    /// Sums that the last round left, those that this one adds to, and those that it clears for the next.
    pub sums: Address<S>,
    pub sums_out: Address<S>,
    pub sums_clear: Address<S>,
    /// Clusters before and after.
    pub old: Address<C>,
    pub out: Address<C>,
    /// 1 where clusters start from the picture.
    pub seeds: u32,
}

/// Memory of a frame that follows another.
pub(crate) struct Turns<S, C> {
    /// Three sets of sums and two of clusters, which rounds take by turns.
    pub sums: [Address<S>; 3],
    pub clusters: [Address<C>; 2],
    /// Final clusters of the last frame, and of this one.
    pub carried_last: Address<C>,
    pub carried: Address<C>,
}

/// All that kernels of a frame which follows another take from the last.
pub(crate) struct Lasting<T> {
    pub own: T,
    pub all: Temporal,
    pub shape: TemporalArgs,
}

/// A warm start's kernels and memory.
struct Follow<M: Method> {
    assign: Kernel<M::FollowAssign<'static>>,
    label: Kernel<M::FollowLabel<'static>>,
}

/// Kernels and memory of a method that clusters on the grid.
pub(crate) struct Clustering<M: Method> {
    assign: Kernel<M::Assign<'static>>,
    label: Kernel<M::Label<'static>>,
    label_threads: u32,
    grid: GridArgs,
    rounds: u32,
    /// Clusters before and after a round.
    clusters: [Memory<M::Cluster>; 2],
    /// Where something lasts and is clustered.
    follow: Option<Follow<M>>,
}

impl<M: Method> Clustering<M> {
    /// `iterations`: rounds of an independent frame.
    pub fn new(cuda: &Cuda, plan: &Plan, kernels: Kernels<M>, iterations: u32) -> Result<Self> {
        let (grid, shared) = (&plan.grid, plan.grid.reach(TILE) * kernels.reach);
        let pair = || -> Result<[Memory<M::Cluster>; 2]> {
            let one = || Memory::new(cuda, "device memory", grid.cells());
            Ok([one()?, one()?])
        };
        let (device, clustered) = (&cuda.device, grid.step() > 1);
        let Kernels { assign_stage, label_stage, .. } = kernels;
        let follow = || -> Result<Follow<M>> {
            Ok(Follow {
                assign: device.kernel(kernels.follow_assign, assign_stage)?,
                label: device.kernel(kernels.follow_label, label_stage)?.with_shared(shared),
            })
        };
        Ok(Self {
            assign: device.kernel(kernels.assign, assign_stage)?,
            label: device.kernel(kernels.label, label_stage)?.with_shared(shared),
            label_threads: kernels.label_threads,
            grid: GridArgs::new(grid),
            rounds: if clustered { iterations } else { 0 },
            clusters: pair()?,
            follow: (plan.temporal.is_some() && clustered).then(follow).transpose()?,
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

    fn sample_tiles(&self) -> (u32, u32) {
        let grid = &self.grid;
        (grid.sample_width.div_ceil(ROUND_TILE.0), grid.sample_height.div_ceil(ROUND_TILE.1))
    }

    /// Rounds and labels of a frame.
    pub fn segment(&self, buffers: &FrameBuffers, method: &M) -> Result<()> {
        let sums = [0, 1, 2].map(|i: usize| buffers.sums[i].address().cast::<M::Sums>());
        let clusters = [self.clusters[0].address(), self.clusters[1].address()];
        let Some((follow, state)) = self.follow.as_ref().zip(buffers.temporal.as_ref()) else {
            self.assign_rounds(buffers, method, sums, clusters)?;
            return self.label_alone(buffers, method, sums, clusters);
        };
        let current = state.phase().1;
        let [carried, carried_last] = [current, current ^ 1].map(|set| state.carried[set].address().cast());
        let lasting = Lasting {
            own: method.own(Turns { sums, clusters, carried_last, carried }),
            all: state.addresses(buffers.first_labels.address()),
            shape: state.args(),
        };
        if state.is_warm() {
            self.follow_rounds(buffers, method, follow, &lasting)?;
        } else {
            self.assign_rounds(buffers, method, sums, clusters)?;
        }
        self.label_and_leave(buffers, method, follow, &lasting, state.is_warm())
    }

    /// Launches all rounds of an independent frame.
    fn assign_rounds(
        &self,
        buffers: &FrameBuffers,
        method: &M,
        sums: [Address<M::Sums>; 3],
        clusters: [Address<M::Cluster>; 2],
    ) -> Result<()> {
        for round in 0..self.rounds as usize {
            let args = method.assign(
                buffers,
                Round {
                    sums: sums[(round + 2) % 3],
                    sums_out: sums[round % 3],
                    sums_clear: sums[(round + 1) % 3],
                    old: clusters[(round + 1) % 2],
                    out: clusters[round % 2],
                    seeds: u32::from(round == 0),
                },
            );
            // SAFETY: `FrameBuffers::new`, the method and `new` have made planes, tables, sums and clusters for one plan: an entry a
            // pixel, a column or row, or a cell; `FrameBuffers` waits before they go.
            unsafe { buffers.queue.launch(&self.assign, self.sample_tiles(), ROUND_THREADS, &args)? };
        }
        Ok(())
    }

    /// Rounds of warm starts.
    fn follow_rounds(
        &self,
        buffers: &FrameBuffers,
        method: &M,
        follow: &Follow<M>,
        lasting: &Lasting<M::Own>,
    ) -> Result<()> {
        for (begin, round) in warm_rounds() {
            let args = method.follow_assign(buffers, lasting, begin, round);
            // SAFETY: memory as in the rounds of an independent frame, and that of `State::new`, for the same plan.
            unsafe { buffers.queue.launch(&follow.assign, self.sample_tiles(), ROUND_THREADS, &args)? };
        }
        Ok(())
    }

    /// Launches the labels of an independent frame.
    fn label_alone(
        &self,
        buffers: &FrameBuffers,
        method: &M,
        sums: [Address<M::Sums>; 3],
        clusters: [Address<M::Cluster>; 2],
    ) -> Result<()> {
        let (last, components) = (self.rounds.max(1) as usize - 1, buffers.labeled_components());
        let args = method.label(buffers, sums[last % 3], clusters[last % 2], &components);
        // SAFETY: memory as in the rounds. `FrameBuffers::new` has made component lists for an entry a pixel, edges for two.
        unsafe { buffers.queue.launch(&self.label, buffers.tiles, self.label_threads, &args) }
    }

    /// Labels of a frame that leaves what the next one needs.
    fn label_and_leave(
        &self,
        buffers: &FrameBuffers,
        method: &M,
        follow: &Follow<M>,
        lasting: &Lasting<M::Own>,
        is_warm: bool,
    ) -> Result<()> {
        let components = buffers.labeled_components();
        let last = if is_warm { WARM_ROUNDS } else { self.rounds } - 1;
        let args = method.follow_label(lasting, &components, last, u32::from(is_warm));
        // SAFETY: memory as in the rounds. `FrameBuffers::new` has made component lists for an entry a pixel, edges for two.
        unsafe { buffers.queue.launch(&follow.label, buffers.tiles, self.label_threads, &args) }
    }
}
