// SPDX-License-Identifier: MPL-2.0
//! Memory that the stages of a frame share on a CUDA device, allocated with the plan, and the graph that replays a
//! frame's stages.

use std::sync::Mutex;

use once_cell::sync::OnceCell;

use super::batch_exports::BatchExports;
use super::device_results::{Downloads, Exports};
use super::frame_list::FrameList;
use super::prior::Areas;
use crate::color::{ColorSpace, ColorTables};
use crate::cpu::memory::{self, Array};
use crate::cuda::abi::{
    Address, COUNTER_BEFORE_PRIOR, ComponentSums, Components, FRAME_COUNTERS, RegionSums, Track,
};
use crate::cuda::frame::Planes;
use crate::cuda::graph::Graph;
use crate::cuda::launch::{Frames, check};
use crate::cuda::memory::Memory;
use crate::cuda::queue::Queue;
use crate::cuda::results::ResultPool;
use crate::cuda::tuning::{SMALL_TILES, TILE};
use crate::cuda::{Cuda, DeviceFrame};
use crate::error::Result;
use crate::grid::Grid;
use crate::image::NO_LABEL;
use crate::params::Outputs;
use crate::plan::Plan;
use crate::regions::{MergeStep, Neighbor, Region};
use crate::temporal::device::State;

/// Memory of the adjacency list, allocated on first use.
pub(crate) struct NeighborMemory {
    pub slots: u32,
    pub keys: Memory<u32>,
    pub lengths: Memory<u32>,
    pub degree: Memory<u32>,
    pub bucketed: Memory<[u32; 2]>,
    pub pairs: Memory<Neighbor>,
}

/// Memory of the list of merges.
pub(crate) struct MergeMemory {
    pub steps: Memory<MergeStep>,
    pub count: Memory<u32>,
}

impl MergeMemory {
    /// Allocates memory for at most `max_regions` regions; `None` if the plan lists no merges.
    fn of(cuda: &Cuda, plan: &Plan, max_regions: usize) -> Result<Option<Self>> {
        if !plan.lists_merges() {
            return Ok(None);
        }
        let what = "list of merges";
        Ok(Some(Self { steps: Memory::new(cuda, what, max_regions)?, count: Memory::new(cuda, what, 1)? }))
    }
}

struct Recorded {
    planes: Planes,
    /// How many, and whether some of them are absent.
    frames: (u32, bool),
    outputs: Outputs,
    phase: (bool, usize),
    graph: Graph,
}

/// Device memory that the stages of a frame share.
pub struct FrameBuffers {
    pub(crate) geometry: crate::image::Geometry,
    pub(crate) tiles: (u32, u32),
    /// Most regions that a frame can have.
    pub(crate) max_regions: usize,
    pub(crate) tables: Memory<u32>,
    /// The packed color plane without temporal mode.
    features: Option<Memory<u32>>,
    /// State from frame to frame in temporal mode, which includes the color planes of this frame and the last.
    pub(crate) temporal: Option<State>,
    pub(crate) samples: Memory<u32>,
    /// Seeds of the cells, for plans with masks.
    pub(crate) seeds: Option<Memory<u32>>,
    /// SLIC's accumulators of the first round, or quick shift's densities, followed by the counters, all of which
    /// ingest clears; then SLIC's two more sets.
    pub(crate) sums: [Memory<u32>; 3],
    /// The label plane; in temporal mode, frames alternate between this and a second one.
    pub(crate) first_labels: Memory<u16>,
    pub(super) downloads: Mutex<Downloads>,
    pub(super) results: ResultPool,
    pub(crate) component_labels: Memory<u16>,
    pub(crate) regions: Memory<RegionSums>,
    pub(crate) means: Memory<u64>,
    pub(crate) records: Memory<Region>,
    pub(crate) neighbors: Option<NeighborMemory>,
    pub(crate) merges: Option<MergeMemory>,
    /// [`Plan::components_hold`].
    pub(crate) components_hold: bool,
    /// Most touching pairs that a frame can have.
    pub(crate) max_pairs: usize,
    /// Pixels from which a component never joins another.
    large: u32,
    local: Memory<u16>,
    tile_first: Memory<u32>,
    tile_count: Memory<u32>,
    parent: Memory<u32>,
    cluster: Memory<u32>,
    component_sums: Memory<ComponentSums>,
    edges: Memory<[u32; 2]>,
    /// For plans with priors.
    pub(crate) areas: Option<Areas>,
    graphs: Vec<Recorded>,
    pub(super) frames: Option<FrameList>,
    /// Which memory each frame of the last batch has; in temporal mode that of its stream.
    pub(super) members: Vec<usize>,
    /// The other way around, of those that are launched together.
    pub(super) placed: Vec<Option<usize>>,
    /// The memory of the frame of a batch that is drawn on, while it is.
    pub(crate) drawn: Option<usize>,
    pub(super) exports: OnceCell<Exports>,
    pub(super) batch_exports: OnceCell<BatchExports>,
    /// Dropped last, because it may hold the context.
    pub(crate) queue: Queue,
}

