// SPDX-License-Identifier: MPL-2.0
//! A frame's stages in order, behind the one call that applications and elements make.

use crate::backend::{
    Backend, Connectivity, Ingest, Internal, Overlay, Pass, Segmenter, StageTimes, Stages, Statistics,
    Temporal,
};
use crate::error::{Error, Result};
use crate::parameter::Parameters;
use crate::params::{BOUNDARY_WIDTH, Drawing, Fill, Outputs};
use crate::plan::Plan;
use crate::regions::Regions;

/// All stages and memory for frames of one [`Plan`] on one backend.
// Fields are dropped in their order: stages live in the backend's context, which it or `buffers` may be the last to hold.
pub struct Engine<B: Backend> {
    plan: Plan,
    ingest: Box<dyn Ingest<B>>,
    segmenter: Box<dyn Segmenter<B>>,
    connectivity: Box<dyn Connectivity<B>>,
    stages: Stages<B>,
    temporal: Option<Box<dyn Temporal<B>>>,
    statistics: Box<dyn Statistics<B>>,
    overlay: Box<dyn Overlay<B>>,
    outputs: Outputs,
    regions: Regions,
    times: StageTimes,
    /// The next identity, for plans without temporal mode.
    next_id: u32,
    /// True once there is a label map to draw.
    is_segmented: bool,
    buffers: B::Buffers,
    backend: B,
}

impl<B: Backend> Engine<B> {
    /// Creates the stages and their scratch memory.
    ///
    /// # Errors
    ///
    /// Errors of the backend, for instance of memory.
    pub fn new(backend: B, plan: Plan) -> Result<Self> {
        let buffers = backend.buffers(&plan, Internal::CALL)?;
        Ok(Self {
            ingest: backend.ingest(&plan, &buffers, Internal::CALL)?,
            segmenter: backend.segmenter(&plan, &buffers, Internal::CALL)?,
            connectivity: backend.connectivity(&plan, &buffers, Internal::CALL)?,
            stages: backend.stages(&plan, &buffers, Internal::CALL)?,
            temporal: backend.temporal(&plan, &buffers, Internal::CALL)?,
            statistics: backend.statistics(&plan, &buffers, Internal::CALL)?,
            overlay: backend.overlay(&plan, &buffers, Internal::CALL)?,
            outputs: Outputs::default(),
            regions: Regions::default(),
            times: StageTimes::default(),
            next_id: 1,
            is_segmented: false,
            buffers,
            backend,
            plan,
        })
    }

    /// The backend that this engine runs on.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Gives the backend back, to be used with another plan.
    pub fn into_backend(self) -> B {
        self.backend
    }

    /// The plan that this engine runs.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The backend's memory, with functions of its own.
    pub fn buffers(&self) -> &B::Buffers {
        &self.buffers
    }

    /// The backend's memory, to change it. Private, because replacing it by another plan's would let stages access
    /// memory out of bounds:
    ///
    /// ```compile_fail,E0624
    /// use gstsuperpixel::cuda::Cuda;
    /// use gstsuperpixel::engine::Engine;
    ///
    /// fn exchange(a: &mut Engine<Cuda>, b: &mut Engine<Cuda>) {
    ///     std::mem::swap(a.buffers_mut(), b.buffers_mut());
    /// }
    /// ```
    #[cfg(feature = "cuda")]
    pub(crate) fn buffers_mut(&mut self) -> &mut B::Buffers {
        &mut self.buffers
    }

    /// Continues with another plan and the same identities, if it [`follows`](Plan::follows) this engine's. Otherwise
    /// returns false and changes nothing; a new engine is needed. Waits for a device. The more the weight of positions
    /// changes, the larger a difference to the next frame counts as its effect and not as a cut; after a change between
    /// SLIC and SLICO no cut is found in that frame.
    ///
    /// # Errors
    ///
    /// Errors of the backend. The engine cannot be used afterwards.
    pub fn change(&mut self, plan: &Plan) -> Result<bool> {
        let Self { backend, plan: own, buffers, segmenter, stages, .. } = self;
        if plan == own {
            return Ok(true);
        }
        if !plan.follows(own) {
            return Ok(false);
        }
        backend.change(plan, buffers, plan.algorithm.growth(&own.algorithm))?;
        segmenter.change(plan, buffers)?;
        *stages = backend.stages(plan, buffers, Internal::CALL)?;
        *own = plan.clone();
        Ok(true)
    }

    /// Discards the frames before: the next one is segmented as if it were the first, with new identities.
    pub fn reset(&mut self) {
        if let Some(temporal) = &mut self.temporal {
            temporal.reset(&mut self.buffers);
        }
    }

    /// Returns the identity of the next new region: 1 at first, and 1 again after `u32::MAX`. Without temporal mode it
    /// is the number that was set, so that the next engine continues from there. Waits for a device.
    pub fn next_id(&mut self) -> Result<u32> {
        match &mut self.temporal {
            Some(temporal) => temporal.next_id(&self.buffers),
            None => Ok(self.next_id),
        }
    }

