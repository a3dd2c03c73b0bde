// SPDX-License-Identifier: MPL-2.0
//! Engines on the CPU and on a device, and frames of both kinds of memory on the latter.

use gstsuperpixel::any_engine::{AnyEngine, Continuity};
use gstsuperpixel::buffers::{BatchResults, BatchTable, DeviceResults};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::cuda::{
    Counts, Cuda, DeviceBytes, DeviceFrame, DeviceLabels, DeviceMemory, DevicePool, Intake, KeepsContext,
    LabelType, Part, Staging, StridedImage,
};
use gstsuperpixel::engine::Engine;
use gstsuperpixel::error::{Error, Result};
use gstsuperpixel::image::{Frame, FrameInfo, Labels};
use gstsuperpixel::params::Outputs;
use gstsuperpixel::plan::Plan;
use gstsuperpixel::regions::Regions;

use crate::error::Failure;
use crate::raw_frame::{Form, OUT_OF_RANGE, RawFrame, with_areas};
use crate::side_by_side::SideBySide;

/// An engine where a Segmenter works.
pub type SegmenterEngine = AnyEngine<Engine<Cpu>, DeviceEngine>;

/// Makes an engine on a device.
pub fn on_device(cuda: &Cuda, plan: Plan) -> Result<SegmenterEngine> {
    DeviceEngine::new(cuda, plan).map(|engine| AnyEngine::Device(Box::new(engine)))
}

/// Segments a frame of the host.
pub fn segment(
    engine: &mut SegmenterEngine,
    frame: &Frame<'_>,
    mut labels: Labels<'_>,
    outputs: Outputs,
) -> Result<()> {
    match engine {
        AnyEngine::Cpu(engine) => engine.segment(frame, &mut labels, outputs).map(drop),
        AnyEngine::Device(engine) => engine.0.with_mut(|frames| frames.segment_host(frame, labels, outputs)),
    }
}

/// Results of the last frame of the host.
pub fn regions(engine: &SegmenterEngine) -> &Regions {
    match engine {
        AnyEngine::Cpu(engine) => engine.regions(),
        AnyEngine::Device(engine) => engine.0.get().engine.regions(),
    }
}

/// Target for labels, in device memory that has been checked in the same way.
#[derive(Clone, Copy)]
pub enum Target {
    /// Memory of the caller: bytes from row to row, and from plane to plane.
    Given { address: u64, stride: usize, apart: u64 },
    /// Memory of ours.
    Own,
}

/// Frames of a call, one after another.
pub struct Task<'a> {
    pub info: FrameInfo,
    pub frames: Vec<RawFrame>,
    pub target: Target,
    pub kind: LabelType,
    pub streams: &'a Streams,
    /// True if values are checked before they are used.
    pub check: bool,
    /// True if all come side by side, so that their tables can be had together.
    pub together: bool,
}

/// Streams of the caller.
#[derive(Default)]
pub struct Streams {
    /// Streams to wait for.
    before: Vec<usize>,
    /// Streams that wait.
    after: Vec<usize>,
    /// True if one of `after` orders later uses of the frame's memory; else the host waits until it has been read.
    pub is_ordered: bool,
}

impl Streams {
    /// None yet. Where one orders what becomes of the frame's memory, the host does not wait.
    pub fn new(is_ordered: bool) -> Self {
        Self { is_ordered, ..Self::default() }
    }

    /// Waits for a stream, and lets it wait.
    pub fn take_turn(&mut self, stream: usize) {
        add(&mut self.before, stream);
        add(&mut self.after, stream);
    }

    /// Waits for a stream.
    pub fn follow(&mut self, stream: usize) {
        add(&mut self.before, stream);
    }

    pub fn wait_for_all(&self, cuda: &Cuda) -> Result<()> {
        // SAFETY: `streams.rs` has them from the caller, who keeps them while the call lasts.
        self.before.iter().try_for_each(|&stream| unsafe { cuda.wait_for(stream) })
    }

