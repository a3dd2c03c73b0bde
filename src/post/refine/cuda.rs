// SPDX-License-Identifier: MPL-2.0
//! Stage `refine` on a CUDA device: one launch per sweep, between two label planes. Then labels become components
//! again, for `statistics`.

use super::Plan as Rule;
use crate::backend;
use crate::buffers::cuda::FrameBuffers;
use crate::cuda::Cuda;
use crate::cuda::abi::{Address, RefineArgs};
use crate::cuda::device::{ModuleCode, module_code};
use crate::cuda::launch::{Kernel, args};
use crate::cuda::memory::Memory;
use crate::cuda::tuning::{MERGE_THREADS, REFINE_THREADS, TABLE_THREADS, TILE_THREADS};
use crate::error::Result;
use crate::plan::Plan;
use crate::post::merge;

const MODULE: ModuleCode = module_code!("refine");

pub(crate) struct Refine {
    /// Adds up pixels and features of regions from their components; `None` if an earlier stage has.
    gather: Option<Kernel>,
    begin: Kernel,
    means: Kernel,
    sweep: Kernel,
    end: Kernel,
    args: RefineArgs,
    sweeps: u32,
    /// Two label planes, which sweeps read and write in turn.
    planes: [Memory<u16>; 2],
    mean: Memory<u64>,
    /// True if labels are kept for the next frame here rather than before merging.
    keeps: bool,
    /// Blocks for passes over components.
    blocks: u32,
}

impl Refine {
    pub fn new(cuda: &Cuda, plan: &Plan, buffers: &FrameBuffers, rule: Rule) -> Result<Self> {
        let kernel = |name| cuda.device.kernel(&MODULE, name, "refine");
        let (what, pixels) = ("device memory", buffers.geometry.pixels());
        let gathers = !plan.connectivity && plan.merge.is_none() && !plan.has_hierarchy_before_refine();
        Ok(Self {
            gather: match gathers {
                true => Some(cuda.device.kernel(&merge::cuda::MODULE, "merge_gather", "refine")?),
                false => None,
            },
            begin: kernel("refine_begin")?,
            means: kernel("refine_means")?,
            sweep: kernel("refine_sweep")?,
            end: kernel("refine_end")?,
            args: RefineArgs {
                width: buffers.geometry.width,
                height: buffers.geometry.height,
                straight: rule.straight,
                diagonal: rule.diagonal,
            },
            sweeps: rule.sweeps,
            planes: [Memory::new(cuda, what, pixels)?, Memory::new(cuda, what, pixels)?],
            mean: Memory::new(cuda, what, buffers.max_regions)?,
            keeps: !plan.merges(),
            blocks: (pixels as u32).div_ceil(MERGE_THREADS).clamp(1, 8 * cuda.device.multiprocessors),
        })
    }
}

impl backend::Refine<Cuda> for Refine {
    fn refine(&mut self, buffers: &mut FrameBuffers, _: &mut ()) -> Result<()> {
        let (components, counters) = (buffers.components(), buffers.counters());
        let (labels, regions) = (buffers.component_labels.address(), buffers.regions.address());
        let (features, mean, tiles) = (buffers.features(), self.mean.address(), buffers.tiles);
        let kept = buffers.temporal.as_ref().and_then(|state| state.early_labels()).filter(|_| self.keeps);
        let kept = kept.map_or(Address::NULL, Memory::address);
        let [mut from, mut to] = [&self.planes[0], &self.planes[1]].map(Memory::address);
        let shape = self.args;
        let label_blocks = (buffers.max_regions as u32).div_ceil(TABLE_THREADS);
        // SAFETY: the parameters of the kernels of kernels/refine.cu, and of `merge_gather`. Lists, labels and regions are as connectivity
        // or merging left them, whose numbers stay within what `FrameBuffers::new` has made; `new` has made planes of the frame's size,
        // as are features and `kept`, and a mean for each of the most regions. A tile's labels are no more than its pixels, for each
        // of which `FrameBuffers::new` has made a component label.
        unsafe {
            if let Some(gather) = &self.gather {
                let gathered = &mut args![components, labels, regions];
                buffers.queue.launch(gather, (self.blocks, 1), MERGE_THREADS, gathered)?;
            }
            let begin = &mut args![components, labels, regions, from, kept, mean, shape];
            buffers.queue.launch(&self.begin, tiles, TILE_THREADS, begin)?;
            for sweep in 0..self.sweeps {
                if sweep > 0 {
                    let means = &mut args![counters, regions, mean];
                    buffers.queue.launch(&self.means, (label_blocks, 1), TABLE_THREADS, means)?;
                }
                let planes = &mut args![from, to, features, mean, regions, shape];
                buffers.queue.launch(&self.sweep, tiles, REFINE_THREADS, planes)?;
                (from, to) = (to, from);
            }
            buffers.queue.launch(&self.end, tiles, TILE_THREADS, &mut args![components, from, labels, shape])
        }
    }
}
