// SPDX-License-Identifier: MPL-2.0
//! Frames on the CPU: segmented and drawn on in the buffer's own memory.

use crate::any_engine::Continuity;
use crate::backend::StageTimes;
use crate::bad_buffers::Failure;
use crate::cpu::Cpu;
use crate::cpu::memory::{self, Array};
use crate::engine::Engine;
use crate::error::Result;
use crate::image::{Frame, Labels};
use crate::mask::PriorPlane;
use crate::meta;
use crate::plan::Plan;
use crate::regions::Regions;

use super::frame::{DrawMap, ReadMap};
use super::mask::Counted;
use super::task::{FrameResults, Stream, Task, library_error};

/// The engine for the frames of one plan.
pub(super) struct CpuEngine {
    engine: Engine<Cpu>,
    kept: Regions,
    /// Label plane of frames whose labels are not attached.
    scratch: Array<u16>,
}

impl CpuEngine {
    /// Allocates memory for a plan.
    pub(super) fn new(cpu: Cpu, plan: Plan) -> Result<Self> {
        let engine = Engine::new(cpu, plan)?;
        Ok(Self { kept: engine.kept()?, engine, scratch: Array::new() })
    }

    pub(super) fn into_cpu(self) -> Cpu {
        self.engine.into_backend()
    }

    pub(super) fn times(&self) -> &StageTimes {
        self.engine.times()
    }

    /// Segments the pixels of a frame that count and draws on it.
    pub(super) fn run(
        &mut self,
        buffer: &mut gst::BufferRef,
        stream: &Stream,
        task: Task,
        mut counted: Counted<'_>,
        prior: Option<&PriorPlane>,
    ) -> Result<FrameResults, Failure> {
        let Self { engine, kept, scratch } = self;
        let mut run = |labels: &mut Labels<'_>| {
            segment(engine, kept, buffer, &stream.info, labels, task, (&mut counted, prior))
        };
        if !task.labels {
            let geometry = stream.frame.geometry;
            memory::resize(scratch, "label map", geometry.pixels(), 0).map_err(library_error)?;
            let labels = Labels::new(geometry, scratch, geometry.width as usize);
            run(&mut labels.map_err(library_error)?)?;
            return Ok(FrameResults {
                regions: kept.count,
                labels: None,
                table: None,
                motion: None,
                neighbors: None,
                hierarchy: None,
            });
        }
        let (labels, ()) = stream.pool.fill(run)?;
        Ok(FrameResults {
            regions: kept.count,
            labels: Some(labels),
            table: task.outputs.table.then(|| meta::records(&kept.table)),
            motion: (task.motion && kept.motion.len() == kept.count as usize)
                .then(|| meta::records(&kept.motion)),
            neighbors: task.outputs.neighbors.then(|| meta::records(&kept.neighbors)),
            hierarchy: task.merges.then(|| meta::records(&kept.merges)),
        })
    }
}

impl Continuity for CpuEngine {
    fn plan(&self) -> &Plan {
        self.engine.plan()
    }

    fn change(&mut self, plan: &Plan) -> Result<bool> {
        self.engine.change(plan)
    }

    fn reset(&mut self) {
        self.engine.reset();
    }

    fn next_id(&mut self) -> Result<u32> {
        self.engine.next_id()
    }

    fn set_next_id(&mut self, id: u32) -> Result<()> {
        self.engine.set_next_id(id)
    }
}

/// Maps the frame for reading or for drawing, as the task needs, and segments it.
fn segment(
    engine: &mut Engine<Cpu>,
    kept: &mut Regions,
    buffer: &mut gst::BufferRef,
    info: &gst_video::VideoInfo,
    labels: &mut Labels<'_>,
    task: Task,
    (counted, prior): (&mut Counted<'_>, Option<&PriorPlane>),
) -> Result<(), Failure> {
    let layout = engine.plan().frame;
    if let Some(drawing) = task.drawing {
        let mut map = DrawMap::new(buffer, info, layout)?;
        let mut frame = map.frame_mut()?;
        let readable = masked(frame.as_frame(), counted).map_err(library_error)?;
        let readable = prior.map_or(Ok(readable), |prior| prior.on(readable)).map_err(library_error)?;
        engine.submit(&readable, labels, task.outputs).map_err(library_error)?;
        engine.draw(&mut frame, labels, &drawing).map_err(library_error)?;
    } else {
        let map = ReadMap::new(buffer, info, layout)?;
        let frame = masked(map.frame()?, counted).map_err(library_error)?;
        let frame = prior.map_or(Ok(frame), |prior| prior.on(frame)).map_err(library_error)?;
        engine.submit(&frame, labels, task.outputs).map_err(library_error)?;
    }
    Ok(engine.keep(task.labels, kept).map_err(library_error)?)
}

/// The frame with the mask of what counts.
fn masked<'a>(frame: Frame<'a>, counted: &'a mut Counted<'_>) -> Result<Frame<'a>> {
    match counted {
        Counted::All => Ok(frame),
        Counted::Masked(plane) => plane.on(frame),
        Counted::Alpha(plane, alpha, least) => {
            plane.set_alpha(&frame, *alpha, *least)?;
            plane.on(frame)
        }
    }
}
