// SPDX-License-Identifier: MPL-2.0
//! Results of a frame where its stages have left them, in device memory until the next frame: all ways to read them.

use cudarc::driver::sys;

use super::cuda::FrameBuffers;
use crate::cuda::abi::{Address, COUNTER_REGIONS, FRAME_COUNTERS};
use crate::cuda::kernels::{list_edges, widen_labels};
use crate::cuda::launch::{Shape, check};
use crate::cuda::memory::{Memory, Rows, copy_rows};
use crate::cuda::pinned::Pinned;
use crate::cuda::results::{PARTS, ResultAddresses};
use crate::cuda::staging_buffer::{DeviceRows, StagingBuffer};
use crate::cuda::tuning::EXPORT_THREADS;
use crate::cuda::{Counts, Cuda, DeviceBytes, DeviceLabels, Kept, LabelType, Part, Results, Traffic};
use crate::error::{Error, Result};
use crate::image::Labels;
use crate::outputs::Outputs;
use crate::regions::{MergeStep, Motion, Neighbor, Region, Regions};

pub(super) const STAGE: &str = "export";

/// Kernels that convert results to other forms, loaded on first use.
pub(super) struct Exports {
    pub(super) widen: widen_labels::Kernel,
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

/// Memory that results pass through on their way to the host.
pub(super) struct Downloads {
    /// Lengths of a frame's results.
    counts: Pinned,
    /// The same once they have arrived, and of which frame of a batch they are.
    known: Option<(usize, Counts)>,
    /// True once it is known on the device where the records of each frame of the batch begin.
    pub(super) has_offsets: bool,
    /// Label map, allocated on first use: results read in other ways do not need it.
    labels: Option<StagingBuffer>,
    /// Records, allocated on first use.
    records: Option<Pinned>,
}

impl Downloads {
    pub fn new(cuda: &Cuda) -> Result<Self> {
        let counts = Pinned::new(cuda, "device memory", Counts::BYTES)?;
        Ok(Self { counts, known: None, has_offsets: false, labels: None, records: None })
    }

    /// Forgets the lengths of the last frame or batch.
    pub fn begin(&mut self) {
        (self.known, self.has_offsets) = (None, false);
    }
}

/// Results of the frame that an engine segmented last, in its device memory.
pub struct DeviceResults<'a> {
    pub(super) buffers: &'a FrameBuffers,
    pub(super) outputs: Outputs,
    /// Of a batch, which frame.
    frame: usize,
}

/// Appends records from bytes of any alignment.
fn append<T: bytemuck::AnyBitPattern>(to: &mut Vec<T>, bytes: &[u8]) {
    to.extend(bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned::<T>));
}

impl<'a> DeviceResults<'a> {
    /// `outputs` are what the frame was submitted for; `frame` is its index in its batch.
    pub(crate) fn of(buffers: &'a FrameBuffers, outputs: Outputs, frame: usize) -> Self {
        Self { buffers, outputs, frame }
    }

    /// The same as far as it was asked for; what others wanted of the batch besides is left out.
    pub(crate) fn for_outputs(self, outputs: Outputs) -> Self {
        Self { outputs, ..self }
    }

    /// The frame's own of an array.
    fn own<T>(&self, memory: &Memory<T>) -> Memory<T> {
        memory.of_frame(self.cuda(), self.frame)
    }