    pub fn precede_all(&self, cuda: &Cuda) -> Result<()> {
        // SAFETY: `streams.rs` has them from the caller, who keeps them while the call lasts.
        self.after.iter().try_for_each(|&stream| unsafe { cuda.precede(stream) })
    }
}

fn add(list: &mut Vec<usize>, stream: usize) {
    if !list.contains(&stream) {
        list.push(stream);
    }
}

/// An engine on a device, with a stream of its own. Each use leaves the thread's current context as it was.
pub struct DeviceEngine(KeepsContext<Frames>);

impl DeviceEngine {
    pub fn new(cuda: &Cuda, plan: Plan) -> Result<Self> {
        KeepsContext::make(|| Frames::new(cuda, plan)).map(Self)
    }

    /// Segments frames on the device; nothing is waited for where the streams are in order and values are not looked at. Gives the
    /// memory of the labels, if that is ours.
    pub fn segment(&mut self, task: &Task<'_>, outputs: Outputs) -> Result<Option<DeviceMemory>, Failure> {
        self.0.with_mut(|frames| frames.segment(task, outputs))
    }

    /// The `CUcontext` that it is in.
    pub fn context(&self) -> usize {
        self.0.get().engine.backend().context_handle()
    }

    /// Returns true if the last frame was on the device.
    pub fn is_last_on_device(&self) -> bool {
        self.0.get().on_device
    }

    /// How much the last frame gave, where it was on the device. The first call waits for it.
    pub fn counts(&mut self) -> Result<Counts, Failure> {
        self.0.with_mut(Frames::counts)
    }

    /// Where each frame's records begin among those of all of the last call, which were put there together. Waits for it.
    pub fn batch_offsets(&mut self, table: BatchTable) -> Result<Vec<u64>, Failure> {
        self.0.with_mut(|frames| {
            let offsets = frames.batch()?.offsets(table)?;
            frames.look_at_values()?;
            Ok(offsets)
        })
    }

    /// Copies what the last frames gave together to an address that has been checked, of so many bytes; nothing is waited for.
    pub fn export_batch(
        &mut self,
        items: BatchItems,
        address: u64,
        bytes: usize,
        streams: &Streams,
    ) -> Result<(), Failure> {
        self.0.with_mut(|frames| {
            let cuda = frames.engine.backend().clone();
            streams.wait_for_all(&cuda)?;
            // SAFETY: as in `export`.
            let mut to = unsafe { DeviceBytes::from_raw(address, bytes)? };
            let batch = frames.batch()?;
            let done = match items {
                BatchItems::Offsets(table) => batch.export_offsets(table, &mut to),
                BatchItems::Records(table, total) => batch.export_records(table, None, &mut to, total),
                BatchItems::Edges(pairs) => batch.export_edges(&mut to, pairs),
                BatchItems::Frames(regions) => batch.export_frame_numbers(&mut to, regions),
            };
            streams.precede_all(&cuda)?;
            Ok(done?)
        })
    }

    /// Memory of ours.
    pub fn take(&self, bytes: usize) -> Result<DeviceMemory> {
        self.0.with(|frames| frames.tables.take(bytes))
    }

    /// Copies what the last frame gave to an address that has been checked, of so many bytes; nothing is waited for.
    pub fn export(
        &mut self,
        table: Table,
        address: u64,
        bytes: usize,
        streams: &Streams,
    ) -> Result<(), Failure> {
        self.0.with_mut(|frames| {
            let cuda = frames.engine.backend().clone();
            streams.wait_for_all(&cuda)?;
            // SAFETY: the caller has just taken so much memory, and orders its stream by `streams`.
            let mut to = unsafe { DeviceBytes::from_raw(address, bytes)? };
            let done = frames.export(table, &mut to);
            streams.precede_all(&cuda)?;
            done
        })
    }
}

impl Continuity for DeviceEngine {
    fn plan(&self) -> &Plan {
        self.0.get().engine.plan()
    }

    fn change(&mut self, plan: &Plan) -> Result<bool> {
        self.0.with_mut(|frames| frames.engine.change(plan))
    }