impl FrameBuffers {
    /// Allocates memory for the frames of a plan. Its algorithm adds up in three sets of `sums_words` words, the first
    /// of which is zero when a frame starts, and in temporal mode leaves `carried_words` words to the next frame.
    pub(crate) fn new(cuda: &Cuda, plan: &Plan, sums_words: usize, carried_words: usize) -> Result<Self> {
        let geometry = plan.frame.geometry;
        let n = geometry.pixels();
        let tiles = (geometry.width.div_ceil(TILE), geometry.height.div_ceil(TILE));
        let tile_count = tiles.0 as usize * tiles.1 as usize;
        let max_regions = plan.max_regions();
        let clusters = plan.max_clusters();
        let what = "device memory";
        let first_words = if plan.clusters_are_pixels() { n } else { sums_words };
        Ok(Self {
            queue: Queue::new(cuda),
            geometry,
            tiles,
            max_regions,
            tables: Memory::with(
                cuda,
                what,
                &ColorTables::shared(plan.color_space, plan.frame.format.bits())?.device_words(),
            )?,
            features: match plan.temporal {
                Some(_) => None,
                None => Some(Memory::new(cuda, what, n)?),
            },
            temporal: match &plan.temporal {
                Some(temporal) => Some(State::new(cuda, plan, temporal, max_regions, carried_words)?),
                None => None,
            },
            samples: Memory::new(cuda, what, n)?,
            seeds: match plan.masked {
                true => Some(Memory::new(cuda, what, plan.grid.cells())?),
                false => None,
            },
            sums: [
                Memory::new(cuda, what, first_words + FRAME_COUNTERS + 2)?,
                Memory::new(cuda, what, sums_words)?,
                Memory::new(cuda, what, sums_words)?,
            ],
            first_labels: Memory::new(cuda, what, n)?,
            downloads: Mutex::new(Downloads::new(cuda)?),
            results: ResultPool::default(),
            component_labels: Memory::new(cuda, what, n)?,
            regions: Memory::new(cuda, what, max_regions)?,
            means: Memory::new(cuda, what, max_regions)?,
            records: Memory::new(cuda, what, max_regions)?,
            neighbors: None,
            merges: MergeMemory::of(cuda, plan, max_regions)?,
            components_hold: plan.components_hold(),
            // Connected regions form a planar graph. Without connectivity a pixel's neighbor belongs to a cluster at
            // most three cells away, which gives half of 7x7 - 1 pairs a cluster. No pixel begins more than two pairs.
            // Refining moves pixels further.
            max_pairs: match plan.refine {
                _ if plan.connectivity => 3 * max_regions,
                None => (24 * clusters).min(2 * n),
                Some(_) => 2 * n,
            },
            // Merging needs pairs of any size, and so does doubling the smallest region.
            large: match plan.merge {
                None if !plan.may_overflow() => plan.min_region,
                _ => u32::MAX,
            },
            local: Memory::new(cuda, what, n)?,
            tile_first: Memory::new(cuda, what, tile_count)?,
            tile_count: Memory::new(cuda, what, tile_count)?,
            parent: Memory::new(cuda, what, n)?,
            cluster: Memory::new(cuda, what, n)?,
            component_sums: Memory::new(cuda, what, n)?,
            edges: Memory::new(cuda, what, 2 * n)?,
            areas: if plan.prior { Some(Areas::new(cuda, plan, max_regions)?) } else { None },
            graphs: Vec::new(),
            frames: FrameList::of(cuda)?,
            members: Vec::new(),
            placed: Vec::new(),
            drawn: None,
            exports: OnceCell::new(),
            batch_exports: OnceCell::new(),
        })
    }

