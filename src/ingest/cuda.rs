// SPDX-License-Identifier: MPL-2.0
//! Stage `ingest` on a CUDA device: launches of kernels/color.cu, mask.cu and gray.cu.

use super::BINS;
use crate::backend;
use crate::buffers::cuda::FrameBuffers;
use crate::color::ColorTables;
use crate::cuda::abi::{Address, GridArgs, IngestArgs, SpaceArgs};
use crate::cuda::frame::has_any_layout;
use crate::cuda::kernels::{
    gray_count, gray_range, ingest, ingest_any, ingest_any_wide, ingest_stretched, ingest_wide, mask_outside,
    mask_seeds,
};
use crate::cuda::memory::Memory;
use crate::cuda::tuning::{GRAY_THREADS, INGEST_THREADS, MASK_THREADS};
use crate::cuda::{Cuda, DeviceFrame};
use crate::error::Result;
use crate::plan::Plan;
use crate::temporal::device::State;

/// Launches that take away what is outside of masks.
struct Masking {
    outside: mask_outside::Kernel,
    seeds: mask_seeds::Kernel,
    grid: GridArgs,
    blocks: u32,
}

impl Masking {
    fn new(cuda: &Cuda, plan: &Plan) -> Result<Self> {
        let most = 8 * cuda.multiprocessors();
        Ok(Self {
            outside: cuda.device.kernel(mask_outside::KERNEL, "ingest")?,
            seeds: cuda.device.kernel(mask_seeds::KERNEL, "ingest")?,
            grid: GridArgs::new(&plan.grid),
            blocks: (plan.frame.geometry.pixels() as u32).div_ceil(MASK_THREADS).min(most),
        })
    }

    fn launch(&self, frame: &DeviceFrame<'_>, buffers: &FrameBuffers) -> Result<()> {
        let (mask, stride) = frame.planes.mask.unwrap_or((0, 0));
        let (features, grid) = (buffers.features(), &self.grid);
        // SAFETY: `FrameBuffers::new` has made features, samples, counters and, as masks were planned, seeds; whoever made the frame has
        // promised that the mask has its size.
        unsafe {
            buffers.queue.launch(
                &self.outside,
                (self.blocks, 1),
                MASK_THREADS,
                &mask_outside::Args {
                    mask: Address::new(mask),
                    features,
                    samples: buffers.samples.address(),
                    counters: buffers.counters(),
                    stride,
                    grid,
                },
            )?;
            let blocks = ((grid.nx * grid.ny).div_ceil(MASK_THREADS / 32), 1);
            let seeds = mask_seeds::Args { features, seeds: buffers.seeds(), grid };
            buffers.queue.launch(&self.seeds, blocks, MASK_THREADS, &seeds)
        }
    }
}

/// Kernels that find the range of 16-bit gray, which stays on the device.
struct Stretch {
    count: gray_count::Kernel,
    range: gray_range::Kernel,
    ingest: ingest_stretched::Kernel,
    /// Pixels in each group of codes, zero between frames.
    counts: Memory<u32>,
    /// Code of black, factor to white, and code of white.
    found: Memory<i32>,
    blocks: u32,
}

impl Stretch {
    fn new(cuda: &Cuda, plan: &Plan) -> Result<Self> {
        Ok(Self {
            count: cuda.device.kernel(gray_count::KERNEL, "ingest")?,
            range: cuda.device.kernel(gray_range::KERNEL, "ingest")?,
            ingest: cuda.device.kernel(ingest_stretched::KERNEL, "ingest")?,
            counts: Memory::new(cuda, "device memory", BINS)?,
            found: Memory::new(cuda, "device memory", 4)?,
            blocks: plan.frame.geometry.height.min(4 * cuda.multiprocessors()),
        })
    }

