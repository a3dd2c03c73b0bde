// SPDX-License-Identifier: MPL-2.0
//! Stage `ingest` on a CUDA device: launches of kernels/color.cu, mask.cu and gray.cu.

use super::BINS;
use crate::backend;
use crate::buffers::cuda::FrameBuffers;
use crate::color::ColorTables;
use crate::cuda::abi::{Address, GridArgs, IngestArgs, SpaceArgs};
use crate::cuda::device::{ModuleCode, module_code};
use crate::cuda::frame::has_any_layout;
use crate::cuda::launch::{Kernel, args};
use crate::cuda::memory::Memory;
use crate::cuda::tuning::{GRAY_THREADS, INGEST_THREADS, MASK_THREADS};
use crate::cuda::{Cuda, DeviceFrame};
use crate::error::Result;
use crate::plan::Plan;
use crate::temporal::device::State;

const MODULE: ModuleCode = module_code!("color");
const MASK: ModuleCode = module_code!("mask");
const GRAY: ModuleCode = module_code!("gray");

/// Kernels that mark pixels and samples outside of masks.
struct Masking {
    outside: Kernel,
    seeds: Kernel,
    grid: GridArgs,
    blocks: u32,
}

impl Masking {
    fn new(cuda: &Cuda, plan: &Plan) -> Result<Self> {
        let most = 8 * cuda.device.multiprocessors;
        Ok(Self {
            outside: cuda.device.kernel(&MASK, "mask_outside", "ingest")?,
            seeds: cuda.device.kernel(&MASK, "mask_seeds", "ingest")?,
            grid: GridArgs::new(&plan.grid),
            blocks: (plan.frame.geometry.pixels() as u32).div_ceil(MASK_THREADS).min(most),
        })
    }

    fn launch(&self, frame: &DeviceFrame<'_>, buffers: &FrameBuffers) -> Result<()> {
        let (mask, stride) = frame.planes.mask.unwrap_or((0, 0));
        let (mask, grid) = (Address::<u8>::new(mask), self.grid);
        let (features, samples) = (buffers.features(), buffers.samples.address());
        let (counters, seeds) = (buffers.counters(), buffers.seeds());
        let cells = grid.nx * grid.ny;
        // SAFETY: the parameters of the kernels of kernels/mask.cu. `FrameBuffers::new` has made features, samples, counters and, as
        // masks were planned, seeds; whoever made the frame has promised that the mask has its size.
        unsafe {
            let outside = &mut args![mask, features, samples, counters, stride, grid];
            buffers.queue.launch(&self.outside, (self.blocks, 1), MASK_THREADS, outside)?;
            let blocks = (cells.div_ceil(MASK_THREADS / 32), 1);
            buffers.queue.launch(&self.seeds, blocks, MASK_THREADS, &mut args![features, seeds, grid])
        }
    }
}

/// Kernels that find the range of 16-bit gray, which stays on the device.
struct Stretch {
    count: Kernel,
    range: Kernel,
    /// Histogram of codes, zero between frames.
    counts: Memory<u32>,
    /// Code of black, factor to white, and code of white.
    found: Memory<i32>,
    blocks: u32,
}

impl Stretch {
    fn new(cuda: &Cuda, plan: &Plan) -> Result<Self> {
        Ok(Self {
            count: cuda.device.kernel(&GRAY, "gray_count", "ingest")?,
            range: cuda.device.kernel(&GRAY, "gray_range", "ingest")?,
            counts: Memory::with(cuda, "device memory", &[0; BINS])?,
            found: Memory::with(cuda, "device memory", &[0; 4])?,
            blocks: plan.frame.geometry.height.min(4 * cuda.device.multiprocessors),
        })
    }