    /// Address of the packed color plane.
    pub(crate) fn features(&self) -> Address<u32> {
        let plane = self.temporal.as_ref().map(State::features).or(self.features.as_ref());
        plane.map_or(Address::NULL, Memory::address)
    }

    /// Address of the cells' seeds; null if these are the cells' centers.
    pub(crate) fn seeds(&self) -> Address<u32> {
        self.seeds.as_ref().map_or(Address::NULL, Memory::address)
    }

    /// The label plane of this frame.
    pub(crate) fn labels(&self) -> &Memory<u16> {
        self.temporal.as_ref().and_then(State::labels).unwrap_or(&self.first_labels)
    }

    /// Address of the tracks of regions; null without temporal mode.
    pub(crate) fn tracks(&self) -> Address<Track> {
        self.temporal.as_ref().map_or(Address::NULL, State::tracks)
    }

    /// The same of a frame of a batch.
    pub(crate) fn tracks_of(&self, memory: usize) -> Address<Track> {
        let tracks = self.temporal.as_ref().map(State::track_memory);
        tracks.map_or(Address::NULL, |tracks| tracks.of_frame(&self.queue.cuda, memory).address())
    }

    /// Returns true if labeling takes as long as one tile's rows, because the tiles are too few to fill the device.
    pub(crate) fn has_few_tiles(&self) -> bool {
        self.tiles.0 * self.tiles.1 <= SMALL_TILES * self.queue.cuda.multiprocessors()
    }

    pub(crate) fn counters(&self) -> Address<u32> {
        self.sums[0].address().item(self.sums[0].len() - FRAME_COUNTERS - 2)
    }

    pub(crate) fn components(&self) -> Components {
        Components {
            local: self.local.address(),
            tile_first: self.tile_first.address(),
            tile_count: self.tile_count.address(),
            parent: self.parent.address(),
            cluster: self.cluster.address(),
            sums: self.component_sums.address(),
            edges: self.edges.address(),
            counters: self.counters(),
            prior: self.areas.as_ref().and_then(Areas::cutting).map_or(Address::NULL, Memory::address),
            large: self.large,
            unused: 0,
        }
    }

    /// The lists that labels are written to: where areas cut components, others than those of all later stages, which ask for no pairs.
    pub(crate) fn labeled_components(&self) -> Components {
        let own = self.components();
        match self.areas.as_ref().and_then(Areas::clusters) {
            None => own,
            Some(clusters) => Components {
                cluster: clusters.address(),
                counters: own.counters.item(COUNTER_BEFORE_PRIOR),
                large: 0,
                ..own
            },
        }
    }

    /// Slots of the table of touching pairs.
    fn neighbor_slots(&self) -> usize {
        (2 * self.max_pairs.max(1)).next_power_of_two()
    }

    /// Bytes of the longest array that is made later than the others, for the adjacency list.
    pub(crate) fn longest_later(&self) -> usize {
        (self.neighbor_slots() * size_of::<u32>()).max(2 * self.max_pairs * size_of::<[u32; 2]>())
    }

