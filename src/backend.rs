// SPDX-License-Identifier: MPL-2.0
//! The seam between what is computed and where: a backend holds pixels, its stages work on them.

pub use crate::stage_times::StageTimes;

use crate::error::Result;
use crate::params::{Drawing, Outputs};
use crate::plan::Plan;
use crate::regions::Regions;

/// What only the library can pass. Memory and stages fit each other where one plan made both, as [`Engine`] sees to; on a device, a
/// stage that works in the memory of another plan would reach outside.
///
/// ```compile_fail,E0423
/// use gstsuperpixel::backend::{Backend, Internal};
///
/// fn memory<B: Backend>(backend: &B, plan: &gstsuperpixel::plan::Plan) -> gstsuperpixel::error::Result<B::Buffers> {
///     backend.buffers(plan, Internal(()))
/// }
/// ```
///
/// [`Engine`]: crate::engine::Engine
#[derive(Debug, Clone, Copy)]
pub struct Internal(());

impl Internal {
    /// The library calls.
    pub(crate) const CALL: Self = Self(());
}

/// Where pixels live and the stages that work there. Every stage is made once for a [`Plan`]; running it does not
/// allocate beyond a first high-water mark, looks nothing up and waits for nothing it does not need.
pub trait Backend: Sized + Send + 'static {
    /// A readable frame.
    type Frame<'a>: Sync;
    /// A frame to draw on.
    type FrameMut<'a>;
    /// A label plane to write and to read again.
    type Labels<'a>: Send;
    /// What the stages of a frame hand on: packed colors, the number of regions, device memory.
    type Buffers: Send;
    /// What a frame gave, apart from [`Backend::Buffers`]: it stays while later frames are segmented.
    type Kept: Send;

    /// Device and size in words: `cpu 8 threads`, `cuda:0 NAME`.
    fn describe(&self) -> String;
    /// Memory for the frames of a plan.
    fn buffers(&self, plan: &Plan, caller: Internal) -> Result<Self::Buffers>;
    /// Room for what one frame gives, to be used for frame after frame.
    fn kept(&self, caller: Internal) -> Result<Self::Kept>;
    /// Stage `ingest`.
    fn ingest(&self, plan: &Plan, buffers: &Self::Buffers, caller: Internal)
    -> Result<Box<dyn Ingest<Self>>>;
    /// The stages of the plan's algorithm.
    fn segmenter(
        &self,
        plan: &Plan,
        buffers: &Self::Buffers,
        caller: Internal,
    ) -> Result<Box<dyn Segmenter<Self>>>;
    /// Stage `connectivity`.
    fn connectivity(
        &self,
        plan: &Plan,
        buffers: &Self::Buffers,
        caller: Internal,
    ) -> Result<Box<dyn Connectivity<Self>>>;
    /// Stage `merge`, where the plan has it; also names merged regions where identities last.
    fn merge(
        &self,
        plan: &Plan,
        buffers: &Self::Buffers,
        caller: Internal,
    ) -> Result<Option<Box<dyn Merge<Self>>>>;
    /// Stage `hierarchy`, where the plan has it; also names merged regions where identities last.
    fn hierarchy(
        &self,
        plan: &Plan,
        buffers: &Self::Buffers,
        caller: Internal,
    ) -> Result<Option<Box<dyn Hierarchy<Self>>>>;
    /// Stage `refine`, where the plan has it.
    fn refine(
        &self,
        plan: &Plan,
        buffers: &Self::Buffers,
        caller: Internal,
    ) -> Result<Option<Box<dyn Refine<Self>>>>;
    /// Stages `temporal`, where the plan has them.
    fn temporal(
        &self,
        plan: &Plan,
        buffers: &Self::Buffers,
        caller: Internal,
    ) -> Result<Option<Box<dyn Temporal<Self>>>>;
    /// Stage `statistics`.
    fn statistics(
        &self,
        plan: &Plan,
        buffers: &Self::Buffers,
        caller: Internal,
    ) -> Result<Box<dyn Statistics<Self>>>;
    /// Stage `overlay`.
    fn overlay(
        &self,
        plan: &Plan,
        buffers: &Self::Buffers,
        caller: Internal,
    ) -> Result<Box<dyn Overlay<Self>>>;

    /// Refuses a frame or label plane that is not of the plan's kind; the stages rely on it.
    fn check(&self, plan: &Plan, frame: &Self::Frame<'_>, labels: &Self::Labels<'_>) -> Result<()>;

    /// Makes the memory of a plan serve one that [`follows`](Plan::follows) it; a device is waited for. `growth` says by
    /// which factor distances are larger at most; nothing, where they do not compare.
    fn change(&self, plan: &Plan, buffers: &mut Self::Buffers, growth: Option<f64>) -> Result<()>;

    /// Runs a frame's stages between ingest and overlay, or whatever they left to be run again: frames of equal
    /// `outputs` ask for the same work.
    fn run(
        &mut self,
        buffers: &mut Self::Buffers,
        frame: &Self::Frame<'_>,
        outputs: Outputs,
        stages: &mut (dyn FnMut(&mut Self::Buffers) -> Result<()> + Send),
    ) -> Result<()> {
        let _ = (frame, outputs);
        stages(buffers)
    }
}

