// SPDX-License-Identifier: MPL-2.0
//! The seam between stages and the place where they run: a backend holds pixels, its stages work on them.

pub use crate::stage_times::StageTimes;

use crate::error::Result;
use crate::params::{Drawing, Outputs};
use crate::plan::Plan;
use crate::regions::Regions;

/// A token that only the library can create. Memory and stages fit each other only if one plan made both, which
/// [`Engine`] ensures; on a device, a stage would access the memory of another plan out of bounds.
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
    /// The token for calls from inside of the library.
    pub(crate) const CALL: Self = Self(());
}

/// A place where pixels live, with the stages that run there. Every stage is made once for a [`Plan`]. Running it
/// allocates nothing past a first high-water mark, looks nothing up, and waits only for its own inputs.
pub trait Backend: Sized + Send + 'static {
    /// A readable frame.
    type Frame<'a>: Sync;
    /// A frame to draw on.
    type FrameMut<'a>;
    /// Target for the label map of a frame.
    type Labels<'a>: Send;
    /// Memory that one stage of a frame hands to the next: packed colors, the number of regions, device memory.
    type Buffers: Send;
    /// Results of a frame, separate from [`Backend::Buffers`], so that they stay while later frames are segmented.
    type Kept: Send;

    /// Device and size in words: `cpu 8 threads`, `cuda:0 NAME`.
    fn describe(&self) -> String;
    /// Allocates memory for the frames of a plan.
    fn buffers(&self, plan: &Plan, caller: Internal) -> Result<Self::Buffers>;
    /// Allocates memory for the results of one frame, which is reused from frame to frame.
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
    /// The stages of the list in `post` that the plan has, in its order.
    fn stages(&self, plan: &Plan, buffers: &Self::Buffers, caller: Internal) -> Result<Stages<Self>>;
    /// Stages `temporal`, if the plan has them.
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

    /// Returns an error for a frame or label plane that does not match the plan; the stages rely on this check.
    fn check(&self, plan: &Plan, frame: &Self::Frame<'_>, labels: &Self::Labels<'_>) -> Result<()>;

    /// Clusters the packed colors of a plan's frame, in place of the stages up to `connectivity`: writes the cell of the grid that each
    /// pixel's cluster started in, the largest number outside of a mask. Waits for a device. Both planes have rows without padding.
    fn cluster(
        &self,
        plan: &Plan,
        buffers: &mut Self::Buffers,
        segmenter: &mut dyn Segmenter<Self>,
        colors: &[u32],
        clusters: &mut [u16],
        caller: Internal,
    ) -> Result<()>;

    /// Adapts the memory of one plan to another that [`follows`](Plan::follows) it. Waits for a device. `growth` is the
    /// largest factor by which distances grow; `None` if they do not compare.
    fn change(&self, plan: &Plan, buffers: &mut Self::Buffers, growth: Option<f64>) -> Result<()>;

    /// Runs a frame's stages between ingest and overlay, or replays a recording of them. On a device the stages' code on the
    /// host runs only for the recording, once for equal addresses, `outputs` and phase of the temporal state: it gives the
    /// same launches whenever these are the same, and keeps nothing of a frame.
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

/// Converts a frame to packed colors.
pub trait Ingest<B: Backend>: Send {
    /// Writes every feature of the plane.
    fn ingest(&mut self, frame: &B::Frame<'_>, buffers: &mut B::Buffers) -> Result<()>;
}

/// Converts packed colors to cluster labels, which are neither connected nor dense.
pub trait Segmenter<B: Backend>: Send {
    /// Writes every cluster label, below [`Plan::max_clusters`]: to the plane or, if [`Plan::clusters_are_pixels`], to
    /// the backend's memory. Pixels outside of a mask get the largest number instead.
    fn segment(
        &mut self,
        buffers: &mut B::Buffers,
        labels: &mut B::Labels<'_>,
        times: &mut StageTimes,
    ) -> Result<()>;