    pub(crate) fn prepare_neighbors(&mut self) -> Result<()> {
        if self.neighbors.is_none() {
            let (cuda, what) = (&self.queue.cuda, "neighbor memory");
            let slots = self.neighbor_slots();
            self.neighbors = Some(NeighborMemory {
                slots: slots as u32,
                keys: Memory::new(cuda, what, slots)?,
                lengths: Memory::new(cuda, what, slots)?,
                degree: Memory::new(cuda, what, 2 * (self.max_regions + 1))?,
                bucketed: Memory::new(cuda, what, 2 * self.max_pairs)?,
                pairs: Memory::new(cuda, what, self.max_pairs)?,
            });
        }
        Ok(())
    }

    /// Serves another plan; see [`Backend::change`](crate::backend::Backend::change).
    pub(crate) fn change(&mut self, plan: &Plan, growth: Option<f64>) -> Result<()> {
        // Graphs, and the memory that they use, may still be in use.
        self.queue.cuda.synchronize()?;
        self.graphs.clear();
        self.components_hold = plan.components_hold();
        if self.merges.is_some() != plan.lists_merges() {
            self.merges = MergeMemory::of(&self.queue.cuda, plan, self.max_regions)?;
        }
        match (&mut self.temporal, &plan.temporal) {
            (Some(state), Some(temporal)) => state.change(&self.queue.cuda, temporal, growth),
            _ => Ok(()),
        }
    }

    /// Replays the graph of an equal frame, or records it first.
    pub(crate) fn replay(
        &mut self,
        frame: &DeviceFrame<'_>,
        outputs: Outputs,
        stages: &mut (dyn FnMut(&mut FrameBuffers) -> Result<()> + Send),
    ) -> Result<()> {
        /// Most graphs that are kept: frames come from small pools, so more addresses are no pool. In temporal mode
        /// planes alternate, which makes two graphs per address.
        const KEPT: usize = 128;
        let stage = "graph";
        check(stage, self.queue.cuda.device.context.bind_to_thread())?;
        if self.queue.is_profiling() {
            return stages(self);
        }
        let phase = self.temporal.as_ref().map_or((false, 0), State::phase);
        let Frames { count, batch } = self.queue.frames;
        let frames = (count, batch.some != 0);
        // A list says where the planes of several frames are.
        let planes = if batch.planes.raw() == 0 { frame.planes } else { frame.planes.without_addresses() };
        let fits =
            |g: &&Recorded| (g.planes, g.frames, g.outputs, g.phase) == (planes, frames, outputs, phase);
        if let Some(recorded) = self.graphs.iter().find(fits) {
            return self.launch_graph(&recorded.graph);
        }
        let graph = self.record(stages)?;
        self.launch_graph(&graph)?;
        if self.graphs.len() == KEPT {
            self.queue.cuda.synchronize()?;
            self.graphs.clear();
        }
        self.graphs.push(Recorded { planes, frames, outputs, phase, graph });
        Ok(())
    }

    fn record(&mut self, stages: &mut (dyn FnMut(&mut FrameBuffers) -> Result<()> + Send)) -> Result<Graph> {
        self.queue.begin_recording()?;
        let staged = stages(self);
        match (staged, self.queue.end_recording()) {
            (Ok(()), Some(recording)) => recording.finish(),
            (Err(error), _) => Err(error),
            (Ok(()), None) => unreachable!("the recording has begun"),
        }
    }

    /// Launches the recorded stages on the stream.
    fn launch_graph(&self, graph: &Graph) -> Result<()> {
        // SAFETY: what the graph works on is `self`'s memory, which `drop` waits for, and the frame that it was found by or recorded
        // for, which the caller of `replay` borrows.
        unsafe { graph.launch(&self.queue.cuda.stream) }
    }

    /// Runs launches on a branch, parallel to those that follow, until [`Queue::join`]. While profiling, stages run one
    /// after the other.
    pub(crate) fn fork(&mut self, launches: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        self.queue.begin_beside();
        let launched = launches(self);
        self.queue.end_beside();
        launched
    }

    /// Keeps results in the slots of `other`, which has the same plan.
    #[cfg(feature = "gst")]
    pub(crate) fn share_results(&mut self, other: &FrameBuffers) {
        self.results = other.results.clone();
    }

