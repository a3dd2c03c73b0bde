// SPDX-License-Identifier: MPL-2.0
//! Areas of priors on a CUDA device: of pixels and of regions, and the launches that go from the ones to the others.

use crate::cuda::Cuda;
use crate::cuda::abi::{Address, Components, Forest};
use crate::cuda::frame::Planes;
use crate::cuda::kernels::{
    prior_areas, prior_choose, prior_count, prior_cut, prior_name, prior_pairs, prior_regions, prior_relabel,
    prior_touching, prior_unlist,
};
use crate::cuda::memory::Memory;
use crate::cuda::queue::Queue;
use crate::cuda::tuning::{LABEL_THREADS, MASK_THREADS, TILE, TILE_THREADS};
use crate::error::Result;
use crate::image::Geometry;
use crate::plan::Plan;

/// Kernels and memory of areas that cut components.
struct Cut {
    cut: prior_cut::Kernel,
    pairs: prior_pairs::Kernel,
    regions: prior_regions::Kernel,
    unlist: prior_unlist::Kernel,
    touching: prior_touching::Kernel,
    /// Clusters of the components before they are cut.
    clusters: Memory<u32>,
}

/// Kernels and memory that find the area of most pixels of a region.
struct Vote {
    count: prior_count::Kernel,
    choose: prior_choose::Kernel,
    name: prior_name::Kernel,
    /// Hash table of labels and areas, with the pixels of each.
    keys: Memory<u64>,
    counts: Memory<u32>,
    best: Memory<u64>,
}

enum Way {
    Cuts(Cut),
    Votes(Vote),
}

/// What frames with priors need.
pub(crate) struct Areas {
    scale: prior_areas::Kernel,
    relabel: prior_relabel::Kernel,
    way: Way,
    /// Area of each pixel.
    pixels: Memory<u32>,
    /// Area of each region, before merges and behind them.
    regions: [Memory<u32>; 2],
    merges: bool,
    geometry: Geometry,
    tiles: (u32, u32),
    blocks: u32,
    region_blocks: u32,
}

impl Areas {
    pub fn new(cuda: &Cuda, plan: &Plan, max_regions: usize) -> Result<Self> {
        const INGEST: &str = "ingest";
        const STAGE: &str = "connectivity";
        let (device, what, n) = (&cuda.device, "memory of priors", plan.frame().geometry.pixels());
        let geometry = plan.frame().geometry;
        let blocks =
            |items: usize| (items as u32).div_ceil(MASK_THREADS).clamp(1, 8 * cuda.multiprocessors());
        // No pixel begins more than a run of one label and area, so that a third of the slots is free.
        let votes = (n + n / 2).next_power_of_two();
        let way = match plan.prior_cuts {
            true => Way::Cuts(Cut {
                cut: device.kernel(prior_cut::KERNEL, STAGE)?,
                pairs: device.kernel(prior_pairs::KERNEL, STAGE)?,
                regions: device.kernel(prior_regions::KERNEL, STAGE)?,
                unlist: device.kernel(prior_unlist::KERNEL, "merge")?,
                touching: device.kernel(prior_touching::KERNEL, "merge")?,
                clusters: Memory::new(cuda, what, n)?,
            }),
            false => Way::Votes(Vote {
                count: device.kernel(prior_count::KERNEL, STAGE)?,
                choose: device.kernel(prior_choose::KERNEL, STAGE)?,
                name: device.kernel(prior_name::KERNEL, STAGE)?,
                keys: Memory::new(cuda, what, votes)?,
                counts: Memory::new(cuda, what, votes)?,
                best: Memory::new(cuda, what, max_regions)?,
            }),
        };
        Ok(Self {
            scale: device.kernel(prior_areas::KERNEL, INGEST)?,
            relabel: device.kernel(prior_relabel::KERNEL, "merge")?,
            way,
            pixels: Memory::new(cuda, what, n)?,
            regions: [Memory::new(cuda, what, max_regions)?, Memory::new(cuda, what, max_regions)?],
            merges: plan.merges(),
            geometry,
            tiles: (geometry.width.div_ceil(TILE), geometry.height.div_ceil(TILE)),
            blocks: blocks(n),
            region_blocks: blocks(max_regions),
        })
    }

    /// The area of each pixel, where no region crosses one.
    pub fn cutting(&self) -> Option<&Memory<u32>> {
        matches!(self.way, Way::Cuts(_)).then_some(&self.pixels)
    }

    /// Clusters of the components before they are cut, where they are.
    pub fn clusters(&self) -> Option<&Memory<u32>> {
        match &self.way {
            Way::Cuts(cut) => Some(&cut.clusters),
            Way::Votes(_) => None,
        }
    }

    /// The area of each region before merges.
    pub fn of_superpixels(&self) -> Address<u32> {
        self.regions[0].address()
    }

