// SPDX-License-Identifier: MPL-2.0
//! The CPU backend: host memory and a pool of threads. It defines every result; no result depends on its threads.

#[doc(hidden)]
pub mod level;
#[doc(hidden)]
pub mod memory;

use std::sync::Arc;

use crate::algo::temporal;
use crate::backend::{self, Backend, Internal};
use crate::error::{Error, Result};
use crate::image::{Frame, FrameInfo, FrameMut, Geometry, Labels};
use crate::ingest;
use crate::params::{Outputs, THREADS};
use crate::plan::Plan;
use crate::post::{connectivity, merge, overlay, statistics};
use memory::Array;

/// Host memory, rows in parallel.
#[derive(Clone)]
pub struct Cpu {
    pool: Arc<rayon::ThreadPool>,
    /// The process that the threads of the pool are in.
    process: u32,
}

impl Cpu {
    /// Starts a pool of `threads` threads; 0 takes one for each core.
    ///
    /// Errors: a number out of range, or threads that the system refuses.
    pub fn new(threads: u32) -> Result<Self> {
        let threads = THREADS.check(threads)? as usize;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("superpixel{i}"))
            .build()
            .map_err(|e| Error::Backend { backend: "cpu", reason: format!("{e}; set fewer threads") })?;
        Ok(Self { pool: Arc::new(pool), process: std::process::id() })
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// Runs work on the pool.
    pub(crate) fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.pool.install(work)
    }
}

impl Backend for Cpu {
    type Frame<'a> = Frame<'a>;
    type FrameMut<'a> = FrameMut<'a>;
    type Labels<'a> = Labels<'a>;
    type Work = Work;

    fn describe(&self) -> String {
        match self.threads() {
            1 => "cpu 1 thread".into(),
            n => format!("cpu {n} threads"),
        }
    }

    fn work(&self, plan: &Plan, _: Internal) -> Result<Work> {
        let pixels = plan.frame.geometry.pixels();
        let features = memory::zeroed("packed colors", pixels)?;
        let clusters = memory::zeroed("clusters", if plan.clusters_are_pixels() { pixels } else { 0 })?;
        let state = |temporal| temporal::cpu::State::new(self, plan, temporal).map(Box::new);
        let temporal = plan.temporal.as_ref().map(state).transpose()?;
        Ok(Work { features, clusters, temporal, count: 0 })
    }

    /// The whole frame on the pool: stages that each went there would each wake a thread and wait for it.
    fn run(
        &mut self,
        work: &mut Work,
        _: &Frame<'_>,
        _: Outputs,
        stages: &mut (dyn FnMut(&mut Work) -> Result<()> + Send),
    ) -> Result<()> {
        let done = self.pool.install(|| stages(work));
        if let (Err(_), Some(state)) = (&done, &mut work.temporal) {
            // Want of memory: half of the state is this frame's.
            state.forget();
        }
        done
    }

    fn ingest(&self, plan: &Plan, _: &Work, _: Internal) -> Result<Box<dyn backend::Ingest<Self>>> {
        Ok(Box::new(ingest::cpu::Ingest::new(self, plan)))
    }

    fn segmenter(&self, plan: &Plan, _: &Work, _: Internal) -> Result<Box<dyn backend::Segmenter<Self>>> {
        plan.algorithm.on_cpu(self, plan)
    }

    fn connectivity(
        &self,
        plan: &Plan,
        _: &Work,
        _: Internal,
    ) -> Result<Box<dyn backend::Connectivity<Self>>> {
        Ok(if plan.connectivity {
            Box::new(connectivity::cpu::Connectivity::new(self, plan))
        } else if plan.clusters_are_pixels() {
            Box::new(connectivity::cpu::RenumberPixels::new(self, plan)?)
        } else {
            Box::new(connectivity::cpu::Renumber::new(self, plan)?)
        })
    }

    fn merge(&self, plan: &Plan, _: &Work, _: Internal) -> Result<Option<Box<dyn backend::Merge<Self>>>> {
        let stage = |rule| Box::new(merge::cpu::Merge::new(self, plan.frame.geometry, rule));
        Ok(plan.merge.map(|rule| stage(rule) as Box<dyn backend::Merge<Self>>))
    }

    fn temporal(
        &self,
        plan: &Plan,
        _: &Work,
        _: Internal,
    ) -> Result<Option<Box<dyn backend::Temporal<Self>>>> {
        let stages = || Box::new(temporal::cpu::Temporal::new(self)) as Box<dyn backend::Temporal<Self>>;
        Ok(plan.temporal.as_ref().map(|_| stages()))
    }

    fn statistics(&self, plan: &Plan, _: &Work, _: Internal) -> Result<Box<dyn backend::Statistics<Self>>> {
        Ok(Box::new(statistics::cpu::Statistics::new(self, plan)))
    }

    fn overlay(&self, plan: &Plan, _: &Work, _: Internal) -> Result<Box<dyn backend::Overlay<Self>>> {
        Ok(Box::new(overlay::cpu::Overlay::new(self, plan)?))
    }

    fn check(&self, plan: &Plan, frame: &Frame<'_>, labels: &Labels<'_>) -> Result<()> {
        // A process that is forked inherits the pool without its threads, and would wait for them for ever.
        if self.process != std::process::id() {
            return Err(Error::Backend { backend: "cpu", reason: "its threads are those of the process that this one was forked from; make an engine after the fork".into() });
        }
        check_frame(&plan.frame, frame.info())?;
        check_labels(plan.frame.geometry, labels)
    }

    fn change(&self, plan: &Plan, work: &mut Work, growth: Option<f64>) -> Result<()> {
        if let (Some(state), Some(temporal)) = (&mut work.temporal, &plan.temporal) {
            state.change(temporal, growth);
        }
        Ok(())
    }
}

/// What the stages of a frame hand on.
pub struct Work {
    /// The packed color plane, see [`crate::color`]; rows without padding.
    pub(crate) features: Array<u32>,
    /// The cluster of each pixel where clusters are named by one of their pixels, which is in it; rows without padding.
    /// Empty where clusters are cells of the grid: then the label plane holds them.
    pub(crate) clusters: Array<u32>,
    /// What lasts from frame to frame.
    pub(crate) temporal: Option<Box<temporal::cpu::State>>,
    /// Number of regions.
    pub(crate) count: u32,
}

impl Work {
    /// Name of a region over time; its label where nothing lasts.
    pub(crate) fn track_id(&self, label: usize) -> u32 {
        self.temporal
            .as_ref()
            .and_then(|state| state.named().get(label))
            .map_or(label as u32, |track| track.id)
    }
}

/// Refuses a frame that is not of the plan's kind.
pub(crate) fn check_frame(plan: &FrameInfo, frame: &FrameInfo) -> Result<()> {
    if plan.is_like(frame) { Ok(()) } else { Err(Error::Frame { planned: *plan, got: *frame }) }
}

/// Refuses a label plane that is not of the plan's size.
pub(crate) fn check_labels(planned: Geometry, labels: &Labels<'_>) -> Result<()> {
    let got = labels.geometry();
    if planned == got { Ok(()) } else { Err(Error::Labels { planned, got }) }
}