    fn reset(&mut self) {
        self.0.with_mut(|frames| frames.engine.reset());
    }

    fn next_id(&mut self) -> Result<u32> {
        self.0.with_mut(|frames| frames.engine.next_id())
    }

    fn set_next_id(&mut self, id: u32) -> Result<()> {
        self.0.with_mut(|frames| frames.engine.set_next_id(id))
    }
}

/// Results that are copied after a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    Records(Part),
    /// Pairs in both directions.
    Edges,
}

/// Results of all frames that were put on a device together, and how many items they are.
#[derive(Debug, Clone, Copy)]
pub enum BatchItems {
    /// Where each frame's records begin.
    Offsets(BatchTable),
    Records(BatchTable, usize),
    /// Pairs in both directions, with regions numbered through all frames.
    Edges(usize),
    /// The frame of each region.
    Frames(usize),
}

struct Frames {
    intake: Intake,
    /// For frames of the host.
    staging: Option<Staging>,
    labels: DevicePool,
    tables: DevicePool,
    /// True if the last frame was on the device.
    on_device: bool,
    /// True if its values have not been looked at.
    is_unchecked: bool,
    /// For several frames in one call.
    side: Option<SideBySide>,
    /// True if the last frame was one of those.
    is_of_side: bool,
    engine: Engine<Cuda>,
}

impl Frames {
    fn new(cuda: &Cuda, plan: Plan) -> Result<Self> {
        let engine = Engine::new(cuda.lane()?, plan)?;
        let pool = || DevicePool::new(engine.backend());
        Ok(Self {
            intake: Intake::new(),
            staging: None,
            labels: pool(),
            tables: pool(),
            on_device: false,
            is_unchecked: false,
            side: None,
            is_of_side: false,
            engine,
        })
    }

    fn segment_host(&mut self, frame: &Frame<'_>, labels: Labels<'_>, outputs: Outputs) -> Result<()> {
        let Self { engine, staging, on_device, .. } = self;
        *on_device = false;
        let staging = match staging {
            Some(staging) => staging,
            none => none.insert(Staging::new(engine.backend(), *frame.info())?),
        };
        let uploaded = staging.upload(frame)?;
        engine.segment(&uploaded, &mut Some(labels), outputs).map(drop)
    }

    fn segment(&mut self, task: &Task<'_>, outputs: Outputs) -> Result<Option<DeviceMemory>, Failure> {
        let cuda = self.engine.backend().clone();
        let done = self.put(&cuda, task, outputs);
        if done.is_err() {
            // Work on our stream may still use the caller's memory.
            let _ = cuda.synchronize();
        }
        done
    }

    fn put(
        &mut self,
        cuda: &Cuda,
        task: &Task<'_>,
        outputs: Outputs,
    ) -> Result<Option<DeviceMemory>, Failure> {
        let Task { info, ref frames, target, kind, streams, .. } = *task;
        self.on_device = false;
        streams.wait_for_all(cuda)?;
        let plane = info.geometry.pixels() * kind.bytes();
        let (mut memory, (first, stride, apart)) = match target {
            Target::Given { address, stride, apart } => (None, (address, stride, apart)),
            Target::Own => {
                let memory = self.labels.take(frames.len() * plane)?;
                let place = (memory.address(), plane / info.geometry.height() as usize, plane as u64);
                (Some(memory), place)
            }
        };
        let at_once = match task.together {
            true => frames.len().max(1),
            false if apart.is_multiple_of(kind.bytes() as u64) => {
                SideBySide::at_once(cuda, self.engine.plan(), frames.len())?
            }
            false => 1,
        };
        self.is_of_side = at_once > 1 || task.together;
        for (i, part) in frames.chunks(at_once).enumerate() {
            let address = first + (i * at_once) as u64 * apart;
            // SAFETY: `device.rs` has checked the target, or it is ours and has room for all planes. Our stream waits for the caller's;
            // the caller's waits for ours before the memory can be used again, or the host does.
            let mut to = unsafe {
                DeviceLabels::from_raw(address, stride, info.geometry, kind)?
                    .with_planes(part.len(), apart)?
            };
            if self.is_of_side {
                let side = SideBySide::fitting(&mut self.side, cuda, self.engine.plan(), at_once)?;
                side.submit(cuda, part, task.check, outputs)?;
                side.results()?.export_labels(&mut to)?;
                continue;
            }
            // With the last one all have been read.
            let is_awaited = !streams.is_ordered && i + 1 == frames.len();
            self.put_frame(cuda, &part[0], task.check, is_awaited, outputs)?;
            self.engine.results()?.export_labels(&mut to)?;
        }
        if self.is_of_side && !streams.is_ordered {
            cuda.synchronize()?;
        }
        if let Some(memory) = &mut memory {
            memory.mark()?;
        }
        streams.precede_all(cuda)?;
        let has_areas = frames.iter().any(|frame| frame.mask.is_some() || frame.prior.is_some());
        if (memory.is_none() || has_areas) && !streams.is_ordered {
            cuda.synchronize()?;
        }
        (self.on_device, self.is_unchecked) = (true, true);
        Ok(memory)
    }

