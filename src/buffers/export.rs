// SPDX-License-Identifier: MPL-2.0
//! Copies of a frame's results to device memory outside of the engine, on the frame's stream. No host synchronization.

use cudarc::driver::sys;

use super::cuda::FrameBuffers;
use crate::cuda::abi::Address;
use crate::cuda::kernels::{list_edges, widen_labels};
use crate::cuda::launch::check;
use crate::cuda::memory::{Rows, copy_rows};
use crate::cuda::tuning::EXPORT_THREADS;
use crate::cuda::{Counts, Cuda, DeviceBytes, DeviceLabels, LabelType, Part};
use crate::error::{Error, Result};
use crate::image::NO_LABEL;
use crate::outputs::Outputs;
use crate::regions::Neighbor;

const STAGE: &str = "export";

/// Kernels that convert results to other forms, loaded on first use.
pub(super) struct Exports {
    widen: widen_labels::Kernel,
    edges: list_edges::Kernel,
}

impl Exports {
    fn new(cuda: &Cuda) -> Result<Self> {
        let device = &cuda.device;
        Ok(Self {
            widen: device.kernel(widen_labels::KERNEL, STAGE)?,
            edges: device.kernel(list_edges::KERNEL, STAGE)?,
        })
    }
}

impl FrameBuffers {
    /// Starts to copy the label map of the frame that was submitted last, on the frame's stream.
    ///
    /// # Errors
    ///
    /// [`Error::Labels`] for a plane of another size, [`Error::Cuda`] from the driver.
    pub fn export_labels(&self, to: &mut DeviceLabels<'_>) -> Result<()> {
        let (planned, cuda) = (self.geometry, &self.queue.cuda);
        if to.geometry != planned {
            return Err(Error::Labels { planned, got: to.geometry });
        }
        to.check_context(cuda)?;
        check(STAGE, cuda.device.context.bind_to_thread())?;
        let (width, height) = (planned.width, planned.height);
        let labels = self.labels().address();
        let LabelType::I32 { first } = to.kind else {
            let (from, to) = (
                Rows { address: labels.raw(), stride: 2 * width as usize },
                Rows { address: to.address, stride: to.stride },
            );
            // SAFETY: `FrameBuffers::new` has made the label plane for this geometry, without padding; who made `to` keeps room for as
            // many rows.
            return unsafe { copy_rows(STAGE, &cuda.stream, from, to, 2 * width as usize, height as usize) };
        };
        let args = widen_labels::Args {
            labels,
            out: Address::new(to.address),
            width,
            stride: (to.stride / 4) as u32,
            first: first.cast_unsigned(),
            outside: if first == 0 { u32::from(NO_LABEL) } else { first.wrapping_sub(1).cast_unsigned() },
        };
        let (kernel, grid) = (&self.exports()?.widen, (width.div_ceil(EXPORT_THREADS), height));
        // SAFETY: the label plane is of this geometry, without padding; who made `to` keeps rows of 32-bit labels, `stride` apart, as
        // many as the grid has.
        unsafe { kernel.launch(&cuda.stream, grid, EXPORT_THREADS, &args) }
    }

    /// Starts to copy a part of the results of the frame that was submitted last, on the frame's stream and without
    /// gaps. Returns the number of bytes. `counts` and `outputs` are that frame's.
    ///
    /// # Errors
    ///
    /// [`Error::Plane`] if `to` is too small, [`Error::Cuda`] from the driver.
    pub fn export(
        &self,
        part: Part,
        counts: Counts,
        outputs: Outputs,
        to: &mut DeviceBytes<'_>,
    ) -> Result<usize> {
        let sources = self.sources(outputs, 2 * self.geometry.width as usize);
        let bytes = counts.lengths(sources.most, outputs)[part as usize];
        let cuda = &self.queue.cuda;
        let to = to.room(cuda, bytes)?;
        if bytes > 0 {
            check(STAGE, cuda.device.context.bind_to_thread())?;
            let from = sources.parts[part as usize];
            // SAFETY: the source holds `most` bytes of the part, of which these are the first; there is room for them.
            let copied = unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, cuda.stream.cu_stream()) };
            check(STAGE, copied.result())?;
        }
        Ok(bytes)
    }

    /// Starts to write the pairs of the frame that was submitted last, on the frame's stream, as 64-bit numbers [2][2
    /// pairs]: each pair from the lower to the higher label, then each from the higher to the lower.
    ///
    /// # Errors
    ///
    /// As [`FrameBuffers::export`].
    pub fn export_edges(&self, counts: Counts, outputs: Outputs, to: &mut DeviceBytes<'_>) -> Result<()> {
        let Some(memory) = &self.neighbors else { return Ok(()) };
        let most = self.sources(outputs, 2 * self.geometry.width as usize).most;
        let count = counts.lengths(most, outputs)[Part::Neighbors as usize] / size_of::<Neighbor>();
        let cuda = &self.queue.cuda;
        let edges = Address::new(to.room(cuda, 4 * size_of::<i64>() * count)?);
        if count == 0 {
            return Ok(());
        }
        let args = list_edges::Args { pairs: memory.pairs.address(), edges, count: count as u32 };
        check(STAGE, cuda.device.context.bind_to_thread())?;
        let grid = (args.count.div_ceil(EXPORT_THREADS), 1);
        // SAFETY: `prepare_neighbors` has made room for the most pairs that there can be, of which these are no more; `to` has room for
        // four numbers of each.
        unsafe { self.exports()?.edges.launch(&cuda.stream, grid, EXPORT_THREADS, &args) }
    }

    fn exports(&self) -> Result<&Exports> {
        self.exports.get_or_try_init(|| Exports::new(&self.queue.cuda))
    }
}
