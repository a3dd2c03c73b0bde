// SPDX-License-Identifier: MPL-2.0
//! Device memory of a plan, taken once, and the graph that replays a frame's stages.

use std::marker::PhantomData;
use std::sync::Mutex;

use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaEvent, CudaGraph, CudaSlice, DevicePtr, result, sys};

use super::bounce::{Bounce, DeviceRows};
use super::frame::{DeviceFrame, Planes};
use super::launch::{Argument, Kernel, check};
use super::results::{Counts, PARTS, Pinned, Pool, Results};
use super::tuning::{LATE_PICKER_PLACES, LATE_PLACES, SMALL_TILES, TILE};
use super::{Cuda, Traffic};
use crate::algo::temporal::cuda::State;
use crate::backend::StageTimes;
use crate::color::{ColorSpace, ColorTables};
use crate::error::Result;
use crate::image::Labels;
use crate::params::Outputs;
use crate::plan::Plan;
use crate::post::connectivity::cuda::{mark_words, small_pair_places};

/// An array in device memory.
pub(crate) struct Memory<T> {
    slice: CudaSlice<u8>,
    address: u64,
    len: usize,
    kind: PhantomData<T>,
}

impl<T> Memory<T> {
    /// Takes zeroed memory for `len` items, at least one.
    pub fn new(cuda: &Cuda, what: &'static str, len: usize) -> Result<Self> {
        check(what, cuda.device.context.bind_to_thread())?;
        let bytes = len.max(1) * size_of::<T>();
        let slice = check(what, cuda.stream.alloc_zeros::<u8>(bytes))?;
        let address = slice.device_ptr(&cuda.stream).0;
        Ok(Self { slice, address, len, kind: PhantomData })
    }

