// SPDX-License-Identifier: MPL-2.0
//! Results of one frame on their way from the device: the number of regions, and copies for readers.

use cudarc::driver::CudaEvent;

use super::handle::Cuda;
use super::pinned::Pinned;
use super::results::{Counts, Results};
use crate::error::{Error, Result};
use crate::outputs::Outputs;

/// Results that [`Engine::keep`](crate::engine::Engine::keep) keeps of a frame. Reusing it waits for the frame before.
pub struct Kept {
    counts: Pinned,
    /// Recorded behind the copy of the counts.
    counted: CudaEvent,
    outputs: Outputs,
    results: Option<Results>,
    /// Dropped last, because it may hold the context.
    cuda: Cuda,
}

impl Kept {
    pub(crate) fn new(cuda: &Cuda) -> Result<Self> {
        let counts = Pinned::new(cuda, "pinned memory", Counts::BYTES)?;
        let outputs = Outputs::default();
        Ok(Self { counts, counted: cuda.event()?, outputs, results: None, cuda: cuda.clone() })
    }

    /// Starts to fetch the counts of a frame of `outputs`, by `fetch` on the stream of `cuda`.
    pub(crate) fn begin(
        &mut self,
        cuda: &Cuda,
        outputs: Outputs,
        fetch: impl FnOnce(&mut Pinned) -> Result<()>,
    ) -> Result<()> {
        if cuda.context_handle() != self.cuda.context_handle() {
            let reason = "the memory is of another context; make it with the engine that keeps in it";
            return Err(Error::Backend { backend: "cuda", reason: reason.into() });
        }
        // The counts of the frame before may be in flight, even on another stream.
        self.wait()?;
        self.outputs = outputs;
        self.results = None;
        let fetched = fetch(&mut self.counts).and_then(|()| cuda.mark(&self.counted));
        if fetched.is_err() {
            // A copy may be in flight that no event covers.
            let _ = cuda.synchronize();
        }
        fetched
    }

    pub(crate) fn hold(&mut self, results: Results) {
        self.results = Some(results);
    }

    /// Makes a stream wait for the frame: for its stages, its drawing and its counts, not for the copies of its
    /// results.
    #[cfg(feature = "gst")]
    pub(crate) fn precede(&self, stream: &Cuda) -> Result<()> {
        stream.follow(&self.counted)
    }

    /// Waits for the frame.
    pub fn wait(&self) -> Result<()> {
        self.cuda.wait(&self.counted)
    }

    /// Waits for the frame, and returns its counts and, if they were kept, its results.
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
