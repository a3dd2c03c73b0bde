// SPDX-License-Identifier: MPL-2.0
//! What the user asked for: values of properties to parameters of the library and back.

use gst::glib;
use gst::prelude::*;

use crate::algo::{self, AllParams, lsc, quickshift, slic};
use crate::error;
use crate::params::{
    BOUNDARY_WIDTH, Boundaries, Drawing, Fill, ITERATIONS, MIN_REGION, Outputs, Params, SUPERPIXEL_SIZE,
    SUPERPIXELS, THREADS,
};
use crate::post::{hierarchy, merge, refine};
use crate::temporal;

use super::cuda::DeviceSettings;
use super::enums::{Algorithm, Analytics, Backend, ColorSpace, MergeRule, Overlay};

/// The values of all properties; copied once a frame.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    pub algo: Algorithm,
    pub backend: Backend,
    pub device: DeviceSettings,
    pub threads: u32,
    pub overlay: Overlay,
    pub mean_in_linear_light: bool,
    pub boundaries: Boundaries,
    pub labels: bool,
    pub region_table: bool,
    pub neighbors: bool,
    pub analytics: Analytics,
    pub superpixel_size: u32,
    pub superpixels: u32,
    pub connectivity: bool,
    pub min_region: f32,
    pub merge: merge::Params,
    pub hierarchy: hierarchy::Params,
    pub refine: refine::Params,
    pub temporal: bool,
    pub temporal_inertia: f32,
    pub stretch_gray16: bool,
    pub own: AllParams,
    /// `backend` as it was at start; `None` while the element is stopped, when properties may exclude each other for a while.
    pub started: Option<Backend>,
}

impl Default for Settings {
    fn default() -> Self {
        let Params {
            superpixel_size,
            superpixels,
            connectivity,
            min_region,
            merge,
            hierarchy,
            refine,
            temporal_inertia,
            ..
        } = Params::default();
        Self {
            algo: Algorithm::default(),
            backend: Backend::default(),
            device: DeviceSettings::default(),
            threads: THREADS.default,
            overlay: Overlay::default(),
            mean_in_linear_light: false,
            boundaries: Boundaries::default(),
            labels: true,
            region_table: true,
            neighbors: false,
            analytics: Analytics::default(),
            superpixel_size,
            superpixels,
            connectivity,
            min_region,
            merge,
            hierarchy,
            refine,
            // A stream is one scene after another; the library cannot know that of what it is given.
            temporal: true,
            temporal_inertia,
            // Cameras with 16 bits use few of their codes.
            stretch_gray16: true,
            own: AllParams::default(),
            started: None,
        }
    }
}

impl Settings {
    /// Which algorithm segments.
    pub(super) fn algorithm(&self) -> algo::Algorithm {
        self.algo.into()
    }

    /// Whether a device may be chosen at start.
    pub(super) fn may_use_device(&self) -> bool {
        self.backend != Backend::Cpu && self.params().runs_on_cuda()
    }

    /// What decides the label map.
    pub(super) fn params(&self) -> Params {
        Params {
            superpixel_size: self.superpixel_size,
            superpixels: self.superpixels,
            connectivity: self.connectivity,
            min_region: self.min_region,
            merge: self.merge.clone(),
            hierarchy: hierarchy::Params {
                levels: self.labels && self.hierarchy.levels,
                ..self.hierarchy.clone()
            },
            refine: self.refine.clone(),
            temporal: self.temporal,
            temporal_inertia: self.temporal_inertia,
            masked: false,
            stretch_gray16: self.stretch_gray16,
            algorithm: self.own.of(self.algorithm()),
        }
    }

    /// Whether all values go together, with `backend` as it is at start.
    ///
    /// # Errors
    ///
    /// Two that exclude each other, with what to do.
    pub(super) fn check(&self, backend: Backend) -> Result<(), String> {
        let params = self.params();
        params.validate().map_err(|error| error.to_string())?;
        if backend == Backend::Cuda && !params.runs_on_cuda() { Err(cpu_only(&params)) } else { Ok(()) }
    }

