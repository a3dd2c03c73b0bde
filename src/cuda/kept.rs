// SPDX-License-Identifier: MPL-2.0
//! What one frame gave, on its way from the device: how many regions there are, and copies of the results for readers.

use cudarc::driver::CudaEvent;

use super::handle::Cuda;
use super::pinned::Pinned;
use super::results::{Counts, Results};
use crate::error::Result;
use crate::params::Outputs;

/// What [`Engine::keep`](crate::engine::Engine::keep) keeps of a frame. Used again, it waits for nothing: read it before.
pub struct Kept {
    counts: Pinned,
    /// Recorded behind the copy of the counts.
    counted: CudaEvent,
    outputs: Outputs,
    results: Option<Results>,
    /// Last: it may hold the context.
    cuda: Cuda,
}

impl Kept {
    pub(crate) fn new(cuda: &Cuda) -> Result<Self> {
        let counts = Pinned::new(cuda, "pinned memory", 8)?;
        let outputs = Outputs::default();
        Ok(Self { counts, counted: cuda.event()?, outputs, results: None, cuda: cuda.clone() })
    }

    /// Where the counts of a frame of `outputs` go.
    pub(crate) fn begin(&mut self, outputs: Outputs) -> &mut Pinned {
        self.outputs = outputs;
        self.results = None;
        &mut self.counts
    }

    /// Notes that the counts are on their way on the stream of `cuda`.
    pub(crate) fn mark(&self, cuda: &Cuda) -> Result<()> {
        cuda.mark(&self.counted)
    }

    pub(crate) fn hold(&mut self, results: Results) {
        self.results = Some(results);
    }

    /// Makes a stream wait for the frame: for its stages, its drawing and its counts, not for the copies of its results.
    #[cfg(feature = "gst")]
    pub(crate) fn precede(&self, stream: &Cuda) -> Result<()> {
        stream.follow(&self.counted)
    }

    /// Waits for the frame.
    pub fn wait(&self) -> Result<()> {
        self.cuda.wait(&self.counted)
    }

    /// Waits for the frame and hands out its numbers and, if they were kept, its results.
    pub fn take(&mut self) -> Result<(Counts, Option<Results>)> {
        self.wait()?;
        let counts = Counts::read(self.outputs, &self.counts);
        let mut results = self.results.take();
        if let Some(results) = &mut results {
            results.finalize(counts, self.outputs)?;
        }
        Ok((counts, results))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // The copy of the counts may still write to the pinned memory.
        let _ = self.wait();
    }
}
