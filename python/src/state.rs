// SPDX-License-Identifier: MPL-2.0
//! State of a Segmenter from frame to frame.

use gstsuperpixel::any_engine::{AnyEngine, Continuity};
use gstsuperpixel::error::{Error, Result};
use gstsuperpixel::events::Events;
use gstsuperpixel::grid::Grid;
use gstsuperpixel::image::{FrameInfo, Geometry};
use gstsuperpixel::params::Params;
use gstsuperpixel::plan::Plan;
use gstsuperpixel::regions::{Event, Regions};
use gstsuperpixel::wide;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::arrays::Converted;
use crate::devices::WorkDevice;
use crate::engines::{self, SegmenterEngine};
use crate::library::Library;
use crate::parameters::with_enough_superpixels;
use crate::prior::PriorRule;
use crate::size;
use crate::tables::Source;
use crate::wide::WideEngine;

const NO_TABLES: &str = "no table is made of label maps of more than 65535 superpixels, which have 32 bits; of the labels np.bincount gives areas and \
     adjacency pairs, or pass a smaller n_segments";

/// Parameters, and the engine for them once there is one.
#[derive(Default)]
pub struct State {
    /// As they are set.
    pub params: Params,
    pub engine: Option<SegmenterEngine>,
    /// The engine for frames whose labels have 32 bits, and the parameters that it was made with.
    pub wide: Option<(Params, WideEngine)>,
    /// Number of regions of the last frame, if its labels have 32 bits.
    pub wide_regions: Option<u32>,
    /// Device of the engines; `None` until the first frame decides, if the user left it open.
    pub place: Option<WorkDevice>,
    /// Library of the last frame on a device.
    pub library: Library,
    /// True if `params` need another engine than the present one.
    pub is_outdated: bool,
    pub is_segmented: bool,
    /// True once the user was told of values that use little of their range.
    pub has_warned: bool,
    /// True once the user was told that there is no room for as many superpixels as are asked for.
    pub has_warned_of_size: bool,
    /// The next identity, where the engine that knew it is gone.
    pub next_id: u32,
    /// The last frame whose values are no codes, and components that hold for the next one.
    pub converted: Converted,
    /// Labels of a frame that are numbered anew.
    pub map: Vec<u16>,
    /// The last frame of the host, where events are asked for, and what happened in it.
    pub events: Events,
    pub found: Vec<Event>,
}

impl State {
    /// Runs `segment` on an engine for such frames. Identities go on where that is a new one.
    pub fn run<E: From<Error>>(
        &mut self,
        info: FrameInfo,
        make: impl FnOnce(Plan) -> Result<SegmenterEngine>,
        segment: impl FnOnce(&mut SegmenterEngine) -> Result<(), E>,
    ) -> Result<(), E> {
        let is_other = |engine: &SegmenterEngine| engine.plan().frame() != info;
        (self.wide, self.wide_regions) = (None, None);
        if self.is_outdated || self.engine.as_ref().is_some_and(is_other) {
            self.remove()?;
        }
        let mut engine = match self.engine.take() {
            Some(engine) => engine,
            None => {
                let mut engine = make(Plan::new(&with_enough_superpixels(&self.params), info)?)?;
                engine.set_next_id(self.next_id)?;
                self.is_outdated = false;
                engine
            }
        };
        let result = segment(&mut engine);
        self.is_segmented = result.is_ok();
        self.engine = Some(engine);
        result
    }

    /// Runs `segment` on an engine for frames whose labels have 32 bits: it gives the number of regions.
    pub fn run_wide<E: From<Error>>(
        &mut self,
        info: FrameInfo,
        make: impl FnOnce(&Params) -> Result<WideEngine>,
        segment: impl FnOnce(&mut WideEngine) -> Result<u32, E>,
    ) -> Result<(), E> {
        // A device may have no room for both.
        self.remove()?;
        self.wide_regions = None;
        let fits =
            |(params, engine): &(Params, WideEngine)| *params == self.params && engine.plan().frame() == info;
        let mut kept = match self.wide.take().filter(fits) {
            Some(kept) => kept,
            None => (self.params.clone(), make(&self.params)?),
        };
        self.wide_regions = Some(segment(&mut kept.1)?);
        self.wide = Some(kept);
        Ok(())
    }

