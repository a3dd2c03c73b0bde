// SPDX-License-Identifier: MPL-2.0
//! Engines on the CPU and on a device, and frames of both kinds of memory on the latter.

use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::cuda::{
    Counts, Cuda, DeviceBytes, DeviceFrame, DeviceLabels, DeviceMemory, DevicePool, Intake, KeepsContext,
    LabelType, Part, Staging,
};
use gstsuperpixel::engine::Engine;
use gstsuperpixel::error::Result;
use gstsuperpixel::image::{Frame, FrameInfo, Labels};
use gstsuperpixel::params::Outputs;
use gstsuperpixel::plan::Plan;
use gstsuperpixel::regions::Regions;

/// An engine where a Segmenter works.
pub enum AnyEngine {
    Cpu(Box<Engine<Cpu>>),
    Device(Box<DeviceEngine>),
}

impl AnyEngine {
    /// A new one on a device.
    pub fn on_device(cuda: &Cuda, plan: Plan) -> Result<Self> {
        DeviceEngine::new(cuda, plan).map(|engine| Self::Device(Box::new(engine)))
    }

    pub fn plan(&self) -> &Plan {
        match self {
            Self::Cpu(engine) => engine.plan(),
            Self::Device(engine) => engine.0.get().engine.plan(),
        }
    }

    pub fn change(&mut self, plan: &Plan) -> Result<bool> {
        match self {
            Self::Cpu(engine) => engine.change(plan),
            Self::Device(engine) => engine.0.with_mut(|frames| frames.engine.change(plan)),
        }
    }

    pub fn reset(&mut self) {
        match self {
            Self::Cpu(engine) => engine.reset(),
            Self::Device(engine) => engine.0.with_mut(|frames| frames.engine.reset()),
        }
    }

    pub fn next_id(&mut self) -> Result<u32> {
        match self {
            Self::Cpu(engine) => engine.next_id(),
            Self::Device(engine) => engine.0.with_mut(|frames| frames.engine.next_id()),
        }
    }

    pub fn set_next_id(&mut self, id: u32) -> Result<()> {
        match self {
            Self::Cpu(engine) => engine.set_next_id(id),
            Self::Device(engine) => engine.0.with_mut(|frames| frames.engine.set_next_id(id)),
        }
    }

    /// What the last frame of the host gave.
    pub fn regions(&self) -> &Regions {
        match self {
            Self::Cpu(engine) => engine.regions(),
            Self::Device(engine) => engine.0.get().engine.regions(),
        }
    }

    /// Segments a frame of the host.
    pub fn segment(&mut self, frame: &Frame<'_>, labels: &mut Labels<'_>, outputs: Outputs) -> Result<()> {
        match self {
            Self::Cpu(engine) => engine.segment(frame, labels, outputs).map(drop),
            Self::Device(engine) => engine.0.with_mut(|frames| frames.segment_host(frame, labels, outputs)),
        }
    }

    /// The engine, if it is on a device.
    pub fn device(&mut self) -> Option<&mut DeviceEngine> {
        match self {
            Self::Cpu(_) => None,
            Self::Device(engine) => Some(engine),
        }
    }
}

/// A frame in device memory that has been checked: whoever made it keeps what [`DeviceFrame::from_planes`] asks for.
#[derive(Clone, Copy)]
pub struct RawFrame {
    pub info: FrameInfo,
    pub address: u64,
    pub stride: u32,
}

/// Where labels go, in device memory that has been checked in the same way.
#[derive(Clone, Copy)]
pub enum Target {
    /// Memory of the caller: address and bytes from row to row.
    Given(u64, usize),
    /// Memory of ours.
    Own,
}

/// Streams of the caller.
#[derive(Default)]
pub struct Streams {
    /// Those to wait for.
    before: Vec<usize>,
    /// Those that wait.
    after: Vec<usize>,
    /// Whether one of the latter orders what becomes of the frame's memory; else the host waits until it has been read.
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

    fn wait_for_all(&self, cuda: &Cuda) -> Result<()> {
        // SAFETY: `streams.rs` has them from the caller, who keeps them while the call lasts.
        self.before.iter().try_for_each(|&stream| unsafe { cuda.wait_for(stream) })
    }

