// SPDX-License-Identifier: MPL-2.0
//! The stages of the CPU backend.

use crate::algo::{self, AlgorithmPlan, algorithms};
use crate::backend::{self, Backend, Internal, StageTimes, Stages};
use crate::buffers::cpu::FrameBuffers;
use crate::cpu::Cpu;
use crate::error::{Error, Result};
use crate::image::{Frame, FrameMut, Labels};
use crate::ingest;
use crate::params::Outputs;
use crate::plan::Plan;
use crate::post::{connectivity, hierarchy, merge, overlay, refine, stages, statistics};
use crate::regions::Regions;
use crate::temporal;

impl Backend for Cpu {
    type Frame<'a> = Frame<'a>;
    type FrameMut<'a> = FrameMut<'a>;
    type Labels<'a> = Labels<'a>;
    type Buffers = FrameBuffers;
    type Kept = Regions;

    fn describe(&self) -> String {
        match self.threads() {
            1 => "cpu 1 thread".into(),
            n => format!("cpu {n} threads"),
        }
    }

    fn buffers(&self, plan: &Plan, _: Internal) -> Result<FrameBuffers> {
        FrameBuffers::new(self, plan)
    }

    fn kept(&self, _: Internal) -> Result<Regions> {
        Ok(Regions::default())
    }

    /// Runs the whole frame inside of the pool: entering it for each stage would wake a thread and wait for it every
    /// time.
    fn run(
        &mut self,
        buffers: &mut FrameBuffers,
        _: &Frame<'_>,
        outputs: Outputs,
        stages: &mut (dyn FnMut(&mut FrameBuffers) -> Result<()> + Send),
    ) -> Result<()> {
        buffers.clear_sums();
        buffers.wants_samples = outputs.table || outputs.mean_color;
        if let Some(state) = &mut buffers.temporal {
            std::mem::swap(&mut buffers.features, &mut state.features);
        }
        let done = Cpu::run(self, || stages(buffers));
        if let (Err(_), Some(state)) = (&done, &mut buffers.temporal) {
            // Allocation failed half way, so a part of the state is already this frame's.
            state.forget();
        }
        done
    }

    fn ingest(&self, plan: &Plan, _: &FrameBuffers, _: Internal) -> Result<Box<dyn backend::Ingest<Self>>> {
        Ok(Box::new(ingest::cpu::Ingest::new(self, plan)?))
    }

    fn segmenter(
        &self,
        plan: &Plan,
        _: &FrameBuffers,
        _: Internal,
    ) -> Result<Box<dyn backend::Segmenter<Self>>> {
        macro_rules! choose {
            ($($variant:ident, $module:ident, $nick:literal, $backends:ident, $about:literal;)*) => {
                match &plan.algorithm {
                    $(AlgorithmPlan::$variant(own) => Box::new(algo::$module::cpu::$variant::new(self, plan, own)?),)*
                }
            };
        }
        Ok(algorithms!(choose))
    }

    fn connectivity(
        &self,
        plan: &Plan,
        _: &FrameBuffers,
        _: Internal,
    ) -> Result<Box<dyn backend::Connectivity<Self>>> {
        Ok(if plan.connectivity {
            Box::new(connectivity::cpu::Connectivity::new(self, plan)?)
        } else if plan.clusters_are_pixels() {
            Box::new(connectivity::renumber::RenumberPixels::new(self, plan)?)
        } else {
            Box::new(connectivity::renumber::Renumber::new(self, plan)?)
        })
    }

    fn stages(&self, plan: &Plan, _: &FrameBuffers, _: Internal) -> Result<Stages<Self>> {
        let mut list: Stages<Self> = Vec::new();
        macro_rules! add {
            ($($stage:ident, $type:ident;)*) => {
                $(if let Some(own) = plan.$stage {
                    list.push((stringify!($stage), Box::new($stage::cpu::$type::new(self, plan, own)?)));
                })*
            };
        }
        stages!(add);
        Ok(list)
    }

    fn temporal(
        &self,
        plan: &Plan,
        _: &FrameBuffers,
        _: Internal,
    ) -> Result<Option<Box<dyn backend::Temporal<Self>>>> {
        let stages = || Box::new(temporal::cpu::Temporal::new(self)) as Box<dyn backend::Temporal<Self>>;
        Ok(plan.temporal.as_ref().map(|_| stages()))
    }

    fn statistics(
        &self,
        plan: &Plan,
        _: &FrameBuffers,
        _: Internal,
    ) -> Result<Box<dyn backend::Statistics<Self>>> {
        Ok(Box::new(statistics::cpu::Statistics::new(self, plan)?))
    }

    fn overlay(&self, plan: &Plan, _: &FrameBuffers, _: Internal) -> Result<Box<dyn backend::Overlay<Self>>> {
        Ok(Box::new(overlay::cpu::Overlay::new(self, plan)?))
    }

    fn check(&self, plan: &Plan, frame: &Frame<'_>, labels: &Labels<'_>) -> Result<()> {
        self.check_process()?;
        plan.frame.check(frame.info())?;
        if frame.mask().is_some() && !plan.masked {
            return Err(Error::Mask);
        }
        if frame.prior().is_some() && !plan.prior {
            return Err(Error::Prior);
        }
        labels.check(plan.frame.geometry)
    }

    fn cluster(
        &self,
        plan: &Plan,
        buffers: &mut FrameBuffers,
        segmenter: &mut dyn backend::Segmenter<Self>,
        colors: &[u32],
        clusters: &mut [u16],
        _: Internal,
    ) -> Result<()> {
        let geometry = plan.frame.geometry;
        let mut labels = Labels::new(geometry, clusters, geometry.width as usize)?;
        buffers.features.copy_from_slice(colors);
        Cpu::run(self, || segmenter.segment(buffers, &mut labels, &mut StageTimes::default()))
    }

    fn change(&self, plan: &Plan, buffers: &mut FrameBuffers, growth: Option<f64>) -> Result<()> {
        if let (Some(state), Some(temporal)) = (&mut buffers.temporal, &plan.temporal) {
            state.change(temporal, growth);
        }
        // The new plan may have no stage that would clear them.
        buffers.merges.clear();
        Ok(())
    }
}