    /// Takes the value of a property as [`Settings::set`] does. While the element runs, nothing changes where the value does not go
    /// together with the others: the next frame would end the stream.
    ///
    /// # Errors
    ///
    /// Why the old value stays.
    pub(super) fn take(&mut self, name: &str, value: &glib::Value) -> Result<(), String> {
        let Some(backend) = self.started else { return self.set(name, value).map_err(|e| e.to_string()) };
        let mut changed = self.clone();
        changed.set(name, value).map_err(|error| error.to_string())?;
        changed.check(backend)?;
        *self = changed;
        Ok(())
    }

    /// Takes values that belong to one time: the order in which they come does not show. Where they do not go together, those are
    /// taken that go together with what is there, in their order.
    ///
    /// # Errors
    ///
    /// The first property that keeps its value, and why.
    pub(super) fn take_all<'a>(
        &mut self,
        values: impl Iterator<Item = (&'a str, &'a glib::Value)> + Clone,
    ) -> Result<(), (&'a str, String)> {
        let mut changed = self.clone();
        let all_set = values.clone().all(|(name, value)| changed.set(name, value).is_ok());
        if all_set && self.started.is_none_or(|backend| changed.check(backend).is_ok()) {
            *self = changed;
            return Ok(());
        }
        let refused = |(name, value)| self.take(name, value).err().map(|reason| (name, reason));
        // All of them, not up to the first that is refused.
        values.filter_map(refused).reduce(|first, _| first).map_or(Ok(()), Err)
    }

    /// What is drawn; `None` leaves the pixels alone.
    pub(super) fn drawing(&self) -> Option<Drawing> {
        let boundaries = Some(self.boundaries);
        match self.overlay {
            Overlay::None => None,
            Overlay::Boundaries => Some(Drawing { fill: Fill::None, boundaries }),
            Overlay::MeanColor => Some(Drawing { fill: Fill::MeanColor, boundaries: None }),
            Overlay::MeanColorBoundaries => Some(Drawing { fill: Fill::MeanColor, boundaries }),
            Overlay::Labels => Some(Drawing { fill: Fill::Labels, boundaries: None }),
        }
    }

    /// What is measured beside the label map.
    pub(super) fn outputs(&self) -> Outputs {
        Outputs {
            table: self.labels && self.region_table,
            neighbors: self.labels && self.neighbors,
            mean_color: self.drawing().is_some_and(|drawing| drawing.fill == Fill::MeanColor),
            linear_light: self.mean_in_linear_light,
        }
    }

    /// Takes the value of a property.
    ///
    /// # Errors
    ///
    /// A number out of range or NaN, which GObject refuses before in all usual ways; the old value stays.
    fn set(&mut self, name: &str, value: &glib::Value) -> error::Result<()> {
        match name {
            "algo" => self.algo = of(value),
            "backend" => self.backend = of(value),
            "threads" => self.threads = THREADS.check(of(value))?,
            "superpixel-size" => self.superpixel_size = SUPERPIXEL_SIZE.check(of(value))?,
            "superpixels" => self.superpixels = SUPERPIXELS.check(of(value))?,
            "iterations" => {
                self.own.slic.iterations = ITERATIONS.check(of(value))?;
                self.own.lsc.iterations = self.own.slic.iterations;
            }
            "compactness" => {
                self.own.slic.compactness = slic::COMPACTNESS.check(of(value))?;
                self.own.snic.compactness = self.own.slic.compactness;
            }
            "color-space" => {
                self.own.slic.color_space = of::<ColorSpace>(value).into();
                self.own.quickshift.color_space = self.own.slic.color_space;
                self.own.snic.color_space = self.own.slic.color_space;
            }
            "adaptive-compactness" => self.own.slic.adaptive_compactness = of(value),
            "lsc-ratio" => self.own.lsc.ratio = lsc::RATIO.check(of(value))?,
            "sigma" => self.own.quickshift.sigma = quickshift::SIGMA.check(of(value))?,
            "tau" => self.own.quickshift.tau = quickshift::TAU.check(of(value))?,
            "color-scale" => self.own.quickshift.color_scale = quickshift::COLOR_SCALE.check(of(value))?,
            "connectivity" => self.connectivity = of(value),
            "min-region" => self.min_region = MIN_REGION.check(of(value))?,
            "merge" => self.merge.ratio = merge::MERGE.check(of(value))?,
            "merge-rule" => self.merge.rule = of::<MergeRule>(value).into(),
            "merge-max-distance" => self.merge.max_distance = merge::MAX_DISTANCE.check(of(value))?,
            "merge-passes" => self.merge.passes = merge::PASSES.check(of(value))?,
            "regions" => self.hierarchy.regions = hierarchy::REGIONS.check(of(value))?,
            "regions-compactness" => self.hierarchy.compactness = hierarchy::COMPACTNESS.check(of(value))?,
            "hierarchy" => self.hierarchy.levels = of(value),
            "refine" => self.refine.sweeps = refine::REFINE.check(of(value))?,
            "smoothness" => self.refine.smoothness = refine::SMOOTHNESS.check(of(value))?,
            "temporal" => self.temporal = of(value),
            "temporal-inertia" => self.temporal_inertia = temporal::INERTIA.check(of(value))?,
            "stretch-gray16" => self.stretch_gray16 = of(value),
            "overlay" => self.overlay = of(value),
            "mean-in-linear-light" => self.mean_in_linear_light = of(value),
            "boundary-color" => self.boundaries.color = of(value),
            "boundary-width" => self.boundaries.width = BOUNDARY_WIDTH.check(of(value))?,
            "labels" => self.labels = of(value),
            "region-table" => self.region_table = of(value),
            "neighbors" => self.neighbors = of(value),
            "analytics" => self.analytics = of(value),
            _ => {
                if !self.device.set(name, value) {
                    unimplemented!("property {name}")
                }
            }
        }
        Ok(())
    }

    /// Value of a property.
    pub(super) fn get(&self, name: &str) -> glib::Value {
        match name {
            "algo" => self.algo.to_value(),
            "backend" => self.backend.to_value(),
            "threads" => self.threads.to_value(),
            "superpixel-size" => self.superpixel_size.to_value(),
            "superpixels" => self.superpixels.to_value(),
            "iterations" => self.own.slic.iterations.to_value(),
            "compactness" => self.own.slic.compactness.to_value(),
            "color-space" => ColorSpace::from(self.own.slic.color_space).to_value(),
            "adaptive-compactness" => self.own.slic.adaptive_compactness.to_value(),
            "lsc-ratio" => self.own.lsc.ratio.to_value(),
            "sigma" => self.own.quickshift.sigma.to_value(),
            "tau" => self.own.quickshift.tau.to_value(),
            "color-scale" => self.own.quickshift.color_scale.to_value(),
            "connectivity" => self.connectivity.to_value(),
            "min-region" => self.min_region.to_value(),
            "merge" => self.merge.ratio.to_value(),
            "merge-rule" => MergeRule::from(self.merge.rule).to_value(),
            "merge-max-distance" => self.merge.max_distance.to_value(),
            "merge-passes" => self.merge.passes.to_value(),
            "regions" => self.hierarchy.regions.to_value(),
            "regions-compactness" => self.hierarchy.compactness.to_value(),
            "hierarchy" => self.hierarchy.levels.to_value(),
            "refine" => self.refine.sweeps.to_value(),
            "smoothness" => self.refine.smoothness.to_value(),
            "temporal" => self.temporal.to_value(),
            "temporal-inertia" => self.temporal_inertia.to_value(),
            "stretch-gray16" => self.stretch_gray16.to_value(),
            "overlay" => self.overlay.to_value(),
            "mean-in-linear-light" => self.mean_in_linear_light.to_value(),
            "boundary-color" => self.boundaries.color.to_value(),
            "boundary-width" => self.boundaries.width.to_value(),
            "labels" => self.labels.to_value(),
            "region-table" => self.region_table.to_value(),
            "neighbors" => self.neighbors.to_value(),
            "analytics" => self.analytics.to_value(),
            _ => self.device.get(name).unwrap_or_else(|| unimplemented!("property {name}")),
        }
    }
}

/// Why a device cannot do what is wanted, and what to do.
pub(super) fn cpu_only(params: &Params) -> String {
    let nick = params.algorithm.algorithm().nick();
    format!("algo={nick} runs on the CPU only; set backend=cpu or backend=auto")
}

/// Reads a value; GObject has checked its type.
fn of<'a, T: glib::value::FromValue<'a> + Default>(value: &'a glib::Value) -> T {
    value.get().unwrap_or_default()
}