    fn precede_all(&self, cuda: &Cuda) -> Result<()> {
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

    /// Segments a frame on the device; nothing is waited for where the streams are in order. Gives the memory, if that is ours.
    pub fn segment(
        &mut self,
        frame: RawFrame,
        (target, kind): (Target, LabelType),
        streams: &Streams,
        outputs: Outputs,
    ) -> Result<Option<DeviceMemory>> {
        self.0.with_mut(|frames| frames.segment(frame, (target, kind), streams, outputs))
    }

    /// Whether the last frame was on the device.
    pub fn is_last_on_device(&self) -> bool {
        self.0.get().on_device.is_some()
    }

    /// How much the last frame gave, where it was on the device. The first call waits for it.
    pub fn counts(&mut self) -> Result<Counts> {
        self.0.with_mut(Frames::counts)
    }

    /// Memory of ours.
    pub fn take(&self, bytes: usize) -> Result<DeviceMemory> {
        self.0.with(|frames| frames.tables.take(bytes))
    }

    /// Copies what the last frame gave to an address that has been checked, of so many bytes; nothing is waited for.
    pub fn export(&mut self, table: Table, address: u64, bytes: usize, streams: &Streams) -> Result<()> {
        self.0.with_mut(|frames| {
            let cuda = frames.engine.backend().clone();
            streams.wait_for_all(&cuda)?;
            // SAFETY: the caller has just taken so much memory, and orders its stream by `streams`.
            let mut to = unsafe { DeviceBytes::from_raw(address, bytes)? };
            let done = frames.export(table, &mut to);
            streams.precede_all(&cuda).and(done)
        })
    }
}

/// What is copied after a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    Records(Part),
    /// Pairs in both directions.
    Edges,
}

struct Frames {
    intake: Intake,
    /// For frames of the host.
    staging: Option<Staging>,
    labels: DevicePool,
    tables: DevicePool,
    /// Of the last frame, if it was on the device: what it was asked for, and what it gave once that is known.
    on_device: Option<(Outputs, Option<Counts>)>,
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
            on_device: None,
            engine,
        })
    }

    fn segment_host(&mut self, frame: &Frame<'_>, labels: &mut Labels<'_>, outputs: Outputs) -> Result<()> {
        let Self { engine, staging, on_device, .. } = self;
        *on_device = None;
        let staging = match staging {
            Some(staging) => staging,
            none => none.insert(Staging::new(engine.backend(), *frame.info())?),
        };
        engine.submit(&staging.upload(frame)?, &mut (), outputs)?;
        engine.buffers().download_labels(labels)?;
        engine.finish().map(drop)
    }

    fn segment(
        &mut self,
        frame: RawFrame,
        to: (Target, LabelType),
        streams: &Streams,
        outputs: Outputs,
    ) -> Result<Option<DeviceMemory>> {
        let cuda = self.engine.backend().clone();
        let done = self.put(&cuda, frame, to, streams, outputs);
        if done.is_err() {
            // What is on our stream may still use the caller's memory.
            let _ = cuda.synchronize();
        }
        done
    }

    fn put(
        &mut self,
        cuda: &Cuda,
        frame: RawFrame,
        (target, kind): (Target, LabelType),
        streams: &Streams,
        outputs: Outputs,
    ) -> Result<Option<DeviceMemory>> {
        let Self { engine, intake, labels, on_device, .. } = self;
        *on_device = None;
        let RawFrame { info, address, stride } = frame;
        streams.wait_for_all(cuda)?;
        // SAFETY: `device.rs` has checked the frame and holds it. Our stream waits for the caller's; the caller's waits for ours
        // before the memory can be used again, or the host does.
        let frame = unsafe { DeviceFrame::from_planes(info, [address, 0, 0], [stride, 0, 0])? };
        let frame = if streams.is_ordered {
            intake.take(cuda, &frame)?
        } else {
            let copy = intake.copy(cuda, &frame)?;
            cuda.synchronize()?;
            copy
        };
        engine.submit(&frame, &mut (), outputs)?;
        let memory = match target {
            Target::Given(address, stride) => {
                // SAFETY: as for the frame.
                let mut to = unsafe { DeviceLabels::from_raw(address, stride, info.geometry, kind)? };
                engine.buffers().export_labels(&mut to)?;
                None
            }
            Target::Own => {
                let mut memory = labels.take(info.geometry.pixels() * kind.bytes())?;
                engine.buffers().export_labels(&mut memory.labels(info.geometry, kind)?)?;
                memory.mark()?;
                Some(memory)
            }
        };
        streams.precede_all(cuda)?;
        if memory.is_none() && !streams.is_ordered {
            cuda.synchronize()?;
        }
        *on_device = Some((outputs, None));
        Ok(memory)
    }

    fn counts(&mut self) -> Result<Counts> {
        match &mut self.on_device {
            Some((_, Some(counts))) => Ok(*counts),
            Some((outputs, none)) => Ok(*none.insert(self.engine.buffers().counts(*outputs)?)),
            None => Ok(Counts::default()),
        }
    }

    fn export(&mut self, table: Table, to: &mut DeviceBytes<'_>) -> Result<()> {
        let counts = self.counts()?;
        let Some((outputs, _)) = self.on_device else { return Ok(()) };
        match table {
            Table::Records(part) => self.engine.buffers().export(part, counts, outputs, to).map(drop),
            Table::Edges => self.engine.buffers().export_edges(counts, outputs, to),
        }
    }
}
