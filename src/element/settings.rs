// SPDX-License-Identifier: MPL-2.0
//! What the user asked for: GObject properties to parameters of the library and back.

use std::sync::LazyLock;

use gst::glib;
use gst::prelude::*;

use crate::algo::{self, AllParams, algorithms, lsc, quickshift, slic};
use crate::color;
use crate::error::Result;
use crate::params::{
    BOUNDARY_WIDTH, Boundaries, Drawing, Fill, ITERATIONS, MIN_REGION, Outputs, Params, Range,
    SUPERPIXEL_SIZE, SUPERPIXELS, THREADS,
};
use crate::post::merge;
use crate::temporal;

use super::cuda::DeviceSettings;

macro_rules! define {
    ($slic:ident, $slic_module:ident, $slic_nick:literal, $slic_backends:ident, $slic_about:literal;
     $($variant:ident, $module:ident, $nick:literal, $backends:ident, $about:literal;)*) => {
        /// The method that segments; the first of the list is the default.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
        #[repr(i32)]
        #[enum_type(name = "GstSuperpixelAlgorithm")]
        #[non_exhaustive]
        pub enum Algorithm {
            #[default]
            #[doc = $slic_about]
            #[enum_value(name = $slic_about, nick = $slic_nick)]
            $slic,
            $(
                #[doc = $about]
                #[enum_value(name = $about, nick = $nick)]
                $variant,
            )*
        }

        impl From<Algorithm> for algo::Algorithm {
            fn from(algorithm: Algorithm) -> Self {
                match algorithm {
                    Algorithm::$slic => Self::$slic,
                    $(Algorithm::$variant => Self::$variant,)*
                }
            }
        }
    };
}
algorithms!(define);

/// Where frames are segmented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[repr(i32)]
#[enum_type(name = "GstSuperpixelBackend")]
#[non_exhaustive]
pub enum Backend {
    /// The fastest that works here.
    #[default]
    #[enum_value(name = "Auto: CUDA if a device opens, else CPU; chosen at start", nick = "auto")]
    Auto,
    /// A CUDA device or an error.
    #[enum_value(name = "CUDA: a CUDA device, or an error", nick = "cuda")]
    Cuda,
    /// The CPU.
    #[enum_value(name = "CPU: threads on this machine", nick = "cpu")]
    Cpu,
}

/// The color space in which differences are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[repr(i32)]
#[enum_type(name = "GstSuperpixelColorSpace")]
#[non_exhaustive]
pub enum ColorSpace {
    /// CIE L, a, b.
    #[default]
    #[enum_value(name = "Lab: CIE L, a, b (D65) of sRGB", nick = "lab")]
    Lab,
    /// Lab as gSLICr computes it.
    #[enum_value(
        name = "Lab, gSLICr: L, a, b without undoing the sRGB curve, as gSLICr",
        nick = "lab-gslicr"
    )]
    LabGslicr,
    /// XYZ as gSLICr computes it.
    #[enum_value(
        name = "XYZ, gSLICr: X, Y, Z without undoing the sRGB curve, as gSLICr",
        nick = "xyz-gslicr"
    )]
    XyzGslicr,
    /// R', G', B'.
    #[enum_value(name = "RGB: R', G', B' code values", nick = "rgb")]
    Rgb,
}

impl From<ColorSpace> for color::ColorSpace {
    fn from(space: ColorSpace) -> Self {
        match space {
            ColorSpace::Lab => Self::Lab,
            ColorSpace::LabGslicr => Self::LabGslicr,
            ColorSpace::XyzGslicr => Self::XyzGslicr,
            ColorSpace::Rgb => Self::Rgb,
        }
    }
}

impl From<color::ColorSpace> for ColorSpace {
    fn from(space: color::ColorSpace) -> Self {
        match space {
            color::ColorSpace::Lab => Self::Lab,
            color::ColorSpace::LabGslicr => Self::LabGslicr,
            color::ColorSpace::XyzGslicr => Self::XyzGslicr,
            color::ColorSpace::Rgb => Self::Rgb,
        }
    }
}

/// From how many sides regions have to be alike to be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[repr(i32)]
#[enum_type(name = "GstSuperpixelMergeRule")]
#[non_exhaustive]
pub enum MergeRule {
    /// From both.
    #[default]
    #[enum_value(name = "Mutual: two regions merge if each is near enough for the other", nick = "mutual")]
    Mutual,
    /// From one.
    #[enum_value(name = "Either: two regions merge if one is near enough for the other", nick = "either")]
    Either,
}

impl From<MergeRule> for merge::Rule {
    fn from(rule: MergeRule) -> Self {
        match rule {
            MergeRule::Mutual => Self::Mutual,
            MergeRule::Either => Self::Either,
        }
    }
}

impl From<merge::Rule> for MergeRule {
    fn from(rule: merge::Rule) -> Self {
        match rule {
            merge::Rule::Mutual => Self::Mutual,
            merge::Rule::Either => Self::Either,
        }
    }
}