    pub(super) fn cuda(&self) -> &'a Cuda {
        &self.buffers.queue.cuda
    }

    /// Number of labels and, if they were asked for, of touching pairs and merges. The first call for a frame waits for
    /// it, and so for all earlier work on the engine's stream.
    pub fn counts(&self) -> Result<Counts> {
        let mut downloads = self.buffers.downloads.lock().unwrap();
        if let Some((_, known)) = downloads.known.filter(|(frame, _)| *frame == self.frame) {
            return Ok(known);
        }
        let fetched = self.fetch_counts(&mut downloads.counts);
        // Waits after an error as well, since a copy may be in flight.
        self.cuda().synchronize().and(fetched)?;
        let counts = Counts::read(self.outputs, &downloads.counts);
        downloads.known = Some((self.frame, counts));
        Ok(counts)
    }

    /// Starts to copy the numbers to `to`, which no other copy in flight may use.
    fn fetch_counts(&self, to: &mut Pinned) -> Result<()> {
        let (stage, buffers, cuda) = ("collect", self.buffers, self.cuda());
        let counter = buffers.sums[0].len() - FRAME_COUNTERS - 2 + COUNTER_REGIONS;
        self.own(&buffers.sums[0]).fetch(cuda, stage, counter, to, 0, 1)?;
        if let Some(memory) = &buffers.neighbors
            && self.outputs.neighbors
        {
            self.own(&memory.degree).fetch(cuda, stage, buffers.max_regions, to, 4, 1)?;
        }
        match &buffers.merges {
            Some(memory) => self.own(&memory.count).fetch(cuda, stage, 0, to, 8, 1),
            None => {
                // An earlier plan may have left numbers there.
                to.writable()[8..Counts::BYTES].fill(0);
                Ok(())
            }
        }
    }

    /// Copies the label map to the host and waits for it.
    ///
    /// # Errors
    ///
    /// [`Error::Labels`] for a plane of another size, [`Error::Cuda`] from the driver.
    pub fn download_labels(&self, labels: &mut Labels<'_>) -> Result<()> {
        let geometry = self.buffers.geometry;
        labels.check(geometry)?;
        let (row, stride) = (2 * geometry.width as usize, 2 * labels.stride());
        let from = DeviceRows {
            address: self.own(self.buffers.labels()).address().raw(),
            stride: row,
            row,
            rows: geometry.height as usize,
            offset: 0,
        };
        let mut downloads = self.buffers.downloads.lock().unwrap();
        let buffer = match &mut downloads.labels {
            Some(buffer) => buffer,
            none => none.insert(StagingBuffer::new(self.cuda(), 2 * geometry.pixels())?),
        };
        // SAFETY: `FrameBuffers::new` has made the label plane for this geometry, without padding.
        let bytes = unsafe { buffer.down(bytemuck::cast_slice_mut(labels.whole_mut()), stride, from)? };
        Traffic::add(&self.cuda().traffic.results_down, bytes);
        Ok(())
    }

    /// Copies all but the label map to the host and waits for it.
    pub fn download(&self, regions: &mut Regions) -> Result<()> {
        let (stage, buffers, cuda) = ("collect", self.buffers, self.cuda());
        let counts = self.counts()?;
        regions.count = counts.regions;
        regions.table.clear();
        regions.neighbors.clear();
        regions.motion.clear();
        regions.merges.clear();
        let most = self.most_kept(0);
        let needed = most.iter().sum();
        if needed == 0 {
            return Ok(());
        }
        let mut downloads = buffers.downloads.lock().unwrap();
        if downloads.records.as_ref().is_none_or(|host| host.len() < needed) {
            downloads.records = Some(Pinned::new(cuda, stage, needed)?);
        }
        let Some(host) = &mut downloads.records else { return Ok(()) };
        let [_, table, pairs, motion, merges] = counts.lengths(most, self.outputs);
        let (at_pairs, at_motion) = (table, table + pairs);
        let at_merges = at_motion + motion;
        let mut fetch = || {
            self.own(&buffers.records).fetch(cuda, stage, 0, host, 0, table / size_of::<Region>())?;
            if let Some(memory) = &buffers.neighbors {
                self.own(&memory.pairs).fetch(
                    cuda,
                    stage,
                    0,
                    host,
                    at_pairs,
                    pairs / size_of::<Neighbor>(),
                )?;
            }
            if let Some(state) = &buffers.temporal {
                self.own(&state.motion).fetch(
                    cuda,
                    stage,
                    0,
                    host,
                    at_motion,
                    motion / size_of::<Motion>(),
                )?;
            }
            match &buffers.merges {
                Some(memory) => self.own(&memory.steps).fetch(
                    cuda,
                    stage,
                    0,
                    host,
                    at_merges,
                    merges / size_of::<MergeStep>(),
                ),
                None => Ok(()),
            }
        };
        let fetched = fetch();
        // Waits after an error as well, since other copies may be in flight.
        cuda.synchronize().and(fetched)?;
        let bytes = host.bytes();
        append(&mut regions.table, &bytes[..table]);
        append(&mut regions.neighbors, &bytes[at_pairs..][..pairs]);
        append(&mut regions.motion, &bytes[at_motion..][..motion]);
        append(&mut regions.merges, &bytes[at_merges..][..merges]);
        Ok(())
    }

    /// Keeps the results on the device until they are read, so that the stages of later frames may run. `counts` are
    /// the frame's; without them the largest possible results are kept, and [`Results::finalize`] sets the numbers
    /// later. Does not wait.
    pub fn keep(&self, counts: Option<Counts>) -> Result<Results> {
        // GStreamer's default stride for a plane of 16-bit gray.
        let label_stride = (2 * self.buffers.geometry.width as usize).next_multiple_of(4);
        self.buffers.results.keep(self.cuda(), &self.sources(label_stride), counts, self.outputs)
    }

    /// Keeps the counts in `kept` and, with `copies`, all results, as [`Engine::keep`](crate::engine::Engine::keep) does. Does not wait.
    ///
    /// # Errors
    ///
    /// Memory of another context; errors of the driver.
    pub fn keep_in(&self, copies: bool, kept: &mut Kept) -> Result<()> {
        // The host waits for the counts only; the copies behind them may still be in flight.
        kept.begin(self.cuda(), self.outputs, |counts| self.fetch_counts(counts))?;
        if copies {
            kept.hold(self.keep(None)?);
        }
        Ok(())
    }

    fn sources(&self, label_stride: usize) -> ResultAddresses {
        let buffers = self.buffers;
        ResultAddresses {
            parts: [
                self.own(buffers.labels()).address().raw(),
                self.own(&buffers.records).address().raw(),
                buffers.neighbors.as_ref().map_or(0, |memory| self.own(&memory.pairs).address().raw()),
                buffers.temporal.as_ref().map_or(0, |state| self.own(&state.motion).address().raw()),
                buffers.merges.as_ref().map_or(0, |memory| self.own(&memory.steps).address().raw()),
            ],
            most: self.most_kept(label_stride),
            row: 2 * buffers.geometry.width as usize,
            label_stride,
            rows: buffers.geometry.height as usize,
        }
    }

    /// Most bytes of each part.
    pub(super) fn most_kept(&self, label_stride: usize) -> [usize; PARTS] {
        let (buffers, outputs) = (self.buffers, self.outputs);
        let motion = outputs.table && buffers.temporal.is_some();
        [
            label_stride * buffers.geometry.height as usize,
            if outputs.table { buffers.max_regions * size_of::<Region>() } else { 0 },
            // A frame that was not asked for pairs has none.
            if outputs.neighbors && buffers.neighbors.is_some() {
                buffers.max_pairs * size_of::<Neighbor>()
            } else {
                0
            },
            if motion { buffers.max_regions * size_of::<Motion>() } else { 0 },
            if buffers.merges.is_some() { buffers.max_regions * size_of::<MergeStep>() } else { 0 },
        ]
    }

    /// Starts to copy the label map, on the engine's stream.
    ///
    /// # Errors
    ///
    /// [`Error::Labels`] for a plane of another size, [`Error::Cuda`] from the driver.
    pub fn export_labels(&self, to: &mut DeviceLabels<'_>) -> Result<()> {
        let (planned, cuda) = (self.buffers.geometry, self.cuda());
        if to.geometry != planned {
            return Err(Error::Labels { planned, got: to.geometry });
        }
        to.check_context(cuda)?;
        check(STAGE, cuda.device.context.bind_to_thread())?;
        let (width, height) = (planned.width, planned.height);
        let labels = self.own(self.buffers.labels()).address();
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
            apart: 0,
            width,
            stride: (to.stride / 4) as u32,
            first: first.cast_unsigned(),
            outside: first.wrapping_sub(1).cast_unsigned(),
        };
        let kernel = &self.exports()?.widen;
        let shape = Shape::of((width.div_ceil(EXPORT_THREADS), height), EXPORT_THREADS);
        // SAFETY: the label plane is of this geometry, without padding; who made `to` keeps rows of 32-bit labels, `stride` apart, as
        // many as the grid has.
        unsafe { kernel.launch(&cuda.stream, shape, &args) }
    }

    /// Starts to copy a part, on the engine's stream and without gaps. Returns the number of bytes. The first call for a
    /// frame waits for its counts.
    ///
    /// # Errors
    ///
    /// [`Error::Plane`] if `to` is too small, [`Error::Cuda`] from the driver.
    pub fn export(&self, part: Part, to: &mut DeviceBytes<'_>) -> Result<usize> {
        let sources = self.sources(2 * self.buffers.geometry.width as usize);
        let bytes = self.counts()?.lengths(sources.most, self.outputs)[part as usize];
        let cuda = self.cuda();
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

    /// Starts to write the touching pairs, on the engine's stream, as 64-bit numbers [2][2 pairs]: each pair from the
    /// lower to the higher label, then each from the higher to the lower. The first call for a frame waits for its counts.
    ///
    /// # Errors
    ///
    /// As [`DeviceResults::export`].
    pub fn export_edges(&self, to: &mut DeviceBytes<'_>) -> Result<()> {
        let Some(memory) = &self.buffers.neighbors else { return Ok(()) };
        let most = self.most_kept(0);
        let count =
            self.counts()?.lengths(most, self.outputs)[Part::Neighbors as usize] / size_of::<Neighbor>();
        let cuda = self.cuda();
        let edges = Address::new(to.room(cuda, 4 * size_of::<i64>() * count)?);
        if count == 0 {
            return Ok(());
        }
        let args = list_edges::Args { pairs: self.own(&memory.pairs).address(), edges, count: count as u32 };
        check(STAGE, cuda.device.context.bind_to_thread())?;
        let shape = Shape::of((args.count.div_ceil(EXPORT_THREADS), 1), EXPORT_THREADS);
        // SAFETY: `prepare_neighbors` has made room for the most pairs that there can be, of which these are no more; `to` has room for
        // four numbers of each.
        unsafe { self.exports()?.edges.launch(&cuda.stream, shape, &args) }
    }

    pub(super) fn exports(&self) -> Result<&Exports> {
        self.buffers.exports.get_or_try_init(|| Exports::new(self.cuda()))
    }
}