    /// Continues with a plan that [`follows`](Plan::follows) the one before. Clusters that the next frame continues
    /// keep their positions.
    fn change(&mut self, plan: &Plan, buffers: &mut B::Buffers) -> Result<()>;
}

/// Converts cluster labels to final ones, in place: dense, and connected if the plan says so.
pub trait Connectivity<B: Backend>: Send {
    /// Stores the number of labels in `buffers`.
    fn enforce(&mut self, buffers: &mut B::Buffers, labels: &mut B::Labels<'_>) -> Result<()>;
}

/// Stages with their names, in the order in which they run.
pub type Stages<B> = Vec<(&'static str, Box<dyn Stage<B>>)>;

/// Passes over the stages of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// Changes labels.
    Labels,
    /// Lists what is about the labels, which no stage changes any more.
    Lists,
}

/// Work of a stage in a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Parts of the regions' statistics to be measured before; see [`Statistics::measure_parts`].
    pub measured: Option<Outputs>,
}

/// Changes final labels in place: they stay dense, and as connected as they were.
pub trait Stage<B: Backend>: Send {
    /// The work in a pass, if there is any, for a frame with these outputs. Most stages change labels alone.
    fn work(&self, pass: Pass, outputs: Outputs) -> Option<Work> {
        let _ = outputs;
        (pass == Pass::Labels).then(Work::default)
    }

    /// Does it. A stage that reduces the regions stores their new number in `buffers` and, in temporal mode, the tracks of the
    /// merged regions.
    fn run(&mut self, pass: Pass, buffers: &mut B::Buffers, labels: &mut B::Labels<'_>) -> Result<()>;
}

/// Continues clusters and identities from frame to frame; the state is in the backend's memory.
pub trait Temporal<B: Backend>: Send {
    /// Runs before the algorithm: finds the motion of the picture, and moves the clusters.
    fn begin(&mut self, buffers: &mut B::Buffers, times: &mut StageTimes) -> Result<()>;

    /// Runs after labels are connected: identifies regions, and stores the state for the next frame.
    fn identify(
        &mut self,
        buffers: &mut B::Buffers,
        labels: &mut B::Labels<'_>,
        times: &mut StageTimes,
    ) -> Result<()>;

    /// Discards the state: the next frame is the first, with new identities.
    fn reset(&mut self, buffers: &mut B::Buffers);

    /// Returns the identity of the next new region. Waits for a device.
    fn next_id(&mut self, buffers: &B::Buffers) -> Result<u32>;

    /// Sets the next identity, which is not 0.
    fn set_next_id(&mut self, buffers: &mut B::Buffers, id: u32) -> Result<()>;
}

/// Measures region table, adjacency list and mean colors of final labels.
pub trait Statistics<B: Backend>: Send {
    /// Runs before stage `hierarchy`: measures the regions that it merges or lists; after merging it adds up their
    /// sums. Does nothing on a backend whose stage measures them itself.
    fn measure_parts(
        &mut self,
        _frame: &B::Frame<'_>,
        _buffers: &mut B::Buffers,
        _labels: &B::Labels<'_>,
        _outputs: Outputs,
    ) -> Result<()> {
        Ok(())
    }

    /// Measures the parts that `outputs` asks for.
    fn measure(
        &mut self,
        frame: &B::Frame<'_>,
        buffers: &mut B::Buffers,
        labels: &mut B::Labels<'_>,
        outputs: Outputs,
    ) -> Result<()>;

    /// Returns the measured parts and, where the stages have written to memory of the backend, the label map. Waits for a
    /// device.
    fn collect(
        &mut self,
        buffers: &B::Buffers,
        labels: &mut B::Labels<'_>,
        outputs: Outputs,
        regions: &mut Regions,
    ) -> Result<()>;

    /// Copies the results into `kept`; on a device, starts to. Without `copies` only the number of regions.
    fn keep(
        &mut self,
        buffers: &B::Buffers,
        outputs: Outputs,
        copies: bool,
        kept: &mut B::Kept,
    ) -> Result<()>;
}

/// Draws labels and means on a frame.
pub trait Overlay<B: Backend>: Send {
    /// Draws. All other bytes stay, among them every alpha.
    fn draw(
        &mut self,
        frame: &mut B::FrameMut<'_>,
        buffers: &B::Buffers,
        labels: &B::Labels<'_>,
        drawing: &Drawing,
    ) -> Result<()>;
}