    /// Takes memory with the host's items in it.
    pub fn with(cuda: &Cuda, what: &'static str, items: &[T]) -> Result<Self>
    where
        T: bytemuck::Pod,
    {
        let mut memory = Self::new(cuda, what, items.len())?;
        let bytes: &[u8] = bytemuck::cast_slice(items);
        check(what, cuda.stream.memcpy_htod(bytes, &mut memory.slice))?;
        Ok(memory)
    }

    pub fn address(&self) -> u64 {
        self.address
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Puts a copy of `bytes` from item `first` on into pinned memory on the stream.
    pub fn fetch(
        &self,
        cuda: &Cuda,
        what: &'static str,
        first: usize,
        to: &mut Pinned,
        at: usize,
        len: usize,
    ) -> Result<()> {
        debug_assert!(first + len <= self.len.max(1));
        if len == 0 {
            return Ok(());
        }
        check(what, cuda.device.context.bind_to_thread())?;
        let from = self.address + (first * size_of::<T>()) as u64;
        // SAFETY: both ends hold the bytes, and `to` is not read before the stream has been waited for.
        unsafe { to.fetch(cuda, what, &cuda.stream, from, at, len * size_of::<T>()) }
    }

    /// Puts items in the place of those from `first` on; the host's may go at once.
    pub fn write(&mut self, cuda: &Cuda, what: &'static str, first: usize, items: &[T]) -> Result<()>
    where
        T: bytemuck::Pod,
    {
        check(what, cuda.device.context.bind_to_thread())?;
        let bytes: &[u8] = bytemuck::cast_slice(items);
        let start = first * size_of::<T>();
        check(what, cuda.stream.memcpy_htod(bytes, &mut self.slice.slice_mut(start..start + bytes.len())))?;
        check(what, cuda.stream.synchronize())
    }

    /// Copies the items from `first` on into `out` and waits for them.
    pub fn read(&self, cuda: &Cuda, what: &'static str, first: usize, out: &mut [T]) -> Result<()>
    where
        T: bytemuck::Pod,
    {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(out);
        if bytes.is_empty() {
            return Ok(());
        }
        check(what, cuda.device.context.bind_to_thread())?;
        check(
            what,
            cuda.stream.memcpy_dtoh(
                &self.slice.slice(first * size_of::<T>()..first * size_of::<T>() + bytes.len()),
                bytes,
            ),
        )?;
        check(what, cuda.stream.synchronize())
    }
}

/// `Components` of kernels/components.cuh.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Components {
    local: u64,
    tile_first: u64,
    tile_count: u64,
    parent: u64,
    cluster: u64,
    sums: u64,
    edges: u64,
    counters: u64,
    large: u32,
    unused: u32,
}

const _: () = assert!(size_of::<Components>() == 72);
// SAFETY: repr(C), the fields of `Components` in their order.
unsafe impl Argument for Components {}

/// Counters that a frame starts with as zero, the last four quick shift's; then come the two of the grid's barrier.
pub(crate) const FRAME_COUNTERS: usize = 40;
/// Where the number of regions stands.
pub(crate) const COUNTER_REGIONS: usize = 2;

/// Memory of the adjacency list, taken when it is first asked for.
pub(crate) struct NeighborMemory {
    pub slots: u32,
    pub keys: Memory<u32>,
    pub lengths: Memory<u32>,
    pub degree: Memory<u32>,
    pub placed: Memory<u64>,
    pub pairs: Memory<[u32; 3]>,
}

struct Recorded {
    planes: Planes,
    outputs: Outputs,
    phase: (bool, usize),
    graph: CudaGraph,
}

/// Device memory that the stages of a frame share.
pub struct Work {
    pub(crate) geometry: crate::image::Geometry,
    pub(crate) tiles: (u32, u32),
    /// Most regions that a frame can have.
    pub(crate) max_regions: usize,
    pub(crate) tables: Memory<u32>,
    /// The packed color plane where nothing lasts.
    features: Option<Memory<u32>>,
    /// What lasts from frame to frame, with the color planes of the last frame and this.
    pub(crate) temporal: Option<State>,
    pub(crate) samples: Memory<u32>,
    /// SLIC's accumulators in the first round, or quick shift's densities, with the counters behind them, all of which
    /// ingest clears; then SLIC's two more sets.
    pub(crate) sums: [Memory<u32>; 3],
    /// The label plane; where something lasts, frames take turns between this and another.
    pub(crate) first_labels: Memory<u16>,
    /// The lengths of a frame's results: labels, pairs.
    counts: Mutex<Pinned>,
    results: Pool,
    pub(crate) component_labels: Memory<u16>,
    pub(crate) picks: Memory<u64>,
    pub(crate) small_pairs: Memory<[u32; 2]>,
    pub(crate) late_pairs: Memory<[u32; 2]>,
    pub(crate) late_pickers: Memory<[u32; 2]>,
    pub(crate) marks: Memory<u32>,
    pub(crate) regions: Memory<[u64; 12]>,
    pub(crate) means: Memory<u32>,
    pub(crate) records: Memory<crate::regions::Region>,
    pub(crate) neighbors: Option<NeighborMemory>,
    max_pairs: usize,
    /// Pixels from which on a component never joins another.
    large: u32,
    local: Memory<u16>,
    tile_first: Memory<u32>,
    tile_count: Memory<u32>,
    parent: Memory<u32>,
    cluster: Memory<u32>,
    component_sums: Memory<[u64; 4]>,
    edges: Memory<u64>,
    graphs: Vec<Recorded>,
    profile: Option<Mutex<Vec<(&'static str, CudaEvent)>>>,
    bounce: Mutex<Option<Bounce>>,
    beside: Beside,
    /// A stream that only records: others may put work on the frames' stream at the same time, which must not get into a graph.
    recorder: Cuda,
    /// Last: it may hold the context.
    pub(crate) cuda: Cuda,
}

/// A stream for launches beside those of the frame's stages, and what both note for each other. Its launches are small and wait for
/// each other, so they go first: behind the blocks of a large one they would end after that.
struct Beside {
    begin: CudaEvent,
    end: CudaEvent,
    /// Whether the frame's stream has yet to wait for the end.
    under_way: bool,
    /// Last: it may hold the context.
    cuda: Cuda,
}

impl Beside {
    fn new(cuda: &Cuda) -> Result<Self> {
        Ok(Self { begin: cuda.event()?, end: cuda.event()?, under_way: false, cuda: cuda.urgent_lane()? })
    }
}

// SAFETY: the graphs' raw handles may be used from any thread; `&mut self` keeps that to one at a time.
unsafe impl Send for Work {}

impl Work {
    pub(crate) fn new(cuda: &Cuda, plan: &Plan) -> Result<Self> {
        let geometry = plan.frame.geometry;
        let n = geometry.pixels();
        let tiles = (geometry.width.div_ceil(TILE), geometry.height.div_ceil(TILE));
        let tile_count = tiles.0 as usize * tiles.1 as usize;
        let max_regions = plan.max_regions();
        let clusters = plan.max_clusters();
        let what = "device memory";
        let sums_words = plan.algorithm.sums_words(&plan.grid);
        let first_words = if plan.clusters_are_pixels() { n } else { sums_words };
        Ok(Self {
            cuda: cuda.clone(),
            geometry,
            tiles,
            max_regions,
            tables: Memory::with(
                cuda,
                what,
                &ColorTables::with_bits(plan.color_space, plan.frame.format.bits()).device_words(),
            )?,
            features: match plan.temporal {
                Some(_) => None,
                None => Some(Memory::new(cuda, what, n)?),
            },
            temporal: match &plan.temporal {
                Some(temporal) => Some(State::new(cuda, plan, temporal, max_regions)?),
                None => None,
            },
            samples: Memory::new(cuda, what, n)?,
            sums: [
                Memory::new(cuda, what, first_words + FRAME_COUNTERS + 2)?,
                Memory::new(cuda, what, sums_words)?,
                Memory::new(cuda, what, sums_words)?,
            ],
            first_labels: Memory::new(cuda, what, n)?,
            bounce: Mutex::new(None),
            counts: Mutex::new(Pinned::new(cuda, what, 8)?),
            results: Pool::default(),
            component_labels: Memory::new(cuda, what, n)?,
            picks: Memory::new(cuda, what, 2 * n)?,
            small_pairs: Memory::new(cuda, what, small_pair_places(n))?,
            late_pairs: Memory::new(cuda, what, LATE_PLACES as usize)?,
            late_pickers: Memory::new(cuda, what, LATE_PICKER_PLACES as usize)?,
            marks: Memory::new(cuda, what, mark_words(plan))?,
            regions: Memory::new(cuda, what, max_regions)?,
            means: Memory::new(cuda, what, max_regions)?,
            records: Memory::new(cuda, what, max_regions)?,
            neighbors: None,
            // Connected regions form a planar graph; without connectivity a pixel's neighbor is of a cluster at most
            // three cells away, which leaves half of 7x7 - 1 pairs a cluster; no pixel begins more than two pairs.
            max_pairs: if plan.connectivity { 3 * max_regions } else { (24 * clusters).min(2 * n) },
            // Merging goes over pairs of any size, and so does what makes regions fewer.
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
            graphs: Vec::new(),
            beside: Beside::new(cuda)?,
            recorder: cuda.lane()?,
            profile: None,
        })
    }

    /// The packed color plane.
    pub(crate) fn features(&self) -> u64 {
        let plane = self.temporal.as_ref().map(State::features).or(self.features.as_ref());
        plane.map_or(0, Memory::address)
    }

    /// The label plane of this frame.
    pub(crate) fn labels(&self) -> &Memory<u16> {
        self.temporal.as_ref().and_then(State::labels).unwrap_or(&self.first_labels)
    }

    /// Where the identities of regions stand; 0 where nothing lasts.
    pub(crate) fn tracks(&self) -> u64 {
        self.temporal.as_ref().map_or(0, State::tracks)
    }

    /// Whether the rows of a tile are what a frame's labels wait for, not the number of tiles.
    pub(crate) fn has_few_tiles(&self) -> bool {
        self.tiles.0 * self.tiles.1 <= SMALL_TILES * self.cuda.device.multiprocessors
    }

    pub(crate) fn counters(&self) -> u64 {
        self.sums[0].address() + 4 * (self.sums[0].len() - FRAME_COUNTERS - 2) as u64
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
            large: self.large,
            unused: 0,
        }
    }

    pub(crate) fn prepare_neighbors(&mut self) -> Result<()> {
        if self.neighbors.is_none() {
            let (cuda, what) = (&self.cuda, "neighbor memory");
            let slots = (2 * self.max_pairs.max(1)).next_power_of_two();
            self.neighbors = Some(NeighborMemory {
                slots: slots as u32,
                keys: Memory::new(cuda, what, slots)?,
                lengths: Memory::new(cuda, what, slots)?,
                degree: Memory::new(cuda, what, 2 * (self.max_regions + 1))?,
                placed: Memory::new(cuda, what, 2 * self.max_pairs)?,
                pairs: Memory::new(cuda, what, self.max_pairs)?,
            });
        }
        Ok(())
    }

    /// Serves another plan; see [`Backend::change`](crate::backend::Backend::change).
    pub(crate) fn change(&mut self, plan: &Plan, growth: Option<f64>) -> Result<()> {
        // Graphs and what they use may still be at work.
        self.cuda.synchronize()?;
        self.graphs.clear();
        match (&mut self.temporal, &plan.temporal) {
            (Some(state), Some(temporal)) => state.change(&self.cuda, temporal, growth),
            _ => Ok(()),
        }
    }

    /// Replays the stages of an equal frame, or records them first.
    pub(crate) fn replay(
        &mut self,
        frame: &DeviceFrame<'_>,
        outputs: Outputs,
        stages: &mut (dyn FnMut(&mut Work) -> Result<()> + Send),
    ) -> Result<()> {
        /// Frames come from small pools; more addresses than this are not a pool. What lasts takes turns, so that there
        /// are two graphs for an address.
        const KEPT: usize = 128;
        let stage = "graph";
        check(stage, self.cuda.device.context.bind_to_thread())?;
        if self.profile.is_some() {
            return stages(self);
        }
        let phase = self.temporal.as_ref().map_or((false, 0), State::phase);
        let fits = |g: &&Recorded| g.planes == frame.planes && g.outputs == outputs && g.phase == phase;
        if let Some(recorded) = self.graphs.iter().find(fits) {
            return self.launch_graph(&recorded.graph);
        }
        let stream = self.recorder.stream.clone();
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        check(stage, stream.begin_capture(mode))?;
        std::mem::swap(&mut self.cuda, &mut self.recorder);
        let recorded = stages(self);
        std::mem::swap(&mut self.cuda, &mut self.recorder);
        // Launches keep the urgency of the stream that they were put on.
        let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
        let graph = check(stage, stream.end_capture(flags));
        recorded?;
        let Some(graph) = graph? else {
            return stages(self);
        };
        self.launch_graph(&graph)?;
        if self.graphs.len() == KEPT {
            self.cuda.synchronize()?;
            self.graphs.clear();
        }
        self.graphs.push(Recorded { planes: frame.planes, outputs, phase, graph });
        Ok(())
    }

    /// Puts recorded stages on the stream.
    fn launch_graph(&self, graph: &CudaGraph) -> Result<()> {
        // SAFETY: the graph is whole and of this context. What it works on is `self`'s memory, which `drop` waits for, and
        // the frame that it was found by or recorded for, which the caller of `replay` borrows.
        check("graph", unsafe { result::graph::launch(graph.cu_graph_exec(), self.cuda.stream.cu_stream()) })
    }

    /// Puts a launch on the stream.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub(crate) unsafe fn launch(
        &self,
        kernel: &Kernel,
        grid: (u32, u32),
        threads: u32,
        args: &mut [*mut std::ffi::c_void],
    ) -> Result<()> {
        // SAFETY: promised by the caller.
        unsafe { kernel.launch(&self.cuda.stream, grid, threads, args)? };
        self.mark(kernel.stage)
    }

    /// Puts launches beside those that follow, until [`Work::join`]. While profiling, stages come one after the other.
    pub(crate) fn fork(&mut self, launches: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        if self.profile.is_some() {
            return launches(self);
        }
        self.cuda.mark(&self.beside.begin)?;
        self.beside.cuda.follow(&self.beside.begin)?;
        std::mem::swap(&mut self.cuda, &mut self.beside.cuda);
        let launched = launches(self);
        std::mem::swap(&mut self.cuda, &mut self.beside.cuda);
        self.beside.cuda.mark(&self.beside.end)?;
        self.beside.under_way = true;
        launched
    }

    /// What follows waits for the launches of [`Work::fork`].
    pub(crate) fn join(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.beside.under_way) {
            return Ok(());
        }
        self.cuda.follow(&self.beside.end)
    }

    /// Notes on the stream that a stage ends here, while profiling.
    pub(crate) fn mark(&self, stage: &'static str) -> Result<()> {
        if let Some(marks) = &self.profile {
            let flags = sys::CUevent_flags::CU_EVENT_DEFAULT;
            let event = check(stage, self.cuda.stream.record_event(Some(flags)))?;
            marks.lock().unwrap().push((stage, event));
        }
        Ok(())
    }

    /// Switches the device clocks of stages on or off; on, frames are not replayed from a graph.
    pub(crate) fn set_profiling(&mut self, on: bool) {
        self.profile = on.then(Mutex::default);
    }

    /// Device times of the stages since the last call; waits for them.
    pub(crate) fn take_device_times(&mut self) -> Result<StageTimes> {
        let mut times = StageTimes::default();
        let Some(marks) = &self.profile else { return Ok(times) };
        check("profile", self.cuda.stream.synchronize())?;
        let marks = std::mem::take(&mut *marks.lock().unwrap());
        for pair in marks.windows(2) {
            let ms = check("profile", pair[0].1.elapsed_ms(&pair[1].1))?;
            if pair[1].0 != "frame" {
                times.add(pair[1].0, std::time::Duration::from_secs_f64(f64::from(ms.max(0.0)) / 1e3));
            }
        }
        Ok(times)
    }

    /// Copies the label map down; waits for it.
    pub fn download_labels(&self, labels: &mut Labels<'_>) -> Result<()> {
        crate::cpu::check_labels(self.geometry, labels)?;
        let (row, stride) = (2 * self.geometry.width as usize, 2 * labels.stride());
        let from = DeviceRows {
            address: self.labels().address(),
            stride: row,
            row,
            rows: self.geometry.height as usize,
            place: 0,
        };
        let mut bounce = self.bounce.lock().unwrap();
        let bounce = match &mut *bounce {
            Some(bounce) => bounce,
            // Who reads labels in other ways never needs it.
            none => none.insert(Bounce::new(&self.cuda, 2 * self.geometry.pixels())?),
        };
        // SAFETY: the label plane has no padding and as many rows.
        let bytes = unsafe { bounce.down(bytemuck::cast_slice_mut(labels.whole_mut()), stride, from)? };
        Traffic::add(&self.cuda.traffic.results_down, bytes);
        Ok(())
    }

    /// Numbers of labels and, where `outputs` asks for them, of touching pairs of the frame that was submitted last;
    /// waits for them and so for all that was put on the stream before.
    pub fn counts(&self, outputs: Outputs) -> Result<Counts> {
        let mut pinned = self.counts.lock().unwrap();
        let fetched = self.fetch_counts(outputs, &mut pinned);
        // After an error, too: a copy may be on its way.
        self.cuda.synchronize().and(fetched)?;
        Ok(Counts::read(outputs, &pinned))
    }

    /// Puts the two numbers' way down on the stream.
    pub(crate) fn fetch_counts(&self, outputs: Outputs, to: &mut Pinned) -> Result<()> {
        let stage = "collect";
        let counter = self.sums[0].len() - FRAME_COUNTERS - 2 + COUNTER_REGIONS;
        self.sums[0].fetch(&self.cuda, stage, counter, to, 0, 1)?;
        match &self.neighbors {
            Some(memory) if outputs.neighbors => {
                memory.degree.fetch(&self.cuda, stage, self.max_regions, to, 4, 1)
            }
            _ => Ok(()),
        }
    }

    /// Keeps what the frame that was submitted last gave, on the device, until somebody reads it: the stages of the
    /// next frames may then run. `counts` are that frame's; without them all that there could be is kept, and
    /// [`Results::settle`] says later what there is. Nothing is waited for.
    pub fn keep(&self, counts: Option<Counts>, outputs: Outputs) -> Result<Results> {
        self.results.keep(self, counts, outputs)
    }

    /// Keeps results in the slots of `other`, which is of the same plan.
    #[cfg(feature = "gst")]
    pub(crate) fn share_results(&mut self, other: &Work) {
        self.results = other.results.clone();
    }

    /// Most bytes that [`Work::keep`] keeps of a frame.
    pub(crate) fn most_kept(&self, label_stride: usize, outputs: Outputs) -> [usize; PARTS] {
        let motion = outputs.table && self.temporal.is_some();
        [
            label_stride * self.geometry.height as usize,
            if outputs.table { self.max_regions * size_of::<crate::regions::Region>() } else { 0 },
            // Of a frame that was not asked for them there are none.
            if outputs.neighbors && self.neighbors.is_some() {
                self.max_pairs * size_of::<crate::regions::Neighbor>()
            } else {
                0
            },
            if motion { self.max_regions * size_of::<crate::regions::Motion>() } else { 0 },
        ]
    }

    /// The packed colors, for comparisons.
    pub fn read_features(&self) -> Result<Vec<u32>> {
        let mut out = vec![0; self.geometry.pixels()];
        if let Some(plane) = self.temporal.as_ref().map(State::features).or(self.features.as_ref()) {
            plane.read(&self.cuda, "features", 0, &mut out)?;
        }
        Ok(out)
    }

    /// Tables of `lab`, which mean colors need where features are of another space.
    pub(crate) fn lab_tables(cuda: &Cuda) -> Result<Memory<u32>> {
        Memory::with(cuda, "device memory", &ColorTables::new(ColorSpace::Lab).device_words())
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // Before memory, graphs and kernels go that may be in use. A broken context runs nothing any more.
        let _ = self.cuda.synchronize();
    }
}

/// Arguments of a launch as the driver takes them.
macro_rules! args {
    ($($value:expr),* $(,)?) => { [$($crate::cuda::launch::arg(&$value)),*] };
}
pub(crate) use args;