    /// Whether frames of that size have labels of 32 bits.
    pub fn is_wide(&self, geometry: Geometry) -> bool {
        wide::is_needed(&self.params, geometry)
    }

    /// Finds what became of regions since the frame before. `plane` holds the labels, `stride` apart from row to row.
    pub fn note_events(&mut self, geometry: Geometry, plane: &[u16], stride: usize) -> Result<()> {
        self.found.clear();
        if let Some(engine) = &self.engine {
            let Regions { table, motion, .. } = engines::regions(engine);
            let found = self.events.next(geometry, |y| &plane[y * stride..], table, motion)?;
            self.found.extend_from_slice(found);
        }
        Ok(())
    }

    /// Warns of superpixels that come out larger than asked for, once. This is called by a method of the package.
    pub fn warn_of_size(&mut self, py: Python<'_>, geometry: Geometry) -> PyResult<()> {
        if !self.has_warned_of_size {
            self.has_warned_of_size = size::warn_of_size(py, &self.params, geometry, 1)?;
        }
        Ok(())
    }

    /// Makes the next engine one for frames with masks.
    pub fn expect_masks(&mut self) {
        if !self.params.masked {
            (self.params.masked, self.is_outdated) = (true, true);
        }
    }

    /// Makes the next engine one for frames with priors, or this one of another price.
    pub fn expect_priors(&mut self, rule: PriorRule) -> Result<()> {
        if !rule.follows(&self.params) {
            rule.set(&mut self.params);
            self.is_outdated = true;
            return Ok(());
        }
        if rule.costs_the_same(&self.params) {
            return Ok(());
        }
        let mut params = self.params.clone();
        rule.set(&mut params);
        self.change(params)
    }

    /// Drops the engine and remembers the next identity.
    pub fn remove(&mut self) -> Result<()> {
        self.is_segmented = false;
        if let Some(mut engine) = self.engine.take() {
            self.next_id = engine.next_id()?;
        }
        Ok(())
    }

    pub fn change(&mut self, params: Params) -> Result<()> {
        self.has_warned_of_size = false;
        self.params = params;
        if self.is_outdated {
            return Ok(());
        }
        let Some(engine) = &mut self.engine else { return Ok(()) };
        let plan = Plan::new(&with_enough_superpixels(&self.params), engine.plan().frame())?;
        match engine.change(&plan) {
            Ok(is_done) => self.is_outdated = !is_done,
            // It is of no use now.
            Err(error) => {
                self.remove()?;
                return Err(error);
            }
        }
        Ok(())
    }

    /// The grid of the last frame.
    pub fn grid(&mut self) -> PyResult<Grid> {
        match (&self.wide, self.wide_regions) {
            (Some((_, engine)), Some(_)) => Ok(*engine.plan().grid()),
            _ => Ok(*self.segmented()?.plan().grid()),
        }
    }

    pub fn segmented(&mut self) -> PyResult<&mut SegmenterEngine> {
        if self.wide_regions.is_some() {
            return Err(PyRuntimeError::new_err(NO_TABLES));
        }
        match &mut self.engine {
            Some(engine) if self.is_segmented => Ok(engine),
            _ => Err(PyRuntimeError::new_err("no frame has been segmented; call segment(frame) first")),
        }
    }

    pub fn regions(&mut self) -> PyResult<&Regions> {
        self.segmented().map(|engine| engines::regions(engine))
    }

    /// Source of tables, if the last frame was on a device.
    pub fn on_device(&mut self) -> PyResult<Option<Source<'_>>> {
        self.segmented()?;
        let Self {
            engine: Some(AnyEngine::Device(engine)),
            library,
            place: Some(WorkDevice::Cuda(ordinal)),
            ..
        } = self
        else {
            return Ok(None);
        };
        Ok(engine.is_last_on_device().then_some(Source { library, ordinal: *ordinal, engine }))
    }

    /// Settles where a frame on the device of this number is segmented.
    pub fn settle(&mut self, ordinal: i32) -> PyResult<()> {
        match *self.place.get_or_insert(WorkDevice::Cuda(ordinal)) {
            WorkDevice::Cuda(own) if own == ordinal => Ok(()),
            place => Err(PyValueError::new_err(format!(
                "the frame is on cuda:{ordinal} and this Segmenter on {}; make one with device='cuda:{ordinal}', or copy the \
                 frame there first",
                place.name()
            ))),
        }
    }
}