    fn launch(&self, frame: &DeviceFrame<'_>, buffers: &FrameBuffers) -> Result<()> {
        let (mask, stride) = frame.planes.mask.unwrap_or((0, 0));
        let (mask, counts, range) = (Address::<u8>::new(mask), self.counts.address(), self.found.address());
        let follows = u32::from(buffers.temporal.as_ref().is_some_and(State::is_warm));
        let planes = frame.args();
        // SAFETY: the parameters of the kernels of kernels/gray.cu. `new` has made counts for all codes and the range; `Backend::check`
        // has compared the frame with the plan, and whoever made it has promised that the mask has its size.
        unsafe {
            let count = &mut args![mask, counts, stride, planes];
            buffers.queue.launch(&self.count, (self.blocks, 1), GRAY_THREADS, count)?;
            buffers.queue.launch(&self.range, (1, 1), 1024, &mut args![counts, range, follows])
        }
    }
}

pub(crate) struct Ingest {
    kernel: Kernel,
    stretch: Option<Stretch>,
    /// `None` for plans without masks.
    masking: Option<Masking>,
    args: IngestArgs,
    blocks: u32,
}

impl Ingest {
    pub fn new(cuda: &Cuda, plan: &Plan, buffers: &FrameBuffers) -> Result<Self> {
        let stretch = plan.stretches.then(|| Stretch::new(cuda, plan)).transpose()?;
        let name = match (has_any_layout(plan.frame.format), plan.frame.format.bits() > 10) {
            (false, false) => "ingest",
            (false, true) => "ingest_wide",
            (true, false) => "ingest_any",
            (true, true) => "ingest_any_wide",
        };
        let name = if plan.stretches { "ingest_stretched" } else { name };
        let kernel = cuda.device.kernel(&MODULE, name, "ingest")?;
        let step = plan.grid.sample_step();
        let (width, height) = (plan.frame.geometry.width, plan.frame.geometry.height);
        let resident = kernel.resident_blocks(INGEST_THREADS)? * cuda.device.multiprocessors;
        Ok(Self {
            args: IngestArgs {
                space: SpaceArgs::new(ColorTables::shared(plan.color_space, 8)?),
                sample_shift: step.ilog2(),
                sample_width: width.div_ceil(step),
                // All words except the two of the grid's barrier.
                clear_words: (buffers.sums[0].len() - 2) as u32,
            },
            blocks: resident.min((width.div_ceil(128) * height).div_ceil(INGEST_THREADS / 32)).max(1),
            masking: plan.masked.then(|| Masking::new(cuda, plan)).transpose()?,
            kernel,
            stretch,
        })
    }
}

impl backend::Ingest<Cuda> for Ingest {
    fn ingest(&mut self, frame: &DeviceFrame<'_>, buffers: &mut FrameBuffers) -> Result<()> {
        crate::cuda::launch::check("ingest", buffers.queue.cuda.device.context.bind_to_thread())?;
        buffers.queue.mark("frame")?;
        let (tables, features) = (buffers.tables.address(), buffers.features());
        let (samples, clear) = (buffers.samples.address(), buffers.sums[0].address());
        let (planes, shape, blocks) = (frame.args(), self.args, (self.blocks, 1));
        // SAFETY: the parameters of `ingest` and those like it. `FrameBuffers::new` has made features, samples and tables for the plan,
        // `new` has taken `clear_words` from the length of `clear` and chosen the kernel that takes a range where one is found;
        // `Backend::check` has compared the frame with the plan.
        unsafe {
            if let Some(stretch) = &self.stretch {
                stretch.launch(frame, buffers)?;
                let range = stretch.found.address();
                let args = &mut args![tables, features, samples, clear, planes, shape, range];
                buffers.queue.launch(&self.kernel, blocks, INGEST_THREADS, args)?;
            } else {
                let args = &mut args![tables, features, samples, clear, planes, shape];
                buffers.queue.launch(&self.kernel, blocks, INGEST_THREADS, args)?;
            }
        }
        self.masking.as_ref().map_or(Ok(()), |masking| masking.launch(frame, buffers))
    }
}