/// Frame to packed colors.
pub trait Ingest<B: Backend>: Send {
    /// Writes every feature of the plane.
    fn ingest(&mut self, frame: &B::Frame<'_>, buffers: &mut B::Buffers) -> Result<()>;
}

/// Packed colors to cluster labels: not yet connected, not yet dense.
pub trait Segmenter<B: Backend>: Send {
    /// Writes every cluster label, below [`Plan::max_clusters`]: to the plane, or to the backend's memory where
    /// [`Plan::clusters_are_pixels`]. Outside of a mask these are the largest number instead.
    fn segment(
        &mut self,
        buffers: &mut B::Buffers,
        labels: &mut B::Labels<'_>,
        times: &mut StageTimes,
    ) -> Result<()>;

    /// Goes on with a plan that [`follows`](Plan::follows) the one before. Clusters that the next frame takes over stay where
    /// they are.
    fn change(&mut self, plan: &Plan, buffers: &mut B::Buffers) -> Result<()>;
}

/// Cluster labels to final ones, in place: dense, and connected where the plan says so.
pub trait Connectivity<B: Backend>: Send {
    /// Leaves the number of labels with `buffers`.
    fn enforce(&mut self, buffers: &mut B::Buffers, labels: &mut B::Labels<'_>) -> Result<()>;
}

/// Final labels to fewer, in place: dense still, and connected where they were.
pub trait Merge<B: Backend>: Send {
    /// Leaves the new number of labels with `buffers`, and where identities last, those of the merged regions.
    fn merge(&mut self, buffers: &mut B::Buffers, labels: &mut B::Labels<'_>) -> Result<()>;
}

/// Final labels to a given number, in place: dense still, and connected where they were.
pub trait Hierarchy<B: Backend>: Send {
    /// Leaves the new number of labels with `buffers`, and where identities last, those of the merged regions. Lists what would
    /// be merged next, unless stage `refine` follows.
    fn build(&mut self, buffers: &mut B::Buffers, labels: &mut B::Labels<'_>) -> Result<()>;

    /// Behind stage `refine`: lists what of its regions would be merged. Labels stay.
    fn list(&mut self, buffers: &mut B::Buffers, labels: &mut B::Labels<'_>) -> Result<()>;
}

/// Final labels to ones that fit the pixels better, in place: as many, and in as many pieces.
pub trait Refine<B: Backend>: Send {
    /// Moves pixels at boundaries.
    fn refine(&mut self, buffers: &mut B::Buffers, labels: &mut B::Labels<'_>) -> Result<()>;
}

/// What lasts from frame to frame: its state is in the backend's memory.
pub trait Temporal<B: Backend>: Send {
    /// Before the algorithm: the motion of the picture, and where the clusters are now.
    fn begin(&mut self, buffers: &mut B::Buffers, times: &mut StageTimes) -> Result<()>;

    /// After the connected labels: identities of regions, and what the next frame needs.
    fn identify(
        &mut self,
        buffers: &mut B::Buffers,
        labels: &mut B::Labels<'_>,
        times: &mut StageTimes,
    ) -> Result<()>;

    /// The next frame starts anew, with new identities.
    fn reset(&mut self, buffers: &mut B::Buffers);

    /// The identity that the next new region gets; a device backend waits for it.
    fn next_id(&mut self, buffers: &B::Buffers) -> Result<u32>;

    /// Gives identities from `id` on, which is not 0.
    fn set_next_id(&mut self, buffers: &mut B::Buffers, id: u32) -> Result<()>;
}

/// Final labels to region table, adjacency list and mean colors.
pub trait Statistics<B: Backend>: Send {
    /// Before stage `hierarchy`: measures the regions that it merges or lists; where it merges, it then adds up their sums. A
    /// backend whose stage measures them itself does nothing.
    fn measure_parts(
        &mut self,
        _frame: &B::Frame<'_>,
        _buffers: &mut B::Buffers,
        _labels: &B::Labels<'_>,
        _outputs: Outputs,
    ) -> Result<()> {
        Ok(())
    }

    /// Measures as far as `outputs` asks.
    fn measure(
        &mut self,
        frame: &B::Frame<'_>,
        buffers: &mut B::Buffers,
        labels: &mut B::Labels<'_>,
        outputs: Outputs,
    ) -> Result<()>;

    /// Hands out what was measured; a device backend waits for it here.
    fn collect(&mut self, buffers: &B::Buffers, outputs: Outputs, regions: &mut Regions) -> Result<()>;

    /// Puts what was measured into `kept`; a device backend only starts to. Without `copies` that is the number of regions alone.
    fn keep(
        &mut self,
        buffers: &B::Buffers,
        outputs: Outputs,
        copies: bool,
        kept: &mut B::Kept,
    ) -> Result<()>;
}

/// Labels and means to pixels of the frame.
pub trait Overlay<B: Backend>: Send {
    /// Draws; every byte that is not drawn on stays, alpha always.
    fn draw(
        &mut self,
        frame: &mut B::FrameMut<'_>,
        buffers: &B::Buffers,
        labels: &B::Labels<'_>,
        drawing: &Drawing,
    ) -> Result<()>;
}