    /// Copies the packed colors to the host, for comparisons.
    pub fn read_features(&self) -> Result<Vec<u32>> {
        let mut out = vec![0; self.geometry.pixels()];
        if let Some(plane) = self.temporal.as_ref().map(State::features).or(self.features.as_ref()) {
            plane.read(&self.queue.cuda, "features", 0, &mut out)?;
        }
        Ok(out)
    }

    /// Puts packed colors where stage `ingest` leaves them, with all else that it leaves. Waits for the device.
    pub(crate) fn load(&mut self, grid: &Grid, colors: &[u32]) -> Result<()> {
        const STAGE: &str = "ingest";
        let Self { queue: Queue { cuda, .. }, features, samples, seeds, sums, geometry, .. } = self;
        let (width, step) = (geometry.width as usize, grid.sample_step() as usize);
        if let Some(features) = features {
            features.write(cuda, STAGE, 0, colors)?;
        }
        let mut sampled = Array::new();
        memory::reserve(
            &mut sampled,
            "samples",
            width.div_ceil(step) * (geometry.height as usize).div_ceil(step),
        )?;
        for row in colors.chunks(width).step_by(step) {
            sampled.extend(row.iter().step_by(step).copied());
        }
        samples.write(cuda, STAGE, 0, &sampled)?;
        if let Some(seeds) = seeds {
            let mut places = Array::new();
            memory::reserve(&mut places, "seeds", grid.cells())?;
            for gy in 0..grid.ny() as usize {
                let row = (0..grid.nx() as usize).map(|gx| grid.seed_inside(colors, gx, gy));
                places.extend(row.map(|(x, y)| (y as u32) << 16 | x as u32));
            }
            seeds.write(cuda, STAGE, 0, &places)?;
        }
        // All words but the two of the grid's barrier.
        let clear: Array<u32> = memory::zeroed("sums", sums[0].len() - 2)?;
        sums[0].write(cuda, STAGE, 0, &clear)
    }

    /// Reads the cluster of each pixel, the largest number outside of a mask, after the algorithm's stages. Waits for the device.
    pub(crate) fn read_clusters(&self, clusters: &mut [u16]) -> Result<()> {
        const STAGE: &str = "read clusters";
        let (cuda, width) = (&self.queue.cuda, self.geometry.width as usize);
        let tiles = self.tile_first.len();
        let mut list: Array<u32> = memory::zeroed("tiles", 2 * tiles)?;
        let (firsts, counts) = list.split_at_mut(tiles);
        self.tile_first.read(cuda, STAGE, 0, firsts)?;
        self.tile_count.read(cuda, STAGE, 0, counts)?;
        let ends = firsts.iter().zip(&*counts).map(|(first, count)| first + count);
        let cluster = self.areas.as_ref().and_then(Areas::clusters).unwrap_or(&self.cluster);
        let components = (ends.max().unwrap_or(0) as usize).min(cluster.len());
        let mut names: Array<u32> = memory::zeroed("components", components)?;
        cluster.read(cuda, STAGE, 0, &mut names)?;
        // Each pixel has its component's number in its tile.
        self.local.read(cuda, STAGE, 0, clusters)?;
        let tile = TILE as usize;
        for (y, row) in clusters.chunks_mut(width).enumerate() {
            let firsts = &firsts[y / tile * self.tiles.0 as usize..];
            for (part, &first) in row.chunks_mut(tile).zip(firsts) {
                for pixel in part {
                    *pixel =
                        names.get(first as usize + usize::from(*pixel)).map_or(NO_LABEL, |&name| name as u16);
                }
            }
        }
        Ok(())
    }

    /// Tables of `lab`, which mean colors need if features are of another space.
    pub(crate) fn lab_tables(cuda: &Cuda) -> Result<Memory<u32>> {
        Memory::with(cuda, "device memory", &ColorTables::shared(ColorSpace::Lab, 8)?.device_words())
    }
}

impl Drop for FrameBuffers {
    fn drop(&mut self) {
        // Waits before memory, graphs and kernels in use are freed. In a broken context none of them runs any more.
        let _ = self.queue.cuda.synchronize();
    }
}