    /// Puts a frame on our stream. One that `is_awaited` has been read when this returns, though maybe not its mask and prior.
    fn put_frame(
        &mut self,
        cuda: &Cuda,
        raw: &RawFrame,
        check: bool,
        is_awaited: bool,
        outputs: Outputs,
    ) -> Result<(), Failure> {
        let Self { engine, intake, .. } = self;
        let RawFrame { info, address, form, mask, .. } = *raw;
        let frame = match form {
            Form::Rows(stride) => {
                // SAFETY: `device.rs` has checked the frame and holds it; streams are in order as said in `put`.
                let frame = unsafe { DeviceFrame::from_planes(info, [address, 0, 0], [stride, 0, 0])? };
                let frame = with_areas(frame, raw)?;
                if is_awaited { intake.copy(cuda, &frame)? } else { intake.take(cuda, &frame)? }
            }
            Form::Strided(samples, strides, scale) => {
                // SAFETY: as above, and so is the mask.
                let image = unsafe { StridedImage::from_raw(info, address, samples, strides, scale, mask)? };
                match intake.pack(cuda, &image, check)? {
                    Some(frame) => with_areas(frame, raw)?,
                    None => return Err(Failure::Value(OUT_OF_RANGE.into())),
                }
            }
        };
        if is_awaited {
            cuda.synchronize()?;
        }
        Ok(engine.submit(&frame, &mut None, outputs)?)
    }

    fn counts(&mut self) -> Result<Counts, Failure> {
        if !self.on_device {
            return Ok(Counts::default());
        }
        let counts = self.results()?.counts()?;
        self.look_at_values()?;
        Ok(counts)
    }

    /// Where the last frame's results are.
    fn results(&self) -> Result<DeviceResults<'_>> {
        match &self.side {
            Some(side) if self.is_of_side => side.last_results(),
            _ => self.engine.results(),
        }
    }

    /// Refuses what had values out of range, the first time that somebody waits for it.
    fn look_at_values(&mut self) -> Result<(), Failure> {
        if self.is_unchecked {
            let of_side = self.side.as_mut().map_or(Ok(false), SideBySide::was_cut_off)?;
            if self.intake.was_cut_off()? || of_side {
                return Err(Failure::Value(OUT_OF_RANGE.into()));
            }
        }
        self.is_unchecked = false;
        Ok(())
    }

    /// Results of the last frames together, as [`Task::together`] asks for them.
    fn batch(&self) -> Result<BatchResults<'_>> {
        self.side.as_ref().filter(|_| self.is_of_side).map_or(Err(Error::NotSegmented), SideBySide::results)
    }

    fn export(&mut self, table: Table, to: &mut DeviceBytes<'_>) -> Result<(), Failure> {
        self.counts()?;
        if !self.on_device {
            return Ok(());
        }
        let results = self.results()?;
        match table {
            Table::Records(part) => results.export(part, to).map(drop)?,
            Table::Edges => results.export_edges(to)?,
        }
        Ok(())
    }
}