/// What is drawn into the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[repr(i32)]
#[enum_type(name = "GstSuperpixelOverlay")]
#[non_exhaustive]
pub enum Overlay {
    /// Nothing.
    #[enum_value(name = "None: pixels stay untouched", nick = "none")]
    None,
    /// Lines between regions.
    #[default]
    #[enum_value(name = "Boundaries: lines between regions", nick = "boundaries")]
    Boundaries,
    /// Regions in their mean color.
    #[enum_value(name = "Mean color: every region in its mean color", nick = "mean-color")]
    MeanColor,
    /// Regions in their mean color and lines between them.
    #[enum_value(name = "Mean color and boundaries", nick = "mean-color-boundaries")]
    MeanColorBoundaries,
    /// Regions in false colors.
    #[enum_value(name = "Labels: one false color for each region", nick = "labels")]
    Labels,
}

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
    superpixel_size: u32,
    superpixels: u32,
    connectivity: bool,
    min_region: f32,
    merge: merge::Params,
    temporal: bool,
    temporal_inertia: f32,
    own: AllParams,
}

impl Default for Settings {
    fn default() -> Self {
        let Params {
            superpixel_size, superpixels, connectivity, min_region, merge, temporal_inertia, ..
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
            superpixel_size,
            superpixels,
            connectivity,
            min_region,
            merge,
            // A stream is one scene after another; the library cannot know that of what it is given.
            temporal: true,
            temporal_inertia,
            own: AllParams::default(),
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
        self.backend != Backend::Cpu && self.algorithm().capabilities().cuda
    }

    /// What decides the label map.
    pub(super) fn params(&self) -> Params {
        Params {
            superpixel_size: self.superpixel_size,
            superpixels: self.superpixels,
            connectivity: self.connectivity,
            min_region: self.min_region,
            merge: self.merge.clone(),
            temporal: self.temporal,
            temporal_inertia: self.temporal_inertia,
            algorithm: self.own.of(self.algorithm()),
        }
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
    /// Errors: a number out of range or NaN, which GObject refuses before in all usual ways; the old value stays.
    pub(super) fn set(&mut self, name: &str, value: &glib::Value) -> Result<()> {
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
            "temporal" => self.temporal = of(value),
            "temporal-inertia" => self.temporal_inertia = temporal::INERTIA.check(of(value))?,
            "overlay" => self.overlay = of(value),
            "mean-in-linear-light" => self.mean_in_linear_light = of(value),
            "boundary-color" => self.boundaries.color = of(value),
            "boundary-width" => self.boundaries.width = BOUNDARY_WIDTH.check(of(value))?,
            "labels" => self.labels = of(value),
            "region-table" => self.region_table = of(value),
            "neighbors" => self.neighbors = of(value),
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
            "temporal" => self.temporal.to_value(),
            "temporal-inertia" => self.temporal_inertia.to_value(),
            "overlay" => self.overlay.to_value(),
            "mean-in-linear-light" => self.mean_in_linear_light.to_value(),
            "boundary-color" => self.boundaries.color.to_value(),
            "boundary-width" => self.boundaries.width.to_value(),
            "labels" => self.labels.to_value(),
            "region-table" => self.region_table.to_value(),
            "neighbors" => self.neighbors.to_value(),
            _ => self.device.get(name).unwrap_or_else(|| unimplemented!("property {name}")),
        }
    }
}

/// Reads a value; GObject has checked its type.
fn of<'a, T: glib::value::FromValue<'a> + Default>(value: &'a glib::Value) -> T {
    value.get().unwrap_or_default()
}

fn uint(range: Range<u32>, nick: &str, blurb: &str) -> glib::ParamSpec {
    glib::ParamSpecUInt::builder(range.name)
        .nick(nick)
        .blurb(blurb)
        .minimum(range.min)
        .maximum(range.max)
        .default_value(range.default)
        .controllable()
        .mutable_playing()
        .build()
}

fn float(range: Range<f32>, nick: &str, blurb: &str) -> glib::ParamSpec {
    glib::ParamSpecFloat::builder(range.name)
        .nick(nick)
        .blurb(blurb)
        .minimum(range.min)
        .maximum(range.max)
        .default_value(range.default)
        .controllable()
        .mutable_playing()
        .build()
}

fn boolean(name: &str, default: bool, nick: &str, blurb: &str) -> glib::ParamSpec {
    glib::ParamSpecBoolean::builder(name)
        .nick(nick)
        .blurb(blurb)
        .default_value(default)
        .mutable_playing()
        .build()
}

/// Every property of the element.
pub(super) static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
    let default = Settings::default();
    let mut properties = vec![
        glib::ParamSpecEnum::builder_with_default("algo", default.algo)
            .nick("Algorithm")
            .blurb("The segmentation algorithm")
            .mutable_playing()
            .build(),
        glib::ParamSpecEnum::builder_with_default("backend", default.backend)
            .nick("Backend")
            .blurb("Where frames are segmented; chosen once at start")
            .mutable_ready()
            .build(),
        glib::ParamSpecString::builder("active-backend")
            .nick("Active backend")
            .blurb("The backend in use, with its device or number of threads; empty before start")
            .read_only()
            .build(),
        glib::ParamSpecUInt::builder(THREADS.name)
            .nick("Threads")
            .blurb("Threads of the CPU backend (0 = all cores)")
            .minimum(THREADS.min)
            .maximum(THREADS.max)
            .default_value(THREADS.default)
            .mutable_ready()
            .build(),
        uint(
            SUPERPIXEL_SIZE,
            "Superpixel size",
            "SLIC, LSC, SNIC: grid step in px, the distance between seeds; higher = fewer and larger superpixels",
        ),
        uint(
            SUPERPIXELS,
            "Superpixels",
            "SLIC, LSC, SNIC: wanted number per frame, from which the grid step follows; approximate (0 = use superpixel-size)",
        ),
        uint(ITERATIONS, "Iterations", "SLIC, LSC: assign and update rounds of an independent frame; more = better fit, slower. Warm-started frames (temporal), and those after a cut, take two"),
        float(
            slic::COMPACTNESS,
            "Compactness",
            "SLIC, SNIC: weight of position against color, in Lab units; higher = more regular superpixels",
        ),
        glib::ParamSpecEnum::builder_with_default("color-space", ColorSpace::from(default.own.slic.color_space))
            .nick("Color space")
            .blurb("SLIC, SNIC, quick shift: color space of the differences (LSC: always Lab)")
            .mutable_playing()
            .build(),
        boolean(
            "adaptive-compactness",
            default.own.slic.adaptive_compactness,
            "Adaptive compactness",
            "SLIC: adapt the compactness of each superpixel to its colors (SLICO)",
        ),
        float(
            lsc::RATIO,
            "LSC ratio",
            "LSC: weight of position against color, C_s / C_c; higher = more regular superpixels",
        ),
        float(
            quickshift::SIGMA,
            "Sigma",
            "Quick shift: width of the density kernel in px; higher = smoother; time grows with its square",
        ),
        float(
            quickshift::TAU,
            "Tau",
            "Quick shift: longest link in px, in position and color together; higher = fewer and larger regions",
        ),
        float(
            quickshift::COLOR_SCALE,
            "Color scale",
            "Quick shift: weight of a color unit against a px; higher = regions follow color more closely",
        ),
        boolean(
            "connectivity",
            default.connectivity,
            "Connectivity",
            "Make every label one 4-connected region of at least min-region",
        ),
        float(
            MIN_REGION,
            "Minimum region",
            "Smallest region as a fraction of the squared grid step (quick shift: of tau squared); smaller components join a neighbor",
        ),
        float(
            merge::MERGE,
            "Merge",
            "Merge touching regions where a neighbor is at most this many times as far in color as the nearest one \
             (0 = off, usual 1.5 to 2.5); higher = fewer regions",
        ),
        glib::ParamSpecEnum::builder_with_default("merge-rule", MergeRule::from(default.merge.rule))
            .nick("Merge rule")
            .blurb("Whether two regions merge when near enough for both of them, or for one")
            .mutable_playing()
            .build(),
        float(
            merge::MAX_DISTANCE,
            "Merge maximum distance",
            "Never merge across a larger color difference, in Delta E (color-space=rgb: code values; 0 = no limit)",
        ),
        uint(merge::PASSES, "Merge passes", "Merging passes, each from the means that the last one left; more = fewer regions"),
        boolean(
            "temporal",
            default.temporal,
            "Temporal",
            "Warm-start every frame from the previous one and keep track ids; off: independent frames",
        ),
        float(
            temporal::INERTIA,
            "Temporal inertia",
            "How strongly a pixel keeps its region from frame to frame; higher = steadier, slower to follow edges",
        ),
        glib::ParamSpecEnum::builder_with_default("overlay", default.overlay)
            .nick("Overlay")
            .blurb("What is drawn into the frame")
            .mutable_playing()
            .build(),
        boolean(
            "mean-in-linear-light",
            default.mean_in_linear_light,
            "Mean in linear light",
            "Average colors, drawn and in the region table, in linear RGB instead of code values",
        ),
        glib::ParamSpecUInt::builder("boundary-color")
            .nick("Boundary color")
            .blurb("Color of boundaries as 0xAARRGGBB, blended by alpha")
            .default_value(default.boundaries.color)
            .controllable()
            .mutable_playing()
            .build(),
        uint(BOUNDARY_WIDTH, "Boundary width", "Width of boundaries in px"),
        boolean("labels", default.labels, "Labels", "Attach the label map as GstSuperpixelMeta"),
        boolean(
            "region-table",
            default.region_table,
            "Region table",
            "Attach one record per region to the metadata: area, centroid, mean colors, bounding box",
        ),
        boolean(
            "neighbors",
            default.neighbors,
            "Neighbors",
            "Attach the list of touching regions with their shared boundary lengths to the metadata",
        ),
        glib::ParamSpecBoxed::builder::<gst::Structure>("stats")
            .nick("Statistics")
            .blurb(
                "Since start: frames, dropped, frame-time-us-mean, with CUDA pixel-bytes-to-device, pixel-bytes-from-device, \
                 result-bytes-from-device; of the last frame: regions, frame-time-us, on the CPU stage-times-us",
            )
            .read_only()
            .build(),
    ];
    properties.extend(DeviceSettings::properties());
    properties
});