    fn launch(&self, frame: &DeviceFrame<'_>, buffers: &FrameBuffers) -> Result<()> {
        let (mask, mask_stride) = frame.planes.mask.unwrap_or((0, 0));
        let (mask, counts, range) = (Address::new(mask), self.counts.address(), self.found.address());
        let follows = u32::from(buffers.temporal.as_ref().is_some_and(State::is_warm));
        // SAFETY: `new` has made counts for all codes and the range; `Backend::check` has compared the frame with the plan, and whoever
        // made it has promised that the mask has its size.
        unsafe {
            let count = gray_count::Args { mask, counts, mask_stride, frame: &frame.args() };
            buffers.queue.launch(&self.count, (self.blocks, 1), GRAY_THREADS, &count)?;
            let range = gray_range::Args { counts, range, follows };
            buffers.queue.launch(&self.range, (1, 1), 1024, &range)
        }
    }
}

/// The kernel that makes colors of a frame's samples.
enum Conversion {
    Fixed(ingest::Kernel),
    Stretched(Box<Stretch>),
}

pub(crate) struct Ingest {
    conversion: Conversion,
    /// Where frames may have masks.
    masking: Option<Masking>,
    args: IngestArgs,
    blocks: u32,
}

impl Ingest {
    pub fn new(cuda: &Cuda, plan: &Plan, buffers: &FrameBuffers) -> Result<Self> {
        let kernel = match (has_any_layout(plan.frame.format), plan.frame.format.bits() > 10) {
            (false, false) => ingest::KERNEL,
            (false, true) => ingest_wide::KERNEL,
            (true, false) => ingest_any::KERNEL,
            (true, true) => ingest_any_wide::KERNEL,
        };
        let conversion = match plan.stretches {
            false => Conversion::Fixed(cuda.device.kernel(kernel, "ingest")?),
            true => Conversion::Stretched(Box::new(Stretch::new(cuda, plan)?)),
        };
        let resident = match &conversion {
            Conversion::Fixed(kernel) => kernel.resident_blocks(INGEST_THREADS)?,
            Conversion::Stretched(stretch) => stretch.ingest.resident_blocks(INGEST_THREADS)?,
        };
        let resident = resident * cuda.multiprocessors();
        let step = plan.grid.sample_step();
        let (width, height) = (plan.frame.geometry.width, plan.frame.geometry.height);
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
            conversion,
        })
    }
}

impl backend::Ingest<Cuda> for Ingest {
    fn ingest(&mut self, frame: &DeviceFrame<'_>, buffers: &mut FrameBuffers) -> Result<()> {
        crate::cuda::launch::check("ingest", buffers.queue.cuda.device.context.bind_to_thread())?;
        buffers.queue.mark("frame")?;
        let (tables, features) = (buffers.tables.address().cast(), buffers.features());
        let (samples, clear) = (buffers.samples.address(), buffers.sums[0].address());
        let (planes, blocks) = (frame.args(), (self.blocks, 1));
        // SAFETY: `FrameBuffers::new` has made features, samples and tables for the plan, `new` has taken `clear_words` from the length of
        // `clear`; `Backend::check` has compared the frame with the plan.
        unsafe {
            match &self.conversion {
                Conversion::Fixed(kernel) => {
                    let (frame, args) = (&planes, &self.args);
                    let args = ingest::Args { tables, features, samples, clear, frame, args };
                    buffers.queue.launch(kernel, blocks, INGEST_THREADS, &args)?;
                }
                Conversion::Stretched(stretch) => {
                    stretch.launch(frame, buffers)?;
                    let (range, frame, args) = (stretch.found.address(), &planes, &self.args);
                    let args =
                        ingest_stretched::Args { tables, features, samples, clear, frame, args, range };
                    buffers.queue.launch(&stretch.ingest, blocks, INGEST_THREADS, &args)?;
                }
            }
        }
        self.masking.as_ref().map_or(Ok(()), |masking| masking.launch(frame, buffers))?;
        buffers.areas.as_ref().map_or(Ok(()), |areas| areas.scale(&buffers.queue, &frame.planes))
    }
}
