// SPDX-License-Identifier: MPL-2.0
//! What one frame gave, on its way from the device: how many regions there are, and copies of the results for readers.

use cudarc::driver::CudaEvent;

use super::handle::Cuda;
use super::pinned::Pinned;
use super::results::{Counts, Results};
use crate::error::{Error, Result};
use crate::outputs::Outputs;

/// What [`Engine::keep`](crate::engine::Engine::keep) keeps of a frame. Used again, it waits for the frame before.
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
        let counts = Pinned::new(cuda, "pinned memory", Counts::BYTES)?;
        let outputs = Outputs::default();
        Ok(Self { counts, counted: cuda.event()?, outputs, results: None, cuda: cuda.clone() })
    }

    /// Takes the counts of a frame of `outputs`, which `fetch` puts on the stream of `cuda`.
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
        // The counts of the frame before may be in flight, on another stream even.
        self.wait()?;
        self.outputs = outputs;
        self.results = None;
        let fetched = fetch(&mut self.counts).and_then(|()| cuda.mark(&self.counted));
        if fetched.is_err() {
            // Nothing marks a copy that may be in flight.
            let _ = cuda.synchronize();
        }
        fetched
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
