// SPDX-License-Identifier: MPL-2.0
//! Frames of the host in a Segmenter, one or a clip: on the CPU, or on a device to which they go up.

use gstsuperpixel::any_engine::AnyEngine;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::Labels;
use gstsuperpixel::params::Outputs;
use numpy::Element;
use pyo3::prelude::*;

use crate::arrays::Images;
use crate::devices::{self, WorkDevice};
use crate::engines;
use crate::error::{Failure, exception};
use crate::label_arrays::{LabelArray, is_uint32};
use crate::library;
use crate::mask::Masks;
use crate::plane::Plane;
use crate::pools::pool;
use crate::prior::{PriorRule, Priors, with_prior};
use crate::state::State;
use crate::watch::Watch;
use crate::wide::{WideEngine, check_start};

/// A call with frames of the host.
pub struct HostFrames<'a, 'py> {
    pub frame: &'a Bound<'py, PyAny>,
    pub images: Images<'py>,
    pub masks: Option<Masks>,
    pub priors: Option<Priors>,
    pub prior_rule: PriorRule,
    pub out: Option<&'a Bound<'py, PyAny>>,
    /// The label of the first region.
    pub start: i32,
    pub outputs: Outputs,
    pub finds_events: bool,
    pub threads: u32,
    pub watch: Watch,
}

impl<'py> HostFrames<'_, 'py> {
    /// The labels: of 16 bits where they start at 0, there is no mask, and these name all superpixels, else of 32.
    pub fn segment(&self, py: Python<'py>, state: &mut State) -> PyResult<Bound<'py, PyAny>> {
        let geometry = self.images.info().geometry;
        let is_wide = state.is_wide(geometry);
        if is_wide {
            check_start(self.start, geometry)?;
        }
        // Closures, since a constructor is of one lifetime.
        #[allow(clippy::redundant_closure)]
        match (self.start, &self.masks) {
            (0, None) if is_wide || self.out.map_or(Ok(false), is_uint32)? => {
                self.fill(py, state, |items: &mut [u32]| Plane::Wide(items))
            }
            (0, None) => self.fill(py, state, |items: &mut [u16]| Plane::Words(items)),
            (start, _) => self.fill(py, state, |items: &mut [i32]| Plane::Shifted(items, start)),
        }
    }

    fn fill<T: Element>(
        &self,
        py: Python<'py>,
        state: &mut State,
        plane: impl Fn(&mut [T]) -> Plane<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let &Self { ref images, ref masks, ref priors, outputs, finds_events, ref watch, .. } = self;
        let mut array = LabelArray::<T>::new(py, self.out, images)?;
        if !finds_events {
            state.events.forget();
        }
        if masks.is_some() {
            state.expect_masks();
        }
        if priors.is_some() {
            state.expect_priors(self.prior_rule).map_err(exception)?;
        }
        let place = *state.place.get_or_insert(WorkDevice::Cpu);
        let cuda = match place {
            WorkDevice::Cpu => None,
            WorkDevice::Cuda(ordinal) => Some(devices::cuda(py, ordinal)?),
        };
        let cpu = pool(py, self.threads)?;
        let make = |plan| match &cuda {
            Some(cuda) => engines::on_device(cuda, plan),
            None => Engine::new(cpu.clone(), plan).map(|engine| AnyEngine::Cpu(Box::new(engine))),
        };
        let is_wide = state.is_wide(images.info().geometry);
        let (info, sources, stride) = (images.info(), images.sources()?, array.stride());
        let make_wide = |params: &_| WideEngine::new(&cpu, cuda.as_ref(), params, info);
        let mut planes: Vec<_> = array.planes().map(plane).collect();
        let (mut converted, mut map) = (std::mem::take(&mut state.converted), std::mem::take(&mut state.map));
        converted.components.is_video = state.params.temporal;
        let done = py.detach(|| {
            for (i, (source, plane)) in sources.iter().zip(&mut planes).enumerate() {
                if watch.is_due() {
                    watch.look()?;
                }
                let mask = masks.as_ref().map(|masks| masks.plane(i));
                let prior = priors.as_ref().map(|priors| (priors, i));
                if is_wide {
                    source.with(&cpu, mask, &mut converted, |frame| {
                        let frame = &with_prior(frame, prior)?;
                        Ok(state
                            .run_wide(info, make_wide, |engine| engine.segment(frame, plane, stride, watch)))
                    })??;
                    watch.note();
                    continue;
                }
                source.with(&cpu, mask, &mut converted, |frame| {
                    let frame = &with_prior(frame, prior)?;
                    plane.fill(info.geometry, stride, &mut map, |items, stride| {
                        let labels = Labels::new(info.geometry, &mut *items, stride)?;
                        state.run(info, make, |engine| engines::segment(engine, frame, labels, outputs))?;
                        if finds_events {
                            state.note_events(info.geometry, items, stride)?;
                        }
                        Ok::<_, Error>(())
                    })
                })?;
                watch.note();
            }
            Ok::<_, Failure>(())
        });
        (state.converted, state.map) = (converted, map);
        done.map_err(|failure| match (place, failure) {
            (WorkDevice::Cuda(ordinal), Failure::Library(error)) => devices::failed(py, ordinal, error),
            (_, failure) => failure.into(),
        })?;
        watch.end(py)?;
        drop(planes);
        self.out.map_or_else(|| library::as_given(self.frame, array.into_array()), |out| Ok(out.clone()))
    }
}