    /// The area of each region behind merges, where there are any.
    pub fn of_regions(&self) -> Address<u32> {
        self.regions[usize::from(self.merges)].address()
    }

    /// Brings a frame's prior to the frame's size.
    pub fn scale(&self, queue: &Queue, planes: &Planes) -> Result<()> {
        let (keys, counts, votes) = match &self.way {
            Way::Cuts(_) => (Address::NULL, Address::NULL, 0),
            Way::Votes(vote) => (vote.keys.address(), vote.counts.address(), vote.keys.len() as u32),
        };
        let geometry = self.geometry;
        let (address, bytes, prior, stride) = planes
            .prior
            .map_or((0, 1, geometry, 0), |prior| (prior.address, prior.bytes, prior.geometry, prior.stride));
        let args = prior_areas::Args {
            samples: Address::new(address),
            areas: self.pixels.address(),
            keys,
            counts,
            votes,
            bytes,
            prior_width: prior.width,
            prior_height: prior.height,
            stride,
            width: geometry.width,
            height: geometry.height,
        };
        // SAFETY: `new` has made an area for each pixel, and keys and counts for so many votes; whoever made the frame has promised that the
        // prior has its size.
        unsafe { queue.launch(&self.scale, (self.blocks, 1), MASK_THREADS, &args) }
    }

    /// Cuts the components that labels have left, where areas do: `c` is the list that all later stages read.
    pub fn cut(&self, queue: &Queue, c: &Components, features: Address<u32>) -> Result<()> {
        let Way::Cuts(cut) = &self.way else { return Ok(()) };
        let (clusters, Geometry { width, height }) = (cut.clusters.address(), self.geometry);
        let args = prior_cut::Args { c, clusters, features, width, height };
        // SAFETY: `FrameBuffers::new` has made lists for a component a pixel, of which there are no more behind the cut, and edges for two;
        // `new` clusters for as many.
        unsafe {
            queue.launch(&cut.cut, self.tiles, LABEL_THREADS, &args)?;
            queue.launch(&cut.pairs, (self.blocks, 1), MASK_THREADS, &prior_pairs::Args { c })
        }
    }

    /// Lists all pairs that touch, also those that [`Self::cut`] has taken away.
    pub fn list_all(&self, queue: &Queue, c: &Components) -> Result<()> {
        let Way::Cuts(cut) = &self.way else { return Ok(()) };
        let Geometry { width, height } = self.geometry;
        // SAFETY: components are as connectivity has left them; `FrameBuffers::new` has made room for two pairs a pixel.
        unsafe {
            queue.launch(&cut.unlist, (1, 1), MASK_THREADS, &prior_unlist::Args { c })?;
            queue.launch(&cut.touching, self.tiles, TILE_THREADS, &prior_touching::Args { c, width, height })
        }
    }

    /// Finds the area of each region that connectivity has left.
    pub fn name(&self, queue: &Queue, c: &Components, component_label: Address<u16>) -> Result<()> {
        let (blocks, region_areas) = ((self.blocks, 1), self.of_superpixels());
        // SAFETY: labels are as connectivity left them, below the most regions, for each of which `new` has made an area, and a key of its
        // best one; a run of pixels has a slot of the table of votes.
        unsafe {
            match &self.way {
                Way::Cuts(cut) => {
                    let args = prior_regions::Args { c, component_label, region_areas };
                    queue.launch(&cut.regions, blocks, MASK_THREADS, &args)
                }
                Way::Votes(Vote { count, choose, name, keys, counts, best }) => {
                    let Geometry { width, height } = self.geometry;
                    let (areas, votes, best) = (self.pixels.address(), keys.len() as u32, best.address());
                    let (keys, counts) = (keys.address(), counts.address());
                    let counted = prior_count::Args {
                        c,
                        component_label,
                        areas,
                        keys,
                        counts,
                        best,
                        votes,
                        width,
                        height,
                    };
                    queue.launch(count, self.tiles, TILE_THREADS, &counted)?;
                    queue.launch(
                        choose,
                        blocks,
                        MASK_THREADS,
                        &prior_choose::Args { keys, counts, best, votes },
                    )?;
                    let named = prior_name::Args { best, counters: c.counters, region_areas };
                    queue.launch(name, (self.region_blocks, 1), MASK_THREADS, &named)
                }
            }
        }
    }

    /// Gives merged regions their areas; `forest` says what superpixels became.
    pub fn relabel(&self, queue: &Queue, forest: &Forest) -> Result<()> {
        let [from, to] = [self.regions[0].address(), self.regions[1].address()];
        let args = prior_relabel::Args { forest, from, to };
        // SAFETY: `new` has made an area for each of the most regions; who calls has made the forest of as many.
        unsafe { queue.launch(&self.relabel, (self.region_blocks, 1), MASK_THREADS, &args) }
    }
}
