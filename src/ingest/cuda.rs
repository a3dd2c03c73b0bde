// SPDX-License-Identifier: MPL-2.0
//! Stage `ingest` on a CUDA device.

use crate::backend;
use crate::buffers::cuda::FrameBuffers;
use crate::color::ColorTables;
use crate::cuda::abi::{IngestArgs, SpaceArgs};
use crate::cuda::device::{ModuleCode, module_code};
use crate::cuda::launch::{Kernel, args};
use crate::cuda::tuning::INGEST_THREADS;
use crate::cuda::{Cuda, DeviceFrame};
use crate::error::Result;
use crate::plan::Plan;

const MODULE: ModuleCode = module_code!("color");

pub(crate) struct Ingest {
    kernel: Kernel,
    args: IngestArgs,
    blocks: u32,
}

impl Ingest {
    pub fn new(cuda: &Cuda, plan: &Plan, buffers: &FrameBuffers) -> Result<Self> {
        let name = if plan.frame.format.bits() > 10 { "ingest_wide" } else { "ingest" };
        let kernel = cuda.device.kernel(&MODULE, name, "ingest")?;
        let step = plan.grid.sample_step();
        let (width, height) = (plan.frame.geometry.width, plan.frame.geometry.height);
        let resident = kernel.resident_blocks(INGEST_THREADS)? * cuda.device.multiprocessors;
        Ok(Self {
            args: IngestArgs {
                space: SpaceArgs::new(ColorTables::shared(plan.color_space, 8)),
                sample_shift: step.ilog2(),
                sample_width: width.div_ceil(step),
                // All but the two words of the grid's barrier.
                clear_words: (buffers.sums[0].len() - 2) as u32,
            },
            blocks: resident.min((width.div_ceil(128) * height).div_ceil(INGEST_THREADS / 32)).max(1),
            kernel,
        })
    }
}

impl backend::Ingest<Cuda> for Ingest {
    fn ingest(&mut self, frame: &DeviceFrame<'_>, buffers: &mut FrameBuffers) -> Result<()> {
        crate::cuda::launch::check("ingest", buffers.queue.cuda.device.context.bind_to_thread())?;
        buffers.queue.mark("frame")?;
        let (tables, features) = (buffers.tables.address(), buffers.features());
        let (samples, clear) = (buffers.samples.address(), buffers.sums[0].address());
        // SAFETY: the parameters of `ingest`. `FrameBuffers::new` has made features, samples and tables for the plan, `new` has taken
        // `clear_words` from the length of `clear`; `Backend::check` has compared the frame with the plan.
        unsafe {
            buffers.queue.launch(
                &self.kernel,
                (self.blocks, 1),
                INGEST_THREADS,
                &mut args![tables, features, samples, clear, frame.args(), self.args],
            )
        }
    }
}