    /// Sets the next identity, so that an earlier engine's are not given again soon. 0 is no identity and counts as 1.
    pub fn set_next_id(&mut self, id: u32) -> Result<()> {
        self.next_id = id.max(1);
        match &mut self.temporal {
            Some(temporal) => temporal.set_next_id(&mut self.buffers, self.next_id),
            None => Ok(()),
        }
    }

    /// Starts the segmentation of a frame, which [`Engine::finish`] completes. Does not wait for a device.
    ///
    /// # Errors
    ///
    /// A frame or plane that does not match the plan; it does not affect the next frame.
    pub fn submit(
        &mut self,
        frame: &B::Frame<'_>,
        labels: &mut B::Labels<'_>,
        outputs: Outputs,
    ) -> Result<()> {
        let Self {
            backend,
            plan,
            buffers,
            ingest,
            segmenter,
            connectivity,
            stages,
            temporal,
            statistics,
            times,
            is_segmented,
            ..
        } = self;
        backend.check(plan, frame, labels)?;
        self.outputs = outputs;
        *is_segmented = false;
        times.clear();
        backend.run(buffers, frame, outputs, &mut |buffers| {
            times.time("ingest", || ingest.ingest(frame, buffers))?;
            if let Some(temporal) = temporal {
                temporal.begin(buffers, times)?;
            }
            segmenter.segment(buffers, labels, times)?;
            times.time("connectivity", || connectivity.enforce(buffers, labels))?;
            if let Some(temporal) = temporal {
                temporal.identify(buffers, labels, times)?;
            }
            for pass in [Pass::Labels, Pass::Lists] {
                for (name, stage) in stages.iter_mut() {
                    let Some(work) = stage.work(pass, outputs) else { continue };
                    if let Some(wanted) = work.measured {
                        let parts = || statistics.measure_parts(frame, buffers, labels, wanted);
                        times.time("statistics", parts)?;
                    }
                    times.time(name, || stage.run(pass, buffers, labels))?;
                }
            }
            times.time("statistics", || statistics.measure(frame, buffers, labels, outputs))
        })?;
        *is_segmented = true;
        Ok(())
    }

    /// Completes the segmentation that was submitted last, with the same `labels`: a label map that is in device memory is
    /// copied there. Waits for a device.
    ///
    /// # Errors
    ///
    /// If no frame has been segmented; a plane of another shape than the plan's; errors of the backend.
    pub fn finish(&mut self, labels: &mut B::Labels<'_>) -> Result<&Regions> {
        let outputs = self.segmented_for()?;
        self.statistics.collect(&self.buffers, labels, outputs, &mut self.regions)?;
        Ok(&self.regions)
    }

    /// The outputs that the last frame was segmented for.
    pub(crate) fn segmented_for(&self) -> Result<Outputs> {
        if self.is_segmented { Ok(self.outputs) } else { Err(Error::NotSegmented) }
    }

    /// Allocates memory for the results of a frame, for [`Engine::keep`].
    pub fn kept(&self) -> Result<B::Kept> {
        self.backend.kept(Internal::CALL)
    }

    /// Copies the results of the frame that was submitted last into `kept`, where they stay while later frames are
    /// segmented. Does not wait for a device; reading `kept` does. Without `copies` only the number of regions is kept.
    ///
    /// # Errors
    ///
    /// If no frame has been segmented; errors of the backend, for instance of memory.
    pub fn keep(&mut self, copies: bool, kept: &mut B::Kept) -> Result<()> {
        let outputs = self.segmented_for()?;
        self.statistics.keep(&self.buffers, outputs, copies, kept)
    }

    /// Segments a frame: writes the label map, values 0..n-1, each used, and [`NO_LABEL`](crate::image::NO_LABEL)
    /// outside of its mask; measures the parts that `outputs` asks for. On a device [`Engine::submit`] and
    /// [`Engine::keep`] do it without waiting.
    ///
    /// # Errors
    ///
    /// A frame or plane of another shape than the plan's.
    pub fn segment(
        &mut self,
        frame: &B::Frame<'_>,
        labels: &mut B::Labels<'_>,
        outputs: Outputs,
    ) -> Result<&Regions> {
        self.submit(frame, labels, outputs)?;
        self.finish(labels)
    }

    /// Draws on the frame that was segmented last. A fill that [needs mean
    /// colors](Fill::needs_mean_color) needs `Outputs::mean_color` in that call.
    ///
    /// # Errors
    ///
    /// If no frame has been segmented; a frame or plane of another shape than the plan's; a value of the drawing out
    /// of range.
    pub fn draw(
        &mut self,
        frame: &mut B::FrameMut<'_>,
        labels: &B::Labels<'_>,
        drawing: &Drawing,
    ) -> Result<()> {
        self.segmented_for()?;
        if let Some(boundaries) = &drawing.boundaries {
            BOUNDARY_WIDTH.check(boundaries.width)?;
        }
        if let Fill::Abstraction(params) = &drawing.fill {
            params.check_each()?;
        }
        let Self { overlay, times, buffers, .. } = self;
        times.time("overlay", || overlay.draw(frame, buffers, labels, drawing))
    }

    /// Results of the last finished frame, without its label map.
    pub fn regions(&self) -> &Regions {
        &self.regions
    }

    /// Times of the stages of the last frame.
    pub fn times(&self) -> &StageTimes {
        &self.times
    }
}
